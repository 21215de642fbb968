//! Communication groups: participants with a common group discover each other, and others exchange nothing but announcements.

use std::net::SocketAddr;
use std::time::Duration;

use super::tests::*;
use super::*;
use crate::discovery::groups::Groups;
use crate::discovery::participant_data::ParticipantData;
use crate::payload::Payload;
use crate::qos::History;
use crate::time::INFINITE;
use crate::types::{EntityId, Keyed, SequenceNumber, VendorId};
use crate::wire::write::{self, DataHead, DataKind};

fn groups(names: &[&str]) -> Groups {
    Groups::new(names.iter().copied()).expect("names")
}

/// A participant for each list of groups.
fn net(lists: &[&[&str]]) -> Net {
    let mut net = Net::new(0);
    for (index, names) in lists.iter().enumerate() {
        net.add_with(index as u8 + 1, |config| config.groups = groups(names));
    }
    net
}

fn known(net: &Net, node: usize) -> usize {
    net.nodes[node].participant.participants().count()
}

fn ignored(net: &Net, node: usize) -> Vec<String> {
    let participant = &net.nodes[node].participant;
    participant.ignored_participants(net.now).map(|ignored| ignored.groups.to_string()).collect()
}

fn builtin_readers(net: &Net, node: usize) -> usize {
    let writer = net.nodes[node].participant.endpoints.writer(EntityId::PUBLICATIONS_WRITER).expect("built in");
    writer.lock().matched_readers().len()
}

/// An announcement by a participant of another vendor.
fn announce(net: &mut Net, node: usize, number: u8, user_data: &[u8]) {
    announce_for(net, node, number, user_data, SECOND * 10);
}

/// The same with another lease.
fn announce_for(net: &mut Net, node: usize, number: u8, user_data: &[u8], lease: Duration) {
    let mut data = ParticipantData::new(GuidPrefix([number; 12]));
    data.vendor = VendorId::CYCLONE;
    data.user_data = user_data.to_vec();
    data.lease_duration = lease;
    let mut payload = Vec::new();
    data.encode(&mut payload);
    let mut bytes = Vec::new();
    write::header(&mut bytes, data.guid_prefix);
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence: SequenceNumber(1),
        inline_qos: &[],
        kind: DataKind::Data,
    };
    write::data(&mut bytes, &head, payload.len());
    bytes.extend(payload);
    let now = net.now;
    net.nodes[node].participant.handle_datagram(now, &Payload::from(bytes), SocketAddr::from(([10, 0, 0, number], 9)));
}

#[test]
fn other_groups_exchange_announcements_and_nothing_else() {
    let mut net = net(&[&["radar"], &["ops"]]);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert!(net.write(0, &writer, b"x"));
    net.run_for(SECOND * 60);
    for node in [0, 1] {
        assert_eq!((known(&net, node), builtin_readers(&net, node)), (0, 0));
        let counters = net.nodes[node].participant.counters();
        assert_eq!(counters.datagrams, counters.other_groups, "announcements only");
        assert!(counters.datagrams >= 4 + 60 / 5, "{counters:?}");
        let own = net.nodes[node].participant.guid_prefix();
        assert_eq!(net.nodes[node].events, [Event::AddressesChosen(own)]);
    }
    assert_eq!(writer.lock().matched_readers().len(), 0);
    assert_eq!((ignored(&net, 0), ignored(&net, 1)), (vec!["ops".to_owned()], vec!["radar".to_owned()]));
}

#[test]
fn those_who_share_a_group_work_as_ever() {
    let mut net = net(&[&["radar", "ops"], &["ops"], &["video"], &[]]);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    let strange = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    let without = net.reader(3, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert!(net.write(0, &writer, b"x"));
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &reader)), b"x");
    assert!(take(&net, &strange).is_empty() && take(&net, &without).is_empty());
    assert_eq!([0, 1, 2, 3].map(|node| known(&net, node)), [1, 1, 0, 0]);
}

