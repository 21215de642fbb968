//! Bytes to documents.

mod construct;
mod id_lookup;
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thalweg_cdr::description::{
    Annotations, Bitmask, Bitset, Enumeration, Primitive, Recursive, StructureMember, Type, Union, UnionCase,
};
use thalweg_cdr::{Decode, DecodeError, Decoder, Extensibility, WString};

use super::complete::{LEAVES_MAX, member_leaves};
use super::defaults::member_default;
use super::leaf::is_signed;
use super::number::of_quadruple;
use super::write::{DISCRIMINATOR, free_label, is_octet};
use crate::document::{Document, MapKey, Numbers};
use construct::{Excess, cut_text, cut_wide_text, read_tried};
use id_lookup::IdLookup;
pub(super) use members::{members, structure};

/// Which members a payload holds, and how often what is read may be there.
#[derive(Clone, Copy)]
pub(super) struct Part {
    is_key: bool,
    /// The value is an element of a sequence or a map: nothing but the input says how many there are.
    is_element: bool,
    /// What becomes of a value that its type cannot hold.
    excess: Excess,
}

impl Part {
    pub(super) const ALL: Part = Part { is_key: false, is_element: false, excess: Excess::Refused };
    pub(super) const KEY: Part = Part { is_key: true, ..Part::ALL };

    fn of_element(self) -> Part {
        Part { is_element: true, ..self.within() }
    }

    /// The default of what the input does not have. It has no more parts than a person may mean; those of elements count as memory that
    /// the input has to deserve.
    fn default_of(
        self,
        of: &Type,
        annotations: &Annotations,
        decoder: &mut Decoder<'_>,
    ) -> Result<Document, DecodeError> {
        let Some(leaves) = member_leaves(of, annotations, LEAVES_MAX) else {
            return Err(decoder.error("a value of this member, whose default has too many parts to be meant"));
        };
        if self.is_element {
            decoder.charge(leaves, size_of::<(MapKey, Document)>())?;
        }
        Ok(member_default(of, annotations))
    }
}

pub(super) fn union(of: &Union, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    match of.extensibility {
        Extensibility::Final => label_and_case(of, decoder, part),
        Extensibility::Appendable => decoder.appendable_type(|decoder| label_and_case(of, decoder, part)),
        Extensibility::Mutable => {
            let (mut label, mut found) = (None, BTreeMap::new());
            let mut places = IdLookup::of(&of.cases, |case| case.id);
            decoder.mutable_type(|decoder, id| {
                if id == 0 {
                    label = Some(read_label(of, decoder)?);
                    return Ok(true);
                }
                let is_known = places.take_place_of(id).is_some();
                if is_known {
                    found.insert(id, decoder.clone());
                }
                Ok(is_known)
            })?;
            let (at, label) = label.ok_or_else(|| decoder.error("a discriminator among the members"))?;
            let case = selected(of, label, at)?;
            match case.and_then(|case| found.remove(&case.id)) {
                Some(place) => {
                    decoder.at_place(place, |decoder| case_document(of, label, case, decoder, Found::Here, part))
                }
                None => case_document(of, label, case, decoder, Found::Nowhere, part),
            }
        }
    }
}

/// The discriminator and the member of a final or appendable union, without its frame.
pub(super) fn label_and_case(of: &Union, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    let (at, label) = read_label(of, decoder)?;
    let case = selected(of, label, at)?;
    let case_type = case.and_then(|case| case.case_type.as_ref());
    let ends = of.extensibility != Extensibility::Final
        && case_type.map_or(decoder.is_at_end(), |of| ends_before(of, decoder, part));
    case_document(of, label, case, decoder, if ends { Found::Nowhere } else { Found::Here }, part)
}

/// Whether the input has the member that a discriminator selects.
#[derive(Clone, Copy)]
enum Found {
    Here,
    Nowhere,
}

fn case_document(
    of: &Union,
    label: i64,
    case: Option<&UnionCase>,
    decoder: &mut Decoder<'_>,
    found: Found,
    part: Part,
) -> Result<Document, DecodeError> {
    let mut members = vec![(MapKey::from(DISCRIMINATOR), of_number(&of.discriminator, label))];
    let is_label_alone = part.is_key && of.is_keyed;
    if let Some((case, case_type)) =
        case.and_then(|case| Some((case, case.case_type.as_ref()?))).filter(|_| !is_label_alone)
    {
        let value = match found {
            Found::Here => read_tried(case_type, case.try_construct, decoder, part)?,
            Found::Nowhere => None,
        };
        let value = value.map_or_else(|| part.default_of(case_type, &case.annotations, decoder), Ok)?;
        members.push((MapKey::Text(case.name.as_str().into()), value));
    }
    Ok(Document::Map(members))
}

