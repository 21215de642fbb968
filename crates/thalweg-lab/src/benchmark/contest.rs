//! One run: a contender's processes at one piece of work.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::{
    BurstRequest, Limit, Measurement, PerfOptions, ReliabilitySetting, RoundTripFigures, ThroughputFigures,
};

use super::beside::{BesideOrder, Received, Sent};
use super::bursts::{BurstPair, BurstParty, PeerWords};
use super::contender::ContenderPlan;
use super::plan::{Benchmark, Place, WorkPlan, WorkTask};
use crate::error::LabError;
use crate::host::{Conditions, ConditionsWatch, HostFiles};
use crate::network::{Hosts, Relay};
use crate::peers::PeerProfile;
use crate::process::{Launcher, Stop, Supervised};
use crate::station::{Setup, Wait};
use crate::worker::Order;

/// A whole run as its folder keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunFile {
    pub(super) work: String,
    pub(super) contender: String,
    /// What a peer says of itself; empty for Thalweg.
    #[serde(default)]
    pub(super) version: String,
    pub(super) conditions: Conditions,
    /// What the processes wrote on their standard error.
    pub(super) remarks: Vec<String>,
    /// Frames that the link lost by chance.
    #[serde(default)]
    pub(super) frames_lost: u64,
    pub(super) outcomes: Outcomes,
}

/// What a run measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcomes {
    /// Of each kind.
    Each(Vec<Outcome>),
    /// What both processes of a topic in a hurry saw.
    Beside(Sent, Received),
}

/// What was measured of one kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Milliseconds of each burst.
    BurstsMs(Vec<f64>),
    RoundTrips(RoundTripFigures),
    Stream(Box<ThroughputFigures>),
    /// Samples of a stream that never arrived, of those that its readers were to get.
    Lost {
        lost: u64,
        due: u64,
    },
    /// Why it failed.
    Missing(String),
    /// Why it was not tried again.
    LeftOut(String),
}

/// As many bursts as asked for, then more until they took `lasting_ms` together; those that open a series find cold caches and do not
/// count.
fn lasting(pair: &mut BurstPair, request: &BurstRequest, lasting_ms: f64, stop: &Stop) -> Result<Vec<f64>, LabError> {
    let mut series = |runs: u32| -> Result<Vec<f64>, LabError> {
        Ok(pair.runs(&BurstRequest { runs: runs + 1, ..*request }, stop)?.split_off(1))
    };
    let mut runs_ms = series(request.runs)?;
    let took_ms: f64 = runs_ms.iter().sum();
    let left = ((lasting_ms - took_ms) / (took_ms / f64::from(request.runs))).ceil();
    if left >= 1.0 {
        runs_ms.extend(series(left.min(f64::from(MORE_MAX)) as u32)?);
    }
    Ok(runs_ms)
}

/// More bursts than these tell no more of a run.
const MORE_MAX: u32 = 500;

/// What a run needs.
pub(super) struct Contest<'a> {
    pub(super) plan: &'a Benchmark,
    pub(super) work: &'a WorkPlan,
    pub(super) contender: &'a ContenderPlan,
    /// The hosts of work that is done over a link.
    pub(super) hosts: Option<&'a Hosts>,
    pub(super) launcher: &'a Launcher,
    pub(super) stop: &'a Stop,
    pub(super) round: u32,
    /// Decides which frames a link loses.
    pub(super) chance: u64,
    /// Why a kind is left out of this run, by its place.
    pub(super) omitted: &'a dyn Fn(usize) -> Option<String>,
}

