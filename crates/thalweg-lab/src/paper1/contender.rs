//! Contenders: one of Thalweg's methods or a peer in one of its profiles, as two processes that make runs when they are asked to.

use std::time::{Duration, Instant};

use super::pair::{BurstAnswer, BurstRequest, PairOrder};
use super::peers::{PeerOrder, PeerPair};
use super::search::Settings;
use crate::error::LabError;
use crate::process::{Launcher, Stop, Supervised, WorkerMessage};
use crate::station::{PackingMethod, Sending, StationNetwork};
use crate::worker::Order;

/// A contender that may have processes; they are started when they are needed and again when they fail.
#[derive(Debug)]
pub(super) struct Contender {
    /// Name in tables, such as `Thalweg batch` or `cyclone tuned`.
    pub(super) name: String,
    pub(super) kind: Kind,
    pair: Option<Pair>,
    /// Version that a peer said it has.
    pub(super) version: Option<String>,
    /// Its failures, in order.
    pub(super) failures: Vec<String>,
}

/// Whose processes they are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Ours, by a method with settings.
    Ours(Way),
    /// A peer's.
    Peer(PeerOrder),
}

/// One of our methods with its best settings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Way {
    pub(super) method: MethodName,
    pub(super) settings: Settings,
}

/// Our methods, as the paper's tables and ours name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MethodName {
    Immediate,
    Wrapped,
    Coalescing,
    Batching,
    Auto,
}

impl MethodName {
    pub(super) const ALL: [MethodName; 5] =
        [MethodName::Immediate, MethodName::Wrapped, MethodName::Coalescing, MethodName::Batching, MethodName::Auto];

    pub(super) fn text(self) -> &'static str {
        match self {
            MethodName::Immediate => "immediate",
            MethodName::Wrapped => "wrapped by the application",
            MethodName::Coalescing => "coalescing",
            MethodName::Batching => "batching",
            MethodName::Auto => "auto",
        }
    }
}

impl Way {
    /// By what way its samples travel.
    pub(super) fn sending(&self) -> Sending {
        Sending::by(match self.method {
            MethodName::Immediate | MethodName::Wrapped => PackingMethod::Immediate,
            MethodName::Coalescing => PackingMethod::Coalesce(self.settings.limits()),
            MethodName::Batching => PackingMethod::Batch(self.settings.limits()),
            MethodName::Auto => PackingMethod::Auto,
        })
    }
}

#[derive(Debug)]
enum Pair {
    Ours(Box<OurPair>),
    Peer(Box<PeerPair>),
}

/// Time limit of starting processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage<'a> {
    pub(super) launcher: &'a Launcher,
    pub(super) stop: &'a Stop,
    /// Logical CPUs of every writer and every reader.
    pub(super) cpus: Option<(usize, usize)>,
}

impl Contender {
    pub(super) fn ours(name: impl Into<String>, method: MethodName, settings: Settings) -> Contender {
        Contender::new(name.into(), Kind::Ours(Way { method, settings }))
    }

    pub(super) fn peer(name: impl Into<String>, order: PeerOrder) -> Contender {
        Contender::new(name.into(), Kind::Peer(order))
    }

