//! Properties: quantities that are measured or published.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::device::{self, Command, Completion, DeviceError, Unit, Value};
use crate::link_format::WebLink;
use crate::resource::local::{link_of, locked};
use crate::resource::representation::{READING_FORMATS, negotiate, of_value};
use crate::resource::state::{PropertyState, ReadEnd, RequestFate};
use crate::resource::{
    Get, Instruction, Put, Resource, ResourceError, ResourceRepresentation, Sampled, Sampling, SensingReport, Watcher,
};

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// The system's monotonic clock.
pub fn system_clock() -> Clock {
    Arc::new(thalweg_transport::clock::now)
}

/// The source of a property's values.
pub trait Source: Send + Sync {
    /// Begins a read and returns at once; `completion` is called exactly once, on any thread.
    fn read(&self, completion: Completion);
}

/// A channel of a linked device.
#[derive(Clone, Debug)]
pub struct DeviceChannel {
    /// The device.
    pub handler: device::DeviceHandle,
    /// Counts the device's channels from 0.
    pub channel: usize,
}

impl Source for DeviceChannel {
    fn read(&self, completion: Completion) {
        self.handler.submit(self.channel, Command::Read, completion);
    }
}

/// The description of a property.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyDescription {
    /// Its path, without the slash in front.
    pub path: String,
    /// Its name for people; empty for none.
    pub title: String,
    /// The kind of quantity, its resource type: `temperature`.
    pub quantity: String,
    /// The unit of its values.
    pub unit: Unit,
    /// When it is measured.
    pub sampling: Sampling,
    /// A read that takes longer has failed. Default 2 s, the time after which a client repeats its request.
    pub read_timeout: Duration,
}

impl PropertyDescription {
    /// A property without title that is measured like this, with the default time-out.
    pub fn new(path: impl Into<String>, quantity: impl Into<String>, unit: Unit, sampling: Sampling) -> Self {
        let (path, quantity) = (path.into(), quantity.into());
        let read_timeout = Duration::from_secs(2);
        PropertyDescription { path, title: String::new(), quantity, unit, sampling, read_timeout }
    }
}

/// A quantity of this thing. A clone is the same property.
#[derive(Clone)]
pub struct Property {
    shared: Arc<Shared>,
}

struct Shared {
    path: String,
    link: WebLink,
    unit: Unit,
    sampling: Sampling,
    source: Option<Box<dyn Source>>,
    instruction: Option<Instruction>,
    clock: Clock,
    state: Mutex<PropertyState<Waiter>>,
    watcher: OnceLock<Weak<dyn Watcher>>,
}

/// The place at which a request waits for the read in flight.
type Waiter = SyncSender<Result<Sampled, DeviceError>>;

impl Property {
    /// A property that `source` measures, and that `instruction` drives if there is one.
    pub fn measured(
        description: PropertyDescription,
        source: impl Source + 'static,
        instruction: Option<Instruction>,
        clock: Clock,
    ) -> Property {
        Property::create(description, Some(Box::new(source)), instruction, clock)
    }

    /// A property whose values a service publishes with [`push`](Self::push).
    pub fn pushed(path: &str, quantity: &str, unit: Unit, max_age: Duration, clock: Clock) -> Property {
        let description = PropertyDescription::new(path, quantity, unit, Sampling::Pushed { max_age });
        Property::create(description, None, None, clock)
    }

    /// A property that has this value for good; clients may keep it for `max_age` whenever they ask.
    pub fn constant(path: &str, quantity: &str, unit: Unit, max_age: Duration, value: Value, clock: Clock) -> Property {
        let description = PropertyDescription::new(path, quantity, unit, Sampling::Constant { max_age });
        let property = Property::create(description, None, None, clock);
        property.push(value);
        property
    }

    fn create(
        description: PropertyDescription,
        source: Option<Box<dyn Source>>,
        instruction: Option<Instruction>,
        clock: Clock,
    ) -> Property {
        let PropertyDescription { path, title, quantity, unit, sampling, read_timeout } = description;
        let interface = if instruction.is_some() { "core.a" } else { "core.s" };
        let link = link_of(&path, &title, &quantity, interface, &READING_FORMATS).with_flag("obs");
        let state = Mutex::new(PropertyState::new(sampling, read_timeout));
        let watcher = OnceLock::new();
        Property { shared: Arc::new(Shared { path, link, unit, sampling, source, instruction, clock, state, watcher }) }
    }

    /// Publishes a value.
    pub fn push(&self, value: Value) {
        self.shared.handle_outcome(Ok(value));
    }

