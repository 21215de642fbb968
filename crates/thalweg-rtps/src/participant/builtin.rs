//! Built-in endpoints: what SEDP and the participant-message protocol exchange (RTPS 2.5 §8.5.4, §8.4.13).

use super::services::{Purpose, ServiceRefusal};
use super::{Event, LostReason, Participant};
use crate::discovery::database::{DiscoveryLimit, Learned};
use crate::history::{ChangeKind, TakenSample};
use crate::payload::Payload;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash};
use crate::writer::NewChange;

/// Whether `one` may be matched beside those that are.
fn has_room(mut matched: impl ExactSizeIterator<Item = Guid>, one: Guid, count_max: usize) -> bool {
    matched.len() < count_max || matched.any(|other| other == one)
}

impl Participant {
    /// Matches our built-in endpoints with those that a participant has.
    pub(super) fn match_builtin(&mut self, now: Instant, prefix: GuidPrefix) {
        let is_housemate = self.housemates.contain(prefix);
        if is_housemate {
            self.meet_housemate(now, prefix);
        }
        let Some(known) = self.database.participants.get(&prefix) else { return };
        if !is_housemate {
            // Answers first: they may be what proves our address to it.
            self.endpoints.builtin().standard().for_each(|topic| self.schedule.make_ready(topic.reader));
        }
        for topic in self.endpoints.builtin().iter().filter(|topic| !is_housemate || topic.purpose == Purpose::Service)
        {
            if let Some(count_max) = topic.readers_max(&known.data)
                && let Some(shared) = self.endpoints.writer(topic.writer)
            {
                let (matched, mut writer) = (topic.matched_reader(known), shared.lock());
                if has_room(writer.matched_readers(), matched.guid, count_max) {
                    writer.match_reader(now, matched);
                    self.schedule.make_ready(topic.writer);
                } else {
                    self.counters.over_limit += 1;
                }
            }
            if let Some(count_max) = topic.writers_max(&known.data)
                && let Some(shared) = self.endpoints.reader(topic.reader)
            {
                let (matched, mut reader) = (topic.matched_writer(known), shared.lock());
                if has_room(reader.matched_writers(), matched.guid, count_max) {
                    reader.match_writer(now, matched);
                    self.schedule.make_ready(topic.reader);
                } else {
                    self.counters.over_limit += 1;
                }
            }
        }
    }

