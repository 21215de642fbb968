use std::time::Duration;

use serde_json::{Value, json};

use super::end::{EndRecord, ProcessRole};
use super::figures::frame_windows;
use super::presentation::places::Place;
use super::run::HdtvRecord;
use super::*;
use crate::host::{Conditions, Environment, Layers};
use crate::length::Length;
use crate::preset::{ContenderFacts, PresetPlan, page, to_text};
use crate::study::CellResult;
use thalweg_testing::pages::{check_html, check_offline};

fn site() -> HdtvSite {
    HdtvSite { cpus: 2, has_namespaces: true, nics: Vec::new(), compiler: Some("cc 12.2".to_owned()) }
}

fn plan(form: Length) -> Paper3Plan {
    Paper3Plan::new(form, 1, site())
}

#[test]
fn both_forms_fit_their_time_and_have_every_part() {
    // Eight of the 117 minutes are left for runs that are repeated.
    for (form, most) in [(Length::Usual, 109 * 60), (Length::Quick, 480)] {
        let plan = plan(form);
        let cells = plan.cells();
        let all: f64 = cells.iter().map(|cell| f64::from(plan.runs_of(cell)) * plan.seconds_of(cell)).sum();
        assert!(all < f64::from(most), "{form:?}: {} min", all / 60.0);
        assert!(plan.terms().budget <= Some(Duration::from_secs(120 * 60)));
        for (part, name) in HdtvPart::ALL {
            assert!(cells.iter().any(|cell| cell.part == part), "{part:?}");
            assert_eq!((HdtvPart::named(name), part.name()), (Some(part), name));
        }
        let names: std::collections::BTreeSet<String> = cells.iter().map(HdtvCell::to_string).collect();
        assert_eq!(names.len(), cells.len(), "each cell has a name of its own");
    }
}

#[test]
fn the_usual_plan_has_the_papers_steps() {
    let cells = plan(Length::Usual).cells();
    let of = |part| cells.iter().filter(move |cell| cell.part == part);
    let mtus: std::collections::BTreeSet<u32> = of(HdtvPart::Mtu).map(|cell| cell.link.mtu_bytes).collect();
    assert_eq!((mtus.first(), mtus.last(), mtus.contains(&8_160)), (Some(&1_500), Some(&9_180), true));
    for us in [50, 100, 200, 400, 800] {
        let lengths: Vec<bool> = of(HdtvPart::Moderation)
            .filter(|cell| cell.link.moderation == ReceiveModeration::Gathered(us))
            .map(HdtvCell::is_long)
            .collect();
        assert_eq!(lengths, [false, true], "{us} µs in seconds and in five minutes");
    }
}

fn cell(part: HdtvPart, label: &str) -> HdtvCell {
    let cells = plan(Length::Usual).cells();
    cells.into_iter().find(|cell| cell.part == part && cell.label == label).unwrap_or_else(|| panic!("no {label}"))
}

fn record(cell: HdtvCell, said: [Value; 2]) -> HdtvRecord {
    let [sent, received] = said;
    let used = vec![(0.0, 0.0), (1.0, 0.5), (2.0, 0.7), (3.0, 0.9)];
    let end = |role, said| EndRecord { role, said: Some(said), frames: Vec::new(), used: used.clone() };
    HdtvRecord {
        cell,
        round: 0,
        origin_ns: 0,
        ends: vec![end(ProcessRole::PictureSender, sent), end(ProcessRole::PictureReceiver, received)],
        layers: [Layers::default(), Layers::default()],
        relay: Layers::default(),
        refused: Vec::new(),
        conditions: Conditions { seconds: 10.0, ..Conditions::default() },
    }
}

