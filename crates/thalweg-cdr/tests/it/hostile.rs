//! Bytes that lie.

use std::fmt::Debug;

use thalweg_cdr::{Representation, Topic, decode, decode_key, encode, key_hash_of_payload};
use thalweg_derive::Topic;

use crate::types::{
    BoundedEnums, Choice, FinalOptionals, LongTextKey, Mutable, MutableKey, Numbers, Sequences, ShapeType, TextKey,
};
use crate::zoo::{Collections, Keyed, Mutating, Nothing, Tree};

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Texts {
    texts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Empties {
    empties: Vec<Nothing>,
}

/// One byte on the wire when absent, 4 KiB in memory.
#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Pages {
    pages: Vec<Page>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Page {
    page: Option<[u64; 512]>,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct Text {
    #[topic(max_len = 3)]
    text: String,
}

#[derive(Debug, Clone, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", extensibility = "appendable")]
struct Flag {
    flag: bool,
}

#[track_caller]
fn check<T: Topic + Debug>(payload: &[u8], expected: &str) {
    let got = match decode::<T>(payload) {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(got, expected, "input: {payload:02x?}");
}

#[test]
fn headers_are_checked() {
    check::<Text>(&[], "0: expected an encapsulation header of 4 bytes");
    check::<Text>(&[0, 7, 0], "0: expected an encapsulation header of 4 bytes");
    check::<Text>(&[0, 4, 0, 0], "0: expected an encapsulation id of XCDR1 or XCDR2");
    check::<Text>(&[0, 7, 0, 3], "2: expected no more padding than there are bytes");
    check::<Text>(&[0, 11, 0, 0], "0: expected an encapsulation without parameter list, for this type");
    check::<MutableKey>(&[0, 9, 0, 0], "0: expected an encapsulation with parameter list, for a mutable type");
}

#[test]
fn every_cut_of_a_sample_is_an_error_that_names_a_place() {
    let golden = include_str!("../../testdata/cyclone-11.0.1.txt");
    let line = golden.lines().find(|line| line.starts_with("Numbers mixed x2le")).expect("a line");
    let text = line.rsplit(' ').next().expect("five words");
    let payload: Vec<u8> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect();
    for length in 4..payload.len() {
        let error = decode::<Numbers>(&payload[..length]).expect_err("cut off");
        assert!(error.offset() <= length + 3, "{length}: {error}");
        assert!(error.place().is_some_and(|(of, _)| of == "Numbers"), "{length}: {error}");
    }
    let error = decode::<Numbers>(&payload[..26]).expect_err("cut off");
    assert_eq!(error.to_string(), "24: expected 8 bytes of f64, 2 left (Numbers.f)");
}

#[test]
fn lengths_are_held_against_the_input_before_memory_is_taken() {
    let over = "expected a length that 0 remaining bytes can hold, not";
    check::<Texts>(&[0, 7, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0x80], &format!("8: {over} 2147483648 (Texts.texts)"));
    check::<Texts>(&[0, 1, 0, 0, 255, 255, 255, 255], &format!("4: {over} 4294967295 (Texts.texts)"));
    check::<Texts>(
        &[0, 7, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0],
        "8: expected 4294967295 bytes of a type, collection or member, 4 left (Texts.texts)",
    );
    check::<Text>(
        &[0, 7, 0, 0, 4, 0, 0, 0, b'a', 0],
        "4: expected a length that 2 remaining bytes can hold, not 4 (Text.text)",
    );
    let mut sequences = vec![0, 7, 0, 0];
    sequences.extend([0; 12]);
    sequences.extend([1, 0, 0, 0x20, 1, 2, 3, 4, 5, 6, 7, 8]);
    check::<Sequences>(
        &sequences,
        "16: expected a length that 8 remaining bytes can hold, not 536870913 (Sequences.doubles)",
    );
}

#[test]
fn elements_that_take_no_bytes_do_not_loop_for_ever() {
    let refused = "12: expected fewer than 4294967295 elements, for an input of this size (Empties.empties)";
    check::<Empties>(&[0, 7, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255], refused);
    assert_eq!(decode(&[0, 7, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0]), Ok(Empties { empties: vec![Nothing {}; 2] }));
}

#[test]
fn elements_that_grow_in_memory_are_held_against_the_size_of_the_input() {
    let pages = |count: u32| {
        let mut payload = vec![0, 7, 0, 0];
        payload.extend((count + 4).to_le_bytes());
        payload.extend(count.to_le_bytes());
        payload.resize(payload.len() + count as usize, 0);
        payload
    };
    assert_eq!(decode::<Pages>(&pages(200)).map(|pages| pages.pages.len()), Ok(200));
    let refused = "12: expected fewer than 100000 elements, for an input of this size (Pages.pages)";
    check::<Pages>(&pages(100_000), refused);
}

#[test]
fn nesting_has_a_bottom() {
    let tree = |depth: usize| {
        let mut payload = vec![0, 1, 0, 0];
        for _ in 0..depth {
            payload.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        }
        payload
    };
    let error = decode::<Tree>(&tree(1_000_000)).expect_err("too deep");
    assert_eq!(error.expected(), "no more than 64 levels of nesting");
    let payload = tree(1_000_000);
    let (mut decoder, _) = thalweg_cdr::Decoder::of_payload(&payload).expect("a header");
    let error = <Tree as thalweg_cdr::Decode>::skip(&mut decoder).expect_err("too deep");
    assert_eq!(error.expected(), "no more than 64 levels of nesting");
}

#[test]
fn values_that_the_type_does_not_have_are_refused() {
    check::<Flag>(&[0, 1, 0, 0, 2], "4: expected a bool, 0 or 1 (Flag.flag)");
    check::<BoundedEnums>(&[0, 1, 0, 0, 3], "4: expected a literal of Small (BoundedEnums.small)");
    check::<Text>(&[0, 1, 0, 0, 2, 0, 0, 0, b'a', b'b'], "9: expected NUL at the end of the string (Text.text)");
    check::<Text>(&[0, 1, 0, 0, 3, 0, 0, 0, 0, b'b', 0], "8: expected no NUL within the string (Text.text)");
    check::<Text>(&[0, 1, 0, 0, 3, 0, 0, 0, b'a', 0xff, 0], "9: expected UTF-8 (Text.text)");
    check::<Text>(
        &[0, 1, 0, 0, 5, 0, 0, 0, b'a', b'b', b'c', b'd', 0],
        "4: expected a string of at most 3 bytes, not 4 (Text.text)",
    );
    check::<FinalOptionals>(
        &[0, 7, 0, 0, 1, 2],
        "5: expected 0 or 1, whether an optional member is present (FinalOptionals.number)",
    );
    check::<FinalOptionals>(
        &[0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0],
        "8: expected the parameter header of optional member 1 (FinalOptionals.number)",
    );
    check::<Mutating>(
        &[0, 11, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0x10, 1, 0],
        "14: expected a discriminator among the members (Mutating.discriminator)",
    );
}

#[test]
fn an_empty_string_may_come_without_its_nul() {
    check::<Text>(&[0, 1, 0, 0, 0, 0, 0, 0], r#"Text { text: "" }"#);
}

#[test]
fn member_headers_are_checked() {
    check::<MutableKey>(
        &[0, 3, 0, 0, 1, 0x7f, 4, 0, 0, 0, 0, 0],
        "6: expected 8, the length of an extended parameter header",
    );
    check::<MutableKey>(&[0, 3, 0, 0, 9, 0, 8, 0, 1], "8: expected 8 bytes of a type, collection or member, 1 left");
    check::<MutableKey>(&[0, 3, 0, 0], "4: expected 2 bytes of a parameter id, 0 left");
    // Length code 7: 8 times 2^32 - 1.
    check::<MutableKey>(
        &[0, 11, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0x70, 255, 255, 255, 255],
        "12: expected 34359738364 bytes of a type, collection or member, 4 left",
    );
    check::<MutableKey>(
        &[0, 11, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0x00, 7],
        "12: expected 4 bytes of u32, 1 left (MutableKey.late)",
    );
    check::<MutableKey>(&[0, 11, 0, 0, 0, 0, 0, 0], "8: expected key member 9 (MutableKey.late)");
}

#[test]
fn keys_are_checked_as_well() {
    let error = key_hash_of_payload::<ShapeType>(&[0, 1, 0, 0, 9, 0, 0, 0], false).expect_err("cut off");
    assert_eq!(error.to_string(), "4: expected a length that 0 remaining bytes can hold, not 9 (ShapeType.color)");
    let error = decode_key::<Numbers>(&[0, 1, 0, 0]).expect_err("no key");
    assert_eq!(error.to_string(), "0: expected no key: Numbers has no key member");
    let error = key_hash_of_payload::<Keyed>(&[0, 3, 0, 0, 2, 0x3f, 0, 0], true).expect_err("no members");
    assert_eq!(error.to_string(), "8: expected key member 3 (Keyed.small)");
}

#[test]
fn unknown_unions_and_maps_are_bounded_too() {
    check::<Choice>(&[0, 7, 0, 0, 9, 0, 0, 0], "8: expected 1 byte of u8, 0 left (Choice.Other)");
    let mut collections = vec![0, 7, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0];
    collections.extend([255, 255, 255, 0x0f, 0, 0, 0, 0]);
    check::<Collections>(
        &collections,
        "12: expected a length that 4 remaining bytes can hold, not 268435455 (zoo::Collections.sorted)",
    );
    check::<Mutable>(&[0, 11, 0, 0, 9, 0, 0, 0], "8: expected 9 bytes of a type, collection or member, 0 left");
}

#[test]
fn an_appendable_type_without_its_key_is_an_error_for_all_who_read_it() {
    let payload = [0, 9, 0, 0, 0, 0, 0, 0];
    let expected = "8: expected 4 bytes of a length, 0 left (ShapeType.color)";
    check::<ShapeType>(&payload, expected);
    let error = key_hash_of_payload::<ShapeType>(&payload, false).expect_err("no key");
    assert_eq!(error.to_string(), expected);
    let error = decode_key::<ShapeType>(&payload).expect_err("no key");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_key_over_its_bound_has_no_hash() {
    for (length, has_hash) in [(11, true), (12, false), (10_000, false)] {
        let mut payload = Vec::new();
        let unbounded = LongTextKey { a: "x".repeat(length), b: 0 };
        if encode(&unbounded, Representation::Xcdr2, &mut payload).is_err() {
            payload = [&[0, 7, 0, 0], &(length as u32 + 1).to_le_bytes()[..], &vec![b'x'; length], &[0; 8]].concat();
        }
        assert_eq!(key_hash_of_payload::<TextKey>(&payload, false).is_ok(), has_hash, "{length}");
        assert_eq!(decode::<TextKey>(&payload).is_ok(), has_hash, "{length}");
    }
}
