//! What is written is read back.

use super::super::batch::{AckNackBatch, HeartbeatBatch};
use super::super::parameters::inline_qos;
use super::super::write::DataFragHead;
use super::*;
use crate::time::Timestamp;
use crate::types::{KeyHash, ProtocolVersion, VendorId};

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
    match rng.below(13) {
        7 => {
            let last = sequence + (rng.below(1 << 20) as i64 - 1);
            let heartbeat =
                Heartbeat { reader, writer, first: sequence, last, count, is_final: flag, liveliness: rng.chance(0.5) };
            let first_batch = random_number(rng);
            let last_batch = first_batch + (rng.below(1 << 20) as i64 - 1);
            Submessage::HeartbeatBatch(HeartbeatBatch { first_batch, last_batch, heartbeat })
        }
        9 => {
            let last = sequence + (rng.below(1 << 20) as i64 - 1);
            let heartbeat =
                Heartbeat { reader, writer, first: sequence, last, count, is_final: flag, liveliness: rng.chance(0.5) };
            let info = GroupInfo { current: random_number(rng), first: random_number(rng), last: random_number(rng) };
            Submessage::GroupHeartbeat(heartbeat, info)
        }
        10 => Submessage::Lost(Lost { reader, writer, numbers: random_set(rng) }),
        11 => {
            let (fragment_size, state) = (rng.below(1 << 16) as u16, random_fragments(rng));
            Submessage::LostFrag(LostFrag { reader, writer, sequence, fragment_size, state, rest: flag })
        }
        12 => {
            let asked_by = if flag { AskedBy::HeartbeatFrag(count) } else { AskedBy::Heartbeat(count) };
            Submessage::Echo(Echo { reader, writer, asked_by, held_micros: rng.next_u64() as u32 })
        }
        8 => Submessage::AckNackBatch(AckNackBatch { reader, writer, state: random_set(rng), count, is_final: flag }),
        0 => {
            let last = sequence + (rng.below(1 << 20) as i64 - 1);
            let (is_final, liveliness) = (flag, rng.chance(0.5));
            Submessage::Heartbeat(Heartbeat { reader, writer, first: sequence, last, count, is_final, liveliness })
        }
        1 => Submessage::HeartbeatFrag(HeartbeatFrag { reader, writer, sequence, last_fragment: 1 + count / 2, count }),
        2 => Submessage::AckNack(AckNack { reader, writer, state: random_set(rng), count, is_final: flag }),
        3 => Submessage::NackFrag(NackFrag { reader, writer, sequence, state: random_fragments(rng), count }),
        4 => Submessage::Gap(Gap { reader, writer, start: sequence, list: random_set(rng) }),
        5 => Submessage::InfoTimestamp(flag.then_some(Timestamp { seconds: count, fraction: 7 })),
        _ => Submessage::InfoDestination(if flag { PREFIX } else { GuidPrefix::UNKNOWN }),
    }
}

fn write_plain(out: &mut Vec<u8>, submessage: &Submessage<'_>) {
    match submessage {
        Submessage::Heartbeat(heartbeat) => write::heartbeat(out, heartbeat),
        Submessage::GroupHeartbeat(heartbeat, info) => write::group_heartbeat(out, heartbeat, info),
        Submessage::HeartbeatFrag(heartbeat) => write::heartbeat_frag(out, heartbeat),
        Submessage::AckNack(acknack) => write::acknack(out, acknack),
        Submessage::NackFrag(nack) => write::nack_frag(out, nack),
        Submessage::Lost(lost) => write::lost(out, lost),
        Submessage::LostFrag(lost) => write::lost_frag(out, lost),
        Submessage::Echo(echo) => write::echo(out, echo),
        Submessage::Gap(gap) => write::gap(out, gap),
        Submessage::HeartbeatBatch(batch) => write::heartbeat_batch(out, batch),
        Submessage::AckNackBatch(acknack) => write::acknack_batch(out, acknack),
        Submessage::InfoTimestamp(timestamp) => write::info_timestamp(out, *timestamp),
        Submessage::InfoDestination(prefix) => write::info_destination(out, *prefix),
        other => panic!("nothing writes {other:?}"),
    }
}

/// Longest form of each submessage, as [`write`](crate::wire::write) announces it.
fn longest(submessage: &Submessage<'_>) -> usize {
    match submessage {
        Submessage::Heartbeat(_) => write::HEARTBEAT_LEN,
        Submessage::GroupHeartbeat(..) => write::GROUP_HEARTBEAT_LEN,
        Submessage::HeartbeatFrag(_) => write::HEARTBEAT_FRAG_LEN,
        Submessage::AckNack(_) | Submessage::AckNackBatch(_) | Submessage::Lost(_) => write::ACKNACK_MAX_LEN,
        Submessage::HeartbeatBatch(_) => write::HEARTBEAT_BATCH_LEN,
        Submessage::NackFrag(_) | Submessage::LostFrag(_) => write::NACK_FRAG_MAX_LEN,
        Submessage::Echo(_) => write::ECHO_LEN,
        Submessage::Gap(_) => write::GAP_MAX_LEN,
        Submessage::InfoTimestamp(_) => write::INFO_TS_LEN,
        _ => write::INFO_DST_LEN,
    }
}

