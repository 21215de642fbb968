//! What `why` tells about a topic, and who is left out of `ls` by communication groups.

use std::net::UdpSocket;

use serde_json::Value;
use thalweg_rtps::discovery::participant_data::ParticipantData;
use thalweg_rtps::types::{EntityId, GuidPrefix, SequenceNumber};
use thalweg_rtps::wire::write::{self, DataHead, DataKind};
use thalweg_rtps::wire::{AckNack, SequenceSet};

use crate::program::{Running, command, run, tag};

/// Announces a participant of domain 0 that has these built-in endpoints, to all on this host, and lets it acknowledge `answer`
/// to their announcement of writers.
fn forge(tag: &str, prefix: GuidPrefix, builtin_endpoints: u32, answer: Option<SequenceNumber>) {
    let mut payload = Vec::new();
    let announced = ParticipantData { domain_tag: tag.to_owned(), builtin_endpoints, ..ParticipantData::new(prefix) };
    announced.encode(&mut payload);
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence: SequenceNumber::FIRST,
        kind: DataKind::Data,
        inline_qos: &[],
    };
    let mut datagram = Vec::new();
    write::header(&mut datagram, prefix);
    write::data(&mut datagram, &head, payload.len());
    datagram.extend_from_slice(&payload);
    if let Some(number) = answer {
        let (reader, writer) = (EntityId::PUBLICATIONS_READER, EntityId::PUBLICATIONS_WRITER);
        let state = SequenceSet::new(number);
        write::acknack(&mut datagram, &AckNack { reader, writer, state, count: 1, is_final: true });
    }
    let forger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for participant in 0..60 {
        // Ports of discovery (RTPS 2.5 §9.6.2.3).
        forger.send_to(&datagram, ("127.0.0.1", 7410 + 2 * participant)).expect("loopback takes datagrams");
    }
}

/// `why` or `ls` as JSON.
#[track_caller]
fn ask(tag: &str, words: &[&str]) -> Value {
    let said =
        run(&[words, &["--json", "--domain-tag", tag, "--settle", "2", "--survey", "0"]].concat()).expect_code(0);
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}", said.stdout))
}

fn start(tag: &str, words: &str) -> Running {
    let words: Vec<&str> = words.split_whitespace().collect();
    Running::start(command(&[&words[..], &["--domain-tag", tag]].concat()))
}

/// Ends endless commands.
fn end(running: impl IntoIterator<Item = Running>) {
    for one in running {
        one.signal("TERM");
        one.finish();
    }
}

