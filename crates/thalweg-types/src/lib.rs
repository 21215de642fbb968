//! Types that are known at run time only (DDS-XTypes 1.3): read from IDL, with values as documents of JSON and CBOR.
#![forbid(unsafe_code)]

pub mod codec;
pub mod document;
pub mod idl;
mod key;
mod known_types;
mod types;

pub use key::encode_key;
pub use known_types::{READINGS, Types};
pub use types::{Enumeration, Primitive, Structure, StructureMember, Type};

#[cfg(test)]
mod tests;
