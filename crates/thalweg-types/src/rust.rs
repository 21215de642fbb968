//! Types as Rust that derives `Topic`: one text, each type once and behind those that it needs, in modules as in IDL.

mod octets;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Enumeration, Primitive, Recursive, Structure, StructureMember, Type, Union};

use crate::codec::member_default;
use crate::docs::SourceDocs;
use crate::document::Document;
use crate::idl::id_of_name;
use octets::{has_octets, value_attribute, value_words};

/// The types, and all that they need, as a Rust module; `thalweg` must be a dependency of what contains it.
///
/// A structure that extends another has the members of both. A bound within a collection becomes a newtype. Types that contain each
/// other are boxed where they are members.
///
/// # Errors
/// The first type or member that has no counterpart in Rust: `long double`, `wchar`, a bit mask or a bit set, `@default` of a case or of
/// bounded elements, an optional member within a key, `octet` and `uint8` in one map.
pub fn to_rust<'a>(types: impl IntoIterator<Item = &'a Type>) -> Result<String, String> {
    to_documented_rust(types, &SourceDocs::default())
}

/// As [`to_rust`], with comments of the source as documentation.
///
/// # Errors
/// As [`to_rust`].
pub fn to_documented_rust<'a>(types: impl IntoIterator<Item = &'a Type>, docs: &SourceDocs) -> Result<String, String> {
    let mut writer = Writer { written: BTreeSet::new(), root: Module::default(), docs };
    for found in types {
        writer.define(found)?;
    }
    let mut out = "// Made by `thalweg idl`; change the source and make it again.\n".to_owned();
    writer.root.write(0, &mut out);
    Ok(out)
}

struct Writer<'d> {
    written: BTreeSet<String>,
    root: Module,
    docs: &'d SourceDocs,
}

/// The definitions of a module in order, then its modules by name.
#[derive(Default)]
struct Module {
    definitions: Vec<String>,
    bounded: BTreeMap<String, String>,
    modules: BTreeMap<String, Module>,
}

impl Module {
    fn write(&self, depth: usize, out: &mut String) {
        let indent = "    ".repeat(depth);
        let bounded: Vec<&String> = self.bounded.values().collect();
        if !self.definitions.is_empty() || !bounded.is_empty() {
            let _ = writeln!(out, "{indent}use thalweg::Topic;");
        }
        for definition in bounded.into_iter().chain(&self.definitions) {
            out.push('\n');
            definition.lines().for_each(|line| {
                let _ = if line.is_empty() { writeln!(out) } else { writeln!(out, "{indent}{line}") };
            });
        }
        for (name, module) in &self.modules {
            let _ = writeln!(out, "\n{indent}/// `{name}`\n{indent}pub mod {} {{", field_name(name));
            module.write(depth + 1, out);
            let _ = writeln!(out, "{indent}}}");
        }
    }
}

const DERIVES: &str = "#[derive(Clone, Debug, PartialEq, Topic)]";

