//! The page of this preset.

mod course;
mod servers;
mod tables;

use super::cell::{PaperFigure, RequestLoad, ServerCell};
use super::plan::Paper5Plan;
use super::result::{Paper5Result, Run};
use super::{answers, verdicts};
use crate::figures::rounded;
use crate::host::Conditions;
use crate::preset::{Figure, PresetPage, PresetWords};
use crate::report::{Section, Tile};
use crate::study::Column;

impl PresetPage for Paper5Plan {
    type Run = Run;

    const WORDS: PresetWords = PresetWords {
        title: "Paper 5, measured again",
        paper: "Jeon, Lee, Han, Jung (2017), Figures 2 to 7 and 9 to 12",
        scaled: "Clients",
        compared: "Against Thalweg with its usual law, with the same handler, load and room; runs of the same round paired",
        not_better: "A server that answers a smaller share of its requests",
        programs: "Servers",
        of_its_own: "Each run has a server and a generator of its own, so that no run depends on the memory of another one.",
    };
    const OVERVIEW: &'static [Column<ServerCell, Run>] = &tables::OVERVIEW;
    const TOLD: &'static [(&'static str, Figure<Paper5Plan>)] = &[
        ("served_per_s", answers::SERVED),
        ("loss", answers::LOSS),
        ("p50_us", answers::P50),
        ("p99_us", answers::P99),
    ];

    fn conditions(run: &Run) -> &Conditions {
        &run.conditions
    }

    fn section(result: &Paper5Result, figure: PaperFigure) -> Section {
        match figure {
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
        }
    }

    /// How many cells have no verdict.
    fn verdicts(result: &Paper5Result) -> Vec<String> {
        let unjudged = result.cells.iter().filter(|cell| !cell.cell.is_judged).count();
        vec![format!(
            "{unjudged} of {} cells are not judged: they show a course, or a way to saturation.",
            result.cells.len()
        )]
    }

    /// Where the paper's equations and the runs differ.
    fn closing(result: &Paper5Result) -> Option<Section> {
        let seen = verdicts::equations(result);
        (!seen.is_empty()).then(|| Section {
            title: "Differences from the equations, and their reasons".to_owned(),
            lead: "Each sentence follows from the runs above; docs/coap-internals.md gives the equations and their interpretation."
                .to_owned(),
            seen,
            ..Section::default()
        })
    }

    fn tiles(result: &Paper5Result) -> Vec<Tile> {
        let is_full = |cell: &ServerCell| {
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

    fn method(result: &Paper5Result) -> Vec<String> {
        let plan = &result.plan;
        let limited = result.runs().filter(|run| run.load.generator.generator_limited).count();
        // An older generator did not tell when answers came.
        let counted = if result.runs().all(|run| run.load.counts.answered.is_some()) {
            "Served are right answers that came within the counted time"
        } else {
            "Served are requests that were due in the counted time, whenever their right answers came"
        };
        vec![
            match plan.site.cpus {
                _ if plan.clients_on.is_some() => "A server runs on CPU 0 alone unless more are named.".to_owned(),
                0 | 1 => "No process was pinned to a CPU: there is only one.".to_owned(),
                cpus => format!(
                    "A server runs on CPU 0 alone unless more are named, and under a quota on all of {cpus}, in Figure 12 on those without the \
                     generator, which has CPU {}.",
                    cpus - 1
                ),
            },
            format!(
                "Non-confirmable GETs {}; each client has a source port of its own, every answer is checked for code, token, message ID and \
                 payload. In an open loop latency counts from the scheduled time. {counted}, also for each processor second; loss and response \
                 times are those of the requests that were due in it. An answer after more than 2 s is a loss.",
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
            format!("In {limited} runs the generator was at its own limit; their figures are too low for the server and count in no \
                     verdict."),
        ]
    }
}
