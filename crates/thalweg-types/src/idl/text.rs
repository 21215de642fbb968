//! Types as a text of IDL.

mod order;

use std::collections::BTreeSet;
use std::fmt::Write;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{
    Annotations, Bitset, Enumeration, Primitive, Recursive, Structure, StructureMember, TryConstruct, Type, Union,
    UnionCase,
};

use super::defaults::annotation;

/// The types with all that they need before them, each once: a text that reads back as the same types.
pub fn to_idl<'a>(types: impl IntoIterator<Item = &'a Type>) -> String {
    let mut writer = Writer { out: String::new(), written: BTreeSet::new(), modules: Vec::new() };
    types.into_iter().for_each(|found| writer.define(found));
    writer.enter(&[]);
    writer.out
}

struct Writer {
    out: String,
    written: BTreeSet<String>,
    /// The modules that are open.
    modules: Vec<String>,
}

impl Writer {
    fn define(&mut self, found: &Type) {
        match found {
            Type::Array { element, .. } => return self.define(element),
            Type::Sequence { element, .. } => return self.define_element(element),
            Type::Map { key, element, .. } => {
                self.define(key);
                return self.define_element(element);
            }
            Type::Recursive(part) => return self.define_component(part),
            _ => {}
        }
        let Some(name) = found.name() else { return };
        if self.written.insert(name.to_owned()) {
            self.write(found, name);
        }
    }

    /// Writes a definition behind those that it needs.
    fn write(&mut self, found: &Type, name: &str) {
        match found {
            Type::Alias(alias) => self.define(&alias.aliased),
            Type::Structure(structure) => {
                if let Some(base) = &structure.base {
                    self.define(&base.to_type());
                }
                structure.own_members().iter().for_each(|member| self.define(&member.member_type));
            }
            Type::Union(union) => {
                self.define(&union.discriminator);
                union.cases.iter().filter_map(|case| case.case_type.as_ref()).for_each(|case| self.define(case));
            }
            _ => {}
        }
        let own_name = self.enter_modules_of(name);
        let indent = "  ".repeat(self.modules.len());
        let text = definition(found, &own_name);
        text.lines().for_each(|line| {
            let _ = writeln!(self.out, "{indent}{line}");
        });
    }

    /// Declares all types that contain each other, and then defines each.
    fn define_component(&mut self, part: &Recursive) {
        let Some(component) = part.component() else { return };
        if self.written.contains(part.name()) {
            return;
        }
        for of in component.types() {
            let name = of.name().unwrap_or_default();
            self.written.insert(name.to_owned());
            let keyword = match of {
                Type::Structure(_) => "struct",
                Type::Union(_) => "union",
                _ => continue,
            };
            let own_name = escaped(&self.enter_modules_of(name));
            let _ = writeln!(self.out, "{}{keyword} {own_name};", "  ".repeat(self.modules.len()));
        }
        for of in order::of_component(component.types()) {
            self.write(of, of.name().unwrap_or_default());
        }
    }

    /// Opens the modules of a name, and gives the name within.
    fn enter_modules_of(&mut self, name: &str) -> String {
        let mut modules: Vec<String> = name.split("::").map(str::to_owned).collect();
        let own_name = modules.pop().unwrap_or_default();
        self.enter(&modules);
        own_name
    }

    /// Defines the type of elements: IDL has no array there but by a name, which it gets here.
    fn define_element(&mut self, element: &Type) {
        self.define(element);
        let Type::Array { .. } = element else { return };
        let name = array_name(element);
        if self.written.insert(name.clone()) {
            self.enter(&[]);
            let _ = writeln!(self.out, "typedef {};", declared(element, &name));
        }
    }

    /// Closes and opens modules until these are open.
    fn enter(&mut self, wanted: &[String]) {
        let common = self.modules.iter().zip(wanted).take_while(|(open, wanted)| open == wanted).count();
        while self.modules.len() > common {
            self.modules.pop();
            let _ = writeln!(self.out, "{}}};", "  ".repeat(self.modules.len()));
        }
        for module in &wanted[common..] {
            let _ = writeln!(self.out, "{}module {} {{", "  ".repeat(self.modules.len()), escaped(module));
            self.modules.push(module.clone());
        }
    }
}

