//! Large samples to readers of other vendors, at a steady rate or as fast as it goes.

use std::process::Command;
use std::time::{Duration, Instant};

use ::thalweg::qos::{History, Reliability, WriterQos};
use serde_json::{Value, json};
use thalweg_host::{HostFiles, Task};

use super::{Burst, program};
use crate::program::{PATIENCE, Program};
use crate::{bursts, thalweg};

/// How long after the last sample, or after the one that came last, another may come.
const SILENCE: Duration = Duration::from_secs(5);

/// Repairs of what was not lost that a busy machine may cause.
const REPAIRS_FREE: u64 = 20;
/// How often a best-effort stream is tried, since a machine that is busy with others can spoil one.
const ATTEMPTS: usize = 3;

/// What is written.
struct Stream {
    reliability: Reliability,
    history: History,
    bytes: usize,
    samples: u64,
    rate_hz: u32,
}

/// What became of it.
#[derive(Debug)]
struct Delivery {
    came: Vec<u64>,
    /// Samples sent again, or fragments of them.
    repaired: u64,
    /// Datagrams that found no room at the reader.
    dropped: u64,
    /// Samples of which only a part was sent.
    abandoned: u64,
    /// Samples that newer ones replaced before the reader acknowledged them.
    overwritten: u64,
    /// The reader acknowledged all in the end; always where nobody acknowledges.
    acknowledged: bool,
}

impl Stream {
    /// Writes to a reader of the vendor, which keeps all.
    #[track_caller]
    fn to(&self, name: &str, variable: &str) -> Delivery {
        let domain = thalweg::domain();
        let mut command = Command::new(program(variable));
        command.args(["listen", "--domain", &domain.to_string()]);
        let mut peer = Program::start_with_input(name, &command);
        peer.expect_text("\"ready\":true");
        let best_effort = self.reliability == Reliability::BestEffort;
        peer.tell(&json!({ "reader": "large", "best_effort": best_effort }).to_string());
        peer.expect_text("\"reader\"");
        let participant = bursts::participant(domain);
        let qos = WriterQos { reliability: self.reliability, history: self.history, ..WriterQos::default() };
        let writer = participant.create_writer(&participant.create_topic::<Burst>("large"), qos).expect("writer");
        writer.wait_for_matched(1, PATIENCE).expect("the reader appears");
        // The reader matches as well.
        std::thread::sleep(Duration::from_millis(500));
        let mut sample = Burst { number: 0, bytes: vec![7; self.bytes] };
        let before = dropped(peer.id());
        let start = Instant::now();
        for number in 0..self.samples {
            let due = start + Duration::from_secs(number) / self.rate_hz;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            sample.number = number;
            writer.write(&sample).expect("room in time");
        }
        let acknowledged = best_effort || writer.wait_for_acknowledgments(PATIENCE).is_ok();
        let mut came = Vec::new();
        while came.last() != Some(&(self.samples - 1))
            && let Some(line) = peer.next_line(SILENCE)
        {
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            came.extend(told["number"].as_u64());
            assert!(told["number"].is_null() || told["bytes"] == self.bytes, "{line}");
        }
        let dropped = dropped(peer.id()) - before;
        let counters = writer.counters();
        let delivery = Delivery {
            came,
            repaired: counters.repaired,
            dropped,
            abandoned: counters.abandoned,
            overwritten: counters.overwritten_unacknowledged,
            acknowledged,
        };
        let Stream { history, bytes, samples, rate_hz, .. } = self;
        println!("{name}, {bytes} B at {rate_hz} Hz, {history:?}: {} of {samples} came", delivery.came.len());
        println!("{delivery:?}");
        delivery
    }
}

/// Datagrams that the sockets of this process had no room for.
fn dropped(process: u32) -> u64 {
    HostFiles::here().socket_drops(Task::Process(process))
}

/// A reliable stream of six-megabyte samples, of which Fast DDS gets each that nothing newer has replaced.
#[track_caller]
fn check_reliable(depth: u32, rate_hz: u32) -> Delivery {
    let samples = 2 * u64::from(rate_hz);
    let stream = Stream {
        reliability: Reliability::RELIABLE,
        history: History::KeepLast(depth),
        bytes: 6_000_000,
        samples,
        rate_hz,
    };
    let delivery = stream.to("Fast DDS", "THALWEG_FASTDDS");
    assert!(delivery.acknowledged, "{delivery:?}");
    assert!(delivery.came.is_sorted_by(|one, next| one < next), "{delivery:?}");
    assert_eq!(delivery.came.last(), Some(&(samples - 1)), "{delivery:?}");
    assert_eq!(delivery.abandoned, 0, "what was begun is finished: {delivery:?}");
    assert!(delivery.came.len() as u64 + delivery.overwritten >= samples, "{delivery:?}");
    assert!(delivery.repaired * 10 <= delivery.dropped * 13 + 10 * REPAIRS_FREE, "{delivery:?}");
    delivery
}

/// A burst of samples that need two datagrams each, of which the reader's socket holds little: few are lost. A reader that is asked
/// while its socket is full asks again for what lies there, so that repairs say more of its processor than of the writer.
#[track_caller]
fn check_burst(name: &str, variable: &str) {
    let (history, samples) = (History::KeepAll, 200);
    let reliability = Reliability::Reliable { max_blocking_time: PATIENCE };
    let delivery = Stream { reliability, history, bytes: 100_000, samples, rate_hz: 100_000 }.to(name, variable);
    assert!(delivery.acknowledged && delivery.came.iter().copied().eq(0..samples), "{delivery:?}");
    assert!(delivery.dropped <= samples / 2 && delivery.repaired <= samples, "{delivery:?}");
}

/// A best-effort stream, of which at least half arrives.
#[track_caller]
fn check_best_effort(name: &str, variable: &str, bytes: usize, rate_hz: u32) {
    let samples = 3 * u64::from(rate_hz);
    let stream =
        Stream { reliability: Reliability::BestEffort, history: History::KeepLast(1), bytes, samples, rate_hz };
    let came = (0..ATTEMPTS).map(|_| stream.to(name, variable).came.len() as u64);
    let few: Vec<u64> = came.take_while(|came| 2 * came < samples).collect();
    assert!(few.len() < ATTEMPTS, "{name}: of {samples} samples of {bytes} B came {few:?}");
}

#[test]
fn fast_dds_gets_large_samples_of_which_the_writer_keeps_one() {
    let delivery = check_reliable(1, 10);
    assert!(delivery.came.len() >= 10, "half of them: {delivery:?}");
}

#[test]
fn fast_dds_gets_large_samples_that_replace_each_other_on_their_way() {
    check_reliable(1, 30);
}

#[test]
fn fast_dds_gets_large_samples_of_which_the_writer_keeps_five() {
    check_reliable(5, 30);
}

#[test]
fn a_burst_of_large_samples_does_not_overrun_fast_dds() {
    check_burst("Fast DDS", "THALWEG_FASTDDS");
}

#[test]
fn a_burst_of_large_samples_does_not_overrun_cyclone() {
    check_burst("Cyclone DDS", "THALWEG_CYCLONE");
}

#[test]
fn fast_dds_gets_large_best_effort_samples() {
    check_best_effort("Fast DDS", "THALWEG_FASTDDS", 1_000_000, 10);
}

#[test]
fn cyclone_gets_large_best_effort_samples() {
    check_best_effort("Cyclone DDS", "THALWEG_CYCLONE", 6_000_000, 30);
}
