//! The same pictures as DDS topics: what RTP does for one stream between two addresses, with discovery, QoS and late joining.
//!
//! A [`VideoPublisher`] writes frames, whole ([`VideoFrame`]) or in slices of lines ([`VideoSlice`]), and a
//! [`VideoSubscriber`] takes them. A stream has a number. Its description ([`VideoStreamDescription`]) is kept for late
//! joiners, so that a subscriber knows the format, or refuses another one, before the first picture.
//!
//! # Topics
//!
//! | topic | type | QoS of the writer |
//! |---|---|---|
//! | `video/frames` | [`VideoFrame`] | BEST_EFFORT or RELIABLE, KEEP_LAST 3, LATENCY_BUDGET a frame time |
//! | `video/slices` | [`VideoSlice`] | the same, KEEP_LAST three frames of slices |
//! | `video/descriptions` | [`VideoStreamDescription`] | RELIABLE, TRANSIENT_LOCAL, KEEP_LAST 1 |
//! | `video/statistics` | [`VideoStreamStatistics`] | RELIABLE, TRANSIENT_LOCAL, KEEP_LAST 1 |
//!
//! Frames and slices travel in the partition `stream N`, so that a subscriber gets only those of its stream;
//! descriptions and statistics have no partition, so that one reader finds all. Key of all types is the stream; statistics
//! have who reports as well.
//!
//! DEADLINE (one frame time) and LIFESPAN (two, or as configured) are kept here and not by the middleware, which refuses both policies:
//! [`TopicCounters::deadlines_missed`] counts frame times without a frame, and a frame that comes later than its
//! lifetime after the earliest one is late and not presented. Writers hold the frames of that time and one, three by
//! default, so that nothing older is sent or repaired.
//!
//! A publisher that gets ahead of its RELIABLE subscribers, or of its flow controller, passes frames over
//! ([`Published::PassedOver`]): on a path that is too slow each frame would otherwise be given up for the next ones
//! before it is whole, and none would arrive. A subscriber that stands still for half a second is given up.
//!
//! # Copies
//!
//! A whole frame is copied once on its way out, from the caller's memory to the buffer that history and datagrams share,
//! and not at all when the picture is made in place ([`VideoPublisher::lend_frame`]). It is copied once on its way in,
//! from the fragments to the sample, which the subscriber then lends out. Slices are copied once more on their way in,
//! to their place in the frame. Datagrams go through the kernel also between processes of one host: shared memory is not
//! there.
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
mod picture;
mod publisher;
mod qos;
mod run;
mod statistics;
mod subscriber;
mod types;
mod wire;

#[cfg(test)]
mod tests;

pub use description::{list_streams, wait_for_stream};
pub use error::TopicError;
pub use format_words::FormatWords;
pub use picture::TopicPicture;
pub use publisher::{FrameLoan, FrameTime, Published, PublisherConfig, PublisherCounters, VideoPublisher};
pub use qos::{Checksum, SampleUnit, Spread, TopicReliability};
pub use run::{PublicationRun, SubscriptionRun, VideoRunError, run_publisher, run_subscriber};
pub use statistics::{FrameStatistics, SampleStatistics, StatisticsRole, VideoStreamStatistics};
pub use subscriber::{SubscriberConfig, TopicCounters, VideoSubscriber};
pub use types::{VideoFrame, VideoSlice, VideoStreamDescription};
pub use wire::{FrameWords, SliceField, SliceWords};

/// The fewest lines of a slice: below, the heads of samples cost more than the latency is worth.
pub const SLICE_LINES_MIN: u16 = 8;
/// The most lines of a slice: beyond, a frame is hardly later.
pub const SLICE_LINES_MAX: u16 = 60;
