//! Policies by which a reader does not hand over everything, in bad weather.

use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::qos::{AccessScope, DestinationOrder, History, Ownership, Presentation, WriterOwnership};
use thalweg_rtps::types::Keyed;
use thalweg_sim::laws::{self, delivery, policies, presentation, promises, resources};
use thalweg_sim::network::Weather;
use thalweg_sim::plan::{Ending, InstanceSharing, Plan, SetTimes, Stamps, WriterPlan};
use thalweg_sim::record::TakenRecord;
use thalweg_sim::trace::Detail;
use thalweg_sim::{WorldOutcome, run};

use super::scenario::{at_ms, keep_all, plan, reader, reads_all, writer};

const MILLI: Duration = Duration::from_millis(1);

/// Three writers of the same four instances and two readers, over a network that loses, repeats and reorders.
fn world(seed: u64, change: impl Fn(&mut Plan)) -> Plan {
    let writes = |process, place: u64| WriterPlan {
        samples: 300,
        period: MILLI * 5,
        first_write: at_ms(500 + place * 40),
        instances: 4,
        stamps: Stamps::HostClock,
        ..writer(process, keep_all(None))
    };
    let mut plan = plan(
        4,
        (0..3).map(|place| writes(place as usize, place)).collect(),
        vec![reader(3, reads_all(None)), reader(0, reads_all(None))],
    );
    (plan.seed, plan.topics[0].keyed, plan.topics[0].instances) = (seed, Keyed::Yes, InstanceSharing::Shared);
    plan.weather = Weather { loss: 0.1, duplication: 0.05, reordering: 0.05, jitter: MILLI, ..Weather::CLEAR };
    change(&mut plan);
    plan
}

#[track_caller]
fn outcome(plan: Plan) -> WorldOutcome {
    let outcome = run(plan, Detail::Tail);
    let record = outcome.record();
    assert!(record.breaches.is_empty(), "{:#?}", record.breaches);
    assert!(record.readers.iter().all(|reader| reader.taken.iter().any(|taken| taken.valid)), "nothing was taken");
    outcome
}

#[test]
fn the_strongest_writer_owns_every_instance_whatever_the_network_does() {
    for seed in 0..10 {
        let outcome = outcome(world(seed, |plan| {
            for (place, writer) in plan.topics[0].writers.iter_mut().enumerate() {
                writer.qos.ownership = WriterOwnership::Exclusive { strength: place as i32 };
                writer.endings = 0.05;
            }
            plan.topics[0].readers.iter_mut().for_each(|reader| reader.qos.ownership = Ownership::Exclusive);
            plan.processes[2].ends = Some((at_ms(1_200), Ending::Leaves));
        }));
        let record = outcome.record();
        policies::the_strongest_writer_owns(record).unwrap_or_else(|words| panic!("seed {seed}: {words}"));
        let owner = record.writers[2].guid;
        let of_owner = record.readers[0].taken.iter().filter(|taken| Some(taken.writer) == owner).count();
        let after = record.readers[0].taken.iter().filter(|taken| taken.at > at_ms(1_400) && taken.valid).count();
        assert!(of_owner > 20 && after > 20, "seed {seed}: {of_owner} of the owner, {after} after it left");
    }
}

#[test]
fn readers_that_order_by_source_end_with_the_same_values() {
    for seed in 0..10 {
        let outcome = outcome(world(seed, |plan| {
            let order = DestinationOrder::BySource;
            plan.topics[0].writers.iter_mut().for_each(|writer| writer.qos.destination_order = order);
            plan.topics[0].readers.iter_mut().for_each(|reader| reader.qos.destination_order = order);
        }));
        let record = outcome.record();
        policies::source_time_never_steps_back(record).unwrap_or_else(|words| panic!("seed {seed}: {words}"));
        let last = |reader: usize| {
            let values = record.readers[reader].taken.iter().filter(|taken| taken.valid);
            values
                .map(|taken| (taken.instance, (taken.writer, taken.sequence)))
                .collect::<std::collections::BTreeMap<_, _>>()
        };
        assert_eq!(last(0), last(1), "seed {seed}");
    }
}

