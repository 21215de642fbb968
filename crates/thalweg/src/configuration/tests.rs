use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use thalweg_rtps::qos::{Destination, Durability, History, Method, Reliability};
use thalweg_rtps::time::INFINITE;

use super::*;

const EXAMPLE: &str = r#"
domain = 7

[participant]
name = "rover"
peers = ["10.0.0.2"]
lease = "5s"

[network]
multicast = false

[limits]
participants = 12

[profile.base]
reliability = "reliable"
history = "keep_all"

[profile.latched]
inherits = ["base"]
durability = "transient_local"
history = "keep_last"
depth = 5

[profile.bulk]
inherits = ["latched", "base"]
method = "asynchronous"
flow_controller = "slow"
destination = "unicast"

[[topic]]
name = "rt/map*"
profile = "latched"

[[topic]]
name = "rt/*"
writer_profile = "bulk"
"#;

fn parse(text: &str) -> Configuration {
    Configuration::parse(text, "robot.toml").unwrap()
}

#[track_caller]
fn check_refused(text: &str, expect: &str) {
    let error = Configuration::parse(text, "robot.toml").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadParameter);
    let told = error.to_string();
    assert!(told.contains(expect), "{told:?} does not say {expect:?}");
}

fn with(variables: &[(&str, &str)], text: &str) -> Result<Configuration, Error> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    parse(text).with_variables(|name| variables.get(name).map(|value| (*value).into()))
}

#[test]
fn a_profile_sets_what_it_names_and_what_it_inherits() {
    let configuration = parse(EXAMPLE);
    let map = configuration.writer_qos("rt/map_server", &WriterQos::default());
    assert_eq!((map.durability, map.history), (Durability::TransientLocal, History::KeepLast(5)));
    assert_eq!(map.transmission, WriterQos::default().transmission);
    let reader = configuration.reader_qos("rt/map_server", &ReaderQos::default());
    assert_eq!((reader.reliability.is_reliable(), reader.history), (true, History::KeepLast(5)));
    let bulk = configuration.writer_qos("rt/cloud", &WriterQos::default());
    assert_eq!(bulk.history, History::KeepAll, "the later name comes before the earlier one");
    assert_eq!(bulk.durability, Durability::TransientLocal);
    assert_eq!(bulk.transmission.method, Method::asynchronous("slow"));
    assert_eq!(bulk.transmission.destination, Destination::Unicast);
    assert_eq!(configuration.reader_qos("rt/cloud", &ReaderQos::default()), ReaderQos::default());
    assert_eq!(configuration.writer_qos("other", &WriterQos::default()), WriterQos::default());
}

#[test]
fn only_stars_and_question_marks_of_a_rule_stand_for_others() {
    #[track_caller]
    fn check(rule: &str, topic: &str, expect: bool) {
        let text = format!("[profile.p]\ndepth = 9\n[[topic]]\nname = '{rule}'\nprofile = \"p\"");
        let history = parse(&text).writer_qos(topic, &WriterQos::default()).history;
        assert_eq!(history == History::KeepLast(9), expect, "{rule:?} {topic:?}");
    }
    check("cam*", "camera[0]", true);
    check("camera[?]", "camera[0]", true);
    check("camera[0]", "camera[0]", true);
    check("camera[0]", "camera0", false);
    check("a\\b", "a\\b", true);
    check("a\\b", "ab", false);
    check("camera", "cam*", false);
    check("cam*", "cam?", true);
}

#[test]
fn what_a_profile_does_not_name_stays_as_the_program_set_it() {
    let configuration =
        parse("[profile.p]\nmax_blocking_time = \"2s\"\ndepth = 9\n[[topic]]\nname = \"*\"\nprofile = \"p\"");
    let own = WriterQos { history: History::KeepAll, transport_priority: 3, ..WriterQos::default() };
    let qos = configuration.writer_qos("t", &own);
    assert_eq!(qos.reliability, Reliability::Reliable { max_blocking_time: Duration::from_secs(2) });
    assert_eq!((qos.history, qos.transport_priority), (History::KeepAll, 3), "a depth does not make it KEEP_LAST");
}

