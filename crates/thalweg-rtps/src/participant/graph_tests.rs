//! Laws of the built-in topics as data, and of what an application ignores.

use std::sync::Arc;

use super::tests::*;
use super::*;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::participant_data::ParticipantData;
use crate::history::{InstanceState, TakenSample};
use crate::qos::{AttachedData, History, Presentation, ReaderQos, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::types::Keyed;

fn builtin(net: &mut Net, topic: BuiltinTopic) -> Shared<Reader> {
    let qos = Arc::new(builtin_reader_qos());
    net.nodes[0].participant.create_builtin_reader(net.now, topic, qos).expect("a legal QoS")
}

fn offers() -> WriterQos {
    reliable_writer(History::KeepAll)
}

/// What is taken, each as its name and state.
fn told(net: &Net, reader: &Shared<Reader>, name: impl Fn(&TakenSample) -> String) -> Vec<(String, InstanceState)> {
    take(net, reader).iter().map(|sample| (name(sample), sample.info.instance_state)).collect()
}

fn topic_of_writer(sample: &TakenSample) -> String {
    PublicationData::decode(&sample.payload).expect("what we wrote").topic_name
}

fn topic_of_reader(sample: &TakenSample) -> String {
    SubscriptionData::decode(&sample.payload).expect("what we wrote").topic_name
}

fn topic_data(sample: &TakenSample) -> String {
    let data = PublicationData::decode(&sample.payload).expect("what we wrote");
    String::from_utf8(data.qos.attached.topic.clone()).expect("text")
}

fn offers_with(topic_data: &str) -> WriterQos {
    let attached = AttachedData { topic: topic_data.as_bytes().to_vec(), ..AttachedData::default() };
    WriterQos { attached, ..offers() }
}

fn named_writer(net: &mut Net, node: usize, topic: &str, type_name: &str) -> EntityId {
    let (topic_name, type_name) = (topic.to_owned(), type_name.to_owned());
    let options = crate::writer::WriterOptions::default();
    let config = WriterConfig { topic_name, type_name, keyed: Keyed::No, qos: offers().into(), options };
    let writer = net.nodes[node].participant.create_writer(net.now, config).expect("a legal QoS");
    writer.lock().guid().entity
}

#[test]
fn endpoints_of_others_are_instances_that_change_and_end() {
    let mut net = Net::new(2);
    net.writer(0, offers(), Keyed::No);
    let early = net.writer(1, offers(), Keyed::Yes);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::Yes);
    net.run_for(SECOND);
    let publications = builtin(&mut net, BuiltinTopic::Publication);
    let subscriptions = builtin(&mut net, BuiltinTopic::Subscription);
    let alive = |name: &str| (name.to_owned(), InstanceState::Alive);
    assert_eq!(told(&net, &publications, topic_of_writer), [alive("topic")], "its own are known to the application");
    assert_eq!(told(&net, &subscriptions, topic_of_reader), [alive("topic")]);
    let late = named_writer(&mut net, 1, "late", "type");
    net.run_for(SECOND);
    assert_eq!(told(&net, &publications, topic_of_writer), [alive("late")]);
    let (entity, qos) = (early.lock().guid().entity, WriterQos { partition: vec!["p".into()], ..offers() });
    net.nodes[1].participant.set_writer_qos(net.now, entity, qos.into()).expect("it may change");
    net.run_for(SECOND);
    let changed = take(&net, &publications);
    let data = PublicationData::decode(&changed[0].payload).expect("what we wrote");
    assert_eq!((changed.len(), data.guid.entity, data.qos.partition.as_slice()), (1, entity, &["p".to_owned()][..]));
    net.nodes[1].participant.delete_writer(net.now, late);
    net.run_for(SECOND);
    let gone = take(&net, &publications);
    assert_eq!(gone[0].info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!((gone.len(), gone[0].info.valid, topic_of_writer(&gone[0])), (1, false, "late".to_owned()));
}

#[test]
fn participants_and_their_endpoints_lose_their_writers_when_their_lease_ends() {
    let mut net = Net::new(1);
    net.add_with(2, |config| config.lease_duration = SECOND * 2);
    let participants = builtin(&mut net, BuiltinTopic::Participant);
    let publications = builtin(&mut net, BuiltinTopic::Publication);
    net.writer(1, offers(), Keyed::No);
    net.run_for(SECOND);
    let there = take(&net, &participants);
    let data = ParticipantData::decode(&there[0].payload).expect("what we wrote");
    assert_eq!((there.len(), data.guid_prefix, data.lease_duration), (1, GuidPrefix([2; 12]), SECOND * 2));
    assert_eq!(take(&net, &publications).len(), 1);
    net.nodes[1].cut_off = true;
    net.run_for(SECOND * 4);
    let state = |reader| take(&net, reader).iter().map(|sample| sample.info.instance_state).collect::<Vec<_>>();
    assert_eq!(state(&participants), [InstanceState::NotAliveNoWriters]);
    assert_eq!(state(&publications), [InstanceState::NotAliveNoWriters]);
    net.nodes[1].cut_off = false;
    net.run_for(SECOND * 40);
    let state = |reader| take(&net, reader).iter().map(|sample| sample.info.instance_state).collect::<Vec<_>>();
    assert_eq!(state(&participants), [InstanceState::Alive], "it is back");
    assert_eq!(state(&publications), [InstanceState::Alive]);
}

#[test]
fn a_topic_lives_as_long_as_somebody_else_uses_it_with_its_type() {
    let mut net = Net::new(2);
    let first = named_writer(&mut net, 1, "shared", "one");
    net.run_for(SECOND);
    let topics = builtin(&mut net, BuiltinTopic::Topic);
    let name = |sample: &TakenSample| {
        let data = PublicationData::decode(&sample.payload).expect("what we wrote");
        format!("{} of {}", data.topic_name, data.type_name)
    };
    let (alive, gone) = (InstanceState::Alive, InstanceState::NotAliveDisposed);
    assert_eq!(told(&net, &topics, name), [("shared of one".to_owned(), alive)]);
    let second = named_writer(&mut net, 1, "shared", "one");
    let other = named_writer(&mut net, 1, "shared", "other");
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, name), [("shared of other".to_owned(), alive)]);
    net.nodes[1].participant.delete_writer(net.now, first);
    net.nodes[1].participant.delete_writer(net.now, other);
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, name), [("shared of other".to_owned(), gone)], "another writer still has it");
    net.nodes[1].participant.delete_writer(net.now, second);
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, name), [("shared of one".to_owned(), gone)]);
}

