//! What `thalweg idl` makes of IDL is Rust, and tells the types of that IDL.

use thalweg::TopicType;
use thalweg::cdr::{Extensibility, Representation, decode, encode};
use thalweg_types::idl::{Reading, parse_as};
use thalweg_types::rust::to_rust;
use thalweg_types::type_object::describe;

#[allow(dead_code)]
mod made {
    include!("generated/generated_types.rs");
}

#[allow(dead_code)]
mod appendable {
    include!("generated/appendable_types.rs");
}

fn reading() -> Reading {
    Reading { extensibility: Extensibility::Final, ..Reading::default() }
}

#[test]
fn the_text_is_made_again_as_it_is() {
    let types = parse_as(include_str!("generated/corpus.idl"), &reading()).expect("IDL");
    let made = to_rust(types.iter()).expect("Rust");
    assert!(made == include_str!("generated/generated_types.rs"), "run the command in corpus.idl; it is now\n{made}");
    let types = parse_as(include_str!("generated/appendable.idl"), &Reading::default()).expect("IDL");
    let made = to_rust(types.iter()).expect("Rust");
    assert!(
        made == include_str!("generated/appendable_types.rs"),
        "run the command in appendable.idl; it is now\n{made}"
    );
}

#[track_caller]
fn same<T: TopicType>(name: &str) {
    same_as::<T>(include_str!("generated/corpus.idl"), &reading(), name);
}

/// Checks that others are told the same of a Rust type and of one of IDL.
#[track_caller]
fn same_as<T: TopicType>(text: &str, reading: &Reading, name: &str) {
    let types = parse_as(text, reading).expect("IDL");
    let of_idl = describe(types.find(name).expect("the type")).expect("described");
    let of_rust = describe(&T::description().expect("a description")).expect("described");
    assert_eq!(of_rust, of_idl, "{name}");
}

#[test]
fn the_made_types_are_told_as_those_of_the_idl() {
    same::<made::Everything>("Everything");
    same::<made::shapes::inner::Path>("shapes::inner::Path");
    same::<made::shapes::Point>("shapes::Point");
    same::<made::Choice>("Choice");
    same::<made::Fallback>("Fallback");
    same::<made::Rest>("Rest");
    same::<made::ByOctet>("ByOctet");
    same::<made::trees::Node>("trees::Node");
    same::<made::trees::Expression>("trees::Expression");
    same::<made::std_msgs::msg::dds_::StringMessage>("std_msgs::msg::dds_::String_");
}

#[test]
fn enumerations_are_told_to_be_as_appendable_as_they_are_in_the_idl() {
    let (text, reading) = (include_str!("generated/appendable.idl"), Reading::default());
    same_as::<appendable::Lamp>(text, &reading, "Lamp");
    same_as::<appendable::Choice>(text, &reading, "Choice");
}

#[test]
fn a_default_branch_takes_its_own_labels_and_those_of_nobody() {
    for (label, value) in [(2, vec![1, 2, 3, 4]), (7, vec![])] {
        let rest = made::Rest::B(label, value);
        let mut payload = Vec::new();
        encode(&rest, Representation::Xcdr2, &mut payload).expect("encoded");
        assert_eq!(payload[4..8], label.to_le_bytes());
        assert_eq!(decode::<made::Rest>(&payload), Ok(rest));
    }
    let of_another = encode(&made::Rest::B(1, vec![]), Representation::Xcdr2, &mut Vec::new());
    assert!(of_another.expect_err("the label of another branch").to_string().contains("that of another branch"));
}

#[test]
fn what_rust_has_not_is_refused_with_its_place() {
    let refused = |text: &str| to_rust(parse_as(text, &reading()).expect("IDL").iter()).expect_err("refused");
    assert_eq!(refused("struct A { long double x; };"), "A.x: long double has no counterpart in Rust");
    assert_eq!(refused("bitmask B { F }; struct A { B b; };"), "B: a bit mask has no counterpart in Rust");
    let mixed = "A.x: octet and uint8 in one map have no counterpart in Rust";
    assert_eq!(refused("struct A { map<uint8, sequence<octet>> x; };"), mixed);
}
