//! The built-in topics of a participant in one table: endpoint discovery, liveliness (RTPS 2.5 §8.5.4, §8.4.13), and the services
//! that its driver registers (docs/decisions/0019-built-in-services.md).
//!
//! A service is matched, repeated and acknowledged like any other built-in topic. The participant does not interpret its payloads:
//! they come from the driver by [`Participant::write_service`](super::Participant::write_service) and go to it as
//! [`Event::ServiceData`](super::Event::ServiceData).

use std::sync::Arc;
use std::time::Duration;

use super::KeyOf;
use crate::discovery::KnownParticipant;
use crate::discovery::challenge::OWN_NUMBERS_FROM;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::participant_data::ParticipantData;
use crate::history::PayloadKind;
use crate::qos::{Durability, History, ReaderQos, Reliability, WriterQos};
use crate::reader::MatchedWriter;
use crate::time::{INFINITE, Instant};
use crate::types::{EntityId, Guid, KeyHash, Keyed, SequenceNumber, VendorId};
use crate::writer::MatchedReader;

/// A built-in topic that a driver registers: reliable, volatile and without a key, with one writer and one reader in each
/// participant that has the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinService {
    /// Id of its writer in every participant: a built-in one of the kind that RTPS 2.5 §9.3.1.2 leaves to vendors.
    pub writer: EntityId,
    /// Id of its reader in every participant, of the same kind.
    pub reader: EntityId,
    /// The participants whose readers our writer is matched with.
    pub writes_to: ServicePeers,
    /// The participants whose writers our reader is matched with.
    pub reads_from: ServicePeers,
    /// Bounds on its samples.
    pub bounds: ServiceBounds,
}

/// The participants that one end of a service is matched with. All but those of a standard service run Thalweg, since other vendors do
/// not know its services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServicePeers {
    /// None, for an end that this participant does not need.
    #[default]
    Nobody,
    /// All.
    Everybody,
    /// Those of any vendor that announce the built-in endpoint of this bit; our own end is then announced by the bit beside it
    /// (RTPS 2.5 §9.3.2.12).
    WithEndpoint(u32),
    /// Those that announce a property.
    Announcing {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// How many at the same time; others are refused and counted in `ParticipantCounters::over_limit`.
        count_max: usize,
    },
}

/// Bounds on the memory and time that a service takes. Samples that arrive beyond them are dropped and counted in
/// `ParticipantCounters::over_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceBounds {
    /// Samples that the writer holds for its peers, and the reader for the driver; newer ones replace older ones.
    pub samples_max: u32,
    /// Most bytes of a payload that is written or handed to the driver.
    pub sample_bytes_max: usize,
    /// Samples that are handed to the driver within a second, of all peers together.
    pub samples_per_second_max: u32,
}

/// Why the driver refuses a sample that it was handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceRefusal {
    /// The driver cannot read it, or it speaks for another participant than its sender.
    Unreadable,
    /// The driver has no room for it.
    OverLimit,
}

/// The content of the samples of a built-in topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopicKind {
    Publications,
    Subscriptions,
    Liveliness,
    /// Known to the driver only.
    Service,
}

/// A row of the table.
#[derive(Debug)]
pub(super) struct BuiltinTopic {
    pub writer: EntityId,
    pub reader: EntityId,
    pub kind: TopicKind,
    /// The QoS of our endpoints and, as the specification or the service fixes it, of every peer's.
    pub writer_qos: Arc<WriterQos>,
    pub reader_qos: Arc<ReaderQos>,
    presence: Presence,
}

/// How a participant announces that it has the endpoints.
#[derive(Debug)]
enum Presence {
    /// By the bit of the writer in what it announces; the reader has the next one (RTPS 2.5 §9.3.2.12).
    Bit(u32),
    Service(Box<Service>),
}

/// A registered service, and its samples of the present second.
#[derive(Debug)]
struct Service {
    config: BuiltinService,
    /// Start of the present second, and the samples that came in it.
    handed: (Instant, u32),
}

/// The built-in topics of a participant.
#[derive(Debug)]
pub(super) struct BuiltinTopics {
    topics: Vec<BuiltinTopic>,
}

/// Round trip assumed between built-in endpoints before the first one is measured: where many participants start together, none
/// answers at once.
const ROUND_TRIP_ASSUMED: Duration = Duration::from_millis(100);

/// The bits of SPDP, which has no row: it is exchanged without matching.
const SPDP_BITS: u32 = 0b11;

