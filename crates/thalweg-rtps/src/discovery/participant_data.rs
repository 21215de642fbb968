//! Announced data of a participant: SPDP's `DATA(p)` (RTPS 2.5 §8.5.3.2).

use std::time::Duration;

use super::LOCATORS_MAX;
use super::parameters::{add_locator, ignore_unknown, key_in};
use crate::types::{EntityId, Guid, GuidPrefix, Locator, ProtocolVersion, VendorId};
use crate::wire::WireError;
use crate::wire::parameters::{Parameter, ParameterList, ParameterReader, ParameterWriter};
use crate::wire::pid;

/// The announced data of a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantData {
    /// First part of its GUIDs.
    pub guid_prefix: GuidPrefix,
    /// RTPS version that it speaks.
    pub version: ProtocolVersion,
    /// Its vendor, which decides the meaning of vendor-specific parameters.
    pub vendor: VendorId,
    /// Its domain; `None` when it announces none (before RTPS 2.3).
    pub domain_id: Option<u32>,
    /// Separates participants of one domain: only those with equal tags discover each other. Default empty.
    pub domain_tag: String,
    /// True when its readers need QoS with every sample. Default false.
    pub expects_inline_qos: bool,
    /// Bits of the built-in endpoints that it has (RTPS 2.5 §9.3.2).
    pub builtin_endpoints: u32,
    /// Its locators.
    pub locators: ParticipantLocators,
    /// How long it may be silent before it counts as gone. Default 100 s.
    pub lease_duration: Duration,
    /// USER_DATA of its application.
    pub user_data: Vec<u8>,
    /// Name that its application gave it; empty for none.
    pub entity_name: String,
    /// Pairs of name and value that its vendor or application announces; at most [`PROPERTIES_MAX`] are read.
    pub properties: Vec<(String, String)>,
    /// Bytes of its socket receive buffer; read only from Thalweg and Cyclone DDS, written only for Thalweg.
    pub receive_buffer_bytes: Option<u32>,
    /// Equal for all participants of one running operating system; read and written only for Thalweg.
    pub host: Option<[u8; 16]>,
}

/// The locators of a participant, at most [`LOCATORS_MAX`] of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParticipantLocators {
    /// For discovery, to this participant alone.
    pub metatraffic_unicast: Vec<Locator>,
    /// For discovery, to all.
    pub metatraffic_multicast: Vec<Locator>,
    /// For user data, to this participant alone, unless an endpoint names its own address.
    pub default_unicast: Vec<Locator>,
    /// For user data, to all, unless an endpoint names its own address.
    pub default_multicast: Vec<Locator>,
    /// MTUs of the links behind the unicast addresses, where they are not 1500 bytes; read and written only for Thalweg.
    pub link_mtus: Vec<LinkMtu>,
}

/// The largest IP packet that a link carries, and the address of the participant that the link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkMtu {
    /// The address, as in a [`Locator`].
    pub address: [u8; 16],
    /// Bytes of an IP packet with its headers.
    pub bytes: u32,
}

impl ParticipantData {
    /// The data of a Thalweg participant, with default values for everything else.
    pub fn new(guid_prefix: GuidPrefix) -> ParticipantData {
        ParticipantData {
            guid_prefix,
            version: ProtocolVersion::V2_5,
            vendor: VendorId::THALWEG,
            domain_id: None,
            domain_tag: String::new(),
            expects_inline_qos: false,
            builtin_endpoints: 0,
            locators: ParticipantLocators::default(),
            lease_duration: LEASE_DURATION,
            user_data: Vec::new(),
            entity_name: String::new(),
            properties: Vec::new(),
            receive_buffer_bytes: None,
            host: None,
        }
    }

    /// GUID of the participant itself.
    pub fn guid(&self) -> Guid {
        Guid::new(self.guid_prefix, EntityId::PARTICIPANT)
    }

    /// Whether its readers understand DATA_BATCH: Thalweg's own announcement, independent of other vendors' batches.
    pub fn understands_batches(&self) -> bool {
        let (name, value) = BATCH_PROPERTY;
        self.vendor == VendorId::THALWEG && self.properties.iter().any(|(n, v)| n == name && v == value)
    }

