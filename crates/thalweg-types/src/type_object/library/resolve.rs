//! Types of objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{
    Alias, Annotations, Bitfield, Bitmask, Bitset, Enumeration, Literal, Primitive, Recursive, Structure,
    StructureMember, TryConstruct, Type, Union, UnionCase, tie,
};

use super::super::convert::{
    IS_APPENDABLE, IS_AUTOID_HASH, IS_DEFAULT, IS_EXTERNAL, IS_FINAL, IS_KEY, IS_MUST_UNDERSTAND, IS_MUTABLE,
    IS_NESTED, IS_OPTIONAL, TRY_CONSTRUCT,
};
use super::super::identifier::{TypeHash, TypeIdentifier, primitive_of};
use super::super::object::{MemberName, ObjectBody, ObjectMember, TypeObject};
use super::super::values::AnnotationValue;
use super::{LibraryError, TypeLibrary, read_object, refused};
use crate::codec::default_leaves;

/// The types made so far. With each goes its number of leaves: hostile objects could otherwise refer to each other so that few bytes
/// make a tree beyond all memory. With objects goes how deep they nest, since one that is known nests as deep at each of its uses.
pub(super) struct Resolving<'a> {
    library: &'a TypeLibrary,
    known: BTreeMap<TypeHash, ((Type, usize), usize)>,
    /// The types of components in their order, by the identifiers of the wholes.
    components: BTreeMap<TypeIdentifier, (Vec<(Type, usize)>, usize)>,
    /// The components whose types are being made.
    open: Vec<TypeIdentifier>,
    /// Levels above what is being made, itself included.
    depth: usize,
    /// Levels of its parts so far.
    levels: usize,
    /// Leaves of the definitions in components.
    in_components: usize,
    /// Leaves that structures have from their bases, each of which has a copy.
    inherited: usize,
    /// Leaves of the defaults of types in components, and of the cases of unions there, as far as they were counted.
    defaults: usize,
}

/// Most leaves of a type, 32 elements of an array of numbers counted as one; chosen by us: 8 MiB in arrays.
const LEAVES_MAX: usize = 1 << 18;
/// Most leaves of all defaults that are counted for one type, chosen by us: a component of few bytes may have many types and cases, each
/// with a default of as many leaves as a type may have.
const DEFAULTS_MAX: usize = 4 * LEAVES_MAX;
/// Deepest nesting of types, each dimension of an array counted; that of values in the codec.
const DEPTH_MAX: usize = thalweg_cdr::NESTING_MAX as usize;
/// So many types of a component count as one level of nesting: a default may lead through all of them. Chosen by us, so that the largest
/// component takes half of the levels.
const TYPES_OF_LEVEL: usize = 8;
/// So many bytes of annotations count as a leaf: structures that extend another one have copies of them.
const REMARKS_OF_LEAF: usize = 64;

