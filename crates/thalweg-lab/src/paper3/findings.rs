//! What the figures say: sentences that follow from them, part by part.

use super::answers::{
    CLIENT_CPU, CPU, FPS, FPS_SD, Figure, GOODPUT, LOST, RECEIVER_CPU, RTT, SHOWN, TRIP_P50, TRIP_P99, estimate, find,
    labelled, median_of,
};
use super::bounds;
use super::cell::{
    CpuPlacement, HdtvPart, HdtvTraffic, Isolation, PictureEnds, ReceiveModeration, STANDARD_MTU, Segmenting,
};
use super::defects::{FIGURE_2, FIGURE_4, FIGURE_6_US};
use super::plan::JUMBO_MTU;
use super::result::{HdtvCellRuns, Paper3Result};
use crate::figures::{grouped, percent, rounded};

/// Sentences of a part.
pub(super) fn of_part(result: &Paper3Result, part: HdtvPart) -> Vec<String> {
    match part {
        HdtvPart::Mtu => mtu(result),
        HdtvPart::Streams => streams(result),
        HdtvPart::Rtt => round_trips(result),
        HdtvPart::Ladder => ladder(result),
        HdtvPart::Moderation => moderation(result),
        HdtvPart::Placement => placement(result),
        HdtvPart::Coexistence => coexistence(result),
        HdtvPart::Peers => peers(result),
        HdtvPart::Topics => topics(result),
        HdtvPart::Bounds => kept(result),
    }
}

/// The cell of the short runs with this moderation.
pub(super) fn of_moderation(result: &Paper3Result, moderation: ReceiveModeration) -> Option<&HdtvCellRuns> {
    find(result, HdtvPart::Moderation, |cell| cell.link.moderation == moderation && !cell.is_long())
}

/// The short cells of a part whose frames are gathered, by the timer in microseconds.
pub(super) fn timers(result: &Paper3Result, part: HdtvPart) -> impl Iterator<Item = (u32, &HdtvCellRuns)> {
    result.cells_of(part).filter(|cell| !cell.cell.is_long()).filter_map(|cell| match cell.cell.link.moderation {
        ReceiveModeration::Gathered(us) => Some((us, cell)),
        _ => None,
    })
}

/// Throughput of a kind of stream at an MTU.
fn goodput(result: &Paper3Result, traffic: HdtvTraffic, segmenting: Segmenting, mtu_bytes: u32) -> Option<f64> {
    let is_meant = |cell: &super::HdtvCell| {
        cell.traffic == traffic && cell.link.segmenting == segmenting && cell.link.mtu_bytes == mtu_bytes
    };
    median_of(find(result, HdtvPart::Mtu, is_meant)?, GOODPUT)
}

const UDP: HdtvTraffic = HdtvTraffic::Udp { streams: 1 };
const TCP: HdtvTraffic = HdtvTraffic::Tcp { streams: 1 };
/// The kinds of Figure 2, with their names.
pub(super) const KINDS: [(&str, HdtvTraffic, Segmenting); 5] = [
    ("UDP with offload", UDP, Segmenting::Device),
    ("UDP cut by the kernel", UDP, Segmenting::Kernel),
    ("UDP packet by packet", UDP, Segmenting::Program),
    ("TCP with offload", TCP, Segmenting::Device),
    ("TCP cut by the kernel", TCP, Segmenting::Kernel),
];