    /// Appends the payload of a `DATA(p)`, with its encapsulation header (PL_CDR_LE). Defaults are left out.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut list = ParameterWriter::encapsulated(out);
        list.put(pid::PROTOCOL_VERSION, |value| value.extend_from_slice(&[self.version.major, self.version.minor]));
        list.put(pid::VENDOR_ID, |value| value.extend_from_slice(&self.vendor.0));
        list.put(pid::PARTICIPANT_GUID, |value| value.guid(self.guid()));
        list.put(pid::BUILTIN_ENDPOINT_SET, |value| value.u32(self.builtin_endpoints));
        list.put_duration(pid::PARTICIPANT_LEASE_DURATION, self.lease_duration);
        if let Some(domain_id) = self.domain_id {
            list.put(pid::DOMAIN_ID, |value| value.u32(domain_id));
        }
        if !self.domain_tag.is_empty() {
            list.put_string(pid::DOMAIN_TAG, &self.domain_tag);
        }
        if self.expects_inline_qos {
            list.put(pid::EXPECTS_INLINE_QOS, |value| value.boolean(true));
        }
        list.put_locators(pid::METATRAFFIC_UNICAST_LOCATOR, &self.locators.metatraffic_unicast);
        list.put_locators(pid::METATRAFFIC_MULTICAST_LOCATOR, &self.locators.metatraffic_multicast);
        list.put_locators(pid::DEFAULT_UNICAST_LOCATOR, &self.locators.default_unicast);
        list.put_locators(pid::DEFAULT_MULTICAST_LOCATOR, &self.locators.default_multicast);
        list.put_octets(pid::USER_DATA, &self.user_data);
        if !self.entity_name.is_empty() {
            list.put_string(pid::ENTITY_NAME, &self.entity_name);
        }
        if !self.properties.is_empty() {
            put_properties(&mut list, &self.properties);
        }
        if self.vendor == VendorId::THALWEG {
            if let Some(bytes) = self.receive_buffer_bytes {
                list.put(pid::THALWEG_RECEIVE_BUFFER, |value| value.u32(bytes));
            }
            if let Some(host) = self.host {
                list.put(pid::THALWEG_HOST, |value| value.extend_from_slice(&host));
            }
            for link in &self.locators.link_mtus {
                list.put(pid::THALWEG_LINK_MTU, |value| {
                    value.extend_from_slice(&link.address);
                    value.u32(link.bytes);
                });
            }
        }
        list.finish();
    }

    /// Parses the payload of a `DATA(p)`. Parameters that are missing have their defaults, unknown ones are skipped.
    ///
    /// # Errors
    /// When the list is malformed, names no participant, or has a parameter that must be understood and is not: the
    /// participant is then to be ignored.
    pub fn decode(payload: &[u8]) -> Result<ParticipantData, WireError> {
        let list = ParameterList::from_payload(payload)?;
        let mut data = ParticipantData::new(ParticipantData::decode_key(payload)?);
        data.version = OLDEST_VERSION;
        // The vendor decides how the other parameters are read, wherever it stands in the list.
        data.vendor = match list.find(pid::VENDOR_ID) {
            Some(parameter) => VendorId(parameter.reader().array()?),
            None => VendorId::UNKNOWN,
        };
        for parameter in list.iter() {
            data.apply(&parameter?)?;
        }
        Ok(data)
    }

    fn apply(&mut self, parameter: &Parameter<'_>) -> Result<(), WireError> {
        let mut value = parameter.reader();
        match parameter.id {
            pid::PARTICIPANT_GUID | pid::VENDOR_ID => {}
            pid::PROTOCOL_VERSION => {
                let [major, minor] = value.array()?;
                self.version = ProtocolVersion { major, minor };
            }
            pid::DOMAIN_ID => self.domain_id = Some(value.u32()?),
            pid::DOMAIN_TAG => self.domain_tag = value.string()?.to_owned(),
            pid::EXPECTS_INLINE_QOS => self.expects_inline_qos = value.boolean()?,
            pid::BUILTIN_ENDPOINT_SET | pid::PARTICIPANT_BUILTIN_ENDPOINTS => self.builtin_endpoints |= value.u32()?,
            pid::PARTICIPANT_LEASE_DURATION => self.lease_duration = value.duration()?,
            pid::METATRAFFIC_UNICAST_LOCATOR => add_locator(&mut self.locators.metatraffic_unicast, value.locator()?),
            pid::METATRAFFIC_MULTICAST_LOCATOR => {
                add_locator(&mut self.locators.metatraffic_multicast, value.locator()?);
            }
            pid::DEFAULT_UNICAST_LOCATOR => add_locator(&mut self.locators.default_unicast, value.locator()?),
            pid::DEFAULT_MULTICAST_LOCATOR => add_locator(&mut self.locators.default_multicast, value.locator()?),
            pid::USER_DATA => self.user_data = value.octets()?.to_vec(),
            pid::ENTITY_NAME => self.entity_name = lossy(value.string_bytes()?),
            pid::PROPERTY_LIST => self.properties = properties(&mut value)?,
            pid::CYCLONE_RECEIVE_BUFFER if self.vendor == VendorId::CYCLONE => {
                self.receive_buffer_bytes = Some(value.u32()?);
            }
            pid::THALWEG_RECEIVE_BUFFER if self.vendor == VendorId::THALWEG => {
                self.receive_buffer_bytes = Some(value.u32()?);
            }
            pid::THALWEG_HOST if self.vendor == VendorId::THALWEG => self.host = Some(value.array()?),
            pid::THALWEG_LINK_MTU if self.vendor == VendorId::THALWEG => {
                let link = LinkMtu { address: value.array()?, bytes: value.u32()? };
                if self.locators.link_mtus.len() < LOCATORS_MAX {
                    self.locators.link_mtus.push(link);
                }
            }
            _ => ignore_unknown(parameter)?,
        }
        Ok(())
    }

    /// Appends the key-only payload that announces the end of the participant `prefix`, with its encapsulation header.
    pub fn encode_key(prefix: GuidPrefix, out: &mut Vec<u8>) {
        let mut list = ParameterWriter::encapsulated(out);
        list.put(pid::PARTICIPANT_GUID, |value| value.guid(Guid::new(prefix, EntityId::PARTICIPANT)));
        list.finish();
    }

    /// The participant that a payload, whole or key-only, is about.
    ///
    /// # Errors
    /// When no well-formed participant GUID is in it.
    pub fn decode_key(payload: &[u8]) -> Result<GuidPrefix, WireError> {
        let (guid, offset) = key_in(payload, pid::PARTICIPANT_GUID, "PID_PARTICIPANT_GUID in the list")?;
        match guid {
            Guid { prefix, entity: EntityId::PARTICIPANT } if prefix != GuidPrefix::UNKNOWN => Ok(prefix),
            _ => Err(WireError { offset, expected: "GUID of a participant" }),
        }
    }
}

