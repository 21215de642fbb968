//! Type identifiers (DDS-XTypes 1.3 §7.3.4.2).

use std::fmt;

use thalweg_cdr::description::Primitive;
use thalweg_cdr::{ByteOrder, Decode, DecodeError, Decoder, Encode, EncodeError, Encoder, Layout, Representation};

/// Which of a type's two objects is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Equivalence {
    /// What decides about assignability.
    Minimal,
    /// All.
    Complete,
}

/// The first 14 bytes of a type object's MD5.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeHash(pub [u8; 14]);

/// The name of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeIdentifier {
    /// No type.
    #[default]
    None,
    /// A primitive type.
    Primitive(Primitive),
    /// A text.
    String {
        /// Whether it is one of UTF-16.
        is_wide: bool,
        /// Most bytes or code units; 0 for any number.
        bound: u32,
    },
    /// A sequence.
    Sequence {
        /// What is the same of the elements.
        header: CollectionHeader,
        /// Most elements; 0 for any number.
        bound: u32,
        /// The elements.
        element: Box<TypeIdentifier>,
    },
    /// An array.
    Array {
        /// What is the same of the elements.
        header: CollectionHeader,
        /// Its dimensions, the outermost first; at least one.
        bounds: Vec<u32>,
        /// The elements.
        element: Box<TypeIdentifier>,
    },
    /// A map.
    Map {
        /// What is the same of the values.
        header: CollectionHeader,
        /// Most pairs; 0 for any number.
        bound: u32,
        /// The values.
        element: Box<TypeIdentifier>,
        /// Flags of the keys, as of members.
        key_flags: u16,
        /// The keys.
        key: Box<TypeIdentifier>,
    },
    /// A type that contains itself, or one of several that contain each other.
    Component {
        /// Which of the objects.
        equivalence: Equivalence,
        /// The hash of all their objects.
        hash: TypeHash,
        /// Their number.
        length: i32,
        /// Which of them, counted from 1 in the order of their names; 0 for all.
        index: i32,
    },
    /// A type that has an object.
    Hash(Equivalence, TypeHash),
}

/// The head of a collection that needs no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectionHeader {
    /// `None` when minimal and complete identifiers of the elements are the same.
    pub equivalence: Option<Equivalence>,
    /// Flags of the elements, as of members.
    pub element_flags: u16,
}

impl Equivalence {
    /// The octet on the wire.
    pub const fn octet(self) -> u8 {
        match self {
            Equivalence::Minimal => 0xf1,
            Equivalence::Complete => 0xf2,
        }
    }

    /// The meaning of an octet.
    pub const fn of_octet(octet: u8) -> Option<Equivalence> {
        match octet {
            0xf1 => Some(Equivalence::Minimal),
            0xf2 => Some(Equivalence::Complete),
            _ => None,
        }
    }
}

impl fmt::Display for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TypeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TypeIdentifier {
    /// The objects that it names, alone or as elements: each a hash, or a component as a whole.
    pub fn objects(&self) -> Vec<TypeIdentifier> {
        match self {
            TypeIdentifier::Hash(..) => vec![self.clone()],
            TypeIdentifier::Component { .. } => vec![self.whole()],
            TypeIdentifier::Sequence { element, .. } | TypeIdentifier::Array { element, .. } => element.objects(),
            TypeIdentifier::Map { element, key, .. } => [key.objects(), element.objects()].concat(),
            _ => Vec::new(),
        }
    }

    /// The identifier of a component as a whole, which has the index 0 (DDS-XTypes 1.3 §7.3.4.9.3); others stay as they are.
    #[must_use]
    pub fn whole(&self) -> TypeIdentifier {
        self.part(0)
    }

    /// The identifier of a type of this component, counted from 1; others stay as they are.
    #[must_use]
    pub fn part(&self, index: i32) -> TypeIdentifier {
        match *self {
            TypeIdentifier::Component { equivalence, hash, length, .. } => {
                TypeIdentifier::Component { equivalence, hash, length, index }
            }
            _ => self.clone(),
        }
    }

