//! Scenario files: what is measured and how, in TOML with the schema `thalweg.scenario/1`.
//!
//! Whatever is read is honoured; what is not built yet is refused and so is every key that nobody knows. Errors name the file, the line,
//! the column, what is allowed and the nearest known word.

mod cells;
mod expectation;
mod fields;
mod matrix;
mod network;
mod sections;
mod sending;
mod traffic;

pub use cells::{Build, Cell, Load, Topics};
pub use expectation::{Expectation, Quantity, Relation};
pub use fields::ScenarioError;
#[cfg(test)]
pub(crate) use network::LossBursts;
pub use network::{HostKind, HostPlan, Impairment, LinkPlan, Machine, SshMachine, Switch};
pub(crate) use sections::{RELIABILITY, name_in};
pub use sending::CellSending;
pub use thalweg_lab_station::{HistorySetting, PublisherPhase, Qos, ReliabilitySetting, Wake};
pub(crate) use traffic::flows_in;
pub use traffic::{ChainStage, TrafficFlow};

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::station::Wait;
use crate::study::read_text;

/// A scenario that can be run as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Decides the order of the runs. Default 1.
    pub seed: u64,
    /// What is compared, in the order of the file; the first one is the baseline. Of kinds of traffic in the same run the cells stand one
    /// after the other.
    pub cells: Vec<Cell>,
    /// The program of another build of the same middleware, which takes turns with this one and is its baseline.
    pub against: Option<PathBuf>,
    /// Between which hosts; none means that all endpoints live on this one.
    pub hosts: Option<HostPlan>,
    /// What lies between the hosts.
    pub link: LinkPlan,
    /// How samples are delivered.
    pub qos: Qos,
    /// What runs where.
    pub process: Process,
    /// When samples are due, and how many runs there are.
    pub schedule: Schedule,
    /// What has to hold in every cell, or in those of a flow.
    pub expectations: Vec<Expectation>,
    /// What the results are to say of the scenario, such as what a preset left out.
    pub notes: Vec<String>,
    /// How quiet the machine has to be.
    pub gate: Gate,
    /// Every how many samples of each writer the layers are traced; missing: they are not.
    pub trace: Option<NonZeroU32>,
}

impl Scenario {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.scenario/1";

    /// Reads the scenario in `path`; returns it with the file's text.
    ///
    /// # Errors
    /// The file cannot be read or is no scenario; the text names the place.
    pub fn load(path: &Path) -> Result<(Scenario, String), LabError> {
        let text = read_text(path)?;
        let scenario = Scenario::parse(&path.display().to_string(), &text)?;
        Ok((scenario, text))
    }

    /// Reads a scenario's text; `file` stands in errors.
    ///
    /// # Errors
    /// It is not TOML, has unknown keys, values that are not allowed or a combination that cannot be run.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
        sections::read(file, text)
    }

    /// What has to hold in a cell: of what its flow bounds itself, that alone.
    pub(crate) fn expectations_of(&self, cell: &Cell) -> impl Iterator<Item = &Expectation> {
        let flow = cell.flow.as_ref().map(|flow| flow.name.clone());
        let (own, common): (Vec<_>, Vec<_>) = self.expectations.iter().partition(|one| one.flow.is_some());
        let own: Vec<&Expectation> = own.into_iter().filter(|one| one.flow == flow).collect();
        let is_bound = |one: &&Expectation| own.iter().any(|other| other.quantity == one.quantity);
        let common: Vec<&Expectation> = common.into_iter().filter(|one| !is_bound(one)).collect();
        common.into_iter().chain(own)
    }

    /// Kinds of traffic in each run.
    fn flows(&self) -> usize {
        flows_in(self.cells.iter())
    }

    /// The first of the cells that are measured in the same runs as `cell`.
    pub(crate) fn leader_of(&self, cell: usize) -> usize {
        cell - cell % self.flows()
    }

    /// All cells that are measured in the same runs as `cell`.
    pub(crate) fn run_of(&self, cell: usize) -> Range<usize> {
        let first = self.leader_of(cell);
        first..(first + self.flows()).min(self.cells.len())
    }

    /// The text of a scenario with another build to compare with, the program `against`.
    pub fn text_against(text: &str, against: &Path) -> String {
        format!("against = {}\n{text}", toml::Value::from(against.display().to_string()))
    }

    /// How long all runs take, the smallest number of them and without repetitions.
    pub fn duration(&self) -> Duration {
        let runs = self.schedule.runs.min.saturating_mul((self.cells.len() / self.flows()) as u32);
        self.duration_of_run().saturating_mul(runs)
    }

    /// How long one run takes.
    pub(crate) fn duration_of_run(&self) -> Duration {
        let clocks = self.hosts.as_ref().filter(|plan| plan.kind != HostKind::Namespaces);
        let clocks = clocks.map_or(Duration::ZERO, |plan| 2 * plan.clock_span);
        self.schedule.warm_up + self.schedule.measured + clocks + OVERHEAD
    }
}

