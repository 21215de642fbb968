//! The policies' values and names.

use std::fmt;
use std::time::Duration;

use super::MAX_BLOCKING_TIME;
use crate::time::INFINITE;

/// Number of a policy, as the statuses of DDS report it (DDS 1.4 §2.3.3, DDS-XTypes 1.3 §7.6.3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(pub u32);

macro_rules! policies {
    ($($name:ident = $id:literal, $summary:literal;)*) => {
        impl PolicyId {
            $(#[doc = $summary] pub const $name: PolicyId = PolicyId($id);)*

            /// The name that the specification gives the policy; "policy" for one that Thalweg does not know.
            pub fn name(self) -> &'static str {
                match self {
                    $(PolicyId::$name => stringify!($name),)*
                    _ => "policy",
                }
            }
        }
    };
}

// One line makes a constant and its name: `pub const DURABILITY: PolicyId = PolicyId(2)` and `DURABILITY => "DURABILITY"`.
policies! {
    USER_DATA = 1, "Bytes that the application attaches to a participant or endpoint.";
    DURABILITY = 2, "Whether late readers get earlier samples.";
    PRESENTATION = 3, "How changes of several instances belong together.";
    DEADLINE = 4, "Longest period between samples of an instance.";
    LATENCY_BUDGET = 5, "Delay that a sample may have.";
    OWNERSHIP = 6, "Whether several writers may update an instance.";
    OWNERSHIP_STRENGTH = 7, "Rank of a writer under exclusive ownership.";
    LIVELINESS = 8, "How readers learn that a writer is gone.";
    TIME_BASED_FILTER = 9, "Shortest period between samples that a reader wants.";
    PARTITION = 10, "Names that divide a domain.";
    RELIABILITY = 11, "Whether lost samples are sent again.";
    DESTINATION_ORDER = 12, "Which clock orders samples of several writers.";
    HISTORY = 13, "How many samples of an instance are kept.";
    RESOURCE_LIMITS = 14, "Upper bounds on what is kept.";
    READER_DATA_LIFECYCLE = 17, "How long a reader keeps what nobody writes any more.";
    TOPIC_DATA = 18, "Bytes that the application attaches to a topic.";
    GROUP_DATA = 19, "Bytes that the application attaches to a publisher or subscriber.";
    TRANSPORT_PRIORITY = 20, "Rank of datagrams in the network.";
    LIFESPAN = 21, "How long a sample is worth delivering.";
    DURABILITY_SERVICE = 22, "What is kept for late readers where the history outlives its writer.";
    DATA_REPRESENTATION = 23, "How samples are encoded.";
    TYPE_CONSISTENCY = 24, "How far the types of writer and reader may differ.";
    TRANSMISSION = 0x8f00, "By what way samples travel; a policy of Thalweg.";
    READER_PATIENCE = 0x8f01, "How long a writer waits for a reader that makes no progress; a policy of Thalweg.";
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "policy" => write!(f, "policy {}", self.0),
            name => f.write_str(name),
        }
    }
}

impl fmt::Debug for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// RELIABILITY: whether lost samples are sent again (DDS 1.4 §2.2.3.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// A lost sample stays lost.
    BestEffort,
    /// Lost samples are repaired as long as the history holds them.
    Reliable {
        /// Longest wait of a write for room. Default 100 ms; readers announce but do not use it.
        max_blocking_time: Duration,
    },
}

impl Reliability {
    /// RELIABLE with the default blocking time of 100 ms.
    pub const RELIABLE: Reliability = Reliability::Reliable { max_blocking_time: MAX_BLOCKING_TIME };

    /// True for RELIABLE.
    pub fn is_reliable(self) -> bool {
        matches!(self, Reliability::Reliable { .. })
    }
}

/// DURABILITY: whether late readers get samples written before they came (DDS 1.4 §2.2.3.4). A greater one offers more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// They do not.
    #[default]
    Volatile,
    /// They do while the writer lives.
    TransientLocal,
    /// They do while the writer's participant lives, also after the writer was deleted.
    Transient,
    /// They do also after the participant was created again with the same store.
    Persistent,
}

