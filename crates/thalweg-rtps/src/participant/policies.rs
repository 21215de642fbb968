//! What local endpoints announce of themselves, and changes of their policies.

use std::sync::Arc;
use std::time::Duration;

use super::Participant;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::history::ChangeKind;
use crate::qos::{QosError, ReaderQos, TrafficClass, WriterQos};
use crate::time::Instant;
use crate::types::{EntityId, Guid};

impl Participant {
    /// Changes the policies of a local writer and announces them; whatever matches no longer is unmatched, and the reverse (DDS 1.4
    /// §2.2.2.1.2.1). A history that outlives the writer is kept with the new ones: under another PARTITION the next writer there goes on
    /// with it. Nothing happens for a writer that does not exist.
    ///
    /// # Errors
    /// As [`Participant::check_writer_qos`].
    pub fn set_writer_qos(&mut self, now: Instant, entity: EntityId, qos: Arc<WriterQos>) -> Result<(), QosError> {
        self.check_writer_qos(entity, &qos)?;
        self.lasting.note_change(entity, &qos);
        let Some(local) = self.endpoints.writer_mut(entity) else { return Ok(()) };
        local.qos = Arc::clone(&qos);
        let armed = {
            let mut writer = local.shared.lock();
            writer.set_qos(now, Arc::clone(&qos));
            writer.newly_armed()
        };
        if let Some(at) = armed {
            self.order.schedule.arm(entity, at);
        }
        self.order.schedule.set_priority(entity, qos.transport_priority);
        self.endpoints.set_traffic_class(entity, TrafficClass::of(qos.transport_priority));
        self.endpoints.latency = None;
        self.renew_publication(now, entity, |data| PublicationData { qos, ..data });
        Ok(())
    }

    /// Whether the policies of a local writer may become these.
    ///
    /// # Errors
    /// As [`WriterQos::check_change`]; also a PARTITION in which the participant keeps another history, for a writer whose history
    /// outlives it.
    pub fn check_writer_qos(&self, entity: EntityId, qos: &WriterQos) -> Result<(), QosError> {
        let Some(local) = self.endpoints.local_writer(entity) else { return Ok(()) };
        local.qos.check_change(qos)?;
        self.lasting.check_change(entity, qos)
    }

    /// The least LATENCY_BUDGET of the application's endpoints; zero without any, and with a reliable writer, whose next samples may wait
    /// for acknowledgements, or a [prompt](crate::reader::Reader::set_prompt) reader. What arrives may wait for part of it.
    pub fn latency_budget(&mut self) -> Duration {
        if let Some(known) = self.endpoints.latency {
            return known;
        }
        let endpoints = &self.endpoints;
        let writers = endpoints.writers.iter().filter(|(entity, _)| !entity.is_builtin());
        let readers = endpoints.readers.iter().filter(|(entity, _)| !entity.is_builtin());
        let of_writers = writers.map(|(_, writer)| match writer.qos.reliability.is_reliable() {
            true => Duration::ZERO,
            false => writer.qos.timing.latency_budget,
        });
        let of_readers = readers.map(|(_, reader)| {
            let reader = reader.shared.lock();
            if reader.is_prompt() { Duration::ZERO } else { reader.qos().timing.latency_budget }
        });
        let mut least = None;
        for budget in of_writers.chain(of_readers) {
            least = Some(least.unwrap_or(budget).min(budget));
            if budget.is_zero() {
                break;
            }
        }
        let least = least.unwrap_or_default();
        self.endpoints.latency = Some(least);
        least
    }

    /// Announces a local writer with these data, in place of those announced before.
    pub(super) fn announce_publication(&mut self, now: Instant, data: PublicationData) {
        let (guid, mut bytes) = (data.guid, Vec::new());
        data.encode(&mut bytes);
        self.announce_endpoint(now, EntityId::PUBLICATIONS_WRITER, ChangeKind::Write, guid, bytes);
        self.database.publications.insert(data);
    }

    /// As [`Participant::announce_publication`] for a local reader.
    pub(super) fn announce_subscription(&mut self, now: Instant, data: SubscriptionData) {
        let (guid, mut bytes) = (data.guid, Vec::new());
        data.encode(&mut bytes);
        self.announce_endpoint(now, EntityId::SUBSCRIPTIONS_WRITER, ChangeKind::Write, guid, bytes);
        self.database.subscriptions.insert(data);
    }

