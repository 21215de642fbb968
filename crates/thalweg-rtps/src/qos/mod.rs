//! Quality of service: offered and requested policies, the check of their support, and the reasons of matches and mismatches
//! (DDS 1.4 §2.2.3).

mod change;
mod check;
mod durability_service;
mod matching;
mod partition;
mod policy;
mod setters;
mod transmission;
mod type_consistency;

use std::time::Duration;

pub use check::{
    LEASE_MIN, OCTETS_MAX, PARTITION_NAME_MAX_BYTES, PARTITIONS_MAX, QosError, QosErrorKind, RESOURCE_LIMIT_MAX,
    check_participant_data,
};
pub use durability_service::DurabilityService;
pub(crate) use matching::told_name;
pub use matching::{MatchResult, Mismatch, Offer, Request, match_endpoints};
pub use partition::{name_matches, partitions_match};
pub use policy::{
    AccessScope, AttachedData, DestinationOrder, Durability, History, Liveliness, LivelinessKind, Ownership, PolicyId,
    Presentation, Reliability, Representation, ResourceLimits, WriterOwnership,
};
pub use thalweg_base::traffic_class::TrafficClass;
pub use transmission::{AUTO_FLUSH_DELAY, BACKGROUND, Destination, Limits, Method, Transmission};
pub use type_consistency::TypeConsistency;

use crate::time::INFINITE;

/// The QoS that a writer offers. The default is DDS's: RELIABLE, KEEP_LAST 1, VOLATILE, XCDR1, everything else off.
///
/// Versions add policies: set them by the methods, or end a literal with `..WriterQos::default()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterQos {
    /// RELIABILITY: whether lost samples are sent again, and the longest wait of a write for room.
    pub reliability: Reliability,
    /// Whether late readers get samples written before they came.
    pub durability: Durability,
    /// DURABILITY_SERVICE: what is kept for late readers of a TRANSIENT or PERSISTENT writer; without effect for others.
    pub durability_service: DurabilityService,
    /// HISTORY: number of samples of an instance kept for repairs and late readers.
    pub history: History,
    /// RESOURCE_LIMITS: upper bounds on kept samples.
    pub resource_limits: ResourceLimits,
    /// The periods that the writer promises.
    pub timing: WriterTiming,
    /// LIVELINESS: the way in which readers learn that the writer is gone.
    pub liveliness: Liveliness,
    /// Whether readers take an instance from several writers or from the strongest only.
    pub ownership: WriterOwnership,
    /// Which clock orders samples of several writers.
    pub destination_order: DestinationOrder,
    /// TRANSPORT_PRIORITY: whose datagrams go first, here and in the network, higher first. 0 to 63 is their DSCP, a negative
    /// number means less than best effort; see [`TrafficClass::of`]. Default 0.
    pub transport_priority: i32,
    /// DATA_REPRESENTATION: encoding of samples; the first entry counts; empty means XCDR1.
    pub data_representation: Vec<Representation>,
    /// WRITER_DATA_LIFECYCLE.autodispose_unregistered_instances: whether unregistering an instance also disposes it. Instances of a
    /// writer that is deleted are unregistered only, as are those of one that dies. Default true.
    pub autodispose: bool,
    /// PRESENTATION: grouping of changes of several instances.
    pub presentation: Presentation,
    /// Names, with wildcards, of which one must fit one of the reader's; empty means the one name "".
    pub partition: Vec<String>,
    /// Bytes that the application announces to its peers.
    pub attached: AttachedData,
    /// By what way samples travel; neither announced nor matched.
    pub transmission: Transmission,
    /// Time for which a reliable reader may owe acknowledgements without any progress before the writer gives it up: its samples are no
    /// longer kept for it, and the writer's status, `wait_for_acknowledgments` and the reader's count of lost samples tell. Default
    /// infinite: a reader is owed its samples until it is unmatched or its participant's lease ends (DDS 1.4 §2.2.3.14). At least
    /// [`READER_PATIENCE_MIN`]; neither announced nor matched.
    pub reader_patience: Duration,
}

/// The shortest [`WriterQos::reader_patience`]: a reader needs time to be asked and to answer.
pub const READER_PATIENCE_MIN: Duration = Duration::from_millis(100);

/// The periods that a writer promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterTiming {
    /// Every instance is written at least once in this period; OFFERED_DEADLINE_MISSED tells otherwise. Default infinite.
    pub deadline: Duration,
    /// LATENCY_BUDGET: acceptable delay of a sample. Where all endpoints of a participant have one, and no writer is reliable, small samples that arrive may wait for
    /// others, half of the least of them, 10 ms at most. Default 0.
    pub latency_budget: Duration,
    /// LIFESPAN: lifetime of a sample, from its source timestamp at readers and from its write at the writer, where it ends without
    /// being sent or repeated any more. Not zero. Default infinite.
    pub lifespan: Duration,
}

