//! `pub`, `sub` and `ls` in processes of their own.

use std::io::{BufRead, Read, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Running, command, run, tag};

/// A started `sub` that has found the network.
fn subscriber(tag: &str, arguments: &[&str]) -> Running {
    Running::start(command(&[&["sub"], arguments, &["--domain-tag", tag, "--timeout", "50"]].concat()))
}

fn publish(tag: &str, arguments: &[&str]) -> crate::program::Said {
    run(&[&["pub"], arguments, &["--domain-tag", tag, "--match-timeout", "40"]].concat())
}

fn lines(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn texts_arrive_in_order_and_both_end_by_themselves() {
    let tag = tag();
    let subscriber = subscriber(&tag, &["chatter", "--count", "4"]);
    let said = publish(&tag, &["chatter", "one", "two", "--count", "4", "--rate", "0"]).expect_code(0);
    assert!(said.stderr.contains("matched a reader") && said.stderr.contains("wrote 4 samples"), "{}", said.stderr);
    let said = subscriber.finish().expect_code(0);
    assert_eq!(said.stdout, "one\ntwo\none\ntwo\n");
    assert_eq!(said.stderr.lines().last(), Some("received 4, lost 0, rejected 0"));
}

#[test]
fn values_come_from_standard_input_line_by_line() {
    let tag = tag();
    let subscriber = subscriber(&tag, &["octets", "--type", "bytes", "--count", "2"]);
    let mut publisher = command(&["pub", "octets", "--type", "bytes", "--domain-tag", &tag, "--match-timeout", "40"]);
    let mut child = publisher.stdin(Stdio::piped()).spawn().expect("started");
    child.stdin.take().expect("piped").write_all(b"0x0102\nhello\n").expect("written");
    assert!(child.wait().expect("ended").success());
    assert_eq!(subscriber.finish().expect_code(0).stdout, "2 bytes 0x0102\n5 bytes 0x68656c6c6f\n");
}

#[test]
fn a_line_that_is_no_value_is_told_by_its_number() {
    let tag = tag();
    let words = ["pub", "Square", "--type", "ShapeType", "--readers", "0", "--rate", "0", "--domain-tag", &tag];
    for (input, expect) in [(&b"RED,1,2,3\nnonsense\n"[..], "line 2: "), (b"\xff\n", "line 1: it is no text in UTF-8")]
    {
        let mut child = command(&words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        child.stdin.take().expect("piped").write_all(input).expect("written");
        let said = child.wait_with_output().expect("ended");
        let told = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(1) && told.contains(expect), "{told}");
    }
}

#[test]
fn keyed_samples_tell_the_state_of_their_instance() {
    let tag = tag();
    let subscriber = subscriber(&tag, &["Square", "--type", "ShapeType", "--json", "--count", "4"]);
    let shapes =
        ["Square", "--type", "ShapeType", "RED,1,2,3", "BLUE,4,5,6", "--count", "2", "--rate", "0", "--dispose"];
    publish(&tag, &shapes).expect_code(0);
    let samples = lines(&subscriber.finish().expect_code(0).stdout);
    let of =
        |color: &str| samples.iter().filter(|sample| sample["value"]["color"] == color).cloned().collect::<Vec<_>>();
    for (color, x) in [("RED", 1), ("BLUE", 4)] {
        let [value, end] = &of(color)[..] else { panic!("{samples:#?}") };
        assert_eq!((&value["value"]["x"], &value["valid"]), (&x.into(), &true.into()));
        assert_eq!((&end["valid"], &end["instance_state"]), (&false.into(), &"NOT_ALIVE_DISPOSED".into()));
        assert!(value["source_timestamp_ns"].as_u64().is_some_and(|time| time > 1_700_000_000_000_000_000));
        assert_eq!(value["writer"], end["writer"]);
    }
}

#[test]
fn a_late_reader_gets_what_a_transient_local_writer_kept() {
    let tag = tag();
    let durable = ["--qos", "durability=transient-local"];
    let words = ["pub", "state", "kept", "--readers", "0", "--rate", "0.01", "--domain-tag", &tag];
    let publisher = Running::start(command(&[&words[..], &durable].concat()));
    std::thread::sleep(std::time::Duration::from_secs(1));
    let said = subscriber(&tag, &[&["state", "--count", "1"][..], &durable].concat()).finish().expect_code(0);
    assert_eq!(said.stdout, "kept\n");
    publisher.signal("INT");
    publisher.finish().expect_code(0);
}

#[test]
fn incompatible_qos_is_named_on_both_sides() {
    let tag = tag();
    let subscriber = Running::start(command(&["sub", "t", "--count", "1", "--timeout", "6", "--domain-tag", &tag]));
    let publisher = ["pub", "t", "x", "--qos", "reliability=best-effort", "--match-timeout", "4", "--domain-tag", &tag];
    let (writer, reader) = (run(&publisher).expect_code(3), subscriber.finish().expect_code(3));
    for said in [&writer, &reader] {
        assert!(said.stderr.contains("RELIABILITY: offered BEST_EFFORT, requested RELIABLE"), "{}", said.stderr);
    }
    assert!(writer.stderr.contains("0 of 1 readers") && reader.stderr.contains("0 of 1 samples"));
}

#[test]
fn another_type_of_the_same_topic_is_named() {
    let tag = tag();
    let subscriber = Running::start(command(&["sub", "t", "--type", "bytes", "--timeout", "6", "--domain-tag", &tag]));
    let text = ["pub", "t", "x", "--type", "string", "--match-timeout", "4", "--domain-tag", &tag];
    let said = run(&text).expect_code(3);
    assert!(said.stderr.contains("thalweg::Bytes") && said.stderr.contains("String_"), "{}", said.stderr);
    assert!(subscriber.finish().expect_code(0).stderr.contains("does not match"));
}

#[test]
fn nobody_there_is_a_time_out_that_says_so() {
    let said = run(&["pub", "t", "x", "--match-timeout", "0.5", "--domain-tag", &tag()]).expect_code(3);
    assert!(
        said.stderr.contains("no other endpoint of this topic") && said.stderr.contains("--readers 0"),
        "{}",
        said.stderr
    );
    let said = run(&["sub", "t", "--count", "1", "--timeout", "0.5", "--domain-tag", &tag()]).expect_code(3);
    assert!(said.stderr.contains("no other endpoint of this topic"), "{}", said.stderr);
}

#[test]
fn ctrl_c_ends_an_endless_command_in_peace_and_an_unfinished_one_with_130() {
    for (words, code) in [
        (&["sub", "t"][..], 0),
        (&["sub", "t", "--count", "1"], 130),
        (&["pub", "t", "x", "--match-timeout", "40"], 130),
    ] {
        let running = Running::start(command(&[words, &["--domain-tag", &tag()]].concat()));
        std::thread::sleep(std::time::Duration::from_millis(800));
        running.signal("INT");
        running.finish().expect_code(code);
    }
}

#[test]
fn a_subscriber_whose_output_is_closed_ends_without_a_word() {
    let tag = tag();
    let mut subscriber = Running::start(command(&["sub", "t", "--domain-tag", &tag]));
    let publisher =
        Running::start(command(&["pub", "t", "x", "--rate", "50", "--match-timeout", "40", "--domain-tag", &tag]));
    let mut stdout = subscriber.stdout();
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    drop(stdout);
    let said = subscriber.finish().expect_code(0);
    assert!(!said.stderr.contains("error"), "{}", said.stderr);
    publisher.signal("INT");
    publisher.finish().expect_code(0);
}

#[test]
fn ls_shows_participants_with_endpoints_qos_and_vendor() {
    let tag = tag();
    let mut subscriber = Running::start(command(&[
        "sub",
        "Square",
        "--type",
        "ShapeType",
        "--qos",
        "partition=front",
        "--domain-tag",
        &tag,
    ]));
    let ls = |arguments: &[&str]| {
        run(&[&["ls", "--domain-tag", &tag, "--settle", "3"], arguments].concat()).expect_code(0).stdout
    };
    let domain: Value = serde_json::from_str(&ls(&["--json"])).expect("JSON");
    let [member] = domain["participants"].as_array().expect("a list").as_slice() else { panic!("{domain:#}") };
    assert_eq!((&member["vendor"], &member["domain_tag"]), (&"Thalweg".into(), &tag.as_str().into()));
    let [endpoint] = member["endpoints"].as_array().expect("a list").as_slice() else { panic!("{domain:#}") };
    assert_eq!(
        (&endpoint["kind"], &endpoint["topic"], &endpoint["type"]),
        (&"reader".into(), &"Square".into(), &"ShapeType".into())
    );
    let qos = &endpoint["qos"];
    assert_eq!((&qos["reliability"], &qos["history"]), (&"RELIABLE".into(), &"KEEP_ALL".into()));
    assert_eq!(qos["partition"], serde_json::json!(["front"]));
    let text = ls(&[]);
    assert!(text.contains("reader Square (ShapeType): RELIABLE") && text.contains("partition front"), "{text}");
    subscriber.signal("TERM");
    let mut rest = String::new();
    subscriber.stdout().read_to_string(&mut rest).expect("text");
    subscriber.finish().expect_code(0);
}
