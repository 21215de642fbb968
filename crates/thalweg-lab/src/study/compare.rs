//! Differences between cells, and between two run directories.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cells::{CellResult, Pair};
use super::directory::load_manifest;
use super::error::StudyError;
use super::experiment::{StudyCell, StudyRun};
use super::judging::{Judged, Measure, judge};
use super::report::distinct;
use super::results::StudyResult;
use crate::error::LabError;
use crate::figures::{or_dash, percent, ratio, rounded};
use crate::scenario::Build;
use crate::statistics::{Interval, Middle, Verdict, endless, median_interval, middle};
use crate::table::Table;

/// A cell against its baseline in one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The cell, or the side that is judged.
    pub subject: String,
    /// The baseline.
    pub baseline: String,
    /// The compared quantity, with its unit.
    pub quantity: String,
    /// Medians over the runs: the baseline's and the subject's.
    #[serde(with = "endless::pair")]
    pub medians: (f64, f64),
    /// Subject by baseline, from runs of the same round: the median with its exact interval; missing where fewer than eight rounds have
    /// both.
    pub ratio: Option<Interval>,
    /// How far two series of the same thing lie apart, as a ratio above 1: neighbouring runs of each cell compared with each other.
    #[serde(default, with = "endless::option")]
    pub noise: Option<f64>,
    /// The verdict, corrected for the number of cells that the page compares in this quantity.
    pub verdict: Verdict,
    /// Why it is open, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Difference {
    /// The verdict in words, with the reason where it is open.
    pub(crate) fn told(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}"));
        format!("{}{}", self.verdict, reason.unwrap_or_default())
    }
}

/// Whether the runs so far tell each of these quantities within its bound: the ratio of each cell to its baseline, and the value of each
/// cell that is compared with nothing.
pub(super) fn is_precise<C: StudyCell, R: StudyRun>(cells: &[CellResult<C, R>], bounds: &[(Measure<R>, f64)]) -> bool {
    let pairs: Vec<Pair<'_, C, R>> = compared(cells).collect();
    let is_alone = |cell: &&CellResult<C, R>| {
        pairs.iter().all(|(baseline, subject)| !std::ptr::eq(*baseline, *cell) && !std::ptr::eq(*subject, *cell))
    };
    let alone: Vec<&CellResult<C, R>> = cells.iter().filter(is_alone).collect();
    bounds.iter().all(|(measure, bound)| {
        let is_complete = cells.iter().flat_map(|cell| &cell.runs).all(|run| (measure.of)(run).is_some());
        let is_known = |logarithms: &[f64]| {
            let known = median_interval(logarithms);
            known.is_some_and(|known| (known.high - known.low) / 2.0 <= bound.ln_1p())
        };
        let is_ratio_known = |pair: &Pair<'_, C, R>| measure.costs(*pair).is_some_and(|costs| is_known(&costs));
        let is_value_known = |cell: &&CellResult<C, R>| {
            let values = cell.runs.iter().filter_map(|run| Some((measure.of)(run)?.ln()));
            is_known(&values.collect::<Vec<f64>>())
        };
        is_complete && pairs.iter().all(is_ratio_known) && alone.iter().all(is_value_known)
    })
}

/// Every cell against its baseline, quantity by quantity; those of one quantity are one family.
pub(crate) fn within<C: StudyCell, R: StudyRun>(cells: &[CellResult<C, R>]) -> Vec<Difference> {
    let pairs: Vec<_> = compared(cells).collect();
    let of = |measure: &Measure<R>| {
        let judged = judge(&pairs, measure).into_iter();
        let difference = |((baseline, subject), judged): (&Pair<'_, C, R>, Judged)| {
            Some(Difference {
                subject: subject.name.clone(),
                baseline: baseline.name.clone(),
                quantity: measure.name.to_owned(),
                medians: (measure.median(baseline)?, measure.median(subject)?),
                ratio: judged.ratio,
                noise: judged.noise.map(f64::exp),
                verdict: judged.verdict,
                reason: judged.reason,
            })
        };
        pairs.iter().zip(judged).filter_map(difference).collect::<Vec<_>>()
    };
    R::MEASURES.iter().flat_map(of).collect()
}

/// Every cell that has a baseline, behind it.
fn compared<C: StudyCell, R>(cells: &[CellResult<C, R>]) -> impl Iterator<Item = Pair<'_, C, R>> {
    cells.iter().filter_map(|cell| Some((C::baseline(cells, cell)?, cell)))
}

