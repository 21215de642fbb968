//! What the limits of discovery refuse is counted and told.

use super::tests::*;
use super::*;
use crate::discovery::database::DiscoveryLimit;
use crate::qos::{ReaderQos, WriterQos};
use crate::types::Keyed;

/// The second participant has five writers and one reader; what the first one knows of it and has told.
fn meet(limits: DiscoveryLimits) -> (usize, usize, ParticipantExplanation, Vec<(DiscoveryLimit, u64)>) {
    let mut net = Net::new(0);
    net.add_with(1, |config| config.limits = limits);
    net.add_with(2, |_| {});
    for _ in 0..5 {
        net.writer(1, WriterQos::default(), Keyed::No);
    }
    net.reader(1, ReaderQos::default(), Keyed::No);
    net.run_for(SECOND * 2);
    let subject = &net.nodes[0];
    let told = subject.events.iter().filter_map(|event| match event {
        Event::OverLimit { participant, limit, refused } => {
            assert_eq!(*participant, net.nodes[1].participant.guid_prefix());
            Some((*limit, *refused))
        }
        _ => None,
    });
    let participant = &subject.participant;
    let explained = participant.explain();
    assert_eq!(participant.counters().over_limit, explained.endpoints_over_limit + explained.participants_over_limit);
    (participant.publications().count(), participant.subscriptions().count(), explained, told.collect())
}

#[test]
fn nothing_is_told_while_there_is_room() {
    let limits = DiscoveryLimits { endpoints_per_participant_max: 5, ..DiscoveryLimits::default() };
    let (writers, readers, explained, told) = meet(limits);
    assert_eq!((writers, readers, explained.endpoints_over_limit, told.len()), (5, 1, 0, 0));
}

#[test]
fn endpoints_beyond_the_limit_are_counted_and_told_when_the_count_doubles() {
    let limits = DiscoveryLimits { endpoints_per_participant_max: 2, ..DiscoveryLimits::default() };
    let (writers, readers, explained, told) = meet(limits);
    assert_eq!((writers, readers, explained.endpoints_over_limit), (2, 1, 3), "each kind has its limit");
    assert_eq!(told, [(DiscoveryLimit::Endpoints, 1), (DiscoveryLimit::Endpoints, 2)]);
}

#[test]
fn memory_beyond_the_limit_is_counted_and_told() {
    let limits = DiscoveryLimits { bytes_per_participant_max: 1, ..DiscoveryLimits::default() };
    let (writers, readers, explained, told) = meet(limits);
    assert_eq!((writers, readers, explained.endpoints_over_limit), (0, 0, 6));
    assert_eq!(told.first(), Some(&(DiscoveryLimit::Memory, 1)));
}

#[test]
fn a_participant_beyond_the_limit_is_counted_and_told() {
    let limits = DiscoveryLimits { participants_max: 0, ..DiscoveryLimits::default() };
    let (writers, _, explained, told) = meet(limits);
    assert_eq!(writers, 0);
    assert!(explained.participants_over_limit > 0, "{explained:?}");
    assert_eq!(told.first(), Some(&(DiscoveryLimit::Participants, 1)));
}

#[test]
fn room_comes_back_with_each_endpoint_that_goes() {
    let mut net = Net::new(0);
    net.add_with(1, |config| config.limits.endpoints_per_participant_max = 2);
    net.add_with(2, |_| {});
    for _ in 0..10 {
        let writers = [net.writer(1, WriterQos::default(), Keyed::No), net.writer(1, WriterQos::default(), Keyed::No)];
        net.run_for(SECOND);
        assert_eq!(net.nodes[0].participant.publications().count(), 2);
        let now = net.now;
        for writer in writers {
            let entity = writer.lock().guid().entity;
            net.nodes[1].participant.delete_writer(now, entity);
        }
        net.run_for(SECOND);
    }
    assert_eq!(net.nodes[0].participant.counters().endpoints_over_limit, 0);
}
