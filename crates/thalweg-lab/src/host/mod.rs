//! The machine and its other load during a measurement.

mod conditions;
mod environment;
mod layers;
mod seconds;
mod traffic;

pub use conditions::{Conditions, ConditionsWatch};
pub use environment::{Environment, HostEnvironment};
pub use layers::Layers;
pub use seconds::{SecondConditions, SecondWatch};
pub use thalweg_lab_station::{ProcessUsage, ThreadUsage, cpu_time, monotonic_nanos, pin_to_cpu, request_exact_timers};
pub use traffic::transmitted_bytes;
