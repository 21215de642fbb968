//! The stages that something passes one after the other, and what each of them lost.

use super::WIDTH;
use super::rows::label_width;
use super::svg::{Anchor, Svg};
use crate::figures::grouped;

/// One stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What it is.
    pub name: String,
    /// How much passed it, in `unit`; missing where nobody counts.
    pub passed: Option<u64>,
    /// What is counted, such as `samples`.
    pub unit: &'static str,
    /// How much was lost here, in the same unit.
    pub lost: u64,
}

/// Draws a pipe from top to bottom, as wide as what passed; what a stage lost leaves it at the right. Widths are shares of the most that
/// passed in the same unit.
pub fn ladder(title: &str, stages: &[Stage]) -> String {
    let left = label_width(stages.iter().map(|stage| stage.name.as_str()));
    let right = WIDTH - 250.0;
    let mut svg = Svg::new(WIDTH, STEP * stages.len() as f64 + 6.0, title);
    let most = |unit: &str| {
        let all = stages.iter().filter(|stage| stage.unit == unit);
        all.filter_map(|stage| Some(stage.passed? + stage.lost)).max().unwrap_or(0).max(1) as f64
    };
    for (index, stage) in stages.iter().enumerate() {
        let top = STEP * index as f64 + 3.0;
        let baseline = top + 17.0;
        svg.text("row", (left - 10.0, baseline), Anchor::End, &stage.name);
        let most = most(stage.unit);
        let width = |count: u64| (right - left) * (count as f64 / most).min(1.0);
        match stage.passed {
            Some(passed) => {
                svg.rectangle("pipe", (left, top), (width(passed).max(THINNEST), STEP - 5.0), 3.0);
                svg.text("tick", (left + 8.0, baseline), Anchor::Start, &format!("{} {}", grouped(passed), stage.unit));
            }
            None => {
                svg.rectangle("hollow", (left, top), (right - left, STEP - 5.0), 3.0);
                svg.text("tick", (left + 8.0, baseline), Anchor::Start, "not counted here");
            }
        }
        if stage.lost > 0 {
            let lost = width(stage.lost).max(THINNEST);
            svg.rectangle("loss", (right + 6.0 - lost, top), (lost, STEP - 5.0), 2.0);
            let text = format!("{} {} lost here", grouped(stage.lost), stage.unit);
            svg.text("bad", (right + 16.0, baseline), Anchor::Start, &text);
        }
    }
    svg.finish()
}

const STEP: f64 = 30.0;
const THINNEST: f64 = 3.0;
