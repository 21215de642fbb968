//! RTCP: reports, descriptions and farewells (RFC 3550), extended reports of round-trip times (RFC 3611), and requests for
//! packets (RFC 4585).
//!
//! [`RtcpPackets`] reads a datagram and [`CompoundWriter`] writes one.

mod clock;
mod packet;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use clock::{MediaClock, NtpTime, WallClock};
pub use packet::{
    Dlrr, NACK_ENTRIES_MAX, NackEntry, ReportBlock, RtcpPacket, SDES_CNAME, SDES_TOOL, SenderInfo, XrBlock, pack_nack,
};
pub use read::{Delays, NackEntries, ReportBlocks, RtcpError, RtcpPackets, SdesItem, SdesItems, Sources, XrBlocks};
pub use write::CompoundWriter;
