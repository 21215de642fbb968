//! Advice on every setting: now, computed, why, what it should change, and whether it has an effect here.

use std::fmt::Write;

use serde::Serialize;
use thalweg_host::HostFiles;

use crate::figures::{grouped, rate, time};
use crate::numbers::{FiveNumbers, Measured};
use crate::place::SettingPlace;
use crate::probes::{ProbeAnswers, ProbeKind, ProbePlan, Probes};
use crate::rules;
use crate::stream::{AdvisedStream, ImpossibleStream, StreamNetwork};
use crate::system::{HostSettings, Nics};

/// Advice on one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name, such as `net.core.rmem_max`, `SO_RCVBUF` or `eth0 rx-usecs`.
    pub name: String,
    /// Its value now; `None` where the host does not show it.
    pub now: Option<String>,
    /// The value that was computed; `None` where nothing is to be set.
    pub computed: Option<String>,
    /// The arithmetic with its figures, or the rule.
    pub why: String,
    /// What it should change, in terms that can be measured.
    pub changes: String,
    /// Whether it has an effect on this host.
    pub effect: Effect,
    /// What is to be done.
    pub step: AdviceStep,
    /// The measurement that shows it.
    pub probe: Option<ProbeKind>,
}

/// Whether a setting has an effect here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "effect", content = "reason")]
pub enum Effect {
    /// A measurement or the kernel's rules say so.
    Works,
    /// It can perhaps be set, and changes nothing here.
    NoneHere(String),
    /// This host cannot tell.
    Unknown(String),
}

/// What is to be done about a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub enum AdviceStep {
    /// Nothing: it is as it should be, or has no effect here.
    Keep,
    /// A program asks for it, by the profile that `apply` writes.
    InProgram,
    /// `apply` writes it.
    Write {
        /// Where.
        place: SettingPlace,
        /// What.
        value: String,
    },
    /// It is the owner's decision, or takes effect with a restart.
    ByHand {
        /// The command or the place.
        command: String,
    },
    /// It should be changed and cannot be here.
    Refused {
        /// Why, and what remains.
        reason: String,
    },
}

/// All advice for a stream on a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostAdvice {
    /// The stream.
    pub stream: AdvisedStream,
    /// The stream's interface.
    pub device: String,
    /// The host at the other end, where one was named.
    pub peer: Option<std::net::IpAddr>,
    /// The stall of the reader that was reckoned with.
    pub stall: std::time::Duration,
    /// Bytes of the largest packet that was reckoned with.
    pub mtu_bytes: u32,
    /// Bytes that a receive buffer was reckoned to be charged for a datagram.
    pub charge_bytes: u64,
    /// The five numbers.
    pub numbers: FiveNumbers,
    /// Why no program is to ask for the receive buffer among them: it is more than the kernel grants a socket, or more than a stream may
    /// take of the memory. `None` where programs may ask for it, however much is granted.
    pub receive_buffer_refusal: Option<String>,
    /// What was measured.
    pub answers: ProbeAnswers,
    /// Advice, the program's own settings first.
    pub settings: Vec<Setting>,
    /// What became of the settings of the paper of 2006; empty for other profiles.
    pub paper: Vec<rules::PaperSetting>,
    /// What the reader should know beside it.
    pub remarks: Vec<String>,
    /// The host as it was read.
    pub system: HostSettings,
}

/// What is known of the network beside what the host shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetworkFacts<'a> {
    /// The stream's interface; `None` takes the usual one.
    pub device: Option<&'a str>,
    /// The host at the other end.
    pub peer: Option<std::net::IpAddr>,
    /// Bits a second of the narrowest link, where the interface's own speed is not it.
    pub link_bits_per_second: Option<u64>,
}

