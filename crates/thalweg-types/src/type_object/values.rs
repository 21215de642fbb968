//! Values of annotations (DDS-XTypes 1.3 §7.3.4.7.2): a kind and a number or text.

use thalweg_cdr::description::Primitive;
use thalweg_cdr::{Decode, DecodeError, Decoder, Encode, EncodeError, Encoder};

use super::identifier::{octet_of, primitive_of};

/// A number as IDL writes it, with the kind in which it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnnotationValue {
    pub kind: Primitive,
    pub text: String,
}

pub(super) fn write(value: &AnnotationValue, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    octet_of(value.kind).encode(encoder)?;
    let text = value.text.as_str();
    let whole = || {
        let real = text.parse::<f64>().ok().filter(|real| real.fract() == 0.0).map(|real| real as i128);
        text.parse::<i128>().ok().or(real).ok_or_else(|| EncodeError::new(format!("{text:?} is no whole number")))
    };
    let fits = |_| EncodeError::new(format!("{text} does not fit its member"));
    let real = || text.parse::<f64>().map_err(|_| EncodeError::new(format!("{text:?} is no number")));
    match value.kind {
        Primitive::Boolean | Primitive::Byte | Primitive::UInt8 | Primitive::Char8 => {
            u8::try_from(whole()?).map_err(fits)?.encode(encoder)
        }
        Primitive::Int8 => i8::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::Int16 => i16::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::UInt16 | Primitive::Char16 => u16::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::Int32 => i32::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::UInt32 => u32::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::Int64 => i64::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::UInt64 => u64::try_from(whole()?).map_err(fits)?.encode(encoder),
        Primitive::Float32 => (real()? as f32).encode(encoder),
        Primitive::Float64 => real()?.encode(encoder),
        Primitive::Float128 => Err(EncodeError::new("an annotation with a long double")),
    }
}

/// `None` for a value of a kind that no built-in annotation of a member has here: what follows it is then not read.
pub(super) fn read(decoder: &mut Decoder<'_>) -> Result<Option<AnnotationValue>, DecodeError> {
    let octet = u8::decode(decoder)?;
    let Some(kind) = primitive_of(octet) else {
        return skip_other(octet, decoder).map(|()| None);
    };
    let text = match kind {
        Primitive::Boolean | Primitive::Byte | Primitive::UInt8 | Primitive::Char8 => u8::decode(decoder)?.to_string(),
        Primitive::Int8 => i8::decode(decoder)?.to_string(),
        Primitive::Int16 => i16::decode(decoder)?.to_string(),
        Primitive::UInt16 | Primitive::Char16 => u16::decode(decoder)?.to_string(),
        Primitive::Int32 => i32::decode(decoder)?.to_string(),
        Primitive::UInt32 => u32::decode(decoder)?.to_string(),
        Primitive::Int64 => i64::decode(decoder)?.to_string(),
        Primitive::UInt64 => u64::decode(decoder)?.to_string(),
        Primitive::Float32 => format!("{:?}", f32::decode(decoder)?),
        Primitive::Float64 => format!("{:?}", f64::decode(decoder)?),
        Primitive::Float128 => {
            let _: [u8; 16] = decoder.number("a long double")?;
            return Ok(None);
        }
    };
    Ok(Some(AnnotationValue { kind, text }))
}

const ENUMERATION: u8 = 0x40;
const STRING: u8 = 0x20;
const WSTRING: u8 = 0x21;

fn skip_other(octet: u8, decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
    match octet {
        ENUMERATION => i32::decode(decoder).map(drop),
        STRING => String::decode(decoder).map(drop),
        WSTRING => thalweg_cdr::WString::decode(decoder).map(drop),
        // An extended value is a mutable structure without members.
        _ => decoder.mutable_type(|_, _| Ok(false)),
    }
}
