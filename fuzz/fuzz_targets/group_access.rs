//! A subscriber whose readers are accessed together, and a publisher that tells of its samples whatever the fuzzer wants, in any order: no
//! panic, the participant comes to rest, and nothing new appears while the application looks.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::discovery::endpoint_data::PublicationData;
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::history::ReadFilter;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::{KeySource, Participant, ParticipantConfig, Publications, ReaderConfig};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{AccessScope, History, Presentation, ReaderQos, Reliability, ResourceLimits, WriterQos};
use thalweg_rtps::reader::Reader;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, Keyed, Locator, SequenceNumber};
use thalweg_rtps::wire::parameters::{Belonging, GroupPlace, inline_qos_with};
use thalweg_rtps::wire::write::{self, DataHead, DataKind};
use thalweg_rtps::wire::{AckNack, GroupInfo, Heartbeat, Message, SequenceSet, Submessage};

const PEER: GuidPrefix = GuidPrefix([2; 12]);
/// Datagrams in answer to one step: a participant that sends more has started to talk to itself.
const ANSWERS_MAX: usize = 256;

struct World {
    /// What strangers were asked.
    asked: Vec<Heartbeat>,
    now: Instant,
    participant: Participant,
    subscriber: EntityId,
    readers: Vec<Shared<Reader>>,
    outbox: Outbox,
    count: u32,
    /// Samples in the readers when the application began to look.
    seen: Option<Vec<usize>>,
    /// A sample has no place within its publisher: it is handed over as soon as those before it are there, also while the application looks.
    has_placeless: bool,
}

fn address(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], port))
}

/// HEARTBEATs that tell of no sample.
fn questions_in(datagram: &[u8]) -> Vec<Heartbeat> {
    let Ok(message) = Message::parse(datagram) else { return Vec::new() };
    let heartbeat = |submessage| match submessage {
        Ok(Submessage::Heartbeat(heartbeat)) if heartbeat.last < heartbeat.first => Some(heartbeat),
        _ => None,
    };
    message.submessages().filter_map(heartbeat).collect()
}

fn writer(which: usize) -> EntityId {
    EntityId::user_writer(which as u32 + 1, Keyed::No)
}

impl World {
    fn new(presentation: Presentation) -> World {
        let addresses = LocalAddresses {
            metatraffic_unicast: vec![Locator::from(address(1, 7410))],
            default_unicast: vec![Locator::from(address(1, 7411))],
            interfaces: vec![(address(1, 0).ip(), 24)],
            announce_to: vec![Locator::from(SocketAddr::from(([239, 255, 0, 1], 7400)))],
            ..LocalAddresses::default()
        };
        let now = Instant::from_nanos(1);
        let mut participant = Participant::new(now, ParticipantConfig::new(0, GuidPrefix([1; 12]), addresses));
        let subscriber = participant.create_subscriber();
        let qos = ReaderQos {
            reliability: Reliability::RELIABLE,
            history: History::KeepAll,
            resource_limits: ResourceLimits { max_samples: Some(64), ..ResourceLimits::default() },
            presentation,
            ..ReaderQos::default()
        };
        let mut readers = Vec::new();
        for which in 0..2 {
            let config = ReaderConfig {
                topic_name: format!("topic {which}"),
                type_name: "type".into(),
                keyed: Keyed::No,
                qos: qos.clone().into(),
                keys: KeySource::Wire,
                filter: None,
            };
            let reader = participant.create_reader_in(now, config, Publications::All, Some(subscriber));
            readers.push(reader.expect("a legal QoS"));
        }
        let outbox = Outbox::new();
        let (asked, count, seen, has_placeless) = (Vec::new(), 0, None, false);
        let mut world = World { asked, now, participant, subscriber, readers, outbox, count, seen, has_placeless };
        world.introduce_peer(presentation);
        world
    }

    /// A publisher with a writer for each reader.
    fn introduce_peer(&mut self, presentation: Presentation) {
        let mut data = ParticipantData::new(PEER);
        data.builtin_endpoints = 0xc3f;
        data.locators.metatraffic_unicast = vec![Locator::from(address(2, 7410))];
        data.locators.default_unicast = vec![Locator::from(address(2, 7411))];
        let mut payload = Vec::new();
        data.encode(&mut payload);
        self.tell(EntityId::SPDP_WRITER, 1, &payload);
        let mut out = Vec::new();
        write::header(&mut out, PEER);
        for Heartbeat { reader, writer, first, count, .. } in std::mem::take(&mut self.asked) {
            let state = SequenceSet::new(first);
            write::acknack(&mut out, &AckNack { reader, writer, state, count, is_final: false });
        }
        self.receive(&out);
        for which in 0..2 {
            payload.clear();
            let qos = WriterQos { presentation, ..WriterQos::default() };
            let data = PublicationData::new(Guid::new(PEER, writer(which)), &format!("topic {which}"), "type", qos);
            let group = Some(EntityId::user_publisher(9));
            PublicationData { group, ..data }.encode(&mut payload);
            self.tell(EntityId::PUBLICATIONS_WRITER, which as i64 + 1, &payload);
        }
        assert!(self.readers.iter().all(|reader| reader.lock().matched_writers().len() == 1));
    }

