//! Histories and changes as bytes of a store, little endian.

use thalweg_rtps::discovery::endpoint_data::PublicationData;
use thalweg_rtps::history::{ChangeKind, StoredChange};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Timestamp;
use thalweg_rtps::types::{HistoryIdentity, KeyHash, SequenceNumber};

use super::file::Description;

/// Appends a description: identity, domain, name with its length, announced data.
pub(super) fn write_description(description: &Description, out: &mut Vec<u8>) {
    out.extend_from_slice(&description.identity.0);
    out.extend_from_slice(&description.domain_id.to_le_bytes());
    out.extend_from_slice(&(description.name.len() as u32).to_le_bytes());
    out.extend_from_slice(description.name.as_bytes());
    description.publication.encode(out);
}

/// Reads what [`write_description`] wrote; `None` for anything else.
pub(super) fn read_description(bytes: &[u8]) -> Option<Description> {
    let (identity, rest) = bytes.split_first_chunk()?;
    let (domain_id, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(Description {
        identity: HistoryIdentity(*identity),
        domain_id: u32::from_le_bytes(*domain_id),
        name: std::str::from_utf8(name).ok()?.to_owned(),
        publication: PublicationData::decode(rest).ok()?,
    })
}

/// In the first byte of a change: its time follows.
const HAS_TIME: u8 = 1 << 2;
/// In the first byte of a change: its instance follows.
const HAS_INSTANCE: u8 = 1 << 3;

/// How many bytes [`write_change`] appends.
pub(super) fn change_bytes(change: &StoredChange) -> usize {
    let (time, instance) = (change.timestamp.is_some(), change.instance != KeyHash::default());
    1 + usize::from(time) * 8 + usize::from(instance) * 16 + change.payload.len()
}

/// Appends a change: kind and what follows, time, instance unless it is all zero, payload.
pub(super) fn write_change(change: &StoredChange, out: &mut Vec<u8>) {
    let StoredChange { kind, instance, timestamp, payload, .. } = change;
    let place = out.len();
    out.push(kind.status_info().unwrap_or_default() as u8);
    if let Some(Timestamp { seconds, fraction }) = timestamp {
        out[place] |= HAS_TIME;
        out.extend_from_slice(&seconds.to_le_bytes());
        out.extend_from_slice(&fraction.to_le_bytes());
    }
    if *instance != KeyHash::default() {
        out[place] |= HAS_INSTANCE;
        out.extend_from_slice(&instance.0);
    }
    out.extend_from_slice(payload);
}

/// Reads what [`write_change`] wrote; `None` for anything else.
pub(super) fn read_change(sequence: SequenceNumber, bytes: &[u8]) -> Option<StoredChange> {
    let (&head, mut rest) = bytes.split_first()?;
    let kind = ChangeKind::from_status_info(u32::from(head & 3));
    let mut timestamp = None;
    if head & HAS_TIME != 0 {
        let (seconds, fraction);
        (seconds, rest) = rest.split_first_chunk()?;
        (fraction, rest) = rest.split_first_chunk()?;
        let (seconds, fraction) = (u32::from_le_bytes(*seconds), u32::from_le_bytes(*fraction));
        timestamp = Some(Timestamp { seconds, fraction });
    }
    let mut instance = KeyHash::default();
    if head & HAS_INSTANCE != 0 {
        let bytes;
        (bytes, rest) = rest.split_first_chunk()?;
        instance = KeyHash(*bytes);
    }
    let is_known = head <= 3 | HAS_TIME | HAS_INSTANCE && sequence >= SequenceNumber::FIRST;
    is_known.then(|| StoredChange { sequence, kind, instance, timestamp, payload: Payload::from(rest) })
}
