//! Laws of policies that change while endpoints live.

use std::time::Duration;

use super::tests::*;
use super::*;
use crate::qos::{
    Durability, History, Ownership, PolicyId, QosError, ReaderQos, ReaderTiming, Reliability, WriterOwnership,
    WriterQos, WriterTiming,
};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::types::Keyed;
use crate::writer::Writer;

const PERIOD: Duration = Duration::from_millis(100);

fn offers() -> WriterQos {
    reliable_writer(History::KeepAll)
}

fn requests() -> ReaderQos {
    reliable_reader(History::KeepAll)
}

/// A net of two with a matched pair.
fn pair(offered: WriterQos, requested: ReaderQos) -> (Net, Shared<Writer>, Shared<Reader>) {
    let mut net = Net::new(2);
    let writer = net.writer(0, offered, Keyed::Yes);
    let reader = net.reader(1, requested, Keyed::Yes);
    net.run_for(SECOND);
    (net, writer, reader)
}

fn set_writer(net: &mut Net, writer: &Shared<Writer>, qos: WriterQos) -> Result<(), QosError> {
    let entity = writer.lock().guid().entity;
    net.nodes[0].participant.set_writer_qos(net.now, entity, qos.into())
}

fn set_reader(net: &mut Net, reader: &Shared<Reader>, qos: ReaderQos) -> Result<(), QosError> {
    let entity = reader.lock().guid().entity;
    net.nodes[1].participant.set_reader_qos(net.now, entity, qos.into())
}

fn matches(writer: &Shared<Writer>, reader: &Shared<Reader>) -> [usize; 2] {
    let readers = writer.lock().matched_readers().len();
    [readers, reader.lock().matched_writers().len()]
}

fn is_missed(net: &Net, node: usize) -> bool {
    let missed =
        |event: &Event| matches!(event, Event::OfferedDeadlineMissed { .. } | Event::RequestedDeadlineMissed { .. });
    net.nodes[node].events.iter().any(missed)
}

#[test]
fn a_partition_that_changes_parts_endpoints_and_brings_them_together_again() {
    let (mut net, writer, reader) = pair(offers(), requests());
    assert_eq!(matches(&writer, &reader), [1, 1]);
    set_writer(&mut net, &writer, WriterQos { partition: vec!["other".into()], ..offers() }).expect("it may change");
    net.run_for(SECOND);
    assert_eq!(matches(&writer, &reader), [0, 0]);
    set_reader(&mut net, &reader, ReaderQos { partition: vec!["oth*".into()], ..requests() }).expect("it may change");
    net.run_for(SECOND);
    assert_eq!(matches(&writer, &reader), [1, 1]);
    net.write(0, &writer, &[7]);
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), [7]);
}

/// What a reader takes of one sample before, two during and one after its writer's time in another partition, and what it has lost.
fn taken_around_another_partition(offered: &WriterQos, requested: ReaderQos) -> (Vec<u8>, u64) {
    let (mut net, writer, reader) = pair(offered.clone(), requested);
    net.write(0, &writer, &[1]);
    net.run_for(SECOND);
    set_writer(&mut net, &writer, WriterQos { partition: vec!["other".into()], ..offered.clone() })
        .expect("it may change");
    net.run_for(SECOND);
    net.write(0, &writer, &[2]);
    net.write(0, &writer, &[3]);
    net.run_for(SECOND);
    set_writer(&mut net, &writer, offered.clone()).expect("it may change");
    net.run_for(SECOND);
    net.write(0, &writer, &[4]);
    net.run_for(SECOND);
    let lost = reader.lock().losses().total();
    let mut taken = take(&net, &reader);
    taken.retain(|sample| sample.info.valid);
    (first_bytes(&taken), lost)
}

#[test]
fn what_is_written_in_another_partition_is_not_for_a_volatile_reader_that_comes_back() {
    let durability = Durability::TransientLocal;
    let (durable, asks) = (WriterQos { durability, ..offers() }, ReaderQos { durability, ..requests() });
    let best_effort = ReaderQos { reliability: Reliability::BestEffort, ..requests() };
    for offered in [offers(), durable.clone()] {
        assert_eq!(taken_around_another_partition(&offered, requests()), (vec![1, 4], 0));
        assert_eq!(taken_around_another_partition(&offered, best_effort.clone()), (vec![1, 4], 0));
    }
    assert_eq!(taken_around_another_partition(&durable, asks), (vec![1, 2, 3, 4], 0), "it is late for them");
}

#[test]
fn a_policy_that_is_fixed_is_refused_by_name_and_nothing_changes() {
    let (mut net, writer, reader) = pair(offers(), requests());
    let refused = |result: Result<(), QosError>| result.map_err(|error| (error.kind, error.policy));
    let fixed = crate::qos::QosErrorKind::Immutable;
    let qos = WriterQos { durability: Durability::TransientLocal, partition: vec!["other".into()], ..offers() };
    assert_eq!(refused(set_writer(&mut net, &writer, qos)), Err((fixed, PolicyId::DURABILITY)));
    let qos = WriterQos { ownership: WriterOwnership::Exclusive { strength: 1 }, ..offers() };
    assert_eq!(refused(set_writer(&mut net, &writer, qos)), Err((fixed, PolicyId::OWNERSHIP)));
    let qos = ReaderQos { history: History::KeepLast(3), ..requests() };
    assert_eq!(refused(set_reader(&mut net, &reader, qos)), Err((fixed, PolicyId::HISTORY)));
    let timing = WriterTiming { lifespan: Duration::ZERO, ..WriterTiming::default() };
    let inconsistent = (crate::qos::QosErrorKind::Inconsistent, PolicyId::LIFESPAN);
    assert_eq!(refused(set_writer(&mut net, &writer, WriterQos { timing, ..offers() })), Err(inconsistent));
    net.run_for(SECOND);
    assert_eq!(matches(&writer, &reader), [1, 1]);
}

