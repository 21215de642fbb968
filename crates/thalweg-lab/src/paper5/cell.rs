//! A cell: its contender, its handler and its load.

use std::fmt;

use serde::{Deserialize, Serialize};
use thalweg_coap::scheduler::controller::ControlLaw;

use super::peer::{CoapPeer, Deduplication};
use crate::coap_load::Phase;
use crate::figures::{grouped, rounded};

/// A part of the preset: a figure of the paper, or something that it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperFigure {
    /// Figures 2 to 4: receiver and handlers over time with 1, 2 and 4 threads.
    Threads,
    /// Figure 5: pools of fixed sizes.
    Pools,
    /// Figures 6 and 7: receiver and handlers over time.
    Course,
    /// Figures 9 and 10: requests a second against clients.
    Clients,
    /// Figure 11: larger datagrams.
    Sizes,
    /// Figure 12: slower machines, as quotas of a processor.
    Platforms,
    /// As much as a server does, and one client's round trip.
    Capacity,
    /// Twice as much as a server does.
    Overload,
    /// Requests from very many ports beside honest clients.
    Flood,
    /// A blocking load that rises to six times itself and falls again.
    Ramp,
}

impl PaperFigure {
    /// All of them in the order of the page, with their names on the command line; figures of the paper that come from the same runs have
    /// a name each.
    pub const ALL: [(PaperFigure, &'static [&'static str]); 10] = [
        (PaperFigure::Threads, &["2", "3", "4"]),
        (PaperFigure::Pools, &["5"]),
        (PaperFigure::Course, &["6", "7"]),
        (PaperFigure::Clients, &["9", "10"]),
        (PaperFigure::Sizes, &["11"]),
        (PaperFigure::Platforms, &["12"]),
        (PaperFigure::Capacity, &["capacity"]),
        (PaperFigure::Overload, &["overload"]),
        (PaperFigure::Flood, &["flood"]),
        (PaperFigure::Ramp, &["ramp"]),
    ];

    /// Its first name on the command line.
    pub fn name(self) -> &'static str {
        PaperFigure::ALL[self as usize].1[0]
    }

    /// The part of this name on the command line.
    pub fn named(name: &str) -> Option<PaperFigure> {
        PaperFigure::ALL.into_iter().find(|(_, names)| names.contains(&name)).map(|(figure, _)| figure)
    }
}

/// The server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Contender {
    /// Thalweg with this law for its pools.
    Thalweg(ControlLaw),
    /// Another middleware.
    Peer(CoapPeer, Deduplication),
}

impl Contender {
    /// Whether it is Thalweg.
    pub fn is_ours(self) -> bool {
        matches!(self, Contender::Thalweg(_))
    }

    /// Its name where its kind is clear: the law, for our server.
    pub fn short_name(self) -> String {
        match self {
            Contender::Thalweg(law) => law.to_string(),
            peer @ Contender::Peer(..) => peer.to_string(),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contender::Thalweg(law) => write!(f, "thalweg {law}"),
            Contender::Peer(peer, Deduplication::Shipped) => write!(f, "{peer}"),
            Contender::Peer(peer, Deduplication::Off) => write!(f, "{peer} without deduplication"),
        }
    }
}

impl From<Contender> for String {
    fn from(contender: Contender) -> String {
        contender.to_string()
    }
}

impl TryFrom<String> for Contender {
    type Error = String;

    fn try_from(name: String) -> Result<Contender, String> {
        if let Some(law) = name.strip_prefix("thalweg ") {
            return law.parse().map(Contender::Thalweg).map_err(|_| format!("{law:?} is no law of this version"));
        }
        let variants = |peer: CoapPeer| peer.variants().iter().map(move |variant| Contender::Peer(peer, *variant));
        let found = CoapPeer::ALL.into_iter().flat_map(variants).find(|peer| peer.to_string() == name);
        found.ok_or_else(|| format!("{name:?} is no CoAP server of this version"))
    }
}

/// The server's work for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerWork {
    /// Greets; of Thalweg on the receiving thread.
    Greeting,
    /// Next to nothing, in the pool.
    Short,
    /// Computes for so many microseconds, in the pool.
    Computing(u64),
    /// Waits for so many milliseconds, in the pool.
    Blocking(u64),
}

impl ServerWork {
    /// Path and query.
    pub fn resource(self) -> String {
        match self {
            ServerWork::Greeting => "/request".to_owned(),
            ServerWork::Short => "/busy?us=0".to_owned(),
            ServerWork::Computing(us) => format!("/busy?us={us}"),
            ServerWork::Blocking(ms) => format!("/slow?ms={ms}"),
        }
    }

