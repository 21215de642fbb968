//! The search before the tables: each method's parameters are tried "until the best performance", as the paper did, and every run is kept.
//!
//! Each value of a parameter is a contender of its own, the others staying at their defaults; all take turns. A value is taken where it
//! was faster than the default by 2 % in the median of the quiet rounds, and in quiet rounds that are seven of eight of all. That finds the best of parameters that
//! do not depend on each other; for others it finds a good one.

use super::plan::{self, Paper1Plan, SEGMENT_BYTES};
use crate::benchmark::{BenchmarkCellRuns, BenchmarkResult, ContenderPlan, Place, WorkPlan, WorkTask};
use crate::figures::grouped;
use crate::profile::{KindSettings, ParticipantSettings, Profile, ProfileOrigin};
use crate::station::{PackingLimits, PackingMethod, Sending};
use crate::statistics::median;
use crate::study::StudyRun;

/// Our methods, as the tables name them.
pub(super) const METHODS: [&str; 5] = ["auto", "immediate", "wrapped by the application", "coalescing", "batching"];
/// Auto with the best pause between segments.
const PACED: &str = "auto, paced";

/// Something that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    MaxBytes,
    MaxSamples,
    FlushDelay,
    WrapBytes,
    Pause,
    ReceiveBuffer,
    HeartbeatPeriod,
    MaxDatagram,
}

impl Parameter {
    fn name(self) -> &'static str {
        match self {
            Parameter::MaxBytes => "max_bytes",
            Parameter::MaxSamples => "max_samples",
            Parameter::FlushDelay => "max_flush_delay, µs",
            Parameter::WrapBytes => "bytes of a packed sample",
            Parameter::Pause => "pause between segments, µs",
            Parameter::ReceiveBuffer => "receive buffer, bytes",
            Parameter::HeartbeatPeriod => "HEARTBEAT period, µs",
            Parameter::MaxDatagram => "largest datagram, bytes",
        }
    }

    /// The values beside the default.
    fn values(self, is_quick: bool) -> &'static [u64] {
        match (self, is_quick) {
            (Parameter::MaxBytes, false) => &[4_000, 8_000, 16_000, 32_000],
            (Parameter::MaxBytes, true) => &[8_000, 24_000],
            (Parameter::MaxSamples, false) => &[16, 64, 256],
            (Parameter::MaxSamples, true) => &[64],
            (Parameter::FlushDelay, false) => &[50, 200, 5_000],
            (Parameter::FlushDelay, true) => &[100],
            (Parameter::WrapBytes, false) => &[4_000, 16_000, 32_000, 120_000],
            (Parameter::WrapBytes, true) => &[16_000],
            (Parameter::Pause, false) => &[20, 50, 100, 250],
            (Parameter::Pause, true) => &[100],
            (Parameter::ReceiveBuffer, false) => &[1 << 20, 4 << 20, 16 << 20],
            (Parameter::ReceiveBuffer, true) => &[2 << 20],
            (Parameter::HeartbeatPeriod, false) => &[2_000, 5_000, 100_000],
            (Parameter::HeartbeatPeriod, true) => &[5_000],
            (Parameter::MaxDatagram, false) => &[1_472, 8_000, 32_000],
            (Parameter::MaxDatagram, true) => &[8_000],
        }
    }

    /// The same contender with this value.
    fn set(self, to: &ContenderPlan, value: u64) -> ContenderPlan {
        let mut out = to.clone();
        let limited = |limits: &mut PackingLimits| match self {
            Parameter::MaxBytes => limits.max_bytes = value,
            Parameter::MaxSamples => limits.max_samples = Some(value),
            _ => limits.max_flush_delay_us = value,
        };
        match self {
            Parameter::WrapBytes => out.wrap_bytes = value,
            Parameter::Pause => out.pause_us = value,
            Parameter::ReceiveBuffer => out.receive_buffer_bytes = Some(value),
            Parameter::HeartbeatPeriod => out.sending.heartbeat_period_us = Some(value),
            Parameter::MaxDatagram => out.sending.max_datagram_bytes = Some(value),
            Parameter::MaxBytes | Parameter::MaxSamples | Parameter::FlushDelay => match &mut out.sending.method {
                PackingMethod::Coalesce(limits) | PackingMethod::Batch(limits) => limited(limits),
                _ => {}
            },
        }
        out
    }
}

