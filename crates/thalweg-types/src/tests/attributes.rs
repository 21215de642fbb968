//! The attributes of derived types mean what the annotations of IDL mean.

use thalweg_cdr::{self as cdr, Encode, FieldKind, FieldValue, Layout};
use thalweg_derive::Topic;

use crate::codec::{self, SampleType};
use crate::document::Document;
use crate::type_object::describe;
use crate::{idl, rust};

const HASHED: &str = "
@mutable @autoid(HASH) union Hashed switch (long) { case 0: long number; case 1: @id(7) string text; };
";

#[derive(Topic, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr", autoid = "hash", extensibility = "mutable")]
enum Hashed {
    #[topic(name = "number", case = 0)]
    Number(i32),
    #[topic(name = "text", case = 1, id = 7)]
    Text(String),
}

#[derive(Topic)]
#[topic(crate = "thalweg_cdr")]
enum Signal {
    #[topic(name = "RED")]
    Red,
    #[topic(name = "GREEN")]
    Green,
}

#[test]
fn ids_of_branches_come_from_their_names_as_in_idl() {
    let types = idl::parse(HASHED).expect("IDL");
    let of_idl = describe(types.find("Hashed").expect("the union")).expect("described");
    assert_eq!(describe(&Hashed::description().expect("described")).expect("described"), of_idl);
}

#[test]
fn of_a_branch_that_is_there_twice_the_last_counts() {
    let label = [0, 0, 0, 0xa0, 1, 0, 0, 0];
    let text = |letter: u8| [7, 0, 0, 0x40, 6, 0, 0, 0, 2, 0, 0, 0, letter, 0];
    let payload = [&[0, 11, 0, 0, 38, 0, 0, 0][..], &label, &text(b'a'), &[0, 0], &text(b'b')].concat();
    assert_eq!(cdr::decode::<Hashed>(&payload), Ok(Hashed::Text("b".to_owned())));
    let types = idl::parse(HASHED).expect("IDL");
    let of = SampleType::of(types.find("Hashed").expect("the union")).expect("a sample");
    let read = codec::decode(of, &payload).expect("decoded");
    assert_eq!(read.member("text"), Some(&Document::Text("b".to_owned())));
}

#[test]
fn ids_from_names_are_told_to_rust() {
    let structure = "@autoid(HASH) struct S { long color; @id(3) long more; };";
    let types = idl::parse(&format!("{HASHED} {structure}")).expect("IDL");
    let text = rust::to_rust(types.iter()).expect("Rust");
    assert_eq!(text.matches(", autoid = \"hash\"").count(), 2, "{text}");
    assert_eq!(text.matches("id = ").count(), 4, "the given ids, and the words of the types: {text}");
}

#[test]
fn filters_know_a_literal_by_its_name_in_idl() {
    assert_eq!(Signal::field_kind(&[]), Some(FieldKind::Literal(&["RED", "GREEN"])));
    assert_eq!(Signal::Red.field(&[]), Some(FieldValue::Literal { name: "RED", number: 0 }));
    assert_eq!(Signal::Green.field(&[]), Some(FieldValue::Literal { name: "GREEN", number: 1 }));
}
