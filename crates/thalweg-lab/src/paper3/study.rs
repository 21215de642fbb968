//! The preset as an experiment that a study repeats: a run has hosts and programs of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use thalweg_video::picture::TestPicture;

use super::answers;
use super::cell::HdtvCell;
use super::peer::VideoPeer;
use super::plan::{Paper3Form, Paper3Plan};
use super::presentation;
use super::result::{HdtvCellRuns, HdtvRun, Paper3Result};
use super::run::{self, HdtvRecord, Stage, TemporaryFolder};
use super::topics;
use crate::circumstances;
use crate::error::LabError;
use crate::host::may_make_namespaces;
use crate::missing::Missing;
use crate::process::{Launcher, Stop};
use crate::scenario::{Design, ScenarioError};
use crate::study::{
    CellResult, CoursePlan, Experiment, Measure, RunName, Side, StudyCell, StudyError, StudyOutcome, StudyRecord,
    StudyRun, StudyTurn, Told, begin, load_json, within,
};

/// Makes all runs of the plan into the new directory `out`; loud words about what is missing by `remark`.
///
/// A cell that fails is left out from then on and named in the result.
///
/// # Errors
/// This process may not make network namespaces, `stop` was requested, `out` holds runs already or cannot be written, or nothing at all could
/// be measured.
pub fn run(
    plan: &Paper3Plan,
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
    remark: &dyn Fn(&str),
) -> Result<Paper3Result, LabError> {
    if let Some(fault) = plan.fault() {
        return Err(LabError::here(fault));
    }
    let (plan, missing) = with_peers_that_are_there(plan);
    missing.iter().for_each(|one: &Missing| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    let text = PlanText { schema: HdtvStudy::SCHEMA.to_owned(), plan: plan.clone(), missing: missing.clone() };
    let text = toml::to_string(&text).map_err(LabError::here)?;
    begin((HdtvStudy::new(plan, missing), &text), out, launcher, stop)
}

/// The plan without the peers whose programs are not there, which are told.
fn with_peers_that_are_there(plan: &Paper3Plan) -> (Paper3Plan, Vec<Missing>) {
    let mut missing = Vec::new();
    let mut peers = Vec::new();
    for peer in &plan.peers {
        match peer.version() {
            Ok(_) => peers.push(*peer),
            Err(why) => {
                missing.push(Missing { what: format!("the picture by {peer}"), why, remedy: peer.remedy().to_owned() })
            }
        }
    }
    (Paper3Plan { peers, ..plan.clone() }, missing)
}

/// The plan with its cells.
pub(crate) struct HdtvStudy {
    plan: Paper3Plan,
    cells: Vec<HdtvCell>,
    /// Peers that do not take part.
    missing: Vec<Missing>,
}

/// What the runs of a study need.
pub(crate) struct HdtvStage {
    /// Name and value of what each peer is.
    versions: Vec<(String, String)>,
    folder: TemporaryFolder,
}

impl HdtvStage {
    /// A frame of the picture, as it lies in packets.
    fn frame(&self) -> PathBuf {
        self.folder.0.join("frame.raw")
    }
}

/// A plan in words; its schema says that it is one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    schema: String,
    plan: Paper3Plan,
    /// Peers that do not take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
}

impl HdtvStudy {
    /// The schema of its text.
    pub(crate) const SCHEMA: &'static str = "thalweg.hdtv/1";

    fn new(plan: Paper3Plan, missing: Vec<Missing>) -> HdtvStudy {
        HdtvStudy { cells: plan.cells(), plan, missing }
    }

    /// Thalweg and the peers, with the versions that were known at the beginning.
    fn contenders(&self, known: &std::collections::BTreeMap<String, String>) -> Vec<(String, String)> {
        let ours = ("Thalweg".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let peer = |peer: &VideoPeer| {
            let version = known.get(&version_of(*peer)).cloned();
            (peer.to_string(), version.unwrap_or_else(|| "unknown".to_owned()))
        };
        [ours].into_iter().chain(self.plan.peers.iter().map(peer)).collect()
    }
}

/// Name of a peer's version among what results depend on.
fn version_of(peer: VideoPeer) -> String {
    format!("version of {peer}")
}

impl StudyRun for HdtvRun {
    const MEASURES: &'static [Measure<HdtvRun>] = &[
        Self::DONE,
        Measure { name: "throughput, Mbit/s", of: answers::GOODPUT, more_is: Side::Better, margin: 1.03 },
        Measure { name: "CPU of both ends", of: answers::CPU, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "round trip p50, µs", of: answers::TRIP_P50, more_is: Side::Worse, margin: 1.03 },
    ];
    /// A thousandth of the frames matters. What a stream as fast as possible loses is no fault of its own.
    const DONE: Measure<HdtvRun> = Measure {
        name: "frames shown, share of due",
        of: |run| run.stream.map(|_| 1.0).or_else(|| answers::SHOWN(run)),
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

impl StudyCell for HdtvCell {
    /// MTU 1500 with all else alike, or Thalweg by RTP on the same link; none for a cell that gets no verdict.
    fn baseline<'a, R>(
        cells: &'a [CellResult<HdtvCell, R>],
        cell: &CellResult<HdtvCell, R>,
    ) -> Option<&'a CellResult<HdtvCell, R>> {
        let found = cells.iter().find(|other| other.cell.is_baseline_of(&cell.cell));
        found.filter(|baseline| cell.cell.is_judged && !std::ptr::eq(*baseline, cell))
    }
}

