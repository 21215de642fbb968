//! What the runs prove of each way, and the one that is chosen.

use std::path::Path;

use serde::Serialize;

use super::goal::{LossTolerance, ProfileGoal};
use crate::error::LabError;
use crate::figures::{grouped, or_dash, rounded};
use crate::host::Environment;
use crate::scenario::{Cell, CellSending, HistorySetting, RELIABILITY, ReliabilitySetting, Scenario, name_in};
use crate::station::{PackingMethod, Sending};
use crate::statistics::{Middle, RUNS_MIN, Verdict, below, median, middle, verdicts};
use crate::study::{self, CellResult, RunSummary, StudyResult};
use crate::table::Table;

/// The ways that were measured for a goal, and the one that serves it.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileChoice {
    /// Layout: `thalweg.profile-choice/1`.
    pub schema: &'static str,
    /// What is needed.
    pub goal: ProfileGoal,
    /// Each way that was measured.
    pub ways: Vec<MeasuredWay>,
    /// The place of the chosen one; none where nothing surely serves.
    pub chosen: Option<usize>,
    /// The place of the one that comes nearest, where none serves.
    pub nearest: Option<usize>,
    /// Where it was measured.
    pub environment: Environment,
    /// First start of its runs, in seconds since 1970 UTC.
    pub started_unix_s: u64,
}

/// A way with its figures, each the median over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredWay {
    /// The way in words.
    pub name: String,
    /// RELIABILITY of both ends.
    pub reliability: ReliabilitySetting,
    /// HISTORY of both ends.
    pub history: HistorySetting,
    /// How samples share datagrams.
    pub way: CellSending,
    /// 99th percentile of the latency since a sample was due, in microseconds; missing where a run has too few samples.
    pub p99_us: Option<Middle>,
    /// Bits that left all hosts in a second, in Mbit/s; missing where there was no link.
    pub wire_mbit: Option<Middle>,
    /// CPU time of publisher and subscribers together, in per cent of one CPU.
    pub cpu_pct: Option<Middle>,
    /// Samples that were due in all runs.
    pub due: u64,
    /// Samples that never arrived.
    pub missing: u64,
    /// Runs.
    pub runs: usize,
    /// Whether it serves.
    pub fitness: Fitness,
    /// Why it does not, or why nobody knows.
    pub reasons: Vec<String>,
    /// The study, and the largest share of a bound that each of its runs used, by round.
    #[serde(skip)]
    shares: (usize, Vec<(u32, f64)>),
}

/// Whether a way serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fitness {
    /// It keeps every bound, surely.
    Fits,
    /// It surely breaks one.
    Refused,
    /// The runs do not tell.
    NotJudged,
}

/// A quantity with a bound.
struct Bound {
    what: &'static str,
    unit: &'static str,
    most: f64,
    of: fn(&RunSummary) -> Option<f64>,
}

impl ProfileChoice {
    /// Judges what the complete directories in `paths` say of the goal.
    ///
    /// # Errors
    /// One is no complete run directory of a scenario, or none has a cell with this size, rate and number of subscribers.
    pub fn from_directories(goal: &ProfileGoal, paths: &[impl AsRef<Path>]) -> Result<ProfileChoice, LabError> {
        let mut studies = Vec::new();
        for path in paths {
            let path = path.as_ref();
            studies.push((study::load::<StudyResult>(path)?, Scenario::load(&path.join("scenario.toml"))?.0));
        }
        ProfileChoice::new(goal, &studies).map_err(LabError::Here)
    }

    pub(super) fn new(goal: &ProfileGoal, studies: &[(StudyResult, Scenario)]) -> Result<ProfileChoice, String> {
        let fits = |cell: &Cell| {
            let (bytes, ours) = (cell.load.bytes() == u64::from(goal.sample_bytes), cell.middleware.peer().is_none());
            let one = cell.publishers == 1 && cell.flow.is_none() && !cell.is_closed_loop();
            bytes && ours && one && cell.rate_hz == goal.rate_hz && cell.subscribers == goal.subscribers
        };
        let all =
            || studies.iter().enumerate().flat_map(|(at, study)| study.0.cells.iter().map(move |cell| (at, cell)));
        let found: Vec<(usize, &CellResult)> = all().filter(|(_, cell)| fits(&cell.cell)).collect();
        let Some((first, _)) = studies.first().filter(|_| !found.is_empty()) else {
            let mut there: Vec<String> = all().map(|(_, cell)| cell.cell.data()).collect();
            there.dedup();
            return Err(format!(
                "nothing there was measured with one publisher, {} subscribers and {} B at {} Hz; the directories hold {}",
                goal.subscribers,
                goal.sample_bytes,
                goal.rate_hz,
                there.join("; ")
            ));
        };
        let mut ways: Vec<MeasuredWay> =
            found.iter().map(|(at, cell)| MeasuredWay::new(goal, *at, cell, &studies[*at].1)).collect();
        let cells: Vec<&CellResult> = found.iter().map(|(_, cell)| *cell).collect();
        goal.bounds().iter().for_each(|bound| judge(bound, &cells, &mut ways));
        let chosen = choose(&ways);
        let use_of = |one: &MeasuredWay| median(one.shares.1.iter().map(|(_, share)| *share).collect::<Vec<f64>>());
        let order = |place: &usize| use_of(&ways[*place]).unwrap_or(f64::INFINITY);
        let nearest = (0..ways.len()).min_by(|one, other| order(one).total_cmp(&order(other)));
        Ok(ProfileChoice {
            schema: "thalweg.profile-choice/1",
            goal: goal.clone(),
            nearest: nearest.filter(|_| chosen.is_none()),
            ways,
            chosen,
            environment: first.environment.clone(),
            started_unix_s: first.started_unix_s,
        })
    }

