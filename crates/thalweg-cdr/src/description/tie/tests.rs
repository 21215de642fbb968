//! Definitions that use each other.

use super::*;
use crate::Extensibility;
use crate::description::{Primitive, TryConstruct, once};

fn structure(name: &str, members: Vec<StructureMember>) -> Type {
    let (name, extensibility) = (name.to_owned(), Extensibility::Final);
    Type::Structure(Arc::new(Structure {
        name,
        extensibility,
        base: None,
        members,
        is_nested: false,
        has_hashed_ids: false,
    }))
}

fn member(name: &str, id: u32, of: Type) -> StructureMember {
    StructureMember::new(name, id, of)
}

fn optional(name: &str, id: u32, of: Type) -> StructureMember {
    StructureMember { is_optional: true, ..StructureMember::new(name, id, of) }
}

fn open(key: &str) -> Type {
    Type::Recursive(Recursive::open(key))
}

fn list(of: Type) -> Type {
    Type::Sequence { element: Box::new(of), bound: None }
}

fn number() -> Type {
    Type::Primitive(Primitive::Int32)
}

fn union(name: &str, cases: Vec<Option<Type>>) -> Type {
    let case = |(label, case_type): (i32, Option<Type>)| UnionCase {
        name: format!("c{label}"),
        id: label.cast_unsigned(),
        labels: vec![label],
        is_default: false,
        case_type,
        is_external: false,
        try_construct: TryConstruct::Discard,
        annotations: Default::default(),
    };
    Type::Union(Arc::new(Union {
        name: name.to_owned(),
        extensibility: Extensibility::Final,
        discriminator: number(),
        is_keyed: false,
        cases: (0..).zip(cases).map(case).collect(),
        is_nested: false,
        has_hashed_ids: false,
    }))
}

/// Ties definitions under their own names.
#[track_caller]
fn tied(definitions: Vec<Type>) -> Vec<Type> {
    try_tied(definitions).unwrap_or_else(|error| panic!("{error}"))
}

fn try_tied(definitions: Vec<Type>) -> Result<Vec<Type>, TieError> {
    tie(definitions.into_iter().map(|of| (of.name().expect("a name").to_owned(), of)).collect())
}

#[track_caller]
fn check_refused(definitions: Vec<Type>, part: &str) {
    let error = try_tied(definitions).expect_err("an error");
    assert!(error.problem.contains(part), "{part:?} not in {error}");
}

#[test]
fn a_type_that_contains_itself_is_a_component_of_one() {
    let found = tied(vec![structure("Node", vec![member("children", 0, list(open("Node")))])]).remove(0);
    let Type::Recursive(part) = &found else { panic!("{found:?}") };
    assert_eq!((part.name(), part.index(), part.is_within()), ("Node", 0, false));
    let Type::Structure(node) = found.resolved() else { panic!("{found:?}") };
    let Type::Sequence { element, .. } = &node.members[0].member_type else { panic!("{node:?}") };
    let Type::Recursive(inner) = &**element else { panic!("{node:?}") };
    assert!(inner.is_within() && inner.held().is_some_and(|held| Type::Recursive(held) == found));
    assert_eq!(element.followed().name(), Some("Node"), "through any number of levels");
}

#[test]
fn what_is_taken_out_ends_with_the_whole_unless_it_is_held() {
    let found = tied(vec![structure("Node", vec![optional("next", 0, open("Node"))])]).remove(0);
    let Type::Structure(node) = found.resolved() else { panic!("{found:?}") };
    let Type::Recursive(inner) = node.members[0].member_type.clone() else { panic!("{node:?}") };
    let (held, alone) = (inner.held().expect("the whole is there"), found.held_structure().expect("a structure"));
    drop(found);
    assert!(inner.definition().is_some());
    drop(held);
    assert!(inner.definition().is_some(), "the copy of the structure holds it");
    drop(alone);
    assert_eq!(inner.definition(), None);
    assert!(matches!(&*Type::Recursive(inner).followed(), Type::Recursive(_)), "and no panic");
}

