//! Participants that tell and ask of more types than anybody has.

use thalweg_rtps::types::{Guid, Keyed};
use thalweg_types::idl;
use thalweg_types::type_object::lookup::{LookupAnswer, LookupCall, RequestIdentity, instance_name};
use thalweg_types::type_object::{
    CollectionHeader, Described, Equivalence, LibraryBounds, MemberName, ObjectBody, ObjectMember, TypeHeader,
    TypeObject, TypeWithSize, describe,
};

use super::judging::STEPS_PER_SECOND;
use super::questions::DEPENDENCIES_MAX;
use super::*;
use crate::topic::TopicKeys;

const HERE: GuidPrefix = GuidPrefix([1; 12]);
const THERE: GuidPrefix = GuidPrefix([2; 12]);

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

fn text() -> TypeIdentifier {
    TypeIdentifier::String { is_wide: false, bound: 0 }
}

/// Takes in another's structure of one member; its identifier.
fn insert_structure(library: &mut TypeLibrary, member: &str, member_type: TypeIdentifier) -> TypeIdentifier {
    let name = MemberName::Text { name: member.to_owned(), remarks: None };
    let member = ObjectMember { id: 0, flags: 1, member_type, labels: Vec::new(), name };
    let body = ObjectBody::Structure { base: TypeIdentifier::None, members: vec![member] };
    let header = TypeHeader(Some("T".to_owned()));
    let object = TypeObject { equivalence: Equivalence::Complete, flags: 1, header, body };
    let bytes = object.to_bytes().expect("written");
    let hash = TypeObject::hash_of(&bytes);
    library.insert(hash, &bytes).expect("an object");
    TypeIdentifier::Hash(Equivalence::Complete, hash)
}

/// Takes in so many structures of another, each with the one before it as its member.
fn insert_chain(library: &mut TypeLibrary, count: usize) -> Vec<TypeIdentifier> {
    let mut chain = Vec::with_capacity(count);
    for _ in 0..count {
        let last = chain.last().cloned().unwrap_or_else(text);
        chain.push(insert_structure(library, "a", last));
    }
    chain
}

fn small_library(objects_max: usize) -> TypeLibrary {
    TypeLibrary::new(LibraryBounds { objects_max, ..LibraryBounds::default() })
}

/// What is told of a type by its complete identifier alone.
fn named(identifier: TypeIdentifier) -> TypeInformation {
    let of = TypeWithSize { identifier, object_bytes: 0 };
    let complete = TypeWithDependencies { of, ..TypeWithDependencies::default() };
    TypeInformation { complete, ..TypeInformation::default() }
}

fn described(text: &str) -> Described {
    describe(idl::parse(text).expect("IDL").find("T").expect("T")).expect("described")
}

/// The question for what these types refer to.
fn about(types: &[TypeIdentifier]) -> LookupRequest {
    let identity = RequestIdentity { writer: [0; 16], number: 1 };
    let instance = instance_name(&Guid::new(HERE, EntityId::PARTICIPANT).to_bytes());
    LookupRequest { identity, instance, call: LookupCall::Dependencies(types.to_vec(), Vec::new()) }
}

/// A library with 2,000 types, each of which refers to the one before it, their bytes, and the question for what the last 256 refer to.
fn long_chain() -> (TypeLibrary, usize, LookupRequest) {
    let mut library = TypeLibrary::default();
    let chain = insert_chain(&mut library, 2_000);
    let bytes: usize = chain.iter().filter_map(|of| library.object_bytes(of)).sum();
    let request = about(&chain[chain.len() - 256..]);
    (library, bytes, request)
}

#[test]
fn the_objects_of_a_chain_are_looked_at_once_for_a_question_about_many_of_its_types() {
    let (library, bytes, request) = long_chain();
    let mut room = ANSWER_BYTES_PER_SECOND;
    let answer = questions::answer_within(&mut room, &library, HERE, &request, 1 << 20);
    let Ok(Some(LookupAnswer::Dependencies(told, next))) = answer else { panic!("{answer:?}") };
    assert_eq!((told.len(), next.is_empty()), (DEPENDENCIES_MAX, false));
    assert_eq!(ANSWER_BYTES_PER_SECOND - room, bytes);
}

#[test]
fn questions_about_dependencies_are_answered_while_little_is_looked_at_for_them_in_a_second() {
    let (library, bytes, request) = long_chain();
    let store = TypeStore::new(HERE);
    store.state().library = library;
    for second in 5..7 {
        let now = at(1_000 * second);
        let mut answers = 0;
        while store.answer(now, &request).is_ok() {
            answers += 1;
            assert!(answers <= ANSWER_BYTES_PER_SECOND / bytes, "{answers} answers, each from {bytes} bytes");
        }
        assert!(answers > 0);
        assert_eq!(store.answer(now + Duration::from_millis(900), &request), Err(ServiceRefusal::OverLimit));
    }
}

#[test]
fn a_topic_is_announced_however_many_types_others_have() {
    let store = TypeStore::new(HERE);
    store.state().library = small_library(4);
    insert_chain(&mut store.state().library, 4);
    let described = described("@final struct T { long a; };");
    let identifier = described.information.complete.of.identifier.clone();
    store.register(&TopicDescription {
        name: "topic".to_owned(),
        type_name: "T".to_owned(),
        keyed: Keyed::No,
        keys: TopicKeys::Wire,
        described: Some(Arc::new(described)),
    });
    assert!(store.information("topic", "T").is_some());
    insert_chain(&mut store.state().library, 20);
    assert!(store.state().library.contains(&identifier), "others may ask for it");
}

