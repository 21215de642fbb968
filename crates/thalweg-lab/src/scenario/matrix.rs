//! `[matrix]`: the cells of a scenario.

use std::time::Duration;

use thalweg_lab_station::ExecutorSetting;

use super::fields::{Field, Fields, ScenarioError};
use super::sections::RELIABILITY;
use super::sending::read_sending;
use super::{Cell, CellSending, HostPlan, Load, Process, Qos, Schedule, Topics};
use crate::peers::{CellMiddleware, refusal};
use crate::station::{Addressing, Wait};

/// The cells of one `[matrix]`, or of several `[[matrix]]` one after the other.
pub(super) fn read_matrices(field: &Field<'_>, hosts: Option<&HostPlan>) -> Result<Vec<Cell>, ScenarioError> {
    let cells = field.list(CELLS_MAX, |matrix| read_cells(matrix, hosts))?.concat();
    if cells.len() > CELLS_MAX {
        return Err(field.error(format!("this makes {} cells; at most {CELLS_MAX} are allowed", cells.len())));
    }
    if cells.iter().any(Cell::is_closed_loop) {
        check_closed_loop(field, &cells)?;
    }
    let twice = cells.iter().enumerate().find(|(index, cell)| cells[..*index].contains(cell));
    match twice {
        Some((_, cell)) => Err(field.error(format!("the cell {cell} stands twice"))),
        None => Ok(cells),
    }
}

/// Refuses what closed loops have no measure in common with.
fn check_closed_loop(field: &Field<'_>, cells: &[Cell]) -> Result<(), ScenarioError> {
    if let Some(cell) = cells.iter().find(|cell| !cell.is_closed_loop()) {
        return Err(field.error(format!(
            "{cell} has a schedule and other cells have a `latency_count`; their latencies are different things: make two scenarios"
        )));
    }
    if let Some(cell) = cells.iter().find(|cell| cell.executor.is_some()) {
        return Err(field.error(format!(
            "the closed loop {cell} has no executor: its subscribers answer where they receive; leave `executor_threads` out"
        )));
    }
    match cells.iter().find(|cell| cell.topics != Topics::One) {
        Some(cell) => Err(field.error(format!(
            "the closed loop {cell} needs topics = \"one\": all subscribers answer publisher 0 in turns"
        ))),
        None => Ok(()),
    }
}

fn read_cells(field: &Field<'_>, hosts: Option<&HostPlan>) -> Result<Vec<Cell>, ScenarioError> {
    let known = [
        "middleware",
        "payload_bytes",
        "type",
        "rate_hz",
        "deliveries_hz",
        "latency_count",
        "publishers",
        "subscribers",
        "endpoints",
        "destination",
        "topics",
        "reliability",
        "sending",
        "executor_threads",
        "work_ms",
    ];
    let matrix = field.table((&known, &[]))?;
    let middleware = read_middleware(matrix.get("middleware"))?;
    let reliability = matrix
        .or("reliability", vec![None], |field| field.list(VALUES_MAX, |one| one.choice(&RELIABILITY).map(Some)))?;
    let executors = read_executors(&matrix)?;
    let loads = read_loads(&matrix)?;
    let rates = read_rates(&matrix)?;
    let endpoints = read_endpoints(&matrix, hosts)?;
    let destinations = read_destinations(matrix.get("destination"))?;
    let topics_field = matrix.get("topics");
    let topics = read_topics(topics_field)?;
    if let (Some(field), Some((publishers, subscribers))) =
        (topics_field, endpoints.iter().find(|(publishers, subscribers)| publishers != subscribers))
        && topics.contains(&Topics::PerPair)
    {
        let message = format!(
            "\"per-pair\" needs as many subscribers as publishers, but the matrix has {publishers} and {subscribers}; give \
             `endpoints` such as [\"1-1\", \"4-4\"]"
        );
        return Err(field.error(message));
    }
    let mut cells = Vec::new();
    for (publishers, subscribers) in endpoints {
        for load in &loads {
            for rate in &rates {
                for topics in &topics {
                    for destination in &destinations {
                        let cell = Cell {
                            latency_count: rate.latency_count(),
                            destination: *destination,
                            ..Cell::new(*load, 0.0, publishers, subscribers, *topics)
                        };
                        let rate_hz = rate.of_publisher(&cell);
                        if !cell.is_closed_loop() && !RATES_HZ.contains(&rate_hz) {
                            let message =
                                format!("the cell {cell} would need {rate_hz} samples a second of each publisher");
                            return Err(field.error(message));
                        }
                        let ways = reliability.iter().flat_map(|way| executors.iter().map(move |one| (*way, *one)));
                        for (reliability, executor) in ways {
                            let of = |middleware: &CellMiddleware| Cell {
                                middleware: *middleware,
                                rate_hz,
                                reliability,
                                executor,
                                ..cell.clone()
                            };
                            cells.extend(middleware.iter().map(of));
                        }
                    }
                }
            }
        }
    }
    match matrix.get("sending") {
        Some(methods) => by_methods(&methods, &cells),
        None => Ok(cells),
    }
}

