//! Reads types from IDL 4.2, as far as data types of topics use it.
//!
//! Understood: modules, structures with single inheritance, enumerations, type definitions, integer constants, sequences,
//! arrays, bounded strings, and the annotations `@key`, `@optional`, `@final`, `@appendable`, `@mutable`, `@extensibility`,
//! `@id`, `@autoid`, `@must_understand` and `@bit_bound`. Other annotations are passed over, preprocessor lines too. Unions,
//! maps, bit masks, `wchar`, `long double`, `fixed` and `any` are refused by name.

mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use thalweg_cdr::Extensibility;

use crate::types::{Enumeration, Primitive, Structure, StructureMember, Type};
use words::Words;

/// The structures of an IDL text, by their names with modules.
pub type Structures = BTreeMap<String, Arc<Structure>>;

/// Why a text is no IDL, or none that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdlError {
    /// The line, counted from 1.
    pub line: usize,
    /// The fault.
    pub problem: String,
}

impl fmt::Display for IdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for IdlError {}

/// Reads all structures of a text. Types must be defined before they are used; without annotation a structure is appendable
/// (DDS-XTypes 1.3 §7.3.1.2.1.8).
///
/// # Errors
/// The first thing that is not understood, with its line.
pub fn parse(text: &str) -> Result<Structures, IdlError> {
    let mut parser = Parser { words: Words::of(text)?, scope: Vec::new(), names: BTreeMap::new() };
    while parser.words.peek().is_some() {
        parser.definition()?;
    }
    let structures = parser.names.into_iter().filter_map(|(name, found)| match found {
        Named::Type(Type::Structure(structure)) if structure.name == name => Some((name, structure)),
        _ => None,
    });
    Ok(structures.collect())
}

struct Parser<'a> {
    words: Words<'a>,
    scope: Vec<String>,
    names: BTreeMap<String, Named>,
}

/// The meaning of a name.
enum Named {
    Type(Type),
    Constant(i64),
}

/// Annotations in front of something: names with the text of their argument.
type Annotations = Vec<(String, String)>;

impl<'a> Parser<'a> {
    fn definition(&mut self) -> Result<(), IdlError> {
        let annotations = self.annotations()?;
        let keyword = self.words.next("a definition")?;
        match keyword {
            "module" => {
                let name = self.words.identifier()?;
                self.scope.push(name);
                self.words.take("{")?;
                while !self.words.try_take("}") {
                    self.definition()?;
                }
                self.scope.pop();
            }
            "struct" => self.structure(&annotations)?,
            "enum" => self.enumeration(&annotations)?,
            "typedef" => {
                let base = self.type_specification()?;
                loop {
                    let (name, declared) = self.declarator(base.clone())?;
                    self.define(&name, Named::Type(declared))?;
                    if !self.words.try_take(",") {
                        break;
                    }
                }
            }
            "const" => {
                self.type_specification()?;
                let name = self.words.identifier()?;
                self.words.take("=")?;
                let value = self.integer()?;
                self.define(&name, Named::Constant(value))?;
            }
            other => {
                return Err(self
                    .words
                    .error_before(format!("{other:?} is not understood as a definition of a data type")));
            }
        }
        self.words.take(";")
    }

