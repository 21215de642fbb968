//! What the paper says, in its own form, and where it contradicts itself or its evidence: with what is right, from figures where a run has
//! them.

use super::answers::{self, REPORT_JITTER, SCHEDULE_JITTER, SPACING};
use super::cell::{HdtvPart, ReceiveModeration};
use super::findings::{of_moderation, timers};
use super::result::Paper3Result;
use crate::figures::rounded;

/// Table 1: receiver's load in percent, and its deviation, by coalescing: on, then 50 to 800 µs.
pub(super) const TABLE_1: [(f64, f64); 6] =
    [(79.0, 0.48), (78.9, 0.44), (78.4, 0.36), (77.5, 0.56), (77.4, 0.50), (77.5, 0.41)];
/// Table 2: frames a second, and their deviation.
pub(super) const TABLE_2: [(f64, f64); 6] =
    [(29.95, 0.15), (29.94, 0.16), (29.97, 0.08), (29.96, 0.11), (29.96, 0.11), (29.96, 0.11)];
/// Figure 2: the most, in Gbit/s, with MTU 9000, and what it has over MTU 1500.
pub(super) const FIGURE_2: (f64, f64) = (5.1, 1.86);
/// Figure 3: one stream with MTU 1500, in Gbit/s, with the smallest and the best MMRBC.
pub(super) const FIGURE_3: (f64, f64) = (3.3, 3.9);
/// Figure 4: the most of several streams, in Gbit/s.
pub(super) const FIGURE_4: f64 = 6.6;
/// Figure 6: the timers in microseconds with the lowest round trip.
pub(super) const FIGURE_6_US: std::ops::RangeInclusive<u32> = 100..=400;
/// Time between the paper's packets in microseconds.
pub(super) const PAPER_SPACING_US: f64 = 57.8;
/// Share of the packets that the untuned receiver lost, and its load.
pub(super) const UNTUNED: (&str, &str) = ("3–4 %", "80.2 % ± 0.90");
/// Bytes of the paper's largest buffers, and its rule: bytes for each millisecond of round trip.
const BUFFER: (f64, f64) = (128_388_607.0, 1.25e6);

/// Each defect with the corrected statement.
pub(super) fn sentences(result: &Paper3Result) -> Vec<String> {
    let (most, gain) = FIGURE_2;
    let (slow, fast) = FIGURE_3;
    vec![
        "Equation (1) is TCP's: its throughput falls with round trip and loss because TCP slows down. RTP over UDP does not slow down; what a \
         UDP receiver needs is a buffer for its own longest stall: rate × stall × bytes charged for each byte of payload."
            .to_owned(),
        "\"Iperf acknowledges UDP\": it does not. Its server reports once, at the end.".to_owned(),
        jitter(result),
        jitter_with_timer(result),
        format!(
            "Figure 3 has {slow} Gbit/s with MTU 1500; Figure 2's {most} Gbit/s, {gain} times as much as with MTU 1500, make that {:.2}. Both \
             cannot be the same measurement.",
            most / gain
        ),
        format!(
            "From {slow} to {fast} Gbit/s is called 15 %; it is {:.0} %.",
            (fast / slow - 1.0) * 100.0
        ),
        format!(
            "The 128 MB buffer is the paper's own rule (1.25 MB for each millisecond) at a round trip of {:.0} ms; its hosts stand at one \
             switch.",
            BUFFER.0 / BUFFER.1
        ),
        "PCI-X of 64 bit and 133 MHz is 8 Gbit/s in one place and 8.5 in another; 64 × 133.3 MHz are 8.53.".to_owned(),
    ]
}

/// Figure 7's jitter is a property of the estimator.
fn jitter(result: &Paper3Result) -> String {
    let claim = format!(
        "Figure 7's jitter stays near {PAPER_SPACING_US} µs, the time between two packets. RFC 3550's estimator compares arrival with time \
         stamp, and all packets of a frame have one time stamp: it shows their spacing, however steady the network is"
    );
    let cell = of_moderation(result, ReceiveModeration::AsItIs);
    let value = |figure| answers::median_of(cell?, figure);
    match (value(REPORT_JITTER), value(SPACING), value(SCHEDULE_JITTER)) {
        (Some(jitter), Some(spacing), schedule) => {
            let schedule =
                schedule.map_or_else(String::new, |us| format!("; against an even schedule it was {} µs", rounded(us)));
            let near =
                if (0.5..=2.0).contains(&(jitter / spacing)) { "" } else { ", which this estimate does not explain" };
            format!(
                "{claim}. Here it was {} µs for packets {} µs apart{near}{schedule}.",
                rounded(jitter),
                rounded(spacing)
            )
        }
        _ => format!("{claim}."),
    }
}

/// Whether jitter grows with the timer.
fn jitter_with_timer(result: &Paper3Result) -> String {
    let claim = "Jitter \"grew\" with the timer in the text and was \"reduced\" by it in the conclusion";
    let points: Vec<(f64, f64)> = timers(result, HdtvPart::Moderation)
        .filter_map(|(us, cell)| Some((f64::from(us), answers::median_of(cell, SCHEDULE_JITTER)?)))
        .collect();
    match (points.first(), points.last()) {
        (Some((least, first)), Some((most, last))) if most > least => {
            let way = match last / first {
                ratio if ratio > NOTICEABLE => "grew",
                ratio if ratio < 1.0 / NOTICEABLE => "fell",
                _ => "stayed",
            };
            format!(
                "{claim}. Here, against an even schedule, it {way}: {} µs with frames gathered for {least:.0} µs, {} µs for {most:.0} µs.",
                rounded(*first),
                rounded(*last)
            )
        }
        _ => format!("{claim}."),
    }
}

/// A ratio below this is none.
const NOTICEABLE: f64 = 1.2;
