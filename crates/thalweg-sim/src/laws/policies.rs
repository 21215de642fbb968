//! Laws of policies by which a reader does not hand over everything. They apply where a plan asks for them.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::qos::{DestinationOrder, Ownership, WriterOwnership};
use thalweg_rtps::time::{INFINITE, Instant};
use thalweg_rtps::types::{Guid, KeyHash};

use crate::record::{ReaderRecord, Record, TakenRecord, WriterRecord};

/// OWNERSHIP: a value of a weaker writer follows one of a stronger writer only where the reader has lost that one meanwhile, or the
/// stronger one has given the instance up.
pub fn the_strongest_writer_owns(record: &Record) -> Result<(), String> {
    let exclusive = |reader: &&ReaderRecord| qos(record, reader).ownership == Ownership::Exclusive;
    for reader in record.readers.iter().filter(exclusive) {
        let mut last: BTreeMap<KeyHash, &TakenRecord> = BTreeMap::new();
        for taken in values(reader) {
            if let Some(before) = last.insert(taken.instance, taken)
                && strength(record, before.writer) > strength(record, taken.writer)
                && !has_lost(reader, before.writer, before.at, taken.at)
                && !has_given_up(record, before, taken)
            {
                return Err(format!(
                    "{} of {} follows a value of the stronger {}",
                    taken.sequence, taken.writer, before.writer
                ));
            }
        }
    }
    Ok(())
}

/// DESTINATION_ORDER by source: the source time stamps of an instance never decrease.
pub fn source_time_never_steps_back(record: &Record) -> Result<(), String> {
    let by_source = |reader: &&ReaderRecord| qos(record, reader).destination_order == DestinationOrder::BySource;
    for reader in record.readers.iter().filter(by_source) {
        let mut newest = BTreeMap::new();
        for taken in values(reader).filter(|taken| taken.timestamp.is_some()) {
            if newest.insert(taken.instance, taken.timestamp).is_some_and(|before| before > taken.timestamp) {
                return Err(format!("{} of {} steps back to {:?}", taken.sequence, taken.writer, taken.timestamp));
            }
        }
    }
    Ok(())
}

/// TIME_BASED_FILTER: of each instance there are no more values than periods between the first and the last, but for what a slow
/// application takes at once.
pub fn values_come_apart(record: &Record) -> Result<(), String> {
    for reader in &record.readers {
        let separation = qos(record, reader).timing.minimum_separation;
        if separation.is_zero() {
            continue;
        }
        let mut of_instance: BTreeMap<KeyHash, (usize, Instant, Instant)> = BTreeMap::new();
        for taken in values(reader) {
            let entry = of_instance.entry(taken.instance).or_insert((0, taken.at, taken.at));
            (entry.0, entry.2) = (entry.0 + 1, taken.at);
        }
        for (instance, (count, first, last)) in of_instance {
            let most = 2 + (last.since(first).as_nanos() / separation.as_nanos()) as usize;
            if count > most {
                return Err(format!("{count} values of {instance} in {:?}, at most {most}", last.since(first)));
            }
        }
    }
    Ok(())
}

/// LIFESPAN: what was written before is not taken later than its life and the time on the way allow.
pub fn nothing_is_taken_when_its_time_is_over(record: &Record, on_the_way: Duration) -> Result<(), String> {
    for pair in record.pairs() {
        let lifespan = pair.writer_plan().qos.timing.lifespan;
        if lifespan == INFINITE {
            continue;
        }
        for taken in pair.taken().filter(|taken| taken.valid) {
            let Ok(place) = pair.writer.written.binary_search_by_key(&taken.sequence, |written| written.sequence)
            else {
                continue;
            };
            let age = taken.at.since(pair.writer.written[place].at);
            if age > lifespan + on_the_way {
                return Err(format!("{}: {} was taken at an age of {age:?}", pair.name(), taken.sequence));
            }
        }
    }
    Ok(())
}

/// PRESENTATION ordered in GROUP scope: what the writers of one process have written is taken by the readers of another one in that order,
/// but for the time that an application needs to take.
pub fn a_publisher_is_taken_in_its_order(record: &Record, to_take: Duration) -> Result<(), String> {
    let ordered = |reader: &&ReaderRecord| {
        let presentation = qos(record, reader).presentation;
        presentation.spans_group() && presentation.ordered
    };
    let mut taken_of: BTreeMap<(usize, usize), Vec<(Instant, &TakenRecord)>> = BTreeMap::new();
    for reader in record.readers.iter().filter(ordered) {
        for taken in values(reader) {
            let Some(writer) = writer_of(record, taken.writer) else { continue };
            let place = writer.written.binary_search_by_key(&taken.sequence, |written| written.sequence);
            let Ok(place) = place else { return Err(format!("{} was never written", taken.sequence)) };
            taken_of.entry((reader.process, writer.process)).or_default().push((writer.written[place].at, taken));
        }
    }
    for ((subscriber, publisher), mut all) in taken_of {
        all.sort_by_key(|(written, taken)| (*written, taken.at));
        let mut latest = Instant::ZERO;
        for same in all.chunk_by(|one, other| one.0 == other.0) {
            if let Some((_, early)) = same.iter().find(|(_, taken)| taken.at + to_take < latest) {
                return Err(format!(
                    "process {subscriber} took {} of {} at {:?}, and something that process {publisher} wrote before it at {latest:?}",
                    early.sequence, early.writer, early.at
                ));
            }
            latest = same.iter().map(|(_, taken)| taken.at).fold(latest, Instant::max);
        }
    }
    Ok(())
}

fn values(reader: &ReaderRecord) -> impl Iterator<Item = &TakenRecord> {
    reader.taken.iter().filter(|taken| taken.valid)
}

fn qos<'a>(record: &'a Record, reader: &ReaderRecord) -> &'a thalweg_rtps::qos::ReaderQos {
    &record.plan.topics[reader.index.topic].readers[reader.index.place].qos
}

fn writer_of(record: &Record, guid: Guid) -> Option<&WriterRecord> {
    record.writers.iter().find(|writer| writer.guid == Some(guid))
}

fn strength(record: &Record, guid: Guid) -> i32 {
    let plan =
        writer_of(record, guid).map(|writer| &record.plan.topics[writer.index.topic].writers[writer.index.place]);
    match plan.map(|plan| plan.qos.ownership) {
        Some(WriterOwnership::Exclusive { strength }) => strength,
        _ => 0,
    }
}

fn has_lost(reader: &ReaderRecord, writer: Guid, from: Instant, until: Instant) -> bool {
    let ends = reader.matches.iter().filter(|one| one.peer == writer).filter_map(|one| one.until);
    ends.into_iter().any(|end| end >= from && end <= until)
}

fn has_given_up(record: &Record, before: &TakenRecord, taken: &TakenRecord) -> bool {
    writer_of(record, before.writer).is_some_and(|writer| {
        let later =
            writer.written.iter().filter(|written| written.sequence > before.sequence && written.at <= taken.at);
        later.into_iter().any(|written| written.instance == before.instance && written.kind.unregisters())
    })
}
