//! A participant: discovery, endpoints, routing and timers composed into one state machine without I/O.
//!
//! Its driver (the runtime's I/O thread, or the simulator) hands it datagrams and the time, and then drains
//! [`Participant::poll_transmit`], [`Participant::poll_event`] and [`Participant::poll_timeout`].

mod access;
mod announce;
#[cfg(test)]
mod announce_tests;
#[cfg(test)]
mod batch_tests;
mod beside;
#[cfg(test)]
mod beside_tests;
mod builtin;
mod company;
#[cfg(test)]
mod company_tests;
mod config;
mod endpoints;
mod entity_keys;
mod event;
mod explanation;
#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod forgery_tests;
mod fragments;
mod graph;
#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod hostile_tests;
mod household;
#[cfg(test)]
mod household_tests;
mod ignored;
mod inbound;
#[cfg(test)]
mod key_tests;
mod lasting;
#[cfg(test)]
mod lasting_tests;
#[cfg(test)]
mod lease_tests;
#[cfg(test)]
mod limit_tests;
mod liveliness;
#[cfg(test)]
mod liveliness_tests;
mod matching;
#[cfg(test)]
mod moved_tests;
mod neighbours;
mod origin;
mod parting;
#[cfg(test)]
mod path_tests;
mod policies;
#[cfg(test)]
mod policy_tests;
mod receive;
mod refusals;
#[cfg(test)]
mod related_tests;
mod report;
#[cfg(test)]
mod restart_tests;
#[cfg(test)]
mod sample_tests;
mod schedule;
mod send_order;
#[cfg(test)]
mod service_tests;
mod services;
#[cfg(test)]
mod stranger_tests;
mod strangers;
#[cfg(test)]
mod tests;
mod transmit;
mod types;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use company::IgnoredParticipant;
pub use config::{KeyOf, KeySource, ParticipantConfig, SampleFilter};
pub use endpoints::{Publications, ReaderConfig, WriterConfig};
pub use event::{Event, LostReason};
pub use explanation::ParticipantExplanation;
pub use graph::{BuiltinTopic, builtin_reader_qos};
pub use household::{Household, NewsFlag};
pub use lasting::{HISTORY_NAME_MAX_BYTES, HistoryRefusal, KeptHistory, LASTING_WRITERS_MAX, StoredHistory};
pub use report::ParticipantCounters;
pub use services::{BuiltinService, ServiceBounds, ServicePeers, ServiceRefusal};
pub use types::{TypeDirectory, TypeVerdict, match_by_name};

use crate::discovery::challenge::Secret;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::groups::Groups;
use crate::discovery::participant_data::ParticipantData;
use crate::discovery::strangers::Strangers;
use crate::discovery::{Database, Known, KnownParticipant, LocalAddresses, Reach};
use crate::flow_control::{FlowControllerCounters, FlowControllerError, FlowControllerSettings};
use crate::qos::TrafficClass;
use crate::reader::ReaderExplanation;
use crate::rng::Rng;
use crate::shared::{Rank, Ranked};
use crate::time::{Instant, Timestamp};
use crate::types::{EntityId, Guid, GuidPrefix};
use crate::writer::WriterExplanation;
use access::GroupAccess;
use announce::Announcer;
use company::Company;
use endpoints::Endpoints;
use graph::Graph;
use household::Housemates;
use ignored::Ignored;
use inbound::Inbound;
use lasting::LastingWriters;
use liveliness::Liveliness;
use neighbours::Neighbours;
use refusals::Refusals;
use report::Reports;
use send_order::SendOrder;

/// One participant of a domain.
pub struct Participant {
    config: ParticipantConfig,
    database: Database,
    strangers: Strangers,
    endpoints: Endpoints,
    announcer: Announcer,
    neighbours: Neighbours,
    order: SendOrder,
    company: Company,
    ignored: Ignored,
    graph: Graph,
    housemates: Housemates,
    inbound: Inbound,
    liveliness: Liveliness,
    reports: Reports,
    access: GroupAccess,
    refusals: Refusals,
    lasting: LastingWriters,
    /// Local and other endpoints of one topic whose types are not known yet.
    undecided: BTreeSet<(EntityId, Guid)>,
}

