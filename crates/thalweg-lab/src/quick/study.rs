//! The course of the scenario as an experiment that a study repeats: a run is a pair of processes and one of the three kinds of data.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use thalweg_lab_station::BurstRequest;

use super::duel::{Course, DuelOrder, Dueled, Received, Sent};
use super::result::{CELLS, QuickCell, QuickCellRuns, QuickPart, QuickResult, QuickRun, RunDetail};
use super::sorted::{Sorted, transfers_ms};
use crate::bursts::{BurstPair, BurstParty};
use crate::error::LabError;
use crate::figures::rounded;
use crate::host::{Conditions, ConditionsWatch, HostFiles};
use crate::process::{Launcher, Stop};
use crate::scenario::{Design, ScenarioError};
use crate::station::{Sending, Setup, StationNetwork};
use crate::statistics::{Summary, median};
use crate::study::{
    CellResult, CoursePlan, Experiment, Measure, RunName, Side, StudyCell, StudyError, StudyOutcome, StudyRecord,
    StudyRun, StudyTurn, Told, begin, load_json, within,
};
use crate::table::Table;

/// The extent of the measurement. The default takes about a minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuickPlan {
    schema: String,
    /// Decides the order of the runs.
    pub seed: u64,
    /// Bursts of each kind, at most; ten are one run, and verdicts need eight runs.
    pub bursts: u64,
    /// Length in seconds of the two phases of a run of the background experiment.
    pub phase_s: f64,
}

impl QuickPlan {
    /// The plan of a minute, whose runs take turns as `seed` says.
    pub fn new(seed: u64) -> QuickPlan {
        // 1.2 s at 100 Hz leave more than 100 samples in each phase, which a 90th percentile needs, and 1,000 in all runs for a 99th.
        QuickPlan { schema: QuickStudy::SCHEMA.to_owned(), seed, bursts: 100, phase_s: 1.2 }
    }

    fn rounds(&self) -> u32 {
        self.bursts.div_ceil(BURSTS_IN_RUN).clamp(1, u64::from(u32::MAX)) as u32
    }

    /// Bursts of each kind in a round, from 0.
    fn bursts_of(&self, round: u32) -> u64 {
        self.bursts.saturating_sub(u64::from(round) * BURSTS_IN_RUN).min(BURSTS_IN_RUN)
    }

    /// How long it takes.
    pub fn expected(&self) -> Duration {
        let run: Duration = QuickPart::ALL.into_iter().map(|part| self.duration_of(part)).sum();
        run * self.rounds()
    }

    fn duration_of(&self, part: QuickPart) -> Duration {
        Duration::from_secs_f64(match part {
            QuickPart::HighFrequency => 2.0,
            QuickPart::Large => 0.8,
            QuickPart::Background => 2.0 * self.phase_s + 1.0,
        })
    }

    /// The background experiment of a round, from 0: every second one begins with the load, so that a slow drift of the machine touches
    /// both conditions alike.
    fn duel(&self, round: u32) -> DuelOrder {
        let begins_loaded = round % 2 == 1;
        let loaded = vec![begins_loaded, !begins_loaded];
        DuelOrder {
            network: StationNetwork::apart(0),
            period: PERIOD,
            course: Course::Phases { phase: Duration::from_secs_f64(self.phase_s), loaded },
            bulk: Sending::default(),
            flow_controller: None,
            bulk_history: BULK_HISTORY,
            patience: TRANSFER_PATIENCE,
            transfer_samples: super::result::TRANSFER_SAMPLES,
            sample_bytes: super::result::TRANSFER_SAMPLE_BYTES,
        }
    }
}

/// Makes all runs of the plan into the new directory `out`; progress goes to standard error.
///
/// # Errors
/// A process cannot be started, dies, hangs or reports a fault; `out` holds runs already or cannot be written; `stop` was requested. Then
/// there is no result, and the directory can be resumed.
pub fn run(plan: &QuickPlan, out: &Path, launcher: &Launcher, stop: &Stop) -> Result<QuickResult, LabError> {
    let text = toml::to_string(plan).map_err(LabError::here)?;
    begin((QuickStudy { plan: plan.clone() }, &text), out, launcher, stop)
}

