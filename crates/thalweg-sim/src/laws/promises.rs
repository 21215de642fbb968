//! Laws of what writers promise in time: LIFESPAN, DEADLINE and LIVELINESS. They apply where a plan asks for them.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::history::{ChangeKind, InstanceState};
use thalweg_rtps::qos::{Liveliness, LivelinessKind, Method};
use thalweg_rtps::time::{INFINITE, Instant};
use thalweg_rtps::types::{KeyHash, Keyed, SequenceNumber};

use super::delivery::keeps_all;
use super::repairs::FRAGMENT_BYTES;
use crate::application::stamp;
use crate::clock::HostClock;
use crate::plan::{Ending, Pace, Plan};
use crate::record::{Pair, ReaderRecord, Record, ToldRecord, WriterRecord};

/// By so much timers of local clocks may be off after a few hundred rounds of one nanosecond each.
const ROUNDING: Duration = Duration::from_micros(2);
/// Time beside that on the way, where nothing is lost: receivers work through what came before.
const CLEAR: Duration = Duration::from_millis(20);
/// Time in which the last repairs of a lossy network arrive.
const REPAIRS: Duration = Duration::from_secs(8);

/// LIFESPAN: when the reader's clock shows a sample's source time stamp and its writer's LIFESPAN, the sample is not taken any more.
pub fn nothing_is_taken_when_its_time_is_over(record: &Record) -> Result<(), String> {
    for pair in record.pairs().filter(|pair| pair.writer_plan().qos.timing.lifespan != INFINITE) {
        let lifespan = pair.writer_plan().qos.timing.lifespan;
        for taken in pair.taken().filter(|taken| taken.valid) {
            let Some(written) = taken.timestamp else { continue };
            let shown = stamp(clock(&record.plan, pair.reader.process).local(taken.at)).to_unix();
            // Time stamps on the wire have a quarter of a nanosecond.
            if shown > written.to_unix() + lifespan + Duration::from_nanos(1) {
                let age = shown.saturating_sub(written.to_unix());
                return Err(format!("{}: {} was taken at an age of {age:?}", pair.name(), taken.sequence));
            }
        }
    }
    Ok(())
}

/// LIFESPAN: in clear weather a reliable reader that takes at once gets every sample that lives longer than its way takes, by the
/// clock of the reader. Samples of asynchronous writers may have to wait for tokens, and those of several datagrams for repairs where
/// jitter reorders them.
pub fn nothing_is_lost_before_its_time(record: &Record) -> Result<(), String> {
    let applies = |pair: &Pair<'_>| {
        let plan = pair.writer_plan();
        let keeps_all = plan.depth().is_none() && pair.reader_plan().depth().is_none();
        plan.qos.timing.lifespan != INFINITE
            && arrives_promptly(record, pair)
            && keeps_all
            && is_watched_closely(pair)
            && pair.is_reliable()
    };
    if !is_clear(record) {
        return Ok(());
    }
    for pair in record.pairs().filter(applies) {
        let (at_writer, at_reader) =
            (clock(&record.plan, pair.writer.process), clock(&record.plan, pair.reader.process));
        let Some(from) = pair.matched_on_both_sides() else { continue };
        let taken: Vec<SequenceNumber> = pair.taken().filter(|one| one.valid).map(|one| one.sequence).collect();
        for written in pair.writer.written.iter().filter(|one| one.kind == ChangeKind::Write && one.at > from) {
            let ahead = at_reader.local(written.at).since(at_writer.local(written.at));
            let way = on_the_way(record, pair.writer) + ahead;
            let there = pair.is_there_at_end() || taken.last().is_some_and(|last| written.sequence < *last);
            if pair.writer_plan().qos.timing.lifespan > way && there && !taken.contains(&written.sequence) {
                return Err(format!("{}: {} is missing, and takes {way:?} at most", pair.name(), written.sequence));
            }
        }
    }
    Ok(())
}

