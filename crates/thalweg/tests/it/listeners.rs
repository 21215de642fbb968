//! Callbacks.

use std::sync::mpsc;

use thalweg::status::{ReaderStatus, WriterStatus};
use thalweg::{DataReader, Delivery};

use crate::fixture::*;

#[test]
fn data_listeners_hear_of_every_sample_on_the_thread_they_asked_for() {
    for (delivery, expected_thread) in [(Delivery::Thread, "thalweg-listen"), (Delivery::Inline, "thalweg-io")] {
        let Pair { writer, reader, participants: _alive } =
            pair::<Count>("listener", reliable_writer(), reliable_reader());
        let (sender, heard) = mpsc::channel();
        let listener = move |reader: &DataReader<Count>| {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            for sample in reader.take(usize::MAX) {
                sender.send((thread.clone(), sample.data().unwrap().value)).unwrap();
            }
        };
        reader.on_data(delivery, listener).unwrap();
        for value in 0..100 {
            writer.write(&Count { value }).unwrap();
        }
        for value in 0..100 {
            assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), (expected_thread.to_owned(), value));
        }
    }
}

#[test]
fn a_new_listener_hears_of_data_that_was_there_before() {
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let Pair { writer, reader, participants: _alive } =
            pair::<Count>("before", reliable_writer(), reliable_reader());
        writer.write(&Count { value: 5 }).unwrap();
        assert!(reader.wait(PATIENCE));
        let (sender, heard) = mpsc::channel();
        let listener = move |reader: &DataReader<Count>| sender.send(reader.take(10).len()).unwrap();
        reader.on_data(delivery, listener).unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), 1);
    }
}

#[test]
fn status_listeners_hear_of_matches_and_their_end() {
    let (domain, name) = (domain(), unique("status"));
    let (here, there) = (participant(domain), participant(domain));
    let writer = here.create_writer(&here.create_topic::<Count>(&name), reliable_writer()).unwrap();
    let (sender, heard) = mpsc::channel();
    writer.on_status(Delivery::Thread, move |status| sender.send(status).unwrap()).unwrap();
    let reader = there.create_reader(&there.create_topic::<Count>(&name), reliable_reader()).unwrap();
    let WriterStatus::PublicationMatched(matched) = heard.recv_timeout(PATIENCE).unwrap() else {
        panic!("a match is told first");
    };
    assert_eq!((matched.current, matched.current_change, matched.last), (1, 1, Some(reader.guid())));
    drop(reader);
    let WriterStatus::PublicationMatched(matched) = heard.recv_timeout(PATIENCE).unwrap() else {
        panic!("then its end");
    };
    assert_eq!((matched.current, matched.current_change), (0, -1));
}

#[test]
fn an_inline_status_listener_of_a_reader_hears_of_new_writers() {
    let Pair { writer, reader, participants } = pair::<Count>("second", reliable_writer(), reliable_reader());
    let (sender, heard) = mpsc::channel();
    reader.on_status(Delivery::Inline, move |status| sender.send(status).unwrap()).unwrap();
    let topic = participants.0.create_topic::<Count>(writer.topic_name());
    let second = participants.0.create_writer(&topic, reliable_writer()).unwrap();
    loop {
        let ReaderStatus::SubscriptionMatched(matched) = heard.recv_timeout(PATIENCE).unwrap() else {
            panic!("only matches happen");
        };
        if matched.last == Some(second.guid()) {
            assert_eq!((matched.total, matched.current), (2, 2));
            return;
        }
    }
}

#[test]
fn a_panic_in_a_listener_ends_the_listener_and_nothing_else() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("panic", reliable_writer(), reliable_reader());
    let (sender, heard) = mpsc::channel();
    let listener = move |_: &DataReader<Count>| {
        sender.send(()).unwrap();
        panic!("as the test wants it");
    };
    reader.on_data(Delivery::Inline, listener).unwrap();
    writer.write(&Count { value: 1 }).unwrap();
    heard.recv_timeout(PATIENCE).unwrap();
    assert!(heard.recv_timeout(PATIENCE).is_err(), "the listener was dropped");
    writer.write(&Count { value: 2 }).unwrap();
    assert_eq!(take(&reader, 2).len(), 2);
}

#[test]
fn the_last_handle_may_be_dropped_by_a_listener() {
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let participant = participant(domain());
        let topic = participant.create_topic::<Count>(&unique("last handle"));
        let reader = participant.create_reader(&topic, reliable_reader()).unwrap();
        let writer = participant.create_writer(&topic, reliable_writer()).unwrap();
        writer.wait_for_matched(1, PATIENCE).unwrap();
        let other = participant.create_reader(&topic, reliable_reader()).unwrap();
        let mut held = Some((participant, reader));
        let (sender, heard) = mpsc::channel();
        let on_data = move |reader: &DataReader<Count>| {
            if !reader.take(10).is_empty() {
                drop(held.take());
                sender.send(()).unwrap();
            }
        };
        other.on_data(delivery, on_data).unwrap();
        writer.wait_for_matched(2, PATIENCE).unwrap();
        writer.write(&Count { value: 1 }).unwrap();
        heard.recv_timeout(PATIENCE).unwrap();
        drop((writer, other));
    }
}
