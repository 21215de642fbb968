//! SPDP: this participant's announcements, farewells and signs of life (RTPS 2.5 §8.5.3, §8.4.13).

use std::collections::VecDeque;
use std::time::Duration;

use super::ParticipantConfig;
use super::endpoints::Endpoints;
use super::household::Housemates;
use crate::discovery::Database;
use crate::discovery::participant_data::ParticipantData;
use crate::history::ChangeKind;
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::{EntityId, GuidPrefix, KeyHash, Locator, SequenceNumber};
use crate::wire::parameters;
use crate::wire::write::{self, DataHead, DataKind};

/// How often a participant announces itself in its lease duration, at least.
pub(super) const ANNOUNCEMENTS_PER_LEASE: u32 = 4;

/// Repetitions of the first announcement, for networks that drop it: 100, 300 and 700 ms after it.
const QUICK_ANNOUNCEMENTS: u32 = 3;
const QUICK_PERIOD: Duration = Duration::from_millis(100);

/// How often a farewell is sent to each address. It is neither acknowledged nor repeated later, and a participant that misses it
/// knows the sender until its lease ends. Where three datagrams in ten are lost, one participant in forty misses all three by
/// unicast.
const FAREWELLS: usize = 3;

/// Most participants that wait for a directed announcement; the others wait for the periodic one.
const GREETINGS_MAX: usize = 1_024;

/// Whether an announcement is news to the participants of the same process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    News,
    /// All of them know it: it begins with a [`write::PAD`], by which their sockets refuse it.
    Repetition,
}

/// When and what to announce.
#[derive(Debug)]
pub(super) struct Announcer {
    period: Duration,
    announce_at: Instant,
    quick_done: u32,
    /// Counts announcements, each of which begins at another configured address: a short queue on the way may take the first ones
    /// only.
    turn: usize,
    message_at: Instant,
    payload: Payload,
    version: SequenceNumber,
    /// Participants that may have forgotten us, or do not know where we are.
    to_greet: VecDeque<GuidPrefix>,
    farewell: bool,
}

impl Announcer {
    pub(super) fn new(now: Instant, lease: Duration, rng: &mut Rng) -> Announcer {
        let period = lease / ANNOUNCEMENTS_PER_LEASE;
        // Participants that start together announce themselves at different times later.
        let jitter = Duration::from_nanos(rng.below(u64::try_from(period.as_nanos() / 8).unwrap_or(u64::MAX)));
        let period = period - jitter;
        Announcer {
            period,
            announce_at: now,
            quick_done: 0,
            turn: 0,
            message_at: now + period,
            payload: Payload::from(Vec::new()),
            version: SequenceNumber::ZERO,
            to_greet: VecDeque::new(),
            farewell: false,
        }
    }

    /// Sets what is announced from now on.
    pub(super) fn describe(&mut self, data: &ParticipantData) {
        let mut bytes = Vec::new();
        data.encode(&mut bytes);
        self.payload = Payload::from(bytes);
        self.version = self.version.next();
    }

    /// The announced data, serialised.
    pub(super) fn announced(&self) -> &[u8] {
        &self.payload
    }

    pub(super) fn announce_soon(&mut self, now: Instant) {
        self.announce_at = now;
        self.quick_done = 0;
    }