/// HISTORY: how many samples of an instance are kept (DDS 1.4 §2.2.3.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The newest ones of each instance; the depth is at least 1.
    KeepLast(u32),
    /// All until delivered; a write waits for room.
    KeepAll,
}

/// RESOURCE_LIMITS: upper bounds on kept samples (DDS 1.4 §2.2.3.19); `None` means no limit, and is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Samples of all instances together.
    pub max_samples: Option<u32>,
    /// Instances; without a limit a reader knows [`INSTANCES_DEFAULT`](crate::history::INSTANCES_DEFAULT) at most.
    pub max_instances: Option<u32>,
    /// Samples of any one instance.
    pub max_samples_per_instance: Option<u32>,
}

/// LIVELINESS: how readers learn that a writer is gone (DDS 1.4 §2.2.3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveliness {
    /// The asserting party.
    pub kind: LivelinessKind,
    /// A writer without a sign of life for longer counts as gone until the next one; a reader goes by its writer's lease. At least
    /// 10 ms. Default infinite: only its participant's lease counts.
    pub lease: Duration,
}

impl Default for Liveliness {
    fn default() -> Liveliness {
        Liveliness { kind: LivelinessKind::Automatic, lease: INFINITE }
    }
}

/// The party that asserts a writer's liveliness. A greater kind offers more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LivelinessKind {
    /// The middleware, as long as the process runs.
    Automatic,
    /// The application, once for all such writers of a participant: by writing any of them, or by asserting one or the participant.
    ManualByParticipant,
    /// The application, for each writer by itself: by writing it, or by asserting it.
    ManualByTopic,
}

/// OWNERSHIP as a reader requests it (DDS 1.4 §2.2.3.9). Both sides must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Every writer may update every instance.
    Shared,
    /// Only the strongest writer of an instance is heard that is matched, alive, has not given the instance up and meets the reader's
    /// deadline. Among equals it is the one with the lowest GUID.
    Exclusive,
}

/// OWNERSHIP as a writer offers it, with its OWNERSHIP_STRENGTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriterOwnership {
    /// Every writer may update every instance.
    Shared,
    /// Only the strongest writer of an instance is heard.
    Exclusive {
        /// Rank among writers, highest wins. It plays no part in matching.
        strength: i32,
    },
}

impl WriterOwnership {
    /// The part that is matched.
    pub fn kind(self) -> Ownership {
        match self {
            WriterOwnership::Shared => Ownership::Shared,
            WriterOwnership::Exclusive { .. } => Ownership::Exclusive,
        }
    }
}

/// DESTINATION_ORDER: which clock orders samples of several writers (DDS 1.4 §2.2.3.17). A greater one offers more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DestinationOrder {
    /// The reader's.
    ByReception,
    /// The writers': of each instance, a sample older than one that was handed over is dropped, so that all readers end with the same
    /// value.
    BySource,
}

/// PRESENTATION: how changes of several instances belong together (DDS 1.4 §2.2.3.6). The default asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presentation {
    /// The widest range that order and coherence span.
    pub access_scope: AccessScope,
    /// Changes of a writer between `begin` and `end` become visible together, or not at all.
    pub coherent: bool,
    /// Changes keep their order within the scope: that in which they arrive, which for each writer is that of writing.
    pub ordered: bool,
}

impl Presentation {
    /// Whether samples of several endpoints of a publisher or subscriber have one order, or sets in common.
    pub fn spans_group(self) -> bool {
        self.access_scope == AccessScope::Group && (self.coherent || self.ordered)
    }

    /// Whether `read` and `take` give out samples instance by instance (DDS 1.4 §2.2.2.5.3.8): wherever order is not asked for across
    /// instances. By default, which asks for nothing, they come in the order of reception.
    pub(crate) fn groups_instances(self) -> bool {
        let across = self.access_scope >= AccessScope::Topic && self.ordered;
        self != Presentation::default() && !across
    }
}

