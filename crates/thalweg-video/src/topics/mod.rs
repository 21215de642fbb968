//! The same pictures as DDS topics: what RTP does for one stream between two addresses, with discovery, QoS and late joining.
//!
//! A [`VideoPublisher`] writes frames, whole ([`VideoFrame`]) or in slices of lines ([`VideoSlice`]).
//!
//! # The wire
//!
//! All members are aligned as they stand: XCDR1 and XCDR2 give the same bytes.
//!
//! ```idl
//! module thalweg { module video {
//!   @final struct FormatWords {
//!     uint32 rate_numerator; uint32 rate_denominator;   // frames a second
//!     uint16 width; uint16 height;                      // of the frame, both fields together
//!     octet pixels;                                     // 1 YCbCr 4:2:2 of 10 bits, 2 of 8 bits, 3 RGB of 8 bits, packed as RFC 4175 §4.3
//!     octet scan;                                       // 0 progressive, 1 interlaced, 2 segmented frame
//!   };
//!   @final struct VideoFrame {
//!     @key uint32 stream;
//!     uint32 source;          // drawn by each publisher when it starts
//!     uint64 frame;           // counts frames of the source
//!     uint64 captured;        // nanoseconds since 1970 of the sender's clock
//!     uint32 timestamp;       // 90 kHz
//!     uint32 crc32c;          // of the octets, where bit 0 of flags is set
//!     FormatWords format;
//!     octet field;            // 0: lines of both fields in turn
//!     octet flags;
//!     sequence<octet> octets; // lines from top to bottom
//!   };
//!   @final struct VideoSlice {
//!     @key uint32 stream;
//!     uint32 source;
//!     uint64 frame;
//!     uint64 number;          // counts slices of the source
//!     uint64 captured;
//!     uint32 timestamp;       // of the frame, the same for both fields
//!     uint32 crc32c;
//!     FormatWords format;
//!     octet field;            // 0 progressive, 1 first field, 2 second field
//!     octet flags;            // bit 0: crc32c is set; bit 1: the last slice of its field
//!     uint16 first_line;      // counted in the field
//!     uint16 lines;
//!     sequence<octet> octets;
//!   };
//! }; };
//! ```

mod deadline;
mod description;
mod error;
mod format_words;
mod publisher;
mod qos;
mod statistics;
mod types;
mod wire;

#[cfg(test)]
mod tests;

pub use description::{list_streams, wait_for_stream};
pub use error::TopicError;
pub use format_words::FormatWords;
pub use publisher::{FrameLoan, FrameTime, PublisherConfig, PublisherCounters, VideoPublisher};
pub use qos::{Checksum, Reliability, SampleUnit, Spread};
pub use statistics::{FrameStatistics, SampleStatistics, StatisticsRole, VideoStreamStatistics};
pub use types::{VideoFrame, VideoSlice, VideoStreamDescription};

/// The fewest lines of a slice: below, the heads of samples cost more than the latency is worth.
pub const SLICE_LINES_MIN: u16 = 8;
/// The most lines of a slice: beyond, a frame is hardly later.
pub const SLICE_LINES_MAX: u16 = 60;
