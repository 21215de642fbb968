//! Documents to bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use thalweg_cdr::description::{Primitive, Recursive, Structure, StructureMember, Type, Union, UnionCase};
use thalweg_cdr::{Encode, EncodeError, Encoder, Extensibility, LengthCode, Member as MemberHeader, WString};

use super::leaf::{needed, number_of, text, unknown, within, write_number, write_primitive};
use super::range;
use super::read::key_text;
use crate::document::{Document, MapKey, Numbers, octets};

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
    let is_known = |(key, _): &&(MapKey, Document)| of.members.iter().any(|member| is_named(key, &member.name));
    let is_in_order = given.len() <= of.members.len()
        && given.iter().zip(&of.members).all(|((key, _), member)| is_named(key, &member.name));
    if !is_in_order && let Some((key, _)) = given.iter().find(|pair| !is_known(pair)) {
        return Err(unknown("member", &name_of(key), of.members.iter().map(|member| &*member.name)));
    }
    framed(of.extensibility, part, encoder, |encoder| {
        let is_mutable = of.extensibility == Extensibility::Mutable && part != Part::KeyHash;
        let write = |(place, member): (usize, &StructureMember)| {
            if part != Part::All && member.is_optional {
                let problem = "an optional member is no part of a key (DDS-XTypes 1.3 §7.2.2.4.4.4.8)";
                return Err(EncodeError::new(problem).below_member(&member.name));
            }
            let given = given_for(member, given, place)?;
            // A key may be that of a sample which another vendor wrote.
            let in_range = match given {
                Some(given) if part == Part::All => range::check(&member.member_type, &member.annotations, given),
                _ => Ok(()),
            };
            in_range
                .and_then(|()| write_member(member, given, is_mutable, encoder, part))
                .map_err(|error| error.below_member(&member.name))
        };
        match part {
            Part::All => of.members.iter().enumerate().try_for_each(write),
            Part::Key => of.key_members().enumerate().try_for_each(write),
            Part::KeyHash => of.key_members_by_id().into_iter().enumerate().try_for_each(write),
        }
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
        None if is_mutable => Ok(()),
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
        if part == Part::All {
            range::check(case_type, &case.annotations, found).map_err(|error| error.below_member(&case.name))?;
        }
        let written = if is_mutable {
            let header = MemberHeader { id: case.id, must_understand: false };
            encoder.parameter(header, LengthCode::Stated, |encoder| write_value(case_type, found, encoder, part))
        } else {
            write_value(case_type, found, encoder, part)
        };
        written.map_err(|error| error.below_member(&case.name))
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
        Some((key, _)) => Some(
            of.cases
                .iter()
                .find(|case| is_named(key, &case.name))
                .ok_or_else(|| unknown("member", &name_of(key), of.cases.iter().map(|case| case.name.as_str())))?,
        ),
    };
    let label = match (value.member(DISCRIMINATOR), named) {
        (Some(given), _) => number_of(&of.discriminator, given).map_err(|error| error.below_member(DISCRIMINATOR))?,
        (None, Some(case)) => match case.labels.first() {
            Some(label) => of.selecting(*label),
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
pub(super) fn free_label(of: &Union) -> Result<i64, EncodeError> {
    let is_free =
        |label: &i64| of.cases.iter().all(|case| !case.labels.iter().any(|other| of.selecting(*other) == *label));
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

/// The value for a member among those given, of which most stand where the type has them; none only for an optional one.
fn given_for<'a>(
    member: &StructureMember,
    given: &'a [(MapKey, Document)],
    place: usize,
) -> Result<Option<&'a Document>, EncodeError> {
    let is_it = |(key, _): &&(MapKey, Document)| is_named(key, &member.name);
    let found = given.get(place).filter(is_it).or_else(|| given.iter().find(is_it));
    match found.map(|(_, value)| value) {
        Some(Document::Null) | None if member.is_optional => Ok(None),
        None => {
            let what = if member.is_key { "key member" } else { "member" };
            Err(EncodeError::new(format!("the {what} {:?} is missing", member.name)))
        }
        found => Ok(found),
    }
}

pub(super) fn write_value(
    of: &Type,
    value: &Document,
    encoder: &mut Encoder<'_>,
    part: Part,
) -> Result<(), EncodeError> {
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
            WString(text.clone()).encode(encoder)
        }
        Type::Enumeration(_) | Type::Bitmask(_) | Type::Bitset(_) => write_number(of, number_of(of, value)?, encoder),
        Type::Alias(alias) => write_value(&alias.aliased, value, encoder, part),
        Type::Structure(nested) => encoder.nested(|encoder| structure(nested, value, encoder, part)),
        Type::Union(nested) => encoder.nested(|encoder| union(nested, value, encoder, part)),
        Type::Recursive(used) => write_recursive(used, encoder, |of, encoder| write_value(of, value, encoder, part)),
        Type::Sequence { element, bound } if let Some(row) = row_of(element, value) => {
            within(row.len(), *bound, "elements")?;
            encoder.length(row.len())?;
            row.encode(encoder)
        }
        Type::Sequence { element, bound } => {
            let elements = elements(element, value)?;
            within(elements.len(), *bound, "elements")?;
            encoder.collection(element.is_primitive(), |encoder| {
                encoder.length(elements.len())?;
                elements.iter().enumerate().try_for_each(|(index, value)| {
                    write_value(element, value, encoder, part).map_err(|error| error.below_element(index))
                })
            })
        }
        Type::Array { .. } => {
            encoder.collection(of.is_primitive_array(), |encoder| write_dimension(of, value, encoder, part))
        }
        Type::Map { key, element, bound } => {
            let Document::Map(pairs) = value else { return Err(needed("an object of keys and values", value)) };
            within(pairs.len(), *bound, "pairs")?;
            let mut keys = BTreeSet::new();
            encoder.collection(key.is_primitive() && element.is_primitive(), |encoder| {
                encoder.length(pairs.len())?;
                pairs.iter().try_for_each(|(name, value)| {
                    let name = name_of(name);
                    key_document(key, &name)
                        .and_then(|document| match keys.insert(key_text(&document)) {
                            true => write_value(key, &document, encoder, part),
                            false => Err(EncodeError::new("the key is there twice")),
                        })
                        .and_then(|()| write_value(element, value, encoder, part))
                        .map_err(|error| error.below_member(&name))
                })
            })
        }
    }
}

