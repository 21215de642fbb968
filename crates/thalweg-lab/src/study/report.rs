//! The report of a study: verdicts first, then fates, latencies, fairness and losses.

use std::path::Path;

use super::compare;
use super::results::{self, CellResult, RunSummary, StudyResult};
use crate::error::LabError;
use crate::figures::{grouped, micros, percent, rounded};
use crate::plot::{Axis, COLOURS, Series, Trace, ecdf, lines, stacks, strips};
use crate::report::{Page, Section, Tile};
use crate::statistics::{Buckets, Verdict, is_supported};
use crate::table::Table;

/// The page of a study whose runs lie in `directory`.
pub(super) fn to_html(directory: &Path, result: &StudyResult) -> Result<String, LabError> {
    let latencies = results::latencies(directory, result)?;
    let page = Page {
        title: result.name.clone(),
        subtitle: format!("{} cells, seed {}, fingerprint {:.12}", result.cells.len(), result.seed, result.fingerprint),
        tiles: tiles(result),
        warnings: warnings(result),
        sections: vec![verdicts(result), fates(result), latency(result, &latencies), fairness(result), losses(result)],
        facts: result.environment.facts(),
        conditions: conditions(result),
        method: METHOD.map(str::to_owned).to_vec(),
    };
    Ok(page.to_html())
}

fn runs(result: &StudyResult) -> impl Iterator<Item = &RunSummary> {
    result.cells.iter().flat_map(|cell| &cell.runs)
}

fn tiles(result: &StudyResult) -> Vec<Tile> {
    let tile = |figure: String, meaning: &str| Tile { figure, meaning: meaning.to_owned() };
    let held = result.judgements.iter().filter(|judgement| judgement.holds).count();
    let due: u64 = runs(result).map(|run| run.totals.due).sum();
    let in_time: u64 = runs(result).map(|run| run.totals.in_time).sum();
    let mut out = Vec::new();
    if !result.judgements.is_empty() {
        out.push(tile(format!("{held} of {}", result.judgements.len()), "expectations of the scenario hold"));
    }
    out.push(tile(percent(in_time as f64 / due.max(1) as f64), "of all samples that were due arrived in time"));
    out.push(tile(grouped(due), "samples were due, counted once for each subscriber"));
    let quiet = runs(result).count() - result.contaminated();
    out.push(tile(format!("{quiet} of {}", runs(result).count()), "runs were made on a quiet machine"));
    out
}

fn warnings(result: &StudyResult) -> Vec<String> {
    let mut out: Vec<String> = result
        .judgements
        .iter()
        .filter(|judgement| !judgement.holds)
        .map(|judgement| {
            let value = judgement.value.map_or_else(|| "too few samples to tell".to_owned(), rounded);
            format!("{} does not hold in {}: {value}.", judgement.expectation, judgement.cell)
        })
        .collect();
    if result.contaminated() > 0 {
        out.push(format!(
            "In {} of {} runs the machine was not quiet in any attempt; they count and are marked.",
            result.contaminated(),
            runs(result).count()
        ));
    }
    if result.environment.build == "debug" {
        out.push("This is a debug build, several times slower than a release build.".to_owned());
    }
    out
}

fn verdicts(result: &StudyResult) -> Section {
    let count = |verdict| result.differences.iter().filter(|difference| difference.verdict == verdict).count();
    let seen = match result.cells.as_slice() {
        [_] => "There is one cell, and nothing to compare it with.".to_owned(),
        _ => format!(
            "Of {} comparisons with the first cell {} are better, {} equivalent, {} worse, and {} inconclusive.",
            result.differences.len(),
            count(Verdict::Better),
            count(Verdict::Equivalent),
            count(Verdict::Worse),
            count(Verdict::Inconclusive)
        ),
    };
    let differences = compare::table("Against the first cell; less is better", &result.differences);
    Section {
        title: "Verdicts".to_owned(),
        lead: "Runs of the same round are paired; the ratio is that of the cell to the first one. A/A noise is how far neighbouring runs \
               of one cell lie apart: a smaller difference is none."
            .to_owned(),
        seen: vec![seen],
        figures: Vec::new(),
        tables: if result.differences.is_empty() { Vec::new() } else { vec![differences] },
    }
}

