//! The reasons why no participant is found, with remedies.

mod apart;
mod comparison;
mod similar;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use thalweg::DomainParticipant;
use thalweg::surroundings::{
    HeardDomain, HeardParticipant, InterfaceUsage, MulticastTrial, Surroundings, Survey, SurveyedInterface,
};

use crate::network_options::{MemberOptions, NetworkOptions};
use crate::outcome::push_line;
use apart::Apart;
pub use comparison::EndpointComparison;
pub use similar::{SimilarTopic, find as similar_topics};

/// Options of commands that are members of a domain and may find nobody there.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Network")]
pub struct SurveyOptions {
    #[command(flatten)]
    /// The member of the domain that this command is.
    pub member: MemberOptions,

    /// Say why nobody is found, after listening to all domains for SECONDS; 0 leaves that out (default: 6).
    #[arg(long = "survey", value_name = "SECONDS", default_value = "6", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub patience: Duration,
}

/// A survey that a command may need later.
pub struct Lookaround<'a> {
    participant: &'a DomainParticipant,
    network: &'a NetworkOptions,
    patience: Duration,
    started: Instant,
    survey: Option<Survey>,
}

impl<'a> Lookaround<'a> {
    /// Prepares a survey; [`Lookaround::begin`] starts it.
    pub fn new(participant: &'a DomainParticipant, options: &'a SurveyOptions) -> Self {
        let SurveyOptions { member, patience } = options;
        Lookaround { participant, network: &member.network, patience: *patience, started: Instant::now(), survey: None }
    }

    /// Begins the survey unless it has begun or is switched off.
    pub fn begin(&mut self) {
        if self.survey.is_none() && !self.patience.is_zero() {
            self.survey = Some(self.participant.survey());
        }
    }

    /// Begins after a second without a discovered participant; most commands discover one at once.
    pub fn begin_late(&mut self) {
        if self.started.elapsed() >= BEGIN_AFTER {
            self.begin();
        }
    }

    /// Ends silently, because a participant was found.
    pub fn end(&mut self) {
        self.survey = None;
        self.patience = Duration::ZERO;
    }

    /// True while it has not listened for as long as the options say.
    pub fn is_listening(&self) -> bool {
        self.survey.as_ref().is_some_and(|survey| survey.listened() < self.patience)
    }

    /// Ends the survey and returns its findings about `topic`, if it has begun.
    pub fn take(&mut self, topic: Option<&str>) -> Option<NobodyFound> {
        let survey = self.survey.take()?;
        self.patience = Duration::ZERO;
        let surroundings = survey.finish(self.participant);
        Some(NobodyFound::new(self.participant, self.network, &surroundings, topic))
    }

    /// As [`Lookaround::take`], once it has listened for long enough.
    pub fn take_when_due(&mut self, topic: Option<&str>) -> Option<NobodyFound> {
        if self.is_listening() { None } else { self.take(topic) }
    }
}

/// The findings of a command that finds no participant.
#[derive(Serialize)]
pub struct NobodyFound {
    domain: u32,
    domain_tag: String,
    /// Other participants of the domain with the same tag and a common group.
    participants: usize,
    /// The requested topic, and similar ones; null without one.
    topic: Option<SoughtTopic>,
    multicast: bool,
    peers: Vec<String>,
    interfaces: Vec<InterfaceView>,
    listened_s: f64,
    domains_listened: usize,
    heard: Vec<HeardView>,
    /// Participants of the domain that are ignored, by their groups, and the groups.
    ignored: usize,
    other_groups: Vec<String>,
    /// Remedies, most likely first.
    advice: Vec<String>,
}

/// The requested topic.
#[derive(Serialize)]
struct SoughtTopic {
    name: String,
    /// Endpoints of others with this very name.
    writers: usize,
    readers: usize,
    /// Their types and partitions; a partition of no name is left out.
    types: BTreeSet<String>,
    partitions: BTreeSet<String>,
    /// Their writers and readers that do not match, by the reason.
    apart: Vec<Apart>,
    similar: Vec<SimilarTopic>,
}

#[derive(Serialize)]
struct InterfaceView {
    name: String,
    addresses: Vec<String>,
    up: bool,
    multicast: bool,
    used: bool,
    /// Whether a multicast datagram came back; null where none was sent.
    multicast_works: Option<bool>,
    /// The reason why it is not used, or the result of the multicast test.
    finding: String,
}