/// Writes a value of a type that contains itself, as it is read: a level of nesting, which structures and unions count on their own.
fn write_recursive(
    used: &Recursive,
    encoder: &mut Encoder<'_>,
    write: impl FnOnce(&Type, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    match used.definition() {
        Some(of @ (Type::Structure(_) | Type::Union(_))) => write(&of, encoder),
        Some(of) => encoder.nested(|encoder| write(&of, encoder)),
        None => Err(EncodeError::new(format!("the definition of {} is gone", used.name()))),
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
    let (element, count) = match of.resolved() {
        Type::Array { element, count } => (element, count),
        Type::Recursive(used) => {
            return write_recursive(used, encoder, |of, encoder| write_dimension(of, value, encoder, part));
        }
        other => return write_value(other, value, encoder, part),
    };
    let of_length = |length: usize| match length == *count {
        true => Ok(()),
        false => Err(EncodeError::new(format!("{length} elements, where there must be {count}"))),
    };
    if let Some(row) = row_of(element, value) {
        return of_length(row.len()).and_then(|()| row.encode(encoder));
    }
    let elements = elements(element, value)?;
    of_length(elements.len())?;
    elements.iter().enumerate().try_for_each(|(index, value)| {
        write_dimension(element, value, encoder, part).map_err(|error| error.below_element(index))
    })
}

/// Numbers or octets that are written at once.
enum Row<'a> {
    Numbers(&'a Numbers),
    Octets(Cow<'a, [u8]>),
}

impl Row<'_> {
    fn len(&self) -> usize {
        match self {
            Row::Numbers(numbers) => numbers.len(),
            Row::Octets(octets) => octets.len(),
        }
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match self {
            Row::Numbers(numbers) => numbers.encode(encoder),
            Row::Octets(octets) => u8::encode_elements(octets, encoder),
        }
    }
}

/// A row of the elements' own type; octets also from a text `0x…`.
fn row_of<'a>(element: &Type, value: &'a Document) -> Option<Row<'a>> {
    let Type::Primitive(primitive) = element.resolved() else { return None };
    match value {
        Document::Numbers(row) if row.primitive() == *primitive => Some(Row::Numbers(row)),
        Document::Bytes(bytes) if is_octet(element) => Some(Row::Octets(bytes.into())),
        Document::Text(text) if is_octet(element) => octets(text).map(|bytes| Row::Octets(bytes.into())),
        _ => None,
    }
}

/// The elements of an array.
fn elements<'a>(element: &Type, value: &'a Document) -> Result<Cow<'a, [Document]>, EncodeError> {
    match value {
        Document::Array(elements) => Ok(elements.into()),
        Document::Numbers(_) => Ok(value.items().into_iter().flatten().map(Cow::into_owned).collect::<Vec<_>>().into()),
        _ => Err(needed(if is_octet(element) { "an array, or octets as \"0x…\"" } else { "an array" }, value)),
    }
}

/// Whether rows of it are documents of octets.
pub(super) fn is_octet(element: &Type) -> bool {
    matches!(element.resolved(), Type::Primitive(Primitive::Byte | Primitive::UInt8))
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
            _ => LengthCode::OwnBytes,
        },
        Type::Map { key, element, .. } if key.is_primitive() && element.is_primitive() => LengthCode::Stated,
        array @ Type::Array { .. } if array.is_primitive_array() => LengthCode::Stated,
        Type::Map { .. } | Type::Array { .. } => LengthCode::OwnBytes,
        Type::Structure(_) | Type::Union(_) | Type::Alias(_) => LengthCode::Stated,
        Type::Recursive(used) => used.definition().map_or(LengthCode::Stated, |of| length_code(&of)),
    }
}

pub(super) fn is_named(key: &MapKey, name: &str) -> bool {
    matches!(key, MapKey::Text(found) if **found == *name)
}

pub(super) fn name_of(key: &MapKey) -> String {
    match key {
        MapKey::Text(name) => name.to_string(),
        MapKey::Label(label) => label.to_string(),
    }
}