impl StudyOutcome for Paper3Result {
    fn to_text(&self) -> String {
        presentation::to_text(self)
    }

    fn shortcoming(&self) -> Option<String> {
        let (failed, all) = (self.failures.len(), self.cells.len());
        (failed > 0).then(|| format!("{failed} of {all} cells have no result because they failed"))
    }
}

impl Experiment for HdtvStudy {
    type Cell = HdtvCell;
    type Run = HdtvRun;
    type Site = HdtvStage;
    type Result = Paper3Result;

    fn parse(file: &str, text: &str) -> Result<HdtvStudy, LabError> {
        let error = |at: usize, message: String| ScenarioError::at(file, text, at, message);
        let read: PlanText = toml::from_str(text).map_err(|wrong: toml::de::Error| {
            error(wrong.span().map_or(0, |span| span.start), wrong.message().to_owned())
        })?;
        if let Some(fault) = read.plan.fault() {
            return Err(error(0, fault.to_owned()).into());
        }
        Ok(HdtvStudy::new(read.plan, read.missing))
    }

    fn with_seed(self, seed: u64) -> HdtvStudy {
        HdtvStudy { plan: Paper3Plan { seed, ..self.plan }, ..self }
    }

    fn name(&self) -> &str {
        "paper3"
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    fn cells(&self) -> &[HdtvCell] {
        &self.cells
    }

    fn course(&self) -> CoursePlan {
        CoursePlan {
            rounds: (self.plan.runs, self.plan.runs),
            design: Design::Abba,
            // The quick form has no time for repetitions.
            attempts_max: if self.plan.form == Paper3Form::Quick { 1 } else { 3 },
            budget: Some(self.plan.budget()),
        }
    }

    /// Runs of minutes after the short ones of their round: where the time does not suffice, they are what is missing last.
    fn stage(&self, cell: usize) -> u64 {
        u64::from(self.cells[cell].is_long())
    }

    fn takes_part(&self, cell: usize, round: u32) -> bool {
        round < self.plan.runs_of(&self.cells[cell])
    }

    fn duration_of(&self, cell: usize) -> Duration {
        Duration::from_secs_f64(self.plan.seconds_of(&self.cells[cell]))
    }

    fn prepare(&self, _launcher: &Launcher, _stop: &Stop) -> Result<HdtvStage, LabError> {
        if !may_make_namespaces() {
            return Err(thalweg_host::NamespaceError::NotRoot.into());
        }
        let mut versions = Vec::new();
        for peer in &self.plan.peers {
            let known = peer.version().map_err(|why| LabError::Here(format!("{peer} does not take part: {why}")))?;
            versions.push((version_of(*peer), known));
        }
        let stage = HdtvStage { versions, folder: TemporaryFolder::new()? };
        let format = topics::format(self.plan.size())?;
        let mut octets = vec![0; format.frame_octets()];
        TestPicture::new(format).map_err(LabError::here)?.draw(0, &mut octets);
        std::fs::write(stage.frame(), octets).map_err(LabError::here)?;
        Ok(stage)
    }

    fn dependencies(&self, _launcher: &Launcher, site: &HdtvStage) -> Result<Vec<(String, String)>, LabError> {
        Ok(site.versions.clone())
    }

    fn make(&self, turn: &StudyTurn<'_, HdtvStudy>, folder: &Path) -> Result<(), LabError> {
        let frame = turn.site.frame();
        let stage = Stage { plan: &self.plan, launcher: turn.launcher, stop: turn.stop, frame: &frame };
        let record = run::make(&self.cells[turn.cell], turn.round, turn.chance, &stage)?;
        record.figures().map_err(LabError::Here)?;
        let text = serde_json::to_string(&record).map_err(LabError::here)?;
        let file = folder.join(RESULT);
        std::fs::write(&file, text).map_err(|source| StudyError::NotWritten { file, source }.into())
    }

    /// What a single program could not do stands in the result.
    fn goes_on_after(&self, _cell: usize, _error: &LabError, _has_failed: &dyn Fn(usize) -> bool) -> bool {
        true
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, HdtvRun)>, LabError> {
        let record: HdtvRecord = load_json(&folder.join(RESULT))?;
        Ok(vec![(name.cell as usize, record.figures().map_err(LabError::Here)?)])
    }

    /// The figures are computed from what the programs told, whose counts have to add up.
    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        let record: HdtvRecord = load_json(&folder.join(RESULT)).map_err(|error| error.to_string())?;
        if record.cell != self.cells[cell] {
            return Err(format!("it measured {} where the plan has {}", record.cell, self.cells[cell]));
        }
        record.check()
    }