/// A picture of which so many of 100,000 packets were lost, with this schedule jitter and frame rate.
fn picture(part: HdtvPart, label: &str, lost: u64, jitter: f64, fps: f64) -> HdtvCellRuns {
    let cell = cell(part, label);
    let sent = json!({ "rtt_us": 200.0, "receiver": { "jitter_rfc3550_us": 57.0 }, "packets_sent": 173_000, "frames_sent": 300 });
    let received = json!({
        "frames_complete": 300, "frames_concealed": 0, "fps_mean": fps, "fps_sd": 0.1, "jitter_schedule_us": jitter,
        "law": { "received": 100_000 - lost, "lost": lost, "recovered": 0, "outstanding": 0, "expected": 100_000 },
        "layers": { "rxq_ovfl": lost },
    });
    let record = record(cell.clone(), [sent, received]);
    record.check().expect("its counts add up");
    let run = record.figures().expect("figures");
    CellResult { runs: vec![run], ..CellResult::new(cell) }
}

fn result(cells: Vec<HdtvCellRuns>) -> Paper3Result {
    Paper3Result {
        schema: Paper3Result::SCHEMA.to_owned(),
        plan: plan(Length::Usual),
        started_unix_s: 0,
        environment: Environment::read(),
        conditions: Conditions::default(),
        contenders: vec![ContenderFacts { name: "Thalweg".to_owned(), version: "0".to_owned() }],
        missing: Vec::new(),
        left_out: vec!["something".to_owned()],
        cells,
        differences: Vec::new(),
        failures: Vec::new(),
    }
}

#[test]
fn a_picture_has_the_figures_that_its_ends_told() {
    let run = picture(HdtvPart::Ladder, "untuned, alone", 4_000, 10.0, 29.97).runs.remove(0);
    let shown = run.picture.expect("a picture");
    assert_eq!((shown.lost, shown.frames_due, shown.frames_complete), (0.04, 300, Some(300)));
    assert_eq!((shown.rtt_us, shown.report_jitter_us, shown.buffer_drops), (Some(200.0), Some(57.0), 4_000));
    assert!(shown.spacing_us.is_some_and(|us| (57.8 - us).abs() < 0.2), "{shown:?}");
    let load = run.receiver_load.expect("a load");
    assert_eq!(load.windows, 2);
    assert!((load.mean - 0.2).abs() < 1e-9, "the first second does not count: {load:?}");
}

#[test]
fn counts_that_do_not_add_up_are_refused() {
    let received = json!({
        "frames_complete": 1, "frames_concealed": 0, "layers": { "rxq_ovfl": 0 },
        "law": { "received": 90, "lost": 5, "recovered": 0, "outstanding": 0, "expected": 100 },
    });
    let record = record(cell(HdtvPart::Ladder, "untuned, alone"), [json!({}), received]);
    assert_eq!(record.check(), Err("90 received and 5 lost are not the 100 that were sent".to_owned()));
}

#[test]
fn what_was_sent_again_counts_as_come() {
    let told = |recovered: u64| {
        let received = json!({
            "frames_complete": 1, "frames_concealed": 0, "layers": { "rxq_ovfl": 0 },
            "law": { "received": 90, "lost": 5, "recovered": recovered, "outstanding": 0, "expected": 100 },
        });
        record(cell(HdtvPart::Ladder, "untuned, alone"), [json!({}), received]).check()
    };
    assert_eq!(told(5), Ok(()));
    assert_eq!(told(4), Err("90 received, 4 recovered and 5 lost are not the 100 that were sent".to_owned()));
}

/// A cell with nine runs of which each uses so much of a processor at each end and has this figure.
fn bounded(part: HdtvPart, label: &str, load: f64, figures: PictureFigures) -> HdtvCellRuns {
    let load = Some(EndLoad { mean: load, sd: None, windows: 8 });
    let run = |round| HdtvRun {
        round,
        picture: Some(figures),
        sender_load: load,
        receiver_load: load,
        conditions: Conditions { seconds: 10.0, ..Conditions::default() },
        ..HdtvRun::default()
    };
    CellResult { runs: (0..9).map(run).collect(), ..CellResult::new(cell(part, label)) }
}

