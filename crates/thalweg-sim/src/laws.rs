//! Laws that hold in every world, whatever the weather. Each tells in a sentence how it was broken.

pub mod delivery;
pub mod discovery;
pub mod resources;

use crate::record::Record;

/// A law: nothing, or how it was broken.
pub type Law = fn(&Record) -> Result<(), String>;

/// All laws, with their names.
pub const ALL: &[(&str, Law)] = &[
    ("nothing goes wrong on the way", nothing_wrong),
    ("everything settles", settles),
    ("delivery::in_order_and_once", delivery::in_order_and_once),
    ("delivery::exactly_once", delivery::exactly_once),
    ("delivery::last_values_arrive", delivery::last_values_arrive),
    ("delivery::best_effort_loses_nothing_in_clear_weather", delivery::best_effort_loses_nothing_in_clear_weather),
    ("delivery::instances_end_as_their_writer_said", delivery::instances_end_as_their_writer_said),
    ("discovery::matches_follow_qos", discovery::matches_follow_qos),
    ("discovery::converges", discovery::converges),
    ("resources::no_write_waits_longer_than_its_bound", resources::no_write_waits_longer_than_its_bound),
    ("resources::quiet_when_idle", resources::quiet_when_idle),
];

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
