//! Byte strings of at most eight bytes, held in place.

use std::fmt;
use std::ops::Deref;

/// Up to eight bytes without a heap allocation. Bytes beyond the length are zero, so that equality is plain.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ShortBytes {
    len: u8,
    bytes: [u8; 8],
}

impl ShortBytes {
    fn new(bytes: &[u8]) -> Option<ShortBytes> {
        let mut short = ShortBytes { len: u8::try_from(bytes.len()).ok()?, bytes: [0; 8] };
        short.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(short)
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Prints the bytes as hexadecimal digits.
fn hex(bytes: &[u8], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
}

/// Matches a response to its request: 0 to 8 bytes chosen by the client (RFC 7252 §5.3.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(ShortBytes);

impl Token {
    /// The token of no bytes.
    pub const EMPTY: Token = Token(ShortBytes { len: 0, bytes: [0; 8] });

    /// The token with these bytes; `None` for more than eight.
    pub fn new(bytes: &[u8]) -> Option<Token> {
        ShortBytes::new(bytes).map(Token)
    }

    /// The token of the eight bytes of `number`, the highest first.
    pub fn from_u64(number: u64) -> Token {
        Token(ShortBytes { len: 8, bytes: number.to_be_bytes() })
    }

    /// The number that [`Token::from_u64`] made this token of; `None` for a token of another length.
    pub fn to_u64(self) -> Option<u64> {
        (self.0.len == 8).then(|| u64::from_be_bytes(self.0.bytes))
    }

    /// A number by which tokens are told apart, unless somebody knows one and makes another for the same number.
    #[inline]
    pub(crate) fn digest(self) -> u32 {
        let bytes = u64::from_be_bytes(self.0.bytes);
        (bytes ^ bytes >> 32) as u32 ^ u32::from(self.0.len).wrapping_mul(0x9e37_79b9)
    }
}

impl Deref for Token {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(self, formatter)
    }
}

/// Names one representation of a resource: 1 to 8 bytes chosen by the server (RFC 7252 §5.10.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ETag(ShortBytes);

impl ETag {
    /// The tag with these bytes; `None` for none or more than eight.
    pub fn new(bytes: &[u8]) -> Option<ETag> {
        ShortBytes::new(bytes).filter(|short| short.len > 0).map(ETag)
    }

    /// The tag of the eight bytes of `number`, the highest first: a version or a hash.
    pub fn from_u64(number: u64) -> ETag {
        ETag(ShortBytes { len: 8, bytes: number.to_be_bytes() })
    }
}

impl Deref for ETag {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(self, formatter)
    }
}
