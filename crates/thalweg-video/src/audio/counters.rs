//! What comes of packets of audio: samples to be played, counts, and why a datagram is none.

use thalweg_base::time::Instant;

use crate::rtp::RtpError;

/// Samples to be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioBlock {
    /// Time stamp of its first sample.
    pub timestamp: u32,
    /// When its first sample is to be played.
    pub due: Instant,
    /// Samples of each channel.
    pub frames: usize,
    /// How many of them are concealed.
    pub concealed: u64,
}

/// What a receiver counted; samples count once for all channels.
///
/// Each sample placed is played, waits or was passed over: `frames_placed` = `frames_played` − `frames_concealed` +
/// `frames_skipped` + [`AudioReceiver::frames_waiting`](super::AudioReceiver::frames_waiting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AudioCounters {
    /// Packets of the stream, without those of a stream of repetitions.
    pub packets: u64,
    /// Packets of other payload types or streams. What is kept until a sender has left counts here until it is taken.
    pub packets_foreign: u64,
    /// Packets that could not be read.
    pub packets_malformed: u64,
    /// Packets too far from the others to have a place.
    pub packets_astray: u64,
    /// Samples that found their place.
    pub frames_placed: u64,
    /// Samples that came after they were to be played.
    pub frames_late: u64,
    /// Samples that came again.
    pub frames_duplicate: u64,
    /// Samples played, with concealed ones.
    pub frames_played: u64,
    /// Samples concealed.
    pub frames_concealed: u64,
    /// Samples passed over, because the player was late or the times stepped.
    pub frames_skipped: u64,
    /// Times that the stream began, first or again.
    pub starts: u64,
}

/// Why a datagram is no audio of this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioError {
    /// It is no RTP packet.
    Rtp(RtpError),
    /// Its payload is empty or no whole number of samples of every channel.
    Payload {
        /// Its octets.
        octets: usize,
        /// Octets of one sample of every channel.
        multiple: usize,
    },
}

impl std::fmt::Display for AudioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AudioError::Rtp(error) => write!(f, "the datagram is no RTP packet: {error}"),
            AudioError::Payload { octets, multiple } => {
                write!(f, "{octets} octets of audio are no multiple of the {multiple} of all channels")
            }
        }
    }
}

impl std::error::Error for AudioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AudioError::Rtp(error) => Some(error),
            AudioError::Payload { .. } => None,
        }
    }
}
