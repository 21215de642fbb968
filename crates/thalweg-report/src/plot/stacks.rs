//! Parts of a whole: one bar of 100 % for each row.

use super::WIDTH;
use super::axis::Axis;
use super::ecdf::legend_width;
use super::rows::{draw_axis, label_width};
use super::svg::{Anchor, Svg};
use crate::figures::percent;

/// One bar.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Stands at the left.
    pub name: String,
    /// How often each class occurred.
    pub counts: Vec<u64>,
    /// Interval of the first class's share in per cent, where it is known.
    pub interval: Option<(f64, f64)>,
}

/// Draws one bar for each row, divided by the counts of its classes; a class is a name and a colour of the palette, and the last class is
/// drawn hollow: it is what is missing, or stands outside. The share of the first class stands behind the bar, its interval as a whisker below.
pub fn stacks(title: &str, classes: &[(&str, usize)], rows: &[Stack]) -> String {
    let left = label_width(rows.iter().map(|row| row.name.as_str()));
    let (right, top) = (WIDTH - 74.0, 30.0);
    let bottom = top + ROW_HEIGHT * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 44.0, title);
    let axis = Axis::percent(title);
    let x = axis.scale(std::iter::empty(), left, right);
    draw_axis(&mut svg, &axis, &x, (left, right), (top, bottom));
    for (index, row) in rows.iter().enumerate() {
        let row_top = top + ROW_HEIGHT * index as f64 + 3.0;
        svg.text("row", (left - 10.0, row_top + 13.0), Anchor::End, &row.name);
        let whole = row.counts.iter().sum::<u64>().max(1) as f64;
        let share = |count: u64| 100.0 * count as f64 / whole;
        let mut before = 0;
        for (place, ((name, colour), count)) in classes.iter().zip(&row.counts).enumerate() {
            if *count > 0 {
                let (from, to) = (x.position(share(before)), x.position(share(before + count)));
                let hollow = place + 1 == classes.len();
                let class = if hollow { "hollow".to_owned() } else { format!("swatch c{colour}") };
                // A class that occurred at all is seen.
                let (from, width) = (from.min(right - THINNEST), (to - from).max(THINNEST));
                svg.rectangle(&class, (from, row_top), (width, BAR), 0.0);
                if place > 0 && width > 52.0 + 6.0 * name.chars().count() as f64 {
                    let class = if hollow { "tick" } else { "inside" };
                    let text = format!("{name} {}", percent(*count as f64 / whole));
                    svg.text(class, (from + width / 2.0, row_top + 13.0), Anchor::Middle, &text);
                }
            }
            before += count;
        }
        if let Some((low, high)) = row.interval {
            let (low, high, y) = (x.position(low), x.position(high), row_top + BAR + 2.0);
            let ends = [[(low, y), (high, y)], [(low, y - 3.0), (low, y + 3.0)], [(high, y - 3.0), (high, y + 3.0)]];
            svg.segments("interval", ends);
        }
        let first = row.counts.first().map_or(0.0, |count| *count as f64 / whole);
        svg.text("tick", (right + 8.0, row_top + 13.0), Anchor::Start, &percent(first));
    }
    draw_legend(&mut svg, classes, left);
    svg.finish()
}

fn draw_legend(svg: &mut Svg, classes: &[(&str, usize)], left: f64) {
    let mut at = left;
    for (place, (name, colour)) in classes.iter().enumerate() {
        let class = if place + 1 == classes.len() { "hollow".to_owned() } else { format!("swatch c{colour}") };
        svg.rectangle(&class, (at, 9.0), (14.0, 10.0), 2.0);
        svg.text("legend", (at + 20.0, 18.0), Anchor::Start, name);
        at += legend_width(name);
    }
}

const ROW_HEIGHT: f64 = 26.0;
const BAR: f64 = 17.0;
const THINNEST: f64 = 2.0;
