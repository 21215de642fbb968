//! The samples of a keyless topic: with one instance, those that `read` has returned and the others are two queues, which need no search
//! and no chains.

use std::collections::VecDeque;
use std::ops::Range;

use super::sample_store::Origin;
use super::{ChangeKind, PayloadKind, ReadFilter, SampleState};
use crate::payload::Payload;
use crate::time::Instant;

/// One sample or notice.
#[derive(Debug)]
pub(super) struct Queued {
    /// Its place in the order of reception, which the queue gives it.
    pub(super) place: u64,
    /// `None` for notices that have no bytes of their own.
    pub(super) payload: Option<Payload>,
    /// The kind of these bytes.
    pub(super) payload_kind: PayloadKind,
    /// Bytes charged to the budget.
    pub(super) bytes: usize,
    pub(super) valid: bool,
    pub(super) change: ChangeKind,
    pub(super) expires: Instant,
    pub(super) origin: Origin,
}

impl Queued {
    /// False for notices.
    pub(super) fn is_value(&self) -> bool {
        self.change == ChangeKind::Write
    }
}

/// Samples of both states, each in order of reception. Those that were read lie in front of the others, unless the application has
/// chosen what it read.
#[derive(Debug, Default)]
pub(super) struct SampleQueue {
    read: VecDeque<Queued>,
    unread: VecDeque<Queued>,
    received: u64,
}

/// Numbers of samples that a call returns: of those read before, and of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) read: usize,
    pub(super) unread: usize,
}

/// Places that an empty queue keeps for the next burst (about 5 MB).
const PLACES_KEPT: usize = 1 << 16;

impl SampleQueue {
    pub(super) fn len(&self) -> usize {
        self.read.len() + self.unread.len()
    }

    /// All, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.of(Share { read: self.read.len(), unread: self.unread.len() }).map(|(_, sample)| sample)
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    pub(super) fn push(&mut self, sample: Queued) {
        self.received += 1;
        self.unread.push_back(Queued { place: self.received, ..sample });
    }

    pub(super) fn oldest(&self) -> Option<&Queued> {
        if self.is_read_next(&(0..self.read.len()), &(0..self.unread.len())) {
            self.read.front()
        } else {
            self.unread.front()
        }
    }

    pub(super) fn pop_oldest(&mut self) -> Option<Queued> {
        let is_read = self.is_read_next(&(0..self.read.len()), &(0..self.unread.len()));
        if is_read { self.read.pop_front() } else { self.unread.pop_front() }
    }

    /// Keeps the samples for which `stays` is true; it is called for the oldest of each state first.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Queued) -> bool) {
        self.read.retain(&mut stays);
        self.unread.retain(stays);
    }

    /// Whether the oldest sample in these parts of both queues is one that was read.
    fn is_read_next(&self, read: &Range<usize>, unread: &Range<usize>) -> bool {
        !read.is_empty() && (unread.is_empty() || self.read[read.start].place < self.unread[unread.start].place)
    }

    /// Whether a sample that was not read is older than one that was.
    pub(super) fn is_mixed(&self) -> bool {
        self.read.back().zip(self.unread.front()).is_some_and(|(read, unread)| read.place > unread.place)
    }

    /// The number of samples, at most `max`, that a filter takes from each part, as far as their sample state decides it: the oldest.
    pub(super) fn share(&self, max: usize, filter: &ReadFilter) -> Share {
        let wanted = |state: SampleState| filter.sample_state.is_none_or(|wanted| wanted == state);
        let read = if wanted(SampleState::Read) { self.read.len() } else { 0 };
        let unread = if wanted(SampleState::NotRead) { self.unread.len() } else { 0 };
        if self.is_mixed() && max < read + unread {
            let oldest = Merged { queue: self, read: 0..read, unread: 0..unread }.take(max);
            let read = oldest.filter(|(state, _)| *state == SampleState::Read).count();
            return Share { read, unread: max - read };
        }
        let read = read.min(max);
        Share { read, unread: unread.min(max - read) }
    }

    /// The samples of a share with their states, oldest first.
    pub(super) fn of(&self, share: Share) -> impl DoubleEndedIterator<Item = (SampleState, &Queued)> {
        Merged { queue: self, read: 0..share.read, unread: 0..share.unread }
    }

    /// Removes the samples of a share with their states, oldest first.
    pub(super) fn remove(&mut self, share: Share) -> impl Iterator<Item = (SampleState, Queued)> {
        let Share { mut read, mut unread } = share;
        std::iter::from_fn(move || {
            if self.is_read_next(&(0..read), &(0..unread)) {
                read -= 1;
                return self.read.pop_front().map(|sample| (SampleState::Read, sample));
            }
            unread = unread.checked_sub(1)?;
            self.unread.pop_front().map(|sample| (SampleState::NotRead, sample))
        })
    }

    /// The samples of a share have been read.
    pub(super) fn mark_read(&mut self, share: Share) {
        let is_mixed = self.is_mixed();
        self.read.extend(self.unread.drain(..share.unread));
        if is_mixed {
            self.sort_read();
        }
    }

    /// The samples for which `is_chosen` is true have been read.
    pub(super) fn mark_chosen_read(&mut self, is_chosen: impl Fn(&Queued) -> bool) {
        for sample in std::mem::take(&mut self.unread) {
            let queue = if is_chosen(&sample) { &mut self.read } else { &mut self.unread };
            queue.push_back(sample);
        }
        self.sort_read();
    }

    fn sort_read(&mut self) {
        self.read.make_contiguous().sort_by_key(|sample| sample.place);
    }

    /// Gives back memory that one large burst took.
    #[inline]
    pub(super) fn trim(&mut self) {
        for queue in [&mut self.read, &mut self.unread] {
            if queue.is_empty() && queue.capacity() > PLACES_KEPT {
                *queue = VecDeque::with_capacity(PLACES_KEPT);
            }
        }
    }
}

/// Parts of both queues, oldest first.
struct Merged<'a> {
    queue: &'a SampleQueue,
    read: Range<usize>,
    unread: Range<usize>,
}

impl<'a> Iterator for Merged<'a> {
    type Item = (SampleState, &'a Queued);

    fn next(&mut self) -> Option<(SampleState, &'a Queued)> {
        if self.queue.is_read_next(&self.read, &self.unread) {
            return self.read.next().map(|index| (SampleState::Read, &self.queue.read[index]));
        }
        self.unread.next().map(|index| (SampleState::NotRead, &self.queue.unread[index]))
    }
}

impl DoubleEndedIterator for Merged<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let SampleQueue { read, unread, .. } = self.queue;
        let last = |part: &Range<usize>, of: &VecDeque<Queued>| (!part.is_empty()).then(|| of[part.end - 1].place);
        if last(&self.read, read) > last(&self.unread, unread) {
            return self.read.next_back().map(|index| (SampleState::Read, &read[index]));
        }
        self.unread.next_back().map(|index| (SampleState::NotRead, &unread[index]))
    }
}