fn definition(found: &Type, name: &str) -> String {
    let name = escaped(name);
    match found {
        Type::Alias(alias) => format!("typedef {};", declared(&alias.aliased, &name)),
        Type::Enumeration(enumeration) => of_enumeration(enumeration, &name),
        Type::Bitmask(bitmask) => {
            let flags =
                bitmask.flags.iter().map(|(flag, position)| format!("  @position({position}) {}", escaped(flag)));
            let flags: Vec<String> = flags.collect();
            let extensibility = word(bitmask.extensibility);
            format!("@bit_bound({}) {extensibility} bitmask {name} {{\n{}\n}};", bitmask.bit_bound, flags.join(",\n"))
        }
        Type::Bitset(bitset) => of_bitset(bitset, &name),
        Type::Structure(structure) => of_structure(structure, &name),
        Type::Union(union) => of_union(union, &name),
        _ => String::new(),
    }
}

fn of_structure(structure: &Structure, name: &str) -> String {
    let nested = if structure.is_nested { "@nested " } else { "" };
    let hashed = if structure.has_hashed_ids { "@autoid(HASH) " } else { "" };
    let base = structure.base.as_ref().map(|base| format!(" : {}", global(&base.name))).unwrap_or_default();
    let inherited = structure.members.len() - structure.own_members().len();
    let mut next = structure.members[..inherited].last().map_or(0, |last| last.id + 1);
    let members: Vec<String> = structure
        .own_members()
        .iter()
        .map(|member| {
            let text = of_member(member, structure.has_hashed_ids, next);
            next = member.id + 1;
            text
        })
        .collect();
    let extensibility = word(structure.extensibility);
    format!("{nested}{hashed}{extensibility} struct {name}{base} {{\n{}}};", members.concat())
}

fn of_member(member: &StructureMember, by_hash: bool, next: u32) -> String {
    let mut words = String::new();
    for (is_set, text) in [
        (member.is_key, "@key "),
        (member.is_optional, "@optional "),
        (member.must_understand, "@must_understand "),
        (member.is_external, "@external "),
    ] {
        words.push_str(if is_set { text } else { "" });
    }
    let remarks = remarks(&member.member_type, &member.annotations, member.try_construct);
    let id = id(&member.name, member.id, by_hash, next, &member.annotations);
    let declared = declared(&member.member_type, &escaped(&member.name));
    format!("  {};\n", annotated(format!("{words}{id}{remarks}"), member.id, &declared))
}

/// Annotations before a declaration. `@key ::a::T x` would be the annotation `key::a::T`: something in parentheses has to stand between
/// the last annotation and a global name.
fn annotated(words: String, id: u32, declared: &str) -> String {
    let last = words.trim_end();
    if !declared.starts_with("::") || last.is_empty() || last.ends_with(')') {
        return format!("{words}{declared}");
    }
    match last.strip_suffix("@hashid") {
        Some(before) => format!("{before}@hashid(\"\") {declared}"),
        None => format!("{words}@id({id}) {declared}"),
    }
}

fn id(name: &str, id: u32, by_hash: bool, next: u32, annotations: &Annotations) -> String {
    let expected = match &annotations.hash_id {
        Some(text) if !text.is_empty() => super::id_of_name(text),
        Some(_) => super::id_of_name(name),
        None if by_hash => super::id_of_name(name),
        None => next,
    };
    if id == expected { String::new() } else { format!("@id({id}) ") }
}

