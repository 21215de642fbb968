//! The plan: the paper's counts, and cells beyond them.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::crossover::{CALIBRATED, Prediction};
use super::groups::Group;
use crate::parts::{Part, PartResult};
use crate::peers::{CellMiddleware, PeerProfile, PeerProgram};
use crate::study::{CellResult, THROUGHPUT};

/// The extent of the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper2Plan {
    /// Numbers of publishers, and of as many subscribers.
    pub counts: Vec<u32>,
    /// Those with which as much is offered as the machine carries, or more.
    pub overloaded: Vec<u32>,
    /// Those for which lengths and links vary.
    pub varied: Vec<u32>,
    /// Those with the paper's own procedure, a closed loop.
    pub closed: Vec<u32>,
    /// Those measured over a switch with IGMP snooping too.
    pub snooping: Vec<u32>,
    /// Whether the number of readers from which on a group is cheaper is predicted and looked for.
    pub crossover: bool,
    /// Other lengths than the paper's.
    pub payload_bytes: Vec<u32>,
    /// Publishers and subscribers of the work that the paper cites, and whether that is best effort.
    pub shapes: Vec<(u32, u32, bool)>,
    /// Those of the closed loops and of the open schedules of each number of participants, beside Thalweg.
    pub peers: Vec<CellMiddleware>,
    /// The most publishers, and as many subscribers, with which they take part.
    pub peers_up_to: u32,
    /// How often and how long each cell is measured.
    pub runs: RunPlan,
    /// Names of the parts that are measured; none means all.
    pub only: Vec<String>,
    /// Decides the order of the runs.
    pub seed: u64,
    /// What the paper has and this plan has not, with the reason.
    pub omitted: Vec<String>,
    /// The command that asks for this plan.
    pub command: String,
}

/// How often and how long each cell is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunPlan {
    /// Runs of each cell.
    pub count: u32,
    /// Attempts at each run on a machine that is not quiet.
    pub attempts: u32,
    /// Sent before and not counted, in seconds.
    pub warm_up_s: f64,
    /// Length of a measurement in seconds.
    pub seconds: u32,
    /// Length of a measurement of a closed loop in seconds.
    pub closed_seconds: u32,
}

/// The differences between the parts.
#[derive(Clone)]
struct Shape {
    name: &'static str,
    title: &'static str,
    /// The whole of `[[matrix]]` but for the destinations.
    matrices: Vec<String>,
    seconds: u32,
    link: &'static str,
}

impl Paper2Plan {
    /// All that a machine with so many CPUs carries: some hours.
    pub fn full(seed: u64, cpus: usize) -> Paper2Plan {
        let most = COUNT_PER_CPU * cpus as u32;
        let why_not = |count: u32| {
            format!(
                "{count} publishers and {count} subscribers: nobody has tried {} participants on {cpus} CPUs; {most} of each are the \
                 most here, and --counts asks for more",
                2 * count
            )
        };
        let (counts, omitted): (Vec<u32>, Vec<u32>) = PAPER_COUNTS.into_iter().partition(|count| *count <= most);
        Paper2Plan {
            overloaded: counts.iter().copied().filter(|count| *count > 1).collect(),
            closed: counts.clone(),
            crossover: true,
            only: Vec::new(),
            snooping: counts.iter().copied().filter(|count| *count <= 10).collect(),
            counts,
            varied: vec![3, 10],
            payload_bytes: vec![1_024, 8_192, 65_536],
            shapes: CITED_SHAPES.to_vec(),
            peers: Vec::new(),
            peers_up_to: u32::MAX,
            runs: RunPlan { count: 12, attempts: 4, warm_up_s: 2.0, seconds: 20, closed_seconds: 10 },
            seed,
            omitted: omitted.into_iter().map(why_not).chain([ONE_PUBLISHER.to_owned()]).collect(),
            command: format!("thalweg lab run paper2 --full --seed {seed}"),
        }
    }

    /// Every table and figure of the paper in less than two hours: short runs, as many as verdicts need, and fewer numbers of
    /// participants where the paper has none.
    pub fn new(seed: u64, cpus: usize) -> Paper2Plan {
        let full = Paper2Plan::full(seed, cpus);
        let shorter = [
            "open schedules with more than 25 publishers and 25 subscribers, at the limit of the machine with other numbers than 3 and 10, and \
             with a single length at 3 publishers and 3 subscribers: --full has them"
                .to_owned(),
            format!("peers with more than {PEER_COUNT_MAX} publishers and {PEER_COUNT_MAX} subscribers: --full has them"),
        ];
        Paper2Plan {
            overloaded: vec![3, 10],
            varied: vec![10],
            counts: full.counts.iter().copied().filter(|count| *count <= OPEN_COUNT_MAX).collect(),
            snooping: vec![3, 10],
            peers_up_to: PEER_COUNT_MAX,
            runs: SHORT_RUNS,
            omitted: full.omitted.into_iter().chain(shorter).collect(),
            command: format!("thalweg lab run paper2 --seed {seed}"),
            ..full
        }
    }

