//! `topic pub` to readers of other processes, and to readers that derive their type.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use thalweg::qos::{DestinationOrder, Durability, History, Ownership, ReaderQos, Reliability, Representation};
use thalweg::{DataReader, DomainParticipant, InstanceState, Sample, Topic};

use crate::program::{PATIENCE, Running, Said, TestFolder, command, run, tag};

#[derive(Topic, Clone, Debug, PartialEq)]
enum Mood {
    Calm,
    Wild,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(extensibility = "mutable")]
struct Part {
    at: [f64; 2],
    mood: Mood,
    note: Option<String>,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(discriminator = i16)]
enum Load {
    #[topic(case = 1, name = "mass")]
    Mass(f32),
    #[topic(default, name = "what")]
    What(String),
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(extensibility = "appendable", name = "demo::Robot")]
struct Robot {
    #[topic(key)]
    id: u64,
    #[topic(key, max_len = 8)]
    name: String,
    parts: Vec<Part>,
    load: Load,
    speed: i8,
}

fn robot(id: u64, speed: i8) -> Robot {
    let part = Part { at: [0.5, -1.0], mood: Mood::Wild, note: None };
    Robot { id, name: "r2".to_owned(), parts: vec![part], load: Load::Mass(1.5), speed }
}

const ROBOT: &str =
    r#"{"id":18446744073709551615,"name":"r2","parts":[{"at":[0.5,-1],"mood":"Wild"}],"load":{"mass":1.5},"speed":-3}"#;

/// A reader of robots in a domain of its own.
struct Reading {
    tag: String,
    participant: DomainParticipant,
    reader: DataReader<Robot>,
}

impl Reading {
    fn start(change: impl FnOnce(&mut ReaderQos)) -> Reading {
        let tag = tag();
        let participant = DomainParticipant::builder(0).domain_tag(&tag).create().expect("a participant");
        let topic = participant.create_topic::<Robot>("robots");
        let (reliability, history) = (Reliability::RELIABLE, History::KeepAll);
        let mut qos = ReaderQos { reliability, history, ..ReaderQos::default() };
        change(&mut qos);
        let reader = participant.create_reader(&topic, qos).expect("a reader");
        Reading { tag, participant, reader }
    }

    fn publish(&self, words: &[&str]) -> Said {
        run(&[&["topic", "pub", "robots"], words, &["--domain-tag", &self.tag, "--patience", "50"]].concat())
    }

    /// As [`publish`](Self::publish), with these lines of standard input.
    fn publish_lines(&self, lines: &str, words: &[&str]) -> Said {
        let words =
            [&["topic", "pub", "robots", "-"], words, &["--domain-tag", &self.tag, "--patience", "50"]].concat();
        said_with_input(&words, lines)
    }

    /// Waits for so many samples and disposals; a program that ends leaves its instances without a writer, which is passed over.
    #[track_caller]
    fn take(&self, count: usize) -> Vec<Sample<Robot>> {
        let is_disposed = |sample: &Sample<Robot>| sample.info().instance_state == InstanceState::NotAliveDisposed;
        self.take_where(count, |sample| sample.is_valid() || is_disposed(sample))
    }

    #[track_caller]
    fn take_where(&self, count: usize, is_wanted: impl Fn(&Sample<Robot>) -> bool) -> Vec<Sample<Robot>> {
        let (begun, mut taken) = (Instant::now(), Vec::new());
        while taken.len() < count && begun.elapsed() < PATIENCE {
            taken.extend(self.reader.take(1).iter().filter(|sample| is_wanted(sample)).cloned());
            self.reader.wait(Duration::from_millis(1));
        }
        assert_eq!(taken.len(), count);
        taken
    }
}

fn said_with_input(words: &[&str], input: &str) -> Said {
    let mut child = command(words).stdin(Stdio::piped()).spawn().expect("started");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ended");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_reader_that_derives_its_type_gets_what_was_typed_in_the_encoding_that_it_takes() {
    for (representation, name) in [(Representation::Xcdr1, "XCDR1"), (Representation::Xcdr2, "XCDR2")] {
        let reading = Reading::start(|qos| qos.data_representation = vec![representation]);
        let said = reading.publish(&[ROBOT]).expect_code(0);
        let offered = format!("offers RELIABLE, VOLATILE, KEEP_ALL, {name}; 1 of 1 readers match");
        assert!(said.stderr.contains(&offered), "{}", said.stderr);
        assert!(said.stderr.contains("demo::Robot of robots, from participant"), "{}", said.stderr);
        assert_eq!(reading.take(1)[0].data().expect("a robot"), robot(u64::MAX, -3));
    }
}