    fn conclude(&self, record: &StudyRecord<'_, HdtvStudy>) -> Result<Paper3Result, LabError> {
        let whole = record.whole_cells(self)?;
        let cells = record.cells.to_vec();
        let runs = || cells.iter().flat_map(|cell: &HdtvCellRuns| &cell.runs);
        let unmade = (0..self.cells.len())
            .filter(|cell| record.failures.iter().all(|failure| failure.cell as usize != *cell))
            .map(|cell| self.plan.runs_of(&self.cells[cell]).saturating_sub(cells[cell].runs.len() as u32))
            .sum::<u32>();
        let unmade = (unmade > 0)
            .then(|| format!("{unmade} runs of later rounds, for which the time of this form did not suffice"));
        Ok(Paper3Result {
            schema: Paper3Result::SCHEMA.to_owned(),
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

    fn cells_of(result: &Paper3Result) -> &[HdtvCellRuns] {
        &result.cells
    }

    fn files(&self, _directory: &Path, result: &Paper3Result) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("report.html", presentation::page(result).to_html())])
    }

    fn overview(cells: &[HdtvCellRuns]) -> Result<Told, LabError> {
        let table = presentation::overview(cells);
        let told = |cell: &HdtvCellRuns| {
            json!({
                "cell": cell.name,
                "runs": cell.runs.len(),
                "goodput_mbit": answers::median_of(cell, answers::GOODPUT),
                "lost": answers::median_of(cell, answers::LOST),
                "cpu": answers::median_of(cell, answers::CPU),
                "fps": answers::median_of(cell, answers::FPS),
                "trip_p50_us": answers::median_of(cell, answers::TRIP_P50),
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
    use crate::paper3::plan::HdtvSite;
    use crate::paper3::{HdtvPart, Paper3Form};

    fn plan() -> Paper3Plan {
        Paper3Plan::new(Paper3Form::Usual, 7, HdtvSite { cpus: 2, has_namespaces: true, nics: Vec::new() })
    }

    fn text_of(plan: &Paper3Plan, missing: &[Missing]) -> String {
        let text = PlanText { schema: HdtvStudy::SCHEMA.to_owned(), plan: plan.clone(), missing: missing.to_vec() };
        toml::to_string(&text).expect("text")
    }

    #[test]
    fn a_plan_is_what_its_text_says() {
        let parts = vec![HdtvPart::Rtt, HdtvPart::Topics];
        let plan = Paper3Plan { parts, peers: vec![VideoPeer::Ffmpeg], runs: 8, scale: 0.5, ..plan() };
        let missing = [Missing { what: "a".to_owned(), why: "b".to_owned(), remedy: "c".to_owned() }];
        let study = HdtvStudy::parse("x", &text_of(&plan, &missing)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((study.plan, &study.missing[..]), (plan, &missing[..]));
    }

    #[test]
    fn a_text_that_is_no_plan_is_refused_with_its_place() {
        let text = text_of(&plan(), &[]);
        let refused = |before: &str, after: &str| match HdtvStudy::parse("plan.toml", &text.replacen(before, after, 1))
        {
            Ok(_) => panic!("{after} was read"),
            Err(error) => error.to_string(),
        };
        let unknown = refused("scale", "scales");
        assert!(unknown.starts_with("plan.toml:7:1: unknown field `scales`"), "{unknown}");
        assert!(refused("\"topics\"", "\"topic\"").contains("unknown variant `topic`"));
        assert!(refused("scale = 1.0", "scale = 2.0").contains("scale has to be"));
    }

    #[test]
    fn what_gets_a_verdict_is_compared_with_what_differs_in_one_thing() {
        let cells: Vec<HdtvCellRuns> = plan().cells().into_iter().map(CellResult::new).collect();
        let compared: Vec<(&str, &str)> = cells
            .iter()
            .filter_map(|cell| Some((HdtvCell::baseline(&cells, cell)?.name.as_str(), cell.name.as_str())))
            .collect();
        for pair in [
            ("mtu: UDP, packet by packet, MTU 1500", "mtu: UDP, packet by packet, MTU 9000"),
            ("peers: Thalweg, RTP, MTU 9000", "peers: GStreamer, RTP, MTU 9000"),
            ("topics: Thalweg, RTP, MTU 1500", "topics: Thalweg, topic, reliable, MTU 1500"),
        ] {
            assert!(compared.contains(&pair), "{pair:?} in {compared:?}");
        }
        assert!(compared.iter().all(|(baseline, cell)| baseline != cell && !cell.contains("minutes")));
        let needed = crate::statistics::runs_needed(compared.len());
        assert!(plan().runs as usize >= needed, "{} comparisons need {needed} runs", compared.len());
    }
}
