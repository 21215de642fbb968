//! What applications do to entities that live, as another process sees it: this test binary starts itself as the other side.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thalweg::conditions::{StatusKinds, WaitSet};
use thalweg::discovery::{ParticipantData, PublicationData, SubscriptionData, TopicData};
use thalweg::qos::{
    AttachedData, History, Method, ReaderQos, ResourceLimits, Transmission, TypeConsistency, WriterQos, WriterTiming,
};
use thalweg::{DataReader, DataWriter, DomainParticipant, Error, ErrorKind, InstanceState, TopicType, cdr};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_ENTITIES";
/// The lease of the other side's participant.
const LEASE: Duration = Duration::from_secs(3);

/// Ends the other side also when the test fails.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn start(role: &str, domain: u32, topic: &str) -> Other {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "entities::other_side", "--nocapture"])
        .env(ROLE, role)
        .env("THALWEG_TEST_DOMAIN", domain.to_string())
        .env("THALWEG_TEST_TOPIC", topic)
        .stdout(Stdio::null())
        .spawn();
    Other(child.unwrap())
}

/// What a started process does until it is killed; without a role, in the test run itself, nothing.
#[test]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let domain = std::env::var("THALWEG_TEST_DOMAIN").unwrap().parse().unwrap();
    let topic_name = std::env::var("THALWEG_TEST_TOPIC").unwrap();
    let builder = DomainParticipant::builder(domain).loopback_only().name(&topic_name);
    let participant = builder.lease_duration(LEASE).create().unwrap();
    match role.as_str() {
        "watch" => watch(&participant, &topic_name),
        "reply" => reply(&participant, &topic_name),
        "publish" => {
            let attached = AttachedData { topic: b"about the topic".to_vec(), ..AttachedData::default() };
            let topic = participant.create_topic::<Shape>(&topic_name);
            let _writer = participant.create_writer(&topic, WriterQos { attached, ..late_writer() }).unwrap();
            let _reader = participant.create_reader(&topic, late_reader()).unwrap();
            std::thread::sleep(PATIENCE);
        }
        "count" => {
            let topic = participant.create_topic::<Count>(&topic_name);
            let _writer = participant.create_writer(&topic, late_writer()).unwrap();
            std::thread::sleep(PATIENCE);
        }
        "demand" => demand_and_wait(&participant, &topic_name),
        other => panic!("no such role: {other}"),
    }
}

