//! The paper's figures 8 to 14: what it says, what is seen here, and why that differs.

mod detail;
mod ends;
mod executors;
mod vendors;

use super::Paper4Result;
use super::plan::{DETAIL, EXECUTORS, FAIRNESS, LAYERS, OVERLOAD, VENDORS};
use crate::figures::{duration, or_dash, percent};
use crate::parts::PartResult;
use crate::report::Section;
use crate::scenario::Cell;
use crate::study::{CellData, CellResult, P50, distinct};

/// The figures of the parts that were measured.
pub(super) fn sections(result: &Paper4Result) -> Vec<Section> {
    type Draw = fn(&PartResult) -> Option<Section>;
    let all: [(&str, Draw); 9] = [
        (VENDORS, vendors::over_time),
        (VENDORS, vendors::losses),
        (VENDORS, vendors::boxes),
        (DETAIL, detail::by_size),
        (OVERLOAD, ends::fates),
        (LAYERS, ends::layers),
        (DETAIL, detail::by_topology),
        (EXECUTORS, executors::threads),
        (FAIRNESS, ends::subscribers),
    ];
    all.iter().filter_map(|(name, draw)| draw(result.part(name)?)).collect()
}

/// A cell with its raw data, where they are at hand.
#[derive(Clone, Copy)]
struct View<'a> {
    result: &'a CellResult,
    raw: Option<&'a CellData>,
}

impl<'a> View<'a> {
    fn all(part: &'a PartResult) -> Vec<View<'a>> {
        let raw = |index: usize| part.raw.as_ref().map(|all| &all[index]);
        part.study.cells.iter().enumerate().map(|(index, result)| View { result, raw: raw(index) }).collect()
    }

    fn cell(&self) -> &'a Cell {
        &self.result.cell
    }

    fn middleware(&self) -> String {
        self.cell().middleware.to_string()
    }

    /// Median over the runs of their median latency in microseconds.
    fn p50_us(&self) -> Option<f64> {
        P50.median(self.result)
    }

    /// Mean over the runs of their mean latency in microseconds, of samples that arrived.
    fn mean_us(&self) -> Option<f64> {
        let arrived = self.result.runs.iter().map(|run| &run.totals.response).filter(|response| response.count > 0);
        let means: Vec<f64> = arrived.map(|response| response.mean_us).collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// The share of the samples due that came in time.
    fn in_time(&self) -> String {
        let due = self.result.sum(|totals| totals.due);
        percent(self.result.sum(|totals| totals.in_time) as f64 / due.max(1) as f64)
    }

    /// The larger of its numbers of publishers and subscribers.
    fn others(&self) -> u32 {
        self.cell().publishers.max(self.cell().subscribers)
    }

    /// First and third quartile in microseconds; missing where too few samples arrived.
    fn quartiles_us(&self) -> Option<(f64, f64)> {
        let all = &self.raw?.all;
        let (low, high) = (all.quantile(0.25)?, all.quantile(0.75)?);
        high.is_finite().then_some((low, high))
    }
}

/// Different values of a quantity, in the order of the cells.
fn kinds<'a, T: PartialEq>(views: &[View<'a>], of: impl Fn(&View<'a>) -> T) -> Vec<T> {
    distinct(views.iter().map(of))
}

/// The three things that stand above a figure.
fn seen(paper: &str, here: impl IntoIterator<Item = String>, why: Option<String>) -> Vec<String> {
    let here = here.into_iter().map(|sentence| format!("Here: {sentence}"));
    [format!("The paper: {paper}")].into_iter().chain(here).chain(why.map(|why| format!("Likely why: {why}"))).collect()
}

/// A latency in microseconds in the unit that keeps it short.
fn shown(us: f64) -> String {
    if us.is_finite() { duration(std::time::Duration::from_nanos((us * 1e3) as u64)) } else { "∞".to_owned() }
}

fn shown_or_dash(us: Option<f64>) -> String {
    or_dash(us, shown)
}

/// The least and the largest with their names, as a part of a sentence.
fn span(values: &[(String, f64)]) -> Option<String> {
    let order = |one: &&(String, f64), other: &&(String, f64)| one.1.total_cmp(&other.1);
    let (least, most) = (values.iter().min_by(order)?, values.iter().max_by(order)?);
    Some(format!("from {} ({}) to {} ({})", shown(least.1), least.0, shown(most.1), most.0))
}