    /// Whether minimal and complete identifier are the same.
    pub fn is_fully_descriptive(&self) -> bool {
        match self {
            TypeIdentifier::Component { .. } | TypeIdentifier::Hash(..) => false,
            TypeIdentifier::Sequence { element, .. } | TypeIdentifier::Array { element, .. } => {
                element.is_fully_descriptive()
            }
            TypeIdentifier::Map { element, key, .. } => element.is_fully_descriptive() && key.is_fully_descriptive(),
            _ => true,
        }
    }

    /// Its bytes: XCDR2, little-endian, without encapsulation header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing takes no length from outside.
        let _ = self.encode(&mut Encoder::new(&mut out, Representation::Xcdr2, ByteOrder::Little));
        out
    }
}

/// The octets of primitive types (DDS-XTypes 1.3 Annex B).
const PRIMITIVES: [(u8, Primitive); 15] = [
    (0x01, Primitive::Boolean),
    (0x02, Primitive::Byte),
    (0x03, Primitive::Int16),
    (0x04, Primitive::Int32),
    (0x05, Primitive::Int64),
    (0x06, Primitive::UInt16),
    (0x07, Primitive::UInt32),
    (0x08, Primitive::UInt64),
    (0x09, Primitive::Float32),
    (0x0a, Primitive::Float64),
    (0x0b, Primitive::Float128),
    (0x0c, Primitive::Int8),
    (0x0d, Primitive::UInt8),
    (0x10, Primitive::Char8),
    (0x11, Primitive::Char16),
];

/// The octet of a primitive type.
pub(super) fn octet_of(primitive: Primitive) -> u8 {
    PRIMITIVES.iter().find(|(_, other)| *other == primitive).map_or(0, |(octet, _)| *octet)
}

/// The primitive type of an octet.
pub(super) fn primitive_of(octet: u8) -> Option<Primitive> {
    PRIMITIVES.iter().find(|(other, _)| *other == octet).map(|(_, primitive)| *primitive)
}

const STRING: [[u8; 2]; 2] = [[0x70, 0x71], [0x72, 0x73]];
const SEQUENCE: [u8; 2] = [0x80, 0x81];
const ARRAY: [u8; 2] = [0x90, 0x91];
const MAP: [u8; 2] = [0xa0, 0xa1];
const COMPONENT: u8 = 0xb0;
const BOTH: u8 = 0xf3;

/// Whether a bound needs four bytes instead of one.
fn is_large(bound: u32) -> bool {
    bound > 255
}

fn write_bound(bound: u32, is_large: bool, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
    if is_large { bound.encode(encoder) } else { (bound as u8).encode(encoder) }
}

fn read_bound(is_large: bool, decoder: &mut Decoder<'_>) -> Result<u32, DecodeError> {
    if is_large { u32::decode(decoder) } else { u8::decode(decoder).map(u32::from) }
}

impl CollectionHeader {
    fn write(self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.equivalence.map_or(BOTH, Equivalence::octet).encode(encoder)?;
        self.element_flags.encode(encoder)
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<CollectionHeader, DecodeError> {
        let at = decoder.offset();
        let octet = u8::decode(decoder)?;
        let equivalence = Equivalence::of_octet(octet);
        if equivalence.is_none() && octet != BOTH {
            return Err(DecodeError::new(at, "an equivalence kind"));
        }
        Ok(CollectionHeader { equivalence, element_flags: u16::decode(decoder)? })
    }
}

impl Layout for TypeIdentifier {
    const MIN_BYTES: usize = 1;
}

impl Encode for TypeIdentifier {
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match self {
            TypeIdentifier::None => 0_u8.encode(encoder),
            TypeIdentifier::Primitive(primitive) => octet_of(*primitive).encode(encoder),
            TypeIdentifier::String { is_wide, bound } => {
                STRING[usize::from(*is_wide)][usize::from(is_large(*bound))].encode(encoder)?;
                write_bound(*bound, is_large(*bound), encoder)
            }
            TypeIdentifier::Sequence { header, bound, element } => {
                SEQUENCE[usize::from(is_large(*bound))].encode(encoder)?;
                header.write(encoder)?;
                write_bound(*bound, is_large(*bound), encoder)?;
                encoder.nested(|encoder| element.encode(encoder))
            }
            TypeIdentifier::Array { header, bounds, element } => {
                let large = bounds.iter().any(|bound| is_large(*bound));
                ARRAY[usize::from(large)].encode(encoder)?;
                header.write(encoder)?;
                encoder.length(bounds.len())?;
                bounds.iter().try_for_each(|bound| write_bound(*bound, large, encoder))?;
                encoder.nested(|encoder| element.encode(encoder))
            }
            TypeIdentifier::Map { header, bound, element, key_flags, key } => {
                MAP[usize::from(is_large(*bound))].encode(encoder)?;
                header.write(encoder)?;
                write_bound(*bound, is_large(*bound), encoder)?;
                encoder.nested(|encoder| element.encode(encoder))?;
                key_flags.encode(encoder)?;
                encoder.nested(|encoder| key.encode(encoder))
            }
            TypeIdentifier::Component { equivalence, hash, length, index } => {
                COMPONENT.encode(encoder)?;
                encoder.appendable_type(|encoder| {
                    equivalence.octet().encode(encoder)?;
                    encoder.bytes(&hash.0);
                    length.encode(encoder)?;
                    index.encode(encoder)
                })
            }
            TypeIdentifier::Hash(equivalence, hash) => {
                equivalence.octet().encode(encoder)?;
                encoder.bytes(&hash.0);
                Ok(())
            }
        }
    }
}

