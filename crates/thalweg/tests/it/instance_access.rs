//! Reading by instance, keys of instances, history, and readers for others alone.

use std::sync::Arc;
use std::time::Duration;

use thalweg::cdr::{ByteOrder, Encapsulation, Extensibility, Representation};
use thalweg::qos::{ReaderQos, Representation as Offered, ResourceLimits};
use thalweg::types::{KeyHash, Keyed};
use thalweg::{ErrorKind, InstanceState, InstanceStates, KeyOf, PayloadKind, ReadFilter, Sample, cdr};

use crate::fixture::*;

fn values(samples: &[Sample<Shape>]) -> Vec<(String, i32)> {
    samples.iter().filter_map(|sample| sample.data().ok()).map(|shape| (shape.color, shape.x)).collect()
}

#[test]
fn taking_instance_by_instance_visits_each_once_whatever_the_others_get() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("visits", reliable_writer(), reliable_reader());
    for x in 0..3 {
        for color in ["RED", "GREEN", "BLUE"] {
            writer.write(&Shape::new(color, x)).unwrap();
        }
    }
    eventually("all samples are here", || reader.available() == 9);
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let samples = reader.take_next_instance(after, 10, &ReadFilter::ALL);
        let Some(first) = samples.first() else { break };
        let instance = first.info().instance;
        assert!(after < Some(instance), "in the order of key hashes");
        assert!(samples.iter().all(|sample| sample.info().instance == instance));
        assert_eq!(values(&samples).iter().map(|(_, x)| *x).collect::<Vec<_>>(), [0, 1, 2]);
        seen.push(values(&samples)[0].0.clone());
        after = Some(instance);
        // What comes for an instance that was visited waits for the next round.
        writer.write(&Shape::new(&seen[0], 9)).unwrap();
    }
    seen.sort();
    assert_eq!(seen, ["BLUE", "GREEN", "RED"]);
}

#[test]
fn the_next_instance_is_the_next_with_selected_samples() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("selected", reliable_writer(), reliable_reader());
    for color in ["RED", "GREEN", "BLUE"] {
        writer.write(&Shape::new(color, 1)).unwrap();
    }
    writer.dispose(&Shape::new("GREEN", 0)).unwrap();
    let green = KeyHash(cdr::key_hash(&Shape::new("GREEN", 0)).unwrap());
    eventually("GREEN is disposed", || reader.instance_state(green) == Some(InstanceState::NotAliveDisposed));
    let gone = ReadFilter { instance_states: InstanceStates::NOT_ALIVE, ..ReadFilter::ALL };
    let read = reader.read_next_instance(None, 10, &gone);
    assert!(!read.is_empty() && read.iter().all(|sample| sample.info().instance == green));
    assert!(reader.read_next_instance(Some(green), 10, &gone).is_empty());
    assert_eq!(values(&reader.read_instance(green, 1)), [("GREEN".to_owned(), 1)]);
    assert_eq!(reader.take_instance(green, 10).len(), read.len());
    assert_eq!(reader.available(), 2);
}

#[test]
fn an_instance_and_its_key_lead_to_each_other() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("keys", reliable_writer(), reliable_reader());
    assert_eq!(reader.lookup_instance(&Shape::new("RED", 0)), None);
    writer.write(&Shape::new("RED", 5)).unwrap();
    assert!(reader.wait(PATIENCE));
    let red = reader.lookup_instance(&Shape::new("RED", 0)).expect("it has come");
    assert_eq!(reader.take(10).len(), 1);
    assert_eq!(reader.key_value(red).unwrap().color, "RED", "also when its samples are taken");
    assert_eq!(reader.key_value(KeyHash([7; 16])).unwrap_err().kind(), ErrorKind::BadParameter);
}

