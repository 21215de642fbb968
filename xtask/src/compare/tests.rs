//! Rows, ratios and verdicts, without running anything.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Request;
use super::contestant::{Entry, Who, figures};
use super::rows::{ComparisonRow, Place, PrintedFigure, RatioAim, RowGroup, What};
use super::table::{AimVerdict, Judged, Measured, median};

const OURS: Entry = Entry::thalweg("batch");
const CYCLONE: Entry = Entry::cyclone("batch");
const ZENOH: Entry = Entry::zenoh("tuned");

/// A stream with one aim, and the rates of each run of each entry.
fn stream(limit: RatioAim, rates: [&[f64]; 3]) -> Measured {
    let aim = super::rows::Aim { figure: PrintedFigure::Rate, ours: OURS, against: vec![CYCLONE, ZENOH], limit };
    let what = What::Throughput { readers: 1 };
    let row = ComparisonRow {
        what,
        size: 1024,
        place: Place::TwoCores,
        entries: vec![OURS, CYCLONE, ZENOH],
        aims: vec![aim],
    };
    let run = |rate: &f64| json!({"received_per_s": rate, "cpu_s_per_million_writer": 1e6 / rate});
    let runs = rates.map(|rates| rates.iter().map(run).collect::<Vec<Value>>()).to_vec();
    Measured { group: RowGroup::SmallStreams, row, runs }
}

#[track_caller]
fn check(limit: RatioAim, rates: [&[f64]; 3], best: Option<Entry>, ratio: Option<f64>, verdict: AimVerdict) {
    let measured = stream(limit, rates);
    assert_eq!(measured.judge(&measured.row.aims[0]), Judged { best, ratio, verdict }, "{rates:?}");
}

#[test]
fn the_median_of_an_even_number_lies_between_the_middle_two() {
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
    assert_eq!(median(&[9.0, 1.0, 3.0]), 3.0);
    assert!(median(&[]).is_nan());
}

#[test]
fn the_ratio_is_to_the_best_peer_that_has_a_figure() {
    let (least, most) = (RatioAim::AtLeast(1.5), RatioAim::AtMost(1.5));
    check(least, [&[30.0, 10.0, 20.0], &[10.0], &[8.0]], Some(CYCLONE), Some(2.0), AimVerdict::Reached);
    check(least, [&[20.0], &[8.0], &[16.0]], Some(ZENOH), Some(1.25), AimVerdict::Missed);
    check(most, [&[20.0], &[8.0], &[16.0]], Some(ZENOH), Some(1.25), AimVerdict::Reached);
    check(least, [&[15.0], &[10.0], &[]], Some(CYCLONE), Some(1.5), AimVerdict::Reached);
    check(least, [&[15.0], &[], &[]], None, None, AimVerdict::Open);
    check(least, [&[], &[10.0], &[]], Some(CYCLONE), None, AimVerdict::Open);
    check(least, [&[15.0], &[0.0], &[]], None, None, AimVerdict::Open);
}

#[test]
fn the_best_of_times_is_the_shortest() {
    let mut measured = stream(RatioAim::AtMost(0.5), [&[100.0], &[10.0], &[40.0]]);
    measured.row.aims[0].figure = PrintedFigure::WriterTime;
    let Judged { best, ratio, verdict } = measured.judge(&measured.row.aims[0]);
    assert_eq!((best, verdict), (Some(ZENOH), AimVerdict::Reached));
    assert!((ratio.expect("both have a figure") - 0.4).abs() < 1e-9);
}

#[test]
fn a_row_says_figures_ratio_aim_verdict_and_who_was_missing() {
    let text = stream(RatioAim::AtLeast(1.8), [&[1_846_000.0], &[436_000.0], &[]]).to_text();
    for part in ["stream of 1 KiB, two cores", "1,846,000 /s", "= 4.23", "≥ 1.80", "reached", "WITHOUT Zenoh tuned"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn raw_values_and_verdicts_are_kept_for_programs() {
    let value = stream(RatioAim::AtLeast(3.0), [&[20.0, 30.0], &[10.0], &[8.0]]).to_json();
    assert_eq!(value["entries"][0]["runs"][1]["received_per_s"], 30.0);
    assert_eq!(value["aims"][0]["verdict"], "MISSED");
    assert_eq!(value["aims"][0]["best"], "Cyclone DDS batch");
}

#[test]
fn no_two_rows_have_the_same_name() {
    let mut labels: Vec<String> = RowGroup::ALL.into_iter().flat_map(RowGroup::rows).map(|row| row.label()).collect();
    let count = labels.len();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), count);
}

