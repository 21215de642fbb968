//! Scenarios on agents, all of which are on this machine.

use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Running, Said, command, run, signal};
use crate::workers::{children, expect_gone};

/// A folder with a key and a scenario on these machines, of one cell.
struct Lab {
    folder: PathBuf,
}

impl Lab {
    fn new(name: &str) -> Lab {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("agents-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("made");
        let lab = Lab { folder };
        run(&["lab", "agent", "--make-key", &lab.path("key")]).expect_code(0);
        lab
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().expect("text").to_owned()
    }

    /// A scenario of runs of so many seconds that any machine can make, whatever else runs on it.
    fn scenario(&self, machines: &[&str], seconds: u32) {
        let text = format!(
            "schema = \"thalweg.scenario/1\"\nname = \"test\"\nhosts = {{ on = {machines:?}, clock_s = 0.4 }}\n\
             [matrix]\nrate_hz = 50\npayload_bytes = 100\nendpoints = \"1-2\"\n\
             [schedule]\nseconds = {seconds}\nruns = 1\nwarm_up_s = 0.2\nin_time_ms = 5000\nbehind_max_ms = 10000\n\
             [system]\nforeign_cpu_max_pct = 100\nsteal_max_pct = 100\nattempts = 1\n\
             [trace]\nlayers = true\nsample = 5\n[expect]\nlost = \"== 0\"\n"
        );
        fs::write(self.folder.join("scenario.toml"), text).expect("written");
    }

    fn start(&self) -> Running {
        let (file, out, key) = (self.path("scenario.toml"), self.path("out"), self.path("key"));
        Running::start(command(&["lab", "run", &file, "--out", &out, "--key", &key]))
    }

    fn resume(&self) -> Said {
        run(&["lab", "resume", &self.path("out"), "--key", &self.path("key")])
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.folder.join(name)).expect("there")).expect("JSON")
    }
}

/// A running agent.
struct Agent {
    program: Running,
    /// As scenarios name it.
    name: String,
}

impl Agent {
    fn start(lab: &Lab, bind: &str) -> Agent {
        let mut program = Running::start(command(&["lab", "agent", "--bind", bind, "--key", &lab.path("key")]));
        let mut line = String::new();
        program.stdout().read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line:?}"));
        let name = format!("agent:{address}");
        Agent { program, name }
    }

    /// What begins with this among the system's temporary files is this agent's.
    fn remains(&self) -> Vec<PathBuf> {
        let prefix = format!("thalweg-agent-{}-", self.program.id());
        let entries = fs::read_dir(std::env::temp_dir()).expect("temporary files").flatten();
        let own = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)));
        own.map(|entry| entry.path()).collect()
    }

    /// Waits until it has workers, or none.
    #[track_caller]
    fn wait_for_workers(&self, count: usize) -> Vec<u32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = children(self.program.id());
            if if count == 0 { found.is_empty() && self.remains().is_empty() } else { found.len() >= count } {
                return found;
            }
            assert!(Instant::now() < deadline, "{found:?}, {:?}", self.remains());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn whole_runs(out: &Path) -> usize {
    let entries = fs::read_dir(out.join("runs")).expect("runs").flatten();
    entries.filter(|entry| entry.path().extension().is_none()).count()
}

#[test]
fn a_scenario_runs_across_agents_and_says_how_well_their_clocks_are_known() {
    let lab = Lab::new("whole");
    let agents = [Agent::start(&lab, "127.0.0.1:0"), Agent::start(&lab, "127.0.0.1:0")];
    lab.scenario(&[&agents[0].name, "here", &agents[1].name], 2);
    let said = lab.start().finish().expect_code(0);
    assert!(said.stdout.contains("holds: lost == 0") && said.stdout.contains("CLOCKS: "), "{}", said.stdout);
    agents.iter().for_each(|agent| drop(agent.wait_for_workers(0)));
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
    let of_agent = format!("kernel of {}", agents[0].name.replacen("agent:", "", 1));
    assert!(manifest["fingerprint"]["parts"][of_agent.as_str()].is_string(), "{manifest}");
    let html = fs::read_to_string(lab.folder.join("out/report.html")).expect("a report");
    assert!(html.contains("one-way latencies between machines are ±") && html.contains("wake up and take"));
    run(&["lab", "verify", &lab.path("out")]).expect_code(0);
    let mut agents = agents.into_iter();
    let first = agents.next().expect("an agent");
    first.program.signal("INT");
    let said = first.program.finish().expect_code(0);
    assert!(said.stderr.contains("is the controller") && said.stderr.contains("it said goodbye"), "{}", said.stderr);
}

