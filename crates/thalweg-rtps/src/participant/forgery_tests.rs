//! A forger that knows all GUIDs and addresses but receives nothing forges messages between a writer and a reader. The pair goes
//! on: all samples arrive, once and in order, and acknowledged samples were delivered.

use std::net::SocketAddr;
use std::time::Duration;

use super::tests::*;
use super::*;
use crate::payload::Payload;
use crate::qos::{Durability, History, ReaderQos, Reliability, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::types::{EntityId, Guid, Keyed, SequenceNumber};
use crate::wire::batch::{AckNackBatch, HeartbeatBatch};
use crate::wire::write::{self, DataFragHead, DataHead, DataKind};
use crate::wire::{
    AckNack, AskedBy, Echo, FragmentSet, Gap, Heartbeat, HeartbeatFrag, Lost, LostFrag, NackFrag, SequenceSet,
};
use crate::writer::Writer;

/// Numbers that are likely to do harm.
const NUMBERS: [i64; 16] = [
    i64::MIN,
    -1,
    0,
    1,
    2,
    5,
    600,
    60_000,
    1 << 16,
    (1 << 16) + 40,
    1 << 20,
    1 << 40,
    1 << 62,
    i64::MAX - 70_000,
    i64::MAX - 1,
    i64::MAX,
];
const COUNTS: [u32; 8] = [0, 1, 7, 1 << 16, 1 << 30, u32::MAX / 2, u32::MAX - 1, u32::MAX];

/// Node 0 writes, node 1 reads.
struct Pair {
    net: Net,
    writer: Shared<Writer>,
    reader: Shared<Reader>,
    written: u8,
    taken: Vec<u8>,
}

/// The two endpoints whose messages are forged.
#[derive(Clone, Copy)]
struct Ends {
    writer: Guid,
    reader: Guid,
}

impl Pair {
    fn new(durability: Durability) -> Pair {
        let mut net = Net::new(2);
        let writer = WriterQos { durability, ..reliable_writer(History::KeepAll) };
        let reader = ReaderQos { durability, ..reliable_reader(History::KeepAll) };
        let writer = net.writer(0, writer, Keyed::No);
        let reader = net.reader(1, reader, Keyed::No);
        net.run_for(SECOND);
        Pair { net, writer, reader, written: 0, taken: Vec::new() }
    }

    fn ends(&self) -> Ends {
        let writer = self.writer.lock().guid();
        Ends { writer, reader: self.reader.lock().guid() }
    }

    fn write(&mut self, count: u8) {
        for _ in 0..count {
            self.written += 1;
            // Every third is a large one.
            let size = if self.written.is_multiple_of(3) { 20_000 } else { 10 };
            let mut bytes = vec![0; size];
            bytes[0] = self.written;
            let writer = self.writer.clone();
            assert!(self.net.write(0, &writer, &bytes));
        }
    }

    /// Sends a datagram in the name of one node to the other, with that node's address as its source.
    fn forge(&mut self, from: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write::header(&mut bytes, self.net.nodes[from].participant.guid_prefix());
        fill(&mut bytes);
        let source = SocketAddr::from((self.net.nodes[from].address, 7411));
        let now = self.net.now;
        self.net.nodes[1 - from].participant.handle_datagram(now, &Payload::from(bytes), source);
    }

    /// Checks that acknowledged samples were delivered.
    #[track_caller]
    fn check_acknowledged(&mut self, context: &str) {
        let samples = take(&self.net, &self.reader);
        self.taken.extend(first_bytes(&samples));
        let written: Vec<u8> = (1..=self.written).collect();
        assert!(written.starts_with(&self.taken), "{context}: {:?} of {}", self.taken, self.written);
        let acknowledged = self.writer.lock().all_acknowledged();
        assert!(!acknowledged || self.taken.len() == written.len(), "{context}: {:?} of {}", self.taken, self.written);
    }

    /// Checks that all samples are delivered a while after the last forgery.
    #[track_caller]
    fn check_settles(&mut self, context: &str) {
        self.write(4);
        self.net.run_for(SECOND * 20);
        self.check_acknowledged(context);
        assert!(self.writer.lock().all_acknowledged(), "{context}: {:?} of {}", self.taken, self.written);
        let before = self.net.sent.len();
        self.net.run_for(SECOND * 20);
        let sent = self.net.sent.len() - before;
        assert!(sent < 60, "{context}: {sent} datagrams although all is said");
    }
}

fn heartbeat(ends: Ends, first: i64, last: i64, count: u32) -> Heartbeat {
    let (first, last) = (SequenceNumber(first), SequenceNumber(last));
    let (reader, writer) = (EntityId::UNKNOWN, ends.writer.entity);
    Heartbeat { reader, writer, first, last, count, is_final: false, liveliness: false }
}

fn gap(out: &mut Vec<u8>, ends: Ends, start: i64, end: i64) {
    let list = SequenceSet::new(SequenceNumber(end));
    let (reader, writer, start) = (EntityId::UNKNOWN, ends.writer.entity, SequenceNumber(start));
    write::gap(out, &Gap { reader, writer, start, list });
}

fn data(out: &mut Vec<u8>, ends: Ends, sequence: i64) {
    let (reader, writer, sequence) = (EntityId::UNKNOWN, ends.writer.entity, SequenceNumber(sequence));
    write::data(out, &DataHead { reader, writer, sequence, inline_qos: &[], kind: DataKind::Data }, 8);
    out.extend([0, 1, 0, 0, 0xee, 0xee, 0xee, 0xee]);
}

fn fragment(out: &mut Vec<u8>, ends: Ends, sequence: i64, sample_size: u32) {
    let (reader, writer, sequence) = (EntityId::UNKNOWN, ends.writer.entity, SequenceNumber(sequence));
    let (first_fragment, fragments, fragment_size) = (2, 1, 1_000);
    let inline_qos = &[];
    let head = DataFragHead {
        reader,
        writer,
        sequence,
        first_fragment,
        fragments,
        fragment_size,
        sample_size,
        inline_qos,
        key: false,
    };
    write::data_frag(out, &head, 1_000);
    out.extend([0xee; 1_000]);
}

/// Appends a message that the writer never sent. It names no numbers that are about to be used, which only a listener knows.
fn lie_as_writer(out: &mut Vec<u8>, rng: &mut Rng, ends: Ends) {
    let mut number = || NUMBERS[rng.below(NUMBERS.len() as u64) as usize];
    let (one, other) = (number(), number());
    let (low, high) = (one.min(other), one.max(other));
    let count = COUNTS[rng.below(COUNTS.len() as u64) as usize];
    match rng.below(7) {
        0 => write::heartbeat(out, &heartbeat(ends, low, high, count)),
        1 => write::heartbeat(out, &heartbeat(ends, high, high.saturating_sub(1), count)),
        2 => gap(out, ends, low, high),
        3 => data(out, ends, if one < 600 { 1 } else { one }),
        4 => fragment(out, ends, one, [2_000, 20_004, 1 << 29][rng.below(3) as usize]),
        5 => {
            let (reader, writer, sequence) = (EntityId::UNKNOWN, ends.writer.entity, SequenceNumber(one));
            write::heartbeat_frag(out, &HeartbeatFrag { reader, writer, sequence, last_fragment: count, count });
        }
        _ => {
            let (first_batch, last_batch) = (SequenceNumber(low), SequenceNumber(high));
            write::heartbeat_batch(
                out,
                &HeartbeatBatch { first_batch, last_batch, heartbeat: heartbeat(ends, low, high, count) },
            );
        }
    }
}

/// Appends a message that the reader never sent.
fn lie_as_reader(out: &mut Vec<u8>, rng: &mut Rng, ends: Ends) {
    let number = SequenceNumber(NUMBERS[rng.below(NUMBERS.len() as u64) as usize]);
    let count = COUNTS[rng.below(COUNTS.len() as u64) as usize];
    let mut state = SequenceSet::new(number);
    if rng.chance(0.5) {
        (0..200).for_each(|offset| _ = state.insert(number + offset));
    }
    let (reader, writer, is_final) = (ends.reader.entity, ends.writer.entity, rng.chance(0.5));
    match rng.below(6) {
        0 => write::acknack(out, &AckNack { reader, writer, state, count, is_final }),
        1 => write::acknack_batch(out, &AckNackBatch { reader, writer, state, count, is_final }),
        2 => write::lost(out, &Lost { reader, writer, numbers: state }),
        3 => {
            let mut state = FragmentSet::new(1);
            state.insert(count.min(200));
            let lost = LostFrag { reader, writer, sequence: number, fragment_size: 1_000, state, rest: is_final };
            write::lost_frag(out, &lost);
        }
        4 => {
            let asked_by = if is_final { AskedBy::Heartbeat(count) } else { AskedBy::HeartbeatFrag(count) };
            let held_micros = COUNTS[rng.below(COUNTS.len() as u64) as usize];
            write::echo(out, &Echo { reader, writer, asked_by, held_micros });
        }
        _ => {
            let mut state = FragmentSet::new(count);
            state.insert(count);
            write::nack_frag(out, &NackFrag { reader, writer, sequence: number, state, count });
        }
    }
}

/// One datagram of the writer's participant.
type Forgery = fn(&mut Vec<u8>, Ends);

const FORGERIES: [(&str, Forgery); 14] = [
    ("a GAP to 2^40", |out, ends| gap(out, ends, 1, 1 << 40)),
    ("a GAP to the end of numbers", |out, ends| gap(out, ends, 1, i64::MAX)),
    ("a GAP over the next 60,000", |out, ends| gap(out, ends, 1, 60_000)),
    ("GAPs in a row", |out, ends| (1..2_000).for_each(|step| gap(out, ends, 1, step * 60_000))),
    ("GAPs and samples in turns", |out, ends| {
        for step in 1..100 {
            gap(out, ends, 1, step * 1_000);
            data(out, ends, step * 1_000);
        }
    }),
    ("a first number of 2^40", |out, ends| write::heartbeat(out, &heartbeat(ends, 1 << 40, 1 << 40, 1 << 30))),
    ("a first number of 2^40, twice", |out, ends| {
        (1 << 30..(1 << 30) + 2).for_each(|count| write::heartbeat(out, &heartbeat(ends, 1 << 40, 1 << 40, count)));
    }),
    ("a last number of 2^62", |out, ends| write::heartbeat(out, &heartbeat(ends, 1, 1 << 62, 1 << 30))),
    ("a last number of 2^62, and what was before it gone", |out, ends| {
        write::heartbeat(out, &heartbeat(ends, 1, 1 << 62, 1 << 30));
        write::heartbeat(out, &heartbeat(ends, 1 << 62, 1 << 62, (1 << 30) + 1));
    }),
    ("a huge count", |out, ends| write::heartbeat(out, &heartbeat(ends, 1, 1, u32::MAX / 2))),
    ("a sample with number 2^40", |out, ends| data(out, ends, 1 << 40)),
    ("a sample with number 60,000", |out, ends| data(out, ends, 60_000)),
    ("a part of a sample to come, of another size", |out, ends| fragment(out, ends, 6, 1 << 29)),
    ("a part of a sample to come, which is whole", |out, ends| fragment(out, ends, 7, 1 << 20)),
];

#[test]
fn one_forged_datagram_changes_nothing_that_lasts() {
    for durability in [Durability::Volatile, Durability::TransientLocal] {
        for (name, forgery) in FORGERIES {
            let mut pair = Pair::new(durability);
            let ends = pair.ends();
            pair.write(5);
            pair.net.run_for(SECOND);
            pair.forge(0, |out| forgery(out, ends));
            for _ in 0..3 {
                pair.write(5);
                pair.net.run_for(SECOND / 10);
                let injected = take(&pair.net, &pair.reader).into_iter().map(|sample| sample.payload[4]);
                pair.taken.extend(injected.filter(|byte| *byte != 0xee));
                pair.check_acknowledged(name);
            }
            pair.check_settles(name);
            assert_eq!(pair.reader.lock().counters().lost, 0, "{name}");
        }
    }
}

#[test]
fn the_pair_goes_on_at_once() {
    for (name, forgery) in FORGERIES {
        let mut pair = Pair::new(Durability::Volatile);
        let ends = pair.ends();
        pair.write(5);
        pair.net.run_for(SECOND);
        pair.forge(0, |out| forgery(out, ends));
        pair.write(2);
        pair.net.run_for(SECOND);
        let injected = take(&pair.net, &pair.reader).into_iter().map(|sample| sample.payload[4]);
        pair.taken.extend(injected.filter(|byte| *byte != 0xee));
        assert_eq!(pair.taken.len(), 7, "{name}: within a second");
    }
}

#[test]
fn whatever_is_forged_everything_settles_afterwards() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut pair = Pair::new([Durability::Volatile, Durability::TransientLocal][seed as usize % 2]);
        let ends = pair.ends();
        for _ in 0..4 {
            pair.write(5 + rng.below(5) as u8);
            pair.net.run_for(SECOND * 2);
            for _ in 0..1 + rng.below(4) {
                let submessages = 1 + rng.below(3);
                match rng.below(3) {
                    0 => pair.forge(1, |out| (0..submessages).for_each(|_| lie_as_reader(out, &mut rng, ends))),
                    _ => pair.forge(0, |out| (0..submessages).for_each(|_| lie_as_writer(out, &mut rng, ends))),
                }
                pair.net.run_for(Duration::from_micros(rng.below(3_000)));
            }
            pair.check_acknowledged_beside_injected(&format!("seed {seed}"));
        }
        pair.check_settles(&format!("seed {seed}"));
    }
}

