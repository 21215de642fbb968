//! A participant: discovery, endpoints, routing and timers composed into one state machine without I/O.
//!
//! Whoever drives it (the runtime's I/O thread, the simulator) hands it datagrams and the time and then drains
//! [`Participant::poll_transmit`], [`Participant::poll_event`] and [`Participant::poll_timeout`].

mod announce;
mod builtin;
mod endpoints;
mod event;
#[cfg(test)]
mod hostile_tests;
mod matching;
#[cfg(test)]
mod path_tests;
mod receive;
mod schedule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use endpoints::{ReaderConfig, WriterConfig};
pub use event::{Event, LostReason};

use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::{Database, DiscoveryLimits, Known, KnownParticipant, LocalAddresses, Reach};
use crate::history::PayloadKind;
use crate::outbox::Outbox;
use crate::qos::TrafficClass;
use crate::reader::ReassemblyBudget;
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::{GuidPrefix, KeyHash};
use announce::Announcer;
use endpoints::Endpoints;
use schedule::Schedule;

/// Computes the instance of a serialized sample or key (with encapsulation header); `None` when it is malformed.
pub type KeyOf = Arc<dyn Fn(&[u8], PayloadKind) -> Option<KeyHash> + Send + Sync>;

/// What a participant is made of.
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// Domain, 0 to 232 with the standard port mapping.
    pub domain_id: u32,
    /// Domain tag: participants with another tag are strangers (DDS-Security 1.1 §7.3.9, RTPS 2.5 §9.6.3.2).
    pub domain_tag: String,
    /// Must differ from that of every other participant that ever lived in the domain.
    pub prefix: GuidPrefix,
    /// Seed of jitter.
    pub seed: u64,
    /// Name shown to people.
    pub entity_name: String,
    /// USER_DATA of the participant.
    pub user_data: Vec<u8>,
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
    /// Bounds on what peers can make us remember.
    pub limits: DiscoveryLimits,
    /// Memory that unfinished large samples may take together. Default 1.25 GiB, of which one remote
    /// writer may take seven eighths: room for one sample of 1 GiB.
    pub reassembly_bytes_max: usize,
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
            properties: Vec::new(),
            lease_duration: Duration::from_secs(20),
            addresses,
            receive_buffer_bytes: 212_992,
            host: [0; 16],
            limits: DiscoveryLimits::default(),
            reassembly_bytes_max: (1 << 30) + (1 << 28),
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
    /// Participants or endpoints beyond [`DiscoveryLimits`].
    pub over_limit: u64,
    /// Samples of keyed topics whose key cannot be told.
    pub keyless: u64,
}

/// One participant of a domain.
pub struct Participant {
    config: ParticipantConfig,
    database: Database,
    endpoints: Endpoints,
    announcer: Announcer,
    schedule: Schedule,
    ignored: BTreeSet<GuidPrefix>,
    events: VecDeque<Event>,
    budget: ReassemblyBudget,
    counters: ParticipantCounters,
    traffic_class: TrafficClass,
}

impl Participant {
    /// A participant that announces itself from now on.
    pub fn new(now: Instant, config: ParticipantConfig) -> Participant {
        let mut rng = Rng::new(config.seed);
        let budget = ReassemblyBudget::new(config.reassembly_bytes_max);
        let mut participant = Participant {
            database: Database::new(config.limits),
            endpoints: Endpoints::new(config.prefix, &budget),
            announcer: Announcer::new(now, config.lease_duration, &mut rng),
            schedule: Schedule::default(),
            ignored: BTreeSet::new(),
            events: VecDeque::new(),
            budget,
            counters: ParticipantCounters::default(),
            traffic_class: TrafficClass::DEFAULT,
            config,
        };
        participant.describe_self();
        participant
    }

    /// Files our own addresses, so that writers and readers of this participant find each other like any others.
    fn describe_self(&mut self) {
        let data = self.own_data();
        self.announcer.describe(&data);
        let local = &self.config.addresses;
        let source = local.default_unicast.first().and_then(|locator| locator.socket_address());
        let reach = match source {
            Some(source) => Reach::new(local, self.config.host, &data, source),
            None => Reach::default(),
        };
        let known = KnownParticipant { data, reach, lease_until: Instant::NEVER };
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
        self.remove_participant(now, prefix, LostReason::Ignored);
    }

    /// The interfaces have changed: uses and announces the new addresses.
    pub fn set_addresses(&mut self, now: Instant, addresses: LocalAddresses) {
        self.config.addresses = addresses;
        self.describe_self();
        self.announcer.announce_soon(now);
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
                reader.lock().disarm();
            }
            self.schedule.make_ready(entity);
        }
        if self.announcer.is_message_due(now) {
            self.assert_liveliness(now);
        }
        self.drop_expired(now);
    }

    /// An application thread changed this endpoint: it has output, or a deadline at `at`.
    pub fn rearm(&mut self, entity: crate::types::EntityId, at: Instant) {
        self.schedule.make_ready(entity);
        self.schedule.arm(entity, at);
    }

    /// Appends datagrams, all of one [`Participant::traffic_class`], to the empty `outbox`. True when more is waiting: send,
    /// clear and call again.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        self.announcer.poll_transmit(now, &self.config, &self.database, outbox);
        self.traffic_class = TrafficClass::DEFAULT;
        while let Some(entity) = self.schedule.pop_ready() {
            let class = self.endpoints.traffic_class(entity);
            if outbox.is_empty() {
                self.traffic_class = class;
            } else if class != self.traffic_class {
                self.schedule.make_ready(entity);
                break;
            }
            let more = if let Some(writer) = self.endpoints.writer(entity) {
                let mut writer = writer.lock();
                let more = !writer.leave_to_holder() && writer.poll_transmit(now, outbox);
                if let Some(at) = writer.newly_armed() {
                    self.schedule.arm(entity, at);
                }
                more
            } else if let Some(reader) = self.endpoints.reader(entity) {
                let mut reader = reader.lock();
                reader.poll_transmit(now, outbox);
                if reader.was_refilled() {
                    self.events.push_back(Event::DataAvailable { reader: entity });
                }
                if let Some(at) = reader.newly_armed() {
                    self.schedule.arm(entity, at);
                }
                false
            } else {
                false
            };
            if more {
                self.schedule.make_ready(entity);
            }
            if outbox.len() >= OUTBOX_DATAGRAMS_MAX {
                break;
            }
        }
        self.schedule.has_ready()
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
    pub fn poll_timeout(&self) -> Option<Instant> {
        [Some(self.announcer.next_due()), self.schedule.next_due(), self.schedule.lease_check()]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Datagrams of several endpoints collected before they are sent.
const OUTBOX_DATAGRAMS_MAX: usize = 64;
