//! The content of submessages (RTPS 2.5 §9.4.5).

use std::ops::Range;

use super::batch::{AckNackBatch, DataBatch, HeartbeatBatch};
use super::cursor::Cursor;
use super::parameters::ParameterList;
use super::{FragmentSet, SequenceSet, WireError};
use crate::time::Timestamp;
use crate::types::{EntityId, GuidPrefix, Locator, ProtocolVersion, SequenceNumber, VendorId};

/// The sender of a message (RTPS 2.5 §9.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version that the sender speaks; the major number is always 2 after parsing.
    pub version: ProtocolVersion,
    /// Vendor of the sender: decides what vendor-specific ids mean.
    pub vendor: VendorId,
    /// Participant that all submessages come from until an INFO_SRC says otherwise.
    pub prefix: GuidPrefix,
}

/// One element of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Submessage<'a> {
    /// A sample, or the end of an instance.
    Data(Data<'a>),
    /// Parts of a large sample.
    DataFrag(DataFrag<'a>),
    /// The range of samples that a writer holds.
    Heartbeat(Heartbeat),
    /// As [`Submessage::Heartbeat`], of a writer that tells of its publisher as well.
    GroupHeartbeat(Heartbeat, GroupInfo),
    /// Number of fragments of a sample that a writer can send so far.
    HeartbeatFrag(HeartbeatFrag),
    /// Samples that a reader has and misses.
    AckNack(AckNack),
    /// Which fragments of a sample a reader misses.
    NackFrag(NackFrag),
    /// Samples that a reader goes without.
    Lost(Lost),
    /// Fragments of a sample that a reader goes without.
    LostFrag(LostFrag),
    /// What a reader answers.
    Echo(Echo),
    /// Numbers that will never come.
    Gap(Gap),
    /// Several samples of one writer.
    DataBatch(DataBatch<'a>),
    /// Batches and samples that a writer of batches holds.
    HeartbeatBatch(HeartbeatBatch),
    /// Which batches a reader has and misses.
    AckNackBatch(AckNackBatch),
    /// Source time of the following samples; `None` takes it back.
    InfoTimestamp(Option<Timestamp>),
    /// The one participant that the following submessages are for; [`GuidPrefix::UNKNOWN`] means every one again.
    InfoDestination(GuidPrefix),
    /// The following submessages come from another participant.
    InfoSource {
        /// Version that the origin speaks.
        version: ProtocolVersion,
        /// Vendor of the origin.
        vendor: VendorId,
        /// Participant of the origin.
        prefix: GuidPrefix,
    },
    /// Locators for answers to the following submessages.
    InfoReply {
        /// Unicast addresses.
        unicast: LocatorList<'a>,
        /// Multicast addresses, when the sender named any.
        multicast: Option<LocatorList<'a>>,
    },
    /// Locators for answers, in the short form for IPv4.
    InfoReplyIp4 {
        /// Unicast address.
        unicast: Locator,
        /// Multicast address, when the sender named one.
        multicast: Option<Locator>,
    },
    /// Nothing.
    Pad,
    /// A submessage of a vendor, of security or of a later version: skipped.
    Unknown {
        /// Its submessage id.
        id: u8,
    },
}

/// A sample, or the end of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Data<'a> {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// Key hash, status info and the like, if sent along.
    pub inline_qos: Option<ParameterList<'a>>,
    /// The serialized payload.
    pub content: Content,
}

/// Place of the serialized payload of a DATA: byte ranges of the whole datagram, so that the receiver can slice its
/// buffer. They include the encapsulation header (4 bytes) and up to 3 bytes of padding at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A whole sample.
    Data(Range<usize>),
    /// Only the key of an instance.
    Key(Range<usize>),
    /// No payload; the inline QoS tells what happened. Without inline QoS the number carries no news at all.
    None,
}

/// Neighbouring fragments of one large sample.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFrag<'a> {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// Number of the first fragment in here; fragments count from 1.
    pub first_fragment: u32,
    /// Number of fragments, at least 1, all of them within the sample.
    pub fragments: u16,
    /// Bytes of every fragment but the sample's last, at least 1.
    pub fragment_size: u16,
    /// Bytes of the whole serialized payload with its encapsulation header, at least 1.
    pub sample_size: u32,
    /// Key hash, status info and the like, if sent along.
    pub inline_qos: Option<ParameterList<'a>>,
    /// True when the sample is only the key of an instance.
    pub key: bool,
    /// The fragments' bytes in the whole datagram: exactly as many as the numbers above promise, without padding.
    pub bytes: Range<usize>,
}

impl DataFrag<'_> {
    /// Number of fragments that the whole sample has.
    pub fn fragments_total(&self) -> u32 {
        self.sample_size.div_ceil(u32::from(self.fragment_size))
    }

    /// Offset of [`DataFrag::bytes`] within the sample.
    pub fn sample_offset(&self) -> usize {
        (self.first_fragment as usize - 1) * usize::from(self.fragment_size)
    }
}

