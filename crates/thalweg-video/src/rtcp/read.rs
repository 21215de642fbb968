//! Reading RTCP datagrams: nothing is copied, and what a datagram claims is checked before it is believed.

use super::clock::NtpTime;
use super::packet::{Dlrr, NACK_ENTRIES_MAX, NackEntry, ReportBlock, RtcpPacket, SenderInfo, XrBlock};
use super::packet::{PT_BYE, PT_RECEIVER_REPORT, PT_SDES, PT_SENDER_REPORT, PT_TRANSPORT_FEEDBACK, PT_XR};

/// Why octets are no RTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtcpError {
    /// The datagram or a packet in it ends early, or octets follow the last packet.
    Length {
        /// Octets before the packet that does not fit.
        offset: usize,
    },
    /// The version is not 2.
    Version {
        /// The version found.
        version: u8,
    },
    /// A packet other than the last has padding, or padding is longer than its packet (RFC 3550 §6.4.1).
    Padding,
    /// The contents of a packet do not fit its length.
    Contents {
        /// The packet type.
        packet_type: u8,
    },
}

impl std::fmt::Display for RtcpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RtcpError::Length { offset } => write!(f, "the RTCP packet at octet {offset} does not fit its datagram"),
            RtcpError::Version { version } => write!(f, "the RTCP packet has version {version} instead of 2"),
            RtcpError::Padding => f.write_str("the padding of an RTCP packet is out of place"),
            RtcpError::Contents { packet_type } => {
                write!(f, "the contents of an RTCP packet of type {packet_type} do not fit its length")
            }
        }
    }
}

impl std::error::Error for RtcpError {}

/// The packets of a datagram, each with its own verdict: a malformed one does not hide its neighbours.
///
/// Compound packets and reduced-size ones (RFC 5506) are read alike.
#[derive(Clone, Debug)]
pub struct RtcpPackets<'a> {
    rest: &'a [u8],
}

impl<'a> RtcpPackets<'a> {
    /// Checks that the packets fill the datagram, with version 2 and padding in the last one only (RFC 3550 A.2).
    ///
    /// # Errors
    /// [`RtcpError::Length`], [`RtcpError::Version`] or [`RtcpError::Padding`]; then nothing in the datagram counts.
    pub fn parse(datagram: &'a [u8]) -> Result<RtcpPackets<'a>, RtcpError> {
        let mut offset = 0;
        loop {
            let rest = &datagram[offset..];
            let Some((&header, body)) = rest.split_first_chunk::<4>() else { return Err(RtcpError::Length { offset }) };
            if header[0] >> 6 != 2 {
                return Err(RtcpError::Version { version: header[0] >> 6 });
            }
            let length = usize::from(u16::from_be_bytes([header[2], header[3]])) * 4;
            if body.len() < length {
                return Err(RtcpError::Length { offset });
            }
            offset += 4 + length;
            let has_padding = header[0] & 0x20 != 0;
            if offset == datagram.len() {
                let padding = if has_padding { usize::from(datagram[offset - 1]) } else { 0 };
                let is_sound = !has_padding || (padding > 0 && padding <= length);
                return if is_sound { Ok(RtcpPackets { rest: datagram }) } else { Err(RtcpError::Padding) };
            }
            if has_padding {
                return Err(RtcpError::Padding);
            }
        }
    }
}

impl<'a> Iterator for RtcpPackets<'a> {
    type Item = Result<RtcpPacket<'a>, RtcpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&header, rest) = self.rest.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]])) * 4;
        let (body, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        let padding = if header[0] & 0x20 != 0 { body.last().map_or(0, |last| usize::from(*last)) } else { 0 };
        let body = &body[..body.len().saturating_sub(padding)];
        let packet = packet(header[0] & 0x1f, header[1], body);
        Some(packet.ok_or(RtcpError::Contents { packet_type: header[1] }))
    }
}

/// One packet without its header of four octets and its padding; none when the contents do not fit.
fn packet(count: u8, packet_type: u8, body: &[u8]) -> Option<RtcpPacket<'_>> {
    match packet_type {
        PT_SENDER_REPORT => {
            let (ssrc, rest) = word(body)?;
            let (info, rest) = rest.split_first_chunk::<20>()?;
            Some(RtcpPacket::SenderReport { ssrc, info: sender_info(info), reports: reports(count, rest)? })
        }
        PT_RECEIVER_REPORT => {
            let (ssrc, rest) = word(body)?;
            Some(RtcpPacket::ReceiverReport { ssrc, reports: reports(count, rest)? })
        }
        PT_SDES => {
            check_chunks(count, body)?;
            Some(RtcpPacket::SourceDescription(SdesItems { rest: body, chunks: count, ssrc: None }))
        }
        PT_BYE => {
            let (sources, rest) = body.split_at_checked(usize::from(count) * 4)?;
            let reason = match rest.split_first() {
                Some((&length, text)) => Some(text.get(..usize::from(length))?),
                None => None,
            };
            Some(RtcpPacket::Bye { sources: Sources(sources), reason })
        }
        PT_XR => {
            let (ssrc, blocks) = word(body)?;
            check_blocks(blocks)?;
            Some(RtcpPacket::ExtendedReport { ssrc, blocks: XrBlocks(blocks) })
        }
        PT_TRANSPORT_FEEDBACK if count == 1 => {
            let (sender, rest) = word(body)?;
            let (media, entries) = word(rest)?;
            let entries = &entries[..entries.len().min(NACK_ENTRIES_MAX * 4)];
            Some(RtcpPacket::Nack { sender, media, entries: NackEntries(entries) })
        }
        _ => Some(RtcpPacket::Other { count, packet_type, body }),
    }
}

