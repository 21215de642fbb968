//! The memory that unfinished samples of one participant share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::time::Instant;
use crate::types::GuidPrefix;

/// A sample of which no fragment has come for so long is not on its way: longer than requests are repeated.
pub(super) const STUCK_AFTER: Duration = Duration::from_secs(4);

/// How often it is noted that a sample grows.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// Pause after a search for samples that do not grow which has found none.
const SEARCH_PAUSE: Duration = Duration::from_millis(100);

/// Holders without memory that are remembered.
const IDLE_HOLDERS_MAX: usize = 256;

/// Memory that unfinished samples of one participant may take together. One remote participant gets at most seven eighths, so that it
/// cannot starve the others; where there is no room for another sample, those go of which nothing has come for five seconds.
#[derive(Clone, Debug)]
pub struct ReassemblyBudget {
    shared: Arc<Shared>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Shared {
    claims: Mutex<Claims>,
    /// How many claims were revoked.
    revoked: AtomicU64,
}

#[derive(Debug, Default)]
struct Claims {
    used: usize,
    places: Vec<Place>,
    free: Vec<usize>,
    by_holder: BTreeMap<GuidPrefix, usize>,
    last_id: u64,
    search_at: Instant,
}

#[derive(Debug)]
struct Place {
    /// Zero for none.
    id: u64,
    holder: GuidPrefix,
    bytes: usize,
    grown_at: Instant,
}

/// The memory of one unfinished sample; it goes with this.
#[derive(Debug)]
pub(super) struct Claim {
    budget: ReassemblyBudget,
    place: usize,
    id: u64,
    noted_at: Instant,
    /// Revoked claims when it was looked at last.
    revoked: u64,
}

impl ReassemblyBudget {
    /// A budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> ReassemblyBudget {
        ReassemblyBudget { shared: Arc::default(), bytes_max }
    }

    /// Bytes reserved now.
    pub fn used(&self) -> usize {
        self.claims().used
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.shared.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a sample of the remote participant `holder`.
    pub(super) fn claim(&self, now: Instant, holder: GuidPrefix, bytes: usize) -> Option<Claim> {
        let mut claims = self.claims();
        let share = self.bytes_max / 8 * 7;
        if bytes > share {
            return None;
        }
        if claims.held_by(holder) > share - bytes {
            self.revoke(&mut claims, now, |claims| claims.held_by(holder) <= share - bytes, Some(holder));
        }
        if claims.used > self.bytes_max - bytes {
            self.revoke(&mut claims, now, |claims| claims.used <= self.bytes_max - bytes, None);
        }
        if claims.held_by(holder) > share - bytes || claims.used > self.bytes_max - bytes {
            return None;
        }
        let (place, id) = claims.add(now, holder, bytes);
        drop(claims);
        Some(Claim { budget: self.clone(), place, id, noted_at: now, revoked: self.revoked() })
    }

    fn revoked(&self) -> u64 {
        self.shared.revoked.load(Ordering::Relaxed)
    }

    /// Revokes claims of samples that do not grow, the oldest first, of `holder` if there is one, until there is room.
    fn revoke(
        &self,
        claims: &mut Claims,
        now: Instant,
        has_room: impl Fn(&Claims) -> bool,
        holder: Option<GuidPrefix>,
    ) {
        if now < claims.search_at {
            return;
        }
        let is_idle = |place: &Place| {
            let is_meant = place.id != 0 && holder.is_none_or(|holder| place.holder == holder);
            is_meant && now.since(place.grown_at) >= STUCK_AFTER + NOTED_EVERY
        };
        let idle = claims.places.iter().enumerate().filter(|(_, place)| is_idle(place));
        let mut idle: Vec<(Instant, usize, u64)> =
            idle.map(|(index, place)| (place.grown_at, index, place.id)).collect();
        idle.sort_unstable();
        for (_, place, id) in idle {
            if has_room(claims) {
                return;
            }
            claims.remove(place, id);
            self.shared.revoked.fetch_add(1, Ordering::Relaxed);
        }
        if !has_room(claims) {
            claims.search_at = now + SEARCH_PAUSE;
        }
    }
}

impl Claims {
    fn held_by(&self, holder: GuidPrefix) -> usize {
        self.by_holder.get(&holder).copied().unwrap_or(0)
    }

    fn add(&mut self, now: Instant, holder: GuidPrefix, bytes: usize) -> (usize, u64) {
        self.used += bytes;
        if self.by_holder.len() > IDLE_HOLDERS_MAX + self.places.len() {
            self.by_holder.retain(|_, bytes| *bytes > 0);
        }
        *self.by_holder.entry(holder).or_default() += bytes;
        self.last_id += 1;
        let entry = Place { id: self.last_id, holder, bytes, grown_at: now };
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place] = entry;
                place
            }
            None => {
                self.places.push(entry);
                self.places.len() - 1
            }
        };
        (place, self.last_id)
    }

    /// Gives the memory of a claim back, unless it was revoked.
    fn remove(&mut self, place: usize, id: u64) {
        let Some(found) = self.places.get_mut(place).filter(|found| found.id == id) else { return };
        let (holder, bytes) = (found.holder, found.bytes);
        found.id = 0;
        self.free.push(place);
        self.used -= bytes;
        if let Some(held) = self.by_holder.get_mut(&holder) {
            *held -= bytes;
        }
    }
}

impl Claim {
    /// A fragment of its sample has come.
    pub(super) fn note_growth(&mut self, now: Instant) {
        if now.since(self.noted_at) < NOTED_EVERY {
            return;
        }
        self.noted_at = now;
        let mut claims = self.budget.claims();
        if let Some(place) = claims.places.get_mut(self.place).filter(|place| place.id == self.id) {
            place.grown_at = now;
        }
    }

    /// Looks whether somebody else has got its memory.
    pub(super) fn look(&mut self) -> ClaimState {
        let revoked = self.budget.revoked();
        if revoked == self.revoked {
            return ClaimState::Held;
        }
        self.revoked = revoked;
        let claims = self.budget.claims();
        match claims.places.get(self.place) {
            Some(place) if place.id == self.id => ClaimState::Held,
            _ => ClaimState::Revoked,
        }
    }
}

/// Whether a claim still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimState {
    Held,
    Revoked,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.budget.claims().remove(self.place, self.id);
    }
}
