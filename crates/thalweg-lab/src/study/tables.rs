//! The results of a study for a terminal and as CSV.

use super::clocks;
use super::compare;
use super::results::{RunSummary, StudyResult};
use crate::figures::{grouped, percent, rounded};
use crate::table::Table;

/// The cells as a table for a terminal, and what was expected.
pub fn to_text(result: &StudyResult) -> String {
    let mut out = if result.is_closed_loop() { closed_loop_table(result) } else { table(result) }.to_text();
    if !result.differences.is_empty() {
        out.push('\n');
        let caption = "Against the first cell, or the first one with the same data where several middleware take part; runs of the same \
                       round paired";
        out.extend(compare::tables(caption, &result.differences).iter().map(Table::to_text));
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

/// One row a cell: fates of all runs together, latencies as medians over the runs.
pub(super) fn table(result: &StudyResult) -> Table {
    let header = [
        "cell",
        "runs",
        "in time",
        "late",
        "lost",
        "not sent",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "CPU",
        "last − first p50",
    ];
    let mut table = Table::new("Fates of all samples; response latencies in µs, medians over the runs", &header);
    for cell in &result.cells {
        let median_of = |of: fn(&RunSummary) -> Option<f64>| told(cell.median_of(of));
        let due = cell.sum(|totals| totals.due).max(1) as f64;
        table.rows.push(vec![
            cell.name.clone(),
            cell.runs.len().to_string(),
            percent(cell.sum(|totals| totals.in_time) as f64 / due),
            grouped(cell.sum(|totals| totals.late)),
            grouped(cell.sum(|totals| totals.lost)),
            grouped(cell.sum(|totals| totals.not_sent)),
            median_of(|run| run.totals.response.p50_us),
            median_of(|run| run.totals.response.p90_us),
            median_of(|run| run.totals.response.p99_us),
            median_of(|run| run.totals.response.p999_us),
            median_of(|run| Some(run.totals.response.max_us)),
            median_of(|run| Some(run.cpu)),
            median_of(|run| run.fairness.last_minus_first.p50_us),
        ]);
    }
    table
}

/// One row a cell of a closed loop: the seconds and the losses of all runs together, round trips as medians over the runs.
pub(super) fn closed_loop_table(result: &StudyResult) -> Table {
    let header = [
        "cell",
        "runs",
        "received a second",
        "Mbit/s",
        "least",
        "most",
        "lost",
        "round trips",
        "p50",
        "p99",
        "longest",
        "CPU",
    ];
    let caption = "Samples received in each second, all subscribers together, and their payload in Mbit/s; round trips of publisher 0 in µs, \
                   medians over the runs";
    let mut table = Table::new(caption, &header);
    for cell in &result.cells {
        let median_of = |of: fn(&RunSummary) -> Option<f64>| told(cell.median_of(of));
        let seconds = cell.seconds_mbit();
        let (least, most) =
            seconds.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), mbit| (least.min(*mbit), most.max(*mbit)));
        let of_seconds = |value: f64| if seconds.is_empty() { "–".to_owned() } else { rounded(value) };
        let round_trips = cell.runs.iter().filter_map(|run| Some(run.closed_loop.as_ref()?.round_trip.count)).sum();
        table.rows.push(vec![
            cell.name.clone(),
            cell.runs.len().to_string(),
            median_of(|run| run.received_per_s),
            of_seconds(seconds.iter().sum::<f64>() / seconds.len() as f64),
            of_seconds(least),
            of_seconds(most),
            grouped(cell.sum(|totals| totals.lost)),
            grouped(round_trips),
            median_of(|run| run.latency().p50_us),
            median_of(|run| run.latency().p99_us),
            median_of(|run| Some(run.latency().max_us)),
            median_of(|run| Some(run.cpu)),
        ]);
    }
    table
}

fn told(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), rounded)
}

/// One line a run.
pub fn to_csv(result: &StudyResult) -> String {
    let mut out = String::from(
        "cell,round,attempts,contaminated,due,in_time,late,lost,not_sent,duplicates,reordered,response_p50_us,response_p90_us,\
         response_p99_us,response_p999_us,response_max_us,service_p50_us,service_p99_us,jain_in_time,cpu,\
         received_per_s,round_trip_p50_us,round_trip_p99_us\n",
    );
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for cell in &result.cells {
        for run in &cell.runs {
            let (totals, response) = (&run.totals, &run.totals.response);
            let counts = [
                totals.due,
                totals.in_time,
                totals.late,
                totals.lost,
                totals.not_sent,
                totals.duplicates,
                totals.reordered,
            ];
            let figures = [
                response.p50_us,
                response.p90_us,
                response.p99_us,
                response.p999_us,
                Some(response.max_us),
                totals.service.p50_us,
                totals.service.p99_us,
                Some(run.fairness.jain_in_time),
                Some(run.cpu),
                run.received_per_s,
                run.closed_loop.as_ref().and_then(|closed| closed.round_trip.p50_us),
                run.closed_loop.as_ref().and_then(|closed| closed.round_trip.p99_us),
            ];
            let counts = counts.map(|count| count.to_string()).join(",");
            let figures = figures.map(number).join(",");
            out.push_str(&format!(
                "{},{},{},{},{counts},{figures}\n",
                cell.name, run.round, run.attempts, run.contaminated
            ));
        }
    }
    out
}
