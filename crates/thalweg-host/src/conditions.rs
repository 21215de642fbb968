//! Other load on the machine: other programs, the hypervisor, the kernel's own count of lost datagrams.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Disturbances of a measurement; missing where the kernel does not report them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Length of the observation in seconds.
    pub seconds: f64,
    /// Share of all CPU time that went to programs other than this one and its children (0 to 1).
    pub foreign_cpu: Option<f64>,
    /// Share of all CPU time that the hypervisor gave to others (0 to 1).
    pub stolen_cpu: Option<f64>,
    /// Share of the time in which some task, ours included, was ready and waited for a CPU (PSI `cpu some`, 0 to 1).
    pub waiting_for_cpu: Option<f64>,
    /// UDP datagrams that arrived and found a full receive buffer, anywhere on this host.
    pub dropped_datagrams: Option<u64>,
}

impl Conditions {
    /// Beyond this share of foreign work a two-core machine shows it in its percentiles.
    pub const FOREIGN_MAX: f64 = 0.05;
    /// Beyond this share a hypervisor's pauses are long enough to be a run's maximum.
    pub const STOLEN_MAX: f64 = 0.005;

    /// Whether other work on the machine may have shaped the figures.
    pub fn is_disturbed(&self) -> bool {
        self.foreign_cpu.is_some_and(|share| share > Conditions::FOREIGN_MAX)
            || self.stolen_cpu.is_some_and(|share| share > Conditions::STOLEN_MAX)
    }
}

/// An observation under way; its end gives the [`Conditions`].
#[derive(Debug)]
pub struct ConditionsWatch {
    started: Instant,
    before: Counters,
}

impl ConditionsWatch {
    /// Notes the counters of now.
    pub fn start() -> ConditionsWatch {
        ConditionsWatch { started: Instant::now(), before: Counters::read() }
    }

    /// Compares with the counters of now. Children count as ours once they were waited for: end them first.
    pub fn finish(self) -> Conditions {
        compare(&self.before, &Counters::read(), self.started.elapsed().as_secs_f64())
    }
}

/// Counters of the kernel that only grow.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// All CPU time, busy CPU time and stolen time, in the kernel's ticks.
    cpu: Option<(u64, u64, u64)>,
    /// CPU time of this process and its ended children, in the same ticks.
    own: Option<u64>,
    /// Microseconds in which some task waited for a CPU.
    waiting_us: Option<u64>,
    dropped: Option<u64>,
}

impl Counters {
    fn read() -> Counters {
        let read = |path: &str| fs::read_to_string(path).ok();
        Counters {
            cpu: read("/proc/stat").and_then(|text| parse_cpu(&text)),
            own: read("/proc/self/stat").and_then(|text| parse_own(&text)),
            waiting_us: read("/proc/pressure/cpu").and_then(|text| parse_pressure(&text)),
            dropped: read("/proc/net/snmp").and_then(|text| parse_drops(&text)),
        }
    }
}

fn compare(before: &Counters, after: &Counters, seconds: f64) -> Conditions {
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let mut conditions = Conditions { seconds, ..Conditions::default() };
    if let (Some(from), Some(to)) = (before.cpu, after.cpu) {
        let total = to.0.saturating_sub(from.0);
        let stolen = to.2.saturating_sub(from.2);
        conditions.stolen_cpu = share(stolen, total);
        if let (Some(own_from), Some(own_to)) = (before.own, after.own) {
            let busy = to.1.saturating_sub(from.1);
            conditions.foreign_cpu = share(busy.saturating_sub(own_to.saturating_sub(own_from)), total);
        }
    }
    if let (Some(from), Some(to)) = (before.waiting_us, after.waiting_us) {
        conditions.waiting_for_cpu = (seconds > 0.0).then(|| (to.saturating_sub(from) as f64 / 1e6 / seconds).min(1.0));
    }
    conditions.dropped_datagrams = before.dropped.zip(after.dropped).map(|(from, to)| to.saturating_sub(from));
    conditions
}

/// Total, busy (user, nice, system, interrupts) and stolen ticks of the first line of `/proc/stat`.
pub(super) fn parse_cpu(text: &str) -> Option<(u64, u64, u64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, ..] = ticks[..] else { return None };
    let busy = user + nice + system + interrupts + soft_interrupts;
    Some((busy + idle + waiting + stolen, busy, stolen))
}

/// Ticks of `/proc/self/stat`: user and system, own and of ended children.
pub(super) fn parse_own(text: &str) -> Option<u64> {
    // The program's name may hold spaces and parentheses; the fields start after the last one.
    let (_, fields) = text.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(4).map_while(|word| word.parse::<u64>().ok());
    Some(ticks.sum())
}

pub(super) fn parse_pressure(text: &str) -> Option<u64> {
    text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// `RcvbufErrors` of the UDP lines of `/proc/net/snmp`.
fn parse_drops(text: &str) -> Option<u64> {
    super::layers::titled(text, "Udp").into_iter().find(|(name, _)| *name == "RcvbufErrors").map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_kernels_own_texts() {
        assert_eq!(parse_cpu("cpu  10 1 5 100 2 3 4 6 0 0\ncpu0 1 1"), Some((131, 23, 6)));
        assert_eq!(parse_cpu("cpu  10 1"), None);
        assert_eq!(parse_own("7 (a (b) c) S 1 7 7 0 -1 4194304 500 0 0 0 12 3 4 5 20 0"), Some(24));
        assert_eq!(
            parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull avg10=0 total=1"),
            Some(12345)
        );
        let snmp = "Ip: a\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 5 4 3 2 17\n";
        assert_eq!(parse_drops(snmp), Some(17));
    }

    #[test]
    fn own_work_is_not_held_against_the_machine() {
        let before = Counters { cpu: Some((0, 0, 0)), own: Some(100), waiting_us: Some(0), dropped: Some(5) };
        let after =
            Counters { cpu: Some((1000, 500, 20)), own: Some(500), waiting_us: Some(2_000_000), dropped: Some(5) };
        let conditions = compare(&before, &after, 4.0);
        assert_eq!(conditions.foreign_cpu, Some(0.1));
        assert_eq!(conditions.stolen_cpu, Some(0.02));
        assert_eq!(conditions.waiting_for_cpu, Some(0.5));
        assert!(conditions.is_disturbed());
    }
}