#[test]
fn a_deadline_may_come_change_and_go() {
    let (mut net, writer, reader) = pair(offers(), requests());
    let offered = |deadline| WriterQos { timing: WriterTiming { deadline, ..WriterTiming::default() }, ..offers() };
    let requested = |deadline| ReaderQos { timing: ReaderTiming { deadline, ..ReaderTiming::default() }, ..requests() };
    set_writer(&mut net, &writer, offered(PERIOD)).expect("it may change");
    set_reader(&mut net, &reader, requested(PERIOD)).expect("it may change");
    net.write(0, &writer, &[1]);
    net.run_for(PERIOD / 2);
    assert!(!is_missed(&net, 0) && !is_missed(&net, 1));
    net.run_for(PERIOD);
    assert!(is_missed(&net, 0) && is_missed(&net, 1), "both ends miss it");
    let totals = || {
        let offered = writer.lock().deadline_missed().total;
        [offered, reader.lock().deadline_missed().total]
    };
    set_reader(&mut net, &reader, requested(PERIOD * 20)).expect("it may change");
    set_writer(&mut net, &writer, offered(PERIOD * 20)).expect("it may change");
    let before = totals();
    net.run_for(PERIOD * 10);
    assert_eq!(totals(), before, "the longer period counts");
    net.run_for(PERIOD * 20);
    assert!(totals()[0] > before[0] && totals()[1] > before[1], "and is watched");
    set_reader(&mut net, &reader, requests()).expect("it may change");
    set_writer(&mut net, &writer, offers()).expect("it may change");
    let before = totals();
    net.run_for(PERIOD * 10);
    assert_eq!(totals(), before);
    // A reader that asks for more than is offered now is told why it is left alone.
    set_reader(&mut net, &reader, requested(PERIOD)).expect("it may change");
    net.run_for(SECOND);
    assert_eq!(matches(&writer, &reader), [0, 0]);
    let told = |event: &Event| match event {
        Event::RequestedIncompatibleQos { mismatches, .. } => mismatches.first().map(|mismatch| mismatch.policy),
        _ => None,
    };
    assert_eq!(net.nodes[1].events.iter().find_map(told), Some(PolicyId::DEADLINE));
}

#[test]
fn a_lifespan_that_is_shortened_counts_for_later_samples_only() {
    let late = |qos: WriterQos| WriterQos { durability: Durability::TransientLocal, ..qos };
    let lasting =
        |lifespan| late(WriterQos { timing: WriterTiming { lifespan, ..WriterTiming::default() }, ..offers() });
    let (mut net, writer, _) = pair(lasting(PERIOD * 10), requests());
    net.write(0, &writer, &[1]);
    set_writer(&mut net, &writer, lasting(PERIOD)).expect("it may change");
    net.write(0, &writer, &[2]);
    net.run_for(PERIOD * 2);
    assert_eq!(writer.lock().held(), 1, "the later one is gone");
    net.run_for(PERIOD * 10);
    assert_eq!(writer.lock().held(), 0);
    set_writer(&mut net, &writer, late(offers())).expect("it may change");
    net.write(0, &writer, &[3]);
    net.run_for(PERIOD * 100);
    assert_eq!(writer.lock().held(), 1);
}

#[test]
fn a_sample_that_was_kept_back_follows_when_the_separation_ends() {
    let apart = |minimum_separation| ReaderQos {
        timing: ReaderTiming { minimum_separation, ..ReaderTiming::default() },
        ..requests()
    };
    let (mut net, writer, reader) = pair(offers(), apart(SECOND * 60));
    for x in 0..3 {
        net.write(0, &writer, &[1, x]);
    }
    net.run_for(SECOND);
    assert_eq!(take(&net, &reader).len(), 1);
    set_reader(&mut net, &reader, requests()).expect("it may change");
    net.run_for(SECOND);
    let kept: Vec<u8> = take(&net, &reader).iter().map(|sample| sample.payload[5]).collect();
    assert_eq!(kept, [2], "the newest of those kept back");
    for x in 3..6 {
        net.write(0, &writer, &[1, x]);
    }
    net.run_for(SECOND);
    assert_eq!(take(&net, &reader).len(), 3, "nothing is kept apart any more");
}

#[test]
fn a_writer_that_becomes_stronger_takes_an_instance_over() {
    let of = |strength| WriterQos { ownership: WriterOwnership::Exclusive { strength }, ..offers() };
    let (mut net, strong, reader) = pair(of(5), ReaderQos { ownership: Ownership::Exclusive, ..requests() });
    let weak = net.writer(0, of(1), Keyed::Yes);
    net.run_for(SECOND);
    net.write(0, &strong, &[1, 5]);
    net.write(0, &weak, &[1, 1]);
    net.run_for(SECOND);
    set_writer(&mut net, &weak, of(9)).expect("it may change");
    net.run_for(SECOND);
    net.write(0, &weak, &[1, 9]);
    net.write(0, &strong, &[1, 6]);
    net.run_for(SECOND);
    let values: Vec<u8> = take(&net, &reader).iter().map(|sample| sample.payload[5]).collect();
    assert_eq!(values, [5, 9]);
}
