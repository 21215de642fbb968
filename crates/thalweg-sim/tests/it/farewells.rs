//! Participants that leave and say so.

use std::time::Duration;

use thalweg_sim::network::{GroupFilter, Weather};
use thalweg_sim::plan::{Ending, Plan};

use super::scenario::{at_ms, check, keep_all, plan, reader, reads_all, writer};

/// Whether a writer that soon waits for a reader in a process that leaves had to wait for its lease.
fn waits_for_the_lease(seed: u64, group_filter: GroupFilter) -> bool {
    let readers = vec![reader(1, reads_all(None)), reader(2, reads_all(None))];
    let mut plan = Plan { seed, group_filter, ..plan(3, vec![writer(0, keep_all(Some(10)))], readers) };
    plan.weather = Weather { loss: 0.3, latency: Duration::from_millis(1), ..Weather::CLEAR };
    plan.processes[2].ends = Some((at_ms(1_300), Ending::Leaves));
    check(plan).record().writers[0].longest_wait > Duration::from_secs(5)
}

#[test]
fn a_farewell_arrives_although_a_third_of_all_datagrams_is_lost() {
    for group_filter in [GroupFilter::Nothing, GroupFilter::Everything] {
        let unheard = (0..100).filter(|seed| waits_for_the_lease(*seed, group_filter)).count();
        assert_eq!(unheard, 0, "{unheard} of 100 farewells were lost: {group_filter:?}");
    }
}
