//! Laws of the participant: small groups on a perfect or a lossy network in virtual time.

use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::history::{ChangeKind, ReadFilter, TakenSample};
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::qos::{Durability, History, ReaderQos, Reliability, ResourceLimits, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::types::{EntityId, KeyHash, Keyed, Locator};
use crate::wire::write;
use crate::wire::{Message, Submessage};
use crate::writer::{NewChange, Writer, WriterOptions};

const GROUP: ([u8; 4], u16) = ([239, 255, 0, 1], 7400);

pub(super) struct Net {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    pub(super) loss: f64,
    pub(super) multicast_lost: bool,
    pub(super) rng: Rng,
    pub(super) outbox: Outbox,
    pub(super) sent: Vec<Sent>,
}

/// A datagram that was sent.
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) from: usize,
    pub(super) bytes: u64,
    pub(super) destinations: u64,
    /// The writers whose samples, or parts of samples, it carries.
    pub(super) writers: Vec<EntityId>,
    /// It announces its participant.
    pub(super) announces: bool,
    /// It begins with a PAD.
    pub(super) marked: bool,
    /// Every INFO_TS in front of its samples.
    pub(super) stamps: Vec<Option<Timestamp>>,
}

fn stamps_in(datagram: &[u8]) -> Vec<Option<Timestamp>> {
    let message = Message::parse(datagram).expect("what we send can be read");
    let stamp = |submessage| match submessage {
        Submessage::InfoTimestamp(timestamp) => Some(timestamp),
        _ => None,
    };
    message.submessages().filter_map(|submessage| stamp(submessage.expect("what we send can be read"))).collect()
}

pub(super) fn writers_in(datagram: &[u8]) -> Vec<EntityId> {
    let message = Message::parse(datagram).expect("what we send can be read");
    let writer = |submessage| match submessage {
        Submessage::Data(data) => Some(data.writer),
        Submessage::DataFrag(data) => Some(data.writer),
        _ => None,
    };
    message.submessages().filter_map(|submessage| writer(submessage.expect("what we send can be read"))).collect()
}

pub(super) struct Node {
    pub(super) participant: Participant,
    pub(super) address: [u8; 4],
    pub(super) events: Vec<Event>,
    pub(super) cut_off: bool,
    /// Its thread stands still; what is sent to it is lost.
    pub(super) hangs: bool,
}

pub(super) fn locator(ip: [u8; 4], port: u16) -> Locator {
    Locator::from(SocketAddr::from((ip, port)))
}

impl Net {
    pub(super) fn new(nodes: u8) -> Net {
        let mut net = Net {
            now: Instant::from_nanos(1),
            nodes: Vec::new(),
            loss: 0.0,
            multicast_lost: false,
            rng: Rng::new(1),
            outbox: Outbox::new(),
            sent: Vec::new(),
        };
        for index in 1..=nodes {
            net.add(index);
        }
        net
    }

    pub(super) fn add(&mut self, index: u8) {
        self.add_with(index, |_| {});
    }

    pub(super) fn add_with(&mut self, index: u8, adapt: impl FnOnce(&mut ParticipantConfig)) {
        let address = [10, 0, 0, index];
        let addresses = LocalAddresses {
            metatraffic_unicast: vec![locator(address, 7410)],
            metatraffic_multicast: vec![locator(GROUP.0, GROUP.1)],
            default_unicast: vec![locator(address, 7411)],
            default_multicast: vec![locator(GROUP.0, 7401)],
            interfaces: vec![(address.into(), 24)],
            links: Vec::new(),
            announce_to: vec![locator(GROUP.0, GROUP.1)],
            link_mtus: Vec::new(),
        };
        let mut config = ParticipantConfig::new(0, GuidPrefix([index; 12]), addresses);
        config.host = [index; 16];
        config.seed = u64::from(index);
        adapt(&mut config);
        let participant = Participant::new(self.now, config);
        self.nodes.push(Node { participant, address, events: Vec::new(), cut_off: false, hangs: false });
    }

