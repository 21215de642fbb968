//! Instances of a durable writer that were disposed and unregistered: they go once every reader knows (DDS 1.4 §2.2.3.5).

use super::WriterHistory;
use crate::time::Instant;
use crate::types::SequenceNumber;

/// The end of an instance.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) sequence: SequenceNumber,
    pub(super) instance: usize,
    /// When its samples may go.
    pub(super) due: Instant,
}

impl WriterHistory {
    /// Of instances that ended up to and including `sequence` only the end is kept: every matched reader has the earlier
    /// changes, and other readers are told only that they are gone.
    pub fn reduce_departed(&mut self, sequence: SequenceNumber) {
        if sequence <= self.reduced {
            return;
        }
        let from = self.departures.partition_point(|departure| departure.sequence <= self.reduced);
        self.reduced = sequence;
        let mut index = from;
        while let Some(&Departure { sequence: end, instance, .. }) = self.departures.get(index)
            && end <= sequence
        {
            index += 1;
            while let Some(own) = self.instances.as_ref().map(|instances| instances.get(instance))
                && own.ends_with(end)
                && own.oldest < end
            {
                let oldest = own.oldest;
                self.remove(oldest);
            }
        }
        self.sweep();
    }

    /// Drops all state of instances that were disposed and unregistered, once all readers know and the cleanup delay is over
    /// (DDS 1.4 §2.2.3.5).
    pub(super) fn drop_departed(&mut self) {
        let now = self.kept.as_ref().map_or(Instant::ZERO, |kept| kept.now);
        while let Some(&Departure { sequence, instance, due }) = self.departures.front()
            && sequence <= self.acknowledged
            && due <= now
        {
            self.departures.pop_front();
            while let Some(own) = self.instances.as_ref().map(|instances| instances.get(instance))
                && own.ends_with(sequence)
            {
                let oldest = own.oldest;
                self.remove(oldest);
            }
        }
    }
}
