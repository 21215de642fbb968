//! The places of this host, in network namespaces of the test's own; needs root, without which there is nothing to try.
//!
//! The child processes are this test program again, inside a namespace.

use std::net::UdpSocket;
use std::path::PathBuf;

use thalweg_advisor::{
    CoalescingKnob, FileStore, ForeignChanges, HostIdentity, HostPlaces, LiveProbes, Probes, RevertEnding,
    SettingPlace, SettingPlaces, UndoLog,
};
use thalweg_host::{Namespace, may_make_namespaces};

/// Two namespaces with a veth pair between them: `wide0` with MTU 9000 and `narrow0` with 1500.
fn pair(role: &str) -> (Namespace, Namespace) {
    let (near, far) =
        (Namespace::new(&format!("{role}a")).expect("made"), Namespace::new(&format!("{role}b")).expect("made"));
    near.link(&format!("add wide0 mtu 9000 type veth peer name narrow0 mtu 1500 netns {}", far.name())).expect("made");
    for (side, device, address) in [(&near, "wide0", "10.77.4.1/24"), (&far, "narrow0", "10.77.4.2/24")] {
        side.ip(&format!("addr add {address} dev {device}")).expect("set");
        side.link(&format!("set {device} up")).expect("set");
    }
    (near, far)
}

/// Runs a test of this program in a namespace.
#[track_caller]
fn run_in(namespace: &Namespace, test: &str) {
    let mut command = namespace.command(std::env::current_exe().expect("this program"));
    let output = command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

#[test]
fn settings_of_a_veth_pair_change_and_come_back() {
    if !may_make_namespaces() {
        return;
    }
    let (near, _far) = pair("live");
    run_in(&near, "live::inside_settings_change_and_come_back");
}

#[test]
fn inside_settings_change_and_come_back() {
    if !is_inside() {
        return;
    }
    let device = || "wide0".to_owned();
    let changes = [
        (SettingPlace::Device { device: device(), entry: "mtu".to_owned() }, "8160"),
        (SettingPlace::Device { device: device(), entry: "tx_queue_len".to_owned() }, "777"),
        (SettingPlace::Device { device: device(), entry: "gro_flush_timeout".to_owned() }, "50000"),
        (SettingPlace::Feature { device: device(), feature: "rx-gro".to_owned() }, "on"),
        (SettingPlace::Feature { device: device(), feature: "tx-udp-segmentation".to_owned() }, "off"),
        (SettingPlace::RootQueue { device: device() }, "pfifo"),
        (SettingPlace::Sysctl { name: "net.ipv4.ipfrag_time".to_owned() }, "3"),
    ];
    let mut places = HostPlaces::here();
    let before: Vec<_> = changes.iter().map(|(place, _)| places.read(place).expect("read")).collect();
    assert!(before.iter().all(Option::is_some), "{before:?}");
    let path = std::env::temp_dir().join(format!("thalweg-live-{}/undo.jsonl", std::process::id()));
    let open = || UndoLog::open(FileStore::at(&path), HostIdentity::read(HostPlaces::here().files())).expect("read");
    let mut log = open();
    for (place, value) in &changes {
        let taken = log.change(&mut places, place, Some(value)).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(taken.as_deref(), Some(*value), "{place}");
    }
    let moderation = SettingPlace::Coalescing { device: device(), knob: CoalescingKnob::RxUsecs };
    assert_eq!(places.read(&moderation).expect("asked"), None, "veth has none");
    let refusal = log.change(&mut places, &moderation, Some("100")).expect_err("refused").to_string();
    assert!(refusal.contains("the driver cannot change wide0 rx-usecs"), "{refusal}");
    drop(log);
    let endings = open().revert(&mut places, ForeignChanges::Respect).expect("reverted");
    assert!(endings.iter().all(|one| one.ending.is_final()), "{endings:?}");
    assert_eq!(endings.iter().filter(|one| one.ending == RevertEnding::Restored).count(), changes.len(), "{endings:?}");
    let after: Vec<_> = changes.iter().map(|(place, _)| places.read(place).expect("read")).collect();
    assert_eq!(after, before);
    std::fs::remove_dir_all(path.parent().map(PathBuf::from).expect("a folder")).expect("removed");
}

#[test]
fn a_path_is_as_wide_as_its_narrowest_end() {
    if !may_make_namespaces() {
        return;
    }
    let (near, far) = pair("path");
    run_in(&near, "live::inside_the_path_is_narrow");
    far.link("set narrow0 mtu 9000").expect("set");
    run_in(&near, "live::inside_the_path_is_wide");
    run_in(&near, "live::inside_the_path_is_wide_after_many_refusals");
}

fn width() -> (u32, bool) {
    let mut probes = LiveProbes::default();
    let path = probes.path("10.77.4.2".parse().expect("an address"), 9000).expect("a route");
    assert!(path.round_trip.is_some(), "{path:?}");
    (path.bytes, path.is_confirmed)
}

#[test]
fn inside_the_path_is_narrow() {
    if is_inside() {
        assert_eq!(width(), (1500, true));
    }
}

#[test]
fn inside_the_path_is_wide() {
    if is_inside() {
        assert_eq!(width(), (9000, true));
    }
}

#[test]
fn inside_the_path_is_wide_after_many_refusals() {
    if is_inside() {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("bound");
        // As a measurement of pacing sends them; the peer refuses six at once, and then one a second.
        for _ in 0..60 {
            socket.send_to(&[0; 1000], "10.77.4.2:9").expect("sent");
        }
        assert_eq!(width(), (9000, true));
    }
}

#[test]
fn nothing_is_said_of_a_queue_whose_datagrams_wait_for_a_silent_neighbour() {
    if !may_make_namespaces() {
        return;
    }
    let (near, _far) = pair("mute");
    run_in(&near, "live::inside_the_datagrams_do_not_leave");
}

#[test]
fn inside_the_datagrams_do_not_leave() {
    if is_inside() {
        // On the link, and of nobody.
        let seen = LiveProbes::default().pacing(Some("10.77.4.99".parse().expect("an address")));
        let error = seen.expect_err("nobody answers for that address").to_string();
        assert!(error.contains("did not leave"), "{error}");
    }
}

const INSIDE: &str = "THALWEG_INSIDE_NAMESPACE";
