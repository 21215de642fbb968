//! Device management: what finds sensors and actuators, links them, and handles their data and actions.
//!
//! | part | duty |
//! |---|---|
//! | [`Finder`] | asks every driver which devices it has |
//! | [`Linker`] | opens a found device |
//! | [`DevicePool`] | the threads that work with devices, as many as block |
//! | [`DeviceHandle`] | passes readings and actions to and from one linked device |
//!
//! A device that fails, hangs or panics delays no other device: each has its own bounded queue, the pool
//! replaces threads that block, and a caller waits no longer than he says.

mod driver;
pub mod drivers;
mod error;
mod finder;
mod handler;
mod linker;
mod pool;
mod value;

pub use driver::{Access, Channel, Description, Device, Driver};
pub use error::DeviceError;
pub use finder::{Finder, FoundDevice, FoundDevices};
pub use handler::{Command, Completion, DeviceHandle};
pub use linker::Linker;
pub use pool::DevicePool;
pub use value::{BadUnit, Unit, Value, ValueKind};

#[cfg(test)]
pub(crate) mod tests;
