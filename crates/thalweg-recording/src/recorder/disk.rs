//! From the queue to the files, on a thread of its own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg::types::Guid;

use super::Recording;
use super::intake::{QueuedContent, QueuedSample};
use super::topics::AboutTopic;
use crate::channel::RecordedWriter;
use crate::error::RecordingError;
use crate::files::{RecordedMessage, RecordingFiles};
use crate::instance::serialized_key;
use crate::latched::{Kept, Latched};
use crate::ledger::{RecordingFate, WRITERS_MAX};
use crate::life::WriterLife;
use crate::qos::RecordedQos;
use crate::queue::TakenEntries;
use crate::read::InstanceEnd;

/// The thread's state.
pub struct Disk {
    files: RecordingFiles,
    shared: Arc<Recording>,
    numbers: HashMap<Guid, NumberedWriter>,
    /// How many numbers the files gave.
    given: usize,
    /// What durable writers keep for late readers.
    durable: HashMap<Guid, DurableWriter>,
    /// The latest reception of each writer, in nanoseconds since 1970.
    receptions: HashMap<Guid, u64>,
    latched: Latched,
    /// Samples by writer that the next flush brings to the disk.
    unflushed: HashMap<Guid, u64>,
}

/// The numbers that the files gave to a writer, one for each QoS that it has had.
struct NumberedWriter {
    /// Of its latest sample.
    qos: Arc<RecordedQos>,
    number: usize,
    others: Vec<(Arc<RecordedQos>, usize)>,
}

/// What a durable writer keeps.
struct DurableWriter {
    /// Samples of an instance.
    depth: usize,
    /// LIFESPAN in nanoseconds; `None` where it is infinite.
    lifespan_ns: Option<u64>,
    life: WriterLife,
}

impl Disk {
    pub fn new(files: RecordingFiles, shared: Arc<Recording>) -> Disk {
        Disk {
            files,
            shared,
            numbers: HashMap::new(),
            given: 0,
            durable: HashMap::new(),
            receptions: HashMap::new(),
            latched: Latched::default(),
            unflushed: HashMap::new(),
        }
    }

    /// Writes until the queue is closed and empty, or the files cannot be written.
    pub fn run(mut self) -> Result<Vec<PathBuf>, RecordingError> {
        let result = self.write_all();
        if result.is_err() {
            self.take_back();
            // Nothing is taken any more; what waits is counted as lost to the disk.
            self.shared.queue.close();
            while let TakenEntries::Entries(arrivals) =
                self.shared.queue.take(TAKEN_MAX, TAKEN_BYTES_MAX, Duration::ZERO)
            {
                arrivals.iter().for_each(|arrival| self.note(arrival, RecordingFate::Unwritten));
            }
        }
        let ended = self.files.finish(&self.shared.ledger.summary());
        if ended.is_err() {
            self.take_back();
        }
        result.and(ended).map(|()| self.files.paths().to_vec())
    }

    fn write_all(&mut self) -> Result<(), RecordingError> {
        let mut flushed = Instant::now();
        loop {
            match self.shared.queue.take(TAKEN_MAX, TAKEN_BYTES_MAX, FLUSH_PERIOD) {
                TakenEntries::Closed => return Ok(()),
                TakenEntries::Nothing => {}
                TakenEntries::Entries(arrivals) => {
                    let mut arrivals = arrivals.into_iter();
                    while let Some(arrival) = arrivals.next() {
                        if self.is_beyond(&arrival) {
                            self.note(&arrival, RecordingFate::Unwritten);
                            continue;
                        }
                        if let Err(error) = self.write(&arrival) {
                            std::iter::once(arrival)
                                .chain(arrivals)
                                .for_each(|one| self.note(&one, RecordingFate::Unwritten));
                            return Err(error);
                        }
                        self.note(&arrival, RecordingFate::Recorded);
                        *self.unflushed.entry(arrival.writer).or_default() += 1;
                    }
                }
            }
            if flushed.elapsed() >= FLUSH_PERIOD {
                self.files.flush()?;
                self.unflushed.clear();
                flushed = Instant::now();
            }
        }
    }

