//! Transmission method and destination of a writer, as options and as a profile's file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use thalweg_lab::profile::{DataClass, Profile};
use thalweg_lab::station::{Addressing, PackingLimits, PackingMethod, Sending};

use crate::outcome::Failure;

/// Options of every command that writes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Transmission")]
pub struct SendingOptions {
    /// Let samples share datagrams in this way; --max-bytes, --max-samples and --flush-delay limit what coalesce and batch collect, whichever is
    /// reached first (default: auto, or the method of --profile).
    #[arg(long, value_enum, value_name = "METHOD")]
    pub method: Option<MethodName>,

    /// Collect at most N bytes of serialized samples (default: 60000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_bytes: Option<u64>,

    /// Collect at most N samples (default: any number).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_samples: Option<u64>,

    /// Let no sample wait longer than D for others, a number with us, ms or s such as 250us (default: 1ms).
    #[arg(long, value_name = "D", value_parser = crate::parse::duration)]
    pub flush_delay: Option<std::time::Duration>,

    /// Send under the flow controller NAME; implies --method asynchronous (default: background).
    #[arg(long, value_name = "NAME")]
    pub flow_controller: Option<String>,

    /// Send datagrams to these addresses (default: auto, or what --profile says).
    #[arg(long, value_enum, value_name = "WHERE")]
    pub destination: Option<DestinationName>,

    /// Send no datagram of more than N bytes, 548 to 65000; larger samples leave in fragments (default: as large as the path takes).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(548..=65_000))]
    pub max_datagram: Option<u64>,

    /// Ask a reader again after D for an acknowledgement that it owes, or after four round trips if that is longer; 1ms to 3s (default:
    /// 20ms).
    #[arg(long, value_name = "D", value_parser = crate::parse::duration)]
    pub heartbeat_period: Option<std::time::Duration>,

    /// Start from the profile in FILE, which `thalweg lab profile` or `lab run paper1` writes; the other options replace parts of it, and
    /// `pub` without --qos takes its reliability and history (default: none).
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// The part of the profile to take (default: high-frequency for samples up to 8 KiB and for lines of standard input, else large).
    #[arg(long, value_enum, value_name = "KIND", requires = "profile")]
    pub kind: Option<KindName>,
}

/// Ways to pack samples into datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// The way that the writer finds best: at once while idle, together under pressure.
    Auto,
    /// Each sample at once, in a datagram of its own.
    Immediate,
    /// Samples are collected, each a submessage of its own, for readers of any vendor.
    Coalesce,
    /// Samples are collected and leave as one submessage, acknowledged as a whole.
    Batch,
    /// A write only adds the sample to the history; a flow controller decides when it leaves.
    Asynchronous,
}

/// Destinations of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DestinationName {
    /// The one that costs less.
    Auto,
    /// A copy for each reading participant.
    Unicast,
    /// The readers' group where they announce one.
    Multicast,
}

/// The kinds of data that a profile knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindName {
    /// Small samples, thousands a second.
    HighFrequency,
    /// Several MiB a sample.
    Large,
    /// Bulk that may wait.
    Background,
}

impl SendingOptions {
    /// The profile, or one that sets nothing.
    ///
    /// # Errors
    /// The file cannot be read or is no profile.
    pub fn profile(&self) -> Result<Profile, Failure> {
        match &self.profile {
            Some(path) => Profile::load(path).map_err(|error| Failure::Usage(error.to_string())),
            None => Ok(Profile::empty()),
        }
    }

    /// The part of the profile that is meant for samples of `size` bytes.
    pub fn kind(&self, size: u64) -> DataClass {
        match self.kind {
            Some(KindName::HighFrequency) => DataClass::HighFrequency,
            Some(KindName::Large) => DataClass::Large,
            Some(KindName::Background) => DataClass::Background,
            None => DataClass::of_size(size),
        }
    }

    /// The way that options and `profile` say together, for samples of `size` bytes.
    ///
    /// # Errors
    /// A limit without a method that it limits.
    pub fn sending(&self, profile: &Profile, size: u64) -> Result<Sending, Failure> {
        let found = profile.kind(self.kind(size)).map(|settings| settings.sending.clone()).unwrap_or_default();
        let name = match (self.method, &self.flow_controller) {
            (Some(MethodName::Asynchronous) | None, Some(_)) => Some(MethodName::Asynchronous),
            (Some(_), Some(name)) => {
                return Err(Failure::Usage(format!("--flow-controller {name} needs --method asynchronous")));
            }
            (name, None) => name,
        };
        let method = match (name, found.method) {
            (None, method) => self.limit(method)?,
            (Some(MethodName::Auto), _) => self.limit(PackingMethod::Auto)?,
            (Some(MethodName::Immediate), _) => self.limit(PackingMethod::Immediate)?,
            (Some(MethodName::Coalesce), PackingMethod::Coalesce(limits)) => {
                self.limit(PackingMethod::Coalesce(limits))?
            }
            (Some(MethodName::Coalesce), _) => self.limit(PackingMethod::Coalesce(PackingLimits::default()))?,
            (Some(MethodName::Batch), PackingMethod::Batch(limits)) => self.limit(PackingMethod::Batch(limits))?,
            (Some(MethodName::Batch), _) => self.limit(PackingMethod::Batch(PackingLimits::default()))?,
            (Some(MethodName::Asynchronous), found) => {
                let of_profile = match found {
                    PackingMethod::Asynchronous { flow_controller } => Some(flow_controller),
                    _ => None,
                };
                let named = self.flow_controller.clone().or(of_profile);
                let flow_controller = named.unwrap_or_else(|| thalweg::qos::BACKGROUND.to_owned());
                self.limit(PackingMethod::Asynchronous { flow_controller })?
            }
        };
        let destination = match self.destination {
            None => found.destination,
            Some(DestinationName::Auto) => Addressing::Auto,
            Some(DestinationName::Unicast) => Addressing::Unicast,
            Some(DestinationName::Multicast) => Addressing::Multicast,
        };
        let period = self.heartbeat_period.map(|period| u64::try_from(period.as_micros()).unwrap_or(u64::MAX));
        Ok(Sending {
            method,
            destination,
            max_datagram_bytes: self.max_datagram.or(found.max_datagram_bytes),
            heartbeat_period_us: period.or(found.heartbeat_period_us),
            ..Sending::default()
        })
    }

