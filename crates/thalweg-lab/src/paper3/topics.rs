//! The ends of a picture as a topic, each a process of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::json;
use thalweg::DomainParticipant;
use thalweg_host::monotonic_nanos;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::source::{AtEnd, RawSource};
use thalweg_video::topics::{
    PublicationRun, PublisherConfig, SubscriberConfig, TopicReliability, VideoPublisher, VideoSubscriber, run_publisher,
};

use crate::error::LabError;
use crate::process::{ParentPipe, Stop};

/// The order of an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TopicOrder {
    /// Pixels of a line, and lines.
    pub(super) size: (u16, u16),
    pub(super) is_reliable: bool,
    /// A frame as it lies in packets, which is sent again and again.
    pub(super) frame: PathBuf,
    /// Frames that are sent.
    pub(super) frames: u64,
}

/// The picture of the preset.
pub(super) fn format(size: (u16, u16)) -> Result<VideoFormat, LabError> {
    VideoFormat::new(PixelFormat::Yuv422Bits10, size, FrameRate::NTSC, Scan::Progressive).map_err(LabError::here)
}

/// Publishes the picture; says that it is ready when a subscriber is there.
pub(crate) fn publish_picture(order: &TopicOrder, link: &ParentPipe) -> Result<serde_json::Value, LabError> {
    let format = format(order.size)?;
    let mut source = RawSource::open(&order.frame, format, AtEnd::Repeat).map_err(LabError::here)?;
    let participant = DomainParticipant::new(DOMAIN).map_err(LabError::here)?;
    let reliability = if order.is_reliable { TopicReliability::Reliable } else { TopicReliability::BestEffort };
    let config = PublisherConfig { reliability, ..PublisherConfig::new(STREAM, format) };
    let mut publisher = VideoPublisher::new(&participant, config).map_err(LabError::here)?;
    publisher.wait_for_subscribers(1, PATIENCE).map_err(LabError::here)?;
    link.progress(&())?;
    let run =
        PublicationRun { frames: Some(order.frames), stop: Some(link.stop().flag()), ..PublicationRun::default() };
    let late = run_publisher(&mut publisher, &mut source, run).map_err(LabError::here)?;
    // The last frame is spread over its time; a subscriber that lost it for good does not fail the run.
    if order.is_reliable {
        let _ = publisher.wait_for_acknowledgments(LAST_PATIENCE);
    } else {
        std::thread::sleep(2 * format.frame_time());
    }
    let (counters, writer) = (publisher.counters(), publisher.writer_counters());
    Ok(json!({
        "frames_sent": counters.frames_sent,
        "frames_late": late,
        "frames_passed_over": counters.frames_passed_over,
        "datagrams": writer.datagrams,
        "repaired": writer.repaired,
    }))
}

/// Takes the picture until none has come for two seconds.
pub(crate) fn subscribe_picture(order: &TopicOrder, link: &ParentPipe) -> Result<serde_json::Value, LabError> {
    let format = format(order.size)?;
    let participant = DomainParticipant::new(DOMAIN).map_err(LabError::here)?;
    link.progress(&())?;
    let config = SubscriberConfig { expected: Some(format), ..SubscriberConfig::new(STREAM) };
    let mut subscriber = VideoSubscriber::open(&participant, config, PATIENCE).map_err(LabError::here)?;
    let came = take_pictures(&mut subscriber, link.stop())?;
    let counters = subscriber.counters();
    let (frames, packets) = (counters.received.frames, counters.received.packets);
    Ok(json!({
        "frames_expected": frames.expected(),
        "frames_complete": frames.complete,
        "samples_expected": packets.expected,
        "samples_lost": packets.lost,
        "damaged": counters.damaged,
        "shown_at_ns": came.at_ns,
        "latency_us": came.latency_us,
    }))
}

/// When frames came, in their order.
#[derive(Debug, Default)]
struct TopicArrivals {
    /// By the host's monotonic clock.
    at_ns: Vec<u64>,
    /// Since their publication, in microseconds, as far as it is known: both ends have the same clock.
    latency_us: Vec<f64>,
}

fn take_pictures(subscriber: &mut VideoSubscriber, stop: &Stop) -> Result<TopicArrivals, LabError> {
    let mut came = TopicArrivals::default();
    let mut deadline = Instant::now() + PATIENCE;
    while !stop.is_requested() {
        let wait = deadline.saturating_duration_since(Instant::now()).min(LOOK_PERIOD);
        match subscriber.next_picture(wait).map_err(LabError::here)? {
            Some(frame) => {
                came.at_ns.push(monotonic_nanos());
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
                let latency = now.zip(frame.captured).and_then(|(now, captured)| now.checked_sub(captured));
                came.latency_us.extend(latency.map(|latency| latency.as_secs_f64() * 1e6));
                deadline = Instant::now() + LAST_PATIENCE;
            }
            None if Instant::now() >= deadline => break,
            None => {}
        }
    }
    Ok(came)
}

/// The hosts of a run have no other participants.
const DOMAIN: u32 = 0;
const STREAM: u32 = 1;
const PATIENCE: Duration = Duration::from_secs(20);
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How often a subscriber looks whether it is to stop.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
