//! Types from IDL 4.2 (its building blocks for data types, and the annotations of DDS-XTypes 1.3), and types as IDL.
//!
//! Texts are preprocessed: `#if` and its kin, `#include`, and macros without parameters. Those with parameters are refused where they are
//! used.
//!
//! Interfaces, value types, exceptions, `any`, `fixed` and `native` are no data types of topics and are refused by name. Types may
//! contain themselves, alone or several each other, where a value of them can end.

mod aggregates;
mod annotations;
mod constants;
mod defaults;
mod definitions;
mod enumerated;
mod names;
mod preprocessor;
mod text;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Alias, Primitive, Recursive, StructureMember, TieError, Type, is_open, tie};

pub use constants::Constant;
pub use definitions::Definitions;
pub use text::to_idl;

use crate::docs::SourceDocs;
use annotations::Applied;
use constants::expression;
use names::{Named, Names};
use words::Words;

/// Why a text is no IDL, or none that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdlError {
    /// The file, where the text came from one.
    pub file: Option<String>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted in bytes from 1.
    pub column: usize,
    /// The fault.
    pub problem: String,
}

impl fmt::Display for IdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IdlError { file, line, column, problem } = self;
        match file {
            Some(file) => write!(f, "{file}:{line}:{column}: {problem}"),
            None => write!(f, "line {line}, column {column}: {problem}"),
        }
    }
}

impl std::error::Error for IdlError {}

/// How a text is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The extensibility of types that are not annotated: appendable by DDS-XTypes 1.3 §7.3.1.2.1.8, final for Cyclone DDS's compiler.
    pub extensibility: Extensibility,
    /// Folders in which included files are looked for, after that of the including file.
    pub folders: Vec<PathBuf>,
    /// Macros that are known from the start, each as `NAME`, which is 1, or `NAME=TEXT`.
    pub defines: Vec<String>,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { extensibility: Extensibility::Appendable, folders: Vec::new(), defines: Vec::new() }
    }
}

/// Reads all types of a text. Types must be defined or declared before they are used, and may use themselves. Includes are passed over.
///
/// # Errors
/// The first thing that is not understood, with its place.
pub fn parse(text: &str) -> Result<Definitions, IdlError> {
    parse_as(text, &Reading::default())
}

/// As [`parse`], otherwise than by default.
///
/// # Errors
/// As [`parse`].
pub fn parse_as(text: &str, reading: &Reading) -> Result<Definitions, IdlError> {
    Parser::new(Words::of(text, reading)?, reading).run()
}

/// Reads all types of a file and of those that it includes.
///
/// # Errors
/// As [`parse`], and when a file cannot be read.
pub fn parse_file(path: &Path, reading: &Reading) -> Result<Definitions, IdlError> {
    Parser::new(Words::of_file(path, reading)?, reading).run()
}

/// What a module's annotations say of the types in it.
#[derive(Clone, Copy, Default)]
struct ModuleDefaults {
    /// `@default_nested`.
    is_nested: bool,
    /// `@autoid(HASH)`.
    has_hashed_ids: bool,
}

/// Most dimensions of an array, as in type objects: each is a level of the type, so that very many would exhaust the stack. Chosen by us.
const DIMENSIONS_MAX: usize = 64;

struct Parser {
    words: Words,
    names: Names,
    order: Vec<String>,
    docs: SourceDocs,
    /// Where each type was first used that was not defined there.
    uses: BTreeMap<String, IdlError>,
    /// Where each key member stands, with the names of its structure and its own.
    keys: Vec<(String, Arc<str>, IdlError)>,
    extensibility: Extensibility,
    /// What holds for types that say nothing of it, by module.
    modules: Vec<ModuleDefaults>,
}

impl Parser {
    fn new(words: Words, reading: &Reading) -> Parser {
        let (names, order, uses) = (Names::default(), Vec::new(), BTreeMap::new());
        Parser {
            words,
            names,
            order,
            docs: SourceDocs::default(),
            uses,
            keys: Vec::new(),
            extensibility: reading.extensibility,
            modules: vec![ModuleDefaults::default()],
        }
    }

