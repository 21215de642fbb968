//! Draws the troubles that worlds of higher seeds have beside those of lower ones.

use std::time::Duration;

use thalweg_rtps::flow_control::FlowControllerSettings;
use thalweg_rtps::qos::{History, Method, ResourceLimits};
use thalweg_rtps::rng::Rng;
use thalweg_rtps::types::SequenceNumber;

use crate::clock::HostClock;
use crate::draw::{milliseconds, pick};
use crate::lane::HostLink;
use crate::network::GroupFilter;
use crate::plan::{
    Cut, Ending, IntruderPlan, MovePlan, PathPlan, PausePlan, Plan, ProcessPlan, ReaderPlan, SplitPlan, Stamps,
    WriterPlan,
};

/// Worlds of this seed and higher ones have every kind of disturbance; lower ones are the small worlds.
pub const WIDE_SEEDS_FROM: u64 = 10_000_000;

/// Number of processes of a wide world.
pub(crate) fn draw_crowd(rng: &mut Rng) -> usize {
    match rng.chance(0.15) {
        true => 6 + rng.below(7) as usize,
        false => 2 + rng.below(4) as usize,
    }
}

/// Adds troubles to a drawn plan. Each comes seldom enough that most worlds have one or two.
pub(crate) fn draw_troubles(rng: &mut Rng, plan: &mut Plan) {
    plan.patience = Duration::from_secs(180);
    for writer in plan.topics.iter_mut().flat_map(|topic| &mut topic.writers) {
        writer.stamps = if rng.chance(0.6) { Stamps::HostClock } else { Stamps::Absent };
    }
    let large = rng.chance(0.05);
    if large {
        draw_large(rng, plan);
    }
    if rng.chance(0.2) {
        draw_links(rng, plan, large);
    }
    let short = Duration::from_secs(3 + rng.below(4));
    if rng.chance(0.3) {
        plan.processes.iter_mut().for_each(|process| process.lease_duration = short);
    }
    let lease = plan.processes[0].lease_duration;
    if plan.hosts.len() > 1 && plan.splits.is_empty() && rng.chance(0.35) {
        draw_split(rng, plan, lease);
    }
    if rng.chance(0.3) {
        draw_restart(rng, plan);
    }
    for _ in 0..pick(rng, [0, 0, 0, 1, 1, 2]) {
        draw_pause(rng, plan, lease);
    }
    if plan.hosts.len() > 1 && rng.chance(0.12) {
        let host = rng.below(plan.hosts.len() as u64) as usize;
        let told_after = Duration::from_millis(rng.below(1_500));
        plan.moves.push(MovePlan { host, at: milliseconds(300 + rng.below(3_000)), told_after });
    }
    if plan.hosts.len() > 1 && rng.chance(0.15) {
        for at in [500 + rng.below(1_000), 1_600 + rng.below(2_000)] {
            let mtu_bytes = pick(rng, [1_500, 1_400, 1_280, 900]);
            plan.paths.push(PathPlan { at: milliseconds(at), mtu_bytes });
        }
    }
    if rng.chance(0.2) {
        draw_controllers(rng, plan);
    }
    if rng.chance(0.1) {
        for process in &mut plan.processes {
            let names: &[&str] = pick(rng, [&[][..], &["a"], &["a", "b"], &["b"], &["*"]]);
            process.groups = names.iter().map(ToString::to_string).collect();
        }
    }
    if rng.chance(0.1) {
        let from = 200 + rng.below(1_000);
        plan.intruders.push(IntruderPlan {
            host: plan.hosts.len(),
            from: milliseconds(from),
            until: milliseconds(from + 500 + rng.below(4_000)),
            period: Duration::from_micros(pick(rng, [500, 5_000, 50_000])),
        });
        plan.hosts.push(HostClock::EXACT);
    }
    if rng.chance(0.04) {
        plan.weather.corruption = pick(rng, [0.001, 0.02]);
    }
    if rng.chance(0.1) {
        draw_ends_of_numbers(rng, plan);
    }
    if plan.group_filter == GroupFilter::Nothing && rng.chance(0.05) {
        plan.group_filter = GroupFilter::UserData;
    }
}

