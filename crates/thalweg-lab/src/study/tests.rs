use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::directory::{load_manifest, whole_runs};
use super::experiment::StudyCells;
use super::manifest::State;
use super::order::cells_of_round;
use super::*;
use crate::error::LabError;
use crate::fixtures::{LabFolder, check_contains, scenario_with};
use crate::process::{Launcher, Stop};
use crate::scenario::{Design, Scenario};
use crate::table::Table;

/// An experiment that is none of the lab's: a run of the cell `n` writes down `n`, and its round.
#[derive(Debug)]
struct Counting {
    plan: CountingPlan,
    cells: Vec<Number>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountingPlan {
    cells: u32,
    rounds: u32,
    /// Rounds at most, where precision decides.
    #[serde(default)]
    rounds_max: Option<u32>,
    /// How well the values are to be known.
    #[serde(default)]
    precision: Option<f64>,
    /// A program that runs start.
    #[serde(default)]
    program: Option<PathBuf>,
    /// The number of the run in which a build puts another file with this content in the place of that program.
    #[serde(default)]
    rebuilt: Option<(u32, String)>,
    /// Round and cell of a run that fails as nothing more can be written.
    #[serde(default)]
    full: Option<(u32, u32)>,
    #[serde(default = "usual_seed")]
    seed: u64,
    /// Rounds and cells of runs that are disturbed at their first attempt.
    #[serde(default)]
    disturbed: Vec<(u32, u32)>,
    /// Round and cell of a run that fails.
    #[serde(default)]
    fails: Option<(u32, u32)>,
    /// Time for the rounds after the first one, which each run uses up.
    #[serde(default)]
    budget_ms: Option<u64>,
}

impl CountingPlan {
    fn budget(&self) -> Option<Duration> {
        self.budget_ms.map(Duration::from_millis)
    }
}

fn usual_seed() -> u64 {
    7
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Number(u32);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Count {
    round: u32,
    value: f64,
    is_disturbed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Counts {
    cells: Vec<CellResult<Number, Count>>,
    differences: Vec<Difference>,
    failures: Vec<CellFailure>,
}

thread_local! {
    /// Runs that were made and runs that were read since the last look, and how many may be made.
    static WORK: RefCell<(u32, u32, u32)> = const { RefCell::new((0, 0, u32::MAX)) };
}

/// Runs that were made and runs that were read since the last call; from now on `made_max` may be made before the user interrupts.
fn take_work(made_max: u32) -> (u32, u32) {
    let (made, read, _) = WORK.replace((0, 0, made_max));
    (made, read)
}

/// Puts a file in the place of the folder of all runs, once: nobody, not even root, writes into it then.
fn take_runs_away(run: &Path) -> bool {
    let runs = run.parent().expect("a folder of runs");
    let (away, mark) = (runs.with_file_name("away"), runs.with_file_name("taken-once"));
    if mark.exists() {
        return false;
    }
    std::fs::write(mark, "").and_then(|()| std::fs::rename(runs, away)).expect("renamed");
    std::fs::write(runs, "").expect("written");
    true
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "number {}", self.0)
    }
}

impl StudyCell for Number {
    fn baseline<'a, R>(
        cells: &'a [CellResult<Number, R>],
        cell: &CellResult<Number, R>,
    ) -> Option<&'a CellResult<Number, R>> {
        cells.first().filter(|first| first.cell != cell.cell)
    }
}

impl StudyRun for Count {
    const MEASURES: &'static [Measure<Count>] =
        &[Measure { name: "value", of: |run| Some(run.value), more_is: Side::Better, margin: 1.1 }];
    const DONE: Measure<Count> = Measure { name: "done", of: |_| Some(1.0), more_is: Side::Better, margin: 1.001 };

    fn round(&self) -> u32 {
        self.round
    }

    fn is_disturbed(&self) -> bool {
        self.is_disturbed
    }
}

impl StudyOutcome for Counts {
    fn to_text(&self) -> String {
        format!("{} cells", self.cells.len())
    }

