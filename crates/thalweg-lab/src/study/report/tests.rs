use std::fs;
use std::path::Path;

use thalweg::trace::Point;

use super::*;
use crate::fixtures::{self, LabFolder, check_contains};
use crate::host::{Environment, SecondConditions};
use crate::scenario::Scenario;
use crate::statistics::Interval;
use crate::study::directory::{RunName, run_folder};
use crate::study::ledger::Ledger;
use crate::study::results::QuantileInterval;
use crate::study::{CellFailure, compare};
use crate::trial::{
    PublisherReport, RESULT, RawRecords, ReceivedSample, TrialConditions, TrialResult, WrittenSample, flow_folder,
    join, write_histograms,
};
use thalweg_testing::pages::{check_html, check_offline};

/// A directory with the runs of a scenario, made of arithmetic instead of measurements; removed at the end.
struct Runs {
    path: LabFolder,
    scenario: Scenario,
}

impl Runs {
    /// `runs` runs of each cell; subscriber k of run r gets sample n after 100 + 40·k + 3·r + n mod 7 µs, and never every 50th.
    fn new(name: &str, matrix: &str, runs: u32) -> Runs {
        let path = LabFolder::new(&format!("report-{name}"));
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"{name}\"\n[matrix]\n{matrix}\n[schedule]\nseconds = 2\nruns = {runs}\nwarm_up_s = 0\n[trace]\nlayers = true\nsample = 25\n"
        );
        let scenario = Scenario::parse(name, &text).unwrap_or_else(|error| panic!("{error}"));
        fs::write(path.join("scenario.toml"), text).expect("written");
        let out = Runs { path, scenario };
        for (cell, round) in (0..out.scenario.cells.len()).flat_map(|cell| (0..runs).map(move |round| (cell, round))) {
            out.write_run(RunName { round, cell: cell as u32, attempt: 1 });
        }
        out
    }

    fn write_run(&self, name: RunName) {
        let cell = &self.scenario.cells[name.cell as usize];
        let schedule = &self.scenario.schedule;
        let count = (2.0 * cell.rate_hz) as u64;
        let due = |writer: u32, number: u64| {
            ((number as f64 + f64::from(writer) / f64::from(cell.publishers)) * 1e9 / cell.rate_hz) as u64
        };
        let written = |writer| {
            let sample = |number| WrittenSample {
                number,
                written_ns: due(writer, number),
                returned_ns: due(writer, number) + 9_000,
            };
            (0..count).map(sample).collect()
        };
        let received = |reader: u32| {
            let arrival = |(writer, number): (u32, u64)| {
                let after_us = 100 + 40 * u64::from(reader) + 3 * u64::from(name.round) + number % 7;
                let written_ns = due(writer, number);
                ReceivedSample { writer, number, written_ns, received_ns: written_ns + after_us * 1_000 }
            };
            let pairs = cell
                .pairs()
                .filter(|(_, other)| *other == reader)
                .flat_map(|(writer, _)| (0..count).map(move |number| (writer, number)));
            pairs.filter(|(_, number)| number % 50 != 49).map(arrival).collect()
        };
        let raw = RawRecords {
            written: (0..cell.publishers).map(written).collect(),
            received: (0..cell.subscribers).map(received).collect(),
        };
        let joined = join(cell, schedule, &raw, &[PublisherReport::default()]);
        let leader = self.scenario.leader_of(name.cell as usize) as u32;
        let folder = flow_folder(&run_folder(&self.path, RunName { cell: leader, ..name }), cell);
        fs::create_dir_all(&folder).expect("made");
        write_histograms(&folder, &joined).expect("written");
        write_traces(&folder);
        let second =
            |at| SecondConditions { at_s: at, lasted_s: 1.0, foreign_cpu: Some(0.02), ..SecondConditions::default() };
        let result = TrialResult {
            schema: TrialResult::SCHEMA.to_owned(),
            cell: cell.clone(),
            started_unix_s: u64::from(name.round),
            seconds: 2.0,
            unsettled_s: 0.0,
            totals: joined.totals,
            fairness: joined.fairness,
            closed_loop: joined.closed_loop,
            arrivals: joined.arrivals,
            publishers: joined.publishers,
            pairs: joined.pairs,
            subscribers: Vec::new(),
            processes: Vec::new(),
            layers: serde_json::from_str("{\"udp.RcvbufErrors\": 12, \"udp.InDatagrams\": 700}").expect("counters"),
            hosts: Vec::new(),
            counted_s: Some(2.1),
            clocks: None,
            conditions: TrialConditions { seconds: vec![second(0.0), second(1.0)], ..TrialConditions::default() },
        };
        fs::write(folder.join(RESULT), serde_json::to_string(&result).expect("text")).expect("written");
    }

    /// What the runs amount to, with intervals that are cheap to compute.
    fn result(&self) -> StudyResult {
        let mut cells = Ledger::read(&self.path, &self.scenario).whole().expect("runs").to_vec();
        let interval = |quantile| {
            let us = Interval {
                estimate: 100.0 / (1.0 - quantile),
                low: 90.0 / (1.0 - quantile),
                high: 120.0 / (1.0 - quantile),
            };
            QuantileInterval { quantile, us }
        };
        cells.iter_mut().for_each(|cell| cell.intervals = [0.5, 0.9, 0.99, 0.999].map(interval).to_vec());
        StudyResult {
            fingerprint: "0123456789abcdef0123".to_owned(),
            differences: compare::within(&cells),
            cells,
            ..fixtures::study(&self.scenario, 0, |_, _| RunSummary::default())
        }
    }

    #[track_caller]
    fn page(&self) -> String {
        let html = to_html(&self.path, &self.result()).unwrap_or_else(|error| panic!("{error}"));
        check_html(&html);
        check_offline(&html);
        html
    }
}

