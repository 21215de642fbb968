//! Differences from the paper, with reasons: sentences that follow from the figures.

use thalweg_coap::scheduler::controller::ControlLaw;

use super::answers::{self, LOSS, SERVED, best_and_largest, by_clients, median_of, pools};
use super::cell::{Contender, PaperFigure, RequestLoad, ServerWork};
use super::peer::{CoapPeer, Deduplication};
use super::ramp::{self, RampFigures};
use super::result::{Paper5Result, ServerCellRuns};
use crate::figures::{grouped, percent, rounded};

/// All sentences about the equations.
pub(super) fn equations(result: &Paper5Result) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(shrinking(result));
    out.extend(growing(
        result,
        ControlLaw::VtaPrinted,
        "Equation (2) as printed, PD = (R − H) / HT, is 0 in every steady state, however full the queue is",
    ));
    out.extend(growing(
        result,
        ControlLaw::VtaAuthors,
        "The authors' code compares capacities and adds a thread for every 100,000 queued requests and period",
    ));
    out.extend(growing(
        result,
        ControlLaw::Vta,
        "The corrected equations count threads that are needed, (R / (0.8 · HT)), and the backlog",
    ));
    out.extend(growing(
        result,
        ControlLaw::QueueDelay,
        "A law that looks at the queue's delay alone needs no equation",
    ));
    out.extend(accumulated(result));
    out
}

/// A law's figures under the step of the load, means over the runs.
pub(super) fn ramp_of(result: &Paper5Result, contender: Contender) -> Option<RampFigures> {
    let cell = answers::find(result, PaperFigure::Ramp, |cell| cell.contender == contender)?;
    // The run in the middle: means of thread numbers are no thread numbers.
    let mut all: Vec<RampFigures> = cell.runs.iter().filter_map(|run| ramp::figures(run, &cell.cell.load)).collect();
    all.sort_by(|one, other| one.served.total_cmp(&other.served));
    all.get((all.len().saturating_sub(1)) / 2).copied()
}

