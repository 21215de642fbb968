//! `topic pub` to readers of Cyclone DDS, whose types it learns from them.

use std::process::Command;

use serde_json::{Value, json};

use super::peer_values;
use crate::program::{Program, Said};
use crate::{peer, thalweg};

/// Writes these lines to a topic as samples.
#[track_caller]
fn publish_lines(domain: u32, topic: &str, lines: &[Value]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["topic", "pub", topic, "-", "--patience", "80", "--domain", &domain.to_string()]);
    let mut publisher = Program::start_with_input("Thalweg", &command);
    lines.iter().for_each(|line| publisher.tell(&line.to_string()));
    publisher.finish().well()
}

#[track_caller]
fn assert_says(said: &Said, text: &str) {
    assert!(said.lines.iter().any(|line| line.contains(text)), "{:#?}", said.lines);
}

#[test]
fn what_echo_prints_of_cyclone_is_published_to_cyclone_unchanged() {
    let domain = thalweg::domain();
    let words = "--topic machines --type machine --xcdr 2 --count 4";
    let subscriber = peer::start(None, domain, &format!("sub {words} --timeout 80"));
    let echo = thalweg::start(None, domain, "topic echo machines --json --count 4 --timeout 80 --patience 60");
    let publisher = peer::start(None, domain, &format!("pub {words} --wait-matched 2 --linger 2"));
    let written = peer_values(&subscriber.finish().well());
    let printed: Vec<Value> = echo.finish().well().objects().collect();
    publisher.finish().well();
    assert_eq!((written.len(), printed.len()), (4, 4));

    let subscriber = peer::start(None, domain, "sub --topic copies --type machine --xcdr 2 --count 4 --timeout 80");
    let said = publish_lines(domain, "copies", &printed);
    assert_says(&said, "XCDR2; 1 of 1 readers match");
    assert_eq!(peer_values(&subscriber.finish().well()), written);
}

#[test]
fn instances_are_disposed_and_unregistered_by_the_key_that_cyclone_computes() {
    let domain = thalweg::domain();
    let words = "sub --topic copies --type machine --xcdr 2 --count 100 --timeout 200";
    let mut subscriber = peer::start(None, domain, words);
    let key = json!({"id": u64::MAX, "name": "m9"});
    let network = format!("--patience 80 --domain {domain}");
    for (ending, state) in
        [("", "ALIVE"), ("--dispose", "NOT_ALIVE_DISPOSED"), ("--unregister", "NOT_ALIVE_NO_WRITERS")]
    {
        thalweg::start_alone(&format!("topic pub copies {key} {ending} {network}")).finish().well();
        let line = subscriber.expect_text(state);
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let members = if said["event"] == "invalid" { &said["key"] } else { &said["data"] };
        assert_eq!((&members["id"], &members["name"]), (&key["id"], &key["name"]), "{line}");
    }
    subscriber.kill();
}

#[test]
fn members_left_out_have_their_default_at_cyclone_in_either_encoding() {
    for (xcdr, name) in [(1, "XCDR1"), (2, "XCDR2")] {
        let domain = thalweg::domain();
        let words = format!("sub --topic Square --type shape --xcdr {xcdr} --count 1 --timeout 80 --transient-local");
        let subscriber = peer::start(None, domain, &words);
        let words = format!(r#"topic pub Square {{"color":"RED","y":-7}} --patience 80 --domain {domain}"#);
        let said = thalweg::start_alone(&words).finish().well();
        assert_says(&said, &format!("offers RELIABLE, TRANSIENT_LOCAL, KEEP_ALL, {name}; 1 of 1 readers match"));
        assert_eq!(
            peer_values(&subscriber.finish().well()),
            [json!({"color": "RED", "x": 0, "y": -7, "shapesize": 0})]
        );
    }
}
