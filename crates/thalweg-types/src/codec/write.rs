//! Documents to bytes.

use thalweg_cdr::description::{
    Bitmask, Bitset, Enumeration, Primitive, Structure, StructureMember, Type, Union, UnionCase,
};
use thalweg_cdr::{Encode, EncodeError, Encoder, Extensibility, LengthCode, Member as MemberHeader, WString};

use super::number::{quadruple, real, whole};
use crate::document::{Document, MapKey, octets};

/// The name under which a union's document has its discriminator (DDS-JSON 1.0 §7.1.6).
pub const DISCRIMINATOR: &str = "$discriminator";

/// Which members are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// The key members, framed like the sample.
    Key,
    /// The key members by id, without frames.
    KeyHash,
}

pub(super) fn structure(
    of: &Structure,
    value: &Document,
    encoder: &mut Encoder<'_>,
    part: Part,
) -> Result<(), EncodeError> {
    let Document::Map(given) = value else {
        return Err(needed(&format!("an object with the members of {}", of.name), value));
    };
    let unknown = given.iter().find(|(key, _)| !of.members.iter().any(|member| is_named(key, &member.name)));
    if let Some((key, _)) = unknown {
        let names: Vec<&str> = of.members.iter().map(|member| member.name.as_str()).collect();
        return Err(EncodeError::new(format!("there is no member {:?}; there are {}", name_of(key), names.join(", "))));
    }
    let members: Vec<&StructureMember> = match part {
        Part::All => of.members.iter().collect(),
        Part::Key => of.key_members().collect(),
        Part::KeyHash => of.key_members_by_id(),
    };
    framed(of.extensibility, part, encoder, |encoder| {
        let is_mutable = of.extensibility == Extensibility::Mutable && part != Part::KeyHash;
        members.iter().try_for_each(|member| {
            write_member(member, given_for(member, value)?, is_mutable, encoder, part)
                .map_err(|error| in_member(&member.name, &error))
        })
    })
}

fn write_member(
    member: &StructureMember,
    found: Option<&Document>,
    is_mutable: bool,
    encoder: &mut Encoder<'_>,
    part: Part,
) -> Result<(), EncodeError> {
    let header = MemberHeader { id: member.id, must_understand: member.must_understand };
    let write = |found: &Document, encoder: &mut Encoder<'_>| write_value(&member.member_type, found, encoder, part);
    match found {
        None if is_mutable || part == Part::KeyHash => Ok(()),
        Some(found) if is_mutable => {
            encoder.parameter(header, length_code(&member.member_type), |encoder| write(found, encoder))
        }
        found if member.is_optional => encoder.optional(header, found, write),
        Some(found) => write(found, encoder),
        None => Ok(()),
    }
}

pub(super) fn union(of: &Union, value: &Document, encoder: &mut Encoder<'_>, part: Part) -> Result<(), EncodeError> {
    let (label, case, found) = chosen(of, value)?;
    let is_mutable = of.extensibility == Extensibility::Mutable && part != Part::KeyHash;
    framed(of.extensibility, part, encoder, |encoder| {
        let write_label = |encoder: &mut Encoder<'_>| write_number(&of.discriminator, label, encoder);
        if is_mutable {
            let header = MemberHeader { id: 0, must_understand: true };
            encoder.parameter(header, LengthCode::Stated, write_label)?;
        } else {
            write_label(encoder)?;
        }
        let (Some(case), true) = (case, part == Part::All || !of.is_keyed) else { return Ok(()) };
        let Some(case_type) = &case.case_type else { return Ok(()) };
        let found = found.ok_or_else(|| EncodeError::new(format!("the member {:?} is missing", case.name)))?;
        let written = if is_mutable {
            let header = MemberHeader { id: case.id, must_understand: false };
            encoder.parameter(header, LengthCode::Stated, |encoder| write_value(case_type, found, encoder, part))
        } else {
            write_value(case_type, found, encoder, part)
        };
        written.map_err(|error| in_member(&case.name, &error))
    })
}

