//! Types that are known at run time only (DDS-XTypes 1.3 §7.2).

use std::sync::Arc;

use thalweg_cdr::{Extensibility, KeySize};

/// A type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number, a boolean or a character.
    Primitive(Primitive),
    /// Text in UTF-8.
    String {
        /// The most bytes it may have.
        bound: Option<usize>,
    },
    /// Text in UTF-16.
    WString {
        /// The most code units it may have.
        bound: Option<usize>,
    },
    /// One of several names.
    Enumeration(Arc<Enumeration>),
    /// Members with names.
    Structure(Arc<Structure>),
    /// Any number of elements.
    Sequence {
        /// The type of the elements.
        element: Box<Type>,
        /// The most there may be.
        bound: Option<usize>,
    },
    /// A fixed number of elements; an array of arrays is one of several dimensions.
    Array {
        /// The type of the elements.
        element: Box<Type>,
        /// Number of elements.
        count: usize,
    },
}

/// IDL's primitive types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `boolean`
    Boolean,
    /// `octet`, `uint8`
    UInt8,
    /// `int8`
    Int8,
    /// `short`, `int16`
    Int16,
    /// `unsigned short`, `uint16`
    UInt16,
    /// `long`, `int32`
    Int32,
    /// `unsigned long`, `uint32`
    UInt32,
    /// `long long`, `int64`
    Int64,
    /// `unsigned long long`, `uint64`
    UInt64,
    /// `float`
    Float32,
    /// `double`
    Float64,
    /// `char`: one byte, ISO 8859-1
    Char8,
}

/// IDL's `enum`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name with its modules: `shapes::Color`.
    pub name: String,
    /// The literals with their values; at least one, and the first is the default.
    pub literals: Vec<(String, i32)>,
    /// Its bytes on the wire: 1, 2 or 4.
    pub holder_bytes: usize,
}

/// IDL's `struct`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its name with its modules: `std_msgs::msg::dds_::String_`.
    pub name: String,
    /// Permitted differences of its versions.
    pub extensibility: Extensibility,
    /// Its members in order, those of its base first.
    pub members: Vec<StructureMember>,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureMember {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// Its type.
    pub member_type: Type,
    /// Whether it is part of the key.
    pub is_key: bool,
    /// Whether it may be absent.
    pub is_optional: bool,
    /// Whether a receiver that does not know it drops the sample.
    pub must_understand: bool,
}

impl Primitive {
    /// Its size in bytes.
    pub fn size_bytes(self) -> usize {
        match self {
            Primitive::Boolean | Primitive::UInt8 | Primitive::Int8 | Primitive::Char8 => 1,
            Primitive::Int16 | Primitive::UInt16 => 2,
            Primitive::Int32 | Primitive::UInt32 | Primitive::Float32 => 4,
            Primitive::Int64 | Primitive::UInt64 | Primitive::Float64 => 8,
        }
    }
}

impl Type {
    /// Whether collections of it have no length in front in XCDR2; dimensions of an array are looked through.
    pub(super) fn is_primitive(&self) -> bool {
        match self {
            Type::Primitive(_) => true,
            Type::Array { element, .. } => element.is_primitive(),
            _ => false,
        }
    }

    /// The fewest bytes that a value takes.
    pub(super) fn bytes_min(&self) -> usize {
        match self {
            Type::Primitive(primitive) => primitive.size_bytes(),
            Type::Enumeration(enumeration) => enumeration.holder_bytes,
            Type::String { .. } | Type::WString { .. } | Type::Sequence { .. } => 4,
            Type::Array { element, count } => element.bytes_min().saturating_mul(*count),
            Type::Structure(structure) => match structure.extensibility {
                Extensibility::Final => {
                    let required = structure.members.iter().filter(|member| !member.is_optional);
                    required.map(|member| member.member_type.bytes_min()).fold(0, usize::saturating_add)
                }
                Extensibility::Appendable | Extensibility::Mutable => 0,
            },
        }
    }

    /// The largest size that it has as a key.
    fn key_size(&self) -> KeySize {
        match self {
            Type::Primitive(primitive) => KeySize::number(primitive.size_bytes()),
            Type::Enumeration(enumeration) => KeySize::number(enumeration.holder_bytes),
            Type::String { bound: Some(bound) } => {
                KeySize::number(4).then(KeySize::number(1).times(bound.saturating_add(1)))
            }
            Type::String { bound: None } | Type::WString { .. } | Type::Sequence { .. } => KeySize::OVER,
            Type::Array { element, count } => {
                let elements = element.key_size().times(*count);
                if self.is_primitive() { elements } else { KeySize::number(4).then(elements) }
            }
            Type::Structure(structure) => structure.key_size(),
        }
    }
}

impl Structure {
    /// Whether samples of it belong to instances.
    pub fn is_keyed(&self) -> bool {
        self.members.iter().any(|member| member.is_key)
    }

    /// The members that identify an instance: those that are marked, or all if none is (DDS-XTypes 1.3 §7.6.8.3).
    pub(super) fn key_members(&self) -> impl Iterator<Item = &StructureMember> {
        let is_keyed = self.is_keyed();
        self.members.iter().filter(move |member| member.is_key || !is_keyed)
    }

    /// The same in the order of their ids, as key hashes want them.
    pub(super) fn key_members_by_id(&self) -> Vec<&StructureMember> {
        let mut members: Vec<&StructureMember> = self.key_members().collect();
        members.sort_by_key(|member| member.id);
        members
    }

    /// Whether its key always fits into the 16 bytes of a key hash.
    pub(super) fn key_fits_hash(&self) -> bool {
        self.key_size().fits_key_hash()
    }

    fn key_size(&self) -> KeySize {
        self.key_members_by_id()
            .into_iter()
            .fold(KeySize::ZERO, |size, member| size.then(member.member_type.key_size()))
    }
}
