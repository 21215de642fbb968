//! `thalweg why`: how the endpoints of a topic send and receive, with the reasons.

mod text;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use thalweg::DomainParticipant;
use thalweg::discovery::{ParticipantData, PublicationData, SubscriptionData};
use thalweg::explain::{
    GroupExplanation, LinkExplanation, Medium, ParticipantExplanation, ReaderExplanation, RouteExplanation,
    TopicExplanation, WriterExplanation,
};
use thalweg::types::{Guid, GuidPrefix, Locator, VendorId};

use super::list::{Endpoint, Policies};
use super::topic::find::used_name;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};
use crate::refusals::Refusals;
use crate::surroundings::{EndpointComparison, Lookaround, NobodyFound, SurveyOptions};

/// Explains a topic: for each writer its method, its destinations and the numbers behind the choice; for each reader its counts of
/// received, lost and rejected samples, with reasons; for each pair that does not match, the reason; and messages that participants
/// refused because their origin was not proved. Thalweg's endpoints in other processes are
/// asked; of other vendors' endpoints it prints the announced data.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg why chatter --domain 0"))]
pub struct WhyOptions {
    /// Name of the topic, such as Square or /scan.
    pub topic: String,

    /// Listen for SECONDS before asking; participants of a busy network may need longer (default: 2).
    #[arg(long, value_name = "SECONDS", default_value = "2", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub settle: Duration,

    /// Wait at most SECONDS for the endpoints' answers (default: 3).
    #[arg(long, value_name = "SECONDS", default_value = "3", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub timeout: Duration,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// Membership in the domain, and a survey where nobody is found.
    pub survey: SurveyOptions,
}

/// How long the participants of a pair may take to tell their types, and those of all pairs together; then the names decide.
const TYPES_PATIENCE: Duration = Duration::from_millis(500);
const ALL_TYPES_PATIENCE: Duration = Duration::from_secs(3);

