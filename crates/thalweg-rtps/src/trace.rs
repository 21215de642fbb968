//! Trace points on a sample's way; while tracing is off, each costs one branch that is always predicted.
//!
//! This crate reads no clock: it tells a sink of the process that a point was passed, and the sink knows what time it is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use thalweg_base::point::Point;

use crate::types::{Guid, SequenceNumber};

/// A point that was passed just now, on the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A flow controller let a writer send.
    Granted,
    /// These samples of a writer, the last one possibly in part, lie in the datagrams that this thread sends next.
    Packed {
        /// Their writer.
        writer: Guid,
        /// The first one.
        first: SequenceNumber,
        /// The one after the last one.
        end: SequenceNumber,
    },
    /// A datagram, or neighbouring ones of a writer, were taken apart; the samples that follow on this thread were in them.
    Parsed,
    /// All fragments of a sample are there.
    Reassembled(Passage),
    /// A sample is the next one that its reader waits for.
    Ordered(Passage),
    /// A sample can be taken.
    Cached(Passage),
}

/// A sample on its way to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its writer.
    pub writer: Guid,
    /// Its reader.
    pub reader: Guid,
    /// Its number.
    pub sequence: SequenceNumber,
}

/// The report of a point while tracing is on.
pub type Sink = fn(Mark);

static IS_ON: AtomicBool = AtomicBool::new(false);
static SINK: OnceLock<Sink> = OnceLock::new();

/// Tells `sink` of every point from now on, in all threads of the process; the first sink stays for good.
pub fn start(sink: Sink) {
    SINK.get_or_init(|| sink);
    IS_ON.store(true, Ordering::Release);
}

/// Stops reporting.
pub fn stop() {
    IS_ON.store(false, Ordering::Release);
}

/// Whether points are reported.
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Reports a point if tracing is on.
#[inline]
pub(crate) fn pass(mark: impl FnOnce() -> Mark) {
    if is_on() {
        tell(mark());
    }
}

#[cold]
fn tell(mark: Mark) {
    if let Some(sink) = SINK.get() {
        sink(mark);
    }
}
