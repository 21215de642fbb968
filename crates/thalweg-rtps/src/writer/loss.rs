//! What is lost at a time: how much, and in how many pieces.
//!
//! The kernel gives a device datagrams of one size as one message (GSO), and a queue or a link that loses it loses all of them. Counted
//! singly they would look like a link that is full.

use super::charges::kernel_cost;

/// What is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Loss {
    /// Kernel memory of it at the reader.
    pub cost: u64,
    /// How often something was lost; what one message may have held together counts once.
    pub events: u64,
    /// Kernel memory of one datagram, of the largest ones: chance loses no less at a time.
    pub datagram: u64,
}

impl Loss {
    /// One datagram that costs so much.
    pub(super) fn datagram(cost: u64) -> Loss {
        Loss { cost, events: u64::from(cost > 0), datagram: cost }
    }

    /// Datagrams that were lost one by one.
    #[cfg(test)]
    pub(super) fn datagrams(count: u64, cost: u64) -> Loss {
        (0..count).map(|_| Loss::datagram(cost)).fold(Loss::default(), Loss::and)
    }

    pub(super) fn and(self, other: Loss) -> Loss {
        let datagram = self.datagram.max(other.datagram);
        Loss { cost: self.cost + other.cost, events: self.events + other.events, datagram }
    }
}

/// Fragments of a sample that are lost, told in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostFragments {
    pub fragments: u64,
    pub runs: u64,
    fragment_bytes: u16,
    last: Option<u32>,
    /// Fragments of the run that [`LostFragments::last`] is in.
    run: usize,
}

/// Bytes of a message that the kernel cuts, and datagrams in it (`UDP_MAX_SEGMENTS` of Linux).
const MESSAGE_BYTES: usize = 65_507;
const MESSAGE_DATAGRAMS: usize = 64;
/// Bytes of a datagram around a fragment, at least.
const HEADS_BYTES: usize = 60;

impl LostFragments {
    /// None yet, of a sample cut into fragments of so many bytes.
    pub(super) fn of(fragment_bytes: u16) -> LostFragments {
        LostFragments { fragments: 0, runs: 0, fragment_bytes, last: None, run: 0 }
    }

    /// This one is lost, too.
    pub(super) fn note(&mut self, number: u32) {
        let run_max = (MESSAGE_BYTES / (usize::from(self.fragment_bytes) + HEADS_BYTES)).clamp(1, MESSAGE_DATAGRAMS);
        let follows = self.last.is_some_and(|last| last.checked_add(1) == Some(number)) && self.run < run_max;
        self.runs += u64::from(!follows);
        self.run = if follows { self.run + 1 } else { 1 };
        self.last = Some(number);
        self.fragments += 1;
    }

    /// What that is at the reader.
    pub(super) fn loss(&self) -> Loss {
        let datagram = if self.fragments > 0 { kernel_cost(usize::from(self.fragment_bytes)) } else { 0 };
        Loss { cost: self.fragments * datagram, events: self.runs, datagram }
    }
}

/// What rounds with losses in runs have told together, older ones less and less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunsLately {
    /// Kernel memory of which it became known whether it arrived, and of what was lost.
    pub known: u64,
    pub lost: u64,
    /// In thousandths.
    events: u64,
}

impl RunsLately {
    /// Another round is over.
    pub(super) fn note(&mut self, known: u64, loss: Loss) {
        let faded = |sum: u64| sum - sum / 8;
        self.known = faded(self.known) + known;
        self.lost = faded(self.lost) + loss.cost;
        self.events = faded(self.events) + loss.events * 1_000;
    }

    /// Whether more than one was lost.
    pub(super) fn are_several(&self) -> bool {
        self.events >= 1_800
    }

    /// Kernel memory that is lost at a time, on average.
    pub(super) fn unit(&self) -> u64 {
        self.lost * 1_000 / self.events.max(1)
    }

    /// The lost part in thousandths.
    pub(super) fn share(&self) -> u64 {
        self.lost * 1_000 / self.known.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(fragment_bytes: u16, numbers: impl IntoIterator<Item = u32>) -> (u64, u64) {
        let mut lost = LostFragments::of(fragment_bytes);
        numbers.into_iter().for_each(|number| lost.note(number));
        (lost.fragments, lost.runs)
    }

    #[test]
    fn fragments_that_one_message_may_have_held_are_lost_once() {
        assert_eq!(runs(1_304, [3, 4, 5, 9, 11, 12]), (6, 3));
        assert_eq!(runs(1_304, 1..=48), (48, 1));
        assert_eq!(runs(1_304, 1..=49), (49, 2), "a message of 64 KB holds 48 of them");
        assert_eq!(runs(100, 1..=65), (65, 2), "or 64 that are small");
        assert_eq!(runs(60_000, 1..=3), (3, 3));
        assert_eq!(runs(1_304, [u32::MAX, 0]), (2, 2));
    }

    #[test]
    fn rounds_long_ago_count_no_more() {
        let mut lately = RunsLately::default();
        lately.note(1_000, Loss { cost: 100, events: 1, datagram: 100 });
        assert!(!lately.are_several());
        lately.note(1_000, Loss { cost: 100, events: 1, datagram: 100 });
        assert!(lately.are_several());
        assert_eq!((lately.share(), lately.unit()), (100, 100));
        (0..30).for_each(|_| lately.note(1_000, Loss::default()));
        lately.note(1_000, Loss { cost: 100, events: 1, datagram: 100 });
        assert!(!lately.are_several(), "{lately:?}");
    }
}
