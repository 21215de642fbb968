//! Experiments on data distribution: separate processes move real data, honest statistics describe it, a report shows it.
//!
//! * [`statistics`] computes what a set of runs amounts to, and refuses quantiles that too few values carry;
//! * [`host`] tells what the machine is and what else it did;
//! * [`plot`] draws figures as SVG.
#![forbid(unsafe_code)]

pub mod figures;
pub mod host;
pub mod plot;
pub mod statistics;
