//! The files of `lab profile`, loaded by Fast DDS 3.1.2 and Cyclone DDS 11.0.1 themselves, which exchange samples with Thalweg under its
//! own. No program of RTI Connext is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ::thalweg::qos::{ReaderQos, Reliability, WriterQos};
use serde_json::Value;
use thalweg_lab::profile::{DataClass, Profile};

use super::{Burst, End, json, program};
use crate::program::Program;
use crate::thalweg;

/// Every kind of setting that the files hold; a deadline that no vendor has as the default of anything.
const SCENARIO: &str = r#"schema = "thalweg.scenario/1"
name = "ways"
[matrix]
payload_bytes = 700
rate_hz = 1000
sending = ["batch", { method = "immediate", max_datagram_bytes = 1400 }, { method = "asynchronous", bytes = 20000, period_ms = 2 }]
[qos]
history = { keep_last = 1234 }
[schedule]
seconds = 2
runs = 1
warm_up_s = 0.2
[system]
attempts = 1
"#;
const DEADLINE: Duration = Duration::from_millis(1_234);

#[track_caller]
fn run(words: &[&str]) {
    let said = Command::new(env!("CARGO_BIN_EXE_thalweg")).arg("lab").args(words).output().expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(said.status.success(), "{words:?}: {}{}", text(&said.stdout), text(&said.stderr));
}

/// The folder of the profiles of each way. Its runs are one that was made, eight times, with latencies under which this way alone
/// serves: what a loaded machine measures must not decide which files are tried.
fn profiles(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profiles-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("made");
    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    fs::write(path("ways.toml"), SCENARIO).expect("written");
    run(&["run", &path("ways.toml"), "--out", &path("study")]);
    let made = json(&folder.join("study/results.json"));
    let of_way = |way: usize| {
        let mut results = made.clone();
        for (cell, value) in results["cells"].as_array_mut().expect("cells").iter_mut().enumerate() {
            let mut run = value["runs"][0].clone();
            run["contaminated"] = false.into();
            run["totals"]["response"]["p99_us"] = if cell == way { 1_000.0.into() } else { "never".into() };
            let of_round = |round: u32| {
                run["round"] = round.into();
                run.clone()
            };
            value["runs"] = (0..8).map(of_round).collect::<Vec<Value>>().into();
        }
        fs::write(path("study/results.json"), results.to_string()).expect("written");
        let (out, study) = (path(&format!("way-{way}")), path("study"));
        let goal = ["profile", "--rate", "1000", "--size", "700", "--deadline", "1234", "--loss", "some"];
        run(&[&goal[..], &["--from", &study, "--out", &out]].concat());
        PathBuf::from(out)
    };
    (0..3).map(of_way).collect()
}

/// Samples to the vendor's program and its echoes, both ends by the files in `folder`.
#[track_caller]
fn check(name: &str, folder: &Path, command: &Command) {
    let domain = thalweg::domain();
    let mut subscriber = Command::new(command.get_program());
    subscriber.args(["burst", "--role", "sub", "--domain", &domain.to_string()]).args(command.get_args());
    subscriber.envs(command.get_envs().filter_map(|(variable, value)| Some((variable, value?))));
    let subscriber = Program::start_with_input(name, &subscriber);
    let profile = Profile::load(&folder.join("profile.toml")).expect("a profile");
    let kind = DataClass::of_size(700);
    let builder = profile.apply_to_participant(::thalweg::DomainParticipant::builder(domain));
    let participant = builder.create().expect("sockets");
    let settings = profile.kind(kind).expect("settings of this size");
    profile.flow_controller(&settings.sending).into_iter().for_each(|bucket| {
        bucket.create_on(&participant).expect("a flow controller");
    });
    let topic = |name| participant.create_topic::<Burst>(name);
    let writer = profile.apply_to_writer(kind, WriterQos::default());
    let reader = profile.apply_to_reader(kind, ReaderQos::default());
    let end = End {
        samples: participant.create_writer(&topic("thalweg_burst"), writer).expect("a writer"),
        echoes: participant.create_reader(&topic("thalweg_burst_echo"), reader).expect("a reader"),
    };
    end.meet(name);
    end.run(name, 1, 500, 700);
    end.run(name, 2, 20, 20_000);
    let all = participant.publications();
    let echo = all.iter().find(|known| known.data.topic_name == "thalweg_burst_echo").expect("the vendor's writer");
    let expect = Reliability::Reliable { max_blocking_time: DEADLINE };
    assert_eq!(echo.data.qos.reliability, expect, "{name}: not by the file");
    let complaints = |line: &&String| line.contains("XML") || line.to_lowercase().contains("error");
    let said = subscriber.finish().well();
    assert_eq!(said.lines.iter().find(complaints), None, "{name}");
}

#[test]
fn fast_dds_takes_each_profile_and_exchanges_samples_under_it() {
    for folder in profiles("fastdds") {
        let mut command = Command::new(program("THALWEG_FASTDDS"));
        command.env("FASTDDS_DEFAULT_PROFILES_FILE", folder.join("fastdds.xml"));
        check(&format!("Fast DDS by {}", folder.display()), &folder, &command);
    }
}

#[test]
fn cyclone_takes_each_profile_and_exchanges_samples_under_it() {
    for folder in profiles("cyclone") {
        let mut command = Command::new(program("THALWEG_CYCLONE"));
        command.env("CYCLONEDDS_URI", format!("file://{}", folder.join("cyclonedds.xml").display()));
        command.env("CYCLONEDDS_QOS_FILE", folder.join("cyclonedds-qos.xml"));
        check(&format!("Cyclone DDS by {}", folder.display()), &folder, &command);
    }
}
