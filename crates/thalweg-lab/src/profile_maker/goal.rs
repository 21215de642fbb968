//! What is needed, and the ways that could serve.

use std::time::Duration;

use serde::Serialize;

use crate::scenario::{CellSending, HistorySetting, ReliabilitySetting};
use crate::station::{PackingLimits, PackingMethod, Sending};
use crate::statistics::{RUNS_MIN, runs_needed};

/// What an application needs of a topic with one publisher.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileGoal {
    /// Samples a second, 0.1 to 100,000.
    pub rate_hz: f64,
    /// Octets of a sample.
    pub sample_bytes: u32,
    /// 99 of 100 samples have to arrive within this after they were due, in milliseconds.
    pub deadline_ms: f64,
    /// Readers of each sample.
    pub subscribers: u32,
    /// Most that may leave all hosts together, headers included, in Mbit/s.
    pub wire_mbit: Option<f64>,
    /// Most CPU time of publisher and subscribers together, in per cent of one CPU.
    pub cpu_pct: Option<f64>,
    /// Whether samples may be lost.
    pub loss: LossTolerance,
}

/// Whether samples may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossTolerance {
    /// Every sample has to arrive.
    None,
    /// As many as the deadline leaves: fewer than one of 100.
    Some,
}

/// Between which machines the ways are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasuringPlace {
    /// Processes of this host.
    Loopback,
    /// Two network namespaces of this host, with a link of 1,500 bytes between them.
    Namespaces,
    /// This machine and another one that `ssh` reaches.
    Machine(String),
}

/// How the ways are measured.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyForm {
    /// Where.
    pub place: MeasuringPlace,
    /// Runs of each way; missing means as many as verdicts need.
    pub runs: Option<u32>,
    /// The ways that are measured, of [`WAYS`]; none means all.
    pub only: Vec<String>,
    /// Per cent of a run's CPU time that other programs and the hypervisor may take together.
    pub others_pct: f64,
}

/// The ways that can be chosen from, as `--only` names them.
pub const WAYS: [&str; 6] = ["auto", "immediate", "coalesce", "batch", "fragments", "asynchronous"];

impl ProfileGoal {
    /// The ways that could serve, each with its name among [`WAYS`]; the first is the one that needs no setting.
    pub(super) fn ways(&self) -> Vec<(&'static str, CellSending)> {
        let mut ways = vec![
            ("auto", CellSending::by(PackingMethod::Auto)),
            ("immediate", CellSending::by(PackingMethod::Immediate)),
        ];
        // Of larger samples a datagram holds hardly two, and an application that waits for fewer than two waits for nothing.
        let mut delays =
            Vec::from([16, 4].map(|part| (self.deadline_ms * 1e3 / f64::from(part)).min(DELAY_MAX_US) as u64));
        delays.dedup();
        let is_worth = |delay: &u64| self.sample_bytes <= COLLECTED_MAX && self.rate_hz * *delay as f64 / 1e6 >= 2.0;
        for max_flush_delay_us in delays.into_iter().filter(is_worth) {
            let limits = PackingLimits { max_flush_delay_us, ..PackingLimits::default() };
            ways.push(("coalesce", CellSending::by(PackingMethod::Coalesce(limits))));
            ways.push(("batch", CellSending::by(PackingMethod::Batch(limits))));
        }
        if self.sample_bytes > PACKET_BYTES {
            let sending =
                Sending { max_datagram_bytes: Some(u64::from(PACKET_BYTES)), ..Sending::by(PackingMethod::Immediate) };
            ways.push(("fragments", CellSending { sending, bucket: None }));
        }
        if self.sample_bytes > COLLECTED_MAX || self.wire_mbit.is_some() {
            ways.push(("asynchronous", self.paced()));
        }
        ways
    }

    /// A flow controller that grants what the budget holds, or a quarter more than the samples need.
    fn paced(&self) -> CellSending {
        let needed = f64::from(self.sample_bytes + HEADER_BYTES) * self.rate_hz * f64::from(self.subscribers) * 1.25;
        // The budget counts the headers of packets too, which the tokens do not pay for.
        let granted = self.wire_mbit.map_or(needed, |mbit| mbit * 1e6 / 8.0 * PAYLOAD_SHARE);
        let of_period = |period_ms: u64| granted * period_ms as f64 / 1e3;
        let period_ms = [1, 10, 100].into_iter().find(|period| of_period(*period) >= GRANT_MIN).unwrap_or(1_000);
        CellSending::paced(of_period(period_ms).clamp(512.0, GRANT_MAX) as u32, Duration::from_millis(period_ms))
    }

