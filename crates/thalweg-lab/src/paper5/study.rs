//! The preset as an experiment that a study repeats: a run is a server of its own under one load.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thalweg_coap::scheduler::controller::ControlLaw;

use super::answers;
use super::cell::{Contender, ServerCell};
use super::peer::CoapPeer;
use super::plan::Paper5Plan;
use super::result::{Run, ServerCellRuns};
use super::run::{self, Stage};
use crate::agent::Connection;
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::peers::Readiness;
use crate::preset::{Missing, Preset, PresetStudy, PresetTurn};
use crate::process::{Launcher, Stop};
use crate::scenario::SshMachine;
use crate::statistics::median;
use crate::study::{CellResult, Measure, Side, StudyCell, StudyRun, checksum};

/// The plan with its cells.
pub(crate) type CoapStudy = PresetStudy<Paper5Plan>;

/// A whole run as its folder keeps it.
#[derive(Serialize, Deserialize)]
pub(crate) struct CoapRunFile {
    cell: ServerCell,
    run: Run,
}

/// What the contender of `cell` served a second at most with its handler: the median of its runs at capacity so far.
fn capacity(cell: &ServerCell, so_far: &[ServerCellRuns]) -> Option<f64> {
    let is_capacity = |result: &&ServerCellRuns| {
        let one = &result.cell;
        one.is_capacity() && one.contender == cell.contender && one.handler == cell.handler
    };
    let runs = &so_far.iter().find(is_capacity)?.runs;
    median(runs.iter().map(|run| run.load.served_per_s).collect::<Vec<f64>>())
}

impl StudyRun for Run {
    const MEASURES: &'static [Measure<Run>] = &[
        Self::DONE,
        Measure { name: "response p50, µs", of: answers::P50, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "response p99, µs", of: answers::P99, more_is: Side::Worse, margin: 1.05 },
        Measure { name: "served a second", of: answers::SERVED, more_is: Side::Better, margin: 1.03 },
        Measure { name: "served a CPU second", of: answers::PER_CPU_S, more_is: Side::Better, margin: 1.03 },
        Measure { name: "memory, MiB", of: answers::RESIDENT, more_is: Side::Worse, margin: 1.05 },
    ];
    /// A thousandth of the requests matters.
    const DONE: Measure<Run> = Measure {
        name: "served, share of offered",
        of: |run| (run.load.counts.offered > 0).then(|| 1.0 - run.loss()),
        more_is: Side::Better,
        margin: 1.001,
    };

    fn round(&self) -> u32 {
        self.round
    }

    fn is_disturbed(&self) -> bool {
        self.conditions.is_disturbed()
    }

    fn is_limited(&self) -> bool {
        self.load.generator.generator_limited
    }
}

impl StudyCell for ServerCell {
    /// Thalweg with the law that it is shipped with, or else the first one, and all else alike; none for a cell that gets no verdict.
    fn baseline<'a, R>(
        cells: &'a [CellResult<ServerCell, R>],
        cell: &CellResult<ServerCell, R>,
    ) -> Option<&'a CellResult<ServerCell, R>> {
        let mut alike = cells.iter().filter(|other| other.cell.contender.is_ours() && other.cell.is_like(&cell.cell));
        let shipped = alike.clone().find(|other| other.cell.contender == Contender::Thalweg(ControlLaw::Vta));
        let baseline = shipped.or_else(|| alike.next()).filter(|_| cell.cell.is_judged)?;
        (!std::ptr::eq(baseline, cell)).then_some(baseline)
    }
}

impl Preset for Paper5Plan {
    type Record = CoapRunFile;
    /// The machine of the clients, where it is another one.
    type Site = Option<Arc<Connection>>;

    const TEXT_SCHEMA: &'static str = "thalweg.coap-servers/2";

    /// Figure by figure: an overload needs the capacity of its round.
    fn stage(&self, cell: &ServerCell) -> u64 {
        cell.figure as u64
    }

    fn facts_of(peer: CoapPeer, launcher: &Launcher) -> Result<Vec<(&'static str, String)>, String> {
        match peer.readiness(launcher.peer_folder()) {
            Readiness::Ready { program, version } => Ok(vec![("program", checksum(&program)), ("version", version)]),
            Readiness::Broken { program, reason } => Err(format!("{}: {reason}", program.display())),
            Readiness::Missing => Err("its program is not there".to_owned()),
        }
    }

    fn program_of(peer: CoapPeer, launcher: &Launcher) -> Option<PathBuf> {
        peer.find(launcher.peer_folder())
    }

