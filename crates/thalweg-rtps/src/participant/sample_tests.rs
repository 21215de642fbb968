//! The data that samples carry beside their bytes, and the fate of samples that cannot be handed over.

use std::time::Duration;

use super::tests::*;
use super::*;
use crate::history::ChangeKind;
use crate::qos::{History, Reliability, WriterQos};
use crate::types::{KeyHash, Keyed};

/// Every INFO_TS in datagrams with samples of these writers.
fn stamps_with(net: &Net, writers: &[EntityId]) -> Vec<Option<Timestamp>> {
    let with = net.sent.iter().filter(|sent| sent.writers.iter().any(|writer| writers.contains(writer)));
    with.flat_map(|sent| sent.stamps.iter().copied()).collect()
}

const SEDP_WRITERS: [EntityId; 2] = [EntityId::PUBLICATIONS_WRITER, EntityId::SUBSCRIPTIONS_WRITER];

#[test]
fn announcements_are_stamped_with_the_time_that_the_driver_told() {
    let mut net = Net::new(2);
    let wall = Timestamp::from_unix(Duration::from_secs(1_800_000_000));
    let now = net.now;
    net.nodes[0].participant.set_wall_clock(now, wall);
    net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let stamps = stamps_with(&net, &SEDP_WRITERS);
    assert!(!stamps.is_empty());
    assert!(stamps.iter().all(|stamp| *stamp == Some(wall)), "{stamps:?}");
}

#[test]
fn without_a_clock_nothing_is_said_of_time() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    net.write(0, &writer, &[7; 5]);
    net.write(0, &writer, &[7; 5_000]);
    net.run_for(SECOND);
    assert!(stamps_with(&net, &SEDP_WRITERS).is_empty());
    let user = [writer.lock().guid().entity];
    assert!(stamps_with(&net, &user).is_empty());
    assert!(net.sent.iter().any(|sent| sent.writers.contains(&user[0])));
}

#[test]
fn a_sample_whose_key_cannot_be_read_is_told_as_lost() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
    let config = ReaderConfig {
        topic_name: "topic".into(),
        type_name: "type".into(),
        keyed: Keyed::Yes,
        qos: reliable_reader(History::KeepAll).into(),
        keys: KeySource::Function(Arc::new(|payload: &[u8], _| {
            (payload[4] < 100).then_some(KeyHash([payload[4]; 16]))
        })),
        filter: None,
    };
    let now = net.now;
    let reader = net.nodes[1].participant.create_reader(now, config).expect("a legal QoS");
    net.run_for(SECOND);
    for (byte, len) in [(1, 5), (200, 5), (201, 200_000), (2, 5)] {
        net.write(0, &writer, &vec![byte; len]);
    }
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), [1, 2]);
    assert_eq!(reader.lock().losses().to_string(), "2 without a key that can be read");
    assert!(net.nodes[1].events.contains(&Event::SampleLost { reader: reader.lock().guid().entity }));
    // The end of an instance comes with its key hash, which suffices.
    net.change(0, &writer, ChangeKind::Dispose, &[200; 5]);
    net.change(0, &writer, ChangeKind::Dispose, &[1; 5]);
    net.run_for(SECOND);
    let ended: Vec<KeyHash> = take(&net, &reader).iter().map(|sample| sample.info.instance).collect();
    assert_eq!(ended, [KeyHash([200; 16]), KeyHash([1; 16])]);
    assert_eq!(reader.lock().counters().lost, 2);
}

#[test]
fn the_lifespan_that_a_writer_announces_holds_at_its_readers() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    // As another vendor announces it, whose writers may have one.
    let (guid, now) = (writer.lock().guid(), net.now);
    let participant = &mut net.nodes[1].participant;
    let known = participant.database.publications.get_mut(guid).expect("known");
    Arc::make_mut(&mut Arc::make_mut(&mut known.data).qos).timing.lifespan = SECOND / 2;
    participant.match_publication(now, guid);
    net.write(0, &writer, &[1; 5]);
    net.run_for(SECOND / 4);
    net.write(0, &writer, &[2; 5]);
    assert_eq!(reader.lock().cache().len(), 1);
    net.run_for(SECOND / 3);
    assert_eq!(reader.lock().cache().len(), 1, "the participant's timer let the first one go");
    assert_eq!(first_bytes(&take(&net, &reader)), [2]);
    assert_eq!(reader.lock().counters().expired, 1);
}

#[test]
fn incompatible_qos_is_told_on_both_sides_with_the_reason() {
    let mut net = Net::new(2);
    let qos = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    net.writer(0, qos, Keyed::No);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let told = |node: usize| {
        net.nodes[node].events.iter().find_map(|event| match event {
            Event::OfferedIncompatibleQos { mismatches, .. } | Event::RequestedIncompatibleQos { mismatches, .. } => {
                Some(mismatches[0].to_string())
            }
            _ => None,
        })
    };
    for node in [0, 1] {
        let text = told(node).expect("an incompatible-QoS event");
        assert!(text.contains("RELIABILITY") && text.contains("BEST_EFFORT"), "{text}");
    }
}
