//! Policies and filters that change while endpoints live.

use std::path::PathBuf;
use std::time::Duration;

use thalweg::filter::Filter;
use thalweg::qos::{
    AccessScope, Durability, DurabilityService, History, Presentation, ReaderQos, ReaderTiming, WriterQos, WriterTiming,
};
use thalweg::{Configuration, DomainParticipant, ErrorKind, PublisherQos, SubscriberQos};

use crate::fixture::*;

const PERIOD: Duration = Duration::from_secs(3);

fn offering() -> WriterTiming {
    WriterTiming { deadline: PERIOD, ..WriterTiming::default() }
}

fn asking() -> ReaderTiming {
    ReaderTiming { deadline: PERIOD, ..ReaderTiming::default() }
}

#[test]
fn what_groups_give_their_endpoints_stays_when_policies_change() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Count>(&unique("groups"));
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: true };
    let (partition, group_data) = (vec!["a".to_owned()], b"group".to_vec());
    let qos = PublisherQos { partition: partition.clone(), group_data: group_data.clone(), presentation };
    let writer = participant.create_publisher(qos).create_writer(&topic, reliable_writer()).unwrap();
    let qos = SubscriberQos { partition: partition.clone(), group_data: group_data.clone(), presentation };
    let reader = participant.create_subscriber(qos).create_reader(&topic, reliable_reader()).unwrap();
    writer.set_qos(WriterQos { timing: offering(), ..reliable_writer() }).unwrap();
    reader.set_qos(ReaderQos { timing: asking(), ..reliable_reader() }).unwrap();
    let (offered, requested) = (writer.qos(), reader.qos());
    assert_eq!((offered.timing.deadline, requested.timing.deadline), (PERIOD, PERIOD));
    assert_eq!((&offered.partition, &requested.partition), (&partition, &partition));
    assert_eq!((&offered.attached.group, &requested.attached.group), (&group_data, &group_data));
    assert_eq!((offered.presentation, requested.presentation), (presentation, presentation));
    writer.wait_for_matched(1, PATIENCE).unwrap();
    writer.set_qos(WriterQos { partition: vec!["b".into()], ..WriterQos::clone(&offered) }).unwrap();
    assert_eq!(writer.qos().partition, ["b"], "its own come before the publisher's");
    assert!(writer.matched_readers().is_empty());
}

#[test]
fn what_a_file_sets_for_a_topic_stays_when_policies_change() {
    let name = unique("file");
    let text = format!(
        "[profile.kept]\nhistory = \"keep_all\"\ndurability = \"transient_local\"\n\n\
         [[topic]]\nname = {name:?}\nprofile = \"kept\"\n"
    );
    let configuration = Configuration::parse(&text, "robot.toml").unwrap();
    let participant = DomainParticipant::builder(domain()).loopback_only().configuration(configuration).create();
    let participant = participant.unwrap();
    let topic = participant.create_topic::<Count>(&name);
    let offered = WriterQos { history: History::KeepLast(1), ..reliable_writer() };
    let requested = ReaderQos { history: History::KeepLast(1), ..reliable_reader() };
    let writer = participant.create_writer(&topic, offered.clone()).unwrap();
    let reader = participant.create_reader(&topic, requested.clone()).unwrap();
    writer.set_qos(WriterQos { timing: offering(), ..offered.clone() }).unwrap();
    reader.set_qos(ReaderQos { timing: asking(), ..requested.clone() }).unwrap();
    assert_eq!((writer.qos().history, reader.qos().history), (History::KeepAll, History::KeepAll));
    assert_eq!((writer.qos().timing.deadline, reader.qos().timing.deadline), (PERIOD, PERIOD));
    let limits = thalweg::qos::ResourceLimits { max_samples: Some(7), ..Default::default() };
    let refused = [
        writer.set_qos(WriterQos { resource_limits: limits, ..offered }).unwrap_err(),
        reader.set_qos(ReaderQos { resource_limits: limits, ..requested }).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::ImmutablePolicy, "{error}");
        assert!(error.to_string().contains("robot.toml"), "{error}");
    }
}

