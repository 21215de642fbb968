//! The preset as an experiment that a study repeats: a run is a server of its own under one load.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use thalweg_coap::scheduler::controller::ControlLaw;

use super::answers;
use super::cell::{Contender, ServerCell};
use super::peer::CoapPeer;
use super::plan::{Paper5Form, Paper5Plan};
use super::presentation;
use super::result::{Paper5Result, Run, ServerCellRuns, ServerFacts};
use super::run::{self, Stage};
use crate::agent::Connection;
use crate::circumstances;
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::missing::Missing;
use crate::peers::Readiness;
use crate::process::{Launcher, Stop};
use crate::scenario::{Design, ScenarioError, SshMachine};
use crate::statistics::median;
use crate::study::{
    CellResult, CoursePlan, Experiment, Measure, RunName, Side, StudyCell, StudyError, StudyOutcome, StudyRecord,
    StudyRun, StudyTurn, Told, begin, checksum, load_json, within,
};

/// Makes all runs of the plan into the new directory `out`; loud words about what is missing by `remark`.
///
/// A cell that fails is left out from then on and named in the result.
///
/// # Errors
/// `stop` was requested, `out` holds runs already or cannot be written, or nothing at all could be measured.
pub fn run(
    plan: &Paper5Plan,
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
    remark: &dyn Fn(&str),
) -> Result<Paper5Result, LabError> {
    if let Some(fault) = plan.fault() {
        return Err(LabError::here(fault));
    }
    let (plan, missing) = with_peers_that_are_there(plan, launcher.peer_folder());
    missing.iter().for_each(|one: &Missing| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    let text = PlanText { schema: CoapStudy::SCHEMA.to_owned(), plan: plan.clone(), missing: missing.clone() };
    let text = toml::to_string(&text).map_err(LabError::here)?;
    begin((CoapStudy::new(plan, missing), &text), out, launcher, stop)
}

/// The plan without the peers whose programs are not there, which are told.
fn with_peers_that_are_there(plan: &Paper5Plan, folder: Option<&Path>) -> (Paper5Plan, Vec<Missing>) {
    let mut missing = Vec::new();
    let mut peers = Vec::new();
    for peer in &plan.peers {
        match program_of(*peer, folder) {
            Ok(_) => peers.push(*peer),
            Err(why) => missing.push(Missing {
                what: format!("the CoAP server with {peer}"),
                why,
                remedy: format!("set it up with `thalweg lab peers install {peer}`, or leave it out with --peers"),
            }),
        }
    }
    (Paper5Plan { peers, ..plan.clone() }, missing)
}

/// The program of a peer and its version, or why there is none.
fn program_of(peer: CoapPeer, folder: Option<&Path>) -> Result<(PathBuf, String), String> {
    match peer.readiness(folder) {
        Readiness::Ready { program, version } => Ok((program, version)),
        Readiness::Broken { program, reason } => Err(format!("{}: {reason}", program.display())),
        Readiness::Missing => Err("its program is not there".to_owned()),
    }
}

/// The plan with its cells.
pub(crate) struct CoapStudy {
    plan: Paper5Plan,
    cells: Vec<ServerCell>,
    /// Peers that do not take part.
    missing: Vec<Missing>,
}

/// What the runs of a study need beside this machine.
pub(crate) struct CoapSite {
    /// Name and value of what each peer and the machine of the clients are.
    parts: Vec<(String, String)>,
    /// The machine of the clients, where it is another one.
    clients: Option<Arc<Connection>>,
}

/// A plan in words; its schema says that it is one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    schema: String,
    plan: Paper5Plan,
    /// Peers that do not take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
}

/// A whole run as its folder keeps it.
#[derive(Serialize, Deserialize)]
struct CoapRunFile {
    cell: ServerCell,
    run: Run,
}

impl CoapStudy {
    /// The schema of its text.
    pub(crate) const SCHEMA: &'static str = "thalweg.coap-servers/2";

