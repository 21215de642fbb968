mod batches;
pub(crate) mod golden;
mod hostile;
mod parameters;
mod round_trip;
mod sets;

use std::fmt::Write;

use super::batch::AckNackBatch;
use super::write::{self, DataHead, DataKind};
use super::*;
use crate::rng::Rng;
use crate::types::{EntityId, GuidPrefix, SequenceNumber};

const PREFIX: GuidPrefix = GuidPrefix([1, 0xd7, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
const READER: EntityId = EntityId([0, 0, 1, 7]);
const WRITER: EntityId = EntityId([0, 0, 2, 2]);

/// Bytes of a file in `testdata/`, or of any hex text: lines that start with `#` are comments, blanks mean nothing.
pub(crate) fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: String = hex.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect();
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Writes a message with what `fill` appends behind the header.
fn message(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write::header(&mut out, PREFIX);
    fill(&mut out);
    out
}

/// A message with one DATA.
fn data_message(inline_qos: &[u8], kind: DataKind, payload: &[u8]) -> Vec<u8> {
    message(|out| {
        let head = DataHead { reader: READER, writer: WRITER, sequence: SequenceNumber(7), inline_qos, kind };
        write::data(out, &head, payload.len());
        out.extend_from_slice(payload);
        write::padding(out, payload.len());
    })
}

/// A header and a hand-made rest.
fn message_of(hex: &str) -> Vec<u8> {
    message(|out| out.extend_from_slice(&bytes_of(hex)))
}

/// What a message says, one line a submessage; an error ends it.
fn told(message: &[u8]) -> String {
    let mut text = String::new();
    let parsed = match Message::parse(message) {
        Ok(parsed) => parsed,
        Err(error) => return error.to_string(),
    };
    for submessage in parsed.submessages() {
        if !text.is_empty() {
            text.push('\n');
        }
        match submessage {
            Ok(submessage) => tell(&mut text, &submessage),
            Err(error) => write!(text, "{error}").unwrap(),
        }
    }
    text
}

fn tell(text: &mut String, submessage: &Submessage<'_>) {
    match submessage {
        Submessage::Data(data) => {
            write!(text, "DATA {} {}>{}", data.sequence, data.writer, data.reader).unwrap();
            tell_qos(text, data.inline_qos);
            match &data.content {
                Content::Data(range) => write!(text, " data {range:?}"),
                Content::Key(range) => write!(text, " key {range:?}"),
                Content::None => write!(text, " nothing"),
            }
            .unwrap();
        }
        Submessage::DataFrag(frag) => {
            write!(text, "DATA_FRAG {} {}>{}", frag.sequence, frag.writer, frag.reader).unwrap();
            tell_qos(text, frag.inline_qos);
            let (first, count, total) = (frag.first_fragment, frag.fragments, frag.fragments_total());
            write!(text, " {first}+{count}/{total} of {} in {} ", frag.fragment_size, frag.sample_size).unwrap();
            let kind = if frag.key { "key" } else { "data" };
            write!(text, "{kind} {:?} at {}", frag.bytes, frag.sample_offset()).unwrap();
        }
        Submessage::Heartbeat(heartbeat) => {
            let Heartbeat { reader, writer, first, last, count, is_final, liveliness } = heartbeat;
            write!(text, "HEARTBEAT {first}..={last} #{count} {writer}>{reader}").unwrap();
            text.push_str(if *is_final { " final" } else { "" });
            text.push_str(if *liveliness { " liveliness" } else { "" });
        }
        Submessage::GroupHeartbeat(heartbeat, GroupInfo { current, first, last }) => {
            tell(text, &Submessage::Heartbeat(*heartbeat));
            write!(text, " of the publisher {first}..={last} up to {current}").unwrap();
        }
        Submessage::HeartbeatFrag(HeartbeatFrag { reader, writer, sequence, last_fragment, count }) => {
            write!(text, "HEARTBEAT_FRAG {sequence} ..={last_fragment} #{count} {writer}>{reader}").unwrap();
        }
        Submessage::AckNack(AckNack { reader, writer, state, count, is_final }) => {
            write!(text, "ACKNACK {state:?} #{count} {reader}>{writer}").unwrap();
            text.push_str(if *is_final { " final" } else { "" });
        }
        Submessage::Lost(Lost { reader, writer, numbers }) => {
            write!(text, "LOST {numbers:?} {reader}>{writer}").unwrap();
        }
        Submessage::Echo(Echo { reader, writer, asked_by, held_micros }) => {
            write!(text, "ECHO {asked_by:?} after {held_micros} µs {reader}>{writer}").unwrap();
        }
        Submessage::LostFrag(LostFrag { reader, writer, sequence, fragment_size, state, rest }) => {
            write!(text, "LOST_FRAG {sequence} {state:?} of {fragment_size} {reader}>{writer}").unwrap();
            text.push_str(if *rest { " and the rest" } else { "" });
        }
        Submessage::NackFrag(NackFrag { reader, writer, sequence, state, count }) => {
            write!(text, "NACK_FRAG {sequence} {state:?} #{count} {reader}>{writer}").unwrap();
        }
        Submessage::Gap(Gap { reader, writer, start, list }) => {
            write!(text, "GAP {start}.. {list:?} {writer}>{reader}").unwrap();
        }
        Submessage::DataBatch(batch) => batches::tell(text, batch),
        Submessage::HeartbeatBatch(batch) => {
            let Heartbeat { reader, writer, first, last, count, is_final, .. } = &batch.heartbeat;
            let (first_batch, last_batch) = (batch.first_batch, batch.last_batch);
            write!(text, "HEARTBEAT_BATCH {first_batch}..={last_batch} {first}..={last} #{count} {writer}>{reader}")
                .unwrap();
            text.push_str(if *is_final { " final" } else { "" });
        }
        Submessage::AckNackBatch(acknack) => {
            let AckNackBatch { reader, writer, state, count, is_final } = acknack;
            write!(text, "ACKNACK_BATCH {state:?} #{count} {reader}>{writer}").unwrap();
            text.push_str(if *is_final { " final" } else { "" });
        }
        Submessage::InfoTimestamp(Some(time)) => write!(text, "INFO_TS {}", time.seconds).unwrap(),
        Submessage::InfoTimestamp(None) => text.push_str("INFO_TS none"),
        Submessage::InfoDestination(prefix) => write!(text, "INFO_DST {prefix}").unwrap(),
        Submessage::InfoSource { version, vendor, prefix } => {
            write!(text, "INFO_SRC {}.{} {vendor} {prefix}", version.major, version.minor).unwrap();
        }
        Submessage::InfoReply { unicast, multicast } => {
            write!(text, "INFO_REPLY {:?}", unicast.iter().collect::<Vec<_>>()).unwrap();
            if let Some(multicast) = multicast {
                write!(text, " {:?}", multicast.iter().collect::<Vec<_>>()).unwrap();
            }
        }
        Submessage::InfoReplyIp4 { unicast, multicast } => {
            write!(text, "INFO_REPLY_IP4 {unicast} {multicast:?}").unwrap();
        }
        Submessage::Pad => text.push_str("PAD"),
        Submessage::Unknown { id } => write!(text, "unknown {id:02x}").unwrap(),
    }
}

fn tell_qos(text: &mut String, list: Option<super::parameters::ParameterList<'_>>) {
    let Some(list) = list else { return };
    text.push_str(" qos");
    for parameter in list.iter() {
        match parameter {
            Ok(parameter) => write!(text, " {:04x}", parameter.id).unwrap(),
            Err(error) => write!(text, " {error}").unwrap(),
        }
    }
    if list.status_info() != 0 {
        write!(text, " status {}", list.status_info()).unwrap();
    }
}

#[track_caller]
fn check(message: &[u8], expect: &str) {
    assert_eq!(told(message), expect);
}

/// Walks everything that a message leads to, as a receiver does; for inputs that only must not panic.
fn walk(message: &[u8]) {
    let Ok(parsed) = Message::parse(message) else { return };
    for submessage in parsed.submessages() {
        match submessage {
            Ok(Submessage::Data(Data { content: Content::Data(range) | Content::Key(range), .. })) => {
                assert!(message.get(range).is_some(), "the payload is within the datagram");
            }
            Ok(Submessage::DataFrag(frag)) => {
                let end = frag.sample_offset() + frag.bytes.len();
                assert!(end <= frag.sample_size as usize, "the fragments are within the sample");
                assert!(message.get(frag.bytes).is_some(), "the fragments are within the datagram");
            }
            Ok(Submessage::DataBatch(batch)) => batches::walk(message, &batch),
            _ => {}
        }
    }
    told(message);
}