    fn missing(peer: CoapPeer, why: String) -> Missing {
        Missing {
            what: format!("the CoAP server with {peer}"),
            why,
            remedy: format!("set it up with `thalweg lab peers install {peer}`, or leave it out with --peers"),
        }
    }

    fn prepare(&self, launcher: &Launcher, stop: &Stop) -> Result<Option<Arc<Connection>>, LabError> {
        let open = |host: &String| Connection::open(launcher.ssh(), &SshMachine::new(host), stop).map(Arc::new);
        self.clients_on.as_ref().map(open).transpose()
    }

    fn dependencies(clients: &Option<Arc<Connection>>) -> Vec<(String, String)> {
        let facts = clients.iter().flat_map(|agent| &agent.facts().fingerprint);
        facts.map(|(part, value)| (format!("{part} of the clients"), value.clone())).collect()
    }

    fn machines(clients: &Option<Arc<Connection>>) -> Vec<HostEnvironment> {
        let environment = |agent: &Arc<Connection>| HostEnvironment {
            name: agent.name().to_owned(),
            environment: agent.facts().environment.clone(),
        };
        clients.iter().map(environment).collect()
    }

    fn check_site(clients: &Option<Arc<Connection>>) -> Result<(), LabError> {
        clients.iter().try_for_each(|agent| agent.check_alive())
    }

    fn make(&self, cell: &ServerCell, turn: &PresetTurn<'_, Paper5Plan>) -> Result<CoapRunFile, LabError> {
        let clients = turn.site.own.as_ref();
        let stage = Stage { plan: self, launcher: turn.launcher, stop: turn.stop, clients };
        let run = run::make(cell, turn.round, capacity(cell, turn.so_far), &stage)?;
        Ok(CoapRunFile { cell: cell.clone(), run })
    }

    fn cell_of(record: &CoapRunFile) -> &ServerCell {
        &record.cell
    }

    /// The generator keeps counts and distributions, not every request: the rates are computed again from the counts.
    fn check(record: &CoapRunFile) -> Result<(), String> {
        record.run.load.check()
    }

    fn figures(record: CoapRunFile) -> Result<Run, String> {
        Ok(record.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::length::Length;
    use crate::paper5::cell::PaperFigure;
    use crate::paper5::plan::ServerSite;
    use crate::preset::PresetPlan;
    use crate::preset::checks::{check_refused, check_text};

    fn plan() -> Paper5Plan {
        Paper5Plan::new(Length::Usual, 7, ServerSite { cpus: 2, has_quotas: true })
    }

    #[test]
    fn a_plan_is_what_its_text_says() {
        check_text(Paper5Plan {
            figures: vec![PaperFigure::Pools, PaperFigure::Ramp],
            peers: vec![CoapPeer::CoapRs],
            laws: vec![ControlLaw::Fixed(3), ControlLaw::Vta],
            runs: 9,
            scale: 0.5,
            ..plan()
        });
    }

    #[test]
    fn a_text_that_is_no_plan_is_refused_with_its_place() {
        let check = |before: &str, after: &str, expect: &str| check_refused(&plan(), before, after, expect);
        check("scale", "scales", "plan.toml:7:1: unknown field `scales`");
        check("\"ramp\"", "\"rampe\"", "unknown variant `rampe`");
        check("laws = []", "laws = [\"vta-print\"]", "did you mean \"vta-printed\"");
        check("scale = 1.0", "scale = 2.0", "scale has to be");
        check("runs = 12", "runs = \"5\"", "plan.toml:6:8: invalid type");
    }

    #[test]
    fn what_gets_a_verdict_is_compared_with_thalweg_and_all_else_alike() {
        let laws = vec![ControlLaw::Fixed(9), ControlLaw::Fixed(3)];
        for (plan, first) in [(plan(), ControlLaw::Vta), (Paper5Plan { laws, ..plan() }, ControlLaw::Fixed(9))] {
            let cells: Vec<ServerCellRuns> = plan.cells().into_iter().map(CellResult::new).collect();
            for cell in &cells {
                let baseline = ServerCell::baseline(&cells, cell);
                let is_first = cell.cell.contender == Contender::Thalweg(first);
                assert_eq!(baseline.is_some(), cell.cell.is_judged && !is_first, "{}", cell.name);
                let is_alike = |other: &ServerCellRuns| {
                    other.cell.is_like(&cell.cell) && other.cell.contender == Contender::Thalweg(first)
                };
                assert!(baseline.is_none_or(is_alike), "{}", cell.name);
            }
        }
    }
}
