//! Laws of the questions for acknowledgements: which readers are asked, when, and of what they are told.

use super::relapse::QUESTIONS_MAX;
use super::tests::{
    START, Told, acknowledge, impatient_writer, join, locator, matched_reader, patient_writer, reader,
    run_until_given_up, send, sent_submessages, write, writer,
};
use super::*;
use crate::qos::{History, Method, ReaderQos, Transmission, WriterQos};
use crate::time::INFINITE;
use crate::types::VendorId;
use crate::wire::{AckNack, AskedBy, Echo, SequenceSet};

#[test]
fn no_heartbeat_tells_a_foreign_reader_of_samples_before_it_has_proved_that_it_matched() {
    for seed in 0..300 {
        let mut rng = crate::rng::Rng::new(seed);
        let mut writer = patient_writer(INFINITE);
        let mut now = START;
        let mut next_to_prove = [None; 4];
        for step in 0..200 {
            now += Duration::from_micros(rng.below(30_000));
            let number = 1 + rng.below(3) as u8;
            match rng.below(6) {
                0 if next_to_prove[usize::from(number)].is_none() => {
                    let vendor = [VendorId::CYCLONE, VendorId::THALWEG][rng.below(2) as usize];
                    let reliable = rng.chance(0.8);
                    let buffer = Some(60_000);
                    let matched =
                        MatchedReader { vendor, reliable, receive_buffer_bytes: buffer, ..matched_reader(number) };
                    let foreign = vendor == VendorId::CYCLONE && reliable;
                    writer.match_reader(now, matched);
                    next_to_prove[usize::from(number)] =
                        Some(if foreign { writer.history.last().next() } else { SequenceNumber(i64::MAX) });
                }
                1 => (0..rng.below(10)).for_each(|_| write(&mut writer, 1_000)),
                2 => writer.request_acknowledgement(now),
                3 if next_to_prove[usize::from(number)].is_some() => {
                    // Once in a while the proof; most are what Cyclone DDS sends before it has heard of the writer.
                    let proves = rng.chance(0.2);
                    let entity = writer.guid().entity;
                    let base = if proves { writer.outgoing.place.sample } else { SequenceNumber(rng.below(2) as i64) };
                    let count = if proves { step + 1 } else { 0 };
                    let state = SequenceSet::new(base);
                    let acknack =
                        AckNack { reader: reader(number).entity, writer: entity, state, count, is_final: false };
                    writer.handle_acknack(now, reader(number), &acknack);
                    if proves {
                        next_to_prove[usize::from(number)] = Some(SequenceNumber(i64::MAX));
                    }
                }
                _ => _ = writer.handle_timeout(now),
            }
            for told in sent_submessages(&mut writer, now) {
                let Told::Heartbeat { to, last, .. } = told else { continue };
                let number = (1..=3).find(|number| locator(*number) == to).expect("one of the readers");
                if let Some(start) = next_to_prove[usize::from(number)] {
                    assert!(
                        last < start,
                        "seed {seed}, step {step}: reader {number} is told of {last}, it starts at {start}"
                    );
                }
            }
        }
    }
}

#[test]
fn who_does_not_answer_is_not_asked_the_more_often_while_others_come_and_answer() {
    let mut writer = writer(0);
    writer.match_reader(START, matched_reader(1));
    let mut asked = 0;
    for other in 2..=51 {
        let now = START + Duration::from_millis(20) * other.into();
        while let Some(due) = writer.poll_timeout().filter(|due| *due <= now) {
            writer.handle_timeout(due);
            asked += send(&mut writer, due).iter().filter(|to| **to == locator(1)).count();
        }
        join(&mut writer, now, other);
        asked += send(&mut writer, now).iter().filter(|to| **to == locator(1)).count();
    }
    assert!((5..=8).contains(&asked), "after twice the time each time, {asked} times in a second");
}

