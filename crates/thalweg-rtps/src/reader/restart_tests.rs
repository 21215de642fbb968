//! A writer of another vendor begins anew under its old GUID before anybody has missed it.

use super::doubt_tests::large;
use super::tests::*;
use super::*;
use crate::qos::{Reliability, WriterQos};
use crate::types::VendorId;

const NOW: Duration = Duration::ZERO;
const SOON: Duration = Duration::from_millis(300);

/// A reader that has samples 1 to 10 of a writer of `vendor`, whose last HEARTBEAT had this count.
fn reader_of_ten(vendor: VendorId, count: u32) -> Session {
    let mut session = Session::reliable();
    session.reader.match_writer(session.now, MatchedWriter { vendor, ..matched_writer() });
    session.count = count - 1;
    session.data(&(1..=10).collect::<Vec<i64>>()).heartbeat(1, 10);
    assert_eq!(session.answer_after(NOW), "samples 11:");
    assert_eq!(session.taken().len(), 10);
    session
}

/// A HEARTBEAT comes a while after the question.
fn heartbeat_later(session: &mut Session, first: i64, last: i64) -> &mut Session {
    session.now += LATER;
    session.heartbeat(first, last)
}

#[test]
fn a_writer_that_begins_anew_while_it_is_matched_is_followed() {
    let mut session = reader_of_ten(VendorId::FAST_DDS, 1_000);
    session.count = 0;
    session.data(&[1, 2]).heartbeat(1, 2).heartbeat(1, 2).check("", &[]);
    assert_eq!(session.answer_after(SOON), "samples 1:", "a question, which acknowledges nothing");
    heartbeat_later(&mut session, 1, 2).check("samples 1:1,2", &[]);
    session.data(&[1, 2, 3]).heartbeat(1, 3).check("samples 4:", &[1, 2, 3]);
    assert_eq!(session.reader.losses().total(), 0);
}

/// So few HEARTBEATs came of its old life that their counts tell nothing.
#[test]
fn a_writer_whose_last_number_grows_again_has_begun_anew() {
    let mut session = reader_of_ten(VendorId::CYCLONE, 1);
    session.heartbeat(1, 2);
    assert_eq!(session.answer_after(SOON), "samples 1:");
    heartbeat_later(&mut session, 1, 4).check("samples 1:1,2,3,4", &[]);
    session.data(&[1, 2, 3, 4]).check("", &[1, 2, 3, 4]);
}

#[test]
fn a_writer_of_thalweg_never_begins_anew() {
    let mut session = reader_of_ten(VendorId::THALWEG, 1);
    session.heartbeat(1, 2).check("samples 11:", &[]);
    heartbeat_later(&mut session, 1, 4).check("samples 11:", &[]);
    assert_eq!(session.data(&[1, 2, 3, 4]).taken(), []);
}

/// Fast DDS 3.1.2 takes the end of an instance out of its history when everybody has it.
#[test]
fn a_writer_that_takes_its_newest_samples_back_has_not_begun_anew() {
    let mut session = reader_of_ten(VendorId::FAST_DDS, 1);
    session.heartbeat(1, 8);
    assert_eq!(session.answer_after(SOON), "samples 1:");
    heartbeat_later(&mut session, 1, 8).check("samples 11:", &[]);
    session.heartbeat(1, 8).check("samples 11:", &[]);
    session.heartbeat(1, 7).check("samples 11:", &[]);
    assert_eq!(session.data(&[7, 8]).taken(), [], "nothing is handed over again");
    session.data(&[11]).heartbeat(1, 11).check("samples 12:", &[11]);
}

#[test]
fn a_heartbeat_that_samples_have_overtaken_tells_of_no_new_life() {
    let mut session = reader_of_ten(VendorId::CYCLONE, 1);
    session.heartbeat(1, 8).check("", &[]);
    assert_eq!(session.data(&[11]).answer_after(SOON), "samples 12:");
    session.heartbeat(1, 11).check("samples 12:", &[11]);
    heartbeat_later(&mut session, 1, 11).check("samples 12:", &[]);
}

#[test]
fn the_writer_itself_contradicts_a_heartbeat_that_was_made_up() {
    let mut session = reader_of_ten(VendorId::CYCLONE, 1);
    for last in [2, 3, 4] {
        session.heartbeat(1, last);
        assert_eq!(session.answer_after(SOON), "samples 1:", "up to {last}");
        session.heartbeat(1, 10).check("samples 11:", &[]);
    }
    assert_eq!(session.data(&[1, 2, 3, 4]).taken(), []);
}

/// The counts of forged HEARTBEATs let the writer's own one look old.
#[test]
fn a_writer_contradicts_although_a_made_up_count_is_ahead_of_its_own() {
    let mut session = reader_of_ten(VendorId::CYCLONE, 1_000);
    session.count = 1 << 30;
    session.heartbeat(1, 2);
    assert_eq!(session.answer_after(SOON), "samples 1:");
    session.count = 1_000;
    heartbeat_later(&mut session, 1, 10);
    session.count = (1 << 30) + 1;
    heartbeat_later(&mut session, 1, 4);
    assert_eq!(session.data(&[1, 2, 3, 4]).taken(), [], "nothing is handed over again");
}

/// What is taken when a writer that was at 10 sends `numbers`, half a second apart, and HEARTBEATs that name `told` as its last number.
#[track_caller]
fn check_best_effort(matched: MatchedWriter, told: Option<i64>, expect: &[i64]) {
    let mut session = Session::new(Reliability::BestEffort, None);
    session.reader.match_writer(session.now, matched);
    assert_eq!(session.data(&[9, 10]).taken(), [9, 10]);
    for number in 1..=7 {
        session.now += Duration::from_millis(500);
        session.data(&[number]);
        if let Some(last) = told {
            session.heartbeat(1, last);
        }
    }
    assert_eq!(session.taken(), expect);
}

#[test]
fn a_best_effort_writer_that_begins_anew_is_followed_after_two_seconds() {
    let qos = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    let matched = MatchedWriter { reliable: false, qos: qos.into(), ..matched_writer() };
    check_best_effort(MatchedWriter { vendor: VendorId::CYCLONE, ..matched.clone() }, None, &[5, 6, 7]);
    check_best_effort(matched, None, &[]);
}

/// It may repeat its history for a reader that has just come.
#[test]
fn a_best_effort_reader_takes_a_reliable_writers_word_for_a_new_life() {
    let matched = MatchedWriter { reliable: false, vendor: VendorId::CYCLONE, ..matched_writer() };
    for (told, expect) in [(None, &[][..]), (Some(10), &[]), (Some(7), &[6, 7])] {
        check_best_effort(matched.clone(), told, expect);
    }
}

#[test]
fn a_best_effort_writer_of_large_samples_that_begins_anew_is_followed_too() {
    let mut session = Session::new(Reliability::BestEffort, None);
    let qos = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    let matched = MatchedWriter { reliable: false, qos: qos.into(), vendor: VendorId::CYCLONE, ..matched_writer() };
    session.reader.match_writer(session.now, matched);
    (9..=10).for_each(|sequence| large(&mut session, sequence));
    assert_eq!(session.taken(), [9, 10]);
    for sequence in 1..=7 {
        session.now += Duration::from_millis(500);
        large(&mut session, sequence);
    }
    assert_eq!(session.taken(), [5, 6, 7]);
}