    fn shortcoming(&self) -> Option<String> {
        self.failures.first().map(CellFailure::to_string)
    }
}

impl Experiment for Counting {
    type Cell = Number;
    type Run = Count;
    type Site = ();
    type Result = Counts;

    fn parse(_file: &str, text: &str) -> Result<Counting, LabError> {
        let plan: CountingPlan = toml::from_str(text).map_err(LabError::here)?;
        let cells = (1..=plan.cells).map(Number).collect();
        Ok(Counting { plan, cells })
    }

    fn with_seed(self, _seed: u64) -> Counting {
        self
    }

    fn name(&self) -> &str {
        "counting"
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    fn cells(&self) -> &[Number] {
        &self.cells
    }

    fn course(&self) -> CoursePlan {
        let rounds = (self.plan.rounds, self.plan.rounds_max.unwrap_or(self.plan.rounds));
        CoursePlan { rounds, design: Design::Abba, attempts_max: 3, budget: self.plan.budget() }
    }

    fn duration_of(&self, _cell: usize) -> Duration {
        Duration::from_millis(1)
    }

    fn precision(&self) -> Vec<(Measure<Count>, f64)> {
        self.plan.precision.map(|bound| (Count::MEASURES[0], bound)).into_iter().collect()
    }

    fn prepare(&self, _launcher: &Launcher, _stop: &Stop) -> Result<(), LabError> {
        Ok(())
    }

    fn programs(&self, _launcher: &Launcher, _site: &()) -> Vec<(String, PathBuf)> {
        self.plan.program.iter().map(|path| ("program of a peer".to_owned(), path.clone())).collect()
    }

    fn dependencies(&self, _launcher: &Launcher, _site: &()) -> Result<Vec<(String, String)>, LabError> {
        Ok(Vec::new())
    }

    fn make(&self, turn: &StudyTurn<'_, Counting>, folder: &Path) -> Result<(), LabError> {
        let (made, is_over) = WORK.with_borrow_mut(|(made, _, made_max)| {
            *made += 1;
            (*made, *made > *made_max)
        });
        if is_over {
            return Err(LabError::Interrupted);
        }
        let round = turn.round;
        let place = (round, turn.cell as u32);
        if self.plan.fails == Some(place) {
            return Err(LabError::here("it was told to fail"));
        }
        if let Some((path, (_, content))) =
            self.plan.program.as_ref().zip(self.plan.rebuilt.as_ref()).filter(|(_, (run, _))| *run == made)
        {
            std::fs::remove_file(path).and_then(|()| std::fs::write(path, content)).map_err(LabError::here)?;
        }
        if self.plan.full == Some(place) && take_runs_away(folder) {
            return Err(LabError::Failed { process: "receiver".to_owned(), reason: "it cannot write".to_owned() });
        }
        std::thread::sleep(self.plan.budget().unwrap_or_default());
        let is_first = folder.display().to_string().contains("attempt-1");
        let value = f64::from(self.cells[turn.cell].0);
        let count = Count { round, value, is_disturbed: is_first && self.plan.disturbed.contains(&place) };
        std::fs::write(folder.join("count.json"), serde_json::to_string(&count).expect("text")).map_err(LabError::here)
    }

    fn goes_on_after(&self, cell: usize, _error: &LabError, _has_failed: &dyn Fn(usize) -> bool) -> bool {
        cell > 0
    }

    fn load(&self, folder: &Path, name: RunName) -> Result<Vec<(usize, Count)>, LabError> {
        WORK.with_borrow_mut(|(_, read, _)| *read += 1);
        Ok(vec![(name.cell as usize, load_json(&folder.join("count.json"))?)])
    }

    fn check(&self, folder: &Path, cell: usize) -> Result<(), String> {
        let count: Count = load_json(&folder.join("count.json")).map_err(|error| error.to_string())?;
        if count.value == f64::from(self.cells[cell].0) { Ok(()) } else { Err("it counted wrongly".to_owned()) }
    }

    fn conclude(&self, record: &StudyRecord<'_, Counting>) -> Result<Counts, LabError> {
        let cells = record.whole_cells(self)?;
        Ok(Counts { differences: within(&cells), cells, failures: record.failures.to_vec() })
    }

    fn cells_of(result: &Counts) -> &[StudyCells<Counting>] {
        &result.cells
    }

    fn files(&self, _directory: &Path, result: &Counts) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("report.html", result.to_text())])
    }

    fn overview(cells: &[StudyCells<Counting>]) -> Result<Told, LabError> {
        let mut table = Table::new("Counts", &["cell", "runs"]);
        table.rows = cells.iter().map(|cell| vec![cell.name.clone(), cell.runs.len().to_string()]).collect();
        Ok(Told { text: table.to_text(), ..Told::default() })
    }
}

