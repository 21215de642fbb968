//! Threads behind one queue. Their number is decided elsewhere.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use super::admission::{Forecast, Patience};
use super::controller::{Decision, PeriodObservation};
use super::observer::{Gauge, PoolTotals, ThreadMeter, ThreadTime, WaitHistogram};
use super::queue::{JobOffer, Queue, Refused, Taken};
use super::thread_pool::{ThreadGroup, ThreadPoolManager};

/// The work of a pool's threads on jobs.
pub trait Crew<J>: Send + Sync {
    /// Does one job.
    fn work(&self, job: J);

    /// Takes back a job that waited too long.
    fn expire(&self, refused: Refused<J>);

    /// The thread has done all that it took from the queue, or has worked for a millisecond: what was held back to be sent
    /// together goes now.
    fn flush(&self) {}
}

/// A bounded queue with threads behind it.
pub struct Pool<J>(Arc<Shared<J>>);

impl<J> Clone for Pool<J> {
    fn clone(&self) -> Pool<J> {
        Pool(Arc::clone(&self.0))
    }
}

struct Shared<J> {
    name: String,
    group: ThreadGroup,
    manager: Arc<ThreadPoolManager>,
    crew: Box<dyn Crew<J>>,
    state: Mutex<State<J>>,
    /// For threads without a job.
    work: Condvar,
    /// For threads beyond the number wanted.
    parked: Condvar,
    wanted: AtomicUsize,
    /// Jobs that a thread takes at once.
    batch_max: AtomicUsize,
    places: Mutex<Places>,
    counters: Counters,
    is_over: AtomicBool,
}

struct State<J> {
    queue: Queue<J>,
    /// Threads that wait for a job.
    waiting: usize,
}

/// Threads by their number, and the time of those that have ended.
#[derive(Default)]
struct Places {
    threads: Vec<Place>,
    ended: ThreadTime,
}

/// One thread's place.
enum Place {
    Free,
    /// The thread was made and has not begun.
    Taken,
    Working(Arc<ThreadMeter>),
}

#[derive(Default)]
struct Counters {
    accepted: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    completed: AtomicU64,
    taken: AtomicU64,
    waited_nanos: AtomicU64,
    waited_max_nanos: AtomicU64,
    waits: [AtomicU64; 13],
}

impl<J: Send + 'static> Pool<J> {
    pub(super) fn new(
        name: String,
        group: ThreadGroup,
        manager: Arc<ThreadPoolManager>,
        patience: Patience,
        crew: Box<dyn Crew<J>>,
    ) -> Pool<J> {
        Pool(Arc::new(Shared {
            name,
            group,
            manager,
            crew,
            state: Mutex::new(State { queue: Queue::new(patience), waiting: 0 }),
            work: Condvar::new(),
            parked: Condvar::new(),
            wanted: AtomicUsize::new(0),
            batch_max: AtomicUsize::new(1),
            places: Mutex::default(),
            counters: Counters::default(),
            is_over: AtomicBool::new(false),
        }))
    }

    /// Lets jobs wait for a thread, all under one lock; those that are refused, or make room for others, come back in
    /// `refused`.
    pub fn push(&self, now: Instant, offers: &mut Vec<JobOffer<J>>, refused: &mut Vec<Refused<J>>) {
        let shared = &*self.0;
        let (mut accepted, mut rejected, mut evicted) = (0, 0, 0);
        let mut state = shared.state();
        for offer in offers.drain(..) {
            match state.queue.push(now, offer) {
                Ok(made_room) => {
                    accepted += 1;
                    evicted += u64::from(made_room.is_some());
                    refused.extend(made_room);
                }
                Err(job) => {
                    rejected += 1;
                    refused.push(job);
                }
            }
        }
        let wake = state.waiting.min(usize::try_from(accepted).unwrap_or(usize::MAX));
        drop(state);
        (0..wake).for_each(|_| shared.work.notify_one());
        shared.counters.accepted.fetch_add(accepted, Ordering::Relaxed);
        shared.counters.refused.fetch_add(rejected, Ordering::Relaxed);
        shared.counters.dropped.fetch_add(evicted, Ordering::Relaxed);
    }

    /// Lets a job wait that is done in any case: neither a full queue nor a long wait refuses it. Whoever offers such jobs bounds
    /// their number.
    pub fn push_owed(&self, now: Instant, bytes: usize, job: J) {
        let mut state = self.0.state();
        state.queue.push_owed(now, bytes, job);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.0.work.notify_one();
        }
        self.0.counters.accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// The name of its threads and statistics.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Droppable jobs that may still come to wait; more may by the time they come.
    pub fn room(&self) -> usize {
        self.0.state().queue.room()
    }

    /// Takes into account that `count` droppable jobs, one or more, were dropped for want of room without being offered.
    pub fn handle_drops(&self, count: u64) {
        self.0.state().queue.handle_drop();
        self.0.counters.refused.fetch_add(count, Ordering::Relaxed);
    }
}