#[test]
fn a_reader_that_waits_for_the_writer_is_not_taken_for_one_that_hangs() {
    let mut writer = impatient_writer(2);
    (0..30).for_each(|_| write(&mut writer, 1_000));
    send(&mut writer, START);
    // Reader 1 has everything that was sent; the window waits for reader 2.
    let next = writer.outgoing.place.sample;
    assert!(next < SequenceNumber(25), "the window closes");
    acknowledge(&mut writer, START, 1, next, &[]);
    let (given_up, now) = run_until_given_up(&mut writer);
    assert_eq!(given_up, reader(2));
    assert!(writer.outgoing.place.sample > next, "the window opens");
    join(&mut writer, now, 3);
    let soon = writer.poll_timeout().expect("reader 1 owes an acknowledgement now");
    assert_eq!(writer.handle_timeout(soon).given_up, None, "reader 1 has had no time to answer");
}

#[test]
fn a_request_for_a_heartbeat_that_crosses_one_measures_no_round_trip() {
    let mut writer = writer(0);
    writer.match_reader(START, matched_reader(1));
    send(&mut writer, START);
    let answer = |writer: &mut Writer, micros, is_final| {
        let (now, entity) = (START + Duration::from_micros(micros), writer.guid().entity);
        let (state, count) = (SequenceSet::new(SequenceNumber(1)), writer.counters().acknacks as u32 + 1);
        writer.handle_acknack(
            now,
            reader(1),
            &AckNack { reader: reader(1).entity, writer: entity, state, count, is_final },
        );
        send(writer, now);
        writer.round_trip_of(reader(1))
    };
    assert_eq!(answer(&mut writer, 400, false), None, "it was under way before");
    assert_eq!(answer(&mut writer, 20_400, true), None, "it may answer the first HEARTBEAT or the second");
    writer.request_acknowledgement(START + Duration::from_millis(50));
    send(&mut writer, START + Duration::from_millis(50));
    assert_eq!(answer(&mut writer, 70_000, true), Some(Duration::from_millis(20)));
}

#[test]
fn a_request_that_may_have_left_by_itself_measures_no_round_trip() {
    let mut writer = writer(1);
    let answered = Duration::from_millis(20);
    let (entity, state) = (writer.guid().entity, SequenceSet::new(SequenceNumber(1)));
    let acknack = AckNack { reader: reader(1).entity, writer: entity, state, count: 2, is_final: true };
    writer.handle_acknack(START + answered, reader(1), &acknack);
    assert_eq!(writer.round_trip_of(reader(1)), Some(answered));
    write(&mut writer, 8);
    send(&mut writer, START + answered);
    let asked = START + Duration::from_millis(100);
    writer.request_acknowledgement(asked);
    send(&mut writer, asked);
    acknowledge(&mut writer, asked + Duration::from_micros(400), 1, SequenceNumber(1), &[1]);
    assert_eq!(writer.round_trip_of(reader(1)), Some(answered));
}

/// What a reader asks for by itself comes before its answer, which then came just behind the repair: the round trip seemed to be some
/// microseconds, and requests that had crossed their repairs were served.
#[test]
fn an_answer_behind_a_request_that_may_have_left_by_itself_does_not_look_quick() {
    let mut writer = writer(1);
    let entity = writer.guid().entity;
    let answer = |writer: &mut Writer, now: Instant, base: SequenceNumber, missing: Option<SequenceNumber>| {
        let mut state = SequenceSet::new(base);
        missing.into_iter().for_each(|number| _ = state.insert(number));
        let count = u32::try_from(writer.counters().acknacks + 1).expect("few of them");
        let acknack = AckNack { reader: reader(1).entity, writer: entity, state, count, is_final: true };
        writer.handle_acknack(now, reader(1), &acknack);
    };
    let asks = |writer: &mut Writer, now| {
        writer.request_acknowledgement(now);
        send(writer, now);
    };
    let round_trip = Duration::from_millis(20);
    answer(&mut writer, START + round_trip, SequenceNumber(1), None);
    assert_eq!(writer.round_trip_of(reader(1)), Some(round_trip));
    for turn in 1..20 {
        let asked = START + Duration::from_secs(turn);
        let lacks = writer.outgoing.place.sample;
        (0..2).for_each(|_| write(&mut writer, 8));
        asks(&mut writer, asked);
        let answered = asked + round_trip * 3 / 4;
        answer(&mut writer, answered, lacks, Some(lacks));
        assert!(!send(&mut writer, answered).is_empty(), "a repair, and a question behind it");
        let all = writer.outgoing.place.sample;
        answer(&mut writer, answered + Duration::from_micros(9), all, None);
        assert_eq!(writer.round_trip_of(reader(1)), Some(round_trip), "turn {turn}");
        answer(&mut writer, answered + round_trip, all, None);
    }
    let (asked, all) = (START + Duration::from_secs(30), writer.outgoing.place.sample);
    asks(&mut writer, asked);
    answer(&mut writer, asked + Duration::from_millis(10), all, None);
    assert_eq!(writer.round_trip_of(reader(1)), Some(Duration::from_millis(10)), "later it is measured again");
}

