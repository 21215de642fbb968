//! Access to the readers of one subscriber together: samples in the order of their publisher, sets that appear in all readers at once,
//! and a view that stands still while the application looks at it (DDS 1.4 §2.2.3.6, §2.2.2.5.2.8).

mod handing_over;
mod publisher_order;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::Participant;
use super::endpoints::Endpoints;
use super::entity_keys::EntityKeys;
use crate::history::BYTES_DEFAULT;
use crate::qos::Presentation;
use crate::reader::{GroupArrival, Reader};
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, SequenceNumber};
use crate::wire::{GroupInfo, Heartbeat};
use crate::writer::PublisherGroup;
use handing_over::room_for;
use publisher_order::{Next, Pair, PublisherOrder, Released};

/// A publisher: that of another participant, or a writer that tells of none.
type Publisher = (GuidPrefix, EntityId);

/// The subscribers whose readers are accessed together.
#[derive(Default)]
pub(super) struct GroupAccess {
    subscribers: BTreeMap<EntityId, SubscriberAccess>,
    subscriber_of: BTreeMap<EntityId, EntityId>,
    /// How often the application has begun to look, by subscriber, which may have no reader yet.
    accesses: BTreeMap<EntityId, u32>,
    /// Samples that came since the last call of [`Participant::settle_access`], with their readers.
    arrived: Vec<(EntityId, GroupArrival)>,
    /// Readers of subscribers that may have something to release or to ask for.
    touched: Vec<EntityId>,
    /// Those of them that may have room that they had not.
    freed: BTreeSet<EntityId>,
}

/// One subscriber.
struct SubscriberAccess {
    presentation: Presentation,
    /// Its readers, and whether they have a content filter.
    readers: BTreeMap<EntityId, bool>,
    publishers: BTreeMap<Publisher, PublisherOrder>,
    /// How many times the application has begun to look.
    accesses: u32,
    /// The order of samples that were handed over and may not be taken yet.
    places: BTreeMap<(EntityId, Guid, SequenceNumber), u64>,
    next_place: u64,
    /// Places from which on those of taken samples are looked for.
    sweep_at: usize,
}

/// Places that are remembered before those of taken samples are looked for.
const SWEEP_MIN: usize = 4_096;

impl GroupAccess {
    /// Adds a reader to a subscriber, which begins with its first one.
    pub(super) fn add_reader(
        &mut self,
        subscriber: EntityId,
        reader: EntityId,
        presentation: Presentation,
        is_filtered: bool,
    ) {
        self.subscriber_of.insert(reader, subscriber);
        let accesses = self.accesses.get(&subscriber).copied().unwrap_or_default();
        let access = self.subscribers.entry(subscriber).or_insert_with(|| SubscriberAccess::new(presentation));
        access.accesses = accesses;
        access.readers.insert(reader, is_filtered);
    }

    pub(super) fn remove_reader(&mut self, reader: EntityId) {
        let Some(subscriber) = self.subscriber_of.remove(&reader) else { return };
        let Some(access) = self.subscribers.get_mut(&subscriber) else { return };
        access.readers.remove(&reader);
        access.publishers.values_mut().for_each(|publisher| publisher.remove_reader(reader));
        access.publishers.retain(|_, publisher| publisher.has_pairs() || publisher.holds_any());
        if access.readers.is_empty() {
            self.subscribers.remove(&subscriber);
        } else {
            self.touched.extend(access.readers.keys().next());
        }
    }

    fn has_news(&self) -> bool {
        !self.arrived.is_empty() || !self.touched.is_empty()
    }

    fn of_reader(&mut self, reader: EntityId) -> Option<&mut SubscriberAccess> {
        self.subscribers.get_mut(self.subscriber_of.get(&reader)?)
    }

    pub(super) fn add_pair(&mut self, publisher: Publisher, writer: Guid, reader: EntityId) {
        let Some(access) = self.of_reader(reader) else { return };
        let is_filtered = access.readers.get(&reader).copied().unwrap_or_default();
        let presentation = access.presentation;
        let order = access.publishers.entry(publisher);
        order
            .or_insert_with(|| PublisherOrder::new(presentation, BYTES_DEFAULT))
            .add_pair((writer, reader), is_filtered);
    }

    pub(super) fn remove_pair(&mut self, writer: Guid, reader: EntityId) {
        let Some(access) = self.of_reader(reader) else { return };
        access.publishers.values_mut().for_each(|publisher| publisher.remove_pair((writer, reader)));
        self.touched.push(reader);
    }

