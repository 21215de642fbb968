//! Tables 2 and 3, Figures 7 to 9.

use super::super::result::{BurstRuns, Paper1Result, burst_name};
use super::ms;
use crate::figures::{bit_rate, rounded, size};
use crate::plot::{self, Axis, COLOURS, Series, TimelineTrace};
use crate::quick::observations::{differs, rounded_factor};
use crate::quick::presentation::{QUANTILE_HEADER, row};
use crate::report::{Figure, Section, Tile};
use crate::table::Table;

/// Table 2 with Figures 7 and 8.
pub(super) fn high_frequency(result: &Paper1Result) -> Section {
    let cells = &result.high_frequency;
    let mut figures = Vec::new();
    for (index, n) in counts(cells).into_iter().enumerate() {
        let figure = 7 + index;
        // All pictures of a figure have the same axis, as far as its values reach.
        let of = cells.iter().filter(|cell| cell.n == n && result.is_ours(&cell.contender));
        let ends = of.fold((f64::INFINITY, 0.0_f64), |(least, most), cell| {
            (least.min(cell.summary.min), most.max(cell.summary.max))
        });
        let axis = Axis::fitting("ms").over(ends.0, ends.1);
        for bytes in
            sizes(cells).into_iter().filter(|bytes| cells.iter().any(|cell| (cell.n, cell.size) == (n, *bytes)))
        {
            let own = |cell: &&BurstRuns| (cell.n, cell.size) == (n, bytes) && result.is_ours(&cell.contender);
            let traces: Vec<TimelineTrace> = cells.iter().filter(own).enumerate().map(trace_of_runs).collect();
            let caption =
                format!("As Figure {figure}: the runs of each method in their order, {}.", burst_name((n, bytes)));
            figures.push(Figure::new(caption, plot::lines(&Axis::count("run"), &axis, &traces)));
        }
    }
    if let Some(burst) = bursts(cells).last() {
        let of = |cell: &&BurstRuns| (cell.n, cell.size) == *burst;
        let rows: Vec<Series> = cells.iter().filter(of).enumerate().map(series).collect();
        let caption = format!(
            "Every run of every contender a dot, {}; below: mean and ± one standard deviation.",
            burst_name(*burst)
        );
        figures.push(Figure::new(caption, plot::strips(&Axis::fitting("milliseconds a run"), &rows)));
    }
    Section {
        title: "Table 2: high-frequency data".to_owned(),
        lead: "Many small samples as fast as they can be written: each by itself, packed into larger samples by the application, or \
               collected by the middleware (coalescing: submessages of their own; batching: one submessage, one acknowledgement)."
            .to_owned(),
        seen: seen_in_table_2(result),
        figures,
        tables: bursts(cells).into_iter().map(|burst| table(cells, burst)).collect(),
        ..Section::default()
    }
}

/// Table 3 with Figure 9.
pub(super) fn large(result: &Paper1Result) -> Section {
    let cells = &result.large;
    let name_order = contenders(cells);
    let trace = |(index, name): (usize, &String)| {
        let of = cells.iter().filter(|cell| cell.contender == *name);
        TimelineTrace {
            name: name.clone(),
            colour: index % COLOURS,
            points: of.map(|cell| (cell.size as f64, cell.summary.mean)).collect(),
        }
    };
    let traces: Vec<TimelineTrace> = name_order.iter().enumerate().map(trace).collect();
    let figure = plot::lines(
        &Axis::logarithmic("bytes of a segment (logarithmic)"),
        &Axis::logarithmic("mean, ms (logarithmic)"),
        &traces,
    );
    Section {
        title: "Table 3: 5 MB in segments".to_owned(),
        lead: "The same bytes as one sample or as several smaller ones that the application sends and joins."
            .to_owned(),
        seen: seen_in_table_3(result),
        figures: vec![Figure::new("As Figure 9: mean time for the whole by the size of a segment.", figure)],
        tables: bursts(cells).into_iter().map(|burst| table(cells, burst)).collect(),
        ..Section::default()
    }
}

/// The fastest of us in the longest burst, and in the large transfer.
pub(super) fn tiles(result: &Paper1Result) -> Vec<Tile> {
    let mut out = Vec::new();
    let ours = |cells: &[BurstRuns], burst| fastest(cells, burst, |name| result.is_ours(name)).cloned();
    for burst in
        bursts(&result.high_frequency).into_iter().filter(|(n, _)| Some(n) == counts(&result.high_frequency).last())
    {
        if let Some(cell) = ours(&result.high_frequency, burst).filter(|cell| cell.size == 256) {
            let meaning = format!("for {} by {}, echo included", cell.burst_name(), cell.contender);
            out.push(Tile { figure: format!("{} ms", rounded(cell.summary.mean)), meaning });
        }
    }
    let large = bursts(&result.large).into_iter().filter_map(|burst| ours(&result.large, burst));
    if let Some(cell) = large.min_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean)) {
        let meaning = format!("for 5 MiB in segments of {}, {}", size(cell.size), bit_rate(bits_per_second(&cell)));
        out.push(Tile { figure: format!("{} ms", rounded(cell.summary.mean)), meaning });
    }
    out
}

