//! Types are told, asked for and compared before endpoints match.

use std::time::Duration;

use thalweg::discovery::PublicationData;
use thalweg::qos::{ReaderQos, Representation, TypeConsistency, WriterQos};
use thalweg::status::IncompatibleQos;
use thalweg::types::Keyed;
use thalweg::{Topic, Type};

use crate::fixture::{domain, eventually, participant, reliable_reader, reliable_writer, take, unique};

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "demo::Part", extensibility = "final")]
struct Part {
    a: i32,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "demo::Whole", extensibility = "appendable")]
struct Old {
    #[topic(key)]
    id: u32,
    part: Part,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "demo::Renamed", extensibility = "appendable")]
struct New {
    #[topic(key)]
    id: u32,
    part: Part,
    more: Vec<i64>,
}

mod other {
    use thalweg::Topic;

    #[derive(Topic, Clone, Debug, PartialEq)]
    #[topic(name = "demo::Part", extensibility = "final")]
    pub struct Part {
        pub a: f64,
    }

    #[derive(Topic, Clone, Debug, PartialEq)]
    #[topic(name = "demo::Whole", extensibility = "appendable")]
    pub struct Whole {
        #[topic(key)]
        pub id: u32,
        pub part: Part,
    }
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "demo::Node", extensibility = "appendable")]
struct Node {
    #[topic(key)]
    id: u32,
    children: Vec<Node>,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "demo::GrownNode", extensibility = "appendable")]
struct GrownNode {
    #[topic(key)]
    id: u32,
    children: Vec<GrownNode>,
    note: String,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "demo::EndedNode", extensibility = "appendable")]
struct EndedNode {
    #[topic(key)]
    id: u32,
    children: Vec<EndedPart>,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(extensibility = "appendable")]
struct EndedPart {
    #[topic(key)]
    id: u32,
    children: Vec<i32>,
}

