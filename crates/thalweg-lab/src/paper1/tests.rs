//! The parts, the search and the forms of a result, from figures made by hand.

use thalweg_testing::pages::{check_html, check_offline};

use super::plan::{BACKGROUND, LINK, LOSS, PART_NAMES, SEARCH, TABLE_2, TABLES};
use super::*;
use crate::benchmark::{BenchmarkCell, Deed, example};
use crate::fixtures::check_contains;
use crate::length::Length;
use crate::peers::PeerProgram;
use crate::report::Markdown;
use crate::station::PackingMethod;

fn plan(length: Length) -> Paper1Plan {
    Paper1Plan::new(length, 5, &[PeerProgram::Cyclone, PeerProgram::Zenoh], true)
}

/// Times by hand: batching is twice as fast as coalescing, segments of 1 MiB are the best, 8,000 B are the best batch.
fn figure(cell: &BenchmarkCell, round: u32) -> Option<f64> {
    let steady = 1.0 + 0.004 * f64::from(round % 3);
    let (samples, bytes) = cell.deed.load();
    let times = match cell.contender.as_str() {
        "batching: max_bytes 8,000" => 0.8,
        "coalescing" => 2.0,
        "immediate" => 5.0,
        name if name.starts_with("cyclone") => 3.0,
        "zenoh batch" => return None,
        _ => 1.0,
    };
    Some(match cell.deed {
        Deed::Stream { .. } => 1e6 / times,
        Deed::Topic { .. } if bytes == 5 << 20 => 8.0,
        Deed::Topic { .. } => 2.0,
        _ if samples * bytes >= 5 << 20 && bytes >= 1 << 18 => {
            (2.0 + (bytes as f64 / (1 << 20) as f64).ln().abs()) * times * steady
        }
        _ => (2.0 + samples as f64 / 1_000.0) * times * steady,
    })
}

fn result() -> Paper1Result {
    let plan = Paper1Plan { runs: Some(14), ..plan(Length::Usual) };
    let searched = example(&plan.benchmark(SEARCH, &search::defaults()), figure);
    let found = search::found(&searched);
    let mut parts = vec![(SEARCH.to_owned(), searched)];
    parts.extend(
        [TABLES, LINK, LOSS, BACKGROUND].map(|part| (part.to_owned(), example(&plan.benchmark(part, &found), figure))),
    );
    Paper1Result {
        schema: Paper1Result::SCHEMA.to_owned(),
        command: plan.command(),
        profile: search::profile(&found, &parts[0].1, Some(&parts[1].1)),
        left_out: vec!["the peer hdds, whose program is not there".to_owned()],
        parts,
        found,
    }
}

