//! Conditions of the samples that a reader holds.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

use thalweg_rtps::history::ReadFilter;
use thalweg_rtps::types::Guid;

use super::Condition;
use super::sealed::{Sealed, Source};
use crate::runtime::{Waiters, WatchId};
use crate::subscription::ReaderCell;
use crate::until::Watched;
use crate::{DataReader, Error, ErrorKind, Sample, TopicType};

/// Selects samples by their value.
type Predicate<T> = dyn Fn(&Sample<T>) -> bool + Send + Sync;

/// Is true while its reader holds samples in the given states, and with the given values where it has a predicate (DDS 1.4
/// §2.2.2.5.8 and 9). [`DataReader::take_where`] and [`DataReader::read_where`] return exactly these samples. Copies are one
/// condition. It may outlive its reader, of which it keeps nothing, and is false from then on.
pub struct ReadCondition<T>(Arc<Selection<T>>);

struct Selection<T> {
    reader: Guid,
    cell: Weak<ReaderCell>,
    waiters: Arc<Waiters>,
    filter: ReadFilter,
    predicate: Option<Box<Predicate<T>>>,
}

impl<T> Selection<T> {
    fn new(cell: &Arc<ReaderCell>, filter: ReadFilter, predicate: Option<Box<Predicate<T>>>) -> Selection<T> {
        let waiters = Arc::clone((**cell).waiters());
        Selection { reader: cell.guid(), cell: Arc::downgrade(cell), waiters, filter, predicate }
    }

    /// Refuses a condition of another reader (DDS 1.4 §2.2.2.5.3.10).
    fn check(&self, operation: &'static str, cell: &Arc<ReaderCell>) -> Result<(), Error> {
        if Weak::as_ptr(&self.cell) == Arc::as_ptr(cell) {
            return Ok(());
        }
        let cause = format!("failed: the condition is one of reader {}, not of reader {}", self.reader, cell.guid());
        let error = Error::new(ErrorKind::PreconditionNotMet, operation, cause).on_topic(&cell.topic().name);
        Err(error.advise("pass a condition that this reader has made"))
    }
}

impl<T: 'static> DataReader<T> {
    /// A condition that is true while the reader holds samples that `filter` selects.
    pub fn read_condition(&self, filter: ReadFilter) -> ReadCondition<T> {
        ReadCondition(Arc::new(Selection::new(self.cell(), filter, None)))
    }

    /// Removes up to `max` samples that `condition` selects.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] for a condition of another reader (DDS 1.4 §2.2.2.5.3.11).
    pub fn take_where(&self, condition: &ReadCondition<T>, max: usize) -> Result<Vec<Sample<T>>, Error> {
        condition.0.check("take_where", self.cell())?;
        let mut samples = Vec::new();
        let Selection { filter, predicate, .. } = &*condition.0;
        match predicate {
            None => self.take_into(max, filter, &mut samples),
            Some(predicate) => self.take_selected(max, filter, predicate, &mut samples),
        };
        Ok(samples)
    }

    /// As [`DataReader::take_where`], but the samples stay, marked READ.
    ///
    /// # Errors
    /// As [`DataReader::take_where`].
    pub fn read_where(&self, condition: &ReadCondition<T>, max: usize) -> Result<Vec<Sample<T>>, Error> {
        condition.0.check("read_where", self.cell())?;
        let mut samples = Vec::new();
        let Selection { filter, predicate, .. } = &*condition.0;
        match predicate {
            None => self.read_into(max, filter, &mut samples),
            Some(predicate) => self.read_selected(max, filter, predicate, &mut samples),
        };
        Ok(samples)
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
        ReadCondition(Arc::new(Selection::new(self.cell(), filter, Some(predicate))))
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
        let Some(cell) = self.cell.upgrade() else { return false };
        let Some(predicate) = &self.predicate else { return cell.selects(&self.filter) };
        let samples = cell.look(&self.filter);
        // The application's predicate may take long.
        drop(cell);
        samples.into_iter().any(|sample| predicate(&Sample::new(sample)))
    }

    fn arm(&self, watch: &mut Option<WatchId>, waker: &Waker) {
        self.waiters.arm(watch, waker);
    }

    fn disarm(&self, watch: &mut Option<WatchId>) {
        self.waiters.disarm(watch);
    }
}

impl<T> Clone for ReadCondition<T> {
    fn clone(&self) -> Self {
        ReadCondition(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for ReadCondition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadCondition({}, {:?})", self.0.reader, self.0.filter)
    }
}
