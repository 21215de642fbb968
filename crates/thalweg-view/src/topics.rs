//! The side of the domain: topics with their types, and readers for those that somebody wants.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::discovery::PublicationData;
use thalweg::qos::Ownership;
use thalweg::types::{Guid, Keyed, SequenceNumber};
use thalweg::{DataReader, Delivery, DomainParticipant, KeyOf, Raw, Sample, Type};
use thalweg_recording::TopicSelection;
use thalweg_recording::arrival::{ReceptionClock, ReceptionTime, held};
use thalweg_recording::demand::Demand;
use thalweg_recording::instance::instance_of;
use thalweg_recording::qos::RecordedQos;
use thalweg_recording::schema::{TypeSchema, shown_topic};
use thalweg_recording::type_identity::TypeIdentity;
use thalweg_recording::type_search::{TypeSearch, TypeSource};

use crate::decoders::DecoderLimits;
use crate::definitions::TypeDefinitions;
use crate::server::Exchange;
use crate::switchboard::{ChannelWriter, ViewedSample};
use crate::view::ViewNews;

/// The topics of a domain that are shown.
pub struct ViewedTopics<'a> {
    participant: &'a DomainParticipant,
    types: &'a TypeSource<'a>,
    selection: TopicSelection,
    latched_depth: usize,
    exchange: Arc<Exchange>,
    clock: Arc<ReceptionClock>,
    topics: BTreeMap<String, ViewedTopic>,
    /// The writers that topics were made of last.
    known: Vec<Arc<PublicationData>>,
    /// The wishes of clients that all readers are there for; `None` when some are not.
    granted: Option<u64>,
    /// Whether the user knows that there are more topics than are shown.
    has_told_full: bool,
}

/// A topic with the writers of one definition of its type.
struct ViewedTopic {
    type_name: String,
    keyed: Keyed,
    writers: HashMap<Guid, ChannelWriter>,
    /// Other types and definitions of writers, which are not shown.
    others: BTreeSet<String>,
    stage: Stage,
}

/// What is known of a topic's type.
enum Stage {
    /// It is looked for, with the descriptions of these writers.
    Searching { search: TypeSearch, asked: BTreeSet<Guid> },
    /// Nobody describes it; a writer that none of these are may.
    Unknown { asked: BTreeSet<Guid> },
    /// Clients are told of it.
    Shown(ShownTopic),
}

struct ShownTopic {
    channel: u64,
    of: Arc<Type>,
    definitions: TypeDefinitions,
    readers: Vec<(Demand, DataReader<Raw>)>,
}

