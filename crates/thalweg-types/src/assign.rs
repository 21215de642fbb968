//! Whether samples of a writer's type fit the type of a reader (DDS-XTypes 1.3 §7.2.4).

mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{
    Bitmask, Enumeration, Literal, Primitive, Structure, StructureMember, Type, Union, UnionCase,
};

use places::{MemberPlaces, first_id, hash_of};

/// The differences that a reader permits (DDS-XTypes 1.3 §7.6.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permitted {
    /// Bounds of sequences and maps need not fit.
    pub sequence_bounds: bool,
    /// Bounds of texts need not fit.
    pub string_bounds: bool,
    /// Members of one id may have different names.
    pub member_names: bool,
    /// One type may lack members of the other that are not optional, and cases of a union.
    pub widening: bool,
    /// Appendable types within others may differ in their members: where samples are in XCDR2, whose lengths tell where a type ends. In
    /// XCDR1 they are not delimited (DDS-XTypes 1.3 §7.2.4.2).
    pub nested_differences: bool,
}

impl Default for Permitted {
    /// As a reader that announces nothing.
    fn default() -> Permitted {
        Permitted {
            sequence_bounds: true,
            string_bounds: true,
            member_names: false,
            widening: true,
            nested_differences: true,
        }
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
        Comparing { permitted, keys: Keys::Marked, ends: true, path: Vec::new(), assumed: BTreeSet::new(), levels: 0 };
    comparing.types(writer, reader).map_err(|why| TypeDifference { path: comparing.path.concat(), why })
}

struct Comparing {
    permitted: Permitted,
    keys: Keys,
    /// Something tells where a value ends even in XCDR1: the end of the sample, or the header of its member.
    ends: bool,
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
type Pair = (Place, Place, Permitted, Keys, bool);
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

    /// Compares a part of a value.
    fn part(&mut self, ends: bool, compare: impl FnOnce(&mut Self) -> Fits) -> Fits {
        let outer = std::mem::replace(&mut self.ends, ends);
        let fits = compare(self);
        self.ends = outer;
        fits
    }

    /// Compares elements of a collection.
    fn elements(&mut self, compare: impl FnOnce(&mut Self) -> Fits) -> Fits {
        self.part(false, |comparing| comparing.within("[]", compare))
    }

    /// Whether a type may have other members at the other side.
    fn may_differ(&self, extensibility: Extensibility) -> bool {
        match extensibility {
            Extensibility::Final => false,
            Extensibility::Appendable => self.ends || self.permitted.nested_differences,
            Extensibility::Mutable => true,
        }
    }

