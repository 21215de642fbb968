//! The proof of a participant's address: unpredictable numbers sent to it, which readers of every vendor answer.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use super::participant_data::ParticipantData;
use crate::time::Instant;
use crate::types::{EntityId, GuidPrefix, Locator, SequenceNumber};

/// Pauses after each challenge; the last one repeats. The first ones are short, since they may reach the stranger before it knows
/// us.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
];
/// Age of the last challenge from which on an announcement is followed by another one at once.
const AGAIN_AFTER: Duration = Duration::from_millis(80);
/// Wrong answers after which no other is examined until the next challenge: so many are guesses.
const WRONG_ANSWERS_MAX: u32 = 8;

/// The halves of a proof: our writers of endpoint discovery, with the readers of the peer that answer them.
pub const HALVES: [(EntityId, EntityId); 2] = [
    (EntityId::PUBLICATIONS_WRITER, EntityId::PUBLICATIONS_READER),
    (EntityId::SUBSCRIPTIONS_WRITER, EntityId::SUBSCRIPTIONS_READER),
];
/// Bits of these readers in the announced set of built-in endpoints (RTPS 2.5 §9.3.2.12).
const READER_BITS: [u32; 2] = [1 << 3, 1 << 5];

/// The secret from which all unpredictable numbers follow.
#[derive(Clone, Copy)]
pub struct Secret(u64);

impl Secret {
    /// A secret; `seed` is to come from the system's entropy.
    pub fn new(seed: u64) -> Secret {
        Secret(seed)
    }

    /// A number that follows from the secret and from `content`, and does not disclose the secret.
    pub fn hash(self, content: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        content.hash(&mut hasher);
        hasher.finish()
    }

    /// The first number of one of our writers of endpoint discovery: above all [`Secret::challenge`]s.
    pub fn first_number(self, half: usize) -> SequenceNumber {
        let above = self.hash(("first number", half)) % (1 << 15);
        SequenceNumber(CHALLENGE_MAX + 1 + above as i64)
    }

    /// The number that the participant `prefix` has to answer to prove that it receives datagrams at `address`. The numbers of both
    /// halves have their highest four bits in common, so that the addresses of a participant mostly have the same order in both
    /// halves: its readers answer the highest number that reached them.
    pub fn challenge(self, prefix: GuidPrefix, address: IpAddr, half: usize) -> SequenceNumber {
        let shared = self.hash(("address", prefix.0, address)) % (1 << 4);
        let own = self.hash(("half", prefix.0, address, half)) % (1 << 12);
        SequenceNumber(CHALLENGE_MIN + (shared << 12 | own) as i64)
    }
}

/// Readers send 0 and 1 before they have received anything.
const CHALLENGE_MIN: i64 = 2;
const CHALLENGE_MAX: i64 = CHALLENGE_MIN + (1 << 16) - 1;
/// The lowest number of a sample of endpoint discovery.
pub const OWN_NUMBERS_FROM: SequenceNumber = SequenceNumber(CHALLENGE_MAX + 1);

/// The challenges of one participant, and its answers.
#[derive(Debug)]
pub struct Challenge {
    /// Whether it has the reader that answers for each half.
    halves: [bool; 2],
    turn: usize,
    asked_at: Option<Instant>,
    /// Addresses that were challenged, with the right answers of both halves.
    asked: Vec<(IpAddr, [SequenceNumber; 2])>,
    wrong: u32,
    /// The address that each half has proved.
    proofs: [Option<IpAddr>; 2],
    /// Source address of its last right answer.
    answered_from: Option<IpAddr>,
}

impl Challenge {
    /// The challenge of a participant that announces `data`; `before` is an earlier one, for other data.
    pub fn of(data: &ParticipantData, before: Option<Challenge>) -> Challenge {
        Challenge {
            halves: READER_BITS.map(|bit| data.builtin_endpoints & bit != 0),
            turn: before.as_ref().map_or(0, |before| before.turn),
            asked_at: before.and_then(|before| before.asked_at),
            asked: Vec::new(),
            wrong: 0,
            proofs: [None; 2],
            answered_from: None,
        }
    }

    /// Whether it announces the reader that answers for a half.
    pub fn has_half(&self, half: usize) -> bool {
        self.halves[half]
    }