/// What is searched of a method: `None` for small samples of any method.
const SEARCHES: [(&str, &[Parameter]); 4] = [
    ("auto", &[Parameter::ReceiveBuffer, Parameter::HeartbeatPeriod, Parameter::MaxDatagram]),
    ("wrapped by the application", &[Parameter::WrapBytes]),
    ("coalescing", &[Parameter::MaxBytes, Parameter::MaxSamples, Parameter::FlushDelay, Parameter::HeartbeatPeriod]),
    ("batching", &[Parameter::MaxBytes, Parameter::MaxSamples, Parameter::FlushDelay, Parameter::HeartbeatPeriod]),
];
/// What is searched of segments.
const SEGMENTS: [Parameter; 4] =
    [Parameter::Pause, Parameter::ReceiveBuffer, Parameter::HeartbeatPeriod, Parameter::MaxDatagram];

/// All methods with their defaults.
pub(super) fn defaults() -> Vec<ContenderPlan> {
    METHODS.into_iter().chain([PACED]).map(method).collect()
}

fn method(name: &str) -> ContenderPlan {
    let packing = match name {
        "immediate" | "wrapped by the application" => PackingMethod::Immediate,
        "coalescing" => PackingMethod::Coalesce(PackingLimits::default()),
        "batching" => PackingMethod::Batch(PackingLimits::default()),
        _ => PackingMethod::Auto,
    };
    let wrap_bytes = if name == "wrapped by the application" { WRAP_BYTES } else { 0 };
    let pause_us = if name == PACED { PAUSE_US } else { 0 };
    ContenderPlan { wrap_bytes, pause_us, ..ContenderPlan::ours(name, Sending::by(packing)) }
}

fn candidate(name: &str, parameter: Parameter, value: u64) -> String {
    format!("{name}: {} {}", parameter.name(), grouped(value))
}

/// Each method's values against its defaults.
pub(super) fn plan(plan: &Paper1Plan) -> (Vec<ContenderPlan>, Vec<WorkPlan>) {
    let n = plan.scaled(3_000);
    let small = if plan.is_quick() { vec![(n, 512)] } else { vec![(n, 256), (n, 1_024)] };
    let segments = vec![(plan.scaled(20), 256 << 10)];
    let each = if plan.is_quick() { 2 } else { 3 };
    let (mut contenders, mut works) = (Vec::new(), Vec::new());
    let all = SEARCHES.iter().map(|(name, parameters)| (*name, *name, *parameters, &small));
    for (work, name, parameters, of) in all.chain([(PIECES, "auto", &SEGMENTS[..], &segments)]) {
        let first =
            ContenderPlan { name: format!("{work}: defaults"), ..ContenderPlan { pause_us: 0, ..method(name) } };
        let mut own = vec![first.clone()];
        for parameter in parameters {
            let of = |value: &u64| ContenderPlan {
                name: candidate(work, *parameter, *value),
                ..parameter.set(&first, *value)
            };
            own.extend(parameter.values(plan.is_quick()).iter().map(of));
        }
        works.push(WorkPlan {
            name: format!("Search: {work}"),
            about: String::new(),
            contenders: own.iter().map(|one| one.name.clone()).collect(),
            place: Place::Cores,
            task: WorkTask::Bursts { of: of.clone(), each, lasting_s: plan.lasting_s() },
            expectations: Vec::new(),
        });
        contenders.extend(own);
    }
    (contenders, works)
}

/// The methods with the values that were taken.
pub(super) fn found(result: &BenchmarkResult) -> Vec<ContenderPlan> {
    let best = |work: &str, parameters: &[Parameter], start: ContenderPlan| {
        let mut out = start;
        for parameter in parameters {
            let values = parameter.values(false).iter().chain(parameter.values(true));
            let taken =
                values.filter_map(|value| Some((*value, gain(result, work, &candidate(work, *parameter, *value))?)));
            if let Some((value, _)) = taken.min_by(|a, b| a.1.total_cmp(&b.1)) {
                out = parameter.set(&out, value);
            }
        }
        out
    };
    let common = best("auto", SEARCHES[0].1, method("auto"));
    let one = |name: &str| match SEARCHES.iter().find(|(known, _)| *known == name) {
        Some((work, parameters)) => {
            let start = ContenderPlan { receive_buffer_bytes: common.receive_buffer_bytes, ..method(name) };
            best(work, parameters, start)
        }
        None => ContenderPlan { receive_buffer_bytes: common.receive_buffer_bytes, ..method(name) },
    };
    // The pause that was best, or the smallest, so that there is something to compare.
    let paced = best(PIECES, &SEGMENTS, method(PACED));
    METHODS.into_iter().map(one).chain([paced]).collect()
}

