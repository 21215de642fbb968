//! The contestants, and one run of a program.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::rows::{ComparisonRow, Place, What};
use super::table::median;
use crate::Outcome;
use crate::netns::Host;
use crate::peers::{self, Burst};
use crate::workspace::{cargo, output, output_within, run as run_command, target};

/// A run that takes longer hangs: programs start, meet and measure within seconds.
const RUN_MAX: Duration = Duration::from_secs(60);

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Thalweg,
    Cyclone,
    FastDds,
    Zenoh,
    /// Plain sockets: the floor.
    Raw,
}

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Who::Thalweg => "Thalweg",
            Who::Cyclone => "Cyclone DDS",
            Who::FastDds => "Fast DDS",
            Who::Zenoh => "Zenoh",
            Who::Raw => "UDP sockets",
        }
    }

    /// Builds the program and returns where it is.
    fn build(self) -> Outcome<PathBuf> {
        match self {
            Who::Thalweg => {
                run_command(&mut cargo(&["build", "--release", "--package", "thalweg-cli"]))?;
                Ok(target().join("release/thalweg"))
            }
            Who::Cyclone => peers::CYCLONE.build(),
            Who::FastDds => peers::FASTDDS.build(),
            Who::Zenoh => peers::ZENOH.build(),
            Who::Raw => peers::RAW.build(),
        }
    }
}

/// A program in one of its settings: a method of Thalweg, a profile of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub who: Who,
    pub setting: &'static str,
}

impl Entry {
    pub const fn thalweg(method: &'static str) -> Entry {
        Entry { who: Who::Thalweg, setting: method }
    }

    pub const fn cyclone(profile: &'static str) -> Entry {
        Entry { who: Who::Cyclone, setting: profile }
    }

    pub const fn fastdds(profile: &'static str) -> Entry {
        Entry { who: Who::FastDds, setting: profile }
    }

    pub const fn zenoh(profile: &'static str) -> Entry {
        Entry { who: Who::Zenoh, setting: profile }
    }

    pub const fn raw(profile: &'static str) -> Entry {
        Entry { who: Who::Raw, setting: profile }
    }

    pub fn name(self) -> String {
        format!("{} {}", self.who.name(), self.setting)
    }
}

/// A program that is there.
pub struct Contestant {
    pub who: Who,
    program: PathBuf,
    /// Its own version text.
    pub version: String,
}

/// The place of runs.
pub struct Testbed {
    /// A host with a loopback interface alone; without one, runs share this machine's interfaces.
    pub alone: Option<Host>,
    /// Two hosts joined by a link.
    pub link: Option<(Host, Host)>,
    /// Duration of a stream or a series of round trips, in seconds.
    pub seconds: &'static str,
}

impl Contestant {
    /// Builds the program.
    pub fn prepare(who: Who) -> Outcome<Contestant> {
        Contestant::new(who, who.build()?)
    }

    /// A program that was built before.
    pub fn new(who: Who, program: PathBuf) -> Outcome<Contestant> {
        let version = output(Command::new(&program).arg("--version"))?.trim().to_owned();
        Ok(Contestant { who, program, version })
    }

    /// One run of both ends of a row with a setting: the figures by the keys that the programs print.
    pub fn measure(&self, row: &ComparisonRow, setting: &str, stage: &Testbed) -> Outcome<Value> {
        match (row.what, row.place) {
            (What::Burst { count }, _) => self.burst(row, count, setting, stage),
            (_, Place::Link) => self.stream_over_link(row, setting, stage),
            _ => {
                let mut arguments = self.arguments(row, setting, stage);
                arguments.extend(["--role", "both", "--cpu", &cores(row.place)].map(str::to_owned));
                let mut command = self.command(&arguments, stage.alone.as_ref());
                figures(&output_within(&mut command, RUN_MAX)?)
            }
        }
    }

