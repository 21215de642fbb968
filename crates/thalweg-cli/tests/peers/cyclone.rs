//! Thalweg and Eclipse Cyclone DDS exchange data, both ways.

mod assignability;
mod lookups;
mod methods;
mod policies;
mod publish;
mod reception;
mod tools;

use std::time::Duration;

use serde_json::{Value, json};

use crate::program::{Program, Said};
use crate::{peer, thalweg};

/// What the peer printed for one kind of event.
fn events(said: &Said, event: &str) -> Vec<Value> {
    said.objects().filter(|object| object["event"] == event).collect()
}

/// The values of Cyclone's samples, in the order in which they were taken.
fn peer_values(said: &Said) -> Vec<Value> {
    events(said, "sample").iter().map(|sample| sample["data"].clone()).collect()
}

fn thalweg_values(said: &Said) -> Vec<Value> {
    thalweg::samples(said).into_iter().map(|(value, _)| value).collect()
}

/// The shapes that the peer writes with `--color RED --color BLUE`: colours in turn.
fn shapes(count: i64) -> Vec<Value> {
    let color = |index: i64| if index % 2 == 0 { "RED" } else { "BLUE" };
    (0..count).map(|x| json!({"color": color(x), "x": x, "y": 2 * x, "shapesize": 64})).collect()
}