    fn new(name: String, kind: Kind) -> Contender {
        Contender { name, kind, pair: None, version: None, failures: Vec::new() }
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Ours(_))
    }

    /// Whether it failed too often to be asked again. A peer that ends before it was ever ready does not have the profile.
    pub(super) fn has_given_up(&self) -> bool {
        let was_never_there = !self.is_ours() && self.version.is_none() && !self.failures.is_empty();
        was_never_there || self.failures.len() >= FAILURES_MAX
    }

    /// Starts its processes without waiting for them; several contenders can so start at a time.
    pub(super) fn begin(&mut self, stage: &Stage<'_>) -> Result<(), LabError> {
        if self.pair.is_some() {
            return Ok(());
        }
        let pair = match &self.kind {
            Kind::Ours(way) => OurPair::start(way, stage).map(|pair| Pair::Ours(Box::new(pair))),
            Kind::Peer(order) => PeerPair::start(order).map(|pair| Pair::Peer(Box::new(pair))),
        };
        self.pair = Some(pair?);
        Ok(())
    }

    /// Waits until both processes have met.
    pub(super) fn wait_until_ready(&mut self, stage: &Stage<'_>) -> Result<(), LabError> {
        match &mut self.pair {
            Some(Pair::Ours(pair)) => pair.wait_until_ready(stage.stop),
            Some(Pair::Peer(pair)) => {
                if pair.version.is_empty() {
                    pair.wait_until_ready(stage.stop)?;
                    self.version = Some(pair.version.clone());
                }
                Ok(())
            }
            None => Err(LabError::Here(format!("{} was not started", self.name))),
        }
    }

    /// Times of so many runs in milliseconds, after one that does not count. `None` when it failed, which it remembers.
    ///
    /// # Errors
    /// Only the user's wish to stop.
    pub(super) fn runs(
        &mut self,
        cell: (u64, u64),
        runs: u64,
        stage: &Stage<'_>,
    ) -> Result<Option<Vec<f64>>, LabError> {
        if self.has_given_up() {
            return Ok(None);
        }
        let made =
            self.begin(stage).and_then(|()| self.wait_until_ready(stage)).and_then(|()| self.burst(cell, runs, stage));
        match made {
            Ok(values) => Ok(Some(values)),
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            Err(error) => {
                self.pair = None;
                self.failures.push(format!("{} × {} B: {error}", cell.0, cell.1));
                Ok(None)
            }
        }
    }

    fn burst(&mut self, (n, size): (u64, u64), runs: u64, stage: &Stage<'_>) -> Result<Vec<f64>, LabError> {
        let mut values = match (&mut self.pair, &self.kind) {
            (Some(Pair::Ours(pair)), Kind::Ours(way)) => {
                let wrap_bytes = if way.method == MethodName::Wrapped { way.settings.wrap_bytes() } else { 0 };
                let pause_us = way.settings.pause_us();
                pair.burst(&BurstRequest { n, size, runs: runs + 1, wrap_bytes, pause_us }, stage.stop)?
            }
            (Some(Pair::Peer(pair)), _) => pair.burst(n, size, runs + 1, stage.stop)?,
            _ => return Err(LabError::Here(format!("{} was not started", self.name))),
        };
        // The first after a pause finds cold caches and a processor that slept.
        values.remove(0);
        Ok(values)
    }
}

/// Our two processes.
#[derive(Debug)]
struct OurPair {
    sender: Supervised,
    receiver: Supervised,
    is_ready: bool,
}

impl OurPair {
    fn start(way: &Way, stage: &Stage<'_>) -> Result<OurPair, LabError> {
        let receive_buffer_bytes = way.settings.receive_buffer_bytes();
        let network = StationNetwork { receive_buffer_bytes, ..StationNetwork::apart(0) };
        let order = |cpu| PairOrder { network: network.clone(), sending: way.sending(), flow_controller: None, cpu };
        let (writer_cpu, reader_cpu) = (stage.cpus.map(|cpus| cpus.0), stage.cpus.map(|cpus| cpus.1));
        let receiver =
            Supervised::start(stage.launcher, "receiver of bursts", &Order::PairReceiver(order(reader_cpu)))?;
        let sender = Supervised::start(stage.launcher, "sender of bursts", &Order::PairSender(order(writer_cpu)))?;
        Ok(OurPair { sender, receiver, is_ready: false })
    }

    fn wait_until_ready(&mut self, stop: &Stop) -> Result<(), LabError> {
        if !self.is_ready {
            self.hear(READY_PATIENCE, stop)?;
            self.is_ready = true;
        }
        Ok(())
    }

    fn burst(&mut self, request: &BurstRequest, stop: &Stop) -> Result<Vec<f64>, LabError> {
        self.sender.send(request)?;
        let answer: BurstAnswer = serde_json::from_value(self.hear(ANSWER_PATIENCE, stop)?).map_err(LabError::here)?;
        Ok(answer.runs_ms)
    }

    /// Hears the sender, and the receiver's reason when that gave up first.
    fn hear(&mut self, patience: Duration, stop: &Stop) -> Result<serde_json::Value, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.sender.hear(LOOK_PERIOD, stop) {
                Ok(WorkerMessage::Progress(value)) => return Ok(value),
                Ok(other) => return Err(LabError::Here(format!("the sender of bursts said {other:?}"))),
                Err(LabError::Silent { .. }) if Instant::now() < deadline => self.receiver.check_alive()?,
                Err(error @ LabError::Failed { .. }) => return Err(self.receiver.check_alive().err().unwrap_or(error)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A contender that failed so often is not asked again.
const FAILURES_MAX: usize = 3;
const LOOK_PERIOD: Duration = Duration::from_millis(500);
const READY_PATIENCE: Duration = Duration::from_secs(45);
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