#[derive(Serialize)]
struct HeardView {
    domain: u32,
    domain_tag: String,
    participants: Vec<HeardParticipantView>,
}

#[derive(Serialize)]
struct HeardParticipantView {
    guid_prefix: String,
    vendor: String,
    name: String,
    host: Option<String>,
    process_id: Option<String>,
    program: Option<String>,
    address: String,
}

impl NobodyFound {
    fn new(
        participant: &DomainParticipant,
        network: &NetworkOptions,
        around: &Surroundings,
        topic: Option<&str>,
    ) -> NobodyFound {
        let mut other_groups: Vec<String> =
            around.other_groups.iter().flat_map(|one| one.groups.names().map(str::to_owned)).collect();
        other_groups.sort();
        other_groups.dedup();
        let mut found = NobodyFound {
            domain: around.domain_id,
            domain_tag: around.domain_tag.clone(),
            participants: participant.discovered_participants().len(),
            topic: topic.map(|name| SoughtTopic::new(participant, name)),
            multicast: around.multicast,
            peers: network.peers.clone(),
            interfaces: around.interfaces.iter().map(InterfaceView::new).collect(),
            listened_s: (around.listened.as_secs_f64() * 10.0).round() / 10.0,
            domains_listened: around.domains_listened,
            heard: around.heard.iter().map(HeardView::new).collect(),
            ignored: around.other_groups.len(),
            other_groups,
            advice: Vec::new(),
        };
        found.advice = found.advise();
        found
    }

    /// Remedies for the findings.
    fn advise(&self) -> Vec<String> {
        let mut advice = Vec::new();
        if let Some(topic) = &self.topic {
            advice.extend(
                topic.similar.iter().map(|similar| format!("did you mean {:?}? {}", similar.name, similar.why)),
            );
            if !topic.apart.is_empty() {
                advice.push(format!(
                    "thalweg why {} tells type, QoS and partitions of each of its endpoints",
                    topic.name
                ));
            }
        }
        if self.ignored > 0 {
            let group = self.other_groups.first().map_or("default", String::as_str);
            advice.push(format!("--group {group} joins a group of ignored participants, --group '*' joins all groups"));
        }
        for heard in self.heard_that_matter(self.topic_is_used()).into_iter().take(SHOWN_MAX) {
            advice.push(match (heard.domain == self.domain, heard.domain_tag == self.domain_tag) {
                (true, true) => {
                    "participants of this domain are heard, but do not answer: let unicast UDP between the hosts pass \
                     (firewall), and let both sides announce addresses that the other side reaches (--interface)"
                        .to_owned()
                }
                (true, false) if heard.domain_tag.is_empty() => {
                    "leave out --domain-tag to discover participants of this domain without tag".to_owned()
                }
                (true, false) => format!("--domain-tag {} discovers participants with that tag", heard.domain_tag),
                (false, _) if heard.domain_tag.is_empty() => {
                    format!("--domain {} discovers these participants", heard.domain)
                }
                (false, _) => {
                    format!("--domain {} --domain-tag {} discovers these participants", heard.domain, heard.domain_tag)
                }
            });
        }
        let fails = |one: &&InterfaceView| one.multicast_works == Some(false);
        let failing: Vec<&str> = self.interfaces.iter().filter(fails).map(|one| one.name.as_str()).collect();
        if !failing.is_empty() {
            let (name, lo) =
                (failing.join(", "), if failing.contains(&"lo") { " (ip link set lo multicast on)" } else { "" });
            advice.push(format!("make multicast work on {name}{lo}, or do without it by --peer"));
        }
        if self.interfaces.iter().all(|interface| !interface.used) {
            let example = if self.interfaces.iter().any(|one| one.name == "lo" && !one.up) {
                ", such as ip link set lo up"
            } else {
                ""
            };
            advice.push(format!("no interface can be used: bring one up with an address{example}"));
        } else if self.participants == 0 {
            advice.push(match (self.peers.is_empty(), self.multicast) {
                (false, _) => format!(
                    "nothing was found through --peer {}: check the address, that a participant of this domain runs there, and \
                     that UDP ports {} to {} pass",
                    self.peers.join(" --peer "),
                    7400 + 250 * self.domain,
                    7400 + 250 * self.domain + 75
                ),
                (true, true) => "networks that do not carry multicast (Wi-Fi, other subnets, containers, clouds) need --peer \
                     ADDRESS with the other host's address, at least on one side"
                    .to_owned(),
                (true, false) => "without multicast, participants are discovered on this host only; name other hosts with --peer \
                     ADDRESS, at least on one side"
                    .to_owned(),
            });
        }
        advice
    }