/// The plan as an experiment.
pub(crate) struct QuickStudy {
    plan: QuickPlan,
}

/// A whole run as its folder keeps it.
#[derive(Serialize, Deserialize)]
struct QuickRunFile {
    part: QuickPart,
    conditions: Conditions,
    /// What the processes wrote on their standard error.
    remarks: Vec<String>,
    measured: Measured,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Measured {
    /// Milliseconds of each burst, kind by kind.
    BurstsMs(Vec<Vec<f64>>),
    /// What both processes of the background experiment saw.
    Duel(Sent, Received),
}

impl QuickStudy {
    /// The schema of its text.
    pub(crate) const SCHEMA: &'static str = "thalweg.three-kinds/1";

    fn part(&self, part: QuickPart, round: u32, turn: &StudyTurn<'_, QuickStudy>) -> Result<QuickRunFile, LabError> {
        let watch = ConditionsWatch::start(HostFiles::here());
        let (measured, remarks) = match part {
            QuickPart::Background => {
                let patience = Duration::from_secs_f64(self.plan.phase_s) + RUN_PATIENCE;
                let launchers = (turn.launcher, turn.launcher);
                let Dueled { sent, received, remarks } =
                    self.plan.duel(round).run(launchers, patience, turn.stop, |_| {})?;
                (Measured::Duel(sent, received), remarks)
            }
            _ => {
                let party = BurstParty::Ours(Box::new(Setup::within(StationNetwork::apart(0))));
                let data = format!("{part} data");
                let mut pair = BurstPair::start(&party, (turn.launcher, &data), None)?;
                let kinds = CELLS.iter().filter(|cell| cell.part() == part).filter_map(QuickCell::burst);
                let bursts = kinds.map(|kind| bursts(&mut pair, kind, self.plan.bursts_of(round), turn.stop));
                (Measured::BurstsMs(bursts.collect::<Result<_, _>>()?), pair.remarks())
            }
        };
        Ok(QuickRunFile { part, conditions: watch.finish(), remarks, measured })
    }

    /// What a run says of its cells.
    fn runs_of(&self, file: QuickRunFile, round: u32) -> Result<Vec<(usize, QuickRun)>, LabError> {
        let QuickRunFile { part, conditions, remarks, measured } = file;
        let cells = CELLS.iter().enumerate().filter(|(_, cell)| cell.part() == part).map(|(index, _)| index);
        let empty = QuickRun::new(round, conditions, remarks);
        let runs: Vec<QuickRun> = match measured {
            Measured::BurstsMs(kinds) => kinds.into_iter().map(|runs_ms| empty.clone().with_bursts(runs_ms)).collect(),
            Measured::Duel(sent, received) => {
                let (sorted, transfers_ms) =
                    (Sorted::of(&self.plan.duel(round), &sent, &received), transfers_ms(&sent));
                let both = [false, true].map(|loaded| empty.clone().with_topic((&sorted, &transfers_ms), loaded));
                both.into_iter().collect::<Option<_>>().ok_or_else(|| LabError::Here(NOTHING_ARRIVED.to_owned()))?
            }
        };
        Ok(cells.zip(runs).collect())
    }
}

/// The bursts of one kind in a run, and some before them that do not count.
fn bursts(
    pair: &mut BurstPair,
    (samples, sample_bytes): (u64, u64),
    wanted: u64,
    stop: &Stop,
) -> Result<Vec<f64>, LabError> {
    let narrow = |count: u64| u32::try_from(count).map_err(LabError::here);
    let (n, size) = (narrow(samples)?, narrow(sample_bytes)?);
    let request = |runs| BurstRequest { n, size, runs, ..BurstRequest::default() };
    pair.runs(&request(WARM_UP_BURSTS), stop)?;
    let (started, mut runs_ms) = (Instant::now(), Vec::new());
    while (runs_ms.len() as u64) < wanted && (runs_ms.len() < BURSTS_MIN || started.elapsed() < KIND_TIME_MAX) {
        runs_ms.extend(pair.runs(&request(1), stop)?);
    }
    Ok(runs_ms)
}

impl StudyRun for QuickRun {
    const MEASURES: &'static [Measure<QuickRun>] = &[
        Self::DONE,
        Measure { name: "burst, ms", of: |run| run.burst_ms, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "latency p50, µs", of: |run| run.p50_us, more_is: Side::Worse, margin: 1.03 },
        Measure { name: "latency p90, µs", of: |run| run.p90_us, more_is: Side::Worse, margin: 1.05 },
    ];
    const DONE: Measure<QuickRun> = Measure {
        name: "arrived, share of sent",
        of: |run| (run.sent > 0).then(|| 1.0 - run.lost as f64 / run.sent as f64),
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

impl StudyCell for QuickCell {
    /// The smallest samples of as many; the large sample that nobody splits; the topic without a transfer.
    fn baseline<'a, R>(
        cells: &'a [CellResult<QuickCell, R>],
        cell: &CellResult<QuickCell, R>,
    ) -> Option<&'a CellResult<QuickCell, R>> {
        let likeness = |cell: &QuickCell| match (cell.part(), cell.burst()) {
            (QuickPart::HighFrequency, Some((samples, _))) => (QuickPart::HighFrequency, samples),
            (part, _) => (part, 0),
        };
        let first = cells.iter().find(|other| likeness(&other.cell) == likeness(&cell.cell));
        first.filter(|baseline| baseline.cell != cell.cell)
    }
}

