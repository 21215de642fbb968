//! Durability: a reader that comes late still gets what was written before, as long as the writer lives.

use std::time::Duration;

use thalweg::qos::{Durability, History, ReaderQos, Reliability, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic, Debug)]
struct Setting {
    #[topic(key)]
    name: String,
    value: i64,
}

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<Setting>("settings");
    // TRANSIENT_LOCAL with KEEP_LAST 1: the writer keeps the newest value of each setting for whoever comes.
    let qos =
        WriterQos { durability: Durability::TransientLocal, history: History::KeepLast(1), ..WriterQos::default() };
    let writer = participant.create_writer(&topic, qos)?;
    for value in 1..=3 {
        writer.write(&Setting { name: "gain".into(), value })?;
    }
    writer.write(&Setting { name: "rate".into(), value: 50 })?;

    let qos = ReaderQos {
        durability: Durability::TransientLocal,
        reliability: Reliability::RELIABLE,
        history: History::KeepLast(1),
        ..ReaderQos::default()
    };
    let late = participant.create_reader(&topic, qos)?;
    let mut known = 0;
    while known < 2 && late.wait(Duration::from_secs(5)) {
        for sample in late.take(10) {
            println!("the late reader learns {:?}", sample.data()?);
            known += 1;
        }
    }
    Ok(())
}
