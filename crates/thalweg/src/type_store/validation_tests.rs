//! Readers that force type validation, and writers whose types can or cannot be validated: two participants without sockets.

use std::net::SocketAddr;

use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::{Event, KeySource, ParticipantConfig, ReaderConfig, WriterConfig};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{MatchResult, Mismatch, ReaderQos, WriterQos};
use thalweg_rtps::types::{Guid, Keyed, Locator};
use thalweg_rtps::writer::WriterOptions;
use thalweg_types::idl;
use thalweg_types::type_object::describe;

use super::*;
use crate::topic::TopicKeys;

const OLD: &str = "@appendable struct T { long a; };";
const NEW: &str = "@appendable struct T { long a; long b; };";
/// Has more elements than a library makes a type of.
const HUGE: &str = "@final struct T { long a[100000000]; };";
const OTHER_HUGE: &str = "@final struct T { long a[100000001]; };";

struct Node {
    store: Arc<TypeStore>,
    participant: Shared<Participant>,
    /// Requests of the other one that are not answered yet.
    held: Vec<LookupRequest>,
    told: Vec<Event>,
}

impl Node {
    /// A participant at 10.0.0.`last`, with or without a directory of types.
    fn new(now: Instant, last: u8, describes_types: bool) -> Node {
        let address = |port: u16| Locator::from(SocketAddr::from(([10, 0, 0, last], port)));
        let addresses = LocalAddresses {
            metatraffic_unicast: vec![address(7410)],
            default_unicast: vec![address(7411)],
            interfaces: vec![([10, 0, 0, last].into(), 24)],
            announce_to: vec![Locator::from(SocketAddr::from(([239, 255, 0, 1], 7400)))],
            ..LocalAddresses::default()
        };
        let prefix = GuidPrefix([last; 12]);
        let store = Arc::new(TypeStore::new(prefix));
        let mut config = ParticipantConfig::new(0, prefix, addresses);
        (config.seed, config.host) = (u64::from(last), [last; 16]);
        if describes_types {
            config.services.extend(services());
            config.types = Some(Arc::clone(&store) as _);
        }
        Node { store, participant: Shared::new(Participant::new(now, config)), held: Vec::new(), told: Vec::new() }
    }

    /// Makes a type of IDL known as that of the topic `topic`; what its endpoints announce.
    fn register(&self, text: &str) -> Option<Arc<[u8]>> {
        let described = describe(idl::parse(text).expect("IDL").find("T").expect("T")).expect("described");
        self.store.register(&TopicDescription {
            name: "topic".to_owned(),
            type_name: "T".to_owned(),
            keyed: Keyed::No,
            keys: TopicKeys::Wire,
            described: Some(Arc::new(described)),
        });
        self.store.information("topic", "T")
    }

    fn next_event(&self) -> Option<Event> {
        let mut participant = self.participant.lock();
        participant.poll_event()
    }

    fn drain(&self, now: Instant) -> Vec<Vec<u8>> {
        let (mut outbox, mut sent) = (Outbox::new(), Vec::new());
        let mut participant = self.participant.lock();
        loop {
            outbox.clear();
            let more = participant.poll_transmit(now, &mut outbox);
            sent.extend(outbox.datagrams().map(|datagram| datagram.to_vec()));
            if !more || outbox.is_empty() {
                return sent;
            }
        }
    }

    /// Holds what the other one asks, and takes what it answers.
    fn hear(&mut self) {
        while let Some(event) = self.next_event() {
            match event {
                Event::ServiceData { reader: REQUEST_READER, payload, .. } => {
                    self.held.push(LookupRequest::from_payload(&payload).expect("a request"));
                }
                Event::ServiceData { reader: REPLY_READER, from, payload } => {
                    self.store.handle_reply(from, LookupReply::from_payload(&payload).expect("a reply"));
                }
                other => self.told.push(other),
            }
        }
    }

    fn answer(&mut self, now: Instant) {
        for request in std::mem::take(&mut self.held) {
            if let Some(reply) = self.store.answer(now, &request).expect("within the limits") {
                assert!(self.participant.lock().write_service(now, REPLY_WRITER, reply));
            }
        }
    }

    fn has_match(&self) -> bool {
        let is_match =
            |event: &Event| matches!(event, Event::PublicationMatched { .. } | Event::SubscriptionMatched { .. });
        self.told.iter().any(is_match)
    }

    /// Why its endpoint does not match, as the application is told.
    fn refusals(&self) -> Vec<String> {
        let text = |mismatches: &[Mismatch]| mismatches.iter().map(Mismatch::to_string).collect::<Vec<_>>().concat();
        let refusal = |event: &Event| match event {
            Event::OfferedIncompatibleQos { mismatches, .. } | Event::RequestedIncompatibleQos { mismatches, .. } => {
                Some(text(mismatches))
            }
            _ => None,
        };
        self.told.iter().filter_map(refusal).collect()
    }
}

/// A writer of [`OLD`] and a reader of [`NEW`].
struct World {
    now: Instant,
    nodes: [Node; 2],
    answers: bool,
}

