//! Participants that were heard of and have not proved their address: a bounded table, and the numbers that prove one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::time::Duration;

use super::participant_data::ParticipantData;
use super::reach::Reach;
use crate::time::Instant;
use crate::types::{EntityId, GuidPrefix, Locator, SequenceNumber};

/// Strangers kept at the same time.
pub const STRANGERS_MAX: usize = 1_024;
/// Of these, with announcements from one address of another host.
const FROM_ADDRESS_MAX: usize = 64;
/// And from an address of this host, where hundreds of processes may start together.
const FROM_THIS_HOST_MAX: usize = STRANGERS_MAX / 2;
/// And under one name: a host has several addresses, and a forger may use the name of another participant.
const OF_NAME_MAX: usize = 16;
/// Bytes of all their announcements.
const ANNOUNCED_BYTES_MAX: usize = 4 << 20;
/// An announcement longer than this is dropped.
pub const ANNOUNCEMENT_MAX: usize = 64 << 10;
/// How long a stranger that does not announce itself again is remembered.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes sent to a stranger for each byte that came from it.
const CREDIT_RATIO: u64 = 3;
/// Credit is not saved up beyond this.
const CREDIT_MAX: u64 = 16 << 10;
/// Pauses between two challenges. The stranger may handle the first ones before it knows us.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(3),
];
/// For each so many strangers the pauses, up to a second, are as long once more.
const CROWD: u32 = 4;
/// An announcement is followed by a challenge at once, unless the last one is more recent than this.
const AGAIN_AFTER: Duration = Duration::from_millis(80);
/// Wrong answers after which no other is looked at until the next challenge: somebody guesses.
const WRONG_ANSWERS_MAX: u32 = 8;
/// Participants remembered that were known before.
const FORMER_MAX: usize = 1_024;

/// The halves of a proof: our writers of endpoint discovery, with the readers of the peer that answer them.
pub const HALVES: [(EntityId, EntityId); 2] = [
    (EntityId::PUBLICATIONS_WRITER, EntityId::PUBLICATIONS_READER),
    (EntityId::SUBSCRIPTIONS_WRITER, EntityId::SUBSCRIPTIONS_READER),
];
/// Bits of these readers in the announced set of built-in endpoints (RTPS 2.5 §9.3.2.12).
const READER_BITS: [u32; 2] = [1 << 3, 1 << 5];

/// What nobody else knows: everything that others must not be able to guess follows from it.
#[derive(Clone, Copy)]
pub struct Secret(u64);

impl Secret {
    /// A secret; `seed` is to come from the system's entropy.
    pub fn new(seed: u64) -> Secret {
        Secret(seed)
    }

    /// A number that follows from the secret and from `content`, and tells nothing of the secret.
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

    /// What a participant called `prefix` has to answer to prove that it receives what is sent to `address`. Numbers of both halves
    /// have their highest four bits in common, so that addresses of one participant are mostly ordered alike in both halves: its
    /// readers answer the highest number that reached them.
    pub fn challenge(self, prefix: GuidPrefix, address: IpAddr, half: usize) -> SequenceNumber {
        let shared = self.hash(("address", prefix.0, address)) % (1 << 4);
        let own = self.hash(("half", prefix.0, address, half)) % (1 << 12);
        SequenceNumber(CHALLENGE_MIN + (shared << 12 | own) as i64)
    }
}

/// Readers send 0 and 1 before they have heard anything.
const CHALLENGE_MIN: i64 = 2;
const CHALLENGE_MAX: i64 = CHALLENGE_MIN + (1 << 16) - 1;

/// Names an entry of the table: its participant, and its place in the order in which strangers came.
pub type StrangerKey = (GuidPrefix, u64);

/// A participant that was heard of.
#[derive(Debug)]
pub struct Stranger {
    /// What it announced.
    pub data: ParticipantData,
    /// The same as it came.
    pub announced: Box<[u8]>,
    /// How it would be reached.
    pub reach: Reach,
    /// It has sent endpoint discovery that was not heard.
    pub has_spoken: bool,
    /// Since when it has been asked.
    pub since: Instant,
    /// First numbers of its empty HEARTBEATs that are to be answered, for each half, and where to.
    pub owed: [Option<SequenceNumber>; 2],
    /// Where the last of them came from.
    pub owed_to: Option<IpAddr>,
    source: IpAddr,
    until: Instant,
    credit: u64,
    due: Option<Instant>,
    asked_at: Option<Instant>,
    is_queued: bool,
    is_due: bool,
    turn: usize,
    /// Addresses that were challenged, with the right answers of both halves.
    asked: Vec<(IpAddr, [SequenceNumber; 2])>,
    wrong: u32,
    /// The address that each half has proved.
    proofs: [Option<IpAddr>; 2],
    /// Where the right answers came from.
    answered_from: Option<IpAddr>,
}

