//! Readers whose driver computes the keys: the samples that wait, those that do not, and the cost for the writer.

use std::collections::BTreeMap;
use std::time::Duration;

use super::tests::*;
use super::*;
use crate::history::ChangeKind;
use crate::qos::{History, ReaderQos, ResourceLimits, WriterQos};
use crate::reader::{Identified, KeyRequest, Reader};
use crate::shared::Shared;
use crate::types::{KeyHash, Keyed};

fn driven(net: &mut Net, node: usize, qos: ReaderQos) -> Shared<Reader> {
    let config = ReaderConfig {
        topic_name: "topic".into(),
        type_name: "type".into(),
        keyed: Keyed::Yes,
        qos: qos.into(),
        keys: KeySource::Driver,
        filter: None,
    };
    net.nodes[node].participant.create_reader(net.now, config).expect("a legal QoS")
}

fn requests(reader: &Shared<Reader>, max: usize) -> Vec<KeyRequest> {
    let mut requests = Vec::new();
    reader.lock().poll_keys(max, &mut requests);
    requests
}

/// Answers with the first byte of each sample; one that is `!` has no key.
fn answer(net: &mut Net, node: usize, reader: &Shared<Reader>, requests: &[KeyRequest]) {
    let key = |bytes: &[u8]| bytes.get(4).filter(|byte| **byte != b'!').map(|byte| KeyHash([*byte; 16]));
    let answers = requests.iter().map(|request| Identified {
        writer: request.writer,
        sequence: request.sequence,
        instance: key(&request.content),
    });
    let (entity, (_, arm)) = {
        let mut reader = reader.lock();
        (reader.guid().entity, reader.handle_keys(net.now, answers))
    };
    if let Some(at) = arm {
        net.nodes[node].participant.rearm(entity, at);
    }
}

#[test]
fn samples_wait_for_their_keys_unacknowledged_and_cost_no_repairs() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
    let reader = driven(&mut net, 1, reliable_reader(History::KeepAll));
    net.run_for(SECOND);
    let acknacks = reader.lock().counters().acknacks;
    for byte in b"abcabc" {
        net.write(0, &writer, &[*byte; 30]);
        net.run_for(Duration::from_millis(1));
    }
    net.run_for(SECOND);
    assert!(take(&net, &reader).is_empty());
    assert!(!writer.lock().all_acknowledged());
    assert_eq!(writer.lock().counters().repaired, 0);
    let asked = reader.lock().counters().acknacks - acknacks;
    assert!(asked <= 12, "{asked} ACKNACKs in a second: a wait for keys is no gap");
    let event = Event::KeysDue { reader: reader.lock().guid().entity };
    assert!(net.nodes[1].events.contains(&event));
    let due = requests(&reader, 4);
    assert_eq!(due.len(), 4);
    answer(&mut net, 1, &reader, &due);
    assert_eq!(first_bytes(&take(&net, &reader)), b"abca");
    assert!(reader.lock().has_keys_due());
    let due = requests(&reader, 4);
    answer(&mut net, 1, &reader, &due);
    let samples = take(&net, &reader);
    assert_eq!(first_bytes(&samples), b"bc");
    assert_eq!(samples[0].info.instance, KeyHash([b'b'; 16]));
    net.run_for(Duration::from_millis(1));
    assert!(writer.lock().all_acknowledged(), "told at once, since a HEARTBEAT had asked");
}

#[test]
fn a_key_that_cannot_be_computed_uses_its_number_up() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
    let reader = driven(&mut net, 1, reliable_reader(History::KeepAll));
    net.run_for(SECOND);
    for byte in b"a!b!" {
        net.write(0, &writer, &[*byte; 30]);
    }
    net.run_for(SECOND);
    let due = requests(&reader, 100);
    answer(&mut net, 1, &reader, &due);
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), b"ab");
    assert_eq!(reader.lock().losses().to_string(), "2 without a key that can be read");
    assert!(net.nodes[1].events.contains(&Event::SampleLost { reader: reader.lock().guid().entity }));
    assert!(writer.lock().all_acknowledged());
}

#[test]
fn a_sample_that_finds_no_room_is_told_of_as_soon_as_its_key_is_known() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
    let mut qos = reliable_reader(History::KeepAll);
    qos.resource_limits.max_samples = Some(1);
    let reader = driven(&mut net, 1, qos);
    net.run_for(SECOND);
    for byte in b"ab" {
        net.write(0, &writer, &[*byte; 30]);
    }
    net.run_for(SECOND);
    let due = requests(&reader, 100);
    answer(&mut net, 1, &reader, &due);
    net.run_for(Duration::from_millis(1));
    assert!(net.nodes[1].events.contains(&Event::SampleRejected { reader: reader.lock().guid().entity }));
    assert_eq!(first_bytes(&take(&net, &reader)), b"a");
}

