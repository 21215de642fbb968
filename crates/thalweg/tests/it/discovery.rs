//! Participants that find each other, and leave.

use thalweg::discovery::DiscoveryLimits;
use thalweg::{DomainParticipant, ErrorKind};

use crate::fixture::*;

#[test]
fn participants_see_each_other_with_name_and_data_and_see_them_leave() {
    let domain = domain();
    let name = unique("robot");
    let builder = DomainParticipant::builder(domain).loopback_only().name(&name).user_data(*b"here");
    let (robot, watcher) = (builder.property("role", "test").create().unwrap(), participant(domain));
    let topic = robot.create_topic::<Shape>(&unique("seen"));
    let writer = robot.create_writer(&topic, reliable_writer()).unwrap();
    let found = || watcher.discovered_participants().into_iter().find(|other| other.entity_name == name);
    eventually("the participant is discovered", || found().is_some());
    let data = found().unwrap();
    assert_eq!((data.guid_prefix, data.user_data.as_slice()), (robot.guid_prefix(), b"here".as_slice()));
    assert!(data.properties.contains(&("role".into(), "test".into())));
    let guid = writer.guid();
    let publication = || watcher.publications().into_iter().find(|known| known.data.guid == guid);
    eventually("its writer is discovered", || publication().is_some());
    assert_eq!(publication().unwrap().data.type_name, "Shape");
    drop((robot, writer));
    eventually("its end is told, long before its lease ends", || found().is_none() && publication().is_none());
}

#[test]
fn unicast_peers_are_found_without_multicast() {
    let domain = domain();
    let create = || DomainParticipant::builder(domain).loopback_only().without_multicast().peer("127.0.0.1").create();
    let (here, there) = (create().unwrap(), create().unwrap());
    let topic = here.create_topic::<Count>(&unique("unicast"));
    let writer = here.create_writer(&topic, reliable_writer()).unwrap();
    let reader = there.create_reader(&topic, reliable_reader()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    writer.write(&Count { value: 3 }).unwrap();
    assert_eq!(take(&reader, 1).len(), 1);
}

#[test]
fn domains_and_domain_tags_keep_participants_apart() {
    let domain = domain();
    let tagged = |tag: &str| DomainParticipant::builder(domain).loopback_only().domain_tag(tag).create().unwrap();
    let (red, also_red, blue) = (tagged("red"), tagged("red"), tagged("blue"));
    let others = |participant: &DomainParticipant| -> Vec<_> {
        participant.discovered_participants().iter().map(|data| data.guid_prefix).collect()
    };
    eventually("equal tags meet", || others(&red).contains(&also_red.guid_prefix()));
    eventually("equal tags meet", || others(&also_red).contains(&red.guid_prefix()));
    assert!(!others(&blue).contains(&red.guid_prefix()) && !others(&red).contains(&blue.guid_prefix()));
}

#[test]
fn an_ignored_participant_is_gone_for_good() {
    let Pair { writer, reader, participants: (here, there) } =
        pair::<Count>("ignored", reliable_writer(), reliable_reader());
    here.ignore_participant(there.guid_prefix()).unwrap();
    eventually("its reader is no longer matched", || writer.matched_readers().is_empty());
    assert!(here.discovered_participants().iter().all(|data| data.guid_prefix != there.guid_prefix()));
    drop(reader);
}

#[test]
fn no_participant_ignores_itself() {
    let participant = participant(domain());
    let error = participant.ignore_participant(participant.guid_prefix()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadParameter);
    assert!(error.to_string().contains("ignore_own_publications"), "{error}");
}

#[test]
fn more_participants_than_well_known_ports_find_each_other() {
    let domain = domain();
    let crowd: Vec<_> = (0..36).map(|_| participant(domain)).collect();
    let topic_name = unique("crowd");
    let writer = crowd[35].create_writer(&crowd[35].create_topic::<Count>(&topic_name), late_writer()).unwrap();
    writer.write(&Count { value: 35 }).unwrap();
    let readers: Vec<_> = crowd
        .iter()
        .map(|member| member.create_reader(&member.create_topic::<Count>(&topic_name), late_reader()).unwrap())
        .collect();
    for reader in &readers {
        assert_eq!(take(reader, 1)[0].data().unwrap(), Count { value: 35 });
    }
}

#[test]
fn what_cannot_be_created_says_why() {
    let error = DomainParticipant::new(233).err().unwrap();
    assert!(error.to_string().contains("domain id 233 is above 232"), "{error}");
    let error = DomainParticipant::builder(0).peer("no such host.invalid").create().err().unwrap();
    assert!(error.to_string().contains("cannot find the peer \"no such host.invalid\""), "{error}");
}

#[test]
fn a_participant_that_others_would_not_hear_of_as_it_is_cannot_be_created() {
    let domain = domain();
    let builder = || DomainParticipant::builder(domain).loopback_only();
    let plain = builder().without_process_description();
    let many = (0..63).fold(plain, |builder, number| builder.property(format!("p{number}"), "x"));
    for (refused, expected) in [
        (builder().name("a\0b"), "the name contains a NUL"),
        (builder().domain_tag("a\0b"), "the domain tag contains a NUL"),
        (builder().property("a", "b\0"), "a property contains a NUL"),
        (builder().domain_tag("t".repeat(256)), "the domain tag has 256 bytes"),
        (many, "65 properties"),
        (builder().property("a", "v".repeat(70_000)), "bytes together"),
        (builder().name("n".repeat(2_000)).user_data(vec![0; 64_000]), "bytes together"),
    ] {
        let error = refused.create().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::BadParameter, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let (large, watcher) = (builder().user_data(vec![1; 59_000]).create().unwrap(), participant(domain));
    let heard = || watcher.discovered_participants().into_iter().any(|other| other.guid_prefix == large.guid_prefix());
    eventually("one that has almost as much as may be is discovered", heard);
}

#[test]
fn endpoints_beyond_the_limit_are_refused_counted_and_the_limit_can_be_set() {
    let domain = domain();
    let limits = DiscoveryLimits { endpoints_per_participant_max: 2, ..DiscoveryLimits::default() };
    let make = |limits| DomainParticipant::builder(domain).loopback_only().discovery_limits(limits).create();
    let (narrow, wide) = (make(limits).unwrap(), participant(domain));
    let other = participant(domain);
    let name = |n: usize| unique(&format!("of many {n}"));
    let create = |n| other.create_writer(&other.create_topic::<Count>(&name(n)), reliable_writer()).unwrap();
    let _writers: Vec<_> = (0..5).map(create).collect();
    eventually("the others are refused", || narrow.explain().endpoints_over_limit == 3);
    assert_eq!(narrow.publications().len(), 2);
    eventually("there is room for all", || wide.publications().len() == 5);
    assert_eq!(wide.explain().endpoints_over_limit, 0);
    let error = make(DiscoveryLimits { participants_max: 0, ..limits }).expect_err("nobody could be met");
    assert_eq!(error.kind(), ErrorKind::BadParameter);
}
