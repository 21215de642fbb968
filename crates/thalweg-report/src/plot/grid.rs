//! Counts by row and column, the larger the darker.

use super::WIDTH;
use super::rows::label_width;
use super::svg::{Anchor, Svg};
use crate::figures::grouped;

/// Draws a field for each count that is not zero, as dark as its number of digits.
pub fn grid(title: &str, columns: &[&str], rows: &[(String, Vec<u64>)]) -> String {
    let left = label_width(rows.iter().map(|(name, _)| name.as_str()));
    let top = 40.0;
    let step = (WIDTH - left - 8.0) / columns.len().max(1) as f64;
    let mut svg = Svg::new(WIDTH, top + ROW_HEIGHT * rows.len() as f64 + 6.0, title);
    for (index, column) in columns.iter().enumerate() {
        // Two words stand one above the other.
        let (first, second) = column.split_once(' ').unwrap_or(("", column));
        let middle = left + step * (index as f64 + 0.5);
        svg.text("tick", (middle, 14.0), Anchor::Middle, first);
        svg.text("tick", (middle, 29.0), Anchor::Middle, second);
    }
    let middle_of = |row: usize| top + ROW_HEIGHT * (row as f64 + 0.5);
    let empty = rows.iter().enumerate().flat_map(|(row, (_, counts))| {
        let zeros = counts.iter().enumerate().filter(|(_, count)| **count == 0);
        zeros.map(move |(column, _)| (left + step * (column as f64 + 0.5), middle_of(row)))
    });
    svg.dots("dots c6", empty.collect::<Vec<_>>());
    for (row, (name, counts)) in rows.iter().enumerate() {
        svg.text("row", (left - 10.0, middle_of(row) + 4.0), Anchor::End, name);
        for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let corner = (left + step * column as f64 + 1.5, top + ROW_HEIGHT * row as f64 + 1.5);
            let depth = count.ilog10().min(5);
            svg.rectangle(&format!("loss d{depth}"), corner, (step - 3.0, ROW_HEIGHT - 3.0), 3.0);
            let middle = (left + step * (column as f64 + 0.5), middle_of(row) + 4.0);
            svg.text(if depth < 3 { "row" } else { "inside" }, middle, Anchor::Middle, &grouped(*count));
        }
    }
    svg.finish()
}

const ROW_HEIGHT: f64 = 24.0;
