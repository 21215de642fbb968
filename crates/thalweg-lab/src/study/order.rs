//! In what order the cells take turns.

use crate::random::Random;
use crate::scenario::{Design, Scenario};

/// The cells in the order of their runs in `round`, from 0.
///
/// ABBA: two rounds form a block, in which the second one goes through the cells of the first in reverse, so that a steady drift of the
/// machine touches all cells alike; chance decides each block's first order.
pub(super) fn cells_of_round(scenario: &Scenario, round: u32) -> Vec<usize> {
    let count = scenario.cells.len();
    match scenario.schedule.design {
        Design::Sequential => (0..count).collect(),
        Design::Abba => {
            let block = u64::from(round / BLOCK);
            let mut order = Random::new(scenario.seed.wrapping_add(block << 32)).order(count);
            if round % BLOCK == 1 {
                order.reverse();
            }
            order
        }
    }
}

/// Rounds of a block: one and its reverse.
pub(super) const BLOCK: u32 = 2;
