//! What leaves for the first time: every number once and in order, in a sample or in a GAP, and what repairs are remembered for.

use super::tests::*;
use super::*;
use crate::qos::{History, Method, Transmission, WriterQos};
use crate::rng::Rng;
use crate::types::{EntityId, GuidPrefix, Keyed, VendorId};
use crate::wire::{FragmentSet, Message, NackFrag, Submessage};

/// The numbers that `submessage` stands for: the first, and the one behind the last.
fn told_by(submessage: &Submessage<'_>) -> Option<(SequenceNumber, SequenceNumber)> {
    match submessage {
        Submessage::Data(data) => Some((data.sequence, data.sequence.next())),
        Submessage::DataBatch(batch) => Some((batch.first, batch.last.next())),
        Submessage::Gap(gap) => Some((gap.start, gap.list.base())),
        _ => None,
    }
}

/// A writer that leaves out what it cannot send before it is overwritten, a reader that takes batches, and one that does not.
fn keep_last(method: Method) -> Writer {
    let guid = Guid::new(GuidPrefix([99; 12]), EntityId::user_writer(1, Keyed::Yes));
    let qos =
        WriterQos { history: History::KeepLast(2), transmission: Transmission::by(method), ..WriterQos::default() };
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    writer.match_reader(START, MatchedReader { receive_buffer_bytes: Some(60_000), ..matched_reader(1) });
    acknowledge(&mut writer, START, 1, SequenceNumber::FIRST, &[]);
    let plain = MatchedReader { vendor: VendorId::CYCLONE, batches: false, reliable: false, ..matched_reader(2) };
    writer.match_reader(START, plain);
    send(&mut writer, START);
    writer
}

#[test]
fn every_number_leaves_once_and_in_order_to_readers_of_both_forms() {
    for (seed, method) in (0..60).zip([Method::batch(), Method::coalesce(), Method::Auto].iter().cycle()) {
        let mut writer = keep_last(method.clone());
        let mut rng = Rng::new(seed);
        let mut next = [SequenceNumber::FIRST; 2];
        let (mut left_out, mut now) = (0, START);
        for step in 0..600 {
            now += Duration::from_micros(rng.below(200));
            for _ in 0..if step < 500 { rng.below(40) } else { 0 } {
                let payload = Payload::from(vec![0; 4 + rng.below(300) as usize]);
                let instance = KeyHash([rng.below(3) as u8; 16]);
                let timestamp = Some(Timestamp { seconds: 1, fraction: 0 });
                let change = NewChange { kind: ChangeKind::Write, instance, timestamp, payload };
                writer.write(now, change).expect("KEEP_LAST has room");
            }
            if step >= 500 {
                now += Duration::from_millis(5);
            }
            let mut outbox = Outbox::new();
            // Sometimes an allowance ends in the midst of what was collected.
            let allowance = if rng.below(2) == 0 { u64::MAX } else { 500 + rng.below(5_000) };
            writer.transmit_within(now, allowance, &mut outbox);
            for datagram in outbox.datagrams() {
                let bytes = datagram.to_vec();
                for submessage in Message::parse(&bytes).expect("well-formed").submessages() {
                    let submessage = submessage.expect("well-formed");
                    let Some((first, end)) = told_by(&submessage) else { continue };
                    for to in datagram.destinations() {
                        let expected = &mut next[usize::from(*to == matched_reader(2).unicast[0])];
                        assert!(first == *expected && end > first, "seed {seed}, {method}: {submessage:?}, {expected}");
                        *expected = end;
                    }
                    left_out += u64::from(matches!(submessage, Submessage::Gap(_)));
                }
            }
            if rng.below(3) == 0 || step >= 500 {
                acknowledge(&mut writer, now, 1, next[0], &[]);
            }
        }
        assert_eq!(next, [writer.history.last().next(); 2], "seed {seed}, {method}");
        assert!(left_out > 10, "seed {seed}, {method}: {left_out} GAPs, while readers cannot keep up");
    }
}

