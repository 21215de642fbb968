//! Sessions and streams as values.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::audio::AudioDescription;
use super::video::VideoDescription;

/// The longest description that is read, in octets. Chosen by us: one of a camera has 1,000, and SAP carries less.
pub const SDP_OCTETS_MAX: usize = 16 * 1024;

/// How many media of a description are read; more are refused.
pub const STREAMS_MAX: usize = 16;

/// A session: who offers it, and its streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDescription {
    /// Name for people.
    pub name: String,
    /// The number that makes the session unique at its origin; it stays when the description changes.
    pub id: u64,
    /// Grows with each change of the description.
    pub version: u64,
    /// The address or name of the origin's host.
    pub origin: String,
    /// Streams of raw video and linear audio, at most [`STREAMS_MAX`].
    pub streams: Vec<StreamDescription>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDescription {
    /// What it carries.
    pub media: MediaDescription,
    /// Its RTP payload type, 0 to 127; dynamic ones begin at 96.
    pub payload_type: u8,
    /// The ways that its packets take: one, or two that carry the same (ST 2022-7, RFC 7104).
    pub paths: Vec<StreamPath>,
    /// Whether receivers may ask for packets by generic NACK: `rtcp-fb … nack` (RFC 4585 §4.2).
    pub accepts_nack: bool,
    /// Where packets asked for come again, if not in the stream itself (RFC 4588).
    pub retransmission: Option<Retransmission>,
    /// Clocks that the media clock follows: `ts-refclk` (RFC 7273 §4), at most 8.
    pub reference_clocks: Vec<ReferenceClock>,
    /// How time stamps follow from the reference clock: `mediaclk` (RFC 7273 §5).
    pub media_clock: Option<MediaClockSource>,
}

/// What a stream carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaDescription {
    /// Raw video.
    Video(VideoDescription),
    /// Linear audio.
    Audio(AudioDescription),
}

/// One way of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPath {
    /// Where packets go.
    pub destination: SocketAddr,
    /// Time to live of IPv4 multicast.
    pub ttl: Option<u8>,
    /// Where packets come from: `source-filter: incl` (RFC 4570); empty for anywhere.
    pub sources: Vec<IpAddr>,
    /// Where RTCP goes: `rtcp` (RFC 3605), or the port itself with `rtcp-mux` (RFC 5761); otherwise the next port.
    pub rtcp_port: u16,
}

impl StreamPath {
    /// A way to `destination` from anywhere, with RTCP at the next port.
    pub fn new(destination: SocketAddr) -> StreamPath {
        let rtcp_port = destination.port().saturating_add(1);
        StreamPath { destination, ttl: None, sources: Vec::new(), rtcp_port }
    }
}

/// The stream of retransmitted packets (RFC 4588 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// Its RTP payload type.
    pub payload_type: u8,
    /// How long the sender keeps packets: `rtx-time`; none when it does not tell.
    pub kept_for: Option<Duration>,
}

/// A clock that others can follow as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceClock {
    /// `ptp=version:grandmaster:domain`, or `ptp=version:traceable`.
    Ptp {
        /// The version, such as `IEEE1588-2008`.
        version: String,
        /// The identity of the grandmaster, such as `39-A7-94-FF-FE-07-CB-D0`; none for one traceable to atomic time.
        grandmaster: Option<String>,
        /// The domain, 0 to 127; none when not told.
        domain: Option<u8>,
    },
    /// `localmac=address`: a clock of the sender's own (ST 2110-10).
    LocalMac(String),
    /// Any other, as it stands.
    Other(String),
}

/// How time stamps follow from a reference clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaClockSource {
    /// `direct=offset`: the time stamp at the zero of the reference clock; 0 in ST 2110.
    Direct(u32),
    /// `sender`: they follow a clock of the sender's own.
    Sender,
    /// Any other, as it stands.
    Other(String),
}