impl Writer<'_> {
    fn module(&mut self, name: &str) -> &mut Module {
        let parts: Vec<&str> = name.split("::").collect();
        let modules = &parts[..parts.len() - 1];
        modules.iter().fold(&mut self.root, |module, part| module.modules.entry((*part).to_owned()).or_default())
    }

    fn define(&mut self, found: &Type) -> Result<(), String> {
        match found {
            Type::Sequence { element, .. } | Type::Array { element, .. } => return self.define(element),
            Type::Map { key, element, .. } => {
                self.define(key)?;
                return self.define(element);
            }
            Type::Bitmask(bitmask) => return Err(format!("{}: a bit mask has no counterpart in Rust", bitmask.name)),
            Type::Bitset(bitset) => return Err(format!("{}: a bit set has no counterpart in Rust", bitset.name)),
            Type::Recursive(part) => return self.define_component(part),
            _ => {}
        }
        let Some(name) = found.name() else { return Ok(()) };
        if !self.written.insert(name.to_owned()) {
            return Ok(());
        }
        // The constant of a key that contains itself would need itself.
        let endless = if is_in_circle(found) && !found.key_fits_hash() { ", unbounded_key" } else { "" };
        let text = match found {
            Type::Alias(alias) => {
                self.define(&alias.aliased)?;
                let (inner, bound) = self.spelled(&alias.aliased, name).map_err(|why| format!("{name}: {why}"))?;
                let said = value_attribute(&alias.aliased, bound).map_err(|why| format!("{name}: {why}"))?;
                let own = type_name(name);
                let docs = self.docs.to_rust(name, None, "");
                format!(
                    "{docs}/// `{name}`\n{DERIVES}\n#[topic(name = \"{name}\"{endless})]\npub struct {own}({said}pub {inner});"
                )
            }
            Type::Structure(structure) => self.structure(structure, endless)?,
            Type::Union(union) => self.union(union, endless)?,
            Type::Enumeration(enumeration) => of_enumeration(enumeration, self.docs),
            _ => return Ok(()),
        };
        self.module(name).definitions.push(text);
        Ok(())
    }

    fn define_component(&mut self, part: &Recursive) -> Result<(), String> {
        let component = part.component().ok_or_else(|| format!("the definition of {} is gone", part.name()))?;
        component.types().iter().try_for_each(|of| self.define(of))
    }

    fn structure(&mut self, structure: &Structure, endless: &str) -> Result<String, String> {
        let name = &structure.name;
        let mut members = String::new();
        let mut next = 0;
        for member in &structure.members {
            self.define(&member.member_type)?;
            let expected = if structure.has_hashed_ids { id_of_name(&member.name) } else { next };
            members.push_str(
                &self.member(member, name, expected).map_err(|why| format!("{name}.{}: {why}", member.name))?,
            );
            next = member.id + 1;
        }
        let nested = if structure.is_nested { ", nested" } else { "" };
        let hashed = hashed_word(structure.has_hashed_ids);
        let words = format!(
            "name = \"{name}\", extensibility = \"{}\"{hashed}{nested}{endless}",
            word(structure.extensibility)
        );
        let docs = self.docs.to_rust(name, None, "");
        Ok(format!("{docs}/// `{name}`\n{DERIVES}\n#[topic({words})]\npub struct {} {{\n{members}}}", type_name(name)))
    }

    fn member(&mut self, member: &StructureMember, of: &str, next: u32) -> Result<String, String> {
        let (spelled, bound) = self.spelled(&member.member_type, of)?;
        let field = field_name(&member.name);
        let mut words = Vec::new();
        if field.trim_start_matches("r#") != &*member.name {
            words.push(format!("name = \"{}\"", member.name));
        }
        if member.is_key {
            if let Some(optional) = member.optional_in_key() {
                return Err(format!("a key with the optional member {optional} has no counterpart in Rust"));
            }
            words.push("key".to_owned());
        }
        if member.id != next {
            words.push(format!("id = {}", member.id));
        }
        words.extend(value_words(&member.member_type, bound)?);
        if member.must_understand {
            words.push("must_understand".to_owned());
        }
        if member.annotations.default.is_some() && !member.is_optional {
            let default = member_default(&member.member_type, &member.annotations);
            words.push(format!("default = {}", literal(&member.member_type, &default, of)?));
        }
        let attribute = if words.is_empty() { String::new() } else { format!("    #[topic({})]\n", words.join(", ")) };
        let spelled = if member.is_optional { format!("Option<{spelled}>") } else { spelled };
        let docs = self.docs.to_rust(of, Some(&member.name), "    ");
        Ok(format!("{docs}    /// `{}`\n{attribute}    pub {field}: {spelled},\n", member.name))
    }

    fn union(&mut self, union: &Union, endless: &str) -> Result<String, String> {
        let name = &union.name;
        let default = union.default_case().1.and_then(|case| case.case_type.as_ref());
        if default.is_some_and(|case_type| !case_type.has_finite_default()) {
            return Err(format!(
                "{name}: its default would contain another one without end; a case that ends has to be first"
            ));
        }
        self.define(union.discriminator.resolved())?;
        let (discriminator, _) = self.spelled(union.discriminator.resolved(), name)?;
        let mut cases = String::new();
        let mut next = u32::from(union.extensibility == Extensibility::Mutable);
        for case in &union.cases {
            let mut words = vec![format!("name = \"{}\"", case.name)];
            let labels: Vec<String> =
                case.labels.iter().map(|label| label_text(&union.discriminator, *label, name)).collect();
            if !labels.is_empty() {
                words.push(format!("case = {}", labels.join(" | ")));
            }
            if case.is_default {
                words.push("default".to_owned());
            }
            let expected = if union.has_hashed_ids { id_of_name(&case.name) } else { next };
            if case.id != expected {
                words.push(format!("id = {}", case.id));
            }
            if case.annotations.default.is_some() {
                return Err(format!("{name}.{}: the default of a case has no counterpart in Rust", case.name));
            }
            next = case.id + 1;
            let value = match &case.case_type {
                None => String::new(),
                Some(case_type) => {
                    self.define(case_type)?;
                    let named = |why: String| format!("{name}.{}: {why}", case.name);
                    let (spelled, bound) = self.spelled(case_type, name).map_err(named)?;
                    let said = value_attribute(case_type, bound).map_err(named)?;
                    format!("({said}{spelled})")
                }
            };
            // The default branch takes the label, since others than the first free one may come.
            let label = if case.is_default { format!("(#[topic(label)] {discriminator}, ") } else { String::new() };
            let value = if case.is_default { value.replacen('(', &label, 1) } else { value };
            let _ = writeln!(
                cases,
                "{}    /// `{}`\n    #[topic({})]\n    {}{value},",
                self.docs.to_rust(name, Some(&case.name), "    "),
                case.name,
                words.join(", "),
                variant_name(&case.name)
            );
        }
        let octet = if has_octets(union.discriminator.resolved())? { ", octet" } else { "" };
        let switch = format!("discriminator = {discriminator}{octet}");
        let key = if union.is_keyed { ", key" } else { "" };
        let nested = if union.is_nested { ", nested" } else { "" };
        let hashed = hashed_word(union.has_hashed_ids);
        let words = format!(
            "name = \"{name}\", {switch}, extensibility = \"{}\"{hashed}{key}{nested}{endless}",
            word(union.extensibility)
        );
        let docs = self.docs.to_rust(name, None, "");
        Ok(format!("{docs}/// `{name}`\n{DERIVES}\n#[topic({words})]\npub enum {} {{\n{cases}}}", type_name(name)))
    }

    /// The type as it is named in the module of `within`, and its bound where the member states it.
    fn spelled(&mut self, of: &Type, within: &str) -> Result<(String, Option<usize>), String> {
        Ok(match of {
            Type::Primitive(primitive) => (of_primitive(*primitive)?.to_owned(), None),
            Type::String { bound } => ("String".to_owned(), *bound),
            Type::WString { bound } => ("thalweg::cdr::WString".to_owned(), *bound),
            Type::Sequence { element, bound } => (format!("Vec<{}>", self.element(element, within)?), *bound),
            Type::Array { element, count } => {
                let element = match &**element {
                    Type::Recursive(_) => self.spelled(element, within)?.0,
                    other => self.element(other, within)?,
                };
                (format!("[{element}; {count}]"), None)
            }
            Type::Map { key, element, bound } => {
                // A name of a key type has no order in Rust; the type behind it has.
                let (key, element) = (self.element(key.resolved(), within)?, self.element(element, within)?);
                (format!("std::collections::BTreeMap<{key}, {element}>"), *bound)
            }
            Type::Recursive(part) => {
                let own = path(part.name(), within);
                // A list points to its elements; all else that contains itself has to be pointed to.
                let is_list = matches!(&*of.followed(), Type::Sequence { .. } | Type::Map { .. });
                (if part.is_within() && !is_list { format!("Box<{own}>") } else { own }, None)
            }
            named => (path(named.name().unwrap_or_default(), within), None),
        })
    }

    /// The type of elements: those with a bound get a newtype, which states it.
    fn element(&mut self, of: &Type, within: &str) -> Result<String, String> {
        if let Type::Recursive(part) = of {
            return Ok(path(part.name(), within));
        }
        let (spelled, bound) = self.spelled(of, within)?;
        let Some(bound) = bound else { return Ok(spelled) };
        let letters: String = spelled.chars().filter(char::is_ascii_alphanumeric).collect();
        let (octets, said) = (if has_octets(of)? { "Octets" } else { "" }, value_attribute(of, Some(bound))?);
        let own = format!("Bounded{octets}{letters}{bound}");
        let derives = if matches!(of, Type::String { .. }) {
            "#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Topic)]"
        } else {
            DERIVES
        };
        let text = format!("/// At most {bound} of `{spelled}`.\n{derives}\npub struct {own}({said}pub {spelled});");
        self.module(within).bounded.insert(own.clone(), text);
        Ok(own)
    }
}

