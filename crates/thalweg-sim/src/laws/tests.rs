//! Records that went well and were altered: each law notices what it is for.

use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::qos::{History, Liveliness, LivelinessKind, Reliability};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{Guid, Keyed};

use super::{Law, delivery, discovery, policies, promises};
use crate::plan::{Pace, Plan, ReaderPlan, TopicPlan, WriterPlan};
use crate::record::Record;
use crate::simulation::Simulation;
use crate::trace::Detail;

const MILLI: Duration = Duration::from_millis(1);

/// A reliable writer of one instance and a reader of another host that takes at once.
fn plan() -> Plan {
    let mut topic = TopicPlan { keyed: Keyed::Yes, ..TopicPlan::new("topic") };
    let mut writer = WriterPlan { samples: 20, ..WriterPlan::new(0) };
    let mut reader = ReaderPlan::new(1);
    (writer.qos.reliability, reader.qos.reliability) = (Reliability::RELIABLE, Reliability::RELIABLE);
    (writer.qos.history, reader.qos.history) = (History::KeepAll, History::KeepAll);
    (topic.writers, topic.readers) = (vec![writer], vec![reader]);
    Plan { topics: vec![topic], ..Plan::new(1, 2) }
}

/// What came of a plan, which keeps all laws.
fn record(plan: Plan) -> Record {
    let record = Simulation::new(plan, Detail::Tail).run();
    for (name, law) in super::ALL {
        law(&record).unwrap_or_else(|words| panic!("{name}: {words}"));
    }
    record
}

fn guids(record: &Record) -> (Guid, Guid) {
    (record.writers[0].guid.expect("created"), record.readers[0].guid.expect("created"))
}

/// Whether a law holds of what came of [`plan`] and was altered.
fn holds(law: Law, alter: impl Fn(&mut Record)) -> bool {
    let mut record = record(plan());
    alter(&mut record);
    law(&record).is_ok()
}

#[test]
fn a_match_that_ends_or_begins_twice_is_noticed() {
    let law: Law = discovery::what_has_met_stays_together;
    let later = |record: &Record| record.ended_at;
    assert!(holds(law, |_| ()));
    assert!(!holds(law, |record| record.readers[0].matches[0].until = Some(later(record))));
    assert!(!holds(law, |record| {
        let again = record.writers[0].matches[0];
        record.writers[0].matches.push(again);
    }));
    assert!(!holds(law, |record| {
        let lost = (record.processes[1].prefix, later(record));
        record.processes[0].lost.push(lost);
    }));
}

#[test]
fn a_reader_that_takes_at_once_and_is_given_up_is_noticed() {
    let give_up = |record: &mut Record, pace| {
        record.plan.topics[0].writers[0].qos.reader_patience = MILLI * 1_000;
        record.plan.topics[0].readers[0].pace = pace;
        let (_, reader) = guids(record);
        record.writers[0].given_up.push(reader);
    };
    assert!(!holds(delivery::given_up_only_when_asked_to, |record| give_up(record, Pace::Eager(MILLI))));
    assert!(holds(delivery::given_up_only_when_asked_to, |record| give_up(record, Pace::Never)));
}

#[test]
fn what_is_told_of_liveliness_alternates() {
    let told = |words: &[(u64, bool)]| {
        holds(promises::changes_of_liveliness_alternate, |record| {
            let (writer, _) = guids(record);
            let at = |milliseconds: u64| Instant::ZERO + MILLI * milliseconds as u32;
            record.readers[0].told.alive =
                words.iter().map(|(when, is_alive)| (at(*when), writer, *is_alive)).collect();
        })
    };
    assert!(told(&[]) && told(&[(5_000, false)]) && told(&[(900, false), (990, true), (9_000, false)]));
    assert!(!told(&[(5_000, false), (6_000, false)]), "not alive twice");
    assert!(!told(&[(5_000, true)]), "alive without having been anything else");
    assert!(!told(&[(900, false)]), "values come later of a writer that is said to be silent");
}

#[test]
fn writers_are_told_of_their_silence_and_of_nothing_else() {
    let silent = |kind, lost: &[u64]| {
        holds(promises::silent_writers_are_told, |record| {
            record.plan.topics[0].writers[0].qos.liveliness = Liveliness { kind, lease: MILLI * 100 };
            let writer = &mut record.writers[0];
            let sign = writer.written.last().expect("written").at;
            writer.told.created = vec![writer.written[0].at];
            writer.told.lost = lost.iter().map(|later| sign + MILLI * *later as u32).collect();
        })
    };
    assert!(silent(LivelinessKind::Automatic, &[]) && !silent(LivelinessKind::Automatic, &[100]));
    for kind in [LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic] {
        assert!(silent(kind, &[100]), "{kind:?}");
        assert!(!silent(kind, &[]) && !silent(kind, &[120]) && !silent(kind, &[100, 200]), "{kind:?}");
    }
}

#[test]
fn the_last_value_behind_the_end_of_an_instance_is_missed() {
    let alter = |record: &mut Record, missing: usize| {
        record.plan.topics[0].writers[0].qos.history = History::KeepLast(1);
        let writer = &mut record.writers[0];
        writer.written[10].kind = ChangeKind::Dispose;
        let sequence = writer.written[missing].sequence;
        record.readers[0].taken.retain(|taken| taken.sequence != sequence);
    };
    assert!(holds(delivery::last_values_arrive, |record| alter(record, 9)), "it was overwritten");
    assert!(!holds(delivery::last_values_arrive, |record| alter(record, 19)));
}

#[test]
fn a_value_that_comes_long_after_the_separation_is_noticed() {
    let shifted = |by: Duration| {
        holds(policies::values_come_when_the_separation_is_over, |record| {
            record.plan.topics[0].readers[0].qos.timing.minimum_separation = MILLI;
            record.readers[0].taken[19].at += by;
        })
    };
    assert!(shifted(MILLI) && !shifted(MILLI * 1_000));
}

#[test]
fn what_is_purged_too_early_or_too_late_is_noticed() {
    let law: Law = policies::what_is_purged_goes_at_its_time;
    let purges = |record: &mut Record, delay: Duration| {
        let reader = &mut record.plan.topics[0].readers[0];
        reader.pace = Pace::Polling { period: MILLI, samples_max: usize::MAX };
        reader.qos.lifecycle.autopurge_disposed_samples_delay = delay;
    };
    let lose = |record: &mut Record| {
        purges(record, MILLI * 100);
        record.readers[0].taken.remove(7);
    };
    assert!(holds(law, |record| purges(record, MILLI * 100)) && !holds(law, lose));
    let dispose = |record: &mut Record, later: Duration| {
        purges(record, MILLI * 100);
        record.writers[0].written[19].kind = ChangeKind::Dispose;
        record.readers[0].taken[18].at += later;
    };
    assert!(holds(law, |record| dispose(record, MILLI)) && !holds(law, |record| dispose(record, MILLI * 500)));
}
