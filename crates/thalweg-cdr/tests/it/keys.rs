//! Key hashes beyond those that Cyclone confirms.

use thalweg_cdr::{
    Layout, Representation, Topic, decode, decode_key, encode, encode_key, key_hash, key_hash_of_payload,
};
use thalweg_derive::Topic;

use crate::types::{Choice, Color, Growing, ShortKey, Small};
use crate::zoo::{Head, Heads, Mutating};

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Bytes<const N: usize> {
    #[topic(key)]
    id: [u8; N],
}

/// Four frames of four bytes, but for the dimensions of an array there is one.
#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Grid {
    #[topic(key)]
    grid: [[Small; 3]; 4],
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct Names {
    #[topic(key, max_len = 2)]
    names: Vec<Small>,
    #[topic(key)]
    color: Color,
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr", key, discriminator = u8)]
enum Switch {
    #[topic(case = 1)]
    On(String),
    #[topic(default)]
    Off(#[topic(label)] u8),
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
struct ByChoice {
    #[topic(key)]
    choice: Choice,
}

/// Holds a key hash against what it should be: that many bytes and zeros, or the MD5 of them.
#[track_caller]
fn check<T: Topic>(value: &T, key: &[u8], hashed: bool) {
    let mut expected = [0; 16];
    if hashed {
        expected = md5::compute(key).0;
    } else {
        expected[..key.len()].copy_from_slice(key);
    }
    assert_eq!(key_hash(value), Ok(expected));
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut payload = Vec::new();
        encode(value, representation, &mut payload).expect("a value that can be written");
        assert_eq!(key_hash_of_payload::<T>(&payload, false), Ok(expected), "{representation:?}");
    }
}

#[test]
fn the_largest_key_decides_between_itself_and_its_md5() {
    check(&Bytes { id: [7; 16] }, &[7; 16], false);
    check(&Bytes { id: [7; 17] }, &[7; 17], true);
    let grid = Grid { grid: [[Small::One; 3]; 4] };
    check(&grid, &[0, 0, 0, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], false);
    let names = Names { names: vec![Small::Two], color: Color::Blue };
    let key = [0, 0, 0, 5, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 6];
    check(&names, &key, false);
    check(&ByChoice { choice: Choice::Number(3) }, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3], true);
}

#[derive(Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Rows {
    #[topic(key)]
    numbers: [[i32; 2]; 2],
    names: [[String; 1]; 2],
}

/// As [`Rows`], which are held elsewhere in memory.
#[derive(Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "Rows")]
struct BoxedRows {
    #[topic(key)]
    numbers: [Box<[i32; 2]>; 2],
    names: [Box<[String; 1]>; 2],
}

#[test]
fn rows_in_boxes_are_dimensions_of_their_array() {
    let rows = Rows { numbers: [[1, 2], [3, 4]], names: [["a".to_owned()], ["b".to_owned()]] };
    let boxed = BoxedRows { numbers: rows.numbers.map(Box::new), names: rows.names.clone().map(Box::new) };
    let key = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    check(&rows, &key, false);
    check(&boxed, &key, false);
    assert_eq!(BoxedRows::description(), Rows::description());
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let (mut expected, mut payload) = (Vec::new(), Vec::new());
        encode(&rows, representation, &mut expected).expect("a value that can be written");
        encode(&boxed, representation, &mut payload).expect("a value that can be written");
        assert_eq!(payload, expected, "{representation:?}");
        assert_eq!(decode::<BoxedRows>(&payload).as_ref(), Ok(&boxed), "{representation:?}");
    }
}

#[test]
fn a_union_may_be_named_by_its_discriminator() {
    check(&Switch::On("on".into()), &[1], false);
    check(&Switch::Off(9), &[9], false);
}

#[test]
fn types_without_key_have_the_zero_hash() {
    check(&Growing::Nothing, &[], false);
    check(&Mutating::Number(1), &[], false);
}

