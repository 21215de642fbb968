//! Whether all pairs of a publisher and a subscriber are served alike.

use super::runs;
use super::source::{CellData, Source};
use crate::figures::{or_dash, rounded};
use crate::plot::{Axis, PlotRow, RowMark, rows};
use crate::report::{Figure, Section};
use crate::study::cells::CellResult;
use crate::table::Table;

/// A strip for each cell that has more than one pair; nothing where none has.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let several: Vec<(&CellResult, &CellData)> = source.each().filter(|(_, data)| data.pairs.len() > 1).collect();
    if several.is_empty() {
        return None;
    }
    let row = |(cell, data): &(&CellResult, &CellData)| {
        let mark = |value: f64| RowMark { colour: 0, value, interval: None };
        PlotRow {
            name: cell.name.clone(),
            note: format!("J {}", rounded(jain(cell))),
            marks: data.pairs.iter().filter_map(|pair| pair.p50_us).map(mark).collect(),
        }
    };
    let strips: Vec<PlotRow> = several.iter().map(row).collect();
    let mut table = Table::new(
        "Medians of the pairs in µs; Jain's index of the samples in time, the least of the runs",
        &["cell", "pairs", "fastest pair", "slowest pair", "slowest is", "Jain", "last − first p50"],
    );
    for (cell, data) in &several {
        let fastest = data.pairs.iter().min_by(|a, b| order(a.p50_us, b.p50_us));
        let slowest = data.pairs.iter().max_by(|a, b| order(a.p50_us, b.p50_us));
        let figure = |value: Option<f64>| or_dash(value, rounded);
        let skew: Vec<f64> = cell.runs.iter().filter_map(|run| run.fairness.last_minus_first.p50_us).collect();
        table.rows.push(vec![
            cell.name.clone(),
            data.pairs.len().to_string(),
            figure(fastest.and_then(|pair| pair.p50_us)),
            figure(slowest.and_then(|pair| pair.p50_us)),
            slowest.map_or_else(String::new, |pair| pair.name.clone()),
            rounded(jain(cell)),
            figure(crate::statistics::median(skew)),
        ]);
    }
    let worst = runs(source.result).map(|run| run.fairness.jain_in_time).fold(1.0, f64::min);
    Some(Section {
        title: "Fairness".to_owned(),
        lead: "Whether all pairs of a publisher and a subscriber are served alike.".to_owned(),
        seen: vec![format!(
            "Jain's index of the samples in time is {} in the least even run; 1 is perfectly even.",
            rounded(worst)
        )],
        figures: vec![
            Figure::new(
                "Each mark is one pair: marks that lie on each other are served alike, one that stands apart is neglected or preferred.",
                rows(&Axis::micros("median response latency of a pair"), &[], &strips),
            )
            .resting_on(format!(
                "{} pairs, each the median over its runs; J is Jain's index of the samples in time in the least even run.",
                several.iter().map(|(_, data)| data.pairs.len()).sum::<usize>()
            ))
            .with_table(table),
        ],
        ..Section::default()
    })
}

fn jain(cell: &CellResult) -> f64 {
    cell.runs.iter().map(|run| run.fairness.jain_in_time).fold(1.0, f64::min)
}

fn order(one: Option<f64>, other: Option<f64>) -> std::cmp::Ordering {
    one.unwrap_or(0.0).total_cmp(&other.unwrap_or(0.0))
}
