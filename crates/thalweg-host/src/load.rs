//! Other load on the machine: other programs, the hypervisor, processes that wait for a CPU.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::files::HostFiles;
use crate::layers::Layers;
use crate::process::TICK_MS;
use crate::programs::ProgramTimes;

/// Disturbances of a measurement; missing where the kernel does not report them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Length of the observation in seconds.
    pub seconds: f64,
    /// Share of all CPU time that went to programs other than this one and what it started (0 to 1).
    pub foreign_cpu: Option<f64>,
    /// Share of all CPU time that the hypervisor gave to others (0 to 1).
    pub stolen_cpu: Option<f64>,
    /// Share of the time in which some task, ours included, was ready and waited for a CPU (PSI `cpu some`, 0 to 1).
    pub waiting_for_cpu: Option<f64>,
    /// UDP datagrams that arrived and found a full receive buffer, anywhere on this host.
    pub dropped_datagrams: Option<u64>,
}

/// Disturbances of one second; missing where the kernel does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondConditions {
    /// Seconds since the measurement began.
    pub at_s: f64,
    /// Its duration; much more than a second when the whole machine stood still.
    pub lasted_s: f64,
    /// Share of all CPU time that went to programs other than this one and what it started (0 to 1).
    pub foreign_cpu: Option<f64>,
    /// Share of all CPU time that the hypervisor gave to others (0 to 1).
    pub steal: Option<f64>,
    /// Share of the time in which some task, ours included, was ready and waited for a CPU (PSI `cpu some`, 0 to 1).
    pub pressure: Option<f64>,
    /// Whether that was more than the scenario allows.
    pub bad: bool,
}

impl Conditions {
    /// The largest share of a run's CPU time that others may take before its figures are theirs as well.
    pub const OTHERS_MAX: f64 = 0.01;

    /// Share of all CPU time that other programs and the hypervisor's other guests took together, 0 to 1, as far as the kernel tells.
    pub fn others(&self) -> f64 {
        self.foreign_cpu.unwrap_or(0.0) + self.stolen_cpu.unwrap_or(0.0)
    }

    /// Whether others took more than [`OTHERS_MAX`](Conditions::OTHERS_MAX). The kernel tells CPU time in steps of 10 ms: of two CPUs that
    /// is one per cent of half a second, so that shorter runs cannot be told from disturbed ones.
    pub fn is_disturbed(&self) -> bool {
        self.others() > Conditions::OTHERS_MAX
    }
}

impl SecondConditions {
    /// Share of all CPU time that other programs and the hypervisor's other guests took together, 0 to 1, as far as the kernel tells.
    pub fn others(&self) -> f64 {
        self.foreign_cpu.unwrap_or(0.0) + self.steal.unwrap_or(0.0)
    }

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

/// An observation under way; its end gives the [`Conditions`].
#[derive(Debug)]
pub struct ConditionsWatch {
    watch: SecondWatch,
    dropped: Option<u64>,
}

impl ConditionsWatch {
    /// Notes the counters of now.
    pub fn start(files: HostFiles) -> ConditionsWatch {
        let dropped = dropped_datagrams(&files);
        ConditionsWatch { watch: SecondWatch::start(files), dropped }
    }

    /// Compares with the counters of now.
    pub fn finish(mut self) -> Conditions {
        let all = self.watch.look();
        let dropped = self.dropped.zip(dropped_datagrams(&self.watch.files));
        Conditions {
            seconds: all.lasted_s,
            foreign_cpu: all.foreign_cpu,
            stolen_cpu: all.steal,
            waiting_for_cpu: all.pressure,
            dropped_datagrams: dropped.map(|(from, to)| to.saturating_sub(from)),
        }
    }
}

/// UDP datagrams that found a full receive buffer so far. The kernel counts those of IPv6 in a counter of their own alone.
fn dropped_datagrams(files: &HostFiles) -> Option<u64> {
    let layers = Layers::read(files);
    let counters = ["udp.RcvbufErrors", "udp6.Udp6RcvbufErrors"];
    counters.into_iter().filter_map(|name| layers.find(name)).reduce(u64::saturating_add)
}

/// Looks at the machine's counters again and again.
#[derive(Debug)]
pub struct SecondWatch {
    files: HostFiles,
    own: u32,
    started: Instant,
    last: (Instant, LoadCounters),
}

impl SecondWatch {
    /// Begins now.
    pub fn start(files: HostFiles) -> SecondWatch {
        SecondWatch::of(files, std::process::id())
    }

    fn of(files: HostFiles, own: u32) -> SecondWatch {
        let now = Instant::now();
        let counters = LoadCounters::read(&files, own);
        SecondWatch { files, own, started: now, last: (now, counters) }
    }

