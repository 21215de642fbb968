//! Built-in endpoints: their matches, and the samples of SEDP, the participant-message protocol and services (RTPS 2.5 §8.5.4,
//! §8.4.13).

use std::sync::Arc;

use super::graph::Ending;
use super::household::Told;
use super::services::{ServiceRefusal, TopicKind};
use super::{Event, Participant};
use crate::discovery::database::Learned;
use crate::history::{ChangeKind, TakenSample};
use crate::payload::Payload;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash};
use crate::writer::NewChange;

/// Whether `one` is matched already, or there is room for it.
fn has_room(mut matched: impl ExactSizeIterator<Item = Guid>, one: Guid, count_max: usize) -> bool {
    matched.len() < count_max || matched.any(|other| other == one)
}

impl Participant {
    /// Matches our built-in endpoints with those that a participant has.
    pub(super) fn match_builtin(&mut self, now: Instant, prefix: GuidPrefix) {
        let is_housemate = self.housemates.contain(prefix);
        if is_housemate && let Some(known) = self.database.participants.get(&prefix) {
            self.housemates.listen_to(&known.data);
            self.handle_household(now);
        }
        let Some(known) = self.database.participants.get(&prefix) else { return };
        if !is_housemate {
            // Answers first: they may prove our address to it.
            self.endpoints.builtin().standard().for_each(|topic| self.order.schedule.make_ready(topic.reader));
        }
        for topic in self.endpoints.builtin().iter().filter(|topic| !is_housemate || topic.kind == TopicKind::Service) {
            if let Some(count_max) = topic.readers_max(&known.data)
                && let Some(shared) = self.endpoints.writer(topic.writer)
            {
                let (matched, mut writer) = (topic.matched_reader(known), shared.lock());
                if has_room(writer.matched_readers(), matched.guid, count_max) {
                    writer.match_reader(now, matched);
                    self.order.schedule.make_ready(topic.writer);
                } else {
                    self.reports.counters.over_limit += 1;
                }
            }
            if let Some(count_max) = topic.writers_max(&known.data)
                && let Some(shared) = self.endpoints.reader(topic.reader)
            {
                let (matched, mut reader) = (topic.matched_writer(known), shared.lock());
                if has_room(reader.matched_writers(), matched.guid, count_max) {
                    reader.match_writer(now, matched);
                    self.order.schedule.make_ready(topic.reader);
                } else {
                    self.reports.counters.over_limit += 1;
                }
            }
        }
    }

    /// Learns what other participants of the [`Household`](super::Household) have told of their endpoints; without news it costs
    /// one look at a flag.
    pub fn handle_household(&mut self, now: Instant) {
        let count_max = self.database.limits.endpoints_per_participant_max;
        for (guid, told) in self.housemates.take_news() {
            let prefix = guid.prefix;
            if !self.database.participants.contains_key(&prefix) {
                continue;
            }
            let room = self.database.room_for(prefix);
            match told {
                Some(Told::Publication(data)) => {
                    let learned = self.database.publications.learn_data(count_max, room, data);
                    self.use_publication(now, prefix, learned);
                }
                Some(Told::Subscription(data)) => {
                    let learned = self.database.subscriptions.learn_data(count_max, room, data);
                    self.use_subscription(now, prefix, learned);
                }
                None if guid.entity.is_writer() => self.remove_publication(now, guid, Ending::Deleted),
                None => self.remove_subscription(now, guid, Ending::Deleted),
            }
        }
    }

    /// Learns what a built-in reader has received.
    pub(super) fn handle_builtin_data(&mut self, now: Instant, reader: EntityId) {
        let Some(kind) = self.endpoints.builtin().of_reader(reader).map(|topic| topic.kind) else { return };
        for sample in self.endpoints.take_all(now, reader) {
            let Some(known) = self.database.participants.get(&sample.info.writer.prefix) else { continue };
            let prefix = known.data.guid_prefix;
            match kind {
                TopicKind::Publications => self.handle_publication(now, prefix, &sample),
                TopicKind::Subscriptions => self.handle_subscription(now, prefix, &sample),
                TopicKind::Liveliness => self.handle_participant_message(now, prefix, &sample),
                TopicKind::Service => self.hand_over(now, reader, &sample),
            }
            self.forget_instance(reader, &sample);
        }
    }

    /// Gives a sample of a service to the driver, unless it is beyond the bounds of the service.
    fn hand_over(&mut self, now: Instant, reader: EntityId, sample: &TakenSample) {
        if !sample.info.valid {
            return;
        }
        if !self.endpoints.builtin_mut().admit(now, reader, sample.payload.len()) {
            self.reports.counters.over_limit += 1;
            return;
        }
        let (from, payload) = (sample.info.writer.prefix, sample.payload.clone());
        self.reports.append(Event::ServiceData { reader, from, payload });
    }

    /// Writes a sample of a service to the participants that its writer is matched with. False when there is no such service, or
    /// the payload is longer than its bound.
    pub fn write_service(&mut self, now: Instant, writer: EntityId, payload: Vec<u8>) -> bool {
        let bound = self.endpoints.builtin().of_writer(writer).and_then(|topic| topic.sample_bytes_max());
        if bound.is_none_or(|bytes_max| payload.len() > bytes_max) {
            return false;
        }
        let instance = KeyHash::default();
        let change = NewChange { kind: ChangeKind::Write, instance, timestamp: None, payload: Payload::from(payload) };
        self.write_builtin(now, writer, change);
        true
    }

    /// Counts a sample of a service that the driver could not read or had no room for.
    pub fn refuse_service_data(&mut self, refusal: ServiceRefusal) {
        match refusal {
            ServiceRefusal::Unreadable => self.reports.counters.unusable_announcements += 1,
            ServiceRefusal::OverLimit => self.reports.counters.over_limit += 1,
        }
    }

    /// Writes by one of our built-in writers.
    pub(super) fn write_builtin(&mut self, now: Instant, via: EntityId, change: NewChange) {
        if let Some(at) = self.endpoints.write(now, via, change) {
            self.rearm(via, at);
        }
    }

    /// Forgets the instance of a sample unless its endpoint is known: peers could make up any number of instances.
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
            if let Some(guid) = self.reports.note_end(prefix, sample) {
                self.remove_publication(now, guid, Ending::Deleted);
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
        if let Some(guid) = self.reports.note_learned(prefix, learned) {
            let Some(data) = self.database.publications.get(guid).map(|known| Arc::clone(&known.data)) else { return };
            if self.ignored.has(guid, &data.topic_name) {
                return self.remove_publication(now, guid, Ending::Deleted);
            }
            self.note_addresses(prefix, &data.unicast);
            self.match_publication(now, guid);
            self.show_endpoint(now, guid);
        }
    }

    fn handle_subscription(&mut self, now: Instant, prefix: GuidPrefix, sample: &TakenSample) {
        if !sample.info.valid {
            if let Some(guid) = self.reports.note_end(prefix, sample) {
                self.remove_subscription(now, guid, Ending::Deleted);
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
        if let Some(guid) = self.reports.note_learned(prefix, learned) {
            let Some(data) = self.database.subscriptions.get(guid).map(|known| Arc::clone(&known.data)) else { return };
            if self.ignored.has(guid, &data.topic_name) {
                return self.remove_subscription(now, guid, Ending::Deleted);
            }
            self.note_addresses(prefix, &data.unicast);
            self.match_subscription(now, guid);
            self.show_endpoint(now, guid);
        }
    }
}
