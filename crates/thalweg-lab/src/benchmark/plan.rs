//! The file of a benchmark.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cells::{BenchmarkCell, cells_of};
use super::contender::{ContenderPlan, LinkTable};
use crate::nearest::nearest;
use crate::peers::PeerProgram;
use crate::scenario::{Relation, ScenarioError};
use crate::station::{Sending, TokenBucket, Wait};
use crate::study::distinct;

/// A benchmark that can be run as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// `thalweg.benchmark/1`.
    pub schema: String,
    /// Its name: letters, digits and `-`.
    pub name: String,
    /// Decides the order of the runs.
    #[serde(default = "one")]
    pub seed: u64,
    /// Runs of each contender at each piece of work; verdicts need eight, and more with many of them.
    pub runs: u32,
    /// Attempts at a run on a machine that is not quiet; the last one counts and is marked. Default 1.
    #[serde(default = "one")]
    pub attempts: u32,
    /// What the results are to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What lies between the two hosts of work that is done over a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkTable>,
    /// Who takes part. Default Thalweg with its defaults, called `Thalweg`.
    #[serde(default = "ourselves", rename = "contender")]
    pub contenders: Vec<ContenderPlan>,
    /// What they do.
    #[serde(rename = "work")]
    pub works: Vec<WorkPlan>,
    /// Every combination, made from the others.
    #[serde(skip)]
    pub(crate) cells: Vec<BenchmarkCell>,
}

/// Something that contenders do in turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkPlan {
    /// Headline of its section.
    pub name: String,
    /// What is measured there, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Names of those who do it; the first one is what the others are compared with. Default all.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// Where its ends run.
    #[serde(default)]
    pub place: Place,
    /// What it is.
    pub task: WorkTask,
    /// Ratios that are expected.
    #[serde(default, rename = "expect", skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<RatioExpectation>,
}