    fn tell(&mut self, writer: EntityId, sequence: i64, payload: &[u8]) {
        let mut out = Vec::new();
        write::header(&mut out, PEER);
        let (reader, sequence) = (EntityId::UNKNOWN, SequenceNumber(sequence));
        write::data(
            &mut out,
            &DataHead { reader, writer, sequence, inline_qos: &[], kind: DataKind::Data },
            payload.len(),
        );
        out.extend_from_slice(payload);
        self.receive(&out);
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.participant.handle_datagram(self.now, &Payload::from(bytes), address(2, 7411));
        self.settle();
    }

    fn sample(&mut self, which: usize, kind: u8, [sequence, number, set, own_set]: [u8; 4]) {
        let number_of = |byte: u8| if byte == 255 { SequenceNumber::UNKNOWN } else { SequenceNumber(i64::from(byte)) };
        let ends = kind & 1 != 0;
        let place = GroupPlace { number: number_of(number), set: number_of(set) };
        if place.number <= SequenceNumber::ZERO || kind & 4 != 0 {
            self.has_placeless = true;
            self.seen = None;
        }
        let belonging = Belonging {
            coherent_set: (kind & 2 != 0).then(|| if ends { SequenceNumber::UNKNOWN } else { number_of(own_set) }),
            group: (kind & 4 == 0).then_some(place),
            ..Belonging::default()
        };
        let (mut inline_qos, mut out) = (Vec::new(), Vec::new());
        inline_qos_with(None, None, belonging, &mut inline_qos);
        write::header(&mut out, PEER);
        let head = DataHead {
            reader: EntityId::UNKNOWN,
            writer: writer(which),
            sequence: SequenceNumber(i64::from(sequence.max(1))),
            inline_qos: &inline_qos,
            kind: if ends { DataKind::None } else { DataKind::Data },
        };
        let payload: &[u8] = if ends { &[] } else { &[0, 1, 0, 0, 1, 2, 3, 4] };
        write::data(&mut out, &head, payload.len());
        out.extend_from_slice(payload);
        self.receive(&out);
    }

    fn heartbeat(&mut self, which: usize, [first, length, current, last]: [u8; 4]) {
        self.count += 1;
        let first = SequenceNumber(i64::from(first.max(1)));
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: writer(which),
            first,
            last: first + (i64::from(length) - 1),
            count: self.count,
            is_final: false,
            liveliness: false,
        };
        let number = |byte| SequenceNumber(i64::from(byte));
        let info = GroupInfo { current: number(current), first: SequenceNumber::ZERO, last: number(last) };
        let mut out = Vec::new();
        write::header(&mut out, PEER);
        write::group_heartbeat(&mut out, &heartbeat, &info);
        self.receive(&out);
    }

    fn settle(&mut self) {
        let mut sent = 0;
        loop {
            self.outbox.clear();
            let more = self.participant.poll_transmit(self.now, &mut self.outbox);
            sent += self.outbox.len();
            if self.participant.strangers() > 0 {
                self.asked.extend(self.outbox.datagrams().flat_map(|datagram| questions_in(&datagram.to_vec())));
            }
            assert!(sent <= ANSWERS_MAX, "the participant does not come to rest");
            if !more || self.outbox.is_empty() {
                break;
            }
        }
        while self.participant.poll_event().is_some() {}
        if let Some(seen) = &self.seen {
            assert_eq!(*seen, self.held(), "something appeared while the application looked");
        }
    }

    fn held(&self) -> Vec<usize> {
        self.readers.iter().map(|reader| reader.lock().cache().len()).collect()
    }

    fn take(&mut self, which: usize, max: usize) {
        let mut samples = Vec::new();
        let now = self.now;
        self.readers[which].lock().take(|| now, max, &ReadFilter::ALL, &mut samples);
        self.seen = self.seen.is_some().then(|| self.held());
    }
}

fuzz_target!(|script: &[u8]| {
    let Some((flags, mut rest)) = script.split_first() else { return };
    let (coherent, ordered) = [(true, false), (false, true), (true, true)][usize::from(flags % 3)];
    let mut world = World::new(Presentation { access_scope: AccessScope::Group, coherent, ordered });
    while let [step, tail @ ..] = rest {
        rest = tail;
        let which = usize::from(step >> 7);
        match step & 7 {
            0..=3 => {
                let Some((numbers, tail)) = rest.split_first_chunk::<4>() else { break };
                rest = tail;
                match step & 7 {
                    3 => world.heartbeat(which, *numbers),
                    _ => world.sample(which, (step >> 3) & 7, *numbers),
                }
            }
            4 => {
                world.now += Duration::from_millis(1 << ((step >> 3) & 7));
                world.participant.handle_timeout(world.now);
                world.settle();
            }
            5 => {
                world.participant.begin_access(world.subscriber);
                world.seen = (!world.has_placeless).then(|| world.held());
            }
            6 => {
                world.seen = None;
                let subscriber = world.subscriber;
                while world.participant.end_access(world.now, subscriber) {}
                world.participant.readers_in_order(subscriber);
                world.settle();
            }
            _ => world.take(which, usize::from((step >> 3) & 15)),
        }
    }
});
