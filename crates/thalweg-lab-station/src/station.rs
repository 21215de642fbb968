//! A process of a run: its endpoints in threads of their own, the controller's commands, its report.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use thalweg_host::{ProcessUsage, monotonic_nanos, pin_to_cpu};

use crate::fault::Fault;
use crate::link::{Output, ParentPipe, Stop, lock, serve};
use crate::middleware::Middleware;
use crate::onward;
use crate::order::{Order, StationCommand, Word, WorkerReport};
use crate::publisher::{self, Published};
use crate::records::not_written;
use crate::so_far::{SoFar, Tally};
use crate::subscriber::{self, Drained};

/// Takes an order from standard input, makes this process's part of the run and answers on `output`; returns the process's exit code.
///
/// `adapt` puts the setup into terms of the middleware, or says why it cannot be.
pub fn serve_station<M: Middleware>(
    output: Output,
    adapt: impl FnOnce(&mut M::Setup) -> Result<(), Fault>,
) -> ExitCode {
    serve(output, |mut order: Order<M::Setup>, link: &ParentPipe| {
        adapt(&mut order.setup)?;
        work::<M, M>(&order, link)
    })
}

/// Makes one run's part of this process; `N` is the middleware with the samples that it publishes for those of `M` that it takes.
///
/// # Errors
/// An endpoint cannot go on, or the controller is gone.
pub fn work<M: Middleware, N: Middleware<Setup = M::Setup>>(
    order: &Order<M::Setup>,
    link: &ParentPipe,
) -> Result<WorkerReport, Fault> {
    let folders = [Some(&order.folder), order.onward.as_ref().map(|onward| &onward.order.folder)];
    for folder in folders.into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
    }
    let course = Course::new(link.stop().clone());
    std::thread::scope(|scope| {
        let (told, matched) = channel();
        let publishers: Vec<_> = order
            .publishers
            .iter()
            .map(|place| {
                let (told, course) = (told.clone(), &course);
                scope.spawn(move || tell_failure(&told, publisher::run::<M>(order, place, course, || matches(&told))))
            })
            .collect();
        let (take, taken) = channel();
        let take = order.onward.as_ref().map(|_| take);
        let subscribers: Vec<_> = order
            .subscribers
            .iter()
            .map(|place| {
                let (told, course, take) = (told.clone(), &course, take.clone());
                scope.spawn(move || {
                    tell_failure(&told, subscriber::run::<M>(order, place, course, (take, || matches(&told))))
                })
            })
            .collect();
        drop(take);
        let writers = order.subscribers.first().map_or(0, |place| place.writers.len());
        let onward = order.onward.as_deref().map(|onward| {
            let (told, course) = (told.clone(), &course);
            scope.spawn(move || {
                tell_failure(&told, onward::run::<N>(onward, (taken, writers), course, || matches(&told)))
            })
        });
        drop(told);
        let threads = Threads { publishers, subscribers, onward: onward.into_iter().collect() };
        let report = conduct::<M, N>(order, link, &course, &matched, threads);
        // Threads that still wait for something end with the first one that failed.
        if report.is_err() {
            course.stop.request();
        }
        report
    })
}

