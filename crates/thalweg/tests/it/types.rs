//! One type for a topic name within a participant.

use thalweg::types::Keyed;
use thalweg::{Error, ErrorKind};

use crate::fixture::*;

#[track_caller]
fn check_refused<T>(result: Result<T, Error>, operation: &str, asked: &str, used: &str) {
    let error = result.err().expect("two types under one name");
    assert_eq!(error.kind(), ErrorKind::PreconditionNotMet);
    let text = error.to_string();
    for part in [operation, &format!("its type is {asked}"), used] {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
}

#[test]
fn a_second_type_under_a_topic_name_is_refused_and_both_are_named() {
    let (participant, name) = (participant(domain()), unique("two types"));
    let (count, shape) = (participant.create_topic::<Count>(&name), participant.create_topic::<Shape>(&name));
    let raw = participant.create_raw_topic(&name, "other::Type", Keyed::No, None);
    let keyed = participant.create_raw_topic(&name, count.type_name(), Keyed::Yes, None);
    let writer = participant.create_writer(&count, reliable_writer()).unwrap();
    let used = format!("writer {} of this participant uses the name with \"Count\" without a key", writer.guid());
    check_refused(participant.create_reader(&shape, reliable_reader()), "create_reader", "\"Shape\" with a key", &used);
    check_refused(participant.create_writer(&raw, reliable_writer()), "create_writer", "\"other::Type\"", &used);
    check_refused(participant.create_reader(&keyed, reliable_reader()), "create_reader", "\"Count\" with a key", &used);
    let reader = participant.create_reader(&count, reliable_reader()).unwrap();
    drop(writer);
    let used = format!("reader {} of this participant", reader.guid());
    check_refused(participant.create_writer(&shape, reliable_writer()), "create_writer", "\"Shape\"", &used);
    drop(reader);
    participant.create_writer(&shape, reliable_writer()).expect("nobody uses the name any more");
}

/// Two types of one name.
mod named {
    use thalweg::Topic;

    #[derive(Topic, Clone, Debug, PartialEq)]
    #[topic(name = "demo::Named")]
    pub struct Narrow {
        pub value: i32,
    }

    #[derive(Topic, Clone, Debug, PartialEq)]
    #[topic(name = "demo::Named")]
    pub struct Wide {
        pub value: i64,
    }
}

#[test]
fn an_untyped_endpoint_lets_no_two_types_under_its_name() {
    let (participant, name) = (participant(domain()), unique("untyped first"));
    let raw = participant.create_raw_topic(&name, "demo::Named", Keyed::No, None);
    let _raw = participant.create_reader(&raw, reliable_reader()).unwrap();
    let narrow = participant.create_topic::<named::Narrow>(&name);
    let reader = participant.create_reader(&narrow, reliable_reader()).expect("the same type as far as is known");
    let wide = participant.create_topic::<named::Wide>(&name);
    let used = format!("reader {} of this participant", reader.guid());
    check_refused(participant.create_writer(&wide, reliable_writer()), "create_writer", "\"demo::Named\"", &used);
    drop(reader);
    participant.create_writer(&wide, reliable_writer()).expect("nobody knows another type any more");
}

#[test]
fn an_untyped_endpoint_announces_no_type_that_an_earlier_one_had() {
    let (participant, name) = (participant(domain()), unique("typed first"));
    let is_described = |guid| {
        let found = participant.publications().into_iter().find(|known| known.data.guid == guid);
        found.expect("its own are among them").data.type_information.is_some()
    };
    let typed = participant.create_writer(&participant.create_topic::<Count>(&name), reliable_writer()).unwrap();
    let raw = participant.create_raw_topic(&name, "Count", Keyed::No, None);
    assert!(is_described(typed.guid()));
    drop(typed);
    let untyped = participant.create_writer(&raw, reliable_writer()).unwrap();
    assert!(!is_described(untyped.guid()));
}

#[test]
fn other_names_and_other_participants_have_types_of_their_own() {
    let (domain, name) = (domain(), unique("types"));
    let (here, there) = (participant(domain), participant(domain));
    let _count = here.create_writer(&here.create_topic::<Count>(&name), reliable_writer()).unwrap();
    here.create_writer(&here.create_topic::<Shape>(&unique("others")), reliable_writer()).unwrap();
    there.create_writer(&there.create_topic::<Shape>(&name), reliable_writer()).unwrap();
    let raw = here.create_raw_topic(&name, "Count", Keyed::No, None);
    here.create_reader(&raw, reliable_reader()).expect("the same type, untyped");
}
