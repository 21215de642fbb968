//! Histories that outlive their writers.

use std::time::Duration;

use super::tests::*;
use super::{Event, HistoryRefusal, KeptHistory, LASTING_WRITERS_MAX, StoredHistory, WriterConfig};
use crate::history::{ChangeKind, TakenSample};
use crate::payload::Payload;
use crate::qos::{
    Durability, DurabilityService, History, Ownership, PolicyId, QosError, QosErrorKind, ReaderQos, ReaderTiming,
    ResourceLimits, WriterOwnership, WriterQos, WriterTiming,
};
use crate::shared::Shared;
use crate::types::{Guid, HistoryIdentity, KeyHash, Keyed, SequenceNumber};
use crate::writer::{NewChange, Writer, WriterOptions};

fn transient(depth: u32) -> WriterQos {
    let durability_service = DurabilityService { history: History::KeepLast(depth), ..DurabilityService::default() };
    WriterQos { durability: Durability::Transient, durability_service, ..reliable_writer(History::KeepAll) }
}

fn wanting() -> ReaderQos {
    ReaderQos { durability: Durability::Transient, ..reliable_reader(History::KeepAll) }
}

fn config(qos: WriterQos, keyed: Keyed, name: &str) -> WriterConfig {
    let options = WriterOptions { history_name: name.to_owned(), ..WriterOptions::default() };
    WriterConfig { topic_name: "topic".into(), type_name: "type".into(), keyed, qos: qos.into(), options }
}

fn create(net: &mut Net, qos: WriterQos, name: &str) -> Result<Shared<Writer>, QosError> {
    net.nodes[0].participant.create_writer(net.now, config(qos, Keyed::No, name))
}

fn delete(net: &mut Net, writer: Shared<Writer>) {
    let entity = writer.lock().guid().entity;
    net.nodes[0].participant.delete_writer(net.now, entity);
}

/// A writer of node `node` with an empty store of a thousand numbers.
fn create_stored(net: &mut Net, node: usize, qos: &WriterQos) -> Shared<Writer> {
    let (config, history) = (config(qos.clone(), Keyed::No, ""), stored(1_000));
    net.nodes[node].participant.create_lasting_writer(net.now, config, Some(history)).expect("there is a store")
}

fn stored(reserved: i64) -> StoredHistory {
    let reserved = SequenceNumber(reserved);
    StoredHistory { identity: HistoryIdentity([7; 16]), changes: Vec::new(), last: SequenceNumber::ZERO, reserved }
}

fn change(kind: ChangeKind, instance: u8) -> NewChange {
    NewChange {
        kind,
        instance: KeyHash([instance; 16]),
        timestamp: None,
        payload: Payload::from(vec![0, 1, 0, 0, instance]),
    }
}

#[test]
fn a_history_is_deleted_once_no_writer_has_it() {
    let mut net = Net::new(2);
    let reader = net.reader(1, wanting(), Keyed::No);
    let writer = create(&mut net, transient(3), "").expect("a legal QoS");
    let other = create(&mut net, transient(3), "other").expect("a legal QoS");
    net.run_for(SECOND);
    (0..5).for_each(|n| assert!(net.write(0, &writer, &[n])));
    net.run_for(SECOND);
    let guid = writer.lock().guid();
    let held = net.nodes[0].participant.histories();
    assert_eq!(
        held.iter().map(|history| (history.name.as_str(), history.samples)).collect::<Vec<_>>(),
        [("", 3), ("other", 0)]
    );
    let refusal = net.nodes[0].participant.delete_history(net.now, guid);
    assert_eq!(refusal, Err(HistoryRefusal::InUse { topic_name: "topic".into() }));
    delete(&mut net, writer);
    let deleted = net.nodes[0].participant.delete_history(net.now, guid).expect("nobody has it");
    assert_eq!(deleted, KeptHistory { is_in_use: false, ..held[0].clone() });
    assert_eq!(net.nodes[0].participant.delete_history(net.now, guid), Err(HistoryRefusal::Unknown));
    net.run_for(SECOND);
    assert_eq!(reader.lock().matched_writers().count(), 1, "the reader was told");
    let samples = take(&net, &reader);
    let (valid, ends): (Vec<_>, Vec<_>) = samples.into_iter().partition(|sample| sample.info.valid);
    assert_eq!(
        (first_bytes(&valid).as_slice(), ends.len()),
        (&[0, 1, 2, 3, 4][..], 1),
        "its instance has no writer any more"
    );
    let again = create(&mut net, transient(3), "").expect("a legal QoS");
    let state = again.lock();
    assert_eq!((state.guid() == guid, state.last()), (false, SequenceNumber::ZERO));
    drop(state);
    assert!(net.write(0, &again, &[9]) && net.write(0, &other, &[8]));
    net.run_for(SECOND * 2);
    assert_eq!(first_bytes(&take(&net, &reader)), [9, 8]);
}

