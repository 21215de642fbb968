//! The types that have names.

use std::sync::Arc;

use super::{Primitive, Type};
use crate::Extensibility;

/// IDL's `enum`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// Its name with its modules: `shapes::Color`.
    pub name: String,
    /// The literals in the order of their definition; at least one.
    pub literals: Vec<Literal>,
    /// The index of the literal that a missing member takes.
    pub default: usize,
    /// Its bits, 1 to 32: the wire has 1, 2 or 4 bytes.
    pub bit_bound: u16,
    /// Permitted differences of its versions; never mutable. `None` where nobody tells, as Fast DDS does not: no flag is defined for it
    /// (DDS-XTypes 1.3 Annex B, EnumTypeFlag).
    pub extensibility: Option<Extensibility>,
}

/// A literal of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Its name.
    pub name: String,
    /// Its number.
    pub value: i32,
}

/// IDL's `bitmask`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmask {
    /// Its name with its modules.
    pub name: String,
    /// Its bits, 1 to 64: the wire has 1, 2, 4 or 8 bytes.
    pub bit_bound: u16,
    /// The flags with their positions, in the order of their definition.
    pub flags: Vec<(String, u16)>,
    /// Permitted differences of its versions; never mutable.
    pub extensibility: Extensibility,
}

/// IDL's `bitset`: written as the smallest unsigned number that holds all its bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitset {
    /// Its name with its modules.
    pub name: String,
    /// Its named fields by position; those of its base first.
    pub fields: Vec<Bitfield>,
    /// All its bits, 1 to 64, those without a name included.
    pub bits: u16,
}

/// A field of a bit set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitfield {
    /// Its name.
    pub name: String,
    /// Its first bit, from the least significant one.
    pub position: u16,
    /// Number of bits.
    pub bits: u8,
    /// The type of its value: boolean or a whole number.
    pub holder: Primitive,
}

/// IDL's `typedef`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Its name with its modules.
    pub name: String,
    /// The type that it names.
    pub aliased: Type,
}

/// IDL's `struct`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its name with its modules: `std_msgs::msg::dds_::String_`.
    pub name: String,
    /// Permitted differences of its versions.
    pub extensibility: Extensibility,
    /// The structure that it extends.
    pub base: Option<Arc<Structure>>,
    /// Its members in order, those of its base first.
    pub members: Vec<StructureMember>,
    /// True for a type that is only part of others, never that of a topic.
    pub is_nested: bool,
    /// True when the ids of its members come from their names.
    pub has_hashed_ids: bool,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureMember {
    /// Its name, which documents of samples share.
    pub name: Arc<str>,
    /// Its number.
    pub id: u32,
    /// Its type.
    pub member_type: Type,
    /// Whether it is part of the key.
    pub is_key: bool,
    /// Whether it may be absent.
    pub is_optional: bool,
    /// Whether it is annotated so that a receiver that does not know it drops the sample. Key members need no annotation for that.
    pub must_understand: bool,
    /// Whether it is held elsewhere in memory, which the wire does not show.
    pub is_external: bool,
    /// What a receiver does with a value that it cannot hold.
    pub try_construct: TryConstruct,
    /// Remarks for people and tools.
    pub annotations: Annotations,
}

/// What a receiver does with a value that its type cannot hold (DDS-XTypes 1.3 §7.2.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TryConstruct {
    /// Drops what contains the value.
    #[default]
    Discard,
    /// Puts the default in its place.
    UseDefault,
    /// Cuts it to its bound.
    Trim,
}

/// Built-in annotations of members that change nothing on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// `@unit`
    pub unit: Option<String>,
    /// `@min`, or the lower end of `@range`, as IDL writes the number.
    pub min: Option<String>,
    /// `@max`, or the upper end of `@range`.
    pub max: Option<String>,
    /// The argument of `@hashid`; empty for one without.
    pub hash_id: Option<String>,
    /// `@default`, as JSON: the value of a member that is left out, or that an older writer does not send. `None` for that of the type. Type
    /// objects do not tell it.
    pub default: Option<String>,
}

