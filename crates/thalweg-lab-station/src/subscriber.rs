//! A subscriber: notes when each sample arrived.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_host::monotonic_nanos;

use crate::channel::ProcessEnd;
use crate::fault::Fault;
use crate::middleware::{ArrivedSample, Middleware, SampleReader, SampleSink};
use crate::note::{Note, Progress};
use crate::order::{Order, ReliabilitySetting, SubscriberPlace, SubscriberReport};
use crate::records::ReceivedSample;
use crate::station::{Course, pin, wait_until};

/// Arrivals of a subscriber.
pub(crate) struct Drained {
    pub(crate) report: SubscriberReport,
    pub(crate) samples: Vec<ReceivedSample>,
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
    let reader = |topic: &String| middleware.reader(&order.channel(topic), DeskSink::<M>(desk.clone(), PhantomData));
    let readers = place.topics.iter().map(reader).collect::<Result<Vec<_>, _>>()?;
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
    desk.lock().note = Some(note);
    matched();
    let note =
        desk.wait(&|| course.stop().is_requested() || is_over(course, &place.writers, &progress, order.pace.drain))?;
    if course.stop().is_requested() {
        return Err(Fault::Interrupted);
    }
    let origin_ns = course.wait_for_start()?;
    let sum = |of: fn(&M::Reader) -> u64| readers.iter().map(of).sum();
    // A reliable reader that has no room is sent the sample again.
    let rejected =
        if order.qos.reliability == ReliabilitySetting::BestEffort { sum(SampleReader::rejected) } else { 0 };
    let (overwritten, unkept) = (sum(SampleReader::overwritten), note.unkept());
    let report = SubscriberReport { index: place.index, overwritten, rejected, unkept };
    Ok(Drained { report, samples: note.finish(origin_ns) })
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
    fn lock(&self) -> MutexGuard<'_, DeskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the note once `over` holds.
    fn wait(&self, over: &dyn Fn() -> bool) -> Result<Note, Fault> {
        while !over() {
            std::thread::sleep(DESK_PERIOD);
            let mut state = self.lock();
            if let Some(fault) = state.fault.take() {
                return Err(fault);
            }
            // Not every middleware says that nothing more is there.
            if let Some(note) = &state.note {
                note.handled_some();
            }
        }
        self.lock().note.take().ok_or_else(|| Fault::Here("a subscriber was waited for twice".to_owned()))
    }
}

struct DeskSink<M>(Desk, PhantomData<fn(M)>);

impl<M: Middleware> SampleSink<M> for DeskSink<M> {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let mut state = self.0.lock();
        let Some(note) = state.note.as_mut() else { return };
        let noted = match arrival.time_ns() {
            Some(time) => note.handle(time, arrival.number()),
            None => Err(Fault::Here("a sample arrived that no schedule of this version sends".to_owned())),
        };
        if let Err(fault) = noted {
            state.fault = Some(fault);
        }
    }

    fn taken(&mut self) {
        if let Some(note) = &self.0.lock().note {
            note.handled_some();
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.0.lock().fault = Some(fault);
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
