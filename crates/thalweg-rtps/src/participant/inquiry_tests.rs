//! Questions about writers: who answers, and that nobody can be made to work much or to remember much.

use super::tests::*;
use super::*;
use crate::qos::History;
use crate::types::{EntityId, Guid, Keyed};

fn net(participants: u8, inspectors: u8) -> Net {
    let mut net = Net::new(participants);
    for index in 0..inspectors {
        net.add_with(participants + index + 1, |config| config.inspector = true);
    }
    net
}

fn ask(net: &mut Net, node: usize, topic: &str) -> Vec<Guid> {
    let now = net.now;
    net.nodes[node].participant.ask(now, topic);
    net.run_for(SECOND);
    net.nodes[node].participant.answers().map(|told| told.guid).collect()
}

fn matched(net: &Net, node: usize, writer: EntityId) -> usize {
    net.nodes[node].participant.endpoints.writer(writer).expect("built in").lock().matched_readers().len()
}

#[test]
fn every_endpoint_of_the_topic_is_explained_and_no_other() {
    let mut net = net(3, 1);
    let one = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let two = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let three = net.writer(1, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.add(9);
    net.run_for(SECOND);
    net.write(0, &one, &[1; 100]);
    net.nodes[1].participant.counters.unprovable = 5;
    let guids = [one, two, three].map(|writer| writer.lock().guid());
    assert_eq!(ask(&mut net, 3, "topic"), guids);
    let inspector = &net.nodes[3].participant;
    let told = inspector.answers().next().expect("an answer");
    assert_eq!((told.topic.as_str(), told.readers, told.route.destinations.len()), ("topic", 1, 1));
    let prefix = |node: usize| net.nodes[node].participant.guid_prefix();
    assert!(inspector.has_answered(prefix(0)) && inspector.has_answered(prefix(1)));
    let told = inspector.reader_answers().next().expect("an answer");
    let reader = reader.lock();
    assert_eq!((told.guid, told.topic.as_str(), told.writers, told.received), (reader.guid(), "topic", 3, 1));
    assert_eq!(inspector.reader_answers().count(), 1);
    assert!(inspector.has_answered(prefix(2)));
    assert!(!inspector.has_answered(prefix(4)), "it has nothing to tell and keeps quiet");
    drop(reader);
    let told: Vec<_> = inspector.participant_answers().copied().collect();
    assert_eq!(told, [0, 1, 2].map(|node: usize| net.nodes[node].participant.explain()));
    assert_eq!(told[1].unprovable, 5);
    assert!(ask(&mut net, 3, "another").is_empty());
}

#[test]
fn nobody_exchanges_anything_while_nobody_asks() {
    let mut net = net(3, 0);
    net.run_for(SECOND);
    for node in 0..3 {
        assert_eq!(
            [EntityId::QUESTION_WRITER, EntityId::ANSWER_WRITER].map(|writer| matched(&net, node, writer)),
            [0, 0]
        );
    }
}

#[test]
fn a_flood_of_questions_is_answered_at_its_rate() {
    let mut net = net(1, 1);
    net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let sent = |net: &Net| {
        net.nodes[0]
            .participant
            .endpoints
            .writer(EntityId::ANSWER_WRITER)
            .expect("built in")
            .lock()
            .counters()
            .transmitted
    };
    for _ in 0..1_000 {
        let now = net.now;
        net.nodes[1].participant.ask(now, "topic");
        net.run_for(std::time::Duration::from_millis(1));
    }
    assert!((20..=60).contains(&sent(&net)), "{}", sent(&net));
    assert!(net.nodes[0].participant.counters().over_limit > 900);
    net.run_for(SECOND);
    assert_eq!(ask(&mut net, 1, "topic").len(), 1, "afterwards all is well");
}

#[test]
fn the_number_of_inspectors_is_bounded() {
    let mut net = net(1, 20);
    net.run_for(SECOND);
    assert_eq!(matched(&net, 0, EntityId::ANSWER_WRITER), 8);
    assert!(net.nodes[0].participant.counters().over_limit >= 12);
    assert_eq!(ask(&mut net, 1, "topic"), []);
}

#[test]
fn many_writers_answer_as_many_as_fit() {
    let mut net = net(1, 2);
    for _ in 0..100 {
        net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    }
    net.run_for(SECOND);
    assert_eq!(ask(&mut net, 1, "topic").len(), ANSWERS_MAX);
    assert!(net.nodes[2].participant.answers().next().is_none(), "an answer to another question");
}
