//! The reading end: a cursor over untrusted bytes that checks every step.

mod parameter;

use crate::encoder::{NESTING_MAX, reversed};
use crate::representation::ENCAPSULATION_BYTES;
use crate::{ByteOrder, DecodeError, Encapsulation, Extensibility, Representation};

/// Reads values from a payload in one of the encodings.
///
/// No claim of the bytes is trusted: lengths are checked against the remaining bytes, memory against the size of the
/// input, nesting against [`NESTING_MAX`]. A clone is a second cursor at the same place and costs nothing.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    /// From the start of the payload to the end of the innermost frame.
    bytes: &'a [u8],
    position: usize,
    origin: usize,
    representation: Representation,
    byte_order: ByteOrder,
    /// The outermost type stands without the frame that its extensibility asks for.
    unframed: bool,
    /// The next value is an inner dimension of an array.
    in_array: bool,
    /// The next value is the outermost type; a key hash ignores all members behind its last key member.
    outermost: bool,
    /// The payload holds the key members only.
    key_only: bool,
    depth: u32,
    /// Number of further bytes of elements that may be made from this input.
    budget_bytes: usize,
}

/// Most bytes of elements that one byte of input may become: a sequence of absent 64-byte optional members just fits.
/// Chosen by us; [`BUDGET_START_BYTES`] come on top, so that small inputs are never refused.
const BUDGET_PER_INPUT_BYTE: usize = 64;
const BUDGET_START_BYTES: usize = 1 << 20;

impl<'a> Decoder<'a> {
    /// A decoder of a body without encapsulation header; alignment counts from the first byte.
    pub fn new(body: &'a [u8], representation: Representation, byte_order: ByteOrder) -> Self {
        Decoder {
            bytes: body,
            position: 0,
            origin: 0,
            representation,
            byte_order,
            unframed: false,
            in_array: false,
            outermost: false,
            key_only: false,
            depth: 0,
            budget_bytes: body.len().saturating_mul(BUDGET_PER_INPUT_BYTE).saturating_add(BUDGET_START_BYTES),
        }
    }

    /// A decoder of the bytes behind the encapsulation header, and the content of that header.
    ///
    /// # Errors
    /// When the header is cut off or names an encoding that is none of XCDR1 and XCDR2.
    pub fn of_payload(payload: &'a [u8]) -> Result<(Self, Encapsulation), DecodeError> {
        let Some(header) = payload.first_chunk::<ENCAPSULATION_BYTES>() else {
            return Err(DecodeError::new(0, "an encapsulation header of 4 bytes"));
        };
        let encapsulation = Encapsulation::from_id(u16::from_be_bytes([header[0], header[1]]))
            .ok_or_else(|| DecodeError::new(0, "an encapsulation id of XCDR1 or XCDR2"))?;
        let body = match encapsulation.representation {
            // The options of XCDR1 are not always zero in the field, and mean nothing.
            Representation::Xcdr1 => payload,
            Representation::Xcdr2 => {
                let padding = usize::from(header[3] & PADDING_MASK);
                let end = payload.len().checked_sub(padding).filter(|end| *end >= ENCAPSULATION_BYTES);
                &payload[..end.ok_or_else(|| DecodeError::new(2, "no more padding than there are bytes"))?]
            }
        };
        let mut decoder = Decoder::new(body, encapsulation.representation, encapsulation.byte_order);
        decoder.position = ENCAPSULATION_BYTES;
        decoder.origin = ENCAPSULATION_BYTES;
        Ok((decoder, encapsulation))
    }

    /// The encoding that is read.
    pub fn representation(&self) -> Representation {
        self.representation
    }

    /// Offset of the next value from the start of the payload, in bytes.
    pub fn offset(&self) -> usize {
        self.position
    }

    /// Bytes left in the innermost frame.
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// Whether the innermost frame is used up: newer members of an appendable type then take their default.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    /// Whether the innermost frame ends before a member of an appendable type that takes so many bytes at least: then the member has its
    /// default. In XCDR1 nothing tells an older sender's last member from the padding behind it, which fills a payload up to four bytes
    /// (RTPS 2.5 §9.4.1). Of a member of a payload with nothing but keys, nobody knows how many bytes it takes.
    #[inline]
    pub fn ends_before(&self, bytes_min: usize) -> bool {
        let remaining = self.remaining();
        let may_be_padding = self.representation == Representation::Xcdr1 && !self.key_only;
        remaining == 0 || (remaining < bytes_min.min(PADDING_END) && may_be_padding)
    }

