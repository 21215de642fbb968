//! Recordings between Thalweg and Python's mcap and rosbags, of topics of Thalweg and of Cyclone DDS.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{Program, Said};
use crate::{peer, thalweg};

fn python(what: &str, file: &Path) -> Said {
    let python = std::env::var("THALWEG_MCAP_PYTHON").expect("no Python with mcap: run `cargo xtask test recording`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/mcap-py/files.py");
    let mut command = Command::new(python);
    command.arg(script).arg(what).arg(file);
    Program::start("Python", &command).finish().well()
}

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("thalweg-mcap-{}-{name}.mcap", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[test]
fn what_we_record_of_ours_is_read_by_python() {
    let (domain, path) = (thalweg::domain(), file("ours"));
    let words = format!("record --output {} --count 4 --compress zstd", path.display());
    let recorder = thalweg::start(None, domain, &words);
    thalweg::start(None, domain, "pub rt/chatter hello --count 4 --rate 20").finish().well();
    recorder.finish().well();
    let lines: Vec<Value> = python("read", &path).objects().collect();
    let bag: Vec<Value> = python("read-bag", &path).objects().collect();
    let _ = std::fs::remove_file(&path);
    assert_eq!((bag.len(), &bag[0]["counted"]), (5, &4.into()), "{bag:#?}");
    for line in &bag[1..] {
        assert_eq!((&line["topic"], &line["type"]), (&"/chatter".into(), &"std_msgs/msg/String".into()));
        assert_eq!((&line["data"], &line["reliability"]), (&"hello".into(), &"RELIABLE".into()));
    }
    assert_eq!(lines[0]["counted"], 4, "{lines:#?}");
    assert!(lines[0]["chunks"].as_u64().is_some_and(|count| count > 0), "{lines:#?}");
    for (number, line) in (1..).zip(&lines[1..]) {
        assert_eq!((&line["topic"], &line["type"]), (&"/chatter".into(), &"std_msgs/msg/String".into()));
        assert_eq!((&line["data"], &line["sequence"]), (&"hello".into(), &number.into()));
    }
    assert_eq!(lines.len(), 5);
}

#[test]
fn what_we_record_of_cyclone_is_read_by_python_and_replayed_to_cyclone() {
    let (first, second, path) = (thalweg::domain(), thalweg::domain(), file("cyclone"));
    let recorder = thalweg::start(None, first, &format!("record --output {} --count 20", path.display()));
    let words = "pub --topic Square --type shape --count 20 --rate 50 --color RED --linger 2";
    peer::start(None, first, words).finish().well();
    recorder.finish().well();
    let lines: Vec<Value> = python("read", &path).objects().collect();
    assert_eq!((lines.len(), &lines[1]["type"], &lines[1]["schema"]), (21, &"ShapeType".into(), &"omgidl".into()));
    let subscriber = peer::start(None, second, "sub --topic Square --type shape --count 20 --timeout 80");
    let replay = format!("replay {} --wait 60", path.display());
    thalweg::start(None, second, &replay).finish().well();
    let said = subscriber.finish().well();
    let _ = std::fs::remove_file(&path);
    let got: Vec<i64> = said
        .objects()
        .filter(|object| object["event"] == "sample")
        .filter_map(|sample| sample["data"]["x"].as_i64())
        .collect();
    assert_eq!(got, (0..20).collect::<Vec<_>>());
}

#[test]
fn ends_of_instances_are_no_messages_to_python() {
    let (domain, path) = (thalweg::domain(), file("ends"));
    let recorder = thalweg::start(None, domain, &format!("record --output {} --count 3", path.display()));
    let words = "pub Square --type ShapeType RED,1,2,3 --count 2 --rate 20 --dispose";
    thalweg::start(None, domain, words).finish().well();
    recorder.finish().well();
    let lines: Vec<Value> = python("read", &path).objects().collect();
    let _ = std::fs::remove_file(&path);
    assert_eq!((lines.len(), &lines[0]["counted"]), (3, &2.into()), "{lines:#?}");
    assert!(lines[1..].iter().all(|line| line["topic"] == "Square"), "{lines:#?}");
}

#[test]
fn a_bag_that_python_writes_is_replayed() {
    let (domain, path) = (thalweg::domain(), file("theirs"));
    python("write", &path);
    let echo = thalweg::start(None, domain, "topic echo /chatter --json --count 5 --timeout 80 --patience 60");
    let replay = format!("replay {} --wait 60 --loop", path.display());
    let replay = thalweg::start(None, domain, &replay);
    let values: Vec<Value> = echo.finish().well().objects().collect();
    drop(replay);
    let _ = std::fs::remove_file(&path);
    assert_eq!(values.len(), 5);
    assert!(
        values.iter().all(|value| value["data"].as_str().is_some_and(|data| data.starts_with("word "))),
        "{values:?}"
    );
}

#[test]
fn a_bag_with_metadata_that_python_writes_is_replayed_and_verified() {
    let (domain, folder) = (thalweg::domain(), file("bag").with_extension(""));
    let _ = std::fs::remove_dir_all(&folder);
    python("write-bag", &folder);
    // What its writer kept for late readers reaches one that comes after all was written.
    let replay = format!("replay {} --wait 0 --acknowledge-timeout 60 --loop", folder.display());
    let replay = thalweg::start(None, domain, &replay);
    let words = "topic echo /chatter --json --count 5 --timeout 80 --patience 60";
    let values: Vec<Value> = thalweg::start(None, domain, words).finish().well().objects().collect();
    drop(replay);
    thalweg::start_alone(&format!("record verify {}", folder.display())).finish().well();
    let _ = std::fs::remove_dir_all(&folder);
    let is_word = |value: &Value| value["data"].as_str().is_some_and(|data| data.starts_with("word "));
    assert!(values.len() == 5 && values.iter().all(is_word), "{values:?}");
}
