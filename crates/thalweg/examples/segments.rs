//! Segments: 5 MB as one sample, and split by the application into samples of several sizes.

use std::time::{Duration, Instant};

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::segment::{Segment, SegmentReader, SegmentWriter};
use thalweg::{DomainParticipant, Error};

const BYTES: usize = 5_000_000;

fn main() -> Result<(), Error> {
    let (here, there) = (DomainParticipant::new(0)?, DomainParticipant::new(0)?);
    let reader_qos =
        ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    let writer_qos = WriterQos { history: History::KeepAll, ..WriterQos::default() };
    let recording: Vec<u8> = (0..BYTES).map(|index| index as u8).collect();

    for segment_bytes in [BYTES, 1 << 20, 512 << 10, 256 << 10, 32 << 10, 1 << 10] {
        let name = format!("recording in segments of {segment_bytes}");
        let reader = there.create_reader(&there.create_topic::<Segment>(&name), reader_qos.clone())?;
        let mut reader = SegmentReader::new(reader);
        let writer = here.create_writer(&here.create_topic::<Segment>(&name), writer_qos.clone())?;
        let writer = SegmentWriter::new(writer, segment_bytes)?;
        writer.writer().wait_for_matched(1, Duration::from_secs(5))?;

        let receiving = std::thread::spawn(move || reader.wait(Duration::from_secs(10)));
        let start = Instant::now();
        let number = writer.write(&recording)?;
        let transfer = receiving.join().expect("the receiving thread does not panic");
        let took = start.elapsed();
        let whole = transfer.is_some_and(|transfer| transfer.number == number && transfer.bytes == recording);
        println!("{segment_bytes:9} B a segment: {took:7.2?}, {}", if whole { "whole" } else { "lost" });
    }
    Ok(())
}
