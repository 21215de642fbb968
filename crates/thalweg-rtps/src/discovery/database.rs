//! Data of remote participants and endpoints, and of our own endpoints for matching among themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::endpoint_data::{PublicationData, SubscriptionData};
use super::participant_data::ParticipantData;
use super::reach::Reach;
use super::topic_index::TopicIndex;
use crate::qos::{AttachedData, ReaderQos, WriterQos};
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, HistoryIdentity};
use crate::wire::WireError;

/// A participant that has proved its address, or this one.
#[derive(Clone, Debug)]
pub struct KnownParticipant {
    /// Its last announcement, serialised: the same bytes again only prove that it is alive. Empty if it was too long to be kept.
    pub announced: Arc<[u8]>,
    /// Its announced data; participants of the same process share one copy.
    pub data: Arc<ParticipantData>,
    /// The addresses at which it is reached.
    pub reach: Reach,
    /// The end of its lease.
    pub lease_until: Instant,
    /// When a datagram last came from any of its addresses.
    pub alive_at: Instant,
    /// When a datagram last came from an address that it has proved.
    pub heard_at: Instant,
    /// Whether it sent endpoint discovery before it was known, which it has to repeat.
    pub has_spoken: bool,
}

/// Longest lease that an announcement is granted.
pub(crate) const LEASE_MAX: Duration = Duration::from_secs(3_600);

impl KnownParticipant {
    /// A participant whose lease does not end: this one.
    pub fn new(data: ParticipantData, reach: Reach) -> KnownParticipant {
        KnownParticipant {
            announced: Arc::default(),
            data: Arc::new(data),
            reach,
            lease_until: Instant::NEVER,
            alive_at: Instant::ZERO,
            heard_at: Instant::ZERO,
            has_spoken: false,
        }
    }

    /// Renews its lease. The lease of this participant does not end.
    pub fn renew_lease(&mut self, now: Instant) {
        self.alive_at = self.alive_at.max(now);
        if self.lease_until != Instant::NEVER {
            self.lease_until = now + self.data.lease_duration.min(LEASE_MAX);
        }
    }
}

/// A remote or own endpoint, with the local endpoints that are matched with it.
#[derive(Clone, Debug)]
pub struct Known<D> {
    /// Its announced data; participants of the same process share one copy.
    pub data: Arc<D>,
    /// Entity ids of the matched local endpoints.
    pub matched: Vec<EntityId>,
    /// Its history goes on under an endpoint that was found later: it matches nobody else.
    pub is_superseded: bool,
    /// Bytes of memory that count for it.
    bytes: usize,
}

/// A writer or reader that is read from its announcement and filed by its GUID.
pub trait EndpointData: PartialEq + Sized {
    /// Its GUID.
    fn guid(&self) -> Guid;

    /// Name of its topic.
    fn topic_name(&self) -> &str;

    /// The history that it goes on with, if that may have had another endpoint before.
    fn history(&self) -> Option<HistoryIdentity> {
        None
    }

    /// Bytes of memory on the heap.
    fn heap_bytes(&self) -> usize;

    /// Reads an announcement.
    ///
    /// # Errors
    /// When it is malformed or must not be used.
    fn from_announcement(payload: &[u8]) -> Result<Self, WireError>;
}

impl EndpointData for PublicationData {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn topic_name(&self) -> &str {
        &self.topic_name
    }

    fn history(&self) -> Option<HistoryIdentity> {
        self.history
    }

    fn heap_bytes(&self) -> usize {
        let PublicationData { topic_name, type_name, entity_name, qos, unicast, multicast, .. } = self;
        let WriterQos { attached, partition, data_representation, .. } = &**qos;
        size_of_val(&**qos)
            + bytes_beside([topic_name, type_name, entity_name], attached, partition)
            + self.type_information.as_deref().map_or(0, <[u8]>::len)
            + vec_bytes(data_representation)
            + vec_bytes(unicast)
            + vec_bytes(multicast)
    }

    fn from_announcement(payload: &[u8]) -> Result<Self, WireError> {
        PublicationData::decode(payload)
    }
}

impl EndpointData for SubscriptionData {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn topic_name(&self) -> &str {
        &self.topic_name
    }

    fn heap_bytes(&self) -> usize {
        let SubscriptionData { topic_name, type_name, entity_name, qos, unicast, multicast, filter, .. } = self;
        let ReaderQos { attached, partition, data_representation, .. } = &**qos;
        size_of_val(&**qos)
            + bytes_beside([topic_name, type_name, entity_name], attached, partition)
            + self.type_information.as_deref().map_or(0, <[u8]>::len)
            + vec_bytes(data_representation)
            + vec_bytes(unicast)
            + vec_bytes(multicast)
            + filter.as_ref().map_or(0, |filter| size_of_val(&**filter) + filter.heap_bytes())
    }

