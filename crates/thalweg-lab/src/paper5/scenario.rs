//! The course of the preset: round after round, in each every cell once, in an order by chance.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::cell::{Contender, PaperFigure, ServerCell};
use super::journal::{self, Journal};
use super::plan::Paper5Plan;
use super::result::{Paper5Facts, Paper5Result, ServerCellRuns, ServerFacts};
use super::run::{self, Stage};
use crate::error::LabError;
use crate::host::{ConditionsWatch, Energy, Environment, HostFiles};
use crate::paper1::Missing;
use crate::process::{Launcher, Stop};
use crate::progress::{Pace, Progress};
use crate::random::Random;
use crate::statistics::median;

/// Runs the preset with processes started by `launcher` and keeps its runs in `out`, so that the same plan goes on after an
/// interruption; progress goes to standard error, loud words about what is missing by `remark`.
///
/// # Errors
/// `stop` was requested, `out` cannot be written, or nothing at all could be measured. What a single server could not do stands in
/// the result.
pub fn run(
    plan: &Paper5Plan,
    out: &Path,
    launcher: &Launcher,
    stop: &Stop,
    remark: &dyn Fn(&str),
) -> Result<Paper5Result, LabError> {
    let started = Instant::now();
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let environment = Environment::read();
    let watch = ConditionsWatch::start(HostFiles::here());
    let (plan, missing) = &with_peers_that_are_there(plan);
    missing.iter().for_each(|one: &Missing| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    let cpus = (environment.cores >= 2).then_some((0, 1));
    let mut cells = journal::empty(plan.cells());
    let build = format!("{} {}", environment.version, environment.build);
    let mut course = Course {
        stage: Stage { plan, launcher, stop, cpus },
        journal: Journal::open(out, &plan.command(), &build, &mut cells)?,
        cells,
        started,
        pace: Pace::new(plan.expected().as_secs_f64()),
        progress: Progress::new("CoAP"),
        left_out: 0,
    };
    course.make_all()?;
    course.progress.finish();
    let Course { cells, left_out, .. } = course;
    if cells.iter().all(|cell| cell.runs.is_empty()) {
        let reasons: Vec<&str> = cells.iter().flat_map(|cell| cell.failures.first().map(String::as_str)).collect();
        return Err(LabError::Here(format!("nothing could be measured: {}", reasons.join("; "))));
    }
    Ok(Paper5Result {
        schema: Paper5Result::SCHEMA.to_owned(),
        course: Paper5Facts {
            command: plan.command(),
            started_unix_s,
            seconds: started.elapsed().as_secs_f64(),
            seed: plan.seed,
            runs: plan.runs,
            scale: plan.scale,
            cpus,
            has_energy: Energy::of(&HostFiles::here()).read().is_some(),
        },
        environment,
        conditions: watch.finish(),
        contenders: contenders(&cells, plan.peer_folder.as_deref()),
        missing: missing.clone(),
        left_out: left_out_words(left_out),
        cells,
    })
}

/// The plan without the peers whose programs are not there, which are told.
fn with_peers_that_are_there(plan: &Paper5Plan) -> (Paper5Plan, Vec<Missing>) {
    let folder = plan.peer_folder.as_deref();
    let mut missing = Vec::new();
    let mut peers = Vec::new();
    for peer in &plan.peers {
        let why = match peer.version(folder) {
            Some(Ok(_)) => {
                peers.push(*peer);
                continue;
            }
            Some(Err(reason)) => reason,
            None => "its program is not there".to_owned(),
        };
        missing.push(Missing {
            what: format!("the CoAP server with {peer}"),
            why,
            remedy: format!("set it up with `thalweg lab peers install {peer}`, or leave it out with --peers"),
        });
    }
    (Paper5Plan { peers, ..plan.clone() }, missing)
}

struct Course<'a> {
    stage: Stage<'a>,
    journal: Journal,
    cells: Vec<ServerCellRuns>,
    started: Instant,
    pace: Pace,
    progress: Progress,
    /// Runs that the time did not suffice for.
    left_out: u32,
}

