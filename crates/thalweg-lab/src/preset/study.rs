//! A preset as an experiment that a study repeats.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::result::median_of;
use super::tables::{count_disturbed, overview};
use super::{CellOf, ContenderFacts, Missing, Preset, PresetResult, PresetTerms, ResultOf, page, to_text};
use crate::circumstances;
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::process::{Launcher, Stop};
use crate::scenario::{Design, ScenarioError};
use crate::study::{
    CoursePlan, Experiment, RunName, StudyOutcome, StudyRecord, StudyTurn, Told, begin, load_json, within, write_text,
};

/// Makes all runs of the plan into the new directory `out`; loud words about what is missing by `remark`.
///
/// A cell that fails is left out from then on and named in the result.
///
/// # Errors
/// The plan cannot be carried out here, `stop` was requested, `out` holds runs already or cannot be written, or nothing at all could be
/// measured.
pub(crate) fn run<P: Preset>(
    plan: &P,
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
    remark: &dyn Fn(&str),
) -> Result<ResultOf<P>, LabError> {
    if let Some(fault) = plan.fault() {
        return Err(LabError::here(fault));
    }
    let study = PresetStudy::with_peers_that_are_there(plan, launcher);
    study.missing.iter().for_each(|one| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    let text = study.to_text()?;
    begin((study, &text), out, launcher, stop)
}

/// The plan with its cells.
#[derive(Debug, PartialEq)]
pub(crate) struct PresetStudy<P: Preset> {
    plan: P,
    cells: Vec<P::Cell>,
    /// Peers that do not take part.
    missing: Vec<Missing>,
}

/// A run that is to be made.
pub(crate) type PresetTurn<'a, P> = StudyTurn<'a, PresetStudy<P>>;

/// What the runs of a study need.
pub(crate) struct PresetSite<P: Preset> {
    pub(crate) own: P::Site,
    /// Name and value of what results depend on.
    dependencies: Vec<(String, String)>,
}

/// A plan in words; its schema says that it is one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText<P> {
    schema: String,
    plan: P,
    /// Peers that do not take part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing>,
}

impl<P: Preset> PresetStudy<P> {
    /// The schema of its text.
    pub(crate) const SCHEMA: &'static str = P::TEXT_SCHEMA;

    pub(crate) fn new(plan: P, missing: Vec<Missing>) -> PresetStudy<P> {
        PresetStudy { cells: plan.cells(), plan, missing }
    }

    /// The plan without the peers whose programs are not there, which are told.
    fn with_peers_that_are_there(plan: &P, launcher: &Launcher) -> PresetStudy<P> {
        let (mut missing, mut peers) = (Vec::new(), Vec::new());
        for peer in plan.peers() {
            match P::facts_of(*peer, launcher) {
                Ok(_) => peers.push(*peer),
                Err(why) => missing.push(P::missing(*peer, why)),
            }
        }
        PresetStudy::new(plan.clone().with_peers(peers), missing)
    }

    /// The text that [`Experiment::parse`] reads.
    pub(crate) fn to_text(&self) -> Result<String, LabError> {
        let (plan, missing) = (self.plan.clone(), self.missing.clone());
        toml::to_string(&PlanText { schema: P::TEXT_SCHEMA.to_owned(), plan, missing }).map_err(LabError::here)
    }

    /// Thalweg and the peers, with the versions that were known at the beginning.
    fn contenders(&self, known: &BTreeMap<String, String>) -> Vec<ContenderFacts> {
        let ours = ContenderFacts { name: "Thalweg".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let peer = |peer: &P::Peer| {
            let version = known.get(&format!("version of {peer}")).cloned();
            ContenderFacts { name: peer.to_string(), version: version.unwrap_or_else(|| "unknown".to_owned()) }
        };
        [ours].into_iter().chain(self.plan.peers().iter().map(peer)).collect()
    }

    /// Runs that were not made though their cells did not fail.
    fn unmade(&self, record: &StudyRecord<'_, PresetStudy<P>>) -> Option<String> {
        let unmade: u32 = (0..self.cells.len())
            .filter(|cell| record.failures.iter().all(|failure| failure.cell as usize != *cell))
            .map(|cell| self.plan.runs_of(&self.cells[cell]).saturating_sub(record.cells[cell].runs.len() as u32))
            .sum();
        (unmade > 0).then(|| {
            let made_by = "`thalweg lab resume DIRECTORY` makes them in as much time again";
            format!("{unmade} runs of later rounds, for which the time of this form did not suffice; {made_by}")
        })
    }
}

impl<P: Preset> StudyOutcome for ResultOf<P> {
    fn to_text(&self) -> String {
        to_text(self)
    }

