//! What of a recording arrives where it is replayed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use thalweg::qos::{AccessScope, Durability, Presentation, ReaderQos, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DataReader, DomainParticipant, InstanceState, KeyOf, Raw};

use super::files::{Folder, options, writer};
use super::played::{joined, numbers, started, write_run};
use crate::channel::RecordedWriter;
use crate::files::{Compression, RecordedMessage, RecordingFiles};
use crate::instance::instance_of;
use crate::player::Player;
use crate::qos::RecordedQos;
use crate::read::{Entry, InstanceEnd, RecordingReader};
use crate::records::{END_BYTES, summary_start};
use crate::schema::TypeSchema;
use crate::summary::RecordingSummary;

/// A sample: the place of its writer in a list, its number, the milliseconds of its time stamp and of its reception, and its value.
type Written = (usize, u32, u64, u64, u8);

/// A file with samples of these writers.
fn write(path: &Path, writers: &[RecordedWriter], samples: &[Written]) {
    let mut files = RecordingFiles::create(options(path.to_owned(), Compression::None, None)).expect("created");
    let writers: Vec<usize> = writers.iter().map(|writer| files.add_writer(writer.clone())).collect();
    let time_ns = |after_ms: u64| 1_700_000_000_000_000_000 + after_ms * 1_000_000;
    for (writer, sequence, stamp_ms, log_ms, value) in samples.iter().copied() {
        let (log_time_ns, publish_time_ns, data) = (time_ns(log_ms), time_ns(stamp_ms), &[0, 1, 0, 0, value, 0, 0, 0]);
        let message = RecordedMessage { sequence, log_time_ns, publish_time_ns, data };
        files.write(writers[writer], &message).expect("written");
    }
    files.finish(&RecordingSummary::default()).expect("finished");
}

fn with_qos(topic: &str, guid: &str, qos: &WriterQos) -> RecordedWriter {
    RecordedWriter { qos: RecordedQos::of(qos), ..writer(topic, guid) }
}

fn reader(participant: &DomainParticipant, topic: &str, qos: ReaderQos) -> DataReader<Raw> {
    let topic = participant.create_raw_topic(topic, "a::T", Keyed::No, None);
    participant.create_reader(&topic, qos.reliable().keep_all()).expect("a reader")
}

