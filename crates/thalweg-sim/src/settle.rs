//! Detects that a world has settled, and completes its record at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::qos::Durability;
use thalweg_rtps::types::{Guid, KeyHash, SequenceNumber};
use thalweg_rtps::writer::Writer;

use crate::plan::{Pace, ReaderPlan};
use crate::record::{HostLanes, ReaderRecord, Record, WriterRecord};
use crate::simulation::{Happening, Simulation};

/// Time between two looks.
const PATIENCE_STEP: Duration = Duration::from_millis(100);

impl Simulation {
    /// Looks whether nothing is left to do, now and then until it is so.
    pub(crate) fn check_settled(&mut self) {
        if self.unsettled().is_empty() {
            self.settled_at = Some(self.now);
            self.note(0, "everything is settled".to_string());
        } else {
            self.queue.plan(self.now + PATIENCE_STEP, Happening::Check);
        }
    }

    /// The remaining work, in words.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let mut left = Vec::new();
        self.unmatched(&mut left);
        for writer in &self.writers {
            let index = writer.record.index;
            let Some(handle) = &writer.handle else {
                let is_served = self.processes[writer.record.process].participant.is_some();
                let retained = writer.retained.as_ref().filter(|_| is_served);
                if retained.is_some_and(|retained| self.has_late_readers(&retained.lock(), index.topic)) {
                    left.push(format!("readers lack what is left of writer {}", writer.number));
                }
                continue;
            };
            let plan = &self.plan.topics[index.topic].writers[index.place];
            if !writer.is_done(plan) {
                left.push(format!(
                    "writer {} wrote {} of {}",
                    writer.number,
                    writer.record.written.len(),
                    plan.samples
                ));
            }
            let kept = handle.lock().footprint();
            if kept.readers > 0 && kept.waiting > 0 {
                left.push(format!("{} samples of writer {} wait for tokens", kept.waiting, writer.number));
            }
            let behind = handle.lock().readers_behind();
            let given_up = handle.lock().readers_given_up();
            let late = plan.qos.reliability.is_reliable() && self.has_late_readers(&handle.lock(), index.topic);
            if late || behind.max(given_up) > self.hanging_readers(index.topic) {
                let number = writer.number;
                left.push(format!("of the readers of writer {number} {behind} are behind, {given_up} given up"));
            }
        }
        for reader in &self.readers {
            let Some(handle) = &reader.handle else { continue };
            let index = reader.record.index;
            let hangs = self.plan.topics[index.topic].readers[index.place].pace == Pace::Never;
            let waiting = handle.lock().cache().len();
            if waiting > 0 && !hangs {
                left.push(format!("{waiting} samples wait in reader {}", reader.number));
            }
        }
        left
    }

    /// Whether readers of a reliable writer have unacknowledged samples although their applications take arriving ones.
    fn has_late_readers(&self, writer: &Writer, topic: usize) -> bool {
        let takes = |reader: &Guid| {
            let place = self.reader_numbers.get(reader).map(|number| self.readers[*number].record.index.place);
            let plan = place.map(|place| &self.plan.topics[topic].readers[place]);
            plan.is_some_and(|plan| plan.pace != Pace::Never && plan.qos.reliability.is_reliable())
        };
        let lacks = |reader: &Guid| writer.acknowledged_by(*reader).is_some_and(|last| last < writer.last());
        writer.matched_readers().any(|reader| takes(&reader) && lacks(&reader))
    }

    /// Readers of a topic whose applications hang while their writers wait for them.
    fn hanging_readers(&self, topic: usize) -> usize {
        let hangs = |plan: &ReaderPlan| plan.pace == Pace::Never && plan.qos.reliability.is_reliable();
        let of_topic =
            self.readers.iter().filter(|reader| reader.record.index.topic == topic && reader.handle.is_some());
        of_topic.filter(|reader| hangs(&self.plan.topics[topic].readers[reader.record.index.place])).count()
    }

    /// Pairs that DDS wants matched, on both sides, and that are not; those that are though they must not be, or though one
    /// of them is gone; and participants that are wrong about each other.
    fn unmatched(&self, left: &mut Vec<String>) {
        for writer in &self.writers {
            for reader in self.readers.iter().filter(|reader| reader.record.index.topic == writer.record.index.topic) {
                let topic = &self.plan.topics[writer.record.index.topic];
                let writer_plan = &topic.writers[writer.record.index.place];
                let reader_plan = &topic.readers[reader.record.index.place];
                // Whoever serves the readers, which is not the application once it has deleted its writer.
                let is_served = self.processes[writer.record.process].participant.is_some();
                let served = writer.handle.as_ref().or(writer.retained.as_ref().filter(|_| is_served));
                let should =
                    served.is_some() && reader.handle.is_some() && self.plan.should_match(writer_plan, reader_plan);
                let (Some(writer_guid), Some(reader_guid)) = (writer.record.guid, reader.record.guid) else { continue };
                let wrong_writer = served
                    .is_some_and(|handle| handle.lock().matched_readers().any(|guid| guid == reader_guid) != should);
                let wrong_reader = reader
                    .handle
                    .as_ref()
                    .is_some_and(|handle| handle.lock().matched_writers().any(|guid| guid == writer_guid) != should);
                if wrong_writer || wrong_reader {
                    left.push(format!(
                        "writer {} and reader {}: match expected: {should}; wrong at the writer: {wrong_writer}, at the reader: {wrong_reader}",
                        writer.number, reader.number
                    ));
                }
            }
        }
        for (number, process) in self.processes.iter().enumerate() {
            let Some(participant) = &process.participant else { continue };
            let known: Vec<_> = participant.participants().map(|known| known.data.guid_prefix).collect();
            for (other_number, other) in self.processes.iter().enumerate().filter(|(other, _)| *other != number) {
                let is_there = other.participant.is_some() && self.plan.meet(number, other_number);
                if is_there != known.contains(&other.record.prefix) && other.started {
                    left.push(format!("p{number} about p{other_number}: is there: {is_there}, known: {}", !is_there));
                }
            }
        }
    }

    pub(crate) fn into_record(mut self) -> Record {
        let unsettled = if self.settled_at.is_some() { Vec::new() } else { self.unsettled() };
        self.check_leftovers();
        for process in &mut self.processes {
            process.record.dropped = process.inbox.dropped();
            if let Some(participant) = &process.participant {
                process.record.endpoints_known =
                    (participant.publications().count(), participant.subscriptions().count());
            }
        }
        for writer in &mut self.writers {
            writer.close(self.now);
            let toll = writer.record.guid.and_then(|guid| self.tolls.get(&guid));
            writer.record.toll = toll.copied().unwrap_or_default();
        }
        for reader in &mut self.readers {
            reader.close(self.now);
        }
        let hosts = (0..self.plan.hosts.len()).map(|host| self.network.lane_counters(host));
        Record {
            lanes: hosts.map(|(outbound, inbound)| HostLanes { outbound, inbound }).collect(),
            writers: self.writers.into_iter().map(|writer| writer.record).collect(),
            readers: self.readers.into_iter().map(|reader| reader.record).collect(),
            processes: self.processes.into_iter().map(|process| process.record).collect(),
            settled_at: self.settled_at,
            ended_at: self.now,
            unsettled,
            breaches: self.breaches,
            unkept: self.unkept,
            exceeded: self.exceeded,
            overfull: self.overfull,
            trace: self.trace,
            plan: self.plan,
        }
    }

    /// State that must be gone once all samples are delivered.
    fn check_leftovers(&mut self) {
        if self.settled_at.is_none() || self.plan.weather.corruption > 0.0 {
            return;
        }
        let mut leftovers = Vec::new();
        for (number, process) in self.processes.iter().enumerate() {
            let Some(participant) = &process.participant else { continue };
            let bytes = participant.reassembly_bytes();
            // A begun best-effort sample may stay unfinished until the next one, and the last one for ever.
            let mut readers = self.plan.readers().filter(|(_, reader)| reader.process == number);
            let hanging = (0..self.plan.topics.len()).any(|topic| self.hanging_readers(topic) > 0);
            let waited_for = !hanging && self.writers.iter().all(|writer| writer.record.given_up.is_empty());
            if bytes > 0 && waited_for && readers.all(|(_, reader)| reader.qos.reliability.is_reliable()) {
                leftovers.push(format!("p{number} holds {bytes} bytes of unfinished samples"));
            }
            let counters = participant.counters();
            let honest = self.plan.intruders.is_empty();
            if honest
                && counters.malformed + counters.unusable_announcements + counters.over_limit + counters.keyless > 0
            {
                leftovers.push(format!("p{number} refused something of its peers: {counters:?}"));
            }
        }
        for writer in &self.writers {
            let Some(handle) = &writer.handle else { continue };
            let index = writer.record.index;
            let plan = &self.plan.topics[index.topic].writers[index.place];
            let volatile = plan.qos.durability == Durability::Volatile;
            let held = handle.lock().held();
            if volatile && held > 0 && self.hanging_readers(index.topic) == 0 {
                leftovers.push(format!("writer {} holds {held} samples that all readers have", writer.number));
            }
        }
        for words in leftovers {
            self.breach(words);
        }
    }
}

impl WriterRecord {
    /// Whether its store brought a change back.
    pub(crate) fn has_restored(&self, sequence: SequenceNumber, instance: KeyHash) -> bool {
        let place = self.restored.binary_search_by_key(&sequence, |restored| restored.sequence);
        place.is_ok_and(|place| self.restored[place].instance == instance)
    }

    /// The number of the last change that ended each instance.
    pub fn last_ends(&self) -> BTreeMap<KeyHash, SequenceNumber> {
        let ends = self.written.iter().filter(|written| written.kind != ChangeKind::Write);
        ends.map(|end| (end.instance, end.sequence)).collect()
    }

    /// True when a change ended an instance.
    pub fn ends_instances(&self) -> bool {
        self.written.iter().any(|written| written.kind != ChangeKind::Write)
    }
}

impl ReaderRecord {
    /// Number of values that its application took.
    pub fn values(&self) -> usize {
        self.taken.iter().filter(|taken| taken.valid).count()
    }
}
