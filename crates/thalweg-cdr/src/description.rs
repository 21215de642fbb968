//! Types as data (DDS-XTypes 1.3 §7.2): what a Rust type that derives `Topic`, a text of IDL and a type object have in common.
//!
//! [`Layout::description`](crate::Layout::description) gives that of a Rust type.

mod key_size;
mod named;
mod once;
mod optional_key;
mod recursive;
mod tie;

use std::sync::Arc;

pub use named::{
    Alias, Annotations, Bitfield, Bitmask, Bitset, Enumeration, Literal, Structure, StructureMember, TryConstruct,
    Union, UnionCase,
};
pub use once::once;
pub use recursive::{Component, Recursive};
pub use tie::{COMPONENT_TYPES_MAX, TieError, is_open, tie};

/// Types that [`Type::bytes_min`] looks at; chosen by us, more than have ever been nested without a length.
const LOOKS_MAX: usize = 64;

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
    /// Any of several names.
    Bitmask(Arc<Bitmask>),
    /// Small numbers that share the bits of one.
    Bitset(Arc<Bitset>),
    /// Another name of a type.
    Alias(Arc<Alias>),
    /// Members with names.
    Structure(Arc<Structure>),
    /// One of several members.
    Union(Arc<Union>),
    /// A type that contains itself, or one of several that contain each other.
    Recursive(Recursive),
    /// Any number of elements.
    Sequence {
        /// The type of the elements.
        element: Box<Type>,
        /// The most there may be.
        bound: Option<usize>,
    },
    /// A fixed number of elements; an array of arrays without a name between them is one of several dimensions.
    Array {
        /// The type of the elements.
        element: Box<Type>,
        /// Number of elements.
        count: usize,
    },
    /// Values by keys.
    Map {
        /// The type of the keys.
        key: Box<Type>,
        /// The type of the values.
        element: Box<Type>,
        /// The most pairs there may be.
        bound: Option<usize>,
    },
}

/// IDL's primitive types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Primitive {
    /// `boolean`
    Boolean,
    /// `octet`: a byte without meaning as a number
    Byte,
    /// `uint8`
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
    /// `long double`: IEEE 754 binary128
    Float128,
    /// `char`: one byte, ISO 8859-1
    Char8,
    /// `wchar`: one code unit of UTF-16
    Char16,
}

