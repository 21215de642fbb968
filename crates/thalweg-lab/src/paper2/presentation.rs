//! The preset's page and its text for a terminal.

use super::groups::{Group, P90, RECEIVED, WIRE};
use super::result::{AutoAnswer, AutoCheck, Paper2Result, PartResult, Winner};
use crate::circumstances;
use crate::figures::{grouped, rounded, utc};
use crate::plot::{Axis, Series, TimelineTrace, ecdf, lines};
use crate::report::{Card, Figure, FigureLayout, Page, Section, Standing, Tile};
use crate::statistics::Buckets;
use crate::study::{self, CPU, CellResult, Measure, P50, P99};
use crate::table::Table;

/// The tables, for a terminal.
pub fn to_text(result: &Paper2Result) -> String {
    let mut out = String::new();
    for part in &result.parts {
        let own: Vec<&Winner> = result.winners.iter().filter(|winner| winner.part == part.name).collect();
        out.push_str(&winner_table(&part.title, &own).to_text());
        out.push('\n');
    }
    out.push_str(&check_table(&result.checks).to_text());
    out.push('\n');
    for sentence in sentences(result) {
        out.push_str(&format!("  {sentence}\n"));
    }
    out
}

/// The report.
pub fn page(result: &Paper2Result) -> Page {
    let mut sections = vec![answers(result)];
    sections.extend(result.parts.iter().map(|part| section(result, part)));
    let studies = || result.parts.iter().map(|part| &part.study);
    sections.extend(
        studies()
            .map(|study| Section { title: format!("Every cell of {}", study.name), ..study::cells_section(study) }),
    );
    sections.extend(studies().filter_map(study::failures_section));
    let runs: usize = studies().flat_map(|study| &study.cells).map(|cell| cell.runs.len()).sum();
    let disturbed: usize = studies().map(study::StudyResult::contaminated).sum();
    let choices = result.choices();
    let holding = choices.iter().filter(|check| check.answer == AutoAnswer::Yes).count();
    let tile = |figure: String, meaning: &str| Tile { figure, meaning: meaning.to_owned() };
    let Some(first) = studies().next() else { return Page::default() };
    Page {
        title: "Does multicast help?".to_owned(),
        subtitle: format!(
            "{} · Peeroo, Popov, Stankovic (2022), asked again; seed {}",
            utc(first.started_unix_s),
            first.seed
        ),
        cards: vec![Card {
            standing: standing(&choices),
            headline: format!(
                "auto is within 5 % of the better way in {holding} of {} comparisons in which the ways are not equivalent",
                choices.len()
            ),
            details: choices.iter().filter(|check| check.answer == AutoAnswer::No).map(|check| told(check)).collect(),
        }],
        tiles: vec![
            tile(
                format!("{holding} of {}", choices.len()),
                "times auto is surely within 5 % of the better of two ways that differ",
            ),
            tile(grouped(runs as u64), "runs"),
            tile(format!("{} of {runs}", runs - disturbed), "runs were made on a quiet machine"),
        ],
        warnings: study::disturbances(studies()),
        sections,
        facts: circumstances::facts(&first.environment),
        conditions: studies()
            .map(|study| {
                format!(
                    "Part {}: scenario and raw data in its directory beside this page, fingerprint {:.12}.",
                    study.name, study.fingerprint
                )
            })
            .collect(),
        method: METHOD.map(str::to_owned).to_vec(),
        command: result.command.clone(),
    }
}

/// Whether `auto` is as good as it is meant to be, as far as the runs tell.
fn standing(choices: &[&AutoCheck]) -> Standing {
    let has = |answer| choices.iter().any(|check| check.answer == answer);
    match (has(AutoAnswer::No), has(AutoAnswer::Open), has(AutoAnswer::Yes)) {
        (true, ..) => Standing::Fails,
        (false, false, true) => Standing::Holds,
        _ => Standing::NotJudged,
    }
}

fn answers(result: &Paper2Result) -> Section {
    Section {
        title: "Answers".to_owned(),
        lead: "Unicast against multicast at every number of participants, and whether auto keeps up with the better of the two.".to_owned(),
        seen: sentences(result),
        tables: vec![paper_table(result), check_table(&result.checks)],
        ..Section::default()
    }
}

