//! A participant of another vendor that begins anew under its old GUID, within its lease.

use std::net::SocketAddr;
use std::sync::Arc;

use super::tests::*;
use super::*;
use crate::payload::Payload;
use crate::qos::History;
use crate::types::{EntityId, Keyed, SequenceNumber, VendorId};
use crate::wire::Heartbeat;
use crate::wire::write;

/// Node 0 announces so many writers; node 1 takes it for a participant of another vendor.
fn net_with_writers(count: usize) -> Net {
    let mut net = Net::new(2);
    for _ in 0..count {
        net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    }
    net.run_for(SECOND);
    let (now, prefix) = (net.now, net.nodes[0].participant.guid_prefix());
    let participant = &mut net.nodes[1].participant;
    let known = participant.database.participants.get_mut(&prefix).expect("they have met");
    Arc::make_mut(&mut known.data).vendor = VendorId::FAST_DDS;
    participant.match_builtin(now, prefix);
    net
}

/// Says in the name of node 0 that it has announced no more than the writers from number `first` to `last`.
fn tell(net: &mut Net, first: SequenceNumber, last: SequenceNumber, count: u32) {
    let (reader, writer) = (EntityId::UNKNOWN, EntityId::PUBLICATIONS_WRITER);
    let heartbeat = Heartbeat { reader, writer, first, last, count, is_final: false, liveliness: false };
    let mut bytes = Vec::new();
    write::header(&mut bytes, net.nodes[0].participant.guid_prefix());
    write::heartbeat(&mut bytes, &heartbeat);
    let source = SocketAddr::from((net.nodes[0].address, 7411));
    net.nodes[1].participant.handle_datagram(net.now, &Payload::from(bytes), source);
}

#[test]
fn a_participant_that_begins_anew_within_its_lease_is_met_anew() {
    let mut net = net_with_writers(3);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(reader.lock().matched_writers().len(), 3);
    let prefix = net.nodes[0].participant.guid_prefix();
    let publications =
        net.nodes[0].participant.endpoints.writer(EntityId::PUBLICATIONS_WRITER).expect("it is built in");
    let last = publications.lock().last();
    let first = last.previous().previous();
    net.nodes[0].hangs = true;
    tell(&mut net, first, first, 1);
    tell(&mut net, first, first, 2);
    net.run_for(SECOND * 4);
    assert_eq!(reader.lock().matched_writers().len(), 3, "it was asked");
    tell(&mut net, first, first.next(), 3);
    net.run_for(SECOND / 100);
    let lost = Event::ParticipantLost { prefix, reason: LostReason::Left };
    assert!(net.nodes[1].events.contains(&lost), "{:?}", net.nodes[1].events);
    assert_eq!(reader.lock().matched_writers().len(), 0);

    net.add(1);
    net.nodes.swap_remove(0);
    net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.run_for(SECOND * 30);
    assert_eq!(reader.lock().matched_writers().len(), 1);
}