    /// The cells that fit into half an hour.
    pub fn quick(seed: u64, cpus: usize) -> Paper2Plan {
        let full = Paper2Plan::full(seed, cpus);
        let (counts, longer): (Vec<u32>, Vec<u32>) = full.counts.iter().partition(|count| **count <= OPEN_COUNT_MAX);
        let why_not =
            |count: u32| format!("{count} publishers and {count} subscribers: not in half an hour; leave out --quick");
        let procedure = "the paper's procedure with other numbers than 3 and 10, a switch with IGMP snooping, the predicted crossover, and the shapes of the \
                         work that it cites: not in half an hour; leave out --quick";
        Paper2Plan {
            counts,
            overloaded: vec![10],
            closed: vec![3, 10],
            crossover: false,
            snooping: Vec::new(),
            varied: vec![10],
            payload_bytes: vec![8_192],
            shapes: Vec::new(),
            peers_up_to: PEER_COUNT_MAX,
            runs: RunPlan { closed_seconds: 3, ..SHORT_RUNS },
            omitted: longer.into_iter().map(why_not).chain(full.omitted).chain([procedure.to_owned()]).collect(),
            command: format!("thalweg lab run paper2 --quick --seed {seed}"),
            ..full
        }
    }

    /// Measures these numbers and no others, at the limit of the machine too from two of each on; the other parts keep theirs of
    /// them.
    pub fn with_counts(mut self, counts: &[u32]) -> Paper2Plan {
        self.varied.retain(|count| counts.contains(count));
        self.overloaded = counts.iter().copied().filter(|count| *count > 1).collect();
        self.closed = counts.to_vec();
        self.crossover = false;
        self.peers_up_to = u32::MAX;
        self.snooping.retain(|count| counts.contains(count));
        self.shapes.clear();
        let mut omitted: Vec<u32> = PAPER_COUNTS.to_vec();
        omitted.retain(|count| !counts.contains(count));
        let not_asked = |count: u32| format!("{count} publishers and {count} subscribers: not asked for");
        self.omitted = omitted.into_iter().map(not_asked).chain([ONE_PUBLISHER.to_owned()]).collect();
        self.counts = counts.to_vec();
        let listed: Vec<String> = counts.iter().map(u32::to_string).collect();
        self.command += &format!(" --counts {}", listed.join(","));
        self
    }

    /// Measures these parts and no others, with the numbers of the longer forms where this form has none of them.
    pub fn with_parts(mut self, wanted: &[String]) -> Paper2Plan {
        self.only = wanted.to_vec();
        self.crossover = self.has(CROSSOVER);
        if self.shapes.is_empty() {
            self.shapes = CITED_SHAPES.to_vec();
        }
        if self.snooping.is_empty() {
            self.snooping = vec![3, 10];
        }
        let others = PART_NAMES.iter().filter(|name| !self.has(name));
        self.omitted = others.map(|name| format!("{name}: not asked for")).collect();
        self.command += &format!(" --parts {}", wanted.join(","));
        self
    }

    fn has(&self, part: &str) -> bool {
        let name = if part == CALIBRATION { CROSSOVER } else { part };
        self.only.is_empty() || self.only.iter().any(|one| one == name)
    }

    /// Lets these take part, which must be told where to send to.
    pub fn with_peers(mut self, peers: &[PeerProgram]) -> Paper2Plan {
        self.peers = peers.iter().map(|peer| CellMiddleware::Peer(*peer, PeerProfile::Tuned)).collect();
        let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        self.command += &format!(" --peers {}", names.join(","));
        self
    }

    /// Makes so many runs of each cell.
    pub fn with_runs(mut self, runs: u32) -> Paper2Plan {
        self.runs.count = runs;
        self.command += &format!(" --runs {runs}");
        self
    }