    /// RELIABILITY that is measured.
    fn reliabilities(&self) -> &'static [&'static str] {
        match self.loss {
            LossTolerance::None => &["reliable"],
            LossTolerance::Some => &["reliable", "best-effort"],
        }
    }

    /// HISTORY that is measured: what a deadline brings, because older samples are of no use; where none may be lost, four times as much,
    /// and a write waits for room.
    pub(super) fn history(&self) -> HistorySetting {
        let of_deadline = (self.rate_hz * self.deadline_ms / 1e3).ceil().max(1.0);
        let most = (HISTORY_BYTES_MAX / f64::from(self.sample_bytes.max(1))).clamp(1.0, 100_000.0);
        match self.loss {
            LossTolerance::Some => HistorySetting::KeepLast(of_deadline.min(most) as u32),
            LossTolerance::None => HistorySetting::KeepAll((4.0 * of_deadline).max(ROOM_MIN).min(most) as u32),
        }
    }

    /// Longest wait of a write for room, in milliseconds.
    pub(super) fn max_blocking_ms(&self) -> f64 {
        match self.loss {
            LossTolerance::None => 10_000.0,
            LossTolerance::Some => self.deadline_ms.clamp(0.001, 60_000.0),
        }
    }

    /// Number of the ways in a study of this form.
    fn count(&self, form: &StudyForm) -> usize {
        self.chosen(form).len() * self.reliabilities().len()
    }

    fn chosen(&self, form: &StudyForm) -> Vec<CellSending> {
        let is_chosen = |name: &str| form.only.is_empty() || form.only.iter().any(|only| only == name);
        self.ways().into_iter().filter(|(name, _)| is_chosen(name)).map(|(_, way)| way).collect()
    }

    /// The scenario that measures the ways in turns.
    ///
    /// # Errors
    /// None of the ways of `--only` could serve, or the budget of the wire is to be measured where there is none.
    pub fn scenario(&self, form: &StudyForm) -> Result<String, String> {
        let ways = self.chosen(form);
        if ways.is_empty() {
            let names: Vec<&str> = self.ways().iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "--only leaves no way that could serve; for this rate and size there are {}",
                names.join(", ")
            ));
        }
        if self.wire_mbit.is_some() && form.place == MeasuringPlace::Loopback {
            return Err(
                "--budget counts the bytes on a link, and processes of one host have none: measure with --to netns (needs root and \
                 iproute2) or --to ssh:HOST, or leave the budget out"
                    .to_owned(),
            );
        }
        let hosts = match &form.place {
            MeasuringPlace::Loopback => String::new(),
            MeasuringPlace::Namespaces => hosts("\"netns:2\""),
            MeasuringPlace::Machine(ssh) => hosts(&format!("[\"here\", {}]", toml::Value::from(format!("ssh:{ssh}")))),
        };
        let (most, room) = match self.history() {
            HistorySetting::KeepLast(depth) => ("keep_last", depth),
            HistorySetting::KeepAll(room) => ("keep_all", room),
        };
        let runs = form.runs.map_or_else(|| runs_needed(self.count(form)).max(RUNS_MIN), |runs| runs as usize);
        let ways: Vec<String> = ways.iter().map(|way| format!("    {},\n", way.to_toml())).collect();
        // Some samples more than the 1,000 that a 99th percentile needs.
        let seconds = (1_100.0 / (self.rate_hz * f64::from(self.subscribers))).ceil().max(2.0);
        Ok(format!(
            "schema = \"thalweg.scenario/1\"\nname = \"profile\"\n{hosts}\n[matrix]\npayload_bytes = {}\nrate_hz = {}\nsubscribers = {}\n\
             reliability = {:?}\nsending = [\n{}]\n\n[qos]\nhistory = {{ {most} = {room} }}\nmax_blocking_ms = {}\n\n[schedule]\n\
             seconds = {seconds}\nruns = {runs}\nin_time_ms = {}\nwarm_up_s = 0.5\ndrain_s = 0.5\n\n[system]\nothers_max_pct = {}\n",
            self.sample_bytes,
            self.rate_hz,
            self.subscribers,
            self.reliabilities(),
            ways.concat(),
            self.max_blocking_ms(),
            self.deadline_ms,
            form.others_pct,
        ))
    }
}

fn hosts(on: &str) -> String {
    format!("hosts = {{ on = {on}, publishers = [0], subscribers = [1] }}\n")
}

impl LossTolerance {
    /// Whether this RELIABILITY and HISTORY can keep it, however the runs went; else why not.
    pub(super) fn objection(self, reliability: ReliabilitySetting, history: HistorySetting) -> Option<&'static str> {
        match (self, reliability, history) {
            (LossTolerance::None, ReliabilitySetting::BestEffort, _) => {
                Some("best effort repeats nothing: no number of runs promises that nothing is lost")
            }
            (LossTolerance::None, ReliabilitySetting::Reliable, HistorySetting::KeepLast(_)) => {
                Some("KEEP_LAST overwrites samples that a slow reader still misses")
            }
            _ => None,
        }
    }
}

/// Longest wait for other samples that is worth a try.
const DELAY_MAX_US: f64 = 100_000.0;
/// Samples beyond this have a datagram for themselves as a rule.
const COLLECTED_MAX: u32 = 8 << 10;
/// What fits a packet of Ethernet, with room for tunnels.
const PACKET_BYTES: u32 = 1_400;
/// Time, number and the RTPS headers of a sample.
const HEADER_BYTES: u32 = 100;
/// The rest are headers of Ethernet, IP and UDP, and acknowledgements.
const PAYLOAD_SHARE: f64 = 0.92;
/// A bucket of less than a packet stands still between two of them.
const GRANT_MIN: f64 = 3_000.0;
const GRANT_MAX: f64 = (1_u32 << 30) as f64;
/// Fewer would make a writer wait whenever a reader pauses.
const ROOM_MIN: f64 = 16.0;
/// Memory of a history.
const HISTORY_BYTES_MAX: f64 = 256e6;
