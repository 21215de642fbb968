//! Traits of types with a CDR encoding.

use crate::{DecodeError, Decoder, EncodeError, Encoder, Extensibility, Layout};
use crate::{FieldKind, FieldStep, FieldValue};

/// A type that can be written.
///
/// `#[derive(Topic)]` implements it; by hand, only [`encode`](Self::encode) is needed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be encoded as CDR",
    label = "has no CDR encoding",
    note = "derive `Topic` for your own types; `Option` is for members of a struct only; there is no `usize`, `u128` or `&str` on the wire"
)]
pub trait Encode: Layout {
    /// Writes the value, with the alignment and framing of its type.
    ///
    /// # Errors
    /// When the value exceeds a bound or cannot be held by its wire type.
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError>;

    /// Writes the part of the value that identifies an instance: its key members, or all members if it has none
    /// (the key holder of DDS-XTypes 1.3 §7.6.8.3).
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_key(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.encode(encoder)
    }

    /// Writes several values in a row, as collections do; plain types go by one copy.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_elements(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        encoder.reserve(elements.len().saturating_mul(Self::MIN_BYTES));
        elements.iter().try_for_each(|element| element.encode(encoder))
    }

    /// About how many bytes the value takes: exact for plain types, without padding otherwise. The first elements of a long collection
    /// stand for all.
    fn size_hint(&self) -> usize {
        size_of_val(self)
    }

    /// The part of the value at the end of `path`; `None` where there is none, as in an absent member or beyond the end of a sequence,
    /// or where it is none that can be compared.
    fn field(&self, _path: &[FieldStep]) -> Option<FieldValue<'_>> {
        None
    }

    /// The kind of what [`field`](Self::field) tells at the end of `path`; `None` where the type has nothing that can be compared.
    fn field_kind(_path: &[FieldStep]) -> Option<FieldKind>
    where
        Self: Sized,
    {
        None
    }
}

/// A type that can be read from untrusted bytes.
///
/// `#[derive(Topic)]` implements it; by hand, [`decode`](Self::decode) and [`default_value`](Self::default_value) are
/// needed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be decoded from CDR",
    label = "has no CDR encoding",
    note = "derive `Topic` for your own types; `Option` is for members of a struct only; there is no `usize`, `u128` or `&str` on the wire"
)]
pub trait Decode: Layout + Sized {
    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not a value of the type; the error names the offset and what should have stood there.
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError>;

    /// Reads a value in place of this one and uses its memory again: strings, sequences and boxes allocate only where they
    /// grow. When it fails, this is some value of its type.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        *self = Self::decode(decoder)?;
        Ok(())
    }

    /// Reads what [`encode_key`](Encode::encode_key) writes; members that are not in it take their default.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_key(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }

    /// The value of a member that the sender's version of the type does not have: zero, false, empty, the first
    /// literal (DDS-XTypes 1.3 §7.2.2.4.4.4.7).
    fn default_value() -> Self;

    /// Reads several values in a row, as sequences do; plain types go by one copy.
    ///
    /// # Errors
    /// As [`decode`](Self::decode); when so many elements are more than the input deserves.
    fn decode_elements(decoder: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, DecodeError> {
        decoder.charge(count, size_of::<Self>())?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(Self::decode(decoder)?);
        }
        Ok(elements)
    }

    /// As [`decode_elements`](Self::decode_elements), in place of those that are there.
    ///
    /// # Errors
    /// As [`decode_elements`](Self::decode_elements).
    fn decode_elements_into(
        elements: &mut Vec<Self>,
        decoder: &mut Decoder<'_>,
        count: usize,
    ) -> Result<(), DecodeError> {
        decoder.charge(count, size_of::<Self>())?;
        elements.truncate(count);
        Self::decode_slice(elements, decoder)?;
        elements.reserve_exact(count - elements.len());
        for _ in elements.len()..count {
            elements.push(Self::decode(decoder)?);
        }
        Ok(())
    }

    /// Reads as many values in a row as there are in the slice, in their place; numbers go by one copy.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_slice(elements: &mut [Self], decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        elements.iter_mut().try_for_each(|element| element.decode_into(decoder))
    }

    /// Reads the elements of an array; plain types go by one copy.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
        array_by(|| Self::decode(decoder))
    }

    /// Reads a value into memory of its own; a large array of numbers never lies on the stack.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    fn decode_boxed(decoder: &mut Decoder<'_>) -> Result<Box<Self>, DecodeError> {
        Self::decode(decoder).map(Box::new)
    }

    /// Passes over a value without making it.
    ///
    /// # Errors
    /// When the end of the value cannot be found.
    fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        Self::decode(decoder).map(drop)
    }

    /// Passes over several values in a row.
    ///
    /// # Errors
    /// As [`skip`](Self::skip).
    fn skip_elements(decoder: &mut Decoder<'_>, count: usize) -> Result<(), DecodeError> {
        // A count of elements that take no bytes is held against the same budget as one of elements that take memory.
        decoder.charge(count, 1)?;
        (0..count).try_for_each(|_| Self::skip(decoder))
    }

    /// Copies what identifies an instance from a payload to a key hash, without making the value where it can be helped.
    ///
    /// # Errors
    /// As [`decode`](Self::decode) and [`encode`](Encode::encode).
    fn transfer_key(decoder: &mut Decoder<'_>, encoder: &mut Encoder<'_>) -> Result<(), DecodeError>
    where
        Self: Encode,
    {
        let value = if decoder.is_key_only() { Self::decode_key(decoder) } else { Self::decode(decoder) }?;
        value.encode_key(encoder).map_err(|error| decoder.error(format!("a key that can be written, but {error}")))
    }
}

