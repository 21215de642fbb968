//! A scenario across agents on hosts of their own, which OpenSSH starts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::host::{Addresses, Host};
use crate::program::{PATIENCE, Program};
use crate::sshd::{Sshd, agents_at_work, expect_gone};

/// Two hosts with a link and a server of OpenSSH each.
pub struct Lab {
    folder: PathBuf,
    peers: PathBuf,
    sshd: Sshd,
    hosts: [Host; 2],
}

impl Lab {
    /// Agents look for the programs of other middleware in `peers`.
    pub fn new(name: &str, peers: &Path) -> Lab {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("made");
        let (left, right) = Host::pair(1500, Addresses::Both);
        let mut sshd = Sshd::new(&folder);
        sshd.serve(Some(&left), ("10.77.0.1", 2222), "left");
        sshd.serve(Some(&right), ("10.77.0.2", 2222), "right");
        Lab { folder, peers: peers.to_path_buf(), sshd, hosts: [left, right] }
    }

    /// Runs a scenario with this matrix from the left host.
    pub fn start(&self, seconds: u32, matrix: &str) -> Program {
        let machine = |name: &str| {
            let (program, peers) = (self.sshd.program(), self.peers.display());
            format!("{{ ssh = \"{name}\", program = \"{program}\", peer_dir = \"{peers}\" }}")
        };
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"test\"\n\
             hosts = {{ on = [{}, {}], clock_s = 0.4 }}\n\
             [matrix]\n{matrix}\n\
             [schedule]\nseconds = {seconds}\nruns = 1\nwarm_up_s = 0.2\nin_time_ms = 5000\nbehind_max_ms = 10000\n\
             [system]\nothers_max_pct = 100\nattempts = 1\n[expect]\nlost = \"== 0\"\n",
            machine("left"),
            machine("right")
        );
        let file = self.folder.join("scenario.toml");
        fs::write(&file, text).expect("written");
        let mut command = self.hosts[0].command(env!("CARGO_BIN_EXE_thalweg"));
        command.args(["lab", "run"]).arg(file).arg("--out").arg(self.out()).args(["--ssh", &self.sshd.ssh()]);
        Program::start("lab", &command)
    }

    pub fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.out().join(name)).expect("there")).expect("JSON")
    }
}

/// Two publishers and two subscribers of Thalweg.
const MATRIX: &str = "rate_hz = 200\npayload_bytes = 1000\nendpoints = \"2-2\"\ndestination = \"multicast\"";

#[test]
fn a_scenario_runs_across_the_link_between_two_agents() {
    let lab = Lab::new("link", Path::new("/nonexistent"));
    lab.start(2, MATRIX).finish().well();
    let result = lab.json("runs/round-000-cell-000-attempt-1/result.json");
    assert_eq!((&result["totals"]["due"], &result["totals"]["lost"]), (&1_600.into(), &0.into()));
    for host in result["hosts"].as_array().expect("hosts") {
        // What the other host's publisher sent came over the link: 400 samples of 1,000 bytes.
        assert!(host["device.eth0.rx_bytes"].as_u64() > Some(400_000), "{host}");
        assert!(host["udp.InDatagrams"].as_u64() > Some(400), "{host}");
    }
    let wire = &lab.json("results.json")["cells"][0]["runs"][0]["wire"];
    assert!(wire["sent"].as_u64() > Some(800_000), "{wire}");
    for clock in result["clocks"]["hosts"].as_array().expect("clocks") {
        let figure = |name: &str| clock["fit"][name].as_f64().expect("a number");
        // Both hosts have the clock of this machine.
        assert!(figure("ahead_ns").abs() <= figure("round_trip_ns") / 2.0 + figure("residual_ns") + 1.0, "{clock}");
    }
}

#[test]
fn an_agent_whose_clock_cannot_be_asked_is_told_with_the_way_that_is_closed() {
    let lab = Lab::new("closed", Path::new("/nonexistent"));
    // Ports that the kernel chooses, and none of DDS.
    lab.hosts[1].drop_incoming("udp dport 32768-65535");
    let said = lab.start(1, MATRIX).finish();
    let all = said.lines.join("\n");
    assert!(all.contains("the clock of right answered 0 of "), "{all}");
    assert!(all.contains("let UDP between both machines through"), "{all}");
    assert_eq!(lab.json("manifest.json")["state"], "failed");
}

#[test]
fn a_link_that_breaks_ends_the_run_and_everything_on_both_sides() {
    let lab = Lab::new("broken", Path::new("/nonexistent"));
    let running = lab.start(60, MATRIX);
    let agents = agents_at_work(&lab.sshd.program(), 2);
    // Neither end is told: no packet of `ssh` passes any more.
    lab.hosts[1].drop_incoming("tcp dport 2222");
    lab.hosts[1].drop_outgoing("tcp sport 2222");
    let said = running.finish();
    assert!(said.lines.iter().any(|line| line.contains("the agent on right was lost")), "{:?}", said.lines);
    assert_eq!(lab.json("manifest.json")["state"], "failed");
    expect_gone(&agents, PATIENCE);
}

#[test]
fn a_peer_that_an_agents_host_does_not_have_is_told_before_anything_is_made() {
    let lab = Lab::new("missing", Path::new("/nonexistent"));
    let said = lab.start(1, "middleware = \"zenoh\"\nrate_hz = 50\npayload_bytes = 100").finish();
    let all = said.lines.join("\n");
    assert!(all.contains("zenoh is not set up on left"), "{all}");
    assert!(all.contains("run `thalweg lab peers install zenoh` there"), "{all}");
    assert!(!said.status.success() && !lab.out().exists(), "{all}");
}
