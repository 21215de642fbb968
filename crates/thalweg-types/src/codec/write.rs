//! Documents as samples of types that are known at run time only, and back (DDS-XTypes 1.3 §7.4, §7.6.8).

use thalweg_cdr::{
    ByteOrder, Decode, DecodeError, Decoder, Encapsulation, Encode, EncodeError, Encoder, Extensibility, LengthCode,
    Member as MemberHeader, Representation, WString,
};

use crate::types::{Enumeration, Primitive, Structure, StructureMember, Type};
use crate::document::{Document, MapKey, octets};

/// Writes a sample with its encapsulation header, little-endian.
///
/// Members that are missing in `value` are an error unless they are optional, and so are members that the type has not.
///
/// # Errors
/// The first member that does not fit its type, and why.
pub fn encode(structure: &Structure, value: &Document, representation: Representation) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    let id = Encapsulation::new(representation, structure.extensibility, ByteOrder::Little).id();
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    write_structure(structure, value, &mut Encoder::new(&mut out, representation, ByteOrder::Little))?;
    if representation == Representation::Xcdr2 {
        let padding = out.len().wrapping_neg() & 3;
        out.resize(out.len() + padding, 0);
        out[3] = padding as u8;
    }
    Ok(out)
}

/// Reads a sample: XCDR1 or XCDR2, in either byte order.
///
/// # Errors
/// The place at which the payload is not a sample of the type, and the expected content.
pub fn decode(structure: &Structure, payload: &[u8]) -> Result<Document, DecodeError> {
    read_outermost(structure, payload, Part::All)
}

/// Reads a payload that holds the key members only.
///
/// # Errors
/// As [`decode`].
pub fn decode_key(structure: &Structure, payload: &[u8]) -> Result<Document, DecodeError> {
    read_outermost(structure, payload, Part::Key)
}

/// The instance of a sample: its key in big-endian PLAIN_CDR2, or the MD5 of that when it can exceed 16 bytes (RTPS 2.5
/// §9.6.4.8); zero for a type without key.
///
/// # Errors
/// When key members are missing or do not fit their types.
pub fn key_hash(structure: &Structure, value: &Document) -> Result<[u8; 16], EncodeError> {
    if !structure.is_keyed() {
        return Ok([0; 16]);
    }
    let mut key = Vec::new();
    write_key(structure, value, &mut Encoder::new(&mut key, Representation::Xcdr2, ByteOrder::Big))?;
    if !structure.key_fits_hash() {
        return Ok(md5::compute(&key).0);
    }
    let mut hash = [0; 16];
    hash[..key.len()].copy_from_slice(&key);
    Ok(hash)
}

fn write_structure(structure: &Structure, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    let Document::Map(given) = value else {
        return Err(needed(&format!("an object with the members of {}", structure.name), value));
    };
    let unknown = given.iter().find(|(key, _)| !structure.members.iter().any(|member| is_named(key, member)));
    if let Some((key, _)) = unknown {
        let names: Vec<&str> = structure.members.iter().map(|member| member.name.as_str()).collect();
        let name = match key {
            MapKey::Text(name) => name.clone(),
            MapKey::Label(label) => label.to_string(),
        };
        return Err(EncodeError::new(format!("there is no member {name:?}; there are {}", names.join(", "))));
    }
    match structure.extensibility {
        Extensibility::Final => encoder.final_type(|encoder| write_members(structure, value, encoder)),
        Extensibility::Appendable => encoder.appendable_type(|encoder| write_members(structure, value, encoder)),
        Extensibility::Mutable => encoder.mutable_type(|encoder| {
            for member in &structure.members {
                if let Some(found) = given_for(member, value)? {
                    let code = length_code(&member.member_type);
                    encoder
                        .parameter(header(member), code, |encoder| write_value(&member.member_type, found, encoder))
                        .map_err(|error| in_member(member, &error))?;
                }
            }
            Ok(())
        }),
    }
}

