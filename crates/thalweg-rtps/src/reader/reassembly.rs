//! Large samples from their fragments (RTPS 2.5 §8.4.14.1), within a budget of memory.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::budget::{Claim, ClaimState, ReassemblyBudget, STUCK_AFTER};
use super::{FragmentedSample, Received, WholeSample};
use crate::payload::{Payload, PayloadPool};
use crate::time::Instant;
use crate::types::{GuidPrefix, KeyHash, SequenceNumber};
use crate::wire::{DataFrag, FragmentSet};

/// Unfinished samples kept for each remote writer.
const UNFINISHED_MAX: usize = 32;

/// The outcome of a fragment.
#[derive(Debug)]
pub(super) enum Assembled {
    /// More is missing.
    Unfinished,
    /// The sample is whole.
    Complete(WholeSample),
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
    /// The participant of the writer.
    holder: GuidPrefix,
}

#[derive(Debug)]
struct Unfinished {
    sequence: SequenceNumber,
    claim: Claim,
    head: FragmentedSample,
    fragment_size: u16,
    /// Bytes of the sample; the buffer may be larger.
    bytes: usize,
    /// Number of its fragments.
    total: u32,
    buffer: Arc<Vec<u8>>,
    received: Vec<u64>,
    missing: u32,
    highest: u32,
    /// Every fragment below this index (zero-based) is here.
    first_missing: u32,
    /// How often the writer has made its fragments smaller.
    renumbered: u8,
    /// The size that the latest fragment claimed, if it is another one.
    rival: Option<u32>,
    /// When a fragment came last.
    grown_at: Instant,
    /// When one came last of which something was missing.
    progressed_at: Instant,
}

/// How often a sample's fragments may become smaller at once. A path seldom turns out to be narrower even twice.
const RENUMBERED_MAX: u8 = 8;

/// Fragments of a sample, where they are smaller than [`FRAGMENT_BYTES_MIN`]: what is noted of each must cost little beside its bytes.
const SMALL_FRAGMENTS_MAX: u32 = 8_192;
/// Chosen by Thalweg: the least datagram that IPv4 has to carry has 576 bytes.
const FRAGMENT_BYTES_MIN: u16 = 256;

/// Fragments that add nothing for so long, though they are repeated on request, are counted otherwise than the reader counts: the writer
/// has found a path for larger ones.
const STALLED_AFTER: Duration = Duration::from_secs(1);

impl Reassembly {
    /// For the samples of a writer of the remote participant `holder`.
    pub(super) fn new(budget: ReassemblyBudget, holder: GuidPrefix) -> Reassembly {
        Reassembly { unfinished: Vec::new(), spare: Vec::new(), budget, holder }
    }

    pub(super) fn len(&self) -> usize {
        self.unfinished.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unfinished.is_empty()
    }

    pub(super) fn contains(&self, sequence: SequenceNumber) -> bool {
        self.position(sequence).is_ok()
    }

    fn position(&self, sequence: SequenceNumber) -> Result<usize, usize> {
        self.unfinished.binary_search_by_key(&sequence, |unfinished| unfinished.sequence)
    }