#[test]
fn an_instance_that_was_unregistered_is_told_to_have_no_writers() {
    let folder = Folder::new("unregistered");
    let path = folder.0.join("run.mcap");
    let schema = TypeSchema {
        name: "a::K".to_owned(),
        encoding: "omgidl".to_owned(),
        text: "module a { @final struct K { @key long id; long x; }; };".to_owned(),
    };
    let of = schema.to_type().expect("understood").expect("a type");
    let mut files = RecordingFiles::create(options(path.clone(), Compression::None, None)).expect("created");
    let number = files.add_writer(RecordedWriter {
        type_name: "a::K".to_owned(),
        keyed: Keyed::Yes,
        schema: Some(Arc::new(schema)),
        ..with_qos("k", "g1", &WriterQos::default().keep_all())
    });
    let data = &[0, 1, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0];
    let message = RecordedMessage { sequence: 1, log_time_ns: 1_000, publish_time_ns: 1_000, data };
    files.write(number, &message).expect("written");
    let (topic, writer, key) = ("k".to_owned(), "g1".to_owned(), "0001000007000000".to_owned());
    let end = InstanceEnd { topic, writer, sequence: 2, disposed: false, key };
    let json = serde_json::to_vec(&end).expect("JSON");
    files.write_end(&RecordedMessage { sequence: 2, data: &json, ..message }).expect("written");
    files.finish(&RecordingSummary::default()).expect("finished");
    let (join, types, stop) = (|| joined("unregistered"), |_: &str| Ok(None), AtomicBool::new(false));
    let files = std::slice::from_ref(&path);
    let watcher = joined("unregistered").expect("a participant");
    let key_of: KeyOf = Arc::new(move |bytes, kind| instance_of(&of, bytes, kind));
    let topic = watcher.create_raw_topic("k", "a::K", Keyed::Yes, Some(key_of));
    let reader = watcher.create_reader(&topic, ReaderQos::default().reliable().keep_all()).expect("a reader");
    let mut player = Player::open(&join, files, started(Duration::ZERO, 1.0), &types).expect("opened");
    assert_eq!(player.wait_for_readers(Duration::from_secs(30), &stop), 1);
    player.play(files, &stop).expect("played");
    assert_eq!((player.counts().written, player.counts().refused), (2, 0), "{:?}", player.first_refusal());
    let (begun, mut state) = (Instant::now(), InstanceState::Alive);
    while state == InstanceState::Alive && begun.elapsed() < Duration::from_secs(30) {
        if let Some(sample) = reader.take(usize::MAX).last() {
            state = sample.info().instance_state;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // Its writer is still there.
    assert_eq!((state, player.topics()), (InstanceState::NotAliveNoWriters, vec!["k".to_owned()]));
}

/// A file whose last chunk is broken, and the numbers of the samples before.
fn broken_file(folder: &Folder, has_index: bool) -> (PathBuf, Vec<u8>) {
    let path = folder.0.join("run.mcap");
    let samples: Vec<(&str, u64, u8)> = (1..=100).map(|number| ("scan", u64::from(number), number)).collect();
    write_run(&path, &samples);
    let mut bytes = std::fs::read(&path).expect("a file");
    let last = bytes.windows(8).position(|found| found == [0, 1, 0, 0, 100, 0, 0, 0]).expect("the last sample");
    bytes[last + 4] ^= 1;
    if !has_index {
        let index = summary_start(bytes.last_chunk::<END_BYTES>().expect("an end")).expect("an index");
        bytes.truncate(usize::try_from(index).expect("within the file"));
    }
    let (mut file, mut before) = (RecordingReader::new(&bytes[..]), Vec::new());
    while let Ok(Some(entry)) = file.read_entry() {
        if let Entry::Message { data, .. } = entry {
            before.push(data[4]);
        }
    }
    assert!((50..100).contains(&before.len()), "{before:?}");
    std::fs::write(&path, &bytes).expect("written");
    (path, before)
}

#[test]
fn what_stands_before_a_broken_chunk_is_replayed_and_the_chunk_is_told() {
    for has_index in [true, false] {
        let tag = format!("broken-{has_index}");
        let folder = Folder::new(&tag);
        let (path, before) = broken_file(&folder, has_index);
        let (join, types, stop) = (|| joined(&tag), |_: &str| Ok(None), AtomicBool::new(false));
        let files = std::slice::from_ref(&path);
        let watcher = joined(&tag).expect("a participant");
        let reader = reader(&watcher, "scan", ReaderQos::default());
        let mut player = Player::open(&join, files, started(Duration::ZERO, 1.0), &types).expect("opened");
        assert_eq!(player.wait_for_readers(Duration::from_secs(30), &stop), 1);
        let error = player.play(files, &stop).expect_err("it is broken").to_string();
        assert!(error.contains("CRC"), "{error}");
        assert_eq!(numbers(&reader, before.len()), before, "has an index: {has_index}");
        assert_eq!((player.counts().written, player.counts().refused), (before.len() as u64, 0));
    }
}

#[test]
fn a_writer_that_began_anew_under_its_guid_is_replayed_with_both_lives() {
    let folder = Folder::new("lives");
    let files = ["one.mcap", "two.mcap"].map(|name| folder.0.join(name));
    let writers = [with_qos("map", "g1", &WriterQos::default().transient_local().keep_all())];
    write(
        &files[0],
        &writers,
        &[(0, 1, 1, 1, 11), (0, 2, 2, 2, 12), (0, 3, 3, 3, 13), (0, 1, 4, 4, 21), (0, 2, 5, 5, 22)],
    );
    // What it has kept in both lives is repeated.
    write(&files[1], &writers, &[(0, 2, 5, 6, 22), (0, 3, 3, 6, 13), (0, 3, 6, 6, 23)]);
    let (join, types, stop) = (|| joined("lives"), |_: &str| Ok(None), AtomicBool::new(false));
    let watcher = joined("lives").expect("a participant");
    let reader = reader(&watcher, "map", ReaderQos::default());
    let mut player = Player::open(&join, &files, started(Duration::ZERO, 1.0), &types).expect("opened");
    assert_eq!(player.wait_for_readers(Duration::from_secs(30), &stop), 1);
    player.play(&files, &stop).expect("played");
    assert_eq!(numbers(&reader, 6), [11, 12, 13, 21, 22, 23]);
    assert_eq!((player.counts().written, player.counts().refused), (6, 0));
}

#[test]
fn transient_writers_of_a_topic_are_replayed_to_readers_that_ask_for_their_like() {
    let folder = Folder::new("transient");
    let path = folder.0.join("run.mcap");
    let presentation = Presentation { access_scope: AccessScope::Topic, ordered: true, ..Presentation::default() };
    let qos = WriterQos::default().durability(Durability::Transient).presentation(presentation).keep_all();
    let writers = ["g1", "g2"].map(|guid| with_qos("map", guid, &qos));
    write(&path, &writers, &[(0, 1, 1, 1, 1), (1, 1, 2, 2, 2)]);
    let (join, types, stop) = (|| joined("transient"), |_: &str| Ok(None), AtomicBool::new(false));
    let files = std::slice::from_ref(&path);
    let watcher = joined("transient").expect("a participant");
    let qos = ReaderQos::default().durability(Durability::Transient).presentation(presentation);
    let first = reader(&watcher, "map", qos.clone());
    let mut player = Player::open(&join, files, started(Duration::ZERO, 1.0), &types).expect("opened");
    assert_eq!(player.wait_for_readers(Duration::from_secs(30), &stop), 2);
    player.play(files, &stop).expect("played");
    let late = reader(&watcher, "map", qos);
    for reader in [&first, &late] {
        let mut numbers = numbers(reader, 2);
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2]);
    }
}

