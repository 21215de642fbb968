//! The result as tables, as text for the terminal and as a page.

use crate::circumstances;
use crate::figures::{bit_rate, duration, grouped, rounded, size, utc};
use crate::plot::{self, Axis, Band, Series, TimelineTrace};
use crate::report::{Figure, Page, Section, Tile};
use crate::statistics::Summary;
use crate::study::comparison_cards;
use crate::table::Table;

use super::observations;
use super::result::{Background, BurstCell, QuickResult};

/// Tables and sentences for the terminal.
pub fn to_text(result: &QuickResult) -> String {
    let (sections, warnings, conditions) =
        (sections(result), warnings(result), circumstances::sentences(&result.conditions));
    Page { cards: comparison_cards(&result.differences), sections, warnings, conditions, ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &QuickResult) -> Page {
    Page {
        title: "Thalweg lab: quick".to_owned(),
        subtitle: format!(
            "{} · {} · three kinds of data between separate processes on this host, over UDP",
            utc(result.started_unix_s),
            duration(std::time::Duration::from_secs_f64(result.seconds))
        ),
        cards: comparison_cards(&result.differences),
        tiles: tiles(result),
        warnings: warnings(result),
        sections: sections(result),
        facts: circumstances::facts(&result.environment),
        conditions: circumstances::sentences(&result.conditions),
        method: method(result),
        ..Page::default()
    }
}

fn tiles(result: &QuickResult) -> Vec<Tile> {
    let mut out = Vec::new();
    let fastest = result.high_frequency.iter().max_by(|a, b| a.samples_per_second().total_cmp(&b.samples_per_second()));
    if let Some(cell) = fastest {
        let figure = format!("{} /s", rounded(cell.samples_per_second()));
        out.push(Tile {
            figure,
            meaning: format!("samples of {} in a burst of {}", size(cell.sample_bytes), grouped(cell.samples)),
        });
    }
    if let Some(cell) = result.large.iter().find(|cell| cell.samples == 1) {
        let figure = format!("{} ms", rounded(cell.summary.mean));
        out.push(Tile {
            figure,
            meaning: format!(
                "for one {} sample and its echo, {}",
                size(cell.sample_bytes),
                bit_rate(cell.bits_per_second())
            ),
        });
    }
    let (quiet, loaded) = (&result.background.quiet.latency, &result.background.loaded.latency);
    if let (Some(from), Some(to)) = (quiet.p50, loaded.p50) {
        let figure = format!("{} → {} µs", rounded(from), rounded(to));
        out.push(Tile {
            figure,
            meaning: "median latency of a 100 Hz topic, without → with a bulk transfer".to_owned(),
        });
    }
    let lost = result.background.quiet.lost + result.background.loaded.lost;
    out.push(Tile {
        figure: format!("{} lost", grouped(lost)),
        meaning: format!(
            "of {} samples, {:.1} GB in all",
            grouped(result.samples_moved()),
            result.bytes_moved() as f64 / 1e9
        ),
    });
    out
}

fn warnings(result: &QuickResult) -> Vec<String> {
    let mut out = Vec::new();
    if result.environment.build == "debug" {
        out.push(
            "This is a debug build, several times slower than a release build; run with `cargo run --release`."
                .to_owned(),
        );
    }
    if result.conditions.is_disturbed() {
        out.push(
            "The machine was not quiet: other work took CPU time from this experiment. Repeat it on an idle machine."
                .to_owned(),
        );
    }
    out.extend(result.remarks.iter().cloned());
    out
}

fn sections(result: &QuickResult) -> Vec<Section> {
    vec![high_frequency(&result.high_frequency), large(&result.large), background(&result.background)]
}

fn high_frequency(cells: &[BurstCell]) -> Section {
    let series = series(cells);
    Section {
        title: "High-frequency data".to_owned(),
        lead: "One process writes many small samples as fast as the reader acknowledges them; after the last one the other process \
               writes one echo sample. The time of a run goes from the first write to the echo (T2 − T1)."
            .to_owned(),
        seen: observations::high_frequency(cells),
        figures: vec![
            Figure::new(
                "Every run a dot; below them the mean (tick) and ± one standard deviation (bar).",
                plot::strips(&Axis::fitting("milliseconds a run"), &series),
            ),
            Figure::new(
                "Share of the runs that took at most this time: a curve further left is faster, a steeper one is steadier.",
                plot::ecdf("milliseconds a run (logarithmic)", &series),
            ),
        ],
        tables: vec![burst_table("Milliseconds from the first write to the echo", cells)],
        ..Section::default()
    }
}

fn large(cells: &[BurstCell]) -> Section {
    Section {
        title: "Large data".to_owned(),
        lead: "The same measurement with a few large samples. Thalweg splits each into fragments and joins them again; the rows below \
               the first let the application split the same bytes into several samples."
            .to_owned(),
        seen: observations::large(cells),
        figures: vec![Figure::new(
            "Every run a dot; below them the mean (tick) and ± one standard deviation (bar).",
            plot::strips(&Axis::fitting("milliseconds a run"), &series(cells)),
        )],
        tables: vec![burst_table("Milliseconds from the first write to the echo", cells)],
        ..Section::default()
    }
}

fn background(result: &Background) -> Section {
    let of = |loaded: bool| result.points.iter().filter(move |point| point.loaded == loaded);
    let name = |loaded: bool| if loaded { "with transfer" } else { "without" }.to_owned();
    let traces = [false, true].map(|loaded| TimelineTrace {
        name: name(loaded),
        colour: usize::from(loaded),
        points: of(loaded).map(|point| (point.at_s, point.latency_us)).collect(),
    });
    let distributions = [false, true].map(|loaded| Series {
        name: name(loaded),
        colour: usize::from(loaded),
        values: of(loaded).map(|point| point.latency_us).collect(),
    });
    let band = |(from_s, to_s): &(f64, f64)| Band { from_s: *from_s, to_s: *to_s, name: "transfer".to_owned() };
    let mut latency =
        Table::new("Latency of the periodic topic in microseconds, from the moment a sample was due", &QUANTILE_HEADER);
    latency.header[1] = "samples".to_owned();
    latency.rows.push(row("without transfer", &result.quiet.latency));
    latency.rows.push(row("with transfer", &result.loaded.latency));
    let mut transfers = Table::new("Milliseconds a transfer", &QUANTILE_HEADER);
    transfers
        .rows
        .push(row(&format!("{} in {}", size(result.transfer_bytes()), size(result.sample_bytes)), &result.transfers));
    Section {
        title: "Background data".to_owned(),
        lead: format!(
            "One process sends a small sample {} times a second to another; in some phases the same two processes also move {} in \
             samples of {}, again and again, as fast as they can. The latency of the small topic shows the effect.",
            rounded(result.rate_hz).trim_end_matches(".0"),
            size(result.transfer_bytes()),
            size(result.sample_bytes)
        ),
        seen: observations::background(result),
        figures: vec![
            Figure::new(
                "Every sample of the small topic; transfers ran in the shaded times.",
                plot::timeline("latency, µs", &traces, &result.loads.iter().map(band).collect::<Vec<_>>()),
            ),
            Figure::new(
                "Share of the small topic's samples that arrived within this time.",
                plot::ecdf("microseconds from due to received (logarithmic)", &distributions),
            ),
        ],
        tables: vec![latency, transfers],
        ..Section::default()
    }
}

fn series(cells: &[BurstCell]) -> Vec<Series> {
    let one = |(index, cell): (usize, &BurstCell)| Series {
        name: cell.name(),
        colour: index % plot::COLOURS,
        values: cell.runs_ms.clone(),
    };
    cells.iter().enumerate().map(one).collect()
}

fn burst_table(caption: &str, cells: &[BurstCell]) -> Table {
    let mut table = Table::new(caption, &QUANTILE_HEADER);
    // The 1,000 runs that a 99th percentile needs are rarely made; a column of dashes tells nothing.
    let has_p99 = cells.iter().any(|cell| cell.summary.p99.is_some());
    if !has_p99 {
        table.header.pop();
    }
    table.header.push("rate".to_owned());
    for cell in cells {
        let mut row = row(&cell.name(), &cell.summary);
        if !has_p99 {
            row.pop();
        }
        row.push(bit_rate(cell.bits_per_second()));
        table.rows.push(row);
    }
    table
}

pub(crate) fn row(name: &str, summary: &Summary) -> Vec<String> {
    let quantile = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), rounded);
    vec![
        name.to_owned(),
        grouped(summary.count),
        rounded(summary.mean),
        rounded(summary.min),
        rounded(summary.max),
        rounded(summary.standard_deviation),
        quantile(summary.p50),
        quantile(summary.p90),
        quantile(summary.p99),
    ]
}

