//! The sections of a scenario file.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::fields::{Field, Fields, ScenarioError};
use super::matrix::{CELLS_MAX, VALUES_MAX, check_endpoints, check_volume, read_matrices};
use super::network;
use super::traffic::{check_together, flows_in, read_flows};
use super::{
    Affinity, Build, Cell, Design, Expectation, Gate, HistorySetting, HostKind, HostPlan, Precision, Process,
    ProcessModel, PublisherPhase, Qos, Quantity, ReliabilitySetting, Runs, Scenario, Schedule, Settle, Wake,
};
use crate::host::Conditions;
use crate::peers::PeerProgram;
use crate::station::Wait;

/// Reads a whole file.
pub(super) fn read(file: &str, text: &str) -> Result<Scenario, ScenarioError> {
    let keys = (
        &[
            "schema", "name", "seed", "against", "notes", "hosts", "link", "matrix", "flow", "qos", "process",
            "schedule", "expect", "system", "trace",
        ][..],
        &["paper"][..],
    );
    thalweg_settings::read(file, text, keys, read_root)
}

fn read_root(root: Fields<'_>) -> Result<Scenario, ScenarioError> {
    let schema = root.require("schema")?;
    if schema.text()? != Scenario::SCHEMA {
        return Err(schema.error(format!("this version reads {:?} only", Scenario::SCHEMA)));
    }
    let hosts = network::read_hosts(root.get("hosts"))?;
    let flow = root.get("flow");
    let mut expectations = read_expectations(root.get("expect"))?;
    let (field, cells) = match flow {
        Some(field) => {
            let (cells, own) = read_flows(&field, root.get("matrix"))?;
            expectations.extend(own);
            (field, cells)
        }
        None => {
            let field = root.require("matrix")?;
            (field, read_matrices(&field, hosts.as_ref())?)
        }
    };
    let (against, cells) = read_against(root.get("against"), cells, hosts.as_ref())?;
    let schedule = read_schedule(&root.require("schedule")?)?;
    match flow {
        Some(field) => check_together(&field, &cells[..flows_in(cells.iter())], &schedule, hosts.as_ref())?,
        None => check_volume(&field, &cells, &schedule)?,
    }
    let (qos, process) = (read_qos(root.get("qos"))?, read_process(root.get("process"))?);
    if schedule.settle != Settle::No && cells.iter().any(Cell::is_closed_loop) {
        return Err(field
            .error("settle = \"mser\" looks at response latencies, which a closed loop does not have: leave it out"));
    }
    check_endpoints(&field, &cells, (&qos, &process, hosts.as_ref()))?;
    Ok(Scenario {
        name: read_name(&root.require("name")?)?,
        seed: root.or("seed", 1, |field| field.integer(0, i64::MAX as u64))?,
        cells,
        against,
        link: network::read_link(root.get("link"), hosts.as_ref())?,
        hosts,
        qos,
        process,
        schedule,
        expectations,
        notes: root.or("notes", Vec::new(), |field| field.list(NOTES_MAX, |one| one.text().map(str::to_owned)))?,
        gate: read_gate(root.get("system"))?,
        trace: read_trace(root.get("trace"))?,
    })
}

/// The other build, and the cells of its middleware, those of each run behind their twins of that build.
fn read_against(
    field: Option<Field<'_>>,
    cells: Vec<Cell>,
    hosts: Option<&HostPlan>,
) -> Result<(Option<PathBuf>, Vec<Cell>), ScenarioError> {
    let Some(field) = field else { return Ok((None, cells)) };
    let program = PathBuf::from(field.text()?);
    if hosts.is_some_and(|plan| plan.kind != HostKind::Namespaces) {
        return Err(
            field.error("another build is compared on this machine only; other machines have programs of their own")
        );
    }
    let measured = PeerProgram::of_file(&program);
    let of_build = |run: &[Cell], build| run.iter().map(move |cell| Cell { build, ..cell.clone() }).collect::<Vec<_>>();
    let runs =
        cells.chunks(flows_in(cells.iter())).filter(|run| run.iter().all(|cell| cell.middleware.peer() == measured));
    let twins: Vec<Cell> =
        runs.flat_map(|run| [Build::Other, Build::This].map(|build| of_build(run, build)).concat()).collect();
    let name = measured.map_or("thalweg", PeerProgram::name);
    match twins.len() {
        0 => Err(field.error(format!("{} measures {name}, of which the matrix has no cell", program.display()))),
        1..=CELLS_MAX => Ok((Some(program), twins)),
        count => Err(field.error(format!("both builds make {count} cells; at most {CELLS_MAX} are allowed"))),
    }
}

pub(super) fn read_name(field: &Field<'_>) -> Result<String, ScenarioError> {
    let name = field.text()?;
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_allowed) || name.starts_with('.') {
        return Err(field.error("1 to 64 letters, digits, '-', '_' and '.' are needed, the first one no '.'"));
    }
    Ok(name.to_owned())
}

