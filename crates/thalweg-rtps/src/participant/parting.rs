//! Participants that are dropped: after a farewell, at the end of their lease, because the application ignores them, or for their
//! groups.

use std::time::Duration;

use super::announce::ANNOUNCEMENTS_PER_LEASE;
use super::graph::Ending;
use super::{Event, LostReason, Participant};
use crate::discovery::KnownParticipant;
use crate::discovery::database::DiscoveryLimit;
use crate::discovery::participant_data::ParticipantData;
use crate::time::Instant;
use crate::types::{Guid, GuidPrefix};

impl Participant {
    /// Drops participants whose lease has ended. The announcements of those of this process renew it also where nobody hears them.
    pub(super) fn drop_expired(&mut self, now: Instant) {
        let check_at = self.order.schedule.lease_check().unwrap_or(now);
        if now < check_at {
            return;
        }
        let ends_by_now = |known: &KnownParticipant| known.lease_until <= now;
        if self.database.participants.values().any(ends_by_now) {
            self.renew_housemates(now, now.since(check_at));
        }
        let participants = self.database.participants.values();
        let expired: Vec<GuidPrefix> =
            participants.filter(|known| ends_by_now(known)).map(|known| known.data.guid_prefix).collect();
        for prefix in expired {
            self.follow_at_lease_end(now, prefix);
            if self.database.participants.get(&prefix).is_some_and(|known| known.lease_until <= now) {
                self.remove_participant(now, prefix, LostReason::LeaseExpired);
            }
        }
        self.order.schedule.set_lease_check(self.database.next_lease_end());
    }

    /// Renews the leases of all housemates at once by their announcements, so that they are checked together the next time. This check
    /// comes `late`: if the whole process stood still, the others need time to announce themselves again.
    fn renew_housemates(&mut self, now: Instant, late: Duration) {
        for (prefix, alive_at) in self.housemates.signs_of_life() {
            let Some(known) = self.database.participants.get_mut(&prefix) else { continue };
            let before = known.lease_until;
            known.renew_lease(alive_at);
            let pause = known.data.lease_duration / ANNOUNCEMENTS_PER_LEASE;
            let patience = if late < pause { Instant::ZERO } else { now + pause };
            known.lease_until = known.lease_until.max(before).max(patience);
        }
    }

    /// Drops a participant that has no group in common, and ignores it from now on.
    pub(super) fn avoid(&mut self, now: Instant, data: &ParticipantData) {
        self.reports.counters.other_groups += 1;
        self.remove_participant(now, data.guid_prefix, LostReason::OtherGroups);
        if let Some(forgotten) = self.company.ignore(now, self.database.limits.participants_max, data) {
            self.reports.note_over_limit(forgotten, DiscoveryLimit::Participants);
        }
    }

    /// Forgets a participant and everything in it.
    pub(super) fn remove_participant(&mut self, now: Instant, prefix: GuidPrefix, reason: LostReason) {
        self.company.forget(prefix);
        self.remember_former(prefix);
        if prefix == self.config.prefix || self.database.participants.remove(&prefix).is_none() {
            return;
        }
        self.housemates.forget(prefix);
        self.neighbours.note_change(now);
        let ending = if reason == LostReason::LeaseExpired { Ending::Lost } else { Ending::Deleted };
        let publications: Vec<Guid> = self.database.publications.of_participant(prefix).collect();
        for guid in publications {
            self.remove_publication(now, guid, ending);
        }
        let subscriptions: Vec<Guid> = self.database.subscriptions.of_participant(prefix).collect();
        for guid in subscriptions {
            self.remove_subscription(now, guid, ending);
        }
        self.hide_participant(now, prefix, ending);
        self.unmatch_builtin(now, prefix, reason);
        self.reports.tell(Event::ParticipantLost { prefix, reason });
    }

    fn unmatch_builtin(&mut self, now: Instant, prefix: GuidPrefix, reason: LostReason) {
        for topic in self.endpoints.builtin().iter() {
            if let Some(shared) = self.endpoints.writer(topic.writer) {
                let mut state = shared.lock();
                state.unmatch_reader(Guid::new(prefix, topic.reader));
                if reason != LostReason::LeaseExpired {
                    state.forget_former_reader(Guid::new(prefix, topic.reader));
                }
            }
            if let Some(shared) = self.endpoints.reader(topic.reader) {
                shared.lock().unmatch_writer(now, Guid::new(prefix, topic.writer));
            }
            // Discards notices of lost instances: their endpoints are being removed anyway.
            self.endpoints.take_all(now, topic.reader);
        }
    }
}
