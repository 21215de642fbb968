//! The plan: the paper's cells and further ones, numbers and durations of runs.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_host::{CpuQuota, Environment};

use super::cell::{Contender, PaperFigure, RequestLoad, ServerCell, ServerRoom, ServerWork};
use super::peer::{CoapPeer, Deduplication};
use crate::coap_load::Phase;
use crate::length::Length;
use crate::nearest::nearest;
use crate::preset::{PresetPlan, PresetTerms};

/// The extent of the measurement, and its contenders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper5Plan {
    /// How many and how long cells are.
    pub form: Length,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Runs of each cell that gets a verdict; the others have four at most.
    pub runs: u32,
    /// Factor on lengths of runs and on numbers of clients, above 0 and at most 1; smaller ones are for tests of the preset itself.
    pub scale: f64,
    /// Parts that are made.
    pub figures: Vec<PaperFigure>,
    /// Peers that take part.
    pub peers: Vec<CoapPeer>,
    /// Laws that are compared; empty for those of each figure.
    #[serde(serialize_with = "write_laws", deserialize_with = "read_laws")]
    pub laws: Vec<ControlLaw>,
    /// The machine of the clients as `ssh` knows it, such as `user@lab2`; missing for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_on: Option<String>,
    /// What the machine of the servers has.
    pub site: ServerSite,
}

/// What a machine offers to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSite {
    /// Logical CPUs, the last of which is the generator's.
    pub cpus: usize,
    /// Whether processor time can be limited.
    pub has_quotas: bool,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) counted: Duration,
    pub(super) warm_up: Duration,
    /// Load before a run that lets a virtual machine compile what it runs, where the server has one.
    pub(super) heating: Duration,
}

impl ServerSite {
    /// What this machine offers.
    pub fn here() -> ServerSite {
        ServerSite { cpus: Environment::read().cores, has_quotas: CpuQuota::new(50).is_ok() }
    }
}

impl Paper5Plan {
    /// All cells of a form, with all peers.
    pub fn new(form: Length, seed: u64, site: ServerSite) -> Paper5Plan {
        Paper5Plan {
            form,
            seed,
            runs: if form == Length::Quick { 3 } else { 12 },
            scale: 1.0,
            figures: PaperFigure::ALL.map(|(figure, _)| figure).to_vec(),
            peers: CoapPeer::ALL.to_vec(),
            laws: Vec::new(),
            clients_on: None,
            site,
        }
    }

    fn of_form<T>(&self, quick: T, usual: T, full: T) -> T {
        match self.form {
            Length::Quick => quick,
            Length::Usual => usual,
            Length::Full => full,
        }
    }

    fn cells_of(&self, figure: PaperFigure) -> Vec<ServerCell> {
        let alone = [ServerRoom::Cpus(1)];
        let grid = |handler, loads: &[RequestLoad], rooms: &[ServerRoom]| self.grid(figure, handler, loads, rooms);
        match figure {
            PaperFigure::Threads => {
                let rooms = [ServerRoom::Cpus(self.site.cpus.min(PAPER_CORES))];
                grid(ServerWork::Computing(100), &[self.phases(&[(12_000.0, [2.0, 4.0, 20.0])])], &rooms)
            }
            PaperFigure::Pools => {
                let of_rooms = self.pool_rooms().into_iter().flat_map(|room| {
                    let handlers: &[ServerWork] = if room == alone[0] { &POOL_HANDLERS } else { &POOL_HANDLERS[..2] };
                    handlers.iter().flat_map(move |handler| grid(*handler, &[self.saturating()], &[room]))
                });
                of_rooms.collect()
            }
            PaperFigure::Course => grid(ServerWork::Blocking(1), &[self.course()], &alone),
            PaperFigure::Clients => grid(POOLED, &self.client_loads(), &alone),
            PaperFigure::Sizes => grid(POOLED, &self.size_loads(), &alone),
            PaperFigure::Platforms => grid(POOLED, &[self.open(None)], &self.quotas()),
            PaperFigure::Capacity => {
                let loads = [self.saturating(), RequestLoad::Closed { clients: 1, outstanding: 1 }];
                // As in an overload, no answers of one client leave together.
                let pooled = RequestLoad::Closed { clients: self.clients(256), outstanding: 1 };
                [grid(ServerWork::Greeting, &loads, &alone), self.ours(grid(POOLED, &[pooled], &alone))].concat()
            }
            PaperFigure::Overload => {
                let load = [RequestLoad::Overload { clients: self.clients(1_000), factor: OVERLOAD }];
                [grid(ServerWork::Greeting, &load, &alone), self.ours(grid(POOLED, &load, &alone))].concat()
            }
            PaperFigure::Flood => grid(ServerWork::Greeting, &self.flood_loads(), &alone),
            PaperFigure::Ramp => grid(ServerWork::Blocking(2), &[self.ramp()], &alone),
        }
    }