    /// Plans one more announcement for a participant.
    pub(super) fn greet(&mut self, prefix: GuidPrefix) {
        if self.to_greet.len() < GREETINGS_MAX && !self.to_greet.contains(&prefix) {
            self.to_greet.push_back(prefix);
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.farewell = true;
    }

    pub(super) fn next_due(&self) -> Instant {
        if self.farewell || !self.to_greet.is_empty() { Instant::ZERO } else { self.announce_at.min(self.message_at) }
    }

    pub(super) fn is_announcement_due(&self, now: Instant) -> bool {
        !self.farewell && self.announce_at <= now
    }

    pub(super) fn is_message_due(&self, now: Instant) -> bool {
        self.message_at <= now
    }

    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        config: &ParticipantConfig,
        database: &Database,
        housemates: &Housemates,
        outbox: &mut Outbox,
    ) {
        if self.farewell {
            self.farewell = false;
            self.to_greet.clear();
            self.announce_at = Instant::NEVER;
            self.message_at = Instant::NEVER;
            let mut everybody = config.addresses.announce_to.clone();
            for known in database.participants.values().filter(|known| known.data.guid_prefix != config.prefix) {
                everybody.extend_from_slice(&known.reach.metatraffic);
            }
            everybody.sort_unstable();
            everybody.dedup();
            (0..FAREWELLS).for_each(|_| self.push_farewell(config.prefix, &everybody, outbox));
            return;
        }
        // Greetings leave first, since a short queue may take no more than a few datagrams.
        while let Some(prefix) = self.to_greet.pop_front() {
            if let Some(known) = database.participants.get(&prefix) {
                self.push_announcement(config.prefix, Occasion::News, &known.reach.metatraffic, outbox);
            }
        }
        if self.announce_at <= now {
            housemates.note_announcement(now);
            let mut everywhere = config.addresses.announce_to.clone();
            let first = self.turn % everywhere.len().max(1);
            everywhere.rotate_left(first);
            self.turn = self.turn.wrapping_add(1);
            let repeats = self.quick_done == QUICK_ANNOUNCEMENTS && housemates.all_know_us();
            let occasion = if repeats { Occasion::Repetition } else { Occasion::News };
            self.push_announcement(config.prefix, occasion, &everywhere, outbox);
            let pause =
                if self.quick_done < QUICK_ANNOUNCEMENTS { QUICK_PERIOD * (1 << self.quick_done) } else { self.period };
            self.quick_done = (self.quick_done + 1).min(QUICK_ANNOUNCEMENTS);
            self.announce_at = now + pause.min(self.period);
        }
    }

    /// A participant message leaves, which renews our lease at peers that miss multicast announcements (`ParticipantMessageData`,
    /// automatic liveliness, RTPS 2.5 §9.6.3.3). The next one is due after two periods, or after `longest` if that is sooner.
    pub(super) fn note_message(&mut self, now: Instant, longest: Duration) {
        self.message_at = now + longest.min(self.period * 2);
    }

    /// A participant message is due at `at` at the latest.
    pub(super) fn hasten_message(&mut self, at: Instant) {
        if !self.farewell && self.message_at != Instant::NEVER {
            self.message_at = self.message_at.min(at);
        }
    }

    /// Greets participants that do not answer our endpoint discovery, each at its proved addresses, when an announcement is due.
    /// They may have dropped us, and announcements to groups and configured addresses may not reach them: without a greeting, a
    /// participant that has moved and is known here at its new address would never hear of us again.
    pub(super) fn greet_silent(&mut self, now: Instant, endpoints: &Endpoints) {
        if !self.is_announcement_due(now) {
            return;
        }
        for topic in endpoints.builtin().standard() {
            let Some(shared) = endpoints.writer(topic.writer) else { continue };
            shared.lock().silent_readers().for_each(|reader| self.greet(reader.prefix));
        }
    }

    fn push_announcement(&self, prefix: GuidPrefix, occasion: Occasion, destinations: &[Locator], outbox: &mut Outbox) {
        if !destinations.is_empty() {
            outbox.begin(destinations);
            write::header(outbox.buffer(), prefix);
            if occasion == Occasion::Repetition {
                outbox.buffer().extend_from_slice(&write::PAD);
            }
            self.append_announcement(outbox);
            outbox.finish();
        }
    }

    /// Bytes that an announcement adds to a datagram.
    pub(super) fn announcement_bytes(&self) -> usize {
        write::DATA_HEAD_LEN + self.payload.len().next_multiple_of(4)
    }

    /// Appends an announcement to the open datagram.
    pub(super) fn append_announcement(&self, outbox: &mut Outbox) {
        let head = DataHead {
            reader: EntityId::SPDP_READER,
            writer: EntityId::SPDP_WRITER,
            sequence: self.version,
            inline_qos: &[],
            kind: DataKind::Data,
        };
        append_data(&head, &self.payload, outbox);
    }

