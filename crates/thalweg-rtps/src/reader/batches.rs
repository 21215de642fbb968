//! Which batches a reliable reader has, so that it can answer by their numbers.

use std::collections::VecDeque;

use super::arrival::BatchRange;
use crate::types::SequenceNumber;
use crate::wire::SequenceSet;
use crate::wire::batch::HeartbeatBatch;

/// Batches held ahead of a missing one that are remembered. More are held all the same, but asked for again in vain.
const HELD_MAX: usize = 1024;

/// Beyond it a set of 256 numbers could not be written. Only a lying peer gets there.
const NAMED_MAX: SequenceNumber = SequenceNumber(i64::MAX - 512);

/// A batch with the number of its last sample: everything up to that sample belongs to this batch or to earlier ones.
type End = (SequenceNumber, SequenceNumber);

/// The batches of one writer. Batches are an abbreviation: what counts are the numbers of samples.
#[derive(Debug)]
pub(super) struct Batches {
    /// The batch that the last sample delivered in order belonged to. Holds as long as nothing was delivered since.
    in_order: Option<End>,
    /// Complete batches that wait for earlier samples, in the order of their numbers.
    held: VecDeque<BatchRange>,
    /// What the latest HEARTBEAT_BATCH named as the end.
    announced: Option<End>,
    /// Highest batch known to exist; `None` while the writer has shown no batch.
    highest: Option<SequenceNumber>,
}

impl Batches {
    /// Nothing has arrived: the first batch will be number 1.
    pub(super) fn new() -> Batches {
        let start = (SequenceNumber::ZERO, SequenceNumber::ZERO);
        Batches { in_order: Some(start), held: VecDeque::new(), announced: None, highest: None }
    }

    /// Nothing is known of batches, whatever came before.
    pub(super) fn unknown() -> Batches {
        Batches { in_order: None, ..Batches::new() }
    }

    /// Every sample of `range` has arrived; `next` is the number expected next.
    pub(super) fn arrived(&mut self, range: BatchRange, next: SequenceNumber) {
        self.highest = self.highest.max(Some(range.batch));
        if range.last < next {
            if range.last.next() == next {
                self.in_order = Some((range.batch, range.last));
            }
        } else if let Err(place) = self.held.binary_search_by_key(&range.batch, |held| held.batch)
            && self.held.len() < HELD_MAX
        {
            self.held.insert(place, range);
        }
    }

    /// Takes the numbers of a HEARTBEAT_BATCH into account; `next` is the sample expected next.
    pub(super) fn announced(&mut self, heartbeat: &HeartbeatBatch, next: SequenceNumber) {
        self.highest = Some(self.held.back().map_or(heartbeat.last_batch, |held| held.batch.max(heartbeat.last_batch)));
        self.announced = Some((heartbeat.last_batch, heartbeat.heartbeat.last));
        if next == heartbeat.heartbeat.first {
            self.in_order = Some((heartbeat.first_batch.previous(), next.previous()));
        }
    }

    /// `next` has moved: batches that were held may have been delivered.
    pub(super) fn advanced(&mut self, next: SequenceNumber) {
        while let Some(held) = self.held.front().filter(|held| held.last < next).copied() {
            self.held.pop_front();
            if held.last.next() == next {
                self.in_order = Some((held.batch, held.last));
            }
        }
    }

    /// Whether [`Batches::advanced`] is to be told of `next`.
    pub(super) fn lag(&self, next: SequenceNumber) -> bool {
        self.held.front().is_some_and(|held| held.last < next)
    }

    /// The content of an ACKNACK_BATCH: all batches below the base have arrived, the members are missing. `None` when the writer has
    /// shown no batch, or when what is there or what is missing cannot be told in batches.
    pub(super) fn state(&self, next: SequenceNumber, misses_any: bool) -> Option<SequenceSet> {
        let highest = self.highest?;
        let ends_before_next = |end: &End| end.1.next() == next;
        let named = self.announced.filter(ends_before_next).or(self.in_order.filter(ends_before_next));
        let last = named.map(|end| end.0).filter(|last| *last < NAMED_MAX)?;
        let mut set = SequenceSet::new(last.next());
        if !misses_any {
            return Some(set);
        }
        let mut held = self.held.iter().map(|held| held.batch).skip_while(|batch| *batch <= last).peekable();
        for offset in 0..(highest - last).clamp(0, 256) {
            let batch = set.base() + offset;
            if held.next_if_eq(&batch).is_none() {
                set.insert(batch);
            }
        }
        (!set.is_empty()).then_some(set)
    }
}