impl StudyOutcome for QuickResult {
    fn to_text(&self) -> String {
        super::to_text(self)
    }

    fn shortcoming(&self) -> Option<String> {
        None
    }
}

impl Experiment for QuickStudy {
    type Cell = QuickCell;
    type Run = QuickRun;
    type Site = ();
    type Result = QuickResult;

    fn parse(file: &str, text: &str) -> Result<QuickStudy, LabError> {
        let error = |at: usize, message: String| ScenarioError::at(file, text, at, message);
        let plan: QuickPlan = toml::from_str(text).map_err(|wrong: toml::de::Error| {
            error(wrong.span().map_or(0, |span| span.start), wrong.message().to_owned())
        })?;
        if plan.bursts == 0 || !(PHASE_S_MIN..=PHASE_S_MAX).contains(&plan.phase_s) {
            let message = format!("bursts has to be at least 1, phase_s from {PHASE_S_MIN} to {PHASE_S_MAX}");
            return Err(error(0, message).into());
        }
        Ok(QuickStudy { plan })
    }

    fn with_seed(self, seed: u64) -> QuickStudy {
        QuickStudy { plan: QuickPlan { seed, ..self.plan } }
    }

    fn name(&self) -> &str {
        "quick"
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    fn cells(&self) -> &[QuickCell] {
        &CELLS
    }

    /// A minute has no time for repetitions.
    fn course(&self) -> CoursePlan {
        let rounds = self.plan.rounds();
        CoursePlan { rounds: (rounds, rounds), design: Design::Abba, attempts_max: 1, budget: None }
    }

    fn leader(&self, cell: usize) -> usize {
        CELLS.iter().position(|first| first.part() == CELLS[cell].part()).unwrap_or(cell)
    }

    fn duration_of(&self, cell: usize) -> Duration {
        self.plan.duration_of(CELLS[cell].part())
    }

    fn prepare(&self, _launcher: &Launcher, _stop: &Stop) -> Result<(), LabError> {
        Ok(())
    }

    fn dependencies(&self, _launcher: &Launcher, _site: &()) -> Result<Vec<(String, String)>, LabError> {
        Ok(Vec::new())
    }

    fn make(&self, turn: &StudyTurn<'_, QuickStudy>, folder: &Path) -> Result<(), LabError> {
        let run = self.part(CELLS[turn.cell].part(), turn.round, turn)?;
        let text = serde_json::to_string(&run).map_err(LabError::here)?;
        let file = folder.join(RUN_FILE);
        std::fs::write(&file, text).map_err(|source| StudyError::NotWritten { file, source }.into())
    }

    fn goes_on_after(&self, _cell: usize, _error: &LabError, _has_failed: &dyn Fn(usize) -> bool) -> bool {
        false
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, QuickRun)>, LabError> {
        self.runs_of(load_json(&folder.join(RUN_FILE))?, name.round)
    }

    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        let file: QuickRunFile = load_json(&folder.join(RUN_FILE)).map_err(|error| error.to_string())?;
        let part = CELLS[cell].part();
        if file.part != part {
            return Err(format!("it measured {} data where {part} data were to be measured", file.part));
        }
        let kinds = CELLS.iter().filter(|cell| cell.part() == part).count();
        match (file.measured, part) {
            (Measured::Duel(_, received), QuickPart::Background) => received.check(),
            (Measured::BurstsMs(all), QuickPart::HighFrequency | QuickPart::Large)
                if all.len() == kinds && all.iter().all(|one| !one.is_empty() && one.iter().all(|ms| *ms > 0.0)) =>
            {
                Ok(())
            }
            _ => Err(format!("it does not hold the times of {part} data")),
        }
    }

