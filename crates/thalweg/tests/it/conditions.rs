//! Wait sets and their conditions.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg::conditions::{Condition, ConditionId, GuardCondition, StatusKinds, WaitSet};
use thalweg::{ErrorKind, InstanceStates, Payload, ReadFilter, SampleState, ViewState};

use crate::asynchronous::block_on;
use crate::fixture::*;

/// Whether `poll` finds the descriptor readable within `timeout`.
fn is_readable(set: &WaitSet, timeout: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut descriptors = [PollFd::new(set, PollFlags::IN)];
    let timeout = rustix::event::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut descriptors, Some(&timeout)).map_err(io::Error::from).unwrap() > 0
}

/// Waits until exactly these conditions are true.
#[track_caller]
fn wait_for(set: &WaitSet, ids: &[ConditionId]) {
    eventually("these conditions are true together", || {
        let triggered = set.wait(PATIENCE).unwrap();
        assert!(triggered.iter().all(|id| ids.contains(id)), "{triggered:?} is more than {ids:?}");
        triggered == ids
    });
}

#[test]
fn a_guard_condition_ends_the_wait_of_another_thread() {
    let (set, guard) = (WaitSet::new().unwrap(), GuardCondition::new());
    let id = set.attach(&guard);
    assert_eq!(set.wait(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::Timeout);
    thread::scope(|scope| {
        let waits = scope.spawn(|| set.wait(PATIENCE));
        guard.set_trigger_value(true);
        assert_eq!(waits.join().unwrap().unwrap(), [id]);
    });
    assert_eq!(set.wait(PATIENCE).unwrap(), [id], "it stays true");
    guard.set_trigger_value(false);
    assert!(set.wait(Duration::from_millis(1)).unwrap_err().is_timeout());
    guard.set_trigger_value(true);
    assert!(set.detach(id) && !set.detach(id));
    assert!(set.wait(Duration::from_millis(1)).unwrap_err().is_timeout());
}

#[test]
fn a_second_thread_may_not_wait_on_the_same_set() {
    let (set, guard) = (WaitSet::new().unwrap(), GuardCondition::new());
    set.attach(&guard);
    thread::scope(|scope| {
        // One of the two is refused; this one tries again.
        scope.spawn(|| while set.wait(PATIENCE).is_err() {});
        let refused = || set.wait(Duration::ZERO).is_err_and(|error| error.kind() == ErrorKind::PreconditionNotMet);
        eventually("the other thread waits", refused);
        guard.set_trigger_value(true);
    });
}

#[test]
fn a_condition_attached_while_a_thread_waits_counts() {
    let (set, guard) = (WaitSet::new().unwrap(), GuardCondition::new());
    guard.set_trigger_value(true);
    thread::scope(|scope| {
        let waits = scope.spawn(|| set.wait(PATIENCE).unwrap());
        let id = set.attach(&guard);
        assert_eq!(waits.join().unwrap(), [id]);
    });
}

#[test]
fn each_kind_of_condition_wakes_by_its_own_cause_alone() {
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("causes", reliable_writer(), reliable_reader());
    let set = WaitSet::new().unwrap();
    eventually("the match is told", || writer.publication_matched().total == 1);
    let data = reader.read_condition(ReadFilter { sample_state: Some(SampleState::NotRead), ..ReadFilter::ALL });
    let far = reader.query_condition(ReadFilter::ALL, |shape: &Shape| shape.x > 100);
    let gone = reader.read_condition(ReadFilter { instance_states: InstanceStates::NOT_ALIVE, ..ReadFilter::ALL });
    let matches = writer.status_condition(StatusKinds::PUBLICATION_MATCHED);
    let ids = (set.attach(&data), set.attach(&far), set.attach(&gone), set.attach(&matches));
    assert!(set.wait(Duration::from_millis(1)).unwrap_err().is_timeout());

    writer.write(&Shape::new("RED", 1)).unwrap();
    assert_eq!(set.wait(PATIENCE).unwrap(), [ids.0]);
    assert_eq!(reader.read_where(&data, 10).unwrap().len(), 1);
    assert!(!data.trigger_value(), "it was read");

    writer.write(&Shape::new("RED", 101)).unwrap();
    block_on(far.until_triggered());
    wait_for(&set, &[ids.0, ids.1]);
    let taken = reader.take_where(&far, 10).unwrap();
    assert_eq!(taken.iter().map(|sample| sample.data().unwrap().x).collect::<Vec<_>>(), [101]);
    assert_eq!(reader.available(), 1, "the other stays");

    writer.dispose(&Shape::new("RED", 0)).unwrap();
    wait_for(&set, &[ids.0, ids.2]);
    assert!(reader.take_where(&gone, 10).unwrap().iter().any(|sample| !sample.is_valid()));

    drop(reader);
    assert_eq!(set.wait(PATIENCE).unwrap(), [ids.3]);
    assert_eq!(writer.status_changes(), StatusKinds::PUBLICATION_MATCHED);
    assert_eq!(writer.publication_matched().current, 0);
    assert!(set.wait(Duration::from_millis(1)).unwrap_err().is_timeout(), "the status was read");
}

#[test]
fn a_query_on_a_keyless_topic_reads_and_takes_what_it_selects() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("odd", reliable_writer(), reliable_reader());
    for value in 0..6 {
        writer.write(&Count { value }).unwrap();
    }
    eventually("all samples are here", || reader.available() == 6);
    let odd = reader.query_condition(ReadFilter::ALL, |count: &Count| count.value % 2 == 1);
    let values = |samples: Vec<thalweg::Sample<Count>>| {
        samples.iter().map(|sample| (sample.data().unwrap().value, sample.info().sample_rank)).collect::<Vec<_>>()
    };
    assert_eq!(values(reader.read_where(&odd, 2).unwrap()), [(1, 1), (3, 0)]);
    let unread = ReadFilter { sample_state: Some(SampleState::NotRead), ..ReadFilter::ALL };
    let unread = reader.read_condition(unread);
    assert_eq!(reader.take_where(&unread, 2).unwrap().len(), 2);
    assert_eq!(values(reader.take_where(&odd, 10).unwrap()), [(1, 2), (3, 1), (5, 0)]);
    assert_eq!(values(reader.take(10)), [(4, 0)]);
    let new = reader.read_condition(ReadFilter { view_state: Some(ViewState::New), ..ReadFilter::ALL });
    assert!(!new.trigger_value());
}