#[test]
fn a_late_reader_gets_what_a_deleted_writer_kept() {
    let mut net = Net::new(2);
    let writer = create(&mut net, transient(3), "").expect("a legal QoS");
    (0..5).for_each(|n| assert!(net.write(0, &writer, &[n])));
    delete(&mut net, writer);
    net.run_for(SECOND);
    let late = net.reader(1, wanting(), Keyed::No);
    net.run_for(SECOND * 2);
    assert_eq!(first_bytes(&take(&net, &late)), [2, 3, 4]);
}

#[test]
fn a_new_writer_goes_on_with_a_retained_history() {
    let mut net = Net::new(2);
    let first = create(&mut net, transient(9), "").expect("a legal QoS");
    let reader = net.reader(1, wanting(), Keyed::No);
    net.run_for(SECOND);
    (0..3).for_each(|n| assert!(net.write(0, &first, &[n])));
    net.run_for(SECOND);
    let guid = first.lock().guid();
    delete(&mut net, first);
    let qos = WriterQos { reader_patience: SECOND * 9, ..transient(9) };
    let second = create(&mut net, qos, "").expect("the history is free");
    let state = second.lock();
    assert_eq!((state.guid(), state.last()), (guid, SequenceNumber(3)));
    drop(state);
    assert!(net.write(0, &second, &[3]));
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), [0, 1, 2, 3], "once each");
    assert_eq!(second.lock().matched_readers().len(), 1);
    assert!(second.lock().all_acknowledged());
    let late = net.reader(1, wanting(), Keyed::No);
    net.run_for(SECOND * 2);
    assert_eq!(first_bytes(&take(&net, &late)), [0, 1, 2, 3]);
}

#[test]
fn a_deleted_writer_owns_no_instance_of_its_history_until_the_next_one_goes_on_with_it() {
    let mut net = Net::new(3);
    let of_strength = |strength| WriterQos { ownership: WriterOwnership::Exclusive { strength }, ..transient(9) };
    let exclusive = ReaderQos { ownership: Ownership::Exclusive, ..wanting() };
    let strong = net.writer(0, of_strength(9), Keyed::Yes);
    let weak = net.writer(2, of_strength(1), Keyed::Yes);
    let readers = [0, 1].map(|node| net.reader(node, exclusive.clone(), Keyed::Yes));
    net.run_for(SECOND);
    let write = |net: &mut Net, node: usize, writer: &Shared<Writer>, bytes: [u8; 2]| {
        assert!(net.write(node, writer, &bytes));
        net.run_for(SECOND);
    };
    let value = |sample: &TakenSample| sample.payload[5];
    let values = |net: &Net| readers.each_ref().map(|reader| take(net, reader).iter().map(value).collect::<Vec<u8>>());
    write(&mut net, 0, &strong, [1, 10]);
    write(&mut net, 0, &strong, [2, 11]);
    write(&mut net, 2, &weak, [1, 20]);
    delete(&mut net, strong);
    net.run_for(SECOND);
    write(&mut net, 2, &weak, [1, 21]);
    assert_eq!(values(&net), [[10, 11, 21], [10, 11, 21]]);
    let late = net.reader(1, exclusive, Keyed::Yes);
    net.run_for(SECOND * 2);
    assert!(take(&net, &late).iter().any(|sample| value(sample) == 11), "nobody else writes that instance");
    let next = net.writer(0, of_strength(9), Keyed::Yes);
    net.run_for(SECOND);
    write(&mut net, 0, &next, [1, 12]);
    write(&mut net, 2, &weak, [1, 22]);
    assert_eq!(values(&net), [[12], [12]]);
}

