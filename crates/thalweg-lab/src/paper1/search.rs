//! The search before the measurement: each method's parameters are tried "until the best performance", as the paper did, and every
//! trial is kept.
//!
//! One parameter after the other: all values of its grid are tried alternately in one round-robin, the others staying at the best known
//! so far; then the middle between the best value and its neighbours. That is bounded, and it finds the best of parameters that do not
//! depend on each other; for others it finds a good one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::station::PackingLimits;

/// Something that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunedParameter {
    /// Bytes that coalescing or batching collects.
    MaxBytes,
    /// Samples that coalescing or batching collects; 0 for any number.
    MaxSamples,
    /// Microseconds that a sample waits for others.
    FlushDelayUs,
    /// Bytes of the samples into which an application packs others.
    WrapBytes,
    /// Microseconds that an application waits between two segments.
    PauseUs,
    /// Bytes of the receive buffer.
    ReceiveBufferBytes,
}

impl TunedParameter {
    /// Its name in tables.
    pub fn text(self) -> &'static str {
        match self {
            TunedParameter::MaxBytes => "max_bytes",
            TunedParameter::MaxSamples => "max_samples",
            TunedParameter::FlushDelayUs => "max_flush_delay, µs",
            TunedParameter::WrapBytes => "bytes of a wrapped sample",
            TunedParameter::PauseUs => "pause between segments, µs",
            TunedParameter::ReceiveBufferBytes => "receive buffer, bytes",
        }
    }
}

/// Parameters and their values; what is missing has the middleware's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(pub BTreeMap<TunedParameter, u64>);

impl Settings {
    /// The same with one parameter set.
    pub fn with(&self, parameter: TunedParameter, value: u64) -> Settings {
        let mut out = self.clone();
        out.0.insert(parameter, value);
        out
    }

    /// The same with everything that `others` sets.
    pub fn with_all(&self, others: &Settings) -> Settings {
        let mut out = self.clone();
        out.0.extend(&others.0);
        out
    }

    /// Limits of coalescing and batching.
    pub fn limits(&self) -> PackingLimits {
        let default = PackingLimits::default();
        PackingLimits {
            max_bytes: self.get(TunedParameter::MaxBytes).unwrap_or(default.max_bytes),
            max_samples: self.get(TunedParameter::MaxSamples).filter(|count| *count > 0),
            max_flush_delay_us: self.get(TunedParameter::FlushDelayUs).unwrap_or(default.max_flush_delay_us),
        }
    }

    /// Bytes of a wrapped sample.
    pub fn wrap_bytes(&self) -> u64 {
        self.get(TunedParameter::WrapBytes).unwrap_or(WRAP_BYTES)
    }

    /// Pause between two writes in microseconds.
    pub fn pause_us(&self) -> u64 {
        self.get(TunedParameter::PauseUs).unwrap_or(0)
    }

    /// Receive buffer to ask for.
    pub fn receive_buffer_bytes(&self) -> Option<u64> {
        self.get(TunedParameter::ReceiveBufferBytes)
    }

    /// The parameters that are no limits of a method, for where those are told already.
    pub fn beside_limits(&self) -> Settings {
        let limits = [TunedParameter::MaxBytes, TunedParameter::MaxSamples, TunedParameter::FlushDelayUs];
        Settings(self.0.iter().filter(|(parameter, _)| !limits.contains(parameter)).map(|(p, v)| (*p, *v)).collect())
    }

    fn get(&self, parameter: TunedParameter) -> Option<u64> {
        self.0.get(&parameter).copied()
    }

    /// `max_bytes 32,000, max_flush_delay, µs 500`; `defaults` when nothing is set.
    pub fn to_text(&self) -> String {
        let one = |(parameter, value): (&TunedParameter, &u64)| {
            format!("{} {}", parameter.text(), crate::figures::grouped(*value))
        };
        let all: Vec<String> = self.0.iter().map(one).collect();
        if all.is_empty() { "defaults".to_owned() } else { all.join("; ") }
    }
}

/// The values of a parameter that are tried; the first is where the search starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) parameter: TunedParameter,
    pub(super) values: Vec<u64>,
    /// Whether values between those of the grid mean something.
    pub(super) is_continuous: bool,
}

/// A search and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The goal of the search.
    pub subject: String,
    /// The figure of a trial.
    pub objective: String,
    /// Every trial, in the order they were made.
    pub trials: Vec<Trial>,
    /// The best settings.
    pub best: Settings,
}

