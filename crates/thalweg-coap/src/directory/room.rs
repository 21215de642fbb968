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

impl ResourceDirectory {
    /// Makes room for a registration of so many bytes, in place of that with the number `known` if there is one. Registrations
    /// without a proof go for it, the one that was refreshed longest ago first: those that nobody refreshed for [`IDLE_MAX`], and
    /// any for a client that proved an identity. What a host has without a proof is bounded as well, and makes room for itself.
    ///
    /// # Errors
    /// When too little would go; then nothing does.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        registrant: &Registrant,
        known: Option<u64>,
        bytes: usize,
    ) -> Result<(), DirectoryError> {
        let host = registrant.host();
        let is_own = |entry: &Entry| host.is_some() && entry.registrant.host() == host;
        let newcomer = RegistrationShare { registrations: 1, bytes };
        let (mut all, mut own) = (newcomer, newcomer);
        for (_, entry) in self.others(known) {
            all.add(entry);
            if is_own(entry) {
                own.add(entry);
            }
        }
        let fits = |all: RegistrationShare, own: RegistrationShare| {
            all.is_within(1) && (host.is_none() || own.is_within(HOST_PART))
        };
        if fits(all, own) {
            return Ok(());
        }
        let may_go =
            |entry: &Entry| entry.registrant.host().is_some() && (host.is_none() || entry.stays_until() <= now);
        let mut candidates: Vec<(u64, &Entry)> = self.others(known).filter(|(_, entry)| may_go(entry)).collect();
        candidates.sort_unstable_by_key(|(number, entry)| (entry.refreshed(), *number));
        let mut gone = Vec::new();
        for (number, entry) in candidates {
            if fits(all, own) {
                break;
            }
            // Where there is room but for this host, others have not to make any.
            if all.is_within(1) && !is_own(entry) {
                continue;
            }
            all.take_away(entry);
            if is_own(entry) {
                own.take_away(entry);
            }
            gone.push(number);
        }
        if !fits(all, own) {
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

    /// Until when nobody without a proof takes its place.
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