#[test]
fn what_arrives_after_fragments_were_repeated_may_be_the_repair() {
    let mut writer = writer(1);
    write(&mut writer, 5_000);
    send(&mut writer, START);
    let (now, later) = (START + Duration::from_millis(5), START + Duration::from_millis(9));
    assert!(!writer.readers.at(0).repairs.followed(START));
    let mut state = FragmentSet::new(2);
    state.insert(2);
    let (guid, sequence) = (writer.guid(), SequenceNumber(1));
    let nack = NackFrag { reader: reader(1).entity, writer: guid.entity, sequence, state, count: 1 };
    writer.handle_nack_frag(now, reader(1), &nack);
    send(&mut writer, now);
    assert_eq!(writer.counters().repaired, 1);
    let repairs = &writer.readers.at(0).repairs;
    assert!(repairs.followed(now) && !repairs.followed(later));
}

/// The sizes of the fragments that leave now.
fn fragment_sizes(writer: &mut Writer, now: Instant) -> Vec<u16> {
    let mut outbox = Outbox::new();
    writer.poll_transmit(now, &mut outbox);
    let mut sizes = Vec::new();
    for datagram in outbox.datagrams() {
        let bytes = datagram.to_vec();
        for submessage in Message::parse(&bytes).expect("well-formed").submessages() {
            if let Ok(Submessage::DataFrag(fragments)) = submessage {
                sizes.push(fragments.fragment_size);
            }
        }
    }
    sizes.dedup();
    sizes
}

#[test]
fn fragments_of_a_sample_under_way_grow_no_more_and_for_other_vendors_keep_their_size() {
    const FAST_DDS: VendorId = VendorId([1, 15]);
    for vendor in [VendorId::THALWEG, FAST_DDS] {
        let mut writer = writer(0);
        let matched = MatchedReader { vendor, batches: false, receive_buffer_bytes: None, ..matched_reader(1) };
        writer.match_reader(START, matched.clone());
        acknowledge(&mut writer, START, 1, SequenceNumber::FIRST, &[]);
        send(&mut writer, START);
        write(&mut writer, 5_000);
        let first = fragment_sizes(&mut writer, START);
        let mut now = START;
        for (count, datagram_bytes) in (1..).zip([700, 1_200, 600, 1_472]) {
            now += Duration::from_secs(1);
            writer.match_reader(now, MatchedReader { datagram_bytes, ..matched.clone() });
            let mut state = FragmentSet::new(2);
            state.insert(2);
            let (entity, sequence) = (writer.guid().entity, SequenceNumber(1));
            let nack = NackFrag { reader: reader(1).entity, writer: entity, sequence, state, count };
            writer.handle_nack_frag(now, reader(1), &nack);
            let narrowest = if count < 3 { 700 } else { 600 };
            let expect = if vendor == FAST_DDS { first.clone() } else { vec![route::fragment_bytes_in(narrowest)] };
            assert_eq!(fragment_sizes(&mut writer, now), expect, "{vendor:?}, {datagram_bytes} bytes");
        }
        // Once it has all, its path as it is now counts.
        acknowledge(&mut writer, now, 1, SequenceNumber(2), &[]);
        writer.match_reader(now, MatchedReader { datagram_bytes: 1_000, ..matched.clone() });
        assert_eq!(writer.readers.at(0).repair_bytes, 1_000);
    }
}

#[test]
fn readers_that_have_proved_the_match_are_asked_one_by_one_while_another_has_not() {
    let mut writer = writer(1);
    writer.match_reader(START, MatchedReader { vendor: VendorId::CYCLONE, batches: false, ..matched_reader(2) });
    send(&mut writer, START);
    write(&mut writer, 8);
    writer.request_acknowledgement(START);
    let mut outbox = Outbox::new();
    writer.poll_transmit(START, &mut outbox);
    let mut asked = Vec::new();
    for datagram in outbox.datagrams() {
        let bytes = datagram.to_vec();
        for submessage in Message::parse(&bytes).expect("well-formed").submessages() {
            if let Ok(Submessage::Heartbeat(heartbeat)) = submessage {
                asked.extend(datagram.destinations().iter().map(|to| (*to, heartbeat.reader, heartbeat.last)));
            }
        }
    }
    assert_eq!(asked, [(matched_reader(1).unicast[0], reader(1).entity, SequenceNumber(1))]);
}

