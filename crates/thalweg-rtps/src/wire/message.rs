//! Parsing of a message into its submessages.

use std::ops::Range;

use super::batch::{AckNackBatch, DataBatch, HeartbeatBatch};
use super::cursor::Cursor;
use super::parameters::ParameterList;
use super::write::{DATA_HEAD_LEN, HEADER_LEN};
use super::{
    AckNack, AskedBy, Content, Data, DataFrag, Echo, Endianness, FragmentSet, Gap, GroupInfo, Header, Heartbeat,
    HeartbeatFrag, LocatorList, Lost, LostFrag, MAGIC, NackFrag, SequenceSet, Submessage, WireError, flag, id,
};
use crate::time::Timestamp;
use crate::types::{EntityId, Locator, ProtocolVersion, SequenceNumber, VendorId};

/// A datagram whose header was understood.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The sender.
    pub header: Header,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses the header; the submessages are parsed while they are iterated over.
    ///
    /// # Errors
    /// When the datagram is no RTPS message or of another major version than 2.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, WireError> {
        let mut cursor = Cursor::new(bytes, 0, Endianness::Big);
        if cursor.array("header")? != MAGIC {
            return Err(WireError { offset: 0, expected: "header that starts with \"RTPS\"" });
        }
        let [major, minor] = cursor.array("protocol version")?;
        if major != ProtocolVersion::V2_5.major {
            return Err(WireError { offset: MAGIC.len(), expected: "protocol version 2.x" });
        }
        let version = ProtocolVersion { major, minor };
        let vendor = VendorId(cursor.array("vendor id")?);
        let prefix = cursor.guid_prefix()?;
        Ok(Message { header: Header { version, vendor, prefix }, bytes })
    }

    /// The submessages in order. After an error the iteration ends: the rest of the message is not to be trusted
    /// (RTPS 2.5 §8.3.4.1).
    pub fn submessages(&self) -> Submessages<'a> {
        Submessages { bytes: self.bytes, position: HEADER_LEN, vendor: self.header.vendor }
    }
}

/// How many samples the datagram `bytes` carries whole: those of its DATA submessages and of its batches. 0 where it is no RTPS
/// message; fragments of a sample are none.
pub fn count_samples(bytes: &[u8]) -> u64 {
    let samples = |submessage| match submessage {
        Ok(Submessage::Data(_)) => 1,
        Ok(Submessage::DataBatch(batch)) => u64::from(batch.count),
        _ => 0,
    };
    Message::parse(bytes).map_or(0, |message| message.submessages().map(samples).sum())
}

/// Iterator over the submessages of a [`Message`].
#[derive(Clone, Debug)]
pub struct Submessages<'a> {
    bytes: &'a [u8],
    position: usize,
    vendor: VendorId,
}

impl<'a> Iterator for Submessages<'a> {
    type Item = Result<Submessage<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.bytes.len() {
            return None;
        }
        if let Some(data) = self.plain_data() {
            return Some(Ok(Submessage::Data(data)));
        }
        self.next_of_any_kind()
    }
}

impl<'a> Submessages<'a> {
    /// A sample without inline QoS as nearly all little-endian writers send it, read in one piece: with small samples this is
    /// what a receiver does most. Anything else is `None`.
    #[inline]
    fn plain_data(&mut self) -> Option<Data<'a>> {
        let head = self.bytes.get(self.position..)?.first_chunk::<DATA_HEAD_LEN>()?;
        let [id::DATA, PLAIN_DATA, s0, s1, _, _, o0, o1, r0, r1, r2, r3, w0, w1, w2, w3, rest @ ..] = *head else {
            return None;
        };
        let [h0, h1, h2, h3, l0, l1, l2, l3] = rest;
        let body = usize::from(u16::from_le_bytes([s0, s1]));
        let high = i64::from(i32::from_le_bytes([h0, h1, h2, h3]));
        let sequence = SequenceNumber((high << 32) | i64::from(u32::from_le_bytes([l0, l1, l2, l3])));
        let start = self.position + DATA_HEAD_LEN;
        let end = self.position + SUBMESSAGE_HEADER_LEN + body;
        let is_plain = usize::from(u16::from_le_bytes([o0, o1])) == DATA_TO_INLINE_QOS;
        if !is_plain || sequence < SequenceNumber::FIRST || end < start || end > self.bytes.len() {
            return None;
        }
        self.position = end;
        Some(Data {
            reader: EntityId([r0, r1, r2, r3]),
            writer: EntityId([w0, w1, w2, w3]),
            sequence,
            inline_qos: None,
            content: Content::Data(start..end),
        })
    }

    #[inline(never)]
    fn next_of_any_kind(&mut self) -> Option<Result<Submessage<'a>, WireError>> {
        let parsed = self.frame().and_then(|frame| {
            self.position = frame.end;
            frame.parse(self.vendor)
        });
        if parsed.is_err() {
            self.position = self.bytes.len();
        }
        Some(parsed)
    }

    /// Delimits the submessage at the current position.
    fn frame(&self) -> Result<Frame<'a>, WireError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let [id, flags, length @ ..] = *rest
            .first_chunk::<SUBMESSAGE_HEADER_LEN>()
            .ok_or(WireError { offset: self.position, expected: "submessage header" })?;
        let (endianness, length) = if flags & flag::LITTLE_ENDIAN != 0 {
            (Endianness::Little, u16::from_le_bytes(length))
        } else {
            (Endianness::Big, u16::from_be_bytes(length))
        };
        let start = self.position + SUBMESSAGE_HEADER_LEN;
        // A length of 0 means "to the end of the message", which OpenDDS uses for its last submessage; PAD and INFO_TS can
        // really be empty (RTPS 2.5 §9.4.5.1.3).
        let end = match length {
            0 if !matches!(id, id::PAD | id::INFO_TS) => self.bytes.len(),
            _ => start + usize::from(length),
        };
        let expected = "octetsToNextHeader within the message";
        let body = self.bytes.get(start..end).ok_or(WireError { offset: self.position + 2, expected })?;
        Ok(Frame { id, flags, cursor: Cursor::new(body, start, endianness), start, end })
    }
}

