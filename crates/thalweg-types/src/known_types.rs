//! The types that the bridge knows.

use std::sync::Arc;

use super::idl::{self, IdlError, Structures};
use crate::types::Structure;

/// Types of topics by name. A topic whose type is not among them cannot be understood.
#[derive(Clone, Debug)]
pub struct Types {
    structures: Structures,
}

impl Default for Types {
    /// The types that `thalweg pub` and `thalweg sub` know, and [those of readings](READINGS).
    fn default() -> Self {
        let structures = idl::parse(BUILT_IN).expect("the built-in types are IDL");
        Types { structures }
    }
}

impl Types {
    /// Adds the structures of an IDL text; those of the same name are replaced.
    ///
    /// # Errors
    /// The first thing in the text that is not understood.
    pub fn add_idl(&mut self, text: &str) -> Result<(), IdlError> {
        self.structures.extend(idl::parse(text)?);
        Ok(())
    }

    /// The structure of this name, modules included.
    pub fn find(&self, name: &str) -> Option<&Arc<Structure>> {
        self.structures.get(name)
    }

    /// The names of all of them, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.structures.keys().map(String::as_str)
    }
}

/// The module of the types that resources of this thing have as topics: a value and the symbol of its unit.
pub const READINGS: &str = "thalweg::things";

const BUILT_IN: &str = "
module std_msgs { module msg { module dds_ {
  @final struct String_ { string data; };
}; }; };
@appendable struct ShapeType { @key string<128> color; long x; long y; long shapesize; };
module thalweg {
  @final struct Bytes { sequence<octet> data; };
  module things {
    @appendable struct Boolean { boolean value; string unit; };
    @appendable struct Integer { int64 value; string unit; };
    @appendable struct Real { double value; string unit; };
    @appendable struct Text { string value; string unit; };
    @appendable struct Octets { sequence<octet> value; string unit; };
  };
};
";