/// A directory of the test `name`, with nothing in it; removed at the end.
struct Folder(LabFolder);

impl Folder {
    fn new(name: &str) -> Folder {
        take_work(u32::MAX);
        Folder(LabFolder::new(name))
    }

    fn begin(&self, text: &str) -> Result<Counts, LabError> {
        let counting = Counting::parse("x", text)?;
        begin((counting, text), &self.0, &launcher(), &Stop::default())
    }

    fn resume(&self) -> Result<Counts, LabError> {
        resume::<Counting>(&self.0, &launcher(), &Stop::default())
    }
}

#[test]
fn a_directory_is_taken_up_by_the_same_plan_and_programs_alone() {
    let folder = Folder::new("taken-up");
    let take_up = |text: &str| take_up::<Counting>(&folder.0, text, &launcher(), &Stop::default());
    let refusal = |text: &str| take_up(text).expect_err("another plan").to_string();
    take_work(3);
    assert!(matches!(folder.begin("seed = 5\ncells = 2\nrounds = 2"), Err(LabError::Interrupted)));
    take_work(u32::MAX);
    let begun = refusal("seed = 5\ncells = 2\nrounds = 3");
    check_contains(&begun, &["a line of its plan was `rounds = 2` and is `rounds = 3`", "--out"]);
    let counts = take_up("seed = 6\ncells = 2\nrounds = 2").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((take_work(u32::MAX).0, counts.cells.len()), (1, 2), "the missing run, whatever the seed");
    assert_eq!(load_manifest(&folder.0).expect("a manifest").seed, 5, "that of the first start");
    assert!(take_up("seed = 6\ncells = 2\nrounds = 2").is_ok() && take_work(u32::MAX).0 == 0, "it is complete");
    assert!(refusal("cells = 2\nrounds = 2\ndisturbed = [[0, 1]]").contains("was missing and is `disturbed"));
    let path = folder.0.join("manifest.json");
    let text = std::fs::read_to_string(&path).expect("a manifest");
    let program = &load_manifest(&folder.0).expect("a manifest").fingerprint.parts["program"];
    std::fs::write(&path, text.replace(program.as_str(), "0123456789abcdef")).expect("written");
    let other_build = refusal("cells = 2\nrounds = 2");
    assert!(other_build.contains("program was 0123456789abcdef and is "), "{other_build:?}");
}

fn launcher() -> Launcher {
    Launcher::new("unused", [""; 0])
}

#[test]
fn each_run_of_a_study_is_read_once_however_many_there_are() {
    let folder = Folder::new("once");
    take_work(250);
    let interrupted = folder.begin("cells = 2\nrounds = 150");
    assert!(matches!(interrupted, Err(LabError::Interrupted)));
    assert_eq!(take_work(u32::MAX), (251, 250), "one more was begun");
    let counts = folder.resume().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(take_work(u32::MAX), (50, 300), "those that are there once, and the missing ones");
    assert!(counts.cells.iter().all(|cell| cell.runs.len() == 150));
    let manifest = load_manifest(&folder.0).expect("a manifest");
    assert_eq!((manifest.state, manifest.runs_done, manifest.runs_planned), (State::Complete, 300, 300));
}