fn mtu(result: &Paper3Result) -> Vec<String> {
    let at = |kind: (&str, HdtvTraffic, Segmenting), mtu| goodput(result, kind.1, kind.2, mtu);
    let gain = |kind: &(&'static str, HdtvTraffic, Segmenting)| {
        let (jumbo, standard) = (at(*kind, JUMBO_MTU)?, at(*kind, STANDARD_MTU)?);
        Some((kind.0, jumbo, jumbo / standard))
    };
    let gains: Vec<(&str, f64, f64)> = KINDS.iter().filter_map(gain).collect();
    let mut out: Vec<String> = gains
        .iter()
        .map(|(name, most, ratio)| {
            format!(
                "{name}: MTU 9000 carries {} times as much as 1500, {} Gbit/s.",
                rounded(*ratio),
                rounded(most / 1e3)
            )
        })
        .collect();
    if !gains.is_empty() {
        out.push(format!("The paper, without offload: {} times, {} Gbit/s.", FIGURE_2.1, FIGURE_2.0));
    }
    let of = |name: &str| gains.iter().find(|(known, ..)| *known == name).map(|(_, _, ratio)| *ratio);
    if let (Some(with), Some(without)) = (of(KINDS[0].0), of(KINDS[2].0)) {
        out.push(if with < without {
            format!(
                "Segmentation offload is most of today's answer to small packets: it leaves {} of jumbo frames' gain.",
                percent(((with - 1.0) / (without - 1.0)).max(0.0))
            )
        } else {
            "Offload does not lower the gain of jumbo frames here.".to_owned()
        });
    }
    for kind in [KINDS[2], KINDS[3]] {
        if let (Some(page), Some(jumbo)) = (at(kind, 8_160), at(kind, JUMBO_MTU)) {
            let apart = (page / jumbo - 1.0).abs();
            let word = if apart < FLAT { "as good as the same" } else { "another throughput" };
            out.push(format!(
                "{}: MTU 8160, the multiple of a page less headers, gives {word} ({} of MTU 9000).",
                kind.0,
                percent(page / jumbo)
            ));
        }
    }
    out
}

fn streams(result: &Paper3Result) -> Vec<String> {
    let of = |name: &str, streams_of: fn(&HdtvTraffic) -> Option<u32>| {
        let points: Vec<(u32, f64)> = result
            .cells_of(HdtvPart::Streams)
            .filter_map(|cell| Some((streams_of(&cell.cell.traffic)?, median_of(cell, GOODPUT)?)))
            .collect();
        let one = points.iter().find(|(streams, _)| *streams == 1)?.1;
        let (best, most) = points.iter().max_by(|one, other| one.1.total_cmp(&other.1)).copied()?;
        Some(if best > 1 && most / one > NOTICEABLE {
            format!(
                "{name}: {best} streams carry most, {} Gbit/s, {} times one.",
                rounded(most / 1e3),
                rounded(most / one)
            )
        } else {
            let cpus = result.plan.site.cpus;
            format!(
                "{name}: several streams carry no more than one ({} Gbit/s): {cpus} processors do the work of both hosts.",
                rounded(one / 1e3)
            )
        })
    };
    let udp = of("UDP", |traffic| match traffic {
        HdtvTraffic::Udp { streams } => Some(*streams),
        _ => None,
    });
    let tcp = of("TCP", |traffic| match traffic {
        HdtvTraffic::Tcp { streams } => Some(*streams),
        _ => None,
    });
    let mut out: Vec<String> = udp.into_iter().chain(tcp).collect();
    if !out.is_empty() {
        out.push(format!("The paper: {FIGURE_4} Gbit/s with several streams, {} with one.", FIGURE_2.0));
    }
    out
}

/// Median round trip of a size with a moderation, and the processor share of the asking end.
fn trip(result: &Paper3Result, moderation: ReceiveModeration, bytes: u32, figure: Figure) -> Option<f64> {
    let is_meant = |cell: &super::HdtvCell| {
        cell.link.moderation == moderation && cell.traffic == HdtvTraffic::RoundTrips { bytes }
    };
    median_of(find(result, HdtvPart::Rtt, is_meant)?, figure)
}

