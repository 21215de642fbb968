//! Laws of datagram sizes and traffic classes.

use std::time::Duration;

use super::tests::{Net, SECOND, first_bytes, reliable_reader, reliable_writer, take};
use super::*;
use crate::qos::{History, WriterQos};
use crate::types::{EntityId, Keyed};

/// Sizes of the datagrams that a participant has to send now, by the class that they are marked with.
fn sizes(net: &mut Net, node: usize) -> Vec<(u8, Vec<usize>)> {
    let mut sizes = Vec::new();
    loop {
        net.outbox.clear();
        let participant = &mut net.nodes[node].participant;
        let more = participant.poll_transmit(net.now, &mut net.outbox);
        if !net.outbox.is_empty() {
            let class = participant.traffic_class().code_point();
            sizes.push((class, net.outbox.datagrams().map(|datagram| datagram.len()).collect()));
        }
        if !more {
            return sizes;
        }
    }
}

fn largest(sizes: &[(u8, Vec<usize>)]) -> usize {
    sizes.iter().flat_map(|(_, sizes)| sizes).copied().max().unwrap_or_default()
}

#[test]
fn datagrams_are_as_large_as_the_path_takes() {
    let mut net = Net::new(2);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let _reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let peer = net.nodes[1].participant.guid_prefix();
    for node in [0, 1] {
        let chosen = Event::AddressesChosen(net.nodes[1 - node].participant.guid_prefix());
        assert!(net.nodes[node].events.contains(&chosen), "nobody would measure the path");
    }
    for (mtu, expect) in [(1500, 1300..=1472), (700, 500..=672), (1200, 1000..=1172), (9000, 1300..=1472)] {
        let now = net.now;
        assert!(net.nodes[0].participant.set_path_mtu(now, peer, mtu) || mtu == 1500);
        assert!(!net.nodes[0].participant.set_path_mtu(now, peer, mtu), "nothing new");
        net.write(0, &writer, &[1; 20_000]);
        let largest = largest(&sizes(&mut net, 0));
        assert!(expect.contains(&largest), "{largest} bytes in a path of {mtu}");
        net.run_for(SECOND);
    }
}

#[test]
fn a_sample_that_was_partly_lost_arrives_over_the_narrower_path() {
    for seed in 0..20 {
        let mut net = Net::new(2);
        net.rng = Rng::new(seed);
        let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
        net.run_for(SECOND);
        net.loss = 0.5;
        net.write(0, &writer, &[7; 100_000]);
        net.exchange();
        let (now, peer) = (net.now, net.nodes[1].participant.guid_prefix());
        assert!(net.nodes[0].participant.set_path_mtu(now, peer, 700));
        net.loss = 0.2;
        net.run_for(SECOND * 20);
        net.write(0, &writer, &[8; 50_000]);
        net.run_for(SECOND * 20);
        let samples = take(&net, &reader);
        assert_eq!(first_bytes(&samples), [7, 8], "seed {seed}");
        assert!(samples[0].payload[4..].iter().all(|byte| *byte == 7) && samples[0].payload.len() == 100_004);
    }
}

#[test]
fn a_sample_that_was_partly_lost_arrives_over_a_path_that_was_narrow_for_a_while() {
    for seed in 0..20 {
        let mut net = Net::new(2);
        net.rng = Rng::new(seed);
        let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
        let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
        net.run_for(SECOND);
        net.loss = 0.5;
        net.write(0, &writer, &[7; 100_000]);
        net.exchange();
        for mtu in [700, 1_500, 900, 1_500] {
            let (now, peer) = (net.now, net.nodes[1].participant.guid_prefix());
            assert!(net.nodes[0].participant.set_path_mtu(now, peer, mtu));
            net.run_for(Duration::from_millis(10));
        }
        net.loss = 0.2;
        net.run_for(SECOND * 20);
        assert_eq!(first_bytes(&take(&net, &reader)), [7], "seed {seed}");
    }
}

#[test]
fn datagrams_of_one_outbox_are_of_one_class() {
    let mut net = Net::new(2);
    let qos = |transport_priority| WriterQos { transport_priority, ..reliable_writer(History::KeepAll) };
    let writers = [0, 46, -1, 46].map(|priority| net.writer(0, qos(priority), Keyed::No));
    let _reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    for writer in &writers {
        net.write(0, writer, &[1; 10]);
    }
    let classes: Vec<u8> = sizes(&mut net, 0).iter().map(|(class, _)| *class).collect();
    assert_eq!(classes, [46, 0, 1], "by priority, those of one class together");
    let entity: EntityId = writers[1].lock().guid().entity;
    let now = net.now;
    net.nodes[0].participant.delete_writer(now, entity);
    assert_eq!(net.nodes[0].participant.endpoints.traffic_class(entity).code_point(), 0);
}
