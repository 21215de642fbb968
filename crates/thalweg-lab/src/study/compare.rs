//! Differences between cells, and between two run directories.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::directory::load_manifest;
use super::order::BLOCK;
use super::results::{CellResult, RunSummary, load};
use crate::error::LabError;
use crate::figures::{percent, rounded};
use crate::scenario::{Cell, Precision};
use crate::statistics::{Interval, Verdict, median, paired_difference, verdict};
use crate::table::Table;

/// A cell against its baseline in one quantity, of which less is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The cell, or the side that is judged.
    pub subject: String,
    /// The baseline.
    pub baseline: String,
    /// The compared quantity, with its unit.
    pub quantity: String,
    /// Medians over the runs: the baseline's and the subject's.
    pub medians: (f64, f64),
    /// Subject by baseline, from runs of the same round; missing where fewer than six rounds have both.
    pub ratio: Option<Interval>,
    /// How far two series of the same thing lie apart, as a ratio above 1: neighbouring runs of each cell compared with each other.
    pub noise: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// A value of a run, where it has one.
pub(crate) type Value = fn(&RunSummary) -> Option<f64>;

/// What is compared: its name, its value in a run, and the ratio that nobody cares about.
type Measure = (&'static str, Value, f64);

const MEASURES: [Measure; 3] =
    [("response p50, µs", p50, 1.03), ("response p99, µs", p99, 1.05), ("CPU", |run| Some(run.cpu), 1.03)];

fn p50(run: &RunSummary) -> Option<f64> {
    run.totals.response.p50_us
}

fn p99(run: &RunSummary) -> Option<f64> {
    run.totals.response.p99_us
}

/// Whether the runs so far tell as well as `precision` asks for: the ratio of each cell to its baseline, or the value of a single cell.
pub(super) fn is_precise(cells: &[CellResult], precision: &Precision) -> bool {
    let Some((baseline, others)) = cells.split_first() else { return true };
    let is_known = |of: Value, bound: f64, logarithms: &[f64]| {
        let is_complete = cells.iter().flat_map(|cell| &cell.runs).all(|run| of(run).is_some());
        is_complete
            && paired_difference(logarithms).is_some_and(|known| (known.high - known.low) / 2.0 <= bound.ln_1p())
    };
    let bounds: [(Value, Option<f64>); 2] = [(p50, precision.p50), (p99, precision.p99)];
    bounds.into_iter().filter_map(|(of, bound)| Some((of, bound?))).all(|(of, bound)| match others {
        [] => is_known(of, bound, &baseline.runs.iter().filter_map(|run| Some(of(run)?.ln())).collect::<Vec<f64>>()),
        _ => compared(cells).all(|(baseline, cell)| is_known(of, bound, &log_ratios(of, baseline, cell))),
    })
}

/// Every cell against its baseline.
pub(super) fn within(cells: &[CellResult]) -> Vec<Difference> {
    compared(cells).flat_map(|(baseline, cell)| differences((&baseline.name, baseline), (&cell.name, cell))).collect()
}

/// Every cell that has a baseline, behind it.
fn compared(cells: &[CellResult]) -> impl Iterator<Item = (&CellResult, &CellResult)> {
    cells.iter().filter_map(|cell| Some((baseline_of(cells, cell)?, cell)))
}

/// What a cell is compared with: where several middleware take part the first one with the same data, else the first cell.
fn baseline_of<'a>(cells: &'a [CellResult], cell: &CellResult) -> Option<&'a CellResult> {
    let is_alone = cells.iter().all(|other| other.cell.middleware == cell.cell.middleware);
    let is_same = |other: &&CellResult| {
        let likened =
            Cell { middleware: cell.cell.middleware, destination: cell.cell.destination, ..other.cell.clone() };
        is_alone || likened == cell.cell
    };
    cells.iter().find(is_same).filter(|baseline| !std::ptr::eq(*baseline, cell))
}

fn differences(
    (baseline_name, baseline): (&str, &CellResult),
    (subject_name, subject): (&str, &CellResult),
) -> Vec<Difference> {
    let difference = |(quantity, of, margin): Measure| {
        let median_of = |cell: &CellResult| {
            let values: Option<Vec<f64>> = cell.runs.iter().map(of).collect();
            values.and_then(median)
        };
        let medians = (median_of(baseline)?, median_of(subject)?);
        let noise = noise(of, &[baseline, subject]);
        let logarithms = paired_difference(&log_ratios(of, baseline, subject));
        Some(Difference {
            subject: subject_name.to_owned(),
            baseline: baseline_name.to_owned(),
            quantity: quantity.to_owned(),
            medians,
            ratio: logarithms.map(|Interval { estimate, low, high }| Interval {
                estimate: estimate.exp(),
                low: low.exp(),
                high: high.exp(),
            }),
            noise: noise.map(f64::exp),
            verdict: verdict(logarithms, margin.ln(), noise),
        })
    };
    MEASURES.into_iter().filter_map(difference).collect()
}