fn write_members(structure: &Structure, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    for member in &structure.members {
        let found = given_for(member, value)?;
        let written = match found {
            found if member.is_optional => encoder
                .optional(header(member), found, |found, encoder| write_value(&member.member_type, found, encoder)),
            Some(found) => write_value(&member.member_type, found, encoder),
            None => Ok(()),
        };
        written.map_err(|error| in_member(member, &error))?;
    }
    Ok(())
}

/// The document's value for a member; none only for an optional one.
fn given_for<'a>(member: &StructureMember, value: &'a Document) -> Result<Option<&'a Document>, EncodeError> {
    match value.member(&member.name) {
        Some(Document::Null) | None if member.is_optional => Ok(None),
        None => Err(EncodeError::new(format!("the member {:?} is missing", member.name))),
        found => Ok(found),
    }
}

fn write_value(value_type: &Type, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    match value_type {
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
        Type::Enumeration(enumeration) => write_literal(enumeration, value, encoder),
        Type::Structure(structure) => write_structure(structure, value, encoder),
        Type::Sequence { element, bound } => {
            let elements = elements(element, value)?;
            within(elements.len(), *bound, "elements")?;
            encoder.collection(element.is_primitive(), |encoder| {
                encoder.length(elements.len())?;
                elements.iter().enumerate().try_for_each(|(index, value)| {
                    write_value(element, value, encoder).map_err(|error| in_element(index, &error))
                })
            })
        }
        Type::Array { .. } => {
            encoder.collection(value_type.is_primitive(), |encoder| write_dimension(value_type, value, encoder))
        }
    }
}

/// Writes the elements of an array; the outermost dimension alone has a frame.
fn write_dimension(value_type: &Type, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    let Type::Array { element, count } = value_type else { return write_value(value_type, value, encoder) };
    let elements = elements(element, value)?;
    if elements.len() != *count {
        return Err(EncodeError::new(format!("{} elements, where there must be {count}", elements.len())));
    }
    elements.iter().enumerate().try_for_each(|(index, value)| {
        write_dimension(element, value, encoder).map_err(|error| in_element(index, &error))
    })
}

/// The elements of an array, or the octets of a text `0x…` or of CBOR.
fn elements(element: &Type, value: &Document) -> Result<Vec<Document>, EncodeError> {
    let bytes = match value {
        Document::Array(elements) => return Ok(elements.clone()),
        Document::Bytes(bytes) => Some(bytes.clone()),
        Document::Text(text) => octets(text),
        _ => None,
    };
    let is_octets = *element == Type::Primitive(Primitive::UInt8);
    let bytes = bytes
        .filter(|_| is_octets)
        .ok_or_else(|| needed(if is_octets { "an array, or octets as \"0x…\"" } else { "an array" }, value))?;
    Ok(bytes.into_iter().map(|byte| Document::Integer(i128::from(byte))).collect())
}

fn write_primitive(primitive: Primitive, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    match primitive {
        Primitive::Boolean => match value {
            Document::Boolean(value) => value.encode(encoder),
            _ => Err(needed("true or false", value)),
        },
        Primitive::UInt8 => whole::<u8>(value)?.encode(encoder),
        Primitive::Int8 => whole::<i8>(value)?.encode(encoder),
        Primitive::Int16 => whole::<i16>(value)?.encode(encoder),
        Primitive::UInt16 => whole::<u16>(value)?.encode(encoder),
        Primitive::Int32 => whole::<i32>(value)?.encode(encoder),
        Primitive::UInt32 => whole::<u32>(value)?.encode(encoder),
        Primitive::Int64 => whole::<i64>(value)?.encode(encoder),
        Primitive::UInt64 => whole::<u64>(value)?.encode(encoder),
        Primitive::Float32 => (real(value)? as f32).encode(encoder),
        Primitive::Float64 => real(value)?.encode(encoder),
        Primitive::Char8 => {
            let text = text(value)?;
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(character), None) => character.encode(encoder),
                _ => Err(needed("one character", value)),
            }
        }
    }
}

