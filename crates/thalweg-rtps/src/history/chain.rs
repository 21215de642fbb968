//! Doubly linked chains through the entries of a table: removal from anywhere without search or allocation.

/// The index that names no entry.
pub(super) const NOWHERE: usize = usize::MAX;

/// An entry's neighbours in one chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) previous: usize,
    pub(super) next: usize,
}

impl Default for Link {
    fn default() -> Link {
        Link { previous: NOWHERE, next: NOWHERE }
    }
}

/// Both ends of a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { first: NOWHERE, last: NOWHERE }
    }
}

/// A table whose entries are chained.
pub(super) trait Links {
    /// The neighbours of entry `index`.
    fn link(&mut self, index: usize) -> &mut Link;
}

impl Ends {
    pub(super) fn append(&mut self, links: &mut impl Links, index: usize) {
        *links.link(index) = Link { previous: self.last, next: NOWHERE };
        match self.last {
            NOWHERE => self.first = index,
            last => links.link(last).next = index,
        }
        self.last = index;
    }

    pub(super) fn remove(&mut self, links: &mut impl Links, index: usize) {
        let Link { previous, next } = std::mem::take(links.link(index));
        match previous {
            NOWHERE => self.first = next,
            previous => links.link(previous).next = next,
        }
        match next {
            NOWHERE => self.last = previous,
            next => links.link(next).previous = previous,
        }
    }
}