    /// Disturbances since the last query.
    pub fn look(&mut self) -> SecondConditions {
        let (now, counters) = (Instant::now(), LoadCounters::read(&self.files, self.own));
        let (then, before) = std::mem::replace(&mut self.last, (now, counters));
        let seconds = (now - then).as_secs_f64();
        let shares = counters.since(&before, seconds);
        SecondConditions {
            at_s: (then - self.started).as_secs_f64(),
            lasted_s: seconds,
            foreign_cpu: shares.foreign,
            steal: shares.stolen,
            pressure: shares.waiting,
            bad: false,
        }
    }
}

/// Counters of the kernel that only grow.
#[derive(Clone, Copy, Debug, Default)]
struct LoadCounters {
    cpu: Option<CpuTimes>,
    programs: ProgramTimes,
    /// Time in which some task waited for a CPU.
    waiting: Option<Duration>,
}

/// Times of all CPUs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTimes {
    total: Duration,
    /// In programs, the kernel and interrupts.
    busy: Duration,
    /// In other guests of the hypervisor.
    stolen: Duration,
}

/// Shares of a time, 0 to 1 each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct LoadShares {
    foreign: Option<f64>,
    stolen: Option<f64>,
    waiting: Option<f64>,
}

impl LoadCounters {
    fn read(files: &HostFiles, own: u32) -> LoadCounters {
        LoadCounters {
            cpu: files.text("proc/stat").and_then(|text| CpuTimes::parse(&text)),
            programs: ProgramTimes::read(files, own),
            waiting: files.text("proc/pressure/cpu").and_then(|text| parse_pressure(&text)),
        }
    }

    fn since(&self, before: &LoadCounters, seconds: f64) -> LoadShares {
        let mut shares = LoadShares::default();
        if let Some((to, from)) = self.cpu.zip(before.cpu) {
            let total = to.total.saturating_sub(from.total);
            // Accounts of programs are exact and those of processors come in ticks: over a short time the former may exceed the latter.
            let share =
                |part: Duration| (!total.is_zero()).then(|| (part.as_secs_f64() / total.as_secs_f64()).min(1.0));
            let used = |of: fn(&ProgramTimes) -> Option<Duration>| {
                of(&self.programs).zip(of(&before.programs)).map(|(to, from)| to.saturating_sub(from))
            };
            shares.stolen = share(to.stolen.saturating_sub(from.stolen));
            // Where other programs are hidden, they are what the processors did and we did not.
            let beside_own = || Some(to.busy.saturating_sub(from.busy).saturating_sub(used(|times| times.own)?));
            shares.foreign = used(|times| times.others).or_else(beside_own).and_then(share);
        }
        let waited = self.waiting.zip(before.waiting).filter(|_| seconds > 0.0);
        shares.waiting = waited.map(|(to, from)| (to.saturating_sub(from).as_secs_f64() / seconds).min(1.0));
        shares
    }
}

impl CpuTimes {
    /// Those of the first line of `/proc/stat`.
    fn parse(text: &str) -> Option<CpuTimes> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupts, soft_interrupts, stolen, ..] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + interrupts + soft_interrupts;
        let time = |ticks: u64| Duration::from_millis(ticks * TICK_MS);
        Some(CpuTimes { total: time(busy + idle + waiting + stolen), busy: time(busy), stolen: time(stolen) })
    }
}

