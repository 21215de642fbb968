//! When samples pass the layers of this library, on both sides: for finding out where the time goes.
//!
//! [`start`] switches it on for the whole process, for every n-th sample of each writer; as all participants choose the same samples and
//! all processes of a host read the same clock, what both sides tell fits together. Off, a point costs one branch.
//!
//! ```
//! use std::num::NonZeroU32;
//!
//! thalweg::trace::start(NonZeroU32::new(100).expect("not zero"));
//! // … write and take …
//! thalweg::trace::stop();
//! for passage in thalweg::trace::take() {
//!     println!("{} {} {:?}", passage.point.name(), passage.sequence.0, passage.at);
//! }
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_rtps::history::TakenSample;
use thalweg_rtps::time::Instant;
pub use thalweg_rtps::trace::Point;
use thalweg_rtps::trace::{self, Mark, Passage as Place};
use thalweg_rtps::types::{Guid, SequenceNumber};
use thalweg_transport::{clock, probes};

/// A sample passed a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Passage {
    /// Which point.
    pub point: Point,
    /// The writer of the sample.
    pub writer: Guid,
    /// The reader; unknown up to [`Point::SendExit`].
    pub reader: Guid,
    /// Its number.
    pub sequence: SequenceNumber,
    /// When.
    pub at: Instant,
    /// Which thread, counted from 1 in the order in which threads were first traced.
    pub thread: u32,
}

/// Traces every `every`-th sample of each writer from now on, in all threads of the process. Each thread keeps the last 65,536 passages.
pub fn start(every: NonZeroU32) {
    EVERY.store(every.get(), Ordering::Relaxed);
    trace::start(note);
}

/// Stops tracing; recorded passages stay.
pub fn stop() {
    trace::stop();
}

/// Removes and returns the passages since the last call, in the order of time.
pub fn take() -> Vec<Passage> {
    let rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut out: Vec<Passage> = Vec::new();
    rings.iter().for_each(|ring| out.extend(ring.lock().unwrap_or_else(PoisonError::into_inner).drain(..)));
    out.sort_by_key(|passage| passage.at);
    out
}

/// `write` was called.
#[inline]
pub(crate) fn write_enter() {
    if trace::is_on() {
        with(|tracer| tracer.entered = Some(clock::now()));
    }
}

/// The sample of this thread's write is serialized.
#[inline]
pub(crate) fn serialized() {
    if trace::is_on() {
        with(|tracer| tracer.serialized = Some(clock::now()));
    }
}

/// The sample of this thread's write is in the history.
#[inline]
pub(crate) fn stored(writer: Guid, sequence: SequenceNumber) {
    if trace::is_on() {
        with(|tracer| tracer.store(writer, sequence));
    }
}

/// This thread sends for a writer.
#[inline]
pub(crate) fn token_granted() {
    if trace::is_on() {
        note(Mark::Granted);
    }
}

/// Lets `send` hand this thread's datagrams to the kernel.
#[inline]
pub(crate) fn sending<R>(send: impl FnOnce() -> R) -> R {
    if !trace::is_on() {
        return send();
    }
    with(|tracer| tracer.sends(Point::SendEnter));
    let sent = send();
    with(|tracer| {
        tracer.sends(Point::SendExit);
        tracer.packed.clear();
        tracer.granted = None;
    });
    sent
}

/// Datagrams were received.
#[inline]
pub(crate) fn received() {
    if trace::is_on() {
        with(|tracer| tracer.received = Some(clock::now()));
    }
}

/// Listeners and waiting threads of `reader` are about to be told.
#[inline]
pub(crate) fn notified(reader: Guid) {
    if trace::is_on() {
        with(|tracer| tracer.notify(reader));
    }
}

/// The application takes samples of `reader`.
#[inline]
pub(crate) fn taken(reader: Guid, samples: &[TakenSample]) {
    if trace::is_on() {
        let now = clock::now();
        let chosen = samples.iter().map(|sample| &sample.info).filter(|info| is_chosen(info.sequence));
        with(|tracer| chosen.for_each(|info| tracer.push(Point::Taken, info.writer, reader, info.sequence, now)));
    }
}

/// A thread's state of the samples that it works on.
struct Tracer {
    ring: Arc<Mutex<VecDeque<Passage>>>,
    thread: u32,
    entered: Option<Instant>,
    serialized: Option<Instant>,
    granted: Option<Instant>,
    /// Chosen samples in the datagrams that are sent next.
    packed: Vec<(Guid, SequenceNumber)>,
    received: Option<Instant>,
    parsed: Option<Instant>,
    /// Chosen samples that were not told to any listener yet.
    cached: Vec<Place>,
}

