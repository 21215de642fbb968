//! Types as Fast DDS 3.1.2 tells them to others, against our type objects: equal hashes are of equal bytes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use ::thalweg::cdr::Extensibility;
use thalweg_types::idl::{self, Reading};
use thalweg_types::type_object::{
    Describing, Equivalence, MemberName, ObjectBody, ObjectMember, TypeHash, TypeIdentifier, TypeObject,
};
use thalweg_types::{Structure, TryConstruct, Type, Union};

use super::program;
use crate::program::Program;

/// What the corpus lacks because Cyclone DDS does.
const NOT_OF_CYCLONE: &str = "
module more {
  @final struct Wide { wchar c; wstring s; wstring<7> t; wstring<300> u; sequence<wstring, 2> v; };
  @final struct Long_double { long double d; };
  @appendable struct Maps {
    map<long, string> a; map<string<9>, double, 4> b; map<short, long, 300> c; map<long, sequence<long, 3> > d;
  };
  @final struct Node { long x; };
  @appendable struct Maps_of_nodes { map<long, Node> a; map<unsigned short, Node, 256> b; };
  @final struct Sequences_of_sequences { sequence<sequence<Node> > a; };
  @final struct Maps_of_sequences { map<long, sequence<Node> > a; };
  bitset Bits { bitfield<3> a; bitfield<1> b; bitfield<4>; bitfield<12, short> d; };
  @final struct Has_bits { Bits b; sequence<Bits> c; };
};
";

/// Types that Fast DDS refuses: their sequences and arrays have elements that are collections of types with objects, for which it says
/// "Inconsistency between given header and element_identifier parameters".
const REFUSED: [&str; 2] = ["corpus::Deep", "more::Sequences_of_sequences"];

/// Types of whose minimal objects Fast DDS has false ones: where the elements of a map are a collection, that has the complete
/// identifiers of its types.
const FALSE_MINIMAL: [&str; 1] = ["more::Maps_of_sequences"];

/// What Fast DDS takes for no id, so that the member has the next one (`MEMBER_ID_INVALID` of DDS-XTypes 1.3 Annex C).
const NO_ID: u32 = 0x0fff_ffff;

/// The discriminator and members of Fast DDS's dynamic types have this flag: what cannot be held is discarded.
const DISCARD: u16 = 1;

/// The flag of a type whose members' ids come from their names.
const IS_AUTOID_HASH: u16 = 1 << 4;

fn corpus() -> Vec<Type> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../thalweg-types/testdata/type_objects/cyclone.idl");
    let text = std::fs::read_to_string(file).expect("the corpus");
    let reading = Reading { extensibility: Extensibility::Final, ..Reading::default() };
    let read = |text: &str| idl::parse_as(text, &reading).unwrap_or_else(|error| panic!("{error}"));
    read(&text).iter().chain(read(NOT_OF_CYCLONE).iter()).cloned().collect()
}

/// What Fast DDS makes of our objects, of one kind.
struct AsFastDds {
    describing: Describing,
    /// Its hashes by ours, of the objects so far; none of those that it refuses.
    hashes: BTreeMap<TypeHash, Option<TypeHash>>,
}

impl AsFastDds {
    fn new(equivalence: Equivalence) -> AsFastDds {
        AsFastDds { describing: Describing::new(equivalence), hashes: BTreeMap::new() }
    }

    /// Our hash of a type that has a name, and its.
    fn hashes_of(&mut self, of: &Type) -> (TypeHash, Option<TypeHash>) {
        let identifier = self.describing.identifier(of).expect("described");
        let TypeIdentifier::Hash(_, own) = identifier else { panic!("{identifier:?} of a type that has a name") };
        // What an object refers to comes before it.
        for (hash, bytes) in self.describing.objects() {
            if !self.hashes.contains_key(hash) {
                let object = self.object(TypeObject::from_bytes(bytes).expect("ours"));
                let theirs = object.map(|object| TypeObject::hash_of(&object.to_bytes().expect("written")));
                self.hashes.insert(*hash, theirs);
            }
        }
        (own, self.hashes[&own])
    }