/// Equation (4): whether the pool shrinks when the load falls.
fn shrinking(result: &Paper5Result) -> Option<String> {
    let figures = ramp_of(result, Contender::Thalweg(ControlLaw::VtaPrinted))?;
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
    let figures = ramp_of(result, Contender::Thalweg(law))?;
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
    let cells: Vec<_> = result.cells_of(PaperFigure::Course).filter(|cell| !cell.runs.is_empty()).collect();
    let last = |run: &super::Run| ramp::behind(run).last().map(|(_, value)| *value);
    let all: Vec<f64> = cells.iter().flat_map(|cell| cell.runs.iter().filter_map(last)).collect();
    if all.is_empty() {
        return None;
    }
    let least = ramp_extreme(&cells, f64::min)?;
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

fn ramp_extreme(cells: &[&super::ServerCellRuns], fold: fn(f64, f64) -> f64) -> Option<f64> {
    cells.iter().flat_map(|cell| &cell.runs).flat_map(ramp::behind).map(|(_, value)| value).reduce(fold)
}

/// Figure 5: which fixed size is best, and how far from it others are.
pub(super) fn pools_seen(result: &Paper5Result) -> Vec<String> {
    let of = |handler: ServerWork| {
        let pools = pools(result, handler);
        let (best, largest) = best_and_largest(&pools)?;
        let mut text = format!(
            "A handler that {}: of the fixed pools {} served most, {}/s",
            describe(handler),
            best.law,
            rounded(best.served)
        );
        if largest != best {
            text.push_str(&format!(", {} {} of that", largest.law, percent(largest.served / best.served)));
        }
        for law in [ControlLaw::Vta, ControlLaw::Inline] {
            if let Some(found) = pools.iter().find(|pool| pool.law == law) {
                text.push_str(&format!("; {law} {} of it", percent(found.served / best.served)));
            }
        }
        text.push_str(match handler {
            ServerWork::Short if best.law == ControlLaw::Fixed(4) => ". The paper's best is 4 as well.",
            ServerWork::Short => ". The paper's best is 4, on four cores; 200 threads served 37 % of that.",
            _ => ".",
        });
        Some(text)
    };
    let mut out: Vec<String> = answers::handlers(result, PaperFigure::Pools).into_iter().filter_map(of).collect();
    let short = pools(result, ServerWork::Short);
    if let (Some((best, _)), Some(inline)) =
        (best_and_largest(&short), short.iter().find(|pool| pool.law == ControlLaw::Inline))
    {
        let gain = inline.served / best.served;
        out.push(if gain > 1.0 {
            format!("Without a hand-over to a pool short handlers do {} times as much as the best pool, with no law at all.", rounded(gain))
        } else {
            "For short handlers the best pool did as much as no pool; handing over cost nothing that is seen here.".to_owned()
        });
    }
    out
}

fn describe(handler: ServerWork) -> String {
    match handler {
        ServerWork::Greeting => "greets".to_owned(),
        ServerWork::Short => "does next to nothing".to_owned(),
        other => other.to_string(),
    }
}

/// Figure 9: servers whose rate falls with more clients.
pub(super) fn clients_seen(result: &Paper5Result) -> Vec<String> {
    let mut out = vec![
        "The greeting runs on the receiving thread, where no law decides anything: what is seen here is the message layer and not thread \
         adjustment."
            .to_owned(),
    ];
    for contender in answers::contenders(result, PaperFigure::Clients) {
        let points = by_clients(result, contender);
        let Some((clients, last)) = points.last() else { continue };
        let peak = points.iter().map(|(_, served)| served.estimate).fold(0.0, f64::max);
        let is_most = |cell: &super::ServerCell| {
            cell.contender == contender
                && matches!(cell.load, RequestLoad::Open { clients: count, .. } if f64::from(count) == *clients)
        };
        let loss = answers::find(result, PaperFigure::Clients, is_most).and_then(|cell| median_of(cell, LOSS));
        let loss = loss.map_or_else(String::new, |loss| format!(", {} lost", percent(loss)));
        let fall = match last.estimate / peak {
            share if share < FALL => format!("; that is {} of its peak", percent(share)),
            _ => String::new(),
        };
        out.push(format!(
            "{}: {}/s with {} clients{loss}{fall}.",
            contender.middleware_name(),
            rounded(last.estimate),
            grouped(*clients as u64)
        ));
    }
    out.extend(duplicates(result));
    out
}

/// Whether Californium's fall is that of its duplicate detection.
fn duplicates(result: &Paper5Result) -> Option<String> {
    let last = |deduplication| {
        let points = by_clients(result, Contender::Peer(CoapPeer::Californium, deduplication));
        points.last().map(|(_, served)| served.estimate)
    };
    if answers::is_too_young(result, Contender::Peer(CoapPeer::Californium, Deduplication::Shipped)) {
        return None;
    }
    let (with, without) = (last(Deduplication::Shipped)?, last(Deduplication::Off)?);
    Some(if without > with * (2.0 - FALL) {
        format!(
            "Californium without the detection of duplicates served {} times as much at the most clients: what the paper's Figure 9 shows \
             as its fall is here the price of 247 s of duplicates, which MinT does not remember.",
            rounded(without / with)
        )
    } else {
        "Californium served as much with the detection of duplicates as without: its fall in the paper's Figure 9 has another reason here."
            .to_owned()
    })
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
        let p99 = median_of(cell, answers::P99)
            .map_or_else(String::new, |us| format!(", p99 of the served {} ms", rounded(us / 1e3)));
        Some(format!("{name} kept {} of its capacity{p99}.", percent(share)))
    };
    result.cells_of(PaperFigure::Overload).filter_map(of).collect()
}

/// The flood: its costs for honest clients.
pub(super) fn flood_seen(result: &Paper5Result) -> Vec<String> {
    let served = |contender: Contender, is_flood: bool| {
        let is_meant = |cell: &super::ServerCell| {
            cell.contender == contender
                && matches!(cell.load, RequestLoad::Open { flood, .. } if flood.is_some() == is_flood)
        };
        median_of(answers::find(result, PaperFigure::Flood, is_meant)?, SERVED)
    };
    let of = |contender: Contender| {
        let share = served(contender, true)? / served(contender, false)?;
        Some(match share {
            share if share > NOTHING => {
                format!("{}: honest clients noticed nothing of the flood.", contender.middleware_name())
            }
            share => format!(
                "{}: the flood cost honest clients {} of their answers.",
                contender.middleware_name(),
                percent(1.0 - share)
            ),
        })
    };
    answers::contenders(result, PaperFigure::Flood).into_iter().filter_map(of).collect()
}

/// A fall below this share of the peak is one.
const FALL: f64 = 0.9;
/// A share above this is as good as all.
const NOTHING: f64 = 0.9995;