impl Pair {
    /// As [`Pair::check_acknowledged`], without samples that the forger made up.
    #[track_caller]
    fn check_acknowledged_beside_injected(&mut self, context: &str) {
        let samples = take(&self.net, &self.reader);
        self.taken.extend(first_bytes(&samples).into_iter().filter(|byte| *byte != 0xee));
        self.check_acknowledged(context);
    }
}

#[test]
fn discovery_is_not_blinded() {
    let pairs = [EntityId::PUBLICATIONS_WRITER, EntityId::SUBSCRIPTIONS_WRITER];
    for (name, forgery) in FORGERIES {
        let mut net = Net::new(2);
        net.run_for(SECOND);
        for writer in pairs {
            let prefix = net.nodes[0].participant.guid_prefix();
            let ends = Ends { writer: Guid::new(prefix, writer), reader: Guid::UNKNOWN };
            let mut bytes = Vec::new();
            write::header(&mut bytes, prefix);
            forgery(&mut bytes, ends);
            let source = SocketAddr::from((net.nodes[0].address, 7411));
            let now = net.now;
            net.nodes[1].participant.handle_datagram(now, &Payload::from(bytes), source);
        }
        let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
        net.run_for(SECOND * 5);
        assert_eq!(writer.lock().matched_readers().len(), 1, "{name}");
        assert_eq!(reader.lock().matched_writers().len(), 1, "{name}");
        net.write(0, &writer, &[1]);
        net.run_for(SECOND);
        assert_eq!(first_bytes(&take(&net, &reader)), [1], "{name}");
    }
}