    fn shortcoming(&self) -> Option<String> {
        let (failed, all) = (self.failures.len(), self.cells.len());
        (failed > 0).then(|| format!("{failed} of {all} cells have no result because they failed"))
    }
}

impl<P: Preset> Experiment for PresetStudy<P> {
    type Cell = P::Cell;
    type Run = P::Run;
    type Site = PresetSite<P>;
    type Result = ResultOf<P>;

    fn parse(file: &str, text: &str) -> Result<PresetStudy<P>, LabError> {
        let error = |at: usize, message: String| ScenarioError::at(file, text, at, message);
        let read: PlanText<P> = toml::from_str(text).map_err(|wrong: toml::de::Error| {
            error(wrong.span().map_or(0, |span| span.start), wrong.message().to_owned())
        })?;
        if let Some(fault) = read.plan.fault() {
            return Err(error(0, fault.to_owned()).into());
        }
        Ok(PresetStudy::new(read.plan, read.missing))
    }

    fn with_seed(self, seed: u64) -> PresetStudy<P> {
        PresetStudy { plan: self.plan.with_seed(seed), ..self }
    }

    fn name(&self) -> &str {
        P::NAME
    }

    fn seed(&self) -> u64 {
        self.plan.terms().seed
    }

    fn cells(&self) -> &[P::Cell] {
        &self.cells
    }

    fn course(&self) -> CoursePlan {
        let PresetTerms { runs, is_quick, budget, .. } = self.plan.terms();
        let attempts_max = if is_quick { 1 } else { 4 };
        CoursePlan { rounds: (runs, runs), design: Design::Abba, attempts_max, budget }
    }

    fn stage(&self, cell: usize) -> u64 {
        self.plan.stage(&self.cells[cell])
    }

    fn takes_part(&self, cell: usize, round: u32) -> bool {
        round < self.plan.runs_of(&self.cells[cell])
    }

    fn duration_of(&self, cell: usize) -> Duration {
        Duration::from_secs_f64(self.plan.seconds_of(&self.cells[cell]))
    }

    fn prepare(&self, launcher: &Launcher, stop: &Stop) -> Result<PresetSite<P>, LabError> {
        let own = self.plan.prepare(launcher, stop)?;
        let mut dependencies = P::dependencies(&own);
        for peer in self.plan.peers() {
            let facts = P::facts_of(*peer, launcher).map_err(|why| {
                let Missing { why, remedy, .. } = P::missing(*peer, why);
                LabError::Here(format!("{peer} does not take part: {why}; {remedy}"))
            })?;
            dependencies.extend(facts.into_iter().map(|(fact, value)| (format!("{fact} of {peer}"), value)));
        }
        Ok(PresetSite { own, dependencies })
    }

    fn dependencies(&self, _launcher: &Launcher, site: &PresetSite<P>) -> Result<Vec<(String, String)>, LabError> {
        Ok(site.dependencies.clone())
    }

    fn programs(&self, launcher: &Launcher, _site: &PresetSite<P>) -> Vec<(String, PathBuf)> {
        let of = |peer: &P::Peer| Some((format!("program of {peer}"), P::program_of(*peer, launcher)?));
        self.plan.peers().iter().filter_map(of).collect()
    }

    fn machines(&self, site: &PresetSite<P>) -> Vec<HostEnvironment> {
        P::machines(&site.own)
    }

