//! The result as text for the terminal and as a page: the same sections in both.

use super::plan::{BACKGROUND, LINK, LOSS, SEARCH, TABLE_2, TABLE_3, TABLE_4, TABLES};
use super::{Paper1Result, claims, paper};
use crate::benchmark::{self, BenchmarkCellRuns, BenchmarkResult, Deed, PaperFigures, WorkPlan};
use crate::circumstances;
use crate::figures::{bit_rate, duration, grouped, rounded, size, utc};
use crate::plot::{self, Axis, COLOURS, TimelineTrace};
use crate::report::{Figure, Page, Section, Tile};
use crate::study::{comparison_cards, distinct};

/// Tables and sentences for the terminal.
pub fn to_text(result: &Paper1Result) -> String {
    let Page { sections, warnings, conditions, cards, .. } = page(result);
    Page { sections, warnings, conditions, cards, ..Page::default() }.to_text()
}

/// The report.
pub fn page(result: &Paper1Result) -> Page {
    let Some((_, first)) = result.parts.first() else { return Page::default() };
    let conditions = circumstances::of_all(result.parts.iter().map(|(_, part)| &part.conditions));
    let seconds = std::time::Duration::from_secs_f64(conditions.seconds);
    let parts = || result.parts.iter().filter(|(name, _)| name != SEARCH);
    let mut warnings = distinct(result.parts.iter().flat_map(|(_, part)| benchmark::warnings(part)));
    warnings.extend(result.left_out.iter().map(|reason| format!("Left out: {reason}.")));
    Page {
        title: "Paper 1, measured again".to_owned(),
        subtitle: format!(
            "{} · {} · Jeong (2018), Tables 2 to 4 and Figures 7 to 9, between separate processes on one machine",
            utc(first.started_unix_s),
            duration(seconds)
        ),
        cards: parts().flat_map(|(_, part)| comparison_cards(&part.differences)).collect(),
        tiles: tiles(result),
        warnings,
        sections: sections(result),
        facts: circumstances::facts(&first.environment),
        conditions: circumstances::sentences(&conditions),
        method: method(first),
        command: result.command.clone(),
    }
}

fn sections(result: &Paper1Result) -> Vec<Section> {
    let mut out = vec![claims::section(result)];
    // The search comes first and is read last.
    let (searched, tables): (Vec<_>, Vec<_>) = result.parts.iter().partition(|(name, _)| name == SEARCH);
    for (name, part) in tables.into_iter().chain(searched) {
        let made = benchmark::sections(part, beside);
        out.extend(made.into_iter().map(|section| completed(name, part, section)));
    }
    out.push(settings(result));
    out
}

/// What the paper has beside a piece of work.
fn beside(work: &WorkPlan) -> Option<PaperFigures> {
    match work.name.as_str() {
        TABLE_2 | TABLE_3 => Some(paper::BURSTS),
        TABLE_4 => Some(paper::TRANSFERS),
        _ => None,
    }
}

/// A section with the paper's figures, and a title that says where it was measured.
fn completed(name: &str, part: &BenchmarkResult, mut section: Section) -> Section {
    match section.title.as_str() {
        TABLE_2 => section.figures.splice(0..0, figures_7_and_8(part)).for_each(drop),
        TABLE_3 => section.figures.insert(0, figure_9(part)),
        TABLE_4 => section.seen.splice(0..0, claims::background(part)).for_each(drop),
        _ => {}
    }
    match name {
        LINK => section.title.push_str(", over 1 Gbit/s"),
        LOSS => section.title.push_str(", over a link that loses 1 %"),
        BACKGROUND if section.title != TABLE_4 => section.title.push_str(" of Table 4"),
        SEARCH if section.title.starts_with("Search") => section.figures.clear(),
        SEARCH => section.title.push_str(" of the search"),
        _ => {}
    }
    section
}