    pub(super) fn exchange(&mut self) -> bool {
        let mut sent: Vec<(usize, Vec<u8>, Vec<Locator>)> = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate().filter(|(_, node)| !node.hangs) {
            node.participant.handle_household(self.now);
            while {
                self.outbox.clear();
                let more = node.participant.poll_transmit(self.now, &mut self.outbox);
                for datagram in self.outbox.datagrams() {
                    sent.push((index, datagram.to_vec(), datagram.destinations().to_vec()));
                }
                more && !self.outbox.is_empty()
            } {}
        }
        let any = !sent.is_empty();
        self.sent.extend(sent.iter().map(|(from, bytes, destinations)| Sent {
            at: self.now,
            from: *from,
            bytes: bytes.len() as u64,
            destinations: destinations.len() as u64,
            announces: writers_in(bytes).contains(&EntityId::SPDP_WRITER),
            marked: bytes[write::HEADER_LEN..].starts_with(&write::PAD),
            writers: writers_in(bytes),
            stamps: stamps_in(bytes),
        }));
        for (from, bytes, destinations) in sent {
            let source = SocketAddr::from((self.nodes[from].address, 7411));
            for destination in destinations {
                let address = destination.socket_address().expect("a UDP address");
                for to in 0..self.nodes.len() {
                    let hit = if address.ip().is_multicast() { to != from } else { address.ip() == self.ip(to) };
                    let lost = self.multicast_lost && address.ip().is_multicast();
                    let cut = self.nodes[to].hangs || self.nodes[to].cut_off || self.nodes[from].cut_off || lost;
                    if hit && !cut && !self.rng.chance(self.loss) {
                        let payload = Payload::from(&bytes[..]);
                        self.nodes[to].participant.handle_datagram(self.now, &payload, source);
                    }
                }
            }
        }
        for node in &mut self.nodes {
            while let Some(event) = node.participant.poll_event() {
                node.events.push(event);
            }
        }
        any
    }

    pub(super) fn ip(&self, node: usize) -> std::net::IpAddr {
        self.nodes[node].address.into()
    }

    pub(super) fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let mut rounds = 0;
            while self.exchange() {
                rounds += 1;
                assert!(rounds < 10_000, "the participants never come to rest");
                self.now += Duration::from_micros(50);
            }
            let running = self.nodes.iter().filter(|node| !node.hangs);
            let next = running.map(|node| node.participant.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            for node in self.nodes.iter_mut().filter(|node| !node.hangs) {
                node.participant.handle_timeout(self.now);
            }
        }
        self.now = end;
    }

    pub(super) fn writer(&mut self, node: usize, qos: WriterQos, keyed: Keyed) -> Shared<Writer> {
        let config = WriterConfig {
            topic_name: "topic".into(),
            type_name: "type".into(),
            keyed,
            qos: qos.into(),
            options: WriterOptions::default(),
        };
        self.nodes[node].participant.create_writer(self.now, config).expect("a legal QoS")
    }

    pub(super) fn reader(&mut self, node: usize, qos: ReaderQos, keyed: Keyed) -> Shared<Reader> {
        let config = ReaderConfig {
            topic_name: "topic".into(),
            type_name: "type".into(),
            keyed,
            qos: qos.into(),
            keys: KeySource::Function(Arc::new(|payload: &[u8], _| Some(KeyHash([*payload.get(4)?; 16])))),
            filter: None,
        };
        self.nodes[node].participant.create_reader(self.now, config).expect("a legal QoS")
    }

    pub(super) fn write(&mut self, node: usize, writer: &Shared<Writer>, bytes: &[u8]) -> bool {
        self.change(node, writer, ChangeKind::Write, bytes)
    }

    pub(super) fn change(&mut self, node: usize, writer: &Shared<Writer>, kind: ChangeKind, bytes: &[u8]) -> bool {
        let mut payload = vec![0, 1, 0, 0];
        payload.extend_from_slice(bytes);
        let keyed = writer.lock().guid().entity.keyed();
        let instance = if keyed == Keyed::Yes { KeyHash([bytes[0]; 16]) } else { KeyHash::default() };
        let change = NewChange { kind, instance, timestamp: None, payload: Payload::from(payload) };
        let (entity, result) = {
            let mut writer = writer.lock();
            (writer.guid().entity, writer.write(self.now, change))
        };
        self.nodes[node].participant.rearm(entity, self.now);
        result.is_ok()
    }
}

