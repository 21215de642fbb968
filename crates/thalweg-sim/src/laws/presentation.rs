//! Laws of PRESENTATION: what belongs together, and in which order it is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use thalweg_rtps::qos::{AccessScope, Presentation};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{Keyed, SequenceNumber};

use super::policies::{qos, values, writer_of};
use crate::record::{Pair, ProcessRecord, ReaderRecord, Record, TakenRecord, WrittenRecord};

/// Time that applications need to take what they are told of.
const TO_TAKE: Duration = Duration::from_millis(2);

/// PRESENTATION coherent: of each set of a writer, a reader takes everything at once or nothing; and everything where it is owed what it
/// did not get.
pub fn sets_are_whole(record: &Record) -> Result<(), String> {
    let coherent = |pair: &Pair<'_>| {
        let (offered, asked) = (pair.writer_plan().qos.presentation, pair.reader_plan().qos.presentation);
        offered.coherent && asked.coherent && !offered.spans_group() && !asked.spans_group()
    };
    for pair in record.pairs().filter(coherent) {
        let mut taken: BTreeMap<SequenceNumber, Instant> = BTreeMap::new();
        taken.extend(pair.taken().filter(|taken| taken.valid).map(|taken| (taken.sequence, taken.at)));
        let owed_after = pair.owed_after().filter(|_| pair.is_reliable() && pair.is_there_at_end());
        for set in pair.writer.written.chunk_by(|one, next| one.set.is_some() && one.set == next.set) {
            check_set(&pair, set, &taken, owed_after)?;
        }
    }
    Ok(())
}

/// A set, or one sample that belongs to none.
fn check_set(
    pair: &Pair<'_>,
    set: &[WrittenRecord],
    taken: &BTreeMap<SequenceNumber, Instant>,
    owed_after: Option<SequenceNumber>,
) -> Result<(), String> {
    let [first, ..] = set else { return Ok(()) };
    let times: BTreeSet<Option<Instant>> = set.iter().map(|one| taken.get(&one.sequence).copied()).collect();
    let (name, last) = (pair.name(), first.sequence + (set.len() as i64 - 1));
    if times.len() > 1 {
        return Err(format!("{name}: the set from {} to {last} was taken at {times:?}", first.sequence));
    }
    let is_whole = first.set.is_none() || set.len() == pair.writer_plan().habits.set_samples as usize;
    let is_taken = times.first() != Some(&None);
    if is_taken && !is_whole {
        return Err(format!("{name}: the set from {} was taken although it had no end", first.sequence));
    }
    if !is_taken && is_whole && owed_after.is_some_and(|after| first.sequence > after) {
        return Err(format!("{name}: the set from {} to {last} is missing", first.sequence));
    }
    Ok(())
}

/// PRESENTATION coherent in GROUP scope: of each set of a publisher, the readers of a subscriber take everything at the same time or nothing,
/// of what was written by writers that they knew when it began; and everything if all of them knew all writers from then on.
pub fn a_publishers_sets_appear_at_once(record: &Record) -> Result<(), String> {
    for (publisher, process) in record.processes.iter().enumerate().filter(|(_, process)| !process.sets.is_empty()) {
        for subscriber in 0..record.processes.len() {
            let between = |pair: &Pair<'_>| {
                let presentations = [pair.writer_plan().qos.presentation, pair.reader_plan().qos.presentation];
                let joint = presentations.iter().all(|one| one.coherent && one.spans_group());
                joint && (pair.writer.process, pair.reader.process) == (publisher, subscriber) && pair.should_match()
            };
            let pairs: Vec<Pair<'_>> = record.pairs().filter(between).collect();
            check_sets(process, &pairs)
                .map_err(|words| format!("of process {publisher}, process {subscriber} took {words}"))?;
        }
    }
    Ok(())
}

