//! The handler: the data and actions of one device, one command at a time.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::{Channel, Description, Device, DeviceError, DevicePool, Driver, Linker, Value};

/// A command to a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Measure.
    Read,
    /// Go to this value.
    Act(Value),
}

/// Takes the outcome of a command, on a thread of the device pool: the value read, or the one acted upon.
pub type Completion = Box<dyn FnOnce(Result<Value, DeviceError>) + Send>;

/// A linked device. Cheap to clone; the device is closed when the last clone is dropped.
#[derive(Clone)]
pub struct DeviceHandle {
    hold: Arc<Hold>,
}

/// Closes the device when nobody needs it any more.
struct Hold {
    seat: Arc<Seat>,
}

/// A device with the commands that wait for it. One thread of the pool at a time works on them.
pub(super) struct Seat {
    description: Arc<Description>,
    commands_max: usize,
    pool: DevicePool,
    state: Mutex<SeatState>,
}

struct SeatState {
    orders: VecDeque<Order>,
    /// Whether the pool has it, waiting or at work.
    is_scheduled: bool,
    /// Away while a thread works with it.
    link: Option<Link>,
}

enum Order {
    /// Opens the device now, so that linking it reports a failure.
    Open(SyncSender<Result<(), DeviceError>>),
    Run {
        channel: usize,
        command: Command,
        completion: Completion,
    },
    /// Leaves it in a safe state.
    Close,
}

impl DeviceHandle {
    pub(super) fn start(
        driver: Arc<dyn Driver>,
        description: Description,
        linker: &Linker,
    ) -> Result<DeviceHandle, DeviceError> {
        let description = Arc::new(description);
        let link = Link { driver, description: Arc::clone(&description), device: None };
        let state = SeatState { orders: VecDeque::new(), is_scheduled: false, link: Some(link) };
        let (commands_max, pool) = (linker.commands_max.max(1), linker.pool.clone());
        let seat = Arc::new(Seat { description, commands_max, pool, state: Mutex::new(state) });
        let handler = DeviceHandle { hold: Arc::new(Hold { seat }) };
        let (sender, opened) = mpsc::sync_channel(1);
        handler.seat().order(Order::Open(sender)).map_err(|(error, _)| error)?;
        received(&opened, linker.open_patience)?;
        Ok(handler)
    }

    fn seat(&self) -> &Arc<Seat> {
        &self.hold.seat
    }

    /// The device's description.
    pub fn description(&self) -> &Description {
        &self.seat().description
    }

    /// Hands a command to the device and returns at once; `completion` gets the outcome, here if the command is refused,
    /// else on a thread of the device pool.
    pub fn submit(&self, channel: usize, command: Command, completion: Completion) {
        let command = match self.check(channel, command) {
            Ok(command) => command,
            Err(error) => return completion(Err(error)),
        };
        if let Err((error, Order::Run { completion, .. })) =
            self.seat().order(Order::Run { channel, command, completion })
        {
            completion(Err(error));
        }
    }

    /// Runs a command and waits for its outcome, no longer than `patience`.
    ///
    /// # Errors
    /// The device's error; [`DeviceError::TimedOut`] when it took too long.
    pub fn run(&self, channel: usize, command: Command, patience: Duration) -> Result<Value, DeviceError> {
        let (sender, outcome) = mpsc::sync_channel(1);
        let completion = move |result| {
            // The receiver is gone when the command took too long.
            let _ = sender.send(result);
        };
        self.submit(channel, command, Box::new(completion));
        received(&outcome, patience)
    }

