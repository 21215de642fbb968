//! Samples of a subscriber whose turn has come, on their way into the caches of its readers: what finds no room there waits, and so do the
//! writers of its publisher.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Publisher;
use super::publisher_order::{Next, PublisherOrder, Released, Room};
use crate::history::{CachedSample, SetRefusal};
use crate::participant::Participant;
use crate::participant::endpoints::Endpoints;
use crate::reader::{GroupShare, ReaderOutcome};
use crate::time::Instant;
use crate::types::{EntityId, Guid};

/// How soon writers are asked again where they are, while a sample waits for the answer.
const ASK_PERIOD: Duration = Duration::from_millis(20);

/// Readers that have got something, and what that changed.
type Served = BTreeMap<EntityId, ReaderOutcome>;

impl Participant {
    /// Hands over samples whose turn has come, and has writers asked that hold others up.
    #[inline]
    pub(in crate::participant) fn settle_access(&mut self, now: Instant) {
        if self.access.has_news() {
            self.settle_touched(now);
        }
    }

    #[inline(never)]
    fn settle_touched(&mut self, now: Instant) {
        let mut served = Served::new();
        // Again where writers go on: what they had kept back follows.
        while self.access.has_news() {
            for (reader, arrival) in std::mem::take(&mut self.access.arrived) {
                self.access.handle(reader, arrival);
            }
            let touched = std::mem::take(&mut self.access.touched);
            let subscribers: BTreeSet<EntityId> =
                touched.iter().filter_map(|reader| self.access.subscriber_of.get(reader).copied()).collect();
            let freed = std::mem::take(&mut self.access.freed);
            for reader in &freed {
                // Whoever still awaits room there says so anew; what was taken until then is seen.
                if let Some(shared) = self.endpoints.reader(*reader) {
                    shared.lock().forget_awaited_room();
                }
            }
            for subscriber in subscribers {
                self.hand_over_turns(now, (subscriber, &freed), &mut served);
                self.ask_who_holds_up(now, subscriber);
            }
        }
        for (entity, outcome) in served {
            let Some(shared) = self.endpoints.reader(entity) else { continue };
            let (news, is_due, armed) = {
                let mut reader = shared.lock();
                let is_due = reader.poll_timeout().is_some_and(|at| at <= now);
                // What is due now leaves with the next datagrams: a timer for it would come back here before.
                (reader.take_news(), is_due, if is_due { None } else { reader.newly_armed() })
            };
            self.note_status_news(entity, news);
            self.note_reader_outcome(now, entity, ReaderOutcome { answer_due: is_due, ..outcome }, armed);
        }
    }

    /// Hands over what is complete, in order and has room, and lets the writers of each publisher wait or go on.
    fn hand_over_turns(
        &mut self,
        now: Instant,
        (subscriber, freed): (EntityId, &BTreeSet<EntityId>),
        served: &mut Served,
    ) {
        let Some(access) = self.access.subscribers.get_mut(&subscriber) else { return };
        let publishers: Vec<Publisher> = access.publishers.keys().copied().collect();
        for publisher in publishers {
            let awaits_room = loop {
                let Some(access) = self.access.subscribers.get_mut(&subscriber) else { return };
                match access.next_of(publisher, freed, &self.endpoints) {
                    Next::Turn(turn) => {
                        access.note_places(&turn);
                        self.present(now, turn, served);
                    }
                    Next::AwaitsRoom => break true,
                    Next::Nobody => break false,
                }
            };
            self.hold_writers(now, (subscriber, publisher), awaits_room, served);
        }
        let Some(access) = self.access.subscribers.get_mut(&subscriber) else { return };
        let (given_up, remembers_many) = (access.tidy(), access.places.len() >= access.sweep_at);
        self.present(now, given_up, served);
        if remembers_many {
            self.sweep_places(subscriber);
        }
    }

