//! Samples from their fragments, whatever size those have.

use std::time::Duration;

use super::budget::ReassemblyBudget;
use super::reassembly::*;
use super::*;
use crate::history::{ChangeKind, PayloadKind};
use crate::time::Timestamp;
use crate::types::{EntityId, GuidPrefix, KeyHash};

fn fragment(sequence: i64, first_fragment: u32, fragments: u16, sample_size: u32) -> DataFrag<'static> {
    DataFrag {
        reader: EntityId::UNKNOWN,
        writer: EntityId::UNKNOWN,
        sequence: SequenceNumber(sequence),
        first_fragment,
        fragments,
        fragment_size: 10,
        sample_size,
        inline_qos: None,
        key: false,
        bytes: 0..0,
    }
}

fn insert(reassembly: &mut Reassembly, fragment: &DataFrag<'_>, bytes: &[u8]) -> Assembled {
    insert_at(Instant::ZERO, reassembly, fragment, bytes)
}

fn insert_at(now: Instant, reassembly: &mut Reassembly, fragment: &DataFrag<'_>, bytes: &[u8]) -> Assembled {
    reassembly.insert(now, fragment, bytes, BARE, &mut PayloadPool::new(1 << 16))
}

/// Nothing is told beside a fragment.
const BARE: FragmentedSample = FragmentedSample {
    coherent_set: SequenceNumber::ZERO,
    related: None,
    timestamp: None,
    kind: ChangeKind::Write,
    hint: None,
    content_kind: PayloadKind::Data,
};

/// Cyclone DDS tells source time and inline QoS with the first fragment only, which may be lost, or overtaken.
#[test]
fn what_the_first_fragment_tells_counts_whenever_it_comes() {
    let told = FragmentedSample {
        timestamp: Some(Timestamp::from_unix(Duration::from_secs(7))),
        kind: ChangeKind::Dispose,
        hint: Some(KeyHash([3; 16])),
        ..BARE
    };
    for order in [[1, 2, 3], [2, 1, 3], [3, 2, 1], [2, 3, 1]] {
        let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000), GuidPrefix([1; 12]));
        let mut pool = PayloadPool::new(1 << 16);
        let mut whole = None;
        for first in order {
            let head = if first == 1 { told } else { BARE };
            let assembled = reassembly.insert(Instant::ZERO, &fragment(1, first, 1, 30), &[0; 10], head, &mut pool);
            if let Assembled::Complete(complete) = assembled {
                whole = Some(complete);
            }
        }
        let whole = whole.expect("all have come");
        assert_eq!((whole.sample.timestamp, whole.sample.kind, whole.hint), (told.timestamp, told.kind, told.hint));
    }
}

#[test]
fn fragments_in_any_order_make_the_sample() {
    let budget = ReassemblyBudget::new(1000);
    let mut reassembly = Reassembly::new(budget.clone(), GuidPrefix([1; 12]));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 3, 1, 25), &[3; 5]), Assembled::Unfinished));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 3, 1, 25), &[9; 5]), Assembled::Unfinished));
    assert_eq!(budget.used(), 25);
    let missing = reassembly.missing(SequenceNumber(1), 1, None).expect("two are missing");
    assert_eq!(missing.iter().collect::<Vec<_>>(), [1, 2]);
    let Assembled::Complete(whole) = insert(&mut reassembly, &fragment(1, 1, 2, 25), &[1; 20]) else {
        panic!("complete")
    };
    assert_eq!(&*whole.sample.content, [&[1u8; 20][..], &[3; 5]].concat());
    assert_eq!(budget.used(), 0);
}

#[test]
fn the_budget_holds_and_the_lowest_number_wins() {
    let budget = ReassemblyBudget::new(125);
    let mut reassembly = Reassembly::new(budget.clone(), GuidPrefix([1; 12]));
    assert!(matches!(insert(&mut reassembly, &fragment(5, 1, 1, 90), &[0; 10]), Assembled::Unfinished));
    assert!(matches!(insert(&mut reassembly, &fragment(6, 1, 1, 90), &[0; 10]), Assembled::Refused));
    assert!(matches!(insert(&mut reassembly, &fragment(4, 1, 1, 90), &[0; 10]), Assembled::Unfinished));
    assert!(!reassembly.contains(SequenceNumber(5)));
    assert_eq!(budget.used(), 90);
    assert!(matches!(insert(&mut reassembly, &fragment(3, 1, 1, 1 << 30), &[0; 10]), Assembled::Refused));
    let mut other = Reassembly::new(budget.clone(), GuidPrefix([2; 12]));
    assert!(matches!(insert(&mut other, &fragment(1, 1, 1, 35), &[0; 10]), Assembled::Unfinished));
    drop(other);
    drop(reassembly);
    assert_eq!(budget.used(), 0);
}