    /// Announces a local writer with other data and matches it again: the one way in which what was announced of a writer changes.
    pub(super) fn renew_publication(
        &mut self,
        now: Instant,
        writer: EntityId,
        change: impl FnOnce(PublicationData) -> PublicationData,
    ) {
        let guid = Guid::new(self.config.prefix, writer);
        let Some(known) = self.database.publications.get(guid) else { return };
        let data = change(PublicationData::clone(&known.data));
        self.announce_publication(now, data);
        self.match_local_writer(now, writer);
        self.match_publication(now, guid);
    }

    /// Changes the policies of a local reader, as [`Participant::set_writer_qos`] does for a writer.
    ///
    /// # Errors
    /// As [`ReaderQos::check_change`].
    pub fn set_reader_qos(&mut self, now: Instant, entity: EntityId, qos: Arc<ReaderQos>) -> Result<(), QosError> {
        let Some(shared) = self.endpoints.reader(entity) else { return Ok(()) };
        let armed = {
            let mut reader = shared.lock();
            reader.qos().check_change(&qos)?;
            reader.set_qos(now, Arc::clone(&qos));
            reader.newly_armed()
        };
        self.endpoints.latency = None;
        if let Some(at) = armed {
            self.order.schedule.arm(entity, at);
        }
        let guid = Guid::new(self.config.prefix, entity);
        // A reader of a built-in topic is announced to nobody.
        let Some(known) = self.database.subscriptions.get(guid) else { return Ok(()) };
        let data = SubscriptionData { qos, ..SubscriptionData::clone(&known.data) };
        self.announce_subscription(now, data);
        self.match_local_reader(now, entity);
        self.match_subscription(now, guid);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::*;
    use super::*;
    use crate::participant::{KeySource, ReaderConfig, WriterConfig};
    use crate::qos::{History, Reliability};
    use crate::types::Keyed;
    use crate::writer::WriterOptions;

    #[test]
    fn the_least_budget_of_all_endpoints_holds_and_none_with_a_reliable_writer() {
        let mut net = Net::new(1);
        let (now, participant) = (net.now, &mut net.nodes[0].participant);
        let names = || ("topic".to_owned(), "type".to_owned());
        let reading = |millis: u64| {
            let mut qos = reliable_reader(History::KeepAll);
            qos.timing.latency_budget = Duration::from_millis(millis);
            Arc::new(qos)
        };
        let reader = |millis: u64| {
            let ((topic_name, type_name), qos) = (names(), reading(millis));
            ReaderConfig { topic_name, type_name, keyed: Keyed::No, qos, keys: KeySource::Wire, filter: None }
        };
        let writer = |reliability: Reliability| {
            let (topic_name, type_name) = names();
            let mut qos = WriterQos { reliability, ..WriterQos::default() };
            qos.timing.latency_budget = Duration::from_millis(7);
            let options = WriterOptions::default();
            WriterConfig { topic_name, type_name, keyed: Keyed::No, qos: qos.into(), options }
        };
        assert_eq!(participant.latency_budget(), Duration::ZERO);
        let slow = participant.create_reader(now, reader(20)).expect("a legal QoS");
        assert_eq!(participant.latency_budget().as_millis(), 20);
        let entity = slow.lock().guid().entity;
        participant.set_reader_qos(now, entity, reading(30)).expect("it may change");
        assert_eq!(participant.latency_budget().as_millis(), 30);
        participant.create_writer(now, writer(Reliability::BestEffort)).expect("a legal QoS");
        assert_eq!(participant.latency_budget().as_millis(), 7);
        let reliable = participant.create_writer(now, writer(Reliability::RELIABLE)).expect("a legal QoS");
        assert_eq!(participant.latency_budget(), Duration::ZERO);
        let entity = reliable.lock().guid().entity;
        participant.delete_writer(now, entity);
        assert_eq!(participant.latency_budget().as_millis(), 7);
    }

    #[test]
    fn nothing_may_wait_with_a_prompt_reader_whatever_delay_that_permits() {
        let mut net = Net::new(1);
        let (now, participant) = (net.now, &mut net.nodes[0].participant);
        for (is_prompt, budget_ms) in [(false, 20), (true, 0)] {
            let (topic_name, type_name) = ("topic".to_owned(), "type".to_owned());
            let mut qos = reliable_reader(History::KeepAll);
            qos.timing.latency_budget = Duration::from_millis(20);
            let (qos, keys, filter) = (Arc::new(qos), KeySource::Wire, None);
            let config = ReaderConfig { topic_name, type_name, keyed: Keyed::No, qos, keys, filter };
            let reader = participant.create_reader(now, config).expect("a legal QoS");
            if is_prompt {
                reader.lock().set_prompt();
            }
            assert_eq!(participant.latency_budget().as_millis(), budget_ms);
        }
    }
}