    /// Gives samples to their readers.
    fn present(&mut self, now: Instant, released: Vec<Released>, served: &mut Served) {
        let mut shares: BTreeMap<EntityId, GroupShare> = BTreeMap::new();
        for one in released {
            match one {
                Released::Sample(reader, sample) => shares.entry(reader).or_default().samples.push(sample),
                Released::Lost(reader, count) => shares.entry(reader).or_default().lost += count,
                Released::Rejected(reader, reason, instance) => {
                    shares.entry(reader).or_default().rejected.push((reason, instance));
                }
            }
        }
        for (entity, share) in shares {
            if let Some(shared) = self.endpoints.reader(entity) {
                let outcome = shared.lock().present(now, share);
                served.entry(entity).or_default().data_available |= outcome.data_available;
            }
        }
    }

    /// What comes of the writers of a publisher stays with its readers while something of it waits for room; then they go on.
    fn hold_writers(
        &mut self,
        now: Instant,
        (subscriber, publisher): (EntityId, Publisher),
        are_held: bool,
        served: &mut Served,
    ) {
        let Some(access) = self.access.subscribers.get_mut(&subscriber) else { return };
        let Some(order) = access.publishers.get_mut(&publisher) else { return };
        let has_new_pair = std::mem::take(&mut order.has_new_pair);
        let were_held = std::mem::replace(&mut order.is_held, are_held);
        if were_held == are_held && !(are_held && has_new_pair) {
            return;
        }
        let mut writers: BTreeMap<EntityId, Vec<Guid>> = BTreeMap::new();
        for (writer, reader) in order.pairs() {
            writers.entry(reader).or_default().push(writer);
        }
        for (reader, writers) in writers {
            let Some(shared) = self.endpoints.reader(reader) else { continue };
            let arrivals = {
                let mut shared = shared.lock();
                let outcome = shared.hold_writers(now, &writers, are_held);
                let known = served.entry(reader).or_default();
                known.data_available |= outcome.data_available;
                known.keys_due |= outcome.keys_due;
                shared.take_group_arrivals()
            };
            self.access.note_arrivals(reader, arrivals);
        }
    }

    /// Asks writers how far their publisher is, now and again while a sample waits for that.
    fn ask_who_holds_up(&mut self, now: Instant, subscriber: EntityId) {
        let Some(access) = self.access.subscribers.get(&subscriber) else { return };
        let asked: Vec<_> = access.publishers.values().flat_map(PublisherOrder::holding_up).collect();
        for (writer, reader) in asked {
            let Some(shared) = self.endpoints.reader(reader) else { continue };
            let armed = {
                let mut state = shared.lock();
                state.question_writer(now, writer);
                state.newly_armed()
            };
            // What is due now leaves with the next datagrams: a timer for it would come back here before.
            let next = armed.filter(|at| *at > now).map_or(now + ASK_PERIOD, |at| at.min(now + ASK_PERIOD));
            self.order.schedule.arm(reader, next);
            self.order.schedule.make_ready(reader);
        }
    }
}

/// Whether samples that appear together find room in the caches of their readers. Those that they wait for are added to `awaited`.
pub(super) fn room_for(
    endpoints: &Endpoints,
    samples: &[(EntityId, &CachedSample)],
    awaited: &mut BTreeMap<EntityId, usize>,
) -> Room {
    let mut parts: BTreeMap<EntityId, Vec<&CachedSample>> = BTreeMap::new();
    for (reader, sample) in samples {
        parts.entry(*reader).or_default().push(sample);
    }
    let (mut refusals, mut is_awaited) = (BTreeMap::new(), false);
    for (reader, part) in parts {
        let Some(shared) = endpoints.reader(reader) else { continue };
        match shared.lock().ask_for_room(&part) {
            Some(SetRefusal::Now(..)) => {
                awaited.insert(reader, part.len());
                is_awaited = true;
            }
            Some(SetRefusal::Ever(reason)) => _ = refusals.insert(reader, reason),
            None => {}
        }
    }
    match is_awaited {
        _ if !refusals.is_empty() => Room::Nowhere(refusals),
        true => Room::Awaited,
        false => Room::Here,
    }
}
