//! The matched writers of a reader, and which of them have something to be done.

use std::ops::{Index, IndexMut};

use super::writer_proxy::WriterProxy;
use crate::proxies::{Proxy, ProxySet, Summary};
use crate::time::Instant;
use crate::types::Guid;

/// The writers, at places below [`WriterSet::len`] that change when writers go. One may be changed at a time; what it has in common with
/// the others is brought up to date when another one is, or by [`WriterSet::settle`].
#[derive(Debug)]
pub(super) struct WriterSet {
    proxies: ProxySet<WriterProxy>,
    /// The one that was changed last.
    open: Option<usize>,
}

/// What holds for at least one of some writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnyWriter {
    /// Its next sample is here, or will never come.
    pub moves_on: bool,
    /// Its next sample is here but for its key.
    pub awaits_key: bool,
}

/// When the first of some writers is to be answered, or earlier; [`Instant::NEVER`] for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerBound(Instant);

impl Default for AnswerBound {
    fn default() -> AnswerBound {
        AnswerBound(Instant::NEVER)
    }
}

impl Summary for AnyWriter {
    fn join(self, other: AnyWriter) -> AnyWriter {
        AnyWriter { moves_on: self.moves_on | other.moves_on, awaits_key: self.awaits_key | other.awaits_key }
    }
}

impl Summary for AnswerBound {
    fn join(self, other: AnswerBound) -> AnswerBound {
        AnswerBound(self.0.min(other.0))
    }
}

impl Proxy for WriterProxy {
    type Summary = AnyWriter;
    type Bounds = AnswerBound;

    fn guid(&self) -> Guid {
        self.matched.guid
    }

    fn summary(&self) -> AnyWriter {
        AnyWriter { moves_on: self.window.moves_on(), awaits_key: self.awaits_key() }
    }

    fn bounds(&self) -> AnswerBound {
        AnswerBound(self.requests.due.unwrap_or(Instant::NEVER))
    }
}

impl Index<usize> for WriterSet {
    type Output = WriterProxy;

    #[inline]
    fn index(&self, place: usize) -> &WriterProxy {
        self.proxies.at(place)
    }
}

impl IndexMut<usize> for WriterSet {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut WriterProxy {
        if self.open != Some(place) {
            self.settle();
            self.open = Some(place);
        }
        self.proxies.open(place)
    }
}

impl WriterSet {
    pub(super) fn new() -> WriterSet {
        WriterSet { proxies: ProxySet::new(), open: None }
    }

    pub(super) fn len(&self) -> usize {
        self.proxies.len()
    }

    pub(super) fn place(&self, writer: Guid) -> Option<usize> {
        self.proxies.place(writer)
    }

    /// All of them; costs a look at each.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, WriterProxy> {
        self.proxies.iter()
    }

    /// Brings what the writers have in common up to date.
    pub(super) fn settle(&mut self) {
        if let Some(place) = self.open.take() {
            self.proxies.settle(place);
        }
    }

    pub(super) fn insert(&mut self, writer: WriterProxy) {
        self.settle();
        self.proxies.insert(writer);
    }

    pub(super) fn remove(&mut self, writer: Guid) -> Option<WriterProxy> {
        self.settle();
        self.proxies.remove(writer)
    }

    /// When an answer is due, or earlier.
    #[inline]
    pub(super) fn due(&self) -> Instant {
        let AnswerBound(due) = *self.proxies.root_bounds();
        self.open.map_or(due, |place| self[place].bounds().0.min(due))
    }

    /// Whether the next sample of some writer is here but for its key.
    pub(super) fn any_awaits_key(&self) -> bool {
        self.proxies.summary().awaits_key || self.open.is_some_and(|place| self[place].awaits_key())
    }

    /// Calls `answer` for each writer to which an answer is due.
    pub(super) fn answer_due(&mut self, now: Instant, mut answer: impl FnMut(&mut WriterProxy)) {
        self.settle();
        let is_due = |writer: &WriterProxy| writer.requests.due.is_some_and(|due| due <= now);
        self.proxies.change(
            |_, due| due.0 <= now,
            |writer| {
                if is_due(writer) {
                    answer(writer);
                }
            },
        );
    }

    /// The first place from `from` on for whose writer `wanted` holds.
    pub(super) fn next(&mut self, from: usize, wanted: impl Fn(&AnyWriter) -> bool) -> Option<usize> {
        self.settle();
        self.proxies.next(from, |any, _| wanted(any))
    }

    /// The writers whose next sample is here but for its key.
    pub(super) fn awaiting_keys(&self) -> impl Iterator<Item = &WriterProxy> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let place = self.proxies.next(from, |any, _| any.awaits_key)?;
            from = place + 1;
            Some(&self[place])
        })
    }

    /// How often a writer was looked at.
    #[cfg(test)]
    pub(super) fn looks(&self) -> &std::cell::Cell<usize> {
        &self.proxies.looks
    }
}
