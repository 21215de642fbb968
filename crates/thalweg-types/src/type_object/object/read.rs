//! Type objects of bytes.

use thalweg_cdr::{Decode, DecodeError, Decoder};

use super::super::identifier::{Equivalence, TypeIdentifier};
use super::super::values;
use super::{
    ALIAS, ARRAY, BITMASK, BITSET, ENUMERATION, MAP, MemberName, ObjectBody, ObjectMember, Remarks, SEQUENCE,
    STRUCTURE, TypeHeader, TypeObject, UNION,
};

impl TypeHeader {
    fn read(is_complete: bool, decoder: &mut Decoder<'_>) -> Result<TypeHeader, DecodeError> {
        if !is_complete {
            return Ok(TypeHeader(None));
        }
        decoder.optional(0, |decoder| {
            // `verbatim`, an appendable structure in the text of 2020 and a final one in the field.
            decoder.appendable_type(|decoder| decoder.bytes(decoder.remaining(), "annotations of a type").map(drop))
        })?;
        skip_custom(decoder)?;
        Ok(TypeHeader(Some(read_name(decoder)?)))
    }
}

impl ObjectMember {
    fn read(has_labels: bool, is_complete: bool, decoder: &mut Decoder<'_>) -> Result<ObjectMember, DecodeError> {
        Ok(ObjectMember {
            id: u32::decode(decoder)?,
            flags: u16::decode(decoder)?,
            member_type: TypeIdentifier::decode(decoder)?,
            labels: if has_labels { Vec::decode(decoder)? } else { Vec::new() },
            name: MemberName::read(is_complete, decoder)?,
        })
    }
}

impl MemberName {
    fn read(is_complete: bool, decoder: &mut Decoder<'_>) -> Result<MemberName, DecodeError> {
        if !is_complete {
            let bytes = decoder.bytes(4, "the hash of a name")?;
            return Ok(MemberName::Hash(std::array::from_fn(|index| bytes[index])));
        }
        let name = read_name(decoder)?;
        let remarks = decoder.optional(0, Remarks::read)?.map(Box::new);
        skip_custom(decoder)?;
        Ok(MemberName::Text { name, remarks })
    }
}

impl Remarks {
    fn read(decoder: &mut Decoder<'_>) -> Result<Remarks, DecodeError> {
        decoder.appendable_type(|decoder| {
            let unit = decoder.optional(0, String::decode)?;
            let min = decoder.optional(0, values::read)?.flatten();
            let max = decoder.optional(0, values::read)?.flatten();
            let hash_id = if decoder.is_at_end() { None } else { decoder.optional(0, String::decode)? };
            Ok(Remarks { unit, min, max, hash_id })
        })
    }
}

impl Decode for TypeObject {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TypeObject, DecodeError> {
        decoder.appendable_type(|decoder| {
            let at = decoder.offset();
            let equivalence = Equivalence::of_octet(u8::decode(decoder)?);
            let equivalence = equivalence.ok_or_else(|| DecodeError::new(at, "the kind of a type object"))?;
            let is_complete = equivalence == Equivalence::Complete;
            let at = decoder.offset();
            let octet = u8::decode(decoder)?;
            let (flags, header, body) = match octet {
                BITMASK | BITSET => decoder.appendable_type(|decoder| read_body(octet, is_complete, decoder))?,
                ARRAY if is_complete => decoder.appendable_type(|decoder| read_body(octet, is_complete, decoder))?,
                ALIAS | STRUCTURE | UNION | ENUMERATION | SEQUENCE | ARRAY | MAP => {
                    read_body(octet, is_complete, decoder)?
                }
                _ => return Err(DecodeError::new(at, "the kind of a type with an object")),
            };
            Ok(TypeObject { equivalence, flags, header, body })
        })
    }

    fn default_value() -> TypeObject {
        let body = ObjectBody::Structure { base: TypeIdentifier::None, members: Vec::new() };
        TypeObject { equivalence: Equivalence::Minimal, flags: 0, header: TypeHeader(None), body }
    }
}

