//! Steps one after the other, each from where the one before ends.

use super::WIDTH;
use super::axis::Axis;
use super::rows::{draw_axis, label_width};
use super::svg::{Anchor, Svg};
use crate::figures::duration;

/// One step.
#[derive(Clone, Debug)]
pub struct WaterfallStep {
    /// Stands at the left.
    pub name: String,
    /// Position in the palette.
    pub colour: usize,
    /// When it begins, in microseconds from the beginning of all.
    pub from_us: f64,
    /// How long it takes, in microseconds: the median.
    pub median_us: f64,
    /// How long it takes at the 99th percentile, where enough values carry it.
    pub p99_us: Option<f64>,
}

/// Draws a bar for the median of each step and a thin line up to its 99th percentile; lines end where the picture does, numbers stand behind.
pub fn waterfall(title: &str, steps: &[WaterfallStep]) -> String {
    let left = label_width(steps.iter().map(|step| step.name.as_str()));
    let (right, top) = (WIDTH - 170.0, 10.0);
    let bottom = top + ROW_HEIGHT * steps.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 44.0, title);
    let axis = Axis::micros_from_zero(title);
    let ends = steps.iter().map(|step| step.from_us + step.median_us);
    let x = axis.scale(ends, left, right);
    draw_axis(&mut svg, &axis, &x, (left, right), (top, bottom));
    for (index, step) in steps.iter().enumerate() {
        let row_top = top + ROW_HEIGHT * index as f64 + 3.0;
        let middle = row_top + BAR / 2.0;
        svg.text("row", (left - 10.0, middle + 4.0), Anchor::End, &step.name);
        let (from, to) = (x.position(step.from_us), x.position(step.from_us + step.median_us));
        if let Some(p99) = step.p99_us {
            let end = (x.position(step.from_us + p99), middle);
            svg.segments(&format!("whisker c{}", step.colour), [[(from, middle), end]]);
        }
        svg.rectangle(&format!("swatch c{}", step.colour), (from, row_top), ((to - from).max(THINNEST), BAR), 2.0);
        let us = |us: f64| duration(std::time::Duration::from_nanos((us * 1e3) as u64));
        let p99 = step.p99_us.map_or_else(String::new, |p99| format!(", p99 {}", us(p99)));
        svg.text("tick", (right + 10.0, middle + 4.0), Anchor::Start, &format!("{}{p99}", us(step.median_us)));
    }
    svg.finish()
}

const ROW_HEIGHT: f64 = 23.0;
const BAR: f64 = 15.0;
const THINNEST: f64 = 2.0;
