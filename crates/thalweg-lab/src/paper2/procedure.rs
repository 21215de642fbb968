//! The paper's own procedure beside ours: its Table 2 and Figure 3, and what one latency sample in so many does not show.

use super::groups::Group;
use super::plan::{PERFTEST, SAME_RATE, SAME_RATE_TITLE, SCHEDULE_HZ, reached_hz};
use super::presentation::winner_table;
use super::result::{Paper2Result, Winner};
use crate::figures::{or_dash, percent, rounded};
use crate::parts::PartResult;
use crate::report::{Figure, FigureLayout, Section};
use crate::study::{CellResult, RunSummary};
use crate::table::Table;

/// The closed loops as a section.
pub(super) fn section(part: &PartResult, winners: &[&Winner]) -> Section {
    let groups = part.groups();
    let panel = |group: &Group<'_>| group.throughput_curves(&format!("throughput, Mbit/s, {}", group.name()));
    let round_trips = |group: &Group<'_>| {
        let count = group.cell().latency_count?;
        group.latency_curves(&format!("round trip, µs, {}, one in {count} samples", group.name()))
    };
    let seconds: usize = part.study.cells.iter().map(|cell| cell.seconds_mbit().len()).sum();
    let throughput = Figure::of_many(
        "Throughput of all subscribers in each second, as in the paper's Figure 3: a curve further right carries more.",
        FigureLayout::Column,
        groups.iter().map(panel).collect(),
    );
    let latency = Figure::of_any(
        "Round trips at publisher 0: a curve further left is faster; where curves cross, neither way is ahead everywhere.",
        FigureLayout::Column,
        groups.iter().filter_map(round_trips).collect(),
    );
    Section {
        title: part.title.clone(),
        lead: "Publishers write as fast as the middleware lets them; publisher 0 waits for the answer to one sample in so many, which \
               subscribers give in turns."
            .to_owned(),
        figures: [throughput.resting_on(format!("{seconds} seconds of all runs."))].into_iter().chain(latency).collect(),
        tables: vec![winner_table("Medians over the runs", winners)],
        ..Section::default()
    }
}

/// The paper's Table 2 beside the closed loops here: latency and throughput.
pub(super) fn paper_tables(result: &Paper2Result) -> Vec<Table> {
    let header =
        ["participants", "unicast, paper", "multicast, paper", "ahead, paper", "unicast, here", "multicast, here"];
    let mut latency = Table::new(
        "Table 2, round trips in ms: the paper's means, the means of all runs here, and the better way",
        &header.into_iter().chain(["ahead here at p50", "ahead here at p99"]).collect::<Vec<_>>(),
    );
    let mut throughput = Table::new(
        "Table 2, throughput of all subscribers in Mbit/s: the paper's means, the means of all runs here, and the better way",
        &header.into_iter().chain(["ahead here"]).collect::<Vec<_>>(),
    );
    let part = result.parts.iter().find(|part| part.name == PERFTEST);
    let groups = part.map(PartResult::groups).unwrap_or_default();
    for row in &PAPER {
        let group = groups.iter().find(|group| group.is_ours() && group.cell().publishers == row.count);
        let mean = |of: fn(&CellResult) -> Option<f64>| {
            let told = |way: usize| or_dash(group.and_then(|group| of(group.cells[way])), rounded);
            [told(0), told(1)]
        };
        let verdict = |quantity: &str| {
            let own = |winner: &&Winner| {
                winner.part == PERFTEST
                    && group.is_some_and(|group| group.name() == winner.group)
                    && winner.quantity.starts_with(quantity)
            };
            result.winners.iter().find(own).map_or_else(|| "not measured".to_owned(), |winner| winner.verdict.clone())
        };
        let begin = |means: [&str; 2], ahead: &str, here: [String; 2]| {
            let paper = [format!("{0}–{0}", row.count), means[0].to_owned(), means[1].to_owned(), ahead.to_owned()];
            paper.into_iter().chain(here).collect::<Vec<_>>()
        };
        let mut own = begin(row.latency_ms, row.latency, mean(mean_round_trip_ms));
        own.extend([verdict("round trip p50"), verdict("round trip p99")]);
        latency.rows.push(own);
        let mut own = begin(row.throughput_mbit, row.throughput, mean(mean_throughput_mbit));
        own.push(verdict("received a second"));
        throughput.rows.push(own);
    }
    vec![latency, throughput]
}

/// Mean of all answered round trips of all runs.
fn mean_round_trip_ms(cell: &CellResult) -> Option<f64> {
    let trips = || cell.runs.iter().filter_map(|run| Some(&run.closed_loop.as_ref()?.round_trip));
    let count: u64 = trips().map(|trip| trip.count).sum();
    let sum: f64 = trips().map(|trip| trip.mean_us * trip.count as f64).sum();
    (count > 0).then(|| sum / count as f64 / 1e3)
}