impl Decode for TypeIdentifier {
    fn decode(decoder: &mut Decoder<'_>) -> Result<TypeIdentifier, DecodeError> {
        let at = decoder.offset();
        let octet = u8::decode(decoder)?;
        if let Some(primitive) = primitive_of(octet) {
            return Ok(TypeIdentifier::Primitive(primitive));
        }
        if let Some(equivalence) = Equivalence::of_octet(octet) {
            return Ok(TypeIdentifier::Hash(equivalence, read_hash(decoder)?));
        }
        let large = octet & 1 == 1;
        match octet {
            0 => Ok(TypeIdentifier::None),
            0x70..=0x73 => Ok(TypeIdentifier::String { is_wide: octet >= 0x72, bound: read_bound(large, decoder)? }),
            0x80 | 0x81 => Ok(TypeIdentifier::Sequence {
                header: CollectionHeader::read(decoder)?,
                bound: read_bound(large, decoder)?,
                element: nested(decoder)?,
            }),
            0x90 | 0x91 => {
                let header = CollectionHeader::read(decoder)?;
                let at = decoder.offset();
                let count = decoder.length(if large { 4 } else { 1 })?;
                if !(1..=DIMENSIONS_MAX).contains(&count) {
                    return Err(DecodeError::new(at, format!("1 to {DIMENSIONS_MAX} dimensions of an array")));
                }
                let bounds = (0..count).map(|_| read_bound(large, decoder)).collect::<Result<_, _>>()?;
                Ok(TypeIdentifier::Array { header, bounds, element: nested(decoder)? })
            }
            0xa0 | 0xa1 => Ok(TypeIdentifier::Map {
                header: CollectionHeader::read(decoder)?,
                bound: read_bound(large, decoder)?,
                element: nested(decoder)?,
                key_flags: u16::decode(decoder)?,
                key: nested(decoder)?,
            }),
            COMPONENT => decoder.appendable_type(|decoder| {
                let at = decoder.offset();
                let equivalence = Equivalence::of_octet(u8::decode(decoder)?)
                    .ok_or_else(|| DecodeError::new(at, "the kind of a type object"))?;
                let hash = read_hash(decoder)?;
                Ok(TypeIdentifier::Component {
                    equivalence,
                    hash,
                    length: i32::decode(decoder)?,
                    index: i32::decode(decoder)?,
                })
            }),
            _ => Err(DecodeError::new(at, "the kind of a type identifier")),
        }
    }

    fn default_value() -> TypeIdentifier {
        TypeIdentifier::None
    }
}

/// Most dimensions of an array, chosen by us: no type in use has more than a few.
const DIMENSIONS_MAX: usize = 64;

fn nested(decoder: &mut Decoder<'_>) -> Result<Box<TypeIdentifier>, DecodeError> {
    decoder.nested(|decoder| TypeIdentifier::decode(decoder).map(Box::new))
}

pub(super) fn read_hash(decoder: &mut Decoder<'_>) -> Result<TypeHash, DecodeError> {
    let bytes = decoder.bytes(14, "the hash of a type")?;
    Ok(TypeHash(std::array::from_fn(|index| bytes[index])))
}