#[test]
fn each_reader_of_a_history_that_is_taken_over_is_told_once() {
    let mut net = Net::new(2);
    let first = create(&mut net, transient(9), "").expect("a legal QoS");
    let timing = ReaderTiming { deadline: SECOND, ..ReaderTiming::default() };
    let [any, strict, lax] = [
        wanting(),
        ReaderQos { timing, ..wanting() },
        ReaderQos { timing: ReaderTiming { deadline: SECOND * 9, ..timing }, ..wanting() },
    ]
    .map(|qos| net.reader(1, qos, Keyed::No));
    net.run_for(SECOND);
    assert_eq!(first.lock().matched_readers().len(), 1, "no deadline is offered");
    let entity = first.lock().guid().entity;
    let offering = |deadline| {
        let timing = WriterTiming { deadline, ..WriterTiming::default() };
        WriterQos { timing, ..transient(9) }
    };
    let participant = &mut net.nodes[0].participant;
    participant.set_writer_qos(net.now, entity, offering(SECOND * 9).into()).expect("it may change");
    net.run_for(SECOND);
    assert_eq!(first.lock().matched_readers().len(), 2);
    delete(&mut net, first);
    let told = |net: &mut Net, deadline| {
        net.run_for(SECOND);
        net.nodes[0].events.clear();
        let next = create(net, offering(deadline), "").expect("the history is free");
        net.run_for(SECOND);
        let matched = |event: &Event| match event {
            Event::PublicationMatched { writer, reader } if *writer == entity => Some(*reader),
            _ => None,
        };
        let mut told: Vec<Guid> = net.nodes[0].events.iter().filter_map(matched).collect();
        let mut now: Vec<Guid> = next.lock().matched_readers().collect();
        told.sort();
        now.sort();
        assert_eq!(told, now, "each once");
        delete(net, next);
        told.len()
    };
    assert_eq!(told(&mut net, SECOND), 3, "one more than before");
    assert_eq!(told(&mut net, SECOND), 3, "the same as before");
    assert_eq!(told(&mut net, SECOND * 9), 2, "one less than before");
    let matched = [any, strict, lax].map(|reader| reader.lock().matched_writers().len());
    assert_eq!(matched, [1, 0, 1]);
}

#[test]
fn a_history_follows_its_writer_into_other_partitions() {
    let mut net = Net::new(2);
    let within = |names: &[&str]| {
        let partition = names.iter().map(|name| (*name).to_owned()).collect();
        WriterQos { partition, ..transient(9) }
    };
    let writer = create(&mut net, within(&["a"]), "").expect("a legal QoS");
    let other = create(&mut net, within(&["b"]), "").expect("another history");
    assert!(net.write(0, &writer, &[1]) && net.write(0, &other, &[2]));
    let guid = writer.lock().guid();
    let set = |net: &mut Net, names: &[&str]| {
        net.nodes[0].participant.set_writer_qos(net.now, guid.entity, within(names).into())
    };
    let refused = set(&mut net, &["b"]).expect_err("another history is there");
    assert_eq!((refused.kind, refused.policy), (QosErrorKind::Inconsistent, PolicyId::PARTITION));
    delete(&mut net, other);
    set(&mut net, &["b"]).expect_err("it is there without writer as well");
    set(&mut net, &["c", "d"]).expect("nothing is there");
    set(&mut net, &["d", "c"]).expect("the same, in another order");
    let partitions = |net: &Net| {
        let histories = net.nodes[0].participant.histories().into_iter();
        histories.map(|history| (history.writer == guid, history.partition)).collect::<Vec<_>>()
    };
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    assert_eq!(partitions(&net), [(false, named(&["b"])), (true, named(&["c", "d"]))]);
    delete(&mut net, writer);
    net.run_for(SECOND);
    let mut found = |names: &[&str]| {
        let writer = create(&mut net, within(names), "").expect("no writer has it");
        let state = writer.lock();
        (state.guid() == guid, state.held())
    };
    assert_eq!(found(&["c", "d"]), (true, 1));
    assert_eq!(found(&["a"]), (false, 0), "nothing is left there");
    let late = net.reader(1, ReaderQos { partition: named(&["d"]), ..wanting() }, Keyed::No);
    net.run_for(SECOND * 2);
    assert_eq!(first_bytes(&take(&net, &late)), [1]);
}