fn read_body(
    octet: u8,
    is_complete: bool,
    decoder: &mut Decoder<'_>,
) -> Result<(u16, TypeHeader, ObjectBody), DecodeError> {
    let flags = u16::decode(decoder)?;
    let header = |decoder: &mut Decoder<'_>| TypeHeader::read(is_complete, decoder);
    let (header, body) = match octet {
        ALIAS => {
            let header = decoder.appendable_type(header)?;
            let aliased = decoder.appendable_type(|decoder| {
                u16::decode(decoder)?;
                TypeIdentifier::decode(decoder)
            })?;
            (header, ObjectBody::Alias { aliased })
        }
        STRUCTURE => {
            let (base, header) =
                decoder.appendable_type(|decoder| Ok((TypeIdentifier::decode(decoder)?, header(decoder)?)))?;
            let members = read_all(decoder, |decoder| ObjectMember::read(false, is_complete, decoder))?;
            (header, ObjectBody::Structure { base, members })
        }
        UNION => {
            let header = decoder.appendable_type(header)?;
            let (discriminator_flags, discriminator) =
                decoder.appendable_type(|decoder| Ok((u16::decode(decoder)?, TypeIdentifier::decode(decoder)?)))?;
            let cases = read_all(decoder, |decoder| ObjectMember::read(true, is_complete, decoder))?;
            (header, ObjectBody::Union { discriminator_flags, discriminator, cases })
        }
        ENUMERATION => {
            let (bit_bound, header) =
                decoder.appendable_type(|decoder| Ok((u16::decode(decoder)?, header(decoder)?)))?;
            let literals = read_all(decoder, |decoder| {
                let (value, flags) =
                    decoder.appendable_type(|decoder| Ok((i32::decode(decoder)?, u16::decode(decoder)?)))?;
                Ok((value, flags, MemberName::read(is_complete, decoder)?))
            })?;
            (header, ObjectBody::Enumeration { bit_bound, literals })
        }
        BITMASK => {
            let (bit_bound, header) =
                decoder.appendable_type(|decoder| Ok((u16::decode(decoder)?, header(decoder)?)))?;
            let flags = read_all(decoder, |decoder| {
                Ok((u16::decode(decoder)?, u16::decode(decoder)?, MemberName::read(is_complete, decoder)?))
            })?;
            (header, ObjectBody::Bitmask { bit_bound, flags })
        }
        BITSET => {
            let header = decoder.appendable_type(header)?;
            let fields = read_all(decoder, |decoder| {
                let (position, flags) = (u16::decode(decoder)?, u16::decode(decoder)?);
                let (bits, holder) = (u8::decode(decoder)?, u8::decode(decoder)?);
                Ok((position, flags, bits, holder, MemberName::read(is_complete, decoder)?))
            })?;
            (header, ObjectBody::Bitset { fields })
        }
        ARRAY => {
            let (bounds, header) = decoder.appendable_type(|decoder| Ok((Vec::decode(decoder)?, header(decoder)?)))?;
            (header, ObjectBody::Array { bounds, element: read_element(decoder)? })
        }
        _ => {
            let (bound, header) = decoder.appendable_type(|decoder| {
                let bound = u32::decode(decoder)?;
                let header =
                    if is_complete { decoder.optional(0, header)?.unwrap_or_default() } else { TypeHeader(None) };
                Ok((bound, header))
            })?;
            let first = read_element(decoder)?;
            let body = match octet {
                SEQUENCE => ObjectBody::Sequence { bound, element: first },
                _ => ObjectBody::Map { bound, key: first, element: read_element(decoder)? },
            };
            (header, body)
        }
    };
    Ok((flags, header, body))
}

fn read_element(decoder: &mut Decoder<'_>) -> Result<(u16, TypeIdentifier), DecodeError> {
    decoder.appendable_type(|decoder| Ok((u16::decode(decoder)?, TypeIdentifier::decode(decoder)?)))
}

/// Passes over annotations that a user defined.
fn skip_custom(decoder: &mut Decoder<'_>) -> Result<(), DecodeError> {
    decoder.optional(0, Decoder::skip_delimited).map(drop)
}

/// A name; the standard allows 256 bytes.
fn read_name(decoder: &mut Decoder<'_>) -> Result<String, DecodeError> {
    let at = decoder.offset();
    let name = String::decode(decoder)?;
    if name.len() <= NAME_BYTES_MAX {
        return Ok(name);
    }
    Err(DecodeError::new(at, format!("a name of at most {NAME_BYTES_MAX} bytes")))
}

const NAME_BYTES_MAX: usize = 256;

/// Reads a sequence of appendable structures.
fn read_all<T>(
    decoder: &mut Decoder<'_>,
    read: impl Fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    decoder.collection(false, |decoder| {
        let count = decoder.length(4)?;
        decoder.charge(count, size_of::<T>())?;
        (0..count).map(|_| decoder.appendable_type(&read)).collect()
    })
}
