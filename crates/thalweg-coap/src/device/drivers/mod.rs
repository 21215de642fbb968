//! The drivers that are built in. GPIO, I²C and serial are behind features of the same names.

mod files;
#[cfg(feature = "gpio")]
mod gpio;
#[cfg(feature = "i2c")]
mod i2c;
mod kit;
#[cfg(feature = "serial")]
mod serial;
mod simulated;
mod system;
mod thermal;

#[cfg(feature = "gpio")]
pub use gpio::{Direction, Gpio, Line};
#[cfg(feature = "i2c")]
pub use i2c::{I2c, Register, Width};
pub use kit::{Kit, KitModel};
#[cfg(feature = "serial")]
pub use serial::{Instrument, Serial};
pub use simulated::{Simulated, Simulation};
pub use system::System;
pub use thermal::Thermal;

#[cfg(test)]
mod tests;
