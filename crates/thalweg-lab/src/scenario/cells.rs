//! One combination of what a scenario varies.

use std::fmt;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::ExecutorSetting;

use super::{CellSending, RELIABILITY, ReliabilitySetting, TrafficFlow, name_in};
use crate::figures::size;
use crate::peers::CellMiddleware;
use crate::station::Addressing;

/// What is measured by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Who moves the data.
    #[serde(default)]
    pub middleware: CellMiddleware,
    /// What a sample is.
    pub load: Load,
    /// Which build of it.
    #[serde(default, skip_serializing_if = "Build::is_this")]
    pub build: Build,
    /// Samples a second of each publisher; 0 in a closed loop, which has no schedule.
    pub rate_hz: f64,
    /// In a closed loop, the first of so many samples of publisher 0 is answered; missing means an open schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_count: Option<u32>,
    /// Publishers.
    pub publishers: u32,
    /// Subscribers.
    pub subscribers: u32,
    /// Where writers send to.
    pub destination: Addressing,
    /// Who hears whom.
    pub topics: Topics,
    /// Whether lost samples are sent again, where the matrix says so; missing means as the scenario's QoS says.
    #[serde(default)]
    pub reliability: Option<ReliabilitySetting>,
    /// How its samples share datagrams, where the matrix says so; missing means that the writer chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<Box<CellSending>>,
    /// Threads that handle the samples of each subscriber; missing means the one of the middleware that hands them over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorSetting>,
    /// Which of several kinds of traffic in the same run; missing where a run has one kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Box<TrafficFlow>>,
}

/// Which of two builds of the same middleware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Build {
    /// The running program, or the peer's program that is set up.
    #[default]
    This,
    /// The program that the scenario names in `against`.
    Other,
}

impl Build {
    fn is_this(&self) -> bool {
        *self == Build::This
    }
}

/// What a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Load {
    /// A sequence of so many octets, a time and a number.
    Octets(u32),
    /// Sixteen octets, a time and a number: 32 bytes.
    Struct16,
    /// An array of 64 KiB, a time and a number.
    Array64k,
    /// The members of a point cloud with 1 MiB of data, a time and a number.
    PointCloud1m,
}

/// Who hears whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Topics {
    /// All subscribers hear all publishers.
    One,
    /// The first subscriber hears the first publisher, the second one the second, and so on.
    PerPair,
    /// Each publisher has a topic of its own; every subscriber has a subscription to each, all in one participant, and handles their
    /// samples one at a time.
    PerPublisher,
}

impl Topics {
    pub(crate) const NAMES: [(&'static str, Topics); 3] =
        [("one", Topics::One), ("per-pair", Topics::PerPair), ("per-publisher", Topics::PerPublisher)];
}

impl Load {
    /// The types that a scenario may name.
    pub const TYPES: [(&'static str, Load); 3] =
        [("Struct16", Load::Struct16), ("Array64k", Load::Array64k), ("PointCloud1m", Load::PointCloud1m)];

    /// Bytes that the application means to move; what the encoding adds is not among them.
    pub fn bytes(self) -> u64 {
        match self {
            Load::Octets(bytes) => u64::from(bytes),
            Load::Struct16 => 16,
            Load::Array64k => 1 << 16,
            Load::PointCloud1m => 1 << 20,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Load::TYPES.iter().find(|(_, load)| load == self) {
            Some((name, _)) => f.write_str(name),
            None => f.write_str(&size(self.bytes())),
        }
    }
}

impl Cell {
    /// What Thalweg moves on an open schedule, by its own choice of the way.
    pub(crate) fn new(load: Load, rate_hz: f64, publishers: u32, subscribers: u32, topics: Topics) -> Cell {
        Cell {
            middleware: CellMiddleware::Thalweg,
            build: Build::This,
            load,
            rate_hz,
            latency_count: None,
            publishers,
            subscribers,
            destination: Addressing::Auto,
            topics,
            reliability: None,
            sending: None,
            executor: None,
            flow: None,
        }
    }

    /// Whether subscriber `reader` is meant to hear publisher `writer`.
    pub fn is_pair(&self, writer: u32, reader: u32) -> bool {
        self.topics != Topics::PerPair || writer == reader
    }

    /// What is moved, without who moves it, where writers send to and by which method.
    pub fn data(&self) -> String {
        format!("{}{}", self.load_in_words(), self.conditions())
    }

    /// Who moves it, and where writers send to and by which method where that can be chosen.
    pub fn way(&self) -> String {
        let build = self.build_in_words();
        match self.middleware {
            CellMiddleware::Thalweg => format!("{} {}{build}{}", self.middleware, self.destination, self.method()),
            peer @ CellMiddleware::Peer(..) => match self.destination {
                Addressing::Auto => format!("{peer}{build}"),
                told => format!("{peer} {told}{build}"),
            },
        }
    }

    fn method(&self) -> String {
        self.sending.as_ref().map(|sending| format!(" {sending}")).unwrap_or_default()
    }

    fn build_in_words(&self) -> &'static str {
        if self.build == Build::Other { " (other build)" } else { "" }
    }

    fn load_in_words(&self) -> String {
        let flow = self.flow.as_ref().map(|flow| format!("{}: ", flow.name)).unwrap_or_default();
        let pace =
            self.latency_count.map_or_else(|| format!("{} Hz", self.rate_hz), |count| format!("closed-loop/{count}"));
        format!("{flow}{}–{} {} {pace}", self.publishers, self.subscribers, self.load)
    }

    /// Who hears whom, and whether lost samples are sent again, as far as that is not as usual.
    pub(crate) fn conditions(&self) -> String {
        let topics = match self.topics {
            Topics::One => String::new(),
            other => format!(" {}", name_in(&Topics::NAMES, &other)),
        };
        let reliability = self.reliability.map(|one| format!(" {}", name_in(&RELIABILITY, &one)));
        let executor = self.executor.map(|executor| {
            let work_ms = executor.work.as_secs_f64() * 1e3;
            let work = if executor.work.is_zero() { String::new() } else { format!(" work {work_ms} ms") };
            format!(" executor/{}{work}", executor.threads)
        });
        format!("{topics}{}{}", reliability.unwrap_or_default(), executor.unwrap_or_default())
    }

    /// Whether publishers write as fast as they may.
    pub fn is_closed_loop(&self) -> bool {
        self.latency_count.is_some()
    }

    /// Every publisher with every subscriber that is meant to hear it.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.publishers)
            .flat_map(move |writer| (0..self.subscribers).map(move |reader| (writer, reader)))
            .filter(|(writer, reader)| self.is_pair(*writer, *reader))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.load_in_words())?;
        if self.middleware == CellMiddleware::Thalweg || self.destination != Addressing::Auto {
            write!(f, " {}", self.destination)?;
        }
        write!(f, "{} {}{}{}", self.conditions(), self.middleware, self.build_in_words(), self.method())
    }
}
