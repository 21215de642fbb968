//! The forms of a result, from one made by hand.

use super::result::{Paper1Facts, Paper1Result};
use super::search::{MeasuredSettings, Search, Settings, Trial, TunedParameter};
use super::*;
use crate::host::{Conditions, Environment};
use crate::profile::Profile;
use crate::quick::Foreground;
use crate::report::Markdown;
use crate::station::TokenBucket;
use crate::statistics::Summary;
use thalweg_testing::pages::{check_html, check_offline};

fn cell(contender: &str, n: u64, size: u64, mean: f64) -> BurstRuns {
    let runs_ms: Vec<f64> = (0..20).map(|run| mean * (0.95 + 0.1 * f64::from(run) / 19.0)).collect();
    let summary = Summary::of(&runs_ms).expect("runs");
    BurstRuns { contender: contender.to_owned(), n, size, runs_ms, summary }
}

fn background(tokens: Option<u32>, ms: f64, p99_factor: f64) -> BackgroundCell {
    let quiet_us: Vec<f64> = (0..1_200).map(f64::from).collect();
    let loaded_us: Vec<f64> = quiet_us.iter().map(|us| us * p99_factor).collect();
    let foreground = |values: &[f64]| Summary::of(values).map(|latency| Foreground { latency, lost: 0 });
    BackgroundCell {
        bucket: TokenBucket::of_paper(tokens),
        transfer_samples: 3_200,
        sample_bytes: 32 << 10,
        runs_ms: vec![ms; 3],
        summary: Summary::of(&[ms; 3]).expect("runs"),
        usage: vec![0.07; 3],
        quiet: foreground(&quiet_us),
        loaded: foreground(&loaded_us),
        quiet_us,
        loaded_us,
    }
}

fn facts(name: &str, is_ours: bool, failures: &[&str]) -> ContenderFacts {
    let failures = failures.iter().map(|text| (*text).to_owned()).collect();
    ContenderFacts { name: name.to_owned(), is_ours, configuration: "a & b".to_owned(), failures }
}

fn result() -> Paper1Result {
    let mut high_frequency = Vec::new();
    for (n, size) in [(3_000, 256), (10_000, 1_024)] {
        for (name, factor) in [
            ("Thalweg coalescing", 2.0),
            ("Thalweg batching", 1.0),
            ("Thalweg auto", 1.1),
            ("Thalweg immediate", 4.4),
            ("Thalweg wrapped by the application", 0.1),
            ("zenoh tuned", 1.5),
        ] {
            high_frequency.push(cell(name, n, size, n as f64 / 1_000.0 * factor));
        }
    }
    let large = [(1, 5 << 20, 6.0), (5, 1 << 20, 3.0), (10_240, 512, 30.0)];
    let settings = Settings::default().with(TunedParameter::MaxBytes, 32_000);
    let measured = Some(MeasuredSettings { ms: 4.5, error: 0.01 });
    let trial =
        Trial { parameter: TunedParameter::MaxBytes, pass: "coarse".to_owned(), settings: settings.clone(), measured };
    let failed = Trial { measured: None, settings: Settings::default(), ..trial.clone() };
    Paper1Result {
        schema: Paper1Result::SCHEMA.to_owned(),
        course: Paper1Facts {
            command: "thalweg lab run paper1 --seed 5".to_owned(),
            started_unix_s: 1_795_294_025,
            seconds: 100.0,
            seed: 5,
            runs: 20,
            scale: 1.0,
            cpus: Some((0, 1)),
            link: "a link".to_owned(),
            first_orders: vec![vec!["Thalweg auto".to_owned(), "zenoh tuned".to_owned()]],
        },
        environment: Environment::read(),
        conditions: Conditions::default(),
        contenders: vec![
            facts("Thalweg coalescing", true, &[]),
            facts("Thalweg batching", true, &[]),
            facts("Thalweg auto", true, &[]),
            facts("Thalweg immediate", true, &[]),
            facts("Thalweg wrapped by the application", true, &[]),
            facts("zenoh tuned", false, &[]),
            facts("dust default", false, &["it said <nothing>"]),
        ],
        missing: vec![Missing {
            what: "the peer hdds".to_owned(),
            why: "its program is not there".to_owned(),
            remedy: "set it up with `cargo xtask peers`".to_owned(),
        }],
        searches: vec![Search {
            subject: "Thalweg batching".to_owned(),
            objective: "ms".to_owned(),
            trials: vec![trial, failed],
            best: settings,
        }],
        high_frequency,
        large: large.map(|(n, size, ms)| cell("Thalweg auto", n, size, ms)).to_vec(),
        background: vec![background(None, 900.0, 5.0), background(Some(10), 12_800.0, 1.25)],
        profile: Profile::empty(),
    }
}