/// One cell of the paper's table with all contenders, the fastest first.
fn table(cells: &[BurstRuns], burst: (u64, u64)) -> Table {
    let mut of: Vec<&BurstRuns> = cells.iter().filter(|cell| (cell.n, cell.size) == burst).collect();
    of.sort_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean));
    let mut out = Table::new(format!("{}, milliseconds", burst_name(burst)), &QUANTILE_HEADER);
    // No cell has the runs that these need in the paper's design; columns of dashes tell nothing.
    let shown = [of.iter().any(|cell| cell.summary.p90.is_some()), of.iter().any(|cell| cell.summary.p99.is_some())];
    for cell in &of {
        let mut row = row(&cell.contender, &cell.summary);
        keep_quantiles(&mut row, shown);
        row.push(bit_rate(bits_per_second(cell)));
        row.push(ms(paper_mean(&cell.contender, burst)));
        out.rows.push(row);
    }
    keep_quantiles(&mut out.header, shown);
    out.header.extend(["rate", "paper, mean"].map(str::to_owned));
    out
}

fn keep_quantiles(row: &mut Vec<String>, [has_p90, has_p99]: [bool; 2]) {
    if !has_p99 {
        row.pop();
    }
    if !has_p90 {
        row.remove(7);
    }
}

fn seen_in_table_2(result: &Paper1Result) -> Vec<String> {
    let cells = &result.high_frequency;
    let all = bursts(cells);
    let of = |name: &str, burst: (u64, u64)| {
        cells.iter().find(|cell| cell.contender == name && (cell.n, cell.size) == burst)
    };
    let mut out = Vec::new();
    let factors: Vec<(f64, bool)> = all
        .iter()
        .filter_map(|burst| {
            let (coalescing, batching) = (of("Thalweg coalescing", *burst)?, of("Thalweg batching", *burst)?);
            let factor = coalescing.summary.mean / batching.summary.mean;
            Some((factor, differs(&coalescing.summary, &batching.summary)))
        })
        .collect();
    if let Some((least, most)) = range(factors.iter().map(|(factor, _)| *factor)) {
        let clear = factors.iter().filter(|(factor, differs)| *differs && *factor > 1.0).count();
        out.push(format!(
            "Batching was faster than coalescing, beyond the scatter of the runs, in {clear} of {} cells; coalescing took {} to {} times \
             as long (the paper: 1.6 to 1.9 times).",
            factors.len(),
            rounded_factor(least),
            rounded_factor(most)
        ));
    }
    let immediate = all.iter().filter_map(|burst| {
        Some(of("Thalweg immediate", *burst)?.summary.mean / of("Thalweg auto", *burst)?.summary.mean)
    });
    if let Some((least, most)) = range(immediate) {
        let (least, most) = (rounded_factor(least), rounded_factor(most));
        out.push(format!(
            "Sent one by one, samples took {least} to {most} times as long as with auto, which needs no tuning."
        ));
    }
    out.extend(against_peers(result, cells));
    out
}

fn seen_in_table_3(result: &Paper1Result) -> Vec<String> {
    let cells: Vec<&BurstRuns> = result.large.iter().filter(|cell| cell.contender == "Thalweg auto").collect();
    let mut out = Vec::new();
    let best = cells.iter().min_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean));
    if let (Some(whole), Some(best)) = (cells.iter().max_by_key(|cell| cell.size), best) {
        out.push(match differs(&whole.summary, &best.summary) {
            true => format!(
                "Segments of {} were best: {} ms where the unsplit sample took {} ms.",
                size(best.size),
                rounded(best.summary.mean),
                rounded(whole.summary.mean)
            ),
            false => format!(
                "No segment size beat the unsplit sample ({} ms) beyond the scatter of the runs.",
                rounded(whole.summary.mean)
            ),
        });
        if let Some(smallest) = cells.iter().min_by_key(|cell| cell.size) {
            let factor = rounded_factor(smallest.summary.mean / best.summary.mean);
            out.push(format!(
                "Segments of {} took {factor} times as long (the paper: 4.2 times its best).",
                size(smallest.size)
            ));
        }
    }
    out.extend(against_peers(result, &result.large));
    out
}

