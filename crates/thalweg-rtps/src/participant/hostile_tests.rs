//! A hostile participant can only waste its own datagrams: memory stays bounded, refusals are counted, nothing panics and the
//! healthy peers notice nothing.

use std::net::SocketAddr;

use super::tests::*;
use super::*;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::participant_data::ParticipantData;
use crate::payload::Payload;
use crate::qos::History;
use crate::types::{EntityId, Guid, Keyed, SequenceNumber};
use crate::wire::write::{self, DataFragHead, DataHead, DataKind};
use crate::wire::{Gap, Heartbeat, HeartbeatFrag, SequenceSet, parameters};

/// Node 0 writes to node 1; node 2 is matched with the same reader and hostile.
struct Attack {
    net: Net,
    healthy: crate::shared::Shared<crate::writer::Writer>,
    reader: crate::shared::Shared<crate::reader::Reader>,
    attacker: Guid,
    written: u8,
}

impl Attack {
    fn new() -> Attack {
        let mut net = Net::new(3);
        let healthy = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let hostile = net.writer(2, reliable_writer(History::KeepAll), Keyed::No);
        let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
        net.run_for(SECOND);
        let attacker = hostile.lock().guid();
        Attack { net, healthy, reader, attacker, written: 0 }
    }

    /// Sends submessages in the name of the hostile writer.
    fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write::header(&mut bytes, self.attacker.prefix);
        fill(&mut bytes);
        let source = SocketAddr::from(([10, 0, 0, 3], 7411));
        let now = self.net.now;
        self.net.nodes[1].participant.handle_datagram(now, &Payload::from(bytes), source);
    }

    fn data(&mut self, sequence: i64, len: usize) {
        let writer = self.attacker.entity;
        self.send(|out| {
            let sequence = SequenceNumber(sequence);
            let reader = EntityId::UNKNOWN;
            write::data(out, &DataHead { reader, writer, sequence, inline_qos: &[], kind: DataKind::Data }, len);
            out.extend(std::iter::repeat_n(0, len));
        });
    }

    fn fragment(&mut self, sequence: i64, sample_size: u32) {
        let writer = self.attacker.entity;
        self.send(|out| {
            let head = DataFragHead {
                reader: EntityId::UNKNOWN,
                writer,
                sequence: SequenceNumber(sequence),
                first_fragment: 1,
                fragments: 1,
                fragment_size: 1000,
                sample_size,
                inline_qos: &[],
                key: false,
            };
            write::data_frag(out, &head, 1000);
            out.extend([0; 1000]);
        });
    }

    /// Checks that the healthy writer's next samples, small and large, arrive as if nothing had happened.
    #[track_caller]
    fn check_healthy(&mut self) {
        let mut large = vec![0; 100_000];
        for _ in 0..3 {
            self.written += 1;
            large[0] = self.written;
            assert!(self.net.write(0, &self.healthy, &[self.written; 10]));
            assert!(self.net.write(0, &self.healthy, &large));
        }
        self.net.run_for(SECOND);
        let prefix = self.net.nodes[0].participant.guid_prefix();
        let samples = take(&self.net, &self.reader);
        let healthy: Vec<_> = samples.iter().filter(|sample| sample.info.writer.prefix == prefix).collect();
        assert_eq!(healthy.len(), 6);
        assert_eq!(healthy[5].payload[4], self.written);
        assert!(self.healthy.lock().all_acknowledged());
    }
}

#[test]
fn jumps_of_sequence_numbers_are_refused_and_counted() {
    let mut attack = Attack::new();
    for sequence in [1 << 20, 1 << 40, i64::MAX - 1, i64::MAX] {
        attack.data(sequence, 100);
    }
    let counters = attack.reader.lock().counters();
    assert_eq!(counters.too_far, 4);
    attack.check_healthy();
}

#[test]
fn huge_gaps_and_heartbeats_cost_nothing() {
    let mut attack = Attack::new();
    let writer = attack.attacker.entity;
    attack.data(5, 10);
    for (start, base) in [(3, 1i64 << 32), (1, 1 << 32), (1 << 33, i64::MAX), (1, i64::MAX)] {
        attack.send(|out| {
            let list = SequenceSet::new(SequenceNumber(base));
            let gap = Gap { reader: EntityId::UNKNOWN, writer, start: SequenceNumber(start), list };
            write::gap(out, &gap);
        });
    }
    for (count, first, last) in [(1, 1, i64::MAX), (2, i64::MAX, i64::MAX), (3, 1 << 50, 1 << 51)] {
        attack.send(|out| {
            let heartbeat = Heartbeat {
                reader: EntityId::UNKNOWN,
                writer,
                first: SequenceNumber(first),
                last: SequenceNumber(last),
                count,
                is_final: false,
                liveliness: false,
            };
            write::heartbeat(out, &heartbeat);
        });
    }
    attack.check_healthy();
}

