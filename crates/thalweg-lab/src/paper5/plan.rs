//! The plan: the paper's cells and further ones, numbers and durations of runs.

use std::time::Duration;

use thalweg_coap::scheduler::controller::ControlLaw;

use super::cell::{Contender, PaperFigure, RequestLoad, ServerCell, ServerWork};
use super::peer::{CoapPeer, Deduplication};
use crate::coap_load::Phase;
use crate::length::Length;
use crate::nearest::nearest;

/// The extent of the measurement, and its contenders.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper5Plan {
    /// Whether cells are few and short.
    pub length: Length,
    /// Factor on lengths of runs and on numbers of clients, above 0 and at most 1; smaller ones are for tests of the preset itself.
    pub scale: f64,
    /// Parts that are made.
    pub figures: Vec<PaperFigure>,
    /// Peers that take part.
    pub peers: Vec<CoapPeer>,
    /// Laws that are compared; empty for those of each figure.
    pub laws: Vec<ControlLaw>,
    /// Runs of each cell.
    pub runs: u32,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) counted: Duration,
    pub(super) warm_up: Duration,
    /// When an answer comes too late.
    pub(super) limit: Duration,
    /// Load before a run that lets a virtual machine compile what it runs, where the server has one.
    pub(super) heating: Duration,
}

impl Paper5Plan {
    /// All cells, with all peers.
    pub fn full(seed: u64) -> Paper5Plan {
        Paper5Plan {
            length: Length::Full,
            scale: 1.0,
            figures: PaperFigure::ALL.to_vec(),
            peers: CoapPeer::ALL.to_vec(),
            laws: Vec::new(),
            runs: 5,
            seed,
        }
    }

    /// Fewer and shorter cells, three runs of each as far as ten minutes carry them.
    pub fn quick(seed: u64) -> Paper5Plan {
        Paper5Plan { length: Length::Quick, runs: 3, ..Paper5Plan::full(seed) }
    }

    /// After so long no further round begins a run; `None` for no limit.
    pub(super) fn budget(&self) -> Option<Duration> {
        self.is_quick().then_some(QUICK_BUDGET)
    }

    /// All cells, in the order of the page. Overload needs capacity, which then is measured too.
    pub(super) fn cells(&self) -> Vec<ServerCell> {
        let needs_capacity = self.figures.contains(&PaperFigure::Overload);
        let is_wanted =
            |figure: &PaperFigure| self.figures.contains(figure) || *figure == PaperFigure::Capacity && needs_capacity;
        PaperFigure::ALL.into_iter().filter(is_wanted).flat_map(|figure| self.cells_of(figure)).collect()
    }

    fn cells_of(&self, figure: PaperFigure) -> Vec<ServerCell> {
        let cell =
            |contender, handler, load: &RequestLoad| ServerCell { figure, contender, handler, load: load.clone() };
        let by_law = |handlers: &[ServerWork], load: &RequestLoad| -> Vec<ServerCell> {
            let laws = self.laws_of(figure);
            let of = |handler: &ServerWork| {
                let handler = *handler;
                laws.iter().map(move |law| (Contender::Thalweg(*law), handler)).collect::<Vec<_>>()
            };
            handlers.iter().flat_map(of).map(|(contender, handler)| cell(contender, handler, load)).collect()
        };
        let by_middleware = |handler: ServerWork, loads: &[RequestLoad]| -> Vec<ServerCell> {
            let each = |load: &RequestLoad| {
                self.contenders().into_iter().map(|one| cell(one, handler, load)).collect::<Vec<_>>()
            };
            loads.iter().flat_map(each).collect()
        };
        match figure {
            PaperFigure::Pools => by_law(&POOL_HANDLERS, &self.saturating()),
            PaperFigure::Course => by_law(&[ServerWork::Blocking(1)], &self.course()),
            PaperFigure::Clients => by_middleware(ServerWork::Greeting, &self.client_loads()),
            PaperFigure::Sizes => by_middleware(ServerWork::Greeting, &self.size_loads()),
            PaperFigure::Capacity => {
                let loads = [self.saturating(), RequestLoad::Closed { clients: 1, outstanding: 1 }];
                let mut cells = by_middleware(ServerWork::Greeting, &loads);
                // As in an overload, no answers of one client leave together.
                let alone = RequestLoad::Closed { clients: self.clients(256), outstanding: 1 };
                cells.push(cell(Contender::Thalweg(ControlLaw::Vta), OVERLOADED, &alone));
                cells
            }
            PaperFigure::Overload => {
                let load = RequestLoad::Overload { clients: self.clients(1_000), factor: OVERLOAD };
                let mut cells = by_middleware(ServerWork::Greeting, std::slice::from_ref(&load));
                cells.push(cell(Contender::Thalweg(ControlLaw::Vta), OVERLOADED, &load));
                cells
            }
            PaperFigure::Flood => by_middleware(ServerWork::Greeting, &self.flood_loads()),
            PaperFigure::Ramp => {
                let mut cells = by_law(&[ServerWork::Blocking(2)], &self.ramp());
                if !self.is_quick() {
                    let peers = self.contenders().into_iter().filter(|one| !one.is_ours());
                    cells.extend(peers.map(|one| cell(one, ServerWork::Blocking(2), &self.ramp())));
                }
                cells
            }
        }
    }

