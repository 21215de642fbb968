//! What a reader does not believe at once, message by message.

use super::tests::*;
use super::*;
use crate::qos::Reliability;
use crate::types::VendorId;
use crate::wire::{HeartbeatFrag, SequenceSet};

const NOW: Duration = Duration::ZERO;

/// A reader that has the first three samples of its writer.
fn reader_of_three() -> Session {
    let mut session = Session::reliable();
    session.data(&[1, 2, 3]).heartbeat(1, 3);
    assert_eq!(session.answer_after(NOW), "samples 4:");
    assert_eq!(session.taken(), [1, 2, 3]);
    session
}

fn gap(session: &mut Session, start: i64, end: i64) {
    let (reader, writer) = (READER.entity, WRITER.entity);
    let gap = Gap { reader, writer, start: number(start), list: SequenceSet::new(number(end)) };
    session.reader.handle_gap(session.now, WRITER, &gap);
}

/// Two fragments of the fourth sample came, of a writer that passed over the second one; nothing more comes for twice as long as a part
/// of a sample is believed, while HEARTBEATs tell of three samples, and of those fragments if it `tells`. Returns what the reader asks
/// for then, and whether the rest completes the sample.
fn pause_within_a_sample(tells: bool) -> (Vec<String>, bool) {
    let mut session = Session::reliable();
    session.data(&[1]);
    gap(&mut session, 2, 3);
    session.data(&[3]).heartbeat(1, 3).check("samples 4:", &[1, 3]);
    let fragment = |session: &mut Session, index| fragment_of(session, 4, index, 5 * 1400);
    assert!((0..2).all(|index| !fragment(&mut session, index)));
    let mut asked = Vec::new();
    for count in 1..=8 {
        session.heartbeat(1, 3);
        if tells {
            let (reader, writer) = (READER.entity, WRITER.entity);
            let told = HeartbeatFrag { reader, writer, sequence: number(4), last_fragment: 2, count };
            session.reader.handle_heartbeat_frag(session.now, WRITER, &told);
        }
        asked.push(session.answer_after(Duration::from_secs(1)));
    }
    (asked, (2..5).any(|index| fragment(&mut session, index)))
}

/// A writer with tokens for a part of a sample sends the rest when it has others.
#[test]
fn what_came_of_a_sample_is_kept_while_its_writer_tells_that_it_goes_on() {
    let (asked, completes) = pause_within_a_sample(true);
    assert!(asked.iter().all(|answer| answer == "samples 4:") && completes, "{asked:?}");
}

#[test]
fn parts_of_a_sample_that_the_writer_knows_nothing_of_go_and_nothing_else_does() {
    let (asked, completes) = pause_within_a_sample(false);
    assert!(asked.iter().all(|answer| ["", "samples 4:"].contains(&answer.as_str())) && !completes, "{asked:?}");
}

#[test]
fn a_jump_is_a_question_first_and_counts_once_it_is_confirmed() {
    let mut session = reader_of_three();
    session.heartbeat(100, 120);
    assert_eq!((session.reader.losses().total(), session.reader.counters().doubted), (0, 1));
    assert_eq!(session.answer_after(NOW), "samples 4:", "asked, and nothing else");
    session.heartbeat(101, 120);
    assert_eq!(session.reader.losses().total(), 97);
    assert!(session.answer_after(LATER).contains("samples 101:101,102"));
}

#[test]
fn a_first_heartbeat_beyond_what_is_here_is_a_question_first() {
    let mut session = Session::reliable();
    session.data(&[30]).heartbeat(1 << 40, 1 << 40);
    assert_eq!(session.taken(), [], "what came before may follow");
    assert_eq!(session.answer_after(NOW), "samples 1:", "asked, and nothing else");
    gap(&mut session, 1, 19);
    session.heartbeat(19, 42);
    assert!(session.answer_after(LATER).starts_with("samples 19:19,20"));
    assert_eq!(session.data(&[19, 20]).heartbeat(30, 42).taken(), [19, 20, 30]);
}

/// What a forged HEARTBEAT had passed over, and the writer has, is not acknowledged with what came between.
#[test]
fn nothing_that_the_same_lie_has_skipped_is_acknowledged() {
    let mut session = Session::reliable();
    session.data(&[30]).confirmed_heartbeat(1 << 40, 1 << 40);
    assert_eq!(session.taken(), [30], "nothing is known of what came before");
    session.answer_after(LATER);
    gap(&mut session, 1, 19);
    session.heartbeat(19, 42);
    assert_eq!(session.answer_after(NOW), "samples 1:");
}

