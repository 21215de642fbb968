//! The result as text for the terminal and as a page: the same sections in both.

mod course;
mod servers;
mod tables;

use std::time::Duration;

use super::cell::{PaperFigure, RequestLoad};
use super::result::{Paper5Result, ServerCellRuns};
use super::{answers, verdicts};
use crate::circumstances;
use crate::figures::{duration, rounded, utc};
use crate::report::{Page, Section, Tile};
use crate::study::{CellFailure, comparison_cards, differences_tables};
use crate::table::Table;

/// Tables and sentences for the terminal.
pub fn to_text(result: &Paper5Result) -> String {
    let (sections, warnings, conditions) =
        (measured(result), warnings(result), circumstances::sentences(&result.conditions));
    let cards = comparison_cards(&result.differences);
    Page { cards, sections, warnings, conditions, ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &Paper5Result) -> Page {
    let mut sections = measured(result);
    sections.push(participants(result));
    Page {
        title: "Paper 5, measured again".to_owned(),
        subtitle: format!(
            "{} · {} · Jeon, Lee, Han, Jung (2017), Figures 2 to 7 and 9 to 12",
            utc(result.started_unix_s),
            duration(Duration::from_secs_f64(result.conditions.seconds))
        ),
        cards: comparison_cards(&result.differences),
        tiles: tiles(result),
        warnings: warnings(result),
        sections,
        facts: circumstances::facts(&result.environment),
        conditions: conditions(result),
        method: method(result),
        command: result.plan.command(),
    }
}

/// Each cell so far, for those who watch.
pub(super) fn overview(cells: &[ServerCellRuns]) -> Table {
    let columns: [&[_]; 5] = [&tables::NAME, &tables::RUNS, &tables::SERVED, &tables::LATENCY, &tables::MARKED];
    tables::table("Whole runs: medians over the runs", cells, &columns)
}

fn measured(result: &Paper5Result) -> Vec<Section> {
    let section = |figure: PaperFigure| match figure {
        PaperFigure::Threads => course::threads(result),
        PaperFigure::Pools => servers::pools(result),
        PaperFigure::Course => course::course(result),
        PaperFigure::Clients => servers::clients(result),
        PaperFigure::Sizes => servers::sizes(result),
        PaperFigure::Platforms => servers::platforms(result),
        PaperFigure::Capacity => servers::capacity(result),
        PaperFigure::Overload => servers::overload(result),
        PaperFigure::Flood => servers::flood(result),
        PaperFigure::Ramp => course::ramp(result),
    };
    let figures = PaperFigure::ALL.into_iter().map(|(figure, _)| figure);
    let mut out: Vec<Section> =
        figures.filter(|figure| result.cells_of(*figure).next().is_some()).map(section).collect();
    let tables = differences_tables(
        "Against Thalweg with its usual law, with the same handler, load and room; runs of the same round paired",
        &result.differences,
    );
    let unjudged = result.cells.iter().filter(|cell| !cell.cell.is_judged).count();
    out.extend((!tables.is_empty()).then(|| Section {
        title: "Verdicts".to_owned(),
        lead: "Sign tests on the ratios of runs of the same round, corrected for the number of comparisons in one quantity. A server that \
               answers a smaller share of its requests is better in nothing else."
            .to_owned(),
        seen: vec![format!("{unjudged} of {} cells are not judged: they show a course, or a way to saturation.", result.cells.len())],
        tables,
        ..Section::default()
    }));
    let seen = verdicts::equations(result);
    out.extend((!seen.is_empty()).then(|| Section {
        title: "Differences from the equations, and their reasons".to_owned(),
        lead: "Each sentence follows from the runs above; docs/coap-internals.md gives the equations and their interpretation."
            .to_owned(),
        seen,
        ..Section::default()
    }));
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
    let is_full = |cell: &super::ServerCell| {
        cell.contender.is_ours() && matches!(cell.load, RequestLoad::Closed { outstanding, .. } if outstanding > 1)
    };
    let Some(cell) = answers::find(result, PaperFigure::Capacity, is_full) else { return Vec::new() };
    let tile = |(measure, meaning): (answers::Measure, &str)| {
        Some(Tile { figure: rounded(answers::median_of(cell, measure)?), meaning: meaning.to_owned() })
    };
    let tiles = [
        (answers::SERVED, "requests/s at capacity"),
        (answers::PER_CPU_S, "requests for each processor second of the server"),
    ];
    tiles.into_iter().filter_map(tile).collect()
}

fn warnings(result: &Paper5Result) -> Vec<String> {
    let mut out = circumstances::warnings(&result.environment, &result.conditions);
    if result.plan.scale < 1.0 {
        let scale = result.plan.scale;
        out.push(format!(
            "Clients and times are {scale} of the preset's: this shows that the preset works, and no more."
        ));
    }
    out.extend(result.missing.iter().map(|one| format!("Missing: {}: {}; {}.", one.what, one.why, one.remedy)));
    out.extend(result.left_out.iter().map(|text| format!("Left out: {text}.")));
    out.extend(result.failures.iter().map(|failure| format!("Failed: {failure}")));
    out
}

fn conditions(result: &Paper5Result) -> Vec<String> {
    let disturbed = result.runs().filter(|run| run.conditions.is_disturbed()).count();
    let mut out = circumstances::sentences(&result.conditions);
    out.push(format!(
        "During {disturbed} of {} runs other work took more than 5 % of the processor time or a hypervisor more than 0.5 %.",
        result.runs().count()
    ));
    out
}

fn method(result: &Paper5Result) -> Vec<String> {
    let plan = &result.plan;
    let limited = result.runs().filter(|run| run.load.generator.generator_limited).count();
    vec![
        match plan.site.cpus {
            _ if plan.clients_on.is_some() => "A server runs on CPU 0 alone unless more are named.".to_owned(),
            0 | 1 => "No process was pinned to a CPU: there is only one.".to_owned(),
            cpus => format!(
                "A server runs on CPU 0 alone unless more are named, and under a quota on all of {cpus}; the generator on CPU {}.",
                cpus - 1
            ),
        },
        format!(
            "Non-confirmable GETs {}; each client has a source port of its own, every answer is checked for code, token, message ID and \
             payload. In an open loop latency counts from the scheduled time. An answer after more than 2 s is a loss.",
            plan.clients_on.as_ref().map_or_else(|| "over loopback".to_owned(), |host| format!("from {host}"))
        ),
        format!(
            "A run is the unit: {} of each cell with a verdict at most and fewer of the others, in rounds whose order is shuffled from the \
             seed {}. A figure is the median of the runs, with its exact 95 % interval from eight runs on; below that the range from the \
             least to the largest run, which promises nothing.",
            plan.runs, plan.seed
        ),
        "Thalweg and the other servers as they are shipped, with the detection of duplicates, except where `without deduplication` is \
         said; libcoap 4.3 and the crate coap have none. The paper's nCoAP is missing: no public registry of packages has it."
            .to_owned(),
        "The laws vta-printed and vta-authors decide each second, as in the paper; the others every 200 ms.".to_owned(),
        match result.runs().any(|run| run.server.energy_j.is_some()) {
            true => "Energy is that of all processor packages (RAPL), the generator's work included.".to_owned(),
            false => {
                "This host does not tell the energy of its processors (RAPL); the server's processor time stands for it.".to_owned()
            }
        },
        "The paper's figures come from a Raspberry Pi 3 with four cores and clients on other machines: compare the shape, \
         not the figures. It quotes its own gain as 25 and 35 %, as 5 and 30 %, and as 19, 12, 13 and 13 % for four machines; its Figure 10 \
         reads 24 % over MinT and 52 % over Californium."
            .to_owned(),
        format!("In {limited} runs the generator was at its own limit; their figures are too low for the server."),
    ]
}
