//! One simulated process: a participant as in production, its clock, its sockets and its processor.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::discovery::groups::Groups;
use thalweg_rtps::participant::{Household, Participant, ParticipantConfig};
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, GuidPrefix, Locator, VendorId};
use thalweg_rtps::writer::PublisherGroup;
use thalweg_rtps::writer::neighbourhood::WIRED_BYTES_PER_SECOND;
use thalweg_rtps::writer::{Link, Medium, Writer};

use crate::application::stamp;
use crate::clock::HostClock;
use crate::inbox::Inbox;
use crate::network::{GroupFilter, Network};
use crate::plan::Plan;
use crate::record::ProcessRecord;
use crate::store::Commit;

/// The domain of all simulated participants.
const DOMAIN: u32 = 0;
/// Port of discovery's group.
pub(crate) const DISCOVERY_PORT: u16 = 7400;
/// Port of user data's group.
const USER_PORT: u16 = 7401;

/// A process and what surrounds its participant.
pub(crate) struct Process {
    pub(crate) host: usize,
    pub(crate) clock: HostClock,
    household: Household,
    /// There between start and end.
    pub(crate) participant: Option<Participant>,
    /// The publisher of its writers and the subscriber of its readers, where their PRESENTATION spans them.
    group: Option<(PublisherGroup, EntityId)>,
    pub(crate) started: bool,
    pub(crate) inbox: Inbox,
    /// Time of the world at which the participant wants its timeout; earlier plans for it are void.
    pub(crate) timer_at: Instant,
    /// How often it asked for a timeout at one and the same time.
    pub(crate) timeouts_at_once: (Instant, u32),
    pub(crate) source: SocketAddr,
    /// It does not run before.
    pub(crate) paused_until: Instant,
    /// Its writers, counted over all topics.
    pub(crate) writers: Vec<usize>,
    /// The writers that its store keeps, by topic, and what it is committing of them.
    pub(crate) stored_writers: BTreeMap<usize, Shared<Writer>>,
    pub(crate) committing: Vec<Commit>,
    pub(crate) record: ProcessRecord,
}

impl Process {
    pub(crate) fn new(plan: &Plan, number: usize, household: Household) -> Process {
        let clock = plan.hosts[plan.processes[number].host];
        let source = SocketAddr::new(plan.family.address_of(plan.processes[number].host), user_port(plan, number));
        let writers = plan.writers().enumerate().filter(|(_, (_, writer))| writer.process == number);
        let writers = writers.map(|(number, _)| number);
        let plan = &plan.processes[number];
        let buffer = plan.receive_buffer_bytes as usize;
        let record = ProcessRecord { prefix: prefix(number), ..ProcessRecord::default() };
        Process {
            host: plan.host,
            clock,
            household,
            participant: None,
            group: None,
            started: false,
            inbox: Inbox::new(buffer, plan.datagram_cost),
            timer_at: Instant::NEVER,
            timeouts_at_once: (Instant::ZERO, 0),
            source,
            paused_until: Instant::ZERO,
            writers: writers.collect(),
            stored_writers: BTreeMap::new(),
            committing: Vec::new(),
            record,
        }
    }

    /// The publisher of all its writers and the subscriber of all its readers.
    pub(crate) fn group(&mut self) -> Option<(PublisherGroup, EntityId)> {
        let participant = self.participant.as_mut()?;
        let make = || (participant.create_publisher(), participant.create_subscriber());
        Some(self.group.get_or_insert_with(make).clone())
    }

    /// Starts the participant and opens its sockets.
    pub(crate) fn start(&mut self, now: Instant, plan: &Plan, number: usize, network: &mut Network) {
        self.source.set_ip(network.address_of(self.host));
        let metatraffic = self.metatraffic();
        let group = |port| SocketAddr::new(plan.family.group(), port);
        for address in [metatraffic, self.source, group(DISCOVERY_PORT), group(USER_PORT)] {
            network.listen(number, self.host, address);
        }
        let process = &plan.processes[number];
        let config = ParticipantConfig {
            seed: plan.seed.wrapping_mul(1_000).wrapping_add(number as u64),
            lease_duration: process.lease_duration,
            receive_buffer_bytes: process.receive_buffer_bytes,
            first_count: process.first_count,
            host: host_id(self.host),
            household: self.household.clone(),
            groups: Groups::new(process.groups.iter().cloned()).unwrap_or_default(),
            ..ParticipantConfig::new(DOMAIN, self.record.prefix, self.addresses(plan, network))
        };
        self.started = true;
        let now = self.clock.local(now);
        let mut participant = Participant::new(now, config);
        if plan.has_wall_clocks() {
            participant.set_wall_clock(now, stamp(now));
        }
        self.participant = Some(participant);
    }

