//! Batches: DATA_BATCH and what acknowledges it. RTI's extension of RTPS, spoken between participants that announce it.

use super::parameters::ParameterList;
use super::{Heartbeat, SequenceSet};
use crate::time::Timestamp;
use crate::types::{EntityId, SequenceNumber};

/// Several samples of one writer in one submessage.
#[derive(Clone, Debug, PartialEq)]
pub struct DataBatch<'a> {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the batch, at least 1; each writer counts its own.
    pub batch: SequenceNumber,
    /// Number of its first sample, at least 1.
    pub first: SequenceNumber,
    /// Number of its last sample.
    pub last: SequenceNumber,
    /// How many samples are listed.
    pub count: u32,
    /// Encapsulation header that all samples have in common.
    pub encapsulation: [u8; 4],
    /// Where the samples are described and lie.
    pub samples: BatchSamples<'a>,
}

/// The samples of a [`DataBatch`], read one by one from the datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchSamples<'a> {
    /// The SampleInfo list.
    pub(super) infos: &'a [u8],
    /// Whether its integers are little endian.
    pub(super) little_endian: bool,
    /// Where the first sample's bytes start in the datagram.
    pub(super) data_at: usize,
    /// Where the submessage ends.
    pub(super) end: usize,
    /// Number of the first sample.
    pub(super) first: SequenceNumber,
    pub(super) count: u32,
}

/// One sample of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchSample<'a> {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Source timestamp.
    pub timestamp: Option<Timestamp>,
    /// Key hash, status info and the like, if sent along.
    pub inline_qos: Option<ParameterList<'a>>,
    /// True when the bytes are only the key of an instance.
    pub key: bool,
    /// False for a number whose sample is not relevant any more.
    pub valid: bool,
    /// Its bytes in the whole datagram, without the encapsulation header.
    pub bytes: std::ops::Range<usize>,
}

/// What a writer of batches holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatBatch {
    /// Lowest batch that the writer still holds.
    pub first_batch: SequenceNumber,
    /// Highest batch that it ever sent, at least `first_batch - 1`.
    pub last_batch: SequenceNumber,
    /// The same as samples; whom it is for and what it asks.
    pub heartbeat: Heartbeat,
}

/// Which batches a reader has and misses: everything below the base has arrived, the members are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckNackBatch {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// Batches, not samples.
    pub state: SequenceSet,
    /// Grows with each new ACKNACK or ACKNACK_BATCH of this reader.
    pub count: u32,
    /// True when the writer need not answer with a heartbeat.
    pub is_final: bool,
}
