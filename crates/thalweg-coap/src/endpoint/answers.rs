//! Answers to requests that must not run twice, kept for their duplicates within a budget of bytes.

use std::collections::{HashMap, VecDeque};

use thalweg_base::time::Instant;

use super::Peer;
use super::peer::PeerHost;
use super::secret::{EndpointSecret, TableState};
use crate::message::{MessageId, Token};

/// Cost of an answer besides its bytes.
const ENTRY_BYTES: usize = 128;

/// The answer to a duplicate of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its handler works on it: the exchange's id.
    Open(u64),
    /// These bytes again; none for a request that gets no answer.
    Sent(Vec<u8>),
}

/// A request: the peer, the message ID and the token; a stranger who does not know the token cannot take the ID's place. It stays the same
/// when the peer is forgotten and comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnswerKey(u64);

impl AnswerKey {
    /// The key of a message of the peer that this number stands for; see [`answer_seed`].
    pub fn new(secret: &EndpointSecret, seed: u64, id: MessageId, token: Token) -> AnswerKey {
        AnswerKey(secret.hash((seed, id.0, token)))
    }
}

/// The number of a peer for its keys: always the same for an address, and not to be guessed.
pub fn answer_seed(secret: &EndpointSecret, peer: Peer) -> u64 {
    secret.hash((peer, "answers"))
}

/// Whether a request that must not run twice may run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFate {
    Allowed,
    /// Once its client has proved its address.
    Unproved,
    /// Not before that many seconds: the answers of others, whose repetitions may still come, have all room.
    Full(u32),
}

/// All answers, in the order in which they were sent; the oldest makes room. One whose time is over gives its bytes back when all in front
/// of it are over as well: those to non-confirmable requests end earlier.
///
/// A client repeats a request for a while only. Until that is over its answer stays: what a request of another client would
/// need its room for is refused before it runs.
#[derive(Debug)]
pub struct Answers {
    index: HashMap<AnswerKey, State, TableState>,
    sent: VecDeque<Sent>,
    /// The bytes of all answers, one after the other.
    bytes: VecDeque<u8>,
    /// Numbers of answers and bytes dropped at the front since the start.
    dropped: u64,
    dropped_bytes: u64,
    bytes_max: usize,
    /// Cost of the answers to each host, where hosts share the room.
    hosts: Option<HashMap<PeerHost, usize, TableState>>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open(u64),
    Sent(u64),
}

#[derive(Debug)]
struct Sent {
    key: AnswerKey,
    host: PeerHost,
    start: u64,
    times: AnswerTimes,
}

/// How long an answer is needed.
#[derive(Clone, Copy, Debug)]
pub struct AnswerTimes {
    /// Until then the client may repeat its request.
    pub repeats_until: Instant,
    /// Until then the network may bring a copy.
    pub ends: Instant,
}

impl Answers {
    /// Answers of which the oldest makes room for any other.
    pub fn new(bytes_max: usize, table: TableState) -> Answers {
        Answers {
            index: HashMap::with_hasher(table),
            sent: VecDeque::new(),
            bytes: VecDeque::new(),
            dropped: 0,
            dropped_bytes: 0,
            bytes_max,
            hosts: None,
        }
    }

    /// Answers that must stay while their requests may be repeated: hosts share the room ([`Answers::fate`]).
    pub fn shared(bytes_max: usize, table: TableState) -> Answers {
        Answers { hosts: Some(HashMap::with_hasher(table)), ..Answers::new(bytes_max, table) }
    }

    /// Bytes that the answers cost.
    pub fn cost(&self) -> usize {
        self.bytes.len() + self.sent.len() * ENTRY_BYTES
    }

