//! Type objects by hash, and the types that they make together.

mod resolve;

use std::borrow::Cow;
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
    /// Most bytes of all objects; default 32 MiB.
    pub bytes_max: usize,
}

impl Default for LibraryBounds {
    fn default() -> LibraryBounds {
        LibraryBounds { objects_max: 16_384, bytes_max: 32 << 20 }
    }
}

/// Type objects by hash, those of types that contain each other together.
#[derive(Clone, Debug, Default)]
pub struct TypeLibrary {
    objects: BTreeMap<TypeHash, Arc<[u8]>>,
    /// The objects of components in their order, by the identifiers of the wholes.
    components: BTreeMap<TypeIdentifier, Vec<Arc<[u8]>>>,
    count: usize,
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
            LibraryError::Full => f.write_str("the library of types is full"),
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

/// The object that a hash names. In answers of Fast DDS 3.1 the padding has what its memory held, so that only the same object with
/// zeros there has the hash.
fn named(hash: TypeHash, bytes: &[u8]) -> Result<Cow<'_, [u8]>, LibraryError> {
    if TypeObject::hash_of(bytes) == hash {
        return read_object(bytes).map(|_| Cow::Borrowed(bytes));
    }
    let written = read_object(bytes).ok().and_then(|object| object.to_bytes().ok());
    written.filter(|written| TypeObject::hash_of(written) == hash).map(Cow::Owned).ok_or(LibraryError::WrongHash)
}

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
        let (checked, object) = match named(hash, bytes) {
            Ok(object) => (Ok(()), object),
            Err(error) => (Err(error), Cow::Borrowed(bytes)),
        };
        self.admit(checked, 1, object.len())?;
        self.objects.insert(hash, object.as_ref().into());
        Ok(())
    }

    /// Takes in all objects of types that contain each other, in their order, under the identifier of any of them or of the whole.
    ///
    /// # Errors
    /// When one is no type object, they are not as many as the identifier says or have another hash, or there is no room.
    pub fn insert_component(&mut self, of: &TypeIdentifier, objects: &[Vec<u8>]) -> Result<(), LibraryError> {
        let whole = of.whole();
        if self.components.contains_key(&whole) {
            return Ok(());
        }
        let bytes = objects.iter().map(Vec::len).sum();
        self.admit(check_component(&whole, objects), objects.len(), bytes)?;
        self.components.insert(whole, objects.iter().map(|object| object.as_slice().into()).collect());
        Ok(())
    }

    /// Counts so many objects of so many bytes in, or as refused.
    fn admit(&mut self, checked: Result<(), LibraryError>, count: usize, bytes: usize) -> Result<(), LibraryError> {
        let has_room = self.count + count <= self.bounds.objects_max && self.bytes + bytes <= self.bounds.bytes_max;
        let outcome = checked.and(if has_room { Ok(()) } else { Err(LibraryError::Full) });
        match outcome {
            Ok(()) => {
                self.count += count;
                self.bytes += bytes;
            }
            Err(_) => self.refused += 1,
        }
        outcome
    }

    /// The bytes of an object.
    pub fn get(&self, hash: &TypeHash) -> Option<&Arc<[u8]>> {
        self.objects.get(hash)
    }

    /// The objects of a component in their order, by the identifier of any of its types or of the whole.
    pub fn component(&self, of: &TypeIdentifier) -> Option<&[Arc<[u8]>]> {
        self.components.get(&of.whole()).map(Vec::as_slice)
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

    /// What the objects behind an identifier refer to; `None` where they are not here.
    fn referred(&self, of: &TypeIdentifier) -> Option<Vec<TypeIdentifier>> {
        let of_object = |bytes: &Arc<[u8]>| TypeObject::from_bytes(bytes).ok().map(|object| object.dependencies());
        match of {
            TypeIdentifier::Hash(_, hash) => of_object(self.get(hash)?),
            _ => {
                let parts: Option<Vec<Vec<TypeIdentifier>>> = self.component(of)?.iter().map(of_object).collect();
                parts.map(|parts| parts.concat())
            }
        }
    }

    /// The objects that a type refers to, directly or not, and that are not here.
    pub fn missing(&self, of: &TypeIdentifier) -> Vec<TypeIdentifier> {
        let (mut open, mut seen, mut missing) = (of.objects(), BTreeSet::new(), Vec::new());
        while let Some(next) = open.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            match self.referred(&next) {
                Some(referred) => open.extend(referred),
                None => missing.push(next),
            }
        }
        missing
    }

    /// The objects that a type refers to, directly or not, without its own: those that are here.
    pub fn dependencies(&self, of: &TypeIdentifier) -> Vec<TypeIdentifier> {
        let own = of.objects();
        let (mut open, mut seen) = (own.clone(), BTreeSet::new());
        while let Some(next) = open.pop() {
            let Some(referred) = self.referred(&next) else { continue };
            if seen.insert(next) {
                open.extend(referred);
            }
        }
        seen.into_iter().filter(|found| !own.contains(found)).collect()
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
        Resolving::new(self).resolve(of)
    }
}

fn check_component(whole: &TypeIdentifier, objects: &[Vec<u8>]) -> Result<(), LibraryError> {
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
    for object in objects {
        if read_object(object)?.equivalence != equivalence {
            return refused("a minimal object among complete ones, or the other way round");
        }
    }
    Ok(())
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
