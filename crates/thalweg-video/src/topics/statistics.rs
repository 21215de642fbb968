//! Statistics of a stream as a topic: the same words for a publisher, a subscriber and an RTP receiver.

use thalweg::Topic;

use crate::receiver::ReceiverCounters;

/// Who reports.
#[derive(Topic, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::StatisticsRole")]
pub enum StatisticsRole {
    /// A publisher, or a sender of RTP.
    #[default]
    Sender,
    /// A subscriber, or a receiver of RTP.
    Receiver,
}

/// Frames, as [`FrameCounters`](crate::receiver::FrameCounters) has them.
#[derive(Topic, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::FrameStatistics")]
pub struct FrameStatistics {
    /// Sent, or expected.
    pub expected: u64,
    /// Sent whole, or presented as they were sent.
    pub complete: u64,
    /// Presented with concealed pixels.
    pub concealed: u64,
    /// Incomplete, and not presented.
    pub dropped: u64,
    /// Frames of which nothing came.
    pub lost: u64,
    /// Not fetched in time, or late.
    pub discarded: u64,
}

/// Packets of RTP or samples of a topic, as [`PacketCounters`](crate::receiver::PacketCounters) has them.
#[derive(Topic, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::SampleStatistics")]
pub struct SampleStatistics {
    /// Sent, or expected.
    pub expected: u64,
    /// Sent, or received.
    pub received: u64,
    /// Received because they were sent again; of a topic, the middleware repairs fragments and this is 0.
    pub recovered: u64,
    /// Missing for good.
    pub lost: u64,
    /// Received when their frame had been presented.
    pub late: u64,
    /// With a wrong checksum, or none of the stream.
    pub refused: u64,
}

/// What one end of a stream has counted since it began.
#[derive(Topic, Clone, Debug, Default, PartialEq)]
#[topic(name = "thalweg::video::StreamStatistics")]
pub struct VideoStreamStatistics {
    /// The stream.
    #[topic(key)]
    pub stream: u32,
    /// Who reports: a number drawn at the start.
    #[topic(key)]
    pub reporter: u32,
    /// Which end.
    pub role: StatisticsRole,
    /// Seconds since it began.
    pub seconds: f64,
    /// Seconds of processor time of the process.
    pub cpu_seconds: f64,
    /// Frame times without a frame: DEADLINE.
    pub deadlines_missed: u64,
    /// Frames.
    pub frames: FrameStatistics,
    /// Packets or samples.
    pub samples: SampleStatistics,
}

impl VideoStreamStatistics {
    /// The counters of a receiver, of a topic or of RTP.
    pub fn of_receiver(stream: u32, reporter: u32, counters: &ReceiverCounters) -> VideoStreamStatistics {
        let ReceiverCounters { packets, frames, refused, .. } = counters;
        VideoStreamStatistics {
            stream,
            reporter,
            role: StatisticsRole::Receiver,
            frames: FrameStatistics {
                expected: frames.expected(),
                complete: frames.complete,
                concealed: frames.concealed,
                dropped: frames.dropped + frames.before_start,
                lost: frames.lost,
                discarded: frames.discarded,
            },
            samples: SampleStatistics {
                expected: packets.expected,
                received: packets.received,
                recovered: packets.recovered,
                lost: packets.lost,
                late: packets.late,
                refused: refused.malformed + refused.foreign + refused.outside,
            },
            ..VideoStreamStatistics::default()
        }
    }
}