fn told(check: &AutoCheck) -> String {
    format!("{}, {}, {}: {}.", check.part, check.group, check.quantity, check.text)
}

fn sentences(result: &Paper2Result) -> Vec<String> {
    let mut out: Vec<String> = result.omitted.iter().map(|text| format!("Left out: {text}.")).collect();
    let choices = result.choices();
    let count = |answer| choices.iter().filter(|check| check.answer == answer).count();
    out.push(format!(
        "auto is within 5 % of the better way in {} of {} comparisons, not in {}, and the runs do not tell in {}; {} further comparisons, in \
         which unicast and multicast are equivalent, are no choices. The table gives the reasons.",
        count(AutoAnswer::Yes),
        choices.len(),
        count(AutoAnswer::No),
        count(AutoAnswer::Open),
        result.checks.len() - choices.len()
    ));
    out
}

/// The paper's Table 2 beside ours.
fn paper_table(result: &Paper2Result) -> Table {
    let mut table = Table::new(
        "The better way in the paper's Table 2 and here",
        &["participants", "latency, paper", "latency, here", "throughput, paper", "throughput, here"],
    );
    let found = |part: &str, count: u32, quantity: &str| {
        let group = format!("{count}–{count}, ");
        let winner = result.winners.iter().find(|winner| {
            winner.part == part && winner.group.starts_with(&group) && winner.quantity.starts_with(quantity)
        });
        winner.map_or_else(|| "not measured".to_owned(), |winner| winner.verdict.clone())
    };
    for (count, latency, throughput) in PAPER {
        table.rows.push(vec![
            format!("{count}–{count}"),
            latency.to_owned(),
            format!("p50: {}; p99: {}", found("participants", count, P50.name), found("participants", count, P99.name)),
            throughput.to_owned(),
            found("overload", count, RECEIVED.name),
        ]);
    }
    table
}

fn winner_table(title: &str, winners: &[&Winner]) -> Table {
    let header = ["cell", "quantity", "unicast", "multicast", "auto", "multicast by unicast", "95 % interval", "ahead"];
    let mut table = Table::new(title, &header);
    let missing = || "–".to_owned();
    for winner in winners {
        let [unicast, multicast, auto] = winner.medians.map(|median| median.map_or_else(missing, rounded));
        table.rows.push(vec![
            winner.group.clone(),
            winner.quantity.clone(),
            unicast,
            multicast,
            auto,
            winner.ratio.map_or_else(missing, |ratio| format!("{:.3}", ratio.estimate)),
            winner.ratio.map_or_else(missing, |ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high)),
            winner.verdict.clone(),
        ]);
    }
    table
}

fn check_table(checks: &[AutoCheck]) -> Table {
    let mut table = Table::new(
        "Is auto within 5 % of the better way?",
        &["part", "cell", "quantity", "sent as", "within 5 %", "finding"],
    );
    table.words = (1..table.header.len()).collect();
    for check in checks {
        table.rows.push(vec![
            check.part.clone(),
            check.group.clone(),
            check.quantity.clone(),
            check.choice.clone(),
            check.answer.to_string(),
            check.text.clone(),
        ]);
    }
    table
}

fn section(result: &Paper2Result, part: &PartResult) -> Section {
    let groups = part.groups();
    let own: Vec<&Winner> = result.winners.iter().filter(|winner| winner.part == part.name).collect();
    let panel = |group: &Group<'_>| {
        let latencies = group.latencies?;
        let series: Vec<Series> = (0..WAYS.len()).map(|way| distribution(latencies[way], way)).collect();
        Some(ecdf(&format!("response latency, µs, {}", group.name()), &series))
    };
    let seen =
        "A curve further left is faster, a steeper one steadier; where curves cross, neither way is ahead everywhere.";
    let panels: Vec<String> = groups.iter().filter_map(panel).collect();
    let mut figures = Vec::new();
    if !panels.is_empty() {
        figures.push(Figure::of_many(seen, FigureLayout::Column, panels));
    }
    if groups.iter().any(|group| group.count != groups[0].count) {
        figures.extend(by_count(&groups));
    }
    Section {
        title: part.title.clone(),
        lead: format!(
            "{} cells on four hosts of this machine; one-way latency, from the time at which a sample was due.",
            part.study.cells.len()
        ),
        figures,
        tables: vec![winner_table("Medians over the runs", &own)],
        ..Section::default()
    }
}