fn write_literal(enumeration: &Enumeration, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    let found = match value {
        Document::Text(name) => enumeration.literals.iter().find(|(literal, _)| literal == name),
        Document::Integer(number) => enumeration.literals.iter().find(|(_, literal)| i128::from(*literal) == *number),
        _ => None,
    };
    let Some((_, number)) = found else {
        let names: Vec<&str> = enumeration.literals.iter().map(|(name, _)| name.as_str()).collect();
        return Err(needed(&format!("one of {}", names.join(", ")), value));
    };
    match enumeration.holder_bytes {
        1 => (*number as i8).encode(encoder),
        2 => (*number as i16).encode(encoder),
        _ => number.encode(encoder),
    }
}

fn write_key(structure: &Structure, value: &Document, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    for member in structure.key_members_by_id() {
        let found = given_for(member, value)?;
        let Some(found) = found else { continue };
        let written = match &member.member_type {
            Type::Structure(nested) => write_key(nested, found, encoder),
            other => write_value(other, found, encoder),
        };
        written.map_err(|error| in_member(member, &error))?;
    }
    Ok(())
}

fn header(member: &StructureMember) -> MemberHeader {
    MemberHeader { id: member.id, must_understand: member.must_understand }
}

fn length_code(value_type: &Type) -> LengthCode {
    match value_type {
        Type::Primitive(primitive) => LengthCode::of_number(primitive.size_bytes()),
        Type::Enumeration(enumeration) => LengthCode::of_number(enumeration.holder_bytes),
        _ => LengthCode::Stated,
    }
}

fn is_named(key: &MapKey, member: &StructureMember) -> bool {
    matches!(key, MapKey::Text(name) if *name == member.name)
}

fn whole<T: TryFrom<i128>>(value: &Document) -> Result<T, EncodeError> {
    let number = match value {
        Document::Integer(number) => Some(*number),
        // JSON writers may put a fraction of zero behind whole numbers.
        Document::Real(number) if number.fract() == 0.0 && number.abs() < WHOLE_IN_REAL => Some(*number as i128),
        _ => None,
    };
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| needed(&format!("a whole number that fits {}", std::any::type_name::<T>()), value))
}

