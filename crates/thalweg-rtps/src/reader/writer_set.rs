//! The matched writers of a reader, and which of them have something to be done.

use std::ops::{Index, IndexMut};

use super::writer_proxy::WriterProxy;
use crate::proxies::{Proxy, ProxySet, Summary};
use crate::time::Instant;
use crate::types::Guid;

/// The writers, at places below [`WriterSet::len`] that change when writers go. One may be changed at a time; what it has in common with
/// the others is brought up to date when another one is changed, or before the others are searched.
#[derive(Debug)]
pub(super) struct WriterSet {
    proxies: ProxySet<WriterProxy>,
    /// The one that was changed last.
    open: Option<usize>,
    /// When the writers are searched for answers that are due. An answer that was put forward without a note of it leaves with the next
    /// search: what is missing may still be on its way with the repair that put it forward.
    next_due: Instant,
    /// The places found by a search.
    found: Vec<usize>,
}

/// What holds for at least one of some writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnyWriter {
    /// It holds samples that wait for a missing one, for room or for their keys.
    holds: bool,
    /// As [`WriterProxy::moves_on`].
    moves_on: bool,
    /// As [`WriterProxy::awaits_key`].
    awaits_key: bool,
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
        AnyWriter {
            holds: self.holds | other.holds,
            moves_on: self.moves_on | other.moves_on,
            awaits_key: self.awaits_key | other.awaits_key,
        }
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
        AnyWriter { holds: !self.window.is_empty(), moves_on: self.moves_on(), awaits_key: self.awaits_key() }
    }

    fn bounds(&self) -> AnswerBound {
        AnswerBound(due_of(self))
    }
}

fn due_of(writer: &WriterProxy) -> Instant {
    writer.requests.due.unwrap_or(Instant::NEVER)
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
        WriterSet { proxies: ProxySet::new(), open: None, next_due: Instant::NEVER, found: Vec::new() }
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

    /// Adds one that it does not know, and notes when it is to be answered.
    pub(super) fn insert(&mut self, writer: WriterProxy) {
        self.settle();
        self.note_due(due_of(&writer));
        self.proxies.insert(writer);
    }

    pub(super) fn remove(&mut self, writer: Guid) -> Option<WriterProxy> {
        self.settle();
        self.proxies.remove(writer)
    }

    /// When [`WriterSet::answer_due`] is to be called next.
    #[inline]
    pub(super) fn next_due(&self) -> Instant {
        self.next_due
    }

    /// An answer is due at `due`.
    #[inline]
    pub(super) fn note_due(&mut self, due: Instant) {
        self.next_due = self.next_due.min(due);
    }

    /// Calls `answer` for each writer to which an answer is due, in the order of GUIDs, and finds out when the next one is.
    pub(super) fn answer_due(&mut self, now: Instant, mut answer: impl FnMut(&mut WriterProxy)) {
        self.visit(
            |_, due| due.0 <= now,
            |writer| {
                if due_of(writer) <= now {
                    answer(writer);
                }
            },
        );
        self.next_due = self.proxies.earliest(|_, due| due.0, due_of);
    }

    /// Calls `change` for each writer that moves on, in the order of GUIDs, since they compete for room, and notes when it says that an
    /// answer is due.
    pub(super) fn move_on(&mut self, mut change: impl FnMut(&mut WriterProxy) -> Option<Instant>) {
        let mut due = Instant::NEVER;
        self.visit(|any, _| any.moves_on, |writer| due = due.min(change(writer).unwrap_or(Instant::NEVER)));
        self.note_due(due);
    }

    /// Changes the writers for which `wanted` holds, in the order of GUIDs.
    fn visit(&mut self, wanted: impl Fn(&AnyWriter, &AnswerBound) -> bool, mut change: impl FnMut(&mut WriterProxy)) {
        self.settle();
        let mut from = 0;
        while let Some(place) = self.proxies.next(from, &wanted) {
            self.found.push(place);
            from = place + 1;
        }
        if self.found.len() > 1 {
            self.found.sort_unstable_by_key(|place| self.proxies.at(*place).matched.guid);
        }
        for place in self.found.drain(..) {
            change(self.proxies.open(place));
            self.proxies.settle(place);
        }
    }

    /// Whether the next sample of some writer is here but for its key.
    pub(super) fn any_awaits_key(&self) -> bool {
        self.search(|any| any.awaits_key).next().is_some()
    }

    /// The writers that hold samples, in no order.
    pub(super) fn holding(&self) -> impl Iterator<Item = &WriterProxy> {
        self.search(|any| any.holds)
    }

    fn search(&self, wanted: impl Fn(&AnyWriter) -> bool + Copy) -> impl Iterator<Item = &WriterProxy> {
        let mut from = 0;
        let settled = std::iter::from_fn(move || {
            let place = self.proxies.next(from, |any, _| wanted(any))?;
            from = place + 1;
            Some(place)
        });
        let others = settled.filter(|place| self.open != Some(*place)).map(|place| &self[place]);
        let open = self.open.map(|place| &self[place]).filter(move |writer| wanted(&writer.summary()));
        others.chain(open)
    }

    /// Brings what the writers have in common up to date.
    fn settle(&mut self) {
        if let Some(place) = self.open.take() {
            self.proxies.settle(place);
        }
    }

    /// How often a writer was looked at.
    #[cfg(test)]
    pub(super) fn looks(&self) -> &std::cell::Cell<usize> {
        &self.proxies.looks
    }
}