#[test]
fn why_tells_how_a_writer_in_another_process_sends_and_to_whom() {
    let tag = tag();
    let reader = start(&tag, "sub chatter");
    let writer = start(&tag, "pub chatter hello --rate 100 --match-timeout 40");
    let told = ask(&tag, &["why", "chatter"]);
    let [view] = told["writers"].as_array().expect("a list").as_slice() else { panic!("{told:#}") };
    assert_eq!(view["vendor"], "Thalweg");
    assert_eq!(view["matching_readers"].as_array().map(Vec::len), Some(1), "{told:#}");
    let own_words = &view["explanation"];
    assert_eq!((own_words["readers"].as_u64(), own_words["readers_given_up"].as_u64()), (Some(1), Some(0)), "{told:#}");
    assert!(own_words["method"].is_string() && own_words["method_now"].is_string());
    let route = &own_words["route"];
    assert_eq!((&route["destination"], &route["readers_on_this_host"]), (&"auto".into(), &1.into()));
    assert!(route["groups"].as_array().is_some_and(Vec::is_empty), "never multicast on one host: {told:#}");
    let address = route["addresses"][0].as_str().expect("an address");
    assert!(address.starts_with("udp/127.0.0.1:"), "{address}");
    let [reader_view] = told["readers"].as_array().expect("a list").as_slice() else { panic!("{told:#}") };
    let own_words = &reader_view["explanation"];
    assert_eq!((&own_words["lost"], &own_words["rejected"]), (&0.into(), &0.into()), "{told:#}");
    assert!(own_words["received"].as_u64().is_some_and(|received| received > 0), "{told:#}");
    let text = run(&["why", "chatter", "--domain-tag", &tag]).expect_code(0).stdout;
    for part in [
        "1 writer, 1 reader",
        "method ",
        "all readers are on this host",
        "matches 1 reader by QoS",
        "1 writer matched: received ",
        ", lost 0, rejected 0",
    ] {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
    end([writer, reader]);
}

#[test]
fn why_names_what_keeps_endpoints_apart() {
    let tag = tag();
    // Named, so that none takes the type of who came before it.
    let running = [
        start(&tag, "sub chatter --type string"),
        start(&tag, "sub chatter --type bytes"),
        start(&tag, "pub chatter x --type string --qos reliability=best-effort --match-timeout 40"),
    ];
    let told = ask(&tag, &["why", "chatter"]);
    let reasons: Vec<&str> =
        told["mismatches"].as_array().expect("a list").iter().filter_map(|pair| pair["why"].as_str()).collect();
    assert_eq!(reasons.len(), 2, "{told:#}");
    assert!(reasons.iter().any(|why| why.contains("RELIABILITY: offered BEST_EFFORT, requested RELIABLE")));
    assert!(reasons.iter().any(|why| why.contains("thalweg::Bytes")));
    end(running);
}

#[test]
fn endpoints_whose_participants_share_no_group_do_not_match() {
    let tag = tag();
    let running = [start(&tag, "sub chatter --group a"), start(&tag, "pub chatter x --group b --readers 0 --rate 10")];
    let told = ask(&tag, &["why", "chatter", "--group", "*"]);
    let [writer] = told["writers"].as_array().expect("a list").as_slice() else { panic!("{told:#}") };
    assert_eq!(writer["matching_readers"].as_array().map(Vec::len), Some(0), "{told:#}");
    let [mismatch] = told["mismatches"].as_array().expect("a list").as_slice() else { panic!("{told:#}") };
    let why = mismatch["why"].as_str().expect("a reason");
    assert!(why.ends_with("share no communication group: the writer's is in b, the reader's in a"), "{why}");
    end(running);
}

#[test]
fn why_of_a_topic_that_nobody_uses_says_so() {
    let said = run(&["why", "nothing", "--domain-tag", &tag(), "--settle", "0.5"]).expect_code(0);
    assert!(said.stdout.contains("No endpoint uses it"), "{}", said.stdout);
}

#[test]
fn what_was_refused_because_nothing_proves_its_address_is_told() {
    const READERS: u32 = 0x28;
    let tag = tag();
    let reader = start(&tag, "sub chatter");
    assert_eq!(ask(&tag, &["why", "chatter"])["readers"].as_array().map(Vec::len), Some(1), "it listens");
    let quiet = run(&["why", "chatter", "--domain-tag", &tag]).expect_code(0).stdout;
    assert!(!quiet.contains("\nparticipant "), "{quiet}");
    forge(&tag, GuidPrefix([0xf1; 12]), 1, None);
    forge(&tag, GuidPrefix([0xf2; 12]), READERS, Some(SequenceNumber(77)));
    let told = ask(&tag, &["why", "chatter"]);
    let participants = told["participants"].as_array().expect("a list");
    let refused = |one: &Value| (one["refused"]["unprovable"].as_u64(), one["refused"]["wrong_proofs"].as_u64());
    assert!(participants.iter().any(|one| refused(one) == (Some(1), Some(1))), "{told:#}");
    let this = participants.iter().find(|one| one["participant"] == "this command").expect("it tells of itself");
    assert_eq!(refused(this), (Some(0), Some(0)), "it was not there yet: {told:#}");
    let text = run(&["why", "chatter", "--domain-tag", &tag]).expect_code(0).stdout;
    for part in ["\nparticipant ", "  1 announcement came from a participant that cannot", "  1 answer did not prove"] {
        assert!(text.contains(part), "{part:?} not in {text}");
    }
    end([reader]);
}

#[test]
fn ls_tells_what_it_refused_itself() {
    let quiet = run(&["ls", "--domain-tag", &tag(), "--settle", "1"]).expect_code(0).stdout;
    assert!(!quiet.contains("refused"), "{quiet}");
    let tag = tag();
    let listing = start(&tag, "ls --settle 4");
    for _ in 0..5 {
        forge(&tag, GuidPrefix([0xf1; 12]), 1, None);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    let text = listing.finish().expect_code(0).stdout;
    assert!(text.contains("refused while listening\n  1 announcement came from a participant that cannot"), "{text}");
}

#[test]
fn other_groups_are_listed_as_ignored_and_do_not_match() {
    let tag = tag();
    let radar = start(&tag, "sub chatter --count 1 --timeout 50 --group radar --group ops");
    let video = start(&tag, "sub chatter --group video");
    let listed = ask(&tag, &["ls"]);
    assert!(listed["participants"].as_array().is_some_and(Vec::is_empty), "{listed:#}");
    let mut groups: Vec<String> =
        listed["ignored"].as_array().expect("a list").iter().map(|one| one["groups"].to_string()).collect();
    groups.sort();
    assert_eq!(groups, [r#"["ops","radar"]"#, r#"["video"]"#]);
    let everybody = ask(&tag, &["ls", "--group", "*"]);
    assert_eq!(everybody["participants"].as_array().map(Vec::len), Some(2), "{everybody:#}");
    let text = run(&["ls", "--domain-tag", &tag, "--group", "video"]).expect_code(0).stdout;
    assert!(text.contains("1 ignored: other groups") && text.contains("groups ops,radar"), "{text}");
    let words = ["pub", "chatter", "over", "here", "--count", "2", "--domain-tag", &tag, "--match-timeout", "40"];
    run(&[&words[..], &["--group", "ops"]].concat()).expect_code(0);
    assert_eq!(radar.finish().expect_code(0).stdout, "over\n");
    let said = run(&[&words[..], &["--group", "a,b"]].concat()).expect_code(1);
    assert!(said.stderr.contains("cannot name a communication group"), "{}", said.stderr);
    end([video]);
}
