//! Configuration without recompiling: a TOML file and the environment.
//!
//! [`DomainParticipantBuilder::create`](crate::DomainParticipantBuilder::create) reads the file that `THALWEG_CONFIG` names, if it is
//! set, and the environment below; settings in the program come first, except for the QoS of topics, where the file does: whoever writes
//! a topic into the file means it. `thalweg config` shows each effective value and where it came from.
//!
//! ```toml
//! domain = 7                         # of programs that leave it open, see DomainParticipant::configured
//!
//! [participant]
//! name = "rover"                     # also: domain_tag = "", groups = ["radar"], lease = "20s"
//! peers = ["10.0.0.2", "10.0.0.3:7410"]
//!
//! [network]
//! interfaces = ["eth0"]              # also: deny_interfaces, loopback_only, multicast, ipv6, receive_buffer_bytes
//!
//! [limits]
//! participants = 2000                # also: endpoints_per_participant, bytes_per_participant, bytes
//!
//! [profile.base]
//! reliability = "reliable"
//! history = "keep_all"
//!
//! [profile.latched]
//! inherits = ["base"]                # later names and the profile's own keys come first
//! durability = "transient_local"
//!
//! [[topic]]
//! name = "rt/map*"                   # a pattern with * and ?; the first that fits a topic counts
//! profile = "latched"                # or one for each side: writer_profile, reader_profile
//! ```
//!
//! | key of a profile | values | side |
//! |---|---|---|
//! | `reliability` | `"best_effort"`, `"reliable"` | both |
//! | `durability` | `"volatile"`, `"transient_local"`, `"transient"`, `"persistent"` | both |
//! | `service_history`, `service_depth`, `service_max_samples`, `service_max_instances`, `service_max_samples_per_instance` | DURABILITY_SERVICE, as the keys without `service_` | writers |
//! | `service_cleanup_delay` | a duration | writers |
//! | `history`, `depth` | `"keep_last"` with a depth from 1, `"keep_all"` | both |
//! | `max_samples`, `max_instances`, `max_samples_per_instance` | numbers from 1 | both |
//! | `deadline`, `latency_budget`, `liveliness_lease` | durations as `"100ms"`, `"2s"`, `"infinite"` | both |
//! | `liveliness` | `"automatic"`, `"manual_by_participant"`, `"manual_by_topic"` | both |
//! | `ownership` | `"shared"`, `"exclusive"` | both |
//! | `destination_order` | `"by_reception"`, `"by_source"` | both |
//! | `representation` | a list of `"xcdr1"`, `"xcdr2"` | both |
//! | `partition` | a list of names | both |
//! | `max_blocking_time`, `lifespan`, `reader_patience`, `heartbeat_period` | durations | writers |
//! | `transport_priority`, `ownership_strength`, `max_datagram_bytes` | numbers | writers |
//! | `autodispose` | `true`, `false` | writers |
//! | `method`, `flow_controller` | `"auto"`, `"immediate"`, `"coalesce"`, `"batch"`, `"asynchronous"` | writers |
//! | `destination` | `"auto"`, `"unicast"`, `"multicast"` | writers |
//! | `minimum_separation` | a duration | readers |
//! | `autopurge_nowriter_samples_delay`, `autopurge_disposed_samples_delay` | durations | readers |
//!
//! | variable | effect |
//! |---|---|
//! | `THALWEG_CONFIG` | the file |
//! | `THALWEG_DOMAIN`, else `ROS_DOMAIN_ID` | the domain of programs that leave it open; comes before the file |
//! | `ROS_AUTOMATIC_DISCOVERY_RANGE` | `SUBNET` and `SYSTEM_DEFAULT`: no effect; `LOCALHOST`: no multicast, so that only participants of this host, peers, and those elsewhere that name this host as a peer are met; `OFF`: nobody is met, whatever peers and domain tag the program names |
//! | `ROS_STATIC_PEERS` | further peers, separated by `;`; without effect where the range is `OFF` |

mod document;
mod environment;
mod participant;
mod profiles;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_rtps::qos::{ReaderQos, WriterQos};

use crate::{Error, ErrorKind};
pub(crate) use participant::ParticipantSettings;
use profiles::Profiles;

/// Settings that were read from a file and the environment. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    parts: Arc<Parts>,
}

#[derive(Clone, Debug, Default)]
struct Parts {
    participant: ParticipantSettings,
    profiles: Profiles,
}