/// The scheduler's interface to a pool with any type of job.
pub(super) trait Observed: Send + Sync {
    fn name(&self) -> &str;
    fn read(&self, now: Instant) -> (PoolTotals, Gauge);
    /// Gives the pool as many threads as the system grants.
    fn set_threads(&self, threads: usize) -> io::Result<()>;
    /// Sets the queue's estimate of the capacity.
    fn set_forecast(&self, observation: &PeriodObservation, decision: Decision);
    /// Lets the threads finish waiting jobs and end.
    fn finish(&self);
}

impl<J: Send + 'static> Observed for Pool<J> {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn read(&self, now: Instant) -> (PoolTotals, Gauge) {
        let shared = &*self.0;
        let counters = &shared.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let places = shared.places();
        let mut thread_time = places.ended;
        for place in &places.threads {
            if let Place::Working(meter) = place {
                thread_time.add(meter.read(now));
            }
        }
        drop(places);
        let totals = PoolTotals {
            accepted: count(&counters.accepted),
            refused: count(&counters.refused),
            dropped: count(&counters.dropped),
            completed: count(&counters.completed),
            taken: count(&counters.taken),
            waited: Duration::from_nanos(count(&counters.waited_nanos)),
            waits: WaitHistogram(std::array::from_fn(|at| count(&counters.waits[at]))),
            thread_time,
        };
        let waited_max = Duration::from_nanos(counters.waited_max_nanos.swap(0, Ordering::Relaxed));
        let state = shared.state();
        let (queue, is_standing) = (state.queue.len(), state.queue.is_standing());
        (totals, Gauge { threads: shared.wanted.load(Ordering::Relaxed), queue, waited_max, is_standing })
    }

    fn set_threads(&self, threads: usize) -> io::Result<()> {
        let shared = &self.0;
        let before = shared.wanted.swap(threads, Ordering::SeqCst);
        if threads < before {
            // Those beyond the number may be among the waiting; they must not be woken for a job again.
            let _state = shared.state();
            shared.work.notify_all();
        } else if threads > before {
            let _state = shared.state();
            shared.parked.notify_all();
        }
        let mut places = shared.places();
        if places.threads.len() < threads {
            places.threads.resize_with(threads, || Place::Free);
        }
        for (number, place) in places.threads.iter_mut().enumerate().take(threads) {
            if matches!(place, Place::Free) {
                let worker = Arc::clone(shared);
                let name = format!("{}-{number}", shared.name);
                shared.manager.spawn(shared.group, &name, move || worker.run(number))?;
                *place = Place::Taken;
            }
        }
        Ok(())
    }

    fn set_forecast(&self, observation: &PeriodObservation, decision: Decision) {
        let shared = &*self.0;
        let busy = observation.busy.as_secs_f64();
        if observation.completions > 0 && busy > 0.0 {
            let of_one = observation.completions as f64 / busy;
            let rate = Some(of_one * decision.threads as f64);
            let can_grow = decision.threads < decision.threads_max;
            shared.state().queue.set_forecast(Forecast { rate, can_grow });
            let batch = (of_one * BATCH_SECONDS) as usize;
            shared.batch_max.store(batch.clamp(1, BATCH_MAX), Ordering::Relaxed);
        }
    }

    fn finish(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        let _state = self.0.state();
        self.0.work.notify_all();
        self.0.parked.notify_all();
    }
}

