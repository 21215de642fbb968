//! Table 4: a bulk transfer under a flow controller over a link of 1 Gbit/s, and its effect on an urgent topic.

use std::time::Duration;

use super::contender::Stage;
use super::plan::{LinkKind, Paper1Plan, SEGMENT_BYTES};
use super::result::{BackgroundCell, Missing};
use crate::error::LabError;
use crate::network::Hosts;
use crate::progress::{Pace, Progress};
use crate::quick::duel::{Course, DuelOrder, Dueled};
use crate::quick::sorted::{Sorted, transfers_ms};
use crate::scenario::LinkPlan;
use crate::station::{PackingMethod, Sending, StationNetwork, TokenBucket};
use crate::statistics::Summary;

/// The cells of the table; `missing` lists those that could not be made.
pub(super) fn table(
    plan: &Paper1Plan,
    stage: &Stage<'_>,
    missing: &mut Vec<Missing>,
) -> Result<Vec<BackgroundCell>, LabError> {
    let link = match plan.link {
        LinkKind::Loopback => None,
        LinkKind::Tbf => match Hosts::new(2, &LinkPlan { rate_mbit: Some(LINK_MBIT), ..LinkPlan::default() }) {
            Ok(link) => Some(link),
            Err(error) => {
                missing.push(Missing {
                    what: "Table 4, every cell".to_owned(),
                    why: format!("no link of 1 Gbit/s: {error}"),
                    remedy: "run as root with iproute2 installed, or measure over loopback with --link loopback"
                        .to_owned(),
                });
                return Ok(Vec::new());
            }
        },
    };
    let mut pace = Pace::new(seconds(plan));
    let mut progress = Progress::new("Table 4");
    let mut out = Vec::new();
    for tokens in &plan.tokens {
        let bucket = TokenBucket::of_paper(*tokens);
        let seconds = expected_seconds(plan, &bucket);
        progress.rest(pace.rest());
        progress.show(&bucket.name, 0, 1);
        match cell(plan, stage, link.as_ref(), &bucket) {
            Ok(cell) => out.push(cell),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => missing.push(Missing {
                what: format!("Table 4, {}", bucket.name),
                why: error.to_string(),
                remedy: "none known; please report this".to_owned(),
            }),
        }
        pace.advance(seconds);
    }
    progress.finish();
    Ok(out)
}

/// Approximate time of all cells.
pub(super) fn seconds(plan: &Paper1Plan) -> f64 {
    plan.tokens.iter().map(|tokens| expected_seconds(plan, &TokenBucket::of_paper(*tokens))).sum()
}

fn expected_seconds(plan: &Paper1Plan, bucket: &TokenBucket) -> f64 {
    let pause = plan.transfer_pause().as_secs_f64();
    let one = transfer_seconds(plan, bucket) + pause;
    let most = plan.transfers_time().as_secs_f64() + one;
    1.0 + pause + (plan.runs as f64 * one).min(most)
}

fn transfer_seconds(plan: &Paper1Plan, bucket: &TokenBucket) -> f64 {
    let bytes = (plan.transfer_samples() * SEGMENT_BYTES) as f64;
    let link = BITS_PER_SECOND / 8.0;
    bytes / bucket.bytes_per_second().unwrap_or(link).min(link)
}

/// The transfers of one cell with the topic in a hurry beside them.
fn cell(
    plan: &Paper1Plan,
    stage: &Stage<'_>,
    link: Option<&Hosts>,
    bucket: &TokenBucket,
) -> Result<BackgroundCell, LabError> {
    let transfer = Duration::from_secs_f64(transfer_seconds(plan, bucket));
    let patience = 2 * transfer + Duration::from_secs(20);
    let order = DuelOrder {
        network: StationNetwork::apart(0),
        period: PERIOD,
        course: Course::Transfers { count: plan.runs, pause: plan.transfer_pause(), time_max: plan.transfers_time() },
        bulk: Sending::by(PackingMethod::Asynchronous { flow_controller: bucket.name.clone() }),
        flow_controller: Some(bucket.clone()),
        // A whole transfer: a write of background data never waits.
        bulk_history: u32::try_from(plan.transfer_samples() + 64).map_err(LabError::here)?,
        patience,
        transfer_samples: plan.transfer_samples(),
        sample_bytes: SEGMENT_BYTES,
    };
    let on = |host| link.map_or_else(|| stage.launcher.clone(), |hosts| hosts.launcher(stage.launcher, host));
    let patience = order.patience + Duration::from_secs(30);
    let Dueled { sent, received, .. } = order.run((&on(0), &on(1)), patience, stage.stop, |_| {})?;
    let sorted = Sorted::of(&order, &sent, &received);
    let runs_ms = transfers_ms(&sent);
    let usage = match link {
        None => Vec::new(),
        Some(_) => {
            let seconds = sent.transfers_ns.iter().map(|(from, to)| (to - from) as f64 / 1e9);
            let bits = sent.transfers_bytes.iter().map(|bytes| *bytes as f64 * 8.0);
            bits.zip(seconds).map(|(bits, seconds)| bits / seconds / BITS_PER_SECOND).collect()
        }
    };
    Ok(BackgroundCell {
        bucket: bucket.clone(),
        transfer_samples: order.transfer_samples,
        sample_bytes: order.sample_bytes,
        summary: Summary::of(&runs_ms).ok_or_else(|| LabError::Here("no transfer was made".to_owned()))?,
        runs_ms,
        usage,
        quiet: sorted.foreground(false),
        loaded: sorted.foreground(true),
        quiet_us: sorted.latencies(false),
        loaded_us: sorted.latencies(true),
    })
}

/// Megabits a second of the link.
const LINK_MBIT: f64 = 1_000.0;
const BITS_PER_SECOND: f64 = LINK_MBIT * 1e6;
/// 100 Hz.
const PERIOD: Duration = Duration::from_millis(10);