impl Tracer {
    fn new() -> Tracer {
        let ring = Arc::new(Mutex::new(VecDeque::new()));
        let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
        // Rings of threads that ended are of no use once they are empty.
        rings.retain(|ring| {
            Arc::strong_count(ring) > 1 || !ring.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
        });
        rings.push(Arc::clone(&ring));
        Tracer {
            ring,
            thread: THREADS.fetch_add(1, Ordering::Relaxed) + 1,
            entered: None,
            serialized: None,
            granted: None,
            packed: Vec::new(),
            received: None,
            parsed: None,
            cached: Vec::new(),
        }
    }

    fn push(&mut self, point: Point, writer: Guid, reader: Guid, sequence: SequenceNumber, at: Instant) {
        probes::fire(point, u32::from_be_bytes(writer.entity.0), sequence.0);
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.len() == PASSAGES_MAX {
            ring.pop_front();
        }
        ring.push_back(Passage { point, writer, reader, sequence, at, thread: self.thread });
    }

    fn store(&mut self, writer: Guid, sequence: SequenceNumber) {
        let (entered, serialized) = (self.entered.take(), self.serialized.take());
        if !is_chosen(sequence) {
            return;
        }
        let before =
            [(Point::WriteEnter, entered), (Point::Serialized, serialized), (Point::Stored, Some(clock::now()))];
        for (point, at) in before {
            if let Some(at) = at {
                self.push(point, writer, Guid::UNKNOWN, sequence, at);
            }
        }
    }

    fn note(&mut self, mark: Mark) {
        match mark {
            Mark::Granted => self.granted = Some(clock::now()),
            Mark::Packed { writer, first, end } => self.pack(writer, first, end),
            Mark::Parsed => self.parsed = Some(clock::now()),
            Mark::Reassembled(place) => self.pass(Point::Reassembled, place),
            Mark::Ordered(place) => {
                if is_chosen(place.sequence) {
                    let Place { writer, reader, sequence } = place;
                    for (point, at) in [(Point::Received, self.received), (Point::Parsed, self.parsed)] {
                        if let Some(at) = at {
                            self.push(point, writer, reader, sequence, at);
                        }
                    }
                    self.pass(Point::Ordered, place);
                }
            }
            Mark::Cached(place) => {
                self.pass(Point::Cached, place);
                if is_chosen(place.sequence) && self.cached.len() < PASSAGES_MAX {
                    self.cached.push(place);
                }
            }
        }
    }

    fn pass(&mut self, point: Point, place: Place) {
        if is_chosen(place.sequence) {
            self.push(point, place.writer, place.reader, place.sequence, clock::now());
        }
    }

    /// Remembers the chosen samples from `first` to before `end`.
    fn pack(&mut self, writer: Guid, first: SequenceNumber, end: SequenceNumber) {
        if writer.entity.is_builtin() {
            return;
        }
        let every = i64::from(EVERY.load(Ordering::Relaxed).max(1));
        let now = clock::now();
        let first = first.0.max(1);
        let mut next = first + (every - first.rem_euclid(every)) % every;
        while next < end.0 {
            let sequence = SequenceNumber(next);
            if let Some(granted) = self.granted {
                self.push(Point::TokenGranted, writer, Guid::UNKNOWN, sequence, granted);
            }
            self.push(Point::Packed, writer, Guid::UNKNOWN, sequence, now);
            self.packed.push((writer, sequence));
            next += every;
        }
    }

    fn sends(&mut self, point: Point) {
        let now = clock::now();
        for index in 0..self.packed.len() {
            let (writer, sequence) = self.packed[index];
            self.push(point, writer, Guid::UNKNOWN, sequence, now);
        }
    }

    fn notify(&mut self, reader: Guid) {
        let now = clock::now();
        for place in std::mem::take(&mut self.cached) {
            if place.reader == reader {
                self.push(Point::Notified, place.writer, reader, place.sequence, now);
            } else {
                self.cached.push(place);
            }
        }
    }
}

fn note(mark: Mark) {
    with(|tracer| tracer.note(mark));
}

/// Lets `work` use this thread's tracer; a thread that is ending has none any more.
fn with(work: impl FnOnce(&mut Tracer)) {
    let _ = TRACER.try_with(|tracer| {
        // A type's `Encode` may itself write samples; these writes are not traced.
        if let Ok(mut tracer) = tracer.try_borrow_mut() {
            work(tracer.get_or_insert_with(Tracer::new));
        }
    });
}

fn is_chosen(sequence: SequenceNumber) -> bool {
    // The news of a lost writer has no sample number.
    sequence.0 > 0 && sequence.0 % i64::from(EVERY.load(Ordering::Relaxed).max(1)) == 0
}

thread_local! {
    static TRACER: RefCell<Option<Tracer>> = const { RefCell::new(None) };
}

static EVERY: AtomicU32 = AtomicU32::new(1);
static THREADS: AtomicU32 = AtomicU32::new(0);
static RINGS: Mutex<Vec<Arc<Mutex<VecDeque<Passage>>>>> = Mutex::new(Vec::new());
/// Passages that a thread keeps: 5 MiB, and the busiest thread passes six points a sample.
const PASSAGES_MAX: usize = 65_536;