impl<'a> ViewedTopics<'a> {
    pub fn new(
        participant: &'a DomainParticipant,
        types: &'a TypeSource<'a>,
        selection: TopicSelection,
        latched_depth: usize,
        exchange: Arc<Exchange>,
    ) -> ViewedTopics<'a> {
        ViewedTopics {
            participant,
            types,
            selection,
            latched_depth,
            exchange,
            clock: Arc::default(),
            topics: BTreeMap::new(),
            known: Vec::new(),
            granted: None,
            has_told_full: false,
        }
    }

    /// Looks for topics that are new or gone, for types, and for what clients want. It waits for nobody.
    pub fn look(&mut self) -> Vec<ViewNews> {
        let mut news = Vec::new();
        let known = self.known_writers();
        // A view without changes costs no more than this.
        let is_same = known.len() == self.known.len();
        if !is_same || known.iter().zip(&self.known).any(|(now, before)| !Arc::ptr_eq(now, before)) {
            self.update_topics(&known, &mut news);
            self.known = known;
            self.granted = None;
        }
        if self.find_types(&mut news) {
            self.granted = None;
            // Writers are told apart by what was found.
            self.known.clear();
        }
        let wishes = self.exchange.board().wishes();
        if self.granted != Some(wishes) {
            self.granted = self.update_readers(&mut news).then_some(wishes);
        }
        news
    }

    /// The writers of others.
    fn known_writers(&self) -> Vec<Arc<PublicationData>> {
        let own = self.participant.guid_prefix();
        let known = self.participant.publications().into_iter().map(|known| known.data);
        known.filter(|data| data.guid.prefix != own).collect()
    }

    fn update_topics(&mut self, known: &[Arc<PublicationData>], news: &mut Vec<ViewNews>) {
        let announced = self.announced(known);
        self.delete_gone(&announced);
        for (name, writers) in &announced {
            if !self.topics.contains_key(name) && !self.create_topic(name, writers) {
                news.extend(self.refuse_topics());
                continue;
            }
            news.extend(self.update_topic(name, writers));
        }
    }

    /// The writers by topic, each topic's in the order of their GUIDs.
    fn announced(&self, known: &[Arc<PublicationData>]) -> BTreeMap<String, Vec<Arc<PublicationData>>> {
        let mut announced: BTreeMap<String, Vec<Arc<PublicationData>>> = BTreeMap::new();
        for data in known.iter().filter(|data| self.selection.has(&data.topic_name)) {
            announced.entry(data.topic_name.clone()).or_default().push(Arc::clone(data));
        }
        announced.values_mut().for_each(|writers| writers.sort_by_key(|data| data.guid));
        announced
    }

    /// Takes back topics that have no writers of their type any more.
    fn delete_gone(&mut self, announced: &BTreeMap<String, Vec<Arc<PublicationData>>>) {
        let exchange = &self.exchange;
        self.topics.retain(|name, topic| {
            let writers = announced.get(name).map(Vec::as_slice).unwrap_or_default();
            let stays = writers.iter().any(|data| topic.has(data));
            if !stays {
                let shown = shown_topic(name);
                let mut board = exchange.board();
                for kind in REMARKS {
                    board.remark(&shown, kind, None);
                }
                if let Stage::Shown(ShownTopic { channel, .. }) = &topic.stage {
                    board.delete_channel(*channel);
                }
            }
            stays
        });
    }

    /// Begins with a topic, whose type is that of its first writer; false where there is no room for it.
    fn create_topic(&mut self, name: &str, writers: &[Arc<PublicationData>]) -> bool {
        let Some(first) = writers.first().filter(|_| self.topics.len() < TOPICS_MAX) else { return false };
        let topic = ViewedTopic {
            type_name: first.type_name.clone(),
            keyed: first.guid.entity.keyed(),
            writers: HashMap::new(),
            others: BTreeSet::new(),
            stage: Stage::Searching { search: TypeSearch::new(Instant::now()), asked: BTreeSet::new() },
        };
        self.topics.insert(name.to_owned(), topic);
        true
    }

    fn refuse_topics(&mut self) -> Option<ViewNews> {
        let is_first = !std::mem::replace(&mut self.has_told_full, true);
        is_first.then(|| {
            let text = format!("further topics are not shown: there are {TOPICS_MAX} already");
            self.exchange.board().remark("all topics", "full", Some(text.clone()));
            ViewNews::Remark { text }
        })
    }

    /// Takes note of the writers that a topic has now.
    fn update_topic(&mut self, name: &str, announced: &[Arc<PublicationData>]) -> Option<ViewNews> {
        let topic = self.topics.get_mut(name)?;
        let (own, others): (Vec<_>, Vec<_>) = announced.iter().partition(|data| topic.has(data));
        topic.describe(&own);
        if let Stage::Shown(ShownTopic { channel, definitions, .. }) = &mut topic.stage {
            let now = Instant::now();
            own.iter().for_each(|data| definitions.add_writer(data, now));
            let strangers: HashSet<Guid> = others.iter().map(|data| data.guid).collect();
            self.exchange.board().set_strangers(*channel, strangers);
        }
        let writers: HashMap<Guid, ChannelWriter> = own.iter().map(|data| (data.guid, channel_writer(data))).collect();
        if writers != topic.writers {
            topic.writers = writers;
            if let Stage::Shown(ShownTopic { channel, .. }) = &topic.stage {
                self.exchange.board().set_writers(*channel, topic.writers.clone());
            }
        }
        let others: BTreeSet<String> = others.iter().map(|data| topic.difference(data)).collect();
        if others == topic.others {
            return None;
        }
        topic.others = others;
        let shown = shown_topic(name);
        let names: Vec<&str> = topic.others.iter().map(String::as_str).collect();
        let text = (!names.is_empty()).then(|| {
            format!(
                "{shown} is shown with the type {}: writers with {} are left out",
                topic.type_name,
                names.join(", ")
            )
        });
        self.exchange.board().remark(&shown, OTHER_TYPES, text.clone());
        text.map(|text| ViewNews::Remark { text })
    }

    /// Asks for all types that are looked for, at once: those who do not answer keep nobody waiting. Returns whether a search has ended, or a
    /// writer turned out to have another definition than its topic.
    fn find_types(&mut self, news: &mut Vec<ViewNews>) -> bool {
        let (now, before) = (Instant::now(), news.len());
        let (mut pending, mut has_other) = (0, false);
        for (name, topic) in &mut self.topics {
            // One that waits a little lets the questions of all leave.
            let patience = if pending == 0 { ASKING_TIME } else { Duration::ZERO };
            if let Stage::Shown(ShownTopic { definitions, .. }) = &mut topic.stage
                && definitions.is_pending()
            {
                has_other |= definitions.look(now, self.participant, &topic.type_name, patience);
                pending += 1;
            }
            let Stage::Searching { search, asked } = &mut topic.stage else { continue };
            let Some(found) = search.look(now, self.participant, self.types, &topic.type_name, patience) else {
                pending += 1;
                continue;
            };
            let announced = search.found().cloned();
            let asked = std::mem::take(asked);
            let shown = shown_topic(name);
            let (stage, told) = match found {
                Ok((of, origin)) => {
                    let schema = Arc::new(TypeSchema::of(&topic.type_name, &of));
                    let limits = DecoderLimits::of(&schema, &of);
                    let definitions =
                        TypeDefinitions::new(Arc::clone(&schema), TypeIdentity::of(&of).into_iter().chain(announced));
                    let mut board = self.exchange.board();
                    board.remark(&shown, UNKNOWN_TYPE, None);
                    let channel = board.create_channel(name, &topic.type_name, schema, limits);
                    board.set_writers(channel, topic.writers.clone());
                    let told = ViewNews::Topic { topic: shown, type_name: topic.type_name.clone(), origin };
                    (Stage::Shown(ShownTopic { channel, of: Arc::new(of), definitions, readers: Vec::new() }), told)
                }
                Err(reason) => {
                    let text = format!(
                        "{shown} is not shown, as its type {} is not known: {reason}; give it by --idl FILE or --share FOLDER",
                        topic.type_name
                    );
                    self.exchange.board().remark(&shown, UNKNOWN_TYPE, Some(text.clone()));
                    (Stage::Unknown { asked }, ViewNews::Remark { text })
                }
            };
            topic.stage = stage;
            news.push(told);
        }
        has_other || news.len() > before
    }

    /// Has a reader for each demand of the topics that somebody wants, and of those that keep samples for late readers. Returns whether
    /// all are there.
    fn update_readers(&mut self, news: &mut Vec<ViewNews>) -> bool {
        let mut is_done = true;
        let mut count: usize = self.topics.values().map(ViewedTopic::readers).sum();
        for (name, topic) in &mut self.topics {
            let Stage::Shown(shown) = &mut topic.stage else { continue };
            let is_wanted = self.exchange.board().has_subscribers(shown.channel);
            let is_needed = |demand: &Demand| is_wanted || (demand.is_durable && self.latched_depth > 0);
            let is_offered = |demand: &Demand| topic.writers.values().any(|writer| writer.demand == *demand);
            shown.readers.retain(|(demand, _)| is_needed(demand) && is_offered(demand));
            for demand in topic.writers.values().map(|writer| &writer.demand) {
                if !is_needed(demand) || shown.readers.iter().any(|(of, _)| of == demand) {
                    continue;
                }
                let (keyed, clock) = (topic.keyed, &self.clock);
                let about = ReaderOf { topic: name, type_name: &topic.type_name, keyed, demand, clock };
                let reader = if count < READERS_MAX {
                    about.create(self.participant, shown, &self.exchange).map_err(|error| error.to_string())
                } else {
                    Err(format!("there are {READERS_MAX} readers already"))
                };
                let failure = match reader {
                    Ok(reader) => {
                        count += 1;
                        shown.readers.push((demand.clone(), reader));
                        None
                    }
                    Err(reason) => Some(format!("{} cannot be read: {reason}", shown_topic(name))),
                };
                is_done &= failure.is_none();
                if self.exchange.board().remark(&shown_topic(name), UNREADABLE, failure.clone()) {
                    news.extend(failure.map(|text| ViewNews::Remark { text }));
                }
            }
        }
        is_done
    }
}

