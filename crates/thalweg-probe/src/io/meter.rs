//! What a measurement costs an end, and what the kernel counts meanwhile.

use std::time::Duration;

use thalweg_host::{ConditionsWatch, HostFiles, Layers, Task, cpu_time};

use crate::reports::EndReport;

/// An observation of this host and process.
pub(super) struct UsageMeter {
    conditions: ConditionsWatch,
    layers: Layers,
    socket_drops: u64,
    cpu: Duration,
}

impl UsageMeter {
    pub(super) fn start() -> UsageMeter {
        let files = HostFiles::here();
        UsageMeter {
            layers: Layers::read(&files),
            socket_drops: files.socket_drops(Task::This),
            conditions: ConditionsWatch::start(files),
            cpu: cpu_time(),
        }
    }

    /// What happened since; the sockets must still be open.
    pub(super) fn finish(self) -> EndReport {
        let cpu = cpu_time().saturating_sub(self.cpu);
        let files = HostFiles::here();
        let conditions = self.conditions.finish();
        EndReport {
            cpu_seconds: cpu.as_secs_f64(),
            seconds: conditions.seconds,
            other_cpu_share: conditions.foreign_cpu,
            socket_drops: files.socket_drops(Task::This).saturating_sub(self.socket_drops),
            layers: Layers::read(&files).since(&self.layers),
            sent: None,
            received: None,
        }
    }
}
