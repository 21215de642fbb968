//! Laws of histories that the next process goes on with.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::qos::History;
use thalweg_rtps::types::{Guid, KeyHash, SequenceNumber};

use super::delivery::{is_owed_everything, keeps_all};
use super::policies::values;
use crate::record::{Pair, Record, WriterRecord};

/// DURABILITY PERSISTENT: no reader takes a value of a history twice, nor one after a later one, whichever process wrote it or brought it
/// back.
pub fn a_history_goes_on(record: &Record) -> Result<(), String> {
    for writer in record.writers.iter().filter(|writer| !writer.former.is_empty()) {
        let names = names(record, writer);
        for (number, reader) in
            record.readers.iter().enumerate().filter(|(_, one)| one.index.topic == writer.index.topic)
        {
            let taken: Vec<SequenceNumber> =
                values(reader).filter(|taken| names.contains(&taken.writer)).map(|taken| taken.sequence).collect();
            if let Some(back) = taken.windows(2).find(|two| two[0] >= two[1]) {
                return Err(format!("reader {number} took {} of {names:?} after {}", back[1], back[0]));
            }
        }
    }
    Ok(())
}

/// DURABILITY PERSISTENT: a durable reader gets all that the store had, of each instance as many as DURABILITY_SERVICE keeps, and all that
/// was written since, of instances that nobody ended.
pub fn what_was_stored_comes_back(record: &Record) -> Result<(), String> {
    let restored = |pair: &Pair<'_>| !pair.writer.former.is_empty() && pair.is_durable() && pair.is_there_at_end();
    for pair in record.pairs().filter(|pair| restored(pair) && keeps_all(pair) && is_owed_everything(pair)) {
        let names = names(record, pair.writer);
        let taken = values(pair.reader).filter(|taken| names.contains(&taken.writer));
        let taken: BTreeSet<SequenceNumber> = taken.map(|taken| taken.sequence).collect();
        let depth = match pair.writer_plan().qos.durability_service.history {
            History::KeepAll => usize::MAX,
            History::KeepLast(depth) => depth as usize,
        };
        let mut counts: BTreeMap<KeyHash, usize> = BTreeMap::new();
        let changes = pair.writer.restored.iter().chain(&pair.writer.written);
        let ended = ended_instances(record, pair.writer);
        for written in changes.rev().filter(|written| !ended.contains(&written.instance)) {
            let count = counts.entry(written.instance).or_default();
            *count += 1;
            if *count <= depth && !taken.contains(&written.sequence) {
                return Err(format!("{}: {} of the store is missing", pair.name(), written.sequence));
            }
        }
    }
    Ok(())
}

/// Instances that some writer of a history disposed or unregistered.
fn ended_instances(record: &Record, writer: &WriterRecord) -> BTreeSet<KeyHash> {
    let former = writer.former.iter().flat_map(|number| &record.writers[*number].written);
    let ends = former.chain(&writer.written).filter(|written| written.kind != ChangeKind::Write);
    ends.map(|written| written.instance).collect()
}

/// The GUIDs of all writers of a history, up to this one.
fn names(record: &Record, writer: &WriterRecord) -> Vec<Guid> {
    let former = writer.former.iter().filter_map(|number| record.writers[*number].guid);
    former.chain(writer.guid).collect()
}