/// Where a setting came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingOrigin {
    /// Nobody has set it.
    #[default]
    Default,
    /// A line of a file.
    File {
        /// The file, as it was named.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(&'static str),
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::File { path, line } => write!(f, "{}:{line}", path.display()),
            SettingOrigin::Environment(name) => f.write_str(name),
        }
    }
}

/// One effective setting, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectiveSetting {
    /// Its key, with the table that it stands in, such as `network.multicast`.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
    /// Where it came from.
    pub origin: SettingOrigin,
}

impl Configuration {
    /// A configuration that sets nothing.
    pub fn new() -> Configuration {
        Configuration::default()
    }

    /// The file that `THALWEG_CONFIG` names, if any, and the other variables of the environment.
    ///
    /// # Errors
    /// As [`Configuration::load`], and for a variable that cannot be used.
    pub fn from_environment() -> Result<Configuration, Error> {
        Configuration::from_variables(variable)
    }

    /// As [`Configuration::from_environment`], of the variables that `variable` reads.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Configuration, Error> {
        let configuration = match variable("THALWEG_CONFIG") {
            Some(path) => Configuration::load(path)?,
            None => Configuration::new(),
        };
        configuration.with_variables(variable)
    }

    /// These settings with the variables of the environment in their place, but for `THALWEG_CONFIG`: what participants use of a file
    /// that this variable names.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for a variable that cannot be used.
    pub fn with_environment(self) -> Result<Configuration, Error> {
        self.with_variables(variable)
    }

    /// The settings in a file.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when it cannot be read, is not TOML, or has a key or value that is not known: the text names file,
    /// line and the nearest known key.
    pub fn load(path: impl AsRef<Path>) -> Result<Configuration, Error> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| {
            let cause = format!("cannot read {}: {error}", path.display());
            Error::new(ErrorKind::BadParameter, "configuration", cause).because(error)
        };
        Configuration::parse(&std::fs::read_to_string(path).map_err(failed)?, path)
    }

    /// The settings in a text; `path` is the name that errors and origins give it.
    ///
    /// # Errors
    /// As [`Configuration::load`].
    pub fn parse(text: &str, path: impl AsRef<Path>) -> Result<Configuration, Error> {
        document::read(text, path.as_ref()).map(|parts| Configuration { parts: Arc::new(parts) })
    }

    /// The domain for programs that leave it open, 0 unless set.
    pub fn domain(&self) -> u32 {
        self.parts.participant.domain.value
    }

    /// `qos` with what is set for writers of this topic in its place.
    pub fn writer_qos(&self, topic: &str, qos: &WriterQos) -> WriterQos {
        self.parts.profiles.writer_qos(topic, qos)
    }

    /// As [`Configuration::writer_qos`] for readers.
    pub fn reader_qos(&self, topic: &str, qos: &ReaderQos) -> ReaderQos {
        self.parts.profiles.reader_qos(topic, qos)
    }

    /// Every setting of participants with its effective value, then those of the profiles and the topics that use them.
    pub fn settings(&self) -> Vec<EffectiveSetting> {
        let mut settings = self.parts.participant.settings();
        settings.extend(self.parts.profiles.settings());
        settings
    }

    /// What is set for endpoints of this topic.
    pub fn topic_settings(&self, topic: &str) -> Vec<EffectiveSetting> {
        self.parts.profiles.topic_settings(topic)
    }

    /// Where the settings for endpoints of this topic come from, for errors; empty when there are none.
    pub(crate) fn note(&self, topic: &str) -> String {
        let origins: std::collections::BTreeSet<String> =
            self.topic_settings(topic).iter().map(|setting| setting.origin.to_string()).collect();
        let listed = origins.into_iter().collect::<Vec<_>>().join(", ");
        if listed.is_empty() { listed } else { format!(" (with the settings of {listed})") }
    }

    pub(crate) fn participant(&self) -> &ParticipantSettings {
        &self.parts.participant
    }
}

/// A variable of the environment; `None` where it is not set or empty.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A setting and where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: SettingOrigin,
}

impl<T> Sourced<T> {
    fn default_of(value: T) -> Sourced<T> {
        Sourced { value, origin: SettingOrigin::Default }
    }

    /// The value, unless it is the default.
    pub(crate) fn set(&self) -> Option<&T> {
        (self.origin != SettingOrigin::Default).then_some(&self.value)
    }
}