#[test]
fn instances_are_ended_by_their_key_as_the_reader_computes_it() {
    let reading = Reading::start(|_| {});
    reading.publish(&[ROBOT]).expect_code(0);
    let written = reading.take(1).remove(0);
    // Nothing but the key is needed; whole samples are taken, too.
    for (given, with) in [(r#"{"id":18446744073709551615,"name":"r2"}"#, "--dispose"), (ROBOT, "--dispose")] {
        let said = reading.publish(&[given, with]).expect_code(0);
        assert!(said.stderr.contains("disposed 1 instance of robots"), "{}", said.stderr);
        let ended = reading.take(1).remove(0);
        assert!(!ended.is_valid());
        assert_eq!(ended.info().instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(ended.info().instance, written.info().instance);
        reading.publish(&[ROBOT]).expect_code(0);
        assert!(reading.take(1)[0].is_valid());
    }
    let said = reading.publish(&[r#"{"id":1}"#, "--dispose"]).expect_code(2);
    assert!(said.stderr.contains("the key member \"name\" is missing"), "{}", said.stderr);
}

#[test]
fn an_instance_is_unregistered_while_its_writer_lives() {
    let reading = Reading::start(|_| {});
    let words = ["topic", "pub", "robots", "-", "--unregister", "--patience", "50", "--domain-tag", &reading.tag];
    let mut child = command(&words).stdin(Stdio::piped()).spawn().expect("started");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(b"{\"id\":1,\"name\":\"\"}\n").expect("written");
    let [sample, end] = &reading.take_where(2, |_| true)[..] else { panic!("two") };
    assert_eq!(sample.data().expect("a robot").load, Load::What(String::new()), "left out: the default");
    assert_eq!(end.info().instance_state, InstanceState::NotAliveNoWriters);
    assert_eq!(end.info().instance, sample.info().instance);
    assert!(child.try_wait().expect("a child").is_none(), "the writer is there");
    drop(input);
    assert!(child.wait().expect("ended").success());
}

#[test]
fn a_writer_offers_what_readers_ask_and_the_user_may_say_otherwise() {
    let reading = Reading::start(|qos| {
        qos.durability = Durability::TransientLocal;
        qos.ownership = Ownership::Exclusive;
        qos.destination_order = DestinationOrder::BySource;
        qos.timing.deadline = Duration::from_secs(100);
        qos.liveliness.lease = Duration::from_secs(30);
        qos.partition = vec!["cell?".to_owned()];
    });
    let said = reading.publish(&[ROBOT]).expect_code(0);
    for part in [
        "TRANSIENT_LOCAL",
        "deadline 100000 ms",
        "ownership EXCLUSIVE",
        "partition [\"cell_\"]",
        "1 of 1 readers match",
    ] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert!(reading.take(1)[0].is_valid());
    let words = [ROBOT, "--qos", "ownership=shared", "--patience", "1"];
    let said = run(&[&["topic", "pub", "robots"], &words[..], &["--domain-tag", &reading.tag]].concat()).expect_code(3);
    assert!(said.stderr.contains("OWNERSHIP"), "{}", said.stderr);
    assert!(said.stderr.contains("0 of 1 readers of topic \"robots\" matched within 1 s"), "{}", said.stderr);
}

#[test]
fn samples_are_as_many_as_the_options_say() {
    let reading = Reading::start(|_| {});
    let lines = |from: i8, to: i8| (from..to).map(|speed| format!("{}\n", ROBOT.replace("-3", &speed.to_string())));
    let speeds =
        |count| -> Vec<i8> { reading.take(count).iter().map(|sample| sample.data().expect("one").speed).collect() };
    reading.publish(&[ROBOT, "--count", "3", "--rate", "0"]).expect_code(0);
    assert_eq!(speeds(3), [-3, -3, -3]);
    let input: String = lines(0, 100).collect();
    reading.publish_lines(&format!("\n{input}"), &[]).expect_code(0);
    assert_eq!(speeds(100), (0..100).collect::<Vec<i8>>());
    reading.publish_lines(&input, &["--count", "2"]).expect_code(0);
    assert_eq!(speeds(2), [0, 1]);
    // What stands before a wrong line was written, and is acknowledged.
    let said =
        reading.publish_lines(&format!("{input}{{\"id\":1,\"name\":\"\",\"speed\":128}}\n{input}"), &[]).expect_code(1);
    let expect = "error: line 101 is no demo::Robot: speed: a whole number from -128 to 127 is needed, not 128";
    assert!(said.stderr.contains(expect), "{}", said.stderr);
    assert!(said.stderr.contains("wrote 100 samples of robots"), "{}", said.stderr);
    assert_eq!(speeds(100).len(), 100);
    let said = reading.publish_lines("{\"id\":", &[]).expect_code(1);
    assert!(said.stderr.contains("line 1 is no JSON"), "{}", said.stderr);
    assert!(reading.reader.take(9).iter().all(|sample| !sample.is_valid()));
}

#[test]
fn echo_asks_for_what_the_writer_offers_although_a_reader_was_there_first() {
    let reading = Reading::start(|qos| qos.reliability = Reliability::BestEffort);
    let words = ["topic", "echo", "robots", "--json", "--field", "speed", "--count", "1", "--timeout", "50"];
    let echo = Running::start(command(&[&words[..], &["--patience", "50", "--domain-tag", &reading.tag]].concat()));
    while reading.participant.discovered_participants().is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The reader is known to it before the writer is.
    std::thread::sleep(Duration::from_millis(500));
    reading.publish(&[ROBOT, "--qos", "reliability=best-effort", "--count", "100", "--rate", "20"]).expect_code(0);
    assert_eq!(echo.finish().expect_code(0).stdout, "-3\n");
}

#[test]
fn what_does_not_fit_is_told_with_its_path_and_nothing_is_written() {
    let reading = Reading::start(|_| {});
    let check = |from: &str, to: &str, expect: &str| {
        assert!(ROBOT.contains(from), "{from}");
        let said = reading.publish(&[&ROBOT.replace(from, to)]).expect_code(2);
        assert!(said.stderr.contains(&format!("error: the sample is no demo::Robot: {expect}\n")), "{}", said.stderr);
    };
    check("Wild", "Mild", "parts[0].mood: one of Calm (0), Wild (1) is needed, not \"Mild\"; did you mean \"Wild\"?");
    check("[0.5,-1]", "[0.5,\"x\"]", "parts[0].at[1]: a number is needed, not \"x\"");
    check("[0.5,-1]", "[0.5]", "parts[0].at: 1 elements, where there must be 2");
    check("\"at\"", "\"ad\"", "parts[0]: there is no member \"ad\"; did you mean \"at\"? There are at, mood, note");
    check("\"r2\"", "\"longer name\"", "name: 11 bytes, where 8 are allowed");
    check("1.5", "1e39", "load.mass: a number from -3.4028235e38 to 3.4028235e38 is needed, not 1e39");
    check(
        "\"mass\":1.5",
        "\"$discriminator\":2,\"mass\":1.5",
        "load: the discriminator selects \"what\", not \"mass\"",
    );
    assert_eq!(reading.reader.take(9).len(), 0);
}

#[test]
fn a_topic_that_nobody_has_is_told_with_the_way_out() {
    let said = run(&["topic", "pub", "robots", "{}", "--patience", "0.5", "--domain-tag", &tag()]).expect_code(3);
    assert!(said.stderr.contains("start a reader of it, or name its type with --type NAME"), "{}", said.stderr);
    let words =
        ["topic", "pub", "t", r#"{"color":"RED"}"#, "--type", "ShapeType", "--patience", "0.5", "--domain-tag", &tag()];
    let said = run(&words).expect_code(3);
    assert!(said.stderr.contains("0 of 1 readers of topic \"t\" matched within 0.5 s"), "{}", said.stderr);
    run(&[&words[..], &["--wait-matching", "0"]].concat()).expect_code(0);
    let words = ["topic", "pub", "t", r#"{"data":"a"}"#, "--type", "std_msgs::msg::dds_::String_", "--dispose"];
    let said = run(&[&words[..], &["--domain-tag", &tag()]].concat()).expect_code(2);
    assert!(said.stderr.contains("has no key that names one"), "{}", said.stderr);
}

#[test]
fn a_type_of_ros_has_the_name_of_the_wire_however_it_is_spelled() {
    for spelling in ["demo/msg/Text", "demo::msg::dds_::Text_"] {
        let (tag, folder) = (tag(), TestFolder::new());
        std::fs::create_dir_all(folder.path("demo/msg")).expect("a folder");
        folder.write("demo/msg/Text.msg", "string data");
        let (share, network) = (folder.path(""), ["--domain-tag", &tag, "--patience", "50"]);
        let start = |words: &[&str]| Running::start(command(&[words, &network[..]].concat()));
        let sample = r#"{"data":"x"}"#;
        let words = ["topic", "pub", "/text", sample, "--type", spelling, "--share", &share, "--rate", "20"];
        let publisher = start(&[&words[..], &["--wait-matching", "0"]].concat());
        let echo = start(&["topic", "echo", "/text", "--json", "--count", "1", "--timeout", "50"]);
        let said = echo.finish().expect_code(0);
        assert_eq!(said.stdout.trim(), sample, "{spelling}");
        assert!(said.stderr.contains("demo::msg::dds_::Text_"), "{spelling}: {}", said.stderr);
        publisher.signal("INT");
        publisher.finish().expect_code(0);
    }
}

const IDL: &str = "module all {
  enum Color { RED, @value(5) GREEN }; @bit_bound(12) bitmask Mask { A, @position(7) B };
  bitset Bits { bitfield<3> a; bitfield<9, short> b; };
  @mutable union Choice switch (Color) { case RED: long a; default: string b; };
  @final struct Point { long y; long x; };
  typedef Point Row[2];
  @appendable struct Kinds {
    @key string<20> name; Color color; @optional Point at; sequence<Row> rows; sequence<octet> raw; short grid[2][3];
    char letter; wstring wide; wchar unit; float f; double d; long double big; Mask mask; Bits bits; Choice choice;
    map<string, Point> places; map<short, boolean, 9> flags; unsigned long long u; int8 i;
  };
};";

const KINDS: &str = r#"{"bits":{"a":5,"b":-256},"big":0.1,"choice":{"$discriminator":"GREEN","b":"x"},"color":"GREEN","d":4.823654610206223e-209,"f":0.10000000149011612,"flags":{"-1":true,"7":false},"grid":[[1,2,3],[4,5,6]],"i":-128,"letter":"é","mask":["A","B"],"name":"n","places":{"home":{"x":2,"y":1}},"raw":"0x00ff","rows":[[{"x":1,"y":2},{"x":3,"y":4}]],"u":18446744073709551615,"unit":"€","wide":"größe 𝄞"}"#;

#[test]
fn what_echo_prints_is_what_pub_takes() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("all.idl", IDL);
    let (path, network) = (folder.path("all.idl"), ["--domain-tag", &tag, "--patience", "50"]);
    let typed = ["--type", "all::Kinds", "--idl", &path];
    let start = |words: &[&str]| Running::start(command(&[words, &network[..]].concat()));
    let again = ["--rate", "20"];
    let first = start(&[&["topic", "pub", "one", KINDS], &typed[..], &again[..]].concat());
    let echo = ["--json", "--count", "3", "--timeout", "50"];
    let printed = start(&[&["topic", "echo", "one"], &echo[..]].concat()).finish().expect_code(0).stdout;
    first.signal("INT");
    first.finish().expect_code(0);
    let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    assert_eq!(printed.lines().map(value).collect::<Vec<_>>(), vec![value(KINDS); 3]);

    // The writer of the second topic is there before its reader is, which learns the type from it.
    let words = [&["topic", "pub", "two", "-"], &typed[..], &network[..]].concat();
    let second = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| said_with_input(&words, &printed));
        let said = start(&[&["topic", "echo", "two"], &echo[..]].concat()).finish().expect_code(0);
        publisher.join().expect("no panic").expect_code(0);
        said.stdout
    });
    assert_eq!(second, printed);
}

#[test]
fn a_number_outside_of_its_range_is_told_and_nothing_is_written() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("speed.idl", "@final struct Speed { @range(min = 0, max = 5) float metres; };");
    let path = folder.path("speed.idl");
    let publish = |sample: &str| {
        let words = ["topic", "pub", "speed", sample, "--type", "Speed", "--idl", &path, "--wait-matching", "0"];
        run(&[&words[..], &["--domain-tag", &tag]].concat())
    };
    let said = publish(r#"{"metres":7.5}"#).expect_code(2);
    let expected = "error: the sample is no Speed: metres: 7.5 is outside of the range from 0 to 5\n";
    assert!(said.stderr.contains(expected), "{}", said.stderr);
    publish(r#"{"metres":5}"#).expect_code(0);
}

const TREES: &str = "module trees {
  struct Node;
  @final union Value switch (long) { case 0: long leaf; case 1: sequence<Node> nodes; };
  @appendable struct Node { @key string name; sequence<Node> children; @optional Node next; Value value; };
};";

const TREE: &str = r#"{"name":"a","children":[{"name":"b","children":[],"value":{"$discriminator":0,"leaf":2}}],"next":{"name":"c","children":[],"value":{"$discriminator":0,"leaf":3}},"value":{"$discriminator":1,"nodes":[{"name":"d","children":[],"value":{"$discriminator":0,"leaf":4}}]}}"#;

#[test]
fn a_type_that_contains_itself_is_learned_from_the_wire_and_its_values_travel() {
    let (tag, folder) = (tag(), TestFolder::new());
    folder.write("trees.idl", TREES);
    let (path, network) = (folder.path("trees.idl"), ["--domain-tag", &tag, "--patience", "50"]);
    let start = |words: &[&str]| Running::start(command(&[words, &network[..]].concat()));
    let publisher = start(&["topic", "pub", "trees", TREE, "--type", "trees::Node", "--idl", &path, "--rate", "20"]);
    let echo = start(&["topic", "echo", "trees", "--json", "--count", "2", "--timeout", "50"]);
    let printed = echo.finish().expect_code(0).stdout;
    publisher.signal("INT");
    publisher.finish().expect_code(0);
    let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    assert_eq!(printed.lines().map(value).collect::<Vec<_>>(), vec![value(TREE); 2]);
}
