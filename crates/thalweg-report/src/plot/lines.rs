//! Points joined by lines: how a value goes on with another.

use super::chart::{Chart, Form, Layer, Size};
use super::{Axis, TimelineTrace};

/// Draws each trace's points `(x, y)` in their order, joined by a line, on common axes.
pub fn lines(x_axis: &Axis, y_axis: &Axis, traces: &[TimelineTrace]) -> String {
    let layer =
        |trace: &TimelineTrace| Layer::new(trace.name.as_str(), trace.colour, Form::Marked, trace.points.clone());
    let layers = traces.iter().map(layer).collect();
    Chart { title: String::new(), x: x_axis.clone(), y: y_axis.clone(), layers, size: Size::Wide }.to_svg()
}
