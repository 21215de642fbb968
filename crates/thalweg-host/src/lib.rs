//! A Linux host as programs that measure see it.
//!
//! * [`Environment`] describes the machine; [`Conditions`] and [`SecondConditions`] its other load during a measurement;
//! * [`Layers`] holds the counters of every layer below the middleware;
//! * [`ProcessUsage`] tells resources that this process used, thread by thread; [`Energy`] those of all processors;
//! * [`monotonic_nanos`] is the clock that all processes of a host share.
#![forbid(unsafe_code)]

mod conditions;
mod energy;
mod environment;
mod layers;
mod process_usage;
mod seconds;
mod traffic;
mod usage;

pub use conditions::{Conditions, ConditionsWatch};
pub use energy::Energy;
pub use environment::{Environment, HostEnvironment};
pub use layers::Layers;
pub use process_usage::{ProcessUsage, ThreadUsage};
pub use seconds::{SecondConditions, SecondWatch};
pub use traffic::transmitted_bytes;
pub use usage::{cpu_time, kill_group, monotonic_nanos, pin_to_cpu, request_exact_timers, spawn_on};
