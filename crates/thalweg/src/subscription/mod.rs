//! The receiving half of the API: subscribers, data readers, samples.

mod applied_filter;
mod asynchronous;
mod builder;
mod data_reader;
mod instances;
mod keys;
mod policies;
mod reader_cell;
mod sample;

use std::fmt;
use std::sync::{Arc, OnceLock};

use thalweg_rtps::participant::{Publications, ReaderConfig};
use thalweg_rtps::qos::{Presentation, ReaderQos};
use thalweg_rtps::types::{EntityId, Guid};

use crate::discovery::{BuiltinTopicData, builtin_topic};
use crate::runtime::Runtime;
use crate::{Error, ErrorKind, Topic};
use applied_filter::AppliedFilter;
pub use asynchronous::Samples;
pub use builder::DataReaderBuilder;
use builder::{Handover, ReaderListeners, ToldEnds};
pub use data_reader::DataReader;
pub(crate) use reader_cell::ReaderCell;
pub use sample::Sample;

/// Settings shared by the readers of a subscriber (DDS 1.4 §2.2.2.5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriberQos {
    /// PARTITION: names, with wildcards, of which one must fit one of the writer's. Default empty: the one name "".
    pub partition: Vec<String>,
    /// GROUP_DATA: bytes announced with every reader. Default empty, at most 65,000.
    pub group_data: Vec<u8>,
    /// PRESENTATION: whether changes are wanted in order and in sets, and over which range: with GROUP over all its readers. Default:
    /// nothing of that.
    pub presentation: Presentation,
}

/// Creates data readers that share partitions and are accessed together (DDS 1.4 §2.2.2.5.2). Dropping it leaves its readers alive. Copies
/// are one subscriber.
#[derive(Clone)]
pub struct Subscriber {
    runtime: Arc<Runtime>,
    qos: Arc<SubscriberQos>,
    /// Its name, once it has a reader that is accessed together with others.
    entity: Arc<OnceLock<EntityId>>,
}

impl Subscriber {
    pub(crate) fn new(runtime: Arc<Runtime>, qos: SubscriberQos) -> Subscriber {
        Subscriber { runtime, qos: Arc::new(qos), entity: Arc::default() }
    }

    /// Settings shared by its readers.
    pub fn qos(&self) -> &SubscriberQos {
        &self.qos
    }

    /// Settings of a reader to be created, where its listeners can be set before the first change.
    pub fn reader_builder<T>(&self, topic: &Topic<T>) -> DataReaderBuilder<T> {
        DataReaderBuilder::new(self.clone(), topic.clone())
    }

    /// Begins to look at its readers together: with GROUP access nothing new appears in any of them until as many calls of
    /// [`Subscriber::end_access`] have followed as there were of this (DDS 1.4 §2.2.2.5.2.8). Of a set of several readers either all
    /// samples are there or none. What comes meanwhile waits, up to 1 GiB for each publisher: more appears at once. Without GROUP access
    /// it has no effect.
    pub fn begin_access(&self) {
        self.runtime.command(|_, participant| {
            let entity = match self.qos.presentation.spans_group() {
                true => Some(self.entity.get_or_init(|| participant.create_subscriber())),
                false => self.entity.get(),
            };
            entity.into_iter().for_each(|entity| participant.begin_access(*entity));
        });
    }

    /// Ends what [`Subscriber::begin_access`] began: what has come meanwhile appears.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when nothing had begun, with GROUP access.
    pub fn end_access(&self) -> Result<(), Error> {
        let has_ended = match self.entity.get() {
            Some(entity) => self.runtime.command(|now, participant| participant.end_access(now, *entity)),
            // Without GROUP access nothing ever begins.
            None => !self.qos.presentation.spans_group(),
        };
        if has_ended {
            return Ok(());
        }
        let cause = "found no access that was begun";
        Err(Error::new(ErrorKind::PreconditionNotMet, "end_access", cause))
    }

    /// With GROUP access, the GUIDs of its readers that have samples, one for each sample, in the order in which the publishers wrote
    /// them (DDS 1.4 §2.2.2.5.2.10): taking one sample of each in turn follows that order. Else empty.
    pub fn readers_in_order(&self) -> Vec<Guid> {
        let entity = self.entity.get();
        entity.map_or_else(Vec::new, |entity| {
            self.runtime.command(|_, participant| participant.readers_in_order(*entity))
        })
    }

