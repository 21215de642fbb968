//! The company of a participant: the participants with a communication group in common. Of the others, little more than the name is
//! remembered.

use std::collections::{BTreeMap, BTreeSet};

use crate::discovery::database::LEASE_MAX;
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
    /// When it announced itself last.
    heard_at: Instant,
    /// End of its lease, unless it announces itself again.
    lease_until: Instant,
}

/// Own groups and the participants that they keep out.
#[derive(Debug, Default)]
pub(super) struct Company {
    own: Groups,
    /// At most as many as participants may be known. Announcements in anybody's name fill it, so those that go on announcing themselves
    /// stay.
    ignored: BTreeMap<GuidPrefix, IgnoredParticipant>,
    /// The same in the order in which they announced themselves last.
    by_age: BTreeSet<(Instant, GuidPrefix)>,
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
        if let Some(ignored) = self.ignored.remove(&prefix) {
            self.by_age.remove(&(ignored.heard_at, prefix));
        }
    }

    /// Remembers an ignored participant. When there are too many, the one that was not heard for longest is forgotten, and returned if its
    /// lease has not ended.
    pub(super) fn ignore(&mut self, now: Instant, count_max: usize, data: &ParticipantData) -> Option<GuidPrefix> {
        if count_max == 0 {
            return Some(data.guid_prefix);
        }
        self.forget(data.guid_prefix);
        let forgotten = self.make_room(now, count_max);
        let ignored = IgnoredParticipant {
            guid_prefix: data.guid_prefix,
            vendor: data.vendor,
            entity_name: data.entity_name.chars().take(NAME_MAX).collect(),
            groups: Groups::of(data),
            heard_at: now,
            lease_until: now + data.lease_duration.min(LEASE_MAX),
        };
        self.by_age.insert((now, data.guid_prefix));
        self.ignored.insert(data.guid_prefix, ignored);
        forgotten
    }

    /// Forgets those heard longest ago, as far as their leases have ended or there is no room for one more.
    fn make_room(&mut self, now: Instant, count_max: usize) -> Option<GuidPrefix> {
        let mut forgotten = None;
        while let Some((heard_at, prefix)) = self.by_age.first().copied() {
            let has_ended = self.ignored.get(&prefix).is_none_or(|ignored| ignored.lease_until <= now);
            if !has_ended && self.ignored.len() < count_max {
                break;
            }
            self.by_age.remove(&(heard_at, prefix));
            self.ignored.remove(&prefix);
            forgotten = forgotten.or((!has_ended).then_some(prefix));
        }
        forgotten
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
        self.forget(prefix);
        self.banned.insert(prefix);
    }

    /// Whether the application ignores a participant.
    pub(super) fn is_banned(&self, prefix: GuidPrefix) -> bool {
        self.banned.contains(&prefix)
    }
}