    fn object(&self, mut object: TypeObject) -> Option<TypeObject> {
        match &mut object.body {
            ObjectBody::Alias { aliased } => self.identifier(aliased)?,
            ObjectBody::Structure { base, members } => {
                object.flags &= !IS_AUTOID_HASH;
                self.identifier(base)?;
                let mut next = 0;
                for member in members {
                    member.id = if member.id == NO_ID { next } else { member.id };
                    next = member.id + 1;
                    self.member(member)?;
                }
            }
            ObjectBody::Union { discriminator_flags, discriminator, cases } => {
                object.flags &= !IS_AUTOID_HASH;
                // It has no way to say that the discriminator is the key, and does not say that it must be understood.
                *discriminator_flags = DISCARD;
                self.identifier(discriminator)?;
                let first_id = u32::from(cases.iter().any(|case| case.id == 0));
                for case in cases {
                    // The id 0 is the discriminator's, whatever the extensibility.
                    case.id += first_id;
                    case.labels.sort_unstable();
                    self.member(case)?;
                }
            }
            ObjectBody::Enumeration { bit_bound, literals } => {
                // It tells neither extensibility nor default, and of the bits how many its holder has.
                object.flags = 0;
                *bit_bound = bit_bound.next_power_of_two().max(8);
                literals.iter_mut().for_each(|(_, flags, _)| *flags = 0);
            }
            ObjectBody::Bitmask { .. } => object.flags = 0,
            ObjectBody::Bitset { .. } => {}
            other => panic!("{other:?} needs no object"),
        }
        Some(object)
    }

    fn member(&self, member: &mut ObjectMember) -> Option<()> {
        if let MemberName::Text { remarks, .. } = &mut member.name {
            // Its dynamic types know no unit, no range and no `@hashid`.
            *remarks = None;
        }
        self.identifier(&mut member.member_type)
    }

    fn identifier(&self, identifier: &mut TypeIdentifier) -> Option<()> {
        match identifier {
            TypeIdentifier::Hash(_, hash) => *hash = self.hashes.get(hash).copied().flatten()?,
            TypeIdentifier::Sequence { header, element, .. } | TypeIdentifier::Array { header, element, .. } => {
                // It does not say what happens to elements that cannot be held.
                header.element_flags = 0;
                self.element(element)?;
            }
            TypeIdentifier::Map { header, element, key_flags, key, .. } => {
                (header.element_flags, *key_flags) = (0, 0);
                self.identifier(element)?;
                self.identifier(key)?;
            }
            _ => {}
        }
        Some(())
    }

    /// `None` for a collection of types that have objects.
    fn element(&self, element: &mut TypeIdentifier) -> Option<()> {
        let is_taken = matches!(element, TypeIdentifier::Hash(..)) || element.is_fully_descriptive();
        if is_taken { self.identifier(element) } else { None }
    }
}

/// A type as the program reads it, line by line.
pub(super) fn description(of: &Type) -> Vec<String> {
    match of {
        Type::Alias(alias) => vec![format!("alias {} {}", alias.name, words(&alias.aliased))],
        Type::Enumeration(enumeration) => {
            let holder = ["int8", "short", "long"][enumeration.holder_bytes().ilog2() as usize];
            let literals = enumeration.literals.iter();
            let literals = literals.map(|literal| format!("literal {} {}", literal.name, literal.value));
            [format!("enumeration {} {holder}", enumeration.name)].into_iter().chain(literals).collect()
        }
        Type::Bitmask(bitmask) => {
            let flags = bitmask.flags.iter().map(|(name, position)| format!("flag {name} {position}"));
            [format!("bitmask {} {}", bitmask.name, bitmask.bit_bound)].into_iter().chain(flags).collect()
        }
        Type::Bitset(bitset) => {
            let bits: String = bitset.fields.iter().map(|field| format!(" {}", field.bits)).collect();
            let fields = bitset.fields.iter().map(|field| {
                let holder = words(&Type::Primitive(field.holder));
                format!("field {} {} {holder}", field.name, field.position)
            });
            let head = format!("bitset {} {}{bits}", bitset.name, bitset.fields.len());
            [head].into_iter().chain(fields).collect()
        }
        Type::Structure(structure) => structure_description(structure),
        Type::Union(union) => union_description(union),
        other => panic!("{other:?} has no name of its own"),
    }
}

fn structure_description(structure: &Structure) -> Vec<String> {
    let base = structure.base.as_ref().map_or("-", |base| base.name.as_str());
    let (extensibility, nested) = (word_of(structure.extensibility), u8::from(structure.is_nested));
    let mut lines = vec![format!("structure {} {extensibility} {nested} {base}", structure.name)];
    for member in structure.own_members() {
        let flags = letters(&[
            (member.is_key, 'k'),
            (member.is_optional, 'o'),
            (member.must_understand, 'm'),
            (member.is_external, 'x'),
        ]);
        let (failure, of) = (failure(member.try_construct), words(&member.member_type));
        lines.push(format!("member {} {} {failure} {flags} {of}", member.name, member.id));
    }
    lines
}

