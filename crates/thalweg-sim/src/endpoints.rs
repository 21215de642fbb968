//! Applications at work: they create endpoints, write and take.

use std::sync::Arc;
use std::time::Duration;

use thalweg_rtps::discovery::endpoint_data::ContentFilter;
use thalweg_rtps::history::{ReadFilter, TakenSample};
use thalweg_rtps::participant::{KeySource, Publications, ReaderConfig, SampleFilter, WriterConfig};
use thalweg_rtps::qos::{Durability, Reliability};
use thalweg_rtps::types::Keyed;
use thalweg_rtps::writer::WriterOptions;

use crate::application::stamp;
use crate::calls::{Call, Then};
use crate::plan::{Pace, Plan, Selection};
use crate::record::{TakenRecord, WrittenRecord};
use crate::sample::SimulatedSample;
use crate::simulation::{Happening, Simulation};
use crate::trace::Step;

impl Simulation {
    pub(crate) fn create_writer(&mut self, number: usize) {
        if self.writers[number].handle.is_some() {
            // The one before is deleted when its send call is over.
            let later = self.now + Duration::from_millis(1);
            self.queue.plan(later, Happening::CreateWriter(number));
            return self.queue.plan(later, Happening::Burst(number));
        }
        let index = self.writers[number].record.index;
        let plan = &self.plan.topics[index.topic].writers[index.place];
        let (process, spans_group) = (plan.process, plan.qos.presentation.spans_group());
        let now = self.processes[process].local(self.now);
        let group = if spans_group { self.processes[process].group() } else { None };
        let group = group.map(|(publisher, _)| publisher);
        let is_stored = plan.qos.durability == Durability::Persistent;
        let stored = if is_stored { self.stored_for(process, index.topic) } else { None };
        let config = self.writer_config(number);
        let Some(participant) = self.processes[process].participant.as_mut() else { return };
        let created = match is_stored {
            true => participant.create_lasting_writer(now, config, stored),
            false => participant.create_writer_in(now, config, group),
        };
        match created {
            Ok(handle) => {
                let guid = handle.lock().guid();
                self.endpoints.insert((process, guid.entity), number);
                self.writers[number].record.guid = Some(guid);
                self.writers[number].record.told.created.push(self.now);
                self.writers[number].record.told.closed = None;
                if is_stored {
                    self.processes[process].stored_writers.insert(index.topic, handle.clone());
                }
                self.writers[number].handle = Some(handle);
                self.note(process, format!("creates writer {number}"));
            }
            Err(error) => self.breach(format!("writer {number} refused: {error}")),
        }
        self.drive(process);
    }

    pub(crate) fn writer_config(&self, number: usize) -> WriterConfig {
        let index = self.writers[number].record.index;
        let topic = &self.plan.topics[index.topic];
        let plan = &topic.writers[index.place];
        let qos = plan.qos_at(self.now);
        WriterConfig {
            topic_name: topic.name.clone(),
            type_name: Plan::TYPE_NAME.to_string(),
            keyed: topic.keyed,
            qos: qos.into(),
            options: WriterOptions { first: plan.first, ..WriterOptions::default() },
        }
    }