/// Where the two ends run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Wherever the system chooses.
    #[default]
    Free,
    /// All on CPU 0.
    OneCore,
    /// Writers on CPU 0, readers on the others in turn.
    Cores,
    /// As [`Place::Cores`], on two network namespaces joined by the benchmark's link.
    Link,
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum WorkTask {
    /// Bursts: the time from the first write to the echo of a reader that has all samples.
    Bursts {
        /// Samples and payload bytes of each, kind by kind.
        of: Vec<(u32, u32)>,
        /// Bursts of each kind in a run at least, beside the first, which does not count.
        each: u32,
        /// Further bursts follow until those of a run took so many seconds in all, each kind its part of them. Default 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        lasting_s: f64,
    },
    /// A stream: samples a second one way, and the processor time of each at both ends.
    Stream {
        /// Payload bytes of a sample, one stream after the other.
        bytes: Vec<u64>,
        /// Reading processes.
        #[serde(default = "one")]
        readers: usize,
        /// Length of each.
        seconds: f64,
    },
    /// Round trips.
    RoundTrips {
        /// Payload bytes of a sample, one series after the other.
        bytes: Vec<u64>,
        /// How both ends wait for data.
        wait: Wait,
        /// Length of each series.
        seconds: f64,
    },
    /// A topic of 100 Hz in a hurry, without and with transfers beside it, between the same two processes.
    Beside {
        /// Samples of a transfer, and payload bytes of each.
        transfer: (u32, u32),
        /// Time without transfers.
        quiet_s: f64,
        /// Transfers follow each other for so long; one is made in any case.
        loaded_s: f64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// An expected ratio between contenders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioExpectation {
    /// The figure, by the first words of a quantity's name: `burst`, `samples`, `round trip`, `writer`, `reader`. Default the first that the
    /// work has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub figure: String,
    /// Whose figure.
    pub of: String,
    /// Divided by the best of these.
    pub by: Vec<String>,
    /// The bound, such as `<= 0.5`.
    pub ratio: String,
}

impl Benchmark {
    /// The only layout there is so far.
    pub const SCHEMA: &'static str = "thalweg.benchmark/1";

    /// A benchmark of these pieces of work.
    pub fn new(
        name: &str,
        (seed, runs): (u64, u32),
        contenders: Vec<ContenderPlan>,
        works: Vec<WorkPlan>,
    ) -> Benchmark {
        let schema = Benchmark::SCHEMA.to_owned();
        let (attempts, notes, link, name) = (1, Vec::new(), None, name.to_owned());
        let mut out =
            Benchmark { schema, name, seed, runs, attempts, notes, link, contenders, works, cells: Vec::new() };
        out.cells = cells_of(&out);
        out
    }

    /// Reads a benchmark's text; `file` stands in errors.
    ///
    /// # Errors
    /// It is no TOML, has unknown keys or names, or values that cannot be measured; the text names the place.
    pub fn parse(file: &str, text: &str) -> Result<Benchmark, ScenarioError> {
        let mut out: Benchmark = toml::from_str(text).map_err(|wrong: toml::de::Error| {
            ScenarioError::at(file, text, wrong.span().map_or(0, |span| span.start), wrong.message().to_owned())
        })?;
        let all: Vec<String> = out.contenders.iter().map(|one| one.name.clone()).collect();
        out.works
            .iter_mut()
            .filter(|work| work.contenders.is_empty())
            .for_each(|work| work.contenders.clone_from(&all));
        match out.fault() {
            Some((word, message)) => {
                let at = text.find(&format!("\"{word}\"")).unwrap_or(0);
                Err(ScenarioError::at(file, text, at, message))
            }
            None => {
                out.cells = cells_of(&out);
                Ok(out)
            }
        }
    }

    /// A word of the file, and what is wrong with it.
    fn fault(&self) -> Option<(String, String)> {
        let of = |word: &str, message: String| Some((word.to_owned(), message));
        if self.schema != Benchmark::SCHEMA {
            return of(&self.schema, format!("the schema has to be {:?}", Benchmark::SCHEMA));
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if self.name.is_empty() || !self.name.chars().all(is_letter) {
            return of(&self.name, "a name has letters, digits and -".to_owned());
        }
        if !(1..=1_000).contains(&self.runs) || !(1..=10).contains(&self.attempts) {
            return of(&self.name, "runs are 1 to 1000, attempts 1 to 10".to_owned());
        }
        if let Some(twice) = first_twice(self.contenders.iter().map(|one| one.name.as_str())) {
            return of(twice, "two contenders have this name".to_owned());
        }
        if let Some(twice) = first_twice(self.works.iter().map(|one| one.name.as_str())) {
            return of(twice, "two pieces of work have this name".to_owned());
        }
        let link = self.link.unwrap_or_default();
        if link.rate_mbit.is_some_and(|rate| !(0.001..=100_000.0).contains(&rate)) {
            return of(&self.name, "rate_mbit of a link is 0.001 to 100000".to_owned());
        }
        if !(0.0..100.0).contains(&link.loss_pct) || !(0.0..=60_000.0).contains(&link.delay_ms) {
            return of(&self.name, "of a link loss_pct is 0 to 100 and delay_ms 0 to 60000".to_owned());
        }
        self.contenders
            .iter()
            .find_map(ContenderPlan::fault)
            .or_else(|| self.works.iter().find_map(|work| self.fault_of(work)))
    }

    fn fault_of(&self, work: &WorkPlan) -> Option<(String, String)> {
        let of = |word: &str, message: String| Some((word.to_owned(), message));
        let expected = work.expectations.iter().flat_map(|one| one.by.iter().chain([&one.of]));
        for name in work.contenders.iter().chain(expected) {
            let Some(contender) = self.contender(name) else {
                let known: Vec<&str> = self.contenders.iter().map(|one| one.name.as_str()).collect();
                let guess = nearest(name, known.iter().copied())
                    .map(|near| format!("; did you mean {near:?}?"))
                    .unwrap_or_default();
                return of(name, format!("no contender has this name{guess}"));
            };
            if !work.contenders.contains(name) {
                return of(name, format!("it is expected to take part in {:?} and does not", work.name));
            }
            if matches!(work.task, WorkTask::Beside { .. }) && contender.peer.is_some() {
                return of(&work.name, format!("{name} sends one topic at a time: leave it out here"));
            }
            let is_held_up = contender.wrap_bytes > 0 || contender.pause_us > 0;
            if !matches!(work.task, WorkTask::Bursts { .. }) && is_held_up {
                return of(&work.name, format!("wrap_bytes and pause_us of {name} are for bursts"));
            }
        }
        if work.place == Place::Link && self.link.is_none() {
            return of(&work.name, "its place is a link: add the table [link]".to_owned());
        }
        for expected in &work.expectations {
            if let Err(message) = Relation::bound(&expected.ratio) {
                return of(&expected.ratio, message);
            }
        }
        work.task.fault().and_then(|message| of(&work.name, message))
    }

    pub(crate) fn contender(&self, name: &str) -> Option<&ContenderPlan> {
        self.contenders.iter().find(|one| one.name == name)
    }

    pub(crate) fn work(&self, name: &str) -> Option<&WorkPlan> {
        self.works.iter().find(|one| one.name == name)
    }

    /// Comparisons in one quantity, which the number of runs has to carry.
    pub(crate) fn comparisons(&self) -> usize {
        let of = |is_loaded: bool| {
            let compared = self.cells.iter().filter(|cell| cell.baseline.is_some());
            compared.filter(|cell| cell.deed.is_loaded().is_some() == is_loaded).count()
        };
        of(false).max(of(true)).max(1)
    }

    /// The same without the work over a link, for which this process may not make hosts, and the names of that work.
    pub fn without_link(mut self) -> (Benchmark, Vec<String>) {
        let (linked, here): (Vec<_>, Vec<_>) = self.works.into_iter().partition(|work| work.place == Place::Link);
        self.works = here;
        self.notes.extend(linked.iter().map(|work| format!("Left out: {}, whose link needs root.", work.name)));
        self.cells = cells_of(&self);
        (self, linked.into_iter().map(|work| work.name).collect())
    }

    /// The same without the peers whose programs are not there, and their names.
    pub fn of_those_there(mut self, is_there: impl Fn(PeerProgram) -> bool) -> (Benchmark, Vec<PeerProgram>) {
        let absent = |one: &ContenderPlan| one.peer.filter(|peer| !is_there(*peer));
        let gone: Vec<String> =
            self.contenders.iter().filter(|one| absent(one).is_some()).map(|one| one.name.clone()).collect();
        let missing = distinct(self.contenders.iter().filter_map(absent));
        self.contenders.retain(|one| !gone.contains(&one.name));
        for work in &mut self.works {
            work.contenders.retain(|name| !gone.contains(name));
            work.expectations.iter_mut().for_each(|expected| expected.by.retain(|name| !gone.contains(name)));
            work.expectations.retain(|expected| !gone.contains(&expected.of) && !expected.by.is_empty());
        }
        self.works.retain(|work| !work.contenders.is_empty());
        self.notes.extend(missing.iter().map(|peer| format!("Left out: {peer}, whose program is not there.")));
        self.cells = cells_of(&self);
        (self, missing)
    }

    /// The same beside the program of another build of Thalweg, which each of its contenders is compared with; peers are left out.
    pub fn against(mut self, program: &Path) -> Benchmark {
        self.contenders.retain(|one| one.peer.is_none());
        let other = |one: &ContenderPlan| ContenderPlan {
            name: format!("{}, other build", one.name),
            program: Some(program.to_owned()),
            ..one.clone()
        };
        let others: Vec<ContenderPlan> = self.contenders.iter().map(other).collect();
        let own: Vec<String> = self.contenders.iter().map(|one| one.name.clone()).collect();
        for work in &mut self.works {
            work.contenders.retain(|name| own.contains(name));
            work.contenders =
                work.contenders.iter().flat_map(|name| [format!("{name}, other build"), name.clone()]).collect();
            work.expectations.clear();
        }
        for one in &mut self.contenders {
            one.against = Some(format!("{}, other build", one.name));
        }
        self.contenders.extend(others);
        self.works.retain(|work| !work.contenders.is_empty());
        self.cells = cells_of(&self);
        self
    }

    /// How long it takes on a quiet machine, slow contenders not counted.
    pub fn expected(&self) -> Duration {
        let of = |work: &WorkPlan| work.task.expected(self, work) * self.runs;
        self.works.iter().map(of).sum()
    }
}

impl WorkTask {
    /// Why it cannot be done.
    fn fault(&self) -> Option<String> {
        let is_long = |seconds: f64| (0.1..=3_600.0).contains(&seconds);
        let message = match self {
            WorkTask::Bursts { of, each, .. } if of.is_empty() || of.iter().any(|(n, _)| *n == 0) || *each == 0 => {
                "bursts need a kind, samples in each, and a burst of each"
            }
            WorkTask::Stream { bytes, .. } | WorkTask::RoundTrips { bytes, .. } if bytes.is_empty() => {
                "`bytes` is empty"
            }
            WorkTask::Stream { readers, .. } if !(1..=READERS_MAX).contains(readers) => "a stream has 1 to 120 readers",
            WorkTask::Bursts { of, .. } if of.iter().any(|load| is_huge(*load)) => HUGE,
            WorkTask::Bursts { lasting_s, .. } if !(0.0..=60.0).contains(lasting_s) => "lasting_s is 0 to 60",
            WorkTask::Beside { transfer, .. } if is_huge(*transfer) => HUGE,
            WorkTask::Stream { seconds, .. } | WorkTask::RoundTrips { seconds, .. } if !is_long(*seconds) => {
                "seconds are 0.1 to 3600"
            }
            WorkTask::Beside { quiet_s, .. } if !is_long(*quiet_s) => "quiet_s is 0.1 to 3600",
            WorkTask::Beside { loaded_s, .. } if !(0.0..=3_600.0).contains(loaded_s) => "loaded_s is 0 to 3600",
            WorkTask::Beside { transfer: (0, _) | (_, 0), .. } => "a transfer needs samples and bytes",
            _ => return None,
        };
        Some(message.to_owned())
    }

    /// How long one round of all contenders takes.
    fn expected(&self, plan: &Benchmark, work: &WorkPlan) -> Duration {
        let one = |name: &String| {
            plan.contender(name)
                .map_or(Duration::ZERO, |contender| self.duration(contender, plan.link.unwrap_or_default()))
        };
        work.contenders.iter().map(one).sum()
    }

    /// How long a run of `contender` takes.
    pub(super) fn duration(&self, contender: &ContenderPlan, link: LinkTable) -> Duration {
        let line = link.rate_mbit.map_or(f64::INFINITY, |mbit| mbit * 125_000.0).min(BYTES_A_SECOND);
        let seconds = match self {
            WorkTask::Bursts { of, each, lasting_s } => {
                let burst = |(n, bytes): &(u32, u32)| f64::from(*n) * (SECONDS_A_SAMPLE + f64::from(*bytes) / line);
                let kinds = of.len() as f64;
                START_S + of.iter().map(|load| (f64::from(each + 1) * burst(load)).max(lasting_s / kinds)).sum::<f64>()
            }
            WorkTask::Stream { bytes, seconds, .. } | WorkTask::RoundTrips { bytes, seconds, .. } => {
                (START_S + seconds) * bytes.len() as f64
            }
            WorkTask::Beside { transfer: (n, bytes), quiet_s, loaded_s } => {
                let granted = contender.flow_controller.as_ref().and_then(TokenBucket::bytes_per_second);
                let one = f64::from(*n) * f64::from(*bytes) / granted.unwrap_or(line).min(line);
                // One more transfer does not count.
                START_S + quiet_s + one + (loaded_s / one).ceil().max(1.0) * one
            }
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

fn first_twice<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    names
        .clone()
        .enumerate()
        .find(|(place, name)| names.clone().take(*place).any(|other| other == *name))
        .map(|(_, name)| name)
}

fn ourselves() -> Vec<ContenderPlan> {
    vec![ContenderPlan::ours("Thalweg", Sending::default())]
}

fn one<T: From<u8>>() -> T {
    T::from(1)
}

/// Whether so many samples of such a size are more than processes should be asked for.
fn is_huge((samples, bytes): (u32, u32)) -> bool {
    samples > SAMPLES_MAX || u64::from(samples) * u64::from(bytes) > BYTES_MAX
}

const HUGE: &str = "a burst or transfer has at most 10,000,000 samples and 4 GiB";
const SAMPLES_MAX: u32 = 10_000_000;
const BYTES_MAX: u64 = 4 << 30;
/// As many as a domain has room for on one host.
const READERS_MAX: usize = 120;
/// Start of the processes until they have met, and their end.
const START_S: f64 = 1.2;
/// Of a contender in the middle.
const SECONDS_A_SAMPLE: f64 = 4e-6;
/// Of a contender in the middle, on loopback.
const BYTES_A_SECOND: f64 = 1e9;
