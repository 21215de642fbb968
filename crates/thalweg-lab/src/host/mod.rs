//! What the machine is and what else it did while something was measured.

mod conditions;
mod environment;
mod layers;
mod process_usage;
mod seconds;
mod traffic;
mod usage;

pub use conditions::{Conditions, Watch};
pub use environment::Environment;
pub use layers::Layers;
pub use process_usage::{ProcessUsage, ThreadUsage};
pub use seconds::{SecondConditions, SecondWatch};
pub use traffic::transmitted_bytes;
pub use usage::{cpu_time, monotonic_nanos, pin_to_cpu, request_exact_timers};
