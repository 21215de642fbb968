//! `topic echo` and `topic pub` of types that this program learns at run time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use thalweg::cdr::Layout;
use thalweg::qos::{ReaderQos, WriterOwnership, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Raw, Topic, Type};
use thalweg_types::idl::{parse, to_idl};

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

/// What a type of ROS is on the wire.
#[derive(Topic)]
#[topic(name = "demo::msg::dds_::Scan_", extensibility = "final")]
struct Scan {
    x: i32,
}

#[test]
fn the_topics_of_a_domain_are_listed_with_their_types_and_ends() {
    let tag = tag();
    let (participant, topic) = notes(&tag);
    let writers = [1, 2].map(|_| participant.create_writer(&topic, WriterQos::default()).expect("a writer"));
    let scans = participant.create_topic::<Scan>("rt/scan");
    let reader = participant.create_reader(&scans, ReaderQos::default()).expect("a reader");
    let (name, of) = ("demo::msg::dds_::Scan_", "Note");
    let wanted = json!([
        {"name": "notes", "dds_name": "notes", "types": [of], "writers": 2, "readers": 0, "described": false},
        {"name": "/scan", "dds_name": "rt/scan", "types": [name], "writers": 0, "readers": 1, "described": true},
    ]);
    let list = |words: &[&str]| {
        run(&[&["topic", "list", "--wait", "3", "--domain-tag", &tag][..], words].concat()).expect_code(0).stdout
    };
    // A busy machine may find them late.
    let is_listed = (0..10).any(|_| serde_json::from_str::<Value>(&list(&["--json"])).expect("JSON") == wanted);
    assert!(is_listed, "{}", list(&["--json"]));
    let lines = format!("notes  2 writers, 0 readers  {of}\n/scan  0 writers, 1 readers  {name}\n");
    assert!((0..10).any(|_| list(&[]) == lines), "{}", list(&[]));
    drop((writers, reader));
    let nobody = run(&["topic", "list", "--wait", "0.2", "--domain-tag", &format!("{tag}-none")]).expect_code(0);
    assert_eq!(nobody.stdout, "no topics\n");
}

/// What `topic type` says of a topic: IDL and, on standard error, where it came from.
#[track_caller]
fn type_told(tag: &str, prefix: Option<&str>, words: &[&str]) -> (String, String) {
    let mut command = command(&[&["topic", "type"], words, &["--patience", "40", "--domain-tag", tag]].concat());
    match prefix {
        Some(prefix) => command.env("AMENT_PREFIX_PATH", prefix),
        None => command.env_remove("AMENT_PREFIX_PATH"),
    };
    let said = Running::start(command).finish().expect_code(0);
    (said.stdout, said.stderr)
}

#[test]
fn a_type_is_that_of_a_file_then_of_a_package_then_of_the_participant_and_of_the_command_last() {
    let (tag, folder) = (tag(), TestFolder::new());
    std::fs::create_dir_all(folder.path("share/demo/msg")).expect("a folder");
    folder.write("share/demo/msg/Scan.msg", "float64 ranges\n");
    folder.write("scan.idl", "module demo { module msg { module dds_ { struct Scan_ { short file; }; }; }; };");
    let (idl, share, prefix) = (folder.path("scan.idl"), folder.path("share"), folder.path(""));
    let participant = DomainParticipant::builder(0).domain_tag(&tag).create().expect("a participant");
    let scans = participant.create_topic::<Scan>("rt/scan");
    let _scan = participant.create_writer(&scans, WriterQos::default()).expect("a writer");
    let told = |prefix: Option<&str>, words: &[&str], member: &str, origin: &str| {
        let (text, remarks) = type_told(&tag, prefix, words);
        assert!(text.contains(member) && text.matches(';').count() == 5, "{words:?}: {text}");
        assert!(remarks.contains(&format!("demo::msg::dds_::Scan_ of rt/scan, from {origin}")), "{words:?}: {remarks}");
    };
    let all = ["/scan", "--idl", &idl, "--share", &share];
    told(Some(&prefix), &all, "short file;", &idl);
    told(None, &all[..3], "short file;", &idl);
    told(None, &["/scan", "--share", &share], "double ranges;", "installed ROS packages");
    told(Some(&prefix), &["rt/scan"], "double ranges;", "installed ROS packages");
    told(None, &["scan"], "long x;", &format!("participant {}", participant.guid_prefix()));
    assert_eq!(type_told(&tag, None, &["/scan"]).0, to_idl([&Scan::description().expect("a description")]));
    // Nobody describes the type of these, one of which the command knows.
    let shapes = participant.create_raw_topic("Square", "ShapeType", Keyed::No, None);
    let _shapes = participant.create_writer(&shapes, WriterQos::default()).expect("a writer");
    let (text, remarks) = type_told(&tag, None, &["Square"]);
    assert!(text.contains("struct ShapeType {") && remarks.contains("from the types that this command"), "{remarks}");
    let unknown = participant.create_raw_topic("notes", "Note", Keyed::No, None);
    let _notes = participant.create_writer(&unknown, WriterQos::default()).expect("a writer");
    let said = run(&["topic", "type", "notes", "--patience", "40", "--domain-tag", &tag]).expect_code(1);
    let told = "the type Note is not known: nobody describes it; give it by --idl FILE or --share FOLDER";
    assert!(said.stderr.contains(told) && said.stdout.is_empty(), "{}", said.stderr);
}