impl ViewedTopic {
    /// Whether a writer's samples are those of this topic's type.
    fn has(&self, data: &PublicationData) -> bool {
        let is_other = match &self.stage {
            Stage::Shown(shown) => shown.definitions.is_other(data),
            Stage::Searching { .. } | Stage::Unknown { .. } => false,
        };
        self.type_name == data.type_name && self.keyed == data.guid.entity.keyed() && !is_other
    }

    /// What a writer has that is not of this topic's type.
    fn difference(&self, data: &PublicationData) -> String {
        if self.type_name != data.type_name {
            return data.type_name.clone();
        }
        if self.keyed == data.guid.entity.keyed() {
            return format!("another definition of {}", data.type_name);
        }
        let with = if data.guid.entity.keyed() == Keyed::Yes { "with" } else { "without" };
        format!("{} {with} a key", data.type_name)
    }

    /// Hands the descriptions of writers that were not asked yet to the search for the type, which begins again with a new one.
    fn describe(&mut self, writers: &[&Arc<PublicationData>]) {
        let described = writers.iter().filter_map(|data| Some((data.guid, data.type_information.as_ref()?)));
        if let Stage::Unknown { asked } = &mut self.stage {
            if described.clone().all(|(writer, _)| asked.contains(&writer)) {
                return;
            }
            let asked = std::mem::take(asked);
            self.stage = Stage::Searching { search: TypeSearch::new(Instant::now()), asked };
        }
        if let Stage::Searching { search, asked } = &mut self.stage {
            for (writer, information) in described {
                if asked.insert(writer) {
                    search.add_description(writer.prefix, information);
                }
            }
        }
    }