    /// The chosen way.
    pub fn winner(&self) -> Option<&MeasuredWay> {
        self.chosen.map(|place| &self.ways[place])
    }

    /// Why there is no profile, where that is so.
    pub fn shortcoming(&self) -> Option<String> {
        let nearest = self.nearest.map(|place| &self.ways[place])?;
        let (verb, advice) = match nearest.fitness {
            Fitness::NotJudged => ("may", "make more runs on a quiet machine, or allow more"),
            _ => ("does not", "allow more, or send less"),
        };
        Some(format!(
            "no way surely serves; the nearest, {}, {verb}: {}; {advice}",
            nearest.name,
            nearest.reasons.join("; ")
        ))
    }

    /// A table of the ways, and the choice.
    pub fn to_text(&self) -> String {
        let goal = &self.goal;
        let caption = format!(
            "{} B at {} Hz to {}, p99 within {} ms of when a sample was due: medians over the runs with 95 % intervals",
            grouped(u64::from(goal.sample_bytes)),
            goal.rate_hz,
            goal.subscribers,
            goal.deadline_ms
        );
        let row = |one: &MeasuredWay| {
            let verdict = match one.fitness {
                Fitness::Fits => "serves".to_owned(),
                Fitness::Refused => format!("refused: {}", one.reasons.join("; ")),
                Fitness::NotJudged => format!("not judged: {}", one.reasons.join("; ")),
            };
            let missing = format!("{} of {}", grouped(one.missing), grouped(one.due));
            vec![
                one.name.clone(),
                shown(one.p99_us, 1e-3),
                shown(one.wire_mbit, 1.0),
                shown(one.cpu_pct, 1.0),
                missing,
                verdict,
            ]
        };
        let header = ["way", "p99, ms", "wire, Mbit/s", "CPU, %", "missing", "verdict"];
        let table = Table { words: vec![5], ..Table::of(caption, &header, self.ways.iter().map(row)) };
        let chosen = self.winner().map(|one| format!("\nChosen: {}\n", one.name)).unwrap_or_default();
        format!("{}{chosen}", table.to_text())
    }
}

/// A median with its interval, `0.812 (0.801–0.9)`.
pub(super) fn shown(figure: Option<Middle>, unit: f64) -> String {
    let scaled = |value: f64| rounded(value * unit);
    or_dash(figure, |one| format!("{} ({}–{})", scaled(one.estimate), scaled(one.low), scaled(one.high)))
}

impl ProfileGoal {
    fn bounds(&self) -> Vec<Bound> {
        let deadline = Bound {
            what: "p99",
            unit: "ms",
            most: self.deadline_ms,
            of: |run| Some(run.totals.response.p99_us? / 1e3),
        };
        let wire = self.wire_mbit.map(|most| Bound { what: "the wire", unit: "Mbit/s", most, of: wire_mbit });
        let cpu = self.cpu_pct.map(|most| Bound { what: "CPU", unit: "%", most, of: |run| Some(100.0 * run.cpu) });
        [Some(deadline), wire, cpu].into_iter().flatten().collect()
    }
}

fn wire_mbit(run: &RunSummary) -> Option<f64> {
    Some(run.wire?.sent_per_s? * 8e-6)
}

