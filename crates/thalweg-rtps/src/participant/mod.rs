//! A participant: discovery, endpoints, routing and timers composed into one state machine without I/O.
//!
//! Whoever drives it (the runtime's I/O thread, the simulator) hands it datagrams and the time and then drains
//! [`Participant::poll_transmit`], [`Participant::poll_event`] and [`Participant::poll_timeout`].

mod announce;
#[cfg(test)]
mod announce_tests;
#[cfg(test)]
mod batch_tests;
mod builtin;
mod company;
#[cfg(test)]
mod company_tests;
mod endpoints;
mod event;
mod explanation;
mod flow;
#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod forgery_tests;
#[cfg(test)]
mod hostile_tests;
mod household;
#[cfg(test)]
mod household_tests;
mod inbound;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod lease_tests;
#[cfg(test)]
mod limit_tests;
mod matching;
mod neighbours;
mod origin;
#[cfg(test)]
mod path_tests;
mod receive;
#[cfg(test)]
mod sample_tests;
mod schedule;
#[cfg(test)]
mod service_tests;
mod services;
#[cfg(test)]
mod stranger_tests;
mod strangers;
#[cfg(test)]
mod tests;
mod transmit;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use company::IgnoredParticipant;
pub use endpoints::{ReaderConfig, WriterConfig};
pub use event::{Event, LostReason};
pub use explanation::ParticipantExplanation;
pub use household::{Household, NewsFlag};
pub use services::{BuiltinService, ServiceBounds, ServicePeers, ServiceRefusal};

use crate::discovery::challenge::Secret;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::groups::Groups;
use crate::discovery::strangers::Strangers;
use crate::discovery::{Database, DiscoveryLimits, Known, KnownParticipant, LocalAddresses, Reach};
use crate::flow_control::FlowControllers;
use crate::history::PayloadKind;
use crate::qos::TrafficClass;
use crate::reader::ReassemblyBudget;
use crate::rng::Rng;
use crate::shared::{Rank, Ranked};
use crate::time::{EpochOffset, Instant, Timestamp};
use crate::types::{EntityId, GuidPrefix, KeyHash};
use announce::Announcer;
use company::Company;
use endpoints::Endpoints;
use household::Housemates;
use inbound::Inbound;
use neighbours::Neighbours;
use schedule::Schedule;

/// Computes the instance of a serialized sample or key (with encapsulation header); `None` when it is malformed.
pub type KeyOf = Arc<dyn Fn(&[u8], PayloadKind) -> Option<KeyHash> + Send + Sync>;

/// How a reader of a keyed topic tells the instances of its samples. What cannot be told otherwise is taken from the hash that
/// the writer may have sent along.
#[derive(Clone, Default)]
pub enum KeySource {
    /// From that hash alone.
    #[default]
    Wire,
    /// By a function that the participant calls for each sample: it must be quick, pure and free of panics, since everything
    /// else of the participant waits for it.
    Function(KeyOf),
    /// By the driver, which asks the reader what to compute ([`Reader::poll_keys`](crate::reader::Reader::poll_keys)) after
    /// [`Event::KeysDue`] and may take its time: only the samples of the same writer to this reader wait.
    Driver,
}

/// What a participant is made of.
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// Domain, 0 to 232 with the standard port mapping.
    pub domain_id: u32,
    /// Domain tag: participants with another tag are strangers (DDS-Security 1.1 §7.3.9, RTPS 2.5 §9.6.3.2).
    pub domain_tag: String,
    /// Must differ from that of every other participant that ever lived in the domain.
    pub prefix: GuidPrefix,
    /// Seed of jitter, and of the numbers by which others prove their address: it must come from the system's entropy, and nobody
    /// else may learn it.
    pub seed: u64,
    /// Name shown to people.
    pub entity_name: String,
    /// USER_DATA of the participant.
    pub user_data: Vec<u8>,
    /// Communication groups; none means the default group, unless USER_DATA names some.
    pub groups: Groups,
    /// Properties announced to peers.
    pub properties: Vec<(String, String)>,
    /// How long peers keep us after our last sign of life. Default 20 s; announcements repeat after a quarter of it.
    pub lease_duration: Duration,
    /// Addresses of this participant.
    pub addresses: LocalAddresses,
    /// Receive buffer of the user-data socket, announced so that writers size their windows by it.
    pub receive_buffer_bytes: u32,
    /// Names this host: equal for participants that can reach each other by loopback.
    pub host: [u8; 16],
    /// Built-in topics of the driver's own. Default none.
    pub services: Vec<BuiltinService>,
    /// Bounds on what peers can make us remember.
    pub limits: DiscoveryLimits,
    /// Memory that unfinished large samples may take together. Default 1.25 GiB, of which one remote
    /// writer may take seven eighths: room for one sample of 1 GiB.
    pub reassembly_bytes_max: usize,
    /// Where the counts of HEARTBEATs, and of user-defined readers' ACKNACKs and NACK_FRAGs, begin. Default 1; tests begin shortly before
    /// the end of the numbers.
    pub first_count: u32,
    /// The participants of its process. Default: it is alone there.
    pub household: Household,
}

