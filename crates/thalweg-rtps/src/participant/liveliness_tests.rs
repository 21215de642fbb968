//! Laws of LIVELINESS between participants.

use std::net::SocketAddr;
use std::time::Duration;

use super::tests::*;
use super::*;
use crate::history::InstanceState;
use crate::payload::Payload;
use crate::qos::{History, LEASE_MIN, Liveliness as LivelinessQos, LivelinessKind, ReaderQos, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::time::INFINITE;
use crate::types::{EntityId, KeyHash, Keyed, SequenceNumber};
use crate::wire::batch::HeartbeatBatch;
use crate::wire::{Heartbeat, write};
use crate::writer::{Writer, WriterOptions};

const LEASE: Duration = Duration::from_millis(300);

fn offers(kind: LivelinessKind) -> WriterQos {
    WriterQos { liveliness: LivelinessQos { kind, lease: LEASE }, ..reliable_writer(History::KeepAll) }
}

fn requests(kind: LivelinessKind) -> ReaderQos {
    ReaderQos { liveliness: LivelinessQos { kind, lease: LEASE }, ..reliable_reader(History::KeepAll) }
}

fn pair(net: &mut Net, kind: LivelinessKind) -> (Shared<Writer>, Shared<Reader>) {
    let last = net.nodes.len() - 1;
    let writer = net.writer(0, offers(kind), Keyed::Yes);
    let reader = net.reader(last, requests(kind), Keyed::Yes);
    (writer, reader)
}

/// Whether a node was told that a writer was not alive (`-`) or alive again (`+`), in order.
fn told(net: &Net, node: usize) -> String {
    let sign = |event: &Event| match event {
        Event::WriterNotAlive { .. } => Some('-'),
        Event::WriterAlive { .. } => Some('+'),
        _ => None,
    };
    net.nodes[node].events.iter().filter_map(sign).collect()
}

#[test]
fn an_automatic_writer_is_alive_as_long_as_its_process_runs() {
    for loss in [0.0, 0.1] {
        let mut net = Net::new(2);
        let (writer, reader) = pair(&mut net, LivelinessKind::Automatic);
        net.run_for(SECOND);
        net.write(0, &writer, &[7; 5]);
        net.loss = loss;
        net.run_for(SECOND * 10);
        assert_eq!(told(&net, 1), "", "loss {loss}");
        net.nodes[0].hangs = true;
        let stopped = net.now;
        net.run_for(LEASE * 2);
        assert_eq!(told(&net, 1), "-", "loss {loss}: within two leases of {stopped:?}");
        let cache = reader.lock().cache().instance_state(KeyHash([7; 16]));
        assert_eq!(cache, Some(InstanceState::NotAliveNoWriters));
        assert_eq!(reader.lock().matched_writers().len(), 1, "it stays matched");
        net.nodes[0].hangs = false;
        net.run_for(SECOND);
        assert_eq!(told(&net, 1), "-+");
    }
}

#[test]
fn a_writer_by_topic_is_alive_as_long_as_its_application_says_so() {
    for nodes in [1, 2] {
        let mut net = Net::new(nodes);
        let reads = usize::from(nodes) - 1;
        let (writer, _reader) = pair(&mut net, LivelinessKind::ManualByTopic);
        net.run_for(SECOND);
        assert_eq!(told(&net, reads), "-", "{nodes}: nobody has asserted it");
        net.write(0, &writer, &[1; 5]);
        net.run_for(LEASE / 2);
        assert_eq!(told(&net, reads), "-+");
        for _ in 0..20 {
            let entity = writer.lock().guid().entity;
            assert!(!writer.lock().assert_liveliness(net.now));
            net.nodes[0].participant.rearm(entity, net.now);
            net.run_for(LEASE / 2);
        }
        assert_eq!(told(&net, reads), "-+");
        net.run_for(LEASE);
        assert_eq!(told(&net, reads), "-+-");
        let lost = Event::LivelinessLost { writer: writer.lock().guid().entity };
        assert_eq!(net.nodes[0].events.iter().filter(|event| **event == lost).count(), 2);
        assert_eq!(writer.lock().liveliness_lost(), 2);
    }
}

#[test]
fn heartbeats_of_batches_say_that_their_writer_is_alive() {
    let mut net = Net::new(2);
    let (writer, _reader) = pair(&mut net, LivelinessKind::ManualByTopic);
    net.run_for(SECOND);
    assert_eq!(told(&net, 1), "-");
    let guid = writer.lock().guid();
    for (count, liveliness) in [(1_000, false), (1_001, true)] {
        let (first, last) = (SequenceNumber::FIRST, SequenceNumber::ZERO);
        let (reader, writer) = (EntityId::UNKNOWN, guid.entity);
        let heartbeat = Heartbeat { reader, writer, first, last, count, is_final: true, liveliness };
        let mut bytes = Vec::new();
        write::header(&mut bytes, guid.prefix);
        write::heartbeat_batch(&mut bytes, &HeartbeatBatch { first_batch: first, last_batch: last, heartbeat });
        let source = SocketAddr::from(([10, 0, 0, 1], 7411));
        net.nodes[1].participant.handle_datagram(net.now, &Payload::from(bytes), source);
        net.run_for(LEASE / 3);
        assert_eq!(told(&net, 1), if liveliness { "-+" } else { "-" });
    }
}

#[test]
fn writers_by_participant_are_alive_together() {
    let household = Household::default();
    for shares in [false, true] {
        let mut net = Net::new(0);
        for index in 1..3 {
            net.add_with(index, |config| {
                if shares {
                    config.household = household.clone();
                }
            });
        }
        let (first, _reader) = pair(&mut net, LivelinessKind::ManualByParticipant);
        let second = net.writer(0, offers(LivelinessKind::ManualByParticipant), Keyed::Yes);
        net.run_for(SECOND);
        assert_eq!(told(&net, 1), "--");
        // Writing the one asserts the other as well.
        for _ in 0..20 {
            net.write(0, &first, &[1; 5]);
            net.run_for(LEASE / 3);
        }
        assert_eq!(told(&net, 1), "--++", "household: {shares}");
        for _ in 0..20 {
            let now = net.now;
            net.nodes[0].participant.assert_liveliness(now);
            net.run_for(LEASE / 3);
        }
        assert_eq!(told(&net, 1), "--++", "household: {shares}");
        net.run_for(LEASE * 3);
        assert_eq!(told(&net, 1), "--++--", "household: {shares}");
        assert_eq!([&first, &second].map(|writer| writer.lock().liveliness_lost()), [2, 2]);
    }
}

#[test]
fn a_lease_that_is_too_short_to_be_kept_is_looked_at_now_and_then() {
    for lease in [Duration::from_nanos(1), Duration::ZERO] {
        let mut net = Net::new(2);
        let (writer, _reader) = pair(&mut net, LivelinessKind::Automatic);
        net.run_for(SECOND);
        // As another vendor announces it.
        let (guid, now) = (writer.lock().guid(), net.now);
        let participant = &mut net.nodes[1].participant;
        let known = participant.database.publications.get_mut(guid).expect("they have met");
        Arc::make_mut(&mut Arc::make_mut(&mut known.data).qos).liveliness.lease = lease;
        participant.match_publication(now, guid);
        net.nodes[0].hangs = true;
        net.now = now + LEASE_MIN;
        net.nodes[1].participant.handle_timeout(net.now);
        assert_eq!(net.nodes[1].participant.liveliness.next_due(), Some(net.now + LEASE_MIN), "{lease:?}");
        net.exchange();
        assert_eq!(told(&net, 1), "-", "{lease:?}");
    }
}

#[test]
fn a_writer_that_was_not_alive_is_alive_with_another_lease() {
    for lease in [LEASE * 2, INFINITE] {
        let mut net = Net::new(2);
        let writer = net.writer(0, offers(LivelinessKind::ManualByTopic), Keyed::Yes);
        let lax = LivelinessQos { kind: LivelinessKind::ManualByTopic, lease: INFINITE };
        let _reader = net.reader(1, ReaderQos { liveliness: lax, ..reliable_reader(History::KeepAll) }, Keyed::Yes);
        net.run_for(SECOND);
        assert_eq!(told(&net, 1), "-");
        // As another vendor announces it.
        let (guid, now) = (writer.lock().guid(), net.now);
        let participant = &mut net.nodes[1].participant;
        let known = participant.database.publications.get_mut(guid).expect("they have met");
        Arc::make_mut(&mut Arc::make_mut(&mut known.data).qos).liveliness.lease = lease;
        participant.match_publication(now, guid);
        net.exchange();
        assert_eq!(told(&net, 1), "-+", "{lease:?}");
    }
}

/// It has no lease of its own to keep.
#[test]
fn a_writer_with_an_infinite_lease_keeps_the_others_of_its_participant_alive() {
    let mut net = Net::new(2);
    net.run_for(SECOND);
    let endless = LivelinessQos { kind: LivelinessKind::ManualByParticipant, lease: INFINITE };
    let first = net.writer(0, WriterQos { liveliness: endless, ..reliable_writer(History::KeepAll) }, Keyed::Yes);
    let second = net.writer(0, offers(LivelinessKind::ManualByParticipant), Keyed::Yes);
    let _reader = net.reader(1, ReaderQos { liveliness: endless, ..reliable_reader(History::KeepAll) }, Keyed::Yes);
    let lost = || [&first, &second].map(|writer| writer.lock().liveliness_lost());
    for _ in 0..20 {
        net.write(0, &first, &[1; 5]);
        net.run_for(LEASE / 3);
    }
    assert_eq!((told(&net, 1).as_str(), lost()), ("", [0, 0]), "a sample");
    for _ in 0..20 {
        let now = net.now;
        assert!(first.lock().assert_liveliness(now), "it speaks for its participant");
        net.nodes[0].participant.assert_liveliness(now);
        net.run_for(LEASE / 3);
    }
    assert_eq!((told(&net, 1).as_str(), lost()), ("", [0, 0]), "an assertion");
    net.run_for(LEASE * 3);
    assert_eq!((told(&net, 1).as_str(), lost()), ("-", [0, 1]), "nothing");
}

#[test]
fn a_reader_that_comes_late_learns_that_a_writer_is_not_alive() {
    let mut net = Net::new(2);
    let (_writer, _first) = pair(&mut net, LivelinessKind::ManualByTopic);
    net.run_for(SECOND);
    let _second = net.reader(1, requests(LivelinessKind::ManualByTopic), Keyed::Yes);
    net.run_for(LEASE / 3);
    assert_eq!(told(&net, 1), "--");
}

/// What came of it while nobody read it was not looked at.
#[test]
fn a_writer_that_nobody_has_read_for_a_while_is_alive_when_it_is_read_again() {
    let mut net = Net::new(2);
    let (writer, reader) = pair(&mut net, LivelinessKind::ManualByTopic);
    net.run_for(SECOND);
    net.write(0, &writer, &[1; 5]);
    net.run_for(LEASE / 3);
    assert_eq!(told(&net, 1), "-+");
    let (now, entity) = (net.now, reader.lock().guid().entity);
    net.nodes[1].participant.delete_reader(now, entity);
    for _ in 0..10 {
        net.write(0, &writer, &[1; 5]);
        net.run_for(LEASE / 3);
    }
    let _again = net.reader(1, requests(LivelinessKind::ManualByTopic), Keyed::Yes);
    net.run_for(LEASE / 3);
    assert_eq!(told(&net, 1), "-+");
}

#[test]
fn nothing_is_watched_and_sent_for_those_who_ask_for_nothing() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::Yes);
    net.run_for(SECOND);
    assert_eq!(net.nodes[1].participant.liveliness.next_due(), None);
    let (short, reader) = pair(&mut net, LivelinessKind::Automatic);
    net.run_for(SECOND);
    assert!(net.nodes[1].participant.liveliness.next_due().is_some());
    let (now, entity) = (net.now, reader.lock().guid().entity);
    net.nodes[1].participant.delete_reader(now, entity);
    let writers = [&writer, &short].map(|writer| writer.lock().guid().entity);
    writers.into_iter().for_each(|writer| net.nodes[0].participant.delete_writer(now, writer));
    net.run_for(SECOND);
    assert_eq!(net.nodes[1].participant.liveliness.next_due(), None);
    let sent = net.sent.len();
    net.run_for(SECOND * 4);
    assert!(net.sent.len() - sent < 40, "{} datagrams", net.sent.len() - sent);
}

