//! Readers of a topic that hear all of its writers, whatever these offer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::conditions::{ConditionId, WaitSet};
use thalweg::discovery::PublicationData;
use thalweg::qos::{History, MatchResult, Ownership, ReaderQos, Request, match_endpoints};
use thalweg::types::{Guid, Keyed, SequenceNumber};
use thalweg::{DataReader, DomainParticipant, KeyOf, Raw, ReadFilter, Sample, Topic, Type};
use thalweg_recording::demand::Demand;
use thalweg_recording::instance::instance_of;
use thalweg_recording::numbers::NumberSet;

use super::find::shown_name;
use crate::outcome::{Failure, InLine, remark};

/// How a topic is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadingOptions {
    /// What writers keep for late readers comes as well.
    pub takes_history: bool,
    /// Samples of a reader that wait to be taken.
    pub depth: u32,
    /// Samples of best-effort writers may come up to 10 ms later. A reliable writer may wait for acknowledgements, and an observer must not
    /// hold it up.
    pub may_gather: bool,
}

/// A reader for each demand of a topic's writers, also of those that come later. Writers of another type are told of on standard error.
pub struct TopicReaders<'a> {
    participant: &'a DomainParticipant,
    topic: Topic<Raw>,
    /// The topic's type, where it is known.
    of: Option<Arc<Type>>,
    options: ReadingOptions,
    readers: Vec<OwnReader>,
    writers: HashMap<Guid, HeardWriter>,
    news: WaitSet,
    looked: Instant,
    told: HashSet<String>,
    /// Samples that readers replaced which have been let go.
    overwritten_before: u64,
    /// What was told last of [`TopicReaders::overwritten`], and when.
    told_overwritten: (u64, Instant),
}

struct OwnReader {
    demand: Demand,
    reader: DataReader<Raw>,
    condition: ConditionId,
    /// Since when no writer asks for it.
    idle_since: Option<Instant>,
}

/// A writer that was announced, or of which a sample came before anybody looked.
#[derive(Default)]
struct HeardWriter {
    /// What its own reader asks for; `None` until it has one.
    demand: Option<Demand>,
    taken: NumberSet,
    /// The number that its own reader brought last; `None` until that has brought a sample.
    latest_own: Option<SequenceNumber>,
    gone_since: Option<Instant>,
}

/// What [`TopicReaders::take`] found.
pub struct HeardSamples {
    /// Samples of all readers, each reader's in order.
    pub samples: Vec<Sample<Raw>>,
    /// No reader has more.
    pub is_all: bool,
}

