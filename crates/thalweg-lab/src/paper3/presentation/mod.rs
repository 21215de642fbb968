//! The result as text for the terminal and as a page: the same sections in both.

mod parts;
mod tables;

use std::time::Duration;

use super::cell::HdtvPart;
use super::defects;
use super::result::{HdtvCellRuns, Paper3Result};
use crate::circumstances;
use crate::figures::{duration, utc};
use crate::report::{Page, Section};
use crate::study::{CellFailure, StudyRun, comparison_cards, differences_tables};
use crate::table::Table;

/// Tables and sentences for the terminal.
pub fn to_text(result: &Paper3Result) -> String {
    let (sections, warnings, conditions) =
        (measured(result), warnings(result), circumstances::sentences(&result.conditions));
    let cards = comparison_cards(&result.differences);
    Page { cards, sections, warnings, conditions, ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &Paper3Result) -> Page {
    let mut sections = measured(result);
    sections.push(participants(result));
    Page {
        title: "Paper 3, measured again".to_owned(),
        subtitle: format!(
            "{} · {} · Jo, Seok, Lee, Byeon (2006), Figures 2 and 4 to 7, Tables 1 and 2",
            utc(result.started_unix_s),
            duration(Duration::from_secs_f64(result.conditions.seconds))
        ),
        cards: comparison_cards(&result.differences),
        warnings: warnings(result),
        sections,
        facts: circumstances::facts(&result.environment),
        conditions: conditions(result),
        method: method(result),
        command: result.plan.command(),
        ..Page::default()
    }
}

/// Each cell so far, for those who watch.
pub(super) fn overview(cells: &[HdtvCellRuns]) -> Table {
    let columns: [&[_]; 4] = [&tables::NAME, &tables::RUNS, &tables::OVERVIEW, &tables::MARKED];
    tables::table("Whole runs: medians over the runs", cells, &columns)
}

fn measured(result: &Paper3Result) -> Vec<Section> {
    let parts = HdtvPart::ALL.into_iter().map(|(part, _)| part);
    let mut out: Vec<Section> =
        parts.filter(|part| result.cells_of(*part).next().is_some()).map(|part| parts::section(result, part)).collect();
    let tables = differences_tables(
        "MTU 9000 against 1500, other programs and topics against Thalweg by RTP, all else alike; runs of the same round paired",
        &result.differences,
    );
    out.extend((!tables.is_empty()).then(|| Section {
        title: "Verdicts".to_owned(),
        lead: "Sign tests on the ratios of runs of the same round, corrected for the number of comparisons in one quantity. What shows a \
               smaller share of its frames is better in nothing else."
            .to_owned(),
        tables,
        ..Section::default()
    }));
    out.push(Section {
        title: "Where the paper contradicts itself, or says too much".to_owned(),
        lead: "Its statements with what is right; figures are those of the runs above.".to_owned(),
        seen: defects::sentences(result),
        ..Section::default()
    });
    out
}

/// Contenders, failures and missing parts.
fn participants(result: &Paper3Result) -> Section {
    let mut there = Table::new("Programs", &["", "version"]);
    there.words = vec![1];
    there.rows = result.contenders.iter().map(|(name, version)| vec![name.clone(), version.clone()]).collect();
    let mut missing = Table::new("Not measured", &["", "why", "what would help"]);
    missing.rows =
        result.missing.iter().map(|one| vec![one.what.clone(), one.why.clone(), one.remedy.clone()]).collect();
    let mut failed = Table::new("Cells that failed", &["cell", "round", "why"]);
    let row = |one: &CellFailure| vec![one.name.clone(), (one.round + 1).to_string(), one.reason.clone()];
    failed.rows = result.failures.iter().map(row).collect();
    Section {
        title: "Programs".to_owned(),
        lead: "Each run has hosts, link and programs of its own.".to_owned(),
        tables: [there, missing, failed].into_iter().filter(|table| !table.rows.is_empty()).collect(),
        ..Section::default()
    }
}

fn warnings(result: &Paper3Result) -> Vec<String> {
    let mut out = circumstances::warnings(&result.environment, &result.conditions);
    if result.plan.scale < 1.0 {
        let scale = result.plan.scale;
        out.push(format!(
            "Lines and times are {scale} of the preset's: this shows that the preset works, and no more."
        ));
    }
    out.extend(result.missing.iter().map(|one| format!("Missing: {}: {}; {}.", one.what, one.why, one.remedy)));
    out.extend(result.left_out.iter().map(|text| format!("Left out: {text}.")));
    let mut refused: Vec<&String> = result.runs().flat_map(|run| &run.refused).collect();
    refused.sort();
    refused.dedup();
    out.extend(refused.into_iter().map(|text| format!("Refused by the system: {text}.")));
    out.extend(result.failures.iter().map(|failure| format!("Failed: {failure}")));
    out
}

fn conditions(result: &Paper3Result) -> Vec<String> {
    let disturbed = result.runs().filter(|run| run.is_disturbed()).count();
    let mut out = circumstances::sentences(&result.conditions);
    out.push(format!(
        "During {disturbed} of {} runs other programs took more than 5 % of the processor time or a hypervisor more than 0.5 %. The kernel's \
         own work for the network is not counted as theirs.",
        result.runs().count()
    ));
    out
}

fn method(result: &Paper3Result) -> Vec<String> {
    let plan = &result.plan;
    let (width, lines) = plan.size();
    vec![
        format!(
            "The picture has {width} × {lines} pixels, 4:2:2 of 10 bits, 30000/1001 frames a second: {:.0} Mbit/s. All programs send one frame \
             again and again. Nothing lost is sent again by RTP.",
            plan.picture_mbit()
        ),
        "Sender and receiver are processes in network namespaces of one machine, joined by a veth pair; where frames are gathered or lost, \
         by a relay, which takes processor time of its own."
            .to_owned(),
        "The load is that of the programs, in shares of one processor, in windows of a second whose edges are 10 ms exact; σ is the deviation \
         of these windows, and that of the frame rate likewise. Much of a veth's receiving is done in the sender's time. The paper's load is \
         that of a whole host."
            .to_owned(),
        "What GStreamer and FFmpeg lost is the difference of the kernels' counts of datagrams at both ends. FFmpeg tells its frames ten times a \
         second, so that its last three may be missing.".to_owned(),
        format!(
            "Runs take turns in an order from the seed {}. A figure is the median of the runs, with its exact 95 % interval from eight runs on; \
             below that the range from the least to the largest run. A disturbed run is repeated up to twice, with --quick never.",
            plan.seed
        ),
        "The paper's hosts were two machines on a switch, with NICs of 10 Gbit/s on PCI-X: compare the shape, not the figures.".to_owned(),
    ]
}
