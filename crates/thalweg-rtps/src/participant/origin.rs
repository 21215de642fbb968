//! Whether a datagram comes from an address of the participant that it names.

use std::net::IpAddr;

use crate::discovery::{KnownParticipant, LocalAddresses};
use crate::time::Instant;
use crate::types::GuidPrefix;

/// What the source address of a datagram says of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The participant is not known: nothing of it is matched with anything here.
    Unknown,
    /// An address of the participant.
    Own,
    /// Somebody else's address.
    Foreign,
}

/// The origin of the datagram before, for the next one: mostly they are the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastOrigin {
    pub prefix: GuidPrefix,
    pub ip: IpAddr,
    pub origin: Origin,
}

impl Origin {
    /// Where a datagram in the name of `known` comes from. One of its own is a sign of life.
    pub(super) fn note(
        known: Option<&mut KnownParticipant>,
        local: &LocalAddresses,
        now: Instant,
        ip: IpAddr,
    ) -> Origin {
        let Some(known) = known else { return Origin::Unknown };
        if !known.reach.sends_from(local, ip) {
            return Origin::Foreign;
        }
        known.renew_lease(now);
        if known.reach.is_at(local, ip) {
            known.heard_at = now;
        }
        Origin::Own
    }
}
