//! Applying to copies of recorded machines: what is written, what is measured again, and what is taken back.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thalweg_advisor::{
    AdvisedStream, AppliedAdvice, AppliedFiles, ChangeOutcome, DatagramCharge, FileStore, ForeignChanges,
    GrantedBuffer, HostAdvice, HostPlaces, NetworkFacts, PacingEffect, PacketCost, PathMtu, PlantedProbes, Probes,
    RevertEnding, Segmentation, SettingPlace, StreamProfile, StreamVerification, UndoLog, WakeUps, apply,
};

use crate::tree::{Tree, advise, identity, recorded_probes};

/// Answers that follow from the settings of the tree: the buffer from `rmem_max`, and what each test adds.
struct Reactive {
    planted: PlantedProbes,
    root: PathBuf,
    /// Whether the peer stops answering once the interface waits for more packets.
    dies_of_moderation: bool,
    /// Wake-ups that are later with this governor.
    late_with: Option<&'static str>,
}

impl Reactive {
    fn of(root: &Path) -> Reactive {
        Reactive { planted: recorded_probes(root), root: root.to_owned(), dies_of_moderation: false, late_with: None }
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).expect("read").trim().to_owned()
    }
}

impl Probes for Reactive {
    fn granted_buffer(&mut self, bytes: u64) -> io::Result<GrantedBuffer> {
        let most = self.text("proc/sys/net/core/rmem_max").parse().expect("a number");
        self.planted.granted_buffer(bytes).map(|answer| GrantedBuffer { granted_bytes: bytes.min(most), ..answer })
    }

    fn charge(&mut self, payload_bytes: u64) -> io::Result<DatagramCharge> {
        self.planted.charge(payload_bytes)
    }

    fn segmentation(&mut self, payload_bytes: u64) -> io::Result<Segmentation> {
        self.planted.segmentation(payload_bytes)
    }

    fn path(&mut self, peer: IpAddr, at_most: u32) -> io::Result<PathMtu> {
        let is_dead = self.dies_of_moderation && !self.text("nic/eno1.json").contains("\"rx_usecs\": 1,");
        let path = self.planted.path(peer, at_most)?;
        Ok(if is_dead { PathMtu { is_confirmed: false, round_trip: None, ..path } } else { path })
    }

    fn wake_ups(&mut self) -> io::Result<WakeUps> {
        let governor = self.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let late = self.planted.wake_ups()?;
        let is_late = self.late_with == Some(&governor);
        Ok(if is_late { WakeUps { p99: late.p99 + Duration::from_millis(1), ..late } } else { late })
    }

    fn pacing(&mut self, peer: Option<IpAddr>) -> io::Result<PacingEffect> {
        self.planted.pacing(peer)
    }

    fn packet_cost(&mut self, payload_bytes: u64) -> io::Result<PacketCost> {
        self.planted.packet_cost(payload_bytes)
    }
}

fn applied(tree: &Tree, probes: &mut Reactive) -> (HostAdvice, AppliedAdvice) {
    let mut places = HostPlaces::recorded(tree.path());
    let advice = advise(tree.path(), &places, probes);
    let files = AppliedFiles {
        profile: Some("/srv/stream.toml".into()),
        fragment: Some("/etc/sysctl.d/60-thalweg.conf".into()),
    };
    let mut log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let application = apply(&advice, &files, (&mut places, probes), &mut log).expect("applied");
    (advice, application)
}

#[track_caller]
fn outcome<'a>(application: &'a AppliedAdvice, place: &str) -> &'a ChangeOutcome {
    let found = application.changes.iter().find(|change| change.place.to_string() == place);
    &found.unwrap_or_else(|| panic!("{place} was not touched")).outcome
}

#[test]
fn what_was_missing_is_there_after_an_application() {
    let tree = Tree::of("server-10g");
    let mut probes = Reactive::of(tree.path());
    let (advice, application) = applied(&tree, &mut probes);
    assert!(application.changes.iter().all(|change| change.outcome == ChangeOutcome::Written), "{application:?}");
    let ask = advice.numbers.receive_buffer_ask();
    assert!(!StreamVerification::of(&advice).is_met(), "the default buffer was too small");
    let after = advise(tree.path(), &HostPlaces::recorded(tree.path()), &mut probes);
    let verification = StreamVerification::of(&after);
    let buffer = verification.checks.iter().find(|check| check.name == "receive buffer").expect("a check");
    assert_eq!(buffer.is_met, Some(true), "{}", verification.to_text());
    assert_eq!(after.writes().count(), 0, "nothing is left to write: {:?}", after.writes().collect::<Vec<_>>());
    let read = |path: &str| std::fs::read_to_string(tree.path().join(path)).expect("written");
    assert!(read("etc/sysctl.d/60-thalweg.conf").contains(&format!("net.core.rmem_max = {ask}\n")));
    assert!(read("srv/stream.toml").contains(&format!("[participant]\nreceive_buffer_bytes = {ask}\n")));
}

