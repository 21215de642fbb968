//! The course of the preset: searches, then the tables, all put together.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::background;
use super::bursts::{Course, TRIAL_SECONDS};
use super::contender::{Contender, Kind, MethodName, Stage};
use super::outlook::{Outlook, Table};
use super::plan::{LinkKind, Paper1Plan, SEGMENT_BYTES, UNLIMITED};
use super::result::{BurstRuns, ContenderFacts, Missing, NEVER_READY, Paper1Facts, Paper1Result};
use super::search::{Search, Settings};
use crate::bursts::BurstParty;
use crate::error::LabError;
use crate::host::{ConditionsWatch, Environment, HostFiles};
use crate::peers::{PeerProfile, PeerProgram};
use crate::process::{Launcher, Stop};
use crate::profile::{KindSettings, ParticipantSettings, Profile, ProfileOrigin};
use crate::progress::Pace;
use crate::station::{PackingMethod, Sending, TokenBucket};
use thalweg_base::rng::Rng;

/// Runs the preset with processes started by `launcher`; progress goes to standard error, loud words about what is missing by `remark`.
///
/// # Errors
/// `stop` was requested, or nothing at all could be measured. What a single contender could not do stands in the result.
pub fn run(
    plan: &Paper1Plan,
    launcher: &Launcher,
    stop: &Stop,
    remark: &dyn Fn(&str),
) -> Result<Paper1Result, LabError> {
    let started = Instant::now();
    let started_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let environment = Environment::read();
    let watch = ConditionsWatch::start(HostFiles::here());
    // Pinned alike, one core for all writers and one for all readers; with a single core there is nothing to choose.
    let cpus = (environment.cores >= 2).then_some((0, 1));
    let mut missing = Vec::new();
    let peers = peers_of(plan, &mut missing);
    missing.iter().for_each(|one: &Missing| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    let mut course = Course {
        plan,
        stage: Stage { launcher, stop, cpus },
        shuffle: Rng::new(plan.seed),
        search_pace: Pace::new(search_seconds(plan)),
        outlook: outlook(plan, &peers),
        background: Duration::from_secs_f64(if plan.has_table(4) { background::seconds(plan) } else { 0.0 }),
        first_orders: Vec::new(),
    };
    let found = Findings::search(&mut course)?;
    let mut contenders: Vec<Contender> = found.small().into_iter().chain(peers.clone().into_iter().map(peer)).collect();
    let high_frequency = match plan.has_table(2) {
        true => course.table("Table 2", &plan.high_frequency(), &mut contenders)?,
        false => Vec::new(),
    };
    let mut facts: Vec<ContenderFacts> = contenders.drain(..).map(facts_of).collect();
    let mut large_contenders: Vec<Contender> = found.large().into_iter().chain(peers.into_iter().map(peer)).collect();
    let large = match plan.has_table(3) {
        true => course.table("Table 3", &plan.large(), &mut large_contenders)?,
        false => Vec::new(),
    };
    large_contenders.drain(..).for_each(|contender| add_facts(&mut facts, facts_of(contender)));
    let told = missing.len();
    let Course { stage, first_orders, .. } = course;
    let background = match plan.has_table(4) {
        true => background::table(plan, &stage, &mut missing)?,
        false => Vec::new(),
    };
    missing[told..].iter().for_each(|one| remark(&format!("{}: {}; {}", one.what, one.why, one.remedy)));
    if high_frequency.is_empty() && large.is_empty() && background.is_empty() {
        let reasons: Vec<String> = facts.iter().flat_map(|fact| fact.failures.iter().cloned()).collect();
        return Err(LabError::Here(format!("nothing could be measured: {}", reasons.join("; "))));
    }
    let profile = found.profile(&environment, started_unix_s, &large);
    Ok(Paper1Result {
        schema: Paper1Result::SCHEMA.to_owned(),
        course: course_facts(plan, (started_unix_s, started), cpus, first_orders),
        environment,
        conditions: watch.finish(),
        contenders: facts,
        missing,
        searches: found.searches,
        high_frequency,
        large,
        background,
        profile,
    })
}

/// How long a plan takes on a quiet machine, slow contenders not counted, and the peers that it asks for and that are not there.
pub fn expected(plan: &Paper1Plan) -> (Duration, Vec<Missing>) {
    let mut missing = Vec::new();
    let peers = peers_of(plan, &mut missing);
    let background = if plan.has_table(4) { background::seconds(plan) } else { 0.0 };
    let seconds = search_seconds(plan) + outlook(plan, &peers).rest().as_secs_f64() + background;
    (Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX), missing)
}

/// Of all searches together.
fn search_seconds(plan: &Paper1Plan) -> f64 {
    TRIAL_SECONDS * if plan.is_quick() { 20.0 } else { 60.0 }
}

