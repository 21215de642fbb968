//! The packet of SAP.

use std::net::IpAddr;

/// The port of all announcements.
pub const SAP_PORT: u16 = 9875;

/// The type of a payload that tells none (RFC 2974 §6).
const SDP_TYPE: &str = "application/sdp";

/// The longest type of a payload that is looked for; chosen by us.
const TYPE_OCTETS_MAX: usize = 128;

/// Whether a session begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SapKind {
    /// It is there, or has changed.
    Announcement,
    /// It is gone.
    Deletion,
}

/// An announcement or deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SapPacket<'a> {
    /// Which of the two.
    pub kind: SapKind,
    /// Together with the source, names this version of the announcement; zero in packets of old.
    pub hash: u16,
    /// The host that announces.
    pub source: IpAddr,
    /// The session description; of a deletion, at least its line `o=`.
    pub description: &'a [u8],
}

/// Why a packet is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SapError {
    /// It ends within its header.
    Short,
    /// Its version is not 1.
    Version {
        /// The version found.
        version: u8,
    },
    /// It is encrypted.
    Encrypted,
    /// It is compressed.
    Compressed,
    /// It carries something other than a session description.
    PayloadType {
        /// The type found, or nothing if none was found.
        found: String,
    },
}

impl std::fmt::Display for SapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SapError::Short => f.write_str("the announcement ends within its header"),
            SapError::Version { version } => write!(f, "the announcement has version {version} instead of 1"),
            SapError::Encrypted => f.write_str("the announcement is encrypted, which is not supported"),
            SapError::Compressed => f.write_str("the announcement is compressed, which is not supported"),
            SapError::PayloadType { found } => write!(f, "the announcement carries {found:?} instead of {SDP_TYPE}"),
        }
    }
}

impl std::error::Error for SapError {}

impl<'a> SapPacket<'a> {
    /// Reads a datagram; authentication data is passed over.
    ///
    /// # Errors
    /// It ends early, has another version or another payload, or is encrypted or compressed.
    pub fn parse(datagram: &'a [u8]) -> Result<SapPacket<'a>, SapError> {
        let (&[flags, words, hash_high, hash_low], rest) = datagram.split_first_chunk::<4>().ok_or(SapError::Short)?;
        if flags >> 5 != 1 {
            return Err(SapError::Version { version: flags >> 5 });
        }
        let (source, rest) = if flags & 0x10 == 0 {
            let (octets, rest) = rest.split_first_chunk::<4>().ok_or(SapError::Short)?;
            (IpAddr::from(*octets), rest)
        } else {
            let (octets, rest) = rest.split_first_chunk::<16>().ok_or(SapError::Short)?;
            (IpAddr::from(*octets), rest)
        };
        if flags & 0x02 != 0 {
            return Err(SapError::Encrypted);
        }
        if flags & 0x01 != 0 {
            return Err(SapError::Compressed);
        }
        let payload = rest.get(usize::from(words) * 4..).ok_or(SapError::Short)?;
        Ok(SapPacket {
            kind: if flags & 0x04 == 0 { SapKind::Announcement } else { SapKind::Deletion },
            hash: u16::from_be_bytes([hash_high, hash_low]),
            source,
            description: strip_type(payload)?,
        })
    }

    /// Appends the packet to `out`, with the type of its payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        let deletion = if self.kind == SapKind::Deletion { 0x04 } else { 0 };
        let family = if self.source.is_ipv6() { 0x10 } else { 0 };
        out.extend([1 << 5 | family | deletion, 0]);
        out.extend(self.hash.to_be_bytes());
        match self.source {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        }
        out.extend(SDP_TYPE.as_bytes());
        out.push(0);
        out.extend(self.description);
    }
}

/// The payload behind its type. Without a type it begins with `v=0`, or in a deletion with `o=`.
fn strip_type(payload: &[u8]) -> Result<&[u8], SapError> {
    if payload.starts_with(b"v=0") || payload.starts_with(b"o=") {
        return Ok(payload);
    }
    let end = payload.iter().take(TYPE_OCTETS_MAX).position(|octet| *octet == 0);
    let Some(end) = end else { return Err(SapError::PayloadType { found: String::new() }) };
    let found = String::from_utf8_lossy(&payload[..end]);
    if !found.eq_ignore_ascii_case(SDP_TYPE) {
        return Err(SapError::PayloadType { found: found.into_owned() });
    }
    Ok(&payload[end + 1..])
}