    fn readers(&self) -> usize {
        match &self.stage {
            Stage::Shown(shown) => shown.readers.len(),
            Stage::Searching { .. } | Stage::Unknown { .. } => 0,
        }
    }
}

fn channel_writer(data: &PublicationData) -> ChannelWriter {
    ChannelWriter { demand: Demand::of(data), kept: RecordedQos::announced(data).kept_for_late_readers() }
}

/// A reader to be created.
struct ReaderOf<'a> {
    topic: &'a str,
    type_name: &'a str,
    keyed: Keyed,
    demand: &'a Demand,
    clock: &'a Arc<ReceptionClock>,
}

impl ReaderOf<'_> {
    fn create(
        &self,
        participant: &DomainParticipant,
        shown: &ShownTopic,
        exchange: &Arc<Exchange>,
    ) -> Result<DataReader<Raw>, thalweg::Error> {
        let of = Arc::clone(&shown.of);
        let key_of: KeyOf = Arc::new(move |bytes, kind| instance_of(&of, bytes, kind));
        // What late clients get is kept by instance, and an instance has an owner; nothing else tells instances apart.
        let needs_instances = self.demand.is_durable || self.demand.ownership == Ownership::Exclusive;
        let has_instances = self.keyed == Keyed::Yes && needs_instances;
        let key_of = has_instances.then_some(key_of);
        let topic = participant.create_raw_topic(self.topic, self.type_name, self.keyed, key_of);
        let topic = if has_instances { topic } else { topic.without_instances() };
        let (exchange, channel, demand) = (Arc::clone(exchange), shown.channel, self.demand.clone());
        let clock = Arc::clone(self.clock);
        let hand_over = move |reader: &DataReader<Raw>| {
            let time = clock.read();
            let samples: Vec<ViewedSample> = reader
                .take(usize::MAX)
                .iter()
                // A lost writer is heard of elsewhere.
                .filter(|sample| sample.info().sequence != SequenceNumber::UNKNOWN)
                .map(|sample| viewed(sample, &time))
                .collect();
            let mut board = exchange.board();
            samples.iter().for_each(|sample| board.handle_sample(channel, &demand, sample));
            drop(board);
            exchange.wake();
        };
        let builder = participant.reader_builder(&topic).qos(self.demand.to_reader_qos()).ignore_own_publications();
        builder.hand_over_on_arrival().on_data(Delivery::Inline, hand_over).create()
    }
}

fn viewed(sample: &Sample<Raw>, time: &ReceptionTime) -> ViewedSample {
    let info = sample.info();
    ViewedSample {
        writer: info.writer,
        // Whoever needs all 64 bits of it asks a recording.
        sequence: info.sequence.0 as u32,
        instance: info.instance,
        log_time_ns: time.log_time_ns(info.received),
        value: sample.is_valid().then(|| held(sample.payload())),
    }
}

const UNKNOWN_TYPE: &str = "type";
const OTHER_TYPES: &str = "other types";
const UNREADABLE: &str = "reader";
/// The remarks on a topic that go with it.
const REMARKS: [&str; 3] = [UNKNOWN_TYPE, OTHER_TYPES, UNREADABLE];
/// Topics and readers of a view, chosen by us: several times those of a large robot.
const TOPICS_MAX: usize = 4_096;
const READERS_MAX: usize = 4_096;
/// Time in which questions about types leave.
const ASKING_TIME: Duration = Duration::from_millis(1);
