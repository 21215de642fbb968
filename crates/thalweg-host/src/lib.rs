//! A Linux host as programs that measure see it.
//!
//! Each file of the kernel has one reader here, and all readers take [`HostFiles`], the files of this host or of a tree that was
//! recorded or made up:
//!
//! * [`Environment`] describes the machine; [`Conditions`] and [`SecondConditions`] its other load during a measurement;
//! * [`Layers`] holds the counters of every layer below the middleware;
//! * [`TaskStat`], [`TaskStatus`] and [`ThreadSchedule`] tell of processes and threads, [`ProcessUsage`] of this process as a whole,
//!   [`Energy`] of all processors;
//! * [`NetworkDevice`] and [`ProcessorRules`] show how interfaces and processors are set;
//! * [`Namespace`] is a network namespace that this process makes, [`CpuQuota`] a limit on processor time;
//! * [`monotonic_nanos`] is the clock that all processes of a host share.
#![forbid(unsafe_code)]

mod devices;
mod energy;
mod environment;
mod files;
mod groups;
mod layers;
mod limits;
mod load;
mod namespace;
mod process;
mod process_usage;
mod processor_set;
mod processors;
mod programs;
mod quota;
mod writing;

pub use devices::{BusReads, DeviceInterrupt, NetworkDevice, PollingSettings};
pub use energy::Energy;
pub use environment::{Environment, HostEnvironment};
pub use files::HostFiles;
pub use layers::Layers;
pub use limits::{IdleState, ProcessorQuota, ProcessorRules};
pub use load::{Conditions, ConditionsWatch, SecondConditions, SecondWatch};
pub use namespace::{Namespace, NamespaceError, NamespaceRemover, may_make_namespaces};
pub use process::{Task, TaskStat, TaskStatus, ThreadSchedule};
pub use process_usage::{ProcessUsage, ThreadUsage};
pub use processor_set::ProcessorSet;
pub use processors::{
    cpu_time, kill_group, monotonic_nanos, pin_to_cpu, request_exact_timers, spawn_on, thread_cpu_time,
};
pub use quota::CpuQuota;
