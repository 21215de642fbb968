//! Response latencies: percentiles of all cells, distributions, the tail, and the course of the measurement.

use super::source::{CellData, Source};
use crate::figures::{micros, or_dash, rounded};
use crate::plot::{Axis, BESIDE, COLOURS, Chart, Form, Layer, PlotRow, RowMark, Size, rows};
use crate::report::{Figure, FigureLayout, Section};
use crate::statistics::{Buckets, Interval, is_supported};
use crate::study::cells::CellResult;
use crate::study::results::StudyResult;
use crate::table::Table;

/// Percentiles of every cell with their intervals, and the tail in nines.
pub(super) fn percentiles(source: &Source<'_>) -> Section {
    let slowest = source.each().max_by_key(|(_, data)| data.all.max());
    let longest = |(cell, data): (&CellResult, &CellData)| {
        format!("The longest response of all took {} µs, in {}.", rounded(micros(data.all.max())), cell.name)
    };
    Section {
        title: "Response latency".to_owned(),
        lead: "From the time at which a sample was due to its arrival, all runs and pairs of a cell together."
            .to_owned(),
        seen: slowest.map(longest).into_iter().collect(),
        figures: vec![overview(source), tail(source)],
        ..Section::default()
    }
}

fn overview(source: &Source<'_>) -> Figure {
    let row = |(cell, data): (&CellResult, &CellData)| {
        let mark = |(colour, (_, q)): (usize, &(&str, f64))| {
            let (value, interval) = data.quantile(cell, *q)?;
            Some(RowMark { colour, value, interval })
        };
        let longest = RowMark { colour: BESIDE, value: micros(data.all.max()), interval: None };
        let marks: Vec<RowMark> = QUANTILES.iter().enumerate().filter_map(mark).chain([longest]).collect();
        PlotRow { name: cell.name.clone(), note: String::new(), marks }
    };
    let all: Vec<PlotRow> = source.each().map(row).collect();
    let mut kinds: Vec<(&str, usize)> =
        QUANTILES.iter().enumerate().map(|(colour, (name, _))| (*name, colour)).collect();
    kinds.push(("longest", BESIDE));
    Figure::new(
        "Further left is faster; the closer the marks of a row stand together, the steadier it is.",
        rows(&Axis::micros("response latency"), &kinds, &all),
    )
    .resting_on(format!(
        "{}; the quantiles are those of the samples due, of which one that never arrived is infinitely late and stands at the right edge; exact 95 % intervals of the median over the runs from eight runs on; a quantile with too few samples beyond it has no mark.",
        source.amount()
    ))
    .with_table(interval_table(source.result))
}

/// The tail of up to six cells in each picture.
fn tail(source: &Source<'_>) -> Figure {
    let all: Vec<(&CellResult, &CellData)> = source.each().collect();
    let picture = |cells: &[(&CellResult, &CellData)]| {
        let layer = |(colour, (cell, data)): (usize, &(&CellResult, &CellData))| {
            Layer::new(cell.name.as_str(), colour, Form::Marked, nines(&data.all))
        };
        let layers = cells.iter().enumerate().map(layer).collect();
        let (x, y) = (Axis::nines("percentile"), Axis::micros("response latency"));
        Chart { title: String::new(), x, y, layers, size: Size::Wide }.to_svg()
    };
    let mut table =
        Table::new("Response latency in µs", &["cell", "p90", "p99", "p99.9", "p99.99", "p99.999", "longest"]);
    for (cell, data) in &all {
        let quantile = |q| or_dash(data.all.quantile(q), rounded);
        let figures = [0.9, 0.99, 0.999, 0.9999, 0.99999].map(quantile);
        let longest = rounded(micros(data.all.max()));
        table.rows.push([cell.name.clone()].into_iter().chain(figures).chain([longest]).collect());
    }
    Figure::of_many(
        "The tail: each step to the right leaves a tenth of the samples; a curve that stays flat has no tail.",
        FigureLayout::Column,
        all.chunks(COLOURS).map(picture).collect(),
    )
    .resting_on(format!(
        "{}; each curve ends where ten samples lie beyond it; ∞ is a sample that never arrived.",
        source.amount()
    ))
    .with_table(table)
}

/// One small picture for each cell, all on the same axes.
pub(super) fn distribution(source: &Source<'_>) -> Section {
    let points = || source.cells.iter().flat_map(|cell| &cell.distribution).map(|point| point.us);
    let (from, to) = (points().fold(f64::INFINITY, f64::min), points().fold(0.0, f64::max));
    let curve = |data: &CellData, colour: usize| {
        let points = data.distribution.iter().map(|point| (point.us, 100.0 * point.share)).collect();
        Layer::new("", colour, Form::Line, points)
    };
    let picture = |(index, (cell, data)): (usize, (&CellResult, &CellData))| {
        let band = data.distribution.iter().filter_map(|point| {
            let (low, high) = point.interval?;
            Some((point.us, 100.0 * low, 100.0 * high))
        });
        let own = Layer { band: band.collect(), ..curve(data, 0) };
        let first = source.cells.first().filter(|_| index > 0).map(|first| curve(first, BESIDE));
        let (x, y) = (Axis::micros("response latency").over(from, to), Axis::percent("arrived within"));
        let layers = first.into_iter().chain([own]).collect();
        Chart { title: cell.name.clone(), x, y, layers, size: Size::Small }.to_svg()
    };
    let pictures = source.each().enumerate().take(source.detail.distributions).map(picture).collect();
    let beside = if source.cells.len() > 1 { " The thin grey curve is the first cell." } else { "" };
    let mut table = Table::new(
        "Share of the samples due that arrived within so many µs",
        &["cell", "1 %", "10 %", "25 %", "50 %", "75 %", "90 %", "99 %"],
    );
    for (cell, data) in source.each() {
        let at = |share: f64| rounded(data.all.at_rank((share * data.all.due() as f64).ceil().max(1.0) as u64));
        let figures = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99].map(at);
        table.rows.push([cell.name.clone()].into_iter().chain(figures).collect());
    }
    Section {
        title: "Distributions".to_owned(),
        lead: "The share of the samples due that arrived within each time, one picture a cell, all on the same logarithmic axis.".to_owned(),
        figures: vec![
            Figure::of_many(format!("A curve further left is faster, a steeper one steadier.{beside}"), FigureLayout::Grid, pictures)
                .resting_on(format!(
                    "{}; the curve is the median over the runs, the band its exact 95 % interval at each place, from eight runs on.",
                    source.amount()
                ))
                .with_table(table),
        ],
        ..Section::default()
    }
}