/// Tells back the USER_DATA of the topic's writer and the number of own readers that it is matched with, whenever they change.
fn watch(participant: &DomainParticipant, name: &str) {
    let topic = participant.create_topic::<Shape>(name);
    let _reader = participant.create_reader(&topic, late_reader()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let writer = participant.create_writer(&back, late_writer()).unwrap();
    let mut told = None;
    loop {
        let publications = participant.publications();
        let found = publications.iter().find(|known| known.data.topic_name == name);
        let seen = found.map(|known| (known.data.qos.attached.user.clone(), known.matched.len()));
        if seen != told {
            let (user, matched) = seen.clone().unwrap_or_default();
            writer.write(&Shape::new(&String::from_utf8(user).unwrap(), matched as i32)).unwrap();
            told = seen;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Answers each sample with the same value, related to it.
fn reply(participant: &DomainParticipant, name: &str) {
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let writer = participant.create_writer(&back, late_writer()).unwrap();
    let reader = participant.create_reader(&participant.create_topic::<Shape>(name), late_reader()).unwrap();
    loop {
        reader.wait(PATIENCE);
        for sample in reader.take(usize::MAX) {
            writer.write_related(&sample.data().unwrap(), sample.identity()).unwrap();
        }
    }
}

/// Waits until the other side tells this.
#[track_caller]
fn expect(back: &DataReader<Shape>, user_data: &str, matched: i32) {
    eventually(&format!("the other side sees {user_data:?} and {matched}"), || {
        back.take(usize::MAX).iter().any(|sample| {
            let told = sample.data().unwrap();
            (told.color.as_str(), told.x) == (user_data, matched)
        })
    });
}

#[test]
fn policies_that_change_are_told_to_other_processes_and_others_refused() {
    let (domain, name) = (domain(), unique("set_qos"));
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), late_writer()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let back = participant.create_reader(&back, late_reader()).unwrap();
    let _other = start("watch", domain, &name);
    expect(&back, "", 1);
    let mut qos = WriterQos::clone(&writer.qos());
    qos.attached.user = b"changed".to_vec();
    writer.set_qos(qos.clone()).unwrap();
    expect(&back, "changed", 1);
    let apart = WriterQos { partition: vec!["elsewhere".into()], ..qos.clone() };
    writer.set_qos(apart.clone()).unwrap();
    expect(&back, "changed", 0);
    assert_eq!((writer.matched_readers().len(), writer.publication_matched().current_change), (0, 0));
    let timing = WriterTiming { latency_budget: Duration::from_secs(1), ..WriterTiming::default() };
    writer.set_qos(WriterQos { timing, ..qos.clone() }).unwrap();
    eventually("a reader that wants less delay is refused", || writer.offered_incompatible_qos().total > 0);
    writer.set_qos(qos.clone()).unwrap();
    expect(&back, "changed", 1);
    let error = writer.set_qos(WriterQos { history: thalweg::qos::History::KeepLast(7), ..apart }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ImmutablePolicy);
    assert!(error.to_string().contains("HISTORY"), "{error}");
    assert_eq!(*writer.qos(), qos);
}

#[test]
fn replies_name_the_samples_that_they_answer_whichever_way_these_were_written() {
    let (domain, name) = (domain(), unique("replies"));
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), late_writer()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let back = participant.create_reader(&back, late_reader()).unwrap();
    let _other = start("reply", domain, &name);
    let large = Shape { payload: vec![7; 100_000], ..Shape::new("large", 300) };
    let first = writer.write(&large).unwrap();
    let many: Vec<Shape> = (0..150).map(|x| Shape::new("many", x)).collect();
    assert_eq!(writer.write_many(&many).unwrap(), 150);
    let lent = Shape { payload: vec![9; 1_000], ..Shape::new("lent", 151) };
    let mut bytes = Vec::new();
    cdr::encode(&lent, cdr::Representation::Xcdr1, &mut bytes).unwrap();
    let encapsulation = cdr::Encapsulation::from_id(u16::from_be_bytes([bytes[0], bytes[1]])).unwrap();
    let body = &bytes[cdr::ENCAPSULATION_BYTES..];
    drop(writer.loan(encapsulation, 50));
    let mut loan = writer.loan(encapsulation, body.len());
    loan.copy_from_slice(body);
    let last = loan.commit().unwrap();
    let replies = take(&back, 152);
    let related: Vec<_> = replies.iter().map(|reply| reply.related_identity().unwrap()).collect();
    let written: Vec<_> =
        (first.0..=last.0).map(|number| writer.identity_of(thalweg::types::SequenceNumber(number))).collect();
    assert_eq!(related, written);
    let values: Vec<Shape> = replies.iter().map(|reply| reply.data().unwrap()).collect();
    assert!(values[0] == large && values[1..151] == many[..] && values[151] == lent);
    writer.write(&Shape::new("plain", 1)).unwrap();
    let own = participant.create_reader(&participant.create_topic::<Shape>(&name), late_reader()).unwrap();
    assert_eq!(take(&own, 1)[0].related_identity(), None);
}

#[test]
fn the_first_sample_of_many_that_finds_no_room_is_told() {
    let participant = participant(domain());
    let resource_limits = ResourceLimits { max_samples: Some(100), ..ResourceLimits::default() };
    let reliability = thalweg::qos::Reliability::Reliable { max_blocking_time: Duration::from_millis(20) };
    let qos = WriterQos { resource_limits, reliability, ..late_writer() };
    let writer = participant.create_writer(&participant.create_topic::<Shape>("many"), qos).unwrap();
    let many: Vec<Shape> = (0..150).map(|x| Shape::new("many", x)).collect();
    let failed = writer.write_many(&many).unwrap_err();
    assert_eq!((failed.written, failed.error.kind(), writer.held()), (100, ErrorKind::Timeout, 100));
    assert!(failed.to_string().ends_with(" (after 100 samples)"), "{failed}");
    assert!(Error::from(failed).is_timeout());
    assert_eq!(writer.write_many(&[]).unwrap(), 0);
}

#[test]
fn samples_of_a_suspended_writer_leave_together_when_it_is_resumed() {
    let transmission = Transmission::by(Method::Immediate);
    let ends = pair::<Shape>("suspended", WriterQos { transmission, ..reliable_writer() }, reliable_reader());
    ends.writer.write(&Shape::new("before", 0)).unwrap();
    take(&ends.reader, 1);
    let before = ends.writer.counters().datagrams;
    ends.writer.suspend_publications();
    (0..10).for_each(|x| _ = ends.writer.write(&Shape::new("held", x)).unwrap());
    assert_eq!(ends.writer.counters().datagrams, before);
    ends.writer.resume_publications();
    assert_eq!(take(&ends.reader, 10).len(), 10);
    assert_eq!(ends.writer.counters().datagrams, before + 1);
    ends.writer.write(&Shape::new("after", 0)).unwrap();
    assert_eq!(ends.writer.counters().datagrams, before + 2);
    ends.writer.suspend_publications();
    ends.writer.write(&Shape::new("awaited", 0)).unwrap();
    ends.writer.wait_for_acknowledgments(PATIENCE).unwrap();
}

/// Takes from a reader of a built-in topic until an instance is in this state.
#[track_caller]
fn in_state<D: thalweg::discovery::BuiltinTopicData>(
    reader: &DataReader<D>,
    state: InstanceState,
    is_meant: impl Fn(&D) -> bool,
) -> D {
    let mut found = None;
    eventually("the graph has changed", || {
        let samples = reader.take(usize::MAX);
        let meant = samples.iter().filter(|sample| sample.info().instance_state == state);
        found = meant.filter_map(|sample| sample.announced().ok()).find(|data| is_meant(data));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn the_domain_is_read_as_instances_that_end_when_their_process_does() {
    let (domain, name) = (domain(), unique("graph"));
    let participant = participant(domain);
    let participants = participant.create_builtin_reader::<ParticipantData>().unwrap();
    let publications = participant.create_builtin_reader::<PublicationData>().unwrap();
    let subscriptions = participant.create_builtin_reader::<SubscriptionData>().unwrap();
    let topics = participant.create_builtin_reader::<TopicData>().unwrap();
    let set = WaitSet::new().unwrap();
    set.attach(&publications.status_condition(StatusKinds::DATA_AVAILABLE));
    let other = start("publish", domain, &name);
    set.wait(PATIENCE).unwrap();
    let alive = InstanceState::Alive;
    let there = in_state(&participants, alive, |data| data.entity_name == name);
    assert_eq!(there.lease_duration, LEASE);
    let writer = in_state(&publications, alive, |data| data.topic_name == name);
    let reader = in_state(&subscriptions, alive, |data| data.topic_name == name);
    assert_eq!([writer.guid.prefix, reader.guid.prefix], [there.guid_prefix; 2]);
    // Its reader, which tells nothing about the topic, may be heard first.
    let topic = in_state(&topics, alive, |topic| topic.name == name && !topic.topic_data.is_empty());
    assert_eq!((topic.type_name.as_str(), topic.topic_data.as_slice()), ("Shape", &b"about the topic"[..]));
    drop(other);
    let gone = InstanceState::NotAliveNoWriters;
    in_state(&participants, gone, |data| data.guid_prefix == there.guid_prefix);
    in_state(&publications, gone, |data| data.guid == writer.guid);
    in_state(&subscriptions, gone, |data| data.guid == reader.guid);
    in_state(&topics, gone, |topic| topic.name == name);
}

#[test]
fn what_is_ignored_of_another_process_is_parted_from_here_alone() {
    let (domain, name) = (domain(), unique("ignored"));
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), late_writer()).unwrap();
    let reader = participant.create_reader(&participant.create_topic::<Shape>(&name), late_reader()).unwrap();
    let _other = start("publish", domain, &name);
    writer.wait_for_matched(2, PATIENCE).unwrap();
    reader.wait_for_matched(2, PATIENCE).unwrap();
    let (own, other) = (writer.guid().prefix, |prefix| prefix != writer.guid().prefix);
    let stranger = reader.matched_writers().into_iter().find(|guid| other(guid.prefix)).unwrap();
    participant.ignore_publication(stranger);
    assert_eq!(reader.matched_writers(), [writer.guid()]);
    assert_eq!(writer.matched_readers().len(), 2, "its reader is not ignored");
    participant.ignore_subscription(writer.matched_readers().into_iter().find(|guid| other(guid.prefix)).unwrap());
    assert_eq!(writer.matched_readers(), [reader.guid()]);
    participant.ignore_topic(&name);
    assert_eq!((writer.matched_readers().len(), reader.matched_writers().len()), (0, 0));
    assert!(participant.publications().iter().all(|known| known.data.guid.prefix == own));
}

#[test]
fn another_type_on_a_topic_is_told_as_its_inconsistency() {
    let (domain, name) = (domain(), unique("inconsistent"));
    let (told, news) = std::sync::mpsc::channel();
    let participant = participant(domain);
    let listening = DomainParticipant::builder(domain)
        .loopback_only()
        .on_status(thalweg::Delivery::Thread, move |status| _ = told.send(status))
        .create()
        .unwrap();
    let topic = participant.create_topic::<Shape>(&name);
    let reader = participant.create_reader(&topic, late_reader()).unwrap();
    let _listens = listening.create_reader(&listening.create_topic::<Shape>(&name), late_reader()).unwrap();
    assert_eq!(participant.inconsistent_topic(&topic).total, 0);
    let _other = start("count", domain, &name);
    let mut status = participant.inconsistent_topic(&topic);
    eventually("the other type is noticed", || {
        status = participant.inconsistent_topic(&topic);
        status.total > 0
    });
    assert!(status.why.contains("Shape") && status.why.contains("Count"), "{}", status.why);
    assert_eq!((status.total_change, participant.inconsistent_topic(&topic).total_change), (status.total, 0));
    assert_eq!(reader.subscription_matched().total, 0);
    let is_meant = |status: thalweg::status::ParticipantStatus| match status {
        thalweg::status::ParticipantStatus::InconsistentTopic { topic, status } => {
            topic == name && status.total_change > 0
        }
        _ => false,
    };
    assert!(news.iter().any(is_meant), "the participant's listener is told");
}

#[test]
fn a_reader_enforces_the_consistency_of_types_that_it_asks_for() {
    let (domain, name) = (domain(), unique("consistency"));
    let participant = participant(domain);
    // Has members that the other side's type lacks.
    let topic = participant.create_topic::<wider::Shape>(&name);
    let tolerant = participant.create_reader(&topic, late_reader()).unwrap();
    let of = |type_consistency| ReaderQos { type_consistency, ..late_reader() };
    let strict = of(TypeConsistency { prevents_widening: true, ..TypeConsistency::default() });
    let strict = participant.create_reader(&topic, strict).unwrap();
    let strictest = of(TypeConsistency { allows_coercion: false, ..TypeConsistency::default() });
    let strictest = participant.create_reader(&topic, strictest).unwrap();
    let _other = start("publish", domain, &name);
    tolerant.wait_for_matched(1, PATIENCE).unwrap();
    eventually("both are told", || {
        let told = |reader: &DataReader<wider::Shape>| reader.requested_incompatible_qos().last_policy();
        [told(&strict), told(&strictest)] == [Some(thalweg::qos::PolicyId::TYPE_CONSISTENCY); 2]
    });
    assert_eq!((strict.matched_writers().len(), strictest.matched_writers().len()), (0, 0));
    let qos = ReaderQos { history: History::KeepAll, ..late_reader() };
    assert_eq!(strict.set_qos(qos).unwrap_err().kind(), ErrorKind::ImmutablePolicy);
}

/// The name of a topic whose two types differ in what one option permits.
fn topic_of_option(name: &str, option: &str, permits: bool) -> String {
    format!("{name} {option} {permits}")
}

/// Two readers, of which one permits a difference and no other, and one all but this.
fn demand<T: TopicType>(
    participant: &DomainParticipant,
    (name, option): (&str, &str),
    set: fn(&mut TypeConsistency, bool),
) -> [DataReader<T>; 2] {
    [false, true].map(|permits| {
        let mut type_consistency = TypeConsistency {
            ignores_sequence_bounds: !permits,
            ignores_string_bounds: !permits,
            ignores_member_names: !permits,
            prevents_widening: permits,
            ..TypeConsistency::default()
        };
        set(&mut type_consistency, permits);
        let topic = participant.create_topic::<T>(&topic_of_option(name, option, permits));
        participant.create_reader(&topic, ReaderQos { type_consistency, ..late_reader() }).unwrap()
    })
}

fn demand_and_wait(participant: &DomainParticipant, name: &str) {
    let _readers = (
        demand::<differing::ShortSequence>(participant, (name, "numbers"), |options, permits| {
            options.ignores_sequence_bounds = permits;
        }),
        demand::<differing::ShortText>(participant, (name, "text"), |options, permits| {
            options.ignores_string_bounds = permits;
        }),
        demand::<differing::Renamed>(participant, (name, "other"), |options, permits| {
            options.ignores_member_names = permits;
        }),
        demand::<differing::Widened>(participant, (name, "more"), |options, permits| {
            options.prevents_widening = !permits;
        }),
    );
    std::thread::sleep(PATIENCE);
}

#[test]
fn each_option_of_type_consistency_that_another_process_asks_for_permits_its_own_difference() {
    let (domain, name) = (domain(), unique("options"));
    let participant = participant(domain);
    let _other = start("demand", domain, &name);
    // With each, the member at which the types differ.
    let options = [("numbers", "numbers"), ("text", "text"), ("other", "last"), ("more", "more")];
    let writers: Vec<(&str, &str, bool, DataWriter<differing::Offered>)> = options
        .into_iter()
        .flat_map(|(option, member)| [false, true].map(|permits| (option, member, permits)))
        .map(|(option, member, permits)| {
            let topic = participant.create_topic(&topic_of_option(&name, option, permits));
            (option, member, permits, participant.create_writer(&topic, late_writer()).unwrap())
        })
        .collect();
    for (option, member, permits, writer) in &writers {
        eventually(&format!("{option} is judged"), || {
            writer.matched_readers().len() == 1 || writer.offered_incompatible_qos().total > 0
        });
        let told = writer.offered_incompatible_qos();
        let text: String = told.mismatches.iter().map(ToString::to_string).collect();
        assert_eq!(writer.matched_readers().len() == 1, *permits, "{option}: {text}");
        if !permits {
            assert_eq!(told.last_policy(), Some(thalweg::qos::PolicyId::TYPE_CONSISTENCY), "{option}");
            assert!(text.contains(&format!("a difference: {member}: ")), "{option}: {text}");
        }
    }
}

/// A type, and those that differ from it in what one option permits.
mod differing {
    use thalweg::Topic;

    #[derive(Topic, Clone, Debug, PartialEq, Default)]
    #[topic(name = "demo::Differing", extensibility = "appendable")]
    pub struct Offered {
        pub numbers: Vec<i32>,
        pub text: String,
        pub last: i32,
    }

    #[derive(Topic, Clone, Debug, PartialEq, Default)]
    #[topic(name = "demo::Differing", extensibility = "appendable")]
    pub struct ShortSequence {
        #[topic(max_len = 4)]
        pub numbers: Vec<i32>,
        pub text: String,
        pub last: i32,
    }

    #[derive(Topic, Clone, Debug, PartialEq, Default)]
    #[topic(name = "demo::Differing", extensibility = "appendable")]
    pub struct ShortText {
        pub numbers: Vec<i32>,
        #[topic(max_len = 4)]
        pub text: String,
        pub last: i32,
    }

    #[derive(Topic, Clone, Debug, PartialEq, Default)]
    #[topic(name = "demo::Differing", extensibility = "appendable")]
    pub struct Renamed {
        pub numbers: Vec<i32>,
        pub text: String,
        pub other: i32,
    }

    #[derive(Topic, Clone, Debug, PartialEq, Default)]
    #[topic(name = "demo::Differing", extensibility = "appendable")]
    pub struct Widened {
        pub numbers: Vec<i32>,
        pub text: String,
        pub last: i32,
        pub more: i32,
    }
}

mod wider {
    use thalweg::Topic;

    #[derive(Topic, Clone, Debug, PartialEq, Default)]
    #[topic(extensibility = "appendable")]
    pub struct Shape {
        #[topic(key)]
        pub color: String,
        pub x: i32,
        pub y: i32,
        pub payload: Vec<u8>,
        pub more: i32,
    }
}