/// The range of samples that a writer holds. `first == last + 1` means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Lowest number that the writer still holds, at least 1.
    pub first: SequenceNumber,
    /// Highest number that the writer ever used, at least `first - 1`.
    pub last: SequenceNumber,
    /// Grows with each new heartbeat of this writer; a repeated count is a repeated datagram.
    pub count: u32,
    /// True when the reader need not answer.
    pub is_final: bool,
    /// True when the application asserted the writer's liveliness.
    pub liveliness: bool,
}

/// What a HEARTBEAT says of the writer's publisher (RTPS 2.5 §8.3.8.6). The digests of the publisher's writers, which may follow, are
/// not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// The last number that a writer of the publisher has used: what this one sends later has a higher number.
    pub current: SequenceNumber,
    /// The number within the publisher of the first sample that the writer holds; 0 for none.
    pub first: SequenceNumber,
    /// The same of the last sample.
    pub last: SequenceNumber,
}

/// Number of fragments of a sample that a writer can send so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatFrag {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// Every fragment up to this one, at least 1, is available.
    pub last_fragment: u32,
    /// Grows with each new one of this writer.
    pub count: u32,
}

/// Samples that a reader has and misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckNack {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// All samples below the base have arrived; the members are missing.
    pub state: SequenceSet,
    /// Grows with each new one of this reader.
    pub count: u32,
    /// True when the writer need not answer with a heartbeat.
    pub is_final: bool,
}

/// Which fragments of a sample a reader misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackFrag {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// The members are missing; the base acknowledges nothing.
    pub state: FragmentSet,
    /// Grows with each new one of this reader.
    pub count: u32,
}

/// Samples of which nothing has come, and which the writer does not have any more. Thalweg's own: it asks for nothing, acknowledges nothing,
/// and is sent to Thalweg's writers only, ahead of the ACKNACK that passes over these numbers. Each is told once, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// Their numbers; the base means nothing.
    pub numbers: SequenceSet,
}

/// Fragments that have not come of a sample of which others did, and which the writer does not have any more; otherwise as [`Lost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostFrag {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// Number of the sample, at least 1.
    pub sequence: SequenceNumber,
    /// Bytes of its fragments, as the reader counts them.
    pub fragment_size: u16,
    /// The members have not come.
    pub state: FragmentSet,
    /// Neither has anything beyond the last member.
    pub rest: bool,
}

/// What the answer behind it is to, so that the writer knows how long that took. Thalweg's own; sent to Thalweg's writers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The reader it comes from.
    pub reader: EntityId,
    /// The writer it is for.
    pub writer: EntityId,
    /// The request that the reader heard last and has not named yet.
    pub asked_by: AskedBy,
    /// Microseconds since then; `u32::MAX` for as many or more.
    pub held_micros: u32,
}

/// A request for an answer, by its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedBy {
    /// A HEARTBEAT without the flag F.
    Heartbeat(u32),
    /// A HEARTBEAT_FRAG.
    HeartbeatFrag(u32),
}

/// Numbers that will never come: all from `start` to below the base of `list`, and `list`'s members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The reader it is for; [`EntityId::UNKNOWN`] means every matched one.
    pub reader: EntityId,
    /// The writer it comes from.
    pub writer: EntityId,
    /// First irrelevant number, at least 1. The range may span 2⁶³ numbers: never walk it.
    pub start: SequenceNumber,
    /// Its base ends the range; its members are irrelevant as well.
    pub list: SequenceSet,
}

/// Locators of an INFO_REPLY, read one by one from the datagram.
#[derive(Clone, Copy, Debug)]
pub struct LocatorList<'a> {
    cursor: Cursor<'a>,
}

impl<'a> LocatorList<'a> {
    /// Reads the count and checks that the message is long enough for it.
    pub(super) fn parse(cursor: &mut Cursor<'a>) -> Result<LocatorList<'a>, WireError> {
        let error = cursor.error("locator count within the submessage");
        let count = cursor.u32("locator count")? as usize;
        let offset = cursor.offset();
        let length = count.checked_mul(LOCATOR_LEN).ok_or(error)?;
        let bytes = cursor.bytes(length, error.expected).map_err(|_| error)?;
        Ok(LocatorList { cursor: Cursor::new(bytes, offset, cursor.endianness()) })
    }

    /// The locators, in the sender's order.
    pub fn iter(&self) -> impl Iterator<Item = Locator> + use<'a> {
        let mut cursor = self.cursor;
        std::iter::from_fn(move || cursor.locator().ok())
    }
}

impl PartialEq for LocatorList<'_> {
    fn eq(&self, other: &LocatorList<'_>) -> bool {
        self.iter().eq(other.iter())
    }
}

/// Bytes of a locator on the wire.
const LOCATOR_LEN: usize = 24;
