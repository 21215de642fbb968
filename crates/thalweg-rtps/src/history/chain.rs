//! Doubly linked chains through the entries of a table: removal from anywhere without search or allocation.

/// The index that names no entry. Indices are kept in 32 bits: a table of more entries does not fit the budgets.
pub(super) const NOWHERE: usize = u32::MAX as usize;

/// An entry's neighbours in one chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    previous: u32,
    next: u32,
}

impl Link {
    /// The entry behind this one.
    pub(super) fn next(self) -> usize {
        self.next as usize
    }
}

impl Default for Link {
    fn default() -> Link {
        Link { previous: u32::MAX, next: u32::MAX }
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
        *links.link(index) = Link { previous: self.last as u32, next: u32::MAX };
        match self.last {
            NOWHERE => self.first = index,
            last => links.link(last).next = index as u32,
        }
        self.last = index;
    }

    pub(super) fn remove(&mut self, links: &mut impl Links, index: usize) {
        let Link { previous, next } = std::mem::take(links.link(index));
        match previous as usize {
            NOWHERE => self.first = next as usize,
            previous => links.link(previous).next = next,
        }
        match next as usize {
            NOWHERE => self.last = previous as usize,
            next => links.link(next).previous = previous,
        }
    }
}
