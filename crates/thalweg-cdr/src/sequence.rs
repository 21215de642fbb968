//! Sequences, arrays and boxes.

use crate::codec::{Bounded, BoundedKeySize, array_by, elements_hint};
use crate::description::Type;
use crate::{Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, KeySize, Layout, LengthCode, Representation};
use crate::{FieldKind, FieldStep, FieldValue};

/// IDL's `sequence<T>`.
impl<T: Layout> Layout for Vec<T> {
    const LENGTH_CODE: LengthCode = match (T::PRIMITIVE, T::LENGTH_CODE) {
        (true, LengthCode::One) => LengthCode::OwnBytes,
        (true, LengthCode::Four) => LengthCode::OwnFours,
        (true, LengthCode::Eight) => LengthCode::OwnEights,
        (true, _) => LengthCode::Stated,
        (false, _) => LengthCode::OwnBytes,
    };
    const KEY_HAS_OPTIONAL: bool = T::KEY_HAS_OPTIONAL;
    const MIN_BYTES: usize = 4;

    fn description() -> Option<Type> {
        Some(Type::Sequence { element: Box::new(T::description()?), bound: None })
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn field(&self, path: &[FieldStep]) -> Option<FieldValue<'_>> {
        let (FieldStep::Element(index), rest) = path.split_first()? else { return None };
        self.get(*index)?.field(rest)
    }

    fn field_kind(path: &[FieldStep]) -> Option<FieldKind> {
        let (FieldStep::Element(_), rest) = path.split_first()? else { return None };
        T::field_kind(rest)
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if T::PRIMITIVE {
            encoder.length(self.len())?;
            return T::encode_elements(self, encoder);
        }
        encoder.nested(|encoder| {
            encoder.collection(false, |encoder| {
                encoder.length(self.len())?;
                T::encode_elements(self, encoder)
            })
        })
    }

    fn encode_key(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if T::PRIMITIVE {
            return self.encode(encoder);
        }
        encoder.nested(|encoder| {
            encoder.collection(false, |encoder| {
                encoder.length(self.len())?;
                self.iter().try_for_each(|element| element.encode_key(encoder))
            })
        })
    }

    fn size_hint(&self) -> usize {
        let frame = if T::PRIMITIVE { 4 } else { 8 };
        let are_alike = T::ELEMENT_PRIMITIVE || T::PLAIN;
        elements_hint(self.iter().map(T::size_hint), self.len(), are_alike).saturating_add(frame)
    }
}

impl<T: Decode> Decode for Vec<T> {
    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decode_sequence::<T, _>(decoder, usize::MAX, T::decode_elements)
    }

    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        decode_sequence::<T, _>(decoder, usize::MAX, |decoder, count| T::decode_elements_into(self, decoder, count))
    }

    fn decode_key(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decode_key_sequence(decoder, usize::MAX)
    }

    fn default_value() -> Self {
        Vec::new()
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let elements = |decoder: &mut Decoder<'_>| {
            let count = decoder.length(T::MIN_BYTES)?;
            T::skip_elements(decoder, count)
        };
        if T::PRIMITIVE { elements(decoder) } else { skip_collection(decoder, elements) }
    }

    fn transfer_key(decoder: &mut Decoder<'_>, encoder: &mut Encoder<'_>) -> Result<(), DecodeError>
    where
        Self: Encode,
    {
        // Elements are transferred as values: a sequence as key is rare, and its elements cannot be reached from here.
        let value = if decoder.is_key_only() { Self::decode_key(decoder) } else { Self::decode(decoder) }?;
        value.encode_key(encoder).map_err(|error| decoder.error(format!("a key that can be written, but {error}")))
    }
}

impl<T: Encode + Decode> Bounded for Vec<T> {
    const BOUNDED_KEY_SIZE: BoundedKeySize = BoundedKeySize {
        prefix: if T::PRIMITIVE { KeySize::number(4) } else { KeySize::number(4).then(KeySize::number(4)) },
        element: T::KEY_SIZE,
        extra: 0,
    };

    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn decode_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError> {
        decode_sequence::<T, _>(decoder, max_len, T::decode_elements)
    }