#[test]
fn objects_that_made_room_for_others_are_asked_for_again_and_verdicts_stay() {
    let [old, new] = ["@appendable struct T { long a; };", "@appendable struct T { long a; long b; };"].map(described);
    let mut state = State { library: small_library(8), ..State::default() };
    for (hash, bytes) in old.objects.iter().chain(&new.objects) {
        state.library.insert(*hash, bytes).expect("an object");
    }
    let judge = |state: &mut State| {
        let rules = (TypeConsistency::default(), Representation::Xcdr2);
        state.verdict((THERE, &old.information), (HERE, &new.information), rules)
    };
    assert_eq!(judge(&mut state), TypeVerdict::Assignable);
    assert!(state.resolve(THERE, &old.information.complete).is_ok());
    insert_chain(&mut state.library, 5);
    assert_eq!(judge(&mut state), TypeVerdict::Assignable);
    assert!(state.questions.poll(at(0), HERE).is_empty(), "what is decided needs no objects");
    let again = state.resolve(THERE, &old.information.complete);
    assert!(matches!(again, Err(LibraryError::Missing(_))), "{again:?}");
    assert_eq!(state.questions.poll(at(0), HERE).len(), 1);
}

/// Three versions of a type, and a store with their objects.
fn versions() -> ([TypeInformation; 3], TypeStore) {
    let store = TypeStore::new(HERE);
    let information = ["", "long b;", "long c;"].map(|more| {
        let described = described(&format!("@appendable struct T {{ long a; {more} }};"));
        for (hash, bytes) in &described.objects {
            store.state().library.insert(*hash, bytes).expect("an object");
        }
        described.information
    });
    (information, store)
}

#[test]
fn types_of_a_participant_are_compared_within_a_bound_in_each_second() {
    let ([old, new, newest], store) = versions();
    let judge = |now: Instant, from: GuidPrefix, writer: &TypeInformation, reader: &TypeInformation| {
        let mut state = store.state();
        state.judging.turn_to(now, from);
        state.verdict((from, writer), (HERE, reader), (TypeConsistency::default(), Representation::Xcdr2))
    };
    assert_eq!(judge(at(5_000), THERE, &old, &new), TypeVerdict::Assignable);
    store.state().judging.note(STEPS_PER_SECOND);
    assert_eq!(judge(at(5_100), THERE, &old, &new), TypeVerdict::Assignable, "it is known");
    assert_eq!(store.due(), Instant::NEVER);
    assert_eq!(judge(at(5_200), THERE, &old, &newest), TypeVerdict::Unknown);
    assert_eq!(store.due(), at(6_000));
    assert_eq!(judge(at(5_300), GuidPrefix([3; 12]), &newest, &old), TypeVerdict::Assignable, "another one's");
    assert!(store.state().judging.take_news(at(6_000)));
    assert_eq!(judge(at(6_000), THERE, &old, &newest), TypeVerdict::Assignable);
    assert_eq!(store.due(), Instant::NEVER);
}

#[test]
fn a_comparison_is_counted_with_all_objects_that_are_looked_at_for_it() {
    let ([old, ..], store) = versions();
    let mut state = store.state();
    let chain = insert_chain(&mut state.library, 2_000);
    let count = |state: &mut State, second: u64, of: &TypeIdentifier| {
        state.judging.turn_to(at(second * 1_000), THERE);
        let rules = (TypeConsistency::default(), Representation::Xcdr2);
        let verdict = state.verdict((THERE, &named(of.clone())), (HERE, &old), rules);
        (matches!(verdict, TypeVerdict::Different(_)), state.judging.steps_of(THERE))
    };
    let (is_different, few) = count(&mut state, 5, &chain[2]);
    assert!(is_different && (10..200).contains(&few), "{few}");
    // Too deep for a type.
    let (is_different, many) = count(&mut state, 6, &chain[1_999]);
    assert!(!is_different && many > 4_000, "{many}");
    assert_eq!(count(&mut state, 7, &chain[1_999]), (false, 0), "its verdict is known");
}

#[test]
fn verdicts_keep_neither_long_reasons_nor_long_identifiers() {
    let mut state = State::default();
    // The reason tells the way to the members that differ, each of whose names may have 256 bytes.
    let mut nested = |innermost: TypeIdentifier| {
        (0..10).fold(innermost, |inner, _| insert_structure(&mut state.library, &"x".repeat(250), inner))
    };
    let one = named(nested(text()));
    let other = nested(TypeIdentifier::String { is_wide: true, bound: 0 });
    let header = CollectionHeader { equivalence: Some(Equivalence::Complete), element_flags: 1 };
    let without_name = TypeIdentifier::Sequence { header, bound: 0, element: Box::new(other.clone()) };
    let rules = (TypeConsistency::default(), Representation::Xcdr2);
    let verdict = state.verdict((THERE, &one), (HERE, &named(other)), rules);
    let TypeVerdict::Different(why) = &verdict else { panic!("{verdict:?}") };
    assert_eq!(why.chars().count(), REASON_MAX + 1, "{why}");
    assert!(why.ends_with('…'), "{why}");
    assert_eq!(state.verdicts.len(), 1);
    let verdict = state.verdict((THERE, &one), (HERE, &named(without_name)), rules);
    assert!(matches!(verdict, TypeVerdict::Different(_)), "{verdict:?}");
    assert_eq!(state.verdicts.len(), 1, "it is found anew each time");
}