impl Contest<'_> {
    /// Makes the run.
    pub(super) fn run(&self) -> Result<RunFile, LabError> {
        let mut relay = self.link().map_or(Ok(None), |hosts| hosts.relay(self.launcher, self.chance))?;
        relay.as_mut().map_or(Ok(()), Relay::begin)?;
        let watch = ConditionsWatch::start(HostFiles::here());
        let (mut version, mut remarks) = (String::new(), Vec::new());
        let outcomes = match &self.work.task {
            WorkTask::Bursts { of, each, lasting_s } => {
                let each_lasts_ms = 1e3 * lasting_s / of.len() as f64;
                Outcomes::Each(self.bursts(of, (*each, each_lasts_ms), (&mut version, &mut remarks))?)
            }
            WorkTask::Stream { bytes, readers, seconds } => {
                Outcomes::Each(self.all(bytes, |size| self.stream(size, *readers, *seconds))?)
            }
            WorkTask::RoundTrips { bytes, wait, seconds } => {
                Outcomes::Each(self.all(bytes, |size| self.round_trips(size, *wait, *seconds))?)
            }
            WorkTask::Beside { transfer: (n, size), quiet_s, loaded_s } => {
                let order = BesideOrder {
                    setup: self.contender.setup(),
                    quiet: Duration::from_secs_f64(*quiet_s),
                    loaded: Duration::from_secs_f64(*loaded_s),
                    begins_loaded: self.round % 2 == 1,
                    patience: 2 * self.work.task.duration(self.contender, self.plan.link.unwrap_or_default()) + BEYOND,
                    transfer: BurstRequest { n: *n, size: *size, runs: 1, ..BurstRequest::default() },
                };
                let seen = order.run((&self.on(0), &self.on(1)), self.stop)?;
                remarks = seen.remarks;
                Outcomes::Beside(seen.sent, seen.received)
            }
        };
        let frames_lost = match &mut relay {
            Some(relay) => {
                let counters = relay.counters()?;
                counters.iter().filter(|(name, _)| name.ends_with(".dropped")).map(|(_, frames)| frames).sum()
            }
            None => 0,
        };
        let (work, contender) = (self.work.name.clone(), self.contender.name.clone());
        Ok(RunFile { work, contender, version, conditions: watch.finish(), remarks, frames_lost, outcomes })
    }

    fn link(&self) -> Option<&Hosts> {
        self.hosts.filter(|_| self.work.place == Place::Link)
    }

    /// The launcher of an end: 0 writes, 1 reads.
    fn on(&self, host: u32) -> Launcher {
        let program = self.contender.program.as_deref();
        let launcher = program.map_or_else(|| self.launcher.clone(), |program| self.launcher.of_other_build(program));
        self.link().map_or_else(|| launcher.clone(), |hosts| hosts.launcher(&launcher, host))
    }

    /// The CPUs of the writer and the readers.
    fn cpus(&self) -> (Option<usize>, Vec<usize>) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        match self.work.place {
            Place::OneCore => (Some(0), vec![0]),
            Place::Cores | Place::Link if cores > 1 => (Some(0), (1..cores).collect()),
            _ => (None, Vec::new()),
        }
    }

    /// A peer's program with the words of this measurement; `None` for Thalweg.
    fn peer(&self, first: &[&str]) -> Result<Option<PeerWords>, LabError> {
        let Some(peer) = self.contender.peer else { return Ok(None) };
        let profile = self.contender.profile.unwrap_or(PeerProfile::Default).name();
        let domain = PEER_DOMAIN.to_string();
        let mut words: Vec<String> = first.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--profile", profile, "--domain", &domain].map(str::to_owned));
        if self.link().is_some() {
            words.extend(["--interface", Hosts::INTERFACE].map(str::to_owned));
        }
        Ok(Some(PeerWords { program: self.launcher.program_of(peer)?, words }))
    }

    /// Each kind of bursts with the same two processes, or new ones after a kind failed.
    fn bursts(
        &self,
        of: &[(u32, u32)],
        (each, lasting_ms): (u32, f64),
        (version, remarks): (&mut String, &mut Vec<String>),
    ) -> Result<Vec<Outcome>, LabError> {
        let largest = of.iter().map(|(_, size)| *size).max().unwrap_or(0).max(self.contender.wrap_bytes as u32);
        let party = match self.peer(&["burst", "--max-size", &largest.saturating_add(FRAME).to_string()])? {
            Some(words) => BurstParty::Peer(words),
            None => BurstParty::Ours(Box::new(self.contender.setup())),
        };
        let (writer, readers) = self.cpus();
        let start = || BurstPair::start(&party, (&self.on(0), &self.on(1)), (writer, readers.first().copied()));
        let mut pair: Option<BurstPair> = None;
        let mut out = Vec::new();
        for (place, (n, size)) in of.iter().enumerate() {
            if let Some(reason) = (self.omitted)(place) {
                out.push(Outcome::LeftOut(reason));
                continue;
            }
            let (wrap_bytes, pause_us) = (self.contender.wrap_bytes, self.contender.pause_us);
            let request = BurstRequest { n: *n, size: *size, runs: each, wrap_bytes, pause_us };
            let mut ready = match pair.take() {
                Some(pair) => pair,
                None => start()?,
            };
            // A pair that never meets has nothing to say about any kind.
            let met = ready.wait_until_ready(self.stop)?;
            if self.contender.peer.is_some() {
                *version = met.version;
            }
            out.push(match lasting(&mut ready, &request, lasting_ms, self.stop) {
                Ok(runs_ms) => {
                    pair = Some(ready);
                    Outcome::BurstsMs(runs_ms)
                }
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) if self.contender.peer.is_some() => Outcome::Missing(error.to_string()),
                Err(error) => return Err(error),
            });
        }
        remarks.extend(pair.iter().flat_map(BurstPair::remarks));
        Ok(out)
    }

    /// Each size by itself; a peer that fails at one may do the others.
    fn all(&self, sizes: &[u64], of: impl Fn(u64) -> Result<Outcome, LabError>) -> Result<Vec<Outcome>, LabError> {
        let one = |(place, size): (usize, &u64)| match (self.omitted)(place) {
            Some(reason) => Ok(Outcome::LeftOut(reason)),
            None => match of(*size) {
                Err(error) if self.contender.peer.is_some() && !matches!(error, LabError::Interrupted) => {
                    Ok(Outcome::Missing(error.to_string()))
                }
                other => other,
            },
        };
        sizes.iter().enumerate().map(one).collect()
    }

    fn stream(&self, size: u64, readers: usize, seconds: f64) -> Result<Outcome, LabError> {
        let options = self.options(Measurement::Throughput, size, (readers, seconds), Wait::Listener);
        let own = ["--readers".to_owned(), readers.to_string()];
        let figures: ThroughputFigures = self.perf("throughput", &options, own.into())?;
        if figures.lost > 0 {
            // A rate with losses is another measurement.
            return Ok(Outcome::Lost { lost: figures.lost, due: figures.sent * figures.readers });
        }
        Ok(Outcome::Stream(Box::new(figures)))
    }

    fn round_trips(&self, size: u64, wait: Wait, seconds: f64) -> Result<Outcome, LabError> {
        let options = self.options(Measurement::Latency, size, (1, seconds), wait);
        let own = ["--wait".to_owned(), wait.name().to_owned()];
        self.perf("latency", &options, own.into()).map(Outcome::RoundTrips)
    }

    fn options(
        &self,
        measurement: Measurement,
        size: u64,
        (readers, seconds): (usize, f64),
        wait: Wait,
    ) -> PerfOptions<Setup> {
        let (writer_cpu, reader_cpus) = self.cpus();
        PerfOptions {
            measurement,
            size,
            limit: Limit::Time(Duration::from_secs_f64(seconds)),
            reliability: ReliabilitySetting::Reliable,
            history: None,
            readers,
            reader: 0,
            writer_cpu,
            reader_cpus,
            setup: Setup { wait, ..self.contender.setup() },
        }
    }

    /// Starts the reading processes and the writing one, and returns the figures that the writing one has at the end.
    fn perf<T: serde::de::DeserializeOwned>(
        &self,
        measurement: &str,
        options: &PerfOptions<Setup>,
        own: Vec<String>,
    ) -> Result<T, LabError> {
        let peer = self.peer(&[measurement])?;
        let (size, time) = (options.size.to_string(), options.limit);
        let Limit::Time(time) = time else { return Err(LabError::Here("a contest has a length".to_owned())) };
        let seconds = time.as_secs_f64().to_string();
        let further = |role: &str, cpu: Option<usize>| {
            let fixed = ["--role", role, "--size", &size, "--seconds", &seconds, "--json"].map(str::to_owned);
            let cpu = cpu.into_iter().flat_map(|cpu| ["--cpu".to_owned(), cpu.to_string()]);
            own.iter().cloned().chain(fixed).chain(cpu).collect::<Vec<String>>()
        };
        let mut readers = Vec::new();
        for number in 0..options.readers {
            let of_reader = options.of_reader(number);
            readers.push(match &peer {
                Some(words) => {
                    let place = ["--reader".to_owned(), number.to_string()];
                    let is_stream = options.measurement == Measurement::Throughput;
                    let place = place.into_iter().filter(|_| is_stream);
                    words.start(
                        &self.on(1),
                        further("sub", of_reader.reader_cpus.first().copied()).into_iter().chain(place),
                    )?
                }
                None => Supervised::start(&self.on(1), "reading process", &Order::PerfReader(of_reader))?,
            });
        }
        let mut writer = match &peer {
            Some(words) => words.start(&self.on(0), further("pub", options.writer_cpu).into_iter())?,
            None => Supervised::start(&self.on(0), "writing process", &Order::PerfWriter(options.clone()))?,
        };
        let figures = writer.hear_word(time + BEYOND, self.stop);
        // What the writer noticed is often only that a reader is gone.
        let mut death = || readers.iter_mut().find_map(|reader| reader.check_alive().err());
        match figures {
            Err(LabError::Interrupted) => Err(LabError::Interrupted),
            Err(error) => Err(death().unwrap_or(error)),
            figures => figures,
        }
    }
}

/// Time of a measurement beyond its length: start, search, end.
const BEYOND: Duration = Duration::from_secs(45);
/// Octets of a packed sample beside those of the samples in it.
const FRAME: u32 = 4_096;
/// The domain of peers; ours keep apart by a domain tag.
const PEER_DOMAIN: u32 = 150;