impl ParticipantConfig {
    /// The defaults around what must be given.
    pub fn new(domain_id: u32, prefix: GuidPrefix, addresses: LocalAddresses) -> ParticipantConfig {
        ParticipantConfig {
            domain_id,
            domain_tag: String::new(),
            prefix,
            seed: 0,
            entity_name: String::new(),
            user_data: Vec::new(),
            groups: Groups::default(),
            properties: Vec::new(),
            lease_duration: Duration::from_secs(20),
            addresses,
            receive_buffer_bytes: 212_992,
            host: [0; 16],
            services: Vec::new(),
            limits: DiscoveryLimits::default(),
            reassembly_bytes_max: (1 << 30) + (1 << 28),
            first_count: 1,
            household: Household::default(),
        }
    }
}

/// Numbers that tell what a participant refused or ignored; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParticipantCounters {
    /// Datagrams handled.
    pub datagrams: u64,
    /// Datagrams or submessages that are not RTPS or break off.
    pub malformed: u64,
    /// Discovery data that could not be read or must not be used.
    pub unusable_announcements: u64,
    /// Announcements beyond [`DiscoveryLimits`], and samples of services beyond their bounds.
    pub over_limit: u64,
    /// Of these, announcements of participants.
    pub participants_over_limit: u64,
    /// Of these, announcements of endpoints.
    pub endpoints_over_limit: u64,
    /// Announcements of participants that are ignored because of their communication groups.
    pub other_groups: u64,
    /// Datagrams or submessages in the name of a known participant that came from an address which is not its own.
    pub foreign_source: u64,
    /// Samples of keyed topics whose key cannot be told.
    pub keyless: u64,
    /// Participants that were heard of, have not proved their address and had to make room for others.
    pub strangers_evicted: u64,
    /// Announcements of participants that cannot prove their address: they have no reader of endpoint discovery.
    pub unprovable: u64,
    /// Answers in the name of participants that have not proved their address which were not what was asked for.
    pub wrong_proofs: u64,
    /// Addresses of endpoints that are not used because they have not answered.
    pub unproved_locators: u64,
}

/// Memory that unfinished samples of discovery may take together.
const BUILTIN_REASSEMBLY_BYTES_MAX: usize = 16 << 20;

/// One participant of a domain.
pub struct Participant {
    config: ParticipantConfig,
    database: Database,
    strangers: Strangers,
    secret: Secret,
    endpoints: Endpoints,
    announcer: Announcer,
    neighbours: Neighbours,
    schedule: Schedule,
    flow_controllers: FlowControllers,
    ignored: BTreeSet<GuidPrefix>,
    company: Company,
    housemates: Housemates,
    events: VecDeque<Event>,
    budget: ReassemblyBudget,
    inbound: Inbound,
    /// Readers that a submessage concerns; empty between calls, kept for its memory.
    concerned: Vec<EntityId>,
    counters: ParticipantCounters,
    traffic_class: TrafficClass,
    /// The wall clock, where somebody told it.
    epoch: Option<EpochOffset>,
}

impl Ranked for Participant {
    const RANK: Rank = Rank::Participant;
}

impl Participant {
    /// A participant that announces itself from now on.
    pub fn new(now: Instant, config: ParticipantConfig) -> Participant {
        let secret = Secret::new(config.seed);
        let mut rng = Rng::new(secret.hash("jitter"));
        let budget = ReassemblyBudget::new(config.reassembly_bytes_max);
        let builtin_budget = ReassemblyBudget::new(config.reassembly_bytes_max.min(BUILTIN_REASSEMBLY_BYTES_MAX));
        let mut participant = Participant {
            database: Database::new(config.limits),
            strangers: Strangers::default(),
            secret,
            endpoints: Endpoints::new(config.prefix, secret, &config.services, &builtin_budget, config.first_count),
            announcer: Announcer::new(now, config.lease_duration, &mut rng),
            neighbours: Neighbours::default(),
            schedule: Schedule::default(),
            flow_controllers: FlowControllers::new(now),
            ignored: BTreeSet::new(),
            company: Company::default(),
            housemates: Housemates::join(
                config.household.clone(),
                config.prefix,
                (config.domain_id, config.domain_tag.clone()),
            ),
            events: VecDeque::new(),
            budget,
            inbound: Inbound::new(),
            concerned: Vec::new(),
            counters: ParticipantCounters::default(),
            traffic_class: TrafficClass::DEFAULT,
            epoch: None,
            config,
        };
        participant.describe_self();
        participant.look_around();
        participant
    }

