//! Senders and receivers with different versions of a type.

use std::fmt::Debug;

use thalweg_cdr::{EncodeError, Representation, Topic, decode, encode, encode_key, encoded_size_hint, key_hash};
use thalweg_derive::Topic;

use crate::types::{Color, LongTextKey, Point, ShapeType, TextKey};
use crate::zoo::{Generic, Name, Nothing};

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "Growing", extensibility = "appendable")]
struct First {
    a: u8,
    b: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "Growing", extensibility = "appendable")]
struct Second {
    a: u8,
    b: String,
    c: u64,
    #[topic(default = 7)]
    d: i32,
    e: Vec<Point>,
    f: Option<Color>,
    g: Color,
    h: [bool; 2],
    #[topic(default)]
    i: Text,
}

/// A typedef with a default that is not IDL's.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Text(String);

impl Default for Text {
    fn default() -> Self {
        Text("none".into())
    }
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Pair<T> {
    first: T,
    second: u16,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct Sparse {
    #[topic(id = 3)]
    c: u16,
    #[topic(id = 1)]
    a: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct Dense {
    a0: Vec<u64>,
    a: String,
    b: Option<Point>,
    c: u16,
    #[topic(must_understand)]
    d: Option<u8>,
}

/// Member 1 takes no bytes.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "mutable")]
struct Hollow {
    a: u32,
    b: Nothing,
    c: u32,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Lists {
    lists: Vec<Vec<Vec<u8>>>,
}

const BOTH: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

fn encoded<T: Topic>(value: &T, representation: Representation) -> Vec<u8> {
    let mut payload = Vec::new();
    encode(value, representation, &mut payload).expect("a value that can be written");
    payload
}

fn first() -> First {
    First { a: 1, b: "b".into() }
}

fn second() -> Second {
    Second {
        a: 1,
        b: "b".into(),
        c: 0,
        d: 7,
        e: vec![],
        f: None,
        g: Color::Green,
        h: [false; 2],
        i: Text("none".into()),
    }
}

#[test]
fn members_that_an_older_sender_does_not_have_take_their_default() {
    for representation in BOTH {
        assert_eq!(decode(&encoded(&first(), representation)), Ok(second()), "{representation:?}");
    }
}

#[test]
fn members_that_a_newer_sender_added_are_skipped() {
    for representation in BOTH {
        assert_eq!(decode(&encoded(&second(), representation)), Ok(first()), "{representation:?}");
    }
    let nested = Pair { first: second(), second: 515 };
    let expected = Pair { first: first(), second: 515 };
    assert_eq!(decode(&encoded(&nested, Representation::Xcdr2)), Ok(expected));
    let nested = Pair { first: first(), second: 515 };
    let expected = Pair { first: second(), second: 515 };
    assert_eq!(decode(&encoded(&nested, Representation::Xcdr2)), Ok(expected));
}

#[test]
fn members_of_a_mutable_type_come_in_any_order_and_number() {
    let dense = Dense { a0: vec![1, 2], a: "a".into(), b: Some(Point { x: 1.0, y: 2.0 }), c: 515, d: None };
    let sparse = Sparse { c: 515, a: "a".into() };
    for representation in BOTH {
        assert_eq!(decode(&encoded(&dense, representation)), Ok(sparse.clone()), "{representation:?}");
        let expected = Dense { a0: vec![], b: None, ..dense.clone() };
        assert_eq!(decode(&encoded(&sparse, representation)), Ok(expected), "{representation:?}");
    }
}

#[test]
fn an_unknown_member_that_must_be_understood_is_an_error() {
    let dense = Dense { a0: vec![], a: String::new(), b: None, c: 1, d: Some(9) };
    for representation in BOTH {
        let error = decode::<Sparse>(&encoded(&dense, representation)).expect_err("member 4 is unknown");
        assert_eq!(error.expected(), "no member 4 that must be understood before here", "{representation:?}");
    }
}

#[test]
fn parameters_that_belong_to_nobody_are_skipped() {
    let mut payload = vec![0, 3, 0, 0];
    payload.extend([0x03, 0x3f, 4, 0, 1, 2, 3, 4]); // PID_IGNORE
    payload.extend([0x03, 0x80, 4, 0, 9, 9, 9, 9]); // a vendor's own number 3
    payload.extend([0x03, 0x00, 4, 0, 5, 0, 0, 0]); // member 3, padded as XTypes 1.1 had it
    payload.extend([0x01, 0x7f, 8, 0, 1, 0, 0, 0x40, 6, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0]); // member 1, extended
    payload.extend([0x01, 0x00, 0, 0]); // the sentinel of RTPS
    assert_eq!(decode(&payload), Ok(Sparse { c: 5, a: "a".into() }));
}

#[test]
fn an_empty_member_1_does_not_end_the_list() {
    let hollow = Hollow { a: 7, b: Nothing {}, c: 8 };
    for representation in BOTH {
        assert_eq!(decode(&encoded(&hollow, representation)), Ok(hollow.clone()), "{representation:?}");
    }
    let payload = encoded(&hollow, Representation::Xcdr1);
    assert_eq!(payload[12..24], [0x01, 0x7f, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn large_members_get_an_extended_header_in_xcdr1() {
    let dense = Dense { a0: vec![0x0102_0304_0506_0708; 9000], a: "a".into(), b: None, c: 2, d: None };
    let payload = encoded(&dense, Representation::Xcdr1);
    assert_eq!(payload[4..16], [0x01, 0x7f, 8, 0, 0, 0, 0, 0, 0x48, 0x19, 0x01, 0]);
    assert_eq!(decode(&payload), Ok(dense));
}

#[test]
fn a_final_type_is_read_from_a_sender_that_calls_it_appendable_and_the_other_way_round() {
    let point = Point { x: 1.0, y: 2.0 };
    let mut framed = vec![0, 9, 0, 0, 12, 0, 0, 0];
    framed.extend(&encoded(&point, Representation::Xcdr2)[4..]);
    assert_eq!(decode(&framed), Ok(point));
    framed.splice(1..2, [0x15]);
    assert_eq!(decode(&framed), Ok(point), "the id of the XTypes table");

    let mut bare = encoded(&first(), Representation::Xcdr2);
    bare.splice(..8, [0, 7, 0, 0]);
    assert_eq!(decode(&bare), Ok(first()));

    // The inner type has its frame all the same.
    let tree = crate::zoo::Tree { value: 1, branches: vec![], next: None };
    let tree = crate::zoo::Tree { value: 2, branches: vec![tree], next: None };
    let mut bare = encoded(&tree, Representation::Xcdr2);
    bare.splice(..8, [0, 7, 0, 0]);
    assert_eq!(decode(&bare), Ok(tree));
}

#[test]
fn padding_is_not_data() {
    // Without its padding count, the last byte of the padding would be member `c`'s first.
    let payload = [0, 9, 0, 1, 11, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, b'b', 0, 0xff];
    let error = decode::<First>(&payload).expect_err("the frame reaches into the padding");
    assert_eq!(error.to_string(), "8: expected 11 bytes of a type, collection or member, 10 left");
}

#[track_caller]
fn check_refused<T: Topic + Debug>(value: &T, expected: &str) {
    for representation in BOTH {
        let mut out = vec![1, 2, 3];
        let error: EncodeError = encode(value, representation, &mut out).expect_err("cannot be written");
        assert_eq!(error.to_string(), expected);
        assert_eq!(out, [1, 2, 3], "the buffer is as it was");
    }
}

#[test]
fn bounds_and_wire_types_are_enforced_on_the_way_out() {
    check_refused(&TextKey { a: "x".repeat(12), b: 0 }, "length 12 exceeds the bound of 11 (TextKey.a)");
    let name = Generic { items: [Name("abcdefg".into())], list: vec![] };
    check_refused(&name, "length 7 exceeds the bound of 6 (Name.0)");
    let nul = "the string contains a NUL, which ends strings on the wire (LongTextKey.a)";
    check_refused(&LongTextKey { a: "a\0b".into(), b: 0 }, nul);
    let pair = Pair { first: '水', second: 1 };
    check_refused(&pair, "'水' is not in ISO 8859-1, which a char holds (Pair.first)");
    let other = crate::types::Choice::Other(2, 8);
    check_refused(&other, "the label is that of another branch (Choice.Other)");
    assert!(key_hash(&TextKey { a: "x".repeat(12), b: 0 }).is_err());
    let error = encode_key(&pair_of_numbers(), Representation::Xcdr2, &mut Vec::new()).expect_err("no key");
    assert_eq!(error.to_string(), "Pair has no key member");
}

fn pair_of_numbers() -> Pair<u8> {
    Pair { first: 1, second: 2 }
}

#[derive(Debug, Clone, Copy, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", bit_bound = 8)]
enum Level {
    #[topic(default)]
    Low = 1,
    High = 200,
}

#[test]
fn literals_use_all_bits_of_their_bound() {
    let pair = Pair { first: Level::High, second: 1 };
    let payload = encoded(&pair, Representation::Xcdr1);
    assert_eq!(payload, [0, 1, 0, 0, 200, 0, 1, 0]);
    assert_eq!(decode(&payload), Ok(pair));
}

#[test]
fn values_nest_no_deeper_than_they_can_be_read() {
    let mut tree = crate::zoo::Tree { value: 0, branches: vec![], next: None };
    for value in 1..64 {
        tree = crate::zoo::Tree { value, branches: vec![tree], next: None };
    }
    assert_eq!(decode(&encoded(&tree, Representation::Xcdr2)), Ok(tree.clone()));
    tree = crate::zoo::Tree { value: 64, branches: vec![tree], next: None };
    check_refused(&tree, "the value nests more than 64 deep (Tree.branches)");
}

#[test]
fn the_hint_covers_what_is_written() {
    let shape = ShapeType { color: "BLUE".into(), x: 1, y: 2, shapesize: 3, additional_payload_size: vec![0; 1000] };
    for representation in BOTH {
        let (hint, length) = (encoded_size_hint(&shape), encoded(&shape, representation).len());
        assert!(hint >= length && hint <= length + 64, "{hint} for {length}");
    }
}

#[test]
fn the_hint_of_lists_of_lists_does_not_multiply_what_the_first_elements_take() {
    let mut inner = vec![Vec::new(); 10_000];
    inner[0] = vec![7; 10_000];
    let mut lists = vec![Vec::new(); 10_000];
    lists[0] = inner;
    let hint = encoded_size_hint(&Lists { lists });
    assert!(hint < 17 << 20, "{hint} for some hundred kilobytes");
}

#[test]
fn the_first_elements_stand_for_a_long_list_and_not_one_alone() {
    let lists = vec![(0..100).map(|number| vec![7; 1000 * (number % 2)]).collect()];
    let lists = Lists { lists };
    let (hint, length) = (encoded_size_hint(&lists), encoded(&lists, Representation::Xcdr2).len());
    assert!(hint.abs_diff(length) < 400, "{hint} for {length}");
}
