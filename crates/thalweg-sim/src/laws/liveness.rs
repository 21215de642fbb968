//! Laws of liveness: the time until a world has settled.

use std::time::Duration;

use thalweg_rtps::flow_control::Amount;

use crate::plan::{Ending, Pace, Plan};
use crate::record::Record;

/// Time for whatever is not counted below: the last repairs, each of them repeated a few times.
const SLACK: Duration = Duration::from_secs(10);
/// Bytes a second that pass a path whose round trips do not matter, after all repetitions.
const GOODPUT_MAX: u64 = 100_000;
/// A datagram of the narrowest paths, in bytes and in kernel memory.
const DATAGRAM_BYTES: f64 = 1_280.0;
const DATAGRAM_COST: u32 = 2_560;
/// A question without an answer is repeated after so many round trips.
const PATIENCE_ROUND_TRIPS: f64 = 4.0;
/// Pauses of a rate, for headers, repairs and others on the same lane.
const RATE_SHARE: u64 = 4;

/// Everything is delivered, acknowledged and taken within a bound after the last disturbance and the last write: the patience
/// that a world has beyond it only serves to see what becomes of those that are late.
pub fn settles_within_its_bound(record: &Record) -> Result<(), String> {
    let bound = settling_bound(&record.plan);
    let took = record.settled_at.map(|at| at.since(record.plan.last_activity()));
    match took {
        Some(took) if took > bound => Err(format!("it took {took:?}; the bound is {bound:?}")),
        _ => Ok(()),
    }
}

/// Time for which a world may be busy after all planned events.
pub(crate) fn settling_bound(plan: &Plan) -> Duration {
    SLACK + discovery_time(plan) + transfer_time(plan) + taking_time(plan)
}

/// Peers that vanish are known until their lease ends, and peers that lost each other meet with an announcement, four of which
/// come in each lease and may be lost.
fn discovery_time(plan: &Plan) -> Duration {
    let lease = plan.processes.iter().map(|process| process.lease_duration).max().unwrap_or_default();
    let vanishes = plan.processes.iter().any(|process| matches!(process.ends, Some((_, Ending::Vanishes))));
    let seeks = plan.weather.loss > 0.0 || plan.is_disturbed();
    lease * (u32::from(vanishes) + 2 * u32::from(seeks))
}

/// How long the troubles of a world may keep a writer waiting: all of them in sum, until everybody is found again, and until
/// everything has passed the slowest lane.
pub(super) fn disturbed_time(plan: &Plan) -> Duration {
    if !plan.is_disturbed() && plan.processes.iter().all(|process| process.controller.is_none()) {
        return Duration::ZERO;
    }
    let pauses: Duration = plan.pauses.iter().map(|pause| pause.until.since(pause.from)).sum();
    let moves: Duration = plan.moves.iter().map(|one| one.told_after).sum();
    let intrusions: Duration = plan.intruders.iter().map(|intruder| intruder.until.since(intruder.from)).sum();
    pauses + moves + intrusions + discovery_time(plan) + transfer_time(plan)
}

/// What all samples need to reach all readers, one after the other.
fn transfer_time(plan: &Plan) -> Duration {
    let bytes = |topic: &crate::plan::TopicPlan| {
        let written =
            topic.writers.iter().map(|writer| u64::from(writer.samples) * (writer.payload_bytes as u64 + 100));
        written.sum::<u64>() * topic.readers.len() as u64
    };
    let bytes: u64 = plan.topics.iter().map(bytes).sum();
    let lanes = plan.links.iter().flat_map(|link| [link.outbound, link.inbound]);
    let slowest = lanes.map(|lane| lane.bits_per_second / 8).min().unwrap_or(u64::MAX);
    let controllers = plan.processes.iter().filter_map(|process| process.controller);
    let granted = controllers.filter_map(|settings| match settings.tokens_added_per_period {
        Amount::Limited(bytes) => Some(u64::from(bytes)),
        Amount::Unlimited => None,
    });
    let slowest = slowest.min(granted.min().unwrap_or(u64::MAX));
    let paced = if slowest == u64::MAX { 0 } else { bytes * RATE_SHARE * 1_000 / slowest.max(1) };
    Duration::from_millis(paced + bytes * 1_000 / goodput(plan))
}

/// Bytes a second that pass to the smallest receive buffer after all repetitions. A window of datagrams is on its way at a time, what is
/// lost of it leaves again in the next round, and a round whose question or answer is lost is repeated.
fn goodput(plan: &Plan) -> u64 {
    let weather = &plan.weather;
    let buffer = plan.processes.iter().map(|process| process.receive_buffer_bytes).min().unwrap_or(u32::MAX);
    let datagrams = f64::from((buffer / 3 * 2 / DATAGRAM_COST).max(1));
    let rounds = if weather.loss > 0.0 { 1.0 - datagrams.ln() / weather.loss.ln() } else { 1.0 };
    let tries = (1.0 - weather.loss).powi(-2);
    let round_trip = 2.0 * (weather.latency + weather.jitter).as_secs_f64();
    let seconds = rounds * tries * PATIENCE_ROUND_TRIPS * round_trip;
    ((datagrams * DATAGRAM_BYTES / seconds) as u64).clamp(1, GOODPUT_MAX)
}

/// What the slowest reader needs to take everything.
fn taking_time(plan: &Plan) -> Duration {
    let longest = plan.topics.iter().flat_map(|topic| {
        let samples: u32 = topic.writers.iter().map(|writer| writer.samples).sum();
        topic.readers.iter().map(move |reader| match reader.pace {
            Pace::Polling { period, samples_max } => {
                let at_once =
                    samples_max.min(reader.qos.resource_limits.max_samples.map_or(usize::MAX, |max| max as usize));
                period * (samples / u32::try_from(at_once.max(1)).unwrap_or(u32::MAX) + 1)
            }
            Pace::Eager(_) | Pace::Never => Duration::ZERO,
        })
    });
    longest.max().unwrap_or_default()
}
