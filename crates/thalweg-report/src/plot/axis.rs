//! What an axis shows, how it is divided and how its ticks are written.

use super::scale::{Scale, tick_label};

/// One axis of a figure.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its title, with the unit.
    pub title: String,
    unit: Unit,
    division: AxisDivision,
    range: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AxisDivision {
    /// From zero.
    Linear,
    Logarithmic,
    /// Logarithmic where the values are too far apart for a linear axis, else linear from zero.
    Fitting,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    /// The number itself.
    Plain,
    /// A whole number.
    Count,
    /// A number of microseconds, written in the unit that keeps it short.
    Micros,
    Percent,
    /// 1 / (1 − q), written as the percentage q.
    Nines,
}

impl Axis {
    /// A linear axis from zero.
    pub fn linear(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), unit: Unit::Plain, division: AxisDivision::Linear, range: None }
    }

    /// A logarithmic axis.
    pub fn logarithmic(title: impl Into<String>) -> Axis {
        Axis { division: AxisDivision::Logarithmic, ..Axis::linear(title) }
    }

    /// A linear axis from zero or, where the largest value is more than 30 times the least, a logarithmic one, which its
    /// title then says.
    pub fn fitting(title: impl Into<String>) -> Axis {
        Axis { division: AxisDivision::Fitting, ..Axis::linear(title) }
    }

    /// A linear axis from zero of things that are counted.
    pub fn count(title: impl Into<String>) -> Axis {
        Axis { unit: Unit::Count, ..Axis::linear(title) }
    }

    /// A logarithmic axis of microseconds; its ticks say ns, µs, ms or s.
    pub fn micros(title: impl Into<String>) -> Axis {
        Axis { unit: Unit::Micros, ..Axis::logarithmic(title) }
    }

    /// The same, linear from zero.
    pub fn micros_from_zero(title: impl Into<String>) -> Axis {
        Axis { division: AxisDivision::Linear, ..Axis::micros(title) }
    }

    /// A linear axis from 0 to 100 %.
    pub fn percent(title: impl Into<String>) -> Axis {
        Axis { unit: Unit::Percent, ..Axis::linear(title) }
    }

    /// Percentiles as HdrHistogram draws them: each step leaves a tenth of the values. Its values are 1 / (1 − q).
    pub fn nines(title: impl Into<String>) -> Axis {
        Axis { unit: Unit::Nines, ..Axis::logarithmic(title) }
    }

    /// The same axis with room for these values whatever is drawn, so that several figures share it.
    pub fn over(self, from: f64, to: f64) -> Axis {
        Axis { range: Some((from, to)), ..self }
    }

    /// The same axis with its division settled for these values.
    pub(super) fn settled(&self, values: impl Iterator<Item = f64>) -> Axis {
        if self.division != AxisDivision::Fitting {
            return self.clone();
        }
        let range = self.range.into_iter().flat_map(|(from, to)| [from, to]);
        let known = values.chain(range).filter(|value| value.is_finite());
        let (least, most) = known.fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
        // Zero has no place on a logarithmic axis.
        if least > 0.0 && most > least * LINEAR_SPAN_MAX {
            let title = format!("{} (logarithmic)", self.title);
            return Axis { title, division: AxisDivision::Logarithmic, ..self.clone() };
        }
        Axis { division: AxisDivision::Linear, ..self.clone() }
    }

    pub(super) fn scale(&self, values: impl Iterator<Item = f64>, start: f64, end: f64) -> Scale {
        let range = self.range.into_iter().flat_map(|(from, to)| [from, to]);
        match self {
            Axis { unit: Unit::Percent, division: AxisDivision::Linear, .. } => Scale::linear(0.0, 100.0, start, end),
            Axis { division: AxisDivision::Logarithmic, .. } => Scale::logarithmic(values.chain(range), start, end),
            _ => Scale::linear_from_zero(values.chain(range), start, end),
        }
    }

    /// Where ticks stand and what is written there.
    pub(super) fn ticks(&self, scale: &Scale) -> Vec<(f64, String)> {
        let ticks = match self.unit {
            Unit::Nines => scale.within(&NINES),
            Unit::Percent => scale.within(&[0.0, 25.0, 50.0, 75.0, 100.0]),
            _ => scale.ticks(),
        };
        let is_meant = |tick: &f64| self.unit != Unit::Count || tick.fract().abs() < 1e-9;
        ticks.into_iter().filter(is_meant).map(|tick| (tick, self.label(tick))).collect()
    }

    fn label(&self, value: f64) -> String {
        match self.unit {
            Unit::Plain | Unit::Count => short(value),
            Unit::Micros => micros(value),
            Unit::Percent => format!("{value:.0} %"),
            Unit::Nines => format!("{:.*} %", (value.log10() - 2.0).max(0.0) as usize, 100.0 - 100.0 / value),
        }
    }

    /// What a script needs to tell the value at a place: division, ends in values and in places, unit.
    pub(super) fn description(&self, scale: &Scale) -> String {
        let unit = match self.unit {
            Unit::Plain | Unit::Count => "n",
            Unit::Micros => "t",
            Unit::Percent => "p",
            Unit::Nines => "9",
        };
        format!("{} {unit}", scale.description())
    }
}

