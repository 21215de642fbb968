//! Laws of participants that share a process.

use std::time::Duration;

use super::tests::*;
use super::*;
use crate::qos::{History, ReaderQos, WriterQos};
use crate::types::{Guid, Keyed};

/// `count` participants of one process, each a second after the one before.
fn household(count: u8) -> (Net, Household) {
    let (mut net, household) = (Net::new(0), Household::default());
    for index in 1..=count {
        net.add_with(index, |config| config.household = household.clone());
        net.run_for(SECOND);
    }
    (net, household)
}

fn matched_readers(net: &Net, node: usize, writer: EntityId) -> usize {
    let writer = net.nodes[node].participant.endpoints.writer(writer).expect("it has one").clone();
    writer.lock().matched_readers().len()
}

fn known(net: &Net) -> Vec<usize> {
    net.nodes.iter().map(|node| node.participant.participants().count()).collect()
}

#[test]
fn housemates_learn_of_endpoints_without_proxies_for_discovery() {
    let (mut net, household) = household(2);
    let (qos, reader_qos) = (reliable_writer(History::KeepAll), reliable_reader(History::KeepAll));
    let writer = net.writer(0, qos.clone(), Keyed::No);
    let reader = net.reader(1, reader_qos.clone(), Keyed::No);
    // The third participant starts when the endpoints are there.
    net.add_with(3, |config| config.household = household);
    let late = net.reader(2, reader_qos, Keyed::No);
    net.run_for(SECOND);
    assert!(net.write(0, &writer, b"seen"));
    net.run_for(SECOND);
    assert_eq!((take(&net, &reader).len(), take(&net, &late).len()), (1, 1));
    for writer in [EntityId::PUBLICATIONS_WRITER, EntityId::SUBSCRIPTIONS_WRITER, EntityId::PARTICIPANT_MESSAGE_WRITER]
    {
        assert_eq!(matched_readers(&net, 0, writer), 0, "{writer}");
    }
    let (now, guid) = (net.now, reader.lock().guid());
    net.nodes[1].participant.delete_reader(now, guid.entity);
    net.run_for(SECOND);
    let writer = writer.lock().guid().entity;
    assert_eq!(matched_readers(&net, 0, writer), 1);
    assert!(net.nodes[0].participant.database.subscriptions.get(guid).is_none());
}

#[test]
fn participants_outside_are_told_over_the_network() {
    let (mut net, household) = household(2);
    net.add(3);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    let outside = net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert!(net.write(0, &writer, b"seen"));
    net.run_for(SECOND);
    assert_eq!((take(&net, &outside).len(), household.len()), (1, 2));
    assert_eq!(matched_readers(&net, 0, EntityId::PUBLICATIONS_WRITER), 1);
}

#[test]
fn housemates_that_live_are_never_silent_and_one_that_is_gone_ends_with_its_lease() {
    let (mut net, household) = household(3);
    assert_eq!(known(&net), [2, 2, 2]);
    net.loss = 1.0;
    net.run_for(SECOND * 200);
    assert_eq!(known(&net), [2, 2, 2]);
    net.nodes.pop();
    assert_eq!(household.len(), 2);
    net.run_for(SECOND * 41);
    assert_eq!(known(&net), [1, 1]);
}

fn lost(net: &Net) -> Vec<LostReason> {
    let reason = |event: &Event| match event {
        Event::ParticipantLost { reason, .. } => Some(*reason),
        _ => None,
    };
    net.nodes.iter().flat_map(|node| node.events.iter().filter_map(reason)).collect()
}

#[test]
fn a_member_whose_thread_hangs_ends_with_its_lease_and_comes_back_with_its_thread() {
    let (mut net, _) = household(3);
    let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No).lock().guid().entity;
    net.reader(2, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND * 30);
    net.nodes[2].hangs = true;
    // It announced itself at most a quarter of its lease ago.
    net.run_for(SECOND * 14);
    assert_eq!((known(&net), matched_readers(&net, 0, writer)), (vec![2, 2, 2], 1));
    net.run_for(SECOND * 7);
    assert_eq!((known(&net), matched_readers(&net, 0, writer)), (vec![1, 1, 2], 0));
    assert_eq!(lost(&net), [LostReason::LeaseExpired; 2]);
    net.nodes[2].hangs = false;
    net.run_for(SECOND * 10);
    assert_eq!((known(&net), matched_readers(&net, 0, writer)), (vec![2, 2, 2], 1));
    assert_eq!(lost(&net), [LostReason::LeaseExpired; 2]);
}

