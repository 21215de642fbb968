//! The QoS of a recorded writer, as metadata of its channel.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg::discovery::PublicationData;
use thalweg::qos::{
    AccessScope, DestinationOrder, Durability, DurabilityService, History, Liveliness, LivelinessKind, Presentation,
    Reliability, Representation, WriterOwnership, WriterQos,
};
use thalweg::types::{INFINITE, VendorId};

/// What a writer offered. Periods are nanoseconds; none means infinite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedQos {
    reliable: bool,
    /// TRANSIENT_LOCAL or more.
    transient_local: bool,
    /// What is more than TRANSIENT_LOCAL.
    #[serde(skip_serializing_if = "Option::is_none")]
    outlives: Option<Outliving>,
    /// PRESENTATION, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    presentation: Option<Presenting>,
    /// `None` for KEEP_ALL, 0 where the writer did not tell it.
    depth: Option<u32>,
    deadline_ns: Option<u64>,
    lifespan_ns: Option<u64>,
    latency_budget_ns: u64,
    liveliness: Asserting,
    lease_ns: Option<u64>,
    /// The strength of a writer with exclusive ownership.
    exclusive: Option<i32>,
    by_source: bool,
    priority: i32,
    xcdr2: bool,
    partition: Vec<String>,
}

/// Who asserts liveliness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Asserting {
    #[default]
    Automatic,
    ManualByParticipant,
    ManualByTopic,
}

/// How long a history outlives its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Outliving {
    Transient,
    Persistent,
}

/// How changes of several instances belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Presenting {
    scope: Scope,
    coherent: bool,
    ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    Instance,
    Topic,
    Group,
}

impl Presenting {
    /// `None` for the default.
    fn of(presentation: Presentation) -> Option<Presenting> {
        let Presentation { access_scope, coherent, ordered } = presentation;
        let scope = match access_scope {
            AccessScope::Instance => Scope::Instance,
            AccessScope::Topic => Scope::Topic,
            AccessScope::Group => Scope::Group,
        };
        (presentation != Presentation::default()).then_some(Presenting { scope, coherent, ordered })
    }

    fn to_presentation(self) -> Presentation {
        let access_scope = match self.scope {
            Scope::Instance => AccessScope::Instance,
            Scope::Topic => AccessScope::Topic,
            Scope::Group => AccessScope::Group,
        };
        Presentation { access_scope, coherent: self.coherent, ordered: self.ordered }
    }
}

impl RecordedQos {
    /// What this writer offers.
    pub fn of(qos: &WriterQos) -> RecordedQos {
        RecordedQos {
            reliable: qos.reliability.is_reliable(),
            transient_local: qos.durability != Durability::Volatile,
            outlives: match qos.durability {
                Durability::Volatile | Durability::TransientLocal => None,
                Durability::Transient => Some(Outliving::Transient),
                Durability::Persistent => Some(Outliving::Persistent),
            },
            presentation: Presenting::of(qos.presentation),
            depth: match qos.history {
                History::KeepLast(depth) => Some(depth),
                History::KeepAll => None,
            },
            deadline_ns: finite(qos.timing.deadline),
            lifespan_ns: finite(qos.timing.lifespan),
            latency_budget_ns: finite(qos.timing.latency_budget).unwrap_or(0),
            liveliness: match qos.liveliness.kind {
                LivelinessKind::Automatic => Asserting::Automatic,
                LivelinessKind::ManualByParticipant => Asserting::ManualByParticipant,
                LivelinessKind::ManualByTopic => Asserting::ManualByTopic,
            },
            lease_ns: finite(qos.liveliness.lease),
            exclusive: match qos.ownership {
                WriterOwnership::Shared => None,
                WriterOwnership::Exclusive { strength } => Some(strength),
            },
            by_source: qos.destination_order == DestinationOrder::BySource,
            priority: qos.transport_priority,
            xcdr2: qos.representation() == Representation::Xcdr2,
            partition: qos.partition.clone(),
        }
    }

