//! Tables of cells: a row for each, a column for each quantity.

use crate::figures::{grouped, or_dash, rounded};
use crate::paper5::answers::{self, Measure};
use crate::paper5::cell::ServerCell;
use crate::paper5::ramp::RampFigures;
use crate::paper5::result::{Run, ServerCellRuns};
use crate::paper5::verdicts;
use crate::preset::{self, with_interval};
use crate::study;

/// A title, and the text for a cell.
pub(super) type Column = study::Column<ServerCell, Run>;

fn scaled(cell: &ServerCellRuns, measure: Measure, factor: f64) -> String {
    preset::figure(cell, measure, |value| rounded(value * factor))
}

fn of_step(cell: &ServerCellRuns, text: fn(&RampFigures) -> String) -> String {
    or_dash(verdicts::step(cell), |figures| text(&figures))
}

fn count(threads: Option<u64>) -> String {
    or_dash(threads, |threads| threads.to_string())
}

pub(super) const LAW: [Column; 1] = [("law or server", |cell| cell.cell.contender.short_name())];
pub(super) const SERVER: [Column; 2] =
    [("server", |cell| cell.cell.server_name()), ("load", |cell| cell.cell.load.to_string())];
pub(super) const ROOM: [Column; 1] = [("room", |cell| cell.cell.room.to_string())];
pub(super) const RUNS: [Column; 1] = [("runs", |cell| grouped(cell.runs.len() as u64))];
pub(super) const OFFERED: [Column; 1] = [("offered/s", |cell| scaled(cell, answers::OFFERED, 1.0))];
pub(super) const SERVED: [Column; 1] = [("served/s", |cell| with_interval(cell, answers::SERVED))];
/// What the paper calls NR and H.
pub(super) const INSIDE: [Column; 2] = [
    ("received/s (NR)", |cell| scaled(cell, answers::RECEIVED, 1.0)),
    ("handled/s (H)", |cell| scaled(cell, answers::HANDLED, 1.0)),
];
pub(super) const OVERVIEW: [Column; 4] = [SERVED[0], LATENCY[0], LATENCY[1], LATENCY[2]];
pub(super) const LATENCY: [Column; 3] = [
    ("loss, %", |cell| scaled(cell, answers::LOSS, 1e2)),
    ("p50, ms", |cell| scaled(cell, answers::P50, 1e-3)),
    ("p99, ms", |cell| scaled(cell, answers::P99, 1e-3)),
];
pub(super) const USAGE: [Column; 3] = [
    ("CPU, %", |cell| scaled(cell, answers::CPU, 1e2)),
    ("per CPU second", |cell| scaled(cell, answers::PER_CPU_S, 1.0)),
    ("memory, MiB", |cell| scaled(cell, answers::RESIDENT, 1.0)),
];
pub(super) const THREADS: [Column; 1] = [("threads", |cell| scaled(cell, answers::THREADS, 1.0))];
pub(super) const ENERGY: [Column; 1] = [("mJ an answer", |cell| scaled(cell, answers::COST, 1.0))];
pub(super) const PROCESSOR: [Column; 1] = [("CPU µs an answer", |cell| scaled(cell, answers::COST, 1.0))];
/// Of the run in the middle.
pub(super) const STEP: [Column; 7] = [
    ("served of the highest phase, %", |cell| of_step(cell, |step| rounded(step.served * 1e2))),
    ("caught up after, s", |cell| of_step(cell, |step| step.caught_up_s.map_or_else(|| "never".to_owned(), rounded))),
    ("longest queue", |cell| of_step(cell, |step| step.queue_max.to_string())),
    ("threads needed", |cell| of_step(cell, |step| or_dash(step.needed, rounded))),
    ("most", |cell| of_step(cell, |step| count(step.threads_max))),
    ("at the end of the highest phase", |cell| of_step(cell, |step| count(step.threads_high))),
    ("at the end", |cell| of_step(cell, |step| count(step.threads_end))),
];
