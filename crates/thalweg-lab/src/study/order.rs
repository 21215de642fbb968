//! In what order the cells take turns.

use std::collections::BTreeMap;

use super::experiment::Experiment;
use crate::scenario::Design;
use thalweg_base::rng::Rng;

/// The cells of each stage in the order of their runs in `round`, from 0.
///
/// ABBA: two rounds form a block, in which the second one goes through the cells of each stage in reverse, so that a steady drift of the
/// machine touches all cells alike; chance decides each block's first order.
pub(super) fn cells_of_round<E: Experiment>(experiment: &E, round: u32) -> Vec<Vec<usize>> {
    let mut stages: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for cell in (0..experiment.cells().len()).filter(|cell| experiment.leader(*cell) == *cell) {
        stages.entry(experiment.stage(cell)).or_default().push(cell);
    }
    let design = experiment.course().design;
    let order = |(stage, cells): (u64, Vec<usize>)| match design {
        Design::Sequential => cells,
        Design::Abba => {
            let block = u64::from(round / BLOCK);
            let seed = experiment.seed().wrapping_add(block << 32) ^ stage << 56;
            let mut order = Rng::new(seed).order(cells.len());
            if round % BLOCK == 1 {
                order.reverse();
            }
            order.into_iter().map(|place| cells[place]).collect()
        }
    };
    stages.into_iter().map(order).collect()
}

/// Rounds of a block: one and its reverse.
pub(super) const BLOCK: u32 = 2;
