//! A tuned profile: what a search found best on a machine for each kind of data, in a file that programs load.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg::DomainParticipantBuilder;
use thalweg::qos::{History, ReaderQos, Reliability, ResourceLimits, WriterQos};

use crate::error::LabError;
use crate::scenario::{HistorySetting, ReliabilitySetting};
use crate::station::{PackingMethod, Sending, TokenBucket};

/// Settings for the three kinds of data of paper 1, and where they were found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Layout of this file: `thalweg.profile/1`.
    pub schema: String,
    /// Where and when it was found; of no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<ProfileOrigin>,
    /// Settings of the participant.
    #[serde(default)]
    pub participant: ParticipantSettings,
    /// Samples of at most a few KiB, thousands of them a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_frequency: Option<KindSettings>,
    /// Samples of several MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large: Option<KindSettings>,
    /// Transfers that must not disturb anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<KindSettings>,
    /// Flow controllers that the kinds may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_controllers: Vec<TokenBucket>,
}

/// Where a profile comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileOrigin {
    /// The command that found it.
    pub by: String,
    /// Start of that run, in seconds since 1970 UTC.
    pub started_unix_s: u64,
    /// Model of the CPU.
    pub cpu: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Version of Thalweg.
    pub version: String,
}

/// What a profile sets of a participant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParticipantSettings {
    /// Bytes to ask for in each socket's receive buffer; missing keeps the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
}

/// What a profile sets of the writers of one kind of data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindSettings {
    /// By what way samples travel.
    #[serde(flatten)]
    pub sending: Sending,
    /// Payload bytes of the samples that an application should split larger data into; advice that no setting enforces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_bytes: Option<u64>,
    /// How samples are delivered; missing leaves it to the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySettings>,
}

/// RELIABILITY and HISTORY of writers and readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverySettings {
    /// Whether lost samples are sent again.
    pub reliability: ReliabilitySetting,
    /// Longest wait of a reliable write for room, in microseconds.
    pub max_blocking_us: u64,
    /// The samples that are kept.
    pub history: HistorySetting,
}

/// A kind of data, by the words of paper 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataClass {
    /// Small samples, thousands a second.
    HighFrequency,
    /// Several MiB a sample.
    Large,
    /// Bulk that may wait.
    Background,
}

impl Profile {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.profile/1";

    /// A profile that sets nothing.
    pub fn empty() -> Profile {
        Profile {
            schema: Profile::SCHEMA.to_owned(),
            found: None,
            participant: ParticipantSettings::default(),
            high_frequency: None,
            large: None,
            background: None,
            flow_controllers: Vec::new(),
        }
    }

    /// Reads the profile in `path`.
    ///
    /// # Errors
    /// The file cannot be read or is no profile of this layout; the text names the line.
    pub fn load(path: &Path) -> Result<Profile, LabError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| LabError::Here(format!("the profile {shown} cannot be read: {error}")))?;
        Profile::parse(&text).map_err(|reason| LabError::Here(format!("{shown} is no profile: {reason}")))
    }

    /// Reads a profile's text.
    ///
    /// # Errors
    /// It is not TOML, has another layout, or names a flow controller that it does not describe.
    pub fn parse(text: &str) -> Result<Profile, String> {
        let profile: Profile = toml::from_str(text).map_err(|error| error.to_string())?;
        if profile.schema != Profile::SCHEMA {
            return Err(format!("its schema is {:?} where {:?} was expected", profile.schema, Profile::SCHEMA));
        }
        Ok(profile)
    }

    /// The file's text.
    ///
    /// # Errors
    /// A number does not fit TOML.
    pub fn to_toml(&self) -> Result<String, LabError> {
        toml::to_string(self).map_err(LabError::here)
    }

    /// What it sets for `kind`; `None` when it sets nothing.
    pub fn kind(&self, kind: DataClass) -> Option<&KindSettings> {
        match kind {
            DataClass::HighFrequency => self.high_frequency.as_ref(),
            DataClass::Large => self.large.as_ref(),
            DataClass::Background => self.background.as_ref(),
        }
    }

    /// Sets the participant's part.
    pub fn apply_to_participant(&self, builder: DomainParticipantBuilder) -> DomainParticipantBuilder {
        match self.participant.receive_buffer_bytes.map(usize::try_from) {
            Some(Ok(bytes)) => builder.receive_buffer(bytes),
            _ => builder,
        }
    }

    /// Sets the part of a writer of `kind`.
    pub fn apply_to_writer(&self, kind: DataClass, qos: WriterQos) -> WriterQos {
        match self.kind(kind) {
            Some(settings) => {
                let qos = settings.delivery.as_ref().map_or(qos.clone(), |delivery| delivery.apply_to_writer(qos));
                WriterQos { transmission: settings.sending.to_qos(), ..qos }
            }
            None => qos,
        }
    }

    /// Sets the part of a reader of `kind`.
    pub fn apply_to_reader(&self, kind: DataClass, qos: ReaderQos) -> ReaderQos {
        match self.kind(kind).and_then(|settings| settings.delivery.as_ref()) {
            Some(delivery) => delivery.apply_to_reader(qos),
            None => qos,
        }
    }

    /// The flow controller that this way of sending names, where the profile describes it.
    pub fn flow_controller(&self, sending: &Sending) -> Option<&TokenBucket> {
        let PackingMethod::Asynchronous { flow_controller } = &sending.method else { return None };
        self.flow_controllers.iter().find(|bucket| bucket.name == *flow_controller)
    }
}

