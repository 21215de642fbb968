//! The result of `lab run paper5`, complete enough to draw its page again.

use serde::{Deserialize, Serialize};

use super::cell::ServerCell;
use super::observed::ServerLine;
use super::plan::Paper5Plan;
use crate::coap_load::LoadResult;
use crate::host::Conditions;
use crate::preset::PresetResult;
use crate::study::CellResult;

/// The whole result; `results.json` is this.
pub type Paper5Result = PresetResult<Paper5Plan, ServerCell, Run>;

/// The runs of one cell.
pub type ServerCellRuns = CellResult<ServerCell, Run>;

/// One run: a server of its own under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which round it belongs to, from 0.
    pub round: u32,
    /// Its clients' figures.
    pub load: LoadResult,
    /// Resources that the server used.
    pub server: ServerUsage,
    /// The server's own statistics; Thalweg alone, where laws are compared.
    pub lines: Vec<ServerLine>,
    /// Other load on the machine.
    pub conditions: Conditions,
}

/// Resources that a server used while requests were counted, besides the generator's figures ([`LoadResult::server`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// The most memory in MiB.
    pub resident_max_mib: f64,
    /// The most threads.
    pub threads_max: u64,
    /// Energy of all processor packages in joules, the generator's work and everybody else's included; missing where the host does
    /// not tell.
    pub energy_j: Option<f64>,
}

impl Run {
    /// Right answers for each second of the server's processor time.
    pub fn served_per_cpu_s(&self) -> Option<f64> {
        self.load.server.as_ref()?.served_per_cpu_s
    }

    /// Share of the counted requests without a verified answer, 0 to 1.
    pub fn loss(&self) -> f64 {
        let counts = &self.load.counts;
        1.0 - counts.served as f64 / counts.offered.max(1) as f64
    }

    /// Share of one processor that the server used.
    pub fn cpu_share(&self) -> Option<f64> {
        self.load.server.as_ref().map(|server| server.cpu_s / self.load.seconds)
    }

    /// Datagrams that the server took a second, as far as it tells (the paper's NR).
    pub fn received_per_s(&self) -> Option<f64> {
        self.rate(|line| line.at_s, |line| line.received)
    }

    /// Requests that its handlers finished a second, as far as it tells (the paper's H).
    pub fn handled_per_s(&self) -> Option<f64> {
        self.rate(ServerLine::handled_at_s, ServerLine::handled)
    }

    /// How fast a count grew between the first and the last line within the counted time.
    fn rate(&self, at: fn(&ServerLine) -> f64, count: fn(&ServerLine) -> u64) -> Option<f64> {
        let within = |line: &&ServerLine| (0.0..=self.load.seconds).contains(&at(line));
        let first = self.lines.iter().find(within)?;
        let last = self.lines.iter().rev().find(within)?;
        let seconds = at(last) - at(first);
        (seconds > 0.0).then(|| (count(last) - count(first)) as f64 / seconds)
    }
}