/// How the result was made, from its start in seconds since 1970 and on the clock of this process.
fn course_facts(
    plan: &Paper1Plan,
    (started_unix_s, started): (u64, Instant),
    cpus: Option<(usize, usize)>,
    first_orders: Vec<Vec<String>>,
) -> Paper1Facts {
    Paper1Facts {
        command: command(plan),
        started_unix_s,
        seconds: started.elapsed().as_secs_f64(),
        seed: plan.seed,
        runs: plan.runs,
        scale: plan.scale,
        cpus,
        link: match plan.link {
            LinkKind::Tbf => "1 Gbit/s between two network namespaces (veth, tbf)".to_owned(),
            LinkKind::Loopback => "loopback without a limit".to_owned(),
        },
        first_orders,
    }
}

/// The command that repeats a plan, its order of turns included.
fn command(plan: &Paper1Plan) -> String {
    let mut out = "thalweg lab run paper1".to_owned();
    if plan.is_quick() {
        out.push_str(" --quick");
    }
    out.push_str(&format!(" --seed {}", plan.seed));
    let usual = if plan.is_quick() { Paper1Plan::quick(plan.seed) } else { Paper1Plan::full(plan.seed) };
    if plan.runs != usual.runs {
        out.push_str(&format!(" --runs {}", plan.runs));
    }
    if plan.peers != usual.peers {
        let peers = if plan.peers.is_empty() { "none".to_owned() } else { plan.peers.join(",") };
        out.push_str(&format!(" --peers {peers}"));
    }
    if plan.tables != usual.tables {
        out.push_str(&format!(" --tables {}", plan.tables.iter().map(u8::to_string).collect::<Vec<_>>().join(",")));
    }
    if plan.tokens != usual.tokens {
        let text = |tokens: &Option<u32>| tokens.map_or_else(|| UNLIMITED.to_owned(), |tokens| tokens.to_string());
        out.push_str(&format!(" --tokens {}", plan.tokens.iter().map(text).collect::<Vec<_>>().join(",")));
    }
    if plan.link == LinkKind::Loopback {
        out.push_str(" --link loopback");
    }
    if plan.scale != 1.0 {
        out.push_str(&format!(" --scale {}", plan.scale));
    }
    out
}

/// The turns to come, with those of our contenders that no search decides about.
fn outlook(plan: &Paper1Plan, peers: &[(String, BurstParty)]) -> Outlook {
    let tables = [
        (2, plan.high_frequency().len(), MethodName::ALL.as_slice()),
        (3, plan.large().len(), LARGE_METHODS.as_slice()),
    ];
    let table = |(_, cells, methods): (u8, usize, &[MethodName])| {
        let ours = methods.iter().map(|method| ours(*method));
        Table { contenders: ours.chain(peers.iter().map(|(name, _)| name.clone())).collect(), cells }
    };
    let ahead = tables.into_iter().filter(|(number, ..)| plan.has_table(*number)).map(table).collect();
    Outlook::new(ahead, plan.rounds())
}

/// Name of our contender with this method.
fn ours(method: MethodName) -> String {
    format!("Thalweg {}", method.text())
}

/// Launchers of each profile of each present peer; `missing` lists the others.
fn peers_of(plan: &Paper1Plan, missing: &mut Vec<Missing>) -> Vec<(String, BurstParty)> {
    let mut out = Vec::new();
    for name in &plan.peers {
        let Some(program) = PeerProgram::parse(name).and_then(|peer| peer.find(plan.peer_folder.as_deref())) else {
            missing.push(Missing {
                what: format!("the peer {name}"),
                why: format!("its program {name}-perf is not there"),
                remedy: format!(
                    "set it up with `thalweg lab peers install {name}`, or name its folder with --peer-dir"
                ),
            });
            continue;
        };
        for profile in PeerProfile::ALL.map(PeerProfile::name) {
            let party = BurstParty::Peer {
                program: program.clone(),
                profile: profile.to_owned(),
                // Every pair in a domain of its own: others must not answer for it.
                domain: PEER_DOMAIN_FIRST + out.len() as u32,
                size_max: 6 << 20,
            };
            out.push((format!("{name} {profile}"), party));
        }
    }
    out
}

fn peer((name, party): (String, BurstParty)) -> Contender {
    Contender::peer(name, party)
}

fn facts_of(contender: Contender) -> ContenderFacts {
    let configuration = match &contender.kind {
        Kind::Ours(way) => format!("{}; {}", way.sending(), way.settings.beside_limits().to_text()),
        Kind::Peer(_) => contender.version.clone().unwrap_or_else(|| NEVER_READY.to_owned()),
    };
    let is_ours = contender.is_ours();
    ContenderFacts { name: contender.name, is_ours, configuration, failures: contender.failures }
}

/// Adds a contender of another table to those known, or its failures to its namesake's.
fn add_facts(facts: &mut Vec<ContenderFacts>, more: ContenderFacts) {
    match facts.iter_mut().find(|known| known.name == more.name && known.configuration == more.configuration) {
        Some(known) => known.failures.extend(more.failures),
        None => facts.push(more),
    }
}