/// Values at even distances in rank, which stand for a distribution.
fn distribution(all: &Buckets, way: usize) -> Series {
    let points = all.due().min(POINTS);
    let rank = |index: u64| ((index + 1) as f64 / points as f64 * all.due() as f64).round() as u64;
    let values = (0..points).map(|index| all.at_rank(rank(index).max(1))).collect();
    Series { name: WAYS[way].to_owned(), colour: way, values }
}

/// Latency, bytes on the wire and CPU against the number of participants.
fn by_count(groups: &[Group<'_>]) -> Vec<Figure> {
    let figure = |measure: &Measure, caption: String, axis: Axis| {
        let trace = |way: usize| {
            let point = |group: &Group<'_>| Some((f64::from(group.count), measure.median(group.cells[way])?));
            TimelineTrace { name: WAYS[way].to_owned(), colour: way, points: groups.iter().filter_map(point).collect() }
        };
        let traces: Vec<TimelineTrace> = (0..WAYS.len()).map(trace).collect();
        let picture = lines(&Axis::logarithmic("publishers, and as many subscribers"), &axis, &traces);
        Figure::new(caption, picture).with_table(count_table(measure, groups))
    };
    let latencies = [&P50, &P90, &P99].map(|measure| {
        let caption = format!("The {} by number of participants, median over the runs.", measure.name);
        figure(measure, caption, Axis::logarithmic(measure.name))
    });
    let efforts = [&WIRE, &CPU].map(|measure| {
        let caption = format!("{}, all hosts together.", measure.name);
        figure(measure, caption, Axis::fitting(measure.name))
    });
    latencies.into_iter().chain(efforts).collect()
}

/// The numbers behind a figure by number of participants.
fn count_table(measure: &Measure, groups: &[Group<'_>]) -> Table {
    let header = ["publishers, and as many subscribers"].into_iter().chain(WAYS).collect::<Vec<&str>>();
    let mut table = Table::new(measure.name, &header);
    let figure = |cell: &CellResult| measure.median(cell).map_or_else(|| "–".to_owned(), rounded);
    let row = |group: &Group<'_>| [group.count.to_string()].into_iter().chain(group.cells.map(figure)).collect();
    table.rows = groups.iter().map(row).collect();
    table
}

/// The ways of sending, in the order of their colours.
const WAYS: [&str; 3] = ["unicast", "multicast", "auto"];
/// Most points of a curve: more only make the file larger.
const POINTS: u64 = 300;
/// Participants of each kind, and the better way in latency and in throughput (the paper's Table 2).
const PAPER: [(u32, &str, &str); 6] = [
    (1, "unicast", "unicast"),
    (3, "unicast", "mixed"),
    (10, "multicast", "multicast"),
    (25, "mixed", "multicast"),
    (50, "unicast", "unicast"),
    (75, "unicast", "unicast"),
];
const METHOD: [&str; 7] = [
    "Four network namespaces on one bridge stand for the paper's four virtual machines; publishers and subscribers are spread over them \
     evenly. All share this machine's CPUs and its clock.",
    "The paper sends as fast as it can and measures a round trip on one sample in a thousand, at publisher 0. Here the schedule is open: \
     samples are due at fixed times, and every sample of every pair is timed one way, from the time at which it was due, so that stalls \
     count. A round trip is about twice as long.",
    "All subscribers together are offered the same number of samples a second whatever their number is, so that more participants mean \
     more work to distribute them and not more samples.",
    "Throughput is the number of samples that arrive while publishers offer as many as the machine carries, or more; they leave out \
     samples that they cannot write within 200 ms.",
    "Runs of the same round are paired; intervals are exact ones of the median over the rounds, each alone, and need eight. Verdicts are sign \
     tests, corrected for the number of cells of the page (Holm); a cell with a disturbed run has none. A sample that never arrived counts \
     as infinitely late.",
    "auto is within 5 % where all that the runs allow is, not where the estimate is.",
    "The bridge copies groups to every host, as a switch without IGMP snooping does.",
];
