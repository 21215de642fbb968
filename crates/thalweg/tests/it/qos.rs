//! Policies: refused, mismatched, matched by partition.

use std::time::Duration;

use thalweg::qos::{Durability, History, PolicyId, ReaderQos, ReaderTiming, Reliability, WriterQos, WriterTiming};
use thalweg::{ErrorKind, PublisherQos, SubscriberQos};

use crate::fixture::*;

#[test]
fn both_sides_are_told_why_they_do_not_match() {
    let (domain, name) = (domain(), unique("mismatch"));
    let (here, there) = (participant(domain), participant(domain));
    let best_effort = WriterQos { reliability: Reliability::BestEffort, ..reliable_writer() };
    let writer = here.create_writer(&here.create_topic::<Count>(&name), best_effort).unwrap();
    let reader = there.create_reader(&there.create_topic::<Count>(&name), late_reader()).unwrap();
    let mut offered = writer.offered_incompatible_qos();
    eventually("the writer learns of it", || {
        offered = writer.offered_incompatible_qos();
        offered.total == 1
    });
    let mut requested = reader.requested_incompatible_qos();
    eventually("the reader learns of it", || {
        requested = reader.requested_incompatible_qos();
        requested.total == 1
    });
    assert_eq!((offered.last, requested.last), (Some(reader.guid()), Some(writer.guid())));
    let policies: Vec<_> = offered.mismatches.iter().map(|mismatch| mismatch.policy).collect();
    assert_eq!(policies, [PolicyId::DURABILITY, PolicyId::RELIABILITY]);
    let text = requested.mismatches[1].to_string();
    assert!(text.contains("offered BEST_EFFORT") && text.contains("requested RELIABLE"), "{text}");
    assert_eq!(writer.publication_matched().total, 0);
    let error = writer.wait_for_matched(1, Duration::from_millis(10)).unwrap_err();
    assert!(error.is_timeout() && error.to_string().contains("0 of 1 readers matched"), "{error}");
}

#[test]
fn a_policy_that_is_not_effective_is_refused_with_its_name() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>("refused");
    let qos = WriterQos { durability: Durability::Persistent, ..WriterQos::default() };
    let error = participant.create_writer(&topic, qos).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("DURABILITY PERSISTENT is not effective yet"), "{error}");
    let qos = ReaderQos { history: History::KeepLast(0), ..ReaderQos::default() };
    let error = participant.create_reader(&topic, qos).unwrap_err();
    assert_eq!((error.kind(), error.topic()), (ErrorKind::InconsistentPolicy, Some("refused")));
}

#[test]
fn partitions_divide_a_topic() {
    let (domain, name) = (domain(), unique("partition"));
    let (here, there) = (participant(domain), participant(domain));
    let publisher =
        here.create_publisher(PublisherQos { partition: vec!["floor 1".into()], ..PublisherQos::default() });
    let writer = publisher.create_writer(&here.create_topic::<Count>(&name), reliable_writer()).unwrap();
    let reader_in = |partition: &str| {
        let qos = SubscriberQos { partition: vec![partition.into()], ..SubscriberQos::default() };
        there.create_subscriber(qos).create_reader(&there.create_topic::<Count>(&name), reliable_reader()).unwrap()
    };
    let (other, wildcard, same) = (reader_in("floor 2"), reader_in("floor *"), reader_in("floor 1"));
    writer.wait_for_matched(2, PATIENCE).unwrap();
    let mut matched = writer.matched_readers();
    matched.sort();
    let mut expected = [wildcard.guid(), same.guid()];
    expected.sort();
    assert_eq!(matched, expected);
    writer.write(&Count { value: 1 }).unwrap();
    assert_eq!(take(&wildcard, 1).len() + take(&same, 1).len(), 2);
    assert_eq!(other.subscription_matched().total, 0);
}