    /// The payload of a right answer.
    pub fn answer(self) -> String {
        match self {
            ServerWork::Greeting => "hello world".to_owned(),
            ServerWork::Short => "computed for 0 us".to_owned(),
            ServerWork::Computing(us) => format!("computed for {us} us"),
            ServerWork::Blocking(ms) => format!("waited {ms} ms"),
        }
    }
}

impl fmt::Display for ServerWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerWork::Greeting => f.write_str("greeting"),
            ServerWork::Short => f.write_str("short"),
            ServerWork::Computing(us) => write!(f, "computes for {us} µs"),
            ServerWork::Blocking(ms) => write!(f, "blocks for {ms} ms"),
        }
    }
}

/// Numbers of clients and rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestLoad {
    /// Each client sends its next request when an answer comes.
    Closed {
        /// Clients.
        clients: u32,
        /// Requests that each keeps open.
        outstanding: u32,
    },
    /// Each client sends on a schedule that does not wait for answers.
    Open {
        /// Clients.
        clients: u32,
        /// Requests a second of each.
        rate: f64,
        /// Bytes of each request; `None` for as few as the resource takes.
        bytes: Option<usize>,
        /// Ports from which others ask meanwhile, and their requests a second together.
        flood: Option<(u32, f64)>,
    },
    /// As many times the contender's own capacity, on a schedule.
    Overload {
        /// Clients.
        clients: u32,
        /// Of the capacity.
        factor: f64,
    },
    /// One rate of all clients together after the other.
    Phases {
        /// Clients.
        clients: u32,
        /// The rates.
        phases: Vec<Phase>,
    },
}

impl fmt::Display for RequestLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestLoad::Closed { clients, outstanding } => {
                write!(f, "{} × {outstanding} outstanding", grouped((*clients).into()))
            }
            RequestLoad::Open { clients, rate, bytes, flood } => {
                write!(f, "{} clients × {}/s", grouped((*clients).into()), rounded(*rate))?;
                bytes.map_or(Ok(()), |bytes| write!(f, ", {bytes} B"))?;
                flood.map_or(Ok(()), |(ports, _)| write!(f, ", flood from {} ports", grouped(ports.into())))
            }
            RequestLoad::Overload { factor, .. } => write!(f, "{factor} × capacity"),
            RequestLoad::Phases { phases, .. } => {
                let rates: Vec<String> = phases.iter().map(|phase| rounded(phase.rate)).collect();
                write!(f, "{} requests/s", rates.join(" → "))
            }
        }
    }
}

/// The processors that a server may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerRoom {
    /// The first so many.
    Cpus(usize),
    /// All, in Figure 12 without the generator's, for so many percent of the time of one.
    Quota(u32),
}

impl fmt::Display for ServerRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerRoom::Cpus(1) => f.write_str("1 CPU"),
            ServerRoom::Cpus(count) => write!(f, "{count} CPUs"),
            ServerRoom::Quota(percent) => write!(f, "{percent} % of a CPU"),
        }
    }
}

/// A cell, which is measured several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCell {
    /// The part it belongs to.
    pub figure: PaperFigure,
    /// The server.
    pub contender: Contender,
    /// The requested resource.
    pub handler: ServerWork,
    /// How many of them.
    pub load: RequestLoad,
    /// Where the server runs.
    pub room: ServerRoom,
    /// Whether it takes part in a comparison that gets a verdict, for which it has more runs than others.
    pub is_judged: bool,
}

impl ServerCell {
    /// Whether it shows how much its contender does with its handler.
    pub(super) fn is_capacity(&self) -> bool {
        self.figure == PaperFigure::Capacity
            && matches!(self.load, RequestLoad::Closed { clients, outstanding } if clients * outstanding > 1)
    }

    /// Whether both differ in nothing but the contender.
    pub(super) fn is_like(&self, other: &ServerCell) -> bool {
        *self == ServerCell { contender: self.contender, ..other.clone() }
    }

    /// What the server is called where middleware is compared: with the handler, if that is not the one of all.
    pub(super) fn server_name(&self) -> String {
        match self.figure {
            PaperFigure::Capacity | PaperFigure::Overload if self.handler != ServerWork::Greeting => {
                format!("{}, {}", self.contender, self.handler)
            }
            _ => self.contender.to_string(),
        }
    }
}

impl fmt::Display for ServerCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.contender, self.handler, self.load)?;
        if self.room == ServerRoom::Cpus(1) { Ok(()) } else { write!(f, ", {}", self.room) }
    }
}
