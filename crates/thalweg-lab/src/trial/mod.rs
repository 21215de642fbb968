//! One run of one cell: publishers and subscribers in processes of their own, every sample followed from the moment it was due, or
//! counted where publishers write in a closed loop.
//!
//! The schedule is open: sample k is due at t0 + k/f whatever happened to those before it. Its fate for each pair of a publisher and a
//! subscriber is in time, late, lost or not sent; its latency counts from when it was due (response) and from when it was written
//! (service), on the clock that all processes of a host share.

mod clocks;
mod closed_loop;
mod controller;
mod diary;
mod fates;
mod ground;
mod histograms;
mod ours;
mod places;
mod processes;
mod result;
mod site;
mod timetable;
mod traces;

pub use clocks::RunClocks;
pub(crate) use controller::{RESULT, RunContext, run};
pub(crate) use diary::load as load_seconds_so_far;
#[cfg(test)]
pub(crate) use fates::join;
pub(crate) use fates::{evaluate, in_time_ns};
pub(crate) use ground::Ground;
#[cfg(test)]
pub(crate) use histograms::write as write_histograms;
pub(crate) use histograms::{LatencyKind, load as load_histograms};
pub(crate) use ours::{TrialOrder, work};
pub(crate) use places::flow_folder;
#[cfg(test)]
pub(crate) use result::TrialConditions;
pub use result::{ClosedLoopFigures, Fairness, LatencyFigures, Totals, TrialResult};
pub(crate) use thalweg_lab_station::SoFar;
pub use thalweg_lab_station::{PublisherReport, SubscriberReport};
#[cfg(test)]
pub(crate) use thalweg_lab_station::{RawRecords, ReceivedSample, WrittenSample};
pub(crate) use traces::{label, read as read_traces, spans, write as write_traces};

#[cfg(test)]
mod tests;
