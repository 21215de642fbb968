//! How large keys of described types can become.

use super::{COMPONENT_TYPES_MAX, Recursive, Structure, Type};
use crate::KeySize;

/// Most uses of types that contain themselves which are followed. Each type of a component without an endless key is met a few times
/// before 16 bytes are full; a key that is not small after these counts as one without a bound.
const USES_MAX: usize = COMPONENT_TYPES_MAX;
/// Most structures and unions that are looked at: where each contains the one before several times, nobody could wait for all of them. A
/// key that is not small after these counts as one without a bound, too. Chosen by us.
const PARTS_MAX: usize = 1 << 16;

/// How much of a type may still be looked at.
struct Room {
    uses: usize,
    parts: usize,
}

impl Room {
    fn whole() -> Room {
        Room { uses: USES_MAX, parts: PARTS_MAX }
    }

    /// The definition of a type that contains itself, unless too many were used.
    fn take_definition(&mut self, part: &Recursive) -> Option<Type> {
        self.uses = self.uses.checked_sub(1)?;
        part.definition()
    }

    /// Takes the room of a structure or union; false when none is left.
    fn take_part(&mut self) -> bool {
        let rest = self.parts.checked_sub(1);
        self.parts = rest.unwrap_or(0);
        rest.is_some()
    }
}

/// All sizes, joined one behind the other or to the largest of them; none is asked for behind one that makes the whole too large.
fn joined(mut sizes: impl Iterator<Item = KeySize>, join: fn(KeySize, KeySize) -> KeySize) -> KeySize {
    let whole = sizes.try_fold(KeySize::ZERO, |whole, next| {
        let whole = join(whole, next);
        (whole != KeySize::OVER).then_some(whole)
    });
    whole.unwrap_or(KeySize::OVER)
}

impl Type {
    /// The largest size that it has as a key.
    fn key_size(&self, room: &mut Room) -> KeySize {
        match self {
            Type::Primitive(primitive) => match primitive.size_bytes() {
                16 => KeySize::number(8).then(KeySize::number(8)),
                size_bytes => KeySize::number(size_bytes),
            },
            Type::Enumeration(enumeration) => KeySize::number(enumeration.holder_bytes()),
            Type::Bitmask(bitmask) => KeySize::number(bitmask.holder_bytes()),
            Type::Bitset(bitset) => KeySize::number(bitset.holder_bytes()),
            Type::Alias(alias) => alias.aliased.key_size(room),
            Type::Recursive(part) => {
                let definition = room.take_definition(part);
                definition.map_or(KeySize::OVER, |definition| definition.key_size(room))
            }
            Type::String { bound: Some(bound) } => {
                KeySize::number(4).then(KeySize::number(1).times(bound.saturating_add(1)))
            }
            Type::WString { bound: Some(bound) } => KeySize::number(4).then(KeySize::number(2).times(*bound)),
            Type::Sequence { element, bound: Some(bound) } => {
                let elements = KeySize::number(4).then(element.key_size(room).times(*bound));
                if element.is_primitive() { elements } else { KeySize::number(4).then(elements) }
            }
            Type::String { bound: None }
            | Type::WString { bound: None }
            | Type::Sequence { bound: None, .. }
            | Type::Map { .. } => KeySize::OVER,
            Type::Array { .. } => {
                let elements = self.key_size_of_elements(room);
                if self.is_primitive_array() { elements } else { KeySize::number(4).then(elements) }
            }
            Type::Structure(structure) => structure.key_size(room),
            Type::Union(union) if union.is_keyed => union.discriminator.key_size(room),
            Type::Union(union) => {
                if !room.take_part() {
                    return KeySize::OVER;
                }
                let cases = union.cases.iter().filter_map(|case| case.case_type.as_ref());
                let largest = joined(cases.map(|case| case.key_size(room)), KeySize::or);
                union.discriminator.key_size(room).then(largest)
            }
        }
    }

    /// The elements of all dimensions of an array, of which the outermost alone has a frame.
    fn key_size_of_elements(&self, room: &mut Room) -> KeySize {
        match self.resolved() {
            Type::Array { element, count } => element.key_size_of_elements(room).times(*count),
            Type::Recursive(part) => {
                let definition = room.take_definition(part);
                definition.map_or(KeySize::OVER, |definition| definition.key_size_of_elements(room))
            }
            other => other.key_size(room),
        }
    }

    /// Whether its key always fits into the 16 bytes of a key hash.
    pub fn key_fits_hash(&self) -> bool {
        self.key_size(&mut Room::whole()).fits_key_hash()
    }
}

impl Structure {
    /// Whether its key always fits into the 16 bytes of a key hash.
    pub fn key_fits_hash(&self) -> bool {
        self.key_size(&mut Room::whole()).fits_key_hash()
    }

    fn key_size(&self, room: &mut Room) -> KeySize {
        if !room.take_part() {
            return KeySize::OVER;
        }
        let sizes = self.key_members_by_id().into_iter().map(|member| match member.is_optional {
            // Whether an optional member is there is part of the key; so far nobody has needed one that is always small.
            true => KeySize::OVER,
            false => member.member_type.key_size(room),
        });
        joined(sizes, KeySize::then)
    }
}