#[track_caller]
fn check_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} not in:\n{text}");
    }
}

#[test]
fn sentences_say_what_the_figures_carry() {
    let text = to_text(&result());
    check_contains(
        &text,
        &[
            "Batching was faster than coalescing, beyond the scatter of the runs, in 2 of 2 cells; coalescing took 2 to 2 times as",
            "Sent one by one, samples took 4 to 4 times as long as with auto",
            "the mean of the fastest peer was 1.5 to 1.5 times that of the fastest of Thalweg's methods in 2 cells",
            "Segments of 1 MiB were best: 3.00 ms where the unsplit sample took 6.00 ms.",
            "With 10 tokens a transfer took 14.2 times as long as without limit",
            "dust default failed: it said <nothing>",
            "Missing: the peer hdds",
        ],
    );
}

#[test]
fn the_fastest_stands_first_and_twenty_runs_carry_no_p90() {
    let text = to_text(&result());
    let table = text.split("3,000 × 256 B, milliseconds\n").nth(1).expect("the cell");
    let names: Vec<&str> =
        table.lines().skip(2).take(4).map(|line| line.trim_start().split("  ").next().unwrap_or("")).collect();
    assert_eq!(names, ["Thalweg batching", "Thalweg auto", "zenoh tuned", "Thalweg coalescing"]);
    let header = table.lines().next().expect("a header");
    assert!(header.contains("p50") && !header.contains("p90") && !header.contains("p99"), "{header}");
    check_contains(table, &["61.9", "106"]);
}

#[test]
fn the_report_is_whole_offline_and_escaped() {
    let html = page(&result()).to_html();
    check_html(&html);
    check_offline(&html);
    check_contains(
        &html,
        &["As Figure 7", "As Figure 8", "As Figure 9", "it said &lt;nothing&gt;", "seed 5", "32,000", "← best"],
    );
    assert!(!html.contains("NaN"));
}

#[test]
fn the_page_names_its_figures_as_they_are_written() {
    let Markdown { text, figures } = page(&result()).to_markdown("p1", Some("It is *fast*.\n"));
    assert_eq!(figures.len(), 5, "two of runs, one of dots, Figure 9, latencies");
    for (name, svg) in &figures {
        assert!(text.contains(&format!("]({name})")) && svg.starts_with("<svg xmlns="), "{name}");
    }
    check_contains(
        &text,
        &[
            "## Table 4",
            "| 10 tokens |",
            "Made by `thalweg lab run paper1 --seed 5`",
            "> **Missing: the peer hdds",
            "\n## Findings\n\nIt is *fast*.\n\n## Table 2",
        ],
    );
}

#[test]
fn a_result_survives_its_file() {
    let text = serde_json::to_string(&result()).expect("json");
    let read: Paper1Result = serde_json::from_str(&text).expect("json");
    assert_eq!(page(&read).to_html(), page(&result()).to_html(), "the report can be drawn again");
}

#[test]
fn a_result_without_tables_is_still_drawn() {
    let empty = Paper1Result {
        high_frequency: Vec::new(),
        large: Vec::new(),
        background: Vec::new(),
        contenders: Vec::new(),
        searches: Vec::new(),
        missing: Vec::new(),
        ..result()
    };
    check_html(&page(&empty).to_html());
    assert!(!to_text(&empty).contains("Table 2"));
}
