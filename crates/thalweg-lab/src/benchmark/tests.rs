//! Files of benchmarks, what their runs say, and how that is shown.

use thalweg_lab_station::{Latencies, Rates, RoundTripFigures, SampleCosts, ThroughputFigures};
use thalweg_testing::pages::{check_html, check_offline};

use super::beside::{Received, Sent};
use super::contest::{Outcome, Outcomes, RunFile};
use super::study::given_up;
use super::*;
use crate::fixtures::{LabFolder, check_contains};
use crate::host::{Conditions, Environment};
use crate::quick;
use crate::station::Work;
use crate::statistics::Verdict;
use crate::study::{CellResult, Experiment, RunName, StudyRun};

/// A result of this benchmark in which each cell's time, or rate, is what `figure` says.
pub(crate) fn example(plan: &Benchmark, figure: impl Fn(&BenchmarkCell, u32) -> Option<f64>) -> BenchmarkResult {
    let mut cells: Vec<BenchmarkCellRuns> = plan.cells.iter().cloned().map(CellResult::new).collect();
    for round in 0..plan.runs {
        for (place, cell) in plan.cells.iter().enumerate() {
            let outcomes = match cell.deed.is_loaded() {
                Some(false) => topic(figure(cell, round).unwrap_or(1.0)),
                Some(true) => continue,
                None => Outcomes::Each(vec![outcome(cell, figure(cell, round))]),
            };
            let is_peer = plan.contender(&cell.contender).is_some_and(|one| one.peer.is_some());
            let file = RunFile {
                version: if is_peer { "1.2.3" } else { "" }.to_owned(),
                conditions: Conditions { seconds: 1.0, foreign_cpu: Some(0.0), ..Conditions::default() },
                ..run_file(&cell.work, &cell.contender, outcomes)
            };
            let runs = match &file.outcomes {
                Outcomes::Each(each) => each.iter().map(|one| BenchmarkRun::of(one, round, &file)).collect(),
                Outcomes::Beside(sent, received) => BenchmarkRun::beside((sent, received), round, &file).to_vec(),
            };
            cells.iter_mut().skip(place).zip(runs).for_each(|(cell, run)| cell.runs.push(run));
        }
    }
    BenchmarkResult::of(plan, (1_795_294_025, Environment::read()), &[], cells)
}

fn outcome(cell: &BenchmarkCell, figure: Option<f64>) -> Outcome {
    let Some(figure) = figure else { return Outcome::Missing("it said <nothing>".to_owned()) };
    match cell.deed {
        Deed::Stream { sample_bytes, .. } => {
            let costs = SampleCosts {
                cpu_s_per_million_writer: 1e6 / figure,
                cpu_s_per_million_reader: 2e6 / figure,
                ..SampleCosts::default()
            };
            Outcome::Stream(Box::new(ThroughputFigures {
                size: sample_bytes,
                work: Work::Decoded,
                method: String::new(),
                destination: String::new(),
                readers: 1,
                sent: 1_000,
                received: 1_000,
                lost: 0,
                rates: Rates { received_per_s: figure, ..Rates::default() },
                costs,
            }))
        }
        Deed::RoundTrip { sample_bytes } => {
            let latencies = Latencies::new();
            Outcome::RoundTrips(RoundTripFigures {
                p50_us: Some(figure),
                ..RoundTripFigures::of(sample_bytes, Work::Decoded, (&latencies, 0))
            })
        }
        _ => Outcome::BurstsMs(vec![figure, figure * 1.02, figure * 0.98]),
    }
}

/// A second without transfers and one with ten, in which latencies are `factor` times as long.
fn topic(factor: f64) -> Outcomes {
    let second = 1_000_000_000;
    let sample = |number: u64| {
        let (due, us) = (number * second / 100, if number < 100 { 50.0 } else { 50.0 * factor });
        (number, due, due + (us * 1e3) as u64 + number)
    };
    let transfers_ns: Vec<(u64, u64)> =
        (0..10).map(|place| (second + place * second / 10, second + (place + 1) * second / 10)).collect();
    let transfers_bytes = vec![12_500_000; transfers_ns.len()];
    let sent = Sent { origin_ns: 0, hurried: 200, transfers_ns, transfers_bytes };
    Outcomes::Beside(sent, Received { samples_ns: (0..200).map(sample).collect() })
}

