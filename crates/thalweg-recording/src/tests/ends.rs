//! The ends of instances in recordings.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::qos::WriterQos;
use thalweg::types::{KeyHash, Keyed};
use thalweg::{DomainParticipant, KeyOf, Payload, PayloadKind};

use super::files::{Folder, options};
use crate::TopicSelection;
use crate::files::Compression;
use crate::read::{Entry, RecordingReader};
use crate::recorder::{Recorder, RecorderOptions};

/// The number of an end, whether the instance was disposed, and its serialized key.
type End = (i64, bool, Option<Vec<u8>>);

fn ends(path: &Path) -> Vec<End> {
    let mut reader = RecordingReader::new(std::fs::File::open(path).expect("a file"));
    let mut ends = Vec::new();
    while let Some(entry) = reader.read_entry().expect("understood") {
        if let Entry::InstanceEnd { end, .. } = entry {
            ends.push((end.sequence, end.disposed, end.key_bytes()));
        }
    }
    ends
}

/// Records ends of two instances; without a description of the type, nobody tells those apart.
fn check_ends(is_described: bool) {
    let folder = Folder::new(&format!("ends-{is_described}"));
    let tag = format!("ends-{is_described}-{}", std::process::id());
    let create = || DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant");
    let (here, there) = (create(), create());
    let path = folder.0.join("run.mcap");
    let options = RecorderOptions {
        topics: TopicSelection::default(),
        memory_bytes_max: 1 << 20,
        files: options(path.clone(), Compression::None, None),
    };
    let types = |_: &str| Ok(None);
    let mut recorder = Recorder::start(&here, options, &types).expect("started");
    let key_of: KeyOf = Arc::new(|bytes: &[u8], _: PayloadKind| Some(KeyHash([bytes[4]; 16])));
    let mut topic = there.create_raw_topic("light", "T", Keyed::Yes, Some(key_of));
    if is_described {
        let types = thalweg_types::idl::parse("@final struct T { @key long id; long x; };").expect("IDL");
        topic = topic.described_as(types.find("T").expect("T")).expect("described");
    }
    let qos = WriterQos::default().reliable().keep_all().without_autodispose();
    let writer = there.create_writer(&topic, qos).expect("a legal QoS");
    let begun = Instant::now();
    while writer.matched_readers().is_empty() {
        recorder.look();
        assert!(begun.elapsed() < Duration::from_secs(30), "nobody records it");
        std::thread::sleep(Duration::from_millis(20));
    }
    let key = |id: u8| vec![0, 1, 0, 0, id, 0, 0, 0];
    let write = |id: u8| {
        let sample = [key(id), vec![1, 0, 0, 0]].concat();
        writer.write_payload(&Payload::from(sample), None, None).expect("written");
    };
    let dispose = |id: u8| (writer.dispose_serialized(&key(id), None).expect("ended").0, true, Some(key(id)));
    let unregister = |id: u8| (writer.unregister_serialized(&key(id), None).expect("ended").0, false, Some(key(id)));
    // As long as nobody knows whether the type will be described, all of it waits: the instance lives again when its end is taken.
    write(1);
    write(2);
    let mut written: Vec<End> = vec![dispose(1)];
    write(1);
    written.extend([dispose(1), unregister(1), dispose(2), unregister(2)]);
    while recorder.summary().recorded() < 8 && begun.elapsed() < Duration::from_secs(30) {
        recorder.look();
        std::thread::sleep(Duration::from_millis(20));
    }
    let (summary, _) = recorder.finish().expect("written");
    assert_eq!((summary.recorded(), summary.missing(), summary.dropped()), (8, 0, 0), "{summary}");
    assert_eq!(ends(&path), written, "described: {is_described}");
}

#[test]
fn every_end_is_recorded_as_what_it_is_with_its_own_key() {
    check_ends(true);
    check_ends(false);
}