/// Some settings and how good they were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which parameter was varied.
    pub parameter: TunedParameter,
    /// `coarse` for the grid, `fine` for values between.
    pub pass: String,
    /// The trials.
    pub settings: Settings,
    /// The objective, less is better; missing when it failed.
    #[serde(flatten)]
    pub measured: Option<MeasuredSettings>,
}

/// The figure of some settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSettings {
    /// The objective in milliseconds.
    pub ms: f64,
    /// Its standard error as a share of it, estimated from the scatter of the runs.
    pub error: f64,
}

impl MeasuredSettings {
    /// Joins the runs of several bursts: the geometric mean of their medians. `None` without any run.
    ///
    /// The scatter is taken from the median of the deviations from the median, so that a single disturbed run does not hide what the
    /// others agree on.
    pub(super) fn of(bursts: &[&[f64]]) -> Option<MeasuredSettings> {
        let median = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            Some(f64::midpoint(*sorted.get((sorted.len().checked_sub(1)?) / 2)?, *sorted.get(sorted.len() / 2)?))
        };
        let (mut logarithms, mut squares) = (0.0, 0.0);
        for runs in bursts {
            let centre = median(runs).filter(|centre| *centre > 0.0)?;
            let deviations: Vec<f64> = runs.iter().map(|run| (run - centre).abs()).collect();
            logarithms += centre.ln();
            // 1.48 makes a standard deviation of it, 1.25 the error of a median of that of a mean.
            squares += (1.48 * 1.25 * median(&deviations)? / centre).powi(2) / runs.len() as f64;
        }
        let count = bursts.len() as f64;
        (!bursts.is_empty()).then(|| MeasuredSettings { ms: (logarithms / count).exp(), error: squares.sqrt() / count })
    }

    /// Whether it is faster than `other` by more than [`MARGIN`] and by more than twice what chance does.
    fn is_clearly_faster_than(self, other: MeasuredSettings) -> bool {
        let error = (self.error.powi(2) + other.error.powi(2)).sqrt();
        (other.ms / self.ms).ln() > (2.0 * error).max(MARGIN.ln())
    }
}

/// Searches `grids`, starting from `start`. `measure` tries several settings against each other.
///
/// # Errors
/// The error of `measure`.
pub(super) fn search(
    (subject, objective): (String, String),
    start: Settings,
    grids: &[Grid],
    is_fine: bool,
    mut measure: impl FnMut(&[Settings]) -> Result<Vec<Option<MeasuredSettings>>, LabError>,
) -> Result<Search, LabError> {
    let mut out = Search { subject, objective, trials: Vec::new(), best: start };
    let passes: &[&str] = if is_fine { &["coarse", "fine"] } else { &["coarse"] };
    for pass in passes {
        for grid in grids {
            let known = out.best.get(grid.parameter);
            let values = match *pass {
                "coarse" => grid.values.clone(),
                _ if grid.is_continuous => between(&grid.values, known),
                _ => continue,
            };
            if values.len() < 2 {
                continue;
            }
            let candidates: Vec<Settings> = values.iter().map(|value| out.best.with(grid.parameter, *value)).collect();
            let measured = measure(&candidates)?;
            out.best = best_of(&candidates, &measured).unwrap_or(&out.best).clone();
            let pass = (*pass).to_owned();
            let trial =
                |(settings, measured)| Trial { parameter: grid.parameter, pass: pass.clone(), settings, measured };
            out.trials.extend(candidates.into_iter().zip(measured).map(trial));
        }
    }
    Ok(out)
}

/// The fastest, unless the first, which is the default or the known one, is as good within what can be told.
fn best_of<'a>(candidates: &'a [Settings], measured: &[Option<MeasuredSettings>]) -> Option<&'a Settings> {
    let tried = candidates.iter().zip(measured).filter_map(|(settings, measured)| Some((settings, (*measured)?)));
    let (best, fastest) = tried.min_by(|a, b| a.1.ms.total_cmp(&b.1.ms))?;
    match (candidates.first(), measured.first()) {
        (Some(first), Some(Some(known))) if !fastest.is_clearly_faster_than(*known) => Some(first),
        _ => Some(best),
    }
}

/// The known value first, then the geometric middle between it and its neighbours on the grid.
fn between(grid: &[u64], known: Option<u64>) -> Vec<u64> {
    let Some(known) = known else { return Vec::new() };
    let mut sorted = grid.to_vec();
    sorted.sort_unstable();
    let below = sorted.iter().rev().find(|value| **value < known);
    let above = sorted.iter().find(|value| **value > known);
    let middle = |other: &u64| ((*other as f64).max(1.0) * known as f64).sqrt().round() as u64;
    let mut out = vec![known];
    out.extend(below.into_iter().chain(above).map(middle).filter(|value| *value != known && *value > 0));
    out
}