fn read_qos(field: Option<Field<'_>>) -> Result<Qos, ScenarioError> {
    let default = Qos {
        reliability: ReliabilitySetting::Reliable,
        history: HistorySetting::KeepAll(256),
        max_blocking: Duration::from_secs(10),
    };
    let Some(field) = field else { return Ok(default) };
    let planned = ["deadline_ms", "durability", "lifespan_ms", "partition"];
    let qos = field.table((&["reliability", "history", "max_blocking_ms"], &planned))?;
    Ok(Qos {
        reliability: qos.or("reliability", default.reliability, |one| one.choice(&RELIABILITY))?,
        history: qos.or("history", default.history, read_history)?,
        max_blocking: qos.or("max_blocking_ms", default.max_blocking, |one| milliseconds(one, 60_000.0))?,
    })
}

pub(super) fn read_history(field: &Field<'_>) -> Result<HistorySetting, ScenarioError> {
    let needed = "{ keep_last = N } or { keep_all = N } is needed, N samples that fit";
    if !field.is_table() {
        return Err(field.error(needed));
    }
    let table = field.table((&["keep_last", "keep_all"], &[]))?;
    match (table.get("keep_last"), table.get("keep_all")) {
        (Some(depth), None) => depth.integer(1, 100_000).map(HistorySetting::KeepLast),
        (None, Some(room)) => room.integer(1, 1_000_000).map(HistorySetting::KeepAll),
        _ => Err(field.error(needed)),
    }
}

fn read_process(field: Option<Field<'_>>) -> Result<Process, ScenarioError> {
    let default = Process {
        model: ProcessModel::PerEndpoint,
        affinity: Affinity::Free,
        wait: Wait::Listener,
        receive_buffer_bytes: None,
    };
    let Some(field) = field else { return Ok(default) };
    let process = field.table((&["model", "affinity", "wait", "receive_buffer_bytes"], &["sched"]))?;
    let models = [
        ("per-endpoint", ProcessModel::PerEndpoint),
        ("per-role", ProcessModel::PerRole),
        ("single", ProcessModel::Single),
    ];
    let waits = [("listener", Wait::Listener), ("block", Wait::Block)];
    Ok(Process {
        model: process.or("model", default.model, |one| one.choice(&models))?,
        affinity: process.or("affinity", Affinity::Free, read_affinity)?,
        wait: process.or("wait", default.wait, |one| one.choice(&waits))?,
        receive_buffer_bytes: process
            .maybe("receive_buffer_bytes", |one| one.integer(RECEIVE_BUFFER_MIN, RECEIVE_BUFFER_MAX))?,
    })
}

fn read_affinity(field: &Field<'_>) -> Result<Affinity, ScenarioError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if !field.is_table() {
        let words = [
            ("free", Affinity::Free),
            // Publishers do not take turns with who hears them, where there is a second CPU.
            ("auto", Affinity::Lists { publishers: vec![0], subscribers: (1.min(cores - 1)..cores).collect() }),
        ];
        let choice = field.choice(&[("free", 0), ("auto", 1)])?;
        let [free, auto] = words.map(|(_, affinity)| affinity);
        return Ok(if choice == 0 { free } else { auto });
    }
    let table = field.table((&["publishers", "subscribers"], &[]))?;
    let list = |key| -> Result<Vec<usize>, ScenarioError> {
        table.require(key)?.list(VALUES_MAX, |one| one.integer(0, cores - 1))
    };
    Ok(Affinity::Lists { publishers: list("publishers")?, subscribers: list("subscribers")? })
}

fn read_schedule(field: &Field<'_>) -> Result<Schedule, ScenarioError> {
    let known = [
        "seconds",
        "runs",
        "warm_up_s",
        "settle",
        "precision",
        "design",
        "in_time_ms",
        "behind_max_ms",
        "phase",
        "wake",
        "drain_s",
        "match_s",
    ];
    let schedule = field.table((&known, &["poisson", "budget_s"]))?;
    let designs = [("abba", Design::Abba), ("sequential", Design::Sequential)];
    let wakes = [("sleep", Wake::Sleep), ("spin", Wake::Spin)];
    let seconds = |key, default| -> Result<Duration, ScenarioError> {
        schedule.or(key, default, |one| one.number(0.0, 3_600.0).map(Duration::from_secs_f64))
    };
    let settles = [("no", Settle::No), ("mser", Settle::Mser)];
    Ok(Schedule {
        warm_up: seconds("warm_up_s", Duration::from_secs(1))?,
        measured: Duration::from_secs(schedule.require("seconds")?.integer(1, 86_400)?),
        settle: schedule.or("settle", Settle::No, |one| one.choice(&settles))?,
        runs: read_runs(&schedule)?,
        design: schedule.or("design", Design::Abba, |one| one.choice(&designs))?,
        in_time: schedule.maybe("in_time_ms", |one| milliseconds(one, 3_600_000.0))?,
        behind_max: schedule.or("behind_max_ms", Duration::from_secs(1), |one| milliseconds(one, 3_600_000.0))?,
        phase: schedule.or("phase", PublisherPhase::Spread, |one| one.choice(&PHASES))?,
        wake: schedule.or("wake", Wake::Sleep, |one| one.choice(&wakes))?,
        drain: seconds("drain_s", Duration::from_secs(1))?,
        matching: seconds("match_s", Duration::from_secs(30))?,
    })
}

