//! What viewers do not read: the decoders of Foxglove (omgidl-parser 1.1 to 1.2, omgidl-serialization 1.0 to 1.2, rosmsg2-serialization 3)
//! and of Lichtblick (1.0). A type is called unread as soon as one of them misreads a sample of it.

use std::collections::BTreeSet;

use thalweg::Type;
use thalweg::cdr::Extensibility;
use thalweg::cdr::description::Primitive;
use thalweg_recording::schema::{ROS2MSG, TypeSchema};

/// The limits of the decoders for the samples of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecoderLimits {
    is_ros: bool,
    always: Option<String>,
    in_xcdr1: Option<String>,
    in_xcdr2: Option<String>,
}

impl DecoderLimits {
    /// The limits for samples of a type with this schema.
    pub fn of(schema: &TypeSchema, of: &Type) -> DecoderLimits {
        let is_ros = schema.encoding == ROS2MSG;
        let unnamed = (!is_ros && of.name() != Some(&schema.name))
            .then(|| format!("its definition calls the type {}", of.name().unwrap_or("nothing")));
        let find = |unread: &Unread<'_>| Walk::new(of).find(of, unread);
        let always = unnamed
            .or_else(|| if is_ros { None } else { unread_text(schema) })
            .or_else(|| find(&never_read).map(|what| format!("{what} are not read")));
        let root = extensibility(of);
        let in_xcdr1 = find(&|place| misread_in_xcdr1(root, place));
        let in_xcdr2 = find(&|place| misread_in_xcdr2(root, place));
        DecoderLimits {
            is_ros,
            always,
            in_xcdr1: in_xcdr1.map(|what| format!("{what} are misread in XCDR1")),
            in_xcdr2: in_xcdr2.map(|what| format!("{what} are misread in XCDR2")),
        }
    }

    /// Why no sample is read, whatever its encoding.
    pub fn of_type(&self) -> Option<&str> {
        self.always.as_deref()
    }

    /// Why a sample is not read, by the encoding that its header names (RTPS 2.5 §10.2.1.2, DDS-XTypes 1.3 §7.6.3.1.2).
    pub fn of_sample(&self, sample: &[u8]) -> Option<&str> {
        let encoding = match sample {
            [first, second, _, _, ..] => u16::from_be_bytes([*first, *second]),
            _ => return Some("they are shorter than the header of an encoding"),
        };
        match encoding {
            PL_CDR_BE..=PL_CDR_LE | D_CDR2_BE..=PL_CDR2_LE if self.is_ros => {
                Some("their encoding is one of extensible types, and ros2msg has none")
            }
            CDR_BE..=PL_CDR_LE => self.in_xcdr1.as_deref(),
            CDR2_BE..=PL_CDR2_LE => self.in_xcdr2.as_deref(),
            _ => Some("their encoding is none of CDR's"),
        }
    }
}

/// A type in the type of a topic, or a member of one.
enum Place<'a> {
    Aggregate(&'a Type),
    Member { owner: Extensibility, of: &'a Type, is_optional: bool },
}

/// What is not read in a place.
type Unread<'a> = dyn Fn(&Place<'_>) -> Option<&'static str> + 'a;

/// Looks at each member of a type and of those in it, each type once: types of strangers may name each other very often.
struct Walk {
    seen: BTreeSet<String>,
}

impl Walk {
    fn new(root: &Type) -> Walk {
        Walk { seen: root.name().map(str::to_owned).into_iter().collect() }
    }

    /// The first that is not read, with where it is.
    fn find(&mut self, of: &Type, unread: &Unread<'_>) -> Option<String> {
        let of = of.resolved();
        if let Some(what) = unread(&Place::Aggregate(of)) {
            return Some(format!("{what} (type {})", of.name().unwrap_or_default()));
        }
        let members: Vec<(&str, &Type, bool)> = match of {
            Type::Structure(structure) => {
                let members = structure.members.iter();
                members.map(|member| (&*member.name, &member.member_type, member.is_optional)).collect()
            }
            Type::Union(union) => {
                let cases = union.cases.iter();
                cases.filter_map(|case| Some((case.name.as_str(), case.case_type.as_ref()?, false))).collect()
            }
            _ => return None,
        };
        let owner = extensibility(of);
        for (name, member, is_optional) in members {
            if let Some(what) = unread(&Place::Member { owner, of: member, is_optional }) {
                return Some(format!("{what} (member {name})"));
            }
            let inner = element_of(member);
            let is_new = inner.name().is_none_or(|name| self.seen.insert(name.to_owned()));
            if is_new && let Some(found) = self.find(inner, unread) {
                return Some(found);
            }
        }
        None
    }
}

/// The type of the elements of all collections around it.
fn element_of(of: &Type) -> &Type {
    match of.resolved() {
        Type::Sequence { element, .. } | Type::Array { element, .. } => element_of(element),
        other => other,
    }
}

