//! The settings of a reader, and its creation.

use std::fmt;
use std::sync::Arc;

use thalweg_rtps::participant::Publications;
use thalweg_rtps::qos::ReaderQos;

use super::applied_filter::{AppliedFilter, unfit};
use super::reader_cell::{DataListener, ReaderStatusListener};
use super::{DataReader, ReaderCell, Subscriber};
use crate::filter::Filter;
use crate::runtime::Delivery;
use crate::status::ReaderStatus;
use crate::{Error, Topic, TopicType};

/// Settings of a reader to be created; see [`Subscriber::reader_builder`].
pub struct DataReaderBuilder<T> {
    subscriber: Subscriber,
    topic: Topic<T>,
    qos: ReaderQos,
    publications: Publications,
    listeners: ReaderListeners,
    filter: Option<AppliedFilter>,
    told_ends: ToldEnds,
    handover: Handover,
}

/// When samples are handed over that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handover {
    /// As LATENCY_BUDGET permits.
    WithinBudget,
    /// At once.
    OnArrival,
}

/// The ends of instances that a reader tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldEnds {
    /// Those that change the state of their instance.
    Changes,
    /// Every one.
    Every,
}

/// Listeners that a reader has from its creation on.
#[derive(Default)]
pub(super) struct ReaderListeners {
    data: Option<(Delivery, Box<DataListener>)>,
    status: Option<(Delivery, Box<ReaderStatusListener>)>,
}

impl ReaderListeners {
    /// The threads that call them.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = Delivery> {
        let data = self.data.as_ref().map(|(delivery, _)| *delivery);
        data.into_iter().chain(self.status.as_ref().map(|(delivery, _)| *delivery))
    }

    /// Gives them to the reader, to which no other thread has access yet.
    pub(super) fn set(self, cell: &Arc<ReaderCell>) {
        if let Some((delivery, listener)) = self.data {
            cell.data_listener().set(delivery, listener);
        }
        if let Some((delivery, listener)) = self.status {
            cell.status_listener().set(delivery, listener);
        }
    }
}

impl<T> DataReaderBuilder<T> {
    pub(super) fn new(subscriber: Subscriber, topic: Topic<T>) -> DataReaderBuilder<T> {
        let (qos, listeners) = (ReaderQos::default(), ReaderListeners::default());
        let (publications, filter) = (Publications::All, None);
        let (told_ends, handover) = (ToldEnds::Changes, Handover::WithinBudget);
        DataReaderBuilder { subscriber, topic, qos, publications, listeners, filter, told_ends, handover }
    }

    /// Its policies. Default [`ReaderQos::default`].
    pub fn qos(mut self, qos: ReaderQos) -> Self {
        self.qos = qos;
        self
    }

    /// Is not matched with writers of its own participant. Default: it is.
    pub fn ignore_own_publications(mut self) -> Self {
        self.publications = Publications::OfOthers;
        self
    }

    /// Tells every dispose and unregister of its writers by an invalid sample, with the bytes that came with it, also where it does not
    /// change the state of its instance, such as that of one writer among several; for programs that keep what writers say rather than
    /// what is. Default: only those that do, with bytes that tell the key of the instance, if any came.
    pub fn tell_every_end(mut self) -> Self {
        self.told_ends = ToldEnds::Every;
        self
    }

    /// Samples are handed over as they arrive, and no datagrams gather in the participant's sockets, whatever delay LATENCY_BUDGET permits;
    /// for programs that note times of arrival, or match writers whatever delay these promise. Default: samples may come up to 10 ms later
    /// where every endpoint of the participant permits that.
    pub fn hand_over_on_arrival(mut self) -> Self {
        self.handover = Handover::OnArrival;
        self
    }

    /// Calls `listener` whenever samples have arrived, as [`DataReader::on_data`] does. It may be called before
    /// [`DataReaderBuilder::create`] has returned. Default none.
    pub fn on_data(mut self, delivery: Delivery, listener: impl FnMut(&DataReader<T>) + Send + 'static) -> Self
    where
        T: 'static,
    {
        self.listeners.data = Some((delivery, DataReader::data_callback(&self.subscriber.runtime, listener)));
        self
    }

    /// Calls `listener` for every status change of the reader except data from its creation on, as [`DataReader::on_status`] does.
    /// It may be called before [`DataReaderBuilder::create`] has returned. Default none.
    pub fn on_status(mut self, delivery: Delivery, listener: impl FnMut(ReaderStatus) + Send + 'static) -> Self {
        self.listeners.status = Some((delivery, Box::new(listener)));
        self
    }

    /// Creates the reader and announces it to the domain.
    ///
    /// # Errors
    /// As [`Subscriber::create_reader`]; [`ErrorKind::Error`](crate::ErrorKind::Error) when the listener thread cannot be started.
    pub fn create(self) -> Result<DataReader<T>, Error> {
        let DataReaderBuilder { subscriber, topic, qos, publications, listeners, filter, told_ends, handover } = self;
        subscriber.create(&topic, qos, publications, listeners, filter, (told_ends, handover))
    }
}

impl<T: TopicType> DataReaderBuilder<T> {
    /// Only samples that meet the condition are handed over (ContentFilteredTopic, DDS 1.4 §2.2.2.3.3); the reader announces it, so that
    /// writers may leave the others out. The end of an instance is told where some sample of it was handed over. Default none.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`](crate::ErrorKind::BadParameter) when the condition does not fit the type, with its place.
    pub fn filter(mut self, filter: Filter) -> Result<Self, Error> {
        filter.check::<T>().map_err(|error| unfit("filter", self.topic.name(), error))?;
        self.filter = Some(AppliedFilter::new::<T>(filter));
        Ok(self)
    }
}

impl<T> fmt::Debug for DataReaderBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataReaderBuilder").field("topic", &self.topic).field("qos", &self.qos).finish_non_exhaustive()
    }
}