    fn from_announcement(payload: &[u8]) -> Result<Self, WireError> {
        SubscriptionData::decode(payload)
    }
}

/// Bytes of memory of an endpoint's texts on the heap.
fn bytes_beside(names: [&String; 3], attached: &AttachedData, partition: &[String]) -> usize {
    let AttachedData { user, topic, group } = attached;
    names.iter().map(|name| name.capacity()).sum::<usize>()
        + [user, topic, group].iter().map(|bytes| bytes.capacity()).sum::<usize>()
        + partition.iter().map(|name| size_of::<String>() + name.capacity()).sum::<usize>()
}

fn vec_bytes<T>(held: &Vec<T>) -> usize {
    held.capacity() * size_of::<T>()
}

/// The effect of an announcement of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It is known already.
    Nothing,
    /// It is new or has changed.
    News(Guid),
    /// It is malformed, must not be used, or speaks for another participant.
    Unusable,
    /// There is no room for it.
    OverLimit(DiscoveryLimit),
}

/// Endpoints of one kind, ordered by GUID so that those of a participant are neighbours.
#[derive(Debug)]
pub struct EndpointTable<D> {
    known: BTreeMap<Guid, Known<D>>,
    topics: TopicIndex,
    /// The number of endpoints of each participant, and their memory.
    shares: BTreeMap<GuidPrefix, Share>,
    /// Bytes of memory of all endpoints.
    bytes: usize,
}

/// The share of one participant in a table.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    endpoints: usize,
    bytes: usize,
}

/// Bytes that count for an endpoint besides its data: its place in the table, and its matches.
const PLACE_BYTES: usize = 128;

impl<D> Default for EndpointTable<D> {
    fn default() -> Self {
        EndpointTable { known: BTreeMap::new(), topics: TopicIndex::default(), shares: BTreeMap::new(), bytes: 0 }
    }
}

impl<D: EndpointData> EndpointTable<D> {
    /// Stores an endpoint; matches of an earlier version stay. A new one supersedes others of its history.
    pub fn insert(&mut self, data: impl Into<Arc<D>>) {
        let data = data.into();
        let (guid, bytes) = (data.guid(), Self::charge(&data));
        let before = self.remove(guid).map(|known| (known.matched, known.is_superseded));
        if before.is_none() && data.history().is_some() {
            self.supersede(&data);
        }
        let (matched, is_superseded) = before.unwrap_or_default();
        self.topics.insert(data.topic_name(), guid);
        self.known.insert(guid, Known { data, matched, is_superseded, bytes });
        self.bytes += bytes;
        let share = self.shares.entry(guid.prefix).or_default();
        share.endpoints += 1;
        share.bytes += bytes;
    }

    /// The history of others on its topic goes on under `next`.
    fn supersede(&mut self, next: &D) {
        for guid in self.topics.of_topic(next.topic_name()) {
            if let Some(known) = self.known.get_mut(guid).filter(|known| known.data.history() == next.history()) {
                known.is_superseded = true;
            }
        }
    }

    fn charge(data: &D) -> usize {
        size_of::<Known<D>>()
            + size_of::<D>()
            + PLACE_BYTES
            + data.heap_bytes()
            + TopicIndex::bytes_for(data.topic_name())
    }

    /// Bytes of memory that count for the endpoints of a participant.
    pub fn bytes_of(&self, participant: GuidPrefix) -> usize {
        self.share_of(participant).bytes
    }

    fn share_of(&self, participant: GuidPrefix) -> Share {
        self.shares.get(&participant).copied().unwrap_or_default()
    }

    /// Files the announcement of an endpoint of `participant`, which may have `count_max` endpoints, and `room` more bytes.
    pub fn learn(&mut self, participant: GuidPrefix, count_max: usize, room: usize, payload: &[u8]) -> Learned {
        match D::from_announcement(payload) {
            Ok(data) if data.guid().prefix == participant => self.learn_data(count_max, room, Arc::new(data)),
            _ => Learned::Unusable,
        }
    }

    /// As [`EndpointTable::learn`] for decoded data.
    pub fn learn_data(&mut self, count_max: usize, room: usize, data: Arc<D>) -> Learned {
        let (guid, participant) = (data.guid(), data.guid().prefix);
        let before = self.known.get(&guid).map_or(0, |known| known.bytes);
        match self.known.get(&guid) {
            Some(known) if known.data == data => return Learned::Nothing,
            _ if Self::charge(&data) > room.saturating_add(before) => {
                return Learned::OverLimit(DiscoveryLimit::Memory);
            }
            None if self.share_of(participant).endpoints >= count_max => {
                return Learned::OverLimit(DiscoveryLimit::Endpoints);
            }
            _ => self.insert(data),
        }
        Learned::News(guid)
    }