fn round_trips(result: &Paper3Result) -> Vec<String> {
    let (small, knee) = (64, 5_120);
    let mut out = Vec::new();
    let at = |moderation, bytes| trip(result, moderation, bytes, TRIP_P50);
    if let (Some(few), Some(many)) = (at(ReceiveModeration::AsItIs, small), at(ReceiveModeration::AsItIs, knee)) {
        out.push(format!(
            "As it is, {knee} bytes take {} µs there and back, {} times as long as {small}.",
            rounded(many),
            rounded(many / few)
        ));
    }
    if let (Some(plain), Some(timer)) =
        (at(ReceiveModeration::AsItIs, small), at(ReceiveModeration::Polling(100), small))
    {
        let told = || match timer - plain < 50.0 {
            true => format!(
                "The polling timer has no effect here: {} µs with a timer of 100 µs, {} µs without. A veth polls as soon as something is sent.",
                rounded(timer),
                rounded(plain)
            ),
            false => {
                format!(
                    "A polling timer of 100 µs makes round trips of {} µs from {} µs.",
                    rounded(timer),
                    rounded(plain)
                )
            }
        };
        let is_polling = |cell: &&HdtvCellRuns| cell.cell.link.moderation == ReceiveModeration::Polling(100);
        out.push(refused(result.cells_of(HdtvPart::Rtt).filter(is_polling)).unwrap_or_else(told));
    }
    let gathered = |us| at(ReceiveModeration::Gathered(us), small);
    if let (Some(none), Some(timer)) = (gathered(0), gathered(100)) {
        let added = timer - none;
        out.push(format!(
            "Frames gathered for 100 µs in each direction add {} µs: {} timers; on average half of one in each direction is expected.",
            rounded(added),
            rounded(added / 100.0)
        ));
    }
    let cpu = |moderation| trip(result, moderation, knee, CLIENT_CPU);
    if let (Some(plain), Some(timer)) = (cpu(ReceiveModeration::Gathered(0)), cpu(ReceiveModeration::Gathered(50))) {
        out.push(format!(
            "The asking end used {} of a processor with frames at once and {} with frames gathered for 50 µs; the paper: 33.6 and 34.6 %.",
            percent(plain),
            percent(timer)
        ));
    }
    out
}

fn ladder(result: &Paper3Result) -> Vec<String> {
    let mut out = Vec::new();
    let loss = |label: &str| labelled(result, HdtvPart::Ladder, label, LOST);
    let untuned = loss("untuned, five minutes");
    let tuned = labelled(result, HdtvPart::Moderation, "gathered for 100 µs, five minutes", LOST);
    if let (Some(untuned), Some(tuned)) = (untuned, tuned) {
        out.push(format!(
            "Packets lost in five minutes: untuned {}, with all steps {}.",
            percent(untuned),
            percent(tuned)
        ));
    }
    let load = |part, label: &str| labelled(result, part, label, RECEIVER_CPU);
    let tuned = load(HdtvPart::Moderation, "gathered for 100 µs, five minutes");
    out.extend(load(HdtvPart::Ladder, "untuned, five minutes").zip(tuned).map(|(before, after)| {
        format!(
            "The receiver's load in five minutes: untuned {}, with all steps {}, {:+.1} points; the paper's is 1.2 points lower.",
            percent(before),
            percent(after),
            (after - before) * 100.0
        )
    }));
    for what in ["alone", "beside a busy program for each CPU"] {
        let steps: Vec<String> = ["untuned", "+ buffer", "+ MTU 9000", "+ moderation 100 µs"]
            .iter()
            .filter_map(|step| Some(format!("{step} {}", percent(loss(&format!("{step}, {what}"))?))))
            .collect();
        if !steps.is_empty() {
            out.push(format!("Packets lost {what}: {}.", steps.join(", ")));
        }
    }
    // One run that loses something denies that nothing is lost, which a median does not show.
    let most = |label: String| bounds::most(find(result, HdtvPart::Ladder, |cell| cell.label == label)?, LOST);
    for what in ["alone", "beside a busy program for each CPU"] {
        let (untuned, buffer) = (most(format!("untuned, {what}")), most(format!("+ buffer, {what}")));
        if let (Some(untuned), Some(buffer)) = (untuned, buffer) {
            out.push(match (untuned > 0.0, buffer > 0.0) {
                (true, false) => format!(
                    "Loss in the end host is a matter of the receive buffer {what}: a larger one ends it, as the paper says."
                ),
                (true, true) => format!("A larger buffer does not end all loss {what}, against the paper's claim."),
                (false, false) => format!("Nothing is lost {what}, whatever the buffer: no stall is longer than it."),
                (false, true) => format!("The larger buffer lost packets {what} where the small one lost none."),
            });
        }
    }
    out
}

