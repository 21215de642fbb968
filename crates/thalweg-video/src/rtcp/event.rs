//! What a session is told, and what it tells.

use std::net::SocketAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::clock::{MediaClock, NtpTime};
use super::losses::ReceivedStream;
use super::packet::{NackEntry, ReportBlock, SenderInfo};

/// How a session reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtcpConfig {
    /// Time between reports. Default 1 s; shorter than 10 ms counts as 10 ms.
    pub interval: Duration,
    /// Time from the start to the first report. Default 100 ms, since receivers need a sender's report to align audio and video.
    pub first_report: Duration,
    /// Silence after which a peer is forgotten. Default 25 s, five times the interval of RFC 3550 §6.2, which GStreamer keeps.
    pub peer_timeout: Duration,
    /// Canonical name, such as `user@host`; the same for audio and video of one sender (RFC 3550 §6.5.1).
    pub cname: String,
    /// Name and version of the program; not sent when empty.
    pub tool: String,
}

impl RtcpConfig {
    /// The defaults under a canonical name.
    pub fn new(cname: impl Into<String>) -> RtcpConfig {
        RtcpConfig {
            interval: Duration::from_secs(1),
            first_report: Duration::from_millis(100),
            peer_timeout: Duration::from_secs(25),
            cname: cname.into(),
            tool: String::new(),
        }
    }
}

/// What this end sent until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentStream {
    /// Packets sent under the present SSRC.
    pub packets: u64,
    /// Octets of payload sent under it.
    pub octets: u64,
    /// How the stream's time stamps map to our wall clock.
    pub clock: MediaClock,
}

impl SentStream {
    /// As a sender report at `ntp` tells it.
    pub(super) fn info(&self, ntp: NtpTime) -> SenderInfo {
        // The fields hold the lower 32 bits of the counts.
        let (packets, octets) = (self.packets as u32, self.octets as u32);
        SenderInfo { ntp, rtp: self.clock.rtp_of(ntp), packets, octets }
    }
}

/// What this end sends and receives, for a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalStreams<'a> {
    /// The stream that it sends, under the session's SSRC.
    pub sent: Option<SentStream>,
    /// What it repeats under the SSRC of [`RtcpSession::with_repetitions`](super::RtcpSession::with_repetitions), a stream of its own with
    /// the canonical name of the session (RFC 4588 §5.2).
    pub repetitions: Option<SentStream>,
    /// The streams that it receives; the first 16 are reported, fewer where a long name comes twice.
    pub received: &'a [ReceivedStream],
}

/// What a session learned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RtcpEvent {
    /// A participant was heard for the first time.
    Joined {
        /// Its SSRC.
        ssrc: u32,
    },
    /// A sender told how its time stamps map to its clock; see [`RtcpPeer::media_clock`](super::RtcpPeer::media_clock).
    SenderReport {
        /// Its SSRC.
        ssrc: u32,
        /// What it said.
        info: SenderInfo,
    },
    /// A receiver told how our stream arrives.
    Report {
        /// Its SSRC.
        from: u32,
        /// What it said.
        block: ReportBlock,
    },
    /// A round-trip time was measured: by a sender from LSR and DLSR, by a receiver from DLRR.
    RoundTrip {
        /// The peer.
        ssrc: u32,
        /// There and back, without the time that the peer waited; resolution 15 µs.
        round_trip: Duration,
    },
    /// A receiver asks for packets of our stream.
    Nack {
        /// When its request came.
        arrived: Instant,
        /// Who asks.
        from: u32,
        /// What it asks for, at most [`NACK_ENTRIES_MAX`](super::NACK_ENTRIES_MAX).
        entries: Vec<NackEntry>,
    },
    /// A participant left.
    Left {
        /// Its SSRC.
        ssrc: u32,
        /// Its reason; may be empty.
        reason: String,
    },
    /// A participant was silent for longer than [`RtcpConfig::peer_timeout`], or gave its place to one of another host; see
    /// [`PEERS_MAX`](super::PEERS_MAX).
    TimedOut {
        /// Its SSRC.
        ssrc: u32,
    },
    /// Another participant uses our SSRC; answer with
    /// [`RtcpSession::create_new_identity`](super::RtcpSession::create_new_identity) (RFC 3550 §8.2).
    Collision {
        /// Where the other one is.
        from: SocketAddr,
    },
    /// Another participant uses the SSRC of our repetitions; answer with
    /// [`RtcpSession::create_new_repetitions`](super::RtcpSession::create_new_repetitions) (RFC 3550 §8.2).
    RepetitionsCollision {
        /// Where the other one is.
        from: SocketAddr,
    },
    /// Two other participants use one SSRC; the packets of the second one are ignored.
    Conflict {
        /// The SSRC.
        ssrc: u32,
        /// Where the second one is.
        from: SocketAddr,
    },
}

/// What a session counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtcpCounters {
    /// Datagrams that came.
    pub datagrams: u64,
    /// Datagrams and packets in them that could not be read.
    pub malformed: u64,
    /// Our own datagrams that came back, as multicast brings them, and packets under our numbers from where there was a collision
    /// before (RFC 3550 §8.2).
    pub looped: u64,
    /// Packets of participants beyond [`PEERS_MAX`](super::PEERS_MAX), in conflict, or that had left.
    pub ignored: u64,
    /// Answers to reports that we did not send or have forgotten, or with a delay longer than the time that passed.
    pub implausible: u64,
    /// Events that nobody fetched in time.
    pub events_dropped: u64,
    /// Reports sent.
    pub reports_sent: u64,
}