/// Median and longest latency of each second; nothing where the measurement is too short to have a course.
pub(super) fn course(source: &Source<'_>) -> Option<Section> {
    if source.cells.iter().all(|cell| cell.course.len() < COURSE_MIN) {
        return None;
    }
    let unsteadiness =
        |data: &CellData| micros(data.all.max()) / data.all.quantile(0.5).unwrap_or(f64::INFINITY).max(1e-3);
    let mut order: Vec<usize> = (0..source.cells.len()).collect();
    order.sort_by(|one, other| unsteadiness(&source.cells[*other]).total_cmp(&unsteadiness(&source.cells[*one])));
    order.truncate(source.detail.courses);
    order.sort_unstable();
    let values = || order.iter().flat_map(|index| source.cells[*index].course.values());
    let from = values().map(|second| micros(second.min())).fold(f64::INFINITY, f64::min);
    let to = values().map(|second| micros(second.max())).fold(0.0, f64::max);
    let picture = |index: &usize| {
        let (cell, data) = (&source.result.cells[*index], &source.cells[*index]);
        let layer = |colour, form, of: &dyn Fn(&Buckets) -> Option<f64>| {
            let points = data.course.iter().filter_map(|(second, all)| Some((*second as f64, of(all)?)));
            Layer::new("", colour, form, points.collect())
        };
        let layers = vec![
            layer(1, Form::Dots, &|all| (all.count() > 0).then(|| micros(all.max()))),
            layer(0, Form::Line, &|all| all.quantile(0.5)),
        ];
        let (x, y) = (Axis::count("second of the measurement"), Axis::micros("response latency").over(from, to));
        Chart { title: cell.name.clone(), x, y, layers, size: Size::Small }.to_svg()
    };
    let pictures: Vec<String> = order.iter().map(picture).collect();
    let mut table = Table::new(
        "Response latency by second, µs",
        &["cell", "least median", "largest median", "longest", "at second"],
    );
    for index in &order {
        let (cell, data) = (&source.result.cells[*index], &source.cells[*index]);
        let medians = || data.course.values().filter_map(|second| second.quantile(0.5));
        let longest = data.course.iter().max_by_key(|(_, second)| second.max());
        table.rows.push(vec![
            cell.name.clone(),
            or_dash(medians().reduce(f64::min), rounded),
            or_dash(medians().reduce(f64::max), rounded),
            rounded(micros(data.all.max())),
            longest.map_or_else(String::new, |(second, _)| second.to_string()),
        ]);
    }
    let shown = match source.cells.len() - order.len() {
        0 => String::new(),
        left => format!(" The {left} cells whose latency varies least are left out here."),
    };
    Some(Section {
        title: "Latency over time".to_owned(),
        lead: "The same second of all runs together: a step or a slope shows that the machine or the middleware changed during \
               the measurement."
            .to_owned(),
        figures: vec![
            Figure::of_many(
                format!("The line is the median of each second, a dot its longest response; dots far above the line are stalls.{shown}"), FigureLayout::Grid,
                pictures,
            )
            .resting_on(source.amount())
            .with_table(table),
        ],
        ..Section::default()
    })
}

fn interval_table(result: &StudyResult) -> Table {
    let mut header = vec!["cell"];
    header.extend(QUANTILES.map(|(name, _)| name));
    let row = |cell: &CellResult| {
        let figure = |(_, quantile): (&str, f64)| {
            let found = cell.intervals.iter().find(|interval| interval.quantile == quantile);
            let shown =
                |us: Interval| format!("{} ({} to {})", rounded(us.estimate), rounded(us.low), rounded(us.high));
            or_dash(found.map(|interval| interval.us), shown)
        };
        [cell.name.clone()].into_iter().chain(QUANTILES.map(figure)).collect()
    };
    let caption = "Quantiles of the response latency in µs over what was due: the median over the runs with its exact 95 % interval; \
                   eight runs are needed";
    Table::of(caption, &header, result.cells.iter().map(row))
}

/// (1 / (1 − q), latency in microseconds) as far as the samples carry the quantile.
fn nines(all: &Buckets) -> Vec<(f64, f64)> {
    let quantiles =
        (0..=NINES_STEPS).map(|step| 10_f64.powf(f64::from(step) / 2.0)).map(|beyond| (beyond, 1.0 - 1.0 / beyond));
    quantiles
        .filter(|(beyond, q)| *beyond >= 1.5 && is_supported(*q, all.due()))
        .filter_map(|(beyond, q)| Some((beyond, all.quantile(q)?)))
        .collect()
}

/// Least number of seconds that are drawn over time.
const COURSE_MIN: usize = 2;
/// The quantiles that are marked for every cell.
pub(super) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
/// Halves of decades up to one sample in a million.
const NINES_STEPS: u32 = 12;