/// The sets of a publisher as a subscriber took them.
fn check_sets(publisher: &ProcessRecord, pairs: &[Pair<'_>]) -> Result<(), String> {
    let mut times: BTreeMap<u32, BTreeSet<Option<Instant>>> = BTreeMap::new();
    for pair in pairs {
        let Some(known) = pair.matched_on_both_sides() else { continue };
        let taken: BTreeMap<SequenceNumber, Instant> =
            pair.taken().filter(|taken| taken.valid).map(|taken| (taken.sequence, taken.at)).collect();
        for written in &pair.writer.written {
            if let Some(set) = written.set.filter(|set| publisher.sets[*set as usize].began > known) {
                times.entry(set).or_default().insert(taken.get(&written.sequence).copied());
            }
        }
    }
    let all_known = pairs.iter().map(lasts_from).try_fold(Instant::ZERO, |latest, from| Some(latest.max(from?)));
    for (number, times) in times {
        let set = publisher.sets[number as usize];
        let is_taken = times.first() != Some(&None);
        if times.len() > 1 {
            return Err(format!("set {number} at {times:?}"));
        }
        if is_taken && set.ended.is_none() {
            return Err(format!("set {number} although it had no end"));
        }
        if !is_taken && set.ended.is_some() && all_known.is_some_and(|from| set.began > from) {
            return Err(format!("nothing of set {number}"));
        }
    }
    Ok(())
}

/// From when on both sides of a pair knew of each other, if they did so to the end.
fn lasts_from(pair: &Pair<'_>) -> Option<Instant> {
    let of_reader = pair.reader.matches.iter().find(|one| one.peer == pair.writer_guid)?;
    let lasts = pair.only_match()?.until.is_none() && of_reader.until.is_none();
    let stays = lasts && pair.is_there_at_end() && !pair.was_given_up();
    pair.matched_on_both_sides().filter(|_| stays)
}

/// PRESENTATION that asks for order within instances only: one take gives an instance's samples one after the other.
pub fn instances_come_one_by_one(record: &Record) -> Result<(), String> {
    let grouped = |reader: &&ReaderRecord| {
        let topic = &record.plan.topics[reader.index.topic];
        topic.keyed == Keyed::Yes && gives_instances(qos(record, reader).presentation)
    };
    for reader in record.readers.iter().filter(grouped) {
        for call in reader.taken.chunk_by(|one, next| one.call == next.call) {
            let runs: Vec<_> = call.chunk_by(|one, next| one.instance == next.instance).collect();
            let mut seen = BTreeSet::new();
            if let Some(again) = runs.iter().find(|run| !seen.insert(run[0].instance)) {
                let (instance, at) = (again[0].instance, again[0].at);
                return Err(format!("a take at {at:?} gave instance {instance} twice, with others between"));
            }
        }
    }
    Ok(())
}

/// PRESENTATION ordered in GROUP scope: what the writers of one process have written is taken by the readers of another one in that order,
/// but for the time that an application needs to take.
pub fn a_publisher_is_taken_in_its_order(record: &Record) -> Result<(), String> {
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
            let written = writer.written[place].at;
            if written > last_match(record, reader.process, writer.process) {
                taken_of.entry((reader.process, writer.process)).or_default().push((written, taken));
            }
        }
    }
    for ((subscriber, publisher), mut all) in taken_of {
        all.sort_by_key(|(written, taken)| (*written, taken.at));
        let mut latest = Instant::ZERO;
        for same in all.chunk_by(|one, other| one.0 == other.0) {
            if let Some((_, early)) = same.iter().find(|(_, taken)| taken.at + TO_TAKE < latest) {
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

/// When the last writer of one process and reader of another one learned of each other: order spans those that are matched.
fn last_match(record: &Record, subscriber: usize, publisher: usize) -> Instant {
    let ours = |pair: &Pair<'_>| pair.reader.process == subscriber && pair.writer.process == publisher;
    let matched = record.pairs().filter(ours).flat_map(|pair| {
        let at_writer = pair.writer.matches.iter().filter(move |one| one.peer == pair.reader_guid);
        at_writer.chain(pair.reader.matches.iter().filter(move |one| one.peer == pair.writer_guid))
    });
    matched.map(|one| one.from).max().unwrap_or_default()
}

/// Whether `read` and `take` give out samples instance by instance (DDS 1.4 §2.2.2.5.3.8).
pub(super) fn gives_instances(presentation: Presentation) -> bool {
    let across = presentation.access_scope >= AccessScope::Topic && presentation.ordered;
    presentation != Presentation::default() && !across
}

/// Whether values of one writer may be taken in another order than they were written: instances one by one, or later than others because
/// they came too early.
pub(super) fn mixes_instances(pair: &Pair<'_>) -> bool {
    let plan = pair.reader_plan();
    gives_instances(plan.qos.presentation) || !plan.qos.timing.minimum_separation.is_zero()
}