    /// What a writer announces. Its history may not be known: HISTORY is none of the data of a publication (DDS 1.4 §2.2.5), and Fast DDS
    /// and others announce none. Thalweg and Cyclone DDS leave it out for the default, KEEP_LAST 1, alone.
    pub fn announced(data: &PublicationData) -> RecordedQos {
        let qos = RecordedQos::of(&data.qos);
        let tells_history = [VendorId::THALWEG, VendorId::CYCLONE].contains(&data.guid.prefix.vendor());
        let depth = if qos.depth == Some(1) && !tells_history { Some(UNKNOWN) } else { qos.depth };
        RecordedQos { depth, ..qos }
    }

    /// The QoS of a writer that replays it. The history is that of the recorded writer, and KEEP_LAST 10 where that is not known, as with
    /// `ros2 bag play`; a write waits up to ten seconds for room. Unregistering an instance does not dispose it: where it did, a dispose
    /// was recorded.
    ///
    /// A PERSISTENT writer is replayed as TRANSIENT, without a store. What Thalweg's writers do not offer together is less: TRANSIENT_LOCAL
    /// where a TRANSIENT writer is best-effort, coherent or has GROUP order, and TOPIC order in place of GROUP order where it is
    /// best-effort.
    ///
    /// `rate` tells how many times as fast as recorded it writes. Where it is slower, DEADLINE, LIFESPAN and the lease of a writer that
    /// asserts its liveliness itself grow as the distances of its samples do, since it could not keep them else; readers that request a
    /// shorter period do not match it then. Where it is faster, they stay as recorded, which it keeps all the more: neither networks nor
    /// readers are faster, and a lifespan of microseconds would end on the way. The lease of AUTOMATIC liveliness is kept by the
    /// middleware, however fast samples come.
    pub fn to_writer_qos(&self, rate: f64) -> WriterQos {
        let lease_rate = if self.liveliness == Asserting::Automatic { 1.0 } else { rate };
        let history = self.kept().map_or(History::KeepAll, History::KeepLast);
        let durability = self.offered_durability();
        let mut qos = WriterQos {
            reliability: if self.reliable {
                Reliability::Reliable { max_blocking_time: BLOCKING_TIME }
            } else {
                Reliability::BestEffort
            },
            durability,
            // Late readers get as many samples as of a TRANSIENT_LOCAL writer.
            durability_service: match durability {
                Durability::Transient => DurabilityService { history, ..DurabilityService::default() },
                _ => DurabilityService::default(),
            },
            history,
            liveliness: Liveliness {
                kind: match self.liveliness {
                    Asserting::Automatic => LivelinessKind::Automatic,
                    Asserting::ManualByParticipant => LivelinessKind::ManualByParticipant,
                    Asserting::ManualByTopic => LivelinessKind::ManualByTopic,
                },
                lease: stretched(self.lease_ns, lease_rate),
            },
            ownership: self
                .exclusive
                .map_or(WriterOwnership::Shared, |strength| WriterOwnership::Exclusive { strength }),
            destination_order: if self.by_source { DestinationOrder::BySource } else { DestinationOrder::ByReception },
            transport_priority: self.priority,
            data_representation: vec![if self.xcdr2 { Representation::Xcdr2 } else { Representation::Xcdr1 }],
            autodispose: false,
            presentation: self.offered_presentation(),
            partition: self.partition.clone(),
            ..WriterQos::default()
        };
        qos.timing.deadline = stretched(self.deadline_ns, rate);
        qos.timing.lifespan = stretched(self.lifespan_ns, rate);
        qos.timing.latency_budget = Duration::from_nanos(self.latency_budget_ns);
        qos
    }

    fn offered_presentation(&self) -> Presentation {
        let recorded = self.presentation.map(Presenting::to_presentation).unwrap_or_default();
        let is_offered = self.reliable || !recorded.spans_group();
        if is_offered { recorded } else { Presentation { access_scope: AccessScope::Topic, ..recorded } }
    }

    fn offered_durability(&self) -> Durability {
        let presentation = self.offered_presentation();
        let may_outlive = self.reliable && !presentation.coherent && !presentation.spans_group();
        match self.outlives {
            Some(Outliving::Transient | Outliving::Persistent) if may_outlive => Durability::Transient,
            _ if self.transient_local => Durability::TransientLocal,
            _ => Durability::Volatile,
        }
    }

