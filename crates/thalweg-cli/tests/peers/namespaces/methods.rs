//! Bursts across a link, and beside a reader that hangs.

use std::process::Command;
use std::time::{Duration, Instant};

use ::thalweg::qos::{History, Reliability, WriterQos};
use ::thalweg::{DataWriter, DomainParticipant};

use crate::bursts::{self, Bytes};
use crate::host::{Addresses, Host};
use crate::program::{PATIENCE, Program};
use crate::thalweg;

/// Sizes of which some fit a frame together, and one none.
const SIZES: [usize; 8] = [40, 700, 100, 3_000, 250, 1_400, 60, 20_000];

fn files() -> Vec<String> {
    (0..).zip(SIZES).map(|(first, size)| format!("@{}", thalweg::octets_file(first, size).display())).collect()
}

/// Two thousand samples of mixed sizes arrive in their order.
#[track_caller]
fn check_burst(left: &Host, right: &Host, method: &str) {
    let subscriber = thalweg::start(Some(right), 0, "sub burst --type bytes --json --count 2000 --timeout 80");
    let words = format!("pub burst --type bytes --rate 0 --count 2000 --method {method} {}", files().join(" "));
    let publisher = thalweg::start(Some(left), 0, &words);
    let samples = thalweg::samples(&subscriber.finish().well());
    assert_eq!(samples.len(), 2_000, "{method}");
    for (index, (value, _)) in samples.iter().enumerate() {
        let first = index % SIZES.len();
        let digits = value["data"].as_str().unwrap_or_default();
        let right = digits.len() == 2 + 2 * SIZES[first] && digits.starts_with(&format!("0x{first:02x}"));
        assert!(right, "{method}: sample {index} has {} digits", digits.len());
    }
    publisher.finish().well();
}

#[test]
fn bursts_cross_an_ordinary_link() {
    for method in ["batch", "auto"] {
        let (left, right) = Host::pair(1500, Addresses::Both);
        check_burst(&left, &right, method);
    }
}

#[test]
fn bursts_cross_a_link_that_loses_packets() {
    for method in ["batch", "auto"] {
        let (left, right) = Host::pair(1500, Addresses::Both);
        left.send_one_by_one("eth0");
        for host in [&left, &right] {
            host.drop_incoming("meta l4proto udp numgen random mod 100 < 2");
        }
        check_burst(&left, &right, method);
    }
}

/// A writer that has eight readers, each a process of its own.
struct Eight {
    writer: DataWriter<Bytes>,
    readers: Vec<Program>,
    _participant: DomainParticipant,
}

impl Eight {
    #[track_caller]
    fn start() -> Eight {
        let domain = thalweg::domain();
        // The samples are counted by their acknowledgements; a million lines need not be kept.
        let words = format!("exec {} sub burst --type bytes --qos max_samples=2000", env!("CARGO_BIN_EXE_thalweg"));
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{words} --domain {domain} > /dev/null")]);
        let readers: Vec<Program> = (0..8).map(|_| Program::start("Thalweg", &command)).collect();
        let participant = bursts::participant(domain);
        let qos = WriterQos {
            reliability: Reliability::Reliable { max_blocking_time: MAX_BLOCKING_TIME },
            history: History::KeepAll,
            reader_patience: READER_PATIENCE,
            ..WriterQos::default()
        };
        let writer = participant.create_writer(&participant.create_topic::<Bytes>("burst"), qos).expect("writer");
        writer.wait_for_matched(8, PATIENCE).expect("eight readers");
        Eight { writer, readers, _participant: participant }
    }

    /// Writes for so long and until all is acknowledged; returns samples a second.
    #[track_caller]
    fn stream(&self, span: Duration) -> f64 {
        let (start, mut written) = (Instant::now(), 0_u32);
        let sample = Bytes { data: vec![1; 64] };
        while start.elapsed() < span {
            let begun = Instant::now();
            match self.writer.write(&sample) {
                Ok(_) => written += 1,
                Err(error) => assert!(error.is_timeout(), "{error}"),
            }
            let took = begun.elapsed();
            assert!(took < MAX_BLOCKING_TIME + LOADED_MACHINE, "a write waited {took:?}");
        }
        let acknowledged = self.writer.wait_for_acknowledgments(PATIENCE);
        acknowledged
            .or_else(|error| if error.is_timeout() { Err(error) } else { Ok(()) })
            .expect("acknowledged or given up");
        f64::from(written) / start.elapsed().as_secs_f64()
    }

    fn given_up(&self) -> u64 {
        self.writer.counters().readers_given_up
    }
}

#[test]
fn a_stopped_reader_of_eight_costs_the_others_little() {
    let eight = Eight::start();
    let mut rates = Vec::new();
    for _ in 0..3 {
        // All eight take part.
        eight.stream(Duration::from_secs(1));
        let healthy = eight.stream(SPAN);
        let before = eight.given_up();
        eight.readers[3].suspend();
        let beside = eight.stream(SPAN);
        eight.readers[3].resume();
        assert!(eight.given_up() > before, "the stopped reader is given up");
        rates.push((beside / healthy, beside, healthy));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    // Loose, because other programs run beside this one; the simulator checks the tenth that it may cost.
    assert!(rates[1].0 >= 0.7, "share, and samples a second with and without a stopped reader: {rates:.2?}");
}

/// How long a rate is measured.
const SPAN: Duration = Duration::from_secs(4);
/// When a reader that has stopped is given up.
const READER_PATIENCE: Duration = Duration::from_secs(1);
/// Less than what it takes to give a reader up: a write has to come back with an error before.
const MAX_BLOCKING_TIME: Duration = Duration::from_millis(300);
/// How much later than at its time a thread may go on.
const LOADED_MACHINE: Duration = Duration::from_secs(2);
