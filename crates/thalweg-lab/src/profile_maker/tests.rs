use std::path::Path;

use thalweg::qos::{History, Method, ReaderQos, Reliability, WriterQos};

use super::*;
use crate::fixtures;
use crate::profile::{DataClass, Profile};
use crate::scenario::{HistorySetting, Scenario};
use crate::station::PackingMethod;
use crate::study::{RunSummary, StudyResult, WireBytes};
use crate::trial::{LatencyFigures, Totals};

fn goal() -> ProfileGoal {
    ProfileGoal {
        rate_hz: 2_000.0,
        sample_bytes: 200,
        deadline_ms: 8.0,
        subscribers: 1,
        wire_mbit: None,
        cpu_pct: None,
        loss: LossTolerance::None,
    }
}

fn form() -> StudyForm {
    StudyForm { place: MeasuringPlace::Loopback, runs: None, only: Vec::new(), others_pct: 1.0 }
}

fn scenario(goal: &ProfileGoal, form: &StudyForm) -> Scenario {
    let text = goal.scenario(form).expect("a scenario");
    Scenario::parse("profile", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Eight runs of each cell of a scenario: what `figures` says of a cell (p99 in ms, CPU, lost) with 1 % more in each next run.
fn study(scenario: &Scenario, figures: impl Fn(&str) -> (f64, f64, u64)) -> StudyResult {
    fixtures::study(scenario, 8, |cell, round| {
        let (p99_ms, cpu, lost) = figures(&cell.to_string());
        let of = |value: f64| value * (1.0 + f64::from(round) / 100.0);
        let response = LatencyFigures { count: 4_000, p99_us: Some(of(1e3 * p99_ms)), ..LatencyFigures::default() };
        let (sent, sent_per_s) = (1_000_000, Some(500_000.0));
        RunSummary {
            totals: Totals { due: 4_000, in_time: 4_000 - lost, lost, response, ..Totals::default() },
            cpu: of(cpu),
            wire: Some(WireBytes { sent, received: sent, sent_per_s, sent_per_sample: None }),
            ..RunSummary::default()
        }
    })
}

fn choice(goal: &ProfileGoal, figures: impl Fn(&str) -> (f64, f64, u64)) -> ProfileChoice {
    let scenario = scenario(goal, &form());
    let result = study(&scenario, figures);
    ProfileChoice::new(goal, &[(result, scenario)]).expect("a choice")
}

/// Names and texts.
type Files = Vec<(&'static str, String)>;

#[track_caller]
fn check(choice: &ProfileChoice, way: &str, expect: Fitness, reason: &str) {
    let one = choice.ways.iter().find(|one| one.name.contains(way)).expect(way);
    assert_eq!(one.fitness, expect, "{way}: {:?}", one.reasons);
    assert!(one.reasons.join("; ").contains(reason), "{reason} not in {:?}", one.reasons);
}

#[test]
fn the_ways_are_those_that_could_serve() {
    let names = |goal: &ProfileGoal| goal.ways().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let usual = ["auto", "immediate"];
    assert_eq!(names(&goal()), [&usual[..], &["coalesce", "batch"]].concat(), "500 µs hold one sample, 2 ms four");
    assert_eq!(names(&ProfileGoal { rate_hz: 10.0, ..goal() }), usual);
    let patient = ProfileGoal { deadline_ms: 1e6, ..goal() };
    assert_eq!(scenario(&patient, &form()).cells.len(), 4, "both delays are the longest");
    let large = ProfileGoal { rate_hz: 10.0, sample_bytes: 100_000, ..goal() };
    assert_eq!(names(&large), [&usual[..], &["fragments", "asynchronous"]].concat());
    let both = scenario(&ProfileGoal { loss: LossTolerance::Some, ..goal() }, &form());
    assert_eq!((both.cells.len(), both.qos.history), (8, HistorySetting::KeepLast(16)));
    assert!(both.schedule.runs.min >= 9, "eight runs do not carry eight ways");
    let reliable = scenario(&goal(), &form());
    assert_eq!((reliable.cells.len(), reliable.qos.history), (4, HistorySetting::KeepAll(64)));
    assert!(WAYS.iter().all(|way| names(&large).contains(way) || names(&goal()).contains(way)));
}

#[test]
fn a_form_that_measures_nothing_is_refused() {
    let refused = |goal: ProfileGoal, form: StudyForm, expect: &str| {
        let reason = goal.scenario(&form).expect_err(expect);
        assert!(reason.contains(expect), "{reason}");
    };
    refused(goal(), StudyForm { only: vec!["fragments".to_owned()], ..form() }, "auto, immediate, coalesce, batch");
    refused(ProfileGoal { wire_mbit: Some(5.0), ..goal() }, form(), "--to netns");
    let link = StudyForm { place: MeasuringPlace::Namespaces, ..form() };
    let on_link = scenario(&ProfileGoal { wire_mbit: Some(5.0), subscribers: 3, ..goal() }, &link);
    let hosts = on_link.hosts.expect("hosts");
    assert!((0..3).all(|index| hosts.of_subscriber(1, index) == 1), "no subscriber on the publisher's host");
    let bucket = on_link.cells.iter().flat_map(|cell| &cell.sending).find_map(|way| way.bucket.clone()).expect("one");
    let rate = bucket.bytes_per_second().expect("limited");
    assert!((0.8..1.0).contains(&(rate * 8.0 / 5e6)), "{rate} B/s of 5 Mbit/s");
}

#[test]
fn what_serves_is_told_from_what_does_not_and_from_what_nobody_knows() {
    let found = choice(&ProfileGoal { cpu_pct: Some(30.0), ..goal() }, |name| match name {
        name if name.contains("coalesce") => (9.0, 0.1, 0),
        name if name.contains("batch") => (1.0, 0.29, 0),
        name if name.contains("immediate") => (0.5, 0.1, 3),
        _ => (0.5, 0.2, 0),
    });
    check(&found, "auto", Fitness::Fits, "");
    check(&found, "coalesce", Fitness::Refused, "p99 9.31 (9.00–9.63) ms where 8 are allowed");
    check(&found, "batch", Fitness::NotJudged, "CPU 30.0 (29.0–31.0) % where 30 are allowed");
    check(&found, "immediate", Fitness::Refused, "24 samples never arrived");
    assert_eq!(found.winner().map(|one| one.name.as_str()), Some("reliable, auto"));
    assert!(found.shortcoming().is_none() && found.to_text().contains("Chosen: reliable, auto"), "{}", found.to_text());
}

#[test]
fn another_way_is_chosen_only_where_it_surely_leaves_more() {
    let cpu = ProfileGoal { cpu_pct: Some(30.0), ..goal() };
    let chosen = |batch: f64| {
        let found = choice(&cpu, |name| (0.5, if name.contains("batch") { batch } else { 0.2 }, 0));
        found.winner().expect("one").way.sending.method.clone()
    };
    assert_eq!(chosen(0.195), PackingMethod::Auto, "a few per cent do not matter");
    assert!(matches!(chosen(0.1), PackingMethod::Batch(_)));
}

#[test]
fn the_nearest_is_named_where_nothing_serves() {
    let found = choice(&goal(), |name| (if name.contains("batch") { 9.0 } else { 20.0 }, 0.1, 0));
    let reason = found.shortcoming().expect("one");
    assert!(
        found.chosen.is_none() && reason.contains("nearest, reliable, batch") && reason.contains("does not"),
        "{reason}"
    );
    assert!(files(&found).expect("none").is_empty());
    let late = choice(&goal(), |_| (f64::INFINITY, 0.1, 0));
    check(&late, "auto", Fitness::Refused, "∞");
}

#[test]
fn disturbed_runs_and_other_measurements_prove_nothing() {
    let scenario = scenario(&goal(), &form());
    let mut result = study(&scenario, |_| (0.5, 0.1, 0));
    result.cells[0].runs[3].contaminated = true;
    result.cells[1].runs[3].totals.response.p99_us = None;
    let found = ProfileChoice::new(&goal(), &[(result.clone(), scenario.clone())]).expect("a choice");
    check(&found, "auto", Fitness::NotJudged, "quiet in too few runs");
    check(&found, "immediate", Fitness::NotJudged, "too few samples");
    let other = ProfileGoal { sample_bytes: 201, ..goal() };
    let reason = ProfileChoice::new(&other, &[(result, scenario)]).expect_err("no such cell");
    assert!(reason.contains("201 B at 2000 Hz") && reason.contains("1–1 200 B 2000 Hz"), "{reason}");
    assert!(ProfileChoice::from_directories(&goal(), &[Path::new("/nowhere")]).is_err());
}

/// A choice of each way, with its files.
fn each_way() -> Vec<(String, ProfileChoice, Files)> {
    let large = ProfileGoal { sample_bytes: 100_000, rate_hz: 20.0, loss: LossTolerance::Some, ..goal() };
    let of = |goal: &ProfileGoal, way: &'static str| {
        let found = choice(goal, |name| (if name.contains(way) { 1.0 } else { 20.0 }, 0.1, 0));
        let files = files(&found).expect("files");
        (found.winner().expect(way).name.clone(), found, files)
    };
    let mut all: Vec<_> = ["thalweg auto", "immediate", "coalesce", "batch"].map(|way| of(&goal(), way)).into();
    all.extend(
        ["best-effort thalweg asynchronous", "reliable thalweg immediate, datagrams"].map(|way| of(&large, way)),
    );
    all
}

#[test]
fn our_file_has_the_settings_that_were_measured() {
    for (way, found, files) in each_way() {
        let profile = Profile::parse(&files[0].1).unwrap_or_else(|error| panic!("{way}: {error}\n{}", files[0].1));
        let winner = found.winner().expect("one");
        let kind = DataClass::of_size(u64::from(found.goal.sample_bytes));
        let writer = profile.apply_to_writer(kind, WriterQos::default());
        let reader = profile.apply_to_reader(kind, ReaderQos::default());
        assert_eq!(writer.transmission, winner.way.sending.to_qos(), "{way}");
        assert_eq!(writer.history, reader.history);
        match winner.history {
            HistorySetting::KeepAll(room) => {
                assert_eq!((writer.history, writer.resource_limits.max_samples), (History::KeepAll, Some(room)));
                assert!(matches!(reader.reliability, Reliability::Reliable { .. }));
            }
            HistorySetting::KeepLast(depth) => assert_eq!(writer.history, History::KeepLast(depth)),
        }
        if let Method::Asynchronous { .. } = writer.transmission.method {
            assert_eq!(profile.flow_controller(&winner.way.sending), winner.way.bucket.as_ref());
        }
        assert!(files[0].1.contains("# by ") && files[0].1.contains("p99 was 1.03"), "{}", files[0].1);
    }
}

/// The children of the elements at `path`, in their order.
fn children(document: &roxmltree::Document<'_>, path: &str) -> Vec<String> {
    let mut at = vec![document.root_element()];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        at = at.iter().flat_map(|node| node.children()).filter(|node| node.has_tag_name(name)).collect();
    }
    let all = at.iter().flat_map(|node| node.children()).filter(roxmltree::Node::is_element);
    all.map(|node| node.tag_name().name().to_owned()).collect()
}

#[test]
fn every_file_of_a_vendor_is_xml_with_a_reason_beside_each_policy() {
    for (way, _, files) in each_way() {
        for (name, text) in &files[1..] {
            let document =
                roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("{way}, {name}: {error}\n{text}"));
            let comments = document.descendants().filter(roxmltree::Node::is_comment).count();
            assert!(comments > 5 && text.contains("8 runs: p99 1.03"), "{way}, {name}: {text}");
        }
    }
}

