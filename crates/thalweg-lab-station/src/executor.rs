//! Threads that handle the samples of a subscriber, as ROS 2's executors do.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_host::thread_cpu_time;

use crate::link::lock;
use crate::order::{HistorySetting, nanoseconds};

/// The threads of an executor, and what each sample costs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorSetting {
    /// So many handle samples at once, each of another topic: the samples of one topic are handled one after the other.
    pub threads: u32,
    /// CPU time that the callback spends on each sample.
    #[serde(rename = "work_ns", with = "nanoseconds")]
    pub work: Duration,
}

/// Samples that wait for a thread of their subscriber.
///
/// The samples of a topic wait as in the history of its reader: where that is KEEP_LAST, the oldest makes room; where it is KEEP_ALL, the
/// thread that receives waits.
pub(crate) struct Executor {
    setting: ExecutorSetting,
    history: HistorySetting,
    state: Mutex<Subscriptions>,
    /// A sample waits, or all is over.
    arrived: Condvar,
    /// A sample was taken, or all is over.
    freed: Condvar,
}

#[derive(Default)]
struct Subscriptions {
    all: Vec<Subscription>,
    /// The one that is looked at first.
    next: usize,
    overwritten: u64,
    is_over: bool,
}

#[derive(Clone, Default)]
struct Subscription {
    /// Time and id of each sample.
    waiting: VecDeque<(u64, u64)>,
    /// Whether a thread handles a sample of it.
    is_busy: bool,
}

impl Executor {
    /// For the readers of so many topics with this history.
    pub(crate) fn new(setting: ExecutorSetting, history: HistorySetting, topics: usize) -> Executor {
        let all = vec![Subscription::default(); topics];
        let state = Mutex::new(Subscriptions { all, ..Subscriptions::default() });
        Executor { setting, history, state, arrived: Condvar::new(), freed: Condvar::new() }
    }

    /// Lets a sample of `topic` wait for a thread.
    pub(crate) fn put(&self, topic: usize, time_ns: u64, id: u64) {
        let mut state = lock(&self.state);
        match self.history {
            HistorySetting::KeepLast(depth) => {
                if state.all[topic].waiting.len() >= depth as usize {
                    state.all[topic].waiting.pop_front();
                    state.overwritten += 1;
                }
            }
            HistorySetting::KeepAll(room) => {
                let is_full =
                    |state: &mut Subscriptions| !state.is_over && state.all[topic].waiting.len() >= room as usize;
                state = self.freed.wait_while(state, is_full).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.all[topic].waiting.push_back((time_ns, id));
        drop(state);
        self.arrived.notify_one();
    }

    /// Handles samples by `handle`, which gets time and id, and the work of a callback, in all threads until `ended` returns; returns what
    /// that does.
    pub(crate) fn serve<T>(&self, handle: &(impl Fn(u64, u64) + Sync), ended: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            for _ in 0..self.setting.threads {
                scope.spawn(|| {
                    while let Some((topic, (time_ns, id))) = self.take() {
                        handle(time_ns, id);
                        work(self.setting.work);
                        lock(&self.state).all[topic].is_busy = false;
                    }
                });
            }
            let out = ended();
            lock(&self.state).is_over = true;
            self.arrived.notify_all();
            self.freed.notify_all();
            out
        })
    }

    /// Samples that newer ones took the place of before a thread took them.
    pub(crate) fn overwritten(&self) -> u64 {
        lock(&self.state).overwritten
    }

    /// The next sample of a topic of which no thread handles one, topics in turns; `None` at the end.
    fn take(&self) -> Option<(usize, (u64, u64))> {
        let mut state = lock(&self.state);
        while !state.is_over {
            let count = state.all.len();
            let order = (state.next..count).chain(0..state.next);
            let found = order.into_iter().find(|topic| {
                let subscription = &state.all[*topic];
                !subscription.is_busy && !subscription.waiting.is_empty()
            });
            if let Some(topic) = found {
                state.next = (topic + 1) % count;
                state.all[topic].is_busy = true;
                let sample = state.all[topic].waiting.pop_front();
                self.freed.notify_all();
                return sample.map(|sample| (topic, sample));
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// Computes until this thread has used so much CPU time.
pub(crate) fn work(time: Duration) {
    let until = thread_cpu_time() + time;
    while thread_cpu_time() < until {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;

    fn executor(threads: u32, history: HistorySetting, topics: usize) -> Executor {
        Executor::new(ExecutorSetting { threads, work: Duration::ZERO }, history, topics)
    }

    fn wait_for(mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(Instant::now() < deadline, "nothing happened");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The most samples that were handled at once, of two for each of `topics`, and the ids in the order of their handling.
    fn handled(threads: u32, topics: usize) -> (usize, Vec<u64>) {
        let executor = executor(threads, HistorySetting::KeepAll(2), topics);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ids = Mutex::new(Vec::new());
        let all = 2 * topics;
        (0..all).for_each(|sample| executor.put(sample % topics, 0, sample as u64));
        let handle = |_, id| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            ids.lock().expect("held").push(id);
            std::thread::sleep(Duration::from_millis(50));
            now.fetch_sub(1, Ordering::SeqCst);
        };
        executor.serve(&handle, || wait_for(|| ids.lock().expect("held").len() == all));
        (most.into_inner(), ids.into_inner().expect("held"))
    }

    #[test]
    fn one_thread_handles_one_sample_at_a_time_and_topics_in_turns() {
        assert_eq!(handled(1, 3), (1, vec![0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn several_threads_handle_topics_at_once_and_one_topic_in_order() {
        let (most, ids) = handled(3, 3);
        assert_eq!(most, 3);
        assert!(
            (0..3).all(|topic| ids.iter().position(|id| *id == topic) < ids.iter().position(|id| *id == topic + 3))
        );
        assert_eq!(handled(3, 1), (1, vec![0, 1]), "no two samples of a topic at once");
    }

    #[test]
    fn the_oldest_sample_makes_room_in_a_short_history() {
        let executor = executor(1, HistorySetting::KeepLast(2), 1);
        (0..5).for_each(|id| executor.put(0, 0, id));
        let ids = Mutex::new(Vec::new());
        executor
            .serve(&|_, id| ids.lock().expect("held").push(id), || wait_for(|| ids.lock().expect("held").len() == 2));
        assert_eq!((ids.into_inner().expect("held"), executor.overwritten()), (vec![3, 4], 3));
    }

    #[test]
    fn nothing_is_lost_where_all_is_kept_and_the_receiver_waits() {
        let executor = executor(1, HistorySetting::KeepAll(2), 1);
        let ids = Mutex::new(Vec::new());
        let handle = |_, id| {
            std::thread::sleep(Duration::from_millis(5));
            ids.lock().expect("held").push(id);
        };
        let longest_put = executor.serve(&handle, || {
            let put = |id| {
                let started = Instant::now();
                executor.put(0, 0, id);
                started.elapsed()
            };
            let longest = (0..8).map(put).max();
            wait_for(|| ids.lock().expect("held").len() == 8);
            longest
        });
        assert_eq!((ids.into_inner().expect("held"), executor.overwritten()), ((0..8).collect(), 0));
        assert!(longest_put > Some(Duration::from_millis(2)), "{longest_put:?}");
    }

    #[test]
    fn a_callback_uses_the_cpu_time_that_was_asked_for() {
        let before = thread_cpu_time();
        work(Duration::from_millis(3));
        assert!(thread_cpu_time() - before >= Duration::from_millis(3));
    }
}
