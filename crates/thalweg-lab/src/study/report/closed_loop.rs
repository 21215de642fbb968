//! Closed loops: throughput by second and round trips.

use super::source::{CellData, Source};
use crate::figures::grouped;
use crate::plot::{COLOURS, Series, ecdf};
use crate::report::{Figure, FigureLayout, Section};
use crate::study::cells::CellResult;
use crate::study::tables;

/// The seconds of all cells and their round trips, up to six cells in each picture.
pub(super) fn section(source: &Source<'_>) -> Section {
    let all: Vec<(&CellResult, &CellData)> = source.each().collect();
    let pictures = |title: &str, of: &dyn Fn(&CellResult, &CellData) -> Vec<f64>| -> Vec<String> {
        let picture = |cells: &[(&CellResult, &CellData)]| {
            let series = cells.iter().enumerate().map(|(colour, (cell, data))| Series {
                name: cell.name.clone(),
                colour,
                values: of(cell, data),
            });
            ecdf(title, &series.collect::<Vec<_>>())
        };
        all.chunks(COLOURS).map(picture).collect()
    };
    let seconds: usize = all.iter().map(|(cell, _)| cell.seconds_mbit().len()).sum();
    let lost: u64 = all.iter().flat_map(|(cell, _)| &cell.runs).map(|run| run.totals.lost).sum();
    Section {
        title: "As fast as possible".to_owned(),
        lead: "Publishers write as fast as the middleware lets them. Throughput is the payload that all subscribers together receive in a \
               second; a round trip goes from just before the write of a latency sample to its answer at publisher 0."
            .to_owned(),
        seen: vec![format!("{} samples were lost in all runs.", grouped(lost))],
        figures: vec![
            Figure::of_many(
                "Throughput: a curve further right carries more, a steeper one more steadily.",
                FigureLayout::Column,
                pictures("throughput, Mbit/s", &|cell, _| cell.seconds_mbit()),
            )
            .resting_on(format!("{} seconds of all runs.", grouped(seconds as u64)))
            .with_table(tables::closed_loop_table(source.result)),
            Figure::of_many(
                "Round trips: a curve further left is faster.",
                FigureLayout::Column,
                pictures("round trip, µs", &|_, data| data.all.steps()),
            )
            .resting_on(format!("{}; those that were never answered lie beyond the right edge.", source.amount())),
        ],
        ..Section::default()
    }
}
