//! An experiment's runs from the first to the last, in a directory that says at any time how far they are.
//!
//! A run appears in the directory only when it is whole; results and report are written only when all runs are there. Whatever ends the
//! runs before, the directory can be resumed.

mod cells;
mod clocks;
mod compare;
mod course;
mod directory;
mod error;
mod experiment;
mod fingerprint;
mod judging;
mod ledger;
mod live;
mod manifest;
mod order;
mod programs;
mod report;
mod results;
mod tables;
mod trials;
mod verify;

pub use cells::{CellFailure, CellResult};
pub use compare::{Comparability, Comparison, Difference};
pub(crate) use compare::{compare, ranged, tables as differences_tables, within};
pub(crate) use course::{begin, resume, take_up};
pub use directory::{FoundRun, find};
pub(crate) use directory::{RunName, load_json, read_text, schema_in, schema_of, write_text};
pub use error::StudyError;
pub(crate) use experiment::{CoursePlan, Experiment, StudyCell, StudyOutcome, StudyRecord, StudyRun, StudyTurn, Told};
pub(crate) use fingerprint::{checksum, host_parts, programs_of};
pub(crate) use judging::{Judged, Measure, Side, judge, judge_bounds};
pub use live::RunSnapshot;
pub(crate) use live::StudyWatcher;
pub(crate) use report::cells::{failures as failures_section, failures_table, section as cells_section};
pub(crate) use report::fates::section as fates_section;
pub use report::page;
pub(crate) use report::{CellData, comparison_cards, distinct, disturbances, raw, rewrite};
#[cfg(test)]
pub(crate) use results::WireBytes;
pub(crate) use results::load;
pub use results::{RunSummary, StudyResult};
pub(crate) use tables::{Column, cell_table};
pub use trials::run;
pub(crate) use trials::{CPU, P50, P99, ROUND_TRIP_P50, ROUND_TRIP_P99, THROUGHPUT};
pub use verify::Verification;
pub(crate) use verify::verify;

#[cfg(test)]
mod tests;
