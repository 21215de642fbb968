//! Benchmarks: what contenders do on demand and as fast as they can, in turns, with the ratios that are expected between them.
//!
//! A run is one contender at one piece of [work](WorkPlan): a series of bursts, a stream, round trips, or a topic in a hurry beside
//! transfers. `lab quick`, the tables of paper 1 and the comparison with other middleware are such files.

mod beside;
mod bursts;
mod cells;
mod contender;
mod contest;
mod observations;
mod plan;
mod presentation;
mod ratios;
mod result;
mod sorted;
mod study;

pub(crate) use beside::{BesideOrder, receive, send};
pub(crate) use bursts::{BurstOrder, publish, subscribe};
pub use cells::{BenchmarkCell, Deed};
pub use contender::{ContenderPlan, LinkTable};
pub(crate) use observations::{Timed, fastest, rounded_factor, timed};
pub use plan::{Benchmark, Place, RatioExpectation, WorkPlan, WorkTask};
pub(crate) use presentation::{PaperFigures, method, sections, usage, warnings};
pub use presentation::{page, to_text};
pub use result::{BenchmarkCellRuns, BenchmarkResult, BenchmarkRun, JudgedRatio};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::example;
