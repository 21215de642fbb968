//! A section for each part: what was asked, sentences, pictures, tables, and the paper's figures in its own form.

use super::tables::{BESIDE, BOTH_ENDS, Column, LABEL, LATENCY, PICTURE, REPORTS, RUNS, STREAM, TRIPS};
use crate::figures::grouped;
use crate::paper3::answers::{
    FPS, FPS_SD, Figure as Value, GOODPUT, RECEIVER_CPU, RECEIVER_CPU_SD, REPORT_JITTER, RTT, TRIP_P50, estimate,
};
use crate::paper3::bounds::{self, Bound};
use crate::paper3::cell::{HdtvCell, HdtvPart, HdtvTraffic, ReceiveModeration};
use crate::paper3::defects::{TABLE_1, TABLE_2, UNTUNED};
use crate::paper3::findings::{self, KINDS, with_deviation};
use crate::paper3::plan::PAPER_TIMERS;
use crate::paper3::result::{HdtvCellRuns, Paper3Result};
use crate::plot::{Axis, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::study::{cell_table, distinct};
use crate::table::Table;

/// The section of a part.
pub(super) fn section(result: &Paper3Result, part: HdtvPart) -> Section {
    let (title, lead) = words(part);
    let columns: &[&[Column]] = match part {
        HdtvPart::Mtu | HdtvPart::Streams => &[&LABEL, &RUNS, &STREAM],
        HdtvPart::Rtt => &[&LABEL, &RUNS, &TRIPS],
        HdtvPart::Moderation => &[&LABEL, &RUNS, &PICTURE, &REPORTS],
        HdtvPart::Ladder | HdtvPart::Placement => &[&LABEL, &RUNS, &PICTURE],
        HdtvPart::Coexistence => &[&LABEL, &RUNS, &PICTURE, &BESIDE],
        HdtvPart::Topics => &[&LABEL, &RUNS, &BOTH_ENDS, &PICTURE, &LATENCY],
        HdtvPart::Peers | HdtvPart::Bounds => &[&LABEL, &RUNS, &BOTH_ENDS, &PICTURE],
    };
    let all = cell_table("Every cell of this part", result.cells_of(part), columns);
    let own = match part {
        HdtvPart::Moderation => paper_tables(result),
        HdtvPart::Bounds => vec![bound_table(result)],
        _ => Vec::new(),
    };
    Section {
        title: title.to_owned(),
        lead: lead.to_owned(),
        seen: findings::of_part(result, part),
        figures: pictures(result, part),
        tables: own.into_iter().chain([all]).collect(),
        ..Section::default()
    }
}

fn words(part: HdtvPart) -> (&'static str, String) {
    match part {
        HdtvPart::Mtu => (
            "Figure 2: throughput against MTU",
            "One stream as fast as it goes. With offload the device takes messages of up to 64 packets whole; without, as in 2006, the kernel or \
             the program cuts them."
                .to_owned(),
        ),
        HdtvPart::Streams => (
            "Figure 4: several streams",
            "The same at MTU 9000 with several streams, each with a thread at both ends.".to_owned(),
        ),
        HdtvPart::Rtt => (
            "Figure 5: round trips against size and moderation",
            "One request under way. The paper's NIC gathers packets by a timer; here the relay does so in both directions, and the polling timer \
             is set beside it."
                .to_owned(),
        ),
        HdtvPart::Ladder => (
            "From an untuned receiver to a tuned one",
            format!(
                "The paper's steps, one on top of the other. Its untuned receiver lost {} of the packets at a load of {}; with all steps nothing \
                 was lost, and the load was 1.2 points lower.",
                UNTUNED.0, UNTUNED.1
            ),
        ),
        HdtvPart::Moderation => (
            "Tables 1 and 2, Figures 6 and 7: the picture against moderation",
            "The picture in the paper's packets of 8,945 bytes at MTU 9000. Round trip and jitter are those of the receiver's reports (RTCP RR)."
                .to_owned(),
        ),
        HdtvPart::Placement => {
            ("One CPU, and all", "Sender and receiver share one logical CPU, or run where the scheduler likes.".to_owned())
        }
        HdtvPart::Coexistence => (
            "The picture beside TCP",
            "A link of 1.3 times the picture's rate, with one queue for all, or with a class of 1.1 times its rate for packets of its code point \
             (DSCP 34, HTB). TCP sends segments for MTU 1500 as fast as it may, and small datagrams go there and back."
                .to_owned(),
        ),
        HdtvPart::Peers => ("Other programs", "The same picture over the same link.".to_owned()),
        HdtvPart::Topics => (
            "The same picture by RTP and as topics",
            "A frame is a sample of a topic. By RTP nothing lost is sent again but where it is said; a reliable topic repairs. The latency of a frame \
             is by RTP that from its first packet to its last one, as a topic that from when its source begins to fill it to when the subscriber \
             has it."
                .to_owned(),
        ),
        HdtvPart::Bounds => (
            "Bounds of Thalweg's own picture",
            "Shares of one processor, by the runs of this part and of the two before it. What is measured is kept where the runs surely lie \
             below the bound (sign tests with Holm's correction); what is counted is that of all runs."
                .to_owned(),
        ),
    }
}

/// Each bound beside what the runs show.
fn bound_table(result: &Paper3Result) -> Table {
    let mut out = Table::new("Bounds", &["", "bound", "here", "runs", "verdict"]);
    let row = |bound: Bound| {
        let verdict = bound.verdict().to_owned();
        vec![bound.what, bound.limit, bound.here, grouped(bound.runs as u64), verdict]
    };
    out.rows.extend(bounds::all(result).into_iter().map(row));
    out
}

/// Tables 1 and 2 in the paper's form, its figures beside ours.
fn paper_tables(result: &Paper3Result) -> Vec<Table> {
    let settings: Vec<ReceiveModeration> =
        [ReceiveModeration::AsItIs].into_iter().chain(PAPER_TIMERS.map(ReceiveModeration::Gathered)).collect();
    let made = |caption: &str, values: (Value, Value), factor: f64, paper: [(f64, f64); 6]| {
        let names = ["", "on (here: as it is)", "50 µs", "100 µs", "200 µs", "400 µs", "800 µs"];
        let mut out = Table::new(caption, &names);
        let theirs = paper.iter().map(|(mean, sd)| format!("{mean:.2} ± {sd:.2}"));
        out.rows.push(["the paper".to_owned()].into_iter().chain(theirs).collect());
        for (name, is_long) in [("here, short runs", false), ("here, five minutes", true)] {
            let of = |moderation: &ReceiveModeration| {
                let is_own =
                    |cell: &&HdtvCellRuns| cell.cell.link.moderation == *moderation && cell.cell.is_long() == is_long;
                let cell = result.cells_of(HdtvPart::Moderation).find(is_own);
                cell.map_or_else(|| "–".to_owned(), |cell| with_deviation(cell, values, factor))
            };
            out.rows.push([name.to_owned()].into_iter().chain(settings.iter().map(of)).collect());
        }
        out
    };
    vec![
        made("Table 1: receiver's load in % ± σ", (RECEIVER_CPU, RECEIVER_CPU_SD), 100.0, TABLE_1),
        made("Table 2: frames a second ± σ", (FPS, FPS_SD), 1.0, TABLE_2),
    ]
}

fn pictures(result: &Paper3Result, part: HdtvPart) -> Vec<Figure> {
    match part {
        HdtvPart::Mtu => {
            let mtu = |cell: &HdtvCell| Some(f64::from(cell.link.mtu_bytes));
            let of = |(colour, (name, traffic, segmenting)): (usize, &(&str, HdtvTraffic, _))| {
                let is_own = |cell: &HdtvCell| cell.traffic == *traffic && cell.link.segmenting == *segmenting;
                layer(result, part, (name, colour), is_own, mtu, GOODPUT)
            };
            let layers = KINDS.iter().enumerate().map(of).collect();
            vec![Figure::new(
                "Figure 2: throughput by MTU.",
                chart(Axis::linear("MTU, bytes"), Axis::logarithmic("Mbit/s"), layers),
            )]
        }
        HdtvPart::Streams => {
            let udp = |cell: &HdtvCell| matches!(cell.traffic, HdtvTraffic::Udp { .. });
            let tcp = |cell: &HdtvCell| matches!(cell.traffic, HdtvTraffic::Tcp { .. });
            let count = |cell: &HdtvCell| match cell.traffic {
                HdtvTraffic::Udp { streams } | HdtvTraffic::Tcp { streams } => Some(f64::from(streams)),
                _ => None,
            };
            let layers = vec![
                layer(result, part, ("UDP", 0), udp, count, GOODPUT),
                layer(result, part, ("TCP", 1), tcp, count, GOODPUT),
            ];
            let axes = (Axis::count("streams"), Axis::fitting("Mbit/s"));
            vec![Figure::new("Figure 4: throughput by the number of streams.", chart(axes.0, axes.1, layers))]
        }
        HdtvPart::Rtt => {
            let settings = distinct(result.cells_of(part).map(|cell| cell.cell.link.moderation));
            let bytes = |cell: &HdtvCell| match cell.traffic {
                HdtvTraffic::RoundTrips { bytes } => Some(f64::from(bytes)),
                _ => None,
            };
            let of = |(colour, moderation): (usize, &ReceiveModeration)| {
                let is_own = |cell: &HdtvCell| cell.link.moderation == *moderation;
                layer(result, part, (&moderation.to_string(), colour), is_own, bytes, TRIP_P50)
            };
            let layers = settings.iter().enumerate().map(of).collect();
            let axes = (Axis::linear("bytes"), Axis::micros_from_zero("median round trip"));
            vec![Figure::new("Figure 5: round trips by size.", chart(axes.0, axes.1, layers))]
        }
        HdtvPart::Moderation => {
            let timer = |cell: &HdtvCell| match cell.link.moderation {
                ReceiveModeration::Gathered(us) | ReceiveModeration::Polling(us) => Some(f64::from(us)),
                _ => None,
            };
            let of = |value: Value, y: Axis| {
                let gathered =
                    |cell: &HdtvCell| matches!(cell.link.moderation, ReceiveModeration::Gathered(_)) && !cell.is_long();
                let polling = |cell: &HdtvCell| matches!(cell.link.moderation, ReceiveModeration::Polling(_));
                let layers = vec![
                    layer(result, part, ("gathered by the relay", 0), gathered, timer, value),
                    layer(result, part, ("polling timer", 1), polling, timer, value),
                ];
                chart(Axis::linear("timer, µs"), y, layers)
            };
            vec![Figure::of_many(
                "Figures 6 and 7: round trip and jitter of the receiver's reports by the timer.",
                FigureLayout::Column,
                vec![
                    of(RTT, Axis::micros_from_zero("round trip")),
                    of(REPORT_JITTER, Axis::micros_from_zero("jitter (RFC 3550)")),
                ],
            )]
        }
        _ => Vec::new(),
    }
}

/// Points of the cells of a part for which `is_own` holds, with whiskers.
fn layer(
    result: &Paper3Result,
    part: HdtvPart,
    (name, colour): (&str, usize),
    is_own: impl Fn(&HdtvCell) -> bool,
    x: impl Fn(&HdtvCell) -> Option<f64>,
    value: Value,
) -> Layer {
    let cells = result.cells_of(part).filter(|cell| is_own(&cell.cell));
    let mut all: Vec<_> = cells.filter_map(|cell| Some((x(&cell.cell)?, estimate(cell, value)?))).collect();
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Layer {
        name: name.to_owned(),
        colour,
        form: Form::Marked,
        points: all.iter().map(|(x, y)| (*x, y.estimate)).collect(),
        band: all.iter().map(|(x, y)| (*x, y.low, y.high)).collect(),
    }
}

fn chart(x: Axis, y: Axis, layers: Vec<Layer>) -> String {
    let layers = layers.into_iter().filter(|layer| !layer.points.is_empty()).collect();
    Chart { title: String::new(), x, y, layers, size: Size::Wide }.to_svg()
}