fn remarks(of: &Type, annotations: &Annotations, try_construct: TryConstruct) -> String {
    let mut words = String::new();
    words.push_str(match try_construct {
        TryConstruct::Discard => "",
        TryConstruct::UseDefault => "@try_construct(USE_DEFAULT) ",
        TryConstruct::Trim => "@try_construct(TRIM) ",
    });
    if let Some(unit) = &annotations.unit {
        let _ = write!(words, "@unit({}) ", quoted(unit));
    }
    for (name, value) in [("min", &annotations.min), ("max", &annotations.max)] {
        if let Some(value) = value {
            let _ = write!(words, "@{name}({value}) ");
        }
    }
    words.extend(annotations.default.as_deref().map(|default| annotation(of, default)));
    match annotations.hash_id.as_deref() {
        None => {}
        Some("") => words.push_str("@hashid "),
        Some(text) => {
            let _ = write!(words, "@hashid({}) ", quoted(text));
        }
    }
    words
}

fn of_union(union: &Union, name: &str) -> String {
    let nested = if union.is_nested { "@nested " } else { "" };
    let hashed = if union.has_hashed_ids { "@autoid(HASH) " } else { "" };
    let key = if union.is_keyed { "@key " } else { "" };
    let mut next = u32::from(union.extensibility == Extensibility::Mutable);
    let cases: Vec<String> = union
        .cases
        .iter()
        .map(|case| {
            let text = of_case(case, union, next);
            next = case.id + 1;
            text
        })
        .collect();
    let (extensibility, discriminator) = (word(union.extensibility), spelled(&union.discriminator));
    // Without the annotation's end, the name of an enumeration would be a part of the annotation's.
    let discriminator = if key.is_empty() { &discriminator } else { discriminator.trim_start_matches("::") };
    format!("{nested}{hashed}{extensibility} union {name} switch ({key}{discriminator}) {{\n{}}};", cases.concat())
}

fn of_case(case: &UnionCase, union: &Union, next: u32) -> String {
    let mut text = String::new();
    for label in &case.labels {
        let _ = writeln!(text, "  case {}:", label_text(&union.discriminator, *label));
    }
    if case.is_default {
        text.push_str("  default:\n");
    }
    // A case without a member has no IDL; an octet takes its place.
    let case_type = case.case_type.clone().unwrap_or(Type::Primitive(Primitive::Byte));
    let external = if case.is_external { "@external " } else { "" };
    let id = id(&case.name, case.id, union.has_hashed_ids, next, &case.annotations);
    let remarks = remarks(&case_type, &case.annotations, case.try_construct);
    let declared = declared(&case_type, &escaped(&case.name));
    let _ = writeln!(text, "    {};", annotated(format!("{external}{id}{remarks}"), case.id, &declared));
    text
}

fn label_text(discriminator: &Type, label: i32) -> String {
    match discriminator.resolved() {
        Type::Enumeration(enumeration) => {
            enumeration.literal_of(label).map_or_else(|| label.to_string(), |literal| escaped(&literal.name))
        }
        Type::Primitive(Primitive::Boolean) => if label == 0 { "FALSE" } else { "TRUE" }.to_owned(),
        Type::Primitive(Primitive::UInt32) => label.cast_unsigned().to_string(),
        _ => label.to_string(),
    }
}

fn of_enumeration(enumeration: &Enumeration, name: &str) -> String {
    let mut next = 0_i32;
    let literals: Vec<String> = enumeration
        .literals
        .iter()
        .enumerate()
        .map(|(index, literal)| {
            let default = if index == enumeration.default && index != 0 { "@default_literal " } else { "" };
            let value = if literal.value == next { String::new() } else { format!("@value({}) ", literal.value) };
            next = literal.value.wrapping_add(1);
            format!("  {default}{value}{}", escaped(&literal.name))
        })
        .collect();
    let bits =
        if enumeration.bit_bound == 32 { String::new() } else { format!("@bit_bound({}) ", enumeration.bit_bound) };
    let extensibility = enumeration.extensibility.map(|told| format!("{} ", word(told))).unwrap_or_default();
    format!("{bits}{extensibility}enum {name} {{\n{}\n}};", literals.join(",\n"))
}

