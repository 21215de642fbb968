//! Type objects by hash, and the types that they make together.

mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use thalweg_cdr::description::{COMPONENT_TYPES_MAX, Type};

use super::identifier::{Equivalence, TypeHash, TypeIdentifier};
use super::object::TypeObject;
use resolve::Resolving;

/// Bounds on what others can make a library hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryBounds {
    /// Most objects; default 16,384, the types of some thousand topics.
    pub objects_max: usize,
    /// Most bytes of all objects, and of what is kept to find those that they refer to; default 32 MiB.
    pub bytes_max: usize,
}

impl Default for LibraryBounds {
    fn default() -> LibraryBounds {
        LibraryBounds { objects_max: 16_384, bytes_max: 32 << 20 }
    }
}

/// Type objects by hash, those of types that contain each other together.
///
/// Objects of others are bounded: where there is no room for a further one, all of them are forgotten at once, since nobody tells which are
/// still of use. Whoever needs one takes it in again. A type may need at most half of the room.
#[derive(Clone, Debug, Default)]
pub struct TypeLibrary {
    objects: BTreeMap<TypeHash, Kept>,
    /// By the identifiers of the wholes.
    components: BTreeMap<TypeIdentifier, Kept>,
    count: usize,
    of_others: Size,
    bounds: LibraryBounds,
    refused: u64,
}

/// An object, or those of a component in their order.
#[derive(Clone, Debug)]
struct Kept {
    objects: Vec<Arc<[u8]>>,
    /// What they refer to beside themselves, each once; a component as a whole.
    refers_to: Box<[TypeIdentifier]>,
    is_own: bool,
}

impl Kept {
    /// Bytes of the objects.
    fn bytes(&self) -> usize {
        self.objects.iter().map(|object| object.len()).sum()
    }

    /// What counts of it where it is another's.
    fn size(&self) -> Size {
        let bytes = self.bytes() + size_of_val::<[TypeIdentifier]>(&self.refers_to);
        Size { objects: self.objects.len(), bytes }
    }
}

/// Objects, and bytes of memory for them.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    objects: usize,
    bytes: usize,
}

impl Size {
    fn with(self, other: Size) -> Size {
        Size { objects: self.objects + other.objects, bytes: self.bytes + other.bytes }
    }

    fn is_within(self, bounds: &LibraryBounds) -> bool {
        self.objects <= bounds.objects_max && self.bytes <= bounds.bytes_max
    }

    /// What counted as another's is our own, too.
    fn release(&mut self, kept: &mut Kept) {
        if !std::mem::replace(&mut kept.is_own, true) {
            let size = kept.size();
            self.objects -= size.objects;
            self.bytes -= size.bytes;
        }
    }
}

/// What is needed to make a type.
#[derive(Debug, Default)]
struct Needed {
    /// The objects that are not here.
    missing: Vec<TypeIdentifier>,
    /// What counts of those of others, missing ones included.
    of_others: Size,
    /// Bytes of all that are here.
    bytes: usize,
    /// What was looked at to find them.
    steps: usize,
}

/// So many bytes of objects count as a step: those of a short member.
const BYTES_OF_STEP: usize = 16;

/// What types refer to, directly or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies {
    /// The objects that are here. Those of the types themselves are among them where others refer to them.
    pub objects: BTreeSet<TypeIdentifier>,
    /// Bytes of all objects that were looked at, those of the types included.
    pub bytes: usize,
}

/// Why an object is not taken in, or a type cannot be made of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryError {
    /// The bytes are no type object.
    Malformed(String),
    /// The bytes are those of another object than the one that was named.
    WrongHash,
    /// It takes more room than there is for all.
    Full,
    /// These objects are missing; those of a component all at once.
    Missing(Vec<TypeIdentifier>),
    /// The type is beyond what is supported; a sentence.
    Refused(String),
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LibraryError::Malformed(why) => write!(f, "no type object: {why}"),
            LibraryError::WrongHash => f.write_str("the type object has another hash than the one that names it"),
            LibraryError::Full => f.write_str("the type object takes more room than there is for all"),
            LibraryError::Missing(missing) => write!(f, "{} type objects are missing", missing.len()),
            LibraryError::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for LibraryError {}

fn refused<T>(why: impl Into<String>) -> Result<T, LibraryError> {
    Err(LibraryError::Refused(why.into()))
}

