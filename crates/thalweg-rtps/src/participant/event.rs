//! What a participant tells whoever drives it.

use crate::discovery::database::DiscoveryLimit;
use crate::payload::Payload;
use crate::qos::Mismatch;
use crate::types::{EntityId, Guid, GuidPrefix};

/// Why a remote participant is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// It said so.
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
    /// Which addresses of a participant user data go to was chosen, or chosen anew: whoever can measure the way there tells
    /// `Participant::set_path_mtu`. Of this participant itself too.
    AddressesChosen(GuidPrefix),
    /// A sample of a registered service came.
    ServiceData {
        /// Our reader of the service.
        reader: EntityId,
        /// The participant that wrote it.
        from: GuidPrefix,
        /// What it wrote, padded to four bytes: the wire keeps no other lengths.
        payload: Payload,
    },
    /// Participants of the household have something to look at: wake the drivers of those whose
    /// [`NewsFlag`](super::NewsFlag) is set.
    HousematesTold,
    /// A participant is gone, with all its endpoints.
    ParticipantLost {
        /// Which.
        prefix: GuidPrefix,
        /// Why.
        reason: LostReason,
    },
    /// A limit of discovery keeps out a participant or endpoints of one.
    OverLimit {
        /// The participant.
        participant: GuidPrefix,
        /// Which limit.
        limit: DiscoveryLimit,
        /// How many announcements of this kind were refused so far.
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
    /// Endpoints of one topic do not match for another reason than QoS: type, key or partition.
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
    /// Every reader has acknowledged everything that the local writer wrote.
    Acknowledged {
        /// The local writer.
        writer: EntityId,
    },
    /// A reader that did not acknowledge is no longer waited for, so that it does not hold up the others.
    ReaderGivenUp {
        /// The local writer.
        writer: EntityId,
        /// The reader.
        reader: Guid,
    },
}
