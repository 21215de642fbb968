//! Bounds of Thalweg's own picture: what a host with two processors is to bear, and whether the runs keep to it.

use std::cmp::Ordering;

use super::answers::{CPU, Figure, LATENCY_P99, LOST, SHOWN, find};
use super::cell::{HdtvCell, HdtvPart, OtherWork, PictureBatching, PictureEnds, PictureRate, STANDARD_MTU, TOPIC_LOSS};
use super::peer::VideoPeer;
use super::plan::JUMBO_MTU;
use super::result::{HdtvCellRuns, Paper3Result};
use super::study::BOTH_ENDS;
use super::truth::RelayTruth;
use crate::figures::{grouped, percent, rounded};
use crate::statistics::{Interval, median_interval, sides};
use crate::study::StudyRun;

/// A bound beside what the runs show.
pub(super) struct Bound {
    pub(super) what: String,
    pub(super) limit: String,
    pub(super) here: String,
    /// Runs, or pairs of runs of the same round, that tell of it.
    pub(super) runs: usize,
    /// Whether it is kept; `None` where the runs do not tell.
    pub(super) is_kept: Option<bool>,
}

impl Bound {
    pub(super) fn verdict(&self) -> &'static str {
        match self.is_kept {
            Some(true) => "kept",
            Some(false) => "not kept",
            None => "not judged",
        }
    }
}

/// All bounds of which there are runs. Measured ones are one family of sign tests; counts stand as they are.
pub(super) fn all(result: &Paper3Result) -> Vec<Bound> {
    let measured = measured(result);
    let family: Vec<Vec<f64>> = measured.iter().map(|one| one.beyond.clone()).collect();
    let judged = measured.into_iter().zip(sides(&family)).map(|(one, side)| one.judged(side));
    judged.chain(counted(result)).collect()
}

/// A quantity that is to be small.
struct Measured {
    what: String,
    limit: f64,
    /// Logarithm of each undisturbed run's share of the limit.
    beyond: Vec<f64>,
    text: fn(f64) -> String,
}

impl Measured {
    fn judged(self, side: Option<Ordering>) -> Bound {
        let Measured { what, limit, beyond, text } = self;
        let value = |share: f64| text(share.exp() * limit);
        let here = match median_interval(&beyond) {
            Some(Interval { estimate, low, high }) => {
                format!("{} ({} to {})", value(estimate), value(low), value(high))
            }
            None => crate::statistics::median(&beyond).map_or_else(|| "–".to_owned(), value),
        };
        let is_kept = side.map(|side| side == Ordering::Less);
        Bound { what, limit: format!("at most {}", text(limit)), here, runs: beyond.len(), is_kept }
    }
}

