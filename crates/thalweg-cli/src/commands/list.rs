//! `thalweg ls`: the participants of a domain.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use thalweg::DomainParticipant;
use thalweg::discovery::{
    Groups, IgnoredParticipant, ParticipantData, ProcessDescription, PublicationData, SubscriptionData,
};
use thalweg::qos::{Durability, History, Liveliness, Reliability, Representation, ResourceLimits};
use thalweg::types::INFINITE;

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, print_line, push_line};
use crate::refusals::Refusals;
use crate::surroundings::{Lookaround, NobodyFound, SurveyOptions};

/// Lists the participants of a domain with vendor, host, process and program, and their writers and readers with topic, type and QoS.
/// If it finds no participant, it explains why.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg ls --domain 0 --settle 3"))]
pub struct ListOptions {
    /// Listen for SECONDS before printing; participants of a busy network may need longer (default: 2).
    #[arg(long, value_name = "SECONDS", default_value = "2", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub settle: Duration,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// Membership in the domain, and a survey where nobody is found.
    pub survey: SurveyOptions,
}

/// Listens and lists.
///
/// # Errors
/// The network cannot be used, or output cannot be written.
pub fn run(options: &ListOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let participant = options.survey.member.participant()?;
    let mut lookaround = Lookaround::new(&participant, &options.survey);
    lookaround.begin();
    let deadline = Instant::now() + options.settle;
    let is_alone = || participant.discovered_participants().is_empty();
    while Instant::now() < deadline || (is_alone() && lookaround.is_listening()) {
        if interrupt.came() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    let mut domain = Domain::of(&participant);
    if domain.participants.is_empty() {
        domain.nobody_found = lookaround.take(None);
    }
    let text = if options.json {
        serde_json::to_string_pretty(&domain).map_err(Failure::from_cause)?
    } else {
        domain.to_text()
    };
    print_line(text)
}

/// The participants of a domain except this command's own.
#[derive(Serialize)]
struct Domain {
    domain: u32,
    participants: Vec<Member>,
    /// Those whose communication groups are not this command's.
    ignored: Vec<Stranger>,
    /// Refusals of this command's own participant.
    refused: Refusals,
    /// Why there are no participants; null where there are some.
    nobody_found: Option<NobodyFound>,
}

/// A participant of other communication groups.
#[derive(Serialize)]
struct Stranger {
    guid_prefix: String,
    vendor: String,
    name: String,
    /// None for the default group.
    groups: Vec<String>,
}

/// One participant.
#[derive(Serialize)]
struct Member {
    guid_prefix: String,
    vendor: String,
    protocol: String,
    name: String,
    domain_tag: String,
    /// None for the default group.
    groups: Vec<String>,
    /// Seconds of silence after which it counts as gone; null for never.
    lease_s: Option<f64>,
    /// Null where it does not say.
    host: Option<String>,
    process_id: Option<String>,
    program: Option<String>,
    addresses: Vec<String>,
    endpoints: Vec<Endpoint>,
}

/// A writer or reader.
#[derive(Serialize)]
pub(super) struct Endpoint {
    pub(super) kind: &'static str,
    pub(super) guid: String,
    pub(super) topic: String,
    #[serde(rename = "type")]
    pub(super) type_name: String,
    pub(super) qos: Policies,
}

/// The policies that writers and readers share.
#[derive(Serialize)]
pub(super) struct Policies {
    reliability: String,
    durability: String,
    history: String,
    max_samples: Option<u32>,
    liveliness: String,
    ownership: String,
    /// Milliseconds; null for infinite.
    deadline_ms: Option<f64>,
    /// Milliseconds; null for infinite.
    latency_budget_ms: Option<f64>,
    representation: Vec<String>,
    partition: Vec<String>,
}

impl Domain {
    fn of(participant: &DomainParticipant) -> Domain {
        let (writers, readers) = (participant.publications(), participant.subscriptions());
        let own = participant.guid_prefix();
        let mut found = participant.discovered_participants();
        found.retain(|data| data.guid_prefix != own);
        found.sort_by_key(|data| data.guid_prefix);
        let member = |data: &ParticipantData| {
            let mut member = Member::new(data);
            let belongs = |guid: thalweg::types::Guid| guid.prefix == data.guid_prefix;
            member.endpoints.extend(
                writers.iter().map(|known| known.data.as_ref()).filter(|data| belongs(data.guid)).map(Endpoint::writer),
            );
            member.endpoints.extend(
                readers.iter().map(|known| known.data.as_ref()).filter(|data| belongs(data.guid)).map(Endpoint::reader),
            );
            member
        };
        let ignored = participant.ignored_participants();
        Domain {
            domain: participant.domain_id(),
            participants: found.iter().map(member).collect(),
            ignored: ignored.iter().map(Stranger::new).collect(),
            refused: Refusals::new(&participant.explain()),
            nobody_found: None,
        }
    }

    fn to_text(&self) -> String {
        let mut out = match self.participants.len() {
            0 => format!("No other participant is in domain {}; a longer --settle may find more.\n", self.domain),
            1 => format!("1 participant in domain {}\n", self.domain),
            count => format!("{count} participants in domain {}\n", self.domain),
        };
        if let Some(found) = &self.nobody_found {
            out.push_str(&format!("{}\n", found.to_text()));
        }
        for member in &self.participants {
            out.push_str(&member.to_text());
        }
        if !self.ignored.is_empty() {
            out.push_str(&format!("\n{} ignored: other groups; --group joins them\n", self.ignored.len()));
        }
        for stranger in &self.ignored {
            out.push_str(&stranger.to_text());
        }
        let refused = self.refused.sentences();
        if !refused.is_empty() {
            out.push_str("\nrefused while listening\n");
        }
        for sentence in refused {
            out.push_str(&format!("  {sentence}\n"));
        }
        out.trim_end().to_owned()
    }
}

impl Stranger {
    fn new(ignored: &IgnoredParticipant) -> Stranger {
        Stranger {
            guid_prefix: ignored.guid_prefix.to_string(),
            vendor: ignored.vendor.to_string(),
            name: ignored.entity_name.clone(),
            groups: ignored.groups.names().map(str::to_owned).collect(),
        }
    }

    fn to_text(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" {:?}", self.name) };
        let groups = if self.groups.is_empty() { "default".to_owned() } else { self.groups.join(",") };
        format!("{}\n", InLine(format_args!("  {}{name}, {}, groups {groups}", self.guid_prefix, self.vendor)))
    }
}

