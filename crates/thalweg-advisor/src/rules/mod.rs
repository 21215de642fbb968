//! Rules: from the numbers and the host to advice on each setting.

mod interface;
mod memory;
mod paper;
mod processors;
mod queues;
mod steering;

use std::net::IpAddr;
use std::time::Duration;

use crate::advice::{AdviceStep, Effect, Setting};
use crate::numbers::{FiveNumbers, Measured};
use crate::place::SettingPlace;
use crate::probes::{ProbeAnswers, ProbeKind};
use crate::stream::AdvisedStream;
use crate::system::HostSettings;

pub use paper::PaperSetting;
pub(crate) use paper::paper;

/// What rules look at.
pub(crate) struct Context<'a> {
    pub(crate) stream: &'a AdvisedStream,
    /// The host at the other end, where one was named.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) system: &'a HostSettings,
    pub(crate) answers: &'a ProbeAnswers,
    pub(crate) measured: &'a Measured,
    pub(crate) numbers: &'a FiveNumbers,
}

/// Advice of all rules.
pub(crate) fn all(context: &Context<'_>) -> Vec<Setting> {
    let mut settings = memory::advise(context);
    settings.extend(queues::advise(context));
    settings.extend(interface::advise(context));
    settings.extend(processors::advise(context));
    settings
}

/// Why a program is not to ask for the computed receive buffer; `None` where it may, however much is granted.
pub(crate) fn refused_buffer(context: &Context<'_>) -> Option<String> {
    memory::too_much(context, context.numbers.receive_buffer_ask())
}

/// The longest time for which a reading thread has to be expected not to run.
pub(crate) fn stall(system: &HostSettings, answers: &ProbeAnswers) -> Duration {
    let watched = answers.wake_ups.map_or(Duration::ZERO, |late| late.worst);
    let quota = system.processors.quota.map_or(0, |quota| quota.stall_us(1));
    watched.max(STALL_USUAL).max(Duration::from_micros(quota))
}

impl Context<'_> {
    /// The share of one processor that the stream's packets take; `None` where their cost is not known.
    fn load(&self) -> Option<f64> {
        let budget = self.numbers.packet_budget.as_ref()?.value.max(1);
        Some(self.stream.packets_per_second(self.measured.mtu_bytes) / budget as f64)
    }

    /// The stream's interface, where one was found.
    fn device(&self) -> Option<&str> {
        self.system.device.as_ref().map(|device| device.name.as_str())
    }

    /// Why nothing that belongs to hardware has an effect on the stream's interface; `None` on hardware.
    fn lacks_hardware(&self) -> Option<Effect> {
        let (name, kind) = (self.system.device_name(), self.system.kind());
        (!self.system.has_hardware()).then(|| Effect::NoneHere(format!("{name} is {kind}")))
    }

    /// How a setting below `/proc/sys` gets a value.
    fn sysctl(&self, name: &str, value: &str) -> AdviceStep {
        let Some(setting) = self.system.settings.get(name) else {
            return AdviceStep::Refused {
                reason: format!(
                    "{name} is not shown here; set it where it is, in the first network namespace of the host"
                ),
            };
        };
        if !setting.is_writable {
            return AdviceStep::Refused {
                reason: format!(
                    "{name} is only shown here, as in containers and network namespaces; on the host: sysctl -w {name}='{value}'"
                ),
            };
        }
        if self.system.has_bpftune && TUNED_BY_BPFTUNE.contains(&name) {
            return AdviceStep::Refused { reason: format!("bpftune changes {name} itself; stop it first") };
        }
        AdviceStep::Write { place: SettingPlace::Sysctl { name: name.to_owned() }, value: value.to_owned() }
    }

    /// Advice on a setting below `/proc/sys` that has one number and must not be lower than `least`.
    fn at_least(&self, name: &str, least: u64, advice: Draft) -> Setting {
        let now = self.system.number(name);
        if now.is_some_and(|now| now >= least) {
            return advice.keep(name, now.map(|now| now.to_string()), Some(least.to_string()));
        }
        let step = self.sysctl(name, &least.to_string());
        advice.into_setting(name, now.map(|now| now.to_string()), Some(least.to_string()), step)
    }
}

/// Advice without its values.
struct Draft {
    why: String,
    changes: &'static str,
    effect: Effect,
    probe: Option<ProbeKind>,
}

impl Draft {
    fn new(why: impl Into<String>, changes: &'static str) -> Draft {
        Draft { why: why.into(), changes, effect: Effect::Works, probe: None }
    }

    fn effect(self, effect: Effect) -> Draft {
        Draft { effect, ..self }
    }

    fn shown_by(self, probe: ProbeKind) -> Draft {
        Draft { probe: Some(probe), ..self }
    }

    fn into_setting(self, name: &str, now: Option<String>, computed: Option<String>, step: AdviceStep) -> Setting {
        Setting {
            name: name.to_owned(),
            now,
            computed,
            why: self.why,
            changes: self.changes.to_owned(),
            effect: self.effect,
            step,
            probe: self.probe,
        }
    }

    fn keep(self, name: &str, now: Option<String>, computed: Option<String>) -> Setting {
        self.into_setting(name, now, computed, AdviceStep::Keep)
    }

    /// Writes `place` unless it has the value already or the setting has no effect here.
    fn write(self, place: SettingPlace, now: Option<String>, value: String) -> Setting {
        let name = place.to_string();
        let is_idle = matches!(self.effect, Effect::NoneHere(_)) || now.as_deref() == Some(value.as_str());
        let step = if is_idle { AdviceStep::Keep } else { AdviceStep::Write { place, value: value.clone() } };
        self.into_setting(&name, now, Some(value), step)
    }
}

/// A thread of the usual class is not run for as long as this now and then, even where a short watch saw less.
const STALL_USUAL: Duration = Duration::from_millis(10);
/// A local network, where no peer was asked.
pub(crate) const ROUND_TRIP_USUAL: Duration = Duration::from_millis(1);
/// What bpftune(8) changes, by its tuners for buffers, backlog and fragments.
const TUNED_BY_BPFTUNE: [&str; 8] = [
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.udp_mem",
    "net.ipv6.ip6frag_high_thresh",
];
