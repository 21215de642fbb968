//! One run of one cell: publishers and subscribers in processes of their own, every sample followed from the moment it was due.
//!
//! The schedule is open: sample k is due at t0 + k/f whatever happened to those before it. Its fate for each pair of a publisher and a
//! subscriber is in time, late, lost or not sent; its latency counts from when it was due (response) and from when it was written
//! (service), on the clock that all processes of a host share.

mod controller;
mod diary;
mod fates;
mod histograms;
mod order;
mod publisher;
mod records;
mod result;
mod site;
mod subscriber;
mod timetable;
mod traces;
mod worker;

pub(crate) use controller::{RESULT, RunContext, run};
pub(crate) use diary::load as load_seconds_so_far;
pub(crate) use fates::join;
pub(crate) use histograms::load as load_histograms;
pub(crate) use order::TrialOrder;
pub use order::{PublisherReport, SubscriberReport};
pub(crate) use records::Raw;
pub use result::{
    Fairness, LatencyFigures, PairResult, ProcessReport, PublisherResult, Totals, TrialConditions, TrialResult,
};
pub(crate) use traces::{label, read as read_traces, spans};
pub(crate) use worker::work;
#[cfg(test)]
pub(crate) use {
    histograms::write as write_histograms,
    records::{Received, Written},
};

#[cfg(test)]
mod tests;
