//! From values to positions, and where the ticks stand.

use crate::figures;

use super::svg::{Anchor, Svg};

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Division {
    Linear,
    Logarithmic,
}

/// One axis: values `from..to` onto positions `start..end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    division: Division,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// A linear axis from zero to a round value at or above the largest of `values`.
    pub(super) fn linear_from_zero(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Scale {
        let largest = values.fold(0.0, f64::max);
        let step = round_step(if largest > 0.0 { largest } else { 1.0 });
        let to = (largest / step).ceil().max(1.0) * step;
        Scale { division: Division::Linear, from: 0.0, to, start, end }
    }

    /// A linear axis over exactly `from..to`.
    pub(super) fn linear(from: f64, to: f64, start: f64, end: f64) -> Scale {
        Scale { division: Division::Linear, from, to, start, end }
    }

    /// A logarithmic axis that holds all positive and finite `values` with a little air on both sides; latencies belong on such an axis,
    /// because their tail is as interesting as their body.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Scale {
        let (mut from, mut to) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            from = from.min(value);
            to = to.max(value);
        }
        if to == 0.0 {
            (from, to) = (1.0, 10.0);
        }
        // Less than a factor of two would blow noise up to the whole width.
        let widen = (2.0 / (to / from)).sqrt().max(1.0);
        Scale { division: Division::Logarithmic, from: from / widen / 1.08, to: to * widen * 1.08, start, end }
    }

    /// Where `value` lies; values beyond the axis stay at its ends.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = match self.division {
            Division::Linear => (value - self.from) / (self.to - self.from),
            Division::Logarithmic => (value.max(self.from).ln() - self.from.ln()) / (self.to.ln() - self.from.ln()),
        };
        self.start + share.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Round values within the axis, at most about ten.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.division {
            Division::Linear => multiples(round_step(self.to - self.from), self.from, self.to),
            Division::Logarithmic => self.logarithmic_ticks(),
        }
    }

    fn logarithmic_ticks(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        if decades < 0.7 {
            return multiples(round_step(self.to - self.from), self.from, self.to);
        }
        let factors: &[f64] = match decades {
            d if d < 1.3 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            d if d < 3.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let exponents = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        exponents
            .flat_map(|exponent| factors.iter().map(move |factor| factor * 10_f64.powi(exponent)))
            .filter(|tick| (self.from..=self.to).contains(tick))
            .collect()
    }

    /// Those of `values` that lie on the axis.
    pub(super) fn within(&self, values: &[f64]) -> Vec<f64> {
        values.iter().copied().filter(|value| (self.from..=self.to).contains(value)).collect()
    }

    /// Division (`l` or `log`), ends in values and in places.
    pub(super) fn description(&self) -> String {
        let division = if self.division == Division::Linear { "l" } else { "log" };
        format!(
            "{division} {} {} {:.0} {:.0}",
            tick_label(self.from).replace(',', ""),
            tick_label(self.to).replace(',', ""),
            self.start,
            self.end
        )
    }

    /// Draws a horizontal axis with its grid from `top` to `bottom` and the title below.
    pub(super) fn draw_below(&self, svg: &mut Svg, top: f64, bottom: f64, title: &str) {
        for tick in self.ticks() {
            let x = self.position(tick);
            svg.line("grid", (x, top), (x, bottom));
            svg.text("tick", (x, bottom + 16.0), Anchor::Middle, &tick_label(tick));
        }
        svg.line("axis", (self.start, bottom), (self.end, bottom));
        svg.text("label", ((self.start + self.end) / 2.0, bottom + 36.0), Anchor::Middle, title);
    }

    /// Draws a vertical axis with its grid from `left` to `right`; `label` writes the ticks.
    pub(super) fn draw_left(&self, svg: &mut Svg, left: f64, right: f64, label: impl Fn(f64) -> String) {
        for tick in self.ticks() {
            let y = self.position(tick);
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", (left - 8.0, y + 4.0), Anchor::End, &label(tick));
        }
    }
}

/// A tick's number without needless zeros.
pub(super) fn tick_label(value: f64) -> String {
    let text = figures::rounded(value);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The step of 1, 2 or 5 times a power of ten that divides `span` into four to eight parts.
fn round_step(span: f64) -> f64 {
    let rough = span / 6.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.99).unwrap_or(10.0);
    factor * power
}

fn multiples(step: f64, from: f64, to: f64) -> Vec<f64> {
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    (first..=last).map(|index| index as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_end_on_a_round_tick() {
        let scale = Scale::linear_from_zero([3.0, 17.3].into_iter(), 0.0, 100.0);
        assert_eq!(scale.ticks(), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!((scale.position(0.0), scale.position(10.0), scale.position(99.0)), (0.0, 50.0, 100.0));
    }

    #[test]
    fn logarithmic_axes_hold_every_value_and_mark_decades() {
        let scale = Scale::logarithmic([20.0, 90_000.0].into_iter(), 0.0, 100.0);
        assert_eq!(scale.ticks(), [100.0, 1_000.0, 10_000.0]);
        assert!(scale.position(20.0) > 0.0 && scale.position(90_000.0) < 100.0);
        let middle = scale.position(1_000.0) - scale.position(100.0);
        assert!((middle - (scale.position(10_000.0) - scale.position(1_000.0))).abs() < 1e-9);
    }

    #[test]
    fn equal_values_still_make_an_axis() {
        let scale = Scale::logarithmic([5.0, 5.0].into_iter(), 0.0, 100.0);
        assert!((scale.position(5.0) - 50.0).abs() < 1e-6);
        assert!(scale.ticks().len() >= 2, "{:?}", scale.ticks());
        assert!(!Scale::logarithmic(std::iter::empty(), 0.0, 1.0).ticks().is_empty());
        assert!(!Scale::linear_from_zero(std::iter::empty(), 0.0, 1.0).ticks().is_empty());
    }

    #[test]
    fn ticks_are_written_without_needless_zeros() {
        assert_eq!(
            (tick_label(0.5), tick_label(20.0), tick_label(1500.0)),
            ("0.5".into(), "20".into(), "1,500".into())
        );
    }
}
