//! Results of the runs of a cell.

use super::cell::{HdtvCell, HdtvPart};
use super::result::{HdtvCellRuns, HdtvRun, Paper3Result};
use crate::statistics::{Middle, middle};

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

/// The median over the runs of a cell with its interval, or with the range of too few runs. `None` without a run that has the figure.
pub(super) fn estimate(cell: &HdtvCellRuns, figure: Figure) -> Option<Middle> {
    middle(&cell.runs.iter().filter_map(figure).collect::<Vec<f64>>())
}

/// The median alone.
pub(super) fn median_of(cell: &HdtvCellRuns, figure: Figure) -> Option<f64> {
    estimate(cell, figure).map(|middle| middle.estimate)
}

/// The cell of a part for which `is_meant` holds.
pub(super) fn find(
    result: &Paper3Result,
    part: HdtvPart,
    is_meant: impl Fn(&HdtvCell) -> bool,
) -> Option<&HdtvCellRuns> {
    result.cells_of(part).find(|cell| is_meant(&cell.cell))
}

/// The median of a figure in the cell of a part that is labelled so.
pub(super) fn labelled(result: &Paper3Result, part: HdtvPart, label: &str, figure: Figure) -> Option<f64> {
    median_of(find(result, part, |cell| cell.label == label)?, figure)
}