    fn new(plan: Paper5Plan, missing: Vec<Missing>) -> CoapStudy {
        CoapStudy { cells: plan.cells(), plan, missing }
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

    /// Thalweg and the peers, with the versions that were known at the beginning.
    fn contenders(&self, known: &std::collections::BTreeMap<String, String>) -> Vec<ServerFacts> {
        let ours = ServerFacts { name: "Thalweg".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let peer = |peer: &CoapPeer| {
            let version = known.get(&format!("version of {peer}")).cloned();
            ServerFacts { name: peer.to_string(), version: version.unwrap_or_else(|| "unknown".to_owned()) }
        };
        [ours].into_iter().chain(self.plan.peers.iter().map(peer)).collect()
    }
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

impl StudyOutcome for Paper5Result {
    fn to_text(&self) -> String {
        presentation::to_text(self)
    }

    fn shortcoming(&self) -> Option<String> {
        let (failed, all) = (self.failures.len(), self.cells.len());
        (failed > 0).then(|| format!("{failed} of {all} cells have no result because they failed"))
    }
}

impl Experiment for CoapStudy {
    type Cell = ServerCell;
    type Run = Run;
    type Site = CoapSite;
    type Result = Paper5Result;

    fn parse(file: &str, text: &str) -> Result<CoapStudy, LabError> {
        let error = |at: usize, message: String| ScenarioError::at(file, text, at, message);
        let read: PlanText = toml::from_str(text).map_err(|wrong: toml::de::Error| {
            error(wrong.span().map_or(0, |span| span.start), wrong.message().to_owned())
        })?;
        if let Some(fault) = read.plan.fault() {
            return Err(error(0, fault.to_owned()).into());
        }
        Ok(CoapStudy::new(read.plan, read.missing))
    }

    fn with_seed(self, seed: u64) -> CoapStudy {
        CoapStudy { plan: Paper5Plan { seed, ..self.plan }, ..self }
    }

    fn name(&self) -> &str {
        "paper5"
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    fn cells(&self) -> &[ServerCell] {
        &self.cells
    }

    fn course(&self) -> CoursePlan {
        CoursePlan {
            rounds: (self.plan.runs, self.plan.runs),
            design: Design::Abba,
            // The quick form has no time for repetitions.
            attempts_max: if self.plan.form == Paper5Form::Quick { 1 } else { 3 },
            budget: self.plan.budget(),
        }
    }

    /// Figure by figure: an overload needs the capacity of its round.
    fn stage(&self, cell: usize) -> u64 {
        self.cells[cell].figure as u64
    }

    fn takes_part(&self, cell: usize, round: u32) -> bool {
        round < self.plan.runs_of(&self.cells[cell])
    }

    fn duration_of(&self, cell: usize) -> Duration {
        Duration::from_secs_f64(self.plan.seconds_of(&self.cells[cell]))
    }

    fn prepare(&self, launcher: &Launcher, stop: &Stop) -> Result<CoapSite, LabError> {
        let open = |host: &String| Connection::open(launcher.ssh(), &SshMachine::new(host), stop).map(Arc::new);
        let clients = self.plan.clients_on.as_ref().map(open).transpose()?;
        let mut out = Vec::new();
        for (part, value) in clients.iter().flat_map(|agent| &agent.facts().fingerprint) {
            out.push((format!("{part} of the clients"), value.clone()));
        }
        for peer in &self.plan.peers {
            let program = program_of(*peer, launcher.peer_folder());
            let (program, version) = program.map_err(|why| LabError::NoPeer { peer: peer.to_string(), why })?;
            out.push((format!("program of {peer}"), checksum(&program)));
            out.push((format!("version of {peer}"), version));
        }
        Ok(CoapSite { parts: out, clients })
    }

    fn dependencies(&self, _launcher: &Launcher, site: &CoapSite) -> Result<Vec<(String, String)>, LabError> {
        Ok(site.parts.clone())
    }

    fn machines(&self, site: &CoapSite) -> Vec<HostEnvironment> {
        let environment = |agent: &Arc<Connection>| HostEnvironment {
            name: agent.name().to_owned(),
            environment: agent.facts().environment.clone(),
        };
        site.clients.iter().map(environment).collect()
    }

    fn check_site(&self, site: &CoapSite) -> Result<(), LabError> {
        site.clients.iter().try_for_each(|agent| agent.check_alive())
    }

    fn make(&self, turn: &StudyTurn<'_, CoapStudy>, folder: &Path) -> Result<(), LabError> {
        let cell = &self.cells[turn.cell];
        let clients = turn.site.clients.as_ref();
        let stage = Stage { plan: &self.plan, launcher: turn.launcher, stop: turn.stop, clients };
        let run = run::make(cell, turn.round, CoapStudy::capacity(cell, turn.so_far), &stage)?;
        let text = serde_json::to_string(&CoapRunFile { cell: cell.clone(), run }).map_err(LabError::here)?;
        let file = folder.join(RESULT);
        std::fs::write(&file, text).map_err(|source| StudyError::NotWritten { file, source }.into())
    }

    /// What a single server could not do stands in the result.
    fn goes_on_after(&self, _cell: usize, _error: &LabError, _has_failed: &dyn Fn(usize) -> bool) -> bool {
        true
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, Run)>, LabError> {
        let file: CoapRunFile = load_json(&folder.join(RESULT))?;
        Ok(vec![(name.cell as usize, file.run)])
    }

    /// The generator keeps counts and distributions, not every request: the rates are computed again from the counts, which have to add up.
    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        let file: CoapRunFile = load_json(&folder.join(RESULT)).map_err(|error| error.to_string())?;
        if file.cell != self.cells[cell] {
            return Err(format!("it measured {} where the plan has {}", file.cell, self.cells[cell]));
        }
        file.run.load.check()
    }

    fn conclude(&self, record: &StudyRecord<'_, CoapStudy>) -> Result<Paper5Result, LabError> {
        let whole = record.whole_cells(self)?;
        let cells = record.cells.to_vec();
        let runs = || cells.iter().flat_map(|cell: &ServerCellRuns| &cell.runs);
        let unmade = (0..self.cells.len())
            .filter(|cell| record.failures.iter().all(|failure| failure.cell as usize != *cell))
            .map(|cell| self.plan.runs_of(&self.cells[cell]).saturating_sub(cells[cell].runs.len() as u32))
            .sum::<u32>();
        let unmade = (unmade > 0)
            .then(|| format!("{unmade} runs of later rounds, for which the time of this form did not suffice"));
        Ok(Paper5Result {
            schema: Paper5Result::SCHEMA.to_owned(),
            plan: self.plan.clone(),
            started_unix_s: record.manifest.started_unix_s,
            environment: record.manifest.environment.clone(),
            conditions: circumstances::of_all(runs().map(|run| &run.conditions)),
            contenders: self.contenders(&record.manifest.fingerprint.parts),
            missing: self.missing.clone(),
            left_out: self.plan.left_out().into_iter().chain(unmade).collect(),
            differences: within(&whole),
            failures: record.failures.to_vec(),
            cells,
        })
    }

    fn cells_of(result: &Paper5Result) -> &[ServerCellRuns] {
        &result.cells
    }

    fn files(&self, _directory: &Path, result: &Paper5Result) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("report.html", presentation::page(result).to_html())])
    }