/// The discriminator, and the offset at which it stands.
fn read_label(of: &Union, decoder: &mut Decoder<'_>) -> Result<(usize, i64), DecodeError> {
    let label = read_number(&of.discriminator, decoder)?;
    Ok((decoder.offset() - of.discriminator.resolved().bytes_min(), label))
}

/// The case of a label; an enumeration without default case need not have one for each literal.
fn selected(of: &Union, label: i64, at: usize) -> Result<Option<&UnionCase>, DecodeError> {
    if let Type::Enumeration(enumeration) = of.discriminator.resolved() {
        let is_literal = i32::try_from(label).is_ok_and(|label| enumeration.literal_of(label).is_some());
        if !is_literal {
            return Err(DecodeError::new(at, format!("a literal of {}", enumeration.name)));
        }
    }
    if let Type::Primitive(Primitive::Boolean) = of.discriminator.resolved()
        && !(0..=1).contains(&label)
    {
        return Err(DecodeError::new(at, "a bool, 0 or 1"));
    }
    Ok(of.case_of(label))
}

pub(super) fn read_value(of: &Type, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    match of {
        Type::Primitive(primitive) => read_primitive(*primitive, decoder),
        Type::String { bound } => {
            let at = decoder.offset();
            let text = String::decode(decoder)?;
            let kept = part.kept(text.len(), *bound, at)?;
            Ok(Document::Text(cut_text(text, kept)))
        }
        Type::WString { bound } => {
            let at = decoder.offset();
            let text = WString::decode(decoder)?.0;
            let kept = part.kept(text.encode_utf16().count(), *bound, at)?;
            Ok(Document::Text(cut_wide_text(text, kept)))
        }
        Type::Enumeration(enumeration) => read_literal(enumeration, of, decoder, part),
        Type::Bitmask(bitmask) => {
            let bits = read_number(of, decoder)?.cast_unsigned();
            // Flags as a number take no more memory than the input deserves.
            let is_deserved = decoder.charge(1, flag_bytes(bitmask, bits)).is_ok();
            Ok(if is_deserved { of_flags(bitmask, bits) } else { Document::Integer(bits.into()) })
        }
        Type::Bitset(bitset) => {
            let names: usize = bitset.fields.iter().map(|field| field.name.len()).sum();
            decoder.charge(bitset.fields.len(), size_of::<(MapKey, Document)>())?;
            decoder.charge(1, names)?;
            Ok(of_fields(bitset, read_number(of, decoder)?.cast_unsigned()))
        }
        Type::Alias(alias) => read_value(&alias.aliased, decoder, part),
        Type::Structure(nested) => decoder.nested(|decoder| structure(nested, decoder, part.within())),
        Type::Union(nested) => decoder.nested(|decoder| union(nested, decoder, part.within())),
        Type::Recursive(used) => read_recursive(used, decoder, |of, decoder| read_value(of, decoder, part)),
        Type::Sequence { element, bound } => decoder.collection(element.is_primitive(), |decoder| {
            let at = decoder.offset();
            let count = decoder.length(bytes_min(element, part))?;
            let kept = part.kept(count, *bound, at)?;
            let read = |part: Part| move |decoder: &mut Decoder<'_>| read_value(element, decoder, part.of_element());
            let elements = read_elements(element, kept, decoder, read(part))?;
            if kept < count {
                read_elements(element, count - kept, decoder, read(part.keeping()))?;
            }
            Ok(elements)
        }),
        Type::Array { .. } => {
            decoder.collection(of.is_primitive_array(), |decoder| read_dimension(of, decoder, part.within()))
        }
        Type::Map { key, element, bound } => {
            decoder.collection(key.is_primitive() && element.is_primitive(), |decoder| {
                let at = decoder.offset();
                let count = decoder.length(key.bytes_min() + bytes_min(element, part))?;
                let kept = part.kept(count, *bound, at)?;
                decoder.charge(count, size_of::<(MapKey, Document)>())?;
                let pairs = (0..count).map(|index| {
                    let part = if index < kept { part } else { part.keeping() }.of_element();
                    let key = key_text(&read_value(key, decoder, part)?);
                    decoder.charge(1, key.len())?;
                    Ok((key.into(), read_value(element, decoder, part)?))
                });
                let mut pairs = pairs.collect::<Result<Vec<_>, _>>()?;
                pairs.truncate(kept);
                Ok(of_pairs(pairs))
            })
        }
    }
}