    fn conclude(&self, record: &StudyRecord<'_, QuickStudy>) -> Result<QuickResult, LabError> {
        let cells = record.whole_cells(self)?;
        QuickResult::of(record.manifest, within(&cells), cells)
            .ok_or_else(|| LabError::Here("a kind of data has no figures".to_owned()))
    }

    fn cells_of(result: &QuickResult) -> &[QuickCellRuns] {
        &result.cells
    }

    fn files(&self, _directory: &Path, result: &QuickResult) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("report.html", super::page(result).to_html())])
    }

    fn overview(cells: &[QuickCellRuns]) -> Result<Told, LabError> {
        let middle = |cell: &QuickCellRuns, of: fn(&QuickRun) -> Option<f64>| {
            median(cell.runs.iter().filter_map(of).collect::<Vec<f64>>())
        };
        let figures = |cell: &QuickCellRuns| [middle(cell, |run| run.burst_ms), middle(cell, |run| run.p50_us)];
        let mut table =
            Table::new("Whole runs: medians over the runs", &["cell", "runs", "burst, ms", "latency p50, µs"]);
        table.rows.extend(cells.iter().map(|cell| {
            let shown = figures(cell).map(|value| value.map_or_else(|| "–".to_owned(), rounded));
            [cell.name.clone(), cell.runs.len().to_string()].into_iter().chain(shown).collect()
        }));
        let told = |cell: &QuickCellRuns| {
            let [burst_ms, p50_us] = figures(cell);
            json!({ "cell": cell.name, "runs": cell.runs.len(), "burst_ms": burst_ms, "p50_us": p50_us })
        };
        Ok(Told { text: table.to_text(), json: cells.iter().map(told).collect() })
    }
}

impl QuickRun {
    pub(super) fn new(round: u32, conditions: Conditions, remarks: Vec<String>) -> QuickRun {
        let detail = RunDetail { remarks, ..RunDetail::default() };
        QuickRun { round, burst_ms: None, p50_us: None, p90_us: None, sent: 0, lost: 0, conditions, detail }
    }

    fn with_bursts(self, runs_ms: Vec<f64>) -> QuickRun {
        // A burst that lacks a sample is a fault and has no time.
        let (burst_ms, sent) = (median(&runs_ms), runs_ms.len() as u64);
        QuickRun { burst_ms, sent, detail: RunDetail { runs_ms, ..self.detail }, ..self }
    }

    /// The topic with or without a transfer beside it; `None` when nothing of it arrived.
    fn with_topic(self, (sorted, transfers_ms): (&Sorted, &[f64]), loaded: bool) -> Option<QuickRun> {
        let topic = sorted.foreground(loaded)?;
        let Summary { count, p50, p90, .. } = topic.latency;
        // The loaded cell keeps what the figures show of both.
        let detail = match loaded {
            true => RunDetail {
                runs_ms: transfers_ms.to_vec(),
                points: sorted.points.clone(),
                loads: sorted.loads_s(),
                ..self.detail
            },
            false => self.detail,
        };
        Some(QuickRun { p50_us: p50, p90_us: p90, sent: count + topic.lost, lost: topic.lost, detail, ..self })
    }
}