    fn decode_key_bounded(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Self, DecodeError> {
        decode_key_sequence(decoder, max_len)
    }

    #[inline]
    fn decode_bounded_into(&mut self, decoder: &mut Decoder<'_>, max_len: usize) -> Result<(), DecodeError> {
        decode_sequence::<T, _>(decoder, max_len, |decoder, count| T::decode_elements_into(self, decoder, count))
    }
}

#[inline]
fn decode_sequence<T: Decode, R>(
    decoder: &mut Decoder<'_>,
    max_len: usize,
    elements: impl FnOnce(&mut Decoder<'_>, usize) -> Result<R, DecodeError>,
) -> Result<R, DecodeError> {
    decode_sequence_of::<T, R>(decoder, T::MIN_BYTES, max_len, elements)
}

/// Reads the keys of at most so many elements.
fn decode_key_sequence<T: Decode>(decoder: &mut Decoder<'_>, max_len: usize) -> Result<Vec<T>, DecodeError> {
    // Fewer bytes than a whole element has: only its key members are there.
    decode_sequence_of::<T, _>(decoder, 0, max_len, |decoder, count| {
        decoder.charge(count, size_of::<T>())?;
        (0..count).map(|_| T::decode_key(decoder)).collect()
    })
}

/// As [`decode_sequence`], of elements that have at least so many bytes.
#[inline]
fn decode_sequence_of<T: Decode, R>(
    decoder: &mut Decoder<'_>,
    element_min_bytes: usize,
    max_len: usize,
    elements: impl FnOnce(&mut Decoder<'_>, usize) -> Result<R, DecodeError>,
) -> Result<R, DecodeError> {
    let read = |decoder: &mut Decoder<'_>| {
        let count = bounded_length(decoder, element_min_bytes, max_len)?;
        elements(decoder, count)
    };
    if T::PRIMITIVE {
        return read(decoder);
    }
    decoder.nested(|decoder| decoder.collection(false, read))
}

/// Reads a count that a bound limits.
pub(crate) fn bounded_length(
    decoder: &mut Decoder<'_>,
    element_min_bytes: usize,
    max_len: usize,
) -> Result<usize, DecodeError> {
    decoder.align(4);
    let at = decoder.offset();
    let count = decoder.length(element_min_bytes)?;
    if count > max_len {
        return Err(DecodeError::new(at, format!("at most {max_len} elements, not {count}")));
    }
    Ok(count)
}

/// Passes over a collection of elements that are not primitive: by its length where it has one.
pub(crate) fn skip_collection(
    decoder: &mut Decoder<'_>,
    elements: impl FnOnce(&mut Decoder<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    match decoder.representation() {
        Representation::Xcdr1 => decoder.nested(elements),
        Representation::Xcdr2 => decoder.skip_delimited(),
    }
}

/// IDL's array; arrays of arrays are one array with several dimensions, with one frame around the whole.
impl<T: Layout, const N: usize> Layout for [T; N] {
    const ARRAY: bool = true;
    const ELEMENT_PRIMITIVE: bool = T::ELEMENT_PRIMITIVE;
    // An array of structs has a frame in XCDR2, which memory has not.
    const PLAIN: bool = T::PLAIN && T::ELEMENT_PRIMITIVE;
    const START_ALIGNMENT: usize = T::START_ALIGNMENT;
    const LENGTH_CODE: LengthCode = if T::ELEMENT_PRIMITIVE { LengthCode::Stated } else { LengthCode::OwnBytes };
    const KEY_SIZE: KeySize = match T::ELEMENT_PRIMITIVE {
        true => Self::DIMENSION_KEY_SIZE,
        false => KeySize::number(4).then(Self::DIMENSION_KEY_SIZE),
    };
    const DIMENSION_KEY_SIZE: KeySize = T::DIMENSION_KEY_SIZE.times(N);
    const KEY_HAS_OPTIONAL: bool = T::KEY_HAS_OPTIONAL;
    const MIN_BYTES: usize = T::MIN_BYTES.saturating_mul(N);

    fn description() -> Option<Type> {
        Some(Type::Array { element: Box::new(T::description()?), count: N })
    }
}

impl<T: Encode, const N: usize> Encode for [T; N] {
    fn field(&self, path: &[FieldStep]) -> Option<FieldValue<'_>> {
        let (FieldStep::Element(index), rest) = path.split_first()? else { return None };
        self.get(*index)?.field(rest)
    }

    fn field_kind(path: &[FieldStep]) -> Option<FieldKind> {
        let (FieldStep::Element(index), rest) = path.split_first()? else { return None };
        if *index < N { T::field_kind(rest) } else { None }
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::encode_elements(self, encoder);
        }
        encoder.array(|encoder| match T::ARRAY {
            true => encode_dimension(self, encoder, T::encode),
            false => T::encode_elements(self, encoder),
        })
    }

    fn encode_key(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if T::ELEMENT_PRIMITIVE {
            return self.encode(encoder);
        }
        encoder.array(|encoder| encode_dimension(self, encoder, T::encode_key))
    }

    #[inline]
    fn encode_elements(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::encode_elements(elements.as_flattened(), encoder);
        }
        elements.iter().try_for_each(|element| element.encode(encoder))
    }

