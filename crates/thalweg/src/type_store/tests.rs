//! Questions and answers, without a network.

use std::time::Duration;

use thalweg_rtps::types::Guid;
use thalweg_types::idl;
use thalweg_types::type_object::lookup::{LookupAnswer, LookupCall, RequestIdentity, instance_name};
use thalweg_types::type_object::{Described, describe};

use super::*;

const HERE: GuidPrefix = GuidPrefix([1; 12]);
const THERE: GuidPrefix = GuidPrefix([2; 12]);

fn described() -> Described {
    let text = "@final struct Inner { long x; }; @final struct Outer { Inner a; sequence<Inner> b; };";
    describe(idl::parse(text).expect("IDL").find("Outer").expect("Outer")).expect("described")
}

/// A library that has the objects of [`described`].
fn library() -> TypeLibrary {
    let mut library = TypeLibrary::default();
    described().objects.iter().for_each(|(hash, bytes)| library.insert(*hash, bytes).expect("room"));
    library
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

#[test]
fn what_is_missing_is_asked_in_one_request_four_times_and_then_given_up() {
    let described = described();
    let mut state = State::default();
    let wanted = &described.information.complete;
    assert!(matches!(state.resolve(THERE, wanted), Err(LibraryError::Missing(_))));
    let mut asked = 0;
    for time in (0..10_000).step_by(100) {
        let requests = state.questions.poll(at(time), HERE);
        for request in &requests {
            asked += 1;
            let LookupCall::Types(types) = &request.call else { panic!("{request:?}") };
            assert_eq!(types.len(), 2, "the type and its dependency");
            assert_eq!(request.instance, instance_name(&Guid::new(THERE, EntityId::PARTICIPANT).to_bytes()));
        }
    }
    assert_eq!(asked, 4);
    assert_eq!(state.questions.due(), Instant::ZERO, "the participant is told");
    assert!(state.questions.take_news());
    assert_eq!(state.questions.due(), Instant::NEVER);
    let (_, hash) = wanted.of.identifier.hashes()[0];
    assert!(state.questions.gave_up(&hash));
    let _ = state.resolve(THERE, wanted);
    assert!(state.questions.poll(at(20_000), HERE).is_empty(), "nobody asks in vain for ever");
}

#[test]
fn an_answer_brings_the_type_and_nothing_that_was_not_asked_for() {
    let described = described();
    let mut state = State::default();
    let _ = state.resolve(THERE, &described.information.complete);
    let request = state.questions.poll(at(0), HERE).remove(0);
    assert_eq!(questions::answer(&library(), HERE, &request, 1 << 20), None, "the question is for another one");
    let mut answer = questions::answer(&library(), THERE, &request, 1 << 20);
    if let Some(LookupAnswer::Types(objects, _)) = &mut answer {
        let unasked = describe(idl::parse("struct Unasked { long y; };").expect("IDL").iter().next().expect("one"));
        let (hash, bytes) = unasked.expect("described").objects[0].clone();
        objects.push((TypeIdentifier::Hash(thalweg_types::type_object::Equivalence::Minimal, hash), bytes));
    }
    let State { library, questions, .. } = &mut state;
    questions.handle_reply(library, THERE, LookupReply { identity: request.identity, answer });
    assert_eq!(library.len(), 2);
    assert!(questions.take_news());
    assert!(state.resolve(THERE, &described.information.complete).is_ok());
}

#[test]
fn dependencies_are_told_from_where_the_last_answer_ended() {
    let identifier = described().information.complete.of.identifier;
    let identity = RequestIdentity { writer: [0; 16], number: 1 };
    let instance = instance_name(&Guid::new(HERE, EntityId::PARTICIPANT).to_bytes());
    let ask = |from: Vec<u8>| {
        let call = LookupCall::Dependencies(vec![identifier.clone()], from);
        let request = LookupRequest { identity, instance: instance.clone(), call };
        match questions::answer(&library(), HERE, &request, 1 << 20) {
            Some(LookupAnswer::Dependencies(types, next)) => (types.len(), next),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(Vec::new()), (1, Vec::new()));
    assert_eq!(ask(vec![0, 0, 0, 1]), (0, Vec::new()));
    assert_eq!(ask(vec![0xff; 32]), (0, Vec::new()));
}

#[test]
fn an_answer_keeps_to_its_size() {
    let described = described();
    let types =
        [&described.information.complete, &described.information.minimal].map(|part| part.of.identifier.clone());
    let identity = RequestIdentity { writer: [0; 16], number: 1 };
    let instance = instance_name(&Guid::new(HERE, EntityId::PARTICIPANT).to_bytes());
    let request = LookupRequest { identity, instance, call: LookupCall::Types(types.to_vec()) };
    let Some(LookupAnswer::Types(objects, _)) = questions::answer(&library(), HERE, &request, 150) else {
        panic!("an answer")
    };
    assert!(objects.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= 150);
}
