//! What a newcomer is told who sees nothing.

use serde_json::Value;

use crate::program::{Running, command, run, tag};

#[test]
fn an_unknown_interface_is_an_error_that_lists_the_interfaces_there_are() {
    for words in [
        &["ls"][..],
        &["why", "chatter"],
        &["sub", "chatter"],
        &["pub", "chatter", "x"],
        &["doctor"],
        &["coap", "bridge", "--bind", "127.0.0.1:0"],
        &["perf", "latency"],
        &["perf", "throughput"],
        &["perf", "burst"],
    ] {
        let said = run(&[words, &["--interface", "eth7x", "--domain-tag", &tag()]].concat());
        assert!(said.code.is_some_and(|code| code != 0), "{words:?}: {} {}", said.stdout, said.stderr);
        for part in ["\"eth7x\"", "lo (127.0.0.1", "up, multicast)"] {
            assert!(said.stderr.contains(part), "{words:?}: {part:?} not in {}", said.stderr);
        }
    }
}

#[test]
fn ls_tells_host_process_and_program_of_each_participant_and_the_lease_that_it_was_given() {
    let tag = tag();
    let reader = Running::start(command(&["sub", "chatter", "--lease", "30s", "--domain-tag", &tag]));
    let listed = run(&["ls", "--json", "--domain-tag", &tag]).expect_code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let [member] = listed["participants"].as_array().expect("a list").as_slice() else { panic!("{listed:#}") };
    let host = thalweg_host::HostFiles::here().setting("kernel.hostname").expect("a name");
    assert_eq!(member["process_id"], reader.id().to_string());
    assert_eq!((&member["program"], &member["host"]), (&"thalweg".into(), &host.trim().into()));
    assert_eq!(member["lease_s"], 30.0);
    let text = run(&["ls", "--domain-tag", &tag]).expect_code(0).stdout;
    let expect = format!("\n  program thalweg, process {}, host {}\n", reader.id(), host.trim());
    assert!(text.contains(&expect), "{expect:?} not in {text}");
    reader.signal("TERM");
    reader.finish();
}

#[test]
fn an_impossible_lease_is_a_mistake_of_the_command_line() {
    for lease in ["500ms", "2000000s", "30", "soon"] {
        let said = run(&["ls", "--lease", lease]).expect_code(2);
        assert!(said.stderr.contains("--lease"), "{}", said.stderr);
    }
}

/// A domain that no other process of these tests is in, most likely.
fn domain(offset: u32) -> String {
    (1 + (std::process::id().wrapping_mul(31) + offset) % 230).to_string()
}

fn start(words: &[&str]) -> Running {
    Running::start(command(words))
}

fn end(running: Running) {
    running.signal("TERM");
    running.finish();
}

#[track_caller]
fn check_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
}

#[test]
fn ls_that_finds_nobody_tells_interfaces_multicast_and_who_is_in_other_domains() {
    let (here, there, tag) = (domain(0), domain(1), tag());
    let other = start(&["sub", "chatter", "--domain", &there, "--domain-tag", &tag, "--lease", "2s"]);
    let said = run(&["ls", "--json", "--domain", &here, "--survey", "3"]).expect_code(0).stdout;
    let listed: Value = serde_json::from_str(&said).expect("JSON");
    let found = &listed["nobody_found"];
    let interfaces = found["interfaces"].as_array().expect("a list");
    let lo = interfaces.iter().find(|one| one["name"] == "lo").expect("loopback");
    assert_eq!((&lo["used"], &lo["finding"]), (&true.into(), &"a multicast datagram came back".into()), "{found:#}");
    let heard = found["heard"].as_array().expect("a list").iter().find(|one| one["domain_tag"] == *tag);
    let heard = heard.unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(heard["domain"].to_string(), there);
    assert_eq!(heard["participants"][0]["process_id"], other.id().to_string());
    assert!(found["domains_listened"].as_u64().is_some_and(|count| count > 200), "{found:#}");
    let text = run(&["ls", "--domain", &here, "--survey", "3", "--interface", "lo"]).expect_code(0).stdout;
    check_contains(
        &text,
        &["No other participant is in domain", "\n  uses lo (127.0.0.1", " heard: ", "--peer ADDRESS"],
    );
    end(other);
    let quiet = run(&["ls", "--domain", &here, "--survey", "0", "--settle", "0.2"]).expect_code(0).stdout;
    assert!(!quiet.contains("uses lo"), "{quiet}");
}

#[test]
fn a_tag_a_group_and_a_name_that_nearly_fit_are_what_to_try_next() {
    let tag = tag();
    let reader = start(&["sub", "rt/chatter", "--domain-tag", &tag, "--group", "radar", "--lease", "2s"]);
    let words = ["pub", "chatter", "x", "--match-timeout", "3", "--domain-tag"];
    let said = run(&[&words[..], &[&tag]].concat()).expect_code(3).stderr;
    check_contains(&said, &["1 participant of other groups ignored: radar", "-> --group radar joins"]);
    let said = run(&[&words[..], &[&tag, "--group", "radar"]].concat()).expect_code(3).stderr;
    let advice = "-> did you mean \"rt/chatter\"? topics of ROS 2 begin with rt/ here";
    check_contains(&said, &["1 other participant in domain 0 with tag", "no writer and no reader of others", advice]);
    assert!(!said.contains("uses lo"), "the network works: {said}");
    let said = run(&["why", "Chatter", "--domain-tag", &tag, "--group", "*"]).expect_code(0).stdout;
    check_contains(&said, &["No endpoint uses it", "did you mean \"rt/chatter\"? "]);
    end(reader);
}

