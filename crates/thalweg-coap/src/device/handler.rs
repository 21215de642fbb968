//! The handler: the data and actions of one device, on its thread.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::Duration;

use crate::device::{Channel, Description, Device, DeviceError, Driver, Linker, Value};

/// A command to a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Measure.
    Read,
    /// Go to this value.
    Act(Value),
}

/// Takes the outcome of a command, on the device's thread: the value read, or the one acted upon.
pub type Completion = Box<dyn FnOnce(Result<Value, DeviceError>) + Send>;

/// A linked device. Cheap to clone; the device is closed when the last clone is dropped.
#[derive(Clone)]
pub struct DeviceHandle {
    description: Arc<Description>,
    orders: SyncSender<Order>,
}

enum Order {
    /// Opens the device now, so that linking it reports a failure.
    Open(SyncSender<Result<(), DeviceError>>),
    Run {
        channel: usize,
        command: Command,
        completion: Completion,
    },
}

impl DeviceHandle {
    pub(super) fn start(
        driver: Arc<dyn Driver>,
        description: Description,
        linker: &Linker,
    ) -> Result<DeviceHandle, DeviceError> {
        let description = Arc::new(description);
        let (orders, inbox) = mpsc::sync_channel(linker.commands_max.max(1));
        let link = Link { driver, description: Arc::clone(&description), device: None };
        let started =
            std::thread::Builder::new().name(format!("device-{}", description.name)).spawn(move || link.run(&inbox));
        started.map_err(|error| DeviceError::Failed(format!("no thread for the device: {error}")))?;
        let handler = DeviceHandle { description, orders };
        let (sender, opened) = mpsc::sync_channel(1);
        handler.order(Order::Open(sender)).map_err(|(error, _)| error)?;
        received(&opened, linker.open_patience)?;
        Ok(handler)
    }

    /// The device's description.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Hands a command to the device and returns at once; `completion` gets the outcome, here if the command is refused,
    /// else on the device's thread.
    pub fn submit(&self, channel: usize, command: Command, completion: Completion) {
        let command = match self.check(channel, command) {
            Ok(command) => command,
            Err(error) => return completion(Err(error)),
        };
        if let Err((error, Order::Run { completion, .. })) = self.order(Order::Run { channel, command, completion }) {
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
        let name = &self.description.name;
        let Some(Channel { name: channel_name, kind, access, .. }) = self.description.channels.get(channel) else {
            return Err(DeviceError::Refused(format!("the device {name} has no channel {channel}")));
        };
        match command {
            Command::Read if access.reads() => Ok(Command::Read),
            Command::Read => Err(DeviceError::Refused(format!("{name}/{channel_name} cannot be read"))),
            Command::Act(_) if !access.acts() => {
                Err(DeviceError::Refused(format!("{name}/{channel_name} is a sensor and takes no value")))
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

    fn order(&self, order: Order) -> Result<(), (DeviceError, Order)> {
        self.orders.try_send(order).map_err(|error| match error {
            TrySendError::Full(order) => (DeviceError::Overloaded, order),
            TrySendError::Disconnected(order) => (DeviceError::Absent("its thread has ended".to_owned()), order),
        })
    }
}

impl fmt::Debug for DeviceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handler({})", self.description.name)
    }
}

fn received<T>(outcome: &Receiver<Result<T, DeviceError>>, patience: Duration) -> Result<T, DeviceError> {
    match outcome.recv_timeout(patience) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(DeviceError::TimedOut(patience)),
        Err(RecvTimeoutError::Disconnected) => Err(DeviceError::Absent("its thread has ended".to_owned())),
    }
}

/// The device's side, on its thread.
struct Link {
    driver: Arc<dyn Driver>,
    description: Arc<Description>,
    device: Option<Box<dyn Device>>,
}

impl Link {
    fn run(mut self, inbox: &Receiver<Order>) {
        while let Ok(order) = inbox.recv() {
            match order {
                Order::Open(sender) => {
                    let opened = self.guarded(|link| link.opened().map(|_| ()));
                    let _ = sender.send(opened);
                }
                Order::Run { channel, command, completion } => {
                    let result = self.guarded(|link| link.perform(channel, command));
                    completion(result);
                }
            }
        }
        if let Some(device) = &mut self.device {
            device.close();
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