#[test]
fn a_type_that_grew_is_read_under_another_name() {
    let (domain, name) = (domain(), unique("grown"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let reader = there.create_reader(&there.create_topic::<New>(&name), reliable_reader()).expect("a reader");
    eventually("they match", || writer.matched_readers().len() == 1 && reader.matched_writers().len() == 1);
    writer.write(&Old { id: 7, part: Part { a: 3 } }).expect("written");
    let sample = take(&reader, 1).remove(0);
    assert_eq!(sample.data().expect("read"), New { id: 7, part: Part { a: 3 }, more: Vec::new() });
}

#[test]
fn a_type_that_does_not_fit_is_an_incompatible_policy_with_the_path_of_the_member() {
    let (domain, name) = (domain(), unique("unfit"));
    let (here, there) = (participant(domain), participant(domain));
    let (ours, theirs) = (here.create_topic::<Old>(&name), there.create_topic::<other::Whole>(&name));
    let writer = here.create_writer(&ours, reliable_writer()).expect("a writer");
    let reader = there.create_reader(&theirs, reliable_reader()).expect("a reader");
    let (mut offered, mut requested) = (IncompatibleQos::default(), IncompatibleQos::default());
    eventually("the reader is told", || {
        requested = reader.requested_incompatible_qos();
        requested.total > 0
    });
    eventually("the writer is told", || {
        offered = writer.offered_incompatible_qos();
        offered.total > 0
    });
    let path = "part.a: the writer has long, the reader double";
    for told in [&requested, &offered] {
        assert!(text(told).contains(path), "{told:?}");
    }
    for (participant, why) in
        [(&here, here.inconsistent_topic(&ours).why), (&there, there.inconsistent_topic(&theirs).why)]
    {
        assert!(why.contains(path), "{participant:?}: {why}");
    }
    assert!(writer.matched_readers().is_empty() && reader.matched_writers().is_empty());
}

/// What a status says of the endpoint that does not fit.
fn text(status: &IncompatibleQos) -> String {
    status.mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().concat()
}

#[test]
fn two_types_under_one_name_of_a_topic_are_refused_in_a_participant() {
    let (here, name) = (participant(domain()), unique("two"));
    let _writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let error = here.create_reader(&here.create_topic::<other::Whole>(&name), reliable_reader()).expect_err("refused");
    assert!(error.to_string().contains(&name), "{error}");
}

#[test]
fn a_participant_that_watches_tells_no_match_where_validation_is_forced_before_the_objects_have_come() {
    let (domain, name) = (domain(), unique("watched"));
    let (here, there, watching) = (participant(domain), participant(domain), participant(domain));
    let _writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let _reader = there.create_reader(&there.create_topic::<New>(&name), validating()).expect("a reader");
    let wanted = || watching.subscriptions().into_iter().find(|known| known.data.topic_name == name);
    eventually("both are discovered", || announced(&watching, &name).is_some() && wanted().is_some());
    let (writer, reader) = (announced(&watching, &name).expect("discovered"), wanted().expect("discovered").data);
    // Of one name, so that nothing but the types keeps them apart.
    let writer = PublicationData { type_name: reader.type_name.clone(), ..writer };
    let early = watching.compare(&writer, &reader, Duration::ZERO);
    assert!(early.to_string().contains("its type cannot be validated: its objects were not given in time"), "{early}");
    let late = watching.compare(&writer, &reader, Duration::from_secs(10));
    assert!(late.is_match(), "{late}");
}

/// What a participant announces of a topic.
fn announced(of: &thalweg::DomainParticipant, name: &str) -> Option<PublicationData> {
    let known = of.publications().into_iter().find(|known| known.data.topic_name == name)?;
    Some((*known.data).clone())
}

#[test]
fn the_type_of_any_topic_can_be_asked_for() {
    let (domain, name) = (domain(), unique("asked"));
    let (here, there) = (participant(domain), participant(domain));
    let _writer = here.create_writer(&here.create_topic::<New>(&name), reliable_writer()).expect("a writer");
    eventually("it is discovered", || announced(&there, &name).is_some());
    let data = announced(&there, &name).expect("discovered");
    let information = data.type_information.expect("the type is announced");
    let found = there.type_of(data.guid.prefix, &information, Duration::from_secs(5)).expect("a type");
    let Type::Structure(structure) = &found else { panic!("{found:?}") };
    let names: Vec<&str> = structure.members.iter().map(|member| &*member.name).collect();
    assert_eq!((structure.name.as_str(), names), ("demo::Renamed", vec!["id", "part", "more"]));
    assert!(structure.members[0].is_key);
}

#[test]
fn endpoints_of_which_one_is_silent_about_its_type_match_by_name() {
    let (domain, name) = (domain(), unique("silent"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let topic = there.create_raw_topic(&name, "demo::Whole", Keyed::Yes, None);
    let _reader = there.create_reader(&topic, reliable_reader()).expect("a reader");
    eventually("they match", || writer.matched_readers().len() == 1);
}

/// The QoS of a reader that matches only where the types can be compared.
fn validating() -> ReaderQos {
    let type_consistency = TypeConsistency { forces_validation: true, ..TypeConsistency::default() };
    ReaderQos { type_consistency, ..reliable_reader() }
}

#[test]
fn a_reader_that_forces_validation_matches_when_the_objects_of_another_type_have_come() {
    let (domain, name) = (domain(), unique("validated"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let reader = there.create_reader(&there.create_topic::<New>(&name), validating()).expect("a reader");
    eventually("they match", || writer.matched_readers().len() == 1 && reader.matched_writers().len() == 1);
    assert_eq!((writer.offered_incompatible_qos().total, reader.requested_incompatible_qos().total), (0, 0));
    writer.write(&Old { id: 7, part: Part { a: 3 } }).expect("written");
    assert_eq!(take(&reader, 1).remove(0).data().expect("read").id, 7);
}

#[test]
fn a_reader_that_forces_validation_and_is_silent_about_its_own_type_matches_nobody() {
    let (domain, name) = (domain(), unique("unvalidated"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let topic = there.create_raw_topic(&name, "demo::Whole", Keyed::Yes, None);
    let reader = there.create_reader(&topic, validating()).expect("a reader");
    let (mut offered, mut requested) = (IncompatibleQos::default(), IncompatibleQos::default());
    eventually("both are told", || {
        (offered, requested) = (writer.offered_incompatible_qos(), reader.requested_incompatible_qos());
        offered.total > 0 && requested.total > 0
    });
    for told in [&offered, &requested] {
        let expected = "its type cannot be validated: the reader announces no type information";
        assert!(text(told).contains(expected), "{told:?}");
    }
    assert!(writer.matched_readers().is_empty() && reader.matched_writers().is_empty());
}

#[test]
fn a_reader_that_forces_validation_matches_no_writer_that_is_silent_about_its_type() {
    let (domain, name) = (domain(), unique("untold"));
    let (here, there) = (participant(domain), participant(domain));
    let topic = here.create_raw_topic(&name, "demo::Whole", Keyed::Yes, None);
    let writer = here.create_writer(&topic, reliable_writer()).expect("a writer");
    let reader = there.create_reader(&there.create_topic::<Old>(&name), validating()).expect("a reader");
    eventually("both are told", || {
        writer.offered_incompatible_qos().total > 0 && reader.requested_incompatible_qos().total > 0
    });
    assert!(text(&reader.requested_incompatible_qos()).contains("no type information"));
    assert!(writer.matched_readers().is_empty() && reader.matched_writers().is_empty());
}

#[test]
fn a_reader_that_forces_validation_in_a_participant_without_types_matches_nobody() {
    let (domain, name) = (domain(), unique("without"));
    let builder = thalweg::DomainParticipant::builder(domain).loopback_only();
    let (here, there) = (participant(domain), builder.without_type_description().create().expect("a participant"));
    let writer = here.create_writer(&here.create_topic::<Old>(&name), reliable_writer()).expect("a writer");
    let reader = there.create_reader(&there.create_topic::<Old>(&name), validating()).expect("a reader");
    eventually("both are told", || {
        writer.offered_incompatible_qos().total > 0 && reader.requested_incompatible_qos().total > 0
    });
    let told = text(&reader.requested_incompatible_qos());
    assert!(told.contains("its type cannot be validated: this participant compares no types"), "{told}");
}

#[test]
fn types_that_contain_themselves_are_told_asked_for_and_compared() {
    let (domain, name) = (domain(), unique("recursive"));
    let (here, there) = (participant(domain), participant(domain));
    // In XCDR1, nothing tells where a node ends that is an element.
    let qos = WriterQos { data_representation: vec![Representation::Xcdr2], ..reliable_writer() };
    let writer = here.create_writer(&here.create_topic::<Node>(&name), qos).expect("a writer");
    let reader = there.create_reader(&there.create_topic::<GrownNode>(&name), reliable_reader()).expect("a reader");
    eventually("they match", || writer.matched_readers().len() == 1 && reader.matched_writers().len() == 1);
    let leaf = |id| Node { id, children: Vec::new() };
    writer.write(&Node { id: 1, children: vec![leaf(2), leaf(3)] }).expect("written");
    let grown = |id, children| GrownNode { id, children, note: String::new() };
    let expected = grown(1, vec![grown(2, Vec::new()), grown(3, Vec::new())]);
    assert_eq!(take(&reader, 1).remove(0).data().expect("read"), expected);

    let data = announced(&there, &name).expect("discovered");
    let information = data.type_information.expect("the type is announced");
    let found = there.type_of(data.guid.prefix, &information, Duration::from_secs(5)).expect("a type");
    let Type::Structure(structure) = found.resolved() else { panic!("{found:?}") };
    assert_eq!(structure.name, "demo::Node");
    assert_eq!(structure.members[1].member_type, Node::description_of_children());
}

impl Node {
    fn description_of_children() -> Type {
        let described = <Node as thalweg::cdr::Layout>::description().expect("described");
        let Type::Structure(structure) = described.resolved() else { panic!("{described:?}") };
        structure.members[1].member_type.clone()
    }
}

#[test]
fn types_of_which_one_ends_are_told_apart_with_the_path() {
    let (domain, name) = (domain(), unique("ended"));
    let (here, there) = (participant(domain), participant(domain));
    let _writer = here.create_writer(&here.create_topic::<Node>(&name), reliable_writer()).expect("a writer");
    let reader = there.create_reader(&there.create_topic::<EndedNode>(&name), reliable_reader()).expect("a reader");
    eventually("the reader is told", || reader.requested_incompatible_qos().total > 0);
    let told = reader.requested_incompatible_qos();
    let text: Vec<String> = told.mismatches.iter().map(ToString::to_string).collect();
    let expected = "children[].children[]: the writer has a structure, the reader long";
    assert!(text.concat().contains(expected), "{text:?}");
}
