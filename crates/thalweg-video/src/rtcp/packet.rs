//! The packets of RTCP as values.

use super::clock::NtpTime;
use super::read::{Delays, NackEntries, ReportBlocks, SdesItems, Sources, XrBlocks};
use crate::receiver::NackItem;

pub(super) const PT_SENDER_REPORT: u8 = 200;
pub(super) const PT_RECEIVER_REPORT: u8 = 201;
pub(super) const PT_SDES: u8 = 202;
pub(super) const PT_BYE: u8 = 203;
pub(super) const PT_TRANSPORT_FEEDBACK: u8 = 205;
pub(super) const PT_XR: u8 = 207;

/// SDES: the canonical name, which stays when the SSRC changes (RFC 3550 §6.5.1).
pub const SDES_CNAME: u8 = 1;
/// SDES: name and version of the program (RFC 3550 §6.5.6).
pub const SDES_TOOL: u8 = 6;

/// How many entries of a generic NACK are read or written; each names up to 17 packets.
///
/// Chosen so that a NACK fits a datagram of 1,500 octets, and one cannot ask for more than 4,352 packets, a frame of
/// 1080p at MTU 1500.
pub const NACK_ENTRIES_MAX: usize = 256;

/// One packet of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RtcpPacket<'a> {
    /// What a sender sent, and what it receives (RFC 3550 §6.4.1).
    SenderReport {
        /// The sender.
        ssrc: u32,
        /// What it sent.
        info: SenderInfo,
        /// What it receives.
        reports: ReportBlocks<'a>,
    },
    /// What a receiver receives (RFC 3550 §6.4.2).
    ReceiverReport {
        /// The receiver.
        ssrc: u32,
        /// What it receives.
        reports: ReportBlocks<'a>,
    },
    /// Names of sources (RFC 3550 §6.5).
    SourceDescription(SdesItems<'a>),
    /// Sources that leave (RFC 3550 §6.6).
    Bye {
        /// The sources.
        sources: Sources<'a>,
        /// Why; text that should be UTF-8.
        reason: Option<&'a [u8]>,
    },
    /// An extended report (RFC 3611).
    ExtendedReport {
        /// The reporter.
        ssrc: u32,
        /// Its blocks.
        blocks: XrBlocks<'a>,
    },
    /// A request for packets: the generic NACK (RFC 4585 §6.2.1).
    Nack {
        /// Who asks.
        sender: u32,
        /// The stream asked for.
        media: u32,
        /// The packets asked for.
        entries: NackEntries<'a>,
    },
    /// Any other packet.
    Other {
        /// The five bits that mean a count or a format.
        count: u8,
        /// The packet type.
        packet_type: u8,
        /// What follows the header.
        body: &'a [u8],
    },
}

/// What a sender sent until its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderInfo {
    /// Wall-clock time of the report; zero when the sender has no clock.
    pub ntp: NtpTime,
    /// RTP time stamp at that time.
    pub rtp: u32,
    /// Packets sent since the start, modulo 2³².
    pub packets: u32,
    /// Octets of payload sent since the start, modulo 2³².
    pub octets: u32,
}

/// What a receiver says about one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportBlock {
    /// The stream.
    pub ssrc: u32,
    /// Share of packets lost since the report before, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start; negative when more came than were expected. Written within −2²³…2²³−1.
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the number of wraps in the upper half.
    pub highest_sequence: u32,
    /// Estimate of jitter in ticks of the stream's time stamp (RFC 3550 §6.4.1).
    pub jitter: u32,
    /// LSR: the middle of the NTP time in the last sender report received; zero without one.
    pub last_sender_report: u32,
    /// DLSR: the time since then in 1/65,536 s; zero without one.
    pub delay_since_last: u32,
}

impl ReportBlock {
    pub(super) const OCTETS: usize = 24;
}

/// One block of an extended report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XrBlock<'a> {
    /// RRTR: the wall-clock time of a receiver, to be answered by [`XrBlock::Delays`] (RFC 3611 §4.4).
    ReferenceTime(NtpTime),
    /// DLRR: answers to reference times (RFC 3611 §4.5).
    Delays(Delays<'a>),
    /// Any other block, or one of these with a wrong length.
    Other {
        /// The block type.
        kind: u8,
        /// What follows the block's header.
        body: &'a [u8],
    },
}

impl XrBlock<'_> {
    pub(super) const REFERENCE_TIME: u8 = 4;
    pub(super) const DLRR: u8 = 5;
}

/// One answer to a reference time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dlrr {
    /// The receiver that is answered.
    pub ssrc: u32,
    /// LRR: the middle of the NTP time in its last reference time; zero without one.
    pub last_report: u32,
    /// The time since then in 1/65,536 s.
    pub delay_since_last: u32,
}

impl Dlrr {
    pub(super) const OCTETS: usize = 12;
}

/// Up to 17 packets that are asked for: the first, and those of the 16 following whose bits are set (RFC 4585 §6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NackEntry {
    /// PID: the lower 16 bits of a sequence number.
    pub first: u16,
    /// BLP: bit `i` asks for `first + 1 + i`.
    pub following: u16,
}

impl NackEntry {
    /// The sequence numbers asked for, in order.
    pub fn sequence_numbers(self) -> impl Iterator<Item = u16> {
        let following = (0..16).filter(move |bit| self.following >> bit & 1 == 1);
        std::iter::once(self.first).chain(following.map(move |bit| self.first.wrapping_add(bit + 1)))
    }
}

impl From<NackItem> for NackEntry {
    fn from(item: NackItem) -> NackEntry {
        NackEntry { first: item.packet, following: item.following }
    }
}

/// Packs sequence numbers, in the order in which they were sent, into NACK entries, and returns how many were packed.
///
/// Appends to `entries` until they are [`NACK_ENTRIES_MAX`]. The order may wrap past 65,535; a number more than 16 away from
/// the first one of an entry begins the next entry.
pub fn pack_nack(numbers: &[u16], entries: &mut Vec<NackEntry>) -> usize {
    for (index, &number) in numbers.iter().enumerate() {
        let count = entries.len();
        match entries.last_mut().map(|last| (number.wrapping_sub(last.first), last)) {
            Some((0, _)) => {}
            Some((distance @ 1..=16, last)) => last.following |= 1 << (distance - 1),
            _ if count >= NACK_ENTRIES_MAX => return index,
            _ => entries.push(NackEntry { first: number, following: 0 }),
        }
    }
    numbers.len()
}
