//! Large samples from their fragments (RTPS 2.5 §8.4.14.1), within a budget of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Received;
use crate::payload::{Payload, PayloadPool};
use crate::types::SequenceNumber;
use crate::wire::{DataFrag, FragmentSet};

/// Memory that unfinished samples of one participant may take together. One remote writer gets seven eighths of it at most, so
/// that it cannot starve the others.
#[derive(Clone, Debug)]
pub struct ReassemblyBudget {
    used: Arc<AtomicUsize>,
    bytes_max: usize,
}

impl ReassemblyBudget {
    /// A budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> ReassemblyBudget {
        ReassemblyBudget { used: Arc::new(AtomicUsize::new(0)), bytes_max }
    }

    /// Bytes reserved now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn reserve(&self, held_by_writer: usize, bytes: usize) -> bool {
        if held_by_writer.saturating_add(bytes) > self.bytes_max / 8 * 7 {
            return false;
        }
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Unfinished samples kept for each remote writer.
const UNFINISHED_MAX: usize = 32;

/// What a fragment led to.
#[derive(Debug)]
pub(super) enum Assembled {
    /// More is missing.
    Unfinished,
    /// The sample is whole.
    Complete(Received),
    /// Refused: over budget, inconsistent with earlier fragments, or too many unfinished samples.
    Refused,
}

/// Unfinished samples of one remote writer, ordered by number.
#[derive(Debug)]
pub(super) struct Reassembly {
    unfinished: Vec<Unfinished>,
    /// The bitmap of the sample completed last, for the next one.
    spare: Vec<u64>,
    budget: ReassemblyBudget,
}

#[derive(Debug)]
struct Unfinished {
    head: Received,
    fragment_size: u16,
    buffer: Arc<Vec<u8>>,
    received: Vec<u64>,
    missing: u32,
    highest: u32,
    /// Every fragment below this index (zero-based) is here.
    first_missing: u32,
}

