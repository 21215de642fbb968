//! Bytes and types that others made so that reading them costs much.

use super::*;

#[test]
fn hostile_bytes_cost_no_memory() {
    let structure = structure("thalweg::Bytes");
    let huge = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0x7f];
    assert!(codec::decode(&structure, &huge).is_err());
    let mut types = Types::default();
    types.add_idl("struct E { @optional long a; }; struct Many { sequence<E> e; };").expect("IDL");
    let xcdr2 = [0, 7, 0, 0, 0, 0, 0, 0x10, 0xff, 0xff, 0xff, 0x7f];
    assert!(codec::decode(types.find("Many").expect("the type"), &xcdr2).is_err());
    // Elements of which nothing is there would each have the default of their type.
    let mut types = Types::default();
    let idl = "struct P { string names[100]; }; struct Deep { sequence<P> ps; }; struct Named { map<octet, P> ps; };
         union Q switch (octet) { case 0: P p; }; struct Chosen { sequence<Q> qs; };";
    types.add_idl(idl).expect("IDL");
    let short = [0, 1, 0, 0, 0, 0x7d, 0, 0];
    assert!(codec::decode(types.find("Deep").expect("the type"), &short).is_err());
    for (name, element) in
        [("Deep", &[0; 4][..]), ("Named", &[1, 0, 0, 0, 0, 0, 0, 0]), ("Chosen", &[1, 0, 0, 0, 0, 0, 0, 0])]
    {
        let count = 32_000_usize;
        let len = count * element.len();
        let words = [len + 8, len + 4, count].map(|word| u32::try_from(word).expect("few").to_le_bytes());
        let bytes = [&[0, 9, 0, 0][..], &words.concat(), &element.repeat(count)].concat();
        let error = codec::decode(types.find(name).expect("the type"), &bytes).expect_err(name).to_string();
        assert!(error.contains("for an input of this size"), "{name}: {error}");
    }
}

#[test]
fn elements_of_no_bytes_cost_no_memory_that_the_input_does_not_deserve() {
    let doubled = |level: usize| format!("@final struct S{level} {{ S{0} a; S{0} b; }};", level - 1);
    let levels: String = (1..=6).map(doubled).collect();
    let mut types = Types::default();
    types
        .add_idl(&format!("@appendable struct S0 {{}}; {levels} @final struct T {{ sequence<S6> of; }};"))
        .expect("IDL");
    let of_32_000 = [0, 1, 0, 0, 0, 0x7d, 0, 0];
    let error = codec::decode(types.find("T").expect("the type"), &of_32_000).expect_err("much").to_string();
    assert!(error.contains("for an input of this size"), "{error}");
}

#[test]
fn names_of_flags_and_literals_cost_no_memory_that_the_input_does_not_deserve() {
    let mut types = Types::default();
    let long = "a".repeat(200);
    let idl = format!(
        "@bit_bound(8) bitmask M {{ {long}0, {long}1, {long}2, {long}3, {long}4, {long}5, {long}6, {long}7 }};
         @bit_bound(8) enum E {{ {long} }};
         bitset B {{ bitfield<1> {long}0; bitfield<1> {long}1; bitfield<1> {long}2; bitfield<1> {long}3; }};
         @final struct Masks {{ sequence<M> of; }}; @final struct Enums {{ sequence<E> of; }};
         @final struct Sets {{ sequence<B> of; }};"
    );
    types.add_idl(&idl).expect("IDL");
    let read = |name: &str, octet: u8| {
        let count = 100_000_u32;
        let bytes = [&[0, 7, 0, 0][..], &(count + 4).to_le_bytes(), &count.to_le_bytes(), &vec![octet; count as usize]];
        codec::decode(types.find(name).expect("the type"), &bytes.concat())
    };
    let masks = read("Masks", 0xff).expect("flags may be read as a number");
    let item = |index| masks.member("of").and_then(|of| of.item(index)).expect("it is there").into_owned();
    assert!(matches!(item(0), Document::Array(names) if names.len() == 8));
    assert_eq!(item(99_999), Document::Integer(0xff));
    for (name, octet) in [("Enums", 0), ("Sets", 0)] {
        let error = read(name, octet).expect_err(name).to_string();
        assert!(error.contains("for an input of this size"), "{name}: {error}");
    }
}

#[test]
fn a_type_of_many_parts_costs_no_more_for_each_sequence_of_it() {
    // Each structure is twice the one before: the whole has 2^17 members without a byte of its own.
    let mut idl = "@appendable struct S0 {}; ".to_owned();
    for level in 1..=17 {
        idl += &format!("@final struct S{level} {{ S{} a; S{} b; }}; ", level - 1, level - 1);
    }
    idl += "@final struct Inner { sequence<S17> of; }; @final struct Many { sequence<Inner> of; };";
    let mut types = Types::default();
    types.add_idl(&idl).expect("IDL");
    let count = 100_000_u32;
    let bytes = [&[0, 1, 0, 0][..], &count.to_le_bytes(), &vec![0; 4 * count as usize]].concat();
    // None of them looks at all members.
    let read = codec::decode(types.find("Many").expect("the type"), &bytes).expect("empty sequences");
    assert!(read.member("of").and_then(|of| of.item(99_999)).is_some());
}