#[test]
fn best_effort_readers_are_not_blinded() {
    for far in [100, 60_000, 1 << 20, 1 << 40, i64::MAX] {
        let mut net = Net::new(2);
        let qos = WriterQos { reliability: Reliability::BestEffort, ..reliable_writer(History::KeepLast(1)) };
        let writer = net.writer(0, qos, Keyed::No);
        let qos = ReaderQos { reliability: Reliability::BestEffort, ..reliable_reader(History::KeepAll) };
        let reader = net.reader(1, qos, Keyed::No);
        net.run_for(SECOND);
        let mut pair = Pair { net, writer, reader, written: 0, taken: Vec::new() };
        let ends = pair.ends();
        for step in 0..60u8 {
            let writer = pair.writer.clone();
            assert!(pair.net.write(0, &writer, &[step]));
            pair.net.run_for(SECOND / 10);
            if step == 10 {
                pair.forge(0, |out| data(out, ends, far));
                pair.forge(0, |out| data(out, ends, far.saturating_add(1)));
            }
        }
        let mut taken = first_bytes(&take(&pair.net, &pair.reader));
        taken.retain(|byte| *byte != 0xee);
        assert!(taken.ends_with(&(32..60).collect::<Vec<u8>>()), "{far}: {taken:?}");
    }
}