impl<'a> Resolving<'a> {
    pub(super) fn new(library: &'a TypeLibrary) -> Resolving<'a> {
        Resolving {
            library,
            known: BTreeMap::new(),
            components: BTreeMap::new(),
            open: Vec::new(),
            depth: 0,
            levels: 0,
            in_components: 0,
            inherited: 0,
            defaults: 0,
        }
    }

    /// The type, and the leaves that were looked at for it beside those of the objects.
    pub(super) fn resolve(mut self, of: &TypeIdentifier) -> (Result<Type, LibraryError>, usize) {
        let found = self.identifier(of).map(|(found, _)| found);
        // More than a type may have were not looked at.
        (found, self.in_components.min(LEAVES_MAX) + self.inherited.min(LEAVES_MAX) + self.defaults)
    }

    fn identifier(&mut self, of: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        self.depth += 1;
        let beside = std::mem::take(&mut self.levels);
        self.check_levels()?;
        let found = self.one(of)?;
        self.check_levels()?;
        self.levels = beside.max(self.levels + 1);
        self.depth -= 1;
        check_leaves(found.1)?;
        Ok(found)
    }

    fn check_levels(&self) -> Result<(), LibraryError> {
        match self.depth + self.levels {
            0..=DEPTH_MAX => Ok(()),
            _ => refused(format!("a type of more than {DEPTH_MAX} levels")),
        }
    }

    fn one(&mut self, of: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        Ok(match of {
            TypeIdentifier::None => return refused("a member without a type"),
            TypeIdentifier::Component { length, index, .. } => self.part(of, *length, *index)?,
            TypeIdentifier::Primitive(primitive) => (Type::Primitive(*primitive), 1),
            TypeIdentifier::String { is_wide: false, bound } => (Type::String { bound: of_bound(*bound) }, 1),
            TypeIdentifier::String { is_wide: true, bound } => (Type::WString { bound: of_bound(*bound) }, 1),
            TypeIdentifier::Sequence { bound, element, .. } => self.sequence(*bound, element)?,
            TypeIdentifier::Array { bounds, element, .. } => self.array(bounds, element)?,
            TypeIdentifier::Map { bound, element, key, .. } => self.map(*bound, key, element)?,
            TypeIdentifier::Hash(_, hash) => {
                if let Some((known, levels)) = self.known.get(hash) {
                    self.levels = *levels;
                    return Ok(known.clone());
                }
                let bytes = self.library.get(hash).ok_or(LibraryError::Missing(Vec::new()))?;
                let object = read_object(bytes)?;
                let found = self.object(&object, format!("#{hash}"))?;
                self.known.insert(*hash, (found.clone(), self.levels));
                found
            }
        })
    }

    /// One of the types of a component, counted from 1.
    fn part(&mut self, of: &TypeIdentifier, length: i32, index: i32) -> Result<(Type, usize), LibraryError> {
        // The whole names the only type.
        let index = if length == 1 && index == 0 { 1 } else { index };
        if !(1..=length).contains(&index) {
            return refused("an identifier that names none of the types that contain each other");
        }
        let whole = of.whole();
        if self.open.contains(&whole) {
            return Ok((Type::Recursive(Recursive::open(&key_of(&whole, index))), 1));
        }
        if !self.components.contains_key(&whole) {
            let made = self.component(&whole)?;
            self.components.insert(whole.clone(), made);
        }
        let Some((types, levels)) = self.components.get(&whole) else {
            return Err(LibraryError::Missing(Vec::new()));
        };
        self.levels = *levels;
        let found = usize::try_from(index - 1).ok().and_then(|place| types.get(place));
        found.cloned().ok_or(LibraryError::Missing(Vec::new()))
    }

    /// The types of a component, and how deep they nest.
    fn component(&mut self, whole: &TypeIdentifier) -> Result<(Vec<(Type, usize)>, usize), LibraryError> {
        let library = self.library;
        let objects = library.component(whole).ok_or(LibraryError::Missing(Vec::new()))?;
        self.open.push(whole.clone());
        let (mut definitions, mut leaves) = (Vec::with_capacity(objects.len()), BTreeMap::new());
        for (index, bytes) in (1..).zip(objects) {
            let key = key_of(whole, index);
            let (definition, more) = self.object(&read_object(bytes)?, key.clone())?;
            self.in_components = self.in_components.saturating_add(more);
            check_leaves(self.in_components)?;
            leaves.insert(key.clone(), more);
            definitions.push((key, definition));
        }
        self.open.pop();
        self.in_components = self.in_components.saturating_add(inherited_within(&definitions, &leaves));
        check_leaves(self.in_components)?;
        let types = tie(definitions).map_err(|error| LibraryError::Refused(error.problem))?;
        let types: Vec<(Type, usize)> = types.into_iter().map(|of| self.with_leaves(of)).collect::<Result<_, _>>()?;
        Ok((types, self.levels + objects.len().div_ceil(TYPES_OF_LEVEL)))
    }

    /// A type that contains itself, with the leaves of its default. The leaves of each definition are few; where each has the next one
    /// twice, the default of the first is none the less beyond all memory.
    fn with_leaves(&mut self, of: Type) -> Result<(Type, usize), LibraryError> {
        if let Type::Union(union) = of.resolved() {
            for case in union.cases.iter().filter_map(|case| case.case_type.as_ref()) {
                self.count_default(case)?;
            }
        }
        let leaves = self.count_default(&of)?;
        Ok((of, leaves))
    }

    /// The leaves of a default, which are looked at one by one.
    fn count_default(&mut self, of: &Type) -> Result<usize, LibraryError> {
        let room = LEAVES_MAX.min(DEFAULTS_MAX - self.defaults);
        let leaves = default_leaves(of, room);
        self.defaults += leaves.unwrap_or(room);
        leaves.map_or_else(|| refused("a type whose default has too many members and elements"), Ok)
    }

    fn sequence(&mut self, bound: u32, element: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        let (element, leaves) = self.identifier(element)?;
        Ok((Type::Sequence { element: Box::new(element), bound: of_bound(bound) }, leaves + 1))
    }

    fn array(&mut self, bounds: &[u32], element: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        let inner = bounds.len().saturating_sub(1);
        let beside = std::mem::take(&mut self.levels);
        self.depth += inner;
        let (element, leaves) = self.identifier(element)?;
        self.depth -= inner;
        self.levels = beside.max(self.levels + inner);
        let count = bounds.iter().fold(1_usize, |count, bound| count.saturating_mul(*bound as usize));
        if count == 0 {
            return refused("an array without elements");
        }
        let count = if element.is_primitive() || element.is_primitive_array() { count / 32 + 1 } else { count };
        let array = |element, bound: &u32| Type::Array { element: Box::new(element), count: *bound as usize };
        Ok((bounds.iter().rev().fold(element, array), leaves.saturating_mul(count).saturating_add(inner)))
    }

    fn map(
        &mut self,
        bound: u32,
        key: &TypeIdentifier,
        element: &TypeIdentifier,
    ) -> Result<(Type, usize), LibraryError> {
        let ((key, of_key), (element, of_element)) = (self.identifier(key)?, self.identifier(element)?);
        let (key, element) = (Box::new(key), Box::new(element));
        Ok((Type::Map { key, element, bound: of_bound(bound) }, of_key + of_element + 1))
    }

    /// The type of an object, which has `own_name` if it tells none.
    fn object(&mut self, object: &TypeObject, own_name: String) -> Result<(Type, usize), LibraryError> {
        let name = object.header.0.clone().unwrap_or(own_name);
        let extensibility = extensibility(object.flags);
        let is_nested = object.flags & IS_NESTED != 0;
        let has_hashed_ids = object.flags & IS_AUTOID_HASH != 0;
        Ok(match &object.body {
            ObjectBody::Alias { aliased } => {
                let (aliased, leaves) = self.identifier(aliased)?;
                (Type::Alias(Arc::new(Alias { name, aliased })), leaves)
            }
            ObjectBody::Structure { base, members } => {
                let (base, mut leaves) = self.base(base)?;
                let mut all = base.as_ref().map_or_else(Vec::new, |base| base.members.clone());
                for member in members {
                    let (member_type, more) = self.identifier(&member.member_type)?;
                    leaves = leaves.saturating_add(more).saturating_add(leaves_of_remarks(&member.name));
                    // Before the next one: each may be as large as a type may be.
                    check_leaves(leaves)?;
                    all.push(of_member(member, member_type));
                }
                let structure = Structure { name, extensibility, base, members: all, is_nested, has_hashed_ids };
                (Type::Structure(Arc::new(structure)), leaves.max(1))
            }
            ObjectBody::Union { discriminator_flags, discriminator, cases } => {
                let (discriminator, _) = self.identifier(discriminator)?;
                check_discriminator(&discriminator)?;
                let (mut leaves, mut all) = (1_usize, Vec::new());
                for case in cases {
                    let (case_type, more) = self.identifier(&case.member_type)?;
                    leaves = leaves.saturating_add(more).saturating_add(leaves_of_remarks(&case.name));
                    check_leaves(leaves)?;
                    all.push(of_case(case, case_type));
                }
                let is_keyed = discriminator_flags & IS_KEY != 0;
                let union =
                    Union { name, extensibility, discriminator, is_keyed, cases: all, is_nested, has_hashed_ids };
                (Type::Union(Arc::new(union)), leaves)
            }
            ObjectBody::Enumeration { bit_bound, literals } => {
                (enumeration(name, told_extensibility(object.flags), *bit_bound, literals)?, 1)
            }
            ObjectBody::Bitmask { bit_bound, flags } => {
                if !(1..=64).contains(bit_bound) || flags.iter().any(|(position, ..)| position >= bit_bound) {
                    return refused("a bit mask of more bits than it has");
                }
                let flags = flags.iter().map(|(position, _, name)| (text(name), *position)).collect();
                (Type::Bitmask(Arc::new(Bitmask { name, bit_bound: *bit_bound, flags, extensibility })), 1)
            }
            ObjectBody::Bitset { fields } => (bitset(name, fields)?, 1),
            ObjectBody::Sequence { bound, element } => self.sequence(*bound, &element.1)?,
            ObjectBody::Array { bounds, element } => self.array(bounds, &element.1)?,
            ObjectBody::Map { bound, key, element } => self.map(*bound, &key.1, &element.1)?,
        })
    }

    fn base(&mut self, base: &TypeIdentifier) -> Result<(Option<Arc<Structure>>, usize), LibraryError> {
        if *base == TypeIdentifier::None {
            return Ok((None, 0));
        }
        let (base, leaves) = self.identifier(base)?;
        if let Some(structure) = base.held_structure() {
            // What is taken out of a component is a copy with all of its bases.
            let copied = if matches!(base, Type::Structure(_)) { leaves } else { leaves.max(self.in_components) };
            self.inherited = self.inherited.saturating_add(copied);
            check_leaves(self.inherited)?;
            return Ok((Some(structure), leaves));
        }
        match base.resolved() {
            // Its members are still to come: `tie` puts them in by this name.
            Type::Recursive(part) => Ok((Some(Arc::new(declared(part.name()))), leaves)),
            _ => refused("the base of a structure is none"),
        }
    }
}

fn check_leaves(leaves: usize) -> Result<(), LibraryError> {
    if leaves > LEAVES_MAX { refused("a type of too many members and elements") } else { Ok(()) }
}

/// The leaves that the definitions of a component have from bases among them, by their keys.
fn inherited_within(definitions: &[(String, Type)], leaves: &BTreeMap<String, usize>) -> usize {
    let bases: BTreeMap<&str, &str> = definitions
        .iter()
        .filter_map(|(key, definition)| match definition {
            Type::Structure(structure) => Some((key.as_str(), structure.base.as_ref()?.name.as_str())),
            _ => None,
        })
        .collect();
    let of_one = |key: &str| {
        let chain = std::iter::successors(bases.get(key).copied(), |base| bases.get(base).copied());
        // A circle of bases is refused where the definitions are tied.
        let inherited = chain.take(definitions.len()).filter_map(|base| leaves.get(base)).copied();
        inherited.fold(0, usize::saturating_add)
    };
    bases.keys().copied().map(of_one).fold(0, usize::saturating_add)
}

fn leaves_of_remarks(name: &MemberName) -> usize {
    let MemberName::Text { remarks: Some(remarks), .. } = name else { return 0 };
    [&remarks.unit, &remarks.hash_id].into_iter().flatten().map(String::len).sum::<usize>() / REMARKS_OF_LEAF
}

/// The name of a type of a component that has none of its own; in the order of the indices.
fn key_of(whole: &TypeIdentifier, index: i32) -> String {
    match whole {
        TypeIdentifier::Component { hash, .. } => format!("#{hash}.{index:04}"),
        _ => String::new(),
    }
}

fn declared(name: &str) -> Structure {
    let (name, extensibility, members) = (name.to_owned(), Extensibility::Final, Vec::new());
    Structure { name, extensibility, base: None, members, is_nested: false, has_hashed_ids: false }
}

fn of_member(member: &ObjectMember, member_type: Type) -> StructureMember {
    let has = |flag: u16| member.flags & flag != 0;
    StructureMember {
        is_key: has(IS_KEY),
        is_optional: has(IS_OPTIONAL) && !has(IS_KEY),
        must_understand: has(IS_MUST_UNDERSTAND),
        is_external: has(IS_EXTERNAL),
        try_construct: try_construct(member.flags),
        annotations: annotations(&member.name),
        ..StructureMember::new(&text(&member.name), member.id, member_type)
    }
}

fn of_case(case: &ObjectMember, case_type: Type) -> UnionCase {
    UnionCase {
        name: text(&case.name),
        id: case.id,
        labels: case.labels.clone(),
        is_default: case.flags & IS_DEFAULT != 0,
        case_type: Some(case_type),
        is_external: case.flags & IS_EXTERNAL != 0,
        try_construct: try_construct(case.flags),
        annotations: annotations(&case.name),
    }
}

fn check_discriminator(discriminator: &Type) -> Result<(), LibraryError> {
    match discriminator.resolved() {
        Type::Enumeration(_) => Ok(()),
        Type::Primitive(Primitive::Float32 | Primitive::Float64 | Primitive::Float128) => {
            refused("the discriminator of a union is a real number")
        }
        Type::Primitive(_) => Ok(()),
        _ => refused("the discriminator of a union is no number"),
    }
}

fn enumeration(
    name: String,
    extensibility: Option<Extensibility>,
    bit_bound: u16,
    literals: &[(i32, u16, MemberName)],
) -> Result<Type, LibraryError> {
    if !(1..=32).contains(&bit_bound) || literals.is_empty() {
        return refused("an enumeration without literals, or with other than 1 to 32 bits");
    }
    let default = literals.iter().position(|(_, flags, _)| flags & IS_DEFAULT != 0).unwrap_or(0);
    let literals = literals.iter().map(|(value, _, name)| Literal { name: text(name), value: *value }).collect();
    Ok(Type::Enumeration(Arc::new(Enumeration { name, literals, default, bit_bound, extensibility })))
}

fn bitset(name: String, fields: &[(u16, u16, u8, u8, MemberName)]) -> Result<Type, LibraryError> {
    let mut made = Vec::new();
    let mut bits = 0;
    for (position, _, size, holder, name) in fields {
        let holder = primitive_of(*holder).filter(|holder| holder.is_integer() || *holder == Primitive::Boolean);
        let (Some(holder), Some(end)) = (holder, position.checked_add((*size).into())) else {
            return refused("a bit set whose fields are no whole numbers");
        };
        if end > 64 || *size == 0 || *position < bits {
            return refused("a bit set whose fields overlap, or end behind 64 bits");
        }
        bits = end;
        made.push(Bitfield { name: text(name), position: *position, bits: *size, holder });
    }
    match bits {
        0 => refused("a bit set without fields"),
        _ => Ok(Type::Bitset(Arc::new(Bitset { name, fields: made, bits }))),
    }
}

fn extensibility(flags: u16) -> Extensibility {
    match flags & (IS_FINAL | IS_MUTABLE) {
        IS_FINAL => Extensibility::Final,
        IS_MUTABLE => Extensibility::Mutable,
        _ => Extensibility::Appendable,
    }
}

/// That of an enumeration, if its sender tells it.
fn told_extensibility(flags: u16) -> Option<Extensibility> {
    (flags & (IS_FINAL | IS_APPENDABLE | IS_MUTABLE) != 0).then(|| extensibility(flags))
}

fn try_construct(flags: u16) -> TryConstruct {
    match flags & TRY_CONSTRUCT {
        0b10 => TryConstruct::UseDefault,
        0b11 => TryConstruct::Trim,
        _ => TryConstruct::Discard,
    }
}

fn text(name: &MemberName) -> String {
    match name {
        MemberName::Text { name, .. } => name.clone(),
        MemberName::Hash(hash) => format!("#{:08x}", u32::from_be_bytes(*hash)),
    }
}

fn annotations(name: &MemberName) -> Annotations {
    let MemberName::Text { remarks: Some(remarks), .. } = name else { return Annotations::default() };
    let number = |value: &Option<AnnotationValue>| value.as_ref().map(|value| value.text.clone());
    Annotations {
        unit: remarks.unit.clone(),
        min: number(&remarks.min),
        max: number(&remarks.max),
        hash_id: remarks.hash_id.clone(),
        default: None,
    }
}

fn of_bound(bound: u32) -> Option<usize> {
    (bound > 0).then_some(bound as usize)
}
