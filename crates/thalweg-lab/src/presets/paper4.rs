//! The preset `paper4`: Kouril and others, "Performance Evaluation of a ROS2 based Automated Driving System" (VEHITS 2024), measured again
//! below the client library, with every middleware in turns.
//!
//! The paper's messages, rates and topologies: 1–n is one topic with many subscribers, n–1 one node with a subscription to each of many
//! publishers, whose samples one thread handles as ROS 2's executor does, n–n are pairs with a topic each. Its nodes are processes here.

use std::fmt;

use thalweg_host::HostFiles;

use super::Preset;
use crate::figures::size;
use crate::length::Length;
use crate::peers::{CellMiddleware, PeerProfile, PeerProgram};
use crate::scenario::{CELLS_MAX, Load, ReliabilitySetting, Topics};

/// What decides how much can be measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineSize {
    /// Logical CPUs.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

impl MachineSize {
    /// This one, with the memory that is free now.
    pub fn here() -> MachineSize {
        let free = HostFiles::here().memory_kib().map(|(_, available)| available);
        MachineSize {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: free.map_or(MEMORY_BYTES_UNKNOWN, |kib| kib << 10),
        }
    }
}

/// The scenario for this machine, with these peers beside Thalweg: the first of them, if there is no room for all, and the floor.
///
/// In full it is all that the machine carries: a minute of each cell, in three runs that take turns with the others. Quick is the paper's
/// table of messages and what fits into a quarter of an hour, one run of each cell.
pub fn paper4(length: Length, machine: &MachineSize, peers: &[PeerProgram]) -> Preset {
    let (mut peers, mut too_many) = (peers.to_vec(), Vec::new());
    let (plan, contenders) = loop {
        let contenders = contenders(&peers);
        let plan = Plan::new(length, &contenders, machine);
        match peers.iter().rposition(|peer| *peer != PeerProgram::Raw) {
            Some(last) if plan.cells(&contenders) > CELLS_MAX => too_many.insert(0, peers.remove(last)),
            _ => break (plan, contenders),
        }
    };
    let alone =
        |peer| format!("{peer}: more than {CELLS_MAX} cells with it; `--peers {peer}` measures it in a run of its own");
    let left_out: Vec<String> = too_many.iter().map(alone).chain(plan.told()).collect();
    let mut text = head(length, &left_out);
    for group in merged(plan.chosen) {
        text.push_str(&matrix(&group, &contenders));
    }
    Preset { text, left_out }
}

/// Thalweg, then each peer in both profiles; the floor has nothing to tune in a stream with a timetable.
pub(super) fn contenders(peers: &[PeerProgram]) -> Vec<CellMiddleware> {
    let mut out = vec![CellMiddleware::Thalweg];
    for peer in peers {
        out.push(CellMiddleware::Peer(*peer, PeerProfile::Default));
        if !SETTINGS_ALIKE.contains(peer) {
            out.push(CellMiddleware::Peer(*peer, PeerProfile::Tuned));
        }
    }
    out
}

/// Cells that differ in what they send alone.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    publishers: u32,
    subscribers: u32,
    topics: Topics,
    rate_hz: u32,
    reliability: ReliabilitySetting,
    loads: Vec<Load>,
}

impl Group {
    fn topics_key(&self) -> &'static str {
        match self.topics {
            Topics::One => "one",
            Topics::PerPair => "per-pair",
            Topics::PerPublisher => "per-publisher",
        }
    }

    fn reliability_key(&self) -> &'static str {
        match self.reliability {
            ReliabilitySetting::Reliable => "reliable",
            ReliabilitySetting::BestEffort => "best-effort",
        }
    }

    /// Those that can: the floor sends nothing again.
    fn takes_part<'a>(&self, contenders: &'a [CellMiddleware]) -> impl Iterator<Item = &'a CellMiddleware> {
        let can_all = self.reliability == ReliabilitySetting::BestEffort;
        contenders.iter().filter(move |one| can_all || one.peer() != Some(PeerProgram::Raw))
    }

    fn deliveries_per_period(&self) -> u64 {
        match self.topics {
            Topics::PerPair => u64::from(self.publishers),
            Topics::One | Topics::PerPublisher => u64::from(self.publishers) * u64::from(self.subscribers),
        }
    }

    fn processes(&self) -> u64 {
        u64::from(self.publishers + self.subscribers)
    }

    /// Payload that all subscribers together are to get in a second.
    fn bytes_per_second(&self) -> u64 {
        self.deliveries_per_period() * u64::from(self.rate_hz) * self.sample_bytes()
    }

    /// What all processes hold at most: themselves, and at both ends of each delivery the history and as much again on the way.
    fn memory_bytes(&self) -> u64 {
        let kept = 2 * u64::from(DEPTH) * self.sample_bytes();
        self.processes() * PROCESS_BYTES + (u64::from(self.publishers) + self.deliveries_per_period()) * kept
    }

    fn sample_bytes(&self) -> u64 {
        self.loads.iter().map(|load| load.bytes()).max().unwrap_or(0)
    }

    /// Why the machine does not carry it.
    fn excess(&self, machine: &MachineSize) -> Option<String> {
        let cores = machine.cores as u64;
        let checks = [
            ("a second to deliver", self.bytes_per_second(), cores * CORE_BYTES_PER_SECOND),
            ("processes", self.processes(), cores * CORE_PROCESSES),
            ("of memory", self.memory_bytes(), machine.memory_bytes / 2),
        ];
        let beyond = checks.into_iter().find(|(_, needed, limit)| needed > limit)?;
        let (what, needed, limit) = beyond;
        let shown = |count| if what == "processes" { format!("{count}") } else { size(count) };
        Some(format!("{} {what} where {} are carried", shown(needed), shown(limit)))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loads: Vec<String> = self.loads.iter().map(Load::to_string).collect();
        let shape = match self.topics {
            Topics::One => "",
            Topics::PerPair => " in pairs",
            Topics::PerPublisher => " to one node",
        };
        write!(
            f,
            "{}–{}{shape}, {} Hz, {}, {}",
            self.publishers,
            self.subscribers,
            self.rate_hz,
            self.reliability_key(),
            loads.join(" and ")
        )
    }
}