#[test]
fn fragments_that_never_complete_stay_within_the_budget() {
    let mut attack = Attack::new();
    let budget = attack.net.nodes[1].participant.config().reassembly_bytes_max;
    for sequence in 1..200 {
        attack.fragment(sequence, 300 << 20);
    }
    attack.fragment(200, u32::MAX);
    let used = attack.net.nodes[1].participant.reassembly_bytes();
    assert!(used > 0 && used <= budget / 8 * 7, "{used} bytes");
    assert!(attack.reader.lock().counters().fragments_refused > 100);
    attack.check_healthy();
    let writer = attack.attacker.entity;
    attack.send(|out| {
        let sequence = SequenceNumber(1);
        let (reader, count) = (EntityId::UNKNOWN, 1);
        write::heartbeat_frag(out, &HeartbeatFrag { reader, writer, sequence, last_fragment: u32::MAX, count });
    });
    attack.check_healthy();
    let (now, prefix) = (attack.net.now, attack.attacker.prefix);
    attack.net.nodes[1].participant.ignore_participant(now, prefix);
    assert_eq!(attack.net.nodes[1].participant.reassembly_bytes(), 0, "memory comes back with its writer's end");
}

#[test]
fn a_flood_of_participants_is_bounded_and_counted() {
    let mut attack = Attack::new();
    let limit = attack.net.nodes[1].participant.config().limits.participants_max;
    let (now, source) = (attack.net.now, SocketAddr::from(([10, 0, 0, 3], 7411)));
    for number in 0..(limit as u32 + 500) {
        let mut prefix = [0xaa; 12];
        prefix[8..].copy_from_slice(&number.to_be_bytes());
        let mut payload = Vec::new();
        ParticipantData::new(GuidPrefix(prefix)).encode(&mut payload);
        let mut bytes = Vec::new();
        write::header(&mut bytes, GuidPrefix(prefix));
        let head = DataHead {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence: SequenceNumber(1),
            inline_qos: &[],
            kind: DataKind::Data,
        };
        write::data(&mut bytes, &head, payload.len());
        bytes.extend_from_slice(&payload);
        attack.net.nodes[1].participant.handle_datagram(now, &Payload::from(bytes), source);
    }
    let participant = &attack.net.nodes[1].participant;
    assert_eq!((participant.participants().count(), participant.strangers()), (2, 64));
    assert_eq!(participant.counters().strangers_evicted, limit as u64 + 500 - 64);
    attack.check_healthy();
}

#[test]
fn held_samples_ahead_of_a_missing_one_are_bounded_in_bytes() {
    let mut attack = Attack::new();
    for sequence in 2..3_000 {
        attack.data(sequence, 40_000);
    }
    let counters = attack.reader.lock().counters();
    assert!(counters.too_far > 0, "64 MiB are fewer than 3,000 samples of 40 kB");
    attack.check_healthy();
}

/// A datagram of another sender in the name of the healthy writer's participant.
type Forgery = fn(&mut Vec<u8>, Guid);

const FAR: SequenceNumber = SequenceNumber(1 << 40);

fn forge_heartbeat(out: &mut Vec<u8>, writer: Guid, first: SequenceNumber, last: SequenceNumber, count: u32) {
    let (reader, writer) = (EntityId::UNKNOWN, writer.entity);
    let heartbeat = Heartbeat { reader, writer, first, last, count, is_final: false, liveliness: false };
    write::heartbeat(out, &heartbeat);
}

fn forge_gap(out: &mut Vec<u8>, writer: Guid, start: SequenceNumber, end: SequenceNumber) {
    let (reader, writer) = (EntityId::UNKNOWN, writer.entity);
    write::gap(out, &Gap { reader, writer, start, list: SequenceSet::new(end) });
}

fn forge_data(out: &mut Vec<u8>, writer: Guid, sequence: SequenceNumber) {
    let (reader, writer) = (EntityId::UNKNOWN, writer.entity);
    write::data(out, &DataHead { reader, writer, sequence, inline_qos: &[], kind: DataKind::Data }, 8);
    out.extend([0, 1, 0, 0, 0xee, 0xee, 0xee, 0xee]);
}