#[test]
fn types_are_in_the_order_of_their_names_and_others_stay_outside() {
    let found = tied(vec![
        structure("b::Second", vec![member("a", 0, list(open("a::First"))), member("leaf", 1, open("Leaf"))]),
        structure("a::First", vec![optional("b", 0, open("b::Second"))]),
        structure("Leaf", vec![member("x", 0, number())]),
        structure("Top", vec![member("b", 0, open("b::Second"))]),
    ]);
    let places: Vec<_> = found
        .iter()
        .map(|of| match of {
            Type::Recursive(part) => (part.name().to_owned(), Some(part.index())),
            other => (other.name().unwrap_or_default().to_owned(), None),
        })
        .collect();
    let expected = [("b::Second", Some(1)), ("a::First", Some(0)), ("Leaf", None), ("Top", None)];
    assert_eq!(places, expected.map(|(name, place)| (name.to_owned(), place)));
    let (Type::Recursive(one), Type::Recursive(other)) = (&found[0], &found[1]) else { panic!("{found:?}") };
    let (one, other) = (one.component().expect("held"), other.component().expect("held"));
    assert!(Arc::ptr_eq(&one, &other));
}

#[test]
fn another_name_in_the_circle_is_looked_through() {
    let nodes = Type::Alias(Arc::new(Alias { name: "Nodes".to_owned(), aliased: list(open("Node")) }));
    let found = tied(vec![nodes, structure("Node", vec![member("children", 0, open("Nodes"))])]);
    assert!(matches!(found[0].resolved(), Type::Sequence { .. }));
    let Type::Structure(node) = found[1].resolved() else { panic!("{found:?}") };
    assert!(matches!(&*node.members[0].member_type.followed(), Type::Sequence { .. }));
}

#[test]
fn every_value_has_to_end_somewhere() {
    check_refused(vec![structure("A", vec![member("a", 0, open("A"))])], "every value of A would contain another");
    let array = Type::Array { element: Box::new(open("A")), count: 2 };
    check_refused(vec![structure("A", vec![member("a", 0, array)])], "without end");
    let two = vec![structure("A", vec![member("b", 0, open("B"))]), structure("B", vec![member("a", 0, open("A"))])];
    check_refused(two, "without end");
    let names = ["A", "B"].map(|name| {
        let other = if name == "A" { "B" } else { "A" };
        Type::Alias(Arc::new(Alias { name: name.to_owned(), aliased: open(other) }))
    });
    check_refused(names.to_vec(), "without end");
    check_refused(vec![union("U", vec![Some(open("U"))])], "without end");
    tied(vec![union("U", vec![Some(open("U")), Some(number())])]);
    tied(vec![structure("A", vec![optional("a", 0, open("A"))])]);
}

#[test]
fn the_default_of_a_union_that_contains_itself_is_known_not_to_end() {
    let found = tied(vec![
        union("U", vec![Some(open("S")), Some(number())]),
        structure("S", vec![member("u", 0, open("U")), member("x", 1, number())]),
        union("V", vec![None, Some(open("V"))]),
    ]);
    let measured: Vec<_> = found.iter().map(|of| (of.has_finite_default(), of.levels_min())).collect();
    assert_eq!(measured, [(false, 1), (false, 2), (true, 1)]);
}

#[test]
fn what_is_not_defined_or_twice_is_refused() {
    check_refused(vec![structure("A", vec![member("b", 0, open("B"))])], "B is declared and not defined");
    let twice = || structure("A", vec![optional("a", 0, open("A"))]);
    check_refused(vec![twice(), twice()], "A is defined twice");
    let one_name = vec![
        ("1".to_owned(), structure("A", vec![optional("a", 0, open("2"))])),
        ("2".to_owned(), structure("A", vec![optional("a", 0, open("1"))])),
    ];
    assert!(tie(one_name).expect_err("an error").problem.contains("two types named A"));
    let many = (0..=COMPONENT_TYPES_MAX).map(|index| {
        let next = format!("T{}", (index + 1) % (COMPONENT_TYPES_MAX + 1));
        structure(&format!("T{index}"), vec![optional("next", 0, open(&next))])
    });
    check_refused(many.collect(), "more than 256 types contain each other");
}

#[test]
fn a_long_chain_takes_no_stack() {
    let chain = (0..100_000).map(|index| {
        let next = if index == 99_999 { number() } else { open(&format!("T{}", index + 1)) };
        structure(&format!("T{index}"), vec![optional("next", 0, next)])
    });
    let found = tied(chain.collect());
    assert_eq!(found.len(), 100_000);
    // Freed from the outermost to the innermost, which holds one level each.
    found.into_iter().for_each(drop);
}

