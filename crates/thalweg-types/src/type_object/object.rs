//! Type objects, their bytes and their hashes (DDS-XTypes 1.3 Annex B).

use std::borrow::Cow;

use thalweg_cdr::{
    ByteOrder, Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, Layout, Member, Representation,
};

use super::identifier::{Equivalence, TypeHash, TypeIdentifier};
use super::values::{self, AnnotationValue};

/// A type, minimal or complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeObject {
    /// Which of the type's objects it is.
    pub equivalence: Equivalence,
    /// Flags of the type: extensibility and more.
    pub flags: u16,
    /// The name with its modules; a minimal object has none, nor has an anonymous collection.
    pub header: Header,
    /// The rest.
    pub body: ObjectBody,
}

/// The name of a type in its object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header(pub Option<String>);

/// What a type consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectBody {
    /// Another name of a type.
    Alias {
        /// The type.
        aliased: TypeIdentifier,
    },
    /// A structure.
    Structure {
        /// The structure that it extends.
        base: TypeIdentifier,
        /// The members that it adds.
        members: Vec<ObjectMember>,
    },
    /// A union.
    Union {
        /// Flags of the discriminator.
        discriminator_flags: u16,
        /// Its type.
        discriminator: TypeIdentifier,
        /// The cases.
        cases: Vec<ObjectMember>,
    },
    /// An enumeration.
    Enumeration {
        /// Its bits.
        bit_bound: u16,
        /// The literals by value.
        literals: Vec<(i32, u16, MemberName)>,
    },
    /// A bit mask.
    Bitmask {
        /// Its bits.
        bit_bound: u16,
        /// The flags by position.
        flags: Vec<(u16, u16, MemberName)>,
    },
    /// A bit set.
    Bitset {
        /// Position, flags, bits and the octet of the holder's type.
        fields: Vec<(u16, u16, u8, u8, MemberName)>,
    },
    /// A sequence that cannot be told without an object.
    Sequence {
        /// Most elements; 0 for any number.
        bound: u32,
        /// Flags and type of the elements.
        element: (u16, TypeIdentifier),
    },
    /// An array that cannot be told without an object.
    Array {
        /// Its dimensions.
        bounds: Vec<u32>,
        /// Flags and type of the elements.
        element: (u16, TypeIdentifier),
    },
    /// A map that cannot be told without an object.
    Map {
        /// Most pairs; 0 for any number.
        bound: u32,
        /// Flags and type of the keys.
        key: (u16, TypeIdentifier),
        /// Flags and type of the values.
        element: (u16, TypeIdentifier),
    },
}

/// A member of a structure or a case of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMember {
    /// Its id.
    pub id: u32,
    /// Its flags.
    pub flags: u16,
    /// Its type.
    pub member_type: TypeIdentifier,
    /// The labels of a case.
    pub labels: Vec<i32>,
    /// Its name.
    pub name: MemberName,
}

/// The name of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberName {
    /// In a minimal object: four bytes of its MD5.
    Hash([u8; 4]),
    /// In a complete one, with the annotations that describe it.
    Text {
        /// The name.
        name: String,
        /// The annotations, if there are any.
        remarks: Option<Box<Remarks>>,
    },
}

/// Built-in annotations of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    pub(super) unit: Option<String>,
    pub(super) min: Option<AnnotationValue>,
    pub(super) max: Option<AnnotationValue>,
    pub(super) hash_id: Option<String>,
}

const ALIAS: u8 = 0x30;
const ENUMERATION: u8 = 0x40;
const BITMASK: u8 = 0x41;
const STRUCTURE: u8 = 0x51;
const UNION: u8 = 0x52;
const BITSET: u8 = 0x53;
const SEQUENCE: u8 = 0x60;
const ARRAY: u8 = 0x61;
const MAP: u8 = 0x62;

/// An optional member of an appendable or final structure of XCDR2 has no header.
const OPTIONAL: Member = Member { id: 0, must_understand: false };

impl MemberName {
    /// The four bytes that stand for a name in minimal objects.
    pub fn hash(&self) -> [u8; 4] {
        match self {
            MemberName::Hash(hash) => *hash,
            MemberName::Text { name, .. } => name_hash(name),
        }
    }
}

/// The four bytes of a name's MD5 (DDS-XTypes 1.3 §7.3.4.6).
pub fn name_hash(name: &str) -> [u8; 4] {
    let digest = md5::compute(name.as_bytes()).0;
    [digest[0], digest[1], digest[2], digest[3]]
}

