//! What a receiver of a picture is told once.

use std::fmt;
use std::time::Duration;

use super::Concealment;
use crate::format::VideoFormat;
use crate::rtp::PAYLOAD_TYPE_MAX;

/// Whether and how missing packets are asked for again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Never (default).
    #[default]
    Off,
    /// By generic NACK (RFC 4585 §6.2.1).
    Nack {
        /// How long a gap may be due to reordering: default 500 µs. Of two paths, one brings what the other loses: there it counts as
        /// [`Repair::PATH_WINDOW`] at least, or as half the time until presentation where that is shorter.
        reorder_window: Duration,
        /// The payload type of the stream in which packets are sent again (RFC 4588); `None` if they come in the stream
        /// itself.
        retransmission: Option<u8>,
    },
}

impl Repair {
    /// The default time in which packets may overtake each other.
    pub const REORDER_WINDOW: Duration = Duration::from_micros(500);

    /// By how much the delays of two paths may differ: that of networks with low skew (ST 2022-7, class A).
    pub const PATH_WINDOW: Duration = Duration::from_millis(10);

    /// Requests answered in a stream of payload type `payload_type`, with the default window.
    pub const fn by_retransmission(payload_type: u8) -> Repair {
        Repair::Nack { reorder_window: Repair::REORDER_WINDOW, retransmission: Some(payload_type) }
    }

    /// The same where there are two paths, and what comes is presented after `playout`.
    pub(crate) fn on_two_paths(self, playout: Duration) -> Repair {
        match self {
            Repair::Off => Repair::Off,
            Repair::Nack { reorder_window, retransmission } => {
                let reorder_window = reorder_window.max(Repair::PATH_WINDOW.min(playout / 2));
                Repair::Nack { reorder_window, retransmission }
            }
        }
    }

    pub(crate) const fn retransmission(self) -> Option<u8> {
        match self {
            Repair::Off => None,
            Repair::Nack { retransmission, .. } => retransmission,
        }
    }
}

/// The number of paths that a stream is sent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// One (default).
    #[default]
    One,
    /// Two with the same packets (ST 2022-7): what comes on either is enough.
    Two,
}

/// What a receiver of a picture is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The format of the frames.
    pub format: VideoFormat,
    /// The payload type; `None` (default) takes any but that of repetitions.
    pub payload_type: Option<u8>,
    /// The synchronization source; `None` (default) takes the first one, and another one when that has been silent for
    /// a second, or sends fewer than 16 packets a second and the other one 16 in a row: no stream, but a forged packet now
    /// and then.
    pub ssrc: Option<u32>,
    /// The time from the earliest arrival of a frame's first packet to its presentation: half a frame time to eight;
    /// two by default. A sender that spreads its packets over the frame needs more than one.
    pub playout: Duration,
    /// What becomes of incomplete frames.
    pub concealment: Concealment,
    /// Whether missing packets are asked for.
    pub repair: Repair,
    /// The number of paths.
    pub paths: Paths,
    /// How many incomplete frames are passed over at the beginning before one is presented with concealment: without
    /// this bound a stream that loses something in every frame would never begin. Default 10.
    pub start_frames_max: u16,
}

impl ReceiverConfig {
    /// The defaults for a format.
    pub fn new(format: VideoFormat) -> ReceiverConfig {
        ReceiverConfig {
            format,
            payload_type: None,
            ssrc: None,
            playout: 2 * format.frame_time(),
            concealment: Concealment::Previous,
            repair: Repair::Off,
            paths: Paths::One,
            start_frames_max: 10,
        }
    }

    pub(super) fn check(&self) -> Result<(), ReceiverError> {
        let payload_types = [self.payload_type, self.repair.retransmission()];
        if let Some(found) = payload_types.into_iter().flatten().find(|found| *found > PAYLOAD_TYPE_MAX) {
            return Err(ReceiverError::PayloadType(found));
        }
        if self.payload_type.is_some() && self.payload_type == self.repair.retransmission() {
            return Err(ReceiverError::SamePayloadType);
        }
        let frame = self.format.frame_time();
        // A nanosecond below: half of an odd number of them.
        let range = frame / 2..=8 * frame + Duration::from_nanos(8);
        if !range.contains(&self.playout) {
            return Err(ReceiverError::Playout { playout: self.playout, frame });
        }
        Ok(())
    }

    /// Frames that may be held at once: those that wait for their time and the one that fills, at least three.
    pub(super) fn slots(&self) -> usize {
        let frames = self.playout.as_nanos().div_ceil(self.format.frame_time().as_nanos());
        usize::try_from(frames).expect("at most nine").max(2) + 1
    }
}

/// Why a receiver cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverError {
    /// A payload type has more than 7 bits.
    PayloadType(u8),
    /// The stream and its repetitions have the same payload type.
    SamePayloadType,
    /// The playout delay is outside its range.
    Playout {
        /// The delay.
        playout: Duration,
        /// The frame time.
        frame: Duration,
    },
}

impl fmt::Display for ReceiverError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiverError::PayloadType(found) => {
                write!(formatter, "payload type {found} is above {PAYLOAD_TYPE_MAX}; give one from 96 to 127")
            }
            ReceiverError::SamePayloadType => {
                formatter.write_str("packets and their repetitions need payload types that differ")
            }
            ReceiverError::Playout { playout, frame } => {
                write!(
                    formatter,
                    "a playout delay of {playout:?} is not between half a frame time and eight of {frame:?}"
                )
            }
        }
    }
}

impl std::error::Error for ReceiverError {}
