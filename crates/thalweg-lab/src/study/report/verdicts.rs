//! The verdict at the top, and each cell against its baseline.

use super::{distinct, runs};
use crate::figures::{grouped, percent, ratio, rounded};
use crate::plot::{Axis, PlotRow, RowMark, rows};
use crate::report::{Card, Figure, Section, Standing, Tile};
use crate::statistics::Verdict;
use crate::study::compare::{self, Difference};
use crate::study::results::{Judgement, StudyResult};

/// The answers: expectations of the scenario, and each quantity in which cells are compared.
pub(super) fn cards(result: &StudyResult) -> Vec<Card> {
    expectations(result).into_iter().chain(comparison_cards(&result.differences)).collect()
}

/// A card for each quantity in which something is told, and one for those in which nothing is.
pub(crate) fn comparison_cards(differences: &[Difference]) -> Vec<Card> {
    let quantities = distinct(differences.iter().map(|difference| difference.quantity.as_str()));
    let of =
        |quantity: &str| -> Vec<&Difference> { differences.iter().filter(|one| one.quantity == quantity).collect() };
    let is_told = |difference: &&Difference| difference.verdict != Verdict::Inconclusive;
    let (told, open): (Vec<&str>, Vec<&str>) =
        quantities.into_iter().partition(|quantity| of(quantity).iter().any(is_told));
    let compared = told.into_iter().map(|quantity| comparison(quantity, &of(quantity)));
    compared.chain(unjudged(&open, differences)).collect()
}

/// The quantities in which nothing is told, with the reasons.
fn unjudged(quantities: &[&str], differences: &[Difference]) -> Option<Card> {
    let of = differences.iter().filter(|difference| quantities.contains(&difference.quantity.as_str()));
    let mut reasons: Vec<String> = of.filter_map(|difference| difference.reason.clone()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    (!quantities.is_empty()).then(|| Card {
        standing: Standing::NotJudged,
        headline: format!("Not judged: {}", quantities.join("; ")),
        details: shortened(reasons),
    })
}

/// Whether expectations hold; nothing where there is neither an expectation nor a comparison to speak of.
fn expectations(result: &StudyResult) -> Option<Card> {
    let (judged, unjudged): (Vec<&Judgement>, Vec<&Judgement>) =
        result.judgements.iter().partition(|judgement| judgement.value.is_some());
    let failed: Vec<&&Judgement> = judged.iter().filter(|judgement| !judgement.holds).collect();
    let (all, disturbed) = (result.judgements.len(), result.contaminated());
    let (standing, headline) = match (all, failed.len(), unjudged.len()) {
        (0, ..) if result.differences.is_empty() => {
            (Standing::NotJudged, "Not judged: the scenario has no expectations".to_owned())
        }
        (0, ..) => return None,
        (_, 0, 0) if disturbed > 0 => {
            (Standing::NotJudged, format!("Not judged: all {all} expectations hold, on a machine that was not quiet"))
        }
        (_, 0, 0) => (Standing::Holds, format!("All {all} expectations hold")),
        (_, 0, open) if open == all => (Standing::NotJudged, format!("None of {all} expectations is judged")),
        (_, 0, open) => (Standing::NotJudged, format!("{open} of {all} expectations are not judged, the others hold")),
        (_, failed, 0) => (Standing::Fails, format!("{failed} of {all} expectations do not hold")),
        (_, failed, open) => {
            (Standing::Fails, format!("{failed} of {all} expectations do not hold, {open} are not judged"))
        }
    };
    let failed = failed.iter().map(|judgement| {
        let value = judgement.value.map_or_else(String::new, rounded);
        format!("{} does not hold in {}: {value}", judgement.expectation, judgement.cell)
    });
    let open = unjudged.iter().map(|judgement| {
        format!("{} is not judged in {}: too few samples to tell", judgement.expectation, judgement.cell)
    });
    let mut details = shortened(failed.chain(open).collect());
    details.push(match disturbed {
        0 => "Every run was made on a quiet machine.".to_owned(),
        _ => format!(
            "In {disturbed} of {} runs the machine was not quiet in any attempt; they count and are marked.",
            result.runs_made().count()
        ),
    });
    Some(Card { standing, headline, details })
}

/// One quantity, of all cells that have a baseline.
fn comparison(quantity: &str, all: &[&Difference]) -> Card {
    let count = |verdict| all.iter().filter(|difference| difference.verdict == verdict).count();
    let [better, worse, same, open] =
        [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Inconclusive].map(count);
    let is_told = |difference: &&&Difference| matches!(difference.verdict, Verdict::Better | Verdict::Worse);
    let told = |difference: &&Difference| {
        let found = difference.ratio.as_ref();
        let told = found.map(|found| match found.estimate.is_finite() {
            true => format!(", {} times it ({} to {})", ratio(found.estimate), ratio(found.low), ratio(found.high)),
            false => ", beyond measure: too much never came".to_owned(),
        });
        let Difference { subject, baseline, verdict, .. } = difference;
        format!("{subject} is {verdict} than {baseline}{}", told.unwrap_or_default())
    };
    let mut details = shortened(all.iter().filter(is_told).map(told).collect());
    let reason = |difference: &&Difference| difference.reason.clone();
    if let Some(reason) = all.iter().find_map(reason).filter(|_| open > 0) {
        details.push(format!("Not judged: {open}, the first because of this: {reason}."));
    }
    let part = |count: usize, word: &str| (count > 0).then(|| format!("{count} {word}"));
    let parts = [part(better, "better"), part(worse, "worse"), part(same, "equivalent"), part(open, "not judged")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Card { standing: Standing::Told, headline: format!("{quantity}: {}", parts.join(", ")), details }
}

/// The first of many sentences, and how many there are besides.
fn shortened(mut sentences: Vec<String>) -> Vec<String> {
    let more = sentences.len().saturating_sub(REASONS_MAX);
    sentences.truncate(REASONS_MAX);
    if more > 0 {
        sentences.push(format!("and {more} more"));
    }
    sentences
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
    // A closed loop has no schedule by which a sample could be due.
    if !result.is_closed_loop() {
        out.push(tile(percent(in_time as f64 / due.max(1) as f64), "of all samples that were due arrived in time"));
        out.push(tile(grouped(due), "samples were due, counted once for each subscriber"));
    }
    let all = result.runs_made().count();
    out.push(tile(format!("{} of {all}", all - result.contaminated()), "runs were made on a quiet machine"));
    out
}

/// Each cell against its baseline; nothing where nothing is compared.
pub(super) fn section(result: &StudyResult) -> Option<Section> {
    if result.differences.is_empty() {
        return None;
    }
    let count = |verdict| result.differences.iter().filter(|difference| difference.verdict == verdict).count();
    let mut quantities: Vec<&str> = result.differences.iter().map(|difference| difference.quantity.as_str()).collect();
    quantities.sort_unstable_by_key(|quantity| std::cmp::Reverse(*quantity));
    quantities.dedup();
    let of = |quantity: &str| -> Vec<&Difference> {
        result.differences.iter().filter(|difference| difference.quantity == quantity).collect()
    };
    let figures: Vec<Figure> = quantities.into_iter().filter_map(|quantity| forest(quantity, &of(quantity))).collect();
    let tables = compare::tables(
        "Against the baseline; more is better of what is delivered and received, less of everything else",
        &result.differences,
    );
    Some(Section {
        title: "Verdicts".to_owned(),
        lead: format!(
            "{}. Runs of the same round are paired; the ratio is that of the cell to its baseline, the median over the rounds. A/A noise is how \
             far neighbouring quiet runs of one cell lie apart: a smaller difference is none. The cells of one quantity are corrected for their \
             number (Holm). A round in which a run stayed disturbed counts in no comparison of that cell, which needs eight others, and a cell \
             that delivers fewer samples is better in nothing else.",
            compare::baselines_in_words(result)
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
        let ratio = difference.ratio.filter(|ratio| ratio.estimate.is_finite())?;
        Some(PlotRow {
            name: difference.subject.clone(),
            note: difference.verdict.to_string(),
            marks: vec![
                RowMark { colour: crate::plot::BESIDE, value: 1.0, interval: noise(difference) },
                RowMark { colour: 0, value: ratio.estimate, interval: Some((ratio.low, ratio.high)) },
            ],
        })
    };
    let told: Vec<&&Difference> =
        differences.iter().filter(|difference| difference.verdict != Verdict::Inconclusive).collect();
    let all: Vec<PlotRow> = told.iter().copied().filter_map(row).collect();
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
            "{} of {pairs} comparisons, the others are not judged; median of paired runs with its exact 95 % interval, that of each cell \
             alone.",
            told.len()
        ))
    })
}

