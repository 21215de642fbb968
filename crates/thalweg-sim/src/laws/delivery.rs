//! Laws of delivery.

use std::collections::BTreeMap;

use thalweg_rtps::history::{ChangeKind, InstanceState};
use thalweg_rtps::qos::History;
use thalweg_rtps::time::INFINITE;
use thalweg_rtps::types::{Guid, KeyHash, Keyed, SequenceNumber};

use super::presentation::mixes_instances;
use super::promises::is_clear;
use crate::plan::{InstanceSharing, Pace};
use crate::record::{Pair, Record, WrittenRecord};

/// When a writer reports that all samples are acknowledged, every matched reliable reader has all samples that it is owed: taken, or
/// in its cache. Only a reader that the writer has reported as given up may lack some.
pub fn acknowledged_means_delivered(record: &Record) -> Result<(), String> {
    record.unkept.first().map_or(Ok(()), |words| Err(words.clone()))
}

/// A writer gives a reader up only where its QoS sets a limit to its patience, and in clear weather none whose application takes at once.
pub fn given_up_only_when_asked_to(record: &Record) -> Result<(), String> {
    let nobody_ends = record.processes.iter().enumerate().all(|(number, _)| record.is_there_at_end(number));
    let is_calm = is_clear(record) && nobody_ends;
    for writer in record.writers.iter().filter(|writer| !writer.given_up.is_empty()) {
        let topic = &record.plan.topics[writer.index.topic];
        let is_eager = |given_up: &Guid| {
            let reader = record.readers.iter().find(|reader| reader.guid == Some(*given_up));
            reader.is_some_and(|reader| matches!(topic.readers[reader.index.place].pace, Pace::Eager(_)))
        };
        let is_unasked = topic.writers[writer.index.place].qos.reader_patience == INFINITE;
        if is_unasked || is_calm && writer.given_up.iter().any(is_eager) {
            return Err(format!("a writer of topic {} gave {:?} up", writer.index.topic, writer.given_up));
        }
    }
    Ok(())
}

/// A KEEP_LAST reader never holds more than `depth` values of an instance.
pub fn keeps_no_more_than_the_last(record: &Record) -> Result<(), String> {
    record.overfull.first().map_or(Ok(()), |words| Err(words.clone()))
}

/// Source time stamps arrive as they were written, or not at all where there were none; so they never decrease where the
/// clock does not.
pub fn time_stamps_arrive_as_written(record: &Record) -> Result<(), String> {
    for pair in record.pairs() {
        for taken in pair.taken().filter(|taken| taken.valid) {
            let place = pair.writer.written.binary_search_by_key(&taken.sequence, |written| written.sequence);
            let written = place.ok().map(|place| pair.writer.written[place].timestamp);
            if written.is_some_and(|written| written != taken.timestamp) {
                let name = pair.name();
                return Err(format!("{name}: {} came with {:?}, not {written:?}", taken.sequence, taken.timestamp));
            }
        }
    }
    Ok(())
}

/// No reader gets a value twice or after a later one of the same writer: best effort and reliable alike, also where they lost
/// and found each other.
pub fn in_order_and_once(record: &Record) -> Result<(), String> {
    for pair in record.pairs() {
        // Of all instances together, or of each by itself.
        let mut last: BTreeMap<Option<KeyHash>, SequenceNumber> = BTreeMap::new();
        let mixes = mixes_instances(&pair);
        for taken in pair.taken().filter(|taken| taken.valid) {
            let before = last.insert(mixes.then_some(taken.instance), taken.sequence);
            if let Some(before) = before.filter(|before| taken.sequence <= *before) {
                return Err(format!("{}: took {} after {before}", pair.name(), taken.sequence));
            }
        }
    }
    Ok(())
}

/// A reliable reader of a KEEP_ALL writer gets every value: from the match on, and from the very first with durability.
pub fn exactly_once(record: &Record) -> Result<(), String> {
    let applies = |pair: &Pair<'_>| keeps_all(pair) && pair.hands_over_everything() && is_owed_everything(pair);
    record.pairs().filter(applies).try_for_each(check_exactly_once)
}