    /// The parts in the order of their runs, but for the one that `same_rate` makes.
    pub fn parts(&self) -> Vec<Part> {
        let shape = |name, title, matrices, seconds| Shape { name, title, matrices, seconds, link: "" };
        let (counts, varied) = (pairs(&self.counts), pairs(&self.varied));
        let shapes = [
            shape(
                PARTICIPANTS,
                "One to many participants",
                open_schedules(&counts, &[PAPER_BYTES], DELIVERIES_HZ),
                self.runs.seconds,
            ),
            shape(
                OVERLOAD,
                "At the limit of the machine",
                open_schedules(&pairs(&self.overloaded), &[PAPER_BYTES], OVERLOAD_HZ),
                // A sum needs no tail, and every sample is kept.
                self.runs.seconds.min(OVERLOAD_SECONDS_MAX),
            ),
            shape(PERFTEST, "The paper's own procedure", closed_loops(&self.closed), self.runs.closed_seconds),
            shape(
                LENGTHS,
                "Other data lengths",
                open_schedules(&varied, &self.payload_bytes, DELIVERIES_HZ / 10),
                self.runs.seconds,
            ),
            Shape {
                link: "\n[link]\nrate_mbit = 10\n",
                ..shape(
                    SLOW_LINK,
                    "Links of 10 Mbit/s",
                    open_schedules(&varied, &[PAPER_BYTES], DELIVERIES_HZ),
                    self.runs.seconds,
                )
            },
            Shape {
                link: "\n[link]\nsnooping = true\n",
                ..shape(
                    SNOOPING,
                    "A switch with IGMP snooping",
                    open_schedules(&pairs(&self.snooping), &[PAPER_BYTES], DELIVERIES_HZ),
                    self.runs.seconds,
                )
            },
            shape(SHAPES, "Shapes of the work that the paper cites", self.cited_shapes(), self.runs.seconds),
        ];
        let calibration = self.readers(CALIBRATION, "One publisher and few or many readers", &CALIBRATED);
        let is_measured = |shape: &Shape| !shape.matrices.is_empty() && self.has(shape.name);
        let shapes = shapes.into_iter().chain(self.crossover.then_some(calibration));
        shapes.filter(is_measured).map(|shape| self.part(&shape)).collect()
    }

    /// An open schedule at the rates that closed loops reached: the latency of every sample where those told one in so many. Nothing where
    /// no closed loop was measured that reached a rate of [`SCHEDULE_HZ`].
    pub(super) fn same_rate(&self, perftest: &PartResult) -> Option<Part> {
        let groups: Vec<Group<'_>> = perftest.groups().into_iter().filter(Group::is_ours).collect();
        let matrices = groups.iter().flat_map(|group| {
            let of_way = |cell: &&CellResult| {
                let rate_hz = reached_hz(cell).filter(|rate_hz| SCHEDULE_HZ.contains(rate_hz))?;
                let pace = format!("rate_hz = {rate_hz}");
                let endpoints = [(cell.cell.publishers, cell.cell.subscribers)];
                Some(format!(
                    "{}destination = \"{}\"\n",
                    matrix(&endpoints, &[PAPER_BYTES], &pace),
                    cell.cell.destination
                ))
            };
            group.ways().into_iter().filter_map(move |cell| of_way(&cell)).collect::<Vec<_>>()
        });
        let (name, title) = (SAME_RATE, SAME_RATE_TITLE);
        let seconds = self.runs.seconds.min(OVERLOAD_SECONDS_MAX);
        let shape = Shape { name, title, matrices: matrices.collect(), seconds, link: "" };
        (!shape.matrices.is_empty()).then(|| self.part_with(&shape, ""))
    }

    /// One publisher with numbers of readers about the one at which the ways are predicted to cost the same; nothing where the calibration
    /// foretells nothing.
    pub(super) fn crossover(&self, calibration: &PartResult) -> Option<Part> {
        let readers = Prediction::of(calibration)?.around();
        Some(self.part(&self.readers(CROSSOVER, "From how many readers on a group is cheaper", &readers)))
    }

    fn readers(&self, name: &'static str, title: &'static str, readers: &[u32]) -> Shape {
        let endpoints: Vec<(u32, u32)> = readers.iter().map(|readers| (1, *readers)).collect();
        let matrices = vec![matrix(&endpoints, &[PAPER_BYTES], &format!("rate_hz = {CROSSOVER_HZ}"))];
        Shape { name, title, matrices, seconds: self.runs.seconds.min(CROSSOVER_SECONDS_MAX), link: "" }
    }