/// A picture for each kind of burst with the runs of our methods in their order.
fn figures_7_and_8(part: &BenchmarkResult) -> Vec<Figure> {
    let cells: Vec<&BenchmarkCellRuns> =
        part.of_work(TABLE_2).into_iter().filter(|cell| part.is_ours(&cell.cell.contender)).collect();
    let counts = distinct(cells.iter().map(|cell| cell.cell.deed.load().0));
    let mut out = Vec::new();
    for (figure, n) in (7..).zip(counts) {
        let of_count: Vec<&BenchmarkCellRuns> =
            cells.iter().filter(|cell| cell.cell.deed.load().0 == n).copied().collect();
        // All pictures of a figure have the same axis, as far as its values reach.
        let values: Vec<f64> = of_count.iter().flat_map(|cell| cell.times_ms()).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let axis = Axis::fitting("ms").over(least, values.iter().copied().fold(0.0, f64::max));
        for deed in distinct(of_count.iter().map(|cell| cell.cell.deed)) {
            let own = of_count.iter().filter(|cell| cell.cell.deed == deed);
            let traces: Vec<TimelineTrace> = own.enumerate().map(trace_of_runs).collect();
            let caption = format!("As Figure {figure}: bursts of each method in their order, two of each run, {deed}.");
            out.push(Figure::new(caption, plot::lines(&Axis::count("burst"), &axis, &traces)));
        }
    }
    out
}

/// As many as the paper's pictures have.
const BURSTS_DRAWN: usize = 20;

fn trace_of_runs((index, cell): (usize, &&BenchmarkCellRuns)) -> TimelineTrace {
    let bursts = cell.runs.iter().flat_map(|run| run.detail.times_ms.iter().copied().take(2)).take(BURSTS_DRAWN);
    let points = (1..).map(f64::from).zip(bursts).collect();
    TimelineTrace { name: cell.cell.contender.clone(), colour: index % COLOURS, points }
}

fn figure_9(part: &BenchmarkResult) -> Figure {
    let cells = part.of_work(TABLE_3);
    let trace = |(index, name): (usize, &String)| {
        let of = cells.iter().filter(|cell| cell.cell.contender == *name);
        let points = of.filter_map(|cell| Some((cell.cell.deed.load().1 as f64, cell.times()?.mean))).collect();
        TimelineTrace { name: name.clone(), colour: index % COLOURS, points }
    };
    let names = distinct(cells.iter().map(|cell| cell.cell.contender.clone()));
    let traces: Vec<TimelineTrace> = names.iter().enumerate().map(trace).collect();
    let bytes = Axis::logarithmic("bytes of a segment (logarithmic)");
    let picture = plot::lines(&bytes, &Axis::logarithmic("mean, ms (logarithmic)"), &traces);
    Figure::new("As Figure 9: mean time for the whole by the size of a segment.", picture)
}

/// The settings that the search found, or the defaults where there was none.
fn settings(result: &Paper1Result) -> Section {
    let told = result.found.iter().map(|one| format!("{}: {}.", one.name, one.told())).collect();
    let lead = match result.part(SEARCH) {
        Some(_) => {
            "As in the paper, each method's parameters were tried until the best was found: each value against the defaults, all in turns. A \
             value was taken where it was faster by 2 % in the median of the rounds, and in seven of eight of them."
        }
        None => "The search was left out: each method has its defaults.",
    };
    Section {
        title: "The settings that the tables were measured with".to_owned(),
        lead: lead.to_owned(),
        seen: told,
        ..Section::default()
    }
}

fn tiles(result: &Paper1Result) -> Vec<Tile> {
    let mut out = Vec::new();
    let Some(tables) = result.part(TABLES) else { return out };
    let fastest = |work: &str, wanted: &dyn Fn(Deed) -> bool| {
        let own = tables.of_work(work).into_iter();
        let own = own.filter(|cell| tables.is_ours(&cell.cell.contender) && wanted(cell.cell.deed));
        let timed = own.filter_map(|cell| Some((cell.times()?.mean, cell)));
        timed.min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let most = distinct(tables.of_work(TABLE_2).iter().map(|cell| cell.cell.deed.load().0)).into_iter().max();
    if let Some((mean, cell)) = fastest(TABLE_2, &|deed| Some(deed.load().0) == most && deed.load().1 == 256) {
        let meaning = format!(
            "for {} samples of 256 B by {}, echo included",
            grouped(cell.cell.deed.load().0),
            cell.cell.contender
        );
        out.push(Tile { figure: format!("{} ms", rounded(mean)), meaning });
    }
    if let Some((mean, cell)) = fastest(TABLE_3, &|_| true) {
        let rate = bit_rate(cell.bits_per_second().unwrap_or_default());
        let meaning = format!("for 5 MiB in segments of {}, {rate}", size(cell.cell.deed.load().1));
        out.push(Tile { figure: format!("{} ms", rounded(mean)), meaning });
    }
    out
}

fn method(first: &BenchmarkResult) -> Vec<String> {
    let mut out = benchmark::method(first);
    out.push("5 MB is 5 MiB here and 100 MB are 100 MiB, so that every segment size divides them.".to_owned());
    out
}
