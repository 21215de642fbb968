//! Participants that have announced themselves and not proved their address: a bounded table.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use super::challenge::{Challenge, Secret};
use super::participant_data::ParticipantData;
use super::reach::Reach;
use crate::time::Instant;
use crate::types::{GuidPrefix, Locator, SequenceNumber};

/// Most strangers at the same time.
pub const STRANGERS_MAX: usize = 1_024;
/// Most strangers announced from one address of another host.
const FROM_ADDRESS_MAX: usize = 64;
/// Most strangers announced from one address of this host, where hundreds of processes may start together.
const FROM_THIS_HOST_MAX: usize = STRANGERS_MAX / 2;
/// Most strangers with one GUID prefix: a host has several addresses, and a forger may use the prefix of another participant.
const OF_NAME_MAX: usize = 16;
/// Most bytes of the announcements of all strangers.
const ANNOUNCED_BYTES_MAX: usize = 4 << 20;
/// An announcement longer than this is dropped.
pub const ANNOUNCEMENT_MAX: usize = 64 << 10;
/// Time for which a stranger that does not announce itself again is remembered.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes sent to a stranger for each byte that came from it.
const CREDIT_RATIO: u64 = 3;
/// Most bytes of credit that a stranger saves up.
const CREDIT_MAX: u64 = 16 << 10;
/// For each this many strangers, pauses grow by their length once more, up to [`CROWD_PAUSE_MAX`].
const CROWD: u32 = 4;
/// Longest pause that a crowd causes.
const CROWD_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Most records of participants that were known before.
const FORMER_MAX: usize = 1_024;

/// Key of an entry: the participant, and a number in the order of arrival.
pub type StrangerKey = (GuidPrefix, u64);

/// A participant that has announced itself.
#[derive(Debug)]
pub struct Stranger {
    /// Its announced data.
    pub data: ParticipantData,
    /// The same data as received.
    pub announced: Box<[u8]>,
    /// The addresses at which it would be reached.
    pub reach: Reach,
    /// Whether it has sent samples of endpoint discovery, which were not heard.
    pub has_spoken: bool,
    /// Time of its first announcement.
    pub since: Instant,
    /// Its challenge to us.
    pub owed: Owed,
    /// Our challenge to it.
    pub challenge: Challenge,
    source: IpAddr,
    until: Instant,
    credit: u64,
    due: Option<Instant>,
    is_queued: bool,
    is_due: bool,
}

/// The empty HEARTBEATs of a stranger that are to be answered.
#[derive(Debug, Default)]
pub struct Owed {
    /// Their first numbers, for each half.
    pub numbers: [Option<SequenceNumber>; 2],
    /// Source address of the last of them.
    pub to: Option<IpAddr>,
}

impl Stranger {
    /// Adds the credit for `bytes` that came in its name.
    pub fn earn(&mut self, bytes: usize) {
        self.credit = self.credit.saturating_add(bytes as u64 * CREDIT_RATIO).min(CREDIT_MAX);
    }

    /// Pays for `bytes` to be sent; false without enough credit.
    pub fn pay(&mut self, bytes: usize) -> bool {
        let left = self.credit.checked_sub(bytes as u64);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }

    /// The address to challenge next, and whether our announcement goes along.
    pub fn next_address(&mut self, now: Instant, secret: Secret) -> Option<(Locator, bool)> {
        self.challenge.next_address(now, secret, self.data.guid_prefix, &self.reach.metatraffic)
    }

    /// Source address of its announcement.
    pub fn source(&self) -> IpAddr {
        self.source
    }

    /// Whether it is to be challenged; clears the request.
    pub fn take_request(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }
}

/// A participant that was known.
#[derive(Clone, Debug)]
pub struct Former {
    /// The last number of ours that it had acknowledged, for each half.
    pub acknowledged: [SequenceNumber; 2],
    /// Addresses that it had proved.
    pub addresses: Vec<IpAddr>,
}

/// All strangers, and the records of participants that were known.
pub struct Strangers {
    secret: Secret,
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
    /// An empty table; `secret` makes the numbers by which strangers prove their addresses.
    pub fn new(secret: Secret) -> Strangers {
        Strangers {
            secret,
            entries: BTreeMap::new(),
            by_source: BTreeMap::new(),
            due: BTreeSet::new(),
            queue: VecDeque::new(),
            next: 0,
            bytes: 0,
            former: BTreeMap::new(),
            former_order: VecDeque::new(),
        }
    }

    /// The secret behind the numbers by which strangers prove their addresses.
    pub fn secret(&self) -> Secret {
        self.secret
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of strangers.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries of one GUID prefix.
    pub fn of(&self, prefix: GuidPrefix) -> impl Iterator<Item = StrangerKey> + '_ {
        self.entries.range((prefix, 0)..=(prefix, u64::MAX)).map(|(key, _)| *key)
    }

    /// One entry.
    pub fn get_mut(&mut self, key: StrangerKey) -> Option<&mut Stranger> {
        self.entries.get_mut(&key)
    }

