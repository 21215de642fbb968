//! Whether samples of a writer's type fit the type of a reader (DDS-XTypes 1.3 §7.2.4).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Bitmask, Enumeration, Primitive, Structure, StructureMember, Type, Union, UnionCase};

use crate::type_object::name_hash;

/// The differences that a reader permits (DDS-XTypes 1.3 §7.6.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permitted {
    /// Bounds of sequences and maps need not fit.
    pub sequence_bounds: bool,
    /// Bounds of texts need not fit.
    pub string_bounds: bool,
    /// Members of one id may have different names.
    pub member_names: bool,
    /// The writer's type may lack members of the reader's.
    pub widening: bool,
}

impl Default for Permitted {
    /// As a reader that announces nothing.
    fn default() -> Permitted {
        Permitted { sequence_bounds: true, string_bounds: true, member_names: false, widening: true }
    }
}

/// Why types do not fit: the first member that differs, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDifference {
    /// The way to the member, `pose.position.x`; `[]` stands for the elements of a collection. Empty for the whole type.
    pub path: String,
    /// What differs.
    pub why: String,
}

impl fmt::Display for TypeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.why),
            path => write!(f, "{path}: {}", self.why),
        }
    }
}

/// Whether each sample of `writer` can be read as a sample of `reader`.
///
/// # Errors
/// The first difference that the rules do not permit.
pub fn check(writer: &Type, reader: &Type, permitted: Permitted) -> Result<(), TypeDifference> {
    let mut comparing = Comparing { permitted, path: Vec::new(), assumed: BTreeSet::new(), levels: 0 };
    comparing.types(writer, reader).map_err(|why| TypeDifference { path: comparing.path.concat(), why })
}

struct Comparing {
    permitted: Permitted,
    /// The way to what is compared, as it is written.
    path: Vec<String>,
    /// Pairs of types that fit, or are being compared: those that contain themselves fit unless something else differs.
    assumed: BTreeSet<Pair>,
    levels: usize,
}

/// Two types, and what is permitted of their parts.
type Pair = (Place, Place, Permitted);
/// Where a type is in memory: its address and 0, or that of its component and its place there, counted from 1.
type Place = (usize, usize);

/// Deepest nesting of what is compared, chosen for the stack of a thread: two components may lead through each other for as many
/// levels as there are pairs of their types.
const LEVELS_MAX: usize = 256;

type Fits = Result<(), String>;

fn differ<T>(why: impl Into<String>) -> Result<T, String> {
    Err(why.into())
}

impl Comparing {
    /// Compares within a member; after a difference the path stays as it is.
    fn within(&mut self, name: &str, compare: impl FnOnce(&mut Self) -> Fits) -> Fits {
        let step = if self.path.is_empty() || name == "[]" { name.to_owned() } else { format!(".{name}") };
        self.path.push(step);
        compare(self)?;
        self.path.pop();
        Ok(())
    }

    fn once<T>(&mut self, writer: &Arc<T>, reader: &Arc<T>, compare: impl FnOnce(&mut Self) -> Fits) -> Fits {
        let place = |of: &Arc<T>| (Arc::as_ptr(of).addr(), 0);
        let pair = (place(writer), place(reader), self.permitted);
        if pair.0 == pair.1 || !self.assumed.insert(pair) {
            return Ok(());
        }
        compare(self)
    }

    /// Compares where one of the two contains itself.
    fn recursive(&mut self, writer: &Type, reader: &Type) -> Fits {
        let place = |of: &Type| match of {
            Type::Recursive(part) => Some((Arc::as_ptr(&part.component()?).addr(), part.index() + 1)),
            _ => None,
        };
        if let (Some(one), Some(other)) = (place(writer), place(reader))
            && !self.assumed.insert((one, other, self.permitted))
        {
            return Ok(());
        }
        let (one, other) = (writer.followed(), reader.followed());
        match (&*one, &*other) {
            (Type::Recursive(part), _) | (_, Type::Recursive(part)) => {
                differ(format!("the definition of {} is gone", part.name()))
            }
            (one, other) => self.resolved(one, other),
        }
    }