/// Range of a [`Presentation`]. A greater one offers more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessScope {
    /// Each instance by itself.
    #[default]
    Instance,
    /// All instances of an endpoint.
    Topic,
    /// All endpoints of a publisher or subscriber.
    Group,
}

/// DATA_REPRESENTATION: how samples are encoded (DDS-XTypes 1.3 §7.6.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// Extended CDR version 1.
    Xcdr1,
    /// Text; not effective here.
    Xml,
    /// Extended CDR version 2.
    Xcdr2,
    /// An id that Thalweg does not know; only in what peers announce.
    Other(i16),
}

impl Representation {
    /// The number on the wire.
    pub fn id(self) -> i16 {
        match self {
            Representation::Xcdr1 => 0,
            Representation::Xml => 1,
            Representation::Xcdr2 => 2,
            Representation::Other(id) => id,
        }
    }

    /// Reverses [`Representation::id`].
    pub fn from_id(id: i16) -> Representation {
        match id {
            0 => Representation::Xcdr1,
            1 => Representation::Xml,
            2 => Representation::Xcdr2,
            id => Representation::Other(id),
        }
    }
}

/// USER_DATA, TOPIC_DATA and GROUP_DATA: bytes that the application announces to its peers; empty by default, at most
/// [`OCTETS_MAX`](super::OCTETS_MAX) each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedData {
    /// About the endpoint.
    pub user: Vec<u8>,
    /// About its topic.
    pub topic: Vec<u8>,
    /// About its publisher or subscriber.
    pub group: Vec<u8>,
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_reliable() { "RELIABLE" } else { "BEST_EFFORT" })
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Volatile => "VOLATILE",
            Durability::TransientLocal => "TRANSIENT_LOCAL",
            Durability::Transient => "TRANSIENT",
            Durability::Persistent => "PERSISTENT",
        })
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            History::KeepLast(depth) => write!(f, "KEEP_LAST {depth}"),
            History::KeepAll => f.write_str("KEEP_ALL"),
        }
    }
}

impl fmt::Display for Liveliness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            LivelinessKind::Automatic => "AUTOMATIC",
            LivelinessKind::ManualByParticipant => "MANUAL_BY_PARTICIPANT",
            LivelinessKind::ManualByTopic => "MANUAL_BY_TOPIC",
        };
        write!(f, "{kind} with lease {}", Period(self.lease))
    }
}

impl fmt::Display for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ownership::Shared => "SHARED",
            Ownership::Exclusive => "EXCLUSIVE",
        })
    }
}

impl fmt::Display for DestinationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DestinationOrder::ByReception => "BY_RECEPTION_TIMESTAMP",
            DestinationOrder::BySource => "BY_SOURCE_TIMESTAMP",
        })
    }
}

impl fmt::Display for Presentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.access_scope {
            AccessScope::Instance => "INSTANCE",
            AccessScope::Topic => "TOPIC",
            AccessScope::Group => "GROUP",
        })?;
        f.write_str(if self.coherent { " coherent" } else { "" })?;
        f.write_str(if self.ordered { " ordered" } else { "" })
    }
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Representation::Xcdr1 => f.write_str("XCDR1"),
            Representation::Xml => f.write_str("XML"),
            Representation::Xcdr2 => f.write_str("XCDR2"),
            Representation::Other(id) => write!(f, "representation {id}"),
        }
    }
}

/// A duration in words for users.
pub(super) struct Period(pub(super) Duration);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == INFINITE { f.write_str("infinite") } else { write!(f, "{:?}", self.0) }
    }
}

/// Most values of a list that a text tells: a peer may announce thousands.
pub(super) const LISTED_MAX: usize = 8;

/// Values one after the other, with commas: the first ones, and how many more there are.
pub(super) struct Listed<'a, T>(pub(super) &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.0.iter().take(LISTED_MAX).enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            write!(f, "{value}")?;
        }
        tell_left_out(self.0.len(), f)
    }
}

/// Tells how many of `count` values are not listed.
pub(super) fn tell_left_out(count: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match count.saturating_sub(LISTED_MAX) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}
