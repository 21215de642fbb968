//! The RTP header (RFC 3550 §5.1), read and written.
//!
//! Own lines instead of the crate `rtp-types`: its writer builds a whole packet from borrowed parts, while a sender
//! here writes 12 octets before a piece of a frame that is never copied.

#[cfg(test)]
mod tests;

use std::fmt;

/// Octets of the header without contributing sources and extension, as this crate writes it.
pub const HEADER_OCTETS: usize = 12;
/// The largest payload type: 7 bits.
pub const PAYLOAD_TYPE_MAX: u8 = 127;

/// The fields of the fixed header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtpHeader {
    /// For video the last packet of a frame or field.
    pub marker: bool,
    /// 0 to 127; higher bits are not written.
    pub payload_type: u8,
    /// The lower 16 bits of the number of the packet.
    pub sequence: u16,
    /// For video ticks of 90 kHz, one value for a frame or field.
    pub timestamp: u32,
    /// The synchronization source.
    pub ssrc: u32,
}

impl RtpHeader {
    /// Writes version 2 without padding, extension and contributing sources.
    pub fn write(&self, out: &mut [u8; HEADER_OCTETS]) {
        out[0] = 2 << 6;
        out[1] = u8::from(self.marker) << 7 | self.payload_type & PAYLOAD_TYPE_MAX;
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
    }

    /// The header as octets.
    pub fn to_octets(&self) -> [u8; HEADER_OCTETS] {
        let mut octets = [0; HEADER_OCTETS];
        self.write(&mut octets);
        octets
    }
}

/// The extension of a header (RFC 3550 §5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpExtension<'a> {
    /// What the profile gives its meaning to.
    pub profile: u16,
    /// Whole words of 4 octets.
    pub data: &'a [u8],
}

/// A packet as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket<'a> {
    /// The fixed header.
    pub header: RtpHeader,
    /// Contributing sources: 0 to 15 words of 4 octets, see [`RtpPacket::contributors`].
    pub csrc: &'a [u8],
    /// The extension, if there is one.
    pub extension: Option<RtpExtension<'a>>,
    /// The payload without padding.
    pub payload: &'a [u8],
    /// Octets of padding after the payload, the count octet included; 0 without padding.
    pub padding: u8,
}

impl<'a> RtpPacket<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    ///
    /// The version is not 2, or a length leads beyond the end.
    pub fn parse(datagram: &'a [u8]) -> Result<RtpPacket<'a>, RtpError> {
        let (fixed, rest) = datagram.split_first_chunk::<HEADER_OCTETS>().ok_or(RtpError::Short)?;
        if fixed[0] >> 6 != 2 {
            return Err(RtpError::Version(fixed[0] >> 6));
        }
        let (csrc, rest) = rest.split_at_checked(4 * usize::from(fixed[0] & 0x0f)).ok_or(RtpError::Contributors)?;
        let (extension, rest) = if fixed[0] & 0x10 == 0 { (None, rest) } else { split_extension(rest)? };
        let padding = if fixed[0] & 0x20 == 0 { 0 } else { *rest.last().ok_or(RtpError::Padding)? };
        // A count of 0 would not count itself.
        if fixed[0] & 0x20 != 0 && padding == 0 {
            return Err(RtpError::Padding);
        }
        let end = rest.len().checked_sub(usize::from(padding)).ok_or(RtpError::Padding)?;
        let header = RtpHeader {
            marker: fixed[1] & 0x80 != 0,
            payload_type: fixed[1] & PAYLOAD_TYPE_MAX,
            sequence: u16::from_be_bytes([fixed[2], fixed[3]]),
            timestamp: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            ssrc: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        };
        Ok(RtpPacket { header, csrc, extension, payload: &rest[..end], padding })
    }

    /// The contributing sources.
    pub fn contributors(&self) -> impl Iterator<Item = u32> + 'a {
        self.csrc.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word))
    }
}

/// Whether a datagram of a port that RTP and RTCP share is RTCP (RFC 5761 §4).
pub fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [first, 192..=223, ..] if first >> 6 == 2)
}

fn split_extension(rest: &[u8]) -> Result<(Option<RtpExtension<'_>>, &[u8]), RtpError> {
    let ([profile_high, profile_low, high, low], rest) = rest.split_first_chunk::<4>().ok_or(RtpError::Extension)?;
    let words = usize::from(u16::from_be_bytes([*high, *low]));
    let (data, rest) = rest.split_at_checked(4 * words).ok_or(RtpError::Extension)?;
    Ok((Some(RtpExtension { profile: u16::from_be_bytes([*profile_high, *profile_low]), data }), rest))
}

/// Why a datagram is no RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtpError {
    /// It is shorter than the fixed header.
    Short,
    /// The version is not 2.
    Version(u8),
    /// The contributing sources lead beyond its end.
    Contributors,
    /// The header extension leads beyond its end.
    Extension,
    /// The padding is longer than the payload, or its count is 0.
    Padding,
}

impl fmt::Display for RtpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RtpError::Short => write!(formatter, "shorter than the {HEADER_OCTETS} octets of an RTP header"),
            RtpError::Version(version) => write!(formatter, "RTP version {version} instead of 2"),
            RtpError::Contributors => formatter.write_str("the contributing sources lead beyond the end"),
            RtpError::Extension => formatter.write_str("the header extension leads beyond the end"),
            RtpError::Padding => formatter.write_str("the padding does not fit the payload"),
        }
    }
}

impl std::error::Error for RtpError {}