/// The participant messages that node 0 has sent since it had sent `before` datagrams.
fn messages_since(net: &Net, before: usize) -> usize {
    let sent = net.sent[before..].iter().filter(|sent| sent.from == 0);
    sent.filter(|sent| sent.writers.contains(&EntityId::PARTICIPANT_MESSAGE_WRITER)).count()
}

#[test]
fn a_writer_is_kept_alive_by_another_that_its_readers_do_not_hear() {
    let mut net = Net::new(2);
    let config = WriterConfig {
        topic_name: "another".into(),
        type_name: "type".into(),
        keyed: Keyed::Yes,
        qos: offers(LivelinessKind::ManualByParticipant).into(),
        options: WriterOptions::default(),
    };
    let unheard = net.nodes[0].participant.create_writer(net.now, config).expect("a legal QoS");
    let (_heard, _reader) = pair(&mut net, LivelinessKind::ManualByParticipant);
    net.run_for(SECOND);
    assert_eq!(told(&net, 1), "-", "nobody has asserted it");
    net.write(0, &unheard, &[1; 5]);
    net.run_for(LEASE / 20);
    assert_eq!(told(&net, 1), "-+", "the sign is told at once");
    // Just within the lease, at every place between the looks of the participant.
    for _ in 0..40 {
        net.run_for(LEASE * 23 / 25);
        net.write(0, &unheard, &[1; 5]);
        net.run_for(LEASE / 50);
    }
    assert_eq!(told(&net, 1), "-+");
    let before = net.sent.len();
    for _ in 0..900 {
        net.write(0, &unheard, &[1; 5]);
        net.run_for(LEASE / 300);
    }
    let messages = messages_since(&net, before);
    assert!((8..=13).contains(&messages), "{messages} messages in three leases, however much is written");
    net.run_for(LEASE * 2);
    assert_eq!(told(&net, 1), "-+-");
    let before = net.sent.len();
    net.run_for(LEASE * 5);
    assert!(messages_since(&net, before) <= 1, "there is nothing to tell but that the participant is there");
}
