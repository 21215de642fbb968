//! Conditions of the samples that a reader holds.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use thalweg_rtps::history::ReadFilter;

use super::Condition;
use super::sealed::{Sealed, Source};
use crate::runtime::WatchId;
use crate::subscription::ReaderCell;
use crate::until::Watched;
use crate::{DataReader, Sample, TopicType};

/// Selects samples by their value.
type Predicate<T> = dyn Fn(&Sample<T>) -> bool + Send + Sync;

/// Is true while its reader holds samples in the given states, and with the given values where it has a predicate (DDS 1.4
/// §2.2.2.5.8 and 9). [`DataReader::take_where`] and [`DataReader::read_where`] return exactly these samples. Copies are one
/// condition.
pub struct ReadCondition<T>(Arc<Selection<T>>);

struct Selection<T> {
    cell: Arc<ReaderCell>,
    filter: ReadFilter,
    predicate: Option<Box<Predicate<T>>>,
}

impl<T: 'static> DataReader<T> {
    /// A condition that is true while the reader holds samples that `filter` selects.
    pub fn read_condition(&self, filter: ReadFilter) -> ReadCondition<T> {
        ReadCondition(Arc::new(Selection { cell: Arc::clone(self.cell()), filter, predicate: None }))
    }

    /// Removes up to `max` samples that `condition` selects.
    pub fn take_where(&self, condition: &ReadCondition<T>, max: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        let Selection { filter, predicate, .. } = &*condition.0;
        match predicate {
            None => self.take_into(max, filter, &mut samples),
            Some(predicate) => self.take_selected(max, filter, predicate, &mut samples),
        };
        samples
    }

    /// As [`DataReader::take_where`], but the samples stay, marked READ.
    pub fn read_where(&self, condition: &ReadCondition<T>, max: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        let Selection { filter, predicate, .. } = &*condition.0;
        match predicate {
            None => self.read_into(max, filter, &mut samples),
            Some(predicate) => self.read_selected(max, filter, predicate, &mut samples),
        };
        samples
    }
}

impl<T: TopicType + 'static> DataReader<T> {
    /// A condition that is true while the reader holds samples that `filter` selects and for whose value `predicate` is true; an
    /// invalid sample has no value and is not selected.
    ///
    /// The predicate is called by whoever asks the condition, for each sample again, and never under a lock.
    pub fn query_condition(
        &self,
        filter: ReadFilter,
        predicate: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> ReadCondition<T> {
        let selects = move |sample: &Sample<T>| sample.is_valid() && sample.data().is_ok_and(|value| predicate(&value));
        let predicate: Box<Predicate<T>> = Box::new(selects);
        ReadCondition(Arc::new(Selection { cell: Arc::clone(self.cell()), filter, predicate: Some(predicate) }))
    }
}

impl<T: 'static> Condition for ReadCondition<T> {}

impl<T: 'static> Sealed for ReadCondition<T> {
    fn source(&self) -> Arc<dyn Source> {
        Arc::clone(&self.0) as Arc<dyn Source>
    }
}

impl<T> Source for Selection<T> {
    fn is_triggered(&self) -> bool {
        match &self.predicate {
            None => self.cell.selects(&self.filter),
            Some(predicate) => self.cell.look(&self.filter).into_iter().any(|sample| predicate(&Sample::new(sample))),
        }
    }

    fn arm(&self, watch: &mut Option<WatchId>, waker: &Waker) {
        Watched::waiters(&self.cell).arm(watch, waker);
    }

    fn disarm(&self, watch: &mut Option<WatchId>) {
        Watched::waiters(&self.cell).disarm(watch);
    }
}

impl<T> Clone for ReadCondition<T> {
    fn clone(&self) -> Self {
        ReadCondition(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for ReadCondition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadCondition({}, {:?})", self.0.cell.guid(), self.0.filter)
    }
}
