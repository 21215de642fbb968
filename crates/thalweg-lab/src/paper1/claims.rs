//! The paper's claims beside what was measured, and what its own figures contradict.

use super::Paper1Result;
use super::paper::{BACKGROUND, BATCHING, SEGMENTS, transfer};
use super::plan::{BESIDE, LINK, LOSS, RECEIVER, TABLE_2, TABLE_3, TABLES};
use crate::benchmark::{BenchmarkCellRuns, BenchmarkResult, Deed, Timed, fastest, rounded_factor, timed};
use crate::figures::{grouped, percent, rounded, size};
use crate::report::Section;
use crate::statistics::{Summary, Verdict};
use crate::table::Table;

/// What the paper says, what we see.
pub(super) fn section(result: &Paper1Result) -> Section {
    let row = |(claim, seen): (&str, String)| vec![claim.to_owned(), seen];
    let header = ["the paper says", "we see"];
    let table = Table::of("The paper's statements", &header, claims(result).into_iter().map(row));
    let header = ["the paper says", "its figures say"];
    let defects = Table::of("The paper against its own figures", &header, defects_of_paper().into_iter().map(row));
    Section {
        title: "The paper's statements".to_owned(),
        lead: "The paper measured a closed DDS of 2018 on two PCs with a switch of 1 Gbit/s between them; here both ends share a machine, and \
               so its processors. Compare the shapes."
            .to_owned(),
        tables: vec![table, defects],
        ..Section::default()
    }
}

fn claims(result: &Paper1Result) -> Vec<(&'static str, String)> {
    let tables = result.part(TABLES);
    let linked = result.part(LINK);
    let one = |part: Option<&BenchmarkResult>, of: fn(&BenchmarkResult) -> Option<String>| match part {
        Some(part) => of(part).unwrap_or_else(|| "not told: a cell that this takes has no figures".to_owned()),
        None => "not measured: the part was left out".to_owned(),
    };
    vec![
        ("Batching is 1.6 to 1.9 times as fast as coalescing, and steadier, in every cell.", one(tables, batching)),
        ("The same over 1 Gbit/s.", one(linked, batching)),
        ("10,000 samples have to arrive within one second.", one(tables, within_a_second)),
        ("The receiver has less to do with batching.", one(tables, receiver)),
        (
            "A middle segment is the fastest and steadiest for 5 MB; 512 B take 4.2 times as long as the best.",
            one(tables, segments),
        ),
        ("The same over 1 Gbit/s.", one(linked, segments)),
        ("Lost packets of small segments are repaired faster.", one(result.part(LOSS), segments)),
        ("A sample that is not split blocks others.", one(linked, blocking)),
    ]
}

/// The cell of a contender at this kind of work.
fn cell<'a>(part: &'a BenchmarkResult, work: &str, contender: &str, deed: Deed) -> Option<&'a BenchmarkCellRuns> {
    part.of_work(work).into_iter().find(|cell| cell.cell.contender == contender && cell.cell.deed == deed)
}

fn deeds<'a>(part: &'a BenchmarkResult, work: &str, contender: &str) -> Vec<Timed<'a>> {
    timed(part.of_work(work).into_iter().filter(|cell| cell.cell.contender == contender))
}

pub(super) fn batching(part: &BenchmarkResult) -> Option<String> {
    let pairs: Vec<(Timed<'_>, Timed<'_>)> = deeds(part, TABLE_2, "batching")
        .into_iter()
        .filter_map(|batching| {
            let coalescing = cell(part, TABLE_2, "coalescing", batching.0.cell.deed)?;
            Some(((coalescing, coalescing.times()?), batching))
        })
        .collect();
    let factors = pairs.iter().map(|(coalescing, batching)| coalescing.1.mean / batching.1.mean);
    let (least, most) = range(factors)?;
    let judged = part.judge_times(&pairs.iter().map(|(slow, fast)| (slow.0, fast.0)).collect::<Vec<_>>());
    let told = |verdict| judged.iter().filter(|one| one.verdict == verdict).count();
    let steadier =
        pairs.iter().filter(|(slow, fast)| fast.1.relative_deviation() < slow.1.relative_deviation()).count();
    Some(format!(
        "Coalescing took {} to {} times as long; of {} cells batching was surely faster in {} and surely slower in {} (sign tests of runs of the \
         same round), and steadier (standard deviation by mean) in {steadier}.",
        rounded_factor(least),
        rounded_factor(most),
        pairs.len(),
        told(Verdict::Better),
        told(Verdict::Worse)
    ))
}

fn within_a_second(part: &BenchmarkResult) -> Option<String> {
    let bytes_of = |cell: &BenchmarkCellRuns| cell.cell.deed.load().0 * cell.cell.deed.load().1;
    let longest = deeds(part, TABLE_2, "batching").into_iter().max_by_key(|(cell, _)| bytes_of(cell))?;
    let (samples, bytes) = longest.0.cell.deed.load();
    let slowest = longest.1.max;
    let told = if slowest <= 1_000.0 { "within one second" } else { "not always within one second" };
    Some(format!(
        "{} samples of {} arrived {told} with batching: at most {} ms in {} bursts.",
        grouped(samples),
        size(bytes),
        rounded(slowest),
        grouped(longest.1.count)
    ))
}

fn receiver(part: &BenchmarkResult) -> Option<String> {
    let of = |name: &str| {
        let cell = part.of_work(RECEIVER).into_iter().find(|cell| cell.cell.contender == name)?;
        cell.median_of(|run| run.reader_us)
    };
    let (immediate, coalescing, batching) = (of("immediate")?, of("coalescing")?, of("batching")?);
    Some(format!(
        "A sample of 256 B cost the receiver {} µs of processor time one by one, {} µs with coalescing and {} µs with batching.",
        rounded(immediate),
        rounded(coalescing),
        rounded(batching)
    ))
}