#[test]
fn what_makes_it_worse_is_taken_back_and_the_rest_stays() {
    let tree = Tree::of("server-10g");
    let before = HostPlaces::recorded(tree.path()).nics().read("eno1").expect("answers").coalescing;
    let mut probes = Reactive { dies_of_moderation: true, late_with: Some("performance"), ..Reactive::of(tree.path()) };
    let (_, application) = applied(&tree, &mut probes);
    for place in ["eno1 rx-usecs", "eno1 adaptive-rx"] {
        let outcome = outcome(&application, place);
        assert!(
            matches!(outcome, ChangeOutcome::RolledBack(reason) if reason.contains("no longer answers")),
            "{outcome:?}"
        );
    }
    let governor = outcome(&application, "cpu0 scaling_governor");
    assert!(
        matches!(governor, ChangeOutcome::RolledBack(reason) if reason.contains("wake-ups are late")),
        "{governor:?}"
    );
    assert_eq!(*outcome(&application, "net.core.rmem_max"), ChangeOutcome::Written);
    let places = HostPlaces::recorded(tree.path());
    assert_eq!(places.nics().read("eno1").expect("answers").coalescing, before);
    assert_eq!(places.files().governor(0).as_deref(), Some("schedutil"));
}

#[test]
fn what_a_second_application_takes_back_leads_to_the_first_value_all_the_same() {
    let tree = Tree::of("server-10g");
    let mut places = HostPlaces::recorded(tree.path());
    let mut log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let governor = SettingPlace::Governor { processor: 0 };
    log.change(&mut places, &governor, Some("powersave")).expect("an earlier application");
    drop(log);
    let mut probes = Reactive { late_with: Some("performance"), ..Reactive::of(tree.path()) };
    let (_, application) = applied(&tree, &mut probes);
    assert!(matches!(outcome(&application, "cpu0 scaling_governor"), ChangeOutcome::RolledBack(_)));
    assert_eq!(places.files().governor(0).as_deref(), Some("powersave"));
    let log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let reverted = log.revert(&mut places, ForeignChanges::Respect).expect("reverted");
    let ending = reverted.iter().find(|one| one.place == governor).map(|one| &one.ending);
    assert_eq!(ending, Some(&RevertEnding::Restored));
    assert_eq!(places.files().governor(0).as_deref(), Some("schedutil"));
}

#[test]
fn a_list_that_was_empty_is_emptied_again() {
    let tree = Tree::of("server-10g");
    let path = tree.path().join("proc/sys/net/ipv4/ip_local_reserved_ports");
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(&path, "\n").expect("written");
    let mut places = HostPlaces::recorded(tree.path());
    let mut log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let ports = SettingPlace::Sysctl { name: "net.ipv4.ip_local_reserved_ports".to_owned() };
    log.change(&mut places, &ports, Some("7400-7649")).expect("changed");
    let reverted = log.revert(&mut places, ForeignChanges::Respect).expect("reverted");
    assert_eq!(reverted[0].ending, RevertEnding::Restored);
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "\n");
}

#[test]
fn a_value_that_somebody_changes_later_is_told_and_stays() {
    let tree = Tree::of("server-10g");
    let mut probes = Reactive::of(tree.path());
    applied(&tree, &mut probes);
    let path = tree.path().join("proc/sys/net/core/rmem_max");
    std::fs::write(&path, "777777\n").expect("written");
    let mut places = HostPlaces::recorded(tree.path());
    let log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let advice = advise(tree.path(), &places, &mut probes);
    let verification = StreamVerification::of(&advice).with_drift(&log, &places);
    assert_eq!(verification.drifted.len(), 1, "{}", verification.to_text());
    log.revert(&mut places, ForeignChanges::Respect).expect("reverted");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "777777\n");
    let log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("kept");
    log.revert(&mut places, ForeignChanges::Override).expect("reverted");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "212992\n");
}

#[test]
fn a_profile_that_has_become_too_small_is_told() {
    let tree = Tree::of("server-10g");
    let mut probes = Reactive::of(tree.path());
    applied(&tree, &mut probes);
    let places = HostPlaces::recorded(tree.path());
    let log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let mut is_met = |worst| {
        let late = probes.planted.answers.wake_ups.as_mut().expect("recorded");
        late.worst = worst;
        let advice = advise(tree.path(), &places, &mut probes);
        let verification = StreamVerification::of(&advice).with_profile(&advice, &log, &places);
        verification.checks.iter().find(|check| check.name == "profile").expect("a check").is_met
    };
    assert_eq!(is_met(Duration::from_millis(9)), Some(true));
    assert_eq!(is_met(Duration::from_millis(90)), Some(false));
}

