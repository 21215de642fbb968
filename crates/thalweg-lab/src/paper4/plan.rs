//! The plan: which cells of the paper each part measures here.

use std::time::Duration;

use super::machine::{DEPTH, MachineSize, Traffic};
use crate::length::Length;
use crate::parts::Part;
use crate::peers::{CellMiddleware, PeerProfile, PeerProgram};
use crate::scenario::{Load, RELIABILITY, ReliabilitySetting, ScenarioError, Topics, name_in};
use crate::statistics::runs_needed;

/// The parts of the measurement on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper4Plan {
    /// In the order of their runs.
    pub parts: Vec<Part>,
    /// What the paper has and this plan has not, with the reason.
    pub left_out: Vec<String>,
    /// The command that asks for this plan.
    pub command: String,
}

impl Paper4Plan {
    /// The parts named in `wanted`, all of them where it is empty, with these peers beside Thalweg.
    ///
    /// The comparison of vendors has as many runs as its verdicts need, but for the quick form, and all other parts few and short ones,
    /// which give none.
    pub fn new(
        (form, seed): (Length, u64),
        machine: &MachineSize,
        peers: &[PeerProgram],
        wanted: &[String],
    ) -> Paper4Plan {
        let courses = [vendors, detail, overload, layers, fairness].map(|of| of(form, peers));
        let courses = courses.into_iter().chain([executors(form, machine, peers)]);
        let is_wanted = |course: &Course| wanted.is_empty() || wanted.iter().any(|name| name == course.name);
        let (mut parts, mut left_out) = (Vec::new(), Vec::new());
        for course in courses {
            if !is_wanted(&course) {
                left_out.push(format!("{}: not asked for", course.name));
                continue;
            }
            let reasons = |traffic: &Traffic| traffic.excess(machine, course.load_factor);
            let (carried, others): (Vec<Traffic>, Vec<Traffic>) =
                course.traffic.iter().partition(|traffic| reasons(traffic).is_none());
            let told =
                |traffic: &Traffic| reasons(traffic).map(|reason| format!("{}: {traffic}: {reason}", course.name));
            left_out.extend(others.iter().filter_map(told));
            if !carried.is_empty() {
                parts.push(course.part(&carried, seed));
            }
        }
        let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
        let peers = if names.is_empty() { "none".to_owned() } else { names.join(",") };
        let option = form.option();
        let only = if wanted.is_empty() { String::new() } else { format!(" --parts {}", wanted.join(",")) };
        let command = format!("thalweg lab run paper4{option} --seed {seed} --peers {peers}{only}");
        Paper4Plan { parts, left_out, command }
    }

    /// How long all runs take.
    ///
    /// # Errors
    /// A part is no scenario.
    pub fn duration(&self) -> Result<Duration, ScenarioError> {
        self.parts.iter().map(Part::duration).sum()
    }
}

/// Thalweg, then each peer in both profiles; the floor has nothing to tune in a stream with a timetable.
pub(crate) fn contenders(peers: &[PeerProgram]) -> Vec<CellMiddleware> {
    let mut out = vec![CellMiddleware::Thalweg];
    for peer in peers {
        out.push(CellMiddleware::Peer(*peer, PeerProfile::Default));
        if !SETTINGS_ALIKE.contains(peer) {
            out.push(CellMiddleware::Peer(*peer, PeerProfile::Tuned));
        }
    }
    out
}

/// Thalweg, then each peer as shipped: "each DDS in its standard configuration".
fn as_shipped(peers: &[PeerProgram]) -> Vec<CellMiddleware> {
    let shipped = peers.iter().map(|peer| CellMiddleware::Peer(*peer, PeerProfile::Default));
    [CellMiddleware::Thalweg].into_iter().chain(shipped).collect()
}

/// What a part measures, before the machine is asked.
struct Course {
    name: &'static str,
    title: &'static str,
    contenders: Vec<CellMiddleware>,
    traffic: Vec<Traffic>,
    /// Length of a measurement in seconds.
    seconds: u32,
    runs: usize,
    /// Attempts at each run on a machine that is not quiet.
    attempts: u32,
    /// How many times of what loopback delivers in time may be asked for.
    load_factor: u64,
    /// Threads of the executors where a process subscribes to many topics; none where the middleware's own thread handles samples.
    executor_threads: Vec<u32>,
    /// CPU time of their callbacks in milliseconds.
    work_ms: &'static [f64],
    /// Further keys of `[schedule]`, and sections behind it.
    further: &'static str,
}

