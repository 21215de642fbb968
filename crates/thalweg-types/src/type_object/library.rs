//! Type objects by hash, and the types that they make together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{
    Alias, Annotations, Bitfield, Bitmask, Bitset, Enumeration, Literal, Primitive, Structure, StructureMember,
    TryConstruct, Type, Union, UnionCase,
};

use super::convert::{
    IS_AUTOID_HASH, IS_DEFAULT, IS_EXTERNAL, IS_FINAL, IS_KEY, IS_MUST_UNDERSTAND, IS_MUTABLE, IS_NESTED, IS_OPTIONAL,
    TRY_CONSTRUCT,
};
use super::identifier::{Equivalence, TypeHash, TypeIdentifier, primitive_of};
use super::object::{MemberName, ObjectBody, ObjectMember, TypeObject};

/// Bounds on what others can make a library hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryBounds {
    /// Most objects; default 16,384, the types of some thousand topics.
    pub objects_max: usize,
    /// Most bytes of all objects; default 32 MiB.
    pub bytes_max: usize,
}

impl Default for LibraryBounds {
    fn default() -> LibraryBounds {
        LibraryBounds { objects_max: 16_384, bytes_max: 32 << 20 }
    }
}

/// Type objects by hash.
#[derive(Clone, Debug, Default)]
pub struct TypeLibrary {
    objects: BTreeMap<TypeHash, Arc<[u8]>>,
    bytes: usize,
    bounds: LibraryBounds,
    refused: u64,
}

/// Why an object is not taken in, or a type cannot be made of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// The bytes are no type object.
    Malformed(String),
    /// The bytes are those of another object than the one that was named.
    WrongHash,
    /// There is no room.
    Full,
    /// These objects are missing.
    Missing(Vec<(Equivalence, TypeHash)>),
    /// The type is beyond what is supported; a sentence.
    Refused(String),
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LibraryError::Malformed(why) => write!(f, "no type object: {why}"),
            LibraryError::WrongHash => f.write_str("the type object has another hash than the one that names it"),
            LibraryError::Full => f.write_str("the library of types is full"),
            LibraryError::Missing(missing) => write!(f, "{} type objects are missing", missing.len()),
            LibraryError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LibraryError {}

impl TypeLibrary {
    /// An empty library with these bounds.
    pub fn new(bounds: LibraryBounds) -> TypeLibrary {
        TypeLibrary { bounds, ..TypeLibrary::default() }
    }

    /// Takes in an object under the hash that names it.
    ///
    /// # Errors
    /// When the bytes are no type object or have another hash, or there is no room.
    pub fn insert(&mut self, hash: TypeHash, bytes: &[u8]) -> Result<(), LibraryError> {
        if self.objects.contains_key(&hash) {
            return Ok(());
        }
        let checked = if TypeObject::hash_of(bytes) == hash {
            TypeObject::from_bytes(bytes).map(drop).map_err(|error| LibraryError::Malformed(error.to_string()))
        } else {
            Err(LibraryError::WrongHash)
        };
        let has_room =
            self.objects.len() < self.bounds.objects_max && self.bytes + bytes.len() <= self.bounds.bytes_max;
        let outcome = checked.and(if has_room { Ok(()) } else { Err(LibraryError::Full) });
        match outcome {
            Ok(()) => {
                self.bytes += bytes.len();
                self.objects.insert(hash, bytes.into());
            }
            Err(_) => self.refused += 1,
        }
        outcome
    }

    /// The bytes of an object.
    pub fn get(&self, hash: &TypeHash) -> Option<&Arc<[u8]>> {
        self.objects.get(hash)
    }

    /// Objects that were not taken in.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects that a type refers to, directly or not, and that are not here.
    pub fn missing(&self, of: &TypeIdentifier) -> Vec<(Equivalence, TypeHash)> {
        let (mut open, mut seen, mut missing) = (of.hashes(), std::collections::BTreeSet::new(), Vec::new());
        while let Some((equivalence, hash)) = open.pop() {
            if !seen.insert(hash) {
                continue;
            }
            match self.objects.get(&hash).map(|bytes| TypeObject::from_bytes(bytes)) {
                Some(Ok(object)) => open.extend(object.dependencies()),
                _ => missing.push((equivalence, hash)),
            }
        }
        missing
    }

