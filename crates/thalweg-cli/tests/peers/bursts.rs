//! Samples of mixed sizes, written by each method as fast as it goes.

use std::time::{Duration, Instant};

use ::thalweg::qos::{BACKGROUND, History, Method, ReaderQos, Reliability, Transmission, WriterQos};
use ::thalweg::{DataReader, DataWriter, DomainParticipant, Topic, TopicType};

use crate::thalweg;

/// How many samples a burst has.
pub const COUNT: u32 = 2_000;

/// How long a burst may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A numbered sample of one of seven instances.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "thalweg::Record", extensibility = "final")]
pub struct Record {
    #[topic(key)]
    pub key: u32,
    pub number: u32,
    pub data: Vec<u8>,
}

/// A sample without a key; its length and first octet tell which it is.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "thalweg::Bytes", extensibility = "final")]
pub struct Bytes {
    pub data: Vec<u8>,
}

/// The octets of the sample of this number, as the peer's `--mixed-sizes` has them.
fn octets(number: u32) -> Vec<u8> {
    let size = if number % 50 == 49 { 20_000 } else { 40 + number * 137 % 2960 };
    thalweg::octets((number % 256) as u8, size as usize)
}

/// The burst with a key.
pub fn records() -> Vec<Record> {
    (0..COUNT).map(|number| Record { key: number % 7, number, data: octets(number) }).collect()
}

/// The burst without.
pub fn keyless() -> Vec<Bytes> {
    (0..COUNT).map(|number| Bytes { data: octets(number) }).collect()
}

/// Every way in which samples may share datagrams.
pub fn methods() -> [Method; 5] {
    [Method::Immediate, Method::coalesce(), Method::batch(), Method::Auto, Method::asynchronous(BACKGROUND)]
}

/// A participant on the loopback interface, in the process of the test.
pub fn participant(domain: u32) -> DomainParticipant {
    DomainParticipant::builder(domain).loopback_only().create().expect("a loopback interface")
}

/// A reliable writer that keeps all and sends by this method.
pub fn writer<T: TopicType>(participant: &DomainParticipant, topic: &str, method: Method) -> DataWriter<T> {
    let qos = WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: PATIENCE },
        history: History::KeepAll,
        transmission: Transmission::by(method),
        ..WriterQos::default()
    };
    participant.create_writer(&participant.create_topic::<T>(topic), qos).expect("writer")
}

/// A reliable reader that keeps all.
pub fn reader<T: TopicType>(participant: &DomainParticipant, topic: &str) -> DataReader<T> {
    let qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    participant.create_reader(&participant.create_topic::<T>(topic), qos).expect("reader")
}

/// Writes all at once when so many readers are there, and waits until they have them.
#[track_caller]
pub fn write<T: TopicType>(writer: &DataWriter<T>, readers: usize, samples: &[T]) {
    writer.wait_for_matched(readers, PATIENCE).expect("the readers appear");
    for sample in samples {
        writer.write(sample).expect("room in time");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("the readers acknowledge");
}

/// Takes until `count` samples are there or patience ends, and what came directly after.
#[track_caller]
pub fn take<T: TopicType>(reader: &DataReader<T>, count: usize) -> Vec<T> {
    let end = Instant::now() + PATIENCE;
    let mut samples = Vec::new();
    while samples.len() < count && Instant::now() < end {
        reader.wait(Duration::from_millis(100));
        samples.extend(reader.take(usize::MAX).iter().map(|sample| sample.data().expect("a whole sample")));
    }
    samples
}
