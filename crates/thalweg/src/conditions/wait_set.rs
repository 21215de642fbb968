//! Waiting for several conditions at once.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use thalweg_rtps::shared::debug_assert_none_held;
use thalweg_transport::poll_flag::PollFlag;

use super::Condition;
use super::sealed::Source;
use crate::runtime::{Deadline, WatchId, on_io_thread};
use crate::{Error, ErrorKind};

/// Waits until one of its conditions is true (DDS 1.4 §2.2.2.1.6): on a thread with [`WaitSet::wait`], or in a program's own `poll`
/// loop by its file descriptor. A wait costs as much as there are conditions that may have changed, not as there are attached.
///
/// ```no_run
/// # use std::time::Duration;
/// # use thalweg::conditions::{GuardCondition, WaitSet};
/// # use thalweg::{DataReader, ReadFilter, Raw};
/// # fn run(reader: DataReader<Raw>, stop: GuardCondition) -> Result<(), thalweg::Error> {
/// let set = WaitSet::new()?;
/// let data = reader.read_condition(ReadFilter::ALL);
/// let (has_data, ends) = (set.attach(&data), set.attach(&stop));
/// loop {
///     let triggered = set.wait(Duration::from_secs(1))?;
///     if triggered.contains(&ends) {
///         return Ok(());
///     }
///     if triggered.contains(&has_data) {
///         println!("{} samples", reader.take_where(&data, 16)?.len());
///     }
/// }
/// # }
/// ```
pub struct WaitSet {
    bells: Arc<Bells>,
    attached: Mutex<Attached>,
    /// Whether a thread waits.
    is_waiting: AtomicBool,
}

/// Names one condition of one wait set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConditionId(u64);

#[derive(Default)]
struct Attached {
    conditions: BTreeMap<ConditionId, Entry>,
    next: u64,
    /// Those that were true when they were last looked at.
    active: Vec<ConditionId>,
}

struct Entry {
    source: Arc<dyn Source>,
    watch: Option<WatchId>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// The conditions that may have become true.
struct Bells {
    rung: Mutex<Vec<ConditionId>>,
    changed: Condvar,
    event: PollFlag,
}

/// Rings for one condition.
struct Bell {
    id: ConditionId,
    bells: Arc<Bells>,
    /// Whether it rang and was not looked at.
    has_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            self.bells.ring(self.id);
        }
    }
}

impl Bells {
    fn ring(&self, id: ConditionId) {
        self.rung().push(id);
        self.changed.notify_one();
        self.event.signal();
    }

    fn rung(&self) -> MutexGuard<'_, Vec<ConditionId>> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitSet {
    /// A wait set without conditions.
    ///
    /// # Errors
    /// [`ErrorKind::Error`] when the system has no file descriptor left.
    pub fn new() -> Result<WaitSet, Error> {
        let event = PollFlag::new().map_err(|error| Error::system("creating a wait set", error))?;
        let bells = Bells { rung: Mutex::default(), changed: Condvar::new(), event };
        Ok(WaitSet { bells: Arc::new(bells), attached: Mutex::default(), is_waiting: AtomicBool::new(false) })
    }

    /// Adds a condition, also while a thread waits. A condition may be in many wait sets, and may outlive its reader or writer:
    /// it is false from then on.
    pub fn attach(&self, condition: &impl Condition) -> ConditionId {
        let mut attached = self.attached();
        let id = ConditionId(attached.next);
        attached.next += 1;
        let bell = Arc::new(Bell { id, bells: Arc::clone(&self.bells), has_rung: AtomicBool::new(true) });
        let entry = Entry { source: condition.source(), watch: None, waker: Waker::from(Arc::clone(&bell)), bell };
        attached.conditions.insert(id, entry);
        drop(attached);
        // Looked at with the next wait; it may be true already.
        self.bells.ring(id);
        id
    }

    /// Removes a condition; false when it is not attached.
    pub fn detach(&self, id: ConditionId) -> bool {
        let removed = self.attached().conditions.remove(&id);
        let Some(mut entry) = removed else { return false };
        entry.source.disarm(&mut entry.watch);
        true
    }