    /// Whether a sample is of a writer that finds no channel: a file has 65 535 of them, and one more would end the recording.
    fn is_beyond(&self, arrival: &QueuedSample) -> bool {
        let is_value = matches!(arrival.content, QueuedContent::Value(_));
        is_value && self.numbers.len() >= WRITERS_MAX && !self.numbers.contains_key(&arrival.writer)
    }

    /// Counts what was not flushed as lost: some of it may be in the file all the same.
    fn take_back(&mut self) {
        self.unflushed.drain().for_each(|(writer, count)| self.shared.ledger.take_back(writer, count));
    }

    fn write(&mut self, arrival: &QueuedSample) -> Result<(), RecordingError> {
        if matches!(arrival.content, QueuedContent::End { .. }) && arrival.about.tells_instances() {
            self.latched.end(arrival.writer, arrival.instance);
        }
        let log_time_ns = self.log_time_ns(arrival);
        if self.files.begin_if_due(|| self.shared.ledger.summary())? {
            self.unflushed.clear();
            self.repeat_latched(log_time_ns)?;
        }
        let mut message = RecordedMessage {
            // MCAP has 32 bits for it.
            sequence: arrival.sequence.0 as u32,
            log_time_ns,
            publish_time_ns: arrival.publish_time_ns,
            data: &[],
        };
        match &arrival.content {
            QueuedContent::Value(payload) => {
                let writer = self.number_of(arrival);
                message.data = payload;
                self.files.write(writer, &message)?;
                if let Some(durable) = self.durable.get_mut(&arrival.writer) {
                    let RecordedMessage { sequence, log_time_ns, publish_time_ns, .. } = message;
                    if durable.life.take(sequence, publish_time_ns) {
                        self.latched.forget(arrival.writer);
                    }
                    let kept = Kept { sequence, log_time_ns, publish_time_ns, payload: payload.clone() };
                    self.latched.keep(arrival.writer, arrival.instance, durable.depth, kept);
                }
                Ok(())
            }
            QueuedContent::End { disposed, bytes, kind } => {
                let about = self.about(arrival);
                let of = about.found.get().and_then(Option::as_ref).map(|(of, _)| of);
                let key = serialized_key(of, bytes, *kind).unwrap_or_default();
                let end = InstanceEnd {
                    topic: arrival.about.name.clone(),
                    writer: arrival.writer.to_string(),
                    sequence: arrival.sequence.0,
                    disposed: *disposed,
                    key: key.iter().map(|byte| format!("{byte:02x}")).collect(),
                };
                let json = serde_json::to_vec(&end).map_err(RecordingError::new)?;
                message.data = &json;
                self.files.write_end(&message)
            }
        }
    }

    /// When a sample came: never before an earlier one of its writer, also where threads read the clock one after the other.
    fn log_time_ns(&mut self, arrival: &QueuedSample) -> u64 {
        if self.receptions.len() >= WRITERS_MAX && !self.receptions.contains_key(&arrival.writer) {
            return arrival.log_time_ns;
        }
        let latest = self.receptions.entry(arrival.writer).or_default();
        *latest = arrival.log_time_ns.max(*latest);
        *latest
    }

    /// The topic of a sample with its writer's definition of the type. Before its writer was looked at, a reader for another one may have
    /// brought it.
    fn about(&self, arrival: &QueuedSample) -> Arc<AboutTopic> {
        let announced = self.shared.writers().get(&arrival.writer).and_then(|writer| writer.about.clone());
        announced.unwrap_or_else(|| Arc::clone(&arrival.about))
    }

