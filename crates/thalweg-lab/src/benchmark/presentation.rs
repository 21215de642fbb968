//! The result as tables, as text for the terminal and as a page.

use crate::circumstances;
use crate::figures::{bit_rate, duration, grouped, or_dash, percent, rounded, size, utc};
use crate::plot::{self, Axis, Band, COLOURS, Series, TimelineTrace};
use crate::report::{Figure, Page, Section, Tile};
use crate::statistics::{Summary, median};
use crate::study::{comparison_cards, distinct};
use crate::table::Table;

use super::cells::{BenchmarkCell, Deed, RATE_HZ};
use super::observations;
use super::plan::{Place, WorkPlan, WorkTask};
use super::result::{BenchmarkCellRuns, BenchmarkResult, BenchmarkRun, JudgedRatio};

/// What a paper has beside a row: the titles of its columns, and its values where it has the row.
#[derive(Clone, Copy)]
pub(crate) struct PaperFigures {
    pub(crate) header: &'static [&'static str],
    pub(crate) of: fn(&BenchmarkCell) -> Option<Vec<String>>,
}

/// Tables and sentences for the terminal.
pub fn to_text(result: &BenchmarkResult) -> String {
    Page { facts: Vec::new(), method: Vec::new(), tiles: Vec::new(), ..page(result) }.to_text()
}

/// The report.
pub fn page(result: &BenchmarkResult) -> Page {
    let seconds = std::time::Duration::from_secs_f64(result.conditions.seconds);
    Page {
        title: format!("Thalweg lab: {}", result.plan.name),
        subtitle: format!("{} · {} · seed {}", utc(result.started_unix_s), duration(seconds), result.plan.seed),
        cards: comparison_cards(&result.differences),
        tiles: tiles(result),
        warnings: warnings(result),
        sections: sections(result, |_| None),
        facts: circumstances::facts(&result.environment),
        conditions: circumstances::sentences(&result.conditions),
        method: method(result),
        ..Page::default()
    }
}

