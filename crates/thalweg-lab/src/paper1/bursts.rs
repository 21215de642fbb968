//! Tables 2 and 3, and the searches before them: contenders take turns.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::contender::{Contender, MethodName, Stage};
use super::outlook::Outlook;
use super::plan::{Burst, Paper1Plan};
use super::result::{BurstRuns, burst_name};
use super::search::{Grid, MeasuredSettings, Search, Settings, search};
use crate::error::LabError;
use crate::progress::{Pace, Progress};
use crate::statistics::Summary;
use thalweg_base::rng::Rng;

/// State shared by the measurements of one run.
pub(super) struct Course<'a> {
    pub(super) plan: &'a Paper1Plan,
    pub(super) stage: Stage<'a>,
    pub(super) shuffle: Rng,
    /// Of the searches alone.
    pub(super) search_pace: Pace,
    pub(super) outlook: Outlook,
    /// Approximate time of Table 4.
    pub(super) background: Duration,
    /// The first orders of turns, by name.
    pub(super) first_orders: Vec<Vec<String>>,
}

impl Course<'_> {
    /// All cells of a table: in each round every contender has one turn, in an order that changes.
    pub(super) fn table(
        &mut self,
        title: &str,
        bursts: &[Burst],
        contenders: &mut [Contender],
    ) -> Result<Vec<BurstRuns>, LabError> {
        let mut progress = Progress::new(title);
        let mut out = Vec::new();
        self.outlook.begin_table(contenders.iter().map(|contender| contender.name.clone()).collect());
        for burst in bursts {
            let mut cell = Turns::default();
            self.outlook.begin_cell();
            let rounds = self.plan.rounds();
            for round in 0..rounds {
                let made = round * self.plan.runs_in_turn();
                let wanted = self.plan.runs_in_turn().min(self.plan.runs - made);
                let order = self.shuffle.order(contenders.len());
                if self.first_orders.len() < ORDERS_KEPT && contenders.len() > 1 {
                    self.first_orders.push(order.iter().map(|index| contenders[*index].name.clone()).collect());
                }
                for index in order {
                    progress.rest(self.outlook.rest() + self.background);
                    progress.show(&burst_name(*burst), round, rounds);
                    if cell.is_slow(index) {
                        continue;
                    }
                    let begun = Instant::now();
                    let values = contenders[index].runs(*burst, wanted, &self.stage)?;
                    cell.add(index, values, begun.elapsed());
                    self.outlook.note(index, begun.elapsed());
                    if cell.is_slow(index) {
                        self.outlook.leave_out(index);
                    }
                }
            }
            for (index, contender) in contenders.iter().enumerate() {
                let runs_ms = cell.take(index, self.plan.runs);
                let Some(summary) = Summary::of(&runs_ms) else {
                    continue;
                };
                out.push(BurstRuns { contender: contender.name.clone(), n: burst.0, size: burst.1, runs_ms, summary });
            }
        }
        progress.finish();
        Ok(out)
    }

    /// The best settings of a method for bursts, every trial kept.
    pub(super) fn search(
        &mut self,
        method: MethodName,
        start: &Settings,
        grids: &[Grid],
        bursts: &[Burst],
    ) -> Result<Search, LabError> {
        let names: Vec<String> = bursts.iter().map(|burst| burst_name(*burst)).collect();
        let mean = if names.len() > 1 { "geometric mean of the medians" } else { "median" };
        let objective = format!("ms, {mean} of {}", names.join(" and "));
        let subject = format!("Thalweg {}", method.text());
        let mut progress = Progress::new("search");
        let is_fine = !self.plan.is_quick();
        let found = search((subject, objective), start.clone(), grids, is_fine, |candidates| {
            progress.rest(self.search_pace.rest() + self.outlook.rest() + self.background);
            progress.show(method.text(), 0, 1);
            self.try_out(method, candidates, bursts)
        });
        progress.finish();
        found
    }

    /// Tries settings against each other, in turns; the objective of each.
    fn try_out(
        &mut self,
        method: MethodName,
        candidates: &[Settings],
        bursts: &[Burst],
    ) -> Result<Vec<Option<MeasuredSettings>>, LabError> {
        let mut contenders: Vec<Contender> =
            candidates.iter().map(|settings| Contender::ours(settings.to_text(), method, settings.clone())).collect();
        for contender in &mut contenders {
            // A contender that cannot start reports the reason when runs are requested.
            if let Err(LabError::Interrupted) = contender.begin(&self.stage) {
                return Err(LabError::Interrupted);
            }
        }
        let (rounds, runs) = self.plan.trial();
        let mut values: HashMap<(usize, Burst), Vec<f64>> = HashMap::new();
        for _ in 0..rounds {
            for burst in bursts {
                for index in self.shuffle.order(contenders.len()) {
                    let made = contenders[index].runs(*burst, runs, &self.stage)?;
                    values.entry((index, *burst)).or_default().extend(made.into_iter().flatten());
                }
            }
        }
        self.search_pace.advance(TRIAL_SECONDS * candidates.len() as f64);
        let measured = |index| {
            let all = bursts.iter().map(|burst| {
                let made = values.get(&(index, *burst))?;
                (made.len() as u64 == rounds * runs).then_some(made.as_slice())
            });
            MeasuredSettings::of(&all.collect::<Option<Vec<&[f64]>>>()?)
        };
        Ok((0..contenders.len()).map(measured).collect())
    }
}

