//! The settings of the chosen way, as files for each middleware; each has the reason that was measured beside it.

use std::time::Duration;

use super::choice::{MeasuredWay, ProfileChoice, shown};
use super::vendors;
use crate::error::LabError;
use crate::figures::{grouped, utc};
use crate::profile::{DataClass, DeliverySettings, KindSettings, Profile, ProfileOrigin};
use crate::scenario::{HistorySetting, ReliabilitySetting};
use crate::station::{PackingLimits, PackingMethod, TokenBucket};

/// What is to be written, with the reasons.
pub(super) struct Advice<'a> {
    pub(super) choice: &'a ProfileChoice,
    pub(super) chosen: &'a MeasuredWay,
}

/// Name and text of each file for the chosen way: `profile.toml` for Thalweg, the others for other vendors; none where no way serves.
///
/// # Errors
/// A number does not fit TOML.
pub fn files(choice: &ProfileChoice) -> Result<Vec<(&'static str, String)>, LabError> {
    let Some(chosen) = choice.winner() else { return Ok(Vec::new()) };
    let advice = Advice { choice, chosen };
    Ok(vec![
        ("profile.toml", advice.thalweg()?),
        ("cyclonedds.xml", vendors::cyclone(&advice)),
        ("cyclonedds-qos.xml", vendors::cyclone_qos(&advice)),
        ("fastdds.xml", vendors::fast_dds(&advice)),
        ("USER_QOS_PROFILES.xml", vendors::connext(&advice)),
    ])
}

impl Advice<'_> {
    /// The first lines of every file.
    pub(super) fn head(&self) -> Vec<String> {
        let (goal, chosen) = (&self.choice.goal, self.chosen);
        let machine = &self.choice.environment;
        vec![
            format!(
                "For {} B at {} Hz to {}, 99 % within {} ms; measured on {}, {}, from {} on.",
                goal.sample_bytes,
                goal.rate_hz,
                goal.subscribers,
                goal.deadline_ms,
                known(&machine.cpu),
                known(&machine.kernel),
                utc(self.choice.started_unix_s)
            ),
            format!("Chosen: {}. {}", chosen.name, self.figures()),
        ]
    }

    /// What the chosen way was measured with.
    fn figures(&self) -> String {
        let one = self.chosen;
        let wire =
            one.wire_mbit.map(|_| format!(", {} Mbit/s on the wire", shown(one.wire_mbit, 1.0))).unwrap_or_default();
        format!(
            "Median and 95 % interval of {} runs: p99 {} ms, CPU {} %{wire}; {} of {} samples missing.",
            one.runs,
            shown(one.p99_us, 1e-3),
            shown(one.cpu_pct, 1.0),
            grouped(one.missing),
            grouped(one.due)
        )
    }

    /// Why samples share datagrams in this way.
    pub(super) fn of_method(&self) -> String {
        format!(
            "by {} p99 was {} ms where {} are allowed",
            self.chosen.way,
            shown(self.chosen.p99_us, 1e-3),
            self.choice.goal.deadline_ms
        )
    }

    pub(super) fn of_reliability(&self) -> String {
        let (one, allowed) = (
            self.chosen,
            if self.chosen.reliability == ReliabilitySetting::Reliable { "repeated" } else { "not repeated" },
        );
        format!("lost samples are {allowed}: {} of {} were missing", grouped(one.missing), grouped(one.due))
    }

    pub(super) fn of_history(&self) -> String {
        let (HistorySetting::KeepLast(samples) | HistorySetting::KeepAll(samples)) = self.chosen.history;
        let seconds = f64::from(samples) / self.choice.goal.rate_hz;
        format!("{samples} samples, {:.3?} of the stream; measured with this depth", Duration::from_secs_f64(seconds))
    }

    pub(super) fn of_heartbeats(&self) -> String {
        format!(
            "measured with this pause; a lost sample waits for it, within the {} ms allowed",
            self.choice.goal.deadline_ms
        )
    }

    pub(super) fn is_reliable(&self) -> bool {
        self.chosen.reliability == ReliabilitySetting::Reliable
    }

    /// What coalesce and batch collect.
    pub(super) fn limits(&self) -> Option<PackingLimits> {
        match self.chosen.way.sending.method {
            PackingMethod::Coalesce(limits) | PackingMethod::Batch(limits) => Some(limits),
            _ => None,
        }
    }

    pub(super) fn bucket(&self) -> Option<&TokenBucket> {
        self.chosen.way.bucket.as_ref()
    }

    pub(super) fn heartbeat_period(&self) -> Duration {
        self.chosen.way.sending.to_qos().heartbeat_period
    }

    pub(super) fn max_blocking(&self) -> Duration {
        Duration::from_secs_f64(self.choice.goal.max_blocking_ms() / 1e3)
    }

    fn thalweg(&self) -> Result<String, LabError> {
        let (goal, chosen) = (&self.choice.goal, self.chosen);
        let delivery = DeliverySettings {
            reliability: chosen.reliability,
            max_blocking_us: self.max_blocking().as_micros() as u64,
            history: chosen.history,
        };
        let kind = KindSettings { sending: chosen.way.sending.clone(), segment_bytes: None, delivery: Some(delivery) };
        let machine = &self.choice.environment;
        let mut profile = Profile {
            found: Some(ProfileOrigin {
                by: "thalweg lab profile".to_owned(),
                started_unix_s: self.choice.started_unix_s,
                cpu: known(&machine.cpu).to_owned(),
                kernel: known(&machine.kernel).to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            flow_controllers: self.bucket().into_iter().cloned().collect(),
            ..Profile::empty()
        };
        match DataClass::of_size(u64::from(goal.sample_bytes)) {
            DataClass::HighFrequency => profile.high_frequency = Some(kind),
            DataClass::Large | DataClass::Background => profile.large = Some(kind),
        }
        let reasons = [
            ("method", self.of_method()),
            ("heartbeat_period_us", self.of_heartbeats()),
            ("reliability", self.of_reliability()),
            ("keep_last", self.of_history()),
            ("keep_all", self.of_history()),
            ("max_datagram_bytes", "samples leave in fragments of one packet each".to_owned()),
            ("max_tokens", "a token that is not used is lost: saved ones would leave as a burst".to_owned()),
            (
                "bytes_per_token",
                "what the budget grants in a period, or a quarter more than the samples need".to_owned(),
            ),
        ];
        let mut out: String = self.head().iter().map(|line| format!("# {line}\n")).collect();
        for line in profile.to_toml()?.lines() {
            let reason =
                reasons.iter().find(|(key, _)| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(" =")));
            out.extend(reason.map(|(_, reason)| format!("# {reason}\n")));
            out.push_str(line);
            out.push('\n');
        }
        Ok(out)
    }
}

fn known(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("unknown")
}
