//! The plan: the paper's cells, the contenders, the numbers of runs.

use std::time::Duration;

use super::paper::{BATCHING, SEGMENTS};
use super::search;
use crate::benchmark::{Benchmark, ContenderPlan, LinkTable, Place, WorkPlan, WorkTask};
use crate::length::Length;
use crate::peers::{PeerProfile, PeerProgram};
use crate::station::{PackingMethod, Sending, TokenBucket};
use crate::statistics::runs_needed;

/// The extent of the measurement, and its contenders.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper1Plan {
    /// Whether there are few runs and candidates, and transfers of a tenth of the paper's.
    pub length: Length,
    /// Runs of each cell; `None` is as many as verdicts need, or three where it is quick.
    pub runs: Option<u32>,
    /// Factor on numbers of samples, above 0 and at most 1; smaller ones are for tests of the preset itself.
    pub scale: f64,
    /// Peers that take part.
    pub peers: Vec<PeerProgram>,
    /// Seed of the order of turns.
    pub seed: u64,
    /// Parts to measure, of [`PART_NAMES`].
    pub wanted: Vec<String>,
    /// Tokens a period of each cell of Table 4; `None` is without limit.
    pub tokens: Vec<Option<u32>>,
    /// What is not measured, with the reason.
    pub left_out: Vec<String>,
}

/// Name of a cell of Table 4 without limit in `--tokens`.
pub const UNLIMITED: &str = "unlimited";

impl Paper1Plan {
    /// All parts with these peers, as far as this process may make hosts.
    pub fn new(length: Length, seed: u64, peers: &[PeerProgram], may_make_hosts: bool) -> Paper1Plan {
        let tokens = [None, Some(HALF_LINK_TOKENS)].into_iter().chain([30, 20, 10, 5, 1].map(Some)).collect();
        let parts = PART_NAMES.into_iter().filter(|name| may_make_hosts || !ON_HOSTS.contains(name));
        let left_out = match may_make_hosts {
            true => Vec::new(),
            false => ON_HOSTS.map(|name| format!("{name}: its hosts need root; run it with sudo")).to_vec(),
        };
        let wanted = parts.map(str::to_owned).collect();
        Paper1Plan { length, runs: None, scale: 1.0, peers: peers.to_vec(), seed, wanted, tokens, left_out }
    }

