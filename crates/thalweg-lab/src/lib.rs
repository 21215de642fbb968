//! Experiments on data distribution: separate processes move real data, honest statistics describe it, a report shows it.
//!
//! * [`statistics`] computes what a set of runs amounts to, and refuses quantiles that too few values carry;
//! * [`host`] tells what the machine is and what else it did;
//! * [`process`] starts, hears and ends the processes of an experiment;
//! * [`plot`] draws figures as SVG.
#![forbid(unsafe_code)]

mod error;
pub mod figures;
pub mod host;
pub mod plot;
pub mod process;
pub mod statistics;

pub use error::LabError;
