//! Receiving as a task of any asynchronous runtime.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::{DataReader, ReaderCell, Sample};
use crate::conditions::StatusKinds;
use crate::runtime::{Waiters, WatchId};
use crate::status::ReaderStatus;
use crate::until::{Until, Watched, poll_until};

impl Watched for ReaderCell {
    fn waiters(&self) -> &Arc<Waiters> {
        &self.waiters
    }
}

/// Asynchronous use. The futures belong to no runtime: the participant's I/O thread wakes the task, and there is no thread for a
/// reader. Each may be dropped at any time, as a time-out does, without a loss; none ends by itself.
impl<T> DataReader<T> {
    /// The oldest sample, removed as [`DataReader::take_one`] does, as soon as there is one.
    ///
    /// ```no_run
    /// # async fn receive(reader: thalweg::DataReader<thalweg::Raw>) {
    /// loop {
    ///     let sample = reader.recv().await;
    ///     println!("{} bytes", sample.bytes().len());
    /// }
    /// # }
    /// ```
    pub fn recv(&self) -> impl Future<Output = Sample<T>> + Send + Unpin + '_ {
        Until::new(self.cell(), |_| self.take_one())
    }

    /// All samples, one after the other, as [`DataReader::recv`] returns them. It never ends.
    pub fn stream(&self) -> Samples<'_, T> {
        Samples { reader: self, watch: None }
    }

    /// Ends when there is a sample that was not read yet; the future's counterpart of [`DataReader::wait`].
    pub fn until_unread(&self) -> impl Future<Output = ()> + Send + Unpin + '_ {
        Until::new(self.cell(), |cell| cell.reader.lock().cache().has_unread().then_some(()))
    }

    /// Ends when at least `count` writers are matched.
    pub fn until_matched(&self, count: usize) -> impl Future<Output = ()> + Send + Unpin + '_ {
        Until::new(self.cell(), move |cell| (cell.reader.lock().matched_writers().len() >= count).then_some(()))
    }

    /// The statuses that have changed since they were last read or told, as soon as there is one; they count as told. A status
    /// listener is told first, and leaves nothing to this future.
    pub fn until_status(&self) -> impl Future<Output = Vec<ReaderStatus>> + Send + Unpin + '_ {
        let changed = |changed: &Vec<_>| !changed.is_empty();
        Until::new(self.cell(), move |cell| Some(cell.take_changed(StatusKinds::ANY)).filter(changed))
    }
}

/// The samples of a reader as a stream; see [`DataReader::stream`].
pub struct Samples<'a, T> {
    reader: &'a DataReader<T>,
    watch: Option<WatchId>,
}

impl<T> Stream for Samples<'_, T> {
    type Item = Sample<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Sample<T>>> {
        let Samples { reader, watch } = self.get_mut();
        poll_until(reader.cell(), watch, context, || reader.take_one()).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.reader.available(), None)
    }
}

impl<T> Drop for Samples<'_, T> {
    fn drop(&mut self) {
        self.reader.cell().waiters.disarm(&mut self.watch);
    }
}

impl<T> fmt::Debug for Samples<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Samples({:?})", self.reader)
    }
}
