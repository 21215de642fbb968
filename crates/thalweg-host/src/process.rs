//! Processes and threads, as the kernel's files tell them.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::files::{HostFiles, count};

/// A process or one of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// This process.
    This,
    /// The thread that asks.
    ThisThread,
    /// The process with this number.
    Process(u32),
    /// The thread of this process with this number.
    Thread(u32),
}

/// A task so far, by its file `stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// Its name, as far as the kernel keeps it: 15 bytes.
    pub name: String,
    /// Its state in the kernel's letters, such as `R` for running.
    pub state: char,
    /// The process that started it.
    pub parent: u32,
    /// CPU time in its own code, in steps of 10 ms.
    pub user: Duration,
    /// CPU time in the kernel, in steps of 10 ms.
    pub system: Duration,
    /// CPU time of its children that ended and were waited for.
    pub children: Duration,
    /// What it yields to others: -20 (nothing) to 19.
    pub nice: i32,
    /// Threads of its process.
    pub threads: u64,
}

/// A task so far, by its file `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskStatus {
    /// Memory in use in KiB.
    pub resident_kib: u64,
    /// The most memory it ever used, in KiB.
    pub resident_max_kib: u64,
    /// Times it waited for something.
    pub voluntary_switches: u64,
    /// Times it was stopped for another one.
    pub involuntary_switches: u64,
}

impl Task {
    fn folder(self) -> String {
        match self {
            Task::This => "proc/self".to_owned(),
            Task::ThisThread => "proc/thread-self".to_owned(),
            Task::Process(process) => format!("proc/{process}"),
            Task::Thread(thread) => format!("proc/self/task/{thread}"),
        }
    }
}

impl TaskStat {
    /// That of a task; `None` if it is gone.
    pub fn read(files: &HostFiles, task: Task) -> Option<TaskStat> {
        TaskStat::parse(&files.text(format!("{}/stat", task.folder()))?)
    }

    fn parse(text: &str) -> Option<TaskStat> {
        // The name may hold spaces and parentheses; it ends at the last one.
        let (head, fields) = text.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // proc_pid_stat(5) counts from one and the first field behind the name is its third.
        let field = |number: usize| fields.get(number - 3).copied();
        let time = |number: usize| Some(Duration::from_millis(field(number)?.parse::<u64>().ok()? * TICK_MS));
        Some(TaskStat {
            name: head.split_once('(')?.1.to_owned(),
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            user: time(14)?,
            system: time(15)?,
            children: time(16)? + time(17)?,
            nice: field(19)?.parse().ok()?,
            threads: field(20)?.parse().ok()?,
        })
    }

    /// CPU time of itself in its own code and in the kernel.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }

    /// Whether it has ended and its parent has not noticed yet.
    pub fn is_zombie(&self) -> bool {
        self.state == 'Z'
    }
}

impl TaskStatus {
    /// That of a task; `None` if it is gone.
    pub fn read(files: &HostFiles, task: Task) -> Option<TaskStatus> {
        let text = files.text(format!("{}/status", task.folder()))?;
        let count = |name| count(&text, name).unwrap_or(0);
        Some(TaskStatus {
            resident_kib: count("VmRSS"),
            resident_max_kib: count("VmHWM"),
            voluntary_switches: count("voluntary_ctxt_switches"),
            involuntary_switches: count("nonvoluntary_ctxt_switches"),
        })
    }
}

impl HostFiles {
    /// The numbers of all processes, in ascending order.
    pub fn processes(&self) -> Vec<u32> {
        self.numbers("proc")
    }

    fn numbers(&self, folder: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.entries(folder).iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Whether there is a process with this number, zombies included.
    pub fn has_process(&self, process: u32) -> bool {
        self.has(format!("proc/{process}"))
    }

    /// The words that a process was started with, its program first; none of one that is gone.
    pub fn arguments(&self, process: u32) -> Vec<String> {
        let text = self.text(format!("proc/{process}/cmdline")).unwrap_or_default();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    /// The numbers of this process's threads, in ascending order.
    pub fn threads(&self) -> Vec<u32> {
        self.numbers("proc/self/task")
    }

    /// Datagrams that found a full receive buffer at one of a task's UDP sockets.
    pub fn socket_drops(&self, task: Task) -> u64 {
        let folder = task.folder();
        let descriptors = self.entries(format!("{folder}/fd"));
        let inode = |name: &String| {
            let target = self.link(format!("{folder}/fd/{name}"))?;
            Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        };
        let inodes: HashSet<String> = descriptors.iter().filter_map(inode).collect();
        let tables = ["udp", "udp6"].map(|table| self.text(format!("{folder}/net/{table}")).unwrap_or_default());
        tables.iter().map(|table| drops_of(table, &inodes)).sum()
    }

    /// Whether a UDP socket is bound to this port in the network namespace of a process.
    pub fn has_udp_port(&self, process: u32, port: u16) -> bool {
        let suffix = format!(":{port:04X}");
        let is_bound = |line: &str| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&suffix));
        let tables = ["udp", "udp6"].map(|table| self.text(format!("proc/{process}/net/{table}")).unwrap_or_default());
        tables.iter().any(|table| table.lines().skip(1).any(is_bound))
    }
}

