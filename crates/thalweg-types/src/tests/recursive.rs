//! Types that contain themselves: IDL, objects, assignability, values, and the text of others.

use thalweg_cdr::description::Structure;
use thalweg_cdr::{self as cdr, Layout, Representation};
use thalweg_derive::Topic;

use crate::assign::{self, Permitted};
use crate::codec::{self, SampleType};
use crate::document::{Document, MapKey};
use crate::type_object::{
    Described, Equivalence, LibraryBounds, LibraryError, TypeHash, TypeIdentifier, TypeLibrary, TypeObject, describe,
};
use crate::{Type, Types, idl, rust};

const TREE: &str =
    "@final struct Tree; @final struct Tree { uint16 value; sequence<Tree> branches; @optional Tree next; };";

/// The same as [`TREE`].
#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(crate = "thalweg_cdr")]
struct Tree {
    value: u16,
    branches: Vec<Tree>,
    next: Option<Box<Tree>>,
}

/// Every way in which types may contain each other.
const ALL: &str = "
    module a { struct Node; union Expression; };
    enum Kind { LEAF, NOT, BOTH, CALL };
    typedef sequence<a::Node, 7> Nodes;
    @mutable struct Pair { @optional @external a::Expression left; @optional @external a::Expression right; };
    module a {
      @appendable union Expression switch (Kind) {
        case NOT: @external Expression not; case BOTH: Pair both; case CALL: map<string, Expression> arguments;
        case LEAF: long leaf;
      };
      @final struct Base { @key long id; @optional Node up; };
      @final struct Node : Base { Nodes children; Expression value; };
    };
    @final struct Top { Nodes nodes; a::Node first; };";

