//! Matches local endpoints with the publications and subscriptions that discovery found.

use std::sync::Arc;

use super::graph::Ending;
use super::{Event, Participant, Publications};
use crate::qos::{MatchResult, Mismatch, PolicyId};
use crate::reader::MatchedWriter;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber, VendorId};
use crate::writer::MatchedReader;

/// Bytes that an announced receive buffer counts for at most.
const RECEIVE_BUFFER_MAX: u32 = 64 << 20;

impl Participant {
    /// Compares a new local writer with every reader on its topic.
    pub(super) fn match_local_writer(&mut self, now: Instant, writer: EntityId) {
        for reader in self.readers_on_topic_of(writer) {
            self.match_writer_with(now, writer, reader);
        }
    }

    /// Compares a new local reader with every writer on its topic.
    pub(super) fn match_local_reader(&mut self, now: Instant, reader: EntityId) {
        for writer in self.writers_on_topic_of(reader) {
            self.match_reader_with(now, reader, writer);
        }
    }

    /// Compares a new or changed publication with the local readers on its topic, and with those that it is matched with, in case
    /// it has changed its topic.
    pub(super) fn match_publication(&mut self, now: Instant, writer: Guid) {
        let Some(known) = self.database.publications.get(writer) else { return };
        let readers = self.database.subscriptions.of_topic_in(&known.data.topic_name, self.config.prefix);
        for reader in with_matched(readers, &known.matched) {
            self.match_reader_with(now, reader, writer);
        }
    }

    /// Compares a new or changed subscription with the local writers on its topic, and with those that it is matched with, in case
    /// it has changed its topic.
    pub(super) fn match_subscription(&mut self, now: Instant, reader: Guid) {
        let Some(known) = self.database.subscriptions.get(reader) else { return };
        let writers = self.database.publications.of_topic_in(&known.data.topic_name, self.config.prefix);
        for writer in with_matched(writers, &known.matched) {
            self.match_writer_with(now, writer, reader);
        }
    }

    fn readers_on_topic_of(&self, writer: EntityId) -> Vec<Guid> {
        let known = self.database.publications.get(Guid::new(self.config.prefix, writer));
        known.map_or_else(Vec::new, |known| self.database.subscriptions.of_topic(&known.data.topic_name).to_vec())
    }

    fn writers_on_topic_of(&self, reader: EntityId) -> Vec<Guid> {
        let known = self.database.subscriptions.get(Guid::new(self.config.prefix, reader));
        known.map_or_else(Vec::new, |known| self.database.publications.of_topic(&known.data.topic_name).to_vec())
    }

    /// Gives the changed addresses of a participant to the local endpoints that its own are matched with.
    pub(super) fn rematch_participant(&mut self, now: Instant, prefix: GuidPrefix) {
        let publications: Vec<Guid> = self.database.publications.of_participant(prefix).collect();
        for guid in publications {
            self.match_publication(now, guid);
        }
        let subscriptions: Vec<Guid> = self.database.subscriptions.of_participant(prefix).collect();
        for guid in subscriptions {
            self.match_subscription(now, guid);
        }
    }

    /// Every participant, this one included, with the addresses that its user data go to: several where nothing tells which of them
    /// works.
    pub fn paths(&self) -> impl Iterator<Item = (GuidPrefix, &[Locator])> {
        self.database.participants.iter().map(|(prefix, known)| (*prefix, known.reach.user.as_slice()))
    }

    /// Sets the path MTU to the addresses of a participant (see [`Participant::paths`]): the bytes of an IP packet, headers
    /// included, as far as this end can tell. Later datagrams keep to it, and to the limit that the participant itself announced;
    /// samples that are being sent keep their fragments. Returns whether anything changes.
    pub fn set_path_mtu(&mut self, now: Instant, prefix: GuidPrefix, mtu_bytes: u32) -> bool {
        let Some(known) = self.database.participants.get_mut(&prefix) else { return false };
        if !known.reach.set_path_mtu(mtu_bytes) {
            return false;
        }
        if prefix != self.config.prefix {
            self.match_builtin(now, prefix);
        }
        let subscriptions: Vec<Guid> = self.database.subscriptions.of_participant(prefix).collect();
        for reader in subscriptions {
            let writers =
                self.database.subscriptions.get(reader).map(|known| known.matched.clone()).unwrap_or_default();
            for writer in writers {
                let (Some(matched), Some(shared)) = (self.reader_as_matched(reader), self.endpoints.writer(writer))
                else {
                    continue;
                };
                shared.lock().match_reader(now, matched);
                self.order.schedule.make_ready(writer);
            }
        }
        true
    }