/// A default of this type as an expression in the module of `within`.
fn literal(of: &Type, value: &Document, within: &str) -> Result<String, String> {
    let row = |element: &Type| match element {
        // Their elements have types of their own.
        Type::String { bound: Some(_) } | Type::WString { bound: Some(_) } | Type::Sequence { bound: Some(_), .. } => {
            Err("a default of bounded elements has no counterpart in Rust".to_owned())
        }
        _ => {
            let items = value.items().into_iter().flatten().map(|item| literal(element, &item, within));
            items.collect::<Result<Vec<String>, String>>().map(|items| items.join(", "))
        }
    };
    Ok(match (of, value) {
        (Type::Alias(alias), _) => {
            format!("{}({})", path(&alias.name, within), literal(&alias.aliased, value, within)?)
        }
        (Type::Sequence { element, .. }, _) => format!("vec![{}]", row(element)?),
        (Type::Array { element, .. }, _) => format!("[{}]", row(element)?),
        (Type::Enumeration(enumeration), Document::Text(literal)) => {
            format!("{}::{}", path(&enumeration.name, within), variant_name(literal))
        }
        (Type::Primitive(Primitive::Char8), Document::Text(text)) => {
            format!("{:?}", text.chars().next().unwrap_or_default())
        }
        (Type::String { .. }, Document::Text(text)) => format!("{text:?}.to_owned()"),
        (Type::WString { .. }, Document::Text(text)) => format!("thalweg::cdr::WString({text:?}.to_owned())"),
        (Type::Primitive(_), Document::Boolean(value)) => value.to_string(),
        (Type::Primitive(_), Document::Integer(number)) => number.to_string(),
        (Type::Primitive(_), Document::Real(number)) if number.is_finite() => format!("{number:?}"),
        _ => return Err("its default has no counterpart in Rust".to_owned()),
    })
}