#[test]
fn matched_statuses_count_comings_and_goings() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("matched", reliable_writer(), reliable_reader());
    let mut status = writer.publication_matched();
    eventually("the status is told", || {
        status = if status.total == 1 { status } else { writer.publication_matched() };
        status.total == 1
    });
    assert_eq!((status.current, status.last), (1, Some(reader.guid())));
    drop(reader);
    eventually("the writer learns that the reader is gone", || writer.matched_readers().is_empty());
    eventually("the status follows", || {
        status = writer.publication_matched();
        status.current == 0
    });
    assert_eq!(status.total, 1);
}

#[test]
fn names_that_cannot_be_announced_are_refused() {
    let participant = participant(domain());
    for (name, cause) in [("", "is empty"), (&"n".repeat(256)[..], "has 256 bytes"), ("a\0b", "contains a NUL")] {
        let topic = participant.create_topic::<Count>(name);
        let error = participant.create_writer(&topic, reliable_writer()).unwrap_err();
        assert!(error.kind() == ErrorKind::BadParameter && error.to_string().contains(cause), "{error}");
        assert!(participant.create_reader(&topic, reliable_reader()).is_err());
    }
    let longest = participant.create_topic::<Count>(&"n".repeat(255));
    assert!(participant.create_writer(&longest, reliable_writer()).is_ok());
}

#[test]
fn a_writer_may_address_its_readers_by_multicast_or_unicast() {
    use thalweg::qos::{Destination, Transmission, WriterQos};
    let domain = domain();
    let (here, there) = (participant(domain), participant(domain));
    for destination in [Destination::Unicast, Destination::Multicast] {
        let name = unique(&format!("{destination:?}"));
        let reader = there.create_reader(&there.create_topic::<Count>(&name), reliable_reader()).unwrap();
        let publisher = here.create_publisher(PublisherQos::default());
        let topic = here.create_topic::<Count>(&name);
        let qos = WriterQos { transmission: Transmission::to(destination), ..reliable_writer() };
        let writer = publisher.create_writer(&topic, qos).unwrap();
        writer.wait_for_matched(1, PATIENCE).unwrap();
        for value in 0..20 {
            writer.write(&Count { value }).unwrap();
        }
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        let values: Vec<u64> = reader.take(100).iter().map(|sample| sample.data().unwrap().value).collect();
        assert_eq!(values, (0..20).collect::<Vec<u64>>(), "{destination:?}");
    }
}

#[test]
fn a_pair_that_does_not_match_counts_once_whatever_else_changes() {
    let (domain, name) = (domain(), unique("refused"));
    let (here, there) = (participant(domain), participant(domain));
    let qos = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    let writer = here.create_writer(&here.create_topic::<Count>(&name), qos.clone()).unwrap();
    let topic = there.create_topic::<Count>(&name);
    let readers = [0, 1].map(|_| there.create_reader(&topic, reliable_reader()).unwrap());
    let both = |total: usize| {
        eventually("both ends are told", || {
            let requested: usize = readers.iter().map(|reader| reader.requested_incompatible_qos().total).sum();
            (writer.offered_incompatible_qos().total, requested) == (total, total)
        });
    };
    both(2);
    let lifespan = Duration::from_secs(7);
    let timing = WriterTiming { lifespan, ..WriterTiming::default() };
    let timed = ReaderTiming { minimum_separation: Duration::from_millis(1), ..ReaderTiming::default() };
    writer.set_qos(WriterQos { timing, ..qos.clone() }).unwrap();
    readers[0].set_qos(ReaderQos { timing: timed, ..reliable_reader() }).unwrap();
    let known = || there.publications().iter().any(|known| known.data.qos.timing.lifespan == lifespan);
    eventually("the change is known", known);
    std::thread::sleep(Duration::from_millis(200));
    both(2);
    // Another reason is news.
    readers[0]
        .set_qos(ReaderQos { timing: ReaderTiming { deadline: lifespan, ..timed }, ..reliable_reader() })
        .unwrap();
    both(3);
}
