use super::*;

fn interface(name: &str, used: bool, multicast_works: Option<bool>) -> InterfaceView {
    InterfaceView {
        name: name.to_owned(),
        addresses: vec!["192.0.2.7".to_owned()],
        up: used,
        multicast: true,
        used,
        multicast_works,
        finding: "as found".to_owned(),
    }
}

fn heard(domain: u32, domain_tag: &str, count: usize) -> HeardView {
    let participant = |n: usize| HeardParticipantView {
        guid_prefix: format!("{n:024x}"),
        vendor: "Cyclone DDS".to_owned(),
        name: "arm".to_owned(),
        host: None,
        process_id: Some(n.to_string()),
        program: None,
        address: "192.0.2.9".to_owned(),
    };
    HeardView { domain, domain_tag: domain_tag.to_owned(), participants: (0..count).map(participant).collect() }
}

/// A participant alone in domain 0, on a network where multicast works.
fn alone() -> NobodyFound {
    NobodyFound {
        domain: 0,
        domain_tag: String::new(),
        participants: 0,
        topic: None,
        multicast: true,
        peers: Vec::new(),
        interfaces: vec![interface("eth0", true, Some(true)), interface("wlan0", false, None)],
        listened_s: 6.0,
        domains_listened: 233,
        heard: Vec::new(),
        ignored: 0,
        other_groups: Vec::new(),
        advice: Vec::new(),
    }
}

