//! Types as the schemas of MCAP's registry: `ros2msg` for messages of ROS 2, `omgidl` for all others.

use std::collections::BTreeSet;
use std::fmt::Write;

use thalweg_types::ros::RosPackages;
use thalweg_types::{Primitive, Structure, StructureMember, Type, idl};

/// A schema of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSchema {
    /// The type's name as the encoding has it: `std_msgs/msg/String`, `sensors::Reading`.
    pub name: String,
    /// `ros2msg` or `omgidl` of MCAP's registry, empty where there is no definition; in files of others also `ros2idl`, or anything else.
    pub encoding: String,
    /// The definition with all that it needs.
    pub text: String,
}

/// The encoding of ROS 2's definitions.
pub const ROS2MSG: &str = "ros2msg";
/// The encoding of IDL.
pub const OMGIDL: &str = "omgidl";

impl TypeSchema {
    /// The schema of a type that has this name on the wire.
    pub fn of(type_name: &str, of: &Type) -> TypeSchema {
        if let (Some(name), Type::Structure(structure)) = (ros_type(type_name), of.resolved())
            && let Some(text) = ros_text(structure)
        {
            return TypeSchema { name, encoding: ROS2MSG.to_owned(), text };
        }
        TypeSchema { name: type_name.to_owned(), encoding: OMGIDL.to_owned(), text: idl_text(of) }
    }

    /// The name alone, of a type that nobody describes: the empty encoding says that there is no definition.
    pub fn undescribed(type_name: &str) -> TypeSchema {
        let name = ros_type(type_name).unwrap_or_else(|| type_name.to_owned());
        TypeSchema { name, encoding: String::new(), text: String::new() }
    }

    /// The name that the type has on the wire.
    pub fn wire_type_name(&self) -> String {
        match self.name.split('/').collect::<Vec<_>>()[..] {
            [package, kind, own] => format!("{package}::{kind}::dds_::{own}_"),
            [package, own] => format!("{package}::msg::dds_::{own}_"),
            _ => self.name.clone(),
        }
    }

    /// Whether the text has names that begin with `::`, which Foxglove's parser does not read (omgidl-parser 1.2).
    pub fn has_global_names(&self) -> bool {
        self.text != without_global_marks(&self.text)
    }

    /// The type, if the schema is one of the two that are understood.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn to_type(&self) -> Result<Option<Type>, String> {
        match self.encoding.as_str() {
            OMGIDL => {
                let types = idl::parse(&self.text).map_err(|error| error.to_string())?;
                types.find(&self.name).cloned().map(Some).ok_or_else(|| format!("there is no type {}", self.name))
            }
            ROS2MSG => of_ros_text(&self.name, &self.text).map(Some),
            _ => Ok(None),
        }
    }
}

/// The type as IDL. Names of types go without the `::` of global ones, for Foxglove's parser, wherever the text reads as the same type
/// without them.
fn idl_text(of: &Type) -> String {
    let global = idl::to_idl([of]);
    let relative = without_global_marks(&global);
    let read = idl::parse(&relative).ok();
    // Texts are compared rather than types, which may be in each other very often.
    let is_same =
        of.name().and_then(|name| read.as_ref()?.find(name)).is_some_and(|read| idl::to_idl([read]) == global);
    if is_same { relative } else { global }
}

/// A text of IDL without each `::` that begins a name; texts in quotes stay.
fn without_global_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_quoted = false;
    while let Some(letter) = rest.chars().next() {
        let begins_name = !out.ends_with(|before: char| before.is_ascii_alphanumeric() || before == '_');
        if !is_quoted && begins_name && rest.starts_with("::") {
            rest = &rest[2..];
            continue;
        }
        is_quoted ^= letter == '"' && !out.ends_with('\\');
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    out
}

/// `pkg/msg/Name` of `pkg::msg::dds_::Name_`.
fn ros_type(type_name: &str) -> Option<String> {
    match type_name.split("::").collect::<Vec<_>>()[..] {
        [package, kind, "dds_", own] => Some(format!("{package}/{kind}/{}", own.strip_suffix('_')?)),
        _ => None,
    }
}

/// The name of a topic as ROS 2 shows it, if it is one of its topics.
pub fn shown_topic(name: &str) -> String {
    name.strip_prefix("rt/").map_or_else(|| name.to_owned(), |ros| format!("/{ros}"))
}

/// The name of a topic on the wire that ROS 2 shows like this.
pub fn wire_topic(shown: &str) -> String {
    shown.strip_prefix('/').map_or_else(|| shown.to_owned(), |ros| format!("rt/{ros}"))
}

/// A definition with those of the messages in it behind it; `None` where ROS 2 cannot say the same.
fn ros_text(structure: &Structure) -> Option<String> {
    let mut pending: Vec<Structure> = Vec::new();
    let mut text = ros_members(structure, &mut pending)?;
    let mut written = BTreeSet::new();
    while let Some(next) = pending.pop() {
        if !written.insert(next.name.clone()) {
            continue;
        }
        let name = short_name(&next.name)?;
        let members = ros_members(&next, &mut pending)?;
        let _ = write!(text, "{}\nMSG: {name}\n{members}", "=".repeat(80));
    }
    Some(text)
}

