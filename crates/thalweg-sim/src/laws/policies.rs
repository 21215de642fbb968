//! Laws of policies by which a reader does not hand over everything. They apply where a plan asks for them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::history::{ChangeKind, InstanceState};
use thalweg_rtps::qos::{DestinationOrder, History, Ownership, ReaderLifecycle, ReaderQos, WriterOwnership};
use thalweg_rtps::time::{INFINITE, Instant, Timestamp};
use thalweg_rtps::types::{Guid, KeyHash, Keyed, SequenceNumber};

use super::delivery::{is_owed_everything, keeps_all, owed};
use super::promises::{arrives_promptly, is_clear, is_watched_closely, on_the_way};
use crate::plan::{InstanceSharing, Pace, Selection};
use crate::record::{Pair, ReaderRecord, Record, TakenRecord, WriterRecord, WrittenRecord};

/// By so much the end of a period may be off by the clock of a host.
const ROUNDING: Duration = Duration::from_micros(2);
/// Time for which an end may have been on its way.
const ON_THE_WAY: Duration = Duration::from_secs(2);
/// Time in which what was acknowledged makes room.
const CALM: Duration = Duration::from_secs(2);

/// Time for which a closed window may hold a sample up where nothing is lost.
const HELD_UP: Duration = Duration::from_millis(200);

