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
pub(crate) enum BurstParty {
    /// Ours, with these settings.
    Ours(Box<Setup>),
    /// A peer's program.
    Peer {
        /// Where it lies.
        program: PathBuf,
        /// Its set of settings.
        profile: String,
        /// Apart from other pairs.
        domain: u32,
        /// The most octets of a sample.
        size_max: u64,
    },
}

/// Two processes; dropping it ends both.
#[derive(Debug)]
pub(crate) struct BurstPair {
    processes: ProcessPair,
    ready: Option<BurstReady>,
}

impl BurstPair {
    /// Starts both processes, ours by `launcher`, on logical CPUs of the writer and of the reader, and does not wait until they have
    /// met; messages to the user call ours after their `data`.
    pub(crate) fn start(
        party: &BurstParty,
        (launcher, data): (&Launcher, &str),
        cpus: Option<(usize, usize)>,
    ) -> Result<BurstPair, LabError> {
        let (writer_cpu, reader_cpu) = cpus.unzip();
        let (subscriber, publisher) = match party {
            BurstParty::Ours(setup) => {
                let order = |cpu| BurstOrder { setup: (**setup).clone(), cpu };
                let subscriber = Order::BurstSubscriber(order(reader_cpu));
                let publisher = Order::BurstPublisher(order(writer_cpu));
                (
                    Supervised::start(launcher, &format!("receiver of {data}"), &subscriber)?,
                    Supervised::start(launcher, &format!("sender of {data}"), &publisher)?,
                )
            }
            BurstParty::Peer { program, profile, domain, size_max } => {
                // The report names the machine; a path would only name a user's directories.
                let file = program.file_name().unwrap_or(program.as_os_str());
                let name = format!("program {}", file.display());
                let end = |role: &str, cpu: Option<usize>| {
                    let (domain, size_max) = (domain.to_string(), size_max.to_string());
                    let fixed = ["burst", "--role", role, "--profile", profile, "--domain", &domain];
                    let mut words: Vec<String> = fixed.map(str::to_owned).into();
                    words.extend(["--max-size".to_owned(), size_max]);
                    words.extend(cpu.into_iter().flat_map(|cpu| ["--cpu".to_owned(), cpu.to_string()]));
                    Supervised::start_without_order(&Launcher::new(program, words), &name)
                };
                (end("sub", reader_cpu)?, end("pub", writer_cpu)?)
            }
        };
        Ok(BurstPair { processes: ProcessPair::new(subscriber, publisher), ready: None })
    }

    /// Waits until both have met; what the publisher says of itself.
    pub(crate) fn wait_until_ready(&mut self, stop: &Stop) -> Result<BurstReady, LabError> {
        if let Some(ready) = &self.ready {
            return Ok(ready.clone());
        }
        let ready: BurstReady = self.processes.hear(READY_PATIENCE, stop)?;
        Ok(self.ready.insert(ready).clone())
    }

    /// The times of the runs of a request in milliseconds.
    pub(crate) fn runs(&mut self, request: &BurstRequest, stop: &Stop) -> Result<Vec<f64>, LabError> {
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
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.processes.remarks()
    }
}

const READY_PATIENCE: Duration = Duration::from_secs(45);
/// Time limit of a series of runs: 10,000 samples of a middleware that sends them one by one, some ten times.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