    /// Whether others in the domain use the requested topic: the reason for a missing match is no other domain then.
    fn topic_is_used(&self) -> bool {
        self.topic.as_ref().is_some_and(|topic| topic.writers + topic.readers > 0)
    }

    /// Who was heard, the most telling first: in the own domain with the own tag, in it with others, elsewhere; only the first where
    /// `only_own`.
    fn heard_that_matter(&self, only_own: bool) -> Vec<&HeardView> {
        let is_own = |heard: &&HeardView| heard.domain == self.domain && heard.domain_tag == self.domain_tag;
        let mut ranked: Vec<&HeardView> = self.heard.iter().filter(|heard| !only_own || is_own(heard)).collect();
        ranked.sort_by_key(|heard| (heard.domain != self.domain, heard.domain_tag != self.domain_tag, heard.domain));
        ranked
    }

    /// The facts and the advice for people, in lines; of the network only if no participant was found.
    pub fn to_text(&self) -> String {
        self.describe(self.participants == 0)
    }

    /// As [`NobodyFound::to_text`], always with the network.
    pub fn to_whole_text(&self) -> String {
        self.describe(true)
    }

    fn describe(&self, with_network: bool) -> String {
        let mut out = String::new();
        let tag = if self.domain_tag.is_empty() { String::new() } else { format!(" with tag {:?}", self.domain_tag) };
        let others = counted(self.participants, "other participant");
        push_line(&mut out, format_args!("{others} in domain {}{tag}", self.domain));
        if let Some(topic) = &self.topic {
            topic.describe(&mut out);
        }
        if self.ignored > 0 {
            let groups = if self.other_groups.is_empty() { "default".into() } else { self.other_groups.join(", ") };
            push_line(
                &mut out,
                format_args!("  {} of other groups ignored: {groups}", counted(self.ignored, "participant")),
            );
        }
        if with_network {
            self.interfaces.iter().for_each(|interface| interface.describe(&mut out));
        }
        let heard = self.heard_that_matter(!with_network && self.topic_is_used());
        heard.iter().take(LINES_MAX).for_each(|heard| heard.describe(&mut out));
        if let Some(more) = heard.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
            push_line(&mut out, format_args!("  and {more} more; `thalweg doctor --json` lists all"));
        }
        if with_network && self.multicast && self.heard.is_empty() {
            let (domains, seconds) = (self.domains_listened, self.listened_s);
            let others = if self.participants == 0 { "no participant" } else { "no other participant" };
            push_line(&mut out, format_args!("  {others} heard in any of {domains} domains within {seconds} s"));
        }
        for advice in &self.advice {
            push_line(&mut out, format_args!("  -> {advice}"));
        }
        out.trim_end().to_owned()
    }
}

impl SoughtTopic {
    fn new(participant: &DomainParticipant, name: &str) -> SoughtTopic {
        let own = participant.guid_prefix();
        let is_other = |guid: thalweg::types::Guid| guid.prefix != own;
        let (mut writers, mut readers) = (participant.publications(), participant.subscriptions());
        writers.retain(|known| is_other(known.data.guid));
        readers.retain(|known| is_other(known.data.guid));
        let writer_names: Vec<String> = writers.iter().map(|known| known.data.topic_name.clone()).collect();
        let reader_names: Vec<String> = readers.iter().map(|known| known.data.topic_name.clone()).collect();
        let similar = similar::find(name, &writer_names, &reader_names);
        writers.retain(|known| known.data.topic_name == name);
        readers.retain(|known| known.data.topic_name == name);
        let apart = apart::find(participant, &writers, &readers);
        let types = writers.iter().map(|known| &known.data.type_name);
        let types = types.chain(readers.iter().map(|known| &known.data.type_name)).cloned().collect();
        let partitions = writers.iter().flat_map(|known| &known.data.qos.partition);
        let partitions =
            partitions.chain(readers.iter().flat_map(|known| &known.data.qos.partition)).cloned().collect();
        SoughtTopic {
            name: name.to_owned(),
            writers: writers.len(),
            readers: readers.len(),
            types,
            partitions,
            apart,
            similar,
        }
    }