/// Each answer came just after the next question, and counted as its answer: the round trip seemed to be a fiftieth of what it is, and
/// every repetition of a request was served.
#[test]
fn answers_to_questions_that_follow_each_other_closely_do_not_look_quick() {
    let mut writer = writer(1);
    let entity = writer.guid().entity;
    let acknack = |writer: &mut Writer, now: Instant, count: u32| {
        let state = SequenceSet::new(SequenceNumber(1));
        let acknack = AckNack { reader: reader(1).entity, writer: entity, state, count, is_final: true };
        writer.handle_acknack(now, reader(1), &acknack);
    };
    acknack(&mut writer, START + Duration::from_millis(40), 2);
    assert_eq!(writer.round_trip_of(reader(1)), Some(Duration::from_millis(40)));
    let start = START + Duration::from_secs(1);
    for turn in 0..4_000_u32 {
        let now = start + Duration::from_micros(100) * turn;
        if turn % 10 == 0 {
            writer.request_acknowledgement(now);
            send(&mut writer, now);
        }
        if turn >= 400 && turn % 10 == 1 {
            acknack(&mut writer, now, turn);
        }
    }
    assert_eq!(writer.round_trip_of(reader(1)), Some(Duration::from_millis(40)));
    let asked = start + Duration::from_secs(3);
    writer.request_acknowledgement(asked);
    send(&mut writer, asked);
    acknack(&mut writer, asked + Duration::from_millis(30), 5_000);
    assert_eq!(writer.round_trip_of(reader(1)), Some(Duration::from_millis(30)), "later it is measured again");
}

/// Names what is answered next.
fn name(writer: &mut Writer, now: Instant, asked_by: AskedBy, held: Duration) {
    let held_micros = u32::try_from(held.as_micros()).expect("not so long");
    let echo = Echo { reader: reader(1).entity, writer: writer.guid().entity, asked_by, held_micros };
    writer.handle_echo(now, reader(1), &echo);
}

/// Acknowledges nothing.
fn acknowledge_nothing(writer: &mut Writer, now: Instant) {
    let (state, count) = (SequenceSet::new(SequenceNumber(1)), writer.counters().acknacks as u32 + 1);
    let (reader_id, writer_id) = (reader(1).entity, writer.guid().entity);
    let acknack = AckNack { reader: reader_id, writer: writer_id, state, count, is_final: true };
    writer.handle_acknack(now, reader(1), &acknack);
}

#[test]
fn an_answer_that_names_its_question_measures_a_round_trip_whichever_that_is() {
    let mut writer = writer(1);
    write(&mut writer, 8);
    let at = |millis| START + Duration::from_millis(millis);
    let asked: Vec<AskedBy> = (0..20)
        .map(|turn| {
            writer.request_acknowledgement(at(10 * turn));
            send(&mut writer, at(10 * turn));
            writer.heartbeat.lately_asked.latest().expect("it was just asked")
        })
        .collect();
    let mut answer = |millis, question: usize, held: Duration| {
        name(&mut writer, at(millis), asked[question], held);
        acknowledge_nothing(&mut writer, at(millis));
        writer.round_trip_of(reader(1)).map(|took| took.as_millis())
    };
    let held = Duration::from_millis;
    // The second question is lost, and the reader holds the answer to the fourth back.
    assert_eq!(answer(95, 0, held(0)), Some(95));
    assert_eq!(answer(110, 2, held(0)), Some(90));
    assert_eq!(answer(200, 3, held(100)), Some(70));
    // The network repeats the first answer, and delivers another one late.
    assert_eq!(answer(210, 0, held(200)), Some(70));
    assert_eq!(answer(210, 2, held(189)), Some(70));
    // No answer is held back for longer than since it was asked for; after so long clocks do not tell the rest.
    assert_eq!(answer(210, 4, held(171)), Some(70));
    assert_eq!(answer(210, 4, held(170) - Duration::from_micros(160)), Some(70));
    assert_eq!(answer(215, 19, held(0)), Some(25));
    writer.request_acknowledgement(at(300));
    send(&mut writer, at(300));
    acknowledge_nothing(&mut writer, at(305));
    assert_eq!(writer.round_trip_of(reader(1)), Some(held(25)), "what names no question measures nothing any more");
}