    fn structure(&mut self, annotations: &Annotations) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        if self.words.peek() == Some(";") {
            return Err(self
                .words
                .error(format!("the structure {name} is only declared; define it before it is used")));
        }
        let mut members = Vec::new();
        if self.words.try_take(":") {
            let base = self.type_specification()?;
            let Type::Structure(base) = base else {
                return Err(self.words.error_before(format!("the base of {name} is no structure")));
            };
            members.extend(base.members.iter().cloned());
        }
        let by_hash = annotations.iter().any(|(name, argument)| name == "autoid" && argument != "SEQUENTIAL");
        self.words.take("{")?;
        while !self.words.try_take("}") {
            self.member(by_hash, &mut members)?;
        }
        let extensibility = extensibility(annotations).map_err(|problem| self.words.error_before(problem))?;
        let structure = Structure { name: self.qualified(&name), extensibility, members };
        self.define(&name, Named::Type(Type::Structure(Arc::new(structure))))
    }

    fn member(&mut self, by_hash: bool, members: &mut Vec<StructureMember>) -> Result<(), IdlError> {
        let annotations = self.annotations()?;
        let has = |wanted: &str| annotations.iter().any(|(name, argument)| name == wanted && argument != "FALSE");
        let argument = |wanted: &str| annotations.iter().find(|(name, _)| name == wanted).map(|(_, argument)| argument);
        let base = self.type_specification()?;
        loop {
            let (name, member_type) = self.declarator(base.clone())?;
            let id = match (argument("id"), by_hash) {
                (Some(text), _) => self.constant(text)?,
                (None, true) => id_of_name(&name),
                (None, false) => members.last().map_or(0, |last| last.id + 1),
            };
            if members.iter().any(|member| member.name == name || member.id == id) {
                return Err(self
                    .words
                    .error_before(format!("there is a member {name}, or one with the id {id}, already")));
            }
            let is_key = has("key");
            let must_understand = is_key || has("must_understand");
            let is_optional = has("optional");
            if is_key && is_optional {
                return Err(self.words.error_before(format!("the key member {name} must not be optional")));
            }
            members.push(StructureMember { name, id, member_type, is_key, is_optional, must_understand });
            if !self.words.try_take(",") {
                return self.words.take(";");
            }
        }
    }

    fn enumeration(&mut self, annotations: &Annotations) -> Result<(), IdlError> {
        let name = self.words.identifier()?;
        self.words.take("{")?;
        let mut literals: Vec<(String, i32)> = Vec::new();
        loop {
            let own = self.annotations()?;
            let literal = self.words.identifier()?;
            let explicit = own.iter().find(|(name, _)| name == "value").map(|(_, argument)| argument.clone());
            let value = match explicit {
                Some(text) => self.constant(&text)?,
                None => literals.last().map_or(0, |(_, last)| last.wrapping_add(1)),
            };
            literals.push((literal, value));
            if !self.words.try_take(",") {
                break;
            }
        }
        self.words.take("}")?;
        let bits = annotations.iter().find(|(name, _)| name == "bit_bound").map(|(_, argument)| argument.clone());
        let holder_bytes = match bits.map_or(Ok(32), |text| self.constant::<usize>(&text))? {
            1..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            other => {
                return Err(self.words.error_before(format!("an enumeration of {other} bits; 1 to 32 are allowed")));
            }
        };
        let enumeration = Enumeration { name: self.qualified(&name), literals, holder_bytes };
        self.define(&name, Named::Type(Type::Enumeration(Arc::new(enumeration))))
    }

    /// A name with the dimensions of an array behind it.
    fn declarator(&mut self, base: Type) -> Result<(String, Type), IdlError> {
        let name = self.words.identifier()?;
        let mut dimensions = Vec::new();
        while self.words.try_take("[") {
            dimensions.push(self.positive()?);
            self.words.take("]")?;
        }
        let array = |element, count| Type::Array { element: Box::new(element), count };
        Ok((name, dimensions.into_iter().rev().fold(base, array)))
    }

    fn type_specification(&mut self) -> Result<Type, IdlError> {
        let word = self.words.next("a type")?;
        let primitive = match word {
            "boolean" => Primitive::Boolean,
            "octet" | "uint8" => Primitive::UInt8,
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
            "long" if self.words.try_take("long") => Primitive::Int64,
            "long" if self.words.peek() == Some("double") => return Err(self.words.refused("long double")),
            "long" => Primitive::Int32,
            "unsigned" if self.words.try_take("short") => Primitive::UInt16,
            "unsigned" => {
                self.words.take("long")?;
                if self.words.try_take("long") { Primitive::UInt64 } else { Primitive::UInt32 }
            }
            "string" => return Ok(Type::String { bound: self.bound_in_brackets()? }),
            "wstring" => return Ok(Type::WString { bound: self.bound_in_brackets()? }),
            "sequence" => {
                self.words.take("<")?;
                let element = Box::new(self.type_specification()?);
                let bound = if self.words.try_take(",") { Some(self.positive()?) } else { None };
                self.words.take(">")?;
                return Ok(Type::Sequence { element, bound });
            }
            "union" | "map" | "bitmask" | "bitset" | "fixed" | "any" | "wchar" => return Err(self.words.refused(word)),
            _ => return self.named_type(word),
        };
        Ok(Type::Primitive(primitive))
    }

    fn named_type(&mut self, first: &'a str) -> Result<Type, IdlError> {
        let mut name = String::new();
        let mut word = first;
        if word == "::" {
            word = self.words.next("a name")?;
        }
        name.push_str(word);
        while self.words.try_take("::") {
            name.push_str("::");
            name.push_str(self.words.next("a name")?);
        }
        match self.lookup(&name) {
            Some(Named::Type(found)) => Ok(found.clone()),
            _ => Err(self.words.error_before(format!("there is no type {name} before here"))),
        }
    }

    fn annotations(&mut self) -> Result<Annotations, IdlError> {
        let mut annotations = Vec::new();
        while self.words.try_take("@") {
            let name = self.words.identifier()?;
            let mut argument = String::new();
            if self.words.try_take("(") {
                let mut open = 1;
                loop {
                    match self.words.next("')'")? {
                        "(" => open += 1,
                        ")" => open -= 1,
                        _ => {}
                    }
                    if open == 0 {
                        break;
                    }
                    argument.push_str(self.words.last());
                }
            }
            annotations.push((name, argument));
        }
        Ok(annotations)
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
        let value = self.integer()?;
        let size = usize::try_from(value).ok().filter(|size| (1..=u32::MAX as usize).contains(size));
        size.ok_or_else(|| self.words.error_before(format!("{value} is no size")))
    }

    fn integer(&mut self) -> Result<i64, IdlError> {
        let mut text = String::new();
        if self.words.try_take("-") {
            text.push('-');
        }
        text.push_str(self.words.next("a whole number")?);
        while self.words.try_take("::") {
            text.push_str("::");
            text.push_str(self.words.next("a name")?);
        }
        self.constant(&text)
    }

    /// A whole number, or a constant's name.
    fn constant<T: TryFrom<i64>>(&self, text: &str) -> Result<T, IdlError> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let parsed = digits.map_or_else(|| text.parse().ok(), |digits| i64::from_str_radix(digits, 16).ok());
        let value = parsed.or_else(|| match self.lookup(text) {
            Some(Named::Constant(value)) => Some(*value),
            _ => None,
        });
        let fitting = value.and_then(|value| T::try_from(value).ok());
        fitting.ok_or_else(|| self.words.error_before(format!("{text:?} is no whole number that fits here")))
    }

    /// The meaning of a name in the innermost scope that defines it.
    fn lookup(&self, name: &str) -> Option<&Named> {
        (0..=self.scope.len()).rev().find_map(|depth| {
            let mut parts: Vec<&str> = self.scope[..depth].iter().map(String::as_str).collect();
            parts.push(name);
            self.names.get(&parts.join("::"))
        })
    }

    fn qualified(&self, name: &str) -> String {
        self.scope.iter().map(String::as_str).chain([name]).collect::<Vec<&str>>().join("::")
    }

    fn define(&mut self, name: &str, named: Named) -> Result<(), IdlError> {
        let qualified = self.qualified(name);
        if self.names.insert(qualified.clone(), named).is_some() {
            return Err(self.words.error_before(format!("{qualified} is defined twice")));
        }
        Ok(())
    }
}

