//! The samples of a keyless topic: with one instance, samples that `read` has returned always lie in front of the others, so two
//! queues need no search and no chains.

use std::collections::VecDeque;

use super::sample_store::Origin;
use super::{ReadFilter, SampleState};
use crate::payload::Payload;
use crate::time::Instant;

/// One sample or notice.
#[derive(Debug)]
pub(super) struct Queued {
    /// `None` for notices.
    pub(super) payload: Option<Payload>,
    /// Bytes charged to the budget.
    pub(super) bytes: usize,
    pub(super) valid: bool,
    pub(super) is_value: bool,
    pub(super) expires: Instant,
    pub(super) origin: Origin,
}

/// Samples in order of reception, those that `read` has returned first.
#[derive(Debug, Default)]
pub(super) struct SampleQueue {
    read: VecDeque<Queued>,
    unread: VecDeque<Queued>,
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
        self.read.iter().chain(&self.unread)
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    pub(super) fn push(&mut self, sample: Queued) {
        self.unread.push_back(sample);
    }

    pub(super) fn oldest(&self) -> Option<&Queued> {
        self.read.front().or_else(|| self.unread.front())
    }

    pub(super) fn pop_oldest(&mut self) -> Option<Queued> {
        self.read.pop_front().or_else(|| self.unread.pop_front())
    }

    /// Keeps the samples for which `stays` is true; it is called for the oldest first.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Queued) -> bool) {
        self.read.retain(&mut stays);
        self.unread.retain(stays);
    }

    /// The number of samples, at most `max`, that a filter takes from each part, as far as their sample state decides it.
    pub(super) fn share(&self, max: usize, filter: &ReadFilter) -> Share {
        let wanted = |state: SampleState| filter.sample_state.is_none_or(|wanted| wanted == state);
        let read = if wanted(SampleState::Read) { self.read.len().min(max) } else { 0 };
        let unread = if wanted(SampleState::NotRead) { self.unread.len().min(max - read) } else { 0 };
        Share { read, unread }
    }

    /// The samples of a share with their states, oldest first.
    pub(super) fn of(&self, share: Share) -> impl DoubleEndedIterator<Item = (SampleState, &Queued)> {
        let read = self.read.range(..share.read).map(|sample| (SampleState::Read, sample));
        read.chain(self.unread.range(..share.unread).map(|sample| (SampleState::NotRead, sample)))
    }

    /// Removes the samples of a share with their states, oldest first.
    pub(super) fn remove(&mut self, share: Share) -> impl Iterator<Item = (SampleState, Queued)> {
        let SampleQueue { read, unread } = self;
        let read = (0..share.read).filter_map(|_| read.pop_front()).map(|sample| (SampleState::Read, sample));
        read.chain((0..share.unread).filter_map(|_| unread.pop_front()).map(|sample| (SampleState::NotRead, sample)))
    }

    /// The samples of a share have been read.
    pub(super) fn mark_read(&mut self, share: Share) {
        self.read.extend(self.unread.drain(..share.unread));
    }

    /// The samples for which `is_chosen` is true have been read.
    pub(super) fn mark_chosen_read(&mut self, is_chosen: impl Fn(&Queued) -> bool) {
        for sample in std::mem::take(&mut self.unread) {
            let queue = if is_chosen(&sample) { &mut self.read } else { &mut self.unread };
            queue.push_back(sample);
        }
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
