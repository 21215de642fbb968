//! Results of the runs of a cell.

use super::cell::HdtvPart;
use super::result::{HdtvRun, Paper3Result};
pub(super) use crate::preset::{estimate, find, median_of};

/// Something that a run has a figure of.
pub(super) type Figure = fn(&HdtvRun) -> Option<f64>;

pub(super) const GOODPUT: Figure = |run| Some(run.stream?.goodput_mbit);
pub(super) const LOST: Figure =
    |run| run.picture.map(|picture| picture.lost).or_else(|| run.stream.map(|stream| stream.lost));
/// Shares of a processor that both ends used.
pub(super) const CPU: Figure = |run| {
    let both = run.sender_load.zip(run.receiver_load).map(|(sender, receiver)| sender.mean + receiver.mean);
    both.or_else(|| run.stream.filter(|_| run.picture.is_none()).map(|stream| stream.cpu.iter().sum()))
};
pub(super) const SENDER_CPU: Figure = |run| Some(run.sender_load?.mean);
pub(super) const RECEIVER_CPU: Figure = |run| Some(run.receiver_load?.mean);
pub(super) const RECEIVER_CPU_SD: Figure = |run| run.receiver_load?.sd;
pub(super) const CLIENT_CPU: Figure = |run| Some(run.trips?.client_cpu);
pub(super) const TRIP_P50: Figure = |run| run.trips?.p50_us;
pub(super) const TRIP_P99: Figure = |run| run.trips?.p99_us;
pub(super) const FPS: Figure = |run| run.picture?.fps_mean;
pub(super) const FPS_SD: Figure = |run| run.picture?.fps_sd;
pub(super) const RTT: Figure = |run| run.picture?.rtt_us;
pub(super) const REPORT_JITTER: Figure = |run| run.picture?.report_jitter_us;
pub(super) const SCHEDULE_JITTER: Figure = |run| run.picture?.schedule_jitter_us;
pub(super) const SPACING: Figure = |run| run.picture?.spacing_us;
pub(super) const LATENCY_P99: Figure = |run| run.picture?.latency_p99_us;
/// Share of the frames that were to be sent and were shown; whole ones where the program tells.
pub(super) const SHOWN: Figure = |run| {
    let picture = run.picture?;
    let frames = picture.frames_complete.unwrap_or(picture.frames_shown);
    (picture.frames_due > 0).then(|| frames as f64 / picture.frames_due as f64)
};

/// The median of a figure in the cell of a part that is labelled so.
pub(super) fn labelled(result: &Paper3Result, part: HdtvPart, label: &str, figure: Figure) -> Option<f64> {
    median_of(find(result, part, |cell| cell.label == label)?, figure)
}