#[test]
fn a_writer_that_has_what_was_said_to_be_gone_is_believed_when_it_says_so_again() {
    let mut session = Session::reliable();
    session.heartbeat(5, 9);
    assert!(session.answer_after(NOW).starts_with("samples 5:5,6"));
    session.heartbeat(2, 9);
    assert_eq!(session.answer_after(LATER), "samples 1:", "asked, and nothing else");
    session.heartbeat(5, 9);
    assert!(session.answer_after(LATER).starts_with("samples 5:5,6"), "the writer itself says otherwise");
    session.heartbeat(2, 9);
    session.answer_after(NOW);
    session.answer_after(LATER);
    session.heartbeat(2, 9);
    let answer = session.answer_after(LATER);
    assert!(answer.starts_with("samples 2:2,3"), "{answer}");
}

/// A writer that takes its reader for complete says nothing by itself.
#[test]
fn a_question_whose_answer_is_lost_or_not_heard_is_asked_again() {
    let mut session = reader_of_three();
    let own_count = session.count;
    session.count = 1 << 30;
    session.heartbeat(1, 3);
    assert_eq!(session.answer_after(NOW), "samples 4:", "to one that was forged");
    session.count = own_count;
    session.heartbeat(100, 120);
    for answer in 0..3 {
        assert_eq!(session.answer_after(LATER), "samples 4:", "{answer}");
    }
    session.heartbeat(100, 120);
    assert_eq!(session.reader.losses().total(), 0, "its count seems to be old");
    assert_eq!(session.answer_after(LATER), "samples 4:");
    session.heartbeat(100, 120);
    assert_eq!(session.reader.losses().total(), 96);
    assert!(session.answer_after(LATER).contains("samples 100:100,101"));
}

#[test]
fn a_heartbeat_that_seems_old_and_tells_news_is_asked_for_once_more() {
    for (last, answers) in [(3, ["", "samples 4:"]), (4, ["samples 4:", "samples 4:4"])] {
        let mut session = reader_of_three();
        let own_count = session.count;
        session.count = 1 << 30;
        session.heartbeat(1, 3).answer_after(LATER);
        session.count = own_count;
        for answer in answers {
            assert_eq!(session.heartbeat(1, last).answer_after(LATER), answer, "up to {last}");
        }
    }
}

#[test]
fn another_vendors_writer_is_asked_for_what_may_be_gone() {
    let mut session = reader_of_three();
    session.reader.match_writer(session.now, MatchedWriter { vendor: VendorId([1, 15]), ..matched_writer() });
    assert_eq!(session.heartbeat(6, 6).answer_after(NOW), "samples 4:4,5,6");
    gap(&mut session, 4, 6);
    assert_eq!(session.data(&[6]).taken(), [6]);
    assert_eq!(session.reader.losses().total(), 0);
}

#[test]
fn a_jump_that_is_repeated_before_anybody_was_asked_is_not_confirmed() {
    let mut session = reader_of_three();
    session.heartbeat(1 << 40, 1 << 40).heartbeat(1 << 40, 1 << 40).heartbeat(1 << 41, 1 << 41);
    assert_eq!(session.reader.losses().total(), 0);
    session.answer_after(NOW);
    session.heartbeat(1, 4).heartbeat(1 << 41, 1 << 41);
    assert_eq!(session.reader.losses().total(), 0, "the writer has said something else");
    assert_eq!(session.data(&[4]).taken(), [4]);
}

#[test]
fn a_high_last_number_does_not_vouch_for_a_high_first_one() {
    let mut session = reader_of_three();
    session.heartbeat(1, 1 << 40).heartbeat(1 << 40, 1 << 40);
    session.answer_after(NOW);
    session.heartbeat(1, 3);
    assert_eq!(session.reader.losses().total(), 0);
    session.answer_after(LATER);
    assert_eq!(session.data(&[4]).heartbeat(1, 4).answer_after(LATER), "samples 5:");
}

#[test]
fn nothing_that_was_skipped_on_somebodys_word_is_acknowledged() {
    for end in [5, 60_000, 1 << 40, i64::MAX] {
        let mut session = reader_of_three();
        gap(&mut session, 4, end);
        session.reader.doubt(session.now, 0);
        assert_eq!(session.answer_after(LATER), "samples 4:", "after a GAP to {end}");
        assert_eq!(session.data(&[4]).taken(), [4], "a sample that comes all the same");
    }
}

