//! Forms of audio.

use std::time::Duration;

use crate::rtp::HEADER_OCTETS;
use crate::sdp::{AudioDescription, AudioEncoding};

/// Samples a second of each channel; also the rate of time stamps.
pub const SAMPLE_RATE_HZ: u32 = 48_000;

/// The most channels: what a packet of 1 ms in 24 bits holds at MTU 1500 (ST 2110-30, level A).
pub const CHANNELS_MAX: u8 = 8;

/// Time in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketTime {
    /// 1 ms, 48 samples a channel: level A of ST 2110-30, and the default of AES67.
    Millisecond,
    /// 125 µs, 6 samples a channel: level B of ST 2110-30.
    EighthMillisecond,
}

impl PacketTime {
    /// Samples of each channel in a packet.
    pub const fn frames(self) -> usize {
        match self {
            PacketTime::Millisecond => 48,
            PacketTime::EighthMillisecond => 6,
        }
    }

    /// The time itself.
    pub const fn duration(self) -> Duration {
        match self {
            PacketTime::Millisecond => Duration::from_millis(1),
            PacketTime::EighthMillisecond => Duration::from_micros(125),
        }
    }
}

/// A form of audio at 48 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AudioFormat {
    encoding: AudioEncoding,
    channels: u8,
    packet_time: PacketTime,
}

/// Why a form of audio is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioRefusal {
    /// The number of channels is not from 1 to [`CHANNELS_MAX`].
    Channels(u8),
    /// The rate is not 48 kHz.
    Rate(u32),
    /// The time in a packet is neither 1 ms nor 125 µs.
    PacketTime(Duration),
}

impl std::fmt::Display for AudioRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AudioRefusal::Channels(channels) => {
                write!(f, "audio of {channels} channels instead of 1 to {CHANNELS_MAX}")
            }
            AudioRefusal::Rate(rate_hz) => write!(f, "audio of {rate_hz} samples a second instead of {SAMPLE_RATE_HZ}"),
            AudioRefusal::PacketTime(time) => write!(f, "audio packets of {time:?} instead of 1 ms or 125 µs"),
        }
    }
}

impl std::error::Error for AudioRefusal {}

impl AudioFormat {
    /// A form of audio.
    ///
    /// # Errors
    /// The number of channels is not from 1 to [`CHANNELS_MAX`].
    pub fn new(encoding: AudioEncoding, channels: u8, packet_time: PacketTime) -> Result<AudioFormat, AudioRefusal> {
        if !(1..=CHANNELS_MAX).contains(&channels) {
            return Err(AudioRefusal::Channels(channels));
        }
        Ok(AudioFormat { encoding, channels, packet_time })
    }

    /// The form that a session description tells; 1 ms when it tells no time. A time counts by the samples that it rounds to,
    /// since descriptions write 0.12 for 125 µs.
    ///
    /// # Errors
    /// The rate, the channels or the time are none of this crate's.
    pub fn from_description(description: &AudioDescription) -> Result<AudioFormat, AudioRefusal> {
        if description.rate_hz != SAMPLE_RATE_HZ {
            return Err(AudioRefusal::Rate(description.rate_hz));
        }
        let time = description.packet_time.unwrap_or(PacketTime::Millisecond.duration());
        let frames = (time.as_nanos() * u128::from(SAMPLE_RATE_HZ) + 500_000_000) / 1_000_000_000;
        let packet_time = match frames {
            48 => PacketTime::Millisecond,
            6 => PacketTime::EighthMillisecond,
            _ => return Err(AudioRefusal::PacketTime(time)),
        };
        AudioFormat::new(description.encoding, description.channels, packet_time)
    }

    /// What a session description tells of it.
    pub fn to_description(&self) -> AudioDescription {
        AudioDescription {
            encoding: self.encoding,
            rate_hz: SAMPLE_RATE_HZ,
            channels: self.channels,
            packet_time: Some(self.packet_time.duration()),
            channel_order: None,
        }
    }

    /// Octets of a sample.
    pub const fn encoding(&self) -> AudioEncoding {
        self.encoding
    }

    /// Channels.
    pub const fn channels(&self) -> usize {
        self.channels as usize
    }

    /// Time in a packet.
    pub const fn packet_time(&self) -> PacketTime {
        self.packet_time
    }

    /// Octets of a packet with its header of RTP.
    pub const fn datagram_octets(&self) -> usize {
        HEADER_OCTETS + self.packet_time.frames() * self.frame_octets()
    }

    /// Octets of one sample of every channel.
    pub const fn frame_octets(&self) -> usize {
        self.encoding.octets() * self.channels()
    }
}