    /// The conditions that are true now, in the order in which they were attached.
    pub fn triggered(&self) -> Vec<ConditionId> {
        debug_assert_none_held();
        let mut attached = self.attached();
        self.bells.event.clear();
        let mut candidates = std::mem::take(&mut *self.bells.rung());
        candidates.append(&mut attached.active);
        candidates.sort_unstable();
        candidates.dedup();
        let conditions = &mut attached.conditions;
        let armed = |id: ConditionId| Some((id, conditions.get_mut(&id)?.arm()));
        let sources: Vec<_> = candidates.into_iter().filter_map(armed).collect();
        drop(attached);
        // A condition may call a predicate of the application, which may use this wait set, or panic.
        let mut next = LookedAtNext { set: self, ids: sources.iter().map(|(id, _)| *id).collect() };
        let is_true = |(id, source): (ConditionId, Arc<dyn Source>)| source.is_triggered().then_some(id);
        let triggered: Vec<ConditionId> = sources.into_iter().filter_map(is_true).collect();
        next.ids.clone_from(&triggered);
        triggered
    }

    /// Waits until a condition is true, and returns those that are; of several that one event makes true, some may come with the
    /// next call. Within an inline listener it never waits.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] after `timeout`; [`ErrorKind::PreconditionNotMet`] while another thread waits (DDS 1.4 §2.2.2.1.6.3).
    pub fn wait(&self, timeout: Duration) -> Result<Vec<ConditionId>, Error> {
        if self.is_waiting.swap(true, Ordering::Acquire) {
            let cause = "failed: another thread waits on this wait set";
            let error = Error::new(ErrorKind::PreconditionNotMet, "wait", cause);
            return Err(error.advise("give each thread a wait set of its own"));
        }
        let _turn = Turn(&self.is_waiting);
        let result = self.wait_until(Deadline::after(timeout));
        let timed_out =
            || Error::new(ErrorKind::Timeout, "wait", format!("found no true condition within {timeout:?}"));
        result.ok_or_else(timed_out)
    }

    fn wait_until(&self, deadline: Deadline) -> Option<Vec<ConditionId>> {
        loop {
            let triggered = self.triggered();
            if !triggered.is_empty() {
                return Some(triggered);
            }
            // Also while bells ring without end: a condition may change and be false at each look.
            if deadline.has_passed() {
                return None;
            }
            let mut rung = self.bells.rung();
            while rung.is_empty() {
                if deadline.has_passed() || on_io_thread() {
                    return None;
                }
                let waited = self.bells.changed.wait_timeout(rung, deadline.left());
                rung = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn attached(&self) -> MutexGuard<'_, Attached> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Conditions that the next call looks at whatever happens.
struct LookedAtNext<'a> {
    set: &'a WaitSet,
    ids: Vec<ConditionId>,
}

impl Drop for LookedAtNext<'_> {
    fn drop(&mut self) {
        if !self.ids.is_empty() {
            let last = self.ids.last().copied();
            self.set.attached().active.append(&mut self.ids);
            // The program that polls the descriptor is to look again until all is done, and so is a thread that waits.
            self.set.bells.event.signal();
            if self.set.is_waiting.load(Ordering::Acquire) {
                self.set.bells.rung().extend(last);
                self.set.bells.changed.notify_all();
            }
        }
    }
}

/// The only wait on a wait set, until it is dropped.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Entry {
    /// Lets the condition ring for later changes; it is to be looked at next.
    fn arm(&mut self) -> Arc<dyn Source> {
        self.bell.has_rung.store(false, Ordering::Release);
        self.source.arm(&mut self.watch, &self.waker);
        Arc::clone(&self.source)
    }
}

/// Readable while a condition may be true: call [`WaitSet::triggered`] then, which tells. It is level-triggered, and stays readable
/// until a call finds none.
impl AsFd for WaitSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bells.event.as_fd()
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        for entry in self.attached().conditions.values_mut() {
            entry.source.disarm(&mut entry.watch);
        }
    }
}

impl fmt::Debug for WaitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaitSet({} conditions)", self.attached().conditions.len())
    }
}
