//! What `thalweg idl` makes of IDL is Rust, and tells the types of that IDL.

use thalweg::TopicType;
use thalweg::cdr::Extensibility;
use thalweg_types::idl::{Reading, parse_as};
use thalweg_types::rust::to_rust;
use thalweg_types::type_object::describe;

#[allow(dead_code)]
mod made {
    include!("generated/generated_types.rs");
}

fn reading() -> Reading {
    Reading { extensibility: Extensibility::Final, ..Reading::default() }
}

#[test]
fn the_text_is_made_again_as_it_is() {
    let types = parse_as(include_str!("generated/corpus.idl"), &reading()).expect("IDL");
    let made = to_rust(types.iter()).expect("Rust");
    assert!(made == include_str!("generated/generated_types.rs"), "run the command in corpus.idl; it is now\n{made}");
}

#[track_caller]
fn same<T: TopicType>(name: &str) {
    let types = parse_as(include_str!("generated/corpus.idl"), &reading()).expect("IDL");
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
    same::<made::trees::Node>("trees::Node");
    same::<made::trees::Expression>("trees::Expression");
    same::<made::std_msgs::msg::dds_::StringMessage>("std_msgs::msg::dds_::String_");
}

#[test]
fn what_rust_has_not_is_refused_with_its_place() {
    let refused = |text: &str| to_rust(parse_as(text, &reading()).expect("IDL").iter()).expect_err("refused");
    assert_eq!(refused("struct A { long double x; };"), "A.x: long double has no counterpart in Rust");
    assert_eq!(refused("bitmask B { F }; struct A { B b; };"), "B: a bit mask has no counterpart in Rust");
}