impl Course<'_> {
    fn make_all(&mut self) -> Result<(), LabError> {
        let plan = self.stage.plan;
        for round in 0..plan.runs {
            for figure in PaperFigure::ALL {
                let own: Vec<usize> =
                    (0..self.cells.len()).filter(|index| self.cells[*index].cell.figure == figure).collect();
                let mut random = Random::new(plan.seed ^ u64::from(round) << 32 ^ (figure as u64) << 48);
                for (done, place) in random.order(own.len()).into_iter().enumerate() {
                    self.progress.rest(self.pace.rest());
                    let part = format!("figure {figure}, round {}", round + 1);
                    self.progress.show(&part, done as u64, own.len() as u64);
                    self.make(own[place], round)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a run, unless it is made already, its cell has enough, or the time is up.
    fn make(&mut self, index: usize, round: u32) -> Result<(), LabError> {
        let plan = self.stage.plan;
        let ServerCellRuns { cell, runs, failures } = &self.cells[index];
        let seconds = plan.seconds_of(cell);
        let is_made = runs.iter().any(|run| run.round == round);
        if is_made || round >= plan.runs_of(cell) || failures.len() >= FAILURES_MAX {
            self.pace.advance(if round < plan.runs_of(cell) { seconds } else { 0.0 });
            return Ok(());
        }
        let is_over = |budget: Duration| self.started.elapsed() + Duration::from_secs_f64(seconds) > budget;
        if round > 0 && plan.budget().is_some_and(is_over) {
            self.left_out += 1;
            self.pace.advance(seconds);
            return Ok(());
        }
        let capacity = self.capacity(cell);
        let made = run::make(cell, round, capacity, &self.stage);
        self.pace.advance(seconds);
        match made {
            Ok(run) => {
                self.journal.add(index, &run)?;
                self.cells[index].runs.push(run);
            }
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => {
                let reason = error.to_string();
                self.journal.add_failure(index, &reason)?;
                self.cells[index].failures.push(reason);
            }
        }
        Ok(())
    }

    /// What the contender of `cell` served a second at most with its handler: the median of its runs at capacity so far.
    fn capacity(&self, cell: &ServerCell) -> Option<f64> {
        let is_capacity = |result: &&ServerCellRuns| {
            let one = &result.cell;
            one.is_capacity() && one.contender == cell.contender && one.handler == cell.handler
        };
        let runs = &self.cells.iter().find(is_capacity)?.runs;
        median(runs.iter().map(|run| run.load.served_per_s).collect::<Vec<f64>>())
    }
}

/// All contenders with a run, with their versions.
fn contenders(cells: &[ServerCellRuns], folder: Option<&Path>) -> Vec<ServerFacts> {
    let mut out: Vec<ServerFacts> = Vec::new();
    for contender in cells.iter().map(|cell| cell.cell.contender) {
        let name = contender.middleware_name();
        if out.iter().all(|known| known.name != name) {
            let version = match contender {
                Contender::Thalweg(_) => Some(format!("Thalweg {}", env!("CARGO_PKG_VERSION"))),
                Contender::Peer(peer, _) => peer.version(folder).and_then(Result::ok).map(|(_, version)| version),
            };
            let version = version.unwrap_or_else(|| "unknown".to_owned());
            out.push(ServerFacts { name, version, is_ours: contender.is_ours() });
        }
    }
    out
}

fn left_out_words(runs: u32) -> Vec<String> {
    match runs {
        0 => Vec::new(),
        runs => vec![format!(
            "{runs} runs of later rounds, which ten minutes did not suffice for: leave out --quick, or peers or figures"
        )],
    }
}

/// A cell that failed so often is not tried again.
const FAILURES_MAX: usize = 2;
