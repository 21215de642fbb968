//! Instances: one topic, many sensors told apart by their key, each with a life of its own.

use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::{DomainParticipant, Error, InstanceState, Topic};

#[derive(Topic, Debug)]
struct Temperature {
    #[topic(key)]
    sensor: String,
    celsius: f64,
}

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<Temperature>("temperatures");
    // The newest two values of each sensor wait for the reader, however many sensors there are.
    let qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepLast(2), ..ReaderQos::default() };
    let reader = participant.create_reader(&topic, qos)?;
    let writer_qos = WriterQos { history: History::KeepLast(8), ..WriterQos::default() };
    let writer = participant.create_writer(&topic, writer_qos)?;
    writer.wait_for_matched(1, Duration::from_secs(5))?;

    for (step, celsius) in [18.5, 19.0, 19.5].into_iter().enumerate() {
        writer.write(&Temperature { sensor: "kitchen".into(), celsius })?;
        writer.write(&Temperature { sensor: "cellar".into(), celsius: celsius - 8.0 - step as f64 })?;
    }
    // The cellar's sensor is taken down: only the key of the value counts.
    writer.dispose(&Temperature { sensor: "cellar".into(), celsius: 0.0 })?;
    writer.wait_for_acknowledgments(Duration::from_secs(5))?;

    for sample in reader.take(100) {
        match sample.info().instance_state {
            _ if sample.is_valid() => println!("{:?}", sample.data()?),
            InstanceState::NotAliveDisposed => println!("{} is gone", sample.key()?.sensor),
            state => println!("{}: {state:?}", sample.key()?.sensor),
        }
    }
    Ok(())
}