pub(super) fn reliable_writer(history: History) -> WriterQos {
    let reliability = Reliability::Reliable { max_blocking_time: Duration::from_millis(100) };
    WriterQos { reliability, history, ..WriterQos::default() }
}

pub(super) fn reliable_reader(history: History) -> ReaderQos {
    let reliability = Reliability::Reliable { max_blocking_time: Duration::from_millis(100) };
    ReaderQos { reliability, history, ..ReaderQos::default() }
}

pub(super) fn take(net: &Net, reader: &Shared<Reader>) -> Vec<TakenSample> {
    let mut samples = Vec::new();
    reader.lock().take(|| net.now, usize::MAX, &ReadFilter::ALL, &mut samples);
    samples
}

pub(super) fn first_bytes(samples: &[TakenSample]) -> Vec<u8> {
    samples.iter().map(|sample| sample.payload[4]).collect()
}

pub(super) const SECOND: Duration = Duration::from_secs(1);

#[test]
fn participants_find_each_other_and_exchange_samples() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(writer.lock().matched_readers().len(), 1);
    assert_eq!(reader.lock().matched_writers().len(), 1);
    for n in 0..10 {
        assert!(net.write(0, &writer, &[n; 5]));
    }
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(writer.lock().all_acknowledged());
    assert_eq!(writer.lock().held(), 0, "volatile samples go once they are acknowledged");
    assert!(net.nodes[0].events.contains(&Event::Acknowledged { writer: writer.lock().guid().entity }));
}

#[test]
fn endpoints_of_one_participant_match_too() {
    let mut net = Net::new(1);
    let reader = net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    net.write(0, &writer, b"x");
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), b"x");
}

#[test]
fn every_reliable_sample_arrives_once_and_in_order_under_loss() {
    for (seed, size) in [(1, 20), (2, 3_000), (3, 70_000)] {
        let mut net = Net::new(3);
        net.rng = Rng::new(seed);
        let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let readers = [
            net.reader(1, reliable_reader(History::KeepAll), Keyed::No),
            net.reader(2, reliable_reader(History::KeepAll), Keyed::No),
        ];
        net.run_for(SECOND);
        net.loss = 0.2;
        for n in 0..50u8 {
            let mut bytes = vec![7; size];
            bytes[0] = n;
            assert!(net.write(0, &writer, &bytes));
            net.run_for(Duration::from_millis(1));
        }
        net.run_for(SECOND * 20);
        for reader in &readers {
            let samples = take(&net, reader);
            assert_eq!(first_bytes(&samples), (0..50).collect::<Vec<u8>>(), "seed {seed}, size {size}");
            assert!(samples.iter().all(|sample| sample.payload.len() == size + 4));
        }
        assert!(writer.lock().all_acknowledged());
        assert_eq!(net.nodes[1].participant.reassembly_bytes(), 0);
    }
}

#[test]
fn late_joiners_get_the_history_only_if_both_sides_want_it() {
    let mut net = Net::new(3);
    let mut qos = reliable_writer(History::KeepLast(3));
    qos.durability = Durability::TransientLocal;
    let writer = net.writer(0, qos, Keyed::No);
    for n in 0..5 {
        net.write(0, &writer, &[n]);
    }
    net.run_for(SECOND);
    let mut wanting = reliable_reader(History::KeepAll);
    wanting.durability = Durability::TransientLocal;
    let late = net.reader(1, wanting, Keyed::No);
    let volatile = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND * 3);
    net.write(0, &writer, &[9]);
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &late)), [2, 3, 4, 9]);
    assert_eq!(first_bytes(&take(&net, &volatile)), [9]);
    assert_eq!(late.lock().counters().lost, 0);
}

