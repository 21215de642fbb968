//! Questions about the endpoints of a topic and their answers on the wire: appendable types, so that a later version can add
//! members at the end, which an earlier one skips.

use std::time::Duration;

use thalweg_derive::Topic;
use thalweg_rtps::history::RejectReason;
use thalweg_rtps::participant::ParticipantExplanation;
use thalweg_rtps::qos::Destination;
use thalweg_rtps::reader::{LossReason, Losses, ReaderExplanation, Rejections};
use thalweg_rtps::types::{Guid, GuidPrefix, KeyHash, Locator};
use thalweg_rtps::writer::{GroupExplanation, LinkExplanation, Medium, RouteExplanation, WriterExplanation};

/// The question of an inspector about a topic.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::TopicQuestion", extensibility = "appendable")]
pub(super) struct TopicQuestion {
    pub(super) number: u32,
    #[topic(max_len = 255)]
    pub(super) topic: String,
}

/// An answer about one of the endpoints that a participant has on the topic. Later versions may describe others than writers and
/// readers.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::TopicAnswer", extensibility = "appendable")]
pub(super) struct TopicAnswer {
    /// The inspector that asked; every inspector receives it.
    pub(super) inspector: [u8; 12],
    /// The number of the inspector's question that it answers.
    pub(super) number: u32,
    /// Its place among the answers of its participant to that question, from 0.
    pub(super) position: u32,
    /// The number of these answers.
    pub(super) total: u32,
    pub(super) refused: ToldRefusals,
    pub(super) writer: Option<ToldWriter>,
    pub(super) reader: Option<ToldReader>,
}

/// The counts of [`ParticipantExplanation`].
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldRefusals", extensibility = "appendable")]
pub(super) struct ToldRefusals {
    foreign_source: u64,
    wrong_proofs: u64,
    unprovable: u64,
    unproved_locators: u64,
    participants_over_limit: u64,
    endpoints_over_limit: u64,
}

/// [`WriterExplanation`].
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldWriter", extensibility = "appendable")]
pub(super) struct ToldWriter {
    guid: [u8; 16],
    #[topic(max_len = 255)]
    topic: String,
    method: ToldText,
    method_now: ToldText,
    reasons: ToldReasons,
    sending: ToldSending,
    readers: ToldReaders,
    implausible: u64,
    route: ToldRoute,
}

/// The rate, sizes and held samples of a writer.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldSending", extensibility = "appendable")]
struct ToldSending {
    write_interval_nanos: Option<u64>,
    sample_bytes: u64,
    samples_per_datagram: f64,
    datagram_bytes: u64,
    window_bytes: Option<u64>,
    in_flight_bytes: u64,
    held_samples: u64,
}

/// The readers of a writer, by number and state.
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldReaders", extensibility = "appendable")]
struct ToldReaders {
    matched: u64,
    behind: u64,
    given_up: u64,
}

/// [`RouteExplanation`].
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldRoute", extensibility = "appendable")]
struct ToldRoute {
    /// 1 is unicast, 2 is multicast, others are auto.
    configured: u32,
    #[topic(max_len = 32)]
    destinations: Vec<ToldLocator>,
    destination_count: u64,
    batch_destinations: u64,
    readers_on_this_host: u64,
    readers_without_group: u64,
    #[topic(max_len = 4)]
    groups: Vec<ToldGroup>,
}

/// [`GroupExplanation`].
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldGroup", extensibility = "appendable")]
struct ToldGroup {
    group: ToldLocator,
    used: bool,
    participants: u64,
    unicast_addresses: u64,
    unicast_nanos_per_byte: f64,
    multicast_nanos_per_byte: Option<f64>,
    #[topic(max_len = 16)]
    links: Vec<ToldLink>,
    why: ToldText,
}