/// Two run directories side by side. Their runs took no turns, so that a drift of the machine is in every difference: nothing is judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name and both values of everything in which their conditions differ.
    pub conditions: Vec<(String, String, String)>,
    /// Cells that only one of them has.
    pub unpaired: Vec<String>,
    /// Each cell that both have: its name, a quantity, and the figure of each.
    pub figures: Vec<(String, &'static str, [Middle; 2])>,
}

/// Puts the cells of the complete run directories `a` and `b` side by side.
///
/// # Errors
/// They were measured under different conditions and `conditions` does not allow that.
pub(crate) fn compare<C, R: StudyRun>(
    (a, first): (&Path, &[CellResult<C, R>]),
    (b, second): (&Path, &[CellResult<C, R>]),
    conditions: Comparability,
) -> Result<Comparison, LabError> {
    let (one, other) = (load_manifest(a)?, load_manifest(b)?);
    let differences = one.fingerprint.differences(&other.fingerprint);
    if !differences.is_empty() && conditions == Comparability::Same {
        return Err(StudyError::Incomparable { directories: [a.to_owned(), b.to_owned()], differences }.into());
    }
    let mut comparison = Comparison { conditions: differences, unpaired: Vec::new(), figures: Vec::new() };
    for cell in first {
        let Some(other) = second.iter().find(|other| other.name == cell.name) else {
            comparison.unpaired.push(format!("{} is in A only", cell.name));
            continue;
        };
        let of = |measure: &Measure<R>| {
            let values = [cell, other].map(|cell| cell.runs.iter().map(measure.of).collect::<Option<Vec<f64>>>());
            let [Some(a), Some(b)] = values else { return None };
            Some((cell.name.clone(), measure.name, [middle(&a)?, middle(&b)?]))
        };
        comparison.figures.extend(R::MEASURES.iter().filter_map(of));
    }
    let only_second = second.iter().filter(|cell| first.iter().all(|other| other.name != cell.name));
    comparison.unpaired.extend(only_second.map(|cell| format!("{} is in B only", cell.name)));
    Ok(comparison)
}

impl Comparison {
    /// The figures of both as a table.
    pub fn table(&self) -> Table {
        let caption = "A and B, medians over the runs with their 95 % intervals, or the ranges of fewer than eight runs; they took no turns, \
                       so there is no verdict: `thalweg lab run … --against PROGRAM` compares two builds";
        let row = |(cell, quantity, both): &(String, &'static str, [Middle; 2])| {
            [cell.clone(), (*quantity).to_owned()].into_iter().chain(both.iter().map(ranged)).collect()
        };
        Table::of(caption, &["cell", "quantity", "A", "B"], self.figures.iter().map(row))
    }
}

/// A median with its interval, or with the range of too few runs.
pub(crate) fn ranged(middle: &Middle) -> String {
    let [estimate, low, high] = [middle.estimate, middle.low, middle.high].map(rounded);
    let kind = if middle.is_range { "range " } else { "" };
    format!("{estimate} ({kind}{low} to {high})")
}

/// Under what conditions two directories may have been measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparability {
    /// The same scenario, program, kernel, CPU and settings.
    Same,
    /// Any.
    Any,
}

/// What the cells of a result are compared with, in words: the baseline by its name where it is the same for all.
pub(super) fn baselines_in_words(result: &StudyResult) -> String {
    let cells = || result.cells.iter().map(|cell| &cell.cell);
    match baselines(&result.differences).as_slice() {
        [only] => format!("Every cell against {only}"),
        _ if cells().any(|cell| cell.build == Build::Other) => {
            "Each cell against the same one of the other build".to_owned()
        }
        _ if cells().any(|cell| cell.flow.is_some()) => "Each cell against the first one of the same flow".to_owned(),
        _ => "Each cell against the first one with the same data".to_owned(),
    }
}

/// The names of the baselines, each once.
fn baselines(differences: &[Difference]) -> Vec<&str> {
    distinct(differences.iter().map(|difference| difference.baseline.as_str()))
}

