//! What a reader does not hand over is counted once, with its reason.

use super::tests::{LATER, Session, WRITER, number, sample};
use super::*;
use crate::history::RejectReason;
use crate::qos::{History, Reliability, ResourceLimits};

fn reliable(samples_max: Option<u32>) -> Session {
    Session::new(Reliability::RELIABLE, samples_max)
}

fn unidentified(session: &mut Session, numbers: &[i64]) {
    let arrivals: Vec<Arrival> = numbers.iter().map(|n| Arrival::Unidentified(number(*n))).collect();
    session.reader.handle_arrivals(session.now, WRITER, arrivals.into_iter());
}

#[track_caller]
fn check_lost(session: &Session, expect: &str) {
    assert_eq!(session.reader.losses().to_string(), expect);
    assert_eq!(session.reader.counters().lost, session.reader.losses().total());
}

#[test]
fn a_sample_without_a_readable_key_is_lost_once_and_acknowledged() {
    let mut session = reliable(None);
    session.data(&[1]);
    unidentified(&mut session, &[2, 4]);
    unidentified(&mut session, &[2, 4]);
    session.heartbeat(1, 5).check("samples 3:3,5", &[1]);
    check_lost(&session, "2 without a key that can be read");
    assert_eq!(session.reader.take_news(), StatusNews { lost: true, rejected: false });
    assert_eq!(session.reader.take_news(), StatusNews::default());
    session.data(&[3, 5]).heartbeat(1, 5).check("samples 6:", &[3, 5]);
    unidentified(&mut session, &[2, 4]);
    check_lost(&session, "2 without a key that can be read");
    assert_eq!(session.reader.counters().duplicates, 4);
    // One that lies too far ahead is asked for again, and counted when it has come near.
    let far = 6 + window::NUMBERS_MAX;
    unidentified(&mut session, &[far, far]);
    check_lost(&session, "2 without a key that can be read");
}

#[test]
fn best_effort_losses_have_their_reason() {
    let mut session = Session::new(Reliability::BestEffort, None);
    session.data(&[1, 4]);
    unidentified(&mut session, &[5, 5, 3]);
    session.data(&[6]).check("", &[1, 4, 6]);
    check_lost(&session, "2 never arrived, 1 without a key that can be read");
    assert_eq!(session.reader.losses().last_reason(), Some(LossReason::KeyUnknown));
}

#[test]
fn a_sample_that_finds_no_room_is_rejected_once_however_often_it_is_offered() {
    let mut session = reliable(Some(2));
    session.data(&[1, 2, 3, 4]);
    for _ in 0..5 {
        session.data(&[3, 4]).heartbeat(1, 4);
        session.answer_after(LATER);
    }
    let rejections = session.reader.rejections();
    assert_eq!((rejections.total, rejections.last_reason), (1, Some(RejectReason::Samples)));
    assert_eq!(rejections.last_instance, Some(KeyHash::default()));
    assert_eq!((session.taken(), session.taken()), (vec![1, 2], vec![3, 4]));
    assert_eq!(session.reader.rejections().total, 1, "4 waited behind 3 and found room");
    check_lost(&session, "");
    let mut session = Session::new(Reliability::BestEffort, Some(2));
    session.data(&[1, 2, 3, 4]).check("", &[1, 2]);
    assert_eq!(session.reader.rejections().total, 2, "dropped");
}

#[test]
fn what_the_writer_dropped_is_lost_once_and_what_a_gap_declares_is_not() {
    let mut session = reliable(None);
    session.heartbeat(5, 9);
    check_lost(&session, "");
    session.data(&[5]);
    let (start, end) = (number(6), number(8));
    session.reader.handle_arrivals(session.now, WRITER, [Arrival::Irrelevant { start, end }].into_iter());
    session.heartbeat(8, 9).heartbeat(8, 9);
    check_lost(&session, "");
    session.data(&[10]).heartbeat(12, 20).heartbeat(12, 20);
    check_lost(&session, "");
    session.confirmed_heartbeat(12, 20);
    check_lost(&session, "3 gone at the writer before they could be repeated");
    session.check("lost 8,9,11; samples 12:12,13,14,15,16,17,18,19,20", &[5, 10]);
    // A jump beyond what is kept track of counts once too, whatever is held before it.
    session.data(&[13]).confirmed_heartbeat(12 + 3 * window::NUMBERS_MAX, 12 + 3 * window::NUMBERS_MAX);
    let lost = session.reader.losses().total();
    assert_eq!(lost, 3 + 3 * window::NUMBERS_MAX as u64 - 1);
    session.heartbeat(12 + 3 * window::NUMBERS_MAX, 12 + 3 * window::NUMBERS_MAX);
    assert_eq!(session.taken(), [13]);
    assert_eq!(session.reader.losses().total(), lost);
}

#[test]
fn the_reason_of_a_rejection_is_the_limit_that_was_met() {
    let check = |limits: ResourceLimits, keyed: Keyed, expect: RejectReason| {
        let qos = ReaderQos {
            reliability: Reliability::RELIABLE,
            history: History::KeepAll,
            resource_limits: limits,
            ..ReaderQos::default()
        };
        let mut reader = Reader::new(tests::READER, qos.into(), keyed, ReassemblyBudget::new(1 << 20));
        reader.match_writer(Instant::ZERO, tests::matched_writer());
        for n in 1..=3 {
            let Arrival::Sample(mut received) = sample(n) else { unreachable!() };
            received.instance = KeyHash([n as u8; 16]);
            reader.handle_arrivals(Instant::ZERO, WRITER, [Arrival::Sample(received)].into_iter());
        }
        assert_eq!(reader.rejections().last_reason, Some(expect));
    };
    let limits = ResourceLimits::default();
    check(ResourceLimits { max_samples: Some(2), ..limits }, Keyed::Yes, RejectReason::Samples);
    check(ResourceLimits { max_instances: Some(2), ..limits }, Keyed::Yes, RejectReason::Instances);
    check(ResourceLimits { max_samples_per_instance: Some(2), ..limits }, Keyed::No, RejectReason::SamplesPerInstance);
}
