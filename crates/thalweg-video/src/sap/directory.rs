//! What others announce.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::packet::{SapError, SapKind, SapPacket};
use crate::sdp::SessionDescription;

/// How many announcements are remembered. Chosen by us: a studio has some hundred streams. When there are more, an address that
/// announces less than another takes the place of that one's announcement that was not heard for the longest time; others are
/// dropped. Both are counted.
pub const DIRECTORY_MAX: usize = 512;

/// How long an announcement lives without being repeated, at least (RFC 2974 §4).
const LIFETIME_MIN: Duration = Duration::from_secs(3600);

/// The longest interval that counts: a host that slept, or one that repeats as rarely as it can, would be remembered ten times
/// as long each time. Chosen by us: it is more than the 1,024 s of a full group at the usual bandwidth.
const INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// The longest line `o=` that is remembered, in octets. Chosen by us: one with the longest name of a host has half of it.
const ORIGIN_OCTETS_MAX: usize = 512;

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
    /// A session was not announced for an hour or ten of its intervals, or gave its place to one of another address.
    Expired(SapSession),
}

/// The sessions announced by others, at most [`DIRECTORY_MAX`].
#[derive(Clone, Debug, Default)]
pub struct SapDirectory {
    entries: Vec<Entry>,
    /// Sessions that gave their place away and are not told yet; at most [`DIRECTORY_MAX`].
    displaced: Vec<SapSession>,
    dropped: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    source: IpAddr,
    hash: u16,
    /// The address that the announcement came from.
    from: IpAddr,
    /// None where the payload has no line `o=`.
    origin: Option<Origin>,
    /// None for sessions without streams that this crate knows; they count for the interval.
    description: Option<SessionDescription>,
    last_heard: Instant,
    /// The longest time between two announcements.
    interval: Duration,
}

/// What the line `o=` of a payload tells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    /// All that names the session: the line without the version (RFC 8866 §5.2).
    session: String,
    version: u64,
}

impl Origin {
    fn of(payload: &[u8]) -> Option<Origin> {
        let line = payload.split(|octet| *octet == b'\n').find_map(|line| line.strip_prefix(b"o="))?;
        let line = str::from_utf8(line).ok().filter(|line| line.len() <= ORIGIN_OCTETS_MAX)?;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [user, id, version, network, family, address] = words[..] else { return None };
        Some(Origin { session: [user, id, network, family, address].join(" "), version: version.parse().ok()? })
    }

    /// Whether it names what `old` named, or a later version of it.
    fn is_version_of(&self, old: &Origin) -> bool {
        self.session == old.session && self.version >= old.version
    }
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
    /// Nothing is authenticated: what an address announced is changed and deleted by the same address only, and a copy from another
    /// one is a session of its own.
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
        // A hash of zero names nothing: the payload counts (RFC 2974 §6).
        let origin = Origin::of(packet.description).filter(|_| packet.hash == 0 && packet.kind == SapKind::Deletion);
        let is_named = |entry: &Entry| match (packet.hash, &origin, &entry.origin) {
            (0, Some(deleted), Some(known)) => deleted.is_version_of(known),
            (hash, ..) => hash != 0 && entry.hash == hash,
        };
        let is_same = |entry: &Entry| (entry.from, entry.source) == (from, packet.source) && is_named(entry);
        let index = self.entries.iter().position(is_same);
        match (packet.kind, index) {
            (SapKind::Announcement, Some(index)) => {
                let entry = &mut self.entries[index];
                entry.interval = entry.interval.max(now.since(entry.last_heard)).min(INTERVAL_MAX);
                entry.last_heard = now;
                Ok(None)
            }
            (SapKind::Announcement, _) => Ok(self.add(now, from, &packet)),
            (SapKind::Deletion, Some(index)) => {
                Ok(self.entries.swap_remove(index).into_session().map(SapEvent::Deleted))
            }
            (SapKind::Deletion, None) => Ok(None),
        }
    }

    /// The next session that expired; call it until there is none.
    pub fn poll_expired(&mut self, now: Instant) -> Option<SapEvent> {
        if let Some(session) = self.displaced.pop() {
            return Some(SapEvent::Expired(session));
        }
        while let Some(index) = self.entries.iter().position(|entry| now >= entry.expiry()) {
            if let Some(session) = self.entries.swap_remove(index).into_session() {
                return Some(SapEvent::Expired(session));
            }
        }
        None
    }

    /// When [`SapDirectory::poll_expired`] has something.
    pub fn poll_timeout(&self) -> Instant {
        if !self.displaced.is_empty() {
            return Instant::ZERO;
        }
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

    /// Announcements dropped or displaced because the directory was full.
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
            origin: Origin::of(packet.description),
            description,
            last_heard: now,
            interval: Duration::ZERO,
        };
        let is_same = |entry: &Entry| match (&entry.description, &new.description) {
            (Some(old), Some(new)) => old.id == new.id && old.origin == new.origin,
            _ if packet.hash == 0 => {
                new.origin.as_ref().zip(entry.origin.as_ref()).is_some_and(|(new, old)| new.session == old.session)
            }
            _ => entry.hash == packet.hash,
        };
        let before =
            self.entries.iter().position(|entry| (entry.from, entry.source) == (from, packet.source) && is_same(entry));
        let session = new.clone().into_session();
        if let Some(index) = before {
            let old = std::mem::replace(&mut self.entries[index], new);
            let is_other = old.description != self.entries[index].description;
            return session.filter(|_| is_other).map(SapEvent::Changed);
        }
        if self.entries.len() >= DIRECTORY_MAX {
            self.dropped += 1;
            let index = self.displaceable(from)?;
            let displaced = self.entries.swap_remove(index).into_session();
            self.displaced.extend(displaced.filter(|_| self.displaced.len() < DIRECTORY_MAX));
        }
        self.entries.push(new);
        session.map(SapEvent::Announced)
    }

    /// The entry that gives its place to one of `from`: of the address with the most, if that has two more than `from`, the one
    /// that was not heard for the longest time.
    fn displaceable(&self, from: IpAddr) -> Option<usize> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        self.entries.iter().for_each(|entry| *counts.entry(entry.from).or_default() += 1);
        let own = counts.get(&from).copied().unwrap_or_default();
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > own + 1)?;
        let entries = self.entries.iter().enumerate().filter(|(_, entry)| entry.from == most);
        entries.min_by_key(|(_, entry)| entry.last_heard).map(|(index, _)| index)
    }
}