/// `500`, `20k`, `1.5M`.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{}M", tick_label(value / 1e6)),
        large if large >= 1e4 => format!("{}k", tick_label(value / 1e3)),
        _ => tick_label(value),
    }
}

fn micros(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        small if small < 1.0 => format!("{} ns", tick_label(value * 1e3)),
        middle if middle < 1e3 => format!("{} µs", tick_label(value)),
        large if large < 1e6 => format!("{} ms", tick_label(value / 1e3)),
        _ => format!("{} s", tick_label(value / 1e6)),
    }
}

/// Up to a decade and a half, the least value of a linear axis still stands apart from zero.
const LINEAR_SPAN_MAX: f64 = 30.0;
const NINES: [f64; 8] = [2.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(axis: &Axis, values: &[f64], expect: &[&str]) {
        let scale = axis.scale(values.iter().copied(), 0.0, 100.0);
        let labels: Vec<String> = axis.ticks(&scale).into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, expect);
    }

    #[test]
    fn ticks_are_written_in_the_unit_that_keeps_them_short() {
        check(&Axis::micros("t"), &[0.5, 3e6], &["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
        check(&Axis::linear("n"), &[30_000.0], &["0", "5,000", "10k", "15k", "20k", "25k", "30k"]);
        check(&Axis::count("n"), &[1.0, 3.0], &["0", "1", "2", "3"]);
        check(&Axis::percent("share"), &[3.0], &["0 %", "25 %", "50 %", "75 %", "100 %"]);
    }

    #[test]
    fn nines_are_percentiles() {
        check(&Axis::nines("p"), &[2.0, 1e5], &["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]);
    }

    #[test]
    fn an_axis_that_fits_is_logarithmic_where_its_values_span_decades_and_says_so() {
        let settled = |values: &[f64]| Axis::fitting("ms").settled(values.iter().copied());
        let (near, far) = (settled(&[20.0, 500.0]), settled(&[8.0, 9_000.0, f64::INFINITY]));
        assert_eq!((near.title.as_str(), far.title.as_str()), ("ms", "ms (logarithmic)"));
        check(&near, &[20.0, 500.0], &["0", "100", "200", "300", "400", "500"]);
        check(&far, &[8.0, 9_000.0], &["10", "20", "50", "100", "200", "500", "1,000", "2,000", "5,000"]);
        assert_eq!(settled(&[0.0, 9_000.0]).title, "ms", "zero has a place");
        assert_eq!(settled(&[]).title, "ms");
        assert_eq!(Axis::linear("ms").settled([1.0, 1e6].into_iter()).title, "ms", "told to be linear");
    }

    #[test]
    fn a_shared_range_holds_what_is_not_drawn() {
        check(&Axis::linear("n").over(0.0, 6.0), &[1.0], &["0", "1", "2", "3", "4", "5", "6"]);
        check(&Axis::micros("t").over(1.0, 1e5), &[50.0], &["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"]);
    }
}