/// The same values on Thalweg's command line.
fn shape_words(values: &[Value]) -> String {
    let word = |value: &Value| {
        format!("{},{},{},{}", value["color"].as_str().unwrap_or_default(), value["x"], value["y"], value["shapesize"])
    };
    values.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Values of one colour in their order; between instances a reader may promise none.
fn of_color(values: &[Value], color: &str) -> Vec<Value> {
    values.iter().filter(|value| value["color"] == color).cloned().collect()
}

#[track_caller]
fn assert_same_shapes(got: &[Value], expected: &[Value]) {
    for color in ["RED", "BLUE"] {
        assert_eq!(of_color(got, color), of_color(expected, color));
    }
}

#[track_caller]
fn check_shapes_from_cyclone(writer: &str, reader: &str) {
    let domain = thalweg::domain();
    let subscriber =
        thalweg::start(None, domain, &format!("sub Square --type ShapeType --json --count 20 --timeout 80 {reader}"));
    let words =
        format!("pub --topic Square --type shape --count 20 --rate 100 --color RED --color BLUE --linger 2 {writer}");
    let publisher = peer::start(None, domain, &words);
    assert_same_shapes(&thalweg_values(&subscriber.finish().well()), &shapes(20));
    publisher.finish().well();
}

#[track_caller]
fn check_shapes_to_cyclone(writer: &str, reader: &str) {
    let domain = thalweg::domain();
    let subscriber =
        peer::start(None, domain, &format!("sub --topic Square --type shape --count 20 --timeout 80 {reader}"));
    let words = format!("pub Square --type ShapeType --count 20 --rate 100 {writer} {}", shape_words(&shapes(20)));
    let publisher = thalweg::start(None, domain, &words);
    assert_same_shapes(&peer_values(&subscriber.finish().well()), &shapes(20));
    publisher.finish().well();
}

#[test]
fn a_topic_of_cyclone_is_read_without_knowing_its_type() {
    let domain = thalweg::domain();
    let words = "pub --topic Square --type shape --count 200 --rate 20 --color RED --linger 2";
    let publisher = peer::start(None, domain, words);
    let echo = thalweg::start(None, domain, "topic echo Square --json --count 5 --timeout 80 --patience 60");
    let said = echo.finish().well();
    let values: Vec<Value> = said.objects().collect();
    assert_eq!(values.len(), 5, "{values:?}");
    assert!(values.iter().all(|value| value["color"] == "RED" && value["y"] == 2 * value["x"].as_i64().unwrap_or(-1)));
    publisher.finish().well();
}

#[test]
fn keyed_reliable_samples_cross_in_xcdr1() {
    check_shapes_from_cyclone("--xcdr 1", "");
    check_shapes_to_cyclone("", "--xcdr 1");
}

#[test]
fn keyed_reliable_samples_cross_in_xcdr2() {
    check_shapes_from_cyclone("--xcdr 2", "--qos representation=xcdr2");
    check_shapes_to_cyclone("--qos representation=xcdr2", "--xcdr 2");
}

/// Best effort promises neither the first nor the last sample, but order and truth.
#[track_caller]
fn assert_rising_shapes(got: &[Value]) {
    let written = shapes(300);
    let positions: Vec<Option<usize>> =
        got.iter().map(|value| written.iter().position(|other| other == value)).collect();
    assert!(got.len() >= 20 && positions.iter().all(Option::is_some), "not as it was written: {got:?}");
    for color in ["RED", "BLUE"] {
        let of_color = of_color(got, color);
        assert!(
            of_color.is_sorted_by(|one, next| one["x"].as_i64() < next["x"].as_i64()),
            "out of order: {of_color:?}"
        );
    }
}

#[track_caller]
fn check_best_effort(offered_by_cyclone: &str, offered_by_thalweg: &str) {
    let domain = thalweg::domain();
    let words = "sub Square --type ShapeType --json --count 20 --timeout 80 --qos reliability=best-effort";
    let subscriber = thalweg::start(None, domain, words);
    let words = format!("pub --topic Square --count 300 --rate 100 --color RED --color BLUE {offered_by_cyclone}");
    let publisher = peer::start(None, domain, &words);
    assert_rising_shapes(&thalweg_values(&subscriber.finish().well()));
    publisher.finish().well();

    let domain = thalweg::domain();
    let subscriber = peer::start(None, domain, "sub --topic Square --count 20 --timeout 80 --best-effort");
    let values = shape_words(&shapes(300));
    let words = format!("pub Square --type ShapeType --count 300 --rate 100 {offered_by_thalweg} {values}");
    let publisher = thalweg::start(None, domain, &words);
    assert_rising_shapes(&peer_values(&subscriber.finish().well()));
    publisher.finish().well();
}

#[test]
fn best_effort_samples_cross() {
    check_best_effort("--best-effort", "--qos reliability=best-effort");
}

#[test]
fn a_reliable_writer_serves_a_best_effort_reader() {
    check_best_effort("", "");
}

#[test]
fn strings_cross_without_a_key() {
    let domain = thalweg::domain();
    let subscriber = thalweg::start(None, domain, "sub chatter --type string --json --count 5 --timeout 80");
    let publisher = peer::start(None, domain, "pub --topic chatter --type string --count 5 --linger 1");
    let expected: Vec<Value> = (0..5).map(|index| json!({"data": format!("text {index}")})).collect();
    assert_eq!(thalweg_values(&subscriber.finish().well()), expected);
    publisher.finish().well();

    let domain = thalweg::domain();
    let subscriber = peer::start(None, domain, "sub --topic chatter --type string --count 2 --timeout 80");
    let publisher = thalweg::start(None, domain, "pub chatter hello world --count 2");
    assert_eq!(peer_values(&subscriber.finish().well()), [json!({"data": "hello"}), json!({"data": "world"})]);
    publisher.finish().well();
}

/// Unkeyed octets of this size, both ways, in this representation.
#[track_caller]
fn check_octets(size: usize, xcdr: u8) {
    let representation = format!("--qos representation=xcdr{xcdr}");
    let domain = thalweg::domain();
    let words = format!("sub octets --type bytes --json --count 3 --timeout 80 {representation}");
    let subscriber = thalweg::start(None, domain, &words);
    let words = format!("pub --topic octets --type bytes --size {size} --count 3 --xcdr {xcdr} --linger 2");
    let publisher = peer::start(None, domain, &words);
    for (first, value) in (0..).zip(thalweg_values(&subscriber.finish().well())) {
        let digits: String = thalweg::octets(first, size).iter().map(|octet| format!("{octet:02x}")).collect();
        assert!(value["data"] == format!("0x{digits}"), "sample {first} of {size} B came in another shape");
    }
    publisher.finish().well();

    let domain = thalweg::domain();
    let words = format!("sub --topic octets --type bytes --count 3 --timeout 80 --xcdr {xcdr}");
    let subscriber = peer::start(None, domain, &words);
    let files: Vec<String> = (0..3).map(|first| format!("@{}", thalweg::octets_file(first, size).display())).collect();
    let words = format!("pub octets --type bytes --count 3 {representation} {}", files.join(" "));
    let publisher = thalweg::start(None, domain, &words);
    let got = peer_values(&subscriber.finish().well());
    let expected: Vec<Value> = (0..3)
        .map(|first| json!({"length": size, "first": first, "crc32": crc32(&thalweg::octets(first, size))}))
        .collect();
    assert_eq!(got, expected);
    publisher.finish().well();
}

/// The checksum that Python's zlib computes.
fn crc32(octets: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !octets.iter().fold(!0, |crc, octet| (0..8).fold(crc ^ u32::from(*octet), step))
}

#[test]
fn samples_from_64_octets_to_one_megabyte_cross_unchanged() {
    for (size, xcdr) in [(64, 1), (1000, 2), (65_536, 1), (100_000, 2), (1_000_000, 1)] {
        check_octets(size, xcdr);
    }
}

#[test]
fn a_late_reader_gets_what_a_transient_local_writer_kept() {
    let domain = thalweg::domain();
    let words = "pub --topic Square --count 10 --transient-local --wait-matched 0 --settle 0 --linger 12";
    let mut publisher = peer::start(None, domain, words);
    publisher.expect_text("\"sequence\": 9");
    let words = "sub Square --type ShapeType --json --count 10 --timeout 80 --qos durability=transient-local";
    let values = thalweg_values(&thalweg::start(None, domain, words).finish().well());
    assert_eq!(
        values.iter().map(|value| value["x"].as_i64()).collect::<Vec<_>>(),
        (0..10).map(Some).collect::<Vec<_>>()
    );
    publisher.kill();

    let domain = thalweg::domain();
    let values = shape_words(&shapes(100));
    let words = format!("pub Square --type ShapeType --readers 0 --rate 10 --qos durability=transient-local {values}");
    let publisher = thalweg::start(None, domain, &words);
    std::thread::sleep(Duration::from_secs(2));
    let said =
        peer::start(None, domain, "sub --topic Square --count 30 --timeout 80 --transient-local").finish().well();
    // It takes all that is there, which may be more than 30.
    let values = peer_values(&said);
    assert_same_shapes(&values, &shapes(values.len() as i64));
    publisher.interrupt();
}

#[test]
fn a_late_reader_gets_what_a_killed_persistent_writer_stored() {
    let domain = thalweg::domain();
    let place = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stored-{}", std::process::id()));
    let (store, file) = (place.with_extension("store"), place.with_extension("toml"));
    let configuration = format!("[participant]\nstore = {:?}\n", store.display().to_string());
    let start = |words: &str| thalweg::start_configured((&file, &configuration), domain, words);
    // So many that the first one does not come again before the writer is killed.
    let values = format!("RED,1,2,3 RED,2,2,3{}", " BLUE,3,4,5".repeat(100));
    let publisher =
        start(&format!("pub Square --type ShapeType --readers 0 --rate 10 --qos durability=persistent {values}"));
    std::thread::sleep(Duration::from_secs(2));
    publisher.kill();
    let serving = start("sub Other --timeout 80");
    let said = peer::start(None, domain, "sub --topic Square --count 2 --timeout 80 --transient-local").finish().well();
    let values = peer_values(&said);
    let got = |color: &str| of_color(&values, color).iter().map(|value| value["x"].as_i64()).collect::<Vec<_>>();
    assert_eq!((got("RED"), got("BLUE")), (vec![Some(2)], vec![Some(3)]), "the newest value of each instance");
    serving.kill();
    _ = (std::fs::remove_file(&store), std::fs::remove_file(&file));
}

#[test]
fn a_volatile_reader_that_comes_late_gets_no_history() {
    let domain = thalweg::domain();
    let mut publisher = peer::start(
        None,
        domain,
        "pub --topic Square --count 40 --rate 10 --transient-local --wait-matched 0 --settle 0 --linger 3",
    );
    publisher.expect_text("\"sequence\": 9");
    let said =
        thalweg::start(None, domain, "sub Square --type ShapeType --json --count 5 --timeout 80").finish().well();
    let first = thalweg_values(&said)[0]["x"].as_i64().expect("a number");
    assert!(first >= 5, "a sample from before the reader came: {first}");
    publisher.finish().well();
}

/// Waits until the program has said of every colour that its instance is in this state. The news may come with a sample
/// that was not taken yet, or by itself.
#[track_caller]
fn expect_states(program: &mut Program, state: &str) {
    let mut missing = vec!["RED", "BLUE"];
    while !missing.is_empty() {
        let line = program.expect(state, |line| line.contains(state));
        missing.retain(|color| !line.contains(color));
    }
}

#[track_caller]
fn check_end_of_instances(option: &str, state: &str) {
    let domain = thalweg::domain();
    let mut subscriber = thalweg::start(None, domain, "sub Square --type ShapeType --json");
    let words = format!("pub --topic Square --count 4 --rate 5 --color RED --color BLUE {option} --linger 3");
    let publisher = peer::start(None, domain, &words);
    expect_states(&mut subscriber, state);
    publisher.finish().well();

    let domain = thalweg::domain();
    let mut subscriber = peer::start(None, domain, "sub --topic Square --count 100 --timeout 80");
    let words = format!("pub Square --type ShapeType --count 4 --rate 5 {option} {}", shape_words(&shapes(4)));
    let publisher = thalweg::start(None, domain, &words);
    expect_states(&mut subscriber, state);
    publisher.finish().well();
}

#[test]
fn disposed_instances_are_disposed_on_the_other_side() {
    check_end_of_instances("--dispose", "NOT_ALIVE_DISPOSED");
}

#[test]
fn unregistered_instances_have_no_writers_on_the_other_side() {
    check_end_of_instances("--unregister", "NOT_ALIVE_NO_WRITERS");
}

#[test]
fn partitions_match_by_name_and_by_wildcard() {
    check_shapes_from_cyclone("--partition sensors.front", "--qos partition=sensors.*");
    check_shapes_to_cyclone("--qos partition=sensors.front", "--partition sensors.*");
    check_shapes_from_cyclone("--partition left --partition right", "--qos partition=right");
}

#[test]
fn disjoint_partitions_keep_silent() {
    let domain = thalweg::domain();
    let subscriber = peer::start(None, domain, "sub --topic Square --count 1 --timeout 4 --partition left");
    let publisher = thalweg::start(
        None,
        domain,
        "pub Square --type ShapeType RED,1,2,3 --count 1 --match-timeout 3 --qos partition=right",
    );
    assert_eq!(publisher.finish().status.code(), Some(3));
    let said = subscriber.finish();
    assert!(peer_values(&said).is_empty() && events(&said, "incompatible").is_empty(), "{:#?}", said.lines);
}

/// Both sides must report that the policy does not fit, and no sample may pass.
#[track_caller]
fn check_mismatch(cyclone: &str, thalweg_words: &str, policies: &[u64], name: &str) {
    let domain = thalweg::domain();
    let mut ours = thalweg::start(None, domain, thalweg_words);
    let theirs = peer::start(None, domain, cyclone);
    let line = ours.expect("report", |line| line.to_uppercase().contains(name));
    assert!(line.starts_with("! "), "a report belongs on standard error: {line}");
    let said = theirs.finish();
    let reports = events(&said, "incompatible");
    let right = reports.iter().any(|report| report["policy"].as_u64().is_some_and(|policy| policies.contains(&policy)));
    assert!(right && peer_values(&said).is_empty(), "{:#?}", said.lines);
}

#[test]
fn a_reliability_mismatch_is_reported_on_both_sides() {
    check_mismatch(
        "sub --topic Square --timeout 4",
        "pub Square --type ShapeType RED,1,2,3 --match-timeout 5 --qos reliability=best-effort",
        &[11],
        "RELIABILITY",
    );
    check_mismatch(
        "pub --topic Square --timeout 4 --best-effort",
        "sub Square --type ShapeType --timeout 5",
        &[11],
        "RELIABILITY",
    );
}

#[test]
fn a_representation_mismatch_is_reported_on_both_sides() {
    // Cyclone numbers this policy 25, the specification 23.
    check_mismatch(
        "sub --topic Square --timeout 4 --xcdr 2",
        "pub Square --type ShapeType RED,1,2,3 --match-timeout 5 --qos representation=xcdr1",
        &[23, 25],
        "REPRESENTATION",
    );
    check_mismatch(
        "pub --topic Square --timeout 4 --xcdr 2",
        "sub Square --type ShapeType --timeout 5 --qos representation=xcdr1",
        &[23, 25],
        "REPRESENTATION",
    );
}

#[test]
fn ls_names_the_peer_its_vendor_and_its_endpoints() {
    let domain = thalweg::domain();
    let mut peer = peer::start(None, domain, "sub --topic Square --timeout 80 --partition front");
    peer.expect_text("ready");
    let said = thalweg::start(None, domain, "ls --json").finish().well();
    let text = said.lines.join("\n");
    for word in ["Cyclone", "Square", "ShapeType", "front"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn a_busy_topic_loses_nothing_in_either_direction() {
    let domain = thalweg::domain();
    let subscriber = thalweg::start(None, domain, "sub Square --type ShapeType --json --count 2000 --timeout 80");
    let publisher = peer::start(None, domain, "pub --topic Square --count 2000 --color RED --color BLUE --linger 1");
    assert_same_shapes(&thalweg_values(&subscriber.finish().well()), &shapes(2000));
    publisher.finish().well();

    let domain = thalweg::domain();
    let subscriber = peer::start(None, domain, "sub --topic Square --count 2000 --timeout 80");
    let words = format!("pub Square --type ShapeType --rate 0 --count 2000 {}", shape_words(&shapes(2)));
    let publisher = thalweg::start(None, domain, &words);
    assert_eq!(peer_values(&subscriber.finish().well()).len(), 2000);
    publisher.finish().well();
}
