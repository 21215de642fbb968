//! Participants of one process: they discover each other over the network, and from then on exchange data of endpoints in memory
//! (docs/decisions/0021-participants-of-one-process.md).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(doc)]
use super::Participant;
use crate::assertion::ManualAssertion;
use crate::discovery::Database;
use crate::discovery::challenge::HALVES;
use crate::discovery::endpoint_data::{PublicationData, SubscriptionData};
use crate::discovery::participant_data::ParticipantData;
use crate::outbox::Outbox;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, SequenceNumber};
use crate::wire::write;
use crate::wire::{AckNack, Heartbeat, SequenceSet};

/// Participants that share a process. While a participant announces itself, the others do not drop it for the announcements that they
/// do not hear, and data of its endpoints reach them in memory. The driver gives all of them the same household; each default is a new one.
#[derive(Clone, Debug, Default)]
pub struct Household(Arc<Mutex<BTreeMap<GuidPrefix, Member>>>);

#[derive(Debug)]
struct Member {
    domain: (u32, String),
    /// When it last made an announcement, by the clock that all members share.
    alive_at: Instant,
    /// The assertions of its writers of MANUAL_BY_PARTICIPANT.
    asserted: ManualAssertion,
    /// Its announcement of itself, serialised and decoded.
    announced: Option<(Arc<[u8]>, Arc<ParticipantData>)>,
    /// The announced data of each of its endpoints.
    endpoints: BTreeMap<EntityId, Told>,
    /// Members that know it, which are told of its endpoints.
    known_by: BTreeSet<GuidPrefix>,
    /// Those of them that know what it announces now.
    up_to_date: BTreeSet<GuidPrefix>,
    /// News that it has not taken yet, one of each endpoint.
    inbox: BTreeMap<Guid, News>,
    has_news: NewsFlag,
}

/// What waits to be told of an endpoint.
#[derive(Debug)]
struct News {
    /// Its data, `None` when it was deleted.
    told: Option<Told>,
    /// Whether the listener was told of the endpoint before: the end of one that it never learned of is no news.
    is_known: bool,
}

/// The data of an endpoint, decoded once for the whole process.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Publication(Arc<PublicationData>),
    Subscription(Arc<SubscriptionData>),
}

impl Told {
    fn read(entity: EntityId, announced: &[u8]) -> Option<Told> {
        if entity.is_writer() {
            PublicationData::decode(announced).ok().map(|data| Told::Publication(Arc::new(data)))
        } else {
            SubscriptionData::decode(announced).ok().map(|data| Told::Subscription(Arc::new(data)))
        }
    }
}

/// Tells whether a member of a household has news.
#[derive(Clone, Debug, Default)]
pub struct NewsFlag(Arc<AtomicBool>);

impl NewsFlag {
    /// True when [`Participant::handle_household`] is due.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Household {
    /// Locks the members: for a few steps in memory only, and no other lock is taken under it.
    fn members(&self) -> MutexGuard<'_, BTreeMap<GuidPrefix, Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of participants that belong to it.
    pub fn len(&self) -> usize {
        self.members().len()
    }

    /// The number of news that wait in the inboxes of all members: for each of them at most one for each endpoint that there is or
    /// that it was told of.
    pub fn waiting_news(&self) -> usize {
        self.members().values().map(|member| member.inbox.len()).sum()
    }

    /// True while no participant belongs to it.
    pub fn is_empty(&self) -> bool {
        self.members().is_empty()
    }
}

/// A participant's place in its household, until it is dropped.
#[derive(Debug)]
pub(super) struct Housemates {
    household: Household,
    prefix: GuidPrefix,
    has_news: NewsFlag,
    /// Challenges to be answered, of members that do not know this one yet: the member, which half, and the first number.
    owed: Vec<(GuidPrefix, usize, SequenceNumber)>,
}

/// Most answers that wait to be sent; a member without an answer asks again.
const OWED_MAX: usize = 1_024;

