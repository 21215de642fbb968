//! A subscriber: notes when each sample arrived.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_host::monotonic_nanos;

use crate::channel::ProcessEnd;
use crate::closed_loop::Answerer;
use crate::executor::Executor;
use crate::fault::Fault;
use crate::link::lock;
use crate::middleware::{ArrivedSample, Middleware, SampleReader, SampleSink};
use crate::note::{Note, Progress, SubscriberRecords};
use crate::order::{Order, ReliabilitySetting, SubscriberPlace, SubscriberReport};
use crate::station::{Course, pin, wait_until};

/// Arrivals of a subscriber.
pub(crate) struct Drained {
    pub(crate) report: SubscriberReport,
    pub(crate) records: SubscriberRecords,
}

/// Joins, finds its writers, tells so by `matched`, and notes what arrives until everything did or nothing more comes.
pub(crate) fn run<M: Middleware>(
    order: &Order<M::Setup>,
    place: &SubscriberPlace,
    course: &Course,
    (onward, matched): (Option<Sender<(u32, u64)>>, impl FnOnce()),
) -> Result<Drained, Fault> {
    pin(place.cpu)?;
    let desk = Desk::default();
    let middleware = M::open(&order.setup, &ProcessEnd::Subscriber(place.writers.clone()))?;
    let answerer = |closed| Answerer::open(&middleware, (order, closed), place.index, course);
    let mut answerer = order.closed_loop.map(answerer).transpose()?;
    let executor =
        order.executor.map(|setting| Arc::new(Executor::new(setting, order.qos.history, place.topics.len())));
    let reader = |(index, topic): (usize, &String)| {
        let executor = executor.clone().map(|executor| (executor, index));
        let sink = DeskSink::<M> { desk: desk.clone(), executor, answerer: answerer.take() };
        middleware.reader(&order.channel(topic), sink)
    };
    let readers = place.topics.iter().enumerate().map(reader).collect::<Result<Vec<_>, _>>()?;
    let found = || readers.iter().map(SampleReader::matched).sum::<usize>();
    let writers = place.writers.len();
    if !wait_until(order.pace.matching, course.stop(), || found() >= writers)? {
        let (index, found, matching) = (place.index, found(), order.pace.matching);
        return Err(Fault::Here(format!(
            "subscriber {index} found {found} of {writers} publishers within {matching:?}"
        )));
    }
    let progress = Arc::new(Progress::default());
    let note = Note::new(order, writers as u64, (Arc::clone(&progress), course.tally()), onward);
    lock(&desk.0).note = Some(note);
    matched();
    let is_over = || course.stop().is_requested() || is_over(course, &place.writers, &progress, order.pace.drain);
    let note = match &executor {
        Some(executor) => executor.serve(&|time_ns, id| _ = desk.note(time_ns, id), || desk.wait(&is_over))?,
        None => desk.wait(&is_over)?,
    };
    if course.stop().is_requested() {
        return Err(Fault::Interrupted);
    }
    let origin_ns = course.wait_for_start()?;
    let sum = |of: fn(&M::Reader) -> u64| readers.iter().map(of).sum();
    // A reliable reader that has no room is sent the sample again.
    let rejected =
        if order.qos.reliability == ReliabilitySetting::BestEffort { sum(SampleReader::rejected) } else { 0 };
    let waited_in_vain = executor.as_ref().map_or(0, |executor| executor.overwritten());
    let (overwritten, unkept) = (sum(SampleReader::overwritten) + waited_in_vain, note.unkept());
    let report = SubscriberReport { index: place.index, overwritten, rejected, unkept };
    Ok(Drained { report, records: note.finish(origin_ns) })
}

/// Where the samples of all readers of a subscriber arrive, one at a time.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<DeskState>>);

#[derive(Default)]
struct DeskState {
    /// There while the subscriber runs.
    note: Option<Note>,
    fault: Option<Fault>,
}

impl Desk {
    /// Notes a sample; `false` where the subscriber does not run.
    fn note(&self, time_ns: u64, id: u64) -> bool {
        let mut state = lock(&self.0);
        let Some(note) = state.note.as_mut() else { return false };
        if let Err(fault) = note.handle(time_ns, id) {
            state.fault = Some(fault);
        }
        true
    }

    /// Returns the note once `over` holds.
    fn wait(&self, over: &dyn Fn() -> bool) -> Result<Note, Fault> {
        while !over() {
            std::thread::sleep(DESK_PERIOD);
            let mut state = lock(&self.0);
            if let Some(fault) = state.fault.take() {
                return Err(fault);
            }
            // Not every middleware says that nothing more is there.
            if let Some(note) = &state.note {
                note.handled_some();
            }
        }
        lock(&self.0).note.take().ok_or_else(|| Fault::Here("a subscriber was waited for twice".to_owned()))
    }
}

struct DeskSink<M: Middleware> {
    desk: Desk,
    /// Whose threads handle the samples, and the place of the topic among those of the subscriber.
    executor: Option<(Arc<Executor>, usize)>,
    /// In a closed loop.
    answerer: Option<Answerer<M>>,
}

impl<M: Middleware> DeskSink<M> {
    fn handle(&mut self, arrival: M::Arrival<'_>) -> Result<(), Fault> {
        let time = arrival.time_ns();
        let time = time.ok_or_else(|| Fault::here("a sample arrived that no schedule of this version sends"))?;
        let is_noted = match &self.executor {
            Some((executor, topic)) => {
                executor.put(*topic, time, arrival.number());
                true
            }
            None => self.desk.note(time, arrival.number()),
        };
        if !is_noted {
            return Ok(());
        }
        self.answerer.as_mut().map_or(Ok(()), |answerer| answerer.handle(arrival))
    }
}

impl<M: Middleware> SampleSink<M> for DeskSink<M> {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        if let Err(fault) = self.handle(arrival) {
            lock(&self.desk.0).fault = Some(fault);
        }
    }

    fn taken(&mut self) {
        if let Some(note) = &lock(&self.desk.0).note {
            note.handled_some();
        }
    }

    fn fail(&mut self, fault: Fault) {
        lock(&self.desk.0).fault = Some(fault);
    }
}

/// Whether all written samples arrived, or none came for a while after the end of the last publisher.
fn is_over(course: &Course, writers: &[u32], progress: &Progress, drain: Duration) -> bool {
    let Some((since_ns, written)) = course.drain() else { return false };
    let expected: u64 = writers.iter().filter_map(|writer| written.get(*writer as usize)).sum();
    let now = monotonic_nanos();
    let heard = progress.last_ns.load(Ordering::Relaxed).max(since_ns);
    progress.different.load(Ordering::Relaxed) >= expected
        || now.saturating_sub(heard) >= drain.as_nanos() as u64
        || now.saturating_sub(since_ns) >= DRAIN_MAX.as_nanos() as u64
}

/// A subscriber that still gets samples after this time is cut off: the backlog is larger than any grace.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// How often the end of a subscriber is looked for.
const DESK_PERIOD: Duration = Duration::from_millis(10);