#[test]
fn a_process_that_stood_still_for_longer_than_a_lease_keeps_its_participants() {
    let (mut net, _) = household(3);
    net.run_for(SECOND * 30);
    net.now += SECOND * 60;
    // The others have not run yet.
    let now = net.now;
    net.nodes[0].participant.handle_timeout(now);
    net.run_for(SECOND * 60);
    assert_eq!((known(&net), lost(&net)), (vec![2, 2, 2], Vec::new()));
}

/// Whether the announcements that left lately were marked as repetitions.
fn marks(net: &Net) -> Vec<bool> {
    net.sent.iter().filter(|sent| sent.announces).map(|sent| sent.marked).collect()
}

#[test]
fn announcements_are_marked_as_repetitions_once_the_whole_household_knows() {
    let (mut net, household) = household(2);
    net.run_for(SECOND * 10);
    net.sent.clear();
    net.run_for(SECOND * 10);
    assert!(!marks(&net).is_empty() && marks(&net).iter().all(|marked| *marked));
    // One member hears nothing of the others.
    net.nodes[1].cut_off = true;
    net.add_with(3, |config| config.household = household);
    net.run_for(SECOND * 10);
    net.sent.clear();
    net.run_for(SECOND * 10);
    let of_first = net.sent.iter().filter(|sent| sent.announces && sent.from == 0);
    assert!(of_first.clone().count() > 0 && of_first.clone().all(|sent| sent.marked), "it is known to both");
    let of_third = net.sent.iter().filter(|sent| sent.announces && sent.from == 2);
    assert!(of_third.clone().count() > 0 && of_third.clone().all(|sent| !sent.marked), "one does not know it");
}

#[test]
fn announcements_are_news_again_once_a_member_has_dropped_their_sender() {
    let (mut net, _) = household(2);
    net.run_for(SECOND * 10);
    let (now, groups) = (net.now, Groups::new(["others"]).expect("a name"));
    net.nodes[1].participant.set_groups(now, groups);
    net.sent.clear();
    net.run_for(SECOND * 20);
    let of_first = net.sent.iter().filter(|sent| sent.announces && sent.from == 0);
    assert!(of_first.clone().count() > 0 && of_first.clone().all(|sent| !sent.marked));
}

#[test]
fn changed_announcements_are_news_until_every_member_has_heard_one() {
    let (mut net, _) = household(2);
    net.run_for(SECOND * 10);
    let (now, mut addresses) = (net.now, net.nodes[0].participant.config().addresses.clone());
    addresses.default_multicast.clear();
    net.nodes[0].participant.set_addresses(now, addresses);
    net.loss = 1.0;
    net.run_for(SECOND * 20);
    net.sent.clear();
    net.run_for(SECOND * 10);
    let of_first = net.sent.iter().filter(|sent| sent.announces && sent.from == 0);
    assert!(of_first.clone().count() > 0 && of_first.clone().all(|sent| !sent.marked), "it was not heard");
    net.loss = 0.0;
    net.run_for(SECOND * 20);
    net.sent.clear();
    net.run_for(SECOND * 10);
    assert!(!marks(&net).is_empty() && !marks(&net).contains(&false));
}

#[test]
fn an_idle_household_sends_announcements_alone() {
    let (mut net, _) = household(5);
    net.run_for(SECOND * 30);
    net.sent.clear();
    net.run_for(SECOND * 100);
    assert!(net.sent.iter().all(|sent| sent.announces && sent.destinations == 1));
    assert!((5 * 19..=5 * 24).contains(&net.sent.len()), "{} datagrams", net.sent.len());
}

#[test]
fn what_a_housemate_announces_is_held_once_for_all() {
    let (mut net, _) = household(3);
    net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    let prefix = net.nodes[0].participant.guid_prefix();
    let [one, other] = [1, 2].map(|node| &net.nodes[node].participant.database);
    let [first, second] = [one, other].map(|database| &database.participants[&prefix]);
    assert!(Arc::ptr_eq(&first.data, &second.data) && Arc::ptr_eq(&first.announced, &second.announced));
    for guid in one.publications.of_participant(prefix) {
        let [first, second] = [one, other].map(|database| database.publications.get(guid).expect("it was told"));
        assert!(Arc::ptr_eq(&first.data, &second.data));
    }
    for guid in one.subscriptions.of_participant(prefix) {
        let [first, second] = [one, other].map(|database| database.subscriptions.get(guid).expect("it was told"));
        assert!(Arc::ptr_eq(&first.data, &second.data));
    }
    assert_eq!((one.publications.iter().count(), one.subscriptions.iter().count()), (1, 1));
}

