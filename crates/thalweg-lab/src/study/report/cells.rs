//! Cells that move the same data side by side, in tables that need no raw data.

use super::distinct;
use crate::figures::{or_dash, percent, rounded};
use crate::report::Section;
use crate::study::CellFailure;
use crate::study::cells::CellResult;
use crate::study::compare::Difference;
use crate::study::results::{RunSummary, StudyResult};
use crate::study::tables;
use crate::table::Table;
use crate::trial::Totals;

/// A table for each kind of data, the best cell first.
pub(crate) fn section(result: &StudyResult) -> Section {
    if result.is_closed_loop() {
        return Section {
            title: "Every cell".to_owned(),
            lead: "Publishers write as fast as the middleware lets them. CPU 1 is one whole CPU for all processes."
                .to_owned(),
            tables: vec![tables::closed_loop_table(result)],
            ..Section::default()
        };
    }
    let kinds = distinct(result.cells.iter().map(|cell| cell.cell.data()));
    Section {
        title: "Every cell".to_owned(),
        lead: "A table for each kind of data. Fates are shares of the samples that were due, all runs together; response latencies are \
               in µs, medians over the runs, and count from the time at which a sample was due. CPU 1 is one whole CPU for all \
               processes. Last − first is the median time between the first and the last subscriber that a sample reaches; Jain is the \
               least index of a run. Ratios are those to the baseline with their verdict."
            .to_owned(),
        tables: kinds.iter().map(|kind| table(result, kind)).collect(),
        ..Section::default()
    }
}

/// The cells that have no result, with the reason; nothing where all have one.
pub(crate) fn failures(result: &StudyResult) -> Option<Section> {
    let table = failures_table("Cells that failed and were left out from then on", &result.failures);
    (!table.rows.is_empty()).then(|| Section {
        title: "Without a result".to_owned(),
        lead: "A peer that fails in a cell has no figure there.".to_owned(),
        tables: vec![table],
        ..Section::default()
    })
}

/// A row for each cell that failed.
pub(crate) fn failures_table(caption: &str, failures: &[CellFailure]) -> Table {
    let row = |one: &CellFailure| vec![one.name.clone(), (one.round + 1).to_string(), one.reason.clone()];
    Table::of(caption, &["cell", "round", "why"], failures.iter().map(row))
}

/// The notes of the scenario, if it has any.
pub(super) fn notes(result: &StudyResult) -> Option<Section> {
    (!result.notes.is_empty()).then(|| Section {
        title: "Notes of the scenario".to_owned(),
        lead: "Omissions of the scenario, and their reasons.".to_owned(),
        seen: result.notes.clone(),
        ..Section::default()
    })
}

fn table(result: &StudyResult, kind: &str) -> Table {
    let mut cells: Vec<&CellResult> = result.cells.iter().filter(|cell| cell.cell.data() == kind).collect();
    cells.sort_by(|one, other| {
        let late = |cell: &CellResult| 1.0 - share(cell, |totals| totals.in_time);
        let p50 = |cell: &CellResult| cell.median_of(|run| run.totals.response.p50_us).unwrap_or(f64::INFINITY);
        late(one).total_cmp(&late(other)).then(p50(one).total_cmp(&p50(other)))
    });
    Table::of(kind, &HEADER, cells.iter().map(|cell| row(result, cell))).without_empty_columns()
}

fn row(result: &StudyResult, cell: &CellResult) -> Vec<String> {
    let fate = |of: fn(&Totals) -> u64| match share(cell, of) {
        0.0 => "0".to_owned(),
        share => percent(share),
    };
    let figure = |of: fn(&RunSummary) -> Option<f64>| or_dash(cell.median_of(of), rounded);
    let jain = cell.runs.iter().map(|run| run.fairness.jain_in_time).fold(1.0, f64::min);
    vec![
        cell.cell.way(),
        cell.runs.len().to_string(),
        fate(|totals| totals.in_time),
        fate(|totals| totals.late),
        fate(|totals| totals.lost),
        fate(|totals| totals.not_sent),
        figure(|run| run.totals.response.p50_us),
        figure(|run| run.totals.response.p90_us),
        figure(|run| run.totals.response.p99_us),
        figure(|run| Some(run.totals.response.max_us).filter(|us| *us > 0.0)),
        figure(|run| Some(run.cpu)),
        or_dash(cell.runs.iter().any(|run| run.pair_p50_us.len() > 1).then_some(jain), rounded),
        figure(|run| run.fairness.last_minus_first.p50_us),
        against(result, cell, "response p50"),
        against(result, cell, "response p99"),
        cell.runs.iter().filter(|run| run.contaminated).count().to_string(),
    ]
}

/// The ratio to the baseline that moves the same data.
fn against(result: &StudyResult, cell: &CellResult, quantity: &str) -> String {
    let is_alike = |difference: &&Difference| {
        let baseline = result.cells.iter().find(|other| other.name == difference.baseline);
        baseline.is_some_and(|baseline| baseline.cell.data() == cell.cell.data())
    };
    let own = |difference: &&Difference| difference.subject == cell.name && difference.quantity.starts_with(quantity);
    let found = result.differences.iter().filter(own).find(is_alike);
    let told = found.and_then(|difference| Some((difference.ratio?.estimate, difference.verdict)));
    or_dash(told, |(ratio, verdict)| format!("{} {verdict}", rounded(ratio)))
}

fn share(cell: &CellResult, of: fn(&Totals) -> u64) -> f64 {
    cell.sum(of) as f64 / cell.sum(|totals| totals.due).max(1) as f64
}

const HEADER: [&str; 16] = [
    "",
    "runs",
    "in time",
    "late",
    "lost",
    "not sent",
    "p50",
    "p90",
    "p99",
    "max",
    "CPU",
    "Jain",
    "last − first",
    "p50 by baseline",
    "p99 by baseline",
    "marked",
];