/// Counts begin shortly before they wrap, as signed or unsigned numbers; sequence numbers before their lower half overflows. An
/// intruder forges numbers that no writer reaches.
fn draw_ends_of_numbers(rng: &mut Rng, plan: &mut Plan) {
    for process in &mut plan.processes {
        process.first_count = pick(rng, [u32::MAX, i32::MAX as u32]) - rng.below(30) as u32;
    }
    for writer in plan.topics.iter_mut().flat_map(|topic| &mut topic.writers) {
        let last = pick(rng, [1, i64::from(i32::MAX), i64::from(u32::MAX)]);
        writer.first = SequenceNumber((last - rng.below(60) as i64).max(1));
    }
}

fn draw_large(rng: &mut Rng, plan: &mut Plan) {
    let writer = &mut plan.topics[0].writers[0];
    writer.payload_bytes = 400_000 + rng.below(3_000_000) as usize;
    writer.samples = 2 + rng.below(2) as u32;
    (writer.period, writer.burst) = (Duration::from_millis(100 + rng.below(400)), 1);
    writer.qos.history = History::KeepAll;
    writer.qos.resource_limits = ResourceLimits::default();
}

pub(crate) fn draw_links(rng: &mut Rng, plan: &mut Plan, large: bool) {
    let rates: [u64; 5] = if large { [20, 50, 100, 100, 1_000] } else { [2, 5, 20, 100, 1_000] };
    plan.links = plan
        .hosts
        .iter()
        .map(|_| match rng.chance(0.6) {
            true => HostLink::new(pick(rng, rates) * 1_000_000, pick(rng, [4_000, 20_000, 100_000, 1_000_000])),
            false => HostLink::UNLIMITED,
        })
        .collect();
}

fn draw_split(rng: &mut Rng, plan: &mut Plan, lease: Duration) {
    let from = 300 + rng.below(2_500);
    let hosts = 1 + rng.below((1 << plan.hosts.len().min(16)) - 2);
    let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    let most = pick(rng, [200, 2_000, 8_000]);
    let length = match rng.chance(0.4) {
        true => lease_ms + rng.below(lease_ms),
        false => 100 + rng.below(most),
    };
    let cut = pick(rng, [Cut::BothWays, Cut::FromHosts, Cut::ToHosts]);
    plan.splits.push(SplitPlan { from: milliseconds(from), until: milliseconds(from + length), hosts, cut });
}

/// A process ends and mostly starts again on the same ports, with the same endpoints.
fn draw_restart(rng: &mut Rng, plan: &mut Plan) {
    let process = rng.below(plan.processes.len() as u64) as usize;
    if plan.processes[process].ends.is_some() {
        return;
    }
    let at = plan.processes[process].starts + Duration::from_millis(500 + rng.below(2_500));
    let ending = if rng.chance(0.4) { Ending::Leaves } else { Ending::Vanishes };
    plan.processes[process].ends = Some((at, ending));
    if rng.chance(0.25) {
        return;
    }
    let most = pick(rng, [100, 4_000]);
    let starts = at + Duration::from_millis(10 + rng.below(most));
    let successor = plan.processes.len();
    let before = plan.processes[process].clone();
    plan.processes.push(ProcessPlan { starts, ends: None, succeeds: Some(process), ..before });
    for topic in &mut plan.topics {
        let writers = topic.writers.iter().filter(|writer| writer.process == process).cloned();
        let again = writers.map(|writer| WriterPlan {
            process: successor,
            created: starts,
            deleted: None,
            first_write: starts + Duration::from_millis(rng.below(500)),
            ..writer
        });
        let again: Vec<WriterPlan> = again.collect();
        let readers = topic.readers.iter().filter(|reader| reader.process == process).cloned();
        let readers: Vec<ReaderPlan> =
            readers.map(|reader| ReaderPlan { process: successor, created: starts, deleted: None, ..reader }).collect();
        topic.writers.extend(again);
        topic.readers.extend(readers);
    }
}

