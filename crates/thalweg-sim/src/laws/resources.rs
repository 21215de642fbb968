//! What it costs, and how long anybody waits.

use std::time::Duration;

use super::liveness;
use crate::plan::{Ending, Pace, Plan, WriterPlan};
use crate::record::Record;

/// How long a write may wait for acknowledgements when nothing else holds them up.
const WAIT_BOUND: Duration = Duration::from_secs(5);
/// Datagrams that a participant may send in the three quiet seconds at the end, for each one there is: an announcement, a
/// sign of life with its HEARTBEATs, and answers to those of the others, repeated where they are lost.
const QUIET_DATAGRAMS: u64 = 20;

/// The quiet time in which datagrams are counted.
const QUIET_NANOS: u128 = 3_000_000_000;

/// Participants that do not exist and that cost as much as those that do.
const GHOSTS_ASKED: u64 = 8;

/// Nobody keeps more than the documented bounds, whatever peers do.
pub fn memory_stays_bounded(record: &Record) -> Result<(), String> {
    record.exceeded.first().map_or(Ok(()), |words| Err(words.clone()))
}

/// A refused write is accepted within a bound that splits, dead readers and slow readers stretch by their own time.
pub fn no_write_waits_longer_than_its_bound(record: &Record) -> Result<(), String> {
    for writer in &record.writers {
        let topic = &record.plan.topics[writer.index.topic];
        let plan = &topic.writers[writer.index.place];
        let held = plan.qos.resource_limits.max_samples.unwrap_or(0);
        let pace = |reader: &crate::plan::ReaderPlan| match reader.pace {
            Pace::Polling { period, samples_max } => {
                let takes = u32::try_from((held as usize).div_ceil(samples_max)).unwrap_or(u32::MAX);
                period * takes.saturating_add(1) * topic.writers.len() as u32
            }
            Pace::Eager(_) | Pace::Never => Duration::ZERO,
        };
        let slowest = topic.readers.iter().map(pace).max().unwrap_or_default();
        let dead = record.plan.processes.iter().filter(|process| matches!(process.ends, Some((_, Ending::Vanishes))));
        let lease = dead.map(|process| process.lease_duration).max().unwrap_or_default();
        // A reader that hangs is given up once another one is ahead of it, which has to be found before.
        let hangs = topic.readers.iter().any(|reader| reader.pace == Pace::Never);
        let search = if hangs { record.plan.processes[writer.process].lease_duration } else { Duration::ZERO };
        let away = record.plan.separated() + liveness::disturbed_time(&record.plan);
        let bound = WAIT_BOUND + slowest + away + lease * 2 + search;
        if writer.longest_wait > bound {
            return Err(format!(
                "writer {} of topic {} in p{} waited {:?}; the bound is {bound:?}",
                writer.index.place, writer.index.topic, writer.process, writer.longest_wait
            ));
        }
    }
    Ok(())
}

/// Signs of life in the quiet seconds that policies ask of a participant, and answers to those of another one.
fn signs_of_life(plan: &Plan) -> u64 {
    let count = |writer: &WriterPlan| {
        let told = QUIET_NANOS / (writer.qos.liveliness.lease.as_nanos() / 3).max(1);
        let asserted = writer.habits.asserts.map_or(0, |asserts| QUIET_NANOS / asserts.period.as_nanos().max(1));
        2 * (told + asserted)
    };
    plan.writers().map(|(_, writer)| count(writer) as u64).sum()
}

/// Once everything is settled, participants have little to say.
pub fn quiet_when_idle(record: &Record) -> Result<(), String> {
    let hangs = record.plan.readers().any(|(_, reader)| reader.pace == Pace::Never);
    // Participants that an intruder has made up are remembered until their lease ends.
    let ghosts = if record.plan.intruders.is_empty() { 0 } else { GHOSTS_ASKED };
    // What is lost is said again, and so is what its loss leaves unanswered.
    let attempts = (1.0 - record.plan.weather.loss).powi(-2);
    let signs = signs_of_life(&record.plan) * record.processes.len() as u64;
    let bound = (attempts * (QUIET_DATAGRAMS * (record.processes.len() as u64 + ghosts) + signs) as f64) as u64;
    for (number, process) in record.processes.iter().enumerate().filter(|_| !hangs) {
        if process.sent_when_quiet > bound {
            return Err(format!(
                "p{number} sent {} datagrams in the end; the bound is {bound}",
                process.sent_when_quiet
            ));
        }
    }
    Ok(())
}