/// The differences as a table, and those without a verdict as a folded one.
pub(crate) fn tables(caption: &str, differences: &[Difference]) -> Vec<Table> {
    let is_named = baselines(differences).len() > 1;
    let table = |caption: &str, differences: &[&Difference]| table(caption, differences, is_named);
    let is_open = |difference: &&Difference| difference.verdict == Verdict::Inconclusive;
    let (open, told): (Vec<&Difference>, Vec<&Difference>) = differences.iter().partition(is_open);
    let folded = format!("{} of {} comparisons are not judged", open.len(), differences.len());
    let open = Table { folded, ..table(&format!("{caption}; not judged"), &open) };
    [table(caption, &told), open].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// A row for each difference, with the name of its baseline where `is_named` says so.
fn table(caption: &str, differences: &[&Difference], is_named: bool) -> Table {
    let titles = ["cell", "quantity", "baseline", "median", "ratio", "95 % interval", "A/A noise", "verdict"];
    let mut header = titles.to_vec();
    let row = |difference: &&Difference| {
        let mut row = vec![
            difference.subject.clone(),
            difference.quantity.clone(),
            rounded(difference.medians.0),
            rounded(difference.medians.1),
            or_dash(difference.ratio, |found| ratio(found.estimate)),
            or_dash(difference.ratio, |found| format!("{} to {}", ratio(found.low), ratio(found.high))),
            or_dash(difference.noise, |noise| format!("±{}", percent(noise - 1.0))),
            difference.told(),
        ];
        if is_named {
            row.insert(1, difference.baseline.clone());
        }
        row
    };
    if is_named {
        header.insert(1, "against");
    }
    let words = if is_named { vec![1] } else { Vec::new() };
    Table { words, ..Table::of(caption, &header, differences.iter().map(row)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::peers::{CellMiddleware, PeerProfile, PeerProgram};
    use crate::scenario::Precision;
    use crate::study::results::RunSummary;
    use crate::study::trials::bounds;
    use crate::trial::{LatencyFigures, Totals};

    /// A cell whose runs have these medians in microseconds.
    fn cell(medians: &[f64]) -> CellResult {
        let scenario = fixtures::scenario("payload_bytes = 1\nrate_hz = 1");
        let run = |(round, median): (usize, &f64)| {
            let response = LatencyFigures { p50_us: Some(*median), ..LatencyFigures::default() };
            RunSummary {
                round: round as u32,
                totals: Totals { due: 1_000, in_time: 1_000, response, ..Totals::default() },
                cpu: 0.5,
                memory_mib: Some(20.0),
                received_per_s: Some(1_000.0),
                ..RunSummary::default()
            }
        };
        let name = format!("{medians:.1?}");
        let runs = medians.iter().enumerate().map(run).collect();
        CellResult { name, runs, ..CellResult::new(scenario.cells[0].clone()) }
    }

    #[test]
    fn a_pair_that_hardly_got_a_sample_survives_its_file() {
        let mut run = cell(&[100.0]).runs.remove(0);
        run.pair_p50_us = vec![5.0, f64::INFINITY];
        let text = serde_json::to_string(&run).expect("JSON");
        assert!(text.contains(r#""pair_p50_us":[5.0,"never"]"#), "{text}");
        assert_eq!(serde_json::from_str::<RunSummary>(&text).expect("JSON"), run);
    }

    #[track_caller]
    fn check(subject: &[f64], expect: Verdict) {
        let baseline = cell(&[100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0]);
        let all = within(&[baseline, cell(subject)]);
        let difference = all.iter().find(|difference| difference.quantity.contains("p50")).expect("a difference");
        assert_eq!(difference.verdict, expect, "{difference:?}");
        let cpu = all.iter().find(|difference| difference.quantity == "CPU").expect("a difference");
        let steady = if subject.len() < 8 { Verdict::Inconclusive } else { Verdict::Equivalent };
        assert_eq!(cpu.verdict, steady);
    }

    #[test]
    fn verdicts_follow_the_rounds() {
        check(&[200.0, 201.0, 199.0, 205.0, 202.0, 198.0, 200.0, 203.0], Verdict::Worse);
        check(&[50.0, 51.0, 49.0, 50.0, 52.0, 48.0, 50.0, 50.0], Verdict::Better);
        check(&[101.0, 101.0, 100.0, 100.0, 101.0, 99.0, 100.0, 101.0], Verdict::Equivalent);
        check(&[50.0, 200.0, 70.0, 150.0, 30.0, 300.0, 100.0, 90.0], Verdict::Inconclusive);
        check(&[50.0, 50.0], Verdict::Inconclusive);
        check(&[f64::INFINITY; 8], Verdict::Worse);
    }

    #[track_caller]
    fn check_doubt(of: impl Fn(&mut CellResult), expect: (Verdict, Option<&str>)) {
        let mut subject = cell(&[50.0; 8]);
        of(&mut subject);
        let all = within(&[cell(&[100.0; 8]), subject]);
        let p50 = all.iter().find(|difference| difference.quantity.contains("p50")).expect("a difference");
        assert_eq!((p50.verdict, p50.reason.as_deref()), expect);
    }

    #[test]
    fn who_drops_samples_or_was_disturbed_wins_nothing() {
        check_doubt(|_| (), (Verdict::Better, None));
        let drops = |cell: &mut CellResult| cell.runs.iter_mut().for_each(|run| run.totals.in_time -= 20);
        let fewer = "the one that would be better delivered fewer samples, or may have";
        check_doubt(drops, (Verdict::Inconclusive, Some(fewer)));
        let drops_at_times = |cell: &mut CellResult| cell.runs[3].totals.in_time -= 500;
        check_doubt(drops_at_times, (Verdict::Inconclusive, Some(fewer)));
        let disturbed = |cell: &mut CellResult| cell.runs[3].contaminated = true;
        check_doubt(disturbed, (Verdict::Inconclusive, Some("fewer than 8 quiet rounds")));
        let fewer = |cell: &mut CellResult| cell.runs.truncate(7);
        check_doubt(fewer, (Verdict::Inconclusive, Some("fewer than 8 rounds")));
    }

    #[test]
    fn a_round_in_which_either_was_disturbed_tells_nothing() {
        let mut all = [cell(&[100.0; 11]), cell(&[50.0; 11])];
        let judged = |all: &[CellResult]| {
            let p50 = within(all).into_iter().find(|difference| difference.quantity.contains("p50"));
            p50.map(|p50| (p50.verdict, p50.ratio.map(|ratio| ratio.high), p50.reason)).expect("a difference")
        };
        for (place, round) in [(0, 2), (1, 5), (1, 9)] {
            let run = &mut all[place].runs[round];
            (run.contaminated, run.totals.response.p50_us) = (true, Some(1e6));
        }
        assert_eq!(judged(&all), (Verdict::Better, Some(0.5), None));
        all[0].runs[4].contaminated = true;
        assert_eq!(judged(&all), (Verdict::Inconclusive, None, Some("fewer than 8 quiet rounds".to_owned())));
    }

    #[test]
    fn verdicts_know_loss_throughput_processor_time_and_memory() {
        let mut subject = cell(&[100.0; 8]);
        for run in &mut subject.runs {
            (run.totals.in_time, run.totals.lost) = (900, 100);
            (run.received_per_s, run.memory_mib, run.cpu) = (Some(900.0), Some(40.0), 0.5);
        }
        let all = within(&[cell(&[100.0; 8]), subject]);
        let told: Vec<(&str, Verdict)> =
            all.iter().map(|difference| (difference.quantity.as_str(), difference.verdict)).collect();
        let expect = [
            ("delivered, share of due", Verdict::Worse),
            ("response p50, µs", Verdict::Equivalent),
            ("received a second", Verdict::Worse),
            ("CPU", Verdict::Equivalent),
            ("memory, MiB", Verdict::Worse),
        ];
        assert_eq!(told, expect);
        assert!((all[0].ratio.expect("eight").estimate - 0.9).abs() < 1e-9);
    }

    #[test]
    fn who_drops_samples_has_no_better_throughput() {
        let mut subject = cell(&[100.0; 8]);
        for run in &mut subject.runs {
            (run.totals.in_time, run.totals.lost, run.received_per_s) = (900, 100, Some(1_200.0));
        }
        let all = within(&[cell(&[100.0; 8]), subject]);
        let told = |quantity: &str| {
            let found = all.iter().find(|difference| difference.quantity == quantity);
            found.map(|one| (one.verdict, one.reason.as_deref())).expect("a difference")
        };
        let fewer = "the one that would be better delivered fewer samples, or may have";
        assert_eq!(told("received a second"), (Verdict::Inconclusive, Some(fewer)));
        assert_eq!(told("delivered, share of due"), (Verdict::Worse, None));
    }

    /// The verdict on the medians of a subject whose rounds with these numbers were disturbed.
    fn judged(baseline: &[f64], subject: &[f64], disturbed: &[usize]) -> (Verdict, Option<String>) {
        let mut subject = cell(subject);
        disturbed.iter().for_each(|round| subject.runs[*round].contaminated = true);
        let all = within(&[cell(baseline), subject]);
        let p50 = all.into_iter().find(|difference| difference.quantity.contains("p50")).expect("a difference");
        (p50.verdict, p50.reason)
    }

    #[test]
    fn no_difference_is_told_within_the_noise_or_where_nothing_tells_it() {
        let levels = [100.0, 200.0, 100.0, 200.0, 100.0, 200.0, 100.0, 200.0, 100.0];
        let apart = (Verdict::Inconclusive, Some("runs of the same cell lie as far apart".to_owned()));
        assert_eq!(judged(&levels, &levels.map(|level| level * 0.9), &[]), apart);
        assert_eq!(judged(&levels, &levels.map(|level| level * 0.9), &[3]), apart, "the quiet neighbours tell it");
        assert_eq!(judged(&levels, &levels.map(|level| level * 0.1), &[3]), (Verdict::Better, None));
        // Half of the baseline's runs had no end.
        let mut endless = [100.0; 12];
        for round in [1, 3, 5, 7, 9] {
            endless[round] = f64::INFINITY;
        }
        let unknown = (Verdict::Inconclusive, Some("too few quiet neighbouring runs tell the A/A noise".to_owned()));
        assert_eq!(judged(&endless, &[50.0; 12], &[]), unknown);
        assert_eq!(judged(&[f64::INFINITY; 12], &[50.0; 12], &[]), (Verdict::Better, None), "nothing is as far apart");
    }

    #[test]
    fn many_cells_need_more_rounds_than_eight() {
        let page = |rounds: usize| {
            let cells: Vec<CellResult> =
                (0..9).map(|index| cell(&vec![100.0 + 50.0 * f64::from(index); rounds])).collect();
            within(&cells).into_iter().find(|difference| difference.quantity.contains("p50")).expect("a difference")
        };
        assert_eq!(page(8).reason.as_deref(), Some("8 rounds; 8 comparisons need 9"));
        assert_eq!(page(9).verdict, Verdict::Worse);
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
            assert_eq!(is_precise(cells, &bounds(&Precision { p50, p99 }, false)), expect, "{p50:?} {p99:?}");
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

    /// A cell of each of two flows.
    fn flows() -> [CellResult; 2] {
        let flow = |name: &str| format!("\n[[flow]]\nname = \"{name}\"\npayload_bytes = 1\nrate_hz = 1\n");
        let cells = fixtures::scenario(&(flow("one") + &flow("other"))).cells;
        [0, 1].map(|index: usize| CellResult::new(cells[index].clone()))
    }

    #[test]
    fn cells_that_are_compared_with_nothing_end_the_runs_by_their_own_values() {
        let steady = cell(&[100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0]).runs;
        let loose = cell(&[50.0, 200.0, 70.0, 150.0, 30.0, 300.0, 100.0, 90.0]).runs;
        let check = |runs: [&Vec<RunSummary>; 2], expect| {
            let mut cells = flows();
            cells.iter_mut().zip(runs).for_each(|(cell, runs)| cell.runs.clone_from(runs));
            assert_eq!(compared(&cells).count(), 0);
            assert_eq!(is_precise(&cells, &bounds(&Precision { p50: Some(0.03), p99: None }, false)), expect);
        };
        check([&steady, &steady], true);
        check([&loose, &loose], false);
        check([&steady, &loose], false);
    }

    #[test]
    fn what_cells_are_compared_with_is_told_as_it_is() {
        let scenario = fixtures::scenario("payload_bytes = [1, 2]\nrate_hz = 1");
        let mut result = fixtures::study(&scenario, 0, |_, _| RunSummary::default());
        let rounds = [cell(&[100.0; 8]), cell(&[50.0; 8])];
        result.differences = within(&rounds);
        assert_eq!(baselines_in_words(&result), format!("Every cell against {}", rounds[0].name));
        let header = |result: &StudyResult| tables("caption", &result.differences)[0].header[1].clone();
        assert_eq!(header(&result), "quantity");
        let mut further = result.differences[0].clone();
        further.baseline = "another one".to_owned();
        result.differences.push(further);
        assert_eq!(baselines_in_words(&result), "Each cell against the first one with the same data");
        assert_eq!(header(&result), "against");
        let named = &tables("caption", &result.differences)[0];
        assert!(named.words == [1] && named.rows.iter().any(|row| row[1] == "another one"), "{named:?}");
        result.cells = flows().to_vec();
        assert_eq!(baselines_in_words(&result), "Each cell against the first one of the same flow");
        result.cells[1].cell.build = Build::Other;
        assert_eq!(baselines_in_words(&result), "Each cell against the same one of the other build");
    }

    #[test]
    fn the_first_cell_is_the_baseline_and_a_value_that_is_missing_makes_no_difference() {
        let mut without = cell(&[1.0; 8]);
        without.runs.iter_mut().for_each(|run| run.totals.response.p50_us = None);
        let all = within(&[cell(&[1.0; 8]), without]);
        assert!(all.len() == 4 && all.iter().all(|difference| !difference.quantity.contains("p50")), "{all:?}");
        assert!(within(&[cell(&[1.0])]).is_empty());
    }
}
