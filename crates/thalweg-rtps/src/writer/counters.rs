//! What a writer counts.

use std::ops::AddAssign;

/// Numbers that tell what a writer did; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterCounters {
    /// DATA and DATA_FRAG submessages sent for the first time.
    pub transmitted: u64,
    /// DATA and DATA_FRAG submessages sent again, or for the first time as repairs.
    pub repaired: u64,
    /// DATA and DATA_FRAG submessages that were not sent to a reader with the others, which had fallen behind and gets nothing but repairs
    /// until it has caught up; for each such reader.
    pub left_to_repairs: u64,
    /// HEARTBEATs sent.
    pub heartbeats: u64,
    /// ACKNACKs and NACK_FRAGs handled.
    pub acknacks: u64,
    /// ACKNACKs and NACK_FRAGs refused because they tell of samples or fragments that were never sent.
    pub implausible: u64,
    /// Writes refused for want of room.
    pub refused: u64,
    /// Samples that left no trace because the content filter of every matched reader refuses them.
    pub unwanted: u64,
    /// Samples that KEEP_LAST overwrote before every reader had acknowledged them.
    pub overwritten_unacknowledged: u64,
    /// Large samples that KEEP_LAST overwrote when only a part of them had been sent, so that their readers never have them whole. Samples
    /// that nobody acknowledges are finished instead.
    pub abandoned: u64,
    /// Times a reader was given up that had exhausted [`WriterQos::reader_patience`](crate::qos::WriterQos::reader_patience).
    pub readers_given_up: u64,
    /// DATA_BATCH submessages sent for the first time.
    pub batches: u64,
    /// Datagrams with samples sent for the first time; one to several destinations counts once.
    pub datagrams: u64,
}

impl WriterCounters {
    /// What was counted after `before`, an earlier state of these numbers.
    #[must_use]
    pub fn since(self, before: WriterCounters) -> WriterCounters {
        self.combined(before, u64::saturating_sub)
    }

    /// Each number made of the two.
    fn combined(self, other: WriterCounters, of: fn(u64, u64) -> u64) -> WriterCounters {
        WriterCounters {
            transmitted: of(self.transmitted, other.transmitted),
            repaired: of(self.repaired, other.repaired),
            left_to_repairs: of(self.left_to_repairs, other.left_to_repairs),
            heartbeats: of(self.heartbeats, other.heartbeats),
            acknacks: of(self.acknacks, other.acknacks),
            implausible: of(self.implausible, other.implausible),
            refused: of(self.refused, other.refused),
            unwanted: of(self.unwanted, other.unwanted),
            overwritten_unacknowledged: of(self.overwritten_unacknowledged, other.overwritten_unacknowledged),
            abandoned: of(self.abandoned, other.abandoned),
            readers_given_up: of(self.readers_given_up, other.readers_given_up),
            batches: of(self.batches, other.batches),
            datagrams: of(self.datagrams, other.datagrams),
        }
    }
}

impl AddAssign for WriterCounters {
    fn add_assign(&mut self, other: WriterCounters) {
        *self = self.combined(other, u64::saturating_add);
    }
}