#[test]
fn fragments_that_become_smaller_keep_what_arrived() {
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000), GuidPrefix([1; 12]));
    let sized = |first, fragments, size| DataFrag { fragment_size: size, ..fragment(1, first, fragments, 45) };
    let missing = |reassembly: &Reassembly| -> Vec<u32> {
        reassembly.missing(SequenceNumber(1), 1, Some(99)).map_or_else(Vec::new, |set| set.iter().collect())
    };
    insert(&mut reassembly, &sized(3, 1, 20), &[6; 5]);
    // Bytes 40 to 45 are here: in fragments of 8 that is the sixth.
    insert(&mut reassembly, &sized(1, 1, 8), &[1; 8]);
    assert_eq!(missing(&reassembly), [2, 3, 4, 5]);
    // A larger fragment that was still on its way is of use: bytes 20 to 40 hold the fourth and the fifth.
    insert(&mut reassembly, &sized(2, 1, 20), &[4; 20]);
    assert_eq!(missing(&reassembly), [2, 3]);
    let Assembled::Complete(whole) = insert(&mut reassembly, &sized(2, 2, 8), &[2; 16]) else { panic!("complete") };
    assert_eq!(&*whole.sample.content, [&[1u8; 8][..], &[2; 16], &[4; 16], &[6; 5]].concat());
}

/// A writer that had lost its reader cuts the sample for the path as it is now.
#[test]
fn fragments_that_stay_larger_are_counted_as_the_writer_counts() {
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000), GuidPrefix([1; 12]));
    let sized = |first, fragments, size| DataFrag { fragment_size: size, ..fragment(1, first, fragments, 45) };
    let missing = |reassembly: &Reassembly| -> Vec<u32> {
        reassembly.missing(SequenceNumber(1), 1, Some(99)).map_or_else(Vec::new, |set| set.iter().collect())
    };
    insert(&mut reassembly, &sized(1, 3, 8), &[1; 24]);
    assert_eq!(missing(&reassembly), [4, 5, 6]);
    let later = Instant::ZERO + Duration::from_millis(900);
    insert_at(later, &mut reassembly, &sized(1, 1, 20), &[1; 20]);
    assert_eq!(missing(&reassembly), [4, 5, 6], "it may have been late");
    let later = later + Duration::from_secs(1);
    insert_at(later, &mut reassembly, &sized(1, 1, 20), &[1; 20]);
    assert_eq!(missing(&reassembly), [2, 3]);
    assert!(matches!(insert_at(later, &mut reassembly, &sized(2, 1, 20), &[2; 20]), Assembled::Unfinished));
    assert!(matches!(insert_at(later, &mut reassembly, &sized(3, 1, 20), &[3; 5]), Assembled::Complete(_)));
}

#[test]
fn a_sample_does_not_change_its_size() {
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000), GuidPrefix([1; 12]));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 1, 1, 25), &[3; 10]), Assembled::Unfinished));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 1, 1, 35), &[3; 10]), Assembled::Refused));
}

/// Two writers of one participant, or one writer and two readers, are one holder.
#[test]
fn a_participant_gets_seven_eighths_with_all_its_writers() {
    let budget = ReassemblyBudget::new(1 << 20);
    let [mut one, mut other, mut honest] =
        [[1; 12], [1; 12], [2; 12]].map(|prefix| Reassembly::new(budget.clone(), GuidPrefix(prefix)));
    let sized = |bytes| DataFrag { fragment_size: 1_000, ..fragment(1, 1, 1, bytes) };
    assert!(matches!(insert(&mut one, &sized(7 << 17), &[0; 1_000]), Assembled::Unfinished));
    assert!(matches!(insert(&mut other, &sized(1 << 17), &[0; 1_000]), Assembled::Refused));
    assert!(matches!(insert(&mut honest, &sized(1 << 17), &[0; 1_000]), Assembled::Unfinished));
}