/// The map of these pairs. The last one of a key counts, as with the derived types.
fn of_pairs(mut pairs: Vec<(Arc<str>, Document)>) -> Document {
    let mut known = BTreeSet::new();
    let mut is_last: Vec<bool> = pairs.iter().rev().map(|(key, _)| known.insert(Arc::clone(key))).collect();
    if known.len() < pairs.len() {
        pairs.retain(|_| is_last.pop().unwrap_or_default());
    }
    Document::Map(pairs.into_iter().map(|(key, value)| (MapKey::Text(key), value)).collect())
}

/// Reads a value of a type that contains itself. That is a level of nesting, which structures and unions count on their own.
fn read_recursive<'b>(
    used: &Recursive,
    decoder: &mut Decoder<'b>,
    read: impl FnOnce(&Type, &mut Decoder<'b>) -> Result<Document, DecodeError>,
) -> Result<Document, DecodeError> {
    match used.definition() {
        Some(of @ (Type::Structure(_) | Type::Union(_))) => read(&of, decoder),
        Some(of) => decoder.nested(|decoder| read(&of, decoder)),
        None => Err(decoder.error(format!("a value of {}, whose definition is gone", used.name()))),
    }
}

/// The fewest bytes of an element; of a structure in a key, some members are not there.
fn bytes_min(of: &Type, part: Part) -> usize {
    if part.is_key { 0 } else { of.bytes_min() }
}

/// Whether the input ends before a value, which then has its default.
fn ends_before(of: &Type, decoder: &Decoder<'_>, part: Part) -> bool {
    // Only at the end the bytes of a value are of interest.
    decoder.is_at_end() || (decoder.remaining() < 4 && decoder.ends_before(bytes_min(of, part)))
}

/// A key of a map as JSON has it.
pub(super) fn key_text(key: &Document) -> String {
    match key {
        Document::Text(text) => text.clone(),
        Document::Integer(number) => number.to_string(),
        Document::Boolean(value) => value.to_string(),
        other => other.to_json().map(|json| String::from_utf8_lossy(&json).into_owned()).unwrap_or_default(),
    }
}

/// Reads the elements of an array; the outermost dimension alone has a frame.
fn read_dimension(of: &Type, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    match of.resolved() {
        Type::Array { element, count } => {
            read_elements(element, *count, decoder, |decoder| read_dimension(element, decoder, part))
        }
        Type::Recursive(used) => read_recursive(used, decoder, |of, decoder| read_dimension(of, decoder, part)),
        other => read_value(other, decoder, part),
    }
}

fn read_elements<'b>(
    element: &Type,
    count: usize,
    decoder: &mut Decoder<'b>,
    mut read: impl FnMut(&mut Decoder<'b>) -> Result<Document, DecodeError>,
) -> Result<Document, DecodeError> {
    if is_octet(element) {
        return Ok(Document::Bytes(decoder.bytes(count, "octets")?.to_vec()));
    }
    if let Type::Primitive(primitive) = element.resolved()
        && let Some(row) = Numbers::decode(*primitive, count, decoder)
    {
        return row.map(Document::Numbers);
    }
    decoder.charge(count, size_of::<Document>())?;
    (0..count).map(|_| read(decoder)).collect::<Result<_, _>>().map(Document::Array)
}

