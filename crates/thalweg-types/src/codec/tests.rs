//! Laws of values of types that nobody wrote down: both are drawn from a seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg_cdr::description::{Bitfield, Literal, StructureMember, TryConstruct, UnionCase};
use thalweg_cdr::description::{Bitmask, Bitset, Enumeration, Primitive, Structure, Type, Union};

use super::read::default_value;
use super::write::DISCRIMINATOR;
use super::*;
use crate::document::{MapKey, Numbers};
use crate::idl;

/// Choices that follow from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn bound(&mut self) -> Option<usize> {
        self.is_one_in(3).then(|| 3 + self.below(5) as usize)
    }

    fn extensibility(&mut self) -> Extensibility {
        self.pick(&[Extensibility::Final, Extensibility::Appendable, Extensibility::Mutable])
    }
}

const PRIMITIVES: [Primitive; 15] = [
    Primitive::Boolean,
    Primitive::Byte,
    Primitive::UInt8,
    Primitive::Int8,
    Primitive::Int16,
    Primitive::UInt16,
    Primitive::Int32,
    Primitive::UInt32,
    Primitive::Int64,
    Primitive::UInt64,
    Primitive::Float32,
    Primitive::Float64,
    Primitive::Float128,
    Primitive::Char8,
    Primitive::Char16,
];

fn any_type(dice: &mut Dice, depth: u64) -> Type {
    let inner = |dice: &mut Dice| Box::new(any_type(dice, depth - 1));
    match dice.below(if depth == 0 { 7 } else { 13 }) {
        0..=2 => Type::Primitive(dice.pick(&PRIMITIVES)),
        3 => Type::String { bound: dice.bound() },
        4 => Type::WString { bound: dice.bound() },
        5 => enumeration(dice),
        6 => match dice.is_one_in(2) {
            true => bitmask(dice),
            false => bitset(dice),
        },
        7 => Type::Structure(Arc::new(structure(dice, depth - 1))),
        8 => Type::Union(Arc::new(union(dice, depth - 1))),
        9 => Type::Sequence { element: inner(dice), bound: dice.bound() },
        10 => Type::Array { element: inner(dice), count: 1 + dice.below(3) as usize },
        11 => {
            let aliased = *inner(dice);
            Type::Alias(Arc::new(thalweg_cdr::description::Alias { name: "Name".to_owned(), aliased }))
        }
        _ => {
            let keys = [Primitive::Int16, Primitive::UInt64, Primitive::UInt8, Primitive::Boolean];
            let key = match dice.below(3) {
                0 => Type::String { bound: None },
                1 => Type::WString { bound: None },
                _ => Type::Primitive(dice.pick(&keys)),
            };
            Type::Map { key: Box::new(key), element: inner(dice), bound: dice.bound() }
        }
    }
}

fn enumeration(dice: &mut Dice) -> Type {
    let bit_bound = 3 + dice.below(30) as u16;
    let first = if bit_bound == 32 && dice.is_one_in(2) { -2 } else { 0 };
    let count = 1 + dice.below(4) as i32;
    let literals = (0..count).map(|index| Literal { name: format!("L{index}"), value: first + index }).collect();
    let default = dice.below(count as u64) as usize;
    let extensibility = Some(Extensibility::Appendable);
    Type::Enumeration(Arc::new(Enumeration { name: "Enum".to_owned(), literals, default, bit_bound, extensibility }))
}

fn bitmask(dice: &mut Dice) -> Type {
    let bit_bound = 1 + dice.below(64) as u16;
    let flags = (0..bit_bound).filter(|_| !dice.is_one_in(3)).map(|position| (format!("F{position}"), position));
    let (flags, extensibility) = (flags.collect(), Extensibility::Appendable);
    Type::Bitmask(Arc::new(Bitmask { name: "Mask".to_owned(), bit_bound, flags, extensibility }))
}

fn bitset(dice: &mut Dice) -> Type {
    let (mut fields, mut position) = (Vec::new(), 0);
    for index in 0..1 + dice.below(5) {
        let bits = 1 + dice.below(12) as u8;
        let holder = match bits {
            1 => dice.pick(&[Primitive::Boolean, Primitive::UInt8]),
            2..=8 => dice.pick(&[Primitive::Int8, Primitive::UInt8]),
            _ => dice.pick(&[Primitive::Int16, Primitive::UInt32]),
        };
        fields.push(Bitfield { name: format!("b{index}"), position, bits, holder });
        position += u16::from(bits);
    }
    Type::Bitset(Arc::new(Bitset { name: "Set".to_owned(), fields, bits: position }))
}