fn of_bitset(bitset: &Bitset, name: &str) -> String {
    let mut text = format!("bitset {name} {{\n");
    let mut at = 0;
    for field in &bitset.fields {
        if field.position > at {
            let _ = writeln!(text, "  bitfield<{}>;", field.position - at);
        }
        let _ = writeln!(text, "  bitfield<{}, {}> {};", field.bits, field.holder.idl(), escaped(&field.name));
        at = field.position + u16::from(field.bits);
    }
    if bitset.bits > at {
        let _ = writeln!(text, "  bitfield<{}>;", bitset.bits - at);
    }
    text + "};"
}

/// A type with the name of what has it, and the dimensions of an array behind that.
fn declared(of: &Type, name: &str) -> String {
    let (mut element, mut dimensions) = (of, String::new());
    while let Type::Array { element: of_element, count } = element {
        let _ = write!(dimensions, "[{count}]");
        element = of_element;
    }
    format!("{} {name}{dimensions}", spelled(element))
}

/// The name of an array that has none: one for each type, made of its text.
fn array_name(of: &Type) -> String {
    let letters = declared(of, "").chars().fold(String::new(), |mut name, letter| {
        match letter {
            ' ' | ']' => {}
            '[' => name.push_str("_by"),
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            '_' => name.push_str("__"),
            other => {
                let _ = write!(name, "_{:x}_", u32::from(other));
            }
        }
        name
    });
    format!("Array_of_{letters}")
}

fn spelled(of: &Type) -> String {
    let bound = |bound: &Option<usize>| bound.map(|bound| format!(", {bound}")).unwrap_or_default();
    match of {
        Type::Primitive(primitive) => primitive.idl().to_owned(),
        Type::String { bound: None } => "string".to_owned(),
        Type::String { bound: Some(bound) } => format!("string<{bound}>"),
        Type::WString { bound: None } => "wstring".to_owned(),
        Type::WString { bound: Some(bound) } => format!("wstring<{bound}>"),
        Type::Sequence { element, bound: most } => format!("sequence<{}{}>", spelled(element), bound(most)),
        Type::Map { key, element, bound: most } => {
            format!("map<{}, {}{}>", spelled(key), spelled(element), bound(most))
        }
        Type::Array { .. } => global(&array_name(of)),
        other => other.name().map(global).unwrap_or_default(),
    }
}

fn word(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "@final",
        Extensibility::Appendable => "@appendable",
        Extensibility::Mutable => "@mutable",
    }
}

fn global(name: &str) -> String {
    name.split("::").map(|part| format!("::{}", escaped(part))).collect()
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", on_one_line(&text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")))
}

/// The name, with an underscore in front if it is a word of IDL (IDL 4.2 §7.2.3.2). Names may come from strangers: one with letters that
/// end a line gives no text that is read back, and no further line.
pub(super) fn escaped(name: &str) -> String {
    let lower = name.to_lowercase();
    let is_taken = KEYWORDS.contains(&lower.as_str()) || name.starts_with('_');
    on_one_line(&if is_taken { format!("_{name}") } else { name.to_owned() })
}

/// The text with control letters as IDL writes them in texts.
fn on_one_line(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter.is_control() {
            true => _ = write!(out, "\\u{:04x}", u32::from(letter)),
            false => out.push(letter),
        }
    }
    out
}

const KEYWORDS: [&str; 76] = [
    "abstract",
    "any",
    "alias",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "boolean",
    "case",
    "char",
    "component",
    "connector",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "false",
    "finder",
    "fixed",
    "float",
    "getraises",
    "getter",
    "home",
    "import",
    "in",
    "inout",
    "int16",
    "int32",
    "int64",
    "int8",
    "interface",
    "local",
    "long",
    "manages",
    "map",
    "mirrorport",
    "module",
    "multiple",
    "native",
    "object",
    "octet",
    "oneway",
    "out",
    "port",
    "porttype",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "true",
    "typedef",
    "typeid",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "union",
    "unsigned",
    "uses",
];
