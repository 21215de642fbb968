//! Scenarios on agents, all of which are on this machine: a program in the place of `ssh` starts them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Running, Said, command, run, signal};
use crate::workers::{children, expect_gone};

/// A folder with a scenario of one cell and the program in the place of `ssh`.
struct Lab {
    folder: PathBuf,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("made");
        let lab = Lab { folder };
        // It skips all options, leaves its number in a file with the destination's name and becomes the agent, after a greeting such as
        // some shells have. A destination with a file of that name and `.closed` is not reached.
        lab.program(
            "ssh",
            "while [ \"$1\" != -- ]; do shift; done\n\
             cd \"$(dirname \"$0\")\" || exit 1\n\
             if [ -e \"$2.closed\" ]; then echo \"connect to host $2: Connection refused\" >&2; exit 255; fi\n\
             echo $$ > \"$2.pid\"\n\
             echo Welcome\n\
             export SSH_CONNECTION='127.0.0.1 40000 127.0.0.1 22'\n\
             exec sh -c \"exec $3\"",
        );
        lab
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("text").to_owned()
    }

    /// Makes an executable file of these lines of the shell.
    fn program(&self, name: &str, lines: &str) {
        let path = self.folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    /// A scenario of runs of so many seconds that any machine can make, whatever else runs on it.
    fn scenario(&self, machines: &[&str], seconds: u32) {
        self.scenario_with(env!("CARGO_BIN_EXE_thalweg"), machines, seconds);
    }

    /// The same with this program on the other machines.
    fn scenario_with(&self, program: &str, machines: &[&str], seconds: u32) {
        self.scenario_of(
            "[matrix]\nrate_hz = 50\npayload_bytes = 100\nendpoints = \"1-2\"",
            program,
            machines,
            seconds,
        );
    }

    /// The same with this traffic.
    fn scenario_of(&self, traffic: &str, program: &str, machines: &[&str], seconds: u32) {
        let machine = |name: &&str| match *name {
            "here" => "\"here\"".to_owned(),
            name => format!("{{ ssh = \"{name}\", program = \"{program}\" }}"),
        };
        let machines = machines.iter().map(machine).collect::<Vec<_>>().join(", ");
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"test\"\nhosts = {{ on = [{machines}], clock_s = 0.4 }}\n{traffic}\n\
             [schedule]\nseconds = {seconds}\nruns = 1\nwarm_up_s = 0.2\nin_time_ms = 5000\nbehind_max_ms = 10000\n\
             [system]\nothers_max_pct = 100\nattempts = 1\n\
             [trace]\nlayers = true\nsample = 5\n[expect]\nlost = \"== 0\"\n"
        );
        fs::write(self.folder.join("scenario.toml"), text).expect("written");
    }

    fn start(&self) -> Running {
        self.start_by(&self.path("ssh"))
    }

    fn start_by(&self, ssh: &str) -> Running {
        let (file, out) = (self.path("scenario.toml"), self.path("out"));
        Running::start(command(&["lab", "run", &file, "--out", &out, "--ssh", ssh]))
    }

    fn resume(&self) -> Said {
        run(&["lab", "resume", &self.path("out"), "--ssh", &self.path("ssh")])
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.folder.join(name)).expect("there")).expect("JSON")
    }

    /// Waits until the agent on this machine has so many workers.
    #[track_caller]
    fn agent(&self, machine: &str, workers: usize) -> Agent {
        let deadline = Instant::now() + PATIENCE;
        let number = || fs::read_to_string(self.folder.join(format!("{machine}.pid"))).ok()?.trim().parse().ok();
        loop {
            if let Some(id) = number() {
                let found = children(id);
                if found.len() >= workers {
                    return Agent { id, workers: found, remains: remains(id) };
                }
            }
            assert!(Instant::now() < deadline, "no {workers} workers of {machine}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Fails unless the runs do not even begin, and nothing is made; returns the reason.
    #[track_caller]
    fn refused(&self, ssh: &str) -> String {
        let said = self.start_by(ssh).finish().expect_code(1);
        assert!(!self.folder.join("out").exists(), "nothing is made before the agents are there");
        said.stderr
    }
}

/// A running agent.
struct Agent {
    id: u32,
    workers: Vec<u32>,
    /// Its folders.
    remains: Vec<PathBuf>,
}

impl Agent {
    /// Waits until it is gone with all that it started and made.
    #[track_caller]
    fn expect_gone(&self) {
        expect_gone(&self.workers);
        expect_gone(&[self.id]);
        assert!(!self.remains.is_empty() && remains(self.id).is_empty());
    }
}

/// What an agent made among the system's temporary files.
fn remains(id: u32) -> Vec<PathBuf> {
    let prefix = format!("thalweg-agent-{id}-");
    let entries = fs::read_dir(std::env::temp_dir()).expect("temporary files").flatten();
    let own = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)));
    own.map(|entry| entry.path()).collect()
}