    /// The method with the limits of the options.
    fn limit(&self, method: PackingMethod) -> Result<PackingMethod, Failure> {
        let limited = |limits: PackingLimits| PackingLimits {
            max_bytes: self.max_bytes.unwrap_or(limits.max_bytes),
            max_samples: self.max_samples.or(limits.max_samples),
            max_flush_delay_us: self
                .flush_delay
                .map_or(limits.max_flush_delay_us, |delay| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX)),
        };
        match method {
            PackingMethod::Coalesce(limits) => Ok(PackingMethod::Coalesce(limited(limits))),
            PackingMethod::Batch(limits) => Ok(PackingMethod::Batch(limited(limits))),
            other if self.max_bytes.is_none() && self.max_samples.is_none() && self.flush_delay.is_none() => Ok(other),
            _ => Err(Failure::Usage(
                "--max-bytes, --max-samples and --flush-delay limit what --method coalesce or batch collects; choose one of these"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use thalweg_lab::profile::KindSettings;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        options: SendingOptions,
    }

    fn profile() -> Profile {
        let limits = PackingLimits { max_bytes: 9_000, max_samples: Some(99), max_flush_delay_us: 77 };
        let kind = |method| Some(KindSettings { sending: Sending::by(method), segment_bytes: None, delivery: None });
        Profile {
            high_frequency: kind(PackingMethod::Batch(limits)),
            background: kind(PackingMethod::Asynchronous { flow_controller: "slow".to_owned() }),
            ..Profile::empty()
        }
    }

    fn sending(words: &str, profile: &Profile) -> Result<Sending, String> {
        let program = Program::try_parse_from(["p"].into_iter().chain(words.split_whitespace()));
        let options = program.map_err(|error| error.to_string())?.options;
        options.sending(profile, 256).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn options_make_a_way_of_sending() {
        let check = |words: &str, expect: PackingMethod| {
            assert_eq!(sending(words, &Profile::empty()).expect(words).method, expect)
        };
        check("", PackingMethod::Auto);
        check("--method immediate", PackingMethod::Immediate);
        let limits = PackingLimits { max_bytes: 8_000, max_samples: Some(10), max_flush_delay_us: 250 };
        check("--method batch --max-bytes 8000 --max-samples 10 --flush-delay 250us", PackingMethod::Batch(limits));
        check("--method coalesce", PackingMethod::Coalesce(PackingLimits::default()));
        check("--method asynchronous", PackingMethod::Asynchronous { flow_controller: "background".to_owned() });
        check("--flow-controller x", PackingMethod::Asynchronous { flow_controller: "x".to_owned() });
        let sending = sending("--destination multicast", &Profile::empty()).expect("allowed");
        assert_eq!(sending.destination, Addressing::Multicast);
        let sending = self::sending("--max-datagram 1400 --heartbeat-period 5ms", &Profile::empty()).expect("allowed");
        assert_eq!((sending.max_datagram_bytes, sending.heartbeat_period_us), (Some(1_400), Some(5_000)));
        assert!(self::sending("--max-datagram 500", &Profile::empty()).is_err());
    }

    #[test]
    fn options_replace_parts_of_a_profile() {
        let check =
            |words: &str, expect: PackingMethod| assert_eq!(sending(words, &profile()).expect(words).method, expect);
        let limits = PackingLimits { max_bytes: 9_000, max_samples: Some(99), max_flush_delay_us: 77 };
        check("", PackingMethod::Batch(limits));
        check("--max-bytes 5000", PackingMethod::Batch(PackingLimits { max_bytes: 5_000, ..limits }));
        check("--method batch", PackingMethod::Batch(limits));
        check("--method coalesce", PackingMethod::Coalesce(PackingLimits::default()));
        check("--profile x --kind background", PackingMethod::Asynchronous { flow_controller: "slow".to_owned() });
        check("--profile x --kind large", PackingMethod::Auto);
    }

    #[test]
    fn limits_of_nothing_are_refused() {
        for words in ["--max-bytes 5", "--method immediate --flush-delay 1ms", "--method batch --flow-controller x"] {
            assert!(sending(words, &Profile::empty()).is_err(), "{words}");
        }
        assert!(sending("--method batch --max-samples 0", &Profile::empty()).is_err());
        assert!(sending("--kind large", &Profile::empty()).is_err(), "a kind of no profile");
    }
}
