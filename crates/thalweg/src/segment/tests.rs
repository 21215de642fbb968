//! Laws of splitting and joining, without a network.

use std::collections::BTreeMap;

use thalweg_cdr as cdr;
use thalweg_rtps::qos::Representation;
use thalweg_rtps::rng::Rng;

use super::join::{Joiner, SegmentLimits, Transfer};
use super::wire::{Head, KeyedSegment, Part, Segment, decode, encode};

fn payload(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| rng.next_u64() as u8).collect()
}

/// The samples of a payload, in order.
fn split(source: u8, transfer: u64, payload: &[u8], segment_bytes: usize) -> Vec<Vec<u8>> {
    let count = payload.len().div_ceil(segment_bytes).max(1);
    let part = |index: usize| {
        let start = index * segment_bytes;
        let head = Head {
            source: [source; 16],
            transfer,
            index: index as u32,
            count: count as u32,
            total_bytes: payload.len() as u64,
        };
        let mut sample = Vec::new();
        let end = (start + segment_bytes).min(payload.len());
        encode(&head, &payload[start..end], Representation::Xcdr1, &mut sample);
        sample
    };
    (0..count).map(part).collect()
}

fn accept(joiner: &mut Joiner, sample: &[u8]) -> Option<Transfer> {
    joiner.accept(&decode(sample).unwrap())
}

#[test]
fn segments_are_samples_that_every_implementation_reads_and_writes() {
    let mut rng = Rng::new(1);
    for length in 0..40 {
        let segment = Segment {
            source: [3; 16],
            transfer: rng.next_u64(),
            index: rng.next_u64() as u32,
            count: rng.next_u64() as u32,
            total_bytes: rng.next_u64(),
            bytes: payload(&mut rng, length),
        };
        let Segment { source, transfer, index, count, total_bytes, .. } = segment;
        let head = Head { source, transfer, index, count, total_bytes };
        for (ours, theirs) in
            [(Representation::Xcdr1, cdr::Representation::Xcdr1), (Representation::Xcdr2, cdr::Representation::Xcdr2)]
        {
            let (mut direct, mut generated) = (Vec::new(), Vec::new());
            encode(&head, &segment.bytes, ours, &mut direct);
            cdr::encode(&segment, theirs, &mut generated).unwrap();
            assert_eq!(direct, generated, "{length} bytes in {ours}");
            assert_eq!(cdr::decode::<KeyedSegment>(&direct).unwrap().bytes, segment.bytes);
            let Part { head: read, bytes } = decode(&direct).unwrap();
            assert_eq!((read, bytes), (head, &segment.bytes[..]));
            (0..direct.len()).for_each(|end| _ = decode(&direct[..end]));
        }
    }
    let keyed = KeyedSegment { source: [9; 16], ..KeyedSegment::default() };
    assert_eq!(cdr::key_hash(&keyed).unwrap(), [9; 16], "the source is its own key hash");
}

#[test]
fn big_endian_segments_are_read() {
    let mut sample = vec![0, 0, 0, 0];
    sample.extend_from_slice(&[7; 16]);
    sample.extend_from_slice(&5u64.to_be_bytes());
    sample.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2]);
    sample.extend_from_slice(&9u64.to_be_bytes());
    sample.extend_from_slice(&[0, 0, 0, 3, 1, 2, 3]);
    let part = decode(&sample).unwrap();
    assert_eq!(part.head, Head { source: [7; 16], transfer: 5, index: 1, count: 2, total_bytes: 9 });
    assert_eq!(part.bytes, [1, 2, 3]);
    sample[1] = 3;
    assert!(decode(&sample).is_none(), "a parameter list is no segment");
}

#[test]
fn payloads_of_every_size_come_back_from_interleaved_senders_in_order() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut joiner = Joiner::new(SegmentLimits::default());
        let mut senders: Vec<(u8, Vec<Vec<u8>>)> = Vec::new();
        let mut expect: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
        for source in 0..1 + rng.below(4) as u8 {
            let mut samples = Vec::new();
            for transfer in 0..rng.below(5) {
                let bound = if rng.chance(0.2) { 3 } else { 300 };
                let bytes = rng.below(bound) as usize;
                let sent = payload(&mut rng, bytes);
                samples.extend(split(source, transfer, &sent, 1 + rng.below(120) as usize));
                expect.entry(source).or_default().push(sent);
            }
            samples.reverse();
            senders.push((source, samples));
        }
        let mut got: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
        while senders.iter().any(|(_, samples)| !samples.is_empty()) {
            let index = rng.below(senders.len() as u64) as usize;
            let Some(sample) = senders[index].1.pop() else { continue };
            if let Some(transfer) = accept(&mut joiner, &sample) {
                assert_eq!(transfer.number, got.get(&transfer.source[0]).map_or(0, Vec::len) as u64);
                got.entry(transfer.source[0]).or_default().push(transfer.bytes);
            }
        }
        assert_eq!(got, expect, "seed {seed}");
        assert_eq!((joiner.unfinished_bytes(), joiner.counters().incomplete, joiner.counters().malformed), (0, 0, 0));
    }
}