/// Each of the cells by each method.
fn by_methods(methods: &Field<'_>, cells: &[Cell]) -> Result<Vec<Cell>, ScenarioError> {
    if let Some(cell) = cells.iter().find(|cell| cell.middleware != CellMiddleware::Thalweg) {
        return Err(
            methods.error(format!("{cell}: methods are Thalweg's; give other middleware a [[matrix]] of its own"))
        );
    }
    let methods = methods.list(VALUES_MAX, read_sending)?;
    let by = |cell: &Cell, sending: &CellSending| Cell { sending: Some(Box::new(sending.clone())), ..cell.clone() };
    Ok(cells.iter().flat_map(|cell| methods.iter().map(move |sending| by(cell, sending))).collect())
}

pub(super) fn read_destinations(field: Option<Field<'_>>) -> Result<Vec<Addressing>, ScenarioError> {
    let known = [("auto", Addressing::Auto), ("unicast", Addressing::Unicast), ("multicast", Addressing::Multicast)];
    field.map_or(Ok(vec![Addressing::Auto]), |field| field.list(VALUES_MAX, |one| one.choice(&known)))
}

pub(super) fn read_topics(field: Option<Field<'_>>) -> Result<Vec<Topics>, ScenarioError> {
    field.map_or(Ok(vec![Topics::One]), |field| field.list(VALUES_MAX, |one| one.choice(&Topics::NAMES)))
}

pub(super) fn read_middleware(field: Option<Field<'_>>) -> Result<Vec<CellMiddleware>, ScenarioError> {
    let Some(field) = field else { return Ok(vec![CellMiddleware::Thalweg]) };
    let names: Vec<(String, CellMiddleware)> = CellMiddleware::all().map(|one| (one.to_string(), one)).collect();
    let choices: Vec<(&str, CellMiddleware)> = names.iter().map(|(name, one)| (name.as_str(), *one)).collect();
    field.list(VALUES_MAX, |one| one.choice(&choices))
}

/// Numbers of threads with each amount of work.
fn read_executors(matrix: &Fields<'_>) -> Result<Vec<Option<ExecutorSetting>>, ScenarioError> {
    let work = matrix.get("work_ms");
    let Some(threads) = matrix.get("executor_threads") else {
        return match work {
            Some(work) => Err(work.error("is the work of an executor's threads: give `executor_threads` too")),
            None => Ok(vec![None]),
        };
    };
    let threads = threads.list(VALUES_MAX, |one| one.integer(1, EXECUTOR_THREADS_MAX))?;
    let work = work.map_or(Ok(vec![Duration::ZERO]), |work| {
        work.list(VALUES_MAX, |one| one.number(0.0, WORK_MS_MAX).map(|ms| Duration::from_secs_f64(ms / 1e3)))
    })?;
    let with = |threads: &u64| {
        let threads = *threads as u32;
        work.iter().map(move |work| Some(ExecutorSetting { threads, work: *work })).collect::<Vec<_>>()
    };
    Ok(threads.iter().flat_map(with).collect())
}