fn segments(part: &BenchmarkResult) -> Option<String> {
    let all = deeds(part, TABLE_3, "auto");
    let load = |cell: &BenchmarkCellRuns| cell.cell.deed.load();
    let whole = all.iter().find(|(cell, _)| load(cell).0 == 1)?;
    let others: Vec<&BenchmarkCellRuns> = all.iter().map(|(cell, _)| *cell).filter(|cell| load(cell).0 > 1).collect();
    let (best, judged) = fastest(part, whole.0, &others)?;
    let smallest = all.iter().min_by_key(|(cell, _)| load(cell).1)?;
    let (best_ms, whole_ms) = (best.times()?.mean, whole.1.mean);
    let first = match judged.verdict {
        Verdict::Better => format!(
            "Segments of {} were the fastest: {} ms where the unsplit sample took {} ms.",
            size(load(best).1),
            rounded(best_ms),
            rounded(whole_ms)
        ),
        _ => format!("No segment size was surely faster than the unsplit sample ({} ms).", rounded(whole_ms)),
    };
    let slower = rounded_factor(smallest.1.mean / best_ms.min(whole_ms));
    Some(format!("{first} Segments of {} took {slower} times as long as the best.", size(load(smallest.0).1)))
}

fn blocking(part: &BenchmarkResult) -> Option<String> {
    let of = |(work, _): (&str, (u64, u32)), loaded: bool| {
        let cell = part.of_work(work).into_iter().find(|cell| cell.cell.deed.is_loaded() == Some(loaded))?;
        Summary::of(&cell.latencies_us())
    };
    let ([whole, pieces], quiet) = (BESIDE.map(|one| of(one, true)), of(BESIDE[0], false)?);
    let shown = |summary: &Summary| {
        format!(
            "{} µs in the median and {} µs at most",
            rounded(summary.p50.unwrap_or(summary.mean)),
            rounded(summary.max)
        )
    };
    Some(format!(
        "An urgent sample took {} beside unsplit samples of 5 MiB, {} beside segments of 256 KiB, and {} beside nothing.",
        shown(&whole?),
        shown(&pieces?),
        shown(&quiet)
    ))
}

/// Computed from the paper's tables.
pub(super) fn defects_of_paper() -> Vec<(&'static str, String)> {
    let moved =
        BACKGROUND.map(|(_, ms, usage)| format!("{:.1}", ms / 1e3 * usage / 100.0 * 1e9 / 8.0 / 1e6)).join(", ");
    let bits = |bytes: f64, ms: f64| bytes * 8.0 / (ms / 1e3) / 1e6;
    let fastest = SEGMENTS.iter().map(|(.., figures)| figures[0]).fold(f64::INFINITY, f64::min);
    let (small, batched) = (SEGMENTS[4].2[0], BATCHING[2].2[0]);
    vec![
        ("Table 4 moves 100 MB at the stated usage of 1 Gbit/s.", format!("Time × usage makes {moved} MB.")),
        (
            "Table 4 without a limit uses what the link gives.",
            format!(
                "Its 100 MB run at {:.0} Mbit/s, where Table 3 reached {:.0}.",
                bits(1e8, BACKGROUND[0].1),
                bits((5 << 20) as f64, fastest)
            ),
        ),
        (
            "Batching is the best for many samples of 1 KB; large data are best split in the middle, and small topics are faster.",
            format!("5,120 × 1 KB in Table 3 took {small} ms without batching, 3,000 × 1 KB with it {batched} ms in Table 2; in Table 3 \
                     itself the small topics are the slowest."),
        ),
        ("KEEP_ALL belongs to RELIABILITY.", "It is a kind of HISTORY (DDS 1.4, 2.2.3.18).".to_owned()),
        (
            "The paper searched HEARTBEAT period, its retries and MAX_MESSAGE_SIZE.",
            "Thalweg's search varies the period and the largest datagram; it has no number of retries: a reader is given up by time, not by \
             count."
                .to_owned(),
        ),
    ]
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range: Option<(f64, f64)>, value| {
        Some(range.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
    })
}

/// What is left of the link's load and the urgent topic's latency with few tokens.
pub(super) fn background(part: &BenchmarkResult) -> Vec<String> {
    let timed = timed(part.cells.iter().filter(|cell| cell.cell.deed.is_loaded() == Some(true)));
    let is_unlimited = |(cell, _): &&Timed<'_>| cell.cell.contender == super::UNLIMITED;
    let unlimited = timed.iter().find(is_unlimited);
    let limited = timed.iter().filter(|timed| !is_unlimited(timed));
    let slowest = limited.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let (Some((slow, slow_times)), Some((fast, fast_times))) = (slowest, unlimited) else { return Vec::new() };
    let ms = |contender: &str| transfer(contender).map(|(ms, _)| ms);
    let paper = ms(&slow.cell.contender).zip(ms(super::UNLIMITED));
    let paper = paper.map(|(slow, fast)| format!(" (the paper: {} times)", rounded_factor(slow / fast)));
    let mut out = vec![format!(
        "With {} a transfer took {} times as long as without limit{}.",
        slow.cell.contender,
        rounded_factor(slow_times.mean / fast_times.mean),
        paper.unwrap_or_default()
    )];
    let usage = [slow, fast].map(|cell| crate::benchmark::usage(part, cell));
    if let [Some(slow), Some(fast)] = usage {
        out.push(format!("It used {} of the link instead of {}.", percent(slow), percent(fast)));
    }
    out
}
