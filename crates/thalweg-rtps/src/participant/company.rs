//! Whom a participant keeps company with: those who share a communication group, and the others, of whom hardly more than the
//! name is remembered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{LostReason, Participant};
use crate::discovery::database::DiscoveryLimit;
use crate::discovery::groups::Groups;
use crate::discovery::participant_data::ParticipantData;
use crate::time::Instant;
use crate::types::{GuidPrefix, VendorId};

/// A participant of the domain that is ignored because its communication groups are not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredParticipant {
    /// Its GUID.
    pub guid_prefix: GuidPrefix,
    /// Who made it.
    pub vendor: VendorId,
    /// Name that its application gave it, cut off after 128 letters; empty for none.
    pub entity_name: String,
    /// Its groups.
    pub groups: Groups,
    /// When it counts as gone unless it announces itself again.
    lease_until: Instant,
}

/// Own groups and the participants that they keep out.
#[derive(Debug, Default)]
pub(super) struct Company {
    own: Groups,
    /// At most as many as participants may be known; the expired ones make room for others.
    ignored: BTreeMap<GuidPrefix, IgnoredParticipant>,
}

/// Letters of a name that are remembered of an ignored participant.
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

    /// Remembers who is ignored; false when there are too many.
    fn ignore(&mut self, now: Instant, count_max: usize, data: &ParticipantData) -> bool {
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
}

impl Participant {
    /// The participants of the domain that are ignored because of their communication groups, while they announce themselves.
    pub fn ignored_participants(&self, now: Instant) -> impl Iterator<Item = &IgnoredParticipant> {
        self.company.ignored.values().filter(move |ignored| ignored.lease_until > now)
    }

    /// The communication groups of this participant; none means the default group.
    pub fn groups(&self) -> &Groups {
        &self.company.own
    }

    /// Changes the communication groups and announces them. Participants that are no company any more are dropped; those that
    /// become company are met when they announce themselves next, which Thalweg's do at once.
    pub fn set_groups(&mut self, now: Instant, groups: Groups) {
        self.config.groups = groups;
        self.describe_self();
        let known = self.database.participants.values().map(|known| &known.data);
        let others = known.filter(|data| data.guid_prefix != self.config.prefix && !self.company.accepts(data));
        let left: Vec<Arc<ParticipantData>> = others.cloned().collect();
        left.iter().for_each(|data| self.avoid(now, data));
        self.announcer.announce_soon(now);
    }

    /// Has nothing to do with a participant of other groups from now on.
    pub(super) fn avoid(&mut self, now: Instant, data: &ParticipantData) {
        self.counters.other_groups += 1;
        self.remove_participant(now, data.guid_prefix, LostReason::OtherGroups);
        if !self.company.ignore(now, self.database.limits.participants_max, data) {
            self.note_over_limit(data.guid_prefix, DiscoveryLimit::Participants);
        }
    }
}
