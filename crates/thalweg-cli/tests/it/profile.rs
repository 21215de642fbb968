//! `lab profile`: measures, judges and writes files that programs load.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use thalweg::qos::{History, ReaderQos, WriterQos};
use thalweg::{DomainParticipant, Topic};
use thalweg_lab::profile::{DataClass, Profile};

use crate::program::{PATIENCE, Running, command, run, tag};

const GOAL: [&str; 8] = ["lab", "profile", "--rate", "1000", "--size", "200", "--deadline", "3600000"];

#[derive(Debug, PartialEq, Topic)]
struct Reading {
    number: u32,
    bytes: Vec<u8>,
}

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

/// A writer and a reader with the settings of `profile`, and samples from one to the other.
#[track_caller]
fn check_exchange(profile: &Profile) {
    let builder = DomainParticipant::builder(0).domain_tag(tag()).loopback_only();
    let participant = profile.apply_to_participant(builder).create().expect("sockets");
    let topic = participant.create_topic::<Reading>("readings");
    let kind = DataClass::of_size(200);
    let qos = profile.apply_to_writer(kind, WriterQos::default());
    assert_eq!(qos.history, History::KeepAll, "no sample may be lost");
    let writer = participant.create_writer(&topic, qos).expect("a writer");
    let qos = profile.apply_to_reader(kind, ReaderQos::default());
    let reader = participant.create_reader(&topic, qos).expect("a reader");
    writer.wait_for_matched(1, Duration::from_secs(30)).expect("the reader");
    for number in 0..100 {
        writer.write(&Reading { number, bytes: vec![7; 180] }).expect("room in time");
        assert!(reader.wait(Duration::from_secs(30)));
        let taken = reader.take_one().expect("a sample").data().expect("whole");
        assert_eq!(taken.number, number);
    }
}

#[test]
fn what_was_measured_becomes_a_profile_that_a_program_uses() {
    let out = directory("measured");
    let folder = out.to_str().expect("text");
    let place = ["--to", "loopback", "--only", "batch", "--others", "100", "--out", folder];
    // Eight runs take 40 s, and a busy machine repeats those that were disturbed.
    let said = Running::start(command(&[&GOAL[..], &place].concat())).finish_within(4 * PATIENCE);
    let file = out.join("study/results.json");
    let mut results: Value = serde_json::from_str(&fs::read_to_string(&file).expect("results")).expect("JSON");
    let disturbed = |run: &Value| run["contaminated"] == true;
    let runs = results["cells"].as_array_mut().expect("cells").iter_mut().flat_map(|cell| cell["runs"].as_array_mut());
    let runs: Vec<&mut Value> = runs.flatten().collect();
    assert_eq!(runs.len() % 8, 0);
    if runs.iter().filter(|run| !disturbed(run)).count() < 8 {
        let said = said.expect_code(1);
        assert!(said.stderr.contains("quiet in too few runs"), "{}", said.stderr);
        // The rest is about the files, whatever this machine did meanwhile.
        runs.into_iter().for_each(|run| run["contaminated"] = false.into());
        fs::write(&file, results.to_string()).expect("written");
    } else {
        assert!(said.expect_code(0).stdout.contains("Chosen: reliable, batch"));
    }
    // Runs that are there are not made again.
    let said = run(&[&GOAL[..], &place, &["--json"]].concat()).expect_code(0);
    let choice: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(choice["ways"][0]["fitness"], "fits");
    assert!(choice["ways"][0]["p99_us"]["high"].as_f64() > Some(0.0), "{choice}");
    check_exchange(&Profile::load(&out.join("profile.toml")).expect("a profile"));
    for name in ["cyclonedds.xml", "cyclonedds-qos.xml", "fastdds.xml", "USER_QOS_PROFILES.xml"] {
        assert!(fs::read_to_string(out.join(name)).expect(name).starts_with("<?xml"), "{name}");
    }
    let sent =
        run(&["pub", "t", "x", "--readers", "0", "--count", "1", "--profile", &format!("{folder}/profile.toml")]);
    sent.expect_code(0);
    // The same runs under a deadline that nothing keeps.
    let strict = ["lab", "profile", "--rate", "1000", "--size", "200", "--deadline", "0.1", "--cpu", "0.1"];
    let study = format!("{folder}/study");
    let nowhere = directory("strict");
    let said =
        run(&[&strict[..], &["--from", &study, "--out", nowhere.to_str().expect("text")]].concat()).expect_code(1);
    assert!(said.stderr.contains("no way surely serves; the nearest, reliable, batch"), "{}", said.stderr);
    assert!(said.stdout.contains("% where 0.1 are allowed"), "{}", said.stdout);
    assert!(!Path::new(&nowhere).exists(), "files of what does not serve");
}

#[test]
fn what_cannot_be_measured_or_judged_is_told_at_once() {
    let check = |words: &[&str], code: i32, expect: &str| {
        let out = directory("refused");
        let said = run(&[&GOAL[..], words, &["--out", out.to_str().expect("text")]].concat()).expect_code(code);
        assert!(said.stderr.contains(expect), "{expect:?} not in {}", said.stderr);
        assert!(!out.exists());
    };
    check(&["--to", "loopback", "--budget", "5"], 2, "--to netns");
    check(&["--only", "fragments"], 2, "--only leaves no way");
    check(&["--to", "lab2"], 2, "give loopback, netns or ssh:HOST");
    check(&["--runs", "7"], 2, "8..=1000");
    check(&["--from", "/nowhere"], 1, "/nowhere");
    check(&["--from", "/nowhere", "--runs", "9"], 2, "--from");
}