fn fates(result: &StudyResult) -> Section {
    let rows = |of: fn(&RunSummary) -> Vec<u64>| -> Vec<(String, Vec<u64>)> {
        let sum = |cell: &CellResult| {
            cell.runs.iter().map(of).reduce(|one, other| one.iter().zip(&other).map(|(a, b)| a + b).collect())
        };
        result.cells.iter().map(|cell| (cell.name.clone(), sum(cell).unwrap_or_default())).collect()
    };
    let readers = rows(|run| vec![run.totals.in_time, run.totals.late, run.totals.lost, run.totals.not_sent]);
    let writers = rows(|run| vec![run.publishers.in_time, run.publishers.late, run.publishers.not_sent]);
    let not_sent: u64 = writers.iter().filter_map(|(_, counts)| counts.get(2)).sum();
    let seen = match not_sent {
        0 => "Publishers wrote every sample: what subscribers got in time is all that there was.".to_owned(),
        _ => format!(
            "Publishers never wrote {} samples: what subscribers got in time is a share of what should have been.",
            grouped(not_sent)
        ),
    };
    Section {
        title: "Fates of the samples".to_owned(),
        lead: "A sample is in time when it arrives, or at the publisher when its write returns, within its period (or `in_time_ms`) \
               after it was due."
            .to_owned(),
        seen: vec![seen],
        figures: vec![
            (
                "As subscribers saw it; the figure at the right is the share in time.".to_owned(),
                stacks("per cent of the samples due, subscribers", &READER_CLASSES, &readers),
            ),
            (
                "As publishers saw it.".to_owned(),
                stacks("per cent of the samples due, publishers", &WRITER_CLASSES, &writers),
            ),
        ],
        tables: vec![results::table(result)],
    }
}

fn latency(result: &StudyResult, latencies: &[Buckets]) -> Section {
    let named = || result.cells.iter().zip(latencies).enumerate().take(COLOURS);
    let series: Vec<Series> =
        named().map(|(colour, (cell, all))| Series { name: cell.name.clone(), colour, values: spread(all) }).collect();
    let traces: Vec<Trace> =
        named().map(|(colour, (cell, all))| Trace { name: cell.name.clone(), colour, points: nines(all) }).collect();
    let slowest = result.cells.iter().zip(latencies).max_by_key(|(_, all)| all.max());
    let mut seen: Vec<String> = slowest
        .map(|(cell, all)| {
            format!("The longest response of all took {} µs, in {}.", rounded(micros(all.max())), cell.name)
        })
        .into_iter()
        .collect();
    if result.cells.len() > COLOURS {
        seen.push(format!("The figures show the first {COLOURS} cells, the table all."));
    }
    Section {
        title: "Response latency".to_owned(),
        lead: "From when a sample was due to its arrival, all runs and pairs of a cell together.".to_owned(),
        seen,
        figures: vec![
            ("A curve further left is faster, a steeper one steadier.".to_owned(), ecdf("response latency, µs", &series)),
            (
                "Each step to the right leaves a tenth of the samples: 10 is the 90th percentile, 100 the 99th. No curve goes \
                 further than its samples carry it."
                    .to_owned(),
                lines(&Axis::logarithmic("one sample in …"), &Axis::logarithmic("response latency, µs"), &traces),
            ),
        ],
        tables: vec![interval_table(result)],
    }
}

fn interval_table(result: &StudyResult) -> Table {
    let mut table = Table::new(
        "Quantiles of the response latency in µs with 95 % intervals (runs and seconds resampled); five runs are needed",
        &["cell", "p50", "p90", "p99", "p99.9"],
    );
    for cell in &result.cells {
        let figure = |quantile: f64| {
            let found =
                cell.intervals.iter().find(|interval| interval.quantile == quantile).map(|interval| interval.us);
            found.map_or_else(
                || "–".to_owned(),
                |us| format!("{} ({} to {})", rounded(us.estimate), rounded(us.low), rounded(us.high)),
            )
        };
        let figures = [0.5, 0.9, 0.99, 0.999].map(figure);
        table.rows.push([cell.name.clone()].into_iter().chain(figures).collect());
    }
    table
}

/// Values in microseconds that stand evenly for a distribution.
fn spread(all: &Buckets) -> Vec<f64> {
    let points = all.count().min(POINTS);
    let rank = |index: u64| ((index + 1) as f64 / points as f64 * all.count() as f64).round() as u64;
    (0..points).map(|index| micros(all.at_rank(rank(index).max(1)))).collect()
}