fn mean_throughput_mbit(cell: &CellResult) -> Option<f64> {
    let seconds = cell.seconds_mbit();
    (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
}

/// Round trips of one sample in so many, and the one-way latency of all samples at the same rate: of the cells whose loops reached a rate
/// that the schedule asked for. The others are named.
pub(super) fn sampling(result: &Paper2Result) -> Option<Section> {
    let part = |name: &str| result.parts.iter().find(|part| part.name == name);
    let (closed, open) = (part(PERFTEST)?, part(SAME_RATE));
    let header = [
        "participants",
        "way",
        "received a second",
        "answered",
        "round trip p50",
        "round trip p99",
        "longest",
        "all, one way, p50",
        "p99",
        "p99.9",
        "longest",
        "did not arrive",
    ];
    let caption = "µs, medians over the runs: the round trips that a closed loop tells, and every sample of an open schedule at the same rate, from \
                   the time at which it was due; not judged, because the two took no turns";
    let mut table = Table::new(caption, &header);
    let (mut compared, mut hidden, mut left_out) = (0, 0, Vec::<String>::new());
    for group in closed.groups().into_iter().filter(Group::is_ours) {
        for one in group.ways() {
            let is_same = |cell: &&CellResult| {
                (cell.cell.publishers, cell.cell.destination) == (one.cell.publishers, one.cell.destination)
            };
            let scheduled = open.and_then(|open| open.study.cells.iter().find(is_same));
            left_out.extend(why_left_out(one, scheduled));
            let Some(all) = scheduled.filter(|all| is_at_rate(all, one)) else { continue };
            let tails = (
                one.median_of(|run| run.closed_loop.as_ref()?.round_trip.p99_us),
                all.median_of(|run| run.totals.response.p99_us),
            );
            if let (Some(round_trip), Some(response)) = tails {
                compared += 1;
                hidden += u32::from(response > round_trip);
            }
            table.rows.push(row(one, all));
        }
    }
    let lead = "A closed loop asks a slow middleware for less, and times one sample in so many at one publisher. The open schedule asks \
                for what the loop reached, and times every sample of every pair.";
    let omitted = match left_out.as_slice() {
        [] => String::new(),
        all => format!(" Left out: {}.", all.join("; ")),
    };
    let is_told = !table.rows.is_empty();
    let told = format!(
        "The 99th percentile of all samples one way exceeds that of the sampled round trips, there and back, in {hidden} of {compared} cells."
    );
    (is_told || !left_out.is_empty()).then(|| Section {
        title: SAME_RATE_TITLE.to_owned(),
        lead: format!("{lead}{omitted}"),
        seen: is_told.then_some(told).into_iter().collect(),
        tables: is_told.then_some(table).into_iter().collect(),
        ..Section::default()
    })
}

/// Whether the schedule asked for the rate that the loop reached.
fn is_at_rate(scheduled: &CellResult, closed: &CellResult) -> bool {
    reached_hz(closed).is_some_and(|reached| (scheduled.cell.rate_hz / reached - 1.0).abs() <= RATE_MARGIN)
}

/// Why a loop has no schedule at its rate beside it; nothing where it has one, or where one of the two was not measured.
fn why_left_out(closed: &CellResult, scheduled: Option<&CellResult>) -> Option<String> {
    let reached = reached_hz(closed)?;
    let why = match scheduled {
        Some(scheduled) if is_at_rate(scheduled, closed) => return None,
        _ if !SCHEDULE_HZ.contains(&reached) => format!(
            "a schedule asks a publisher for {} samples a second at least and {} at most",
            SCHEDULE_HZ.start(),
            rounded(*SCHEDULE_HZ.end())
        ),
        scheduled => format!("the schedule asked a publisher for {} a second", rounded(scheduled?.cell.rate_hz)),
    };
    let (publishers, subscribers) = (closed.cell.publishers, closed.cell.subscribers);
    let (way, reached) = (closed.cell.destination, rounded(reached));
    Some(format!("{publishers}–{subscribers} {way}: {why}, the loop reached {reached}"))
}

fn row(closed: &CellResult, open: &CellResult) -> Vec<String> {
    let loops = |of: fn(&RunSummary) -> Option<f64>| or_dash(closed.median_of(of), rounded);
    let all = |of: fn(&RunSummary) -> Option<f64>| or_dash(open.median_of(of), rounded);
    let (due, received) = (open.sum(|totals| totals.due), open.sum(|totals| totals.received()));
    vec![
        format!("{}–{}", closed.cell.publishers, closed.cell.subscribers),
        closed.cell.destination.to_string(),
        loops(|run| run.received_per_s),
        or_dash(closed.cell.latency_count, |count| format!("1 in {count}")),
        loops(|run| run.closed_loop.as_ref()?.round_trip.p50_us),
        loops(|run| run.closed_loop.as_ref()?.round_trip.p99_us),
        loops(|run| Some(run.closed_loop.as_ref()?.round_trip.max_us)),
        all(|run| run.totals.response.p50_us),
        all(|run| run.totals.response.p99_us),
        all(|run| run.totals.response.p999_us),
        all(|run| Some(run.totals.response.max_us)),
        percent(1.0 - received as f64 / due.max(1) as f64),
    ]
}

/// Rates that differ by a smaller share are the same.
const RATE_MARGIN: f64 = 0.01;

/// A row of the paper's Table 2 with the means that its text gives; unicast before multicast.
pub(super) struct PaperRow {
    /// Publishers, and as many subscribers.
    pub(super) count: u32,
    latency_ms: [&'static str; 2],
    pub(super) latency: &'static str,
    throughput_mbit: [&'static str; 2],
    pub(super) throughput: &'static str,
}

const fn paper(
    count: u32,
    (latency_ms, latency): ([&'static str; 2], &'static str),
    (throughput_mbit, throughput): ([&'static str; 2], &'static str),
) -> PaperRow {
    PaperRow { count, latency_ms, latency, throughput_mbit, throughput }
}

/// All of it.
pub(super) const PAPER: [PaperRow; 6] = [
    paper(1, (["0.22", "0.22"], "unicast"), (["–", "–"], "unicast")),
    paper(3, (["0.56", "0.62"], "unicast"), (["–", "–"], "mixed")),
    paper(10, (["3.6", "3.2"], "multicast"), (["237", "292"], "multicast")),
    paper(25, (["–", "–"], "mixed"), (["at most 217", "at most 260"], "multicast")),
    paper(50, (["8.3", "12.5"], "unicast"), (["179", "169"], "unicast")),
    paper(75, (["312", "427"], "unicast"), (["175", "160"], "unicast")),
];
