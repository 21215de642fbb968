//! What the controller and the processes of a run tell each other.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::ProcessUsage;
use crate::scenario::{Cell, Qos, Schedule, Topics};
use crate::station::{Network, Wait, WriterEffort};

/// What a process of a run is told first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrialOrder {
    pub(crate) network: Network,
    pub(crate) cell: Cell,
    pub(crate) qos: Qos,
    pub(crate) schedule: Schedule,
    pub(crate) wait: Wait,
    /// The publishers that live in this process.
    pub(crate) publishers: Vec<Placement>,
    /// The subscribers that live in it.
    pub(crate) subscribers: Vec<Placement>,
    /// Every how many samples its layers are traced.
    pub(crate) trace: Option<NonZeroU32>,
    /// Where it writes what its endpoints saw.
    pub(crate) folder: PathBuf,
}

/// One endpoint and where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Placement {
    /// Its number among the publishers or among the subscribers, from 0.
    pub(crate) index: u32,
    /// The logical CPU it is bound to.
    pub(crate) cpu: Option<usize>,
}

/// What a process is told later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Command {
    /// The time zero of the schedule on the host's monotonic clock.
    Start {
        /// In nanoseconds.
        origin_ns: u64,
    },
    /// All publishers are through; so many samples of each were written, those of the warm-up included.
    Drain {
        /// By number of the publisher.
        written: Vec<u64>,
    },
    /// All subscribers are through.
    Finish,
}

/// What a process tells on the way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Word {
    /// All its endpoints found all their partners.
    Matched,
    /// Its publishers are through.
    Published(Vec<PublisherReport>),
    /// Its subscribers expect nothing more.
    Drained,
}

/// What a process tells at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkerReport {
    pub(crate) subscribers: Vec<SubscriberReport>,
    /// From the first measured sample to the last.
    pub(crate) usage: ProcessUsage,
}

/// What a publisher did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherReport {
    /// Its number.
    pub index: u32,
    /// Samples written, the warm-up included.
    pub written: u64,
    /// Writes that found no room in time.
    pub refused: u64,
    /// Whether all readers acknowledged everything in the end.
    pub acknowledged: bool,
    /// What it did on the wire.
    pub effort: WriterEffort,
}

/// What a subscriber noticed beside its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberReport {
    /// Its number.
    pub index: u32,
    /// Samples that newer ones took the place of before they were taken.
    pub overwritten: u64,
    /// Best-effort samples that arrived and found the reader's history full, those of the warm-up included: they are lost
    /// there.
    #[serde(default)]
    pub rejected: u64,
    /// Arrivals beyond those that were kept.
    pub unkept: u64,
}

impl TrialOrder {
    /// What tells this process from the others of a run: its first endpoint.
    pub(super) fn process_name(&self) -> String {
        match (self.publishers.first(), self.subscribers.first()) {
            (Some(publisher), _) => format!("publisher-{:03}", publisher.index),
            (None, subscriber) => format!("subscriber-{:03}", subscriber.map_or(0, |one| one.index)),
        }
    }

    /// The topic of a publisher or subscriber.
    pub(crate) fn topic(&self, index: u32) -> String {
        match self.cell.topics {
            Topics::One => "thalweg_lab_scenario".to_owned(),
            Topics::PerPair => format!("thalweg_lab_scenario_{index}"),
        }
    }
}