/// Whether a definition is one of several that contain each other, or contains itself.
fn is_in_circle(of: &Type) -> bool {
    let is_within = |of: &Type| of.recursive_uses().into_iter().any(Recursive::is_within);
    match of {
        Type::Alias(alias) => is_within(&alias.aliased),
        Type::Structure(structure) => structure.members.iter().any(|member| is_within(&member.member_type)),
        Type::Union(union) => union.cases.iter().filter_map(|case| case.case_type.as_ref()).any(is_within),
        _ => false,
    }
}

fn of_primitive(primitive: Primitive) -> Result<&'static str, String> {
    Ok(match primitive {
        Primitive::Boolean => "bool",
        Primitive::Byte | Primitive::UInt8 => "u8",
        Primitive::Int8 => "i8",
        Primitive::Int16 => "i16",
        Primitive::UInt16 => "u16",
        Primitive::Int32 => "i32",
        Primitive::UInt32 => "u32",
        Primitive::Int64 => "i64",
        Primitive::UInt64 => "u64",
        Primitive::Float32 => "f32",
        Primitive::Float64 => "f64",
        Primitive::Char8 => "char",
        Primitive::Float128 | Primitive::Char16 => {
            return Err(format!("{} has no counterpart in Rust", primitive.idl()));
        }
    })
}

