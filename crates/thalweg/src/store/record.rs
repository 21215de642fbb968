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

/// Appends a change: kind, time or the value that means none, instance, payload.
pub(super) fn write_change(change: &StoredChange, out: &mut Vec<u8>) {
    let StoredChange { kind, instance, timestamp, payload, .. } = change;
    out.push(kind.status_info().unwrap_or_default() as u8);
    let Timestamp { seconds, fraction } = timestamp.unwrap_or(Timestamp::INVALID);
    out.extend_from_slice(&seconds.to_le_bytes());
    out.extend_from_slice(&fraction.to_le_bytes());
    out.extend_from_slice(&instance.0);
    out.extend_from_slice(payload);
}

/// Reads what [`write_change`] wrote; `None` for anything else.
pub(super) fn read_change(sequence: SequenceNumber, bytes: &[u8]) -> Option<StoredChange> {
    let (&kind, rest) = bytes.split_first()?;
    let (seconds, rest) = rest.split_first_chunk()?;
    let (fraction, rest) = rest.split_first_chunk()?;
    let (instance, payload) = rest.split_first_chunk()?;
    let timestamp = Timestamp { seconds: u32::from_le_bytes(*seconds), fraction: u32::from_le_bytes(*fraction) };
    (kind <= 3 && sequence >= SequenceNumber::FIRST).then(|| StoredChange {
        sequence,
        kind: ChangeKind::from_status_info(u32::from(kind)),
        instance: KeyHash(*instance),
        timestamp: (timestamp != Timestamp::INVALID).then_some(timestamp),
        payload: Payload::from(payload),
    })
}