fn real(value: &Document) -> Result<f64, EncodeError> {
    match value {
        Document::Real(number) => Ok(*number),
        Document::Integer(number) => Ok(*number as f64),
        Document::Text(text) if ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) => {
            text.parse().map_err(|_| needed("a number", value))
        }
        _ => Err(needed("a number", value)),
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

fn needed(what: &str, value: &Document) -> EncodeError {
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

fn in_member(member: &StructureMember, error: &EncodeError) -> EncodeError {
    EncodeError::new(format!("{}: {}", member.name, error.problem()))
}

fn in_element(index: usize, error: &EncodeError) -> EncodeError {
    EncodeError::new(format!("element {index}: {}", error.problem()))
}

/// Which members a payload holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Key,
}

fn read_outermost(structure: &Structure, payload: &[u8], part: Part) -> Result<Document, DecodeError> {
    use Extensibility::{Appendable, Final, Mutable};
    let (mut decoder, encapsulation) = Decoder::of_payload(payload)?;
    // The encapsulation gives the framing of the outermost type, which may differ from that of its own extensibility.
    match (structure.extensibility, encapsulation.extensibility) {
        (Mutable, Mutable) => read_structure(structure, &mut decoder, part),
        (Mutable, _) => Err(DecodeError::new(0, "an encapsulation with parameter list, for a mutable type")),
        (_, Mutable) => Err(DecodeError::new(0, "an encapsulation without parameter list, for this type")),
        (_, Final) => read_members(structure, &mut decoder, part),
        (_, Appendable) => decoder.appendable_type(|decoder| read_members(structure, decoder, part)),
    }
}

fn read_structure(structure: &Structure, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    match structure.extensibility {
        Extensibility::Final => read_members(structure, decoder, part),
        Extensibility::Appendable => decoder.appendable_type(|decoder| read_members(structure, decoder, part)),
        Extensibility::Mutable => {
            let mut found: Vec<Option<Document>> = vec![None; structure.members.len()];
            decoder.mutable_type(|decoder, id| {
                let Some(index) = structure.members.iter().position(|member| member.id == id) else {
                    return Ok(false);
                };
                found[index] = Some(read_member(&structure.members[index], decoder, part)?);
                Ok(true)
            })?;
            Ok(map(structure.members.iter().zip(found), part, structure.is_keyed()))
        }
    }
}

fn read_members(structure: &Structure, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    let is_keyed = structure.is_keyed();
    let mut members = Vec::with_capacity(structure.members.len());
    for member in &structure.members {
        let is_there = part == Part::All || member.is_key || !is_keyed;
        // An older sender's type ends before the newer members.
        let value = if !is_there || decoder.is_at_end() {
            None
        } else if member.is_optional {
            decoder.optional(member.id, |decoder| read_member(member, decoder, part))?
        } else {
            Some(read_member(member, decoder, part)?)
        };
        if value.is_none() && is_there && !member.is_optional && structure.extensibility == Extensibility::Final {
            // A missing member is an error where the type may not have fewer members; reading the member finds it.
            read_member(member, decoder, part)?;
        }
        members.push((member, value));
    }
    Ok(map(members, part, is_keyed))
}

fn read_member(member: &StructureMember, decoder: &mut Decoder<'_>, part: Part) -> Result<Document, DecodeError> {
    match &member.member_type {
        Type::Structure(nested) => read_structure(nested, decoder, part),
        other => read_value(other, decoder),
    }
}

/// The members with their values; those that are absent have their default, unless they are optional.
fn map<'a>(
    members: impl IntoIterator<Item = (&'a StructureMember, Option<Document>)>,
    part: Part,
    is_keyed: bool,
) -> Document {
    let valued = members.into_iter().filter_map(|(member, value)| {
        let is_wanted = !member.is_optional && (part == Part::All || member.is_key || !is_keyed);
        let value = value.or_else(|| is_wanted.then(|| default_value(&member.member_type)))?;
        Some((MapKey::Text(member.name.clone()), value))
    });
    Document::Map(valued.collect())
}

fn read_value(value_type: &Type, decoder: &mut Decoder<'_>) -> Result<Document, DecodeError> {
    match value_type {
        Type::Primitive(primitive) => read_primitive(*primitive, decoder),
        Type::String { bound } => {
            let at = decoder.offset();
            let text = String::decode(decoder)?;
            bounded(text.len(), *bound, at)?;
            Ok(Document::Text(text))
        }
        Type::WString { bound } => {
            let at = decoder.offset();
            let text = WString::decode(decoder)?.0;
            bounded(text.encode_utf16().count(), *bound, at)?;
            Ok(Document::Text(text))
        }
        Type::Enumeration(enumeration) => read_literal(enumeration, decoder),
        Type::Structure(structure) => read_structure(structure, decoder, Part::All),
        Type::Sequence { element, bound } => decoder.collection(element.is_primitive(), |decoder| {
            let at = decoder.offset();
            let count = decoder.length(element.bytes_min())?;
            bounded(count, *bound, at)?;
            read_elements(element, count, decoder)
        }),
        Type::Array { .. } => {
            decoder.collection(value_type.is_primitive(), |decoder| read_dimension(value_type, decoder))
        }
    }
}

fn read_dimension(value_type: &Type, decoder: &mut Decoder<'_>) -> Result<Document, DecodeError> {
    match value_type {
        Type::Array { element, count } => read_elements(element, *count, decoder),
        other => read_value(other, decoder),
    }
}

fn read_elements(element: &Type, count: usize, decoder: &mut Decoder<'_>) -> Result<Document, DecodeError> {
    if *element == Type::Primitive(Primitive::UInt8) {
        return Ok(Document::Bytes(decoder.bytes(count, "octets")?.to_vec()));
    }
    decoder.charge(count, size_of::<Document>())?;
    (0..count).map(|_| read_dimension(element, decoder)).collect::<Result<_, _>>().map(Document::Array)
}

fn read_primitive(primitive: Primitive, decoder: &mut Decoder<'_>) -> Result<Document, DecodeError> {
    let whole = |number: i128| Document::Integer(number);
    Ok(match primitive {
        Primitive::Boolean => Document::Boolean(bool::decode(decoder)?),
        Primitive::UInt8 => whole(u8::decode(decoder)?.into()),
        Primitive::Int8 => whole(i8::decode(decoder)?.into()),
        Primitive::Int16 => whole(i16::decode(decoder)?.into()),
        Primitive::UInt16 => whole(u16::decode(decoder)?.into()),
        Primitive::Int32 => whole(i32::decode(decoder)?.into()),
        Primitive::UInt32 => whole(u32::decode(decoder)?.into()),
        Primitive::Int64 => whole(i64::decode(decoder)?.into()),
        Primitive::UInt64 => whole(u64::decode(decoder)?.into()),
        Primitive::Float32 => Document::Real(f32::decode(decoder)?.into()),
        Primitive::Float64 => Document::Real(f64::decode(decoder)?),
        Primitive::Char8 => Document::Text(char::decode(decoder)?.to_string()),
    })
}

fn read_literal(enumeration: &Enumeration, decoder: &mut Decoder<'_>) -> Result<Document, DecodeError> {
    let at = decoder.offset();
    let number = match enumeration.holder_bytes {
        1 => i32::from(i8::decode(decoder)?),
        2 => i32::from(i16::decode(decoder)?),
        _ => i32::decode(decoder)?,
    };
    let literal = enumeration.literals.iter().find(|(_, value)| *value == number);
    let (name, _) = literal.ok_or_else(|| DecodeError::new(at, format!("a literal of {}", enumeration.name)))?;
    Ok(Document::Text(name.clone()))
}

fn bounded(length: usize, bound: Option<usize>, at: usize) -> Result<(), DecodeError> {
    match bound {
        Some(bound) if length > bound => {
            Err(DecodeError::new(at, format!("a length of at most {bound}, not {length}")))
        }
        _ => Ok(()),
    }
}

/// Zero, false, empty, the first literal (DDS-XTypes 1.3 §7.2.2.4.4.4.7).
fn default_value(value_type: &Type) -> Document {
    match value_type {
        Type::Primitive(Primitive::Boolean) => Document::Boolean(false),
        Type::Primitive(Primitive::Float32 | Primitive::Float64) => Document::Real(0.0),
        Type::Primitive(Primitive::Char8) => Document::Text("\0".to_owned()),
        Type::Primitive(_) => Document::Integer(0),
        Type::String { .. } | Type::WString { .. } => Document::Text(String::new()),
        Type::Enumeration(enumeration) => {
            Document::Text(enumeration.literals.first().map(|(name, _)| name.clone()).unwrap_or_default())
        }
        Type::Structure(structure) => map(structure.members.iter().map(|member| (member, None)), Part::All, false),
        Type::Sequence { element, .. } if **element == Type::Primitive(Primitive::UInt8) => Document::Bytes(Vec::new()),
        Type::Sequence { .. } => Document::Array(Vec::new()),
        Type::Array { element, count } if **element == Type::Primitive(Primitive::UInt8) => {
            Document::Bytes(vec![0; *count])
        }
        Type::Array { element, count } => Document::Array(vec![default_value(element); *count]),
    }
}

/// Real numbers below it that have no fraction are exact.
const WHOLE_IN_REAL: f64 = 9_007_199_254_740_992.0;
