//! `top` beside writers of its domain.

use serde_json::Value;

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