fn moderation(result: &Paper3Result) -> Vec<String> {
    let gathered: Vec<(u32, &HdtvCellRuns)> = timers(result, HdtvPart::Moderation).collect();
    let value = |figure: Figure| -> Vec<(u32, f64)> {
        gathered.iter().filter_map(|(us, cell)| Some((*us, median_of(cell, figure)?))).collect()
    };
    let mut out = Vec::new();
    let load = value(RECEIVER_CPU);
    if let (Some((_, at_once)), Some((most, last))) = (load.first(), load.last()) {
        out.push(format!(
            "The receiver's load goes from {} of a processor with frames at once to {} with frames gathered for {most} µs; the paper's goes \
             from 79.0 to 77.5 %.",
            percent(*at_once),
            percent(*last)
        ));
    }
    let rate = value(FPS);
    let ends = rate.iter().map(|(_, fps)| *fps).fold(None, |ends: Option<(f64, f64)>, fps| {
        Some(ends.map_or((fps, fps), |(low, high)| (low.min(fps), high.max(fps))))
    });
    if let Some((low, high)) = ends {
        let claim = if high - low < FPS_SAME {
            "Playout two frames late makes the frame rate independent of the moderation, as the paper says"
        } else {
            "The frame rate depends on the moderation"
        };
        out.push(format!("{claim}: {low:.2} to {high:.2} a second over all timers."));
    }
    let lowest = |figure: Figure| value(figure).into_iter().min_by(|one, other| one.1.total_cmp(&other.1));
    let least = |figure: Figure, what: &str, unit: &str| {
        let (us, value) = lowest(figure)?;
        Some(format!("The {what} is lowest with frames gathered for {us} µs: {} {unit}.", rounded(value)))
    };
    out.extend(least(RTT, "round trip of the receiver's reports", "µs"));
    out.extend(lowest(RTT).map(|(us, _)| {
        let word = if FIGURE_6_US.contains(&us) { "as" } else { "unlike" };
        format!(
            "That is {word} in the paper's Figure 6, which is lowest at {} to {} µs; its advice is 100 to 200 µs, two to four times between \
             packets.",
            FIGURE_6_US.start(),
            FIGURE_6_US.end()
        )
    }));
    out.extend(least(FPS_SD, "deviation of the frame rate", "frames a second"));
    out.extend(polling(result));
    out
}

/// That the system refused the polling timer in some run of these cells, which then show nothing of it.
fn refused<'a>(cells: impl Iterator<Item = &'a HdtvCellRuns>) -> Option<String> {
    let first = cells.flat_map(|cell| &cell.runs).flat_map(|run| &run.refused).next()?;
    Some(format!("The polling timer could not be set in some runs: {first}."))
}