#[test]
fn the_replay_for_a_late_joiner_does_not_stall_the_others() {
    let mut net = Net::new(3);
    let mut qos = reliable_writer(History::KeepAll);
    qos.durability = Durability::TransientLocal;
    let mut wanting = reliable_reader(History::KeepAll);
    wanting.durability = Durability::TransientLocal;
    let writer = net.writer(0, qos, Keyed::No);
    let early = net.reader(1, wanting.clone(), Keyed::No);
    net.run_for(SECOND);
    for _ in 0..500 {
        net.write(0, &writer, &[1; 1000]);
    }
    net.run_for(SECOND);
    assert_eq!(take(&net, &early).len(), 500);
    let late = net.reader(2, wanting, Keyed::No);
    while writer.lock().matched_readers().len() < 2 {
        assert!(net.exchange(), "the writer learns of the late reader");
    }
    net.nodes[2].cut_off = true;
    for _ in 0..200 {
        net.write(0, &writer, &[2; 1000]);
    }
    net.run_for(Duration::from_millis(500));
    assert_eq!(take(&net, &early).len(), 200, "more than a window passes the reader that is cut off in its replay");
    net.nodes[2].cut_off = false;
    net.run_for(SECOND * 5);
    assert_eq!(take(&net, &late).len(), 700);
}

