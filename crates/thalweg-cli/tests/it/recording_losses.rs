//! What a recording has of what was written: octets, and what a kill and the network cost.

use std::time::{Duration, Instant, SystemTime};

use thalweg::qos::WriterQos;
use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Raw, Topic};
use thalweg_recording::read::{Entry, RecordingReader};
use thalweg_types::idl::parse;

use crate::program::{PATIENCE, TestFolder, tag};
use crate::recording::{start, verified, wait_for_chunk};

/// The messages of a file, with their receptions in nanoseconds since 1970, and why it is cut off.
fn messages(file: &str) -> (Vec<(u64, Vec<u8>)>, Option<String>) {
    let mut reader = RecordingReader::new(std::fs::File::open(file).expect("a file"));
    let mut messages = Vec::new();
    while let Some(entry) = reader.read_entry().expect("readable") {
        if let Entry::Message { log_time_ns, data, .. } = entry {
            messages.push((log_time_ns, data));
        }
    }
    (messages, reader.cut_off().map(str::to_owned))
}

/// A participant with a topic whose samples this test serializes.
fn notes(tag: &str) -> (DomainParticipant, Topic<Raw>) {
    let participant = DomainParticipant::builder(0).domain_tag(tag).create().expect("a participant");
    let topic = participant.create_raw_topic("notes", "Note", Keyed::No, None);
    (participant, topic)
}

#[test]
fn a_kill_at_any_time_costs_what_came_within_the_last_second() {
    let (folder, tag) = (TestFolder::new(), tag());
    // Nobody has to acknowledge to a reader that was killed.
    let words = ["pub", "chatter", "hello", "--rate", "50", "--match-timeout", "40"];
    let _publisher = start(&tag, &[&words[..], &["--qos", "reliability=best-effort"]].concat());
    for number in 0..4_u64 {
        let file = folder.path(&format!("run{number}.mcap"));
        let recorder = start(&tag, &["record", "--output", &file]);
        wait_for_chunk(&file);
        std::thread::sleep(Duration::from_millis(2_400 + 270 * number));
        let killed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        recorder.signal("KILL");
        recorder.finish();
        let (messages, cut_off) = messages(&file);
        let (last_ns, _) = messages.last().expect("a message");
        let cost = killed.saturating_sub(Duration::from_nanos(*last_ns));
        // Another second for a busy machine.
        assert!(cost < Duration::from_secs(2), "{cost:?} are lost with kill {number}");
        assert!(cut_off.is_some_and(|why| why.contains("before its end")), "kill {number}");
    }
}

#[test]
fn the_file_has_the_octets_that_were_written_whether_they_are_of_the_type_or_not() {
    let (folder, tag) = (TestFolder::new(), tag());
    let file = folder.path("run.mcap");
    let recorder = start(&tag, &["record", "--output", &file, "--count", "5"]);
    let types = parse("@final struct Note { string text; };").expect("IDL");
    let (participant, topic) = notes(&tag);
    let topic = topic.described_as(types.find("Note").expect("the type")).expect("described");
    let writer = participant.create_writer(&topic, WriterQos::default().keep_all()).expect("a writer");
    let until = Instant::now() + PATIENCE;
    while writer.matched_readers().is_empty() {
        assert!(Instant::now() < until, "nobody records");
        std::thread::sleep(Duration::from_millis(20));
    }
    let written: [&[u8]; 5] = [
        &[0, 1, 0, 0, 4, 0, 0, 0, b'a', b'b', b'c', 0],
        // In the other byte order, in XCDR2, of a text without end, of nothing.
        &[0, 0, 0, 0, 0, 0, 0, 4, b'a', b'b', b'c', 0],
        &[0, 7, 0, 0, 4, 0, 0, 0, b'a', b'b', b'c', 0],
        &[0, 1, 0, 0, 0xff, 0xff, 0xff, 0x7f],
        &[0, 1, 0, 0],
    ];
    for octets in written {
        writer.write_serialized(octets).expect("written");
    }
    recorder.finish().expect_code(0);
    let found: Vec<Vec<u8>> = messages(&file).0.into_iter().map(|(_, data)| data).collect();
    assert_eq!(found, written);
}

#[test]
fn what_is_lost_on_the_way_is_missing_as_often_as_its_writer_knows() {
    let (folder, tag) = (TestFolder::new(), tag());
    let file = folder.path("run.mcap");
    let recorder = start(&tag, &["record", "--output", &file]);
    let (participant, topic) = notes(&tag);
    let writer = participant.create_writer(&topic, WriterQos::default().best_effort()).expect("a writer");
    let mut written = 0_u32;
    // Samples have their own numbers, which nobody else gives or counts.
    let mut write = |count: usize, pause: Duration| {
        for _ in 0..count {
            written += 1;
            let mut octets = vec![0; 1_200];
            octets[1] = 1;
            octets[4..8].copy_from_slice(&written.to_le_bytes());
            writer.write_serialized(&octets).expect("written");
            std::thread::sleep(pause);
        }
        written
    };
    let until = Instant::now() + PATIENCE;
    while std::fs::metadata(&file).map_or(0, |found| found.len()) < 500 {
        assert!(Instant::now() < until, "nothing is written");
        write(1, Duration::from_millis(20));
    }
    // While the recorder stands still, its socket has room for a few thousand.
    recorder.signal("STOP");
    write(30_000, Duration::ZERO);
    recorder.signal("CONT");
    std::thread::sleep(Duration::from_secs(2));
    let last = write(40, Duration::from_millis(25));
    std::thread::sleep(Duration::from_millis(500));
    recorder.signal("INT");
    recorder.finish().expect_code(0);
    let number = |data: &[u8]| u32::from_le_bytes(data[4..8].try_into().expect("four octets"));
    let numbers: Vec<u32> = messages(&file).0.iter().map(|(_, data)| number(data)).collect();
    assert_eq!(numbers.last(), Some(&last), "the last one arrives");
    let recorded = u32::try_from(numbers.len()).expect("few");
    let lost = last - numbers[0] + 1 - recorded;
    assert!(lost > 0, "all {recorded} arrived");
    let found = verified(&[&file], 0)["writers"][0].take();
    assert_eq!((&found["recorded"], &found["missing"]), (&recorded.into(), &lost.into()), "{found:#}");
    assert_eq!((&found["absent_count"], &found["dropped_memory"]), (&lost.into(), &0.into()), "{found:#}");
}