fn parse_pressure(text: &str) -> Option<Duration> {
    let total = text.lines().find(|line| line.starts_with("some"))?.rsplit_once("total=")?.1;
    total.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    const OWN: u32 = 40;

    /// A machine by ticks of its CPUs (user, idle, stolen), of a process and its child, and by microseconds of waiting.
    fn set(tree: &Tree, cpu: [u64; 3], own: u64, worker: u64, waiting_us: u64) {
        let [user, idle, stolen] = cpu;
        tree.write("proc/stat", &format!("cpu  {user} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 1"));
        for (process, parent, ticks) in [(OWN, 1, own), (41, OWN, worker)] {
            let stat = format!("{process} (x y) S {parent} 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100");
            tree.write(&format!("proc/{process}/stat"), &stat);
        }
        tree.write("proc/pressure/cpu", &format!("some avg10=0.00 avg60=0.00 total={waiting_us}\nfull total=1"));
    }

    #[test]
    fn where_other_programs_are_hidden_what_the_processors_did_without_us_is_theirs() {
        let tree = Tree::new("load");
        set(&tree, [500, 490, 10], 60, 40, 1_000_000);
        let before = LoadCounters::read(&tree.files(), OWN);
        set(&tree, [620, 568, 12], 110, 90, 1_500_000);
        let shares = LoadCounters::read(&tree.files(), OWN).since(&before, 1.0);
        assert_eq!(shares, LoadShares { foreign: Some(0.1), stolen: Some(0.01), waiting: Some(0.5) });
        tree.remove(&format!("proc/{OWN}/stat"));
        assert_eq!(LoadCounters::read(&tree.files(), OWN).since(&before, 1.0).foreign, None);
    }

    #[test]
    fn where_they_are_seen_their_own_accounts_count_and_the_kernels_work_does_not() {
        let tree = Tree::new("seen").with("proc/2/stat", "2 (kthreadd) S 0 7 7 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 100");
        let other = |ticks: u64| {
            tree.write("proc/50/stat", &format!("50 (cc) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100"))
        };
        set(&tree, [500, 490, 10], 60, 40, 0);
        other(10);
        let before = LoadCounters::read(&tree.files(), OWN);
        // The processors were busy for 1.2 s more, of which programs know of 1.01 s.
        set(&tree, [620, 568, 12], 110, 90, 0);
        other(11);
        let shares = LoadCounters::read(&tree.files(), OWN).since(&before, 1.0);
        assert_eq!((shares.foreign, shares.stolen), (Some(0.005), Some(0.01)));
    }

    #[test]
    fn conditions_are_differences_of_the_kernels_counters() {
        let tree = Tree::new("conditions")
            .with("proc/net/snmp", "Udp: InDatagrams RcvbufErrors\nUdp: 5 17\n")
            .with("proc/net/snmp6", "Udp6InDatagrams 4\nUdp6RcvbufErrors 2\n");
        set(&tree, [0, 0, 0], 100, 0, 0);
        let dropped = dropped_datagrams(&tree.files());
        let watch = ConditionsWatch { watch: SecondWatch::of(tree.files(), OWN), dropped };
        set(&tree, [500, 480, 20], 500, 0, 0);
        tree.write("proc/net/snmp", "Udp: InDatagrams RcvbufErrors\nUdp: 9 20\n");
        tree.write("proc/net/snmp6", "Udp6InDatagrams 9\nUdp6RcvbufErrors 6\n");
        let conditions = watch.finish();
        assert_eq!((conditions.foreign_cpu, conditions.stolen_cpu), (Some(0.1), Some(0.02)));
        assert_eq!((conditions.waiting_for_cpu, conditions.dropped_datagrams), (Some(0.0), Some(7)));
        assert!(conditions.is_disturbed());
    }

    #[test]
    fn other_programs_and_the_hypervisor_count_together() {
        let of = |foreign, stolen| Conditions { foreign_cpu: foreign, stolen_cpu: stolen, ..Conditions::default() };
        assert!(!of(Some(0.006), Some(0.004)).is_disturbed());
        assert!(of(Some(0.006), Some(0.005)).is_disturbed());
        assert!(!of(None, Some(0.01)).is_disturbed());
    }

    #[test]
    fn no_share_is_more_than_all() {
        let tree = Tree::new("short");
        tree.write("proc/2/stat", "2 (kthreadd) S 0 7 7 0 -1 0 0 0 0 0 5 0 0 0 20 0 1 0 100");
        let told = |ticks: u64, total: u64| {
            set(&tree, [total, 0, 0], 0, 0, 0);
            tree.write("proc/50/stat", &format!("50 (cc) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100"));
            LoadCounters::read(&tree.files(), OWN)
        };
        let before = told(10, 100);
        assert_eq!(told(17, 105).since(&before, 0.05).foreign, Some(1.0));
    }

    #[test]
    fn counters_that_the_kernel_lacks_are_missing() {
        let tree = Tree::new("mute");
        let conditions = ConditionsWatch::start(tree.files()).finish();
        assert_eq!(conditions, Conditions { seconds: conditions.seconds, ..Conditions::default() });
        assert!(!conditions.is_disturbed());
        let second = SecondWatch::start(tree.files()).look();
        assert_eq!(second, SecondConditions { lasted_s: second.lasted_s, ..SecondConditions::default() });
        assert_eq!(CpuTimes::parse("cpu  10 1"), None);
        let times = CpuTimes::parse("cpu  10 1 5 100 2 3 4 6 0 0\ncpu0 1 1").expect("told");
        assert_eq!([times.total, times.busy, times.stolen].map(|time| time.as_millis()), [1_310, 230, 60]);
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
    fn this_machine_tells_its_cpu_time() {
        let mut watch = SecondWatch::start(HostFiles::here());
        std::thread::sleep(Duration::from_millis(50));
        assert!(watch.look().foreign_cpu.is_some_and(|share| share <= 1.0));
    }
}
