//! Type identifiers and type objects: types as others are told of them (DDS-XTypes 1.3 §7.3.4, Annex B).
//!
//! A type that has a name is told as a type object, and named by a hash of that; other types name themselves. Each type has two
//! objects: the minimal one is what decides about assignability, with hashes for names, the complete one says all.
//! Types that contain each other are a component: their objects are named by one hash and go together.

mod convert;
mod identifier;
mod information;
mod library;
pub mod lookup;
mod object;
mod values;

pub use convert::{DescribedComponent, Describing};
pub use identifier::{CollectionHeader, Equivalence, TypeHash, TypeIdentifier};
pub use information::{Described, TypeInformation, TypeWithDependencies, TypeWithSize, describe};
pub use library::{Dependencies, LibraryBounds, LibraryError, TypeLibrary};
pub use object::{MemberName, ObjectBody, ObjectMember, Remarks, TypeHeader, TypeObject, name_hash};

#[cfg(test)]
mod tests;
