//! Settings of participants.

use std::path::Path;
use std::time::Duration;

use thalweg_settings::{SettingsError, SettingsTable, SettingsValue};

use super::document::{duration, duration_text, origin, texts};
use super::{EffectiveSetting, SettingOrigin, Sourced};

/// What a configuration sets of participants.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParticipantSettings {
    pub(crate) domain: Sourced<u32>,
    pub(crate) name: Sourced<String>,
    pub(crate) domain_tag: Sourced<String>,
    pub(crate) groups: Sourced<Vec<String>>,
    pub(crate) lease: Sourced<Duration>,
    pub(crate) peers: Sourced<Vec<String>>,
    pub(crate) store: Sourced<String>,
    pub(crate) network: NetworkSettings,
    pub(crate) limits: LimitSettings,
    /// Nobody is met, whatever peers and domain tag the program names.
    pub(crate) is_alone: bool,
}

/// The table `network`.
#[derive(Clone, Debug)]
pub(crate) struct NetworkSettings {
    pub(crate) interfaces: Sourced<Vec<String>>,
    pub(crate) deny_interfaces: Sourced<Vec<String>>,
    pub(crate) loopback_only: Sourced<bool>,
    pub(crate) multicast: Sourced<bool>,
    pub(crate) ipv6: Sourced<bool>,
    pub(crate) receive_buffer_bytes: Sourced<usize>,
}

/// The table `limits`.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitSettings {
    pub(crate) participants: Sourced<usize>,
    pub(crate) endpoints_per_participant: Sourced<usize>,
    pub(crate) bytes_per_participant: Sourced<usize>,
    pub(crate) bytes: Sourced<usize>,
}

impl Default for NetworkSettings {
    fn default() -> NetworkSettings {
        NetworkSettings {
            interfaces: Sourced::default(),
            deny_interfaces: Sourced::default(),
            loopback_only: Sourced::default_of(false),
            multicast: Sourced::default_of(true),
            ipv6: Sourced::default_of(true),
            receive_buffer_bytes: Sourced::default(),
        }
    }
}

/// The keys of each table.
const PARTICIPANT: &[&str] = &["name", "domain_tag", "groups", "lease", "peers", "store"];
const NETWORK: &[&str] =
    &["interfaces", "deny_interfaces", "loopback_only", "multicast", "ipv6", "receive_buffer_bytes"];
const LIMITS: &[&str] = &["participants", "endpoints_per_participant", "bytes_per_participant", "bytes"];

/// Largest domain (RTPS 2.5 §9.6.2.3).
pub(super) const DOMAIN_MAX: u32 = 232;

/// Reads the settings of participants in a whole file.
pub(super) fn read(root: &SettingsTable<'_>, path: &Path) -> Result<ParticipantSettings, SettingsError> {
    let ParticipantSettings {
        mut domain,
        mut name,
        mut domain_tag,
        mut groups,
        mut lease,
        mut peers,
        mut store,
        network,
        limits,
        is_alone,
    } = ParticipantSettings::default();
    set(root, "domain", path, &mut domain, |field| field.integer(0, DOMAIN_MAX))?;
    if let Some(table) = root.get("participant").map(|field| field.table((PARTICIPANT, &[]))).transpose()? {
        set(&table, "name", path, &mut name, text)?;
        set(&table, "domain_tag", path, &mut domain_tag, text)?;
        set(&table, "groups", path, &mut groups, texts)?;
        set(&table, "lease", path, &mut lease, |field| duration(field.text()?).map_err(|cause| field.error(cause)))?;
        set(&table, "peers", path, &mut peers, texts)?;
        set(&table, "store", path, &mut store, text)?;
    }
    let network = root.or("network", network, |field| read_network(&field.table((NETWORK, &[]))?, path))?;
    let limits = root.or("limits", limits, |field| read_limits(&field.table((LIMITS, &[]))?, path))?;
    Ok(ParticipantSettings { domain, name, domain_tag, groups, lease, peers, store, network, limits, is_alone })
}

