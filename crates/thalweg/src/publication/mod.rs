//! The sending half of the API: publishers and data writers.

mod asynchronous;
mod blocking;
mod builder;
mod data_writer;
mod endings;
mod loan;
mod many;
mod members;
mod newest_stamp;
mod policies;
mod reader_filters;
mod related;
mod sending;
mod writer_cell;

use std::fmt;
use std::sync::Arc;

use thalweg_rtps::participant::{StoredHistory, WriterConfig};
use thalweg_rtps::qos::{Durability, Presentation, WriterQos};
use thalweg_rtps::types::SequenceNumber;
use thalweg_rtps::writer::WriterOptions;

use crate::runtime::{Delivery, Runtime};
use crate::{Error, ErrorKind, Topic};
#[cfg(all(loom, test))]
pub(crate) use blocking::wait_for_room;
pub use builder::DataWriterBuilder;
pub use data_writer::DataWriter;
pub use loan::Loan;
pub use many::WriteManyError;
use members::Members;
#[cfg(all(loom, test))]
pub(crate) use sending::send_in_turn;
pub(crate) use writer_cell::{WriterCell, WriterStatusListener};

/// Settings shared by the writers of a publisher (DDS 1.4 §2.2.2.4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublisherQos {
    /// PARTITION: names, with wildcards, of which one must fit one of the reader's. Default empty: the one name "".
    pub partition: Vec<String>,
    /// GROUP_DATA: bytes announced with every writer. Default empty, at most 65,000.
    pub group_data: Vec<u8>,
    /// PRESENTATION: whether changes have an order and belong together in sets, and over which range: with GROUP over all its writers.
    /// Default: nothing of that.
    pub presentation: Presentation,
}

/// Creates data writers that share partitions, their order and coherent sets (DDS 1.4 §2.2.2.4.1). Dropping it leaves its writers
/// alive. Copies are one publisher.
#[derive(Clone)]
pub struct Publisher {
    runtime: Arc<Runtime>,
    qos: Arc<PublisherQos>,
    members: Arc<Members>,
}

impl Publisher {
    pub(crate) fn new(runtime: Arc<Runtime>, qos: PublisherQos) -> Publisher {
        Publisher { runtime, qos: Arc::new(qos), members: Arc::default() }
    }

    /// Settings shared by its writers.
    pub fn qos(&self) -> &PublisherQos {
        &self.qos
    }

    /// Settings of a writer to be created, where its listener can be set before the first change.
    pub fn writer_builder<T>(&self, topic: &Topic<T>) -> DataWriterBuilder<T> {
        DataWriterBuilder::new(self.clone(), topic.clone())
    }

    /// What its writers write from now on belongs together, until as many calls of [`Publisher::end_coherent_changes`] have followed as
    /// there were of this: readers with coherent access see all of it at once or nothing (DDS 1.4 §2.2.2.4.1.10). With GROUP access
    /// that holds for all readers of a subscriber, else for each writer by itself. Writes of other threads meanwhile belong to the set
    /// as well.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the publisher's PRESENTATION is not coherent.
    pub fn begin_coherent_changes(&self) -> Result<(), Error> {
        if !self.qos.presentation.coherent {
            let cause = "needs coherent access, which the publisher's PRESENTATION does not offer";
            return Err(Error::new(ErrorKind::PreconditionNotMet, "begin_coherent_changes", cause));
        }
        self.members.begin_set();
        Ok(())
    }

    /// Ends the set that [`Publisher::begin_coherent_changes`] began.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when none was begun.
    pub fn end_coherent_changes(&self) -> Result<(), Error> {
        if self.members.end_set(self.runtime.state()) {
            return Ok(());
        }
        let cause = "found no coherent set that was begun";
        Err(Error::new(ErrorKind::PreconditionNotMet, "end_coherent_changes", cause))
    }

    /// Creates a writer and announces it to the domain. Partition, group data and PRESENTATION are the publisher's, unless `qos` names
    /// its own.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for a topic or type name that is empty, longer than 255
    /// bytes or contains NUL; [`ErrorKind::PreconditionNotMet`] when this participant uses
    /// the topic's name with another type; [`ErrorKind::InconsistentPolicy`] or
    /// [`ErrorKind::Unsupported`], naming the policy, its value and the remedy.
    pub fn create_writer<T>(&self, topic: &Topic<T>, qos: WriterQos) -> Result<DataWriter<T>, Error> {
        self.create_writer_with(topic, qos, WriterOptions::default())
    }

    /// As [`Publisher::create_writer`], with a memory budget of its own for the history.
    ///
    /// # Errors
    /// As [`Publisher::create_writer`]; [`ErrorKind::BadParameter`] when [`WriterOptions::first`] is less than 1.
    pub fn create_writer_with<T>(
        &self,
        topic: &Topic<T>,
        qos: WriterQos,
        options: WriterOptions,
    ) -> Result<DataWriter<T>, Error> {
        self.writer_builder(topic).qos(qos).options(options).create()
    }