    /// Whether it has a reader that could prove its address.
    pub fn is_possible(&self) -> bool {
        self.halves.contains(&true)
    }

    /// The address that it has proved, if any.
    pub fn proved(&self) -> Option<IpAddr> {
        let address = self.proofs.iter().flatten().next()?;
        (0..2).all(|half| !self.halves[half] || self.proofs[half] == Some(*address)).then_some(*address)
    }

    /// Source address of its last right answer.
    pub fn answered_from(&self) -> Option<IpAddr> {
        self.answered_from
    }

    /// Whether its last challenge is old enough that an announcement may be followed by another one at once.
    pub fn may_repeat(&self, now: Instant) -> bool {
        self.asked_at.is_none_or(|at| now.since(at) >= AGAIN_AFTER)
    }

    /// How long to wait for an answer to the last challenge.
    pub fn pause(&self) -> Duration {
        PAUSES[self.turn.saturating_sub(1).min(PAUSES.len() - 1)]
    }

    /// The one of `locators` to challenge next, and whether our announcement goes along.
    pub fn next_address(
        &mut self,
        now: Instant,
        secret: Secret,
        prefix: GuidPrefix,
        locators: &[Locator],
    ) -> Option<(Locator, bool)> {
        let turn = self.turn;
        let locator = *locators.get(turn % locators.len().max(1))?;
        let address = locator.socket_address()?.ip();
        if !self.asked.iter().any(|(asked, _)| *asked == address) {
            self.asked.push((address, [0, 1].map(|half| secret.challenge(prefix, address, half))));
        }
        // Other challenges go alone: it knows us, or is about to read an announcement.
        let announces = self.may_repeat(now) || turn < locators.len();
        self.asked_at = Some(now);
        self.wrong = 0;
        self.turn += 1;
        Some((locator, announces))
    }

    /// The expected answers from `address`, for each half.
    pub fn numbers(&self, address: IpAddr) -> Option<[SequenceNumber; 2]> {
        self.asked.iter().find(|(asked, _)| *asked == address).map(|(_, numbers)| *numbers)
    }

    /// The address that an ACKNACK of the reader of a half proves. `is_back` tells whether it comes from a reader that knows us
    /// from before and may be at the given address.
    pub fn address_proved_by(
        &self,
        half: usize,
        base: SequenceNumber,
        is_back: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        if self.wrong >= WRONG_ANSWERS_MAX || base.0 < CHALLENGE_MIN || !self.halves[half] {
            return None;
        }
        let is_right = |(address, numbers): &&(IpAddr, [SequenceNumber; 2])| numbers[half] == base || is_back(*address);
        self.asked.iter().find(is_right).map(|(address, _)| *address)
    }

    /// Notes a right answer.
    pub fn accept(&mut self, half: usize, address: IpAddr, from: IpAddr) {
        self.proofs[half] = Some(address);
        self.answered_from = Some(from);
    }

    /// Notes a wrong answer; false for numbers that readers send before they have received anything. It voids the right answer for
    /// the other half, so that the halves cannot be guessed one by one.
    pub fn refuse(&mut self, base: SequenceNumber) -> bool {
        let counts = base.0 >= CHALLENGE_MIN;
        if counts {
            self.proofs = [None; 2];
            self.wrong = self.wrong.saturating_add(1);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_lowest_and_the_highest_number_prove_an_address_as_any_other_does() {
        let (prefix, address) = (GuidPrefix([7; 12]), IpAddr::V4(Ipv4Addr::LOCALHOST));
        let number = |secret: u64| Secret::new(secret).challenge(prefix, address, 0);
        for wanted in [CHALLENGE_MIN, CHALLENGE_MAX] {
            let secret = (0..).find(|secret| number(*secret).0 == wanted).expect("every number occurs");
            let numbers = [0, 1].map(|half| Secret::new(secret).challenge(prefix, address, half));
            let asked = Challenge {
                halves: [true; 2],
                turn: 1,
                asked_at: None,
                asked: vec![(address, numbers)],
                wrong: 0,
                proofs: [None; 2],
                answered_from: None,
            };
            let proved = |base: i64| asked.address_proved_by(0, SequenceNumber(base), |_| false);
            assert_eq!(proved(wanted), Some(address), "{wanted}");
            assert_eq!(proved(wanted - 1), None);
        }
    }
}