fn whole_runs(out: &Path) -> usize {
    let entries = fs::read_dir(out.join("runs")).expect("runs").flatten();
    entries.filter(|entry| entry.path().extension().is_none()).count()
}

#[test]
fn a_scenario_runs_across_agents_and_says_how_well_their_clocks_are_known() {
    let lab = Lab::new("whole");
    lab.scenario(&["first", "here", "second"], 2);
    let running = lab.start();
    let agents = [lab.agent("first", 1), lab.agent("second", 1)];
    let said = running.finish().expect_code(0);
    assert!(said.stdout.contains("holds: lost == 0") && said.stdout.contains("CLOCKS: "), "{}", said.stdout);
    agents.iter().for_each(Agent::expect_gone);
    let result = lab.json("out/runs/round-000-cell-000-attempt-1/result.json");
    assert_eq!((&result["totals"]["due"], &result["totals"]["lost"]), (&200.into(), &0.into()));
    let clocks = result["clocks"]["hosts"].as_array().expect("clocks");
    assert_eq!(clocks.len(), 3);
    assert!(clocks[1]["fit"].is_null(), "the controller's own clock is the reference");
    for clock in [&clocks[0], &clocks[2]] {
        let fit = &clock["fit"];
        let figure = |name: &str| fit[name].as_f64().expect("a number");
        // All are the same clock: whatever is found beyond nothing is the error, and lies within the bound.
        let bound = figure("round_trip_ns") / 2.0 + figure("residual_ns") + 1.0;
        assert!(figure("ahead_ns").abs() <= bound, "{fit}");
        // At least eight answers before and eight after, however long the machine stood still.
        assert!(figure("probes") >= 16.0, "{fit}");
    }
    assert_eq!(result["hosts"].as_array().map(Vec::len), Some(3));
    assert_eq!(result["conditions"]["machines"].as_array().map(Vec::len), Some(3));
    assert!(result["processes"].as_array().is_some_and(|all| all.len() == 3));
    let bound_us = result["clocks"]["bound_us"].as_f64().expect("a bound");
    // The true latency is above zero; what is shown may be off by the bound.
    let response = result["totals"]["response"]["p50_us"].as_f64().expect("a median");
    assert!(response > 10.0 && response < 1e6 && bound_us > 1.0, "{response} ± {bound_us}");
    let results = lab.json("out/results.json");
    assert_eq!(results["clock_bound_us"].as_f64(), Some(bound_us));
    assert_eq!(results["hosts"].as_array().map(Vec::len), Some(2));
    let manifest = lab.json("out/manifest.json");
    assert!(manifest["fingerprint"]["parts"]["kernel of first"].is_string(), "{manifest}");
    let html = fs::read_to_string(lab.folder.join("out/report.html")).expect("a report");
    assert!(html.contains("one-way latencies between machines are ±") && html.contains("wake up and take"));
    run(&["lab", "verify", &lab.path("out")]).expect_code(0);
}

/// Two sensors on both machines, a process on this one that hears both, and its hearer on the other.
const CHAIN: &str = r#"[[flow]]
name = "sensor"
payload_bytes = 1000
rate_hz = 20
publishers = 2
subscribers = 0
topics = "per-publisher"
[[flow]]
name = "plan"
after = "sensor"
work_ms = 5
payload_bytes = 100"#;

#[test]
fn a_chain_of_flows_runs_across_machines_by_their_clocks() {
    let lab = Lab::new("chain");
    lab.scenario_of(CHAIN, env!("CARGO_BIN_EXE_thalweg"), &["first", "here"], 2);
    let said = lab.start().finish().expect_code(0);
    assert!(said.stdout.contains("holds: lost == 0") && said.stdout.contains("CLOCKS: "), "{}", said.stdout);
    let of_flow = |name: &str| {
        lab.json(&format!("out/runs/round-000-cell-000-attempt-1/flow-{name}/result.json"))["totals"].clone()
    };
    let (sensor, plan) = (of_flow("sensor"), of_flow("plan"));
    assert_eq!(
        (&sensor["due"], &sensor["lost"], &plan["due"], &plan["lost"]),
        (&80.into(), &0.into(), &40.into(), &0.into())
    );
    // Whichever machine a time is of: a plan is there after the work on what it was made of, and no machine is minutes ahead.
    let p50 = |totals: &Value| totals["response"]["p50_us"].as_f64().expect("a median");
    assert!(p50(&plan) > p50(&sensor) + 5_000.0 && p50(&plan) < 5e6, "{plan}");
    run(&["lab", "verify", &lab.path("out")]).expect_code(0);
}

