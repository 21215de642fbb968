//! The writing end: a buffer, the position that alignment counts from, and the frames of DDS-XTypes.

use crate::{ByteOrder, EncodeError, LengthCode, Representation};

/// Deepest nesting of collections and boxes in a value, while encoding and while decoding.
///
/// Chosen by us: deeper than any data type in use, shallow enough for a thread's stack when hostile bytes claim more.
pub const NESTING_MAX: u32 = 64;

/// Appends values to a buffer in one of the encodings.
///
/// Alignment counts from the end of the buffer at the time the encoder is made. When an `encode` fails, the buffer
/// holds the bytes written so far; [`encode`](crate::encode()) removes that.
#[derive(Debug)]
pub struct Encoder<'b> {
    out: &'b mut Vec<u8>,
    origin: usize,
    representation: Representation,
    byte_order: ByteOrder,
    purpose: Purpose,
    depth: u32,
    /// The next value is an inner dimension of an array.
    in_array: bool,
}

/// A member of a mutable type, or an optional one, as its header names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The member's id, below 2^28.
    pub id: u32,
    /// Reaction of a receiver that does not know the id: it drops the member, or (true) the whole sample.
    pub must_understand: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Payload,
    KeyHash,
}

impl<'b> Encoder<'b> {
    /// An encoder that appends to `out`.
    pub fn new(out: &'b mut Vec<u8>, representation: Representation, byte_order: ByteOrder) -> Self {
        let origin = out.len();
        Encoder { out, origin, representation, byte_order, purpose: Purpose::Payload, depth: 0, in_array: false }
    }

    /// An encoder of what key hashes are made of: big-endian PLAIN_CDR2, key members by id, no frame around types.
    pub(crate) fn for_key_hash(out: &'b mut Vec<u8>) -> Self {
        Encoder { purpose: Purpose::KeyHash, ..Encoder::new(out, Representation::Xcdr2, ByteOrder::Big) }
    }

    /// The encoding that is written.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Whether a key hash is being made: all types count as final, and members stand in the order of their ids
    /// (DDS-XTypes 1.3 §7.6.8.3).
    pub fn is_key_hash(&self) -> bool {
        self.purpose == Purpose::KeyHash
    }