fn read_object(bytes: &[u8]) -> Result<TypeObject, LibraryError> {
    TypeObject::from_bytes(bytes).map_err(|error| LibraryError::Malformed(error.to_string()))
}

/// The object that a hash names, and what it refers to. In answers of Fast DDS 3.1 the padding has what its memory held, so that only the
/// same object with zeros there has the hash.
fn named(hash: TypeHash, bytes: &[u8]) -> Result<(Arc<[u8]>, Vec<TypeIdentifier>), LibraryError> {
    if TypeObject::hash_of(bytes) == hash {
        return Ok((bytes.into(), read_object(bytes)?.dependencies()));
    }
    let object = read_object(bytes).map_err(|_| LibraryError::WrongHash)?;
    let written = object.to_bytes().ok().filter(|written| TypeObject::hash_of(written) == hash);
    Ok((written.ok_or(LibraryError::WrongHash)?.into(), object.dependencies()))
}

impl TypeLibrary {
    /// An empty library with these bounds.
    pub fn new(bounds: LibraryBounds) -> TypeLibrary {
        TypeLibrary { bounds, ..TypeLibrary::default() }
    }

    /// Takes in an object of another participant under the hash that names it.
    ///
    /// # Errors
    /// When the bytes are no type object or have another hash, or exceed the bounds alone.
    pub fn insert(&mut self, hash: TypeHash, bytes: &[u8]) -> Result<(), LibraryError> {
        self.take_object(hash, bytes, false)
    }

    /// Takes in an object of this participant: it takes no room of others', and stays.
    ///
    /// # Errors
    /// When the bytes are no type object or have another hash.
    pub fn insert_own(&mut self, hash: TypeHash, bytes: &[u8]) -> Result<(), LibraryError> {
        self.take_object(hash, bytes, true)
    }

    /// Takes in all objects of another participant's types that contain each other, in their order, under the identifier of any of them
    /// or of the whole.
    ///
    /// # Errors
    /// When one is no type object, they are not as many as the identifier says or have another hash, or exceed the bounds alone.
    pub fn insert_component(&mut self, of: &TypeIdentifier, objects: &[Vec<u8>]) -> Result<(), LibraryError> {
        self.take_component(of, objects, false)
    }

    /// Takes in all objects of this participant's types that contain each other: they take no room of others', and stay.
    ///
    /// # Errors
    /// When one is no type object, they are not as many as the identifier says or have another hash.
    pub fn insert_own_component(&mut self, of: &TypeIdentifier, objects: &[Vec<u8>]) -> Result<(), LibraryError> {
        self.take_component(of, objects, true)
    }

    fn take_object(&mut self, hash: TypeHash, bytes: &[u8], is_own: bool) -> Result<(), LibraryError> {
        if let Some(kept) = self.objects.get_mut(&hash) {
            if is_own {
                self.of_others.release(kept);
            }
            return Ok(());
        }
        let checked = named(hash, bytes).map(|(object, refers_to)| {
            let refers_to: BTreeSet<TypeIdentifier> = refers_to.into_iter().collect();
            Kept { objects: vec![object], refers_to: refers_to.into_iter().collect(), is_own }
        });
        let kept = self.admit(checked)?;
        self.objects.insert(hash, kept);
        Ok(())
    }

    fn take_component(&mut self, of: &TypeIdentifier, objects: &[Vec<u8>], is_own: bool) -> Result<(), LibraryError> {
        let whole = of.whole();
        if let Some(kept) = self.components.get_mut(&whole) {
            if is_own {
                self.of_others.release(kept);
            }
            return Ok(());
        }
        let checked = check_component(&whole, objects).map(|refers_to| {
            let refers_to: BTreeSet<TypeIdentifier> = refers_to.into_iter().filter(|other| *other != whole).collect();
            let objects: Vec<Arc<[u8]>> = objects.iter().map(|object| object.as_slice().into()).collect();
            Kept { objects, refers_to: refers_to.into_iter().collect(), is_own }
        });
        let kept = self.admit(checked)?;
        self.components.insert(whole, kept);
        Ok(())
    }