/// Whether the polling timer does anything to the picture.
fn polling(result: &Paper3Result) -> Option<String> {
    let cells: Vec<&HdtvCellRuns> = result
        .cells_of(HdtvPart::Moderation)
        .filter(|cell| matches!(cell.cell.link.moderation, ReceiveModeration::Polling(_)))
        .collect();
    if let Some(told) = refused(cells.iter().copied()) {
        return Some(told);
    }
    let times: Vec<f64> = cells.iter().filter_map(|cell| median_of(cell, RTT)).collect();
    let (low, high) = (times.iter().copied().reduce(f64::min)?, times.iter().copied().reduce(f64::max)?);
    let longest = cells.iter().filter_map(|cell| match cell.cell.link.moderation {
        ReceiveModeration::Polling(us) => Some(f64::from(us)),
        _ => None,
    });
    let longest = longest.reduce(f64::max)?;
    Some(if high - low < longest / 2.0 {
        format!(
            "The polling timer has no effect here: the round trip is {} to {} µs with timers up to {longest:.0} µs.",
            rounded(low),
            rounded(high)
        )
    } else {
        format!("The round trip moves with the polling timer: {} to {} µs.", rounded(low), rounded(high))
    })
}

fn placement(result: &Paper3Result) -> Vec<String> {
    let of = |mtu: u32| {
        let at = |placement: CpuPlacement, figure: Figure| {
            let is_meant = |cell: &super::HdtvCell| cell.placement == placement && cell.link.mtu_bytes == mtu;
            median_of(find(result, HdtvPart::Placement, is_meant)?, figure)
        };
        let (one, all) = (at(CpuPlacement::One, CPU)?, at(CpuPlacement::All, CPU)?);
        let (shown, lost) = (at(CpuPlacement::One, SHOWN)?, at(CpuPlacement::One, LOST)?);
        Some(format!(
            "MTU {mtu}: both ends use {} of a processor on one CPU and {} on all; on one {} of the frames came whole, {} of the packets were \
             lost.",
            percent(one),
            percent(all),
            percent(shown),
            percent(lost)
        ))
    };
    let mut out: Vec<String> = [STANDARD_MTU, JUMBO_MTU].into_iter().filter_map(of).collect();
    if !out.is_empty() {
        out.push(
            "The paper left its kernel for one processor out, since the receiver alone used 99 % of it.".to_owned(),
        );
    }
    out
}

fn coexistence(result: &Paper3Result) -> Vec<String> {
    let mut out = Vec::new();
    for mtu in [STANDARD_MTU, JUMBO_MTU] {
        let at = |is_isolated: bool, has_tcp: bool, figure: Figure| {
            let is_meant = |cell: &super::HdtvCell| match (cell.traffic, cell.link.shape) {
                (HdtvTraffic::Shared { picture: Some(case), tcp }, Some(shape)) => {
                    case.packet_mtu_bytes == mtu
                        && tcp == has_tcp
                        && is_isolated == (shape.isolation != Isolation::None)
                }
                _ => false,
            };
            median_of(find(result, HdtvPart::Coexistence, is_meant)?, figure)
        };
        let beside = |is_isolated: bool| {
            let all = [LOST, SHOWN, GOODPUT, TRIP_P99].map(|figure| at(is_isolated, true, figure));
            let [lost, shown, tcp, trip] = all;
            Some(format!(
                "{} of the picture's packets lost and {} of its frames whole, TCP {} Mbit/s, small round trips p99 {} ms",
                percent(lost?),
                percent(shown?),
                rounded(tcp?),
                trip.map_or_else(|| "unknown".to_owned(), |us| rounded(us / 1e3))
            ))
        };
        if let (Some(shared), Some(isolated)) = (beside(false), beside(true)) {
            out.push(format!("Packets of {mtu} beside TCP: in one queue {shared}; in classes {isolated}."));
        }
        // A picture that its sender had to drop is lost as well.
        let is_harmed = |is_isolated: bool| {
            let (lost, shown) = (at(is_isolated, true, LOST)?, at(is_isolated, true, SHOWN)?);
            Some(lost > 0.0 || shown < WHOLE)
        };
        if let (Some(shared), Some(isolated)) = (is_harmed(false), is_harmed(true)) {
            out.push(match (shared, isolated) {
                (true, false) => format!(
                    "Packets of {mtu}: a code point and a class do what the paper gave the picture a light path of its own for."
                ),
                (true, true) => format!("Packets of {mtu}: classes do not keep all of the picture here."),
                (false, _) => format!("Packets of {mtu}: TCP takes nothing from the picture in one queue here."),
            });
        }
    }
    out
}