    /// Writes zeros up to the next multiple of `alignment`, or of the encoding's largest alignment if that is less.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        let mask = alignment.min(self.representation.max_alignment()) - 1;
        let padding = self.origin.wrapping_sub(self.out.len()) & mask;
        if padding != 0 {
            self.out.extend_from_slice(&[0; 8][..padding]);
        }
    }

    /// Writes bytes as they are, without alignment.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Writes a number of `N` bytes, given in this machine's byte order, aligned to its size.
    #[inline]
    pub fn number<const N: usize>(&mut self, native: [u8; N]) {
        self.align(N);
        // Two calls, not one on bytes that are reversed or not: that keeps the number in a register.
        if self.is_native() {
            self.out.extend_from_slice(&native);
        } else {
            self.out.extend_from_slice(&reversed(native));
        }
    }

    /// Writes the count in front of a string, sequence or map.
    ///
    /// # Errors
    /// When the count does not fit into 32 bits.
    #[inline]
    pub fn length(&mut self, length: usize) -> Result<(), EncodeError> {
        let length = u32::try_from(length).map_err(|_| too_large("a string, sequence or map"))?;
        self.number(length.to_ne_bytes());
        Ok(())
    }

    /// Writes a final type's members; nothing is added to them.
    ///
    /// # Errors
    /// Those of `write`.
    #[inline]
    pub fn final_type(&mut self, write: impl FnOnce(&mut Self) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
        write(self)
    }

    /// Writes an appendable type's members, with their length in bytes in front in a payload of XCDR2 (DDS-XTypes 1.3 §7.4.3.5).
    ///
    /// # Errors
    /// Those of `write`; when that length does not fit into 32 bits.
    #[inline]
    pub fn appendable_type(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        match (self.representation, self.purpose) {
            (Representation::Xcdr2, Purpose::Payload) => self.delimited(write),
            _ => write(self),
        }
    }

    /// Writes a mutable type's members, each written by [`parameter`](Self::parameter): with their length in bytes in front in XCDR2, with an
    /// end mark in XCDR1, and with neither for a key hash.
    ///
    /// # Errors
    /// Those of `write`; when that length does not fit into 32 bits.
    #[inline]
    pub fn mutable_type(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        match (self.representation, self.purpose) {
            (_, Purpose::KeyHash) => write(self),
            (Representation::Xcdr2, _) => self.delimited(write),
            (Representation::Xcdr1, _) => {
                write(self)?;
                self.align(4);
                self.number((PID_LIST_END | FLAG_MUST_UNDERSTAND).to_ne_bytes());
                self.number(0u16.to_ne_bytes());
                Ok(())
            }
        }
    }

    /// Writes the elements of a collection, in XCDR2 with their length in bytes in front unless they are primitive.
    ///
    /// # Errors
    /// Those of `write`; when that length does not fit into 32 bits.
    #[inline]
    pub fn collection(
        &mut self,
        elements_primitive: bool,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if elements_primitive || self.representation == Representation::Xcdr1 {
            return write(self);
        }
        self.delimited(write)
    }

    /// Writes an array of elements that are not primitive; the outermost dimension alone has a frame.
    pub(crate) fn array(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let inner = std::mem::take(&mut self.in_array);
        self.collection(inner, write)
    }

    /// Declares that the array that is written next is an inner dimension of the one that is being written.
    pub(crate) fn begin_dimension(&mut self) {
        self.in_array = true;
    }

    /// Writes one member of a mutable type behind a header with its id and length. XCDR1 states the length in bytes itself and leaves
    /// `code` out of account.
    ///
    /// # Errors
    /// Those of `write`; when a stated length does not fit into 32 bits.
    #[inline]
    pub fn parameter(
        &mut self,
        member: Member,
        code: LengthCode,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        match self.representation {
            Representation::Xcdr1 => self.parameter_xcdr1(member, true, |encoder| {
                write(encoder)?;
                // The text of 2020 counts a value without its padding; RTI's products and Wireshark follow the older
                // one, which counts it, and every vendor reads that.
                encoder.align(4);
                Ok(())
            }),
            Representation::Xcdr2 => {
                let must_understand = if member.must_understand { EMHEADER_MUST_UNDERSTAND } else { 0 };
                self.number((must_understand | (code as u32) << 28 | member.id).to_ne_bytes());
                if code == LengthCode::Stated { self.delimited(write) } else { write(self) }
            }
        }
    }

    /// Writes an optional member of a final or appendable type: in XCDR2 a byte, 1 where it is there, and the value; in XCDR1 a parameter,
    /// empty where it is not.
    ///
    /// # Errors
    /// Those of `write`; when a length of XCDR1 does not fit into 32 bits.
    #[inline]
    pub fn optional<T: ?Sized>(
        &mut self,
        member: Member,
        value: Option<&T>,
        write: impl FnOnce(&T, &mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.representation == Representation::Xcdr1 {
            return self.parameter_xcdr1(member, false, |encoder| value.map_or(Ok(()), |value| write(value, encoder)));
        }
        self.bytes(&[u8::from(value.is_some())]);
        value.map_or(Ok(()), |value| write(value, self))
    }

    /// Writes something that may contain itself.
    ///
    /// # Errors
    /// When that happens more than [`NESTING_MAX`] deep.
    #[inline]
    pub fn nested(&mut self, write: impl FnOnce(&mut Self) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
        if self.depth == NESTING_MAX {
            return Err(EncodeError::new(format!("the value nests more than {NESTING_MAX} deep")));
        }
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Whether numbers are written in this machine's byte order.
    #[inline]
    pub(crate) fn is_native(&self) -> bool {
        self.byte_order == ByteOrder::NATIVE
    }

    /// Aligns as a plain type that starts with a `start`-aligned number does, and tells whether its memory can be
    /// copied as it is.
    #[inline]
    pub(crate) fn begins_plain(&mut self, start: usize, alignment: usize) -> bool {
        self.align(start);
        let mask = alignment.min(self.representation.max_alignment()) - 1;
        self.is_native() && self.out.len().wrapping_sub(self.origin) & mask == 0
    }

    /// Makes room for this many more bytes, so that later writes need not grow the buffer.
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    fn delimited(&mut self, write: impl FnOnce(&mut Self) -> Result<(), EncodeError>) -> Result<(), EncodeError> {
        self.number([0; 4]);
        let start = self.out.len();
        write(self)?;
        let length = u32::try_from(self.out.len() - start).map_err(|_| too_large("a type or collection"))?;
        let bytes = match self.byte_order {
            ByteOrder::Little => length.to_le_bytes(),
            ByteOrder::Big => length.to_be_bytes(),
        };
        self.out[start - 4..start].copy_from_slice(&bytes);
        Ok(())
    }

    /// A parameter of XCDR1: its alignment starts anew behind the header (DDS-XTypes 1.3 §7.4.3.5.3). It stands in a list, or alone as
    /// an optional member of a final or appendable type.
    fn parameter_xcdr1(
        &mut self,
        member: Member,
        is_listed: bool,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.align(4);
        let header = self.out.len();
        self.out.extend_from_slice(&[0; SHORT_HEADER_BYTES]);
        let outer = std::mem::replace(&mut self.origin, self.out.len());
        write(self)?;
        let length = self.out.len() - self.origin;
        self.origin = outer;
        // With a short header an empty member 1 would be the sentinel of RTPS, which ends the list.
        let looks_like_end = is_listed && length == 0 && member.id == u32::from(PID_SENTINEL);
        match (u16::try_from(member.id), u16::try_from(length)) {
            (Ok(id), Ok(length)) if id < PID_SHORT_END && !looks_like_end => {
                let flag = if member.must_understand { FLAG_MUST_UNDERSTAND } else { 0 };
                self.short_header(header, id | flag, length);
            }
            _ => self.extended_header(header, member, length)?,
        }
        Ok(())
    }

    fn short_header(&mut self, at: usize, id: u16, length: u16) {
        let (id, length) = match self.byte_order {
            ByteOrder::Little => (id.to_le_bytes(), length.to_le_bytes()),
            ByteOrder::Big => (id.to_be_bytes(), length.to_be_bytes()),
        };
        self.out[at..at + 2].copy_from_slice(&id);
        self.out[at + 2..at + SHORT_HEADER_BYTES].copy_from_slice(&length);
    }

    /// Makes the short header an extended one, which moves the value: its own alignment does not notice.
    fn extended_header(&mut self, at: usize, member: Member, length: usize) -> Result<(), EncodeError> {
        let length = u32::try_from(length).map_err(|_| too_large("a member"))?;
        let id = member.id | if member.must_understand { EXTENDED_MUST_UNDERSTAND } else { 0 };
        let (id, length) = match self.byte_order {
            ByteOrder::Little => (id.to_le_bytes(), length.to_le_bytes()),
            ByteOrder::Big => (id.to_be_bytes(), length.to_be_bytes()),
        };
        self.short_header(at, PID_EXTENDED | FLAG_MUST_UNDERSTAND, EXTENDED_LENGTH);
        let value = at + SHORT_HEADER_BYTES;
        self.out.splice(value..value, id.into_iter().chain(length));
        Ok(())
    }
}

/// A number's bytes in the other order.
#[inline]
pub(crate) fn reversed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

#[cold]
fn too_large(what: &str) -> EncodeError {
    EncodeError::new(format!("{what} is larger than 2^32 - 1 bytes or elements"))
}

// Parameter headers of XCDR1 and member headers of XCDR2 (DDS-XTypes 1.3 §7.4.1.2 and §7.4.3.4.2).
pub(crate) const SHORT_HEADER_BYTES: usize = 4;
pub(crate) const PID_SENTINEL: u16 = 0x0001;
pub(crate) const PID_SHORT_END: u16 = 0x3f00;
pub(crate) const PID_EXTENDED: u16 = 0x3f01;
pub(crate) const PID_LIST_END: u16 = 0x3f02;
pub(crate) const EXTENDED_LENGTH: u16 = 8;
pub(crate) const FLAG_MUST_UNDERSTAND: u16 = 0x4000;
pub(crate) const EXTENDED_MUST_UNDERSTAND: u32 = 0x4000_0000;
pub(crate) const EMHEADER_MUST_UNDERSTAND: u32 = 0x8000_0000;
