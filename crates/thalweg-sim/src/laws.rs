//! Laws that hold in every world, whatever the weather. Each tells in a sentence how it was broken.

pub mod delivery;
pub mod discovery;
pub mod liveness;
pub mod persistence;
pub mod policies;
pub mod presentation;
pub mod promises;
pub mod repairs;
pub mod resources;
#[cfg(test)]
mod tests;

use crate::record::Record;

/// A law: nothing, or how it was broken.
pub type Law = fn(&Record) -> Result<(), String>;

/// All laws, with their names. Those of [`WHATEVER_IS_DAMAGED`] hold in every world, the others where the network does not
/// damage datagrams: RTPS has no checksum, and a flipped bit may say anything.
pub const ALL: &[(&str, Law)] = &[
    ("nothing goes wrong on the way", nothing_wrong),
    ("resources::memory_stays_bounded", resources::memory_stays_bounded),
    ("everything settles", settles),
    ("delivery::acknowledged_means_delivered", delivery::acknowledged_means_delivered),
    ("delivery::given_up_only_when_asked_to", delivery::given_up_only_when_asked_to),
    ("delivery::in_order_and_once", delivery::in_order_and_once),
    ("delivery::exactly_once", delivery::exactly_once),
    ("delivery::last_values_arrive", delivery::last_values_arrive),
    ("delivery::keeps_no_more_than_the_last", delivery::keeps_no_more_than_the_last),
    ("delivery::time_stamps_arrive_as_written", delivery::time_stamps_arrive_as_written),
    ("delivery::best_effort_loses_nothing_in_clear_weather", delivery::best_effort_loses_nothing_in_clear_weather),
    ("delivery::instances_end_as_their_writer_said", delivery::instances_end_as_their_writer_said),
    ("discovery::matches_follow_qos", discovery::matches_follow_qos),
    ("discovery::converges", discovery::converges),
    ("discovery::what_has_met_stays_together", discovery::what_has_met_stays_together),
    ("liveness::settles_within_its_bound", liveness::settles_within_its_bound),
    ("repairs::in_proportion_to_losses", repairs::in_proportion_to_losses),
    ("repairs::queues_carry_more_than_they_drop", repairs::queues_carry_more_than_they_drop),
    ("policies::the_strongest_writer_owns", policies::the_strongest_writer_owns),
    ("policies::owners_are_heard", policies::owners_are_heard),
    ("policies::source_time_never_steps_back", policies::source_time_never_steps_back),
    ("policies::readers_end_with_the_newest_at_its_source", policies::readers_end_with_the_newest_at_its_source),
    ("policies::values_come_apart", policies::values_come_apart),
    ("policies::values_come_when_the_separation_is_over", policies::values_come_when_the_separation_is_over),
    ("policies::the_last_values_come_too", policies::the_last_values_come_too),
    ("policies::filters_pass_what_they_accept", policies::filters_pass_what_they_accept),
    ("policies::what_is_purged_goes_at_its_time", policies::what_is_purged_goes_at_its_time),
    ("policies::what_nobody_writes_is_purged", policies::what_nobody_writes_is_purged),
    ("policies::the_service_keeps_no_more_than_it_says", policies::the_service_keeps_no_more_than_it_says),
    ("persistence::a_history_goes_on", persistence::a_history_goes_on),
    ("persistence::what_was_stored_comes_back", persistence::what_was_stored_comes_back),
    ("presentation::sets_are_whole", presentation::sets_are_whole),
    ("presentation::a_publishers_sets_appear_at_once", presentation::a_publishers_sets_appear_at_once),
    ("presentation::instances_come_one_by_one", presentation::instances_come_one_by_one),
    ("presentation::a_publisher_is_taken_in_its_order", presentation::a_publisher_is_taken_in_its_order),
    ("promises::nothing_is_taken_when_its_time_is_over", promises::nothing_is_taken_when_its_time_is_over),
    ("promises::nothing_is_lost_before_its_time", promises::nothing_is_lost_before_its_time),
    ("promises::missed_periods_are_told_once", promises::missed_periods_are_told_once),
    ("promises::silent_writers_are_told", promises::silent_writers_are_told),
    ("promises::silence_is_noticed", promises::silence_is_noticed),
    ("promises::signs_of_life_are_heard", promises::signs_of_life_are_heard),
    ("promises::changes_of_liveliness_alternate", promises::changes_of_liveliness_alternate),
    ("resources::no_write_waits_longer_than_its_bound", resources::no_write_waits_longer_than_its_bound),
    ("resources::quiet_when_idle", resources::quiet_when_idle),
];

/// The first so many of [`ALL`] hold in damaged worlds too: no panic, no storm, bounded memory.
pub const WHATEVER_IS_DAMAGED: usize = 2;

/// The laws that apply to a world.
pub fn that_apply(record: &Record) -> &'static [(&'static str, Law)] {
    if record.plan.weather.corruption > 0.0 { &ALL[..WHATEVER_IS_DAMAGED] } else { ALL }
}

/// Datagrams are well-formed and fit a packet, samples arrive undamaged, timers advance, nothing is left over.
pub fn nothing_wrong(record: &Record) -> Result<(), String> {
    match record.breaches.as_slice() {
        [] => Ok(()),
        breaches => Err(breaches.join("\n")),
    }
}

/// Liveness: once the network is whole, everything is matched, delivered, acknowledged and taken.
pub fn settles(record: &Record) -> Result<(), String> {
    match record.settled_at {
        Some(_) => Ok(()),
        None => {
            Err(format!("after {} s:\n{}", record.ended_at.as_nanos() / 1_000_000_000, record.unsettled.join("\n")))
        }
    }
}
