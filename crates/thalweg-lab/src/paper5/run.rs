//! One run: a server, a load, and what both came to.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thalweg_coap::endpoint::Confirmability;
use thalweg_host::{monotonic_nanos, pin_to_cpu};

use super::cell::{Contender, PaperFigure, RequestLoad, ServerCell, ServerRoom};
use super::plan::{LIMIT, Paper5Plan};
use super::result::{Run, ServerUsage};
use super::server::Server;
use super::usage::{self, Meter, Moment};
use crate::agent::{Connection, WorkerOrder};
use crate::coap_load::{
    ArrivalProcess, Flood, Generator, LoadCounts, LoadPlan, LoadResult, RequestPlan, ServerFigures,
};
use crate::error::LabError;
use crate::host::{ConditionsWatch, HostFiles};
use crate::process::{Launcher, ParentPipe, Stop, Supervised, WorkerMessage};
use crate::worker::Order;

/// Settings of runs.
pub(super) struct Stage<'a> {
    pub(super) plan: &'a Paper5Plan,
    pub(super) launcher: &'a Launcher,
    pub(super) stop: &'a Stop,
    /// The machine of the clients, where it is another one.
    pub(super) clients: Option<&'a Arc<Connection>>,
}

impl Stage<'_> {
    /// Logical CPU of the generator: the last one, where it is on this machine and there is more than one.
    fn generator_cpu(&self) -> Option<usize> {
        self.plan.site.cpus.checked_sub(1).filter(|cpu| *cpu > 0 && self.clients.is_none())
    }

    /// Where clients reach a server of this machine.
    fn address(&self) -> IpAddr {
        self.clients.map_or(Ipv4Addr::LOCALHOST.into(), |agent| agent.ends().1)
    }
}

/// Logical CPUs of a server on a machine that has so `many`; none for all of them. What stands for a slower machine takes nothing of the
/// generator's.
fn server_cpus(cell: &ServerCell, many: usize, generator: Option<usize>) -> Vec<usize> {
    match (cell.room, generator) {
        (ServerRoom::Cpus(count), _) if many > 1 => (0..count).collect(),
        (ServerRoom::Quota(_), Some(generator)) if cell.figure == PaperFigure::Platforms => (0..generator).collect(),
        (ServerRoom::Cpus(_) | ServerRoom::Quota(_), _) => Vec::new(),
    }
}

/// A load for a process of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadOrder {
    plan: LoadPlan,
    cpu: Option<usize>,
}

/// Makes the load; the work of the generator's process, which says when it begins.
pub(crate) fn make_load(order: &LoadOrder, link: &ParentPipe) -> Result<LoadResult, LabError> {
    if let Some(cpu) = order.cpu {
        pin_to_cpu(cpu).map_err(LabError::here)?;
    }
    let generator = Generator::new(&order.plan)?;
    link.progress(&())?;
    generator.run(link.stop().flag())
}

/// Makes one run of `cell`; `capacity` is what its contender serves a second, where that is known.
///
/// # Errors
/// The server or the generator failed, with its reason; or the user asked to stop.
pub(super) fn make(cell: &ServerCell, round: u32, capacity: Option<f64>, stage: &Stage<'_>) -> Result<Run, LabError> {
    let watch = ConditionsWatch::start(HostFiles::here());
    let is_long = matches!(cell.load, RequestLoad::Phases { .. });
    let tells = is_long || cell.figure == PaperFigure::Pools;
    let statistics = tells.then_some(if is_long { LONG_STATISTICS } else { SHORT_STATISTICS });
    let cpus = server_cpus(cell, stage.plan.site.cpus, stage.generator_cpu());
    let mut server = Server::start((cell.contender, stage.address()), stage.launcher, statistics, &cpus, stage.stop)?;
    if matches!(cell.contender, Contender::Peer(peer, _) if peer.needs_heating()) {
        let plan = load_plan(&heating_of(cell, stage.plan), &server, None, stage.plan)?;
        let plan = LoadPlan { duration: stage.plan.times().heating, ..plan };
        let mut unused = Meter::of(server.id());
        generate(plan, &mut server, &mut unused, stage)?;
    }
    // Under the quota from its start it would compile for minutes.
    if let ServerRoom::Quota(percent) = cell.room {
        server.limit(percent)?;
    }
    let plan = load_plan(cell, &server, capacity, stage.plan)?;
    let mut meter = Meter::of(server.id());
    let (counted_from_ns, result) = generate(plan, &mut server, &mut meter, stage)?;
    check_work(&result.counts)?;
    let lines = server.finish();
    let moments = meter.moments(counted_from_ns);
    let since = |at: u64| (i128::from(at) - i128::from(counted_from_ns)) as f64 / 1e9;
    let (server, figures) = used(&moments, &result);
    Ok(Run {
        round,
        server,
        lines: lines.into_iter().map(|(at, line)| super::ServerLine { at_s: since(at), ..line }).collect(),
        load: LoadResult { server: figures, ..result },
        conditions: watch.finish(),
    })
}