fn read_primitive(primitive: Primitive, decoder: &mut Decoder<'_>) -> Result<Document, DecodeError> {
    let whole = |number: i128| Document::Integer(number);
    Ok(match primitive {
        Primitive::Boolean => Document::Boolean(bool::decode(decoder)?),
        Primitive::Byte | Primitive::UInt8 => whole(u8::decode(decoder)?.into()),
        Primitive::Int8 => whole(i8::decode(decoder)?.into()),
        Primitive::Int16 => whole(i16::decode(decoder)?.into()),
        Primitive::UInt16 => whole(u16::decode(decoder)?.into()),
        Primitive::Int32 => whole(i32::decode(decoder)?.into()),
        Primitive::UInt32 => whole(u32::decode(decoder)?.into()),
        Primitive::Int64 => whole(i64::decode(decoder)?.into()),
        Primitive::UInt64 => whole(u64::decode(decoder)?.into()),
        Primitive::Float32 => Document::Real(f32::decode(decoder)?.into()),
        Primitive::Float64 => Document::Real(f64::decode(decoder)?),
        Primitive::Float128 => of_quadruple(u128::from_ne_bytes(decoder.number("a long double")?)),
        Primitive::Char8 => Document::Text(char::decode(decoder)?.to_string()),
        Primitive::Char16 => {
            let unit = u16::decode(decoder)?;
            let character = char::from_u32(unit.into());
            let character = character.ok_or_else(|| DecodeError::new(decoder.offset() - 2, "a whole character"))?;
            Document::Text(character.to_string())
        }
    })
}

/// The number that stands for a value of an enumeration, bit mask, bit set or discriminator.
fn read_number(of: &Type, decoder: &mut Decoder<'_>) -> Result<i64, DecodeError> {
    let is_signed = match of.resolved() {
        // Without negative literals the highest bit is one more, as with the derived types.
        Type::Enumeration(enumeration) => {
            enumeration.holder_bytes() == 4 || enumeration.literals.iter().any(|literal| literal.value < 0)
        }
        Type::Primitive(primitive) => is_signed(*primitive),
        _ => false,
    };
    Ok(match (of.resolved().bytes_min(), is_signed) {
        (1, true) => i8::decode(decoder)?.into(),
        (1, false) => u8::decode(decoder)?.into(),
        (2, true) => i16::decode(decoder)?.into(),
        (2, false) => u16::decode(decoder)?.into(),
        (4, true) => i32::decode(decoder)?.into(),
        (4, false) => u32::decode(decoder)?.into(),
        _ => i64::decode(decoder)?,
    })
}

/// The document of what [`read_number`] gives.
pub(super) fn of_number(of: &Type, number: i64) -> Document {
    match of.resolved() {
        Type::Enumeration(enumeration) => {
            let literal = i32::try_from(number).ok().and_then(|number| enumeration.literal_of(number));
            literal.map_or(Document::Integer(number.into()), |literal| Document::Text(literal.name.clone()))
        }
        Type::Primitive(Primitive::Boolean) => Document::Boolean(number != 0),
        Type::Primitive(Primitive::Char8 | Primitive::Char16) => {
            let character = u32::try_from(number).ok().and_then(char::from_u32);
            character.map_or(Document::Integer(number.into()), |character| Document::Text(character.to_string()))
        }
        Type::Primitive(Primitive::UInt64) => Document::Integer(number.cast_unsigned().into()),
        _ => Document::Integer(number.into()),
    }
}

fn read_literal(
    enumeration: &Enumeration,
    of: &Type,
    decoder: &mut Decoder<'_>,
    part: Part,
) -> Result<Document, DecodeError> {
    let at = decoder.offset();
    match of_number(of, read_number(of, decoder)?) {
        Document::Text(literal) => {
            decoder.charge(1, literal.len())?;
            Ok(Document::Text(literal))
        }
        number if part.excess == Excess::Kept => Ok(number),
        _ => Err(DecodeError::new(at, format!("a literal of {}", enumeration.name))),
    }
}

/// The memory that the names of the flags that are set take.
fn flag_bytes(of: &Bitmask, bits: u64) -> usize {
    let is_set = |position: u16| 1_u64.checked_shl(position.into()).is_some_and(|bit| bits & bit != 0);
    let set = of.flags.iter().filter(|(_, position)| is_set(*position));
    set.map(|(name, _)| size_of::<Document>() + name.len()).sum()
}

/// The names of the flags that are set; a number where some of them have no name.
fn of_flags(of: &Bitmask, bits: u64) -> Document {
    let mut rest = bits;
    let set = of.flags.iter().filter(|(_, position)| {
        let bit = 1_u64.checked_shl((*position).into()).unwrap_or(0);
        let is_set = rest & bit != 0;
        rest &= !bit;
        is_set
    });
    let names = set.map(|(name, _)| Document::Text(name.clone())).collect();
    if rest == 0 { Document::Array(names) } else { Document::Integer(bits.into()) }
}

