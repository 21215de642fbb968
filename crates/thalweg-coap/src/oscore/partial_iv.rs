//! Sender sequence numbers as they travel.

/// A sender sequence number: in a message it is the Partial IV (RFC 8613 §5). Below 2⁴⁰.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartialIv(u64);

impl PartialIv {
    /// One more than the largest number (RFC 8613 §7.2.1).
    pub const END: u64 = 1 << 40;

    /// The Partial IV of a sequence number; `None` from [`PartialIv::END`] on.
    pub fn new(number: u64) -> Option<PartialIv> {
        (number < PartialIv::END).then_some(PartialIv(number))
    }

    /// The sequence number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Reads one to five bytes without leading zeros; 0 is one byte (RFC 8613 §6.1).
    pub(super) fn parse(bytes: &[u8]) -> Option<PartialIv> {
        let is_short = bytes.len() == 1 || (2..=LEN_MAX).contains(&bytes.len()) && bytes[0] != 0;
        is_short.then(|| PartialIv(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    }

    /// The number in five bytes, the highest first; on the wire those from [`PartialIv::start`] on.
    pub(super) fn padded(self) -> [u8; LEN_MAX] {
        let [_, _, _, bytes @ ..] = self.0.to_be_bytes();
        bytes
    }

    /// Number of leading zeros of the five bytes, which are left out.
    pub(super) fn start(self) -> usize {
        let zeros = self.padded().iter().take_while(|byte| **byte == 0).count();
        zeros.min(LEN_MAX - 1)
    }
}

/// Bytes of the largest Partial IV.
pub(super) const LEN_MAX: usize = 5;
