//! Figures 9 to 11 and comparisons of servers that the paper does not have.

use super::pools::marked;
use super::{SHARED_TITLES, figure, runs, shared, with_interval};
use crate::figures::percent;
use crate::paper5::answers::{self, COST, OFFERED, P50, P99, PER_CPU_S, SERVED, THREADS, estimate, median_of};
use crate::paper5::cell::{Contender, PaperFigure, RequestLoad, ServerWork};
use crate::paper5::result::{Paper5Result, ServerCellRuns};
use crate::paper5::usage::Moment;
use crate::paper5::verdicts;
use crate::plot::{Axis, Chart, Form, Layer, PlotRow, RowMark, Size, rows};
use crate::report::{Figure, Section};
use crate::statistics::Middle;
use crate::table::Table;

pub(super) fn clients(result: &Paper5Result) -> Section {
    let contenders = answers::contenders(result, PaperFigure::Clients);
    let layer = |(colour, contender): (usize, &Contender)| {
        marked(&contender.middleware_name(), colour, &answers::by_clients(result, *contender))
    };
    let lines = chart(
        Axis::logarithmic("clients, each with 10 requests/s"),
        Axis::logarithmic("requests/s served"),
        contenders.iter().enumerate().map(layer).collect(),
    );
    let mut figures = vec![
        Figure::new(
            "Figure 9: served requests by number of clients; on a straight line all requests are served.",
            lines,
        ),
        Figure::new(
            "Figure 10: the mean over 1,000 and more clients; whiskers reach from the least to the most of them.",
            means(result, &contenders),
        ),
    ];
    figures.extend(over_time(result, &contenders));
    Section {
        title: "Figures 9 and 10: more and more clients".to_owned(),
        lead: "Each client requests a greeting ten times a second, whether it is answered or not.".to_owned(),
        seen: verdicts::clients_seen(result),
        figures,
        tables: vec![table(result, PaperFigure::Clients, "Results of each server")],
        ..Section::default()
    }
}

fn means(result: &Paper5Result, contenders: &[Contender]) -> String {
    let row = |contender: &Contender| {
        let mean = answers::mean_of_many_clients(result, *contender)?;
        let mark = RowMark { colour: 0, value: mean.estimate, interval: Some((mean.low, mean.high)) };
        Some(PlotRow { name: contender.middleware_name(), note: String::new(), marks: vec![mark] })
    };
    let all: Vec<PlotRow> = contenders.iter().filter_map(row).collect();
    rows(&Axis::fitting("requests/s served"), &[], &all)
}

/// Memory and threads over time, in the first run with the most clients, where runs are long enough for a course.
fn over_time(result: &Paper5Result, contenders: &[Contender]) -> Vec<Figure> {
    let last = |contender: &Contender| {
        result.cells_of(PaperFigure::Clients).filter(|cell| cell.cell.contender == *contender).last()?.runs.first()
    };
    let picture = |title: &str, of: fn(&Moment) -> f64| {
        let layer = |(colour, contender): (usize, &Contender)| {
            let points: Vec<(f64, f64)> =
                last(contender)?.moments.iter().filter(|one| one.at_s >= 0.0).map(|one| (one.at_s, of(one))).collect();
            let name = contender.middleware_name();
            (points.len() > 2).then_some(Layer { name, colour, form: Form::Line, points, band: Vec::new() })
        };
        let layers: Vec<Layer> = contenders.iter().enumerate().filter_map(layer).collect();
        let axis = (Axis::linear("seconds"), Axis::logarithmic(title));
        (!layers.is_empty()).then(|| chart(axis.0, axis.1, layers))
    };
    let memory = picture("memory, MiB", |one| one.resident_mib)
        .map(|svg| Figure::new("Memory over time with the most clients.", svg));
    let threads = picture("threads", |one| one.threads as f64)
        .map(|svg| Figure::new("Threads over time with the most clients.", svg));
    [memory, threads].into_iter().flatten().collect()
}

pub(super) fn sizes(result: &Paper5Result) -> Section {
    let contenders = answers::contenders(result, PaperFigure::Sizes);
    let layer = |(colour, contender): (usize, &Contender)| {
        let of = |cell: &ServerCellRuns| match cell.cell.load {
            RequestLoad::Open { bytes: Some(bytes), .. } if cell.cell.contender == *contender => {
                Some((bytes as f64, estimate(cell, SERVED)?))
            }
            _ => None,
        };
        marked(
            &contender.middleware_name(),
            colour,
            &result.cells_of(PaperFigure::Sizes).filter_map(of).collect::<Vec<_>>(),
        )
    };
    let lines = chart(
        Axis::logarithmic("bytes of a request"),
        Axis::fitting("requests/s served"),
        contenders.iter().enumerate().map(layer).collect(),
    );
    Section {
        title: "Figure 11: larger datagrams".to_owned(),
        lead: "The same greeting, requested with a query of many options: the answer stays small.".to_owned(),
        seen: contenders.iter().filter_map(|one| size_seen(result, *one)).collect(),
        figures: vec![Figure::new("Served requests by the size of a request.", lines)],
        tables: vec![table(result, PaperFigure::Sizes, "Results of each server")],
        ..Section::default()
    }
}

