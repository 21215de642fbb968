//! The paper's performance observer: statistics of a pool, as observations for its law and as records of one second.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_host::ThreadSchedule;

use super::controller::{Decision, PeriodObservation};

/// Counters of a pool since its creation. All numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolTotals {
    /// Jobs accepted into the queue.
    pub accepted: u64,
    /// Jobs that were not let in.
    pub refused: u64,
    /// Jobs that were let in and not done: they waited too long, or made room for others.
    pub dropped: u64,
    /// Jobs done.
    pub completed: u64,
    /// Jobs taken from the queue.
    pub taken: u64,
    /// Sum of the waits of the jobs taken.
    pub waited: Duration,
    /// How long they waited.
    pub waits: WaitHistogram,
    /// Time of the pool's threads.
    pub thread_time: ThreadTime,
}

/// Waits of jobs in a queue, counted by their length: one count for each of [`WaitHistogram::BOUNDS`], and one for longer ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitHistogram(pub [u64; 13]);

impl WaitHistogram {
    /// The longest wait of each count but the last.
    pub const BOUNDS: [Duration; 12] = [
        Duration::from_micros(50),
        Duration::from_micros(100),
        Duration::from_micros(250),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_micros(2500),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(100),
        Duration::from_millis(500),
        Duration::from_secs(2),
    ];

    /// Counts a wait.
    pub fn note(&mut self, waited: Duration) {
        self.0[Self::BOUNDS.partition_point(|bound| *bound < waited)] += 1;
    }
}

/// Time of threads, by its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// With jobs, working or blocked.
    pub busy: Duration,
    /// On a processor.
    pub processor: Duration,
    /// Ready, but waiting for a processor.
    pub processor_wait: Duration,
}

impl ThreadTime {
    /// Adds the time of another thread.
    pub fn add(&mut self, other: ThreadTime) {
        self.busy += other.busy;
        self.processor += other.processor;
        self.processor_wait += other.processor_wait;
    }

    fn since(self, before: ThreadTime) -> ThreadTime {
        ThreadTime {
            busy: self.busy.saturating_sub(before.busy),
            processor: self.processor.saturating_sub(before.processor),
            processor_wait: self.processor_wait.saturating_sub(before.processor_wait),
        }
    }
}

/// The state of a pool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Threads it was given.
    pub threads: usize,
    /// Jobs in the queue.
    pub queue: usize,
    /// The longest wait of a job taken since the last gauge.
    pub waited_max: Duration,
    /// Whether a backlog stands.
    pub is_standing: bool,
}

/// Statistics of a pool during about one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolRecord {
    /// When the second ended.
    pub end: Instant,
    /// Arrivals, completions and where the time went; threads and queue are those at the end.
    pub observation: PeriodObservation,
    /// Jobs that were not let in.
    pub refused: u64,
    /// Jobs that were let in and not done.
    pub dropped: u64,
    /// The longest wait in the queue.
    pub waited_max: Duration,
    /// The most threads that the law would have given.
    pub threads_max: usize,
    /// Whether a backlog stood at the end.
    pub is_standing: bool,
}

/// The observer of one pool.
#[derive(Clone, Debug)]
pub struct Observer {
    before: PoolTotals,
    before_at: Instant,
    /// The second that runs, with the sum of its waits and how many they were.
    running: PoolRecord,
    waited: Duration,
    taken: u64,
    history: VecDeque<PoolRecord>,
}

impl Observer {
    /// Observes from `now` on.
    pub fn new(now: Instant) -> Observer {
        Observer {
            before: PoolTotals::default(),
            before_at: now,
            running: PoolRecord::default(),
            waited: Duration::ZERO,
            taken: 0,
            history: VecDeque::with_capacity(HISTORY_MAX),
        }
    }

    /// Observations since the last call.
    pub fn observe(&mut self, now: Instant, totals: &PoolTotals, gauge: &Gauge) -> PeriodObservation {
        let before = std::mem::replace(&mut self.before, *totals);
        let time = totals.thread_time.since(before.thread_time);
        let (taken, waited) = (totals.taken - before.taken, totals.waited - before.waited);
        let observation = PeriodObservation {
            period: now.since(std::mem::replace(&mut self.before_at, now)),
            threads: gauge.threads,
            arrivals: totals.accepted - before.accepted,
            completions: totals.completed - before.completed,
            busy: time.busy,
            processor: time.processor,
            processor_wait: time.processor_wait,
            queue: gauge.queue,
            sojourn: mean(waited, taken),
        };
        self.waited += waited;
        self.taken += taken;
        let record = &mut self.running;
        record.end = now;
        record.observation = sum(&record.observation, &observation);
        record.observation.sojourn = mean(self.waited, self.taken);
        record.refused += totals.refused - before.refused;
        record.dropped += totals.dropped - before.dropped;
        record.waited_max = record.waited_max.max(gauge.waited_max);
        record.is_standing = gauge.is_standing;
        observation
    }

