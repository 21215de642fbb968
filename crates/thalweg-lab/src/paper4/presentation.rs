//! The preset's page and its text for a terminal.

use super::{Paper4Result, figures};
use crate::parts;
use crate::report::{Page, Section};

/// The paper's figures with what is seen in them, for a terminal.
pub fn to_text(result: &Paper4Result) -> String {
    Page { sections: sections(result), ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &Paper4Result) -> Page {
    Page {
        title: "Paper 4, measured again".to_owned(),
        method: METHOD.map(str::to_owned).to_vec(),
        ..parts::shell(&result.parts, SOURCE, &result.command, sections(result))
    }
}

/// The figures of the parts that were measured, and what is missing.
fn sections(result: &Paper4Result) -> Vec<Section> {
    let missing = Section {
        title: "What is left out".to_owned(),
        lead: "What the paper has and this run has not.".to_owned(),
        seen: result
            .left_out
            .iter()
            .map(|line| format!("Left out: {line}."))
            .chain(ABSENT.map(str::to_owned))
            .collect(),
        ..Section::default()
    };
    figures::sections(result).into_iter().chain([missing]).collect()
}

const SOURCE: &str = "Kouril, Schäufele, Radusch, Schnor (2024), below the client library, every node a process";
const ABSENT: [&str; 2] = [
    "Not measured: RTI Connext, for which the lab has no program.",
    "Not measured: the layers of other middleware than Thalweg, and those of ROS 2 above them: the paper's program has tracepoints in its own \
     build of them.",
];
const METHOD: [&str; 5] = [
    "A node is a process with one participant, as the paper's is with one of ROS 2; all share this machine, and the traffic stays on it.",
    "The schedule is open: each sample is due at t0 + k/f, even if those before it were late, and its latency counts from then; the paper's \
     counts from the call that publishes, so that a publisher that falls behind looks fast there.",
    "The limit of Figure 11 is the period. At a publisher a sample is in time when its write returns within its period, late when it returns \
     later, and not sent when it could not begin within a second.",
    "The part vendors has as many runs as verdicts need, in turns: sign tests of runs of the same round with Holm's correction for the number \
     of comparisons. All other parts have few runs and carry no verdict.",
    "Boxes reach from the first to the third quartile, whiskers to the last sample within 1.5 times that beyond them. A sample that never arrived \
     counts as infinitely late in quantiles, and not in means.",
];