fn of_enumeration(enumeration: &Enumeration, docs: &SourceDocs) -> String {
    let mut literals = String::new();
    for (index, literal) in enumeration.literals.iter().enumerate() {
        let default = if index == enumeration.default && index != 0 { ", default" } else { "" };
        let (name, value) = (&literal.name, literal.value);
        let _ = writeln!(
            literals,
            "{}    /// `{name}`\n    #[topic(name = \"{name}\"{default})]\n    {} = {value},",
            docs.to_rust(&enumeration.name, Some(name), "    "),
            variant_name(name)
        );
    }
    let bits =
        if enumeration.bit_bound == 32 { String::new() } else { format!(", bit_bound = {}", enumeration.bit_bound) };
    let name = &enumeration.name;
    // Final is what the derive takes by default.
    let is_appendable = enumeration.extensibility == Some(Extensibility::Appendable);
    let appendable = if is_appendable { ", extensibility = \"appendable\"" } else { "" };
    let docs = docs.to_rust(name, None, "");
    format!(
        "{docs}/// `{name}`\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Topic)]\n\
         #[topic(name = \"{name}\"{appendable}{bits})]\npub enum {} {{\n{literals}}}",
        type_name(name)
    )
}

fn label_text(discriminator: &Type, label: i32, within: &str) -> String {
    match discriminator.resolved() {
        Type::Enumeration(enumeration) => match enumeration.literal_of(label) {
            Some(literal) => format!("{}::{}", path(&enumeration.name, within), variant_name(&literal.name)),
            None => label.to_string(),
        },
        Type::Primitive(Primitive::Boolean) => (label != 0).to_string(),
        Type::Primitive(Primitive::Char8) => u32::try_from(label)
            .ok()
            .and_then(char::from_u32)
            .map_or_else(|| label.to_string(), |label| format!("{label:?}")),
        Type::Primitive(Primitive::UInt32) => label.cast_unsigned().to_string(),
        _ => label.to_string(),
    }
}

/// The path from the module of one type to another.
fn path(name: &str, within: &str) -> String {
    let (there, here): (Vec<&str>, Vec<&str>) = (name.split("::").collect(), within.split("::").collect());
    let (modules, own) = (&there[..there.len() - 1], &here[..here.len() - 1]);
    let common = modules.iter().zip(own).take_while(|(one, other)| one == other).count();
    let up = own[common..].iter().map(|_| "super".to_owned());
    let down = modules[common..].iter().map(|module| field_name(module));
    up.chain(down).chain([type_name(name)]).collect::<Vec<_>>().join("::")
}

fn hashed_word(has_hashed_ids: bool) -> &'static str {
    if has_hashed_ids { ", autoid = \"hash\"" } else { "" }
}

fn word(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "final",
        Extensibility::Appendable => "appendable",
        Extensibility::Mutable => "mutable",
    }
}

/// The last part of a name, as Rust writes types: `String_` and `pose_2d` are `String_` and `Pose2d`.
fn type_name(name: &str) -> String {
    let own = name.rsplit("::").next().unwrap_or(name);
    let camel = camel_case(own.trim_end_matches('_'));
    // `String_` of ROS must not hide Rust's own.
    if own.ends_with('_') && ["String", "Vec", "Option", "Topic"].contains(&camel.as_str()) {
        camel + "Message"
    } else {
        camel
    }
}

fn variant_name(name: &str) -> String {
    let camel = camel_case(name);
    if camel == "Self" { "SelfValue".to_owned() } else { camel }
}

fn camel_case(name: &str) -> String {
    let is_shouted = !name.chars().any(|character| character.is_ascii_lowercase());
    let mut out = String::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut letters = part.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        out.extend(first);
        out.extend(letters.map(|letter| if is_shouted { letter.to_ascii_lowercase() } else { letter }));
    }
    if out.starts_with(|first: char| first.is_ascii_digit()) || out.is_empty() { format!("N{out}") } else { out }
}

fn field_name(name: &str) -> String {
    let mut out = String::new();
    let mut was_small = false;
    for character in name.chars() {
        if character.is_ascii_uppercase() && was_small {
            out.push('_');
        }
        was_small = character.is_ascii_lowercase() || character.is_ascii_digit();
        out.push(character.to_ascii_lowercase());
    }
    if KEYWORDS.contains(&out.as_str()) {
        return if ["self", "super", "crate"].contains(&out.as_str()) { format!("{out}_") } else { format!("r#{out}") };
    }
    out
}

const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "use", "virtual", "while",
];