const STANDARD: [(EntityId, EntityId, TopicKind, u32); 3] = [
    (EntityId::PUBLICATIONS_WRITER, EntityId::PUBLICATIONS_READER, TopicKind::Publications, 2),
    (EntityId::SUBSCRIPTIONS_WRITER, EntityId::SUBSCRIPTIONS_READER, TopicKind::Subscriptions, 4),
    (EntityId::PARTICIPANT_MESSAGE_WRITER, EntityId::PARTICIPANT_MESSAGE_READER, TopicKind::Liveliness, 10),
];

impl BuiltinTopics {
    /// The topics of the specification, and `services`.
    ///
    /// # Panics When an id of a service belongs to another topic, or is not that of a keyless built-in writer or reader.
    pub(super) fn new(services: &[BuiltinService]) -> BuiltinTopics {
        let standard =
            STANDARD.map(|(writer, reader, kind, bit)| BuiltinTopic::new(writer, reader, kind, Presence::Bit(bit)));
        let mut table = BuiltinTopics { topics: standard.into() };
        for service in services {
            let BuiltinService { writer, reader, .. } = *service;
            let is_legal = writer.is_builtin() && writer.is_writer() && reader.is_builtin() && reader.is_reader();
            let is_keyed = writer.keyed() == Keyed::Yes || reader.keyed() == Keyed::Yes;
            assert!(is_legal && !is_keyed, "{writer} and {reader} are no keyless built-in writer and reader");
            let is_taken = table.of_writer(writer).is_some() || table.of_reader(reader).is_some();
            assert!(!is_taken, "{writer} or {reader} belongs to another built-in topic");
            let presence = Presence::Service(Box::new(Service { config: service.clone(), handed: (Instant::ZERO, 0) }));
            table.topics.push(BuiltinTopic::new(writer, reader, TopicKind::Service, presence));
        }
        table
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &BuiltinTopic> {
        self.topics.iter()
    }

    /// The topics of the specification.
    pub(super) fn standard(&self) -> impl Iterator<Item = &BuiltinTopic> {
        self.iter().filter(|topic| topic.kind != TopicKind::Service)
    }

    pub(super) fn of_writer(&self, writer: EntityId) -> Option<&BuiltinTopic> {
        self.iter().find(|topic| topic.writer == writer)
    }

    pub(super) fn of_reader(&self, reader: EntityId) -> Option<&BuiltinTopic> {
        self.iter().find(|topic| topic.reader == reader)
    }

    /// The set of endpoints that a participant with this table announces (RTPS 2.5 §9.3.2.12).
    pub(super) fn announced(&self) -> u32 {
        self.iter().fold(SPDP_BITS, |set, topic| match &topic.presence {
            Presence::Bit(bit) => set | 0b11 << bit,
            Presence::Service(service) => {
                [&service.config.writes_to, &service.config.reads_from].into_iter().fold(
                    set,
                    |set, peers| match peers {
                        // A service has the same two bits at both ends: the bit of the peer's reader is also that of our own.
                        ServicePeers::WithEndpoint(bit) => set | 1 << bit,
                        _ => set,
                    },
                )
            }
        })
    }

    /// Counts a received sample of a service; true when it may go to the driver.
    pub(super) fn admit(&mut self, now: Instant, reader: EntityId, bytes: usize) -> bool {
        let topic = self.topics.iter_mut().find(|topic| topic.reader == reader);
        let Some(BuiltinTopic { presence: Presence::Service(service), .. }) = topic else { return false };
        let (since, count) = &mut service.handed;
        if now.since(*since) >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        let bounds = service.config.bounds;
        *count <= bounds.samples_per_second_max && bytes <= bounds.sample_bytes_max.next_multiple_of(4)
    }
}

impl BuiltinTopic {
    /// RELIABLE and KEEP_LAST, so that writers never block. Topics of the specification are TRANSIENT_LOCAL with one sample of each
    /// instance; a service is VOLATILE and as deep as its bound.
    fn new(writer: EntityId, reader: EntityId, kind: TopicKind, presence: Presence) -> BuiltinTopic {
        let reliability = Reliability::Reliable { max_blocking_time: INFINITE };
        let (durability, history) = match &presence {
            Presence::Bit(_) => (Durability::TransientLocal, WriterQos::default().history),
            Presence::Service(service) => (Durability::Volatile, History::KeepLast(service.config.bounds.samples_max)),
        };
        let writer_qos = WriterQos { reliability, durability, history, ..WriterQos::default() };
        let reader_qos = ReaderQos { reliability, durability, history, ..ReaderQos::default() };
        BuiltinTopic { writer, reader, kind, writer_qos: writer_qos.into(), reader_qos: reader_qos.into(), presence }
    }