/// What the reference of Connext lists, in its order; no program of it checks the file.
#[test]
fn connext_gets_its_policies_in_the_documented_order() {
    let order = ["reliability", "history", "resource_limits", "protocol", "publish_mode", "batch"];
    let of_batch = ["enable", "max_data_bytes", "max_samples", "max_flush_delay"];
    for (way, found, files) in each_way() {
        let (_, text) = files.iter().find(|(name, _)| *name == "USER_QOS_PROFILES.xml").expect("there");
        let document = roxmltree::Document::parse(text).expect("XML");
        let profile = "qos_library/qos_profile";
        assert_eq!(children(&document, profile), ["domain_participant_qos", "datawriter_qos", "datareader_qos"]);
        let is_sorted = |known: &[&str], found: &[String]| {
            let places: Option<Vec<usize>> =
                found.iter().map(|name| known.iter().position(|one| one == name)).collect();
            places.is_some_and(|places| places.is_sorted())
        };
        let policies = children(&document, &format!("{profile}/datawriter_qos"));
        assert!(is_sorted(&order, &policies), "{way}: {policies:?}");
        let batch = children(&document, &format!("{profile}/datawriter_qos/batch"));
        let collects = matches!(
            found.winner().expect("one").way.sending.method,
            PackingMethod::Coalesce(_) | PackingMethod::Batch(_)
        );
        assert!(is_sorted(&of_batch, &batch) && batch.is_empty() != collects, "{way}: {batch:?}");
        let is_paced = found.winner().expect("one").way.bucket.is_some();
        assert_eq!(
            text.contains("dds.flow_controller.token_bucket.paced.token_bucket.bytes_per_token"),
            is_paced,
            "{way}"
        );
    }
}
