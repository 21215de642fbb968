//! Differences from the paper, with reasons: sentences that follow from the figures.

use thalweg_coap::scheduler::controller::ControlLaw;

use super::answers::{self, SERVED, best_and_largest, by_clients, median_of};
use super::cell::{Contender, PaperFigure, RequestLoad, ServerRoom, ServerWork};
use super::peer::{CoapPeer, Deduplication};
use super::ramp::{self, RampFigures};
use super::result::{Paper5Result, ServerCellRuns};
use crate::figures::{grouped, or_dash, percent, rounded};
use crate::statistics::Middle;

/// All sentences about the equations.
pub(super) fn equations(result: &Paper5Result) -> Vec<String> {
    let laws = [
        (
            ControlLaw::VtaPrinted,
            "Equation (2) as printed, PD = (R − H) / HT, is 0 in every steady state, however full the queue is",
        ),
        (
            ControlLaw::VtaAuthors,
            "The authors' code compares capacities and adds a thread for every 100,000 queued requests and period",
        ),
        (ControlLaw::Vta, "The corrected equations count threads that are needed, (R / (0.8 · HT)), and the backlog"),
        (ControlLaw::QueueDelay, "A law that looks at the queue's delay alone needs no equation"),
    ];
    let growing = laws.into_iter().filter_map(|(law, why)| growing(result, law, why));
    shrinking(result).into_iter().chain(growing).chain(accumulated(result)).collect()
}

/// What a cell's load with phases showed in the run in the middle: means of thread numbers are no thread numbers.
pub(super) fn step(cell: &ServerCellRuns) -> Option<RampFigures> {
    let mut all: Vec<RampFigures> = cell.runs.iter().filter_map(|run| ramp::figures(run, &cell.cell.load)).collect();
    all.sort_by(|one, other| one.served.total_cmp(&other.served));
    all.get((all.len().saturating_sub(1)) / 2).copied()
}

fn step_of(result: &Paper5Result, law: ControlLaw) -> Option<RampFigures> {
    step(answers::find(result, PaperFigure::Ramp, |cell| cell.contender == Contender::Thalweg(law))?)
}

/// Equation (4): whether the pool shrinks when the load falls.
fn shrinking(result: &Paper5Result) -> Option<String> {
    let figures = step_of(result, ControlLaw::VtaPrinted)?;
    let (most, end) = (figures.threads_max?, figures.threads_end?);
    let after = rounded(figures.after_s);
    Some(if end >= most {
        format!(
            "Equation (4) as printed adds max(PD, Q) ≥ 0 to N, so that the pool never shrinks; and so it was: {most} threads at most, and \
             {end} still there {after} s after the load had fallen to a sixth."
        )
    } else {
        format!(
            "Equation (4) as printed adds max(PD, Q) ≥ 0 to N, so that the pool should never shrink; here it went from {most} threads to \
             {end} within {after} s after the load had fallen, which that reading does not explain."
        )
    })
}

/// Whether a law met the step of the load.
fn growing(result: &Paper5Result, law: ControlLaw, why: &str) -> Option<String> {
    let figures = step_of(result, law)?;
    let needed = figures.needed.map_or_else(String::new, |needed| format!(" of {} that were needed", rounded(needed)));
    let threads = figures
        .threads_high
        .map_or_else(String::new, |threads| format!(" with {threads} threads{needed} at the end of the high load"));
    let outcome = match figures.caught_up_s {
        Some(seconds) if seconds < 1.0 => "it met the step within a second".to_owned(),
        Some(seconds) => format!("it met the step after {} s", rounded(seconds)),
        None if figures.served > NOTHING => {
            "it answered all requests of that phase, but until its end half of them after more than 0.1 s".to_owned()
        }
        None => format!(
            "it did not meet the step and left {} of the requests of that phase unserved",
            percent(1.0 - figures.served)
        ),
    };
    Some(format!("{law}: {why}; {outcome},{threads} and a queue of {} at most.", grouped(figures.queue_max)))
}