    /// Most bytes of a payload that the driver may write; `None` for a topic that is no service.
    pub(super) fn sample_bytes_max(&self) -> Option<usize> {
        match &self.presence {
            Presence::Bit(_) => None,
            Presence::Service(service) => Some(service.config.bounds.sample_bytes_max),
        }
    }

    /// How many readers our writer may be matched with at once; `None` when the reader of `peer` may not be one of them.
    pub(super) fn readers_max(&self, peer: &ParticipantData) -> Option<usize> {
        match &self.presence {
            Presence::Bit(bit) => (peer.builtin_endpoints >> (bit + 1) & 1 == 1).then_some(usize::MAX),
            Presence::Service(service) => service.config.writes_to.count_max(peer),
        }
    }

    /// How many writers our reader may be matched with at once; `None` when the writer of `peer` may not be one of them.
    pub(super) fn writers_max(&self, peer: &ParticipantData) -> Option<usize> {
        match &self.presence {
            Presence::Bit(bit) => (peer.builtin_endpoints >> bit & 1 == 1).then_some(usize::MAX),
            Presence::Service(service) => service.config.reads_from.count_max(peer),
        }
    }

    /// Finds the instance of a sample: the GUID that discovery data describe, or the first 16 bytes of a participant message.
    /// `None` for a service, which has no key.
    pub(super) fn key_of(&self) -> Option<KeyOf> {
        let kind = self.kind;
        let key_of = move |payload: &[u8], _: PayloadKind| {
            let guid = match kind {
                TopicKind::Publications => PublicationData::decode_key(payload).ok()?.to_bytes(),
                TopicKind::Subscriptions => SubscriptionData::decode_key(payload).ok()?.to_bytes(),
                TopicKind::Liveliness => *payload.get(4..)?.first_chunk::<16>()?,
                TopicKind::Service => return None,
            };
            Some(KeyHash(guid))
        };
        (kind != TopicKind::Service).then(|| Arc::new(key_of) as KeyOf)
    }

    /// The reader of a known participant, to be matched with our writer.
    pub(super) fn matched_reader(&self, known: &KnownParticipant) -> MatchedReader {
        MatchedReader {
            guid: Guid::new(known.data.guid_prefix, self.reader),
            vendor: known.data.vendor,
            reliable: true,
            qos: Arc::clone(&self.reader_qos),
            unicast: known.reach.metatraffic.clone(),
            multicast: None,
            on_this_host: known.reach.on_this_host,
            datagram_bytes: known.reach.datagram_bytes(),
            batches: false,
            round_trip: ROUND_TRIP_ASSUMED,
            receive_buffer_bytes: None,
        }
    }

    /// The writer of a known participant, to be matched with our reader.
    pub(super) fn matched_writer(&self, known: &KnownParticipant) -> MatchedWriter {
        MatchedWriter {
            history: None,
            guid: Guid::new(known.data.guid_prefix, self.writer),
            vendor: known.data.vendor,
            reliable: true,
            qos: Arc::clone(&self.writer_qos),
            greets: known.data.vendor.traits().greets && !known.has_spoken,
            numbers_from: self.numbers_from(known.data.vendor),
            round_trip: ROUND_TRIP_ASSUMED,
            unicast: known.reach.metatraffic.clone(),
        }
    }

    /// The lowest number of a participant's writer.
    fn numbers_from(&self, vendor: VendorId) -> SequenceNumber {
        match self.kind {
            TopicKind::Publications | TopicKind::Subscriptions if vendor.traits().challenges_strangers => {
                OWN_NUMBERS_FROM
            }
            _ => SequenceNumber::FIRST,
        }
    }
}

impl ServicePeers {
    /// How many participants may be matched at once; `None` when `peer` may not be one of them.
    fn count_max(&self, peer: &ParticipantData) -> Option<usize> {
        let has_services = peer.vendor.traits().has_services;
        match self {
            ServicePeers::Nobody => None,
            ServicePeers::WithEndpoint(bit) => (peer.builtin_endpoints >> bit & 1 == 1).then_some(usize::MAX),
            ServicePeers::Everybody => has_services.then_some(usize::MAX),
            ServicePeers::Announcing { name, value, count_max } => {
                let announces = peer.properties.iter().any(|(n, v)| n == name && v == value);
                (has_services && announces).then_some(*count_max)
            }
        }
    }
}
