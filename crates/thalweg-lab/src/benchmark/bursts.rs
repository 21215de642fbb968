//! Bursts on demand: two processes of Thalweg, or of a peer's program, that speak as `peers/README.md` describes.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::{BurstAnswer, BurstPublisher, BurstReady, BurstRequest, echo_bursts};

use crate::error::LabError;
use crate::process::{Launcher, ParentPipe, ProcessPair, Stop, Supervised};
use crate::station::{Setup, Thalweg};
use crate::worker::Order;

/// The order of a process of ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BurstOrder {
    setup: Setup,
    /// Logical CPU of this process.
    cpu: Option<usize>,
}

/// The writing process: says that it is ready once both have met, then answers a request a line until its input ends.
pub(crate) fn publish(order: &BurstOrder, link: &ParentPipe) -> Result<(), LabError> {
    let mut publisher = BurstPublisher::<Thalweg>::open(&order.setup, order.cpu, u32::MAX, link.stop())?;
    link.progress(&publisher.ready(&order.setup, ""))?;
    while let Some(request) = link.next::<BurstRequest>()? {
        link.progress(&publisher.answer(&request)?)?;
    }
    Ok(())
}

/// The process that echoes, until its input ends.
pub(crate) fn subscribe(order: &BurstOrder, link: &ParentPipe) -> Result<(), LabError> {
    Ok(echo_bursts::<Thalweg>(&order.setup, order.cpu, || link.stop().is_requested())?)
}

/// How a pair is started.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BurstParty {
    /// Ours, with these settings.
    Ours(Box<Setup>),
    /// A peer's.
    Peer(PeerWords),
}

/// A peer's program and the words that all its processes are started with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PeerWords {
    pub(super) program: PathBuf,
    pub(super) words: Vec<String>,
}

impl PeerWords {
    /// Starts one process, in the network of `launcher`.
    pub(super) fn start(
        &self,
        launcher: &Launcher,
        further: impl Iterator<Item = String>,
    ) -> Result<Supervised, LabError> {
        // The report names the machine; a path would only name a user's directories.
        let file = self.program.file_name().unwrap_or(self.program.as_os_str());
        let name = format!("program {}", file.display());
        let words: Vec<String> = self.words.iter().cloned().chain(further).collect();
        Supervised::start_without_order(&launcher.of_program(&self.program, words), &name)
    }
}

/// Two processes; dropping it ends both.
#[derive(Debug)]
pub(super) struct BurstPair {
    processes: ProcessPair,
    ready: Option<BurstReady>,
}

impl BurstPair {
    /// Starts both processes, on logical CPUs of the writer and of the reader, and does not wait until they have met.
    pub(super) fn start(
        party: &BurstParty,
        (sender, receiver): (&Launcher, &Launcher),
        (writer_cpu, reader_cpu): (Option<usize>, Option<usize>),
    ) -> Result<BurstPair, LabError> {
        let (subscriber, publisher) = match party {
            BurstParty::Ours(setup) => {
                let order = |cpu| BurstOrder { setup: (**setup).clone(), cpu };
                let subscriber = Order::BurstSubscriber(order(reader_cpu));
                let publisher = Order::BurstPublisher(order(writer_cpu));
                (
                    Supervised::start(receiver, "receiver of bursts", &subscriber)?,
                    Supervised::start(sender, "sender of bursts", &publisher)?,
                )
            }
            BurstParty::Peer(words) => {
                let end = |launcher: &Launcher, role: &str, cpu: Option<usize>| {
                    let own = ["--role", role].map(str::to_owned).into_iter();
                    let cpu = cpu.into_iter().flat_map(|cpu| ["--cpu".to_owned(), cpu.to_string()]);
                    words.start(launcher, own.chain(cpu))
                };
                (end(receiver, "sub", reader_cpu)?, end(sender, "pub", writer_cpu)?)
            }
        };
        Ok(BurstPair { processes: ProcessPair::new(subscriber, publisher), ready: None })
    }

    /// Waits until both have met; what the publisher says of itself.
    pub(super) fn wait_until_ready(&mut self, stop: &Stop) -> Result<BurstReady, LabError> {
        if let Some(ready) = &self.ready {
            return Ok(ready.clone());
        }
        let ready: BurstReady = self.processes.hear(READY_PATIENCE, stop)?;
        Ok(self.ready.insert(ready).clone())
    }

    /// The times of the runs of a request in milliseconds.
    pub(super) fn runs(&mut self, request: &BurstRequest, stop: &Stop) -> Result<Vec<f64>, LabError> {
        self.wait_until_ready(stop)?;
        self.processes.send(request)?;
        let failed = |name: &str, reason| LabError::Failed { process: name.to_owned(), reason };
        match self.processes.hear::<BurstAnswer>(ANSWER_PATIENCE, stop)? {
            BurstAnswer::Refused { error } => Err(failed(self.processes.name(), error)),
            BurstAnswer::Runs { runs_ms } => {
                if runs_ms.len() as u64 == u64::from(request.runs) && runs_ms.iter().all(|ms| *ms > 0.0) {
                    return Ok(runs_ms);
                }
                let (said, runs) = (format!("{runs_ms:?}"), request.runs);
                Err(failed(self.processes.name(), format!("it answered {said} where {runs} times were expected")))
            }
        }
    }

    /// What both processes wrote on their standard error.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.processes.remarks()
    }
}

const READY_PATIENCE: Duration = Duration::from_secs(45);
/// Time limit of a series of runs: 10,000 samples of a middleware that sends them one by one, some ten times.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
