//! Identifiers and addresses of RTPS 2.5 §9.3: GUIDs, entity ids, sequence numbers, locators, versions.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

pub use thalweg_base::locator::{
    ETHERNET_V4_DATAGRAM_BYTES, ETHERNET_V6_DATAGRAM_BYTES, Locator, ON_HOST_DATAGRAM_BYTES,
};

/// First twelve bytes of a GUID: names a participant (RTPS 2.5 §9.3.1.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuidPrefix(pub [u8; 12]);

impl GuidPrefix {
    /// Names no participant.
    pub const UNKNOWN: GuidPrefix = GuidPrefix([0; 12]);

    /// A name for a new participant (RTPS 2.5 §9.3.1.1): Thalweg's vendor id, 48 random bits of the process and 32 of the participant.
    /// Two of 10,000 processes share theirs with a probability below 10⁻⁶, and still have different participants then, most likely.
    pub fn of_thalweg(process: [u8; 6], participant: [u8; 4]) -> GuidPrefix {
        let mut prefix = [0; 12];
        prefix[..2].copy_from_slice(&VendorId::THALWEG.0);
        prefix[2..8].copy_from_slice(&process);
        prefix[8..].copy_from_slice(&participant);
        GuidPrefix(prefix)
    }

    /// The vendor that the first two bytes announce (RTPS 2.5 §9.3.1.1).
    pub fn vendor(self) -> VendorId {
        VendorId([self.0[0], self.0[1]])
    }
}

/// Last four bytes of a GUID: names an entity within its participant; the last byte tells its kind (RTPS 2.5 §9.3.1.2).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub [u8; 4]);

impl EntityId {
    /// Names no entity; as destination "every matched one".
    pub const UNKNOWN: EntityId = EntityId([0, 0, 0, 0]);
    /// The participant itself.
    pub const PARTICIPANT: EntityId = EntityId([0, 0, 1, 0xc1]);
    /// SPDP writer.
    pub const SPDP_WRITER: EntityId = EntityId([0, 1, 0, 0xc2]);
    /// SPDP reader.
    pub const SPDP_READER: EntityId = EntityId([0, 1, 0, 0xc7]);
    /// SEDP publications writer.
    pub const PUBLICATIONS_WRITER: EntityId = EntityId([0, 0, 3, 0xc2]);
    /// SEDP publications reader.
    pub const PUBLICATIONS_READER: EntityId = EntityId([0, 0, 3, 0xc7]);
    /// SEDP subscriptions writer.
    pub const SUBSCRIPTIONS_WRITER: EntityId = EntityId([0, 0, 4, 0xc2]);
    /// SEDP subscriptions reader.
    pub const SUBSCRIPTIONS_READER: EntityId = EntityId([0, 0, 4, 0xc7]);
    /// Participant-message writer (liveliness).
    pub const PARTICIPANT_MESSAGE_WRITER: EntityId = EntityId([0, 2, 0, 0xc2]);
    /// Participant-message reader (liveliness).
    pub const PARTICIPANT_MESSAGE_READER: EntityId = EntityId([0, 2, 0, 0xc7]);
    /// A user-defined writer; `key` uses its low 24 bits.
    pub fn user_writer(key: u32, keyed: Keyed) -> EntityId {
        EntityId::with_kind(key, if keyed == Keyed::Yes { 0x02 } else { 0x03 })
    }

    /// A user-defined reader; `key` uses its low 24 bits.
    pub fn user_reader(key: u32, keyed: Keyed) -> EntityId {
        EntityId::with_kind(key, if keyed == Keyed::Yes { 0x07 } else { 0x04 })
    }

    /// A publisher; `key` uses its low 24 bits.
    pub fn user_publisher(key: u32) -> EntityId {
        EntityId::with_kind(key, 0x08)
    }

    /// A subscriber; `key` uses its low 24 bits.
    pub fn user_subscriber(key: u32) -> EntityId {
        EntityId::with_kind(key, 0x09)
    }

    fn with_kind(key: u32, kind: u8) -> EntityId {
        let [_, a, b, c] = key.to_be_bytes();
        EntityId([a, b, c, kind])
    }

    /// True for entities that the specification or Thalweg predefines.
    pub fn is_builtin(self) -> bool {
        self.0[3] & 0xc0 == 0xc0 || self.0[0] == 0x8f && self.0[3] & 0xc0 == 0x40
    }

    /// True for writers, built-in or not.
    pub fn is_writer(self) -> bool {
        matches!(self.0[3] & 0x3f, 0x02 | 0x03)
    }

    /// True for readers, built-in or not.
    pub fn is_reader(self) -> bool {
        matches!(self.0[3] & 0x3f, 0x04 | 0x07)
    }

    /// Whether the entity's topic has a key, as its kind tells.
    pub fn keyed(self) -> Keyed {
        if matches!(self.0[3] & 0x3f, 0x02 | 0x07) { Keyed::Yes } else { Keyed::No }
    }
}

/// Whether a topic's type has key members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keyed {
    /// Samples belong to instances told apart by their key.
    Yes,
    /// One single instance.
    No,
}

/// Global name of an entity (RTPS 2.5 §8.2.4.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid {
    /// The participant.
    pub prefix: GuidPrefix,
    /// The entity within it.
    pub entity: EntityId,
}