impl<'a> TopicReaders<'a> {
    /// Readers for the writers of a topic that are known by now; `of` is its type, where that is known.
    ///
    /// # Errors
    /// When no reader can be created.
    pub fn new(
        participant: &'a DomainParticipant,
        topic: &Topic<Raw>,
        of: Option<&Type>,
        options: ReadingOptions,
    ) -> Result<TopicReaders<'a>, Failure> {
        let mut readers = TopicReaders {
            participant,
            // Many writers send no hash of the key, and nothing here tells instances apart.
            topic: topic.without_instances(),
            of: of.map(|of| Arc::new(of.clone())),
            options,
            readers: Vec::new(),
            writers: HashMap::new(),
            news: WaitSet::new().map_err(Failure::from_cause)?,
            looked: Instant::now(),
            told: HashSet::new(),
            overwritten_before: 0,
            told_overwritten: (0, Instant::now()),
        };
        readers.look();
        match readers.readers.is_empty() {
            true => Err(Failure::Failed(format!("{} cannot be read", shown_name(topic.name())))),
            false => Ok(readers),
        }
    }

    /// Looks who writes the topic, twenty times a second at most; to be called again and again. Samples that were replaced before anybody
    /// took them are told of on standard error, once a second at most.
    pub fn follow(&mut self) {
        if self.looked.elapsed() >= LOOK_PERIOD {
            self.look();
            self.tell_overwritten();
        }
    }

    /// Samples that arrived and were replaced by later ones before [`TopicReaders::take`]; one of a writer that several readers match counts
    /// at each of them.
    pub fn overwritten(&self) -> u64 {
        self.overwritten_before + self.readers.iter().map(|own| own.reader.overwritten()).sum::<u64>()
    }

    /// Takes up to `max` samples of each reader. A sample comes once, although several readers may match its writer.
    pub fn take(&mut self, max: usize) -> HeardSamples {
        let mut taken = HeardSamples { samples: Vec::new(), is_all: true };
        let writers = &mut self.writers;
        for own in &self.readers {
            let samples = own.reader.take(max);
            taken.is_all &= samples.len() < max;
            let is_new = |sample: &Sample<Raw>| {
                let info = sample.info();
                writers.entry(info.writer).or_default().admit(&own.demand, info.sequence)
            };
            taken.samples.extend(samples.into_iter().filter(is_new));
        }
        taken
    }

    /// Waits until a sample has come, or for `timeout`.
    pub fn wait(&self, timeout: Duration) {
        match &self.readers[..] {
            [] => std::thread::sleep(timeout),
            [only] => _ = only.reader.wait(timeout),
            _ => _ = self.news.wait(timeout),
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        self.looked = now;
        let own = self.participant.guid_prefix();
        let known = self.participant.publications().into_iter().map(|known| known.data);
        let is_of_topic = |data: &Arc<PublicationData>| data.topic_name == self.topic.name() && data.guid.prefix != own;
        let announced: Vec<Arc<PublicationData>> = known.filter(is_of_topic).collect();
        for data in &announced {
            self.hear(data);
        }
        let present: HashSet<Guid> = announced.iter().map(|data| data.guid).collect();
        self.writers.retain(|guid, writer| writer.note_presence(now, present.contains(guid)));
        if self.demands().next().is_none() {
            // Whoever comes is heard from its first sample on.
            self.open(&waiting_demand());
        }
        self.end_idle(now);
    }

    /// Lets a reader match a writer, if none does that asks for what it offers.
    fn hear(&mut self, data: &PublicationData) {
        let demand = Demand::of(data);
        let demand = Demand { is_durable: demand.is_durable && self.options.takes_history, ..demand };
        if self.writers.get(&data.guid).is_some_and(|writer| writer.demand.as_ref() == Some(&demand)) {
            return;
        }
        let result = self.match_with(data, &ReaderQos::default());
        if matches!(result, MatchResult::DifferentType { .. } | MatchResult::DifferentKeyedness { .. }) {
            return self.tell(format!("a writer of {} is not heard: {result}", shown_name(&data.topic_name)));
        }
        let Some(qos) = self.open(&demand) else { return };
        let result = self.match_with(data, &qos);
        if !result.is_match() {
            self.tell(format!("a writer of {} is not heard: {result}", shown_name(&data.topic_name)));
        }
        let writer = self.writers.entry(data.guid).or_default();
        (writer.demand, writer.latest_own) = (Some(demand), None);
    }

    /// Whether a writer matches a reader of this QoS here.
    fn match_with(&self, data: &PublicationData, qos: &ReaderQos) -> MatchResult {
        let (topic_name, type_name, keyed) = (self.topic.name(), self.topic.type_name(), self.topic.keyed());
        let request = Request { topic_name, type_name, keyed, forces_type_validation: false, qos };
        match_endpoints(&data.offer(), &request)
    }

    /// Has a reader of this demand, and returns its QoS; `None` where it cannot be created.
    fn open(&mut self, demand: &Demand) -> Option<Arc<ReaderQos>> {
        let opened = match self.readers.iter().find(|own| own.demand == *demand) {
            Some(own) => Ok(own.reader.qos()),
            None if self.readers.len() >= READERS_MAX => Err(format!("there are {READERS_MAX} readers already")),
            None => self.create(demand),
        };
        match opened {
            Ok(qos) => Some(qos),
            Err(reason) => {
                self.tell(format!("a writer of {} is not heard: {reason}", shown_name(self.topic.name())));
                None
            }
        }
    }

    fn create(&mut self, demand: &Demand) -> Result<Arc<ReaderQos>, String> {
        let qos = ReaderQos { history: History::KeepLast(self.options.depth), ..demand.to_reader_qos() };
        let topic = self.topic_for(demand);
        let mut builder = self.participant.reader_builder(&topic).qos(qos).ignore_own_publications();
        if demand.is_reliable || !self.options.may_gather {
            builder = builder.hand_over_on_arrival();
        }
        let reader = builder.create().map_err(|error| error.to_string())?;
        let condition = self.news.attach(&reader.read_condition(ReadFilter::ALL));
        let qos = reader.qos();
        self.readers.push(OwnReader { demand: demand.clone(), reader, condition, idle_since: None });
        Ok(qos)
    }

    /// The topic of a reader. An EXCLUSIVE one has an owner for each instance, which the type alone tells apart.
    fn topic_for(&mut self, demand: &Demand) -> Topic<Raw> {
        if demand.ownership == Ownership::Shared || self.topic.keyed() == Keyed::No {
            return self.topic.clone();
        }
        let Some(of) = self.of.clone() else {
            let name = shown_name(self.topic.name());
            self.tell(format!(
                "the type of {name} is not known: of writers with OWNERSHIP EXCLUSIVE, only the strongest is heard"
            ));
            return self.topic.clone();
        };
        let key_of: KeyOf = Arc::new(move |bytes, kind| instance_of(&of, bytes, kind));
        let (name, type_name) = (self.topic.name(), self.topic.type_name());
        self.participant.create_raw_topic(name, type_name, Keyed::Yes, Some(key_of))
    }

    /// What the writers' own readers ask for.
    fn demands(&self) -> impl Iterator<Item = &Demand> {
        self.writers.values().filter_map(|writer| writer.demand.as_ref())
    }

    /// Lets go of readers that no writer has asked for in a while.
    fn end_idle(&mut self, now: Instant) {
        let waiting = waiting_demand();
        let mut wanted: Vec<Demand> = self.demands().cloned().collect();
        if wanted.is_empty() {
            wanted.push(waiting);
        }
        let (news, overwritten_before) = (&self.news, &mut self.overwritten_before);
        self.readers.retain_mut(|own| {
            own.idle_since = if wanted.contains(&own.demand) { None } else { own.idle_since.or(Some(now)) };
            let is_over = own.idle_since.is_some_and(|since| now.saturating_duration_since(since) >= KEPT_TIME);
            let stays = !is_over || own.reader.available() > 0;
            if !stays {
                news.detach(own.condition);
                *overwritten_before += own.reader.overwritten();
            }
            stays
        });
    }

    fn tell_overwritten(&mut self) {
        let (overwritten, (told, at)) = (self.overwritten(), self.told_overwritten);
        if overwritten > told && (told == 0 || at.elapsed() >= REMARK_PERIOD) {
            let name = shown_name(self.topic.name());
            remark(InLine(format_args!("{name}: {overwritten} samples were replaced before this command took them")));
            self.told_overwritten = (overwritten, Instant::now());
        }
    }

    /// Tells the user, once.
    fn tell(&mut self, text: String) {
        if self.told.len() < REMARKS_MAX && !self.told.contains(&text) {
            remark(InLine(&text));
            self.told.insert(text);
        }
    }
}