#[test]
fn readers_of_both_forms_get_everything_once() {
    let mut writer = collecting(Method::batch(), History::KeepAll);
    let foreign = MatchedReader { vendor: VendorId::CYCLONE, batches: false, reliable: false, ..matched_reader(2) };
    writer.match_reader(START, foreign);
    send(&mut writer, START);
    let mut sent = [0, 0];
    let mut count = |writer: &mut Writer, now: Instant| {
        let mut outbox = Outbox::new();
        loop {
            outbox.clear();
            let more = writer.poll_transmit(now, &mut outbox);
            for datagram in outbox.datagrams().filter(|datagram| datagram.len() > 200) {
                sent[usize::from(datagram.destinations() == [locator(2)])] += 1;
            }
            if !more {
                return;
            }
        }
    };
    // More datagrams than one outbox takes, and a sample that is stopped in the middle.
    for number in 0..150 {
        write_stamped(&mut writer, START + Duration::from_nanos(number), 1_200);
    }
    write_stamped(&mut writer, START, 1_000_000);
    let mut now = START + Duration::from_millis(2);
    for _ in 0..50 {
        count(&mut writer, now);
        now += Duration::from_millis(5);
        let next = writer.outgoing.place.sample;
        acknowledge(&mut writer, now, 1, next, &[]);
        let fragment = writer.outgoing.place.fragment;
        if fragment > 0 {
            let entity = writer.guid().entity;
            let (count, state) = (fragment, crate::wire::FragmentSet::new(fragment + 1));
            let nack = crate::wire::NackFrag { reader: reader(1).entity, writer: entity, sequence: next, state, count };
            writer.handle_nack_frag(now, reader(1), &nack);
        }
    }
    assert_eq!(writer.outgoing.place.sample, SequenceNumber(152));
    assert_eq!(sent[0], sent[1], "the same datagrams to both");
    let fragments = 1_000_000_usize.div_ceil(1_304);
    assert_eq!(sent[1], 150 + fragments);
}

/// Writes a sample with this time, in seconds.
fn write_at(writer: &mut Writer, seconds: Option<u32>) {
    let timestamp = seconds.map(|seconds| crate::time::Timestamp { seconds, fraction: 0 });
    let payload = Payload::from(vec![0; 8]);
    let change = NewChange { kind: ChangeKind::Write, instance: KeyHash::default(), timestamp, payload };
    writer.write(START, change).expect("the history has room");
}

#[test]
fn a_source_time_is_told_once_and_taken_back_only_where_it_held() {
    let mut writer = writer(1);
    for seconds in [None, Some(5), Some(5), None, None, Some(6)] {
        write_at(&mut writer, seconds);
    }
    let mut outbox = Outbox::new();
    writer.poll_transmit(START, &mut outbox);
    let mut told = Vec::new();
    for datagram in outbox.datagrams() {
        for submessage in crate::wire::Message::parse(&datagram.to_vec()).unwrap().submessages() {
            match submessage.unwrap() {
                crate::wire::Submessage::InfoTimestamp(Some(timestamp)) => told.push(timestamp.seconds.to_string()),
                crate::wire::Submessage::InfoTimestamp(None) => told.push("none".to_owned()),
                crate::wire::Submessage::Data(data) => told.push(format!("#{}", data.sequence)),
                _ => {}
            }
        }
    }
    assert_eq!(told.join(" "), "#1 5 #2 #3 none #4 #5 6 #6");
}