    /// The parts in their order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'static str> {
        PART_NAMES.into_iter().filter(|name| self.wanted.iter().any(|wanted| wanted == name))
    }

    pub(super) fn is_quick(&self) -> bool {
        self.length == Length::Quick
    }

    /// How long all parts take on a quiet machine, slow contenders not counted.
    pub fn duration(&self) -> Duration {
        let found = search::defaults();
        self.parts().map(|part| self.benchmark(part, &found).expected()).sum()
    }

    /// The command that repeats it, its order of turns included.
    pub(super) fn command(&self) -> String {
        let usual = Paper1Plan::new(self.length, self.seed, &self.peers, true);
        let names: Vec<&str> = self.peers.iter().map(|peer| peer.name()).collect();
        let peers = if names.is_empty() { "none".to_owned() } else { names.join(",") };
        let mut out = "thalweg lab run paper1".to_owned();
        if self.is_quick() {
            out.push_str(" --quick");
        }
        out.push_str(&format!(" --seed {} --peers {peers}", self.seed));
        if let Some(runs) = self.runs {
            out.push_str(&format!(" --runs {runs}"));
        }
        if self.wanted != usual.wanted {
            out.push_str(&format!(" --parts {}", self.wanted.join(",")));
        }
        if self.tokens != usual.tokens {
            let text = |tokens: &Option<u32>| tokens.map_or_else(|| UNLIMITED.to_owned(), |tokens| tokens.to_string());
            out.push_str(&format!(" --tokens {}", self.tokens.iter().map(text).collect::<Vec<_>>().join(",")));
        }
        if self.scale != 1.0 {
            out.push_str(&format!(" --scale {}", self.scale));
        }
        out
    }

    /// A part with the methods as a search found them.
    pub(super) fn benchmark(&self, part: &str, found: &[ContenderPlan]) -> Benchmark {
        let (contenders, works, link) = match part {
            SEARCH => {
                let (contenders, works) = search::plan(self);
                (contenders, works, None)
            }
            TABLES => (self.contenders(found, &self.peers), self.tables(&self.peers, Place::Cores), None),
            LINK => {
                let peers = self.linked();
                let mut works = self.tables(&peers, Place::Link);
                works.extend(BESIDE.map(|(name, transfer)| self.beside(name, transfer)));
                (self.contenders(found, &peers), works, Some(LINE))
            }
            LOSS => {
                let of = SEGMENTS.map(|(n, size, _)| (self.scaled(n), size as u32)).to_vec();
                let task = WorkTask::Bursts { of, each: self.each(), lasting_s: self.lasting_s() };
                let works = vec![work(TABLE_3, ABOUT_3, &["auto"], Place::Link, task)];
                (self.contenders(found, &[]), works, Some(LinkTable { loss_pct: LOSS_PCT, ..LINE }))
            }
            _ => {
                let contenders: Vec<ContenderPlan> = self.tokens.iter().map(|tokens| asynchronous(*tokens)).collect();
                let names: Vec<&str> = contenders.iter().map(|one| one.name.as_str()).collect();
                let whole = self.scaled(TRANSFER_SAMPLES / if self.is_quick() { 10 } else { 1 });
                let task = WorkTask::Beside {
                    transfer: (whole, SEGMENT_BYTES),
                    quiet_s: 2.0 * self.scale.sqrt(),
                    loaded_s: 0.0,
                };
                let works = vec![work(TABLE_4, ABOUT_4, &names, Place::Link, task)];
                (contenders, works, Some(LINE))
            }
        };
        let mut out = Benchmark::new(part, (self.seed, 1), used(contenders, &works), works);
        out.link = link;
        out.attempts = if self.is_quick() { 1 } else { 4 };
        out.runs = self.runs.unwrap_or_else(|| self.runs_of(&out));
        if self.scale < 1.0 {
            let scale = self.scale;
            out.notes.push(format!(
                "Numbers of samples are {scale} of the paper's: this shows that the preset works, and no more."
            ));
        }
        out
    }

    /// As many as verdicts on all cells together need; a search needs fewer.
    fn runs_of(&self, benchmark: &Benchmark) -> u32 {
        match (self.length, benchmark.name.as_str()) {
            (Length::Quick, _) => 3,
            (_, SEARCH) => 8,
            _ => runs_needed(benchmark.comparisons()) as u32,
        }
    }

    /// Bursts of each kind in a run.
    fn each(&self) -> u32 {
        if self.is_quick() { 1 } else { 3 }
    }

    /// Least time of a run's bursts in seconds. Of two CPUs the kernel's step of 10 ms is a third of one per cent then, so that others are
    /// seen to keep below one.
    pub(super) fn lasting_s(&self) -> f64 {
        if self.is_quick() || self.scale < 1.0 { 0.0 } else { 1.5 }
    }

    /// A count of the paper, scaled.
    pub(super) fn scaled(&self, count: u64) -> u32 {
        ((count as f64 * self.scale).round() as u32).max(1)
    }

    /// Ours as they were found, then each peer in its sets of settings.
    fn contenders(&self, found: &[ContenderPlan], peers: &[PeerProgram]) -> Vec<ContenderPlan> {
        let profiles = |peer: &PeerProgram| {
            let peer = *peer;
            let has = move |profile: &PeerProfile| *profile != PeerProfile::Batch || peer.has_batching();
            PeerProfile::ALL.into_iter().filter(has).map(move |profile| ContenderPlan::of_peer(peer, profile))
        };
        found.iter().cloned().chain(peers.iter().flat_map(profiles)).collect()
    }

    /// Those that send over a link by UDP and repair losses as the standard says.
    fn linked(&self) -> Vec<PeerProgram> {
        let all = [PeerProgram::Cyclone, PeerProgram::FastDds];
        all.into_iter().filter(|peer| self.peers.contains(peer)).collect()
    }

    /// Tables 2 and 3, and the processor time of the receiver.
    fn tables(&self, peers: &[PeerProgram], place: Place) -> Vec<WorkPlan> {
        let peers: Vec<String> = self.contenders(&[], peers).into_iter().map(|one| one.name).collect();
        let with_peers = |ours: &[&str]| {
            let mut out: Vec<String> = ours.iter().map(|name| (*name).to_owned()).collect();
            out.extend(peers.iter().cloned());
            out
        };
        let small = BATCHING.map(|(n, size, _)| (self.scaled(n), size as u32)).to_vec();
        let large = SEGMENTS.map(|(n, size, _)| (self.scaled(n), size as u32)).to_vec();
        let bursts = |of| WorkTask::Bursts { of, each: self.each(), lasting_s: self.lasting_s() };
        let stream =
            WorkTask::Stream { bytes: vec![256], readers: 1, seconds: if self.is_quick() { 0.5 } else { 1.0 } };
        let methods = ["auto", "immediate", "coalescing", "batching"];
        let mut out = vec![
            WorkPlan { contenders: with_peers(&search::METHODS), ..work(TABLE_2, ABOUT_2, &[], place, bursts(small)) },
            WorkPlan { contenders: with_peers(&LARGE_METHODS), ..work(TABLE_3, ABOUT_3, &[], place, bursts(large)) },
        ];
        if place == Place::Cores {
            out.push(work(RECEIVER, ABOUT_RECEIVER, &methods, place, stream));
        }
        out
    }

    fn beside(&self, name: &str, (n, size): (u64, u32)) -> WorkPlan {
        let (quiet_s, loaded_s) = if self.is_quick() { (0.5, 0.5) } else { (2.0, 2.0) };
        let task = WorkTask::Beside { transfer: (self.scaled(n), size), quiet_s, loaded_s };
        work(name, ABOUT_BESIDE, &["auto"], Place::Link, task)
    }
}

