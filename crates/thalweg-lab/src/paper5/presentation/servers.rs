//! Figures 5 and 9 to 12, and comparisons of servers that the paper does not have.

use thalweg_coap::scheduler::controller::ControlLaw;

use super::tables::{ENERGY, INSIDE, LATENCY, LAW, OFFERED, PROCESSOR, ROOM, RUNS, SERVED, SERVER, THREADS, USAGE};
use crate::paper5::answers::{self, PER_CPU_S, each, estimate};
use crate::paper5::cell::{Contender, PaperFigure, RequestLoad, ServerCell, ServerRoom, ServerWork};
use crate::paper5::result::{Paper5Result, ServerCellRuns};
use crate::paper5::verdicts;
use crate::plot::{Axis, Chart, Form, Layer, PlotRow, RowMark, Size, rows};
use crate::report::{Figure, FigureLayout, Section};
use crate::statistics::Middle;
use crate::study::cell_table;
use crate::table::Table;

pub(super) fn pools(result: &Paper5Result) -> Section {
    let handlers = each(result, PaperFigure::Pools, |cell| cell.handler);
    let of = |handler: ServerWork| result.cells_of(PaperFigure::Pools).filter(move |cell| cell.cell.handler == handler);
    let chart = |handler: &ServerWork| {
        let size = |cell: &ServerCell| match cell.contender {
            Contender::Thalweg(ControlLaw::Fixed(size)) => Some(size as f64),
            _ => None,
        };
        let layers = served_by(&of(*handler).collect::<Vec<_>>(), |cell| cell.room.to_string(), size);
        let axes = (Axis::logarithmic("threads of the pool"), Axis::fitting("requests/s served"));
        wide(&handler.to_string(), axes, layers)
    };
    let columns: [&[_]; 7] = [&LAW, &ROOM, &RUNS, &SERVED, &INSIDE, &LATENCY, &USAGE];
    let of_handler = |handler: &ServerWork| cell_table(format!("Handler: {handler}"), of(*handler), &columns);
    Section {
        title: "Figure 5: pools of fixed sizes".to_owned(),
        lead: "64 clients with four requests each in flight; handlers that do next to nothing, compute and block, with more or fewer CPUs. \
               NR is the number of datagrams that the receiver took in a second, H that of requests that handlers finished. With all CPUs \
               of the machine the server shares one with the generator."
            .to_owned(),
        seen: verdicts::pools_seen(result),
        figures: vec![Figure::of_many(
            "Fixed pools by their size: more threads help handlers that block, and where there are more CPUs.",
            FigureLayout::Column,
            handlers.iter().map(chart).collect(),
        )],
        tables: handlers.iter().map(of_handler).collect(),
        ..Section::default()
    }
}

pub(super) fn clients(result: &Paper5Result) -> Section {
    let contenders = each(result, PaperFigure::Clients, |cell| cell.contender);
    let layer = |(colour, contender): (usize, &Contender)| {
        marked(&contender.to_string(), colour, &answers::by_clients(result, *contender))
    };
    let axes = (Axis::logarithmic("clients, each with 10 requests/s"), Axis::logarithmic("requests/s served"));
    let lines = wide("", axes, contenders.iter().enumerate().map(layer).collect());
    let mean = |contender: &Contender| Some((*contender, answers::mean_of_many_clients(result, *contender)?));
    let mut section = compared(result, PaperFigure::Clients);
    section.seen = verdicts::clients_seen(result);
    section.figures = vec![
        Figure::new(
            "Figure 9: served requests by number of clients; on a straight line all requests are served.",
            lines,
        ),
        Figure::new(
            "Figure 10: the mean over 1,000 and more clients; whiskers reach from the least to the most of them.",
            bars(Axis::fitting("requests/s served"), contenders.iter().filter_map(mean)),
        ),
    ];
    section
}

pub(super) fn sizes(result: &Paper5Result) -> Section {
    let bytes = |cell: &ServerCell| match cell.load {
        RequestLoad::Open { bytes, .. } => bytes.map(|bytes| bytes as f64),
        _ => None,
    };
    let axes = (Axis::logarithmic("bytes of a request"), Axis::fitting("requests/s served"));
    by_contender(result, PaperFigure::Sizes, "Served requests by the size of a request.", axes, bytes)
}

pub(super) fn platforms(result: &Paper5Result) -> Section {
    let quota = |cell: &ServerCell| match cell.room {
        ServerRoom::Quota(percent) => Some(f64::from(percent)),
        ServerRoom::Cpus(_) => None,
    };
    let axes = (Axis::logarithmic("percent of a CPU"), Axis::logarithmic("requests/s served"));
    let mut section = by_contender(
        result,
        PaperFigure::Platforms,
        "Served requests by the processor time that a server may use.",
        axes,
        quota,
    );
    section.seen = verdicts::platforms_seen(result);
    section
}