/// OWNERSHIP: a value of a weaker writer follows one of a stronger writer only where the reader has lost that one meanwhile, or the
/// stronger one has given the instance up or missed the reader's DEADLINE.
pub fn the_strongest_writer_owns(record: &Record) -> Result<(), String> {
    let exclusive = |reader: &&ReaderRecord| qos(record, reader).ownership == Ownership::Exclusive;
    for reader in record.readers.iter().filter(exclusive) {
        let deadline = qos(record, reader).timing.deadline;
        let mut last: BTreeMap<KeyHash, &TakenRecord> = BTreeMap::new();
        for taken in values(reader) {
            if let Some(before) = last.insert(taken.instance, taken)
                && rank(record, before.writer) > rank(record, taken.writer)
                && !has_lost(reader, before.writer, before.at, taken.at)
                && !has_given_up(record, before, taken)
                && taken.at.since(before.at) + ROUNDING < deadline.mul_f64(0.999)
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

/// OWNERSHIP: a reliable reader gets everything of the strongest of all writers that it ever knew, and of the next one what that
/// writes after the reader has lost all that are stronger.
pub fn owners_are_heard(record: &Record) -> Result<(), String> {
    let applies = |pair: &Pair<'_>| {
        let shared = pair.topic().keyed == Keyed::Yes && pair.topic().instances == InstanceSharing::Shared;
        let exclusive = pair.reader_plan().qos.ownership == Ownership::Exclusive && shared;
        exclusive && keeps_all(pair) && is_owed_everything(pair) && pair.is_there_at_end()
    };
    for pair in record.pairs().filter(applies) {
        let own = rank(record, pair.writer_guid);
        let stronger = pair.reader.matches.iter().filter(|one| rank(record, one.peer) > own);
        // Whoever is matched anew may own instances again.
        let heard_from = stronger.map(|one| one.until.unwrap_or(Instant::NEVER)).max().unwrap_or(Instant::ZERO);
        let taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
        let mut due = owed(&pair).into_iter().filter(|written| written.at > heard_from);
        if let Some(missing) = due.find(|written| !taken.contains(&written.sequence)) {
            let words = format!("{} is missing, and nobody stronger was known", missing.sequence);
            return Err(format!("{}: {words}", pair.name()));
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

/// The place of a change in the order of sources: time stamp, writer and number.
type Place = (Option<Timestamp>, Reverse<Guid>, SequenceNumber);

/// DESTINATION_ORDER by source: every reliable reader of the same writers ends with the same change of each instance, the newest at its
/// source; of several with one time stamp, that of the writer with the lowest GUID.
pub fn readers_end_with_the_newest_at_its_source(record: &Record) -> Result<(), String> {
    let by_source = |reader: &&ReaderRecord| qos(record, reader).destination_order == DestinationOrder::BySource;
    for reader in record.readers.iter().filter(by_source) {
        let of_reader = |pair: &Pair<'_>| Some(pair.reader_guid) == reader.guid && pair.should_match();
        let pairs: Vec<Pair<'_>> = record.pairs().filter(of_reader).collect();
        if !pairs.iter().all(|pair| is_owed_everything(pair) && pair.is_there_at_end()) {
            continue;
        }
        let mut newest: BTreeMap<KeyHash, (Place, ChangeKind)> = BTreeMap::new();
        for pair in &pairs {
            let after = pair.owed_after().unwrap_or_default();
            let counts = |kind| kind != ChangeKind::Unregister;
            for one in pair.writer.written.iter().filter(|one| one.sequence > after && counts(one.kind)) {
                let place = (one.timestamp, Reverse(pair.writer_guid), one.sequence);
                let entry = newest.entry(one.instance).or_insert((place, one.kind));
                if place > entry.0 {
                    *entry = (place, one.kind);
                }
            }
        }
        // What a durable writer has forgotten with its instance reaches no late reader.
        let forgets = pairs.iter().any(|pair| pair.is_durable() && pair.writer.ends_instances());
        for (instance, ((timestamp, Reverse(writer), sequence), kind)) in newest.into_iter().filter(|_| !forgets) {
            let of_instance = || reader.taken.iter().filter(|taken| taken.instance == instance);
            let fits = match kind {
                ChangeKind::Write => of_instance()
                    .rfind(|taken| taken.valid)
                    .is_some_and(|last| (last.writer, last.sequence) == (writer, sequence)),
                _ => {
                    of_instance().next_back().is_none_or(|last| last.instance_state == InstanceState::NotAliveDisposed)
                }
            };
            if !fits {
                let words = format!("{kind:?} {sequence} of {writer} at {timestamp:?}");
                let last = of_instance().next_back();
                return Err(format!("instance {instance} should end with {words}; a reader ended with {last:?}"));
            }
        }
    }
    Ok(())
}

/// TIME_BASED_FILTER: no two values of an instance come nearer to each other than the separation, by the reader's clock, unless the instance
/// ended between them. It cannot be told of an application that does not take at once.
pub fn values_come_apart(record: &Record) -> Result<(), String> {
    for reader in &record.readers {
        let separation = qos(record, reader).timing.minimum_separation;
        let plan = &record.plan.topics[reader.index.topic].readers[reader.index.place];
        if separation.is_zero() || plan.pace != Pace::Eager(Duration::ZERO) {
            continue;
        }
        let clock = record.plan.hosts[record.plan.processes[reader.process].host];
        let mut last: BTreeMap<KeyHash, &TakenRecord> = BTreeMap::new();
        for taken in &reader.taken {
            if taken.instance_state != InstanceState::Alive || !taken.valid {
                last.remove(&taken.instance);
            } else if let Some(before) = last.insert(taken.instance, taken)
                && !has_ended(record, reader, taken, before)
            {
                let apart = clock.local(taken.at).since(clock.local(before.at));
                if apart + ROUNDING < separation {
                    let words = format!("{} of {} came {apart:?} after the one before", taken.sequence, taken.writer);
                    return Err(format!("{words}, and the separation is {separation:?}"));
                }
            }
        }
    }
    Ok(())
}

/// TIME_BASED_FILTER: a reliable reader gets the last value of each instance, however soon it follows another.
pub fn the_last_values_come_too(record: &Record) -> Result<(), String> {
    let applies = |pair: &Pair<'_>| {
        let own = pair.topic().keyed == Keyed::Yes && pair.topic().instances == InstanceSharing::Own;
        let separated = !pair.reader_plan().qos.timing.minimum_separation.is_zero();
        separated && (own || pair.topic().writers.len() == 1) && is_owed_everything(pair) && pair.is_there_at_end()
    };
    for pair in record.pairs().filter(applies) {
        let ends = pair.writer.last_ends();
        let mut last = BTreeMap::new();
        last.extend(owed(&pair).into_iter().map(|written| (written.instance, written.sequence)));
        last.retain(|instance, sequence| ends.get(instance).is_none_or(|end| *sequence > *end));
        let taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
        if let Some((instance, sequence)) = last.into_iter().find(|(_, sequence)| !taken.contains(sequence)) {
            return Err(format!("{}: {sequence}, the last value of instance {instance}, is missing", pair.name()));
        }
    }
    Ok(())
}

/// A content filter lets exactly those samples pass that its expression accepts.
pub fn filters_pass_what_they_accept(record: &Record) -> Result<(), String> {
    let filtered = |pair: &Pair<'_>| pair.reader_plan().filter;
    for (pair, filter) in record.pairs().filter_map(|pair| Some((pair, filtered(&pair)?))) {
        let place = |sequence: SequenceNumber| {
            pair.writer.written.binary_search_by_key(&sequence, |written| written.sequence).map(|place| place as u32)
        };
        let accepts = |filter: Selection, sequence| place(sequence).is_ok_and(|index| filter.accepts(index));
        let taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
        if let Some(refused) = taken.iter().find(|sequence| !accepts(filter, **sequence)) {
            return Err(format!("{}: {refused} passed {filter:?}", pair.name()));
        }
        if !keeps_all(&pair) || !is_owed_everything(&pair) || !pair.is_there_at_end() {
            continue;
        }
        let mut due = owed(&pair).into_iter().map(|written| written.sequence);
        if let Some(missing) = due.find(|sequence| accepts(filter, *sequence) && !taken.contains(sequence)) {
            return Err(format!("{}: {missing} did not pass {filter:?}", pair.name()));
        }
    }
    Ok(())
}

/// TIME_BASED_FILTER: in clear weather a reliable reader that takes at once gets the next value of an instance as soon as the separation is
/// over, or on its arrival after that.
pub fn values_come_when_the_separation_is_over(record: &Record) -> Result<(), String> {
    if !is_clear(record) {
        return Ok(());
    }
    let applies = |pair: &Pair<'_>| {
        let own = pair.topic().keyed == Keyed::Yes && pair.topic().instances == InstanceSharing::Own;
        let separated = !pair.reader_plan().qos.timing.minimum_separation.is_zero();
        let alone = (own || pair.topic().writers.len() == 1) && !pair.writer.ends_instances();
        separated && alone && is_owed_everything(pair) && arrives_promptly(record, pair) && is_watched_closely(pair)
    };
    for pair in record.pairs().filter(applies) {
        let separation = pair.reader_plan().qos.timing.minimum_separation;
        let clock = record.plan.hosts[record.plan.processes[pair.reader.process].host];
        let Some(known) = pair.matched_on_both_sides() else { continue };
        let owed: Vec<&WrittenRecord> = owed(&pair).into_iter().filter(|written| written.at > known).collect();
        let mut before: BTreeMap<KeyHash, &TakenRecord> = BTreeMap::new();
        for taken in pair.taken().filter(|taken| taken.valid) {
            let Some(last) = before.insert(taken.instance, taken) else { continue };
            let next = owed.iter().find(|one| one.instance == taken.instance && one.sequence > last.sequence);
            let Some(next) = next.filter(|next| last.at > known && next.sequence <= taken.sequence) else { continue };
            let way = on_the_way(record, pair.writer) + HELD_UP;
            let due = (clock.local(last.at) + separation).max(clock.local(next.at + way));
            if clock.local(taken.at) > due + ROUNDING {
                let words = format!("{} came at {:?} by its clock", taken.sequence, clock.local(taken.at));
                return Err(format!("{}: {words}, {} was due by {due:?}", pair.name(), next.sequence));
            }
        }
    }
    Ok(())
}

/// READER_DATA_LIFECYCLE: in clear weather nothing goes before its writer has been gone for the delay: what the application takes before
/// that it gets. And of an instance that was disposed nothing is taken once that delay is over, unless it is written again.
pub fn what_is_purged_goes_at_its_time(record: &Record) -> Result<(), String> {
    if !is_clear(record) {
        return Ok(());
    }
    let applies = |pair: &Pair<'_>| {
        let own = pair.topic().keyed == Keyed::Yes && pair.topic().instances == InstanceSharing::Own;
        let purges = pair.reader_plan().qos.lifecycle != ReaderLifecycle::default();
        own && purges && pair.reader.told.alive.is_empty() && arrives_promptly(record, pair)
    };
    for pair in record.pairs().filter(applies) {
        let Pace::Polling { period, samples_max: usize::MAX } = pair.reader_plan().pace else { continue };
        let Some(known) = pair.matched_on_both_sides().filter(|_| is_owed_everything(&pair)) else { continue };
        let (lifecycle, way) = (pair.reader_plan().qos.lifecycle, on_the_way(record, pair.writer) + HELD_UP);
        let clock = record.plan.hosts[record.plan.processes[pair.reader.process].host];
        let later =
            |at: Instant, pause: Duration| if pause == INFINITE { Instant::NEVER } else { clock.local(at) + pause };
        let ended = |instance: KeyHash| {
            pair.writer.written.iter().any(|one| one.instance == instance && one.kind != ChangeKind::Write)
        };
        let until = pair.reader.matches.iter().find(|one| one.peer == pair.writer_guid).and_then(|one| one.until);
        let until = until.unwrap_or(record.ended_at);
        // What is on its way when its writer goes may be overtaken by that news, or never leave.
        let went = pair.writer.told.closed.unwrap_or(record.ended_at).min(until);
        let comes = |one: &WrittenRecord| one.at > known && one.at + way < went;
        if keeps_all(&pair) {
            let closed = pair.reader.told.closed.unwrap_or(record.ended_at);
            let goes = later(until, lifecycle.autopurge_nowriter_samples_delay).min(clock.local(closed));
            let values = owed(&pair).into_iter().filter(|one| comes(one) && !ended(one.instance));
            for written in values.filter(|one| clock.local(one.at + way + period) + ROUNDING < goes) {
                if !pair.taken().any(|taken| taken.valid && taken.sequence == written.sequence) {
                    return Err(format!("{}: {} has gone before {goes:?}", pair.name(), written.sequence));
                }
            }
        }
        // A late reader gets the ends of instances as history.
        let disposes = |one: &&WrittenRecord| one.kind == ChangeKind::Dispose && comes(one) && !pair.is_durable();
        for disposed in pair.writer.written.iter().filter(disposes) {
            let gone = later(disposed.at + way, lifecycle.autopurge_disposed_samples_delay);
            let same = |one: &&WrittenRecord| one.instance == disposed.instance && one.sequence > disposed.sequence;
            let again = pair.writer.written.iter().find(same).map_or(Instant::NEVER, |one| clock.local(one.at));
            let mut late = pair.taken().filter(|one| one.valid && one.instance == disposed.instance);
            let late = late.find(|one| one.sequence < disposed.sequence && clock.local(one.at) > gone + ROUNDING);
            if let Some(late) = late.filter(|_| again > gone) {
                let words = format!("{} was taken at {:?}", late.sequence, late.at);
                return Err(format!("{}: {words}; {} disposed of it by {gone:?}", pair.name(), disposed.sequence));
            }
        }
    }
    Ok(())
}

/// READER_DATA_LIFECYCLE: nothing of an instance is taken when its last writer has been gone for the delay, by the reader's clock.
pub fn what_nobody_writes_is_purged(record: &Record) -> Result<(), String> {
    for pair in record.pairs().filter(|pair| pair.topic().instances == InstanceSharing::Own) {
        let delay = pair.reader_plan().qos.lifecycle.autopurge_nowriter_samples_delay;
        if delay == INFINITE || pair.topic().keyed == Keyed::No {
            continue;
        }
        let clock = record.plan.hosts[record.plan.processes[pair.reader.process].host];
        let ends = pair.reader.matches.iter().filter(|one| one.peer == pair.writer_guid).filter_map(|one| one.until);
        let begins = |from: Instant| {
            let matches = pair.reader.matches.iter().filter(|one| one.peer == pair.writer_guid);
            matches.map(|one| one.from).filter(|begin| *begin >= from).min().unwrap_or(Instant::NEVER)
        };
        for end in ends {
            let purged = clock.local(end) + delay + ROUNDING;
            let again = begins(end);
            // A disposed instance stays disposed.
            let unwritten = pair.taken().filter(|one| one.instance_state != InstanceState::NotAliveDisposed);
            let late = unwritten.into_iter().find(|one| clock.local(one.at) > purged && one.at > end && one.at < again);
            if let Some(late) = late {
                let words = format!("the writer had gone at {end:?}, and the delay is {delay:?}");
                return Err(format!("{}: {} was taken at {:?}; {words}", pair.name(), late.sequence, late.at));
            }
        }
    }
    Ok(())
}

/// DURABILITY_SERVICE: in clear weather, a reader that comes when all others have everything gets of what was written before no more
/// samples of an instance than the service keeps.
pub fn the_service_keeps_no_more_than_it_says(record: &Record) -> Result<(), String> {
    if record.plan.weather.loss > 0.0 || record.plan.is_disturbed() {
        return Ok(());
    }
    for pair in record.pairs().filter(|pair| pair.is_durable() && pair.writer_plan().outlives_itself()) {
        let History::KeepLast(depth) = pair.writer_plan().qos.durability_service.history else { continue };
        let Some(matched) = pair.writer.matches.iter().find(|one| one.peer == pair.reader_guid) else { continue };
        let before = || pair.writer.written.iter().filter(|written| written.sequence <= matched.after);
        let vanishes = record.plan.processes.iter().any(|process| process.ends.is_some());
        if vanishes || before().next_back().is_none_or(|last| last.at + CALM > matched.from) {
            continue;
        }
        let mut counts: BTreeMap<KeyHash, u32> = BTreeMap::new();
        for taken in pair.taken().filter(|taken| taken.valid && taken.sequence <= matched.after) {
            *counts.entry(taken.instance).or_default() += 1;
        }
        if let Some((instance, count)) = counts.into_iter().find(|(_, count)| *count > depth) {
            return Err(format!("{}: got {count} old values of {instance}; {depth} are kept", pair.name()));
        }
    }
    Ok(())
}

pub(super) fn values(reader: &ReaderRecord) -> impl Iterator<Item = &TakenRecord> {
    reader.taken.iter().filter(|taken| taken.valid)
}

pub(super) fn qos<'a>(record: &'a Record, reader: &ReaderRecord) -> &'a ReaderQos {
    &record.plan.topics[reader.index.topic].readers[reader.index.place].qos
}