impl Guid {
    /// The unknown GUID prefix.
    pub const UNKNOWN: Guid = Guid { prefix: GuidPrefix::UNKNOWN, entity: EntityId::UNKNOWN };

    /// Joins both halves.
    pub const fn new(prefix: GuidPrefix, entity: EntityId) -> Guid {
        Guid { prefix, entity }
    }

    /// The sixteen bytes of the wire.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&self.prefix.0);
        bytes[12..].copy_from_slice(&self.entity.0);
        bytes
    }

    /// Reverses [`Guid::to_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> Guid {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Guid { prefix: GuidPrefix([a, b, c, d, e, f, g, h, i, j, k, l]), entity: EntityId([m, n, o, p]) }
    }
}

/// Number of a sample within its writer; the first is 1 (RTPS 2.5 §8.3.5.4).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceNumber(pub i64);

impl SequenceNumber {
    /// No number.
    pub const UNKNOWN: SequenceNumber = SequenceNumber(-1 << 32);
    /// Below every sample.
    pub const ZERO: SequenceNumber = SequenceNumber(0);
    /// A writer's first sample.
    pub const FIRST: SequenceNumber = SequenceNumber(1);

    /// The number after this one.
    #[inline]
    pub const fn next(self) -> SequenceNumber {
        SequenceNumber(self.0.saturating_add(1))
    }

    /// The number before this one.
    #[inline]
    pub const fn previous(self) -> SequenceNumber {
        SequenceNumber(self.0.saturating_sub(1))
    }
}

impl Add<i64> for SequenceNumber {
    type Output = SequenceNumber;

    /// Saturates: numbers from the network may be anything.
    #[inline]
    fn add(self, count: i64) -> SequenceNumber {
        SequenceNumber(self.0.saturating_add(count))
    }
}

impl AddAssign<i64> for SequenceNumber {
    #[inline]
    fn add_assign(&mut self, count: i64) {
        *self = *self + count;
    }
}

impl Sub for SequenceNumber {
    type Output = i64;

    /// Distance between two numbers; saturates.
    #[inline]
    fn sub(self, other: SequenceNumber) -> i64 {
        self.0.saturating_sub(other.0)
    }
}

/// 16-byte identity of an instance: the key, or its MD5, by the rules of RTPS 2.5 §9.6.4.8. Zero for keyless topics.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 16]);

/// Which history a writer goes on with: equal for all lives of a PERSISTENT writer. Chosen by its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryIdentity(pub [u8; HistoryIdentity::LEN]);

impl HistoryIdentity {
    /// Its length in bytes.
    pub const LEN: usize = 16;
}

/// The vendor of an implementation (RTPS 2.5 §8.3.3.1.3).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct VendorId(pub [u8; 2]);

impl VendorId {
    /// Unknown vendor.
    pub const UNKNOWN: VendorId = VendorId([0, 0]);
    /// Thalweg: an id that the OMG has not assigned to anybody.
    pub const THALWEG: VendorId = VendorId([0x01, 0xd7]);
    /// eProsima Fast DDS.
    pub const FAST_DDS: VendorId = VendorId([0x01, 0x0f]);
    /// Eclipse Cyclone DDS.
    pub const CYCLONE: VendorId = VendorId([0x01, 0x10]);

    /// Name of a known vendor's product.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            [0x01, 0x01] => "RTI Connext",
            [0x01, 0x02] => "OpenSplice",
            [0x01, 0x03] => "OpenDDS",
            [0x01, 0x05] => "InterCOM",
            [0x01, 0x06] => "CoreDX",
            [0x01, 0x0f] => "Fast DDS",
            [0x01, 0x10] => "Cyclone DDS",
            [0x01, 0x11] => "Gurum DDS",
            [0x01, 0x12] => "RustDDS",
            [0x01, 0x14] => "Dust DDS",
            [0x01, 0xaa] => "HDDS",
            [0x01, 0xd7] => "Thalweg",
            _ => return None,
        })
    }
}

/// Which sample is meant: its writer, and its number within that (DDS-RPC 1.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleIdentity {
    /// Its writer.
    pub writer: Guid,
    /// Its number.
    pub sequence: SequenceNumber,
}

/// Version of the protocol (RTPS 2.5 §8.3.3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVersion {
    /// Incompatible when it differs.
    pub major: u8,
    /// Compatible extensions.
    pub minor: u8,
}

impl ProtocolVersion {
    /// Thalweg's vendor id.
    pub const V2_5: ProtocolVersion = ProtocolVersion { major: 2, minor: 5 };
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.prefix, self.entity)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for SequenceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "vendor {:02x}{:02x}", self.0[0], self.0[1]),
        }
    }
}

macro_rules! debug_as_display {
    ($($name:ident),*) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        })*
    };
}
debug_as_display!(GuidPrefix, EntityId, Guid, KeyHash, SequenceNumber, VendorId);

/// Below this a path is not believed: every IPv4 host takes packets of 576 bytes (RFC 791 §3.2), and a fragment has to have
/// room beside its headers. Smaller links cut the packets by IP.
pub(crate) const DATAGRAM_MIN_BYTES: usize = 576 - (1500 - ETHERNET_V4_DATAGRAM_BYTES);