    fn types(&mut self, writer: &Type, reader: &Type) -> Fits {
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return differ(format!("they nest more than {LEVELS_MAX} levels, which is not compared"));
        }
        self.resolved(writer.resolved(), reader.resolved())?;
        self.levels -= 1;
        Ok(())
    }

    fn resolved(&mut self, writer: &Type, reader: &Type) -> Fits {
        match (writer, reader) {
            (Type::Recursive(_), _) | (_, Type::Recursive(_)) => self.recursive(writer, reader),
            (Type::Primitive(one), Type::Primitive(other)) if one == other => Ok(()),
            (Type::String { bound: one }, Type::String { bound: other })
            | (Type::WString { bound: one }, Type::WString { bound: other }) => {
                bounds(*one, *other, self.permitted.string_bounds, "a text")
            }
            (Type::Sequence { element: one, bound: most }, Type::Sequence { element: other, bound: room }) => {
                bounds(*most, *room, self.permitted.sequence_bounds, "a sequence")?;
                self.within("[]", |comparing| comparing.types(one, other))
            }
            (Type::Array { element: one, count }, Type::Array { element: other, count: wanted }) => {
                if count != wanted {
                    return differ(format!("the writer has {count} elements, the reader {wanted}"));
                }
                self.within("[]", |comparing| comparing.types(one, other))
            }
            (
                Type::Map { key: key_one, element: one, bound: most },
                Type::Map { key: key_other, element: other, bound: room },
            ) => {
                bounds(*most, *room, self.permitted.sequence_bounds, "a map")?;
                self.within("[]", |comparing| {
                    comparing.types(key_one, key_other)?;
                    comparing.types(one, other)
                })
            }
            (Type::Enumeration(one), Type::Enumeration(other)) => enumerations(one, other),
            (Type::Bitmask(one), Type::Bitmask(other)) if one.bit_bound == other.bit_bound => Ok(()),
            (Type::Bitmask(mask), Type::Primitive(number)) | (Type::Primitive(number), Type::Bitmask(mask))
                if holds(*number, mask) =>
            {
                Ok(())
            }
            (Type::Bitset(one), Type::Bitset(other)) => {
                let layout = |set: &thalweg_cdr::description::Bitset| -> Vec<_> {
                    set.fields.iter().map(|field| (field.position, field.bits, field.holder)).collect()
                };
                if layout(one) == layout(other) { Ok(()) } else { differ("the fields of the bit sets differ") }
            }
            (Type::Structure(one), Type::Structure(other)) => {
                self.once(one, other, |comparing| comparing.structures(one, other))
            }
            (Type::Union(one), Type::Union(other)) => self.once(one, other, |comparing| comparing.unions(one, other)),
            (one, other) => differ(format!("the writer has {}, the reader {}", kind(one), kind(other))),
        }
    }

    fn structures(&mut self, writer: &Structure, reader: &Structure) -> Fits {
        same_extensibility(writer.extensibility, reader.extensibility)?;
        let mut common = 0;
        for member in &writer.members {
            let by_id = reader.members.iter().find(|other| other.id == member.id);
            let by_name = reader.members.iter().find(|other| same_name(&other.name, &member.name));
            self.within(&member.name, |comparing| {
                if !comparing.permitted.member_names {
                    if let Some(other) = by_id.filter(|other| !same_name(&other.name, &member.name)) {
                        return differ(format!("the reader calls member {} {:?}", member.id, other.name));
                    }
                    if let Some(other) = by_name.filter(|other| other.id != member.id) {
                        return differ(format!("it has the id {}, that of the reader {}", member.id, other.id));
                    }
                }
                match by_id {
                    Some(other) => {
                        common += 1;
                        comparing.members(writer, member, other)
                    }
                    None => missing_in_reader(writer, member),
                }
            })?;
        }
        for member in &reader.members {
            if writer.members.iter().all(|other| other.id != member.id) {
                self.within(&member.name, |comparing| missing_in_writer(reader, member, comparing.permitted))?;
            }
        }
        if writer.extensibility == Extensibility::Appendable {
            let pairs = writer.members.iter().zip(&reader.members);
            if let Some((one, other)) = pairs.into_iter().find(|(one, other)| one.id != other.id) {
                return differ(format!("where the writer has {:?}, the reader has {:?}", one.name, other.name));
            }
        }
        if common == 0 && !(writer.members.is_empty() && reader.members.is_empty()) {
            return differ("they have no member in common");
        }
        Ok(())
    }

    fn members(&mut self, of: &Structure, writer: &StructureMember, reader: &StructureMember) -> Fits {
        if writer.is_key != reader.is_key {
            return differ(if writer.is_key {
                "it is a key at the writer alone"
            } else {
                "it is a key at the reader alone"
            });
        }
        let has_marks = of.extensibility != Extensibility::Mutable;
        if has_marks && writer.is_optional != reader.is_optional {
            let who = if writer.is_optional { "writer" } else { "reader" };
            return differ(format!("it is optional at the {who} alone"));
        }
        if writer.is_key {
            // What names an instance is never cut: the reader's key has room for all of the writer's.
            let outer = self.permitted;
            self.permitted = Permitted { sequence_bounds: false, string_bounds: false, ..outer };
            let fits = self.types(&writer.member_type, &reader.member_type);
            self.permitted = outer;
            return fits;
        }
        self.types(&writer.member_type, &reader.member_type)
    }

    fn unions(&mut self, writer: &Union, reader: &Union) -> Fits {
        same_extensibility(writer.extensibility, reader.extensibility)?;
        if writer.is_keyed != reader.is_keyed {
            return differ("the discriminator is a key on one side alone");
        }
        self.within("discriminator", |comparing| comparing.types(&writer.discriminator, &reader.discriminator))?;
        let labels = |union: &Union| -> BTreeSet<i32> {
            union.cases.iter().flat_map(|case| case.labels.iter().copied()).collect()
        };
        let (theirs, ours) = (labels(writer), labels(reader));
        let has_default = |union: &Union| union.cases.iter().any(|case| case.is_default);
        if writer.extensibility == Extensibility::Final
            && (theirs != ours || has_default(writer) != has_default(reader))
        {
            return differ("the labels of a final union differ");
        }
        let mut common = 0;
        for case in &writer.cases {
            for label in &case.labels {
                let Some(other) = reader.case_of(i64::from(*label)) else { continue };
                common += 1;
                self.cases(case, other)?;
            }
            if case.is_default
                && let Some(other) = reader.cases.iter().find(|other| other.is_default)
            {
                common += 1;
                self.cases(case, other)?;
            }
        }
        if common == 0 { differ("they have no case in common") } else { Ok(()) }
    }

    fn cases(&mut self, writer: &UnionCase, reader: &UnionCase) -> Fits {
        let octet = Type::Primitive(Primitive::Byte);
        self.within(&writer.name, |comparing| {
            let (one, other) =
                (writer.case_type.as_ref().unwrap_or(&octet), reader.case_type.as_ref().unwrap_or(&octet));
            comparing.types(one, other)
        })
    }
}

