//! Laws of a writer's timers: what the summaries lead to is what a look at every reader would, at the cost of those that are due.

use std::sync::Arc;
use std::time::Duration;

use super::flow::Position;
use super::reader_proxy::{MatchedReader, ReaderProxy};
use super::reader_set::ReaderSet;
use super::reader_set_tests::{change, proxy};
use super::tests::{START, acknowledge, matched_reader, patient_writer, reader, run_until_given_up, write};
use super::timers::{AskRule, NextQuestion};
use super::{Writer, WriterOptions, WriterOutcome};
use crate::outbox::Outbox;
use crate::qos::{History, Method, Transmission, WriterQos};
use crate::rng::Rng;
use crate::time::{INFINITE, Instant};
use crate::types::{EntityId, Guid, GuidPrefix, Keyed, SequenceNumber, VendorId};

fn rule(rng: &mut Rng) -> AskRule {
    let sent = Position { sample: SequenceNumber(rng.below(50) as i64), fragments: rng.below(3) as u32 };
    let now = START + Duration::from_millis(rng.below(5_000));
    AskRule {
        now,
        last: SequenceNumber(sent.sample.0 + i64::from(sent.fragments > 0) + rng.below(3) as i64),
        sent,
        all_asked: START + Duration::from_millis(rng.below(5_000)),
        uses_group: rng.chance(0.5),
        longest: Duration::from_millis(80 + rng.below(3_000)),
        crowd: Duration::from_micros(rng.below(30_000)),
    }
}

fn exact(rule: &AskRule, reader: &ReaderProxy) -> Instant {
    match rule.question(reader) {
        NextQuestion::At { due, .. } => due,
        _ => Instant::NEVER,
    }
}

#[test]
fn timers_lead_to_every_reader_that_is_due_and_to_the_next_one() {
    let (mut due, mut later) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut set = ReaderSet::new();
        (0..1 + rng.below(40)).for_each(|number| set.insert(proxy(reader(number as u8), &mut rng)));
        for step in 0..200 {
            let guid = reader(rng.below(set.len() as u64) as u8);
            let mut changed = set.get_mut(guid).expect("it is known");
            change(&mut changed, &mut rng, step);
            let at = |rng: &mut Rng| START + Duration::from_millis(rng.below(5_000));
            match rng.below(4) {
                0 => changed.last_heard = at(&mut rng),
                1 => changed.asking.at = at(&mut rng),
                2 => changed.asking.pause = Duration::from_millis(20 << rng.below(8)),
                _ => changed.behind_since = rng.chance(0.5).then(|| at(&mut rng)),
            }
            drop(changed);
            let rule = rule(&mut rng);
            let is_due = |reader: &&ReaderProxy| {
                let owes_news = reader.behind_since.is_none() && reader.owes_beyond() < rule.sent;
                exact(&rule, reader) <= rule.now || reader.is_awaited() && owes_news
            };
            let expected: Vec<_> = set.iter().filter(is_due).map(|reader| reader.matched.guid).collect();
            let mut reached = Vec::new();
            set.change(|readers, timers| rule.is_due(readers, timers), |reader| reached.push(reader.matched.guid));
            assert!(expected.iter().all(|guid| reached.contains(guid)), "{rule:?}");
            let first = set.iter().map(|reader| exact(&rule, reader)).min().expect("there are readers");
            assert_eq!(
                set.earliest(|readers, timers| rule.bound(readers, timers), |reader| exact(&rule, reader)),
                first,
                "{rule:?}"
            );
            (due, later) = (due + expected.len(), later + usize::from(first != Instant::NEVER));
        }
    }
    assert!(due > 1_000 && later > 1_000, "{due} are due, {later} times there is a next one");
}

/// A writer with so many readers behind one address, all of which have answered.
fn crowd(readers: u8) -> Writer {
    let mut writer = patient_writer(INFINITE);
    let mut outbox = Outbox::default();
    for number in 1..=readers {
        writer.match_reader(START, MatchedReader { unicast: matched_reader(1).unicast, ..matched_reader(number) });
        acknowledge(&mut writer, START, number, SequenceNumber::FIRST, &[]);
        writer.poll_transmit(START, &mut outbox);
        outbox.clear();
    }
    writer
}

/// A sample was written that all have acknowledged but the first one.
fn crowd_that_waits_for_one(readers: u8) -> Writer {
    let mut writer = crowd(readers);
    write(&mut writer, 10);
    writer.poll_transmit(START, &mut Outbox::default());
    let next = writer.last().next();
    (2..=readers).for_each(|number| _ = acknowledge(&mut writer, START, number, next, &[]));
    writer
}

/// The next timeout: what it gave, and how many readers it looked at.
fn time_out(writer: &mut Writer) -> (WriterOutcome, usize) {
    let now = writer.poll_timeout().expect("the first reader owes an acknowledgement");
    writer.readers.looks.set(0);
    let outcome = writer.handle_timeout(now);
    let looks = writer.readers.looks.get();
    writer.poll_transmit(now, &mut Outbox::default());
    (outcome, looks)
}

#[test]
fn a_timeout_looks_at_the_readers_that_are_due_and_not_at_all() {
    let mut writer = crowd_that_waits_for_one(240);
    for _ in 0..12 {
        let (_, looks) = time_out(&mut writer);
        assert!(looks <= 5, "{looks} of 240 readers");
    }
    assert_eq!(writer.silent_readers().collect::<Vec<_>>(), [reader(1)], "it was asked");
}

