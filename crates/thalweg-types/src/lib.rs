//! Types that are known at run time only (DDS-XTypes 1.3): read from IDL, with values as documents of JSON and CBOR.
#![forbid(unsafe_code)]

pub mod assign;
pub mod codec;
mod docs;
pub mod document;
pub mod idl;
mod known_types;
pub mod ros;
mod row;
pub mod rust;
pub mod type_object;

pub use docs::SourceDocs;
pub use known_types::{READINGS, Types};
pub use thalweg_cdr::description::{
    Alias, Annotations, Bitfield, Bitmask, Bitset, Component, Enumeration, Literal, Primitive, Recursive, Structure,
    StructureMember, TryConstruct, Type, Union, UnionCase,
};

#[cfg(test)]
mod tests;
