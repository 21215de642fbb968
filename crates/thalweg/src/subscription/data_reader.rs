//! The handle that applications receive through.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use thalweg_rtps::history::{Choice, ReadFilter, TakenSample, ViewState};
use thalweg_rtps::reader::ReaderCounters;
use thalweg_rtps::types::Guid;
use thalweg_transport::clock;

use super::keys::Keys;
use super::reader_cell::{DataListener, ReaderStatusListener};
use super::{ReaderCell, Sample};
use crate::explain::ReaderExplanation;
use crate::runtime::{Deadline, Delivery, Runtime, on_io_thread};
use crate::status::{
    DeadlineMissed, IncompatibleQos, LivelinessChanged, Matched, ReaderStatus, SampleLost, SampleRejected,
};
use crate::topic::TopicKeys;
use crate::{Error, ErrorKind, scratch, trace};

/// Receives samples of type `T` from one topic (DDS 1.4 §2.2.2.5.3).
///
/// All methods take `&self` and may be called from any thread. Dropping the reader deletes it and tells its writers; samples
/// taken before stay valid.
///
/// ```no_run
/// # use std::time::Duration;
/// # use thalweg::qos::ReaderQos;
/// # use thalweg::{DomainParticipant, Topic};
/// # #[derive(Topic, Debug)]
/// # struct Pose { x: f64 }
/// # fn main() -> Result<(), thalweg::Error> {
/// # let participant = DomainParticipant::new(0)?;
/// let topic = participant.create_topic::<Pose>("pose");
/// let reader = participant.create_reader(&topic, ReaderQos::default().reliable())?;
/// while reader.wait(Duration::from_secs(1)) {
///     for sample in reader.take(16).iter().filter(|sample| sample.is_valid()) {
///         println!("{:?}", sample.data()?);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct DataReader<T> {
    runtime: Arc<Runtime>,
    cell: Arc<ReaderCell>,
    /// Whether dropping the handle deletes the reader; false for handles that listeners get.
    owner: bool,
    type_marker: PhantomData<fn() -> T>,
}

thread_local! {
    /// Samples on their way from the reader to the application's list; taken while in use.
    static TAKEN: Cell<Vec<TakenSample>> = const { Cell::new(Vec::new()) };
}

impl<T> DataReader<T> {
    pub(super) fn new(runtime: Arc<Runtime>, cell: Arc<ReaderCell>) -> DataReader<T> {
        DataReader { runtime, cell, owner: true, type_marker: PhantomData }
    }

    pub(crate) fn cell(&self) -> &Arc<ReaderCell> {
        &self.cell
    }

    pub(super) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Starts the thread that computes the keys of a raw topic, if it has a function for them.
    pub(super) fn start_keys(&self) -> Result<(), Error> {
        let TopicKeys::Application(key_of) = &self.cell.topic.keys else { return Ok(()) };
        let keys = Keys::new(Arc::clone(self.runtime.state()), Arc::clone(&self.cell), Arc::clone(key_of));
        keys.start().map_err(|error| Error::system("starting the thread for the keys of a raw topic", error))
    }

    /// Removes up to `max` samples in the order in which they arrived.
    pub fn take(&self, max: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.take_into(max, &ReadFilter::ALL, &mut samples);
        samples
    }

    /// Removes the oldest sample.
    pub fn take_one(&self) -> Option<Sample<T>> {
        self.fetch(
            |reader, into| reader.take(clock::now, 1, &ReadFilter::ALL, into),
            |mut taken| taken.next().map(Sample::new),
        )
    }

    /// Removes up to `max` samples that `filter` selects and appends them to `samples`, without an allocation while that list has
    /// room. Returns their number.
    pub fn take_into(&self, max: usize, filter: &ReadFilter, samples: &mut Vec<Sample<T>>) -> usize {
        self.fetch(|reader, into| reader.take(clock::now, max, filter, into), |taken| append(samples, taken))
    }

    /// As [`DataReader::take`], but the samples stay, marked READ.
    pub fn read(&self, max: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.read_into(max, &ReadFilter::ALL, &mut samples);
        samples
    }

    /// As [`DataReader::take_into`], but the samples stay, marked READ.
    pub fn read_into(&self, max: usize, filter: &ReadFilter, samples: &mut Vec<Sample<T>>) -> usize {
        self.fetch(|reader, into| reader.read(clock::now, max, filter, into), |taken| append(samples, taken))
    }

    /// Samples that wait to be taken, read ones included.
    pub fn available(&self) -> usize {
        self.cell.reader.lock().cache().len()
    }