    fn run(mut self) -> Result<Definitions, IdlError> {
        while self.words.peek().is_some() {
            self.definition()?;
        }
        self.close()?;
        self.check_keys()?;
        let types = self.names.defined.into_iter().filter_map(|(name, named)| match named {
            Named::Type(found) if found.name() == Some(&name) => Some((name, found)),
            _ => None,
        });
        Ok(Definitions { types: types.collect(), order: self.order, docs: self.docs })
    }

    /// Puts the definitions in the place of the names by which types were used that were not defined.
    fn close(&mut self) -> Result<(), IdlError> {
        let used = |name: &String| match self.names.defined.get(name)? {
            Named::Open(found) => Some((name.clone(), found.clone())),
            Named::Type(found) if self.uses.contains_key(name) => Some((name.clone(), found.clone())),
            _ => None,
        };
        let definitions: Vec<(String, Type)> = self.order.iter().filter_map(used).collect();
        let names: Vec<String> = definitions.iter().map(|(name, _)| name.clone()).collect();
        match tie(definitions) {
            Ok(types) => {
                let types = types.into_iter().map(Named::Type);
                self.names.defined.extend(names.into_iter().zip(types));
                Ok(())
            }
            Err(TieError { key, problem }) => Err(match self.uses.remove(&key) {
                Some(place) => IdlError { problem, ..place },
                None => self.words.error_before(problem),
            }),
        }
    }

    /// Refuses optional members within keys, once all types are defined (DDS-XTypes 1.3 §7.2.2.4.4.4.8).
    fn check_keys(&self) -> Result<(), IdlError> {
        for (name, member, place) in &self.keys {
            let Some(Named::Type(found)) = self.names.defined.get(name) else { continue };
            let followed = found.followed();
            let Type::Structure(structure) = &*followed else { continue };
            let key = structure.members.iter().find(|one| one.name == *member);
            if let Some(optional) = key.and_then(StructureMember::optional_in_key) {
                let problem = format!("{optional} is optional, and part of the key member {member}, where none may be");
                return Err(IdlError { problem, ..place.clone() });
            }
        }
        Ok(())
    }

    fn definition(&mut self) -> Result<(), IdlError> {
        let applied = Applied::read(&mut self.words)?;
        let keyword = self.words.next("a definition")?;
        match &*keyword {
            "module" => self.module(&applied)?,
            "struct" => self.structure(&applied)?,
            "union" => self.union(&applied)?,
            "enum" => self.enumeration(&applied)?,
            "bitmask" => self.bitmask(&applied)?,
            "bitset" => self.bitset()?,
            "typedef" => self.type_definition(&applied)?,
            "const" => self.constant()?,
            ";" => return Ok(()),
            _ if applied.has("annotation") => self.skip_braces()?,
            other => {
                return Err(self
                    .words
                    .error_before(format!("{other:?} is not understood as a definition of a data type")));
            }
        }
        self.words.take(";")
    }

