//! Which channels can be replayed, and which are refused.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use mcap::records::MessageHeader;
use mcap::{WriteOptions, Writer};
use thalweg::qos::{ReaderQos, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DataReader, DomainParticipant, Raw};

use super::files::{Folder, options, writer};
use crate::channel::RecordedWriter;
use crate::error::RecordingError;
use crate::files::{Compression, RecordedMessage, RecordingFiles};
use crate::player::{Player, PlayerOptions, ReplayClock};
use crate::qos::RecordedQos;
use crate::read::channels_of;
use crate::schema::TypeSchema;
use crate::summary::RecordingSummary;
use crate::type_identity::TypeIdentity;
use crate::{TopicSelection, Withheld};

/// A channel of another program: its name, the encoding of its messages, the schema's name, encoding and text, metadata.
type ForeignChannel<'a> = (&'a str, &'a str, Option<(&'a str, &'a str, &'a str)>, &'a [(&'a str, &'a str)]);

/// A file as another program writes it.
fn write(path: &std::path::Path, channels: &[ForeignChannel<'_>]) {
    let file = std::fs::File::create(path).expect("created");
    let mut writer: Writer<_> = WriteOptions::new().profile("ros2").create(file).expect("a writer");
    for (topic, encoding, schema, metadata) in channels {
        let schema = schema
            .map_or(0, |(name, encoding, text)| writer.add_schema(name, encoding, text.as_bytes()).expect("a schema"));
        let metadata: BTreeMap<String, String> =
            metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let channel_id = writer.add_channel(schema, topic, encoding, &metadata).expect("a channel");
        let header = MessageHeader { channel_id, sequence: 0, log_time: 5, publish_time: 4 };
        writer.write_to_known_channel(&header, &[0, 1, 0, 0, 1, 0, 0, 0]).expect("written");
    }
    writer.finish().expect("finished");
}

pub fn joined(tag: &str) -> Result<DomainParticipant, RecordingError> {
    let builder = DomainParticipant::builder(0).loopback_only().domain_tag(format!("{tag}-{}", std::process::id()));
    builder.create().map_err(RecordingError::new)
}

fn open(path: &std::path::Path, topics: &[&str]) -> Result<Vec<String>, String> {
    open_renamed(path, topics, &[])
}

fn open_renamed(path: &std::path::Path, topics: &[&str], renamed: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let join = || joined("played");
    let options = PlayerOptions {
        topics: TopicSelection::new(topics.iter().map(|name| (*name).to_owned()).collect(), Vec::new()),
        rate: 1.0,
        clock: ReplayClock::Source,
        start: Duration::ZERO,
        renamed: renamed.iter().map(|(old, new)| ((*old).to_owned(), (*new).to_owned())).collect(),
    };
    let types = |_: &str| Ok(None);
    let player = Player::open(&join, &[path.to_owned()], options, &types);
    player.map(|player| player.topics()).map_err(|error| error.to_string())
}

const STRING: Option<(&str, &str, &str)> = Some(("std_msgs/msg/String", "ros2msg", "string data"));

#[test]
fn a_bag_of_ros_is_read_with_its_names_and_profiles() {
    let folder = Folder::new("bag");
    let path = folder.0.join("bag.mcap");
    let profiles = [("offered_qos_profiles", "- history: 1\n  depth: 1\n  reliability: 1\n  durability: 1")];
    write(&path, &[("/chatter", "cdr", STRING, &profiles), ("/old", "cdr", STRING, &[])]);
    let channels = channels_of(&path).expect("channels");
    let writer: &RecordedWriter = channels[0].writer.as_ref().expect("a writer");
    assert_eq!((writer.topic.as_str(), writer.type_name.as_str()), ("rt/chatter", "std_msgs::msg::dds_::String_"));
    assert_eq!(writer.keyed, Keyed::No);
    for old in ["/old", "rt/old"] {
        assert_eq!(open_renamed(&path, &[], &[(old, "/new")]), Ok(vec!["/chatter".to_owned(), "/new".to_owned()]));
    }
}

#[test]
fn a_new_name_for_a_topic_that_the_files_do_not_have_is_refused() {
    let folder = Folder::new("renamed-none");
    let path = folder.0.join("run.mcap");
    write(&path, &[("/cmd_vel", "cdr", STRING, &[]), ("/chatter", "cdr", STRING, &[])]);
    let error = open_renamed(&path, &[], &[("/cmdvel", "/old/cmd_vel")]).expect_err("it is not there");
    assert_eq!(error, "/cmdvel cannot get another name: the files have /chatter, /cmd_vel");
    assert_eq!(open_renamed(&path, &["/chatter"], &[("/cmd_vel", "/x")]), Ok(vec!["/chatter".to_owned()]));
}

#[test]
fn what_is_no_sample_of_dds_is_refused_by_name() {
    let folder = Folder::new("refused");
    let path = folder.0.join("other.mcap");
    let proto = Some(("foxglove.Log", "protobuf", "…"));
    let keyed = Some(("a::K", "omgidl", "module a { struct K { @key long id; }; };"));
    write(
        &path,
        &[
            ("/log", "protobuf", proto, &[]),
            ("/chatter", "cdr", STRING, &[]),
            ("bare", "cdr", None, &[]),
            ("k", "cdr", keyed, &[]),
        ],
    );
    let error = open(&path, &[]).expect_err("some cannot");
    assert!(error.contains("/log: its messages are \"protobuf\"") && error.contains("bare: it has neither"), "{error}");
    assert!(!error.contains("chatter"), "{error}");
    assert_eq!(open(&path, &["/chatter", "k"]), Ok(vec!["k".to_owned(), "/chatter".to_owned()]));
    assert!(open(&path, &["/none"]).expect_err("nothing chosen").contains("none of the chosen topics"));
    std::fs::write(folder.0.join("text"), "no recording at all, but some text that is long enough").expect("written");
    assert!(open(&folder.0.join("text"), &[]).expect_err("refused").contains("no MCAP file"));
}

#[test]
fn requests_are_replayed_where_they_are_named_and_told_where_they_are_not() {
    let folder = Folder::new("withheld");
    let path = folder.0.join("run.mcap");
    let named = |topic: &'static str| [("thalweg.topic", topic), ("thalweg.type", "T")];
    let (request, graph) = (named("rq/addRequest"), named("ros_discovery_info"));
    write(&path, &[("rq/addRequest", "cdr", None, &request), ("ros_discovery_info", "cdr", None, &graph)]);
    let error = open(&path, &[]).expect_err("nothing is left");
    assert!(error.contains("by name only: ros_discovery_info, rq/addRequest"), "{error}");
    assert_eq!(open(&path, &["rq/*"]), Ok(vec!["rq/addRequest".to_owned()]));
    write(&path, &[("rq/addRequest", "cdr", None, &request), ("/chatter", "cdr", STRING, &[])]);
    assert_eq!(open(&path, &[]), Ok(vec!["/chatter".to_owned()]));
    let (join, types) = (|| joined("withheld"), |_: &str| Ok(None));
    let player = |renamed: &[(&str, &str)]| {
        let owned = |(old, new): &(&str, &str)| ((*old).to_owned(), (*new).to_owned());
        let renamed = renamed.iter().map(owned).collect();
        let (topics, start) = (TopicSelection::default(), Duration::ZERO);
        let options = PlayerOptions { topics, rate: 1.0, clock: ReplayClock::Source, start, renamed };
        let player = Player::open(&join, std::slice::from_ref(&path), options, &types).expect("opened");
        player.withheld().clone()
    };
    assert_eq!(player(&[]), BTreeMap::from([("rq/addRequest".to_owned(), Withheld::Requests)]));
    // A new name is a choice as well.
    assert_eq!(player(&[("rq/addRequest", "rq/oldRequest")]), BTreeMap::new());
}

#[test]
fn each_definition_of_a_type_name_is_replayed_as_what_it_is() {
    let folder = Folder::new("definitions");
    let path = folder.0.join("run.mcap");
    let texts = ["@final struct T { long x; };", "@final struct T { double x; };"];
    let [one, other] = texts.map(|text| Some(("T", "omgidl", text)));
    write(
        &path,
        &[("shape", "cdr", one, &[]), ("shape", "cdr", other, &[]), ("shape", "cdr", None, &[("thalweg.type", "T")])],
    );
    let (join, types) = (|| joined("definitions"), |_: &str| Ok(None));
    let options = PlayerOptions {
        topics: TopicSelection::default(),
        rate: 1.0,
        clock: ReplayClock::Source,
        start: Duration::ZERO,
        renamed: BTreeMap::new(),
    };
    let _player = Player::open(&join, &[path], options, &types).expect("opened");
    let watcher = joined("definitions").expect("a participant");
    let identity = |text: &str| {
        let schema = TypeSchema { name: "T".to_owned(), encoding: "omgidl".to_owned(), text: text.to_owned() };
        TypeIdentity::of(&schema.to_type().expect("understood").expect("a type"))
    };
    let mut wanted: Vec<_> = texts.map(identity).into_iter().chain([None]).collect();
    wanted.sort_unstable();
    let begun = Instant::now();
    loop {
        let told = watcher.publications().into_iter().map(|known| known.data);
        let told = told.filter(|data| data.topic_name == "shape");
        let mut told: Vec<_> = told.map(|data| TypeIdentity::announced(data.type_information.as_deref())).collect();
        told.sort_unstable();
        if told == wanted {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{told:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A recording of "scan" and of "map", whose writer keeps two samples for late readers: topics, milliseconds and numbers.
pub fn write_run(path: &std::path::Path, samples: &[(&str, u64, u8)]) {
    let mut files = RecordingFiles::create(options(path.to_owned(), Compression::None, None)).expect("created");
    let of =
        |topic: &str, guid: &str, qos: &WriterQos| RecordedWriter { qos: RecordedQos::of(qos), ..writer(topic, guid) };
    let usual = WriterQos::default().keep_all();
    let map = files.add_writer(of("map", "g1", &WriterQos::default().transient_local().keep_last(2)));
    let scan = files.add_writer(of("scan", "g2", &usual));
    for (topic, after_ms, number) in samples {
        let time = 1_700_000_000_000_000_000 + after_ms * 1_000_000;
        let data = [0, 1, 0, 0, *number, 0, 0, 0];
        let message =
            RecordedMessage { sequence: u32::from(*number), log_time_ns: time, publish_time_ns: time, data: &data };
        files.write(if *topic == "map" { map } else { scan }, &message).expect("written");
    }
    files.finish(&RecordingSummary::default()).expect("finished");
}

pub fn started(start: Duration, rate: f64) -> PlayerOptions {
    let (topics, renamed) = (TopicSelection::default(), BTreeMap::new());
    PlayerOptions { topics, rate, clock: ReplayClock::Source, start, renamed }
}

/// The numbers of the next samples.
pub fn numbers(reader: &DataReader<Raw>, count: usize) -> Vec<u8> {
    let begun = Instant::now();
    let mut numbers = Vec::new();
    while numbers.len() < count && begun.elapsed() < Duration::from_secs(30) {
        numbers
            .extend(reader.take(usize::MAX).iter().filter(|sample| sample.is_valid()).map(|sample| sample.bytes()[4]));
        std::thread::sleep(Duration::from_millis(10));
    }
    numbers
}

#[test]
fn a_replay_from_the_middle_begins_with_what_durable_writers_keep_and_keeps_the_distances_from_there() {
    let folder = Folder::new("started");
    let path = folder.0.join("run.mcap");
    let before: [(&str, u64, u8); 5] =
        [("map", 0, 1), ("scan", 10, 11), ("map", 20, 2), ("map", 30, 3), ("scan", 99_990, 12)];
    let after: [(&str, u64, u8); 3] = [("scan", 100_200, 13), ("map", 100_500, 4), ("scan", 101_000, 14)];
    write_run(&path, &[&before[..], &after].concat());
    let (join, types, stop) = (|| joined("started"), |_: &str| Ok(None), AtomicBool::new(false));
    let files = std::slice::from_ref(&path);
    let watcher = joined("started").expect("a participant");
    let readers = ["map", "scan"].map(|name| {
        let topic = watcher.create_raw_topic(name, "a::T", Keyed::No, None);
        watcher.create_reader(&topic, ReaderQos::default().reliable().keep_all()).expect("a reader")
    });
    let mut player = Player::open(&join, files, started(Duration::from_secs(100), 2.0), &types).expect("opened");
    assert_eq!(player.wait_for_readers(Duration::from_secs(30), &stop), 2);
    for turn in 1..=2 {
        let begun = Instant::now();
        player.play(files, &stop).expect("played");
        // The last one is due a second after the start, at twice the speed; the recording before it lasts 50.
        let took = begun.elapsed();
        assert!((Duration::from_millis(500)..Duration::from_secs(25)).contains(&took), "{took:?}");
        assert_eq!((numbers(&readers[0], 3), numbers(&readers[1], 2)), (vec![2, 3, 4], vec![13, 14]), "turn {turn}");
        let counts = player.counts();
        assert_eq!((counts.written, counts.latched, counts.refused), (5 * turn, 2 * turn, 0));
    }
}

#[test]
fn a_start_behind_the_end_of_the_recording_is_refused_with_its_length() {
    let folder = Folder::new("short");
    let path = folder.0.join("run.mcap");
    write_run(&path, &[("map", 0, 1), ("scan", 2_500, 2)]);
    let (join, types, stop) = (|| joined("short"), |_: &str| Ok(None), AtomicBool::new(false));
    let files = std::slice::from_ref(&path);
    let mut player = Player::open(&join, files, started(Duration::from_secs(3), 1.0), &types).expect("opened");
    let error = player.play(files, &stop).expect_err("nothing is left").to_string();
    assert_eq!(error, "the recording ends 2.500 s after its beginning, and the start is at 3 s");
    assert_eq!((player.counts().written, player.counts().latched), (0, 0));
}

#[test]
fn more_than_the_history_of_a_durable_writer_holds_is_replayed_without_a_halt() {
    const SAMPLES: u32 = 70;
    let folder = Folder::new("durable");
    let path = folder.0.join("run.mcap");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::None, None)).expect("created");
    let qos = RecordedQos::of(&WriterQos::default().reliable().transient_local().keep_all());
    let number = files.add_writer(RecordedWriter { qos, ..writer("map", "g1") });
    let mut data = vec![0_u8; 1 << 20];
    data[1] = 1;
    for sequence in 1..=SAMPLES {
        let message = RecordedMessage { sequence, log_time_ns: 1_000, publish_time_ns: 1_000, data: &data };
        files.write(number, &message).expect("written");
    }
    files.finish(&RecordingSummary::default()).expect("finished");
    let (join, types, stop) = (|| joined("durable"), |_: &str| Ok(None), AtomicBool::new(false));
    let mut player =
        Player::open(&join, std::slice::from_ref(&path), started(Duration::ZERO, 1.0), &types).expect("opened");
    let begun = Instant::now();
    player.play(std::slice::from_ref(&path), &stop).expect("played");
    let (counts, took) = (player.counts(), begun.elapsed());
    assert_eq!((counts.written, counts.refused), (u64::from(SAMPLES), 0), "{:?}", player.first_refusal());
    assert!(took < Duration::from_secs(10), "a write waits so long for room: {took:?}");
}