#[test]
fn every_aim_compares_entries_of_its_row_and_names_ours() {
    for row in RowGroup::ALL.into_iter().flat_map(RowGroup::rows) {
        assert!(!row.aims.is_empty(), "{}", row.label());
        for aim in &row.aims {
            let sides = [&[aim.ours], aim.against.as_slice()].concat();
            assert!(sides.iter().all(|entry| row.entries.contains(entry)), "{}", row.label());
            assert!(aim.ours.who == Who::Thalweg && !aim.against.is_empty(), "{}", row.label());
            let RatioAim::AtLeast(_) = aim.limit else { continue };
            assert!(aim.figure.is_rate(), "{}: a time has an upper limit", row.label());
        }
    }
}

#[test]
fn each_row_has_the_aims_that_were_set_for_it() {
    #[track_caller]
    fn check(group: RowGroup, label: &str, expect: &[RatioAim]) {
        let row = group.rows().into_iter().find(|row| row.label() == label);
        let aims: Vec<RatioAim> = row.expect("there is such a row").aims.iter().map(|aim| aim.limit).collect();
        assert_eq!(aims, expect, "{label}");
    }
    let (least, most) = (RatioAim::AtLeast, RatioAim::AtMost);
    check(RowGroup::SmallStreams, "stream of 256 B, two cores", &[least(1.8), least(1.0), least(1.0)]);
    check(RowGroup::SmallStreams, "stream of 1 KiB, each sample sent at once, two cores", &[least(0.9), least(1.0)]);
    check(RowGroup::LargeStreams, "stream of 64 KiB, two cores", &[least(26.0 / 16.3)]);
    check(RowGroup::RoundTrips, "round trip of 64 B, busy, two cores", &[most(1.5)]);
    check(RowGroup::RoundTrips, "round trip of 1 MiB, listener, two cores", &[most(0.7), most(650.0 / 968.0)]);
    check(RowGroup::Bursts, "burst of 1 x 5 MB, two cores", &[most(2.4 / 3.5)]);
    check(RowGroup::Crowd, "stream of 1 KiB to 16 readers, writer on core 0", &[least(140.0 / 71.0)]);
    check(RowGroup::Veth, "stream of 1 KiB, link with an MTU of 1500", &[least(1.5 / 0.33)]);
}

#[test]
fn the_last_object_of_an_output_has_the_figures() {
    let text = "a remark\n{\"p50_us\":1.0}\n{\"p50_us\":17.5}\nanother remark\n";
    assert_eq!(figures(text).expect("an object")["p50_us"], 17.5);
    assert!(figures("{\"sent\":5,\"lost\":0}").is_ok());
    let reason = figures("{\"sent\":5,\"lost\":2}").expect_err("two got lost");
    assert!(reason.contains("2 samples of 5 lost"), "{reason}");
    assert!(figures("nothing").is_err());
    assert!(figures("{broken").is_err());
}

#[test]
fn a_run_without_its_figure_is_an_error() {
    assert_eq!(PrintedFigure::RoundTrip.of(&json!({"p50_us": 17.5})), Ok(17.5));
    for nothing in [json!({"p50_us": 0.0}), json!({"p50_us": null}), json!({})] {
        let reason = PrintedFigure::RoundTrip.of(&nothing).expect_err("no figure");
        assert!(reason.starts_with("no p50_us in {"), "{reason}");
    }
}

#[test]
fn a_command_line_names_groups_or_means_all() {
    let parse = |words: &[&str]| Request::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let all = Request { quick: false, groups: RowGroup::ALL.to_vec(), json: None };
    assert_eq!(parse(&[]), Ok(all));
    let some = Request { quick: true, groups: vec![RowGroup::Veth, RowGroup::Bursts], json: Some(PathBuf::from("f")) };
    assert_eq!(parse(&["veth", "--quick", "bursts", "--json", "f"]), Ok(some));
    let reason = parse(&["burst"]).expect_err("no such group");
    assert!(reason.contains("burst;") && reason.contains("round-trips"), "{reason}");
    assert!(parse(&["--json"]).is_err());
}
