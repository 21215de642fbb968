//! Contenders: one of Thalweg's methods or a peer in one of its profiles, as two processes that make runs when they are asked to.

use thalweg_lab_station::BurstRequest;

use super::search::Settings;
use crate::bursts::{BurstPair, BurstParty};
use crate::error::LabError;
use crate::process::{Launcher, Stop};
use crate::station::{PackingMethod, Sending, Setup, StationNetwork};

/// A contender that may have processes; they are started when they are needed and again when they fail.
#[derive(Debug)]
pub(super) struct Contender {
    /// Name in tables, such as `Thalweg batch` or `cyclone tuned`.
    pub(super) name: String,
    pub(super) kind: Kind,
    pair: Option<BurstPair>,
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
    Peer(BurstParty),
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

    /// Both processes' settings, apart from all others.
    fn setup(&self) -> Setup {
        let receive_buffer_bytes = self.settings.receive_buffer_bytes();
        let network = StationNetwork { receive_buffer_bytes, ..StationNetwork::apart(0) };
        Setup { sending: self.sending(), ..Setup::within(network) }
    }

    /// What the application does with its samples: packs them, waits between them.
    fn application(&self) -> (u64, u64) {
        let wrap_bytes = if self.method == MethodName::Wrapped { self.settings.wrap_bytes() } else { 0 };
        (wrap_bytes, self.settings.pause_us())
    }
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

    pub(super) fn peer(name: impl Into<String>, party: BurstParty) -> Contender {
        Contender::new(name.into(), Kind::Peer(party))
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
        let party = match &self.kind {
            Kind::Ours(way) => BurstParty::Ours(Box::new(way.setup())),
            Kind::Peer(party) => party.clone(),
        };
        self.pair = Some(BurstPair::start(&party, (stage.launcher, "bursts"), stage.cpus)?);
        Ok(())
    }

    /// Waits until both processes have met.
    pub(super) fn wait_until_ready(&mut self, stage: &Stage<'_>) -> Result<(), LabError> {
        let ready = self.pair()?.wait_until_ready(stage.stop)?;
        if !self.is_ours() {
            self.version = Some(ready.version);
        }
        Ok(())
    }

    fn pair(&mut self) -> Result<&mut BurstPair, LabError> {
        self.pair.as_mut().ok_or_else(|| LabError::Here(format!("{} was not started", self.name)))
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
        let (wrap_bytes, pause_us) = match &self.kind {
            Kind::Ours(way) => way.application(),
            Kind::Peer(_) => (0, 0),
        };
        let narrow = |count: u64| u32::try_from(count).map_err(LabError::here);
        let request =
            BurstRequest { n: narrow(n)?, size: narrow(size)?, runs: narrow(runs + 1)?, wrap_bytes, pause_us };
        let mut values = self.pair()?.runs(&request, stage.stop)?;
        // The first after a pause finds cold caches.
        values.remove(0);
        Ok(values)
    }
}

/// A contender that failed so often is not asked again.
const FAILURES_MAX: usize = 3;