    fn size_hint(&self) -> usize {
        let frame = if T::ELEMENT_PRIMITIVE { 0 } else { 4 };
        let are_alike = T::ELEMENT_PRIMITIVE || T::PLAIN;
        elements_hint(self.iter().map(T::size_hint), N, are_alike).saturating_add(frame)
    }
}

fn encode_dimension<T: Layout>(
    elements: &[T],
    encoder: &mut Encoder<'_>,
    encode: fn(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    elements.iter().try_for_each(|element| {
        if T::ARRAY {
            encoder.begin_dimension();
        }
        encode(element, encoder)
    })
}

impl<T: Decode, const N: usize> Decode for [T; N] {
    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::decode_array(decoder);
        }
        decoder.array(|decoder| match T::ARRAY {
            true => decode_dimension(decoder, T::decode),
            false => T::decode_array(decoder),
        })
    }

    fn decode_key(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::decode_array(decoder);
        }
        decoder.array(|decoder| decode_dimension(decoder, T::decode_key))
    }

    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::decode_slice(self, decoder);
        }
        decoder.array(|decoder| match T::ARRAY {
            true => self.iter_mut().try_for_each(|element| {
                decoder.begin_dimension();
                element.decode_into(decoder)
            }),
            false => T::decode_slice(self, decoder),
        })
    }

    #[inline]
    fn decode_slice(elements: &mut [Self], decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::decode_slice(elements.as_flattened_mut(), decoder);
        }
        elements.iter_mut().try_for_each(|element| element.decode_into(decoder))
    }

    fn decode_boxed(decoder: &mut Decoder<'_>) -> Result<Box<Self>, DecodeError> {
        if !T::PRIMITIVE {
            return Self::decode(decoder).map(Box::new);
        }
        let elements = T::decode_elements(decoder, N)?.into_boxed_slice();
        Ok(elements.try_into().unwrap_or_else(|_| unreachable!("as many elements were read as the array has")))
    }

    fn default_value() -> Self {
        std::array::from_fn(|_| T::default_value())
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        if T::ELEMENT_PRIMITIVE {
            return T::skip_elements(decoder, N);
        }
        skip_collection(decoder, |decoder| T::skip_elements(decoder, N))
    }
}

fn decode_dimension<T: Decode, const N: usize>(
    decoder: &mut Decoder<'_>,
    decode: fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    array_by(|| {
        if T::ARRAY {
            decoder.begin_dimension();
        }
        decode(decoder)
    })
}

/// IDL's `@external` member: the same on the wire as the value in the box; it permits recursive types.
impl<T: Layout> Layout for Box<T> {
    const PRIMITIVE: bool = T::PRIMITIVE;
    const ARRAY: bool = T::ARRAY;
    const ELEMENT_PRIMITIVE: bool = T::ELEMENT_PRIMITIVE;
    const DIMENSION_KEY_SIZE: KeySize = T::DIMENSION_KEY_SIZE;
    const LENGTH_CODE: LengthCode = T::LENGTH_CODE;
    const KEY_SIZE: KeySize = T::KEY_SIZE;
    const KEY_HAS_OPTIONAL: bool = T::KEY_HAS_OPTIONAL;

    fn description() -> Option<Type> {
        T::description()
    }
}

impl<T: Encode> Encode for Box<T> {
    fn field(&self, path: &[FieldStep]) -> Option<FieldValue<'_>> {
        T::field(self, path)
    }

    fn field_kind(path: &[FieldStep]) -> Option<FieldKind> {
        T::field_kind(path)
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.nested(|encoder| T::encode(self, encoder))
    }

    fn encode_key(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.nested(|encoder| T::encode_key(self, encoder))
    }

    fn size_hint(&self) -> usize {
        T::size_hint(self)
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.charge(1, size_of::<T>())?;
        decoder.nested(T::decode_boxed)
    }

    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        decoder.charge(1, size_of::<T>())?;
        decoder.nested(|decoder| T::decode_into(self, decoder))
    }

    fn decode_key(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.charge(1, size_of::<T>())?;
        decoder.nested(T::decode_key).map(Box::new)
    }

    fn default_value() -> Self {
        Box::new(T::default_value())
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
        decoder.nested(T::skip)
    }
}
