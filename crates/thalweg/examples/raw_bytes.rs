//! Raw endpoints: samples that the program serializes itself, as recorders and bridges need it.

use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DomainParticipant, Error};

fn main() -> Result<(), Error> {
    let participant = DomainParticipant::new(0)?;
    // The name of the type is all that others see of it; here IDL's `struct Note { octet level; octet code; };`.
    let topic = participant.create_raw_topic("notes", "Note", Keyed::No, None);
    let qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    let reader = participant.create_reader(&topic, qos)?;
    let writer = participant.create_writer(&topic, WriterQos::default())?;
    writer.wait_for_matched(1, Duration::from_secs(5))?;

    // Four bytes of encapsulation header (little-endian CDR), then the two octets.
    writer.write_serialized(&[0x00, 0x01, 0x00, 0x00, 3, 42])?;
    if reader.wait(Duration::from_secs(5)) {
        for sample in reader.take(10) {
            println!("{} bytes from {}: {:02x?}", sample.bytes().len(), sample.info().writer, sample.bytes());
            // What was received can be written again without a copy, here with its own source time.
            writer.write_payload(sample.payload(), None, sample.info().source_timestamp)?;
        }
    }
    writer.wait_for_acknowledgments(Duration::from_secs(5))
}
