//! The settings of a writer, and its creation.

use std::fmt;

use thalweg_rtps::qos::WriterQos;
use thalweg_rtps::writer::WriterOptions;

use super::{DataWriter, Publisher, WriterStatusListener};
use crate::runtime::Delivery;
use crate::status::WriterStatus;
use crate::{Error, Topic};

/// Settings of a writer to be created; see [`Publisher::writer_builder`].
pub struct DataWriterBuilder<T> {
    publisher: Publisher,
    topic: Topic<T>,
    qos: WriterQos,
    options: WriterOptions,
    listener: Option<(Delivery, Box<WriterStatusListener>)>,
}

impl<T> DataWriterBuilder<T> {
    pub(super) fn new(publisher: Publisher, topic: Topic<T>) -> DataWriterBuilder<T> {
        DataWriterBuilder {
            publisher,
            topic,
            qos: WriterQos::default(),
            options: WriterOptions::default(),
            listener: None,
        }
    }

    /// Its policies. Default [`WriterQos::default`].
    pub fn qos(mut self, qos: WriterQos) -> Self {
        self.qos = qos;
        self
    }

    /// The memory of its history. Default [`WriterOptions::default`].
    pub fn options(mut self, options: WriterOptions) -> Self {
        self.options = options;
        self
    }

    /// Calls `listener` for every status change of the writer from its creation on, as [`DataWriter::on_status`] does. It may be
    /// called before [`DataWriterBuilder::create`] has returned. Default none.
    pub fn on_status(mut self, delivery: Delivery, listener: impl FnMut(WriterStatus) + Send + 'static) -> Self {
        self.listener = Some((delivery, Box::new(listener)));
        self
    }

    /// Creates the writer and announces it to the domain.
    ///
    /// # Errors
    /// As [`Publisher::create_writer_with`]; [`ErrorKind::Error`](crate::ErrorKind::Error) when the listener thread cannot be started.
    pub fn create(self) -> Result<DataWriter<T>, Error> {
        self.publisher.create(&self.topic, self.qos, self.options, self.listener)
    }
}

impl<T> fmt::Debug for DataWriterBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataWriterBuilder").field("topic", &self.topic).field("qos", &self.qos).finish_non_exhaustive()
    }
}
