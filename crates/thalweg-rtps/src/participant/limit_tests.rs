//! Refusals by the limits of discovery are counted and reported, and no more is remembered than the limits allow.

use std::net::SocketAddr;

use super::stranger_tests::*;
use super::tests::*;
use super::*;
use crate::discovery::DiscoveryLimits;
use crate::discovery::database::DiscoveryLimit;
use crate::qos::{History, ReaderQos, WriterQos};
use crate::types::{EntityId, Guid, Keyed};

/// The endpoints that the first participant knows of the second one, which has five writers and one reader, and the events that it
/// reported.
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

#[test]
fn announcements_of_strangers_are_bounded_in_bytes() {
    let mut subject = Subject::new();
    for index in 0..900u32 {
        let from = SocketAddr::from(([10, 1, (index % 90) as u8, 1], 9));
        let mut data = peer(number(index), VICTIM);
        data.user_data = vec![0; 30_000];
        subject.announce(&data, from);
    }
    let strangers = subject.participant().strangers();
    assert!((100..140).contains(&strangers), "{strangers} of 30 kB in 4 MiB");
}

#[test]
fn one_host_takes_at_most_half_of_the_room() {
    let mut subject = Subject::new();
    let limits = DiscoveryLimits { participants_max: 10, ..DiscoveryLimits::default() };
    subject.net.nodes.clear();
    subject.net.add_with(1, |config| config.limits = limits);
    subject.run_for(SECOND);
    let meet = |subject: &mut Subject, index: u32, at: [u8; 4]| {
        subject.announce(&peer(number(index), at), address(at));
        let right = subject.numbers_for(at);
        subject.answer(number(index), right, 1, address(at));
        subject.known()
    };
    let known: Vec<usize> = (0..8).map(|index| meet(&mut subject, index, FORGER)).collect();
    assert_eq!(known, [1, 2, 3, 4, 5, 5, 5, 5]);
    assert_eq!(meet(&mut subject, 9, VICTIM), 6);
    assert_eq!(subject.participant().counters().over_limit, 3);
}

#[test]
fn one_participant_takes_no_more_memory_than_its_share() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    let (limits, own) = (DiscoveryLimits::default(), subject.participant().guid_prefix());
    let mut payload = Vec::new();
    for index in 0..1_000i64 {
        let guid = Guid::new(PREFIX, EntityId::user_reader(index as u32 + 1, Keyed::No));
        let mut data = SubscriptionData::new(guid, "elsewhere", "type", reliable_reader(History::KeepAll));
        Arc::make_mut(&mut data.qos).attached.user = vec![0; 40_000];
        payload.clear();
        data.encode(&mut payload);
        subject.receive(&data_message(PREFIX, EntityId::SUBSCRIPTIONS_WRITER, index + 1, &payload), address(FORGER));
    }
    let count = subject.participant().subscriptions().filter(|known| known.data.guid.prefix != own).count();
    assert!((380..=420).contains(&count), "{count} of 40 kB in 16 MiB");
    assert_eq!(subject.participant().counters().over_limit, 1_000 - count as u64);
    let participant = subject.participant();
    assert!(participant.database.subscriptions.bytes_of(PREFIX) <= limits.bytes_per_participant_max);
    // Refused endpoints leave nothing behind.
    let reader = participant.endpoints.reader(EntityId::SUBSCRIPTIONS_READER).cloned().expect("a reader");
    assert_eq!(reader.lock().cache().instances(), count);
    let prefix = subject.participant().participants().next().expect("the peer").data.guid_prefix;
    let now = subject.net.now;
    subject.participant().remove_participant(now, prefix, LostReason::Left);
    assert_eq!(subject.participant().database.subscriptions.bytes_of(PREFIX), 0);
    assert_eq!(reader.lock().cache().instances(), 0);
}

#[test]
fn descriptions_of_types_count_for_the_share_of_a_participant() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    let mut payload = Vec::new();
    for index in 0..500i64 {
        let guid = Guid::new(PREFIX, EntityId::user_writer(index as u32 + 1, Keyed::No));
        let data = PublicationData::new(guid, "elsewhere", "type", WriterQos::default());
        payload.clear();
        data.with_type_information(Some(vec![0u8; 60_000].into())).encode(&mut payload);
        subject.receive(&data_message(PREFIX, EntityId::PUBLICATIONS_WRITER, index + 1, &payload), address(FORGER));
    }
    let count = subject.participant().publications().filter(|known| known.data.guid.prefix == PREFIX).count();
    assert!((260..=280).contains(&count), "{count} of 60 kB in 16 MiB");
}

#[test]
fn all_participants_together_take_no_more_memory_than_is_theirs() {
    let mut subject = Subject::new();
    let limits = DiscoveryLimits { bytes_max: 1 << 20, ..DiscoveryLimits::default() };
    subject.net.nodes.clear();
    subject.net.add_with(1, |config| config.limits = limits);
    subject.run_for(SECOND);
    let mut payload = Vec::new();
    for index in 0..10u32 {
        let (prefix, at) = (number(index), [10, 0, 1, index as u8]);
        subject.announce(&peer(prefix, at), address(at));
        let right = subject.numbers_for(at);
        subject.answer(prefix, right, 1, address(at));
        for place in 0..10 {
            let guid = Guid::new(prefix, EntityId::user_reader(place + 1, Keyed::No));
            let mut data = SubscriptionData::new(guid, "elsewhere", "type", reliable_reader(History::KeepAll));
            Arc::make_mut(&mut data.qos).attached.user = vec![0; 30_000];
            payload.clear();
            data.encode(&mut payload);
            let sequence = i64::from(place) + 1;
            subject.receive(&data_message(prefix, EntityId::SUBSCRIPTIONS_WRITER, sequence, &payload), address(at));
        }
    }
    let count = subject.participant().subscriptions().count();
    assert!((30..=35).contains(&count), "{count} of 30 kB in 1 MiB");
}

#[test]
fn what_comes_ahead_of_a_missing_announcement_is_bounded() {
    let mut subject = Subject::new();
    subject.announce(&peer(PREFIX, FORGER), address(FORGER));
    let right = subject.numbers_for(FORGER);
    subject.answer(PREFIX, right, 1, address(FORGER));
    for sequence in 2..20_000 {
        let payload = vec![0; 1_000];
        subject.receive(&data_message(PREFIX, EntityId::SUBSCRIPTIONS_WRITER, sequence, &payload), address(FORGER));
    }
    let reader = subject.participant().endpoints.reader(EntityId::SUBSCRIPTIONS_READER).cloned().expect("a reader");
    let footprint = reader.lock().footprint();
    assert!(footprint.ahead <= 8_192 && footprint.ahead_bytes <= 1 << 20, "{footprint:?}");
}
