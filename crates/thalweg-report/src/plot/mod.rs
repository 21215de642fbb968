//! Figures as inline SVG: deterministic bytes, no script, colours from the page's style sheet so that they follow light and dark.

mod axis;
mod boxes;
mod chart;
mod ecdf;
mod grid;
mod ladder;
mod lines;
mod palette;
mod rows;
mod scale;
mod stacks;
mod strips;
mod svg;
mod timeline;
mod waterfall;

pub use axis::Axis;
pub use boxes::{BoxRow, boxes};
pub use chart::{Chart, Form, Layer, Size};
pub use ecdf::ecdf;
pub use grid::grid;
pub use ladder::{Stage, ladder};
pub use lines::lines;
pub use palette::{BESIDE, COLOURS, DARK, LIGHT, standalone, style};
pub use rows::{PlotRow, RowMark, rows};
pub use stacks::{Stack, stacks};
pub use strips::strips;
pub use svg::escape;
pub use timeline::{Band, TimelineTrace, timeline};
pub use waterfall::{WaterfallStep, waterfall};

/// A named set of values that shares one colour (`index` of the palette, below [`COLOURS`]) in every figure of a section.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in legends and row labels.
    pub name: String,
    /// Position in the palette.
    pub colour: usize,
    /// Values in the unit of the axis, in the order they were measured.
    pub values: Vec<f64>,
}

/// Width of every figure in its own units; the page scales it to the column.
const WIDTH: f64 = 760.0;

#[cfg(test)]
mod tests;