/// IDL's `union`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union {
    /// Its name with its modules.
    pub name: String,
    /// Permitted differences of its versions.
    pub extensibility: Extensibility,
    /// The type of the value that selects the case: boolean, a character, a whole number or an enumeration, or a name of one.
    pub discriminator: Type,
    /// Whether that value is the key.
    pub is_keyed: bool,
    /// Its cases in order; at least one.
    pub cases: Vec<UnionCase>,
    /// True for a type that is only part of others, never that of a topic.
    pub is_nested: bool,
    /// True when the ids of its members come from their names.
    pub has_hashed_ids: bool,
}

/// A case of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnionCase {
    /// Name of its member.
    pub name: String,
    /// Number of its member; in a mutable union, 0 is the discriminator's.
    pub id: u32,
    /// The values of the discriminator that select it.
    pub labels: Vec<i32>,
    /// Whether it is selected by all values that select no other.
    pub is_default: bool,
    /// The type of its member; `None` for a case without one, which only unions of this workspace have.
    pub case_type: Option<Type>,
    /// Whether it is held elsewhere in memory, which the wire does not show.
    pub is_external: bool,
    /// What a receiver does with a value that it cannot hold.
    pub try_construct: TryConstruct,
    /// Remarks for people and tools.
    pub annotations: Annotations,
}

impl StructureMember {
    /// A required member that is no key.
    pub fn new(name: &str, id: u32, member_type: Type) -> StructureMember {
        StructureMember {
            name: name.into(),
            id,
            member_type,
            is_key: false,
            is_optional: false,
            must_understand: false,
            is_external: false,
            try_construct: TryConstruct::Discard,
            annotations: Annotations::default(),
        }
    }
}

impl Enumeration {
    /// Its bytes on the wire: 1, 2 or 4.
    pub fn holder_bytes(&self) -> usize {
        holder_bytes(self.bit_bound)
    }

    /// The literal of this number.
    pub fn literal_of(&self, value: i32) -> Option<&Literal> {
        self.literals.iter().find(|literal| literal.value == value)
    }

    /// The literal of this name.
    pub fn literal_named(&self, name: &str) -> Option<&Literal> {
        self.literals.iter().find(|literal| literal.name == name)
    }
}

impl Bitmask {
    /// Its bytes on the wire: 1, 2, 4 or 8.
    pub fn holder_bytes(&self) -> usize {
        holder_bytes(self.bit_bound)
    }
}

impl Bitset {
    /// Its bytes on the wire: 1, 2, 4 or 8.
    pub fn holder_bytes(&self) -> usize {
        holder_bytes(self.bits)
    }
}

impl Structure {
    /// Whether samples of it belong to instances.
    pub fn is_keyed(&self) -> bool {
        self.members.iter().any(|member| member.is_key)
    }

    /// The members that it adds to those of its base.
    pub fn own_members(&self) -> &[StructureMember] {
        let inherited = self.base.as_ref().map_or(0, |base| base.members.len());
        self.members.get(inherited..).unwrap_or_default()
    }

    /// The members that identify an instance: those that are marked, or all if none is (DDS-XTypes 1.3 §7.6.8.3).
    pub fn key_members(&self) -> impl Iterator<Item = &StructureMember> {
        let is_keyed = self.is_keyed();
        self.members.iter().filter(move |member| member.is_key || !is_keyed)
    }

    /// The same in the order of their ids, as key hashes want them.
    pub fn key_members_by_id(&self) -> Vec<&StructureMember> {
        let mut members: Vec<&StructureMember> = self.key_members().collect();
        members.sort_by_key(|member| member.id);
        members
    }
}

impl Union {
    /// The value of the discriminator that a label stands for. Labels are `long` in type objects, which turns those of an
    /// `unsigned long` negative from 2³¹ on.
    pub fn selecting(&self, label: i32) -> i64 {
        match self.discriminator.resolved() {
            Type::Primitive(Primitive::UInt32) => label.cast_unsigned().into(),
            _ => label.into(),
        }
    }

    /// The case that a value of the discriminator selects.
    pub fn case_of(&self, label: i64) -> Option<&UnionCase> {
        let is_label = |case: &&UnionCase| case.labels.iter().any(|other| self.selecting(*other) == label);
        self.cases.iter().find(is_label).or_else(|| self.cases.iter().find(|case| case.is_default))
    }
}

fn holder_bytes(bits: u16) -> usize {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}
