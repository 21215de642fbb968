//! A cell: its contender, its handler and its load.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thalweg_coap::scheduler::controller::ControlLaw;

use super::peer::{CoapPeer, Deduplication};
use crate::coap_load::Phase;
use crate::figures::{grouped, rounded};
use crate::nearest::nearest;

/// A part of the preset: a figure of the paper, or something that it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperFigure {
    /// Figure 5: pools of fixed sizes.
    Pools,
    /// Figures 6 and 7: receiver and handlers over time.
    Course,
    /// Figures 9 and 10: requests a second against clients.
    Clients,
    /// Figure 11: larger datagrams.
    Sizes,
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
    /// All of them, in the order of the page.
    pub const ALL: [PaperFigure; 8] = [
        PaperFigure::Pools,
        PaperFigure::Course,
        PaperFigure::Clients,
        PaperFigure::Sizes,
        PaperFigure::Capacity,
        PaperFigure::Overload,
        PaperFigure::Flood,
        PaperFigure::Ramp,
    ];

    /// What it is called on the command line; figures of the paper that come from the same runs have a name each.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            PaperFigure::Pools => &["5"],
            PaperFigure::Course => &["6", "7"],
            PaperFigure::Clients => &["9", "10"],
            PaperFigure::Sizes => &["11"],
            PaperFigure::Capacity => &["capacity"],
            PaperFigure::Overload => &["overload"],
            PaperFigure::Flood => &["flood"],
            PaperFigure::Ramp => &["ramp"],
        }
    }
}

impl FromStr for PaperFigure {
    type Err = String;

    fn from_str(text: &str) -> Result<PaperFigure, String> {
        let names = || PaperFigure::ALL.iter().flat_map(|figure| figure.names().iter().copied());
        PaperFigure::ALL.into_iter().find(|figure| figure.names().contains(&text)).ok_or_else(|| {
            let guess = nearest(text, names()).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
            format!("there is no figure {text:?}: {guess}Known: {}", names().collect::<Vec<_>>().join(", "))
        })
    }
}

impl fmt::Display for PaperFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
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

    /// Its name where laws are compared: the law, for our server.
    pub fn law_name(self) -> String {
        match self {
            Contender::Thalweg(law) => law.to_string(),
            peer @ Contender::Peer(..) => peer.to_string(),
        }
    }

    /// Its name where middleware is compared.
    pub fn middleware_name(self) -> String {
        match self {
            Contender::Thalweg(_) => "Thalweg".to_owned(),
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
}

impl ServerCell {
    /// Whether it shows how much its contender does with its handler.
    pub(super) fn is_capacity(&self) -> bool {
        let is_one_client = self.load == RequestLoad::Closed { clients: 1, outstanding: 1 };
        self.figure == PaperFigure::Capacity && (!is_one_client || self.handler != ServerWork::Greeting)
    }

    /// What the server is called where middleware is compared: with the handler, if that is not the greeting of all.
    pub(super) fn server_name(&self) -> String {
        match self.handler {
            ServerWork::Greeting | ServerWork::Blocking(_) => self.contender.middleware_name(),
            handler => format!("{}, {handler}", self.contender.middleware_name()),
        }
    }
}

impl fmt::Display for ServerCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.contender, self.handler, self.load)
    }
}
