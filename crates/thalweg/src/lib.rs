//! Thalweg: data-distribution middleware on the OMG wire (RTPS 2.5, DDS 1.4, DDS-XTypes 1.3).
//!
//! Publish and subscribe between processes and hosts, with other DDS implementations too:
//!
//! ```no_run
//! use thalweg::qos::{ReaderQos, WriterQos};
//! use thalweg::{DomainParticipant, Topic};
//!
//! #[derive(Topic, Debug)]
//! struct Pose {
//!     x: f64,
//!     y: f64,
//! }
//!
//! # fn main() -> Result<(), thalweg::Error> {
//! let participant = DomainParticipant::new(0)?;
//! let topic = participant.create_topic::<Pose>("pose");
//! let writer = participant.create_writer(&topic, WriterQos::default())?;
//! writer.write(&Pose { x: 1.0, y: 2.0 })?;
//! # Ok(())
//! # }
//! ```
//!
//! Start with the [guide], or with [`DomainParticipant`]; it makes [`Topic`](struct@Topic)s, [`DataWriter`]s and [`DataReader`]s.
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

pub mod conditions;
pub mod configuration;
pub mod discovery;
mod error;
pub mod explain;
pub mod figures;
pub mod filter;
pub mod flow_controller;
pub mod guide;
#[cfg(all(loom, test))]
mod models;
mod participant;
mod publication;
mod runtime;
mod scratch;
pub mod segment;
pub mod status;
mod store;
mod subscription;
pub mod surroundings;
mod sync;
mod topic;
pub mod trace;
mod type_store;
mod until;

/// Quality of service: the policies of DDS 1.4 §2.2.3, and why two endpoints do or do not match.
pub mod qos {
    pub use thalweg_rtps::qos::{
        AUTO_FLUSH_DELAY, AccessScope, AttachedData, BACKGROUND, Destination, DestinationOrder, Durability,
        DurabilityService, History, LEASE_MIN, Limits, Liveliness, LivelinessKind, MAX_BLOCKING_TIME, MatchResult,
        Method, Mismatch, OCTETS_MAX, Offer, Ownership, PARTITION_NAME_MAX_BYTES, PARTITIONS_MAX, PolicyId,
        Presentation, QosError, QosErrorKind, READER_PATIENCE_MIN, RESOURCE_LIMIT_MAX, ReaderLifecycle, ReaderQos,
        ReaderTiming, Reliability, Representation, Request, ResourceLimits, TrafficClass, Transmission,
        TypeConsistency, WriterOwnership, WriterQos, WriterTiming, match_endpoints, name_matches, partitions_match,
    };
}

/// Counters of sockets, participants, writers and readers.
pub mod counters {
    pub use thalweg_rtps::participant::ParticipantCounters;
    pub use thalweg_rtps::reader::ReaderCounters;
    pub use thalweg_rtps::writer::WriterCounters;
    pub use thalweg_transport::udp::{ReceiveCounts, SendCounts};
}

/// What can be read in datagrams that were caught on their way, by programs that watch or stand in for a network.
pub mod capture {
    pub use thalweg_rtps::wire::count_samples;
}

/// Names and times that samples carry.
pub mod types {
    pub use thalweg_rtps::time::{INFINITE, Instant, Timestamp};
    pub use thalweg_rtps::types::{
        EntityId, Guid, GuidPrefix, KeyHash, Keyed, Locator, ProtocolVersion, SampleIdentity, SequenceNumber, VendorId,
    };
}

pub use configuration::Configuration;
pub use error::{Error, ErrorKind};
pub use flow_controller::FlowController;
pub use participant::{DomainParticipant, DomainParticipantBuilder};
pub use publication::{DataWriter, DataWriterBuilder, Loan, Publisher, PublisherQos, WriteManyError};
pub use runtime::Delivery;
pub use subscription::{DataReader, DataReaderBuilder, Sample, Samples, Subscriber, SubscriberQos};
pub use thalweg_cdr as cdr;
pub use thalweg_cdr::Topic as TopicType;
pub use thalweg_derive::Topic;
pub use thalweg_rtps::history::{
    InstanceState, InstanceStates, PayloadKind, ReadFilter, SampleInfo, SampleState, ViewState,
};
pub use thalweg_rtps::participant::{KeptHistory, KeyOf};
pub use thalweg_rtps::payload::Payload;
pub use thalweg_rtps::writer::WriterOptions;
pub use thalweg_transport::udp::Notice;
pub use thalweg_types::Type;
pub use topic::{Raw, Topic};

/// The host's clocks, on the scale of [`SampleInfo::received`].
pub mod clock {
    pub use thalweg_transport::clock::{now, wall_clock};
}

/// The programs in the README and the guide are compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guide.md")]
struct Documents;
