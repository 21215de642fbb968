//! What readers have acknowledged, and who waits for that.

use super::Writer;
use crate::types::SequenceNumber;

impl Writer {
    /// True when every matched reliable reader has acknowledged every sample (DDS 1.4 §2.2.2.4.1.12).
    pub fn all_acknowledged(&self) -> bool {
        self.readers.summary().reliable.is_none_or(|acknowledged| acknowledged >= self.history.last())
    }

    /// Has [`Event::Acknowledged`](crate::participant::Event::Acknowledged) tell when every matched reliable reader that was not given up
    /// has acknowledged the samples up to `number`, also while more are written.
    pub fn await_acknowledgement(&mut self, number: SequenceNumber) {
        let awaited = self.room.acknowledgement.map_or(number, |awaited| awaited.min(number));
        self.room.acknowledgement = Some(awaited);
    }

    /// True once when what was waited for is acknowledged by all readers that still may acknowledge it: who waits learns of the others
    /// then.
    pub(crate) fn poll_acknowledgement(&mut self) -> bool {
        let is_there = self.room.acknowledgement.is_some_and(|number| self.has_nobody_awaited_below(number));
        if is_there {
            self.room.acknowledgement = None;
        }
        is_there
    }

    /// Reliable readers that are not waited for at the moment because they have exhausted [`reader_patience`](crate::qos::WriterQos::reader_patience).
    pub fn readers_given_up(&self) -> usize {
        self.readers.iter().filter(|reader| reader.is_given_up()).count()
    }

    /// Reliable readers that owe an acknowledgement, given up or not.
    pub fn readers_behind(&self) -> usize {
        self.readers_below(self.history.last())
    }

    /// Reliable readers that have not acknowledged all samples up to `number`, given up or not.
    pub fn readers_below(&self, number: SequenceNumber) -> usize {
        self.readers.iter().filter(|reader| reader.matched.reliable && reader.acknowledged.sample < number).count()
    }

    /// True when no reader that is waited for owes an acknowledgement.
    pub(super) fn is_waiting_for_nobody(&self) -> bool {
        self.has_nobody_awaited_below(self.history.last())
    }

    /// True when every reader that is waited for has acknowledged the samples up to `number`.
    fn has_nobody_awaited_below(&self, number: SequenceNumber) -> bool {
        self.readers.summary().awaited().is_none_or(|acknowledged| acknowledged >= number)
    }
}
