//! Numbers, booleans and characters, alone and in rows.

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::description::{Primitive, Type};
use crate::encoder::reversed;
use crate::{
    Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, FieldKind, FieldStep, FieldValue, KeySize, Layout,
    LengthCode,
};

/// A number as a content filter sees it.
trait Number {
    const KIND: FieldKind;

    fn as_field(&self) -> FieldValue<'_>;
}

macro_rules! integer_field {
    ($($number:ident)*) => {$(
        impl Number for $number {
            const KIND: FieldKind = FieldKind::Integer;

            fn as_field(&self) -> FieldValue<'_> {
                FieldValue::Integer(i128::from(*self))
            }
        }
    )*};
}

macro_rules! float_field {
    ($($number:ident: $variant:ident)*) => {$(
        impl Number for $number {
            const KIND: FieldKind = FieldKind::Float;

            fn as_field(&self) -> FieldValue<'_> {
                FieldValue::$variant(*self)
            }
        }
    )*};
}

integer_field!(i8 u8 i16 u16 i32 u32 i64 u64);
float_field!(f32: Single f64: Float);

/// Implements the traits for a number type: rows of numbers in the wire's byte order are copied at once, others swapped.
macro_rules! number {
    ($($number:ident: $kind:ident)*) => {$(
        impl Layout for $number {
            const PRIMITIVE: bool = true;
            const PLAIN: bool = true;
            const START_ALIGNMENT: usize = size_of::<Self>();
            const LENGTH_CODE: LengthCode = LengthCode::of_number(size_of::<Self>());
            const KEY_SIZE: KeySize = KeySize::number(size_of::<Self>());
            const MIN_BYTES: usize = size_of::<Self>();

            fn description() -> Option<Type> {
                Some(Type::Primitive(Primitive::$kind))
            }
        }

        impl Encode for $number {
            #[inline]
            fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                encoder.number(self.to_ne_bytes());
                Ok(())
            }

            #[inline]
            fn encode_elements(elements: &[Self], encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                if elements.is_empty() {
                    return Ok(());
                }
                encoder.align(size_of::<Self>());
                if encoder.is_native() || size_of::<Self>() == 1 {
                    encoder.bytes(elements.as_bytes());
                } else {
                    encoder.reserve(size_of_val(elements));
                    elements.iter().for_each(|element| encoder.number(element.to_ne_bytes()));
                }
                Ok(())
            }

            #[inline]
            fn size_hint(&self) -> usize {
                size_of::<Self>()
            }

            fn field(&self, path: &[FieldStep]) -> Option<FieldValue<'_>> {
                path.is_empty().then(|| self.as_field())
            }

            fn field_kind(path: &[FieldStep]) -> Option<FieldKind> {
                path.is_empty().then_some(<Self as Number>::KIND)
            }
        }

        impl Decode for $number {
            #[inline]
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                decoder.number(stringify!($number)).map(Self::from_ne_bytes)
            }

            #[inline]
            fn default_value() -> Self {
                Self::default()
            }

            #[inline]
            fn decode_elements(decoder: &mut Decoder<'_>, count: usize) -> Result<Vec<Self>, DecodeError> {
                let bytes = row(decoder, size_of::<Self>(), count, concat!(stringify!($number), " elements"))?;
                let numbers = bytes.as_chunks().0.iter();
                match <[Self]>::ref_from_bytes(bytes) {
                    _ if !decoder.is_native() => {
                        Ok(numbers.map(|number| Self::from_ne_bytes(reversed(*number))).collect())
                    }
                    Ok(aligned) => Ok(aligned.to_vec()),
                    Err(_) => Ok(numbers.map(|number| Self::from_ne_bytes(*number)).collect()),
                }
            }

            #[inline]
            fn decode_elements_into(
                elements: &mut Vec<Self>,
                decoder: &mut Decoder<'_>,
                count: usize,
            ) -> Result<(), DecodeError> {
                let bytes = row(decoder, size_of::<Self>(), count, concat!(stringify!($number), " elements"))?;
                let numbers = bytes.as_chunks().0.iter();
                elements.clear();
                match <[Self]>::ref_from_bytes(bytes) {
                    _ if !decoder.is_native() => {
                        elements.extend(numbers.map(|number| Self::from_ne_bytes(reversed(*number))));
                    }
                    Ok(aligned) => elements.extend_from_slice(aligned),
                    Err(_) => elements.extend(numbers.map(|number| Self::from_ne_bytes(*number))),
                }
                Ok(())
            }

            #[inline]
            fn decode_slice(elements: &mut [Self], decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
                let what = concat!(stringify!($number), " elements");
                let bytes = row(decoder, size_of::<Self>(), elements.len(), what)?;
                if decoder.is_native() {
                    elements.as_mut_bytes().copy_from_slice(bytes);
                    return Ok(());
                }
                for (number, swapped) in elements.iter_mut().zip(bytes.as_chunks().0) {
                    *number = Self::from_ne_bytes(reversed(*swapped));
                }
                Ok(())
            }

            #[inline]
            fn decode_array<const N: usize>(decoder: &mut Decoder<'_>) -> Result<[Self; N], DecodeError> {
                let mut array = <[Self; N]>::new_zeroed();
                Self::decode_slice(&mut array, decoder)?;
                Ok(array)
            }

            #[inline]
            fn skip(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
                Self::decode(decoder).map(drop)
            }

            #[inline]
            fn skip_elements(decoder: &mut Decoder<'_>, count: usize) -> Result<(), DecodeError> {
                row(decoder, size_of::<Self>(), count, concat!(stringify!($number), " elements")).map(drop)
            }

            #[inline]
            fn transfer_key(decoder: &mut Decoder<'_>, encoder: &mut Encoder<'_>) -> Result<(), DecodeError> {
                encoder.number(Self::decode(decoder)?.to_ne_bytes());
                Ok(())
            }
        }
    )*};
}

