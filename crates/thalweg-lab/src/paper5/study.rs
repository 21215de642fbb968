//! The preset as an experiment that a study repeats: a run is a server of its own under one load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use thalweg_coap::scheduler::controller::ControlLaw;

use super::answers;
use super::cell::{Contender, RequestLoad, ServerCell};
use super::peer::CoapPeer;
use super::plan::Paper5Plan;
use super::presentation;
use super::result::{Paper5Facts, Paper5Result, Run, ServerCellRuns, ServerFacts};
use super::run::{self, Stage};
use crate::circumstances;
use crate::error::LabError;
use crate::figures::{percent, rounded};
use crate::host::Environment;
use crate::missing::Missing;
use crate::peers::Readiness;
use crate::process::{Launcher, Stop};
use crate::scenario::{Design, ScenarioError};
use crate::statistics::median;
use crate::study::{
    CellResult, CoursePlan, Experiment, Measure, RunName, Side, StudyCell, StudyError, StudyOutcome, StudyRecord,
    StudyRun, StudyTurn, Told, begin, checksum, load_json, within,
};
use crate::table::Table;

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
    let (plan, missing) = with_peers_that_are_there(plan, launcher.peer_folder());
    missing.iter().for_each(|one: &Missing| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    let text = PlanText::of(&plan, missing.clone()).to_toml()?;
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

/// A plan in words; its schema says that it is one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    schema: String,
    quick: bool,
    seed: u64,
    runs: u32,
    scale: f64,
    figures: Vec<String>,
    peers: Vec<String>,
    laws: Vec<String>,
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

impl PlanText {
    fn of(plan: &Paper5Plan, missing: Vec<Missing>) -> PlanText {
        PlanText {
            schema: CoapStudy::SCHEMA.to_owned(),
            quick: plan.is_quick(),
            seed: plan.seed,
            runs: plan.runs,
            scale: plan.scale,
            figures: plan.figures.iter().map(|figure| figure.names()[0].to_owned()).collect(),
            peers: plan.peers.iter().map(ToString::to_string).collect(),
            laws: plan.laws.iter().map(ToString::to_string).collect(),
            missing,
        }
    }

    fn to_toml(&self) -> Result<String, LabError> {
        toml::to_string(self).map_err(LabError::here)
    }
}

impl TryFrom<&PlanText> for Paper5Plan {
    type Error = String;

    fn try_from(text: &PlanText) -> Result<Paper5Plan, String> {
        let usual = if text.quick { Paper5Plan::quick(text.seed) } else { Paper5Plan::full(text.seed) };
        if text.scale.is_nan() || text.scale <= 0.0 || text.scale > 1.0 || text.runs == 0 {
            return Err("scale has to be above 0 and at most 1, runs at least 1".to_owned());
        }
        Ok(Paper5Plan {
            scale: text.scale,
            runs: text.runs,
            figures: text.figures.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            peers: text.peers.iter().map(|name| CoapPeer::parse(name)).collect::<Result<_, _>>()?,
            laws: text.laws.iter().map(|name| super::law_named(name)).collect::<Result<_, _>>()?,
            ..usual
        })
    }
}

impl CoapStudy {
    /// The schema of its text.
    pub(crate) const SCHEMA: &'static str = "thalweg.coap-servers/1";

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

    /// All contenders with a cell, with the versions that were known at the beginning.
    fn contenders(&self, known: &std::collections::BTreeMap<String, String>) -> Vec<ServerFacts> {
        let mut out: Vec<ServerFacts> = Vec::new();
        for contender in self.cells.iter().map(|cell| cell.contender) {
            let name = contender.middleware_name();
            if out.iter().all(|known| known.name != name) {
                let version = match contender {
                    Contender::Thalweg(_) => format!("Thalweg {}", env!("CARGO_PKG_VERSION")),
                    Contender::Peer(peer, _) => {
                        known.get(&format!("version of {peer}")).cloned().unwrap_or_else(|| "unknown".to_owned())
                    }
                };
                out.push(ServerFacts { name, version, is_ours: contender.is_ours() });
            }
        }
        out
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
    /// Thalweg as it is shipped with the same handler and load; none in an overload, where each contender is asked for twice of its own
    /// capacity.
    fn baseline<'a, R>(
        cells: &'a [CellResult<ServerCell, R>],
        cell: &CellResult<ServerCell, R>,
    ) -> Option<&'a CellResult<ServerCell, R>> {
        if matches!(cell.cell.load, RequestLoad::Overload { .. }) {
            return None;
        }
        let wanted = ServerCell { contender: Contender::Thalweg(ControlLaw::Vta), ..cell.cell.clone() };
        cells.iter().find(|other| other.cell == wanted).filter(|baseline| !std::ptr::eq(*baseline, cell))
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
    /// Name and value of what each peer is.
    type Site = Vec<(String, String)>;
    type Result = Paper5Result;

    fn parse(file: &str, text: &str) -> Result<CoapStudy, LabError> {
        let error = |at: usize, message: String| ScenarioError::at(file, text, at, message);
        let read: PlanText = toml::from_str(text).map_err(|wrong: toml::de::Error| {
            error(wrong.span().map_or(0, |span| span.start), wrong.message().to_owned())
        })?;
        let plan = Paper5Plan::try_from(&read).map_err(|message| error(0, message))?;
        Ok(CoapStudy::new(plan, read.missing))
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
            attempts_max: if self.plan.is_quick() { 1 } else { 3 },
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

    fn prepare(&self, launcher: &Launcher, _stop: &Stop) -> Result<Vec<(String, String)>, LabError> {
        let mut out = Vec::new();
        for peer in &self.plan.peers {
            let program = program_of(*peer, launcher.peer_folder());
            let (program, version) = program.map_err(|why| LabError::NoPeer { peer: peer.to_string(), why })?;
            out.push((format!("program of {peer}"), checksum(&program)));
            out.push((format!("version of {peer}"), version));
        }
        Ok(out)
    }

    fn dependencies(
        &self,
        _launcher: &Launcher,
        site: &Vec<(String, String)>,
    ) -> Result<Vec<(String, String)>, LabError> {
        Ok(site.clone())
    }

    fn make(&self, turn: &StudyTurn<'_, CoapStudy>, folder: &Path) -> Result<(), LabError> {
        let cell = &self.cells[turn.cell];
        let stage = Stage { plan: &self.plan, launcher: turn.launcher, stop: turn.stop, cpus: cpus() };
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
        let left_out = (0..self.cells.len())
            .filter(|cell| record.failures.iter().all(|failure| failure.cell as usize != *cell))
            .map(|cell| self.plan.runs_of(&self.cells[cell]).saturating_sub(cells[cell].runs.len() as u32))
            .sum();
        Ok(Paper5Result {
            schema: Paper5Result::SCHEMA.to_owned(),
            course: Paper5Facts {
                command: self.plan.command(),
                started_unix_s: record.manifest.started_unix_s,
                seconds: runs().map(|run| run.conditions.seconds).sum(),
                seed: self.plan.seed,
                runs: self.plan.runs,
                scale: self.plan.scale,
                cpus: (record.manifest.environment.cores >= 2).then_some(CPUS),
                has_energy: runs().any(|run| run.server.energy_j.is_some()),
            },
            environment: record.manifest.environment.clone(),
            conditions: circumstances::of_all(runs().map(|run| &run.conditions)),
            contenders: self.contenders(&record.manifest.fingerprint.parts),
            missing: self.missing.clone(),
            left_out: left_out_words(left_out),
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
        let header = ["cell", "runs", "served/s", "loss", "p50, ms", "p99, ms", "marked"];
        let mut table = Table::new("Whole runs: medians over the runs", &header);
        let marked = |cell: &ServerCellRuns| cell.runs.iter().filter(|run| run.is_disturbed()).count();
        let row = |cell: &ServerCellRuns| {
            let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), rounded);
            let milliseconds = |measure| shown(answers::median_of(cell, measure).map(|us| us / 1e3));
            vec![
                cell.name.clone(),
                cell.runs.len().to_string(),
                shown(answers::median_of(cell, answers::SERVED)),
                answers::median_of(cell, answers::LOSS).map_or_else(|| "–".to_owned(), percent),
                milliseconds(answers::P50),
                milliseconds(answers::P99),
                marked(cell).to_string(),
            ]
        };
        table.rows = cells.iter().map(row).collect();
        let told = |cell: &ServerCellRuns| {
            json!({
                "cell": cell.name,
                "runs": cell.runs.len(),
                "served_per_s": answers::median_of(cell, answers::SERVED),
                "loss": answers::median_of(cell, answers::LOSS),
                "p50_us": answers::median_of(cell, answers::P50),
                "p99_us": answers::median_of(cell, answers::P99),
                "marked": marked(cell),
            })
        };
        Ok(Told { text: table.to_text(), json: cells.iter().map(told).collect() })
    }
}

/// Logical CPUs of servers and of the generator, where there are two.
fn cpus() -> Option<(usize, usize)> {
    (Environment::read().cores >= 2).then_some(CPUS)
}

fn left_out_words(runs: u32) -> Vec<String> {
    match runs {
        0 => Vec::new(),
        runs => vec![format!(
            "{runs} runs of later rounds, which ten minutes did not suffice for: leave out --quick, or peers or figures"
        )],
    }
}

const CPUS: (usize, usize) = (0, 1);
const RESULT: &str = "result.json";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper5::cell::PaperFigure;

    #[test]
    fn a_plan_is_what_its_text_says() {
        let plan = Paper5Plan {
            figures: vec![PaperFigure::Pools, PaperFigure::Ramp],
            peers: vec![CoapPeer::CoapRs],
            laws: vec![ControlLaw::Fixed(3), ControlLaw::Vta],
            runs: 9,
            scale: 0.5,
            ..Paper5Plan::quick(7)
        };
        let missing = Missing { what: "a".to_owned(), why: "b".to_owned(), remedy: "c".to_owned() };
        let text = PlanText::of(&plan, vec![missing.clone()]).to_toml().expect("text");
        let study = CoapStudy::parse("x", &text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((study.plan, study.missing), (plan, vec![missing]));
    }

    #[test]
    fn a_text_that_is_no_plan_is_refused_with_its_place() {
        let text = PlanText::of(&Paper5Plan::full(1), Vec::new()).to_toml().expect("text");
        let refused = |before: &str, after: &str| match CoapStudy::parse("plan.toml", &text.replacen(before, after, 1))
        {
            Ok(_) => panic!("{after} was read"),
            Err(error) => error.to_string(),
        };
        let unknown = refused("scale", "scales");
        assert!(unknown.starts_with("plan.toml:5:1: unknown field `scales`"), "{unknown}");
        assert!(refused("\"ramp\"", "\"rampe\"").contains("did you mean \"ramp\""));
        assert!(refused("scale = 1.0", "scale = 2.0").contains("scale has to be"));
        let wrong = refused("runs = 5", "runs = \"5\"");
        assert!(wrong.starts_with("plan.toml:4:8: invalid type"), "{wrong}");
    }

    #[test]
    fn every_contender_is_compared_with_thalweg_at_the_same_load_but_not_in_an_overload() {
        let cells: Vec<ServerCellRuns> = Paper5Plan::quick(1).cells().into_iter().map(CellResult::new).collect();
        for cell in &cells {
            let baseline = ServerCell::baseline(&cells, cell);
            let is_ours = cell.cell.contender == Contender::Thalweg(ControlLaw::Vta);
            let is_overload = cell.cell.figure == PaperFigure::Overload;
            assert_eq!(baseline.is_none(), is_ours || is_overload, "{}", cell.name);
            let is_alike = |other: &ServerCellRuns| {
                (other.cell.figure, other.cell.handler) == (cell.cell.figure, cell.cell.handler)
                    && other.cell.load == cell.cell.load
            };
            assert!(baseline.is_none_or(is_alike), "{}", cell.name);
        }
    }
}