#[test]
fn a_history_has_one_writer_at_a_time() {
    let mut net = Net::new(1);
    let writer = create(&mut net, transient(1), "a").expect("a legal QoS");
    let refused = create(&mut net, transient(1), "a").expect_err("it is in use").to_string();
    assert!(refused.contains("history_name"), "{refused}");
    create(&mut net, transient(1), "b").expect("another history");
    delete(&mut net, writer);
    let longer = create(&mut net, transient(2), "a").expect_err("it may not change").to_string();
    assert!(longer.contains("DURABILITY_SERVICE"), "{longer}");
    create(&mut net, transient(1), "a").expect("it is free");
}

#[test]
fn histories_that_outlive_their_writers_are_bounded() {
    let mut net = Net::new(1);
    for number in 0..LASTING_WRITERS_MAX {
        let writer = create(&mut net, transient(1), &number.to_string()).expect("there is room");
        delete(&mut net, writer);
    }
    create(&mut net, transient(1), "one more").expect_err("there is none");
    create(&mut net, transient(1), "7").expect("it is there already");
}

#[test]
fn present_readers_get_all_and_late_ones_what_the_service_keeps() {
    let mut net = Net::new(3);
    let limits = ResourceLimits { max_samples: Some(3), ..ResourceLimits::default() };
    let mut qos = transient(1);
    qos.durability_service =
        DurabilityService { history: History::KeepAll, resource_limits: limits, ..qos.durability_service };
    let writer = create(&mut net, qos, "").expect("a legal QoS");
    let early = net.reader(1, wanting(), Keyed::No);
    net.run_for(SECOND);
    (0..9).for_each(|n| assert!(net.write(0, &writer, &[n])));
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &early)), (0..9).collect::<Vec<u8>>());
    assert_eq!(writer.lock().held(), 3);
    let late = net.reader(2, wanting(), Keyed::No);
    net.run_for(SECOND * 2);
    assert_eq!(first_bytes(&take(&net, &late)), [6, 7, 8]);
}

#[test]
fn what_only_late_readers_would_get_makes_room_for_writes() {
    let mut net = Net::new(1);
    let limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let qos = WriterQos { resource_limits: limits, ..transient(100) };
    let writer = create(&mut net, qos, "").expect("a legal QoS");
    (0..50).for_each(|n| assert!(net.write(0, &writer, &[n]), "write {n}"));
    assert_eq!(writer.lock().held(), 4);
}

#[test]
fn the_next_writer_brings_its_own_memory_for_the_history() {
    let mut net = Net::new(1);
    let held_after_nine = |net: &mut Net, history_bytes_max: usize| {
        let options = WriterOptions { history_bytes_max, ..WriterOptions::default() };
        let config = WriterConfig { options, ..config(transient(100), Keyed::No, "") };
        let writer = net.nodes[0].participant.create_writer(net.now, config).expect("the history is free");
        (0..9).for_each(|_| assert!(net.write(0, &writer, &[0; 1_000])));
        let held = writer.lock().held();
        delete(net, writer);
        held
    };
    let few = held_after_nine(&mut net, 4_000);
    assert!((1..=4).contains(&few), "{few} of 1,000 bytes in 4,000");
    assert_eq!(held_after_nine(&mut net, 1 << 20), few + 9);
    assert_eq!(held_after_nine(&mut net, 4_000), few);
}

#[test]
fn an_instance_that_has_ended_goes_after_the_cleanup_delay() {
    let mut net = Net::new(2);
    let mut qos = transient(1);
    qos.durability_service.cleanup_delay = SECOND * 10;
    let shared = net.nodes[0].participant.create_writer(net.now, config(qos, Keyed::Yes, "")).expect("a legal QoS");
    net.run_for(SECOND * 30);
    for kind in [ChangeKind::Write, ChangeKind::DisposeUnregister] {
        shared.lock().write(net.now, change(kind, 1)).expect("there is room");
    }
    shared.lock().write(net.now, change(ChangeKind::Write, 2)).expect("there is room");
    let entity = shared.lock().guid().entity;
    let due = shared.lock().poll_timeout().expect("the end is planned");
    net.nodes[0].participant.rearm(entity, due);
    net.run_for(SECOND * 8);
    assert_eq!(shared.lock().held(), 3);
    net.run_for(SECOND * 4);
    assert_eq!(shared.lock().held(), 1);
}