fn work(name: &str, about: &str, contenders: &[&str], place: Place, task: WorkTask) -> WorkPlan {
    WorkPlan {
        name: name.to_owned(),
        about: about.to_owned(),
        contenders: contenders.iter().map(|name| (*name).to_owned()).collect(),
        place,
        task,
        expectations: Vec::new(),
    }
}

/// Those of them that do some work.
fn used(contenders: Vec<ContenderPlan>, works: &[WorkPlan]) -> Vec<ContenderPlan> {
    let is_used = |one: &ContenderPlan| works.iter().any(|work| work.contenders.contains(&one.name));
    contenders.into_iter().filter(is_used).collect()
}

/// A writer under the paper's flow controller.
pub(super) fn asynchronous(tokens: Option<u32>) -> ContenderPlan {
    let bucket = TokenBucket::of_paper(tokens);
    let sending = Sending::by(PackingMethod::Asynchronous { flow_controller: bucket.name.clone() });
    ContenderPlan { flow_controller: Some(bucket.clone()), ..ContenderPlan::ours(bucket.name, sending) }
}

pub(super) const SEARCH: &str = "search";
pub(super) const TABLES: &str = "tables";
pub(super) const LINK: &str = "link";
pub(super) const LOSS: &str = "loss";
pub(super) const BACKGROUND: &str = "background";
/// The parts of the preset.
pub const PART_NAMES: [&str; 5] = [SEARCH, TABLES, LINK, LOSS, BACKGROUND];
/// Those between network namespaces.
const ON_HOSTS: [&str; 3] = [LINK, LOSS, BACKGROUND];
pub(super) const TABLE_2: &str = "Table 2: high-frequency data";
pub(super) const TABLE_3: &str = "Table 3: 5 MB in segments";
pub(super) const TABLE_4: &str = "Table 4: background data under a flow controller";
pub(super) const RECEIVER: &str = "Processor time of the receiver";
/// One sample of 5 MiB, and the same in segments, each beside an urgent topic.
pub(super) const BESIDE: [(&str, (u64, u32)); 2] = [
    ("Unsplit, beside an urgent topic", (1, 5 << 20)),
    ("In segments of 256 KiB, beside an urgent topic", (20, 256 << 10)),
];
const ABOUT_2: &str = "Many small samples as fast as they can be written: each by itself, packed into larger samples by the application, or \
                       collected by the middleware (coalescing: submessages of their own; batching: one submessage, one acknowledgement).";
const ABOUT_3: &str = "The same bytes as one sample or as several smaller ones that the application sends and joins.";
const ABOUT_4: &str = "An asynchronous writer sends samples of 32 KiB over 1 Gbit/s; its flow controller grants tokens of 34 KiB every \
                       36.5 ms, which fit the paper's times within 5 %. Meanwhile an urgent topic of 100 Hz shares the processes and the link.";
const ABOUT_RECEIVER: &str =
    "A stream of small samples, as fast as the reader acknowledges: what each costs at both ends.";
const ABOUT_BESIDE: &str =
    "Large samples over 1 Gbit/s, one after the other, beside a topic of 100 Hz between the same two processes.";
/// For segments as they come, and for the small ones.
const LARGE_METHODS: [&str; 4] = ["auto", "auto, paced", "immediate", "batching"];
/// A link as the paper's.
const LINE: LinkTable = LinkTable { rate_mbit: Some(1_000.0), loss_pct: 0.0, delay_ms: 0.0 };
const LOSS_PCT: f64 = 1.0;
/// Half of 1 Gbit/s; the paper has no such cell.
const HALF_LINK_TOKENS: u32 = 65;
/// Samples of 32 KiB in a transfer of Table 4: 100 MiB.
const TRANSFER_SAMPLES: u64 = 3_200;
pub(super) const SEGMENT_BYTES: u32 = 32 << 10;
