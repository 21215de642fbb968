//! The linker: opens devices and gives each a handler.

use std::sync::Arc;
use std::time::Duration;

use crate::device::{DeviceError, DeviceHandle, DevicePool, FoundDevice};

/// Links found devices.
#[derive(Clone, Debug)]
pub struct Linker {
    /// Time limit of opening a device. Default 2 s.
    pub open_patience: Duration,
    /// Most commands that may wait for a device; more are refused. Default 64, above what a sensor serves in a second.
    pub commands_max: usize,
    /// The threads that work with the devices.
    pub pool: DevicePool,
}

impl Linker {
    /// Lets the threads of `pool` work with the devices.
    pub fn new(pool: DevicePool) -> Linker {
        Linker { open_patience: Duration::from_secs(2), commands_max: 64, pool }
    }

    /// Opens the device. A link ends when its last handler is dropped.
    ///
    /// # Errors
    /// The error of opening it; [`DeviceError::TimedOut`] when that takes longer than
    /// [`open_patience`](Self::open_patience).
    pub fn link(&self, found: &FoundDevice) -> Result<DeviceHandle, DeviceError> {
        DeviceHandle::start(Arc::clone(&found.driver), found.description.clone(), self)
    }
}
