//! Whether a datagram comes from an address of the participant that it names.

use std::net::IpAddr;

use super::Participant;
use crate::time::Instant;
use crate::types::GuidPrefix;

/// What the source address of a datagram says of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The participant is not known: nothing of it is matched with anything here.
    Unknown,
    /// An address of the participant, from which so far only announcements came.
    Announced,
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

impl Participant {
    /// Where a datagram in the name of `prefix` comes from. One of its own is a sign of life.
    pub(super) fn note_origin(&mut self, now: Instant, prefix: GuidPrefix, ip: IpAddr) -> Origin {
        let Some(known) = self.database.participants.get_mut(&prefix) else { return Origin::Unknown };
        if !known.reach.sends_from(&self.config.addresses, ip) {
            return Origin::Foreign;
        }
        let until = now + known.data.lease_duration;
        known.lease_until = known.lease_until.max(until);
        if known.reach.senders.are_settled() { Origin::Own } else { Origin::Announced }
    }

    /// Whether what endpoints say in a datagram of this origin is taken into account; else it counts as refused.
    pub(super) fn admits(&mut self, origin: &mut Origin, prefix: GuidPrefix) -> bool {
        match origin {
            Origin::Own | Origin::Unknown => true,
            Origin::Foreign => {
                self.counters.foreign_source += 1;
                false
            }
            Origin::Announced => {
                if let Some(known) = self.database.participants.get_mut(&prefix) {
                    known.reach.senders.settle();
                }
                *origin = Origin::Own;
                true
            }
        }
    }
}
