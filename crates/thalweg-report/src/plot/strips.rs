//! Every run as a dot, one row for each cell, with mean and deviation.

use super::rows::draw_axis;
use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::{Axis, Series, WIDTH};

/// Draws one row of dots for each series on a common axis; a bar marks mean ± standard deviation.
///
/// Dots that would overlap are stacked, so that the shape of the distribution shows as it does in the paper's plots of twenty runs.
pub fn strips(axis: &Axis, rows: &[Series]) -> String {
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let (left, right, top) = (24.0 + 7.0 * longest as f64, WIDTH - 24.0, 12.0);
    let bottom = top + ROW_HEIGHT * rows.len() as f64;
    let values = || rows.iter().flat_map(|row| row.values.iter().copied());
    let axis = axis.settled(values());
    let mut svg = Svg::new(WIDTH, bottom + 48.0, &format!("Each run: {}", axis.title));
    let x = axis.scale(values(), left, right);
    draw_axis(&mut svg, &axis, &x, (left, right), (top, bottom));
    for (index, row) in rows.iter().enumerate() {
        let middle = top + ROW_HEIGHT * (index as f64 + 0.55);
        svg.text("row", (left - 12.0, middle + 4.0), Anchor::End, &row.name);
        draw_row(&mut svg, row, &x, middle);
    }
    svg.finish()
}

fn draw_row(svg: &mut Svg, row: &Series, x: &Scale, middle: f64) {
    for (position, level) in stacked(row.values.iter().map(|value| x.position(*value))) {
        svg.dot(&format!("dot c{}", row.colour), (position, middle + level), DOT_RADIUS);
    }
    let Some((mean, deviation)) = mean_and_deviation(&row.values) else { return };
    let (low, high) = (x.position(mean - deviation), x.position(mean + deviation));
    let y = middle + ROW_HEIGHT * 0.37;
    svg.line("spread", (low, y), (high, y));
    let mean = x.position(mean);
    svg.line("mean", (mean, y - 5.0), (mean, y + 5.0));
}

/// The arithmetic mean and the standard deviation of a sample; `None` when there is nothing to draw.
fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    mean.is_finite().then(|| (mean, if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 }))
}

/// Gives each dot a height so that it touches no earlier one where that is possible, alternating above and below the row. Where all
/// heights are taken, one that would cover another dot's middle is left out: it would show nothing but make the picture larger.
fn stacked(positions: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = positions.collect();
    sorted.sort_by(f64::total_cmp);
    let mut placed: Vec<(f64, f64)> = Vec::new();
    for position in sorted {
        let near: Vec<(f64, f64)> =
            placed.iter().rev().take_while(|(x, _)| position - x < 2.0 * DOT_RADIUS).copied().collect();
        let is_free = |level: &f64| near.iter().all(|(_, y)| (y - level).abs() > 1.0);
        match LEVELS.into_iter().find(is_free) {
            Some(level) => placed.push((position, level)),
            None if near.iter().any(|(x, y)| *y == LEVELS[0] && position - x < DOT_RADIUS) => {}
            None => placed.push((position, LEVELS[0])),
        }
    }
    placed
}

const ROW_HEIGHT: f64 = 66.0;
const DOT_RADIUS: f64 = 2.4;
/// Heights a dot may take; beyond eleven the row is dense enough to read as a block.
const LEVELS: [f64; 11] = [0.0, -4.8, 4.8, -9.6, 9.6, -14.4, 14.4, -19.2, -24.0, -28.8, -33.6];