/// The candidate's time as a share of the defaults', where it is taken.
fn gain(result: &BenchmarkResult, work: &str, name: &str) -> Option<f64> {
    let work = format!("Search: {work}");
    let cells = result.of_work(&work);
    let of = |name: &str| cells.iter().filter(|cell| cell.cell.contender == name).copied().collect::<Vec<_>>();
    let (tried, first) = (of(name), cells.first().map(|cell| of(&cell.cell.contender))?);
    let rounds = result.plan.runs;
    let shares: Vec<f64> = (0..rounds).filter_map(|round| share((&tried, &first), round)).collect();
    let faster = shares.iter().filter(|share| **share < 1.0).count();
    let middle = median(&shares)?;
    (middle <= 0.98 && 8 * faster >= 7 * rounds as usize).then_some(middle)
}

/// The geometric mean over the kinds of bursts of one round, in which both were measured on a quiet machine.
fn share((tried, first): (&[&BenchmarkCellRuns], &[&BenchmarkCellRuns]), round: u32) -> Option<f64> {
    let of = |cell: &BenchmarkCellRuns| cell.run_of(round).filter(|run| !run.is_disturbed())?.time_ms;
    let logarithms = tried.iter().zip(first).map(|(tried, first)| Some((of(tried)? / of(first)?).ln()));
    let all: Vec<f64> = logarithms.collect::<Option<_>>()?;
    Some((all.iter().sum::<f64>() / all.len() as f64).exp())
}

/// The best settings, as a file that programs load.
pub(super) fn profile(found: &[ContenderPlan], part: &BenchmarkResult, tables: Option<&BenchmarkResult>) -> Profile {
    let of = |name: &str| found.iter().find(|one| one.name == name);
    let unknown = || "unknown".to_owned();
    let cells = tables.map(|tables| tables.of_work(plan::TABLE_3)).unwrap_or_default();
    let ours =
        cells.iter().filter(|cell| cell.cell.contender == "auto").filter_map(|cell| Some((cell, cell.times()?.mean)));
    let segment = ours.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(cell, _)| cell.cell.deed.load().1);
    let background = plan::asynchronous(Some(BACKGROUND_TOKENS));
    let kind = |sending: Sending, segment_bytes| Some(KindSettings { sending, segment_bytes, delivery: None });
    Profile {
        found: Some(ProfileOrigin {
            by: "thalweg lab run paper1".to_owned(),
            started_unix_s: part.started_unix_s,
            cpu: part.environment.cpu.clone().unwrap_or_else(unknown),
            kernel: part.environment.kernel.clone().unwrap_or_else(unknown),
            version: part.environment.version.clone(),
        }),
        participant: ParticipantSettings { receive_buffer_bytes: of("auto").and_then(|one| one.receive_buffer_bytes) },
        high_frequency: of("batching").and_then(|one| kind(one.sending.clone(), None)),
        large: of(PACED).and_then(|one| kind(one.sending.clone(), segment)),
        background: kind(background.sending, Some(SEGMENT_BYTES.into())),
        flow_controllers: background.flow_controller.into_iter().collect(),
        ..Profile::empty()
    }
}

/// The search for segments.
const PIECES: &str = "segments";
/// What an application packs into one sample where nothing was searched: as much as one datagram on loopback takes.
const WRAP_BYTES: u64 = 60_000;
/// The pause of paced segments where no other one was faster.
const PAUSE_US: u64 = 20;
/// The tokens of the background's flow controller in a profile: 8 % of 1 Gbit/s, which nothing else notices.
const BACKGROUND_TOKENS: u32 = 10;
