//! Types from ROS 2's `.msg`, `.srv` and `.action` files, alone or in installed `share` folders.
//!
//! They become what ROS 2 has on the wire: final structures named `package::msg::dds_::Name_`, members under their own names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Annotations, Primitive, Structure, StructureMember, Type};

use crate::codec::default_text;
use crate::docs::SourceDocs;
use crate::idl::IdlError;
use crate::row::ros_default;

/// The packages in which definitions are looked for, and those that were read.
#[derive(Clone, Debug, Default)]
pub struct RosPackages {
    shares: Vec<PathBuf>,
    read: BTreeMap<String, Type>,
    /// Files that are being read: a definition cannot contain itself.
    open: Vec<PathBuf>,
    docs: SourceDocs,
}

/// Most bytes of a definition, chosen by us: a hundred times the longest in use.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// The parts of a file: kind of file, and the endings of the types' names.
const PARTS: [(&str, &[&str]); 3] =
    [("msg", &[""]), ("srv", &["_Request", "_Response"]), ("action", &["_Goal", "_Result", "_Feedback"])];

impl RosPackages {
    /// Packages in these folders, each like `/opt/ros/jazzy/share`.
    pub fn new(shares: impl IntoIterator<Item = PathBuf>) -> RosPackages {
        RosPackages { shares: shares.into_iter().collect(), ..RosPackages::default() }
    }

    /// The folders that an environment has: `share` below each path in the value of `AMENT_PREFIX_PATH`.
    pub fn of_prefixes(prefixes: &str) -> RosPackages {
        RosPackages::new(
            prefixes.split(':').filter(|prefix| !prefix.is_empty()).map(|prefix| Path::new(prefix).join("share")),
        )
    }

    /// The comments that document the types that were read: the lines at the top of a definition, and those in front of a member and on its
    /// line.
    pub fn docs(&self) -> &SourceDocs {
        &self.docs
    }

    /// The type of a name on the wire, `package::msg::dds_::Name_`, or in ROS, `package/msg/Name`. `None` when no package has it.
    ///
    /// # Errors
    /// The first thing in a definition that is not understood, with its place.
    pub fn find(&mut self, name: &str) -> Result<Option<Type>, IdlError> {
        let name = ros_name(name);
        let parts: Vec<&str> = name.split('/').collect();
        let [package, kind, own] = parts[..] else { return Ok(None) };
        if let Some(found) = self.read.get(&name) {
            return Ok(Some(found.clone()));
        }
        let Some((_, endings)) = PARTS.iter().find(|(known, _)| *known == kind) else { return Ok(None) };
        // A service's request is in the file of the service; names of actions may have several endings.
        let stems = std::iter::once(own)
            .chain(endings.iter().chain(&ACTION_ENDINGS).filter_map(|ending| own.strip_suffix(ending)));
        let file = stems
            .flat_map(|stem| {
                self.shares.iter().map(move |share| share.join(package).join(kind).join(format!("{stem}.{kind}")))
            })
            .find(|file| file.is_file());
        let Some(file) = file else { return Ok(None) };
        self.read_file(package, &file)?;
        Ok(self.read.get(&name).cloned())
    }

