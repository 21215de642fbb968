//! Device management: what finds sensors and actuators, links them, and handles their data and actions.
//!
//! | part | duty |
//! |---|---|
//! | [`Finder`] | asks every driver which devices it has |
//! | [`Linker`] | opens a found device and gives it a thread of its own |
//! | [`DeviceHandle`] | passes readings and actions to and from one linked device |
//!
//! A device that fails, hangs or panics delays no other device: each has its own thread and its own bounded queue, and a caller that
//! asks it waits no longer than he says.

mod driver;
pub mod drivers;
mod error;
mod finder;
mod handler;
mod linker;
mod value;

pub use driver::{Access, Channel, Description, Device, Driver};
pub use error::DeviceError;
pub use finder::{Finder, FoundDevice, FoundDevices};
pub use handler::{Command, Completion, DeviceHandle};
pub use linker::Linker;
pub use value::{Unit, Value, ValueKind};

#[cfg(test)]
pub(crate) mod tests;
