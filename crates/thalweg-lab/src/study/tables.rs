//! The results of a study for a terminal and as CSV.

use super::cells::CellResult;
use super::clocks;
use super::compare;
use super::results::{RunSummary, StudyResult};
use crate::figures::{grouped, or_dash, percent, rounded};
use crate::scenario::Cell;
use crate::table::Table;

/// The cells as a table for a terminal, and what was expected.
pub fn to_text(result: &StudyResult) -> String {
    let mut out = if result.is_closed_loop() { closed_loop_table(result) } else { table(result) }.to_text();
    if !result.differences.is_empty() {
        out.push('\n');
        let caption = format!("{}; runs of the same round paired", compare::baselines_in_words(result));
        out.extend(compare::tables(&caption, &result.differences).iter().map(Table::to_text));
        let open = result.differences.iter().filter(|difference| difference.reason.is_some());
        let mut reasons: Vec<&str> = open.filter_map(|difference| difference.reason.as_deref()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        out.extend(reasons.iter().map(|reason| format!("    {reason}\n")));
    }
    for judgement in &result.judgements {
        let (verdict, value) = match judgement.value {
            Some(value) if judgement.holds => ("holds", value.to_string()),
            Some(value) => ("DOES NOT HOLD", value.to_string()),
            None => ("NOT JUDGED", "too few samples".to_owned()),
        };
        out.push_str(&format!("  {verdict}: {} in {}: {value}\n", judgement.expectation, judgement.cell));
    }
    for failure in &result.failures {
        out.push_str(&format!("  FAILED: {failure}\n"));
    }
    for note in &result.notes {
        out.push_str(&format!("  NOTE: {note}\n"));
    }
    for remark in clocks::fact(result).into_iter().chain(clocks::remarks(result)) {
        out.push_str(&format!("  CLOCKS: {remark}\n"));
    }
    if result.contaminated() > 0 {
        out.push_str(&format!(
            "  MARKED: in {} runs the machine was not quiet in any attempt; their figures are those of a disturbed machine\n",
            result.contaminated()
        ));
    }
    out
}

/// A column of a table of cells: its title, and what it shows of a cell.
pub(crate) type Column<C = Cell, R = RunSummary> = (&'static str, fn(&CellResult<C, R>) -> String);

/// A row for each of these cells, with these groups of columns.
pub(crate) fn cell_table<'a, C: 'a, R: 'a>(
    caption: impl Into<String>,
    cells: impl IntoIterator<Item = &'a CellResult<C, R>>,
    columns: &[&[Column<C, R>]],
) -> Table {
    let columns: Vec<Column<C, R>> = columns.concat();
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let mut table = Table::new(caption, &titles);
    table.rows = cells.into_iter().map(|cell| columns.iter().map(|(_, text)| text(cell)).collect()).collect();
    table
}

/// One row a cell: fates of all runs together, latencies as medians over the runs.
pub(super) fn table(result: &StudyResult) -> Table {
    cell_table("Fates of all samples; response latencies in µs, medians over the runs", &result.cells, &[&FATES])
}

/// One row a cell of a closed loop: the seconds and the losses of all runs together, round trips as medians over the runs.
pub(super) fn closed_loop_table(result: &StudyResult) -> Table {
    let caption = "Samples received in each second, all subscribers together, and their payload in Mbit/s; round trips of publisher 0 in µs, \
                   medians over the runs";
    cell_table(caption, &result.cells, &[&CLOSED_LOOP])
}

/// The whole runs of each cell, some of which may be missing.
pub(super) fn whole_runs(cells: &[CellResult]) -> Table {
    let caption = "Whole runs: fates of their samples; response latencies in µs, medians over the runs";
    cell_table(caption, cells, &[&FATES[..6], &[P50, P99, CPU, MARKED]])
}

const CELL: Column = ("cell", |cell| cell.name.clone());
const RUNS: Column = ("runs", |cell| cell.runs.len().to_string());
const LOST: Column = ("lost", |cell| grouped(cell.sum(|totals| totals.lost)));
const P50: Column = ("p50", |cell| told(cell.median_of(|run| run.latency().p50_us)));
const P99: Column = ("p99", |cell| told(cell.median_of(|run| run.latency().p99_us)));
const CPU: Column = ("CPU", |cell| told(cell.median_of(|run| Some(run.cpu))));
const MARKED: Column = ("marked", |cell| cell.runs.iter().filter(|run| run.contaminated).count().to_string());
const FATES: [Column; 13] = [
    CELL,
    RUNS,
    ("in time", |cell| {
        let due = Some(cell.sum(|totals| totals.due)).filter(|due| *due > 0);
        or_dash(due, |due| percent(cell.sum(|totals| totals.in_time) as f64 / due as f64))
    }),
    ("late", |cell| grouped(cell.sum(|totals| totals.late))),
    LOST,
    ("not sent", |cell| grouped(cell.sum(|totals| totals.not_sent))),
    P50,
    ("p90", |cell| told(cell.median_of(|run| run.totals.response.p90_us))),
    P99,
    ("p99.9", |cell| told(cell.median_of(|run| run.totals.response.p999_us))),
    ("max", |cell| told(cell.median_of(|run| Some(run.totals.response.max_us)))),
    CPU,
    ("last − first p50", |cell| told(cell.median_of(|run| run.fairness.last_minus_first.p50_us))),
];
const CLOSED_LOOP: [Column; 12] = [
    CELL,
    RUNS,
    ("received a second", |cell| told(cell.median_of(|run| run.received_per_s))),
    ("Mbit/s", |cell| of_seconds(cell, |seconds| seconds.iter().sum::<f64>() / seconds.len() as f64)),
    ("least", |cell| of_seconds(cell, |seconds| seconds.iter().copied().fold(f64::INFINITY, f64::min))),
    ("most", |cell| of_seconds(cell, |seconds| seconds.iter().copied().fold(0.0, f64::max))),
    LOST,
    ("round trips", |cell| {
        grouped(cell.runs.iter().filter_map(|run| Some(run.closed_loop.as_ref()?.round_trip.count)).sum())
    }),
    P50,
    P99,
    ("longest", |cell| told(cell.median_of(|run| Some(run.latency().max_us)))),
    CPU,
];

/// What the seconds of a closed loop tell.
fn of_seconds(cell: &CellResult, of: fn(&[f64]) -> f64) -> String {
    let seconds = cell.seconds_mbit();
    told((!seconds.is_empty()).then(|| of(&seconds)))
}

fn told(value: Option<f64>) -> String {
    or_dash(value, rounded)
}

/// One line a run.
pub fn to_csv(result: &StudyResult) -> String {
    let line = |first: &str, of: &dyn Fn(&RunColumn) -> String| {
        let words: String = CSV.iter().map(|column| format!(",{}", of(column))).collect();
        format!("{first}{words}\n")
    };
    let mut out = line("cell", &|(title, _)| (*title).to_owned());
    for cell in &result.cells {
        out.extend(cell.runs.iter().map(|run| line(&quoted(&cell.name), &|(_, of)| of(run))));
    }
    out
}

/// A field of a CSV (RFC 4180, 2): names of limits have commas.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The columns of a run behind the name of its cell.
/// A column of the CSV: its title, and what it has of a run.
type RunColumn = (&'static str, fn(&RunSummary) -> String);
const CSV: [RunColumn; 22] = [
    ("round", |run| run.round.to_string()),
    ("attempts", |run| run.attempts.to_string()),
    ("contaminated", |run| run.contaminated.to_string()),
    ("due", |run| run.totals.due.to_string()),
    ("in_time", |run| run.totals.in_time.to_string()),
    ("late", |run| run.totals.late.to_string()),
    ("lost", |run| run.totals.lost.to_string()),
    ("not_sent", |run| run.totals.not_sent.to_string()),
    ("duplicates", |run| run.totals.duplicates.to_string()),
    ("reordered", |run| run.totals.reordered.to_string()),
    ("response_p50_us", |run| number(run.totals.response.p50_us)),
    ("response_p90_us", |run| number(run.totals.response.p90_us)),
    ("response_p99_us", |run| number(run.totals.response.p99_us)),
    ("response_p999_us", |run| number(run.totals.response.p999_us)),
    ("response_max_us", |run| number(Some(run.totals.response.max_us))),
    ("service_p50_us", |run| number(run.totals.service.p50_us)),
    ("service_p99_us", |run| number(run.totals.service.p99_us)),
    ("jain_in_time", |run| number(Some(run.fairness.jain_in_time))),
    ("cpu", |run| number(Some(run.cpu))),
    ("received_per_s", |run| number(run.received_per_s)),
    ("round_trip_p50_us", |run| number(run.closed_loop.as_ref().and_then(|closed| closed.round_trip.p50_us))),
    ("round_trip_p99_us", |run| number(run.closed_loop.as_ref().and_then(|closed| closed.round_trip.p99_us))),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_name_with_a_comma_is_one_field() {
        let sending = "{ method = \"batch\", max_bytes = 9000, max_samples = 9, max_datagram_bytes = 1472 }";
        let scenario = fixtures::scenario(&format!("payload_bytes = 1\nrate_hz = 1\nsending = {sending}"));
        let name = scenario.cells[0].to_string();
        assert!(name.contains(','), "{name}");
        assert_eq!(
            (quoted(&name), quoted("1–1"), quoted("a \"b\"")),
            (format!("\"{name}\""), "1–1".to_owned(), "\"a \"\"b\"\"\"".to_owned())
        );
    }
}