number!(u8: UInt8 i8: Int8 u16: UInt16 i16: Int16 u32: UInt32 i32: Int32 u64: UInt64 i64: Int64 f32: Float32 f64: Float64);

/// The bytes of so many numbers of this size, aligned; no bytes and no padding for none.
#[inline]
fn row<'a>(decoder: &mut Decoder<'a>, size: usize, count: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
    if count == 0 {
        return Ok(&[]);
    }
    decoder.align(size);
    decoder.bytes(count.saturating_mul(size), what)
}

/// Implements the traits for a type that is one byte on the wire, and not every byte.
macro_rules! single_byte {
    ($type:ty: $kind:ident, $what:literal, $from:expr, $into:expr, $field_kind:expr, $field:expr) => {
        impl Layout for $type {
            const PRIMITIVE: bool = true;
            const LENGTH_CODE: LengthCode = LengthCode::One;
            const KEY_SIZE: KeySize = KeySize::number(1);
            const MIN_BYTES: usize = 1;

            fn description() -> Option<Type> {
                Some(Type::Primitive(Primitive::$kind))
            }
        }

        impl Encode for $type {
            #[inline]
            fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
                encoder.bytes(&[$into(*self)?]);
                Ok(())
            }

            #[inline]
            fn size_hint(&self) -> usize {
                1
            }

            fn field(&self, path: &[FieldStep]) -> Option<FieldValue<'_>> {
                path.is_empty().then(|| $field(*self))
            }

            fn field_kind(path: &[FieldStep]) -> Option<FieldKind> {
                path.is_empty().then_some($field_kind)
            }
        }

        impl Decode for $type {
            #[inline]
            fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                let [byte] = decoder.number($what)?;
                $from(byte).ok_or_else(|| DecodeError::new(decoder.offset() - 1, $what))
            }

            #[inline]
            fn default_value() -> Self {
                Self::default()
            }

            #[inline]
            fn skip_elements(decoder: &mut Decoder<'_>, count: usize) -> Result<(), DecodeError> {
                row(decoder, 1, count, $what).map(drop)
            }
        }
    };
}

single_byte!(
    bool: Boolean,
    "a bool, 0 or 1",
    |byte: u8| (byte < 2).then_some(byte == 1),
    |value: bool| -> Result<u8, EncodeError> { Ok(u8::from(value)) },
    FieldKind::Boolean,
    FieldValue::Boolean
);

// IDL's `char` is one byte of ISO 8859-1.
single_byte!(
    char: Char8,
    "a char",
    |byte: u8| Some(char::from(byte)),
    |value: char| {
        u8::try_from(value).map_err(|_| EncodeError::new(format!("{value:?} is not in ISO 8859-1, which a char holds")))
    },
    FieldKind::Text,
    FieldValue::Character
);
