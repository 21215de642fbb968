//! What a client asks the other end to take part in.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::account::HEADER_BYTES;

/// A measurement, as both ends know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeOrder {
    /// The version of this conversation, [`VERSION`].
    pub version: u32,
    /// UDP or TCP.
    pub protocol: ProbeProtocol,
    /// A stream or round trips.
    pub shape: Shape,
    /// Payload bytes of a datagram, of a TCP write, or of a request and its answer.
    pub size_bytes: u32,
    /// Streams at the same time, each with a socket and a thread at both ends; 1 to [`STREAMS_MAX`].
    pub streams: u32,
    /// Length of the measurement in milliseconds; up to [`DURATION_MAX`].
    pub duration_ms: u64,
    /// Whether the kernel cuts what is sent (GSO) and joins what arrives (GRO).
    pub joining: Joining,
    /// Whether datagrams may be larger than their path.
    pub fragments: Fragments,
    /// Bytes of receive buffer to ask for, each socket; `None` leaves it to [`thalweg_transport::stream`] for UDP and to the kernel,
    /// which then adapts it, for TCP.
    pub receive_buffer_bytes: Option<u32>,
    /// MTU in bytes that TCP's segments must fit; `None` leaves it to the path. UDP has its size instead.
    pub segment_mtu_bytes: Option<u32>,
}

/// The protocol below the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeProtocol {
    /// Datagrams; what is lost stays lost.
    Udp,
    /// Byte streams.
    Tcp,
}

/// What goes over the network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One way.
    Stream {
        /// Who sends.
        direction: StreamDirection,
        /// Payload bits a second of all streams together, by a schedule that does not wait for the network (an open loop);
        /// `None` sends as fast as the kernel takes it (a closed loop).
        rate_bit_per_s: Option<f64>,
    },
    /// Requests that the server answers with as many bytes; one under way in each stream.
    RoundTrips,
}

/// Who sends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamDirection {
    /// The client, which asked.
    ToServer,
    /// The server.
    ToClient,
}

/// Whether the kernel handles several datagrams as one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joining {
    /// On both ways, as far as the kernel can.
    Both,
    /// Only where they are sent (GSO).
    Sent,
    /// Only where they arrive (GRO).
    Received,
    /// Each datagram is a message.
    Neither,
}

/// Whether IP may cut datagrams that are larger than their path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fragments {
    /// They are refused.
    Refused,
    /// They travel as IP fragments.
    Allowed,
}

/// Why an order is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// The ends speak different versions.
    Version(u32),
    /// The size does not fit the protocol.
    Size(u32),
    /// Too many streams, or none.
    Streams(u32),
    /// Each end would hold too much for all streams.
    Memory,
    /// No time, or too long.
    Duration(u64),
    /// No rate in bits a second.
    Rate,
    /// The rate makes no whole message in the time.
    TooSlow,
    /// A receive buffer that no kernel grants.
    ReceiveBuffer(u32),
    /// An MTU that IP does not have.
    SegmentMtu(u32),
}