/// A part whose picture has a line for each contender.
fn by_contender(
    result: &Paper5Result,
    figure: PaperFigure,
    shows: &str,
    axes: (Axis, Axis),
    x: impl Fn(&ServerCell) -> Option<f64>,
) -> Section {
    let cells: Vec<&ServerCellRuns> = result.cells_of(figure).collect();
    let lines = wide("", axes, served_by(&cells, |cell| cell.contender.to_string(), x));
    Section { figures: vec![Figure::new(shows, lines)], ..compared(result, figure) }
}

pub(super) fn capacity(result: &Paper5Result) -> Section {
    let full = |contender: &Contender| {
        let is_own = |cell: &ServerCell| {
            cell.is_capacity() && cell.contender == *contender && cell.handler == ServerWork::Greeting
        };
        Some((*contender, estimate(answers::find(result, PaperFigure::Capacity, is_own)?, PER_CPU_S)?))
    };
    let contenders = each(result, PaperFigure::Capacity, |cell| cell.contender);
    let picture = bars(Axis::linear("requests"), contenders.iter().filter_map(full));
    Section {
        figures: vec![Figure::new(
            "Requests for each processor second of the server, which a generator at its limit does not lower.",
            picture,
        )],
        ..compared(result, PaperFigure::Capacity)
    }
}

pub(super) fn overload(result: &Paper5Result) -> Section {
    Section { seen: verdicts::overload_seen(result), ..compared(result, PaperFigure::Overload) }
}

pub(super) fn flood(result: &Paper5Result) -> Section {
    Section { seen: verdicts::flood_seen(result), ..compared(result, PaperFigure::Flood) }
}

/// The table of a part that compares servers, with what it is about.
fn compared(result: &Paper5Result, figure: PaperFigure) -> Section {
    let (title, lead) = match figure {
        PaperFigure::Clients => (
            "Figures 9 and 10: more and more clients",
            "Each client sends ten requests a second, whether they are answered or not, to a handler that computes for 20 µs: in a pool of \
             four threads, as many as the paper's machine has cores (MinT), and in one that follows the load (MinT-I).",
        ),
        PaperFigure::Sizes => (
            "Figure 11: larger datagrams",
            "The same handler, requested more often than one CPU allows, with a query of many options: the answer stays small.",
        ),
        PaperFigure::Platforms => (
            "Figure 12: slower machines",
            "The same handler and load with a quota of the processor's time in the place of the paper's other machines. Californium compiles \
             before it is limited.",
        ),
        PaperFigure::Capacity => (
            "Capacity",
            "The most that a server serves: 64 clients with four requests each in flight. Beside it, one client that waits for each answer.",
        ),
        PaperFigure::Overload => {
            ("Overload", "Requests at twice the server's own capacity, on a schedule that does not wait for answers.")
        }
        _ => (
            "A flood from very many ports",
            "Honest clients, alone and beside requests from many ports, each of which sends few.",
        ),
    };
    let room: &[_] = if figure == PaperFigure::Platforms { &ROOM } else { &[] };
    let cost = if result.runs().any(|run| run.server.energy_j.is_some()) { &ENERGY } else { &PROCESSOR };
    let columns: [&[_]; 9] = [&SERVER, room, &RUNS, &OFFERED, &SERVED, &LATENCY, &USAGE, &THREADS, cost];
    let results: Table = cell_table("Results of each server", result.cells_of(figure), &columns);
    Section { title: title.to_owned(), lead: lead.to_owned(), tables: vec![results], ..Section::default() }
}

/// What was served, a line for each name, by something that cells differ in.
fn served_by(
    cells: &[&ServerCellRuns],
    name: impl Fn(&ServerCell) -> String,
    x: impl Fn(&ServerCell) -> Option<f64>,
) -> Vec<Layer> {
    let mut lines: Vec<(String, Vec<(f64, Middle)>)> = Vec::new();
    for cell in cells {
        let Some(point) = x(&cell.cell).zip(estimate(cell, answers::SERVED)) else { continue };
        let name = name(&cell.cell);
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    lines.iter_mut().for_each(|(_, points)| points.sort_by(|(one, _), (other, _)| one.total_cmp(other)));
    lines.iter().enumerate().map(|(colour, (name, points))| marked(name, colour, points)).collect()
}

/// Points joined by a line, with whiskers.
fn marked(name: &str, colour: usize, points: &[(f64, Middle)]) -> Layer {
    Layer {
        name: name.to_owned(),
        colour,
        form: Form::Marked,
        points: points.iter().map(|(x, y)| (*x, y.estimate)).collect(),
        band: points.iter().map(|(x, y)| (*x, y.low, y.high)).collect(),
    }
}

/// A row for each contender.
fn bars(axis: Axis, values: impl Iterator<Item = (Contender, Middle)>) -> String {
    let row = |(contender, value): (Contender, Middle)| PlotRow {
        name: contender.to_string(),
        note: String::new(),
        marks: vec![RowMark { colour: 0, value: value.estimate, interval: Some((value.low, value.high)) }],
    };
    rows(&axis, &[], &values.map(row).collect::<Vec<_>>())
}

fn wide(title: &str, (x, y): (Axis, Axis), layers: Vec<Layer>) -> String {
    Chart { title: title.to_owned(), x, y, layers, size: Size::Wide }.to_svg()
}