    /// Each contender of a part with each of these loads and rooms.
    fn grid(
        &self,
        figure: PaperFigure,
        handler: ServerWork,
        loads: &[RequestLoad],
        rooms: &[ServerRoom],
    ) -> Vec<ServerCell> {
        let contenders = self.contenders(figure);
        let mut out = Vec::new();
        for (room, load) in rooms.iter().flat_map(|room| loads.iter().map(move |load| (*room, load))) {
            let cell = |contender: &Contender| ServerCell {
                figure,
                contender: *contender,
                handler,
                load: load.clone(),
                room,
                is_judged: false,
            };
            out.extend(contenders.iter().map(cell));
        }
        out
    }

    fn ours(&self, cells: Vec<ServerCell>) -> Vec<ServerCell> {
        cells.into_iter().filter(|cell| cell.contender.is_ours()).collect()
    }

    /// Thalweg with each law of a part, and the peers where it compares servers.
    fn contenders(&self, figure: PaperFigure) -> Vec<Contender> {
        let is_full = self.form == Length::Full;
        let has_peers = match figure {
            PaperFigure::Threads | PaperFigure::Pools | PaperFigure::Course => false,
            PaperFigure::Ramp => is_full,
            _ => true,
        };
        let all_variants =
            is_full || [PaperFigure::Clients, PaperFigure::Capacity, PaperFigure::Overload].contains(&figure);
        let of = |peer: &CoapPeer| {
            let (peer, variants) = (*peer, peer.variants());
            let variants = if all_variants { variants } else { &variants[..1] };
            variants.iter().map(move |variant: &Deduplication| Contender::Peer(peer, *variant))
        };
        let peers = self.peers.iter().filter(|_| has_peers).flat_map(of);
        self.laws_of(figure).into_iter().map(Contender::Thalweg).chain(peers).collect()
    }

    fn laws_of(&self, figure: PaperFigure) -> Vec<ControlLaw> {
        if !self.laws.is_empty() {
            return self.laws.clone();
        }
        let with = |before: &[ControlLaw], sizes: &[usize], after: &[ControlLaw]| {
            let sizes = sizes.iter().map(|size| ControlLaw::Fixed(*size)).collect();
            [before.to_vec(), sizes, after.to_vec()].concat()
        };
        let adaptive = [ControlLaw::Vta, ControlLaw::VtaPrinted, ControlLaw::VtaAuthors, ControlLaw::QueueDelay];
        match figure {
            PaperFigure::Threads => with(&[], &[1, 2, 4], &[]),
            PaperFigure::Pools => {
                let sizes: &[usize] = self.of_form(
                    &[1, 4, 64],
                    &[1, 2, 4, 16, 200],
                    &[1, 2, 3, 4, 5, 7, 10, 20, 40, 60, 80, 100, 150, 200],
                );
                with(&[ControlLaw::Inline], sizes, &[ControlLaw::Vta])
            }
            PaperFigure::Course => {
                with(&[], self.of_form(&[1, 4][..], &[1, 2, 4, 7], &[1, 2, 3, 4, 5, 6, 7]), &adaptive)
            }
            PaperFigure::Ramp => with(&[], &[2, 16], &adaptive),
            // MinT has as many threads as the paper's machine has cores, MinT-I follows the load.
            PaperFigure::Clients | PaperFigure::Sizes | PaperFigure::Platforms => {
                with(&[], &[PAPER_CORES], &[ControlLaw::Vta])
            }
            PaperFigure::Capacity | PaperFigure::Overload | PaperFigure::Flood => vec![ControlLaw::Vta],
        }
    }