/// `pkg/Name` of `pkg::msg::dds_::Name_`.
fn short_name(type_name: &str) -> Option<String> {
    let name = ros_type(type_name)?;
    let (package, rest) = name.split_once('/')?;
    Some(format!("{package}/{}", rest.strip_prefix("msg/")?))
}

fn ros_members(structure: &Structure, pending: &mut Vec<Structure>) -> Option<String> {
    use thalweg::cdr::Extensibility::Final;
    if structure.extensibility != Final || structure.base.is_some() || structure.is_keyed() {
        return None;
    }
    let mut text = String::new();
    for member in &structure.members {
        if member.is_optional {
            return None;
        }
        // Type objects of rmw_fastrtps end the names of members in an underscore, which definitions have not.
        let name = member.name.strip_suffix('_').unwrap_or(&member.name);
        let default = ros_default(member)?;
        let _ = writeln!(text, "{} {name}{default}", ros_word(&member.member_type, pending)?);
    }
    Some(text)
}

/// What stands behind the name of a member that has a default; `None` where its text has what the two languages escape differently.
fn ros_default(member: &StructureMember) -> Option<String> {
    match &member.annotations.default {
        None => Some(String::new()),
        Some(json) if json.contains('\\') => None,
        Some(json) => Some(format!(" {json}")),
    }
}

fn ros_word(of: &Type, pending: &mut Vec<Structure>) -> Option<String> {
    Some(match of.resolved() {
        Type::Sequence { element, bound } => {
            let bound = bound.map(|bound| format!("<={bound}")).unwrap_or_default();
            format!("{}[{bound}]", ros_element(element, pending)?)
        }
        Type::Array { element, count } => format!("{}[{count}]", ros_element(element, pending)?),
        other => ros_element(other, pending)?,
    })
}

fn ros_element(of: &Type, pending: &mut Vec<Structure>) -> Option<String> {
    let bounded = |word: &str, bound: &Option<usize>| match bound {
        Some(bound) => format!("{word}<={bound}"),
        None => word.to_owned(),
    };
    Some(match of.resolved() {
        Type::String { bound } => bounded("string", bound),
        Type::WString { bound } => bounded("wstring", bound),
        Type::Primitive(primitive) => match primitive {
            Primitive::Boolean => "bool",
            Primitive::Byte => "byte",
            Primitive::UInt8 => "uint8",
            Primitive::Int8 => "int8",
            Primitive::Int16 => "int16",
            Primitive::UInt16 => "uint16",
            Primitive::Int32 => "int32",
            Primitive::UInt32 => "uint32",
            Primitive::Int64 => "int64",
            Primitive::UInt64 => "uint64",
            Primitive::Float32 => "float32",
            Primitive::Float64 => "float64",
            Primitive::Float128 | Primitive::Char8 | Primitive::Char16 => return None,
        }
        .to_owned(),
        Type::Structure(structure) => {
            pending.push((**structure).clone());
            short_name(&structure.name)?
        }
        _ => return None,
    })
}

/// The type of a definition with those that it needs behind it.
fn of_ros_text(name: &str, text: &str) -> Result<Type, String> {
    let mut sections = vec![(name.to_owned(), String::new())];
    for line in text.lines() {
        let is_border = line.len() >= 3 && line.bytes().all(|byte| byte == b'=');
        if let Some(name) = line.strip_prefix("MSG: ") {
            if sections.len() == SECTIONS_MAX {
                return Err(format!("more than {SECTIONS_MAX} definitions"));
            }
            sections.push((name.trim().to_owned(), String::new()));
        } else if let Some((_, text)) = sections.last_mut().filter(|_| !is_border) {
            text.push_str(line);
            text.push('\n');
        }
    }
    let mut packages = RosPackages::default();
    // A definition may stand before those that it needs: what is not understood yet is tried again behind the others.
    while !sections.is_empty() {
        let count = sections.len();
        let mut problem = String::new();
        let mut rest = Vec::new();
        for (own, text) in sections {
            match read_section(&mut packages, &own, &text) {
                Ok(()) => {}
                Err(error) => {
                    problem = format!("{own}: {error}");
                    rest.push((own, text));
                }
            }
        }
        if rest.len() == count {
            return Err(problem);
        }
        sections = rest;
    }
    let found = packages.find(name).map_err(|error| error.to_string())?;
    found.ok_or_else(|| format!("there is no definition of {name}"))
}

fn read_section(packages: &mut RosPackages, name: &str, text: &str) -> Result<(), String> {
    let (package, own) = match name.split('/').collect::<Vec<_>>()[..] {
        [package, own] | [package, "msg", own] => (package, own),
        _ => return Err(format!("{name:?} is no name of a message")),
    };
    packages.read_text(package, "msg", own, text, None).map(drop).map_err(|error| error.to_string())
}

/// Most definitions in a schema, chosen by us: the deepest messages in use have two dozen.
const SECTIONS_MAX: usize = 512;