#[test]
fn the_full_plan_has_the_papers_cells_and_the_runs_of_its_verdicts() {
    let plan = plan(Length::Usual);
    let tables = plan.benchmark(TABLES, &search::defaults());
    let deeds: Vec<String> =
        tables.cells.iter().filter(|cell| cell.contender == "batching").map(|cell| cell.deed.to_string()).collect();
    let expect = [
        "3,000 × 256 B",
        "3,000 × 512 B",
        "3,000 × 1 KiB",
        "10,000 × 256 B",
        "10,000 × 512 B",
        "10,000 × 1 KiB",
        "1 × 5 MiB",
        "5 × 1 MiB",
        "10 × 512 KiB",
        "20 × 256 KiB",
        "5,120 × 1 KiB",
        "10,240 × 512 B",
        "stream of 256 B",
    ];
    assert_eq!(deeds, expect, "as in Tables 2 and 3");
    assert_eq!(tables.runs as usize, crate::statistics::runs_needed(tables.comparisons()));
    assert!(tables.runs >= 12 && plan.benchmark(BACKGROUND, &[]).runs >= 8);
    assert_eq!(plan.benchmark(BACKGROUND, &[]).cells.len(), 14, "seven cells of Table 4, quiet and loaded");
    let peers: Vec<PeerProgram> = PeerProgram::ALL.into_iter().filter(|peer| *peer != PeerProgram::Raw).collect();
    let with_all = Paper1Plan::new(Length::Usual, 1, &peers, true).duration();
    assert!(with_all < std::time::Duration::from_secs(7_200), "{with_all:?}");
    let quick = Paper1Plan::new(Length::Quick, 1, &peers, true).duration();
    assert!(quick < std::time::Duration::from_secs(900), "{quick:?}");
    assert!(Paper1Plan::new(Length::Quick, 1, &[], true).duration() < std::time::Duration::from_secs(600));
    for part in PART_NAMES {
        let text = toml::to_string(&plan.benchmark(part, &search::defaults())).expect("text");
        Benchmark::parse(part, &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn without_root_the_parts_between_hosts_are_left_out_with_the_reason() {
    let plan = Paper1Plan::new(Length::Quick, 1, &[], false);
    assert_eq!(plan.parts().collect::<Vec<_>>(), [SEARCH, TABLES]);
    assert_eq!(plan.left_out.len(), 3);
    assert!(plan.left_out[0].contains("root"));
}

#[test]
fn a_scaled_plan_is_small_and_never_empty() {
    let plan = Paper1Plan { scale: 0.001, ..plan(Length::Quick) };
    let tables = plan.benchmark(TABLES, &search::defaults());
    let counts: Vec<u64> = tables.cells.iter().map(|cell| cell.deed.load().0).collect();
    assert_eq!((counts.iter().min(), counts.iter().max()), (Some(&1), Some(&10)));
    assert!(tables.notes[0].contains("0.001 of the paper's"));
    assert_eq!(plan.command(), "thalweg lab run paper1 --quick --seed 5 --peers cyclone,zenoh --scale 0.001");
}

#[test]
fn a_value_is_taken_where_it_is_faster_in_nearly_every_round() {
    let result = result();
    let of = |name: &str| result.found.iter().find(|one| one.name == name).expect("found");
    let PackingMethod::Batch(limits) = &of("batching").sending.method else { panic!("no batch") };
    assert_eq!((limits.max_bytes, limits.max_samples), (8_000, None));
    assert_eq!(
        (of("auto").receive_buffer_bytes, of("auto").sending.heartbeat_period_us),
        (None, None),
        "noise takes nothing"
    );
    let profile = result.profile.to_toml().expect("text");
    check_contains(&profile, &["max_bytes = 8000", "segment_bytes = 1048576", "name = \"tokens-10\""]);
    let plan = plan(Length::Usual).benchmark(SEARCH, &search::defaults());
    // Faster in the median, and in five of eight rounds alone.
    let rough = example(&plan, |cell, round| {
        Some(if cell.contender.ends_with("max_bytes 8,000") && round % 8 < 5 { 0.5 } else { 1.0 })
    });
    assert!(
        search::found(&rough)
            .iter()
            .all(|one| !matches!(&one.sending.method, PackingMethod::Batch(limits) if limits.max_bytes == 8_000))
    );
    // One round is left on a quiet machine.
    let mut loud = result.parts[0].1.clone();
    let taken = |one: &BenchmarkResult| {
        let found = search::found(one);
        found.iter().any(|one| matches!(&one.sending.method, PackingMethod::Batch(limits) if limits.max_bytes == 8_000))
    };
    assert!(taken(&loud));
    let runs = loud.cells.iter_mut().flat_map(|cell| &mut cell.runs);
    runs.filter(|run| run.round > 0).for_each(|run| run.conditions.stolen_cpu = Some(0.5));
    assert!(!taken(&loud), "one round tells nothing");
}

#[test]
fn sentences_say_what_the_figures_carry() {
    let text = to_text(&result());
    check_contains(
        &text,
        &[
            "Coalescing took 2 to 2 times as long; of 6 cells batching was surely faster in 6 and surely slower in 0",
            "10,000 samples of 1 KiB arrived within one second with batching: at most 12.3 ms in 42 bursts.",
            "A sample of 256 B cost the receiver 10.0 µs of processor time one by one, 4.00 µs with coalescing and 2.00 µs with batching.",
            "Segments of 1 MiB were the fastest: 2.01 ms where the unsplit sample took 3.62 ms.",
            "An urgent sample took 400 µs in the median and 400 µs at most beside unsplit samples of 5 MiB",
            "Wrapping by the application, which no peer was offered, left out: the mean of the fastest peer was 1 to 1 times",
            "Time × usage makes 88.8, 88.7, 75.1, 90.8, 103.1, 58.4 MB.",
            "Its 100 MB run at 135 Mbit/s, where Table 3 reached 808.",
            "With tokens-1 a transfer took 1 times as long",
        ],
    );
    check_contains(
        &text,
        &["Left out: the peer hdds", "Table 4: background data under a flow controller", "paper: of the link"],
    );
}

#[test]
fn parts_that_are_left_out_or_have_no_figures_are_told_apart() {
    let whole = result();
    let tried = "each method's parameters were tried";
    assert!(page(&whole).sections.iter().any(|section| section.lead.contains(tried)));
    let (mut failed, left_out) = (whole.clone(), Paper1Result { parts: vec![whole.parts[1].clone()], ..whole });
    assert!(!to_text(&left_out).contains("not told: a cell"));
    let sections = page(&left_out).sections;
    let of_settings = sections.last().expect("sections");
    assert_eq!(of_settings.lead, "The search was left out: each method has its defaults.");
    let seen = |result: &Paper1Result| -> Vec<String> {
        let table = claims::section(result).tables.swap_remove(0);
        table.rows.into_iter().map(|mut row| row.swap_remove(1)).collect()
    };
    assert_eq!(seen(&left_out)[1], "not measured: the part was left out");
    failed.parts.iter_mut().filter(|(name, _)| name == LINK).for_each(|(_, part)| part.cells.clear());
    assert_eq!(seen(&failed)[1], "not told: a cell that this takes has no figures");
}

#[test]
fn few_tokens_stand_beside_what_the_paper_has_of_them() {
    let background = |tokens: &[Option<u32>]| {
        let plan = Paper1Plan { tokens: tokens.to_vec(), ..plan(Length::Usual) };
        claims::background(&example(&plan.benchmark(BACKGROUND, &search::defaults()), figure))
    };
    let told = |tokens: &[Option<u32>]| background(tokens).swap_remove(0);
    let with =
        |name: &str, of_paper: &str| format!("With {name} a transfer took 1 times as long as without limit{of_paper}.");
    assert_eq!(told(&[None, Some(30)]), with("tokens-30", " (the paper: 1 times)"));
    assert_eq!(told(&[None, Some(1)]), with("tokens-1", " (the paper: 19.7 times)"));
    assert_eq!(told(&[None, Some(65)]), with("tokens-65", ""));
    assert!(background(&[None]).is_empty(), "without a limit alone there is nothing to compare");
}

#[test]
fn a_difference_that_some_rounds_contradict_is_none() {
    let plan = Paper1Plan { runs: Some(14), ..plan(Length::Usual) };
    // Twice as fast in half of the rounds, as fast in the others: beyond three standard errors of the bursts.
    let shifting = example(&plan.benchmark(TABLES, &search::defaults()), |cell, round| {
        let is_slow = cell.contender == "coalescing" && round < 7;
        Some(if is_slow { 2.0 } else { 1.0 } * (1.0 + 0.004 * f64::from(round % 3)))
    });
    let told = claims::batching(&shifting).expect("a sentence");
    assert!(told.contains("of 6 cells batching was surely faster in 0 and surely slower in 0"), "{told}");
}

#[test]
fn the_report_is_whole_and_its_page_names_the_figures() {
    let result = result();
    let html = page(&result).to_html();
    check_html(&html);
    check_offline(&html);
    assert!(!html.contains("NaN"));
    check_contains(
        &html,
        &[
            "As Figure 7",
            "As Figure 8",
            "As Figure 9",
            "it said &lt;nothing&gt;",
            "seed 5",
            "over a link that loses 1 %",
        ],
    );
    let Markdown { text, figures } = page(&result).to_markdown("p1", None);
    for (name, svg) in &figures {
        assert!(text.contains(&format!("]({name})")) && svg.starts_with("<svg xmlns="), "{name}");
    }
    check_contains(
        &text,
        &[&format!("## {TABLE_2}, over 1 Gbit/s"), "| tokens-10 |", "Made by `thalweg lab run paper1 --seed 5"],
    );
    let table = text.split("*3,000 × 256 B, milliseconds*").nth(1).expect("a table");
    let row = table.lines().find(|line| line.starts_with("| batching")).expect("a row");
    assert!(row.contains("| 61.9 | 58.0 | 66.0 | 2.54 |"), "the paper's mean, least, most and deviation: {row}");
}

#[test]
fn a_result_survives_its_file() {
    let result = result();
    let read: Paper1Result = serde_json::from_str(&serde_json::to_string(&result).expect("json")).expect("json");
    assert_eq!(to_text(&read), to_text(&result), "the report can be drawn again");
}