    /// Reads a file of a package; its types are found afterwards by their names.
    ///
    /// # Errors
    /// As [`find`](Self::find), and when the file cannot be read.
    pub fn read_file(&mut self, package: &str, file: &Path) -> Result<Vec<Type>, IdlError> {
        let failed = |problem: String| error(Some(file), 1, 1, problem);
        if self.open.iter().any(|open| open == file) || self.open.len() >= NESTING_MAX {
            return Err(failed("the definition contains itself".to_owned()));
        }
        let length = std::fs::metadata(file).map_err(|error| failed(error.to_string()))?.len();
        if length > TEXT_BYTES_MAX {
            return Err(failed(format!("more than {TEXT_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        self.open.push(file.to_owned());
        let types = self.read_text(package, extension, stem, &text, Some(file));
        self.open.pop();
        types
    }

    /// Reads the text of a file with this name and kind: `msg`, `srv` or `action`.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn read_text(
        &mut self,
        package: &str,
        kind: &str,
        stem: &str,
        text: &str,
        file: Option<&Path>,
    ) -> Result<Vec<Type>, IdlError> {
        let Some((kind, endings)) = PARTS.iter().find(|(known, _)| *known == kind) else {
            return Err(error(file, 1, 1, format!("{kind:?} is none of msg, srv and action")));
        };
        let mut types = Vec::new();
        let mut line = 1;
        let mut sections = vec![(line, Vec::new())];
        for text in text.lines() {
            if text.trim() == "---" {
                sections.push((line + 1, Vec::new()));
            } else if let Some((_, lines)) = sections.last_mut() {
                lines.push(text);
            }
            line += 1;
        }
        if sections.len() != endings.len() {
            let problem =
                format!("{} parts between lines of ---, where a .{kind} has {}", sections.len(), endings.len());
            return Err(error(file, line, 1, problem));
        }
        for ((first, lines), ending) in sections.iter().zip(*endings) {
            let name = format!("{package}::{kind}::dds_::{stem}{ending}_");
            let mut members = Vec::new();
            let mut comments = Comments::at_top();
            for (at, text) in lines.iter().enumerate() {
                let known = members.len();
                self.member(package, text, (file, first + at), &mut members)?;
                let added = members.get(known).map(|member| &*member.name);
                comments.follow(text, &name, added, &mut self.docs);
            }
            comments.end(&name, &mut self.docs);
            types.push(self.define(package, kind, &format!("{stem}{ending}"), members));
        }
        if let [goal, result, feedback] = &types[..]
            && *kind == "action"
        {
            let parts = [goal.clone(), result.clone(), feedback.clone()];
            types.extend(self.around_action(package, stem, parts)?);
        }
        Ok(types)
    }

    fn define(&mut self, package: &str, kind: &str, name: &str, mut members: Vec<StructureMember>) -> Type {
        if members.is_empty() {
            // IDL 3 has no structure without members.
            let filler = Type::Primitive(Primitive::UInt8);
            members.push(StructureMember::new("structure_needs_at_least_one_member", 0, filler));
        }
        let structure = Structure {
            name: format!("{package}::{kind}::dds_::{name}_"),
            extensibility: Extensibility::Final,
            base: None,
            members,
            is_nested: false,
            has_hashed_ids: false,
        };
        let made = Type::Structure(Arc::new(structure));
        self.read.insert(format!("{package}/{kind}/{name}"), made.clone());
        made
    }

    /// The types that carry the parts of an action (REP 2004 and `rosidl_parser`).
    fn around_action(
        &mut self,
        package: &str,
        stem: &str,
        [goal, result, feedback]: [Type; 3],
    ) -> Result<Vec<Type>, IdlError> {
        let uuid = match self.find("unique_identifier_msgs/msg/UUID")? {
            Some(found) => found,
            None => {
                let octets = Type::Array { element: Box::new(Type::Primitive(Primitive::UInt8)), count: 16 };
                self.define("unique_identifier_msgs", "msg", "UUID", vec![StructureMember::new("uuid", 0, octets)])
            }
        };
        let stamp = match self.find("builtin_interfaces/msg/Time")? {
            Some(found) => found,
            None => self.time(),
        };
        let primitive = Type::Primitive;
        let of = |members: Vec<(&str, Type)>| {
            let numbered = members.into_iter().zip(0..);
            numbered.map(|((name, of), id)| StructureMember::new(name, id, of)).collect::<Vec<_>>()
        };
        let types = [
            ("SendGoal_Request", of(vec![("goal_id", uuid.clone()), ("goal", goal)])),
            ("SendGoal_Response", of(vec![("accepted", primitive(Primitive::Boolean)), ("stamp", stamp)])),
            ("GetResult_Request", of(vec![("goal_id", uuid.clone())])),
            ("GetResult_Response", of(vec![("status", primitive(Primitive::Int8)), ("result", result)])),
            ("FeedbackMessage", of(vec![("goal_id", uuid), ("feedback", feedback)])),
        ];
        Ok(types
            .into_iter()
            .map(|(ending, members)| self.define(package, "action", &format!("{stem}_{ending}"), members))
            .collect())
    }

    /// `builtin_interfaces/Time`, which every installation has.
    fn time(&mut self) -> Type {
        let (seconds, nanoseconds) = (Type::Primitive(Primitive::Int32), Type::Primitive(Primitive::UInt32));
        let members = vec![StructureMember::new("sec", 0, seconds), StructureMember::new("nanosec", 1, nanoseconds)];
        self.define("builtin_interfaces", "msg", "Time", members)
    }

    /// Reads one line: a member, with its default perhaps, a constant, or neither.
    fn member(
        &mut self,
        package: &str,
        text: &str,
        (file, line): (Option<&Path>, usize),
        members: &mut Vec<StructureMember>,
    ) -> Result<(), IdlError> {
        let code = without_comment(text);
        let mut words = code.split_whitespace();
        let Some(type_word) = words.next() else { return Ok(()) };
        let column = |word: &str| text.find(word).map_or(1, |at| at + 1);
        let failed = |word: &str, problem: String| error(file, line, column(word), problem);
        let Some(name) = words.next() else {
            return Err(failed(type_word, format!("{type_word} needs a name behind it")));
        };
        let rest = words.next().unwrap_or_default();
        if name.contains('=') || rest.starts_with('=') {
            return Ok(()); // A constant is no part of a sample.
        }
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        if !is_name {
            return Err(failed(name, format!("{name:?} is no name of a member")));
        }
        if members.iter().any(|member| *member.name == *name) {
            return Err(failed(name, format!("there is a member {name} already")));
        }
        let member_type = self.member_type(package, type_word, file).map_err(|problem| match problem {
            Problem::Here(problem) => failed(type_word, problem),
            Problem::Elsewhere(error) => error,
        })?;
        // A text stands there without quotes, too.
        let given = code.trim_start()[type_word.len()..].trim_start()[name.len()..].trim();
        let read = || default_text(&member_type, &ros_default(&member_type, given));
        let default = (!given.is_empty()).then(read).transpose();
        let default = default.map_err(|error| failed(rest, format!("the default of {name}: {error}")))?;
        let id = members.len() as u32;
        let annotations = Annotations { default, ..Annotations::default() };
        members.push(StructureMember { annotations, ..StructureMember::new(name, id, member_type) });
        Ok(())
    }

    fn member_type(&mut self, package: &str, word: &str, file: Option<&Path>) -> Result<Type, Problem> {
        let (base, array) = match word.find('[') {
            Some(at) if word.ends_with(']') => (&word[..at], Some(&word[at + 1..word.len() - 1])),
            Some(_) => return Err(Problem::Here(format!("{word} has a bracket without end"))),
            None => (word, None),
        };
        let element = self.element(package, base, file)?;
        let size = |digits: &str| match digits.parse::<u32>() {
            Ok(size) if size > 0 => Ok(size as usize),
            _ => Err(Problem::Here(format!("{digits:?} is no size"))),
        };
        let element_of = Box::new(element.clone());
        Ok(match array {
            None => element,
            Some("") => Type::Sequence { element: element_of, bound: None },
            Some(bound) => match bound.strip_prefix("<=") {
                Some(most) => Type::Sequence { element: element_of, bound: Some(size(most)?) },
                None => Type::Array { element: element_of, count: size(bound)? },
            },
        })
    }

    fn element(&mut self, package: &str, word: &str, file: Option<&Path>) -> Result<Type, Problem> {
        let (base, bound) = match word.split_once("<=") {
            None => (word, None),
            Some((base, digits)) => {
                let most = digits.parse().ok().filter(|most| *most > 0);
                (base, Some(most.ok_or_else(|| Problem::Here(format!("{digits:?} is no bound")))?))
            }
        };
        let primitive = match base {
            "string" => return Ok(Type::String { bound }),
            "wstring" => return Ok(Type::WString { bound }),
            _ if bound.is_some() => return Err(Problem::Here(format!("{base} has no bound"))),
            "bool" => Primitive::Boolean,
            "byte" => Primitive::Byte,
            "char" | "uint8" => Primitive::UInt8,
            "int8" => Primitive::Int8,
            "int16" => Primitive::Int16,
            "uint16" => Primitive::UInt16,
            "int32" => Primitive::Int32,
            "uint32" => Primitive::UInt32,
            "int64" => Primitive::Int64,
            "uint64" => Primitive::UInt64,
            "float32" => Primitive::Float32,
            "float64" => Primitive::Float64,
            _ => return self.named(package, base, file),
        };
        Ok(Type::Primitive(primitive))
    }

    fn named(&mut self, package: &str, base: &str, file: Option<&Path>) -> Result<Type, Problem> {
        let name = match base.split('/').collect::<Vec<_>>()[..] {
            [own] => format!("{package}/msg/{own}"),
            [package, own] => format!("{package}/msg/{own}"),
            _ => base.to_owned(),
        };
        let beside =
            file.and_then(Path::parent).map(|folder| folder.join(format!("{base}.msg"))).filter(|file| file.is_file());
        let found = match self.find(&name).map_err(Problem::Elsewhere)? {
            None => match beside {
                Some(beside) if !base.contains('/') => {
                    let read = self.read_file(package, &beside).map_err(Problem::Elsewhere)?;
                    read.into_iter().next()
                }
                _ => None,
            },
            found => found,
        };
        // Definitions of ROS 1 name it without its package.
        let found = match found {
            None if base == "Header" => self.find("std_msgs/msg/Header").map_err(Problem::Elsewhere)?,
            found => found,
        };
        found.ok_or_else(|| Problem::Here(format!("no package has the type {name}; name the share folder that has it")))
    }
}

/// Endings of the types around an action.
const ACTION_ENDINGS: [&str; 5] =
    ["_SendGoal_Request", "_SendGoal_Response", "_GetResult_Request", "_GetResult_Response", "_FeedbackMessage"];
/// Deepest nesting of definitions; that of values in the codec.
const NESTING_MAX: usize = thalweg_cdr::NESTING_MAX as usize;

/// The comments of a definition so far.
struct Comments {
    lines: Vec<String>,
    /// Only comments came.
    is_at_top: bool,
}

impl Comments {
    fn at_top() -> Comments {
        Comments { lines: Vec::new(), is_at_top: true }
    }

    /// Takes a line, which adds this member if it adds one. As `rosidl` has it, the comments at the top are those of the type.
    fn follow(&mut self, text: &str, of: &str, member: Option<&str>, docs: &mut SourceDocs) {
        let code = without_comment(text);
        let comment = text[code.len()..].trim_start_matches('#').trim();
        let is_comment = code.trim().is_empty() && code.len() < text.len();
        if !is_comment {
            self.end(of, docs);
        }
        if is_comment || member.is_some() {
            self.lines.push(comment.to_owned());
        }
        if member.is_some() {
            docs.add(of, member, &self.lines.join("\n"));
        }
        if !is_comment && !code.trim().is_empty() {
            self.lines.clear();
        }
    }

    /// What is at the top has ended: a line that is no comment, or the definition.
    fn end(&mut self, of: &str, docs: &mut SourceDocs) {
        if std::mem::take(&mut self.is_at_top) {
            docs.add(of, None, &std::mem::take(&mut self.lines).join("\n"));
        }
    }
}

/// A fault, at this word or in another file.
enum Problem {
    Here(String),
    Elsewhere(IdlError),
}

/// `package/msg/Name` of `package::msg::dds_::Name_`; another name stays as it is.
pub fn ros_name(name: &str) -> String {
    let parts: Vec<&str> = name.split("::").collect();
    match parts[..] {
        [package, kind, "dds_", own] => format!("{package}/{kind}/{}", own.strip_suffix('_').unwrap_or(own)),
        [package, kind, own] => format!("{package}/{kind}/{own}"),
        _ => name.to_owned(),
    }
}

/// The line without what follows a `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, character) in line.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if character == '#' => return &line[..at],
            None if character == '"' || character == '\'' => quote = Some(character),
            None => {}
        }
    }
    // A quote without end is a letter of a comment or a default: only what is in front of a `#` counts then.
    if quote.is_some() { line.split('#').next().unwrap_or_default() } else { line }
}

fn error(file: Option<&Path>, line: usize, column: usize, problem: String) -> IdlError {
    IdlError { file: file.map(|file| file.display().to_string()), line, column, problem }
}

#[cfg(test)]
mod tests;