/// The discriminator, the case that it selects and the value of that case's member.
fn chosen<'a>(
    of: &'a Union,
    value: &'a Document,
) -> Result<(i64, Option<&'a UnionCase>, Option<&'a Document>), EncodeError> {
    let Document::Map(given) = value else {
        return Err(needed(&format!("an object with one member of {}", of.name), value));
    };
    let mut members = given.iter().filter(|(key, _)| !is_named(key, DISCRIMINATOR));
    let (member, more) = (members.next(), members.next());
    if let Some((key, _)) = more {
        return Err(EncodeError::new(format!("{:?} is one member too many for a union", name_of(key))));
    }
    let named = match member {
        None => None,
        Some((key, _)) => Some(of.cases.iter().find(|case| is_named(key, &case.name)).ok_or_else(|| {
            let names: Vec<&str> = of.cases.iter().map(|case| case.name.as_str()).collect();
            EncodeError::new(format!("there is no member {:?}; there are {}", name_of(key), names.join(", ")))
        })?),
    };
    let label = match (value.member(DISCRIMINATOR), named) {
        (Some(given), _) => number_of(&of.discriminator, given).map_err(|error| in_member(DISCRIMINATOR, &error))?,
        (None, Some(case)) => match case.labels.first() {
            Some(label) => i64::from(*label),
            None => free_label(of)?,
        },
        (None, None) => return Err(EncodeError::new(format!("{DISCRIMINATOR:?} or a member is missing"))),
    };
    let selected = of.case_of(label);
    match (selected, named) {
        (Some(selected), Some(named)) if selected.name != named.name => {
            let problem = format!("the discriminator selects {:?}, not {:?}", selected.name, named.name);
            Err(EncodeError::new(problem))
        }
        (None, Some(named)) => Err(EncodeError::new(format!("the discriminator does not select {:?}", named.name))),
        _ => Ok((label, selected, member.map(|(_, value)| value))),
    }
}

/// A value of the discriminator that selects the default case.
fn free_label(of: &Union) -> Result<i64, EncodeError> {
    let is_free =
        |label: &i64| of.cases.iter().all(|case| !case.labels.iter().any(|other| i64::from(*other) == *label));
    let free = match of.discriminator.resolved() {
        Type::Enumeration(enumeration) => {
            enumeration.literals.iter().map(|literal| i64::from(literal.value)).find(is_free)
        }
        Type::Primitive(Primitive::Boolean) => (0..=1).find(is_free),
        _ => (0..=127).find(is_free),
    };
    free.ok_or_else(|| EncodeError::new(format!("{DISCRIMINATOR:?} is missing, and no value for it can be guessed")))
}

fn framed(
    extensibility: Extensibility,
    part: Part,
    encoder: &mut Encoder<'_>,
    write: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    match extensibility {
        _ if part == Part::KeyHash => write(encoder),
        Extensibility::Final => encoder.final_type(write),
        Extensibility::Appendable => encoder.appendable_type(write),
        Extensibility::Mutable => encoder.mutable_type(write),
    }
}

/// The document's value for a member; none only for an optional one.
fn given_for<'a>(member: &StructureMember, value: &'a Document) -> Result<Option<&'a Document>, EncodeError> {
    match value.member(&member.name) {
        Some(Document::Null) | None if member.is_optional => Ok(None),
        None => Err(EncodeError::new(format!("the member {:?} is missing", member.name))),
        found => Ok(found),
    }
}