/// The last column of the lines whose tenth is one of these inodes (proc(5)).
fn drops_of(table: &str, inodes: &HashSet<String>) -> u64 {
    let drops = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        inodes.contains(*words.get(9)?).then(|| words.last()?.parse::<u64>().ok()).flatten()
    };
    table.lines().skip(1).filter_map(drops).sum()
}

/// The scheduler's account of the thread that opened it; any thread may read it, as long as that one lives.
#[derive(Debug)]
pub struct ThreadSchedule(File);

impl ThreadSchedule {
    /// That of the calling thread; `None` where the kernel keeps none.
    pub fn of_this_thread() -> Option<ThreadSchedule> {
        File::open("/proc/thread-self/schedstat").ok().map(ThreadSchedule)
    }

    /// Time on a processor and time spent ready but waiting for one, in that order, each exact to the nanosecond
    /// (Linux, Documentation/scheduler/sched-stats.rst).
    pub fn read(&self) -> Option<(Duration, Duration)> {
        let mut buffer = [0; 80];
        let count = self.0.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..count]).ok()?;
        let mut fields = text.split_whitespace().map(|field| field.parse().map(Duration::from_nanos));
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    }
}

/// Linux tells CPU times in hundredths of a second whatever its own tick is (`USER_HZ`).
pub(crate) const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    #[test]
    fn a_task_is_read_from_its_files_whatever_its_name() {
        let tree = Tree::new("task")
            .with("proc/7/stat", "7 (a (b) c) S 1 7 7 0 -1 4194304 500 0 0 0 120 30 4 5 20 -3 9 0 100")
            .with("proc/7/status", "VmHWM:\t 3000 kB\nVmRSS:\t 2048 kB\nvoluntary_ctxt_switches:\t9\n")
            .with("proc/7/cmdline", "/bin/a b\0--c d\0\0")
            .with("proc/8/stat", "8 (short) R 1")
            .with("proc/10/stat", "10 (short) R 1");
        let files = tree.files();
        let stat = TaskStat::read(&files, Task::Process(7)).expect("told");
        let expect = TaskStat {
            name: "a (b) c".to_owned(),
            state: 'S',
            parent: 1,
            user: Duration::from_millis(1_200),
            system: Duration::from_millis(300),
            children: Duration::from_millis(90),
            nice: -3,
            threads: 9,
        };
        assert_eq!((stat.cpu(), stat), (Duration::from_millis(1_500), expect));
        let status = TaskStatus::read(&files, Task::Process(7)).expect("told");
        let expect = TaskStatus { resident_kib: 2048, resident_max_kib: 3000, voluntary_switches: 9, ..status };
        assert_eq!((status, status.involuntary_switches), (expect, 0));
        assert_eq!(TaskStat::read(&files, Task::Process(8)), None);
        assert_eq!(TaskStatus::read(&files, Task::Process(9)), None);
        assert_eq!(files.arguments(7), ["/bin/a b", "--c d", ""]);
        assert_eq!(files.arguments(8), Vec::<String>::new());
        assert_eq!(files.processes(), [7, 8, 10]);
        assert!(files.has_process(8) && !files.has_process(9));
    }

    #[test]
    fn only_own_sockets_count() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n";
        let line = |inode: u32, drops: u32| {
            format!(
                "1: 0100007F:1CE8 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 {inode} 2 0 {drops}\n"
            )
        };
        let tree = Tree::new("sockets")
            .with("proc/7/net/udp", &format!("{head}{}{}", line(111, 5), line(222, 7)))
            .with("proc/7/net/udp6", &format!("{head}{}", line(333, 20)))
            .link("proc/7/fd/4", "socket:[222]")
            .link("proc/7/fd/5", "socket:[333]")
            .link("proc/7/fd/6", "/dev/null");
        assert_eq!(tree.files().socket_drops(Task::Process(7)), 27);
        assert_eq!(tree.files().socket_drops(Task::Process(8)), 0);
        let is_bound = |process, port| tree.files().has_udp_port(process, port);
        assert!(is_bound(7, 7_400) && !is_bound(7, 0x0c_e8) && !is_bound(8, 7_400));
    }

    #[test]
    fn this_thread_is_found_by_every_way() {
        let files = HostFiles::here();
        let own = TaskStat::read(&files, Task::ThisThread).expect("told");
        let listed = files.threads().into_iter().filter_map(|id| TaskStat::read(&files, Task::Thread(id)));
        assert!(listed.map(|stat| stat.name).any(|name| name == own.name), "{own:?}");
        assert!(!own.is_zombie() && files.has_process(std::process::id()), "{own:?}");
        assert!(TaskStatus::read(&files, Task::This).expect("told").resident_kib > 100);
    }

    #[test]
    fn the_schedule_of_a_thread_that_works_grows() {
        let Some(schedule) = ThreadSchedule::of_this_thread() else { return };
        let (before, _) = schedule.read().expect("told");
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let (after, _) = schedule.read().expect("told");
        assert!(after > before + Duration::from_millis(1), "{before:?} {after:?}");
    }
}
