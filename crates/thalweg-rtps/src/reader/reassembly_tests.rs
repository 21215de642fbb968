//! Samples from their fragments, whatever size those have.

use super::reassembly::*;
use super::*;
use crate::history::{ChangeKind, PayloadKind};
use crate::types::{EntityId, KeyHash};

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
    let head = FragmentedSample {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        timestamp: None,
        kind: ChangeKind::Write,
        instance: KeyHash::default(),
        content_kind: PayloadKind::Data,
    };
    reassembly.insert(now, fragment, bytes, head, &mut PayloadPool::new(1 << 16))
}

#[test]
fn fragments_in_any_order_make_the_sample() {
    let budget = ReassemblyBudget::new(1000);
    let mut reassembly = Reassembly::new(budget.clone());
    assert!(matches!(insert(&mut reassembly, &fragment(1, 3, 1, 25), &[3; 5]), Assembled::Unfinished));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 3, 1, 25), &[9; 5]), Assembled::Unfinished));
    assert_eq!(budget.used(), 25);
    let missing = reassembly.missing(SequenceNumber(1), 1, None).expect("two are missing");
    assert_eq!(missing.iter().collect::<Vec<_>>(), [1, 2]);
    let Assembled::Complete(sample) = insert(&mut reassembly, &fragment(1, 1, 2, 25), &[1; 20]) else {
        panic!("complete")
    };
    assert_eq!(&*sample.content, [&[1u8; 20][..], &[3; 5]].concat());
    assert_eq!(budget.used(), 0);
}

#[test]
fn the_budget_holds_and_the_lowest_number_wins() {
    let budget = ReassemblyBudget::new(125);
    let mut reassembly = Reassembly::new(budget.clone());
    assert!(matches!(insert(&mut reassembly, &fragment(5, 1, 1, 90), &[0; 10]), Assembled::Unfinished));
    assert!(matches!(insert(&mut reassembly, &fragment(6, 1, 1, 90), &[0; 10]), Assembled::Refused));
    assert!(matches!(insert(&mut reassembly, &fragment(4, 1, 1, 90), &[0; 10]), Assembled::Unfinished));
    assert!(!reassembly.contains(SequenceNumber(5)));
    assert_eq!(budget.used(), 90);
    assert!(matches!(insert(&mut reassembly, &fragment(3, 1, 1, 1 << 30), &[0; 10]), Assembled::Refused));
    let mut other = Reassembly::new(budget.clone());
    assert!(matches!(insert(&mut other, &fragment(1, 1, 1, 35), &[0; 10]), Assembled::Unfinished));
    drop(other);
    drop(reassembly);
    assert_eq!(budget.used(), 0);
}

#[test]
fn fragments_that_become_smaller_keep_what_arrived() {
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000));
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
    let Assembled::Complete(sample) = insert(&mut reassembly, &sized(2, 2, 8), &[2; 16]) else { panic!("complete") };
    assert_eq!(&*sample.content, [&[1u8; 8][..], &[2; 16], &[4; 16], &[6; 5]].concat());
}

/// A writer that had lost its reader cuts the sample for the path as it is now.
#[test]
fn fragments_that_stay_larger_are_counted_as_the_writer_counts() {
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000));
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
    let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 1, 1, 25), &[3; 10]), Assembled::Unfinished));
    assert!(matches!(insert(&mut reassembly, &fragment(1, 1, 1, 35), &[3; 10]), Assembled::Refused));
}