fn write_value(of: &Type, value: &Document, encoder: &mut Encoder<'_>, part: Part) -> Result<(), EncodeError> {
    match of {
        Type::Primitive(primitive) => write_primitive(*primitive, value, encoder),
        Type::String { bound } => {
            let text = text(value)?;
            within(text.len(), *bound, "bytes")?;
            text.encode(encoder)
        }
        Type::WString { bound } => {
            let text = text(value)?;
            within(text.encode_utf16().count(), *bound, "code units")?;
            WString(text).encode(encoder)
        }
        Type::Enumeration(_) | Type::Bitmask(_) | Type::Bitset(_) => write_number(of, number_of(of, value)?, encoder),
        Type::Alias(alias) => write_value(&alias.aliased, value, encoder, part),
        Type::Structure(nested) => encoder.nested(|encoder| structure(nested, value, encoder, part)),
        Type::Union(nested) => encoder.nested(|encoder| union(nested, value, encoder, part)),
        Type::Sequence { element, bound } => {
            let elements = elements(element, value)?;
            within(elements.len(), *bound, "elements")?;
            encoder.collection(element.is_primitive(), |encoder| {
                encoder.length(elements.len())?;
                elements.iter().enumerate().try_for_each(|(index, value)| {
                    write_value(element, value, encoder, part).map_err(|error| in_element(index, &error))
                })
            })
        }
        Type::Array { .. } => {
            encoder.collection(of.is_primitive(), |encoder| write_dimension(of, value, encoder, part))
        }
        Type::Map { key, element, bound } => {
            let Document::Map(pairs) = value else { return Err(needed("an object of keys and values", value)) };
            within(pairs.len(), *bound, "pairs")?;
            encoder.collection(key.is_primitive() && element.is_primitive(), |encoder| {
                encoder.length(pairs.len())?;
                pairs.iter().try_for_each(|(name, value)| {
                    let name = name_of(name);
                    key_document(key, &name)
                        .and_then(|document| write_value(key, &document, encoder, part))
                        .and_then(|()| write_value(element, value, encoder, part))
                        .map_err(|error| in_member(&name, &error))
                })
            })
        }
    }
}

/// The key of a map, which JSON has as a text.
fn key_document(of: &Type, name: &str) -> Result<Document, EncodeError> {
    let text = || Document::Text(name.to_owned());
    match of.resolved() {
        Type::Primitive(Primitive::Boolean) => match name {
            "true" => Ok(Document::Boolean(true)),
            "false" => Ok(Document::Boolean(false)),
            _ => Err(needed("true or false", &text())),
        },
        Type::Primitive(primitive) if primitive.is_integer() => {
            name.parse().map(Document::Integer).map_err(|_| needed("a whole number", &text()))
        }
        _ => Ok(text()),
    }
}

/// Writes the elements of an array; the outermost dimension alone has a frame.
fn write_dimension(of: &Type, value: &Document, encoder: &mut Encoder<'_>, part: Part) -> Result<(), EncodeError> {
    let Type::Array { element, count } = of.resolved() else { return write_value(of, value, encoder, part) };
    let elements = elements(element, value)?;
    if elements.len() != *count {
        return Err(EncodeError::new(format!("{} elements, where there must be {count}", elements.len())));
    }
    elements.iter().enumerate().try_for_each(|(index, value)| {
        write_dimension(element, value, encoder, part).map_err(|error| in_element(index, &error))
    })
}

/// The elements of an array, or the octets of a text `0x…` or of CBOR.
fn elements<'a>(element: &Type, value: &'a Document) -> Result<std::borrow::Cow<'a, [Document]>, EncodeError> {
    let bytes = match value {
        Document::Array(elements) => return Ok(elements.into()),
        Document::Bytes(bytes) => Some(bytes.clone()),
        Document::Text(text) => octets(text),
        _ => None,
    };
    let is_octets = is_octet(element);
    let bytes = bytes
        .filter(|_| is_octets)
        .ok_or_else(|| needed(if is_octets { "an array, or octets as \"0x…\"" } else { "an array" }, value))?;
    Ok(bytes.into_iter().map(|byte| Document::Integer(i128::from(byte))).collect())
}

/// Whether rows of it are documents of octets.
pub(super) fn is_octet(element: &Type) -> bool {
    matches!(element.resolved(), Type::Primitive(Primitive::Byte | Primitive::UInt8))
}