/// DEADLINE: each end tells each period that passes without a write, or without a sample handed over, once when it has passed, and
/// none that did not.
pub fn missed_periods_are_told_once(record: &Record) -> Result<(), String> {
    for writer in &record.writers {
        let plan = &record.plan.topics[writer.index.topic].writers[writer.index.place];
        if plan.qos.timing.deadline == INFINITE || plan.habits.returns.is_some() {
            continue;
        }
        let mut periods = Periods::new(plan.qos.timing.deadline, clock(&record.plan, writer.process));
        for written in &writer.written {
            match written.kind {
                ChangeKind::Write => periods.begin(written.at, written.instance),
                _ => periods.end(written.at, written.instance),
            }
        }
        let closed = writer.told.closed.unwrap_or(record.ended_at);
        periods.compare(&writer.told, closed).map_err(|words| format!("{}: {words}", name_of_writer(writer)))?;
    }
    for reader in record.readers.iter().filter(|reader| reader.guid.is_some()) {
        let plan = &record.plan.topics[reader.index.topic].readers[reader.index.place];
        let loses_writers = reader.matches.iter().any(|one| one.until.is_some()) || !reader.told.alive.is_empty();
        // The only instance of a topic without keys ends without a sample that says so.
        let is_told = record.plan.topics[reader.index.topic].keyed == Keyed::Yes || !loses_writers;
        if plan.qos.timing.deadline == INFINITE || plan.pace != Pace::Eager(Duration::ZERO) || !is_told {
            continue;
        }
        let mut periods = Periods::new(plan.qos.timing.deadline, clock(&record.plan, reader.process));
        for taken in &reader.taken {
            match taken.instance_state {
                InstanceState::Alive if taken.valid => periods.begin(taken.at, taken.instance),
                InstanceState::Alive => {}
                _ => periods.end(taken.at, taken.instance),
            }
        }
        let closed = reader.told.closed.unwrap_or(record.ended_at);
        periods.compare(&reader.told, closed).map_err(|words| format!("{}: {words}", name_of_reader(reader)))?;
    }
    Ok(())
}

/// LIVELINESS: a writer whose application gives no sign for its lease is told so, at the end of the lease and once; one whose liveliness is
/// automatic never is.
pub fn silent_writers_are_told(record: &Record) -> Result<(), String> {
    for writer in &record.writers {
        let liveliness = liveliness_of(record, writer);
        let Some(created) = writer.told.created.first() else { continue };
        let closed = writer.told.closed.unwrap_or(record.ended_at);
        let clock = clock(&record.plan, writer.process);
        let local = |at: Instant| clock.local(at);
        if liveliness.lease == INFINITE || liveliness.kind == LivelinessKind::Automatic {
            let Some(at) = writer.told.lost.first() else { continue };
            return Err(format!("{}: told to be lost at {at:?}, which cannot be", name_of_writer(writer)));
        }
        let mut signs = signs_of(record, writer);
        signs.retain(|at| at > created && *at <= closed);
        signs.push(*created);
        signs.sort();
        let ends = signs.iter().skip(1).copied().chain([closed]);
        let mut told = writer.told.lost.iter().peekable();
        for (sign, next) in signs.iter().zip(ends) {
            let (lost, until) = (local(*sign) + liveliness.lease, local(next));
            let is_told = told.next_if(|at| local(**at) < until + ROUNDING).map(|at| local(*at));
            let fits = match is_told {
                Some(at) => at + ROUNDING >= lost && at <= lost + ROUNDING,
                None => until <= lost + ROUNDING,
            };
            if !fits {
                let words = format!("its lease ended at {lost:?} by its clock, the next sign came at {until:?}");
                return Err(format!("{}: {words}; told at {is_told:?}", name_of_writer(writer)));
            }
        }
        if let Some(at) = told.next() {
            return Err(format!("{}: told to be lost at {at:?} without reason", name_of_writer(writer)));
        }
    }
    Ok(())
}

/// LIVELINESS: readers learn that a writer is silent within its lease and the time on the way, unless they lost it altogether. What comes
/// late to a reader of the same process, as history or after repairs, is a sign of life there.
pub fn silence_is_noticed(record: &Record) -> Result<(), String> {
    for pair in record.pairs() {
        let liveliness = liveliness_of(record, pair.writer);
        if liveliness.lease == INFINITE {
            continue;
        }
        let Some(last) = last_sign(record, pair.writer) else { continue };
        let matched = pair.reader.matches.iter().rev().find(|one| one.peer == pair.writer_guid);
        let Some(matched) = matched else { continue };
        let way = if is_clear(record) { on_the_way(record, pair.writer) } else { REPAIRS };
        // Samples of other writers of the participant are told thrice in a lease.
        let told = if liveliness.kind == LivelinessKind::ManualByParticipant { liveliness.lease / 3 } else { CLEAR };
        let beside = record.readers.iter().filter(|reader| reader.process == pair.reader.process);
        let came =
            beside.flat_map(|reader| &reader.taken).filter(|one| one.writer == pair.writer_guid).map(|one| one.at);
        let last = came.max().map_or(last, |came| last.max(came));
        let due = last.max(matched.from) + liveliness.lease + told + way;
        let closed = pair.reader.told.closed.unwrap_or(record.ended_at);
        if due >= closed || matched.until.is_some_and(|until| until <= due) {
            continue;
        }
        let told = pair.reader.told.alive.iter().rev().find(|(_, writer, _)| *writer == pair.writer_guid);
        if told.is_none_or(|(at, _, is_alive)| *is_alive || *at > due) {
            let words = format!("silent since {last:?}, to be noticed by {due:?}; last told: {told:?}");
            return Err(format!("{}: {words}", pair.name()));
        }
    }
    Ok(())
}