fn union_description(union: &Union) -> Vec<String> {
    let (extensibility, nested) = (word_of(union.extensibility), u8::from(union.is_nested));
    let mut lines = vec![format!("union {} {extensibility} {nested} {}", union.name, words(&union.discriminator))];
    let first_id = u32::from(union.cases.iter().any(|case| case.id == 0));
    for case in &union.cases {
        let flags = letters(&[(case.is_default, 'd'), (case.is_external, 'x')]);
        let labels: String = case.labels.iter().map(|label| format!(" {label}")).collect();
        let of = words(case.case_type.as_ref().expect("a member"));
        let (id, failure, count) = (case.id + first_id, failure(case.try_construct), case.labels.len());
        lines.push(format!("case {} {id} {failure} {flags} {count}{labels} {of}", case.name));
    }
    lines
}

fn words(of: &Type) -> String {
    match of {
        Type::Primitive(primitive) => primitive.idl().replace(' ', "_"),
        Type::String { bound } => format!("string {}", bound.unwrap_or(0)),
        Type::WString { bound } => format!("wstring {}", bound.unwrap_or(0)),
        Type::Sequence { element, bound } => format!("sequence {} {}", bound.unwrap_or(0), words(element)),
        Type::Map { key, element, bound } => {
            format!("map {} {} {}", bound.unwrap_or(0), words(key), words(element))
        }
        Type::Array { .. } => {
            let (mut innermost, mut bounds) = (of, Vec::new());
            while let Type::Array { element, count } = innermost {
                bounds.push(count.to_string());
                innermost = element;
            }
            format!("array {} {} {}", bounds.len(), bounds.join(" "), words(innermost))
        }
        named => format!("named {}", named.name().expect("a name")),
    }
}

fn word_of(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "final",
        Extensibility::Appendable => "appendable",
        Extensibility::Mutable => "mutable",
    }
}

fn failure(try_construct: TryConstruct) -> &'static str {
    match try_construct {
        TryConstruct::Discard => "discard",
        TryConstruct::UseDefault => "default",
        TryConstruct::Trim => "trim",
    }
}

fn letters(flags: &[(bool, char)]) -> String {
    let set: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
    if set.is_empty() { "-".to_owned() } else { set }
}

/// What Fast DDS cannot say of a type, or says otherwise, is in [`AsFastDds`]; all else is the same.
#[test]
fn type_objects_are_those_of_fast_dds() {
    let types = corpus();
    assert!(types.len() >= 150, "{} types", types.len());
    let (mut minimal, mut complete) = (AsFastDds::new(Equivalence::Minimal), AsFastDds::new(Equivalence::Complete));
    let mut command = Command::new(program("THALWEG_FASTDDS"));
    command.arg("types");
    let mut fast_dds = Program::start_with_input("Fast DDS", &command);
    let (mut failed, mut refused, mut same_as_ours) = (Vec::new(), Vec::new(), 0);
    for of in &types {
        let name = of.name().expect("a name");
        description(of).iter().for_each(|line| fast_dds.tell(line));
        fast_dds.tell("end");
        let mark = format!("{name} ");
        let answer = fast_dds.expect("an answer", |line| line.starts_with(&mark));
        let said: Vec<&str> = answer[mark.len()..].split(' ').collect();
        let hashes = [minimal.hashes_of(of), complete.hashes_of(of)];
        let is_same = |said: &&str, hash: TypeHash| **said == hash.to_string();
        let theirs = hashes.map(|(_, theirs)| theirs.map_or_else(|| "refused".to_owned(), |theirs| theirs.to_string()));
        let is_expected = match said[..] {
            ["refused"] => theirs.iter().all(|theirs| theirs == "refused"),
            [minimal, complete] if FALSE_MINIMAL.contains(&name) => minimal != theirs[0] && complete == theirs[1],
            _ => said == theirs,
        };
        if !is_expected {
            failed.push((answer.clone(), hashes));
        }
        same_as_ours += usize::from(said.iter().zip(hashes).all(|(said, (ours, _))| is_same(said, ours)));
        if hashes.iter().any(|(_, theirs)| theirs.is_none()) {
            refused.push(name);
        }
    }
    fast_dds.finish().well();
    assert!(failed.is_empty(), "{} of {} differ: {failed:#?}", failed.len(), types.len());
    assert_eq!(refused, REFUSED);
    // Where nothing of that applies, both objects are ours to the byte.
    assert!(same_as_ours >= 80, "{same_as_ours} of {} are told as we tell them", types.len());
}