#[test]
fn a_run_that_lost_its_agent_is_no_result_and_can_be_resumed() {
    let lab = Lab::new("killed");
    let agents = [Agent::start(&lab, "127.0.0.1:0"), Agent::start(&lab, "127.0.0.1:0")];
    lab.scenario(&[&agents[0].name, &agents[1].name], 4);
    let running = lab.start();
    let workers = agents[1].wait_for_workers(1);
    let others = agents[0].wait_for_workers(1);
    let left = agents[1].remains();
    assert_eq!(left.len(), 1);
    agents[1].program.signal("KILL");
    let said = running.finish().expect_code(1);
    assert!(said.stderr.contains("was lost") && said.stderr.contains("lab resume"), "{}", said.stderr);
    expect_gone(&workers);
    expect_gone(&others);
    agents[0].wait_for_workers(0);
    assert_eq!(lab.json("out/manifest.json")["state"], "failed");
    assert!(whole_runs(&lab.folder.join("out")) == 0 && !lab.folder.join("out/results.json").exists());
    let [first, second] = agents;
    let bind = second.name.replacen("agent:", "", 1);
    drop(second);
    let said = lab.resume().expect_code(1);
    assert!(said.stderr.contains("no agent listens there; start `thalweg lab agent --bind"), "{}", said.stderr);
    let again = Agent::start(&lab, &bind);
    assert!(!left[0].exists(), "the next agent removes what a killed one left");
    lab.resume().expect_code(0);
    assert_eq!(lab.json("out/manifest.json")["state"], "complete");
    run(&["lab", "verify", &lab.path("out")]).expect_code(0);
    first.wait_for_workers(0);
    again.wait_for_workers(0);
}

#[test]
fn ctrl_c_and_a_crashed_worker_leave_nothing_on_the_agents_host() {
    let lab = Lab::new("crash");
    let agent = Agent::start(&lab, "127.0.0.1:0");
    lab.scenario(&[&agent.name], 5);
    let running = lab.start();
    let workers = agent.wait_for_workers(3);
    signal(workers[0], "KILL");
    let said = running.finish().expect_code(1);
    let name = agent.name.replacen("agent:", "", 1);
    let on_agent = format!("on the agent {name}: ");
    assert!(said.stderr.contains(&on_agent) && said.stderr.contains("signal: 9"), "{}", said.stderr);
    expect_gone(&workers);
    agent.wait_for_workers(0);
    fs::remove_dir_all(lab.folder.join("out")).expect("removed");
    let running = lab.start();
    let workers = agent.wait_for_workers(3);
    let busy = run(&["lab", "run", &lab.path("scenario.toml"), "--out", &lab.path("other"), "--key", &lab.path("key")]);
    let busy = busy.expect_code(1);
    assert!(busy.stderr.contains("works for another controller"), "{}", busy.stderr);
    assert!(!lab.folder.join("other").exists(), "nothing is made before the agents are there");
    running.signal("INT");
    running.finish().expect_code(130);
    expect_gone(&workers);
    agent.wait_for_workers(0);
    assert_eq!(lab.json("out/manifest.json")["state"], "interrupted");
}

#[test]
fn keys_decide_who_works_for_whom() {
    let lab = Lab::new("keys");
    let again = run(&["lab", "agent", "--make-key", &lab.path("key")]).expect_code(1);
    assert!(again.stderr.contains("exists; choose another file"), "{}", again.stderr);
    let agent = Agent::start(&lab, "127.0.0.1:0");
    lab.scenario(&[&agent.name], 1);
    run(&["lab", "agent", "--make-key", &lab.path("other")]).expect_code(0);
    let with = |key: &str| {
        let (file, out, key) = (lab.path("scenario.toml"), lab.path("out"), lab.path(key));
        run(&["lab", "run", &file, "--out", &out, "--key", &key]).expect_code(1).stderr
    };
    assert!(with("other").contains("it has another key: copy one key file to all hosts"));
    assert!(with("none").contains("cannot be read") && with("none").contains("--make-key"));
    let mut open = fs::metadata(lab.folder.join("key")).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o644);
    fs::set_permissions(lab.folder.join("key"), open).expect("changed");
    assert!(with("key").contains("chmod 600"));
    let said = run(&["lab", "agent", "--bind", "127.0.0.1:0", "--key", &lab.path("key")]).expect_code(1);
    assert!(said.stderr.contains("chmod 600"), "{}", said.stderr);
    let taken = agent.name.replacen("agent:", "", 1);
    let said = run(&["lab", "agent", "--bind", &taken, "--key", &lab.path("other")]).expect_code(1);
    assert!(said.stderr.contains("has this port"), "{}", said.stderr);
    let said = run(&["lab", "run", "paper2", "--key", &lab.path("key")]).expect_code(2);
    assert!(said.stderr.contains("unexpected argument '--key'"), "{}", said.stderr);
    assert!(!lab.folder.join("out").exists());
}
