//! A measured value over the time of the experiment, with the phases behind it.

use super::WIDTH;
use super::ecdf::legend;
use super::scale::{Scale, tick_label};
use super::svg::{Anchor, Svg};

/// A phase of the experiment, shaded behind the points.
#[derive(Clone, Debug)]
pub struct Band {
    /// Start in seconds.
    pub from_s: f64,
    /// End in seconds.
    pub to_s: f64,
    /// Written at the top of the band.
    pub name: String,
}

/// Points of one kind, in one colour of the palette.
#[derive(Clone, Debug)]
pub struct TimelineTrace {
    /// Name in the legend.
    pub name: String,
    /// Position in the palette.
    pub colour: usize,
    /// Seconds since the start of the experiment, and the value measured then.
    pub points: Vec<(f64, f64)>,
}

/// Draws points `(seconds, value)`, one colour for each trace, on a logarithmic value axis titled `title`.
pub fn timeline(title: &str, traces: &[TimelineTrace], bands: &[Band]) -> String {
    let (left, right, top, bottom) = (64.0, WIDTH - 16.0, 52.0, 320.0);
    let mut svg = Svg::new(WIDTH, bottom + 48.0, &format!("{title} over time"));
    let points = || traces.iter().flat_map(|trace| trace.points.iter());
    let x = Scale::linear_from_zero(points().map(|(at, _)| *at).chain(bands.iter().map(|band| band.to_s)), left, right);
    let y = Scale::logarithmic(points().map(|(_, value)| *value), bottom, top);
    for band in bands {
        let (from, to) = (x.position(band.from_s), x.position(band.to_s));
        svg.rectangle("band", (from, top), (to - from, bottom - top), 0.0);
        svg.text("band-name", ((from + to) / 2.0, top - 5.0), Anchor::Middle, &band.name);
    }
    y.draw_left(&mut svg, left, right, tick_label);
    x.draw_below(&mut svg, top, bottom, "seconds");
    for trace in traces {
        for (at, value) in &trace.points {
            svg.dot(&format!("dot c{}", trace.colour), (x.position(*at), y.position(*value)), 1.8);
        }
    }
    legend(&mut svg, traces.iter().map(|trace| (trace.name.as_str(), trace.colour)), left + 150.0, 0.0);
    svg.text("label", (8.0, 18.0), Anchor::Start, title);
    svg.finish()
}