    /// Counts objects in, and makes room for those of others; or counts them as refused.
    fn admit(&mut self, checked: Result<Kept, LibraryError>) -> Result<Kept, LibraryError> {
        let fits = |kept: &Kept| kept.is_own || kept.size().is_within(&self.bounds);
        let admitted = checked.and_then(|kept| if fits(&kept) { Ok(kept) } else { Err(LibraryError::Full) });
        let Ok(kept) = &admitted else {
            self.refused += 1;
            return admitted;
        };
        if !kept.is_own {
            if !self.of_others.with(kept.size()).is_within(&self.bounds) {
                self.forget_others();
            }
            self.of_others = self.of_others.with(kept.size());
        }
        self.count += kept.objects.len();
        admitted
    }

    fn forget_others(&mut self) {
        self.objects.retain(|_, kept| kept.is_own);
        self.components.retain(|_, kept| kept.is_own);
        self.count -= self.of_others.objects;
        self.of_others = Size::default();
    }

    /// The bytes of an object.
    pub fn get(&self, hash: &TypeHash) -> Option<&Arc<[u8]>> {
        self.objects.get(hash)?.objects.first()
    }

    /// The objects of a component in their order, by the identifier of any of its types or of the whole.
    pub fn component(&self, of: &TypeIdentifier) -> Option<&[Arc<[u8]>]> {
        self.components.get(&of.whole()).map(|kept| kept.objects.as_slice())
    }

    /// Whether all objects that an identifier names are here, not those that they refer to.
    pub fn contains(&self, of: &TypeIdentifier) -> bool {
        self.object_bytes(of).is_some()
    }

    /// The bytes of the objects that an identifier names; `None` where they are not here.
    pub fn object_bytes(&self, of: &TypeIdentifier) -> Option<usize> {
        match of {
            TypeIdentifier::Hash(_, hash) => self.get(hash).map(|bytes| bytes.len()),
            TypeIdentifier::Component { index: 0, .. } => Some(self.component(of)?.iter().map(|one| one.len()).sum()),
            TypeIdentifier::Component { index, .. } => {
                let place = usize::try_from(*index).ok()?.checked_sub(1)?;
                self.component(of)?.get(place).map(|bytes| bytes.len())
            }
            _ => None,
        }
    }

    /// Objects that were not taken in; those of a component count once.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The objects that the identifier of an object or of a component names; `None` where they are not here.
    fn kept(&self, of: &TypeIdentifier) -> Option<&Kept> {
        match of {
            TypeIdentifier::Hash(_, hash) => self.objects.get(hash),
            _ => self.components.get(&of.whole()),
        }
    }