    /// Thalweg as it is shipped and every variant of every peer.
    fn contenders(&self) -> Vec<Contender> {
        let of = |peer: &CoapPeer| {
            let peer = *peer;
            peer.variants().iter().map(move |variant: &Deduplication| Contender::Peer(peer, *variant))
        };
        [Contender::Thalweg(ControlLaw::Vta)].into_iter().chain(self.peers.iter().flat_map(of)).collect()
    }

    fn laws_of(&self, figure: PaperFigure) -> Vec<ControlLaw> {
        if !self.laws.is_empty() {
            return self.laws.clone();
        }
        let fixed = |sizes: &[usize]| sizes.iter().map(|size| ControlLaw::Fixed(*size)).collect::<Vec<_>>();
        let adaptive = [ControlLaw::Vta, ControlLaw::VtaPrinted, ControlLaw::VtaAuthors, ControlLaw::QueueDelay];
        let (before, sizes, after): (&[ControlLaw], &[usize], &[ControlLaw]) = match (figure, self.length) {
            (PaperFigure::Pools, Length::Full) => {
                (&[ControlLaw::Inline], &[1, 2, 3, 4, 5, 7, 10, 20, 40, 60, 80, 100, 150, 200], &[ControlLaw::Vta])
            }
            (PaperFigure::Pools, Length::Quick) => (&[ControlLaw::Inline], &[1, 2, 8, 64], &[ControlLaw::Vta]),
            (PaperFigure::Course, Length::Full) => (&[], &[1, 2, 3, 4, 5, 6, 7], &adaptive),
            (PaperFigure::Course, Length::Quick) => (&[], &[1, 4], &adaptive),
            (_, Length::Full) => (&[ControlLaw::Inline], &[2, 16], &adaptive),
            (_, Length::Quick) => (&[], &[2, 16], &adaptive),
        };
        [before.to_vec(), fixed(sizes), after.to_vec()].concat()
    }

    /// The paper has no number for "saturating"; this is the load of the capacity as well, and the one that heats.
    pub(super) fn saturating(&self) -> RequestLoad {
        RequestLoad::Closed { clients: self.clients(64), outstanding: 4 }
    }

    /// The paper's load of Figure 7 moves between 6,000 and 25,000 requests a second; a handler that blocks for 1 ms
    /// needs the paper's one to five threads at a sixth of that.
    fn course(&self) -> RequestLoad {
        let rates = [1_000.0, 2_500.0, 4_000.0, 1_500.0, 3_500.0, 600.0];
        self.phases(&rates.map(|rate| (rate, if self.is_quick() { 1.5 } else { 10.0 })))
    }

    fn ramp(&self) -> RequestLoad {
        let [before, high, after] = if self.is_quick() { [2.0, 4.0, 3.0] } else { [7.0, 9.0, 12.0] };
        self.phases(&[(RAMP_LOW, before), (RAMP_HIGH, high), (RAMP_LOW, after)])
    }

    fn phases(&self, phases: &[(f64, f64)]) -> RequestLoad {
        let phase = |(rate, seconds): &(f64, f64)| Phase {
            rate: *rate,
            duration: Duration::from_secs_f64((seconds * self.scale).max(SHORTEST)),
        };
        RequestLoad::Phases { clients: self.clients(100), phases: phases.iter().map(phase).collect() }
    }

    fn client_loads(&self) -> Vec<RequestLoad> {
        let counts: &[u32] = if self.is_quick() {
            &[100, 1_000, 10_000]
        } else {
            &[1, 10, 100, 300, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000]
        };
        let mut counts: Vec<u32> = counts.iter().map(|count| self.clients(*count)).collect();
        counts.dedup();
        counts.into_iter().map(|clients| open(clients, CLIENT_RATE)).collect()
    }

    fn size_loads(&self) -> Vec<RequestLoad> {
        let sizes: &[usize] = if self.is_quick() { &[20, 1_024] } else { &[20, 64, 128, 256, 512, 1_024] };
        let clients = self.clients(if self.is_quick() { 1_000 } else { 5_000 });
        let of = |bytes: &usize| RequestLoad::Open { clients, rate: CLIENT_RATE, bytes: Some(*bytes), flood: None };
        sizes.iter().map(of).collect()
    }

    fn flood_loads(&self) -> Vec<RequestLoad> {
        let ports = self.clients(if self.is_quick() { 10_000 } else { 100_000 });
        let clients = self.clients(100);
        [None, Some((ports, FLOOD_RATE))]
            .map(|flood| RequestLoad::Open { clients, rate: HONEST_RATE, bytes: None, flood })
            .to_vec()
    }

    /// A number of clients, scaled.
    fn clients(&self, count: u32) -> u32 {
        ((f64::from(count) * self.scale).round() as u32).max(1)
    }

