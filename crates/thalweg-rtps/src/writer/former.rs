//! Readers that a writer had and lost, perhaps only for a while.

use std::collections::VecDeque;

use crate::types::{Guid, SequenceNumber};

/// Readers remembered of each writer; the oldest is forgotten first. A reader forgotten is taken for a new one.
const FORMER_READERS_MAX: usize = 256;

/// How far readers had acknowledged when they were unmatched: one whose lease ended on a broken link comes back with the same GUID, and
/// goes on where it was as far as the history still reaches.
#[derive(Debug, Default)]
pub(super) struct FormerReaders {
    acknowledged: VecDeque<(Guid, SequenceNumber)>,
}

impl FormerReaders {
    /// Remembers that `reader` has everything up to `acknowledged`.
    pub(super) fn remember(&mut self, reader: Guid, acknowledged: SequenceNumber) {
        if self.acknowledged.len() == FORMER_READERS_MAX {
            self.acknowledged.pop_front();
        }
        self.acknowledged.push_back((reader, acknowledged));
    }

    /// How far `reader` had acknowledged, if it is back; it is forgotten here.
    pub(super) fn take(&mut self, reader: Guid) -> Option<SequenceNumber> {
        let index = self.acknowledged.iter().position(|(former, _)| *former == reader)?;
        self.acknowledged.remove(index).map(|(_, acknowledged)| acknowledged)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.acknowledged.len()
    }
}