    pub(crate) fn create_reader(&mut self, number: usize) {
        let index = self.readers[number].record.index;
        let topic = &self.plan.topics[index.topic];
        let plan = &topic.readers[index.place];
        let qos = plan.qos_at(self.now);
        let config = ReaderConfig {
            topic_name: topic.name.clone(),
            type_name: Plan::TYPE_NAME.to_string(),
            keyed: topic.keyed,
            qos: qos.into(),
            keys: KeySource::Function(SimulatedSample::key_of()),
            filter: plan.filter.map(|filter| announced(&topic.name, filter)),
        };
        let (process, pace, spans_group) = (plan.process, plan.pace, plan.qos.presentation.spans_group());
        let now = self.processes[process].local(self.now);
        let group = if spans_group { self.processes[process].group() } else { None };
        let group = group.map(|(_, subscriber)| subscriber);
        let Some(participant) = self.processes[process].participant.as_mut() else { return };
        match participant.create_reader_in(now, config, Publications::All, group) {
            Ok(handle) => {
                let guid = handle.lock().guid();
                self.endpoints.insert((process, guid.entity), number);
                self.readers[number].record.guid = Some(guid);
                self.readers[number].record.told.created.push(self.now);
                self.reader_numbers.insert(guid, number);
                self.readers[number].handle = Some(handle);
                self.note(process, format!("creates reader {number}"));
            }
            Err(error) => self.breach(format!("reader {number} refused: {error}")),
        }
        if let Pace::Polling { period, .. } = pace {
            self.queue.plan(self.now + period, Happening::Take(number));
        }
        self.drive(process);
    }

    pub(crate) fn delete_writer(&mut self, number: usize) {
        let process = self.writers[number].record.process;
        let now = self.processes[process].local(self.now);
        if let Some(call) = &self.writers[number].call {
            // The thread in it keeps the writer.
            return self.queue.plan(call.ends(), Happening::DeleteWriter(number));
        }
        let Some(handle) = self.writers[number].close(self.now) else { return };
        let entity = handle.lock().guid().entity;
        if let Some(participant) = self.processes[process].participant.as_mut() {
            participant.delete_writer(now, entity);
        }
        let index = self.writers[number].record.index;
        let outlives_itself = self.plan.topics[index.topic].writers[index.place].outlives_itself();
        self.writers[number].retained = outlives_itself.then_some(handle);
        self.note(process, format!("deletes writer {number}"));
        self.drive(process);
    }

    pub(crate) fn delete_reader(&mut self, number: usize) {
        let process = self.readers[number].record.process;
        let now = self.processes[process].local(self.now);
        let Some(handle) = self.readers[number].close(self.now) else { return };
        let entity = handle.lock().guid().entity;
        if let Some(participant) = self.processes[process].participant.as_mut() {
            participant.delete_reader(now, entity);
        }
        self.note(process, format!("deletes reader {number}"));
        self.drive(process);
    }

    pub(crate) fn burst(&mut self, number: usize) {
        let plan =
            &self.plan.topics[self.writers[number].record.index.topic].writers[self.writers[number].record.index.place];
        self.writers[number].left_in_burst = plan.burst.max(1);
        self.write(number);
    }

    /// Writes the rest of the burst, until a write is refused.
    pub(crate) fn write(&mut self, number: usize) {
        let index = self.writers[number].record.index;
        let process = self.writers[number].record.process;
        let now = self.processes[process].local(self.now);
        if self.writers[number].call.as_ref().is_some_and(Call::keeps_from_writing) {
            return;
        }
        loop {
            let application = &mut self.writers[number];
            let topic = &self.plan.topics[index.topic];
            let plan = &topic.writers[index.place];
            if application.is_done(plan) || application.left_in_burst == 0 {
                return;
            }
            let Some(handle) = application.handle.clone() else { return };
            application.prepare(topic, plan);
            let Some(change) = application.change(topic, plan, now) else { return };
            let (kind, instance, timestamp) = (change.kind, change.instance, change.timestamp);
            let (set, ends_set) = application.begin_set(plan, &mut handle.lock());
            let set = set.or(application.publishers_set);
            let outcome = handle.lock().write(now, change);
            let held = handle.lock().held();
            if plan.qos.resource_limits.max_samples.is_some_and(|max| held > max as usize) {
                self.breaches.push(format!("writer {number} holds {held} samples"));
            }
            let (sequence, arm) = match outcome {
                Ok(written) => {
                    let sequence = written.sequence;
                    let at = self.now;
                    application.accept(at, WrittenRecord { sequence, kind, instance, timestamp, at, set });
                    let ended = ends_set && handle.lock().end_coherent_changes(now, stamp(now));
                    (Some(sequence), if ended { Some(now) } else { written.arm })
                }
                Err(refused) => (None, refused.arm),
            };
            self.trace.record(self.now, process, Step::Wrote { writer: number, sequence });
            if self.transmit(number, Then::GoOnWriting { sequence, arm }) != Some(true) {
                return;
            }
        }
    }