    /// Passes over the members of an annotation's definition: its uses are passed over like unknown ones.
    fn skip_braces(&mut self) -> Result<(), IdlError> {
        self.words.take("{")?;
        let mut open = 1;
        while open > 0 {
            match &*self.words.next("\"}\"")? {
                "{" => open += 1,
                "}" => open -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn module(&mut self, applied: &Applied) -> Result<(), IdlError> {
        self.words.descend()?;
        let name = self.words.identifier()?;
        self.names.scope.push(name);
        let outer = self.module_defaults();
        self.modules.push(ModuleDefaults {
            is_nested: applied.switch("default_nested").unwrap_or(outer.is_nested),
            has_hashed_ids: applied.hashed_ids().unwrap_or(outer.has_hashed_ids),
        });
        self.words.take("{")?;
        while !self.words.try_take("}") {
            self.definition()?;
        }
        self.modules.pop();
        self.names.scope.pop();
        self.words.ascend();
        Ok(())
    }

    fn type_definition(&mut self, applied: &Applied) -> Result<(), IdlError> {
        Applied::read(&mut self.words)?.refuse("the type of a typedef")?;
        let base = self.type_specification()?;
        loop {
            let (name, aliased) = self.declarator(base.clone())?;
            self.document(&name, applied);
            let alias = Alias { name: self.names.qualified(&name), aliased };
            self.define(&name, Named::Type(Type::Alias(Arc::new(alias))))?;
            if !self.words.try_take(",") {
                return Ok(());
            }
        }
    }

    fn constant(&mut self) -> Result<(), IdlError> {
        self.type_specification()?;
        let name = self.words.identifier()?;
        self.words.take("=")?;
        let value = expression(&mut self.words, &self.names)?;
        self.define(&name, Named::Constant(value))
    }

    /// A name with the dimensions of an array behind it.
    fn declarator(&mut self, base: Type) -> Result<(String, Type), IdlError> {
        let name = self.words.identifier()?;
        let mut dimensions = Vec::new();
        while self.words.try_take("[") {
            if dimensions.len() == DIMENSIONS_MAX {
                let problem = format!("the array {name} has more than {DIMENSIONS_MAX} dimensions");
                return Err(self.words.error_before(problem));
            }
            dimensions.push(self.positive()?);
            self.words.take("]")?;
        }
        let whole = dimensions.iter().try_fold(1_usize, |whole, count| whole.checked_mul(*count));
        if whole.is_none_or(|whole| whole > u32::MAX as usize) {
            return Err(self.words.error_before(format!("the array {name} has more than 2^32 - 1 elements")));
        }
        let array = |element, count| Type::Array { element: Box::new(element), count };
        Ok((name, dimensions.into_iter().rev().fold(base, array)))
    }

    fn type_specification(&mut self) -> Result<Type, IdlError> {
        let word = self.words.peek().unwrap_or_default().to_owned();
        if let Some(primitive) = self.primitive(&word)? {
            return Ok(Type::Primitive(primitive));
        }
        match &*word {
            "string" => {
                self.words.take("string")?;
                Ok(Type::String { bound: self.bound_in_brackets()? })
            }
            "wstring" => {
                self.words.take("wstring")?;
                Ok(Type::WString { bound: self.bound_in_brackets()? })
            }
            "sequence" => {
                self.words.take("sequence")?;
                self.words.take("<")?;
                let element = Box::new(self.element()?);
                let bound = if self.words.try_take(",") { Some(self.positive()?) } else { None };
                self.words.take(">")?;
                Ok(Type::Sequence { element, bound })
            }
            "map" => {
                self.words.take("map")?;
                self.words.take("<")?;
                let key = self.map_key()?;
                self.words.take(",")?;
                let element = Box::new(self.element()?);
                let bound = if self.words.try_take(",") { Some(self.positive()?) } else { None };
                self.words.take(">")?;
                Ok(Type::Map { key: Box::new(key), element, bound })
            }
            "any" | "fixed" | "Object" | "ValueBase" | "native" | "interface" => {
                self.words.next("a type")?;
                Err(self.words.error_before(format!("{word} is no data type of topics")))
            }
            _ => self.named_type(),
        }
    }

    /// The type of the elements of a collection.
    fn element(&mut self) -> Result<Type, IdlError> {
        self.words.descend()?;
        Applied::read(&mut self.words)?.refuse("elements of collections")?;
        let element = self.type_specification()?;
        self.words.ascend();
        Ok(element)
    }

    fn map_key(&mut self) -> Result<Type, IdlError> {
        let key = self.element()?;
        let is_fine = match key.resolved() {
            Type::Primitive(primitive) => {
                !matches!(primitive, Primitive::Float32 | Primitive::Float64 | Primitive::Float128)
            }
            Type::String { .. } | Type::WString { .. } | Type::Enumeration(_) => true,
            _ => false,
        };
        if is_fine {
            return Ok(key);
        }
        Err(self
            .words
            .error_before("keys of maps are whole numbers, booleans, characters, texts and enumerations".to_owned()))
    }

    fn primitive(&mut self, word: &str) -> Result<Option<Primitive>, IdlError> {
        let primitive = match word {
            "boolean" => Primitive::Boolean,
            "octet" => Primitive::Byte,
            "uint8" => Primitive::UInt8,
            "int8" => Primitive::Int8,
            "short" | "int16" => Primitive::Int16,
            "uint16" => Primitive::UInt16,
            "int32" => Primitive::Int32,
            "uint32" => Primitive::UInt32,
            "int64" => Primitive::Int64,
            "uint64" => Primitive::UInt64,
            "float" => Primitive::Float32,
            "double" => Primitive::Float64,
            "char" => Primitive::Char8,
            "wchar" => Primitive::Char16,
            "long" | "unsigned" => {
                self.words.next("a type")?;
                return Ok(Some(self.long(word)?));
            }
            _ => return Ok(None),
        };
        self.words.next("a type")?;
        Ok(Some(primitive))
    }

    /// What follows `long` or `unsigned`.
    fn long(&mut self, first: &str) -> Result<Primitive, IdlError> {
        Ok(match first {
            "long" if self.words.try_take("long") => Primitive::Int64,
            "long" if self.words.try_take("double") => Primitive::Float128,
            "long" => Primitive::Int32,
            _ if self.words.try_take("short") => Primitive::UInt16,
            _ => {
                self.words.take("long")?;
                if self.words.try_take("long") { Primitive::UInt64 } else { Primitive::UInt32 }
            }
        })
    }

    fn named_type(&mut self) -> Result<Type, IdlError> {
        let name = self.words.scoped_name()?;
        let found = self.names.find(&name).and_then(|(whole, named)| match named {
            Named::Type(found) => Some(found.clone()),
            Named::Forward | Named::Open(_) => Some(Type::Recursive(Recursive::open(&whole))),
            Named::Constant(_) => None,
        });
        let Some(found) = found else {
            return Err(self.words.error_before(format!("there is no type {name} before here")));
        };
        if let Type::Recursive(used) = &found {
            let problem = format!("{} is declared and not defined", used.name());
            let place = self.words.error_before(problem);
            self.uses.entry(used.name().to_owned()).or_insert(place);
        }
        Ok(found)
    }

    fn bound_in_brackets(&mut self) -> Result<Option<usize>, IdlError> {
        if !self.words.try_take("<") {
            return Ok(None);
        }
        let bound = self.positive()?;
        self.words.take(">")?;
        Ok(Some(bound))
    }

    fn positive(&mut self) -> Result<usize, IdlError> {
        let value = match expression(&mut self.words, &self.names)? {
            Constant::Integer(value) => value,
            _ => return Err(self.words.error_before("a size is a whole number".to_owned())),
        };
        let size = usize::try_from(value).ok().filter(|size| (1..=u32::MAX as usize).contains(size));
        size.ok_or_else(|| self.words.error_before(format!("{value} is no size")))
    }

    fn define(&mut self, name: &str, named: Named) -> Result<(), IdlError> {
        let qualified = self.names.qualified(name);
        let is_type = matches!(named, Named::Type(_));
        let named = match named {
            Named::Type(found) if is_open(&found) => Named::Open(found),
            other => other,
        };
        match self.names.defined.insert(qualified.clone(), named) {
            None | Some(Named::Forward) => {
                if is_type {
                    self.order.push(qualified);
                }
                Ok(())
            }
            Some(_) => Err(self.words.error_before(format!("{qualified} is defined twice"))),
        }
    }

    /// Keeps the comment in front of a type of this module, and returns its whole name.
    fn document(&mut self, name: &str, applied: &Applied) -> String {
        let whole = self.names.qualified(name);
        self.docs.add(&whole, None, applied.docs().unwrap_or_default());
        whole
    }

    /// Whether `keyword name;` stands here: a declaration without definition.
    fn forward(&mut self, name: &str) -> bool {
        if self.words.peek() != Some(";") {
            return false;
        }
        let qualified = self.names.qualified(name);
        self.names.defined.entry(qualified).or_insert(Named::Forward);
        true
    }

    fn module_defaults(&self) -> ModuleDefaults {
        self.modules.last().copied().unwrap_or_default()
    }

    /// Whether the ids of a type's members come from their names.
    fn has_hashed_ids(&self, applied: &Applied) -> bool {
        applied.hashed_ids().unwrap_or(self.module_defaults().has_hashed_ids)
    }

    fn is_nested(&self, applied: &Applied) -> bool {
        applied.switch("nested").unwrap_or_else(|| self.module_defaults().is_nested && !applied.has("topic"))
    }
}

/// 28 bits of the name's MD5 (DDS-XTypes 1.3 §7.3.1.2.1.1).
pub fn id_of_name(name: &str) -> u32 {
    let digest = md5::compute(name.as_bytes()).0;
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]) & 0x0fff_ffff
}

#[cfg(test)]
mod tests;
