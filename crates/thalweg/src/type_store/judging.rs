//! How much of others' types is compared in a second.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::time::Instant;
use thalweg_rtps::types::GuidPrefix;

/// Steps of a participant in a second, beyond which no further pair of its endpoints is compared in it: all else of the participant here
/// waits meanwhile, and whoever makes up types makes them costly. Chosen by us: the types of some thousand topics, and a fraction of the
/// second.
pub(super) const STEPS_PER_SECOND: usize = 1 << 21;

/// Steps of all participants in a second: beyond them, a participant that has taken none yet has one pair compared in it. Chosen by us: a
/// stranger announces as many participants as it likes.
const STEPS_OF_ALL: usize = 4 * STEPS_PER_SECOND;

const PERIOD: Duration = Duration::from_secs(1);

/// The comparisons of the present second.
#[derive(Debug, Default)]
pub(super) struct JudgingRoom {
    /// Its start.
    since: Instant,
    /// What they took so far, by the participants whose types they are.
    steps: BTreeMap<GuidPrefix, usize>,
    total: usize,
    /// Whose types are compared now.
    current: GuidPrefix,
    /// When pairs that wait are compared again; `None` without such.
    resumes: Option<Instant>,
}

impl JudgingRoom {
    /// Types of this participant are compared from now on.
    pub(super) fn turn_to(&mut self, now: Instant, participant: GuidPrefix) {
        if now.since(self.since) >= PERIOD {
            self.since = now;
            self.steps.clear();
            self.total = 0;
        }
        self.current = participant;
    }

    /// Has room for a further pair in this second; else it waits for the next one.
    pub(super) fn admit(&mut self) -> bool {
        let own = self.steps.get(&self.current).copied().unwrap_or(0);
        let has_room = own == 0 || (own < STEPS_PER_SECOND && self.total < STEPS_OF_ALL);
        if !has_room {
            self.resumes.get_or_insert(self.since + PERIOD);
        }
        has_room
    }

    /// Counts what a comparison took.
    pub(super) fn note(&mut self, steps: usize) {
        let of_current = self.steps.entry(self.current).or_default();
        *of_current = of_current.saturating_add(steps);
        self.total = self.total.saturating_add(steps);
    }

    /// What the comparisons of a participant's types took in this second.
    #[cfg(test)]
    pub(super) fn steps_of(&self, participant: GuidPrefix) -> usize {
        self.steps.get(&participant).copied().unwrap_or(0)
    }

    /// When pairs that wait are to be compared again.
    pub(super) fn due(&self) -> Instant {
        self.resumes.unwrap_or(Instant::NEVER)
    }

    /// Whether pairs that waited are to be compared now.
    pub(super) fn take_news(&mut self, now: Instant) -> bool {
        self.resumes.take_if(|resumes| *resumes <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn whoever_has_taken_its_steps_waits_for_the_next_second_and_nobody_else_does() {
        let [greedy, other] = [1, 2].map(|octet| GuidPrefix([octet; 12]));
        let mut room = JudgingRoom::default();
        room.turn_to(at(5_000), greedy);
        for _ in 0..2 {
            assert!(room.admit());
            room.note(STEPS_PER_SECOND / 2);
        }
        room.turn_to(at(5_400), other);
        assert!(room.admit());
        assert_eq!(room.due(), Instant::NEVER);
        room.turn_to(at(5_500), greedy);
        assert!(!room.admit() && !room.admit());
        assert_eq!((room.due(), room.take_news(at(5_999))), (at(6_000), false));
        assert!(room.take_news(at(6_000)) && !room.take_news(at(6_000)));
        room.turn_to(at(6_001), greedy);
        assert!(room.admit());
        assert_eq!(room.due(), Instant::NEVER);
    }

    #[test]
    fn many_participants_take_little_more_than_four_and_each_has_a_pair_compared() {
        let mut room = JudgingRoom::default();
        let mut pairs = 0;
        for octet in 0..100 {
            room.turn_to(at(5_000), GuidPrefix([octet; 12]));
            while room.admit() {
                room.note(STEPS_PER_SECOND / 2);
                pairs += 1;
            }
        }
        assert_eq!(pairs, 4 * 2 + 96);
        assert_eq!(room.due(), at(6_000));
    }

    #[test]
    fn pairs_that_wait_are_compared_again_though_others_begin_the_next_second() {
        let mut room = JudgingRoom::default();
        room.turn_to(at(5_000), GuidPrefix([1; 12]));
        room.note(usize::MAX);
        assert!(!room.admit());
        room.turn_to(at(6_200), GuidPrefix([2; 12]));
        assert_eq!((room.due(), room.take_news(at(6_200))), (at(6_000), true));
    }
}