    /// Whether a cell takes part in a comparison that gets a verdict: each figure at its saturation, so that the comparisons of the page
    /// are few enough for as many runs.
    fn is_judged(&self, cell: &ServerCell) -> bool {
        match cell.figure {
            PaperFigure::Pools => cell.handler == ServerWork::Short && cell.room == ServerRoom::Cpus(1),
            PaperFigure::Clients => self.client_loads().first() == Some(&cell.load),
            PaperFigure::Sizes => self.size_loads().last() == Some(&cell.load),
            PaperFigure::Capacity => cell.is_capacity() && cell.handler == ServerWork::Greeting,
            PaperFigure::Platforms | PaperFigure::Ramp => cell.contender.is_ours(),
            PaperFigure::Threads | PaperFigure::Course | PaperFigure::Overload | PaperFigure::Flood => false,
        }
    }

    /// Whether the server would still be compiling when the load is at its highest.
    fn is_too_young(&self, cell: &ServerCell) -> bool {
        let is_high = matches!(cell.load, RequestLoad::Open { clients, .. } if clients > 1_000);
        let compiles = matches!(cell.contender, Contender::Peer(peer, _) if peer.needs_heating());
        self.form == Length::Quick && is_high && compiles
    }

    fn pool_rooms(&self) -> Vec<ServerRoom> {
        let counts = POOL_CPUS.into_iter().filter(|count| *count <= self.site.cpus.max(1));
        let quota = self.site.has_quotas.then_some(ServerRoom::Quota(100));
        counts.map(ServerRoom::Cpus).chain(quota).collect()
    }

    /// Slower machines; the paper's others do 7 to 18 % of what its Raspberry Pi does.
    fn quotas(&self) -> Vec<ServerRoom> {
        let all = self.of_form(&[25][..], &[100, 25, 10], &[100, 50, 25, 10]);
        if self.site.has_quotas { all.iter().map(|percent| ServerRoom::Quota(*percent)).collect() } else { Vec::new() }
    }

    /// The paper has no number for "saturating"; this is the load of the capacity as well, and the one that heats.
    pub(super) fn saturating(&self) -> RequestLoad {
        RequestLoad::Closed { clients: self.clients(64), outstanding: 4 }
    }

    /// The paper's load of Figure 7 moves between 6,000 and 25,000 requests a second; a handler that blocks for 1 ms
    /// needs the paper's one to five threads at a sixth of that.
    fn course(&self) -> RequestLoad {
        let rates = [1_000.0, 2_500.0, 4_000.0, 1_500.0, 3_500.0, 600.0];
        self.phases(&rates.map(|rate| (rate, [1.5, 1.5, 10.0])))
    }

    fn ramp(&self) -> RequestLoad {
        self.phases(&[(RAMP_LOW, [1.0, 1.5, 7.0]), (RAMP_HIGH, [3.0, 3.0, 9.0]), (RAMP_LOW, [2.0, 2.5, 12.0])])
    }

    /// Rates, each with its seconds in the forms.
    fn phases(&self, phases: &[(f64, [f64; 3])]) -> RequestLoad {
        let phase = |(rate, [quick, usual, full]): &(f64, [f64; 3])| Phase {
            rate: *rate,
            duration: self.scaled(self.of_form(*quick, *usual, *full)),
        };
        RequestLoad::Phases { clients: self.clients(100), phases: phases.iter().map(phase).collect() }
    }

    /// The most clients first.
    fn client_loads(&self) -> Vec<RequestLoad> {
        let counts: &[u32] = self.of_form(
            &[10_000, 100],
            &[10_000, 3_000, 1_000, 100],
            &[10_000, 7_000, 5_000, 3_000, 2_000, 1_500, 1_000, 700, 300, 100, 10, 1],
        );
        let mut counts: Vec<u32> = counts.iter().map(|count| self.clients(*count)).collect();
        counts.dedup();
        let load = |clients| RequestLoad::Open { clients, rate: CLIENT_RATE, bytes: None, flood: None };
        counts.into_iter().map(load).collect()
    }

    fn size_loads(&self) -> Vec<RequestLoad> {
        let sizes: &[usize] = self.of_form(&[32, 1_024], &[32, 256, 1_024], &[32, 64, 128, 256, 512, 1_024]);
        sizes.iter().map(|bytes| self.open(Some(*bytes))).collect()
    }

    /// More than a pool does on one CPU, by half of the most clients.
    fn open(&self, bytes: Option<usize>) -> RequestLoad {
        RequestLoad::Open { clients: self.clients(5_000), rate: CLIENT_RATE, bytes, flood: None }
    }

    fn flood_loads(&self) -> Vec<RequestLoad> {
        let ports = self.clients(self.of_form(10_000, 100_000, 100_000));
        let clients = self.clients(100);
        [None, Some((ports, FLOOD_RATE))]
            .map(|flood| RequestLoad::Open { clients, rate: HONEST_RATE, bytes: None, flood })
            .to_vec()
    }

