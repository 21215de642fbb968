//! Types from ROS 2's `.msg`, `.srv` and `.action` files, alone or in installed `share` folders.
//!
//! They become what ROS 2 has on the wire: final structures named `package::msg::dds_::Name_`, members under their own names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Annotations, Primitive, Structure, StructureMember, Type};

use crate::codec::default_text;
use crate::idl::IdlError;
use crate::row::ros_default;

/// The packages in which definitions are looked for, and those that were read.
#[derive(Clone, Debug, Default)]
pub struct RosPackages {
    shares: Vec<PathBuf>,
    read: BTreeMap<String, Type>,
    /// Files that are being read: a definition cannot contain itself.
    open: Vec<PathBuf>,
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
            let mut members = Vec::new();
            for (at, text) in lines.iter().enumerate() {
                self.member(package, text, (file, first + at), &mut members)?;
            }
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
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::idl::to_idl;

    fn share() -> PathBuf {
        let share =
            std::env::temp_dir().join(format!("thalweg-ros-{}-{:?}", std::process::id(), std::thread::current().id()));
        let write = |name: &str, text: &str| {
            let file = share.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(file, text).expect("written");
        };
        write("builtin_interfaces/msg/Time.msg", "int32 sec\nuint32 nanosec\n");
        write("std_msgs/msg/Header.msg", "builtin_interfaces/Time stamp\nstring frame_id\n");
        write("std_msgs/msg/Empty.msg", "");
        write(
            "demo/msg/All.msg",
            "# All kinds.\nuint8 A=1 # a constant\nstring B=\"with # in it\"\nHeader header\nbool on true\nbyte b\nchar c\n\
             float32[3] x\nint16[] y\nfloat64[<=5] z [1, 2]\nstring<=7 s 'it''s'\nwstring w\nOther[2] others\nstring<=3[<=4] texts",
        );
        write("demo/msg/Other.msg", "int64 n\n");
        write("demo/msg/Loop.msg", "Loop again\n");
        write("demo/msg/Bad.msg", "int32 x\nint32 y 7\n  strange z\n");
        write("own/msg/Header.msg", "int64 number\n");
        write("own/msg/Headed.msg", "Header header\nstd_msgs/Header other\n");
        write("demo/srv/Add.srv", "int64 a\n---\nint64 sum\n");
        write("demo/action/Go.action", "int32 order\n---\nint32[] sequence\n---\nint32[] partial\n");
        share
    }

    #[test]
    fn definitions_become_the_types_that_ros_has_on_the_wire() {
        let mut packages = RosPackages::new([share()]);
        let all = packages.find("demo::msg::dds_::All_").expect("read").expect("found");
        let text = to_idl([&all]);
        for line in [
            "::std_msgs::msg::dds_::Header_ header;",
            "boolean on;",
            "octet b;",
            "uint8 c;",
            "float x[3];",
            "sequence<short> y;",
            "sequence<double, 5> z;",
            "string<7> s;",
            "wstring w;",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(
            text.contains("::demo::msg::dds_::Other_ others[2];") && text.contains("sequence<string<3>, 4> texts;"),
            "{text}"
        );
        let empty = to_idl([&packages.find("std_msgs/msg/Empty").expect("read").expect("found")]);
        assert!(empty.contains("uint8 structure_needs_at_least_one_member;"), "{empty}");
        for name in [
            "demo::srv::dds_::Add_Request_",
            "demo/srv/Add_Response",
            "demo/action/Go_FeedbackMessage",
            "demo/action/Go_Goal",
        ] {
            assert!(packages.find(name).expect("read").is_some(), "{name}");
        }
        assert_eq!(packages.find("nowhere/msg/Nothing"), Ok(None));
        assert_eq!(packages.find("ShapeType"), Ok(None));
    }

    #[test]
    fn members_have_the_defaults_that_ros_gives_them() {
        let mut packages = RosPackages::new([share()]);
        let text = r#"
            bool on true
            bool off 0
            int32 n -5 # five
            float64 x 0.25
            string a hello world
            string b "with # in it"
            string c 'it\'s'
            uint8[3] octets [1, 2, 3]
            float32[] row [1, 0.5]
            bool[<=2] flags [True, 0]
            string[] texts ["a, b", 'c']
            int32 none
            int32[] empty []
        "#;
        let types = packages.read_text("p", "msg", "T", text, None).expect("read");
        let Type::Structure(structure) = &types[0] else { panic!("a structure") };
        let empty = Document::Map(Vec::new());
        let told = crate::codec::completed(structure, empty).to_json().expect("JSON");
        let expect = r#"{"on":true,"off":false,"n":-5,"x":0.25,"a":"hello world","b":"with # in it","c":"it's","octets":"0x010203","row":[1.0,0.5],"flags":[true,false],"texts":["a, b","c"],"none":0,"empty":[]}"#;
        assert_eq!(String::from_utf8(told).expect("text"), expect);
        let inner = packages.read_text("p", "msg", "Outer", "T inner", None).expect("read");
        let Type::Structure(outer) = &inner[0] else { panic!("a structure") };
        let told = crate::codec::completed(outer, Document::Map(Vec::new())).to_json().expect("JSON");
        assert_eq!(String::from_utf8(told).expect("text"), format!(r#"{{"inner":{expect}}}"#));
    }

    #[test]
    fn a_name_without_a_package_is_that_of_the_own_package_first() {
        let mut packages = RosPackages::new([share()]);
        let text = to_idl([&packages.find("own/msg/Headed").expect("read").expect("found")]);
        for line in ["::own::msg::dds_::Header_ header;", "::std_msgs::msg::dds_::Header_ other;"] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_place() {
        let mut packages = RosPackages::new([share()]);
        let error = packages.find("demo/msg/Bad").expect_err("an error").to_string();
        assert!(
            error.ends_with(
                "demo/msg/Bad.msg:3:3: no package has the type demo/msg/strange; name the share folder that has it"
            ),
            "{error}"
        );
        let error = packages.find("demo/msg/Loop").expect_err("an error").to_string();
        assert!(error.contains("contains itself"), "{error}");
        let mut refused = |text: &str, part: &str| {
            let error = packages.read_text("p", "msg", "T", text, None).expect_err("an error").to_string();
            assert!(error.contains(part), "{part:?} in {error}");
        };
        refused("int32", "needs a name");
        refused("int32[0] x", "no size");
        refused("int32<=3 x", "has no bound");
        refused("int32 x\nint32 x", "line 2, column 7: there is a member x already");
        refused("int32 x\nint32 y extra", "line 2, column 9: the default of y: a whole number");
        refused("int8 x 128", "the default of x: a whole number from -128 to 127 is needed, not 128");
        refused("int8[2] x [1]", "1 elements, where there must be 2");
        refused("string<=2 x 'abc'", "3 bytes, where 2 are allowed");
        refused("int32 9x", "no name");
        refused("int32 x\n---\nint32 y", "2 parts");
    }
}