    /// Adds the fragments whose bytes are `bytes`; `head` describes the sample, without content.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        fragments: &DataFrag<'_>,
        bytes: &[u8],
        head: FragmentedSample,
        pool: &mut PayloadPool,
    ) -> Assembled {
        if fragments.fragment_size < FRAGMENT_BYTES_MIN && fragments.fragments_total() > SMALL_FRAGMENTS_MAX {
            return Assembled::Refused;
        }
        self.unfinished.retain_mut(|unfinished| unfinished.claim.look() == ClaimState::Held);
        let index = match self.position(fragments.sequence) {
            Ok(index) if self.is_contested(index, fragments.sample_size) => {
                self.unfinished.remove(index);
                self.start(now, index, fragments, head, pool)
            }
            Ok(index) => Some(index),
            Err(index) => self.start(now, index, fragments, head, pool),
        };
        let Some(index) = index else { return Assembled::Refused };
        let unfinished = &mut self.unfinished[index];
        if unfinished.bytes != fragments.sample_size as usize {
            unfinished.rival = Some(fragments.sample_size);
            return Assembled::Refused;
        }
        (unfinished.rival, unfinished.grown_at) = (None, now);
        unfinished.claim.note_growth(now);
        unfinished.count_as(now, fragments.fragment_size);
        if fragments.first_fragment == 1 && unfinished.first_missing == 0 {
            // Cyclone DDS tells source time and inline QoS with the first fragment only.
            unfinished.head = head;
        }
        let missing = unfinished.missing;
        unfinished.fill(fragments, bytes);
        if unfinished.missing < missing {
            unfinished.progressed_at = now;
        }
        if unfinished.missing > 0 {
            return Assembled::Unfinished;
        }
        let complete = self.unfinished.remove(index);
        pool.remember(&complete.buffer);
        self.spare = complete.received;
        let FragmentedSample { timestamp, kind, hint, content_kind, coherent_set, related } = complete.head;
        let content = Payload::new(complete.buffer).slice(0..complete.bytes);
        let sample = Received {
            sequence: complete.sequence,
            timestamp,
            kind,
            instance: KeyHash::default(),
            content,
            content_kind,
            coherent_set,
            related: related.map(Arc::new),
        };
        Assembled::Complete(WholeSample { sample, hint })
    }

    /// True when two fragments in a row agree on another size than the one that came first, which was forged then.
    fn is_contested(&self, index: usize, sample_size: u32) -> bool {
        let unfinished = &self.unfinished[index];
        unfinished.rival == Some(sample_size) && unfinished.bytes != sample_size as usize
    }

    /// The highest number of which something is here, or zero.
    pub(super) fn highest(&self) -> SequenceNumber {
        self.unfinished.last().map_or(SequenceNumber::ZERO, |unfinished| unfinished.sequence)
    }

    /// Whether nothing of some sample has come for long.
    pub(super) fn is_any_stuck(&self, now: Instant) -> bool {
        self.unfinished.iter().any(|unfinished| unfinished.is_stuck(now))
    }

    /// The writer says that it is sending a sample, however long it pauses within it.
    pub(super) fn note_vouched(&mut self, now: Instant, sequence: SequenceNumber) {
        if let Ok(index) = self.position(sequence) {
            self.unfinished[index].grown_at = now;
        }
    }

    /// Whether nothing of a sample has come for long.
    pub(super) fn is_stuck(&self, sequence: SequenceNumber, now: Instant) -> bool {
        self.position(sequence).is_ok_and(|index| self.unfinished[index].is_stuck(now))
    }

    /// The first sample that a writer whose last number is `last` cannot be sending: the next one it may be.
    pub(super) fn first_beyond(&self, last: SequenceNumber, now: Instant) -> Option<SequenceNumber> {
        self.unfinished.iter().find(|unfinished| unfinished.is_beyond(last, now)).map(|unfinished| unfinished.sequence)
    }

    /// Forgets what [`Reassembly::first_beyond`] finds.
    pub(super) fn forget_beyond(&mut self, last: SequenceNumber, now: Instant) {
        self.unfinished.retain(|unfinished| !unfinished.is_beyond(last, now));
    }

    /// Makes room for one more sample; the lowest numbers matter most, they are what delivery waits for.
    fn start(
        &mut self,
        now: Instant,
        mut index: usize,
        fragments: &DataFrag<'_>,
        head: FragmentedSample,
        pool: &mut PayloadPool,
    ) -> Option<usize> {
        if self.unfinished.len() >= UNFINISHED_MAX {
            if index == self.unfinished.len() {
                return None;
            }
            self.unfinished.pop();
        }
        let bytes = fragments.sample_size as usize;
        let claim = loop {
            match self.budget.claim(now, self.holder, bytes) {
                Some(claim) => break claim,
                None if index >= self.unfinished.len() => return None,
                None => self.unfinished.pop(),
            };
        };
        let total = fragments.fragments_total();
        let mut received = std::mem::take(&mut self.spare);
        received.clear();
        received.resize(total.div_ceil(64) as usize, 0);
        let unfinished = Unfinished {
            sequence: fragments.sequence,
            claim,
            head,
            fragment_size: fragments.fragment_size,
            bytes,
            total,
            buffer: pool.take_sized(buffer_bytes(bytes)),
            received,
            missing: total,
            highest: 0,
            first_missing: 0,
            renumbered: 0,
            rival: None,
            grown_at: Instant::ZERO,
            progressed_at: now,
        };
        index = index.min(self.unfinished.len());
        self.unfinished.insert(index, unfinished);
        Some(index)
    }

    /// Forgets samples that are not `wanted` any more.
    #[inline]
    pub(super) fn retain(&mut self, mut wanted: impl FnMut(SequenceNumber) -> bool) {
        if self.unfinished.is_empty() {
            return;
        }
        self.unfinished.retain(|unfinished| wanted(unfinished.sequence));
    }

    /// Best effort: a newer sample has begun, the oldest unfinished ones will hardly complete. Returns how many those are, and the last of
    /// them; `None` when there are none.
    pub(super) fn keep_newest(&mut self, count: usize) -> Option<(u64, SequenceNumber)> {
        let surplus = self.unfinished.len().saturating_sub(count);
        let last = self.unfinished.drain(..surplus).next_back()?.sequence;
        Some((surplus as u64, last))
    }

    /// Number of unfinished sample `index`, lowest number first.
    pub(super) fn sequence(&self, index: usize) -> Option<SequenceNumber> {
        self.unfinished.get(index).map(|unfinished| unfinished.sequence)
    }

    /// The missing fragments of a sample from number `from` on (1-based), as NACK_FRAG asks for them: at most 256 from
    /// the first missing one on, up to fragment `known`. `None` when nothing up to there is missing.
    pub(super) fn missing(&self, sequence: SequenceNumber, from: u32, known: Option<u32>) -> Option<FragmentSet> {
        let unfinished = &self.unfinished[self.position(sequence).ok()?];
        let last = known.unwrap_or(unfinished.highest).min(unfinished.total);
        let start = from.max(unfinished.first_missing + 1);
        let first = (start..=last).find(|number| !unfinished.has(number - 1))?;
        let mut set = FragmentSet::new(first);
        for number in first..=last.min(first.saturating_add(255)) {
            if !unfinished.has(number - 1) {
                set.insert(number);
            }
        }
        Some(set)
    }

    /// The fragments of a sample that have not arrived from number `from` on (1-based), as LOST_FRAG tells them: 256 at most from the first
    /// on. Where nothing beyond those has, they end with the first one behind all that has. `None` where all up to there have arrived.
    pub(super) fn holes(&self, sequence: SequenceNumber, from: u32) -> Option<Holes> {
        let unfinished = &self.unfinished[self.position(sequence).ok()?];
        let end = unfinished.highest.saturating_add(1).min(unfinished.total);
        let state = self.missing(sequence, from, Some(end))?;
        let rest = unfinished.highest < unfinished.total && end - state.base() < FragmentSet::NUMBERS_MAX;
        Some(Holes { state, rest, fragment_size: unfinished.fragment_size })
    }

    /// The first fragment (1-based) of a sample that has not arrived.
    pub(super) fn first_missing(&self, sequence: SequenceNumber) -> Option<u32> {
        self.position(sequence).ok().map(|index| self.unfinished[index].first_missing + 1)
    }
}