    fn check_site(&self, site: &PresetSite<P>) -> Result<(), LabError> {
        P::check_site(&site.own)
    }

    fn make(&self, turn: &PresetTurn<'_, P>, folder: &Path) -> Result<(), LabError> {
        let record = self.plan.make(&self.cells[turn.cell], turn)?;
        let text = serde_json::to_string(&record).map_err(LabError::here)?;
        // A record without figures is a failed run, told at once.
        P::figures(record).map_err(LabError::Here)?;
        write_text(&folder.join(RECORD), &text)
    }

    /// What a single program could not do stands in the result.
    fn goes_on_after(&self, _cell: usize, _error: &LabError, _has_failed: &dyn Fn(usize) -> bool) -> bool {
        true
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, P::Run)>, LabError> {
        let record: P::Record = load_json(&folder.join(RECORD))?;
        Ok(vec![(name.cell as usize, P::figures(record).map_err(LabError::Here)?)])
    }

    /// Figures are computed from what the programs told, whose counts have to add up.
    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        let record: P::Record = load_json(&folder.join(RECORD)).map_err(|error| error.to_string())?;
        let (found, planned) = (P::cell_of(&record), &self.cells[cell]);
        if found != planned {
            return Err(format!("it measured {found} where the plan has {planned}"));
        }
        P::check(&record)
    }

    fn conclude(&self, record: &StudyRecord<'_, PresetStudy<P>>) -> Result<ResultOf<P>, LabError> {
        let whole = record.whole_cells(self)?;
        let runs = || record.cells.iter().flat_map(|cell: &CellOf<P>| &cell.runs);
        Ok(PresetResult {
            schema: P::RESULT_SCHEMA.to_owned(),
            plan: self.plan.clone(),
            started_unix_s: record.manifest.started_unix_s,
            environment: record.manifest.environment.clone(),
            conditions: circumstances::of_all(runs().map(P::conditions)),
            contenders: self.contenders(&record.manifest.fingerprint.parts),
            missing: self.missing.clone(),
            left_out: self.plan.left_out().into_iter().chain(self.unmade(record)).collect(),
            differences: within(&whole),
            failures: record.failures.to_vec(),
            cells: record.cells.to_vec(),
        })
    }

    fn cells_of(result: &ResultOf<P>) -> &[CellOf<P>] {
        &result.cells
    }

    fn files(&self, _directory: &Path, result: &ResultOf<P>) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("report.html", page(result).to_html())])
    }

    fn overview(cells: &[CellOf<P>]) -> Result<Told, LabError> {
        let told = |cell: &CellOf<P>| {
            let mut out = Map::new();
            out.insert("cell".to_owned(), json!(cell.name));
            out.insert("runs".to_owned(), json!(cell.runs.len()));
            out.extend(P::TOLD.iter().map(|(name, figure)| ((*name).to_owned(), json!(median_of(cell, *figure)))));
            out.insert("marked".to_owned(), json!(count_disturbed(cell)));
            Value::Object(out)
        };
        Ok(Told { text: overview::<P>(cells).to_text(), json: cells.iter().map(told).collect() })
    }
}

const RECORD: &str = "result.json";

/// Checks that a plan is what its text says, and what is said where `before` stands as `after` in it.
#[cfg(test)]
pub(crate) mod checks {
    use super::*;

    #[track_caller]
    pub(crate) fn check_text<P: Preset>(plan: P) {
        let missing = vec![Missing { what: "a".to_owned(), why: "b".to_owned(), remedy: "c".to_owned() }];
        let study = PresetStudy::new(plan, missing);
        let again = PresetStudy::parse("x", &study.to_text().expect("text")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, study);
    }

    #[track_caller]
    pub(crate) fn check_refused<P: Preset>(plan: &P, before: &str, after: &str, expect: &str) {
        let text = PresetStudy::new(plan.clone(), Vec::new()).to_text().expect("text");
        let said = match PresetStudy::<P>::parse("plan.toml", &text.replacen(before, after, 1)) {
            Ok(_) => panic!("{after} was read"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expect), "{said:?} does not say {expect:?}");
    }
}
