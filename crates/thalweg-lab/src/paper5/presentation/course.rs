//! Figures 6 and 7, and the step of a blocking load: laws over time.

use super::{figure, missing, runs};
use crate::figures::{percent, rounded};
use crate::paper5::answers::{LOSS, P50, P99, median_of};
use crate::paper5::cell::{Contender, PaperFigure};
use crate::paper5::ramp::{self, RampFigures};
use crate::paper5::result::{Paper5Result, Run, ServerCellRuns};
use crate::paper5::verdicts;
use crate::plot::{Axis, BESIDE, Chart, Form, Layer, Size};
use crate::report::{Figure, FigureLayout, Section};
use crate::table::Table;

pub(super) fn course(result: &Paper5Result) -> Section {
    let cells = || result.cells_of(PaperFigure::Course).filter(|cell| !cell.runs.is_empty());
    let behind: Vec<(f64, f64)> = cells()
        .flat_map(|cell| &cell.runs[..1])
        .flat_map(ramp::behind)
        .map(|(_, value)| (value.min(0.0), value))
        .collect();
    let most = behind.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let panel = |cell: &ServerCellRuns| {
        let layer = Layer { points: ramp::behind(&cell.runs[0]), ..line("", 0) };
        small(&cell.cell.contender.law_name(), Axis::linear("requests behind").over(0.0, most), vec![layer])
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
                cells().filter(|cell| is_adaptive(&cell.cell.contender)).map(rates_and_threads).collect(),
            ),
        ],
        tables: vec![table(result, PaperFigure::Course)],
        ..Section::default()
    }
}

/// Whether the number of threads changes, and so needs a picture.
fn is_adaptive(contender: &Contender) -> bool {
    use thalweg_coap::scheduler::controller::ControlLaw;
    matches!(contender, Contender::Thalweg(law) if !matches!(law, ControlLaw::Fixed(_) | ControlLaw::Inline))
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
        cell.cell.contender.law_name(),
        rounded(behind)
    ))
}

fn rates_and_threads(cell: &ServerCellRuns) -> String {
    let run = &cell.runs[0];
    let rates = ramp::rates(run);
    let rate = |name: &str, colour: usize, index: usize| Layer {
        points: rates.iter().map(|(at, rates)| (*at, rates[index])).collect(),
        ..line(name, colour)
    };
    // Threads on the axis of the rates: a hundred requests a second for each.
    let threads = Layer {
        points: ramp::threads(run).into_iter().map(|(at, threads)| (at, threads * THREAD_SCALE)).collect(),
        ..line("threads × 100 (N)", 2)
    };
    Chart {
        title: cell.cell.contender.law_name(),
        x: Axis::linear("seconds"),
        y: Axis::linear("requests/s"),
        layers: vec![rate("came (R)", 1, 0), rate("handled (H)", 0, 1), threads],
        size: Size::Wide,
    }
    .to_svg()
}

pub(super) fn ramp(result: &Paper5Result) -> Section {
    let cells = || result.cells_of(PaperFigure::Ramp).filter(|cell| !cell.runs.is_empty());
    let of_law = |cell: &&ServerCellRuns| !ramp::threads(&cell.runs[0]).is_empty();
    let most = cells().flat_map(|cell| ramp::threads(&cell.runs[0])).map(|(_, threads)| threads).fold(1.0, f64::max);
    let threads = |cell: &ServerCellRuns| {
        let mut layers = vec![Layer { points: ramp::threads(&cell.runs[0]), ..line("", 0) }];
        layers.extend(needed(&cell.runs[0], cell));
        small(&cell.cell.contender.law_name(), Axis::linear("threads").over(0.0, most), layers)
    };
    let waits = |cell: &ServerCellRuns| {
        let points = cell.runs[0].load.windows.iter();
        let points = points.filter_map(|one| Some((one.start_s, one.latency.p50_us?))).collect();
        small(
            &cell.cell.contender.law_name(),
            Axis::micros("median response time"),
            vec![Layer { points, ..line("", 1) }],
        )
    };
    Section {
        title: "A blocking load that rises and falls".to_owned(),
        lead: "A handler that blocks for 2 ms, asked 1,000, 6,000 and 1,000 times a second.".to_owned(),
        figures: vec![
            Figure::of_many(
                "Threads over time; the grey line is the number needed.",
                FigureLayout::Grid,
                cells().filter(of_law).map(threads).collect(),
            ),
            Figure::of_many(
                "Median response time of served requests.",
                FigureLayout::Grid,
                cells().map(waits).collect(),
            ),
        ],
        tables: vec![table(result, PaperFigure::Ramp)],
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
    Some(Layer { points: points.collect(), ..line("", BESIDE) })
}

fn table(result: &Paper5Result, part: PaperFigure) -> Table {
    let header = [
        "law or server",
        "runs",
        "loss, %",
        "p50, ms",
        "p99, ms",
        "served of the highest phase, %",
        "caught up after, s",
        "longest queue",
        "threads needed",
        "most",
        "at the end of the highest phase",
        "at the end",
    ];
    let mut table = Table::new("Results of each law; threads and queue are those of the middle run", &header);
    let row = |cell: &ServerCellRuns| {
        let figures = match part {
            PaperFigure::Ramp => verdicts::ramp_of(result, cell.cell.contender),
            _ => cell.runs.first().and_then(|run| ramp::figures(run, &cell.cell.load)),
        };
        [
            vec![
                cell.cell.contender.law_name(),
                runs(cell),
                figure(median_of(cell, LOSS).map(|share| share * 1e2)),
                figure(median_of(cell, P50).map(|us| us / 1e3)),
                figure(median_of(cell, P99).map(|us| us / 1e3)),
            ],
            figures.map_or_else(|| vec![missing(); 7], |figures| ramp_columns(&figures)),
        ]
        .concat()
    };
    table.rows = result.cells_of(part).map(row).collect();
    table
}

fn ramp_columns(figures: &RampFigures) -> Vec<String> {
    let threads = |count: Option<u64>| count.map_or_else(missing, |count| count.to_string());
    vec![
        rounded(figures.served * 1e2),
        figures.caught_up_s.map_or_else(|| "never".to_owned(), rounded),
        figures.queue_max.to_string(),
        figure(figures.needed),
        threads(figures.threads_max),
        threads(figures.threads_high),
        threads(figures.threads_end),
    ]
}

fn line(name: &str, colour: usize) -> Layer {
    Layer { name: name.to_owned(), colour, form: Form::Line, points: Vec::new(), band: Vec::new() }
}

fn small(title: &str, y: Axis, layers: Vec<Layer>) -> String {
    Chart { title: title.to_owned(), x: Axis::linear("seconds"), y, layers, size: Size::Small }.to_svg()
}

const THREAD_SCALE: f64 = 100.0;