impl HostAdvice {
    /// Reads the host, measures, and computes.
    ///
    /// # Errors
    /// The stream is impossible.
    pub fn make(
        stream: &AdvisedStream,
        surroundings: &NetworkFacts<'_>,
        (files, nics): (&HostFiles, &dyn Nics),
        probes: &mut dyn Probes,
    ) -> Result<HostAdvice, ImpossibleStream> {
        stream.check()?;
        let usual = HostSettings::usual_device(files);
        let device = surroundings.device.or(usual.as_deref());
        if surroundings.device.is_some_and(|name| thalweg_host::NetworkDevice::read(files, name).is_none()) {
            return Err(ImpossibleStream(format!("there is no interface {}", device.unwrap_or_default())));
        }
        let network = surroundings.peer.map_or(stream.network, StreamNetwork::of);
        let stream = &AdvisedStream { network, ..stream.clone() };
        let system = HostSettings::read(files, nics, device);
        let widest = if stream.datagram_bytes.is_some() { u32::MAX } else { JUMBO_BYTES };
        let payload_bytes = stream.datagrams(system.mtu_bytes().min(widest)).payload_bytes;
        let plan =
            ProbePlan { payload_bytes, peer: surroundings.peer, path_at_most: system.mtu_bytes().min(JUMBO_BYTES) };
        let mut answers = ProbeAnswers::measure(probes, &plan);
        let measured = measured(&system, &answers, surroundings, (stream, plan.payload_bytes, widest));
        let numbers = FiveNumbers::compute(stream, &measured);
        answers.measure_buffer(probes, numbers.receive_buffer_ask());
        let context = rules::Context {
            stream,
            peer: surroundings.peer,
            system: &system,
            answers: &answers,
            measured: &measured,
            numbers: &numbers,
        };
        Ok(HostAdvice {
            stream: stream.clone(),
            device: system.device_name().to_owned(),
            peer: surroundings.peer,
            stall: measured.stall,
            mtu_bytes: measured.mtu_bytes,
            charge_bytes: measured.charge_bytes,
            receive_buffer_refusal: rules::refused_buffer(&context),
            settings: rules::all(&context),
            paper: rules::paper(&context),
            remarks: remarks(&context),
            numbers,
            answers,
            system,
        })
    }

    /// The settings that `apply` writes.
    pub fn writes(&self) -> impl Iterator<Item = (&Setting, &SettingPlace, &str)> {
        self.settings.iter().filter_map(|setting| match &setting.step {
            AdviceStep::Write { place, value } => Some((setting, place, value.as_str())),
            _ => None,
        })
    }

    /// The settings of a program as the file that `thalweg … --profile` reads.
    pub fn to_profile(&self) -> String {
        format!(
            "# {}\nschema = \"thalweg.profile/1\"\n\n[participant]\nreceive_buffer_bytes = {}\n",
            self.numbers.receive_buffer.why,
            self.numbers.receive_buffer_ask()
        )
    }

    /// All of it for people.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}", self.title());
        let numbers = &self.numbers;
        let mut number = |name: &str, value: String, why: &str| {
            let _ = writeln!(out, "  {name:<20} {value}\n{:23}{why}", "");
        };
        let bytes = |value: u64| format!("{} B", grouped(value));
        number("receive buffer", bytes(numbers.receive_buffer.value), &numbers.receive_buffer.why);
        number("  joined (GRO)", bytes(numbers.receive_buffer_joined.value), &numbers.receive_buffer_joined.why);
        match &numbers.writer_window {
            Some(window) => number("writer window", bytes(window.value), &window.why),
            None => number("writer window", "none".to_owned(), "this stream is not acknowledged"),
        }
        number("pacing rate", format!("{} bit/s", grouped(numbers.pacing_rate.value)), &numbers.pacing_rate.why);
        number("fragment memory", bytes(numbers.fragment_memory.value), &numbers.fragment_memory.why);
        match &numbers.packet_budget {
            Some(budget) => {
                number("packet budget", format!("{} packets/s a processor", grouped(budget.value)), &budget.why)
            }
            None => number("packet budget", "unknown".to_owned(), "the cost of a packet could not be measured"),
        }
        for setting in &self.settings {
            setting.describe(&mut out);
        }
        if !self.paper.is_empty() {
            let _ = writeln!(out, "\nThe settings of the paper of 2006 today");
        }
        for setting in &self.paper {
            setting.describe(&mut out);
        }
        for remark in &self.remarks {
            let _ = writeln!(out, "\n! {remark}");
        }
        out
    }

    fn title(&self) -> String {
        let stream = &self.stream;
        let plan = stream.datagrams(self.mtu_bytes);
        format!(
            "{}: {} B at {:.2} Hz from {}, deadline {}; {} datagrams of {} B a sample over {} ({}, MTU {})",
            stream.profile.name(),
            grouped(stream.sample_bytes),
            stream.rate_hz,
            if stream.writers == 1 { "one writer".to_owned() } else { format!("{} writers", stream.writers) },
            time(stream.deadline),
            grouped(plan.count),
            grouped(plan.payload_bytes),
            self.device,
            self.system.kind(),
            self.mtu_bytes
        )
    }
}