/// What is measured and what is not.
struct Plan {
    length: Length,
    contenders: usize,
    /// How long what was chosen takes.
    seconds: f64,
    chosen: Vec<Group>,
    left_out: Vec<(Group, String)>,
}

impl Plan {
    fn new(length: Length, contenders: &[CellMiddleware], machine: &MachineSize) -> Plan {
        let mut plan =
            Plan { length, contenders: contenders.len(), seconds: 0.0, chosen: Vec::new(), left_out: Vec::new() };
        for group in groups(length) {
            for load in group.loads.clone() {
                plan.consider(&Group { loads: vec![load], ..group.clone() }, machine);
            }
        }
        plan
    }

    /// How many cells these have together.
    fn cells(&self, contenders: &[CellMiddleware]) -> usize {
        self.chosen.iter().map(|group| group.loads.len() * group.takes_part(contenders).count()).sum()
    }

    fn consider(&mut self, group: &Group, machine: &MachineSize) {
        let seconds = self.contenders as f64 * self.length.cell_seconds(group);
        let reason = group.excess(machine).or_else(|| {
            let is_too_long = self.length.seconds_max().is_some_and(|most| self.seconds + seconds > most);
            is_too_long.then(|| "no time left within --quick".to_owned())
        });
        match reason {
            Some(reason) => self.left_out.push((group.clone(), reason)),
            None => {
                self.seconds += seconds;
                self.chosen.push(group.clone());
            }
        }
    }

    /// What was left out, a line each.
    fn told(&self) -> Vec<String> {
        self.left_out.iter().map(|(group, reason)| format!("{group}: {reason}")).collect()
    }
}

impl Length {
    /// Seconds of measurement, runs of each cell, seconds of warm-up.
    fn course(self) -> (u32, u32, f64) {
        match self {
            Length::Full => (20, 3, 1.0),
            Length::Quick => (2, 1, 0.3),
        }
    }

    fn seconds_max(self) -> Option<f64> {
        match self {
            Length::Full => None,
            Length::Quick => Some(QUICK_SECONDS),
        }
    }

    /// How long all runs of a cell take: the more processes the longer until they met, and a peer that loses is waited for.
    fn cell_seconds(self, group: &Group) -> f64 {
        let (seconds, runs, warm_up) = self.course();
        f64::from(runs) * (f64::from(seconds) + warm_up + RUN_SECONDS + PROCESS_SECONDS * group.processes() as f64)
    }
}

/// What the paper varies, the most telling first.
fn groups(length: Length) -> Vec<Group> {
    let loads = match length {
        Length::Full => FULL_LOADS.to_vec(),
        Length::Quick => QUICK_LOADS.to_vec(),
    };
    let topologies: &[(u32, u32, Topics)] = match length {
        Length::Full => &FULL_TOPOLOGIES,
        Length::Quick => &QUICK_TOPOLOGIES,
    };
    let mut out = Vec::new();
    for reliability in [ReliabilitySetting::Reliable, ReliabilitySetting::BestEffort] {
        for rate_hz in [10, 100] {
            for (publishers, subscribers, topics) in topologies.iter().copied() {
                let loads = loads.clone();
                out.push(Group { publishers, subscribers, topics, rate_hz, reliability, loads });
            }
        }
    }
    out
}