impl Housemates {
    pub(super) fn join(
        now: Instant,
        household: Household,
        (prefix, asserted): (GuidPrefix, ManualAssertion),
        domain: (u32, String),
    ) -> Housemates {
        let has_news = NewsFlag::default();
        let member = Member {
            domain,
            alive_at: now,
            asserted,
            announced: None,
            endpoints: BTreeMap::new(),
            known_by: BTreeSet::new(),
            up_to_date: BTreeSet::new(),
            inbox: BTreeMap::new(),
            has_news: has_news.clone(),
        };
        household.members().insert(prefix, member);
        Housemates { household, prefix, has_news, owed: Vec::new() }
    }

    /// Sets what this participant announces of itself.
    pub(super) fn describe(&mut self, announced: &[u8]) {
        let read = ParticipantData::decode(announced).ok();
        if let Some(own) = self.household.members().get_mut(&self.prefix) {
            own.announced = read.map(|data| (announced.into(), Arc::new(data)));
            own.up_to_date.clear();
        }
    }

    /// The data that a participant has announced; those that a member holds itself, where they are the same.
    pub(super) fn share(&self, data: ParticipantData, announced: Arc<[u8]>) -> (Arc<ParticipantData>, Arc<[u8]>) {
        let members = self.household.members();
        match members.get(&data.guid_prefix).and_then(|member| member.announced.as_ref()) {
            Some((bytes, shared)) if **shared == data => {
                (Arc::clone(shared), if **bytes == *announced { Arc::clone(bytes) } else { announced })
            }
            _ => (Arc::new(data), announced),
        }
    }

    /// Whether `prefix` is another member.
    pub(super) fn contain(&self, prefix: GuidPrefix) -> bool {
        prefix != self.prefix && self.household.members().contains_key(&prefix)
    }

    /// Notes that this participant announces itself, whether or not the others hear it.
    pub(super) fn note_announcement(&self, now: Instant) {
        if let Some(own) = self.household.members().get_mut(&self.prefix) {
            own.alive_at = now;
        }
    }

    /// When the application last asserted the liveliness of a member; [`Instant::ZERO`] for other participants.
    pub(super) fn asserted_by(&self, prefix: GuidPrefix) -> Instant {
        self.household.members().get(&prefix).map_or(Instant::ZERO, |member| member.asserted.last())
    }

    /// When each of the other members last announced itself.
    pub(super) fn signs_of_life(&self) -> BTreeMap<GuidPrefix, Instant> {
        let members = self.household.members();
        let others = members.iter().filter(|(prefix, _)| **prefix != self.prefix);
        others.map(|(prefix, member)| (*prefix, member.alive_at)).collect()
    }

    /// True when there are others in the domain and all of them know what this one announces now.
    pub(super) fn all_know_us(&self) -> bool {
        let members = self.household.members();
        let Some(own) = members.get(&self.prefix) else { return false };
        let others = members.values().filter(|member| member.domain == own.domain).count() - 1;
        others > 0 && own.up_to_date.len() == others
    }

    /// Notes that this participant knows these data of another member: it is told of the endpoints that the member has, and of every
    /// change from now on.
    pub(super) fn listen_to(&mut self, data: &ParticipantData) {
        let other = data.guid_prefix;
        let mut members = self.household.members();
        let Some(member) = members.get_mut(&other) else { return };
        if member.announced.as_ref().is_some_and(|(_, announced)| **announced == *data) {
            member.up_to_date.insert(self.prefix);
        }
        if !member.known_by.insert(self.prefix) {
            return;
        }
        let told: Vec<_> = member.endpoints.iter().map(|(entity, told)| (*entity, told.clone())).collect();
        let Some(own) = members.get_mut(&self.prefix) else { return };
        let news = |told| News { told: Some(told), is_known: false };
        own.inbox.extend(told.into_iter().map(|(entity, told)| (Guid::new(other, entity), news(told))));
        own.has_news.0.store(!own.inbox.is_empty(), Ordering::Release);
    }

