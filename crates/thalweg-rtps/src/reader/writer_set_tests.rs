//! Laws of the writer set: it finds those that a look at every writer would, in the order of GUIDs, and looks at no other.

use std::time::Duration;

use super::tests::{WRITER, matched_writer, number, sample};
use super::{MatchedWriter, Reader, ReassemblyBudget};
use crate::history::ReadFilter;
use crate::outbox::Outbox;
use crate::qos::{History, ReaderQos, Reliability, ResourceLimits};
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, Keyed};
use crate::wire::Heartbeat;

const START: Instant = Instant::from_nanos(1_000_000_000);

fn writer(number: u8) -> Guid {
    Guid::new(GuidPrefix([number; 12]), WRITER.entity)
}

/// A reader of so many reliable writers, which has room for a few samples.
fn reader(writers: u8, samples_max: u32) -> Reader {
    let guid = Guid::new(GuidPrefix([0xee; 12]), EntityId::user_reader(1, Keyed::No));
    let qos = ReaderQos {
        reliability: Reliability::Reliable { max_blocking_time: Duration::ZERO },
        history: History::KeepAll,
        resource_limits: ResourceLimits { max_samples: Some(samples_max), ..ResourceLimits::default() },
        ..ReaderQos::default()
    };
    let mut reader = Reader::new(guid, qos.into(), Keyed::No, ReassemblyBudget::new(1 << 20));
    for number in 0..writers {
        reader.match_writer(START, MatchedWriter { guid: writer(number), ..matched_writer() });
    }
    reader
}

fn heartbeat(reader: &mut Reader, now: Instant, from: u8, last: i64, count: u32) {
    let (first, last) = (number(1), number(last));
    let (to, writer_id) = (reader.guid().entity, WRITER.entity);
    let heartbeat = Heartbeat { reader: to, writer: writer_id, first, last, count, is_final: false, liveliness: false };
    reader.handle_heartbeat(now, writer(from), &heartbeat);
}

/// The participant that INFO_DST, the first submessage, names.
fn destination(datagram: &[u8]) -> GuidPrefix {
    GuidPrefix(datagram[24..36].try_into().expect("INFO_DST"))
}

#[track_caller]
fn check(reader: &mut Reader, outbox: &mut Outbox, now: Instant) {
    outbox.clear();
    let due = || reader.writers.iter().filter(|writer| writer.requests.due.is_some_and(|due| due <= now));
    let mut answered: Vec<_> = due().map(|writer| writer.matched.guid.prefix).collect();
    answered.sort();
    let is_due = reader.poll_timeout().is_some_and(|due| due <= now);
    reader.poll_transmit(now, outbox);
    if is_due {
        let destinations: Vec<_> = outbox.datagrams().map(|datagram| destination(&datagram.to_vec())).collect();
        assert_eq!(destinations, answered, "all that were due, in the order of GUIDs");
        let next = reader.writers.iter().filter_map(|writer| writer.requests.due).min();
        assert_eq!(reader.poll_timeout(), next, "the next one, and not that of a writer that went");
    } else {
        assert!(outbox.is_empty(), "nothing was due");
    }
    let holding = reader.writers.iter().filter(|writer| !writer.window.is_empty()).count();
    assert_eq!(reader.writers.holding().count(), holding, "those that hold samples are found");
    let mut moved = Vec::new();
    let expected = reader.writers.iter().filter(|writer| writer.moves_on());
    let mut expected: Vec<_> = expected.map(|writer| writer.matched.guid).collect();
    expected.sort();
    reader.writers.move_on(|writer| {
        moved.push(writer.matched.guid);
        None
    });
    assert_eq!(moved, expected, "what waits for room is found, in the order of GUIDs");
}

#[test]
fn a_search_finds_the_writers_that_a_look_at_every_one_finds() {
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let mut reader = reader(12, 5);
        let (mut now, mut count, mut outbox, mut taken) = (START, 0, Outbox::default(), Vec::new());
        for _ in 0..300 {
            now += Duration::from_micros(rng.below(20_000));
            let from = rng.below(12) as u8;
            count += 1;
            match rng.below(6) {
                0 => heartbeat(&mut reader, now, from, 1 + rng.below(20) as i64, count),
                1 | 2 => {
                    let arrivals = [sample(1 + rng.below(12) as i64)];
                    reader.handle_arrivals(now, writer(from), arrivals.into_iter());
                }
                3 => {
                    reader.take(|| now, 3, &ReadFilter::ALL, &mut taken);
                }
                4 if rng.chance(0.5) => {
                    reader.unmatch_writer(now, writer(from));
                }
                _ => reader.match_writer(now, MatchedWriter { guid: writer(from), ..matched_writer() }),
            }
            check(&mut reader, &mut outbox, now);
        }
    }
}

#[test]
fn an_answer_to_one_writer_costs_no_look_at_the_others() {
    let mut reader = reader(200, 1_000);
    let (mut now, mut outbox) = (START, Outbox::default());
    reader.poll_transmit(now, &mut outbox);
    (0..200).for_each(|from| heartbeat(&mut reader, now, from, 0, 1));
    reader.poll_transmit(now, &mut outbox);
    for count in 2..20 {
        now += Duration::from_secs(1);
        outbox.clear();
        heartbeat(&mut reader, now, 7, 3, count);
        reader.writers.looks().set(0);
        reader.poll_transmit(now, &mut outbox);
        let looks = reader.writers.looks().get();
        assert!(looks <= 4 && !outbox.is_empty(), "{looks} of 200 writers");
    }
}

#[test]
fn room_that_a_take_made_costs_a_look_at_the_writers_that_wait_for_it() {
    let mut reader = reader(200, 1);
    let (now, mut taken) = (START, Vec::new());
    for sequence in [1, 2] {
        reader.handle_arrivals(now, writer(7), [sample(sequence)].into_iter());
    }
    reader.writers.looks().set(0);
    reader.take(|| now, 1, &ReadFilter::ALL, &mut taken);
    let looks = reader.writers.looks().get();
    assert!(looks <= 12, "{looks} looks with 200 writers");
    assert_eq!(reader.cache().len(), 1, "the next sample has come up");
}