/// Figure 6: the sign of the accumulated difference.
fn accumulated(result: &Paper5Result) -> Option<String> {
    let runs = result.cells_of(PaperFigure::Course).flat_map(|cell| &cell.runs);
    let least = runs.flat_map(ramp::behind).map(|(_, value)| value).reduce(f64::min)?;
    Some(if least < 0.0 {
        format!(
            "Figure 6 has handlers up to six million requests ahead of the receiver; here they were ahead by {} at most.",
            rounded(-least)
        )
    } else {
        "Figure 6 has handlers up to six million requests ahead of the receiver, which counts cannot show: nothing is handled before it \
         came. The paper's H is what its threads could have handled while they were busy; here H is what they did, and the difference was \
         never below zero."
            .to_owned()
    })
}

/// Figure 5: for each handler and room, which fixed size is best, and how far from it others are.
pub(super) fn pools_seen(result: &Paper5Result) -> Vec<String> {
    let groups = answers::each(result, PaperFigure::Pools, |cell| (cell.handler, cell.room));
    let of = |(handler, room): &(ServerWork, ServerRoom)| {
        let is_own = |cell: &&ServerCellRuns| (cell.cell.handler, cell.cell.room) == (*handler, *room);
        let cells: Vec<&ServerCellRuns> = result.cells_of(PaperFigure::Pools).filter(is_own).collect();
        let (best, largest) = best_and_largest(&cells)?;
        let most = median_of(best, SERVED)?;
        let share = |cell: &ServerCellRuns| Some(percent(median_of(cell, SERVED)? / most));
        let described =
            if *handler == ServerWork::Short { "does next to nothing".to_owned() } else { handler.to_string() };
        let mut text = format!(
            "A handler that {described}, on {room}: of the fixed pools {} served most, {}/s",
            best.cell.contender.short_name(),
            rounded(most)
        );
        let others = [ControlLaw::Vta, ControlLaw::Inline].map(Contender::Thalweg);
        let others = others.iter().filter_map(|one| cells.iter().find(|cell| cell.cell.contender == *one));
        for cell in [&largest].into_iter().filter(|largest| largest.name != best.name).chain(others) {
            text.push_str(&format!(", {} {} of that", cell.cell.contender.short_name(), share(cell)?));
        }
        if *handler == ServerWork::Short {
            text.push_str("; the paper's best is 4, on four cores, and 200 threads served 37 % of that");
        }
        Some(text + ".")
    };
    groups.iter().filter_map(of).collect()
}

/// Figure 9: servers whose rate falls with more clients.
pub(super) fn clients_seen(result: &Paper5Result) -> Vec<String> {
    let of = |contender: Contender| {
        let points = by_clients(result, contender);
        let (clients, last) = points.last()?;
        let peak = points.iter().map(|(_, served)| served.estimate).fold(0.0, f64::max);
        let fall = match last.estimate / peak {
            share if share < FALL => format!(", {} of its peak", percent(share)),
            _ => String::new(),
        };
        let rate = rounded(last.estimate);
        Some(format!("{contender}: {rate}/s with {} clients{fall}.", grouped(*clients as u64)))
    };
    let contenders = answers::each(result, PaperFigure::Clients, |cell| cell.contender);
    contenders.into_iter().filter_map(of).chain(duplicates(result)).collect()
}

/// Californium with its duplicate detection and without, side by side: so few runs tell ranges and no cause.
fn duplicates(result: &Paper5Result) -> Option<String> {
    let last =
        |deduplication| by_clients(result, Contender::Peer(CoapPeer::Californium, deduplication)).last().copied();
    let ((clients, with), (_, without)) = (last(Deduplication::Shipped)?, last(Deduplication::Off)?);
    let shown = |served: Middle| {
        let kind = if served.is_range { "range" } else { "95 % interval" };
        format!("{}/s ({kind} {} to {})", rounded(served.estimate), rounded(served.low), rounded(served.high))
    };
    (clients >= PAPER_FALL).then(|| {
        format!(
            "With {} clients Californium served {} with the detection of duplicates and {} without it; the paper's Figure 9 shows a fall there.",
            grouped(clients as u64),
            shown(with),
            shown(without)
        )
    })
}

