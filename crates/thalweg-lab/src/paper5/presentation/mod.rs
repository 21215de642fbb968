//! The result as text for the terminal and as a page: the same sections in both.

mod course;
mod pools;
mod servers;

use std::time::Duration;

use super::cell::PaperFigure;
use super::result::{Paper5Result, ServerCellRuns};
use super::{answers, verdicts};
use crate::circumstances;
use crate::figures::{duration, grouped, rounded, utc};
use crate::report::{Page, Section, Tile};
use crate::statistics::{Middle, RUNS_MIN, Verdict};
use crate::study::{CellFailure, differences_tables};
use crate::table::Table;

/// Tables and sentences for the terminal.
pub fn to_text(result: &Paper5Result) -> String {
    let (sections, warnings, conditions) =
        (measured(result), warnings(result), circumstances::sentences(&result.conditions));
    Page { sections, warnings, conditions, ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &Paper5Result) -> Page {
    let mut sections = measured(result);
    sections.push(participants(result));
    Page {
        title: "Paper 5, measured again".to_owned(),
        subtitle: format!(
            "{} · {} · Jeon, Lee, Han, Jung (2017), Figures 5 to 7 and 9 to 11, on one machine",
            utc(result.course.started_unix_s),
            duration(Duration::from_secs_f64(result.course.seconds))
        ),
        tiles: tiles(result),
        warnings: warnings(result),
        sections,
        facts: circumstances::facts(&result.environment),
        conditions: conditions(result),
        method: method(result),
        command: result.course.command.clone(),
        ..Page::default()
    }
}

fn measured(result: &Paper5Result) -> Vec<Section> {
    let has = |figure: &PaperFigure| result.cells_of(*figure).any(|cell| !cell.runs.is_empty());
    let section = |figure: PaperFigure| match figure {
        PaperFigure::Pools => pools::section(result),
        PaperFigure::Course => course::course(result),
        PaperFigure::Clients => servers::clients(result),
        PaperFigure::Sizes => servers::sizes(result),
        PaperFigure::Capacity => servers::capacity(result),
        PaperFigure::Overload => servers::overload(result),
        PaperFigure::Flood => servers::flood(result),
        PaperFigure::Ramp => course::ramp(result),
    };
    let mut out: Vec<Section> = PaperFigure::ALL.into_iter().filter(has).map(section).collect();
    out.extend(verdicts_section(result).filter(|_| !result.differences.is_empty()));
    let seen = verdicts::equations(result);
    if !seen.is_empty() {
        out.push(Section {
            title: "Differences from the equations, and their reasons".to_owned(),
            lead: "Each sentence follows from the runs above; docs/coap-internals.md gives the equations and their interpretation."
                .to_owned(),
            seen,
            ..Section::default()
        });
    }
    out
}

/// Contenders, failures and missing parts.
fn participants(result: &Paper5Result) -> Section {
    let mut there = Table::new("Servers", &["", "version"]);
    there.rows = result.contenders.iter().map(|one| vec![one.name.clone(), one.version.clone()]).collect();
    let mut missing = Table::new("Not measured", &["", "why", "what would help"]);
    missing.rows =
        result.missing.iter().map(|one| vec![one.what.clone(), one.why.clone(), one.remedy.clone()]).collect();
    let mut failed = Table::new("Cells that failed", &["cell", "round", "why"]);
    let row = |one: &CellFailure| vec![one.name.clone(), (one.round + 1).to_string(), one.reason.clone()];
    failed.rows = result.failures.iter().map(row).collect();
    Section {
        title: "Contenders".to_owned(),
        lead: "Each run has a server and a generator of its own, so that no run depends on the memory of another one."
            .to_owned(),
        tables: [there, missing, failed].into_iter().filter(|table| !table.rows.is_empty()).collect(),
        ..Section::default()
    }
}

fn tiles(result: &Paper5Result) -> Vec<Tile> {
    let Some(ours) = answers::contenders(result, PaperFigure::Capacity).into_iter().find(|one| one.is_ours()) else {
        return Vec::new();
    };
    let full = |cell: &super::ServerCell| {
        cell.contender == ours && matches!(cell.load, super::RequestLoad::Closed { outstanding, .. } if outstanding > 1)
    };
    let Some(cell) = answers::find(result, PaperFigure::Capacity, full) else { return Vec::new() };
    let tile = |value: Option<f64>, meaning: &str| {
        value.map(|value| Tile { figure: rounded(value), meaning: meaning.to_owned() })
    };
    let tiles = [
        tile(answers::median_of(cell, answers::SERVED), "requests/s at capacity"),
        tile(answers::median_of(cell, answers::PER_CPU_S), "requests for each processor second of the server"),
    ];
    tiles.into_iter().flatten().collect()
}

fn warnings(result: &Paper5Result) -> Vec<String> {
    let mut out = Vec::new();
    if result.environment.build == "debug" {
        out.push("A debug build was measured; it is several times slower than a release build.".to_owned());
    }
    if result.course.scale < 1.0 {
        let scale = result.course.scale;
        out.push(format!(
            "Clients and times are {scale} of the preset's: this shows that the preset works, and no more."
        ));
    }
    if result.conditions.is_disturbed() {
        out.push(
            "The machine was not quiet: other work took processor time. Ratios suffer less than figures, because contenders took turns; \
             repeat it on an idle machine."
                .to_owned(),
        );
    }
    out.extend(result.missing.iter().map(|one| format!("Missing: {}: {}; {}.", one.what, one.why, one.remedy)));
    out.extend(result.left_out.iter().map(|text| format!("Left out: {text}.")));
    out.extend(result.failures.iter().map(|failure| format!("Failed: {failure}")));
    out
}

fn conditions(result: &Paper5Result) -> Vec<String> {
    let runs = || result.cells.iter().flat_map(|cell| &cell.runs);
    let disturbed = runs().filter(|run| run.conditions.is_disturbed()).count();
    let mut out = circumstances::sentences(&result.conditions);
    out.push(format!("During {disturbed} of {} runs other work took more than 5 % of the processor time or a hypervisor more than 0.5 %.", runs().count()));
    out
}

fn method(result: &Paper5Result) -> Vec<String> {
    let course = &result.course;
    let limited = result.cells.iter().flat_map(|cell| &cell.runs).filter(|run| run.load.generator.generator_limited);
    let mut out = vec![
        match course.cpus {
            Some((server, generator)) => {
                format!("Every server runs on CPU {server} alone, the generator on CPU {generator}.")
            }
            None => "No process was pinned to a CPU: there is only one.".to_owned(),
        },
        "Non-confirmable GETs over loopback; each client has a source port of its own, every answer is checked for code, token, message ID \
         and payload. In an open loop latency counts from the scheduled time. An answer that comes too late is a loss."
            .to_owned(),
        format!(
            "A run is the unit: {} of each cell at most, in rounds whose order is shuffled from the seed {}. A figure is the median of \
             the runs, with its exact 95 % interval from eight runs on; below that the range from the least to the largest run, which \
             promises nothing.",
            course.runs, course.seed
        ),
        "Thalweg and the other servers as they are shipped, with the detection of duplicates, except where `without deduplication` is \
         said; libcoap 4.3 and the crate coap have none."
            .to_owned(),
        "The laws vta-printed and vta-authors decide each second, as in the paper; the others every 200 ms.".to_owned(),
        if course.has_energy {
            "Energy is that of all processor packages (RAPL), the generator's work included.".to_owned()
        } else {
            "This host does not tell the energy of its processors (RAPL); the server's processor time stands for it.".to_owned()
        },
        "The paper's figures come from a Raspberry Pi 3 with four cores and clients on other machines: compare the shape, \
         not the figures."
            .to_owned(),
    ];
    out.push(format!(
        "In {} runs the generator was at its own limit; their figures are too low for the server.",
        limited.count()
    ));
    out
}

/// A figure with its interval, or with the range of too few runs.
fn with_interval(middle: Option<Middle>) -> String {
    let shown = |one: Middle| {
        let [estimate, low, high] = [one.estimate, one.low, one.high].map(rounded);
        if one.is_range {
            format!("{estimate} (range {low} to {high})")
        } else {
            format!("{estimate} ({low} to {high})")
        }
    };
    middle.map_or_else(missing, shown)
}

/// A figure alone.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(missing, rounded)
}

