//! What the tests share: domains of their own, pictures and their check.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg::DomainParticipant;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::topics::{PublisherConfig, Spread, SubscriberConfig, TopicPicture, VideoPublisher, VideoSubscriber};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The number of the stream of every test: each has a domain of its own.
pub const STREAM: u32 = 7;

/// A format of one frame a second: whatever a loaded machine does, no frame is late.
pub fn format(size: (u16, u16), scan: Scan) -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits10, size, FrameRate::new(1, 1).unwrap(), scan).unwrap()
}

/// A publisher of that format: frames leave at once, since a second is long.
pub fn config(format: VideoFormat) -> PublisherConfig {
    PublisherConfig { spread: Spread::AtOnce, ..PublisherConfig::new(STREAM, format) }
}

/// A domain of this test alone, among the processes that run at once on a host.
pub fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + (std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed)) % 230
}

pub fn participant(domain: u32) -> DomainParticipant {
    DomainParticipant::builder(domain).loopback_only().create().unwrap()
}

/// A publisher and a subscriber in two participants, matched.
pub struct Pair {
    pub publisher: VideoPublisher,
    pub subscriber: VideoSubscriber,
    pub participants: (DomainParticipant, DomainParticipant),
}

pub fn pair(config: PublisherConfig, adjust: impl Fn(&mut SubscriberConfig)) -> Pair {
    let domain = domain();
    let participants = (participant(domain), participant(domain));
    let publisher = VideoPublisher::new(&participants.0, config).unwrap();
    let mut wanted = SubscriberConfig::new(STREAM);
    adjust(&mut wanted);
    let subscriber = VideoSubscriber::open(&participants.1, wanted, PATIENCE).unwrap();
    publisher.wait_for_subscribers(1, PATIENCE).unwrap();
    Pair { publisher, subscriber, participants }
}

/// A picture in which every octet depends on its frame and its place.
pub fn picture(format: VideoFormat, frame: u64) -> Vec<u8> {
    let mut octets = vec![0; format.frame_octets()];
    fill(&mut octets, frame);
    octets
}

pub fn fill(octets: &mut [u8], frame: u64) {
    for (index, word) in octets.chunks_mut(8).enumerate() {
        let value = (frame + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index as u64).to_le_bytes();
        word.copy_from_slice(&value[..word.len()]);
    }
}

/// The frame times since `first` of a time stamp.
pub fn frame_of(timestamp: u32, first: u32) -> u64 {
    u64::from(timestamp.wrapping_sub(first) / 90_000)
}

#[track_caller]
pub fn check_picture(got: &TopicPicture, format: VideoFormat, first: u32) {
    let frame = frame_of(got.picture.timestamp, first);
    assert!(*got.picture.octets == picture(format, frame), "frame {frame} came in another shape");
}
