//! Runs that OpenSSH starts on another machine, which is this one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::Program;
use crate::sshd::{Sshd, agents_at_work, command_of, expect_gone, parent, processes};

/// A server and a folder.
struct Lab {
    folder: PathBuf,
    sshd: Sshd,
    port: u16,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ssh-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("made");
        let free = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut sshd = Sshd::new(&folder);
        sshd.serve(None, ("127.0.0.1", port), "lab2");
        Lab { folder, sshd, port }
    }

    fn program(&self) -> String {
        self.sshd.program()
    }

    /// Runs a scenario of so many seconds, from this machine to `machine` and back.
    fn start(&self, machine: &str, program: &str, seconds: u32) -> Program {
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"test\"\n\
             hosts = {{ on = [\"here\", {{ ssh = \"{machine}\", program = \"{program}\" }}], clock_s = 0.4 }}\n\
             [matrix]\nrate_hz = 50\npayload_bytes = 100\nendpoints = \"2-2\"\n\
             [schedule]\nseconds = {seconds}\nruns = 1\nwarm_up_s = 0.2\nin_time_ms = 5000\nbehind_max_ms = 10000\n\
             [system]\nothers_max_pct = 100\nattempts = 1\n[expect]\nlost = \"== 0\"\n"
        );
        let file = self.folder.join("scenario.toml");
        fs::write(&file, text).expect("written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command.args(["lab", "run"]).arg(file).arg("--out").arg(self.folder.join("out"));
        Program::start("lab", command.args(["--ssh", &self.sshd.ssh()]))
    }

    #[track_caller]
    fn agent_at_work(&self) -> Vec<u32> {
        agents_at_work(&self.program(), 1)
    }

    /// Fails unless the run is refused before anything is made; returns the reason.
    #[track_caller]
    fn refused(&self, machine: &str, program: &str) -> String {
        let said = self.start(machine, program, 1).finish();
        assert!(!said.status.success() && !self.folder.join("out").exists(), "{:?}", said.lines);
        said.lines.join("\n")
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.folder.join("out").join(name)).expect("there")).expect("JSON")
    }
}

/// An agent that hears the end of its input is gone long before one that hears nothing for 20 s.
const SOON: Duration = Duration::from_secs(10);

/// The shortest time that a line takes to `cat` on the other machine and back, written as often as clocks are asked.
fn round_trip_of_a_line(lab: &Lab) -> Duration {
    let ssh = lab.sshd.ssh();
    let mut words = ssh.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(["-T", "lab2", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut to = child.stdin.take().expect("piped");
    let mut from = BufReader::new(child.stdout.take().expect("piped"));
    let mut round_trip = || {
        let start = Instant::now();
        to.write_all(b"now?\n").expect("written");
        from.read_line(&mut String::new()).expect("read");
        start.elapsed()
    };
    let mut row = |_| {
        std::thread::sleep(Duration::from_millis(20));
        (0..4).map(|_| round_trip()).min()
    };
    let shortest = (0..50).filter_map(&mut row).min().expect("some");
    drop(to);
    child.wait().expect("ended");
    shortest
}

#[test]
fn a_run_on_a_machine_of_ssh_is_whole_and_asks_its_clock_beside_ssh() {
    let lab = Lab::new("whole");
    let running = lab.start("lab2", &lab.program(), 2);
    let agent = lab.agent_at_work();
    running.finish().well();
    expect_gone(&agent, SOON);
    let result = lab.json("runs/round-000-cell-000-attempt-1/result.json");
    assert_eq!((&result["totals"]["due"], &result["totals"]["lost"]), (&400.into(), &0.into()));
    let fit = &result["clocks"]["hosts"][1]["fit"];
    let figure = |name: &str| fit[name].as_f64().expect("a number");
    // Both machines have one clock: whatever is found beyond nothing is the error, and lies within the bound.
    assert!(figure("ahead_ns").abs() <= figure("round_trip_ns") / 2.0 + figure("residual_ns") + 1.0, "{fit}");
    // Half the round trip is the error that stays; questions through `ssh` would take longer.
    let by_ssh = round_trip_of_a_line(&lab);
    println!("a line takes {by_ssh:?}, a datagram {} ns", figure("round_trip_ns"));
    assert!(figure("round_trip_ns") < by_ssh.as_nanos() as f64, "{by_ssh:?}: {fit}");
}

#[test]
fn a_killed_ssh_ends_the_run_and_everything_on_both_sides() {
    let lab = Lab::new("killed");
    let running = lab.start("lab2", &lab.program(), 20);
    let agent = lab.agent_at_work();
    let ssh =
        processes(|id| parent(id) == Some(running.id()) && command_of(id).first().is_some_and(|word| word == "ssh"));
    assert_eq!(ssh.len(), 1);
    kill(ssh[0]);
    let said = running.finish();
    let all = said.lines.join("\n");
    assert!(all.contains("the agent on lab2 was lost: it closed the connection (ssh: signal: 9"), "{all}");
    assert_eq!(said.status.code(), Some(1));
    expect_gone(&agent, SOON);
    assert_eq!(lab.json("manifest.json")["state"], "failed");
}

#[test]
fn a_killed_controller_leaves_nothing_on_either_side() {
    let lab = Lab::new("controller");
    let running = lab.start("lab2", &lab.program(), 20);
    let agent = lab.agent_at_work();
    let here = processes(|id| parent(id) == Some(running.id()));
    assert!(here.len() >= 3, "ssh and two workers: {here:?}");
    running.kill();
    expect_gone(&[agent, here].concat(), SOON);
}

#[test]
fn what_keeps_ssh_from_starting_an_agent_is_told_in_its_own_words() {
    let lab = Lab::new("refused");
    let way = format!("HostName 127.0.0.1\nPort {}", lab.port);
    lab.sshd.client("unknown", "user_key", &format!("{way}\nUserKnownHostsFile /dev/null"));
    lab.sshd.client("stranger", "other_key", &way);
    lab.sshd.client("closed", "user_key", "HostName 127.0.0.1\nPort 1");
    let check = |machine: &str, program: &str, parts: &[&str]| {
        let said = lab.refused(machine, program);
        parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} not in {said}"));
    };
    let program = lab.program();
    check(
        "unknown",
        &program,
        &["ssh does not reach unknown: ", "Host key verification failed", "store the host's key"],
    );
    check("stranger", &program, &["ssh does not reach stranger: ", "Permission denied (publickey)"]);
    check("closed", &program, &["ssh does not reach closed: ", "Connection refused"]);
    check("127.0.0.1:x", &program, &["ssh does not reach 127.0.0.1:x: "]);
    check(
        "lab2",
        "/nonexistent/thalweg",
        &["thalweg cannot be started on lab2: ", "/nonexistent/thalweg", "program = "],
    );
    check("lab2", "true; echo injected #", &["thalweg cannot be started on lab2: ", "true; echo injected #"]);
}

fn kill(id: u32) {
    assert!(Command::new("kill").args(["-KILL", &id.to_string()]).status().expect("kill").success());
}