#[track_caller]
fn types(text: &str) -> idl::Definitions {
    idl::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn found(text: &str, name: &str) -> Type {
    types(text).find(name).unwrap_or_else(|| panic!("{name} is in {text}")).clone()
}

fn json(text: &str) -> Document {
    Document::from_json(text.as_bytes()).expect("JSON")
}

fn library_of(described: &Described) -> TypeLibrary {
    let mut library = TypeLibrary::default();
    described.objects.iter().for_each(|(hash, bytes)| library.insert(*hash, bytes).expect("an object"));
    for component in &described.components {
        library.insert_component(&component.identifier, &component.objects).expect("a component");
    }
    library
}

#[test]
fn types_that_contain_themselves_are_read() {
    let types = types(ALL);
    let recursive: Vec<&str> =
        types.iter().filter(|of| matches!(of, Type::Recursive(_))).filter_map(Type::name).collect();
    assert_eq!(recursive, ["Nodes", "Pair", "a::Expression", "a::Base", "a::Node"]);
    let Some(Type::Structure(top)) = types.find("Top") else { panic!("outside of the circles") };
    assert!(matches!(top.members[0].member_type.resolved(), Type::Sequence { bound: Some(7), .. }));
    let Some(Type::Structure(node)) = types.find("a::Node").map(Type::resolved) else { panic!("a structure") };
    assert_eq!(node.members.iter().map(|member| member.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((node.own_members().len(), node.is_keyed()), (2, true));
    // Declared, and yet no part of a circle.
    let plain = found("struct A; struct B { A a; }; struct A { long x; };", "B");
    assert!(matches!(plain, Type::Structure(_)), "{plain:?}");
}

#[test]
fn a_type_without_a_value_that_ends_is_refused_at_its_first_use() {
    let refused = |text: &str, place: (usize, usize), part: &str| {
        let error = idl::parse(text).expect_err("an error");
        assert!((error.line, error.column) == place && error.problem.contains(part), "{error} in {text}");
    };
    refused("struct A {\n  A a;\n};", (2, 3), "every value of A would contain another one without end");
    refused("struct A {\n  @key @external A a;\n};", (2, 18), "without end");
    refused("struct A;\nstruct B {\n  A a; };", (3, 3), "A is declared and not defined");
    refused("struct A : A { long x; };", (1, 12), "the base A is declared and not defined before here");
    refused("union U switch (long) { case 0:\n U u; };", (2, 2), "without end");
    refused("struct A; struct M { map<A, long> m; };", (1, 26), "keys of maps");
}

#[test]
fn the_text_of_types_that_contain_themselves_reads_back_as_the_same() {
    for text in [TREE, ALL] {
        let types = types(text);
        let written = idl::to_idl(types.iter());
        let again = idl::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        for found in types.iter() {
            assert_eq!(again.find(found.name().expect("a name")), Some(found), "{written}");
        }
        // From any of them, all others follow.
        for found in types.iter() {
            let written = idl::to_idl([found]);
            let again = idl::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!(again.find(found.name().expect("a name")), Some(found), "{written}");
        }
    }
}

#[test]
fn the_identifiers_of_a_component_count_from_one_in_the_order_of_names() {
    let text = "@final struct B; @final struct A { @optional B b; }; @final struct B { sequence<A> as; };";
    let (a, b) = (describe(&found(text, "A")).expect("described"), describe(&found(text, "B")).expect("described"));
    for (of, expected) in [(&a, 1), (&b, 2)] {
        for part in [&of.information.minimal, &of.information.complete] {
            let TypeIdentifier::Component { length, index, .. } = part.of.identifier else { panic!("{part:?}") };
            assert_eq!((length, index), (2, expected));
            assert_eq!(part.dependencies.len(), 1);
            assert_eq!(part.dependencies[0].identifier, part.of.identifier.whole(), "told as a part of the whole");
            assert!(part.of.object_bytes > 0 && part.dependencies[0].object_bytes > part.of.object_bytes);
        }
    }
    assert_eq!(a.components, b.components, "whichever is described");
    assert_eq!((a.objects.len(), a.components.len()), (0, 2), "minimal and complete");
}

#[test]
fn the_hash_of_a_component_is_that_of_its_objects_without_it() {
    let described = describe(&found(TREE, "Tree")).expect("described");
    for component in &described.components {
        let TypeIdentifier::Component { equivalence, hash, length: 1, index: 0 } = component.identifier else {
            panic!("{component:?}")
        };
        let [object] = &component.objects[..] else { panic!("one type") };
        let mut without_hash = object.clone();
        let mut places = 0;
        for at in 0..object.len() - 14 {
            if object[at..at + 14] == hash.0 {
                assert_eq!(object[at - 1], equivalence.octet());
                without_hash[at..at + 14].fill(0);
                places += 1;
            }
        }
        assert_eq!(places, 2, "each use of itself");
        // A sequence of one object: its bytes, the number 1, and the object (DDS-XTypes 1.3 §7.3.4.9).
        let length = u32::try_from(without_hash.len() + 4).expect("short");
        let sequence = [&length.to_le_bytes()[..], &1_u32.to_le_bytes()[..], &without_hash[..]].concat();
        assert_eq!(TypeObject::hash_of(&sequence), hash);
    }
    let information = &described.information.complete;
    assert!(information.dependencies.is_empty(), "the only type of a component needs no other");
}

#[test]
fn types_that_contain_themselves_are_made_again_of_their_objects() {
    for (text, name) in [(TREE, "Tree"), (ALL, "a::Node"), (ALL, "Top"), (ALL, "Pair"), (ALL, "a::Expression")] {
        let of = found(text, name);
        let described = describe(&of).expect("described");
        let library = library_of(&described);
        let made = library.resolve(described.information.identifier());
        let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = describe(&made).expect("described");
        assert_eq!(again.information.complete, described.information.complete, "{}", idl::to_idl([&made]));
        assert_eq!(again.information.minimal.of, described.information.minimal.of);
        let minimal = library.resolve(&described.information.minimal.of.identifier).expect("made");
        let all = Permitted::default();
        assert_eq!((assign::check(&of, &minimal, all), assign::check(&minimal, &of, all)), (Ok(()), Ok(())), "{name}");
        let told = &described.information.complete.dependencies;
        let found = library.dependencies([&described.information.complete.of.identifier], usize::MAX);
        let counted = found.expect("no bound").objects.len();
        let whole = described.information.complete.of.identifier.whole();
        let own = usize::from(told.iter().any(|one| one.identifier == whole));
        assert_eq!(counted + own, told.len(), "{name}");
    }
}

#[test]
fn a_derived_type_that_contains_itself_has_the_objects_of_its_idl() {
    let of_rust = describe(&Tree::description().expect("described")).expect("described");
    assert_eq!(of_rust, describe(&found(TREE, "Tree")).expect("described"));
}

#[test]
fn a_component_with_another_object_is_refused() {
    let text = "@final struct B; @final struct A { @optional B b; }; @final struct B { sequence<A> as; };";
    let described = describe(&found(text, "A")).expect("described");
    let component = &described.components[1];
    let whole = &component.identifier;
    let refused = |objects: &[Vec<u8>], expected: &str| {
        let mut library = TypeLibrary::default();
        let error = library.insert_component(whole, objects).expect_err("refused").to_string();
        assert!(error.contains(expected), "{expected:?} not in {error}");
        assert_eq!((library.len(), library.refused()), (0, 1));
        assert_eq!(library.missing(whole), std::slice::from_ref(whole));
    };
    let [first, second] = &component.objects[..] else { panic!("two objects") };
    refused(&[second.clone(), first.clone()], "another hash");
    refused(std::slice::from_ref(first), "1 objects of types that contain each other, where 2 are named");
    refused(&[first.clone(), described.components[0].objects[1].clone()], "another hash");
    let mut changed = second.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    refused(&[first.clone(), changed], "another hash");
    let mut library = TypeLibrary::new(LibraryBounds { objects_max: 1, ..LibraryBounds::default() });
    assert_eq!(library.insert_component(whole, &component.objects), Err(LibraryError::Full));
    let mut library = library_of(&described);
    assert_eq!(library.insert_component(&whole.part(2), &component.objects), Ok(()), "it is there already");
    assert!(library.resolve(whole).is_err(), "which of the two is meant nobody knows");
    assert!(library.resolve(&whole.part(3)).is_err());
    assert!(library.resolve(&whole.part(2)).is_ok());
}

#[test]
fn objects_of_a_component_that_make_no_type_are_refused() {
    // One that needs itself without end, and a chain in which each has the next one twice.
    let endless = component_of(&["struct T0 { T1 a; }", "struct T1 { T0 a; }"]);
    let (library, whole) = library_with(&endless);
    let refused = |outcome: Result<Type, LibraryError>| match outcome {
        Err(LibraryError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(library.resolve(&whole.part(1))).contains("without end"));
    let doubling: Vec<String> = (0..64)
        .map(|index| match index {
            63 => "struct T63 { sequence<T00> a; }".to_owned(),
            index => format!("struct T{index:02} {{ T{next:02} a; T{next:02} b; }}", next = index + 1),
        })
        .collect();
    let doubling = component_of(&doubling.iter().map(String::as_str).collect::<Vec<_>>());
    let (library, whole) = library_with(&doubling);
    assert!(refused(library.resolve(&whole.part(1))).contains("too many members"));
}

#[test]
fn what_the_types_of_a_component_have_from_each_other_is_bounded() {
    use crate::type_object::ObjectBody;
    // Each extends the one before it, and the first, which has many members, uses the last.
    let made = |count: usize| {
        let many = format!("sequence<T{:02}> a; ", count - 1).repeat(5_000);
        let texts =
            (0..count).map(|index| format!("struct T{index:02} {{ {} }}", if index == 0 { many.as_str() } else { "" }));
        let mut objects = component_of(&texts.collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>());
        let own = objects[0].dependencies().swap_remove(0);
        for (before, object) in (1..).zip(&mut objects[1..]) {
            let ObjectBody::Structure { base, .. } = &mut object.body else { panic!("a structure") };
            *base = own.part(before);
        }
        let (library, whole) = library_with(&objects);
        library.resolve(&whole.part(1))
    };
    assert!(made(3).is_ok());
    let error = made(60).map(drop).expect_err("refused").to_string();
    assert!(error.contains("too many members"), "{error}");
}

/// The minimal objects of structures that use each other, without regard to whether that makes a type.
pub(super) fn component_of(structures: &[&str]) -> Vec<TypeObject> {
    use crate::type_object::{CollectionHeader, MemberName, ObjectBody, ObjectMember, TypeHeader};
    let length = i32::try_from(structures.len()).expect("few");
    let part = |name: &str| TypeIdentifier::Component {
        equivalence: Equivalence::Minimal,
        hash: TypeHash([0; 14]),
        length,
        index: 1 + name.trim_start_matches('T').parse::<i32>().expect("a number"),
    };
    let of_text = |text: &&str| {
        let words: Vec<&str> = text.split([' ', '{', '}', ';']).filter(|word| !word.is_empty()).collect();
        let members = (0..).zip(words[2..].chunks(2)).map(|(id, words)| ObjectMember {
            id,
            flags: 1,
            member_type: match words[0].strip_prefix("sequence<") {
                None => part(words[0]),
                Some(element) => TypeIdentifier::Sequence {
                    header: CollectionHeader { equivalence: Some(Equivalence::Minimal), element_flags: 1 },
                    bound: 0,
                    element: Box::new(part(element.trim_end_matches('>'))),
                },
            },
            labels: Vec::new(),
            name: MemberName::Hash([id as u8; 4]),
        });
        let body = ObjectBody::Structure { base: TypeIdentifier::None, members: members.collect() };
        TypeObject { equivalence: Equivalence::Minimal, flags: 1, header: TypeHeader(None), body }
    };
    structures.iter().map(of_text).collect()
}

/// A library with a component of objects in which its hash is zero, and the identifier of the whole.
pub(super) fn library_with(objects: &[TypeObject]) -> (TypeLibrary, TypeIdentifier) {
    let length = i32::try_from(objects.len()).expect("few");
    let bytes: Vec<Vec<u8>> = objects.iter().map(|object| object.to_bytes().expect("written")).collect();
    let hash = TypeObject::hash_of_component(&bytes).expect("a hash");
    let filled = bytes.into_iter().map(|mut object| {
        for at in 0..object.len().saturating_sub(19) {
            let is_own = object[at] == Equivalence::Minimal.octet()
                && object[at + 1..at + 15] == [0; 14]
                && object[at + 16..at + 20] == length.to_le_bytes();
            if is_own {
                object[at + 1..at + 15].copy_from_slice(&hash.0);
            }
        }
        object
    });
    let whole = TypeIdentifier::Component { equivalence: Equivalence::Minimal, hash, length, index: 0 };
    let mut library = TypeLibrary::default();
    library.insert_component(&whole, &filled.collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{error}"));
    (library, whole)
}

#[test]
fn a_component_that_counts_its_collections_is_the_same_type() {
    // OpenDDS gives collections without a name an object of their own among the types that contain each other.
    use crate::type_object::ObjectBody;
    let plain = component_of(&["struct T0 { sequence<T0> a; }"]);
    let mut counted = component_of(&["struct T0 { T1 a; }", "struct T1 { T0 a; }"]);
    let ObjectBody::Structure { members, .. } = &counted[1].body else { panic!("a structure") };
    let element = (1, members[0].member_type.clone());
    counted[1].body = ObjectBody::Sequence { bound: 0, element };
    let ((one, of_one), (other, of_other)) = (library_with(&plain), library_with(&counted));
    let one = one.resolve(&of_one.part(1)).expect("made");
    let other = other.resolve(&of_other.part(1)).expect("made");
    let all = Permitted::default();
    assert_eq!((assign::check(&one, &other, all), assign::check(&other, &one, all)), (Ok(()), Ok(())));
    assert_eq!(describe(&other).expect("described").components.len(), 2);
}

fn deep(depth: usize) -> Document {
    let node = |branches: Vec<Document>| {
        Document::Map(vec![
            ("value".into(), Document::Integer(1)),
            (MapKey::from("branches"), Document::Array(branches)),
        ])
    };
    (0..depth).fold(node(Vec::new()), |inner, _| node(vec![inner]))
}

#[test]
fn values_are_those_of_the_derived_type() {
    let of = found(TREE, "Tree");
    let of = SampleType::of(&of).expect("a structure");
    let tree = |value, branches, next| Tree { value, branches, next };
    let leaf = || tree(3, Vec::new(), None);
    let next = tree(4, Vec::new(), Some(Box::new(leaf())));
    let value = tree(1, vec![tree(2, vec![leaf(), leaf()], None)], Some(Box::new(next)));
    let text = r#"{"value":1,"branches":[{"value":2,"branches":[{"value":3,"branches":[]},{"value":3,"branches":[]}]}],
        "next":{"value":4,"branches":[],"next":{"value":3,"branches":[]}}}"#;
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let mut payload = Vec::new();
        cdr::encode(&value, representation, &mut payload).expect("written");
        assert_eq!(codec::encode(of, &json(text), representation).expect("written"), payload);
        assert_eq!(codec::decode(of, &payload), Ok(json(text)));
    }
}

#[test]
fn every_kind_of_circle_has_values() {
    let of = found(ALL, "a::Node");
    let of = SampleType::of(&of).expect("a structure");
    let text = r#"{"id":1,"up":{"id":0,"children":[],"value":{"$discriminator":"LEAF","leaf":0}},
        "children":[{"id":2,"children":[],"value":{"$discriminator":"NOT","not":{"$discriminator":"LEAF","leaf":5}}}],
        "value":{"$discriminator":"BOTH","both":{"left":{"$discriminator":"CALL",
        "arguments":{"x":{"$discriminator":"LEAF","leaf":7}}}}}}"#;
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        let payload = codec::encode(of, &json(text), representation).expect("written");
        assert_eq!(codec::decode(of, &payload), Ok(json(text)), "{representation:?}");
        let key = codec::encode_key(of, &json(text), representation).expect("written");
        assert_eq!(codec::decode_key(of, &key), Ok(json(r#"{"id":1}"#)), "{representation:?}");
    }
    let mut hash = [0; 16];
    hash[3] = 1;
    assert_eq!(codec::key_hash(of, &json(text)), Ok(hash));
    let error = codec::encode(of, &json(r#"{"id":1,"children":[{"id":2,"children":[{}]}]}"#), Representation::Xcdr2);
    assert_eq!(error.expect_err("incomplete").path(), "children[0].children[0]");
}

#[test]
fn a_value_nests_as_deep_as_the_codec_permits_and_no_deeper() {
    let of = found(TREE, "Tree");
    let of = SampleType::of(&of).expect("a structure");
    let levels = usize::try_from(cdr::NESTING_MAX).expect("few");
    let payload = codec::encode(of, &deep(levels), Representation::Xcdr2).expect("written");
    assert_eq!(codec::decode(of, &payload), Ok(deep(levels)));
    let error = codec::encode(of, &deep(levels + 1), Representation::Xcdr2).expect_err("too deep");
    assert_eq!(error.problem(), "the value nests more than 64 deep");
    // XCDR1 has no lengths in front, so that a forged sample is as deep as it is long.
    let mut forged = vec![0, 1, 0, 0];
    (0..10_000).for_each(|_| forged.extend([0, 0, 0, 0, 1, 0, 0, 0]));
    for bytes in [&forged[..], &forged[..4_000]] {
        let error = codec::decode(of, bytes).expect_err("too deep");
        assert_eq!(error.expected(), "no more than 64 levels of nesting");
    }
}

#[test]
fn other_names_in_a_circle_have_a_bottom_too() {
    // A list of lists of lists, which no text of IDL can say.
    use crate::type_object::{CollectionHeader, ObjectBody};
    let mut objects = component_of(&["struct T0 { T1 a; }", "struct T1 { T0 a; }"]);
    let ObjectBody::Structure { members, .. } = &objects[0].body else { panic!("a structure") };
    let element = Box::new(members[0].member_type.clone());
    let header = CollectionHeader { equivalence: Some(Equivalence::Minimal), element_flags: 1 };
    objects[1].body = ObjectBody::Alias { aliased: TypeIdentifier::Sequence { header, bound: 0, element } };
    let (library, whole) = library_with(&objects);
    let of = library.resolve(&whole.part(1)).expect("a structure with a list of lists");
    let (other, whole) = library_with(&objects);
    let other = other.resolve(&whole.part(1)).expect("the same, made again");
    assert_eq!(assign::check(&of, &other, Permitted::default()), Ok(()), "a list of the same lists fits");
    let of = SampleType::of(&of).expect("a structure");
    let mut forged = vec![0, 1, 0, 0];
    (0..10_000).for_each(|_| forged.extend([1, 0, 0, 0]));
    let error = codec::decode(of, &forged).expect_err("too deep");
    assert_eq!(error.expected(), "no more than 64 levels of nesting");
}

#[test]
fn what_is_left_out_has_a_default_that_ends() {
    let text = "@appendable union Expression switch (long) {
          case 0: @external Expression not; case 1: sequence<Expression> all; case 2: long leaf; };
        @appendable struct T { Expression a; @optional T next; };";
    let of = found(text, "T");
    let of = SampleType::of(&of).expect("a structure");
    let default = codec::completed(of, json("{}"));
    assert_eq!(default, json(r#"{"a":{"$discriminator":1,"all":[]}}"#), "not the first case, which would not end");
    let payload = codec::encode(of, &default, Representation::Xcdr2).expect("written");
    assert_eq!(codec::decode(of, &payload), Ok(default.clone()));
    // An older sender's structure ends before the member.
    assert_eq!(codec::decode(of, &[0, 9, 0, 0, 0, 0, 0, 0]), Ok(default));
}

#[test]
fn the_structure_of_a_name_can_be_kept_alone() {
    let mut types = Types::default();
    types.add_idl(TREE).expect("IDL");
    let tree: std::sync::Arc<Structure> = types.find("Tree").expect("the structure").clone();
    drop(types);
    let payload = codec::encode(&tree, &deep(3), Representation::Xcdr2).expect("written");
    assert_eq!(codec::decode(&tree, &payload), Ok(deep(3)));
}

#[test]
fn a_key_has_the_size_of_its_own_key_members_though_its_type_contains_itself() {
    let hash_of = |text: &str| {
        let of = found(text, "T");
        codec::key_hash(SampleType::of(&of).expect("a structure"), &json(r#"{"n":{"id":5}}"#)).expect("a hash")
    };
    let small =
        hash_of("@final struct N; @final struct N { @key long id; sequence<N> all; }; @final struct T { @key N n; };");
    assert_eq!(small[..], [&[0, 0, 0, 5][..], &[0; 12]].concat());
    let endless = found("@final struct P { long id; sequence<P> next; }; @final struct T { @key P n; };", "T");
    assert!(!endless.key_fits_hash());
    // Each definition has the next one twice, and a key of no bytes at the end: nobody waits for all of them.
    let parts = (0..64).map(|index| match index {
        63 => "@final struct E { }; @final struct T63 { @key E e; @optional T00 up; };".to_owned(),
        index => format!(
            "@final struct T{0:02}; @final struct T{index:02} {{ @key T{0:02} a; @key T{0:02} b; }};",
            index + 1
        ),
    });
    assert!(!found(&format!("struct T00; {}", parts.collect::<String>()), "T00").key_fits_hash());
}

#[test]
fn rust_types_box_what_would_have_no_size() {
    let text = rust::to_rust(types(TREE).iter()).expect("Rust");
    assert!(text.contains("pub branches: Vec<Tree>,") && text.contains("pub next: Option<Box<Tree>>,"), "{text}");
    let of_all = rust::to_rust(types(ALL).iter()).expect("Rust");
    let parts =
        ["Not(Box<Expression>)", "pub children: super::Nodes,", "BTreeMap<String, Expression>", "Option<Box<Node>>"];
    for part in parts {
        assert!(of_all.contains(part), "{part} not in {of_all}");
    }
    let mutual = "@final union B; @final union A switch (long) { case 0: long x; case 1: @external B b; };
        @final union B switch (long) { case 0: long x; case 1: @external A a; };";
    let text = rust::to_rust(types(mutual).iter()).expect("Rust");
    assert_eq!(text.matches(", unbounded_key").count(), 2, "{text}");
    let endless = "union U switch (long) { case 0: @external U u; case 1: long x; };";
    let error = rust::to_rust(types(endless).iter()).expect_err("refused");
    assert!(error.contains("U: its default would contain another one without end"), "{error}");
}
