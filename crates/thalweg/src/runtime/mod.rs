//! The runtime of one participant: the I/O thread, the listener thread, and the state that application threads share with them.

mod addresses;
mod alarm;
mod endpoints;
mod gathering;
mod household;
mod io_thread;
mod listener_slot;
mod listeners;
mod notify;
mod paths;
mod status_board;
mod topic_board;
mod topic_ledger;
mod turn_times;
mod waiting;
mod wall_clock;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

use thalweg_rtps::participant::Participant;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::EntityId;
use thalweg_transport::clock;
use thalweg_transport::udp::{ReceiveCounts, Sender};

use crate::conditions::StatusKinds;
use crate::explain::Diagnosis;
use crate::store::{Store, StoreThread};
use crate::type_store::TypeStore;
use crate::{Configuration, Error};
pub(crate) use addresses::{AddressPlan, local_addresses};
pub(crate) use alarm::Alarm;
#[cfg(all(loom, test))]
pub(crate) use alarm::Wake;
use endpoints::EndpointTable;
pub(crate) use household::Process;
pub(crate) use io_thread::{IoOptions, IoThread, on_io_thread};
pub(crate) use listener_slot::ListenerSlot;
pub(crate) use listeners::Agenda;
#[cfg(all(loom, test))]
pub(crate) use listeners::Call;
pub use listeners::Delivery;
use listeners::{ListenerThread, Notification};
pub(crate) use listeners::{ParticipantSlot, ParticipantStatusListener, STATUS_BACKLOG_MAX};
pub(crate) use status_board::StatusBoard;
use topic_board::TopicBoard;
pub use waiting::WatchId;
pub(crate) use waiting::{Deadline, Waiters};
use wall_clock::WallClock;

/// The threads of one participant. They end when the last handle of the participant, its writers and readers is dropped.
pub(crate) struct Runtime {
    state: Arc<RuntimeState>,
    io_thread: Mutex<Option<JoinHandle<()>>>,
    configuration: Configuration,
    /// The store of PERSISTENT histories, and its thread.
    store: Option<(Arc<Store>, StoreThread)>,
}

/// The state that all threads of a participant share.
pub(crate) struct RuntimeState {
    pub(crate) participant: Shared<Participant>,
    /// API calls that wait for the participant; the I/O thread lets them pass.
    callers: AtomicUsize,
    pub(crate) sender: Arc<Sender>,
    pub(crate) alarm: Alarm,
    pub(crate) endpoints: EndpointTable,
    pub(crate) topics: TopicBoard,
    listeners: ListenerThread,
    /// Calls for the listener thread, and calls that other threads request from the I/O thread.
    agenda: Agenda<Notification>,
    participant_listener: Arc<ParticipantSlot>,
    /// The statuses of endpoints without a listener that the participant's listener is told of.
    endpoint_kinds: StatusKinds,
    wall_clock: WallClock,
    pub(crate) diagnosis: Diagnosis,
    pub(crate) types: Arc<TypeStore>,
    stopping: AtomicBool,
    received: Box<dyn Fn() -> ReceiveCounts + Send + Sync>,
}

impl Runtime {
    /// Starts the I/O thread.
    pub(crate) fn start(
        (participant, diagnosis, types): (Participant, Diagnosis, Arc<TypeStore>),
        sender: Arc<Sender>,
        receiver: thalweg_transport::udp::Receiver,
        plan: AddressPlan,
        options: IoOptions,
        listener: Option<(Delivery, Box<ParticipantStatusListener>, StatusKinds)>,
        (configuration, store): (Configuration, Option<Arc<Store>>),
    ) -> Result<Arc<Runtime>, Error> {
        let has_news = participant.household_news();
        let state = Arc::new(RuntimeState {
            participant: Shared::new(participant),
            callers: AtomicUsize::new(0),
            sender,
            alarm: Alarm::new(receiver.waker()),
            endpoints: EndpointTable::default(),
            topics: TopicBoard::default(),
            listeners: ListenerThread::default(),
            agenda: Agenda::default(),
            participant_listener: Arc::new(ListenerSlot::new(STATUS_BACKLOG_MAX)),
            endpoint_kinds: listener.as_ref().map_or(StatusKinds::NONE, |(.., kinds)| *kinds),
            wall_clock: WallClock::default(),
            diagnosis,
            types,
            stopping: AtomicBool::new(false),
            received: Box::new(receiver.counter_reader()),
        });
        household::add(has_news, Arc::downgrade(&state));
        if let Some((delivery, listener, _)) = listener {
            state.start_listening(delivery)?;
            state.participant_listener.set(delivery, listener);
        }
        let of_store = Arc::downgrade(&state);
        let notify = move |writer| {
            if let Some(cell) = of_store.upgrade().and_then(|state| state.endpoints.writer(writer)) {
                cell.notify_waiters();
            }
        };
        let start = |store: Arc<Store>| Ok::<_, Error>((Arc::clone(&store), StoreThread::start(store, notify)?));
        // No other code ends the listener thread.
        let store = store.map(start).transpose().inspect_err(|_| state.agenda.stop())?;
        let agenda_of = Arc::clone(&state);
        let io_thread = IoThread::new(Arc::clone(&state), receiver, plan, options);
        let handle =
            thread::Builder::new().name("thalweg-io".into()).spawn(move || io_thread.run()).map_err(|error| {
                agenda_of.agenda.stop();
                Error::system("starting the I/O thread", error)
            })?;
        Ok(Arc::new(Runtime { state, io_thread: Mutex::new(Some(handle)), configuration, store }))
    }

