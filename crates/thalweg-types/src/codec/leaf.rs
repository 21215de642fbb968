//! Documents of single values to bytes: numbers, characters, and the names that stand for numbers.

use std::ops::RangeInclusive;

use thalweg_base::nearest::nearest;
use thalweg_cdr::description::{Bitmask, Bitset, Enumeration, Primitive, Type};
use thalweg_cdr::{Encode, EncodeError, Encoder};

use super::number::{quadruple, real, whole};
use super::write::name_of;
use crate::document::Document;

pub(super) fn write_primitive(
    primitive: Primitive,
    value: &Document,
    encoder: &mut Encoder<'_>,
) -> Result<(), EncodeError> {
    match primitive {
        Primitive::Boolean => boolean(value)?.encode(encoder),
        Primitive::Float32 => single(value)?.encode(encoder),
        Primitive::Float64 => real(value)?.encode(encoder),
        Primitive::Float128 => {
            encoder.number(quadruple(value)?.to_ne_bytes());
            Ok(())
        }
        Primitive::Char8 => character(value)?.encode(encoder),
        Primitive::Char16 => {
            let unit = u16::try_from(u32::from(character(value)?));
            unit.map_err(|_| needed("one character of the basic plane", value))?.encode(encoder)
        }
        _ => {
            // Two's complement: the low bytes are those of the narrower number.
            put(whole(value, range(primitive))? as u64, primitive.size_bytes(), encoder);
            Ok(())
        }
    }
}

/// The number that stands for a value of an enumeration, bit mask, bit set or discriminator.
pub(super) fn number_of(of: &Type, value: &Document) -> Result<i64, EncodeError> {
    match of.resolved() {
        Type::Enumeration(enumeration) => literal(enumeration, value),
        Type::Bitmask(bitmask) => flags(bitmask, value),
        Type::Bitset(bitset) => fields(bitset, value),
        Type::Primitive(Primitive::Boolean) => boolean(value).map(i64::from),
        Type::Primitive(Primitive::Char8) => {
            let character = character(value)?;
            let byte = u8::try_from(character).map_err(|_| needed("a character of ISO 8859-1", value))?;
            Ok(byte.into())
        }
        Type::Primitive(Primitive::Char16) => Ok(u32::from(character(value)?).into()),
        Type::Primitive(primitive) => whole(value, range(*primitive)).map(|number| number as i64),
        _ => Err(needed("a number", value)),
    }
}

/// Writes what [`number_of`] gives.
pub(super) fn write_number(of: &Type, number: i64, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    let size_bytes = of.resolved().bytes_min();
    let is_signed = match of.resolved() {
        Type::Enumeration(enumeration) => enumeration.literals.iter().any(|literal| literal.value < 0),
        Type::Primitive(primitive) => is_signed(*primitive),
        _ => false,
    };
    let bits = 8 * size_bytes as u32;
    let fits = match is_signed {
        _ if bits == 64 => true,
        true => (-(1_i64 << (bits - 1))..1 << (bits - 1)).contains(&number),
        false => (0..1_i64 << bits).contains(&number),
    };
    if !fits {
        return Err(EncodeError::new(format!("{number} does not fit into {bits} bits")));
    }
    put(number.cast_unsigned(), size_bytes, encoder);
    Ok(())
}

/// The low bytes of a number, as one number of this size.
fn put(number: u64, size_bytes: usize, encoder: &mut Encoder<'_>) {
    match size_bytes {
        1 => encoder.number((number as u8).to_ne_bytes()),
        2 => encoder.number((number as u16).to_ne_bytes()),
        4 => encoder.number((number as u32).to_ne_bytes()),
        _ => encoder.number(number.to_ne_bytes()),
    }
}

/// The values of a whole number.
fn range(of: Primitive) -> RangeInclusive<i128> {
    let bits = 8 * of.size_bytes();
    if is_signed(of) { -(1 << (bits - 1))..=(1 << (bits - 1)) - 1 } else { 0..=(1 << bits) - 1 }
}

/// Whether a whole number of this type may be negative.
pub(super) fn is_signed(of: Primitive) -> bool {
    matches!(of, Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64)
}

fn boolean(value: &Document) -> Result<bool, EncodeError> {
    match value {
        Document::Boolean(value) => Ok(*value),
        _ => Err(needed("true or false", value)),
    }
}

/// A `float`: a number beyond its range is no infinity.
fn single(value: &Document) -> Result<f32, EncodeError> {
    let number = real(value)?;
    let single = number as f32;
    match single.is_infinite() && number.is_finite() {
        true => Err(needed(&format!("a number from {:e} to {:e}", f32::MIN, f32::MAX), value)),
        false => Ok(single),
    }
}

fn character(value: &Document) -> Result<char, EncodeError> {
    let text = text(value)?;
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(needed("one character", value)),
    }
}

