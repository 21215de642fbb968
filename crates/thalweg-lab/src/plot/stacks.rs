//! Parts of a whole: one bar of 100 % for each row.

use super::WIDTH;
use super::ecdf::legend;
use super::scale::Scale;
use super::svg::{Anchor, Svg};

/// Draws one bar for each row, divided by the counts of its classes; a class is a name and a colour of the palette. The share of the first
/// class stands behind the bar.
pub fn stacks(title: &str, classes: &[(&str, usize)], rows: &[(String, Vec<u64>)]) -> String {
    let longest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let (left, right, top) = (24.0 + 7.0 * longest as f64, WIDTH - 84.0, 36.0);
    let bottom = top + ROW_HEIGHT * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 48.0, title);
    let x = Scale::linear(0.0, 100.0, left, right);
    x.draw_below(&mut svg, top, bottom, title);
    for (index, (name, counts)) in rows.iter().enumerate() {
        let row_top = top + ROW_HEIGHT * index as f64 + 5.0;
        svg.text("row", (left - 12.0, row_top + 14.0), Anchor::End, name);
        let whole = counts.iter().sum::<u64>().max(1) as f64;
        let mut before = 0;
        for ((_, colour), count) in classes.iter().zip(counts).filter(|(_, count)| **count > 0) {
            let (from, to) =
                (x.position(100.0 * before as f64 / whole), x.position(100.0 * (before + count) as f64 / whole));
            // A class that occurred at all is seen.
            svg.rectangle(
                &format!("swatch c{colour}"),
                (from.min(right - THINNEST), row_top),
                ((to - from).max(THINNEST), 20.0),
                0.0,
            );
            before += count;
        }
        let first = counts.first().map_or(0.0, |count| *count as f64 / whole);
        svg.text("tick", (right + 8.0, row_top + 14.0), Anchor::Start, &crate::figures::percent(first));
    }
    legend(&mut svg, classes.iter().map(|(name, colour)| (*name, *colour)), left, 0.0);
    svg.finish()
}

const ROW_HEIGHT: f64 = 30.0;
const THINNEST: f64 = 2.0;
