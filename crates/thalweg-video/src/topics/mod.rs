//! The same pictures as DDS topics: what RTP does for one stream between two addresses, with discovery, QoS and late joining.

#[cfg(test)]
mod deadline;
mod error;
mod format_words;
#[cfg(test)]
mod qos;
mod statistics;
mod types;
#[cfg(test)]
mod wire;

#[cfg(test)]
mod tests;

pub use error::TopicError;
pub use format_words::FormatWords;
pub use statistics::{FrameStatistics, SampleStatistics, StatisticsRole, VideoStreamStatistics};
pub use types::{VideoFrame, VideoSlice, VideoStreamDescription};

/// The fewest lines of a slice: below, the heads of samples cost more than the latency is worth.
pub const SLICE_LINES_MIN: u16 = 8;
/// The most lines of a slice: beyond, a frame is hardly later.
pub const SLICE_LINES_MAX: u16 = 60;