    /// An application asserts its writer's liveliness, and will do so again.
    pub(crate) fn assert_liveliness(&mut self, number: usize) {
        let (index, process) = (self.writers[number].record.index, self.writers[number].record.process);
        let Some(handle) = self.writers[number].handle.clone() else { return };
        let now = self.processes[process].local(self.now);
        let by_participant = handle.lock().assert_liveliness(now);
        self.writers[number].record.told.asserted.push(self.now);
        self.transmit(number, Then::Assert { by_participant });
        let asserts = self.plan.topics[index.topic].writers[index.place].habits.asserts;
        if let Some(again) = asserts.filter(|asserts| self.now + asserts.period <= asserts.until) {
            self.queue.plan(self.now + again.period, Happening::Assert(number));
        }
    }

    pub(crate) fn wait_for_space(&mut self, number: usize) {
        let index = self.writers[number].record.index;
        let reliability = self.plan.topics[index.topic].writers[index.place].qos.reliability;
        let blocking = match reliability {
            Reliability::Reliable { max_blocking_time } => max_blocking_time,
            Reliability::BestEffort => Duration::from_millis(100),
        };
        let application = &mut self.writers[number];
        let Some(pending) = application.pending.as_mut() else { return };
        pending.refused_at.get_or_insert(self.now);
        application.told_of_room = false;
        application.waits += 1;
        let waits = application.waits;
        self.queue.plan(self.now + blocking, Happening::GiveUp { writer: number, waits });
    }

    pub(crate) fn give_up_write(&mut self, number: usize, waits: u32) {
        let is_waiting = self.writers[number].pending.as_ref().is_some_and(|pending| pending.refused_at.is_some());
        if is_waiting && self.writers[number].waits == waits {
            if let Some(words) = self.untold_room(number) {
                self.breach(words);
            }
            self.write(number);
        }
    }

    /// In words, if a writer whose write waits has room for long enough and has told nobody: with a quarter free again, it has to.
    fn untold_room(&self, number: usize) -> Option<String> {
        let application = &self.writers[number];
        let index = application.record.index;
        let plan = &self.plan.topics[index.topic].writers[index.place];
        let limits = plan.qos.resource_limits;
        let is_by_instance = limits.max_samples_per_instance.is_some() || limits.max_instances.is_some();
        if application.told_of_room || application.call.is_some() || plan.outlives_itself() || is_by_instance {
            return None;
        }
        let (max, kept) = (limits.max_samples? as usize, application.handle.as_ref()?.lock().footprint());
        let is_drained = kept.samples <= max - max.div_ceil(4);
        let has_bytes = kept.bytes <= WriterOptions::default().history_bytes_max / 4 * 3;
        (is_drained && has_bytes).then(|| format!("writer {number} holds {} of {max} and told nobody", kept.samples))
    }