pub(crate) fn draw_pause(rng: &mut Rng, plan: &mut Plan, lease: Duration) {
    let process = rng.below(plan.processes.len() as u64) as usize;
    let from = plan.processes[process].starts + Duration::from_millis(100 + rng.below(3_000));
    let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
    let most = pick(rng, [100, 1_500, 5_000]);
    let length = match rng.chance(0.25) {
        true => lease_ms + rng.below(2_000),
        false => 20 + rng.below(most),
    };
    plan.pauses.push(PausePlan { process, from, until: from + Duration::from_millis(length) });
}

fn draw_controllers(rng: &mut Rng, plan: &mut Plan) {
    let large = plan.writers().any(|(_, writer)| writer.payload_bytes > 300_000);
    for process in &mut plan.processes {
        let rate = pick(rng, if large { [2_000_000, 5_000_000, 20_000_000] } else { [100_000, 500_000, 5_000_000] });
        process.controller = Some(FlowControllerSettings::bytes_per_second(rate));
    }
    for writer in plan.topics.iter_mut().flat_map(|topic| &mut topic.writers).filter(|_| rng.chance(0.5)) {
        writer.qos.transmission.method = Method::asynchronous(Plan::CONTROLLER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Fixed, draw};
    use crate::plan::SendTimes;

    /// Whether a plan has a kind of disturbance.
    type Is<'a> = &'a dyn Fn(&Plan) -> bool;

    #[test]
    fn every_kind_of_trouble_comes_about() {
        let plans: Vec<Plan> = (0..300).map(|seed| draw(WIDE_SEEDS_FROM + seed, &Fixed::default())).collect();
        let count = |is: Is<'_>| plans.iter().filter(|plan| is(plan)).count();
        let kinds: [(&str, Is<'_>); 15] = [
            ("links", &|plan| plan.links.iter().any(|link| *link != HostLink::UNLIMITED)),
            ("one-way splits", &|plan| plan.splits.iter().any(|split| split.cut != Cut::BothWays)),
            ("splits beyond the lease", &|plan| {
                plan.splits.iter().any(|split| split.until.since(split.from) > plan.processes[0].lease_duration)
            }),
            ("restarts", &|plan| plan.processes.iter().any(|process| process.succeeds.is_some())),
            ("pauses", &|plan| !plan.pauses.is_empty()),
            ("moves", &|plan| !plan.moves.is_empty()),
            ("narrow paths", &|plan| plan.paths.iter().any(|path| path.mtu_bytes < 1_500)),
            ("controllers", &|plan| plan.processes.iter().any(|process| process.controller.is_some())),
            ("groups", &|plan| plan.processes.iter().any(|process| !process.groups.is_empty())),
            ("intruders", &|plan| !plan.intruders.is_empty()),
            ("corruption", &|plan| plan.weather.corruption > 0.0),
            ("ends of numbers", &|plan| plan.processes[0].first_count > 1),
            ("crowds", &|plan| plan.processes.len() > 6),
            ("lasting sends", &|plan| plan.processes[0].sends != SendTimes::NONE),
            ("households", &|plan| (1..plan.processes.len()).any(|number| plan.are_housemates(0, number))),
        ];
        for (name, is) in kinds {
            assert!((5..200).contains(&count(is)), "{} of 300 worlds have {name}", count(is));
        }
        let old = draw(WIDE_SEEDS_FROM - 1, &Fixed::default());
        assert!(old.pauses.is_empty() && old.links.is_empty() && old.intruders.is_empty());
    }
}