/// The cost of the largest datagrams.
fn size_seen(result: &Paper5Result, contender: Contender) -> Option<String> {
    let own: Vec<&ServerCellRuns> = result
        .cells_of(PaperFigure::Sizes)
        .filter(|cell| cell.cell.contender == contender && !cell.runs.is_empty())
        .collect();
    let (first, last) = (own.first()?, own.last()?);
    let share = median_of(last, SERVED)? / median_of(first, SERVED)?;
    let cpu = median_of(last, PER_CPU_S)? / median_of(first, PER_CPU_S)?;
    Some(format!(
        "{}: {} of the answers with the largest requests, {} for each processor second.",
        contender.middleware_name(),
        percent(share),
        percent(cpu)
    ))
}

pub(super) fn capacity(result: &Paper5Result) -> Section {
    let contenders = answers::contenders(result, PaperFigure::Capacity);
    let cell = |contender: &Contender, is_full: bool| {
        answers::find(result, PaperFigure::Capacity, |cell| {
            cell.contender == *contender
                && cell.handler == ServerWork::Greeting
                && matches!(cell.load, RequestLoad::Closed { outstanding, .. } if (outstanding > 1) == is_full)
        })
    };
    let row = |contender: &Contender| {
        let marks = |colour: usize, value: Option<Middle>| {
            value.map(|value| RowMark { colour, value: value.estimate, interval: Some((value.low, value.high)) })
        };
        let full = cell(contender, true)?;
        let all = [marks(0, estimate(full, SERVED)), marks(1, estimate(full, PER_CPU_S))];
        Some(PlotRow {
            name: contender.middleware_name(),
            note: String::new(),
            marks: all.into_iter().flatten().collect(),
        })
    };
    let picture = rows(
        &Axis::linear("requests"),
        &[("a second", 0), ("a processor second of the server", 1)],
        &contenders.iter().filter_map(row).collect::<Vec<_>>(),
    );
    let mut trips = Table::new("One client that waits for each answer", &["server", "runs", "p50, µs", "p99, µs"]);
    let trip = |contender: &Contender| {
        let alone = cell(contender, false)?;
        Some(vec![
            contender.middleware_name(),
            runs(alone),
            with_interval(estimate(alone, P50)),
            figure(median_of(alone, P99)),
        ])
    };
    trips.rows = contenders.iter().filter_map(trip).collect();
    Section {
        title: "Capacity".to_owned(),
        lead: "The most that a server serves: 64 clients with four requests each in flight. Beside it, one client that waits for \
               each answer."
            .to_owned(),
        figures: vec![Figure::new("Capacity of one processor; the second figure is not lowered by a generator at its limit.", picture)],
        tables: vec![table(result, PaperFigure::Capacity, "Results of each server"), trips],
        ..Section::default()
    }
}

pub(super) fn overload(result: &Paper5Result) -> Section {
    Section {
        title: "Overload".to_owned(),
        lead: "Requests at twice the server's own capacity, on a schedule that does not wait for answers.".to_owned(),
        seen: verdicts::overload_seen(result),
        tables: vec![table(result, PaperFigure::Overload, "Results of each server")],
        ..Section::default()
    }
}

pub(super) fn flood(result: &Paper5Result) -> Section {
    Section {
        title: "A flood from very many ports".to_owned(),
        lead: "Honest clients, alone and beside requests from many ports, each of which sends few.".to_owned(),
        seen: verdicts::flood_seen(result),
        tables: vec![table(result, PaperFigure::Flood, "Service of honest clients")],
        ..Section::default()
    }
}

/// Every cell of a part with all measured quantities.
fn table(result: &Paper5Result, part: PaperFigure, caption: &str) -> Table {
    let cost = if result.course.has_energy { "mJ an answer" } else { "CPU µs an answer" };
    let header = ["server", "load", "runs", "offered/s", "served/s"];
    let header: Vec<&str> = header.into_iter().chain(SHARED_TITLES).chain(["threads", cost]).collect();
    let mut table = Table::new(caption, &header);
    let row = |cell: &ServerCellRuns| {
        let own = [
            cell.cell.server_name(),
            cell.cell.load.to_string(),
            runs(cell),
            figure(median_of(cell, OFFERED)),
            with_interval(estimate(cell, SERVED)),
        ];
        own.into_iter()
            .chain(shared(cell))
            .chain([THREADS, COST].map(|quantity| figure(median_of(cell, quantity))))
            .collect()
    };
    table.rows = result.cells_of(part).map(row).collect();
    table
}

fn chart(x: Axis, y: Axis, layers: Vec<Layer>) -> String {
    Chart { title: String::new(), x, y, layers, size: Size::Wide }.to_svg()
}