impl ProbeOrder {
    /// How long the measurement lasts.
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms)
    }

    /// What is measured, in a few words.
    pub fn summary(&self) -> String {
        let what = match self.shape {
            Shape::Stream { direction, .. } => direction.name(),
            Shape::RoundTrips => "round trips",
        };
        let (protocol, size, streams, seconds) =
            (self.protocol.name(), self.size_bytes, self.streams, self.duration().as_secs_f64());
        format!("{protocol} {what}, {size} B, streams: {streams}, {seconds} s")
    }

    /// The order itself where all its figures are within their bounds.
    ///
    /// # Errors
    /// The figure that is not.
    pub fn checked(self) -> Result<ProbeOrder, OrderError> {
        let sizes = match (self.protocol, self.shape) {
            (ProbeProtocol::Udp, _) => UDP_SIZE_MIN..=UDP_SIZE_MAX,
            (ProbeProtocol::Tcp, _) => 1..=TCP_SIZE_MAX,
        };
        let fails = [
            (self.version != VERSION, OrderError::Version(self.version)),
            (!sizes.contains(&self.size_bytes), OrderError::Size(self.size_bytes)),
            (!(1..=STREAMS_MAX).contains(&self.streams), OrderError::Streams(self.streams)),
            (u64::from(self.size_bytes) * u64::from(self.streams) > MEMORY_MAX, OrderError::Memory),
            (self.duration_ms == 0 || self.duration() > DURATION_MAX, OrderError::Duration(self.duration_ms)),
            (
                self.receive_buffer_bytes.is_some_and(|bytes| !(1..=RECEIVE_BUFFER_MAX).contains(&bytes)),
                OrderError::ReceiveBuffer(self.receive_buffer_bytes.unwrap_or(0)),
            ),
            (
                self.segment_mtu_bytes.is_some_and(|mtu| !(MTU_MIN..=MTU_MAX).contains(&mtu)),
                OrderError::SegmentMtu(self.segment_mtu_bytes.unwrap_or(0)),
            ),
        ];
        if let Some((_, error)) = fails.into_iter().find(|(fails, _)| *fails) {
            return Err(error);
        }
        if let Shape::Stream { rate_bit_per_s: Some(rate), .. } = self.shape {
            if !(rate > 0.0 && rate <= RATE_MAX) {
                return Err(OrderError::Rate);
            }
            let messages = rate * self.duration().as_secs_f64() / 8.0 / f64::from(self.size_bytes);
            if messages < f64::from(self.streams) {
                return Err(OrderError::TooSlow);
            }
        }
        Ok(self)
    }
}

impl ProbeProtocol {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            ProbeProtocol::Udp => "UDP",
            ProbeProtocol::Tcp => "TCP",
        }
    }
}

impl StreamDirection {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            StreamDirection::ToServer => "to the server",
            StreamDirection::ToClient => "to the client",
        }
    }
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderError::Version(version) => write!(
                f,
                "the client speaks version {version} of the probe and this end {VERSION}: install the same thalweg on both hosts"
            ),
            OrderError::Size(size) => write!(
                f,
                "a size of {size} B is out of range: {UDP_SIZE_MIN} to {UDP_SIZE_MAX} B for UDP, 1 to {TCP_SIZE_MAX} B for TCP"
            ),
            OrderError::Streams(streams) => write!(f, "{streams} streams are out of range: 1 to {STREAMS_MAX}"),
            OrderError::Memory => {
                write!(f, "size and streams together need more than {MEMORY_MAX} B at each end: lower one of them")
            }
            OrderError::Duration(millis) => {
                write!(f, "{millis} ms are out of range: more than 0 and at most {} s", DURATION_MAX.as_secs())
            }
            OrderError::Rate => write!(f, "the rate is no number of bits a second between 0 and {RATE_MAX:.0}"),
            OrderError::TooSlow => {
                write!(
                    f,
                    "the rate is less than one message a stream in the time: raise the rate or the time, or lower the size"
                )
            }
            OrderError::ReceiveBuffer(bytes) => {
                write!(f, "a receive buffer of {bytes} B is out of range: 1 to {RECEIVE_BUFFER_MAX} B")
            }
            OrderError::SegmentMtu(mtu) => write!(f, "an MTU of {mtu} B is out of range: {MTU_MIN} to {MTU_MAX} B"),
        }
    }
}

impl std::error::Error for OrderError {}

/// The longest payload of a UDP datagram in bytes that one packet of `mtu_bytes` carries to `destination`.
pub fn datagram_payload(mtu_bytes: u32, destination: IpAddr) -> usize {
    thalweg_transport::stream::payload_max(mtu_bytes, destination)
}

