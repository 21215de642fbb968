//! A writer that is lost and comes back continues where it was.

use super::tests::{LATER, Session, WRITER, matched_writer, number, sample};
use super::writer_proxy::RequestCounts;
use super::*;
use crate::history::ReadFilter;
use crate::qos::{History, Reliability};
use crate::types::{EntityId, GuidPrefix, VendorId};
use crate::wire::SequenceSet;

fn reliable() -> Session {
    Session::new(Reliability::RELIABLE, None)
}

fn lose_and_find(session: &mut Session, matched: MatchedWriter) {
    session.reader.unmatch_writer(session.now, WRITER);
    assert_eq!(session.taken(), [SequenceNumber::UNKNOWN.0], "the news that the writer is gone");
    session.reader.match_writer(session.now, matched);
}

fn gap(session: &mut Session, start: i64, end: i64) {
    let (reader, writer) = (EntityId::UNKNOWN, WRITER.entity);
    let gap = Gap { reader, writer, start: number(start), list: SequenceSet::new(number(end)) };
    session.reader.handle_gap(session.now, WRITER, &gap);
}

fn lost(session: &Session) -> u64 {
    session.reader.losses().total()
}

#[test]
fn what_was_handed_over_before_is_not_handed_over_again() {
    let mut session = reliable();
    session.data(&[1, 2, 3, 5]).heartbeat(1, 5).check("samples 4:4", &[1, 2, 3]);
    lose_and_find(&mut session, matched_writer());
    assert_eq!(session.answer_after(LATER), "samples 4:", "it says where it was");
    // A transient-local writer that lost its reader too repeats its history; one that did not goes on.
    session.data(&[1, 2, 3, 4, 5, 6]).heartbeat(1, 6).check("samples 7:", &[4, 5, 6]);
    assert_eq!((session.reader.counters().duplicates, lost(&session)), (3, 0));
}

/// A KEEP_LAST writer went on beyond all that a HEARTBEAT had named, and its reader lost it before another one came.
#[test]
fn what_was_handed_over_beyond_the_last_heartbeat_is_not_handed_over_again() {
    for told in [60, 1] {
        let mut session = reliable();
        session.heartbeat(told, told - 1);
        gap(&mut session, told, 104);
        assert_eq!(session.data(&[104, 105]).taken(), [104, 105]);
        lose_and_find(&mut session, matched_writer());
        gap(&mut session, 1, 104);
        session.heartbeat(104, 106).data(&[104, 105, 106]).check("samples 107:", &[106]);
        assert_eq!(lost(&session), 0);
    }
}

/// As above, but somebody made up what went on, and the writer says where it is.
#[test]
fn what_was_handed_over_beyond_the_last_heartbeat_may_still_have_been_made_up() {
    let mut session = reliable();
    session.data(&[1, 2]).heartbeat(1, 2).check("samples 3:", &[1, 2]);
    gap(&mut session, 3, 104);
    assert_eq!(session.data(&[104]).taken(), [104]);
    lose_and_find(&mut session, matched_writer());
    for _ in 0..3 {
        session.heartbeat(1, 4).answer_after(LATER);
    }
    session.data(&[3, 4]).heartbeat(1, 4).check("samples 5:", &[3, 4]);
}

#[test]
fn what_is_gone_meanwhile_is_lost() {
    let mut session = reliable();
    session.data(&[1, 2, 3]).heartbeat(1, 3).check("samples 4:", &[1, 2, 3]);
    lose_and_find(&mut session, matched_writer());
    session.heartbeat(8, 9).check("lost 4,5,6,7; samples 8:8,9", &[]);
    assert_eq!(lost(&session), 4);
    session.data(&[8, 9]).check("", &[8, 9]);
}