fn structure(dice: &mut Dice, depth: u64) -> Structure {
    let mut id = 0;
    let members = (0..1 + dice.below(5)).map(|index| {
        id += 1 + if dice.is_one_in(4) { dice.below(1 << 20) as u32 } else { 0 };
        let mut member = StructureMember::new(&format!("m{index}"), id, any_type(dice, depth));
        member.is_key = dice.is_one_in(4);
        member.is_optional = !member.is_key && dice.is_one_in(4);
        member.must_understand = dice.is_one_in(5);
        member
    });
    let members = members.collect();
    let extensibility = dice.extensibility();
    let name = "Struct".to_owned();
    Structure { name, extensibility, base: None, members, is_nested: false, has_hashed_ids: false }
}

fn union(dice: &mut Dice, depth: u64) -> Union {
    let kinds = [Primitive::Boolean, Primitive::Char8, Primitive::Int16, Primitive::UInt8, Primitive::UInt64];
    let discriminator = match dice.is_one_in(3) {
        true => enumeration(dice),
        false => Type::Primitive(dice.pick(&kinds)),
    };
    let mut labels: Vec<i32> = match &discriminator {
        Type::Enumeration(found) => found.literals.iter().map(|literal| literal.value).collect(),
        Type::Primitive(Primitive::Boolean) => vec![0, 1],
        Type::Primitive(Primitive::Char8) => vec![97, 98, 99],
        _ => vec![0, 1, 2, 100],
    };
    let mut cases: Vec<UnionCase> = Vec::new();
    while let Some(label) = labels.pop() {
        let is_default = labels.is_empty() && dice.is_one_in(2);
        let labels = if is_default { Vec::new() } else { vec![label] };
        let case_type = Some(any_type(dice, depth));
        let id = 1 + cases.len() as u32;
        cases.push(UnionCase {
            name: format!("c{id}"),
            id,
            labels,
            is_default,
            case_type,
            is_external: false,
            try_construct: TryConstruct::Discard,
            annotations: Default::default(),
        });
    }
    let (extensibility, is_keyed) = (dice.extensibility(), dice.is_one_in(4));
    let name = "Union".to_owned();
    Union { name, extensibility, discriminator, is_keyed, cases, is_nested: false, has_hashed_ids: false }
}

/// A value as [`decode`] gives it.
fn any_value(of: &Type, dice: &mut Dice) -> Document {
    match of {
        Type::Primitive(primitive) => any_primitive(*primitive, dice),
        Type::String { bound } => Document::Text(any_text(dice, bound.unwrap_or(9), &["a", "Z", "\"", "0x", "\n"])),
        Type::WString { bound } => Document::Text(any_text(dice, bound.unwrap_or(9), &["a", "ß", "𝄞", "\\", "€"])),
        Type::Enumeration(found) => {
            Document::Text(found.literals[dice.below(found.literals.len() as u64) as usize].name.clone())
        }
        Type::Bitmask(found) => {
            let names = found.flags.iter().filter(|_| dice.is_one_in(2));
            Document::Array(names.map(|(name, _)| Document::Text(name.clone())).collect())
        }
        Type::Bitset(found) => {
            let field = |field: &Bitfield, dice: &mut Dice| match (field.holder, dice.roll() & ((1 << field.bits) - 1))
            {
                (Primitive::Boolean, bits) => Document::Boolean(bits != 0),
                (Primitive::Int8 | Primitive::Int16, bits) if bits >> (field.bits - 1) != 0 => {
                    Document::Integer(i128::from(bits) - (1 << field.bits))
                }
                (_, bits) => Document::Integer(bits.into()),
            };
            let fields = found.fields.iter().map(|one| (MapKey::from(one.name.as_str()), field(one, dice)));
            Document::Map(fields.collect())
        }
        Type::Alias(alias) => any_value(&alias.aliased, dice),
        Type::Recursive(used) => any_value(&used.definition().expect("held"), dice),
        Type::Structure(found) => {
            let members = found.members.iter().filter_map(|member| {
                let is_there = !(member.is_optional && dice.is_one_in(2));
                is_there.then(|| (MapKey::Text(member.name.clone()), any_value(&member.member_type, dice)))
            });
            Document::Map(members.collect())
        }
        Type::Union(found) => any_case(found, dice),
        Type::Sequence { element, bound } => {
            let count = dice.below(bound.map_or(4, |bound| bound as u64) + 1) as usize;
            row(element, count, dice)
        }
        Type::Array { element, count } => row(element, *count, dice),
        Type::Map { key, element, .. } => {
            let mut keys = BTreeSet::new();
            let pairs = (0..dice.below(3)).filter_map(|_| {
                let key = super::read::key_text(&any_value(key, dice));
                keys.insert(key.clone()).then(|| (MapKey::Text(key.into()), any_value(element, dice)))
            });
            Document::Map(pairs.collect())
        }
    }
}