/// The load that lets a virtual machine compile what `cell` is about to ask of it.
fn heating_of(cell: &ServerCell, plan: &Paper5Plan) -> ServerCell {
    ServerCell { load: plan.saturating(), ..cell.clone() }
}

/// Makes a load by a process of its own and hears it out, with samples of the server meanwhile. Also when requests began to count, on this
/// host's monotonic clock, as exactly as samples are taken.
fn generate(
    plan: LoadPlan,
    server: &mut Server,
    meter: &mut Meter,
    stage: &Stage<'_>,
) -> Result<(u64, LoadResult), LabError> {
    let patience = SETUP_PATIENCE + plan.warm_up + plan.counted() + plan.time_limit;
    let (name, warm_up) = ("load generator", plan.warm_up);
    let order = LoadOrder { plan, cpu: stage.generator_cpu() };
    let mut generator = match stage.clients {
        Some(agent) => Supervised::start_at(agent, name, WorkerOrder::CoapLoad(order))?,
        None => Supervised::start(stage.launcher, name, &Order::CoapLoad(order))?,
    };
    let mut counted_from_ns = 0;
    let deadline = Instant::now() + patience;
    let answer = loop {
        if stage.stop.is_requested() {
            return Err(LabError::Interrupted);
        }
        meter.sample();
        server.listen()?;
        match generator.try_hear()? {
            Some(WorkerMessage::Progress(_)) => counted_from_ns = monotonic_nanos() + warm_up.as_nanos() as u64,
            Some(WorkerMessage::Done(answer)) => break answer,
            Some(_) => return Err(LabError::Unexpected { process: name.to_owned() }),
            None if Instant::now() > deadline => {
                return Err(LabError::Silent {
                    process: name.to_owned(),
                    patience,
                    last_words: generator.remarks().join(" / "),
                });
            }
            None => std::thread::sleep(SAMPLE_PERIOD),
        }
    };
    meter.sample();
    server.listen()?;
    generator.finish()?;
    Ok((counted_from_ns, serde_json::from_value(answer).map_err(LabError::here)?))
}

/// Fails where the server did other work than it was asked for: it is not slow, and what it used is no measurement.
fn check_work(counts: &LoadCounts) -> Result<(), LabError> {
    // A server that has too much to do may say so.
    let is_other = |code: &str| !code.starts_with("2.") && !["4.29", "5.03", "RST"].contains(&code);
    let refused = counts.codes.iter().filter(|(code, _)| is_other(code)).map(|(_, count)| count).sum::<u64>();
    let answers = counts.served + counts.rejected + counts.wrong;
    if (refused + counts.wrong) * OTHER_WORK_PART <= answers {
        return Ok(());
    }
    let (wrong, codes) = (counts.wrong, &counts.codes);
    Err(LabError::here(format!(
        "of {answers} answers {refused} refused the request and {wrong} were wrong ({codes:?}): the server does not do what is measured"
    )))
}

/// Resources that the server used between the first and the last counted request; the second part where it lived so long.
fn used(moments: &[Moment], load: &LoadResult) -> (ServerUsage, Option<ServerFigures>) {
    let grown = |value: fn(&Moment) -> f64| {
        let at = |at_s: f64| usage::at(moments, at_s, value);
        at(load.seconds).zip(at(0.0)).map(|(to, from)| to - from)
    };
    let counted = || moments.iter().filter(|moment| moment.at_s >= 0.0);
    let has_energy = moments.iter().all(|moment| moment.energy_j.is_some()) && !moments.is_empty();
    let figures = grown(|moment| moment.cpu_s).map(|cpu_s| ServerFigures {
        cpu_s,
        served_per_cpu_s: (cpu_s > 0.0).then(|| load.counts.right_answers() as f64 / cpu_s),
        resident_kib: moments.last().map_or(0, |moment| (moment.resident_mib * 1024.0) as u64),
    });
    let usage = ServerUsage {
        resident_max_mib: counted().map(|moment| moment.resident_mib).fold(0.0, f64::max),
        threads_max: counted().map(|moment| moment.threads).max().unwrap_or(0),
        energy_j: grown(|moment| moment.energy_j.unwrap_or(0.0)).filter(|_| has_energy),
    };
    (usage, figures)
}