impl Primitive {
    /// Its size in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            Primitive::Boolean | Primitive::Byte | Primitive::UInt8 | Primitive::Int8 | Primitive::Char8 => 1,
            Primitive::Int16 | Primitive::UInt16 | Primitive::Char16 => 2,
            Primitive::Int32 | Primitive::UInt32 | Primitive::Float32 => 4,
            Primitive::Int64 | Primitive::UInt64 | Primitive::Float64 => 8,
            Primitive::Float128 => 16,
        }
    }

    /// The spelling that IDL 4.2 and this crate's users prefer.
    pub const fn idl(self) -> &'static str {
        match self {
            Primitive::Boolean => "boolean",
            Primitive::Byte => "octet",
            Primitive::UInt8 => "uint8",
            Primitive::Int8 => "int8",
            Primitive::Int16 => "short",
            Primitive::UInt16 => "unsigned short",
            Primitive::Int32 => "long",
            Primitive::UInt32 => "unsigned long",
            Primitive::Int64 => "long long",
            Primitive::UInt64 => "unsigned long long",
            Primitive::Float32 => "float",
            Primitive::Float64 => "double",
            Primitive::Float128 => "long double",
            Primitive::Char8 => "char",
            Primitive::Char16 => "wchar",
        }
    }

    /// Whether it is a whole number, which may label the cases of a union and hold bits.
    pub const fn is_integer(self) -> bool {
        use Primitive::{Byte, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
        matches!(self, Byte | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
    }
}

impl Type {
    /// The type behind all its names. [`Type::Recursive`] is looked through where it holds its component: at uses from outside, and not
    /// at those among the types of the component, which [`followed`](Self::followed) leads to.
    pub fn resolved(&self) -> &Type {
        let (mut found, mut within): (&Type, Option<&Component>) = (self, None);
        loop {
            found = match found {
                Type::Alias(alias) => &alias.aliased,
                Type::Recursive(part) => match part.definition_in(&mut within) {
                    Some(definition) => definition,
                    None => return found,
                },
                other => return other,
            }
        }
    }

    /// Whether it is a primitive type, under whatever name: sequences and maps of others have their length in front in XCDR2
    /// (DDS-XTypes 1.3 §7.4.3.5.3).
    pub fn is_primitive(&self) -> bool {
        matches!(self.resolved(), Type::Primitive(_))
    }

    /// Whether it is an array of primitive elements, in one dimension or several: such a one has no length in front in XCDR2. Names
    /// between the dimensions are looked through.
    pub fn is_primitive_array(&self) -> bool {
        match self.resolved() {
            Type::Array { element, .. } => element.is_primitive() || element.is_primitive_array(),
            _ => false,
        }
    }

    /// The fewest bytes that a value takes, or fewer: it looks at 64 types at most, so that a type that others made costs no
    /// more than one of ours.
    pub fn bytes_min(&self) -> usize {
        let mut looks = LOOKS_MAX;
        self.bytes_within(&mut looks)
    }

    fn bytes_within(&self, looks: &mut usize) -> usize {
        if *looks == 0 {
            return 0;
        }
        *looks -= 1;
        match self {
            Type::Primitive(primitive) => primitive.size_bytes(),
            Type::Enumeration(enumeration) => enumeration.holder_bytes(),
            Type::Bitmask(bitmask) => bitmask.holder_bytes(),
            Type::Bitset(bitset) => bitset.holder_bytes(),
            Type::Alias(alias) => alias.aliased.bytes_within(looks),
            Type::String { .. } | Type::WString { .. } | Type::Sequence { .. } | Type::Map { .. } => 4,
            Type::Array { element, count } => element.bytes_within(looks).saturating_mul(*count),
            Type::Structure(structure) if structure.extensibility == crate::Extensibility::Final => {
                let required = structure.members.iter().filter(|member| !member.is_optional).take(LOOKS_MAX);
                required.map(|member| member.member_type.bytes_within(looks)).fold(0, usize::saturating_add)
            }
            Type::Union(union) if union.extensibility == crate::Extensibility::Final => {
                union.discriminator.bytes_within(looks)
            }
            // A use of a type that contains itself is bounded by what it costs, not by the bytes that it claims.
            Type::Structure(_) | Type::Union(_) | Type::Recursive(_) => 0,
        }
    }

    /// The name that it was given: of a structure, union, enumeration, bit mask, bit set or alias.
    pub fn name(&self) -> Option<&str> {
        match self {
            Type::Enumeration(enumeration) => Some(&enumeration.name),
            Type::Bitmask(bitmask) => Some(&bitmask.name),
            Type::Bitset(bitset) => Some(&bitset.name),
            Type::Alias(alias) => Some(&alias.name),
            Type::Structure(structure) => Some(&structure.name),
            Type::Union(union) => Some(&union.name),
            Type::Recursive(part) => Some(part.name()),
            _ => None,
        }
    }

    /// The same type with this bound; a type without a length stays as it is.
    #[must_use]
    pub fn bounded(self, most: usize) -> Type {
        let bound = Some(most);
        match self {
            Type::String { .. } => Type::String { bound },
            Type::WString { .. } => Type::WString { bound },
            Type::Sequence { element, .. } => Type::Sequence { element, bound },
            Type::Map { key, element, .. } => Type::Map { key, element, bound },
            other => other,
        }
    }

    /// The same type with `octet` in the place of `uint8`, which are both `u8` in Rust: in itself, and in sequences, arrays and maps. Types
    /// that have a name stay as they are.
    #[must_use]
    pub fn of_octets(self) -> Type {
        match self {
            Type::Primitive(Primitive::UInt8) => Type::Primitive(Primitive::Byte),
            Type::Sequence { element, bound } => Type::Sequence { element: Box::new(element.of_octets()), bound },
            Type::Array { element, count } => Type::Array { element: Box::new(element.of_octets()), count },
            Type::Map { key, element, bound } => {
                Type::Map { key: Box::new(key.of_octets()), element: Box::new(element.of_octets()), bound }
            }
            other => other,
        }
    }
}
