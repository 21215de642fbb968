//! Pixels as cameras have them, put in the order of packets (RFC 4175 §4.3).

use crate::format::PixelFormat;

/// How a camera orders the octets of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PixelOrder {
    /// Cb, Y0, Cr, Y1: that of packets.
    Uyvy,
    /// Y0, Cb, Y1, Cr: that of most cameras.
    Yuyv,
    /// Red, green, blue: that of packets.
    Rgb,
}

impl PixelOrder {
    /// Those that hold pixels of a format, the cheapest one first; none for formats that no camera here has.
    pub(super) fn of(pixels: PixelFormat) -> &'static [PixelOrder] {
        match pixels {
            PixelFormat::Yuv422Bits8 => &[PixelOrder::Uyvy, PixelOrder::Yuyv],
            PixelFormat::Rgb8 => &[PixelOrder::Rgb],
            PixelFormat::Yuv422Bits10 => &[],
        }
    }

    /// Its four characters in V4L2.
    pub(super) fn name(self) -> [u8; 4] {
        match self {
            PixelOrder::Uyvy => *b"UYVY",
            PixelOrder::Yuyv => *b"YUYV",
            PixelOrder::Rgb => *b"RGB3",
        }
    }

    /// Writes a captured picture into `frame`, whose lines have `line_octets` and begin there, as captured, each `bytes_per_line`. Returns
    /// whether the picture was long enough.
    pub(super) fn pack(self, captured: &[u8], (line_octets, bytes_per_line): (usize, usize), frame: &mut [u8]) -> bool {
        let lines = frame.chunks_exact_mut(line_octets);
        let needed = lines.len().saturating_sub(1) * bytes_per_line + line_octets;
        if captured.len() < needed {
            return false;
        }
        for (to, from) in lines.zip(captured.chunks(bytes_per_line)) {
            let from = &from[..line_octets];
            match self {
                PixelOrder::Uyvy | PixelOrder::Rgb => to.copy_from_slice(from),
                PixelOrder::Yuyv => {
                    let pairs = to.as_chunks_mut::<2>().0.iter_mut().zip(from.as_chunks::<2>().0);
                    pairs.for_each(|(to, [luma, color])| *to = [*color, *luma]);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines of two pixels, of which the first begins a padded line, in each order.
    #[track_caller]
    fn check(order: PixelOrder, captured: &[u8], bytes_per_line: usize, expect: &[u8]) {
        let mut frame = vec![0; expect.len()];
        assert!(order.pack(captured, (expect.len() / 2, bytes_per_line), &mut frame));
        assert_eq!(frame, expect, "{order:?}");
        let short = &captured[..bytes_per_line + expect.len() / 2 - 1];
        assert!(!order.pack(short, (expect.len() / 2, bytes_per_line), &mut frame), "a line is too short");
    }

    #[test]
    fn pixels_come_in_the_order_of_packets() {
        let [u, v] = [b'u', b'v'];
        check(PixelOrder::Uyvy, &[u, 1, v, 2, u, 3, v, 4], 4, &[u, 1, v, 2, u, 3, v, 4]);
        check(PixelOrder::Yuyv, &[1, u, 2, v, 3, u, 4, v], 4, &[u, 1, v, 2, u, 3, v, 4]);
        check(PixelOrder::Yuyv, &[1, u, 2, v, 9, 9, 3, u, 4, v, 9, 9], 6, &[u, 1, v, 2, u, 3, v, 4]);
        check(PixelOrder::Rgb, b"rgbRGB..rgbRGB", 8, b"rgbRGBrgbRGB");
    }

    #[test]
    fn each_order_is_of_the_format_that_it_holds() {
        for pixels in PixelFormat::ALL {
            let names: Vec<[u8; 4]> = PixelOrder::of(pixels).iter().map(|order| order.name()).collect();
            let expect: &[&[u8; 4]] = match pixels {
                PixelFormat::Yuv422Bits8 => &[b"UYVY", b"YUYV"],
                PixelFormat::Rgb8 => &[b"RGB3"],
                PixelFormat::Yuv422Bits10 => &[],
            };
            assert!(names.iter().eq(expect.iter().copied()), "{pixels}");
        }
    }
}