#[test]
fn a_run_that_lost_its_agent_is_no_result_and_can_be_resumed() {
    let lab = Lab::new("killed");
    lab.scenario(&["first", "second"], 4);
    let running = lab.start();
    let agents = [lab.agent("first", 1), lab.agent("second", 1)];
    signal(agents[1].id, "KILL");
    let said = running.finish().expect_code(1);
    assert!(said.stderr.contains("the agent on second was lost"), "{}", said.stderr);
    assert!(said.stderr.contains("signal: 9") && said.stderr.contains("lab resume"), "{}", said.stderr);
    agents[0].expect_gone();
    expect_gone(&agents[1].workers);
    let left = &agents[1].remains;
    assert_eq!(left.len(), 1);
    assert_eq!(lab.json("out/manifest.json")["state"], "failed");
    assert!(whole_runs(&lab.folder.join("out")) == 0 && !lab.folder.join("out/results.json").exists());
    fs::write(lab.folder.join("second.closed"), "").expect("written");
    let said = lab.resume().expect_code(1);
    assert!(said.stderr.contains("ssh does not reach second: "), "{}", said.stderr);
    assert!(said.stderr.contains("connect to host second: Connection refused"), "{}", said.stderr);
    fs::remove_file(lab.folder.join("second.closed")).expect("removed");
    lab.resume().expect_code(0);
    assert!(!left[0].exists(), "the next agent removes what a killed one left");
    assert_eq!(lab.json("out/manifest.json")["state"], "complete");
    run(&["lab", "verify", &lab.path("out")]).expect_code(0);
}

#[test]
fn a_crashed_worker_ctrl_c_and_a_killed_controller_leave_nothing_behind() {
    let lab = Lab::new("crash");
    lab.scenario(&["first"], 5);
    let running = lab.start();
    let agent = lab.agent("first", 3);
    signal(agent.workers[0], "KILL");
    let said = running.finish().expect_code(1);
    assert!(said.stderr.contains("on first: ") && said.stderr.contains("signal: 9"), "{}", said.stderr);
    agent.expect_gone();
    for (end, code) in [("INT", Some(130)), ("KILL", None)] {
        fs::remove_dir_all(lab.folder.join("out")).expect("removed");
        fs::remove_file(lab.folder.join("first.pid")).expect("removed");
        let running = lab.start();
        let agent = lab.agent("first", 3);
        running.signal(end);
        assert_eq!(running.finish().code, code);
        agent.expect_gone();
    }
}

#[test]
fn what_keeps_an_agent_from_its_work_is_told_with_its_machine() {
    let lab = Lab::new("refused");
    let check = |program: &str, parts: &[&str]| {
        lab.scenario_with(program, &["first"], 1);
        let said = lab.refused(&lab.path("ssh"));
        parts.iter().for_each(|part| assert!(said.contains(part), "{part:?} not in {said}"));
    };
    let missing = lab.path("none");
    check(&missing, &["thalweg cannot be started on first: ", &missing, "not found", "program = "]);
    lab.program("other", "echo thalweg-lab-agent 1 0.0.9; cat");
    check(&lab.path("other"), &["the agent on first is Thalweg 0.0.9 with protocol 1", "install one version"]);
    lab.program("older", "echo \"error: unexpected argument '--stdio' found\" >&2; exit 2");
    check(&lab.path("older"), &["the agent on first ended at once (exit status: 2): Welcome / error: unexpected"]);
    lab.scenario(&["first"], 1);
    let said = lab.refused("/nonexistent/ssh");
    assert!(said.contains("/nonexistent/ssh cannot be started") && said.contains("openssh-client"), "{said}");
    let file = lab.path("scenario.toml");
    let said = run(&["lab", "run", &file, "--ssh", " "]).expect_code(2);
    assert!(said.stderr.contains("--ssh names no program"), "{}", said.stderr);
    let said = run(&["lab", "run", "paper2", "--ssh", "ssh"]).expect_code(2);
    assert!(said.stderr.contains("unexpected argument '--ssh'"), "{}", said.stderr);
    let said = run(&["lab", "agent"]).expect_code(2);
    assert!(said.stderr.contains("--stdio"), "{}", said.stderr);
}