    /// Visits the objects that these identifiers name and those that they refer to, directly or not, each once, until `visit` tells that
    /// it is enough by false.
    fn walk<'a>(
        &'a self,
        from: &'a [TypeIdentifier],
        mut visit: impl FnMut(&'a TypeIdentifier, Option<&'a Kept>) -> bool,
    ) {
        let (mut open, mut seen): (Vec<_>, BTreeSet<_>) = (from.iter().collect(), BTreeSet::new());
        while let Some(next) = open.pop() {
            if !seen.insert(next) {
                continue;
            }
            let kept = self.kept(next);
            if !visit(next, kept) {
                return;
            }
            if let Some(kept) = kept {
                open.extend(kept.refers_to.iter());
            }
        }
    }

    /// The objects that a type refers to, directly or not, and that are not here.
    pub fn missing(&self, of: &TypeIdentifier) -> Vec<TypeIdentifier> {
        self.needed(of).missing
    }

    /// What a type needs.
    fn needed(&self, of: &TypeIdentifier) -> Needed {
        let (own, mut needed) = (of.objects(), Needed::default());
        self.walk(&own, |next, kept| {
            needed.steps += 1;
            match kept {
                Some(kept) => {
                    let size = kept.size();
                    needed.steps += kept.refers_to.len();
                    needed.bytes += size.bytes;
                    if !kept.is_own {
                        needed.of_others = needed.of_others.with(size);
                    }
                }
                None => needed.missing.push(next.clone()),
            }
            true
        });
        needed.of_others.objects += needed.missing.len();
        needed
    }

    /// Whether all objects of a type are here and not too many, with the steps that it took to look: the objects, and how often they
    /// refer to others.
    ///
    /// # Errors
    /// As [`TypeLibrary::resolve`], but for what only its definition shows.
    pub fn prepare(&self, of: &TypeIdentifier) -> (Result<(), LibraryError>, usize) {
        let Needed { missing, of_others, steps, .. } = self.needed(of);
        (self.check_needed(missing, of_others), steps)
    }

    fn check_needed(&self, missing: Vec<TypeIdentifier>, of_others: Size) -> Result<(), LibraryError> {
        // Of a type that needs more, the first objects could be forgotten before the last ones come, again and again.
        if !of_others.with(of_others).is_within(&self.bounds) {
            return refused("a type whose objects take more than half of the room for those of others");
        }
        if missing.is_empty() { Ok(()) } else { Err(LibraryError::Missing(missing)) }
    }

    /// What types refer to; `None` where objects of more than so many bytes would have to be looked at for it.
    pub fn dependencies<'a>(
        &self,
        of: impl IntoIterator<Item = &'a TypeIdentifier>,
        bytes_max: usize,
    ) -> Option<Dependencies> {
        let own: Vec<TypeIdentifier> = of.into_iter().flat_map(TypeIdentifier::objects).collect();
        let (mut referred, mut bytes): (BTreeSet<&TypeIdentifier>, usize) = (BTreeSet::new(), 0);
        self.walk(&own, |_, kept| {
            let Some(kept) = kept else { return true };
            bytes += kept.bytes();
            referred.extend(kept.refers_to.iter());
            bytes <= bytes_max
        });
        let objects = referred.into_iter().filter(|object| self.kept(object).is_some()).cloned();
        (bytes <= bytes_max).then(|| Dependencies { objects: objects.collect(), bytes })
    }

    /// The type of an identifier. Of a minimal object, the names of members are `#` and eight digits: their hash.
    ///
    /// # Errors
    /// When objects are missing, or the type is beyond bounds or what is supported.
    pub fn resolve(&self, of: &TypeIdentifier) -> Result<Type, LibraryError> {
        self.resolve_counted(of).0
    }

    /// As [`resolve`](Self::resolve), with the steps that it took, about: objects, members, and parts of defaults that were looked at.
    pub fn resolve_counted(&self, of: &TypeIdentifier) -> (Result<Type, LibraryError>, usize) {
        let Needed { missing, of_others, bytes, steps } = self.needed(of);
        if let Err(error) = self.check_needed(missing, of_others) {
            return (Err(error), steps);
        }
        let (resolved, parts) = Resolving::new(self).resolve(of);
        (resolved, steps + bytes / BYTES_OF_STEP + parts)
    }
}

/// What the objects of a component refer to, where they are those that it names.
fn check_component(whole: &TypeIdentifier, objects: &[Vec<u8>]) -> Result<Vec<TypeIdentifier>, LibraryError> {
    let TypeIdentifier::Component { equivalence, hash, length, .. } = *whole else {
        return refused("an identifier of one type, where there has to be one of several that contain each other");
    };
    let is_length = usize::try_from(length).is_ok_and(|length| length == objects.len());
    if !is_length || !(1..=COMPONENT_TYPES_MAX).contains(&objects.len()) {
        return refused(format!(
            "{} objects of types that contain each other, where {length} are named",
            objects.len()
        ));
    }
    let without_hash: Vec<Vec<u8>> = objects.iter().map(|object| zeroed(object, equivalence, hash, length)).collect();
    let made = TypeObject::hash_of_component(&without_hash);
    if made.map_err(|error| LibraryError::Malformed(error.to_string()))? != hash {
        return Err(LibraryError::WrongHash);
    }
    let mut refers_to = Vec::new();
    for object in objects {
        let object = read_object(object)?;
        if object.equivalence != equivalence {
            return refused("a minimal object among complete ones, or the other way round");
        }
        refers_to.extend(object.dependencies());
    }
    Ok(refers_to)
}

/// An object in which the hash of its own component is zero, as it is where that hash is made.
///
/// This is done on the bytes, since what is not understood, such as annotations of a user, counts too.
fn zeroed(object: &[u8], equivalence: Equivalence, hash: TypeHash, length: i32) -> Vec<u8> {
    let mut zeroed = object.to_vec();
    // The kind, the hash, a byte of padding and the number of types, as an identifier has them.
    let is_own = |bytes: &[u8]| {
        bytes[0] == equivalence.octet() && bytes[1..15] == hash.0 && bytes[16..20] == length.to_le_bytes()
    };
    for at in 0..object.len().saturating_sub(19) {
        if is_own(&object[at..at + 20]) {
            zeroed[at + 1..at + 15].fill(0);
        }
    }
    zeroed
}