impl Reassembly {
    pub(super) fn new(budget: ReassemblyBudget) -> Reassembly {
        Reassembly { unfinished: Vec::new(), spare: Vec::new(), budget }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    pub(super) fn contains(&self, sequence: SequenceNumber) -> bool {
        self.position(sequence).is_ok()
    }

    fn position(&self, sequence: SequenceNumber) -> Result<usize, usize> {
        self.unfinished.binary_search_by_key(&sequence, |unfinished| unfinished.head.sequence)
    }

    /// Adds the fragments whose bytes are `bytes`; `head` describes the sample, without content.
    pub(super) fn insert(
        &mut self,
        fragments: &DataFrag<'_>,
        bytes: &[u8],
        head: &Received,
        pool: &mut PayloadPool,
    ) -> Assembled {
        let index = match self.position(fragments.sequence) {
            Ok(index) => index,
            Err(index) => match self.start(index, fragments, head, pool) {
                Some(index) => index,
                None => return Assembled::Refused,
            },
        };
        let unfinished = &mut self.unfinished[index];
        if unfinished.buffer.len() != fragments.sample_size as usize
            || unfinished.fragment_size != fragments.fragment_size
        {
            return Assembled::Refused;
        }
        unfinished.fill(fragments, bytes);
        if unfinished.missing > 0 {
            return Assembled::Unfinished;
        }
        let complete = self.unfinished.remove(index);
        self.budget.release(complete.buffer.len());
        pool.remember(&complete.buffer);
        self.spare = complete.received;
        Assembled::Complete(Received { content: Payload::new(complete.buffer), ..complete.head })
    }

    /// Makes room for one more sample; the lowest numbers matter most, they are what delivery waits for.
    fn start(
        &mut self,
        mut index: usize,
        fragments: &DataFrag<'_>,
        head: &Received,
        pool: &mut PayloadPool,
    ) -> Option<usize> {
        if self.unfinished.len() >= UNFINISHED_MAX {
            if index == self.unfinished.len() {
                return None;
            }
            self.drop_last();
        }
        let bytes = fragments.sample_size as usize;
        while !self.budget.reserve(self.held_bytes(), bytes) {
            if index >= self.unfinished.len() {
                return None;
            }
            self.drop_last();
        }
        let total = fragments.fragments_total();
        let mut received = std::mem::take(&mut self.spare);
        received.clear();
        received.resize(total.div_ceil(64) as usize, 0);
        let unfinished = Unfinished {
            head: head.clone(),
            fragment_size: fragments.fragment_size,
            buffer: pool.take_sized(bytes),
            received,
            missing: total,
            highest: 0,
            first_missing: 0,
        };
        index = index.min(self.unfinished.len());
        self.unfinished.insert(index, unfinished);
        Some(index)
    }

    fn held_bytes(&self) -> usize {
        self.unfinished.iter().map(|unfinished| unfinished.buffer.len()).sum()
    }

    fn drop_last(&mut self) {
        if let Some(last) = self.unfinished.pop() {
            self.budget.release(last.buffer.len());
        }
    }

    /// Forgets samples below `next`: delivered, irrelevant or lost meanwhile.
    pub(super) fn forget_below(&mut self, next: SequenceNumber) {
        while self.unfinished.first().is_some_and(|first| first.head.sequence < next) {
            let first = self.unfinished.remove(0);
            self.budget.release(first.buffer.len());
        }
    }

    /// Best effort: a newer sample has begun, the oldest unfinished ones will hardly complete.
    pub(super) fn keep_newest(&mut self, count: usize) -> usize {
        let surplus = self.unfinished.len().saturating_sub(count);
        for unfinished in self.unfinished.drain(..surplus) {
            self.budget.release(unfinished.buffer.len());
        }
        surplus
    }

    /// Number of unfinished sample `index`, lowest number first.
    pub(super) fn sequence(&self, index: usize) -> Option<SequenceNumber> {
        self.unfinished.get(index).map(|unfinished| unfinished.head.sequence)
    }

    /// The missing fragments of a sample from number `from` on (1-based), as NACK_FRAG asks for them: at most 256 from
    /// the first missing one on, up to fragment `known`. `None` when nothing up to there is missing.
    pub(super) fn missing(&self, sequence: SequenceNumber, from: u32, known: Option<u32>) -> Option<FragmentSet> {
        let unfinished = &self.unfinished[self.position(sequence).ok()?];
        let last = known.unwrap_or(unfinished.highest).min(unfinished.total());
        let start = from.max(unfinished.first_missing + 1);
        let mut numbers = (start..=last).filter(|number| !unfinished.has(number - 1));
        let mut set = FragmentSet::new(numbers.next()?);
        set.insert(set.base());
        for number in numbers {
            if !set.insert(number) {
                break;
            }
        }
        Some(set)
    }

    /// The first fragment (1-based) of a sample that has not arrived.
    pub(super) fn first_missing(&self, sequence: SequenceNumber) -> Option<u32> {
        self.position(sequence).ok().map(|index| self.unfinished[index].first_missing + 1)
    }
}

impl Drop for Reassembly {
    fn drop(&mut self) {
        for unfinished in &self.unfinished {
            self.budget.release(unfinished.buffer.len());
        }
    }
}

impl Unfinished {
    fn total(&self) -> u32 {
        u32::try_from(self.buffer.len().div_ceil(usize::from(self.fragment_size))).unwrap_or(u32::MAX)
    }

    fn has(&self, index: u32) -> bool {
        self.received[(index / 64) as usize] & (1 << (index % 64)) != 0
    }

    fn fill(&mut self, fragments: &DataFrag<'_>, bytes: &[u8]) {
        let first = fragments.first_fragment - 1;
        let offset = fragments.sample_offset();
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return };
        let Some(target) = buffer.get_mut(offset..offset + bytes.len()) else { return };
        let last = first + u32::from(fragments.fragments);
        if (first..last).all(|index| self.received[(index / 64) as usize] & (1 << (index % 64)) != 0) {
            return;
        }
        target.copy_from_slice(bytes);
        for index in first..last {
            let bit = 1 << (index % 64);
            let word = &mut self.received[(index / 64) as usize];
            if *word & bit == 0 {
                *word |= bit;
                self.missing -= 1;
            }
        }
        self.highest = self.highest.max(last);
        while self.first_missing < self.total() && self.has(self.first_missing) {
            self.first_missing += 1;
        }
    }
}

#[cfg(test)]
mod tests {
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
        let head = Received {
            sequence: fragment.sequence,
            timestamp: None,
            kind: ChangeKind::Write,
            instance: KeyHash::default(),
            content: Payload::from(Vec::new()),
            content_kind: PayloadKind::Data,
        };
        reassembly.insert(fragment, bytes, &head, &mut PayloadPool::new(1 << 16))
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
    fn a_sample_does_not_change_its_size() {
        let mut reassembly = Reassembly::new(ReassemblyBudget::new(1000));
        assert!(matches!(insert(&mut reassembly, &fragment(1, 1, 1, 25), &[3; 10]), Assembled::Unfinished));
        assert!(matches!(insert(&mut reassembly, &fragment(1, 1, 1, 35), &[3; 10]), Assembled::Refused));
    }
}
