//! Somebody announces a participant at an address that is not his, and asks in its name for all that a writer has kept.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use thalweg::discovery::{ParticipantData, SubscriptionData};
use thalweg::types::{EntityId, Guid, GuidPrefix, Keyed, Locator, SequenceNumber};
use thalweg::{DomainParticipant, TopicType};
use thalweg_rtps::wire::write::{self, DataHead, DataKind};
use thalweg_rtps::wire::{AckNack, SequenceSet};

use crate::fixture::*;

/// Where discovery of `there` listens, as `here` has learned.
fn discovery_of(here: &DomainParticipant, there: &DomainParticipant) -> SocketAddr {
    let known = here.discovered_participants().into_iter().find(|data| data.guid_prefix == there.guid_prefix());
    let locators = known.expect("they have met").locators;
    let mut addresses = locators.metatraffic_unicast.iter().filter_map(|locator| locator.socket_address());
    addresses.find(|address| address.ip().is_loopback() && address.is_ipv4()).expect("an address on loopback")
}

fn forge_sample(out: &mut Vec<u8>, pair: (EntityId, EntityId), payload: &[u8]) {
    let (reader, writer) = pair;
    let head = DataHead { reader, writer, sequence: SequenceNumber::FIRST, inline_qos: &[], kind: DataKind::Data };
    write::data(out, &head, payload.len());
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A participant whose addresses are all `victim`, with a reader of the topic.
fn forge_announcements(prefix: GuidPrefix, victim: SocketAddr, topic: &str) -> [Vec<u8>; 2] {
    let mut data = ParticipantData::new(prefix);
    data.builtin_endpoints = 0xc3f;
    data.locators.metatraffic_unicast = vec![Locator::from(victim)];
    data.locators.default_unicast = vec![Locator::from(victim)];
    let reader = Guid::new(prefix, EntityId::user_reader(1, Keyed::No));
    let subscription = SubscriptionData::new(reader, topic, Shape::TYPE_NAME, late_reader());
    let mut payloads = [Vec::new(), Vec::new()];
    data.encode(&mut payloads[0]);
    subscription.encode(&mut payloads[1]);
    let pairs = [
        (EntityId::SPDP_READER, EntityId::SPDP_WRITER),
        (EntityId::SUBSCRIPTIONS_READER, EntityId::SUBSCRIPTIONS_WRITER),
    ];
    let mut step = 0;
    payloads.map(|payload| {
        let mut out = Vec::new();
        write::header(&mut out, prefix);
        forge_sample(&mut out, pairs[step], &payload);
        step += 1;
        out
    })
}

/// It asks for everything from the first number on, and for what it guesses that it was asked.
fn forge_requests(prefix: GuidPrefix, writer: Guid, base: i64) -> Vec<u8> {
    let mut out = Vec::new();
    write::header(&mut out, prefix);
    let user = (EntityId::user_reader(1, Keyed::No), writer.entity);
    let discovery = [
        (EntityId::PUBLICATIONS_READER, EntityId::PUBLICATIONS_WRITER),
        (EntityId::SUBSCRIPTIONS_READER, EntityId::SUBSCRIPTIONS_WRITER),
    ];
    for (reader, writer) in discovery.into_iter().chain([user]) {
        let mut state = SequenceSet::new(SequenceNumber(base));
        (base..base + 200).for_each(|number| _ = state.insert(SequenceNumber(number)));
        let count = u32::try_from(base).expect("small");
        write::acknack(&mut out, &AckNack { reader, writer, state, count, is_final: false });
    }
    out
}

/// Somebody who has asked for nothing, and what came in their name.
struct Victim {
    socket: UdpSocket,
    forged: usize,
    received: usize,
}

impl Victim {
    fn new() -> Victim {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a time");
        Victim { socket, forged: 0, received: 0 }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("it is bound")
    }

    fn receive(&mut self) {
        let mut buffer = [0; 65_536];
        while let Ok(bytes) = self.socket.recv(&mut buffer) {
            self.received += bytes;
        }
    }

    #[track_caller]
    fn check(&self) {
        let Victim { forged, received, .. } = self;
        assert!(*received > 0, "it is not even asked whether it is there");
        assert!(*received <= 3 * forged, "{received} bytes for {forged} that were forged");
    }
}

#[test]
fn a_third_host_gets_no_more_than_three_times_what_was_sent_in_its_name() {
    let Pair { writer, participants: (here, there), .. } = pair::<Shape>("reflection", late_writer(), late_reader());
    for x in 0..200 {
        writer.write(&Shape { payload: vec![7; 50_000], ..Shape::new("blue", x) }).unwrap();
    }
    let target = discovery_of(&there, &here);
    let forger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let forge = |bytes: &[u8]| forger.send_to(bytes, target).expect("loopback takes datagrams");
    // Names that are announced once, so that each is paid for by few bytes; and names that go on guessing.
    let (mut once, mut guessed) = (Victim::new(), Victim::new());
    for name in 0..20 {
        once.forged += forge(&forge_announcements(GuidPrefix([0x20 + name; 12]), once.address(), "")[0]);
    }
    let end = Instant::now() + Duration::from_secs(4);
    let mut step = 0;
    while Instant::now() < end {
        // A name of its own each second; the guesses go on.
        let prefix = GuidPrefix([0x66 + (step / 50) as u8; 12]);
        let forged = forge_announcements(prefix, guessed.address(), &unique("reflection"));
        for bytes in forged.into_iter().chain([forge_requests(prefix, writer.guid(), 1 + step)]) {
            guessed.forged += forge(&bytes);
        }
        step += 1;
        guessed.receive();
    }
    once.receive();
    once.check();
    guessed.check();
    assert_eq!(here.discovered_participants().len(), 1, "a participant that proved nothing counts as discovered");
}