#[test]
fn values_come_apart_and_the_last_ones_come() {
    for seed in 0..10 {
        let outcome = outcome(world(seed, |plan| {
            plan.topics[0].writers.truncate(1);
            plan.topics[0].readers.iter_mut().for_each(|reader| reader.qos.timing.minimum_separation = MILLI * 100);
        }));
        let record = outcome.record();
        policies::values_come_apart(record).unwrap_or_else(|words| panic!("seed {seed}: {words}"));
        for reader in &record.readers {
            for written in
                record.writers[0].written.iter().rev().take(4).filter(|written| written.kind == ChangeKind::Write)
            {
                let newest = record.writers[0].written.iter().rfind(|other| other.instance == written.instance);
                let is_newest = newest.is_some_and(|newest| newest.sequence == written.sequence);
                let came = reader.taken.iter().any(|taken| taken.sequence == written.sequence);
                assert!(came || !is_newest, "seed {seed}: the last value {} is missing", written.sequence);
            }
        }
    }
}

#[test]
fn nothing_is_taken_when_its_time_is_over() {
    for (seed, history) in (0..10).flat_map(|seed| [(seed, History::KeepAll), (seed, History::KeepLast(3))]) {
        let outcome = outcome(world(seed, |plan| {
            plan.weather.loss = 0.25;
            for writer in &mut plan.topics[0].writers {
                (writer.qos.timing.lifespan, writer.qos.history) = (MILLI * 30, history);
            }
        }));
        let record = outcome.record();
        let law = promises::nothing_is_taken_when_its_time_is_over(record);
        law.unwrap_or_else(|words| panic!("seed {seed}, {history}: {words}"));
        let lost = record.readers.iter().map(|reader| reader.taken.len()).max();
        assert!(lost > Some(100), "seed {seed}");
    }
}

/// Three topics of one process. A second process reads two of them, a third one all.
fn group_world(seed: u64, presentation: Presentation) -> Plan {
    let mut plan = world(seed, |plan| {
        plan.topics[0].writers.truncate(1);
        plan.topics[0].writers[0].qos.presentation = presentation;
        plan.topics[0].readers.iter_mut().zip([1, 2]).for_each(|(reader, process)| {
            reader.process = process;
            reader.qos.presentation = presentation;
        });
        plan.weather.loss = 0.2;
    });
    for number in 1..3 {
        let mut topic = plan.topics[0].clone();
        topic.name = format!("topic{number}");
        topic.writers[0].first_write = at_ms(500 + 7 * number);
        // The last topic is silent for long, so that its readers have to be told that nothing is missing.
        topic.writers[0].period = if number == 2 { MILLI * 150 } else { MILLI * 9 };
        topic.writers[0].samples = if number == 2 { 10 } else { 160 };
        plan.topics.push(topic);
    }
    plan.topics[2].readers.remove(0);
    plan
}

#[test]
fn sets_of_a_publisher_appear_in_all_readers_of_a_subscriber_at_once() {
    let mut taken_in_sets = [0; 2];
    for (seed, ordered) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut plan = group_world(seed, Presentation { access_scope: AccessScope::Group, coherent: true, ordered });
        let (from, until) = (at_ms(600), at_ms(1_900));
        plan.processes[0].sets = Some(SetTimes { from, until, lasts: MILLI * 30, pause: MILLI * 10 });
        let outcome = run(plan, Detail::Tail);
        outcome.check(laws::nothing_wrong).check(laws::settles).check(presentation::a_publishers_sets_appear_at_once);
        let record = outcome.record();
        let in_sets = |reader: usize| {
            let of_set = |taken: &&TakenRecord| {
                let written = record.writers.iter().filter(|writer| writer.guid == Some(taken.writer));
                written
                    .flat_map(|writer| &writer.written)
                    .any(|one| one.sequence == taken.sequence && one.set.is_some())
            };
            record.readers[reader].taken.iter().filter(of_set).count()
        };
        assert!(record.processes[0].sets.len() > 25, "seed {seed}");
        [0, 1].into_iter().for_each(|reader| taken_in_sets[reader] += in_sets(reader));
    }
    // The third process has to find more endpoints before sets are owed to it.
    assert!(taken_in_sets.iter().all(|taken| *taken > 40 * 50), "{taken_in_sets:?}");
}

#[test]
fn readers_of_a_subscriber_take_in_the_order_of_the_publisher() {
    let presentation = Presentation { access_scope: AccessScope::Group, coherent: false, ordered: true };
    for seed in 0..20 {
        let outcome = outcome(group_world(seed, presentation));
        // What waits for samples of other readers is acknowledged, though nobody can take it yet: that law does not hold here.
        outcome.check(laws::nothing_wrong).check(laws::settles);
        outcome.check(delivery::in_order_and_once).check(delivery::exactly_once).check(resources::quiet_when_idle);
        let law = presentation::a_publisher_is_taken_in_its_order(outcome.record());
        law.unwrap_or_else(|words| panic!("seed {seed}: {words}"));
    }
}
