//! Processor time that this process may have, and what else decides when it runs.

use serde::{Deserialize, Serialize};

use crate::files::{HostFiles, field};
use crate::groups::{GROUPS, around};
use crate::processor_set::ProcessorSet;

/// The processors and the rules by which they are shared; what the kernel does not show is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorRules {
    /// Those that are switched on.
    pub online: ProcessorSet,
    /// Those that this process may run on.
    pub allowed: Option<ProcessorSet>,
    /// Those that share a cache of the third level, for each such cache.
    pub caches: Vec<ProcessorSet>,
    /// The idle state that takes longest to leave, of those that are not switched off.
    pub idle: Option<IdleState>,
    /// Logical processors of one core, where a core has several, such as `0-1`; the first such core.
    pub siblings: Option<String>,
    /// Governor of each processor's clock, by its number.
    pub governors: Vec<(usize, String)>,
    /// The tightest limit on processor time of this process's control groups.
    pub quota: Option<ProcessorQuota>,
    /// Whether each session gets the same share, however many threads it has (`sched_autogroup_enabled`).
    pub has_autogroups: Option<bool>,
}

/// A state in which a processor waits for work (cpuidle).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// Microseconds until the processor works again.
    pub exit_us: u64,
}

/// Processor time that a control group gets in each period (`cpu.max`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorQuota {
    /// Microseconds of all its threads together.
    pub quota_us: u64,
    /// Microseconds after which it gets the quota anew.
    pub period_us: u64,
}

impl ProcessorQuota {
    /// Processors that the group may keep busy.
    pub fn processors(&self) -> f64 {
        self.quota_us as f64 / self.period_us.max(1) as f64
    }

    /// The longest stall of a group with this many busy threads: they use the quota up and wait for the next period.
    pub fn stall_us(&self, threads: u64) -> u64 {
        self.period_us.saturating_sub(self.quota_us / threads.max(1))
    }
}

impl ProcessorRules {
    /// Those of this process.
    pub fn read(files: &HostFiles) -> ProcessorRules {
        let text = |path: String| files.text(path).map(|text| text.trim().to_owned());
        let numbers: Vec<usize> = files
            .entries(PROCESSORS)
            .iter()
            .filter_map(|name| name.strip_prefix("cpu")?.parse().ok())
            .filter(|cpu| text(format!("{PROCESSORS}/cpu{cpu}/online")).is_none_or(|online| online != "0"))
            .collect();
        let siblings = |cpu: &usize| text(format!("{PROCESSORS}/cpu{cpu}/topology/thread_siblings_list"));
        let governor = |cpu: &usize| Some((*cpu, text(format!("{PROCESSORS}/cpu{cpu}/cpufreq/scaling_governor"))?));
        let mut governors: Vec<_> = numbers.iter().filter_map(governor).collect();
        governors.sort_unstable();
        let mut caches: Vec<ProcessorSet> = Vec::new();
        for cpu in &numbers {
            let shared = text(format!("{PROCESSORS}/cpu{cpu}/cache/index3/shared_cpu_list"));
            let shared = shared.and_then(|list| ProcessorSet::parse(&list));
            if let Some(shared) = shared.filter(|shared| !caches.contains(shared)) {
                caches.push(shared);
            }
        }
        let status = files.text("proc/self/status");
        let allowed = status.as_deref().and_then(|text| field(text, "Cpus_allowed_list"));
        let idle = numbers.iter().flat_map(|cpu| idle_states(files, *cpu));
        ProcessorRules {
            idle: idle.max_by_key(|state| state.exit_us),
            allowed: allowed.and_then(ProcessorSet::parse),
            caches,
            online: numbers.iter().copied().collect(),
            siblings: numbers.iter().filter_map(siblings).find(|list| list.contains([',', '-'])),
            governors,
            quota: quota(files),
            has_autogroups: files.setting("kernel.sched_autogroup_enabled").map(|value| value != "0"),
        }
    }
}

/// The idle states of a processor that are not switched off.
fn idle_states(files: &HostFiles, cpu: usize) -> Vec<IdleState> {
    let folder = format!("{PROCESSORS}/cpu{cpu}/cpuidle");
    let text = |state: &str, entry: &str| Some(files.text(format!("{folder}/{state}/{entry}"))?.trim().to_owned());
    let state = |state: String| {
        let is_off = text(&state, "disable").is_some_and(|disable| disable != "0");
        let exit_us = text(&state, "latency")?.parse().ok()?;
        (!is_off).then_some(IdleState { name: text(&state, "name")?, exit_us })
    };
    files.entries(&folder).into_iter().filter_map(state).collect()
}