    /// Notes that this participant no longer knows another member.
    pub(super) fn forget(&mut self, other: GuidPrefix) {
        let mut members = self.household.members();
        if let Some(member) = members.get_mut(&other) {
            member.known_by.remove(&self.prefix);
            member.up_to_date.remove(&self.prefix);
        }
        if let Some(own) = members.get_mut(&self.prefix) {
            own.inbox.retain(|guid, _| guid.prefix != other);
        }
    }

    /// Tells the members that know this one of an endpoint, or of its end; true when there are any.
    pub(super) fn tell(&mut self, entity: EntityId, announced: Option<&[u8]>) -> bool {
        let told = announced.and_then(|announced| Told::read(entity, announced));
        let mut members = self.household.members();
        let Some(own) = members.get_mut(&self.prefix) else { return false };
        let before = match &told {
            Some(told) => own.endpoints.insert(entity, told.clone()),
            None => own.endpoints.remove(&entity),
        };
        let listeners = std::mem::take(&mut own.known_by);
        for listener in &listeners {
            if let Some(member) = members.get_mut(listener) {
                let guid = Guid::new(self.prefix, entity);
                let is_known = member.inbox.remove(&guid).map_or(before.is_some(), |waiting| waiting.is_known);
                if told.is_some() || is_known {
                    member.inbox.insert(guid, News { told: told.clone(), is_known });
                    member.has_news.0.store(true, Ordering::Release);
                }
            }
        }
        let any = !listeners.is_empty();
        if let Some(own) = members.get_mut(&self.prefix) {
            own.known_by = listeners;
        }
        any
    }

    pub(super) fn take_news(&mut self) -> BTreeMap<Guid, Option<Told>> {
        if !self.has_news.is_set() {
            return BTreeMap::new();
        }
        self.has_news.0.store(false, Ordering::Release);
        let inbox = self.household.members().get_mut(&self.prefix).map(|own| std::mem::take(&mut own.inbox));
        inbox.unwrap_or_default().into_iter().map(|(guid, news)| (guid, news.told)).collect()
    }
}

impl Housemates {
    /// A flag that tells the driver, without access to the participant, whether there is news.
    pub(super) fn news(&self) -> NewsFlag {
        self.has_news.clone()
    }

    /// Notes a challenge of a member that does not know this participant yet: no reader is matched that would answer it.
    pub(super) fn note_heartbeat(&mut self, source: GuidPrefix, heartbeat: &Heartbeat) {
        let Some(half) = HALVES.iter().position(|(writer, _)| *writer == heartbeat.writer) else { return };
        let asks = heartbeat.last < heartbeat.first && !heartbeat.is_final;
        if asks && self.owed.len() < OWED_MAX && self.contain(source) {
            self.owed.push((source, half, heartbeat.first));
        }
    }

    /// Answers the challenges of members.
    pub(super) fn poll_transmit(&mut self, database: &Database, outbox: &mut Outbox) {
        for (prefix, half, base) in std::mem::take(&mut self.owed) {
            let Some(known) = database.participants.get(&prefix) else { continue };
            if known.reach.metatraffic.is_empty() {
                continue;
            }
            let (writer, reader) = HALVES[half];
            outbox.begin(&known.reach.metatraffic);
            write::header(outbox.buffer(), self.prefix);
            write::info_destination(outbox.buffer(), prefix);
            let acknack = AckNack { reader, writer, state: SequenceSet::new(base), count: 0, is_final: true };
            write::acknack(outbox.buffer(), &acknack);
            outbox.finish();
        }
    }
}

impl Drop for Housemates {
    fn drop(&mut self) {
        let mut members = self.household.members();
        members.remove(&self.prefix);
        members.values_mut().for_each(|member| {
            member.known_by.remove(&self.prefix);
            member.up_to_date.remove(&self.prefix);
        });
    }
}