/// Joins neighbours that differ in what they send alone.
fn merged(groups: Vec<Group>) -> Vec<Group> {
    let mut out: Vec<Group> = Vec::new();
    for group in groups {
        match out.last_mut() {
            Some(last) if (Group { loads: group.loads.clone(), ..last.clone() }) == group => {
                last.loads.extend(group.loads)
            }
            _ => out.push(group),
        }
    }
    out
}

fn head(length: Length, left_out: &[String]) -> String {
    let (seconds, runs, warm_up) = length.course();
    let notes: Vec<String> = left_out.iter().map(|line| format!("    {:?},\n", format!("left out: {line}"))).collect();
    let notes = if notes.is_empty() { String::new() } else { format!("notes = [\n{}]\n", notes.concat()) };
    format!(
        "schema = \"thalweg.scenario/1\"\nname = \"paper4\"\n{notes}\n[qos]\nhistory = {{ keep_last = {DEPTH} }}\n\n[schedule]\n\
         seconds = {seconds}\nruns = {runs}\nwarm_up_s = {warm_up}\ndrain_s = 0.5\n\n[system]\nattempts = 1\n"
    )
}

fn matrix(group: &Group, contenders: &[CellMiddleware]) -> String {
    let quoted = |words: Vec<String>| words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    let middleware = quoted(group.takes_part(contenders).map(CellMiddleware::to_string).collect());
    let types: Vec<String> =
        group.loads.iter().filter(|load| !matches!(load, Load::Octets(_))).map(Load::to_string).collect();
    let octets: Vec<String> = group
        .loads
        .iter()
        .filter_map(|load| if let Load::Octets(bytes) = load { Some(bytes.to_string()) } else { None })
        .collect();
    let mut out = format!("\n[[matrix]]\nmiddleware = [{middleware}]\n");
    if !types.is_empty() {
        out.push_str(&format!("type = [{}]\n", quoted(types)));
    }
    if !octets.is_empty() {
        out.push_str(&format!("payload_bytes = [{}]\n", octets.join(", ")));
    }
    out.push_str(&format!(
        "rate_hz = {}\nendpoints = \"{}-{}\"\ntopics = {:?}\nreliability = {:?}\n",
        group.rate_hz,
        group.publishers,
        group.subscribers,
        group.topics_key(),
        group.reliability_key()
    ));
    out
}

const FULL_LOADS: [Load; 5] =
    [Load::Struct16, Load::Array64k, Load::PointCloud1m, Load::Octets(512 << 10), Load::Octets(2 << 20)];