fn extensibility(annotations: &Annotations) -> Result<Extensibility, String> {
    let named = annotations.iter().find_map(|(name, argument)| match name.as_str() {
        "final" | "appendable" | "mutable" => Some(name.to_uppercase()),
        "extensibility" => Some(argument.clone()),
        _ => None,
    });
    match named.as_deref() {
        None | Some("APPENDABLE") => Ok(Extensibility::Appendable),
        Some("FINAL") => Ok(Extensibility::Final),
        Some("MUTABLE") => Ok(Extensibility::Mutable),
        Some(other) => Err(format!("{other:?} is no extensibility; there are FINAL, APPENDABLE and MUTABLE")),
    }
}

/// 28 bits of the name's MD5 (DDS-XTypes 1.3 §7.3.1.2.1.1).
fn id_of_name(name: &str) -> u32 {
    let digest = md5::compute(name.as_bytes()).0;
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]) & 0x0fff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn structure(text: &str, name: &str) -> Arc<Structure> {
        let structures = parse(text).unwrap_or_else(|error| panic!("{error}"));
        Arc::clone(structures.get(name).unwrap_or_else(|| panic!("{name} in {:?}", structures.keys())))
    }

    #[track_caller]
    fn refused(text: &str, line: usize, part: &str) {
        let error = parse(text).expect_err("an error");
        assert!(error.line == line && error.problem.contains(part), "line {line}, {part:?} not in: {error}");
    }

    #[test]
    fn a_topic_of_ros_is_understood() {
        let text = "
            #include \"std_msgs/msg/Header.idl\"
            // The time.
            module builtin_interfaces { module msg { module dds_ {
              @final struct Time_ { long sec; unsigned long nanosec; };
            }; }; };
            module sensor_msgs { module msg { module dds_ {
              typedef double double__9[9];
              @verbatim (language=\"comment\", text=\"with (brackets)\")
              @extensibility(FINAL)
              struct Imu_ {
                builtin_interfaces::msg::dds_::Time_ stamp; /* when */
                double__9 covariance;
                sequence<float, 3> gyro;
                string<16> frame_id, other;
              };
            }; }; };";
        let imu = structure(text, "sensor_msgs::msg::dds_::Imu_");
        assert_eq!(imu.extensibility, Extensibility::Final);
        let names: Vec<(&str, u32)> = imu.members.iter().map(|member| (member.name.as_str(), member.id)).collect();
        assert_eq!(names, [("stamp", 0), ("covariance", 1), ("gyro", 2), ("frame_id", 3), ("other", 4)]);
        let double = || Box::new(Type::Primitive(Primitive::Float64));
        assert_eq!(imu.members[1].member_type, Type::Array { element: double(), count: 9 });
        assert_eq!(imu.members[4].member_type, Type::String { bound: Some(16) });
        assert_eq!(parse(text).expect("IDL").len(), 2, "type definitions are no topics");
    }

    #[test]
    fn annotations_mean_what_the_standard_says() {
        let text = "
            const long SIZE = 4;
            enum Color { RED, @value(5) GREEN, BLUE };
            @bit_bound(8) enum Small { A };
            @mutable @nested(FALSE) struct Shape {
              @key @id(7) string<SIZE> name;
              @optional Color color;
              Small grid[2][SIZE];
            };
            @autoid(HASH) struct Hashed { long color; };
            struct Derived : Hashed { long more; };";
        let shape = structure(text, "Shape");
        assert_eq!(shape.extensibility, Extensibility::Mutable);
        let [name, color, grid] = &shape.members[..] else { panic!("three members") };
        assert!(name.is_key && name.must_understand && name.id == 7);
        assert!(color.is_optional && !color.is_key && color.id == 8);
        let Type::Enumeration(colors) = &color.member_type else { panic!("an enumeration") };
        assert_eq!(colors.literals, [("RED".to_owned(), 0), ("GREEN".to_owned(), 5), ("BLUE".to_owned(), 6)]);
        assert_eq!(colors.holder_bytes, 4);
        let Type::Array { element, count: 2 } = &grid.member_type else { panic!("two rows") };
        let Type::Array { element, count: 4 } = &**element else { panic!("of four") };
        assert!(matches!(&**element, Type::Enumeration(small) if small.holder_bytes == 1));
        // The example of DDS-XTypes 1.3 §7.3.1.2.1.1.
        assert_eq!(structure(text, "Hashed").members[0].id, 0x0fa5_dd70);
        let derived = structure(text, "Derived");
        assert_eq!(derived.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["color", "more"]);
        assert_eq!(derived.extensibility, Extensibility::Appendable);
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        refused("struct A {\n  map<long, long> x;\n};", 2, "map is not supported");
        refused("\nunion U switch (long) { case 0: long x; };", 2, "\"union\" is not understood");
        refused("struct A {\n  B b;\n};", 2, "no type B");
        refused("struct A { long x; long x; };", 1, "a member x");
        refused("struct A { long x };", 1, "expected \";\", found \"}\"");
        refused("struct A { string<0> x; };", 1, "0 is no size");
        refused("struct A;", 1, "only declared");
        refused("struct A { long x; }; struct A { long x; };", 1, "defined twice");
        refused("struct A { @key @optional long x; };", 1, "must not be optional");
        refused("struct A { long double x; };", 1, "long double is not supported");
        refused("struct A {", 1, "found the end");
        refused("/* no end", 1, "comment without end");
    }
}