#[track_caller]
fn check(mut found: NobodyFound, parts: &[&str], absent: &[&str]) {
    found.advice = found.advise();
    let text = found.to_text();
    for part in parts {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
    for part in absent {
        assert!(!text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn interfaces_are_told_with_what_was_found_and_peers_advised_where_nobody_is_heard() {
    let lines = [
        "no other participant in domain 0\n",
        "\n  uses eth0 (192.0.2.7): as found\n",
        "\n  leaves out wlan0 (192.0.2.7): as found\n",
        "\n  no participant heard in any of 233 domains within 6 s\n",
        "--peer ADDRESS",
    ];
    check(alone(), &lines, &["make multicast work"]);
    let failing = vec![interface("eth0", true, Some(false))];
    check(NobodyFound { interfaces: failing, ..alone() }, &["-> make multicast work on eth0"], &[]);
    let down = vec![interface("eth0", false, None)];
    check(NobodyFound { interfaces: down, ..alone() }, &["-> no interface can be used: bring one up"], &["--peer"]);
    let peers = vec!["192.0.2.8".to_owned()];
    let ports = "through --peer 192.0.2.8: check the address, that a participant of this domain runs there, and that UDP \
                 ports 7400 to 7475 pass";
    check(NobodyFound { peers, ..alone() }, &[ports], &[]);
    check(
        NobodyFound { multicast: false, ..alone() },
        &["without multicast, participants are discovered"],
        &["no participant heard"],
    );
}

#[test]
fn who_is_heard_elsewhere_is_named_with_the_option_that_leads_there() {
    let domain = NobodyFound { heard: vec![heard(3, "", 2)], ..alone() };
    let line = "  domain 3: 2 participants heard: Cyclone DDS \"arm\" process 0 at 192.0.2.9, Cyclone DDS";
    check(domain, &[line, "-> --domain 3 discovers these participants"], &["no participant heard"]);
    let tag = NobodyFound { heard: vec![heard(0, "lab", 1)], ..alone() };
    check(tag, &["domain 0 with tag \"lab\": 1 participant heard", "-> --domain-tag lab discovers"], &["--domain 0"]);
    let untagged = NobodyFound { domain_tag: "lab".to_owned(), heard: vec![heard(0, "", 1)], ..alone() };
    check(untagged, &["in domain 0 with tag \"lab\"", "-> leave out --domain-tag"], &[]);
    let both = NobodyFound { heard: vec![heard(3, "lab", 1)], ..alone() };
    check(both, &["-> --domain 3 --domain-tag lab discovers these participants"], &[]);
    let silent = NobodyFound { heard: vec![heard(0, "", 1)], ..alone() };
    check(silent, &["-> participants of this domain are heard, but do not answer: let unicast UDP"], &[]);
    let many = NobodyFound { heard: (1..=20).map(|domain| heard(domain, "", 9)).collect(), ..alone() };
    check(
        many,
        &["domain 8: 9 participants heard", ", …\n", "  and 12 more; `thalweg doctor --json` lists all"],
        &["domain 9"],
    );
}

#[test]
fn who_is_heard_in_the_own_domain_is_named_before_any_other() {
    let silent = "-> participants of this domain are heard, but do not answer: let unicast UDP";
    let domains = (0..=8).chain([77]).map(|domain| heard(domain, "", 1)).collect();
    let lines = ["  domain 77: 1 participant heard", silent, "-> --domain 0 discovers these participants"];
    check(NobodyFound { domain: 77, heard: domains, ..alone() }, &lines, &["domain 7:", "--domain 3 "]);
    let tags = vec![heard(0, "", 1), heard(5, "", 1), heard(5, "a", 1), heard(5, "lab", 1), heard(9, "lab", 1)];
    let tagged = NobodyFound { domain: 5, domain_tag: "lab".to_owned(), heard: tags, ..alone() };
    let ranked = tagged.heard_that_matter(false);
    let ranked: Vec<_> = ranked.iter().map(|one| (one.domain, &*one.domain_tag)).collect();
    assert_eq!(ranked, [(5, "lab"), (5, ""), (5, "a"), (9, "lab"), (0, "")]);
}

#[test]
fn groups_are_told_and_a_topic_that_others_use_makes_other_domains_beside_the_point() {
    let ignored = NobodyFound { ignored: 2, other_groups: vec!["ops".to_owned(), "radar".to_owned()], ..alone() };
    check(ignored, &["  2 participants of other groups ignored: ops, radar\n", "-> --group ops joins"], &[]);
    let topic = |readers| SoughtTopic {
        name: "chatter".to_owned(),
        writers: 0,
        readers,
        types: BTreeSet::from(["T\n  -> X".to_owned()]),
        partitions: BTreeSet::from(["left".to_owned()]),
        apart: Vec::new(),
        similar: similar::find("chatter", &["rt/chatter".to_owned()], &[]),
    };
    let known =
        |readers| NobodyFound { participants: 1, topic: Some(topic(readers)), heard: vec![heard(3, "", 1)], ..alone() };
    let lines = [
        "1 other participant in domain 0",
        "no writer and 1 reader of others",
        "types: T\\u000a  -> X\n",
        "partitions: left",
    ];
    check(known(1), &lines, &["domain 3", "uses eth0", "--peer"]);
    let silent = NobodyFound { heard: vec![heard(0, "", 1), heard(3, "", 1)], ..known(1) };
    let lines = ["domain 0: 1 participant heard", "-> participants of this domain are heard, but do not answer"];
    check(silent, &lines, &["domain 3", "--peer"]);
    check(known(0), &["domain 3: 1 participant heard", "-> did you mean \"rt/chatter\"?"], &["uses eth0", "--peer"]);
}

#[test]
fn what_keeps_endpoints_of_the_topic_apart_is_told_with_an_example_of_each() {
    let apart =
        |why: &str, pairs| Apart { why: why.to_owned(), pairs, writer: "w1".to_owned(), reader: "r1".to_owned() };
    let topic = SoughtTopic {
        name: "chatter".to_owned(),
        writers: 2,
        readers: 2,
        types: BTreeSet::new(),
        partitions: BTreeSet::new(),
        apart: vec![apart("the types differ", 3), apart("too late", 1)],
        similar: Vec::new(),
    };
    let lines = [
        "\n    3 pairs do not match, one of them writer w1 and reader r1: the types differ\n",
        "\n    1 pair does not match, writer w1 and reader r1: too late\n",
        "-> thalweg why chatter tells",
    ];
    check(NobodyFound { participants: 2, topic: Some(topic), ..alone() }, &lines, &["--peer"]);
}