#[test]
fn a_kind_that_the_program_has_set_stays_with_its_times_and_names() {
    let text = |method: &str| {
        format!(
            "[profile.p]\nreliability = \"reliable\"\nmethod = \"{method}\"\n[[topic]]\nname = \"*\"\nprofile = \"p\""
        )
    };
    let patient = Reliability::Reliable { max_blocking_time: Duration::from_secs(30) };
    let mut own = WriterQos { reliability: patient, ..WriterQos::default() };
    own.transmission.method = Method::asynchronous("slow");
    assert_eq!(parse(&text("asynchronous")).writer_qos("t", &own), own);
    let read = ReaderQos { reliability: patient, ..ReaderQos::default() };
    assert_eq!(parse(&text("batch")).reader_qos("t", &read), read);
    assert_eq!(parse(&text("batch")).writer_qos("t", &own).transmission.method, Method::batch());
}

#[test]
fn a_mistake_is_told_with_file_line_and_the_nearest_key() {
    check_refused("domain = 1\ndomian = 2", "robot.toml:2:1: \"domian\" is unknown: did you mean \"domain\"?");
    check_refused("[network]\n\nmultcast = true", "robot.toml:3:1: \"multcast\" is unknown in [network]");
    check_refused("[profile.a]\nrelaibility = \"reliable\"", "did you mean \"reliability\"?");
    check_refused("[[topic]]\nnmae = \"a\"", "robot.toml:2:1: \"nmae\" is unknown in [topic]: did you mean \"name\"?");
    check_refused("[limits]\nzzzzzzzzzz = 1", "allowed: participants, endpoints_per_participant");
    check_refused("domain = 233", "robot.toml:1:10: domain: 233 is not within 0 to 232");
    check_refused("domain = \"a\"", "domain: a whole number from 0 to 232 is needed, not the text \"a\"");
    check_refused("[limits]\nparticipants = 0", "robot.toml:2:16: participants: 0 is not within 1 to");
    check_refused(
        "[profile.a]\nreliability = \"relieable\"",
        "\"relieable\" is no choice; allowed: best_effort, reliable",
    );
    check_refused("[profile.a]\ndeadline = \"1 fortnight\"", "a duration is a whole number with its unit");
    check_refused("[participant]\nlease = \"1\"", "robot.toml:2:9: lease: \"1\" is none; a duration is");
    check_refused("[profile.a]\ndepth = 0", "robot.toml:2:9: depth: 0 is given; the least is 1");
    check_refused("[profile.a]\nhistory = 3", "history: a text is needed");
    check_refused(
        "[profile.a]\ndepth = 1.5",
        "depth: a text, a whole number, true, false or a list of texts is needed",
    );
    check_refused("[profile.a]\ntransport_priority = -99999999999", "transport_priority: -99999999999 is out of range");
    check_refused("[[topic]]\nname = \"a\"\nprofile = \"b\"", "robot.toml:3:11: no profile is named \"b\"");
    check_refused("[[topic]]\nname = \"a\"", "topic: \"a\" names no profile");
    check_refused("[[topic]]\nprofile = \"a\"", "[topic] needs \"name\"");
    check_refused("topic = 1", "write [[topic]]");
    check_refused("[topic]\nname = \"a\"", "write [[topic]]");
    check_refused("a = \n", "robot.toml:1:5: ");
    check_refused("[profile.a]\ninherits = [\"b\"]\n[profile.b]\ninherits = [\"a\"]", "in a circle");
    check_refused("[profile.a]\ninherits = [\"c\"]", "robot.toml:2:13: no profile is named \"c\"");
}

#[test]
fn durations_have_units() {
    for (text, expect) in [
        ("250us", Duration::from_micros(250)),
        ("100ms", Duration::from_millis(100)),
        ("3min", Duration::from_secs(180)),
        ("1h", Duration::from_secs(3600)),
        ("7ns", Duration::from_nanos(7)),
        ("infinite", INFINITE),
    ] {
        assert_eq!(document::duration(text), Ok(expect), "{text}");
    }
    for text in ["", "s", "1", "-1s", "+1s", "1.5s", "99999999999999999999s", "999999999999h"] {
        assert!(document::duration(text).is_err(), "{text}");
    }
}

#[test]
fn a_duration_is_told_as_it_may_be_given() {
    for (text, expect) in [
        ("1500ms", "1500ms"),
        ("60s", "1min"),
        ("90min", "90min"),
        ("5000us", "5ms"),
        ("3600s", "1h"),
        ("7ns", "7ns"),
        ("infinite", "infinite"),
    ] {
        let settings = parse(&format!("[participant]\nlease = \"{text}\"")).settings();
        let told = settings.into_iter().find(|setting| setting.key == "participant.lease").expect("it is told").value;
        assert_eq!(told, format!("\"{expect}\""));
        assert_eq!(document::duration(expect), document::duration(text));
    }
}