#[test]
fn plain_submessages_come_back_and_keep_to_their_announced_length() {
    let mut rng = Rng::new(1);
    for _ in 0..2_000 {
        let sent: Vec<_> = (0..rng.below(6)).map(|_| random_plain(&mut rng)).collect();
        let bytes = message(|out| sent.iter().for_each(|submessage| write_plain(out, submessage)));
        let parsed = Message::parse(&bytes).unwrap();
        assert_eq!(parsed.header, Header { version: ProtocolVersion::V2_5, vendor: VendorId::THALWEG, prefix: PREFIX });
        let received: Result<Vec<_>, _> = parsed.submessages().collect();
        assert_eq!(received.unwrap(), sent);
        assert!(bytes.len().is_multiple_of(4));
        assert!(bytes.len() <= write::HEADER_LEN + sent.iter().map(longest).sum::<usize>());
    }
}

/// Other vendors' numbers for what is not in the standard mean something else: RTI's 0x80 is a checksum.
#[test]
fn what_is_thalwegs_own_is_read_in_its_messages_only() {
    let (reader, writer) = (EntityId([0, 0, 1, 7]), EntityId([0, 0, 1, 2]));
    let first = |bytes: &[u8]| format!("{:?}", Message::parse(bytes).unwrap().submessages().next());
    let check = |name: &str, write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = message(write);
        assert!(first(&bytes).contains(name));
        bytes[6..8].copy_from_slice(&VendorId::CYCLONE.0);
        assert!(first(&bytes).contains("Unknown"), "{}", first(&bytes));
    };
    let (sequence, state) = (SequenceNumber(1), FragmentSet::new(1));
    check("Lost", &|out| write::lost(out, &Lost { reader, writer, numbers: SequenceSet::new(sequence) }));
    let lost = LostFrag { reader, writer, sequence, fragment_size: 1_000, state, rest: false };
    check("LostFrag", &|out| write::lost_frag(out, &lost));
    let echo = Echo { reader, writer, asked_by: AskedBy::Heartbeat(1), held_micros: 0 };
    check("Echo", &|out| write::echo(out, &echo));
}

#[test]
fn full_sets_take_exactly_the_longest_form() {
    let mut list = SequenceSet::new(SequenceNumber(1));
    list.insert(SequenceNumber(256));
    let mut fragments = FragmentSet::new(1);
    fragments.insert(256);
    let (reader, writer, sequence, count) = (READER, WRITER, SequenceNumber(1), 1);
    let mut out = Vec::new();
    write::acknack(&mut out, &AckNack { reader, writer, state: list, count, is_final: true });
    assert_eq!(out.len(), write::ACKNACK_MAX_LEN);
    out.clear();
    write::gap(&mut out, &Gap { reader, writer, start: sequence, list });
    assert_eq!(out.len(), write::GAP_MAX_LEN);
    out.clear();
    write::nack_frag(&mut out, &NackFrag { reader, writer, sequence, state: fragments, count });
    assert_eq!(out.len(), write::NACK_FRAG_MAX_LEN);
    let empty = SequenceSet::new(sequence);
    out.clear();
    write::acknack(&mut out, &AckNack { reader, writer, state: empty, count, is_final: true });
    assert_eq!(out.len(), write::ACKNACK_MIN_LEN);
    out.clear();
    write::gap(&mut out, &Gap { reader, writer, start: sequence, list: empty });
    assert_eq!(out.len(), write::GAP_MIN_LEN);
}

#[test]
fn samples_come_back_with_their_inline_qos_whatever_follows() {
    let mut rng = Rng::new(2);
    for _ in 0..2_000 {
        let payload: Vec<u8> = (0..rng.below(70)).map(|_| rng.next_u64() as u8).collect();
        let kind = [DataKind::Data, DataKind::Key, DataKind::None][rng.below(3) as usize];
        let payload = if kind == DataKind::None { &[] } else { payload.as_slice() };
        let status = rng.chance(0.5).then(|| rng.below(4) as u32);
        let key = rng.chance(0.5).then(|| KeyHash([rng.next_u64() as u8; 16]));
        let mut list = Vec::new();
        inline_qos(status, key, &mut list);
        let mut bytes = data_message(&list, kind, payload);
        write::info_destination(&mut bytes, PREFIX);
        let submessages: Result<Vec<_>, _> = Message::parse(&bytes).unwrap().submessages().collect();
        let submessages = submessages.unwrap();
        let [Submessage::Data(data), Submessage::InfoDestination(PREFIX)] = submessages.as_slice() else {
            panic!("{submessages:?}")
        };
        assert_eq!((data.reader, data.writer, data.sequence), (READER, WRITER, SequenceNumber(7)));
        assert_eq!(data.inline_qos.is_some(), status.is_some() || key.is_some());
        assert_eq!(data.inline_qos.map_or(0, |list| list.status_info()), status.unwrap_or(0));
        assert_eq!(data.inline_qos.and_then(|list| list.key_hash()), key);
        let range = match (&data.content, kind) {
            (Content::Data(range), DataKind::Data) | (Content::Key(range), DataKind::Key) => range.clone(),
            (Content::None, DataKind::None) => 0..0,
            (content, kind) => panic!("{content:?} is not {kind:?}"),
        };
        let padding = payload.len().next_multiple_of(4) - payload.len();
        assert_eq!(bytes[range], [payload, &[0; 3][..padding]].concat());
    }
}

