//! Participants that share a household.

use thalweg_sim::plan::{Ending, Plan};
use thalweg_sim::trace::Detail;
use thalweg_sim::{WIDE_SEEDS_FROM, World, run};

use super::scenario::{at_ms, check, keep_all, plan, reader, reads_all, writer};

/// A debug build is slow: fewer worlds have to do there.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 1_000 };

/// The drawn world, with all participants of a host in one household.
fn of_one_household_a_host(seed: u64) -> Plan {
    let mut plan = World::new(seed).plan();
    plan.processes.iter_mut().for_each(|process| process.household = Some(process.host));
    plan
}

#[test]
fn every_law_holds_where_the_participants_of_a_host_share_a_household() {
    for seed in (0..SEEDS).chain(WIDE_SEEDS_FROM..WIDE_SEEDS_FROM + SEEDS) {
        run(of_one_household_a_host(seed), Detail::Tail).check_all();
    }
}

/// A writer whose housemates have two readers: one is deleted, the participant of the other vanishes.
#[test]
fn housemates_learn_of_a_deleted_reader_and_of_a_vanished_participant() {
    for seed in 0..10 {
        let mut deleted = reader(1, reads_all(None));
        deleted.deleted = Some(at_ms(1_500));
        let readers = vec![deleted, reader(2, reads_all(None)), reader(3, reads_all(None))];
        let mut plan = Plan { seed, ..plan(4, vec![writer(0, keep_all(None))], readers) };
        plan.processes[2].ends = Some((at_ms(1_700), Ending::Vanishes));
        for process in &mut plan.processes[..3] {
            (process.host, process.household) = (0, Some(0));
        }
        check(plan);
    }
}