/// How often a scenario wants samples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    /// Samples a second of each publisher.
    Publisher(f64),
    /// Samples a second that all subscribers together are to get.
    Deliveries(f64),
    /// As many as the middleware takes; publisher 0 waits for the answer to the first of each so many.
    ClosedLoop(u32),
}

impl Rate {
    /// To hundredths of a hertz, which is finer than anybody reads a cell's name.
    fn of_publisher(self, cell: &Cell) -> f64 {
        match self {
            Rate::Publisher(rate_hz) => rate_hz,
            Rate::Deliveries(rate_hz) => (rate_hz / cell.pairs().count().max(1) as f64 * 100.0).round() / 100.0,
            Rate::ClosedLoop(_) => 0.0,
        }
    }

    fn latency_count(self) -> Option<u32> {
        if let Rate::ClosedLoop(count) = self { Some(count) } else { None }
    }
}

fn read_rates(matrix: &Fields<'_>) -> Result<Vec<Rate>, ScenarioError> {
    if let Some(field) = matrix.get("latency_count") {
        let open = ["rate_hz", "deliveries_hz"].into_iter().find(|key| matrix.get(key).is_some());
        return match open {
            Some(key) => Err(field.error(format!("not beside `{key}`: a closed loop writes as fast as it may"))),
            None => field.list(VALUES_MAX, |one| one.integer(1, LATENCY_COUNT_MAX).map(|n| Rate::ClosedLoop(n as u32))),
        };
    }
    match (matrix.get("rate_hz"), matrix.get("deliveries_hz")) {
        (Some(_), Some(field)) => Err(field.error("not beside `rate_hz`")),
        (_, Some(field)) => field.list(VALUES_MAX, |rate| rate.number(1.0, 10e6).map(Rate::Deliveries)),
        (_, None) => matrix
            .require("rate_hz")?
            .list(VALUES_MAX, |rate| rate.number(*RATES_HZ.start(), *RATES_HZ.end()).map(Rate::Publisher)),
    }
}

pub(super) fn read_loads(matrix: &Fields<'_>) -> Result<Vec<Load>, ScenarioError> {
    match (matrix.get("payload_bytes"), matrix.get("type")) {
        (None, None) => Err(matrix.error("\"payload_bytes\" or \"type\" is needed")),
        (bytes, types) => {
            let octets = |one: &Field<'_>| one.integer(0, PAYLOAD_MAX).map(|bytes| Load::Octets(bytes as u32));
            let mut loads =
                types.map_or(Ok(Vec::new()), |field| field.list(VALUES_MAX, |one| one.choice(&Load::TYPES)))?;
            loads.extend(bytes.map_or(Ok(Vec::new()), |field| field.list(VALUES_MAX, octets))?);
            Ok(loads)
        }
    }
}

/// Numbers of publishers and subscribers, combined or in pairs.
fn read_endpoints(matrix: &Fields<'_>, hosts: Option<&HostPlan>) -> Result<Vec<(u32, u32)>, ScenarioError> {
    let most = ENDPOINTS_MAX * hosts.map_or(1, |hosts| u64::from(hosts.count));
    let counts = |key| {
        matrix.or(key, vec![1], |field| field.list(VALUES_MAX, |one| one.integer(1, most).map(|count| count as u32)))
    };
    let Some(field) = matrix.get("endpoints") else {
        let (publishers, subscribers) = (counts("publishers")?, counts("subscribers")?);
        let all: Vec<_> =
            publishers.iter().flat_map(|one| subscribers.iter().map(move |other| (*one, *other))).collect();
        return match all.iter().map(|endpoints| crowd(*endpoints, hosts)).max() {
            Some(crowd) if crowd > ENDPOINTS_MAX => Err(matrix.error(format!(
                "{crowd} endpoints in a cell are too many: a domain has room for {ENDPOINTS_MAX} on one host"
            ))),
            _ => Ok(all),
        };
    };
    if let Some(other) = matrix.get("publishers").or_else(|| matrix.get("subscribers")) {
        return Err(other.error("not beside `endpoints`, which gives both"));
    }
    field.list(VALUES_MAX, |one| {
        let needed = || {
            one.error(format!(
                "publishers and subscribers are needed, such as \"1-7\", together up to {ENDPOINTS_MAX} on one host"
            ))
        };
        let (publishers, subscribers) = one.text()?.split_once('-').ok_or_else(needed)?;
        let count =
            |text: &str| text.trim().parse::<u32>().ok().filter(|count| (1..=most).contains(&u64::from(*count)));
        let endpoints = count(publishers).zip(count(subscribers)).ok_or_else(needed)?;
        if crowd(endpoints, hosts) <= ENDPOINTS_MAX { Ok(endpoints) } else { Err(needed()) }
    })
}