    /// How long the parts take that follow from the results of others.
    pub fn later_duration(&self) -> Duration {
        let run = |seconds: u32| f64::from(seconds) + self.runs.warm_up_s + OVERHEAD_S;
        let same_rate = run(self.runs.seconds.min(OVERLOAD_SECONDS_MAX)) * f64::from(SAME_RATE_RUNS) * 2.0;
        let crossover = run(self.runs.seconds.min(CROSSOVER_SECONDS_MAX)) * f64::from(self.runs.count) * 9.0;
        let crossover = if self.crossover { crossover } else { 0.0 };
        let loops = if self.has(PERFTEST) { self.closed.len() } else { 0 };
        Duration::from_secs_f64(same_rate * loops as f64 + crossover)
    }

    fn cited_shapes(&self) -> Vec<String> {
        let of = |best_effort: bool, reliability: &str| {
            let own = self.shapes.iter().filter(|shape| shape.2 == best_effort);
            let endpoints: Vec<(u32, u32)> =
                own.map(|(publishers, subscribers, _)| (*publishers, *subscribers)).collect();
            let pace = format!("deliveries_hz = {DELIVERIES_HZ}\nreliability = \"{reliability}\"");
            (!endpoints.is_empty()).then(|| matrix(&endpoints, &[PAPER_BYTES], &pace))
        };
        [of(false, "reliable"), of(true, "best-effort")].into_iter().flatten().collect()
    }

    /// What peers measure of a part.
    fn of_peers(&self, part: &str) -> Vec<String> {
        let counts = |all: &[u32]| all.iter().copied().filter(|count| *count <= self.peers_up_to).collect::<Vec<_>>();
        let matrices = match part {
            _ if self.peers.is_empty() => Vec::new(),
            PARTICIPANTS => open_schedules(&pairs(&counts(&self.counts)), &[PAPER_BYTES], DELIVERIES_HZ),
            PERFTEST => closed_loops(&counts(&self.closed)),
            _ => Vec::new(),
        };
        let names: Vec<String> = self.peers.iter().map(|peer| format!("\"{peer}\"")).collect();
        let both = format!("middleware = [{}]\ndestination = [\"unicast\", \"multicast\"]\n", names.join(", "));
        matrices.iter().map(|matrix| format!("[[matrix]]\n{matrix}{both}\n")).collect()
    }

    fn part(&self, shape: &Shape) -> Part {
        self.part_with(shape, "destination = [\"unicast\", \"multicast\", \"auto\"]\n")
    }

    fn part_with(&self, shape: &Shape, destinations: &str) -> Part {
        let mut matrices: Vec<String> =
            shape.matrices.iter().map(|matrix| format!("[[matrix]]\n{matrix}{destinations}\n")).collect();
        matrices.extend(self.of_peers(shape.name));
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"paper2-{}\"\nseed = {}\n\
             # Publishers and subscribers spread evenly, as over the paper's four virtual machines.\n\
             hosts = \"netns:4\"\n\n{}\
             [qos]\nreliability = \"reliable\"\n{}\n\
             [schedule]\nseconds = {}\nruns = {}\nwarm_up_s = {}\nin_time_ms = 100\nbehind_max_ms = 200\ndrain_s = 0.5\nmatch_s = {MATCH_S}\n\n\
             [system]\nattempts = {}\n",
            shape.name,
            self.seed,
            matrices.concat(),
            shape.link,
            shape.seconds,
            if shape.name == SAME_RATE { SAME_RATE_RUNS } else { self.runs.count },
            self.runs.warm_up_s,
            self.runs.attempts,
        );
        Part { name: shape.name, title: shape.title, text }
    }
}

/// Samples a second that a closed loop took of each publisher, the median over the runs, in hundredths as a schedule asks for them.
pub(super) fn reached_hz(cell: &CellResult) -> Option<f64> {
    let pairs = f64::from(cell.cell.publishers * cell.cell.subscribers);
    Some((THROUGHPUT.median(cell)? / pairs * 100.0).round() / 100.0)
}

/// As many subscribers as publishers.
fn pairs(counts: &[u32]) -> Vec<(u32, u32)> {
    counts.iter().map(|count| (*count, *count)).collect()
}

/// A matrix with a schedule, where there is anything to measure.
fn open_schedules(endpoints: &[(u32, u32)], payload_bytes: &[u32], deliveries_hz: u32) -> Vec<String> {
    let is_empty = endpoints.is_empty() || payload_bytes.is_empty();
    let pace = format!("deliveries_hz = {deliveries_hz}");
    if is_empty { Vec::new() } else { vec![matrix(endpoints, payload_bytes, &pace)] }
}

