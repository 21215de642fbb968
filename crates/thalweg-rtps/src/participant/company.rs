//! The company of a participant: the participants with a communication group in common. Of the others, little more than the name is
//! remembered.

use std::collections::{BTreeMap, BTreeSet};

use crate::discovery::groups::Groups;
use crate::discovery::participant_data::ParticipantData;
use crate::time::Instant;
use crate::types::{GuidPrefix, VendorId};

/// A participant of the domain that is ignored because its communication groups are not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredParticipant {
    /// First part of its GUIDs.
    pub guid_prefix: GuidPrefix,
    /// The vendor of its implementation.
    pub vendor: VendorId,
    /// Name that its application gave it, cut off after 128 letters; empty for none.
    pub entity_name: String,
    /// Its groups.
    pub groups: Groups,
    /// End of its lease, unless it announces itself again.
    lease_until: Instant,
}

/// Own groups and the participants that they keep out.
#[derive(Debug, Default)]
pub(super) struct Company {
    own: Groups,
    /// At most as many as participants may be known; the expired ones make room for others.
    ignored: BTreeMap<GuidPrefix, IgnoredParticipant>,
    /// Participants that the application ignores.
    banned: BTreeSet<GuidPrefix>,
}

/// Characters of the name of an ignored participant that are remembered.
const NAME_MAX: usize = 128;

impl Company {
    pub(super) fn set_own(&mut self, own: Groups) {
        self.own = own;
    }

    pub(super) fn accepts(&self, data: &ParticipantData) -> bool {
        self.own.meet(&Groups::of(data))
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.ignored.len()
    }

    pub(super) fn forget(&mut self, prefix: GuidPrefix) {
        self.ignored.remove(&prefix);
    }

    /// Remembers an ignored participant; false when there are too many.
    pub(super) fn ignore(&mut self, now: Instant, count_max: usize, data: &ParticipantData) -> bool {
        if self.ignored.len() >= count_max && !self.ignored.contains_key(&data.guid_prefix) {
            self.ignored.retain(|_, ignored| ignored.lease_until > now);
            if self.ignored.len() >= count_max {
                return false;
            }
        }
        let ignored = IgnoredParticipant {
            guid_prefix: data.guid_prefix,
            vendor: data.vendor,
            entity_name: data.entity_name.chars().take(NAME_MAX).collect(),
            groups: Groups::of(data),
            lease_until: now + data.lease_duration,
        };
        self.ignored.insert(data.guid_prefix, ignored);
        true
    }
    /// The participants that are ignored because of their groups and still announce themselves.
    pub(super) fn ignored(&self, now: Instant) -> impl Iterator<Item = &IgnoredParticipant> {
        self.ignored.values().filter(move |ignored| ignored.lease_until > now)
    }

    /// Our own groups; none means the default group.
    pub(super) fn own(&self) -> &Groups {
        &self.own
    }

    /// Ignores a participant for ever.
    pub(super) fn ban(&mut self, prefix: GuidPrefix) {
        self.ignored.remove(&prefix);
        self.banned.insert(prefix);
    }

    /// Whether the application ignores a participant.
    pub(super) fn is_banned(&self, prefix: GuidPrefix) -> bool {
        self.banned.contains(&prefix)
    }
}