#[test]
fn a_change_of_groups_is_judged_anew_on_both_sides() {
    let mut net = net(&[&["radar"], &["radar"], &[]]);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    let other = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(writer.lock().matched_readers().len(), 1);
    let now = net.now;
    net.nodes[1].participant.set_groups(now, groups(&["ops"]));
    net.run_for(SECOND);
    assert_eq!(writer.lock().matched_readers().len(), 0);
    assert_eq!(reader.lock().matched_writers().len(), 0);
    for (node, other) in [(0, 1), (1, 0)] {
        let prefix = net.nodes[other].participant.guid_prefix();
        let lost = Event::ParticipantLost { prefix, reason: LostReason::OtherGroups };
        assert!(net.nodes[node].events.contains(&lost));
    }
    let now = net.now;
    net.nodes[0].participant.set_groups(now, groups(&[]));
    net.run_for(SECOND);
    assert_eq!(writer.lock().matched_readers().len(), 1, "now it meets the one without groups");
    assert!(net.write(0, &writer, b"y"));
    net.run_for(SECOND);
    assert_eq!(first_bytes(&take(&net, &other)), b"y");
    assert_eq!(ignored(&net, 0), ["ops"]);
}

#[test]
fn a_foreign_participant_is_judged_by_its_user_data() {
    let mut net = net(&[&["radar"]]);
    announce(&mut net, 0, 9, b"enclave=/;groups=ops;");
    assert_eq!((known(&net, 0), ignored(&net, 0)), (0, vec!["ops".to_owned()]));
    announce(&mut net, 0, 9, b"enclave=/;groups=ops,radar;");
    assert_eq!((net.nodes[0].participant.strangers(), ignored(&net, 0).len()), (1, 0));
    announce(&mut net, 0, 9, b"enclave=/;");
    assert_eq!((known(&net, 0), ignored(&net, 0)), (0, vec![String::new()]));
    net.run_for(SECOND * 11);
    assert!(ignored(&net, 0).is_empty(), "nobody counts as ignored who is gone");
}

#[test]
fn the_application_can_name_groups_in_its_own_user_data() {
    let mut net = Net::new(0);
    net.add_with(1, |config| config.user_data = b"groups=radar;".to_vec());
    net.add_with(2, |config| config.groups = groups(&["radar"]));
    net.add_with(3, |_| {});
    net.run_for(SECOND);
    assert_eq!([0, 1, 2].map(|node| known(&net, node)), [1, 1, 0]);
}

#[test]
fn the_ignored_are_bounded_and_make_room_when_they_are_gone() {
    let mut net = Net::new(0);
    net.add_with(1, |config| {
        config.groups = groups(&["radar"]);
        config.limits.participants_max = 10;
    });
    for number in 100..150 {
        announce(&mut net, 0, number, b"");
    }
    assert_eq!(ignored(&net, 0).len(), 10);
    assert_eq!(net.nodes[0].participant.counters().over_limit, 40);
    net.run_for(SECOND * 11);
    announce(&mut net, 0, 200, b"");
    assert_eq!(net.nodes[0].participant.company.remembered(), 1);
}

#[test]
fn announcements_with_endless_leases_keep_nobody_from_being_remembered() {
    let mut net = Net::new(0);
    net.add_with(1, |config| {
        config.groups = groups(&["radar"]);
        config.limits.participants_max = 10;
    });
    for number in 100..110 {
        announce_for(&mut net, 0, number, b"", INFINITE);
    }
    net.run_for(SECOND);
    announce(&mut net, 0, 200, b"enclave=/;groups=ops;");
    let remembered = ignored(&net, 0);
    assert_eq!((remembered.len(), remembered.contains(&"ops".to_owned())), (10, true));
    net.run_for(SECOND * 3_601);
    announce(&mut net, 0, 201, b"");
    assert_eq!(net.nodes[0].participant.company.remembered(), 1, "a lease is an hour at most");
}