/// Figure 12: what the law that follows the load has over the fixed pool, on each platform.
pub(super) fn platforms_seen(result: &Paper5Result) -> Vec<String> {
    let of = |room: ServerRoom| {
        let cell = |is_fixed: bool| {
            answers::find(result, PaperFigure::Platforms, |cell| {
                let is_law = match cell.contender {
                    Contender::Thalweg(ControlLaw::Fixed(_)) => is_fixed,
                    Contender::Thalweg(law) => law == ControlLaw::Vta && !is_fixed,
                    Contender::Peer(..) => false,
                };
                cell.room == room && is_law
            })
        };
        let (fixed, vta) = (cell(true)?, cell(false)?);
        let share = percent(median_of(vta, SERVED)? / median_of(fixed, SERVED)?);
        Some(format!("On {room} vta served {share} of what {} did.", fixed.cell.contender.short_name()))
    };
    let mut out: Vec<String> =
        answers::each(result, PaperFigure::Platforms, |cell| cell.room).into_iter().filter_map(of).collect();
    if !out.is_empty() {
        out.push(
            "The paper has 119, 112, 113 and 113 % on its four machines; its baseline, MinT, has a fixed pool."
                .to_owned(),
        );
    }
    out
}

/// Overload: who keeps its peak, as far as the generator could ask for that much.
pub(super) fn overload_seen(result: &Paper5Result) -> Vec<String> {
    let of = |cell: &ServerCellRuns| {
        let name = cell.cell.server_name();
        if cell.runs.iter().any(|run| run.load.generator.generator_limited) {
            return Some(format!(
                "{name}: the generator, on one processor, could not send twice of what the server does on time; this says nothing of \
                 the server."
            ));
        }
        let share = median_of(cell, SERVED)? / answers::capacity(result, cell.cell.contender, cell.cell.handler)?;
        let p99 =
            median_of(cell, answers::P99).map_or_else(String::new, |us| format!(", p99 {} ms", rounded(us / 1e3)));
        Some(format!("{name} kept {} of its capacity{p99}.", percent(share)))
    };
    result.cells_of(PaperFigure::Overload).filter_map(of).collect()
}

/// The flood: its costs for honest clients, in answers and in time.
pub(super) fn flood_seen(result: &Paper5Result) -> Vec<String> {
    let of = |contender: Contender| {
        let cell = |is_flood: bool| {
            answers::find(result, PaperFigure::Flood, |cell| {
                let is_meant = matches!(cell.load, RequestLoad::Open { flood, .. } if flood.is_some() == is_flood);
                cell.contender == contender && is_meant
            })
        };
        let (with, without) = (cell(true)?, cell(false)?);
        let answered = |cell| Some(1.0 - median_of(cell, answers::LOSS)?);
        let share = answered(with)? / answered(without)?;
        let lost = match share {
            share if share > NOTHING => {
                "honest clients were answered as often beside the flood as without it".to_owned()
            }
            share => format!("the flood cost honest clients {} of their answers", percent(1.0 - share)),
        };
        let both = |figure| {
            let ms = |cell| or_dash(median_of(cell, figure), |us| rounded(us / 1e3));
            format!("{} ms beside it and {} ms without", ms(with), ms(without))
        };
        let (p50, p99) = (both(answers::P50), both(answers::P99));
        Some(format!("{contender}: {lost}; their median took {p50}, their 99th percentile {p99}."))
    };
    answers::each(result, PaperFigure::Flood, |cell| cell.contender).into_iter().filter_map(of).collect()
}

/// Fewer clients show nothing of a fall like that of the paper's Figure 9.
const PAPER_FALL: f64 = 10_000.0;
/// A fall below this share of the peak is one.
const FALL: f64 = 0.9;
/// A share above this is as good as all.
const NOTHING: f64 = 0.9995;