fn any_case(of: &Union, dice: &mut Dice) -> Document {
    let case = &of.cases[dice.below(of.cases.len() as u64) as usize];
    let label =
        case.labels.first().map_or_else(|| super::write::free_label(of).expect("one is left"), |one| (*one).into());
    let value = any_value(case.case_type.as_ref().expect("each has a member"), dice);
    let label = super::read::of_number(&of.discriminator, label);
    Document::Map(vec![(MapKey::from(DISCRIMINATOR), label), (MapKey::from(case.name.as_str()), value)])
}

fn any_primitive(primitive: Primitive, dice: &mut Dice) -> Document {
    let bits = if dice.is_one_in(3) { dice.pick(&[0, u64::MAX, 1 << 31, 1 << 63]) } else { dice.roll() };
    match primitive {
        Primitive::Boolean => Document::Boolean(bits & 1 == 1),
        Primitive::Byte | Primitive::UInt8 => Document::Integer((bits as u8).into()),
        Primitive::Int8 => Document::Integer((bits as i8).into()),
        Primitive::Int16 => Document::Integer((bits as i16).into()),
        Primitive::UInt16 => Document::Integer((bits as u16).into()),
        Primitive::Int32 => Document::Integer((bits as i32).into()),
        Primitive::UInt32 => Document::Integer((bits as u32).into()),
        Primitive::Int64 => Document::Integer((bits as i64).into()),
        Primitive::UInt64 => Document::Integer(bits.into()),
        Primitive::Float32 => {
            let number = f32::from_bits(bits as u32);
            Document::Real(if number.is_nan() { f32::INFINITY } else { number }.into())
        }
        Primitive::Float64 | Primitive::Float128 => {
            let number = f64::from_bits(bits);
            Document::Real(if number.is_nan() { f64::NEG_INFINITY } else { number })
        }
        Primitive::Char8 => Document::Text(char::from(bits as u8).to_string()),
        Primitive::Char16 => Document::Text(char::from_u32((bits as u16).into()).unwrap_or('\u{ffff}').to_string()),
    }
}

fn any_text(dice: &mut Dice, bound: usize, parts: &[&str]) -> String {
    let mut text = String::new();
    for _ in 0..dice.below(8) {
        let part = dice.pick(parts);
        if text.len() + part.len() <= bound {
            text.push_str(part);
        }
    }
    text
}

fn row(element: &Type, count: usize, dice: &mut Dice) -> Document {
    match element.resolved() {
        Type::Primitive(Primitive::Byte | Primitive::UInt8) => {
            Document::Bytes((0..count).map(|_| dice.roll() as u8).collect())
        }
        _ => Document::Array((0..count).map(|_| any_value(element, dice)).collect()),
    }
}

/// Calls `law` with types and values of many seeds, which a failure names.
fn for_types(law: impl Fn(SampleType<'_>, &Document, &mut Dice)) {
    for seed in 0..3_000 {
        let mut dice = Dice(seed);
        let of = match dice.is_one_in(5) {
            true => Type::Union(Arc::new(union(&mut dice, 3))),
            false => Type::Structure(Arc::new(structure(&mut dice, 3))),
        };
        let value = any_value(&of, &mut dice);
        let _told = Told { seed, of: &of, value: &value };
        law(SampleType::of(&of).expect("a sample"), &value, &mut dice);
    }
}

/// Tells the seed when a law fails.
struct Told<'a> {
    seed: u64,
    of: &'a Type,
    value: &'a Document,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}: {:?}\n{:?}", self.seed, self.value, self.of);
        }
    }
}