/// Whoever begins samples and falls silent does not keep the memory of those that arrive.
#[test]
fn samples_that_do_not_grow_make_room_for_others() {
    let budget = ReassemblyBudget::new(1 << 20);
    let mut silent = [[1; 12], [2; 12]].map(|prefix| Reassembly::new(budget.clone(), GuidPrefix(prefix)));
    let mut honest = Reassembly::new(budget.clone(), GuidPrefix([3; 12]));
    let sized = |first, bytes| DataFrag { fragment_size: 1_000, ..fragment(1, first, 1, bytes) };
    assert!(matches!(insert(&mut silent[0], &sized(1, 7 << 17), &[0; 1_000]), Assembled::Unfinished));
    assert!(matches!(insert(&mut silent[1], &sized(1, 1 << 17), &[0; 1_000]), Assembled::Unfinished));
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    assert!(matches!(insert_at(at(4), &mut honest, &sized(1, 2_000), &[0; 1_000]), Assembled::Refused));
    // The first one goes on, the second one does not.
    assert!(matches!(insert_at(at(4), &mut silent[0], &sized(2, 7 << 17), &[0; 1_000]), Assembled::Unfinished));
    assert!(matches!(insert_at(at(6), &mut honest, &sized(1, 2_000), &[0; 1_000]), Assembled::Unfinished));
    assert_eq!(budget.used(), (7 << 17) + 2_000);
    assert!(matches!(insert_at(at(6), &mut honest, &sized(2, 2_000), &[0; 1_000]), Assembled::Complete(_)));
    assert!(matches!(insert_at(at(7), &mut silent[1], &sized(2, 1 << 17), &[0; 1_000]), Assembled::Unfinished));
    let missing = silent[1].missing(SequenceNumber(1), 1, Some(3)).expect("it begins anew");
    assert_eq!(missing.iter().collect::<Vec<_>>(), [1, 3]);
    drop((silent, honest));
    assert_eq!(budget.used(), 0);
}

/// A sample of a GiB in fragments of a byte would cost much memory for what is noted of them, and minutes where they are counted anew,
/// which is also done here.
#[test]
fn many_fragments_are_not_small() {
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(5 << 28), GuidPrefix([1; 12]));
    let sized = |sequence, first, size| DataFrag { fragment_size: size, ..fragment(sequence, first, 1, 1 << 30) };
    for size in [1, 255] {
        assert!(matches!(insert(&mut reassembly, &sized(1, 1, size), &vec![0; size.into()]), Assembled::Refused));
    }
    for size in (256..264).rev() {
        for sequence in 1..200 {
            insert(&mut reassembly, &sized(sequence % 2, 2, size), &vec![0; size.into()]);
        }
    }
    let small = DataFrag { fragment_size: 8, ..fragment(9, 1, 1, 8 * 8_192) };
    assert!(matches!(insert(&mut reassembly, &small, &[0; 8]), Assembled::Unfinished));
}

#[test]
fn a_sample_in_fragments_of_many_sizes_is_whole_when_all_of_its_bytes_came() {
    let (mut rng, mut whole) = (crate::rng::Rng::new(5), 0);
    for _ in 0..300 {
        let bytes = 1 + rng.below(3_000) as usize;
        let mut has = vec![false; bytes];
        let mut size = 60 + rng.below(200) as usize;
        let mut reassembly = Reassembly::new(ReassemblyBudget::new(1 << 16), GuidPrefix([1; 12]));
        for _ in 0..200 {
            size -= if rng.chance(0.03) { rng.below(5) as usize } else { 0 };
            let first = rng.below(bytes.div_ceil(size) as u64) as usize;
            let range = first * size..((first + 1) * size).min(bytes);
            let fragment = DataFrag { fragment_size: size as u16, ..fragment(1, first as u32 + 1, 1, bytes as u32) };
            let content: Vec<u8> = range.clone().map(|place| (place % 251) as u8).collect();
            has[range].fill(true);
            if let Assembled::Complete(complete) = insert(&mut reassembly, &fragment, &content) {
                assert!(has.iter().all(|has| *has), "it was whole before everything had come");
                let assembled = &complete.sample.content;
                assert!(assembled.iter().enumerate().all(|(place, byte)| *byte == (place % 251) as u8));
                whole += 1;
                break;
            }
        }
    }
    assert!(whole > 100, "{whole}");
}