#[test]
fn a_payload_that_loses_a_segment_is_dropped_counted_once_and_hurts_no_other() {
    for lost in 0..5 {
        let mut joiner = Joiner::new(SegmentLimits::default());
        let mut got = Vec::new();
        for transfer in 1..=3 {
            for (index, sample) in split(1, transfer, &[transfer as u8; 450], 100).iter().enumerate() {
                if (transfer, index) != (2, lost) {
                    got.extend(accept(&mut joiner, sample).map(|transfer| transfer.number));
                }
            }
        }
        assert_eq!(got, [1, 3], "segment {lost} of the second is lost");
        let counters = joiner.counters();
        assert_eq!((counters.completed, counters.incomplete), (2, 1), "segment {lost}");
        assert_eq!(joiner.unfinished_bytes(), 0);
    }
}

#[test]
fn repeated_segments_change_nothing() {
    let mut joiner = Joiner::new(SegmentLimits::default());
    let samples = split(1, 1, &[5; 300], 100);
    let mut completed = 0;
    for sample in samples.iter().flat_map(|sample| [sample, sample]) {
        completed += usize::from(accept(&mut joiner, sample).is_some());
    }
    assert_eq!((completed, joiner.counters().malformed), (1, 0));
}

#[test]
fn announced_sizes_cost_no_memory_and_limits_hold() {
    let limits = SegmentLimits { transfer_bytes_max: 1_000, unfinished_bytes_max: 1_500, sources_max: 8 };
    let mut joiner = Joiner::new(limits);
    let head = Head { source: [1; 16], transfer: 1, index: 0, count: u32::MAX, total_bytes: u64::MAX };
    assert_eq!(joiner.accept(&Part { head, bytes: &[0; 10] }), None);
    assert_eq!((joiner.counters().over_limit, joiner.unfinished_bytes()), (1, 0));
    for source in 1..=100 {
        let samples = split(source, 2, &[source; 1_000], 100);
        samples[..9].iter().for_each(|sample| _ = accept(&mut joiner, sample));
        assert!(joiner.unfinished_bytes() <= 1_500);
    }
    assert!(accept(&mut joiner, &split(100, 2, &[100; 1_000], 100)[9]).is_some(), "the newest one is not dropped");
    assert!(joiner.counters().over_limit + joiner.counters().incomplete >= 98);
    joiner.forget(&[100; 16]);
    assert_eq!(joiner.unfinished_bytes(), 0);
}

#[test]
fn segments_that_contradict_each_other_end_their_payload() {
    let first = Head { source: [1; 16], transfer: 1, index: 0, count: 3, total_bytes: 100 };
    for second in [
        Head { index: 1, count: 4, ..first },
        Head { index: 1, total_bytes: 99, ..first },
        Head { index: 3, ..first },
        Head { index: 0, count: 0, ..first },
    ] {
        let mut joiner = Joiner::new(SegmentLimits::default());
        joiner.accept(&Part { head: first, bytes: &[0; 40] });
        assert_eq!(joiner.accept(&Part { head: second, bytes: &[0; 40] }), None);
        assert_eq!(joiner.counters().malformed, 1, "{second:?}");
    }
    let mut joiner = Joiner::new(SegmentLimits::default());
    joiner.accept(&Part { head: first, bytes: &[0; 70] });
    joiner.accept(&Part { head: Head { index: 1, ..first }, bytes: &[0; 40] });
    assert_eq!((joiner.counters().malformed, joiner.unfinished_bytes()), (1, 0), "more than announced");
}

#[test]
fn any_bytes_leave_the_joiner_alive() {
    let mut rng = Rng::new(3);
    let mut joiner = Joiner::new(SegmentLimits { unfinished_bytes_max: 10_000, ..SegmentLimits::default() });
    for _ in 0..20_000 {
        let mut sample = split(rng.below(3) as u8, rng.below(2), &[1; 90], 30).swap_remove(rng.below(3) as usize);
        for _ in 0..rng.below(3) {
            let index = rng.below(sample.len() as u64) as usize;
            sample[index] = rng.next_u64() as u8;
        }
        if let Some(part) = decode(&sample) {
            joiner.accept(&part);
        }
        assert!(joiner.unfinished_bytes() <= 10_000);
    }
}