    pub(super) fn unmatch_builtin(&mut self, now: Instant, prefix: GuidPrefix, reason: LostReason) {
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
            // Notices about the lost instances: their endpoints are being removed anyway.
            self.endpoints.take_all(now, topic.reader);
        }
    }

    /// Learns what a built-in reader has received.
    pub(super) fn handle_builtin_data(&mut self, now: Instant, reader: EntityId) {
        let Some(purpose) = self.endpoints.builtin().of_reader(reader).map(|topic| topic.purpose) else { return };
        for sample in self.endpoints.take_all(now, reader) {
            let Some(known) = self.database.participants.get(&sample.info.writer.prefix) else { continue };
            let prefix = known.data.guid_prefix;
            match purpose {
                Purpose::Publications => self.handle_publication(now, prefix, &sample),
                Purpose::Subscriptions => self.handle_subscription(now, prefix, &sample),
                // A participant message renews the lease, as every datagram does.
                Purpose::Liveliness => {}
                Purpose::Service => self.hand_over(now, reader, &sample),
            }
            self.forget_instance(reader, &sample);
        }
    }

    /// Gives a sample of a service to the driver, unless it is more than the service may have.
    fn hand_over(&mut self, now: Instant, reader: EntityId, sample: &TakenSample) {
        if !sample.info.valid {
            return;
        }
        if !self.endpoints.builtin_mut().admit(now, reader, sample.payload.len()) {
            self.counters.over_limit += 1;
            return;
        }
        let (from, payload) = (sample.info.writer.prefix, sample.payload.clone());
        self.events.push_back(Event::ServiceData { reader, from, payload });
    }

    /// Writes a sample of a service to the participants that its writer is matched with. False when there is no such service, or
    /// the payload is longer than its bound.
    pub fn write_service(&mut self, now: Instant, writer: EntityId, payload: Vec<u8>) -> bool {
        let bound = self.endpoints.builtin().of_writer(writer).and_then(|topic| topic.sample_bytes_max());
        if bound.is_none_or(|bytes_max| payload.len() > bytes_max) {
            return false;
        }
        self.write_builtin(now, writer, ChangeKind::Write, KeyHash::default(), payload);
        true
    }

    /// The driver could not read a sample of a service, or had no room for it.
    pub fn refuse_service_data(&mut self, refusal: ServiceRefusal) {
        match refusal {
            ServiceRefusal::Unreadable => self.counters.unusable_announcements += 1,
            ServiceRefusal::OverLimit => self.counters.over_limit += 1,
        }
    }

    /// Writes by one of our built-in writers.
    pub(super) fn write_builtin(
        &mut self,
        now: Instant,
        via: EntityId,
        kind: ChangeKind,
        instance: KeyHash,
        bytes: Vec<u8>,
    ) {
        let Some(writer) = self.endpoints.writer(via) else { return };
        let change = NewChange { kind, instance, timestamp: self.timestamp(now), payload: Payload::from(bytes) };
        let written = writer.lock().write(now, change);
        if let Ok(written) = written {
            self.rearm(via, written.arm.unwrap_or(Instant::NEVER));
        }
    }

    /// Instances whose endpoint is not known are forgotten: peers could make up as many as they like.
    fn forget_instance(&mut self, reader: EntityId, sample: &TakenSample) {
        let guid = Guid::from_bytes(sample.info.instance.0);
        let is_known = match reader {
            EntityId::PUBLICATIONS_READER => self.database.publications.get(guid).is_some(),
            EntityId::SUBSCRIPTIONS_READER => self.database.subscriptions.get(guid).is_some(),
            _ => false,
        };
        if let Some(shared) = self.endpoints.reader(reader).filter(|_| !is_known) {
            shared.lock().forget_instance(sample.info.instance);
        }
    }

    fn handle_publication(&mut self, now: Instant, prefix: GuidPrefix, sample: &TakenSample) {
        if !sample.info.valid {
            if let Some(guid) = self.disposed(prefix, sample) {
                self.remove_publication(now, guid);
            }
            return;
        }
        let count_max = self.database.limits.endpoints_per_participant_max;
        let room = self.database.room_for(prefix);
        let learned = self.database.publications.learn(prefix, count_max, room, &sample.payload);
        self.use_publication(now, prefix, learned);
    }

    /// Matches a publication that was learned.
    pub(super) fn use_publication(&mut self, now: Instant, prefix: GuidPrefix, learned: Learned) {
        if let Some(guid) = self.note_learned(prefix, learned) {
            let unicast = self.database.publications.get(guid).map(|known| known.data.unicast.clone());
            self.note_addresses(prefix, &unicast.unwrap_or_default());
            self.match_publication(now, guid);
        }
    }

    fn handle_subscription(&mut self, now: Instant, prefix: GuidPrefix, sample: &TakenSample) {
        if !sample.info.valid {
            if let Some(guid) = self.disposed(prefix, sample) {
                self.remove_subscription(guid);
            }
            return;
        }
        let count_max = self.database.limits.endpoints_per_participant_max;
        let room = self.database.room_for(prefix);
        let learned = self.database.subscriptions.learn(prefix, count_max, room, &sample.payload);
        self.use_subscription(now, prefix, learned);
    }

    /// Matches a subscription that was learned.
    pub(super) fn use_subscription(&mut self, now: Instant, prefix: GuidPrefix, learned: Learned) {
        if let Some(guid) = self.note_learned(prefix, learned) {
            let unicast = self.database.subscriptions.get(guid).map(|known| known.data.unicast.clone());
            self.note_addresses(prefix, &unicast.unwrap_or_default());
            self.match_subscription(now, guid);
        }
    }

    /// The endpoint whose end a participant tells; it may speak for its own endpoints only.
    fn disposed(&mut self, prefix: GuidPrefix, sample: &TakenSample) -> Option<Guid> {
        let guid = Guid::from_bytes(sample.info.instance.0);
        if guid.prefix != prefix {
            self.counters.unusable_announcements += 1;
            return None;
        }
        Some(guid)
    }

    /// Counts what was refused; returns the endpoint that is new or has changed.
    fn note_learned(&mut self, prefix: GuidPrefix, learned: Learned) -> Option<Guid> {
        match learned {
            Learned::News(guid) => return Some(guid),
            Learned::Nothing => {}
            Learned::Unusable => self.counters.unusable_announcements += 1,
            Learned::OverLimit(limit) => self.note_over_limit(prefix, limit),
        }
        None
    }

    /// Counts what a limit of discovery refused, and tells of the first time and of each time that the count has doubled: whoever
    /// fills the table cannot fill the log as well.
    pub(super) fn note_over_limit(&mut self, participant: GuidPrefix, limit: DiscoveryLimit) {
        self.counters.over_limit += 1;
        let count = match limit {
            DiscoveryLimit::Participants => &mut self.counters.participants_over_limit,
            DiscoveryLimit::Endpoints | DiscoveryLimit::Memory => &mut self.counters.endpoints_over_limit,
        };
        *count += 1;
        let refused = *count;
        if refused.is_power_of_two() {
            self.push_event(Event::OverLimit { participant, limit, refused });
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
        let publications: Vec<Guid> = self.database.publications.of_participant(prefix).collect();
        for guid in publications {
            self.remove_publication(now, guid);
        }
        let subscriptions: Vec<Guid> = self.database.subscriptions.of_participant(prefix).collect();
        for guid in subscriptions {
            self.remove_subscription(guid);
        }
        self.unmatch_builtin(now, prefix, reason);
        self.push_event(Event::ParticipantLost { prefix, reason });
    }
}
