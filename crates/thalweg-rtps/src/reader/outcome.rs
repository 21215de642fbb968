//! What a reader tells its driver, and the numbers that it keeps.

use std::ops::AddAssign;

use crate::time::Instant;

/// What an input changed for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOutcome {
    /// Something can be taken that could not before.
    pub data_available: bool,
    /// [`Reader::poll_transmit`](super::Reader::poll_transmit) has something to send now.
    pub answer_due: bool,
    /// [`Reader::poll_keys`](super::Reader::poll_keys) has something to ask.
    pub keys_due: bool,
    /// Some instance got no sample for longer than the reader's DEADLINE.
    pub deadline_missed: bool,
    /// The writer has begun anew under its old GUID.
    pub begun_anew: bool,
}

/// Numbers that tell what a reader did; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderCounters {
    /// Samples handed to the cache.
    pub received: u64,
    /// Samples that arrived more than once.
    pub duplicates: u64,
    /// Samples that were written but will never be handed over (SAMPLE_LOST); why: [`Reader::losses`](super::Reader::losses).
    pub lost: u64,
    /// Samples refused because they lie too far ahead of a missing one, or exceed the memory for such samples.
    pub too_far: u64,
    /// HEARTBEATs, GAPs and fragments that were not believed at once, since they tell of numbers of which nobody had heard: the
    /// writer was asked.
    pub doubted: u64,
    /// Fragments refused: over budget or inconsistent.
    pub fragments_refused: u64,
    /// Samples that found no room when they came (SAMPLE_REJECTED), each once: reliable ones are kept back, best-effort ones
    /// dropped.
    pub rejected: u64,
    /// Samples that went before they were taken because their writer's LIFESPAN was over, or the time that READER_DATA_LIFECYCLE gives
    /// their instance; neither lost nor rejected.
    pub expired: u64,
    /// Samples that OWNERSHIP, DESTINATION_ORDER or TIME_BASED_FILTER kept back; neither lost nor rejected.
    pub withheld: u64,
    /// ACKNACKs and NACK_FRAGs sent.
    pub acknacks: u64,
}

impl AddAssign for ReaderCounters {
    fn add_assign(&mut self, other: ReaderCounters) {
        let sum = u64::saturating_add;
        *self = ReaderCounters {
            received: sum(self.received, other.received),
            duplicates: sum(self.duplicates, other.duplicates),
            lost: sum(self.lost, other.lost),
            too_far: sum(self.too_far, other.too_far),
            doubted: sum(self.doubted, other.doubted),
            fragments_refused: sum(self.fragments_refused, other.fragments_refused),
            rejected: sum(self.rejected, other.rejected),
            expired: sum(self.expired, other.expired),
            withheld: sum(self.withheld, other.withheld),
            acknacks: sum(self.acknacks, other.acknacks),
        };
    }
}

/// What `take` and `read` return besides the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOutcome {
    /// Samples appended.
    pub count: usize,
    /// Set when room was freed that a writer waits for: pass it to `Participant::rearm`.
    pub arm: Option<Instant>,
    /// Room was freed for samples whose instance is not known yet: [`Reader::poll_keys`](super::Reader::poll_keys) has something to ask.
    pub keys_due: bool,
    /// The samples stay, and count as read.
    pub stay: bool,
}