/// Under KEEP_LAST the newest `depth` values of each instance arrive, whatever was overwritten before, or since it ended last.
pub fn last_values_arrive(record: &Record) -> Result<(), String> {
    let applies = |pair: &Pair<'_>| {
        let sole_writer = pair.topic().writers.len() == 1;
        let own = pair.topic().keyed == Keyed::Yes && pair.topic().instances == InstanceSharing::Own;
        let everything = pair.hands_over_everything() && is_owed_everything(pair);
        !keeps_all(pair) && everything && (sole_writer || own)
    };
    record.pairs().filter(applies).filter(|pair| pair.is_there_at_end()).try_for_each(check_last_values)
}

/// Where the network loses no datagram and no buffer overflows, best effort loses no sample either.
pub fn best_effort_loses_nothing_in_clear_weather(record: &Record) -> Result<(), String> {
    let overrun = record.processes.iter().any(|process| process.dropped > 0);
    if !record.plan.weather.is_clear() || record.plan.is_disturbed() || overrun {
        return Ok(());
    }
    let applies = |pair: &Pair<'_>| !pair.is_reliable() && pair.hands_over_everything() && pair.is_there_at_end();
    for pair in record.pairs().filter(applies) {
        let reader = pair.reader_plan();
        let unlimited = reader.depth().is_none() && reader.qos.resource_limits.max_samples.is_none();
        let Some(from) = pair.matched_on_both_sides().filter(|_| unlimited && reader.pace != Pace::Never) else {
            continue;
        };
        let taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
        let values = pair.writer.written.iter().filter(|written| written.kind == ChangeKind::Write);
        let lost = values.clone().find(|written| written.at > from && !taken.contains(&written.sequence));
        if let Some(lost) = lost {
            return Err(format!("{}: {} was lost", pair.name(), lost.sequence));
        }
    }
    Ok(())
}

/// Dispose and unregister arrive: at the end each instance has the state at the reader that its writer gave it.
pub fn instances_end_as_their_writer_said(record: &Record) -> Result<(), String> {
    let applies = |pair: &Pair<'_>| {
        let own = pair.topic().keyed == Keyed::Yes && pair.topic().instances == InstanceSharing::Own;
        let leases = pair.writer_plan().qos.liveliness.lease == INFINITE;
        let everything = leases && pair.hands_over_everything();
        own && everything && is_owed_everything(pair) && pair.only_match().is_some() && pair.is_there_at_end()
    };
    record.pairs().filter(applies).try_for_each(check_instance_states)
}

pub(super) fn keeps_all(pair: &Pair<'_>) -> bool {
    pair.writer_plan().depth().is_none() && pair.reader_plan().depth().is_none()
}

/// Reliable, matched and never given up, and the application takes what arrives.
pub(super) fn is_owed_everything(pair: &Pair<'_>) -> bool {
    let takes = pair.reader_plan().pace != Pace::Never;
    pair.is_reliable() && takes && !pair.was_given_up() && pair.owed_after().is_some()
}

/// Values that the reader must get, apart from those of instances that were deleted: durability ends with them.
pub(super) fn owed<'a>(pair: &Pair<'a>) -> Vec<&'a WrittenRecord> {
    let after = pair.owed_after().unwrap_or_default();
    let departed = if pair.is_durable() { departed_instances(pair) } else { Vec::new() };
    let values = pair.writer.written.iter().filter(|written| written.kind == ChangeKind::Write);
    let mut owed: Vec<&WrittenRecord> =
        values.filter(|written| written.sequence > after && !departed.contains(&written.instance)).collect();
    if pair.is_durable() && pair.writer_plan().outlives_itself() {
        keep_for_late_readers(pair, &mut owed);
    }
    owed
}

