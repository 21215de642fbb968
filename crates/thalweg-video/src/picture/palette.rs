//! Colours as pixel groups.

use crate::format::PixelFormat;

/// A colour in both forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Colour {
    /// Y, Cb and Cr with 10 bits in the narrow range of BT.709.
    ycbcr: [u16; 3],
    rgb: [u8; 3],
}

impl Colour {
    /// 75 % colour bars, from left to right (SMPTE RP 219).
    pub(super) const BARS: [Colour; 8] = [
        Colour { ycbcr: [721, 512, 512], rgb: [191, 191, 191] },
        Colour { ycbcr: [674, 176, 543], rgb: [191, 191, 0] },
        Colour { ycbcr: [581, 589, 176], rgb: [0, 191, 191] },
        Colour { ycbcr: [534, 253, 207], rgb: [0, 191, 0] },
        Colour { ycbcr: [251, 771, 817], rgb: [191, 0, 191] },
        Colour { ycbcr: [204, 435, 848], rgb: [191, 0, 0] },
        Colour { ycbcr: [111, 848, 481], rgb: [0, 0, 191] },
        Colour::BLACK,
    ];
    pub(super) const BLACK: Colour = Colour { ycbcr: [64, 512, 512], rgb: [0, 0, 0] };
    pub(super) const WHITE: Colour = Colour { ycbcr: [940, 512, 512], rgb: [255, 255, 255] };

    /// One group of this colour; the first octets of the format count.
    pub(super) fn group(self, pixels: PixelFormat) -> [u8; 5] {
        let [y, cb, cr] = self.ycbcr;
        match pixels {
            PixelFormat::Yuv422Bits10 => {
                let word = [cb, y, cr, y].into_iter().fold(0_u64, |word, part| word << 10 | u64::from(part));
                let [_, _, _, group @ ..] = word.to_be_bytes();
                group
            }
            PixelFormat::Yuv422Bits8 => [eight(cb), eight(y), eight(cr), eight(y), 0],
            PixelFormat::Rgb8 => [self.rgb[0], self.rgb[1], self.rgb[2], 0, 0],
        }
    }
}

/// The upper 8 bits of 10.
fn eight(part: u16) -> u8 {
    (part >> 2) as u8
}