    /// Whether a request of `host` may run whose answer must stay: hosts at addresses that may be forged share half of the room,
    /// and where three quarters are taken a host with a sixteenth gets no more.
    pub fn fate(&mut self, now: Instant, host: PeerHost, is_proved: bool) -> RunFate {
        let is_idle = |sent: &Sent| sent.times.repeats_until <= now;
        while self.cost() > self.bytes_max / 2 && self.sent.front().is_some_and(is_idle) {
            self.drop_oldest();
        }
        let cost = self.cost();
        let own = || self.hosts.as_ref().and_then(|hosts| hosts.get(&host));
        let is_heavy = || own().is_some_and(|own| *own > self.bytes_max / 16);
        match () {
            () if cost <= self.bytes_max / 2 => RunFate::Allowed,
            () if !is_proved => RunFate::Unproved,
            () if cost > self.bytes_max / 8 * 7 || (cost > self.bytes_max / 4 * 3 && is_heavy()) => {
                let until = self.sent.front().map_or(now, |sent| sent.times.repeats_until);
                RunFate::Full(until.since(now).as_secs() as u32 + 1)
            }
            () => RunFate::Allowed,
        }
    }

    /// The answer to a duplicate of this request; `None` for a request that is new.
    pub fn find(&self, now: Instant, key: AnswerKey) -> Option<Answer> {
        match *self.index.get(&key)? {
            State::Open(exchange) => Some(Answer::Open(exchange)),
            State::Sent(number) => {
                let place = (number - self.dropped) as usize;
                let sent = self.sent.get(place).filter(|sent| now < sent.times.ends)?;
                let start = (sent.start - self.dropped_bytes) as usize;
                let next = self.sent.get(place + 1);
                let end = next.map_or(self.bytes.len(), |next| (next.start - self.dropped_bytes) as usize);
                Some(Answer::Sent(self.bytes.range(start..end).copied().collect()))
            }
        }
    }

    /// A handler begins to work on a request.
    pub fn open(&mut self, key: AnswerKey, exchange: u64) {
        self.index.insert(key, State::Open(exchange));
    }

    /// The exchange ended without anything that a duplicate could get.
    pub fn forget(&mut self, key: AnswerKey) {
        self.index.remove(&key);
    }