pub(crate) const QUANTILE_HEADER: [&str; 9] = ["", "runs", "mean", "min", "max", "std dev", "p50", "p90", "p99"];

fn method(result: &QuickResult) -> Vec<String> {
    vec![
        "Sender and receiver are separate processes that find each other by discovery and exchange RTPS over UDP on this host, without \
         shared memory. All endpoints are reliable, keep-all and volatile."
            .to_owned(),
        "Before each run both sides wait until they are matched; warm-up bursts are made and not counted.".to_owned(),
        "A run starts processes of its own for one kind of data; the kinds take turns, in an order that is shuffled and reversed in every \
         second round. Verdicts compare the medians of whole runs of the same round (sign test, corrected for the number of comparisons \
         in one quantity); the tables count every burst and every sample of all runs."
            .to_owned(),
        "Every sample is encoded by its writer and decoded by its reader. The receiver checks the sequence number, length and ends of every \
         sample, and whole contents in the warm-up; a gap, a duplicate or a step back ends the experiment without a result."
            .to_owned(),
        "Standard deviation is that of a sample (division by n − 1), as in the paper this follows. A quantile is shown when at least ten \
         values lie beyond it: p90 from 100 values, p99 from 1,000; else a dash stands in its place."
            .to_owned(),
        format!(
            "The periodic topic follows an absolute schedule of {} Hz; its latency starts when a sample was due, so that a delayed write \
             counts as latency. Both processes read the host's monotonic clock. Phases without and with transfer alternate, so that a \
             slow drift of the machine touches both.",
            rounded(result.background.rate_hz).trim_end_matches(".0")
        ),
        "KiB and MiB are powers of two; rates count payload only.".to_owned(),
    ]
}
