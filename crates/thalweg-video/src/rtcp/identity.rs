//! The numbers of one participant, and who else has them (RFC 3550 §8.2).

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Addresses of others with our numbers that are remembered; the oldest one gives way. Chosen by us: a collision is hardly chance, and
/// whoever forges them cannot make the list grow.
const CONFLICTS_MAX: usize = 16;

/// An SSRC of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) ssrc: u32,
    /// Whether a collision has been told since it was chosen.
    has_collided: bool,
}

impl Identity {
    pub(super) fn new(ssrc: u32) -> Identity {
        Identity { ssrc, has_collided: false }
    }
}

/// What the use of one of our numbers elsewhere means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encounter {
    /// Another participant has it, which is told for the first time.
    Collision,
    /// That is known already, and the number will change.
    Known,
    /// What we send comes back from where another participant had a number of ours before.
    Loop,
}

/// Where others with our numbers are.
#[derive(Clone, Debug, Default)]
pub(super) struct Conflicts {
    addresses: VecDeque<SocketAddr>,
}

impl Conflicts {
    /// Judges a packet with our number that comes from `from`.
    pub(super) fn meet(&mut self, identity: &mut Identity, from: SocketAddr) -> Encounter {
        if std::mem::replace(&mut identity.has_collided, true) {
            return Encounter::Known;
        }
        if self.addresses.contains(&from) {
            // The number stays, and somebody elsewhere may still have it.
            identity.has_collided = false;
            return Encounter::Loop;
        }
        if self.addresses.len() == CONFLICTS_MAX {
            self.addresses.pop_front();
        }
        self.addresses.push_back(from);
        Encounter::Collision
    }
}
