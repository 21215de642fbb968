use std::fmt::Write;

use super::parameters::{STATUS_DISPOSED, STATUS_UNREGISTERED, inline_qos};
use super::write::{self, DataFragHead, DataHead, DataKind};
use super::*;
use crate::rng::Rng;
use crate::time::Timestamp;
use crate::types::{EntityId, GuidPrefix, KeyHash, ProtocolVersion, SequenceNumber, VendorId};

const PREFIX: GuidPrefix = GuidPrefix([1, 0xd7, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
const READER: EntityId = EntityId([0, 0, 1, 7]);
const WRITER: EntityId = EntityId([0, 0, 2, 2]);

/// Writes a message with what `fill` appends behind the header.
fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write::header(&mut out, PREFIX);
    fill(&mut out);
    out
}

fn random_number(rng: &mut Rng) -> SequenceNumber {
    let bits = rng.below(62) + 1;
    SequenceNumber(1 + rng.below(1 << bits) as i64)
}

fn random_set(rng: &mut Rng) -> SequenceSet {
    let mut set = SequenceSet::new(random_number(rng));
    for _ in 0..rng.below(40) {
        set.insert(set.base() + rng.below(256) as i64);
    }
    set
}

fn random_fragments(rng: &mut Rng) -> FragmentSet {
    let mut set = FragmentSet::new(1 + rng.below(1 << 20) as u32);
    for _ in 0..rng.below(40) {
        set.insert(set.base() + rng.below(256) as u32);
    }
    set
}

/// Any submessage without borrowed parts.
fn random_plain(rng: &mut Rng) -> Submessage<'static> {
    let (reader, writer) = (EntityId((rng.next_u64() as u32).to_le_bytes()), WRITER);
    let (sequence, count) = (random_number(rng), rng.next_u64() as u32);
    let flag = rng.chance(0.5);
    match rng.below(8) {
        0 => {
            let last = sequence + rng.below(1 << 20) as i64 + -1;
            Submessage::Heartbeat(Heartbeat {
                reader,
                writer,
                first: sequence,
                last,
                count,
                is_final: flag,
                liveliness: rng.chance(0.5),
            })
        }
        1 => Submessage::HeartbeatFrag(HeartbeatFrag { reader, writer, sequence, last_fragment: 1 + count / 2, count }),
        2 => Submessage::AckNack(AckNack { reader, writer, state: random_set(rng), count, is_final: flag }),
        3 => Submessage::NackFrag(NackFrag { reader, writer, sequence, state: random_fragments(rng), count }),
        4 => Submessage::Gap(Gap { reader, writer, start: sequence, list: random_set(rng) }),
        5 => Submessage::InfoTimestamp(flag.then_some(Timestamp { seconds: count, fraction: 7 })),
        6 => Submessage::InfoDestination(if flag { PREFIX } else { GuidPrefix::UNKNOWN }),
        _ => Submessage::InfoTimestamp(None),
    }
}

fn write_plain(out: &mut Vec<u8>, submessage: &Submessage<'_>) {
    match submessage {
        Submessage::Heartbeat(heartbeat) => write::heartbeat(out, heartbeat),
        Submessage::HeartbeatFrag(heartbeat) => write::heartbeat_frag(out, heartbeat),
        Submessage::AckNack(acknack) => write::acknack(out, acknack),
        Submessage::NackFrag(nack) => write::nack_frag(out, nack),
        Submessage::Gap(gap) => write::gap(out, gap),
        Submessage::InfoTimestamp(timestamp) => write::info_timestamp(out, *timestamp),
        Submessage::InfoDestination(prefix) => write::info_destination(out, *prefix),
        other => panic!("nothing writes {other:?}"),
    }
}

#[test]
fn every_plain_submessage_survives_the_wire() {
    let mut rng = Rng::new(1);
    for _ in 0..2_000 {
        let sent: Vec<_> = (0..rng.below(6)).map(|_| random_plain(&mut rng)).collect();
        let bytes = message(|out| sent.iter().for_each(|submessage| write_plain(out, submessage)));
        let parsed = Message::parse(&bytes).unwrap();
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::THALWEG, prefix: PREFIX };
        assert_eq!(parsed.header, header);
        let received: Result<Vec<_>, _> = parsed.submessages().collect();
        assert_eq!(received.unwrap(), sent);
    }
}