/// Endpoints on the fullest host.
pub(super) fn crowd((publishers, subscribers): (u32, u32), hosts: Option<&HostPlan>) -> u64 {
    let Some(hosts) = hosts else { return u64::from(publishers) + u64::from(subscribers) };
    let mut counts = vec![0_u64; hosts.count as usize];
    let of = (0..publishers).map(|index| hosts.of_publisher(index));
    for host in of.chain((0..subscribers).map(|index| hosts.of_subscriber(publishers, index))) {
        counts[host as usize] += 1;
    }
    counts.into_iter().max().unwrap_or(0)
}

pub(super) fn check_volume(field: &Field<'_>, cells: &[Cell], schedule: &Schedule) -> Result<(), ScenarioError> {
    let seconds = (schedule.warm_up + schedule.measured).as_secs_f64();
    for cell in cells.iter().filter(|cell| !cell.is_closed_loop()) {
        let deliveries = cell.pairs().count() as f64 * cell.rate_hz * seconds;
        if deliveries > DELIVERIES_MAX {
            return Err(field.error(format!(
                "the cell {cell} delivers {deliveries:.0} samples in one run; at most {DELIVERIES_MAX:.0} are kept: lower rate_hz, \
                 the endpoints or [schedule] seconds"
            )));
        }
        if cell.rate_hz * schedule.measured.as_secs_f64() < 1.0 {
            return Err(field.error(format!("the cell {cell} has no sample within the measured time")));
        }
    }
    Ok(())
}

/// Refuses what a middleware cannot do, and what has no single thread to do it in.
pub(super) fn check_endpoints(
    field: &Field<'_>,
    cells: &[Cell],
    (qos, process, hosts): (&Qos, &Process, Option<&HostPlan>),
) -> Result<(), ScenarioError> {
    if let Some(reason) = cells.iter().find_map(|cell| refusal(cell, qos, process, hosts)) {
        return Err(field.error(reason));
    }
    let is_shared = |cell: &&Cell| cell.topics == Topics::PerPublisher && cell.publishers > 1;
    match cells.iter().find(is_shared) {
        Some(cell) if process.wait == Wait::Block => Err(field.error(format!(
            "the cell {cell} has several subscriptions in one participant, which share the thread that receives: use wait = \"listener\""
        ))),
        _ => Ok(()),
    }
}

pub(super) const VALUES_MAX: usize = 64;
/// Cells of a scenario: more are a mistake, or too many for one report.
pub(crate) const CELLS_MAX: usize = 1_000;
/// Samples a second that a publisher can be asked for.
pub(super) const RATES_HZ: std::ops::RangeInclusive<f64> = 0.1..=100_000.0;
/// Participants of a domain that well-known ports have room for on one host (RTPS 2.5 §9.6.2).
pub(super) const ENDPOINTS_MAX: u64 = 119;
/// Perftest's own is 10,000.
const LATENCY_COUNT_MAX: u64 = 1_000_000;
/// More than any machine has CPUs for.
const EXECUTOR_THREADS_MAX: u64 = 256;
const WORK_MS_MAX: f64 = 60_000.0;
const PAYLOAD_MAX: u64 = 64 << 20;
/// Samples that one run may keep, over all pairs: 24 bytes each in memory, some 30 in the raw files.
pub(super) const DELIVERIES_MAX: f64 = 20e6;
