//! Callbacks.

use std::sync::mpsc;
use std::time::Duration;

use thalweg::conditions::{Condition, StatusKinds};
use thalweg::qos::{ReaderQos, ReaderTiming, WriterQos, WriterTiming};
use thalweg::status::{LostReason, ParticipantStatus, ReaderStatus, WriterStatus};
use thalweg::{DataReader, Delivery, DomainParticipant, ErrorKind};

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
        match heard.recv_timeout(PATIENCE).unwrap() {
            ReaderStatus::SubscriptionMatched(matched) if matched.last == Some(second.guid()) => {
                assert_eq!((matched.total, matched.current), (2, 2));
                break;
            }
            ReaderStatus::SubscriptionMatched(_) | ReaderStatus::LivelinessChanged(_) => {}
            other => panic!("only matches happen: {other:?}"),
        }
    }
    let ReaderStatus::LivelinessChanged(alive) = heard.recv_timeout(PATIENCE).unwrap() else {
        panic!("whoever is matched is alive");
    };
    assert_eq!((alive.alive, alive.last), (2, Some(second.guid())));
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

#[test]
fn a_new_status_listener_hears_what_changed_before_and_hears_it_once() {
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let Pair { writer, reader, participants: _alive } =
            pair::<Count>("status before", reliable_writer(), reliable_reader());
        let (sender, heard) = mpsc::channel();
        writer.on_status(delivery, move |status| sender.send(status).unwrap()).unwrap();
        let WriterStatus::PublicationMatched(matched) = heard.recv_timeout(PATIENCE).expect("the match before") else {
            panic!("only a match happened");
        };
        assert_eq!((matched.total, matched.total_change, matched.last), (1, 1, Some(reader.guid())));
        let (sender, heard_by_reader) = mpsc::channel();
        reader.on_status(delivery, move |status| sender.send(status).unwrap()).unwrap();
        let status = heard_by_reader.recv_timeout(PATIENCE).expect("the match before");
        assert!(
            matches!(status, ReaderStatus::SubscriptionMatched(matched) if matched.total_change == 1),
            "{status:?}"
        );
        let (sender, heard_again) = mpsc::channel();
        writer.on_status(delivery, move |status| sender.send(status).unwrap()).unwrap();
        drop(reader);
        let WriterStatus::PublicationMatched(matched) = heard_again.recv_timeout(PATIENCE).unwrap() else {
            panic!("only matches happen");
        };
        assert_eq!((matched.total_change, matched.current_change), (0, -1), "the match was told before");
        assert!(heard.try_recv().is_err(), "what is replaced is told nothing more");
    }
}

#[test]
fn what_the_application_has_asked_for_is_not_told_to_a_later_listener() {
    let Pair { writer, reader, participants: _alive } =
        pair::<Count>("status asked", reliable_writer(), reliable_reader());
    eventually("the match is noted", || writer.publication_matched().total == 1);
    let (sender, heard) = mpsc::channel();
    writer.on_status(Delivery::Thread, move |status| sender.send(status).unwrap()).unwrap();
    drop(reader);
    let WriterStatus::PublicationMatched(matched) = heard.recv_timeout(PATIENCE).unwrap() else {
        panic!("only matches happen");
    };
    assert_eq!((matched.total_change, matched.current_change), (0, -1));
}

#[test]
fn listeners_given_at_creation_hear_everything_from_the_first_match_and_sample_on() {
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let (domain, name) = (domain(), unique("created listening"));
        let (here, there) = (participant(domain), participant(domain));
        let (sender, writer_heard) = mpsc::channel();
        let writer = here
            .writer_builder(&here.create_topic::<Count>(&name))
            .qos(late_writer())
            .on_status(delivery, move |status| sender.send(status).unwrap())
            .create()
            .unwrap();
        assert_eq!(writer.qos().durability, late_writer().durability);
        for value in 0..10 {
            writer.write(&Count { value }).unwrap();
        }
        let (data_sender, data) = mpsc::channel();
        let (status_sender, reader_heard) = mpsc::channel();
        let reader = there
            .reader_builder(&there.create_topic::<Count>(&name))
            .qos(late_reader())
            .on_data(delivery, move |reader: &DataReader<Count>| {
                let samples = reader.take(usize::MAX);
                samples.iter().for_each(|sample| data_sender.send(sample.data().unwrap().value).unwrap());
            })
            .on_status(delivery, move |status| status_sender.send(status).unwrap())
            .create()
            .unwrap();
        let status = reader_heard.recv_timeout(PATIENCE).unwrap();
        let ReaderStatus::SubscriptionMatched(matched) = status else { panic!("{status:?} is not the match") };
        assert_eq!((matched.total, matched.total_change, matched.last), (1, 1, Some(writer.guid())));
        let status = writer_heard.recv_timeout(PATIENCE).unwrap();
        let WriterStatus::PublicationMatched(matched) = status else { panic!("{status:?} is not the match") };
        assert_eq!((matched.total_change, matched.last), (1, Some(reader.guid())));
        for value in 0..10 {
            assert_eq!(data.recv_timeout(PATIENCE).unwrap(), value);
        }
    }
}

