//! A received sample on its way in, and with what the application learns about it on its way out.

use std::sync::Arc;

use super::{ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::time::{Instant, Timestamp};
use crate::types::{Guid, KeyHash, SampleIdentity, SequenceNumber};

/// One change as the reader hands it to its cache.
#[derive(Clone, Debug)]
pub struct CachedSample {
    /// Serialized sample or key with its encapsulation header; empty when the change carried neither.
    pub payload: Payload,
    /// The kind of the payload.
    pub payload_kind: PayloadKind,
    /// False when there is no value to give to the application: dispose, unregister and lost-writer notices.
    pub valid: bool,
    /// Its writer.
    pub writer: Guid,
    /// Its number within that writer.
    pub sequence: SequenceNumber,
    /// The writer's time stamp, if it sent one.
    pub source_timestamp: Option<Timestamp>,
    /// When it arrived here.
    pub received: Instant,
    /// When it goes unless it was taken; [`Instant::NEVER`] without a LIFESPAN.
    pub expires: Instant,
    /// Its instance; ignored on keyless topics.
    pub instance: KeyHash,
    /// The coherent set that it is part of: the number of the set's first sample. Zero for none, and
    /// [`SequenceNumber::UNKNOWN`] for the end of a set, which is no sample.
    pub coherent_set: SequenceNumber,
    /// The sample that it is related to, as a reply is to its request.
    pub related: Option<Arc<SampleIdentity>>,
    /// Its effect on the instance.
    pub change: ChangeKind,
}

/// Whether the application has seen a sample before (DDS 1.4 §2.2.2.5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleState {
    /// Returned by an earlier `read`.
    Read,
    /// Not returned yet.
    NotRead,
}

/// Whether the application has seen the instance's present life before (DDS 1.4 §2.2.2.5.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewState {
    /// First samples of the instance, or the first since it was reborn.
    New,
    /// Samples of this life were returned before.
    NotNew,
}

/// Whether the instance is alive, and if not, the reason (DDS 1.4 §2.2.2.5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Has a value and at least one live writer.
    Alive,
    /// Was disposed by a writer.
    NotAliveDisposed,
    /// Every writer has unregistered it or is gone.
    NotAliveNoWriters,
}

/// A set of instance states to select by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceStates(u8);

impl InstanceStates {
    /// Every state.
    pub const ANY: InstanceStates = InstanceStates(7);
    /// Only live instances.
    pub const ALIVE: InstanceStates = InstanceStates(1);
    /// Disposed or without writers.
    pub const NOT_ALIVE: InstanceStates = InstanceStates(6);
    /// Only disposed instances.
    pub const NOT_ALIVE_DISPOSED: InstanceStates = InstanceStates(2);
    /// Only instances without writers.
    pub const NOT_ALIVE_NO_WRITERS: InstanceStates = InstanceStates(4);

    /// Whether `state` is one of them.
    pub fn contains(self, state: InstanceState) -> bool {
        let bit = match state {
            InstanceState::Alive => InstanceStates::ALIVE,
            InstanceState::NotAliveDisposed => InstanceStates::NOT_ALIVE_DISPOSED,
            InstanceState::NotAliveNoWriters => InstanceStates::NOT_ALIVE_NO_WRITERS,
        };
        self.0 & bit.0 != 0
    }
}

impl std::ops::BitOr for InstanceStates {
    type Output = InstanceStates;

    fn bitor(self, other: InstanceStates) -> InstanceStates {
        InstanceStates(self.0 | other.0)
    }
}

/// Which samples `read` and `take` return. The default selects all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFilter {
    /// Only samples in this state; `None`: either.
    pub sample_state: Option<SampleState>,
    /// Only samples of instances in this state; `None`: either.
    pub view_state: Option<ViewState>,
    /// Only samples of instances in one of these states.
    pub instance_states: InstanceStates,
    /// Only samples of this instance; `None`: of all.
    pub instance: Option<KeyHash>,
}

impl ReadFilter {
    /// Selects every sample.
    pub const ALL: ReadFilter =
        ReadFilter { sample_state: None, view_state: None, instance_states: InstanceStates::ANY, instance: None };

    /// Selects every sample of one instance.
    pub const fn instance(instance: KeyHash) -> ReadFilter {
        ReadFilter { instance: Some(instance), ..ReadFilter::ALL }
    }
}

impl Default for ReadFilter {
    fn default() -> ReadFilter {
        ReadFilter::ALL
    }
}

/// One sample as the application gets it.
#[derive(Clone, Debug)]
pub struct TakenSample {
    /// The serialized sample. When `info.valid` is false, the known bytes of the instance's key, or empty; its own, if it has any, where
    /// every end is told.
    pub payload: Payload,
    /// The kind of the payload: an invalid sample's key may come from a whole sample that was received earlier.
    pub payload_kind: PayloadKind,
    /// Its effect on the instance when it was received; [`ChangeKind::Unregister`] for a lost-writer notice.
    pub change: ChangeKind,
    /// The sample info.
    pub info: SampleInfo,
    /// The sample that it is related to, as a reply is to its request.
    pub related: Option<Arc<SampleIdentity>>,
}

/// The information about a sample (DDS 1.4 §2.2.2.5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampleInfo {
    /// Whether this very sample was returned before.
    pub sample_state: SampleState,
    /// Whether the instance's present life was seen before this call.
    pub view_state: ViewState,
    /// State of the instance now, not when the sample was written.
    pub instance_state: InstanceState,
    /// Number of times that the instance had become alive after a dispose when the sample was received.
    pub disposed_generation_count: u32,
    /// Number of times that it had become alive after having no writers.
    pub no_writers_generation_count: u32,
    /// Number of samples of the same instance that follow in the same result.
    pub sample_rank: u32,
    /// Rebirths between this sample and the newest of its instance in the same result.
    pub generation_rank: u32,
    /// Rebirths between this sample and the newest that was received.
    pub absolute_generation_rank: u32,
    /// The writer's time stamp, if it sent one.
    pub source_timestamp: Option<Timestamp>,
    /// When the sample arrived.
    pub received: Instant,
    /// Its instance.
    pub instance: KeyHash,
    /// Its writer; for a lost-writer notice, the lost writer.
    pub writer: Guid,
    /// Number within that writer; [`SequenceNumber::UNKNOWN`] for a lost-writer notice.
    pub sequence: SequenceNumber,
    /// Whether there is a value.
    pub valid: bool,
}