impl Member {
    fn new(data: &ParticipantData) -> Member {
        let ProcessDescription { host, process_id, program, .. } = ProcessDescription::of(data);
        Member {
            guid_prefix: data.guid_prefix.to_string(),
            vendor: data.vendor.to_string(),
            protocol: format!("{}.{}", data.version.major, data.version.minor),
            name: data.entity_name.clone(),
            domain_tag: data.domain_tag.clone(),
            groups: Groups::of(data).names().map(str::to_owned).collect(),
            lease_s: (data.lease_duration != INFINITE).then_some(data.lease_duration.as_secs_f64()),
            host,
            process_id,
            program,
            addresses: data.locators.default_unicast.iter().map(ToString::to_string).collect(),
            endpoints: Vec::new(),
        }
    }

    fn to_text(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" {:?}", self.name) };
        let tag = if self.domain_tag.is_empty() { String::new() } else { format!(", tag {:?}", self.domain_tag) };
        let groups = if self.groups.is_empty() { String::new() } else { format!(", groups {}", self.groups.join(",")) };
        let addresses = self.addresses.join(" ");
        let mut out = "\n".to_owned();
        push_line(
            &mut out,
            format_args!(
                "{}{name}, {} (RTPS {}{tag}{groups}), {addresses}",
                self.guid_prefix, self.vendor, self.protocol
            ),
        );
        out.push_str(&self.process_line());
        for endpoint in &self.endpoints {
            let Endpoint { kind, topic, type_name, qos, .. } = endpoint;
            push_line(&mut out, format_args!("  {kind:<6} {topic} ({type_name}): {}", qos.to_text()));
        }
        if self.endpoints.is_empty() {
            out.push_str("  no writers and no readers\n");
        }
        out
    }
}

impl Member {
    /// Host, process and program, as far as announced.
    fn process_line(&self) -> String {
        let parts = [
            self.program.as_ref().map(|program| format!("program {program}")),
            self.process_id.as_ref().map(|id| format!("process {id}")),
            self.host.as_ref().map(|host| format!("host {host}")),
        ];
        let told: Vec<String> = parts.into_iter().flatten().collect();
        if told.is_empty() { String::new() } else { format!("  {}\n", InLine(told.join(", "))) }
    }
}

impl Endpoint {
    pub(super) fn writer(data: &PublicationData) -> Endpoint {
        let qos = &data.qos;
        let policies =
            Policies::new(qos.reliability, qos.durability, qos.history, &qos.resource_limits, qos.liveliness);
        Endpoint {
            kind: "writer",
            guid: data.guid.to_string(),
            topic: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            qos: Policies {
                ownership: qos.ownership.kind().to_string(),
                deadline_ms: millis(qos.timing.deadline),
                latency_budget_ms: millis(qos.timing.latency_budget),
                representation: names(&qos.data_representation),
                partition: qos.partition.clone(),
                ..policies
            },
        }
    }