#[test]
fn a_predicate_may_use_the_reader_and_the_wait_set() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("nested", reliable_writer(), reliable_reader());
    let (set, reader) = (Arc::new(WaitSet::new().unwrap()), Arc::new(reader));
    let (inside, other) = ((Arc::clone(&set), Arc::downgrade(&reader)), GuardCondition::new());
    let query = reader.query_condition(ReadFilter::ALL, move |_: &Count| {
        let seen = inside.1.upgrade().map_or(0, |reader| reader.available());
        let id = inside.0.attach(&other);
        seen > 0 && inside.0.detach(id)
    });
    let id = set.attach(&query);
    writer.write(&Count { value: 1 }).unwrap();
    assert_eq!(set.wait(PATIENCE).unwrap(), [id]);
}

#[test]
fn a_predicate_that_panics_takes_nothing_from_the_other_conditions() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("panics", reliable_writer(), reliable_reader());
    let set = WaitSet::new().unwrap();
    let query = reader.query_condition(ReadFilter::ALL, |count: &Count| {
        assert_ne!(count.value, 1, "as some application's predicate does");
        true
    });
    set.attach(&query);
    let guard = GuardCondition::new();
    let id = set.attach(&guard);
    guard.set_trigger_value(true);
    writer.write(&Count { value: 1 }).unwrap();
    eventually("the sample is there", || reader.available() == 1);
    let triggered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| set.triggered()));
    assert!(triggered.is_err());
    assert_eq!(reader.take(1).len(), 1);
    assert_eq!(set.wait(PATIENCE).unwrap(), [id]);
    assert!(is_readable(&set, Duration::ZERO));
}

#[test]
fn what_is_read_or_taken_makes_conditions_true() {
    let pair = pair::<Shape>("states", reliable_writer(), reliable_reader());
    let reader = &pair.reader;
    let set = WaitSet::new().unwrap();
    let read =
        set.attach(&reader.read_condition(ReadFilter { sample_state: Some(SampleState::Read), ..ReadFilter::ALL }));
    let known =
        set.attach(&reader.read_condition(ReadFilter { view_state: Some(ViewState::NotNew), ..ReadFilter::ALL }));
    for id in [known, read] {
        (0..2).for_each(|x| _ = pair.writer.write(&Shape::new("A", x)).unwrap());
        eventually("both are there", || reader.available() == 2);
        set.triggered();
        thread::scope(|scope| {
            let waits = scope.spawn(|| set.wait(PATIENCE));
            thread::sleep(Duration::from_millis(50));
            assert_eq!(if id == read { reader.read(1) } else { reader.take(1) }.len(), 1);
            assert!(waits.join().unwrap().unwrap().contains(&id));
        });
        reader.take(2);
        set.detach(known);
    }
}

#[test]
fn who_asks_what_is_true_takes_it_from_nobody_who_waits() {
    let (set, guard) = (WaitSet::new().unwrap(), GuardCondition::new());
    let id = set.attach(&guard);
    for _ in 0..50 {
        thread::scope(|scope| {
            let waits = scope.spawn(|| set.wait(PATIENCE));
            thread::sleep(Duration::from_millis(2));
            guard.set_trigger_value(true);
            set.triggered();
            assert_eq!(waits.join().unwrap().unwrap(), [id]);
        });
        guard.set_trigger_value(false);
    }
}

