//! Questions and answers: explanations arrive unchanged, no participant is believed about another, and memory stays bounded.

use std::net::SocketAddr;
use std::sync::Arc;

use thalweg_cdr::{Representation, decode, encode};
use thalweg_rtps::discovery::LocalAddresses;
use thalweg_rtps::history::RejectReason;
use thalweg_rtps::participant::{KeySource, ParticipantConfig, ReaderConfig, WriterConfig};
use thalweg_rtps::qos::Destination;
use thalweg_rtps::reader::{LossReason, Losses, Rejections};
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{Guid, KeyHash, Keyed, Locator};
use thalweg_rtps::writer::WriterOptions;

use super::inquiry::{ANSWER_MAX_BYTES, ANSWERS_MAX, KEPT_MAX, answers, own_endpoints, read_question};
use super::wire::{ToldReader, ToldWriter, TopicAnswer};
use super::*;

const INSPECTOR: GuidPrefix = GuidPrefix([1; 12]);
const PEER: GuidPrefix = GuidPrefix([2; 12]);
const OTHER: GuidPrefix = GuidPrefix([3; 12]);

/// A participant with this many writers and readers of the topic "pose", and one of each of another topic.
fn participant(prefix: GuidPrefix, writers: u32, readers: u32) -> Participant {
    let now = Instant::from_nanos(1);
    let mut config = ParticipantConfig::new(0, prefix, LocalAddresses::default());
    config.services = services(false);
    let mut participant = Participant::new(now, config);
    let topics = |count: u32| (0..count).map(|_| "pose").chain(["another"]);
    for topic in topics(writers) {
        let (topic_name, type_name) = (topic.to_owned(), "Pose".to_owned());
        let (qos, options) = (Arc::default(), WriterOptions::default());
        participant.create_writer(now, WriterConfig { topic_name, type_name, keyed: Keyed::No, qos, options }).unwrap();
    }
    for topic in topics(readers) {
        let (topic_name, type_name) = (topic.to_owned(), "Pose".to_owned());
        let (qos, keys) = (Arc::default(), KeySource::Wire);
        participant
            .create_reader(now, ReaderConfig { topic_name, type_name, keyed: Keyed::No, qos, keys, filter: None })
            .unwrap();
    }
    participant
}

fn ask(inquiry: &mut Inquiry) -> (u32, String) {
    read_question(&inquiry.ask("pose").expect("a name of a topic")).expect("a question")
}

/// The explanation that an inspector has after the answers of `peer` to its question.
fn asked(peer: &Participant) -> (Inquiry, TopicExplanation) {
    let (mut inquiry, mut found) = (Inquiry::default(), TopicExplanation::default());
    let (number, topic) = ask(&mut inquiry);
    for answer in answers(INSPECTOR, number, &own_endpoints(peer, &topic)) {
        assert!(answer.len() <= ANSWER_MAX_BYTES);
        assert_eq!(inquiry.handle_answer(INSPECTOR, peer.guid_prefix(), &answer), Ok(()));
    }
    inquiry.add_to(&mut found);
    (inquiry, found)
}

#[test]
fn every_endpoint_of_the_topic_is_explained_and_no_other() {
    let peer = participant(PEER, 2, 1);
    let (inquiry, found) = asked(&peer);
    assert_eq!((found.writers.len(), found.readers.len()), (2, 1));
    assert_eq!(found, own_endpoints(&peer, "pose"));
    assert!(inquiry.has_answered(PEER) && !inquiry.has_answered(OTHER));
}

#[test]
fn a_participant_without_endpoints_of_the_topic_keeps_quiet() {
    let (inquiry, found) = asked(&participant(PEER, 0, 0));
    assert_eq!(found, TopicExplanation::default());
    assert!(!inquiry.has_answered(PEER));
}

#[test]
fn a_participant_with_many_endpoints_answers_as_many_as_fit() {
    let (inquiry, found) = asked(&participant(PEER, 10, 100));
    assert_eq!((found.writers.len(), found.readers.len()), (10, ANSWERS_MAX - 10));
    assert!(inquiry.has_answered(PEER));
    let (_, found) = asked(&participant(PEER, 100, 10));
    assert_eq!((found.writers.len(), found.readers.len()), (ANSWERS_MAX, 0));
}

