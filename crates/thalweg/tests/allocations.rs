//! In steady state neither writing nor receiving allocates, decoding into a value that is there included; counted by the allocator of this
//! binary, for all threads of both participants.

use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::{DataReader, DataWriter, Delivery, DomainParticipant, ReadFilter, Topic};
use thalweg_testing::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Topic, Clone)]
#[topic(extensibility = "appendable")]
struct Reading {
    #[topic(key)]
    sensor: u32,
    values: Vec<u8>,
}

/// Repetitions of each shape at most, of which one must be free of allocations: samples leave alone or with others as the
/// machine's load has it, and the pools of both ways have to grow to what they need.
const ROUNDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// Writes `count` samples, `ahead` at a time, and takes them all.
fn exchange(writer: &DataWriter<Reading>, reader: &DataReader<Reading>, sample: &Reading, count: usize, ahead: usize) {
    let mut taken = Vec::with_capacity(ahead);
    let mut value = Reading { sensor: 0, values: Vec::with_capacity(sample.values.len()) };
    for _ in 0..count / ahead {
        for _ in 0..ahead {
            writer.write(sample).unwrap();
        }
        let mut received = 0;
        while received < ahead {
            assert!(reader.wait(PATIENCE));
            received += reader.take_into(ahead, &ReadFilter::ALL, &mut taken);
            for taken in taken.drain(..) {
                taken.data_into(&mut value).unwrap();
                assert_eq!(value.values.len(), sample.values.len());
            }
        }
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

#[test]
fn nothing_is_allocated_per_sample() {
    let domain = 1 + std::process::id().wrapping_mul(31) % 230;
    let participant = || DomainParticipant::builder(domain).loopback_only().create().unwrap();
    let (here, there) = (participant(), participant());
    let name = format!("allocations {}", std::process::id());
    let reliability = Reliability::Reliable { max_blocking_time: PATIENCE };
    let writer_qos = WriterQos { reliability, history: History::KeepAll, ..WriterQos::default() };
    let reader_qos = ReaderQos { reliability, history: History::KeepAll, ..ReaderQos::default() };
    let writer = here.create_writer(&here.create_topic::<Reading>(&name), writer_qos).unwrap();
    let reader = there.create_reader(&there.create_topic::<Reading>(&name), reader_qos).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    // A listener that does nothing goes the way of every listener.
    reader.on_data(Delivery::Inline, |_| {}).unwrap();
    for (bytes, ahead) in [(64, 1), (64, 50), (1000, 20), (20_000, 5), (400_000, 2)] {
        let sample = Reading { sensor: 7, values: vec![3; bytes] };
        // Pools and lists grow to what this shape needs at worst, which depends on when acknowledgements come.
        let round = || {
            let before = allocations::of_all_threads();
            exchange(&writer, &reader, &sample, 2000, ahead);
            allocations::of_all_threads() - before
        };
        let mut rounds: Vec<u64> = Vec::new();
        // Announcements every few seconds and this test's own list may allocate a little.
        while rounds.len() < ROUNDS && rounds.last().is_none_or(|count| *count > 50) {
            rounds.push(round());
        }
        assert!(
            rounds.last().is_some_and(|count| *count <= 50),
            "{rounds:?} allocations for 2000 samples of {bytes} bytes each, {ahead} ahead"
        );
    }
}
