//! Keys near the 16 bytes of a key hash, which derived and dynamic types tell from longer ones in the same way.

use thalweg_cdr::{self as cdr, Layout, Topic};
use thalweg_derive::Topic;

use super::Types;
use crate::document::Document;
use crate::{Structure, Type, codec, idl, rust};

const IDL: &str = "
@bit_bound(8) enum Half { ONE, TWO };
@final struct Grid { @key Half grid[4][3]; };
@final struct WideGrid { @key Half grid[4][4]; };
typedef Half Row[3];
@final struct NamedGrid { @key Row grid[4]; };
@final struct Bytes { @key sequence<octet, 12> bytes; };
@final struct Letters { @key wstring<6> letters; };
@final struct Halves { @key sequence<Half, 2> halves; @key Half last; };
";

#[derive(Topic, Clone)]
#[topic(crate = "thalweg_cdr", bit_bound = 8)]
enum Half {
    #[topic(name = "ONE")]
    One,
    #[topic(name = "TWO")]
    Two,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Grid {
    #[topic(key)]
    grid: [[Half; 3]; 4],
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct WideGrid {
    #[topic(key)]
    grid: [[Half; 4]; 4],
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Bytes {
    #[topic(key, max_len = 12)]
    bytes: Vec<u8>,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Letters {
    #[topic(key, max_len = 6)]
    letters: cdr::WString,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Halves {
    #[topic(key, max_len = 2)]
    halves: Vec<Half>,
    #[topic(key)]
    last: Half,
}

#[track_caller]
fn check<T: Topic>(value: &T, name: &str) -> [u8; 16] {
    let mut types = Types::default();
    types.add_idl(IDL).expect("IDL");
    let of = types.find(name).expect("the type");
    let expect = cdr::key_hash(value).expect("hashed");
    for representation in [cdr::Representation::Xcdr1, cdr::Representation::Xcdr2] {
        let mut payload = Vec::new();
        cdr::encode(value, representation, &mut payload).expect("encoded");
        let read = codec::decode(of, &payload).expect("decoded");
        assert_eq!(codec::key_hash(of, &read).expect("hashed"), expect, "{name} {representation:?}");
    }
    expect
}

#[test]
fn dynamic_and_derived_types_have_the_same_key_hashes() {
    let grid = Grid { grid: [const { [Half::One, Half::Two, Half::One] }; 4] };
    assert_eq!(check(&grid, "Grid"), check(&grid, "NamedGrid"));
    check(&WideGrid { grid: [const { [Half::One, Half::Two, Half::One, Half::Two] }; 4] }, "WideGrid");
    check(&Bytes { bytes: vec![7; 12] }, "Bytes");
    check(&Letters { letters: cdr::WString("größe".to_owned()) }, "Letters");
    check(&Halves { halves: vec![Half::Two], last: Half::One }, "Halves");
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Plate {
    number: String,
    state: Option<String>,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Plates(#[topic(max_len = 2)] Vec<Plate>);

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
enum Named {
    #[topic(case = 0)]
    Number(u32),
    #[topic(case = 1)]
    Plates(Box<[Plates; 1]>),
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr", key)]
enum ByLabel {
    #[topic(case = 0)]
    Plate(Plate),
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Owned {
    #[topic(key)]
    number: u32,
    #[topic(key)]
    by_label: ByLabel,
    plate: Option<Plate>,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Owner {
    owned: std::collections::BTreeMap<u8, Owned>,
}

#[test]
fn derived_types_tell_whether_a_key_of_them_has_an_optional_member() {
    let with = [Plate::KEY_HAS_OPTIONAL, Plates::KEY_HAS_OPTIONAL, Named::KEY_HAS_OPTIONAL];
    assert_eq!(with, [true; 3]);
    let without = [ByLabel::KEY_HAS_OPTIONAL, Owned::KEY_HAS_OPTIONAL, Owner::KEY_HAS_OPTIONAL];
    assert_eq!(without, [false; 3], "their own keys have none");
}

#[test]
fn a_key_has_no_optional_member_within() {
    let refused = |text: &str, optional: &str| {
        let error = idl::parse(text).map(drop).expect_err("an optional member in a key");
        assert!(error.line == 2 && error.problem.contains(optional), "{error}");
    };
    let pair = "struct Pair { octet b; @optional octet a; };";
    refused(&format!("{pair} struct T {{ long x;\n @key Pair pair;\n }};"), "Pair.a is optional");
    let within =
        format!("{pair} typedef sequence<Pair, 2> Pairs; union U switch (long) {{ case 1: Pairs pairs[3]; }};");
    refused(&format!("{within} struct T {{\n @key U u; long x;\n }};"), "Pair.a is optional");
    let later =
        "struct Node; struct T {\n @key Node node; }; struct Node { sequence<Node> all; @optional Node next; };";
    refused(later, "Node.next is optional");
    let fine = "struct Pair { @key octet b; @optional octet a; }; union U switch (@key long) { case 1: Pair pair; };
        struct T { @key Pair pair; @key U u; @optional Pair other; };";
    assert!(idl::parse(fine).is_ok());
}

#[test]
fn a_key_that_others_made_with_an_optional_member_is_refused_and_the_sample_is_not() {
    let mut types = Types::default();
    types
        .add_idl("@final struct Pair { @optional octet a; octet b; }; @final struct T { Pair pair; long rest; };")
        .expect("IDL");
    let mut of = Structure::clone(types.find("T").expect("the type"));
    of.members[0].is_key = true;
    let value = Document::from_json(br#"{"pair":{"a":1,"b":2},"rest":3}"#).expect("JSON");
    for representation in [cdr::Representation::Xcdr1, cdr::Representation::Xcdr2] {
        let payload = codec::encode(&of, &value, representation).expect("encoded");
        assert_eq!(codec::decode(&of, &payload), Ok(value.clone()));
        assert_eq!(codec::encode_key(&of, &value, representation).expect_err("refused").path(), "pair.a");
        let error = codec::decode_key(&of, &payload).expect_err("refused");
        assert_eq!(error.expected(), "a key without optional members, unlike Pair");
    }
    assert_eq!(codec::key_hash(&of, &value).expect_err("refused").path(), "pair.a");
    let error = rust::to_rust([&Type::Structure(of.into())]).expect_err("refused");
    assert!(error.contains("the optional member Pair.a"), "{error}");
}

#[test]
fn a_key_of_types_that_double_is_not_looked_at_for_ever() {
    // At the end a key that is soon too large, and one of no bytes, which never is.
    for last in ["octet x;", ""] {
        let mut text = format!("@final struct S0 {{ {last} }}; ");
        for level in 1..=40 {
            text += &format!("@final struct S{level} {{ S{} a; S{} b; }}; ", level - 1, level - 1);
        }
        text += "@final union U switch (long) { case 0: octet x; case 1: S40 s; };";
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let types = idl::parse(&text).expect("IDL");
            sender.send(types.find("U").expect("the union").key_fits_hash())
        });
        let fits = receiver.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(fits, Ok(false), "{last:?}");
    }
}

#[derive(Topic, Clone, Debug, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Inner {
    #[topic(key)]
    k: u8,
    rest: i32,
}

#[derive(Topic, Clone, Debug, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct Outer {
    i: Inner,
}

#[derive(Topic, Clone, Debug, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct KeyedByParts {
    #[topic(key)]
    a: u8,
    #[topic(key)]
    o: Outer,
}

#[test]
fn a_key_is_whole_though_it_is_shorter_than_the_members_that_it_is_of() {
    let value = KeyedByParts { a: 1, o: Outer { i: Inner { k: 7, rest: 9 } } };
    let expect = cdr::key_hash(&value).expect("hashed");
    for representation in [cdr::Representation::Xcdr1, cdr::Representation::Xcdr2] {
        let mut key = Vec::new();
        cdr::encode_key(&value, representation, &mut key).expect("encoded");
        assert_eq!(cdr::key_hash_of_payload::<KeyedByParts>(&key, true).expect("hashed"), expect, "{representation:?}");
        let read: KeyedByParts = cdr::decode_key(&key).expect("decoded");
        assert_eq!((read.a, read.o.i.k), (1, 7), "{representation:?}");
    }
}