    pub(super) fn times(&self) -> Times {
        let [counted, warm_up, limit, heating] =
            if self.is_quick() { [0.9, 0.2, 0.4, 3.0] } else { [10.0, 2.0, 2.0, 20.0] };
        let scaled = |seconds: f64| Duration::from_secs_f64((seconds * self.scale).max(SHORTEST));
        Times {
            counted: scaled(counted),
            warm_up: scaled(warm_up),
            limit: Duration::from_secs_f64(limit),
            heating: scaled(heating),
        }
    }

    /// How many runs a cell has: the long ones of the quick form have one.
    pub(super) fn runs_of(&self, cell: &ServerCell) -> u32 {
        match cell.load {
            RequestLoad::Phases { .. } if self.is_quick() => 1,
            _ => self.runs,
        }
    }

    /// How long a run takes, the start of the server and the wait for late answers among it.
    pub(super) fn seconds_of(&self, cell: &ServerCell) -> f64 {
        let times = self.times();
        let counted: Duration = match &cell.load {
            RequestLoad::Phases { phases, .. } => phases.iter().map(|phase| phase.duration).sum(),
            _ => times.counted,
        };
        let start = match cell.contender {
            Contender::Thalweg(_) => 0.2,
            Contender::Peer(CoapPeer::Californium, _) => 1.0 + times.heating.as_secs_f64(),
            Contender::Peer(CoapPeer::Aiocoap, _) => 1.0,
            Contender::Peer(CoapPeer::Libcoap | CoapPeer::CoapRs, _) => 0.2,
        };
        let late = if cell.contender.is_ours() { 0.0 } else { times.limit.as_secs_f64() };
        start + (counted + times.warm_up).as_secs_f64() + late
    }

    /// How long all runs take together.
    pub fn expected(&self) -> Duration {
        let cells = self.cells();
        let all = cells.iter().map(|cell| f64::from(self.runs_of(cell)) * self.seconds_of(cell)).sum();
        self.budget().unwrap_or(Duration::MAX).min(Duration::from_secs_f64(all))
    }

    /// The command that repeats the plan, its order of runs included.
    pub(super) fn command(&self) -> String {
        let usual = if self.is_quick() { Paper5Plan::quick(self.seed) } else { Paper5Plan::full(self.seed) };
        let mut out = "thalweg lab run paper5".to_owned();
        if self.is_quick() {
            out.push_str(" --quick");
        }
        out.push_str(&format!(" --seed {}", self.seed));
        let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(",") };
        if self.figures != usual.figures {
            out.push_str(&format!(" --figures {}", list(self.figures.iter().map(PaperFigure::to_string).collect())));
        }
        if self.peers != usual.peers {
            out.push_str(&format!(" --peers {}", list(self.peers.iter().map(CoapPeer::to_string).collect())));
        }
        if self.laws != usual.laws {
            out.push_str(&format!(" --laws {}", list(self.laws.iter().map(ControlLaw::to_string).collect())));
        }
        if self.runs != usual.runs {
            out.push_str(&format!(" --runs {}", self.runs));
        }
        if self.scale != 1.0 {
            out.push_str(&format!(" --scale {}", self.scale));
        }
        out
    }

    /// Whether cells are few and short.
    pub(super) fn is_quick(&self) -> bool {
        self.length == Length::Quick
    }
}

/// The law of this name.
///
/// # Errors
/// There is none; the text names the nearest one.
pub fn law_named(text: &str) -> Result<ControlLaw, String> {
    let names = ["inline", "fixed:1", "vta", "vta-printed", "vta-authors", "queue-delay"];
    text.parse().map_err(|_| {
        let guess = nearest(text, names).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
        format!("there is no law {text:?}: {guess}Known: inline, fixed:N, vta, vta-printed, vta-authors, queue-delay")
    })
}

fn open(clients: u32, rate: f64) -> RequestLoad {
    RequestLoad::Open { clients, rate, bytes: None, flood: None }
}

const POOL_HANDLERS: [ServerWork; 3] = [ServerWork::Short, ServerWork::Computing(20), ServerWork::Blocking(2)];
/// Requests a second of each of the paper's clients.
const CLIENT_RATE: f64 = 10.0;
const OVERLOAD: f64 = 2.0;
/// The greeting of Thalweg is as fast as the generator; this handler can be asked for twice of what it does.
const OVERLOADED: ServerWork = ServerWork::Computing(20);
/// Requests a second of each honest client beside a flood; a hundred of them leave every server time for the flood.
const HONEST_RATE: f64 = 20.0;
/// Requests a second of a flood: below the capacity of every server but aiocoap's, so that its ports and not its rate are what costs.
const FLOOD_RATE: f64 = 20_000.0;
pub(super) const RAMP_LOW: f64 = 1_000.0;
pub(super) const RAMP_HIGH: f64 = 6_000.0;
/// Half a minute of the ten is left for the last run, the page and peers that start slowly.
const QUICK_BUDGET: Duration = Duration::from_secs(570);
/// No part of a run is shorter, however small the scale.
const SHORTEST: f64 = 0.1;