/// Four samples that take 1 µs more from point to point, all the way.
fn write_traces(folder: &Path) {
    let (before, after) = Point::ALL.split_at(7);
    for (process, reader, points) in [("publisher-000", "", before), ("subscriber-000", "r", after)] {
        let mut text = "writer,reader,sequence,point,at_ns,thread\n".to_owned();
        for (sequence, point) in (1..5).flat_map(|sample| points.iter().map(move |point| (25 * sample, point))) {
            let place = Point::ALL.iter().position(|other| other == point).expect("a point") as u64;
            let at_ns = 1_000_000 * sequence + 500 * place * (place + 1);
            text.push_str(&format!("w,{reader},{sequence},{},{at_ns},1\n", point.name()));
        }
        fs::write(folder.join(format!("trace-{process}.csv")), text).expect("written");
    }
}

#[track_caller]
fn check_titles(html: &str, expect: &[&str]) {
    let titles: Vec<&str> = html.split("<h2>").skip(1).filter_map(|rest| rest.split("</h2>").next()).collect();
    assert_eq!(titles, expect);
}

#[test]
fn a_hundred_cells_make_a_page_below_one_megabyte() {
    let matrix = "payload_bytes = [1, 2, 3, 4, 5]\nrate_hz = [50, 51, 52, 53, 54]\nsubscribers = [3, 15]\ndestination = [\"unicast\", \"multicast\"]";
    let html = Runs::new("hundred", matrix, 6).page();
    let sizes: Vec<(&str, usize)> =
        html.split("<section id=\"").map(|part| (part.split('"').next().unwrap_or_default(), part.len())).collect();
    assert!(html.len() < 1_000_000, "{} bytes: {sizes:?}", html.len());
    check_titles(
        &html,
        &[
            "Verdicts",
            "Fates of the samples",
            "Response latency",
            "Distributions",
            "Offered load",
            "Number of endpoints",
            "Layer by layer",
            "Latency over time",
            "Fairness",
            "Where samples were lost",
            "How quiet the machine was",
            "Raw data",
            "This machine",
            "Method",
        ],
    );
    assert_eq!(html.matches("<figure>").count(), html.matches("<small>").count(), "every figure says what it rests on");
    assert!(
        html.contains("href=\"runs/round-005-cell-099-attempt-1/\"")
            && html.contains("30 cells whose latency varies most")
    );
}

#[test]
fn panels_that_have_nothing_to_show_are_left_out() {
    let runs = Runs::new("single", "payload_bytes = 100\nrate_hz = 50", 1);
    let html = runs.page();
    assert!(html.contains("Not judged: the scenario has no expectations"));
    for title in ["Verdicts", "Offered load", "Number of endpoints", "Fairness"] {
        assert!(!html.contains(&format!("<h2>{title}")), "{title} of one cell with one pair");
    }
}

#[test]
fn figures_show_what_the_runs_hold() {
    let runs = Runs::new("figures", "payload_bytes = 100\nrate_hz = 50\nsubscribers = [2, 4]", 8);
    let html = runs.page();
    check_contains(
        &html,
        &[
            // Two of every hundred samples are lost, and the socket is the only layer that lost something.
            "96 samples that were written never arrived; the layer that lost most is “socket in” with 192",
            // Of 1,600 samples that were due 2 % never arrived: the 99th percentile is infinite.
            "<td>∞</td>",
            "0 of 32 seconds were disturbed",
            "J 1.00",
            // The last step is the longest one: 13 µs.
            "most of the time goes into “wake up and take”, 13.0 µs in the median",
            "1–N 100 B 50 Hz",
            // Eight rounds are enough to tell two cells apart; a quantity that no run has is not judged.
            "<p class=\"headline\">delivered, share of due: 1 equivalent</p>",
            "<p class=\"headline\">response p50, µs: 1 worse</p>",
            "<p class=\"headline\">Not judged: CPU</p>",
            "n = 4,704 samples in 16 runs",
        ],
    );
    // A band around the own curve in both pictures, the baseline in the second alone.
    let (_, distributions) = html.split_once("<h2>Distributions").expect("a section");
    let (distributions, _) = distributions.split_once("</section>").expect("an end");
    assert_eq!((distributions.matches("area c0").count(), distributions.matches("curve c6").count()), (2, 1));
}

