use super::*;
use crate::host::{Conditions, Environment};
use crate::statistics::Summary;

/// A result as a run might leave it, with scatter from a small linear congruence so that every test sees the same one.
pub(crate) fn example() -> QuickResult {
    let mut state = 7_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let mut cell = |samples, sample_bytes, typical: f64| {
        let runs_ms: Vec<f64> = (0..100).map(|_| typical * (0.92 + 0.1 * noise() + 0.5 * noise().powi(12))).collect();
        BurstCell { samples, sample_bytes, summary: Summary::of(&runs_ms).expect("runs"), runs_ms }
    };
    let high_frequency =
        vec![cell(3_000, 256, 17.9), cell(3_000, 1_024, 18.6), cell(10_000, 256, 56.2), cell(10_000, 1_024, 58.0)];
    let large = vec![cell(1, 5 << 20, 4.6), cell(5, 1 << 20, 3.0), cell(20, 256 << 10, 2.9)];
    let transfers = cell(3_200, 32_768, 96.0);
    let points: Vec<LatencyPoint> = (0..2_400)
        .map(|index| {
            let at_s = f64::from(index) / 100.0;
            let loaded = ((at_s + 3.0) / 6.0) as u32 % 2 == 1;
            let typical = if loaded { 240.0 } else { 70.0 };
            LatencyPoint { at_s, latency_us: typical * (0.7 + 0.5 * noise() + 6.0 * noise().powi(30)), loaded }
        })
        .collect();
    let foreground = |loaded: bool| {
        let values: Vec<f64> =
            points.iter().filter(|point| point.loaded == loaded).map(|point| point.latency_us).collect();
        Foreground { latency: Summary::of(&values).expect("points"), lost: 0 }
    };
    QuickResult {
        schema: QuickResult::SCHEMA.to_owned(),
        scenario: "quick".to_owned(),
        started_unix_s: 1_795_294_025,
        seed: 1,
        seconds: 54.0,
        environment: Environment::read(),
        conditions: Conditions {
            seconds: 54.0,
            foreign_cpu: Some(0.02),
            waiting_for_cpu: Some(0.4),
            ..Conditions::default()
        },
        high_frequency,
        large,
        background: Background {
            transfer_samples: 3_200,
            sample_bytes: 32_768,
            transfers: transfers.summary.clone(),
            transfers_ms: transfers.runs_ms,
            rate_hz: 100.0,
            quiet: foreground(false),
            loaded: foreground(true),
            points,
            loads: vec![(3.0, 9.0), (15.0, 21.0)],
        },
        remarks: Vec::new(),
        cells: Vec::new(),
        differences: Vec::new(),
    }
}

#[test]
fn the_report_is_one_small_well_formed_offline_file() {
    let html = page(&example()).to_html();
    thalweg_testing::pages::check_html(&html);
    thalweg_testing::pages::check_offline(&html);
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    if let Ok(path) = std::env::var("THALWEG_EXAMPLE_REPORT") {
        std::fs::write(path, html).expect("written");
    }
}

#[test]
fn the_terminal_shows_every_cell_with_the_columns_of_the_paper() {
    let text = to_text(&example());
    for expect in [
        "mean",
        "min",
        "max",
        "std dev",
        "p50",
        "p90",
        "p99",
        "3,000 × 256 B",
        "10,000 × 1 KiB",
        "1 × 5 MiB",
        "100 MiB in 32 KiB",
    ] {
        assert!(text.contains(expect), "{expect} in\n{text}");
    }
}

#[test]
fn the_result_survives_its_json() {
    let result = example();
    let json = serde_json::to_string(&result).expect("json");
    let back: QuickResult = serde_json::from_str(&json).expect("the same layout");
    assert_eq!(back.high_frequency[0].summary.count, 100);
    assert_eq!(back.background.points.len(), result.background.points.len());
}

/// A cell whose runs all lie within one percent of `mean`.
fn steady(samples: u64, sample_bytes: u64, mean: f64) -> BurstCell {
    let runs_ms = vec![mean * 0.99, mean, mean * 1.01];
    BurstCell { samples, sample_bytes, summary: Summary::of(&runs_ms).expect("runs"), runs_ms }
}

#[track_caller]
fn check(sentences: Vec<String>, expect: &str) {
    assert!(sentences.iter().any(|sentence| sentence.contains(expect)), "{expect:?} not in {sentences:#?}");
}

#[test]
fn sentences_follow_the_data_not_a_hope() {
    let bursts = |large: f64| observations::high_frequency(&[steady(10_000, 256, 50.0), steady(10_000, 1_024, large)]);
    check(bursts(50.2), "4 times the bytes made no difference beyond the scatter of the runs");
    check(bursts(52.0), "4 times the bytes took 1.04 times as long: the number of samples decides");
    check(bursts(100.0), "both the number of samples and their bytes count");
    check(bursts(190.0), "the bytes decide here");
    let large = |split: f64| observations::large(&[steady(1, 5 << 20, 4.0), steady(20, 256 << 10, split)]);
    check(large(3.0), "Split into 20 × 256 KiB it took 25.0 % less time");
    check(large(4.01), "no difference beyond the scatter");
    check(large(6.0), "Splitting did not help: even the best split, 20 × 256 KiB, took 50.0 % more time");
}

#[test]
fn losses_and_improvements_are_told_as_well() {
    let mut background = example().background;
    background.loaded.lost = 3;
    background.loaded.latency.p50 = background.quiet.latency.p50.map(|p50| p50 / 2.0);
    check(observations::background(&background), "3 of 2,403 samples of that topic never arrived");
    check(observations::background(&background), "fell to 50.0 %");
    background.loaded.latency.p99 = None;
    let sentences = observations::background(&background);
    assert!(
        !sentences.iter().any(|sentence| sentence.contains("99th")),
        "a quantile without enough samples is not told"
    );
}

#[test]
fn runs_follow_each_other_in_the_figure_over_time() {
    let point = |at_s: f64, loaded| LatencyPoint { at_s, latency_us: 50.0, loaded };
    let run = |round| {
        let detail = result::RunDetail {
            runs_ms: vec![100.0],
            points: vec![point(0.5, false), point(1.5, true)],
            loads: vec![(1.0, 2.0)],
            ..Default::default()
        };
        QuickRun { lost: u64::from(round), detail, ..QuickRun::new(round, Conditions::default(), Vec::new()) }
    };
    let cell = |loaded, runs| {
        let mut cell = QuickCellRuns::new(QuickCell::Topic { loaded });
        cell.runs = runs;
        cell
    };
    let quiet = (0..2).map(|round| QuickRun { detail: Default::default(), ..run(round) }).collect();
    let background = Background::of(&[cell(false, quiet), cell(true, vec![run(0), run(1)])]).expect("figures");
    assert_eq!(background.points.iter().map(|point| point.at_s).collect::<Vec<_>>(), [0.5, 1.5, 2.6, 3.6]);
    assert_eq!(background.loads, [(1.0, 2.0), (3.1, 4.1)]);
    assert_eq!(background.transfers.count, 2);
    assert_eq!((background.quiet.latency.count, background.quiet.lost), (2, 1));
}