    /// Whether both endpoints are of this participant, and the reader is not for its writers or one of them is ignored. Ignored endpoints
    /// of others are not known.
    fn is_kept_apart(&self, writer: Guid, reader: Guid, topic: &str) -> bool {
        let is_own = writer.prefix == self.config.prefix && reader.prefix == self.config.prefix;
        is_own
            && (self.endpoints.reader_publications(reader.entity) == Publications::OfOthers
                || self.is_pair_ignored(writer, reader, topic))
    }

    pub(super) fn match_writer_with(&mut self, now: Instant, writer: EntityId, reader: Guid) {
        #[cfg(test)]
        tests::note_comparison();
        let own = Guid::new(self.config.prefix, writer);
        let (Some(publication), Some(subscription)) =
            (self.database.publications.get(own), self.database.subscriptions.get(reader))
        else {
            return;
        };
        if self.is_kept_apart(own, reader, &publication.data.topic_name) {
            return;
        }
        let was_matched = subscription.matched.contains(&writer);
        let Some(result) = self.compare(&publication.data, &subscription.data) else {
            return self.note_undecided(writer, reader);
        };
        if result != MatchResult::Match {
            if was_matched {
                self.unmatch_pair_of_writer(writer, reader);
                if let Some(shared) = self.endpoints.writer(writer) {
                    shared.lock().forget_former_reader(reader);
                }
            }
            match result {
                MatchResult::Match | MatchResult::DifferentTopic => {}
                result if !self.refusals.note((writer, reader), &result) => {}
                MatchResult::Incompatible(mismatches) => {
                    self.tell_inconsistent(writer, reader, &mismatches);
                    self.reports.tell(Event::OfferedIncompatibleQos { writer, reader, mismatches });
                }
                other => self.reports.tell(not_matched(writer, reader, &other)),
            }
            return;
        }
        self.refusals.forget((writer, reader));
        let filter = subscription.data.filter.clone();
        let Some(matched) = self.reader_as_matched(reader) else { return };
        let Some(shared) = self.endpoints.writer(writer) else { return };
        if was_matched || filter.is_some() {
            self.reports.tell(Event::ReaderFilter { writer, reader, filter });
        }
        shared.lock().match_reader(now, matched);
        self.order.schedule.make_ready(writer);
        if !was_matched {
            if let Some(known) = self.database.subscriptions.get_mut(reader) {
                known.matched.push(writer);
            }
            self.neighbours.note_change(now);
            self.reports.tell(Event::PublicationMatched { writer, reader });
        }
    }

    /// A known reader, to be matched with a local writer.
    fn reader_as_matched(&self, reader: Guid) -> Option<MatchedReader> {
        let subscription = &self.database.subscriptions.get(reader)?.data;
        let participant = self.database.participants.get(&reader.prefix)?;
        let local = &self.config.addresses;
        let reach = &participant.reach;
        let own_addresses = !subscription.unicast.is_empty() || !subscription.multicast.is_empty();
        Some(MatchedReader {
            guid: reader,
            vendor: participant.data.vendor,
            reliable: subscription.qos.reliability.is_reliable(),
            qos: Arc::clone(&subscription.qos),
            unicast: if own_addresses { reach.choose(local, &subscription.unicast) } else { reach.user.clone() },
            multicast: if own_addresses {
                reach.choose_group(local, &subscription.multicast)
            } else {
                reach.user_multicast
            },
            on_this_host: reach.on_this_host,
            datagram_bytes: reach.datagram_bytes(),
            batches: participant.data.understands_batches(),
            round_trip: self.endpoints.round_trip_assumed(reader.prefix),
            receive_buffer_bytes: participant.data.receive_buffer_bytes.map(|bytes| bytes.min(RECEIVE_BUFFER_MAX)),
        })
    }