impl Ranked for Participant {
    const RANK: Rank = Rank::Participant;
}

impl Participant {
    /// A participant that announces itself from now on.
    pub fn new(now: Instant, config: ParticipantConfig) -> Participant {
        let secret = Secret::new(config.seed);
        let domain = (config.domain_id, config.domain_tag.clone());
        let liveliness = Liveliness::default();
        let member = (config.prefix, liveliness.own_assertion().clone());
        let mut participant = Participant {
            database: Database::new(config.limits),
            strangers: Strangers::new(secret),
            endpoints: Endpoints::new(&config, secret),
            announcer: Announcer::new(now, config.lease_duration, &mut Rng::new(secret.hash("jitter"))),
            neighbours: Neighbours::default(),
            order: SendOrder::new(now),
            company: Company::default(),
            ignored: Ignored::default(),
            graph: Graph::default(),
            housemates: Housemates::join(now, config.household.clone(), member, domain),
            inbound: Inbound::new(),
            liveliness,
            reports: Reports::default(),
            access: GroupAccess::default(),
            refusals: Refusals::default(),
            lasting: LastingWriters::default(),
            undecided: BTreeSet::new(),
            config,
        };
        participant.describe_self();
        participant.look_around();
        participant
    }

    /// Updates the announcement, and enters this participant into its own database, so that its writers and readers find each other
    /// like any others.
    fn describe_self(&mut self) {
        let data = self.config.announced(self.endpoints.builtin().announced());
        self.announcer.describe(&data);
        self.housemates.describe(self.announcer.announced());
        self.company.set_own(Groups::of(&data));
        let local = &self.config.addresses;
        let source = local.default_unicast.first().and_then(|locator| locator.socket_address());
        let reach = match source {
            Some(source) => Reach::new(local, self.config.host, &data, source),
            None => Reach::default(),
        };
        let known = KnownParticipant::new(data, reach);
        self.database.participants.insert(self.config.prefix, known);
        self.reports.tell(Event::AddressesChosen(self.config.prefix));
    }