#[test]
fn what_an_endpoint_attaches_to_a_topic_is_told_whichever_is_heard_first() {
    let mut net = Net::new(2);
    let topics = builtin(&mut net, BuiltinTopic::Topic);
    let alive = InstanceState::Alive;
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, topic_data), [(String::new(), alive)]);
    let writer = net.writer(1, offers_with("about it"), Keyed::No).lock().guid().entity;
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, topic_data), [("about it".to_owned(), alive)]);
    let late = builtin(&mut net, BuiltinTopic::Topic);
    assert_eq!(told(&net, &late, topic_data), [("about it".to_owned(), alive)]);
    for change in ["otherwise", ""] {
        net.nodes[1].participant.set_writer_qos(net.now, writer, offers_with(change).into()).expect("it may change");
        net.run_for(SECOND);
        assert_eq!(told(&net, &topics, topic_data), [(change.to_owned(), alive)]);
    }
    net.writer(1, offers_with("of the second"), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, topic_data), [("of the second".to_owned(), alive)]);
    net.writer(1, offers_with("of the third"), Keyed::No);
    net.run_for(SECOND);
    assert!(told(&net, &topics, topic_data).is_empty(), "whoever told first goes on");
}

#[test]
fn what_an_endpoint_attached_to_a_topic_is_told_no_longer_once_it_is_gone() {
    let mut net = Net::new(2);
    let topics = builtin(&mut net, BuiltinTopic::Topic);
    let first = net.writer(1, offers_with("of the first"), Keyed::No).lock().guid().entity;
    net.run_for(SECOND);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.writer(1, offers_with("of the second"), Keyed::No);
    net.run_for(SECOND);
    let alive = |data: &str| (data.to_owned(), InstanceState::Alive);
    assert_eq!(told(&net, &topics, topic_data), [alive("of the first")]);
    net.nodes[1].participant.delete_writer(net.now, first);
    net.run_for(SECOND);
    assert_eq!(told(&net, &topics, topic_data), [alive("of the second")]);
    let late = builtin(&mut net, BuiltinTopic::Topic);
    assert_eq!(told(&net, &late, topic_data), [alive("of the second")], "early and late readers are told the same");
}