/// One submessage, not yet looked into.
struct Frame<'a> {
    id: u8,
    flags: u8,
    cursor: Cursor<'a>,
    /// Offset of the body in the datagram.
    start: usize,
    /// Offset of the next submessage in the datagram.
    end: usize,
}

impl<'a> Frame<'a> {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn parse(mut self, vendor: VendorId) -> Result<Submessage<'a>, WireError> {
        Ok(match self.id {
            id::PAD => Submessage::Pad,
            id::DATA => Submessage::Data(self.data()?),
            id::DATA_FRAG => Submessage::DataFrag(self.data_frag()?),
            id::HEARTBEAT => self.any_heartbeat()?,
            id::HEARTBEAT_FRAG => Submessage::HeartbeatFrag(self.heartbeat_frag()?),
            id::ACKNACK => Submessage::AckNack(self.acknack()?),
            id::NACK_FRAG => Submessage::NackFrag(self.nack_frag()?),
            id::GAP => Submessage::Gap(self.gap()?),
            id::LOST if vendor == VendorId::THALWEG => Submessage::Lost(self.lost()?),
            id::LOST_FRAG if vendor == VendorId::THALWEG => Submessage::LostFrag(self.lost_frag()?),
            id::ECHO if vendor == VendorId::THALWEG => Submessage::Echo(self.echo()?),
            id::DATA_BATCH => {
                let has_inline_qos = self.has(flag::INLINE_QOS);
                Submessage::DataBatch(DataBatch::parse(self.cursor, has_inline_qos, self.end)?)
            }
            id::HEARTBEAT_BATCH => {
                let (is_final, liveliness) = (self.has(flag::FINAL), self.has(flag::LIVELINESS));
                Submessage::HeartbeatBatch(HeartbeatBatch::parse(self.cursor, is_final, liveliness)?)
            }
            id::ACKNACK_BATCH => {
                let is_final = self.has(flag::FINAL);
                Submessage::AckNackBatch(AckNackBatch::parse(self.cursor, is_final)?)
            }
            id::INFO_TS => Submessage::InfoTimestamp(self.info_timestamp()?),
            id::INFO_DST => Submessage::InfoDestination(self.cursor.guid_prefix()?),
            id::INFO_SRC => self.info_source()?,
            id::INFO_REPLY => self.info_reply()?,
            id::INFO_REPLY_IP4 => self.info_reply_ip4()?,
            id => Submessage::Unknown { id },
        })
    }

    fn data(mut self) -> Result<Data<'a>, WireError> {
        let inline_qos_at = self.inline_qos_position(DATA_TO_INLINE_QOS)?;
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let sequence = self.cursor.positive_sequence_number()?;
        let (inline_qos, payload) = self.inline_qos_and_payload(inline_qos_at)?;
        let content = match (self.has(flag::DATA), self.has(flag::DATA_KEY)) {
            (false, false) => Content::None,
            (true, false) => Content::Data(payload),
            (false, true) => Content::Key(payload),
            (true, true) => {
                return Err(WireError { offset: self.start - 3, expected: "flag D or K of DATA, not both" });
            }
        };
        Ok(Data { reader, writer, sequence, inline_qos, content })
    }

    fn data_frag(mut self) -> Result<DataFrag<'a>, WireError> {
        let inline_qos_at = self.inline_qos_position(DATA_FRAG_TO_INLINE_QOS)?;
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let sequence = self.cursor.positive_sequence_number()?;
        let numbers_error = self.cursor.error("fragments of at least 1 byte within the sample");
        let first_fragment = self.cursor.u32("first fragment number")?;
        let fragments = self.cursor.u16("number of fragments")?;
        let fragment_size = self.cursor.u16("fragment size")?;
        let sample_size = self.cursor.u32("sample size")?;
        let length = fragments_length(first_fragment, fragments, fragment_size, sample_size).ok_or(numbers_error)?;
        let (inline_qos, payload) = self.inline_qos_and_payload(inline_qos_at)?;
        if payload.len() < length {
            return Err(WireError { offset: payload.start, expected: "as many bytes as the fragments have" });
        }
        let key = self.has(flag::FRAG_KEY);
        let bytes = payload.start..payload.start + length;
        Ok(DataFrag {
            reader,
            writer,
            sequence,
            first_fragment,
            fragments,
            fragment_size,
            sample_size,
            inline_qos,
            key,
            bytes,
        })
    }

    /// Reads extraFlags and octetsToInlineQos and returns where, within the body, the inline QoS or else the payload starts:
    /// later versions may put more fields in front of it.
    fn inline_qos_position(&mut self, least: usize) -> Result<usize, WireError> {
        self.cursor.u16("extra flags")?;
        let error = self.cursor.error("octetsToInlineQos behind the known fields and within the submessage");
        let octets = usize::from(self.cursor.u16("octetsToInlineQos")?);
        if octets < least || octets > self.cursor.remaining() {
            return Err(error);
        }
        Ok(self.cursor.position() + octets)
    }

    fn inline_qos_and_payload(
        &mut self,
        position: usize,
    ) -> Result<(Option<ParameterList<'a>>, Range<usize>), WireError> {
        let skipped = position.saturating_sub(self.cursor.position());
        self.cursor.bytes(skipped, "inline QoS")?;
        let inline_qos = match self.has(flag::INLINE_QOS) {
            true => Some(ParameterList::split(&mut self.cursor)?),
            false => None,
        };
        Ok((inline_qos, self.cursor.offset()..self.end))
    }

    /// A HEARTBEAT counts whatever is behind its count: editions before RTPS 2.3 have nothing there.
    fn any_heartbeat(mut self) -> Result<Submessage<'a>, WireError> {
        let heartbeat = self.heartbeat()?;
        let mut number = || self.cursor.sequence_number();
        let mut info = || Ok::<_, WireError>(GroupInfo { current: number()?, first: number()?, last: number()? });
        Ok(match info() {
            Ok(info) if self.flags & flag::GROUP_INFO != 0 => Submessage::GroupHeartbeat(heartbeat, info),
            _ => Submessage::Heartbeat(heartbeat),
        })
    }

    fn heartbeat(&mut self) -> Result<Heartbeat, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let first = self.cursor.positive_sequence_number()?;
        let last_error = self.cursor.error("last sequence number of at least the first minus 1");
        let last = self.cursor.sequence_number()?;
        if last < first.previous() {
            return Err(last_error);
        }
        let count = self.cursor.u32("heartbeat count")?;
        let (is_final, liveliness) = (self.has(flag::FINAL), self.has(flag::LIVELINESS));
        Ok(Heartbeat { reader, writer, first, last, count, is_final, liveliness })
    }

    fn heartbeat_frag(mut self) -> Result<HeartbeatFrag, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let sequence = self.cursor.positive_sequence_number()?;
        let fragment_error = self.cursor.error("last fragment number of at least 1");
        let last_fragment = self.cursor.u32("last fragment number")?;
        if last_fragment == 0 {
            return Err(fragment_error);
        }
        let count = self.cursor.u32("heartbeat count")?;
        Ok(HeartbeatFrag { reader, writer, sequence, last_fragment, count })
    }

    fn acknack(mut self) -> Result<AckNack, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let state = SequenceSet::parse(&mut self.cursor)?;
        let count = self.cursor.u32("acknack count")?;
        Ok(AckNack { reader, writer, state, count, is_final: self.has(flag::FINAL) })
    }

    fn nack_frag(mut self) -> Result<NackFrag, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let sequence = self.cursor.positive_sequence_number()?;
        let state = FragmentSet::parse(&mut self.cursor)?;
        let count = self.cursor.u32("nack count")?;
        Ok(NackFrag { reader, writer, sequence, state, count })
    }

    fn lost(mut self) -> Result<Lost, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let numbers = SequenceSet::parse(&mut self.cursor)?;
        Ok(Lost { reader, writer, numbers })
    }

    fn lost_frag(mut self) -> Result<LostFrag, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let sequence = self.cursor.positive_sequence_number()?;
        let state = FragmentSet::parse(&mut self.cursor)?;
        let fragment_size = self.cursor.u16("fragment size")?;
        Ok(LostFrag { reader, writer, sequence, fragment_size, state, rest: self.has(flag::REST) })
    }

    fn echo(mut self) -> Result<Echo, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let count = self.cursor.u32("heartbeat count")?;
        let asked_by = if self.has(flag::PARTS) { AskedBy::HeartbeatFrag(count) } else { AskedBy::Heartbeat(count) };
        Ok(Echo { reader, writer, asked_by, held_micros: self.cursor.u32("microseconds")? })
    }

    fn gap(mut self) -> Result<Gap, WireError> {
        let reader = self.cursor.entity_id("reader id")?;
        let writer = self.cursor.entity_id("writer id")?;
        let start = self.cursor.positive_sequence_number()?;
        let list = SequenceSet::parse(&mut self.cursor)?;
        Ok(Gap { reader, writer, start, list })
    }

    fn info_timestamp(mut self) -> Result<Option<Timestamp>, WireError> {
        if self.has(flag::INVALIDATE) {
            return Ok(None);
        }
        let seconds = self.cursor.u32("seconds")?;
        let fraction = self.cursor.u32("fraction of a second")?;
        let timestamp = Timestamp { seconds, fraction };
        Ok((timestamp != Timestamp::INVALID).then_some(timestamp))
    }

    fn info_source(mut self) -> Result<Submessage<'a>, WireError> {
        self.cursor.u32("unused word")?;
        let [major, minor] = self.cursor.array("protocol version")?;
        let vendor = VendorId(self.cursor.array("vendor id")?);
        let prefix = self.cursor.guid_prefix()?;
        Ok(Submessage::InfoSource { version: ProtocolVersion { major, minor }, vendor, prefix })
    }

    fn info_reply(mut self) -> Result<Submessage<'a>, WireError> {
        let unicast = LocatorList::parse(&mut self.cursor)?;
        let multicast = match self.has(flag::MULTICAST) {
            true => Some(LocatorList::parse(&mut self.cursor)?),
            false => None,
        };
        Ok(Submessage::InfoReply { unicast, multicast })
    }

    fn info_reply_ip4(mut self) -> Result<Submessage<'a>, WireError> {
        let unicast = ip4_locator(&mut self.cursor)?;
        let multicast = match self.has(flag::MULTICAST) {
            true => Some(ip4_locator(&mut self.cursor)?),
            false => None,
        };
        Ok(Submessage::InfoReplyIp4 { unicast, multicast })
    }
}