    /// First half of the GUIDs of everything in this participant.
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.config.prefix
    }

    /// The configuration of this participant, with its present addresses and groups.
    pub fn config(&self) -> &ParticipantConfig {
        &self.config
    }

    /// Counts of what was handled, refused or ignored.
    pub fn counters(&self) -> ParticipantCounters {
        self.reports.counters
    }

    /// Bytes that unfinished large samples take now.
    pub fn reassembly_bytes(&self) -> usize {
        self.endpoints.reassembly_bytes()
    }

    /// The other participants of the domain.
    pub fn participants(&self) -> impl Iterator<Item = &KnownParticipant> {
        let own = self.config.prefix;
        self.database.participants.values().filter(move |known| known.data.guid_prefix != own)
    }

    /// Writers of the domain, our own included.
    pub fn publications(&self) -> impl Iterator<Item = &Known<PublicationData>> {
        self.database.publications.iter()
    }

    /// Readers of the domain, our own included.
    pub fn subscriptions(&self) -> impl Iterator<Item = &Known<SubscriptionData>> {
        self.database.subscriptions.iter()
    }

    /// Drops a participant and ignores it for ever (DDS 1.4 §2.2.2.2.1.14).
    pub fn ignore_participant(&mut self, now: Instant, prefix: GuidPrefix) {
        self.company.ban(prefix);
        self.strangers.remove_all(prefix);
        self.remove_participant(now, prefix, LostReason::Ignored);
    }

    /// Sets the wall clock, which stamps announcements and tells the age of samples whose writers have a LIFESPAN. Call it again
    /// from time to time, since the clock may step. Before the first call, announcements bear no time, and a sample's life begins
    /// when it arrives.
    pub fn set_wall_clock(&mut self, now: Instant, wall_clock: Timestamp) {
        self.endpoints.set_wall_clock(now, wall_clock);
    }

    /// The interfaces have changed: uses and announces the new addresses. The system tells of much that changes nothing for anybody, such
    /// as a renewed lease or a scan for wireless networks.
    pub fn set_addresses(&mut self, now: Instant, addresses: LocalAddresses) {
        if addresses == self.config.addresses {
            return;
        }
        self.config.addresses = addresses;
        self.describe_self();
        self.rematch_participant(now, self.config.prefix);
        self.look_around();
        self.announcer.announce_soon(now);
        // The configured addresses do not reach every known participant.
        let others = self.database.participants.keys().filter(|prefix| **prefix != self.config.prefix);
        others.for_each(|prefix| self.announcer.greet(*prefix));
        // Whoever does not acknowledge this is out of reach where it is known to be, and looked for at its other addresses.
        self.announcer.hasten_message(now);
    }

    /// Size of the receive buffers of its sockets, which it announces.
    pub fn receive_buffer_bytes(&self) -> u32 {
        self.config.receive_buffer_bytes
    }

    /// Deletes the application's endpoints and says farewell to all participants. Drain [`Participant::poll_transmit`] afterwards.
    pub fn shutdown(&mut self, now: Instant) {
        for writer in self.endpoints.user_writers() {
            self.remove_writer(now, writer);
        }
        for reader in self.endpoints.user_readers() {
            self.delete_reader(now, reader);
        }
        self.announcer.shut_down();
    }

    /// Does what is due at `now`: heartbeats, requests, announcements, leases.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(entity) = self.order.schedule.pop_due(now) {
            if let Some(writer) = self.endpoints.writer(entity) {
                let outcome = {
                    let mut writer = writer.lock();
                    writer.disarm();
                    writer.handle_timeout(now)
                };
                self.note_writer_outcome(entity, outcome);
            } else if let Some(reader) = self.endpoints.reader(entity) {
                let (outcome, news) = {
                    let mut reader = reader.lock();
                    reader.disarm();
                    (reader.handle_timeout(now), reader.take_news())
                };
                self.note_status_news(entity, news);
                self.note_reader_outcome(now, entity, outcome, None);
                self.look_at_access(now, entity);
            }
            self.order.schedule.make_control_ready(entity);
        }
        if self.announcer.is_message_due(now) {
            self.announcer.note_message(now, self.liveliness.automatic_period());
            let message = liveliness::automatic_message(self.config.prefix);
            self.write_builtin(now, EntityId::PARTICIPANT_MESSAGE_WRITER, message);
        }
        if self.liveliness.next_due().is_some_and(|due| due <= now) {
            self.check_liveliness(now);
        }
        self.drop_expired(now);
        self.look_at_strangers(now);
        if self.neighbours.are_due(now) {
            self.look_around();
        }
    }

    /// Notes that an application thread changed this endpoint: it may have output, and has a deadline at `at`.
    pub fn rearm(&mut self, entity: EntityId, at: Instant) {
        self.order.schedule.make_ready(entity);
        self.order.schedule.arm(entity, at);
    }

    /// The traffic class of the datagrams that the last [`Participant::poll_transmit`] appended.
    pub fn traffic_class(&self) -> TrafficClass {
        self.order.class
    }

    /// The oldest event that was not fetched yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.reports.poll()
    }

    /// When [`Participant::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Instant {
        let others = [
            self.order.schedule.next_due(),
            self.order.schedule.lease_check(),
            self.strangers.next_due(),
            self.neighbours.next_due(),
            self.order.controllers.next_due(),
            self.liveliness.next_due(),
        ];
        let first = |due: Instant, other: Option<Instant>| other.map_or(due, |other| due.min(other));
        let announce_at = if self.strangers.has_queued() { Instant::ZERO } else { self.announcer.next_due() };
        others.into_iter().fold(announce_at, first)
    }
    /// Gathers the neighbourhood anew and gives it to the writers, which choose destinations by it.
    fn look_around(&mut self) {
        self.neighbours.gather(&self.config.addresses.links, &self.database);
        self.endpoints.set_neighbourhood(&self.neighbours.current());
    }

    /// The participants that are ignored because of their communication groups and still announce themselves.
    pub fn ignored_participants(&self, now: Instant) -> impl Iterator<Item = &IgnoredParticipant> {
        self.company.ignored(now)
    }

    /// The communication groups of this participant; none means the default group.
    pub fn groups(&self) -> &Groups {
        self.company.own()
    }

    /// Changes the communication groups and announces them. Participants without a common group are dropped; those that have one
    /// now are discovered by their next announcement, which Thalweg's send at once.
    pub fn set_groups(&mut self, now: Instant, groups: Groups) {
        self.config.groups = groups;
        self.describe_self();
        let known = self.database.participants.values().map(|known| &known.data);
        let others = known.filter(|data| data.guid_prefix != self.config.prefix && !self.company.accepts(data));
        let left: Vec<Arc<ParticipantData>> = others.cloned().collect();
        left.iter().for_each(|data| self.avoid(now, data));
        self.announcer.announce_soon(now);
    }

    /// A flag that tells the driver, without access to this participant, whether [`Participant::handle_household`] is due.
    pub fn household_news(&self) -> NewsFlag {
        self.housemates.news()
    }

    /// Counts of what this participant refused of others.
    pub fn explain(&self) -> ParticipantExplanation {
        self.reports.explain(self.config.prefix)
    }

    /// What this participant's own writers of a topic do at `now`, and why.
    pub fn explain_writers(&self, now: Instant, topic: &str) -> Vec<WriterExplanation> {
        let own = self.database.publications.of_topic_in(topic, self.config.prefix);
        self.endpoints.explain_writers(now, topic, own)
    }

    /// What this participant's own readers of a topic received and did not hand over.
    pub fn explain_readers(&self, topic: &str) -> Vec<ReaderExplanation> {
        let own = self.database.subscriptions.of_topic_in(topic, self.config.prefix);
        self.endpoints.explain_readers(topic, own)
    }

    /// Creates a flow controller that asynchronous writers can name.
    ///
    /// # Errors
    /// When the settings would let nothing pass, the name is empty or too long, or a controller of this name exists.
    pub fn create_flow_controller(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<(), FlowControllerError> {
        self.order.controllers.create(now, name, settings)
    }

    /// Changes a flow controller; waiting writers continue under the new settings, with the present tokens.
    ///
    /// # Errors
    /// When the settings would let nothing pass or there is no such controller.
    pub fn set_flow_controller(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<(), FlowControllerError> {
        self.order.set_controller(now, name, settings)
    }

    /// Deletes a flow controller under which no writer sends.
    ///
    /// # Errors
    /// When writers use it, when it is [`BACKGROUND`](crate::qos::BACKGROUND), or when there is no such controller.
    pub fn delete_flow_controller(&mut self, name: &str) -> Result<(), FlowControllerError> {
        self.order.delete_controller(name)
    }

    /// The names of all flow controllers, sorted.
    pub fn flow_controllers(&self) -> impl Iterator<Item = &str> {
        self.order.controllers.names()
    }

    /// The settings of a flow controller.
    ///
    /// # Errors
    /// When there is no such controller.
    pub fn flow_controller_settings(&self, name: &str) -> Result<FlowControllerSettings, FlowControllerError> {
        self.order.settings(name)
    }

    /// The counters of a flow controller at `now`.
    ///
    /// # Errors
    /// When there is no such controller.
    pub fn flow_controller_counters(
        &self,
        now: Instant,
        name: &str,
    ) -> Result<FlowControllerCounters, FlowControllerError> {
        let unsent = |writer| self.endpoints.writer(writer).map_or(0, |writer| writer.lock().unsent_bytes());
        self.order.counters(now, name, unsent)
    }
}