/// LIVELINESS: in clear weather nobody takes a writer for silent that gives its signs within its lease. Signs of a participant's other writers
/// are told thrice in a lease: one that its process vanished before telling is nobody's to hear.
pub fn signs_of_life_are_heard(record: &Record) -> Result<(), String> {
    if !is_clear(record) {
        return Ok(());
    }
    for pair in record.pairs() {
        let liveliness = liveliness_of(record, pair.writer);
        let way = on_the_way(record, pair.writer);
        let signs = signs_of(record, pair.writer);
        let clock = clock(&record.plan, pair.reader.process);
        // Earlier signs were not for this reader.
        let known = pair.matched_on_both_sides().unwrap_or_default();
        for (at, _, _) in
            pair.reader.told.alive.iter().filter(|(_, writer, is_alive)| *writer == pair.writer_guid && !is_alive)
        {
            let ends = record.plan.processes[pair.writer.process].ends.map_or(record.ended_at, |(at, _)| at);
            let told = match liveliness.kind {
                LivelinessKind::ManualByParticipant => ends - liveliness.lease / 3,
                _ => ends,
            };
            let heard = match liveliness.kind {
                // A sign is given thrice in a lease.
                LivelinessKind::Automatic => Some(ends).filter(|ends| *at < *ends && way * 3 < liveliness.lease * 2),
                _ => {
                    let heard = |sign: &&Instant| {
                        **sign >= known
                            && **sign <= told
                            && **sign + way <= *at
                            && clock.local(*at) + ROUNDING < clock.local(**sign) + liveliness.lease
                    };
                    signs.iter().find(heard).copied()
                }
            };
            if let Some(sign) = heard {
                let words = format!("taken for silent at {at:?}, with a sign of life at {sign:?}");
                return Err(format!("{}: {words}", pair.name()));
            }
        }
    }
    Ok(())
}

/// LIVELINESS: a reader is told of each change and of nothing else, and of a writer whose values it takes that it is alive. That may not be
/// where values wait for those of other writers, or a GAP hands them over, which is no sign of life.
pub fn changes_of_liveliness_alternate(record: &Record) -> Result<(), String> {
    for pair in record.pairs() {
        let begins = pair.reader.matches.iter().filter(|one| one.peer == pair.writer_guid).map(|one| one.from);
        let begins: Vec<Instant> = begins.collect();
        let has_begun = |since: Instant, at: Instant| begins.iter().any(|from| *from > since && *from <= at);
        let told = pair.reader.told.alive.iter().filter(|(_, writer, _)| *writer == pair.writer_guid);
        let told: Vec<(Instant, bool)> = told.map(|(at, _, is_alive)| (*at, *is_alive)).collect();
        let (mut was_alive, mut since) = (true, Instant::ZERO);
        for (at, is_alive) in &told {
            was_alive |= has_begun(since, *at);
            if was_alive == *is_alive {
                return Err(format!("{}: told at {at:?} again that it is alive: {is_alive}", pair.name()));
            }
            (was_alive, since) = (*is_alive, *at);
        }
        let all = pair.hands_over_everything() && !pair.writer_plan().qos.presentation.spans_group();
        let come_by_themselves = all && is_clear(record) && keeps_all(&pair);
        if !come_by_themselves || !is_watched_closely(&pair) {
            continue;
        }
        for taken in pair.taken().filter(|taken| taken.valid) {
            let before = told.iter().rev().find(|(at, _)| *at < taken.at);
            if let Some((at, false)) = before
                && !has_begun(*at, taken.at)
                && !told.contains(&(taken.at, true))
            {
                let words = format!("{} was taken at {:?}", taken.sequence, taken.at);
                return Err(format!("{}: {words} of a writer that is not alive since {at:?}", pair.name()));
            }
        }
    }
    Ok(())
}

/// Periods of instances by one clock, and those of them that were missed.
struct Periods {
    period: Duration,
    clock: HostClock,
    running: BTreeMap<KeyHash, Instant>,
    /// Local times at which one was missed: surely, or perhaps since something happened at that moment.
    missed: Vec<(Instant, bool)>,
}

impl Periods {
    fn new(period: Duration, clock: HostClock) -> Periods {
        Periods { period, clock, running: BTreeMap::new(), missed: Vec::new() }
    }

    fn begin(&mut self, at: Instant, instance: KeyHash) {
        self.end(at, instance);
        self.running.insert(instance, self.clock.local(at));
    }

    fn end(&mut self, at: Instant, instance: KeyHash) {
        let Some(since) = self.running.remove(&instance) else { return };
        let until = self.clock.local(at);
        let mut missed = since + self.period;
        while missed < until + ROUNDING {
            self.missed.push((missed, missed + ROUNDING < until));
            missed += self.period;
        }
    }