#[test]
fn keys_of_maps_cost_no_memory_that_the_input_does_not_deserve() {
    use thalweg_cdr::Extensibility;
    let mut types = Types::default();
    let long = "a".repeat(200);
    types.add_idl(&format!("struct P {{ string names[100]; }}; @final struct L {{ octet {long}; }};")).expect("IDL");
    // IDL does not have such keys, but whoever sends a type need not have IDL.
    let read = |key: &str, pair: &[u8]| {
        let key = Box::new(Type::Structure(std::sync::Arc::clone(types.find(key).expect("the type"))));
        let element = Box::new(Type::Primitive(Primitive::UInt8));
        let map = Type::Map { key, element, bound: None };
        let keyed = Structure {
            name: "Keyed".to_owned(),
            extensibility: Extensibility::Appendable,
            base: None,
            members: vec![StructureMember::new("of", 0, map)],
            is_nested: false,
            has_hashed_ids: false,
        };
        let count = 100_000_usize;
        let len = count * pair.len();
        let words = [len + 8, len + 4, count].map(|word| u32::try_from(word).expect("few").to_le_bytes());
        codec::decode(&keyed, &[&[0, 9, 0, 0][..], &words.concat(), &pair.repeat(count)].concat())
    };
    // Keys of which nothing is there would each have the default of their type; others name all their members.
    for (key, pair) in [("P", &[0, 0, 0, 0, 1, 0, 0, 0][..]), ("L", &[7, 1])] {
        let error = read(key, pair).expect_err(key).to_string();
        assert!(error.contains("for an input of this size"), "{key}: {error}");
    }
}

#[test]
fn a_default_has_no_more_parts_than_can_be_meant() {
    let mut idl = "struct T { long k; string names[4000000]; }; struct Few { long k; string names[100]; };
         struct S0 { long k; };"
        .to_owned();
    for level in 1..=40 {
        idl += &format!("struct S{level} {{ S{} a; S{} b; }}; ", level - 1, level - 1);
    }
    let mut types = Types::default();
    types.add_idl(&idl).expect("IDL");
    // Of each type, the first number alone.
    let older = [0, 1, 0, 0, 7, 0, 0, 0];
    for name in ["T", "S40"] {
        let error = codec::decode(types.find(name).expect("the type"), &older).expect_err(name).to_string();
        assert!(error.contains("too many parts to be meant"), "{name}: {error}");
    }
    let read = codec::decode(types.find("Few").expect("the type"), &older).expect("decoded");
    assert_eq!(read.member("names"), Some(&Document::Array(vec![Document::Text(String::new()); 100])));
}

#[test]
fn the_defaults_of_all_types_of_a_component_are_counted_together() {
    use super::recursive::{component_of, library_with};
    // A chain in which each has the next one twice, and further types that have the first one, each with as large a default.
    let made = |further: usize| {
        let last = 15 + further;
        let text = |index: usize| match index {
            0..15 => format!("struct T{index:02} {{ T{next:02} a; T{next:02} b; }}", next = index + 1),
            15 => "struct T15 { sequence<T00> a; sequence<T16> b; }".to_owned(),
            _ if index == last => format!("struct T{index:02} {{ T00 a; }}"),
            _ => format!("struct T{index:02} {{ T00 a; sequence<T{next:02}> b; }}", next = index + 1),
        };
        let texts: Vec<String> = (0..=last).map(text).collect();
        let (library, whole) = library_with(&component_of(&texts.iter().map(String::as_str).collect::<Vec<_>>()));
        library.resolve_counted(&whole.part(1))
    };
    let (few, steps) = made(3);
    assert!(few.is_ok() && (600_000..800_000).contains(&steps), "{steps}");
    let (many, steps) = made(20);
    let error = many.map(drop).expect_err("refused").to_string();
    assert!(error.contains("too many members"), "{error}");
    assert!(steps < 1_200_000, "{steps}");
}

#[test]
fn absent_members_cost_no_memory_that_the_input_does_not_deserve() {
    let mut types = Types::default();
    let members: String = (0..60).map(|number| format!("@optional octet m{number}; ")).collect();
    types.add_idl(&format!("struct Of {{ {members} }}; @final struct Many {{ sequence<Of> of; }};")).expect("IDL");
    let count = 10_000_u32;
    // Of each element, a length, the mark of an absent member, and padding.
    let elements = [1_u8, 0, 0, 0, 0, 0, 0, 0].repeat(count as usize);
    let bytes = [&[0, 7, 0, 0][..], &(8 * count + 4).to_le_bytes(), &count.to_le_bytes(), &elements].concat();
    let read = codec::decode(types.find("Many").expect("the type"), &bytes).expect("decoded");
    let Some(Document::Array(elements)) = read.member("of") else { panic!("an array") };
    assert_eq!(elements.len(), count as usize);
    let is_small = |of: &Document| matches!(of, Document::Map(members) if members.is_empty() && members.capacity() < 2);
    assert!(elements.iter().all(is_small));
}