fn of_fields(of: &Bitset, bits: u64) -> Document {
    let valued = of.fields.iter().map(|field| {
        let raw = i128::from(bits) >> field.position & ((1 << field.bits) - 1);
        let is_negative = is_signed(field.holder) && raw >> (field.bits - 1) != 0;
        let number = if is_negative { raw - (1 << field.bits) } else { raw };
        let value =
            if field.holder == Primitive::Boolean { Document::Boolean(raw != 0) } else { Document::Integer(number) };
        (MapKey::Text(field.name.as_str().into()), value)
    });
    Document::Map(valued.collect())
}

/// Zero, false, empty, the default literal (DDS-XTypes 1.3 §7.2.2.4.4.4.7); members have what their definition gives them.
pub fn default_value(of: &Type) -> Document {
    match of {
        Type::Primitive(Primitive::Boolean) => Document::Boolean(false),
        Type::Primitive(Primitive::Float32 | Primitive::Float64 | Primitive::Float128) => Document::Real(0.0),
        Type::Primitive(Primitive::Char8 | Primitive::Char16) => Document::Text("\0".to_owned()),
        Type::Primitive(_) => Document::Integer(0),
        Type::String { .. } | Type::WString { .. } => Document::Text(String::new()),
        Type::Enumeration(enumeration) => {
            let literal = enumeration.literals.get(enumeration.default);
            Document::Text(literal.map(|literal| literal.name.clone()).unwrap_or_default())
        }
        Type::Bitmask(_) => Document::Array(Vec::new()),
        Type::Bitset(bitset) => of_fields(bitset, 0),
        Type::Alias(alias) => default_value(&alias.aliased),
        Type::Recursive(used) => used.definition().map_or(Document::Null, |of| default_value(&of)),
        Type::Structure(structure) => {
            let members = structure.members.iter().filter(|member| !member.is_optional);
            let value = |member: &StructureMember| member_default(&member.member_type, &member.annotations);
            Document::Map(members.map(|member| (MapKey::Text(Arc::clone(&member.name)), value(member))).collect())
        }
        Type::Union(union) => default_union(union),
        Type::Sequence { element, .. } if is_octet(element) => Document::Bytes(Vec::new()),
        Type::Array { element, count } if is_octet(element) => Document::Bytes(vec![0; *count]),
        Type::Sequence { element, .. } => zeros(element, 0).unwrap_or_else(|| Document::Array(Vec::new())),
        Type::Array { element, count } => {
            zeros(element, *count).unwrap_or_else(|| Document::Array(vec![default_value(element); *count]))
        }
        Type::Map { .. } => Document::Map(Vec::new()),
    }
}

/// A row of zeros, where elements have rows.
fn zeros(element: &Type, count: usize) -> Option<Document> {
    let Type::Primitive(primitive) = element.resolved() else { return None };
    Numbers::zeros(*primitive, count).map(Document::Numbers)
}

fn default_union(of: &Union) -> Document {
    let (label, case) = default_case(of);
    let mut members = vec![(MapKey::from(DISCRIMINATOR), of_number(&of.discriminator, label))];
    if let Some((case, case_type)) = case.and_then(|case| Some((case, case.case_type.as_ref()?))) {
        members.push((MapKey::Text(case.name.as_str().into()), member_default(case_type, &case.annotations)));
    }
    Document::Map(members)
}

/// The case of the default value: that of the rule, unless it contains the union without end; then the one that nests least.
pub(super) fn default_case(of: &Union) -> (i64, Option<&UnionCase>) {
    let (label, case) = of.default_case();
    let ends = |case: &UnionCase| case.case_type.as_ref().is_none_or(Type::has_finite_default);
    if case.is_none_or(ends) {
        return (label, case);
    }
    let levels = |case: &&UnionCase| case.case_type.as_ref().map_or(0, Type::levels_min);
    let Some(least) = of.cases.iter().min_by_key(levels) else { return (label, None) };
    let own = least.labels.first().map_or_else(|| free_label(of), |label| Ok(of.selecting(*label)));
    own.map_or((label, None), |label| (label, Some(least)))
}
