//! The paper's system scheduler: groups of threads, their numbers and their statistics.
//!
//! - [`thread_pool`]: the thread-pool manager with its groups application, resource, interaction and profile.
//! - [`priority`]: the priority manager.
//! - [`observer`]: the performance observer, with records of one second and ten seconds of history.
//! - [`controller`]: the laws for the number of threads of a pool.
//! - [`pool`], [`queue`], [`admission`]: threads behind a bounded queue that lets nothing in which it would keep too long.

pub mod admission;
pub mod controller;
pub mod observer;
pub mod pool;
pub mod priority;
pub mod queue;
#[cfg(test)]
mod tests;
pub mod thread_pool;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;

use admission::Patience;
use controller::{ControlLaw, Controller, Decision, PoolLimits};
use observer::{Gauge, Observer, PoolRecord, PoolTotals};
use pool::{Crew, Observed, Pool};
use priority::{Priorities, PriorityRefusal};
use thread_pool::{ThreadGroup, ThreadPoolManager};

/// Settings of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Period of the laws' decisions, at least 10 ms. Default 200 ms; the paper's period of 1 s reacts to bursts too late.
    pub period: Duration,
    /// Processors and memory.
    pub limits: PoolLimits,
    /// Which group runs first.
    pub priorities: Priorities,
}

impl Default for SchedulerConfig {
    /// The resources that the process may use: all processors it may run on and 512 threads, whose stacks then take 256 MiB
    /// of address space and a tenth of that in memory.
    fn default() -> SchedulerConfig {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        SchedulerConfig {
            period: Duration::from_millis(200),
            limits: PoolLimits { processors, threads_max: 512 },
            priorities: Priorities::default(),
        }
    }
}

/// Settings of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its name, for threads and statistics.
    pub name: String,
    /// The group of its threads.
    pub group: ThreadGroup,
    /// The law for the number of its threads.
    pub law: ControlLaw,
    /// Bounds on the wait of jobs.
    pub patience: Patience,
}

impl PoolConfig {
    /// The pool in which devices are read. A job is a device with commands; each has a bounded queue of its own, so this
    /// one holds as many as a store has resources, and nobody waits for a device longer than 10 s.
    ///
    /// The paper's pool has a thread for each processor, [`ControlLaw::Fixed`]: then as many devices that hang stop all.
    pub fn for_resources(law: ControlLaw) -> PoolConfig {
        let wait = Duration::from_secs(10);
        PoolConfig {
            name: "resource".to_owned(),
            group: ThreadGroup::Resource,
            law,
            patience: Patience { wait_max: wait, standing_max: wait, length_max: 4096, ..Patience::default() },
        }
    }
}

/// Statistics of all pools in the last ten seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// One entry a pool.
    pub pools: Vec<PoolSnapshot>,
    /// Priorities that the system refused.
    pub refusals: Vec<PriorityRefusal>,
    /// Threads of each group, and the nice value that they ask for.
    pub groups: Vec<GroupSnapshot>,
}

/// The threads of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSnapshot {
    /// Which.
    pub group: ThreadGroup,
    /// Threads that run.
    pub threads: usize,
    /// The nice value that they ask for, -20 to 19.
    pub nice: i32,
}

/// Statistics of one pool in the last ten seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSnapshot {
    /// Its name.
    pub name: String,
    /// The law for its threads.
    pub law: ControlLaw,
    /// Threads that it has now.
    pub threads: usize,
    /// Its counters since its creation, as of the law's last decision.
    pub totals: PoolTotals,
    /// Its state at that time.
    pub gauge: Gauge,
    /// The time since then.
    pub age: Duration,
    /// A record a second, oldest first.
    pub history: Vec<PoolRecord>,
    /// Why it has fewer threads than the law gave it, where the system refused some.
    pub shortage: Option<String>,
}

/// All threads of one server and their laws.
pub struct Scheduler {
    config: SchedulerConfig,
    manager: Arc<ThreadPoolManager>,
    watched: Arc<Mutex<Vec<Watched>>>,
    is_over: Arc<AtomicBool>,
    profile: Option<JoinHandle<()>>,
}

/// A pool with its observer and its law.
struct Watched {
    pool: Arc<dyn Observed>,
    law: ControlLaw,
    controller: Box<dyn Controller>,
    observer: Observer,
    totals: PoolTotals,
    gauge: Gauge,
    looked_at: Instant,
    threads: usize,
    shortage: Option<String>,
}

impl Scheduler {
    /// Starts the performance observer.
    ///
    /// # Errors
    /// When the system gives no thread for it.
    pub fn start(config: SchedulerConfig) -> io::Result<Scheduler> {
        let manager = Arc::new(ThreadPoolManager::new(config.limits.threads_max, config.priorities));
        Scheduler::start_among(config, manager)
    }