impl DeliverySettings {
    fn apply_to_writer(&self, qos: WriterQos) -> WriterQos {
        let (history, resource_limits) = self.history();
        WriterQos { reliability: self.reliability(), history, resource_limits, ..qos }
    }

    fn apply_to_reader(&self, qos: ReaderQos) -> ReaderQos {
        let (history, resource_limits) = self.history();
        ReaderQos { reliability: self.reliability(), history, resource_limits, ..qos }
    }

    fn reliability(&self) -> Reliability {
        match self.reliability {
            ReliabilitySetting::BestEffort => Reliability::BestEffort,
            ReliabilitySetting::Reliable => {
                Reliability::Reliable { max_blocking_time: Duration::from_micros(self.max_blocking_us) }
            }
        }
    }

    fn history(&self) -> (History, ResourceLimits) {
        match self.history {
            HistorySetting::KeepLast(depth) => (History::KeepLast(depth), ResourceLimits::default()),
            HistorySetting::KeepAll(room) => {
                (History::KeepAll, ResourceLimits { max_samples: Some(room), ..ResourceLimits::default() })
            }
        }
    }
}

impl DataClass {
    /// The kind that samples of this size are, where nothing else is known: more than 8 KiB is large.
    pub fn of_size(bytes: u64) -> DataClass {
        if bytes <= 8 << 10 { DataClass::HighFrequency } else { DataClass::Large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::PackingLimits;

    fn profile() -> Profile {
        let limits = PackingLimits { max_bytes: 32_000, max_samples: None, max_flush_delay_us: 500 };
        Profile {
            found: Some(ProfileOrigin {
                by: "thalweg lab run paper1".to_owned(),
                started_unix_s: 1_795_294_025,
                cpu: "Xeon \"Gold\"".to_owned(),
                kernel: "6.12".to_owned(),
                version: "0.1.0".to_owned(),
            }),
            participant: ParticipantSettings { receive_buffer_bytes: Some(4 << 20) },
            high_frequency: Some(KindSettings {
                sending: Sending::by(PackingMethod::Batch(limits)),
                segment_bytes: None,
                delivery: None,
            }),
            large: Some(KindSettings { sending: Sending::default(), segment_bytes: Some(256 << 10), delivery: None }),
            background: Some(KindSettings {
                sending: Sending::by(PackingMethod::Asynchronous { flow_controller: "tokens-10".to_owned() }),
                segment_bytes: Some(32 << 10),
                delivery: None,
            }),
            flow_controllers: vec![TokenBucket::of_paper(Some(10))],
            ..Profile::empty()
        }
    }

    #[test]
    fn a_profile_survives_its_file_and_reaches_the_writer() {
        let text = profile().to_toml().expect("text");
        let read = Profile::parse(&text).expect(&text);
        assert_eq!(read, profile(), "{text}");
        let qos = read.apply_to_writer(DataClass::HighFrequency, WriterQos::default());
        let expect = thalweg::qos::Limits {
            max_bytes: 32_000,
            max_flush_delay: std::time::Duration::from_micros(500),
            ..thalweg::qos::Limits::default()
        };
        assert_eq!(qos.transmission.method, thalweg::qos::Method::Batch(expect));
        let controller = |kind| read.kind(kind).and_then(|settings| read.flow_controller(&settings.sending));
        assert_eq!(controller(DataClass::Background), Some(&TokenBucket::of_paper(Some(10))));
        assert_eq!(controller(DataClass::Large), None);
    }

    #[test]
    fn what_is_no_profile_says_why() {
        let check = |text: &str, expect: &str| {
            let reason = Profile::parse(text).expect_err("an error");
            assert!(reason.contains(expect), "{expect} not in {reason}");
        };
        check("schema = \"thalweg.profile/9\"", "thalweg.profile/1");
        check("schema = \"thalweg.profile/1\"\nsped = 1", "sped");
        check("schema = ", "line 1");
        check("schema = \"thalweg.profile/1\"\n[large]\nmethod = \"bach\"", "bach");
    }

    #[test]
    fn a_profile_of_nothing_changes_nothing() {
        let read = Profile::parse("schema = \"thalweg.profile/1\"").expect("allowed");
        assert_eq!(read, Profile::empty());
        assert_eq!(read.apply_to_writer(DataClass::Large, WriterQos::default()), WriterQos::default());
    }
}