/// The QoS that a reader requests. The default is DDS's (BEST_EFFORT, KEEP_LAST 1, VOLATILE), except that both XCDR1 and XCDR2 are
/// taken.
///
/// Versions add policies: set them by the methods, or end a literal with `..ReaderQos::default()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderQos {
    /// RELIABILITY: whether lost samples are requested again.
    pub reliability: Reliability,
    /// DURABILITY: whether the reader gets samples written before it matched.
    pub durability: Durability,
    /// HISTORY: number of samples of an instance that wait for the application.
    pub history: History,
    /// RESOURCE_LIMITS: upper bounds on kept samples.
    pub resource_limits: ResourceLimits,
    /// The periods that the reader asks for.
    pub timing: ReaderTiming,
    /// LIVELINESS: time after which the reader learns that a writer is gone.
    pub liveliness: Liveliness,
    /// Whether an instance comes from several writers or from the strongest only.
    pub ownership: Ownership,
    /// Which clock orders samples of several writers.
    pub destination_order: DestinationOrder,
    /// The encodings that the reader decodes; empty means XCDR1. Default XCDR1 and XCDR2.
    pub data_representation: Vec<Representation>,
    /// TYPE_CONSISTENCY_ENFORCEMENT: how far a writer's type may differ from the reader's.
    pub type_consistency: TypeConsistency,
    /// PRESENTATION: grouping of changes of several instances.
    pub presentation: Presentation,
    /// Names, with wildcards, of which one must fit one of the writer's; empty means the one name "".
    pub partition: Vec<String>,
    /// Bytes that the application announces to its peers.
    pub attached: AttachedData,
    /// READER_DATA_LIFECYCLE: how long the reader keeps what nobody writes any more; neither announced nor matched.
    pub lifecycle: ReaderLifecycle,
}

/// READER_DATA_LIFECYCLE: when a reader lets go of instances that are not alive, taken or not (DDS 1.4 §2.2.3.22). Default: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderLifecycle {
    /// Time from an instance's NOT_ALIVE_NO_WRITERS until its samples and all that is known of it go. Default infinite.
    pub autopurge_nowriter_samples_delay: Duration,
    /// Time from an instance's dispose until its samples go. Default infinite.
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for ReaderLifecycle {
    fn default() -> ReaderLifecycle {
        ReaderLifecycle { autopurge_nowriter_samples_delay: INFINITE, autopurge_disposed_samples_delay: INFINITE }
    }
}

/// The periods that a reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderTiming {
    /// A sample of every instance is wanted at least once in this period; REQUESTED_DEADLINE_MISSED tells otherwise. Default infinite.
    pub deadline: Duration,
    /// LATENCY_BUDGET: acceptable delay of a sample; see [`WriterTiming::latency_budget`]. Default 0.
    pub latency_budget: Duration,
    /// TIME_BASED_FILTER: at most one sample of an instance is wanted in this period, by the reader's clock. A reliable reader gets the
    /// newest of those that came meanwhile at its end. At most the deadline. Default 0: all are wanted.
    pub minimum_separation: Duration,
}

impl Default for WriterTiming {
    fn default() -> WriterTiming {
        WriterTiming { deadline: INFINITE, latency_budget: Duration::ZERO, lifespan: INFINITE }
    }
}

impl Default for ReaderTiming {
    fn default() -> ReaderTiming {
        ReaderTiming { deadline: INFINITE, latency_budget: Duration::ZERO, minimum_separation: Duration::ZERO }
    }
}

impl Default for WriterQos {
    fn default() -> WriterQos {
        WriterQos {
            reliability: Reliability::Reliable { max_blocking_time: MAX_BLOCKING_TIME },
            durability: Durability::Volatile,
            durability_service: DurabilityService::default(),
            history: History::KeepLast(1),
            resource_limits: ResourceLimits::default(),
            timing: WriterTiming::default(),
            liveliness: Liveliness::default(),
            ownership: WriterOwnership::Shared,
            destination_order: DestinationOrder::ByReception,
            transport_priority: 0,
            data_representation: Vec::new(),
            autodispose: true,
            presentation: Presentation::default(),
            partition: Vec::new(),
            attached: AttachedData::default(),
            transmission: Transmission::default(),
            reader_patience: INFINITE,
        }
    }
}

impl Default for ReaderQos {
    fn default() -> ReaderQos {
        ReaderQos {
            reliability: Reliability::BestEffort,
            durability: Durability::Volatile,
            history: History::KeepLast(1),
            resource_limits: ResourceLimits::default(),
            timing: ReaderTiming::default(),
            liveliness: Liveliness::default(),
            ownership: Ownership::Shared,
            destination_order: DestinationOrder::ByReception,
            data_representation: vec![Representation::Xcdr1, Representation::Xcdr2],
            type_consistency: TypeConsistency::default(),
            presentation: Presentation::default(),
            partition: Vec::new(),
            attached: AttachedData::default(),
            lifecycle: ReaderLifecycle::default(),
        }
    }
}

impl WriterQos {
    /// Whether the history outlives the writer: TRANSIENT or PERSISTENT.
    pub fn outlives_writer(&self) -> bool {
        self.durability > Durability::TransientLocal
    }

    /// The encoding that the writer uses: the first one of its list.
    pub fn representation(&self) -> Representation {
        self.data_representation.first().copied().unwrap_or(Representation::Xcdr1)
    }
}

impl ReaderQos {
    /// True when the reader decodes this encoding.
    pub fn accepts(&self, representation: Representation) -> bool {
        match self.data_representation.as_slice() {
            [] => representation == Representation::Xcdr1,
            list => list.contains(&representation),
        }
    }
}

/// Default of the longest wait of a write for room (DDS 1.4 §2.2.3).
pub const MAX_BLOCKING_TIME: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