#[test]
fn the_descriptor_is_readable_while_a_condition_may_be_true() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("poll", reliable_writer(), reliable_reader());
    let set = WaitSet::new().unwrap();
    let data = reader.read_condition(ReadFilter::ALL);
    let id = set.attach(&data);
    assert!(is_readable(&set, Duration::ZERO), "it was not looked at");
    eventually("nothing is left", || set.triggered().is_empty() && !is_readable(&set, Duration::ZERO));
    for value in 0..3 {
        writer.write(&Count { value }).unwrap();
        assert!(is_readable(&set, PATIENCE));
        assert_eq!(set.wait(PATIENCE).unwrap(), [id]);
        assert!(is_readable(&set, Duration::ZERO), "nothing was taken");
        assert_eq!(reader.take(10).len(), 1);
        eventually("nothing is left", || set.triggered().is_empty() && !is_readable(&set, Duration::ZERO));
    }
    assert!(set.as_fd().as_raw_fd() >= 0);
}

#[test]
fn a_condition_that_rings_costs_no_look_at_the_others() {
    let set = WaitSet::new().unwrap();
    let Pair { writer, reader, participants: _alive } = pair::<Count>("looks", reliable_writer(), reliable_reader());
    writer.write(&Count { value: 1 }).unwrap();
    assert!(reader.wait(PATIENCE));
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let query = reader.query_condition(ReadFilter::ALL, move |_: &Count| {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    });
    set.attach(&query);
    let guard = GuardCondition::new();
    let id = set.attach(&guard);
    assert!(set.triggered().is_empty());
    let before = looks.load(Ordering::Relaxed);
    for _ in 0..10 {
        guard.set_trigger_value(true);
        assert_eq!(set.triggered(), [id]);
        guard.set_trigger_value(false);
        assert!(set.triggered().is_empty());
    }
    assert_eq!(looks.load(Ordering::Relaxed), before);
}

#[test]
fn no_change_is_missed_however_it_meets_the_wait() {
    let (set, there, back) = (WaitSet::new().unwrap(), GuardCondition::new(), GuardCondition::new());
    let other = WaitSet::new().unwrap();
    set.attach(&there);
    other.attach(&back);
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2_000 {
                set.wait(PATIENCE).unwrap();
                there.set_trigger_value(false);
                back.set_trigger_value(true);
            }
        });
        for _ in 0..2_000 {
            there.set_trigger_value(true);
            other.wait(PATIENCE).unwrap();
            back.set_trigger_value(false);
        }
    });
    assert!(start.elapsed() < PATIENCE, "waits ended by their time limit");
}

#[test]
fn conditions_outlive_their_endpoints_and_are_false_then() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("outlived", late_writer(), late_reader());
    let set = WaitSet::new().unwrap();
    let (matched, data) =
        (writer.status_condition(StatusKinds::PUBLICATION_MATCHED), reader.read_condition(ReadFilter::ALL));
    let query = reader.query_condition(ReadFilter::ALL, |_: &Count| true);
    let ids = [set.attach(&matched), set.attach(&data), set.attach(&query)];
    writer.write(&Count { value: 1 }).unwrap();
    eventually("all are true", || set.triggered() == ids);
    drop((writer, reader));
    assert!(!matched.trigger_value() && !data.trigger_value() && !query.trigger_value());
    assert!(set.wait(Duration::from_millis(1)).unwrap_err().is_timeout());
    assert!(format!("{matched:?} {data:?}").starts_with("StatusCondition(false) ReadCondition("));
}

#[test]
fn a_condition_keeps_no_history_of_a_writer_that_is_gone() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>(&unique("history"));
    let writer = participant.create_writer(&topic, late_writer()).unwrap();
    let bytes = Arc::new(vec![0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    writer.write_payload(&Payload::new(Arc::clone(&bytes)), None, None).unwrap();
    let condition = writer.status_condition(StatusKinds::ANY);
    assert_eq!((writer.held(), Arc::strong_count(&bytes)), (1, 2));
    drop(writer);
    eventually("the sample is gone", || Arc::strong_count(&bytes) == 1);
    assert!(!condition.trigger_value());
}

#[test]
fn a_condition_of_another_reader_selects_nothing_and_is_refused() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>(&unique("foreign"));
    let reader = participant.create_reader(&topic, late_reader()).unwrap();
    let other = participant.create_reader(&topic, late_reader()).unwrap();
    let writer = participant.create_writer(&topic, late_writer()).unwrap();
    writer.write(&Count { value: 1 }).unwrap();
    assert!(reader.wait(PATIENCE) && other.wait(PATIENCE));
    let foreign = other.read_condition(ReadFilter::ALL);
    for refused in [reader.read_where(&foreign, 1), reader.take_where(&foreign, 1)] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PreconditionNotMet);
    }
    assert_eq!((reader.available(), other.available()), (1, 1));
    assert_eq!(other.take_where(&foreign, 1).unwrap().len(), 1);
}