/// What runs where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// How endpoints share processes. Default one process for each.
    pub model: ProcessModel,
    /// Which CPUs they run on. Default whatever the system chooses.
    pub affinity: Affinity,
    /// How subscribers learn that data are there. Default the listener.
    pub wait: Wait,
    /// Bytes to ask for in each socket's receive buffer; the kernel keeps its own notes in it too. Default the middleware's.
    pub receive_buffer_bytes: Option<u64>,
}

/// How endpoints share processes; each endpoint is a participant of its own in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessModel {
    /// One process for each publisher and each subscriber.
    PerEndpoint,
    /// One process for all publishers and one for all subscribers.
    PerRole,
    /// One process for all.
    Single,
}

/// Which CPUs endpoints run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The system chooses.
    Free,
    /// Each endpoint on one CPU of its role's list, in turns.
    Lists {
        /// CPUs of publishers.
        publishers: Vec<usize>,
        /// CPUs of subscribers.
        subscribers: Vec<usize>,
    },
}

/// When samples are due, and how many runs there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Samples of this time at the start are sent and not counted. Default 1 s.
    pub warm_up: Duration,
    /// Length of the measurement.
    pub measured: Duration,
    /// Whether more than the warm-up is dropped. Default no.
    pub settle: Settle,
    /// Runs of each cell.
    pub runs: Runs,
    /// In what order cells take turns. Default ABBA.
    pub design: Design,
    /// A sample that arrives within this time after it was due is in time; missing means the period.
    pub in_time: Option<Duration>,
    /// A sample that cannot be written within this time after it was due is not sent at all. Default 1 s.
    pub behind_max: Duration,
    /// Whether the publishers' samples are due at the same time. Default spread over the period.
    pub phase: PublisherPhase,
    /// How a publisher waits for the time of a sample. Default sleep.
    pub wake: Wake,
    /// Subscribers wait for missing samples until nothing came for so long. Default 1 s.
    pub drain: Duration,
    /// How long endpoints look for each other before the run is given up. Default 30 s.
    pub matching: Duration,
}

/// Whether the beginning of a measurement is dropped beyond the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settle {
    /// It is not.
    No,
    /// As far as MSER-5 finds latencies unsettled in steps of 100 ms, at most 30 % of the time.
    Mser,
}

/// Runs of each cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// So many in any case.
    pub min: u32,
    /// Not more, sure or not.
    pub max: u32,
    /// Between these two the runs end when all of this is known.
    pub precision: Precision,
}

/// How well something is to be known: half the width of its 95 % interval, as a share of the ratio to its baseline, or of the value
/// itself of a cell that is compared with nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The median response latency.
    pub p50: Option<f64>,
    /// The 99th percentile of the response latency.
    pub p99: Option<f64>,
}

/// In what order cells take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Design {
    /// Blocks of two rounds: all cells in an order that chance gives, then in the reverse order.
    Abba,
    /// Round after round in the order of the file.
    Sequential,
}

/// How quiet the machine has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Largest share of a run's CPU time that other programs and the hypervisor's other guests may take together; in a single second
    /// [`SECOND_FACTOR`](Gate::SECOND_FACTOR) times as much. Default 1 %.
    pub others: f64,
    /// Largest share of a second in which a task waited for a CPU, ours included (PSI). Default no limit.
    pub pressure: Option<f64>,
    /// A run with a larger share of seconds beyond these limits is repeated. Default 2 %.
    pub bad_seconds: f64,
    /// Attempts at each run; the last one counts and is marked. Default 3.
    pub attempts: u32,
}

impl Gate {
    /// A single second of which others take so many times as much as they may of the whole run shows in its percentiles.
    pub const SECOND_FACTOR: f64 = 5.0;
}

/// Start, match and drain of a run, as an expectation for the time that is told before.
const OVERHEAD: Duration = Duration::from_millis(2_500);

#[cfg(test)]
mod tests;