/// Fragments of a sample that did not arrive.
#[derive(Debug)]
pub(super) struct Holes {
    /// 256 at most.
    pub state: FragmentSet,
    /// Beyond the last of those, none arrived.
    pub rest: bool,
    /// In bytes, as this reader counts.
    pub fragment_size: u16,
}

/// Samples of like sizes share recycled buffers: cut to each one's size, they would have to be cleared again for a larger one.
/// Memory that is never written is not taken from the system.
fn buffer_bytes(sample_bytes: usize) -> usize {
    if sample_bytes <= ROUNDED_MAX { sample_bytes.next_power_of_two() } else { sample_bytes }
}

/// Larger buffers are not recycled.
const ROUNDED_MAX: usize = 64 << 20;

impl Unfinished {
    fn is_stuck(&self, now: Instant) -> bool {
        now.since(self.grown_at) >= STUCK_AFTER
    }

    fn is_beyond(&self, last: SequenceNumber, now: Instant) -> bool {
        self.sequence > last.next() || self.sequence > last && self.is_stuck(now)
    }

    /// Counts as a fragment that has come does: the writer's path may have become narrower in the middle of the sample, or wider while
    /// the writer had lost the reader.
    fn count_as(&mut self, now: Instant, fragment_size: u16) {
        let is_stalled = now.since(self.progressed_at) >= STALLED_AFTER;
        if fragment_size != self.fragment_size && is_stalled {
            self.progressed_at = now;
            self.renumber(fragment_size);
        } else if fragment_size < self.fragment_size && self.renumbered < RENUMBERED_MAX {
            self.renumbered += 1;
            self.renumber(fragment_size);
        }
    }

