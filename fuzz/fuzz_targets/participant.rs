//! A participant with matched endpoints, fed with datagrams, timeouts, writes and takes in any order: no panic, memory within
//! its bounds, and it always comes to rest.
#![no_main]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::discovery::endpoint_data::{PublicationData, SubscriptionData};
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::history::{ChangeKind, ReadFilter};
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::{KeySource, Participant, ParticipantConfig, ReaderConfig, WriterConfig};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{
    Durability, History, Liveliness, LivelinessKind, ReaderQos, Reliability, ResourceLimits, WriterQos,
};
use thalweg_rtps::reader::Reader;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, Locator, SequenceNumber};
use thalweg_rtps::wire::batch::{AckNackBatch, HeartbeatBatch};
use thalweg_rtps::wire::parameters::inline_qos as inline_qos_list;
use thalweg_rtps::wire::write::{self, DataBatchHead, DataFragHead, DataHead, DataKind};
use thalweg_rtps::wire::{
    AckNack, FragmentSet, Gap, Heartbeat, HeartbeatFrag, Message, NackFrag, SequenceSet, Submessage,
};
use thalweg_rtps::writer::{NewChange, Writer, WriterOptions};

const PEER: GuidPrefix = GuidPrefix([2; 12]);
const REASSEMBLY_BYTES_MAX: usize = 1 << 20;
/// Datagrams in answer to one step: a participant that sends more has started to talk to itself.
const ANSWERS_MAX: usize = 4_096;

fn inline_qos_of(status: Option<u32>, out: &mut Vec<u8>) {
    inline_qos_list(status, status.map(|flags| KeyHash([flags as u8; 16])), out);
}

/// HEARTBEATs that tell of no sample.
fn heartbeats_in(datagram: &[u8]) -> Vec<Heartbeat> {
    let Ok(message) = Message::parse(datagram) else { return Vec::new() };
    let heartbeat = |submessage| match submessage {
        Ok(Submessage::Heartbeat(heartbeat)) if heartbeat.last < heartbeat.first => Some(heartbeat),
        _ => None,
    };
    message.submessages().filter_map(heartbeat).collect()
}

struct World {
    /// What strangers were asked.
    asked: Vec<Heartbeat>,
    now: Instant,
    participant: Participant,
    writers: Vec<Shared<Writer>>,
    readers: Vec<Shared<Reader>>,
    outbox: Outbox,
    /// How many times the peer has announced a writer.
    announcements: i64,
}

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], port))
}

impl World {
    fn new() -> World {
        let addresses = LocalAddresses {
            metatraffic_unicast: vec![Locator::from(address(1, 7410))],
            default_unicast: vec![Locator::from(address(1, 7411))],
            interfaces: vec![(address(1, 0).ip(), 24)],
            announce_to: vec![Locator::from(SocketAddr::from(([239, 255, 0, 1], 7400)))],
            ..LocalAddresses::default()
        };
        let mut config = ParticipantConfig::new(0, GuidPrefix([1; 12]), addresses);
        config.reassembly_bytes_max = REASSEMBLY_BYTES_MAX;
        config.limits.participants_max = 8;
        config.limits.endpoints_per_participant_max = 16;
        let now = Instant::from_nanos(1);
        let mut world = World {
            asked: Vec::new(),
            now,
            participant: Participant::new(now, config),
            writers: Vec::new(),
            readers: Vec::new(),
            outbox: Outbox::new(),
            announcements: 2,
        };
        for (keyed, durability, history) in [
            (Keyed::No, Durability::Volatile, History::KeepAll),
            (Keyed::Yes, Durability::TransientLocal, History::KeepLast(2)),
        ] {
            world.create(keyed, durability, history);
        }
        world.introduce_peer();
        world
    }