#[test]
fn what_a_writer_passes_over_that_had_lost_its_reader_is_lost() {
    // The reader has lost the writer as well, or has not.
    for both in [true, false] {
        let mut session = reliable();
        session.data(&[1, 2, 3]).heartbeat(1, 3).check("samples 4:", &[1, 2, 3]);
        if both {
            lose_and_find(&mut session, matched_writer());
        }
        for _ in 0..2 {
            gap(&mut session, 1, 8);
            session.heartbeat(8, 9);
        }
        // The writer knows that it did not send them to a reader that it had lost.
        let told = if both { "" } else { "lost 4,5,6,7; " };
        session.data(&[8, 9]).heartbeat(8, 9).check(&format!("{told}samples 10:"), &[8, 9]);
        assert_eq!(lost(&session), 4, "both sides: {both}");
    }
    // Samples that a history of limited depth replaced are no losses, whatever number the GAP over them begins with.
    let mut session = reliable();
    session.heartbeat(1, 3).check("samples 1:1,2,3", &[]);
    gap(&mut session, 1, 3);
    gap(&mut session, 1, 6);
    session.heartbeat(6, 6).data(&[6]).check("samples 7:", &[6]);
    assert_eq!(lost(&session), 0);
    let mut session = reliable();
    gap(&mut session, 1, 50);
    session.heartbeat(50, 50).data(&[50]).check("samples 51:", &[50]);
    gap(&mut session, 51, 60);
    assert_eq!(lost(&session), 0);
}

#[test]
fn a_writer_of_another_vendor_that_starts_anew_under_its_old_name_is_heard() {
    for (vendor, expect) in [(VendorId([1, 15]), vec![1, 2]), (VendorId::THALWEG, vec![])] {
        let mut session = reliable();
        session.data(&[1, 2, 3, 4, 5]).heartbeat(1, 5).check("samples 6:", &[1, 2, 3, 4, 5]);
        lose_and_find(&mut session, MatchedWriter { vendor, ..matched_writer() });
        // An empty history says nothing.
        session.heartbeat(1, 0).check("samples 6:", &[]);
        session.heartbeat(1, 2).data(&[1, 2]);
        assert_eq!(session.taken(), expect);
    }
}

#[test]
fn a_bounded_number_of_writers_is_remembered_and_the_first_to_leave_forgotten_first() {
    let qos = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    let mut reader = Reader::new(tests::READER, qos.into(), Keyed::No, ReassemblyBudget::new(1 << 20));
    let now = Instant::from_nanos(1);
    let count = departed::WRITERS_MAX as u32 + 10;
    let guid = |index: u32| Guid::new(GuidPrefix([7; 12]), EntityId::user_writer(index, Keyed::No));
    for index in 0..count {
        reader.match_writer(now, MatchedWriter { guid: guid(index), ..matched_writer() });
        reader.handle_arrivals(now, guid(index), [sample(1), sample(2)].into_iter());
        reader.unmatch_writer(now, guid(index));
    }
    let mut taken = Vec::new();
    reader.take(|| now, usize::MAX, &ReadFilter::ALL, &mut taken);
    let mut again = 0;
    for index in 0..count {
        reader.match_writer(now, MatchedWriter { guid: guid(index), ..matched_writer() });
        let outcome = reader.handle_arrivals(now, guid(index), [sample(1), sample(2)].into_iter());
        assert_eq!(outcome.data_available, index < 10, "writer {index}");
        again += u32::from(outcome.data_available);
    }
    assert_eq!(again, 10);
}

#[test]
fn counts_that_have_wrapped_are_the_later_ones() {
    let mut departed = Departed::default();
    departed.begin_counts_at(u32::MAX);
    let wrapped = RequestCounts { acknack: 3, nack_frag: u32::MAX - 5 };
    departed.remember(WRITER, wrapped, None);
    assert_eq!((departed.counts().acknack, departed.counts().nack_frag), (3, u32::MAX - 1));
}

#[test]
fn a_place_that_was_only_claimed_is_not_remembered() {
    let mut session = reliable();
    session.heartbeat(1 << 40, 1 << 40).answer_after(LATER);
    lose_and_find_silently(&mut session);
    session.heartbeat(19, 19);
    assert_eq!(session.answer_after(LATER), "samples 19:19");
    assert_eq!(session.data(&[19]).taken(), [19]);
}

/// Nothing was ever taken of the writer, so nothing tells that it is gone.
fn lose_and_find_silently(session: &mut Session) {
    session.reader.unmatch_writer(session.now, WRITER);
    session.reader.match_writer(session.now, matched_writer());
}

#[test]
fn what_a_best_effort_writer_sent_long_ago_does_not_arrive_after_newer_samples() {
    for (vendor, taken, losses) in [(VendorId::THALWEG, &[26][..], 0), (VendorId::CYCLONE, &[11, 26], 14)] {
        let mut session = Session::new(Reliability::BestEffort, None);
        let matched = MatchedWriter { vendor, reliable: false, ..matched_writer() };
        session.reader.unmatch_writer(session.now, WRITER);
        session.reader.match_writer(session.now, matched.clone());
        assert_eq!(session.data(&[24, 25]).taken(), [24, 25]);
        lose_and_find(&mut session, matched);
        session.data(&[11, 26]);
        assert_eq!((session.taken().as_slice(), lost(&session)), (taken, losses), "{vendor:?}");
    }
}

