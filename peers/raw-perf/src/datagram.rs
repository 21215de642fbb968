//! What stands in a datagram, and what the two ends count of it.

/// In front of the bytes of every datagram that carries a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub number: u64,
    /// Bytes of the whole sample.
    pub total: u32,
    /// Where in the sample the bytes of this datagram belong.
    pub offset: u32,
}

impl Header {
    pub const LENGTH: usize = 16;

    pub fn on_wire(self) -> [u8; Header::LENGTH] {
        let mut bytes = [0; Header::LENGTH];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.total.to_le_bytes());
        bytes[12..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    pub fn from_wire(bytes: &[u8; Header::LENGTH]) -> Header {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let number = u64::from(word(0)) | u64::from(word(4)) << 32;
        Header { number, total: word(8), offset: word(12) }
    }
}

/// Sent instead of a sample, or of a count: the writer took the reader in, or one of them leaves.
pub const WELCOME: [u8; 1] = *b"w";
pub const FAREWELL: [u8; 1] = *b"f";

/// The longest payload of one datagram; longer samples travel as equal parts.
pub const PART_MAX: usize = 60_000;

/// The length of each part of such a sample; the last may be shorter.
pub fn part_length(total: usize) -> usize {
    total.div_ceil(total.div_ceil(PART_MAX).max(1))
}

/// What a datagram occupies of the receive buffer at most: its bytes may stand in memory twice as large, beside what
/// the kernel keeps of each (some 600 bytes on 64-bit systems).
pub fn charge(datagram: usize) -> u64 {
    2 * datagram as u64 + 1280
}

#[cfg(test)]
mod tests {
    use super::{Header, PART_MAX, part_length};

    #[test]
    fn a_header_survives_the_wire() {
        let header = Header { number: 0x0102_0304_0506_0708, total: 0x090a_0b0c, offset: 0x0d0e_0f10 };
        assert_eq!(Header::from_wire(&header.on_wire()), header);
    }

    #[test]
    fn parts_are_as_few_and_as_equal_as_possible() {
        assert_eq!([0, 1, PART_MAX].map(part_length), [0, 1, PART_MAX]);
        assert_eq!(part_length(65_536), 32_768);
        assert_eq!((1usize << 20).div_ceil(part_length(1 << 20)), 18);
    }
}