#[test]
fn answers_to_others_and_to_earlier_questions_do_not_count() {
    let told = own_endpoints(&participant(PEER, 1, 0), "pose");
    let mut inquiry = Inquiry::default();
    let (earlier, _) = ask(&mut inquiry);
    let (number, _) = ask(&mut inquiry);
    for (inspector, number) in [(OTHER, number), (INSPECTOR, earlier)] {
        let answer = &answers(inspector, number, &told)[0];
        assert_eq!(inquiry.handle_answer(INSPECTOR, PEER, answer), Ok(()));
        assert!(!inquiry.has_answered(PEER));
    }
}

#[test]
fn nobody_speaks_for_the_endpoints_of_another() {
    let mut inquiry = Inquiry::default();
    let (number, _) = ask(&mut inquiry);
    for told in [participant(PEER, 1, 0), participant(PEER, 0, 1)] {
        let answer = &answers(INSPECTOR, number, &own_endpoints(&told, "pose"))[0];
        assert_eq!(inquiry.handle_answer(INSPECTOR, OTHER, answer), Err(ServiceRefusal::Unreadable));
    }
    assert!(!inquiry.has_answered(OTHER));
}

#[test]
fn the_number_of_kept_answers_is_bounded() {
    let mut told = own_endpoints(&participant(PEER, 1, 0), "pose");
    let mut inquiry = Inquiry::default();
    let (number, _) = ask(&mut inquiry);
    for key in 1..=KEPT_MAX as u32 + 1 {
        told.writers[0].guid = Guid::new(PEER, EntityId::user_writer(key, Keyed::No));
        let answer = &answers(INSPECTOR, number, &told)[0];
        let expected = if key <= KEPT_MAX as u32 { Ok(()) } else { Err(ServiceRefusal::OverLimit) };
        assert_eq!(inquiry.handle_answer(INSPECTOR, PEER, answer), expected);
    }
}

#[test]
fn a_name_that_no_topic_can_have_is_not_asked_for() {
    assert!(Inquiry::default().ask(&"x".repeat(256)).is_none());
    assert_eq!(Inquiry::default().ask(&"x".repeat(255)).map(|payload| payload.len() <= 512), Some(true));
}

/// A parameter list in little-endian byte order, the earlier form of questions and answers.
fn earlier_form(parameters: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0, 3, 0, 0];
    for (id, value) in parameters {
        bytes.extend_from_slice(&id.to_le_bytes());
        bytes.extend_from_slice(&(value.len() as u16).to_le_bytes());
        bytes.extend_from_slice(value);
    }
    bytes.extend_from_slice(&[1, 0, 0, 0]);
    bytes
}

#[test]
fn the_earlier_form_is_refused() {
    let question = earlier_form(&[(0x8180, b"\x01\0\0\0\x05\0\0\0pose\0\0\0\0")]);
    assert_eq!(read_question(&question), Err(ServiceRefusal::Unreadable));
    let mut head = INSPECTOR.0.to_vec();
    head.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    let mut identity = Guid::new(PEER, EntityId::user_writer(1, Keyed::No)).to_bytes().to_vec();
    identity.extend_from_slice(b"\x05\0\0\0pose\0\0\0\0");
    let answer = earlier_form(&[(0x8181, &head), (0x8101, &identity)]);
    let mut inquiry = Inquiry::default();
    ask(&mut inquiry);
    assert_eq!(inquiry.handle_answer(INSPECTOR, PEER, &answer), Err(ServiceRefusal::Unreadable));
}

fn writer_example() -> WriterExplanation {
    let locator = |port| Locator::from(SocketAddr::from(([10, 0, 0, 1], port)));
    let link = |name: &str, medium| {
        let mut link = LinkExplanation::default();
        (link.name, link.medium) = (name.into(), medium);
        (link.bytes_per_second, link.group_bytes_per_second) = (1 << 40, 750_000);
        (link.participants, link.bystanders) = (3, 7);
        link
    };
    let mut group = GroupExplanation::of(locator(9));
    group.used = true;
    group.participants = 4;
    group.unicast_addresses = 5;
    group.unicast_nanos_per_byte = 32.0;
    group.multicast_nanos_per_byte = Some(9.75);
    group.links = vec![link("eth0", Medium::Wired), link("wlan0", Medium::Wireless), link("lo", Medium::Loopback)];
    group.why = "so".into();
    let mut told = WriterExplanation::default();
    told.guid = Guid::new(PEER, EntityId([0, 0, 1, 3]));
    told.topic = "pose".into();
    told.method = "auto".into();
    told.method_now = "batch".into();
    told.write_interval = Some(Duration::from_micros(12));
    told.sample_bytes = 256;
    told.samples_per_datagram = 41.5;
    told.datagram_bytes = 65_000;
    told.readers = 4;
    told.readers_behind = 3;
    told.readers_given_up = 2;
    told.window_bytes = Some(5_000_000_000);
    told.in_flight_bytes = 17;
    told.held_samples = 9;
    told.implausible = 1 << 33;
    told.reasons = vec!["because".into(), "of this".into()];
    told.route.configured = Destination::Multicast;
    told.route.destinations = vec![locator(1), locator(2)];
    told.route.destination_count = 2;
    told.route.batch_destinations = 1;
    told.route.readers_on_this_host = 6;
    told.route.readers_without_group = 8;
    told.route.groups = vec![group];
    told
}