fn noise(difference: &Difference) -> Option<(f64, f64)> {
    difference.noise.map(|noise| (1.0 / noise, noise))
}

/// Users do not read a hundred sentences; the table holds all.
const REASONS_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::statistics::Interval;
    use crate::study::results::RunSummary;

    #[test]
    fn what_never_came_has_no_figure_for_a_ratio() {
        let difference = |estimate: f64| Difference {
            subject: "some".to_owned(),
            baseline: "others".to_owned(),
            quantity: "p99".to_owned(),
            medians: (10.0, 10.0 * estimate),
            ratio: Some(Interval { estimate, low: estimate, high: estimate }),
            noise: None,
            verdict: Verdict::Worse,
            reason: None,
        };
        let (infinite, finite) = (difference(f64::INFINITY), difference(2.0));
        let details = comparison("p99", &[&infinite, &finite]).details;
        assert_eq!(details[0], "some is worse than others, beyond measure: too much never came");
        assert_eq!(details[1], "some is worse than others, 2.000 times it (2.000 to 2.000)");
        assert!(forest("p99", &[&infinite]).is_none() && forest("p99", &[&finite]).is_some());
    }

    /// The result of one run of a cell at this pace.
    fn result(pace: &str) -> StudyResult {
        let scenario = fixtures::scenario(&format!("payload_bytes = 8\n{pace}"));
        fixtures::study(&scenario, 1, |_, _| RunSummary::default())
    }

    #[test]
    fn nothing_is_due_in_a_closed_loop() {
        let meanings = |pace: &str| tiles(&result(pace)).into_iter().map(|tile| tile.meaning).collect::<Vec<_>>();
        assert_eq!(meanings("latency_count = 10"), ["runs were made on a quiet machine"]);
        assert_eq!(meanings("rate_hz = 1").len(), 3);
    }

    #[test]
    fn expectations_of_which_none_is_judged_do_not_hold() {
        let mut result = result("rate_hz = 1");
        let [cell, expectation] = ["a cell", "p99_us <= 500"].map(str::to_owned);
        result.judgements = vec![Judgement { cell, expectation, value: None, holds: false }; 3];
        let headline = |result: &StudyResult| expectations(result).map(|card| card.headline);
        assert_eq!(headline(&result).as_deref(), Some("None of 3 expectations is judged"));
        (result.judgements[0].value, result.judgements[0].holds) = (Some(1.0), true);
        assert_eq!(headline(&result).as_deref(), Some("2 of 3 expectations are not judged, the others hold"));
    }

    #[test]
    fn cells_that_are_compared_with_nothing_have_no_verdicts() {
        assert!(section(&result("rate_hz = [1, 2]")).is_none());
    }
}
