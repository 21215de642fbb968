//! Bursts across a link, and beside a reader that hangs.

use std::time::{Duration, Instant};

use ::thalweg::qos::{History, Reliability, ResourceLimits, Transmission, WriterQos};
use ::thalweg::{DataWriter, DomainParticipant};

use crate::bursts::Bytes;
use crate::host::{Addresses, Host};
use crate::program::Program;
use crate::thalweg;

/// Samples of the sizes that share datagrams and of one that does not.
fn files() -> Vec<String> {
    let sizes = [40, 700, 100, 3_000, 250, 1_400, 60, 20_000];
    (0..).zip(sizes).map(|(first, size)| format!("@{}", thalweg::octets_file(first, size).display())).collect()
}

/// Two thousand samples of mixed sizes arrive in their order.
#[track_caller]
fn check_burst(left: &Host, right: &Host, method: &str) {
    let subscriber = thalweg::start(Some(right), 0, "sub burst --type bytes --json --count 2000 --timeout 30");
    let words = format!("pub burst --type bytes --rate 0 --count 2000 --method {method} {}", files().join(" "));
    let publisher = thalweg::start(Some(left), 0, &words);
    let samples = thalweg::samples(&subscriber.finish().well());
    assert_eq!(samples.len(), 2_000, "{method}");
    let sizes = [40, 700, 100, 3_000, 250, 1_400, 60, 20_000];
    for (index, (value, _)) in samples.iter().enumerate() {
        let first = index % sizes.len();
        let digits = value["data"].as_str().unwrap_or_default();
        let right = digits.len() == 2 + 2 * sizes[first] && digits.starts_with(&format!("0x{first:02x}"));
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

const MAX_BLOCKING_TIME: Duration = Duration::from_secs(5);

impl Eight {
    #[track_caller]
    fn start() -> Eight {
        let domain = thalweg::domain();
        let words = "sub burst --type bytes --qos max_samples=2000";
        let readers: Vec<Program> = (0..8).map(|_| thalweg::start(None, domain, words)).collect();
        let participant = crate::bursts::participant(domain);
        let qos = WriterQos {
            reliability: Reliability::Reliable { max_blocking_time: MAX_BLOCKING_TIME },
            history: History::KeepAll,
            resource_limits: ResourceLimits { max_samples: Some(8_192), ..ResourceLimits::default() },
            transmission: Transmission::default(),
            ..WriterQos::default()
        };
        let writer = participant.create_writer(&participant.create_topic::<Bytes>("burst"), qos).expect("writer");
        writer.wait_for_matched(8, Duration::from_secs(20)).expect("eight readers");
        Eight { writer, readers, _participant: participant }
    }

    /// Writes for so long, the samples marked by the first octet; returns samples a second and the longest write.
    #[track_caller]
    fn stream(&self, span: Duration) -> (f64, Duration) {
        let (start, mut longest, mut written) = (Instant::now(), Duration::ZERO, 0_u32);
        let sample = Bytes { data: vec![1; 64] };
        while start.elapsed() < span {
            let begun = Instant::now();
            self.writer.write(&sample).expect("no write waits longer than max_blocking_time");
            longest = longest.max(begun.elapsed());
            written += 1;
        }
        (f64::from(written) / start.elapsed().as_secs_f64(), longest)
    }
}

#[test]
fn a_stopped_reader_of_eight_costs_the_others_little() {
    let eight = Eight::start();
    eight.stream(Duration::from_secs(1));
    let (mut healthy, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        healthy.push(eight.stream(SPAN).0);
        eight.readers[3].suspend();
        let (rate, longest) = eight.stream(SPAN);
        eight.readers[3].resume();
        assert!(longest <= MAX_BLOCKING_TIME, "a write waited {longest:?}");
        beside.push(rate);
        println!("{:?} {rate} {longest:?} {:?}", healthy.last(), eight.writer.counters());
        eight.writer.wait_for_acknowledgments(Duration::from_secs(20)).expect("all are served again");
    }
    healthy.sort_by(f64::total_cmp);
    beside.sort_by(f64::total_cmp);
    assert!(beside[1] >= 0.9 * healthy[1], "samples a second: {healthy:.0?}, beside a stopped reader {beside:.0?}");
}

/// How long a rate is measured.
const SPAN: Duration = Duration::from_secs(10);
