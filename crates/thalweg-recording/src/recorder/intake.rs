//! From a reader to the queue, on the thread that received.

use std::sync::Arc;
use std::time::Instant;

use thalweg::types::{Guid, KeyHash, SequenceNumber};
use thalweg::{DataReader, Payload, PayloadKind, Raw, Sample, clock};

use super::{AboutTopic, Demand, Recording};
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
        let (now, wall) = (clock::now(), clock::wall_clock());
        for sample in &samples {
            let age = now.since(sample.info().received);
            let log_time = wall.to_unix().saturating_sub(age);
            self.offer(sample, u64::try_from(log_time.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn offer(&self, sample: &Sample<Raw>, log_time_ns: u64) {
        let info = sample.info();
        if info.sequence == SequenceNumber::UNKNOWN || !self.is_ours(info.writer) {
            return;
        }
        let payload = sample.payload();
        let held = match payload.len() {
            // A short sample would keep the whole buffer of its datagram.
            0..COPIED_MAX => Payload::from(&payload[..]),
            _ => payload.clone(),
        };
        let bytes = held.pinned_bytes();
        let content = if sample.is_valid() {
            QueuedContent::Value(held)
        } else {
            let disposed = info.instance_state == thalweg::InstanceState::NotAliveDisposed;
            QueuedContent::End { disposed, bytes: held, kind: sample.bytes_kind() }
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

    /// Whether the reader is the one for this writer: another one that asks for less may match it as well.
    fn is_ours(&self, writer: Guid) -> bool {
        self.shared.writers().get(&writer).is_none_or(|announced| announced.demand == self.demand)
    }
}

/// Bytes of samples that are copied rather than held in the buffer in which they came.
const COPIED_MAX: usize = 16 << 10;
