//! A scenario's runs from the first to the last, in a directory that says at any time how far they are.
//!
//! A run appears in the directory only when it is whole; results and report are written only when all runs are there. Whatever ends the
//! runs before, the directory can be resumed.

mod clocks;
mod compare;
mod course;
mod directory;
mod fingerprint;
mod judging;
mod ledger;
mod live;
mod manifest;
mod order;
mod report;
mod results;
mod tables;
mod verify;

pub use compare::{Comparability, Comparison, Difference, compare};
pub use course::{resume, run};
pub use directory::{FoundRun, find};
pub use fingerprint::Fingerprint;
pub(crate) use fingerprint::{checksum, host_parts};
pub(crate) use judging::{CPU, Judged, Measure, P50, P99, Side, judge};
pub use live::{RunSnapshot, RunWatcher};
pub use manifest::{Manifest, State};
pub(crate) use report::cells::{failures as failures_section, section as cells_section};
pub(crate) use report::disturbances;
pub use report::{Panel, page, report};
pub use results::{
    CellFailure, CellResult, Judgement, PublisherTotals, QuantileInterval, RunSummary, StudyResult, WireBytes,
};
pub(crate) use results::{latencies, load, load_json};
pub use tables::{to_csv, to_text};
pub use verify::{Verification, verify};

#[cfg(test)]
mod tests;