#[test]
fn a_gap_that_no_writer_can_mean_skips_nothing_that_is_under_way() {
    for (end, expect) in [(1 << 20, "samples 7:"), (1 << 40, "samples 4:4,5,6"), (i64::MAX, "samples 4:4,5,6")] {
        let mut session = reader_of_three();
        session.heartbeat(1, 6);
        session.answer_after(NOW);
        gap(&mut session, 4, end);
        assert_eq!(session.heartbeat(1, 6).answer_after(LATER), expect, "after a GAP to {end}");
    }
}

#[test]
fn a_gap_counts_once_a_heartbeat_names_its_numbers() {
    let mut session = reader_of_three();
    gap(&mut session, 4, 10);
    assert_eq!(session.heartbeat(1, 9).answer_after(LATER), "samples 10:");
    assert_eq!(session.data(&[9]).taken(), [] as [i64; 0], "skipped rightly");
    assert_eq!(session.data(&[10]).taken(), [10]);
}

#[test]
fn a_writer_that_keeps_saying_less_is_believed() {
    let mut session = reader_of_three();
    gap(&mut session, 4, 60_000);
    session.data(&[60_000]);
    assert_eq!(session.taken(), [60_000], "made up");
    session.heartbeat(1, 5);
    assert_eq!(session.answer_after(LATER), "samples 4:", "a question");
    session.heartbeat(1, 5);
    assert_eq!(session.answer_after(LATER), "samples 4:", "a HEARTBEAT that was under way already is no answer");
    session.heartbeat(1, 5);
    assert_eq!(session.answer_after(LATER), "samples 4:4,5");
    assert_eq!(session.data(&[4, 5]).heartbeat(1, 5).taken(), [4, 5]);
    assert_eq!(session.answer_after(LATER), "samples 6:");
}

#[test]
fn one_heartbeat_that_says_less_changes_nothing() {
    let mut session = Session::reliable();
    gap(&mut session, 1, 100);
    session.data(&[100, 101]).heartbeat(100, 101);
    session.answer_after(LATER);
    session.heartbeat(1, 5);
    session.answer_after(LATER);
    assert_eq!(session.heartbeat(100, 102).answer_after(LATER), "samples 102:102");
    assert_eq!(session.data(&[102]).taken(), [100, 101, 102]);
}

#[test]
fn heartbeats_that_a_later_one_has_overtaken_take_nothing_back() {
    let mut session = reader_of_three();
    let sent = [(3, 5), (4, 6), (8, 8)].map(|(first, last)| session.heartbeat_of(first, last));
    session.data(&[8, 9]);
    for arrived in [2, 0, 1] {
        session.reader.handle_heartbeat(session.now, WRITER, &sent[arrived]);
        session.answer_after(LATER);
    }
    assert_eq!(session.data(&[5, 6]).taken(), [8, 9], "what was lost is not handed over late");
    session.heartbeat(8, 9);
    assert_eq!(session.answer_after(LATER), "samples 10:");
}

/// Each of them is newer than the one before, and comes long after the question on a path on which answers take no time.
#[test]
fn several_overtaken_heartbeats_do_not_confirm_each_other_unless_they_come_for_long() {
    for (pause, is_taken_back) in [(Duration::from_millis(40), false), (Duration::from_millis(210), true)] {
        let mut session = reader_of_three();
        let sent: Vec<_> = (0..5).map(|_| session.heartbeat_of(3, 5)).collect();
        session.data(&[8, 9]).heartbeat(8, 8);
        for heartbeat in sent {
            session.reader.handle_heartbeat(session.now, WRITER, &heartbeat);
            session.answer_after(pause);
        }
        let taken = session.data(&[4, 5]).taken();
        assert_eq!(taken, if is_taken_back { vec![8, 9, 4, 5] } else { vec![8, 9] }, "{pause:?}");
    }
}

#[test]
fn writers_near_the_end_of_the_numbers_are_read_to_it() {
    let last = i64::MAX - 1_000;
    let mut session = Session::reliable();
    session.heartbeat(last - 2, last);
    assert_eq!(session.answer_after(LATER), format!("samples {0}:{0},{1},{2}", last - 2, last - 1, last));
    let numbers = [last - 1, last - 2, last, last + 1];
    assert_eq!(session.data(&numbers).taken(), [last - 2, last - 1, last, last + 1]);
    gap(&mut session, last + 2, last + 9);
    session.heartbeat(last, last + 8);
    assert_eq!(session.data(&[last + 9]).taken(), [last + 9]);
    session.data(&[i64::MAX - 1, i64::MAX]).heartbeat(1, i64::MAX);
    session.answer_after(LATER);
    session.heartbeat(last, last + 10);
    // What was skipped before the lie is skipped again.
    gap(&mut session, last + 2, last + 9);
    assert_eq!(session.data(&[last + 10]).taken(), [last + 10]);
}