    /// LIFESPAN in nanoseconds; `None` where it is infinite.
    pub fn lifespan_ns(&self) -> Option<u64> {
        self.lifespan_ns
    }

    /// How many samples of an instance late readers get; `None` for none. KEEP_ALL counts as the last thousand, a history that is not known
    /// as the last ten.
    pub fn kept_for_late_readers(&self) -> Option<usize> {
        self.transient_local.then(|| self.kept().map_or(KEPT_MAX, |depth| (depth as usize).min(KEPT_MAX)))
    }

    /// How many samples of an instance are kept; `None` for all.
    fn kept(&self) -> Option<u32> {
        self.depth.map(|depth| if depth == UNKNOWN { DEFAULT_DEPTH } else { depth })
    }

    /// As rosbag2 writes it in `offered_qos_profiles`: a list of one profile in YAML, policies by number.
    pub fn to_profiles(&self) -> String {
        let mut text = String::new();
        let history = match self.depth {
            Some(UNKNOWN) => 3,
            Some(_) => 1,
            None => 2,
        };
        let period = |of: Option<u64>| {
            // ROS 2 writes an infinite period as the greatest one.
            let nanoseconds = of.unwrap_or(i64::MAX as u64);
            format!("    sec: {}\n    nsec: {}\n", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
        };
        let _ = write!(
            text,
            "- history: {history}\n  depth: {}\n  reliability: {}\n  durability: {}\n  deadline:\n{}  lifespan:\n{}  \
             liveliness: {}\n  liveliness_lease_duration:\n{}  avoid_ros_namespace_conventions: false",
            self.depth.unwrap_or(0),
            if self.reliable { 1 } else { 2 },
            if self.transient_local { 1 } else { 2 },
            period(self.deadline_ns),
            period(self.lifespan_ns),
            if self.liveliness == Asserting::ManualByTopic { 3 } else { 1 },
            period(self.lease_ns),
        );
        text
    }

    /// The first profile of such a text, by number or by name; what it does not say is as ROS 2's default: reliable, volatile, depth 10.
    /// Periods are not taken.
    pub fn from_profiles(text: &str) -> RecordedQos {
        let mut qos = RecordedQos { reliable: true, depth: Some(DEFAULT_DEPTH), ..RecordedQos::default() };
        let mut history = String::new();
        let mut profiles = 0;
        for line in text.lines() {
            profiles += usize::from(line.starts_with("- "));
            if profiles > 1 {
                break;
            }
            let Some((key, value)) = line.trim_start_matches(['-', ' ']).split_once(':') else { continue };
            let value = value.trim();
            match key {
                "history" => history = value.to_owned(),
                "depth" => qos.depth = value.parse().ok().or(Some(UNKNOWN)),
                "reliability" => qos.reliable = !matches!(value, "2" | "best_effort"),
                "durability" => qos.transient_local = matches!(value, "1" | "transient_local"),
                _ => {}
            }
        }
        // A depth of 0 is the default of ROS 2.
        qos.depth = match history.as_str() {
            "2" | "keep_all" => None,
            "3" | "unknown" | "0" | "system_default" => Some(UNKNOWN),
            _ => qos.depth,
        };
        qos
    }
}

fn finite(period: Duration) -> Option<u64> {
    if period >= INFINITE { None } else { u64::try_from(period.as_nanos()).ok() }
}

/// A period of a writer that writes at this rate: longer where that is less than 1.
fn stretched(nanoseconds: Option<u64>, rate: f64) -> Duration {
    let Some(period) = nanoseconds.map(Duration::from_nanos) else { return INFINITE };
    if rate >= 1.0 {
        return period;
    }
    Duration::try_from_secs_f64(period.as_secs_f64() / rate).unwrap_or(INFINITE)
}

/// The depth that stands for a history that is not known.
const UNKNOWN: u32 = 0;
/// The depth of ROS 2's default, and that of rosbag2 for all that it plays.
const DEFAULT_DEPTH: u32 = 10;
/// Samples of an instance that a recorder repeats, chosen by us.
const KEPT_MAX: usize = 1_000;
/// Longest wait of a replayed write for room: as `thalweg pub`.
const BLOCKING_TIME: Duration = Duration::from_secs(10);