/// Results of the turns of one cell.
#[derive(Debug, Default)]
struct Turns {
    runs_ms: HashMap<usize, Vec<f64>>,
    slow: HashSet<usize>,
}

impl Turns {
    /// Whether a contender has had its only turn.
    fn is_slow(&self, contender: usize) -> bool {
        self.slow.contains(&contender)
    }

    fn add(&mut self, contender: usize, values: Option<Vec<f64>>, took: Duration) {
        if values.is_some() && took > SLOW_TURN {
            self.slow.insert(contender);
        }
        self.runs_ms.entry(contender).or_default().extend(values.into_iter().flatten());
    }

    /// The runs of a contender; none when it failed within the cell, because a part of the runs is no sample of all.
    fn take(&mut self, contender: usize, wanted: u64) -> Vec<f64> {
        let runs_ms = self.runs_ms.remove(&contender).unwrap_or_default();
        let is_whole = self.is_slow(contender) || runs_ms.len() as u64 == wanted;
        if is_whole { runs_ms } else { Vec::new() }
    }
}

/// A contender that needs longer than this for a turn has no other one in that cell: it lies some hundred times behind, which a few runs
/// show; all twenty took minutes a cell.
pub(super) const SLOW_TURN: Duration = Duration::from_secs(2);
/// Typical time of a turn, for the first estimate of the remaining time.
pub(super) const TURN_SECONDS: f64 = 0.08;
/// Time of a trial of one candidate, starting its processes included.
pub(super) const TRIAL_SECONDS: f64 = 0.5;
/// Orders that the result shows.
const ORDERS_KEPT: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_contender_has_one_turn_and_a_failed_one_no_figure() {
        let (fast, slow, failed) = (0, 1, 2);
        let mut turns = Turns::default();
        turns.add(fast, Some(vec![1.0, 2.0]), Duration::from_millis(3));
        turns.add(slow, Some(vec![900.0, 1_300.0]), SLOW_TURN + Duration::from_millis(200));
        turns.add(failed, Some(vec![1.0, 2.0]), Duration::from_millis(3));
        assert_eq!([fast, slow, failed].map(|one| turns.is_slow(one)), [false, true, false]);
        turns.add(fast, Some(vec![3.0, 4.0]), Duration::from_millis(3));
        turns.add(failed, None, SLOW_TURN * 10);
        assert_eq!(turns.take(fast, 4), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(turns.take(slow, 4), [900.0, 1_300.0]);
        assert_eq!(turns.take(failed, 4), [] as [f64; 0]);
    }
}
