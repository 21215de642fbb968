//! LIFESPAN of a writer at its reader.

use super::tests::{LATER, Session, WRITER, matched_writer, sample};
use super::*;
use crate::history::ChangeKind;
use crate::history::ReadFilter;
use crate::qos::{Reliability, WriterQos};
use crate::time::{EpochOffset, Timestamp};

const SPAN: Duration = Duration::from_millis(100);
const MILLI: Duration = Duration::from_millis(1);
/// What the wall clock shows when a session begins.
const WALL: Duration = Duration::from_secs(1_800_000_000);

/// The QoS of a writer whose samples live for `lifespan`.
fn living(lifespan: Duration) -> Arc<WriterQos> {
    let mut qos = WriterQos::default();
    qos.timing.lifespan = lifespan;
    qos.into()
}

/// A session with a writer whose samples live for [`SPAN`].
fn session(reliability: Reliability, samples_max: Option<u32>) -> Session {
    let mut session = Session::new(reliability, samples_max);
    session.reader.match_writer(session.now, MatchedWriter { qos: living(SPAN), ..matched_writer() });
    session
}

/// As [`session`], and the wall clock is known.
fn with_clock() -> Session {
    let mut session = session(Reliability::RELIABLE, None);
    session.reader.set_epoch(Some(EpochOffset::new(session.now, Timestamp::from_unix(WALL))));
    session
}

/// A sample that was written when the wall clock of [`WALL`] had moved by `after`.
fn write(session: &mut Session, sequence: i64, after: Duration) {
    let Arrival::Sample(mut received) = sample(sequence) else { unreachable!() };
    received.timestamp = Some(Timestamp::from_unix(WALL + after));
    session.reader.handle_arrivals(session.now, WRITER, [Arrival::Sample(received)].into_iter());
}

#[track_caller]
fn check_expired(session: &Session, expired: u64) {
    let counters = session.reader.counters();
    assert_eq!((counters.expired, counters.lost, counters.rejected), (expired, 0, 0));
}

#[test]
fn a_sample_whose_time_is_over_is_not_handed_over_whether_the_timer_ran_or_not() {
    for timer in [false, true] {
        let mut session = session(Reliability::RELIABLE, None);
        session.data(&[1, 2]);
        session.now += SPAN - MILLI;
        session.data(&[3]);
        session.now += MILLI;
        if timer {
            assert!(session.reader.poll_timeout().is_some_and(|due| due <= session.now));
            assert_eq!(
                session.reader.handle_timeout(session.now),
                ReaderOutcome { answer_due: true, ..Default::default() }
            );
            assert_eq!(session.reader.cache().len(), 1, "memory goes though nobody takes");
        }
        assert_eq!(session.taken(), [3]);
        check_expired(&session, 2);
        session.heartbeat(1, 3).check("samples 4:", &[]);
    }
}

#[test]
fn reading_does_not_show_what_has_expired_either() {
    let mut session = session(Reliability::BestEffort, None);
    session.data(&[1]);
    session.now += SPAN;
    session.data(&[2]);
    let (mut shown, now) = (Vec::new(), session.now);
    assert_eq!(session.reader.read(|| now, 9, &ReadFilter::ALL, &mut shown).count, 1);
    assert_eq!(shown[0].info.sequence.0, 2);
    check_expired(&session, 1);
}

#[test]
fn life_begins_at_the_source() {
    let mut session = with_clock();
    write(&mut session, 1, Duration::ZERO);
    session.now += SPAN / 2;
    write(&mut session, 2, Duration::ZERO);
    write(&mut session, 3, SPAN / 2);
    session.now += SPAN / 2;
    assert_eq!(session.taken(), [3]);
    // Late by its whole life: it is not even kept, and acknowledged all the same.
    write(&mut session, 4, Duration::ZERO);
    assert_eq!(session.reader.cache().len(), 0);
    check_expired(&session, 3);
    session.heartbeat(1, 4).check("samples 5:", &[]);
}

#[test]
fn a_life_that_was_over_before_this_host_booted_does_not_begin_anew() {
    let hour = Duration::from_secs(3_600);
    let mut session = Session::new(Reliability::RELIABLE, None);
    session.now = Instant::from_nanos(8_000_000_000);
    let qos = living(Duration::from_secs(10));
    session.reader.match_writer(session.now, MatchedWriter { qos, ..matched_writer() });
    session.reader.set_epoch(Some(EpochOffset::new(session.now, Timestamp::from_unix(WALL + hour))));
    write(&mut session, 1, Duration::ZERO);
    write(&mut session, 2, hour - Duration::from_secs(9));
    assert_eq!(session.taken(), [2], "written before the boot as well, and not yet over");
    check_expired(&session, 1);
}

#[test]
fn a_clock_that_is_ahead_lengthens_no_life() {
    let mut session = with_clock();
    write(&mut session, 1, Duration::from_secs(3600));
    session.now += SPAN - MILLI;
    assert_eq!(session.reader.cache().len(), 1);
    session.now += MILLI;
    assert_eq!(session.taken(), [] as [i64; 0]);
}

#[test]
fn a_sample_that_waits_for_an_earlier_one_expires_while_it_waits() {
    let mut session = session(Reliability::RELIABLE, None);
    session.data(&[2, 3]);
    session.now += SPAN;
    session.data(&[1, 4]);
    assert_eq!(session.taken(), [1, 4]);
    check_expired(&session, 2);
    session.heartbeat(1, 4).check("samples 5:", &[]);
}

#[test]
fn what_expires_makes_room_for_what_waits() {
    let mut session = session(Reliability::RELIABLE, Some(2));
    session.data(&[1, 2]);
    session.now += SPAN / 2;
    session.data(&[3, 4]);
    session.now += SPAN / 2;
    let outcome = session.reader.handle_timeout(session.now);
    assert!(outcome.data_available && outcome.answer_due);
    session.check("samples 5:", &[3, 4]);
    assert_eq!((session.reader.counters().expired, session.reader.counters().rejected), (2, 1));
}

#[test]
fn the_end_of_an_instance_is_told_whenever_somebody_asks() {
    let mut session = session(Reliability::RELIABLE, None);
    let Arrival::Sample(mut received) = sample(1) else { unreachable!() };
    received.kind = ChangeKind::Dispose;
    session.reader.handle_arrivals(session.now, WRITER, [Arrival::Sample(received)].into_iter());
    session.now += SPAN * 10;
    session.reader.handle_timeout(session.now);
    assert_eq!(session.taken(), [1]);
}

#[test]
fn without_a_lifespan_nothing_expires_and_no_clock_is_read() {
    let mut session = Session::new(Reliability::RELIABLE, None);
    session.data(&[1, 2]);
    session.answer_after(LATER);
    assert_eq!(session.reader.poll_timeout(), None);
    let mut taken = Vec::new();
    session.reader.take(|| panic!("no clock is needed"), 9, &ReadFilter::ALL, &mut taken);
    assert_eq!(taken.len(), 2);
}
