//! Each measurement that gets worse by a change takes the change back, if it stays worse.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use thalweg_advisor::{
    AdviceStep, AppliedFiles, ChangeOutcome, DatagramCharge, Effect, FileStore, ForeignChanges, GrantedBuffer,
    HostPlaces, PacingEffect, PacketCost, PathMtu, PlantedProbes, ProbeAnswers, ProbeKind, Probes, RevertEnding,
    Segmentation, Setting, SettingPlace, SettingPlaces, UndoLog, WakeUps, apply,
};

use crate::tree::{Tree, advise, identity, recorded_probes};

/// Answers of one measurement after the other; the last ones stay.
struct Readings(Vec<ProbeAnswers>);

impl Readings {
    fn next(&mut self) -> PlantedProbes {
        let answers = if self.0.len() > 1 { self.0.remove(0) } else { self.0[0].clone() };
        PlantedProbes { answers }
    }
}

impl Probes for Readings {
    fn granted_buffer(&mut self, bytes: u64) -> io::Result<GrantedBuffer> {
        self.next().granted_buffer(bytes)
    }

    fn charge(&mut self, payload_bytes: u64) -> io::Result<DatagramCharge> {
        self.next().charge(payload_bytes)
    }

    fn segmentation(&mut self, payload_bytes: u64) -> io::Result<Segmentation> {
        self.next().segmentation(payload_bytes)
    }

    fn path(&mut self, peer: IpAddr, at_most: u32) -> io::Result<PathMtu> {
        self.next().path(peer, at_most)
    }

    fn wake_ups(&mut self) -> io::Result<WakeUps> {
        self.next().wake_ups()
    }

    fn pacing(&mut self, peer: Option<IpAddr>) -> io::Result<PacingEffect> {
        self.next().pacing(peer)
    }

    fn packet_cost(&mut self, payload_bytes: u64) -> io::Result<PacketCost> {
        self.next().packet_cost(payload_bytes)
    }
}

/// How a place takes its first value again.
#[derive(Clone, Copy, PartialEq)]
enum WayBack {
    Open,
    Refused,
    Ignored,
}

struct Places(HostPlaces, WayBack);

impl SettingPlaces for Places {
    fn read(&self, place: &SettingPlace) -> io::Result<Option<String>> {
        self.0.read(place)
    }

    fn write(&mut self, place: &SettingPlace, value: Option<&str>) -> io::Result<()> {
        match self.1 {
            WayBack::Refused if value == Some(BEFORE) => Err(io::ErrorKind::PermissionDenied.into()),
            WayBack::Ignored if value == Some(BEFORE) => Ok(()),
            _ => self.0.write(place, value),
        }
    }
}

fn backlog() -> SettingPlace {
    SettingPlace::Sysctl { name: "net.core.netdev_max_backlog".to_owned() }
}

/// What comes of a change that this probe shows, by such readings: the first is made before the change.
#[track_caller]
fn outcome_in(tree: &Tree, probe: ProbeKind, readings: Vec<ProbeAnswers>, way_back: WayBack) -> ChangeOutcome {
    let mut places = Places(HostPlaces::recorded(tree.path()), way_back);
    let mut advice = advise(tree.path(), &places.0, &mut recorded_probes(tree.path()));
    advice.settings = vec![Setting {
        name: backlog().to_string(),
        now: Some(BEFORE.to_owned()),
        computed: Some(AFTER.to_owned()),
        why: String::new(),
        changes: String::new(),
        effect: Effect::Works,
        step: AdviceStep::Write { place: backlog(), value: AFTER.to_owned() },
        probe: Some(probe),
    }];
    let mut log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let mut probes = Readings(readings);
    let applied = apply(&advice, &AppliedFiles::default(), (&mut places, &mut probes), &mut log).expect("applied");
    let [change] = &applied.changes[..] else { panic!("one change: {applied:?}") };
    change.outcome.clone()
}

#[track_caller]
fn check_kept(probe: ProbeKind, readings: Vec<ProbeAnswers>) {
    let tree = Tree::of("server-10g");
    let text = format!("{readings:?}");
    assert_eq!(outcome_in(&tree, probe, readings, WayBack::Open), ChangeOutcome::Written, "{text}");
    assert_eq!(HostPlaces::recorded(tree.path()).read(&backlog()).expect("read").as_deref(), Some(AFTER));
}

#[track_caller]
fn check_taken_back(probe: ProbeKind, readings: Vec<ProbeAnswers>, words: &str) {
    let tree = Tree::of("server-10g");
    let outcome = outcome_in(&tree, probe, readings, WayBack::Open);
    assert!(matches!(&outcome, ChangeOutcome::RolledBack(reason) if reason.contains(words)), "{outcome:?}");
    assert_eq!(HostPlaces::recorded(tree.path()).read(&backlog()).expect("read").as_deref(), Some(BEFORE));
}

/// The server's answers, with a queue that paces.
fn good() -> ProbeAnswers {
    let mut answers = recorded_probes(Tree::of("server-10g").path()).answers;
    answers.pacing = Some(PacingEffect { asked_bytes_per_second: 1_000_000, seen_bytes_per_second: 1_050_000 });
    answers
}

fn changed(change: impl FnOnce(&mut ProbeAnswers)) -> ProbeAnswers {
    let mut answers = good();
    change(&mut answers);
    answers
}