impl Setting {
    fn describe(&self, out: &mut String) {
        let _ = writeln!(out, "\n{}", self.name);
        let mut line = |name: &str, text: &str| {
            let _ = writeln!(out, "  {name:<9} {text}");
        };
        line("now", self.now.as_deref().unwrap_or("not shown"));
        line("computed", self.computed.as_deref().unwrap_or("leave it"));
        line("why", &self.why);
        line("changes", &self.changes);
        match &self.effect {
            Effect::Works => line("here", "works"),
            Effect::NoneHere(reason) => line("here", &format!("no effect here: {reason}")),
            Effect::Unknown(reason) => line("here", &format!("not known: {reason}")),
        }
        match &self.step {
            AdviceStep::Keep => {}
            AdviceStep::InProgram => line("step", "the program asks for it (profile)"),
            AdviceStep::Write { place, value } => line("step", &format!("apply: {}", place.command(value))),
            AdviceStep::ByHand { command } => line("step", &format!("by hand: {command}")),
            AdviceStep::Refused { reason } => line("step", &format!("cannot be set: {reason}")),
        }
    }
}

/// The figures that the numbers follow from, where they were measured, and careful ones where not.
fn measured(
    system: &HostSettings,
    answers: &ProbeAnswers,
    surroundings: &NetworkFacts<'_>,
    (stream, payload_bytes, widest): (&AdvisedStream, u64, u32),
) -> Measured {
    let path = answers.path.map(|path| path.bytes);
    let (fragment_time, usual_s) = match stream.network {
        StreamNetwork::V4 => ("net.ipv4.ipfrag_time", 30),
        StreamNetwork::V6 => ("net.ipv6.ip6frag_time", 60),
    };
    let charge = answers.charges.iter().find(|charge| charge.payload_bytes >= payload_bytes);
    let charge = charge.map_or_else(|| (payload_bytes * 2).max(CHARGE_USUAL_BYTES), |charge| charge.charged_bytes);
    Measured {
        mtu_bytes: path.unwrap_or_else(|| system.mtu_bytes()).min(widest),
        // Drivers charge the buffers of their rings: two kilobytes for a small packet, whatever loopback charges.
        charge_bytes: if system.has_hardware() { charge.max(CHARGE_USUAL_BYTES) } else { charge },
        stall: rules::stall(system, answers),
        link_bits_per_second: surroundings
            .link_bits_per_second
            .or_else(|| system.device.as_ref().and_then(|device| device.bits_per_second)),
        round_trip: answers.path.and_then(|path| path.round_trip).unwrap_or(rules::ROUND_TRIP_USUAL),
        packet_cost: answers.packet_cost.map(|cost| cost.each),
        fragment_time_s: system.number(fragment_time).unwrap_or(usual_s),
    }
}

fn remarks(context: &rules::Context<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    if context.system.has_bpftune {
        remarks.push(
            "bpftune runs here and changes some of these settings all the time; stop it, or leave receive buffers, udp_mem, \
             fragments and netdev_budget to it"
                .to_owned(),
        );
    }
    if let Some(path) = context.answers.path.filter(|path| !path.is_confirmed) {
        remarks.push(format!(
            "no packet was answered for by the peer: {} B is what this host believes of the path (ICMP may be filtered)",
            path.bytes
        ));
    }
    if context.system.kind() == "a veth pair" && context.measured.link_bits_per_second.is_some() {
        remarks.push(
            "a veth pair says 10 Gbit/s whatever it carries; give --link where something behind it is slower"
                .to_owned(),
        );
    }
    let (needed, link) = (context.stream.bits_per_second(), context.measured.link_bits_per_second);
    if let Some(link) = link.filter(|link| needed > *link as f64) {
        remarks.push(format!(
            "the stream has {} without headers, more than the link carries ({}): no setting helps; send less, or name the link's \
             speed by --link if it is another one",
            rate(needed),
            rate(link as f64)
        ));
    }
    if context.system.has_hardware() {
        remarks.push(
            "charges were measured over loopback; this interface's driver may charge its own buffers, at least 2,304 B a \
             packet, which is reckoned with"
                .to_owned(),
        );
    }
    for (probe, reason) in &context.answers.failures {
        remarks.push(format!("the probe {probe:?} gave no answer: {reason}"));
    }
    remarks
}

/// Loopback's MTU of 65,536 would make every sample one datagram, which is no plan for a network.
const JUMBO_BYTES: u32 = 9000;
/// A buffer of two kilobytes and its bookkeeping.
const CHARGE_USUAL_BYTES: u64 = 2304;
