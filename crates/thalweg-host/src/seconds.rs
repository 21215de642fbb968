//! Other load on the machine in each second of a run.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::conditions::{parse_cpu, parse_own, parse_pressure};

/// Disturbances of one second; missing where the kernel does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondConditions {
    /// Seconds since the measurement began.
    pub at_s: f64,
    /// Its duration; much more than a second when the whole machine stood still.
    pub lasted_s: f64,
    /// Share of all CPU time that went to programs other than this one and its workers (0 to 1).
    pub foreign_cpu: Option<f64>,
    /// Share of all CPU time that the hypervisor gave to others (0 to 1).
    pub steal: Option<f64>,
    /// Share of the time in which some task, ours included, was ready and waited for a CPU (PSI `cpu some`, 0 to 1).
    pub pressure: Option<f64>,
    /// Whether that was more than the scenario allows.
    pub bad: bool,
}

/// Looks at the machine's counters again and again.
#[derive(Debug)]
pub struct SecondWatch {
    processes: Vec<u32>,
    started: Instant,
    last: (Instant, Counters),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    /// All CPU time, busy CPU time and stolen time, in the kernel's ticks.
    cpu: Option<(u64, u64, u64)>,
    /// CPU time of this process and the workers, in the same ticks.
    own: u64,
    waiting_us: Option<u64>,
}

impl SecondConditions {
    /// The same second on two machines: of each quantity the larger one.
    pub fn worst(self, other: SecondConditions) -> SecondConditions {
        let larger = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        SecondConditions {
            at_s: self.at_s,
            lasted_s: self.lasted_s.max(other.lasted_s),
            foreign_cpu: larger(self.foreign_cpu, other.foreign_cpu),
            steal: larger(self.steal, other.steal),
            pressure: larger(self.pressure, other.pressure),
            bad: self.bad || other.bad,
        }
    }
}

impl SecondWatch {
    /// Begins now; `processes` are the workers.
    pub fn start(processes: Vec<u32>) -> SecondWatch {
        let now = Instant::now();
        let counters = Counters::read(&processes);
        SecondWatch { processes, started: now, last: (now, counters) }
    }

    /// Disturbances since the last query.
    pub fn look(&mut self) -> SecondConditions {
        let (now, counters) = (Instant::now(), Counters::read(&self.processes));
        let conditions = compare(
            &self.last.1,
            &counters,
            (now - self.last.0).as_secs_f64(),
            (self.last.0 - self.started).as_secs_f64(),
        );
        self.last = (now, counters);
        conditions
    }
}

impl Counters {
    fn read(processes: &[u32]) -> Counters {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let own = |path: String| read(&path).and_then(|text| parse_own(&text)).unwrap_or(0);
        let workers: u64 = processes.iter().map(|process| own(format!("/proc/{process}/stat"))).sum();
        Counters {
            cpu: read("/proc/stat").and_then(|text| parse_cpu(&text)),
            own: own("/proc/self/stat".to_owned()) + workers,
            waiting_us: read("/proc/pressure/cpu").and_then(|text| parse_pressure(&text)),
        }
    }
}

fn compare(before: &Counters, after: &Counters, seconds: f64, at_s: f64) -> SecondConditions {
    let mut conditions = SecondConditions { at_s, lasted_s: seconds, ..SecondConditions::default() };
    if let (Some(from), Some(to)) = (before.cpu, after.cpu) {
        let total = to.0.saturating_sub(from.0) as f64;
        let foreign = to.1.saturating_sub(from.1).saturating_sub(after.own.saturating_sub(before.own));
        if total > 0.0 {
            conditions.foreign_cpu = Some(foreign as f64 / total);
            conditions.steal = Some(to.2.saturating_sub(from.2) as f64 / total);
        }
    }
    if let (Some(from), Some(to)) = (before.waiting_us, after.waiting_us) {
        conditions.pressure = (seconds > 0.0).then(|| (to.saturating_sub(from) as f64 / 1e6 / seconds).min(1.0));
    }
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_work_is_not_held_against_the_machine() {
        let before = Counters { cpu: Some((1_000, 500, 10)), own: 100, waiting_us: Some(1_000_000) };
        let after = Counters { cpu: Some((1_200, 620, 12)), own: 200, waiting_us: Some(1_500_000) };
        let conditions = compare(&before, &after, 1.0, 3.0);
        assert_eq!((conditions.foreign_cpu, conditions.steal, conditions.pressure), (Some(0.1), Some(0.01), Some(0.5)));
        assert_eq!((conditions.at_s, conditions.lasted_s), (3.0, 1.0));
    }

    #[test]
    fn of_several_machines_the_worst_counts_in_each_respect() {
        let second = |lasted_s, foreign, steal| SecondConditions {
            lasted_s,
            foreign_cpu: foreign,
            steal,
            ..SecondConditions::default()
        };
        let worst = second(1.0, Some(0.1), None).worst(second(2.0, Some(0.05), Some(0.01)));
        assert_eq!(worst, second(2.0, Some(0.1), Some(0.01)));
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_missing() {
        let conditions = compare(&Counters::default(), &Counters::default(), 1.0, 0.0);
        assert_eq!(conditions, SecondConditions { lasted_s: 1.0, ..SecondConditions::default() });
    }

    #[test]
    fn this_machine_tells_its_cpu_time() {
        let mut watch = SecondWatch::start(Vec::new());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(watch.look().foreign_cpu.is_some_and(|share| share <= 1.0));
    }
}