/// The change stays unless the three measurements after it are all worse.
#[track_caller]
fn check_worse(probe: ProbeKind, words: &str, change: impl FnOnce(&mut ProbeAnswers)) {
    let (good, bad) = (good(), changed(change));
    let of = |readings: &[&ProbeAnswers]| readings.iter().map(|one| (*one).clone()).collect::<Vec<_>>();
    check_taken_back(probe, of(&[&good, &bad, &bad, &bad]), words);
    check_kept(probe, of(&[&good, &bad, &good]));
    check_kept(probe, of(&[&good, &bad, &bad, &good]));
    check_kept(probe, of(&[&good, &good]));
    // Better than before is not worse.
    check_kept(probe, of(&[&bad, &good]));
}

fn path(answers: &mut ProbeAnswers) -> &mut PathMtu {
    answers.path.as_mut().expect("recorded")
}

#[test]
fn a_smaller_granted_buffer_takes_back() {
    check_worse(ProbeKind::GrantedBuffer, "100,000 B of receive buffer are granted, 212,992 B before", |answers| {
        answers.granted_buffer.as_mut().expect("recorded").granted_bytes = 100_000;
    });
}

#[test]
fn a_higher_charge_takes_back() {
    check_worse(ProbeKind::Charge, "a datagram is charged 16,640 B, 8,448 B before", |answers| {
        answers.charges.iter_mut().for_each(|charge| charge.charged_bytes = 16_640);
    });
}

#[test]
fn datagrams_that_are_no_longer_joined_take_back() {
    check_worse(ProbeKind::Segmentation, "16 datagrams come in 16 messages, 1 before", |answers| {
        answers.segmentation.as_mut().expect("recorded").messages = 16;
    });
}

#[test]
fn a_silent_peer_takes_back() {
    check_worse(ProbeKind::Path, "the peer no longer answers", |answers| path(answers).is_confirmed = false);
}

#[test]
fn a_narrower_path_takes_back() {
    check_worse(ProbeKind::Path, "the path carries 1500 B, 9000 B before", |answers| path(answers).bytes = 1500);
}

#[test]
fn a_longer_round_trip_takes_back_if_the_deadline_feels_it() {
    let with = |micros: u64| changed(|answers| path(answers).round_trip = Some(Duration::from_micros(micros)));
    check_worse(ProbeKind::Path, "the round trip is 2 ms, 85 µs before", |answers| {
        path(answers).round_trip = Some(Duration::from_millis(2));
    });
    // A tenth of the deadline of 500 µs is not reached; then half as long again is not.
    check_kept(ProbeKind::Path, vec![with(20), with(45)]);
    check_kept(ProbeKind::Path, vec![with(100), with(145)]);
}

#[test]
fn later_wake_ups_take_back_and_chance_does_not() {
    let with = |micros: u64| {
        changed(|answers| answers.wake_ups.as_mut().expect("recorded").p99 = Duration::from_micros(micros))
    };
    check_worse(ProbeKind::WakeUps, "wake-ups are late by 1.06 ms, 62 µs before", |answers| {
        answers.wake_ups.as_mut().expect("recorded").p99 = Duration::from_micros(1062);
    });
    check_kept(ProbeKind::WakeUps, vec![with(62), with(280)]);
}

#[test]
fn a_queue_that_no_longer_paces_takes_back() {
    check_worse(ProbeKind::Pacing, "the queue no longer paces", |answers| {
        answers.pacing.as_mut().expect("set").seen_bytes_per_second = 310_000_000;
    });
}

#[test]
fn a_dearer_datagram_takes_back_and_chance_does_not() {
    let with = |nanos: u64| {
        changed(|answers| answers.packet_cost.as_mut().expect("recorded").each = Duration::from_nanos(nanos))
    };
    check_worse(ProbeKind::PacketCost, "a datagram costs 3 µs of a processor, 1.4 µs before", |answers| {
        answers.packet_cost.as_mut().expect("recorded").each = Duration::from_micros(3);
    });
    check_kept(ProbeKind::PacketCost, vec![with(1400), with(2000)]);
}

#[test]
fn what_cannot_be_measured_takes_nothing_back() {
    let kinds = [
        ProbeKind::GrantedBuffer,
        ProbeKind::Charge,
        ProbeKind::Segmentation,
        ProbeKind::Path,
        ProbeKind::WakeUps,
        ProbeKind::Pacing,
        ProbeKind::PacketCost,
    ];
    for probe in kinds {
        check_kept(probe, vec![ProbeAnswers::default(), good()]);
        // A peer that was heard and is not any more is worse; every other answer that is missing says nothing.
        if probe != ProbeKind::Path {
            check_kept(probe, vec![good(), ProbeAnswers::default()]);
        }
    }
}

#[test]
fn a_place_that_does_not_take_its_first_value_is_told_and_reverted_later() {
    for (way_back, words) in [(WayBack::Refused, "putting it back failed"), (WayBack::Ignored, "did not take")] {
        let tree = Tree::of("server-10g");
        let bad = changed(|answers| path(answers).is_confirmed = false);
        let outcome = outcome_in(&tree, ProbeKind::Path, vec![good(), bad], way_back);
        assert!(
            matches!(&outcome, ChangeOutcome::StillWorse(reason) if reason.contains("no longer answers") && reason.contains(words)),
            "{outcome:?}"
        );
        let mut places = HostPlaces::recorded(tree.path());
        assert_eq!(places.read(&backlog()).expect("read").as_deref(), Some(AFTER));
        let log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
        let endings = log.revert(&mut places, ForeignChanges::Respect).expect("reverted");
        assert!(endings.iter().all(|one| one.ending == RevertEnding::Restored), "{endings:?}");
        assert_eq!(places.read(&backlog()).expect("read").as_deref(), Some(BEFORE));
    }
}

const BEFORE: &str = "1000";
const AFTER: &str = "2000";