fn missing_in_reader(of: &Structure, member: &StructureMember) -> Fits {
    if of.extensibility == Extensibility::Final {
        return differ("the reader's final type lacks it");
    }
    if member.is_key {
        return differ("it is a key, and the reader lacks it");
    }
    if member.must_understand {
        return differ("it must be understood, and the reader lacks it");
    }
    Ok(())
}

fn missing_in_writer(of: &Structure, member: &StructureMember, permitted: Permitted) -> Fits {
    if of.extensibility == Extensibility::Final {
        return differ("the writer's final type lacks it");
    }
    if member.is_key {
        return differ("it is a key, and the writer lacks it");
    }
    if member.must_understand && !member.is_optional {
        return differ("it must be understood, and the writer lacks it");
    }
    if permitted.widening { Ok(()) } else { differ("the writer lacks it, and the reader prevents widening") }
}

fn same_extensibility(writer: Extensibility, reader: Extensibility) -> Fits {
    if writer == reader {
        return Ok(());
    }
    let word = |extensibility| match extensibility {
        Extensibility::Final => "final",
        Extensibility::Appendable => "appendable",
        Extensibility::Mutable => "mutable",
    };
    differ(format!("the writer's type is {}, the reader's {}", word(writer), word(reader)))
}

fn bounds(writer: Option<usize>, reader: Option<usize>, is_permitted: bool, what: &str) -> Fits {
    let most = |bound: Option<usize>| bound.unwrap_or(usize::MAX);
    if is_permitted || most(reader) >= most(writer) {
        return Ok(());
    }
    let text = |bound: Option<usize>| bound.map_or("no bound".to_owned(), |bound| format!("a bound of {bound}"));
    differ(format!("{what} with {} does not fit into one with {}", text(writer), text(reader)))
}

