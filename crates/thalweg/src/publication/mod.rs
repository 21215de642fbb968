//! The sending half of the API: publishers and data writers.

mod asynchronous;
mod blocking;
mod builder;
mod data_writer;
mod loan;
mod many;
mod reader_filters;
mod related;
mod sending;
mod writer_cell;

use std::sync::Arc;

use thalweg_rtps::participant::WriterConfig;
use thalweg_rtps::qos::WriterQos;
use thalweg_rtps::writer::WriterOptions;

use crate::runtime::{Delivery, Runtime};
use crate::{Error, Topic};
#[cfg(all(loom, test))]
pub(crate) use blocking::wait_for_room;
pub use builder::DataWriterBuilder;
pub use data_writer::DataWriter;
pub use loan::Loan;
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
}

/// Creates data writers that share partitions (DDS 1.4 §2.2.2.4.1). Dropping it leaves its writers alive.
pub struct Publisher {
    runtime: Arc<Runtime>,
    qos: PublisherQos,
}

impl Publisher {
    pub(crate) fn new(runtime: Arc<Runtime>, qos: PublisherQos) -> Publisher {
        Publisher { runtime, qos }
    }

    /// Settings shared by its writers.
    pub fn qos(&self) -> &PublisherQos {
        &self.qos
    }

    /// Settings of a writer to be created, where its listener can be set before the first change.
    pub fn writer_builder<T>(&self, topic: &Topic<T>) -> DataWriterBuilder<T> {
        DataWriterBuilder::new(Publisher::new(Arc::clone(&self.runtime), self.qos.clone()), topic.clone())
    }

    /// Creates a writer and announces it to the domain. Partition and group data are the publisher's, unless `qos` names
    /// its own.
    ///
    /// # Errors [`ErrorKind::BadParameter`](crate::ErrorKind::BadParameter) for a topic or type name that is empty, longer than 255
    /// bytes or contains NUL; [`ErrorKind::PreconditionNotMet`](crate::ErrorKind::PreconditionNotMet) when this participant uses
    /// the topic's name with another type; [`ErrorKind::InconsistentPolicy`](crate::ErrorKind::InconsistentPolicy) or
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), naming the policy, its value and the remedy.
    pub fn create_writer<T>(&self, topic: &Topic<T>, qos: WriterQos) -> Result<DataWriter<T>, Error> {
        self.create_writer_with(topic, qos, WriterOptions::default())
    }

    /// As [`Publisher::create_writer`], with a memory budget of its own for the history.
    ///
    /// # Errors
    /// As [`Publisher::create_writer`].
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
        listener: Option<(Delivery, Box<WriterStatusListener>)>,
    ) -> Result<DataWriter<T>, Error> {
        if let Some((delivery, _)) = &listener {
            self.runtime.state().start_listening(*delivery)?;
        }
        topic.description().check("create_writer")?;
        let configuration = self.runtime.configuration();
        let mut qos = configuration.writer_qos(topic.name(), &qos);
        if qos.partition.is_empty() {
            qos.partition.clone_from(&self.qos.partition);
        }
        if qos.attached.group.is_empty() {
            qos.attached.group.clone_from(&self.qos.group_data);
        }
        let (qos, description) = (Arc::new(qos), Arc::clone(topic.description()));
        let config = WriterConfig {
            topic_name: description.name.clone(),
            type_name: description.type_name.clone(),
            keyed: description.keyed,
            qos: Arc::clone(&qos),
            options,
        };
        let (endpoints, types) = (&self.runtime.state().endpoints, &self.runtime.state().types);
        let refused =
            |error| Error::qos("create_writer", topic.name(), error).noting(&configuration.note(topic.name()));
        let cell = self.runtime.command(|now, participant| {
            endpoints.check_type("create_writer", &description)?;
            types.register(&description);
            let writer = participant.create_writer(now, config).map_err(refused)?;
            let cell = Arc::new(WriterCell::new(writer, description, qos));
            if let Some((delivery, listener)) = listener {
                cell.status_listener().set(delivery, listener);
            }
            // Before the participant is unlocked, so that its first events already find the writer.
            endpoints.insert_writer(Arc::clone(&cell));
            Ok::<_, Error>(cell)
        })?;
        Ok(DataWriter::new(Arc::clone(&self.runtime), cell))
    }
}