#[test]
fn bounds_are_kept_where_the_runs_surely_lie_below_them() {
    let whole = PictureFigures {
        frames_due: 240,
        frames_complete: Some(240),
        latency_p99_us: Some(33_000.0),
        ..PictureFigures::default()
    };
    let half = PictureFigures { frames_complete: Some(239), lost: 0.01, ..whole };
    let own = |load, figures| bounded(HdtvPart::Peers, "Thalweg, RTP, MTU 1500", load, figures);
    let told = |cells: Vec<HdtvCellRuns>| -> Vec<(String, Option<bool>)> {
        bounds::all(&result(cells)).into_iter().map(|bound| (bound.what, bound.is_kept)).collect()
    };
    let of = |all: &[(String, Option<bool>)], what: &str| {
        all.iter().find(|(known, _)| known == what).unwrap_or_else(|| panic!("{what} in {all:?}")).1
    };
    let lan = |load, figures| bounded(HdtvPart::Bounds, "batching lan, MTU 1500", load, figures);
    let cpu = "CPU of both ends, MTU 1500, batching lan";
    assert_eq!(told(vec![lan(0.1, whole)]), [(cpu.to_owned(), Some(true))], "what has no runs has no row");
    assert_eq!(of(&told(vec![lan(0.2, whole)]), cpu), Some(false));
    let jumbo = |load| bounded(HdtvPart::Bounds, "batching lan, MTU 9000", load, whole);
    let cpu_of_jumbo = "CPU of both ends, MTU 9000, batching lan";
    assert_eq!(of(&told(vec![jumbo(0.07)]), cpu_of_jumbo), Some(true));
    assert_eq!(of(&told(vec![jumbo(0.08), lan(0.07, whole)]), cpu_of_jumbo), Some(false), "it is not the other MTU's");
    let few = lan(0.1, whole);
    let all = told(vec![HdtvCellRuns { runs: few.runs[..3].to_vec(), ..few }]);
    assert_eq!(of(&all, cpu), None, "three runs tell nothing");
    let late = "first to last packet of a frame p99 by a frame time, MTU 1500";
    let all = told(vec![own(0.1, whole)]);
    assert_eq!((of(&all, "alone, MTU 1500"), of(&all, late)), (Some(true), Some(true)));
    assert_eq!(of(&told(vec![own(0.1, half)]), "alone, MTU 1500"), Some(false));

    let ratio = "CPU of both ends by GStreamer's, MTU 1500, batching lan";
    let theirs = |load| bounded(HdtvPart::Peers, "GStreamer, RTP, MTU 1500", load, whole);
    assert_eq!(of(&told(vec![lan(0.1, whole), theirs(0.5)]), ratio), Some(true));
    assert_eq!(of(&told(vec![lan(0.1, whole), theirs(0.3)]), ratio), Some(false));

    let repaired = |complete| {
        let figures =
            PictureFigures { frames_complete: Some(complete), frames_due: 241, frames_before_start: 1, ..whole };
        let cell = bounded(HdtvPart::Bounds, "5 % of the frames lost, repaired, MTU 9000", 0.1, figures);
        let text = to_text(&result(vec![cell]));
        assert!(text.contains("Of 1 bounds: 1 kept") == (complete == 240), "{text}");
        text
    };
    assert!(
        repaired(240).contains("at least 99.9 %")
            && repaired(239).contains("Not kept: frames whole from the first one shown on, 5 %")
    );
}

#[test]
fn frames_that_a_publisher_never_sent_are_named() {
    let figures = PictureFigures {
        frames_due: 240,
        frames_complete: Some(238),
        frames_late: 1,
        frames_passed_over: 1,
        ..PictureFigures::default()
    };
    let label = "Thalweg, topic, reliable, MTU 9000, 1 % of the frames lost";
    let bounds = bounds::all(&result(vec![bounded(HdtvPart::Topics, label, 0.1, figures)]));
    let whole = bounds.iter().find(|bound| bound.what.starts_with("frames whole as a reliable topic")).expect("a row");
    let why = "; not sent: 9 because the publisher came late, 9 because others were still on their way";
    assert_eq!((whole.here.as_str(), whole.is_kept), (format!("99.2 %{why}").as_str(), Some(false)));
}