fn missing() -> String {
    "–".to_owned()
}

/// Columns common to every table.
fn shared(cell: &ServerCellRuns) -> [String; 6] {
    let of = |quantity, by: f64| figure(answers::median_of(cell, quantity).map(|mean| mean * by));
    [
        of(answers::LOSS, 1e2),
        of(answers::P50, 1e-3),
        of(answers::P99, 1e-3),
        of(answers::CPU, 1e2),
        of(answers::PER_CPU_S, 1.0),
        of(answers::RESIDENT, 1.0),
    ]
}

/// The number of runs of a cell.
fn runs(cell: &ServerCellRuns) -> String {
    grouped(cell.runs.len() as u64)
}

/// Contenders against Thalweg as it is shipped, where the runs tell.
fn verdicts_section(result: &Paper5Result) -> Option<Section> {
    let told = result.differences.iter().filter(|one| one.verdict != Verdict::Inconclusive).count();
    let judged = format!("{told} of {} comparisons have a verdict.", result.differences.len());
    let fewest = result.cells.iter().map(|cell| cell.runs.len()).filter(|runs| *runs > 0).min()?;
    let few = (fewest < RUNS_MIN).then(|| format!("Cells with fewer than {RUNS_MIN} runs are not judged."));
    let caption = "Against Thalweg as it is shipped, with the same handler and load; runs of the same round paired";
    Some(Section {
        title: "Verdicts".to_owned(),
        lead: "Sign tests on the ratios of runs of the same round, corrected for the number of comparisons in one quantity. A server that \
               answers a smaller share of its requests is better in nothing else."
            .to_owned(),
        seen: [Some(judged), few].into_iter().flatten().collect(),
        tables: differences_tables(caption, &result.differences),
        ..Section::default()
    })
}

/// Titles of the columns of [`shared`].
const SHARED_TITLES: [&str; 6] = ["loss, %", "p50, ms", "p99, ms", "CPU, %", "per CPU second", "memory, MiB"];
