//! Hosts whose address changes.

use std::time::Duration;

use thalweg_sim::network::{GroupFilter, Weather};
use thalweg_sim::plan::{Cut, MovePlan, Plan, SplitPlan, WriterPlan};

use super::scenario::{at_ms, check, cut_off, keep_all, plan, reader, reads_all, writer};

/// A writer on host 0 and a reader on host 1, which moves and is reached neither by groups nor at the address that host 0 was
/// configured with.
fn moved(loss: f64) -> Plan {
    let steady = WriterPlan { samples: 200, period: Duration::from_millis(50), ..writer(0, keep_all(None)) };
    let mut plan = plan(2, vec![steady], vec![reader(1, reads_all(None))]);
    plan.group_filter = GroupFilter::Everything;
    plan.weather = Weather { loss, latency: Duration::from_millis(2), ..Weather::CLEAR };
    plan.processes.iter_mut().for_each(|process| process.lease_duration = Duration::from_secs(3));
    plan.moves.push(MovePlan { host: 1, at: at_ms(1_500), told_after: Duration::from_millis(200) });
    plan
}

/// The one that moved was not heard of for more than a lease: it is known, at its new address, to another one that it has forgotten, and
/// that tells of itself where it was configured to.
#[test]
fn a_participant_that_moved_and_forgot_others_hears_of_them_again() {
    for (seed, loss) in (0..10).flat_map(|seed| [(seed, 0.0), (seed, 0.2)]) {
        let mut plan = Plan { seed, ..moved(loss) };
        plan.splits.push(SplitPlan { cut: Cut::FromHosts, ..cut_off(0, 3_000, 8_000) });
        check(plan);
    }
}

/// Both forgot each other, and the one that did not move has no address that leads to the other.
#[test]
fn participants_that_forgot_each_other_after_a_move_meet_again() {
    for (seed, loss) in (0..10).flat_map(|seed| [(seed, 0.0), (seed, 0.2)]) {
        let mut plan = Plan { seed, ..moved(loss) };
        plan.splits.push(cut_off(0, 3_000, 8_000));
        check(plan);
    }
}
