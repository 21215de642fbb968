//! What waits for the thread of an exporter.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use thalweg_types::Structure;

/// Work that waits for one thread, by path: of changes and commands of one path, the latest take the place of earlier ones, and the
/// path keeps its turn.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: Mutex<Waiting>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The paths in `work`, in the order in which they came.
    order: VecDeque<String>,
    work: BTreeMap<String, Work>,
    is_stopped: bool,
}

/// What is to be done about one path.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The latest sample of another writer on the topic of the resource.
    pub(super) command: Option<Command>,
    /// The resource has changed.
    pub(super) has_changed: bool,
}

/// A sample that drives a resource.
#[derive(Debug)]
pub(super) struct Command {
    /// The type of the topic that it came from.
    pub(super) structure: Arc<Structure>,
    /// The serialized sample.
    pub(super) bytes: Vec<u8>,
}

impl Backlog {
    /// The resource of this path has changed.
    pub(super) fn add_change(&self, path: &str) {
        self.add(path, |work| work.has_changed = true);
    }

    /// A sample of another writer arrived on the topic of the resource of this path.
    pub(super) fn add_command(&self, path: &str, command: Command) {
        self.add(path, |work| work.command = Some(command));
    }

    fn add(&self, path: &str, change: impl FnOnce(&mut Work)) {
        let mut waiting = self.waiting();
        if !waiting.work.contains_key(path) {
            waiting.order.push_back(path.to_owned());
        }
        change(waiting.work.entry(path.to_owned()).or_default());
        drop(waiting);
        self.news.notify_one();
    }

    /// No more work is handed out, not even what waits.
    pub(super) fn stop(&self) {
        self.waiting().is_stopped = true;
        self.news.notify_all();
    }

    /// Waits for work and hands out that of the path whose turn it is; `None` once stopped.
    pub(super) fn wait(&self) -> Option<(String, Work)> {
        let is_idle = |waiting: &mut Waiting| !waiting.is_stopped && waiting.order.is_empty();
        let mut waiting = self.news.wait_while(self.waiting(), is_idle).unwrap_or_else(PoisonError::into_inner);
        if waiting.is_stopped {
            return None;
        }
        let path = waiting.order.pop_front()?;
        let work = waiting.work.remove(&path).unwrap_or_default();
        Some((path, work))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_types::{READINGS, Types};

    use super::*;

    fn command(bytes: &[u8]) -> Command {
        let types = Types::default();
        let structure = types.find(&format!("{READINGS}::Real")).expect("built in");
        Command { structure: Arc::clone(structure), bytes: bytes.to_vec() }
    }

    /// The next path, whether it has changed, and its command.
    fn next(backlog: &Backlog) -> (String, bool, Option<Vec<u8>>) {
        let (path, work) = backlog.wait().expect("work");
        (path, work.has_changed, work.command.map(|command| command.bytes))
    }

    #[test]
    fn the_latest_command_takes_the_place_of_earlier_ones_and_others_wait_for_one_only() {
        let backlog = Backlog::default();
        (0..100).for_each(|number| backlog.add_command("lamp", command(&[number])));
        backlog.add_change("door");
        (100..200).for_each(|number| backlog.add_command("lamp", command(&[number])));
        backlog.add_change("lamp");
        assert_eq!(next(&backlog), ("lamp".to_owned(), true, Some(vec![199])));
        backlog.add_change("lamp");
        assert_eq!(next(&backlog), ("door".to_owned(), true, None));
        assert_eq!(next(&backlog), ("lamp".to_owned(), true, None));
    }

    #[test]
    fn a_stop_comes_before_what_waits() {
        let backlog = Backlog::default();
        backlog.add_change("door");
        backlog.stop();
        backlog.add_change("lamp");
        assert!(backlog.wait().is_none());
    }
}