fn peers(result: &Paper3Result) -> Vec<String> {
    let of = |cell: &HdtvCellRuns| {
        let ends = cell.cell.traffic.picture()?.ends;
        let ours = find(result, HdtvPart::Peers, |one| one.is_baseline_of(&cell.cell))?;
        if ends == PictureEnds::Thalweg {
            return None;
        }
        let (theirs, own) = (median_of(cell, CPU)?, median_of(ours, CPU)?);
        Some(format!(
            "MTU {}: {ends} uses {} of a processor at both ends, Thalweg {}, {} of it; {} and {} of the packets were lost.",
            cell.cell.link.mtu_bytes,
            percent(theirs),
            percent(own),
            percent(own / theirs),
            percent(median_of(cell, LOST)?),
            percent(median_of(ours, LOST)?)
        ))
    };
    result.cells_of(HdtvPart::Peers).filter_map(of).collect()
}

fn topics(result: &Paper3Result) -> Vec<String> {
    let of = |cell: &HdtvCellRuns| {
        let ours = find(result, HdtvPart::Topics, |one| one.is_baseline_of(&cell.cell))?;
        if std::ptr::eq(ours, cell) {
            return None;
        }
        let (topic, rtp) = (median_of(cell, CPU)?, median_of(ours, CPU)?);
        Some(format!(
            "{}: {} of the frames whole with {} of a processor, {} times RTP's, of whose frames {} came whole.",
            cell.cell.label,
            percent(median_of(cell, SHOWN)?),
            percent(topic),
            rounded(topic / rtp),
            percent(median_of(ours, SHOWN)?)
        ))
    };
    // The relay has to keep up, at MTU 1500 with many frames.
    let beyond = |cell: &HdtvCellRuns| {
        let elsewhere: u64 = cell.runs.iter().filter_map(|run| run.relayed).map(|truth| truth.elsewhere).sum();
        let label = &cell.cell.label;
        (elsewhere > 0).then(|| {
            format!("{label}: at least {} packets more got lost than the relay lost by chance.", grouped(elsewhere))
        })
    };
    let cells = || result.cells_of(HdtvPart::Topics);
    cells().filter_map(of).chain(cells().filter_map(beyond)).collect()
}

/// How many bounds are kept, and which are not.
fn kept(result: &Paper3Result) -> Vec<String> {
    let all = bounds::all(result);
    let count = |is_kept| all.iter().filter(|bound| bound.is_kept == is_kept).count();
    let sum = format!(
        "Of {} bounds: {} kept, {} not kept, {} not judged.",
        all.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    let missed = all.iter().filter(|bound| bound.is_kept == Some(false));
    let sentence = |bound: &bounds::Bound| format!("Not kept: {}: {}, {}.", bound.what, bound.here, bound.limit);
    [sum].into_iter().chain(missed.map(sentence)).collect()
}

/// The paper's form of a value: the mean of the runs' medians with the deviation of one-second windows.
pub(super) fn with_deviation(cell: &HdtvCellRuns, (value, sd): (Figure, Figure), factor: f64) -> String {
    let Some(value) = estimate(cell, value) else { return "–".to_owned() };
    let shown = format!("{:.2}", value.estimate * factor);
    median_of(cell, sd).map_or_else(|| shown.clone(), |sd| format!("{shown} ± {:.2}", sd * factor))
}

/// Two throughputs that lie closer are the same.
const FLAT: f64 = 0.05;
/// A ratio below this is none.
const NOTICEABLE: f64 = 1.1;
/// A share of the frames above this is all of them.
const WHOLE: f64 = 0.99;
/// Frame rates that lie closer are the same.
const FPS_SAME: f64 = 0.05;