#[test]
fn what_was_counted_on_the_machine_counts_once_for_all_flows_of_a_run() {
    let flow = |name: &str| format!("\n[[flow]]\nname = \"{name}\"\npayload_bytes = 100\nrate_hz = 50\n");
    let runs = Runs::new("flows", &(flow("one") + &flow("other")), 2);
    let html = runs.page();
    check_contains(
        &html,
        &[
            "the layer that lost most is “socket in” with 24",
            "0 of 4 seconds were disturbed",
            "2 of 2",
            "2 cells · 2 runs",
            "in 2 runs",
        ],
    );
    let mut result = runs.result();
    result.cells.iter_mut().flat_map(|cell| &mut cell.runs).for_each(|run| run.contaminated = run.round == 1);
    assert_eq!(result.contaminated(), 1);
    assert!(disturbances([&result].into_iter()).iter().any(|text| text.contains("In 1 of 2 runs")));
}

#[test]
fn clocks_that_are_not_known_well_enough_are_told() {
    let runs = Runs::new("clocks", "payload_bytes = [100, 200]\nrate_hz = 50", 2);
    let mut result = runs.result();
    // The median over the runs is 104.5 µs.
    for (cell, bound_us) in result.cells.iter_mut().zip([10.0, 11.0]) {
        cell.runs.iter_mut().for_each(|run| run.clock_bound_us = Some(bound_us));
    }
    result.clock_bound_us = Some(11.0);
    result.hosts = vec![HostEnvironment { name: "lab2:7300".to_owned(), environment: Environment::read() }];
    let html = to_html(&runs.path, &result).unwrap_or_else(|error| panic!("{error}"));
    assert!(html.contains("± 11.0 µs in the worst run, ± 10.5 µs in the median run"));
    assert!(html.contains("lab2:7300: CPU"));
    assert_eq!(html.matches("is not known that well").count(), 1, "the bound of the first cell is small enough");
    assert!(html.contains("1–1 200 B 50 Hz auto thalweg is not known that well"));
    assert!(html.contains("± 11.0 µs open, against a median of"));
}

#[test]
fn the_tables_need_no_raw_data_and_put_the_same_data_side_by_side() {
    let matrix =
        "payload_bytes = 100\nrate_hz = [50, 100]\nsubscribers = 2\ndestination = [\"unicast\", \"multicast\"]";
    let mut result = Runs::new("tables", matrix, 8).result();
    for run in &mut result.cells[0].runs {
        run.totals.in_time -= 20;
        run.totals.late += 20;
    }
    result.cells[1].runs[0].contaminated = true;
    let failed = result.cells.pop().expect("four cells");
    let reason = "its program\nwent away".to_owned();
    result.failures = vec![CellFailure { cell: 3, name: failed.name.clone(), round: 1, reason }];
    result.notes = vec!["left out: much".to_owned()];
    let document = page(&result).to_markdown("tables", None);
    let (_, slow) = document.text.split_once("*1–2 100 B 50 Hz*").expect("a table");
    let (slow, fast) = slow.split_once("*1–2 100 B 100 Hz*").expect("another");
    let names: Vec<&str> = slow.lines().filter_map(|line| line.strip_prefix("| thalweg ")?.split(' ').next()).collect();
    assert_eq!(names, ["multicast", "unicast"], "the best stands first: {slow}");
    assert!(slow.contains("| 98.0 % |") && slow.contains("| 88.0 % | 10.0 % | 2.00 % | 0 |"), "{slow}");
    assert!(slow.contains("| 1.00 equivalent |"), "{slow}");
    assert!(!fast.contains("by baseline"), "the baseline moves other data: {fast}");
    check_contains(
        &document.text,
        &[
            "> **In 1 of 24 runs the machine was not quiet",
            &format!("| {} | 2 | its program went away |", failed.name),
            "- left out: much",
            "thalweg lab run scenario.toml --seed 1",
            "- cores: ",
        ],
    );
    assert!(document.figures.is_empty());
}