fn reader_example() -> ReaderExplanation {
    let mut told = ReaderExplanation::default();
    told.guid = Guid::new(PEER, EntityId([0, 0, 1, 7]));
    told.topic = "pose".into();
    told.writers = 3;
    told.received = 1 << 40;
    told.held = 17;
    told.overwritten = 5;
    told.expired = 6;
    told.losses = Losses::told([1, 2, 3, 4, 0], Some(LossReason::Incomplete));
    told.rejections = Rejections {
        total: 9,
        last_reason: Some(RejectReason::SamplesPerInstance),
        last_instance: Some(KeyHash([5; 16])),
    };
    told.doubted = 1 << 33;
    told
}

fn encoded(answer: &TopicAnswer) -> Vec<u8> {
    let mut payload = Vec::new();
    encode(answer, Representation::Xcdr2, &mut payload).expect("it keeps its bounds");
    payload
}

fn answer(writer: Option<&WriterExplanation>, reader: Option<&ReaderExplanation>) -> TopicAnswer {
    let mut refused = ParticipantExplanation::default();
    refused.guid_prefix = PEER;
    refused.foreign_source = 1 << 40;
    refused.wrong_proofs = 2;
    refused.unprovable = u64::MAX;
    refused.unproved_locators = 3;
    refused.participants_over_limit = 4;
    refused.endpoints_over_limit = 5 << 33;
    TopicAnswer {
        inspector: INSPECTOR.0,
        number: 7,
        position: 1,
        total: 2,
        refused: (&refused).into(),
        writer: writer.map(ToldWriter::from),
        reader: reader.map(ToldReader::from),
    }
}

#[test]
fn explanations_survive_the_way() {
    let sent = answer(Some(&writer_example()), Some(&reader_example()));
    let received: TopicAnswer = decode(&encoded(&sent)).expect("what we tell can be read");
    assert_eq!(received, sent);
    assert_eq!(received.refused.of(PEER).endpoints_over_limit, 5 << 33);
    assert_eq!(received.writer.map(WriterExplanation::from), Some(writer_example()));
    assert_eq!(received.reader.map(ReaderExplanation::from), Some(reader_example()));
}

#[test]
fn nothing_makes_an_answer_large() {
    let mut told = writer_example();
    told.topic = "ü".repeat(10_000);
    told.method = "y".repeat(10_000);
    told.reasons = vec!["x".repeat(10_000); 1_000];
    told.route.destinations = vec![told.route.groups[0].group; 1_000];
    let group = &mut told.route.groups[0];
    (group.why, group.links[0].name) = ("z".repeat(10_000), "n".repeat(10_000));
    group.links = vec![group.links[0].clone(); 20];
    told.route.groups = vec![group.clone(); 20];
    let payload = encoded(&answer(Some(&told), None));
    assert!(payload.len() <= ANSWER_MAX_BYTES, "{}", payload.len());
    let received: TopicAnswer = decode(&payload).expect("what we tell can be read");
    assert_eq!(received.writer.map(|told| WriterExplanation::from(told).topic.len()), Some(254));
}

#[test]
fn damage_is_an_error_or_harmless_and_never_a_panic() {
    let bytes = encoded(&answer(Some(&writer_example()), Some(&reader_example())));
    let mut inquiry = Inquiry::default();
    ask(&mut inquiry);
    let mut rng = Rng::new(5);
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] = rng.next_u64() as u8;
        let _ = inquiry.handle_answer(INSPECTOR, PEER, &damaged);
        let _ = inquiry.handle_answer(INSPECTOR, PEER, &bytes[..position]);
        let _ = read_question(&damaged);
    }
}

#[test]
fn who_waits_for_the_turn_to_ask_has_its_own_patience() {
    let diagnosis = Diagnosis::new(true);
    let asking = diagnosis.asking.lock();
    assert!(turn_to_ask(&diagnosis, Deadline::after(Duration::from_millis(20))).is_none());
    drop(asking);
    assert!(turn_to_ask(&diagnosis, Deadline::after(Duration::ZERO)).is_some());
}
