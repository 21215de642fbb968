//! Services that a driver registers: their samples reach the intended peers, within bounds.

use std::time::Duration;

use super::tests::*;
use super::*;
use crate::types::EntityId;

const WRITER: EntityId = EntityId([0x8f, 9, 0, 0x43]);
const READER: EntityId = EntityId([0x8f, 9, 0, 0x44]);
const BOUNDS: ServiceBounds = ServiceBounds { samples_max: 64, sample_bytes_max: 1_000, samples_per_second_max: 20 };

fn service(writes_to: ServicePeers, reads_from: ServicePeers, bounds: ServiceBounds) -> BuiltinService {
    BuiltinService { writer: WRITER, reader: READER, writes_to, reads_from, bounds }
}

fn asking() -> ServicePeers {
    ServicePeers::Announcing { name: "asks".into(), value: "1".into(), count_max: 8 }
}

/// `listening` participants that listen to those that ask, followed by `asking_ones` that ask.
fn net(listening: u8, asking_ones: u8) -> Net {
    net_with(listening, asking_ones, BOUNDS)
}

fn net_with(listening: u8, asking_ones: u8, bounds_there: ServiceBounds) -> Net {
    let mut net = Net::new(0);
    for index in 1..=listening {
        net.add_with(index, |config| config.services.push(service(ServicePeers::Nobody, asking(), BOUNDS)));
    }
    for index in 1..=asking_ones {
        net.add_with(listening + index, |config| {
            config.services.push(service(ServicePeers::Everybody, asking(), bounds_there));
            config.properties.push(("asks".into(), "1".into()));
        });
    }
    net.run_for(SECOND);
    net
}

fn write(net: &mut Net, node: usize, payload: &[u8]) -> bool {
    let now = net.now;
    net.nodes[node].participant.write_service(now, WRITER, payload.to_vec())
}

/// Sender and payload of each sample that the driver of a node was handed.
fn handed(net: &Net, node: usize) -> Vec<(GuidPrefix, Vec<u8>)> {
    let service_data = |event: &Event| match event {
        Event::ServiceData { reader, from, payload } => {
            assert_eq!(*reader, READER);
            Some((*from, payload.to_vec()))
        }
        _ => None,
    };
    net.nodes[node].events.iter().filter_map(service_data).collect()
}

fn matched_writers(net: &Net, node: usize) -> usize {
    net.nodes[node].participant.endpoints.reader(READER).expect("registered").lock().matched_writers().len()
}

#[test]
fn every_participant_that_has_the_service_is_handed_the_sample() {
    let mut net = net(2, 1);
    net.add(9);
    net.run_for(SECOND);
    assert!(write(&mut net, 2, b"whatever") && write(&mut net, 2, b"whatever"));
    net.run_for(SECOND);
    let from = net.nodes[2].participant.guid_prefix();
    let expected = vec![(from, b"whatever".to_vec()); 2];
    assert_eq!([0, 1, 3].map(|node| handed(&net, node)), [expected.clone(), expected, vec![]]);
}

#[test]
fn lost_samples_are_repeated() {
    let mut net = net(1, 1);
    net.loss = 0.3;
    let samples: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 4]).collect();
    for sample in &samples {
        assert!(write(&mut net, 1, sample));
        // Samples written at once would share a datagram.
        net.run_for(Duration::from_millis(10));
    }
    net.run_for(SECOND * 10);
    assert_eq!(handed(&net, 0).into_iter().map(|(_, payload)| payload).collect::<Vec<_>>(), samples);
}

#[test]
fn participants_that_announce_nothing_exchange_nothing() {
    let mut net = net(3, 0);
    assert!(write(&mut net, 0, b"to nobody"));
    net.run_for(SECOND);
    assert_eq!([0, 1, 2].map(|node| matched_writers(&net, node)), [0; 3]);
}

#[test]
fn a_peer_that_announces_another_value_is_not_heard() {
    let mut net = net(1, 0);
    net.add_with(2, |config| {
        config.services.push(service(ServicePeers::Everybody, ServicePeers::Nobody, BOUNDS));
        config.properties.push(("asks".into(), "2".into()));
    });
    net.run_for(SECOND);
    assert!(write(&mut net, 1, b"garbage!"));
    net.run_for(SECOND);
    assert_eq!((matched_writers(&net, 0), handed(&net, 0)), (0, vec![]));
}

#[test]
fn a_flood_of_samples_is_handed_over_at_its_rate() {
    let mut net = net(1, 1);
    for _ in 0..1_000 {
        write(&mut net, 1, b"more");
        net.run_for(Duration::from_millis(1));
    }
    let handed_over = handed(&net, 0).len();
    assert!((20..=60).contains(&handed_over), "{handed_over}");
    assert!(net.nodes[0].participant.counters().over_limit > 900);
    net.run_for(SECOND);
    write(&mut net, 1, b"again");
    net.run_for(SECOND);
    assert_eq!(handed(&net, 0).len(), handed_over + 1, "afterwards all is well");
}

#[test]
fn the_number_of_peers_is_bounded() {
    let net = net(1, 20);
    assert_eq!(matched_writers(&net, 0), 8);
    assert!(net.nodes[0].participant.counters().over_limit >= 12);
}

#[test]
fn long_samples_are_refused_at_both_ends() {
    let mut net = net_with(1, 1, ServiceBounds { sample_bytes_max: 2_000, ..BOUNDS });
    assert!(!write(&mut net, 1, &[0; 2_001]));
    let over_limit = net.nodes[0].participant.counters().over_limit;
    assert!(write(&mut net, 1, &[0; 1_001]) && write(&mut net, 1, &[0; 1_000]));
    net.run_for(SECOND);
    assert_eq!(handed(&net, 0).len(), 1, "the shorter one");
    assert_eq!(net.nodes[0].participant.counters().over_limit, over_limit + 1);
}

#[test]
fn services_only_are_written_by_the_driver() {
    let mut net = net(1, 0);
    let now = net.now;
    for writer in [EntityId::PUBLICATIONS_WRITER, EntityId([0x8f, 8, 0, 0x43])] {
        assert!(!net.nodes[0].participant.write_service(now, writer, vec![0; 4]));
    }
}

#[test]
fn the_announced_set_is_that_of_the_specification_whatever_is_registered() {
    let net = net(1, 1);
    let announced = |node: usize| net.nodes[node].participant.endpoints.builtin().announced();
    assert_eq!([announced(0), announced(1)], [0x3f | 1 << 10 | 1 << 11; 2]);
}

#[test]
#[should_panic(expected = "belongs to another built-in topic")]
fn a_service_cannot_have_the_endpoints_of_another_one() {
    let twice = [service(asking(), asking(), BOUNDS), service(asking(), asking(), BOUNDS)];
    Net::new(0).add_with(1, |config| config.services.extend(twice));
}

#[test]
#[should_panic(expected = "no keyless built-in writer and reader")]
fn a_service_cannot_have_the_endpoints_of_an_application() {
    let service = BuiltinService { writer: EntityId([0, 0, 9, 3]), ..service(asking(), asking(), BOUNDS) };
    Net::new(0).add_with(1, |config| config.services.push(service));
}
