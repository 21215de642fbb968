//! What other programs compute during a measurement of the network, by their own accounts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::files::HostFiles;
use crate::process::{Task, TaskStat};

/// Watches the processor time of other programs: all but this process, what it started, and the kernel's threads.
///
/// [`Conditions`](crate::Conditions) hold everything against the machine that no process of ours did. That is wrong where the kernel works
/// for the network outside of any process, in interrupts and in `ksoftirqd`; here programs alone count.
#[derive(Debug)]
pub struct ProgramsWatch {
    files: HostFiles,
    begun: Instant,
    own: u32,
    before: BTreeMap<u32, Duration>,
}

impl ProgramsWatch {
    /// Begins now.
    pub fn start(files: HostFiles) -> ProgramsWatch {
        ProgramsWatch::of(files, std::process::id())
    }

    fn of(files: HostFiles, own: u32) -> ProgramsWatch {
        let before = others(&files, own);
        ProgramsWatch { files, begun: Instant::now(), own, before }
    }

    /// Share of all processors' time that other programs used since then, 0 to 1; `None` where the kernel does not tell. A program that
    /// began and ended meanwhile counts once its parent knows of its end.
    pub fn foreign_share(&self) -> Option<f64> {
        self.share_within(self.begun.elapsed())
    }

    fn share_within(&self, elapsed: Duration) -> Option<f64> {
        let now = others(&self.files, self.own);
        let since = |(process, used): (&u32, &Duration)| {
            used.saturating_sub(self.before.get(process).copied().unwrap_or(Duration::ZERO))
        };
        let used: Duration = now.iter().map(since).sum();
        let processors = self.files.processor_count().filter(|count| *count > 0)?;
        let all = elapsed.as_secs_f64() * processors as f64;
        (all > 0.0).then(|| (used.as_secs_f64() / all).min(1.0))
    }
}

impl HostFiles {
    /// Processors that the kernel runs on, whatever this process may use.
    fn processor_count(&self) -> Option<usize> {
        let text = self.text("proc/stat")?;
        let is_processor = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        };
        Some(text.lines().filter(is_processor).count())
    }
}

/// Processor time of every other program and of its children that ended.
fn others(files: &HostFiles, own: u32) -> BTreeMap<u32, Duration> {
    let read = |process: u32| Some((process, TaskStat::read(files, Task::Process(process))?));
    let all: BTreeMap<u32, TaskStat> = files.processes().into_iter().filter_map(read).collect();
    let is_excluded = |process: u32| {
        let mut at = process;
        // A chain of parents is as long as there are processes at most.
        for _ in 0..=all.len() {
            if at == own || at == KERNEL_THREADS {
                return true;
            }
            match all.get(&at) {
                Some(stat) if stat.parent != 0 => at = stat.parent,
                _ => return false,
            }
        }
        false
    };
    let used = |(process, stat): (&u32, &TaskStat)| (*process, stat.cpu() + stat.children);
    all.iter().filter(|(process, _)| !is_excluded(**process)).map(used).collect()
}

/// The parent of all threads of the kernel.
const KERNEL_THREADS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    /// A process by its parent and the ticks of itself and of its ended children.
    fn set(tree: &Tree, process: u32, parent: u32, ticks: u64, children: u64) {
        let stat = format!("{process} (x y) S {parent} 7 7 0 -1 0 0 0 0 0 {ticks} 0 {children} 0 20 0 1 0 100");
        tree.write(&format!("proc/{process}/stat"), &stat);
    }

    #[test]
    fn own_processes_and_the_kernels_threads_are_no_other_programs() {
        let tree = Tree::new("programs").with("proc/stat", "cpu  1 1 1 1\ncpu0 1 1\ncpu1 1 1\nctxt 5\n");
        for (process, parent) in [(1, 0), (2, 0), (15, 2), (40, 1), (41, 40), (42, 41), (50, 1)] {
            set(&tree, process, parent, 100, 0);
        }
        let watch = ProgramsWatch::of(tree.files(), 40);
        for (process, parent) in [(2, 0), (15, 2), (40, 1), (41, 40), (42, 41)] {
            set(&tree, process, parent, 200, 0);
        }
        let after = |seconds| watch.share_within(Duration::from_secs(seconds));
        assert_eq!(after(1), Some(0.0), "the process, its children and theirs, and the kernel");
        set(&tree, 50, 1, 110, 20);
        set(&tree, 51, 1, 10, 0);
        // 0.1 s of its own, 0.2 s of its children that ended, 0.1 s of a new one, of 2 s of two processors.
        assert_eq!(after(1), Some(0.2));
        assert_eq!(after(2), Some(0.1));
        tree.remove("proc/stat");
        assert_eq!(after(2), None, "nobody tells how many processors there are");
    }
}
