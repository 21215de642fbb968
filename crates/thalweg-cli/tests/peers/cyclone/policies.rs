//! Policies whose effect needs both ends, with Cyclone DDS at the other one.

use std::time::Duration;

use super::{events, peer_values, thalweg_values};
use crate::{peer, thalweg};

/// Waits for a line of the peer with this event in which `fits` holds.
#[track_caller]
fn expect(program: &mut crate::program::Program, event: &str, fits: impl Fn(&serde_json::Value) -> bool) {
    program.expect(event, |line| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        object["event"] == event && fits(&object)
    });
}

#[test]
fn a_stopped_writer_of_either_vendor_is_noticed_by_the_other_and_comes_back() {
    let domain = thalweg::domain();
    let mut reader = peer::start(None, domain, "sub --topic Square --count 100000 --lease 1");
    let words = "pub Square --type ShapeType --qos lease_ms=1000 --rate 1 --count 60 RED,1,2,3";
    let writer = thalweg::start(None, domain, words);
    expect(&mut reader, "liveliness", |status| status["alive"] == 1);
    writer.suspend();
    expect(&mut reader, "liveliness", |status| status["not_alive"] == 1);
    writer.resume();
    expect(&mut reader, "liveliness", |status| status["alive"] == 1 && status["not_alive"] == 0);
    writer.kill();
    reader.kill();
}

#[test]
fn a_writer_of_cyclone_by_topic_is_alive_while_it_writes() {
    for kind in ["manual-by-topic", "manual-by-participant"] {
        let domain = thalweg::domain();
        let shapes = format!("shapes -S -t Square -x 2 -d {domain}");
        let mut reader = thalweg::start_alone(&shapes);
        let words =
            format!("pub --topic Square --xcdr 2 --lease 1 --liveliness {kind} --count 20 --rate 10 --linger 6");
        let writer = peer::start(None, domain, &words);
        reader.expect_text("(alive = 1, not_alive = 0)");
        reader.expect_text("(alive = 0, not_alive = 1)");
        writer.kill();
        reader.kill();
    }
}

#[test]
fn a_writer_of_ours_by_topic_is_alive_for_cyclone_while_it_writes() {
    for kind in ["manual-by-topic", "manual-by-participant"] {
        let domain = thalweg::domain();
        let words = format!("sub --topic Square --count 100000 --lease 1 --liveliness {kind}");
        let mut reader = peer::start(None, domain, &words);
        let qos = format!("--qos lease_ms=1000 --qos liveliness={kind}");
        let writer = thalweg::start(None, domain, &format!("pub Square --type ShapeType {qos} --rate 0.1 RED,1,2,3"));
        expect(&mut reader, "sample", |_| true);
        expect(&mut reader, "liveliness", |status| status["not_alive"] == 1);
        writer.kill();
        reader.kill();
    }
}

#[test]
fn both_vendors_tell_of_a_deadline_that_passes() {
    let domain = thalweg::domain();
    let mut reader = peer::start(None, domain, "sub --topic Square --count 100000 --deadline 0.5");
    let words = "pub Square --type ShapeType --qos deadline_ms=500 --rate 0.5 --count 3 RED,1,2,3";
    let writer = thalweg::start(None, domain, words);
    expect(&mut reader, "deadline", |status| status["side"] == "requested");
    writer.kill();
    reader.kill();
    let domain = thalweg::domain();
    let mut reader = thalweg::start_alone(&format!("shapes -S -t Square -x 2 -f 500 -d {domain}"));
    let words = "pub --topic Square --xcdr 2 --deadline 0.5 --rate 0.5 --count 3";
    let writer = peer::start(None, domain, words);
    reader.expect_text("on_requested_deadline_missed()");
    assert!(!events(&writer.finish().well(), "deadline").is_empty());
    reader.kill();
}

#[test]
fn the_stronger_writer_wins_at_readers_of_either_vendor() {
    let domain = thalweg::domain();
    let ours = thalweg::start(
        None,
        domain,
        "sub Square --type ShapeType --json --count 60 --timeout 80 --qos ownership=exclusive",
    );
    let theirs = peer::start(None, domain, "sub --topic Square --count 60 --exclusive");
    let mut weak =
        peer::start(None, domain, "pub --topic Square --strength 1 --size 11 --rate 10 --count 400 --wait-matched 2");
    expect(&mut weak, "written", |written| written["sequence"] == 5);
    let words = "pub Square --type ShapeType --qos strength=4 --rate 10 --count 400 BLUE,1,2,44";
    let strong = thalweg::start(None, domain, words);
    for values in [thalweg_values(&ours.finish().well()), peer_values(&theirs.finish().well())] {
        let sizes: Vec<i64> = values.iter().filter_map(|value| value["shapesize"].as_i64()).collect();
        let taken_over = sizes.iter().position(|size| *size == 44).expect("the stronger writer is heard");
        assert!(taken_over > 0 && sizes[taken_over..].iter().all(|size| *size == 44), "{sizes:?}");
    }
    weak.kill();
    strong.kill();
}

#[test]
fn what_expired_at_our_writer_does_not_reach_a_late_reader_of_cyclone() {
    let domain = thalweg::domain();
    let early = peer::start(None, domain, "sub --topic Square --count 2 --transient-local");
    let qos = "--qos lifespan_ms=1500 --qos durability=transient-local";
    let words = format!("pub Square --type ShapeType {qos} --count 100 --rate 4 RED,1,2,3");
    let writer = thalweg::start(None, domain, &words);
    early.finish().well();
    std::thread::sleep(Duration::from_secs(5));
    let late = peer::start(None, domain, "sub --topic Square --count 100000 --transient-local --timeout 1");
    let held = peer_values(&late.finish());
    // One second of samples, and those that were still worth something: not all of the five seconds.
    assert!((1..=14).contains(&held.len()), "{} samples", held.len());
    writer.kill();
}
