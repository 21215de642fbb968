//! Whose the processor time of a machine is, by the accounts of its programs.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::files::HostFiles;
use crate::process::{Task, TaskStat};

/// Processor time of programs so far, with that of their children that ended.
///
/// The kernel counts how busy its processors are by looking at them each few milliseconds, which over one second is wrong by some per cent,
/// and counts interrupts and `ksoftirqd` that work for the network outside of any process; the accounts of programs are exact but for the
/// steps of 10 ms in which it tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramTimes {
    /// Of a process and all that it started; `None` where the kernel does not tell.
    pub own: Option<Duration>,
    /// Of all other programs; the kernel's threads are none. `None` where not all processes of the machine are seen, as in a container.
    pub others: Option<Duration>,
}

impl ProgramTimes {
    /// Those of now, with `own` as the process whose work is not that of others.
    pub fn read(files: &HostFiles, own: u32) -> ProgramTimes {
        let read = |process: u32| Some((process, TaskStat::read(files, Task::Process(process))?));
        let all: BTreeMap<u32, TaskStat> = files.processes().into_iter().filter_map(read).collect();
        let of = |whose: Ancestor| -> Duration {
            let used = |(process, stat): (&u32, &TaskStat)| {
                (ancestor(&all, *process, own) == whose).then(|| stat.cpu() + stat.children)
            };
            all.iter().filter_map(used).sum()
        };
        let sees_all = all.get(&KERNEL_THREADS).is_some_and(|stat| stat.name == "kthreadd");
        ProgramTimes {
            own: all.contains_key(&own).then(|| of(Ancestor::Own)),
            others: sees_all.then(|| of(Ancestor::None)),
        }
    }
}

/// Whose a process is.
#[derive(Clone, Copy, PartialEq)]
enum Ancestor {
    Own,
    Kernel,
    None,
}

fn ancestor(all: &BTreeMap<u32, TaskStat>, process: u32, own: u32) -> Ancestor {
    let mut at = process;
    // A chain of parents is as long as there are processes at most.
    for _ in 0..=all.len() {
        match at {
            _ if at == own => return Ancestor::Own,
            KERNEL_THREADS => return Ancestor::Kernel,
            _ => match all.get(&at) {
                Some(stat) if stat.parent != 0 => at = stat.parent,
                _ => return Ancestor::None,
            },
        }
    }
    Ancestor::None
}

/// The parent of all threads of the kernel.
const KERNEL_THREADS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    /// A process by its parent and the ticks of itself and of its ended children.
    fn set(tree: &Tree, (process, name): (u32, &str), parent: u32, ticks: u64, children: u64) {
        let stat = format!("{process} ({name}) S {parent} 7 7 0 -1 0 0 0 0 0 {ticks} 0 {children} 0 20 0 1 0 100");
        tree.write(&format!("proc/{process}/stat"), &stat);
    }

    fn millis(times: ProgramTimes) -> [Option<u128>; 2] {
        [times.own, times.others].map(|time| time.map(|time| time.as_millis()))
    }

    #[test]
    fn own_processes_and_the_kernels_threads_are_no_other_programs() {
        let tree = Tree::new("programs");
        set(&tree, (2, "kthreadd"), 0, 7, 0);
        set(&tree, (15, "ksoftirqd/0"), 2, 500, 0);
        set(&tree, (1, "init"), 0, 1, 0);
        for (process, parent) in [(40, 1), (41, 40), (42, 41)] {
            set(&tree, (process, "x y"), parent, 100, 0);
        }
        set(&tree, (50, "cc"), 1, 10, 20);
        assert_eq!(millis(ProgramTimes::read(&tree.files(), 40)), [Some(3_000), Some(310)]);
        assert_eq!(millis(ProgramTimes::read(&tree.files(), 42)), [Some(1_000), Some(2_310)]);
    }

    #[test]
    fn what_a_program_used_stays_used_when_it_ends() {
        let tree = Tree::new("ended");
        set(&tree, (2, "kthreadd"), 0, 0, 0);
        set(&tree, (50, "make"), 1, 10, 0);
        set(&tree, (51, "cc"), 50, 80, 0);
        let before = ProgramTimes::read(&tree.files(), 40);
        tree.remove("proc/51/stat");
        set(&tree, (50, "make"), 1, 10, 90);
        let after = ProgramTimes::read(&tree.files(), 40);
        assert_eq!([millis(before), millis(after)], [[None, Some(900)], [None, Some(1_000)]]);
    }

    #[test]
    fn where_processes_are_hidden_nothing_is_said_of_others() {
        let tree = Tree::new("container");
        set(&tree, (1, "sh"), 0, 5, 0);
        set(&tree, (2, "thalweg"), 1, 9, 0);
        assert_eq!(millis(ProgramTimes::read(&tree.files(), 1)), [Some(50), None]);
    }
}
