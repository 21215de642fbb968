//! Those who do the work of a benchmark, and the link between their ends.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::peers::{PeerProfile, PeerProgram};
use crate::scenario::{Impairment, LinkPlan, Switch};
use crate::station::{PackingMethod, Sending, Setup, StationNetwork, TokenBucket};

/// A link between two network namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Megabits a second in each direction. Default no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbit: Option<f64>,
    /// Per cent of the frames that are lost, each by itself. Default 0.
    #[serde(default)]
    pub loss_pct: f64,
    /// Milliseconds that each frame takes longer. Default 0.
    #[serde(default)]
    pub delay_ms: f64,
}

/// A middleware with settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContenderPlan {
    /// Name in the tables.
    pub name: String,
    /// Another middleware. Default Thalweg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerProgram>,
    /// Its set of settings. Default as shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PeerProfile>,
    /// The program of another build of Thalweg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The contender that it is compared with. Default the first of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// Bytes to ask for in each receive buffer of Thalweg. Default the middleware's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// Bytes of the samples into which the application packs others; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wrap_bytes: u64,
    /// Microseconds that the application waits between two writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_us: u64,
    /// By what way samples of Thalweg travel.
    #[serde(default)]
    pub sending: Sending,
    /// The flow controller that this way names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_controller: Option<TokenBucket>,
}

impl LinkTable {
    pub(crate) fn to_plan(self) -> LinkPlan {
        let delay = Duration::from_secs_f64(self.delay_ms / 1e3);
        let switch = match self.loss_pct > 0.0 || !delay.is_zero() {
            true => Switch::Relay(Impairment { loss: self.loss_pct / 100.0, delay, ..Impairment::default() }),
            false => Switch::Bridge,
        };
        LinkPlan { rate_mbit: self.rate_mbit, switch, ..LinkPlan::default() }
    }

    /// In words.
    pub(crate) fn told(self) -> String {
        let mut out = "a link between two network namespaces".to_owned();
        if let Some(rate) = self.rate_mbit {
            out.push_str(&format!(" of {rate} Mbit/s"));
        }
        if self.loss_pct > 0.0 {
            out.push_str(&format!(", {} % of the frames lost", self.loss_pct));
        }
        if self.delay_ms > 0.0 {
            out.push_str(&format!(", {} ms long", self.delay_ms));
        }
        out
    }
}

impl ContenderPlan {
    /// Thalweg by this way.
    pub fn ours(name: impl Into<String>, sending: Sending) -> ContenderPlan {
        ContenderPlan { name: name.into(), sending, ..ContenderPlan::default() }
    }

    /// A peer with a set of settings, called by both.
    pub fn of_peer(peer: PeerProgram, profile: PeerProfile) -> ContenderPlan {
        let name = format!("{peer} {}", profile.name());
        ContenderPlan { name, peer: Some(peer), profile: Some(profile), ..ContenderPlan::default() }
    }

    /// Its name, and what is wrong with it.
    pub(super) fn fault(&self) -> Option<(String, String)> {
        let ours = ContenderPlan {
            name: self.name.clone(),
            peer: self.peer,
            profile: self.profile,
            ..ContenderPlan::default()
        };
        let message = match (self.peer, self.profile) {
            (Some(peer), _) if *self != ours => format!("settings beside `profile` are Thalweg's, not those of {peer}"),
            (None, Some(_)) => "`profile` is a peer's set of settings; `sending` has those of Thalweg".to_owned(),
            _ => match (&self.sending.method, &self.flow_controller) {
                (PackingMethod::Asynchronous { flow_controller }, Some(bucket)) if bucket.name == *flow_controller => {
                    return None;
                }
                (PackingMethod::Asynchronous { flow_controller }, _) => {
                    format!("nothing describes its flow controller {flow_controller}")
                }
                (_, Some(_)) => "its way of sending names no flow controller".to_owned(),
                _ => return None,
            },
        };
        Some((self.name.clone(), message))
    }

    /// What both of our processes are told, apart from all others.
    pub(super) fn setup(&self) -> Setup {
        let network = StationNetwork { receive_buffer_bytes: self.receive_buffer_bytes, ..StationNetwork::apart(0) };
        let flow_controller = self.flow_controller.clone();
        Setup { sending: self.sending.clone(), flow_controller, ..Setup::within(network) }
    }

    /// Its settings in words.
    pub(crate) fn told(&self) -> String {
        match (self.peer, self.profile) {
            (Some(peer), profile) => {
                format!("{}, {}", peer.description(), profile.unwrap_or(PeerProfile::Default).name())
            }
            (None, _) => {
                let beside = [
                    (self.wrap_bytes > 0).then(|| format!("packed by the application into {} B", self.wrap_bytes)),
                    (self.pause_us > 0).then(|| format!("{} µs between two writes", self.pause_us)),
                    self.receive_buffer_bytes.map(|bytes| format!("receive buffers of {bytes} B")),
                ];
                let beside: String = beside.into_iter().flatten().map(|text| format!("; {text}")).collect();
                format!("{}{beside}", self.sending)
            }
        }
    }
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}
