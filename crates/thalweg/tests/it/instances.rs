//! Keys, and the life of instances.

use thalweg::qos::{History, WriterQos};
use thalweg::{ErrorKind, InstanceState, ReadFilter, ViewState, cdr};

use crate::fixture::*;

#[test]
fn a_disposed_instance_is_told_with_its_key() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("dispose", reliable_writer(), reliable_reader());
    writer.write(&Shape::new("RED", 1)).unwrap();
    writer.dispose(&Shape::new("RED", 0)).unwrap();
    let samples = take(&reader, 2);
    assert!(samples[0].is_valid() && !samples[1].is_valid());
    assert_eq!(samples[1].info().instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(samples[1].key().unwrap().color, "RED");
    assert_eq!(samples[1].data().unwrap_err().kind(), ErrorKind::PreconditionNotMet);
    assert_eq!(samples[0].info().instance, samples[1].info().instance);
}

#[test]
fn an_instance_comes_back_as_new_after_it_was_disposed() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("rebirth", reliable_writer(), reliable_reader());
    writer.write(&Shape::new("RED", 1)).unwrap();
    assert_eq!(take(&reader, 1)[0].info().view_state, ViewState::New);
    writer.dispose(&Shape::new("RED", 0)).unwrap();
    take(&reader, 1);
    writer.write(&Shape::new("RED", 2)).unwrap();
    let reborn = take(&reader, 1);
    assert_eq!(reborn[0].info().view_state, ViewState::New);
    assert_eq!(reborn[0].info().instance_state, InstanceState::Alive);
    assert_eq!(reborn[0].info().disposed_generation_count, 1);
}

#[test]
fn unregistering_without_autodispose_leaves_the_instance_without_writers() {
    let qos = WriterQos { autodispose: false, ..reliable_writer() };
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("unregister", qos, reliable_reader());
    writer.write(&Shape::new("GREEN", 1)).unwrap();
    writer.unregister(&Shape::new("GREEN", 0)).unwrap();
    let samples = take(&reader, 2);
    assert_eq!(samples[1].info().instance_state, InstanceState::NotAliveNoWriters);
    assert_eq!(samples[1].key().unwrap().color, "GREEN");
}

#[test]
fn a_writer_unregisters_only_what_it_has_registered() {
    for history in [History::KeepAll, History::KeepLast(1)] {
        let qos = WriterQos { history, ..reliable_writer() };
        let Pair { writer, reader, participants } = pair::<Shape>("registered", qos.clone(), reliable_reader());
        let topic = participants.0.create_topic::<Shape>(&unique("registered"));
        let other = participants.0.create_writer(&topic, qos).unwrap();
        other.wait_for_matched(1, PATIENCE).unwrap();
        writer.write(&Shape::new("RED", 1)).unwrap();
        assert_eq!(take(&reader, 1)[0].data().unwrap().x, 1);
        let error = other.unregister(&Shape::new("RED", 0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PreconditionNotMet);
        let mut key = Vec::new();
        cdr::encode_key(&Shape::new("RED", 0), cdr::Representation::Xcdr1, &mut key).unwrap();
        assert_eq!(other.unregister_serialized(&key, None).unwrap_err().kind(), ErrorKind::PreconditionNotMet);
        other.write(&Shape::new("BLUE", 2)).unwrap();
        let blue = take(&reader, 1);
        assert_eq!(blue[0].data().unwrap().color, "BLUE", "the refused calls have sent nothing");
        other.unregister(&Shape::new("BLUE", 0)).unwrap();
        assert_eq!(take(&reader, 1)[0].info().instance_state, InstanceState::NotAliveDisposed);
        assert!(other.unregister(&Shape::new("BLUE", 0)).is_err(), "once");
        // Disposing registers as well, and what every reader has got is still known.
        other.dispose(&Shape::new("RED", 0)).unwrap();
        other.wait_for_acknowledgments(PATIENCE).unwrap();
        other.unregister(&Shape::new("RED", 0)).unwrap();
    }
}

#[test]
fn a_deleted_writer_leaves_its_instances_without_writers() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("gone", reliable_writer(), reliable_reader());
    writer.write(&Shape::new("RED", 1)).unwrap();
    assert_eq!(take(&reader, 1).len(), 1);
    drop(writer);
    let news = take(&reader, 1);
    assert_eq!(news[0].info().instance_state, InstanceState::NotAliveNoWriters);
    assert_eq!(news[0].key().unwrap().color, "RED");
    eventually("the reader has no writer", || reader.matched_writers().is_empty());
}

#[test]
fn keep_last_keeps_the_newest_of_each_instance() {
    let history = History::KeepLast(2);
    let reader_qos = thalweg::qos::ReaderQos { history, ..reliable_reader() };
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("depth", reliable_writer(), reader_qos);
    for x in 0..10 {
        writer.write(&Shape::new("RED", x)).unwrap();
        writer.write(&Shape::new("BLUE", x)).unwrap();
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let mut blue = Vec::new();
    let first = reader.next_instance(None).unwrap();
    let second = reader.next_instance(Some(first)).unwrap();
    assert_eq!(reader.next_instance(Some(second)), None);
    for instance in [first, second] {
        assert_eq!(reader.instance_state(instance), Some(InstanceState::Alive));
        assert_eq!(reader.take_into(10, &ReadFilter::instance(instance), &mut blue), 2);
    }
    let newest: Vec<i32> = blue.iter().map(|sample| sample.data().unwrap().x).collect();
    assert_eq!(newest, [8, 9, 8, 9]);
    assert_eq!(reader.overwritten(), 16);
}

#[test]
fn disposing_on_a_topic_without_key_is_refused() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>("keyless");
    let writer = participant.create_writer(&topic, reliable_writer()).unwrap();
    let error = writer.dispose(&Count { value: 1 }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PreconditionNotMet);
    assert_eq!(error.to_string(), "dispose on topic \"keyless\" needs instances, and the topic's type has no key");
}
