//! `[[flow]]`: several kinds of traffic in the same run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fields::{Field, Fields, ScenarioError};
use super::matrix::{
    CELLS_MAX, DELIVERIES_MAX, ENDPOINTS_MAX, RATES_HZ, crowd, read_destinations, read_loads, read_middleware,
    read_topics,
};
use super::sections::{PHASES, RELIABILITY, milliseconds, read_expectations, read_history, read_name};
use super::sending::{bucket, read_grant};
use super::{Cell, Expectation, HistorySetting, HostPlan, PublisherPhase, Schedule, Topics};
use crate::peers::CellMiddleware;
use crate::station::{Addressing, TokenBucket};

/// One of several kinds of traffic in the same run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficFlow {
    /// Its name.
    pub name: String,
    /// History of its writers and readers; missing means as the scenario's QoS says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistorySetting>,
    /// A sample is in time within this after it was due; missing means as the schedule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_time: Option<Duration>,
    /// Whether its publishers' samples are due at the same time; missing means as the schedule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PublisherPhase>,
    /// TRANSPORT_PRIORITY of its writers, 0 to 63.
    #[serde(default)]
    pub transport_priority: i32,
    /// The flow controller that its writers send by; missing means at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_controller: Option<TokenBucket>,
    /// The flow whose samples make those of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ChainStage>,
}

/// A process that takes samples of one flow and publishes one of the next for each number that all publishers of the first have sent.
/// A sample of the next flow is due when the first one that led to it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainStage {
    /// The flow that it hears, by its place among the flows.
    pub source: u32,
    /// Its number among the subscribers of that flow.
    pub subscriber: u32,
    /// CPU time that it spends on each sample.
    pub work: Duration,
}

/// The cells of all flows, one after the other, once for each middleware and destination of the matrix; and what has to hold in some.
pub(super) fn read_flows(
    field: &Field<'_>,
    matrix: Option<Field<'_>>,
) -> Result<(Vec<Cell>, Vec<Expectation>), ScenarioError> {
    let (mut flows, mut expectations) = (Vec::new(), Vec::new());
    for one in &field.list(FLOWS_MAX, |one| Ok(*one))? {
        let (flow, own) = read_flow(one, &mut flows)?;
        flows.push(flow);
        expectations.extend(own);
    }
    let (middleware, destinations) = match matrix {
        None => (vec![CellMiddleware::Thalweg], vec![Addressing::Auto]),
        Some(matrix) => {
            let matrix = matrix.table((&["middleware", "destination"], &[]))?;
            (read_middleware(matrix.get("middleware"))?, read_destinations(matrix.get("destination"))?)
        }
    };
    let ways = middleware.iter().flat_map(|one| destinations.iter().map(move |other| (*one, *other)));
    let run = |(middleware, destination)| {
        flows.iter().map(move |flow| Cell { middleware, destination, ..flow.clone() }).collect::<Vec<_>>()
    };
    let cells: Vec<Cell> = ways.flat_map(run).collect();
    match cells.iter().find(|cell| cell.middleware != CellMiddleware::Thalweg && is_shaped(cell)) {
        Some(cell) => Err(field.error(format!(
            "{cell}: transport_priority and flow_controller are Thalweg's; leave {} or them out",
            cell.middleware
        ))),
        None if cells.len() > CELLS_MAX => {
            Err(field.error(format!("this makes {} cells; at most {CELLS_MAX} are allowed", cells.len())))
        }
        None => Ok((cells, expectations)),
    }
}

/// Kinds of traffic in each run: so many cells stand one after the other before the first name comes again.
pub(crate) fn flows_in<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> usize {
    let Some(first) = cells.clone().next().filter(|cell| cell.flow.is_some()) else { return 1 };
    let again = cells.clone().skip(1).position(|cell| name_of(cell) == name_of(first));
    again.map_or_else(|| cells.count(), |place| place + 1)
}