#[test]
fn parts_of_a_key_are_named_by_their_own_keys() {
    let head = |id, text: &str| Head { id, text: text.into() };
    let wide = [[Small::One, Small::Two], [Small::Two, Small::One]];
    let heads = Heads { first: head(1, "x"), between: vec!["y".into()], second: head(2, "z"), wide, last: "w".into() };
    check(&heads, &[1, 2, 0, 0, 0, 0, 0, 4, 1, 2, 2, 1], false);
}

#[test]
fn what_follows_the_last_key_member_is_not_looked_at() {
    let short = ShortKey { data: "data".into(), id: 7, number: 1, rest: vec!["a".into()] };
    let mut payload = Vec::new();
    encode(&short, Representation::Xcdr1, &mut payload).expect("a value that can be written");
    let hash = key_hash_of_payload::<ShortKey>(&payload, false).expect("a key");
    payload.truncate(4 + 24 + 1);
    assert_eq!(key_hash_of_payload::<ShortKey>(&payload, false), Ok(hash));
    payload.truncate(4 + 23);
    let error = key_hash_of_payload::<ShortKey>(&payload, false).expect_err("cut within the key");
    assert_eq!(error.to_string(), "20: expected 8 bytes of u64, 7 left (ShortKey.number)");
}

/// A name of a bounded sequence.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct TwoHeads(#[topic(max_len = 2)] Vec<Head>);

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
enum Crowd {
    #[topic(case = 1)]
    Heads(#[topic(max_len = 2)] Vec<Head>),
    #[topic(case = 2)]
    Name(#[topic(max_len = 3)] String),
}

/// Keys with bounds, of parts that have more behind their own key members.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Bounds {
    #[topic(key, max_len = 2)]
    heads: Vec<Head>,
    #[topic(key)]
    named: TwoHeads,
    #[topic(key)]
    crowd: Crowd,
    rest: String,
}

/// As [`Bounds`], without them.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Boundless {
    #[topic(key)]
    heads: Vec<Head>,
    #[topic(key)]
    named: Vec<Head>,
    #[topic(key)]
    crowd: BoundlessCrowd,
    rest: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
enum BoundlessCrowd {
    #[topic(case = 1)]
    Heads(Vec<Head>),
    #[topic(case = 2)]
    Name(String),
}

/// As [`Bounds`], with members in any order.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct MutableBounds {
    #[topic(key, max_len = 2)]
    heads: Vec<Head>,
    #[topic(key, max_len = 3)]
    name: String,
    rest: String,
}

fn heads(count: u8) -> Vec<Head> {
    (0..count).map(|id| Head { id, text: "behind the key".into() }).collect()
}

fn key_heads(count: u8) -> Vec<Head> {
    (0..count).map(|id| Head { id, text: String::new() }).collect()
}

#[test]
fn a_bounded_key_is_read_from_a_key_alone_as_it_was_written() {
    let name = || Crowd::Name("abc".into());
    let crowds = [(Crowd::Heads(heads(2)), Crowd::Heads(key_heads(2))), (name(), name())];
    for (crowd, expected) in crowds {
        let value = Bounds { heads: heads(2), named: TwoHeads(heads(1)), crowd, rest: "rest".into() };
        let expected =
            Bounds { heads: key_heads(2), named: TwoHeads(key_heads(1)), crowd: expected, rest: String::new() };
        let hash = key_hash(&value).expect("a hash");
        for representation in [Representation::Xcdr1, Representation::Xcdr2] {
            let mut key = Vec::new();
            encode_key(&value, representation, &mut key).expect("a key");
            assert_eq!(decode_key::<Bounds>(&key), Ok(expected.clone()), "{representation:?}");
            assert_eq!(key_hash_of_payload::<Bounds>(&key, true), Ok(hash), "{representation:?}");
            let mut sample = Vec::new();
            encode(&value, representation, &mut sample).expect("a sample");
            assert_eq!(key_hash_of_payload::<Bounds>(&sample, false), Ok(hash), "{representation:?}");
        }
    }
}

