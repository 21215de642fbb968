//! LIFESPAN at the writer: values go when their time is over, whether they were sent or not (DDS 1.4 §2.2.3.16).

use super::{ChangeKind, WriterHistory};
use crate::types::SequenceNumber;

impl WriterHistory {
    /// These values are worth nothing any more: they go, sent or not, with what their instances have from before. Returns whether
    /// anything was freed.
    pub fn expire(&mut self, sequences: impl Iterator<Item = SequenceNumber>) -> bool {
        let before = self.held.changes;
        let conflates = std::mem::replace(&mut self.conflates, true);
        for sequence in sequences {
            if self.get(sequence).is_none_or(|sample| sample.kind != ChangeKind::Write) {
                continue;
            }
            let Some(instance) = self.ring.instance_of(sequence).filter(|_| self.instances.is_some()) else {
                self.remove(sequence);
                continue;
            };
            while let Some(own) = self.instances.as_ref().map(|instances| instances.get(instance))
                && own.held.changes > 0
                && own.oldest <= sequence
            {
                let oldest = own.oldest;
                self.remove(oldest);
            }
        }
        self.conflates = conflates;
        self.sweep();
        self.held.changes < before
    }
}