fn forge_farewell(out: &mut Vec<u8>, writer: Guid) {
    let mut key = Vec::new();
    ParticipantData::encode_key(writer.prefix, &mut key);
    let mut inline_qos = Vec::new();
    parameters::inline_qos(Some(3), None, &mut inline_qos);
    let (reader, sequence) = (EntityId::UNKNOWN, SequenceNumber(2));
    let head =
        DataHead { reader, writer: EntityId::SPDP_WRITER, sequence, inline_qos: &inline_qos, kind: DataKind::Key };
    write::data(out, &head, key.len());
    out.extend_from_slice(&key);
}

#[test]
fn nobody_speaks_for_a_participant_from_an_address_that_is_not_its_own() {
    let forgeries: [Forgery; 5] = [
        |out, writer| forge_gap(out, writer, SequenceNumber::FIRST, FAR),
        |out, writer| forge_heartbeat(out, writer, FAR, FAR, 1 << 30),
        |out, writer| forge_heartbeat(out, writer, SequenceNumber::FIRST, SequenceNumber::FIRST, u32::MAX / 2),
        |out, writer| forge_data(out, writer, SequenceNumber(1)),
        forge_farewell,
    ];
    for forgery in forgeries {
        let mut attack = Attack::new();
        let writer = attack.healthy.lock().guid();
        let mut bytes = Vec::new();
        write::header(&mut bytes, writer.prefix);
        forgery(&mut bytes, writer);
        let (now, source) = (attack.net.now, SocketAddr::from(([10, 0, 0, 3], 7411)));
        attack.net.nodes[1].participant.handle_datagram(now, &Payload::from(bytes), source);
        assert_eq!(attack.net.nodes[1].participant.counters().foreign_source, 1);
        attack.check_healthy();
    }
}

/// Node 2 says to node 1 that the endpoint with this GUID is deleted, by its own built-in writer `via`.
fn forge_end(attack: &mut Attack, via: EntityId, victim: Guid) {
    let mut key = Vec::new();
    match victim.entity.is_writer() {
        true => PublicationData::encode_key(victim, &mut key),
        false => SubscriptionData::encode_key(victim, &mut key),
    }
    let mut inline_qos = Vec::new();
    parameters::inline_qos(Some(3), None, &mut inline_qos);
    let refused = attack.net.nodes[1].participant.counters().unusable_announcements;
    let theirs = attack.net.nodes[2].participant.endpoints.writer(via).cloned();
    let next = theirs.map(|writer| writer.lock().last().next()).expect("a built-in writer");
    attack.send(|out| {
        let head = DataHead {
            reader: EntityId::UNKNOWN,
            writer: via,
            sequence: next,
            inline_qos: &inline_qos,
            kind: DataKind::Key,
        };
        write::data(out, &head, key.len());
        out.extend_from_slice(&key);
    });
    attack.net.run_for(SECOND);
    assert_eq!(attack.net.nodes[1].participant.counters().unusable_announcements, refused + 1);
}

#[test]
fn nobody_disposes_of_another_participants_endpoints() {
    let mut attack = Attack::new();
    let victim = attack.healthy.lock().guid();
    forge_end(&mut attack, EntityId::PUBLICATIONS_WRITER, victim);
    attack.check_healthy();
    // The end that its owner tells counts as ever.
    let now = attack.net.now;
    attack.net.nodes[0].participant.delete_writer(now, victim.entity);
    attack.net.run_for(SECOND);
    assert!(attack.reader.lock().matched_writers().all(|writer| writer != victim));
    assert!(attack.net.nodes[1].participant.publications().all(|known| known.data.guid != victim));
}

#[test]
fn nobody_keeps_another_participants_reader_from_leaving() {
    let mut attack = Attack::new();
    // Node 2 has announced a reader, so that what it says next of readers is its next word.
    attack.net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    let reader = attack.net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    let writer = attack.net.writer(1, reliable_writer(History::KeepAll), Keyed::No);
    attack.net.run_for(SECOND);
    let victim = reader.lock().guid();
    forge_end(&mut attack, EntityId::SUBSCRIPTIONS_WRITER, victim);
    assert!(writer.lock().matched_readers().any(|reader| reader == victim), "it is as it was");
    let now = attack.net.now;
    attack.net.nodes[0].participant.delete_reader(now, victim.entity);
    attack.net.run_for(SECOND);
    assert!(writer.lock().matched_readers().all(|reader| reader != victim));
    assert!(attack.net.nodes[1].participant.subscriptions().all(|known| known.data.guid != victim));
}