    /// Samples of a reader came into the order of their writers.
    pub(super) fn note_arrivals(&mut self, reader: EntityId, arrivals: Vec<GroupArrival>) {
        self.arrived.extend(arrivals.into_iter().map(|arrival| (reader, arrival)));
    }

    fn handle(&mut self, reader: EntityId, arrival: GroupArrival) {
        let Some(access) = self.of_reader(reader) else { return };
        let pair = (arrival.sample.writer, reader);
        if let Some(publisher) = access.publisher_of(pair) {
            publisher.handle(reader, arrival);
            self.touched.push(reader);
        }
    }

    fn note_up_to(&mut self, pair: Pair, number: SequenceNumber) {
        if let Some(publisher) = self.of_reader(pair.1).and_then(|access| access.publisher_of(pair)) {
            publisher.note_up_to(pair, number);
            self.touched.push(pair.1);
        }
    }
}

impl SubscriberAccess {
    fn new(presentation: Presentation) -> SubscriberAccess {
        SubscriberAccess {
            presentation,
            readers: BTreeMap::new(),
            publishers: BTreeMap::new(),
            accesses: 0,
            places: BTreeMap::new(),
            next_place: 0,
            sweep_at: SWEEP_MIN,
        }
    }

    fn publisher_of(&mut self, pair: Pair) -> Option<&mut PublisherOrder> {
        self.publishers.values_mut().find(|publisher| publisher.has_pair(pair))
    }

    /// What is next to be handed over of a publisher, unless the application looks at what is there. What waits for room is weighed again
    /// only where one of the readers that have none may have got as much.
    fn next_of(&mut self, publisher: Publisher, freed: &BTreeSet<EntityId>, endpoints: &Endpoints) -> Next {
        let Some(order) = self.publishers.get_mut(&publisher) else { return Next::Nobody };
        // Memory comes before a view that stands still, and before room.
        if self.accesses > 0 && !order.is_full() {
            order.awaited.clear();
            return if order.is_held { Next::AwaitsRoom } else { Next::Nobody };
        }
        if order.is_held && !order.is_full() && !order.awaited.is_empty() {
            let lacks = |reader: &EntityId, count: &mut usize| {
                let shared = endpoints.reader(*reader);
                !freed.contains(reader) || shared.is_some_and(|shared| shared.lock().lacks_places(*count))
            };
            order.awaited.retain(lacks);
            if !order.awaited.is_empty() {
                return Next::AwaitsRoom;
            }
        }
        let mut awaited = BTreeMap::new();
        let next = order.next(|samples| room_for(endpoints, samples, &mut awaited));
        // What has no room at all, or is one of too many, waits for nobody.
        order.awaited = if matches!(next, Next::AwaitsRoom) { awaited } else { BTreeMap::new() };
        next
    }

    /// Gives up what is too much, and forgets publishers of which nothing is left.
    fn tidy(&mut self) -> Vec<Released> {
        let mut released = Vec::new();
        self.give_up_beyond(BYTES_DEFAULT, &mut released);
        self.publishers.retain(|_, publisher| publisher.has_pairs() || publisher.holds_any());
        released
    }

    /// Remembers the order of samples that are handed over.
    fn note_places(&mut self, released: &[Released]) {
        for one in released {
            if let Released::Sample(reader, sample) = one {
                self.places.insert((*reader, sample.writer, sample.sequence), self.next_place);
                self.next_place += 1;
            }
        }
    }
}

impl SubscriberAccess {
    /// All publishers together hold no more than this: there may be as many as others have writers. The one that holds most gives up.
    fn give_up_beyond(&mut self, bytes_max: usize, released: &mut Vec<Released>) {
        let mut total: usize = self.publishers.values().map(PublisherOrder::bytes).sum();
        while total > bytes_max {
            let Some(fullest) = self.publishers.values_mut().max_by_key(|publisher| publisher.bytes()) else { return };
            let before = fullest.bytes();
            fullest.release_to(before.saturating_sub(total - bytes_max), released);
            let freed = before - fullest.bytes();
            if freed == 0 {
                return;
            }
            total -= freed;
        }
    }
}

impl Participant {
    /// The group of a new publisher, whose writers have one order or sets in common.
    pub fn create_publisher(&mut self) -> PublisherGroup {
        let (own, database) = (self.config.prefix, &self.database);
        let is_free = |key| {
            let publisher = Some(EntityId::user_publisher(key));
            let mut publications = database.publications.iter();
            publications.all(|known| known.data.guid.prefix != own || known.data.group != publisher)
        };
        // Without a free key there is no room for a writer either.
        let key = self.endpoints.next_key(is_free).unwrap_or(EntityKeys::MAX);
        PublisherGroup::new(EntityId::user_publisher(key))
    }

