//! How pixels are packed into octets (RFC 4175 §4.3, the same in ST 2110-20).

use std::fmt;
use std::str::FromStr;

use super::FormatError;

/// The smallest number of pixels that fills whole octets ("pgroup"); packets are cut between groups only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelGroup {
    /// Octets of a group.
    pub octets: u16,
    /// Pixels in a group.
    pub pixels: u16,
}

/// How pixels lie in memory and on the wire, which is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// YCbCr 4:2:2 with 10 bits: Cb, Y0, Cr, Y1 in 5 octets, the most significant bit first ("UYVP").
    Yuv422Bits10,
    /// YCbCr 4:2:2 with 8 bits: Cb, Y0, Cr, Y1 in 4 octets ("UYVY").
    Yuv422Bits8,
    /// Red, green and blue with 8 bits in 3 octets.
    Rgb8,
}

impl PixelFormat {
    /// Every format.
    pub const ALL: [PixelFormat; 3] = [PixelFormat::Yuv422Bits10, PixelFormat::Yuv422Bits8, PixelFormat::Rgb8];

    /// The group that packets are cut at.
    pub const fn group(self) -> PixelGroup {
        match self {
            PixelFormat::Yuv422Bits10 => PixelGroup { octets: 5, pixels: 2 },
            PixelFormat::Yuv422Bits8 => PixelGroup { octets: 4, pixels: 2 },
            PixelFormat::Rgb8 => PixelGroup { octets: 3, pixels: 1 },
        }
    }

    /// Bits of a component.
    pub const fn depth(self) -> u8 {
        match self {
            PixelFormat::Yuv422Bits10 => 10,
            PixelFormat::Yuv422Bits8 | PixelFormat::Rgb8 => 8,
        }
    }

    /// The value of `sampling` in a session description (RFC 4175 §6).
    pub const fn sampling(self) -> &'static str {
        match self {
            PixelFormat::Yuv422Bits10 | PixelFormat::Yuv422Bits8 => "YCbCr-4:2:2",
            PixelFormat::Rgb8 => "RGB",
        }
    }

    /// The format of a session description's `sampling` and `depth`, if it is one of these.
    pub fn from_sampling(sampling: &str, depth: u8) -> Option<PixelFormat> {
        PixelFormat::ALL.into_iter().find(|format| format.sampling() == sampling && format.depth() == depth)
    }

    /// One group of black pixels, YCbCr in the narrow range of BT.709 and RGB in the full one; only the first [`PixelGroup::octets`]
    /// count.
    pub const fn black(self) -> [u8; 5] {
        match self {
            // Cb 512, Y 64, Cr 512, Y 64 with 10 bits each.
            PixelFormat::Yuv422Bits10 => [0x80, 0x04, 0x08, 0x00, 0x40],
            PixelFormat::Yuv422Bits8 => [128, 16, 128, 16, 0],
            PixelFormat::Rgb8 => [0; 5],
        }
    }
}

impl fmt::Display for PixelFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            PixelFormat::Yuv422Bits10 => "yuv422-10",
            PixelFormat::Yuv422Bits8 => "yuv422-8",
            PixelFormat::Rgb8 => "rgb8",
        })
    }
}

impl FromStr for PixelFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<PixelFormat, FormatError> {
        let found = PixelFormat::ALL.into_iter().find(|format| format.to_string() == text);
        found.ok_or(FormatError::Unreadable { what: "pixel format", expected: "yuv422-10, yuv422-8 or rgb8" })
    }
}
