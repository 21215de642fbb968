//! Laws of announcements: their receivers and destinations.

use super::tests::{Net, SECOND, locator};
use crate::types::Locator;

/// The destinations of each of the first announcements of a participant that was configured with `announce_to`, in order.
fn announced_to(announce_to: &[Locator], announcements: usize) -> Vec<Vec<Locator>> {
    let mut net = Net::new(0);
    net.add_with(1, |config| config.addresses.announce_to = announce_to.to_vec());
    let mut told = Vec::new();
    while told.len() < announcements {
        net.outbox.clear();
        let participant = &mut net.nodes[0].participant;
        participant.poll_transmit(net.now, &mut net.outbox);
        told.extend(net.outbox.datagrams().map(|datagram| datagram.destinations().to_vec()));
        net.now = participant.poll_timeout().max(net.now);
        participant.handle_timeout(net.now);
    }
    told
}

#[test]
fn no_address_is_always_the_last_to_be_told() {
    let configured: Vec<Locator> = (1..=3).map(|last| locator([10, 0, 9, last], 7410)).collect();
    let told = announced_to(&configured, 6);
    for (turn, everywhere) in told.iter().enumerate() {
        let mut expect = configured.clone();
        expect.rotate_left(turn % 3);
        assert_eq!(*everywhere, expect);
    }
}

#[test]
fn a_participant_that_has_moved_tells_all_that_it_knows() {
    let mut net = Net::new(3);
    net.run_for(SECOND);
    net.multicast_lost = true;
    let moved = [10, 0, 0, 77];
    net.nodes[1].address = moved;
    let mut addresses = net.nodes[1].participant.config().addresses.clone();
    addresses.metatraffic_unicast = vec![locator(moved, 7410)];
    addresses.default_unicast = vec![locator(moved, 7411)];
    addresses.interfaces = vec![(moved.into(), 24)];
    let now = net.now;
    net.nodes[1].participant.set_addresses(now, addresses);
    net.run_for(SECOND * 8);
    let prefix = net.nodes[1].participant.guid_prefix();
    for node in [0, 2] {
        let path = net.nodes[node].participant.paths().find(|(other, _)| *other == prefix);
        assert_eq!(path.map(|(_, to)| to.to_vec()), Some(vec![locator(moved, 7411)]), "at node {node}");
    }
}
