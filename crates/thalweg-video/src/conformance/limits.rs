//! What ST 2110-21 allows a stream.

use std::time::Duration;

use super::PacingKind;
use crate::format::{FrameRate, Scan, VideoFormat};

/// The most packets of a frame: 8K RGB in packets of 1,200 octets has 83,000.
pub const PACKETS_MAX: u32 = 1 << 17;
/// Octets of the headers of IPv4 and UDP.
const HEADERS_OCTETS: usize = 28;
/// The IP packet that ST 2110-21 assumes where none is larger.
const STANDARD_IP_OCTETS: u16 = 1500;

/// The frames of a stream as the models see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePacing {
    rate: FrameRate,
    packets: u32,
    scan: Scan,
    height: u16,
    ip_octets_max: u16,
}

/// Why the models do not fit a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingRefusal {
    /// A frame has no packets or more than [`PACKETS_MAX`].
    Packets(u32),
    /// Two fields do not have an equal number of packets.
    Fields(u32),
    /// The largest IP packet is shorter than its headers.
    Octets(u16),
}

impl std::fmt::Display for PacingRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PacingRefusal::Packets(packets) => write!(f, "a frame has {packets} packets instead of 1 to {PACKETS_MAX}"),
            PacingRefusal::Fields(packets) => write!(f, "{packets} packets of a frame do not make two equal fields"),
            PacingRefusal::Octets(octets) => write!(f, "an IP packet of {octets} octets holds no RTP packet"),
        }
    }
}

impl std::error::Error for PacingRefusal {}

impl FramePacing {
    /// The pacing of a stream with `packets` for each frame, or for both fields of one, in IP packets of at most
    /// `ip_octets_max`; 1,500 unless the stream uses larger ones.
    ///
    /// # Errors
    /// No packets or too many, an odd number for two fields, or IP packets that hold no RTP packet.
    pub fn new(
        rate: FrameRate,
        packets: u32,
        scan: Scan,
        height: u16,
        ip_octets_max: u16,
    ) -> Result<FramePacing, PacingRefusal> {
        if packets == 0 || packets > PACKETS_MAX {
            return Err(PacingRefusal::Packets(packets));
        }
        if !packets.is_multiple_of(scan.fields().into()) {
            return Err(PacingRefusal::Fields(packets));
        }
        // Headers of IPv4, UDP and RTP.
        if ip_octets_max < 40 {
            return Err(PacingRefusal::Octets(ip_octets_max));
        }
        Ok(FramePacing { rate, packets, scan, height, ip_octets_max })
    }

    /// As [`FramePacing::new`] for frames of `format` in UDP datagrams of at most `datagram_octets` over IPv4.
    ///
    /// # Errors
    /// As there.
    pub fn of(format: VideoFormat, packets: u32, datagram_octets: usize) -> Result<FramePacing, PacingRefusal> {
        let ip_octets = u16::try_from(datagram_octets + HEADERS_OCTETS).unwrap_or(u16::MAX).max(STANDARD_IP_OCTETS);
        FramePacing::new(format.rate(), packets, format.scan(), format.height(), ip_octets)
    }

    /// Packets of a frame.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Frames a second.
    pub fn rate(&self) -> FrameRate {
        self.rate
    }

    /// Nanoseconds of a frame: T_FRAME.
    pub fn frame_nanos(&self) -> f64 {
        1e9 * f64::from(self.rate.denominator()) / f64::from(self.rate.numerator())
    }

    /// Nanoseconds between the reads of two packets: T_RS. Narrow senders leave out the blanking of SDI (R_ACTIVE).
    pub fn packet_nanos(&self, kind: PacingKind) -> f64 {
        let spacing = self.frame_nanos() / f64::from(self.packets);
        match kind {
            PacingKind::Narrow => {
                let (lines, total) = self.active();
                spacing * lines as f64 / total as f64
            }
            PacingKind::NarrowLinear | PacingKind::Wide => spacing,
        }
    }

    /// Nanoseconds in which the network model passes a packet on: T_DRAIN, a tenth faster than the mean (β = 1.1).
    pub fn drain_nanos(&self) -> f64 {
        self.frame_nanos() / f64::from(self.packets) / 1.1
    }

    /// Nanoseconds from the first read of a frame to that of packet `packet`: T_PR of the packet, relative to that of the first.
    pub fn read_nanos(&self, kind: PacingKind, packet: u32) -> f64 {
        let (part, _) = self.parts(kind);
        let index = packet / part;
        f64::from(index) * self.frame_nanos() / 2.0 + f64::from(packet - index * part) * self.packet_nanos(kind)
    }

    /// The packets that are read one after the other without a gap, and how many such parts a frame has: with the gaps of SDI,
    /// the second field begins half a frame time after the first.
    pub(super) fn parts(&self, kind: PacingKind) -> (u32, u32) {
        let parts = if kind == PacingKind::Narrow { u32::from(self.scan.fields()) } else { 1 };
        (self.packets / parts, parts)
    }

    /// C_MAX: the burst in packets that a sender of a kind may give to the network.
    pub fn burst_max(&self, kind: PacingKind) -> u32 {
        match kind {
            PacingKind::Narrow => {
                let (lines, total) = self.active();
                self.share(43_200 * lines, total).max(4)
            }
            PacingKind::NarrowLinear => self.share(43_200, 1).max(4),
            PacingKind::Wide => self.share(21_600, 1).max(16),
        }
    }

    /// VRX_FULL: the packets that a receiver of a kind holds.
    pub fn buffer_max(&self, kind: PacingKind) -> u32 {
        let octets = u32::from(self.ip_octets_max);
        match kind {
            PacingKind::Narrow | PacingKind::NarrowLinear => self.share(27_000, 1).max(1500 * 8 / octets),
            PacingKind::Wide => self.share(300, 1).max(1500 * 720 / octets),
        }
    }

    /// TRO_DEFAULT: the time from the beginning of a frame to the first read, as SDI would have it.
    pub fn default_offset(&self) -> Duration {
        let (lines, total) = match (self.scan, self.height) {
            (Scan::Progressive, 1080..) => (43, 1125),
            (Scan::Progressive, _) => (28, 750),
            (_, ..=486) => (20, 525),
            (_, 487..=576) => (26, 625),
            _ => (22, 1125),
        };
        Duration::from_nanos((self.frame_nanos() * f64::from(lines) / f64::from(total)).round() as u64)
    }

    /// R_ACTIVE as lines with picture and all lines.
    fn active(&self) -> (u64, u64) {
        match (self.scan, self.height) {
            (Scan::Progressive, _) => (1080, 1125),
            (_, ..=486) => (487, 525),
            (_, 487..=576) => (576, 625),
            _ => (1080, 1125),
        }
    }

    /// Whole packets in `part / multiplier` seconds: N_PACKETS · part / (multiplier · T_FRAME).
    fn share(&self, multiplier: u64, part: u64) -> u32 {
        let packets = u128::from(self.packets) * u128::from(self.rate.numerator()) * u128::from(part);
        let share = packets / (u128::from(multiplier) * u128::from(self.rate.denominator()));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}