    pub(crate) fn state(&self) -> &Arc<RuntimeState> {
        &self.state
    }

    /// The store of PERSISTENT histories, where there is one.
    pub(crate) fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref().map(|(store, _)| store)
    }

    /// The settings that endpoints are created with.
    pub(crate) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Lets a call of the API change the participant; the I/O thread then sends the resulting datagrams.
    pub(crate) fn command<R>(&self, command: impl FnOnce(Instant, &mut Participant) -> R) -> R {
        let result = self.state.with_participant(|now, participant| {
            participant.set_wall_clock(now, self.state.timestamp(now));
            command(now, participant)
        });
        self.state.alarm.wake();
        result
    }

    /// Lets a call of the API read the participant.
    pub(crate) fn view<R>(&self, view: impl FnOnce(&Participant) -> R) -> R {
        self.state.with_participant(|_, participant| view(participant))
    }

    /// Counts of received datagrams since the participant was created.
    pub(crate) fn received(&self) -> ReceiveCounts {
        self.state.received()
    }
}

impl RuntimeState {
    /// As [`Runtime::received`].
    pub(crate) fn received(&self) -> ReceiveCounts {
        (self.received)()
    }

    pub(crate) fn with_participant<R>(&self, work: impl FnOnce(Instant, &mut Participant) -> R) -> R {
        self.callers.fetch_add(1, Ordering::Relaxed);
        let mut participant = self.participant.lock();
        self.callers.fetch_sub(1, Ordering::Relaxed);
        work(clock::now(), &mut participant)
    }

    /// An endpoint of this topic is gone, or was not created: where none describes its type any more, none is announced as its type. The
    /// caller has the participant locked, so that no endpoint of the topic is just being created.
    pub(crate) fn forget_unused_type(&self, topic_name: &str) {
        if !self.endpoints.is_described(topic_name) {
            self.types.forget(topic_name);
        }
    }

    /// Makes sure that the thread runs that is to call a listener.
    pub(crate) fn start_listening(self: &Arc<Self>, delivery: Delivery) -> Result<(), Error> {
        if delivery == Delivery::Thread {
            self.listeners.start(self).map_err(|error| Error::system("starting the listener thread", error))?;
        }
        Ok(())
    }

    /// Notes that an application thread changed an endpoint's deadline.
    pub(crate) fn rearm(&self, entity: EntityId, at: Option<Instant>) {
        if let Some(at) = at {
            self.alarm.request(entity, at);
        }
    }

    /// Wall-clock time at `now`, without reading another clock most of the time.
    pub(crate) fn timestamp(&self, now: Instant) -> Timestamp {
        self.wall_clock.at(now)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::Release);
        self.state.alarm.wake();
        let handle = self.io_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        join_unless_current(handle);
        // Nobody has a writer any more.
        if let Some((_, thread)) = &self.store {
            thread.stop();
        }
        // Last, so that listeners get the I/O thread's last news.
        self.state.agenda.stop();
        join_unless_current(self.state.listeners.take());
    }
}

/// Warns the user in the log or, where no subscriber takes it, on standard error.
pub(crate) fn warn(text: &str) {
    if tracing::dispatcher::has_been_set() {
        tracing::warn!("{text}");
    } else {
        eprintln!("thalweg: {text}");
    }
}

/// Waits for a thread's end, unless it is the calling thread: a listener may drop the last handle.
fn join_unless_current(handle: Option<JoinHandle<()>>) {
    let current: ThreadId = thread::current().id();
    if let Some(handle) = handle.filter(|handle| handle.thread().id() != current)
        && handle.join().is_err()
    {
        tracing::error!("a thread of the participant ended by a panic");
    }
}
