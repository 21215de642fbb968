//! The topics of a recording, each with the definitions that its writers have of its type.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use thalweg::discovery::PublicationData;
use thalweg::types::{KeyHash, Keyed};
use thalweg::{DataReader, KeyOf, Raw, Type};

use super::RecorderNews;
use crate::demand::Demand;
use crate::instance::instance_of;
use crate::schema::TypeSchema;
use crate::type_identity::TypeIdentity;
use crate::type_search::TypeSearch;

/// A topic with one definition of its type, and readers that were created for its writers.
pub struct RecordedTopic {
    pub about: Arc<AboutTopic>,
    /// What its writers announce; `None` while none of them tells its type.
    identity: Option<TypeIdentity>,
    /// The first one of its topic.
    pub is_first: bool,
    /// Whether a reader is there for any of its writers, of this definition or of another one.
    pub is_read: bool,
    pub readers: Vec<(Demand, DataReader<Raw>)>,
    /// Goes on until its type is found, or is not.
    pub search: Option<TypeSearch>,
}

/// What is known of a topic with one definition of its type.
pub struct AboutTopic {
    pub name: String,
    pub type_name: String,
    pub keyed: Keyed,
    /// Its type, once it was looked for.
    pub found: OnceLock<Option<(Type, Arc<TypeSchema>)>>,
    /// Whether the topic has writers with other definitions: readers of this one get their samples, too.
    pub has_others: AtomicBool,
}

impl AboutTopic {
    /// The topic of a writer, whose type was not looked for.
    pub fn of(data: &PublicationData) -> AboutTopic {
        AboutTopic {
            name: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            keyed: data.guid.entity.keyed(),
            found: OnceLock::new(),
            has_others: AtomicBool::new(false),
        }
    }

    /// Tells instances apart; without the type, all samples are of one. Called on a thread of the reader, which waits until the type was
    /// looked for: the end of an instance counts only where its samples were known by the same key.
    pub fn key_of(self: Arc<AboutTopic>) -> KeyOf {
        Arc::new(move |bytes, kind| match self.found.wait() {
            // Samples of another definition are dropped later; here they would count as lost.
            Some((of, _)) => {
                instance_of(of, bytes, kind).or_else(|| self.has_others.load(Ordering::Relaxed).then(KeyHash::default))
            }
            None => Some(KeyHash::default()),
        })
    }

    /// Whether [`AboutTopic::key_of`] tells instances apart, or there is one: the end of one is not that of all others then.
    pub fn tells_instances(&self) -> bool {
        self.keyed == Keyed::No || matches!(self.found.get(), Some(Some(_)))
    }
}

/// The topics by their names, each with its definitions in the order in which they were met.
#[derive(Default)]
pub struct RecordedTopics(BTreeMap<String, Vec<RecordedTopic>>);

impl RecordedTopics {
    /// The topic with the definition of a writer; a new one for the first such writer.
    ///
    /// # Errors
    /// Why the writer is not recorded.
    pub fn define(&mut self, data: &PublicationData, now: Instant) -> Result<Arc<AboutTopic>, RecorderNews> {
        let topics = self.0.entry(data.topic_name.clone()).or_default();
        let is_other = |first: &RecordedTopic| {
            first.about.type_name != data.type_name || first.about.keyed != data.guid.entity.keyed()
        };
        if topics.first().is_some_and(is_other) {
            let (topic, type_name) = (data.topic_name.clone(), data.type_name.clone());
            return Err(RecorderNews::OtherType { topic, type_name });
        }
        let identity = TypeIdentity::announced(data.type_information.as_deref());
        let place = match place_of(topics, identity.as_ref()) {
            Some(place) => place,
            None if topics.len() >= DEFINITIONS_MAX => {
                let reason = format!("there are {DEFINITIONS_MAX} definitions of {} already", data.type_name);
                return Err(RecorderNews::Refused { topic: data.topic_name.clone(), reason });
            }
            None => {
                let is_first = topics.is_empty();
                topics.push(RecordedTopic {
                    about: Arc::new(AboutTopic::of(data)),
                    identity: None,
                    is_first,
                    is_read: false,
                    readers: Vec::new(),
                    search: Some(TypeSearch::new(now)),
                });
                topics.iter().for_each(|topic| topic.about.has_others.store(!is_first, Ordering::Relaxed));
                topics.len() - 1
            }
        };
        let topic = &mut topics[place];
        if topic.identity.is_none() {
            topic.identity = identity;
        }
        if let (Some(search), Some(information)) = (&mut topic.search, &data.type_information) {
            search.add_description(data.guid.prefix, information);
        }
        Ok(Arc::clone(&topic.about))
    }

    /// Whether a reader that asks for this takes samples of writers with this definition: where there are no keys, it does not matter for
    /// which definition it was created.
    pub fn has_reader(&self, about: &Arc<AboutTopic>, demand: &Demand) -> bool {
        let topics = self.0.get(&about.name).map(Vec::as_slice).unwrap_or_default();
        let serves = |topic: &&RecordedTopic| about.keyed == Keyed::No || Arc::ptr_eq(&topic.about, about);
        topics.iter().filter(serves).any(|topic| topic.readers.iter().any(|(of, _)| of == demand))
    }

    /// The topic that this is about.
    pub fn find_mut(&mut self, about: &Arc<AboutTopic>) -> Option<&mut RecordedTopic> {
        self.0.get_mut(&about.name)?.iter_mut().find(|topic| Arc::ptr_eq(&topic.about, about))
    }

    /// All topics with each of their definitions.
    pub fn iter(&self) -> impl Iterator<Item = &RecordedTopic> {
        self.0.values().flatten()
    }

    /// As [`RecordedTopics::iter`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut RecordedTopic> {
        self.0.values_mut().flatten()
    }

    /// The definitions of each topic, by its name.
    pub fn by_name(&self) -> impl Iterator<Item = (&String, &Vec<RecordedTopic>)> {
        self.0.iter()
    }
}

/// Which of the definitions of a topic a writer has that announces this one; without an announcement, the first.
fn place_of(topics: &[RecordedTopic], identity: Option<&TypeIdentity>) -> Option<usize> {
    let Some(identity) = identity else { return (!topics.is_empty()).then_some(0) };
    let is_same = |topic: &RecordedTopic| topic.identity.as_ref() == Some(identity);
    // One that nobody has told so far may be the same.
    let may_be = |topic: &RecordedTopic| {
        topic.identity.is_none()
            && match topic.about.found.get() {
                None => true,
                Some(found) => found.as_ref().and_then(|(of, _)| TypeIdentity::of(of)).as_ref() == Some(identity),
            }
    };
    topics.iter().position(is_same).or_else(|| topics.iter().position(may_be))
}

/// Definitions of a topic's type that are recorded, chosen by us: versions of a program that run at the same time are two or three.
const DEFINITIONS_MAX: usize = 16;
