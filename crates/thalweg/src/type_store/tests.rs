//! Questions and answers, without a network.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use thalweg_rtps::types::{Guid, Keyed};
use thalweg_types::idl;
use thalweg_types::type_object::lookup::{LookupAnswer, LookupCall, RequestIdentity, instance_name};
use thalweg_types::type_object::{Described, Equivalence, TypeHash, describe};

use super::*;
use crate::topic::TopicKeys;

const HERE: GuidPrefix = GuidPrefix([1; 12]);
const THERE: GuidPrefix = GuidPrefix([2; 12]);
const SILENT: GuidPrefix = GuidPrefix([3; 12]);

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
    assert!(state.questions.gave_up(&wanted.of.identifier.objects()[0]));
    let _ = state.resolve(THERE, wanted);
    assert!(state.questions.poll(at(20_000), HERE).is_empty(), "nobody asks in vain for ever");
}

/// Whoever is asked within so many milliseconds, in order.
fn asked_until(state: &mut State, from: u64, until: u64) -> Vec<GuidPrefix> {
    let mut asked = Vec::new();
    for time in (from..until).step_by(100) {
        for request in state.questions.poll(at(time), HERE) {
            let names = [SILENT, THERE].into_iter();
            let name = |prefix: &GuidPrefix| instance_name(&Guid::new(*prefix, EntityId::PARTICIPANT).to_bytes());
            asked.extend(names.filter(|prefix| request.instance == name(prefix)));
        }
    }
    asked.dedup();
    asked
}

#[test]
fn a_participant_that_is_silent_keeps_nobody_from_asking_another_one() {
    let described = described();
    let wanted = &described.information.complete;
    let object = &wanted.of.identifier.objects()[0];
    // The second comes while the first is asked, and after it was given up.
    for comes_late in [false, true] {
        let mut state = State::default();
        let _ = state.resolve(SILENT, wanted);
        if comes_late {
            assert_eq!(asked_until(&mut state, 0, 10_000), [SILENT]);
            assert!(state.questions.gave_up(object));
        }
        let _ = state.resolve(THERE, wanted);
        assert!(!state.questions.gave_up(object), "who knows");
        let asked = asked_until(&mut state, 10_000, 20_000);
        assert_eq!(asked, if comes_late { vec![THERE] } else { vec![SILENT, THERE] });
        assert!(state.questions.gave_up(object));
        let _ = (state.resolve(SILENT, wanted), state.resolve(THERE, wanted));
        assert_eq!(asked_until(&mut state, 20_000, 30_000), [], "nobody asks in vain for ever");
    }
}

#[test]
fn a_participant_that_names_thousands_of_types_leaves_room_for_questions_to_others() {
    let object = |number: u32| {
        let mut hash = [0; 14];
        hash[..4].copy_from_slice(&number.to_be_bytes());
        TypeIdentifier::Hash(Equivalence::Complete, TypeHash(hash))
    };
    let mut state = State::default();
    state.questions.want(SILENT, (0..10_000).map(object));
    state.questions.want(THERE, std::iter::once(object(10_000)));
    let mut asked = asked_until(&mut state, 0, 100);
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked, [THERE, SILENT]);
}

#[test]
fn questions_without_end_are_answered_with_so_many_bytes_a_second() {
    let store = TypeStore::new(HERE);
    store.state().library = library();
    let identity = RequestIdentity { writer: [0; 16], number: 1 };
    let ask_of = |participant: GuidPrefix| {
        let instance = instance_name(&Guid::new(participant, EntityId::PARTICIPANT).to_bytes());
        let call = LookupCall::Types(vec![described().information.complete.of.identifier]);
        LookupRequest { identity, instance, call }
    };
    let (ours, another) = (ask_of(HERE), ask_of(THERE));
    for second in 5..7 {
        let now = at(1_000 * second);
        assert_eq!(store.answer(now, &another), Ok(None));
        let mut bytes = 0;
        while let Ok(answer) = store.answer(now, &ours) {
            bytes += answer.expect("it is for us").len();
        }
        assert!((ANSWER_BYTES_PER_SECOND..ANSWER_BYTES_PER_SECOND + 1_000).contains(&bytes), "{bytes}");
        assert_eq!(store.answer(now + Duration::from_millis(900), &ours), Err(ServiceRefusal::OverLimit));
    }
}

