//! The code that each part of a line carries: the number of its frame and line, with a checksum, in the lowest four bits
//! of sixteen pixel groups.

use crate::format::PixelFormat;

/// Pixel groups that carry a code: four bits each.
pub(super) const CODE_GROUPS: usize = 16;
/// Pixels from one code to the next: each quarter of a line of 1920 pixels has two.
pub(super) const SEGMENT_PIXELS: usize = 240;

/// What a code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineCode {
    pub(super) number: u32,
    pub(super) line: u16,
}

impl LineCode {
    /// Writes the code into the first groups of a segment.
    pub(super) fn write(self, pixels: PixelFormat, segment: usize, octets: &mut [u8]) {
        let code = self.bits(segment);
        let (step, first) = (usize::from(pixels.group().octets), place(pixels));
        for (index, shift) in (0..64).step_by(4).rev().enumerate() {
            let octet = &mut octets[first + index * step];
            *octet = *octet & 0xf0 | (code >> shift & 0x0f) as u8;
        }
    }

    /// Reads the code of a segment; `None` if its checksum is wrong.
    pub(super) fn read(pixels: PixelFormat, segment: usize, octets: &[u8]) -> Option<LineCode> {
        let groups = octets.chunks_exact(usize::from(pixels.group().octets)).take(CODE_GROUPS);
        let bits = groups.fold(0_u64, |bits, group| bits << 4 | u64::from(group[place(pixels)] & 0x0f));
        let code = LineCode { number: (bits >> 32) as u32, line: (bits >> 16) as u16 };
        (code.bits(segment) == bits).then_some(code)
    }

    fn bits(self, segment: usize) -> u64 {
        let content = u64::from(self.number) << 32 | u64::from(self.line) << 16;
        content | u64::from(checksum(content | segment as u64))
    }
}

/// The octet of a group whose low bits carry the code: of the second luma sample, or of blue. Its low bits are the
/// component's.
const fn place(pixels: PixelFormat) -> usize {
    pixels.group().octets as usize - 1
}

/// A checksum that changes in about half of its bits with any bit of `content`.
pub(super) fn checksum(content: u64) -> u16 {
    // Memory that nothing was drawn into must not look like line 0 of frame 0.
    let content = content ^ 0x9e37_79b9_7f4a_7c15;
    let mixed = (content ^ content >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    ((mixed ^ mixed >> 29).wrapping_mul(0xc4ce_b9fe_1a85_ec53) >> 48) as u16
}