    /// Creates a reader and announces it to the domain. Partition, group data and PRESENTATION are the subscriber's, unless `qos` names
    /// its own.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for a topic or type name that is empty, longer than 255
    /// bytes or contains NUL; [`ErrorKind::PreconditionNotMet`] when this participant uses
    /// the topic's name with another type; [`ErrorKind::InconsistentPolicy`] or
    /// [`ErrorKind::Unsupported`], naming the policy, its value and the remedy;
    /// [`ErrorKind::Error`] when the thread for the key function of a raw topic cannot be started.
    pub fn create_reader<T>(&self, topic: &Topic<T>, qos: ReaderQos) -> Result<DataReader<T>, Error> {
        let manner = (ToldEnds::Changes, Handover::WithinBudget);
        self.create(topic, qos, Publications::All, ReaderListeners::default(), None, manner)
    }

    /// Creates a reader of a built-in topic.
    pub(crate) fn create_builtin<D: BuiltinTopicData>(&self) -> Result<DataReader<D>, Error> {
        let (topic, description, qos) = builtin_topic::<D>();
        let endpoints = &self.runtime.state().endpoints;
        let refused = |error| Error::qos("create_builtin_reader", &description.name, error);
        let cell = self.runtime.command(|now, participant| {
            endpoints.check_type("create_builtin_reader", &description)?;
            let reader = participant.create_builtin_reader(now, topic, Arc::clone(&qos)).map_err(refused)?;
            let cell = Arc::new(ReaderCell::new(reader, Arc::clone(&description), (qos, None)));
            endpoints.insert_reader(Arc::clone(&cell));
            Ok::<_, Error>(cell)
        })?;
        Ok(DataReader::new(Arc::clone(&self.runtime), cell))
    }

    fn create<T>(
        &self,
        topic: &Topic<T>,
        qos: ReaderQos,
        publications: Publications,
        listeners: ReaderListeners,
        filter: Option<AppliedFilter>,
        (told_ends, handover): (ToldEnds, Handover),
    ) -> Result<DataReader<T>, Error> {
        let state = self.runtime.state();
        listeners.deliveries().try_for_each(|delivery| state.start_listening(delivery))?;
        topic.description().check("create_reader")?;
        let configuration = self.runtime.configuration();
        let qos = Arc::new(self.qos.complete(configuration, topic.name(), &qos));
        let description = Arc::clone(topic.description());
        let config = ReaderConfig {
            topic_name: description.name.clone(),
            type_name: description.type_name.clone(),
            keyed: description.keyed,
            qos: Arc::clone(&qos),
            keys: description.keys.source(),
            filter: filter.map(|filter| filter.of_topic(&description.name)),
        };
        let refused =
            |error| Error::qos("create_reader", topic.name(), error).noting(&configuration.note(topic.name()));
        // Dropped behind the lock where nothing is created: they may own endpoints, whose end locks the participant.
        let mut listeners = Some(listeners);
        let cell = self.runtime.command(|now, participant| {
            state.endpoints.check_type("create_reader", &description)?;
            state.types.register(&description);
            let spans = config.qos.presentation.spans_group();
            let subscriber = spans.then(|| *self.entity.get_or_init(|| participant.create_subscriber()));
            let reader = participant.create_reader_in(now, config, publications, subscriber);
            let reader = reader.inspect_err(|_| state.forget_unused_type(&description.name)).map_err(refused)?;
            if told_ends == ToldEnds::Every {
                reader.lock().tell_every_end();
            }
            if handover == Handover::OnArrival {
                reader.lock().set_prompt();
            }
            let policies = (qos, Some(Arc::clone(&self.qos)));
            let cell = Arc::new(ReaderCell::new(reader, description, policies));
            if let Some(listeners) = listeners.take() {
                listeners.set(&cell);
            }
            // Before the participant is unlocked, so that its first events already find the reader.
            state.endpoints.insert_reader(Arc::clone(&cell));
            Ok::<_, Error>(cell)
        })?;
        let reader = DataReader::new(Arc::clone(&self.runtime), cell);
        reader.start_keys()?;
        Ok(reader)
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("qos", &self.qos).finish_non_exhaustive()
    }
}
