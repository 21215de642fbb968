//! The plan of a load.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_coap::endpoint::Confirmability;

use super::crowd::SOCKETS_MAX;
use crate::error::LabError;

/// A load for one CoAP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The server.
    pub target: SocketAddr,
    /// The requested resource.
    pub request: RequestPlan,
    /// Clients, each with a source port of its own; 1 to 50,000.
    pub clients: u32,
    /// When clients ask.
    pub arrival: ArrivalProcess,
    /// Time in which requests are counted. Ignored with [`ArrivalProcess::Phases`], whose phases give it.
    pub duration: Duration,
    /// Time of the load before that without being counted; with phases at the rate of the first.
    pub warm_up: Duration,
    /// After this time without an answer a request is lost. Default 5 s.
    pub time_limit: Duration,
    /// Length of the windows of [`LoadResult::windows`](super::LoadResult::windows); `None` for no windows.
    pub window: Option<Duration>,
    /// Requests of others beside the measured ones.
    pub flood: Option<Flood>,
    /// The server's process on this host, whose processor time and memory are reported.
    pub server_process: Option<u32>,
}

/// The request of each client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Path and query of the GET, such as `/slow?ms=2`.
    pub resource: String,
    /// Whether requests are confirmable. Such a request is repeated until something comes back, after 2 to 3 s, then twice as long, four
    /// times at most (RFC 7252 §4.2).
    #[serde(with = "WrittenConfirmability")]
    pub delivery: Confirmability,
    /// Bytes of each datagram, reached by empty arguments of the query; `None` for as few as the resource takes, which are
    /// 20 for `/request`.
    pub bytes: Option<usize>,
    /// The payload that a right answer has; `None` takes any.
    pub expected: Option<String>,
}

/// [`Confirmability`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Confirmability", rename_all = "kebab-case")]
enum WrittenConfirmability {
    NonConfirmable,
    Confirmable,
}

/// When clients ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalProcess {
    /// Each client keeps so many requests open and sends the next when an answer comes: the server sets the pace, and
    /// latency counts from the sending.
    Closed(u32),
    /// Each client sends so many requests a second on a schedule that does not wait for answers; latency counts from the
    /// scheduled time.
    Rate(f64),
    /// One total rate after the other, on a schedule; clients take turns.
    Phases(Vec<Phase>),
}

/// A rate for some time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Requests a second of all clients together.
    pub rate: f64,
    /// For how long.
    pub duration: Duration,
}

/// Requests from many source ports without a waiting client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flood {
    /// Source ports on addresses of the loopback network; 1 to 1,000,000.
    pub ports: u32,
    /// Requests a second of all of them together; they take turns.
    pub rate: f64,
}

impl LoadPlan {
    /// The plan that asks `target` for `/request` by one client in a closed loop for five seconds, each answer compared with
    /// `hello world`.
    pub fn new(target: SocketAddr) -> LoadPlan {
        LoadPlan {
            target,
            request: RequestPlan {
                resource: "/request".to_owned(),
                delivery: Confirmability::NonConfirmable,
                bytes: None,
                expected: Some("hello world".to_owned()),
            },
            clients: 1,
            arrival: ArrivalProcess::Closed(1),
            duration: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            time_limit: Duration::from_secs(5),
            window: None,
            flood: None,
            server_process: None,
        }
    }

    /// Time in which requests are counted.
    pub fn counted(&self) -> Duration {
        match &self.arrival {
            ArrivalProcess::Phases(phases) => phases.iter().map(|phase| phase.duration).sum(),
            ArrivalProcess::Closed(_) | ArrivalProcess::Rate(_) => self.duration,
        }
    }

    /// Sockets that the load needs.
    pub(super) fn sockets(&self) -> u64 {
        u64::from(self.clients) + self.flood.map_or(0, |flood| u64::from(flood.ports).min(SOCKETS_MAX))
    }

    /// Refuses an impossible plan.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Here(reason));
        if !(1..=CLIENTS_MAX).contains(&self.clients) {
            return refuse(format!("{} clients cannot be had; 1 to {CLIENTS_MAX} can", self.clients));
        }
        let is_rate = |rate: f64| rate > 0.0 && rate <= RATE_MAX;
        let is_possible = match &self.arrival {
            ArrivalProcess::Closed(outstanding) => (1..=OUTSTANDING_MAX).contains(outstanding),
            ArrivalProcess::Rate(rate) => is_rate(rate * f64::from(self.clients)),
            ArrivalProcess::Phases(phases) => !phases.is_empty() && phases.iter().all(|phase| is_rate(phase.rate)),
        };
        if !is_possible {
            return refuse(format!(
                "the load {:?} of {} clients is impossible; use 1 to {OUTSTANDING_MAX} outstanding requests or up to {RATE_MAX} a second together",
                self.arrival, self.clients
            ));
        }
        let is_loopback = matches!(self.target.ip(), IpAddr::V4(address) if address.is_loopback());
        let is_flood = |flood: Flood| is_loopback && (1..=PORTS_MAX).contains(&flood.ports) && is_rate(flood.rate);
        if self.flood.is_some_and(|flood| !is_flood(flood)) {
            return refuse(format!(
                "a flood has 1 to {PORTS_MAX} ports and up to {RATE_MAX} requests a second, and goes to a server on 127.0.0.1"
            ));
        }
        let counted = self.counted();
        if counted.is_zero() || counted > DURATION_MAX || self.warm_up > DURATION_MAX {
            return refuse(format!("{counted:?} cannot be measured; use up to {} s", DURATION_MAX.as_secs()));
        }
        if self.time_limit.is_zero() || self.time_limit > LIMIT_MAX {
            return refuse(format!(
                "a time limit of {:?} is impossible; use up to {} s",
                self.time_limit,
                LIMIT_MAX.as_secs()
            ));
        }
        match self.window {
            Some(window) if window.is_zero() || counted.as_nanos() / window.as_nanos() >= WINDOWS_MAX => {
                refuse(format!("windows of {window:?} would be too many; at most {WINDOWS_MAX} are kept"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}s", self.rate, self.duration.as_secs_f64())
    }
}

impl FromStr for Phase {
    type Err = String;

    /// Reads `RATExSECONDSs`, such as `6000x9s`.
    fn from_str(text: &str) -> Result<Phase, String> {
        let needed = || format!("a phase is a rate and how long it lasts, such as 6000x9s, not {text:?}");
        let (rate, seconds) = text.split_once('x').ok_or_else(needed)?;
        let rate: f64 = rate.trim().parse().map_err(|_| needed())?;
        let seconds: f64 = seconds.trim().strip_suffix('s').and_then(|text| text.parse().ok()).ok_or_else(needed)?;
        let duration = Duration::try_from_secs_f64(seconds).map_err(|_| needed())?;
        Ok(Phase { rate, duration })
    }
}

/// More would need more ports than two addresses have.
const CLIENTS_MAX: u32 = 50_000;
/// Message IDs of one client that are open at once; far below the 65,536 that there are.
const OUTSTANDING_MAX: u32 = 4096;
const PORTS_MAX: u32 = 1_000_000;
/// More than one thread can send.
const RATE_MAX: f64 = 10_000_000.0;
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// MAX_TRANSMIT_WAIT (RFC 7252 §4.8.2) is 93 s.
const LIMIT_MAX: Duration = Duration::from_secs(100);
/// Each window holds a distribution of 200 kB.
const WINDOWS_MAX: u128 = 1000;