impl World {
    fn new(forces_validation: bool) -> World {
        let now = Instant::from_nanos(1);
        let nodes = [1, 2].map(|last| Node::new(now, last, true));
        let [writing, reading] = &nodes;
        assert!(writing.register(OLD).is_some() && reading.register(NEW).is_some());
        let (topic_name, type_name) = ("topic".to_owned(), "T".to_owned());
        let (qos, options) = (WriterQos::default().into(), WriterOptions::default());
        let config = WriterConfig { topic_name, type_name, keyed: Keyed::No, qos, options };
        writing.participant.lock().create_writer(now, config).expect("a legal QoS");
        let config = ReaderConfig {
            topic_name: "topic".to_owned(),
            type_name: "T".to_owned(),
            keyed: Keyed::No,
            qos: reader_qos(forces_validation).into(),
            keys: KeySource::Wire,
            filter: None,
        };
        reading.participant.lock().create_reader(now, config).expect("a legal QoS");
        World { now, nodes, answers: false }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += Duration::from_millis(100);
            for node in &mut self.nodes {
                node.participant.lock().handle_timeout(self.now);
                if self.answers {
                    node.answer(self.now);
                }
                node.store.look_up(self.now, &node.participant);
            }
            self.exchange();
        }
    }

    /// Lets both hear each other, without losses.
    fn exchange(&mut self) {
        for _ in 0..8 {
            let sent = [0, 1].map(|from| self.nodes[from].drain(self.now));
            for (from, datagrams) in sent.into_iter().enumerate() {
                let address = SocketAddr::from(([10, 0, 0, from as u8 + 1], 7410));
                let mut other = self.nodes[1 - from].participant.lock();
                for datagram in datagrams {
                    other.handle_datagram(self.now, &Payload::from(datagram), address);
                }
            }
            self.nodes.iter_mut().for_each(Node::hear);
        }
    }
}

fn reader_qos(forces_validation: bool) -> ReaderQos {
    let type_consistency = TypeConsistency { forces_validation, ..TypeConsistency::default() };
    ReaderQos { type_consistency, ..ReaderQos::default() }
}

#[test]
fn where_validation_is_forced_endpoints_wait_for_the_objects_and_match_when_they_come_however_late() {
    let mut world = World::new(true);
    world.run(Duration::from_secs(1));
    for node in &world.nodes {
        assert!(!node.held.is_empty(), "each asks the other one");
        assert!(!node.has_match() && node.refusals().is_empty(), "nothing is known yet: {:?}", node.told);
    }
    world.run(Duration::from_secs(4));
    for (node, other) in world.nodes.iter().zip(["reader", "writer"]) {
        assert!(!node.has_match(), "{:?}", node.told);
        let expected = format!("its type cannot be validated: type objects of the {other} did not come");
        let told = node.refusals();
        assert!(told.len() == 1 && told[0].contains(&expected), "{told:?}");
    }
    world.answers = true;
    world.run(Duration::from_secs(1));
    assert!(world.nodes.iter().all(Node::has_match));
}

#[test]
fn where_validation_is_forced_endpoints_match_whose_objects_come() {
    let mut world = World::new(true);
    world.answers = true;
    world.run(Duration::from_secs(2));
    for node in &world.nodes {
        assert!(node.has_match() && node.refusals().is_empty(), "{:?}", node.told);
    }
}

#[test]
fn where_validation_is_not_forced_endpoints_whose_objects_do_not_come_match_by_name() {
    let mut world = World::new(false);
    world.run(Duration::from_secs(5));
    for node in &world.nodes {
        assert!(node.has_match() && node.refusals().is_empty(), "{:?}", node.told);
    }
}

/// Holds that types that cannot be compared, for this reason, are an obstacle where validation is forced, and none elsewhere.
#[track_caller]
fn check_unvalidated(node: &Node, writer: &PublicationData, information: Option<&Arc<[u8]>>, why: &str) {
    for forces_validation in [false, true] {
        let guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, Keyed::No));
        let reader = SubscriptionData::new(guid, "topic", "T", reader_qos(forces_validation));
        let reader = reader.with_type_information(information.cloned());
        let result = node.participant.lock().compare(writer, &reader).expect("the verdict needs no objects");
        if forces_validation {
            let expected = format!("its type cannot be validated: {why}");
            assert!(!result.is_match() && result.to_string().contains(&expected), "{result}");
        } else {
            assert_eq!(result, MatchResult::Match);
        }
    }
}

#[test]
fn types_that_cannot_be_compared_are_an_obstacle_where_validation_is_forced() {
    let now = Instant::from_nanos(1);
    let node = Node::new(now, 1, true);
    let huge = node.register(HUGE).expect("announced");
    let other_huge = node.register(OTHER_HUGE).expect("announced");
    let old = node.register(OLD).expect("announced");
    let garbage: Arc<[u8]> = Arc::from([0xff; 40]);
    let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, Keyed::No));
    let writer = |information: &Arc<[u8]>| {
        PublicationData::new(guid, "topic", "T", WriterQos::default()).with_type_information(Some(information.clone()))
    };
    let earlier = PublicationData { describes_type: true, type_information: None, ..writer(&old) };
    check_unvalidated(&node, &earlier, Some(&old), "the writer announces a type object of an earlier edition");
    check_unvalidated(&node, &writer(&old), None, "the reader announces no type information");
    check_unvalidated(&node, &writer(&garbage), Some(&old), "the writer's type information is malformed");
    check_unvalidated(&node, &writer(&old), Some(&garbage), "the reader's type information is malformed");
    check_unvalidated(&node, &writer(&huge), Some(&old), "that of the writer cannot be compared: a type of too many");
    check_unvalidated(
        &node,
        &writer(&old),
        Some(&other_huge),
        "that of the reader cannot be compared: a type of too many",
    );
    let without = Node::new(now, 1, false);
    check_unvalidated(&without, &writer(&old), Some(&old), "this participant compares no types");
}
