//! The result as text for the terminal and as a page: the same sections in both.

mod background;
mod bursts;
mod searches;

use std::time::Duration;

use super::bursts::SLOW_TURN;
use super::result::{ContenderFacts, NEVER_READY, Paper1Result};
use crate::circumstances;
use crate::figures::{duration, rounded, utc};
use crate::report::{Page, Section, Tile};
use crate::table::Table;

/// Tables and sentences for the terminal.
pub fn to_text(result: &Paper1Result) -> String {
    let (sections, warnings, conditions) =
        (measured(result), warnings(result), circumstances::sentences(&result.conditions));
    Page { sections, warnings, conditions, ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &Paper1Result) -> Page {
    Page {
        title: "Paper 1, measured again".to_owned(),
        subtitle: subtitle(result),
        cards: Vec::new(),
        tiles: tiles(result),
        warnings: warnings(result),
        sections: sections(result),
        facts: circumstances::facts(&result.environment),
        conditions: circumstances::sentences(&result.conditions),
        method: method(result),
        command: result.course.command.clone(),
    }
}

fn subtitle(result: &Paper1Result) -> String {
    format!(
        "{} · {} · Jeong (2018), Tables 2 to 4 and Figures 7 to 9, between separate processes on one machine",
        utc(result.course.started_unix_s),
        duration(Duration::from_secs_f64(result.course.seconds))
    )
}

fn sections(result: &Paper1Result) -> Vec<Section> {
    let mut out = measured(result);
    out.push(participants(result));
    out
}

/// The measurements, table by table, and the searches.
fn measured(result: &Paper1Result) -> Vec<Section> {
    let mut out = Vec::new();
    if !result.high_frequency.is_empty() {
        out.push(bursts::high_frequency(result));
    }
    if !result.large.is_empty() {
        out.push(bursts::large(result));
    }
    if !result.background.is_empty() {
        out.push(background::section(&result.background, &result.course.link));
    }
    out.push(searches::section(result));
    out
}

/// Contenders, failures and missing parts.
fn participants(result: &Paper1Result) -> Section {
    let mut there = Table::new("Contenders and how they ran", &["", "version or settings", "failures"]);
    for contender in &result.contenders {
        let failures = if contender.failures.is_empty() { "–".to_owned() } else { contender.failures.join("; ") };
        there.rows.push(vec![contender.name.clone(), contender.configuration.clone(), failures]);
    }
    let mut missing = Table::new("Not measured", &["", "why", "what would help"]);
    missing.rows =
        result.missing.iter().map(|one| vec![one.what.clone(), one.why.clone(), one.remedy.clone()]).collect();
    Section {
        title: "Contenders".to_owned(),
        lead: "Every contender is a pair of processes; all pairs of a table are started before its first turn and take turns.".to_owned(),
        tables: [there, missing].into_iter().filter(|table| !table.rows.is_empty()).collect(),
        ..Section::default()
    }
}

fn tiles(result: &Paper1Result) -> Vec<Tile> {
    let mut out: Vec<Tile> = bursts::tiles(result);
    out.extend(background::tile(&result.background));
    out
}

fn warnings(result: &Paper1Result) -> Vec<String> {
    let mut out = Vec::new();
    if result.environment.build == "debug" {
        out.push("A debug build was measured; it is several times slower than a release build.".to_owned());
    }
    if result.course.scale < 1.0 {
        let scale = result.course.scale;
        out.push(format!(
            "Numbers of samples and bytes are {scale} of the paper's: this shows that the preset works, and no more."
        ));
    }
    if result.conditions.is_disturbed() {
        out.push(
            "The machine was not quiet: other work took CPU time. Ratios within a table suffer less than figures, because contenders \
             took turns; repeat it on an idle machine."
                .to_owned(),
        );
    }
    out.extend(result.missing.iter().map(|one| format!("Missing: {}: {}; {}.", one.what, one.why, one.remedy)));
    // A peer that was never ready does not have the profile; the list of contenders says so.
    let was_there = |contender: &&ContenderFacts| contender.is_ours || contender.configuration != NEVER_READY;
    let failed = result.contenders.iter().filter(|contender| !contender.failures.is_empty()).filter(was_there);
    out.extend(failed.map(|one| format!("{} failed: {}", one.name, one.failures.join("; "))));
    out
}

fn method(result: &Paper1Result) -> Vec<String> {
    let course = &result.course;
    let mut out = vec![
        "The time of a run goes from the first write (T1) to the arrival of the one sample that the receiver sends back after the last \
         (T2). RTPS over UDP, no shared memory unless a peer has nothing else, reliable, keep-all, volatile, room for a whole burst."
            .to_owned(),
        "All contenders are measured by the same code. Each sample is encoded by its writer and decoded by its reader; Zenoh and iceoryx2 \
         have no types and hand over octets."
            .to_owned(),
        format!(
            "Within each cell the contenders take turns of {} runs; the order of the turns is shuffled anew in each round from the seed \
             {}. Each turn begins with one more run that is not counted. All processes stay alive meanwhile. A contender that needs more \
             than {} s for a turn gets no further turn in that cell; the column of runs shows it.",
            (course.runs / 5).max(1),
            course.seed,
            SLOW_TURN.as_secs()
        ),
        match course.cpus {
            Some((writer, reader)) => {
                format!("In Tables 2 and 3 every writing process runs on CPU {writer} and every reading one on CPU {reader}.")
            }
            None => "No process was pinned to a CPU: there is only one.".to_owned(),
        },
    ];
    if let Some(order) = course.first_orders.first() {
        out.push(format!("The first round's order was: {}.", order.join(", ")));
    }
    out.push(
        "Standard deviation is that of a sample (division by n − 1), as in the paper. A quantile is shown when at least ten values lie \
         beyond it: p90 from 100 values, p99 from 1,000; the median from three. No run is left out."
            .to_owned(),
    );
    out.push(
        "The paper's figures come from another stack on two PCs with a switch between them: compare the shape, not the figures."
            .to_owned(),
    );
    out.push("5 MB is 5 MiB here, so that every segment size divides it; KiB and MiB are powers of two.".to_owned());
    out
}

/// Milliseconds with three digits, or a dash.
fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), rounded)
}