/// What lay in front of a skip at the end was handed over again with what had been skipped before it.
#[test]
fn a_doubtful_skip_at_the_end_takes_back_nothing_that_was_handed_over() {
    let mut session = reliable();
    session.data(&[1, 2]).heartbeat(1, 2).check("samples 3:", &[1, 2]);
    gap(&mut session, 3, 10);
    assert_eq!(session.data(&[10, 11]).taken(), [10, 11]);
    gap(&mut session, 12, 20);
    lose_and_find(&mut session, matched_writer());
    session.heartbeat(10, 20).answer_after(LATER);
    session.data(&[10, 11, 12, 20]);
    assert_eq!(session.taken(), [12], "what was skipped last may come");
}

/// The first sample of a writer that goes on with a history overtook its first HEARTBEAT, which named a lower number.
#[test]
fn a_heartbeat_that_is_overtaken_by_a_sample_does_not_put_a_history_back() {
    let history = Some(crate::types::HistoryIdentity([7; 16]));
    let stored = || MatchedWriter { history, ..matched_writer() };
    let mut session = reliable();
    session.reader.match_writer(session.now, stored());
    session.data(&[1, 2, 3]).heartbeat(1, 3).check("samples 4:", &[1, 2, 3]);
    lose_and_find(&mut session, stored());
    session.data(&[9]);
    gap(&mut session, 4, 9);
    session.heartbeat(2, 8).answer_after(LATER);
    session.data(&[1, 2, 3, 9]);
    assert_eq!(session.taken(), [9]);
}

/// Their driver computes keys outside of the reader, and asks for none of a writer that has left.
#[test]
fn what_waits_for_its_key_when_its_writer_leaves_is_handed_over_or_lost() {
    let hint = Some(KeyHash([7; 16]));
    for (reliability, hints, taken, losses) in [
        (Reliability::BestEffort, [None, None], &[][..], 2),
        (Reliability::BestEffort, [None, hint], &[2], 1),
        (Reliability::BestEffort, [hint, hint], &[1, 2], 0),
        (Reliability::RELIABLE, [hint, None], &[1], 0),
        (Reliability::RELIABLE, [None, hint], &[], 0),
    ] {
        let qos = ReaderQos { reliability, history: History::KeepAll, ..ReaderQos::default() };
        let mut reader = Reader::new(tests::READER, qos.into(), Keyed::Yes, ReassemblyBudget::new(1 << 20));
        let now = Instant::from_nanos(1);
        reader.match_writer(now, matched_writer());
        for (sequence, hint) in (1..).zip(hints) {
            let Arrival::Sample(received) = sample(sequence) else { unreachable!() };
            reader.handle_arrivals(now, WRITER, std::iter::once(Arrival::AwaitsKey { sample: received, hint }));
        }
        let outcome = reader.unmatch_writer(now, WRITER);
        let mut samples = Vec::new();
        reader.take(|| now, usize::MAX, &ReadFilter::ALL, &mut samples);
        samples.retain(|sample| sample.info.valid);
        let numbers: Vec<i64> = samples.iter().map(|sample| sample.info.sequence.0).collect();
        let found = (numbers.as_slice(), reader.losses().total());
        assert_eq!(found, (taken, losses), "{reliability:?} {hints:?}");
        assert_eq!(outcome.data_available, !taken.is_empty(), "{reliability:?} {hints:?}");
    }
}

/// A match that ended before the writer was heard of again lost the place, and everything came once more.
#[test]
fn a_match_that_ends_before_a_word_forgets_no_place() {
    for reliability in [Reliability::RELIABLE, Reliability::BestEffort] {
        let mut session = Session::new(reliability, None);
        session.data(&[1, 2, 3]).heartbeat(1, 3);
        assert_eq!(session.taken(), [1, 2, 3]);
        for _ in 0..2 {
            session.reader.unmatch_writer(session.now, WRITER);
            session.taken();
            session.reader.match_writer(session.now, matched_writer());
        }
        session.data(&[1, 2, 3, 4]);
        assert_eq!(session.taken(), [4], "{reliability:?}");
    }
}