/// (1 / (1 − q), latency in microseconds) as far as the samples carry the quantile.
fn nines(all: &Buckets) -> Vec<(f64, f64)> {
    let quantiles =
        (0..=NINES_STEPS).map(|step| 10_f64.powf(f64::from(step) / 4.0)).map(|beyond| (beyond, 1.0 - 1.0 / beyond));
    quantiles
        .filter(|(beyond, q)| *beyond >= 1.5 && is_supported(*q, all.count()))
        .filter_map(|(beyond, q)| Some((beyond, micros(all.quantile(q)?))))
        .collect()
}

fn fairness(result: &StudyResult) -> Section {
    let rows: Vec<Series> = result
        .cells
        .iter()
        .enumerate()
        .map(|(index, cell)| Series {
            name: cell.name.clone(),
            colour: index % COLOURS,
            values: cell.runs.iter().flat_map(|run| run.pair_p50_us.iter().copied()).collect(),
        })
        .collect();
    let worst = runs(result).map(|run| run.fairness.jain_in_time).fold(1.0, f64::min);
    Section {
        title: "Fairness".to_owned(),
        lead: "Whether all pairs of a publisher and a subscriber are served alike.".to_owned(),
        seen: vec![format!(
            "Jain's index of the samples in time is {} in the least even run; 1 is perfectly even.",
            rounded(worst)
        )],
        figures: vec![(
            "Each dot is the median response latency of one pair in one run; the bar is mean ± standard deviation."
                .to_owned(),
            strips("median response latency of a pair, µs", &rows),
        )],
        tables: Vec::new(),
    }
}

fn losses(result: &StudyResult) -> Section {
    let mut table = Table::new("Lost below the middleware, all runs of a cell together", &["cell", "counter", "count"]);
    for cell in &result.cells {
        let mut counters: Vec<(&str, u64)> = Vec::new();
        for (name, count) in cell.runs.iter().flat_map(|run| &run.losses) {
            match counters.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += count,
                None => counters.push((name, *count)),
            }
        }
        let rows = counters.into_iter().map(|(name, count)| vec![cell.name.clone(), name.to_owned(), grouped(count)]);
        table.rows.extend(rows);
    }
    let seen = match table.rows.len() {
        0 => "No layer below the middleware lost anything.".to_owned(),
        count => format!("{count} counters of losses grew; other programs of this host count in them."),
    };
    Section {
        title: "Losses below the middleware".to_owned(),
        lead: "Devices, IP, reassembly, UDP and the queues between them, from the first measured sample to the end of the drain.".to_owned(),
        seen: vec![seen],
        figures: Vec::new(),
        tables: if table.rows.is_empty() { Vec::new() } else { vec![table] },
    }
}

fn conditions(result: &StudyResult) -> Vec<String> {
    let repeated = runs(result).filter(|run| run.attempts > 1).count();
    let cpu = runs(result).map(|run| run.cpu).fold(0.0, f64::max);
    let unsettled = runs(result).map(|run| run.unsettled_s).fold(0.0, f64::max);
    vec![
        format!("At most {} s of a run were dropped because latencies had not settled after the warm-up.", rounded(unsettled)),
        format!("{repeated} runs were repeated because the machine was not quiet; {} stayed disturbed.", result.contaminated()),
        format!("The run with the most work used {} CPUs for its own processes.", rounded(cpu)),
        "Raw data: runs/*/publisher-*.csv, subscriber-*.csv and histograms.csv beside this page; `thalweg lab verify` computes everything \
         again from them."
            .to_owned(),
    ]
}

const READER_CLASSES: [(&str, usize); 4] = [("in time", 2), ("late", 4), ("lost", 1), ("not sent", 3)];
const WRITER_CLASSES: [(&str, usize); 3] = [("in time", 2), ("late", 4), ("not sent", 3)];
/// More points than this only make the file larger.
const POINTS: u64 = 400;
/// Quarters of decades up to one sample in a million.
const NINES_STEPS: u32 = 24;
const METHOD: [&str; 5] = [
    "The schedule is open: each sample is due at t0 + k/f whatever happened to those before it, and its response latency counts from then.",
    "The run is the unit: intervals come from runs, not from samples, which resemble their neighbours.",
    "Cells take turns in blocks of two rounds, the second in the reverse order of the first, unless the scenario says otherwise.",
    "A quantile is shown only where ten samples lie beyond it.",
    "A run during which other programs used more of the machine than the scenario allows is repeated, and else marked.",
];
