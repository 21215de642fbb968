//! Which fragments of a large sample one reader has asked for again, and which were sent again lately.

use std::time::Duration;

use super::loss::LostFragments;
use crate::time::Instant;
use crate::types::SequenceNumber;
use crate::wire::FragmentSet;

/// Into how many fragments of which size a reader sees a sample cut, as far as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub fragment_bytes: u16,
    pub fragments: u32,
}

impl Cut {
    /// True when `fragment` of the other cut was sent and is the same part of the sample in this one.
    pub(super) fn covers(&self, other: Cut, fragment: u32) -> bool {
        self.fragment_bytes == other.fragment_bytes && fragment <= self.fragments
    }
}

/// The repair of one large sample.
#[derive(Debug)]
pub(super) struct LargeRepair {
    pub sequence: SequenceNumber,
    pub cut: Cut,
    /// Still to be sent again.
    wanted: Fragments,
    /// Sent again lately: a request for them has crossed them on the way.
    lately: Recent,
    /// Likewise, with the repair of another reader of its process, before this one asked for them.
    beside: Recent,
    /// Sent again since what is sent was slowed down, and not known to be lost.
    repeated: Fragments,
    /// Known to be lost of what was sent at first.
    lost: Fragments,
    /// It was cut for another path at first.
    is_recut: bool,
    sent_at: Option<Instant>,
    /// Some of it was sent again more than once, so that nothing tells which time arrived.
    is_ambiguous: bool,
}

impl LargeRepair {
    pub(super) fn new(sequence: SequenceNumber, cut: Cut) -> LargeRepair {
        LargeRepair {
            sequence,
            cut,
            wanted: Fragments::default(),
            lately: Recent::default(),
            beside: Recent::default(),
            repeated: Fragments::default(),
            lost: Fragments::default(),
            is_recut: false,
            sent_at: None,
            is_ambiguous: false,
        }
    }

    /// When the last part of it was sent again, if each was once.
    pub(super) fn sent_once_at(&self) -> Option<Instant> {
        self.sent_at.filter(|_| self.is_done() && !self.is_ambiguous)
    }

    /// Notes which fragments to send again. Returns the losses that tells of: fragments that `counts` names, and those that
    /// were sent again since [`LargeRepair::forget_lost`].
    pub(super) fn request(
        &mut self,
        now: Instant,
        wanted: &FragmentSet,
        suppression: Duration,
        counts: impl Fn(u32) -> bool,
    ) -> LostFragments {
        self.lately.age(now, suppression);
        self.beside.age(now, suppression);
        let mut lost = LostFragments::of(self.cut.fragment_bytes);
        for number in wanted.iter() {
            let is_lost = match self.beside.contains(number) {
                true => self.count_first_loss(number, counts(number)),
                false => self.request_one(number) && self.count_loss(number, counts(number)),
            };
            if is_lost {
                lost.note(number);
            }
        }
        lost
    }

    /// Notes all of it, unless that is on its way.
    pub(super) fn request_all(&mut self, now: Instant, suppression: Duration) {
        self.beside.age(now, suppression);
        if self.is_done() && !self.was_sent_lately(now, suppression) {
            self.is_ambiguous |= self.sent_at.is_some();
            let numbers = (1..=self.cut.fragments).filter(|number| !self.beside.contains(*number));
            numbers.for_each(|number| _ = self.wanted.insert(number));
        }
    }

    /// No part of it has arrived. Returns the losses that tells of, as [`LargeRepair::request`] does.
    pub(super) fn lose_all(
        &mut self,
        now: Instant,
        suppression: Duration,
        counts: impl Fn(u32) -> bool,
    ) -> LostFragments {
        self.beside.age(now, suppression);
        let mut lost = LostFragments::of(self.cut.fragment_bytes);
        // As long as a request for all of it is not served, and no longer: what is sent again and not counted slows nothing down.
        let was_sent = self.was_sent_lately(now, suppression);
        for number in 1..=self.cut.fragments {
            let is_on_its_way = was_sent && self.lately.contains(number);
            let is_lost = match self.beside.contains(number) {
                true => self.count_first_loss(number, counts(number)),
                false => !is_on_its_way && self.count_loss(number, counts(number)),
            };
            if is_lost {
                lost.note(number);
            }
        }
        lost
    }

    /// Whether it tells of a loss that is not known yet that a fragment of a sample which is gone has not come. It may still come where
    /// it was sent again lately.
    pub(super) fn loses(&mut self, now: Instant, number: u32, suppression: Duration, counts: bool) -> bool {
        self.lately.age(now, suppression);
        self.beside.age(now, suppression);
        match self.beside.contains(number) {
            true => self.count_first_loss(number, counts),
            false => !self.lately.contains(number) && self.count_loss(number, counts),
        }
    }