impl TypeObject {
    /// Its bytes: XCDR2, little-endian, without encapsulation header.
    ///
    /// # Errors
    /// When an annotation is no value of its member.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.encode(&mut Encoder::new(&mut out, Representation::Xcdr2, ByteOrder::Little))?;
        Ok(out)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) writes; bytes behind it are refused.
    ///
    /// # Errors
    /// When the bytes are no type object.
    pub fn from_bytes(bytes: &[u8]) -> Result<TypeObject, DecodeError> {
        let mut decoder = Decoder::new(bytes, Representation::Xcdr2, ByteOrder::Little);
        let object = TypeObject::decode(&mut decoder)?;
        if decoder.remaining() > 0 {
            return Err(decoder.error("nothing behind the type object"));
        }
        Ok(object)
    }

    /// The hash that names an object of these bytes (DDS-XTypes 1.3 §7.3.4.8).
    pub fn hash_of(bytes: &[u8]) -> TypeHash {
        let digest = md5::compute(bytes).0;
        TypeHash(std::array::from_fn(|index| digest[index]))
    }

    /// All objects that it refers to.
    pub fn dependencies(&self) -> Vec<(Equivalence, TypeHash)> {
        let identifiers: Vec<&TypeIdentifier> = match &self.body {
            ObjectBody::Alias { aliased } => vec![aliased],
            ObjectBody::Structure { base, members } => {
                std::iter::once(base).chain(members.iter().map(|member| &member.member_type)).collect()
            }
            ObjectBody::Union { discriminator, cases, .. } => {
                std::iter::once(discriminator).chain(cases.iter().map(|case| &case.member_type)).collect()
            }
            ObjectBody::Sequence { element, .. } | ObjectBody::Array { element, .. } => vec![&element.1],
            ObjectBody::Map { key, element, .. } => vec![&key.1, &element.1],
            ObjectBody::Enumeration { .. } | ObjectBody::Bitmask { .. } | ObjectBody::Bitset { .. } => Vec::new(),
        };
        identifiers.into_iter().flat_map(TypeIdentifier::hashes).collect()
    }

    fn is_complete(&self) -> bool {
        self.equivalence == Equivalence::Complete
    }

    fn write_body(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let is_complete = self.is_complete();
        match &self.body {
            ObjectBody::Alias { aliased } => {
                self.flags.encode(encoder)?;
                encoder.appendable_type(|encoder| self.header.write(is_complete, encoder))?;
                encoder.appendable_type(|encoder| {
                    0_u16.encode(encoder)?;
                    aliased.encode(encoder)?;
                    write_no_annotations(is_complete, encoder)
                })
            }
            ObjectBody::Structure { base, members } => {
                self.flags.encode(encoder)?;
                encoder.appendable_type(|encoder| {
                    base.encode(encoder)?;
                    self.header.write(is_complete, encoder)
                })?;
                write_all(members, encoder, |member, encoder| member.write(false, encoder))
            }
            ObjectBody::Union { discriminator_flags, discriminator, cases } => {
                self.flags.encode(encoder)?;
                encoder.appendable_type(|encoder| self.header.write(is_complete, encoder))?;
                encoder.appendable_type(|encoder| {
                    discriminator_flags.encode(encoder)?;
                    discriminator.encode(encoder)?;
                    write_no_annotations(is_complete, encoder)
                })?;
                write_all(cases, encoder, |case, encoder| case.write(true, encoder))
            }
            ObjectBody::Enumeration { bit_bound, literals } => {
                self.flags.encode(encoder)?;
                self.write_bits(*bit_bound, encoder)?;
                write_all(literals, encoder, |(value, flags, name), encoder| {
                    encoder.appendable_type(|encoder| {
                        value.encode(encoder)?;
                        flags.encode(encoder)
                    })?;
                    name.write(encoder)
                })
            }
            ObjectBody::Bitmask { bit_bound, flags } => encoder.appendable_type(|encoder| {
                self.flags.encode(encoder)?;
                self.write_bits(*bit_bound, encoder)?;
                write_all(flags, encoder, |(position, flags, name), encoder| {
                    position.encode(encoder)?;
                    flags.encode(encoder)?;
                    name.write(encoder)
                })
            }),
            ObjectBody::Bitset { fields } => encoder.appendable_type(|encoder| {
                self.flags.encode(encoder)?;
                encoder.appendable_type(|encoder| self.header.write(is_complete, encoder))?;
                write_all(fields, encoder, |(position, flags, bits, holder, name), encoder| {
                    position.encode(encoder)?;
                    flags.encode(encoder)?;
                    encoder.bytes(&[*bits, *holder]);
                    name.write(encoder)
                })
            }),
            ObjectBody::Sequence { bound, element } => {
                self.flags.encode(encoder)?;
                self.write_bound(*bound, encoder)?;
                write_element(element, is_complete, encoder)
            }
            ObjectBody::Array { bounds, element } if is_complete => encoder.appendable_type(|encoder| {
                self.flags.encode(encoder)?;
                self.write_dimensions(bounds, encoder)?;
                write_element(element, is_complete, encoder)
            }),
            ObjectBody::Array { bounds, element } => {
                self.flags.encode(encoder)?;
                self.write_dimensions(bounds, encoder)?;
                write_element(element, is_complete, encoder)
            }
            ObjectBody::Map { bound, key, element } => {
                self.flags.encode(encoder)?;
                self.write_bound(*bound, encoder)?;
                write_element(key, is_complete, encoder)?;
                write_element(element, is_complete, encoder)
            }
        }
    }

    fn write_bits(&self, bit_bound: u16, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            bit_bound.encode(encoder)?;
            self.header.write(self.is_complete(), encoder)
        })
    }

    fn write_bound(&self, bound: u32, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            bound.encode(encoder)?;
            if !self.is_complete() {
                return Ok(());
            }
            let header = self.header.0.as_ref().map(|_| &self.header);
            encoder.optional(OPTIONAL, header, |header, encoder| header.write(true, encoder))
        })
    }

    fn write_dimensions(&self, bounds: &Vec<u32>, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            bounds.encode(encoder)?;
            self.header.write(self.is_complete(), encoder)
        })
    }
}