#[test]
fn a_builtin_reader_that_wants_coherent_sets_can_be_deleted() {
    let mut net = Net::new(1);
    let presentation = Presentation { coherent: true, ..Presentation::default() };
    let qos = Arc::new(ReaderQos { presentation, ..builtin_reader_qos() });
    let participant = &mut net.nodes[0].participant;
    let reader = participant.create_builtin_reader(net.now, BuiltinTopic::Topic, qos).expect("a legal QoS");
    let entity = reader.lock().guid().entity;
    participant.delete_reader(net.now, entity);
    assert!(!participant.endpoints.any_is_particular());
}

#[test]
fn a_reader_that_is_deleted_is_told_nothing() {
    let mut net = Net::new(2);
    let publications = builtin(&mut net, BuiltinTopic::Publication);
    let entity = publications.lock().guid().entity;
    net.nodes[0].participant.delete_reader(net.now, entity);
    net.writer(1, offers(), Keyed::No);
    net.run_for(SECOND);
    assert!(take(&net, &publications).is_empty());
    assert!(net.nodes[1].participant.subscriptions().next().is_none(), "nobody was told of it");
}

#[test]
fn what_is_ignored_is_neither_matched_nor_known_again() {
    let mut net = Net::new(3);
    let reader = net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    let writers = [net.writer(1, offers(), Keyed::No), net.writer(2, offers(), Keyed::No)];
    let others = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    let own = net.writer(0, offers(), Keyed::No);
    net.run_for(SECOND);
    let matched = || {
        let writers = reader.lock().matched_writers().len();
        (writers, own.lock().matched_readers().len())
    };
    assert_eq!(matched(), (3, 2));
    let ignored = writers[0].lock().guid();
    net.nodes[0].participant.ignore_publication(net.now, ignored);
    let ignored_reader = others.lock().guid();
    net.nodes[0].participant.ignore_subscription(net.now, ignored_reader);
    net.run_for(SECOND);
    assert_eq!(matched(), (2, 1));
    // The ignored one announces itself anew.
    let qos = WriterQos { partition: vec![String::new(), "more".into()], ..offers() };
    net.nodes[1].participant.set_writer_qos(net.now, ignored.entity, qos.into()).expect("it may change");
    net.run_for(SECOND);
    assert!(net.nodes[0].participant.publications().all(|known| known.data.guid != ignored));
    net.write(1, &writers[0], &[1]);
    net.write(2, &writers[1], &[2]);
    net.write(0, &own, &[3]);
    net.run_for(SECOND);
    let mut taken = first_bytes(&take(&net, &reader));
    taken.sort_unstable();
    assert_eq!(taken, [2, 3]);
    let own_guid = own.lock().guid();
    net.nodes[0].participant.ignore_publication(net.now, own_guid);
    net.run_for(SECOND);
    assert_eq!(reader.lock().matched_writers().len(), 1, "its own writer can be ignored as well");
    net.nodes[0].participant.ignore_topic(net.now, "topic");
    net.writer(1, offers(), Keyed::No);
    net.writer(0, offers(), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(reader.lock().matched_writers().len(), 0);
    assert!(net.nodes[0].participant.publications().all(|known| known.data.guid.prefix == GuidPrefix([1; 12])));
    assert!(others.lock().matched_writers().len() >= 3, "others take notice of all");
}
