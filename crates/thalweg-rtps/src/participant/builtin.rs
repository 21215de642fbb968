//! Built-in endpoints: what SEDP and the participant-message protocol exchange (RTPS 2.5 §8.5.4, §8.4.13).

use std::sync::Arc;
use std::time::Duration;

use super::{Event, KeyOf, LostReason, Participant};
use crate::discovery::KnownParticipant;
use crate::discovery::database::{DiscoveryLimit, Learned};
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::history::{PayloadKind, ReadFilter, TakenSample};
use crate::qos::{Durability, ReaderQos, Reliability, WriterQos};
use crate::reader::MatchedWriter;
use crate::time::{INFINITE, Instant};
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash};
use crate::writer::MatchedReader;

/// The built-in writers with the readers that go with them.
pub(super) const PAIRS: [(EntityId, EntityId); 3] = [
    (EntityId::PUBLICATIONS_WRITER, EntityId::PUBLICATIONS_READER),
    (EntityId::SUBSCRIPTIONS_WRITER, EntityId::SUBSCRIPTIONS_READER),
    (EntityId::PARTICIPANT_MESSAGE_WRITER, EntityId::PARTICIPANT_MESSAGE_READER),
];

/// What an exchange between built-in endpoints is taken to need before the first one: where many participants start together
/// nobody answers at once.
const ROUND_TRIP_ASSUMED: Duration = Duration::from_millis(100);

/// Bit of a built-in writer in the announced set; its reader has the next one (RTPS 2.5 §9.3.2.12).
fn announced_bit(writer: EntityId) -> u32 {
    match writer {
        EntityId::PUBLICATIONS_WRITER => 2,
        EntityId::SUBSCRIPTIONS_WRITER => 4,
        _ => 10,
    }
}

/// A participant's built-in reader as our writer needs to know it.
pub(super) fn builtin_reader(known: &KnownParticipant, reader: EntityId) -> MatchedReader {
    MatchedReader {
        guid: Guid::new(known.data.guid_prefix, reader),
        vendor: known.data.vendor,
        reliable: true,
        wants_history: true,
        unicast: known.reach.metatraffic.clone(),
        multicast: None,
        on_this_host: known.reach.on_this_host,
        datagram_bytes: known.reach.datagram_bytes(),
        batches: false,
        round_trip: ROUND_TRIP_ASSUMED,
        receive_buffer_bytes: None,
    }
}

/// A participant's built-in writer as our reader needs to know it.
pub(super) fn builtin_writer(known: &KnownParticipant, writer: EntityId) -> MatchedWriter {
    MatchedWriter {
        guid: Guid::new(known.data.guid_prefix, writer),
        vendor: known.data.vendor,
        reliable: true,
        keeps_history: true,
        greets: known.data.vendor.traits().greets && !known.has_spoken,
        lifespan: INFINITE,
        round_trip: ROUND_TRIP_ASSUMED,
        unicast: known.reach.metatraffic.clone(),
    }
}

/// RELIABLE, TRANSIENT_LOCAL, KEEP_LAST 1, for writers that never block.
pub(super) fn writer_qos() -> WriterQos {
    WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: INFINITE },
        durability: Durability::TransientLocal,
        ..WriterQos::default()
    }
}

pub(super) fn reader_qos() -> ReaderQos {
    let WriterQos { reliability, durability, .. } = writer_qos();
    ReaderQos { reliability, durability, ..ReaderQos::default() }
}

/// The instance of a built-in topic is the GUID that its data describes; that of a participant message its first 16 bytes.
pub(super) fn key_of(writer: EntityId) -> KeyOf {
    Arc::new(move |payload: &[u8], _: PayloadKind| {
        let guid = match writer {
            EntityId::PUBLICATIONS_WRITER => PublicationData::decode_key(payload).ok()?.to_bytes(),
            EntityId::SUBSCRIPTIONS_WRITER => SubscriptionData::decode_key(payload).ok()?.to_bytes(),
            _ => *payload.get(4..)?.first_chunk::<16>()?,
        };
        Some(KeyHash(guid))
    })
}

impl Participant {
    /// Matches our built-in endpoints with those that a participant announces.
    pub(super) fn match_builtin(&mut self, now: Instant, prefix: GuidPrefix) {
        if self.housemates.contain(prefix) {
            self.meet_housemate(now, prefix);
            return self.match_inquiry(now, prefix);
        }
        let Some(known) = self.database.participants.get(&prefix) else { return };
        // Answers first: they may be what proves our address to it.
        PAIRS.iter().for_each(|(_, reader)| self.schedule.make_ready(*reader));
        for (writer, reader) in PAIRS {
            let bit = announced_bit(writer);
            if known.data.builtin_endpoints & (1 << (bit + 1)) != 0 {
                let matched = builtin_reader(known, reader);
                if let Some(shared) = self.endpoints.writer(writer) {
                    shared.lock().match_reader(now, matched);
                    self.schedule.make_ready(writer);
                }
            }
            if known.data.builtin_endpoints & (1 << bit) != 0 {
                let matched = builtin_writer(known, writer);
                if let Some(shared) = self.endpoints.reader(reader) {
                    shared.lock().match_writer(now, matched);
                    self.schedule.make_ready(reader);
                }
            }
        }
        self.match_inquiry(now, prefix);
    }

    pub(super) fn unmatch_builtin(&mut self, now: Instant, prefix: GuidPrefix, reason: LostReason) {
        for (writer, reader) in PAIRS.into_iter().chain(super::inquiry::PAIRS) {
            if let Some(shared) = self.endpoints.writer(writer) {
                let mut state = shared.lock();
                state.unmatch_reader(Guid::new(prefix, reader));
                if reason != LostReason::LeaseExpired {
                    state.forget_former_reader(Guid::new(prefix, reader));
                }
            }
            if let Some(shared) = self.endpoints.reader(reader) {
                shared.lock().unmatch_writer(now, Guid::new(prefix, writer));
            }
            // Notices about the lost instances: their endpoints are being removed anyway.
            self.take_builtin(now, reader);
        }
    }

    /// Learns what a built-in reader has received.
    pub(super) fn handle_builtin_data(&mut self, now: Instant, reader: EntityId) {
        for sample in self.take_builtin(now, reader) {
            let Some(known) = self.database.participants.get(&sample.info.writer.prefix) else { continue };
            let prefix = known.data.guid_prefix;
            match reader {
                EntityId::PUBLICATIONS_READER => self.handle_publication(now, prefix, &sample),
                EntityId::SUBSCRIPTIONS_READER => self.handle_subscription(now, prefix, &sample),
                EntityId::QUESTION_READER => self.handle_question(now, &sample),
                EntityId::ANSWER_READER => self.handle_answer(&sample),
                // A participant message renews the lease, as every datagram does.
                _ => {}
            }
            self.forget_instance(reader, &sample);
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

    fn take_builtin(&mut self, now: Instant, reader: EntityId) -> Vec<TakenSample> {
        let mut samples = Vec::new();
        if let Some(shared) = self.endpoints.reader(reader) {
            shared.lock().take(|| now, usize::MAX, &ReadFilter::ALL, &mut samples);
        }
        samples
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
