//! Two programs: `hello_two_processes publish` in one terminal, `hello_two_processes subscribe` in another one, on this host
//! or on two hosts of one network.

use std::time::Duration;

use thalweg::qos::{Durability, History, ReaderQos, Reliability, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic, Debug)]
struct Pose {
    x: f64,
    y: f64,
}

const SAMPLES: u32 = 10;

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(),
        Some("subscribe") => subscribe(),
        _ => {
            println!("usage: hello_two_processes publish|subscribe");
            Ok(())
        }
    }
}

fn publish() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0).name("hello publisher").create()?;
    let topic = participant.create_topic::<Pose>("pose");
    // TRANSIENT_LOCAL: it does not matter which program starts first.
    let qos = WriterQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(SAMPLES),
        ..WriterQos::default()
    };
    let writer = participant.create_writer(&topic, qos)?;
    for step in 0..SAMPLES {
        let angle = f64::from(step) / f64::from(SAMPLES) * std::f64::consts::TAU;
        writer.write(&Pose { x: angle.cos(), y: angle.sin() })?;
    }
    writer.wait_for_matched(1, Duration::from_secs(60))?;
    writer.wait_for_acknowledgments(Duration::from_secs(10))
}

fn subscribe() -> Result<(), Error> {
    let participant = DomainParticipant::builder(0).name("hello subscriber").create()?;
    let topic = participant.create_topic::<Pose>("pose");
    let qos = ReaderQos {
        durability: Durability::TransientLocal,
        reliability: Reliability::RELIABLE,
        history: History::KeepLast(SAMPLES),
        ..ReaderQos::default()
    };
    let reader = participant.create_reader(&topic, qos)?;
    let mut received = 0;
    while received < SAMPLES && reader.wait(Duration::from_secs(60)) {
        for sample in reader.take(100).iter().filter(|sample| sample.is_valid()) {
            println!("{:?} from {}", sample.data()?, sample.info().writer);
            received += 1;
        }
    }
    Ok(())
}