    /// The host has moved: the participant uses and announces its new address.
    pub(crate) fn change_addresses(&mut self, now: Instant, plan: &Plan, network: &Network) {
        let addresses = self.addresses(plan, network);
        let now = self.local(now);
        if let Some(participant) = &mut self.participant {
            participant.set_addresses(now, addresses);
        }
    }

    fn metatraffic(&self) -> SocketAddr {
        SocketAddr::new(self.source.ip(), self.source.port() - 1)
    }

    fn addresses(&self, plan: &Plan, network: &Network) -> LocalAddresses {
        let both = |address: SocketAddr| {
            let loopback = SocketAddr::new(plan.family.loopback(), address.port());
            vec![Locator::from(address), Locator::from(loopback)]
        };
        let group = |port| Locator::from(SocketAddr::new(plan.family.group(), port));
        let mut announce_to = vec![group(DISCOVERY_PORT)];
        if plan.group_filter == GroupFilter::Everything {
            let others = plan.processes.iter().enumerate().filter(|(_, other)| other.host != self.host);
            announce_to.extend(others.map(|(number, other)| {
                let port = user_port(plan, number) - 1;
                Locator::from(SocketAddr::new(network.address_of(other.host), port))
            }));
        }
        LocalAddresses {
            metatraffic_unicast: both(self.metatraffic()),
            metatraffic_multicast: vec![group(DISCOVERY_PORT)],
            default_unicast: both(self.source),
            default_multicast: vec![group(USER_PORT)],
            interfaces: vec![(self.source.ip(), 16), (plan.family.loopback(), 8)],
            links: vec![self.link(plan)],
            announce_to,
            link_mtus: Vec::new(),
        }
    }

    /// The one network of the world; within a host nothing is slow enough to matter.
    fn link(&self, plan: &Plan) -> Link {
        Link {
            name: "net".to_string(),
            addresses: vec![(self.source.ip(), 16)],
            medium: Medium::Wired,
            multicast: plan.group_filter != GroupFilter::Everything,
            bytes_per_second: WIRED_BYTES_PER_SECOND,
        }
    }

    /// What the process's clock shows.
    pub(crate) fn local(&self, now: Instant) -> Instant {
        self.clock.local(now)
    }

    /// When the participant wants its next timeout, in the world's time; not before `now`.
    pub(crate) fn next_timeout(&self, now: Instant) -> Instant {
        let wanted = self.participant.as_ref().map(Participant::poll_timeout);
        wanted.map_or(Instant::NEVER, |local| self.clock.world(local).max(now))
    }
}

/// The well-known user port of a process: its index among the processes of its host decides (RTPS 2.5 §9.6.2.3), or that of
/// the process that it succeeds.
pub(crate) fn user_port(plan: &Plan, number: usize) -> u16 {
    if let Some(before) = plan.processes[number].succeeds {
        return user_port(plan, before);
    }
    let host = plan.processes[number].host;
    let others = plan.processes[..number].iter().filter(|other| other.host == host && other.succeeds.is_none());
    let index = others.count();
    7411 + 2 * u16::try_from(index).unwrap_or(0)
}

pub(crate) fn prefix(number: usize) -> GuidPrefix {
    let mut bytes = [0; 12];
    bytes[..2].copy_from_slice(&VendorId::THALWEG.0);
    bytes[8..].copy_from_slice(&u32::try_from(number + 1).unwrap_or(u32::MAX).to_be_bytes());
    GuidPrefix(bytes)
}

fn host_id(host: usize) -> [u8; 16] {
    let mut id = [0xaa; 16];
    id[..8].copy_from_slice(&(host as u64).to_be_bytes());
    id
}
