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
    let mut comparing =
        Comparing { permitted, keys: Keys::Marked, path: Vec::new(), assumed: BTreeSet::new(), levels: 0 };
    comparing.types(writer, reader).map_err(|why| TypeDifference { path: comparing.path.concat(), why })
}

struct Comparing {
    permitted: Permitted,
    keys: Keys,
    /// The way to what is compared, as it is written.
    path: Vec<String>,
    /// Pairs of types that fit, or are being compared: those that contain themselves fit unless something else differs.
    assumed: BTreeSet<Pair>,
    levels: usize,
}

/// What key members mean where types are compared (DDS-XTypes 1.3 §7.2.2.4.5, §7.2.2.4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Keys {
    /// Of the type of a sample: both sides have the same ones.
    Marked,
    /// Nothing: `KeyErased`, of a member.
    Ignored,
    /// All that counts: `KeyHolder`, of a member that is a key itself.
    Alone,
}

/// Two types, and what is permitted of their parts.
type Pair = (Place, Place, Permitted, Keys);
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
        let pair = (place(writer), place(reader), self.permitted, self.keys);
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
            && !self.assumed.insert((one, other, self.permitted, self.keys))
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
            (Type::Enumeration(one), Type::Enumeration(other)) => enumerations(one, other, self.keys),
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
        if self.keys == Keys::Alone {
            return self.keys_of(writer, reader);
        }
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
                    None => missing_in_reader(writer, member, comparing.keys),
                }
            })?;
        }
        for member in &reader.members {
            if writer.members.iter().all(|other| other.id != member.id) {
                self.within(&member.name, |comparing| {
                    missing_in_writer(reader, member, comparing.permitted, comparing.keys)
                })?;
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

    /// The members that name an instance: all of a structure without key members.
    fn keys_of(&mut self, writer: &Structure, reader: &Structure) -> Fits {
        let counts = |of: &Structure, member: &StructureMember| member.is_key || !of.is_keyed();
        for member in writer.members.iter().filter(|member| counts(writer, member)) {
            let other = reader.members.iter().find(|other| other.id == member.id && counts(reader, other));
            self.within(&member.name, |comparing| match other {
                Some(other) => comparing.types(&member.member_type, &other.member_type),
                None => differ("it is a part of the key at the writer alone"),
            })?;
        }
        for member in reader.members.iter().filter(|member| counts(reader, member)) {
            if !writer.members.iter().any(|other| other.id == member.id && counts(writer, other)) {
                return self.within(&member.name, |_| differ("it is a part of the key at the reader alone"));
            }
        }
        Ok(())
    }

    fn members(&mut self, of: &Structure, writer: &StructureMember, reader: &StructureMember) -> Fits {
        let has_keys = self.keys == Keys::Marked;
        if has_keys && writer.is_key != reader.is_key {
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
        let outer = (self.permitted, self.keys);
        self.keys = Keys::Ignored;
        let mut fits = self.types(&writer.member_type, &reader.member_type);
        if fits.is_ok() && has_keys && writer.is_key {
            // What names an instance is never cut: the reader's key has room for all of the writer's.
            self.permitted = Permitted { sequence_bounds: false, string_bounds: false, ..self.permitted };
            self.keys = Keys::Alone;
            fits = self.types(&writer.member_type, &reader.member_type);
        }
        (self.permitted, self.keys) = outer;
        fits
    }

    fn unions(&mut self, writer: &Union, reader: &Union) -> Fits {
        same_extensibility(writer.extensibility, reader.extensibility)?;
        if self.keys != Keys::Ignored && writer.is_keyed != reader.is_keyed {
            return differ("the discriminator is a key on one side alone");
        }
        self.within("discriminator", |comparing| comparing.types(&writer.discriminator, &reader.discriminator))?;
        if self.keys == Keys::Alone && writer.is_keyed {
            return Ok(());
        }
        self.case_names(writer, reader)?;
        let labels = |union: &Union| -> BTreeSet<i32> {
            union.cases.iter().flat_map(|case| case.labels.iter().copied()).collect()
        };
        let (theirs, ours) = (labels(writer), labels(reader));
        let of_rest = |union: &'_ Union| union.cases.iter().position(|case| case.is_default);
        let (rest, our_rest) = (of_rest(writer), of_rest(reader));
        if writer.extensibility == Extensibility::Final && (theirs != ours || rest.is_some() != our_rest.is_some()) {
            return differ("the labels of a final union differ");
        }
        // What each label selects on both sides, and what all others do.
        for label in theirs.union(&ours) {
            let selected = |union: &'_ Union| union.cases.iter().position(|case| case.labels.contains(label));
            let pair = (selected(writer).or(rest), selected(reader).or(our_rest));
            if let (Some(case), Some(other)) = pair {
                self.cases(&writer.cases[case], &reader.cases[other])?;
            }
        }
        if let (Some(case), Some(other)) = (rest, our_rest) {
            self.cases(&writer.cases[case], &reader.cases[other])?;
        }
        let has_labels = !(theirs.is_empty() && ours.is_empty());
        if has_labels && theirs.is_disjoint(&ours) { differ("they have no case in common") } else { Ok(()) }
    }

    /// Cases of one name have one id, and the other way round.
    fn case_names(&mut self, writer: &Union, reader: &Union) -> Fits {
        if self.permitted.member_names {
            return Ok(());
        }
        for case in &writer.cases {
            let by_id = reader.cases.iter().find(|other| other.id == case.id);
            let by_name = reader.cases.iter().find(|other| same_name(&other.name, &case.name));
            self.within(&case.name, |_| {
                if let Some(other) = by_id.filter(|other| !same_name(&other.name, &case.name)) {
                    return differ(format!("the reader calls member {} {:?}", case.id, other.name));
                }
                match by_name.filter(|other| other.id != case.id) {
                    Some(other) => differ(format!("it has the id {}, that of the reader {}", case.id, other.id)),
                    None => Ok(()),
                }
            })?;
        }
        Ok(())
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

fn missing_in_reader(of: &Structure, member: &StructureMember, keys: Keys) -> Fits {
    if of.extensibility == Extensibility::Final {
        return differ("the reader's final type lacks it");
    }
    if member.is_key && keys == Keys::Marked {
        return differ("it is a key, and the reader lacks it");
    }
    if member.must_understand && !member.is_optional {
        return differ("it must be understood, and the reader lacks it");
    }
    Ok(())
}

fn missing_in_writer(of: &Structure, member: &StructureMember, permitted: Permitted, keys: Keys) -> Fits {
    if of.extensibility == Extensibility::Final {
        return differ("the writer's final type lacks it");
    }
    if member.is_key && keys == Keys::Marked {
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

fn enumerations(writer: &Enumeration, reader: &Enumeration, keys: Keys) -> Fits {
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
            (None, None) if writer.extensibility != Extensibility::Final && keys != Keys::Alone => {}
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
