//! The quick scenario: the three kinds of data of paper 1 between separate processes on this host, in about a minute.

pub(crate) mod duel;
pub(crate) mod observations;
pub(crate) mod presentation;
mod result;
pub(crate) mod sorted;
mod study;

pub use presentation::{page, to_text};
pub use result::{
    Background, BurstCell, Foreground, LatencyPoint, QuickCell, QuickCellRuns, QuickPart, QuickResult, QuickRun,
};
pub(crate) use study::QuickStudy;
pub use study::{QuickPlan, run};

#[cfg(test)]
mod tests;