const FILE: &str = r#"
schema = "thalweg.benchmark/1"
name = "both"
runs = 8

[link]
rate_mbit = 1000.0
loss_pct = 1.0

[[contender]]
name = "batch"
sending = { method = "batch", max_bytes = 60000, max_flush_delay_us = 1000 }

[[contender]]
name = "cyclone batch"
peer = "cyclone"
profile = "batch"

[[work]]
name = "streams"
task = { stream = { bytes = [256, 1024], seconds = 1.0 } }
expect = [
    { of = "batch", by = ["cyclone batch"], ratio = ">= 1.8" },
    { figure = "reader", of = "batch", by = ["cyclone batch"], ratio = "<= 0.3" },
]

[[work]]
name = "bursts"
place = "link"
contenders = ["batch"]
task = { bursts = { of = [[1, 5242880], [20, 262144], [7, 10]], each = 3 } }
"#;

#[test]
fn a_file_is_read_and_written_alike() {
    let plan = Benchmark::parse("both.toml", FILE).unwrap_or_else(|error| panic!("{error}"));
    let again = toml::to_string(&plan).expect("text");
    assert_eq!(Benchmark::parse("again", &again).unwrap_or_else(|error| panic!("{error}\n{again}")), plan);
    let names: Vec<String> = plan.cells.iter().map(ToString::to_string).collect();
    assert_eq!(names[3], "streams, cyclone batch, stream of 1 KiB");
    assert_eq!(plan.cells[3].baseline.as_deref(), Some("streams, batch, stream of 1 KiB"));
    assert_eq!(plan.cells[5].baseline.as_deref(), Some("bursts, 1 × 5 MiB"), "the same bytes");
    assert_eq!(plan.cells[6].baseline, None);
    let (alone, missing) = plan.clone().of_those_there(|_| false);
    assert_eq!((alone.cells.len(), missing.len(), alone.works[0].expectations.len()), (5, 1, 0));
    let (here, linked) = plan.clone().without_link();
    assert_eq!((here.cells.len(), linked), (4, vec!["bursts".to_owned()]));
    let builds = plan.against(std::path::Path::new("/before/thalweg"));
    assert_eq!(builds.cells[2].baseline.as_deref(), Some("streams, batch, other build, stream of 256 B"));
}

#[test]
fn what_is_no_benchmark_is_told_with_its_place() {
    let check = |from: &str, to: &str, expect: &[&str]| {
        assert!(FILE.contains(from));
        let error = Benchmark::parse("b.toml", &FILE.replace(from, to)).expect_err(to).to_string();
        check_contains(&error, expect);
    };
    check("runs = 8", "rums = 8", &["b.toml:4:1", "unknown field `rums`", "`runs`"]);
    check("runs = 8", "runs = 0", &["runs are 1 to 1000"]);
    check("contenders = [\"batch\"]", "contenders = [\"bach\"]", &["b.toml:30:15", "did you mean \"batch\"?"]);
    check("ratio = \">= 1.8\"", "ratio = \"1.8\"", &["b.toml:23", "a bound such as"]);
    check("peer = \"cyclone\"", "peer = \"cyclon\"", &["cyclon", "cyclone"]);
    check("profile = \"batch\"", "profile = \"batch\"\nwrap_bytes = 9", &["b.toml:", "are Thalweg's"]);
    check("place = \"link\"", "place = \"like\"", &["like", "`link`"]);
    check("[link]", "[[link]]", &["b.toml"]);
    check(
        "method = \"batch\", max_bytes = 60000, max_flush_delay_us = 1000",
        "method = \"asynchronous\", flow_controller = \"x\"",
        &["flow controller x"],
    );
    check(
        "{ stream = { bytes = [256, 1024], seconds = 1.0 } }",
        "{ beside = { transfer = [3, 9], quiet_s = 1.0, loaded_s = 1.0 } }",
        &["one topic at a time"],
    );
    check("each = 3", "each = 0", &["bursts need"]);
    check("rate_mbit = 1000.0", "rate_mbit = -1.0", &["rate_mbit of a link"]);
    check("[7, 10]", "[4000000000, 4000000000]", &["at most 10,000,000 samples"]);
    check("[256, 1024], seconds", "[256, 1024], readers = 100000, seconds", &["1 to 120 readers"]);
    check("name = \"bursts\"", "name = \"streams\"", &["two pieces of work"]);
    let unlinked = FILE.replace("[link]\nrate_mbit = 1000.0\nloss_pct = 1.0\n", "");
    assert!(Benchmark::parse("b", &unlinked).expect_err("no link").to_string().contains("add the table [link]"));
}

