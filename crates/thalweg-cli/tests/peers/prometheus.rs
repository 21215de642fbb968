//! Prometheus scrapes the counts of running commands.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{PATIENCE, Program};
use crate::thalweg;

/// A running Prometheus that scrapes twice a second.
struct Prometheus {
    port: u16,
    program: Program,
    folder: PathBuf,
}

impl Prometheus {
    #[track_caller]
    fn start(targets: &[String]) -> Prometheus {
        let path = std::env::var("THALWEG_PROMETHEUS").expect("no Prometheus: run `cargo xtask test prometheus`");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("prometheus-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the test's folder is writable");
        let file = folder.join("prometheus.yml");
        // The names are read as YAML, which JSON is.
        let targets = Value::from(targets.to_vec());
        let jobs = format!("scrape_configs: [{{job_name: thalweg, static_configs: [{{targets: {targets}}}]}}]");
        std::fs::write(&file, format!("global: {{scrape_interval: 500ms}}\n{jobs}\n")).expect("written");
        // It tells no port that the system chose.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let mut command = Command::new(path);
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        command.arg(format!("--web.listen-address={free}"));
        let mut program = Program::start("Prometheus", &command);
        program.expect_text("Server is ready to receive web requests");
        Prometheus { port: free.port(), program, folder }
    }

    /// What its interface answers: `data` of a path with a query.
    #[track_caller]
    fn ask(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        // In this version the answer is not in chunks.
        write!(stream, "GET /api/v1/{path} HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let mut answer: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"));
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].take()
    }

    /// The values of a metric of ours, by the addresses that tell it, in their order.
    #[track_caller]
    fn values(&self, metric: &str) -> Vec<(String, f64)> {
        let data = self.ask(&format!("query?query={metric}"));
        let series = data["result"].as_array().cloned().unwrap_or_default();
        let value = |one: &Value| {
            let value = one["value"][1].as_str().and_then(|value| value.parse().ok());
            (one["metric"]["instance"].as_str().unwrap_or_default().to_owned(), value.expect("a number"))
        };
        let mut values: Vec<(String, f64)> = series.iter().map(value).collect();
        values.sort_by(|one, other| one.0.cmp(&other.0));
        values
    }
}

/// A subscriber that tells its counts, and where.
#[track_caller]
fn subscriber(domain: u32, options: &[&str], variables: &[(&str, &str)]) -> (Program, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["sub", "chatter", "--domain", &domain.to_string()]).args(options);
    command.envs(variables.iter().copied());
    let mut program = Program::start("Thalweg", &command);
    let line = program.expect_text("metrics http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.strip_suffix("/metrics")).expect("an address");
    (program, address.to_owned())
}

#[test]
fn prometheus_scrapes_the_counters_of_commands() {
    let domain = thalweg::domain();
    let (first, by_option) = subscriber(domain, &["--metrics", "127.0.0.1:0"], &[]);
    let (second, by_variable) = subscriber(domain, &[], &[("THALWEG_METRICS", "127.0.0.1:0")]);
    let mut expected = vec![(by_option.clone(), 40.0), (by_variable.clone(), 40.0)];
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    let prometheus = Prometheus::start(&[by_option, by_variable]);
    let words = "pub chatter a b --count 40 --rate 20 --readers 2";
    thalweg::start(None, domain, words).finish().well();

    let query = "thalweg_samples_received_total%7Btopic=%22chatter%22%7D";
    let end = Instant::now() + PATIENCE;
    while prometheus.values(query) != expected {
        assert!(Instant::now() < end, "{:?}", prometheus.ask("targets"));
        std::thread::sleep(Duration::from_millis(200));
    }
    for target in prometheus.ask("targets")["activeTargets"].as_array().expect("targets") {
        assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
    }
    // `rate` and its like are for what it takes for a counter.
    let told = prometheus.ask("targets/metadata?metric=thalweg_samples_received");
    let kinds: Vec<&str> = told.as_array().expect("a list").iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(kinds, ["counter"; 2], "{told}");

    let folder = prometheus.folder;
    for program in [first, second, prometheus.program] {
        program.kill();
    }
    let _ = std::fs::remove_dir_all(folder);
}
