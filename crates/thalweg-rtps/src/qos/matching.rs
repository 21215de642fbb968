//! The match of a writer and a reader, or the reasons against it (DDS 1.4 §2.2.3, the "RxO" policies).

use std::fmt;
use std::time::Duration;

use super::policy::{LISTED_MAX, Listed, Period, tell_left_out};
use super::{PolicyId, ReaderQos, Representation, WriterQos, partitions_match};
use crate::types::Keyed;

/// The writer's side of a match.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Name of its topic.
    pub topic_name: &'a str,
    /// Name of the topic's type.
    pub type_name: &'a str,
    /// Whether the topic has a key.
    pub keyed: Keyed,
    /// Whether the writer announces a description of its type.
    pub describes_type: bool,
    /// Its offered QoS.
    pub qos: &'a WriterQos,
}

/// The reader's side of a match.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Name of its topic.
    pub topic_name: &'a str,
    /// Name of the topic's type.
    pub type_name: &'a str,
    /// Whether the topic has a key.
    pub keyed: Keyed,
    /// Whether the reader matches only with writers that announce a description of their type.
    pub forces_type_validation: bool,
    /// Its requested QoS.
    pub qos: &'a ReaderQos,
}

/// Result of comparing a writer with a reader; displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchResult {
    /// They exchange samples.
    Match,
    /// They have nothing to do with each other.
    DifferentTopic,
    /// Same topic, but the types' names differ. Of a name of more than 256 characters, these are told, and `…`.
    DifferentType {
        /// The writer's.
        offered: String,
        /// The reader's.
        requested: String,
    },
    /// Same topic and type name, but only one side's type has a key.
    DifferentKeyedness {
        /// The writer's.
        offered: Keyed,
        /// The reader's.
        requested: Keyed,
    },
    /// No partition of one fits one of the other. DDS counts this as no match rather than as incompatible QoS.
    PartitionsDisjoint {
        /// The writer's.
        offered: Vec<String>,
        /// The reader's.
        requested: Vec<String>,
    },
    /// The writer offers less than the reader requests: all policies that fail, in the order of their ids, at least one.
    Incompatible(Vec<Mismatch>),
}

impl MatchResult {
    /// True for [`MatchResult::Match`].
    pub fn is_match(&self) -> bool {
        *self == MatchResult::Match
    }
}

/// One policy that keeps a writer and a reader apart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Which policy.
    pub policy: PolicyId,
    /// The writer's value.
    pub offered: String,
    /// The reader's value.
    pub requested: String,
    /// The rule between them, with its clause.
    pub rule: &'static str,
}

/// Compares a writer with a reader. Evaluates every policy, also those that Thalweg refuses for its own endpoints: peers may
/// use them.
pub fn match_endpoints(offer: &Offer<'_>, request: &Request<'_>) -> MatchResult {
    if offer.topic_name != request.topic_name {
        return MatchResult::DifferentTopic;
    }
    if offer.type_name != request.type_name {
        let (offered, requested) = (told_name(offer.type_name), told_name(request.type_name));
        return MatchResult::DifferentType { offered, requested };
    }
    if offer.keyed != request.keyed {
        return MatchResult::DifferentKeyedness { offered: offer.keyed, requested: request.keyed };
    }
    if !partitions_match(&offer.qos.partition, &request.qos.partition) {
        let (offered, requested) = (offer.qos.partition.clone(), request.qos.partition.clone());
        return MatchResult::PartitionsDisjoint { offered, requested };
    }
    let mut mismatches = Mismatches(Vec::new());
    mismatches.compare(offer.qos, request.qos);
    let rule = "the reader forces type validation, which needs type information (DDS-XTypes 1.3 §7.6.3.4)";
    let holds = offer.describes_type || !request.forces_type_validation;
    mismatches.require(holds, PolicyId::TYPE_CONSISTENCY, "no type information", "force_type_validation", rule);
    if mismatches.0.is_empty() { MatchResult::Match } else { MatchResult::Incompatible(mismatches.0) }
}

struct Mismatches(Vec<Mismatch>);

