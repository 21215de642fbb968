//! PERSISTENT: what was written is still there when the program is started again with the same store. Prints how fast it is stored.
//!
//! `cargo run --release --example persistent_history -- [store [samples [bytes [kept]]]]`; by default 2,000,000 samples of 256 bytes,
//! of which the newest 100,000 are kept.

use std::time::{Duration, Instant};

use thalweg::qos::{Durability, DurabilityService, History, Method, Reliability, Transmission, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic, Debug)]
#[topic(extensibility = "final")]
struct Measurement {
    number: u64,
    values: Vec<u8>,
}

/// Bytes of a sample beside its values: encapsulation header, number and length.
const AROUND_BYTES: usize = 16;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "measurements.store".into());
    let samples: u64 = arguments.next().map_or(2_000_000, |count| count.parse().expect("a number of samples"));
    let bytes: usize = arguments.next().map_or(256, |bytes| bytes.parse().expect("bytes of a sample"));
    let kept: u32 = arguments.next().map_or(100_000, |kept| kept.parse().expect("how many samples are kept"));
    let participant = DomainParticipant::builder(0).loopback_only().store(&path).create()?;
    let topic = participant.create_topic::<Measurement>("measurements");
    let qos = WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: Duration::from_secs(10) },
        durability: Durability::Persistent,
        history: History::KeepAll,
        durability_service: DurabilityService { history: History::KeepLast(kept), ..DurabilityService::default() },
        transmission: Transmission::by(Method::batch()),
        ..WriterQos::default()
    };
    let writer = participant.create_writer(&topic, qos)?;
    println!("{path} holds {} samples", writer.held());
    let values = vec![7; bytes.saturating_sub(AROUND_BYTES)];
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    for number in 0..samples {
        let sample = Measurement { number, values: values.clone() };
        let before = Instant::now();
        writer.write(&sample)?;
        longest = longest.max(before.elapsed());
    }
    let written = start.elapsed();
    writer.wait_for_acknowledgments(Duration::from_secs(60))?;
    let stored = start.elapsed();
    let rate = |time: Duration| samples as f64 / time.as_secs_f64();
    println!(
        "{samples} samples of {bytes} bytes: written at {:.0}/s, stored at {:.0}/s, longest write {:.1} ms",
        rate(written),
        rate(stored),
        longest.as_secs_f64() * 1e3
    );
    Ok(())
}
