//! RTCP: reports, descriptions and farewells (RFC 3550), extended reports of round-trip times (RFC 3611), and requests for
//! packets (RFC 4585).
//!
//! [`RtcpPackets`] reads a datagram, [`CompoundWriter`] writes one, and [`RtcpSession`] is one participant of an RTP session as
//! a state machine. Deliberately absent: the bandwidth rule of RFC 3550 §6.2, which at a gigabit a second means nothing
//! (reports come at a fixed interval), loss and duplicate lists of RFC 3611, and encryption.

mod clock;
mod event;
mod identity;
mod losses;
mod packet;
mod peers;
mod read;
mod session;
#[cfg(test)]
mod tests;
mod write;

pub use clock::{MediaClock, NtpTime, WallClock};
pub use event::{LocalStreams, RtcpConfig, RtcpCounters, RtcpEvent, SentStream};
pub use losses::ReceivedStream;
pub use packet::{
    Dlrr, NACK_ENTRIES_MAX, NackEntry, ReportBlock, RtcpPacket, SDES_CNAME, SDES_TOOL, SenderInfo, XrBlock, pack_nack,
};
pub use peers::{PEERS_MAX, RtcpPeer};
pub use read::{Delays, NackEntries, ReportBlocks, RtcpError, RtcpPackets, SdesItem, SdesItems, Sources, XrBlocks};
pub use session::RtcpSession;
pub use write::CompoundWriter;