#[test]
fn the_environment_comes_before_the_file_and_thalwegs_before_that_of_ros() {
    assert_eq!(with(&[], EXAMPLE).unwrap().domain(), 7);
    assert_eq!(with(&[("ROS_DOMAIN_ID", "8")], EXAMPLE).unwrap().domain(), 8);
    assert_eq!(with(&[("ROS_DOMAIN_ID", "8"), ("THALWEG_DOMAIN", "9")], EXAMPLE).unwrap().domain(), 9);
    assert!(with(&[("THALWEG_DOMAIN", "233")], "").unwrap_err().to_string().contains("THALWEG_DOMAIN is \"233\""));
}

#[test]
fn a_variable_that_is_not_utf_8_is_refused_and_as_the_path_of_a_file_it_is_used() {
    let value = || OsString::from_vec(b"/nowhere/robot\xff.toml".to_vec());
    for name in ["THALWEG_DOMAIN", "ROS_DOMAIN_ID", "ROS_STATIC_PEERS", "ROS_AUTOMATIC_DISCOVERY_RANGE"] {
        let error = Configuration::new().with_variables(|asked| (asked == name).then(value)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadParameter);
        let told = error.to_string();
        assert!(told.contains(&format!("{name} is \"/nowhere/robot")) && told.contains("it is not UTF-8"), "{told}");
    }
    let error = Configuration::from_variables(|asked| (asked == "THALWEG_CONFIG").then(value)).unwrap_err();
    assert!(error.to_string().contains("cannot read /nowhere/robot"), "{error}");
}

#[test]
fn the_discovery_range_of_ros_limits_who_is_met() {
    let range = |range: &str, peers: &str| {
        let variables = [("ROS_AUTOMATIC_DISCOVERY_RANGE", range), ("ROS_STATIC_PEERS", peers)];
        let settings = with(&variables, "").unwrap();
        let settings = settings.participant();
        let network = &settings.network;
        (
            network.loopback_only.value,
            network.multicast.value,
            settings.peers.value.len(),
            settings.domain_tag.value.is_empty(),
        )
    };
    assert_eq!(range("SUBNET", ""), (false, true, 0, true));
    // A static peer of a program, or a participant elsewhere that has this host as its peer, needs the other interfaces.
    assert_eq!(range("LOCALHOST", ""), (false, false, 0, true));
    assert_eq!(range("LOCALHOST", "10.0.0.1; 10.0.0.2"), (false, false, 2, true));
    assert_eq!(range("OFF", "10.0.0.1"), (true, false, 0, false));
    assert!(with(&[("ROS_AUTOMATIC_DISCOVERY_RANGE", "HOME")], "").is_err());
}

#[test]
fn every_setting_tells_where_it_came_from() {
    let configuration = with(&[("ROS_DOMAIN_ID", "8")], EXAMPLE).unwrap();
    let settings = configuration.settings();
    let told = |key: &str| {
        let setting = settings.iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{key} is missing"));
        format!("{} {}", setting.value, setting.origin)
    };
    assert_eq!(told("domain"), "8 ROS_DOMAIN_ID");
    assert_eq!(told("participant.name"), "\"rover\" robot.toml:5");
    assert_eq!(told("participant.lease"), "\"5s\" robot.toml:7");
    assert_eq!(told("network.ipv6"), "true default");
    assert_eq!(told("limits.participants"), "12 robot.toml:13");
    assert_eq!(told("limits.bytes"), format!("{} default", 128 << 20));
    assert_eq!(told("profile.bulk.durability"), "\"transient_local\" robot.toml:21");
    assert_eq!(told("topic.\"rt/*\".writer_profile"), "\"bulk\" robot.toml:35");
    let topic = configuration.topic_settings("rt/map");
    assert!(topic.iter().any(|setting| setting.key == "reader.depth" && setting.value == "5"), "{topic:?}");
    assert!(!configuration.topic_settings("rt/cloud").iter().any(|setting| setting.key.starts_with("reader")));
}

#[test]
fn every_key_of_the_documentation_is_known_and_the_other_way_round() {
    let documented = include_str!("mod.rs");
    for key in profiles::QOS_KEYS {
        assert!(documented.contains(&format!("`{key}`")), "{key} is not documented");
    }
}