/// Logarithms of subject by baseline, of the rounds in which both have a value.
pub(crate) fn log_ratios(of: Value, baseline: &CellResult, subject: &CellResult) -> Vec<f64> {
    let ratio = |run: &RunSummary| {
        let other = baseline.runs.iter().find(|other| other.round == run.round)?;
        Some((of(run)? / of(other)?).ln())
    };
    subject.runs.iter().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect()
}

/// How far the two runs of a block lie apart within each cell: the larger end of the interval, as a logarithm.
fn noise(of: Value, cells: &[&CellResult]) -> Option<f64> {
    let apart = |cell: &&CellResult| {
        let second = |run: &RunSummary| cell.runs.iter().find(|other| other.round == run.round + 1).and_then(of);
        let firsts = cell.runs.iter().filter(|run| run.round % BLOCK == 0);
        firsts.filter_map(|run| Some((second(run)? / of(run)?).ln())).collect::<Vec<f64>>()
    };
    let all: Vec<f64> = cells.iter().flat_map(apart).filter(|ratio| ratio.is_finite()).collect();
    paired_difference(&all).map(|interval| interval.low.abs().max(interval.high.abs()))
}

/// Two run directories side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name and both values of everything in which their conditions differ.
    pub conditions: Vec<(String, String, String)>,
    /// Cells that only one of them has.
    pub unpaired: Vec<String>,
    /// Each cell of the second against the same cell of the first.
    pub differences: Vec<Difference>,
}

/// Compares the complete run directory `b` with `a`.
///
/// # Errors
/// One of them is no result, or they were measured under different conditions and `conditions` does not allow that.
pub fn compare(a: &Path, b: &Path, conditions: Comparability) -> Result<Comparison, LabError> {
    let (one, other) = (load_manifest(a)?, load_manifest(b)?);
    let differing = one.fingerprint.differences(&other.fingerprint);
    if !differing.is_empty() && conditions == Comparability::Same {
        let told: Vec<String> = differing.iter().map(|(name, a, b)| format!("{name}: {a} against {b}")).collect();
        return Err(LabError::Here(format!(
            "{} and {} were measured under different conditions ({}); --force compares them all the same",
            a.display(),
            b.display(),
            told.join("; ")
        )));
    }
    let (first, second) = (load(a)?, load(b)?);
    let mut comparison = Comparison { conditions: differing, unpaired: Vec::new(), differences: Vec::new() };
    for cell in &first.cells {
        match second.cells.iter().find(|other| other.name == cell.name) {
            Some(other) => {
                let own = differences(("A", cell), ("B", other)).into_iter();
                let named = |difference: Difference| Difference { subject: cell.name.clone(), ..difference };
                comparison.differences.extend(own.map(named));
            }
            None => comparison.unpaired.push(format!("{} is in A only", cell.name)),
        }
    }
    let only_second = second.cells.iter().filter(|cell| first.cells.iter().all(|other| other.name != cell.name));
    comparison.unpaired.extend(only_second.map(|cell| format!("{} is in B only", cell.name)));
    Ok(comparison)
}

/// Under what conditions two directories may have been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparability {
    /// The same scenario, program, kernel, CPU and settings.
    Same,
    /// Any.
    Any,
}

