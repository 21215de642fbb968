//! `topic echo` and `topic pub` of types that this program learns at run time.

use thalweg::qos::{WriterOwnership, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Raw, Topic};

use crate::program::{Running, TestFolder, command, run, tag};

const IDL: &str = "module demo { enum Mood { CALM, WILD };
  @appendable struct Part { double at[2]; Mood mood; };
  @appendable struct Whole { @key long id; string name; Part part; sequence<short> row; }; };";

/// What `topic echo` with these words prints of two samples that `topic pub` writes; only the writer has a file with the type.
fn echo(words: &[&str]) -> String {
    let tag = tag();
    let file = std::env::temp_dir().join(format!("thalweg-{tag}.idl"));
    std::fs::write(&file, IDL).expect("written");
    let path = file.display().to_string();
    let sample = r#"{"id":7,"name":"a,b","part":{"at":[1.5,2],"mood":"WILD"},"row":[1,2,3]}"#;
    let network = ["--domain-tag", &tag];
    let publish =
        ["topic", "pub", "things", sample, "--type", "demo::Whole", "--idl", &path, "--rate", "20", "--patience", "50"];
    let publisher = Running::start(command(&[&publish[..], &network].concat()));
    let echo = ["topic", "echo", "things", "--count", "2", "--timeout", "50", "--patience", "40"];
    let said = Running::start(command(&[&echo[..], words, &network].concat())).finish().expect_code(0);
    publisher.signal("INT");
    publisher.finish().expect_code(0);
    let _ = std::fs::remove_file(file);
    said.stdout
}

#[test]
fn rows_of_comma_separated_values_have_one_header() {
    let row = "7,\"a,b\",\"[1.5,2.0]\",WILD,\"[1,2,3]\"\n";
    assert_eq!(echo(&["--csv"]), format!("id,name,part.at,part.mood,row\n{row}{row}"));
}

#[test]
fn fields_are_columns_or_members_in_the_order_given() {
    assert_eq!(echo(&["--csv", "--field", "row[1]", "--field", "part.mood"]), "row[1],part.mood\n2,WILD\n2,WILD\n");
    let line = r#"{"part.mood":"WILD","id":7}"#;
    assert_eq!(echo(&["--json", "--field", "part.mood", "--field", "id"]), format!("{line}\n{line}\n"));
}

#[test]
fn what_a_filter_refuses_is_not_counted() {
    let said = echo(&["--flow", "--filter", "part.at[0] > 1 && name == 'a,b'", "--field", "name"]);
    assert_eq!(said, "\"a,b\"\n\"a,b\"\n");
}

#[test]
fn a_part_that_no_sample_has_ends_echo_with_its_name() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("whole.idl", IDL);
    let path = folder.path("whole.idl");
    let network = ["--domain-tag", &tag, "--patience", "50"];
    let publish = ["topic", "pub", "things", r#"{"id":7}"#, "--type", "demo::Whole", "--idl", &path];
    let publish = [&publish[..], &["--rate", "20", "--wait-matching", "0"], &network].concat();
    let _publisher = Running::start(command(&publish));
    for (option, value, part) in [
        ("--field", "nmae", "--field nmae: there is no member \"nmae\"; did you mean \"name\"?"),
        ("--filter", "id > 1 && part.mod == 'WILD'", "--filter part.mod: there is no member \"mod\""),
    ] {
        let said = run(&[&["topic", "echo", "things", option, value][..], &network].concat()).expect_code(2);
        assert!(said.stderr.contains(part), "{}", said.stderr);
    }
}

/// A participant with a topic of notes, which have one number.
fn notes(tag: &str) -> (DomainParticipant, Topic<Raw>) {
    let participant = DomainParticipant::builder(0).domain_tag(tag).create().expect("a participant");
    let topic = participant.create_raw_topic("notes", "Note", Keyed::No, None);
    (participant, topic)
}

#[test]
fn echo_hears_writers_of_all_partitions_and_ownerships() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("note.idl", "@final struct Note { long x; };");
    let (participant, topic) = notes(&tag);
    let usual = WriterQos::default().transient_local().keep_all();
    let exclusive = usual.clone().ownership(WriterOwnership::Exclusive { strength: 1 });
    let offers = [usual.clone(), usual.clone().partition(["a"]), usual.partition(["b", "c"]), exclusive];
    let writers = offers.map(|qos| participant.create_writer(&topic, qos).expect("a writer"));
    for (number, writer) in (1..).zip(&writers) {
        writer.write_serialized(&[0, 1, 0, 0, number, 0, 0, 0]).expect("written");
    }
    let path = folder.path("note.idl");
    let words = ["topic", "echo", "notes", "--json", "--idl", &path, "--count", "4", "--timeout", "50"];
    let echo = Running::start(command(&[&words[..], &["--patience", "40", "--domain-tag", &tag]].concat()));
    let said = echo.finish().expect_code(0).stdout;
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [r#"{"x":1}"#, r#"{"x":2}"#, r#"{"x":3}"#, r#"{"x":4}"#]);
}

#[test]
fn rates_leave_out_what_writers_have_kept() {
    let tag = tag();
    let (participant, topic) = notes(&tag);
    let writer = participant.create_writer(&topic, WriterQos::default().transient_local().keep_all());
    let writer = writer.expect("a writer");
    for _ in 0..1_000 {
        writer.write_serialized(&[0, 1, 0, 0, 7, 0, 0, 0]).expect("written");
    }
    for what in ["hz", "bw", "delay"] {
        let words = ["topic", what, "notes", "--json", "--count", "2", "--every", "0.5", "--patience", "40"];
        let said = Running::start(command(&[&words[..], &["--domain-tag", &tag]].concat())).finish();
        let said = said.expect_code(0).stdout;
        let samples = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["samples"].clone();
        assert_eq!(said.lines().map(samples).collect::<Vec<_>>(), [0, 0], "{what}");
    }
}