impl Stranger {
    /// Whether it announces the reader that answers for a half.
    pub fn has_half(&self, half: usize) -> bool {
        self.data.builtin_endpoints & READER_BITS[half] != 0
    }

    /// Whether there is anything that could prove its address.
    pub fn can_answer(&self) -> bool {
        (0..2).any(|half| self.has_half(half))
    }

    /// The address that it has proved, if it has.
    pub fn proved(&self) -> Option<IpAddr> {
        let address = self.proofs.iter().flatten().next()?;
        (0..2).all(|half| !self.has_half(half) || self.proofs[half] == Some(*address)).then_some(*address)
    }

    /// Where its right answers came from.
    pub fn answered_from(&self) -> Option<IpAddr> {
        self.answered_from
    }

    /// Takes `bytes` that came in its name into account.
    pub fn earn(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_add(bytes as u64 * CREDIT_RATIO).min(CREDIT_MAX);
    }

    /// Pays for `bytes` that are to be sent; false when it cannot.
    pub fn pay(&mut self, bytes: usize) -> bool {
        let left = self.credit.checked_sub(bytes as u64);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }

    /// The address whose turn it is to be challenged, and whether we are to be announced along with it.
    pub fn next_address(&mut self, now: Instant, secret: Secret) -> Option<(Locator, bool)> {
        let locators = &self.reach.metatraffic;
        let turn = self.turn;
        let locator = *locators.get(turn % locators.len().max(1))?;
        let address = locator.socket_address()?.ip();
        if !self.asked.iter().any(|(asked, _)| *asked == address) {
            let prefix = self.data.guid_prefix;
            self.asked.push((address, [0, 1].map(|half| secret.challenge(prefix, address, half))));
        }
        // In between it is asked only: it knows us, or has not read yet that it does.
        let announces = self.asked_at.is_none_or(|at| now.since(at) >= AGAIN_AFTER) || turn < locators.len();
        self.asked_at = Some(now);
        self.wrong = 0;
        self.turn += 1;
        Some((locator, announces))
    }

    /// What is to be answered from `address`, for each half.
    pub fn numbers(&self, address: IpAddr) -> Option<[SequenceNumber; 2]> {
        self.asked.iter().find(|(asked, _)| *asked == address).map(|(_, numbers)| *numbers)
    }

    /// Where its announcement came from.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// True when it is to be challenged, and is from now on not any more.
    pub fn take_request(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// The address that an ACKNACK of the reader of a half proves. `is_back`: it is of a reader that has known us before and may be at
    /// the address that is given.
    pub fn address_proved_by(
        &self,
        half: usize,
        base: SequenceNumber,
        is_back: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        if self.wrong >= WRONG_ANSWERS_MAX || base.0 < CHALLENGE_MIN || !self.has_half(half) {
            return None;
        }
        let is_right = |(address, numbers): &&(IpAddr, [SequenceNumber; 2])| numbers[half] == base || is_back(*address);
        self.asked.iter().find(is_right).map(|(address, _)| *address)
    }

    /// Takes a right answer into account.
    pub fn accept(&mut self, half: usize, address: IpAddr, from: IpAddr) {
        self.proofs[half] = Some(address);
        self.answered_from = Some(from);
    }

    /// Takes a wrong answer into account; false for what readers send before they have heard anything. Both halves have to be right
    /// one after the other, so that none can be guessed alone.
    pub fn refuse(&mut self, base: SequenceNumber) -> bool {
        let counts = base.0 >= CHALLENGE_MIN;
        if counts {
            self.proofs = [None; 2];
            self.wrong = self.wrong.saturating_add(1);
        }
        counts
    }
}

/// A participant that was known.
#[derive(Clone, Debug)]
pub struct Former {
    /// The last of our announcements that it had acknowledged, for each half.
    pub acknowledged: [SequenceNumber; 2],
    /// Addresses that it had proved.
    pub addresses: Vec<IpAddr>,
}

/// All strangers, and what is remembered of those that were known.
#[derive(Debug, Default)]
pub struct Strangers {
    entries: BTreeMap<StrangerKey, Stranger>,
    by_source: BTreeMap<IpAddr, BTreeSet<(u64, GuidPrefix)>>,
    due: BTreeSet<(Instant, StrangerKey)>,
    queue: VecDeque<StrangerKey>,
    next: u64,
    bytes: usize,
    former: BTreeMap<GuidPrefix, Former>,
    former_order: VecDeque<GuidPrefix>,
}

impl Strangers {
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries under one name.
    pub fn of(&self, prefix: GuidPrefix) -> impl Iterator<Item = StrangerKey> + '_ {
        self.entries.range((prefix, 0)..=(prefix, u64::MAX)).map(|(key, _)| *key)
    }

