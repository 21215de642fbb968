//! Participants of one process that join, leave, hang and change their groups and endpoints while datagrams are lost, with others outside
//! the process: matches are reported once, what waits to be told stays within its bound, and in the end each knows what there is.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::discovery::groups::Groups;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::{
    Event, Household, KeySource, Participant, ParticipantConfig, ReaderConfig, WriterConfig,
};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, Keyed, Locator};
use thalweg_rtps::wire::write::{HEADER_LEN, PAD};
use thalweg_rtps::writer::WriterOptions;

const RESIDENTS_MAX: usize = 5;
const ENDPOINTS_MAX: usize = 6;
const STEPS_MAX: usize = 48;
/// Datagrams that a socket keeps while its thread hangs.
const SOCKET_MAX: usize = 64;
/// Rounds of messages without a pause: participants that need more have started to talk to themselves.
const ROUNDS_MAX: usize = 2_000;
const LEASES: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(10)];
/// Time within which everybody has learned what there is: some of the longest leases.
const REST: Duration = Duration::from_secs(40);
const GROUP: [u8; 4] = [239, 255, 0, 1];
const METATRAFFIC_PORT: u16 = 7400;

/// A participant, and what its thread and its sockets do.
struct Resident {
    participant: Participant,
    is_housemate: bool,
    /// Its domain tag and its communication group: those that differ in either stay strangers.
    company: (bool, bool),
    address: SocketAddr,
    hangs: bool,
    socket: VecDeque<(Payload, SocketAddr)>,
    matched: BTreeSet<(EntityId, Guid)>,
}

struct World {
    now: Instant,
    household: Household,
    residents: Vec<Resident>,
    joined: u16,
    /// The endpoints of each participant that ever was, those of the departed as they were when they left.
    endpoints: BTreeMap<GuidPrefix, BTreeSet<Guid>>,
    /// One bit for each of the next eight datagrams: whether it is lost.
    losses: u8,
    outbox: Outbox,
}

impl Resident {
    fn prefix(&self) -> GuidPrefix {
        self.participant.guid_prefix()
    }

    fn handle(&mut self, now: Instant, datagram: &Payload, from: SocketAddr) {
        if !self.hangs {
            self.participant.handle_datagram(now, datagram, from);
        } else if self.socket.len() < SOCKET_MAX {
            self.socket.push_back((datagram.clone(), from));
        }
    }

    fn take_news(&mut self, now: Instant) {
        self.participant.handle_household(now);
        assert!(!self.participant.household_news().is_set(), "all news was taken");
    }

    /// Notes matches.
    fn note_events(&mut self) {
        while let Some(event) = self.participant.poll_event() {
            match event {
                Event::PublicationMatched { writer, reader } => {
                    assert!(self.matched.insert((writer, reader)), "{reader} matched {writer} twice");
                }
                Event::SubscriptionMatched { reader, writer } => {
                    assert!(self.matched.insert((reader, writer)), "{writer} matched {reader} twice");
                }
                Event::PublicationUnmatched { writer, reader } => {
                    assert!(self.matched.remove(&(writer, reader)), "{reader} did not match {writer}");
                }
                Event::SubscriptionUnmatched { reader, writer } => {
                    assert!(self.matched.remove(&(reader, writer)), "{writer} did not match {reader}");
                }
                _ => {}
            }
        }
    }

    /// The endpoints that it knows, its own among them.
    fn known_endpoints(&self) -> BTreeSet<Guid> {
        let publications = self.participant.publications().map(|known| known.data.guid);
        publications.chain(self.participant.subscriptions().map(|known| known.data.guid)).collect()
    }
}

impl World {
    fn new() -> World {
        World {
            now: Instant::from_nanos(1),
            household: Household::default(),
            residents: Vec::new(),
            joined: 0,
            endpoints: BTreeMap::new(),
            losses: 0,
            outbox: Outbox::new(),
        }
    }

