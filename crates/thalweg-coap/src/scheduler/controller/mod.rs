//! The number of threads of a handler pool: laws, which are functions of observations alone.
//!
//! The paper's variable thread adjustment is here in three readings: as its equations are printed ([`VtaPrinted`]), as
//! its authors built it ([`VtaAuthors`]) and as its text means it ([`Vta`], the default). `docs/coap-internals.md` compares them.

mod every_second;
mod fixed;
mod queue_delay;
#[cfg(test)]
mod tests;
mod vta;
mod vta_authors;
mod vta_printed;
mod work;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use every_second::EverySecond;
pub use fixed::Fixed;
pub use queue_delay::QueueDelay;
pub use vta::Vta;
pub use vta_authors::VtaAuthors;
pub use vta_printed::{HandlerRate, PeakOf, VtaPrinted};

/// Observations of one pool during one period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeriodObservation {
    /// The true length of the period.
    pub period: Duration,
    /// Threads that the pool was given for it (N).
    pub threads: usize,
    /// Requests accepted into the queue (R × period), without refused ones.
    pub arrivals: u64,
    /// Requests that handlers finished (H × period).
    pub completions: u64,
    /// Time that threads spent in handlers, added up over all threads.
    pub busy: Duration,
    /// The part of `busy` in which a processor worked for them.
    pub processor: Duration,
    /// The part of `busy` in which they were ready but had to wait for a processor.
    pub processor_wait: Duration,
    /// Requests in the queue at the end (QS).
    pub queue: usize,
    /// Mean time that the requests taken from the queue had waited in it.
    pub sojourn: Duration,
}

impl PeriodObservation {
    /// Accepted requests a second.
    pub fn arrival_rate(&self) -> f64 {
        self.arrivals as f64 / self.period.as_secs_f64().max(SHORTEST_PERIOD)
    }

    /// Finished requests a second.
    pub fn completion_rate(&self) -> f64 {
        self.completions as f64 / self.period.as_secs_f64().max(SHORTEST_PERIOD)
    }

    /// Part of the threads' time that they spent in handlers, 0 to 1.
    pub fn busy_share(&self) -> f64 {
        let held = self.period.as_secs_f64().max(SHORTEST_PERIOD) * self.threads.max(1) as f64;
        (self.busy.as_secs_f64() / held).min(1.0)
    }
}

/// The machine's limits for a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Processors that the process may use.
    pub processors: usize,
    /// Threads that memory allows, whatever they do.
    pub threads_max: usize,
}

/// A law's decision for the next period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Threads to run (N), at least one.
    pub threads: usize,
    /// The most it would have given (`NT_max`).
    pub threads_max: usize,
}

/// A law for the number of threads. It sees observations and nothing else: no clock, no thread, no random number.
pub trait Controller: Send {
    /// Takes one period into account and says how many threads the next one gets.
    fn handle_observation(&mut self, observation: &PeriodObservation) -> Decision;
}

/// A law by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlLaw {
    /// No pool: handlers run on the thread that received the request, also those that block.
    Inline,
    /// Always this many threads.
    Fixed(usize),
    /// Equations (1) to (6) as printed; H is the rate of completions.
    VtaPrinted,
    /// The published code of the paper's authors.
    VtaAuthors,
    /// The corrected reading of the equations with a computed cap.
    #[default]
    Vta,
    /// Adds threads while requests wait too long, takes them away while threads idle.
    QueueDelay,
}

impl ControlLaw {
    /// The law with its starting state; `None` for [`ControlLaw::Inline`], which needs no threads.
    pub fn controller(self, limits: PoolLimits) -> Option<Box<dyn Controller>> {
        match self {
            ControlLaw::Inline => None,
            ControlLaw::Fixed(threads) => Some(Box::new(Fixed::new(threads, limits))),
            ControlLaw::VtaPrinted => {
                let law = VtaPrinted::new(HandlerRate::Completions, PeakOf::ThreadRate, limits);
                Some(Box::new(EverySecond::new(law)))
            }
            ControlLaw::VtaAuthors => Some(Box::new(EverySecond::new(VtaAuthors::new(limits)))),
            ControlLaw::Vta => Some(Box::new(Vta::new(limits))),
            ControlLaw::QueueDelay => Some(Box::new(QueueDelay::new(limits))),
        }
    }

    /// Threads that a pool under this law starts with: all of a fixed number, else one (`N_0`).
    pub fn threads_at_start(self) -> usize {
        match self {
            ControlLaw::Fixed(threads) => threads.max(1),
            _ => 1,
        }
    }
}

impl fmt::Display for ControlLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlLaw::Inline => f.write_str("inline"),
            ControlLaw::Fixed(threads) => write!(f, "fixed:{threads}"),
            ControlLaw::VtaPrinted => f.write_str("vta-printed"),
            ControlLaw::VtaAuthors => f.write_str("vta-authors"),
            ControlLaw::Vta => f.write_str("vta"),
            ControlLaw::QueueDelay => f.write_str("queue-delay"),
        }
    }
}

impl FromStr for ControlLaw {
    type Err = UnknownLaw;

    fn from_str(text: &str) -> Result<ControlLaw, UnknownLaw> {
        let unknown = || UnknownLaw(text.to_owned());
        match text {
            "inline" => Ok(ControlLaw::Inline),
            "vta-printed" => Ok(ControlLaw::VtaPrinted),
            "vta-authors" => Ok(ControlLaw::VtaAuthors),
            "vta" => Ok(ControlLaw::Vta),
            "queue-delay" => Ok(ControlLaw::QueueDelay),
            other => {
                let threads = other.strip_prefix("fixed:").and_then(|number| number.parse().ok());
                threads.filter(|threads| *threads > 0).map(ControlLaw::Fixed).ok_or_else(unknown)
            }
        }
    }
}

/// A text that names no law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLaw(String);

impl fmt::Display for UnknownLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" names no thread law; use inline, fixed:N with N of at least 1, vta, vta-printed, vta-authors or queue-delay",
            self.0
        )
    }
}

impl std::error::Error for UnknownLaw {}

/// `W_min,RTO`: how soon a client repeats a request that was not answered (RFC 7252 §4.8, `ACK_TIMEOUT`).
pub const REPEAT_AFTER: Duration = Duration::from_secs(2);

/// Samples that the equations average over (n).
const SAMPLES: usize = 5;

/// Keeps a rate finite when two observations follow each other at once.
const SHORTEST_PERIOD: f64 = 1e-6;