fn measured(result: &Paper3Result) -> Vec<Measured> {
    let alone = |what: &str, cell: Option<&HdtvCellRuns>, (figure, limit): (Figure, f64), text| {
        let quiet = cell?.runs.iter().filter(|run| !run.is_disturbed());
        let beyond = quiet.filter_map(figure).map(|value| (value / limit).ln()).collect();
        Some(Measured { what: what.to_owned(), limit, beyond, text })
    };
    let ratio = |what: &str, cells: Option<(&HdtvCellRuns, &HdtvCellRuns)>, limit: f64| {
        let beyond = BOTH_ENDS.costs(cells?)?.into_iter().map(|cost| cost - limit.ln()).collect();
        Some(Measured { what: what.to_owned(), limit, beyond, text: rounded })
    };
    let peer = |ends, mtu| of_ends(result, HdtvPart::Peers, ends, (mtu, 0.0));
    let topic = |mtu: u32| {
        let of = |ends| of_ends(result, HdtvPart::Topics, ends, (mtu, TOPIC_LOSS));
        let what = format!("CPU of a reliable topic by RTP's, MTU {mtu}, 1 % of the frames lost");
        ratio(&what, of(PictureEnds::Thalweg).zip(of(PictureEnds::ReliableTopic)), 1.5)
    };
    let (own, gstreamer) = (PictureEnds::Thalweg, PictureEnds::Peer(VideoPeer::Gstreamer));
    let (once, twice) = (own_cell(result, is_once), own_cell(result, is_twice));
    let standard = peer(own, STANDARD_MTU);
    let jumbo = peer(own, JUMBO_MTU);
    let all = [
        alone("CPU of both ends, MTU 1500, batching lan", once, (CPU, 0.25), percent),
        alone("CPU of both ends, MTU 9000, batching lan", own_cell(result, is_jumbo), (CPU, 0.15), percent),
        alone("CPU of both ends, MTU 9000, batching wide", jumbo, (CPU, 0.15), percent),
        alone("CPU of both ends, 59.94 Hz, MTU 1500, batching lan", twice, (CPU, 0.5), percent),
        ratio("CPU of both ends by GStreamer's, MTU 1500, batching lan", peer(gstreamer, STANDARD_MTU).zip(once), 0.3),
        ratio(
            "CPU of both ends by GStreamer's, MTU 1500, batching wide",
            peer(gstreamer, STANDARD_MTU).zip(standard),
            0.3,
        ),
        topic(STANDARD_MTU),
        topic(JUMBO_MTU),
        alone("first to last packet of a frame p99 by a frame time, MTU 1500", standard, SPREAD, rounded),
        alone("first to last packet of a frame p99 by a frame time, MTU 9000", jumbo, SPREAD, rounded),
    ];
    all.into_iter().flatten().collect()
}

fn counted(result: &Paper3Result) -> Vec<Bound> {
    let nothing_lost = |what: &str, cell: Option<&HdtvCellRuns>| {
        let cell = cell?;
        let (lost, whole) = (most(cell, LOST)?, share_whole(cell, SHOWN)?);
        Some(Bound {
            what: what.to_owned(),
            limit: "no packet lost, all frames whole".to_owned(),
            here: format!("{} lost, {} whole", percent(lost), percent(whole)),
            runs: cell.runs.len(),
            is_kept: Some(lost == 0.0 && whole >= 1.0),
        })
    };
    let whole = |what: &str, cell: Option<&HdtvCellRuns>, limit: f64| {
        let cell = cell?;
        let share = share_whole(cell, SINCE_START)?;
        let limit_text = if limit < 1.0 { format!("at least {}", percent(limit)) } else { "all".to_owned() };
        Some(Bound {
            what: what.to_owned(),
            limit: limit_text,
            here: format!("{}{}", percent(share), left_out(cell)),
            runs: cell.runs.len(),
            is_kept: Some(share >= limit),
        })
    };
    let peer = |mtu| of_ends(result, HdtvPart::Peers, PictureEnds::Thalweg, (mtu, 0.0));
    let topic = |mtu: u32| {
        let cell = of_ends(result, HdtvPart::Topics, PictureEnds::ReliableTopic, (mtu, TOPIC_LOSS));
        whole(&format!("frames whole as a reliable topic, MTU {mtu}, 1 % lost"), cell, 1.0)
    };
    let long = own_cell(result, HdtvCell::is_long);
    let beside = long.and_then(|cell| cell.cell.traffic.picture()).map_or(OtherWork::EachCpu, |case| case.beside);
    let all = [
        nothing_lost("alone, MTU 1500", peer(STANDARD_MTU)),
        nothing_lost("alone, MTU 9000", peer(JUMBO_MTU)),
        nothing_lost("alone, MTU 9000, batching lan", own_cell(result, is_jumbo)),
        nothing_lost("59.94 Hz, MTU 1500, batching lan", own_cell(result, is_twice)),
        nothing_lost(&format!("five minutes beside {beside}, MTU 1500"), long),
        whole(
            "frames whole from the first one shown on, 5 % lost and repaired",
            own_cell(result, |cell| cell.link.loss > 0.0),
            0.999,
        ),
        topic(STANDARD_MTU),
        topic(JUMBO_MTU),
        like_the_relay("counters equal the relay's, 5 % lost", own_cell(result, |cell| cell.link.loss > 0.0)),
    ];
    all.into_iter().flatten().collect()
}