/// What the parser of definitions does not know.
fn unread_text(schema: &TypeSchema) -> Option<String> {
    if schema.text.lines().any(is_declaration) {
        return Some("types that contain themselves are not read".to_owned());
    }
    if schema.has_global_names() {
        return Some("names that begin with :: are not read".to_owned());
    }
    // Texts in quotes are no names.
    let words = schema.text.split('"').step_by(2).flat_map(|part| part.split(|letter: char| !is_of_name(letter)));
    words.into_iter().any(|word| word == "byte").then(|| "the name byte is a word of their language".to_owned())
}

/// Whether a line declares a type that is defined further on, which definitions do of types that contain themselves.
fn is_declaration(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("struct ") || line.starts_with("union ")) && line.ends_with(';')
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// What the parser or the decoder does not know, whatever the encoding.
fn never_read(place: &Place<'_>) -> Option<&'static str> {
    match place {
        Place::Aggregate(Type::Structure(structure)) => {
            let has_hashes = structure.members.iter().any(|member| member.annotations.hash_id.is_some());
            let is_hashed = structure.has_hashed_ids || structure.extensibility == Extensibility::Mutable && has_hashes;
            if structure.base.is_some() {
                return Some("structures that extend others");
            }
            is_hashed.then_some("members whose numbers are hashes")
        }
        Place::Aggregate(Type::Union(union)) => match union.discriminator.resolved() {
            Type::Primitive(Primitive::Int64 | Primitive::UInt64) => Some("unions that a number of 64 bits selects"),
            Type::Primitive(Primitive::Char8 | Primitive::Char16) => Some("unions that a character selects"),
            other => unread_value(other),
        },
        Place::Aggregate(_) => None,
        Place::Member { is_optional: true, .. } => Some("optional members"),
        Place::Member { of, .. } => unread_value(of),
    }
}

fn unread_value(of: &Type) -> Option<&'static str> {
    match of.resolved() {
        Type::Sequence { element, .. } => match element.resolved() {
            Type::Sequence { .. } => Some("sequences of sequences"),
            Type::Array { .. } => Some("sequences of arrays"),
            element => unread_value(element),
        },
        Type::Array { element, .. } => match element.resolved() {
            Type::Sequence { .. } => Some("arrays of sequences"),
            element => unread_value(element),
        },
        Type::Enumeration(of) if of.bit_bound <= 16 => Some("enumerations of 16 bits and less"),
        Type::Enumeration(of) if of.literals.iter().any(|literal| literal.value < 0) => {
            Some("enumerations with negative values")
        }
        Type::Map { .. } => Some("maps"),
        Type::Bitmask(_) => Some("bit masks"),
        Type::Bitset(_) => Some("bit sets"),
        Type::WString { .. } | Type::Primitive(Primitive::Char16) => Some("wide characters"),
        Type::Primitive(Primitive::Float128) => Some("values of long double"),
        _ => None,
    }
}

/// Whether types in a type have headers of members is taken from the encoding of the whole sample.
fn misread_in_xcdr1(root: Extensibility, place: &Place<'_>) -> Option<&'static str> {
    let Place::Member { of, .. } = place else { return None };
    let is_mixed = root != Extensibility::Mutable && extensibility(element_of(of)) == Extensibility::Mutable;
    is_mixed.then_some("mutable types in another")
}

/// Lengths before collections whose elements are not primitive (DDS-XTypes 1.3 §7.4.3.5.3, rule 12) are not read, or only in some types. What
/// types of other extensibility in a type have before them is taken from the encoding of the whole sample.
fn misread_in_xcdr2(root: Extensibility, place: &Place<'_>) -> Option<&'static str> {
    let Place::Member { owner, of, .. } = place else { return None };
    let framed = match of.resolved() {
        Type::Sequence { element, .. } if !element.is_primitive() => Some(element_of(element)),
        array @ Type::Array { element, .. } if !array.is_primitive_array() => Some(element_of(element)),
        _ => None,
    };
    if let Some(element) = framed {
        if *owner != Extensibility::Mutable {
            return Some("collections of other than primitive values");
        }
        let is_sequence = matches!(of.resolved(), Type::Sequence { .. });
        if is_sequence && matches!(element, Type::String { .. } | Type::Enumeration(_)) {
            return Some("sequences of strings and enumerations");
        }
    }
    match (root, extensibility(element_of(of))) {
        (Extensibility::Final, Extensibility::Appendable | Extensibility::Mutable) => {
            Some("extensible types in a final one")
        }
        (Extensibility::Appendable, Extensibility::Mutable) => Some("mutable types in an appendable one"),
        _ => None,
    }
}

/// The extensibility of a structure or union; others have nothing before them.
fn extensibility(of: &Type) -> Extensibility {
    match of.resolved() {
        Type::Structure(structure) => structure.extensibility,
        Type::Union(union) => union.extensibility,
        _ => Extensibility::Final,
    }
}

const CDR_BE: u16 = 0;
const PL_CDR_BE: u16 = 2;
const PL_CDR_LE: u16 = 3;
const CDR2_BE: u16 = 6;
const D_CDR2_BE: u16 = 8;
const PL_CDR2_LE: u16 = 0xb;