#[test]
fn history_is_there_when_the_wait_for_it_ends() {
    let (domain, name) = (domain(), unique("history"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Count>(&name), late_writer()).unwrap();
    for value in 0..500 {
        writer.write(&Count { value }).unwrap();
    }
    let reader = there.create_reader(&there.create_topic::<Count>(&name), late_reader()).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_historical_data(PATIENCE).unwrap();
    assert_eq!(reader.available(), 500);
}

#[test]
fn history_that_finds_no_room_is_waited_for_and_an_empty_one_is_not() {
    let Pair { reader, participants: _alive, writer: _writer } = pair::<Count>("empty", late_writer(), late_reader());
    reader.wait_for_historical_data(PATIENCE).unwrap();
    let (domain, name) = (domain(), unique("full"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Count>(&name), late_writer()).unwrap();
    (0..3).for_each(|value| _ = writer.write(&Count { value }).unwrap());
    let resource_limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let qos = ReaderQos { resource_limits, ..late_reader() };
    let reader = there.create_reader(&there.create_topic::<Count>(&name), qos).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    let error = reader.wait_for_historical_data(Duration::from_millis(300)).unwrap_err();
    assert!(error.is_timeout(), "{error}");
    (0..2).for_each(|_| _ = take(&reader, 1));
    reader.wait_for_historical_data(PATIENCE).unwrap();
}

#[test]
fn a_reader_for_others_alone_hears_nothing_of_its_own_participant() {
    let (domain, name) = (domain(), unique("others"));
    let (here, there) = (participant(domain), participant(domain));
    let topic = here.create_topic::<Count>(&name);
    let own = here.create_writer(&topic, reliable_writer()).unwrap();
    let reader = here.reader_builder(&topic).qos(reliable_reader()).ignore_own_publications().create().unwrap();
    let later = here.create_writer(&topic, reliable_writer()).unwrap();
    let other = there.create_writer(&there.create_topic::<Count>(&name), reliable_writer()).unwrap();
    other.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    own.write(&Count { value: 1 }).unwrap();
    later.write(&Count { value: 2 }).unwrap();
    other.write(&Count { value: 3 }).unwrap();
    assert_eq!(take(&reader, 1)[0].data().unwrap().value, 3);
    own.wait_for_acknowledgments(PATIENCE).expect("nobody is waited for");
    assert_eq!((reader.matched_writers(), own.matched_readers().len()), (vec![other.guid()], 0));
    let everybody = here.create_reader(&topic, reliable_reader()).unwrap();
    everybody.wait_for_matched(3, PATIENCE).unwrap();
}

#[test]
fn a_body_alone_becomes_the_sample_that_a_typed_writer_would_send() {
    let (domain, name) = (domain(), unique("body"));
    let (here, there) = (participant(domain), participant(domain));
    let key_of: KeyOf = Arc::new(|bytes: &[u8], kind| {
        cdr::key_hash_of_payload::<Shape>(bytes, kind == PayloadKind::Key).ok().map(KeyHash)
    });
    let topic = here.create_raw_topic(&name, "Shape", Keyed::Yes, Some(key_of));
    let mut qos = reliable_writer();
    qos.data_representation = vec![Offered::Xcdr2];
    let writer = here.create_writer(&topic, qos).unwrap();
    let reader = there.create_reader(&there.create_topic::<Shape>(&name), reliable_reader()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    // The padding depends on the length of the last member.
    for length in 0..5 {
        let shape = Shape { payload: vec![7; length], ..Shape::new("RED", 3) };
        let mut bytes = Vec::new();
        cdr::encode(&shape, Representation::Xcdr2, &mut bytes).unwrap();
        let body = &bytes[cdr::ENCAPSULATION_BYTES..bytes.len() - usize::from(bytes[3])];
        let encapsulation = Encapsulation::new(Representation::Xcdr2, Extensibility::Appendable, ByteOrder::Little);
        writer.write_body(encapsulation, body).unwrap();
        let sample = take(&reader, 1).remove(0);
        assert_eq!(sample.bytes(), bytes);
        assert_eq!(sample.data().unwrap(), shape);
    }
}