fn read_network(table: &SettingsTable<'_>, path: &Path) -> Result<NetworkSettings, SettingsError> {
    let mut network = NetworkSettings::default();
    set(table, "interfaces", path, &mut network.interfaces, texts)?;
    set(table, "deny_interfaces", path, &mut network.deny_interfaces, texts)?;
    set(table, "loopback_only", path, &mut network.loopback_only, SettingsValue::truth)?;
    set(table, "multicast", path, &mut network.multicast, SettingsValue::truth)?;
    set(table, "ipv6", path, &mut network.ipv6, SettingsValue::truth)?;
    set(table, "receive_buffer_bytes", path, &mut network.receive_buffer_bytes, count)?;
    Ok(network)
}

fn read_limits(table: &SettingsTable<'_>, path: &Path) -> Result<LimitSettings, SettingsError> {
    let mut limits = LimitSettings::default();
    set(table, "participants", path, &mut limits.participants, count)?;
    set(table, "endpoints_per_participant", path, &mut limits.endpoints_per_participant, count)?;
    set(table, "bytes_per_participant", path, &mut limits.bytes_per_participant, count)?;
    set(table, "bytes", path, &mut limits.bytes, count)?;
    Ok(limits)
}

/// Sets what a key is given for; leaves the default where it is not.
fn set<'a, T>(
    table: &SettingsTable<'a>,
    key: &'a str,
    path: &Path,
    setting: &mut Sourced<T>,
    read: impl FnOnce(&SettingsValue<'a>) -> Result<T, SettingsError>,
) -> Result<(), SettingsError> {
    if let Some(field) = table.get(key) {
        *setting = Sourced { value: read(&field)?, origin: origin(path, &field) };
    }
    Ok(())
}

fn text(field: &SettingsValue<'_>) -> Result<String, SettingsError> {
    field.text().map(str::to_owned)
}

fn count(field: &SettingsValue<'_>) -> Result<usize, SettingsError> {
    field.integer(1, usize::MAX)
}

impl ParticipantSettings {
    /// Every setting; those that nobody set with the default of a participant.
    pub(super) fn settings(&self) -> Vec<EffectiveSetting> {
        let ParticipantSettings { domain, name, domain_tag, groups, lease, peers, store, network, limits, .. } = self;
        let lease_text = lease.set().map_or("\"20s\"".to_owned(), |lease| format!("\"{}\"", duration_text(*lease)));
        let count = |of: &Sourced<usize>, default: usize| of.set().unwrap_or(&default).to_string();
        let usual = thalweg_rtps::discovery::DiscoveryLimits::default();
        let buffer = thalweg_transport::udp::UdpConfig::default().receive_buffer_bytes;
        let told: [(String, &SettingOrigin); 17] = [
            (domain.value.to_string(), &domain.origin),
            (format!("{:?}", name.value), &name.origin),
            (format!("{:?}", domain_tag.value), &domain_tag.origin),
            (format!("{:?}", groups.value), &groups.origin),
            (lease_text, &lease.origin),
            (format!("{:?}", peers.value), &peers.origin),
            (format!("{:?}", store.value), &store.origin),
            (format!("{:?}", network.interfaces.value), &network.interfaces.origin),
            (format!("{:?}", network.deny_interfaces.value), &network.deny_interfaces.origin),
            (network.loopback_only.value.to_string(), &network.loopback_only.origin),
            (network.multicast.value.to_string(), &network.multicast.origin),
            (network.ipv6.value.to_string(), &network.ipv6.origin),
            (count(&network.receive_buffer_bytes, buffer), &network.receive_buffer_bytes.origin),
            (count(&limits.participants, usual.participants_max), &limits.participants.origin),
            (
                count(&limits.endpoints_per_participant, usual.endpoints_per_participant_max),
                &limits.endpoints_per_participant.origin,
            ),
            (
                count(&limits.bytes_per_participant, usual.bytes_per_participant_max),
                &limits.bytes_per_participant.origin,
            ),
            (count(&limits.bytes, usual.bytes_max), &limits.bytes.origin),
        ];
        let tables = [("participant.", PARTICIPANT), ("network.", NETWORK), ("limits.", LIMITS)];
        let keys = tables.iter().flat_map(|(table, keys)| keys.iter().map(move |key| format!("{table}{key}")));
        let keys = std::iter::once("domain".to_owned()).chain(keys);
        let setting = |(key, (value, origin)): (String, (String, &SettingOrigin))| EffectiveSetting {
            key,
            value,
            origin: origin.clone(),
        };
        keys.zip(told).map(setting).collect()
    }
}