fn put_properties(list: &mut ParameterWriter<'_>, properties: &[(String, String)]) {
    list.put(pid::PROPERTY_LIST, |value| {
        value.u32(properties.len() as u32);
        for (name, text) in properties {
            value.string(name);
            value.string(text);
        }
    });
}

/// Reads the text properties; the binary ones that may follow are skipped.
fn properties(value: &mut ParameterReader<'_>) -> Result<Vec<(String, String)>, WireError> {
    let count = value.u32()? as usize;
    let mut properties = Vec::new();
    for _ in 0..count.min(PROPERTIES_MAX) {
        let name = lossy(value.string_bytes()?);
        properties.push((name, lossy(value.string_bytes()?)));
    }
    Ok(properties)
}

/// Text that is only shown or compared with ASCII names: a peer's odd encoding is no reason to ignore the peer.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Property by which a participant announces that it understands DATA_BATCH.
pub const BATCH_PROPERTY: (&str, &str) = ("thalweg.batch", "1");

/// Most properties that are read of a participant; the rest is skipped. Chosen by Thalweg: peers send fewer than ten.
pub const PROPERTIES_MAX: usize = 64;

/// Lease of a participant that announces none (RTPS 2.5 §8.5.3.2).
const LEASE_DURATION: Duration = Duration::from_secs(100);
/// The version of a participant that announces none.
const OLDEST_VERSION: ProtocolVersion = ProtocolVersion { major: 2, minor: 0 };

#[cfg(test)]
mod tests;