#[test]
fn a_listener_at_creation_is_dropped_where_the_endpoint_cannot_be_created() {
    let participant = participant(domain());
    let (sender, heard) = mpsc::channel::<WriterStatus>();
    let listener = move |status| sender.send(status).unwrap();
    let nameless = participant.create_topic::<Count>("");
    assert!(participant.writer_builder(&nameless).on_status(Delivery::Thread, listener).create().is_err());
    assert_eq!(heard.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}

/// The end of an endpoint locks the participant, which is locked while another one is created.
#[test]
fn a_listener_that_owns_an_endpoint_is_dropped_where_another_one_cannot_be_created() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>(&unique("owning"));
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let create = || participant.create_writer(&topic, WriterQos::default()).unwrap();
        let (owned, also_owned) = (create(), create());
        let timing = ReaderTiming { deadline: Duration::ZERO, ..ReaderTiming::default() };
        let forward = move |_: &DataReader<Count>| _ = owned.write(&Count { value: 1 }).unwrap();
        let qos = ReaderQos { timing, ..ReaderQos::default() };
        let refused = participant.reader_builder(&topic).qos(qos).on_data(delivery, forward).create();
        assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::InconsistentPolicy));
        let timing = WriterTiming { deadline: Duration::ZERO, ..WriterTiming::default() };
        let report = move |_| _ = also_owned.write(&Count { value: 1 }).unwrap();
        let qos = WriterQos { timing, ..WriterQos::default() };
        let refused = participant.writer_builder(&topic).qos(qos).on_status(delivery, report).create();
        assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::InconsistentPolicy));
    }
}

#[test]
fn a_participants_listener_hears_of_others_and_of_endpoints_without_listeners() {
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let (domain, name) = (domain(), unique("participant listener"));
        let there = participant(domain);
        let (sender, heard) = mpsc::channel();
        let here = DomainParticipant::builder(domain)
            .loopback_only()
            .endpoint_statuses(StatusKinds::ANY)
            .on_status(delivery, move |status| sender.send(status).unwrap())
            .create()
            .unwrap();
        let next = || heard.recv_timeout(PATIENCE).expect("news");
        assert_eq!(next(), ParticipantStatus::Discovered(there.guid_prefix()));
        let topic = here.create_topic::<Count>(&name);
        let silent = here.writer_builder(&topic).on_status(Delivery::Thread, |_| {}).create().unwrap();
        let writer = here.create_writer(&topic, WriterQos::default()).unwrap();
        let reader = there.create_reader(&there.create_topic::<Count>(&name), ReaderQos::default()).unwrap();
        silent.wait_for_matched(1, PATIENCE).unwrap();
        let ParticipantStatus::Writer { writer: guid, status: WriterStatus::PublicationMatched(matched) } = next()
        else {
            panic!("the match of the writer without listener");
        };
        assert_eq!((guid, matched.total_change, matched.last), (writer.guid(), 1, Some(reader.guid())));
        assert_eq!(writer.publication_matched().total_change, 0, "it was told");
        let prefix = there.guid_prefix();
        drop((reader, there));
        loop {
            match next() {
                ParticipantStatus::Writer { writer: guid, .. } => assert_eq!(guid, writer.guid()),
                other => {
                    let reason = LostReason::Left;
                    assert_eq!(other, ParticipantStatus::Lost { participant: prefix, reason });
                    break;
                }
            }
        }
    }
}

#[test]
fn a_participants_listener_takes_only_the_statuses_that_it_asks_for() {
    for delivery in [Delivery::Thread, Delivery::Inline] {
        let name = unique("kinds");
        let (sender, heard) = mpsc::channel();
        let participant = DomainParticipant::builder(domain())
            .loopback_only()
            .on_status(delivery, move |status| sender.send(status).unwrap())
            .endpoint_statuses(StatusKinds::SUBSCRIPTION_MATCHED)
            .create()
            .unwrap();
        let topic = participant.create_topic::<Count>(&name);
        let writer = participant.create_writer(&topic, WriterQos::default()).unwrap();
        let reader = participant.create_reader(&topic, ReaderQos::default()).unwrap();
        let matched = writer.status_condition(StatusKinds::PUBLICATION_MATCHED);
        eventually("the writer's status is left", || matched.trigger_value());
        let news = heard.recv_timeout(PATIENCE).unwrap();
        let ParticipantStatus::Reader { reader: guid, status: ReaderStatus::SubscriptionMatched(told) } = news else {
            panic!("{news:?} is not the match of the reader");
        };
        assert_eq!((guid, told.total_change), (reader.guid(), 1));
        let status = reader.subscription_matched();
        assert_eq!((status.total, status.total_change), (1, 0), "it was told");
        eventually("a status of another kind is left", || reader.status_changes() == StatusKinds::LIVELINESS_CHANGED);
        assert_eq!(writer.publication_matched().total_change, 1);
        assert!(heard.try_recv().is_err(), "nothing else is told");
    }
}

#[test]
fn participants_that_share_a_listener_do_not_wait_for_each_other() {
    let (domain, name) = (domain(), unique("shared"));
    let (sender, heard) = mpsc::channel();
    let (go_on, told_to_go_on) = mpsc::channel::<()>();
    let mut is_first = true;
    let builder = DomainParticipant::builder(domain).loopback_only().on_status(Delivery::Inline, move |status| {
        sender.send(status).unwrap();
        if std::mem::take(&mut is_first) {
            told_to_go_on.recv_timeout(PATIENCE).unwrap();
        }
    });
    let both = [builder.clone().create().unwrap(), builder.create().unwrap()];
    let third = participant(domain);
    assert!(matches!(heard.recv_timeout(PATIENCE).unwrap(), ParticipantStatus::Discovered(_)));
    let reader =
        |one: &DomainParticipant| one.create_reader(&one.create_topic::<Count>(&name), ReaderQos::default()).unwrap();
    let readers = [reader(&both[0]), reader(&both[1])];
    let _writer = third.create_writer(&third.create_topic::<Count>(&name), WriterQos::default()).unwrap();
    eventually("one goes on", || readers.iter().any(|reader| !reader.matched_writers().is_empty()));
    go_on.send(()).unwrap();
    for _ in 0..3 {
        assert!(matches!(heard.recv_timeout(PATIENCE).unwrap(), ParticipantStatus::Discovered(_)));
    }
}