#[test]
fn news_of_endpoints_that_come_and_go_does_not_pile_up_while_a_member_hangs() {
    let (mut net, household) = household(2);
    let known = net.reader(0, reliable_reader(History::KeepAll), Keyed::No).lock().guid().entity;
    net.run_for(SECOND);
    let now = net.now;
    // Member 1 takes no news meanwhile.
    for _ in 0..100 {
        let writer = net.writer(0, reliable_writer(History::KeepAll), Keyed::No).lock().guid().entity;
        net.nodes[0].participant.delete_writer(now, writer);
    }
    assert_eq!(household.waiting_news(), 0);
    net.nodes[0].participant.delete_reader(now, known);
    assert_eq!(household.waiting_news(), 1, "the end of an endpoint that it knows");
    net.run_for(SECOND);
    assert_eq!(net.nodes[1].participant.subscriptions().count(), 0);
}

#[test]
fn the_end_of_an_endpoint_whose_change_was_not_heard_yet_is_news() {
    let (mut net, household) = household(2);
    let known = net.writer(0, reliable_writer(History::KeepAll), Keyed::No).lock().guid().entity;
    let reader = net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    assert_eq!(reader.lock().matched_writers().count(), 1);
    // Member 1 takes no news of what follows until the end.
    set_partition(&mut net, 0, known, "other");
    let now = net.now;
    net.nodes[0].participant.delete_writer(now, known);
    assert_eq!(household.waiting_news(), 1);
    net.run_for(SECOND);
    assert_eq!(net.nodes[1].participant.publications().count(), 0);
}

fn set_partition(net: &mut Net, node: usize, entity: EntityId, partition: &str) {
    let participant = &mut net.nodes[node].participant;
    if entity.is_writer() {
        let qos = WriterQos { partition: vec![partition.into()], ..reliable_writer(History::KeepAll) };
        participant.set_writer_qos(net.now, entity, qos.into()).expect("it may change");
    } else {
        let qos = ReaderQos { partition: vec![partition.into()], ..reliable_reader(History::KeepAll) };
        participant.set_reader_qos(net.now, entity, qos.into()).expect("it may change");
    }
}

/// Members come, go without a word, hang for a while, and create, change and delete endpoints while a third of the datagrams is lost; in
/// the end each knows what there is.
fn live_and_settle(seed: u64) {
    let (mut net, household) = household(2);
    (net.rng, net.loss) = (Rng::new(seed), 0.3);
    let mut endpoints: Vec<Vec<EntityId>> = vec![Vec::new(), Vec::new()];
    for step in 0..60 {
        let node = net.rng.below(net.nodes.len() as u64) as usize;
        match net.rng.below(10) {
            0 if net.nodes.len() < 6 => {
                net.add_with(10 + step, |config| config.household = household.clone());
                endpoints.push(Vec::new());
            }
            1 if net.nodes.len() > 2 => {
                net.nodes.remove(node);
                endpoints.remove(node);
            }
            2..=4 => {
                let writer = net.writer(node, reliable_writer(History::KeepAll), Keyed::No);
                endpoints[node].push(writer.lock().guid().entity);
            }
            5..=6 => {
                let reader = net.reader(node, reliable_reader(History::KeepAll), Keyed::No);
                endpoints[node].push(reader.lock().guid().entity);
            }
            _ if !endpoints[node].is_empty() => {
                let index = net.rng.below(endpoints[node].len() as u64) as usize;
                let (now, entity) = (net.now, endpoints[node].swap_remove(index));
                net.nodes[node].participant.delete_writer(now, entity);
                net.nodes[node].participant.delete_reader(now, entity);
            }
            _ => {}
        }
        if let Some(entity) = endpoints.get(node).and_then(|endpoints| endpoints.last()) {
            let partition = ["a", "b"][net.rng.below(2) as usize];
            set_partition(&mut net, node, *entity, partition);
        }
        for node in &mut net.nodes {
            node.hangs = net.rng.below(4) == 0;
        }
        let pause = Duration::from_millis(net.rng.below(400));
        net.run_for(pause);
    }
    net.nodes.iter_mut().for_each(|node| node.hangs = false);
    net.loss = 0.0;
    net.run_for(SECOND * 60);
    let mut all: Vec<Guid> = Vec::new();
    for (node, entities) in net.nodes.iter().zip(&endpoints) {
        all.extend(entities.iter().map(|entity| Guid::new(node.participant.guid_prefix(), *entity)));
    }
    all.sort();
    assert_eq!(known(&net), vec![net.nodes.len() - 1; net.nodes.len()], "seed {seed}");
    for node in &net.nodes {
        let publications = node.participant.publications().map(|known| known.data.guid);
        let mut found: Vec<Guid> =
            publications.chain(node.participant.subscriptions().map(|known| known.data.guid)).collect();
        found.sort();
        assert_eq!(found, all, "seed {seed}");
    }
}

#[test]
fn members_that_come_and_go_know_in_the_end_what_there_is() {
    (0..40).for_each(live_and_settle);
}