fn tiles(result: &BenchmarkResult) -> Vec<Tile> {
    let mut out = Vec::new();
    let bursts = || result.cells.iter().filter(|cell| matches!(cell.cell.deed, Deed::Burst { .. }));
    let rate = |cell: &BenchmarkCellRuns| Some(cell.cell.deed.load().0 as f64 / (cell.times()?.mean / 1e3));
    let ours = || bursts().filter(|cell| result.is_ours(&cell.cell.contender));
    let fastest = ours().filter_map(|cell| Some((cell, rate(cell)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((cell, rate)) = fastest {
        let (samples, bytes) = cell.cell.deed.load();
        let meaning = format!("samples of {} in a burst of {}", size(bytes), grouped(samples));
        out.push(Tile { figure: format!("{} /s", rounded(rate)), meaning });
    }
    let whole = ours().find(|cell| cell.cell.deed.load().0 == 1);
    if let Some((cell, times)) = whole.and_then(|cell| Some((cell, cell.times()?))) {
        let rate = bit_rate(cell.bits_per_second().unwrap_or_default());
        let meaning = format!("for one {} sample and its echo, {rate}", size(cell.cell.deed.load().1));
        out.push(Tile { figure: format!("{} ms", rounded(times.mean)), meaning });
    }
    let topic = |loaded| result.cells.iter().find(|cell| cell.cell.deed.is_loaded() == Some(loaded));
    let both = topic(false)
        .and_then(|cell| median(cell.latencies_us()))
        .zip(topic(true).and_then(|cell| median(cell.latencies_us())));
    if let Some((quiet, loaded)) = both {
        let meaning = "median latency of a 100 Hz topic, without → with a bulk transfer".to_owned();
        out.push(Tile { figure: format!("{} → {} µs", rounded(quiet), rounded(loaded)), meaning });
    }
    if !result.ratios.is_empty() {
        let holds = result.ratios.iter().filter(|ratio| ratio.holds == Some(true)).count();
        let meaning = "expected ratios hold beyond doubt".to_owned();
        out.push(Tile { figure: format!("{holds} of {}", result.ratios.len()), meaning });
    }
    if result.samples_moved() > 0 {
        let lost: u64 = result.cells.iter().flat_map(|cell| &cell.runs).map(|run| run.lost).sum();
        let gigabytes = result.bytes_moved() as f64 / 1e9;
        let meaning = format!("of {} samples, {gigabytes:.1} GB in all", grouped(result.samples_moved()));
        out.push(Tile { figure: format!("{} lost", grouped(lost)), meaning });
    }
    out
}

/// What a reader has to know before the figures.
pub(crate) fn warnings(result: &BenchmarkResult) -> Vec<String> {
    let mut out = circumstances::warnings(&result.environment, &result.conditions);
    out.extend(result.failures.iter().map(ToString::to_string));
    out.extend(result.plan.notes.iter().chain(&result.remarks).cloned());
    out
}

/// A section for each piece of work, with what a paper has beside it, then the expected ratios and who took part.
pub(crate) fn sections(result: &BenchmarkResult, paper: impl Fn(&WorkPlan) -> Option<PaperFigures>) -> Vec<Section> {
    let works = result.plan.works.iter().filter(|work| !result.of_work(&work.name).is_empty());
    let mut out: Vec<Section> = works.map(|work| section(result, work, paper(work))).collect();
    if !result.ratios.is_empty() {
        out.push(ratios(&result.ratios));
    }
    out.extend(contenders(result));
    out
}

/// One piece of work, and what a link that loses frames lost in it.
fn section(result: &BenchmarkResult, work: &WorkPlan, paper: Option<PaperFigures>) -> Section {
    let mut section = measured(result, work, paper);
    if work.place == Place::Link && result.plan.link.is_some_and(|link| link.loss_pct > 0.0) {
        let runs = result.runs_of_work(&work.name);
        let lost = runs.iter().map(|run| run.detail.frames_lost).sum();
        section.seen.push(format!("The link lost {} frames in {} runs.", grouped(lost), runs.len()));
    }
    section
}

fn measured(result: &BenchmarkResult, work: &WorkPlan, paper: Option<PaperFigures>) -> Section {
    let cells = result.of_work(&work.name);
    let section = Section { title: work.name.clone(), lead: work.about.clone(), ..Section::default() };
    match &work.task {
        WorkTask::Bursts { .. } if work.contenders.len() == 1 => Section {
            seen: observations::bursts(result, &cells),
            figures: dots(&cells, "Every burst a dot"),
            tables: vec![times(
                "Milliseconds from the first write to the echo",
                &cells,
                |cell| cell.cell.deed.to_string(),
                (&[], paper),
            )],
            ..section
        },
        WorkTask::Bursts { .. } => {
            let kinds = distinct(cells.iter().map(|cell| cell.cell.deed));
            let of = |kind: &Deed| cells.iter().filter(|cell| cell.cell.deed == *kind).copied().collect::<Vec<_>>();
            let figures =
                kinds.last().map(|kind| dots(&of(kind), &format!("Every burst of every contender a dot, {kind}")));
            let table = |kind: &Deed| {
                let caption = format!("{kind}, milliseconds");
                times(&caption, &sorted_by_mean(of(kind)), |cell| cell.cell.contender.clone(), (&[], paper))
            };
            Section {
                seen: observations::rivals(result, &cells),
                figures: figures.unwrap_or_default(),
                tables: kinds.iter().map(table).collect(),
                ..section
            }
        }
        WorkTask::Stream { .. } | WorkTask::RoundTrips { .. } => {
            Section { tables: vec![continuous(&cells)], ..section }
        }
        WorkTask::Beside { .. } => Section {
            seen: observations::beside(&cells),
            figures: vec![over_time(&cells), latency_curves(&cells)],
            tables: vec![latencies(&cells), transfers(result, &cells, paper)],
            ..section
        },
    }
}

fn sorted_by_mean(mut cells: Vec<&BenchmarkCellRuns>) -> Vec<&BenchmarkCellRuns> {
    let mean = |cell: &BenchmarkCellRuns| cell.times().map_or(f64::INFINITY, |times| times.mean);
    cells.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    cells
}

/// A title, and the text for a cell.
type Column<'a> = (&'static str, &'a dyn Fn(&BenchmarkCellRuns) -> String);

/// A row for each cell that has times, with more columns behind them.
fn times(
    caption: &str,
    cells: &[&BenchmarkCellRuns],
    name: impl Fn(&BenchmarkCellRuns) -> String,
    (more, paper): (&[Column<'_>], Option<PaperFigures>),
) -> Table {
    let mut table = Table::new(caption, &QUANTILE_HEADER);
    let paper = paper.filter(|paper| cells.iter().any(|cell| (paper.of)(&cell.cell).is_some()));
    for cell in cells {
        let Some(summary) = cell.times() else { continue };
        let mut row = summary_row(&name(cell), &summary);
        row.push(bit_rate(cell.bits_per_second().unwrap_or_default()));
        row.extend(more.iter().map(|(_, text)| text(cell)));
        row.extend(paper.map(|paper| columns(paper, &cell.cell)).unwrap_or_default());
        table.rows.push(row);
    }
    let of_paper = paper.iter().flat_map(|paper| paper.header).copied();
    let titles = ["rate"].into_iter().chain(more.iter().map(|(title, _)| *title)).chain(of_paper);
    table.header.extend(titles.map(str::to_owned));
    table.without_empty_columns()
}

fn columns(paper: PaperFigures, cell: &BenchmarkCell) -> Vec<String> {
    (paper.of)(cell).unwrap_or_else(|| vec![DASH.to_owned(); paper.header.len()])
}

/// Streams and round trips: medians over the runs.
fn continuous(cells: &[&BenchmarkCellRuns]) -> Table {
    type Of = fn(&BenchmarkRun) -> Option<f64>;
    let all: [(&str, Of); 4] = [
        ("samples a second", |run| run.per_s),
        ("round trip p50, µs", |run| run.round_trip_us),
        ("writer's CPU a sample, µs", |run| run.writer_us),
        ("reader's CPU a sample, µs", |run| run.reader_us),
    ];
    let has = |of: &Of| cells.iter().any(|cell| cell.median_of(of).is_some());
    let shown: Vec<&(&str, Of)> = all.iter().filter(|(_, of)| has(of)).collect();
    let mut table = Table::new("Medians over the runs", &["", "contender", "runs"]);
    table.header.extend(shown.iter().map(|(title, _)| (*title).to_owned()));
    table.rows.extend(cells.iter().map(|cell| {
        let figures = shown.iter().map(|(_, of)| or_dash(cell.median_of(of), rounded));
        let first = [cell.cell.deed.to_string(), cell.cell.contender.clone(), cell.runs.len().to_string()];
        first.into_iter().chain(figures).collect()
    }));
    table
}

fn series(cells: &[&BenchmarkCellRuns]) -> Vec<Series> {
    let kinds = distinct(cells.iter().map(|cell| cell.cell.deed)).len();
    let name =
        |cell: &BenchmarkCellRuns| if kinds > 1 { cell.cell.deed.to_string() } else { cell.cell.contender.clone() };
    let one = |(index, cell): (usize, &&BenchmarkCellRuns)| Series {
        name: name(cell),
        colour: index % COLOURS,
        values: cell.times_ms(),
    };
    cells.iter().enumerate().map(one).filter(|series| !series.values.is_empty()).collect()
}

fn dots(cells: &[&BenchmarkCellRuns], caption: &str) -> Vec<Figure> {
    let series = series(cells);
    vec![
        Figure::new(
            format!("{caption}; below: mean (tick) and ± one standard deviation (bar)."),
            plot::strips(&Axis::fitting("milliseconds a burst"), &series),
        ),
        Figure::new(
            "Share of the bursts that took at most this time: a curve further left is faster, a steeper one is steadier.",
            plot::ecdf("milliseconds a burst (logarithmic)", &series),
        ),
    ]
}

/// The loaded cells with their quiet ones.
pub(crate) fn pairs<'a>(cells: &[&'a BenchmarkCellRuns]) -> Vec<(&'a BenchmarkCellRuns, &'a BenchmarkCellRuns)> {
    let of = |loaded: bool| cells.iter().copied().filter(move |cell| cell.cell.deed.is_loaded() == Some(loaded));
    let pair =
        |loaded: &'a BenchmarkCellRuns| of(false).find(|quiet| quiet.is_beside(loaded)).map(|quiet| (quiet, loaded));
    of(true).filter_map(pair).collect()
}

/// The first contender's topic over time, run behind run.
fn over_time(cells: &[&BenchmarkCellRuns]) -> Figure {
    let mut traces = [false, true].map(|loaded| TimelineTrace {
        name: if loaded { "with transfer" } else { "without" }.to_owned(),
        colour: usize::from(loaded),
        points: Vec::new(),
    });
    let (mut bands, mut begun_s) = (Vec::new(), 0.0);
    if let Some((quiet, loaded)) = pairs(cells).first() {
        for (quiet, loaded) in quiet.runs.iter().zip(&loaded.runs) {
            let mut end = begun_s;
            for (trace, run) in traces.iter_mut().zip([quiet, loaded]) {
                let points = run.detail.topic.points.iter().map(|(at_s, latency_us)| (begun_s + at_s, *latency_us));
                trace.points.extend(points);
                end = trace.points.last().map_or(end, |(at_s, _)| end.max(*at_s));
            }
            let band = |(from_s, to_s): &(f64, f64)| Band {
                from_s: begun_s + from_s,
                to_s: begun_s + to_s,
                name: "transfer".to_owned(),
            };
            bands.extend(loaded.detail.loads_s.iter().map(band));
            begun_s = end + PAUSE_S;
        }
    }
    Figure::new(
        "Every sample of the small topic; transfers ran in the shaded times.",
        plot::timeline("latency, µs", &traces, &bands),
    )
}

fn latency_curves(cells: &[&BenchmarkCellRuns]) -> Figure {
    let pairs = pairs(cells);
    let quiet = pairs.iter().flat_map(|(quiet, _)| quiet.latencies_us()).collect();
    let name = |cell: &BenchmarkCellRuns| {
        if pairs.len() > 1 { cell.cell.contender.clone() } else { "with transfer".to_owned() }
    };
    let loaded = pairs.iter().enumerate().map(|(index, (_, cell))| Series {
        name: name(cell),
        colour: (index + 1) % COLOURS,
        values: cell.latencies_us(),
    });
    let without = Series { name: "without".to_owned(), colour: 0, values: quiet };
    let all: Vec<Series> = [without].into_iter().chain(loaded).filter(|series| !series.values.is_empty()).collect();
    Figure::new(
        "Share of the small topic's samples that arrived within this time.",
        plot::ecdf("microseconds from due to received (logarithmic)", &all),
    )
}

fn latencies(cells: &[&BenchmarkCellRuns]) -> Table {
    let caption = "Latency of the small topic in microseconds, from the moment a sample was due; all runs together";
    let mut table = Table::new(caption, &QUANTILE_HEADER);
    table.header[1] = "samples".to_owned();
    table.header.push("lost".to_owned());
    for cell in pairs(cells).into_iter().flat_map(|(quiet, loaded)| [quiet, loaded]) {
        let Some(summary) = Summary::of(&cell.latencies_us()) else { continue };
        let condition = if cell.cell.deed.is_loaded() == Some(true) { "with transfer" } else { "without" };
        let mut row = summary_row(&format!("{}, {condition}", cell.cell.contender), &summary);
        row.push(grouped(cell.runs.iter().map(|run| run.lost).sum()));
        table.rows.push(row);
    }
    table.without_empty_columns()
}

fn transfers(result: &BenchmarkResult, cells: &[&BenchmarkCellRuns], paper: Option<PaperFigures>) -> Table {
    let loaded: Vec<&BenchmarkCellRuns> = pairs(cells).into_iter().map(|(_, loaded)| loaded).collect();
    let (samples, bytes) = loaded.first().map_or((0, 0), |cell| cell.cell.deed.load());
    let caption = format!("Milliseconds a transfer of {} in {}", size(samples * bytes), size(bytes));
    let name = |cell: &BenchmarkCellRuns| cell.cell.contender.clone();
    let granted = |cell: &BenchmarkCellRuns| {
        let bucket = result.plan.contender(&cell.cell.contender).and_then(|one| one.flow_controller.as_ref());
        bucket
            .and_then(|bucket| bucket.bytes_per_second())
            .map_or_else(|| ALL.to_owned(), |bytes| bit_rate(bytes * 8.0))
    };
    let used = |cell: &BenchmarkCellRuns| or_dash(usage(result, cell), percent);
    let mut more: Vec<Column<'_>> = Vec::new();
    if loaded.iter().any(|cell| granted(cell) != ALL) {
        more.push(("granted", &granted));
    }
    if loaded.iter().any(|cell| usage(result, cell).is_some()) {
        more.push(("of the link", &used));
    }
    times(&caption, &loaded, name, (&more, paper))
}

/// Mean share of the link that was in use during the transfers, where there is one with a rate.
pub(crate) fn usage(result: &BenchmarkResult, cell: &BenchmarkCellRuns) -> Option<f64> {
    let rate = result.plan.link?.rate_mbit? * 1e6;
    let bits: Vec<f64> = cell.runs.iter().flat_map(|run| run.detail.bits_per_second.iter().copied()).collect();
    Some(Summary::of(&bits)?.mean / rate)
}

fn ratios(all: &[JudgedRatio]) -> Section {
    let mut table = Table::new(
        "Expected ratios of medians; intervals of 95 % from runs of the same round, verdicts corrected for the ratios of a quantity",
        &[
            "",
            "quantity",
            "of",
            "by the best of",
            "which was",
            "expected",
            "ratio",
            "95 % interval",
            "quiet rounds",
            "verdict",
        ],
    );
    table.rows.extend(all.iter().map(|ratio| {
        let reason = ratio.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let verdict = match ratio.holds {
            Some(true) => "holds".to_owned(),
            Some(false) => "DOES NOT HOLD".to_owned(),
            None => format!("not judged{reason}"),
        };
        let without = match ratio.without.join(", ") {
            none if none.is_empty() => String::new(),
            names => format!("; not in every run: {names}"),
        };
        vec![
            ratio.cell.clone(),
            ratio.quantity.clone(),
            ratio.expected.of.clone(),
            ratio.expected.by.join(", "),
            or_dash(ratio.best.clone(), |best| best),
            ratio.expected.ratio.clone(),
            or_dash(ratio.estimate, |value| format!("{value:.3}")),
            or_dash(ratio.interval, |one| format!("{:.3} to {:.3}", one.low, one.high)),
            ratio.quiet_rounds.to_string(),
            format!("{verdict}{without}"),
        ]
    }));
    let count = |holds: Option<bool>| all.iter().filter(|ratio| ratio.holds == holds).count();
    let seen = format!(
        "{} of {} expected ratios hold, {} do not, {} are not judged.",
        count(Some(true)),
        all.len(),
        count(Some(false)),
        count(None)
    );
    Section { title: "Expected ratios".to_owned(), seen: vec![seen], tables: vec![table], ..Section::default() }
}

/// Who took part and how, where there is a choice.
fn contenders(result: &BenchmarkResult) -> Option<Section> {
    if result.plan.contenders.len() < 2 {
        return None;
    }
    let mut table = Table::new("Contenders and how they ran", &["", "settings or version", "failed or left out"]);
    table.rows.extend(result.plan.contenders.iter().map(|one| {
        let version =
            result.versions.iter().find(|(name, _)| *name == one.name).map(|(_, version)| format!(", {version}"));
        let missing = result.cells.iter().filter(|cell| cell.cell.contender == one.name);
        let missing = missing.filter_map(|cell| Some((cell, cell.runs.iter().find_map(|run| run.missing.as_ref())?)));
        let missing: Vec<String> = missing.map(|(cell, reason)| format!("{}: {reason}", cell.cell.deed)).collect();
        let missing = if missing.is_empty() { DASH.to_owned() } else { missing.join("; ") };
        vec![one.name.clone(), format!("{}{}", one.told(), version.unwrap_or_default()), missing]
    }));
    Some(Section { title: "Contenders".to_owned(), tables: vec![table], ..Section::default() })
}

/// How a benchmark is made, for a page.
pub(crate) fn method(result: &BenchmarkResult) -> Vec<String> {
    let link = result.plan.link.map_or_else(String::new, |link| format!(" Work over a link used {}.", link.told()));
    vec![
        format!(
            "Writer and reader are separate processes that find each other by discovery and exchange RTPS over UDP, without shared memory \
             unless a peer has nothing else. All endpoints are reliable and volatile, and keep all samples; those of round trips keep the \
             last 16.{link}"
        ),
        "A burst goes from the first write (T1) to the echo that the reader sends back after the last sample (T2). Before a run both sides \
         wait until they are matched; the first burst of each kind is not counted."
            .to_owned(),
        format!(
            "A run starts processes of its own for one contender at one piece of work; the runs take turns, in an order that is shuffled \
             from the seed {} and reversed in every second round. Verdicts compare the medians of whole runs of the same round (sign test, \
             corrected for the number of comparisons in one quantity); the tables count every burst and every sample of all runs.",
            result.plan.seed
        ),
        "All contenders are measured by the same code. Each sample is encoded by its writer and decoded by its reader; Zenoh, iceoryx2 and \
         plain sockets have no types and hand over octets. The reader checks number, length and ends of every sample."
            .to_owned(),
        "Standard deviation is that of a sample (division by n − 1), as in the paper this follows. A quantile is shown when at least ten \
         values lie beyond it: p90 from 100 values, p99 from 1,000; else a dash stands in its place."
            .to_owned(),
        format!(
            "The small topic follows an absolute schedule of {RATE_HZ} Hz; its latency starts when a sample was due, so that a delayed write \
             counts as latency. Both processes read the host's monotonic clock."
        ),
        "KiB and MiB are powers of two; rates count payload only.".to_owned(),
    ]
}

/// A row below [`QUANTILE_HEADER`].
pub(crate) fn summary_row(name: &str, summary: &Summary) -> Vec<String> {
    vec![
        name.to_owned(),
        grouped(summary.count),
        rounded(summary.mean),
        rounded(summary.min),
        rounded(summary.max),
        rounded(summary.standard_deviation),
        or_dash(summary.p50, rounded),
        or_dash(summary.p90, rounded),
        or_dash(summary.p99, rounded),
    ]
}

const QUANTILE_HEADER: [&str; 9] = ["", "count", "mean", "min", "max", "std dev", "p50", "p90", "p99"];
const DASH: &str = "–";
/// What a writer without a limit is granted.
const ALL: &str = "all";
/// Between the runs in a figure over time.
const PAUSE_S: f64 = 0.1;