#[test]
fn a_base_is_the_definition_of_its_name() {
    let derived = |name: &str, base: &Type, own: StructureMember| {
        let Type::Structure(base) = base else { panic!("a structure") };
        let members = base.members.iter().cloned().chain([own]).collect();
        let Type::Structure(made) = structure(name, members) else { panic!("a structure") };
        Type::Structure(Arc::new(Structure { base: Some(Arc::clone(base)), ..(*made).clone() }))
    };
    let base = structure("Base", vec![member("nodes", 0, list(open("Node")))]);
    let node = derived("Node", &base, member("x", 1, number()));
    let outer = derived("Outer", &node, member("y", 2, number()));
    let found = tied(vec![base, node, outer]);
    let Type::Structure(node) = found[1].resolved() else { panic!("{found:?}") };
    let names = |of: &Structure| of.members.iter().map(|member| member.name.to_string()).collect::<Vec<_>>();
    assert_eq!((names(node), node.own_members().len()), (vec!["nodes".to_owned(), "x".to_owned()], 1));
    let Type::Structure(outer) = &found[2] else { panic!("outside: {found:?}") };
    assert_eq!((names(outer).len(), outer.own_members().len()), (3, 1));
    let outer = Arc::clone(outer);
    let base = outer.base.as_ref().map(Structure::to_type);
    assert_eq!(base.as_ref(), Some(&found[1]), "the base is known as a part of its component");
    drop((found, base));
    assert!(outer.members[0].member_type.recursive_uses()[0].definition().is_some(), "what it inherits is held");
}

#[test]
fn collections_without_a_name_stand_where_they_are_used() {
    let definitions = vec![
        ("node".to_owned(), structure("Node", vec![member("children", 0, open("list"))])),
        ("list".to_owned(), list(open("node"))),
    ];
    let found = tie(definitions).expect("tied");
    let plain = tied(vec![structure("Node", vec![member("children", 0, list(open("Node")))])]);
    assert_eq!(found[0], plain[0]);
    let endless = vec![("list".to_owned(), list(open("list")))];
    assert!(tie(endless).expect_err("an error").problem.contains("collections without a name"));
}

#[test]
fn few_collections_without_a_name_make_no_huge_type() {
    // Each uses the next one sixteen times.
    let sixteen = |of: Type| {
        let double = |of: Type, _| Type::Map { key: Box::new(of.clone()), element: Box::new(of), bound: None };
        (0..4).fold(of, double)
    };
    let definitions = [("node", structure("Node", vec![member("a", 0, open("0"))]))]
        .into_iter()
        .chain(
            [("0", "1"), ("1", "2"), ("2", "3"), ("3", "4"), ("4", "node")]
                .map(|(key, next)| (key, sixteen(open(next)))),
        )
        .map(|(key, of)| (key.to_owned(), of));
    let error = tie(definitions.collect()).map(drop).expect_err("an error");
    assert!(error.problem.contains("parts of collections without a name"), "{error}");
}

#[test]
fn a_rust_type_is_described_once_with_all_that_contain_it() {
    fn outer() -> Option<Type> {
        once("outer", || {
            let (first, second) = (inner()?, inner()?);
            Some(structure("Outer", vec![member("a", 0, list(first)), optional("b", 1, second)]))
        })
    }
    fn inner() -> Option<Type> {
        once("inner", || Some(structure("Inner", vec![optional("outer", 0, outer()?), optional("inner", 1, inner()?)])))
    }
    let (one, other) = (outer().expect("described"), inner().expect("described"));
    let (Type::Recursive(one), Type::Recursive(other)) = (one, other) else { panic!("both contain themselves") };
    assert_eq!((one.name(), other.name()), ("Outer", "Inner"));
    assert_eq!(one.component(), other.component(), "whichever comes first");
    assert_eq!(one.component().expect("held").types().len(), 2);
}

#[test]
fn a_rust_type_with_a_part_that_cannot_be_described_is_none() {
    fn outer() -> Option<Type> {
        once("undescribed", || {
            inner()?;
            None
        })
    }
    fn inner() -> Option<Type> {
        once("part of undescribed", || Some(structure("Inner", vec![optional("outer", 0, outer()?)])))
    }
    assert_eq!(outer(), None);
    assert_eq!(inner(), None);
    let after = once("after", || Some(structure("After", Vec::new())));
    assert!(matches!(after, Some(Type::Structure(_))), "nothing is left behind");
}