    /// Files our own addresses, so that writers and readers of this participant find each other like any others.
    fn describe_self(&mut self) {
        let data = self.own_data();
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
        self.push_event(Event::AddressesChosen(self.config.prefix));
    }

    /// First half of the GUIDs of everything in this participant.
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.config.prefix
    }

    /// What this participant was made of.
    pub fn config(&self) -> &ParticipantConfig {
        &self.config
    }

    /// Numbers that tell what was refused or ignored.
    pub fn counters(&self) -> ParticipantCounters {
        self.counters
    }

    /// Bytes that unfinished large samples take now.
    pub fn reassembly_bytes(&self) -> usize {
        self.budget.used()
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

    /// Never again takes notice of this participant (DDS 1.4 §2.2.2.2.1.14).
    pub fn ignore_participant(&mut self, now: Instant, prefix: GuidPrefix) {
        self.ignored.insert(prefix);
        self.company.forget(prefix);
        self.strangers.remove_all(prefix);
        self.remove_participant(now, prefix, LostReason::Ignored);
    }

    /// Takes note of the wall clock: it stamps what is announced from now on, and tells how old samples of writers with a
    /// LIFESPAN are. Call it now and then, the clock may step. Until the first call announcements bear no time, and a sample's
    /// life begins when it arrives.
    pub fn set_wall_clock(&mut self, now: Instant, wall_clock: Timestamp) {
        self.epoch = Some(EpochOffset::new(now, wall_clock));
    }

    /// Wall-clock time as far as it is known.
    fn timestamp(&self, now: Instant) -> Option<Timestamp> {
        self.epoch.map(|epoch| epoch.timestamp(now))
    }

    /// The interfaces have changed: uses and announces the new addresses.
    pub fn set_addresses(&mut self, now: Instant, addresses: LocalAddresses) {
        self.config.addresses = addresses;
        self.describe_self();
        self.look_around();
        self.announcer.announce_soon(now);
        // Others are not necessarily where we were configured to look for them.
        let others = self.database.participants.keys().filter(|prefix| **prefix != self.config.prefix);
        others.for_each(|prefix| self.announcer.greet(*prefix));
    }

    /// Tells all peers that everything in here is gone. Drain [`Participant::poll_transmit`] afterwards.
    pub fn shutdown(&mut self, now: Instant) {
        for writer in self.endpoints.user_writers() {
            self.delete_writer(now, writer);
        }
        for reader in self.endpoints.user_readers() {
            self.delete_reader(now, reader);
        }
        self.announcer.shut_down();
    }

    /// Does what is due at `now`: heartbeats, requests, announcements, leases.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(entity) = self.schedule.pop_due(now) {
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
            }
            self.schedule.make_control_ready(entity);
        }
        if self.announcer.is_message_due(now) {
            self.assert_liveliness(now);
        }
        self.drop_expired(now);
        self.look_at_strangers(now);
        if self.neighbours.are_due(now) {
            self.look_around();
        }
    }

    /// An application thread changed this endpoint: it has output, or a deadline at `at`.
    pub fn rearm(&mut self, entity: EntityId, at: Instant) {
        self.schedule.make_ready(entity);
        self.schedule.arm(entity, at);
    }

    /// What the datagrams that the last [`Participant::poll_transmit`] appended are to be marked with.
    pub fn traffic_class(&self) -> TrafficClass {
        self.traffic_class
    }

    /// The oldest event that was not fetched yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Participant::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Instant {
        let others = [
            self.schedule.next_due(),
            self.schedule.lease_check(),
            self.strangers.next_due(),
            self.neighbours.next_due(),
            self.flow_controllers.next_due(),
        ];
        let first = |due: Instant, other: Option<Instant>| other.map_or(due, |other| due.min(other));
        let announce_at = if self.strangers.has_queued() { Instant::ZERO } else { self.announcer.next_due() };
        others.into_iter().fold(announce_at, first)
    }
}
