//! Laws of discovery.

use std::time::Duration;

use thalweg_rtps::types::GuidPrefix;

use super::promises::is_clear;
use crate::record::{Pair, Record};

/// Time in which participants find each other when nothing is lost. Else one that misses the first announcements, which
/// follow each other closely, has to wait for the periodic ones: four in each lease.
const BOUND: Duration = Duration::from_secs(2);

/// Endpoints match exactly when DDS says that they do: in the end, and at no time those that never should.
pub fn matches_follow_qos(record: &Record) -> Result<(), String> {
    for pair in record.pairs() {
        let at_writer = pair.writer.matches.iter().any(|one| one.peer == pair.reader_guid);
        let at_reader = pair.reader.matches.iter().any(|one| one.peer == pair.writer_guid);
        let should = pair.should_match();
        let complete = record.settled_at.is_some() && pair.is_there_at_end();
        let wrong = match should {
            true => complete && !(at_writer && at_reader),
            false => (at_writer || at_reader) && !pair.may_match(),
        };
        if wrong {
            let sides = format!("matched at the writer: {at_writer}, at the reader: {at_reader}");
            return Err(format!("{}: match expected: {should}; {sides}", pair.name()));
        }
    }
    Ok(())
}

/// In clear weather nobody takes a participant for gone that is there, and endpoints that stay as they are match once and for good.
pub fn what_has_met_stays_together(record: &Record) -> Result<(), String> {
    if !is_clear(record) {
        return Ok(());
    }
    for (number, process) in record.processes.iter().enumerate().filter(|(number, _)| record.is_there_at_end(*number)) {
        let stays = |prefix: GuidPrefix| {
            let place = record.processes.iter().position(|other| other.prefix == prefix);
            place.is_some_and(|other| record.is_there_at_end(other) && record.plan.meet(number, other))
        };
        if let Some((prefix, at)) = process.lost.iter().find(|(prefix, _)| stays(*prefix)) {
            return Err(format!("p{number} took {prefix:?} for gone at {at:?}"));
        }
    }
    let stays = |pair: &Pair<'_>| {
        let (writer, reader) = (pair.writer_plan(), pair.reader_plan());
        let is_changed = writer.earlier.is_some() || reader.earlier.is_some();
        !is_changed && writer.deleted.is_none() && !writer.outlives_itself() && pair.is_there_at_end()
    };
    for pair in record.pairs().filter(stays) {
        let sides = [(&pair.writer.matches, pair.reader_guid), (&pair.reader.matches, pair.writer_guid)];
        for (matches, peer) in sides {
            let of_peer: Vec<_> = matches.iter().filter(|one| one.peer == peer).collect();
            if of_peer.len() > 1 || of_peer.iter().any(|one| one.until.is_some()) {
                return Err(format!("{}: matched and parted: {of_peer:?}", pair.name()));
            }
        }
    }
    Ok(())
}

/// Participants know each other soon after the later of them has started, where nothing but the weather keeps them apart.
pub fn converges(record: &Record) -> Result<(), String> {
    if record.plan.is_disturbed() {
        return Ok(());
    }
    for (number, process) in record.processes.iter().enumerate() {
        for (other_number, other) in record.processes.iter().enumerate().filter(|(other, _)| *other != number) {
            let stays = record.plan.meet(number, other_number)
                && record.is_there_at_end(number)
                && record.is_there_at_end(other_number);
            let starts = record.plan.processes[number].starts.max(record.plan.processes[other_number].starts);
            let lease = record.plan.processes[other_number].lease_duration;
            let bound = if record.plan.weather.loss > 0.0 { lease * 2 } else { BOUND };
            let took = process.discovered.get(&other.prefix).map(|at| at.since(starts));
            if stays && took.is_none_or(|took| took > bound) {
                return Err(format!("p{number} knew p{other_number} after {took:?}; the bound is {bound:?}"));
            }
        }
    }
    Ok(())
}