const RUN_FILE: &str = "result.json";
const NOTHING_ARRIVED: &str = "no sample of the small topic arrived";
/// Bursts before the measured ones of each kind.
const WARM_UP_BURSTS: u32 = 3;
const BURSTS_IN_RUN: u64 = 10;
/// As many in each run, however long they take.
const BURSTS_MIN: usize = 5;
/// After so long no further burst of a kind is made in a run.
const KIND_TIME_MAX: Duration = Duration::from_millis(700);
const PHASE_S_MIN: f64 = 0.1;
const PHASE_S_MAX: f64 = 600.0;
/// 8 MiB of 32 KiB samples may wait for acknowledgement: enough for the link, little enough that nothing else has to wait long.
const BULK_HISTORY: u32 = 256;
const TRANSFER_PATIENCE: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / super::result::RATE_HZ);
/// Longer than any wait inside the processes, so that their own reason is heard first.
const RUN_PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> QuickPlan {
        QuickPlan { bursts: 25, ..QuickPlan::new(3) }
    }

    #[test]
    fn a_plan_is_what_its_text_says_and_a_text_that_is_none_is_refused_with_its_place() {
        let text = toml::to_string(&plan()).expect("text");
        let read =
            |text: &str| QuickStudy::parse("plan.toml", text).map(|study| study.plan).map_err(|no| no.to_string());
        assert_eq!(read(&text), Ok(plan()));
        let unknown = read(&text.replace("phase_s", "phases")).expect_err("refused");
        assert!(unknown.starts_with("plan.toml:4:1: unknown field `phases`"), "{unknown}");
        assert!(read(&text.replace("bursts = 25", "bursts = 0")).expect_err("refused").contains("at least 1"));
        assert!(read(&text.replace("phase_s = 1.2", "phase_s = nan")).expect_err("refused").contains("phase_s from"));
    }

    #[test]
    fn the_default_has_enough_runs_for_verdicts_and_takes_about_a_minute() {
        let plan = QuickPlan::new(1);
        assert!(plan.rounds() as usize >= crate::statistics::runs_needed(4), "of each part at most four comparisons");
        assert!(plan.expected() < Duration::from_secs(75), "{:?}", plan.expected());
    }

    #[test]
    fn the_bursts_of_all_runs_are_those_of_the_plan() {
        let plan = plan();
        assert_eq!((0..plan.rounds()).map(|round| plan.bursts_of(round)).collect::<Vec<_>>(), [10, 10, 5]);
    }

    #[test]
    fn each_kind_is_compared_with_the_first_like_it() {
        let cells: Vec<QuickCellRuns> = CELLS.into_iter().map(CellResult::new).collect();
        let baselines: Vec<Option<&str>> =
            cells.iter().map(|cell| QuickCell::baseline(&cells, cell).map(|found| found.name.as_str())).collect();
        let (many, most, whole) = (Some("3,000 × 256 B"), Some("10,000 × 256 B"), Some("1 × 5 MiB"));
        let quiet = Some("100 Hz without transfer");
        assert_eq!(baselines, [None, many, None, most, None, whole, whole, None, quiet]);
    }

    #[test]
    fn a_run_that_holds_something_else_is_no_run_of_the_cell() {
        let folder = std::env::temp_dir().join(format!("thalweg-quick-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let study = QuickStudy { plan: plan() };
        let check = |part, measured| {
            let run = QuickRunFile { part, conditions: Conditions::default(), remarks: Vec::new(), measured };
            std::fs::write(folder.join(RUN_FILE), serde_json::to_string(&run).expect("json")).expect("written");
            study.check(&folder, 4)
        };
        let times = |kinds: usize, ms: f64| Measured::BurstsMs(vec![vec![ms]; kinds]);
        let wrong = [
            check(QuickPart::Background, times(3, 1.0)),
            check(QuickPart::Large, times(2, 1.0)),
            check(QuickPart::Large, times(3, 0.0)),
            check(QuickPart::Large, Measured::Duel(Sent::default(), Received::default())),
        ];
        let right = check(QuickPart::Large, times(3, 1.0));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(wrong.iter().all(Result::is_err), "{wrong:?}");
        assert_eq!(right, Ok(()));
    }
}