    pub(super) fn match_reader_with(&mut self, now: Instant, reader: EntityId, writer: Guid) {
        #[cfg(test)]
        tests::note_comparison();
        let own = Guid::new(self.config.prefix, reader);
        let (Some(publication), Some(subscription)) =
            (self.database.publications.get(writer), self.database.subscriptions.get(own))
        else {
            return;
        };
        if self.is_kept_apart(writer, own, &publication.data.topic_name) {
            return;
        }
        let was_matched = publication.matched.contains(&reader);
        if publication.is_superseded && !was_matched {
            return;
        }
        let Some(result) = self.compare(&publication.data, &subscription.data) else {
            return self.note_undecided(reader, writer);
        };
        if result != MatchResult::Match {
            if was_matched {
                self.unmatch_pair_of_reader(now, reader, writer);
                if let Some(shared) = self.endpoints.reader(reader) {
                    shared.lock().forgo_meanwhile(writer);
                }
            }
            match result {
                MatchResult::Match | MatchResult::DifferentTopic => {}
                result if !self.refusals.note((reader, writer), &result) => {}
                MatchResult::Incompatible(mismatches) => {
                    self.tell_inconsistent(reader, writer, &mismatches);
                    self.reports.tell(Event::RequestedIncompatibleQos { reader, writer, mismatches });
                }
                other => self.reports.tell(not_matched(reader, writer, &other)),
            }
            return;
        }
        self.refusals.forget((reader, writer));
        let Some(matched) = self.writer_as_matched(writer) else { return };
        let Some(shared) = self.endpoints.reader(reader) else { return };
        let mut state = shared.lock();
        let superseded = if was_matched { Vec::new() } else { state.superseded_by(&matched) };
        state.match_writer(now, matched);
        drop(state);
        self.order.schedule.make_ready(reader);
        if !was_matched {
            if let Some(known) = self.database.publications.get_mut(writer) {
                known.matched.push(reader);
            }
            self.note_access_matched(writer, reader);
            self.reports.tell(Event::SubscriptionMatched { reader, writer });
            if !self.liveliness.is_alive(writer) {
                self.tell_reader_not_alive(now, reader, writer);
            }
        }
        self.watch_liveliness(now, writer);
        superseded.into_iter().for_each(|former| self.unmatch_pair_of_reader(now, reader, former));
    }

    /// Tells of a topic that another endpoint uses with a type that does not fit (DDS-XTypes 1.3 §7.6.3.4).
    fn tell_inconsistent(&mut self, local: EntityId, remote: Guid, mismatches: &[Mismatch]) {
        if let Some(types) = mismatches.iter().find(|mismatch| mismatch.policy == PolicyId::TYPE_CONSISTENCY) {
            self.reports.tell(Event::InconsistentTopic { local, remote, why: types.to_string() });
        }
    }

    /// A known writer, to be matched with a local reader.
    fn writer_as_matched(&self, writer: Guid) -> Option<MatchedWriter> {
        let publication = &self.database.publications.get(writer)?.data;
        let participant = self.database.participants.get(&writer.prefix)?;
        let reach = &participant.reach;
        Some(MatchedWriter {
            guid: writer,
            vendor: participant.data.vendor,
            reliable: publication.qos.reliability.is_reliable(),
            qos: Arc::clone(&publication.qos),
            history: publication.history.filter(|_| participant.data.vendor == VendorId::THALWEG),
            greets: false,
            numbers_from: SequenceNumber::FIRST,
            round_trip: self.endpoints.round_trip_assumed(writer.prefix),
            unicast: if publication.unicast.is_empty() {
                reach.user.clone()
            } else {
                reach.choose(&self.config.addresses, &publication.unicast)
            },
        })
    }

    pub(super) fn unmatch_pair_of_writer(&mut self, writer: EntityId, reader: Guid) {
        if let Some(known) = self.database.subscriptions.get_mut(reader) {
            known.matched.retain(|matched| *matched != writer);
        }
        self.forget_reader(writer, reader);
    }

    pub(super) fn unmatch_pair_of_reader(&mut self, now: Instant, reader: EntityId, writer: Guid) {
        if let Some(known) = self.database.publications.get_mut(writer) {
            known.matched.retain(|matched| *matched != reader);
            if known.matched.is_empty() {
                self.liveliness.forget(writer);
            }
        }
        self.forget_writer(now, reader, writer);
    }