    fn create<T>(
        &self,
        topic: &Topic<T>,
        qos: WriterQos,
        options: WriterOptions,
        mut listener: Option<(Delivery, Box<WriterStatusListener>)>,
    ) -> Result<DataWriter<T>, Error> {
        let state = self.runtime.state();
        if let Some((delivery, _)) = &listener {
            state.start_listening(*delivery)?;
        }
        topic.description().check("create_writer")?;
        if options.first < SequenceNumber::FIRST {
            let cause = format!("failed: the number of the first sample is {}, and the least is 1", options.first.0);
            return Err(Error::new(ErrorKind::BadParameter, "create_writer", cause).on_topic(topic.name()));
        }
        let configuration = self.runtime.configuration();
        let qos = Arc::new(self.qos.complete(configuration, topic.name(), &qos));
        let description = Arc::clone(topic.description());
        let config = WriterConfig {
            topic_name: description.name.clone(),
            type_name: description.type_name.clone(),
            keyed: description.keyed,
            qos: Arc::clone(&qos),
            options,
        };
        let refused =
            |error| Error::qos("create_writer", topic.name(), error).noting(&configuration.note(topic.name()));
        let store = self.runtime.store().filter(|_| qos.durability == Durability::Persistent);
        let create = |stored: Option<StoredHistory>| {
            self.runtime.command(|now, participant| {
                state.endpoints.check_type("create_writer", &description)?;
                state.types.register(&description);
                let writer = match stored {
                    Some(stored) => participant.create_lasting_writer(now, config.clone(), Some(stored)),
                    None => {
                        let group = self.members.group_for(&config.qos, participant);
                        participant.create_writer_in(now, config.clone(), group)
                    }
                };
                let writer = writer.inspect_err(|_| state.forget_unused_type(&description.name)).map_err(refused)?;
                let policies = (qos, Arc::clone(&self.qos));
                let cell = Arc::new(WriterCell::new(writer, description, policies, store.cloned()));
                // Dropped behind the lock where nothing is created: it may own endpoints, whose end locks the participant.
                if let Some((delivery, listener)) = listener.take() {
                    cell.status_listener().set(delivery, listener);
                }
                // Before the participant is unlocked, so that its first events already find the writer.
                state.endpoints.insert_writer(Arc::clone(&cell));
                Ok::<_, Error>(cell)
            })
        };
        let cell = match store {
            Some(store) => {
                config.qos.check().map_err(refused)?;
                store.create_writer(&config, |stored| create(Some(stored)))?
            }
            None => create(None)?,
        };
        self.members.add(&cell);
        Ok(DataWriter::new(Arc::clone(&self.runtime), cell))
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("qos", &self.qos).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use thalweg_rtps::participant::TypeDirectory;

    use super::*;
    use crate::{DomainParticipant, TopicType};

    #[derive(Topic)]
    #[topic(crate = "thalweg_cdr")]
    struct Request {
        number: u32,
    }

    #[test]
    fn nothing_is_announced_of_the_types_of_topics_that_nobody_uses() {
        let participant = DomainParticipant::builder(229).loopback_only().create().expect("a participant");
        let create = |name: &str, qos| participant.create_writer(&participant.create_topic::<Request>(name), qos);
        let used = create("used", WriterQos::default()).expect("a legal QoS");
        let types = &used.runtime().state().types;
        let is_known = |name: &str| types.information(name, Request::TYPE_NAME).is_some();
        for number in 0..100 {
            let name = format!("request {number}");
            let writer = create(&name, WriterQos::default()).expect("a legal QoS");
            writer.write(&Request { number }).expect("room");
            assert!(is_known(&name));
            drop(writer);
            assert!(!is_known(&name), "{name}");
        }
        let without_store = WriterQos { durability: Durability::Persistent, ..WriterQos::default() };
        create("refused", without_store).expect_err("there is no store");
        assert_eq!(["used", "refused"].map(is_known), [true, false]);
    }

    #[test]
    fn a_writer_whose_first_number_is_below_the_least_is_refused() {
        let participant = DomainParticipant::builder(229).loopback_only().create().expect("a participant");
        let topic = participant.create_topic::<Request>("first");
        for (first, expected) in [(-5, None), (0, None), (1, Some(1)), (7, Some(7))] {
            let options = WriterOptions { first: SequenceNumber(first), ..WriterOptions::default() };
            match participant.writer_builder(&topic).options(options).create() {
                Ok(writer) => {
                    let number = writer.write(&Request { number: 0 }).expect("room").0;
                    assert_eq!(Some(number), expected);
                }
                Err(error) => assert_eq!((error.kind(), expected), (ErrorKind::BadParameter, None), "{error}"),
            }
        }
    }
}