#[test]
fn runs_for_which_the_time_did_not_suffice_are_made_later() {
    let folder = Folder::new("time");
    let counts = folder.begin("cells = 2\nrounds = 4\nbudget_ms = 20").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((take_work(u32::MAX).0, counts.cells[1].runs.len()), (2, 1), "the first round alone");
    let planned =
        |folder: &Folder| load_manifest(&folder.0).map(|manifest| (manifest.runs_done, manifest.runs_planned));
    assert_eq!(planned(&folder).expect("a manifest"), (2, 2));
    let made_and_end = || -> (u32, String) {
        let mut made = 0;
        loop {
            let resumed = folder.resume();
            // A machine that stands still for the whole budget makes none.
            let more = take_work(u32::MAX).0;
            assert!(more <= 1, "each start has the same time: {more}");
            made += more;
            if let Err(error) = resumed {
                return (made, error.to_string());
            }
        }
    };
    let (made, end) = made_and_end();
    assert!(made == 6 && end.contains("is complete"), "{made}: {end}");
    assert_eq!(planned(&folder).expect("a manifest"), (8, 8));
    assert_eq!(verify::<Counting>(&folder.0).expect("a directory").faults, [""; 0]);
}

#[test]
fn any_experiment_is_judged_verified_and_watched() {
    let folder = Folder::new("any");
    let counts = folder.begin("cells = 2\nrounds = 8\ndisturbed = [[3, 1]]").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(take_work(u32::MAX), (17, 17), "the disturbed run was made again");
    let told: Vec<_> = counts.differences.iter().map(|one| (one.quantity.as_str(), one.verdict)).collect();
    assert_eq!(told, [("value", crate::statistics::Verdict::Better)]);
    let verification = verify::<Counting>(&folder.0).expect("a directory");
    assert_eq!((verification.runs, verification.faults.as_slice()), (17, &[][..]));
    let snapshot = StudyWatcher::<Counting>::new(&folder.0).expect("a directory").look().expect("whole");
    assert!(snapshot.to_text().contains("number 2") && snapshot.is_over(), "{}", snapshot.to_text());
    std::fs::write(
        folder.0.join("runs/round-003-cell-001-attempt-2/count.json"),
        "{\"round\":3,\"value\":5,\"is_disturbed\":false}",
    )
    .expect("written");
    let faults = verify::<Counting>(&folder.0).expect("a directory").faults;
    assert_eq!(faults, ["round 3 of cell 1: it counted wrongly", "results.json does not agree with the runs"]);
}

#[test]
fn what_was_disturbed_is_made_again_after_the_others_of_its_round() {
    let folder = Folder::new("again");
    folder.begin("cells = 4\nrounds = 2\ndisturbed = [[0, 1], [0, 2]]").unwrap_or_else(|error| panic!("{error}"));
    let diary = std::fs::read_to_string(folder.0.join("events.jsonl")).expect("a diary");
    let runs: Vec<[u64; 3]> = diary
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|event| ["round", "cell", "attempt"].map(|name| event["content"][name].as_u64()))
        .filter_map(|[round, cell, attempt]| Some([round?, cell?, attempt?]))
        .collect();
    let (first, rest) = runs.split_at(4);
    assert!(first.iter().all(|[round, _, attempt]| (*round, *attempt) == (0, 1)), "{runs:?}");
    let again: Vec<_> = first.iter().filter(|[_, cell, _]| [1, 2].contains(cell)).map(|run| [0, run[1], 2]).collect();
    assert_eq!(rest[..2], again, "in the order of the round");
    assert!(rest.len() == 6 && rest[2..].iter().all(|[round, ..]| *round == 1), "{runs:?}");
}

