//! Figures 2 to 4, 6 and 7, and the step of a blocking load: receiver, handlers and laws over time.

use thalweg_coap::scheduler::controller::ControlLaw;

use super::tables::{INSIDE, LATENCY, LAW, ROOM, RUNS, STEP, USAGE};
use crate::figures::{percent, rounded};
use crate::paper5::answers::{LOSS, median_of};
use crate::paper5::cell::{Contender, PaperFigure};
use crate::paper5::ramp;
use crate::paper5::result::{Paper5Result, Run, ServerCellRuns};
use crate::plot::{Axis, BESIDE, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::study::cell_table;

pub(super) fn threads(result: &Paper5Result) -> Section {
    let cells = || result.cells_of(PaperFigure::Threads);
    Section {
        title: "Figures 2 to 4: receiver and handlers over time".to_owned(),
        lead: "A handler that computes for 100 µs, requested 12,000 times a second, with fixed pools; the server has as many CPUs as the \
               paper's, where there are so many."
            .to_owned(),
        seen: cells().filter_map(course_seen).collect(),
        figures: vec![Figure::of_many(
            "Requests received (NR) and handled (H) in a second.",
            FigureLayout::Column,
            cells().map(|cell| rates(cell, Vec::new())).collect(),
        )],
        tables: vec![cell_table("Results of each pool", cells(), &[&LAW, &ROOM, &RUNS, &INSIDE, &LATENCY, &USAGE])],
        ..Section::default()
    }
}

pub(super) fn course(result: &Paper5Result) -> Section {
    let cells = || result.cells_of(PaperFigure::Course);
    let behind = |cell: &ServerCellRuns| ramp::behind(&cell.runs[0]);
    let most = cells().flat_map(behind).map(|(_, value)| value).fold(1.0, f64::max);
    let panel = |cell: &ServerCellRuns| {
        small(cell, Axis::linear("requests behind").over(0.0, most), vec![line("", 0, behind(cell))])
    };
    let is_adaptive = |cell: &&ServerCellRuns| {
        !matches!(cell.cell.contender, Contender::Thalweg(ControlLaw::Fixed(_) | ControlLaw::Inline))
    };
    // Threads on the axis of the rates: a hundred requests a second for each.
    let with_threads = |cell: &ServerCellRuns| {
        let threads = ramp::threads(&cell.runs[0]).into_iter().map(|(at, threads)| (at, threads * 100.0)).collect();
        rates(cell, vec![line("threads × 100 (N)", 2, threads)])
    };
    Section {
        title: "Figures 6 and 7: receiver and handlers over time".to_owned(),
        lead: "A handler that blocks for 1 ms, under a rate that rises and falls. The number behind is that of received requests less \
               that of handled ones; refused requests stay in it."
            .to_owned(),
        seen: cells().filter_map(course_seen).collect(),
        figures: vec![
            Figure::of_many("Figure 6: how far handlers fall behind the receiver.", FigureLayout::Grid, cells().map(panel).collect()),
            Figure::of_many(
                "Figure 7: requests received and handled in a second, and the number of threads.",
                FigureLayout::Column,
                cells().filter(is_adaptive).map(with_threads).collect(),
            ),
        ],
        tables: vec![cell_table(STEP_CAPTION, cells(), &[&LAW, &RUNS, &LATENCY, &STEP])],
        ..Section::default()
    }
}

fn course_seen(cell: &ServerCellRuns) -> Option<String> {
    let run = cell.runs.first()?;
    let (_, behind) = *ramp::behind(run).last()?;
    let (least, most) = ramp::threads(run)
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), (_, threads)| (least.min(*threads), most.max(*threads)));
    let served = percent(1.0 - median_of(cell, LOSS)?);
    Some(format!(
        "{}: {} requests behind at the end, {served} served, {least:.0} to {most:.0} threads.",
        cell.cell.contender.short_name(),
        rounded(behind)
    ))
}

/// What came and what was handled, over time, with more beside it.
fn rates(cell: &ServerCellRuns, more: Vec<Layer>) -> String {
    let rates = ramp::rates(&cell.runs[0]);
    let of = |index: usize| rates.iter().map(|(at, rates)| (*at, rates[index])).collect();
    let layers = [vec![line("came (NR)", 1, of(0)), line("handled (H)", 0, of(1))], more].concat();
    Chart {
        title: cell.cell.contender.short_name(),
        x: Axis::linear("seconds"),
        y: Axis::linear("requests/s"),
        layers,
        size: Size::Wide,
    }
    .to_svg()
}

pub(super) fn ramp(result: &Paper5Result) -> Section {
    let cells = || result.cells_of(PaperFigure::Ramp);
    let threads = |cell: &ServerCellRuns| ramp::threads(&cell.runs[0]);
    let most = cells().flat_map(threads).map(|(_, threads)| threads).fold(1.0, f64::max);
    let panel = |cell: &ServerCellRuns| {
        let layers = [line("", 0, threads(cell))].into_iter().chain(needed(&cell.runs[0], cell)).collect();
        small(cell, Axis::linear("threads").over(0.0, most), layers)
    };
    let waits = |cell: &ServerCellRuns| {
        let points = cell.runs[0].load.windows.iter();
        let points = points.filter_map(|one| Some((one.start_s, one.latency.p50_us.filter(|us| us.is_finite())?)));
        let points = points.collect();
        small(cell, Axis::micros("median response time"), vec![line("", 1, points)])
    };
    Section {
        title: "A blocking load that rises and falls".to_owned(),
        lead: "A handler that blocks for 2 ms, asked 1,000, 6,000 and 1,000 times a second.".to_owned(),
        figures: vec![
            Figure::of_many(
                "Threads over time; the grey line is the number needed.",
                FigureLayout::Grid,
                cells().filter(|cell| !threads(cell).is_empty()).map(panel).collect(),
            ),
            Figure::of_many(
                "Median response time of served requests.",
                FigureLayout::Grid,
                cells().map(waits).collect(),
            ),
        ],
        tables: vec![cell_table(STEP_CAPTION, cells(), &[&LAW, &RUNS, &LATENCY, &STEP])],
        ..Section::default()
    }
}

/// Threads that are needed in each phase.
fn needed(run: &Run, cell: &ServerCellRuns) -> Option<Layer> {
    let highest = ramp::figures(run, &cell.cell.load)?.needed?;
    let phases = ramp::phases(&cell.cell.load);
    let rate = phases.iter().map(|(_, phase)| phase.rate).fold(0.0, f64::max);
    let points = phases.iter().flat_map(|(start, phase)| {
        let needed = highest * phase.rate / rate;
        [(*start, needed), (start + phase.duration.as_secs_f64(), needed)]
    });
    Some(line("", BESIDE, points.collect()))
}

fn line(name: &str, colour: usize, points: Vec<(f64, f64)>) -> Layer {
    Layer { name: name.to_owned(), colour, form: Form::Line, points, band: Vec::new() }
}

fn small(cell: &ServerCellRuns, y: Axis, layers: Vec<Layer>) -> String {
    let title = cell.cell.contender.short_name();
    Chart { title, x: Axis::linear("seconds"), y, layers, size: Size::Small }.to_svg()
}

const STEP_CAPTION: &str = "Results of each law; threads and queue are those of the middle run";