    /// A number of clients, scaled.
    fn clients(&self, count: u32) -> u32 {
        ((f64::from(count) * self.scale).round() as u32).max(1)
    }

    fn scaled(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64((seconds * self.scale).max(SHORTEST))
    }

    pub(super) fn times(&self) -> Times {
        let [counted, warm_up, heating] = self.of_form([0.6, 0.2, 3.0], [1.5, 0.5, 8.0], [5.0, 1.0, 20.0]);
        Times { counted: self.scaled(counted), warm_up: self.scaled(warm_up), heating: self.scaled(heating) }
    }
}

impl PresetPlan for Paper5Plan {
    type Cell = ServerCell;
    type Part = PaperFigure;
    type Peer = CoapPeer;

    const NAME: &'static str = "paper5";
    const RESULT_SCHEMA: &'static str = "thalweg.paper5/3";

    fn terms(&self) -> PresetTerms {
        let budget = self.of_form(Some(QUICK_BUDGET), Some(USUAL_BUDGET), None);
        let is_quick = self.form == Length::Quick;
        PresetTerms { seed: self.seed, runs: self.runs, scale: self.scale, is_quick, budget }
    }

    fn fault(&self) -> Option<&'static str> {
        let is_possible = self.scale > 0.0 && self.scale <= 1.0 && self.runs > 0;
        let is_destination = |text: &String| {
            // Neither part may be taken for an option by what ssh starts.
            text.split(['@', '/']).all(|part| !part.starts_with('-'))
                && !text.is_empty()
                && !text.contains(char::is_whitespace)
        };
        match &self.clients_on {
            _ if !is_possible => Some("scale has to be above 0 and at most 1, runs at least 1"),
            Some(text) if !is_destination(text) => {
                Some("clients_on has to be what ssh takes as a destination, such as user@lab2")
            }
            _ => None,
        }
    }

    fn with_seed(self, seed: u64) -> Paper5Plan {
        Paper5Plan { seed, ..self }
    }

    fn peers(&self) -> &[CoapPeer] {
        &self.peers
    }

    fn with_peers(self, peers: Vec<CoapPeer>) -> Paper5Plan {
        Paper5Plan { peers, ..self }
    }

    /// All cells, in the order of the page. Overload needs capacity, which then is measured too.
    fn cells(&self) -> Vec<ServerCell> {
        let needs_capacity = self.figures.contains(&PaperFigure::Overload);
        let is_wanted = |figure: &PaperFigure| {
            // A flood has more source ports than one address, and so needs the loopback network.
            let is_possible = self.clients_on.is_none() || *figure != PaperFigure::Flood;
            is_possible && self.figures.contains(figure) || *figure == PaperFigure::Capacity && needs_capacity
        };
        let figures = PaperFigure::ALL.into_iter().map(|(figure, _)| figure).filter(is_wanted);
        let cells = figures.flat_map(|figure| self.cells_of(figure)).filter(|cell| !self.is_too_young(cell));
        cells.map(|cell| ServerCell { is_judged: self.is_judged(&cell), ..cell }).collect()
    }

    /// How many runs a cell has: the long ones of the quick form have one.
    fn runs_of(&self, cell: &ServerCell) -> u32 {
        match cell.load {
            RequestLoad::Phases { .. } if self.form == Length::Quick => 1,
            _ if cell.is_judged => self.runs,
            _ => self.runs.min(UNJUDGED_RUNS),
        }
    }

    /// How long a run takes, the start of the server and the wait for late answers among it.
    fn seconds_of(&self, cell: &ServerCell) -> f64 {
        let times = self.times();
        let (counted, late) = match &cell.load {
            RequestLoad::Phases { phases, .. } => (phases.iter().map(|phase| phase.duration).sum(), LIMIT),
            RequestLoad::Closed { .. } => (times.counted, Duration::ZERO),
            RequestLoad::Open { .. } | RequestLoad::Overload { .. } => (times.counted, LIMIT),
        };
        let start = match cell.contender {
            Contender::Peer(CoapPeer::Californium, _) => 1.0 + times.heating.as_secs_f64(),
            Contender::Peer(CoapPeer::Aiocoap, _) => 1.0,
            _ => 0.2,
        };
        start + (counted + times.warm_up + late).as_secs_f64()
    }

    fn part_of(cell: &ServerCell) -> PaperFigure {
        cell.figure
    }

    fn left_out(&self) -> Vec<String> {
        let has = |figure: PaperFigure| self.figures.contains(&figure);
        let cpus = self.site.cpus;
        let lacking: Vec<String> =
            POOL_CPUS.into_iter().filter(|count| *count > cpus).map(|count| count.to_string()).collect();
        let mut out = Vec::new();
        if has(PaperFigure::Pools) && !lacking.is_empty() {
            out.push(format!("Figure 5 on {} CPUs: this machine has {cpus}", lacking.join(" and ")));
        }
        if (has(PaperFigure::Pools) || has(PaperFigure::Platforms)) && !self.site.has_quotas {
            out.push(
                "Figure 12 and the quota of Figure 5: control groups with the controller cpu cannot be made in /sys/fs/cgroup; be root"
                    .to_owned(),
            );
        }
        if has(PaperFigure::Flood) && self.clients_on.is_some() {
            out.push(
                "the flood: its source ports are those of the loopback network, and the clients are elsewhere"
                    .to_owned(),
            );
        }
        if self.form == Length::Quick && self.peers.iter().any(|peer| peer.needs_heating()) {
            out.push(
                "Californium at more than 1,000 clients: --quick is too short for it to compile itself".to_owned(),
            );
        }
        out
    }

    /// The command that repeats the plan, its order of runs included.
    fn command(&self) -> String {
        let usual = Paper5Plan::new(self.form, self.seed, self.site);
        let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(",") };
        let figures = list(self.figures.iter().map(|figure| figure.name().to_owned()).collect());
        let peers = list(self.peers.iter().map(CoapPeer::to_string).collect());
        let laws = list(self.laws.iter().map(ControlLaw::to_string).collect());
        let elsewhere = self.clients_on.as_ref().map_or_else(String::new, |host| format!(" --clients-on {host}"));
        let changed = [
            (true, elsewhere),
            (self.figures != usual.figures, format!(" --figures {figures}")),
            (self.peers != usual.peers, format!(" --peers {peers}")),
            (self.laws != usual.laws, format!(" --laws {laws}")),
            (self.runs != usual.runs, format!(" --runs {}", self.runs)),
            (self.scale != usual.scale, format!(" --scale {}", self.scale)),
        ];
        let words = changed.into_iter().filter_map(|(is_changed, words)| is_changed.then_some(words));
        format!("thalweg lab run paper5{} --seed {}{}", self.form.option(), self.seed, words.collect::<String>())
    }
}

