//! What a datagram of DTLS begins with.

use super::hello;

/// The first record of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A message of a handshake before keys are agreed on.
    PlainHandshake,
    /// Something else without protection.
    Plain,
    /// Data of the application.
    Data,
    /// Something else with protection.
    Protected,
}

impl RecordKind {
    /// The kind of a datagram's first record; `None` for what is no record.
    pub fn of(bytes: &[u8]) -> Option<RecordKind> {
        let &[content, _, _, high, low, ..] = bytes else { return None };
        // The header of an encrypted record of DTLS 1.3 (RFC 9147 §4).
        if content & 0xe0 == 0x20 {
            return Some(RecordKind::Protected);
        }
        match (content, u16::from_be_bytes([high, low])) {
            (hello::HANDSHAKE, 0) => Some(RecordKind::PlainHandshake),
            (hello::APPLICATION_DATA, 1..) => Some(RecordKind::Data),
            (20..=25, 0) => Some(RecordKind::Plain),
            (20..=26, _) => Some(RecordKind::Protected),
            _ => None,
        }
    }
}
