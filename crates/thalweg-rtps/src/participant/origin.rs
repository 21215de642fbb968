//! Whether a datagram comes from an address of the participant that it names.

use std::net::IpAddr;

use super::Participant;
use super::receive::Context;
use crate::time::Instant;
use crate::types::GuidPrefix;
use crate::wire::Submessage;

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

impl Participant {
    /// Where a datagram in the name of `prefix` comes from. One of its own is a sign of life.
    pub(super) fn note_origin(&mut self, now: Instant, prefix: GuidPrefix, ip: IpAddr) -> Origin {
        let Some(known) = self.database.participants.get_mut(&prefix) else { return Origin::Unknown };
        if !known.reach.sends_from(&self.config.addresses, ip) {
            return Origin::Foreign;
        }
        known.renew_lease(now);
        if known.reach.is_at(&self.config.addresses, ip) {
            known.heard_at = now;
        }
        Origin::Own
    }

    /// Something came in the name of a participant from an address that is not its own. It counts for nothing, unless the
    /// participant answers that it has moved there.
    pub(super) fn refuse_foreign(&mut self, context: &Context, submessage: &Submessage<'_>) {
        self.counters.foreign_source += 1;
        if let Submessage::AckNack(acknack) = submessage {
            self.judge_stranger(context.now, context.source, context.from, acknack);
        }
    }
}