#[test]
fn a_reader_of_a_built_in_topic_gets_nothing_from_a_file_when_its_policies_change() {
    let text = "[profile.short]\nhistory = \"keep_last\"\ndepth = 3\n\n[[topic]]\nname = \"*\"\nprofile = \"short\"\n";
    let configuration = Configuration::parse(text, "robot.toml").unwrap();
    let participant = DomainParticipant::builder(domain()).loopback_only().configuration(configuration).create();
    let participant = participant.unwrap();
    let reader = participant.create_builtin_reader::<thalweg::discovery::PublicationData>().unwrap();
    reader.set_qos(ReaderQos::clone(&reader.qos())).unwrap();
}

#[test]
fn a_writer_of_the_same_participant_sends_at_once_what_other_parameters_want() {
    let participant = participant(domain());
    let topic = participant.create_topic::<Shape>(&unique("at once"));
    let writer = participant.create_writer(&topic, reliable_writer()).unwrap();
    let filter = Filter::parse("x = %0", &["0"]).unwrap();
    let reader = participant.reader_builder(&topic).qos(reliable_reader()).filter(filter).unwrap().create().unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    let is_refused = || {
        let before = writer.counters().unwanted;
        writer.write(&Shape::new("A", -1)).unwrap();
        writer.counters().unwanted > before
    };
    eventually("the filter is known", is_refused);
    for x in 1..200 {
        reader.set_expression_parameters(&[x.to_string()]).unwrap();
        let before = writer.counters().unwanted;
        writer.write(&Shape::new("A", x)).unwrap();
        assert_eq!(writer.counters().unwanted, before, "{x} is wanted");
        assert_eq!(take(&reader, 1)[0].data().unwrap().x, x);
        assert!(is_refused(), "and what was not is not");
    }
}

/// A directory of one test; it goes with this.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_history_is_found_in_the_partition_that_its_writer_moved_to() {
    let (domain, name) = (domain(), unique("moved"));
    let place = Place(std::env::temp_dir().join(format!("thalweg-changes-{}", std::process::id())));
    std::fs::create_dir_all(&place.0).unwrap();
    let start = || DomainParticipant::builder(domain).loopback_only().store(place.0.join("store")).create().unwrap();
    let service = DurabilityService { history: History::KeepLast(4), ..DurabilityService::default() };
    let within = |durability, names: &[&str]| {
        let partition = names.iter().map(|name| (*name).to_owned()).collect();
        WriterQos { durability, durability_service: service, partition, ..reliable_writer() }
    };
    for durability in [Durability::Transient, Durability::Persistent] {
        let participant = start();
        let topic = participant.create_topic::<Shape>(&name);
        let writer = participant.create_writer(&topic, within(durability, &["a"])).unwrap();
        let guid = writer.guid();
        writer.write(&Shape::new("RED", 1)).unwrap();
        let mut moved = within(durability, &["b"]);
        moved.timing.lifespan = Duration::from_secs(500);
        writer.set_qos(moved.clone()).unwrap();
        writer.write(&Shape::new("RED", 2)).unwrap();
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        let other = participant.create_writer(&topic, within(durability, &["a"])).unwrap();
        assert_eq!(other.held(), 0, "nothing is left there");
        let error = writer.set_qos(within(durability, &["a"])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InconsistentPolicy, "{error}");
        assert!(error.to_string().contains("PARTITION"), "{error}");
        assert_eq!(*writer.qos(), moved);
        drop(writer);
        let next = participant.create_writer(&topic, within(durability, &["b"])).unwrap();
        assert_eq!((next.guid(), next.held()), (guid, 2));
        next.set_qos(moved).unwrap();
        drop((next, other, participant));
        let partitions: Vec<_> = start().histories().into_iter().map(|kept| (kept.partition, kept.samples)).collect();
        let expect = match durability {
            Durability::Persistent => vec![(vec!["a".to_owned()], 0), (vec!["b".to_owned()], 2)],
            _ => Vec::new(),
        };
        assert_eq!(partitions, expect);
    }
}
