//! What a participant announces about itself: its lease and its process.

use std::time::Duration;

use thalweg::discovery::{ParticipantData, ProcessDescription};
use thalweg::types::INFINITE;
use thalweg::{DomainParticipant, DomainParticipantBuilder, ErrorKind};

use crate::fixture::*;

/// What another participant is told of one that is made so.
fn announced(make: impl FnOnce(DomainParticipantBuilder) -> DomainParticipantBuilder) -> ParticipantData {
    let domain = domain();
    let other = participant(domain);
    let subject = make(DomainParticipant::builder(domain).loopback_only()).create().unwrap();
    let prefix = subject.guid_prefix();
    let find = || other.discovered_participants().into_iter().find(|data| data.guid_prefix == prefix);
    eventually("it is discovered", || find().is_some());
    find().unwrap()
}

#[test]
fn the_lease_is_announced_and_has_limits() {
    assert_eq!(announced(|builder| builder).lease_duration, Duration::from_secs(20));
    let lease = Duration::from_millis(1_500);
    assert_eq!(announced(|builder| builder.lease_duration(lease)).lease_duration, lease);
    for (lease, name) in
        [(Duration::from_millis(999), "999ms"), (Duration::from_secs(3_601), "3601s"), (INFINITE, "infinite")]
    {
        let error = DomainParticipant::builder(domain()).lease_duration(lease).create().expect_err("out of limits");
        assert_eq!(error.kind(), ErrorKind::BadParameter);
        let text = error.to_string();
        assert!(text.contains(&format!("the lease is {name}; choose a lease of 1 s to 1 h")), "{text}");
    }
}

#[test]
fn a_participant_with_a_short_lease_stays_known() {
    let domain = domain();
    let lease = Duration::from_secs(1);
    let (here, there) = (participant(domain), DomainParticipant::builder(domain).loopback_only().lease_duration(lease));
    let there = there.create().unwrap();
    eventually("it is discovered", || here.discovered_participants().len() == 1);
    let start = std::time::Instant::now();
    while start.elapsed() < lease * 3 {
        assert_eq!(here.discovered_participants().len(), 1, "after {:?}", start.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(there);
}

#[test]
fn host_process_and_program_are_announced_unless_the_application_does_not_want_it() {
    let told = ProcessDescription::of(&announced(|builder| builder));
    assert_eq!(told.process_id, Some(std::process::id().to_string()));
    assert!(told.program.is_some_and(|program| program.starts_with("it")));
    let host = thalweg_host::HostFiles::here().setting("kernel.hostname").unwrap();
    assert_eq!(told.host.as_deref(), Some(host.trim()));
    let silent = announced(DomainParticipantBuilder::without_process_description);
    assert_eq!(ProcessDescription::of(&silent), ProcessDescription::default());
    let own = announced(|builder| builder.property("__ProcessName", "pump"));
    assert_eq!(ProcessDescription::of(&own).program.as_deref(), Some("pump"));
}
