//! Figure 5: pools of each size.

use thalweg_coap::scheduler::controller::ControlLaw;

use super::{SHARED_TITLES, figure, runs, shared, with_interval};
use crate::paper5::answers::{self, HANDLED, RECEIVED, SERVED, estimate, median_of};
use crate::paper5::cell::{Contender, PaperFigure, ServerWork};
use crate::paper5::result::{Paper5Result, ServerCellRuns};
use crate::paper5::verdicts;
use crate::plot::{Axis, Chart, Form, Layer, PlotRow, RowMark, Size, rows};
use crate::report::{Figure, FigureLayout, Section};
use crate::statistics::Middle;
use crate::table::Table;

pub(super) fn section(result: &Paper5Result) -> Section {
    let handlers = answers::handlers(result, PaperFigure::Pools);
    let of = |handler: &ServerWork| -> Vec<&ServerCellRuns> {
        let is_own = |cell: &&ServerCellRuns| cell.cell.handler == *handler && !cell.runs.is_empty();
        result.cells_of(PaperFigure::Pools).filter(is_own).collect()
    };
    let charts = handlers.iter().map(|handler| by_size(*handler, &of(handler))).collect();
    let laws = handlers.iter().map(|handler| by_law(*handler, &of(handler))).collect();
    Section {
        title: "Figure 5: pools of fixed sizes".to_owned(),
        lead: "64 clients with four requests each in flight; three kinds of handlers. NR is the number of datagrams that the receiver \
               took in a second, H that of requests that handlers finished."
            .to_owned(),
        seen: verdicts::pools_seen(result),
        figures: vec![
            Figure::of_many("Fixed pools: more threads help only handlers that block.", FigureLayout::Column, charts),
            Figure::of_many("Every law with the same load; further right is more.", FigureLayout::Column, laws),
        ],
        tables: handlers.iter().map(|handler| table(*handler, &of(handler))).collect(),
        ..Section::default()
    }
}

fn by_size(handler: ServerWork, cells: &[&ServerCellRuns]) -> String {
    let layer = |name: &str, colour: usize, measure: answers::Measure| {
        let of = |cell: &&ServerCellRuns| match cell.cell.contender {
            Contender::Thalweg(ControlLaw::Fixed(size)) => Some((size as f64, estimate(cell, measure)?)),
            _ => None,
        };
        marked(name, colour, &cells.iter().filter_map(of).collect::<Vec<_>>())
    };
    let layers = vec![
        layer("received (NR)", 1, RECEIVED),
        layer("handled (H)", 2, HANDLED),
        layer("served, seen by clients", 0, SERVED),
    ];
    Chart {
        title: handler.to_string(),
        x: Axis::logarithmic("threads of the pool"),
        y: Axis::fitting("requests/s"),
        layers,
        size: Size::Wide,
    }
    .to_svg()
}

/// Points joined by a line, with whiskers.
pub(super) fn marked(name: &str, colour: usize, points: &[(f64, Middle)]) -> Layer {
    Layer {
        name: name.to_owned(),
        colour,
        form: Form::Marked,
        points: points.iter().map(|(x, y)| (*x, y.estimate)).collect(),
        band: points.iter().map(|(x, y)| (*x, y.low, y.high)).collect(),
    }
}

fn by_law(handler: ServerWork, cells: &[&ServerCellRuns]) -> String {
    let row = |cell: &&ServerCellRuns| {
        let served = estimate(cell, SERVED)?;
        let mark = RowMark { colour: 0, value: served.estimate, interval: Some((served.low, served.high)) };
        Some(PlotRow { name: cell.cell.contender.law_name(), note: String::new(), marks: vec![mark] })
    };
    let all: Vec<PlotRow> = cells.iter().filter_map(row).collect();
    rows(&Axis::fitting(format!("requests/s served, handler: {handler}")), &[], &all)
}

fn table(handler: ServerWork, cells: &[&ServerCellRuns]) -> Table {
    let header = ["law", "runs", "served/s", "received/s (NR)", "handled/s (H)"];
    let header: Vec<&str> = header.into_iter().chain(SHARED_TITLES).collect();
    let mut table = Table::new(format!("Handler: {handler}"), &header);
    let row = |cell: &&ServerCellRuns| {
        let own = [
            cell.cell.contender.law_name(),
            runs(cell),
            with_interval(estimate(cell, SERVED)),
            figure(median_of(cell, RECEIVED)),
            figure(median_of(cell, HANDLED)),
        ];
        own.into_iter().chain(shared(cell)).collect()
    };
    table.rows = cells.iter().map(row).collect();
    table
}
