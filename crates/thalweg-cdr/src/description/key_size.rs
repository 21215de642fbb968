//! How large keys of described types can become.

use super::{COMPONENT_TYPES_MAX, Structure, Type};
use crate::KeySize;

/// Most uses of types that contain themselves which are followed. Each type of a component without an endless key is met a few times
/// before 16 bytes are full; a key that is not small after these counts as one without a bound.
const USES_MAX: usize = COMPONENT_TYPES_MAX;

impl Type {
    /// The largest size that it has as a key; `uses` counts those of types that contain themselves.
    fn key_size(&self, uses: &mut usize) -> KeySize {
        match self {
            Type::Primitive(primitive) => match primitive.size_bytes() {
                16 => KeySize::number(8).then(KeySize::number(8)),
                size_bytes => KeySize::number(size_bytes),
            },
            Type::Enumeration(enumeration) => KeySize::number(enumeration.holder_bytes()),
            Type::Bitmask(bitmask) => KeySize::number(bitmask.holder_bytes()),
            Type::Bitset(bitset) => KeySize::number(bitset.holder_bytes()),
            Type::Alias(alias) => alias.aliased.key_size(uses),
            Type::Recursive(part) => {
                *uses += 1;
                let definition = if *uses > USES_MAX { None } else { part.definition() };
                definition.map_or(KeySize::OVER, |definition| definition.key_size(uses))
            }
            Type::String { bound: Some(bound) } => {
                KeySize::number(4).then(KeySize::number(1).times(bound.saturating_add(1)))
            }
            Type::String { bound: None } | Type::WString { .. } | Type::Sequence { .. } | Type::Map { .. } => {
                KeySize::OVER
            }
            Type::Array { element, count } => {
                let elements = element.key_size(uses).times(*count);
                if self.is_primitive() { elements } else { KeySize::number(4).then(elements) }
            }
            Type::Structure(structure) => structure.key_size(uses),
            Type::Union(union) if union.is_keyed => union.discriminator.key_size(uses),
            Type::Union(union) => {
                let cases = union.cases.iter().filter_map(|case| case.case_type.as_ref());
                let largest = cases.map(|case| case.key_size(uses)).fold(KeySize::ZERO, KeySize::or);
                union.discriminator.key_size(uses).then(largest)
            }
        }
    }

    /// Whether its key always fits into the 16 bytes of a key hash.
    pub fn key_fits_hash(&self) -> bool {
        self.key_size(&mut 0).fits_key_hash()
    }
}

impl Structure {
    /// Whether its key always fits into the 16 bytes of a key hash.
    pub fn key_fits_hash(&self) -> bool {
        self.key_size(&mut 0).fits_key_hash()
    }

    fn key_size(&self, uses: &mut usize) -> KeySize {
        let members = self.key_members_by_id().into_iter();
        members.fold(KeySize::ZERO, |size, member| size.then(member.member_type.key_size(uses)))
    }
}