impl HeardWriter {
    /// Whether a sample counts that a reader with this demand has got. What the writer's own reader brings is whole and in order; others
    /// that match as well count until it has brought something.
    fn admit(&mut self, demand: &Demand, sequence: SequenceNumber) -> bool {
        let is_own = self.demand.as_ref() == Some(demand);
        if sequence == SequenceNumber::UNKNOWN {
            return is_own || self.demand.is_none();
        }
        if is_own {
            if self.latest_own.is_some_and(|latest| sequence <= latest) {
                // The writer has begun anew under its GUID.
                self.taken = NumberSet::default();
            }
            self.latest_own = Some(sequence);
        }
        (is_own || self.latest_own.is_none()) && self.taken.insert(sequence)
    }

    /// Notes whether it is announced now; false once it can be forgotten: samples may wait of one that has gone.
    fn note_presence(&mut self, now: Instant, is_present: bool) -> bool {
        self.gone_since = if is_present { None } else { self.gone_since.or(Some(now)) };
        self.gone_since.is_none_or(|since| now.saturating_duration_since(since) < KEPT_TIME)
    }
}

/// What a reader asks for while nobody writes.
fn waiting_demand() -> Demand {
    let partition = vec![String::new(), "*".to_owned()];
    Demand { is_reliable: false, is_durable: false, ownership: Ownership::Shared, partition }
}

/// Interval at which writers are looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Interval at which samples that were replaced are told of at most.
const REMARK_PERIOD: Duration = Duration::from_secs(1);
/// Time for which what belongs to writers that have gone is kept: readers may hold samples of theirs.
const KEPT_TIME: Duration = Duration::from_secs(10);
/// Readers of one topic, chosen by us: many times the partitions that a topic has.
const READERS_MAX: usize = 256;
/// Remarks on writers, chosen by us: strangers choose their texts.
const REMARKS_MAX: usize = 64;

#[cfg(test)]
mod tests;
