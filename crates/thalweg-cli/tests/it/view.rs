//! `view` in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::ChildStderr;
use std::time::Instant;

use serde_json::Value;
use thalweg_testing::viewer::{ViewMessage, Viewer};

use crate::program::{PATIENCE, Running, command, run, tag};

/// A view that listens, with its address and the rest of its remarks.
fn start(tag: &str, words: &[&str]) -> (Running, SocketAddr, BufReader<ChildStderr>) {
    let listen = ["view", "--listen", "127.0.0.1:0", "--domain-tag", tag];
    let mut view = Running::start(command(&[&listen[..], words].concat()));
    let mut stderr = view.stderr();
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("clients connect to ws://").and_then(|address| address.parse().ok());
    let address = address.unwrap_or_else(|| panic!("{line}"));
    (view, address, stderr)
}

#[test]
fn a_topic_is_shown_as_it_is_written_until_ctrl_c() {
    let tag = tag();
    let (view, address, mut stderr) = start(&tag, &["--json"]);
    let words = ["pub", "Square", "--type", "ShapeType", "RED,1,2,3", "--rate", "50", "--match-timeout", "40"];
    let publisher = Running::start(command(&[&words[..], &["--domain-tag", &tag]].concat()));
    let mut viewer = Viewer::connect(address);
    let channel = viewer.expect_channel("Square");
    assert_eq!((&channel["schemaName"], &channel["schemaEncoding"]), (&"ShapeType".into(), &"omgidl".into()));
    viewer.subscribe(3, &channel);
    for _ in 0..5 {
        let (subscription, bytes) = viewer.expect_sample();
        assert_eq!((subscription, bytes[0]), (3, 0), "an encapsulation header: {bytes:?}");
        let members = [&b"RED\0"[..], &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]].concat();
        assert!(bytes.windows(members.len()).any(|part| part == members), "{bytes:?}");
    }
    view.signal("INT");
    while !matches!(viewer.read(), ViewMessage::Goodbye) {}
    let mut remarks = String::new();
    stderr.read_to_string(&mut remarks).expect("text");
    assert!(remarks.contains("shows Square (ShapeType, from participant"), "{remarks}");
    let said = view.finish().expect_code(0);
    drop(publisher);
    let counts: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&counts["clients"], &counts["dropped"]), (&1.into(), &0.into()));
    assert!(counts["samples"].as_u64().is_some_and(|count| count >= 5), "{counts}");
}

#[test]
fn each_instance_of_exclusive_writers_is_shown_that_has_its_own_owner() {
    let tag = tag();
    let (_view, address, _stderr) = start(&tag, &[]);
    let publish = |value: &str, strength: &str| {
        let words = ["pub", "Square", "--type", "ShapeType", value, "--rate", "20", "--match-timeout", "40"];
        Running::start(command(&[&words[..], &["--qos", strength, "--domain-tag", &tag]].concat()))
    };
    let _strong = publish("RED,1,2,3", "strength=9");
    let mut viewer = Viewer::connect(address);
    let channel = viewer.expect_channel("Square");
    viewer.subscribe(3, &channel);
    let until = Instant::now() + PATIENCE;
    let mut expect = |color: &[u8]| {
        while !viewer.expect_sample().1.windows(color.len()).any(|part| part == color) {
            assert!(Instant::now() < until, "nothing of {color:?} is shown");
        }
    };
    expect(b"RED\0");
    let _weak = publish("BLUE,1,2,3", "strength=1");
    expect(b"BLUE\0");
}

#[test]
fn an_address_that_others_reach_needs_consent_and_one_that_is_taken_is_named() {
    let tag = tag();
    let said = run(&["view", "--listen", "0.0.0.0:0", "--domain-tag", &tag]).expect_code(2);
    assert!(said.stderr.contains("--expose"), "{}", said.stderr);
    let words = ["view", "--listen", "0.0.0.0:0", "--expose", "--duration", "0.2", "--domain-tag", &tag];
    run(&words).expect_code(0);
    let (_view, address, _stderr) = start(&tag, &[]);
    let taken = address.to_string();
    let said = run(&["view", "--listen", &taken, "--domain-tag", &tag]).expect_code(1);
    assert!(said.stderr.contains(&taken) && said.stderr.contains("--listen"), "{}", said.stderr);
}
