//! What applications do to entities that live, as another process sees it: this test binary starts itself as the other side.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use thalweg::qos::{WriterQos, WriterTiming};
use thalweg::{DataReader, DomainParticipant, ErrorKind};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_ENTITIES";

/// Ends the other side also when the test fails.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn start(role: &str, domain: u32, topic: &str) -> Other {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "entities::other_side", "--nocapture"])
        .env(ROLE, role)
        .env("THALWEG_TEST_DOMAIN", domain.to_string())
        .env("THALWEG_TEST_TOPIC", topic)
        .stdout(Stdio::null())
        .spawn();
    Other(child.unwrap())
}

/// What a started process does until it is killed; without a role, in the test run itself, nothing.
#[test]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let domain = std::env::var("THALWEG_TEST_DOMAIN").unwrap().parse().unwrap();
    let topic_name = std::env::var("THALWEG_TEST_TOPIC").unwrap();
    let participant = participant(domain);
    match role.as_str() {
        "watch" => watch(&participant, &topic_name),
        other => panic!("no such role: {other}"),
    }
}

/// Tells back the USER_DATA of the topic's writer and the number of own readers that it is matched with, whenever they change.
fn watch(participant: &DomainParticipant, name: &str) {
    let topic = participant.create_topic::<Shape>(name);
    let _reader = participant.create_reader(&topic, late_reader()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let writer = participant.create_writer(&back, late_writer()).unwrap();
    let mut told = None;
    loop {
        let publications = participant.publications();
        let found = publications.iter().find(|known| known.data.topic_name == name);
        let seen = found.map(|known| (known.data.qos.attached.user.clone(), known.matched.len()));
        if seen != told {
            let (user, matched) = seen.clone().unwrap_or_default();
            writer.write(&Shape::new(&String::from_utf8(user).unwrap(), matched as i32)).unwrap();
            told = seen;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the other side tells this.
#[track_caller]
fn expect(back: &DataReader<Shape>, user_data: &str, matched: i32) {
    eventually(&format!("the other side sees {user_data:?} and {matched}"), || {
        back.take(usize::MAX).iter().any(|sample| {
            let told = sample.data().unwrap();
            (told.color.as_str(), told.x) == (user_data, matched)
        })
    });
}

#[test]
fn policies_that_change_are_told_to_other_processes_and_others_refused() {
    let (domain, name) = (domain(), unique("set_qos"));
    let participant = participant(domain);
    let writer = participant.create_writer(&participant.create_topic::<Shape>(&name), late_writer()).unwrap();
    let back = participant.create_topic::<Shape>(&format!("{name} back"));
    let back = participant.create_reader(&back, late_reader()).unwrap();
    let _other = start("watch", domain, &name);
    expect(&back, "", 1);
    let mut qos = WriterQos::clone(&writer.qos());
    qos.attached.user = b"changed".to_vec();
    writer.set_qos(qos.clone()).unwrap();
    expect(&back, "changed", 1);
    let apart = WriterQos { partition: vec!["elsewhere".into()], ..qos.clone() };
    writer.set_qos(apart.clone()).unwrap();
    expect(&back, "changed", 0);
    assert_eq!((writer.matched_readers().len(), writer.publication_matched().current_change), (0, 0));
    let timing = WriterTiming { latency_budget: Duration::from_secs(1), ..WriterTiming::default() };
    writer.set_qos(WriterQos { timing, ..qos.clone() }).unwrap();
    eventually("a reader that wants less delay is refused", || writer.offered_incompatible_qos().total > 0);
    writer.set_qos(qos.clone()).unwrap();
    expect(&back, "changed", 1);
    let error = writer.set_qos(WriterQos { history: thalweg::qos::History::KeepLast(7), ..apart }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ImmutablePolicy);
    assert!(error.to_string().contains("HISTORY"), "{error}");
    assert_eq!(*writer.qos(), qos);
}