    fn create(&mut self, keyed: Keyed, durability: Durability, history: History) {
        let reliability = Reliability::Reliable { max_blocking_time: Duration::ZERO };
        let resource_limits = ResourceLimits { max_samples: Some(64), ..ResourceLimits::default() };
        let topic_name = format!("topic {keyed:?}");
        let writer_qos = WriterQos { reliability, durability, history, resource_limits, ..WriterQos::default() };
        let reader_qos = ReaderQos { reliability, durability, history, resource_limits, ..ReaderQos::default() };
        let writer = WriterConfig {
            topic_name: topic_name.clone(),
            type_name: "type".into(),
            keyed,
            qos: writer_qos.into(),
            options: WriterOptions::default(),
        };
        let reader = ReaderConfig {
            topic_name,
            type_name: "type".into(),
            keyed,
            qos: reader_qos.into(),
            keys: KeySource::Function(Arc::new(|payload: &[u8], _| Some(KeyHash([*payload.get(4)?; 16])))),
            filter: None,
        };
        self.writers.push(self.participant.create_writer(self.now, writer).expect("a legal QoS"));
        self.readers.push(self.participant.create_reader(self.now, reader).expect("a legal QoS"));
    }

    /// A peer with a writer and a reader for each of ours, so that the fuzzer need not find out how to be discovered.
    fn introduce_peer(&mut self) {
        let mut data = ParticipantData::new(PEER);
        data.builtin_endpoints = 0xc3f;
        data.locators.metatraffic_unicast = vec![Locator::from(address(2, 7410))];
        data.locators.default_unicast = vec![Locator::from(address(2, 7411))];
        let mut payload = Vec::new();
        data.encode(&mut payload);
        self.tell(EntityId::SPDP_WRITER, 1, &payload);
        self.prove_address();
        for (number, keyed) in [(1, Keyed::No), (2, Keyed::Yes)] {
            let (writer, reader) = (&self.writers[number - 1], &self.readers[number - 1]);
            let topic = format!("topic {keyed:?}");
            let own_writer = writer.lock().guid();
            let own_reader = reader.lock().guid();
            let find_writer =
                |p: &Participant| p.publications().find(|k| k.data.guid == own_writer).map(|k| k.data.qos.clone());
            let find_reader =
                |p: &Participant| p.subscriptions().find(|k| k.data.guid == own_reader).map(|k| k.data.qos.clone());
            let writer_qos = find_writer(&self.participant).expect("ours");
            let reader_qos = find_reader(&self.participant).expect("ours");
            let mut payload = Vec::new();
            let guid = Guid::new(PEER, EntityId::user_writer(number as u32, keyed));
            PublicationData::new(guid, &topic, "type", writer_qos).encode(&mut payload);
            self.tell(EntityId::PUBLICATIONS_WRITER, number as i64, &payload);
            payload.clear();
            let guid = Guid::new(PEER, EntityId::user_reader(number as u32, keyed));
            SubscriptionData::new(guid, &topic, "type", reader_qos).encode(&mut payload);
            self.tell(EntityId::SUBSCRIPTIONS_WRITER, number as i64, &payload);
        }
        assert!(self.readers.iter().all(|reader| reader.lock().matched_writers().len() == 2));
    }