    fn describe(&self, out: &mut String) {
        let (writers, readers) = (counted(self.writers, "writer"), counted(self.readers, "reader"));
        push_line(out, format_args!("  topic {:?}: {writers} and {readers} of others", self.name));
        for (what, names) in [("types", &self.types), ("partitions", &self.partitions)] {
            if !names.is_empty() {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                push_line(out, format_args!("    {what}: {}", names.join(", ")));
            }
        }
        for Apart { why, pairs, writer, reader } in self.apart.iter().take(LINES_MAX) {
            let do_not = if *pairs == 1 {
                "1 pair does not match, "
            } else {
                &format!("{pairs} pairs do not match, one of them ")
            };
            push_line(out, format_args!("    {do_not}writer {writer} and reader {reader}: {why}"));
        }
    }
}

impl InterfaceView {
    fn new(surveyed: &SurveyedInterface) -> InterfaceView {
        let interface = &surveyed.listed.interface;
        let finding = match &surveyed.usage {
            InterfaceUsage::Used(Some(trial)) => trial.to_string(),
            InterfaceUsage::Used(None) if !interface.multicast => "it does not support multicast".to_owned(),
            InterfaceUsage::Used(None) => "multicast is not used".to_owned(),
            InterfaceUsage::Down => "it is down".to_owned(),
            InterfaceUsage::NoAddress => "it has no address".to_owned(),
            InterfaceUsage::NotAllowed => "--interface names others".to_owned(),
            InterfaceUsage::Denied => "it is denied".to_owned(),
            other => format!("{other:?}"),
        };
        InterfaceView {
            name: interface.name.clone(),
            addresses: interface.ips().map(|ip| ip.to_string()).collect(),
            up: surveyed.listed.up,
            multicast: interface.multicast,
            used: matches!(surveyed.usage, InterfaceUsage::Used(_)),
            multicast_works: match &surveyed.usage {
                InterfaceUsage::Used(Some(trial)) => Some(*trial == MulticastTrial::CameBack),
                _ => None,
            },
            finding,
        }
    }

    fn describe(&self, out: &mut String) {
        let addresses =
            if self.addresses.is_empty() { String::new() } else { format!(" ({})", self.addresses.join(" ")) };
        let used = if self.used { "uses" } else { "leaves out" };
        push_line(out, format_args!("  {used} {}{addresses}: {}", self.name, self.finding));
    }
}

impl HeardView {
    fn new(heard: &HeardDomain) -> HeardView {
        HeardView {
            domain: heard.domain_id,
            domain_tag: heard.domain_tag.clone(),
            participants: heard.participants.iter().map(HeardParticipantView::new).collect(),
        }
    }

    fn describe(&self, out: &mut String) {
        let tag = if self.domain_tag.is_empty() { String::new() } else { format!(" with tag {:?}", self.domain_tag) };
        let count = counted(self.participants.len(), "participant");
        let shown: Vec<String> = self.participants.iter().take(SHOWN_MAX).map(HeardParticipantView::to_text).collect();
        let more = if self.participants.len() > SHOWN_MAX { ", …" } else { "" };
        push_line(out, format_args!("  domain {}{tag}: {count} heard: {}{more}", self.domain, shown.join(", ")));
    }
}

impl HeardParticipantView {
    fn new(heard: &HeardParticipant) -> HeardParticipantView {
        HeardParticipantView {
            guid_prefix: heard.guid_prefix.to_string(),
            vendor: heard.vendor.to_string(),
            name: heard.entity_name.clone(),
            host: heard.process.host.clone(),
            process_id: heard.process.process_id.clone(),
            program: heard.process.program.clone(),
            address: heard.address.to_string(),
        }
    }

    fn to_text(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" {:?}", self.name) };
        let process = self.process_id.as_ref().map(|id| format!(" process {id}")).unwrap_or_default();
        format!("{}{name}{process} at {}", self.vendor, self.address)
    }
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Time without a discovered participant before a survey begins.
const BEGIN_AFTER: Duration = Duration::from_secs(1);
/// Domains and tags that are named.
const LINES_MAX: usize = 8;
/// Participants of one domain that are named, and domains that are advised.
const SHOWN_MAX: usize = 4;

#[cfg(test)]
mod tests;
