//! What the machine is and what else it did while something was measured.

mod conditions;
mod environment;
mod traffic;
mod usage;

pub use conditions::{Conditions, Watch};
pub use environment::Environment;
pub use traffic::transmitted_bytes;
pub use usage::{cpu_time, monotonic_nanos, pin_to_cpu};