/// A name, or the number of one.
fn literal(of: &Enumeration, value: &Document) -> Result<i64, EncodeError> {
    let found = match value {
        Document::Text(name) => of.literal_named(name),
        Document::Integer(number) => of.literals.iter().find(|literal| i128::from(literal.value) == *number),
        _ => None,
    };
    let found = found.map(|literal| i64::from(literal.value));
    found.ok_or_else(|| {
        let literals: Vec<String> =
            of.literals.iter().map(|literal| format!("{} ({})", literal.name, literal.value)).collect();
        let names = of.literals.iter().map(|literal| literal.name.as_str());
        needed_name(&format!("one of {}", listed(literals.iter().map(String::as_str))), value, names)
    })
}

/// An array of names, or a number.
fn flags(of: &Bitmask, value: &Document) -> Result<i64, EncodeError> {
    let allowed = if of.bit_bound >= 64 { u64::MAX } else { (1 << of.bit_bound) - 1 };
    let names = || of.flags.iter().map(|(name, _)| name.as_str());
    let Document::Array(given) = value else {
        let number = matches!(value, Document::Integer(_)).then(|| whole(value, 0..=allowed.into())).transpose()?;
        let expect = || needed(&format!("an array of {}, or a number", listed(names())), value);
        return number.map(|bits| (bits as u64).cast_signed()).ok_or_else(expect);
    };
    let bits = given.iter().enumerate().try_fold(0_u64, |bits, (index, name)| {
        let flag = match name {
            Document::Text(name) => of.flags.iter().find(|(flag, _)| flag == name),
            _ => None,
        };
        let expect = || needed_name(&format!("one of {}", listed(names())), name, names()).below_element(index);
        let (_, position) = flag.ok_or_else(expect)?;
        Ok(bits | 1_u64.checked_shl((*position).into()).unwrap_or(0))
    })?;
    Ok(bits.cast_signed())
}

/// An object of numbers; the fields that it leaves out are zero.
fn fields(of: &Bitset, value: &Document) -> Result<i64, EncodeError> {
    let Document::Map(given) = value else {
        return Err(needed(&format!("an object with the fields of {}", of.name), value));
    };
    let mut bits = 0;
    for (key, value) in given {
        let name = name_of(key);
        let field = of.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| unknown("field", &name, of.fields.iter().map(|field| field.name.as_str())))?;
        let range = match is_signed(field.holder) {
            true => -(1 << (field.bits - 1))..=(1 << (field.bits - 1)) - 1,
            false => 0..=(1 << field.bits) - 1,
        };
        let number = match (field.holder, value) {
            (Primitive::Boolean, Document::Boolean(value)) => i128::from(*value),
            _ => whole(value, range).map_err(|error| error.below_member(&name))?,
        };
        bits |= (number & ((1 << field.bits) - 1)) << field.position;
    }
    Ok((bits as u64).cast_signed())
}

pub(super) fn text(value: &Document) -> Result<&String, EncodeError> {
    match value {
        Document::Text(text) => Ok(text),
        _ => Err(needed("a text", value)),
    }
}

pub(super) fn within(length: usize, bound: Option<usize>, what: &str) -> Result<(), EncodeError> {
    match bound {
        Some(bound) if length > bound => Err(EncodeError::new(format!("{length} {what}, where {bound} are allowed"))),
        _ => Ok(()),
    }
}

/// There is no member or field of this name; tells the one that may be meant.
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> EncodeError {
    let meant = nearest(name, known.clone()).map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
    let problem = match listed(known) {
        names if names.is_empty() => format!("there is no {what} {name:?}; there is none"),
        names if meant.is_empty() => format!("there is no {what} {name:?}; there are {names}"),
        names => format!("there is no {what} {name:?}{meant} There are {names}"),
    };
    EncodeError::new(problem)
}

/// As [`needed`] where a name is wanted: tells the one that may be meant.
fn needed_name<'a>(what: &str, value: &Document, known: impl Iterator<Item = &'a str>) -> EncodeError {
    let meant = match value {
        Document::Text(name) => nearest(name, known),
        _ => None,
    };
    let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
    EncodeError::new(format!("{}{meant}", needed(what, value).problem()))
}

pub(super) fn needed(what: &str, value: &Document) -> EncodeError {
    let found = match value {
        Document::Null => "nothing".to_owned(),
        Document::Boolean(value) => value.to_string(),
        Document::Integer(number) => number.to_string(),
        Document::Real(number) => format!("{number:?}"),
        Document::Text(text) => format!("{text:?}"),
        Document::Bytes(_) => "octets".to_owned(),
        Document::Array(_) | Document::Numbers(_) => "an array".to_owned(),
        Document::Map(_) => "an object".to_owned(),
    };
    EncodeError::new(format!("{what} is needed, not {found}"))
}

/// The first names of many.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let (first, rest) = names.split_at(names.len().min(LISTED_MAX));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!("{}{more}", first.join(", "))
}

/// Most names in an error; chosen by us: what a person reads.
const LISTED_MAX: usize = 24;