#[test]
fn a_full_history_refuses_and_room_is_told() {
    let mut net = Net::new(2);
    let mut qos = reliable_writer(History::KeepAll);
    qos.resource_limits = ResourceLimits { max_samples: Some(8), ..ResourceLimits::default() };
    let writer = net.writer(0, qos, Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let accepted = (0..20).filter(|n| net.write(0, &writer, &[*n])).count();
    assert_eq!(accepted, 8);
    net.nodes[0].events.clear();
    net.run_for(Duration::from_millis(5));
    let entity = writer.lock().guid().entity;
    assert!(net.nodes[0].events.contains(&Event::SpaceAvailable { writer: entity }), "at once, not at a timeout");
    assert_eq!(take(&net, &reader).len(), 8);
}

#[test]
fn a_full_reader_holds_back_its_writer_and_loses_nothing() {
    let mut net = Net::new(2);
    let mut writer_qos = reliable_writer(History::KeepAll);
    writer_qos.resource_limits = ResourceLimits { max_samples: Some(10), ..ResourceLimits::default() };
    let mut reader_qos = reliable_reader(History::KeepAll);
    reader_qos.resource_limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
    let writer = net.writer(0, writer_qos, Keyed::No);
    let reader = net.reader(1, reader_qos, Keyed::No);
    net.run_for(SECOND);
    let (mut written, mut got) = (0u8, Vec::new());
    for _ in 0..200 {
        while written < 40 && net.write(0, &writer, &[written]) {
            written += 1;
        }
        net.run_for(Duration::from_millis(10));
        let mut samples = Vec::new();
        let outcome = reader.lock().take(|| net.now, 3, &ReadFilter::ALL, &mut samples);
        if let Some(at) = outcome.arm {
            let entity = reader.lock().guid().entity;
            net.nodes[1].participant.rearm(entity, at);
        }
        got.extend(first_bytes(&samples));
    }
    assert_eq!(got, (0..40).collect::<Vec<u8>>());
    assert!(reader.lock().counters().rejected > 0);
}

#[test]
fn a_stuck_reader_does_not_stall_the_others_where_the_patience_ends() {
    let mut net = Net::new(3);
    let mut qos = reliable_writer(History::KeepAll);
    qos.resource_limits = ResourceLimits { max_samples: Some(50), ..ResourceLimits::default() };
    qos.reader_patience = SECOND;
    let writer = net.writer(0, qos, Keyed::No);
    let healthy = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    let stuck = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    net.nodes[2].cut_off = true;
    let mut written = 0;
    for _ in 0..400 {
        if net.write(0, &writer, &[(written % 200) as u8]) {
            written += 1;
        }
        net.run_for(Duration::from_millis(10));
    }
    assert!(written > 250, "only {written} of 400 writes were accepted");
    assert_eq!(take(&net, &healthy).len(), written);
    assert!(net.nodes[0].events.iter().any(|event| matches!(event, Event::ReaderGivenUp { .. })));
    net.nodes[2].cut_off = false;
    net.run_for(SECOND * 4);
    net.write(0, &writer, &[222]);
    net.run_for(SECOND * 4);
    let taken = take(&net, &stuck).len();
    let lost = stuck.lock().counters().lost as usize;
    assert!(lost > 0 && taken + lost == written + 1, "it takes part again and counts what it lost: {taken} + {lost}");
    assert!(writer.lock().all_acknowledged());
}

#[test]
fn a_reader_is_owed_its_samples_however_long_it_is_out_of_reach() {
    let mut net = Net::new(3);
    let mut qos = reliable_writer(History::KeepAll);
    qos.resource_limits = ResourceLimits { max_samples: Some(50), ..ResourceLimits::default() };
    let writer = net.writer(0, qos, Keyed::No);
    let healthy = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    let away = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    net.nodes[2].cut_off = true;
    let written = (0..1_000).filter(|_| {
        net.run_for(Duration::from_millis(10));
        net.write(0, &writer, &[1])
    });
    assert_eq!(written.count(), 50, "the history is full of what one reader is owed");
    assert_eq!(take(&net, &healthy).len(), 50);
    assert!(!writer.lock().all_acknowledged());
    net.nodes[2].cut_off = false;
    net.run_for(SECOND * 4);
    assert_eq!((take(&net, &away).len(), away.lock().counters().lost), (50, 0));
    assert!(writer.lock().all_acknowledged() && net.write(0, &writer, &[1]));
}

#[test]
fn a_timer_that_runs_out_while_another_thread_sends_is_set_anew() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(Duration::from_secs(5));
    let (entity, mut outbox) = (writer.lock().guid().entity, Outbox::new());
    let change = NewChange {
        kind: ChangeKind::Write,
        instance: KeyHash::default(),
        timestamp: None,
        payload: Payload::from(vec![0, 1, 0, 0, 7]),
    };
    let written = writer.lock().write(net.now, change).expect("room");
    assert!(writer.lock().start_sending(net.now, &mut outbox), "the application's thread sends, and all of it is lost");
    let due = written.arm.expect("the next HEARTBEAT");
    net.nodes[0].participant.rearm(entity, due);
    // Its call lasts until the timer has run out: the thread of the participant leaves the HEARTBEAT to it.
    net.now = due;
    net.nodes[0].participant.handle_timeout(net.now);
    net.exchange();
    let mut calls = 1;
    while writer.lock().continue_sending(net.now, net.now, 1, &mut outbox) {
        outbox.clear();
        calls += 1;
    }
    assert_eq!(calls, 2, "the HEARTBEAT is lost, too");
    net.run_for(Duration::from_secs(1));
    assert_eq!(first_bytes(&take(&net, &reader)), [7]);
}

#[test]
fn any_bytes_leave_the_participant_alive() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let mut rng = Rng::new(5);
    let source = SocketAddr::from(([10, 0, 0, 1], 7411));
    for _ in 0..2_000 {
        let mut bytes = b"RTPS\x02\x05\x01\xd7".to_vec();
        bytes.extend_from_slice(&[1; 12]);
        let ids = [0x15u8, 0x16, 0x06, 0x07, 0x08, 0x09, 0x0e, 0x12, 0x13];
        for _ in 0..rng.below(4) {
            bytes.push(ids[rng.below(ids.len() as u64) as usize]);
            bytes.push(rng.next_u64() as u8);
            let len = rng.below(80) as u16;
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend((0..len).map(|_| if rng.chance(0.5) { 0 } else { rng.next_u64() as u8 }));
        }
        net.nodes[1].participant.handle_datagram(net.now, &Payload::from(bytes), source);
    }
    net.write(0, &writer, b"x");
    net.run_for(SECOND * 5);
    assert_eq!(first_bytes(&take(&net, &reader)), b"x");
    assert!(net.nodes[1].participant.counters().malformed > 0);
    assert_eq!(EntityId::UNKNOWN.0, [0; 4]);
}
