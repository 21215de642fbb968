//! The quality of service of video topics.

use std::fmt;
use std::time::Duration;

use thalweg::flow_controller::{Amount, FlowControllerSettings, Scheduling};
use thalweg::qos::{Durability, History, Method, ReaderQos, Representation, Transmission, WriterQos, WriterTiming};

use super::{SLICE_LINES_MAX, SLICE_LINES_MIN, TopicError};
use crate::format::VideoFormat;

/// How long a reliable subscriber may stand still before it is given up; others would lose frames for it.
const READER_PATIENCE: Duration = Duration::from_millis(500);
/// Name of the topic of whole frames.
pub(super) const FRAMES: &str = "video/frames";
/// Name of the topic of slices.
pub(super) const SLICES: &str = "video/slices";
/// Name of the topic of descriptions.
pub(super) const DESCRIPTIONS: &str = "video/descriptions";
/// Name of the topic of statistics.
pub(super) const STATISTICS: &str = "video/statistics";

/// Whether lost fragments are sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopicReliability {
    /// Never: what is lost is concealed (slices) or missing (frames).
    BestEffort,
    /// As long as the frame is one of the newest, three by default (default).
    #[default]
    Reliable,
}

impl TopicReliability {
    pub(super) fn policy(self, max_blocking_time: Duration) -> thalweg::qos::Reliability {
        match self {
            TopicReliability::BestEffort => thalweg::qos::Reliability::BestEffort,
            TopicReliability::Reliable => thalweg::qos::Reliability::Reliable { max_blocking_time },
        }
    }
}

impl fmt::Display for TopicReliability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            TopicReliability::BestEffort => "best-effort",
            TopicReliability::Reliable => "reliable",
        })
    }
}

/// What a sample holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleUnit {
    /// A whole frame (default): the fewest copies.
    #[default]
    Frame,
    /// So many lines, [`SLICE_LINES_MIN`] to [`SLICE_LINES_MAX`]; the last slice of a field may have fewer. A slice can
    /// be sent and shown before the frame is complete, and a lost one costs its lines alone.
    Slice(u16),
}

impl SampleUnit {
    /// Samples of a frame.
    pub fn samples(self, format: VideoFormat) -> u32 {
        match self {
            SampleUnit::Frame => 1,
            SampleUnit::Slice(lines) => {
                u32::from(format.field_height().div_ceil(lines)) * u32::from(format.scan().fields())
            }
        }
    }

    pub(super) fn check(self, format: VideoFormat) -> Result<(), TopicError> {
        let SampleUnit::Slice(lines) = self else { return Ok(()) };
        let field_lines = format.field_height();
        if !(SLICE_LINES_MIN..=SLICE_LINES_MAX).contains(&lines) || lines > field_lines {
            return Err(TopicError::SliceLines { lines, field_lines });
        }
        Ok(())
    }
}

/// Whether samples have a checksum of their octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// None: UDP has one of each datagram.
    Off,
    /// CRC-32C (default): checked by the subscriber over the octets that it hands out.
    #[default]
    Crc32c,
}

/// How the octets of a frame leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// As fast as the readers' receive buffers take them, on the thread that writes: the least delay and work where
    /// the link carries many times the stream, behind queues that hold a frame. A shorter queue loses much of each frame.
    AtOnce,
    /// At a rate that sends a frame in this percentage of a frame time, 10 to 100; default 80: by a flow controller, on
    /// the participant's own thread. What is left of the frame time is for repairs.
    Over(u8),
}

impl Default for Spread {
    fn default() -> Spread {
        Spread::Over(80)
    }
}

impl Spread {
    /// The settings of the flow controller; `None` without one.
    pub(super) fn settings(self, format: VideoFormat) -> Option<FlowControllerSettings> {
        let Spread::Over(percent) = self else { return None };
        let share = f64::from(percent.clamp(10, 100)) / 100.0;
        // A datagram of 1,472 octets has 1,304 of a fragment; larger ones have a greater share, and a frame leaves sooner.
        let rate = (format.octets_per_second() * 1.13 / share).min(f64::from(u32::MAX));
        Some(FlowControllerSettings {
            // 2 ms: a receive buffer of the default size takes as much at the rates of high definition.
            max_tokens: Amount::Limited((rate / 500.0) as u32 + 65_536),
            tokens_added_per_period: Amount::Limited(rate as u32),
            bytes_per_token: Amount::Limited(1),
            scheduling: Scheduling::HighestPriorityFirst,
            ..FlowControllerSettings::default()
        })
    }
}

/// The partition of a stream's frames and slices.
pub(super) fn partition(stream: u32) -> Vec<String> {
    vec![format!("stream {stream}")]
}

/// The writer of frames or slices, which holds `kept` frames; `flow_controller` is the name of its flow controller.
pub(super) fn writer(
    format: VideoFormat,
    unit: SampleUnit,
    kept: u32,
    reliability: TopicReliability,
    flow_controller: Option<&str>,
) -> WriterQos {
    let frame = format.frame_time();
    WriterQos {
        reliability: reliability.policy(frame),
        history: History::KeepLast(kept * unit.samples(format)),
        timing: WriterTiming { latency_budget: frame, ..WriterTiming::default() },
        reader_patience: READER_PATIENCE,
        data_representation: vec![Representation::Xcdr1],
        transmission: flow_controller
            .map_or_else(Transmission::default, |name| Transmission::by(Method::asynchronous(name))),
        ..WriterQos::default()
    }
}

/// The reader of frames or slices.
pub(super) fn reader(format: VideoFormat, unit: SampleUnit, kept: u32, reliability: TopicReliability) -> ReaderQos {
    let mut qos = ReaderQos {
        reliability: reliability.policy(Duration::ZERO),
        history: History::KeepLast(kept * unit.samples(format)),
        ..ReaderQos::default()
    };
    qos.timing.latency_budget = format.frame_time();
    qos
}

/// Writers of descriptions and statistics.
pub(super) fn kept_writer() -> WriterQos {
    WriterQos { durability: Durability::TransientLocal, history: History::KeepLast(1), ..WriterQos::default() }
}

/// Readers of descriptions and statistics.
pub(super) fn kept_reader() -> ReaderQos {
    ReaderQos {
        reliability: thalweg::qos::Reliability::RELIABLE,
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        ..ReaderQos::default()
    }
}

/// Frames that a writer holds and a reader keeps, where a frame is of use for `lifespan`: those that are, and the one
/// that fills. Three for two frame times.
///
/// # Errors
/// The lifespan is not between half a frame time and eight.
pub(super) fn frames_kept(format: VideoFormat, lifespan: Duration) -> Result<u32, TopicError> {
    let frame = format.frame_time();
    // A few nanoseconds more: those of eight rounded frame times.
    if lifespan < frame / 2 || lifespan > 8 * frame + Duration::from_nanos(8) {
        return Err(TopicError::Lifespan { lifespan, frame });
    }
    let frames = lifespan.as_nanos().saturating_sub(8).div_ceil(frame.as_nanos());
    Ok(u32::try_from(frames).expect("eight at most") + 1)
}
