//! How long participants are known; and laws of leases that end too early, on one side or on both: no sample arrives twice, and
//! none is lost without notice.

use std::time::Duration;

use super::tests::*;
use super::*;
use crate::qos::{Durability, History, ReaderQos, WriterQos};
use crate::types::Keyed;

const SHORT: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(600);

/// The samples that a reader took of 15, the last 5 of which were written during a cut of 60 s, and the number that it lost.
fn across_a_cut(durability: Durability, writers_lease: Duration, readers_lease: Duration) -> (Vec<u8>, u64) {
    let mut net = Net::new(0);
    net.add_with(1, |config| config.lease_duration = writers_lease);
    net.add_with(2, |config| config.lease_duration = readers_lease);
    let writer = net.writer(0, WriterQos { durability, ..reliable_writer(History::KeepAll) }, Keyed::No);
    let reader = net.reader(1, ReaderQos { durability, ..reliable_reader(History::KeepAll) }, Keyed::No);
    net.run_for(SECOND * 2);
    let mut taken = Vec::new();
    for n in 0..10 {
        assert!(net.write(0, &writer, &[n; 5]));
    }
    net.run_for(SECOND);
    net.nodes[1].cut_off = true;
    for n in 10..15 {
        assert!(net.write(0, &writer, &[n; 5]));
    }
    net.run_for(SECOND * 60);
    net.nodes[1].cut_off = false;
    net.run_for(SECOND * 60);
    assert_eq!(reader.lock().matched_writers().len(), 1);
    taken.extend(take(&net, &reader).into_iter().filter(|sample| sample.info.valid));
    let lost = reader.lock().losses().total();
    (first_bytes(&taken), lost)
}

#[test]
fn a_lease_that_ends_on_either_side_neither_repeats_nor_hides_samples() {
    let all: Vec<u8> = (0..15).collect();
    for (writers, readers) in [(SHORT, LONG), (LONG, SHORT), (SHORT, SHORT)] {
        let got = across_a_cut(Durability::TransientLocal, writers, readers);
        assert_eq!(got, (all.clone(), 0), "kept for late readers, leases {writers:?} and {readers:?}");
        let (taken, lost) = across_a_cut(Durability::Volatile, writers, readers);
        assert_eq!(taken, all[..taken.len()], "leases {writers:?} and {readers:?}");
        assert_eq!(taken.len() as u64 + lost, 15, "leases {writers:?} and {readers:?}");
        // A writer that has lost no reader repeats the samples that it owes.
        assert_eq!(lost == 0, readers == LONG, "leases {writers:?} and {readers:?}");
    }
}

#[test]
fn participants_that_leave_or_fall_silent_are_dropped() {
    let mut net = Net::new(3);
    net.run_for(SECOND);
    assert_eq!(net.nodes[0].participant.participants().count(), 2);
    let now = net.now;
    net.nodes[1].participant.shutdown(now);
    net.nodes[2].cut_off = true;
    net.run_for(SECOND);
    assert_eq!(net.nodes[0].participant.participants().count(), 1);
    net.run_for(SECOND * 30);
    assert_eq!(net.nodes[0].participant.participants().count(), 0);
    let prefix = net.nodes[2].participant.guid_prefix();
    assert!(net.nodes[0].events.contains(&Event::ParticipantLost { prefix, reason: LostReason::LeaseExpired }));
}

#[test]
fn participant_messages_keep_the_lease_when_multicast_stops() {
    let mut net = Net::new(2);
    net.run_for(SECOND);
    net.multicast_lost = true;
    net.run_for(SECOND * 120);
    for node in &net.nodes {
        assert_eq!(node.participant.participants().count(), 1);
        assert!(!node.events.iter().any(|event| matches!(event, Event::ParticipantLost { .. })));
    }
}

#[test]
fn other_domains_and_tags_are_strangers() {
    let mut net = Net::new(1);
    for (index, domain, tag) in [(2, 1, ""), (3, 0, "tag")] {
        net.add(index);
        let node = net.nodes.last_mut().expect("just added");
        let mut config = node.participant.config().clone();
        config.domain_id = domain;
        config.domain_tag = tag.into();
        node.participant = Participant::new(net.now, config);
    }
    net.run_for(SECOND);
    assert_eq!(net.nodes[0].participant.participants().count(), 0);
}

#[test]
fn ignored_participants_stay_away() {
    let mut net = Net::new(2);
    net.run_for(SECOND);
    let (now, prefix) = (net.now, net.nodes[1].participant.guid_prefix());
    net.nodes[0].participant.ignore_participant(now, prefix);
    net.run_for(SECOND * 10);
    assert_eq!(net.nodes[0].participant.participants().count(), 0);
}