/// A sample of two fragments comes.
pub(super) fn large(session: &mut Session, sequence: i64) {
    let head = FragmentedSample {
        coherent_set: SequenceNumber::ZERO,
        related: None,
        timestamp: None,
        kind: crate::history::ChangeKind::Write,
        hint: None,
        content_kind: crate::history::PayloadKind::Data,
    };
    for first_fragment in [1, 2] {
        let fragments = DataFrag {
            reader: READER.entity,
            writer: WRITER.entity,
            sequence: number(sequence),
            first_fragment,
            fragments: 1,
            fragment_size: 10,
            sample_size: 20,
            inline_qos: None,
            key: false,
            bytes: 0..10,
        };
        let now = session.now;
        let (whole, _) = session.reader.handle_data_frag(now, WRITER, &fragments, &[0; 10], head);
        session.reader.handle_arrivals(now, WRITER, whole.into_iter().map(|whole| Arrival::Sample(whole.sample)));
    }
}

#[test]
fn large_best_effort_samples_are_followed_far_ahead_too() {
    let mut session = Session::new(Reliability::BestEffort, None);
    let far = 1 << 40;
    session.data(&[1]);
    (far..far + 4).for_each(|sequence| large(&mut session, sequence));
    assert_eq!(session.taken(), [1, far + 1, far + 2, far + 3]);
}

#[test]
fn a_best_effort_reader_follows_a_writer_that_went_far_ahead() {
    let mut session = Session::new(Reliability::BestEffort, None);
    let far = 1 << 40;
    session.data(&[1, 2, far, far + 1, far + 2]);
    assert_eq!(session.taken(), [1, 2, far + 1, far + 2]);
    assert_eq!(session.reader.losses().total(), (far + 1 - 3) as u64);
}

/// A writer that was deceived about what its reader has does not greet it.
#[test]
fn a_writer_that_has_only_asked_who_is_there_is_asked_for_its_greeting() {
    let mut session = Session::reliable();
    session.reader.unmatch_writer(session.now, WRITER);
    let greeting = MatchedWriter { greets: true, numbers_from: number(65_538), ..matched_writer() };
    session.reader.match_writer(session.now, greeting);
    assert_eq!(session.heartbeat(60_696, 60_695).answer_after(NOW), "samples 60696:");
    assert_eq!(session.answer_after(Duration::from_secs(1)), "", "it may be about to greet");
    assert_eq!(session.answer_after(LATER), "samples 60696:");
    assert_eq!(session.heartbeat(75_959, 75_959).answer_after(NOW), "samples 75959:75959");
    assert_eq!(session.data(&[75_959]).answer_after(NOW), "");
    assert_eq!(session.heartbeat(75_959, 75_959).answer_after(NOW), "samples 75960:");
    assert_eq!(session.answer_after(LATER), "");
}

/// Answers to other questions, sent as fast as these came, all asked for a HEARTBEAT.
#[test]
fn a_question_waits_for_its_time_whatever_is_answered_before() {
    let mut session = reader_of_three();
    let asks = |session: &mut Session| {
        session.outbox.clear();
        session.reader.poll_transmit(session.now, &mut session.outbox);
        let datagrams: Vec<Vec<u8>> = session.outbox.datagrams().map(|datagram| datagram.to_vec()).collect();
        let asks = |datagram: &Vec<u8>| {
            let message = crate::wire::Message::parse(datagram).expect("well-formed");
            message.submessages().any(|one| matches!(one, Ok(crate::wire::Submessage::AckNack(ack)) if !ack.is_final))
        };
        (datagrams.len(), datagrams.iter().filter(|datagram| asks(datagram)).count())
    };
    let (mut answers, mut questions) = (0, 0);
    for _ in 0..1_000 {
        session.reader.question_writer(session.now, WRITER);
        session.heartbeat(1, 3);
        let (datagrams, asking) = asks(&mut session);
        answers += datagrams;
        questions += asking;
        session.now += Duration::from_micros(10);
    }
    assert!(answers > 900, "{answers}");
    assert_eq!(questions, 2, "in 10 ms");
    session.data(&[5]).answer_after(LATER);
    session.reader.question_writer(session.now, WRITER);
    session.now += Duration::from_millis(2);
    assert_eq!(asks(&mut session), (0, 0), "a repair is on its way, and tells");
}
