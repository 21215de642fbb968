//! What others announce.

use std::net::IpAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::packet::{SapError, SapKind, SapPacket};
use crate::sdp::SessionDescription;

/// How many announcements are remembered; further ones are counted and dropped. Chosen by us: a studio has some hundred streams.
pub const DIRECTORY_MAX: usize = 512;

/// How long an announcement lives without being repeated, at least (RFC 2974 §4).
const LIFETIME_MIN: Duration = Duration::from_secs(3600);

/// A session that someone announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SapSession {
    /// The host that announces.
    pub source: IpAddr,
    /// What names this version of the announcement, with the source.
    pub hash: u16,
    /// The session.
    pub description: SessionDescription,
}

/// What changed in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SapEvent {
    /// A session is there.
    Announced(SapSession),
    /// A session has a new version.
    Changed(SapSession),
    /// A session was deleted by its announcer.
    Deleted(SapSession),
    /// A session was not announced for an hour or ten of its intervals.
    Expired(SapSession),
}

/// The sessions announced by others, at most [`DIRECTORY_MAX`].
#[derive(Clone, Debug, Default)]
pub struct SapDirectory {
    entries: Vec<Entry>,
    dropped: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    source: IpAddr,
    hash: u16,
    /// The address that the announcement came from.
    from: IpAddr,
    /// None for sessions without streams that this crate knows; they count for the interval.
    description: Option<SessionDescription>,
    last_heard: Instant,
    /// The longest time between two announcements.
    interval: Duration,
}

impl Entry {
    fn expiry(&self) -> Instant {
        self.last_heard + LIFETIME_MIN.max(self.interval.saturating_mul(10))
    }

    fn into_session(self) -> Option<SapSession> {
        let (source, hash) = (self.source, self.hash);
        self.description.map(|description| SapSession { source, hash, description })
    }
}

impl SapDirectory {
    /// Takes in a datagram from the address `from`; returns what it changed.
    ///
    /// A deletion counts from the address that announced only: it is not authenticated.
    ///
    /// # Errors
    /// That of a datagram that is no announcement.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: IpAddr,
        datagram: &[u8],
    ) -> Result<Option<SapEvent>, SapError> {
        let packet = SapPacket::parse(datagram)?;
        let index = self.entries.iter().position(|entry| (entry.source, entry.hash) == (packet.source, packet.hash));
        match (packet.kind, index) {
            (SapKind::Announcement, Some(index)) if packet.hash != 0 => {
                let entry = &mut self.entries[index];
                entry.interval = entry.interval.max(now.since(entry.last_heard));
                (entry.last_heard, entry.from) = (now, from);
                Ok(None)
            }
            (SapKind::Announcement, _) => Ok(self.add(now, from, &packet)),
            (SapKind::Deletion, Some(index)) if self.entries[index].from == from => {
                Ok(self.entries.swap_remove(index).into_session().map(SapEvent::Deleted))
            }
            (SapKind::Deletion, _) => Ok(None),
        }
    }

    /// The next session that expired; call it until there is none.
    pub fn poll_expired(&mut self, now: Instant) -> Option<SapEvent> {
        while let Some(index) = self.entries.iter().position(|entry| now >= entry.expiry()) {
            if let Some(session) = self.entries.swap_remove(index).into_session() {
                return Some(SapEvent::Expired(session));
            }
        }
        None
    }

    /// When a session expires next.
    pub fn poll_timeout(&self) -> Instant {
        self.entries.iter().map(Entry::expiry).min().unwrap_or(Instant::NEVER)
    }

    /// The sessions that are there.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionDescription> {
        self.entries.iter().filter_map(|entry| entry.description.as_ref())
    }

    /// Announcements remembered, also of sessions that this crate does not know.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is announced.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Announcements dropped because the directory was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds an announcement, in place of an older version of the same session from the same source.
    fn add(&mut self, now: Instant, from: IpAddr, packet: &SapPacket<'_>) -> Option<SapEvent> {
        let description = SessionDescription::parse(packet.description).ok();
        let new = Entry {
            source: packet.source,
            hash: packet.hash,
            from,
            description,
            last_heard: now,
            interval: Duration::ZERO,
        };
        let is_same = |entry: &Entry| match (&entry.description, &new.description) {
            (Some(old), Some(new)) => old.id == new.id && old.origin == new.origin,
            _ => entry.hash == packet.hash,
        };
        let before = self.entries.iter().position(|entry| entry.source == packet.source && is_same(entry));
        let session = new.clone().into_session();
        if let Some(index) = before {
            let old = std::mem::replace(&mut self.entries[index], new);
            let is_other = old.description != self.entries[index].description;
            return session.filter(|_| is_other).map(SapEvent::Changed);
        }
        if self.entries.len() >= DIRECTORY_MAX {
            self.dropped += 1;
            return None;
        }
        self.entries.push(new);
        session.map(SapEvent::Announced)
    }
}