#[test]
fn a_reader_that_owes_an_acknowledgement_is_asked_again_after_the_heartbeat_period_of_the_writer() {
    for period in [1, 20, 500].map(Duration::from_millis) {
        let transmission = Transmission { heartbeat_period: period, ..Transmission::by(Method::Immediate) };
        let qos = WriterQos { transmission, history: History::KeepAll, ..WriterQos::default() };
        let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
        let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
        let round_trip = Duration::from_micros(100);
        writer.match_reader(START, MatchedReader { round_trip, ..matched_reader(1) });
        acknowledge(&mut writer, START, 1, SequenceNumber::FIRST, &[]);
        writer.poll_transmit(START, &mut Outbox::default());
        write(&mut writer, 10);
        writer.poll_transmit(START, &mut Outbox::default());
        let first = asked_after(&mut writer, START);
        assert!(first <= period, "{first:?} with a period of {period:?}");
        let second = asked_after(&mut writer, START + first);
        assert!(second >= period && second <= period * 2, "{second:?} with a period of {period:?}");
    }
}

/// How long after `now`, at the latest, reader 1 is asked.
fn asked_after(writer: &mut Writer, now: Instant) -> Duration {
    let mut at = now;
    let before = writer.counters().heartbeats;
    while writer.counters().heartbeats == before {
        at = writer.poll_timeout().expect("it owes an acknowledgement");
        writer.handle_timeout(at);
        writer.poll_transmit(at, &mut Outbox::default());
    }
    at.since(now)
}

#[test]
fn a_reader_that_is_back_is_asked_again_soon_although_it_has_come_no_further() {
    let mut writer = crowd_that_waits_for_one(1);
    let mut now = START;
    while now < START + Duration::from_secs(30) {
        now += asked_after(&mut writer, now);
    }
    assert_eq!(asked_after(&mut writer, now), Duration::from_secs(3), "it was silent for long");
    now += Duration::from_secs(3);
    (0..3).for_each(|_| _ = acknowledge(&mut writer, now, 1, SequenceNumber(1), &[1]));
    writer.poll_transmit(now, &mut Outbox::default());
    let after = asked_after(&mut writer, now);
    assert!(after < Duration::from_millis(400), "it asks again and again, and its writer only after {after:?}");
}

#[test]
fn discovery_asks_a_silent_reader_at_least_once_a_second() {
    for (entity, pause) in [(EntityId::PUBLICATIONS_WRITER, 1), (EntityId::user_writer(1, Keyed::No), 3)] {
        let guid = Guid::new(GuidPrefix([99; 12]), entity);
        let mut writer = Writer::new(guid, Arc::default(), &WriterOptions::default());
        writer.match_reader(START, matched_reader(1));
        writer.poll_transmit(START, &mut Outbox::default());
        let (mut now, mut longest) = (START, Duration::ZERO);
        for _ in 0..15 {
            let pause = asked_after(&mut writer, now);
            (now, longest) = (now + pause, longest.max(pause));
        }
        assert_eq!(longest, Duration::from_secs(pause), "{entity:?}");
    }
}

/// It has no way to say that a part of the sample has come.
#[test]
fn a_reader_that_acknowledges_no_parts_is_not_given_up_while_a_large_sample_is_sent() {
    let reader_patience = Duration::from_secs(1);
    let transmission = Transmission::by(Method::asynchronous("slow"));
    let qos = WriterQos { transmission, history: History::KeepAll, reader_patience, ..WriterQos::default() };
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::No));
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    let (vendor, receive_buffer_bytes) = (VendorId::CYCLONE, None);
    writer.match_reader(START, MatchedReader { vendor, receive_buffer_bytes, batches: false, ..matched_reader(1) });
    acknowledge(&mut writer, START, 1, SequenceNumber::FIRST, &[]);
    write(&mut writer, 1_000_000);
    let (mut now, mut outbox) = (START, Outbox::new());
    while writer.outgoing.place.sample == SequenceNumber(1) {
        now += Duration::from_millis(50);
        assert!(now.since(START) < Duration::from_secs(60), "it stands at {:?}", writer.outgoing.place);
        outbox.clear();
        writer.poll_transmit_within(now, 12_000, &mut outbox);
        if writer.poll_timeout().is_some_and(|due| due <= now) {
            assert_eq!(writer.handle_timeout(now).given_up, None, "after {:?}", now.since(START));
        }
        acknowledge(&mut writer, now, 1, SequenceNumber(1), &[]);
    }
    assert!(now.since(START) > reader_patience * 4, "it takes long: {:?}", now.since(START));
    assert_eq!(writer.counters().transmitted, 1_000_000_u64.div_ceil(1_304), "all of it has left");
    let (given_up, at) = run_until_given_up(&mut writer);
    let after = at.since(now);
    assert!(given_up == reader(1) && after >= reader_patience, "it may acknowledge the whole one: {after:?}");
}

#[test]
fn a_timeout_that_gives_one_reader_up_does_not_look_at_all() {
    let mut writer = crowd_that_waits_for_one(240);
    Arc::make_mut(&mut writer.qos).reader_patience = Duration::from_millis(10);
    let given_up = (0..10).find_map(|_| {
        let (outcome, looks) = time_out(&mut writer);
        assert!(looks <= 6, "{looks} of 240 readers");
        outcome.given_up
    });
    assert_eq!(given_up, Some(reader(1)));
}
