//! A large sample: 20 MB travel in fragments, are repaired where the network loses some, and arrive as one.

use std::time::{Duration, Instant};

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

#[derive(Topic)]
struct PointCloud {
    points: Vec<f32>,
}

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    let topic = participant.create_topic::<PointCloud>("point cloud");
    let qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepLast(1), ..ReaderQos::default() };
    let reader = participant.create_reader(&topic, qos)?;
    let writer = participant.create_writer(&topic, WriterQos::default())?;
    writer.wait_for_matched(1, Duration::from_secs(5))?;

    let cloud = PointCloud { points: vec![0.5; 5_000_000] };
    let start = Instant::now();
    writer.write(&cloud)?;
    if reader.wait(Duration::from_secs(10))
        && let Some(sample) = reader.take_one()
    {
        // The bytes are here; they are decoded only when the program asks for the value.
        let (bytes, took) = (sample.bytes().len(), start.elapsed());
        println!("{bytes} bytes in {took:.1?}, {} points", sample.data()?.points.len());
    }
    Ok(())
}