#[test]
fn fragments_come_back_without_their_padding() {
    let mut rng = Rng::new(3);
    for _ in 0..2_000 {
        let (fragment_size, sample_size) = (1 + rng.below(300) as u16, 1 + rng.below(5_000) as u32);
        let total = sample_size.div_ceil(u32::from(fragment_size));
        let first_fragment = 1 + rng.below(u64::from(total)) as u32;
        let fragments = 1 + rng.below(u64::from(total - first_fragment + 1)) as u16;
        let start = (first_fragment - 1) * u32::from(fragment_size);
        let end = (start + u32::from(fragments) * u32::from(fragment_size)).min(sample_size);
        let payload: Vec<u8> = (start..end).map(|byte| byte as u8).collect();
        let mut list = Vec::new();
        inline_qos(rng.chance(0.5).then_some(1), None, &mut list);
        let head = DataFragHead {
            reader: READER,
            writer: WRITER,
            sequence: random_number(&mut rng),
            first_fragment,
            fragments,
            fragment_size,
            sample_size,
            inline_qos: &list,
            key: rng.chance(0.5),
        };
        let mut bytes = message(|out| write::data_frag(out, &head, payload.len()));
        assert_eq!(bytes.len(), write::HEADER_LEN + write::DATA_FRAG_HEAD_LEN + list.len());
        bytes.extend_from_slice(&payload);
        write::padding(&mut bytes, payload.len());
        write::info_destination(&mut bytes, PREFIX);
        let submessages: Result<Vec<_>, _> = Message::parse(&bytes).unwrap().submessages().collect();
        let submessages = submessages.unwrap();
        let [Submessage::DataFrag(frag), Submessage::InfoDestination(PREFIX)] = submessages.as_slice() else {
            panic!("{submessages:?}")
        };
        assert_eq!((frag.sequence, frag.key), (head.sequence, head.key));
        assert_eq!((frag.first_fragment, frag.fragments), (first_fragment, fragments));
        assert_eq!((frag.fragment_size, frag.sample_size), (fragment_size, sample_size));
        assert_eq!((frag.fragments_total(), frag.sample_offset()), (total, start as usize));
        assert_eq!(frag.inline_qos.is_some(), !list.is_empty());
        assert_eq!(bytes[frag.bytes.clone()], payload);
    }
}

#[test]
fn a_payload_beyond_16_bits_of_length_reaches_to_the_end_of_the_message() {
    for length in [65_480, 65_516, 65_517, 70_000] {
        let payload = vec![7; length];
        let bytes = data_message(&[], DataKind::Data, &payload);
        let expect = write::HEADER_LEN + write::DATA_HEAD_LEN;
        let end = expect + length.next_multiple_of(4);
        check(&bytes, &format!("DATA 7 00000202>00000107 data {expect}..{end}"));
    }
}

#[test]
fn a_heartbeat_tells_of_its_publisher_if_there_is_room_for_that() {
    let plain = "00000000 00000102 00000000 01000000 00000000 02000000 05000000";
    let group = "00000000 09000000 00000000 07000000 00000000 08000000 00000000 00000000";
    let number = SequenceNumber;
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId([0, 0, 1, 2]),
        first: number(1),
        last: number(2),
        count: 5,
        is_final: false,
        liveliness: false,
    };
    let info = GroupInfo { current: number(9), first: number(7), last: number(8) };
    let first = |hex: &str| {
        let message = message_of(hex);
        let submessage = Message::parse(&message).unwrap().submessages().next().unwrap().unwrap();
        match submessage {
            Submessage::Heartbeat(heartbeat) => (heartbeat, None),
            Submessage::GroupHeartbeat(heartbeat, info) => (heartbeat, Some(info)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(first(&format!("0709 3c00 {plain} {group}")), (heartbeat, Some(info)));
    assert_eq!(first(&format!("0701 3c00 {plain} {group}")), (heartbeat, None));
    assert_eq!(first(&format!("0709 1c00 {plain}")), (heartbeat, None));
    let written = message(|out| write::group_heartbeat(out, &heartbeat, &info));
    assert_eq!(written, message_of(&format!("0709 3c00 {plain} {group}")));
}
