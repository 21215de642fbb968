//! The quick scenario: the three kinds of data of paper 1 between separate processes on this host, in about a minute.

pub(crate) mod duel;
pub(crate) mod observations;
pub(crate) mod presentation;
mod result;
pub(crate) mod scenario;

pub use presentation::{to_html, to_text};
pub use result::{Background, BurstCell, Foreground, LatencyPoint, QuickResult};
pub use scenario::{QuickPlan, run};

#[cfg(test)]
mod tests;