    /// The endpoint with this GUID.
    pub fn get(&self, guid: Guid) -> Option<&Known<D>> {
        self.known.get(&guid)
    }

    /// The endpoint with this GUID, to change its matches.
    pub fn get_mut(&mut self, guid: Guid) -> Option<&mut Known<D>> {
        self.known.get_mut(&guid)
    }

    /// Forgets an endpoint.
    pub fn remove(&mut self, guid: Guid) -> Option<Known<D>> {
        let known = self.known.remove(&guid)?;
        self.topics.remove(known.data.topic_name(), guid);
        self.bytes -= known.bytes;
        if let Some(share) = self.shares.get_mut(&guid.prefix) {
            share.endpoints -= 1;
            share.bytes -= known.bytes;
            if share.endpoints == 0 {
                self.shares.remove(&guid.prefix);
            }
        }
        Some(known)
    }

    /// GUIDs of all endpoints on a topic, in their order.
    pub fn of_topic(&self, topic: &str) -> &[Guid] {
        self.topics.of_topic(topic)
    }

    /// GUIDs of the endpoints of one participant on a topic.
    pub fn of_topic_in(&self, topic: &str, participant: GuidPrefix) -> &[Guid] {
        self.topics.of_participant(topic, participant)
    }

    /// All endpoints in the order of their GUIDs.
    pub fn iter(&self) -> impl Iterator<Item = &Known<D>> {
        self.known.values()
    }

    /// GUIDs of all endpoints of a participant.
    pub fn of_participant(&self, prefix: GuidPrefix) -> impl Iterator<Item = Guid> {
        let first = Guid::new(prefix, EntityId([0; 4]));
        let last = Guid::new(prefix, EntityId([0xff; 4]));
        self.known.range(first..=last).map(|(guid, _)| *guid)
    }
}

/// Bounds on the memory that peers can make discovery use, chosen by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoveryLimits {
    /// Remote participants; default 2,000. More are ignored and counted.
    pub participants_max: usize,
    /// Endpoints of each kind of one remote participant; default 16,384, about as many as its bytes allow.
    pub endpoints_per_participant_max: usize,
    /// Memory for the announced endpoints of one remote participant; default 16 MiB.
    pub bytes_per_participant_max: usize,
    /// Memory for the announced endpoints of all participants; default 128 MiB.
    pub bytes_max: usize,
}

/// The one of the [`DiscoveryLimits`] that refused something; it is displayed as the name of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryLimit {
    /// Remote participants.
    Participants,
    /// Writers, or readers, of one remote participant.
    Endpoints,
    /// Memory for the endpoints of one remote participant, or of all.
    Memory,
}

impl fmt::Display for DiscoveryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DiscoveryLimit::Participants => "participants_max",
            DiscoveryLimit::Endpoints => "endpoints_per_participant_max",
            DiscoveryLimit::Memory => "bytes_per_participant_max or bytes_max",
        })
    }
}

impl Default for DiscoveryLimits {
    fn default() -> DiscoveryLimits {
        DiscoveryLimits {
            participants_max: 2_000,
            endpoints_per_participant_max: 16_384,
            bytes_per_participant_max: 16 << 20,
            bytes_max: 128 << 20,
        }
    }
}

/// The participants and endpoints that discovery has found.
#[derive(Debug, Default)]
pub struct Database {
    /// Participants, our own included.
    pub participants: BTreeMap<GuidPrefix, KnownParticipant>,
    /// Writers, our own included.
    pub publications: EndpointTable<PublicationData>,
    /// Readers, our own included.
    pub subscriptions: EndpointTable<SubscriptionData>,
    /// Its limits.
    pub limits: DiscoveryLimits,
}

impl Database {
    /// An empty database.
    pub fn new(limits: DiscoveryLimits) -> Database {
        Database { limits, ..Database::default() }
    }

    /// Bytes that one more endpoint of a participant may take.
    pub fn room_for(&self, participant: GuidPrefix) -> usize {
        let own = self.publications.bytes_of(participant) + self.subscriptions.bytes_of(participant);
        let all = self.publications.bytes + self.subscriptions.bytes;
        let own_room = self.limits.bytes_per_participant_max.saturating_sub(own);
        own_room.min(self.limits.bytes_max.saturating_sub(all))
    }

    /// The earliest end of a lease.
    pub fn next_lease_end(&self) -> Option<Instant> {
        self.participants.values().map(|participant| participant.lease_until).min()
    }
}