    /// Takes the decision upon the last observation, and closes the record of a second that is over.
    pub fn handle_decision(&mut self, decision: Decision) {
        self.running.threads_max = decision.threads_max;
        if self.running.observation.period < RECORD_PERIOD {
            return;
        }
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(std::mem::take(&mut self.running));
        (self.waited, self.taken) = (Duration::ZERO, 0);
    }

    /// The last ten seconds, oldest first.
    pub fn history(&self) -> Vec<PoolRecord> {
        self.history.iter().copied().collect()
    }
}

fn mean(sum: Duration, count: u64) -> Duration {
    sum.checked_div(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or_default()
}

/// Both periods as one.
fn sum(first: &PeriodObservation, second: &PeriodObservation) -> PeriodObservation {
    PeriodObservation {
        period: first.period + second.period,
        arrivals: first.arrivals + second.arrivals,
        completions: first.completions + second.completions,
        busy: first.busy + second.busy,
        processor: first.processor + second.processor,
        processor_wait: first.processor_wait + second.processor_wait,
        ..*second
    }
}

/// Measures one thread: the thread says when it works, anybody reads.
#[derive(Debug)]
pub struct ThreadMeter {
    work: Mutex<Work>,
    /// The kernel's account of the thread; `None` where it keeps none.
    schedule: Option<ThreadSchedule>,
}

#[derive(Debug, Default)]
struct Work {
    busy: Duration,
    since: Option<Instant>,
}

impl ThreadMeter {
    /// A meter of the calling thread.
    pub fn of_this_thread() -> ThreadMeter {
        ThreadMeter { work: Mutex::default(), schedule: ThreadSchedule::of_this_thread() }
    }

    /// The thread begins to work.
    pub fn begin(&self, now: Instant) {
        self.work().since = Some(now);
    }

    /// It has worked since it began.
    pub fn end(&self, now: Instant) {
        let mut work = self.work();
        if let Some(since) = work.since.take() {
            work.busy += now.since(since);
        }
    }

    /// The thread's time until now, by its use.
    pub fn read(&self, now: Instant) -> ThreadTime {
        let work = self.work();
        let running = work.since.map(|since| now.since(since)).unwrap_or_default();
        let busy = work.busy + running;
        drop(work);
        let (processor, processor_wait) = self.schedule.as_ref().and_then(ThreadSchedule::read).unwrap_or_default();
        ThreadTime { busy, processor, processor_wait }
    }

    fn work(&self) -> std::sync::MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Length of a record.
const RECORD_PERIOD: Duration = Duration::from_secs(1);
/// Records kept: the paper's ten seconds.
const HISTORY_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn observations_are_differences_and_records_are_seconds() {
        let mut observer = Observer::new(at(0));
        let decision = Decision { threads: 2, threads_max: 8 };
        for step in 1..=55u64 {
            let totals = PoolTotals {
                accepted: 10 * step,
                refused: step,
                dropped: 2 * step,
                completed: 9 * step,
                taken: 9 * step,
                waited: millis(18 * step),
                waits: WaitHistogram::default(),
                thread_time: ThreadTime { busy: millis(100 * step), processor: millis(step), ..ThreadTime::default() },
            };
            let gauge = Gauge { threads: 2, queue: step as usize, waited_max: millis(step), is_standing: false };
            let observation = observer.observe(at(200 * step), &totals, &gauge);
            assert_eq!((observation.arrivals, observation.completions, observation.queue), (10, 9, step as usize));
            assert_eq!(
                (observation.period, observation.busy, observation.sojourn),
                (millis(200), millis(100), millis(2))
            );
            observer.handle_decision(decision);
        }
        let history = observer.history();
        assert_eq!(history.len(), 10);
        assert_eq!((history[0].end, history[9].end), (at(2000), at(11_000)));
        let last = history[9];
        assert_eq!((last.observation.arrivals, last.refused, last.dropped, last.threads_max), (50, 5, 10, 8));
        assert_eq!((last.observation.period, last.observation.sojourn), (millis(1000), millis(2)));
        assert_eq!((last.observation.queue, last.waited_max), (55, millis(55)));
    }

    #[test]
    fn a_thread_that_still_works_counts_as_busy() {
        let meter = ThreadMeter::of_this_thread();
        meter.begin(at(10));
        assert_eq!(meter.read(at(15)).busy, millis(5));
        meter.end(at(17));
        assert_eq!(meter.read(at(30)).busy, millis(7));
    }

    #[test]
    fn the_kernel_tells_how_long_a_thread_was_on_a_processor() {
        let meter = ThreadMeter::of_this_thread();
        if meter.schedule.is_none() {
            return;
        }
        let before = meter.read(at(0)).processor;
        let mut number = 1u64;
        while meter.read(at(0)).processor < before + millis(1) {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        std::thread::sleep(millis(20));
        assert!(meter.read(at(0)).processor < before + millis(20));
    }
}
