//! What a participant that finds nobody finds out about its network.

use std::time::Duration;

use thalweg::DomainParticipant;
use thalweg::surroundings::{InterfaceUsage, MulticastTrial, Surroundings};

use crate::fixture::*;

/// Listens until `done` or for twice a period of announcements.
fn survey(participant: &DomainParticipant) -> Surroundings {
    let survey = participant.survey();
    std::thread::sleep(Duration::from_secs(2));
    assert!(survey.listened() >= Duration::from_secs(2));
    survey.finish(participant)
}

#[test]
fn participants_of_other_domains_and_with_other_tags_are_heard_and_nobody_else() {
    let (here, there) = (domain(), domain());
    let make = |domain: u32, tag: &str| {
        let builder = DomainParticipant::builder(domain).loopback_only().lease_duration(Duration::from_secs(2));
        builder.domain_tag(tag).name("heard").create().unwrap()
    };
    let own = make(here, "");
    let (known, tagged, other) = (make(here, ""), make(here, "lab"), make(there, ""));
    eventually("they meet", || own.discovered_participants().len() == 1);
    let found = survey(&own);
    let names = |domain: u32, tag: &str| -> Vec<_> {
        let of_domain = |heard: &&_| -> bool {
            let heard: &thalweg::surroundings::HeardDomain = heard;
            (heard.domain_id, &*heard.domain_tag) == (domain, tag)
        };
        let heard = found.heard.iter().filter(of_domain).flat_map(|heard| &heard.participants);
        heard.map(|one| one.guid_prefix).collect()
    };
    assert_eq!(names(there, ""), [other.guid_prefix()], "{found:#?}");
    assert_eq!(names(here, "lab"), [tagged.guid_prefix()]);
    assert_eq!(names(here, ""), [], "{} is known, and nobody hears itself", known.guid_prefix());
    let one = &found.heard.iter().find(|heard| heard.domain_id == there).unwrap().participants[0];
    assert_eq!((&*one.entity_name, one.process.process_id.clone()), ("heard", Some(std::process::id().to_string())));
    assert!(found.domains_listened > 200, "{}", found.domains_listened);
    assert_eq!(tagged.discovered_participants().len() + other.discovered_participants().len(), 0);
}

#[test]
fn who_leaves_while_others_listen_is_not_heard() {
    let shared = domain();
    let make = || {
        let builder = DomainParticipant::builder(shared).loopback_only().lease_duration(Duration::from_secs(2));
        builder.create().unwrap()
    };
    let (own, leaving) = (make(), make());
    let gone = leaving.guid_prefix();
    let is_known = || own.discovered_participants().iter().any(|other| other.guid_prefix == gone);
    let survey = own.survey();
    eventually("they meet", is_known);
    // Long enough for an announcement that the survey hears.
    std::thread::sleep(Duration::from_secs(2));
    drop(leaving);
    eventually("it has left", || !is_known());
    let heard = survey.finish(&own).heard;
    let is_heard = heard.iter().flat_map(|heard| &heard.participants).any(|one| one.guid_prefix == gone);
    assert!(!is_heard, "{heard:#?}");
}

#[test]
fn interfaces_are_told_with_their_use_and_a_datagram_that_came_back() {
    let found = survey(&participant(domain()));
    let lo = found.interfaces.iter().find(|one| one.listed.interface.loopback).expect("loopback");
    assert_eq!(lo.usage, InterfaceUsage::Used(Some(MulticastTrial::CameBack)));
    for other in found.interfaces.iter().filter(|one| !one.listed.interface.loopback) {
        assert_eq!(other.usage, InterfaceUsage::NotAllowed, "{}", other.listed);
    }
    let silent = DomainParticipant::builder(domain()).loopback_only().without_multicast().create().unwrap();
    let found = survey(&silent);
    let lo = found.interfaces.iter().find(|one| one.listed.interface.loopback).expect("loopback");
    assert_eq!(lo.usage, InterfaceUsage::Used(None));
    assert_eq!((found.multicast, found.domains_listened, found.listened), (false, 0, Duration::ZERO));
}
