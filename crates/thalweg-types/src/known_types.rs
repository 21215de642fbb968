//! The types that the bridge knows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use thalweg_cdr::description::{Structure, Type};

use crate::idl::{self, Definitions, IdlError, Reading};

/// Types of topics by name. A topic whose type is not among them cannot be understood.
#[derive(Clone, Debug)]
pub struct Types {
    types: BTreeMap<String, Type>,
    /// The structures among them; those that contain themselves hold all that they need.
    structures: BTreeMap<String, Arc<Structure>>,
}

impl Default for Types {
    /// Strings as ROS 2 has them, octets, `ShapeType`, and [those of readings](READINGS).
    fn default() -> Self {
        let mut types = Types { types: BTreeMap::new(), structures: BTreeMap::new() };
        types.add(&idl::parse(BUILT_IN).expect("the built-in types are IDL"));
        types
    }
}

impl Types {
    /// Adds the types of an IDL text; those of the same name are replaced.
    ///
    /// # Errors
    /// The first thing in the text that is not understood.
    pub fn add_idl(&mut self, text: &str) -> Result<(), IdlError> {
        self.add(&idl::parse(text)?);
        Ok(())
    }

    /// As [`add_idl`](Self::add_idl), from a file and those that it includes.
    ///
    /// # Errors
    /// As [`add_idl`](Self::add_idl), and when a file cannot be read.
    pub fn add_idl_file(&mut self, path: &Path, reading: &Reading) -> Result<(), IdlError> {
        self.add(&idl::parse_file(path, reading)?);
        Ok(())
    }

    /// Adds types; those of the same name are replaced.
    pub fn add(&mut self, definitions: &Definitions) {
        for found in definitions.iter() {
            let Some(name) = found.name() else { continue };
            match found.held_structure() {
                Some(structure) => drop(self.structures.insert(name.to_owned(), structure)),
                None => drop(self.structures.remove(name)),
            }
            self.types.insert(name.to_owned(), found.clone());
        }
    }

    /// The type of this name, modules included.
    pub fn find_type(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// The structure of this name, modules included.
    pub fn find(&self, name: &str) -> Option<&Arc<Structure>> {
        self.structures.get(name)
    }

    /// The names of all of them, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
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
  @final struct Bytes { sequence<uint8> data; };
  module things {
    @appendable struct Boolean { boolean value; string unit; };
    @appendable struct Integer { int64 value; string unit; };
    @appendable struct Real { double value; string unit; };
    @appendable struct Text { string value; string unit; };
    @appendable struct Octets { sequence<octet> value; string unit; };
  };
};
";
