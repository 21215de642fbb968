//! Tables of cells: a row for each, a column for each quantity.

use crate::figures::{grouped, percent, rounded};
use crate::paper3::answers::{
    self, CPU, FPS, FPS_SD, Figure, GOODPUT, LATENCY_P99, LOST, RECEIVER_CPU, RECEIVER_CPU_SD, REPORT_JITTER, RTT,
    SCHEDULE_JITTER, SENDER_CPU, SHOWN, TRIP_P50, TRIP_P99,
};
use crate::paper3::cell::HdtvCell;
use crate::paper3::findings::with_deviation;
use crate::paper3::result::{HdtvCellRuns, HdtvRun};
use crate::preset::{self, with_interval};
use crate::study;

/// A title, and the text for a cell.
pub(super) type Column = study::Column<HdtvCell, HdtvRun>;

fn figure(cell: &HdtvCellRuns, figure: Figure) -> String {
    preset::figure(cell, figure, rounded)
}

fn share(cell: &HdtvCellRuns, figure: Figure) -> String {
    preset::figure(cell, figure, percent)
}

pub(super) const LABEL: [Column; 1] = [("", |cell| cell.cell.label.clone())];
pub(super) const RUNS: [Column; 1] = [("runs", |cell| grouped(cell.runs.len() as u64))];
pub(super) const OVERVIEW: [Column; 4] = [
    ("Mbit/s", |cell| figure(cell, GOODPUT)),
    ("lost", |cell| share(cell, LOST)),
    ("fps", |cell| figure(cell, FPS)),
    ("round trip p50, µs", |cell| figure(cell, TRIP_P50)),
];
pub(super) const STREAM: [Column; 3] = [
    ("Mbit/s", |cell| with_interval(cell, GOODPUT)),
    ("lost", |cell| share(cell, |run| Some(run.stream?.lost))),
    ("CPU of both ends", |cell| share(cell, CPU)),
];
pub(super) const TRIPS: [Column; 3] = [
    ("round trip p50, µs", |cell| with_interval(cell, TRIP_P50)),
    ("p99, µs", |cell| figure(cell, TRIP_P99)),
    ("CPU of the asking end", |cell| share(cell, answers::CLIENT_CPU)),
];
pub(super) const PICTURE: [Column; 5] = [
    ("packets lost", |cell| share(cell, LOST)),
    ("frames whole", |cell| share(cell, SHOWN)),
    ("fps ± σ", |cell| with_deviation(cell, (FPS, FPS_SD), 1.0)),
    ("receiver's load ± σ, %", |cell| with_deviation(cell, (RECEIVER_CPU, RECEIVER_CPU_SD), 100.0)),
    ("sender's load, %", |cell| with_deviation(cell, (SENDER_CPU, |_| None), 100.0)),
];
pub(super) const REPORTS: [Column; 4] = [
    ("RTT of reports, µs", |cell| with_interval(cell, RTT)),
    ("jitter of reports, µs", |cell| figure(cell, REPORT_JITTER)),
    ("jitter from the schedule, µs", |cell| figure(cell, SCHEDULE_JITTER)),
    ("frame from first to last packet p99, µs", |cell| figure(cell, LATENCY_P99)),
];
pub(super) const LATENCY: [Column; 1] = [("frame latency p99, µs", |cell| figure(cell, LATENCY_P99))];
pub(super) const BOTH_ENDS: [Column; 1] = [("CPU of both ends", |cell| share(cell, CPU))];
pub(super) const BESIDE: [Column; 3] = [
    ("TCP, Mbit/s", |cell| figure(cell, GOODPUT)),
    ("small round trip p50, µs", |cell| figure(cell, TRIP_P50)),
    ("p99, µs", |cell| figure(cell, TRIP_P99)),
];