fn conduct<'scope, M: Middleware, N: Middleware<Setup = M::Setup>>(
    order: &Order<M::Setup>,
    link: &ParentPipe,
    course: &Course,
    matched: &Receiver<bool>,
    threads: Threads<'scope, M, N>,
) -> Result<WorkerReport, Fault> {
    let Threads { publishers, subscribers, onward } = threads;
    if !all_matched(course, matched, publishers.len() + subscribers.len() + onward.len()) {
        course.stop.request();
        // One of the threads knows why; the others were only interrupted.
        let failed = [join_all(publishers).err(), join_all(subscribers).err(), join_all(onward).err()];
        let mut failed = failed.into_iter().flatten();
        let reason = failed.find(|error| !matches!(error, Fault::Interrupted));
        return Err(reason.unwrap_or(Fault::Interrupted));
    }
    link.progress(&Word::Matched)?;
    let origin_ns = match link.next()? {
        Some(StationCommand::Start { origin_ns }) => origin_ns,
        _ => return Err(Fault::Interrupted),
    };
    course.start(origin_ns);
    let timetable = &order.timetable;
    sleep_until(origin_ns + timetable.start_ns(), &course.stop)?;
    M::begin_measurement(&order.setup);
    let before = ProcessUsage::read();
    measure(order, course, origin_ns)?;
    let usage = ProcessUsage::read().since(&before);
    let published = join_all(publishers)?;
    link.progress(&Word::Published(published.iter().map(|one| one.report.clone()).collect()))?;
    match link.next()? {
        Some(StationCommand::Drain { written }) => lock(&course.state).drain = Some((monotonic_nanos(), written)),
        _ => return Err(Fault::Interrupted),
    }
    let drained = join_all(subscribers)?;
    link.progress(&Word::Drained)?;
    let onward = join_all(onward)?;
    if order.onward.is_some() {
        link.progress(&Word::Published(onward.iter().map(|one| one.report.clone()).collect()))?;
    }
    // Publishers live until the last subscriber of any process needs no repair.
    let Some(StationCommand::Finish) = link.next()? else { return Err(Fault::Interrupted) };
    SoFar::remove(&order.folder, &order.process_name());
    M::end_measurement(&order.setup, &order.folder, &order.process_name(), origin_ns)?;
    for one in &published {
        one.records.write(&order.folder, one.report.index)?;
    }
    for (one, onward) in onward.iter().zip(&order.onward) {
        SoFar::remove(&onward.order.folder, &onward.order.process_name());
        one.records.write(&onward.order.folder, one.report.index)?;
    }
    for one in &drained {
        one.records.write(&order.folder, one.report.index)?;
    }
    Ok(WorkerReport { subscribers: drained.into_iter().map(|one| one.report).collect(), usage })
}

/// Waits until the last measured sample was due, and tells once a second how far the endpoints are.
fn measure<Setup>(order: &Order<Setup>, course: &Course, origin_ns: u64) -> Result<(), Fault> {
    let end = origin_ns + order.timetable.end_ns();
    let mut next = origin_ns + order.timetable.start_ns();
    while next < end {
        next = (next + TELL_PERIOD_NS).min(end);
        sleep_until(next, &course.stop)?;
        so_far(&course.tallies).write(&order.folder, &order.process_name())?;
        if let Some(onward) = &order.onward {
            so_far(&course.tallies_onward).write(&onward.order.folder, &onward.order.process_name())?;
        }
    }
    Ok(())
}

/// Whether so many endpoints reported that they are matched; `false` as soon as one of them ended without it.
fn all_matched(course: &Course, matched: &Receiver<bool>, count: usize) -> bool {
    let mut found = 0;
    while found < count && !course.stop.is_requested() {
        match matched.recv_timeout(LOOK_PERIOD) {
            Ok(true) => found += 1,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(false) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    found == count
}

fn matches(told: &Sender<bool>) {
    // The receiver is gone only when another endpoint has failed.
    let _ = told.send(true);
}

fn tell_failure<T>(told: &Sender<bool>, result: Result<T, Fault>) -> Result<T, Fault> {
    if result.is_err() {
        let _ = told.send(false);
    }
    result
}

/// Results of all threads, or the error of the one that failed first.
fn join_all<T>(threads: Vec<ScopedJoinHandle<'_, Result<T, Fault>>>) -> Result<Vec<T>, Fault> {
    let join = |thread: ScopedJoinHandle<'_, Result<T, Fault>>| {
        thread.join().unwrap_or_else(|_| Err(Fault::Here("the thread of an endpoint failed".to_owned())))
    };
    let mut results = Vec::with_capacity(threads.len());
    let mut failure = None;
    for result in threads.into_iter().map(join) {
        match (result, &failure) {
            (Ok(result), _) => results.push(result),
            (Err(error), None | Some(Fault::Interrupted)) => failure = Some(error),
            (Err(_), Some(_)) => {}
        }
    }
    failure.map_or(Ok(results), Err)
}

pub(crate) fn sleep_until(at_ns: u64, stop: &Stop) -> Result<(), Fault> {
    loop {
        if stop.is_requested() {
            return Err(Fault::Interrupted);
        }
        match at_ns.saturating_sub(monotonic_nanos()) {
            0 => return Ok(()),
            left => std::thread::sleep(Duration::from_nanos(left).min(LOOK_PERIOD)),
        }
    }
}

/// Messages of the controller for the endpoints of a process.
pub(crate) struct Course {
    stop: Stop,
    state: Mutex<State>,
    /// One for each endpoint that has its partners.
    tallies: Tallies,
    /// Of the publisher that publishes for the samples that the process takes.
    tallies_onward: Tallies,
}

type Tallies = Mutex<Vec<Arc<Tally>>>;

/// The threads of the endpoints.
struct Threads<'scope, M: Middleware, N: Middleware> {
    publishers: Vec<ScopedJoinHandle<'scope, Result<Published<M>, Fault>>>,
    subscribers: Vec<ScopedJoinHandle<'scope, Result<Drained, Fault>>>,
    onward: Vec<ScopedJoinHandle<'scope, Result<Published<N>, Fault>>>,
}

