//! Discovery as links: which topics are resources now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thalweg::DomainParticipant;
use thalweg::qos::{AttachedData, Durability};
use thalweg::types::Guid;
use thalweg_types::Types;

use super::export::TOPICS_ROOT;
use super::topic::{BRIDGE_MARK, Offered, TopicResource};
use crate::resource::LocalStore;

/// Makes resources of the topics that others in the domain read or write, for as long as they do.
///
/// The resource of topic `rt/chatter` is `/topics/rt/chatter`. Topics whose types are not known are left out, and so are
/// those of resources (`coap/…`).
pub struct Bridge {
    participant: Arc<DomainParticipant>,
    types: Types,
    store: LocalStore,
    topics: BTreeMap<String, BridgedTopic>,
    refused: BTreeSet<String>,
}

struct BridgedTopic {
    found: FoundTopic,
    resource: Arc<TopicResource>,
}

/// A topic as discovery tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundTopic {
    type_name: String,
    offered: Offered,
}

/// Changes since the last poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths of resources that are there now.
    pub added: Vec<String>,
    /// Paths of resources that are gone.
    pub removed: Vec<String>,
    /// Topics without a resource, with the reason; each is reported once.
    pub refused: Vec<(String, String)>,
}

impl Bridge {
    /// Makes topics of the domain resources in `store`, as far as their types are among `types`.
    pub fn new(participant: Arc<DomainParticipant>, types: Types, store: LocalStore) -> Bridge {
        Bridge { participant, types, store, topics: BTreeMap::new(), refused: BTreeSet::new() }
    }

    /// Looks which topics there are now. Discovery needs no more than a few looks a second.
    pub fn refresh(&mut self) -> Changes {
        let (found, writers) = self.found_topics();
        let mut changes = Changes::default();
        let is_gone =
            |name: &str, topic: &BridgedTopic| found.get(name).is_none_or(|now| now.type_name != topic.found.type_name);
        let gone = self.topics.iter().filter(|(name, topic)| is_gone(name, topic));
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        // Observers of a topic that comes back with another type hear of its new state alone.
        let _held = gone.iter().any(|name| found.contains_key(name)).then(|| self.store.hold_changes());
        for name in &gone {
            self.topics.remove(name);
            self.store.remove(&path_of(name));
        }
        self.refused.retain(|name| found.contains_key(name));
        for (name, topic) in found {
            if let Some(known) = self.topics.get_mut(&name) {
                known.resource.forget_ended(&writers);
                if known.found.offered != topic.offered
                    && let Err(error) = known.resource.accept(&self.participant, topic.offered)
                {
                    tracing::warn!("the topic {name:?} is read as before, though its writers offer other QoS: {error}");
                }
                // Also when it failed, so that it is not tried at each look.
                known.found = topic;
                continue;
            }
            if self.refused.contains(&name) {
                continue;
            }
            match self.add(&name, topic) {
                Ok(path) => changes.added.push(path),
                Err(reason) => {
                    self.refused.insert(name.clone());
                    changes.refused.push((name, reason));
                }
            }
        }
        let stays_away = gone.iter().filter(|name| !self.topics.contains_key(*name));
        changes.removed = stays_away.map(|name| path_of(name)).collect();
        changes
    }

    /// The resource of a topic, if it is one now.
    pub fn topic(&self, name: &str) -> Option<&Arc<TopicResource>> {
        self.topics.get(name).map(|topic| &topic.resource)
    }

    /// Paths of the resources of topics.
    pub fn paths(&self) -> Vec<String> {
        self.topics.keys().map(|name| path_of(name)).collect()
    }

    fn add(&mut self, name: &str, found: FoundTopic) -> Result<String, String> {
        let Some(structure) = self.types.find(&found.type_name) else {
            return Err(format!("its type {} is not known; give the IDL that defines it", found.type_name));
        };
        let path = path_of(name);
        let resource = TopicResource::create(&self.participant, name, structure, path.clone(), found.offered)
            .map_err(|error| error.to_string())?;
        self.store.insert(Arc::clone(&resource) as _).map_err(|error| error.to_string())?;
        self.topics.insert(name.to_owned(), BridgedTopic { found, resource });
        Ok(path)
    }

    /// The topics of all other participants, with the common QoS of their writers, and all writers of the domain. Endpoints of a
    /// bridge make no reason for another one to keep it: they would keep it for each other for ever.
    fn found_topics(&self) -> (BTreeMap<String, FoundTopic>, BTreeSet<Guid>) {
        let own = self.participant.guid_prefix();
        let mut found: BTreeMap<String, FoundTopic> = BTreeMap::new();
        let is_of_bridge = |attached: &AttachedData| attached.user == BRIDGE_MARK;
        let is_of_resource = |name: &str| name.strip_prefix(TOPICS_ROOT).is_some_and(|rest| rest.starts_with('/'));
        let publications = self.participant.publications();
        let writers = publications.iter().map(|known| known.data.guid).collect();
        for known in publications {
            let data = known.data;
            if data.guid.prefix == own || is_of_bridge(&data.qos.attached) || is_of_resource(&data.topic_name) {
                continue;
            }
            let offered = Offered {
                is_reliable: data.qos.reliability.is_reliable(),
                is_durable: data.qos.durability != Durability::Volatile,
            };
            let topic = found
                .entry(data.topic_name.clone())
                .or_insert(FoundTopic { type_name: data.type_name.clone(), offered });
            topic.offered.is_reliable &= offered.is_reliable;
            topic.offered.is_durable &= offered.is_durable;
        }
        for known in self.participant.subscriptions() {
            let data = known.data;
            if data.guid.prefix != own && !is_of_bridge(&data.qos.attached) && !is_of_resource(&data.topic_name) {
                let offered = Offered { is_reliable: true, is_durable: true };
                found
                    .entry(data.topic_name.clone())
                    .or_insert(FoundTopic { type_name: data.type_name.clone(), offered });
            }
        }
        (found, writers)
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bridge({:?})", self.topics.keys())
    }
}

fn path_of(topic_name: &str) -> String {
    format!("{RESOURCES_ROOT}/{}", topic_name.trim_start_matches('/'))
}

/// Prefix of the paths of resources of topics.
pub const RESOURCES_ROOT: &str = "topics";
