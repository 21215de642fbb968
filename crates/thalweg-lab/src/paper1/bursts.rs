//! Tables 2 and 3, and the searches before them: contenders take turns.

use std::collections::HashMap;

use super::contender::{Contender, MethodName, Stage};
use super::plan::{Burst, Paper1Plan};
use super::result::{Cell, burst_name};
use super::search::{Grid, Measured, Search, Settings, search};
use crate::error::LabError;
use crate::progress::{Pace, Progress};
use crate::random::Random;
use crate::statistics::Summary;

/// What the measurements of one run share.
pub(super) struct Course<'a> {
    pub(super) plan: &'a Paper1Plan,
    pub(super) stage: Stage<'a>,
    pub(super) shuffle: Random,
    pub(super) pace: Pace,
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
    ) -> Result<Vec<Cell>, LabError> {
        let mut progress = Progress::new(title);
        let mut out = Vec::new();
        for burst in bursts {
            let mut runs: HashMap<usize, Vec<f64>> = HashMap::new();
            let rounds = self.plan.runs.div_ceil(self.plan.runs_in_turn());
            for round in 0..rounds {
                let made = round * self.plan.runs_in_turn();
                let wanted = self.plan.runs_in_turn().min(self.plan.runs - made);
                let order = self.shuffle.order(contenders.len());
                if self.first_orders.len() < ORDERS_KEPT && contenders.len() > 1 {
                    self.first_orders.push(order.iter().map(|index| contenders[*index].name.clone()).collect());
                }
                for index in order {
                    progress.rest(self.pace.rest());
                    progress.show(&burst_name(*burst), round, rounds);
                    let values = contenders[index].runs(*burst, wanted, &self.stage)?;
                    runs.entry(index).or_default().extend(values.into_iter().flatten());
                    self.pace.advance(TURN_SECONDS);
                }
            }
            for (index, contender) in contenders.iter().enumerate() {
                let runs_ms = runs.remove(&index).unwrap_or_default();
                // A contender that failed within a cell has no figure there: a part of the runs is no sample of all.
                let Some(summary) = Summary::of(&runs_ms).filter(|summary| summary.count == self.plan.runs) else {
                    continue;
                };
                out.push(Cell { contender: contender.name.clone(), n: burst.0, size: burst.1, runs_ms, summary });
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
            progress.rest(self.pace.rest());
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
    ) -> Result<Vec<Option<Measured>>, LabError> {
        let mut contenders: Vec<Contender> =
            candidates.iter().map(|settings| Contender::ours(settings.to_text(), method, settings.clone())).collect();
        for contender in &mut contenders {
            // One that cannot start tells why when it is asked for runs.
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
        self.pace.advance(TRIAL_SECONDS * candidates.len() as f64);
        let measured = |index| {
            let all = bursts.iter().map(|burst| {
                let made = values.get(&(index, *burst))?;
                (made.len() as u64 == rounds * runs).then_some(made.as_slice())
            });
            Measured::of(&all.collect::<Option<Vec<&[f64]>>>()?)
        };
        Ok((0..contenders.len()).map(measured).collect())
    }
}

/// What a turn takes on a machine of today, for the first guess at the remaining time.
pub(super) const TURN_SECONDS: f64 = 0.08;
/// What a trial of one candidate takes, starting its processes included.
pub(super) const TRIAL_SECONDS: f64 = 0.5;
/// Orders that the result shows.
const ORDERS_KEPT: usize = 3;
