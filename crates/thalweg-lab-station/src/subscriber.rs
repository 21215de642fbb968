//! A subscriber: notes when each sample arrived.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use thalweg_host::monotonic_nanos;

use crate::fault::Fault;
use crate::middleware::Middleware;
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
    let subscription = M::subscription(order, place)?;
    let writers = place.writers.len();
    if !wait_until(order.pace.matching, course.stop(), || subscription.matched() >= writers)? {
        let (index, found, matching) = (place.index, subscription.matched(), order.pace.matching);
        return Err(Fault::Here(format!(
            "subscriber {index} found {found} of {writers} publishers within {matching:?}"
        )));
    }
    let progress = Arc::new(Progress::default());
    let note = Note::new(order, writers as u64, (Arc::clone(&progress), course.tally()), onward);
    matched();
    let over = || course.stop().is_requested() || is_over(course, &place.writers, &progress, order.pace.drain);
    let note = subscription.run(&over, note)?;
    if course.stop().is_requested() {
        return Err(Fault::Interrupted);
    }
    let origin_ns = course.wait_for_start()?;
    // A reliable reader that has no room is sent the sample again.
    let rejected = if order.qos.reliability == ReliabilitySetting::BestEffort { subscription.rejected() } else { 0 };
    let (overwritten, unkept) = (subscription.overwritten(), note.unkept());
    let report = SubscriberReport { index: place.index, overwritten, rejected, unkept };
    Ok(Drained { report, samples: note.finish(origin_ns) })
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