    /// One entry.
    pub fn get_mut(&mut self, key: StrangerKey) -> Option<&mut Stranger> {
        self.entries.get_mut(&key)
    }

    /// The entry under a name for what came from an address: the one announced from there, or any.
    pub fn find(&self, prefix: GuidPrefix, source: IpAddr) -> Option<StrangerKey> {
        self.find_from(prefix, source).or_else(|| self.of(prefix).next())
    }

    /// The entry under a name that was announced from an address.
    pub fn find_from(&self, prefix: GuidPrefix, source: IpAddr) -> Option<StrangerKey> {
        self.of(prefix).find(|key| self.entries[key].source == source)
    }

    /// The entry that an announcement says nothing new about.
    pub fn find_same(&self, prefix: GuidPrefix, source: IpAddr, announced: &[u8]) -> Option<StrangerKey> {
        self.of(prefix).find(|key| self.entries[key].source == source && *self.entries[key].announced == *announced)
    }

    /// Files an announcement that came from `source`. Returns its entry, and how many others had to go for it.
    pub fn file(
        &mut self,
        now: Instant,
        source: IpAddr,
        is_own: bool,
        (data, announced, reach): (ParticipantData, &[u8], Reach),
    ) -> (StrangerKey, u64) {
        let prefix = data.guid_prefix;
        let alike = |stranger: &Stranger| stranger.data == data && stranger.reach.metatraffic == reach.metatraffic;
        if let Some(key) = self.of(prefix).find(|key| alike(&self.entries[key])) {
            return (key, 0);
        }
        // What it said before holds no more; what it earned stays.
        let before = self.find_from(prefix, source).and_then(|key| self.remove(key));
        let (credit, asked_at, turn) = before.map_or((0, None, 0), |one| (one.credit, one.asked_at, one.turn));
        let evicted = self.make_room(prefix, source, is_own, announced.len());
        let key = (prefix, self.next);
        self.next += 1;
        self.bytes += announced.len();
        self.by_source.entry(source).or_default().insert((key.1, prefix));
        let stranger = Stranger {
            data,
            announced: announced.into(),
            reach,
            has_spoken: false,
            since: now,
            owed: [None; 2],
            owed_to: None,
            source,
            until: now + PATIENCE,
            credit,
            due: None,
            asked_at,
            is_queued: false,
            is_due: false,
            turn,
            asked: Vec::new(),
            wrong: 0,
            proofs: [None; 2],
            answered_from: None,
        };
        self.entries.insert(key, stranger);
        self.set_due(key, now + PATIENCE);
        (key, evicted)
    }

    /// It has announced itself with `bytes`: it is remembered, and asked at once unless it was just asked.
    pub fn note_announcement(&mut self, now: Instant, key: StrangerKey, bytes: usize) {
        let Some(stranger) = self.entries.get_mut(&key) else { return };
        stranger.earn(bytes);
        stranger.until = now + PATIENCE;
        if stranger.can_answer() && stranger.asked_at.is_none_or(|at| now.since(at) >= AGAIN_AFTER) {
            self.ask(key);
        }
    }

    /// It is to be challenged.
    pub fn ask(&mut self, key: StrangerKey) {
        if let Some(stranger) = self.entries.get_mut(&key) {
            stranger.is_due = true;
            self.queue(key);
        }
    }

    /// Its turn to be sent something has come.
    pub fn queue(&mut self, key: StrangerKey) {
        let Some(stranger) = self.entries.get_mut(&key) else { return };
        if !std::mem::replace(&mut stranger.is_queued, true) {
            self.queue.push_back(key);
        }
    }

    /// The next that is to be sent something.
    pub fn pop_queued(&mut self) -> Option<StrangerKey> {
        while let Some(key) = self.queue.pop_front() {
            if let Some(stranger) = self.entries.get_mut(&key) {
                stranger.is_queued = false;
                return Some(key);
            }
        }
        None
    }