fn write_laws<S: Serializer>(laws: &[ControlLaw], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(laws.iter().map(ControlLaw::to_string))
}

fn read_laws<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ControlLaw>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().map(|name| law_named(name).map_err(serde::de::Error::custom)).collect()
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

const POOL_HANDLERS: [ServerWork; 3] = [ServerWork::Short, ServerWork::Computing(20), ServerWork::Blocking(2)];
/// A handler that runs in pools and saturates one CPU at some 40,000 requests a second, below what the generator sends.
const POOLED: ServerWork = ServerWork::Computing(20);
/// Those of the paper's Raspberry Pi 3.
const PAPER_CORES: usize = 4;
/// On how many CPUs Figure 5 is made.
const POOL_CPUS: [usize; 3] = [1, 2, PAPER_CORES];
/// Requests a second of each of the paper's clients.
const CLIENT_RATE: f64 = 10.0;
const OVERLOAD: f64 = 2.0;
/// Requests a second of each honest client beside a flood; a hundred of them leave every server time for the flood.
const HONEST_RATE: f64 = 20.0;
/// Requests a second of a flood: below the capacity of every server but aiocoap's, so that its ports and not its rate are what costs.
const FLOOD_RATE: f64 = 20_000.0;
const RAMP_LOW: f64 = 1_000.0;
const RAMP_HIGH: f64 = 6_000.0;
/// Runs of a cell without a verdict.
const UNJUDGED_RUNS: u32 = 4;
/// Answers that come later than a client repeats its request (`ACK_TIMEOUT`) are of no use to anybody.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// Half a minute of the ten is left for the last run, the page and peers that start slowly.
const QUICK_BUDGET: Duration = Duration::from_secs(570);
/// A minute of the hundred is left for the last run and the page.
const USUAL_BUDGET: Duration = Duration::from_secs(99 * 60);
/// No part of a run is shorter, however small the scale.
const SHORTEST: f64 = 0.1;