    /// Counts in fragments of `fragment_size` from now on. Fragments stay of which everything has arrived.
    fn renumber(&mut self, fragment_size: u16) {
        let before = std::mem::take(&mut self.received);
        let (old, new) = (usize::from(self.fragment_size), usize::from(fragment_size));
        self.fragment_size = fragment_size;
        self.total = u32::try_from(self.bytes.div_ceil(new)).unwrap_or(u32::MAX);
        self.received.resize(self.total.div_ceil(64) as usize, 0);
        (self.missing, self.highest, self.first_missing) = (self.total, 0, 0);
        for run in runs(&before) {
            let (start, end) = (run.start * old, (run.end * old).min(self.bytes));
            let (first, last) = self.within(start, end);
            (first..last).for_each(|index| self.mark(index));
        }
        self.advance();
    }

    fn mark(&mut self, index: u32) {
        let bit = 1 << (index % 64);
        let word = &mut self.received[(index / 64) as usize];
        if *word & bit == 0 {
            *word |= bit;
            self.missing -= 1;
        }
        self.highest = self.highest.max(index + 1);
    }

    fn advance(&mut self) {
        while self.first_missing < self.total && self.has(self.first_missing) {
            self.first_missing += 1;
        }
    }

    fn has(&self, index: u32) -> bool {
        self.received[(index / 64) as usize] & (1 << (index % 64)) != 0
    }

    fn fill(&mut self, fragments: &DataFrag<'_>, bytes: &[u8]) {
        let offset = fragments.sample_offset();
        let end = offset + bytes.len();
        let (first, last) = self.within(offset, end);
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return };
        let Some(target) = buffer.get_mut(offset..end) else { return };
        if (first..last).all(|index| self.received[(index / 64) as usize] & (1 << (index % 64)) != 0) {
            return;
        }
        target.copy_from_slice(bytes);
        (first..last).for_each(|index| self.mark(index));
        self.advance();
    }

    /// The fragments that lie wholly within these bytes; the writer may still send some that were larger.
    fn within(&self, offset: usize, end: usize) -> (u32, u32) {
        let size = usize::from(self.fragment_size);
        let last = if end == self.bytes { self.total as usize } else { end / size };
        (u32::try_from(offset.div_ceil(size)).unwrap_or(u32::MAX), u32::try_from(last).unwrap_or(u32::MAX))
    }
}

/// The bits of a map that are set, in ranges; what is not set costs a step for 64.
fn runs(words: &[u64]) -> impl Iterator<Item = Range<usize>> {
    let next = |from: usize, is_set: bool| -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for (place, word) in words.iter().enumerate().skip(from / 64) {
            let found = if is_set { *word } else { !*word } & mask;
            if found != 0 {
                return Some(64 * place + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    };
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = next(from, true)?;
        let end = next(start, false).unwrap_or(64 * words.len());
        from = end;
        Some(start..end)
    })
}
