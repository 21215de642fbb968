//! Box plots: one box for each row.

use super::WIDTH;
use super::axis::Axis;
use super::rows::{draw_axis, label_width};
use super::svg::{Anchor, Svg};

/// One box.
#[derive(Clone, Debug)]
pub struct BoxRow {
    /// Stands at the left.
    pub name: String,
    /// Position in the palette.
    pub colour: usize,
    /// Ends of the whiskers.
    pub whiskers: (f64, f64),
    /// Ends of the box.
    pub quartiles: (f64, f64),
    /// The line in it.
    pub median: f64,
}

/// Draws the boxes on a common axis.
pub fn boxes(axis: &Axis, rows: &[BoxRow]) -> String {
    let left = label_width(rows.iter().map(|row| row.name.as_str()));
    let (right, top) = (WIDTH - 20.0, 8.0);
    let bottom = top + ROW_HEIGHT * rows.len() as f64;
    let ends = || rows.iter().flat_map(|row| [row.whiskers.0, row.whiskers.1]);
    let axis = axis.settled(ends());
    let mut svg = Svg::new(WIDTH, bottom + 44.0, &axis.title);
    let x = axis.scale(ends(), left, right);
    draw_axis(&mut svg, &axis, &x, (left, right), (top, bottom));
    for (index, row) in rows.iter().enumerate() {
        let middle = top + ROW_HEIGHT * (index as f64 + 0.5);
        svg.text("row", (left - 10.0, middle + 4.0), Anchor::End, &row.name);
        let across = |(low, high): (f64, f64)| (x.position(low), x.position(high));
        let ((low, high), (from, to), median) = (across(row.whiskers), across(row.quartiles), x.position(row.median));
        svg.segments(&format!("whisker c{}", row.colour), [[(low, middle), (high, middle)]]);
        let class = format!("swatch c{}", row.colour);
        svg.rectangle(&class, (from, middle - BOX / 2.0), ((to - from).max(THINNEST), BOX), 1.0);
        svg.line("mean", (median, middle - BOX / 2.0 - 2.0), (median, middle + BOX / 2.0 + 2.0));
    }
    svg.finish()
}

const ROW_HEIGHT: f64 = 22.0;
const BOX: f64 = 12.0;
const THINNEST: f64 = 2.0;