    fn overview(cells: &[ServerCellRuns]) -> Result<Told, LabError> {
        let table = presentation::overview(cells);
        let told = |cell: &ServerCellRuns| {
            json!({
                "cell": cell.name,
                "runs": cell.runs.len(),
                "served_per_s": answers::median_of(cell, answers::SERVED),
                "loss": answers::median_of(cell, answers::LOSS),
                "p50_us": answers::median_of(cell, answers::P50),
                "p99_us": answers::median_of(cell, answers::P99),
                "marked": cell.runs.iter().filter(|run| run.is_disturbed()).count(),
            })
        };
        Ok(Told { text: table.to_text(), json: cells.iter().map(told).collect() })
    }
}

const RESULT: &str = "result.json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper5::cell::PaperFigure;
    use crate::paper5::plan::ServerSite;

    fn plan() -> Paper5Plan {
        Paper5Plan::new(Paper5Form::Usual, 7, ServerSite { cpus: 2, has_quotas: true })
    }

    fn text_of(plan: &Paper5Plan, missing: &[Missing]) -> String {
        let text = PlanText { schema: CoapStudy::SCHEMA.to_owned(), plan: plan.clone(), missing: missing.to_vec() };
        toml::to_string(&text).expect("text")
    }

    #[test]
    fn a_plan_is_what_its_text_says() {
        let plan = Paper5Plan {
            figures: vec![PaperFigure::Pools, PaperFigure::Ramp],
            peers: vec![CoapPeer::CoapRs],
            laws: vec![ControlLaw::Fixed(3), ControlLaw::Vta],
            runs: 9,
            scale: 0.5,
            ..plan()
        };
        let missing = [Missing { what: "a".to_owned(), why: "b".to_owned(), remedy: "c".to_owned() }];
        let study = CoapStudy::parse("x", &text_of(&plan, &missing)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((study.plan, &study.missing[..]), (plan, &missing[..]));
    }

    #[test]
    fn a_text_that_is_no_plan_is_refused_with_its_place() {
        let text = text_of(&plan(), &[]);
        let refused = |before: &str, after: &str| match CoapStudy::parse("plan.toml", &text.replacen(before, after, 1))
        {
            Ok(_) => panic!("{after} was read"),
            Err(error) => error.to_string(),
        };
        let unknown = refused("scale", "scales");
        assert!(unknown.starts_with("plan.toml:7:1: unknown field `scales`"), "{unknown}");
        assert!(refused("\"ramp\"", "\"rampe\"").contains("unknown variant `rampe`"));
        assert!(refused("laws = []", "laws = [\"vta-print\"]").contains("did you mean \"vta-printed\""));
        assert!(refused("scale = 1.0", "scale = 2.0").contains("scale has to be"));
        let wrong = refused("runs = 12", "runs = \"5\"");
        assert!(wrong.starts_with("plan.toml:6:8: invalid type"), "{wrong}");
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