/// Of what was written before the match, a late reader is owed what DURABILITY_SERVICE keeps.
fn keep_for_late_readers(pair: &Pair<'_>, owed: &mut Vec<&WrittenRecord>) {
    let History::KeepLast(depth) = pair.writer_plan().qos.durability_service.history else { return };
    let matched = pair.writer.matches.iter().rev().find(|one| one.peer == pair.reader_guid);
    let after = matched.map_or(SequenceNumber::ZERO, |one| one.after);
    let mut counts: BTreeMap<KeyHash, u32> = BTreeMap::new();
    let mut kept: Vec<&WrittenRecord> = Vec::new();
    for written in owed.iter().rev() {
        let count = counts.entry(written.instance).or_default();
        *count += u32::from(written.sequence <= after);
        if *count <= depth {
            kept.push(written);
        }
    }
    kept.reverse();
    *owed = kept;
}

fn departed_instances(pair: &Pair<'_>) -> Vec<KeyHash> {
    let ended = pair.writer.written.iter().filter(|written| written.kind.unregisters());
    ended.map(|written| written.instance).collect()
}

fn check_exactly_once(pair: Pair<'_>) -> Result<(), String> {
    let mut taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
    taken.sort();
    let owed = owed(&pair);
    let last_taken = taken.last().copied().unwrap_or_default();
    // A reader that went may have taken later ones of other instances first.
    let mixes = mixes_instances(&pair);
    let last_of = |instance: KeyHash| {
        let of_it = pair.taken().filter(|one| one.valid && (!mixes || one.instance == instance));
        of_it.map(|one| one.sequence).max().unwrap_or_default()
    };
    let missing = owed.iter().find(|written| {
        let due = pair.is_there_at_end() || written.sequence < last_of(written.instance);
        due && taken.binary_search(&written.sequence).is_err()
    });
    match missing {
        Some(missing) => Err(format!(
            "{}: {} is missing; took {} values up to {last_taken} of {} written",
            pair.name(),
            missing.sequence,
            taken.len(),
            pair.writer.written.len()
        )),
        None => Ok(()),
    }
}

fn check_last_values(pair: Pair<'_>) -> Result<(), String> {
    let depth = pair.writer_plan().depth().into_iter().chain(pair.reader_plan().depth()).min().unwrap_or(1) as usize;
    let taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
    let mut by_instance: BTreeMap<KeyHash, Vec<SequenceNumber>> = BTreeMap::new();
    let ends = pair.writer.last_ends();
    for written in owed(&pair).into_iter().filter(|one| ends.get(&one.instance).is_none_or(|end| one.sequence > *end)) {
        by_instance.entry(written.instance).or_default().push(written.sequence);
    }
    for (instance, values) in by_instance {
        let newest = values.iter().rev().take(depth);
        if let Some(missing) = newest.clone().find(|sequence| !taken.contains(sequence)) {
            return Err(format!(
                "{}: {missing}, one of the last {depth} of instance {instance}, is missing; the newest is {:?}",
                pair.name(),
                values.last()
            ));
        }
    }
    Ok(())
}

fn check_instance_states(pair: Pair<'_>) -> Result<(), String> {
    let after = match pair.is_durable() {
        true => SequenceNumber::ZERO,
        false => pair.only_match().map_or(SequenceNumber::ZERO, |one| one.after),
    };
    let departed = if pair.is_durable() { departed_instances(&pair) } else { Vec::new() };
    let mut expected: BTreeMap<KeyHash, InstanceState> = BTreeMap::new();
    for written in pair.writer.written.iter().filter(|written| written.sequence > after) {
        let before = expected.get(&written.instance).copied();
        let state = match (written.kind, before) {
            (ChangeKind::Write, _) => InstanceState::Alive,
            (ChangeKind::Dispose | ChangeKind::DisposeUnregister, _) => InstanceState::NotAliveDisposed,
            (ChangeKind::Unregister, Some(InstanceState::Alive)) => InstanceState::NotAliveNoWriters,
            (ChangeKind::Unregister, Some(before)) => before,
            (ChangeKind::Unregister, None) => continue,
        };
        expected.insert(written.instance, state);
    }
    for (instance, state) in expected.into_iter().filter(|(instance, _)| !departed.contains(instance)) {
        let last = pair.taken().filter(|taken| taken.instance == instance).last();
        if last.map(|taken| taken.instance_state) != Some(state) {
            return Err(format!("{}: instance {instance} should be {state:?}; last taken: {last:?}", pair.name()));
        }
    }
    Ok(())
}