#[test]
fn a_ratio_is_judged_by_the_rounds_in_which_neither_was_disturbed() {
    let plan = Benchmark::parse("both.toml", &FILE.replace("runs = 8", "runs = 11")).expect("a benchmark");
    let ratios = |disturbed: u32| {
        let whole = example(&plan, |cell, _| Some(if cell.contender == "batch" { 4_000.0 } else { 1_000.0 }));
        let mut cells = whole.cells.clone();
        for cell in &mut cells {
            let from = if cell.cell.contender == "batch" { 0 } else { 2 };
            for run in cell.runs.iter_mut().filter(|run| (from..from + disturbed).contains(&run.round)) {
                run.conditions.stolen_cpu = Some(0.5);
                run.time_ms = run.time_ms.map(|time_ms| time_ms * 1e3);
            }
        }
        let judged = BenchmarkResult::of(&plan, (1_795_294_025, Environment::read()), &[], cells).ratios;
        judged.iter().map(|ratio| (ratio.quiet_rounds, ratio.holds)).collect::<Vec<_>>()
    };
    assert_eq!(ratios(1), [(9, Some(true)); 4]);
    assert_eq!(ratios(2), [(7, None); 4]);
}

#[test]
fn expected_ratios_hold_where_the_whole_interval_does() {
    let plan = Benchmark::parse("both.toml", FILE).expect("a benchmark");
    let judge = |ours: f64| {
        let result = example(&plan, |cell, round| {
            let steady = 1.0 + 0.01 * f64::from(round % 3);
            Some(steady * if cell.contender == "batch" { ours } else { 1_000.0 })
        });
        result.ratios.iter().map(|ratio| ratio.holds).collect::<Vec<_>>()
    };
    assert_eq!(judge(4_000.0), [Some(true); 4], "two sizes, two ratios");
    assert_eq!(judge(2_000.0), [Some(true), Some(true), Some(false), Some(false)]);
    let text = to_text(&example(&plan, |cell, _| Some(if cell.contender == "batch" { 2_000.0 } else { 1_000.0 })));
    assert!(text.contains("2 of 4 expected ratios hold, 2 do not, 0 are not judged."), "{text}");
    // Half of the rounds lie on either side of the bound.
    let straddling = example(&plan, |cell, round| {
        Some(if cell.contender == "batch" { 1_000.0 + 400.0 * f64::from(round % 4) } else { 1_000.0 })
    });
    let faster = &straddling.ratios[0];
    assert!(faster.interval.is_some_and(|one| one.low < 1.8 && one.high > 1.8) && faster.holds.is_none(), "{faster:?}");
    let few = Benchmark { runs: 5, ..plan.clone() };
    let result = example(&few, |_, _| Some(1_000.0));
    assert!(
        result.ratios.iter().all(|ratio| ratio.holds.is_none() && ratio.estimate == Some(1.0)),
        "five runs judge nothing"
    );
    let silent = example(&plan, |cell, _| (cell.contender == "batch").then_some(1_000.0));
    assert!(silent.ratios.iter().all(|ratio| ratio.best.is_none() && ratio.holds.is_none()));
    assert!(to_text(&silent).contains("stream of 256 B: it said <nothing>"), "{}", to_text(&silent));
}