fn word(octets: &[u8]) -> Option<(u32, &[u8])> {
    octets.split_first_chunk::<4>().map(|(word, rest)| (u32::from_be_bytes(*word), rest))
}

fn word_at(octets: &[u8], index: usize) -> u32 {
    octets.get(index * 4..).and_then(word).map_or(0, |(word, _)| word)
}

fn sender_info(octets: &[u8; 20]) -> SenderInfo {
    SenderInfo {
        ntp: NtpTime((u64::from(word_at(octets, 0)) << 32) | u64::from(word_at(octets, 1))),
        rtp: word_at(octets, 2),
        packets: word_at(octets, 3),
        octets: word_at(octets, 4),
    }
}

/// The report blocks at the beginning of `octets`; a profile's extension may follow them (RFC 3550 §6.4.3).
fn reports(count: u8, octets: &[u8]) -> Option<ReportBlocks<'_>> {
    octets.get(..usize::from(count) * ReportBlock::OCTETS).map(ReportBlocks)
}

/// The report blocks of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportBlocks<'a>(&'a [u8]);

impl Iterator for ReportBlocks<'_> {
    type Item = ReportBlock;

    fn next(&mut self) -> Option<ReportBlock> {
        let (block, rest) = self.0.split_first_chunk::<{ ReportBlock::OCTETS }>()?;
        self.0 = rest;
        Some(ReportBlock {
            ssrc: word_at(block, 0),
            fraction_lost: block[4],
            // The sign of 24 bits is that of the upper ones of 32: more received than expected is negative.
            cumulative_lost: (word_at(block, 1) << 8) as i32 >> 8,
            highest_sequence: word_at(block, 2),
            jitter: word_at(block, 3),
            last_sender_report: word_at(block, 4),
            delay_since_last: word_at(block, 5),
        })
    }
}

/// The sources that a BYE names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources<'a>(&'a [u8]);

impl Iterator for Sources<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (source, rest) = word(self.0)?;
        self.0 = rest;
        Some(source)
    }
}

/// One item of a source description (RFC 3550 §6.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdesItem<'a> {
    /// The source described.
    pub ssrc: u32,
    /// The kind of item: 1 is the canonical name, 6 the tool.
    pub kind: u8,
    /// Text, which should be UTF-8.
    pub text: &'a [u8],
}

/// The items of all chunks of a source description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdesItems<'a> {
    rest: &'a [u8],
    chunks: u8,
    ssrc: Option<u32>,
}