fn enumerations(writer: &Enumeration, reader: &Enumeration) -> Fits {
    if writer.bit_bound != reader.bit_bound {
        return differ(format!("an enumeration of {} bits is not one of {}", writer.bit_bound, reader.bit_bound));
    }
    same_extensibility(writer.extensibility, reader.extensibility)?;
    let mut common = 0;
    for literal in &writer.literals {
        let by_value = reader.literals.iter().find(|other| other.value == literal.value);
        let by_name = reader.literals.iter().find(|other| same_name(&other.name, &literal.name));
        match (by_value, by_name) {
            (Some(one), Some(other)) if std::ptr::eq(one, other) => common += 1,
            (None, None) if writer.extensibility != Extensibility::Final => {}
            (None, None) => return differ(format!("the reader lacks the literal {}", literal.name)),
            _ => return differ(format!("the literal {} has another value or name at the reader", literal.name)),
        }
    }
    if writer.extensibility == Extensibility::Final && common != reader.literals.len() {
        return differ("the writer lacks a literal of the reader");
    }
    if common == 0 { differ("they have no literal in common") } else { Ok(()) }
}

fn holds(number: Primitive, mask: &Bitmask) -> bool {
    matches!(
        (number, mask.holder_bytes()),
        (Primitive::UInt8, 1) | (Primitive::UInt16, 2) | (Primitive::UInt32, 4) | (Primitive::UInt64, 8)
    )
}

/// Compares names by their hashes, which are all that a minimal type object has.
fn same_name(one: &str, other: &str) -> bool {
    let hash = |name: &str| match name.strip_prefix('#').and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(hash) => hash.to_be_bytes(),
        None => name_hash(name),
    };
    one == other || hash(one) == hash(other)
}

fn kind(of: &Type) -> String {
    match of {
        Type::Primitive(primitive) => primitive.idl().to_owned(),
        Type::String { .. } => "a string".to_owned(),
        Type::WString { .. } => "a wstring".to_owned(),
        Type::Enumeration(_) => "an enumeration".to_owned(),
        Type::Bitmask(_) => "a bit mask".to_owned(),
        Type::Bitset(_) => "a bit set".to_owned(),
        Type::Structure(_) => "a structure".to_owned(),
        Type::Union(_) => "a union".to_owned(),
        Type::Sequence { .. } => "a sequence".to_owned(),
        Type::Array { .. } => "an array".to_owned(),
        Type::Map { .. } => "a map".to_owned(),
        Type::Alias(alias) => alias.name.clone(),
        Type::Recursive(part) => part.name().to_owned(),
    }
}

#[cfg(test)]
mod tests;
