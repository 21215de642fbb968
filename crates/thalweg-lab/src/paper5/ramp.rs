//! A law under a changing load: how far handlers fell behind, how many threads there were and how many were needed.

use super::cell::RequestLoad;
use super::observed::{PoolLine, ServerLine};
use super::result::Run;
use crate::coap_load::{Phase, Window};

/// Figures of a run under a load with phases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RampFigures {
    /// Share of the requests of the highest phase that were served, 0 to 1.
    pub(super) served: f64,
    /// Seconds after the load rose from which on all of the phase was served soon; missing when that never came.
    pub(super) caught_up_s: Option<f64>,
    /// Longest queue.
    pub(super) queue_max: u64,
    /// Threads that are busy for 80 % of the time at the highest rate, by the measured time in handlers.
    pub(super) needed: Option<f64>,
    /// Most threads.
    pub(super) threads_max: Option<u64>,
    /// Threads at the end of the highest phase.
    pub(super) threads_high: Option<u64>,
    /// Threads at the end of the run.
    pub(super) threads_end: Option<u64>,
    /// Seconds between the fall of the load and the end.
    pub(super) after_s: f64,
}

/// Phases with their beginnings in seconds.
pub(super) fn phases(load: &RequestLoad) -> Vec<(f64, Phase)> {
    let RequestLoad::Phases { phases, .. } = load else { return Vec::new() };
    let mut start = 0.0;
    let mut out = Vec::new();
    for phase in phases {
        out.push((start, *phase));
        start += phase.duration.as_secs_f64();
    }
    out
}

/// What a run shows; of the phase with the highest rate and the time after it.
pub(super) fn figures(run: &Run, load: &RequestLoad) -> Option<RampFigures> {
    let phases = phases(load);
    let (start, high) = *phases.iter().max_by(|(_, one), (_, other)| one.rate.total_cmp(&other.rate))?;
    let end = start + high.duration.as_secs_f64();
    let within = |window: &&Window| window.start_s >= start - SLACK && window.start_s < end - SLACK;
    let windows: Vec<&Window> = run.load.windows.iter().filter(within).collect();
    if windows.is_empty() {
        return None; // Too short a phase tells nothing.
    }
    let (served, offered) =
        windows.iter().fold((0, 0), |(served, offered), window| (served + window.served, offered + window.offered));
    let late = windows.iter().rposition(|window| !is_soon(window));
    let caught_up_s = match late {
        None => Some(0.0),
        Some(last) => windows.get(last + 1).map(|window| window.start_s - start),
    };
    let duration: f64 = phases.iter().map(|(_, phase)| phase.duration.as_secs_f64()).sum();
    let all = run.lines.iter().filter_map(|line| Some((line.handled_at_s(), line.busiest()?)));
    let pools: Vec<(f64, &PoolLine)> = all.filter(|(at, _)| *at <= duration).collect();
    let threads_at = |at_s: f64| pools.iter().take_while(|(at, _)| *at <= at_s).last().map(|(_, pool)| pool.threads);
    Some(RampFigures {
        served: served as f64 / (offered as f64).max(1.0),
        caught_up_s,
        queue_max: pools.iter().map(|(_, pool)| pool.queue).max().unwrap_or(0),
        needed: service_s(run).map(|seconds| high.rate * seconds / UTILISATION),
        threads_max: pools.iter().map(|(_, pool)| pool.threads).max(),
        threads_high: threads_at(end),
        threads_end: threads_at(duration),
        after_s: duration - end,
    })
}

/// Whether nearly all of what was due was answered within a tenth of a second.
fn is_soon(window: &Window) -> bool {
    let is_served = window.served as f64 >= SERVED_MIN * window.offered as f64;
    is_served && window.latency.p50_us.is_none_or(|p50| p50 <= SOON_US)
}

/// Mean time in a handler, in seconds.
fn service_s(run: &Run) -> Option<f64> {
    let pool = run.lines.last()?.busiest()?;
    (pool.completed > 0).then(|| pool.busy_s / pool.completed as f64)
}

/// Requests that came to the pools less those that were handled, since the load began: `(seconds, difference)`. What was refused or
/// dropped stays in it.
pub(super) fn behind(run: &Run) -> Vec<(f64, f64)> {
    let difference = |line: &ServerLine| {
        let [came, handled] = counts(line);
        (line.handled_at_s(), came as f64 - handled as f64)
    };
    run.lines.iter().map(difference).collect()
}

/// Rates between lines that are half a second apart or more, of requests that came to the pools and of requests that were handled.
pub(super) fn rates(run: &Run) -> Vec<(f64, [f64; 2])> {
    let mut out = Vec::new();
    let mut before = run.lines.first();
    for line in &run.lines {
        let at = line.handled_at_s();
        let Some(last) = before.filter(|last| at - last.handled_at_s() >= RATE_PERIOD_S) else { continue };
        let (now, then) = (counts(line), counts(last));
        let rate = |index: usize| now[index].saturating_sub(then[index]) as f64 / (at - last.handled_at_s());
        out.push((at, [rate(0), rate(1)]));
        before = Some(line);
    }
    out
}

/// Requests that came to the pools, and those that their handlers finished.
fn counts(line: &ServerLine) -> [u64; 2] {
    let came = |pool: &PoolLine| pool.accepted + pool.refused;
    [line.pools.iter().map(came).sum(), line.pools.iter().map(|pool| pool.completed).sum()]
}

/// Threads over time.
pub(super) fn threads(run: &Run) -> Vec<(f64, f64)> {
    run.lines.iter().filter_map(|line| Some((line.handled_at_s(), line.busiest()?.threads as f64))).collect()
}

/// Windows and phases begin at the same multiples of a second but for rounding.
const SLACK: f64 = 0.01;
const SERVED_MIN: f64 = 0.95;
const SOON_US: f64 = 100_000.0;
const RATE_PERIOD_S: f64 = 0.5;
/// The utilisation that the corrected equations aim at.
const UTILISATION: f64 = 0.8;
