//! Whether a datagram comes from an address of the participant that it names.

use std::net::IpAddr;

use crate::discovery::{KnownParticipant, LocalAddresses};
use crate::time::Instant;
use crate::types::GuidPrefix;

/// The judgement of a datagram's source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The participant is not known, and none of its endpoints is matched.
    Unknown,
    /// An address of the participant.
    Own,
    /// No address of the participant.
    Foreign,
}

/// The origin of the datagram before, since the next one mostly has the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastOrigin {
    pub prefix: GuidPrefix,
    pub ip: IpAddr,
    pub origin: Origin,
}

impl Origin {
    /// Judges the source address of a datagram in the name of `known`. One of its own is a sign of life.
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
