//! A source to a stream at its rate, and a stream to a sink.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::{FrameTime, SampleUnit, TopicError, VideoPublisher, VideoSubscriber};
use crate::sink::{FrameSink, SinkError};
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

/// What a run of a subscriber is told.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionRun<'a> {
    /// Frames to take; `None` (default) for all that come.
    pub frames: Option<u64>,
    /// How long the first frame is waited for. Default 20 s.
    pub first_patience: Duration,
    /// How long each later one is waited for: a stream that stops for so long has ended. Default 2 s.
    pub patience: Duration,
    /// Ends the run when it becomes true, within a tenth of a second.
    pub stop: Option<&'a AtomicBool>,
}

impl Default for SubscriptionRun<'_> {
    fn default() -> Self {
        let (first_patience, patience) = (Duration::from_secs(20), Duration::from_secs(2));
        SubscriptionRun { frames: None, first_patience, patience, stop: None }
    }
}

/// Gives the frames of a stream to a sink; returns their number. Frames that come while the sink is busy wait with the
/// subscriber, and the oldest of them are lost beyond what its history keeps.
///
/// # Errors
///
/// The sink fails, or the stream goes on in another format.
pub fn run_subscriber(
    subscriber: &mut VideoSubscriber,
    sink: &mut dyn FrameSink,
    run: SubscriptionRun<'_>,
) -> Result<u64, VideoRunError> {
    /// How often a run looks whether it is to stop.
    const LOOK: Duration = Duration::from_millis(100);
    let is_stopped = || run.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let (mut taken, mut deadline) = (0, clock::now() + run.first_patience);
    while run.frames.is_none_or(|frames| taken < frames) && !is_stopped() {
        let wait = deadline.since(clock::now()).min(LOOK);
        match subscriber.next_picture(wait).map_err(VideoRunError::Topic)? {
            Some(got) => {
                sink.take(&got.picture).map_err(VideoRunError::Sink)?;
                (taken, deadline) = (taken + 1, clock::now() + run.patience);
            }
            None if clock::now() >= deadline => break,
            None => {}
        }
    }
    sink.finish().map_err(VideoRunError::Sink)?;
    Ok(taken)
}

/// Why a run ended before its time.
#[derive(Debug)]
pub enum VideoRunError {
    /// The source.
    Source(SourceError),
    /// The sink.
    Sink(SinkError),
    /// The topics.
    Topic(TopicError),
}

impl std::fmt::Display for VideoRunError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VideoRunError::Source(error) => write!(formatter, "{error}"),
            VideoRunError::Sink(error) => write!(formatter, "{error}"),
            VideoRunError::Topic(error) => write!(formatter, "{error}"),
        }
    }
}

impl std::error::Error for VideoRunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            VideoRunError::Source(error) => Some(error),
            VideoRunError::Sink(error) => Some(error),
            VideoRunError::Topic(error) => Some(error),
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
) -> Result<u64, VideoRunError> {
    let format = publisher.config().format;
    if source.format() != format {
        let (offered, expected) = (source.format(), format);
        let stream = publisher.config().stream;
        return Err(VideoRunError::Topic(TopicError::OtherFormat { stream, offered, expected }));
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
) -> Result<Filled, VideoRunError> {
    let time = FrameTime::now(timestamp);
    match publisher.config().unit {
        SampleUnit::Frame => {
            let mut loan = publisher.lend_frame().map_err(VideoRunError::Topic)?;
            let filled = source.fill(loan.octets_mut()).map_err(VideoRunError::Source)?;
            if filled == Filled::Frame {
                publisher.publish(time, loan).map_err(VideoRunError::Topic)?;
            }
            Ok(filled)
        }
        SampleUnit::Slice(_) => {
            memory.resize(publisher.config().format.frame_octets(), 0);
            let filled = source.fill(memory).map_err(VideoRunError::Source)?;
            if filled == Filled::Frame {
                publisher.write_frame(time, memory).map_err(VideoRunError::Topic)?;
            }
            Ok(filled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_frame_times_that_passed_are_passed_over() {
        let (due, frame) = (Instant::from_nanos(1_000_000_000), Duration::from_millis(40));
        for (late_ms, expect) in [(0, 0), (39, 0), (40, 1), (119, 2), (4000, 100)] {
            assert_eq!(frames_late(due + Duration::from_millis(late_ms), due, frame), expect, "{late_ms} ms");
        }
        assert_eq!(frames_late(Instant::ZERO, due, frame), 0, "early");
    }
}