    fn once<T>(&mut self, writer: &Arc<T>, reader: &Arc<T>, compare: impl FnOnce(&mut Self) -> Fits) -> Fits {
        let place = |of: &Arc<T>| (Arc::as_ptr(of).addr(), 0);
        let pair = (place(writer), place(reader), self.permitted, self.keys, self.ends);
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
            && !self.assumed.insert((one, other, self.permitted, self.keys, self.ends))
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
                self.elements(|comparing| comparing.types(one, other))
            }
            (Type::Array { element: one, count }, Type::Array { element: other, count: wanted }) => {
                if count != wanted {
                    return differ(format!("the writer has {count} elements, the reader {wanted}"));
                }
                self.elements(|comparing| comparing.types(one, other))
            }
            (
                Type::Map { key: key_one, element: one, bound: most },
                Type::Map { key: key_other, element: other, bound: room },
            ) => {
                bounds(*most, *room, self.permitted.sequence_bounds, "a map")?;
                self.elements(|comparing| {
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
        let ours = MemberPlaces::of(reader.members.iter().map(|member| (member.id, &*member.name)));
        let theirs: BTreeSet<u32> = writer.members.iter().map(|member| member.id).collect();
        for member in &writer.members {
            self.within(&member.name, |comparing| {
                if !comparing.permitted.member_names {
                    ours.check(member.id, &member.name, 0)?;
                }
                match ours.with_id(member.id) {
                    Some(place) => {
                        common += 1;
                        comparing.members(writer, member, &reader.members[place])
                    }
                    None => comparing.missing("reader", writer, member),
                }
            })?;
        }
        for member in reader.members.iter().filter(|member| !theirs.contains(&member.id)) {
            self.within(&member.name, |comparing| comparing.missing("writer", reader, member))?;
        }
        if writer.extensibility != Extensibility::Mutable {
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
        let keys = |of: &'_ Structure| -> Vec<usize> {
            let is_keyed = of.is_keyed();
            let counts = |place: &usize| of.members[*place].is_key || !is_keyed;
            (0..of.members.len()).filter(counts).collect()
        };
        let (theirs, ours) = (keys(writer), keys(reader));
        let by_id = |of: &Structure, keys: &[usize]| -> BTreeMap<u32, usize> {
            keys.iter().rev().map(|place| (of.members[*place].id, *place)).collect()
        };
        let (their_ids, our_ids) = (by_id(writer, &theirs), by_id(reader, &ours));
        for member in theirs.iter().map(|place| &writer.members[*place]) {
            let other = our_ids.get(&member.id).map(|place| &reader.members[*place]);
            self.within(&member.name, |comparing| match other {
                Some(other) => comparing.types(&member.member_type, &other.member_type),
                None => differ("it is a part of the key at the writer alone"),
            })?;
        }
        for member in ours.iter().map(|place| &reader.members[*place]) {
            if !their_ids.contains_key(&member.id) {
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
        let has_header = !has_marks || writer.is_optional;
        self.part(has_header, |comparing| {
            let outer = (comparing.permitted, comparing.keys);
            comparing.keys = Keys::Ignored;
            let mut fits = comparing.types(&writer.member_type, &reader.member_type);
            if fits.is_ok() && has_keys && writer.is_key {
                // What names an instance is never cut: the reader's key has room for all of the writer's.
                let permitted = Permitted { sequence_bounds: false, string_bounds: false, ..comparing.permitted };
                (comparing.permitted, comparing.keys) = (permitted, Keys::Alone);
                fits = comparing.types(&writer.member_type, &reader.member_type);
            }
            (comparing.permitted, comparing.keys) = outer;
            fits
        })
    }

    /// Whether one side's type may have a member that `who` lacks.
    fn missing(&self, who: &str, of: &Structure, member: &StructureMember) -> Fits {
        if of.extensibility == Extensibility::Final {
            return differ(format!("the {who}'s final type lacks it"));
        }
        if !self.may_differ(of.extensibility) {
            return differ(format!("the {who} lacks it, and XCDR1 does not tell where a type within another ends"));
        }
        if member.is_key && self.keys == Keys::Marked {
            return differ(format!("it is a key, and the {who} lacks it"));
        }
        if member.must_understand && !member.is_optional {
            return differ(format!("it must be understood, and the {who} lacks it"));
        }
        if !self.permitted.widening && !member.is_optional {
            return differ(format!("the {who} lacks it, and the reader prevents widening"));
        }
        Ok(())
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
        let labels = |union: &Union| -> BTreeMap<i32, usize> {
            let cases = union.cases.iter().enumerate().rev();
            cases.flat_map(|(place, case)| case.labels.iter().map(move |label| (*label, place))).collect()
        };
        let (theirs, ours) = (labels(writer), labels(reader));
        let of_rest = |union: &'_ Union| union.cases.iter().position(|case| case.is_default);
        let (rest, our_rest) = (of_rest(writer), of_rest(reader));
        let is_same = theirs.keys().eq(ours.keys()) && rest.is_some() == our_rest.is_some();
        if writer.extensibility == Extensibility::Final && !is_same {
            return differ("the labels of a final union differ");
        }
        if !self.may_differ(writer.extensibility) && !is_same {
            return differ("the labels differ, and XCDR1 does not tell where a union within another ends");
        }
        if !self.permitted.widening && !is_same {
            return differ("the labels differ, and the reader prevents widening");
        }
        // What each label selects on both sides, and what all others do.
        let selected = |label: &i32| (theirs.get(label).copied().or(rest), ours.get(label).copied().or(our_rest));
        let has_header = writer.extensibility == Extensibility::Mutable;
        let pairs: BTreeSet<_> = theirs.keys().chain(ours.keys()).map(selected).collect();
        for pair in pairs {
            if let (Some(case), Some(other)) = pair {
                self.cases(has_header, &writer.cases[case], &reader.cases[other])?;
            }
        }
        if let (Some(case), Some(other)) = (rest, our_rest) {
            self.cases(has_header, &writer.cases[case], &reader.cases[other])?;
        }
        let has_labels = !(theirs.is_empty() && ours.is_empty());
        if has_labels && !theirs.keys().any(|label| ours.contains_key(label)) {
            differ("they have no case in common")
        } else {
            Ok(())
        }
    }

    /// Cases of one name have one id, and the other way round.
    fn case_names(&mut self, writer: &Union, reader: &Union) -> Fits {
        if self.permitted.member_names {
            return Ok(());
        }
        let ours = MemberPlaces::of(reader.cases.iter().map(|case| (case.id, case.name.as_str())));
        let shift = first_id(reader) - first_id(writer);
        let counted_alike = |case: &UnionCase| ours.check(case.id, &case.name, shift);
        if shift != 0 && writer.cases.iter().all(|case| counted_alike(case).is_ok()) {
            return Ok(());
        }
        writer.cases.iter().try_for_each(|case| self.within(&case.name, |_| ours.check(case.id, &case.name, 0)))
    }

    fn cases(&mut self, has_header: bool, writer: &UnionCase, reader: &UnionCase) -> Fits {
        let octet = Type::Primitive(Primitive::Byte);
        let [one, other] = [writer, reader].map(|case| case.case_type.as_ref().unwrap_or(&octet));
        self.part(has_header, |comparing| comparing.within(&writer.name, |comparing| comparing.types(one, other)))
    }
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
    if let (Some(one), Some(other)) = (writer.extensibility, reader.extensibility) {
        same_extensibility(one, other)?;
    }
    // Of one that does not tell, the other one's is taken.
    let is_final = writer.extensibility.or(reader.extensibility) == Some(Extensibility::Final);
    let mut common = 0;
    let places = |key: &dyn Fn(&Literal) -> i64| -> BTreeMap<i64, usize> {
        reader.literals.iter().enumerate().rev().map(|(place, literal)| (key(literal), place)).collect()
    };
    let hash = |literal: &Literal| i64::from(u32::from_be_bytes(hash_of(&literal.name)));
    let (values, names) = (places(&|literal| literal.value.into()), places(&hash));
    for literal in &writer.literals {
        match (values.get(&literal.value.into()), names.get(&hash(literal))) {
            (Some(one), Some(other)) if one == other => common += 1,
            (None, None) if !is_final && keys != Keys::Alone => {}
            (None, None) => return differ(format!("the reader lacks the literal {}", literal.name)),
            _ => return differ(format!("the literal {} has another value or name at the reader", literal.name)),
        }
    }
    if is_final && common != reader.literals.len() {
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
