//! Whether samples of a writer's type fit the type of a reader (DDS-XTypes 1.3 §7.2.4).

mod leaves;
mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use thalweg_cdr::Extensibility;
use thalweg_cdr::description::{Primitive, Structure, StructureMember, Type, Union, UnionCase};

use leaves::{bounds, enumerations, holds};
use places::{MemberPlaces, first_id};

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
/// The first difference that the rules do not permit; also that the types have more parts than are compared.
pub fn check(writer: &Type, reader: &Type, permitted: Permitted) -> Result<(), TypeDifference> {
    check_counted(writer, reader, permitted).0
}

/// As [`check`], with the steps that it took: members, literals, labels and uses of types that were looked at.
pub fn check_counted(writer: &Type, reader: &Type, permitted: Permitted) -> (Result<(), TypeDifference>, usize) {
    check_within(writer, reader, permitted, STEPS_MAX)
}

fn check_within(
    writer: &Type,
    reader: &Type,
    permitted: Permitted,
    steps_max: usize,
) -> (Result<(), TypeDifference>, usize) {
    let (path, assumed) = (Vec::new(), BTreeSet::new());
    let mut comparing =
        Comparing { permitted, keys: Keys::Marked, ends: true, path, assumed, levels: 0, steps: 0, steps_max };
    let fits = comparing.types(writer, reader);
    (fits.map_err(|why| TypeDifference { path: comparing.path.concat(), why }), comparing.steps)
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
    steps: usize,
    steps_max: usize,
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
/// Most steps of a comparison, chosen by us: several for each of the members that a type of others may have, and a fraction of a second.
/// The cases of two unions may select each other in all combinations, so that few bytes would make many.
const STEPS_MAX: usize = 1 << 20;

type Fits = Result<(), String>;

fn differ<T>(why: impl Into<String>) -> Result<T, String> {
    Err(why.into())
}

impl Comparing {
    /// Counts parts that are looked at.
    fn look_at(&mut self, parts: usize) -> Fits {
        self.steps = self.steps.saturating_add(parts);
        if self.steps > self.steps_max {
            return differ(format!("they have more than {} parts, which are not compared", self.steps_max));
        }
        Ok(())
    }

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
        self.look_at(1)?;
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
            (Type::Enumeration(one), Type::Enumeration(other)) => self.once(one, other, |comparing| {
                comparing.look_at(one.literals.len() + other.literals.len())?;
                enumerations(one, other, comparing.keys)
            }),
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
        self.look_at(writer.members.len() + reader.members.len())?;
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
        let parts = |union: &Union| union.cases.iter().map(|case| 1 + case.labels.len()).sum::<usize>();
        self.look_at(parts(writer) + parts(reader))?;
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