    pub(super) fn reader(data: &SubscriptionData) -> Endpoint {
        let qos = &data.qos;
        let policies =
            Policies::new(qos.reliability, qos.durability, qos.history, &qos.resource_limits, qos.liveliness);
        Endpoint {
            kind: "reader",
            guid: data.guid.to_string(),
            topic: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            qos: Policies {
                ownership: qos.ownership.to_string(),
                deadline_ms: millis(qos.timing.deadline),
                latency_budget_ms: millis(qos.timing.latency_budget),
                representation: names(&qos.data_representation),
                partition: qos.partition.clone(),
                ..policies
            },
        }
    }
}

impl Policies {
    fn new(
        reliability: Reliability,
        durability: Durability,
        history: History,
        limits: &ResourceLimits,
        liveliness: Liveliness,
    ) -> Policies {
        Policies {
            reliability: reliability.to_string(),
            durability: durability.to_string(),
            history: history.to_string(),
            max_samples: limits.max_samples,
            liveliness: liveliness.to_string(),
            ownership: String::new(),
            deadline_ms: None,
            latency_budget_ms: None,
            representation: Vec::new(),
            partition: Vec::new(),
        }
    }

    /// The policies that usually differ; others only if they are unusual.
    pub(super) fn to_text(&self) -> String {
        let mut parts = vec![
            self.reliability.clone(),
            self.durability.clone(),
            self.history.clone(),
            self.representation.join("+"),
        ];
        parts.extend(self.max_samples.map(|count| format!("max_samples {count}")));
        parts.extend(self.deadline_ms.map(|millis| format!("deadline {millis} ms")));
        if self.ownership != "SHARED" {
            parts.push(self.ownership.clone());
        }
        if !self.liveliness.starts_with("AUTOMATIC with lease infinite") {
            parts.push(self.liveliness.clone());
        }
        if !self.partition.is_empty() {
            parts.push(format!("partition {}", self.partition.join(",")));
        }
        parts.join(", ")
    }
}

fn millis(duration: Duration) -> Option<f64> {
    (duration != INFINITE).then_some(duration.as_secs_f64() * 1e3)
}

/// The representations' names; none announced means XCDR1.
fn names(representations: &[Representation]) -> Vec<String> {
    if representations.is_empty() {
        vec![Representation::Xcdr1.to_string()]
    } else {
        representations.iter().map(ToString::to_string).collect()
    }
}

/// Interval at which a wait checks for Ctrl-C.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use thalweg::qos::{ReaderQos, WriterQos};
    use thalweg::types::{EntityId, Guid, GuidPrefix};

    use super::*;

    #[test]
    fn a_delay_without_a_bound_is_told_by_no_number() {
        let guid = Guid { prefix: GuidPrefix([1; 12]), entity: EntityId([0, 0, 1, 4]) };
        let budget_ms = |budget: Duration| {
            let qos = ReaderQos::default().latency_budget(budget);
            Endpoint::reader(&SubscriptionData::new(guid, "t", "T", qos)).qos.latency_budget_ms
        };
        assert_eq!([Duration::from_millis(20), INFINITE].map(budget_ms), [Some(20.0), None]);
    }

    #[test]
    fn no_name_of_a_stranger_forges_a_line() {
        let guid = Guid { prefix: GuidPrefix([1; 12]), entity: EntityId([0, 0, 1, 3]) };
        let qos = WriterQos { partition: vec!["p\n  writer p".to_owned()], ..WriterQos::default() };
        let data = PublicationData::new(guid, "a (T)\n  writer b", "T\r\n  reader c", qos);
        let member = Member {
            guid_prefix: "01".to_owned(),
            vendor: "v\nv".to_owned(),
            protocol: "2.5".to_owned(),
            name: "n\nn".to_owned(),
            domain_tag: "t\nt".to_owned(),
            groups: vec!["g\ng".to_owned()],
            lease_s: None,
            host: Some("h\nh".to_owned()),
            process_id: Some("1\n2".to_owned()),
            program: Some("q\nq".to_owned()),
            addresses: vec!["192.0.2.1:7410".to_owned()],
            endpoints: vec![Endpoint::writer(&data)],
        };
        let text = member.to_text();
        let beginnings: Vec<&str> = text.lines().map(|line| line.get(..9).unwrap_or(line)).collect();
        assert_eq!(beginnings, ["", "01 \"n\\nn\"", "  program", "  writer "], "{text}");
        assert!(text.contains("  writer a (T)\\u000a  writer b (T\\u000d\\u000a  reader c): "), "{text}");
    }
}
