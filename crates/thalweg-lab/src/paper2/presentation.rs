//! The preset's page and its text for a terminal.

use super::crossover;
use super::groups::{Group, P90, RECEIVED, WAYS, WIRE};
use super::limit;
use super::plan::{CROSSOVER, OVERLOAD, PERFTEST};
use super::procedure::{self, PAPER, PaperRow};
use super::result::{AutoAnswer, AutoCheck, Paper2Result, Winner};
use crate::figures::{or_dash, rounded};
use crate::parts::{self, PartResult};
use crate::plot::{Axis, TimelineTrace, lines};
use crate::report::{Card, Figure, FigureLayout, Page, Section, Standing, Tile};
use crate::study::{CPU, CellResult, Measure, P50, P99};
use crate::table::Table;

/// The tables, for a terminal.
pub fn to_text(result: &Paper2Result) -> String {
    let mut out = String::new();
    for part in &result.parts {
        let own: Vec<&Winner> = result.winners.iter().filter(|winner| winner.part == part.name).collect();
        out.push_str(&winner_table(&part.title, &own).to_text());
        out.push('\n');
    }
    if let Some(crossover) = crossover::section(result) {
        out.push_str(&Page { sections: vec![crossover], ..Page::default() }.to_text());
        out.push('\n');
    }
    out.push_str(&check_table(&result.checks).to_text());
    out.push('\n');
    let limit = result.parts.iter().filter(|part| part.name == OVERLOAD).flat_map(limit::sentences);
    limit.for_each(|sentence| out.push_str(&format!("  {sentence}\n")));
    for sentence in sentences(result) {
        out.push_str(&format!("  {sentence}\n"));
    }
    out
}

