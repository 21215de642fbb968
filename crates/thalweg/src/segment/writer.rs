//! The sending half: splits payloads into segments.

use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use thalweg_cdr as cdr;
use thalweg_rtps::payload::{Payload, PayloadPool};
use thalweg_rtps::types::KeyHash;

use super::wire::{HEAD_BYTES, Head, PART_BYTES_MAX, Segment, SegmentType, encode};
use crate::runtime::on_io_thread;
use crate::{DataWriter, Error, ErrorKind, TopicType};

/// Splits payloads into samples of at most a given size and writes them one by one.
///
/// The writer's QoS decides how they travel: RELIABLE with KEEP_ALL loses nothing and lets each segment wait for room in the history;
/// [`Method::Asynchronous`](crate::qos::Method::Asynchronous) sends them in the background.
#[derive(Debug)]
pub struct SegmentWriter<T = Segment> {
    writer: DataWriter<T>,
    segment_bytes: usize,
    source: [u8; 16],
    /// Held for a whole payload: the segments of two must not mix.
    sending: Mutex<Sending>,
}

#[derive(Debug)]
struct Sending {
    next_transfer: u64,
    pool: PayloadPool,
    /// Buffer in which samples are serialized before they are split.
    serialized: Vec<u8>,
}

/// Bytes of recycled segments in each size class: twice the bytes under way in an 8 MiB window.
const POOL_BYTES: usize = 16 << 20;

impl<T: SegmentType> SegmentWriter<T> {
    /// Splits into segments of `segment_bytes` each; the last one of a payload may be smaller. 256 KiB to 1 MiB is fastest between
    /// hosts that do nothing else, 32 KiB disturbs others less.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when `segment_bytes` is 0 or larger than a sample can be, about 4 GiB.
    pub fn new(writer: DataWriter<T>, segment_bytes: usize) -> Result<SegmentWriter<T>, Error> {
        if segment_bytes == 0 || segment_bytes > PART_BYTES_MAX {
            let cause = format!("failed: segments of {segment_bytes} bytes");
            let error =
                Error::new(ErrorKind::BadParameter, "create_segment_writer", cause).on_topic(writer.topic_name());
            return Err(error.advise("use at least 1 byte and less than 4 GiB"));
        }
        let source = writer.guid().to_bytes();
        // A history that outlives its writers has the same source in the life of the next one.
        let next_transfer = writer.cell().writer().lock().last().0.unsigned_abs() + 1;
        let sending = Sending { next_transfer, pool: PayloadPool::new(POOL_BYTES), serialized: Vec::new() };
        Ok(SegmentWriter { writer, segment_bytes, source, sending: Mutex::new(sending) })
    }

    /// Writes a payload and returns its number, counted from 1, or from beyond the numbers that its [`DataWriter`] has used, in earlier lives
    /// of its history too. Several threads take turns, a payload each.
    ///
    /// # Errors
    /// As [`DataWriter::write`], for the first segment that could not be written. Readers then drop the payload as soon as the next
    /// one comes. [`ErrorKind::BadParameter`] for a payload of more than 2^32 segments.
    pub fn write(&self, payload: &[u8]) -> Result<u64, Error> {
        let mut sending = self.turn()?;
        self.send(&mut sending, payload)
    }

    /// Serializes a value, as a topic of its type would carry it, and writes that as a payload.
    ///
    /// # Errors
    /// As [`SegmentWriter::write`]; [`ErrorKind::BadParameter`] when the value cannot be encoded.
    pub fn write_sample<S: TopicType>(&self, sample: &S) -> Result<u64, Error> {
        let mut sending = self.turn()?;
        let mut serialized = std::mem::take(&mut sending.serialized);
        serialized.clear();
        let encoded = cdr::encode(sample, cdr::Representation::Xcdr2, &mut serialized).map_err(|error| {
            Error::new(ErrorKind::BadParameter, "write", format!("cannot encode the sample: {error}"))
                .on_topic(self.writer.topic_name())
                .because(error)
        });
        let sent = encoded.and_then(|()| self.send(&mut sending, &serialized));
        sending.serialized = serialized;
        sent
    }

    /// Waits for the payloads of other threads, but not where their acknowledgements are received.
    fn turn(&self) -> Result<MutexGuard<'_, Sending>, Error> {
        if !on_io_thread() {
            return Ok(self.sending.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.sending.try_lock() {
            Ok(sending) => Ok(sending),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let cause = "found another thread writing in a listener that runs inline on the I/O thread, where it cannot wait";
                let error = Error::new(ErrorKind::Timeout, "write", cause).on_topic(self.writer.topic_name());
                Err(error.advise("use Delivery::Thread for listeners that write"))
            }
        }
    }

    fn send(&self, sending: &mut Sending, payload: &[u8]) -> Result<u64, Error> {
        let segments = payload.len().div_ceil(self.segment_bytes).max(1);
        let Ok(count) = u32::try_from(segments) else {
            let cause = format!("failed: {} bytes are {segments} segments", payload.len());
            let error = Error::new(ErrorKind::BadParameter, "write", cause).on_topic(self.writer.topic_name());
            return Err(error.advise("use larger segments"));
        };
        let transfer = sending.next_transfer;
        let total_bytes = payload.len() as u64;
        let representation = self.writer.qos().representation();
        let instance = T::KEYED.then_some(KeyHash(self.source));
        let mut rest = payload;
        for index in 0..count {
            let (part, left) = rest.split_at(self.segment_bytes.min(rest.len()));
            rest = left;
            let head = Head { source: self.source, transfer, index, count, total_bytes };
            let fill = |buffer: &mut Vec<u8>| -> Result<(), Infallible> {
                encode(&head, part, representation, buffer);
                Ok(())
            };
            let segment: Payload = match sending.pool.fill(HEAD_BYTES + part.len() + 3, fill) {
                Ok(segment) => segment,
                Err(never) => match never {},
            };
            self.writer.write_payload(&segment, instance, None)?;
            // No sooner: the numbers of a later life begin behind the samples of this one.
            sending.next_transfer = transfer + 1;
        }
        Ok(transfer)
    }

    /// The name that readers know this sender by: its writer's GUID.
    pub fn source(&self) -> [u8; 16] {
        self.source
    }

    /// Bytes of every segment but the last of a payload.
    pub fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// The writer, for matching, acknowledgements and counters; samples that are written to it directly are no segments of a payload.
    pub fn writer(&self) -> &DataWriter<T> {
        &self.writer
    }
}