#[test]
fn expected_ratios_are_one_family_and_name_rivals_without_figures() {
    let line = "{ of = \"batch\", by = [\"cyclone batch\"], ratio = \">= 1.8\" },";
    let figure = |cell: &BenchmarkCell, _| Some(if cell.contender == "batch" { 4_000.0 } else { 1_000.0 });
    let many = Benchmark::parse("many", &FILE.replace(line, &line.repeat(4))).expect("a benchmark");
    let judged = example(&many, figure).ratios;
    let told: Vec<_> = judged[..8].iter().map(|ratio| (ratio.holds, ratio.reason.as_deref())).collect();
    assert_eq!(told, [(None, Some("8 rounds; 8 comparisons need 9")); 8]);
    let zenoh = "[[contender]]\nname = \"zenoh\"\npeer = \"zenoh\"\n\n[[work]]\nname = \"streams\"";
    let three = FILE
        .replace("[[work]]\nname = \"streams\"", zenoh)
        .replace("by = [\"cyclone batch\"], ratio = \">=", "by = [\"cyclone batch\", \"zenoh\"], ratio = \">=");
    let plan = Benchmark::parse("three", &three).expect("a benchmark");
    let whole = example(&plan, |cell, round| match cell.contender.as_str() {
        "zenoh" if round == 3 => None,
        "zenoh" => Some(9_000.0),
        _ => figure(cell, round),
    });
    let first = &whole.ratios[0];
    assert_eq!((first.holds, first.best.as_deref()), (Some(true), Some("cyclone batch")));
    assert_eq!(first.without, ["zenoh"]);
    assert!(to_text(&whole).contains("holds; not in every run: zenoh"), "{}", to_text(&whole));
    // Zenoh's best runs were those of a machine that was not quiet.
    let mut cells = example(&Benchmark { runs: 20, ..plan.clone() }, figure).cells;
    for run in cells.iter_mut().filter(|cell| cell.cell.contender == "zenoh").flat_map(|cell| &mut cell.runs) {
        run.conditions.stolen_cpu = (run.round < 11).then_some(0.5);
        run.per_s = Some(if run.round < 11 { 9_000.0 } else { 500.0 });
    }
    let ratios = BenchmarkResult::of(&plan, (1_795_294_025, Environment::read()), &[], cells).ratios;
    assert_eq!((ratios[0].best.as_deref(), ratios[0].holds), (Some("cyclone batch"), Some(true)));
}

#[test]
fn no_ratio_holds_of_one_that_failed_in_a_quiet_run() {
    let plan = Benchmark::parse("both.toml", &FILE.replace("runs = 8", "runs = 11")).expect("a benchmark");
    let whole = example(&plan, |cell, round| match cell.contender.as_str() {
        "batch" if round == 3 || round == 7 => None,
        "batch" => Some(4_000.0),
        _ => Some(1_000.0),
    });
    let told: Vec<_> = whole.ratios.iter().map(|ratio| (ratio.holds, ratio.reason.as_deref())).collect();
    assert_eq!(told, [(None, Some("it has no figure in 2 of its runs")); 4]);
    assert!(whole.ratios[0].estimate.is_some_and(|ratio| (ratio - 4.0).abs() < 0.01), "{:?}", whole.ratios[0]);
    // What a disturbed run lacks tells nothing of it.
    let mut cells = whole.cells;
    for run in cells.iter_mut().flat_map(|cell| &mut cell.runs).filter(|run| [3, 7].contains(&run.round)) {
        run.conditions.stolen_cpu = Some(0.5);
    }
    let ratios = BenchmarkResult::of(&plan, (1_795_294_025, Environment::read()), &[], cells).ratios;
    assert_eq!(ratios.iter().map(|ratio| ratio.holds).collect::<Vec<_>>(), [Some(true); 4], "{ratios:?}");
}

#[test]
fn what_is_surely_faster_comes_before_what_may_be_faster_still() {
    let plan = Benchmark::parse("both.toml", FILE).expect("a benchmark");
    let result = example(&plan, |cell, round| {
        Some(match cell.deed.load().0 {
            1 => 100.0,
            20 => 30.0 + 50.0 * f64::from(round % 2),
            _ => 70.0,
        })
    });
    let bursts = result.of_work("bursts");
    let of = |samples| *bursts.iter().find(|cell| cell.cell.deed.load().0 == samples).expect("the cell");
    let fastest = |others: &[_]| {
        let (best, judged) = observations::fastest(&result, of(1), others).expect("one of them");
        (best.cell.deed.load().0, judged.verdict)
    };

    assert_eq!(fastest(&[of(20)]), (20, Verdict::Inconclusive));
    assert_eq!(fastest(&[of(20), of(7)]), (7, Verdict::Better));
}