/// Counters by name.
fn counters(all: &[(&str, u64)]) -> Layers {
    all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// A picture of 1,000 packets, 50 of which the relay lost, 2 of them before the first or after the last one that passed.
fn relayed(received: u64, lost: u64, counted: &[(&str, u64)]) -> HdtvRecord {
    let sent = json!({ "packets_sent": 1_000, "frames_sent": 2 });
    let told = json!({
        "frames_complete": 2, "frames_concealed": 0, "layers": { "rxq_ovfl": 0 },
        "law": { "received": received, "lost": lost, "recovered": 40, "outstanding": 0, "expected": received + lost + 40 },
    });
    let mut record = record(cell(HdtvPart::Bounds, "5 % of the frames lost, repaired, MTU 9000"), [sent, told]);
    let of = |name: &str| format!("relay.host0-host1.{name}");
    let own =
        [("stream_seen", 1_000), ("stream_dropped", 50), ("stream_gaps", 48)].map(|(name, count)| (of(name), count));
    let mut all: Layers = own.into_iter().collect();
    all = all.plus(&counters(counted));
    record.relay = all;
    record
}

#[test]
fn the_receiver_counts_what_the_relay_let_pass_and_lost() {
    let check = |received, lost, counted: &[(&str, u64)]| relayed(received, lost, counted).check();
    assert_eq!(check(950, 8, &[]), Ok(()));
    assert_eq!(check(949, 9, &[]), Err("the receiver counts 949 packets of 950 that the relay let pass".to_owned()));
    assert_eq!(check(951, 8, &[]), Err("the receiver counts 951 packets of 950 that the relay let pass".to_owned()));
    // A repetition of the last packet may tell of two more, lost behind the last one that passed.
    assert_eq!((check(950, 9, &[]), check(950, 10, &[])), (Ok(()), Ok(())));
    let of_48 = |missed| Err(format!("the receiver missed {missed} packets of 48 that the relay lost in between"));
    assert_eq!((check(950, 7, &[]), check(950, 11, &[])), (of_48(47), of_48(51)));
    let unrepaired = |lost| {
        let mut record = relayed(950, lost, &[]);
        let HdtvTraffic::Picture(case) = &mut record.cell.traffic else { panic!("{:?}", record.cell) };
        case.is_repaired = false;
        record.check()
    };
    assert_eq!((unrepaired(8), unrepaired(9)), (Ok(()), of_48(49)));
    // What got lost behind the relay's chance is not known to it.
    let refused = [("relay.host0-host1.refused", 1)];
    assert_eq!(check(949, 9, &refused), Ok(()));
    assert!(check(951, 8, &refused).is_err(), "and yet nothing comes from nowhere");
    let more = [("relay.host0-host1.stream_seen", 1)];
    assert_eq!(check(951, 8, &more), Err("the relay saw 1001 packets of 1000 that were sent".to_owned()));
    // Nor is what it handed on in pieces that the receiver's device has not all seen.
    let mut record = relayed(949, 9, &[("relay.host0-host1.messages", 30)]);
    record.layers[1] = counters(&[("device.eth0.rx_packets", 30)]);
    assert!(record.check().is_err(), "all came");
    record.layers[1] = counters(&[("device.eth0.rx_packets", 29)]);
    assert_eq!(record.check(), Ok(()));
    let without = HdtvRecord { relay: Layers::default(), ..relayed(1, 2, &[]) };
    assert_eq!((without.truth(), without.check()), (None, Ok(())), "an older record");
}

#[test]
fn a_record_without_counters_of_the_relay_is_read() {
    let record = relayed(950, 8, &[]);
    let mut text = serde_json::to_value(&record).expect("JSON");
    assert_eq!(serde_json::from_value::<HdtvRecord>(text.clone()).expect("a record"), record);
    text.as_object_mut().expect("an object").remove("relay").expect("counters");
    let older: HdtvRecord = serde_json::from_value(text).expect("an older record");
    assert_eq!(older.relay, Layers::default());
}

#[test]
fn counters_that_equal_the_relays_are_a_bound_of_all_runs_that_tell() {
    let told = |records: &[HdtvRecord]| {
        let runs = records.iter().map(|record| record.figures().expect("figures")).collect();
        let cell = HdtvCellRuns { runs, ..CellResult::new(records[0].cell.clone()) };
        let bounds = bounds::all(&result(vec![cell]));
        let bound = bounds.into_iter().find(|bound| bound.what.starts_with("counters equal")).expect("a bound");
        (bound.is_kept, bound.runs, bound.here)
    };
    let (good, bad) = (relayed(950, 8, &[]), relayed(949, 9, &[]));
    let blind = relayed(949, 9, &[("relay.host0-host1.refused", 1)]);
    let here = "1,900 received of 1,900 passed; 96 missed, 96 lost in between, 100 in all; 2 of 3 runs tell";
    assert_eq!(told(&[good.clone(), good.clone(), blind.clone()]), (Some(true), 2, here.to_owned()));
    assert_eq!(told(&[good, bad]).0, Some(false));
    assert_eq!(told(&[blind]).0, None);
}

#[test]
fn a_topics_latency_is_that_of_all_but_one_in_a_hundred_of_its_frames() {
    let latencies: Vec<f64> = (1..=200_u32).rev().map(|number| f64::from(number) * 100.0).collect();
    let received = json!({
        "frames_expected": 200, "frames_complete": 200, "samples_expected": 200, "samples_lost": 0,
        "shown_at_ns": [1_u64, 2], "latency_us": latencies,
    });
    let shown = |received: Value| {
        let record = record(cell(HdtvPart::Topics, "Thalweg, topic, reliable, MTU 9000"), [json!({}), received]);
        record.figures().expect("figures").picture.expect("a picture").latency_p99_us
    };
    assert_eq!(shown(received.clone()), Some(19_800.0));
    let mut older = received;
    older.as_object_mut().expect("an object").remove("latency_us");
    assert_eq!(shown(older), None, "older records have none");
}

#[test]
fn why_frames_of_a_topic_were_not_sent_is_what_its_publisher_told() {
    let left_out = |sent: Value| {
        let received = json!({
            "frames_expected": 238, "frames_complete": 238, "samples_expected": 238, "samples_lost": 0, "shown_at_ns": [1_u64],
        });
        let record = record(cell(HdtvPart::Topics, "Thalweg, topic, reliable, MTU 9000"), [sent, received]);
        let picture = record.figures().expect("figures").picture.expect("a picture");
        (picture.frames_late, picture.frames_passed_over)
    };
    assert_eq!(left_out(json!({ "frames_late": 3, "frames_passed_over": 1 })), (3, 1));
    assert_eq!(left_out(json!({ "frames_passed_over": 4 })), (0, 0), "an older record");
}

#[test]
fn each_row_of_the_paper_has_a_place_that_the_plan_makes() {
    let cells = plan(Length::Usual).cells();
    let rows = presentation::places::ROWS;
    for (what, place, note) in rows {
        let (part, label) = match place {
            Place::Part(part) => (part, None),
            Place::Cell(part, label) => (part, Some(label)),
            Place::LeftOut | Place::Chosen => {
                assert!(!note.is_empty(), "{what}: why?");
                continue;
            }
        };
        let is_meant = |cell: &&HdtvCell| cell.part == part && label.is_none_or(|label| cell.label == label);
        assert!(cells.iter().any(|cell| is_meant(&cell)), "{what}: no {part:?} {label:?}");
    }
    let numbered = |kind: &str, all: &[u32]| {
        all.iter().all(|number| rows.iter().any(|row| row.0.starts_with(&format!("{kind} {number}"))))
    };
    assert!(numbered("Figure", &[2, 3, 4, 5, 6, 7]) && numbered("Table", &[1, 2]));
    let text = to_text(&result(vec![picture(HdtvPart::Ladder, "untuned, alone", 0, 1.0, 29.97)]));
    assert!(text.contains("moderation: gathered for 100 µs, five minutes") && text.contains("UltraGrid"), "{text}");
}

#[test]
fn a_compiler_computes_beside_the_long_picture_where_there_is_one() {
    let told = |compiler: Option<&str>| {
        let site = HdtvSite { compiler: compiler.map(str::to_owned), ..site() };
        let plan = Paper3Plan::new(Length::Usual, 1, site);
        let long =
            plan.cells().into_iter().find(|cell| cell.part == HdtvPart::Bounds && cell.is_long()).expect("a cell");
        let beside = long.traffic.picture().expect("a picture").beside;
        assert!(long.label.contains(&format!("beside {beside}")), "{long}");
        (beside, plan.left_out().iter().any(|what| what.starts_with("a compiler")))
    };
    assert_eq!(told(Some("cc 12.2")), (OtherWork::Compiler, false));
    assert_eq!(told(None), (OtherWork::EachCpu, true));
}

#[test]
fn the_load_of_all_steps_stands_beside_the_papers() {
    let untuned = picture(HdtvPart::Ladder, "untuned, five minutes", 10, 1.0, 29.97);
    let mut tuned = picture(HdtvPart::Moderation, "gathered for 100 µs, five minutes", 0, 1.0, 29.97);
    tuned.runs[0].receiver_load.as_mut().expect("a load").mean = 0.15;
    let text = to_text(&result(vec![untuned, tuned]));
    assert!(text.contains("with all steps 15.0 %, -5.0 points; the paper's is 1.2 points lower"), "{text}");
}

#[test]
fn the_lowest_round_trip_stands_beside_figure_6() {
    let told = |timers: [&str; 2]| {
        let mut cells: Vec<_> =
            timers.iter().map(|label| picture(HdtvPart::Moderation, label, 0, 1.0, 29.97)).collect();
        let shown = cells[0].runs[0].picture.as_mut().expect("a picture");
        shown.rtt_us = Some(100.0);
        to_text(&result(cells))
    };
    let text = told(["gathered for 200 µs", "gathered for 800 µs"]);
    assert!(text.contains("That is as in the paper's Figure 6"), "{text}");
    assert!(told(["gathered for 800 µs", "gathered for 200 µs"]).contains("That is unlike in the paper's Figure 6"));
}

#[test]
fn sentences_follow_the_figures() {
    let told = |untuned, buffer| {
        let cells = vec![
            picture(HdtvPart::Ladder, "untuned, alone", untuned, 1.0, 29.97),
            picture(HdtvPart::Ladder, "+ buffer, alone", buffer, 1.0, 29.97),
        ];
        to_text(&result(cells))
    };
    assert!(told(4_000, 0).contains("Packets lost alone: untuned 4.00 %, + buffer 0 %."), "{}", told(4_000, 0));
    assert!(told(4_000, 0).contains("a larger one ends it, as the paper says"));
    assert!(told(4_000, 7).contains("against the paper's claim"));
    assert!(told(0, 0).contains("Nothing is lost alone, whatever the buffer"));

    let timers = |last: f64, fps: f64| {
        let part = HdtvPart::Moderation;
        let cells = vec![
            picture(part, "as it is", 0, 20.0, 29.97),
            picture(part, "relay, at once", 0, 20.0, 29.97),
            picture(part, "gathered for 800 µs", 0, last, fps),
        ];
        to_text(&result(cells))
    };
    let text = timers(300.0, 29.96);
    assert!(text.contains("it grew: 20.0 µs with frames gathered for 0 µs, 300 µs for 800 µs"), "{text}");
    assert!(text.contains("independent of the moderation, as the paper says: 29.96 to 29.97"), "{text}");
    assert!(
        text.contains("Here it was 57.0 µs for packets 57.9 µs apart; against an even schedule it was 20.0 µs"),
        "{text}"
    );
    assert!(timers(5.0, 25.0).contains("it fell: 20.0 µs"));
    assert!(timers(5.0, 25.0).contains("The frame rate depends on the moderation: 25.00 to 29.97"));
    assert!(text.contains("79.00 ± 0.48") && text.contains("29.97 ± 0.08"), "the paper's tables: {text}");
    assert!(text.contains("at a round trip of 103 ms") && text.contains("make that 2.74"), "{text}");
}

#[test]
fn a_single_run_that_lost_packets_denies_that_nothing_is_lost() {
    let of = |label: &str, lost: [u64; 3]| {
        let runs = lost.map(|lost| picture(HdtvPart::Ladder, label, lost, 1.0, 29.97).runs.remove(0)).to_vec();
        HdtvCellRuns { runs, ..CellResult::new(cell(HdtvPart::Ladder, label)) }
    };
    let told = |untuned, buffer| to_text(&result(vec![of("untuned, alone", untuned), of("+ buffer, alone", buffer)]));
    let once = told([0, 0, 0], [0, 9, 0]);
    assert!(once.contains("The larger buffer lost packets alone where the small one lost none."), "{once}");
    assert!(told([0, 9, 0], [0, 0, 0]).contains("alone: a larger one ends it"));
    assert!(told([9, 9, 9], [0, 9, 0]).contains("A larger buffer does not end all loss alone"));
    assert!(told([0, 0, 0], [0, 0, 0]).contains("Nothing is lost alone"));
}

#[test]
fn a_polling_timer_that_was_refused_is_not_said_to_have_no_effect() {
    let trips = |moderation: ReceiveModeration, refused: &[&str]| {
        let trips = TripsShown { mean_us: 40.0, p50_us: Some(40.0), p99_us: None, lost: 0, client_cpu: 0.1 };
        let refused = refused.iter().map(|text| (*text).to_owned()).collect();
        let run = HdtvRun { trips: Some(trips), refused, ..HdtvRun::default() };
        HdtvCellRuns { runs: vec![run], ..CellResult::new(cell(HdtvPart::Rtt, &format!("{moderation}, 64 B"))) }
    };
    let told = |refused: &[&str]| {
        to_text(&result(vec![trips(ReceiveModeration::AsItIs, &[]), trips(ReceiveModeration::Polling(100), refused)]))
    };
    let set = told(&[]);
    assert!(set.contains("The polling timer has no effect here: 40.0 µs with a timer of 100 µs"), "{set}");
    let text = told(&["gro_flush_timeout 100000: Permission denied"]);
    assert!(text.contains("could not be set in some runs: gro_flush_timeout 100000"), "{text}");
    assert!(!text.contains("has no effect here"), "{text}");
}

#[test]
fn a_page_stands_by_itself_and_says_what_is_left_out() {
    let page = page(&result(vec![picture(HdtvPart::Moderation, "gathered for 100 µs", 0, 20.0, 29.97)]));
    let html = page.to_html();
    check_html(&html);
    check_offline(&html);
    assert!(html.contains("Left out: something.") && html.contains("Equation (1) is TCP"), "{html}");
    assert_eq!(page.command, "thalweg lab run paper3 --seed 1");
}

#[test]
fn frames_a_second_are_those_of_whole_windows() {
    let each: Vec<(f64, u64)> = (0..=75).map(|frame| (frame as f64 / 30.0, frame + 1)).collect();
    let windows = frame_windows(&each);
    assert_eq!(windows.len(), 2, "{windows:?}");
    assert!(windows.iter().all(|fps| (fps - 30.0).abs() < 1e-6), "{windows:?}");
    assert_eq!(frame_windows(&[]), Vec::<f64>::new());
}
