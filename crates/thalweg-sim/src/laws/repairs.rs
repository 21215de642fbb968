//! What repairs cost.

use thalweg_rtps::qos::Durability;

use crate::plan::IntruderPlan;
use crate::record::{MatchRecord, Record, WriterRecord};

/// Repairs for each submessage that was lost, and for each that a late reader had to get.
const REPAIRS_PER_LOSS: u64 = 3;
/// Repairs for which nothing was lost: a late acknowledgement, the last datagrams of a burst.
const REPAIRS_PER_READER: u64 = 100;
/// Payload of a fragment, at least.
pub(super) const FRAGMENT_BYTES: usize = 1_200;

/// Repairs stand in proportion to what the network lost and to what late readers lacked. Where jitter reorders datagrams, all
/// may be asked for once more; so may all where paths change, since fragments of another size leave parts open.
pub fn in_proportion_to_losses(record: &Record) -> Result<(), String> {
    if is_unclear(record) {
        return Ok(());
    }
    for (number, writer) in record.writers.iter().enumerate() {
        let readers = writer.matches.len() as u64;
        let asked_again = !record.plan.weather.jitter.is_zero() || !record.plan.paths.is_empty();
        let again = if asked_again { writer.counters.transmitted * readers } else { 0 };
        let lost = writer.toll.lost + writer.toll.dropped;
        let owed = lost + replayed(record, writer) + again + writer.counters.left_to_repairs;
        let bound = REPAIRS_PER_LOSS * owed + REPAIRS_PER_READER * readers;
        if writer.counters.repaired > bound {
            let (counters, toll) = (writer.counters, writer.toll);
            return Err(format!(
                "writer {number} repaired {}; the bound is {bound}: {toll:?} {counters:?}",
                counters.repaired
            ));
        }
    }
    Ok(())
}

/// No lane drops more than it carries: a sender slows down for a full queue. It does not for readers that do not acknowledge:
/// nobody tells it, and an intruder does not care.
pub fn queues_carry_more_than_they_drop(record: &Record) -> Result<(), String> {
    let is_untold = |writer: &&WriterRecord| {
        let topic = &record.plan.topics[writer.index.topic];
        let qos = &topic.writers[writer.index.place].qos;
        !qos.reliability.is_reliable() || topic.readers.iter().any(|reader| !reader.qos.reliability.is_reliable())
    };
    let untold: u64 = record.writers.iter().filter(is_untold).map(|writer| writer.toll.dropped).sum();
    let forged: u64 = record.plan.intruders.iter().map(IntruderPlan::datagrams).sum();
    for (host, lanes) in record.lanes.iter().enumerate() {
        for (lane, counted) in [("out of", lanes.outbound), ("into", lanes.inbound)] {
            if counted.dropped > counted.datagrams + untold + forged + 1_000 {
                return Err(format!("the lane {lane} host {host} dropped more than it carried: {counted:?}"));
            }
        }
    }
    Ok(())
}

/// Worlds in which datagrams go where nobody counts them: to processes that are gone, paused or elsewhere.
fn is_unclear(record: &Record) -> bool {
    let plan = &record.plan;
    let ends = plan.processes.iter().any(|process| process.ends.is_some());
    let deleted = plan.readers().any(|(_, reader)| reader.deleted.is_some());
    let hangs = plan.readers().any(|(_, reader)| reader.pace == crate::plan::Pace::Never);
    let troubled = !plan.splits.is_empty() || !plan.pauses.is_empty() || !plan.moves.is_empty();
    ends || deleted || hangs || troubled || !plan.intruders.is_empty()
}

/// What readers get by repair that nobody lost: what was written before they came, or before they knew their writer.
fn replayed(record: &Record, writer: &WriterRecord) -> u64 {
    let topic = &record.plan.topics[writer.index.topic];
    let plan = &topic.writers[writer.index.place];
    let fragments = plan.payload_bytes.div_ceil(FRAGMENT_BYTES).max(1) as u64;
    let durable = plan.qos.durability != Durability::Volatile;
    let numbers = |one: &MatchRecord| (one.last - plan.first).saturating_add(1).max(0).unsigned_abs();
    let before = writer.matches.iter().filter(|_| durable).map(numbers);
    let readers = record.readers.iter().filter(|reader| reader.index.topic == writer.index.topic);
    let late = readers.flat_map(|reader| &reader.matches).filter(|one| Some(one.peer) == writer.guid).map(numbers);
    fragments * before.sum::<u64>().max(late.sum::<u64>())
}