    /// The present value: from the store while it is fresh, else from the one read that is in flight.
    ///
    /// # Errors
    /// Why there is none.
    pub fn read(&self) -> Result<Sampled, DeviceError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let asked = {
            let mut state = locked(&self.shared.state);
            // The time is read under the lock, so that requests come in its order.
            state.handle_request((self.shared.clock)(), || sender)
        };
        let deadline = match asked {
            RequestFate::Known(outcome) => return outcome,
            RequestFate::Joined(deadline) => deadline,
            RequestFate::Begin(deadline) => {
                self.begin();
                deadline
            }
        };
        loop {
            match answer.recv_timeout(deadline.since((self.shared.clock)())) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Timeout) => self.shared.handle_timeout(),
                Err(RecvTimeoutError::Disconnected) => return Err(DeviceError::Unresponsive),
            }
        }
    }

    fn begin(&self) {
        let shared = Arc::clone(&self.shared);
        let completion: Completion = Box::new(move |outcome| shared.handle_outcome(outcome));
        match &self.shared.source {
            Some(source) => source.read(completion),
            None => completion(Err(DeviceError::Absent("nothing measures it".to_owned()))),
        }
    }
}

impl Shared {
    fn handle_outcome(&self, outcome: Result<Value, DeviceError>) {
        let answer = {
            let mut state = locked(&self.state);
            state.handle_outcome((self.clock)(), outcome)
        };
        self.deliver(answer);
        // The reading may have made the next one due earlier or later.
        if matches!(self.sampling, Sampling::Adaptive(_)) {
            self.reschedule();
        }
    }

    fn handle_timeout(&self) {
        let answer = {
            let mut state = locked(&self.state);
            state.handle_timeout((self.clock)())
        };
        if let Some(answer) = answer {
            self.deliver(answer);
        }
    }

    fn deliver(&self, answer: ReadEnd<Waiter>) {
        for waiter in answer.waiters {
            // The receiver is gone when the request was given up.
            let _ = waiter.try_send(answer.outcome.clone());
        }
        if let Some(watcher) = self.watcher.get().and_then(Weak::upgrade).filter(|_| answer.changed) {
            watcher.handle_change(&self.path);
        }
    }

    fn reschedule(&self) {
        if let Some(watcher) = self.watcher.get().and_then(Weak::upgrade) {
            watcher.handle_reschedule();
        }
    }
}

impl Resource for Property {
    fn path(&self) -> &str {
        &self.shared.path
    }

    fn link(&self) -> WebLink {
        self.shared.link.clone()
    }

    fn blocks(&self) -> bool {
        self.shared.instruction.is_some()
            || matches!(self.shared.sampling, Sampling::OnDemand { .. } | Sampling::Adaptive(_))
    }

    fn get(&self, request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        let format = negotiate(&READING_FORMATS, request.accept)?;
        let sampled = self.read()?;
        let payload = of_value(format, &self.shared.path, &sampled.value, self.shared.unit)?;
        let max_age = match self.shared.sampling {
            Sampling::Constant { max_age } => max_age,
            _ => sampled.fresh_for((self.shared.clock)()),
        };
        Ok(ResourceRepresentation::new(format, payload, max_age))
    }

    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        let Some(instruction) = &self.shared.instruction else {
            return Err(ResourceError::NotAllowed(format!("/{} is measured and takes no value", self.shared.path)));
        };
        let done = instruction.put(request);
        // Also when it failed: it may have had a part of its effect.
        locked(&self.shared.state).handle_action((self.shared.clock)());
        self.shared.reschedule();
        done
    }

    fn is_timed(&self) -> bool {
        !matches!(self.shared.sampling, Sampling::Pushed { .. } | Sampling::Constant { .. })
    }

    fn sensing(&self) -> Option<SensingReport> {
        locked(&self.shared.state).sensing((self.shared.clock)())
    }

    fn attach(&self, watcher: Weak<dyn Watcher>) {
        // A property in two stores informs the first; nothing puts it into two.
        let _ = self.shared.watcher.set(watcher);
    }

    fn set_observed(&self, observed: bool) {
        locked(&self.shared.state).set_observed((self.shared.clock)(), observed);
        self.shared.reschedule();
    }

    fn handle_timeout(&self, now: Instant) -> Option<Instant> {
        let (overdue, begins) = {
            let mut state = locked(&self.shared.state);
            (state.handle_timeout(now), state.poll_sample(now))
        };
        if let Some(answer) = overdue {
            self.shared.deliver(answer);
        }
        if begins {
            self.begin();
        }
        locked(&self.shared.state).poll_timeout()
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Property({}, {:?})", self.shared.path, self.shared.sampling)
    }
}