/// Our best method against the best peer, cell by cell; wrapping by the application is offered to no peer and left out.
fn against_peers(result: &Paper1Result, cells: &[BurstRuns]) -> Option<String> {
    let pairs: Vec<(f64, &BurstRuns)> = bursts(cells)
        .into_iter()
        .filter_map(|burst| {
            let ours = fastest(cells, burst, |name| result.is_ours(name) && name != WRAPPED)?;
            let peer = fastest(cells, burst, |name| !result.is_ours(name))?;
            Some((peer.summary.mean / ours.summary.mean, peer))
        })
        .collect();
    let (least, most) = range(pairs.iter().map(|(factor, _)| *factor))?;
    let closest = pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0))?.1;
    Some(format!(
        "Wrapping by the application, which no peer was offered, left out: the mean of the fastest peer was {} to {} times that of the \
         fastest of Thalweg's methods in {} cells. The closest was {} with {}.",
        rounded_factor(least),
        rounded_factor(most),
        pairs.len(),
        closest.contender,
        closest.burst_name()
    ))
}

fn fastest(cells: &[BurstRuns], burst: (u64, u64), wanted: impl Fn(&str) -> bool) -> Option<&BurstRuns> {
    let of = cells.iter().filter(|cell| (cell.n, cell.size) == burst && wanted(&cell.contender));
    of.min_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean))
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range: Option<(f64, f64)>, value| {
        Some(range.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
    })
}

fn trace_of_runs((index, cell): (usize, &BurstRuns)) -> TimelineTrace {
    let point = |(run, ms): (usize, &f64)| ((run + 1) as f64, *ms);
    TimelineTrace {
        name: cell.contender.trim_start_matches("Thalweg ").to_owned(),
        colour: index % COLOURS,
        points: cell.runs_ms.iter().enumerate().map(point).collect(),
    }
}

fn series((index, cell): (usize, &BurstRuns)) -> Series {
    Series { name: cell.contender.clone(), colour: index % COLOURS, values: cell.runs_ms.clone() }
}

/// Different bursts in their order.
fn bursts(cells: &[BurstRuns]) -> Vec<(u64, u64)> {
    in_order(cells.iter().map(|cell| (cell.n, cell.size)))
}

fn counts(cells: &[BurstRuns]) -> Vec<u64> {
    in_order(cells.iter().map(|cell| cell.n))
}

fn sizes(cells: &[BurstRuns]) -> Vec<u64> {
    in_order(cells.iter().map(|cell| cell.size))
}

fn contenders(cells: &[BurstRuns]) -> Vec<String> {
    in_order(cells.iter().map(|cell| cell.contender.clone()))
}

fn in_order<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut out, value| {
        if !out.contains(&value) {
            out.push(value);
        }
        out
    })
}

fn bits_per_second(cell: &BurstRuns) -> f64 {
    (cell.n * cell.size) as f64 * 8.0 / (cell.summary.mean / 1e3)
}

/// Name of the method that the application does itself.
const WRAPPED: &str = "Thalweg wrapped by the application";

/// The mean that the paper's Table 2 or 3 has for this cell.
fn paper_mean(contender: &str, burst: (u64, u64)) -> Option<f64> {
    let table = match contender {
        "Thalweg coalescing" => &COALESCING[..],
        "Thalweg batching" => &BATCHING[..],
        "Thalweg auto" => &SEGMENTS[..],
        _ => return None,
    };
    table.iter().find(|(n, size, _)| (*n, *size) == burst).map(|(.., mean)| *mean)
}

/// Table 2 of the paper: samples, bytes, mean in milliseconds.
const COALESCING: [(u64, u64, f64); 6] = [
    (3_000, 256, 106.3),
    (3_000, 512, 159.75),
    (3_000, 1_024, 274.3),
    (10_000, 256, 257.25),
    (10_000, 512, 437.05),
    (10_000, 1_024, 787.38),
];
const BATCHING: [(u64, u64, f64); 6] = [
    (3_000, 256, 61.85),
    (3_000, 512, 98.8),
    (3_000, 1_024, 174.8),
    (10_000, 256, 146.8),
    (10_000, 512, 226.6),
    (10_000, 1_024, 468.3),
];
/// Table 3 of the paper.
const SEGMENTS: [(u64, u64, f64); 6] = [
    (1, 5 << 20, 57.93),
    (5, 1 << 20, 51.93),
    (10, 512 << 10, 53.87),
    (20, 256 << 10, 58.8),
    (5_120, 1_024, 155.73),
    (10_240, 512, 217.2),
];
