//! Communication groups with Cyclone DDS, whose application sets the same USER_DATA.

use serde_json::{Value, json};

use crate::{peer, thalweg};

const FIVE: &str = "--topic chatter --type string --count 5";

fn five() -> Vec<Value> {
    (0..5).map(|index| json!({"data": format!("text {index}")})).collect()
}

#[test]
fn cyclone_takes_part_in_a_group_by_its_user_data() {
    let domain = thalweg::domain();
    let subscriber =
        thalweg::start(None, domain, "sub chatter --type string --json --count 5 --timeout 80 --group radar");
    let words = format!("pub {FIVE} --linger 1 --user-data enclave=/;groups=ops,radar;");
    let publisher = peer::start(None, domain, &words);
    let values: Vec<Value> =
        thalweg::samples(&subscriber.finish().well()).into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, five());
    publisher.finish().well();

    let domain = thalweg::domain();
    let subscriber = peer::start(None, domain, &format!("sub {FIVE} --timeout 80 --user-data groups=radar;"));
    let publisher = thalweg::start(None, domain, "pub chatter a b c d e --count 5 --group radar --group ops");
    let said = subscriber.finish().well();
    assert_eq!(said.objects().filter(|object| object["event"] == "sample").count(), 5);
    publisher.finish().well();
}

#[test]
fn cyclone_in_another_group_or_in_none_is_ignored() {
    for user_data in ["--user-data groups=ops;", ""] {
        let domain = thalweg::domain();
        let subscriber =
            thalweg::start(None, domain, "sub chatter --type string --json --count 1 --timeout 6 --group radar");
        let publisher = peer::start(None, domain, &format!("pub {FIVE} --timeout 4 {user_data}"));
        let listed = thalweg::start(None, domain, "ls --json --settle 3 --group radar").finish().well();
        let listed: Value = serde_json::from_str(&listed.lines.join("\n")).expect("JSON");
        assert_eq!(listed["ignored"].as_array().map(Vec::len), Some(1), "{listed:#}");
        assert_eq!(listed["ignored"][0]["vendor"], "Cyclone DDS");
        let said = publisher.finish();
        assert!(said.objects().any(|object| object["reason"] == "nobody matched"), "{}", said.lines.join("\n"));
        assert!(thalweg::samples(&subscriber.finish()).is_empty());
    }
}

#[test]
fn the_default_group_keeps_cyclone_without_groups() {
    let domain = thalweg::domain();
    let subscriber = thalweg::start(
        None,
        domain,
        "sub chatter --type string --json --count 5 --timeout 80 --group radar --group default",
    );
    let publisher = peer::start(None, domain, &format!("pub {FIVE} --linger 1"));
    assert_eq!(thalweg::samples(&subscriber.finish().well()).len(), 5);
    publisher.finish().well();
}