#[test]
fn ratios_within_the_noise_of_their_bound_are_not_judged() {
    let plan = Benchmark::parse("both.toml", FILE).expect("a benchmark");
    // All rounds lie above the bound, by less than neighbouring runs of a cell differ.
    let result = example(&plan, |cell, round| {
        let drift = 1.0 + 0.2 * f64::from(round % 2);
        Some(drift * if cell.contender == "batch" { 1_850.0 } else { 1_000.0 })
    });
    assert_eq!(result.ratios[0].holds, None, "{:?}", result.ratios[0]);
    assert_eq!(result.ratios[0].reason.as_deref(), Some("runs of the same cell lie as far apart"));
}

/// A run of a contender on a quiet machine.
fn run_file(work: &str, contender: &str, outcomes: Outcomes) -> RunFile {
    let (work, contender, version) = (work.to_owned(), contender.to_owned(), String::new());
    let (conditions, remarks) = (Conditions::default(), Vec::new());
    RunFile { work, contender, version, conditions, remarks, frames_lost: 0, outcomes }
}

#[test]
fn lost_samples_are_counted_and_failures_are_none() {
    let plan = Benchmark::parse("both.toml", FILE).expect("a benchmark");
    let mut result = example(&plan, |_, _| Some(1_000.0));
    let file = run_file("", "", Outcomes::Each(Vec::new()));
    let moved = result.samples_moved();
    result.cells[0].runs[0] = BenchmarkRun::of(&Outcome::Lost { lost: 5_000, due: 20_000 }, 0, &file);
    result.cells[1].runs[0] = BenchmarkRun::of(&Outcome::Missing("it died".to_owned()), 0, &file);
    assert_eq!(result.samples_moved(), moved - 2 * 1_000 + 20_000);
    let lost = page(&result).tiles.into_iter().find(|tile| tile.figure.ends_with("lost")).expect("a tile");
    assert_eq!(lost.figure, "5,000 lost");
    let share = |place: usize| (BenchmarkRun::DONE.of)(&result.cells[place].runs[0]);
    assert_eq!((share(0), share(1), share(2)), (Some(0.75), Some(0.0), Some(1.0)));
    assert_eq!(result.cells[0].runs[0].missing.as_deref(), Some("5,000 of 20,000 samples got lost"));
}

#[test]
fn quick_compares_each_kind_with_the_first_like_it_and_says_what_it_saw() {
    let plan = quick(7, 80, 1.0);
    assert_eq!((plan.runs, plan.cells.len(), plan.comparisons()), (8, 9, 4));
    let baselines: Vec<Option<&str>> = plan.cells.iter().map(|cell| cell.baseline.as_deref()).collect();
    let (many, most) = (Some("High-frequency data, 3,000 × 256 B"), Some("High-frequency data, 10,000 × 256 B"));
    let (whole, quiet) = (Some("Large data, 1 × 5 MiB"), Some("Background data, 100 Hz without transfer"));
    assert_eq!(baselines, [None, many, None, most, None, whole, whole, None, quiet]);
    let result = example(&plan, |cell, _| match cell.deed {
        Deed::Burst { samples: 1, .. } => Some(5.0),
        Deed::Burst { samples, sample_bytes } => {
            Some(samples as f64 / 200.0 * if sample_bytes == 1_024 { 1.5 } else { 1.0 })
        }
        _ => Some(4.0),
    });
    let text = to_text(&result);
    check_contains(
        &text,
        &[
            "10,000 samples of 256 B were sent, received in order and answered in 50.0 ms on average: 200,000 samples/s",
            "4 times the bytes took 1.5 times as long: both the number of samples and their bytes count.",
            "Split into 5 × 1 MiB it took 99.5 % less time.",
            "80 transfers of 100 MiB in samples of 32 KiB took 100 ms each on average",
            "latency grew 4-fold",
            "All 1,600 samples of that topic arrived.",
            "std dev",
        ],
    );
    let html = page(&result).to_html();
    check_html(&html);
    check_offline(&html);
    assert!(html.len() < 1_000_000 && !html.contains("NaN"));
    let read: BenchmarkResult = serde_json::from_str(&serde_json::to_string(&result).expect("json")).expect("json");
    assert_eq!(page(&read).to_html().len(), html.len(), "the report can be drawn again");
}

