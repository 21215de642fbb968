//! Samples of 40 B from one participant to another in lockstep, each with all policies at their defaults: the program whose instructions
//! `cargo xtask count instructions` compares between two states of the repository.

use std::time::Duration;

use thalweg::qos::{History, Limits, Method, ReaderQos, Reliability, Transmission, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic, Default)]
struct Small {
    number: u64,
    data: [u8; 32],
}

/// Apart from the domains of anything else on the machine.
const DOMAIN: u32 = 218;
/// Samples that share a datagram where the method collects.
const TOGETHER: u64 = 64;
/// Callgrind makes everything fifty times slower.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let count = arguments.get(1).and_then(|count| count.parse::<u64>().ok());
    let limits =
        Limits { max_samples: TOGETHER as usize, max_flush_delay: Duration::from_secs(10), ..Limits::default() };
    let (method, together) = match arguments.first().map(String::as_str) {
        Some("immediate") => (Method::Immediate, 1),
        Some("coalesce") => (Method::Coalesce(limits), TOGETHER),
        Some("batch") => (Method::Batch(limits), TOGETHER),
        _ => (Method::Auto, 0),
    };
    let (Some(count), 1..) = (count, together) else {
        println!("usage: lockstep immediate|coalesce|batch <N>");
        return Ok(());
    };
    let writing = DomainParticipant::builder(DOMAIN).loopback_only().create()?;
    let reading = DomainParticipant::builder(DOMAIN).loopback_only().create()?;
    let history = History::KeepLast(1_000);
    let reader = reading.create_reader(
        &reading.create_topic::<Small>("lockstep"),
        ReaderQos { reliability: Reliability::RELIABLE, history, ..ReaderQos::default() },
    )?;
    let transmission = Transmission { method, ..Transmission::default() };
    let writer = writing.create_writer(
        &writing.create_topic::<Small>("lockstep"),
        WriterQos { history, transmission, ..WriterQos::default() },
    )?;
    writer.wait_for_matched(1, PATIENCE)?;
    let mut small = Small { number: 0, data: [7; 32] };
    let mut received = 0;
    while received < count {
        for _ in 0..together {
            writer.write(&small)?;
            small.number += 1;
        }
        while received < small.number {
            assert!(reader.wait(PATIENCE), "sample {received} of {} does not come", small.number);
            for sample in reader.take(TOGETHER as usize).iter().filter(|sample| sample.is_valid()) {
                assert_eq!(sample.data()?.number, received);
                received += 1;
            }
        }
    }
    Ok(())
}
