//! What the tests share: names of their own, a sample type, and waiting without sleeping.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg::qos::{Durability, History, ReaderQos, Reliability, WriterQos};
use thalweg::{DataReader, DataWriter, DomainParticipant, Sample, Topic, TopicType};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
pub const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Topic, Clone, Debug, PartialEq, Default)]
#[topic(extensibility = "appendable")]
pub struct Shape {
    #[topic(key)]
    pub color: String,
    pub x: i32,
    pub y: i32,
    pub payload: Vec<u8>,
}

impl Shape {
    pub fn new(color: &str, x: i32) -> Shape {
        Shape { color: color.into(), x, ..Shape::default() }
    }
}

#[derive(Topic, Clone, Copy, Debug, PartialEq)]
#[topic(extensibility = "final")]
pub struct Count {
    pub value: u64,
}

/// A domain of this test alone, among the processes that run at once on a host.
pub fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + (std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed)) % 230
}

/// A topic name that no other process uses, should two of them meet in a domain.
pub fn unique(name: &str) -> String {
    format!("{name} {}", std::process::id())
}

pub fn participant(domain: u32) -> DomainParticipant {
    DomainParticipant::builder(domain).loopback_only().create().unwrap()
}

pub fn reliable_writer() -> WriterQos {
    WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: PATIENCE },
        history: History::KeepAll,
        ..WriterQos::default()
    }
}

pub fn reliable_reader() -> ReaderQos {
    ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() }
}

pub fn late_writer() -> WriterQos {
    WriterQos { durability: Durability::TransientLocal, ..reliable_writer() }
}

pub fn late_reader() -> ReaderQos {
    ReaderQos { durability: Durability::TransientLocal, ..reliable_reader() }
}

/// A writer and a reader in two participants, matched on both sides.
pub struct Pair<T> {
    pub writer: DataWriter<T>,
    pub reader: DataReader<T>,
    pub participants: (DomainParticipant, DomainParticipant),
}

pub fn pair<T: TopicType>(name: &str, writer_qos: WriterQos, reader_qos: ReaderQos) -> Pair<T> {
    let (domain, name) = (domain(), unique(name));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<T>(&name), writer_qos).unwrap();
    let reader = there.create_reader(&there.create_topic::<T>(&name), reader_qos).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    Pair { writer, reader, participants: (here, there) }
}

/// Takes until `count` samples have come, invalid ones included.
#[track_caller]
pub fn take<T>(reader: &DataReader<T>, count: usize) -> Vec<Sample<T>> {
    let (mut samples, start) = (Vec::new(), Instant::now());
    while samples.len() < count {
        assert!(start.elapsed() < PATIENCE, "{} of {count} samples came", samples.len());
        reader.wait(Duration::from_millis(100));
        samples.extend(reader.take(count - samples.len()));
    }
    samples
}

/// Waits until `condition` holds; for what has no call that waits.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}
