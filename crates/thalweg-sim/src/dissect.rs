//! The content of a datagram in one line for people.

use std::fmt::Write;

use thalweg_rtps::types::EntityId;
use thalweg_rtps::wire::{AskedBy, Message, Submessage};

/// The submessages of a datagram in short, or where it breaks off.
pub fn dissect(datagram: &[u8]) -> String {
    let message = match Message::parse(datagram) {
        Ok(message) => message,
        Err(error) => return format!("not RTPS: {error}"),
    };
    let mut line = String::new();
    for submessage in message.submessages() {
        let separator = if line.is_empty() { "" } else { ", " };
        line.push_str(separator);
        match submessage {
            Ok(submessage) => line.push_str(&describe(&submessage)),
            Err(error) => line.push_str(&format!("malformed: {error}")),
        }
    }
    line
}

/// True when every submessage can be parsed.
pub fn is_well_formed(datagram: &[u8]) -> bool {
    Message::parse(datagram).is_ok_and(|message| message.submessages().all(|submessage| submessage.is_ok()))
}

/// True when the datagram goes on with a large sample whose first fragments have left before.
pub fn continues_sample(datagram: &[u8]) -> bool {
    let Ok(message) = Message::parse(datagram) else { return false };
    let continues = |submessage| matches!(submessage, Ok(Submessage::DataFrag(data)) if data.first_fragment > 1);
    message.submessages().any(continues)
}

fn describe(submessage: &Submessage<'_>) -> String {
    match submessage {
        Submessage::Data(data) => {
            format!("DATA {} {}", route(data.writer, data.reader), data.sequence)
        }
        Submessage::DataFrag(data) => {
            let last = u64::from(data.first_fragment) + u64::from(data.fragments) - 1;
            format!("DATA_FRAG {} {}[{}-{last}]", route(data.writer, data.reader), data.sequence, data.first_fragment)
        }
        Submessage::Heartbeat(heartbeat) => {
            let mark = if heartbeat.is_final { " final" } else { "" };
            let route = route(heartbeat.writer, heartbeat.reader);
            format!("HEARTBEAT {route} {}..{} #{}{mark}", heartbeat.first, heartbeat.last, heartbeat.count)
        }
        Submessage::GroupHeartbeat(heartbeat, info) => {
            format!("{} of group ..{}", describe(&Submessage::Heartbeat(*heartbeat)), info.current)
        }
        Submessage::HeartbeatFrag(heartbeat) => {
            let route = route(heartbeat.writer, heartbeat.reader);
            format!("HEARTBEAT_FRAG {route} {}[-{}]", heartbeat.sequence, heartbeat.last_fragment)
        }
        Submessage::AckNack(acknack) => {
            let mut line = format!("ACKNACK {} <{}", route(acknack.reader, acknack.writer), acknack.state.base());
            list(&mut line, acknack.state.iter().map(|number| number.0));
            let mark = if acknack.is_final { " final" } else { "" };
            line + &format!(" #{}{mark}", acknack.count)
        }
        Submessage::NackFrag(nack) => {
            let mut line = format!("NACK_FRAG {} {}", route(nack.reader, nack.writer), nack.sequence);
            list(&mut line, nack.state.iter().map(i64::from));
            line
        }
        Submessage::Lost(lost) => {
            let mut line = format!("LOST {}", route(lost.reader, lost.writer));
            list(&mut line, lost.numbers.iter().map(|number| number.0));
            line
        }
        Submessage::LostFrag(lost) => {
            let mut line = format!("LOST_FRAG {} {}", route(lost.reader, lost.writer), lost.sequence);
            list(&mut line, lost.state.iter().map(i64::from));
            line + if lost.rest { " and the rest" } else { "" }
        }
        Submessage::Echo(echo) => {
            let name = match echo.asked_by {
                AskedBy::Heartbeat(count) => format!("HEARTBEAT #{count}"),
                AskedBy::HeartbeatFrag(count) => format!("HEARTBEAT_FRAG #{count}"),
            };
            format!("ECHO {} of {name}, held for {} µs", route(echo.reader, echo.writer), echo.held_micros)
        }
        Submessage::Gap(gap) => {
            let mut line = format!("GAP {} {}..<{}", route(gap.writer, gap.reader), gap.start, gap.list.base());
            list(&mut line, gap.list.iter().map(|number| number.0));
            line
        }
        Submessage::InfoTimestamp(_) => "TS".to_string(),
        Submessage::InfoDestination(prefix) => format!("DST {:02x}", prefix.0[11]),
        other => format!("{other:?}"),
    }
}

fn route(from: EntityId, to: EntityId) -> String {
    match to {
        EntityId::UNKNOWN => format!("{from}>all"),
        to => format!("{from}>{to}"),
    }
}

/// Appends a set of numbers, at most the first five.
fn list(line: &mut String, numbers: impl Iterator<Item = i64>) {
    let numbers: Vec<i64> = numbers.collect();
    if numbers.is_empty() {
        return;
    }
    line.push_str(" {");
    for number in numbers.iter().take(5) {
        // Writing to a string cannot fail.
        let _ = write!(line, " {number}");
    }
    if numbers.len() > 5 {
        let _ = write!(line, " … {} in all", numbers.len());
    }
    line.push_str(" }");
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_rtps::types::{GuidPrefix, SequenceNumber};
    use thalweg_rtps::wire::{AckNack, Heartbeat, SequenceSet, write};

    fn datagram(body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write::header(&mut bytes, GuidPrefix([7; 12]));
        body(&mut bytes);
        bytes
    }

    #[test]
    fn submessages_are_told_in_short() {
        let (reader, writer) = (EntityId([0, 0, 1, 4]), EntityId([0, 0, 2, 3]));
        let bytes = datagram(|bytes| {
            let (first, last) = (SequenceNumber(1), SequenceNumber(9));
            let heartbeat = Heartbeat { reader, writer, first, last, count: 3, is_final: true, liveliness: false };
            write::heartbeat(bytes, &heartbeat);
            let mut state = SequenceSet::new(SequenceNumber(4));
            state.insert(SequenceNumber(6));
            write::acknack(bytes, &AckNack { reader, writer, state, count: 5, is_final: false });
        });
        let expected = "HEARTBEAT 00000203>00000104 1..9 #3 final, ACKNACK 00000104>00000203 <4 { 6 } #5";
        assert_eq!(dissect(&bytes), expected);
        assert!(is_well_formed(&bytes));
    }

    #[test]
    fn broken_datagrams_are_told_as_such() {
        let broken = datagram(|bytes| bytes.extend_from_slice(&[0x07, 1, 28, 0, 1, 2, 3]));
        assert!(dissect(&broken).starts_with("malformed: "), "{}", dissect(&broken));
        assert!(!is_well_formed(&broken));
        assert!(dissect(b"hello").starts_with("not RTPS: "));
    }
}