#[test]
fn rivals_stand_in_the_order_of_their_means() {
    let text = FILE.replace("contenders = [\"batch\"]\ntask", "task");
    let plan = Benchmark::parse("both.toml", &text).expect("a benchmark");
    let result = example(&plan, |cell, _| Some(if cell.contender == "batch" { 3.0 } else { 4.5 }));
    let text = to_text(&result);
    let table = text.split("20 × 256 KiB, milliseconds\n").nth(1).expect("a table");
    let names: Vec<&str> =
        table.lines().skip(1).take(2).map(|line| line.trim_start().split("  ").next().unwrap_or("")).collect();
    assert_eq!(names, ["batch", "cyclone batch"], "{text}");
    assert!(
        text.contains(
            "the fastest peer was 1.5 to 1.5 times that of the fastest of Thalweg's, which was ahead in 3 of 3 kinds"
        ),
        "{text}"
    );
    assert!(page(&result).to_html().contains(", 1.2.3"), "a peer's version");
}

#[test]
fn a_run_that_holds_something_else_is_no_run_of_the_cell() {
    let folder = LabFolder::new("benchmark");
    let plan = quick(7, 80, 1.0);
    let check = |work: &str, outcomes| {
        let run = run_file(work, "Thalweg", outcomes);
        std::fs::write(folder.join("result.json"), serde_json::to_string(&run).expect("json")).expect("written");
        let loaded = plan.load(&folder, RunName { round: 0, cell: 4, attempt: 1 }).map(|runs| runs.len());
        (plan.check(&folder, 4), loaded.ok())
    };
    let times = |kinds: usize, ms: f64| Outcomes::Each((0..kinds).map(|_| Outcome::BurstsMs(vec![ms])).collect());
    let wrong = [
        check("Background data", times(3, 1.0)),
        check("Large data", times(2, 1.0)),
        check("Large data", times(3, 0.0)),
        check("Large data", topic(1.0)),
    ];
    let right = check("Large data", times(3, 1.0));
    assert!(wrong.iter().all(|(checked, _)| checked.is_err()), "{wrong:?}");
    assert_eq!(right, (Ok(()), Some(3)));
}

#[test]
fn a_slow_contender_has_one_run_and_loses_nothing_by_that() {
    let plan = Benchmark::parse("both.toml", FILE).expect("a benchmark");
    let result = example(&Benchmark { runs: 1, ..plan }, |cell, _| Some(if cell.has_rivals { 1.0 } else { 2_500.0 }));
    let slow = result.of_work("bursts")[0];
    let reason = given_up(slow, 1).expect("slow");
    assert!(reason.contains("more than 2 s") && given_up(result.of_work("streams")[0], 1).is_none(), "{reason}");
    assert_eq!(given_up(slow, 0), None, "another attempt at the same run measures it as well");
    let mut again = slow.clone();
    let file = run_file("", "", Outcomes::Each(Vec::new()));
    again.runs.push(BenchmarkRun::of(&Outcome::LeftOut(reason.clone()), 1, &file));
    assert_eq!((again.runs[1].sent, again.runs[1].lost), (0, 0));
    assert_eq!(given_up(&again, 2), Some(reason), "nor has it a third");
    again.runs[1] = BenchmarkRun::of(&Outcome::Missing("it died".to_owned()), 1, &file);
    assert_eq!((again.runs[1].lost, given_up(&again, 2).as_deref()), (0, Some("it died")));
    let mut streams = result.of_work("streams")[0].clone();
    streams.runs.push(BenchmarkRun::of(&Outcome::Missing("it died".to_owned()), 1, &file));
    assert_eq!(given_up(&streams, 2).as_deref(), Some("it died"));
    streams.runs[1].conditions.stolen_cpu = Some(0.5);
    assert_eq!(given_up(&streams, 2), None, "on a quiet machine it may live");
}