fn read_flow(field: &Field<'_>, before: &mut [Cell]) -> Result<(Cell, Vec<Expectation>), ScenarioError> {
    let known = [
        "name",
        "payload_bytes",
        "type",
        "rate_hz",
        "publishers",
        "subscribers",
        "topics",
        "reliability",
        "history",
        "in_time_ms",
        "phase",
        "transport_priority",
        "flow_controller",
        "after",
        "work_ms",
        "expect",
    ];
    let flow = field.table((&known, &[]))?;
    let name_field = flow.require("name")?;
    let name = read_name(&name_field)?;
    if before.iter().any(|other| name_of(other) == name) {
        return Err(name_field.error("another flow has this name"));
    }
    let loads = read_loads(&flow)?;
    let [load] = loads[..] else { return Err(flow.error("a flow has one size or type: use another [[flow]]")) };
    let count = |key, default: u64, least| -> Result<u32, ScenarioError> {
        Ok(flow.or(key, default, |one| one.integer(least, ENDPOINTS_MAX))? as u32)
    };
    let subscribers = count("subscribers", 1, 0)?;
    let topics = read_topics(flow.get("topics"))?;
    let [topics] = topics[..] else { return Err(flow.error("a flow has one kind of topics")) };
    let (after, rate_hz, publishers) = match flow.get("after") {
        Some(source) => {
            let (stage, rate_hz) = read_stage(&source, &flow, before)?;
            (Some(stage), rate_hz, 1)
        }
        None => {
            if let Some(work) = flow.get("work_ms") {
                return Err(work.error("is the work of a process that hears another flow: give `after` too"));
            }
            (None, flow.require("rate_hz")?.number(*RATES_HZ.start(), *RATES_HZ.end())?, count("publishers", 1, 1)?)
        }
    };
    if topics == Topics::PerPair && publishers != subscribers {
        return Err(flow.error(format!(
            "\"per-pair\" needs as many subscribers as publishers, but there are {publishers} and {subscribers}"
        )));
    }
    let reliability = flow.maybe("reliability", |one| one.choice(&RELIABILITY))?;
    let mut expectations = read_expectations(flow.get("expect"))?;
    expectations.iter_mut().for_each(|one| one.flow = Some(name.clone()));
    let flow = TrafficFlow {
        history: flow.maybe("history", read_history)?,
        in_time: flow.maybe("in_time_ms", |one| milliseconds(one, 3_600_000.0))?,
        phase: flow.maybe("phase", |one| one.choice(&PHASES))?,
        transport_priority: flow.or("transport_priority", 0, |one| one.integer(0, 63))?,
        flow_controller: flow.maybe("flow_controller", |one| read_flow_controller(one, &name))?,
        after,
        name,
    };
    let plain = Cell::new(load, rate_hz, publishers, subscribers, topics);
    Ok((Cell { reliability, flow: Some(Box::new(flow)), ..plain }, expectations))
}

/// The process that makes the samples of a flow from those of an earlier one, which gets one more subscriber, and their rate.
fn read_stage(field: &Field<'_>, flow: &Fields<'_>, before: &mut [Cell]) -> Result<(ChainStage, f64), ScenarioError> {
    if let Some(types) = flow.get("type") {
        return Err(types.error("a process of a chain publishes octets: give `payload_bytes`"));
    }
    if let Some(other) = ["rate_hz", "publishers"].into_iter().find_map(|key| flow.get(key)) {
        return Err(other.error("not beside `after`: a sample is published for each one that the flow before sends"));
    }
    let names: Vec<(String, usize)> =
        before.iter().enumerate().map(|(place, one)| (name_of(one).to_owned(), place)).collect();
    let choices: Vec<(&str, usize)> = names.iter().map(|(name, place)| (name.as_str(), *place)).collect();
    if choices.is_empty() {
        return Err(field.error("no flow stands before this one"));
    }
    let place = field.choice(&choices)?;
    let source = &mut before[place];
    if source.topics == Topics::PerPair {
        return Err(field.error("the flow before has pairs, none of which is left for this process"));
    }
    let work = flow.or("work_ms", Duration::ZERO, |one| milliseconds(one, 60_000.0))?;
    let stage = ChainStage { source: place as u32, subscriber: source.subscribers, work };
    source.subscribers += 1;
    Ok((stage, source.rate_hz))
}

/// `{ bytes = N, period_ms = M }`: so many bytes in each period.
fn read_flow_controller(field: &Field<'_>, name: &str) -> Result<TokenBucket, ScenarioError> {
    let table = field.table((&["bytes", "period_ms"], &[]))?;
    let (bytes, period) = read_grant(&table)?;
    Ok(bucket(name, bytes, period))
}

/// Refuses what the flows of a run cannot do together.
pub(super) fn check_together(
    field: &Field<'_>,
    flows: &[Cell],
    schedule: &Schedule,
    hosts: Option<&HostPlan>,
) -> Result<(), ScenarioError> {
    if let Some(deaf) = flows.iter().find(|flow| flow.subscribers == 0) {
        return Err(field.error(format!("nobody hears the flow {:?}: give it subscribers", name_of(deaf))));
    }
    let endpoints: u64 = flows.iter().map(|flow| crowd((flow.publishers, flow.subscribers), hosts)).sum();
    if endpoints > ENDPOINTS_MAX {
        return Err(field
            .error(format!("{endpoints} endpoints are too many: a domain has room for {ENDPOINTS_MAX} on one host")));
    }
    let seconds = (schedule.warm_up + schedule.measured).as_secs_f64();
    let deliveries: f64 = flows.iter().map(|flow| flow.pairs().count() as f64 * flow.rate_hz * seconds).sum();
    if deliveries > DELIVERIES_MAX {
        return Err(field.error(format!(
            "the flows deliver {deliveries:.0} samples in one run; at most {DELIVERIES_MAX:.0} are kept: lower rate_hz, the endpoints or \
             [schedule] seconds"
        )));
    }
    match flows.iter().find(|flow| flow.rate_hz * schedule.measured.as_secs_f64() < 1.0) {
        Some(flow) => Err(field.error(format!("the flow {:?} has no sample within the measured time", name_of(flow)))),
        None => Ok(()),
    }
}

fn is_shaped(cell: &Cell) -> bool {
    cell.flow.as_ref().is_some_and(|flow| flow.transport_priority != 0 || flow.flow_controller.is_some())
}

fn name_of(cell: &Cell) -> &str {
    cell.flow.as_ref().map_or("", |flow| &flow.name)
}

/// Kinds of traffic that fit into one run and one report.
const FLOWS_MAX: usize = 32;