    /// The peer announces another LIVELINESS of a writer: any lease, since nobody keeps it from that.
    fn announce_lease(&mut self, which: usize, argument: u8) {
        let keyed = if which == 0 { Keyed::No } else { Keyed::Yes };
        let guid = Guid::new(PEER, EntityId::user_writer(which as u32 + 1, keyed));
        let Some(known) = self.participant.publications().find(|known| known.data.guid == guid) else { return };
        let mut data = PublicationData::clone(&known.data);
        let kinds = [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
        let leases = [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(10), Duration::from_secs(1)];
        let (kind, lease) = (kinds[usize::from(argument >> 3) % 3], leases[usize::from(argument >> 1) % 4]);
        Arc::make_mut(&mut data.qos).liveliness = Liveliness { kind, lease };
        self.announcements += 1;
        let mut payload = Vec::new();
        data.encode(&mut payload);
        self.tell(EntityId::PUBLICATIONS_WRITER, self.announcements, &payload);
    }

    /// Answers what the participant has asked the peer's readers of discovery.
    fn prove_address(&mut self) {
        let mut out = Vec::new();
        write::header(&mut out, PEER);
        for heartbeat in std::mem::take(&mut self.asked) {
            let Heartbeat { reader, writer, first, count, .. } = heartbeat;
            let state = SequenceSet::new(first);
            write::acknack(&mut out, &AckNack { reader, writer, state, count, is_final: false });
        }
        self.receive(&out);
        assert_eq!(self.participant.participants().count(), 1, "the peer has proved its address");
    }

    fn tell(&mut self, writer: EntityId, sequence: i64, payload: &[u8]) {
        let mut out = Vec::new();
        write::header(&mut out, PEER);
        let sequence = SequenceNumber(sequence);
        let head = DataHead { reader: EntityId::UNKNOWN, writer, sequence, inline_qos: &[], kind: DataKind::Data };
        write::data(&mut out, &head, payload.len());
        out.extend_from_slice(payload);
        self.receive(&out);
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.participant.handle_datagram(self.now, &Payload::from(bytes), address(2, 7411));
        self.settle();
    }

    /// A well-formed submessage of the peer's endpoints with small numbers: raw bytes seldom get that far.
    fn submessage(&mut self, kind: u8, which: usize, flags: u8, numbers: [u8; 4]) {
        let keyed = if which == 0 { Keyed::No } else { Keyed::Yes };
        let writer = EntityId::user_writer(which as u32 + 1, keyed);
        let reader = EntityId::user_reader(which as u32 + 1, keyed);
        let own_writer = self.writers[which].lock().guid().entity;
        let [a, b, c, d] = numbers.map(i64::from);
        let sequence = SequenceNumber(a.max(1));
        let to_all = EntityId::UNKNOWN;
        let count = d as u32 + 1;
        let mut set = SequenceSet::new(SequenceNumber(b.max(1)));
        (0..8).filter(|bit| c & (1 << bit) != 0).for_each(|bit| {
            set.insert(set.base() + bit * 3);
        });
        let mut out = Vec::new();
        write::header(&mut out, PEER);
        match kind {
            0 => {
                let kind = if flags & 4 == 0 { DataKind::Data } else { DataKind::Key };
                let mut inline_qos = Vec::new();
                let status = (flags & 8 != 0).then_some(u32::from(flags >> 4));
                inline_qos_of(status, &mut inline_qos);
                let head = DataHead { reader: to_all, writer, sequence, inline_qos: &inline_qos, kind };
                write::data(&mut out, &head, 8);
                out.extend([0, 1, 0, 0, numbers[1] & 3, 0, 0, 0]);
            }
            1 | 2 => {
                let head = DataFragHead {
                    reader: to_all,
                    writer,
                    sequence,
                    first_fragment: (b as u32 % 8) + 1,
                    fragments: 1,
                    fragment_size: 16,
                    sample_size: 16 * 8 + u32::from(flags >> 4),
                    inline_qos: &[],
                    key: false,
                };
                write::data_frag(&mut out, &head, 16);
                out.extend([numbers[2] & 3; 16]);
            }
            3 => write::gap(&mut out, &Gap { reader: to_all, writer, start: sequence, list: set }),
            4 => {
                let (first, last) = (sequence, sequence + (b - 1));
                let is_final = flags & 4 != 0;
                let heartbeat = Heartbeat { reader: to_all, writer, first, last, count, is_final, liveliness: false };
                write::heartbeat(&mut out, &heartbeat);
            }
            5 => {
                let last_fragment = b as u32 + 1;
                write::heartbeat_frag(
                    &mut out,
                    &HeartbeatFrag { reader: to_all, writer, sequence, last_fragment, count },
                );
            }
            6 => {
                let acknack = AckNack { reader, writer: own_writer, state: set, count, is_final: flags & 4 != 0 };
                write::acknack(&mut out, &acknack);
            }
            8 => {
                let count = c as u32 % 9 + 1;
                let batch = SequenceNumber(b.max(1));
                let head = DataBatchHead { reader: to_all, writer, batch, first: sequence, count };
                write::data_batch(&mut out, &head, count as usize * write::BATCH_SAMPLE_LEN, count as usize * 4);
                let timestamp = Timestamp { seconds: 1, fraction: 0 };
                (0..count).for_each(|_| write::batch_sample(&mut out, timestamp, 4));
                out.extend([0, 1, 0, 0]);
                (0..count).for_each(|_| out.extend([numbers[1] & 3, 0, 0, 0]));
            }
            9 => {
                let (first, last) = (sequence, sequence + (b - 1));
                let (first_batch, last_batch) = (SequenceNumber(c.max(1)), SequenceNumber(c.max(1) + (b - 1)));
                let is_final = flags & 4 != 0;
                let heartbeat = Heartbeat { reader: to_all, writer, first, last, count, is_final, liveliness: false };
                write::heartbeat_batch(&mut out, &HeartbeatBatch { first_batch, last_batch, heartbeat });
            }
            10 => {
                let is_final = flags & 4 != 0;
                let acknack = AckNackBatch { reader, writer: own_writer, state: set, count, is_final };
                write::acknack_batch(&mut out, &acknack);
            }
            _ => {
                let mut state = FragmentSet::new(b as u32 + 1);
                (0..8).filter(|bit| c & (1 << bit) != 0).for_each(|bit| {
                    state.insert(state.base() + bit);
                });
                write::nack_frag(&mut out, &NackFrag { reader, writer: own_writer, sequence, state, count });
            }
        }
        self.receive(&out);
    }

    fn settle(&mut self) {
        let mut sent = 0;
        loop {
            self.outbox.clear();
            let more = self.participant.poll_transmit(self.now, &mut self.outbox);
            sent += self.outbox.len();
            if self.participant.strangers() > 0 {
                self.asked.extend(self.outbox.datagrams().flat_map(|datagram| heartbeats_in(&datagram.to_vec())));
            }
            assert!(sent <= ANSWERS_MAX, "the participant does not come to rest");
            if !more || self.outbox.is_empty() {
                break;
            }
        }
        while self.participant.poll_event().is_some() {}
        assert!(self.participant.reassembly_bytes() <= REASSEMBLY_BYTES_MAX);
    }

    fn write(&mut self, which: usize, kind: ChangeKind, key: u8, len: usize) {
        let mut payload = vec![0; 4 + len.max(1)];
        payload[4] = key;
        let instance = if which == 1 { KeyHash([key; 16]) } else { KeyHash::default() };
        let change = NewChange { kind, instance, timestamp: None, payload: Payload::from(payload) };
        let entity = {
            let mut writer = self.writers[which].lock();
            let _ = writer.write(self.now, change);
            writer.guid().entity
        };
        self.participant.rearm(entity, self.now);
        self.settle();
    }

    fn take(&mut self, which: usize, max: usize) {
        let mut samples = Vec::new();
        let mut reader = self.readers[which].lock();
        let now = self.now;
        let outcome = reader.take(|| now, max, &ReadFilter::ALL, &mut samples);
        let entity = reader.guid().entity;
        drop(reader);
        if let Some(at) = outcome.arm {
            self.participant.rearm(entity, at);
        }
        self.settle();
    }
}

fuzz_target!(|script: &[u8]| {
    let mut world = World::new();
    let mut rest = script;
    while let [step, argument, tail @ ..] = rest {
        rest = tail;
        let which = usize::from(argument & 1);
        match step % 16 {
            8..=15 => {
                let Some((numbers, tail)) = rest.split_first_chunk::<4>() else { break };
                rest = tail;
                let kind = if step & 0x40 == 0 { step & 7 } else { 8 + (step & 7) % 3 };
                world.submessage(kind, which, *argument, *numbers);
            }
            // What follows is a datagram of our peer, or of whoever it says.
            0..=3 => {
                let len = (usize::from(*argument) * 4).min(rest.len());
                let (body, tail) = rest.split_at(len);
                rest = tail;
                if step & 0x80 != 0 {
                    world.receive(body);
                } else {
                    let mut bytes = Vec::new();
                    write::header(&mut bytes, PEER);
                    bytes.extend_from_slice(body);
                    world.receive(&bytes);
                }
            }
            4 => {
                world.now += Duration::from_millis(1 << (argument % 16));
                world.participant.handle_timeout(world.now);
                world.settle();
            }
            5 => world.take(which, usize::from(*argument)),
            6 => {
                let kind = if which == 1 && argument & 2 != 0 { ChangeKind::Dispose } else { ChangeKind::Write };
                world.write(which, kind, argument >> 4, usize::from(*argument));
            }
            _ if step & 0x80 != 0 => world.announce_lease(which, *argument),
            _ => world.write(0, ChangeKind::Write, 0, usize::from(*argument) * 100),
        }
    }
});
