//! What a session description says of linear audio.

use std::time::Duration;

use super::error::SdpFault;
use super::fmtp::{Parameters, digits, milliseconds};

/// Octets of a sample, the most significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudioEncoding {
    /// 16 bits (RFC 3551 §4.5.11).
    L16,
    /// 24 bits (RFC 3190 §4).
    L24,
}

impl AudioEncoding {
    /// The name in a session description.
    pub const fn word(self) -> &'static str {
        match self {
            AudioEncoding::L16 => "L16",
            AudioEncoding::L24 => "L24",
        }
    }

    /// Octets of a sample.
    pub const fn octets(self) -> usize {
        match self {
            AudioEncoding::L16 => 2,
            AudioEncoding::L24 => 3,
        }
    }
}

/// Linear audio (RFC 3190, AES67, ST 2110-30).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioDescription {
    /// Octets of a sample.
    pub encoding: AudioEncoding,
    /// Samples a second of each channel, 8,000 to 192,000; also the rate of the time stamps.
    pub rate_hz: u32,
    /// Channels, 1 to 64.
    pub channels: u8,
    /// `ptime`: time in a packet; none when the description does not tell. AES67 requires 1 ms.
    pub packet_time: Option<Duration>,
    /// `channel-order`, such as `SMPTE2110.(ST)` (ST 2110-30).
    pub channel_order: Option<String>,
}

impl AudioDescription {
    /// Reads an encoding of `rtpmap` with its clock rate and channels; none if it is no linear audio.
    pub(super) fn read(
        mapping: &RtpMapping<'_>,
        parameters: &Parameters<'_>,
        ptime: Option<&str>,
    ) -> Result<Option<AudioDescription>, SdpFault> {
        let encoding = match mapping.encoding {
            name if name.eq_ignore_ascii_case("L16") => AudioEncoding::L16,
            name if name.eq_ignore_ascii_case("L24") => AudioEncoding::L24,
            _ => return Ok(None),
        };
        if !(8_000..=192_000).contains(&mapping.rate_hz) {
            return Err(SdpFault::invalid("rtpmap", mapping.text, "a rate from 8000 to 192000 samples a second"));
        }
        let channels = mapping.channels.map_or(Some(1), digits).filter(|channels| (1..=64).contains(channels));
        let channels = channels.and_then(|channels| channels.try_into().ok());
        Ok(Some(AudioDescription {
            encoding,
            rate_hz: mapping.rate_hz,
            channels: channels.ok_or_else(|| SdpFault::invalid("rtpmap", mapping.text, "1 to 64 channels"))?,
            packet_time: ptime.map(|text| milliseconds("ptime", text)).transpose()?,
            channel_order: parameters.value("channel-order")?.map(str::to_owned),
        }))
    }
}

/// The parts of `rtpmap` behind the payload type: `encoding/rate/channels` (RFC 8866 §6.6).
#[derive(Clone, Copy, Debug)]
pub(super) struct RtpMapping<'a> {
    pub(super) encoding: &'a str,
    pub(super) rate_hz: u32,
    pub(super) channels: Option<&'a str>,
    /// All of it, for refusals.
    pub(super) text: &'a str,
}

impl<'a> RtpMapping<'a> {
    pub(super) fn parse(text: &'a str) -> Result<RtpMapping<'a>, SdpFault> {
        let mut parts = text.trim().splitn(3, '/');
        let (encoding, rate) = (parts.next().unwrap_or_default(), parts.next().and_then(digits));
        let rate_hz = rate.filter(|rate| *rate > 0);
        let rate_hz = rate_hz.ok_or_else(|| SdpFault::invalid("rtpmap", text, "encoding/rate, such as raw/90000"))?;
        Ok(RtpMapping { encoding, rate_hz, channels: parts.next(), text })
    }
}
