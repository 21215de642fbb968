//! How large keys of described types can become.

use super::{COMPONENT_TYPES_MAX, Recursive, Structure, Type};
use crate::KeySize;

/// Most uses of types that contain themselves which are followed. Each type of a component without an endless key is met a few times
/// before 16 bytes are full; a key that is not small after these counts as one without a bound.
const USES_MAX: usize = COMPONENT_TYPES_MAX;

/// The definition of a type that contains itself, unless too many were used.
fn defined(part: &Recursive, uses: &mut usize) -> Option<Type> {
    *uses += 1;
    if *uses > USES_MAX { None } else { part.definition() }
}

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
                let definition = defined(part, uses);
                definition.map_or(KeySize::OVER, |definition| definition.key_size(uses))
            }
            Type::String { bound: Some(bound) } => {
                KeySize::number(4).then(KeySize::number(1).times(bound.saturating_add(1)))
            }
            Type::WString { bound: Some(bound) } => KeySize::number(4).then(KeySize::number(2).times(*bound)),
            Type::Sequence { element, bound: Some(bound) } => {
                let elements = KeySize::number(4).then(element.key_size(uses).times(*bound));
                if element.is_primitive() { elements } else { KeySize::number(4).then(elements) }
            }
            Type::String { bound: None }
            | Type::WString { bound: None }
            | Type::Sequence { bound: None, .. }
            | Type::Map { .. } => KeySize::OVER,
            Type::Array { .. } => {
                let elements = self.key_size_of_elements(uses);
                if self.is_primitive_array() { elements } else { KeySize::number(4).then(elements) }
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

    /// The elements of all dimensions of an array, of which the outermost alone has a frame.
    fn key_size_of_elements(&self, uses: &mut usize) -> KeySize {
        match self.resolved() {
            Type::Array { element, count } => element.key_size_of_elements(uses).times(*count),
            Type::Recursive(part) => {
                let definition = defined(part, uses);
                definition.map_or(KeySize::OVER, |definition| definition.key_size_of_elements(uses))
            }
            other => other.key_size(uses),
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
        members.fold(KeySize::ZERO, |size, member| {
            // Whether an optional member is there is part of the key; so far nobody has needed one that is always small.
            size.then(if member.is_optional { KeySize::OVER } else { member.member_type.key_size(uses) })
        })
    }
}