    fn join(&mut self, argument: u8) {
        if self.residents.len() == RESIDENTS_MAX {
            return;
        }
        self.joined += 1;
        let [high, low] = self.joined.to_be_bytes();
        let prefix = GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 0, 0, high, low]);
        let address = SocketAddr::from(([10, 0, 0, 1], 10_000 + self.joined));
        let addresses = LocalAddresses {
            metatraffic_unicast: vec![Locator::from(address)],
            metatraffic_multicast: vec![Locator::from(SocketAddr::from((GROUP, METATRAFFIC_PORT)))],
            default_unicast: vec![Locator::from(address)],
            interfaces: vec![(address.ip(), 24)],
            announce_to: vec![Locator::from(SocketAddr::from((GROUP, METATRAFFIC_PORT)))],
            ..LocalAddresses::default()
        };
        let (is_housemate, has_tag) = (argument & 3 != 0, argument & 0x0c == 0x0c);
        let mut config = ParticipantConfig::new(0, prefix, addresses);
        config.seed = u64::from(self.joined);
        config.lease_duration = LEASES[usize::from(argument >> 4 & 1)];
        if is_housemate {
            config.household = self.household.clone();
        }
        if has_tag {
            config.domain_tag = "tag".to_owned();
        }
        self.endpoints.insert(prefix, BTreeSet::new());
        self.residents.push(Resident {
            participant: Participant::new(self.now, config),
            is_housemate,
            company: (has_tag, false),
            address,
            hangs: false,
            socket: VecDeque::new(),
            matched: BTreeSet::new(),
        });
    }

    fn leave(&mut self, which: usize, says_farewell: bool) {
        if says_farewell && !self.residents[which].hangs {
            self.residents[which].participant.shutdown(self.now);
            self.exchange();
        }
        self.residents.remove(which);
    }

    fn create_endpoint(&mut self, which: usize, argument: u8) {
        let participant = &mut self.residents[which].participant;
        let endpoints = self.endpoints.get_mut(&participant.guid_prefix()).expect("it has joined");
        if endpoints.len() == ENDPOINTS_MAX {
            return;
        }
        let (topic_name, type_name) = (format!("topic {}", argument & 1), "type".to_owned());
        let guid = if argument & 2 == 0 {
            let (qos, options) = (Arc::default(), WriterOptions::default());
            let config = WriterConfig { topic_name, type_name, keyed: Keyed::No, qos, options };
            participant.create_writer(self.now, config).expect("a legal QoS").lock().guid()
        } else {
            let (qos, keys) = (Arc::default(), KeySource::Wire);
            let config = ReaderConfig { topic_name, type_name, keyed: Keyed::No, qos, keys, filter: None };
            participant.create_reader(self.now, config).expect("a legal QoS").lock().guid()
        };
        endpoints.insert(guid);
    }

    fn delete_endpoint(&mut self, which: usize, argument: u8) {
        let participant = &mut self.residents[which].participant;
        let endpoints = self.endpoints.get_mut(&participant.guid_prefix()).expect("it has joined");
        let Some(guid) = endpoints.iter().nth(usize::from(argument) % ENDPOINTS_MAX).copied() else { return };
        endpoints.remove(&guid);
        if guid.entity.is_writer() {
            participant.delete_writer(self.now, guid.entity);
        } else {
            participant.delete_reader(self.now, guid.entity);
        }
    }

    fn change_group(&mut self, which: usize) {
        let resident = &mut self.residents[which];
        resident.company.1 = !resident.company.1;
        let groups = if resident.company.1 { Groups::new(["others"]).expect("a name") } else { Groups::default() };
        resident.participant.set_groups(self.now, groups);
    }

    /// Lets a thread hang, or run again: what waits in its sockets comes first, or the news of its housemates.
    fn set_hanging(&mut self, which: usize, hangs: bool) {
        let resident = &mut self.residents[which];
        resident.hangs = hangs;
        if !hangs {
            if self.losses & 1 != 0 {
                resident.take_news(self.now);
            }
            for (datagram, from) in std::mem::take(&mut resident.socket) {
                resident.handle(self.now, &datagram, from);
            }
            resident.participant.handle_timeout(self.now);
        }
    }

    /// Carries one round of messages; false when nobody had any.
    fn exchange(&mut self) -> bool {
        let mut sent: Vec<(usize, Payload, Vec<Locator>)> = Vec::new();
        for (number, resident) in self.residents.iter_mut().enumerate().filter(|(_, resident)| !resident.hangs) {
            resident.take_news(self.now);
            loop {
                self.outbox.clear();
                let more = resident.participant.poll_transmit(self.now, &mut self.outbox);
                let datagrams = self.outbox.datagrams();
                sent.extend(
                    datagrams
                        .map(|datagram| (number, Payload::from(datagram.to_vec()), datagram.destinations().to_vec())),
                );
                if !more || self.outbox.is_empty() {
                    break;
                }
            }
        }
        for (from, datagram, destinations) in &sent {
            for destination in destinations.iter().filter_map(Locator::socket_address) {
                self.deliver(*from, datagram, destination);
            }
        }
        self.residents.iter_mut().for_each(Resident::note_events);
        self.check_bound();
        !sent.is_empty()
    }

    fn deliver(&mut self, from: usize, datagram: &Payload, destination: SocketAddr) {
        let (source, is_housemate) = (self.residents[from].address, self.residents[from].is_housemate);
        let is_repetition = is_housemate && datagram[HEADER_LEN..].starts_with(&PAD);
        for (number, resident) in self.residents.iter_mut().enumerate() {
            let is_to = destination == resident.address || destination.ip().is_multicast() && number != from;
            // The filter on the sockets of a process drops what all its participants know.
            if !is_to || is_repetition && resident.is_housemate {
                continue;
            }
            self.losses = self.losses.rotate_left(1);
            if self.losses & 1 == 0 {
                resident.handle(self.now, datagram, source);
            }
        }
    }

    /// News waits for a member only of endpoints that are there or that the member still knows.
    fn check_bound(&self) {
        let mut bound = 0;
        for resident in self.residents.iter().filter(|resident| resident.is_housemate) {
            let known = resident.known_endpoints();
            for other in resident.participant.participants().map(|other| other.data.guid_prefix) {
                let there = &self.endpoints[&other];
                bound +=
                    there.len() + known.iter().filter(|guid| guid.prefix == other && !there.contains(guid)).count();
            }
        }
        assert!(self.household.waiting_news() <= bound, "{} news, {bound} endpoints", self.household.waiting_news());
    }

    fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let mut rounds = 0;
            while self.exchange() {
                rounds += 1;
                assert!(rounds < ROUNDS_MAX, "the participants do not come to rest");
                self.now += Duration::from_micros(50);
            }
            let running = self.residents.iter().filter(|resident| !resident.hangs);
            let next = running.map(|resident| resident.participant.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            for resident in self.residents.iter_mut().filter(|resident| !resident.hangs) {
                resident.participant.handle_timeout(self.now);
            }
        }
        self.now = end.max(self.now);
    }

    /// Lets everything run without loss, and checks that each knows the others, their endpoints, and nothing else.
    fn come_to_rest(&mut self) {
        (0..self.residents.len()).for_each(|which| self.set_hanging(which, false));
        self.losses = 0;
        self.run_for(REST);
        assert_eq!(self.household.waiting_news(), 0);
        assert_eq!(self.household.len(), self.residents.iter().filter(|resident| resident.is_housemate).count());
        for resident in &self.residents {
            let company = self.residents.iter().filter(|other| other.company == resident.company);
            let others: BTreeSet<GuidPrefix> = company.map(Resident::prefix).collect();
            let endpoints: BTreeSet<Guid> = others.iter().flat_map(|other| &self.endpoints[other]).copied().collect();
            let known = resident.participant.participants().map(|known| known.data.guid_prefix);
            assert_eq!(known.chain([resident.prefix()]).collect::<BTreeSet<_>>(), others);
            assert_eq!(resident.known_endpoints(), endpoints);
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let mut world = World::new();
    world.join(1);
    world.join(2);
    world.run_for(LEASES[0]);
    for step in script.chunks_exact(2).take(STEPS_MAX) {
        let (step, argument) = (step[0], step[1]);
        if world.residents.is_empty() {
            world.join(argument);
        }
        let which = usize::from(step >> 4) % world.residents.len();
        match step & 15 {
            0 | 1 => world.join(argument),
            2 => world.leave(which, argument & 1 != 0),
            3..=5 => world.create_endpoint(which, argument),
            6 | 7 => world.delete_endpoint(which, argument),
            8 => world.change_group(which),
            9 | 10 => world.set_hanging(which, true),
            11 => world.set_hanging(which, false),
            12 => world.losses = argument,
            13 => {
                world.exchange();
            }
            _ => world.run_for(Duration::from_millis(1 << (argument % 16))),
        }
        world.residents.iter_mut().for_each(Resident::note_events);
        world.check_bound();
    }
    world.come_to_rest();
});
