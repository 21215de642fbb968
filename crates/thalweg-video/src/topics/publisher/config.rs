//! What a publisher is told, and what it counts.

use std::time::Duration;

use thalweg::clock;

use crate::format::VideoFormat;
use crate::topics::{Checksum, SampleUnit, Spread, TopicReliability};

/// What a publisher is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherConfig {
    /// The number of the stream: one publisher in a domain has it.
    pub stream: u32,
    /// Name for people; at most 255 octets. Default empty.
    pub name: String,
    /// The format of the frames.
    pub format: VideoFormat,
    /// Whether samples are frames or slices.
    pub unit: SampleUnit,
    /// Whether lost fragments are sent again.
    pub reliability: TopicReliability,
    /// Whether samples have a checksum.
    pub checksum: Checksum,
    /// How fast a frame leaves.
    pub spread: Spread,
    /// How long a frame is of use: half a frame time to eight, two by default. Frames that take longer are not
    /// presented, and the writer holds no more than fit this time, and one: three by default.
    pub lifespan: Duration,
    /// The session description, where the stream is sent by RTP as well; one without an address by default.
    pub sdp: Option<String>,
}

impl PublisherConfig {
    /// The defaults for a stream of a format.
    pub fn new(stream: u32, format: VideoFormat) -> PublisherConfig {
        PublisherConfig {
            stream,
            name: String::new(),
            format,
            unit: SampleUnit::default(),
            reliability: TopicReliability::default(),
            checksum: Checksum::default(),
            spread: Spread::default(),
            lifespan: 2 * format.frame_time(),
            sdp: None,
        }
    }
}

/// When a frame was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTime {
    /// The time stamp of 90 kHz.
    pub timestamp: u32,
    /// Since 1970, of TAI or of the host's clock.
    pub captured: Duration,
}

impl FrameTime {
    /// A frame that is taken now, by the host's clock.
    pub fn now(timestamp: u32) -> FrameTime {
        FrameTime { timestamp, captured: clock::wall_clock().to_unix() }
    }

    pub(super) fn nanos(self) -> u64 {
        u64::try_from(self.captured.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// What became of a frame that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It has this number.
    Frame(u64),
    /// It was passed over, since frames before it are still on their way: one more would only delay them, and be late
    /// itself. It takes no number.
    PassedOver,
}

/// What a publisher has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherCounters {
    /// Frames, all of their slices included.
    pub frames_sent: u64,
    /// Frames passed over because those before were still on their way.
    pub frames_passed_over: u64,
    /// Frames of which the last slices were never written.
    pub frames_broken: u64,
    /// Samples.
    pub samples_sent: u64,
    /// Octets of pictures.
    pub octets_sent: u64,
    /// Frame times in which no frame was written: DEADLINE.
    pub deadlines_missed: u64,
}
