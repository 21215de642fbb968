//! Answers to requests that must not run twice, kept for their duplicates within a budget of bytes.

use std::collections::{HashMap, VecDeque};

use thalweg_base::time::Instant;

use super::secret::TableState;
use crate::message::MessageId;

/// Cost of an answer besides its bytes.
const ENTRY_BYTES: usize = 64;

/// The answer to a duplicate of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its handler works on it: the exchange's id.
    Open(u64),
    /// These bytes again; none for a request that gets no answer.
    Sent(Vec<u8>),
}

/// A request: the peer's serial number and the message ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnswerKey(u64);

impl AnswerKey {
    pub fn new(serial: u32, id: MessageId) -> AnswerKey {
        AnswerKey(u64::from(serial) << 16 | u64::from(id.0))
    }
}

/// All answers. They all live equally long, so the oldest is the first to end, and the one that makes room.
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
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open(u64),
    Sent(u64),
}

#[derive(Debug)]
struct Sent {
    key: AnswerKey,
    start: u64,
    ends: Instant,
}

impl Answers {
    pub fn new(bytes_max: usize, table: TableState) -> Answers {
        Answers {
            index: HashMap::with_hasher(table),
            sent: VecDeque::new(),
            bytes: VecDeque::new(),
            dropped: 0,
            dropped_bytes: 0,
            bytes_max,
        }
    }

    /// Bytes that the answers cost.
    pub fn cost(&self) -> usize {
        self.bytes.len() + self.sent.len() * ENTRY_BYTES
    }

    /// The answer to a duplicate of this request; `None` for a request that is new.
    pub fn find(&self, now: Instant, key: AnswerKey) -> Option<Answer> {
        match *self.index.get(&key)? {
            State::Open(exchange) => Some(Answer::Open(exchange)),
            State::Sent(number) => {
                let place = (number - self.dropped) as usize;
                let sent = self.sent.get(place).filter(|sent| now < sent.ends)?;
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

    /// Keeps a sent answer until `ends`; returns the number of answers that made room before their time.
    pub fn keep(&mut self, now: Instant, key: AnswerKey, bytes: &[u8], ends: Instant) -> usize {
        self.drop_expired(now);
        if bytes.len() + ENTRY_BYTES > self.bytes_max {
            self.forget(key);
            return 1;
        }
        let mut early = 0;
        while self.cost() + bytes.len() + ENTRY_BYTES > self.bytes_max && self.drop_oldest() {
            early += 1;
        }
        self.index.insert(key, State::Sent(self.dropped + self.sent.len() as u64));
        self.sent.push_back(Sent { key, start: self.dropped_bytes + self.bytes.len() as u64, ends });
        self.bytes.extend(bytes);
        early
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.sent.front().is_some_and(|sent| sent.ends <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(sent) = self.sent.pop_front() else { return false };
        let end = self.sent.front().map_or(self.dropped_bytes + self.bytes.len() as u64, |next| next.start);
        self.bytes.drain(..(end - self.dropped_bytes) as usize);
        // The same request may have been answered again since.
        if matches!(self.index.get(&sent.key), Some(State::Sent(number)) if *number == self.dropped) {
            self.index.remove(&sent.key);
        }
        self.dropped += 1;
        self.dropped_bytes = end;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::secret::EndpointSecret;
    use super::*;

    #[test]
    fn answers_come_back_until_they_end_or_make_room() {
        let mut answers = Answers::new(10 * (ENTRY_BYTES + 8), TableState::new(&EndpointSecret::new([3, 4])));
        let key = |number: u16| AnswerKey::new(7, MessageId(number));
        let mut early = 0;
        for number in 0..100_u16 {
            let now = Instant::from_nanos(u64::from(number));
            assert_eq!(answers.find(now, key(number)), None);
            answers.open(key(number), 5);
            assert_eq!(answers.find(now, key(number)), Some(Answer::Open(5)));
            let bytes = vec![number as u8; usize::from(number % 9)];
            early += answers.keep(now, key(number), &bytes, now + Duration::from_nanos(8));
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
        let early: usize = (0..30).map(|number| answers.keep(now, key(number), &[1; 8], Instant::NEVER)).sum();
        assert_eq!(early, 20, "ten have room");
        assert_eq!((answers.find(now, key(19)), answers.find(now, key(20))), (None, Some(Answer::Sent(vec![1; 8]))));
        assert_eq!(answers.keep(now, key(40), &[1; 800], Instant::NEVER), 1, "it does not fit itself");
        assert_eq!(answers.find(now, key(40)), None);
    }
}