/// The paper's Table 1.
fn vendors(form: Length, peers: &[PeerProgram]) -> Course {
    let mut traffic = Vec::new();
    for reliability in [ReliabilitySetting::Reliable, ReliabilitySetting::BestEffort] {
        for (publishers, subscribers, topics) in [one_to(1), one_to(31)] {
            let of = |load| Traffic { publishers, subscribers, topics, rate_hz: 10, reliability, load };
            traffic.extend(PAPER_TYPES.map(of));
        }
    }
    let contenders = if form == Length::Quick { as_shipped(peers) } else { contenders(peers) };
    let runs = runs_needed(traffic.len() * (contenders.len() - 1));
    let (runs, attempts) = if form == Length::Quick { (1, 1) } else { (runs, 4) };
    let seconds = if form == Length::Full { 3 } else { 2 };
    let course = Course::new((VENDORS, "The paper's comparison of vendors"), contenders, traffic);
    Course { seconds, runs, attempts, ..course }
}

/// The paper's Table 2, with the only middleware that it has there.
fn detail(form: Length, peers: &[PeerProgram]) -> Course {
    let peers: Vec<PeerProgram> = peers.iter().copied().filter(|peer| *peer == PeerProgram::Cyclone).collect();
    let (others, loads): (&[u32], &[Load]) = match form {
        Length::Quick => (&[1, 7], &PAPER_TYPES),
        Length::Usual | Length::Full => (&[1, 7, 31, 63], &LOADS),
    };
    let mut traffic = Vec::new();
    for rate_hz in [10, 100] {
        for others in others.iter().copied() {
            // With two nodes the three topologies are one.
            let shapes = [one_to(others), (others, 1, Topics::PerPublisher), pairs(others.div_ceil(2))];
            let shapes = if others == 1 { &shapes[..1] } else { &shapes };
            for (publishers, subscribers, topics) in shapes.iter().copied() {
                let of = |load: &Load| reliable((publishers, subscribers, topics), rate_hz, *load);
                traffic.extend(loads.iter().map(of));
            }
        }
    }
    let course = Course::new((DETAIL, "Nodes, topologies, sizes and rates"), as_shipped(&peers), traffic);
    Course { seconds: if form == Length::Full { 2 } else { 1 }, further: TOGETHER, ..course }
}

/// Cells in which publishers fall behind, those of the paper as far as the machine survives them.
fn overload(form: Length, peers: &[PeerProgram]) -> Course {
    let all = [
        reliable(one_to(1), 100, HALF_MIB),
        reliable(one_to(1), 100, TWO_MIB),
        reliable(one_to(7), 100, HALF_MIB),
        reliable(one_to(7), 100, TWO_MIB),
        reliable(one_to(31), 10, TWO_MIB),
        reliable(one_to(31), 100, HALF_MIB),
        reliable(pairs(4), 100, TWO_MIB),
    ];
    let traffic = if form == Length::Quick { all[1..4].to_vec() } else { all.to_vec() };
    let course = Course::new((OVERLOAD, "Publishers that fall behind"), as_shipped(peers), traffic);
    Course { runs: few_runs(form), load_factor: OVERLOAD_FACTOR, ..course }
}

/// Where a publisher's time goes, by size; other middleware has no such points.
fn layers(form: Length, _: &[PeerProgram]) -> Course {
    let traffic = LOADS.map(|load| reliable(one_to(1), 100, load));
    let course = Course::new((LAYERS, "The publisher's time by layer"), as_shipped(&[]), traffic);
    Course { runs: few_runs(form), further: "\n[trace]\nlayers = true\nsample = 1\n", ..course }
}

/// Whether subscribers are served alike.
fn fairness(form: Length, peers: &[PeerProgram]) -> Course {
    let others: &[u32] = if form == Length::Quick { &[7] } else { &[7, 31, 63] };
    let traffic = others.iter().map(|others| reliable(one_to(*others), 10, Load::Array64k));
    let course = Course::new((FAIRNESS, "Every subscriber of one publisher"), as_shipped(peers), traffic);
    Course { seconds: if form == Length::Quick { 2 } else { 5 }, runs: few_runs(form), ..course }
}

/// One to many and many to one, with executors of one thread and of as many as the machine has CPUs, idle and with work.
fn executors(form: Length, machine: &MachineSize, peers: &[PeerProgram]) -> Course {
    let is_quick = form == Length::Quick;
    let to_one = |others: u32| (others, 1, Topics::PerPublisher);
    let shapes = if is_quick { vec![to_one(7)] } else { vec![one_to(7), to_one(7), one_to(31), to_one(31)] };
    let contenders = as_shipped(if is_quick { &[] } else { peers });
    let traffic = shapes.into_iter().map(|shape| reliable(shape, 10, Load::Array64k));
    Course {
        seconds: if is_quick { 1 } else { 2 },
        runs: few_runs(form),
        executor_threads: vec![1, (machine.cores as u32).max(2)],
        work_ms: if is_quick { &WORK_MS[1..] } else { &WORK_MS },
        further: TOGETHER,
        ..Course::new((EXECUTORS, "Executors with one and with several threads"), contenders, traffic)
    }
}

