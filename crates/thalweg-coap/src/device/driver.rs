//! The interface of drivers.

use crate::device::{DeviceError, Unit, Value, ValueKind};

/// A family of devices: finds them and opens them.
///
/// Its methods may block: they are called on threads of their own.
pub trait Driver: Send + Sync {
    /// A short name such as `thermal`, the same for all its devices.
    fn name(&self) -> &str;

    /// The devices that are there now.
    ///
    /// # Errors
    /// When the driver cannot look; no device is no error.
    fn find(&self) -> Result<Vec<Description>, DeviceError>;

    /// Opens a device that [`find`](Self::find) described.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] when it is not there any more or may not be used.
    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError>;
}

/// An opened device. Dropping it closes it as well; [`close`](Self::close) comes first when there is time.
pub trait Device: Send {
    /// Measures; `channel` counts the channels of its description from 0.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] when the device has gone, so that it is opened anew; [`DeviceError::Failed`] otherwise.
    fn read(&mut self, channel: usize) -> Result<Value, DeviceError>;

    /// Acts: drives the channel to a value.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn act(&mut self, channel: usize, value: &Value) -> Result<(), DeviceError>;

    /// Leaves the device in a safe state before it is dropped. By default nothing.
    fn close(&mut self) {}
}

/// A device as its driver found it.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Names it among the devices of its driver, in letters that a path may hold: `thermal_zone0`.
    pub name: String,
    /// Its name for people: `x86_pkg_temp`.
    pub title: String,
    /// Its channels.
    pub channels: Vec<Channel>,
}

/// One quantity of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Names it within the device: `temperature`.
    pub name: String,
    /// Kind of quantity, for the `rt` attribute of its resource: `temperature`, `load`, `switch`.
    pub quantity: &'static str,
    /// The type of its values.
    pub kind: ValueKind,
    /// The unit of its values.
    pub unit: Unit,
    /// Its permitted accesses.
    pub access: Access,
}

/// Permitted accesses to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is a sensor.
    Read,
    /// It is an actuator whose state cannot be read.
    Act,
    /// It is an actuator that tells its state.
    ReadAndAct,
}

impl Access {
    /// Whether it can be read.
    pub fn reads(self) -> bool {
        self != Access::Act
    }

    /// Whether it can be driven.
    pub fn acts(self) -> bool {
        self != Access::Read
    }
}

impl Channel {
    /// A channel that can only be read.
    pub fn sensor(name: &str, quantity: &'static str, kind: ValueKind, unit: Unit) -> Channel {
        Channel { name: name.to_owned(), quantity, kind, unit, access: Access::Read }
    }
}
