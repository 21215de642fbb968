//! The sender of a picture: frames and the time in, batches of datagrams out.
//!
//! Packets are spread evenly over the frame time and leave in batches. A sender that comes late sends somewhat faster
//! until it has caught up, never a burst; if it is late by more than a frame, it drops whole frames.

#[expect(dead_code, reason = "the sender that keeps frames is composed of it next")]
mod history;
#[expect(dead_code, reason = "the sender that is paced is composed of it next")]
mod pace;
#[expect(dead_code, reason = "the sender that repeats packets is composed of it next")]
mod resend;

pub use history::FRAMES_KEPT;
pub use resend::{RESEND_QUEUE_MAX, Resend};

/// Datagrams of a batch at most: what Linux cuts out of one message (`UDP_MAX_SEGMENTS`, before 6.9).
pub const BATCH_PACKETS_MAX: usize = 64;
/// Octets of a batch at most: the largest UDP payload over IPv4, which one message is before it is cut.
pub const BATCH_OCTETS_MAX: usize = 65_507;

/// What a sender has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Frames of which every packet was given out.
    pub frames_sent: u64,
    /// Frames dropped whole because the sender was late by more than a frame.
    pub frames_dropped: u64,
    /// Frame times without a frame because the source was late.
    pub frames_missed: u64,
    /// Packets given out, without repeated ones.
    pub packets_sent: u64,
    /// Octets of RTP payload given out, without repeated ones, as sender reports count them (RFC 3550 §6.4.1).
    pub payload_octets_sent: u64,
    /// Packets given out again.
    pub packets_resent: u64,
    /// Packets asked for that were sent too long ago, or never.
    pub requests_unknown: u64,
    /// Packets asked for again before they were sent again, or beyond [`RESEND_QUEUE_MAX`].
    pub requests_refused: u64,
}
