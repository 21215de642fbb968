//! The head of every datagram.

/// Bytes in front of every datagram's filling.
pub const HEADER_BYTES: usize = 16;

/// The head of a datagram: number (8 bytes), token (4), time (4), all little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Its place in its stream, from 0.
    pub number: u64,
    /// The token of the measurement and stream; whatever bears another one is not of it.
    pub token: u32,
    /// When it was handed to the sender's kernel, in microseconds of the sender's clock, wrapping.
    pub sent_us: u32,
}

impl DatagramHeader {
    /// The head as it travels.
    #[inline]
    pub fn to_wire(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.token.to_le_bytes());
        bytes[12..].copy_from_slice(&self.sent_us.to_le_bytes());
        bytes
    }

    /// The head of a datagram; `None` of one that is too short to have one.
    #[inline]
    pub fn from_wire(datagram: &[u8]) -> Option<DatagramHeader> {
        let (number, rest) = datagram.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (sent_us, _) = rest.split_first_chunk()?;
        Some(DatagramHeader {
            number: u64::from_le_bytes(*number),
            token: u32::from_le_bytes(*token),
            sent_us: u32::from_le_bytes(*sent_us),
        })
    }
}