/// A type whose values can be samples of a topic: a struct or a union.
///
/// Implemented by `#[derive(Topic)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a topic type",
    label = "samples are structs or unions that derive `Topic`",
    note = "a newtype such as `struct Metres(f64)` is a typedef in IDL and cannot be a topic: name its member"
)]
pub trait Topic: Encode + Decode {
    /// The name that discovery announces, `module::Type` in IDL's spelling. Default: the Rust name.
    const TYPE_NAME: &'static str;
    /// Whether the type has key members, so that its topics have instances.
    const KEYED: bool;
    /// Permitted changes of the type between versions.
    const EXTENSIBILITY: Extensibility;
    /// Whether every key fits into 16 bytes, so that the key hash is the key itself and not its MD5.
    const KEY_FITS_HASH: bool;
}

/// A type with a variable length, which `#[topic(max_len = …)]` can bound.
#[diagnostic::on_unimplemented(
    message = "`max_len` does not apply to `{Self}`",
    note = "`max_len` bounds strings, sequences and maps"
)]
pub trait Bounded: Encode + Decode {
    /// The largest key size of a value of at most this many elements, as a function of that number.
    const BOUNDED_KEY_SIZE: BoundedKeySize;

    /// The number that the bound limits: bytes of a string without its terminator, or elements.
    fn length(&self) -> usize;

    /// Reads a value of at most so many elements.
    ///
    /// # Errors
    /// As [`Decode::decode`]; before memory is taken when there are more elements.
    fn decode_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError>;

    /// Reads the key of a value of at most so many elements: what [`encode_key`](Encode::encode_key) writes.
    ///
    /// # Errors
    /// As [`decode_bounded`](Self::decode_bounded).
    fn decode_key_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError> {
        Self::decode_bounded(decoder, max_len)
    }

    /// Copies the key of a value of at most so many elements from a payload to a key hash, as [`Decode::transfer_key`].
    ///
    /// # Errors
    /// As [`decode_bounded`](Self::decode_bounded) and [`encode`](Encode::encode).
    fn transfer_key_bounded(
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
        max_len: usize,
    ) -> Result<(), DecodeError> {
        let value = match decoder.is_key_only() {
            true => Self::decode_key_bounded(decoder, max_len),
            false => Self::decode_bounded(decoder, max_len),
        }?;
        value.encode_key(encoder).map_err(|error| decoder.error(format!("a key that can be written, but {error}")))
    }

    /// As [`decode_bounded`](Self::decode_bounded), in place of this value.
    ///
    /// # Errors
    /// As [`decode_bounded`](Self::decode_bounded).
    fn decode_bounded_into(&mut self, decoder: &mut Decoder<'_>, max_len: usize) -> Result<(), DecodeError> {
        *self = Self::decode_bounded(decoder, max_len)?;
        Ok(())
    }

    /// Holds the length against a bound.
    ///
    /// # Errors
    /// When there are more elements than the bound allows.
    #[inline]
    fn check_bound(&self, max_len: usize) -> Result<(), EncodeError> {
        let length = self.length();
        if length <= max_len { Ok(()) } else { Err(over_bound(length, max_len)) }
    }
}

/// The parts of which a bounded type's key size is made, since it cannot be a constant function of a trait.
#[derive(Debug, Clone, Copy)]
pub struct BoundedKeySize {
    /// The header in front of the elements.
    pub prefix: crate::KeySize,
    /// One element.
    pub element: crate::KeySize,
    /// Number of further written elements: the terminator of a string.
    pub extra: usize,
}

impl BoundedKeySize {
    /// The size for a bound.
    pub const fn at_most(self, max_len: usize) -> crate::KeySize {
        self.prefix.then(self.element.times(max_len.saturating_add(self.extra)))
    }
}

#[cold]
fn over_bound(length: usize, max_len: usize) -> EncodeError {
    EncodeError::new(format!("length {length} exceeds the bound of {max_len}"))
}

/// About how many bytes `count` elements take, whose hints are `hints`. Where all take the same (`are_alike`), one stands for all; else
/// the mean of the first [`HINTS_MAX`], since a hint must stay cheap, and where those differ, beyond their sum for no more than
/// [`GUESS_MAX_BYTES`]: in collections of collections guesses multiply.
#[inline]
pub(crate) fn elements_hint(mut hints: impl Iterator<Item = usize>, count: usize, are_alike: bool) -> usize {
    let Some(first) = hints.next() else { return 0 };
    if are_alike {
        return first.saturating_mul(count);
    }
    let (mut seen, mut is_even) = (first, true);
    for hint in hints.take(HINTS_MAX - 1) {
        (seen, is_even) = (seen.saturating_add(hint), is_even && hint == first);
    }
    if count <= HINTS_MAX {
        return seen;
    }
    let guess = seen.saturating_mul(count) / HINTS_MAX;
    if is_even { guess } else { seen.max(guess.min(GUESS_MAX_BYTES)) }
}

/// Elements that are looked at.
const HINTS_MAX: usize = 16;
/// A buffer that has to grow from here on costs a copy or two of so many bytes; one that is too large, address space alone.
const GUESS_MAX_BYTES: usize = 16 << 20;

/// An array of what `make` makes; after its first failure the rest is not made.
pub(crate) fn array_by<T: Decode, const N: usize>(
    mut make: impl FnMut() -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    let mut failure = None;
    let elements = std::array::from_fn(|_| {
        if failure.is_none() {
            match make() {
                Ok(element) => return element,
                Err(error) => failure = Some(error),
            }
        }
        T::default_value()
    });
    failure.map_or(Ok(elements), Err)
}
