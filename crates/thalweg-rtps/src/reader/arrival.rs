//! Content of datagrams about the numbers of one writer, the same for every local reader that it concerns.

use std::sync::Arc;

use crate::history::{CachedSample, ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::time::{Instant, Timestamp};
use crate::types::{Guid, KeyHash, SampleIdentity, SequenceNumber};

/// A large sample but for its bytes, which come in fragments.
#[derive(Clone, Copy, Debug)]
pub struct FragmentedSample {
    /// Source timestamp, from INFO_TS.
    pub timestamp: Option<Timestamp>,
    /// Write, dispose or unregister.
    pub kind: ChangeKind,
    /// The instance on the wire, if it is told there.
    pub hint: Option<KeyHash>,
    /// The kind of the bytes.
    pub content_kind: PayloadKind,
    /// As [`CachedSample::coherent_set`].
    pub coherent_set: SequenceNumber,
    /// As [`CachedSample::related`].
    pub related: Option<SampleIdentity>,
}

/// A large sample of which all fragments have come.
#[derive(Clone, Debug)]
pub struct WholeSample {
    /// All but its instance, which is zero.
    pub sample: Received,
    /// As [`FragmentedSample::hint`].
    pub hint: Option<KeyHash>,
}

/// One sample as it came from the wire.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its number within its writer.
    pub sequence: SequenceNumber,
    /// Source timestamp, from INFO_TS or its batch.
    pub timestamp: Option<Timestamp>,
    /// Write, dispose or unregister.
    pub kind: ChangeKind,
    /// Its instance; zero on keyless topics.
    pub instance: KeyHash,
    /// Serialized sample or key with its encapsulation header; empty when there is none.
    pub content: Payload,
    /// The kind of the content.
    pub content_kind: PayloadKind,
    /// As [`CachedSample::coherent_set`].
    pub coherent_set: SequenceNumber,
    /// As [`CachedSample::related`].
    pub related: Option<Arc<SampleIdentity>>,
}

impl Received {
    pub(super) fn into_cached(self, writer: Guid, now: Instant, expires: Instant) -> CachedSample {
        CachedSample {
            payload: self.content,
            payload_kind: self.content_kind,
            valid: self.kind == ChangeKind::Write,
            writer,
            sequence: self.sequence,
            source_timestamp: self.timestamp,
            received: now,
            expires,
            instance: self.instance,
            coherent_set: self.coherent_set,
            related: self.related,
            change: self.kind,
        }
    }
}

/// Samples that one DATA_BATCH carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRange {
    /// Number of the batch.
    pub batch: SequenceNumber,
    /// Number of its first sample.
    pub first: SequenceNumber,
    /// Number of its last sample.
    pub last: SequenceNumber,
}

/// One piece of news, in the order of the datagrams.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// A sample.
    Sample(Received),
    /// A sample whose instance the driver is to tell, see [`Reader::poll_keys`](super::Reader::poll_keys).
    AwaitsKey {
        /// All but its instance.
        sample: Received,
        /// The instance on the wire, for the case that its key cannot be computed.
        hint: Option<KeyHash>,
    },
    /// A sample whose instance nothing tells: neither its bytes nor a key hash beside them.
    Unidentified(SequenceNumber),
    /// A sample that is here and is not handed over: a filter refuses it, it is directed to other readers, or it changes
    /// nothing but that a set ends.
    Unwanted(SequenceNumber),
    /// Numbers that are used up without a sample: all from `start` to below `end`.
    Irrelevant {
        /// The first of them.
        start: SequenceNumber,
        /// The first that is not meant.
        end: SequenceNumber,
    },
    /// All that a batch has to say was said before this.
    BatchEnd(BatchRange),
    /// The following arrivals came in another datagram.
    NextDatagram,
}