    /// The objects that a type refers to, directly or not, without its own: those that are here.
    pub fn dependencies(&self, of: &TypeIdentifier) -> Vec<(Equivalence, TypeHash)> {
        let own = of.hashes();
        let (mut open, mut found) = (own.clone(), Vec::new());
        while let Some((equivalence, hash)) = open.pop() {
            let Some(Ok(object)) = self.objects.get(&hash).map(|bytes| TypeObject::from_bytes(bytes)) else { continue };
            if !own.contains(&(equivalence, hash)) {
                found.push((equivalence, hash));
            }
            let next = object.dependencies();
            open.extend(next.into_iter().filter(|dependency| !found.contains(dependency)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The type of an identifier. Of a minimal object, the names of members are `#` and eight digits: their hash.
    ///
    /// # Errors
    /// When objects are missing, or the type is beyond bounds or what is supported.
    pub fn resolve(&self, of: &TypeIdentifier) -> Result<Type, LibraryError> {
        let missing = self.missing(of);
        if !missing.is_empty() {
            return Err(LibraryError::Missing(missing));
        }
        let mut resolving = Resolving { library: self, known: BTreeMap::new(), depth: 0 };
        resolving.identifier(of).map(|(found, _)| found)
    }
}

/// The types made so far. With each goes its number of leaves: hostile objects could otherwise refer to each other so that few bytes
/// make a tree beyond all memory.
struct Resolving<'a> {
    library: &'a TypeLibrary,
    known: BTreeMap<TypeHash, (Type, usize)>,
    depth: usize,
}

/// Most leaves of a type, 32 elements of an array of numbers counted as one; chosen by us: 8 MiB in arrays.
const LEAVES_MAX: usize = 1 << 18;
/// Deepest nesting of types; that of values in the codec.
const DEPTH_MAX: usize = thalweg_cdr::NESTING_MAX as usize;

fn refused<T>(why: impl Into<String>) -> Result<T, LibraryError> {
    Err(LibraryError::Refused(why.into()))
}

impl Resolving<'_> {
    fn identifier(&mut self, of: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return refused(format!("a type of more than {DEPTH_MAX} levels"));
        }
        let found = self.one(of)?;
        self.depth -= 1;
        if found.1 > LEAVES_MAX { refused("a type of too many members and elements") } else { Ok(found) }
    }

    fn one(&mut self, of: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        Ok(match of {
            TypeIdentifier::None => return refused("a member without a type"),
            TypeIdentifier::Component { .. } => return refused("types that contain themselves are not supported"),
            TypeIdentifier::Primitive(primitive) => (Type::Primitive(*primitive), 1),
            TypeIdentifier::String { is_wide: false, bound } => (Type::String { bound: of_bound(*bound) }, 1),
            TypeIdentifier::String { is_wide: true, bound } => (Type::WString { bound: of_bound(*bound) }, 1),
            TypeIdentifier::Sequence { bound, element, .. } => self.sequence(*bound, element)?,
            TypeIdentifier::Array { bounds, element, .. } => self.array(bounds, element)?,
            TypeIdentifier::Map { bound, element, key, .. } => self.map(*bound, key, element)?,
            TypeIdentifier::Hash(_, hash) => {
                if let Some(known) = self.known.get(hash) {
                    return Ok(known.clone());
                }
                let bytes = self.library.objects.get(hash).ok_or(LibraryError::Missing(Vec::new()))?;
                let object =
                    TypeObject::from_bytes(bytes).map_err(|error| LibraryError::Malformed(error.to_string()))?;
                let found = self.object(&object, hash)?;
                self.known.insert(*hash, found.clone());
                found
            }
        })
    }

    fn sequence(&mut self, bound: u32, element: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        let (element, leaves) = self.identifier(element)?;
        Ok((Type::Sequence { element: Box::new(element), bound: of_bound(bound) }, leaves + 1))
    }

    fn array(&mut self, bounds: &[u32], element: &TypeIdentifier) -> Result<(Type, usize), LibraryError> {
        let (element, leaves) = self.identifier(element)?;
        let count = bounds.iter().fold(1_usize, |count, bound| count.saturating_mul(*bound as usize));
        if count == 0 {
            return refused("an array without elements");
        }
        let count = if element.is_primitive() { count / 32 + 1 } else { count };
        let array = |element, bound: &u32| Type::Array { element: Box::new(element), count: *bound as usize };
        Ok((bounds.iter().rev().fold(element, array), leaves.saturating_mul(count)))
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

    fn object(&mut self, object: &TypeObject, hash: &TypeHash) -> Result<(Type, usize), LibraryError> {
        let name = object.header.0.clone().unwrap_or_else(|| format!("#{hash}"));
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
                    leaves = leaves.saturating_add(more);
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
                    leaves = leaves.saturating_add(more);
                    all.push(of_case(case, case_type));
                }
                let is_keyed = discriminator_flags & IS_KEY != 0;
                let union =
                    Union { name, extensibility, discriminator, is_keyed, cases: all, is_nested, has_hashed_ids };
                (Type::Union(Arc::new(union)), leaves)
            }
            ObjectBody::Enumeration { bit_bound, literals } => {
                (enumeration(name, extensibility, *bit_bound, literals)?, 1)
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
        match base.resolved() {
            Type::Structure(base) => Ok((Some(Arc::clone(base)), leaves)),
            _ => refused("the base of a structure is none"),
        }
    }
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
    extensibility: Extensibility,
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
    let number = |value: &Option<super::values::AnnotationValue>| value.as_ref().map(|value| value.text.clone());
    Annotations {
        unit: remarks.unit.clone(),
        min: number(&remarks.min),
        max: number(&remarks.max),
        hash_id: remarks.hash_id.clone(),
    }
}

fn of_bound(bound: u32) -> Option<usize> {
    (bound > 0).then_some(bound as usize)
}