/// What an application packs into one sample where nothing was searched: as much as one datagram on loopback takes.
const WRAP_BYTES: u64 = 60_000;
/// Smaller differences are noise of a few runs.
const MARGIN: f64 = 1.02;

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(parameter: TunedParameter, values: &[u64], is_continuous: bool) -> Grid {
        Grid { parameter, values: values.to_vec(), is_continuous }
    }

    /// Searches for the minimum of `cost`.
    fn find(grids: &[Grid], cost: impl Fn(&Settings) -> Option<f64>) -> Search {
        let titles = ("subject".to_owned(), "objective".to_owned());
        let measured = |ms| MeasuredSettings { ms, error: 0.001 };
        let measure = |candidates: &[Settings]| Ok(candidates.iter().map(|one| cost(one).map(measured)).collect());
        search(titles, Settings::default(), grids, true, measure).expect("measured")
    }

    #[test]
    fn the_best_of_independent_parameters_is_found_and_refined() {
        let grids = [
            grid(TunedParameter::MaxBytes, &[60_000, 4_000, 16_000], true),
            grid(TunedParameter::MaxSamples, &[0, 64, 256], false),
        ];
        // Best near 28,000 bytes, with 64 samples.
        let cost = |settings: &Settings| {
            let bytes = settings.limits().max_bytes as f64;
            let samples = if settings.limits().max_samples == Some(64) { 0.0 } else { 10.0 };
            Some(10.0 + (bytes / 28_000.0).ln().abs() * 5.0 + samples)
        };
        let found = find(&grids, cost);
        assert_eq!(found.best.limits().max_samples, Some(64));
        assert_eq!(found.best.limits().max_bytes, 30_984, "between 16,000 and 60,000: {found:?}");
        assert!(found.trials.iter().any(|trial| trial.pass == "fine"));
        assert_eq!(found.trials.iter().filter(|trial| trial.pass == "coarse").count(), 6);
    }

    #[test]
    fn noise_does_not_beat_the_first_value() {
        let found = find(&[grid(TunedParameter::PauseUs, &[0, 50], false)], |settings| {
            Some(if settings.pause_us() == 50 { 9.9 } else { 10.0 })
        });
        assert_eq!(found.best.pause_us(), 0);
    }

    #[test]
    fn what_lies_within_the_scatter_of_the_runs_does_not_beat_the_first_value() {
        let steady = [10.0, 10.1, 9.9, 10.0];
        let faster = [9.0, 9.1, 8.9, 9.0];
        let rough = [4.0, 9.0, 14.0, 5.0];
        let of = |runs: &[f64]| MeasuredSettings::of(&[runs]).expect("runs");
        assert!((of(&steady).ms - 10.0).abs() < 1e-9 && of(&steady).error < 0.01, "{:?}", of(&steady));
        assert!(of(&faster).is_clearly_faster_than(of(&steady)));
        assert!(!of(&rough).is_clearly_faster_than(of(&steady)), "{:?}", of(&rough));
        let disturbed = [9.0, 9.1, 500.0, 8.9, 9.0];
        assert!(of(&disturbed).is_clearly_faster_than(of(&steady)), "one disturbed run hides nothing");
        let two = MeasuredSettings::of(&[&[2.0][..], &[8.0]]).expect("runs");
        assert!((two.ms - 4.0).abs() < 1e-9, "the geometric mean");
        assert_eq!((MeasuredSettings::of(&[]), MeasuredSettings::of(&[&[]])), (None, None));
    }

    #[test]
    fn what_fails_is_never_best() {
        let found = find(&[grid(TunedParameter::WrapBytes, &[1_000, 60_000], false)], |settings| {
            (settings.wrap_bytes() == 60_000).then_some(50.0)
        });
        assert_eq!(found.best.wrap_bytes(), 60_000);
        assert_eq!(found.trials.iter().filter(|trial| trial.measured.is_none()).count(), 1);
        let none = find(&[grid(TunedParameter::WrapBytes, &[1_000, 60_000], false)], |_| None);
        assert_eq!(none.best, Settings::default());
    }

    #[test]
    fn settings_survive_json() {
        let settings = Settings::default().with(TunedParameter::MaxBytes, 9).with(TunedParameter::FlushDelayUs, 5);
        let text = serde_json::to_string(&settings).expect("json");
        assert_eq!(text, r#"{"max_bytes":9,"flush_delay_us":5}"#);
        assert_eq!(serde_json::from_str::<Settings>(&text).expect("json"), settings);
    }
}