    fn forget_reader(&mut self, writer: EntityId, reader: Guid) {
        let Some(shared) = self.endpoints.writer(writer) else { return };
        let (space, all_acknowledged) = {
            let mut state = shared.lock();
            (state.unmatch_reader(reader), state.poll_acknowledgement() || state.all_acknowledged())
        };
        self.order.schedule.make_ready(writer);
        self.reports.tell(Event::PublicationUnmatched { writer, reader });
        if space {
            self.reports.tell(Event::SpaceAvailable { writer });
        }
        if all_acknowledged {
            self.reports.tell(Event::Acknowledged { writer });
        }
    }

    fn forget_writer(&mut self, now: Instant, reader: EntityId, writer: Guid) {
        let Some(shared) = self.endpoints.reader(reader) else { return };
        let (outcome, news, armed) = {
            let mut state = shared.lock();
            (state.unmatch_writer(now, writer), state.take_news(), state.newly_armed())
        };
        self.note_status_news(reader, news);
        if let Some(at) = armed {
            self.order.schedule.arm(reader, at);
        }
        if outcome.data_available {
            self.reports.tell(Event::DataAvailable { reader });
        }
        self.access.remove_pair(writer, reader);
        self.settle_access(now);
        self.reports.tell(Event::SubscriptionUnmatched { reader, writer });
    }

    /// Removes a local writer, which is being deleted, from the matches of all readers.
    pub(super) fn unmatch_local_writer(&mut self, writer: EntityId) {
        for reader in self.readers_on_topic_of(writer) {
            if let Some(known) = self.database.subscriptions.get_mut(reader) {
                known.matched.retain(|matched| *matched != writer);
            }
        }
    }

    /// Removes a local reader, which is being deleted, from the matches of all writers. Whether one lives that nobody reads any more is not
    /// followed.
    pub(super) fn unmatch_local_reader(&mut self, reader: EntityId) {
        for writer in self.writers_on_topic_of(reader) {
            if let Some(known) = self.database.publications.get_mut(writer) {
                known.matched.retain(|matched| *matched != reader);
                if known.matched.is_empty() {
                    self.liveliness.forget(writer);
                }
            }
        }
    }

    /// Forgets a writer, and unmatches it.
    pub(super) fn remove_publication(&mut self, now: Instant, writer: Guid, ending: Ending) {
        let Some(known) = self.database.publications.remove(writer) else { return };
        self.refusals.forget_all_of(writer, self.config.prefix);
        self.hide_endpoint(now, writer, ending);
        self.liveliness.forget(writer);
        for reader in known.matched {
            self.forget_writer(now, reader, writer);
        }
    }

    /// Forgets a reader, and unmatches it.
    pub(super) fn remove_subscription(&mut self, now: Instant, reader: Guid, ending: Ending) {
        let Some(known) = self.database.subscriptions.remove(reader) else { return };
        self.refusals.forget_all_of(reader, self.config.prefix);
        self.hide_endpoint(now, reader, ending);
        for writer in known.matched {
            self.forget_reader(writer, reader);
        }
    }
}

/// Why a local endpoint does not match another one on its topic.
fn not_matched(local: EntityId, remote: Guid, result: &MatchResult) -> Event {
    let why = result.to_string();
    match result {
        MatchResult::DifferentType { .. } | MatchResult::DifferentKeyedness { .. } => {
            Event::InconsistentTopic { local, remote, why }
        }
        _ => Event::NotMatched { local, remote, why },
    }
}