/// Those of the paper's comparison of vendors.
const QUICK_LOADS: [Load; 3] = [Load::Struct16, Load::Array64k, Load::PointCloud1m];
/// 2, 8, 32 and 64 nodes in each shape.
const FULL_TOPOLOGIES: [(u32, u32, Topics); 10] = [
    (1, 1, Topics::One),
    (1, 7, Topics::One),
    (7, 1, Topics::PerPublisher),
    (4, 4, Topics::PerPair),
    (1, 31, Topics::One),
    (31, 1, Topics::PerPublisher),
    (16, 16, Topics::PerPair),
    (1, 63, Topics::One),
    (63, 1, Topics::PerPublisher),
    (32, 32, Topics::PerPair),
];
/// One of each shape, and the paper's largest comparison of vendors.
const QUICK_TOPOLOGIES: [(u32, u32, Topics); 5] = [
    (1, 1, Topics::One),
    (1, 7, Topics::One),
    (7, 1, Topics::PerPublisher),
    (4, 4, Topics::PerPair),
    (1, 31, Topics::One),
];
/// Peers whose profile `tuned` is the default, or that have nothing of use here in it.
const SETTINGS_ALIKE: [PeerProgram; 3] = [PeerProgram::RustDds, PeerProgram::Hdds, PeerProgram::Raw];
/// KEEP_LAST of the paper's client library.
const DEPTH: u32 = 10;
/// What loopback may be asked to carry for each CPU: about twice what is delivered in time, so that overload is measured and collapse
/// is not.
const CORE_BYTES_PER_SECOND: u64 = 400 << 20;
/// Processes for each CPU that still take their turns within a period of 10 ms.
const CORE_PROCESSES: u64 = 32;
/// A process without its samples: buffers of sockets, threads, discovery.
const PROCESS_BYTES: u64 = 48 << 20;
/// Start, match, drain and files of a run.
const RUN_SECONDS: f64 = 1.3;
/// What each process adds to that.
const PROCESS_SECONDS: f64 = 0.04;
/// A quarter of an hour without a reserve for peers that fail late.
const QUICK_SECONDS: f64 = 720.0;
/// Where the system does not tell.
const MEMORY_BYTES_UNKNOWN: u64 = 4 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const SMALL: MachineSize = MachineSize { cores: 2, memory_bytes: 16 << 30 };
    const LARGE: MachineSize = MachineSize { cores: 64, memory_bytes: 512 << 30 };

    #[track_caller]
    fn parse(preset: &Preset) -> Scenario {
        Scenario::parse("paper4", &preset.text).unwrap_or_else(|error| panic!("{error}\n{}", preset.text))
    }

    #[test]
    fn a_large_machine_measures_all_of_the_paper() {
        let preset = paper4(Length::Full, &LARGE, &[]);
        let scenario = parse(&preset);
        // 10 shapes, 5 messages, 2 rates, 2 reliabilities; 63 times 2 MiB at 100 Hz are 13 GB/s.
        assert_eq!((scenario.cells.len(), preset.left_out), (200, Vec::new()));
        assert_eq!((scenario.schedule.runs.min, scenario.schedule.measured.as_secs()), (3, 20));
    }

    #[test]
    fn a_small_machine_leaves_out_what_it_does_not_carry_and_says_so() {
        let preset = paper4(Length::Full, &SMALL, &[PeerProgram::Cyclone]);
        let scenario = parse(&preset);
        assert_eq!(scenario.notes.len(), preset.left_out.len());
        let told = preset.left_out.join("\n");
        assert!(told.contains("1–63, 100 Hz, reliable, 2 MiB:") && told.contains("a second to deliver"), "{told}");
        let has = |publishers, subscribers, load, rate_hz: f64| {
            let cells = scenario.cells.iter().filter(|cell| cell.load == load && cell.rate_hz == rate_hz);
            cells.filter(|cell| (cell.publishers, cell.subscribers) == (publishers, subscribers)).count()
        };
        // Thalweg and two profiles of Cyclone DDS, reliable and best-effort.
        assert_eq!(has(1, 31, Load::PointCloud1m, 10.0), 6);
        assert_eq!(has(1, 63, Load::Struct16, 100.0), 6);
        assert_eq!(has(1, 31, Load::PointCloud1m, 100.0), 0);
        let less = paper4(Length::Full, &MachineSize { memory_bytes: 1 << 30, ..SMALL }, &[]);
        assert!(less.left_out.iter().any(|line| line.contains("of memory")), "{:?}", less.left_out);
        let single = paper4(Length::Full, &MachineSize { cores: 1, ..SMALL }, &[]);
        assert!(single.left_out.iter().any(|line| line.contains("64 processes where 32")), "{:?}", single.left_out);
    }

    #[test]
    fn the_quick_form_ends_within_a_quarter_of_an_hour_whoever_takes_part() {
        for peers in [&[][..], &[PeerProgram::Cyclone, PeerProgram::FastDds], &PeerProgram::ALL] {
            let preset = paper4(Length::Quick, &SMALL, peers);
            let scenario = parse(&preset);
            assert!(scenario.duration().as_secs() < 900, "{peers:?}: {} s", scenario.duration().as_secs());
            assert!(scenario.cells.len() >= 20, "{peers:?}: {}", scenario.cells.len());
        }
        let with_all = paper4(Length::Quick, &SMALL, &PeerProgram::ALL);
        assert!(with_all.left_out.iter().any(|line| line.contains("no time left")), "{:?}", with_all.left_out);
    }

    #[test]
    fn the_full_form_has_room_for_the_first_peers_and_names_the_others() {
        let preset = paper4(Length::Full, &SMALL, &PeerProgram::ALL);
        let cells = parse(&preset).cells;
        let has = |peer| cells.iter().any(|cell| cell.middleware.peer() == Some(peer));
        let (with, without): (Vec<PeerProgram>, Vec<PeerProgram>) =
            PeerProgram::ALL.into_iter().partition(|peer| has(*peer));
        assert!(
            with.contains(&PeerProgram::Cyclone)
                && with.contains(&PeerProgram::FastDds)
                && with.contains(&PeerProgram::Raw),
            "{with:?}"
        );
        for peer in without {
            let told = format!("{peer}: more than 1000 cells with it; `--peers {peer}` measures it");
            assert!(preset.left_out.iter().any(|line| line.starts_with(&told)), "{:?}", preset.left_out);
            assert!(!parse(&paper4(Length::Full, &LARGE, &[peer])).cells.is_empty());
        }
    }

    #[test]
    fn the_floor_takes_part_where_nothing_is_sent_again() {
        let scenario = parse(&paper4(Length::Full, &SMALL, &[PeerProgram::Raw]));
        let raw = scenario.cells.iter().filter(|cell| cell.middleware.peer() == Some(PeerProgram::Raw));
        let (best_effort, others): (Vec<_>, Vec<_>) =
            raw.partition(|cell| cell.reliability == Some(ReliabilitySetting::BestEffort));
        assert!(!best_effort.is_empty() && others.is_empty());
    }
}