/// Listens, asks and explains.
///
/// # Errors
/// The network cannot be used, or output cannot be written.
pub fn run(options: &WhyOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let participant = options.survey.member.builder().inspector().create().map_err(Failure::from_cause)?;
    options.survey.member.serve_metrics(&participant)?;
    let mut lookaround = Lookaround::new(&participant, &options.survey);
    lookaround.begin();
    let deadline = Instant::now() + options.settle;
    let is_alone = || participant.discovered_participants().is_empty();
    while Instant::now() < deadline || (is_alone() && lookaround.is_listening()) {
        if interrupt.came() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let topic = used_name(&participant, &options.topic);
    let told = participant.explain_topic(&topic, options.timeout).map_err(Failure::from_cause)?;
    let mut explained = ExplainedTopic::new(&participant, &topic, &told);
    if explained.writers.is_empty() && explained.readers.is_empty() {
        explained.nobody_found = lookaround.take(Some(&topic));
    }
    let text = if options.json {
        serde_json::to_string_pretty(&explained).map_err(Failure::from_cause)?
    } else {
        explained.to_text()
    };
    print_line(text.trim_end())
}

/// The explanation of one topic.
#[derive(Serialize)]
struct ExplainedTopic {
    domain: u32,
    topic: String,
    writers: Vec<WriterView>,
    readers: Vec<ReaderView>,
    /// Those that answered, and this command.
    participants: Vec<ParticipantView>,
    /// Pairs that do not match, and why.
    mismatches: Vec<MismatchView>,
    /// Participants of which nothing is known because of their communication groups.
    ignored_participants: usize,
    /// Why it has no writers and readers; null where it has some.
    nobody_found: Option<NobodyFound>,
}

/// The participant of an endpoint.
#[derive(Clone, Serialize)]
struct Owner {
    vendor: String,
    /// Name of the participant.
    participant: String,
}

#[derive(Serialize)]
struct WriterView {
    guid: String,
    #[serde(flatten)]
    owner: Owner,
    #[serde(rename = "type")]
    type_name: String,
    qos: Policies,
    /// Readers that match it by what both and their participants announce.
    matching_readers: Vec<String>,
    /// Its own explanation; null for other vendors and without an answer.
    explanation: Option<Explanation>,
    /// Whether it could be asked.
    thalweg: bool,
}

#[derive(Serialize)]
struct ReaderView {
    guid: String,
    #[serde(flatten)]
    owner: Owner,
    #[serde(rename = "type")]
    type_name: String,
    qos: Policies,
    /// Its own addresses, else its participant's.
    addresses: Vec<String>,
    groups: Vec<String>,
    /// Its own explanation; null for other vendors and without an answer.
    explanation: Option<Reception>,
    /// Whether it could be asked.
    thalweg: bool,
}

/// A participant's own words.
#[derive(Serialize)]
struct ParticipantView {
    guid_prefix: String,
    #[serde(flatten)]
    owner: Owner,
    refused: Refusals,
}

/// A reader's own words.
#[derive(Serialize)]
struct Reception {
    writers: usize,
    received: u64,
    held: usize,
    overwritten: u64,
    expired: u64,
    lost: u64,
    /// The number for each reason; empty without losses.
    lost_why: String,
    rejected: u64,
    /// Which limit the last one met.
    rejected_why: Option<String>,
    /// Claims that the reader verified first.
    doubted: u64,
}

#[derive(Serialize)]
struct MismatchView {
    writer: String,
    reader: String,
    why: String,
}

/// A writer's own words.
#[derive(Serialize)]
struct Explanation {
    method: String,
    method_now: String,
    reasons: Vec<String>,
    write_interval_us: Option<f64>,
    sample_bytes: usize,
    samples_per_datagram: f64,
    datagram_bytes: usize,
    readers: usize,
    readers_behind: usize,
    readers_given_up: usize,
    window_bytes: Option<u64>,
    in_flight_bytes: u64,
    held_samples: usize,
    /// Answers refused because they acknowledge or request samples that were never sent.
    implausible: u64,
    route: RouteView,
}

#[derive(Serialize)]
struct RouteView {
    destination: String,
    /// The first 32.
    addresses: Vec<String>,
    address_count: usize,
    batch_address_count: usize,
    readers_on_this_host: usize,
    readers_without_group: usize,
    groups: Vec<GroupView>,
}

#[derive(Serialize)]
struct GroupView {
    group: String,
    used: bool,
    why: String,
    participants: usize,
    unicast_addresses: usize,
    unicast_ns_per_byte: f64,
    multicast_ns_per_byte: Option<f64>,
    links: Vec<LinkView>,
}

#[derive(Serialize)]
struct LinkView {
    name: String,
    medium: &'static str,
    bytes_per_second: u64,
    group_bytes_per_second: u64,
    participants: u32,
    bystanders: u32,
}

/// Participants by their prefix, to name the owners of endpoints.
struct Owners(HashMap<GuidPrefix, ParticipantData>);

impl Owners {
    fn of(&self, prefix: GuidPrefix) -> Owner {
        let data = self.0.get(&prefix);
        let vendor = data.map_or(prefix.vendor(), |data| data.vendor);
        Owner { vendor: vendor.to_string(), participant: data.map(|data| data.entity_name.clone()).unwrap_or_default() }
    }

    fn is_thalweg(&self, guid: Guid) -> bool {
        self.0.get(&guid.prefix).is_some_and(|data| data.vendor == VendorId::THALWEG)
    }
}

impl ExplainedTopic {
    fn new(participant: &DomainParticipant, topic: &str, told: &TopicExplanation) -> ExplainedTopic {
        let owners = participant.discovered_participants().into_iter().map(|data| (data.guid_prefix, data));
        let owners = Owners(owners.collect());
        let (writers, readers) = (participant.publications(), participant.subscriptions());
        let writers: Vec<&PublicationData> =
            writers.iter().map(|known| known.data.as_ref()).filter(|data| data.topic_name == topic).collect();
        let readers: Vec<&SubscriptionData> =
            readers.iter().map(|known| known.data.as_ref()).filter(|data| data.topic_name == topic).collect();
        let mut explained = ExplainedTopic {
            domain: participant.domain_id(),
            topic: topic.to_owned(),
            writers: writers.iter().map(|data| WriterView::new(data, &owners)).collect(),
            readers: readers.iter().map(|data| ReaderView::new(data, &owners)).collect(),
            participants: told
                .participants
                .iter()
                .map(|told| ParticipantView::new(told, participant, &owners))
                .collect(),
            mismatches: Vec::new(),
            ignored_participants: participant.ignored_participants().len(),
            nobody_found: None,
        };
        let comparison = EndpointComparison::new(participant);
        let deadline = Instant::now() + ALL_TYPES_PATIENCE;
        for (view, writer) in explained.writers.iter_mut().zip(&writers) {
            view.explanation = told.writers.iter().find(|told| told.guid == writer.guid).map(Explanation::new);
            let (matching, mismatches) = compare_with_all(&comparison, writer, &readers, deadline);
            view.matching_readers = matching;
            explained.mismatches.extend(mismatches);
        }
        for (view, reader) in explained.readers.iter_mut().zip(&readers) {
            view.explanation = told.readers.iter().find(|told| told.guid == reader.guid).map(Reception::new);
        }
        explained
    }
}

/// The readers that match a writer, and the others with the reason. Types that are not told until `deadline` are known by their names.
fn compare_with_all(
    comparison: &EndpointComparison<'_>,
    writer: &PublicationData,
    readers: &[&SubscriptionData],
    deadline: Instant,
) -> (Vec<String>, Vec<MismatchView>) {
    let (mut matching, mut mismatches) = (Vec::new(), Vec::new());
    for reader in readers {
        let patience = deadline.saturating_duration_since(Instant::now()).min(TYPES_PATIENCE);
        match comparison.mismatch(writer, reader, patience) {
            None => matching.push(reader.guid.to_string()),
            Some(why) => {
                let (writer, reader) = (writer.guid.to_string(), reader.guid.to_string());
                mismatches.push(MismatchView { writer, reader, why });
            }
        }
    }
    (matching, mismatches)
}

impl WriterView {
    fn new(data: &PublicationData, owners: &Owners) -> WriterView {
        let Endpoint { guid, type_name, qos, .. } = Endpoint::writer(data);
        WriterView {
            guid,
            owner: owners.of(data.guid.prefix),
            type_name,
            qos,
            matching_readers: Vec::new(),
            explanation: None,
            thalweg: owners.is_thalweg(data.guid),
        }
    }
}

impl ReaderView {
    fn new(data: &SubscriptionData, owners: &Owners) -> ReaderView {
        let Endpoint { guid, type_name, qos, .. } = Endpoint::reader(data);
        let (mut unicast, mut multicast) = (data.unicast.clone(), data.multicast.clone());
        if let Some(participant) = owners.0.get(&data.guid.prefix)
            && unicast.is_empty()
            && multicast.is_empty()
        {
            unicast.clone_from(&participant.locators.default_unicast);
            multicast.clone_from(&participant.locators.default_multicast);
        }
        ReaderView {
            guid,
            owner: owners.of(data.guid.prefix),
            type_name,
            qos,
            addresses: texts(&unicast),
            groups: texts(&multicast),
            explanation: None,
            thalweg: owners.is_thalweg(data.guid),
        }
    }
}

impl ParticipantView {
    fn new(told: &ParticipantExplanation, asking: &DomainParticipant, owners: &Owners) -> ParticipantView {
        let mut owner = owners.of(told.guid_prefix);
        if told.guid_prefix == asking.guid_prefix() {
            owner.participant = "this command".to_owned();
        }
        ParticipantView { guid_prefix: told.guid_prefix.to_string(), owner, refused: Refusals::new(told) }
    }
}

impl Reception {
    fn new(told: &ReaderExplanation) -> Reception {
        Reception {
            writers: told.writers,
            received: told.received,
            held: told.held,
            overwritten: told.overwritten,
            expired: told.expired,
            lost: told.losses.total(),
            lost_why: told.losses.to_string(),
            rejected: told.rejections.total,
            rejected_why: told.rejections.last_reason.map(|reason| reason.to_string()),
            doubted: told.doubted,
        }
    }
}

impl Explanation {
    fn new(told: &WriterExplanation) -> Explanation {
        Explanation {
            method: told.method.clone(),
            method_now: told.method_now.clone(),
            reasons: told.reasons.clone(),
            write_interval_us: told.write_interval.map(|interval| interval.as_secs_f64() * 1e6),
            sample_bytes: told.sample_bytes,
            samples_per_datagram: told.samples_per_datagram,
            datagram_bytes: told.datagram_bytes,
            readers: told.readers,
            readers_behind: told.readers_behind,
            readers_given_up: told.readers_given_up,
            window_bytes: told.window_bytes,
            in_flight_bytes: told.in_flight_bytes,
            held_samples: told.held_samples,
            implausible: told.implausible,
            route: RouteView::new(&told.route),
        }
    }
}

impl RouteView {
    fn new(route: &RouteExplanation) -> RouteView {
        RouteView {
            destination: route.configured.to_string(),
            addresses: texts(&route.destinations),
            address_count: route.destination_count,
            batch_address_count: route.batch_destinations,
            readers_on_this_host: route.readers_on_this_host,
            readers_without_group: route.readers_without_group,
            groups: route.groups.iter().map(GroupView::new).collect(),
        }
    }
}

impl GroupView {
    fn new(group: &GroupExplanation) -> GroupView {
        GroupView {
            group: group.group.to_string(),
            used: group.used,
            why: group.why.clone(),
            participants: group.participants,
            unicast_addresses: group.unicast_addresses,
            unicast_ns_per_byte: group.unicast_nanos_per_byte,
            multicast_ns_per_byte: group.multicast_nanos_per_byte,
            links: group.links.iter().map(LinkView::new).collect(),
        }
    }
}

impl LinkView {
    fn new(link: &LinkExplanation) -> LinkView {
        LinkView {
            name: link.name.clone(),
            medium: match link.medium {
                Medium::Loopback => "loopback",
                Medium::Wired => "wired",
                Medium::Wireless => "wireless",
                _ => "other",
            },
            bytes_per_second: link.bytes_per_second,
            group_bytes_per_second: link.group_bytes_per_second,
            participants: link.participants,
            bystanders: link.bystanders,
        }
    }
}

fn texts(locators: &[Locator]) -> Vec<String> {
    locators.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