fn load_plan(
    cell: &ServerCell,
    server: &Server,
    capacity: Option<f64>,
    plan: &Paper5Plan,
) -> Result<LoadPlan, LabError> {
    let times = plan.times();
    let (mut bytes, mut flood) = (None, None);
    let (clients, arrival) = match &cell.load {
        RequestLoad::Closed { clients, outstanding } => (*clients, ArrivalProcess::Closed(*outstanding)),
        RequestLoad::Open { clients, rate, bytes: wanted, flood: ports } => {
            bytes = *wanted;
            flood = ports.map(|(ports, rate)| Flood { ports, rate });
            (*clients, ArrivalProcess::Rate(*rate))
        }
        RequestLoad::Overload { clients, factor } => {
            let unknown = || LabError::NoCapacity { server: cell.contender.to_string() };
            let capacity = capacity.ok_or_else(unknown)?;
            (*clients, ArrivalProcess::Rate(capacity * factor / f64::from(*clients)))
        }
        RequestLoad::Phases { clients, phases } => (*clients, ArrivalProcess::Phases(phases.clone())),
    };
    Ok(LoadPlan {
        target: server.address(),
        request: RequestPlan {
            resource: cell.handler.resource(),
            delivery: Confirmability::NonConfirmable,
            bytes,
            expected: Some(cell.handler.answer()),
        },
        clients,
        window: window(&arrival),
        arrival,
        duration: times.counted,
        warm_up: times.warm_up,
        time_limit: LIMIT,
        flood,
        server_process: None,
    })
}

/// The length of windows where rates change: a few for each phase.
fn window(arrival: &ArrivalProcess) -> Option<Duration> {
    let ArrivalProcess::Phases(phases) = arrival else { return None };
    phases.iter().map(|phase| (phase.duration / 4).clamp(WINDOW_MIN, WINDOW_MAX)).min()
}

/// Interval at which the server's usage is read.
const SAMPLE_PERIOD: Duration = Duration::from_millis(20);
/// How often ours says what it does in a long run, and in a short one.
const LONG_STATISTICS: Duration = Duration::from_millis(250);
const SHORT_STATISTICS: Duration = Duration::from_millis(100);
const WINDOW_MIN: Duration = Duration::from_millis(50);
const WINDOW_MAX: Duration = Duration::from_millis(500);
/// One answer in so many may be another than was asked for.
const OTHER_WORK_PART: u64 = 1_000;
/// A hundred thousand sockets take some seconds.
const SETUP_PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::plan::ServerSite;
    use super::*;
    use crate::length::Length;
    use crate::preset::PresetPlan as _;

    #[test]
    fn a_server_that_refuses_what_it_is_asked_for_is_no_slow_one() {
        let counts = |served, refused, busy, wrong| LoadCounts {
            served,
            rejected: refused + busy,
            wrong,
            codes: [("2.05", served), ("4.00", refused), ("4.29", busy)]
                .map(|(code, count)| (code.to_owned(), count))
                .into(),
            ..LoadCounts::default()
        };
        assert!(check_work(&counts(1_000, 1, 0, 0)).is_ok());
        assert!(check_work(&counts(10, 0, 9_000, 0)).is_ok(), "it is overloaded");
        assert!(check_work(&counts(0, 0, 0, 0)).is_ok(), "it answers nothing in time");
        assert!(check_work(&counts(1_000, 0, 0, 3)).is_err());
        let error = check_work(&counts(0, 19_456, 0, 0)).expect_err("it did nothing").to_string();
        assert!(error.contains("19456 answers 19456 refused the request") && error.contains("4.00"), "{error}");
    }

    #[test]
    fn what_stands_for_a_slower_machine_leaves_the_generator_its_processor() {
        let plan = Paper5Plan::new(Length::Usual, 1, ServerSite { cpus: 4, has_quotas: true });
        let cells = plan.cells();
        let cell = |figure, room| cells.iter().find(|cell| cell.figure == figure && cell.room == room).unwrap();
        let slower = cell(PaperFigure::Platforms, ServerRoom::Quota(25));
        assert_eq!(server_cpus(slower, 4, Some(3)), [0, 1, 2]);
        assert_eq!(server_cpus(slower, 2, Some(1)), [0]);
        assert_eq!(server_cpus(slower, 2, None), [0; 0], "the clients are elsewhere, or there is one processor");
        assert_eq!(server_cpus(cell(PaperFigure::Pools, ServerRoom::Quota(100)), 4, Some(3)), [0; 0]);
        assert_eq!(server_cpus(cell(PaperFigure::Pools, ServerRoom::Cpus(2)), 4, Some(3)), [0, 1]);
        assert_eq!(server_cpus(cell(PaperFigure::Pools, ServerRoom::Cpus(1)), 1, None), [0; 0]);
    }
}