/// A number of runs, or the least and the most of them with the precision that ends them.
fn read_runs(schedule: &Fields<'_>) -> Result<Runs, ScenarioError> {
    let field = schedule.require("runs")?;
    let precision = schedule.get("precision");
    if !field.is_table() {
        let runs = field.integer(1, 1_000)?;
        return match precision {
            Some(precision) => Err(precision.error("needs runs = { min = 8, max = 30 }, to end between them")),
            None => Ok(Runs { min: runs, max: runs, precision: Precision::default() }),
        };
    }
    let table = field.table((&["min", "max"], &[]))?;
    let min = table.require("min")?.integer(1, 1_000)?;
    let max = table.require("max")?.integer(min, 1_000)?;
    let precision =
        precision.ok_or_else(|| field.error("min and max need `precision`, which ends the runs between them"))?;
    let bounds = precision.table((&["p50", "p99"], &[]))?;
    let share = |key| -> Result<Option<f64>, ScenarioError> { bounds.maybe(key, |one| one.number(0.001, 1.0)) };
    let bounds = Precision { p50: share("p50")?, p99: share("p99")? };
    if bounds == Precision::default() {
        return Err(precision.error("p50 or p99 is needed, such as { p99 = 0.05 }"));
    }
    Ok(Runs { min, max, precision: bounds })
}

pub(super) fn read_expectations(field: Option<Field<'_>>) -> Result<Vec<Expectation>, ScenarioError> {
    let Some(field) = field else { return Ok(Vec::new()) };
    let known = Quantity::ALL.map(|(key, _)| key);
    let expect = field.table((&known, &[]))?;
    let read = |(key, value): (&str, Field<'_>)| {
        let quantity = Quantity::ALL.iter().find(|(known, _)| *known == key).map(|(_, quantity)| *quantity);
        let quantity = quantity.ok_or_else(|| value.error("unknown"))?;
        Expectation::parse(quantity, value.text()?).map_err(|reason| value.error(reason))
    };
    expect.all().into_iter().map(read).collect()
}

fn read_trace(field: Option<Field<'_>>) -> Result<Option<NonZeroU32>, ScenarioError> {
    let Some(field) = field else { return Ok(None) };
    let trace = field.table((&["layers", "sample"], &[]))?;
    let every = trace.or("sample", 100, |every| every.integer(1, 1_000_000))?;
    let layers = trace.require("layers")?.truth()?;
    Ok(NonZeroU32::new(every as u32).filter(|_| layers))
}

fn read_gate(field: Option<Field<'_>>) -> Result<Gate, ScenarioError> {
    let default = Gate { others: Conditions::OTHERS_MAX, pressure: None, bad_seconds: 0.02, attempts: 3 };
    let Some(field) = field else { return Ok(default) };
    let known = ["others_max_pct", "psi_cpu_max_pct", "bad_seconds_max_pct", "attempts"];
    let system = field.table((&known, &["require", "record"]))?;
    let share = |key| -> Result<Option<f64>, ScenarioError> {
        system.maybe(key, |one| one.number(0.0, 100.0).map(|percent| percent / 100.0))
    };
    Ok(Gate {
        others: share("others_max_pct")?.unwrap_or(default.others),
        pressure: share("psi_cpu_max_pct")?,
        bad_seconds: share("bad_seconds_max_pct")?.unwrap_or(default.bad_seconds),
        attempts: system.or("attempts", 3, |one| one.integer(1, 10))?,
    })
}

pub(super) fn milliseconds(field: &Field<'_>, max: f64) -> Result<Duration, ScenarioError> {
    field.number(0.001, max).map(|ms| Duration::from_secs_f64(ms / 1e3))
}

/// The name of a value in a scenario file.
pub(crate) fn name_in<T: PartialEq>(known: &[(&'static str, T)], value: &T) -> &'static str {
    known.iter().find(|(_, one)| one == value).map_or("", |(name, _)| name)
}

pub(super) const PHASES: [(&str, PublisherPhase); 2] =
    [("spread", PublisherPhase::Spread), ("together", PublisherPhase::Together)];
pub(crate) const RELIABILITY: [(&str, ReliabilitySetting); 2] =
    [("reliable", ReliabilitySetting::Reliable), ("best-effort", ReliabilitySetting::BestEffort)];
const NOTES_MAX: usize = 256;
/// Linux gives no socket less.
const RECEIVE_BUFFER_MIN: u64 = 2_304;
const RECEIVE_BUFFER_MAX: u64 = 1 << 30;