    fn was_sent_lately(&self, now: Instant, suppression: Duration) -> bool {
        self.sent_at.is_some_and(|at| now.since(at) < suppression)
    }

    /// The reader sees it cut into `cut` now.
    pub(super) fn follow(&mut self, cut: Cut) {
        if self.cut.fragment_bytes != cut.fragment_bytes {
            // What was lost of the sample as it was cut before was counted then.
            *self = LargeRepair { is_recut: true, ..LargeRepair::new(self.sequence, cut) };
        }
        self.cut.fragments = self.cut.fragments.max(cut.fragments);
    }

    /// True when nothing of it is to be sent again.
    pub(super) fn is_done(&self) -> bool {
        self.wanted.is_empty()
    }

    /// What was sent again so far, and is lost, says nothing of what is sent from now on.
    pub(super) fn forget_lost(&mut self) {
        self.is_ambiguous |= self.sent_at.is_some();
        self.repeated.clear();
    }

    fn request_one(&mut self, number: u32) -> bool {
        let was_sent = (1..=self.cut.fragments).contains(&number);
        was_sent && !self.lately.contains(number) && self.wanted.insert(number)
    }

    /// Whether the request for a fragment tells of a loss that is not known yet: each time that it was sent can be lost once.
    fn count_loss(&mut self, number: u32, counts: bool) -> bool {
        let was_repeated = self.repeated.remove(number);
        self.is_ambiguous |= was_repeated;
        was_repeated || self.count_first_loss(number, counts)
    }

    /// Likewise of what was sent at first.
    fn count_first_loss(&mut self, number: u32, counts: bool) -> bool {
        counts && !self.is_recut && self.lost.insert(number)
    }

    /// Nothing of it is to be sent again.
    pub(super) fn clear(&mut self) {
        self.wanted.clear();
    }

    /// The next fragment to send again, counted from 1.
    pub(super) fn next(&mut self) -> Option<u32> {
        self.wanted.first()
    }

    /// It was sent.
    pub(super) fn record(&mut self, now: Instant, number: u32, suppression: Duration) {
        self.lately.age(now, suppression);
        self.wanted.remove(number);
        self.lately.insert(number);
        self.repeated.insert(number);
        self.sent_at = Some(now);
    }

    /// It was sent to another reader of its process, and to this one with it.
    pub(super) fn share(&mut self, now: Instant, number: u32, suppression: Duration) {
        if self.wanted.contains(number) {
            return self.record(now, number, suppression);
        }
        self.beside.age(now, suppression);
        self.beside.insert(number);
        self.repeated.insert(number);
        self.is_ambiguous = true;
    }
}

/// Fragments that were sent again lately.
#[derive(Debug, Default)]
struct Recent {
    /// Since `aged_at`, and in the time before.
    lately: Fragments,
    before: Fragments,
    aged_at: Instant,
}

impl Recent {
    /// They are remembered for at least `suppression`, and less than twice as long.
    fn age(&mut self, now: Instant, suppression: Duration) {
        let age = now.since(self.aged_at);
        if age < suppression {
            return;
        }
        std::mem::swap(&mut self.lately, &mut self.before);
        self.lately.clear();
        if age >= suppression * 2 {
            self.before.clear();
        }
        self.aged_at = now;
    }

    fn contains(&self, number: u32) -> bool {
        self.lately.contains(number) || self.before.contains(number)
    }

    fn insert(&mut self, number: u32) {
        self.lately.insert(number);
    }
}

/// A set of fragment numbers, counted from 1.
#[derive(Debug, Default)]
struct Fragments {
    words: Vec<u64>,
    len: usize,
    /// No word below has members.
    first: usize,
}

impl Fragments {
    fn place(number: u32) -> (usize, u64) {
        let index = number.saturating_sub(1);
        ((index / 64) as usize, 1 << (index % 64))
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn contains(&self, number: u32) -> bool {
        let (word, bit) = Fragments::place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// False when it was a member.
    fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = Fragments::place(number);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(new);
        self.first = self.first.min(word);
        new
    }

    /// True when it was a member.
    fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = Fragments::place(number);
        let held = self.words.get_mut(word).filter(|word| **word & bit != 0);
        let is_held = held.is_some();
        if let Some(word) = held {
            *word &= !bit;
            self.len -= 1;
        }
        is_held
    }

    fn first(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let words = self.words.get(self.first..)?;
        self.first += words.iter().position(|word| *word != 0)?;
        Some(self.first as u32 * 64 + self.words[self.first].trailing_zeros() + 1)
    }

    fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
        self.first = 0;
    }
}