/// The differences as a table.
pub fn table(caption: &str, differences: &[Difference]) -> Table {
    let header = ["cell", "quantity", "baseline", "median", "ratio", "95 % interval", "A/A noise", "verdict"];
    let mut table = Table::new(caption, &header);
    for difference in differences {
        let interval = difference.ratio.map(|ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high));
        let missing = || "–".to_owned();
        table.rows.push(vec![
            difference.subject.clone(),
            difference.quantity.clone(),
            rounded(difference.medians.0),
            rounded(difference.medians.1),
            difference.ratio.map_or_else(missing, |ratio| format!("{:.3}", ratio.estimate)),
            interval.unwrap_or_else(missing),
            difference.noise.map_or_else(missing, |noise| format!("±{}", percent(noise - 1.0))),
            difference.verdict.to_string(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{CellMiddleware, PeerProfile, PeerProgram};
    use crate::scenario::Scenario;
    use crate::trial::{Fairness, LatencyFigures, Totals};

    /// A cell whose runs have these medians in microseconds.
    fn cell(medians: &[f64]) -> CellResult {
        let text = "schema = \"thalweg.scenario/1\"\nname = \"x\"\n[matrix]\npayload_bytes = 1\nrate_hz = 1\n[schedule]\nseconds = 1\nruns = 1\n";
        let scenario = Scenario::parse("x", text).unwrap_or_else(|error| panic!("{error}"));
        let run = |(round, median): (usize, &f64)| {
            let response = LatencyFigures { p50_us: Some(*median), ..LatencyFigures::default() };
            RunSummary {
                round: round as u32,
                attempts: 1,
                contaminated: false,
                totals: Totals { response, ..Totals::default() },
                unsettled_s: 0.0,
                fairness: Fairness::default(),
                publishers: Default::default(),
                pair_p50_us: Vec::new(),
                cpu: 0.5,
                wire: None,
                clock_bound_us: None,
                losses: Vec::new(),
            }
        };
        let name = format!("{medians:.1?}");
        CellResult {
            cell: scenario.cells[0].clone(),
            name,
            runs: medians.iter().enumerate().map(run).collect(),
            intervals: Vec::new(),
        }
    }

    #[track_caller]
    fn check(subject: &[f64], expect: Verdict) {
        let baseline = cell(&[100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0]);
        let all = within(&[baseline, cell(subject)]);
        let difference = all.iter().find(|difference| difference.quantity.contains("p50")).expect("a difference");
        assert_eq!(difference.verdict, expect, "{difference:?}");
        let cpu = all.iter().find(|difference| difference.quantity == "CPU").expect("a difference");
        let steady = if subject.len() < 6 { Verdict::Inconclusive } else { Verdict::Equivalent };
        assert_eq!(cpu.verdict, steady);
    }

    #[test]
    fn verdicts_follow_the_rounds() {
        check(&[200.0, 201.0, 199.0, 205.0, 202.0, 198.0, 200.0, 203.0], Verdict::Worse);
        check(&[50.0, 51.0, 49.0, 50.0, 52.0, 48.0, 50.0, 50.0], Verdict::Better);
        check(&[101.0, 101.0, 100.0, 100.0, 101.0, 99.0, 100.0, 101.0], Verdict::Equivalent);
        check(&[50.0, 200.0, 70.0, 150.0, 30.0, 300.0, 100.0, 90.0], Verdict::Inconclusive);
        check(&[50.0, 50.0], Verdict::Inconclusive);
    }

    #[test]
    fn middleware_are_compared_where_they_move_the_same_data() {
        let of = |middleware, rate_hz| {
            let mut out = cell(&[100.0]);
            (out.cell.middleware, out.cell.rate_hz) = (middleware, rate_hz);
            out.name = out.cell.to_string();
            out
        };
        let peer = CellMiddleware::Peer(PeerProgram::Zenoh, PeerProfile::Default);
        let ours = CellMiddleware::Thalweg;
        let all = [of(ours, 1.0), of(peer, 1.0), of(peer, 2.0), of(ours, 2.0), of(peer, 3.0)];
        let names: Vec<(&str, &str)> =
            compared(&all).map(|(baseline, cell)| (baseline.name.as_str(), cell.name.as_str())).collect();
        let expect =
            [("1–1 1 B 1 Hz auto thalweg", "1–1 1 B 1 Hz zenoh"), ("1–1 1 B 2 Hz zenoh", "1–1 1 B 2 Hz auto thalweg")];
        assert_eq!(names, expect);
        let alone = [of(peer, 1.0), of(peer, 2.0)];
        assert_eq!(compared(&alone).count(), 1);
    }

    #[test]
    fn runs_end_when_every_ratio_is_known_well() {
        let steady = || cell(&[100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0]);
        let loose = || cell(&[50.0, 200.0, 70.0, 150.0, 30.0, 300.0, 100.0, 90.0]);
        let check = |cells: &[CellResult], p50, p99, expect| {
            assert_eq!(is_precise(cells, &Precision { p50, p99 }), expect, "{p50:?} {p99:?}");
        };
        check(&[steady(), steady()], Some(0.03), None, true);
        check(&[steady(), steady(), loose()], Some(0.03), None, false);
        check(&[steady()], Some(0.03), None, true);
        check(&[steady()], Some(0.003), None, false);
        check(&[loose()], Some(0.03), None, false);
        check(&[steady(), steady()], None, Some(0.5), false);
        check(&[cell(&[100.0; 5]), cell(&[100.0; 5])], Some(0.03), None, false);
        let mut gap = steady();
        gap.runs[3].totals.response.p50_us = None;
        check(&[steady(), gap], Some(0.03), None, false);
    }

    #[test]
    fn the_first_cell_is_the_baseline_and_a_value_that_is_missing_makes_no_difference() {
        let mut without = cell(&[1.0; 8]);
        without.runs.iter_mut().for_each(|run| run.totals.response.p50_us = None);
        let all = within(&[cell(&[1.0; 8]), without]);
        assert!(all.iter().all(|difference| difference.quantity == "CPU"), "{all:?}");
        assert!(within(&[cell(&[1.0])]).is_empty());
    }
}