#[test]
fn a_cell_that_fails_is_left_out_where_the_experiment_goes_on() {
    let folder = Folder::new("fails");
    let counts = folder.begin("cells = 3\nrounds = 4\nfails = [1, 2]").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((counts.cells.len(), counts.failures.len()), (2, 1));
    assert_eq!(counts.shortcoming().as_deref(), Some("number 3 failed in round 2: it was told to fail"));
    let manifest = load_manifest(&folder.0).expect("a manifest");
    assert_eq!((manifest.runs_done, manifest.runs_planned), (8, 8), "the cell that failed does not count");
    let folder = Folder::new("ends");
    let error =
        folder.begin("cells = 2\nrounds = 4\nfails = [1, 0]").expect_err("the first one must not fail").to_string();
    assert_eq!(error, "it was told to fail");
    assert_eq!(load_manifest(&folder.0).expect("a manifest").state, State::Failed);
}

#[test]
fn runs_before_and_after_a_build_are_not_mixed() {
    let programs = LabFolder::new("program-of-a-peer");
    let peer = programs.join("peer");
    let text = |content: &str| format!("cells = 2\nrounds = 4\nprogram = {peer:?}\nrebuilt = [3, {content:?}]");
    std::fs::write(&peer, "one build").expect("written");
    let folder = Folder::new("same-build");
    folder.begin(&text("one build")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(take_work(u32::MAX).0, 8, "the same build was written again");
    let folder = Folder::new("another-build");
    let error = folder.begin(&text("another build")).expect_err("the third run is of another build").to_string();
    check_contains(&error, &["program of a peer (", "other conditions", "choose another directory with --out"]);
    assert_eq!(whole_runs(&folder.0).len(), 2, "those from before");
    assert_eq!(load_manifest(&folder.0).expect("a manifest").state, State::Failed);
    assert!(!folder.0.join("failures.json").exists(), "no cell is to blame");
}

#[test]
fn a_full_disk_is_no_fault_of_a_cell() {
    let folder = Folder::new("full");
    let error = folder.begin("cells = 3\nrounds = 2\nfull = [1, 2]").expect_err("nothing can be written");
    assert!(matches!(error, LabError::Study(StudyError::NotWritten { .. })), "{error}");
    assert!(!folder.0.join("failures.json").exists());
    assert_eq!(load_manifest(&folder.0).expect("a manifest").state, State::Failed);
    let runs = folder.0.join("runs");
    std::fs::remove_file(&runs).and_then(|()| std::fs::rename(folder.0.join("away"), &runs)).expect("there is room");
    let counts = folder.resume().unwrap_or_else(|error| panic!("{error}"));
    assert!(counts.failures.is_empty() && counts.cells.iter().all(|cell| cell.runs.len() == 2), "{counts:?}");
}

#[test]
fn a_cell_that_failed_keeps_no_other_from_being_known_well_enough() {
    let folder = Folder::new("precise");
    let text = "cells = 3\nrounds = 8\nrounds_max = 12\nprecision = 0.03\nfails = [0, 2]";
    let counts = folder.begin(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(counts.cells.iter().map(|cell| cell.runs.len()).collect::<Vec<_>>(), [8, 8]);
}

fn scenario(design: &str, seed: u64) -> Scenario {
    let schedule = format!("seconds = 1\nruns = 8\ndesign = \"{design}\"");
    Scenario { seed, ..scenario_with("payload_bytes = [1, 2, 3]\nrate_hz = 10", &schedule) }
}

#[test]
fn a_block_is_an_order_of_chance_and_its_reverse() {
    let scenario = scenario("abba", 5);
    let rounds: Vec<Vec<usize>> = (0..40).map(|round| cells_of_round(&scenario, round).concat()).collect();
    for (first, second) in rounds.iter().step_by(2).zip(rounds.iter().skip(1).step_by(2)) {
        let mut reversed = second.clone();
        reversed.reverse();
        assert_eq!(*first, reversed);
    }
    let firsts: std::collections::HashSet<_> = rounds.iter().step_by(2).collect();
    assert!(firsts.len() > 3, "chance decides: {firsts:?}");
    let other = self::scenario("abba", 6);
    assert_ne!(rounds, (0..40).map(|round| cells_of_round(&other, round).concat()).collect::<Vec<_>>());
}

#[test]
fn a_sequence_is_that_of_the_file() {
    assert_eq!(cells_of_round(&scenario("sequential", 5), 7), [[0, 1, 2]]);
}
