//! Large payloads as many small samples: split by the sender, joined by the receiver, above the middleware.
//!
//! A sample of many megabytes travels in fragments anyway. Splitting it above DDS makes each part a sample of its own: it is
//! acknowledged, repaired, paced and scheduled by itself, and the receiver sees progress. `docs/flow-control.md` says when which
//! is better.
//!
//! ```no_run
//! use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
//! use thalweg::segment::{Segment, SegmentReader, SegmentWriter};
//! use std::time::Duration;
//! # fn main() -> Result<(), thalweg::Error> {
//! # let participant = thalweg::DomainParticipant::new(0)?;
//! let topic = participant.create_topic::<Segment>("recordings");
//! let keep_all = History::KeepAll;
//! let reader_qos = ReaderQos { reliability: Reliability::RELIABLE, history: keep_all, ..ReaderQos::default() };
//! let mut reader = SegmentReader::new(participant.create_reader(&topic, reader_qos)?);
//! let writer = participant.create_writer(&topic, WriterQos { history: keep_all, ..WriterQos::default() })?;
//! let writer = SegmentWriter::new(writer, 256 * 1024)?;
//! writer.write(&vec![7; 5_000_000])?;
//! if let Some(transfer) = reader.wait(Duration::from_secs(1)) {
//!     println!("{} bytes from {:?}", transfer.bytes.len(), transfer.source);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The wire
//!
//! Segments are samples of an ordinary topic, so that every DDS implementation can split and join them:
//!
//! ```idl
//! @final struct Segment {        // KeyedSegment: the same, with @key on source
//!   octet source[16];            // the sender: unique among all senders of the topic; Thalweg uses its writer's GUID
//!   uint64 transfer;             // numbers the payloads of a source; Thalweg counts from 1
//!   uint32 index;                // which segment, from 0
//!   uint32 count;                // how many segments the payload has, at least 1
//!   uint64 total_bytes;          // size of the whole payload
//!   sequence<octet> bytes;       // this segment's part
//! };
//! ```
//!
//! All members are aligned as they stand, so that XCDR1 and XCDR2 give the same bytes. The writer of a source writes the segments
//! of a transfer in the order of their index and finishes a transfer before it begins the next one. Segments may differ in size;
//! together they have `total_bytes`, and a payload of no bytes is one segment of no bytes.

mod join;
mod reader;
#[cfg(test)]
mod tests;
mod wire;
mod writer;

pub use join::{SegmentCounters, SegmentLimits, Transfer};
pub use reader::SegmentReader;
pub use wire::{KeyedSegment, Segment, SegmentType};
pub use writer::SegmentWriter;