/// Runs of a part without verdicts.
fn few_runs(form: Length) -> usize {
    if form == Length::Quick { 1 } else { 3 }
}

fn one_to(subscribers: u32) -> (u32, u32, Topics) {
    (1, subscribers, Topics::One)
}

fn pairs(count: u32) -> (u32, u32, Topics) {
    (count, count, Topics::PerPair)
}

fn reliable((publishers, subscribers, topics): (u32, u32, Topics), rate_hz: u32, load: Load) -> Traffic {
    Traffic { publishers, subscribers, topics, rate_hz, reliability: ReliabilitySetting::Reliable, load }
}

impl Course {
    /// This traffic in single runs of two seconds, within what the machine carries.
    fn new(
        (name, title): (&'static str, &'static str),
        contenders: Vec<CellMiddleware>,
        traffic: impl IntoIterator<Item = Traffic>,
    ) -> Course {
        Course {
            name,
            title,
            contenders,
            traffic: traffic.into_iter().collect(),
            seconds: 2,
            runs: 1,
            attempts: 1,
            load_factor: LOAD_FACTOR,
            executor_threads: Vec::new(),
            work_ms: &[],
            further: "",
        }
    }

    /// The scenario with this traffic.
    fn part(&self, carried: &[Traffic], seed: u64) -> Part {
        let matrices: String = carried.iter().map(|traffic| self.matrix(traffic)).collect();
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"paper4-{}\"\nseed = {seed}\n{matrices}\n[qos]\nhistory = {{ keep_last = {DEPTH} }}\n\n\
             [system]\nattempts = {}\n\n[schedule]\nseconds = {}\nruns = {}\nwarm_up_s = 0.5\ndrain_s = 0.5\n{}",
            self.name, self.attempts, self.seconds, self.runs, self.further
        );
        Part { name: self.name, title: self.title, text }
    }

    fn matrix(&self, traffic: &Traffic) -> String {
        let able = self.contenders.iter().filter(|contender| traffic.takes_part(contender));
        let names: Vec<String> = able.map(|contender| format!("\"{contender}\"")).collect();
        let load = match traffic.load {
            Load::Octets(bytes) => format!("payload_bytes = {bytes}"),
            named => format!("type = \"{named}\""),
        };
        // Samples of one topic are handled one after the other, by however many threads.
        let threads = if traffic.topics == Topics::One { self.executor_threads.get(..1) } else { None };
        let executor = match threads.unwrap_or(&self.executor_threads) {
            [] => String::new(),
            threads => format!("executor_threads = {threads:?}\nwork_ms = {:?}\n", self.work_ms),
        };
        format!(
            "\n[[matrix]]\nmiddleware = [{}]\n{load}\nrate_hz = {}\nendpoints = \"{}-{}\"\ntopics = \"{}\"\nreliability = \"{}\"\n{executor}",
            names.join(", "),
            traffic.rate_hz,
            traffic.publishers,
            traffic.subscribers,
            name_in(&Topics::NAMES, &traffic.topics),
            name_in(&RELIABILITY, &traffic.reliability)
        )
    }
}

/// All publishers of a cell send at once.
const TOGETHER: &str = "phase = \"together\"\n";
/// Names of the parts, in the order of their runs.
pub const PART_NAMES: [&str; 6] = [VENDORS, DETAIL, OVERLOAD, LAYERS, FAIRNESS, EXECUTORS];
pub(super) const VENDORS: &str = "vendors";
pub(super) const DETAIL: &str = "detail";
pub(super) const OVERLOAD: &str = "overload";
pub(super) const LAYERS: &str = "layers";
pub(super) const FAIRNESS: &str = "fairness";
pub(super) const EXECUTORS: &str = "executors";
/// CPU time of a callback: none, and as much as 31 samples in turns take two thirds of a period for.
const WORK_MS: [f64; 2] = [0.0, 2.0];
/// Those of the paper's comparison of vendors.
const PAPER_TYPES: [Load; 3] = [Load::Struct16, Load::Array64k, Load::PointCloud1m];
const HALF_MIB: Load = Load::Octets(512 << 10);
const TWO_MIB: Load = Load::Octets(2 << 20);
/// Those of the paper's detail.
const LOADS: [Load; 5] = [Load::Struct16, Load::Array64k, HALF_MIB, Load::PointCloud1m, TWO_MIB];
/// Late samples are measured, and collapse is not.
const LOAD_FACTOR: u64 = 2;
/// Publishers are to fall behind.
const OVERLOAD_FACTOR: u64 = 4;
/// Peers whose profile `tuned` is the default, or that have nothing of use here in it.
const SETTINGS_ALIKE: [PeerProgram; 3] = [PeerProgram::RustDds, PeerProgram::Hdds, PeerProgram::Raw];