#[test]
fn a_store_is_told_every_change_that_stays_and_every_one_that_goes() {
    let mut net = Net::new(1);
    let qos = WriterQos { durability: Durability::Persistent, ..transient(2) };
    let refused =
        net.nodes[0].participant.create_writer(net.now, config(qos.clone(), Keyed::No, "")).expect_err("no store");
    assert!(refused.to_string().contains("store"), "{refused}");
    let created = net.nodes[0].participant.create_lasting_writer(net.now, config(qos, Keyed::No, ""), Some(stored(6)));
    let writer = created.expect("there is a store");
    (1..=5).for_each(|n| assert!(net.write(0, &writer, &[n])));
    let mut state = writer.lock();
    let told = state.take_records().expect("there is news");
    let numbers =
        |changes: &[crate::history::StoredChange]| changes.iter().map(|one| one.sequence.0).collect::<Vec<_>>();
    assert_eq!((numbers(&told.added), told.removed.len(), told.up_to.0), (vec![4, 5], 0, 5));
    assert!(!state.is_stored());
    state.note_stored(told.up_to, SequenceNumber(6));
    assert!(state.is_stored() && state.take_records().is_none());
    state.write(net.now, change(ChangeKind::Write, 0)).expect("the last number that is set aside");
    let told = state.take_records().expect("there is news");
    assert_eq!((numbers(&told.added), told.removed), (vec![6], vec![SequenceNumber(4)]));
    let refused = state.write(net.now, change(ChangeKind::Write, 0)).expect_err("no number is left");
    assert!(refused.awaits_store);
    state.note_stored(told.up_to, SequenceNumber(9));
    state.write(net.now, change(ChangeKind::Write, 0)).expect("there are more");
}

/// A reader at node 2 that knows the writer of node 0 before its process ends after `before` samples, of which `lost` were not stored,
/// and of which the reader did not get those after `cut`; then node 1 restores the history.
fn after_a_crash(before: u8, lost: usize, got: u8) -> (Vec<u8>, u64) {
    let mut net = Net::new(3);
    let qos = WriterQos { durability: Durability::Persistent, ..transient(100) };
    let first = create_stored(&mut net, 0, &qos);
    let reader = net.reader(2, wanting(), Keyed::No);
    net.run_for(SECOND);
    let mut told = Vec::new();
    for n in 1..=before {
        if n == got + 1 {
            net.nodes[2].cut_off = true;
        }
        assert!(net.write(0, &first, &[n]));
        net.run_for(Duration::from_millis(10));
        told.extend(first.lock().take_records().expect("there is news").added);
        first.lock().note_stored(SequenceNumber(i64::from(n)), SequenceNumber(1_000));
    }
    told.truncate(told.len() - lost);
    net.nodes[0].hangs = true;
    net.nodes[0].cut_off = true;
    net.nodes[2].cut_off = false;
    let history = StoredHistory { changes: told, last: SequenceNumber(1_000), ..stored(2_000) };
    let second = net.nodes[1].participant.restore_writer(net.now, config(qos.clone(), Keyed::No, ""), history);
    let entity = second.expect("a legal QoS").lock().guid().entity;
    net.run_for(SECOND * 3);
    let next = net.nodes[1].participant.create_lasting_writer(net.now, config(qos, Keyed::No, ""), Some(stored(2_000)));
    let next = next.expect("it is retained");
    let state = next.lock();
    assert_eq!((state.guid().entity, state.last()), (entity, SequenceNumber(1_000)));
    drop(state);
    net.run_for(SECOND * 200);
    assert!(net.write(1, &next, &[200]));
    net.run_for(SECOND * 2);
    assert!(next.lock().all_acknowledged());
    let lost = reader.lock().counters().lost;
    let samples = take(&net, &reader);
    assert!(samples.iter().all(|sample| sample.info.valid), "the instance has had a writer all the time");
    (first_bytes(&samples), lost)
}

#[test]
fn a_reader_that_lived_through_a_crash_gets_nothing_twice_and_misses_nothing_stored() {
    let all = |last: u8| (1..=last).chain([200]).collect::<Vec<u8>>();
    assert_eq!(after_a_crash(9, 0, 9), (all(9), 0), "it had all");
    assert_eq!(after_a_crash(9, 3, 9), (all(9), 0), "it had more than was stored");
    assert_eq!(after_a_crash(9, 0, 5).0, all(9), "it lacked what was stored");
    assert_eq!(after_a_crash(9, 2, 5).0, [1, 2, 3, 4, 5, 6, 7, 200]);
}

