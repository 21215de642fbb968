//! Events that a participant reports to its driver.

use crate::discovery::database::DiscoveryLimit;
use crate::discovery::endpoint_data::ContentFilter;
use crate::payload::Payload;
use crate::qos::Mismatch;
use crate::types::{EntityId, Guid, GuidPrefix};

/// Why a remote participant is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// It said farewell, or has begun anew under the same GUID.
    Left,
    /// Nothing was heard of it for its lease duration.
    LeaseExpired,
    /// The application ignores it.
    Ignored,
    /// Its communication groups, or ours, have changed and have none in common any more.
    OtherGroups,
}

/// News for the application, in the order in which they happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A participant was discovered.
    ParticipantDiscovered(GuidPrefix),
    /// The addresses for user data of a participant, which may be this one itself, were chosen or chosen anew. A driver that can
    /// measure the path to them calls `Participant::set_path_mtu`.
    AddressesChosen(GuidPrefix),
    /// A sample of a registered service came.
    ServiceData {
        /// Our reader of the service.
        reader: EntityId,
        /// The participant that wrote it.
        from: GuidPrefix,
        /// The payload, padded to a multiple of four bytes, since the wire keeps no other lengths.
        payload: Payload,
    },
    /// Other participants of the household have news: wake the drivers of those whose [`NewsFlag`](super::NewsFlag) is set.
    HousematesTold,
    /// A participant is gone, with all its endpoints.
    ParticipantLost {
        /// The participant.
        prefix: GuidPrefix,
        /// The reason.
        reason: LostReason,
    },
    /// A limit of discovery keeps out a participant or endpoints of one.
    OverLimit {
        /// The participant.
        participant: GuidPrefix,
        /// The limit.
        limit: DiscoveryLimit,
        /// Announcements of this kind that were refused so far.
        refused: u64,
    },
    /// A local reader of [`KeySource::Driver`](super::KeySource::Driver) has samples whose key is to be computed.
    KeysDue {
        /// The local reader.
        reader: EntityId,
    },
    /// A local writer has one more reader.
    PublicationMatched {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
    },
    /// A local writer has one reader less.
    PublicationUnmatched {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
    },
    /// A local reader has one more writer.
    SubscriptionMatched {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// A local reader has one writer less.
    SubscriptionUnmatched {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// A writer that a local reader is matched with has not given a sign of life for its lease (LIVELINESS).
    WriterNotAlive {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// A writer that was not alive is again.
    WriterAlive {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// The application has not asserted the liveliness of a local writer in time: see `Writer::liveliness_lost`.
    LivelinessLost {
        /// The local writer.
        writer: EntityId,
    },
    /// The local writer has not written some instance in time: see `Writer::deadline_missed`.
    OfferedDeadlineMissed {
        /// The local writer.
        writer: EntityId,
    },
    /// The local reader has got no sample of some instance in time: see `Reader::deadline_missed`.
    RequestedDeadlineMissed {
        /// The local reader.
        reader: EntityId,
    },
    /// A reader that is matched with a local writer announces a content filter, another one than before, or none any more.
    ReaderFilter {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
        /// Its filter.
        filter: Option<Box<ContentFilter>>,
    },
    /// A reader of the same topic requests more than the local writer offers.
    OfferedIncompatibleQos {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
        /// Every policy that fails.
        mismatches: Vec<Mismatch>,
    },
    /// A writer of the same topic offers less than the local reader requests.
    RequestedIncompatibleQos {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
        /// Every policy that fails.
        mismatches: Vec<Mismatch>,
    },
    /// Endpoints of one topic do not match, since their types have different names, do not fit, or only one has a key.
    InconsistentTopic {
        /// The local endpoint.
        local: EntityId,
        /// The other endpoint.
        remote: Guid,
        /// The reason in a sentence.
        why: String,
    },
    /// Endpoints of one topic do not match for another reason than QoS and types: no partition fits.
    NotMatched {
        /// The local endpoint.
        local: EntityId,
        /// The other endpoint.
        remote: Guid,
        /// The reason in a sentence.
        why: String,
    },
    /// The local reader has something to take.
    DataAvailable {
        /// The local reader.
        reader: EntityId,
    },
    /// The local reader has lost samples: see `Reader::losses`.
    SampleLost {
        /// The local reader.
        reader: EntityId,
    },
    /// The local reader had no room for a sample: see `Reader::rejections`.
    SampleRejected {
        /// The local reader.
        reader: EntityId,
    },
    /// A write that was refused for want of room may be tried again.
    SpaceAvailable {
        /// The local writer.
        writer: EntityId,
    },
    /// Every reader has acknowledged everything that the local writer wrote, or every one that was not given up as much as
    /// [`Writer::await_acknowledgement`](crate::writer::Writer::await_acknowledgement) was asked for.
    Acknowledged {
        /// The local writer.
        writer: EntityId,
    },
    /// The local writer no longer waits for a reader that made no progress for its `reader_patience`.
    ReaderGivenUp {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
    },
}
