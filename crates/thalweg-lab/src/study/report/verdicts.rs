//! The verdict at the top, and each cell against the first one.

use super::runs;
use super::source::Source;
use crate::figures::{grouped, percent, rounded};
use crate::plot::{Axis, PlotRow, RowMark, rows};
use crate::report::{Card, Figure, Section, Standing, Tile};
use crate::statistics::Verdict;
use crate::study::compare::{self, Difference};
use crate::study::results::StudyResult;

/// Expectations of the scenario, and whether the machine was quiet enough to judge them.
pub(super) fn card(result: &StudyResult) -> Card {
    let all = result.judgements.len();
    let failed: Vec<_> = result.judgements.iter().filter(|judgement| !judgement.holds).collect();
    let disturbed = result.contaminated();
    let (standing, headline) = match (all, failed.len()) {
        (0, _) => (Standing::Open, "The scenario has no expectations".to_owned()),
        (_, 0) if disturbed > 0 => {
            (Standing::Open, format!("All {all} expectations hold, on a machine that was not quiet"))
        }
        (_, 0) => (Standing::Holds, format!("All {all} expectations hold")),
        (_, failed) => (Standing::Fails, format!("{failed} of {all} expectations do not hold")),
    };
    let reason = |judgement: &&crate::study::Judgement| {
        let value = judgement.value.map_or_else(|| "too few samples to tell".to_owned(), rounded);
        format!("{} does not hold in {}: {value}", judgement.expectation, judgement.cell)
    };
    let mut details: Vec<String> = failed.iter().take(REASONS_MAX).map(reason).collect();
    if failed.len() > REASONS_MAX {
        details.push(format!("and {} more", failed.len() - REASONS_MAX));
    }
    details.push(match disturbed {
        0 => "Every run was made on a quiet machine.".to_owned(),
        _ => format!(
            "In {disturbed} of {} runs the machine was not quiet in any attempt; they count and are marked.",
            runs(result).count()
        ),
    });
    Card { standing, headline, details }
}

pub(super) fn tiles(result: &StudyResult) -> Vec<Tile> {
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

/// Each further cell against the first one; nothing where there is one cell.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let result = source.result;
    let baseline = result.cells.first().filter(|_| result.cells.len() > 1)?;
    let count = |verdict| result.differences.iter().filter(|difference| difference.verdict == verdict).count();
    let mut quantities: Vec<&str> = result.differences.iter().map(|difference| difference.quantity.as_str()).collect();
    quantities.sort_unstable_by_key(|quantity| std::cmp::Reverse(*quantity));
    quantities.dedup();
    let of = |quantity: &str| -> Vec<&Difference> {
        result.differences.iter().filter(|difference| difference.quantity == quantity).collect()
    };
    let mut figures: Vec<Figure> =
        quantities.into_iter().filter_map(|quantity| forest(quantity, &of(quantity))).collect();
    let table = compare::table(
        "Against the baseline; more is better of what is delivered and received, less of everything else",
        &result.differences,
    );
    let mut tables = Vec::new();
    match figures.first_mut() {
        Some(figure) => figure.table = Some(table),
        None => tables.push(table),
    }
    Some(Section {
        title: "Verdicts".to_owned(),
        lead: format!(
            "Every cell against the first one, {}, or, where several middleware take part, against the first one with the same data. Runs of \
             the same round are paired; the ratio is that of the cell to its baseline, the median over the rounds. A/A noise is how far \
             neighbouring runs of one cell lie apart: a smaller difference is none. The cells of one quantity are corrected for their \
             number (Holm). A cell with a disturbed run has no verdict, and one that delivers fewer samples is better in nothing else.",
            baseline.name
        ),
        seen: vec![format!(
            "Of {} comparisons with a baseline {} are better, {} equivalent, {} worse, and {} inconclusive.",
            result.differences.len(),
            count(Verdict::Better),
            count(Verdict::Equivalent),
            count(Verdict::Worse),
            count(Verdict::Inconclusive)
        )],
        figures,
        tables,
        files: Vec::new(),
    })
}

/// The ratios of all cells in one quantity.
fn forest(quantity: &str, differences: &[&Difference]) -> Option<Figure> {
    let row = |difference: &&Difference| {
        let ratio = difference.ratio?;
        Some(PlotRow {
            name: difference.subject.clone(),
            note: difference.verdict.to_string(),
            marks: vec![
                RowMark { colour: crate::plot::BESIDE, value: 1.0, interval: noise(difference) },
                RowMark { colour: 0, value: ratio.estimate, interval: Some((ratio.low, ratio.high)) },
            ],
        })
    };
    let all: Vec<PlotRow> = differences.iter().filter_map(row).collect();
    let pairs: usize = differences.len();
    (!all.is_empty()).then(|| {
        let axis = Axis::logarithmic(format!("ratio to the baseline: {quantity}"));
        let kinds = [("ratio with its 95 % interval", 0), ("no difference, with the A/A noise", crate::plot::BESIDE)];
        Figure::new(
            format!(
                "{quantity}: an interval outside the grey noise and away from 1 is a difference, if the verdict beside it stands."
            ),
            rows(&axis, &kinds, &all),
        )
        .resting_on(format!(
            "{pairs} comparisons; median of paired runs with its exact 95 % interval, that of each cell alone."
        ))
    })
}

fn noise(difference: &Difference) -> Option<(f64, f64)> {
    difference.noise.map(|noise| (1.0 / noise, noise))
}

/// Users do not read a hundred sentences; the table holds all.
const REASONS_MAX: usize = 5;
