//! Who makes room for whom in a directory without any.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::DirectoryError;
use super::registrant::Registrant;
use super::registrations::{Entry, LIFETIME, ResourceDirectory};

/// What some registrations take of the directory.
#[derive(Clone, Copy, Debug)]
struct RegistrationShare {
    registrations: usize,
    bytes: usize,
}

impl RegistrationShare {
    fn add(&mut self, entry: &Entry) {
        self.registrations += 1;
        self.bytes += entry.bytes;
    }

    fn take_away(&mut self, entry: &Entry) {
        self.registrations -= 1;
        self.bytes -= entry.bytes;
    }

    /// Whether it is no more than this part of the directory: the whole, a half, a quarter.
    fn is_within(self, part: usize) -> bool {
        self.registrations <= REGISTRATIONS_MAX / part && self.bytes <= BYTES_MAX / part
    }
}

/// A registration for which there has to be room.
pub(super) struct Newcomer<'a> {
    pub registrant: &'a Registrant,
    pub has_proved_address: bool,
    /// The number of the one in whose place it comes.
    pub known: Option<u64>,
    /// Bytes that it takes in memory.
    pub bytes: usize,
}

/// What there would be of the directory with a newcomer.
#[derive(Clone, Copy, Debug)]
struct Shares {
    all: RegistrationShare,
    /// Of the newcomer's host.
    own: RegistrationShare,
    /// Of addresses that may be forged.
    unproved: RegistrationShare,
}

/// Which bounds a directory would be above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Excess {
    all: bool,
    own: bool,
    unproved: bool,
}

impl ResourceDirectory {
    /// Makes room for a registration. Registrations without a proof go for it: first those of addresses that may be forged, then
    /// the one that was refreshed longest ago of those that nobody refreshed for [`IDLE_MAX`], and any for a client that proved an
    /// identity. What a host has without a proof is bounded as well, and makes room for itself. Addresses that may be forged have
    /// a small part together, in which those that nobody refreshed make room for others: who is there proves it.
    ///
    /// # Errors
    /// When too little would go, or the client has to prove its address; then nothing does.
    pub(super) fn make_room(&mut self, now: Instant, newcomer: &Newcomer<'_>) -> Result<(), DirectoryError> {
        let host = newcomer.registrant.host();
        let is_unproved = host.is_some() && !newcomer.has_proved_address;
        let is_own = |entry: &Entry| host.is_some() && entry.registrant.host() == host;
        let alone = RegistrationShare { registrations: 1, bytes: newcomer.bytes };
        let mut shares = Shares { all: alone, own: alone, unproved: alone };
        for (_, entry) in self.others(newcomer.known) {
            shares.all.add(entry);
            if is_own(entry) {
                shares.own.add(entry);
            }
            if entry.is_unproved() {
                shares.unproved.add(entry);
            }
        }
        let is_over = |shares: &Shares| Excess {
            all: !shares.all.is_within(1),
            own: host.is_some() && !shares.own.is_within(HOST_PART),
            unproved: is_unproved && !shares.unproved.is_within(UNPROVED_PART),
        };
        if is_over(&shares) == Excess::default() {
            return Ok(());
        }
        let may_go = |entry: &Entry| {
            let is_weaker = host.is_none() || entry.stays_until() <= now || entry.is_unproved() && !is_unproved;
            entry.registrant.host().is_some() && is_weaker
        };
        let mut candidates: Vec<(u64, &Entry)> =
            self.others(newcomer.known).filter(|(_, entry)| may_go(entry)).collect();
        candidates.sort_unstable_by_key(|(number, entry)| (!entry.is_unproved(), entry.refreshed(), *number));
        let mut gone = Vec::new();
        for (number, entry) in candidates {
            let over = is_over(&shares);
            // Where there is room but for this host or for its like, others have not to make any.
            if !(over.all || over.own && is_own(entry) || over.unproved && entry.is_unproved()) {
                continue;
            }
            shares.all.take_away(entry);
            if is_own(entry) {
                shares.own.take_away(entry);
            }
            if entry.is_unproved() {
                shares.unproved.take_away(entry);
            }
            gone.push(number);
        }
        let over = is_over(&shares);
        if over.unproved {
            self.note_refused();
            return Err(DirectoryError::Unproved);
        }
        if over != Excess::default() {
            return Err(self.refuse(now));
        }
        gone.into_iter().for_each(|number| drop(self.forget(number)));
        Ok(())
    }

    /// All registrations but this one.
    fn others(&self, known: Option<u64>) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries().filter(move |(number, _)| Some(*number) != known)
    }
}

impl Entry {
    /// When it was made or refreshed last.
    fn refreshed(&self) -> Instant {
        self.expires - self.lifetime
    }

    /// Whether it came from an address that may be forged.
    fn is_unproved(&self) -> bool {
        self.registrant.host().is_some() && !self.has_proved_address
    }

    /// Until when nobody without a proof takes its place, but at an address that is proved that of one which may be forged.
    pub(super) fn stays_until(&self) -> Instant {
        match self.registrant.host() {
            Some(_) => self.expires.min(self.refreshed() + IDLE_MAX),
            None => self.expires,
        }
    }
}

/// How long a registration without a proof keeps its place from others in a full directory, whatever its lifetime: as long as one
/// that names none. A lifetime of 136 years costs a stranger one request; who is there refreshes.
const IDLE_MAX: Duration = LIFETIME;
/// Registrations of all. Chosen by us: with [`BYTES_MAX`] this bounds memory, also for endpoints without links.
const REGISTRATIONS_MAX: usize = 16_384;
/// Bytes of all.
const BYTES_MAX: usize = 16 << 20;
/// The part of both that the registrations of one host without a proof take at most: a quarter, as of connections.
const HOST_PART: usize = 4;
/// The part of both that the registrations of addresses which may be forged take at most, all together.
const UNPROVED_PART: usize = 8;
