//! `pub` and `sub` of types that they learn from a file, or from the others of the topic.

use serde_json::{Value, json};

use crate::program::{Running, TestFolder, command, run, tag};

const IDL: &str = "module demo { @appendable struct Whole { @key long id; string name; sequence<short> row; }; };";
const NAMED: [&str; 2] = ["--type", "demo::Whole"];

/// A command in the domain of this tag that gives up after 50 s.
fn start(tag: &str, words: &[&[&str]]) -> Running {
    let patience = if words[0][0] == "sub" { ["--timeout", "50"] } else { ["--match-timeout", "50"] };
    Running::start(command(&[&words.concat()[..], &patience, &["--domain-tag", tag]].concat()))
}

#[test]
fn a_subscriber_reads_the_type_that_the_writers_have() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("whole.idl", IDL);
    let path = folder.path("whole.idl");
    let values = ["things", r#"{"id":7,"name":"a","row":[1,2]}"#, "--rate", "20"];
    let publisher = start(&tag, &[&["pub"], &values, &NAMED, &["--idl", &path, "--readers", "0"]]);
    let said = start(&tag, &[&["sub", "things", "--count", "2"]]).finish().expect_code(0);
    let line = r#"{id: 7, name: "a", row: [1, 2]}"#;
    assert_eq!(said.stdout, format!("{line}\n{line}\n"));
    assert!(said.stderr.contains("demo::Whole of things, from participant "), "{}", said.stderr);
    assert!(!said.stderr.contains("does not match"), "{}", said.stderr);
    let said = start(&tag, &[&["sub", "things", "--count", "1", "--json"], &NAMED]).finish().expect_code(0);
    let sample: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(sample["value"], json!({"id": 7, "name": "a", "row": [1, 2]}));
    publisher.signal("INT");
    publisher.finish().expect_code(0);
}

#[test]
fn values_are_written_in_the_type_that_the_readers_have() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("whole.idl", IDL);
    let path = folder.path("whole.idl");
    let subscriber = start(&tag, &[&["sub", "things", "--count", "2"], &NAMED, &["--idl", &path]]);
    let said = start(&tag, &[&["pub", "things", r#"{"id":7,"name":"a"}"#, "--count", "1", "--dispose"]]).finish();
    let said = said.expect_code(0);
    assert!(said.stderr.contains("demo::Whole of things, from participant "), "{}", said.stderr);
    let lines = "{id: 7, name: \"a\", row: []}\n{\"id\":7} NOT_ALIVE_DISPOSED\n";
    assert_eq!(subscriber.finish().expect_code(0).stdout, lines);
}

#[test]
fn types_that_differ_under_one_name_are_told_to_who_publishes() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("new.idl", IDL);
    folder.write("old.idl", &IDL.replace("string name", "double name"));
    let [new, old] = ["new.idl", "old.idl"].map(|name| folder.path(name));
    let subscriber = start(&tag, &[&["sub", "things"], &NAMED, &["--idl", &new]]);
    let words = ["topic", "pub", "things", r#"{"id":1}"#, "--idl", &old, "--patience", "10", "--domain-tag", &tag];
    let said = run(&[&words[..], &NAMED].concat()).expect_code(3);
    assert!(said.stderr.contains("endpoints of the topic do not match: TYPE_CONSISTENCY"), "{}", said.stderr);
    assert!(!said.stderr.contains("no other endpoint"), "{}", said.stderr);
    subscriber.signal("INT");
    assert_eq!(subscriber.finish().expect_code(0).stdout, "");
}

#[test]
fn types_of_other_names_that_are_assignable_are_no_mismatch() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("whole.idl", IDL);
    folder.write("other.idl", &IDL.replace("Whole", "Other"));
    let [whole, other] = ["whole.idl", "other.idl"].map(|name| folder.path(name));
    // They go on for several seconds, in which others are looked for.
    let subscriber = start(&tag, &[&["sub", "things", "--count", "80"], &NAMED, &["--idl", &whole]]);
    let named = ["--type", "demo::Other", "--idl", &other];
    let said = start(&tag, &[&["pub", "things", r#"{"id":7}"#, "--rate", "20", "--count", "80"], &named]).finish();
    for said in [said, subscriber.finish()] {
        let said = said.expect_code(0);
        assert!(!said.stderr.contains("does not match"), "{}", said.stderr);
    }
}

#[test]
fn another_type_is_told_beside_one_that_matches_also_to_who_names_none() {
    let tag = tag();
    let publisher = start(&tag, &[&["pub", "t", "x", "--type", "string", "--rate", "20", "--count", "140"]]);
    let subscriber = start(&tag, &[&["sub", "t", "--count", "120"]]);
    // It has the type of the first one by then.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    let others = ["pub", "t", "x", "--type", "bytes", "--readers", "0", "--rate", "20", "--count", "80"];
    start(&tag, &[&others]).finish().expect_code(0);
    let said = subscriber.finish().expect_code(0).stderr;
    assert!(said.contains("another endpoint of the topic does not match") && said.contains("thalweg::Bytes"), "{said}");
    publisher.finish().expect_code(0);
}

#[test]
fn a_topic_of_ros_has_its_name_on_the_wire() {
    let tag = tag();
    let subscriber = start(&tag, &[&["sub", "/chatter", "--count", "1"]]);
    start(&tag, &[&["pub", "rt/chatter", "hello", "--count", "1"]]).finish().expect_code(0);
    assert_eq!(subscriber.finish().expect_code(0).stdout, "hello\n");
}

#[test]
fn a_type_that_nobody_describes_is_told_with_a_way_out() {
    let check = |words: &[&str], code: i32, parts: &[&str]| {
        let said = run(&[words, &["--domain-tag", &tag()]].concat()).expect_code(code);
        parts.iter().for_each(|part| assert!(said.stderr.contains(part), "{part:?} not in {}", said.stderr));
    };
    let subscribe = ["sub", "t", "--type", "sting", "--count", "1", "--timeout", "0.5"];
    check(
        &subscribe,
        3,
        &["0 of 1 samples", "describes the type sting: give it by --idl FILE", "did you mean string?"],
    );
    let publish = ["pub", "t", "x", "--type", "demo::Whole", "--match-timeout", "0.5"];
    check(&publish, 3, &["describes the type demo::Whole", "--share FOLDER"]);
    check(&["pub", "t", r#"{"id":1}"#, "--match-timeout", "0.5"], 3, &["nobody has the topic"]);
    check(&["pub", "t", r#"{"id":1}"#, "--readers", "0"], 2, &["there is no member \"id\"", "data"]);
    check(&["pub", "t", "x", "--type", "bytes", "--idl", "/nonexistent.idl"], 2, &["/nonexistent.idl"]);
}

#[test]
fn a_value_that_the_readers_type_does_not_have_is_refused_before_anything_is_written() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("whole.idl", IDL);
    let path = folder.path("whole.idl");
    let subscriber = start(&tag, &[&["sub", "things"], &NAMED, &["--idl", &path]]);
    let said = start(&tag, &[&["pub", "things", r#"{"id":7,"rows":[1]}"#]]).finish().expect_code(2);
    assert!(said.stderr.contains("there is no member \"rows\"; did you mean \"row\"?"), "{}", said.stderr);
    subscriber.signal("INT");
    assert_eq!(subscriber.finish().expect_code(0).stdout, "");
}
