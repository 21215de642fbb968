//! `record` and `replay` in processes of their own.

use std::io::BufRead;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{PATIENCE, Running, Said, command, run, tag};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("thalweg-record-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn start(tag: &str, words: &[&str]) -> Running {
    Running::start(command(&[words, &["--domain-tag", tag]].concat()))
}

fn publish(tag: &str, words: &[&str]) -> Said {
    run(&[&["pub"], words, &["--domain-tag", tag, "--match-timeout", "40"]].concat())
}

/// What `replay --info --json` says of a file.
fn info(file: &str) -> Value {
    let said = run(&["replay", file, "--info", "--json"]).expect_code(0);
    serde_json::from_str::<Value>(&said.stdout).expect("JSON")[0].take()
}

/// What `record verify --json` says of files, and its exit code.
#[track_caller]
pub fn verified(files: &[&str], code: i32) -> Value {
    let said = run(&[&["record", "verify", "--json"], files].concat()).expect_code(code);
    serde_json::from_str(&said.stdout).expect("JSON")
}

/// Waits until more than the magic and the header are written: a chunk.
#[track_caller]
pub fn wait_for_chunk(file: &str) {
    let until = Instant::now() + PATIENCE;
    while std::fs::metadata(file).map_or(0, |found| found.len()) < 500 {
        assert!(Instant::now() < until, "nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The values of `sub --json`.
fn samples(said: &Said) -> Vec<Value> {
    said.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn what_is_recorded_is_replayed_with_type_qos_and_order() {
    let (folder, first, second) = (Folder::new("replayed"), tag(), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&first, &["record", "--output", &file, "--count", "6", "--compress", "lz4", "--json"]);
    let shapes = ["Square", "--type", "ShapeType", "RED,1,2,3", "BLUE,4,5,6", "--count", "6", "--rate", "20"];
    publish(&first, &[&shapes[..], &["--qos", "depth=9", "--qos", "partition=left"]].concat()).expect_code(0);
    let counts: Value = serde_json::from_str(&recorder.finish().expect_code(0).stdout).expect("JSON");
    let (_, channel) = counts["channels"].as_object().expect("channels").iter().next().expect("one");
    assert_eq!((&channel["topic"], &channel["recorded"], &channel["last"]), (&"Square".into(), &6.into(), &6.into()));
    let told = info(&file);
    assert_eq!((&told["cut_off"], &told["channels"][0]["messages"]), (&Value::Null, &6.into()));
    assert_eq!(
        (&told["channels"][0]["type_name"], &told["channels"][0]["schema"]),
        (&"ShapeType".into(), &"omgidl".into())
    );

    let words =
        ["Square", "--type", "ShapeType", "--json", "--count", "6", "--qos", "partition=left", "--timeout", "50"];
    let subscriber = start(&second, &[&["sub"], &words[..]].concat());
    let said = run(&["replay", &file, "--wait", "40", "--rate", "4", "--domain-tag", &second]).expect_code(0);
    assert!(said.stdout.starts_with("wrote 6 samples, 0 refused, 0 out of order"), "{}", said.stdout);
    let got = samples(&subscriber.finish().expect_code(0));
    let of_color = |color: &str| {
        got.iter().filter(|one| one["value"]["color"] == color).map(|one| one["value"].clone()).collect::<Vec<_>>()
    };
    for (color, x) in [("RED", 1), ("BLUE", 4)] {
        let expected = json!({"color": color, "x": x, "y": x + 1, "shapesize": x + 2});
        assert_eq!(of_color(color), vec![expected; 3], "{got:#?}");
    }
}

#[test]
fn a_replayed_topic_is_read_without_knowing_its_type_and_under_another_name() {
    let (folder, first, second) = (Folder::new("renamed"), tag(), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&first, &["record", "Square", "--output", &file, "--count", "3"]);
    publish(&first, &["Square", "--type", "ShapeType", "RED,1,2,3", "--count", "3", "--rate", "20"]).expect_code(0);
    recorder.finish().expect_code(0);
    let echo =
        start(&second, &["topic", "echo", "Triangle", "--json", "--count", "3", "--timeout", "50", "--patience", "40"]);
    let replay = ["replay", &file, "--remap", "Square=Triangle", "--loop", "--wait", "40"];
    let replay = start(&second, &replay);
    let said = echo.finish().expect_code(0);
    assert_eq!(said.stdout.lines().next(), Some(r#"{"color":"RED","x":1,"y":2,"shapesize":3}"#));
    replay.signal("INT");
    replay.finish().expect_code(0);
}

#[test]
fn the_end_of_an_instance_is_replayed() {
    let (folder, first, second) = (Folder::new("disposed"), tag(), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&first, &["record", "--output", &file, "--count", "4"]);
    let shapes = ["Square", "--type", "ShapeType", "RED,1,2,3", "BLUE,4,5,6", "--count", "2", "--dispose"];
    publish(&first, &shapes).expect_code(0);
    recorder.finish().expect_code(0);
    assert_eq!(info(&file)["instance_ends"], 2);
    let subscriber =
        start(&second, &["sub", "Square", "--type", "ShapeType", "--json", "--count", "4", "--timeout", "50"]);
    run(&["replay", &file, "--wait", "40", "--domain-tag", &second]).expect_code(0);
    let got = samples(&subscriber.finish().expect_code(0));
    for color in ["RED", "BLUE"] {
        let is_end = |one: &&Value| {
            let is_disposed = one["instance_state"] == "NOT_ALIVE_DISPOSED" && one["valid"] == false;
            is_disposed && one["value"]["color"] == color
        };
        assert_eq!(got.iter().filter(is_end).count(), 1, "{got:#?}");
    }
}

#[test]
fn ctrl_c_ends_a_file_in_order_and_a_kill_leaves_one_that_is_read() {
    for signal in ["INT", "KILL"] {
        let (folder, tag) = (Folder::new(signal), tag());
        let file = folder.file("run.mcap");
        let recorder = start(&tag, &["record", "--output", &file]);
        let publisher = start(&tag, &["pub", "chatter", "hello", "--rate", "50", "--match-timeout", "40"]);
        wait_for_chunk(&file);
        recorder.signal(signal);
        let said = recorder.finish();
        // It would wait for the acknowledgements of a reader that was killed.
        drop(publisher);
        let told = info(&file);
        let messages = told["channels"][0]["messages"].as_u64().expect("a count");
        assert!(messages > 0, "{told:#}");
        if signal == "INT" {
            let said = said.expect_code(0);
            assert!(said.stdout.contains("dropped 0 (memory 0, disk 0), missing 0"), "{}", said.stdout);
            let counts = &told["counts"]["channels"];
            let (_, channel) = counts.as_object().expect("channels").iter().next().expect("one");
            assert_eq!((&told["cut_off"], channel["recorded"].as_u64()), (&Value::Null, Some(messages)));
            assert_eq!(verified(&[&file], 0)["writers"][0]["recorded"], messages);
        } else {
            assert!(told["cut_off"].as_str().is_some_and(|why| why.contains("before its end")), "{told:#}");
            assert!(verified(&[&file], 1)["faults"][0].as_str().is_some_and(|fault| fault.contains("before its end")));
            let said = run(&["replay", &file, "--wait", "0", "--rate", "1000", "--domain-tag", &tag]).expect_code(0);
            assert!(said.stdout.starts_with(&format!("wrote {messages} samples, 0 refused")), "{}", said.stdout);
        }
    }
}

#[test]
fn a_replay_from_the_middle_begins_with_what_durable_writers_keep() {
    let (folder, first, second) = (Folder::new("middle"), tag(), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&first, &["record", "--output", &file, "--count", "7"]);
    let durable = ["--qos", "durability=transient-local"];
    let map = ["pub", "map", "all", "--rate", "0.001", "--match-timeout", "40"];
    let map = start(&first, &[&map[..], &durable[..]].concat());
    wait_for_chunk(&file);
    publish(&first, &["chatter", "a", "b", "c", "d", "e", "f", "--count", "6", "--rate", "2"]).expect_code(0);
    recorder.finish().expect_code(0);
    map.signal("INT");
    map.finish();
    let lasted_s = info(&file)["duration_s"].as_f64().expect("a duration");
    // The last three are due half a second from each other.
    let begin = format!("{:.3}", lasted_s - 1.25);
    let maps = start(&second, &[&["sub", "map", "--count", "1", "--timeout", "50"], &durable[..]].concat());
    let words = start(&second, &["sub", "chatter", "--count", "1", "--timeout", "50"]);
    let said = start(&second, &["replay", &file, "--start", &begin, "--wait", "40", "--json"]).finish().expect_code(0);
    let outcome: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!((&outcome["latched"], &outcome["refused"]), (&1.into(), &0.into()), "{outcome:#}");
    // At other load a writer falls behind.
    assert!(outcome["written"].as_u64().is_some_and(|written| (2..=5).contains(&written)), "{outcome:#}");
    assert_eq!(maps.finish().expect_code(0).stdout, "all\n");
    let word = words.finish().expect_code(0).stdout;
    assert!(["c\n", "d\n", "e\n", "f\n"].contains(&&*word), "{word:?} is from before the start");
    let said = start(&second, &["replay", &file, "--start", "1000", "--wait", "0"]).finish().expect_code(1);
    assert!(said.stderr.contains("the recording ends ") && said.stderr.contains("at 1000 s"), "{}", said.stderr);
}

#[test]
fn a_replay_that_is_held_up_tells_how_late_it_was() {
    let (folder, first, second) = (Folder::new("late"), tag(), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&first, &["record", "--output", &file, "--count", "20"]);
    publish(&first, &["chatter", "hello", "--count", "20", "--rate", "10"]).expect_code(0);
    recorder.finish().expect_code(0);
    let mut replay = start(&second, &["replay", &file, "--wait", "0", "--json"]);
    let told = replay.stderr().lines().map(|line| line.expect("a line")).find(|line| line.starts_with("replays "));
    assert!(told.is_some(), "it says when it begins");
    std::thread::sleep(Duration::from_millis(300));
    replay.signal("STOP");
    std::thread::sleep(Duration::from_millis(1_500));
    replay.signal("CONT");
    let outcome: Value = serde_json::from_str(&replay.finish().expect_code(0).stdout).expect("JSON");
    let late_ms = outcome["lateness_most_ms"].as_f64().expect("a figure");
    // A sample is due every tenth of a second.
    assert!((1_000.0..60_000.0).contains(&late_ms), "{outcome:#}");
    let outcome = start(&second, &["replay", &file, "--wait", "0", "--rate", "0.9"]).finish().expect_code(0).stdout;
    assert!(outcome.contains("ms late") && !outcome.contains("at most 0.000 ms late"), "{outcome}");
}

#[test]
fn samples_without_room_in_memory_are_dropped_and_counted_and_hold_no_writer_back() {
    let (folder, tag) = (Folder::new("memory"), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&tag, &["record", "--output", &file, "--memory", "100", "--json"]);
    let said = publish(&tag, &["octets", "--type", "bytes", "hello", "--count", "20", "--rate", "0"]).expect_code(0);
    assert!(said.stderr.contains("wrote 20 samples"), "{}", said.stderr);
    recorder.signal("INT");
    let counts: Value = serde_json::from_str(&recorder.finish().expect_code(0).stdout).expect("JSON");
    let (_, channel) = counts["channels"].as_object().expect("channels").iter().next().expect("one");
    assert_eq!(
        (&channel["recorded"], &channel["dropped_memory"], &channel["last"]),
        (&0.into(), &20.into(), &20.into())
    );
}

#[test]
fn a_file_that_exists_or_cannot_be_created_is_refused_at_once() {
    let (folder, tag) = (Folder::new("full"), tag());
    let file = folder.file("run.mcap");
    std::fs::write(&file, "mine").expect("written");
    let said = run(&["record", "--output", &file, "--domain-tag", &tag]).expect_code(1);
    assert!(said.stderr.contains("not written over"), "{}", said.stderr);
    let said = run(&["record", "--output", "/no/such/folder/run.mcap", "--domain-tag", &tag]).expect_code(1);
    assert!(said.stderr.contains("/no/such/folder/run.mcap"), "{}", said.stderr);
}

#[test]
fn a_full_disk_ends_the_recording_with_the_reason_and_the_counts() {
    let (folder, tag) = (Folder::new("full"), tag());
    let file = folder.file("run.mcap");
    // A file of at most 64 KiB, and an error rather than a signal beyond.
    let program = env!("CARGO_BIN_EXE_thalweg");
    let line = format!("trap '' XFSZ; ulimit -f 64; exec {program} record --output {file} --domain-tag {tag}");
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &line]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let recorder = Running::start(shell);
    let publisher = start(&tag, &["pub", "chatter", "hello", "--rate", "300", "--match-timeout", "40"]);
    let said = recorder.finish().expect_code(1);
    assert!(said.stderr.contains("run.mcap: ") && said.stderr.contains("disk "), "{}", said.stderr);
    publisher.signal("INT");
    publisher.finish().expect_code(0);
    let told = info(&file);
    assert!(told["channels"][0]["messages"].as_u64().is_some_and(|count| count > 0), "{told:#}");
}

#[test]
fn what_a_durable_writer_keeps_is_in_each_file_and_replayed_once() {
    let (folder, first, second) = (Folder::new("latched"), tag(), tag());
    let durable = ["--qos", "durability=transient-local"];
    let recorder = start(&first, &["record", "--output", &folder.file("run.mcap"), "--split", "2K", "--count", "61"]);
    let map = ["pub", "map", "all", "--rate", "0.001", "--match-timeout", "40"];
    let map = start(&first, &[&map[..], &durable[..]].concat());
    let scans = ["chatter", "scan", "--count", "60", "--rate", "12"];
    publish(&first, &scans).expect_code(0);
    let said = recorder.finish().expect_code(0);
    map.signal("INT");
    map.finish();
    let files: Vec<&str> = said.stderr.lines().filter_map(|line| line.strip_prefix("wrote ")).collect();
    assert!(files.len() > 1, "{}", said.stderr);
    let found = verified(&files, 0);
    let repeated = |writer: &Value| writer["repeated"].as_u64();
    let repeated: u64 = found["writers"].as_array().expect("writers").iter().filter_map(repeated).sum();
    assert_eq!(repeated, files.len() as u64 - 1, "{found:#}");
    for file in &files {
        let told = info(file);
        let channels = told["channels"].as_array().expect("channels");
        let of_map: Vec<_> = channels.iter().filter(|channel| channel["topic"] == "map").collect();
        assert_eq!((of_map.len(), &of_map[0]["messages"]), (1, &1.into()), "{told:#}");
    }
    let subscriber = start(&second, &[&["sub", "map", "--timeout", "12"], &durable[..]].concat());
    run(&[&["replay"], &files[..], &["--wait", "2", "--rate", "4", "--domain-tag", &second]].concat()).expect_code(0);
    // Behind it comes the news that its writer has gone.
    assert_eq!(subscriber.finish().expect_code(0).stdout.matches("all\n").count(), 1);
    let late = start(&second, &[&["sub", "map", "--count", "1", "--timeout", "40"], &durable[..]].concat());
    let last = files[files.len() - 1];
    run(&["replay", last, "--wait", "20", "--topics", "map", "--domain-tag", &second]).expect_code(0);
    assert_eq!(late.finish().expect_code(0).stdout, "all\n", "the last file stands alone");
}

#[test]
fn requests_of_services_are_replayed_by_name_only() {
    let (folder, first, second) = (Folder::new("requests"), tag(), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&first, &["record", "--output", &file, "--count", "4"]);
    for topic in ["rq/addRequest", "chatter"] {
        publish(&first, &[topic, "hello", "--count", "2", "--rate", "20"]).expect_code(0);
    }
    recorder.finish().expect_code(0);
    let told = info(&file);
    let withheld = |topic: &str| {
        let channels = told["channels"].as_array().expect("channels");
        channels.iter().find(|channel| channel["topic"] == topic).map(|channel| channel["withheld"].is_string())
    };
    assert_eq!((withheld("rq/addRequest"), withheld("chatter")), (Some(true), Some(false)), "{told:#}");
    let quick = ["--wait", "0", "--rate", "1000", "--domain-tag", &second];
    let said = run(&[&["replay", &file, "--json"], &quick[..]].concat()).expect_code(0);
    let outcome: Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(outcome["written"], 2, "{outcome:#}");
    assert!(outcome["withheld"]["rq/addRequest"].is_string(), "{outcome:#}");
    assert!(said.stderr.contains("leaves out rq/addRequest"), "{}", said.stderr);
    let said = run(&[&["replay", &file, "--topics", "rq/*"], &quick[..]].concat()).expect_code(0);
    assert!(said.stdout.starts_with("wrote 2 samples") && !said.stderr.contains("leaves out"), "{}", said.stderr);
}

#[test]
fn info_tells_of_the_chosen_topics_and_refuses_what_is_about_a_replay() {
    let (folder, tag) = (Folder::new("info"), tag());
    let file = folder.file("run.mcap");
    let recorder = start(&tag, &["record", "--output", &file, "--count", "2"]);
    for topic in ["chatter", "weather"] {
        publish(&tag, &[topic, "hello", "--count", "1"]).expect_code(0);
    }
    recorder.finish().expect_code(0);
    let told = |words: &[&str]| {
        let said = run(&[&["replay", &file, "--info", "--json"], words].concat()).expect_code(0);
        let told = serde_json::from_str::<Value>(&said.stdout).expect("JSON")[0]["channels"].take();
        let topics: Vec<String> = told
            .as_array()
            .expect("channels")
            .iter()
            .map(|one| one["topic"].as_str().expect("a name").to_owned())
            .collect();
        (topics, said.stderr)
    };
    assert_eq!(told(&["--topics", "chat*"]), (vec!["chatter".to_owned()], String::new()));
    let (topics, remarks) = told(&["--exclude", "chatter", "--exclude", "chaters"]);
    assert_eq!(topics, ["weather"]);
    assert!(remarks.contains("\"chaters\" fits none") && remarks.lines().count() == 1, "{remarks}");
    for words in [
        &["--loop"][..],
        &["--remap", "chatter=x"],
        &["--rate", "2"],
        &["--clock", "source"],
        &["--start", "1"],
        &["--wait", "1"],
    ] {
        let said = run(&[&["replay", &file, "--info"], words].concat()).expect_code(2);
        assert!(said.stderr.contains("--info") && said.stderr.contains(words[0]), "{}", said.stderr);
    }
    let words = ["replay", &file, "--topics", "chatter", "--topics", "chaters", "--wait", "0", "--domain-tag", &tag];
    let said = run(&words).expect_code(0);
    assert!(said.stderr.contains("\"chaters\" fits none of the files' topics"), "{}", said.stderr);
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Folder::new("refused");
    let file = folder.file("text.mcap");
    std::fs::write(&file, "a text that is long enough to be looked at").expect("written");
    let said = run(&["replay", &file, "--domain-tag", &tag()]).expect_code(1);
    assert!(said.stderr.contains("it is no MCAP file"), "{}", said.stderr);
}

#[test]
fn files_are_split_and_replayed_one_after_the_other() {
    let (folder, first, second) = (Folder::new("split"), tag(), tag());
    let recorder = start(&first, &["record", "--output", &folder.file("run.mcap"), "--split", "1K", "--count", "40"]);
    let words = ["chatter", "one", "two", "three", "four", "--count", "40", "--rate", "10"];
    publish(&first, &words).expect_code(0);
    let said = recorder.finish().expect_code(0);
    let mut files: Vec<&str> = said.stderr.lines().filter_map(|line| line.strip_prefix("wrote ")).collect();
    assert!(files.len() > 1 && files[0].ends_with("run_0.mcap"), "{}", said.stderr);
    let count: u64 = files.iter().map(|file| info(file)["channels"][0]["messages"].as_u64().unwrap_or(0)).sum();
    assert_eq!(count, 40);
    assert_eq!(verified(&files, 0)["writers"][0]["recorded"], 40);
    let faults = verified(&files[1..], 1)["faults"].take();
    assert!(faults.to_string().contains("give all files of a recording"), "{faults:#}");
    let subscriber = start(&second, &["sub", "chatter", "--count", "40", "--timeout", "50"]);
    files.extend(["--wait", "40", "--rate", "20", "--domain-tag", &second]);
    run(&[&["replay"], &files[..]].concat()).expect_code(0);
    let said = subscriber.finish().expect_code(0);
    assert_eq!(said.stdout, "one\ntwo\nthree\nfour\n".repeat(10));
}
