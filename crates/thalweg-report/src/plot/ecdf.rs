//! Empirical distribution: which share of the values lies at or below each value.

use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::{Series, WIDTH};

/// Draws one step curve for each series on a logarithmic axis titled `title`; every value is in the picture, none is smoothed away. Where
/// values are infinite a curve ends below 100 %.
///
/// A curve further left is faster; a steeper one is steadier.
pub fn ecdf(title: &str, series: &[Series]) -> String {
    let (left, right, top, bottom) = (56.0, WIDTH - 16.0, 40.0, 300.0);
    let mut svg = Svg::new(WIDTH, bottom + 48.0, &format!("Distribution of {title}"));
    let all = series.iter().flat_map(|series| series.values.iter().copied());
    let x = Scale::logarithmic(all, left, right);
    let y = Scale::linear(0.0, 100.0, bottom, top);
    y.draw_left(&mut svg, left, right, |share| format!("{share:.0} %"));
    x.draw_below(&mut svg, top, bottom, title);
    for one in series {
        svg.polyline(
            &format!("curve c{}", one.colour),
            steps(&one.values).map(|(v, share)| (x.position(v), y.position(share))),
        );
    }
    legend(&mut svg, series.iter().map(|one| (one.name.as_str(), one.colour)), left, 0.0);
    svg.finish()
}

/// Corner points of the step curve, as (value, percent); long series are thinned to what a screen can show, ends kept.
fn steps(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let stride = (count / POINTS_MAX).max(1);
    let kept: Vec<usize> = (0..count)
        .filter(|index| index % stride == 0 || *index + 1 == count)
        .filter(|index| sorted[*index].is_finite())
        .collect();
    let mut before = 0.0;
    kept.into_iter().flat_map(move |index| {
        let share = 100.0 * (index + 1) as f64 / count as f64;
        let corners = [(sorted[index], before), (sorted[index], share)];
        before = share;
        corners
    })
}

/// One line of coloured names above the figure, `down` below its usual place.
pub(super) fn legend<'a>(svg: &mut Svg, entries: impl Iterator<Item = (&'a str, usize)>, left: f64, down: f64) {
    let mut x = left;
    for (name, colour) in entries {
        svg.rectangle(&format!("swatch c{colour}"), (x, 9.0 + down), (14.0, 10.0), 3.0);
        svg.text("legend", (x + 20.0, 18.0 + down), Anchor::Start, name);
        x += legend_width(name);
    }
}

/// Width of an entry of the legend.
pub(super) fn legend_width(name: &str) -> f64 {
    44.0 + 7.0 * name.chars().count() as f64
}

/// More points than this only make the file larger.
const POINTS_MAX: usize = 400;
