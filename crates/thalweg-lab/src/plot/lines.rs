//! Points joined by lines: how a value goes on with another.

use super::ecdf::legend;
use super::scale::{Scale, tick_label};
use super::svg::{Anchor, Svg};
use super::{Trace, WIDTH};

/// What an axis shows.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its title, with the unit.
    pub title: String,
    /// Whether it is divided logarithmically; else linearly from zero.
    pub is_logarithmic: bool,
}

impl Axis {
    /// A linear axis from zero.
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), is_logarithmic: false }
    }

    /// A logarithmic axis.
    pub fn logarithmic(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), is_logarithmic: true }
    }

    fn scale(&self, values: impl Iterator<Item = f64>, start: f64, end: f64) -> Scale {
        if self.is_logarithmic {
            Scale::logarithmic(values, start, end)
        } else {
            Scale::linear_from_zero(values, start, end)
        }
    }
}

/// Draws each trace's points `(x, y)` in their order, joined by a line, on common axes.
pub fn lines(x_axis: &Axis, y_axis: &Axis, traces: &[Trace]) -> String {
    let rows = legend_rows(traces);
    let top = 22.0 + LEGEND_ROW * rows.len().max(1) as f64;
    let (left, right, bottom) = (64.0, WIDTH - 16.0, top + 260.0);
    let mut svg = Svg::new(WIDTH, bottom + 48.0, &format!("{} over {}", y_axis.title, x_axis.title));
    let points = || traces.iter().flat_map(|trace| trace.points.iter());
    let x = x_axis.scale(points().map(|(x, _)| *x), left, right);
    let y = y_axis.scale(points().map(|(_, y)| *y), bottom, top);
    y.draw_left(&mut svg, left, right, tick_label);
    x.draw_below(&mut svg, top, bottom, &x_axis.title);
    for trace in traces {
        let at = trace.points.iter().map(|(at, value)| (x.position(*at), y.position(*value)));
        svg.polyline(&format!("curve c{}", trace.colour), at.clone());
        at.for_each(|at| svg.dot(&format!("dot c{}", trace.colour), at, 2.6));
    }
    for (index, row) in rows.iter().enumerate() {
        let entries = row.iter().map(|trace| (trace.name.as_str(), trace.colour));
        legend(&mut svg, entries, left, LEGEND_ROW * index as f64);
    }
    svg.text("label", (8.0, top - 8.0), Anchor::Start, &y_axis.title);
    svg.finish()
}

/// The traces in as many lines as their names need.
fn legend_rows(traces: &[Trace]) -> Vec<Vec<&Trace>> {
    let mut out: Vec<Vec<&Trace>> = Vec::new();
    let mut width = f64::INFINITY;
    for trace in traces {
        let entry = super::ecdf::legend_width(&trace.name);
        if width + entry > WIDTH - 80.0 {
            out.push(Vec::new());
            width = 0.0;
        }
        width += entry;
        out.iter_mut().last().into_iter().for_each(|row| row.push(trace));
    }
    out
}

const LEGEND_ROW: f64 = 20.0;