/// Results of the searches.
struct Findings {
    searches: Vec<Search>,
    receive_buffer: Settings,
    pause: Settings,
    by_method: Vec<(MethodName, Settings)>,
}

impl Findings {
    /// Searches the parameters common to all methods first, then those of each.
    fn search(course: &mut Course<'_>) -> Result<Findings, LabError> {
        let plan = course.plan;
        let bursts = plan.search_bursts();
        let mut searches = Vec::new();
        let common = course.search(MethodName::Auto, &Settings::default(), &[plan.receive_buffers()], &bursts)?;
        let receive_buffer = common.best.clone();
        searches.push(common);
        let mut by_method = Vec::new();
        for method in MethodName::ALL {
            let grids = match method {
                MethodName::Immediate | MethodName::Auto => Vec::new(),
                MethodName::Wrapped => plan.wraps(),
                MethodName::Coalescing => plan.limits(false),
                MethodName::Batching => plan.limits(true),
            };
            let best = if grids.is_empty() || !plan.has_table(2) && method != MethodName::Batching {
                receive_buffer.clone()
            } else {
                let found = course.search(method, &receive_buffer, &grids, &bursts)?;
                let best = found.best.clone();
                searches.push(found);
                best
            };
            by_method.push((method, best));
        }
        let mut pause = receive_buffer.clone();
        if plan.has_table(3) {
            let mut found =
                course.search(MethodName::Auto, &receive_buffer, &plan.pauses(), &[plan.segment_search_burst()])?;
            found.subject = "Thalweg auto, segments of large data".to_owned();
            pause = found.best.clone();
            searches.push(found);
        }
        Ok(Findings { searches, receive_buffer, pause, by_method })
    }

    fn of(&self, method: MethodName) -> Settings {
        let known = self.by_method.iter().find(|(known, _)| *known == method);
        known.map(|(_, settings)| settings.clone()).unwrap_or_default()
    }

    /// Our contenders for Table 2.
    fn small(&self) -> Vec<Contender> {
        let one =
            |(method, settings): &(MethodName, Settings)| Contender::ours(ours(*method), *method, settings.clone());
        self.by_method.iter().map(one).collect()
    }

    /// Our contenders for Table 3.
    fn large(&self) -> Vec<Contender> {
        let mut out = Vec::new();
        if self.pause.pause_us() > 0 {
            let name = format!("Thalweg auto, paced by {} µs", self.pause.pause_us());
            out.push(Contender::ours(name, MethodName::Auto, self.pause.clone()));
        }
        for method in LARGE_METHODS {
            out.push(Contender::ours(ours(method), method, self.of(method)));
        }
        out
    }

    /// The best settings, as a file that programs load.
    fn profile(&self, environment: &Environment, started_unix_s: u64, large: &[BurstRuns]) -> Profile {
        let unknown = || "unknown".to_owned();
        let batching = Contender::ours("", MethodName::Batching, self.of(MethodName::Batching));
        let high_frequency = match &batching.kind {
            Kind::Ours(way) => way.sending(),
            Kind::Peer(_) => Sending::default(),
        };
        let ours = large.iter().filter(|cell| cell.contender.starts_with("Thalweg auto"));
        let segment = ours.min_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean)).map(|cell| cell.size);
        let bucket = TokenBucket::of_paper(Some(BACKGROUND_TOKENS));
        Profile {
            found: Some(ProfileOrigin {
                by: "thalweg lab run paper1".to_owned(),
                started_unix_s,
                cpu: environment.cpu.clone().unwrap_or_else(unknown),
                kernel: environment.kernel.clone().unwrap_or_else(unknown),
                version: environment.version.clone(),
            }),
            participant: ParticipantSettings { receive_buffer_bytes: self.receive_buffer.receive_buffer_bytes() },
            high_frequency: Some(KindSettings { sending: high_frequency, segment_bytes: None }),
            large: Some(KindSettings { sending: Sending::default(), segment_bytes: segment }),
            background: Some(KindSettings {
                sending: Sending::by(PackingMethod::Asynchronous { flow_controller: bucket.name.clone() }),
                segment_bytes: Some(SEGMENT_BYTES),
            }),
            flow_controllers: vec![bucket],
            ..Profile::empty()
        }
    }
}

/// For segments as they come, and for the small ones.
const LARGE_METHODS: [MethodName; 3] = [MethodName::Auto, MethodName::Immediate, MethodName::Batching];
/// The first domain of peers; ours keep apart by a domain tag.
const PEER_DOMAIN_FIRST: u32 = 150;
/// The tokens of the background's flow controller in a profile: 7 % of 1 Gbit/s, which nothing else notices.
const BACKGROUND_TOKENS: u32 = 10;