/// The tightest quota of this process's group and the groups around it.
fn quota(files: &HostFiles) -> Option<ProcessorQuota> {
    let own = files.text("proc/self/cgroup")?;
    let quotas = own.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        match controllers {
            "" => tightest(path, |folder| unified(files.text(format!("{GROUPS}{folder}/cpu.max"))?.as_str())),
            _ if controllers.split(',').any(|name| name == "cpu") => tightest(path, |folder| {
                let number = |entry: &str| files.text(format!("{GROUPS}/cpu{folder}/{entry}"))?.trim().parse().ok();
                // -1 means none.
                Some(ProcessorQuota { quota_us: number("cpu.cfs_quota_us")?, period_us: number("cpu.cfs_period_us")? })
            }),
            _ => None,
        }
    });
    least(quotas)
}

/// The tightest of a folder and the folders above it.
fn tightest(path: &str, read: impl Fn(&str) -> Option<ProcessorQuota>) -> Option<ProcessorQuota> {
    least(around(path).filter_map(read))
}

fn least(quotas: impl Iterator<Item = ProcessorQuota>) -> Option<ProcessorQuota> {
    quotas.min_by(|one, other| one.processors().total_cmp(&other.processors()))
}

/// `max 100000` or `50000 100000`.
fn unified(text: &str) -> Option<ProcessorQuota> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(ProcessorQuota { quota_us: quota.parse().ok()?, period_us: period.parse().ok()? })
}

const PROCESSORS: &str = "sys/devices/system/cpu";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    #[test]
    fn the_tightest_group_around_a_process_limits_it() {
        let tree = Tree::new("limits")
            .with("proc/self/cgroup", "0::/kubepods/pod7/main\n")
            .with("sys/fs/cgroup/kubepods/cpu.max", "max 100000\n")
            .with("sys/fs/cgroup/kubepods/pod7/cpu.max", "50000 100000\n")
            .with("sys/fs/cgroup/kubepods/pod7/main/cpu.max", "200000 100000\n");
        let quota = ProcessorRules::read(&tree.files()).quota.expect("a quota");
        assert_eq!(quota, ProcessorQuota { quota_us: 50_000, period_us: 100_000 });
        assert_eq!((quota.stall_us(1), quota.stall_us(2)), (50_000, 75_000));
        let legacy = Tree::new("limits-legacy")
            .with("proc/self/cgroup", "4:cpu,cpuacct:/box\n1:name=systemd:/\n")
            .with("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "150000\n")
            .with("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
        assert_eq!(ProcessorRules::read(&legacy.files()).quota.expect("a quota").processors(), 1.5);
        legacy.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
        assert_eq!(ProcessorRules::read(&legacy.files()).quota, None);
    }

    #[test]
    fn processors_that_are_switched_off_do_not_count() {
        let tree = Tree::new("rules")
            .with("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
            .with("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n")
            .with("sys/devices/system/cpu/cpu2/online", "0\n")
            .with("sys/devices/system/cpu/cpufreq/policy0/x", "")
            .with("proc/sys/kernel/sched_autogroup_enabled", "1\n");
        let rules = ProcessorRules::read(&tree.files());
        assert_eq!((rules.online.to_string().as_str(), rules.has_autogroups, rules.quota), ("0", Some(true), None));
        assert_eq!((rules.siblings.as_deref(), rules.governors), (Some("0,2"), vec![(0, "powersave".to_owned())]));
    }

    #[test]
    fn processors_tell_where_they_may_run_what_they_share_and_how_deep_they_sleep() {
        let tree =
            Tree::new("places").with("proc/self/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t1,3\n");
        for (cpu, cache) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            tree.write(&format!("{folder}/cache/index3/shared_cpu_list"), &format!("{cache}\n"));
            for (state, name, latency, disable) in
                [(0, "POLL", 0, 0), (1, "C1", 2, 0), (2, "C6", 133, 0), (3, "C8", 200, 1)]
            {
                let folder = format!("{folder}/cpuidle/state{state}");
                tree.write(&format!("{folder}/name"), &format!("{name}\n"));
                tree.write(&format!("{folder}/latency"), &format!("{latency}\n"));
                tree.write(&format!("{folder}/disable"), &format!("{disable}\n"));
            }
        }
        let rules = ProcessorRules::read(&tree.files());
        let of = |list: &str| ProcessorSet::parse(list).expect("a list");
        assert_eq!(
            (rules.online, rules.allowed, rules.caches),
            (of("0-3"), Some(of("1,3")), vec![of("0-1"), of("2-3")])
        );
        assert_eq!(rules.idle, Some(IdleState { name: "C6".to_owned(), exit_us: 133 }));
        tree.write("sys/devices/system/cpu/cpu2/online", "0\n");
        assert_eq!(ProcessorRules::read(&tree.files()).online, of("0-1,3"));
    }
}