impl Mismatches {
    /// Policies in the order of their ids.
    fn compare(&mut self, offered: &WriterQos, requested: &ReaderQos) {
        let at_least = "offered must be at least requested (DDS 1.4 §2.2.3)";
        let (durability, wanted) = (offered.durability, requested.durability);
        self.require(durability >= wanted, PolicyId::DURABILITY, durability, wanted, at_least);
        self.compare_presentation(offered, requested);
        let (deadline, wanted) = (offered.timing.deadline, requested.timing.deadline);
        self.require_within(PolicyId::DEADLINE, deadline, wanted);
        let (latency_budget, wanted) = (offered.timing.latency_budget, requested.timing.latency_budget);
        self.require_within(PolicyId::LATENCY_BUDGET, latency_budget, wanted);
        let (ownership, wanted) = (offered.ownership.kind(), requested.ownership);
        let rule = "both must be the same kind (DDS 1.4 §2.2.3.9)";
        self.require(ownership == wanted, PolicyId::OWNERSHIP, ownership, wanted, rule);
        let (liveliness, wanted) = (offered.liveliness, requested.liveliness);
        let rule = "the offered kind must be at least the requested one, the offered lease at most (DDS 1.4 §2.2.3.11)";
        let holds = liveliness.kind >= wanted.kind && within(liveliness.lease, wanted.lease);
        self.require(holds, PolicyId::LIVELINESS, liveliness, wanted, rule);
        let (reliability, wanted) = (offered.reliability, requested.reliability);
        let holds = reliability.is_reliable() || !wanted.is_reliable();
        self.require(holds, PolicyId::RELIABILITY, reliability, wanted, at_least);
        let (order, wanted) = (offered.destination_order, requested.destination_order);
        self.require(order >= wanted, PolicyId::DESTINATION_ORDER, order, wanted, at_least);
        let representation = offered.representation();
        let wanted = match requested.data_representation.as_slice() {
            [] => Listed(&[Representation::Xcdr1]),
            list => Listed(list),
        };
        let rule = "the reader's list must have the writer's first entry (DDS-XTypes 1.3 §7.6.3.1)";
        let holds = requested.accepts(representation);
        self.require(holds, PolicyId::DATA_REPRESENTATION, representation, wanted, rule);
    }

    fn compare_presentation(&mut self, offered: &WriterQos, requested: &ReaderQos) {
        let (offered, requested) = (offered.presentation, requested.presentation);
        let holds = offered.access_scope >= requested.access_scope
            && (offered.coherent || !requested.coherent)
            && (offered.ordered || !requested.ordered);
        let rule =
            "the offered scope must be at least the requested one, with every requested option (DDS 1.4 §2.2.3.6)";
        self.require(holds, PolicyId::PRESENTATION, offered, requested, rule);
    }

    fn require_within(&mut self, policy: PolicyId, offered: Duration, requested: Duration) {
        let rule = "offered must be at most requested (DDS 1.4 §2.2.3)";
        self.require(within(offered, requested), policy, Period(offered), Period(requested), rule);
    }

    fn require(
        &mut self,
        holds: bool,
        policy: PolicyId,
        offered: impl fmt::Display,
        requested: impl fmt::Display,
        rule: &'static str,
    ) {
        if !holds {
            let (offered, requested) = (offered.to_string(), requested.to_string());
            self.0.push(Mismatch { policy, offered, requested, rule });
        }
    }
}

/// True when the offered period is no longer than the requested one, but for what rounding to 2⁻³² s and back may add.
fn within(offered: Duration, requested: Duration) -> bool {
    offered <= requested.saturating_add(ROUNDING)
}

const ROUNDING: Duration = Duration::from_nanos(2);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: offered {}, requested {}: {}", self.policy, self.offered, self.requested, self.rule)
    }
}

impl fmt::Display for MatchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchResult::Match => f.write_str("writer and reader match"),
            MatchResult::DifferentTopic => f.write_str("the topics' names differ"),
            MatchResult::DifferentType { offered, requested } => {
                write!(f, "the types' names differ: the writer has {offered:?}, the reader {requested:?}")
            }
            MatchResult::DifferentKeyedness { offered: Keyed::Yes, .. } => {
                f.write_str("the writer's type has a key, the reader's has none")
            }
            MatchResult::DifferentKeyedness { .. } => f.write_str("the reader's type has a key, the writer's has none"),
            MatchResult::PartitionsDisjoint { offered, requested } => {
                let (offered, requested) = (Names(offered), Names(requested));
                write!(f, "no partition fits: the writer is in {offered}, the reader in {requested}")
            }
            MatchResult::Incompatible(mismatches) => {
                let texts: Vec<_> = mismatches.iter().map(Mismatch::to_string).collect();
                f.write_str(&texts.join("; "))
            }
        }
    }
}

/// Most characters of a type's name that a text tells: a peer may announce 64 KiB of them.
const NAME_TOLD_MAX: usize = 256;

/// The name of a type as texts tell it.
pub(crate) fn told_name(name: &str) -> String {
    match name.char_indices().nth(NAME_TOLD_MAX) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// Partition names in quotes: the first ones, and how many more there are.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, others @ ..] = self.0 else { return f.write_str("the default one") };
        write!(f, "{first:?}")?;
        others.iter().take(LISTED_MAX - 1).try_for_each(|name| write!(f, ", {name:?}"))?;
        tell_left_out(self.0.len(), f)
    }
}