    /// Lets `fetch` move samples out under the reader's lock, and `keep` turn them into the application's without it.
    pub(super) fn fetch<R>(
        &self,
        fetch: impl FnOnce(&mut thalweg_rtps::reader::Reader, &mut Vec<TakenSample>) -> thalweg_rtps::reader::TakeOutcome,
        keep: impl FnOnce(std::vec::Drain<'_, TakenSample>) -> R,
    ) -> R {
        let mut taken = scratch::take(&TAKEN);
        let outcome = fetch(&mut self.cell.reader.lock(), &mut taken);
        trace::taken(self.cell.guid(), &taken);
        self.runtime.state().rearm(self.cell.guid().entity, outcome.arm);
        // A condition may want samples that are read, or instances that are not new.
        let is_new = |one: &TakenSample| one.info.view_state == ViewState::New;
        if outcome.keys_due {
            self.cell.notify_waiters();
        } else if (outcome.stay && !taken.is_empty()) || taken.iter().any(is_new) {
            self.cell.waiters.wake_tasks();
        }
        let kept = keep(taken.drain(..));
        scratch::keep(&TAKEN, taken);
        kept
    }

    /// Removes up to `max` samples that `filter` and `selects` select.
    pub(crate) fn take_selected(
        &self,
        max: usize,
        filter: &ReadFilter,
        selects: impl Fn(&Sample<T>) -> bool,
        samples: &mut Vec<Sample<T>>,
    ) -> usize {
        let chosen = self.choose(max, filter, selects);
        self.fetch(|reader, into| reader.take_chosen(clock::now, &chosen, into), |taken| append(samples, taken))
    }

    /// As [`DataReader::take_selected`], but the samples stay, marked READ.
    pub(crate) fn read_selected(
        &self,
        max: usize,
        filter: &ReadFilter,
        selects: impl Fn(&Sample<T>) -> bool,
        samples: &mut Vec<Sample<T>>,
    ) -> usize {
        let chosen = self.choose(max, filter, selects);
        self.fetch(|reader, into| reader.read_chosen(clock::now, &chosen, into), |taken| append(samples, taken))
    }

    /// The places of up to `max` samples that `filter` and `selects` select. The application's code runs without a lock.
    fn choose(&self, max: usize, filter: &ReadFilter, selects: impl Fn(&Sample<T>) -> bool) -> Choice {
        let samples = self.cell.look(filter).into_iter().map(Sample::<T>::new);
        samples.filter(selects).take(max).map(|sample| (sample.info().writer, sample.info().sequence)).collect()
    }

    /// Waits until there is a sample that was not read yet, and returns true; false after `timeout`.
    ///
    /// Within an inline listener it never waits, since that thread is the one that receives.
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut reader = self.cell.reader.lock();
        if reader.cache().has_unread() {
            return true;
        }
        let deadline = Deadline::after(timeout);
        while !reader.cache().has_unread() {
            if on_io_thread() || deadline.has_passed() {
                return false;
            }
            reader = self.cell.waiters.wait(&self.cell.reader, reader, deadline);
        }
        true
    }

    /// Waits until at least `count` writers are matched.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] after `timeout`, saying how many there are.
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> Result<(), Error> {
        let deadline = Deadline::after(timeout);
        let mut reader = self.cell.reader.lock();
        while reader.matched_writers().len() < count {
            if deadline.has_passed() || on_io_thread() {
                let now = reader.matched_writers().len();
                let cause = format!("timed out after {timeout:?}: {now} of {count} writers matched");
                let advice = "start the writers, or see the incompatible QoS status and `thalweg doctor`";
                return Err(Error::new(ErrorKind::Timeout, "wait_for_matched", cause)
                    .on_topic(&self.cell.topic.name)
                    .advise(advice));
            }
            reader = self.cell.waiters.wait(&self.cell.reader, reader, deadline);
        }
        Ok(())
    }

    /// Calls `listener` whenever samples have arrived, in place of an earlier listener, and once at first if unread samples are
    /// there already. One call may stand for many samples: take until none is left.
    ///
    /// # Errors
    /// [`ErrorKind::Error`] when the listener thread cannot be started.
    pub fn on_data(
        &self,
        delivery: Delivery,
        listener: impl FnMut(&DataReader<T>) + Send + 'static,
    ) -> Result<(), Error>
    where
        T: 'static,
    {
        let state = self.runtime.state();
        state.start_listening(delivery)?;
        self.cell.data_listener().set(delivery, DataReader::data_callback(&self.runtime, listener));
        if self.cell.reader.lock().cache().has_unread() {
            state.announce_data(&self.cell);
        }
        Ok(())
    }