#[derive(Default)]
struct State {
    origin_ns: Option<u64>,
    /// The time since which subscribers wait for the rest, and the numbers of samples written.
    drain: Option<(u64, Vec<u64>)>,
}

impl Course {
    pub(crate) fn new(stop: Stop) -> Course {
        Course { stop, state: Mutex::default(), tallies: Mutex::default(), tallies_onward: Mutex::default() }
    }

    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The time zero of the schedule.
    pub(crate) fn wait_for_start(&self) -> Result<u64, Fault> {
        loop {
            if let Some(origin_ns) = lock(&self.state).origin_ns {
                return Ok(origin_ns);
            }
            if self.stop.is_requested() {
                return Err(Fault::Interrupted);
            }
            std::thread::sleep(START_LOOK_PERIOD);
        }
    }

    /// Counters of an endpoint.
    pub(crate) fn tally(&self) -> Arc<Tally> {
        tally_in(&self.tallies)
    }

    /// Counters of the publisher that publishes for the samples that the process takes.
    pub(crate) fn tally_onward(&self) -> Arc<Tally> {
        tally_in(&self.tallies_onward)
    }

    /// The time zero of the schedule is known.
    pub(crate) fn start(&self, origin_ns: u64) {
        for tallies in [&self.tallies, &self.tallies_onward] {
            lock(tallies).iter().for_each(|tally| tally.begin(origin_ns));
        }
        lock(&self.state).origin_ns = Some(origin_ns);
    }

    pub(crate) fn drain(&self) -> Option<(u64, Vec<u64>)> {
        lock(&self.state).drain.clone()
    }
}

fn tally_in(tallies: &Tallies) -> Arc<Tally> {
    let tally = Arc::new(Tally::new());
    lock(tallies).push(Arc::clone(&tally));
    tally
}

fn so_far(tallies: &Tallies) -> SoFar {
    SoFar::of(lock(tallies).iter().map(Arc::as_ref))
}

/// Binds this thread to the CPU that the order names.
pub(crate) fn pin(cpu: Option<usize>) -> Result<(), Fault> {
    let Some(cpu) = cpu else { return Ok(()) };
    pin_to_cpu(cpu).map_err(|error| Fault::Here(format!("CPU {cpu} cannot be used: {error}")))
}

/// Waits until `condition` holds, at most `patience`, looking again every two milliseconds; returns whether it held.
///
/// # Errors
/// `stop` was requested.
pub fn wait_until(patience: Duration, stop: &Stop, mut condition: impl FnMut() -> bool) -> Result<bool, Fault> {
    let started = Instant::now();
    loop {
        if condition() {
            return Ok(true);
        }
        if stop.is_requested() {
            return Err(Fault::Interrupted);
        }
        if started.elapsed() >= patience {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The next thing that comes, where one does before `until`.
///
/// # Errors
/// `stop` was requested, or nothing can come any more.
pub(crate) fn receive<T>(from: &Receiver<T>, until: Instant, stop: &Stop) -> Result<Option<T>, Fault> {
    loop {
        if stop.is_requested() {
            return Err(Fault::Interrupted);
        }
        let left = until.saturating_duration_since(Instant::now());
        match from.recv_timeout(left.min(LOOK_PERIOD)) {
            Ok(found) => return Ok(Some(found)),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Fault::here("a reader of this process ended")),
        }
    }
}

/// Between two words about how far the endpoints are.
const TELL_PERIOD_NS: u64 = 1_000_000_000;
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Much shorter than the time between the order to start and the first sample.
const START_LOOK_PERIOD: Duration = Duration::from_millis(5);