    /// Takes as much as the pace says, checks it and notes it down.
    pub(crate) fn take(&mut self, number: usize) {
        let reader = &mut self.readers[number];
        reader.take_planned = false;
        let (index, process) = (reader.record.index, reader.record.process);
        let (Some(handle), Some(guid)) = (reader.handle.clone(), reader.record.guid) else { return };
        let samples_max = match self.plan.topics[index.topic].readers[index.place].pace {
            Pace::Polling { period, samples_max } => {
                self.queue.plan(self.now + period, Happening::Take(number));
                samples_max
            }
            Pace::Eager(_) | Pace::Never => usize::MAX,
        };
        let now = self.processes[process].local(self.now);
        let held = handle.lock().cache().len();
        let instances = handle.lock().cache().instances();
        let limits = self.plan.topics[index.topic].readers[index.place].qos.resource_limits;
        // A lost writer is reported beyond the limit, once for each instance.
        if limits.max_samples.is_some_and(|max| held > max as usize + instances) {
            self.breach(format!("reader {number} holds {held} samples"));
        }
        let mut taken = std::mem::take(&mut self.taken);
        let outcome = handle.lock().take(|| now, samples_max, &ReadFilter::ALL, &mut taken);
        self.readers[number].record.told.calls += 1;
        let call = self.readers[number].record.told.calls;
        for sample in taken.drain(..) {
            self.check_content(number, &sample);
            let info = sample.info;
            let one = TakenRecord {
                writer: info.writer,
                sequence: info.sequence,
                instance: info.instance,
                valid: info.valid,
                instance_state: info.instance_state,
                timestamp: info.source_timestamp,
                at: self.now,
                call,
            };
            if info.valid {
                self.readers[number].values.insert((info.writer, info.sequence));
            }
            self.readers[number].record.taken.push(one);
            let step = Step::Took { reader: number, sequence: info.sequence, valid: info.valid };
            self.trace.record(self.now, process, step);
        }
        self.taken = taken;
        if let (Some(at), Some(participant)) = (outcome.arm, self.processes[process].participant.as_mut()) {
            participant.rearm(guid.entity, at);
        }
        if outcome.count > 0 {
            self.drive(process);
        }
    }

    /// A reader's sample must be the one that its writer wrote under that number.
    fn check_content(&mut self, number: usize, taken: &TakenSample) {
        if self.plan.weather.corruption > 0.0 {
            return;
        }
        let info = taken.info;
        let topic = self.readers[number].record.index.topic;
        let writer = self.writers.iter().find(|writer| writer.record.guid == Some(info.writer));
        let Some(writer) = writer else {
            return self.breach(format!("reader {number} took {} of an unknown writer {}", info.sequence, info.writer));
        };
        let plan = &self.plan.topics[topic].writers[writer.record.index.place];
        let found = match info.valid {
            true => SimulatedSample::decode(&taken.payload, plan.payload_bytes).map(Some),
            false => Ok(None),
        };
        let complaint = match found {
            Err(damage) => Some(damage),
            Ok(Some(sample)) => {
                // A store brings back what a writer of the same history wrote before.
                let is_restored = writer.record.has_restored(info.sequence, info.instance);
                let former =
                    writer.record.former.iter().filter(|_| is_restored).map(|former| &self.writers[*former].record);
                let authors = former.chain((!is_restored).then_some(&writer.record));
                let mut written = authors.filter_map(|author| author.written.get(sample.index as usize));
                let fits = written.any(|one| one.sequence == info.sequence && one.instance == info.instance);
                (!fits).then(|| format!("is another one, or was never written: {sample:?}"))
            }
            Ok(None) => None,
        };
        if let Some(complaint) = complaint {
            self.breach(format!("reader {number} took {} of {}: {complaint}", info.sequence, info.writer));
        }
        let keyed = self.plan.topics[topic].keyed == Keyed::Yes;
        let told = SimulatedSample::decode_key(&taken.payload).map(|sample| sample.key());
        if keyed && told != Some(info.instance) {
            self.breach(format!("reader {number} took {} whose key is not told", info.sequence));
        }
    }
}

/// A content filter as it is announced, and as it judges samples.
fn announced(topic_name: &str, filter: Selection) -> (Box<ContentFilter>, SampleFilter) {
    let announced = ContentFilter {
        topic_name: format!("{topic_name} selected"),
        related_topic_name: topic_name.to_string(),
        class_name: "selection".to_string(),
        expression: format!("{filter:?}"),
        parameters: Vec::new(),
    };
    let accepts = move |sample: &[u8]| SimulatedSample::index_in(sample).is_none_or(|index| filter.accepts(index));
    (Box::new(announced), Arc::new(accepts))
}