    /// Keeps a sent answer; returns the number of answers that made room before their time.
    pub fn keep(&mut self, now: Instant, key: AnswerKey, host: PeerHost, bytes: &[u8], times: AnswerTimes) -> usize {
        self.drop_expired(now);
        let cost = bytes.len() + ENTRY_BYTES;
        if cost > self.bytes_max {
            self.forget(key);
            return 1;
        }
        let mut early = 0;
        while self.cost() + cost > self.bytes_max && self.drop_oldest() {
            early += 1;
        }
        self.index.insert(key, State::Sent(self.dropped + self.sent.len() as u64));
        self.sent.push_back(Sent { key, host, start: self.dropped_bytes + self.bytes.len() as u64, times });
        self.bytes.extend(bytes);
        if let Some(hosts) = &mut self.hosts {
            *hosts.entry(host).or_default() += cost;
        }
        early
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.sent.front().is_some_and(|sent| sent.times.ends <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(sent) = self.sent.pop_front() else { return false };
        let end = self.sent.front().map_or(self.dropped_bytes + self.bytes.len() as u64, |next| next.start);
        let bytes = (end - self.dropped_bytes) as usize;
        self.bytes.drain(..bytes);
        // The same request may have been answered again since.
        if matches!(self.index.get(&sent.key), Some(State::Sent(number)) if *number == self.dropped) {
            self.index.remove(&sent.key);
        }
        if let Some(hosts) = &mut self.hosts
            && let Some(cost) = hosts.get_mut(&sent.host)
        {
            *cost -= bytes + ENTRY_BYTES;
            if *cost == 0 {
                hosts.remove(&sent.host);
            }
        }
        self.dropped += 1;
        self.dropped_bytes = end;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn answers_come_back_until_they_end_or_make_room() {
        let mut answers = Answers::new(10 * (ENTRY_BYTES + 8), TableState::new(&EndpointSecret::new([3, 4])));
        let secret = EndpointSecret::new([3, 4]);
        let peer = Peer::from(([192, 0, 2, 1], 7));
        let key = |number: u16| AnswerKey::new(&secret, answer_seed(&secret, peer), MessageId(number), Token::EMPTY);
        let host = peer.host();
        let until = |ends: Instant| AnswerTimes { repeats_until: ends, ends };
        let mut early = 0;
        for number in 0..100_u16 {
            let now = Instant::from_nanos(u64::from(number));
            assert_eq!(answers.find(now, key(number)), None);
            answers.open(key(number), 5);
            assert_eq!(answers.find(now, key(number)), Some(Answer::Open(5)));
            let bytes = vec![number as u8; usize::from(number % 9)];
            early += answers.keep(now, key(number), host, &bytes, until(now + Duration::from_nanos(8)));
            assert!(answers.cost() <= 10 * (ENTRY_BYTES + 8));
            for back in 0..8.min(number) {
                let at = number - back;
                let expected = vec![at as u8; usize::from(at % 9)];
                assert_eq!(answers.find(now, key(at)), Some(Answer::Sent(expected)), "{at} at {number}");
            }
            assert_eq!(answers.find(now, key(number.wrapping_sub(8))), None, "its time is over");
        }
        assert_eq!(early, 0);
        let now = Instant::from_nanos(200);
        let early: usize =
            (0..30).map(|number| answers.keep(now, key(number), host, &[1; 8], until(Instant::NEVER))).sum();
        assert_eq!(early, 20, "ten have room");
        assert_eq!((answers.find(now, key(19)), answers.find(now, key(20))), (None, Some(Answer::Sent(vec![1; 8]))));
        assert_eq!(answers.keep(now, key(40), host, &[1; 2000], until(Instant::NEVER)), 1, "it does not fit itself");
        assert_eq!(answers.find(now, key(40)), None);
    }

    #[test]
    fn an_answer_whose_request_may_be_repeated_makes_no_room_for_strangers() {
        let secret = EndpointSecret::new([3, 4]);
        let mut answers = Answers::shared(1000 * ENTRY_BYTES, TableState::new(&secret));
        let second = |second: u64| Instant::from_nanos(second * 1_000_000_000);
        let times = AnswerTimes { repeats_until: second(45), ends: second(247) };
        let host = |number: u32| Peer::from((std::net::Ipv4Addr::from_bits(number), 7)).host();
        let key = |number: u32| {
            let peer = Peer::from((std::net::Ipv4Addr::from_bits(number), 7));
            AnswerKey::new(&secret, answer_seed(&secret, peer), MessageId(1), Token::EMPTY)
        };
        // As many forged addresses as there can be.
        for number in 0..2000 {
            match answers.fate(second(0), host(number), false) {
                RunFate::Allowed => assert_eq!(answers.keep(second(0), key(number), host(number), &[], times), 0),
                fate => assert_eq!((fate, number > 500), (RunFate::Unproved, true), "{number}"),
            }
        }
        // One host that is at its address and asks without end.
        let mut taken = 0;
        let mut fate = RunFate::Allowed;
        for number in 0..2000 {
            fate = answers.fate(second(1), host(1 << 24), true);
            if fate == RunFate::Allowed {
                answers.keep(second(1), key(1 << 20 | number), host(1 << 24), &[], times);
                taken += 1;
            }
        }
        assert_eq!((taken, fate), (250, RunFate::Full(45)), "three quarters of the room together");
        assert_eq!(answers.fate(second(1), host(5000), true), RunFate::Allowed, "others have the rest");
        assert_eq!(answers.find(second(44), key(0)), Some(Answer::Sent(Vec::new())), "the first is still there");
        assert_eq!(answers.fate(second(45), host(3), false), RunFate::Allowed, "nobody repeats those any more");
        assert_eq!(answers.find(second(45), key(0)), None);
    }
}
