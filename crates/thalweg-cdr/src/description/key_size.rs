//! How large keys of described types can become.

use super::{Structure, Type};
use crate::KeySize;

impl Type {
    /// The largest size that it has as a key.
    fn key_size(&self) -> KeySize {
        match self {
            Type::Primitive(primitive) => match primitive.size_bytes() {
                16 => KeySize::number(8).then(KeySize::number(8)),
                size_bytes => KeySize::number(size_bytes),
            },
            Type::Enumeration(enumeration) => KeySize::number(enumeration.holder_bytes()),
            Type::Bitmask(bitmask) => KeySize::number(bitmask.holder_bytes()),
            Type::Bitset(bitset) => KeySize::number(bitset.holder_bytes()),
            Type::Alias(alias) => alias.aliased.key_size(),
            Type::String { bound: Some(bound) } => {
                KeySize::number(4).then(KeySize::number(1).times(bound.saturating_add(1)))
            }
            Type::String { bound: None } | Type::WString { .. } | Type::Sequence { .. } | Type::Map { .. } => {
                KeySize::OVER
            }
            Type::Array { element, count } => {
                let elements = element.key_size().times(*count);
                if self.is_primitive() { elements } else { KeySize::number(4).then(elements) }
            }
            Type::Structure(structure) => structure.key_size(),
            Type::Union(union) if union.is_keyed => union.discriminator.key_size(),
            Type::Union(union) => {
                let cases = union.cases.iter().filter_map(|case| case.case_type.as_ref());
                let largest = cases.map(Type::key_size).fold(KeySize::ZERO, KeySize::or);
                union.discriminator.key_size().then(largest)
            }
        }
    }

    /// Whether its key always fits into the 16 bytes of a key hash.
    pub fn key_fits_hash(&self) -> bool {
        self.key_size().fits_key_hash()
    }
}

impl Structure {
    /// Whether its key always fits into the 16 bytes of a key hash.
    pub fn key_fits_hash(&self) -> bool {
        self.key_size().fits_key_hash()
    }

    fn key_size(&self) -> KeySize {
        let members = self.key_members_by_id().into_iter();
        members.fold(KeySize::ZERO, |size, member| size.then(member.member_type.key_size()))
    }
}