/// [`LinkExplanation`].
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldLink", extensibility = "appendable")]
struct ToldLink {
    #[topic(max_len = 64)]
    name: String,
    /// 0 is loopback, 2 is wireless, others are wired.
    medium: u32,
    bytes_per_second: u64,
    group_bytes_per_second: u64,
    participants: u32,
    bystanders: u32,
}

#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldLocator")]
struct ToldLocator {
    kind: i32,
    port: u32,
    address: [u8; 16],
}

/// [`ReaderExplanation`].
#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr", name = "thalweg::ToldReader", extensibility = "appendable")]
pub(super) struct ToldReader {
    guid: [u8; 16],
    #[topic(max_len = 255)]
    topic: String,
    writers: u64,
    received: u64,
    held: u64,
    overwritten: u64,
    expired: u64,
    /// In the order of [`LossReason::ALL`].
    #[topic(max_len = 32)]
    losses: Vec<u64>,
    /// Place of the last reason in that order, from 1; 0 for none.
    last_loss: u32,
    rejections: u64,
    /// Place of the last reason in [`REJECT_REASONS`], from 1; 0 for none.
    last_rejection: u32,
    rejected_instance: Option<[u8; 16]>,
    doubted: u64,
}

#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct ToldText(#[topic(max_len = 256)] String);