#[test]
fn a_participant_comes_before_what_the_command_knows_and_its_names_stay_on_their_lines() {
    let tag = tag();
    let types = parse("@final struct ShapeType { long x; long y; };").expect("IDL");
    let Some(Type::Structure(plain)) = types.find("ShapeType") else { panic!("a structure") };
    let mut forged = (**plain).clone();
    forged.members[1].name = "y;\n  long z".into();
    let participant = DomainParticipant::builder(0).domain_tag(&tag).create().expect("a participant");
    let topic = participant.create_raw_topic("Square", "ShapeType", Keyed::No, None);
    let topic = topic.described_as(&Type::Structure(forged.into())).expect("described");
    let _writer = participant.create_writer(&topic, WriterQos::default()).expect("a writer");
    let (text, remarks) = type_told(&tag, None, &["Square"]);
    assert!(remarks.contains("ShapeType of Square, from participant "), "{remarks}");
    assert_eq!(text, "@final struct ShapeType {\n  long x;\n  long y;\\u000a  long z;\n};\n");
}

#[test]
fn echo_takes_types_from_the_packages_of_its_option_and_of_the_environment() {
    let (tag, folder) = (tag(), TestFolder::new());
    std::fs::create_dir_all(folder.path("share/demo/msg")).expect("a folder");
    folder.write("share/demo/msg/Note.msg", "int32 x\n");
    let participant = DomainParticipant::builder(0).domain_tag(&tag).create().expect("a participant");
    let topic = participant.create_raw_topic("rt/notes", "demo::msg::dds_::Note_", Keyed::No, None);
    let writer = participant.create_writer(&topic, WriterQos::default().transient_local()).expect("a writer");
    writer.write_serialized(&[0, 1, 0, 0, 7, 0, 0, 0]).expect("written");
    let (share, prefix) = (folder.path("share"), folder.path(""));
    let echo = ["topic", "echo", "/notes", "--json", "--count", "1", "--timeout", "50", "--patience", "40"];
    let echo = [&echo[..], &["--domain-tag", &tag]].concat();
    let mut of_option = command(&[&echo[..], &["--share", &share]].concat());
    of_option.env_remove("AMENT_PREFIX_PATH");
    let mut of_environment = command(&echo);
    of_environment.env("AMENT_PREFIX_PATH", format!("/no/such/prefix:{prefix}"));
    for echo in [of_option, of_environment] {
        assert_eq!(Running::start(echo).finish().expect_code(0).stdout, "{\"x\":7}\n");
    }
}

#[test]
fn a_topic_that_is_not_there_is_compared_with_those_that_are() {
    let tag = tag();
    let (participant, topic) = notes(&tag);
    let _writer = participant.create_writer(&topic, WriterQos::default()).expect("a writer");
    for command in ["type", "echo", "hz"] {
        let said = run(&["topic", command, "Notes", "--patience", "8", "--domain-tag", &tag]).expect_code(3);
        let told = "no topic \"Notes\" was found within 8 s; did you mean notes?";
        assert!(said.stderr.contains(told), "{command}: {}", said.stderr);
    }
    let said = run(&["topic", "type", "weather", "--patience", "1", "--domain-tag", &tag]).expect_code(3);
    assert!(said.stderr.contains("was found within 1 s") && !said.stderr.contains("did you"), "{}", said.stderr);
}

#[test]
fn delays_tell_whether_writers_have_the_clock_of_this_host() {
    for (host, error_s, words, short) in [
        (None, json!(0.0), "both ends have one clock", "clock error 0"),
        (Some("elsewhere"), Value::Null, "the unknown difference of the clocks", "clock error unknown"),
    ] {
        let tag = tag();
        let builder = DomainParticipant::builder(0).domain_tag(&tag);
        let builder = host.into_iter().fold(builder, |builder, host| builder.property("__Hostname", host));
        let participant = builder.create().expect("a participant");
        let topic = participant.create_raw_topic("notes", "Note", Keyed::No, None);
        let writer = participant.create_writer(&topic, WriterQos::default()).expect("a writer");
        let is_over = AtomicBool::new(false);
        let delay = ["topic", "delay", "notes", "--count", "2", "--every", "0.5", "--patience", "40"];
        let delay = [&delay[..], &["--domain-tag", &tag]].concat();
        let [json, text] = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in (0..6_000).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    writer.write_serialized(&[0, 1, 0, 0, 7, 0, 0, 0]).expect("written");
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            let said = [&["--json"][..], &[]].map(|words| run(&[&delay[..], words].concat()));
            is_over.store(true, Ordering::Relaxed);
            said
        });
        let told = json.expect_code(0).stdout;
        let last: Value = serde_json::from_str(told.lines().last().expect("a line")).expect("JSON");
        assert_eq!(last["clock_error_s"], error_s, "{last:#}");
        assert!(last["clock"].as_str().is_some_and(|told| told.contains(words)), "{last:#}");
        let text = text.expect_code(0);
        assert!(text.stdout.lines().last().is_some_and(|line| line.ends_with(short)), "{}", text.stdout);
        assert_eq!(text.stderr.matches(words).count(), 1, "{}", text.stderr);
    }
}