    /// Options of both ends of a continuous measurement.
    fn arguments(&self, row: &ComparisonRow, setting: &str, stage: &Testbed) -> Vec<String> {
        let (measurement, particular) = match row.what {
            What::Latency { wait } => ("latency", ["--wait".to_owned(), wait.to_owned()]),
            What::Throughput { readers } => ("throughput", ["--readers".to_owned(), readers.to_string()]),
            What::Burst { .. } => ("burst", ["--max-size".to_owned(), row.size.to_string()]),
        };
        let mut arguments = vec![measurement.to_owned()];
        arguments.extend(particular);
        if !matches!(row.what, What::Burst { .. }) {
            let size = row.size.to_string();
            arguments.extend(["--size", &size, "--seconds", stage.seconds, "--json"].map(str::to_owned));
        }
        if self.who == Who::Thalweg {
            // No other participant on this machine takes part by accident.
            let tag = format!("compare-{}", std::process::id());
            arguments.insert(0, "perf".to_owned());
            arguments.extend(["--method", setting, "--domain-tag", &tag].map(str::to_owned));
        } else {
            arguments.extend(["--profile", setting].map(str::to_owned));
        }
        arguments
    }

    fn command(&self, arguments: &[String], host: Option<&Host>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        match host {
            Some(host) => host.command(&command),
            None => command,
        }
    }

    /// The median of several bursts of one pair of processes.
    fn burst(&self, row: &ComparisonRow, count: usize, setting: &str, stage: &Testbed) -> Outcome<Value> {
        const RUNS: usize = 5;
        let end = |role: &str, core: &str| {
            let mut arguments = self.arguments(row, setting, stage);
            arguments.extend(["--role", role, "--cpu", core].map(str::to_owned));
            Burst::start(self.command(&arguments, stage.alone.as_ref()))
        };
        let _subscriber = end("sub", "1")?;
        let mut publisher = end("pub", "0")?;
        publisher.wait_until_ready()?;
        // The first run finds cold caches.
        let mut runs = publisher.ask(count, row.size, RUNS + 1)?;
        runs.remove(0);
        Ok(json!({ "burst_ms": median(&runs), "runs_ms": runs }))
    }

    fn stream_over_link(&self, row: &ComparisonRow, setting: &str, stage: &Testbed) -> Outcome<Value> {
        let (left, right) = stage.link.as_ref().ok_or("there are no hosts with a link")?;
        let end = |role: &str, cores: &str, host: &Host| {
            let mut arguments = self.arguments(row, setting, stage);
            arguments.extend(["--role", role, "--cpu", cores, "--interface", Host::LINK].map(str::to_owned));
            self.command(&arguments, Some(host))
        };
        let mut subscriber = end("sub", "1,1", right);
        let subscriber = subscriber.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut subscriber = subscriber.map_err(|error| format!("{}: {error}", self.program.display()))?;
        if let Err(reason) = output_within(&mut end("pub", "0,0", left), RUN_MAX) {
            // Gone already, or about to be; both calls then fail harmlessly.
            let _ = subscriber.kill();
            let _ = subscriber.wait();
            return Err(reason);
        }
        let said = subscriber.wait_with_output().map_err(|error| error.to_string())?;
        if !said.status.success() {
            return Err(format!("the subscriber failed: {}", String::from_utf8_lossy(&said.stderr).trim()));
        }
        figures(&String::from_utf8_lossy(&said.stdout))
    }
}

/// The value of `--cpu`.
fn cores(place: Place) -> String {
    match place {
        Place::OneCore => "0,0".to_owned(),
        Place::TwoCores | Place::Link => "0,1".to_owned(),
        Place::AllCores => {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            (0..count.max(2)).map(|core| core.to_string()).collect::<Vec<_>>().join(",")
        }
    }
}

/// The last object that a program printed. Samples that got lost make it an error: a rate with losses is another measurement.
pub fn figures(text: &str) -> Outcome<Value> {
    let line =
        text.lines().rev().find(|line| line.starts_with('{')).ok_or_else(|| format!("no figures in {text:?}"))?;
    let figures: Value = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
    match figures["lost"].as_u64() {
        None | Some(0) => Ok(figures),
        Some(lost) => Err(format!("{lost} samples of {} lost: the run does not count", figures["sent"])),
    }
}
