//! From a reader to the queue, on the thread that received.

use std::sync::Arc;
use std::time::Instant;

use thalweg::types::{Guid, KeyHash, SequenceNumber};
use thalweg::{DataReader, Payload, PayloadKind, Raw, Sample};

use super::Recording;
use super::topics::AboutTopic;
use crate::arrival::held;
use crate::demand::Demand;
use crate::ledger::RecordingFate;
use crate::queue::QueueRefusal;

/// A sample on its way to the disk.
pub struct QueuedSample {
    pub about: Arc<AboutTopic>,
    pub writer: Guid,
    pub sequence: SequenceNumber,
    pub instance: KeyHash,
    /// When it came here.
    pub arrived: Instant,
    pub log_time_ns: u64,
    pub publish_time_ns: u64,
    pub content: QueuedContent,
}

/// What a sample says.
pub enum QueuedContent {
    /// A value.
    Value(Payload),
    /// An instance ended: whether it was disposed, and a sample or key of it, or nothing.
    End { disposed: bool, bytes: Payload, kind: PayloadKind },
}

/// Puts a reader's samples into the queue.
pub struct Intake {
    about: Arc<AboutTopic>,
    demand: Demand,
    shared: Arc<Recording>,
}

impl Intake {
    pub fn new(about: Arc<AboutTopic>, demand: Demand, shared: Arc<Recording>) -> Intake {
        Intake { about, demand, shared }
    }

    /// Takes all that a reader has.
    pub fn take(&self, reader: &DataReader<Raw>) {
        let samples = reader.take(usize::MAX);
        let time = self.shared.clock.read();
        for sample in &samples {
            self.offer(sample, time.log_time_ns(sample.info().received));
        }
    }

    fn offer(&self, sample: &Sample<Raw>, log_time_ns: u64) {
        let info = sample.info();
        let is_own = || self.shared.is_for(&self.about, &self.demand, info.writer, info.sequence);
        if info.sequence == SequenceNumber::UNKNOWN || !is_own() {
            return;
        }
        let held = held(sample.payload());
        let bytes = held.pinned_bytes();
        let content = if sample.is_valid() {
            QueuedContent::Value(held)
        } else {
            QueuedContent::End { disposed: sample.disposes(), bytes: held, kind: sample.bytes_kind() }
        };
        let stamp = info.source_timestamp.map(|stamp| stamp.to_unix().as_nanos());
        let arrival = QueuedSample {
            about: Arc::clone(&self.about),
            writer: info.writer,
            sequence: info.sequence,
            instance: info.instance,
            arrived: Instant::now(),
            log_time_ns,
            publish_time_ns: stamp.and_then(|stamp| u64::try_from(stamp).ok()).unwrap_or(log_time_ns),
            content,
        };
        let fate = match self.shared.queue.offer(arrival, bytes) {
            Ok(()) => RecordingFate::Arrived,
            Err(QueueRefusal::Full) => RecordingFate::NoRoom,
            Err(QueueRefusal::Closed) => return,
        };
        self.shared.ledger.note(info.writer, &self.about.name, info.sequence, fate);
    }
}
