//! Figures of both ends.

use std::fmt;

use serde::Serialize;
use thalweg_video::io::Windows;

/// Frames a second, over windows of one second; null without enough of them.
#[derive(Debug, Serialize)]
pub struct FpsFigures {
    pub fps_mean: Option<f64>,
    pub fps_sd: Option<f64>,
}

impl FpsFigures {
    pub fn new(windows: &Windows) -> FpsFigures {
        let round = |figure: f64| (figure * 1000.0).round() / 1000.0;
        FpsFigures {
            fps_mean: (windows.count > 0).then(|| round(windows.mean)),
            fps_sd: windows.deviation().map(round),
        }
    }
}

impl fmt::Display for FpsFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.fps_mean, self.fps_sd) {
            (Some(mean), Some(deviation)) => write!(f, "{mean:.2} a second ± {deviation:.2}"),
            (Some(mean), None) => write!(f, "{mean:.2} a second"),
            (None, _) => f.write_str("less than a second"),
        }
    }
}

/// Processor time against time.
pub fn cost(cpu_seconds: f64, seconds: f64) -> String {
    let processors = if seconds > 0.0 { cpu_seconds / seconds } else { 0.0 };
    format!("{cpu_seconds:.2} s of processor in {seconds:.2} s: {processors:.3} processors")
}

/// Microseconds that may not be known yet.
pub fn micros_or_unknown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "unknown".to_owned(), |figure| format!("{figure:.1} µs"))
}
