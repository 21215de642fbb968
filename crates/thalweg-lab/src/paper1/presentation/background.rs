//! Table 4: transfers in the background and their effect on an urgent topic.

use super::super::result::BackgroundCell;
use crate::figures::{bit_rate, grouped, percent, rounded, size};
use crate::plot::{self, COLOURS, Series};
use crate::quick::observations::rounded_factor;
use crate::quick::presentation::{QUANTILE_HEADER, row};
use crate::report::{Figure, Section, Tile};
use crate::table::Table;

/// The table, and the latency of the urgent topic.
pub(super) fn section(cells: &[BackgroundCell], link: &str) -> Section {
    let series = |(index, cell): (usize, &BackgroundCell)| Series {
        name: cell.name(),
        colour: (index + 1) % COLOURS,
        values: cell.loaded_us.clone(),
    };
    let quiet = cells.iter().flat_map(|cell| cell.quiet_us.iter().copied()).collect();
    let mut curves = vec![Series { name: "without transfer".to_owned(), colour: 0, values: quiet }];
    curves.extend(cells.iter().enumerate().map(series).filter(|series| !series.values.is_empty()).take(COLOURS - 1));
    let bytes = cells.first().map_or(0, |cell| cell.transfer_samples * cell.sample_bytes);
    let segment = cells.first().map_or(0, |cell| cell.sample_bytes);
    Section {
        title: "Table 4: background data under a flow controller".to_owned(),
        lead: format!(
            "An asynchronous writer sends {:.1} MB in samples of {} over {link}; its flow controller grants tokens of 8,192 bytes every \
             10 ms. Meanwhile an urgent topic of 100 Hz shares the processes and the link.",
            bytes as f64 / 1e6,
            size(segment)
        ),
        seen: seen(cells),
        figures: vec![Figure::new(
            "Share of the 100 Hz topic's samples that arrived within this time, with transfers and without.",
            plot::ecdf("microseconds from due to received (logarithmic)", &curves),
        )],
        tables: vec![transfers(cells), latencies(cells)],
        ..Section::default()
    }
}

/// The effect on the urgent topic that is left at 10 tokens a period.
pub(super) fn tile(cells: &[BackgroundCell]) -> Option<Tile> {
    let cell = cells.iter().find(|cell| cell.bucket.tokens_added_per_period == Some(10))?;
    let factor = cell.p99_factor()?;
    Some(Tile {
        figure: format!("× {}", rounded_factor(factor)),
        meaning: "p99 of a 100 Hz topic against its idle p99, while 10 tokens a period flow".to_owned(),
    })
}

fn transfers(cells: &[BackgroundCell]) -> Table {
    let mut header = QUANTILE_HEADER[..7].to_vec();
    header.extend(["granted", "network usage", "paper: mean", "paper: usage"]);
    let mut out = Table::new("Milliseconds a transfer, and the share of the link in use", &header);
    for cell in cells {
        let mut row = row(&cell.name(), &cell.summary);
        row.truncate(7);
        row.push(cell.bucket.bytes_per_second().map_or_else(|| "all".to_owned(), |bytes| bit_rate(bytes * 8.0)));
        row.push(cell.mean_usage().map_or_else(|| "–".to_owned(), percent));
        let is_alike = cell.transfer_samples * cell.sample_bytes >= PAPER_BYTES;
        let is_meant =
            |(tokens, ..): &&(Option<u32>, f64, f64)| is_alike && *tokens == cell.bucket.tokens_added_per_period;
        let paper = PAPER.iter().find(is_meant);
        row.push(paper.map_or_else(|| "–".to_owned(), |(_, ms, _)| rounded(*ms)));
        row.push(paper.map_or_else(|| "–".to_owned(), |(.., usage)| format!("{usage} %")));
        out.rows.push(row);
    }
    out
}

fn latencies(cells: &[BackgroundCell]) -> Table {
    let header = ["", "samples", "p50 without", "p50 with", "p99 without", "p99 with", "factor", "max with", "lost"];
    let mut out = Table::new("The 100 Hz topic beside the transfers, microseconds from due to received", &header);
    let quantile = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), rounded);
    for cell in cells {
        let (quiet, loaded) = (cell.quiet.as_ref().map(|f| &f.latency), cell.loaded.as_ref().map(|f| &f.latency));
        let lost: u64 = [&cell.quiet, &cell.loaded].into_iter().flatten().map(|foreground| foreground.lost).sum();
        out.rows.push(vec![
            cell.name(),
            loaded.map_or_else(|| "0".to_owned(), |latency| grouped(latency.count)),
            quantile(quiet.and_then(|latency| latency.p50)),
            quantile(loaded.and_then(|latency| latency.p50)),
            quantile(quiet.and_then(|latency| latency.p99)),
            quantile(loaded.and_then(|latency| latency.p99)),
            cell.p99_factor().map_or_else(|| "–".to_owned(), rounded_factor),
            quantile(loaded.map(|latency| latency.max)),
            grouped(lost),
        ]);
    }
    out
}

fn seen(cells: &[BackgroundCell]) -> Vec<String> {
    let mut out = Vec::new();
    let slowest = cells.iter().max_by(|a, b| a.summary.mean.total_cmp(&b.summary.mean));
    let unlimited = cells.iter().find(|cell| cell.bucket.tokens_added_per_period.is_none());
    if let (Some(slow), Some(fast)) = (slowest, unlimited) {
        out.push(format!(
            "With {} a transfer took {} times as long as without limit (the paper: 20 times).",
            slow.name(),
            rounded_factor(slow.summary.mean / fast.summary.mean)
        ));
        if let (Some(slow_usage), Some(fast_usage)) = (slow.mean_usage(), fast.mean_usage()) {
            out.push(format!("It used {} of the link instead of {}.", percent(slow_usage), percent(fast_usage)));
        }
    }
    if cells.iter().all(|cell| cell.p99_factor().is_none()) {
        out.push("Too few samples of the 100 Hz topic fell into the transfers for a 99th percentile: run it without --quick.".to_owned());
    }
    out
}

/// Bytes of the paper's transfers: shorter ones have no figure of the paper beside them.
const PAPER_BYTES: u64 = 100_000_000;
/// Table 4 of the paper: tokens in a period, mean in milliseconds, per cent of 1 Gbit/s.
const PAPER: [(Option<u32>, f64, f64); 6] = [
    (None, 5_918.4, 12.0),
    (Some(30), 5_916.2, 12.0),
    (Some(20), 6_004.5, 10.0),
    (Some(10), 12_107.1, 6.0),
    (Some(5), 23_564.0, 3.5),
    (Some(1), 116_765.3, 0.4),
];