    /// Writes what durable writers keep that are there into the file that has begun, at the time of its first sample.
    fn repeat_latched(&mut self, log_time_ns: u64) -> Result<(), RecordingError> {
        let is_gone = |writer: &Guid| self.shared.writers().get(writer).is_some_and(|writer| writer.is_gone);
        let gone: Vec<Guid> = self.durable.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|writer| self.latched.forget(writer));
        for (writer, kept) in self.latched.samples() {
            let lifespan_ns = self.durable.get(&writer).and_then(|durable| durable.lifespan_ns);
            let Some(NumberedWriter { number, .. }) = self.numbers.get(&writer) else { continue };
            if !kept.is_over(lifespan_ns, log_time_ns) {
                let Kept { sequence, publish_time_ns, payload, .. } = kept;
                let message = RecordedMessage { sequence, log_time_ns, publish_time_ns, data: &payload };
                self.files.write(*number, &message)?;
            }
        }
        self.files.count_from_here()
    }

    /// The number of a writer with the QoS of its sample, such as the partition.
    fn number_of(&mut self, arrival: &QueuedSample) -> usize {
        let Some(known) = self.numbers.get_mut(&arrival.writer) else { return self.add_writer(arrival) };
        let qos = match self.shared.qos_of(arrival.writer, arrival.sequence) {
            Some(qos) if qos != known.qos => qos,
            _ => return known.number,
        };
        if let Some(place) = known.others.iter().position(|(of, _)| *of == qos) {
            let (of, number) = &mut known.others[place];
            std::mem::swap(&mut known.qos, of);
            std::mem::swap(&mut known.number, number);
            return known.number;
        }
        // The rest of a file's channels is for writers that have none.
        if self.given >= WRITERS_MAX {
            return known.number;
        }
        let about = self.about(arrival);
        self.add_channel(arrival.writer, &about, qos)
    }

    /// Makes a channel of a writer once its announcement and its type are known.
    fn add_writer(&mut self, arrival: &QueuedSample) -> usize {
        // From its arrival on, so that many such writers hold up the others no longer than one does.
        let until = arrival.arrived + ANNOUNCEMENT_PATIENCE;
        let announced = || self.shared.qos_of(arrival.writer, arrival.sequence);
        let mut qos = announced();
        let mut about = self.about(arrival);
        // The thread that looks for topics knows both soon, or never; samples wait in the queue meanwhile.
        while (qos.is_none() || about.found.get().is_none()) && Instant::now() < until {
            std::thread::sleep(LOOK_PERIOD);
            qos = announced();
            about = self.about(arrival);
        }
        self.add_channel(arrival.writer, &about, qos.unwrap_or_default())
    }

    fn add_channel(&mut self, writer: Guid, about: &AboutTopic, qos: Arc<RecordedQos>) -> usize {
        let schema = about.found.get().and_then(Option::as_ref).map(|(_, schema)| schema.clone());
        let described = RecordedWriter {
            topic: about.name.clone(),
            type_name: about.type_name.clone(),
            keyed: about.keyed,
            qos: RecordedQos::clone(&qos),
            writer: writer.to_string(),
            schema,
        };
        if let Some(depth) = qos.kept_for_late_readers() {
            let life = self.durable.get(&writer).map(|durable| durable.life).unwrap_or_default();
            self.durable.insert(writer, DurableWriter { depth, lifespan_ns: qos.lifespan_ns(), life });
        }
        let number = self.files.add_writer(described);
        self.given += 1;
        let mut others = Vec::new();
        if let Some(former) = self.numbers.remove(&writer) {
            others = former.others;
            others.push((former.qos, former.number));
        }
        self.numbers.insert(writer, NumberedWriter { qos, number, others });
        number
    }

    fn note(&self, arrival: &QueuedSample, fate: RecordingFate) {
        self.shared.ledger.note(arrival.writer, &arrival.about.name, arrival.sequence, fate);
    }
}

/// Samples that are taken from the queue at once.
const TAKEN_MAX: usize = 256;
/// Their bytes, of which the memory for what waits does not know: what a disk takes at once.
const TAKEN_BYTES_MAX: usize = 4 << 20;
/// Time after which a chunk is written though it is not full: at most so much is lost when the process is killed.
const FLUSH_PERIOD: Duration = Duration::from_secs(1);
/// Longest wait for what the first sample of a writer needs.
const ANNOUNCEMENT_PATIENCE: Duration = Duration::from_secs(3);
const LOOK_PERIOD: Duration = Duration::from_millis(5);