pub(super) fn writer_of(record: &Record, guid: Guid) -> Option<&WriterRecord> {
    record.writers.iter().find(|writer| writer.guid == Some(guid))
}

/// The rank of a writer: its strength, and among equals the lowest GUID (DDS 1.4 §2.2.3.9.2).
fn rank(record: &Record, guid: Guid) -> (i32, Reverse<Guid>) {
    let plan =
        writer_of(record, guid).map(|writer| &record.plan.topics[writer.index.topic].writers[writer.index.place]);
    match plan.map(|plan| plan.qos.ownership) {
        Some(WriterOwnership::Exclusive { strength }) => (strength, Reverse(guid)),
        _ => (0, Reverse(guid)),
    }
}

/// Whether some writer may have ended the instance of a value between the value before and this one.
fn has_ended(record: &Record, reader: &ReaderRecord, taken: &TakenRecord, before: &TakenRecord) -> bool {
    let lately = |at: Instant| at <= taken.at && at + ON_THE_WAY >= before.at;
    let ends = |writer: &WriterRecord| {
        // A reader that comes later gets ends as history.
        let matches = reader.matches.iter().filter(|one| Some(one.peer) == writer.guid).map(|one| one.from);
        let told = matches.filter(|from| *from <= taken.at).max().unwrap_or_default();
        // Ends of the value's own writer come between its values, however late.
        let is_own = writer.guid == Some(taken.writer);
        let after = if before.writer == taken.writer { before.sequence } else { SequenceNumber::ZERO };
        let between = |one: &WrittenRecord| is_own && one.sequence > after && one.sequence < taken.sequence;
        let counts = |one: &WrittenRecord| between(one) || lately(one.at.max(told));
        let mut written = writer.written.iter().filter(|one| one.instance == taken.instance && counts(one));
        written.any(|one| one.kind != ChangeKind::Write)
    };
    record.writers.iter().any(ends)
}

fn has_lost(reader: &ReaderRecord, writer: Guid, from: Instant, until: Instant) -> bool {
    let ends = reader.matches.iter().filter(|one| one.peer == writer).filter_map(|one| one.until);
    let silent = reader.told.alive.iter().filter(|(_, silent, is_alive)| *silent == writer && !is_alive);
    ends.chain(silent.map(|(at, _, _)| *at)).any(|end| end >= from && end <= until)
}

fn has_given_up(record: &Record, before: &TakenRecord, taken: &TakenRecord) -> bool {
    writer_of(record, before.writer).is_some_and(|writer| {
        let later =
            writer.written.iter().filter(|written| written.sequence > before.sequence && written.at <= taken.at);
        later.into_iter().any(|written| written.instance == before.instance && written.kind.unregisters())
    })
}