impl<J> Shared<J> {
    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of thread `number`.
    fn run(&self, number: usize) {
        let meter = Arc::new(ThreadMeter::of_this_thread());
        self.places().threads[number] = Place::Working(Arc::clone(&meter));
        let mut taken = Taken::default();
        while self.take(number, &mut taken) {
            self.note(&taken);
            meter.begin(clock::now());
            self.work_off(&mut taken);
            meter.end(clock::now());
        }
        let mut places = self.places();
        places.ended.add(meter.read(clock::now()));
        places.threads[number] = Place::Free;
    }

    fn work_off(&self, taken: &mut Taken<J>) {
        taken.expired.drain(..).for_each(|refused| self.crew.expire(refused));
        let mut flushed = clock::now();
        for job in taken.jobs.drain(..) {
            // A handler that panics must not take the thread away from the others.
            let _ = catch_unwind(AssertUnwindSafe(|| self.crew.work(job)));
            self.counters.completed.fetch_add(1, Ordering::Relaxed);
            let now = clock::now();
            if now.since(flushed) >= FLUSH_AFTER {
                self.crew.flush();
                flushed = now;
            }
        }
        self.crew.flush();
    }

    fn note(&self, taken: &Taken<J>) {
        let counters = &self.counters;
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        counters.taken.fetch_add((taken.jobs.len() + taken.expired.len()) as u64, Ordering::Relaxed);
        counters.dropped.fetch_add(taken.expired.len() as u64, Ordering::Relaxed);
        counters.waited_nanos.fetch_add(nanos(taken.waited), Ordering::Relaxed);
        counters.waited_max_nanos.fetch_max(nanos(taken.waited_max), Ordering::Relaxed);
        for (counter, count) in counters.waits.iter().zip(taken.waits.0).filter(|(_, count)| *count > 0) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Waits for jobs; false when the thread is to end.
    fn take(&self, number: usize, taken: &mut Taken<J>) -> bool {
        (taken.waited, taken.waited_max) = (Duration::ZERO, Duration::ZERO);
        taken.waits = WaitHistogram::default();
        let mut state = self.state();
        loop {
            let is_over = self.is_over.load(Ordering::SeqCst);
            if number >= self.wanted.load(Ordering::SeqCst) && !is_over {
                // The wake-up for a job that brought it here belongs to another thread.
                if !state.queue.is_empty() {
                    self.work.notify_one();
                }
                let (back, timeout) =
                    self.parked.wait_timeout(state, PARKED_MAX).unwrap_or_else(PoisonError::into_inner);
                state = back;
                if timeout.timed_out() && number >= self.wanted.load(Ordering::SeqCst) {
                    return false;
                }
            } else if !state.queue.is_empty() {
                let share = state.queue.len().div_ceil(self.wanted.load(Ordering::Relaxed).max(1));
                let count = self.batch_max.load(Ordering::Relaxed).min(share);
                state.queue.take(clock::now(), count, taken);
                return true;
            } else if is_over {
                return false;
            } else {
                state.waiting += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.waiting -= 1;
            }
        }
    }
}

/// A thread takes as many jobs at once as it does in about this time: taking costs 0.1 µs, and no other thread can do
/// the jobs that it took.
const BATCH_SECONDS: f64 = 200e-6;
const BATCH_MAX: usize = 32;
const FLUSH_AFTER: Duration = Duration::from_millis(1);
/// Time for which a superfluous thread stays, to spare the next burst its creation.
const PARKED_MAX: Duration = Duration::from_secs(10);
