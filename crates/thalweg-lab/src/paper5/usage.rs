//! Resources of a server's process, over time.

use std::fs;

use serde::{Deserialize, Serialize};
use thalweg_host::{Energy, monotonic_nanos};

/// Resources that a server had used at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since requests were counted; negative before.
    pub at_s: f64,
    /// Processor time in seconds since the process started, in steps of 10 ms.
    pub cpu_s: f64,
    /// Memory in use in MiB.
    pub resident_mib: f64,
    /// Threads that live.
    pub threads: u64,
    /// Energy of all processor packages in joules since the first sample; missing where the host does not tell.
    pub energy_j: Option<f64>,
}

/// Samples of one process.
pub(super) struct Meter {
    process: u32,
    energy: Energy,
    /// Time of each on the host's monotonic clock in nanoseconds.
    samples: Vec<(u64, Moment)>,
}

impl Meter {
    pub(super) fn of(process: u32) -> Meter {
        Meter { process, energy: Energy::of_host(), samples: Vec::new() }
    }

    /// Takes a sample; none of a process that is gone.
    pub(super) fn sample(&mut self) {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", self.process)).ok();
        let (Some(stat), Some(status)) = (read("stat"), read("status")) else { return };
        let Some((cpu_s, threads)) = parse_stat(&stat) else { return };
        let moment = Moment {
            at_s: 0.0,
            cpu_s,
            resident_mib: resident_kib(&status) as f64 / 1024.0,
            threads,
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

/// One sample a second, the first and the last among them.
pub(super) fn thinned(moments: &[Moment]) -> Vec<Moment> {
    let mut out: Vec<Moment> = Vec::new();
    for (index, moment) in moments.iter().enumerate() {
        let is_due = out.last().is_none_or(|last| moment.at_s - last.at_s >= 1.0);
        if is_due || index + 1 == moments.len() {
            out.push(*moment);
        }
    }
    out
}

/// Processor seconds and threads of `/proc/PID/stat`.
fn parse_stat(text: &str) -> Option<(f64, u64)> {
    // The program's name may hold spaces and parentheses; the fields start after the last one.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(((number(11)? + number(12)?) as f64 / TICKS_PER_SECOND, number(17)?))
}

fn resident_kib(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// `USER_HZ`, which Linux fixes for all its programs.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 500 0 0 0 120 30 4 5 20 0 9 0 100";
        assert_eq!(parse_stat(stat), Some((1.5, 9)));
        assert_eq!(parse_stat("7 (a"), None);
        assert_eq!(resident_kib("VmPeak:\t 9 kB\nVmRSS:\t  2048 kB\n"), 2048);
        let mut meter = Meter::of(std::process::id());
        meter.sample();
        let moment = meter.moments(0)[0];
        assert!(moment.resident_mib > 0.0 && moment.threads > 0 && moment.at_s > 0.0, "{moment:?}");
    }

    #[test]
    fn values_between_samples_are_interpolated() {
        let moment = |at_s, cpu_s| Moment { at_s, cpu_s, ..Moment::default() };
        let moments = [moment(-1.0, 1.0), moment(1.0, 2.0), moment(1.5, 3.0), moment(3.0, 3.0)];
        let cpu = |at_s| at(&moments, at_s, |moment| moment.cpu_s);
        assert_eq!((cpu(-9.0), cpu(0.0), cpu(1.25), cpu(9.0)), (Some(1.0), Some(1.5), Some(2.5), Some(3.0)));
        assert_eq!(at(&[], 0.0, |moment| moment.cpu_s), None);
        assert_eq!(thinned(&moments).iter().map(|moment| moment.at_s).collect::<Vec<_>>(), [-1.0, 1.0, 3.0]);
    }
}