#[test]
fn only_readers_of_thalweg_name_questions() {
    let mut writer = writer(0);
    writer.match_reader(START, MatchedReader { vendor: VendorId::CYCLONE, ..matched_reader(1) });
    send(&mut writer, START);
    let asked = writer.heartbeat.lately_asked.latest().expect("it is greeted");
    let now = START + Duration::from_millis(5);
    name(&mut writer, now, asked, Duration::from_millis(4));
    assert_eq!(writer.round_trip_of(reader(1)), None);
    acknowledge_nothing(&mut writer, now);
    assert_eq!(writer.round_trip_of(reader(1)), Some(Duration::from_millis(5)));
}

/// A writer that keeps its three samples, which its one reader, of `vendor`, has acknowledged.
fn writer_of_three(vendor: VendorId) -> Writer {
    let (durability, transmission) = (Durability::TransientLocal, Transmission::by(Method::Immediate));
    let qos = WriterQos { durability, history: History::KeepLast(3), transmission, ..WriterQos::default() };
    let mut writer = Writer::new(writer(0).guid(), qos.into(), &WriterOptions::default());
    let wants = Arc::new(ReaderQos { durability, ..ReaderQos::default() });
    writer.match_reader(START, MatchedReader { vendor, qos: wants, batches: false, ..matched_reader(1) });
    send(&mut writer, START);
    acknowledge(&mut writer, START, 1, SequenceNumber(1), &[]);
    (0..3).for_each(|_| write(&mut writer, 8));
    send(&mut writer, START);
    acknowledge(&mut writer, START, 1, SequenceNumber(4), &[]);
    send(&mut writer, START);
    writer
}

/// How often the timer asks anybody within 100 s of `now`.
fn questions(writer: &mut Writer, now: Instant) -> usize {
    let mut asked = 0;
    while let Some(due) = writer.poll_timeout().filter(|due| *due <= now + Duration::from_secs(100)) {
        writer.handle_timeout(due);
        let told = sent_submessages(writer, due);
        asked += told.iter().filter(|told| matches!(told, Told::Heartbeat { .. })).count();
    }
    asked
}

#[test]
fn a_foreign_reader_that_begins_anew_is_asked_within_a_bound_until_it_has_everything_again() {
    let mut writer = writer_of_three(VendorId::FAST_DDS);
    assert_eq!(questions(&mut writer, START), 0);
    let at = |turn: u64| START + Duration::from_secs(200 * turn);
    let mut says = |turn, base, missing: &[i64]| {
        acknowledge(&mut writer, at(turn), 1, SequenceNumber(base), missing);
        send(&mut writer, at(turn));
        questions(&mut writer, at(turn))
    };
    assert_eq!(says(1, 1, &[1, 2, 3]), QUESTIONS_MAX as usize, "the repairs are lost");
    assert_eq!(says(2, 1, &[1, 2, 3]), 0, "it makes no progress");
    assert_eq!(says(3, 2, &[2, 3]), QUESTIONS_MAX as usize);
    assert_eq!(says(4, 4, &[]), 0);
    assert!(writer.counters().repaired >= 3, "what is kept is sent again");
}

#[test]
fn a_reader_of_thalweg_never_begins_anew() {
    let mut writer = writer_of_three(VendorId::THALWEG);
    let now = START + Duration::from_secs(200);
    acknowledge(&mut writer, now, 1, SequenceNumber(1), &[1]);
    send(&mut writer, now);
    assert_eq!(questions(&mut writer, now), 0);
}
