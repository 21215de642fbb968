//! Why two endpoints do not match: both sides are told the policy, both values and the rule.

use std::time::Duration;

use thalweg::qos::{Durability, ReaderQos, Reliability, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic)]
struct Position {
    metres: f64,
}

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<Position>("position");
    let offered = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    let writer = participant.create_writer(&topic, offered)?;
    let requested = ReaderQos {
        reliability: Reliability::RELIABLE,
        durability: Durability::TransientLocal,
        ..ReaderQos::default()
    };
    let reader = participant.create_reader(&topic, requested)?;
    if let Err(error) = writer.wait_for_matched(1, Duration::from_millis(500)) {
        println!("{error}");
    }
    for mismatch in &writer.offered_incompatible_qos().mismatches {
        println!("writer: {mismatch}");
    }
    for mismatch in &reader.requested_incompatible_qos().mismatches {
        println!("reader: {mismatch}");
    }
    // A policy that would be announced but not kept is refused when the endpoint is created.
    let impossible = WriterQos { durability: Durability::Persistent, ..WriterQos::default() };
    if let Err(error) = participant.create_writer(&topic, impossible) {
        println!("{error}");
    }
    Ok(())
}
