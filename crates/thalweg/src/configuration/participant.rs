//! Settings of participants.

use std::time::Duration;

use super::document::{Entry, Source};
use super::{EffectiveSetting, SettingOrigin, Sourced};
use crate::Error;

/// What a configuration sets of participants.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParticipantSettings {
    pub(crate) domain: Sourced<u32>,
    pub(crate) name: Sourced<String>,
    pub(crate) domain_tag: Sourced<String>,
    pub(crate) groups: Sourced<Vec<String>>,
    pub(crate) lease: Sourced<Duration>,
    pub(crate) peers: Sourced<Vec<String>>,
    pub(crate) network: NetworkSettings,
    pub(crate) limits: LimitSettings,
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

/// Every key, with the table that it stands in.
const KEYS: &[&str] = &[
    "domain",
    "participant.name",
    "participant.domain_tag",
    "participant.groups",
    "participant.lease",
    "participant.peers",
    "network.interfaces",
    "network.deny_interfaces",
    "network.loopback_only",
    "network.multicast",
    "network.ipv6",
    "network.receive_buffer_bytes",
    "limits.participants",
    "limits.endpoints_per_participant",
    "limits.bytes_per_participant",
    "limits.bytes",
];

/// Largest domain (RTPS 2.5 §9.6.2.3).
pub(super) const DOMAIN_MAX: u32 = 232;

/// Reads one setting; `key` is its name with its table.
pub(super) fn read(
    source: &Source<'_>,
    entry: &Entry<'_>,
    key: &str,
    settings: &mut ParticipantSettings,
) -> Result<(), Error> {
    let origin = source.origin(&entry.span);
    let ParticipantSettings { domain, name, domain_tag, groups, lease, peers, network, limits } = settings;
    match key {
        "domain" => {
            let asked = source.integer(entry)?;
            let value = u32::try_from(asked).ok().filter(|value| *value <= DOMAIN_MAX);
            let refused = || source.error(&entry.span, format!("domain is {asked}; it is 0 to {DOMAIN_MAX}"));
            *domain = Sourced { value: value.ok_or_else(refused)?, origin };
        }
        "participant.name" => *name = Sourced { value: source.text(entry)?, origin },
        "participant.domain_tag" => *domain_tag = Sourced { value: source.text(entry)?, origin },
        "participant.groups" => *groups = Sourced { value: source.texts(entry)?, origin },
        "participant.lease" => *lease = Sourced { value: source.duration(entry)?, origin },
        "participant.peers" => *peers = Sourced { value: source.texts(entry)?, origin },
        "network.interfaces" => network.interfaces = Sourced { value: source.texts(entry)?, origin },
        "network.deny_interfaces" => network.deny_interfaces = Sourced { value: source.texts(entry)?, origin },
        "network.loopback_only" => network.loopback_only = Sourced { value: source.flag(entry)?, origin },
        "network.multicast" => network.multicast = Sourced { value: source.flag(entry)?, origin },
        "network.ipv6" => network.ipv6 = Sourced { value: source.flag(entry)?, origin },
        "network.receive_buffer_bytes" => {
            network.receive_buffer_bytes = Sourced { value: source.count(entry, 1)?, origin };
        }
        "limits.participants" => limits.participants = Sourced { value: source.count(entry, 1)?, origin },
        "limits.endpoints_per_participant" => {
            limits.endpoints_per_participant = Sourced { value: source.count(entry, 1)?, origin };
        }
        "limits.bytes_per_participant" => {
            limits.bytes_per_participant = Sourced { value: source.count(entry, 1)?, origin };
        }
        "limits.bytes" => limits.bytes = Sourced { value: source.count(entry, 1)?, origin },
        _ => {
            let table = key.split_once('.').map_or("", |(table, _)| table);
            let of_table =
                |known: &'static str| known.split_once('.').filter(|(of, _)| *of == table).map(|(_, name)| name);
            let known: Vec<&str> = KEYS.iter().filter_map(|known| of_table(known)).collect();
            return Err(source.unknown(entry, &known));
        }
    }
    Ok(())
}

impl ParticipantSettings {
    /// Every setting; those that nobody set with the default of a participant.
    pub(super) fn settings(&self) -> Vec<EffectiveSetting> {
        let ParticipantSettings { domain, name, domain_tag, groups, lease, peers, network, limits } = self;
        let lease_text = lease.set().map_or("\"20s\"".to_owned(), |lease| format!("\"{lease:?}\""));
        let count = |of: &Sourced<usize>, default: usize| of.set().unwrap_or(&default).to_string();
        let usual = thalweg_rtps::discovery::DiscoveryLimits::default();
        let buffer = thalweg_transport::udp::UdpConfig::default().receive_buffer_bytes;
        let told: [(String, &SettingOrigin); 16] = [
            (domain.value.to_string(), &domain.origin),
            (format!("{:?}", name.value), &name.origin),
            (format!("{:?}", domain_tag.value), &domain_tag.origin),
            (format!("{:?}", groups.value), &groups.origin),
            (lease_text, &lease.origin),
            (format!("{:?}", peers.value), &peers.origin),
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
        let setting = |(key, (value, origin)): (&&str, (String, &SettingOrigin))| EffectiveSetting {
            key: (*key).to_owned(),
            value,
            origin: origin.clone(),
        };
        KEYS.iter().zip(told).map(setting).collect()
    }
}