/// Perftest's procedure for each number of participants.
fn closed_loops(counts: &[u32]) -> Vec<String> {
    let of = |count: &u32| {
        let pace = format!("latency_count = {}", latency_count(*count));
        matrix(&[(*count, *count)], &[PAPER_BYTES], &pace)
    };
    counts.iter().map(of).collect()
}

/// A matrix without destinations.
fn matrix(endpoints: &[(u32, u32)], payload_bytes: &[u32], pace: &str) -> String {
    let endpoints: Vec<String> =
        endpoints.iter().map(|(publishers, subscribers)| format!("\"{publishers}-{subscribers}\"")).collect();
    format!("payload_bytes = {payload_bytes:?}\n{pace}\nendpoints = [{}]\n", endpoints.join(", "))
}

/// The paper's 1,000 while publisher 0 writes enough for some ten round trips a second, else fewer: the machine carries about
/// [`OVERLOAD_HZ`] deliveries, of which each of N publishers writes 1/N².
fn latency_count(count: u32) -> u32 {
    (OVERLOAD_HZ / ROUND_TRIPS_HZ / count.pow(2).max(1)).clamp(1, PAPER_LATENCY_COUNT)
}

/// Publishers, and as many subscribers.
const PAPER_COUNTS: [u32; 6] = [1, 3, 10, 25, 50, 75];
const PAPER_BYTES: u32 = 100;
const PAPER_LATENCY_COUNT: u32 = 1_000;
const ROUND_TRIPS_HZ: u32 = 10;
/// Samples a second that a schedule may ask of a publisher.
pub(super) const SCHEDULE_HZ: RangeInclusive<f64> = 0.1..=100_000.0;
/// Publishers, subscribers, and whether best effort.
const CITED_SHAPES: [(u32, u32, bool); 5] = [(1, 4, false), (1, 7, false), (1, 12, false), (4, 3, false), (8, 6, true)];
/// The part that calibrates the prediction.
pub(super) const CALIBRATION: &str = "calibration";
/// The part about the predicted number of readers.
pub(super) const CROSSOVER: &str = "crossover";
/// Samples a second of the one publisher, each sent at once.
const CROSSOVER_HZ: u32 = 1_000;
const CROSSOVER_SECONDS_MAX: u32 = 5;
/// Start, match and drain of a run.
const OVERHEAD_S: f64 = 2.5;
/// The part with every number of participants.
const PARTICIPANTS: &str = "participants";
/// The part at the limit of the machine.
pub(super) const OVERLOAD: &str = "overload";
const LENGTHS: &str = "lengths";
const SLOW_LINK: &str = "slow-link";
const SNOOPING: &str = "snooping";
const SHAPES: &str = "shapes";
/// Parts that can be asked for; those that calibrate or follow others belong to them.
pub const PART_NAMES: [&str; 8] = [PARTICIPANTS, OVERLOAD, PERFTEST, LENGTHS, SLOW_LINK, SNOOPING, SHAPES, CROSSOVER];
/// The part with closed loops.
pub(super) const PERFTEST: &str = "perftest";
/// The part at the same rates.
pub(super) const SAME_RATE: &str = "same-rate";
/// Its title.
pub(super) const SAME_RATE_TITLE: &str = "What one sample in so many does not show";
/// Of each kind: what was tried on two CPUs.
const COUNT_PER_CPU: u32 = 38;
/// Time to find each other, beside other work too.
const MATCH_S: u32 = 90;
/// Of open schedules, in all forms but the longest.
const OPEN_COUNT_MAX: u32 = 25;
/// More participants of other middleware take a minute to find each other on two CPUs.
const PEER_COUNT_MAX: u32 = 10;
/// Eleven agreeing runs let a verdict stand among the 28 comparisons of a quantity; one may be disturbed in each attempt.
const SHORT_RUNS: RunPlan = RunPlan { count: 12, attempts: 2, warm_up_s: 0.5, seconds: 2, closed_seconds: 2 };
/// The part at the same rates is compared with another part, and not judged.
const SAME_RATE_RUNS: u32 = 3;
/// A load under which two CPUs are busy and not full.
const DELIVERIES_HZ: u32 = 5_000;
/// About what two CPUs deliver at most: ten publishers used 1.7 to 1.9 of them, three left out a part.
const OVERLOAD_HZ: u32 = 250_000;
const OVERLOAD_SECONDS_MAX: u32 = 2;
const ONE_PUBLISHER: &str = "throughput with 1 publisher and 1 subscriber: a schedule asks for 100,000 samples a second at most, which one publisher may carry";