impl MeasuredWay {
    fn new(goal: &ProfileGoal, study: usize, cell: &CellResult, scenario: &Scenario) -> MeasuredWay {
        let of_runs =
            |of: &dyn Fn(&RunSummary) -> Option<f64>| middle(&cell.runs.iter().map(of).collect::<Option<Vec<f64>>>()?);
        let share = |run: &RunSummary| {
            let shares = goal.bounds().into_iter().map(|bound| (bound.of)(run).map(|value| value / bound.most));
            shares.collect::<Option<Vec<f64>>>().map(|shares| (run.round, shares.into_iter().fold(0.0, f64::max)))
        };
        let reliability = cell.cell.reliability.unwrap_or(scenario.qos.reliability);
        let history = scenario.qos.history;
        let way = cell.cell.sending.as_deref().cloned();
        let way = way.unwrap_or_else(|| CellSending::by(PackingMethod::Auto));
        let sending = Sending { destination: cell.cell.destination, ..way.sending };
        let way = CellSending { sending, ..way };
        let missing = cell.sum(|totals| totals.lost + totals.not_sent);
        let mut reasons: Vec<String> =
            goal.loss.objection(reliability, history).into_iter().map(str::to_owned).collect();
        if goal.loss == LossTolerance::None && missing > 0 {
            reasons.push(format!("{} samples never arrived", grouped(missing)));
        }
        MeasuredWay {
            name: format!("{}, {way}", name_in(&RELIABILITY, &reliability)),
            p99_us: of_runs(&|run| run.totals.response.p99_us),
            wire_mbit: of_runs(&wire_mbit),
            cpu_pct: of_runs(&|run| Some(100.0 * run.cpu)),
            due: cell.sum(|totals| totals.due),
            missing,
            runs: cell.runs.len(),
            fitness: if reasons.is_empty() { Fitness::Fits } else { Fitness::Refused },
            reasons,
            shares: (study, cell.quiet_runs().filter_map(share).collect()),
            reliability,
            history,
            way,
        }
    }

    /// The runs do not tell, for this reason; what is refused stays so.
    fn leave_open(&mut self, reason: String) {
        if self.fitness != Fitness::Refused {
            self.fitness = Fitness::NotJudged;
            self.reasons.push(reason);
        }
    }
}

/// Judges a quantity in all cells together: all that is said of them is true with 95 % (Holm).
fn judge(bound: &Bound, cells: &[&CellResult], ways: &mut [MeasuredWay]) {
    let values = |cell: &&CellResult| {
        let all = cell.quiet_runs().map(bound.of).collect::<Option<Vec<f64>>>();
        all.unwrap_or_default()
    };
    let lists: Vec<Vec<f64>> = cells.iter().map(values).collect();
    let keeps = below(&lists, bound.most);
    let turned: Vec<Vec<f64>> = lists.iter().map(|list| list.iter().map(|value| -value).collect()).collect();
    let breaks = below(&turned, -bound.most);
    for (at, way) in ways.iter_mut().enumerate() {
        let figure = format!(
            "{} {} {} where {} are allowed",
            bound.what,
            shown(middle(&lists[at]), 1.0),
            bound.unit,
            bound.most
        );
        if breaks[at] {
            if way.fitness == Fitness::NotJudged {
                way.reasons.clear();
            }
            way.fitness = Fitness::Refused;
            way.reasons.push(figure);
        } else if lists[at].len() < RUNS_MIN && cells[at].is_disturbed() {
            let reason = "the machine was quiet in too few runs";
            if !way.reasons.iter().any(|one| one == reason) {
                way.leave_open(reason.to_owned());
            }
        } else if lists[at].is_empty() {
            way.leave_open(format!("{} was not measured, or by too few samples", bound.what));
        } else if !keeps[at] {
            way.leave_open(figure);
        }
    }
}

/// The first way that serves, unless another one of the same study surely leaves more of the tightest bound.
fn choose(ways: &[MeasuredWay]) -> Option<usize> {
    let serves: Vec<usize> = (0..ways.len()).filter(|at| ways[*at].fitness == Fitness::Fits).collect();
    let first = *serves.first()?;
    let (study, usual) = &ways[first].shares;
    let others: Vec<usize> = serves.into_iter().filter(|at| *at != first && ways[*at].shares.0 == *study).collect();
    let ratios = |at: &usize| {
        let rounds = ways[*at].shares.1.iter();
        let usual_of = |round: u32| usual.iter().find(|(other, _)| *other == round).map(|(_, share)| *share);
        rounds.filter_map(|(round, share)| Some((share / usual_of(*round)?).ln())).collect::<Vec<f64>>()
    };
    let lists: Vec<Vec<f64>> = others.iter().map(ratios).collect();
    let better = verdicts(&lists, MARGIN.ln());
    let gain = |at: &usize| median(&lists[*at]).unwrap_or(0.0);
    let best = (0..others.len()).filter(|at| better[*at] == Verdict::Better && gain(at) < -MARGIN.ln());
    let best = best.min_by(|one, other| gain(one).total_cmp(&gain(other)));
    best.map_or(Some(first), |at| Some(others[at]))
}

/// Shares that differ by less are the same.
const MARGIN: f64 = 1.05;