    /// The same with threads of this manager, which has some already.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start_among(config: SchedulerConfig, manager: Arc<ThreadPoolManager>) -> io::Result<Scheduler> {
        let watched: Arc<Mutex<Vec<Watched>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (pools, stop) = (Arc::clone(&watched), Arc::clone(&is_over));
        let period = config.period.max(PERIOD_MIN);
        // One thread for all pools: it sleeps nearly always, so the paper's one for each would only cost memory.
        let profile = manager.spawn(ThreadGroup::Profile, "profile", move || {
            while !stop.load(Ordering::SeqCst) {
                std::thread::park_timeout(period);
                lock(&pools).iter_mut().for_each(Watched::turn);
            }
        })?;
        Ok(Scheduler { config, manager, watched, is_over, profile: Some(profile) })
    }

    /// Makes a pool whose threads do what `crew` says.
    ///
    /// # Errors
    /// When the law runs handlers inline, which needs no pool, or the system gives no thread.
    pub fn add_pool<J: Send + 'static>(&self, config: PoolConfig, crew: Box<dyn Crew<J>>) -> io::Result<Pool<J>> {
        let Some(controller) = config.law.controller(self.config.limits) else {
            return Err(io::Error::other(format!("the pool {} has the law inline, which has no threads", config.name)));
        };
        let threads = config.law.threads_at_start().min(self.config.limits.threads_max.max(1));
        let pool = Pool::new(config.name, config.group, Arc::clone(&self.manager), config.patience, crew);
        pool.set_threads(threads)?;
        lock(&self.watched).push(Watched {
            pool: Arc::new(pool.clone()),
            law: config.law,
            controller,
            observer: Observer::new(clock::now()),
            totals: PoolTotals::default(),
            gauge: Gauge::default(),
            looked_at: clock::now(),
            threads,
            shortage: None,
        });
        Ok(pool)
    }

    /// Puts the pool of this name under another law from now on; false when there is none, or the law has no threads.
    pub fn set_law(&self, pool: &str, law: ControlLaw) -> bool {
        let Some(controller) = law.controller(self.config.limits) else { return false };
        let mut watched = lock(&self.watched);
        let Some(watched) = watched.iter_mut().find(|watched| watched.pool.name() == pool) else { return false };
        if watched.law != law {
            (watched.law, watched.controller) = (law, controller);
        }
        true
    }

    /// The thread-pool manager, for threads that are no pool.
    pub fn manager(&self) -> &Arc<ThreadPoolManager> {
        &self.manager
    }

    /// The machine's limits for a pool here.
    pub fn limits(&self) -> PoolLimits {
        self.config.limits
    }

    /// Statistics of the pools; may be read from any thread at any time.
    pub fn snapshot(&self) -> Snapshot {
        let of = |watched: &Watched| PoolSnapshot {
            name: watched.pool.name().to_owned(),
            law: watched.law,
            threads: watched.threads,
            totals: watched.totals,
            gauge: watched.gauge,
            age: clock::now().since(watched.looked_at),
            history: watched.observer.history(),
            shortage: watched.shortage.clone(),
        };
        let group = |group: ThreadGroup| GroupSnapshot {
            group,
            threads: self.manager.running(group),
            nice: self.config.priorities.of(group),
        };
        let groups = ThreadGroup::ALL.map(group).to_vec();
        let pools = lock(&self.watched).iter().map(of).collect();
        Snapshot { pools, refusals: self.manager.refusals(), groups }
    }
}

impl Watched {
    /// Observes, lets the law decide and acts upon it.
    fn turn(&mut self) {
        let now = clock::now();
        let (totals, gauge) = self.pool.read(now);
        let observation = self.observer.observe(now, &totals, &gauge);
        let decision: Decision = self.controller.handle_observation(&observation);
        self.observer.handle_decision(decision);
        self.shortage = self.pool.set_threads(decision.threads).err().map(|error| error.to_string());
        self.pool.set_forecast(&observation, decision);
        (self.totals, self.gauge, self.looked_at) = (totals, gauge, now);
        self.threads = decision.threads;
    }
}

impl Drop for Scheduler {
    /// Lets the threads finish waiting jobs; does not wait for handlers that are still at work.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(profile) = self.profile.take() {
            profile.thread().unpark();
            let _ = profile.join();
        }
        lock(&self.watched).iter().for_each(|watched| watched.pool.finish());
    }
}

fn lock(watched: &Mutex<Vec<Watched>>) -> MutexGuard<'_, Vec<Watched>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

const PERIOD_MIN: Duration = Duration::from_millis(10);