#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(crate = "thalweg_cdr")]
struct ToldReasons(#[topic(max_len = 16)] Vec<ToldText>);

/// The bounds that the types have: longer texts and lists are cut off before they are sent.
const TOPIC_MAX_BYTES: usize = 255;
const TEXT_MAX_BYTES: usize = 256;
const NAME_MAX_BYTES: usize = 64;
const REASONS_MAX: usize = 16;
const DESTINATIONS_MAX: usize = 32;
const GROUPS_MAX: usize = 4;
const LINKS_MAX: usize = 16;

const REJECT_REASONS: [RejectReason; 4] =
    [RejectReason::Samples, RejectReason::Instances, RejectReason::SamplesPerInstance, RejectReason::Memory];

impl From<&ParticipantExplanation> for ToldRefusals {
    fn from(told: &ParticipantExplanation) -> ToldRefusals {
        ToldRefusals {
            foreign_source: told.foreign_source,
            wrong_proofs: told.wrong_proofs,
            unprovable: told.unprovable,
            unproved_locators: told.unproved_locators,
            participants_over_limit: told.participants_over_limit,
            endpoints_over_limit: told.endpoints_over_limit,
        }
    }
}

impl ToldRefusals {
    /// The counts of the participant that sent them.
    pub(super) fn of(&self, guid_prefix: GuidPrefix) -> ParticipantExplanation {
        let mut out = ParticipantExplanation::default();
        out.guid_prefix = guid_prefix;
        out.foreign_source = self.foreign_source;
        out.wrong_proofs = self.wrong_proofs;
        out.unprovable = self.unprovable;
        out.unproved_locators = self.unproved_locators;
        out.participants_over_limit = self.participants_over_limit;
        out.endpoints_over_limit = self.endpoints_over_limit;
        out
    }
}

impl From<&WriterExplanation> for ToldWriter {
    fn from(told: &WriterExplanation) -> ToldWriter {
        ToldWriter {
            guid: told.guid.to_bytes(),
            topic: cut(&told.topic, TOPIC_MAX_BYTES),
            method: text(&told.method),
            method_now: text(&told.method_now),
            reasons: ToldReasons(told.reasons.iter().take(REASONS_MAX).map(|reason| text(reason)).collect()),
            sending: ToldSending {
                write_interval_nanos: told.write_interval.map(nanos),
                sample_bytes: told.sample_bytes as u64,
                samples_per_datagram: told.samples_per_datagram,
                datagram_bytes: told.datagram_bytes as u64,
                window_bytes: told.window_bytes,
                in_flight_bytes: told.in_flight_bytes,
                held_samples: told.held_samples as u64,
            },
            readers: ToldReaders {
                matched: told.readers as u64,
                behind: told.readers_behind as u64,
                given_up: told.readers_given_up as u64,
            },
            implausible: told.implausible,
            route: ToldRoute::from(&told.route),
        }
    }
}

impl From<ToldWriter> for WriterExplanation {
    fn from(told: ToldWriter) -> WriterExplanation {
        let mut out = WriterExplanation::default();
        out.guid = Guid::from_bytes(told.guid);
        out.topic = told.topic;
        out.method = told.method.0;
        out.method_now = told.method_now.0;
        out.write_interval = told.sending.write_interval_nanos.map(Duration::from_nanos);
        out.sample_bytes = count(told.sending.sample_bytes);
        out.samples_per_datagram = told.sending.samples_per_datagram;
        out.datagram_bytes = count(told.sending.datagram_bytes);
        out.readers = count(told.readers.matched);
        out.readers_behind = count(told.readers.behind);
        out.readers_given_up = count(told.readers.given_up);
        out.window_bytes = told.sending.window_bytes;
        out.in_flight_bytes = told.sending.in_flight_bytes;
        out.held_samples = count(told.sending.held_samples);
        out.implausible = told.implausible;
        out.reasons = told.reasons.0.into_iter().map(|reason| reason.0).collect();
        out.route = told.route.into();
        out
    }
}

impl From<&RouteExplanation> for ToldRoute {
    fn from(told: &RouteExplanation) -> ToldRoute {
        ToldRoute {
            configured: match told.configured {
                Destination::Auto => 0,
                Destination::Unicast => 1,
                Destination::Multicast => 2,
                _ => 0,
            },
            destinations: told.destinations.iter().take(DESTINATIONS_MAX).map(ToldLocator::from).collect(),
            destination_count: told.destination_count as u64,
            batch_destinations: told.batch_destinations as u64,
            readers_on_this_host: told.readers_on_this_host as u64,
            readers_without_group: told.readers_without_group as u64,
            groups: told.groups.iter().take(GROUPS_MAX).map(ToldGroup::from).collect(),
        }
    }
}

impl From<ToldRoute> for RouteExplanation {
    fn from(told: ToldRoute) -> RouteExplanation {
        let mut out = RouteExplanation::default();
        out.configured = match told.configured {
            1 => Destination::Unicast,
            2 => Destination::Multicast,
            _ => Destination::Auto,
        };
        out.destinations = told.destinations.into_iter().map(Locator::from).collect();
        out.destination_count = count(told.destination_count);
        out.batch_destinations = count(told.batch_destinations);
        out.readers_on_this_host = count(told.readers_on_this_host);
        out.readers_without_group = count(told.readers_without_group);
        out.groups = told.groups.into_iter().map(GroupExplanation::from).collect();
        out
    }
}

impl From<&GroupExplanation> for ToldGroup {
    fn from(told: &GroupExplanation) -> ToldGroup {
        ToldGroup {
            group: ToldLocator::from(&told.group),
            used: told.used,
            participants: told.participants as u64,
            unicast_addresses: told.unicast_addresses as u64,
            unicast_nanos_per_byte: told.unicast_nanos_per_byte,
            multicast_nanos_per_byte: told.multicast_nanos_per_byte,
            links: told.links.iter().take(LINKS_MAX).map(ToldLink::from).collect(),
            why: text(&told.why),
        }
    }
}

impl From<ToldGroup> for GroupExplanation {
    fn from(told: ToldGroup) -> GroupExplanation {
        let mut out = GroupExplanation::of(told.group.into());
        out.used = told.used;
        out.participants = count(told.participants);
        out.unicast_addresses = count(told.unicast_addresses);
        out.unicast_nanos_per_byte = told.unicast_nanos_per_byte;
        out.multicast_nanos_per_byte = told.multicast_nanos_per_byte;
        out.links = told.links.into_iter().map(LinkExplanation::from).collect();
        out.why = told.why.0;
        out
    }
}

impl From<&LinkExplanation> for ToldLink {
    fn from(told: &LinkExplanation) -> ToldLink {
        ToldLink {
            name: cut(&told.name, NAME_MAX_BYTES),
            medium: match told.medium {
                Medium::Loopback => 0,
                Medium::Wired => 1,
                Medium::Wireless => 2,
                _ => 1,
            },
            bytes_per_second: told.bytes_per_second,
            group_bytes_per_second: told.group_bytes_per_second,
            participants: told.participants,
            bystanders: told.bystanders,
        }
    }
}

impl From<ToldLink> for LinkExplanation {
    fn from(told: ToldLink) -> LinkExplanation {
        let mut out = LinkExplanation::default();
        out.name = told.name;
        out.medium = match told.medium {
            0 => Medium::Loopback,
            2 => Medium::Wireless,
            _ => Medium::Wired,
        };
        out.bytes_per_second = told.bytes_per_second;
        out.group_bytes_per_second = told.group_bytes_per_second;
        out.participants = told.participants;
        out.bystanders = told.bystanders;
        out
    }
}

impl From<&Locator> for ToldLocator {
    fn from(locator: &Locator) -> ToldLocator {
        ToldLocator { kind: locator.kind, port: locator.port, address: locator.address }
    }
}

impl From<ToldLocator> for Locator {
    fn from(told: ToldLocator) -> Locator {
        Locator { kind: told.kind, port: told.port, address: told.address }
    }
}

impl From<&ReaderExplanation> for ToldReader {
    fn from(told: &ReaderExplanation) -> ToldReader {
        let last_loss = told.losses.last_reason();
        ToldReader {
            guid: told.guid.to_bytes(),
            topic: cut(&told.topic, TOPIC_MAX_BYTES),
            writers: told.writers as u64,
            received: told.received,
            held: told.held as u64,
            overwritten: told.overwritten,
            expired: told.expired,
            losses: LossReason::ALL.map(|reason| told.losses.of(reason)).into(),
            last_loss: place_of(last_loss, &LossReason::ALL),
            rejections: told.rejections.total,
            last_rejection: place_of(told.rejections.last_reason, &REJECT_REASONS),
            rejected_instance: told.rejections.last_instance.map(|instance| instance.0),
            doubted: told.doubted,
        }
    }
}

impl From<ToldReader> for ReaderExplanation {
    fn from(told: ToldReader) -> ReaderExplanation {
        let mut losses = told.losses.into_iter();
        let losses = LossReason::ALL.map(|_| losses.next().unwrap_or(0));
        let mut out = ReaderExplanation::default();
        out.guid = Guid::from_bytes(told.guid);
        out.topic = told.topic;
        out.writers = count(told.writers);
        out.received = told.received;
        out.held = count(told.held);
        out.overwritten = told.overwritten;
        out.expired = told.expired;
        out.losses = Losses::told(losses, nth(&LossReason::ALL, told.last_loss));
        out.rejections = Rejections {
            total: told.rejections,
            last_reason: nth(&REJECT_REASONS, told.last_rejection),
            last_instance: told.rejected_instance.map(KeyHash),
        };
        out.doubted = told.doubted;
        out
    }
}

/// The place of a reason in a list, from 1; 0 for none.
fn place_of<T: Copy + PartialEq>(reason: Option<T>, all: &[T]) -> u32 {
    let place = all.iter().position(|one| Some(*one) == reason);
    place.map_or(0, |place| place as u32 + 1)
}

/// The reason at a place; `None` for 0 and for reasons of later versions.
fn nth<T: Copy>(all: &[T], place: u32) -> Option<T> {
    all.get((place as usize).checked_sub(1)?).copied()
}

/// The longest beginning of a text that fits.
fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

fn text(text: &str) -> ToldText {
    ToldText(cut(text, TEXT_MAX_BYTES))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn count(told: u64) -> usize {
    usize::try_from(told).unwrap_or(usize::MAX)
}