    /// Compares with what was told of an endpoint until it was closed.
    fn compare(mut self, told: &ToldRecord, closed: Instant) -> Result<(), String> {
        for instance in self.running.keys().copied().collect::<Vec<_>>() {
            self.end(closed, instance);
        }
        let count = |until: Instant, surely: bool| {
            self.missed.iter().filter(|(at, sure)| *at <= until && (*sure || !surely)).count() as u64
        };
        let before = |at: Instant| Instant::from_nanos(at.as_nanos().saturating_sub(ROUNDING.as_nanos() as u64));
        let mut last = 0;
        for (at, total) in &told.missed {
            let at = self.clock.local(*at);
            let (least, most) = (count(before(at), true), count(at + ROUNDING, false));
            if least > last {
                return Err(format!("of {least} periods missed before {at:?} by its clock, {last} were told"));
            }
            if *total <= last || *total > most {
                return Err(format!("{total} periods were told at {at:?} by its clock, {most} missed by then"));
            }
            last = *total;
        }
        let end = self.clock.local(closed);
        let (least, most) = (count(before(end), true), count(end + ROUNDING, false));
        if last < least || told.missed_at_end < least || told.missed_at_end > most {
            let counted = told.missed_at_end;
            return Err(format!("{least} to {most} periods were missed, {last} told and {counted} counted"));
        }
        Ok(())
    }
}

fn clock(plan: &Plan, process: usize) -> HostClock {
    plan.hosts[plan.processes[process].host]
}

fn name_of_writer(writer: &WriterRecord) -> String {
    format!("topic {} writer {} in p{}", writer.index.topic, writer.index.place, writer.process)
}

fn name_of_reader(reader: &ReaderRecord) -> String {
    format!("topic {} reader {} in p{}", reader.index.topic, reader.index.place, reader.process)
}

fn liveliness_of(record: &Record, writer: &WriterRecord) -> Liveliness {
    record.plan.topics[writer.index.topic].writers[writer.index.place].qos.liveliness
}

/// When an application gave signs of life that count for a writer by its own doing.
fn signs_of(record: &Record, writer: &WriterRecord) -> Vec<Instant> {
    let own = |writer: &WriterRecord| {
        let written = writer.written.iter().map(|written| written.at);
        written.chain(writer.told.asserted.iter().copied()).collect::<Vec<_>>()
    };
    let liveliness = liveliness_of(record, writer);
    match liveliness.kind {
        LivelinessKind::ManualByParticipant => {
            let others = record.writers.iter().filter(|other| {
                other.process == writer.process && liveliness_of(record, other).kind == liveliness.kind
            });
            others.flat_map(own).collect()
        }
        _ => own(writer),
    }
}

/// The last sign of life of a writer; `None` for one that gives signs to the end.
fn last_sign(record: &Record, writer: &WriterRecord) -> Option<Instant> {
    let created = writer.told.created.first().copied()?;
    match liveliness_of(record, writer).kind {
        LivelinessKind::Automatic => match record.plan.processes[writer.process].ends {
            Some((at, Ending::Vanishes)) => Some(at),
            _ => None,
        },
        _ => signs_of(record, writer).into_iter().chain([created]).max(),
    }
}

/// Whether nothing is lost, nobody is cut off, and applications leave their send calls soon.
pub(super) fn is_clear(record: &Record) -> bool {
    let overrun = record.processes.iter().any(|process| process.dropped > 0);
    let interrupted = record.plan.processes.iter().any(|process| process.sends.interrupted > 0.0);
    record.plan.weather.loss == 0.0 && !record.plan.is_disturbed() && !overrun && !interrupted
}

/// Whether samples need no longer than [`on_the_way`] in clear weather.
pub(super) fn arrives_promptly(record: &Record, pair: &Pair<'_>) -> bool {
    let plan = pair.writer_plan();
    let prompt = !matches!(plan.qos.transmission.method, Method::Asynchronous { .. });
    prompt && (record.plan.weather.jitter.is_zero() || plan.payload_bytes <= FRAGMENT_BYTES)
}

/// Whether what is taken and when is what comes and when.
pub(super) fn is_watched_closely(pair: &Pair<'_>) -> bool {
    let plan = pair.reader_plan();
    plan.pace == Pace::Eager(Duration::ZERO) && plan.qos.resource_limits.max_samples.is_none()
}

/// The longest way of a sample in clear weather: where a later one overtakes it, it waits for what was held up.
pub(super) fn on_the_way(record: &Record, writer: &WriterRecord) -> Duration {
    let weather = record.plan.weather;
    let method = &record.plan.topics[writer.index.topic].writers[writer.index.place].qos.transmission.method;
    let collected = match method {
        Method::Coalesce(limits) | Method::Batch(limits) => limits.max_flush_delay,
        _ => Duration::ZERO,
    };
    weather.latency + weather.jitter * 11 + collected + CLEAR
}
