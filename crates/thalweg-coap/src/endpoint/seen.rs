//! Which messages of a peer came before (RFC 7252 §4.5).
//!
//! A repetition has the token of the message as well as its ID. Whoever forges messages in a peer's name knows no tokens of it, and
//! could else use up its IDs.

use thalweg_base::time::Instant;

use super::ids::seconds;
use crate::message::{MessageId, Token};

/// The outcome of a message, which decides the answer to its duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate {
    /// Nothing is sent for a duplicate.
    Ignored,
    /// A duplicate is acknowledged again.
    Acknowledged,
    /// A duplicate is rejected again.
    Rejected,
    /// A confirmable request that changes nothing, with the place of its exchange. A duplicate is ignored while the handler
    /// works, and is answered anew after that.
    Repeatable(u32),
}

/// The latest messages of one peer; at most the configured number, and each for a time.
#[derive(Debug, Default)]
pub struct Seen {
    ids: Vec<u16>,
    entries: Vec<Entry>,
    /// The oldest, once all places are taken.
    oldest: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    fate: MessageFate,
    second: u32,
    token: u32,
}

impl Seen {
    /// The outcome of a message with this ID and token within the last `lifetime` seconds.
    #[inline]
    pub fn fate(&self, now: Instant, id: MessageId, token: Token, lifetime: u32) -> Option<MessageFate> {
        let entry = self.entries[self.find(id, token.digest())?];
        (seconds(now).saturating_sub(entry.second) < lifetime).then_some(entry.fate)
    }

    /// Notes what became of a message.
    #[inline]
    pub fn note(&mut self, now: Instant, id: MessageId, token: Token, fate: MessageFate, entries_max: usize) {
        let entry = Entry { fate, second: seconds(now), token: token.digest() };
        if let Some(place) = self.find(id, entry.token) {
            self.entries[place] = entry;
        } else if self.ids.len() < entries_max {
            if self.ids.capacity() == 0 {
                // Most peers that observe never say more.
                self.ids.reserve_exact(1);
                self.entries.reserve_exact(1);
            }
            self.ids.push(id.0);
            self.entries.push(entry);
        } else if let Some(place) = self.ids.get_mut(self.oldest) {
            *place = id.0;
            self.entries[self.oldest] = entry;
            self.oldest = (self.oldest + 1) % entries_max;
        }
    }

    /// Forgets all; the buffers stay for the next peer.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.entries.clear();
        self.oldest = 0;
    }

    #[inline]
    fn find(&self, id: MessageId, token: u32) -> Option<usize> {
        // Comparing a whole chunk without leaving early lets the compiler use vector instructions.
        let hit = |chunk: &[u16]| chunk.iter().fold(false, |hit, found| hit | (*found == id.0));
        let chunk = self.ids.chunks(16).position(hit)?;
        let is_it = |place: &usize| self.ids[*place] == id.0 && self.entries[*place].token == token;
        (chunk * 16..self.ids.len()).find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_latest_are_known_for_a_time() {
        let mut seen = Seen::default();
        let now = Instant::from_nanos(7_000_000_000);
        for id in 0..100 {
            seen.note(now, MessageId(id), Token::EMPTY, MessageFate::Repeatable(u32::from(id)), 64);
        }
        for id in 0..100 {
            let expected = (id >= 36).then_some(MessageFate::Repeatable(u32::from(id)));
            assert_eq!(seen.fate(now, MessageId(id), Token::EMPTY, 247), expected, "{id}");
        }
        let last = |seen: &Seen, now: Instant| seen.fate(now, MessageId(99), Token::EMPTY, 247);
        seen.note(now, MessageId(99), Token::EMPTY, MessageFate::Acknowledged, 64);
        assert_eq!(last(&seen, now), Some(MessageFate::Acknowledged), "noted again");
        assert!(seen.fate(now, MessageId(36), Token::EMPTY, 247).is_some(), "and nothing was pushed out");
        assert_eq!(last(&seen, now + Duration::from_secs(247)), None);
        seen.clear();
        assert_eq!(last(&seen, now), None);
    }

    #[test]
    fn nothing_is_kept_where_nothing_may_be() {
        let mut seen = Seen::default();
        seen.note(Instant::ZERO, MessageId(1), Token::EMPTY, MessageFate::Ignored, 0);
        assert_eq!(seen.fate(Instant::ZERO, MessageId(1), Token::EMPTY, 247), None);
    }

    #[test]
    fn messages_with_one_id_and_other_tokens_are_others() {
        let mut seen = Seen::default();
        let token = |bytes: &[u8]| Token::new(bytes).expect("at most eight bytes");
        let tokens = [token(&[]), token(&[0]), token(&[1]), token(&[0, 1]), token(&[7; 8])];
        for (place, token) in (0..).zip(tokens) {
            seen.note(Instant::ZERO, MessageId(1), token, MessageFate::Repeatable(place), 64);
        }
        for (place, token) in (0..).zip(tokens) {
            assert_eq!(seen.fate(Instant::ZERO, MessageId(1), token, 247), Some(MessageFate::Repeatable(place)));
        }
        assert_eq!(seen.fate(Instant::ZERO, MessageId(1), token(&[2]), 247), None);
    }
}