/// The report.
pub fn page(result: &Paper2Result) -> Page {
    let mut sections = vec![answers(result)];
    for part in result.parts.iter().filter(|part| !part.groups().is_empty()) {
        sections.push(section(result, part));
        sections.extend((part.name == PERFTEST).then(|| procedure::sampling(result)).flatten());
        sections.extend((part.name == CROSSOVER).then(|| crossover::section(result)).flatten());
    }
    let choices = result.choices();
    let count = |answer| choices.iter().filter(|check| check.answer == answer).count();
    let holding = count(AutoAnswer::Yes);
    let tile = Tile {
        figure: format!("{holding} of {}", choices.len()),
        meaning: "times auto is surely within 5 % of the better of two ways that differ".to_owned(),
    };
    let shell = parts::shell(&result.parts, "Peeroo, Popov, Stankovic (2022), asked again", &result.command, sections);
    Page {
        title: "Does multicast help?".to_owned(),
        cards: vec![Card {
            standing: standing(&choices),
            headline: format!(
                "Of {} comparisons in which the ways are not equivalent, auto is surely within 5 % of the better way in {holding} and surely not \
                 in {}; in {} the runs do not tell",
                choices.len(),
                count(AutoAnswer::No),
                count(AutoAnswer::Open)
            ),
            details: choices.iter().filter(|check| check.answer == AutoAnswer::No).map(|check| told(check)).collect(),
        }],
        tiles: [tile].into_iter().chain(shell.tiles).collect(),
        method: METHOD.map(str::to_owned).to_vec(),
        ..shell
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
        tables: procedure::paper_tables(result)
            .into_iter()
            .chain([paper_table(result), check_table(&result.checks)])
            .collect(),
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

/// The paper's Table 2 beside open schedules.
fn paper_table(result: &Paper2Result) -> Table {
    let mut table = Table::new(
        "The better way in the paper's Table 2, and here with open schedules",
        &["participants", "latency, paper", "latency, here", "throughput, paper", "throughput, here"],
    );
    let found = |part: &str, count: u32, quantity: &str| {
        let group = format!("{count}–{count}, ");
        let winner = result.winners.iter().find(|winner| {
            winner.part == part && winner.group.starts_with(&group) && winner.quantity.starts_with(quantity)
        });
        winner.map_or_else(|| "not measured".to_owned(), |winner| winner.verdict.clone())
    };
    for PaperRow { count, latency, throughput, .. } in PAPER {
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

pub(super) fn winner_table(title: &str, winners: &[&Winner]) -> Table {
    let header = ["cell", "quantity", "unicast", "multicast", "auto", "multicast by unicast", "95 % interval", "ahead"];
    let row = |winner: &&Winner| {
        let [unicast, multicast, auto] = winner.medians.map(|median| or_dash(median, rounded));
        vec![
            winner.group.clone(),
            winner.quantity.clone(),
            unicast,
            multicast,
            auto,
            or_dash(winner.ratio, |ratio| format!("{:.3}", ratio.estimate)),
            or_dash(winner.ratio, |ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high)),
            winner.verdict.clone(),
        ]
    };
    Table::of(title, &header, winners.iter().map(row))
}

fn check_table(checks: &[AutoCheck]) -> Table {
    let header = ["part", "cell", "quantity", "sent as", "within 5 %", "finding"];
    let row = |check: &AutoCheck| {
        let AutoCheck { part, group, quantity, choice, answer, text, .. } = check;
        [part, group, quantity, choice, &answer.to_string(), text].map(String::clone).to_vec()
    };
    let table = Table::of("Is auto within 5 % of the better way?", &header, checks.iter().map(row));
    Table { words: (1..header.len()).collect(), ..table }
}

fn section(result: &Paper2Result, part: &PartResult) -> Section {
    let groups = part.groups();
    let own: Vec<&Winner> = result.winners.iter().filter(|winner| winner.part == part.name).collect();
    if part.study.is_closed_loop() {
        return procedure::section(part, &own);
    }
    let panel = |group: &Group<'_>| group.latency_curves(&format!("response latency, µs, {}", group.name()));
    let seen =
        "A curve further left is faster, a steeper one steadier; where curves cross, neither way is ahead everywhere.";
    let panels = groups.iter().filter_map(panel).collect();
    let mut figures = Vec::from_iter(Figure::of_any(seen, FigureLayout::Column, panels));
    let ends = |group: &Group<'_>| (group.cell().publishers, group.cell().subscribers);
    let groups: Vec<Group<'_>> = groups.into_iter().filter(Group::is_ours).collect();
    let is_counted = groups.iter().all(|group| ends(group).0 == ends(group).1);
    if is_counted && groups.iter().any(|group| ends(group) != ends(&groups[0])) {
        figures.extend(by_count(&groups));
    }
    Section {
        title: part.title.clone(),
        lead: format!(
            "{} cells on four hosts of this machine; one-way latency, from the time at which a sample was due.",
            part.study.cells.len()
        ),
        seen: if part.name == OVERLOAD { limit::sentences(part) } else { Vec::new() },
        figures,
        tables: vec![winner_table("Medians over the runs", &own)],
        ..Section::default()
    }
}

/// Latency, bytes on the wire and CPU against the number of participants.
fn by_count(groups: &[Group<'_>]) -> Vec<Figure> {
    let figure = |measure: &Measure, caption: String, axis: Axis| {
        let trace = |way: usize| {
            let point =
                |group: &Group<'_>| Some((f64::from(group.cell().publishers), measure.median(group.cells[way])?));
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
    let figure = |cell: &&CellResult| or_dash(measure.median(cell), rounded);
    let row = |group: &Group<'_>| {
        [group.cell().publishers.to_string()].into_iter().chain(group.cells.iter().map(figure)).collect()
    };
    Table::of(measure.name, &header, groups.iter().map(row))
}

const METHOD: [&str; 8] = [
    "Four network namespaces on one bridge stand for the paper's four virtual machines; publishers and subscribers are spread over them \
     evenly. All share this machine's CPUs and its clock.",
    "The part \"The paper's own procedure\" is the paper's: as fast as possible, and a round trip of one sample in a thousand at publisher 0. \
     With more participants more of its samples are answered, so that some ten round trips a second are measured: runs take seconds here and \
     six hours in the paper.",
    "In the other parts the schedule is open: \
     samples are due at fixed times, and every sample of every pair is timed one way, from the time at which it was due, so that stalls \
     count. A round trip is about twice as long.",
    "All subscribers together are offered the same number of samples a second whatever their number is, so that more participants mean \
     more work to distribute them and not more samples.",
    "Throughput is the number of samples that arrive while publishers offer as many as the machine carries, or more; they leave out \
     samples that they cannot write within 200 ms.",
    "Runs of the same round are paired; intervals are exact ones of the median over the rounds, each alone, and need eight. Verdicts are sign \
     tests, corrected for the number of cells of the page (Holm); rounds with a disturbed run do not count. A sample that never arrived counts \
     as infinitely late.",
    "auto is within 5 % where all that the runs allow is, not where the estimate is.",
    "The bridge copies groups to every host, as a switch without IGMP snooping does.",
];