/// Frames that were never sent, and why; nothing where all were.
fn left_out(cell: &HdtvCellRuns) -> String {
    let pictures = || cell.runs.iter().filter_map(|run| run.picture);
    let late: u64 = pictures().map(|picture| picture.frames_late).sum();
    let passed_over: u64 = pictures().map(|picture| picture.frames_passed_over).sum();
    if late + passed_over == 0 {
        return String::new();
    }
    format!("; not sent: {late} because the publisher came late, {passed_over} because others were still on their way")
}

/// Whether the receiver counted, run by run, what the relay let pass and lost.
fn like_the_relay(what: &str, cell: Option<&HdtvCellRuns>) -> Option<Bound> {
    let truths: Vec<RelayTruth> = cell?.runs.iter().filter_map(|run| run.relayed).collect();
    let known: Vec<&RelayTruth> = truths.iter().filter(|truth| truth.is_known()).collect();
    let sum = |count: fn(&RelayTruth) -> u64| grouped(known.iter().map(|truth| count(truth)).sum());
    (!truths.is_empty()).then(|| Bound {
        what: what.to_owned(),
        limit: "received = passed; missed: all lost in between, at most all lost".to_owned(),
        here: format!(
            "{} received of {} passed; {} missed, {} lost in between, {} in all; {} of {} runs tell",
            sum(|truth| truth.received),
            sum(RelayTruth::passed),
            sum(|truth| truth.missing),
            sum(|truth| truth.gaps),
            sum(|truth| truth.dropped),
            known.len(),
            truths.len()
        ),
        runs: known.len(),
        is_kept: (!known.is_empty()).then(|| truths.iter().all(|truth| truth.check().is_ok())),
    })
}

/// The cell of a part with these ends, without repair by RTP, on a link of this MTU and loss.
fn of_ends(result: &Paper3Result, part: HdtvPart, ends: PictureEnds, (mtu, loss): (u32, f64)) -> Option<&HdtvCellRuns> {
    find(result, part, |cell| {
        cell.link.mtu_bytes == mtu
            && cell.link.loss == loss
            && cell.traffic.picture().is_some_and(|case| case.ends == ends && !case.is_repaired)
    })
}

fn own_cell(result: &Paper3Result, is_meant: fn(&HdtvCell) -> bool) -> Option<&HdtvCellRuns> {
    find(result, HdtvPart::Bounds, is_meant)
}

fn is_twice(cell: &HdtvCell) -> bool {
    cell.traffic.picture().is_some_and(|case| case.rate == PictureRate::Twice)
}

fn is_once(cell: &HdtvCell) -> bool {
    is_lan_of(cell, STANDARD_MTU) && !is_twice(cell)
}

fn is_jumbo(cell: &HdtvCell) -> bool {
    is_lan_of(cell, JUMBO_MTU)
}

fn is_lan_of(cell: &HdtvCell, mtu: u32) -> bool {
    let is_lan = cell.traffic.picture().is_some_and(|case| case.batching == PictureBatching::Lan);
    is_lan && cell.link.mtu_bytes == mtu
}

/// The largest figure of all runs.
pub(super) fn most(cell: &HdtvCellRuns, figure: Figure) -> Option<f64> {
    cell.runs.iter().filter_map(figure).reduce(f64::max)
}

/// The mean of a share over all runs of a cell, each of which has as many frames.
fn share_whole(cell: &HdtvCellRuns, share: Figure) -> Option<f64> {
    let shares: Vec<f64> = cell.runs.iter().map(share).collect::<Option<_>>()?;
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Frames that came whole as a share of those from the first one shown on: who lost the first packet of all knows of none to ask for.
const SINCE_START: Figure = |run| {
    let picture = run.picture?;
    let due = picture.frames_due.checked_sub(picture.frames_before_start).filter(|due| *due > 0)?;
    Some(picture.frames_complete? as f64 / due as f64)
};
/// First packet to last one in frame times, and its bound.
const SPREAD: (Figure, f64) = (|run| Some(LATENCY_P99(run)? * PictureRate::Once.per_s() / 1e6), 1.1);
