//! Readers of other vendors that begin anew under their old GUID while nobody has noticed that they were gone: some vendors' GUIDs follow
//! from an address. What they acknowledged in their old life counts, so that they owe nothing; but what is sent to them again may be lost.

use crate::types::SequenceNumber;

/// How often a reader that says the same is asked, at most: one forged ACKNACK costs no more.
pub(super) const QUESTIONS_MAX: u32 = 8;

/// A reader says that it has less than it had acknowledged before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relapse {
    /// What it said last.
    base: Option<SequenceNumber>,
    questions_left: u32,
}

impl Relapse {
    /// It acknowledges everything below `base`; `highest` is the highest base before. Returns whether it is to be asked from now on.
    pub(super) fn note_answer(&mut self, base: SequenceNumber, highest: SequenceNumber) -> bool {
        if base >= highest {
            *self = Relapse::default();
            return false;
        }
        let is_news = self.base != Some(base);
        if is_news {
            *self = Relapse { base: Some(base), questions_left: QUESTIONS_MAX };
        }
        is_news
    }

    /// It is asked how far it is.
    pub(super) fn note_asked(&mut self) {
        self.questions_left = self.questions_left.saturating_sub(1);
    }

    /// Whether it is to be asked again.
    pub(super) fn is_open(&self) -> bool {
        self.questions_left > 0
    }
}