    /// The name of a new subscriber, whose readers are accessed together.
    pub fn create_subscriber(&mut self) -> EntityId {
        let access = &self.access;
        let is_free = |key| {
            let subscriber = EntityId::user_subscriber(key);
            !access.subscribers.contains_key(&subscriber) && !access.accesses.contains_key(&subscriber)
        };
        EntityId::user_subscriber(self.endpoints.next_key(is_free).unwrap_or(EntityKeys::MAX))
    }

    /// From now on until as many calls of [`Participant::end_access`], nothing new appears in the readers of a subscriber whose
    /// PRESENTATION spans them (DDS 1.4 §2.2.2.5.2.8).
    pub fn begin_access(&mut self, subscriber: EntityId) {
        let accesses = self.access.accesses.entry(subscriber).or_default();
        *accesses = accesses.saturating_add(1);
        if let Some(access) = self.access.subscribers.get_mut(&subscriber) {
            access.accesses = *accesses;
        }
    }

    /// Ends what [`Participant::begin_access`] began: what came meanwhile appears. False when nothing had begun.
    pub fn end_access(&mut self, now: Instant, subscriber: EntityId) -> bool {
        let Some(accesses) = self.access.accesses.get_mut(&subscriber) else { return false };
        *accesses -= 1;
        let left = *accesses;
        if left == 0 {
            self.access.accesses.remove(&subscriber);
        }
        if let Some(access) = self.access.subscribers.get_mut(&subscriber) {
            access.accesses = left;
            self.access.touched.extend(access.readers.keys().next());
            self.settle_access(now);
        }
        true
    }

    /// The readers of such a subscriber that have samples, one for each sample, in the order of the publishers (DDS 1.4
    /// §2.2.2.5.2.10).
    pub fn readers_in_order(&mut self, subscriber: EntityId) -> Vec<Guid> {
        let held = self.sweep_places(subscriber);
        let prefix = self.config.prefix;
        held.into_iter().map(|(_, reader)| Guid::new(prefix, reader)).collect()
    }

    /// Forgets the places of samples that are not held any more; returns the others with their readers, in order.
    fn sweep_places(&mut self, subscriber: EntityId) -> Vec<(u64, EntityId)> {
        let Some(access) = self.access.subscribers.get_mut(&subscriber) else { return Vec::new() };
        let mut held = BTreeMap::new();
        for reader in access.readers.keys() {
            let Some(shared) = self.endpoints.reader(*reader) else { continue };
            for entry in shared.lock().cache().entries() {
                let key = (*reader, entry.writer, entry.sequence);
                held.extend(access.places.get(&key).map(|place| (key, *place)));
            }
        }
        access.places = held;
        access.sweep_at = SWEEP_MIN.max(2 * access.places.len());
        let mut order: Vec<_> = access.places.iter().map(|((reader, ..), place)| (*place, *reader)).collect();
        order.sort_unstable();
        order
    }

    /// A local reader is matched with a writer, if it is one of a subscriber's.
    pub(super) fn note_access_matched(&mut self, writer: Guid, reader: EntityId) {
        let group = self.database.publications.get(writer).and_then(|known| known.data.group);
        self.access.add_pair((writer.prefix, group.unwrap_or(writer.entity)), writer, reader);
    }

    /// Fetches what came to a reader of a subscriber, and hands over whose turn it is.
    pub(super) fn look_at_access(&mut self, now: Instant, reader: EntityId) {
        if !self.access.subscriber_of.contains_key(&reader) {
            return;
        }
        if let Some(shared) = self.endpoints.reader(reader) {
            let arrivals = shared.lock().take_group_arrivals();
            self.access.note_arrivals(reader, arrivals);
        }
        self.access.touched.push(reader);
        self.access.freed.insert(reader);
        self.settle_access(now);
    }

    /// A writer has told how far its publisher is.
    pub(super) fn note_group_info(&mut self, now: Instant, writer: Guid, heartbeat: &Heartbeat, info: GroupInfo) {
        let mut readers = Vec::new();
        self.find_readers(writer, &mut readers);
        readers.retain(|reader| self.access.subscriber_of.contains_key(reader));
        for reader in readers {
            let has_all = |shared: &crate::shared::Shared<Reader>| shared.lock().has_all_of(writer, heartbeat);
            if self.endpoints.reader(reader).is_some_and(has_all) {
                self.access.note_up_to((writer, reader), info.current);
            }
        }
        self.settle_access(now);
    }
}
