//! Resources that the generator and the server use while requests are counted.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use thalweg_host::{HostFiles, Task, TaskStat, TaskStatus};

use super::result::{GeneratorFigures, ServerFigures};
use super::tally::Tally;
use crate::figures::micros;
use crate::statistics::Latencies;

/// Watches this thread and the server's process from the first to the last counted moment.
pub(super) struct Meter {
    server: Option<u32>,
    start: Option<Usage>,
    end: Option<Usage>,
    busy: u64,
    last_turn: u64,
    /// Whether the turn since then had something to do.
    has_worked: bool,
}

#[derive(Clone, Copy, Default)]
struct Usage {
    generator: Duration,
    server: Option<ServerUsage>,
}

#[derive(Clone, Copy)]
struct ServerUsage {
    cpu_seconds: f64,
    resident_kib: u64,
}

impl Meter {
    pub(super) fn new(server: Option<u32>) -> Meter {
        Meter { server, start: None, end: None, busy: 0, last_turn: 0, has_worked: false }
    }

    /// A turn begins.
    pub(super) fn handle_turn(&mut self, now: u64, tally: &Tally) {
        if tally.is_counted(now) {
            self.busy += if self.has_worked { now - self.last_turn } else { 0 };
            if self.start.is_none() {
                (self.start, self.busy) = (Some(self.usage()), 0);
            }
        } else if self.start.is_some() && self.end.is_none() {
            self.end = Some(self.usage());
        }
        (self.last_turn, self.has_worked) = (now, false);
    }

    /// The turn had something to do.
    pub(super) fn note_work(&mut self) {
        self.has_worked = true;
    }

    fn usage(&self) -> Usage {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Usage {
            generator: Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
            server: self.server.and_then(ServerUsage::read),
        }
    }

    /// The generator's statistics over `seconds`; `slips` are those of an open loop.
    pub(super) fn generator(&self, seconds: f64, slips: Option<&Latencies>, ids_reused: bool) -> GeneratorFigures {
        let (start, end) = (self.start.unwrap_or_default(), self.end.unwrap_or_default());
        let busy = (self.busy as f64 / 1e9 / seconds).min(1.0);
        let slip_p99 = slips.and_then(|slips| slips.quantile(0.99));
        GeneratorFigures {
            cpu_s: end.generator.saturating_sub(start.generator).as_secs_f64(),
            busy,
            slip_p99_us: slip_p99.map(micros),
            slip_max_us: slips.map(|slips| micros(slips.max())),
            generator_limited: busy > BUSY_MAX || slip_p99.is_some_and(|slip| slip > SLIP_MAX),
            message_ids_reused: ids_reused,
        }
    }

    /// Resources that the server's process used for so many answers; `None` when it was not watched or is gone.
    pub(super) fn server(&self, answers: u64) -> Option<ServerFigures> {
        let (start, end) = (self.start?.server?, self.end?.server?);
        let cpu_s = end.cpu_seconds - start.cpu_seconds;
        let served_per_cpu_s = (cpu_s > 0.0).then(|| answers as f64 / cpu_s);
        Some(ServerFigures { cpu_s, served_per_cpu_s, resident_kib: end.resident_kib })
    }
}

impl ServerUsage {
    /// Resources that the process with this number used so far.
    fn read(process: u32) -> Option<ServerUsage> {
        let (files, process) = (HostFiles::here(), Task::Process(process));
        Some(ServerUsage {
            cpu_seconds: TaskStat::read(&files, process)?.cpu().as_secs_f64(),
            resident_kib: TaskStatus::read(&files, process)?.resident_kib,
        })
    }
}

const BUSY_MAX: f64 = 0.95;
const SLIP_MAX: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_a_process_is_read_from_the_system() {
        let usage = ServerUsage::read(std::process::id()).unwrap();
        assert!(usage.resident_kib > 100, "{}", usage.resident_kib);
        assert!(ServerUsage::read(u32::MAX).is_none());
    }
}
