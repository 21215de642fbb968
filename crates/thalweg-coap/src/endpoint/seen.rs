//! Which messages of a peer came before (RFC 7252 §4.5).

use thalweg_base::time::Instant;

use super::ids::seconds;
use crate::message::MessageId;

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
}

impl Seen {
    /// The outcome of a message with this ID within the last `lifetime` seconds.
    #[inline]
    pub fn fate(&self, now: Instant, id: MessageId, lifetime: u32) -> Option<MessageFate> {
        let entry = self.entries[self.find(id)?];
        (seconds(now).saturating_sub(entry.second) < lifetime).then_some(entry.fate)
    }

    /// Notes what became of a message.
    #[inline]
    pub fn note(&mut self, now: Instant, id: MessageId, fate: MessageFate, entries_max: usize) {
        let entry = Entry { fate, second: seconds(now) };
        if let Some(place) = self.find(id) {
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
    fn find(&self, id: MessageId) -> Option<usize> {
        // Comparing a whole chunk without leaving early lets the compiler use vector instructions.
        let hit = |chunk: &[u16]| chunk.iter().fold(false, |hit, found| hit | (*found == id.0));
        let chunk = self.ids.chunks(16).position(hit)?;
        let within = self.ids[chunk * 16..].iter().position(|found| *found == id.0)?;
        Some(chunk * 16 + within)
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
            seen.note(now, MessageId(id), MessageFate::Repeatable(u32::from(id)), 64);
        }
        for id in 0..100 {
            let expected = (id >= 36).then_some(MessageFate::Repeatable(u32::from(id)));
            assert_eq!(seen.fate(now, MessageId(id), 247), expected, "{id}");
        }
        seen.note(now, MessageId(99), MessageFate::Acknowledged, 64);
        assert_eq!(seen.fate(now, MessageId(99), 247), Some(MessageFate::Acknowledged), "noted again");
        assert!(seen.fate(now, MessageId(36), 247).is_some(), "and nothing was pushed out");
        assert_eq!(seen.fate(now + Duration::from_secs(247), MessageId(99), 247), None);
        seen.clear();
        assert_eq!(seen.fate(now, MessageId(99), 247), None);
    }

    #[test]
    fn nothing_is_kept_where_nothing_may_be() {
        let mut seen = Seen::default();
        seen.note(Instant::ZERO, MessageId(1), MessageFate::Ignored, 0);
        assert_eq!(seen.fate(Instant::ZERO, MessageId(1), 247), None);
    }
}
