//! In time, late, lost, not sent: as subscribers and as publishers saw it.

use crate::figures::{grouped, or_dash, rounded};
use crate::plot::{Stack, stacks};
use crate::report::{Figure, Section};
use crate::statistics::median_interval;
use crate::study::cells::CellResult;
use crate::study::results::{RunSummary, StudyResult};
use crate::study::tables;
use crate::table::Table;

/// The samples of all cells, as both ends saw them.
pub(crate) fn section(result: &StudyResult) -> Section {
    let bars =
        |of: fn(&RunSummary) -> Vec<u64>| -> Vec<Stack> { result.cells.iter().map(|cell| stack(cell, of)).collect() };
    let readers = bars(|run| vec![run.totals.in_time, run.totals.late, run.totals.lost, run.totals.not_sent]);
    let writers = bars(|run| vec![run.publishers.in_time, run.publishers.late, run.publishers.not_sent]);
    let sum = |bars: &[Stack], class: usize| -> u64 { bars.iter().filter_map(|bar| bar.counts.get(class)).sum() };
    let whole = |bars: &[Stack]| bars.iter().flat_map(|bar| &bar.counts).sum::<u64>();
    let not_sent = match sum(&writers, 2) {
        0 => "Publishers wrote every sample that was due.".to_owned(),
        count => format!(
            "Publishers did not write {} samples that were due; the shares of subscribers count them as not sent.",
            grouped(count)
        ),
    };
    let basis = |bars: &[Stack], what: &str| {
        format!(
            "n = {} samples due, {what}; the whisker is the 95 % interval of the share in time between runs, from eight runs on.",
            grouped(whole(bars))
        )
    };
    Section {
        title: "Fates of the samples".to_owned(),
        lead: "A sample is in time when it arrives, or at the publisher when its write returns, within its period (or `in_time_ms`) \
               after it was due."
            .to_owned(),
        seen: vec![not_sent],
        figures: vec![
            Figure::new(
                format!(
                    "Subscribers: {} samples came late and {} were lost; the figure at the right is the share in time.",
                    grouped(sum(&readers, 1)),
                    grouped(sum(&readers, 2))
                ),
                stacks("per cent of the samples due, subscribers", &READER_CLASSES, &readers),
            )
            .resting_on(basis(&readers, "once for each subscriber"))
            .with_table(tables::table(result)),
            Figure::new(
                format!(
                    "Publishers: {} writes returned late and {} samples were not sent.",
                    grouped(sum(&writers, 1)),
                    grouped(sum(&writers, 2))
                ),
                stacks("per cent of the samples due, publishers", &WRITER_CLASSES, &writers),
            )
            .resting_on(basis(&writers, "once for each publisher"))
            .with_table(counts(&writers)),
        ],
        ..Section::default()
    }
}

fn stack(cell: &CellResult, of: fn(&RunSummary) -> Vec<u64>) -> Stack {
    let runs: Vec<Vec<u64>> = cell.runs.iter().map(of).collect();
    let classes = runs.first().map_or(0, Vec::len);
    let share = |counts: &Vec<u64>| {
        let due = counts.iter().sum::<u64>().max(1);
        100.0 * counts.first().copied().unwrap_or(0) as f64 / due as f64
    };
    let shares: Vec<f64> = runs.iter().map(share).collect();
    Stack {
        name: cell.name.clone(),
        counts: (0..classes).map(|class| runs.iter().map(|counts| counts[class]).sum()).collect(),
        interval: median_interval(&shares).map(|share| (share.low, share.high)),
    }
}

fn counts(bars: &[Stack]) -> Table {
    let mut header = vec!["cell"];
    header.extend(WRITER_CLASSES.map(|(name, _)| name));
    header.push("share in time, 95 %");
    let row = |bar: &Stack| {
        let interval = or_dash(bar.interval, |(low, high)| format!("{} to {} %", rounded(low), rounded(high)));
        let counts = bar.counts.iter().map(|count| grouped(*count));
        [bar.name.clone()].into_iter().chain(counts).chain([interval]).collect()
    };
    Table::of("Samples as publishers saw them, all runs together", &header, bars.iter().map(row))
}

const READER_CLASSES: [(&str, usize); 4] = [("in time", 0), ("late", 4), ("lost", 1), ("not sent", 6)];
const WRITER_CLASSES: [(&str, usize); 3] = [("in time", 0), ("late", 4), ("not sent", 6)];