/// `LocatorUDPv4_t`: the address is a number in the submessage's byte order, unlike in a `Locator_t`.
fn ip4_locator(cursor: &mut Cursor<'_>) -> Result<Locator, WireError> {
    let ip = cursor.u32("IPv4 address")?.to_be_bytes();
    let port = cursor.u32("UDP port")?;
    let mut address = [0; 16];
    address[12..].copy_from_slice(&ip);
    Ok(Locator { kind: Locator::UDP_V4, port, address })
}

/// Bytes that the fragments `first..first + count` have together, or `None` when they are not within the sample.
///
/// A fragment size above the sample size is let pass: the one fragment is then the sample.
fn fragments_length(first: u32, count: u16, fragment_size: u16, sample_size: u32) -> Option<usize> {
    if count == 0 || fragment_size == 0 {
        return None;
    }
    let start = u64::from(first.checked_sub(1)?) * u64::from(fragment_size);
    let end = start + u64::from(count) * u64::from(fragment_size);
    let sample_size = u64::from(sample_size);
    let last_start = end - u64::from(fragment_size);
    if last_start >= sample_size {
        return None;
    }
    usize::try_from(end.min(sample_size) - start).ok()
}

/// Flags E and D, and nothing else.
const PLAIN_DATA: u8 = flag::LITTLE_ENDIAN | flag::DATA;
/// Bytes of id, flags and octetsToNextHeader.
pub(super) const SUBMESSAGE_HEADER_LEN: usize = 4;
/// octetsToInlineQos of a DATA of RTPS 2.5.
pub(super) const DATA_TO_INLINE_QOS: usize = 16;
/// octetsToInlineQos of a DATA_FRAG of RTPS 2.5.
pub(super) const DATA_FRAG_TO_INLINE_QOS: usize = 28;