#[test]
fn more_transient_writers_are_replayed_than_a_participant_keeps_histories() {
    let folder = Folder::new("many-transient");
    let path = folder.0.join("run.mcap");
    let qos = WriterQos::default().durability(Durability::Transient);
    let writers: Vec<RecordedWriter> = (0..1_030).map(|number| with_qos("map", &format!("g{number}"), &qos)).collect();
    let samples: Vec<Written> = (0..writers.len()).map(|place| (place, 1, 1, 1, 1)).collect();
    write(&path, &writers, &samples);
    let joins = std::cell::Cell::new(0);
    let join = || {
        joins.set(joins.get() + 1);
        joined("many-transient")
    };
    let types = |_: &str| Ok(None);
    let player = Player::open(&join, std::slice::from_ref(&path), started(Duration::ZERO, 1.0), &types);
    assert_eq!(player.map(|player| player.topics()).map_err(|error| error.to_string()), Ok(vec!["map".to_owned()]));
    assert_eq!(joins.get(), 2);
}

#[test]
fn what_a_writer_wrote_in_each_of_its_partitions_is_replayed_there() {
    let folder = Folder::new("moved");
    let path = folder.0.join("run.mcap");
    let in_partition = |name: &str| with_qos("scan", "g1", &WriterQos::default().keep_all().partition([name]));
    // It goes back to the first one.
    write(&path, &["a", "b"].map(in_partition), &[(0, 1, 1, 1, 1), (1, 2, 2, 2, 2), (1, 3, 3, 3, 3), (0, 4, 4, 4, 4)]);
    let (join, types, stop) = (|| joined("moved"), |_: &str| Ok(None), AtomicBool::new(false));
    let files = std::slice::from_ref(&path);
    let watcher = joined("moved").expect("a participant");
    let readers = ["a", "b"].map(|name| reader(&watcher, "scan", ReaderQos::default().partition([name])));
    let mut player = Player::open(&join, files, started(Duration::ZERO, 1.0), &types).expect("opened");
    assert_eq!(player.wait_for_readers(Duration::from_secs(30), &stop), 2);
    player.play(files, &stop).expect("played");
    assert_eq!(readers.map(|reader| numbers(&reader, 2)), [[1, 4], [2, 3]]);
}
