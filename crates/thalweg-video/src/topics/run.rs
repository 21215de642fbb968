//! Publishing a source at its rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::{FrameTime, SampleUnit, TopicError, VideoPublisher};
use crate::source::{Filled, FrameSource, SourceError};

/// What a run of a publisher is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublicationRun<'a> {
    /// Frames to publish, those dropped included; `None` (default) for all that the source gives.
    pub frames: Option<u64>,
    /// The time stamp of the first frame. Default 0.
    pub first_timestamp: u32,
    /// Ends the run when it becomes true.
    pub stop: Option<&'a AtomicBool>,
}

/// Why a run ended before its time.
#[derive(Debug)]
pub enum PublishError {
    /// The source.
    Source(SourceError),
    /// The topics.
    Topic(TopicError),
}

impl std::fmt::Display for PublishError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PublishError::Source(error) => write!(formatter, "{error}"),
            PublishError::Topic(error) => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for PublishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PublishError::Source(error) => Some(error),
            PublishError::Topic(error) => Some(error),
        }
    }
}

/// Publishes the frames of a source at the rate of their format; returns the frame times that were passed over because
/// the publisher was late by more than one: it never bursts. A source that is not asked in time loses nothing: its next
/// frame is published at the next time.
///
/// # Errors
///
/// The source or the topics fail.
pub fn run_publisher(
    publisher: &mut VideoPublisher,
    source: &mut dyn FrameSource,
    options: PublicationRun<'_>,
) -> Result<u64, PublishError> {
    let format = publisher.config().format;
    if source.format() != format {
        let (offered, expected) = (source.format(), format);
        let stream = publisher.config().stream;
        return Err(PublishError::Topic(TopicError::OtherFormat { stream, offered, expected }));
    }
    let start = clock::now();
    let due = |index: u64| start + format.rate().time_of(index);
    let (mut index, mut passed_over) = (0, 0);
    let mut memory = Vec::new();
    while options.frames.is_none_or(|frames| index < frames) {
        if options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            break;
        }
        clock::sleep_until(due(index));
        let late = frames_late(clock::now(), due(index), format.frame_time());
        (index, passed_over) = (index.saturating_add(late), passed_over + late);
        let ticks = format.rate().ticks_of_halves(2 * index);
        // The clock wraps.
        let timestamp = options.first_timestamp.wrapping_add(ticks as u32);
        let filled = publish_next(publisher, source, &mut memory, timestamp)?;
        if filled == Filled::End {
            break;
        }
        index += 1;
    }
    Ok(passed_over)
}

/// Whole frame times by which a frame is late: so many are passed over.
fn frames_late(now: Instant, due: Instant, frame: Duration) -> u64 {
    u64::try_from(now.since(due).as_nanos() / frame.as_nanos().max(1)).unwrap_or(u64::MAX)
}

fn publish_next(
    publisher: &mut VideoPublisher,
    source: &mut dyn FrameSource,
    memory: &mut Vec<u8>,
    timestamp: u32,
) -> Result<Filled, PublishError> {
    let time = FrameTime::now(timestamp);
    match publisher.config().unit {
        SampleUnit::Frame => {
            let mut loan = publisher.lend_frame().map_err(PublishError::Topic)?;
            let filled = source.fill(loan.octets_mut()).map_err(PublishError::Source)?;
            if filled == Filled::Frame {
                publisher.publish(time, loan).map_err(PublishError::Topic)?;
            }
            Ok(filled)
        }
        SampleUnit::Slice(_) => {
            memory.resize(publisher.config().format.frame_octets(), 0);
            let filled = source.fill(memory).map_err(PublishError::Source)?;
            if filled == Filled::Frame {
                publisher.write_frame(time, memory).map_err(PublishError::Topic)?;
            }
            Ok(filled)
        }
    }
}