#[test]
fn an_answer_that_comes_too_late_is_taken_and_who_was_silent_may_be_asked_again() {
    let described = described();
    let wanted = &described.information.complete;
    let objects = wanted.of.identifier.objects();
    let mut state = State::default();
    let _ = state.resolve(THERE, wanted);
    let request = state.questions.poll(at(0), HERE).remove(0);
    assert_eq!(asked_until(&mut state, 100, 10_000), [THERE]);
    assert!(state.questions.gave_up(&objects[0]));
    let answer = questions::answer(&library(), THERE, &request, 1 << 20);
    let State { library, questions, .. } = &mut state;
    questions.handle_reply(library, THERE, LookupReply { identity: request.identity, answer });
    assert!(state.resolve(THERE, wanted).is_ok());
    let mut state = State::default();
    let _ = state.resolve(THERE, wanted);
    asked_until(&mut state, 0, 10_000);
    state.questions.ask_again(THERE, &objects);
    assert_eq!(asked_until(&mut state, 10_000, 20_000), [THERE]);
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
        objects.push((TypeIdentifier::Hash(Equivalence::Minimal, hash), bytes));
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

/// Types that contain each other, and one that does not.
fn recursive() -> Described {
    let text = "struct Node; struct Leaf { long x; };
        @final struct Tree { sequence<Node> nodes; Leaf leaf; }; @final struct Node { @optional Tree tree; };";
    describe(idl::parse(text).expect("IDL").find("Tree").expect("Tree")).expect("described")
}

fn with_recursive() -> TypeLibrary {
    let mut library = TypeLibrary::default();
    let described = recursive();
    described.objects.iter().for_each(|(hash, bytes)| library.insert(*hash, bytes).expect("room"));
    described.components.iter().for_each(|one| library.insert_component(&one.identifier, &one.objects).expect("room"));
    library
}

#[test]
fn a_component_is_asked_for_as_a_whole_and_believed_as_a_whole() {
    let described = recursive();
    let mut state = State::default();
    let wanted = &described.information.complete;
    let whole = wanted.of.identifier.whole();
    let _ = state.resolve(THERE, wanted);
    let request = state.questions.poll(at(0), HERE).remove(0);
    let LookupCall::Types(types) = &request.call else { panic!("{request:?}") };
    assert!(types.contains(&whole) && types.len() == 2, "the component and the leaf: {types:?}");
    let answer = questions::answer(&with_recursive(), THERE, &request, 1 << 20);
    let Some(LookupAnswer::Types(objects, pairs)) = answer else { panic!("{answer:?}") };
    assert_eq!(objects.len(), 3, "each type of the component, and the leaf");
    let State { library, questions, .. } = &mut state;
    let reply = |objects: Vec<(TypeIdentifier, Vec<u8>)>| {
        let answer = Some(LookupAnswer::Types(objects, pairs.clone()));
        LookupReply { identity: request.identity, answer }
    };
    let without_one = objects.iter().filter(|(identifier, _)| *identifier != whole.part(2)).cloned().collect();
    questions.handle_reply(library, THERE, reply(without_one));
    assert!(!library.contains(&whole), "a part is not believed alone");
    questions.handle_reply(library, THERE, reply(objects));
    assert!(state.resolve(THERE, wanted).is_ok());
}

#[test]
fn the_types_of_a_component_are_asked_for_one_by_one_by_every_other_try() {
    let described = recursive();
    let mut state = State::default();
    let whole = described.information.minimal.of.identifier.whole();
    let _ = state.resolve(THERE, &described.information.minimal);
    let asked = |state: &mut State, time| {
        let request = state.questions.poll(at(time), HERE).remove(0);
        let LookupCall::Types(types) = request.call else { panic!("types are asked for") };
        types.into_iter().filter(|identifier| identifier.whole() == whole).collect::<Vec<_>>()
    };
    assert_eq!(asked(&mut state, 0), std::slice::from_ref(&whole));
    assert_eq!(asked(&mut state, 600), [whole.part(1), whole.part(2)]);
    assert_eq!(asked(&mut state, 1_200), std::slice::from_ref(&whole));
}

#[test]
fn one_type_of_a_component_is_answered_with_all() {
    let whole = recursive().information.complete.of.identifier.whole();
    let identity = RequestIdentity { writer: [0; 16], number: 1 };
    let instance = instance_name(&Guid::new(HERE, EntityId::PARTICIPANT).to_bytes());
    let request = LookupRequest { identity, instance, call: LookupCall::Types(vec![whole.part(2), whole.part(1)]) };
    let Some(LookupAnswer::Types(objects, _)) = questions::answer(&with_recursive(), HERE, &request, 1 << 20) else {
        panic!("an answer")
    };
    let named: Vec<TypeIdentifier> = objects.into_iter().map(|(identifier, _)| identifier).collect();
    assert_eq!(named, [whole.part(1), whole.part(2)]);
}

#[test]
fn more_objects_than_a_request_has_room_for_are_asked_for_in_several_and_all_come() {
    const PARTS: usize = 2 * questions::BATCH_MAX;
    let (mut parts, mut members) = (String::new(), String::new());
    for number in 0..PARTS {
        write!(parts, "@final struct Part{number} {{ long x{number}; }}; ").expect("a string");
        write!(members, "Part{number} a{number}; ").expect("a string");
    }
    let text = format!("{parts} @final struct Outer {{ {members} }};");
    let described = describe(idl::parse(&text).expect("IDL").find("Outer").expect("Outer")).expect("described");
    let mut there = TypeLibrary::default();
    described.objects.iter().for_each(|(hash, bytes)| there.insert(*hash, bytes).expect("room"));
    let (mut state, wanted) = (State::default(), &described.information.complete);
    let _ = state.resolve(THERE, wanted);
    let requests = state.questions.poll(at(0), HERE);
    let named = |request: &LookupRequest| match &request.call {
        LookupCall::Types(types) => types.len(),
        LookupCall::Dependencies(..) => panic!("{request:?}"),
    };
    let counts: Vec<usize> = requests.iter().map(named).collect();
    assert_eq!(counts, [questions::BATCH_MAX, questions::BATCH_MAX, 1], "the type and its parts");
    let numbers: BTreeSet<i64> = requests.iter().map(|request| request.identity.number).collect();
    assert_eq!(numbers.len(), requests.len());
    for request in requests {
        assert!(state.resolve(THERE, wanted).is_err(), "an answer is outstanding");
        let answer = questions::answer(&there, THERE, &request, 1 << 20);
        let State { library, questions, .. } = &mut state;
        questions.handle_reply(library, THERE, LookupReply { identity: request.identity, answer });
    }
    assert!(state.resolve(THERE, wanted).is_ok());
}

/// What is judged of a writer and a reader that tell these types named `T`, whose objects are all here.
fn judged(writer: &str, reader: &str, consistency: TypeConsistency) -> TypeVerdict {
    let [writer, reader] =
        [writer, reader].map(|text| describe(idl::parse(text).expect("IDL").find("T").expect("T")).expect("described"));
    let mut state = State::default();
    for (hash, bytes) in writer.objects.iter().chain(&reader.objects) {
        state.library.insert(*hash, bytes).expect("room");
    }
    let (writer, reader) = ((THERE, &writer.information), (HERE, &reader.information));
    state.verdict(writer, reader, (consistency, Representation::Xcdr2))
}

/// Lets a reader permit something or not.
type Permit = fn(&mut TypeConsistency, bool);

#[test]
fn each_option_of_a_reader_permits_its_own_difference_and_no_other() {
    let cases: [(&str, &str, Permit); 4] = [
        ("@final struct T { sequence<long> a; };", "@final struct T { sequence<long, 8> a; };", |options, permits| {
            options.ignores_sequence_bounds = permits
        }),
        ("@final struct T { string<9> a; };", "@final struct T { string<8> a; };", |options, permits| {
            options.ignores_string_bounds = permits
        }),
        ("@final struct T { long a; };", "@final struct T { long b; };", |options, permits| {
            options.ignores_member_names = permits
        }),
        ("@appendable struct T { long a; };", "@appendable struct T { long a; long b; };", |options, permits| {
            options.prevents_widening = !permits
        }),
    ];
    for (writer, reader, set) in cases {
        for permits in [false, true] {
            // All others the other way round.
            let mut options = TypeConsistency {
                ignores_sequence_bounds: !permits,
                ignores_string_bounds: !permits,
                ignores_member_names: !permits,
                prevents_widening: permits,
                ..TypeConsistency::default()
            };
            set(&mut options, permits);
            let verdict = judged(writer, reader, options);
            assert_eq!(verdict == TypeVerdict::Assignable, permits, "{reader} {options:?}: {verdict:?}");
        }
    }
}

/// Keeps the warnings of a thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct WarningText(String);

impl tracing::field::Visit for WarningText {
    fn record_debug(&mut self, _: &tracing::field::Field, value: &dyn fmt::Debug) {
        write!(self.0, "{value:?}").expect("a string");
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = WarningText(String::new());
        event.record(&mut text);
        self.0.lock().expect("no panic under it").push(text.0);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_type_whose_information_is_longer_than_a_parameter_is_not_announced_with_a_warning() {
    let mut described = described();
    let one = described.information.complete.dependencies[0].clone();
    let empty = described.information.to_bytes().expect("written").len();
    described.information.complete.dependencies.push(one.clone());
    let bytes_of_one = described.information.to_bytes().expect("written").len() - empty;
    let most = (INFORMATION_BYTES_MAX - empty) / bytes_of_one;
    for (more, is_announced) in [(most, true), (most + 1, false)] {
        let mut described = self::described();
        described.information.complete.dependencies.extend(std::iter::repeat_n(one.clone(), more));
        let topic = TopicDescription {
            name: "long".to_owned(),
            type_name: "Outer".to_owned(),
            keyed: Keyed::No,
            keys: TopicKeys::Wire,
            described: Some(Arc::new(described)),
        };
        let (store, warnings) = (TypeStore::new(HERE), Warnings::default());
        tracing::subscriber::with_default(warnings.clone(), || store.register(&topic));
        let information = store.information("long", "Outer");
        assert_eq!(information.is_some(), is_announced);
        assert!(information.is_none_or(|information| information.len() <= 65_532));
        let told = warnings.0.lock().expect("no panic under it").concat();
        assert_eq!(told.contains("the type of topic \"long\" is not announced"), !is_announced, "{told:?}");
    }
}
