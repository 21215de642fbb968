//! The configuration of a participant, and its announcement.

use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use super::Event;
use super::Household;
use super::services::BuiltinService;
use super::types::TypeDirectory;
use crate::discovery::groups::{GROUPS_PROPERTY, Groups};
use crate::discovery::participant_data::{BATCH_PROPERTY, ParticipantData, ParticipantLocators};
use crate::discovery::{DiscoveryLimits, LocalAddresses};
use crate::history::PayloadKind;
use crate::types::{GuidPrefix, KeyHash, ProtocolVersion, VendorId};

/// Whether a reader wants a serialized sample. It is called with the participant locked: it reads the bytes and does no more.
pub type SampleFilter = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Computes the instance of a serialized sample or key (with encapsulation header); `None` when it is malformed.
pub type KeyOf = Arc<dyn Fn(&[u8], PayloadKind) -> Option<KeyHash> + Send + Sync>;

/// How a reader of a keyed topic learns the instances of its samples. Where no key can be computed, the hash counts that the writer
/// may have sent along.
#[derive(Clone, Default)]
pub enum KeySource {
    /// From that hash alone.
    #[default]
    Wire,
    /// By a function that the participant calls for each sample: it must be quick, pure and free of panics, since everything
    /// else of the participant waits for it.
    Function(KeyOf),
    /// By the driver, which asks the reader what to compute ([`Reader::poll_keys`](crate::reader::Reader::poll_keys)) after
    /// [`Event::KeysDue`] and may take its time: only the samples of the same writer to this reader wait.
    Driver,
}

/// The configuration of a participant.
#[derive(Clone, Debug)]
pub struct ParticipantConfig {
    /// Domain, 0 to 232 with the standard port mapping.
    pub domain_id: u32,
    /// Domain tag: participants with another tag are not discovered (DDS-Security 1.1 §7.3.9, RTPS 2.5 §9.6.3.2). Default empty.
    pub domain_tag: String,
    /// First part of all its GUIDs. It must differ from that of every other participant that ever was in the domain.
    pub prefix: GuidPrefix,
    /// Seed of jitter, and of the numbers by which others prove their address: it must come from the system's entropy, and stay
    /// secret.
    pub seed: u64,
    /// Name shown to people.
    pub entity_name: String,
    /// USER_DATA of the participant.
    pub user_data: Vec<u8>,
    /// Communication groups; none means the default group, unless USER_DATA names some.
    pub groups: Groups,
    /// Properties announced to peers.
    pub properties: Vec<(String, String)>,
    /// How long peers keep us after our last sign of life. Default 20 s; announcements repeat after a quarter of it.
    pub lease_duration: Duration,
    /// Addresses of this participant.
    pub addresses: LocalAddresses,
    /// Receive buffer of the user-data socket in bytes, announced so that writers size their windows by it. Default 212,992, that of
    /// Linux.
    pub receive_buffer_bytes: u32,
    /// Identifies this host: equal for participants that can reach each other by loopback.
    pub host: [u8; 16],
    /// Built-in topics that the driver registers. Default none.
    pub services: Vec<BuiltinService>,
    /// Bounds on what peers can make us remember.
    pub limits: DiscoveryLimits,
    /// Memory that unfinished large samples may take together. Default 1.25 GiB, of which one remote
    /// writer may take seven eighths: room for one sample of 1 GiB.
    pub reassembly_bytes_max: usize,
    /// First count of HEARTBEATs, and of ACKNACKs and NACK_FRAGs of user-defined readers. Default 1; tests begin shortly before the
    /// end of the numbers.
    pub first_count: u32,
    /// The driver's knowledge of types. Default none: types are then known by their names alone.
    pub types: Option<Arc<dyn TypeDirectory>>,
    /// The household of the participants of its process. Default: a new one, with no other participant.
    pub household: Household,
}

impl ParticipantConfig {
    /// A configuration with default values for everything else.
    pub fn new(domain_id: u32, prefix: GuidPrefix, addresses: LocalAddresses) -> ParticipantConfig {
        ParticipantConfig {
            domain_id,
            domain_tag: String::new(),
            prefix,
            seed: 0,
            entity_name: String::new(),
            user_data: Vec::new(),
            groups: Groups::default(),
            properties: Vec::new(),
            lease_duration: Duration::from_secs(20),
            addresses,
            receive_buffer_bytes: 212_992,
            host: [0; 16],
            services: Vec::new(),
            limits: DiscoveryLimits::default(),
            reassembly_bytes_max: (1 << 30) + (1 << 28),
            first_count: 1,
            types: None,
            household: Household::default(),
        }
    }
    /// The announcement of a participant with these built-in endpoints.
    pub(super) fn announced(&self, builtin_endpoints: u32) -> ParticipantData {
        let mut properties = self.properties.clone();
        let (name, value) = BATCH_PROPERTY;
        properties.push((name.to_owned(), value.to_owned()));
        let mut user_data = self.user_data.clone();
        if !self.groups.is_empty() {
            properties.push((GROUPS_PROPERTY.to_owned(), self.groups.to_string()));
            // An entry that the application wrote itself stays as it is: the property takes precedence over it.
            let _ = self.groups.add_to_user_data(&mut user_data);
        }
        ParticipantData {
            version: ProtocolVersion::V2_5,
            vendor: VendorId::THALWEG,
            domain_id: Some(self.domain_id),
            domain_tag: self.domain_tag.clone(),
            builtin_endpoints,
            locators: ParticipantLocators {
                metatraffic_unicast: self.addresses.metatraffic_unicast.clone(),
                metatraffic_multicast: self.addresses.metatraffic_multicast.clone(),
                default_unicast: self.addresses.default_unicast.clone(),
                default_multicast: self.addresses.default_multicast.clone(),
                link_mtus: self.addresses.link_mtus.clone(),
            },
            lease_duration: self.lease_duration,
            user_data,
            entity_name: self.entity_name.clone(),
            properties,
            receive_buffer_bytes: Some(self.receive_buffer_bytes),
            host: Some(self.host),
            ..ParticipantData::new(self.prefix)
        }
    }
}
