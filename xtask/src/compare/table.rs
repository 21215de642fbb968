//! Medians, ratios and verdicts, and how they are shown.

use serde_json::{Value, json};

use super::contestant::{Entry, Who};
use super::rows::{Aim, ComparisonRow, PrintedFigure, RatioAim, RowGroup};

/// Figures of the runs of a row.
pub struct Measured {
    pub group: RowGroup,
    pub row: ComparisonRow,
    /// The figures of each run, for each entry of the row.
    pub runs: Vec<Vec<Value>>,
}

/// Whether an aim is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AimVerdict {
    Reached,
    Missed,
    /// One side has no figure.
    Open,
}

impl AimVerdict {
    pub fn text(self) -> &'static str {
        match self {
            AimVerdict::Reached => "reached",
            AimVerdict::Missed => "MISSED",
            AimVerdict::Open => "NOT MEASURED",
        }
    }
}

/// The outcome of an aim.
#[derive(Debug, PartialEq)]
pub struct Judged {
    /// The best of those that we are compared with; `None` if none of them has a figure.
    pub best: Option<Entry>,
    pub ratio: Option<f64>,
    pub verdict: AimVerdict,
}

impl RatioAim {
    fn allows(self, ratio: f64) -> bool {
        match self {
            RatioAim::AtLeast(limit) => ratio >= limit,
            RatioAim::AtMost(limit) => ratio <= limit,
        }
    }

    fn text(self) -> String {
        match self {
            RatioAim::AtLeast(limit) => format!("≥ {limit:.2}"),
            RatioAim::AtMost(limit) => format!("≤ {limit:.2}"),
        }
    }
}

impl Measured {
    /// The median over the runs of an entry.
    pub fn median(&self, entry: Entry, figure: PrintedFigure) -> Option<f64> {
        let place = self.row.entries.iter().position(|own| *own == entry)?;
        let values: Vec<f64> = self.runs.get(place)?.iter().filter_map(|run| figure.of(run).ok()).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    pub fn judge(&self, aim: &Aim) -> Judged {
        let value = |entry: Entry| self.median(entry, aim.figure);
        let others = aim.against.iter().filter_map(|entry| value(*entry).map(|value| (*entry, value)));
        let better = |a: f64, b: f64| if aim.figure.is_rate() { a > b } else { a < b };
        let best = others.reduce(|best, other| if better(other.1, best.1) { other } else { best });
        let ratio = value(aim.ours).zip(best).map(|(ours, (_, theirs))| ours / theirs);
        let verdict = match ratio {
            Some(ratio) if aim.limit.allows(ratio) => AimVerdict::Reached,
            Some(_) => AimVerdict::Missed,
            None => AimVerdict::Open,
        };
        Judged { best: best.map(|(entry, _)| entry), ratio, verdict }
    }

    /// The row with the figures of all its entries, and its aims.
    pub fn to_text(&self) -> String {
        let mut out = format!("\n{}: {}\n", self.group.name(), self.row.label());
        let figure = self.row.figure();
        for entry in &self.row.entries {
            let value = self.median(*entry, figure).map_or("-".to_owned(), |value| shown(value, figure));
            let floor = if entry.who == Who::Raw { "  (floor)" } else { "" };
            out.push_str(&format!("    {:<22}{value:>16}{floor}\n", entry.name()));
        }
        for aim in &self.row.aims {
            out.push_str(&format!("  {}\n", self.aim_text(aim)));
        }
        out
    }

    /// One line about an aim.
    pub fn aim_text(&self, aim: &Aim) -> String {
        let Judged { best, ratio, verdict } = self.judge(aim);
        let against = match (best, aim.against.as_slice()) {
            (Some(best), [_]) => best.name(),
            (Some(best), _) => format!("{}, the best of its peers", best.name()),
            (None, against) => against.iter().map(|entry| entry.name()).collect::<Vec<_>>().join(" or "),
        };
        let missing: Vec<String> =
            aim.against.iter().filter(|entry| self.median(**entry, aim.figure).is_none()).map(|e| e.name()).collect();
        let without = match (best, missing.as_slice()) {
            (None, _) | (_, []) => String::new(),
            (Some(_), missing) => format!(" WITHOUT {}", missing.join(", ")),
        };
        let values = match (aim.figure == self.row.figure(), best) {
            (false, Some(best)) => {
                let value = |entry| self.median(entry, aim.figure).map_or("-".to_owned(), |v| shown(v, aim.figure));
                format!(" ({} to {})", value(aim.ours), value(best))
            }
            _ => String::new(),
        };
        let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        format!(
            "{}: {} ÷ {against}{without} = {ratio}{values}, aim {}: {}",
            aim.figure.name(),
            aim.ours.name(),
            aim.limit.text(),
            verdict.text()
        )
    }

    /// All figures, for programs.
    pub fn to_json(&self) -> Value {
        let entries = self.row.entries.iter().zip(&self.runs);
        let entries: Vec<Value> = entries
            .map(|(entry, runs)| json!({"program": entry.who.name(), "setting": entry.setting, "runs": runs}))
            .collect();
        let aims = self.row.aims.iter().map(|aim| {
            let Judged { best, ratio, verdict } = self.judge(aim);
            let limit = match aim.limit {
                RatioAim::AtLeast(limit) => json!({ "at_least": limit }),
                RatioAim::AtMost(limit) => json!({ "at_most": limit }),
            };
            json!({
                "figure": aim.figure.key().0,
                "ours": aim.ours.name(),
                "against": aim.against.iter().map(|entry| entry.name()).collect::<Vec<_>>(),
                "best": best.map(Entry::name),
                "ratio": ratio,
                "aim": limit,
                "verdict": verdict.text(),
            })
        });
        let aims: Vec<Value> = aims.collect();
        json!({"group": self.group.name(), "row": self.row.label(), "entries": entries, "aims": aims})
    }
}

/// A figure with its unit; rates in groups of three digits.
fn shown(value: f64, figure: PrintedFigure) -> String {
    let unit = figure.key().1;
    if !figure.is_rate() {
        let digits = if value < 10.0 { 2 } else { 1 };
        return format!("{value:.digits$} {unit}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {unit}")
}

/// The middle value, or the mean of the middle two; not a number if there is none.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}