    fn check(&self, channel: usize, command: Command) -> Result<Command, DeviceError> {
        let name = &self.description().name;
        let Some(Channel { name: channel_name, kind, access, .. }) = self.description().channels.get(channel) else {
            return Err(DeviceError::Refused(format!("the device {name} has no channel {channel}")));
        };
        match command {
            Command::Read if access.reads() => Ok(Command::Read),
            Command::Read => Err(DeviceError::Refused(format!("{name}/{channel_name} cannot be read"))),
            Command::Act(_) if !access.acts() => {
                Err(DeviceError::Refused(format!("{name}/{channel_name} is a sensor and takes no value")))
            }
            // An instrument may take what is no number for all that it can give.
            Command::Act(Value::Real(number)) if !number.is_finite() => {
                Err(DeviceError::Refused(format!("{name}/{channel_name} takes a finite number, not {number}")))
            }
            Command::Act(value) => {
                let given = value.kind();
                value
                    .into_kind(*kind)
                    .map(Command::Act)
                    .ok_or_else(|| DeviceError::Refused(format!("{name}/{channel_name} takes a {kind}, not a {given}")))
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.seat.push(Order::Close);
    }
}

impl Seat {
    fn order(self: &Arc<Self>, order: Order) -> Result<(), (DeviceError, Order)> {
        if self.state().orders.len() >= self.commands_max {
            return Err((DeviceError::Overloaded, order));
        }
        self.push(order);
        Ok(())
    }

    /// Notes an order and gives the seat to the pool, unless that has it already.
    fn push(self: &Arc<Self>, order: Order) {
        let mut state = self.state();
        state.orders.push_back(order);
        let is_new = !std::mem::replace(&mut state.is_scheduled, true);
        drop(state);
        if is_new {
            self.pool.schedule(Arc::clone(self));
        }
    }

    /// Works off orders that wait; after some of them other devices get their turn.
    pub(super) fn work(self: &Arc<Self>) {
        let Some(mut link) = self.state().link.take() else { return };
        for _ in 0..ORDERS_IN_A_TURN {
            let Some(order) = self.state().orders.pop_front() else { break };
            link.carry_out(order);
        }
        let mut state = self.state();
        state.link = Some(link);
        state.is_scheduled = !state.orders.is_empty();
        let goes_on = state.is_scheduled;
        drop(state);
        if goes_on {
            self.pool.schedule(Arc::clone(self));
        }
    }

    /// The pool has no room for it: nothing that waits is carried out, but that a device which nobody has any more is left in a
    /// safe state.
    pub(super) fn refuse(self: &Arc<Self>) {
        let mut state = self.state();
        let mut orders = std::mem::take(&mut state.orders);
        // Nobody can order anything after it.
        let is_closing = matches!(orders.back(), Some(Order::Close));
        if is_closing {
            state.orders.extend(orders.pop_back());
        }
        state.is_scheduled = is_closing;
        drop(state);
        if is_closing {
            self.pool.schedule_closing(Arc::clone(self));
        }
        for order in orders {
            match order {
                Order::Open(sender) => drop(sender.send(Err(DeviceError::Overloaded))),
                Order::Run { completion, .. } => completion(Err(DeviceError::Overloaded)),
                Order::Close => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, SeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DeviceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handler({})", self.description().name)
    }
}

fn received<T>(outcome: &Receiver<Result<T, DeviceError>>, patience: Duration) -> Result<T, DeviceError> {
    match outcome.recv_timeout(patience) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(DeviceError::TimedOut(patience)),
        Err(RecvTimeoutError::Disconnected) => Err(DeviceError::Absent("its pool has ended".to_owned())),
    }
}

/// The device's side, on whatever thread of the pool works with it.
struct Link {
    driver: Arc<dyn Driver>,
    description: Arc<Description>,
    device: Option<Box<dyn Device>>,
}

impl Link {
    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Open(sender) => {
                let opened = self.guarded(|link| link.opened().map(|_| ()));
                // The receiver is gone when it took too long.
                let _ = sender.send(opened);
            }
            Order::Run { channel, command, completion } => {
                let result = self.guarded(|link| link.perform(channel, command));
                completion(result);
            }
            Order::Close => {
                let closed = self.guarded(|link| {
                    if let Some(device) = &mut link.device {
                        device.close();
                    }
                    Ok(())
                });
                if closed.is_ok() {
                    self.device = None;
                }
            }
        }
    }

    fn perform(&mut self, channel: usize, command: Command) -> Result<Value, DeviceError> {
        let device = self.opened()?;
        let result = match command {
            Command::Read => device.read(channel),
            Command::Act(value) => device.act(channel, &value).map(|()| value),
        };
        if matches!(result, Err(DeviceError::Absent(_))) {
            self.device = None;
        }
        result
    }

    fn opened(&mut self) -> Result<&mut Box<dyn Device>, DeviceError> {
        let device = match self.device.take() {
            Some(device) => device,
            None => self.driver.open(&self.description)?,
        };
        Ok(self.device.insert(device))
    }

    /// A driver that panics has failed one command; its device is opened anew for the next.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|_| {
            self.device = None;
            Err(DeviceError::Failed("the driver panicked".to_owned()))
        })
    }
}

/// Commands of one device after which another one gets the thread.
const ORDERS_IN_A_TURN: usize = 8;
