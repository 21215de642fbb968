//! What clients see of the topics of a domain.

use thalweg::qos::WriterQos;
use thalweg::types::Keyed;
use thalweg_recording::TopicSelection;
use thalweg_testing::program::PATIENCE;
use thalweg_testing::viewer::Viewer;
use thalweg_view::ViewNews;

use crate::{LONG, Scene, latched, participant, reading, volatile, writer};

#[test]
fn topics_come_and_go_and_samples_are_the_bytes_that_were_written() {
    let scene = Scene::new(|_| ());
    let mut viewer = Viewer::connect(scene.address);
    let far = scene.participant();
    let source = writer(&far, "rt/scan", LONG, volatile());
    let channel = viewer.expect_channel("/scan");
    assert_eq!((&channel["encoding"], &channel["schemaName"]), (&"cdr".into(), &"Reading".into()), "{channel:#}");
    viewer.subscribe(5, &channel);
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    for value in 1..=3 {
        source.write_serialized(&reading(value)).expect("written");
        assert_eq!(viewer.expect_sample(), (5, reading(value)));
    }
    drop(source);
    viewer.expect("the end of the channel", |message| message["op"] == "unadvertise");
    let summary = scene.finish();
    assert_eq!((summary.clients, summary.samples, summary.dropped), (1, 3, 0));
}

#[test]
fn a_topic_is_read_only_while_a_client_wants_it() {
    let scene = Scene::new(|_| ());
    let far = scene.participant();
    let source = writer(&far, "scan", LONG, volatile());
    scene.expect("the topic", |news| matches!(news, ViewNews::Topic { .. }));
    let mut viewer = Viewer::connect(scene.address);
    let channel = viewer.expect_channel("scan");
    assert_eq!(source.matched_readers().len(), 0, "nobody looks at it yet");
    viewer.subscribe(1, &channel);
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    viewer.unsubscribe(1);
    let until = std::time::Instant::now() + PATIENCE;
    while !source.matched_readers().is_empty() {
        assert!(std::time::Instant::now() < until, "the view still reads the topic");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn late_clients_get_what_writers_keep_for_late_readers() {
    let scene = Scene::new(|options| options.latched_depth = 2);
    let far = scene.participant();
    let source = writer(&far, "map", LONG, latched(10));
    for value in 1..=3 {
        source.write_serialized(&reading(value)).expect("written");
    }
    source.wait_for_acknowledgments(PATIENCE).expect("acknowledged");
    scene.expect("the topic", |news| matches!(news, ViewNews::Topic { .. }));
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    source.wait_for_acknowledgments(PATIENCE).expect("the view has it");
    for round in 0..2 {
        let mut viewer = Viewer::connect(scene.address);
        let channel = viewer.expect_channel("map");
        viewer.subscribe(round, &channel);
        assert_eq!(viewer.expect_sample(), (round, reading(2)));
        assert_eq!(viewer.expect_sample(), (round, reading(3)));
        source.write_serialized(&reading(3)).expect("written");
        assert_eq!(viewer.expect_sample(), (round, reading(3)));
        source.write_serialized(&reading(2)).expect("written");
        source.write_serialized(&reading(3)).expect("written");
        assert_eq!((viewer.expect_sample().1, viewer.expect_sample().1), (reading(2), reading(3)));
    }
}

#[test]
fn a_type_that_nobody_describes_is_told_and_found_once_somebody_does() {
    let scene = Scene::new(|_| ());
    let silent = thalweg::DomainParticipant::builder(0)
        .loopback_only()
        .domain_tag(&scene.tag)
        .without_type_description()
        .create();
    let silent = silent.expect("a participant");
    let topic = silent.create_raw_topic("rt/scan", "Reading", Keyed::No, None);
    let _source = silent.create_writer(&topic, WriterQos::default()).expect("a writer");
    scene.expect("the type", |news| matches!(news, ViewNews::Remark { text } if text.contains("is not known")));
    let mut viewer = Viewer::connect(scene.address);
    let remark = viewer.expect_remark("/scan is not shown");
    let text = remark["message"].as_str().unwrap_or_default();
    assert!(text.contains("Reading") && text.contains("--idl FILE"), "{text}");
    let far = participant(&scene.tag);
    let _described = writer(&far, "rt/scan", LONG, volatile());
    viewer.expect_channel("/scan");
}

#[test]
fn a_second_type_of_a_topic_is_told_and_its_samples_are_left_out() {
    let scene = Scene::new(|_| ());
    let (first, second) = (scene.participant(), scene.participant());
    let source = writer(&first, "scan", LONG, volatile());
    scene.expect("the topic", |news| matches!(news, ViewNews::Topic { .. }));
    let other = writer(&second, "scan", "@final struct Other { double value; };", volatile());
    let mut viewer = Viewer::connect(scene.address);
    let channel = viewer.expect_channel("scan");
    assert_eq!(channel["schemaName"], "Reading");
    viewer.expect_remark("writers with Other are left out");
    viewer.subscribe(1, &channel);
    source.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    other.write_serialized(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect("written");
    source.write_serialized(&reading(7)).expect("written");
    assert_eq!(viewer.expect_sample(), (1, reading(7)));
}

#[test]
fn a_second_definition_of_a_type_is_told_and_its_samples_are_left_out() {
    let scene = Scene::new(|_| ());
    let (first, second) = (scene.participant(), scene.participant());
    let source = writer(&first, "scan", LONG, volatile());
    scene.expect("the topic", |news| matches!(news, ViewNews::Topic { .. }));
    let mut viewer = Viewer::connect(scene.address);
    let channel = viewer.expect_channel("scan");
    viewer.subscribe(1, &channel);
    let other = writer(&second, "scan", "@final struct Reading { double value; };", volatile());
    viewer.expect_remark("writers with another definition of Reading are left out");
    for writer in [&other, &source] {
        writer.wait_for_matched(1, PATIENCE).expect("the view reads the topic");
    }
    other.write_serialized(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect("written");
    other.wait_for_acknowledgments(PATIENCE).expect("the view has it");
    source.write_serialized(&reading(7)).expect("written");
    assert_eq!(viewer.expect_sample(), (1, reading(7)));
    drop(source);
    let channel = viewer.expect_channel("scan");
    assert!(channel["schema"].as_str().is_some_and(|text| text.contains("double")), "{channel:#}");
}

#[test]
fn topics_are_chosen_by_their_names() {
    let scene = Scene::new(|options| {
        options.topics = TopicSelection::new(vec!["/camera/*".to_owned()], vec!["*raw".to_owned()]);
    });
    let far = scene.participant();
    let names = ["rt/scan", "rt/camera/raw", "rt/camera/small"];
    let _writers = names.map(|name| writer(&far, name, LONG, volatile()));
    let news = scene.expect("the topic", |news| matches!(news, ViewNews::Topic { .. }));
    assert!(matches!(&news, ViewNews::Topic { topic, .. } if topic == "/camera/small"), "{news}");
    let mut viewer = Viewer::connect(scene.address);
    let told = viewer.expect("channels", |message| message["op"] == "advertise");
    assert_eq!(told["channels"].as_array().map(Vec::len), Some(1), "{told:#}");
}