fn write_primitive(primitive: Primitive, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    match primitive {
        Primitive::Boolean => match value {
            Document::Boolean(value) => value.encode(encoder),
            _ => Err(needed("true or false", value)),
        },
        Primitive::Byte | Primitive::UInt8 => whole::<u8>(value)?.encode(encoder),
        Primitive::Int8 => whole::<i8>(value)?.encode(encoder),
        Primitive::Int16 => whole::<i16>(value)?.encode(encoder),
        Primitive::UInt16 => whole::<u16>(value)?.encode(encoder),
        Primitive::Int32 => whole::<i32>(value)?.encode(encoder),
        Primitive::UInt32 => whole::<u32>(value)?.encode(encoder),
        Primitive::Int64 => whole::<i64>(value)?.encode(encoder),
        Primitive::UInt64 => whole::<u64>(value)?.encode(encoder),
        Primitive::Float32 => (real(value)? as f32).encode(encoder),
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

/// The number that stands for a value of an enumeration, bit mask, bit set or discriminator.
fn number_of(of: &Type, value: &Document) -> Result<i64, EncodeError> {
    match of.resolved() {
        Type::Enumeration(enumeration) => literal(enumeration, value),
        Type::Bitmask(bitmask) => flags(bitmask, value),
        Type::Bitset(bitset) => fields(bitset, value),
        Type::Primitive(Primitive::Boolean) => match value {
            Document::Boolean(value) => Ok(i64::from(*value)),
            _ => Err(needed("true or false", value)),
        },
        Type::Primitive(Primitive::Char8 | Primitive::Char16) => Ok(i64::from(u32::from(character(value)?))),
        Type::Primitive(Primitive::UInt64) => whole::<u64>(value).map(u64::cast_signed),
        _ => whole(value),
    }
}

/// Writes what [`number_of`] gives.
fn write_number(of: &Type, number: i64, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    let size_bytes = of.bytes_min();
    let is_signed = match of.resolved() {
        Type::Enumeration(enumeration) => enumeration.literals.iter().any(|literal| literal.value < 0),
        Type::Primitive(primitive) => {
            matches!(primitive, Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64)
        }
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
    match size_bytes {
        1 => encoder.number((number as u8).to_ne_bytes()),
        2 => encoder.number((number as u16).to_ne_bytes()),
        4 => encoder.number((number as u32).to_ne_bytes()),
        _ => encoder.number(number.to_ne_bytes()),
    }
    Ok(())
}

fn literal(of: &Enumeration, value: &Document) -> Result<i64, EncodeError> {
    let found = match value {
        Document::Text(name) => of.literal_named(name),
        Document::Integer(number) => of.literals.iter().find(|literal| i128::from(literal.value) == *number),
        _ => None,
    };
    let found = found.map(|literal| i64::from(literal.value));
    found.ok_or_else(|| {
        let names: Vec<&str> = of.literals.iter().map(|literal| literal.name.as_str()).collect();
        needed(&format!("one of {}", names.join(", ")), value)
    })
}

/// An array of names, or a number.
fn flags(of: &Bitmask, value: &Document) -> Result<i64, EncodeError> {
    let allowed = if of.bit_bound >= 64 { u64::MAX } else { (1 << of.bit_bound) - 1 };
    let bits = match value {
        Document::Array(names) => names.iter().try_fold(0, |bits, name| {
            let position = match name {
                Document::Text(name) => of.flags.iter().find(|(flag, _)| flag == name).map(|(_, position)| *position),
                _ => None,
            };
            position.map(|position| bits | 1 << position)
        }),
        _ => whole::<u64>(value).ok().filter(|bits| bits & !allowed == 0),
    };
    bits.map(u64::cast_signed).ok_or_else(|| {
        let names: Vec<&str> = of.flags.iter().map(|(name, _)| name.as_str()).collect();
        needed(&format!("an array of {}", names.join(", ")), value)
    })
}

fn fields(of: &Bitset, value: &Document) -> Result<i64, EncodeError> {
    let Document::Map(given) = value else {
        return Err(needed(&format!("an object with the fields of {}", of.name), value));
    };
    let mut bits = 0;
    for (key, value) in given {
        let name = name_of(key);
        let field = of.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| EncodeError::new(format!("there is no field {name:?}")))?;
        let number = match (field.holder, value) {
            (Primitive::Boolean, Document::Boolean(value)) => i128::from(*value),
            _ => whole::<i128>(value).map_err(|error| in_member(&name, &error))?,
        };
        let is_signed = is_signed(field.holder);
        let range = if is_signed { -(1 << (field.bits - 1))..1 << (field.bits - 1) } else { 0..1_i128 << field.bits };
        if !range.contains(&number) {
            return Err(EncodeError::new(format!("{name}: {number} does not fit into {} bits", field.bits)));
        }
        bits |= (number & ((1 << field.bits) - 1)) << field.position;
    }
    Ok((bits as u64).cast_signed())
}

/// Whether a field of a bit set may be negative.
pub(super) fn is_signed(holder: Primitive) -> bool {
    matches!(holder, Primitive::Int8 | Primitive::Int16 | Primitive::Int32 | Primitive::Int64)
}

fn length_code(of: &Type) -> LengthCode {
    match of.resolved() {
        Type::Primitive(primitive) => LengthCode::of_number(primitive.size_bytes()),
        number @ (Type::Enumeration(_) | Type::Bitmask(_) | Type::Bitset(_)) => {
            LengthCode::of_number(number.bytes_min())
        }
        Type::String { .. } | Type::WString { .. } => LengthCode::OwnBytes,
        Type::Sequence { element, .. } => match element.resolved() {
            Type::Primitive(primitive) => match primitive.size_bytes() {
                1 => LengthCode::OwnBytes,
                4 => LengthCode::OwnFours,
                8 => LengthCode::OwnEights,
                _ => LengthCode::Stated,
            },
            element if element.is_primitive() => LengthCode::Stated,
            _ => LengthCode::OwnBytes,
        },
        Type::Map { key, element, .. } if key.is_primitive() && element.is_primitive() => LengthCode::Stated,
        array @ Type::Array { .. } if array.is_primitive() => LengthCode::Stated,
        Type::Map { .. } | Type::Array { .. } => LengthCode::OwnBytes,
        Type::Structure(_) | Type::Union(_) | Type::Alias(_) => LengthCode::Stated,
    }
}

fn is_named(key: &MapKey, name: &str) -> bool {
    matches!(key, MapKey::Text(found) if found == name)
}

fn name_of(key: &MapKey) -> String {
    match key {
        MapKey::Text(name) => name.clone(),
        MapKey::Label(label) => label.to_string(),
    }
}

fn text(value: &Document) -> Result<String, EncodeError> {
    match value {
        Document::Text(text) => Ok(text.clone()),
        _ => Err(needed("a text", value)),
    }
}

fn within(length: usize, bound: Option<usize>, what: &str) -> Result<(), EncodeError> {
    match bound {
        Some(bound) if length > bound => Err(EncodeError::new(format!("{length} {what}, where {bound} are allowed"))),
        _ => Ok(()),
    }
}

pub(super) fn needed(what: &str, value: &Document) -> EncodeError {
    let found = match value {
        Document::Null => "nothing".to_owned(),
        Document::Boolean(value) => value.to_string(),
        Document::Integer(number) => number.to_string(),
        Document::Real(number) => number.to_string(),
        Document::Text(text) => format!("{text:?}"),
        Document::Bytes(_) => "octets".to_owned(),
        Document::Array(_) => "an array".to_owned(),
        Document::Map(_) => "an object".to_owned(),
    };
    EncodeError::new(format!("{what} is needed, not {found}"))
}

fn in_member(name: &str, error: &EncodeError) -> EncodeError {
    EncodeError::new(format!("{name}: {}", error.problem()))
}

fn in_element(index: usize, error: &EncodeError) -> EncodeError {
    EncodeError::new(format!("element {index}: {}", error.problem()))
}