/// What the writer of a process that was killed had sent last came behind the match with the next one, which repeated it. Nor is the
/// former matched again when a reader looks at all writers anew, whichever it sees first.
#[test]
fn nothing_comes_of_a_writer_whose_history_goes_on_under_another_one() {
    for (former, next) in [(0, 1), (1, 0)] {
        let mut net = Net::new(3);
        let qos = WriterQos { durability: Durability::Persistent, ..transient(100) };
        let first = create_stored(&mut net, former, &qos);
        let reader = net.reader(2, wanting(), Keyed::No);
        net.run_for(SECOND);
        assert!(net.write(former, &first, &[1]));
        net.run_for(SECOND);
        let changes = first.lock().take_records().expect("there is news").added;
        let history = StoredHistory { changes, last: SequenceNumber(1_000), ..stored(2_000) };
        let second = net.nodes[next].participant.restore_writer(net.now, config(qos, Keyed::No, ""), history);
        let second = second.expect("a legal QoS").lock().guid();
        net.run_for(SECOND);
        assert!(net.write(former, &first, &[2]));
        net.run_for(SECOND);
        let entity = reader.lock().guid().entity;
        let writer = first.lock().guid();
        assert!(net.nodes[2].events.contains(&Event::SubscriptionUnmatched { reader: entity, writer }));
        let timing = ReaderTiming { latency_budget: SECOND, ..ReaderTiming::default() };
        let changed = ReaderQos { timing, ..wanting() };
        net.nodes[2].participant.set_reader_qos(net.now, entity, changed.into()).expect("it may change");
        let late = net.reader(2, wanting(), Keyed::No);
        net.run_for(SECOND);
        assert!(net.write(former, &first, &[3]));
        net.run_for(SECOND);
        for reader in [reader, late] {
            let samples = take(&net, &reader);
            assert!(samples.iter().all(|sample| sample.info.valid), "the instance has had a writer all the time");
            assert_eq!(first_bytes(&samples), [1]);
            assert_eq!(reader.lock().matched_writers().collect::<Vec<_>>(), [second]);
        }
    }
}

#[test]
fn a_history_that_was_put_back_is_read_from_its_start() {
    let mut net = Net::new(3);
    let qos = WriterQos { durability: Durability::Persistent, ..transient(100) };
    let first = create_stored(&mut net, 0, &qos);
    let reader = net.reader(2, wanting(), Keyed::No);
    net.run_for(SECOND);
    (1..=5).for_each(|n| assert!(net.write(0, &first, &[n])));
    let mut changes = first.lock().take_records().expect("there is news").added;
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), [1, 2, 3, 4, 5]);
    changes.truncate(2);
    net.nodes[0].hangs = true;
    net.nodes[0].cut_off = true;
    let history = StoredHistory { changes, last: SequenceNumber(2), ..stored(1_000) };
    let restored = net.nodes[1].participant.restore_writer(net.now, config(qos, Keyed::No, ""), history);
    restored.expect("a legal QoS");
    net.run_for(SECOND * 3);
    assert_eq!(first_bytes(&take(&net, &reader)), [1, 2], "the copy of a store knows nothing of what followed");
}

#[test]
fn the_next_writer_goes_on_with_what_readers_have_not_acknowledged() {
    for qos in [wanting(), reliable_reader(History::KeepAll)] {
        let mut net = Net::new(3);
        let first = create(&mut net, transient(1), "").expect("a legal QoS");
        let (slow, fast) = (net.reader(1, qos, Keyed::No), net.reader(2, wanting(), Keyed::No));
        net.run_for(SECOND);
        net.nodes[1].hangs = true;
        (0..3).for_each(|n| assert!(net.write(0, &first, &[n])));
        net.run_for(SECOND / 2);
        delete(&mut net, first);
        create(&mut net, transient(1), "").expect("the history is free");
        net.nodes[1].hangs = false;
        net.run_for(SECOND * 2);
        assert_eq!((first_bytes(&take(&net, &fast)), first_bytes(&take(&net, &slow))), (vec![0, 1, 2], vec![0, 1, 2]));
    }
}