#[test]
fn order_and_exactly_once_hold_under_loss_however_late_the_keys_come() {
    for (seed, size) in [(1, 20), (2, 3_000), (3, 70_000)] {
        let mut net = Net::new(2);
        net.rng = Rng::new(seed);
        let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
        let reader = driven(&mut net, 1, reliable_reader(History::KeepAll));
        let beside = net.reader(1, reliable_reader(History::KeepAll), Keyed::Yes);
        net.run_for(SECOND);
        net.loss = 0.2;
        let (mut due, mut samples) = (Vec::new(), Vec::new());
        for n in 0..50u8 {
            let mut bytes = vec![7; size];
            bytes[0] = 100 + n;
            assert!(net.write(0, &writer, &bytes));
            net.run_for(Duration::from_millis(1));
            if net.rng.chance(0.3) {
                answer(&mut net, 1, &reader, &due);
                due = requests(&reader, 5);
            }
            samples.extend(take(&net, &reader));
        }
        assert_eq!(take(&net, &beside).len(), 50 - missing(&beside), "a reader beside it does not wait");
        for _ in 0..200 {
            net.run_for(SECOND / 10);
            let due = requests(&reader, 5);
            answer(&mut net, 1, &reader, &due);
            samples.extend(take(&net, &reader));
        }
        assert_eq!(first_bytes(&samples), (100..150).collect::<Vec<u8>>(), "seed {seed}, size {size}");
        assert!(writer.lock().all_acknowledged());
    }
}

/// How many of 50 samples a reader has not received yet.
fn missing(reader: &Shared<Reader>) -> usize {
    50 - reader.lock().counters().received as usize
}

#[test]
fn best_effort_samples_keep_their_order_while_they_wait() {
    let mut net = Net::new(2);
    let writer = net.writer(0, WriterQos::default(), Keyed::Yes);
    let reader = driven(&mut net, 1, ReaderQos { history: History::KeepAll, ..ReaderQos::default() });
    net.run_for(SECOND);
    let write = |net: &mut Net, bytes: &[u8]| {
        for byte in bytes {
            net.write(0, &writer, &[*byte; 30]);
            net.run_for(Duration::from_millis(1));
        }
    };
    write(&mut net, b"ab");
    net.nodes[1].cut_off = true;
    write(&mut net, b"xy");
    net.nodes[1].cut_off = false;
    write(&mut net, b"c!d");
    assert!(take(&net, &reader).is_empty());
    for _ in 0..3 {
        let due = requests(&reader, 3);
        answer(&mut net, 1, &reader, &due);
    }
    assert_eq!(first_bytes(&take(&net, &reader)), b"abcd");
    let counters = reader.lock().counters();
    assert_eq!((counters.lost, counters.duplicates), (3, 0), "two on the way, one without a key");
}

#[test]
fn a_take_that_makes_room_asks_for_the_next_keys() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::Yes);
    let resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    let reader = driven(&mut net, 1, ReaderQos { resource_limits, ..reliable_reader(History::KeepAll) });
    net.run_for(SECOND);
    for byte in b"abcdef" {
        net.write(0, &writer, &[*byte; 30]);
    }
    net.run_for(SECOND);
    let due = requests(&reader, 3);
    answer(&mut net, 1, &reader, &due);
    assert!(!reader.lock().has_keys_due(), "the cache is full");
    let mut samples = Vec::new();
    let filter = crate::history::ReadFilter::ALL;
    let outcome = reader.lock().take(|| net.now, 2, &filter, &mut samples);
    assert!(outcome.keys_due);
    for _ in 0..3 {
        let due = requests(&reader, 3);
        answer(&mut net, 1, &reader, &due);
        samples.append(&mut take(&net, &reader));
    }
    assert_eq!(first_bytes(&samples), b"abcdef");
}

#[test]
fn keyed_instances_end_by_dispose_unregister_and_lost_writers() {
    use crate::history::InstanceState::*;
    let mut net = Net::new(2);
    let mut qos = reliable_writer(History::KeepAll);
    qos.autodispose = false;
    let writer = net.writer(0, qos, Keyed::Yes);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::Yes);
    net.run_for(SECOND);
    for key in [1, 2, 3] {
        net.write(0, &writer, &[key]);
    }
    net.change(0, &writer, ChangeKind::Dispose, &[1]);
    net.change(0, &writer, ChangeKind::Unregister, &[2]);
    net.run_for(SECOND);
    let entity = writer.lock().guid().entity;
    let now = net.now;
    net.nodes[0].participant.delete_writer(now, entity);
    net.run_for(SECOND);
    let states: BTreeMap<u8, _> =
        take(&net, &reader).iter().map(|sample| (sample.payload[4], sample.info.instance_state)).collect();
    let expect = [(1, NotAliveDisposed), (2, NotAliveNoWriters), (3, NotAliveNoWriters)];
    assert_eq!(states, BTreeMap::from(expect));
}
