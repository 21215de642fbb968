//! Resources of a server's process, over time.

use thalweg_host::{Energy, HostFiles, Task, TaskStat, TaskStatus, monotonic_nanos};

/// Resources that a server had used at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    /// Seconds since requests were counted; negative before.
    pub(super) at_s: f64,
    /// Processor time in seconds since the process started, in steps of 10 ms.
    pub(super) cpu_s: f64,
    /// Memory in use in MiB.
    pub(super) resident_mib: f64,
    /// Threads that live.
    pub(super) threads: u64,
    /// Energy of all processor packages in joules since the first sample; missing where the host does not tell.
    pub(super) energy_j: Option<f64>,
}

/// Samples of one process.
pub(super) struct Meter {
    files: HostFiles,
    process: Task,
    energy: Energy,
    /// Time of each on the host's monotonic clock in nanoseconds.
    samples: Vec<(u64, Moment)>,
}

impl Meter {
    pub(super) fn of(process: u32) -> Meter {
        let files = HostFiles::here();
        let energy = Energy::of(&files);
        Meter { files, process: Task::Process(process), energy, samples: Vec::new() }
    }

    /// Takes a sample; none of a process that is gone.
    pub(super) fn sample(&mut self) {
        let stat = TaskStat::read(&self.files, self.process);
        let Some((stat, status)) = stat.zip(TaskStatus::read(&self.files, self.process)) else { return };
        let moment = Moment {
            at_s: 0.0,
            cpu_s: stat.cpu().as_secs_f64(),
            resident_mib: status.resident_kib as f64 / 1024.0,
            threads: stat.threads,
            energy_j: self.energy.read(),
        };
        self.samples.push((monotonic_nanos(), moment));
    }

    /// The samples by seconds since `origin_ns`.
    pub(super) fn moments(&self, origin_ns: u64) -> Vec<Moment> {
        let since = |at: u64| (i128::from(at) - i128::from(origin_ns)) as f64 / 1e9;
        self.samples.iter().map(|(at, moment)| Moment { at_s: since(*at), ..*moment }).collect()
    }
}

/// A growing value at a time between two samples; at the nearest one outside them. `None` without samples.
pub(super) fn at(moments: &[Moment], at_s: f64, value: impl Fn(&Moment) -> f64) -> Option<f64> {
    let next = moments.partition_point(|moment| moment.at_s < at_s);
    let (before, after) = (moments[..next].last(), moments.get(next));
    match (before, after) {
        (Some(before), Some(after)) => {
            let share = (at_s - before.at_s) / (after.at_s - before.at_s).max(f64::EPSILON);
            Some(value(before) + share * (value(after) - value(before)))
        }
        (one, other) => one.or(other).map(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_holds_memory_and_threads_of_its_process() {
        let mut meter = Meter::of(std::process::id());
        meter.sample();
        let moment = meter.moments(0)[0];
        assert!(moment.resident_mib > 0.0 && moment.threads > 0 && moment.at_s > 0.0, "{moment:?}");
    }

    #[test]
    fn values_between_samples_are_interpolated() {
        let moment = |at_s, resident_mib| Moment { at_s, resident_mib, ..Moment::default() };
        let moments = [moment(-1.0, 1.0), moment(1.0, 2.0), moment(1.5, 3.0), moment(3.0, 3.0)];
        let memory = |at_s| at(&moments, at_s, |moment| moment.resident_mib);
        assert_eq!(
            (memory(-9.0), memory(0.0), memory(1.25), memory(9.0)),
            (Some(1.0), Some(1.5), Some(2.5), Some(3.0))
        );
        assert_eq!(at(&[], 0.0, |moment| moment.resident_mib), None);
    }
}