    /// The entry of a prefix for a message from an address: the one announced from there, or any.
    pub fn find(&self, prefix: GuidPrefix, source: IpAddr) -> Option<StrangerKey> {
        self.find_from(prefix, source).or_else(|| self.of(prefix).next())
    }

    /// The entry of a prefix that was announced from an address.
    pub fn find_from(&self, prefix: GuidPrefix, source: IpAddr) -> Option<StrangerKey> {
        self.of(prefix).find(|key| self.entries[key].source == source)
    }

    /// The entry that an announcement merely repeats.
    pub fn find_same(&self, prefix: GuidPrefix, source: IpAddr, announced: &[u8]) -> Option<StrangerKey> {
        self.of(prefix).find(|key| self.entries[key].source == source && *self.entries[key].announced == *announced)
    }

    /// Files an announcement that came from `source`. Returns its entry, and the number of entries that were evicted for it.
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
        // Its earlier data no longer hold; its credit stays.
        let before = self.find_from(prefix, source).and_then(|key| self.remove(key));
        let credit = before.as_ref().map_or(0, |one| one.credit);
        let challenge = Challenge::of(&data, before.map(|one| one.challenge));
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
            owed: Owed::default(),
            challenge,
            source,
            until: now + PATIENCE,
            credit,
            due: None,
            is_queued: false,
            is_due: false,
        };
        self.entries.insert(key, stranger);
        self.set_due(key, now + PATIENCE);
        (key, evicted)
    }

    /// Notes an announcement of `bytes`: the stranger is kept longer, and asked at once unless it was just asked.
    pub fn note_announcement(&mut self, now: Instant, key: StrangerKey, bytes: usize) {
        let Some(stranger) = self.entries.get_mut(&key) else { return };
        stranger.earn(bytes);
        stranger.until = now + PATIENCE;
        self.ask_again(now, key);
    }

    /// Asks a stranger at once, unless it was just asked.
    pub fn ask_again(&mut self, now: Instant, key: StrangerKey) {
        let Some(stranger) = self.entries.get(&key) else { return };
        if stranger.challenge.is_possible() && stranger.challenge.may_repeat(now) {
            self.ask(key);
        }
    }

    /// Requests a challenge of a stranger.
    pub fn ask(&mut self, key: StrangerKey) {
        if let Some(stranger) = self.entries.get_mut(&key) {
            stranger.is_due = true;
            self.queue(key);
        }
    }

    /// Queues a stranger that is to be sent something.
    pub fn queue(&mut self, key: StrangerKey) {
        let Some(stranger) = self.entries.get_mut(&key) else { return };
        if !std::mem::replace(&mut stranger.is_queued, true) {
            self.queue.push_back(key);
        }
    }

    /// Takes the next stranger that is to be sent something.
    pub fn pop_queued(&mut self) -> Option<StrangerKey> {
        while let Some(key) = self.queue.pop_front() {
            if let Some(stranger) = self.entries.get_mut(&key) {
                stranger.is_queued = false;
                return Some(key);
            }
        }
        None
    }

    /// Whether a stranger waits to be sent something.
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Sets when a stranger is checked next, after it was challenged or could not pay for that.
    pub fn plan_next(&mut self, now: Instant, key: StrangerKey, was_asked: bool) {
        let Some(stranger) = self.entries.get(&key) else { return };
        let pause = stranger.challenge.pause();
        // In a crowd participants answer late.
        let pause = (pause * (1 + self.entries.len() as u32 / CROWD)).min(pause.max(CROWD_PAUSE_MAX));
        let next = if was_asked { (now + pause).min(stranger.until) } else { stranger.until };
        self.set_due(key, next);
    }

    /// Sets when a stranger is checked next.
    pub fn set_due(&mut self, key: StrangerKey, at: Instant) {
        let Some(stranger) = self.entries.get_mut(&key) else { return };
        if let Some(before) = stranger.due.replace(at) {
            self.due.remove(&(before, key));
        }
        self.due.insert((at, key));
    }

    /// When the next stranger is to be checked.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the next stranger that is to be asked again at `now`; forgets those whose time is over.
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

    /// Forgets an entry.
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

    /// Forgets all entries of one GUID prefix.
    pub fn remove_all(&mut self, prefix: GuidPrefix) {
        let keys: Vec<StrangerKey> = self.of(prefix).collect();
        keys.into_iter().for_each(|key| drop(self.remove(key)));
    }

    /// Forgets the entries of one GUID prefix that were announced from an address.
    pub fn remove_from(&mut self, prefix: GuidPrefix, source: IpAddr) {
        while let Some(key) = self.find_from(prefix, source) {
            self.remove(key);
        }
    }

    /// Makes room for one more entry; returns the number of evicted ones.
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

    /// Remembers a participant that is being forgotten: if it still knows us, its readers go on from where they were.
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

    /// The record of a participant that was known.
    pub fn former(&self, prefix: GuidPrefix) -> Option<&Former> {
        self.former.get(&prefix)
    }
}
