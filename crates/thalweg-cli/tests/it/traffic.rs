//! `top` beside writers of its domain.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg::qos::WriterQos;
use thalweg::{DomainParticipant, Topic};

use crate::program::{PATIENCE, Running, command, run, tag};

fn publish(tag: &str, words: &[&str]) -> Running {
    // Nobody reads but `top`, for which nobody waits.
    Running::start(command(&[&["pub"], words, &["--match-timeout", "40", "--domain-tag", tag]].concat()))
}

fn top(tag: &str, words: &[&str]) -> String {
    run(&[&["top", "--once", "--domain-tag", tag], words].concat()).expect_code(0).stdout
}

#[test]
fn the_traffic_of_each_topic_is_counted() {
    let tag = tag();
    let shapes = ["Square", "--type", "ShapeType", "RED,1,2,3", "--rate", "100"];
    let writers = [
        publish(&tag, &shapes),
        publish(&tag, &[&shapes[..], &["--qos", "partition=left"]].concat()),
        publish(&tag, &["chatter", "hello", "--rate", "20", "--qos", "reliability=best-effort"]),
    ];
    let until = std::time::Instant::now() + PATIENCE;
    // A busy machine may find them late.
    let topics = loop {
        let told: Value = serde_json::from_str(&top(&tag, &["--json", "--every", "2"])).expect("JSON");
        let topics = told["topics"].as_array().expect("topics").clone();
        if told["participants"] == 3 && topics.iter().all(|topic| topic["rate_hz"].as_f64() > Some(0.0)) {
            break topics;
        }
        assert!(std::time::Instant::now() < until, "{told:#}");
    };
    let [square, chatter] = &topics[..] else { panic!("two topics are wanted: {topics:#?}") };
    assert_eq!(
        (&square["name"], &square["writers"], &square["types"][0]),
        (&"Square".into(), &2.into(), &"ShapeType".into())
    );
    let figure = |topic: &Value, name: &str| topic[name].as_f64().expect("a figure");
    // At other load writers fall behind; nothing is counted twice.
    let (shapes, words) = (figure(square, "rate_hz"), figure(chatter, "rate_hz"));
    assert!((60.0..=220.0).contains(&shapes) && (6.0..=24.0).contains(&words), "{topics:#?}");
    let sizes = [figure(square, "bytes_per_s") / shapes, figure(chatter, "bytes_per_s") / words];
    // A header of four octets, a text of four with its length, three numbers; and a text of six.
    assert_eq!(sizes.map(f64::round), [24.0, 16.0], "{topics:#?}");
    let first = top(&tag, &["/no/such/topic", "Square", "--sort", "name"]);
    assert!(first.contains("1 topics") && first.contains("Square") && !first.contains("chatter"), "{first}");
    drop(writers);
}

/// Counts the topics of a domain until one of them is as it is wanted: a busy machine may find writers late.
#[track_caller]
fn count_until(tag: &str, is_wanted: impl Fn(&Value) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let told: Value = serde_json::from_str(&top(tag, &["--json"])).expect("JSON");
        if told["topics"].as_array().expect("topics").iter().any(&is_wanted) {
            return;
        }
        assert!(Instant::now() < until, "{told:#}");
    }
}

#[test]
fn a_writer_whose_samples_may_come_late_is_counted() {
    let tag = tag();
    let _writer = publish(&tag, &["t", "x", "--rate", "10", "--qos", "latency_budget_ms=20"]);
    count_until(&tag, |topic| topic["rate_hz"].as_f64() > Some(0.0));
}

#[test]
fn each_instance_of_exclusive_writers_is_counted_that_has_its_own_owner() {
    let tag = tag();
    let shapes = |value: &str, rate: &str, strength: &str| {
        publish(&tag, &["Square", "--type", "ShapeType", value, "--rate", rate, "--qos", strength])
    };
    let _writers = [shapes("RED,1,2,3", "10", "strength=9"), shapes("BLUE,1,2,3", "40", "strength=1")];
    // The stronger one alone would have ten.
    count_until(&tag, |topic| topic["writers"] == 2 && topic["rate_hz"].as_f64() > Some(25.0));
}