/// The version of the conversation that this program speaks.
pub const VERSION: u32 = 1;
/// The most streams of one measurement. Chosen here: each costs two threads and a receive buffer.
pub const STREAMS_MAX: u32 = 64;
/// The longest measurement: an hour. Chosen here; one object of figures a second is kept.
pub const DURATION_MAX: Duration = Duration::from_secs(3_600);
/// The highest rate in bits a second that a schedule is made for.
pub const RATE_MAX: f64 = 1e12;
/// The shortest datagram: its header. Ethernet's shortest frame carries 18 bytes, so none is shorter on its wire.
pub const UDP_SIZE_MIN: u32 = HEADER_BYTES as u32;
/// The longest payload of a UDP datagram over IPv4 (RFC 768).
const UDP_SIZE_MAX: u32 = 65_507;
/// The longest TCP message. Chosen here: a buffer of this size is held for each stream.
pub const TCP_SIZE_MAX: u32 = 16 << 20;
/// The most that messages of all streams take in memory. Chosen here: a stranger's order costs no more.
const MEMORY_MAX: u64 = 128 << 20;
/// The largest receive buffer. Chosen here: twice that of the paper on HDTV over 10-gigabit Ethernet (Jo et al., 2006).
const RECEIVE_BUFFER_MAX: u32 = 1 << 28;
/// The least MTU of IPv4 that a TCP segment size is set for, Linux's own least (RFC 791 §3.2 allows 68), and the largest.
const MTU_MIN: u32 = 128;
const MTU_MAX: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> ProbeOrder {
        ProbeOrder {
            version: VERSION,
            protocol: ProbeProtocol::Udp,
            shape: Shape::Stream { direction: StreamDirection::ToServer, rate_bit_per_s: None },
            size_bytes: 1472,
            streams: 1,
            duration_ms: 1_000,
            joining: Joining::Both,
            fragments: Fragments::Refused,
            receive_buffer_bytes: None,
            segment_mtu_bytes: None,
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut ProbeOrder), expect: Result<(), OrderError>) {
        let mut changed = order();
        change(&mut changed);
        assert_eq!(changed.checked().map(drop), expect);
    }

    fn rate(rate: f64) -> Shape {
        Shape::Stream { direction: StreamDirection::ToServer, rate_bit_per_s: Some(rate) }
    }

    #[test]
    fn every_figure_has_its_bounds() {
        check(|_| (), Ok(()));
        check(|order| order.version = 0, Err(OrderError::Version(0)));
        check(|order| order.size_bytes = 15, Err(OrderError::Size(15)));
        check(|order| order.size_bytes = 16, Ok(()));
        check(|order| order.size_bytes = 65_508, Err(OrderError::Size(65_508)));
        check(|order| order.streams = 0, Err(OrderError::Streams(0)));
        check(|order| order.streams = 65, Err(OrderError::Streams(65)));
        let large = |streams| {
            move |order: &mut ProbeOrder| {
                (order.protocol, order.size_bytes, order.streams) = (ProbeProtocol::Tcp, TCP_SIZE_MAX, streams);
            }
        };
        check(large(8), Ok(()));
        check(large(9), Err(OrderError::Memory));
        check(|order| order.duration_ms = 0, Err(OrderError::Duration(0)));
        check(|order| order.duration_ms = u64::MAX, Err(OrderError::Duration(u64::MAX)));
        check(|order| order.receive_buffer_bytes = Some(u32::MAX), Err(OrderError::ReceiveBuffer(u32::MAX)));
        check(|order| order.segment_mtu_bytes = Some(40), Err(OrderError::SegmentMtu(40)));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e12] {
            check(|order| order.shape = rate(bad), Err(OrderError::Rate));
        }
        check(|order| order.shape = rate(11_775.0), Err(OrderError::TooSlow));
        check(|order| order.shape = rate(11_776.0), Ok(()));
        check(|order| (order.protocol, order.size_bytes) = (ProbeProtocol::Tcp, TCP_SIZE_MAX), Ok(()));
        let big = TCP_SIZE_MAX + 1;
        check(|order| (order.protocol, order.size_bytes) = (ProbeProtocol::Tcp, big), Err(OrderError::Size(big)));
    }
}
