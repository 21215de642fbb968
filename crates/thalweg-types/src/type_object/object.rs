//! Type objects, their bytes and their hashes (DDS-XTypes 1.3 Annex B).

mod read;

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
    pub header: TypeHeader,
    /// The rest.
    pub body: ObjectBody,
}

/// The name of a type in its object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeHeader(pub Option<String>);

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

    /// The hash that names types whose objects these are, in the order of their names: in them, the hash of the component is zero
    /// (DDS-XTypes 1.3 §7.3.4.9).
    ///
    /// # Errors
    /// When they exceed 2^32 bytes.
    pub fn hash_of_component(objects: &[Vec<u8>]) -> Result<TypeHash, EncodeError> {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, Representation::Xcdr2, ByteOrder::Little);
        encoder.collection(false, |encoder| {
            encoder.length(objects.len())?;
            objects.iter().for_each(|object| {
                encoder.align(4);
                encoder.bytes(object);
            });
            Ok(())
        })?;
        Ok(TypeObject::hash_of(&out))
    }

    /// All objects that it refers to; a component as a whole.
    pub fn dependencies(&self) -> Vec<TypeIdentifier> {
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
        identifiers.into_iter().flat_map(TypeIdentifier::objects).collect()
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

impl TypeHeader {
    fn write(&self, is_complete: bool, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        write_no_annotations(is_complete, encoder)?;
        match &self.0 {
            Some(name) if is_complete => name.encode(encoder),
            None if is_complete => String::new().encode(encoder),
            _ => Ok(()),
        }
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
