//! Laws of the reader set: what its summaries say is what a look at every reader would.

use std::time::Duration;

use super::congestion::{self, Answered};
use super::flow::{Position, RECEIVE_BUFFER_ASSUMED_BYTES};
use super::loss::Loss;
use super::reader_proxy::{MatchedReader, Owed, ReaderProxy};
use super::reader_set::{PathBounds, ReaderSet};
use super::tests::{START, acknowledge, matched_reader, patient_writer, reader, write};
use crate::outbox::Outbox;
use crate::qos::Transmission;
use crate::rng::Rng;
use crate::time::INFINITE;
use crate::types::{Guid, SequenceNumber, VendorId};

pub(super) fn proxy(guid: Guid, rng: &mut Rng) -> ReaderProxy {
    let mut matched = matched_reader(1);
    matched.guid = guid;
    matched.reliable = !rng.chance(0.2);
    matched.on_this_host = rng.chance(0.5);
    matched.vendor = if rng.chance(0.8) { VendorId::THALWEG } else { VendorId::CYCLONE };
    matched.receive_buffer_bytes = rng.chance(0.7).then(|| rng.below(1_000) as u32);
    let joined = SequenceNumber(rng.below(20) as i64);
    ReaderProxy::new(START, matched, SequenceNumber::FIRST, joined, Transmission::default().heartbeat_period)
}

pub(super) fn change(reader: &mut ReaderProxy, rng: &mut Rng, step: u64) {
    match rng.below(8) {
        0 => {
            reader.acknowledged =
                Position { sample: SequenceNumber(rng.below(50) as i64), fragments: rng.below(3) as u32 }
        }
        1 => reader.active = !reader.active,
        2 => reader.owed = if reader.owed == Owed::Nothing { Owed::Heartbeat } else { Owed::Nothing },
        3 => reader.proven = true,
        4 => reader.round_trip.measured(Duration::from_micros(rng.below(1_000))),
        5 => {
            // A path that loses more or less of a megabyte a step.
            let (now, sent) = (START + Duration::from_millis(100 * step), step << 20);
            let took = Some(Duration::from_millis(1 + rng.below(20)));
            let answer =
                Answered { sent, busy_since: (START, 0), reached: Some(sent), took, repaired: None, window: 1 << 20 };
            reader.note_loss(Loss::datagrams(rng.below(400), congestion::DATAGRAM));
            reader.adapt_path(now, &answer, Position::default());
        }
        6 => reader.repairs.samples.add_gone(SequenceNumber(1 + rng.below(50) as i64)),
        _ => reader.repairs = Default::default(),
    }
}

/// What the set says of all its readers, against a look at each of them.
#[track_caller]
fn check(set: &ReaderSet) {
    let told = set.summary();
    let all = || set.iter();
    let awaited = || set.iter().filter(|reader| reader.is_awaited());
    let following = || set.iter().filter(|reader| reader.is_up_to_date());
    let buffer = |reader: &ReaderProxy| reader.matched.receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER_ASSUMED_BYTES);
    assert_eq!(told.reliable, all().filter(|reader| reader.matched.reliable).map(|r| r.acknowledged.sample).min());
    assert_eq!(told.slowest, awaited().map(|reader| reader.acknowledged).min());
    assert_eq!(told.furthest, awaited().map(|reader| reader.acknowledged).max());
    assert_eq!(told.following, following().map(|reader| reader.acknowledged).min());
    assert_eq!(told.round_trip, awaited().map(|reader| reader.round_trip.estimate()).max().unwrap_or_default());
    assert_eq!(told.receive_buffer, awaited().map(buffer).min());
    assert_eq!(told.shared_buffer(), following().map(buffer).min().or(awaited().map(buffer).min()));
    assert_eq!(told.unacknowledged_buffer, all().filter(|reader| !reader.matched.reliable).map(buffer).min());
    assert_eq!(told.awaited_count as usize, awaited().count());
    assert_eq!(told.any.given_up, all().any(ReaderProxy::is_given_up));
    assert_eq!(told.any.unproved, all().any(ReaderProxy::must_prove_itself));
    assert_eq!(told.any.elsewhere, awaited().any(|reader| !reader.matched.on_this_host));
    assert_eq!(told.any.whole_only, awaited().any(|reader| !reader.matched.vendor.traits().confirms_fragments));
    let shared: Vec<&ReaderProxy> =
        if following().next().is_some() { following().collect() } else { awaited().collect() };
    let paths = || shared.iter().filter_map(|reader| reader.congestion.as_ref());
    let window = paths().map(|path| path.window()).min().unwrap_or(u64::MAX);
    let interval = paths().map(|path| path.interval()).min().unwrap_or(u64::MAX);
    assert_eq!(told.shared_paths(), PathBounds { window, interval, paced: paths().any(|path| path.is_paced()) });
    for from in 0..=set.len() + 1 {
        let owed = (from..set.len()).find(|place| set.at(*place).owed != Owed::Nothing);
        assert_eq!(set.next_with(from, |any| any.owed), owed, "from {from} of {}", set.len());
        let repairs = (from..set.len()).find(|place| !set.at(*place).repairs.is_empty());
        assert_eq!(set.next_with(from, |any| any.repairs), repairs, "from {from} of {}", set.len());
    }
}

#[test]
fn summaries_say_what_a_look_at_every_reader_says() {
    let mut paced = 0;
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let mut set = ReaderSet::new();
        let most = 1 + rng.below(40);
        for step in 1..400 {
            let guid = reader(rng.below(most) as u8);
            match (rng.below(6), set.get(guid).is_some()) {
                (_, false) => set.insert(proxy(guid, &mut rng)),
                (0, true) => {
                    assert_eq!(set.remove(guid).map(|gone| gone.matched.guid), Some(guid));
                    assert!(set.get(guid).is_none() && set.remove(guid).is_none());
                }
                (1, true) => set.change(|_, _| true, |reader| change(reader, &mut rng, step)),
                (_, true) => change(&mut set.get_mut(guid).expect("it is known"), &mut rng, step),
            }
            check(&set);
            paced += usize::from(set.summary().shared_paths().paced);
            assert!(
                set.iter().all(|reader| set.get(reader.matched.guid).is_some_and(|found| std::ptr::eq(found, reader)))
            );
        }
    }
    assert!(paced > 1_000, "paths differ in {paced} steps only");
}

/// How many readers are looked at while a sample is written and sent and its first answer comes.
fn looks_of_a_round(readers: u8) -> usize {
    let mut writer = patient_writer(INFINITE);
    let mut outbox = Outbox::default();
    for number in 1..=readers {
        // All behind one address: copies to each would cost each.
        writer.match_reader(START, MatchedReader { unicast: matched_reader(1).unicast, ..matched_reader(number) });
        acknowledge(&mut writer, START, number, SequenceNumber::FIRST, &[]);
        writer.poll_transmit(START, &mut outbox);
        outbox.clear();
    }
    writer.readers.looks.set(0);
    write(&mut writer, 10);
    writer.poll_transmit(START, &mut outbox);
    let next = writer.last().next();
    acknowledge(&mut writer, START, 1, next, &[]);
    assert!(!outbox.is_empty(), "the sample was sent");
    writer.readers.looks.get()
}

#[test]
fn a_sample_and_its_first_answer_look_at_no_more_readers_of_hundreds_than_of_a_dozen() {
    let (few, many) = (looks_of_a_round(12), looks_of_a_round(240));
    assert!(many <= few && few < 12, "{many} looks with 240 readers, {few} with 12");
}