impl<'a> Iterator for SdesItems<'a> {
    type Item = SdesItem<'a>;

    fn next(&mut self) -> Option<SdesItem<'a>> {
        loop {
            let Some(ssrc) = self.ssrc else {
                self.chunks = self.chunks.checked_sub(1)?;
                let (ssrc, rest) = word(self.rest)?;
                (self.ssrc, self.rest) = (Some(ssrc), rest);
                continue;
            };
            match sdes_item(self.rest)? {
                (Some((kind, text)), rest) => {
                    self.rest = rest;
                    return Some(SdesItem { ssrc, kind, text });
                }
                (None, rest) => (self.ssrc, self.rest) = (None, rest),
            }
        }
    }
}

/// The next item of a chunk with what follows, or the end of the chunk with what follows its filling.
///
/// Items count from a multiple of four octets only together, so the octets left tell where the chunk ends: the packet and all
/// chunks are multiples of four long.
type NextItem<'a> = (Option<(u8, &'a [u8])>, &'a [u8]);

fn sdes_item(octets: &[u8]) -> Option<NextItem<'_>> {
    let (&kind, rest) = octets.split_first()?;
    if kind == 0 {
        let filling = match octets.len() % 4 {
            0 => 4,
            odd => odd,
        };
        return Some((None, &octets[filling..]));
    }
    let (&length, rest) = rest.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(length))?;
    Some((Some((kind, text)), rest))
}

/// Whether each chunk of a source description ends within it.
fn check_chunks(count: u8, body: &[u8]) -> Option<()> {
    if !body.len().is_multiple_of(4) {
        return None; // Padding that is no multiple of four: the ends of chunks could not be told.
    }
    let mut rest = body;
    for _ in 0..count {
        rest = word(rest)?.1;
        loop {
            let (item, following) = sdes_item(rest)?;
            rest = following;
            if item.is_none() {
                break;
            }
        }
    }
    Some(())
}

/// The blocks of an extended report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XrBlocks<'a>(&'a [u8]);

impl<'a> Iterator for XrBlocks<'a> {
    type Item = XrBlock<'a>;

    fn next(&mut self) -> Option<XrBlock<'a>> {
        let (kind, body, rest) = xr_block(self.0)?;
        self.0 = rest;
        Some(match kind {
            XrBlock::REFERENCE_TIME if body.len() == 8 => {
                let ntp = (u64::from(word_at(body, 0)) << 32) | u64::from(word_at(body, 1));
                XrBlock::ReferenceTime(NtpTime(ntp))
            }
            XrBlock::DLRR if body.len().is_multiple_of(Dlrr::OCTETS) => XrBlock::Delays(Delays(body)),
            _ => XrBlock::Other { kind, body },
        })
    }
}

fn xr_block(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = octets.split_first_chunk::<4>()?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]])) * 4;
    let (body, rest) = rest.split_at_checked(length)?;
    Some((header[0], body, rest))
}

/// Whether the blocks fill an extended report.
fn check_blocks(mut octets: &[u8]) -> Option<()> {
    while !octets.is_empty() {
        octets = xr_block(octets)?.2;
    }
    Some(())
}

/// The answers to reference times in an extended report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays<'a>(&'a [u8]);

impl Iterator for Delays<'_> {
    type Item = Dlrr;

    fn next(&mut self) -> Option<Dlrr> {
        let (entry, rest) = self.0.split_first_chunk::<{ Dlrr::OCTETS }>()?;
        self.0 = rest;
        Some(Dlrr { ssrc: word_at(entry, 0), last_report: word_at(entry, 1), delay_since_last: word_at(entry, 2) })
    }
}

/// The entries of a generic NACK, at most [`NACK_ENTRIES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NackEntries<'a>(&'a [u8]);

impl Iterator for NackEntries<'_> {
    type Item = NackEntry;

    fn next(&mut self) -> Option<NackEntry> {
        let (entry, rest) = word(self.0)?;
        self.0 = rest;
        Some(NackEntry { first: (entry >> 16) as u16, following: entry as u16 })
    }
}