    /// A callback that calls `listener` with a handle of the reader.
    pub(super) fn data_callback(
        runtime: &Arc<Runtime>,
        mut listener: impl FnMut(&DataReader<T>) + Send + 'static,
    ) -> Box<DataListener>
    where
        T: 'static,
    {
        let runtime = Arc::downgrade(runtime);
        Box::new(move |cell: &Arc<ReaderCell>| {
            if let Some(runtime) = runtime.upgrade() {
                let cell = Arc::clone(cell);
                listener(&DataReader { runtime, cell, owner: false, type_marker: PhantomData });
            }
        })
    }

    /// Stops calling the data listener. A call under way on another thread ends by itself.
    pub fn clear_on_data(&self) {
        self.cell.data_listener().clear();
    }

    /// Calls `listener` for every status change of this reader except data, in place of an earlier listener. It is told at once of
    /// changes since the reader was created, or since the status was last read, that no earlier listener was told of.
    /// [`Subscriber::reader_builder`](crate::Subscriber::reader_builder) sets a listener before the first change.
    ///
    /// # Errors
    /// [`ErrorKind::Error`] when the listener thread cannot be started.
    pub fn on_status(
        &self,
        delivery: Delivery,
        listener: impl FnMut(ReaderStatus) + Send + 'static,
    ) -> Result<(), Error> {
        let state = self.runtime.state();
        state.start_listening(delivery)?;
        let listener: Box<ReaderStatusListener> = Box::new(listener);
        self.cell.status_listener().set(delivery, listener);
        state.announce_reader_changes(&self.cell);
        Ok(())
    }

    /// SUBSCRIPTION_MATCHED; its changes start from zero again.
    pub fn subscription_matched(&self) -> Matched {
        self.cell.tell_matched()
    }

    /// REQUESTED_INCOMPATIBLE_QOS, with the explanation; its changes start from zero again.
    pub fn requested_incompatible_qos(&self) -> IncompatibleQos {
        self.cell.tell_incompatible()
    }

    /// REQUESTED_DEADLINE_MISSED; its change starts from zero again.
    pub fn requested_deadline_missed(&self) -> DeadlineMissed {
        self.cell.tell_deadline_missed()
    }

    /// LIVELINESS_CHANGED; its changes start from zero again.
    pub fn liveliness_changed(&self) -> LivelinessChanged {
        self.cell.tell_liveliness_changed()
    }

    /// SAMPLE_LOST, with the reasons; its change starts from zero again.
    pub fn sample_lost(&self) -> SampleLost {
        self.cell.tell_lost()
    }

    /// SAMPLE_REJECTED, with the limit that was met; its change starts from zero again.
    pub fn sample_rejected(&self) -> SampleRejected {
        self.cell.tell_rejected()
    }

    /// GUIDs of the writers matched now.
    pub fn matched_writers(&self) -> Vec<Guid> {
        self.cell.reader.lock().matched_writers().collect()
    }

    /// Counts of samples that this reader received, lost (SAMPLE_LOST) and could not store (SAMPLE_REJECTED).
    pub fn counters(&self) -> ReaderCounters {
        self.cell.reader.lock().counters()
    }

    /// Samples that this reader received and did not hand over, as `thalweg why` shows them.
    pub fn explain(&self) -> ReaderExplanation {
        let mut told = self.cell.reader.lock().explain();
        told.topic.clone_from(&self.cell.topic.name);
        told
    }

    /// Samples that KEEP_LAST replaced by newer ones before they were taken.
    pub fn overwritten(&self) -> u64 {
        self.cell.reader.lock().cache().overwritten()
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.cell.guid()
    }

    /// Name of its topic.
    pub fn topic_name(&self) -> &str {
        &self.cell.topic.name
    }
}

pub(super) fn append<T>(samples: &mut Vec<Sample<T>>, taken: std::vec::Drain<'_, TakenSample>) -> usize {
    let count = taken.len();
    samples.extend(taken.map(Sample::new));
    count
}

impl<T> Drop for DataReader<T> {
    fn drop(&mut self) {
        if !self.owner {
            return;
        }
        self.cell.data_listener().clear();
        self.cell.status_listener().clear();
        self.cell.close();
        let (state, entity) = (self.runtime.state(), self.cell.guid().entity);
        state.endpoints.remove(entity);
        self.runtime.command(|now, participant| {
            participant.delete_reader(now, entity);
            state.forget_unused_type(&self.cell.topic.name);
        });
    }
}

impl<T> fmt::Debug for DataReader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataReader({}, {:?})", self.guid(), self.topic_name())
    }
}