    /// Somebody waits to be sent something.
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// After it was challenged, or could not pay for it: when it is looked at next.
    pub fn plan_next(&mut self, now: Instant, key: StrangerKey, was_asked: bool) {
        let Some(stranger) = self.entries.get(&key) else { return };
        let pause = PAUSES[stranger.turn.saturating_sub(1).min(PAUSES.len() - 1)];
        // In a crowd nobody answers at once.
        let pause = (pause * (1 + self.entries.len() as u32 / CROWD)).min(pause.max(PAUSES[4]));
        let next = if was_asked { (now + pause).min(stranger.until) } else { stranger.until };
        self.set_due(key, next);
    }

    /// It is looked at again at this time.
    pub fn set_due(&mut self, key: StrangerKey, at: Instant) {
        let Some(stranger) = self.entries.get_mut(&key) else { return };
        if let Some(before) = stranger.due.replace(at) {
            self.due.remove(&(before, key));
        }
        self.due.insert((at, key));
    }

    /// When to look at one of them next.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The next one that is to be asked again at `now`; those whose time is over are forgotten.
    pub fn pop_due(&mut self, now: Instant) -> Option<StrangerKey> {
        while let Some((at, key)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, key));
            let Some(stranger) = self.entries.get_mut(&key) else { continue };
            stranger.due = None;
            if stranger.until > now {
                self.plan_next(now, key, false);
                return Some(key);
            }
            self.remove(key);
        }
        None
    }

    /// Forgets one.
    pub fn remove(&mut self, key: StrangerKey) -> Option<Stranger> {
        let stranger = self.entries.remove(&key)?;
        if let Some(at) = stranger.due {
            self.due.remove(&(at, key));
        }
        self.bytes -= stranger.announced.len();
        if let Some(others) = self.by_source.get_mut(&stranger.source) {
            others.remove(&(key.1, key.0));
            if others.is_empty() {
                self.by_source.remove(&stranger.source);
            }
        }
        Some(stranger)
    }

    /// Forgets all under one name.
    pub fn remove_all(&mut self, prefix: GuidPrefix) {
        let keys: Vec<StrangerKey> = self.of(prefix).collect();
        keys.into_iter().for_each(|key| drop(self.remove(key)));
    }

    /// Forgets what was announced from an address under one name.
    pub fn remove_from(&mut self, prefix: GuidPrefix, source: IpAddr) {
        while let Some(key) = self.find_from(prefix, source) {
            self.remove(key);
        }
    }

    /// Makes room for one more; returns how many had to go.
    fn make_room(&mut self, prefix: GuidPrefix, source: IpAddr, is_own: bool, bytes: usize) -> u64 {
        let mut evicted = 0;
        let oldest = self.of(prefix).next();
        if let Some(oldest) = oldest.filter(|_| self.of(prefix).count() >= OF_NAME_MAX) {
            self.remove(oldest);
            evicted += 1;
        }
        let from_address_max = if is_own { FROM_THIS_HOST_MAX } else { FROM_ADDRESS_MAX };
        loop {
            let own = self.by_source.get(&source).map_or(0, BTreeSet::len);
            let is_full = self.entries.len() >= STRANGERS_MAX || self.bytes + bytes > ANNOUNCED_BYTES_MAX;
            let from = if own >= from_address_max {
                source
            } else if is_full {
                let most = self.by_source.iter().max_by_key(|(_, strangers)| strangers.len());
                let Some((address, _)) = most else { return evicted };
                *address
            } else {
                return evicted;
            };
            let oldest = self.by_source.get(&from).and_then(|strangers| strangers.first().copied());
            let Some((number, prefix)) = oldest else { return evicted };
            self.remove((prefix, number));
            evicted += 1;
        }
    }

    /// Remembers a participant that is forgotten: if it has not forgotten us, its readers go on from where they were.
    pub fn remember_former(&mut self, prefix: GuidPrefix, former: Former) {
        if self.former.insert(prefix, former).is_none() {
            self.former_order.push_back(prefix);
        }
        if self.former_order.len() > FORMER_MAX
            && let Some(oldest) = self.former_order.pop_front()
        {
            self.former.remove(&oldest);
        }
    }

    /// What is remembered of a participant that was known.
    pub fn former(&self, prefix: GuidPrefix) -> Option<&Former> {
        self.former.get(&prefix)
    }
}
