//! `thalweg advisor` as root, on a host of its own.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::host::{Addresses, Host};

/// What the program said, and its exit code.
struct AdvisorSaid {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl AdvisorSaid {
    #[track_caller]
    fn expect_code(self, code: i32) -> AdvisorSaid {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    fn object(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// A host whose settings `apply` has to change for the stream, with a peer and a folder for its files.
struct Advised {
    host: Host,
    _peer: Host,
    folder: PathBuf,
}

impl Advised {
    #[track_caller]
    fn new(name: &str) -> Advised {
        let (host, peer) = Host::pair(1500, Addresses::Both);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("advisor-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        // Each measurement hears the peer refuse, as often as it asks.
        let unlimited = peer.command("sysctl").args(["-qw", "net.ipv4.icmp_ratemask=0"]).status();
        assert!(unlimited.expect("procps is installed").success());
        let advised = Advised { host, _peer: peer, folder };
        advised.set("net.ipv4.ip_local_port_range", "1024 65000");
        advised.set("net.ipv4.ipfrag_time", "30");
        advised.set("net.ipv4.ip_local_reserved_ports", "8080");
        advised
    }

    #[track_caller]
    fn set(&self, name: &str, value: &str) {
        let status = self.host.command("sysctl").args(["-qw", &format!("{name}={value}")]).status();
        assert!(status.expect("procps is installed").success(), "{name}={value}");
    }

    #[track_caller]
    fn get(&self, name: &str) -> String {
        let output = self.host.command("sysctl").args(["-n", name]).output().expect("procps is installed");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs an action; all but `revert` with the stream.
    #[track_caller]
    fn run(&self, action: &str, options: &[&str]) -> AdvisorSaid {
        let mut command = self.host.command(env!("CARGO_BIN_EXE_thalweg"));
        command.args(["advisor", action]).current_dir(&self.folder);
        if action != "revert" {
            command.args(STREAM);
        }
        if action != "advise" {
            command.args(["--undo", "undo.jsonl"]);
        }
        let output = command.args(options).output().expect("started");
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(!stderr.contains("panicked"), "{stderr}");
        AdvisorSaid { code: output.status.code(), stdout, stderr }
    }

    /// The settings of the kernel, of the interface and of its driver.
    #[track_caller]
    fn settings(&self) -> [Value; 3] {
        let mut advice = self.run("advise", &["--json"]).expect_code(0).object();
        ["settings", "device", "nic"].map(|part| advice["system"][part].take())
    }
}

impl Drop for Advised {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn what_root_applies_is_verified_and_comes_back_exactly() {
    let advised = Advised::new("exactly");
    let next_start = fs::read_to_string(NEXT_START).ok();
    let before = advised.settings();
    assert_eq!(before[2]["features"]["rx-gro"]["is_on"], false, "veth's own choice");
    let applied = advised.run("apply", &["--json"]).expect_code(0);
    assert!(applied.stderr.contains("`thalweg advisor revert` puts back what is in"), "{}", applied.stderr);
    let applied = applied.object();
    let outcome = |place: &Value| {
        let changes = applied["changes"].as_array().expect("a list");
        let change = changes.iter().find(|change| change["place"] == *place);
        change.unwrap_or_else(|| panic!("{place} was not touched: {applied}"))["outcome"]["outcome"].clone()
    };
    // The kernel puts the ports in their order.
    let ports = ("ip_local_reserved_ports", "written-as");
    let written = ["ipfrag_high_thresh", "ipfrag_low_thresh", "ipfrag_time"].map(|name| (name, "written"));
    for (name, expect) in written.into_iter().chain([ports]) {
        let place = serde_json::json!({ "kind": "sysctl", "name": format!("net.ipv4.{name}") });
        assert_eq!(outcome(&place), expect, "{name}");
    }
    let gro = serde_json::json!({ "kind": "feature", "device": "eth0", "feature": "rx-gro" });
    assert_eq!(outcome(&gro), "written");
    assert_eq!(advised.get("net.ipv4.ipfrag_time"), "1");
    assert_eq!(advised.get("net.ipv4.ip_local_reserved_ports"), "7400-7649,8080");
    let [settings, _, nic] = advised.settings();
    assert_eq!(nic["features"]["rx-gro"]["is_on"], true);
    assert_ne!(settings, before[0]);
    // Everything is as it should be: a second application changes nothing, and verification finds no stranger's value.
    let again = advised.run("apply", &["--json"]).expect_code(0).object();
    let outcomes: Vec<&Value> =
        again["changes"].as_array().expect("a list").iter().map(|one| &one["outcome"]).collect();
    let of_kernel = again["changes"].as_array().expect("a list").iter().filter(|one| one["place"]["kind"] != "file");
    assert_eq!(of_kernel.count(), 0, "{outcomes:?}");
    let verified = advised.run("verify", &["--json"]).object();
    assert_eq!(verified["drifted"], Value::Array(Vec::new()));
    let path = verified["checks"].as_array().expect("a list").iter().find(|check| check["name"] == "path");
    assert!(path.is_some_and(|path| path["seen"].as_str().is_some_and(|seen| seen.contains("1500 B answered"))));
    let reverted = advised.run("revert", &[]).expect_code(0);
    for words in ["net.ipv4.ipfrag_time: 30 again", "eth0 feature rx-gro: off again", "stream.toml: nothing again"] {
        assert!(reverted.stdout.contains(words), "{words} not in {}", reverted.stdout);
    }
    assert_eq!(advised.settings(), before);
    assert_eq!(fs::read_dir(&advised.folder).expect("a folder").count(), 0, "profile and undo file are gone");
    assert_eq!(fs::read_to_string(NEXT_START).ok(), next_start, "another namespace has no next start");
    assert_eq!(advised.run("revert", &[]).expect_code(0).stdout, "nothing is left to put back\n");
}

#[test]
fn a_setting_that_somebody_changes_after_root_is_told_and_kept() {
    let advised = Advised::new("strangers");
    let before = advised.settings();
    advised.run("apply", &["--out", "p.toml", "--fragment", "next.conf"]).expect_code(0);
    let fragment = fs::read_to_string(advised.folder.join("next.conf")).expect("written");
    assert!(fragment.contains("\nnet.ipv4.ipfrag_time = 1\n"), "{fragment}");
    advised.set("net.ipv4.ipfrag_time", "7");
    let verified = advised.run("verify", &[]).expect_code(1);
    assert!(verified.stdout.contains("CHANGED  net.ipv4.ipfrag_time is 7 by now"), "{}", verified.stdout);
    let reverted = advised.run("revert", &[]).expect_code(1);
    let words = "net.ipv4.ipfrag_time: CHANGED by somebody else to 7, which stays; --force puts 30 back";
    assert!(reverted.stdout.contains(words), "{}", reverted.stdout);
    assert!(reverted.stderr.contains("places were not put back; the list says why"), "{}", reverted.stderr);
    assert_eq!(advised.get("net.ipv4.ipfrag_time"), "7");
    let elsewhere = Host::new("elsewhere");
    let mut command = elsewhere.command(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["advisor", "revert", "--force", "--undo"]).arg(advised.folder.join("undo.jsonl"));
    let output = command.output().expect("started");
    assert_eq!(output.status.code(), Some(1), "it belongs to another namespace");
    assert!(String::from_utf8_lossy(&output.stdout).contains("LEFT: it is of the network namespace"));
    advised.run("revert", &["--force"]).expect_code(0);
    assert_eq!(advised.settings(), before);
    assert_eq!(fs::read_dir(&advised.folder).expect("a folder").count(), 0);
}

/// Samples that IP cuts, to a deadline that no processor's clock misses: those belong to the whole machine.
const STREAM: [&str; 10] =
    ["--profile", "bulk", "--datagram", "65000", "--deadline", "1000s", "--watch", "0.1", "--peer", "10.77.0.2"];
const NEXT_START: &str = "/etc/sysctl.d/60-thalweg.conf";