/// The local endpoints on a topic, in order, followed by those of `matched` that are not on it.
fn with_matched(on_topic: &[Guid], matched: &[EntityId]) -> Vec<EntityId> {
    let mut entities: Vec<EntityId> = on_topic.iter().map(|guid| guid.entity).collect();
    let is_elsewhere = |entity: &&EntityId| on_topic.binary_search_by_key(*entity, |guid| guid.entity).is_err();
    entities.extend(matched.iter().filter(is_elsewhere));
    entities
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tests::*;
    use super::*;
    use crate::participant::{KeySource, ReaderConfig, WriterConfig};
    use crate::qos::History;
    use crate::types::Keyed;
    use crate::writer::WriterOptions;

    thread_local! {
        static COMPARISONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    pub(super) fn note_comparison() {
        COMPARISONS.set(COMPARISONS.get() + 1);
    }

    fn create_writer(net: &mut Net, topic_name: &str) {
        let (topic_name, type_name) = (topic_name.to_owned(), "type".to_owned());
        let (qos, options) = (reliable_writer(History::KeepAll), WriterOptions::default());
        let config = WriterConfig { topic_name, type_name, keyed: Keyed::No, qos: qos.into(), options };
        net.nodes[0].participant.create_writer(net.now, config).expect("a legal QoS");
    }

    fn create_reader(net: &mut Net, topic_name: &str) {
        let (topic_name, type_name) = (topic_name.to_owned(), "type".to_owned());
        let qos = reliable_reader(History::KeepAll);
        let config = ReaderConfig {
            topic_name,
            type_name,
            keyed: Keyed::No,
            qos: qos.into(),
            keys: KeySource::Wire,
            filter: None,
        };
        net.nodes[1].participant.create_reader(net.now, config).expect("a legal QoS");
    }

    /// How often endpoints are compared until a writer at node 0 and a reader at node 1 are matched on each of `topics` topics.
    fn comparisons(topics: usize) -> usize {
        COMPARISONS.set(0);
        let mut net = Net::new(2);
        for number in 0..topics {
            create_writer(&mut net, &format!("topic {number}"));
            create_reader(&mut net, &format!("topic {number}"));
        }
        net.run_for(SECOND * 5);
        let readers = net.nodes[0].participant.database.subscriptions.iter();
        assert_eq!(readers.filter(|known| known.matched.len() == 1).count(), topics, "all have met");
        COMPARISONS.get()
    }

    #[test]
    fn endpoints_are_compared_with_those_of_their_topic_only() {
        assert_eq!([5, 200].map(comparisons), [10, 400]);
    }

    #[test]
    fn a_reader_that_moves_to_another_topic_is_matched_there_only() {
        let mut net = Net::new(2);
        create_writer(&mut net, "old");
        create_writer(&mut net, "new");
        create_reader(&mut net, "old");
        net.run_for(SECOND);
        let participant = &mut net.nodes[0].participant;
        let known = participant.database.subscriptions.iter().next().expect("they have met");
        let (mut data, before) = (known.data.clone(), known.matched.clone());
        Arc::make_mut(&mut data).topic_name = "new".to_owned();
        let reader = data.guid;
        participant.database.subscriptions.insert(data);
        participant.match_subscription(net.now, reader);
        let after = &participant.database.subscriptions.get(reader).expect("it was filed").matched;
        assert!(before.len() == 1 && after.len() == 1 && before != *after, "{before:?} {after:?}");
    }

    const OWN: [u8; 4] = [10, 0, 0, 2];
    const OWN_GROUP: [u8; 4] = [239, 255, 0, 77];

    /// Checks where a reader is reached that announces these addresses of its own.
    #[track_caller]
    fn check(own: (&[Locator], &[Locator]), unicast: &[Locator], multicast: Option<Locator>) {
        let mut net = Net::new(2);
        net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
        net.run_for(SECOND);
        let guid = reader.lock().guid();
        let participant = &mut net.nodes[0].participant;
        let known = participant.database.subscriptions.get_mut(guid).expect("they have met");
        let announced = Arc::make_mut(&mut known.data);
        (announced.unicast, announced.multicast) = (own.0.to_vec(), own.1.to_vec());
        let matched = participant.reader_as_matched(guid).expect("they have met");
        assert_eq!((matched.unicast.as_slice(), matched.multicast), (unicast, multicast));
    }

    #[test]
    fn a_reader_that_names_any_address_is_reached_there_only() {
        let (own, group) = (locator(OWN, 9_000), locator(OWN_GROUP, 9_001));
        // The participant's addresses count for endpoints that name none (RTPS 2.5 §8.5.3.2).
        check((&[], &[]), &[locator(OWN, 7411)], Some(locator([239, 255, 0, 1], 7401)));
        check((&[own], &[]), &[own], None);
        check((&[], &[group]), &[], Some(group));
        check((&[own], &[group]), &[own], Some(group));
    }
}
