//! Many participants, and readers that do not keep up with the others.

use std::time::Duration;

use thalweg_rtps::qos::{Reliability, WriterQos};
use thalweg_rtps::time::Instant;
use thalweg_sim::plan::{Ending, Pace, Plan, ReaderPlan, TopicPlan, WriterPlan};
use thalweg_sim::run;
use thalweg_sim::trace::Detail;

use super::scenario::{at_ms, check, keep_all, plan, reader, reads_all, writer};

/// 100 participants on 10 hosts, each with 5 writers and 5 readers; each topic joins two participants.
fn crowd(participants: usize) -> Plan {
    let mut plan = Plan::new(7, participants);
    for (number, process) in plan.processes.iter_mut().enumerate() {
        process.host = number % 10;
        process.starts = Instant::from_nanos(number as u64 * 1_000_000);
    }
    plan.hosts.truncate(10);
    let topic = |participant: usize, number: usize| TopicPlan {
        writers: vec![WriterPlan { samples: 1, ..WriterPlan::new(participant) }],
        readers: vec![ReaderPlan::new((participant + number + 1) % participants)],
        ..TopicPlan::new(&format!("topic {participant} {number}"))
    };
    plan.topics = (0..participants).flat_map(|one| (0..5).map(move |number| topic(one, number))).collect();
    plan
}

#[test]
fn a_hundred_participants_with_ten_endpoints_each_know_each_other_within_five_seconds() {
    let participants = 100;
    let outcome = run(crowd(participants), Detail::Tail);
    outcome.check_all();
    let record = outcome.record();
    let bound = Instant::ZERO + Duration::from_secs(5);
    for (number, process) in record.processes.iter().enumerate() {
        assert_eq!(process.discovered.len(), participants - 1, "p{number}");
        assert!(process.discovered.values().all(|at| *at <= bound), "p{number} discovers late");
        let (publications, subscriptions) = process.endpoints_known;
        assert_eq!((publications, subscriptions), (participants * 5, participants * 5), "p{number}");
    }
    let matches = record.writers.iter().flat_map(|writer| &writer.matches);
    assert_eq!(matches.clone().count(), participants * 5);
    assert!(matches.clone().all(|one| one.from <= bound), "somebody matches late");
    assert!(record.settled_at.is_some_and(|at| at <= bound), "settled at {:?}", record.settled_at);
}

/// How many datagrams 60 participants exchange until they know each other, when receiving one takes `datagram_cost`.
fn datagrams_of_meeting(datagram_cost: Duration) -> u64 {
    let mut plan = crowd(60);
    plan.processes.iter_mut().for_each(|process| process.datagram_cost = datagram_cost);
    let outcome = run(plan, Detail::Tail);
    outcome.check_all();
    let record = outcome.record();
    assert!(record.processes.iter().all(|process| process.endpoints_known == (300, 300)), "all know all");
    record.processes.iter().map(|process| process.received).sum()
}

#[test]
fn who_is_too_busy_to_answer_is_not_asked_again_and_again() {
    let at_ease = datagrams_of_meeting(Duration::from_micros(5));
    let busy = datagrams_of_meeting(Duration::from_millis(1));
    assert!(busy <= at_ease * 2, "{busy} datagrams instead of {at_ease}");
}

/// Reliable KEEP_ALL with at most so many samples, for a writer that gives a reader up after a second without progress.
fn impatient(samples_max: Option<u32>) -> WriterQos {
    WriterQos { reader_patience: Duration::from_secs(1), ..keep_all(samples_max) }
}

/// A writer with room for 20 samples and three readers on other hosts, one of which does not do its part.
fn three_readers(spoil: impl FnOnce(&mut Plan)) -> Plan {
    let readers = (1..=3).map(|process| reader(process, reads_all(Some(50)))).collect();
    let mut plan = plan(4, vec![WriterPlan { samples: 300, ..writer(0, impatient(Some(20))) }], readers);
    spoil(&mut plan);
    plan
}

/// The healthy readers get everything, and the writer waits for a sick one no longer than patience.
#[track_caller]
fn check_not_stalled(plan: Plan) {
    let outcome = check(plan);
    let record = outcome.record();
    for reader in &record.readers[1..] {
        assert_eq!(reader.values(), 300, "a healthy reader");
    }
    let writer = &record.writers[0];
    let wait = writer.longest_wait;
    assert!(wait > Duration::ZERO, "the sick reader makes the writer wait at first");
    assert!(wait < Duration::from_secs(3), "waited {wait:?}");
    let last = writer.written.last().unwrap().at;
    assert!(last < at_ms(8_000), "300 samples in 10 ms each took until {last:?}");
}

#[test]
fn a_vanished_reader_does_not_stall_the_others() {
    check_not_stalled(three_readers(|plan| plan.processes[1].ends = Some((at_ms(1_500), Ending::Vanishes))));
}

#[test]
fn a_reader_that_hangs_does_not_stall_the_others() {
    check_not_stalled(three_readers(|plan| plan.topics[0].readers[0].pace = Pace::Never));
}

/// When a writer had written the last of its 12,000 samples in ten seconds to seven readers that do their part and an eighth.
fn last_written_to_seven(eighth: Pace) -> Instant {
    let mut readers: Vec<ReaderPlan> = (1..=8).map(|process| reader(process, reads_all(Some(2_000)))).collect();
    readers[7].pace = eighth;
    let period = Duration::from_micros(8_333);
    let busy =
        WriterPlan { samples: 12_000, burst: 10, period, payload_bytes: 400, ..writer(0, impatient(Some(4_000))) };
    let outcome = check(plan(9, vec![busy], readers));
    let record = outcome.record();
    assert!(record.readers[..7].iter().all(|reader| reader.values() == 12_000), "the seven get everything");
    let Reliability::Reliable { max_blocking_time } = keep_all(None).reliability else { return Instant::NEVER };
    let wait = record.writers[0].longest_wait;
    assert!(wait <= max_blocking_time + Duration::from_millis(1), "a write waited {wait:?}");
    record.writers[0].written.last().unwrap().at
}

#[test]
fn a_hanging_reader_of_eight_costs_the_others_a_tenth_at_most() {
    let healthy = last_written_to_seven(Pace::Eager(Duration::ZERO)).since(at_ms(0));
    let beside = last_written_to_seven(Pace::Never).since(at_ms(0));
    assert!(beside <= healthy.mul_f64(1.1), "{beside:?} instead of {healthy:?}");
}

#[test]
fn a_reader_that_leaves_does_not_make_anybody_wait() {
    let outcome = check(three_readers(|plan| plan.processes[1].ends = Some((at_ms(1_500), Ending::Leaves))));
    assert_eq!(outcome.record().writers[0].longest_wait, Duration::ZERO);
}

#[test]
fn a_slow_reader_slows_its_writer_down_and_loses_nothing() {
    let mut plan = three_readers(|_| {});
    plan.topics[0].readers[0].pace = Pace::Polling { period: Duration::from_millis(100), samples_max: 5 };
    let outcome = check(plan);
    let record = outcome.record();
    assert!(record.writers[0].longest_wait > Duration::ZERO);
    assert!(record.readers.iter().all(|reader| reader.values() == 300));
}