#[test]
fn a_period_without_length_is_refused() {
    let said = run(&["top", "--every", "0", "--domain-tag", &tag()]).expect_code(2);
    assert!(said.stderr.contains("--every"), "{}", said.stderr);
}

#[test]
fn rates_sizes_and_delays_are_those_of_the_arrivals() {
    let tag = tag();
    let writer = publish(&tag, &["Square", "--type", "ShapeType", "RED,1,2,3", "--rate", "100"]);
    let last = |what: &str| -> Value {
        let words = ["topic", what, "Square", "--count", "3", "--json", "--patience", "40", "--domain-tag", &tag];
        let said = run(&words).expect_code(0);
        serde_json::from_str(said.stdout.lines().last().expect("a line")).expect("JSON")
    };
    let (hz, bw, delay) = (last("hz"), last("bw"), last("delay"));
    let figure = |told: &Value, name: &str| told[name].as_f64().unwrap_or_else(|| panic!("{name}: {told}"));
    // At other load a writer falls behind. Periods are those of the arrivals, not of the looks at them.
    let (rate, mean) = (figure(&hz, "rate_hz"), figure(&hz, "period_mean_s"));
    assert!((30.0..=130.0).contains(&rate) && (0.7..=1.4).contains(&(rate * mean)), "{hz}");
    assert_eq!((&bw["sample_bytes_min"], &bw["sample_bytes_max"]), (&24.into(), &24.into()), "{bw}");
    assert!(figure(&delay, "min_s") > 0.0 && figure(&delay, "min_s") < 0.015, "taken late, and not late: {delay}");
    drop(writer);
}

#[derive(Topic)]
struct Note {
    number: u32,
}

#[test]
fn a_writer_that_changes_its_partition_is_counted_on() {
    let tag = tag();
    let participant = DomainParticipant::builder(0).domain_tag(&tag).create().expect("a participant");
    let qos = |partition: &str| WriterQos { partition: vec![partition.to_owned()], ..WriterQos::default() };
    let writer = participant.create_writer(&participant.create_topic::<Note>("notes"), qos("a")).expect("a writer");
    let mut top = Running::start(command(&["top", "--every", "0.5", "--domain-tag", &tag]));
    let mut lines = top.stdout().lines();
    let mut rate = || -> f64 {
        let row = lines.find(|line| line.as_ref().expect("a line").trim_start().starts_with("notes "));
        let row = row.expect("a row").expect("a line");
        row.split_whitespace().nth(3).and_then(|hz| hz.parse().ok()).unwrap_or_else(|| panic!("{row}"))
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                writer.write(&Note { number }).expect("room");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let counted = |rate: &mut dyn FnMut() -> f64| (0..60).any(|_| rate() > 0.0);
        let before = counted(&mut rate);
        writer.set_qos(qos("b")).expect("changed");
        // What was counted of the one before is told in two periods at most.
        (0..3).for_each(|_| _ = rate());
        let after = counted(&mut rate);
        is_over.store(true, Ordering::Relaxed);
        assert!(before && after, "before {before}, after {after}");
        let readers = || participant.subscriptions().iter().filter(|known| known.data.topic_name == "notes").count();
        let has_let_go = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            readers() == 1
        });
        assert!(has_let_go, "{} readers, one for each partition there was", readers());
    });
}

#[test]
fn the_first_signal_ends_a_command_that_only_waits() {
    let running = Running::start(command(&["topic", "list", "--wait", "50", "--domain-tag", &tag()]));
    std::thread::sleep(Duration::from_secs(1));
    running.signal("INT");
    running.finish_within(Duration::from_secs(20)).expect_code(130);
}

#[test]
fn lines_of_standard_input_are_written_at_the_rate_that_is_given() {
    let mut publish = command(&["pub", "notes", "--rate", "5", "--readers", "0", "--domain-tag", &tag()]);
    publish.stdin(std::process::Stdio::piped());
    let began = Instant::now();
    let mut running = Running::start(publish);
    running.stdin().write_all(b"a\nb\nc\nd\n").expect("written");
    let said = running.finish().expect_code(0);
    assert!(said.stderr.contains("wrote 4 samples"), "{}", said.stderr);
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
}