impl Layout for TypeObject {}

impl Encode for TypeObject {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            encoder.bytes(&[self.equivalence.octet(), self.body.octet()]);
            self.write_body(encoder)
        })
    }
}

impl ObjectBody {
    fn octet(&self) -> u8 {
        match self {
            ObjectBody::Alias { .. } => ALIAS,
            ObjectBody::Structure { .. } => STRUCTURE,
            ObjectBody::Union { .. } => UNION,
            ObjectBody::Enumeration { .. } => ENUMERATION,
            ObjectBody::Bitmask { .. } => BITMASK,
            ObjectBody::Bitset { .. } => BITSET,
            ObjectBody::Sequence { .. } => SEQUENCE,
            ObjectBody::Array { .. } => ARRAY,
            ObjectBody::Map { .. } => MAP,
        }
    }
}

impl Header {
    fn write(&self, is_complete: bool, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        write_no_annotations(is_complete, encoder)?;
        match &self.0 {
            Some(name) if is_complete => name.encode(encoder),
            None if is_complete => String::new().encode(encoder),
            _ => Ok(()),
        }
    }

    fn read(is_complete: bool, decoder: &mut Decoder<'_>) -> Result<Header, DecodeError> {
        if !is_complete {
            return Ok(Header(None));
        }
        decoder.optional(0, |decoder| {
            // `verbatim`, an appendable structure in the text of 2020 and a final one in the field.
            decoder.appendable_type(|decoder| decoder.bytes(decoder.remaining(), "annotations of a type").map(drop))
        })?;
        skip_custom(decoder)?;
        Ok(Header(Some(read_name(decoder)?)))
    }
}

impl ObjectMember {
    fn write(&self, has_labels: bool, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.id.encode(encoder)?;
        self.flags.encode(encoder)?;
        self.member_type.encode(encoder)?;
        if has_labels {
            self.labels.encode(encoder)?;
        }
        self.name.write(encoder)
    }

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
    fn write(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match self {
            MemberName::Hash(hash) => {
                encoder.bytes(hash);
                Ok(())
            }
            MemberName::Text { name, remarks } => {
                name.encode(encoder)?;
                encoder.optional(OPTIONAL, remarks.as_deref(), Remarks::write)?;
                encoder.optional(OPTIONAL, None::<&()>, |(), _| Ok(()))
            }
        }
    }

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
    fn write(remarks: &Remarks, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        encoder.appendable_type(|encoder| {
            encoder.optional(OPTIONAL, remarks.unit.as_ref(), String::encode)?;
            encoder.optional(OPTIONAL, remarks.min.as_ref(), values::write)?;
            encoder.optional(OPTIONAL, remarks.max.as_ref(), values::write)?;
            encoder.optional(OPTIONAL, remarks.hash_id.as_ref(), String::encode)
        })
    }

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
        TypeObject { equivalence: Equivalence::Minimal, flags: 0, header: Header(None), body }
    }
}

fn read_body(
    octet: u8,
    is_complete: bool,
    decoder: &mut Decoder<'_>,
) -> Result<(u16, Header, ObjectBody), DecodeError> {
    let flags = u16::decode(decoder)?;
    let header = |decoder: &mut Decoder<'_>| Header::read(is_complete, decoder);
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
                let header = if is_complete { decoder.optional(0, header)?.unwrap_or_default() } else { Header(None) };
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

fn write_element(
    (flags, element): &(u16, TypeIdentifier),
    is_complete: bool,
    encoder: &mut Encoder<'_>,
) -> Result<(), EncodeError> {
    encoder.appendable_type(|encoder| {
        flags.encode(encoder)?;
        element.encode(encoder)?;
        write_no_annotations(is_complete, encoder)
    })
}

/// The two optional annotation members that are absent.
fn write_no_annotations(is_complete: bool, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    if is_complete {
        encoder.bytes(&[0, 0]);
    }
    Ok(())
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
    Err(DecodeError::new(at, Cow::from(format!("a name of at most {NAME_BYTES_MAX} bytes"))))
}

const NAME_BYTES_MAX: usize = 256;

/// Writes a sequence of appendable structures.
fn write_all<T>(
    elements: &[T],
    encoder: &mut Encoder<'_>,
    write: impl Fn(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    encoder.collection(false, |encoder| {
        encoder.length(elements.len())?;
        elements.iter().try_for_each(|element| encoder.appendable_type(|encoder| write(element, encoder)))
    })
}

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
