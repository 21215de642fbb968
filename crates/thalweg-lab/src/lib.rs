//! Experiments on data distribution: separate processes move real data, honest statistics describe it, a report shows it.
//!
//! * [`benchmark`] lets contenders do work on demand, in turns; [`quick()`] is the one of the first minute;
//! * [`paper1`] repeats the tables and figures of a paper on transmission methods, beside other vendors' programs;
//! * [`paper2`] asks a paper's question again, whether multicast helps, by scenarios on several hosts;
//! * [`paper3`] repeats the tables and figures of a paper on uncompressed video, and lets other programs send the same picture;
//! * [`paper5`] repeats the figures of a paper on adaptive handler pools, with CoAP servers of other middleware beside ours;
//! * [`paper4`] repeats a paper on a ROS 2 system, with every middleware in turns, and [`driving`] the traffic of its vehicle;
//! * `preset` is what `paper3` and `paper5` have in common;
//! * `parts` runs the presets that consist of several scenarios;
//! * `scenario` reads files that describe a measurement;
//! * `trial` makes one run of a scenario and follows every sample;
//! * `study` makes all runs of a scenario in a directory that can be resumed and verified;
//! * [`directories`] resumes, verifies, reports and compares such directories, whatever experiment made them;
//! * [`peers`] finds and builds the programs that measure other middleware;
//! * [`perf`] measures latency and throughput between processes;
//! * [`profile`] holds the best settings found on a machine, in a file that programs load;
//! * [`profile_maker`] chooses settings for a rate, size, deadline and budget by measurements;
//! * [`station`] is the lab's way to the middleware;
//! * [`coap_load`] makes load for CoAP servers and verifies their answers;
//! * `statistics` summarizes a set of runs, and refuses quantiles of too few values;
//! * [`host`] describes the machine and its other load;
//! * [`agent`] lets other machines take part;
//! * [`process`] starts, hears and ends the processes of an experiment;
//! * [`pages`] shows the results of earlier runs; tables, figures and pages are those of `thalweg-report`.
#![forbid(unsafe_code)]

pub mod agent;
pub mod benchmark;
mod circumstances;
pub mod coap_load;
pub mod directories;
mod driving;
mod error;
#[cfg(test)]
mod fixtures;
mod length;
mod network;
pub mod pages;
pub mod paper1;
pub mod paper2;
pub mod paper3;
pub mod paper4;
pub mod paper5;
mod parts;
pub mod peers;
pub mod perf;
mod preset;
pub mod process;
pub mod profile;
pub mod profile_maker;
mod progress;
mod quick;
mod scenario;
pub mod station;
mod statistics;
mod study;
mod trial;
mod worker;

pub use driving::driving;
pub use error::LabError;
pub use length::Length;
pub use parts::{Part, PartResult};
pub use preset::{ContenderFacts, Missing, PresetPlan, PresetResult, PresetTerms};
pub use quick::{PHASE_S, quick};
pub use scenario::{ReliabilitySetting, Scenario};
pub use thalweg_host as host;
pub use thalweg_settings::nearest;

use thalweg_report::{figures, page as report, plot, table};
pub use worker::run_worker;
