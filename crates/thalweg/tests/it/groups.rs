//! Communication groups and explanations through the API.

use std::time::Duration;

use thalweg::qos::{Destination, Transmission, WriterQos};
use thalweg::{DomainParticipant, ErrorKind};

use crate::fixture::{Count, PATIENCE, domain, eventually, reliable_reader, reliable_writer, unique};

/// Nobody else of the domain is listed as ignored: a tag keeps strangers out altogether.
fn member(domain: u32, groups: &[&str]) -> DomainParticipant {
    let builder = DomainParticipant::builder(domain).loopback_only().domain_tag(unique("tag"));
    builder.groups(groups.iter().copied()).create().unwrap()
}

#[test]
fn participants_meet_and_part_as_their_groups_change() {
    let (domain, name) = (domain(), unique("groups"));
    let (here, there) = (member(domain, &["radar"]), member(domain, &["ops"]));
    let writer = here.create_writer(&here.create_topic::<Count>(&name), reliable_writer()).unwrap();
    let reader = there.create_reader(&there.create_topic::<Count>(&name), reliable_reader()).unwrap();
    eventually("the other one is ignored", || here.ignored_participants().len() == 1);
    assert_eq!(here.ignored_participants()[0].guid_prefix, there.guid_prefix());
    assert!(writer.matched_readers().is_empty() && here.discovered_participants().is_empty());
    there.set_groups(["ops", "radar"]).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    assert_eq!((there.groups().to_string().as_str(), here.ignored_participants().len()), ("ops,radar", 0));
    here.set_groups(["video"]).unwrap();
    eventually("nobody is matched", || writer.matched_readers().is_empty() && reader.matched_writers().is_empty());
}

#[test]
fn groups_that_cannot_be_announced_are_refused() {
    for bad in ["", "a,b", "a=b", "a;"] {
        let error = DomainParticipant::builder(0).groups([bad]).create().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::BadParameter, "{error}");
    }
    let twice = DomainParticipant::builder(0).user_data("groups=a;").groups(["b"]).create().err().unwrap();
    assert!(twice.to_string().contains("USER_DATA"), "{twice}");
    let participant = DomainParticipant::builder(domain()).loopback_only().user_data("groups=a;").create().unwrap();
    assert_eq!(participant.groups().to_string(), "a");
    assert_eq!(participant.set_groups(["b"]).err().unwrap().kind(), ErrorKind::BadParameter);
}

#[test]
fn groups_that_leave_no_room_for_an_announcement_are_refused() {
    let data = vec![b'x'; 59_000];
    let participant = DomainParticipant::builder(domain()).loopback_only().user_data(data).create().unwrap();
    let error = participant.set_groups((0..64).map(|number| format!("{number:064}"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadParameter, "{error}");
    assert!(error.to_string().contains("together"), "{error}");
    assert_eq!(participant.groups().to_string(), "", "nothing has changed");
    participant.set_groups(["radar"]).unwrap();
}

#[test]
fn writers_explain_themselves_and_each_other() {
    let (domain, name) = (domain(), unique("why"));
    let (here, there) = (member(domain, &[]), member(domain, &[]));
    let qos = WriterQos { transmission: Transmission::to(Destination::Unicast), ..reliable_writer() };
    let writer = here.create_writer(&here.create_topic::<Count>(&name), qos).unwrap();
    let reader = there.create_reader(&there.create_topic::<Count>(&name), reliable_reader()).unwrap();
    writer.wait_for_matched(1, PATIENCE).unwrap();
    reader.wait_for_matched(1, PATIENCE).unwrap();
    let own = writer.explain();
    let sentence = format!("writer {} of topic {:?} sends by auto", own.guid, own.topic);
    assert!(own.to_string().starts_with(&sentence), "{own}");
    assert_eq!((own.guid, own.topic.as_str(), own.readers), (writer.guid(), name.as_str(), 1));
    assert_eq!((own.route.configured, own.route.readers_on_this_host), (Destination::Unicast, 1));
    let refused = there.explain_topic(&name, Duration::ZERO).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::PreconditionNotMet);
    let inspector = DomainParticipant::builder(domain).loopback_only().domain_tag(unique("tag")).inspector();
    let inspector = inspector.create().unwrap();
    eventually("both are discovered", || {
        inspector.publications().iter().any(|known| known.data.guid == writer.guid())
            && inspector.subscriptions().iter().any(|known| known.data.guid == reader.guid())
    });
    let told = inspector.explain_topic(&name, Duration::MAX).unwrap();
    assert_eq!(told.writers.iter().map(|told| told.guid).collect::<Vec<_>>(), [writer.guid()]);
    assert_eq!(told.writers[0].route, writer.explain().route);
    assert_eq!(told.readers, [reader.explain()]);
}

#[test]
fn an_inspector_that_asks_of_two_topics_at_once_gets_each_answer_to_its_question() {
    let domain = domain();
    let names = [unique("one"), unique("other")];
    let here = member(domain, &[]);
    let writers = names.each_ref().map(|name| here.create_writer(&here.create_topic::<Count>(name), reliable_writer()));
    let writers = writers.map(Result::unwrap);
    let inspector = DomainParticipant::builder(domain).loopback_only().domain_tag(unique("tag")).inspector();
    let inspector = inspector.create().unwrap();
    let known = |guid| inspector.publications().iter().any(|known| known.data.guid == guid);
    eventually("both are discovered", || writers.iter().all(|writer| known(writer.guid())));
    std::thread::scope(|scope| {
        for (name, writer) in names.iter().zip(&writers) {
            let (inspector, guid) = (&inspector, writer.guid());
            scope.spawn(move || {
                for _ in 0..5 {
                    let told = inspector.explain_topic(name, PATIENCE).unwrap();
                    assert_eq!(told.writers.iter().map(|told| told.guid).collect::<Vec<_>>(), [guid]);
                }
            });
        }
    });
}