    /// Whether the payload holds key members only.
    pub fn is_key_only(&self) -> bool {
        self.key_only
    }

    /// The error that something else should have stood here.
    #[cold]
    pub fn error(&self, expected: impl Into<std::borrow::Cow<'static, str>>) -> DecodeError {
        DecodeError::new(self.position, expected)
    }

    /// Skips to the next multiple of `alignment`, or of the encoding's largest alignment if that is less.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        let mask = alignment.min(self.representation.max_alignment()) - 1;
        self.position += self.origin.wrapping_sub(self.position) & mask;
    }

    /// Reads so many bytes as they are, without alignment.
    ///
    /// # Errors
    /// When fewer are left; the error says that they should have been those of `what`.
    #[inline]
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.position..).and_then(|rest| rest.get(..count)) {
            Some(bytes) => {
                self.position += count;
                Ok(bytes)
            }
            None => Err(self.short_of(count, what)),
        }
    }

    /// Reads a number of `N` bytes, aligned to its size, and gives it in this machine's byte order.
    ///
    /// # Errors
    /// When fewer bytes are left; the error says that they should have been those of `what`.
    #[inline]
    pub fn number<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], DecodeError> {
        self.align(N);
        let Some(bytes) = self.bytes.get(self.position..).and_then(|rest| rest.first_chunk::<N>()) else {
            return Err(self.short_of(N, what));
        };
        self.position += N;
        Ok(if self.is_native() { *bytes } else { reversed(*bytes) })
    }

    /// Reads the count in front of a string, sequence or map whose elements take at least so many bytes each.
    ///
    /// # Errors
    /// When the count is cut off, or more than the rest of the input can hold.
    #[inline]
    pub fn length(&mut self, element_min_bytes: usize) -> Result<usize, DecodeError> {
        self.align(4);
        let at = self.position;
        let length = u32::from_ne_bytes(self.number("a length")?) as usize;
        match length.checked_mul(element_min_bytes) {
            Some(bytes) if bytes <= self.remaining() => Ok(length),
            _ => Err(self.over_long(at, length)),
        }
    }

    /// Accounts for so many elements of this size, before memory for them is taken.
    ///
    /// # Errors
    /// When the input is too small to deserve that much memory, whatever it claims.
    #[inline]
    pub fn charge(&mut self, count: usize, element_bytes: usize) -> Result<(), DecodeError> {
        match count.checked_mul(element_bytes.max(1)).and_then(|bytes| self.budget_bytes.checked_sub(bytes)) {
            Some(rest) => {
                self.budget_bytes = rest;
                Ok(())
            }
            None => Err(self.error(format!("fewer than {count} elements, for an input of this size"))),
        }
    }

    /// Reads at another place of the same input, which counts into the same memory: `place` is a clone from there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn at_place<T>(
        &mut self,
        mut place: Decoder<'a>,
        read: impl FnOnce(&mut Decoder<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        place.budget_bytes = self.budget_bytes;
        let read = read(&mut place);
        self.budget_bytes = place.budget_bytes;
        read
    }

    /// Reads an appendable type's members. Members that a newer sender added behind them are skipped in XCDR2, whose length in front
    /// tells where they end; XCDR1 has none.
    ///
    /// # Errors
    /// Those of `read`; when fewer bytes are left than the length says.
    #[inline]
    pub fn appendable_type<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.representation == Representation::Xcdr1 || std::mem::take(&mut self.unframed) {
            return read(self);
        }
        self.delimited(read)
    }

    /// Reads a mutable type: `read` gets each member's id, with the decoder confined to that member, and tells whether
    /// it knew the id. Members that it did not know are skipped.
    ///
    /// # Errors
    /// Those of `read`; when a header or member is cut off; when a member must be understood and was not.
    #[inline]
    pub fn mutable_type(
        &mut self,
        mut read: impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        match self.representation {
            Representation::Xcdr1 => {
                while let Some(parameter) = self.parameter_xcdr1()? {
                    let outer = std::mem::replace(&mut self.origin, self.position);
                    self.read_parameter(parameter, &mut read)?;
                    self.origin = outer;
                }
                Ok(())
            }
            Representation::Xcdr2 => self.delimited(|decoder| {
                while let Some(parameter) = decoder.parameter_xcdr2()? {
                    decoder.read_parameter(parameter, &mut read)?;
                }
                Ok(())
            }),
        }
    }

    /// Reads the elements of a collection, in XCDR2 behind their length in bytes unless they are primitive.
    ///
    /// # Errors
    /// Those of `read`; when fewer bytes are left than that length says.
    #[inline]
    pub fn collection<T>(
        &mut self,
        elements_primitive: bool,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if elements_primitive || self.representation == Representation::Xcdr1 {
            return read(self);
        }
        self.delimited(read)
    }

    /// Reads an array of elements that are not primitive; the outermost dimension alone has a frame.
    pub(crate) fn array<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let inner = std::mem::take(&mut self.in_array);
        self.collection(inner, read)
    }

    /// Declares that the array that is read next is an inner dimension of the one that is being read.
    pub(crate) fn begin_dimension(&mut self) {
        self.in_array = true;
    }

    /// Reads an optional member of a final or appendable type.
    ///
    /// # Errors
    /// Those of `read`; when the mark that tells whether the value is there is none.
    #[inline]
    pub fn optional<T>(
        &mut self,
        id: u32,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if self.representation == Representation::Xcdr1 {
            return self.optional_xcdr1(id, read);
        }
        match self.bytes(1, "whether an optional member is present")? {
            [0] => Ok(None),
            [1] => read(self).map(Some),
            _ => Err(DecodeError::new(self.position - 1, "0 or 1, whether an optional member is present")),
        }
    }

    /// Reads something that may contain itself.
    ///
    /// # Errors
    /// Those of `read`; when it is more than [`NESTING_MAX`] deep.
    #[inline]
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
        if self.depth == NESTING_MAX {
            return Err(self.error(format!("no more than {NESTING_MAX} levels of nesting")));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Tells, once, whether this is the outermost type: a key hash needs nothing behind its last key member.
    pub fn begin_key(&mut self) -> bool {
        std::mem::take(&mut self.outermost)
    }

    /// Skips something that starts with its length: an appendable or mutable type or a collection of XCDR2.
    ///
    /// # Errors
    /// When the length is cut off or exceeds the remaining bytes.
    pub fn skip_delimited(&mut self) -> Result<(), DecodeError> {
        self.delimited(|_| Ok(()))
    }

    /// Skips an optional member of a final or appendable type.
    ///
    /// # Errors
    /// As [`optional`](Self::optional).
    pub fn skip_optional(
        &mut self,
        id: u32,
        skip: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.optional(id, skip).map(drop)
    }

    /// Whether numbers stand in this machine's byte order.
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
        self.is_native() && self.position.wrapping_sub(self.origin) & mask == 0
    }

    /// Declares that only key members follow.
    pub(crate) fn set_key_only(&mut self) {
        self.key_only = true;
    }

    /// Reads the outermost type: the encapsulation gives its framing, which may differ from that of its own
    /// extensibility.
    pub(crate) fn outermost<T>(
        &mut self,
        extensibility: Extensibility,
        encapsulation: Encapsulation,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        use Extensibility::{Appendable, Final, Mutable};
        self.outermost = true;
        match (extensibility, encapsulation.extensibility) {
            (Mutable, Mutable) | (Final, Final) | (Appendable, Appendable) => read(self),
            (Appendable, Final) => {
                self.unframed = self.representation == Representation::Xcdr2;
                read(self)
            }
            (Final, Appendable) => self.delimited(read),
            (Mutable, _) => Err(DecodeError::new(0, "an encapsulation with parameter list, for a mutable type")),
            (_, Mutable) => Err(DecodeError::new(0, "an encapsulation without parameter list, for this type")),
        }
    }

    fn delimited<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, DecodeError>) -> Result<T, DecodeError> {
        let length = u32::from_ne_bytes(self.number("the length of a type or collection")?) as usize;
        self.confined(length, read)
    }

    /// Reads within the next `length` bytes, and goes on behind them.
    #[inline]
    fn confined<T>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let outer = self.bytes;
        let Some(end) = self.position.checked_add(length).filter(|end| *end <= outer.len()) else {
            return Err(self.short_of(length, "a type, collection or member"));
        };
        self.bytes = &outer[..end];
        let value = read(self)?;
        self.bytes = outer;
        self.position = end;
        Ok(value)
    }

    #[cold]
    fn short_of(&self, count: usize, what: &'static str) -> DecodeError {
        let plural = if count == 1 { "" } else { "s" };
        self.error(format!("{count} byte{plural} of {what}, {} left", self.remaining()))
    }

    #[cold]
    fn over_long(&self, at: usize, length: usize) -> DecodeError {
        DecodeError::new(at, format!("a length that {} remaining bytes can hold, not {length}", self.remaining()))
    }
}

const PADDING_MASK: u8 = 0b11;
/// Payloads are filled up to a multiple of so many bytes.
const PADDING_END: usize = 4;