#[test]
fn a_key_over_its_bound_is_refused_wherever_it_stands() {
    let within =
        || Boundless { heads: heads(2), named: heads(2), crowd: BoundlessCrowd::Heads(heads(2)), rest: String::new() };
    let over = [
        ("Bounds.heads", Boundless { heads: heads(3), ..within() }),
        ("Bounds.named", Boundless { named: heads(3), ..within() }),
        ("Crowd.Heads", Boundless { crowd: BoundlessCrowd::Heads(heads(3)), ..within() }),
        ("Crowd.Name", Boundless { crowd: BoundlessCrowd::Name("abcd".into()), ..within() }),
    ];
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        for (place, value) in &over {
            let (mut key, mut sample) = (Vec::new(), Vec::new());
            encode_key(value, representation, &mut key).expect("a key");
            encode(value, representation, &mut sample).expect("a sample");
            let errors = [
                decode_key::<Bounds>(&key).map(drop),
                key_hash_of_payload::<Bounds>(&key, true).map(drop),
                key_hash_of_payload::<Bounds>(&sample, false).map(drop),
            ];
            for error in errors {
                let error = error.expect_err("over its bound").to_string();
                assert!(error.contains(place) && error.contains("at most"), "{error}");
            }
        }
    }
}

#[test]
fn members_in_any_order_keep_the_bounds_of_their_keys() {
    let value = MutableBounds { heads: heads(2), name: "abc".into(), rest: "rest".into() };
    let expected = MutableBounds { heads: key_heads(2), rest: String::new(), ..value.clone() };
    let hash = key_hash(&value).expect("a hash");
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let (mut key, mut sample) = (Vec::new(), Vec::new());
        encode_key(&value, representation, &mut key).expect("a key");
        encode(&value, representation, &mut sample).expect("a sample");
        assert_eq!(decode_key::<MutableBounds>(&key), Ok(expected.clone()));
        assert_eq!(key_hash_of_payload::<MutableBounds>(&key, true), Ok(hash));
        assert_eq!(key_hash_of_payload::<MutableBounds>(&sample, false), Ok(hash));
    }
}

mod other {
    #[derive(Debug, Clone, PartialEq, thalweg_derive::Topic)]
    #[topic(crate = "thalweg_cdr")]
    pub struct Spot {
        pub x: u32,
    }
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Spot {
    #[topic(key)]
    at: other::Spot,
}

/// A union that contains itself, whose key has no bound.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
enum Term {
    #[topic(case = 0)]
    Not(Box<Term>),
    #[topic(case = 1)]
    Leaf(u8),
    #[topic(case = 2)]
    Other(Box<Factor>),
}

/// One that contains itself by way of another.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", unbounded_key)]
enum Factor {
    #[topic(case = 0)]
    Leaf(u8),
    #[topic(case = 1)]
    Other(Box<Term>),
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Formula {
    #[topic(key)]
    term: Term,
}

#[test]
fn a_key_that_contains_itself_is_hashed_and_its_namesake_is_not() {
    let small = Formula { term: Term::Leaf(1) };
    let hash = key_hash(&small).expect("a hash");
    assert_ne!(hash[..5], [0, 0, 0, 1, 1], "no bytes of the key, though they would fit");
    assert!(!Formula::description().expect("described").key_fits_hash());
    let hash = key_hash(&Spot { at: other::Spot { x: 7 } }).expect("a hash");
    assert_eq!(hash[..4], [0, 0, 0, 7], "another type of the same name has a bound");
    let deep = Formula { term: Term::Not(Box::new(Term::Other(Box::new(Factor::Other(Box::new(Term::Leaf(3))))))) };
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut key = Vec::new();
        encode_key(&deep, representation, &mut key).expect("a key");
        assert_eq!(decode_key::<Formula>(&key), Ok(deep.clone()));
    }
    let default = <Formula as thalweg_cdr::Decode>::default_value();
    assert_eq!(default.term, Term::Leaf(0), "not the first branch, which would not end");
}
