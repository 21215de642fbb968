//! A subscriber: notes when each sample arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::order::{Placement, SubscriberReport, TrialOrder};
use super::publisher::{MATCH_PATIENCE, parts};
use super::records::Received;
use super::timetable::Timetable;
use super::worker::Course;
use crate::error::LabError;
use crate::host::{monotonic_nanos, pin_to_cpu};
use crate::perf::Arrivals;
use crate::scenario::Reliability;
use crate::station::{Arrival, Flow, Handler, Station, wait_until};

/// What a subscriber saw.
pub(super) struct Drained {
    pub(super) report: SubscriberReport,
    pub(super) samples: Vec<Received>,
}

/// Joins, finds its writers, tells so by `matched`, and notes what arrives until everything did or nothing more comes.
pub(super) fn run(
    order: &TrialOrder,
    placement: Placement,
    course: &Course,
    matched: impl FnOnce(),
) -> Result<Drained, LabError> {
    if let Some(cpu) = placement.cpu {
        pin_to_cpu(cpu).map_err(|error| LabError::Here(format!("CPU {cpu} cannot be used: {error}")))?;
    }
    let station = Station::open(&order.network, order.wait)?;
    let receiver = station.subscription(&order.topic(placement.index), order.cell.load, &order.qos)?;
    let writers: Vec<u32> =
        order.cell.pairs().filter(|(_, reader)| *reader == placement.index).map(|(writer, _)| writer).collect();
    if !wait_until(MATCH_PATIENCE, course.stop(), || receiver.matched() >= writers.len())? {
        let (index, found, all) = (placement.index, receiver.matched(), writers.len());
        return Err(LabError::Here(format!("subscriber {index} found {found} of {all} publishers within 30 s")));
    }
    let numbers = Timetable::new(&order.cell, &order.schedule).measured().end;
    let progress = Arc::new(Progress::default());
    let note = Note::new(order.cell.publishers, numbers, writers.len() as u64, Arc::clone(&progress));
    matched();
    let over = || course.stop().is_requested() || is_over(course, &writers, &progress, order.schedule.drain);
    let (note, _) = receiver.run(order.wait, Duration::MAX, &over, note)?;
    if course.stop().is_requested() {
        return Err(LabError::Interrupted);
    }
    let origin_ns = course.wait_for_start()?;
    let rejected = if order.qos.reliability == Reliability::BestEffort { receiver.rejected() } else { 0 };
    let (index, overwritten) = (placement.index, receiver.overwritten());
    let report = SubscriberReport { index, overwritten, rejected, unkept: note.unkept };
    Ok(Drained { report, samples: note.finish(origin_ns) })
}

/// Whether everything that was written arrived, or nothing came for a while after the last publisher was through.
fn is_over(course: &Course, writers: &[u32], progress: &Progress, drain: Duration) -> bool {
    let Some((since_ns, written)) = course.drain() else { return false };
    let expected: u64 = writers.iter().filter_map(|writer| written.get(*writer as usize)).sum();
    let now = monotonic_nanos();
    let heard = progress.last_ns.load(Ordering::Relaxed).max(since_ns);
    progress.different.load(Ordering::Relaxed) >= expected
        || now.saturating_sub(heard) >= drain.as_nanos() as u64
        || now.saturating_sub(since_ns) >= DRAIN_MAX.as_nanos() as u64
}

/// How far a subscriber is, for the thread that waits for its end.
#[derive(Default)]
struct Progress {
    different: AtomicU64,
    last_ns: AtomicU64,
}

/// Notes each arrival.
struct Note {
    samples: Vec<(u64, u64, u64)>,
    room: usize,
    unkept: u64,
    /// By number of the publisher.
    arrivals: Vec<Arrivals>,
    different: u64,
    numbers: u64,
    progress: Arc<Progress>,
}

impl Note {
    fn new(publishers: u32, numbers: u64, writers: u64, progress: Arc<Progress>) -> Note {
        // Twice what can arrive leaves room for duplicates; memory is taken only as far as it is used.
        let room = (2 * numbers * writers + 1_024) as usize;
        Note {
            samples: Vec::with_capacity(room),
            room,
            unkept: 0,
            arrivals: vec![Arrivals::with_room_for(numbers); publishers as usize],
            different: 0,
            numbers,
            progress,
        }
    }

    fn finish(self, origin_ns: u64) -> Vec<Received> {
        let received = |(id, written, received): &(u64, u64, u64)| {
            let (writer, number) = parts(*id);
            Received {
                writer,
                number,
                written_ns: written.saturating_sub(origin_ns),
                received_ns: received.saturating_sub(origin_ns),
            }
        };
        self.samples.iter().map(received).collect()
    }
}

impl Handler for Note {
    fn handle(&mut self, arrival: Arrival<'_>) -> Result<Flow, LabError> {
        let now = monotonic_nanos();
        let (writer, number) = parts(arrival.number);
        let written = arrival.payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let Some(arrivals) = self.arrivals.get_mut(writer as usize).filter(|_| number < self.numbers) else {
            return Err(LabError::Here(format!(
                "sample {number} of publisher {writer} arrived, which was never written; please report this"
            )));
        };
        let before = arrivals.received();
        arrivals.note(number);
        self.different += arrivals.received() - before;
        if self.samples.len() < self.room {
            self.samples.push((arrival.number, written, now));
        } else {
            self.unkept += 1;
        }
        Ok(Flow::Continue)
    }

    fn handled_some(&mut self) {
        self.progress.different.store(self.different, Ordering::Relaxed);
        self.progress.last_ns.store(monotonic_nanos(), Ordering::Relaxed);
    }
}

/// A subscriber that still gets samples after this time is cut off: the backlog is larger than any grace.
const DRAIN_MAX: Duration = Duration::from_secs(60);