/// Advice on a stream of another kind than that of [`advise`].
fn advise_on(tree: &Tree, stream: &AdvisedStream, device: &str, probes: &mut dyn Probes) -> HostAdvice {
    let places = HostPlaces::recorded(tree.path());
    let peer = Some("192.0.2.1".parse().expect("an address"));
    let facts = NetworkFacts { device: Some(device), peer, link_bits_per_second: None };
    HostAdvice::make(stream, &facts, (places.files(), places.nics()), probes).expect("advice")
}

/// Writes the profile, and what else the advice says.
fn apply_profile(tree: &Tree, advice: &HostAdvice, probes: &mut dyn Probes) -> AppliedAdvice {
    let files = AppliedFiles { profile: Some("/srv/stream.toml".into()), fragment: None };
    let mut log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    apply(advice, &files, (&mut HostPlaces::recorded(tree.path()), probes), &mut log).expect("applied")
}

#[test]
fn a_buffer_that_does_not_hold_what_comes_at_once_lasts_for_no_stall() {
    let tree = Tree::of("server-10g");
    let mut probes = recorded_probes(tree.path());
    probes.answers.wake_ups.as_mut().expect("recorded").worst = Duration::from_micros(1400);
    let stream = |writers| AdvisedStream { writers, ..StreamProfile::Bulk.stream() };
    let one = advise_on(&tree, &stream(1), "eno1", &mut probes);
    assert_eq!(*outcome(&apply_profile(&tree, &one, &mut probes), "/srv/stream.toml"), ChangeOutcome::Written);
    let places = HostPlaces::recorded(tree.path());
    let log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let is_met = |advice: &HostAdvice, name: &str| {
        let verification = StreamVerification::of(advice).with_profile(advice, &log, &places);
        verification.checks.iter().find(|check| check.name == name).expect("a check").is_met
    };
    assert_eq!(is_met(&one, "profile"), Some(true));
    // An eighth of what eight writers send at the same instant.
    let eight = advise_on(&tree, &stream(8), "eno1", &mut probes);
    assert_eq!(is_met(&eight, "profile"), Some(false));
    let granted = probes.answers.granted_buffer.as_mut().expect("recorded");
    (granted.granted_bytes, granted.forced_bytes) = (one.numbers.receive_buffer_ask(), None);
    assert_eq!(is_met(&advise_on(&tree, &stream(1), "eno1", &mut probes), "stall"), Some(true));
    assert_eq!(is_met(&advise_on(&tree, &stream(8), "eno1", &mut probes), "stall"), Some(false));
}

#[test]
fn a_receive_buffer_that_is_refused_gets_no_profile() {
    let applied = |memory_bytes: u64| {
        let tree = Tree::of("container-quota");
        tree.set("sys/fs/cgroup/memory.max", &memory_bytes.to_string());
        let mut probes = recorded_probes(tree.path());
        let advice = advise_on(&tree, &StreamProfile::Video.stream(), "eth0", &mut probes);
        let application = apply_profile(&tree, &advice, &mut probes);
        (application, tree.path().join("srv/stream.toml").exists())
    };
    let (small, is_there) = applied(64 << 20);
    let refused = outcome(&small, "/srv/stream.toml");
    assert!(matches!(refused, ChangeOutcome::Refused(reason) if reason.contains("control groups")), "{refused:?}");
    assert!(!is_there);
    let (large, is_there) = applied(128 << 20);
    assert_eq!((outcome(&large, "/srv/stream.toml"), is_there), (&ChangeOutcome::Written, true));
    // What the container only shows is told, though it was not tried.
    let cap = large.refused.iter().find(|one| one.name == "net.core.rmem_max").expect("told");
    assert!(cap.reason.contains("on the host: sysctl -w"), "{cap:?}");
    assert_eq!((cap.now.as_deref(), large.missing()), (Some("212992"), large.refused.len()));
}

#[test]
fn a_refusal_does_not_keep_out_the_other_changes() {
    let tree = Tree::of("server-10g");
    let mut probes = Reactive::of(tree.path());
    let mut places = HostPlaces::recorded(tree.path());
    let advice = advise(tree.path(), &places, &mut probes);
    std::fs::remove_file(tree.path().join("proc/sys/net/core/wmem_max")).expect("removed");
    let mut log = UndoLog::open(FileStore::at(tree.path().join("undo.jsonl")), identity()).expect("read");
    let application = apply(&advice, &AppliedFiles::default(), (&mut places, &mut probes), &mut log).expect("applied");
    assert!(matches!(outcome(&application, "net.core.wmem_max"), ChangeOutcome::Refused(_)));
    assert_eq!(*outcome(&application, "net.core.rmem_max"), ChangeOutcome::Written);
}