    fn push_farewell(&self, prefix: GuidPrefix, destinations: &[Locator], outbox: &mut Outbox) {
        let mut key = Vec::new();
        ParticipantData::encode_key(prefix, &mut key);
        let instance = KeyHash(crate::types::Guid::new(prefix, EntityId::PARTICIPANT).to_bytes());
        let mut inline_qos = Vec::new();
        parameters::inline_qos(ChangeKind::DisposeUnregister.status_info(), Some(instance), &mut inline_qos);
        let head = DataHead {
            reader: EntityId::SPDP_READER,
            writer: EntityId::SPDP_WRITER,
            sequence: self.version.next(),
            inline_qos: &inline_qos,
            kind: DataKind::Key,
        };
        push_data(prefix, destinations, &head, &Payload::from(key), outbox);
    }
}

fn push_data(
    prefix: GuidPrefix,
    destinations: &[Locator],
    head: &DataHead<'_>,
    payload: &Payload,
    outbox: &mut Outbox,
) {
    if destinations.is_empty() {
        return;
    }
    outbox.begin(destinations);
    write::header(outbox.buffer(), prefix);
    append_data(head, payload, outbox);
    outbox.finish();
}

fn append_data(head: &DataHead<'_>, payload: &Payload, outbox: &mut Outbox) {
    write::data(outbox.buffer(), head, payload.len());
    outbox.push_payload(payload, 0..payload.len());
    write::padding(outbox.buffer(), payload.len());
}

#[cfg(test)]
mod tests {
    use super::super::household::Household;
    use super::*;
    use crate::discovery::LocalAddresses;

    const PREFIX: GuidPrefix = GuidPrefix([7; 12]);

    /// What it sends at `now` when it knows nobody.
    fn poll(announcer: &mut Announcer, now: Instant) -> Outbox {
        let announce_to = vec![Locator::from(std::net::SocketAddr::from(([239, 255, 0, 1], 7400)))];
        let addresses = LocalAddresses { announce_to, ..LocalAddresses::default() };
        let config = ParticipantConfig::new(0, PREFIX, addresses);
        let alone =
            Housemates::join(Instant::ZERO, Household::default(), (PREFIX, Default::default()), (0, String::new()));
        let mut outbox = Outbox::new();
        announcer.poll_transmit(now, &config, &Database::default(), &alone, &mut outbox);
        outbox
    }

    /// When a participant with this lease announces itself in its first ten leases.
    fn announcements(lease: Duration, seed: u64) -> Vec<Instant> {
        let mut announcer = Announcer::new(Instant::ZERO, lease, &mut Rng::new(seed));
        announcer.describe(&ParticipantData::new(PREFIX));
        let mut times = Vec::new();
        while announcer.announce_at < Instant::ZERO + lease * 10 {
            let now = announcer.announce_at;
            times.push(now);
            assert!(!poll(&mut announcer, now).is_empty(), "it announces");
        }
        times
    }

    #[test]
    fn nobody_is_greeted_after_the_farewell() {
        let mut announcer = Announcer::new(Instant::ZERO, Duration::from_secs(20), &mut Rng::new(1));
        announcer.describe(&ParticipantData::new(PREFIX));
        announcer.greet(GuidPrefix([8; 12]));
        announcer.shut_down();
        assert!(!poll(&mut announcer, Instant::ZERO).is_empty(), "it says farewell");
        assert_eq!(announcer.next_due(), Instant::NEVER);
    }

    #[test]
    fn a_participant_announces_itself_three_times_in_each_lease() {
        for lease in [Duration::from_secs(1), Duration::from_secs(20), Duration::from_secs(3_600)] {
            for seed in 0..50 {
                let times = announcements(lease, seed);
                assert!(times.len() >= 40, "lease {lease:?}, seed {seed}: {} in ten leases", times.len());
                let longest = times.windows(4).map(|four| four[3].since(four[0])).max();
                assert!(longest <= Some(lease), "lease {lease:?}, seed {seed}: {longest:?} for three more");
            }
        }
    }
}