#[test]
fn a_reader_that_waits_for_writers_is_told_once_why_there_are_none() {
    let tag = tag();
    let words = ["sub", "chatter", "--domain-tag", &tag, "--survey", "2", "--timeout", "5", "--peer", "127.0.0.1:9"];
    let said = run(&words).expect_code(0).stderr;
    assert_eq!(said.matches("no writer of \"chatter\" was found yet").count(), 1, "{said}");
    check_contains(&said, &["uses lo", "nothing was found through --peer 127.0.0.1:9"]);
    let said = run(&["sub", "chatter", "--domain-tag", &tag, "--count", "1", "--timeout", "2"]).expect_code(3).stderr;
    check_contains(&said, &["no other participant in domain 0", "0 of 1 samples"]);
    let said = run(&["sub", "chatter", "--domain-tag", &tag, "--survey", "1", "--timeout", "3", "--no-multicast"]);
    check_contains(&said.expect_code(0).stderr, &["uses lo", "multicast is not used", "--peer ADDRESS"]);
}

#[test]
fn doctor_tells_types_and_partitions_of_a_topic_and_pub_why_they_keep_it_apart() {
    let tag = tag();
    let reader = start(&["sub", "chatter", "--domain-tag", &tag, "--qos", "partition=left,right"]);
    let text = run(&["doctor", "chatter", "--domain-tag", &tag, "--survey", "2"]).expect_code(0).stdout;
    check_contains(&text, &["1 reader of others", "types: std_msgs::msg::dds_::String_", "partitions: left, right"]);
    let words = ["pub", "chatter", "x", "--domain-tag", &tag, "--match-timeout", "3"];
    let said = run(&words).expect_code(3).stderr;
    check_contains(&said, &["partitions: left, right", "no partition fits: the writer is in the default one"]);
    assert!(!said.contains("--domain"), "the network and the domain are right: {said}");
    end(reader);
}

#[test]
fn doctor_names_what_keeps_the_writers_and_readers_of_a_topic_apart() {
    let tag = tag();
    let running = [
        // Named, so that none takes the type of who came before it.
        start(&["sub", "chatter", "--type", "string", "--domain-tag", &tag]),
        start(&["sub", "chatter", "--type", "bytes", "--domain-tag", &tag]),
        start(&[
            "pub",
            "chatter",
            "x",
            "--type",
            "string",
            "--qos",
            "reliability=best-effort",
            "--match-timeout",
            "40",
            "--domain-tag",
            &tag,
        ]),
    ];
    let words = ["doctor", "chatter", "--domain-tag", &tag, "--survey", "2"];
    let text = run(&words).expect_code(0).stdout;
    let parts = [
        "1 pair does not match, writer ",
        "\"thalweg::Bytes\"",
        ": RELIABILITY: offered BEST_EFFORT, requested RELIABLE",
        "-> thalweg why chatter tells type, QoS and partitions",
    ];
    check_contains(&text, &parts);
    let told = run(&[&words[..], &["--json"]].concat()).expect_code(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let pairs = told["topic"]["apart"].as_array().expect("a list").iter().map(|one| one["pairs"].as_u64());
    assert_eq!(pairs.collect::<Vec<_>>(), [Some(1), Some(1)], "{told:#}");
    running.into_iter().for_each(end);
}

#[test]
fn doctor_tells_the_network_also_where_somebody_is_found() {
    let tag = tag();
    let reader = start(&["sub", "rt/chatter", "--domain-tag", &tag]);
    let text = run(&["doctor", "/chatter", "--domain-tag", &tag, "--survey", "2"]).expect_code(0).stdout;
    check_contains(&text, &["topic \"rt/chatter\": no writer and 1 reader of others"]);
    let words = ["doctor", "rt/chater", "--domain-tag", &tag, "--survey", "2"];
    let text = run(&words).expect_code(0).stdout;
    check_contains(&text, &["1 other participant in domain 0", "uses lo", "did you mean \"rt/chatter\"?"]);
    let told: Value =
        serde_json::from_str(&run(&[&words[..], &["--json"]].concat()).expect_code(0).stdout).expect("JSON");
    assert_eq!((&told["participants"], &told["topic"]["similar"][0]["readers"]), (&1.into(), &1.into()), "{told:#}");
    end(reader);
    run(&["doctor", "--survey", "0"]).expect_code(2);
}

#[test]
fn a_limit_of_discovery_that_is_met_is_told_at_once_and_in_the_end() {
    let tag = tag();
    let readers = [start(&["coap", "bridge", "--sensors", "--bind", "127.0.0.1:0", "--domain-tag", &tag])];
    let words = ["ls", "--domain-tag", &tag, "--endpoints-max", "1"];
    let said = run(&words).expect_code(0);
    check_contains(&said.stderr, &["thalweg: participant ", "endpoints_per_participant_max", "discovery_limits"]);
    check_contains(
        &said.stdout,
        &["refused while listening", "of writers and readers found no room", "--endpoints-max"],
    );
    let told: Value =
        serde_json::from_str(&run(&[&words[..], &["--json"]].concat()).expect_code(0).stdout).expect("JSON");
    assert!(told["refused"]["endpoints_over_limit"].as_u64().is_some_and(|count| count > 0), "{told:#}");
    let said = run(&["why", "nothing", "--domain-tag", &tag, "--endpoints-max", "1"]).expect_code(0).stdout;
    check_contains(&said, &["of writers and readers found no room"]);
    let said = run(&["ls", "--domain-tag", &tag]).expect_code(0);
    assert!(
        !said.stdout.contains("found no room") && !said.stderr.contains("limit"),
        "{} {}",
        said.stdout,
        said.stderr
    );
    readers.into_iter().for_each(end);
}
