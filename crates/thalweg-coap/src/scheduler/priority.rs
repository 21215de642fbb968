//! The paper's priority manager: the order of groups when there are fewer processors than threads.

use std::sync::{Mutex, PoisonError};

use thalweg_host::{HostFiles, Task, TaskStat};
use thalweg_transport::thread;

use super::thread_pool::ThreadGroup;

/// Nice values of the four groups beside that of the process, -20 (first) to 19 (last).
///
/// Default: 0 for interaction and profile, 5 for resources, 10 for applications. That puts interaction first, as the paper
/// asks, by letting the others step back, which needs no privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// Receivers and handlers.
    pub interaction: i32,
    /// The performance observer; late, it would measure late.
    pub profile: i32,
    /// Reading devices.
    pub resource: i32,
    /// Services.
    pub application: i32,
}

impl Default for Priorities {
    fn default() -> Priorities {
        Priorities { interaction: 0, profile: 0, resource: 5, application: 10 }
    }
}

impl Priorities {
    /// The nice value of a group.
    pub fn of(self, group: ThreadGroup) -> i32 {
        match group {
            ThreadGroup::Interaction => self.interaction,
            ThreadGroup::Profile => self.profile,
            ThreadGroup::Resource => self.resource,
            ThreadGroup::Application => self.application,
        }
    }
}

/// Sets priorities and remembers which the system refused.
#[derive(Debug)]
pub struct PriorityManager {
    wanted: Priorities,
    /// The nice value of the process: that of the thread that made this.
    base: i32,
    refusals: Mutex<Vec<PriorityRefusal>>,
}

/// A nice value that the system did not grant; the threads of the group run with the one they were started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityRefusal {
    /// Whose threads.
    pub group: ThreadGroup,
    /// The requested nice value.
    pub nice: i32,
    /// The system's error.
    pub cause: String,
}

impl std::fmt::Display for PriorityRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "threads of the group {} do not get nice {}: {}; give the process CAP_SYS_NICE or raise RLIMIT_NICE",
            self.group, self.nice, self.cause
        )
    }
}

impl PriorityManager {
    /// Grants these from now on.
    pub fn new(wanted: Priorities) -> PriorityManager {
        let base = current_nice().unwrap_or_default();
        PriorityManager { wanted, base, refusals: Mutex::default() }
    }

    /// Gives the calling thread the priority of its group, whatever that of the thread that started it.
    pub fn apply(&self, group: ThreadGroup) {
        let nice = (self.base + self.wanted.of(group)).clamp(-20, 19);
        if current_nice() == Some(nice) {
            return;
        }
        let Err(error) = thread::set_nice(nice) else { return };
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if !refusals.iter().any(|refusal| refusal.group == group) {
            refusals.push(PriorityRefusal { group, nice, cause: error.to_string() });
        }
    }

    /// Refusals so far, each group once.
    pub fn refusals(&self) -> Vec<PriorityRefusal> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The nice value of the calling thread.
fn current_nice() -> Option<i32> {
    TaskStat::read(&HostFiles::here(), Task::ThisThread).map(|stat| stat.nice)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_group_that_steps_back_does_so_without_privilege_and_a_value_that_does_not_exist_is_told() {
        let manager = PriorityManager::new(Priorities { application: 19, ..Priorities::default() });
        let nice = std::thread::spawn(move || {
            manager.apply(ThreadGroup::Application);
            let stat = TaskStat::read(&HostFiles::here(), Task::ThisThread).unwrap();
            (stat.nice, manager.refusals())
        });
        let (nice, refusals) = nice.join().unwrap();
        assert_eq!((nice, refusals), (19, vec![]));
    }

    #[test]
    fn a_refusal_names_the_group_once_and_says_what_to_do() {
        let refusal =
            PriorityRefusal { group: ThreadGroup::Interaction, nice: -5, cause: "Permission denied".to_owned() };
        let text = refusal.to_string();
        assert!(text.contains("interaction") && text.contains("-5") && text.contains("CAP_SYS_NICE"), "{text}");
    }
}