const REPRESENTATIONS: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

#[test]
fn every_value_of_every_type_is_read_as_it_was_written() {
    for_types(|of, value, _| {
        for representation in REPRESENTATIONS {
            for byte_order in [ByteOrder::Little, ByteOrder::Big] {
                let bytes = encode_in(of, value, representation, byte_order).expect("encoded");
                let read = decode(of, &bytes).expect("decoded");
                assert_eq!(&read, value, "{representation:?} {byte_order:?}");
                // Rows of numbers are written as they are read.
                let again = encode_in(of, &read, representation, byte_order).expect("encoded");
                assert_eq!(again, bytes, "{representation:?} {byte_order:?}");
            }
        }
    });
}

#[test]
fn json_of_every_value_is_the_same_sample() {
    for_types(|of, value, _| {
        let json = Document::from_json(&value.to_json().expect("JSON")).expect("JSON");
        for representation in REPRESENTATIONS {
            let bytes = encode(of, &json, representation).expect("encoded");
            assert!(is_same(&decode(of, &bytes).expect("decoded"), value), "{representation:?} {json:?}");
        }
    });
}

/// Equality without regard to the order of pairs, which maps of JSON have not.
fn is_same(one: &Document, other: &Document) -> bool {
    match (one, other) {
        (Document::Map(one), Document::Map(other)) => {
            let has = |(key, value): &(MapKey, Document)| other.iter().any(|(k, v)| k == key && is_same(v, value));
            one.len() == other.len() && one.iter().all(has)
        }
        (Document::Array(one), Document::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}

#[test]
fn the_key_of_every_value_names_its_instance() {
    for_types(|of, value, _| {
        let hash = match key_hash(of, value) {
            // Some types have in their key what no key may have.
            Err(error) if error.problem().contains("an optional member is no part of a key") => return,
            hash => hash.expect("hashed"),
        };
        for representation in REPRESENTATIONS {
            let key = match encode_key(of, value, representation) {
                Err(_) if !of.is_keyed() => continue,
                key => key.expect("encoded"),
            };
            let key = decode_key(of, &key).expect("decoded");
            assert_eq!(key_hash(of, &key).expect("hashed"), hash, "{representation:?} {key:?}");
        }
    });
}

#[test]
fn members_left_out_have_their_default_and_keys_may_not_be() {
    for_types(|of, value, dice| {
        assert_eq!(&completed(of, value.clone()), value, "nothing was left out");
        let (SampleType::Structure(structure), Document::Map(members)) = (of, value) else { return };
        let left_out = &structure.members[dice.below(structure.members.len() as u64) as usize];
        let rest = members.iter().filter(|(key, _)| *key != MapKey::Text(left_out.name.clone())).cloned();
        let found = completed(of, Document::Map(rest.collect()));
        let written = encode(of, &found, Representation::Xcdr2);
        if left_out.is_key {
            let expect = format!("the key member {:?} is missing", left_out.name);
            assert_eq!(written.expect_err("no key").to_string(), expect);
            return;
        }
        let expect = (!left_out.is_optional).then(|| default_value(&left_out.member_type));
        let read = decode(of, &written.expect("encoded")).expect("decoded");
        assert_eq!(read.member(&left_out.name), expect.as_ref());
    });
}

#[test]
fn only_what_names_no_instance_may_be_left_out() {
    let types = idl::parse(
        "struct Inner { @key long a; long b; }; union Either switch (long) { case 1: Inner i; case 2: long l; };
         struct Huge { octet rest[2147483647]; long grid[30000][30000]; };
         struct Outer { @key Inner id; Inner other; Either either; sequence<Inner, 2> row; string<3> name; };",
    );
    let types = types.expect("IDL");
    let of = SampleType::of(types.find("Outer").expect("the type")).expect("a structure");
    let check = |given: &str, expect: &str| {
        let given = Document::from_json(given.as_bytes()).expect("JSON");
        let bytes = encode(of, &completed(of, given), Representation::Xcdr2);
        let said = match bytes {
            Ok(bytes) => {
                String::from_utf8(decode(of, &bytes).expect("decoded").to_json().expect("JSON")).expect("text")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(said, expect);
    };
    check("{}", "the key member \"id\" is missing");
    check(r#"{"id":{}}"#, "id: the key member \"a\" is missing");
    check(
        r#"{"id":{"a":1},"either":{"$discriminator":1},"row":[{"b":2}]}"#,
        r#"{"id":{"a":1,"b":0},"other":{"a":0,"b":0},"either":{"$discriminator":1,"i":{"a":0,"b":0}},"row":[{"a":0,"b":2}],"name":""}"#,
    );
    check(
        r#"{"id":{"a":1},"either":{"i":{"c":1}}}"#,
        "either.i: there is no member \"c\"; did you mean \"a\"? There are a, b",
    );
    check(r#"{"id":{"a":1},"name":null}"#, "name: a text is needed, not nothing");
    check(
        r#"{"id":{"a":1},"either":{"$discriminator":1,"l":5}}"#,
        "either: the discriminator selects \"i\", not \"l\"",
    );

    // Nobody means a thousand million zeros.
    let huge = SampleType::of(types.find("Huge").expect("the type")).expect("a structure");
    let found = encode(huge, &completed(huge, Document::Map(Vec::new())), Representation::Xcdr2);
    assert_eq!(found.expect_err("too much").to_string(), "the member \"rest\" is missing");
}

#[test]
fn a_row_of_numbers_is_an_array_of_them() {
    let types = idl::parse("struct Rows { sequence<float> single; double grid[2][2]; sequence<int8> small; };");
    let types = types.expect("IDL");
    let of = SampleType::of(types.find("Rows").expect("the type")).expect("a structure");
    let given = Document::from_json(br#"{"single":[0.5,-2],"grid":[[1,2],[3,4]],"small":[-1,7]}"#).expect("JSON");
    let bytes = encode(of, &given, Representation::Xcdr2).expect("encoded");
    let read = decode(of, &bytes).expect("decoded");
    let single = read.member("single").expect("the member");
    assert_eq!(single, &Document::Numbers(Numbers::Float32(vec![0.5, -2.0])), "no document for each number");
    assert_eq!(single.item(1).as_deref(), Some(&Document::Real(-2.0)));
    assert_eq!((single.item(2), Document::Null.item(0)), (None, None));
    assert_eq!(single, &Document::Array(vec![Document::Real(0.5), Document::Real(-2.0)]));
    assert_ne!(single, &Document::Array(vec![Document::Real(0.5)]));
    assert_ne!(single, &Document::Numbers(Numbers::Float32(vec![0.5, 2.0])));
    let json = br#"{"single":[0.5,-2.0],"grid":[[1.0,2.0],[3.0,4.0]],"small":[-1,7]}"#;
    assert_eq!(read.to_json().expect("JSON"), json);
    assert_eq!(Document::from_cbor(&read.to_cbor().expect("CBOR")).expect("CBOR"), read);

    let SampleType::Structure(structure) = of else { panic!("a structure") };
    let default = default_value(&structure.members[0].member_type);
    assert!(matches!(default, Document::Numbers(Numbers::Float32(_))), "as one that is read: {default:?}");

    // Numbers of another type are converted as those of an array are, and refused where those are.
    let with = |single: Numbers| {
        let mut members = vec![(MapKey::from("single"), Document::Numbers(single))];
        let Document::Map(all) = &read else { panic!("members") };
        members.extend(all[1..].iter().cloned());
        encode(of, &Document::Map(members), Representation::Xcdr2)
    };
    assert_eq!(with(Numbers::Float64(vec![0.5, -2.0])).expect("encoded"), bytes);
    assert_eq!(with(Numbers::Float32(vec![0.5, -2.0])).expect("encoded"), bytes);
    let small = Document::Map(vec![(MapKey::from("small"), Document::Numbers(Numbers::Int16(vec![1, 300])))]);
    let error = encode(of, &completed(of, small), Representation::Xcdr2).expect_err("300 is no int8");
    assert_eq!(error.to_string(), "small[1]: a whole number from -128 to 127 is needed, not 300");
}
