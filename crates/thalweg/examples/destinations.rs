//! Unicast against multicast between hosts, in the manner of Peeroo, Popov and Stankovic (2022): samples of 100 bytes, reliable,
//! and one sample in a thousand that all readers answer, whose round trip is the latency. Each host is a network namespace on
//! one bridge. Needs root. Linux keeps 1,024 neighbours for all namespaces together, which about 30 hosts exhaust.
//!
//! `cargo run --release -p thalweg --example destinations [READERS[+BYSTANDERS]]...`, by default 1 3 10 10+15.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use thalweg::qos::{Destination, History, ReaderQos, Reliability, ResourceLimits, Transmission, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};

const DURATION: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);
const PAYLOAD_BYTES: usize = 100;
const SAMPLES_PER_PING: u64 = 1000;

#[derive(Topic)]
struct Reading {
    number: u64,
    payload: Vec<u8>,
}

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--read") => Ok(read("data")?),
        Some("--idle") => Ok(read("nothing")?),
        Some("--write") => Ok(write(arguments[1].parse()?, &arguments[2])?),
        _ => {
            let default = || ["1", "3", "10", "10+15"].map(str::to_owned).to_vec();
            let crowds = if arguments.is_empty() { default() } else { arguments };
            println!(
                "{:<20}{:<12}{:>12}{:>14}{:>12}{:>12}  auto's choice",
                "readers+bystanders", "destination", "written/s", "delivered/s", "ping p50", "ping p99"
            );
            crowds.iter().try_for_each(|crowd| compare(crowd))
        }
    }
}

/// All destinations in turn with so many readers and bystanders.
fn compare(crowd: &str) -> Outcome {
    let (readers, bystanders) = crowd.split_once('+').unwrap_or((crowd, "0"));
    let (readers, bystanders): (usize, usize) = (readers.parse()?, bystanders.parse()?);
    for destination in ["unicast", "multicast", "auto"] {
        let hosts = Hosts::new(1 + readers + bystanders)?;
        let mut children = Children(Vec::new());
        for host in 1..=readers + bystanders {
            children.0.push(hosts.start(host, &[if host <= readers { "--read" } else { "--idle" }])?);
        }
        // So that the bystanders are known when the choice is made.
        thread::sleep(Duration::from_millis(1500));
        print!("{crowd:<20}{destination:<12}");
        std::io::stdout().flush()?;
        let mut writer = hosts.start(0, &["--write", &readers.to_string(), destination])?;
        writer.wait()?;
    }
    Ok(())
}

/// Namespaces on a bridge; gone when dropped.
struct Hosts {
    prefix: String,
    count: usize,
}

impl Hosts {
    fn new(count: usize) -> Outcome<Hosts> {
        let hosts = Hosts { prefix: format!("thalweg-example-{}", process::id()), count };
        let hub = hosts.name("hub");
        ip(&format!("netns add {hub}"))?;
        ip(&format!("-n {hub} link add br0 type bridge mcast_snooping 0"))?;
        ip(&format!("-n {hub} link set br0 up"))?;
        for number in 0..count {
            let name = hosts.name(number);
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add port{number} netns {hub} type veth peer name eth0 netns {name}"))?;
            ip(&format!("-n {hub} link set port{number} master br0 up"))?;
            ip(&format!("-n {name} addr add 10.88.{}.{}/16 dev eth0", number / 250, number % 250 + 1))?;
            ip(&format!("-n {name} link set eth0 up"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok(hosts)
    }

    fn name(&self, host: impl std::fmt::Display) -> String {
        format!("{}-{host}", self.prefix)
    }

    fn start(&self, host: usize, arguments: &[&str]) -> Outcome<Child> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host)]).arg(env::current_exe()?).args(arguments);
        Ok(command.stdin(Stdio::null()).spawn()?)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in (0..self.count).map(|number| self.name(number)).chain([self.name("hub")]) {
            let _ = ip(&format!("netns del {host}"));
        }
    }
}

struct Children(Vec<Child>);

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ip(words: &str) -> Outcome {
    let status = Command::new("ip").args(words.split_whitespace()).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("ip {words} failed; root is needed").into()) }
}

fn participant() -> Result<DomainParticipant, Error> {
    DomainParticipant::builder(0).create()
}

fn limits() -> ResourceLimits {
    ResourceLimits { max_samples: Some(4096), ..ResourceLimits::default() }
}

fn reader_qos() -> ReaderQos {
    ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() }
}

fn writer_qos(destination: Destination) -> WriterQos {
    WriterQos {
        reliability: Reliability::Reliable { max_blocking_time: PATIENCE },
        history: History::KeepAll,
        resource_limits: limits(),
        transmission: Transmission::to(destination),
        ..WriterQos::default()
    }
}

/// Reads until it is ended, and answers each thousandth sample.
fn read(name: &str) -> Result<(), Error> {
    let participant = participant()?;
    let reader = participant.create_reader(&participant.create_topic::<Reading>(name), reader_qos())?;
    let answers = participant.create_topic::<Reading>("answers");
    let writer = participant.create_writer(&answers, writer_qos(Destination::Unicast))?;
    loop {
        reader.wait(PATIENCE);
        for sample in reader.take(1000).iter().filter(|sample| sample.is_valid()) {
            let number = sample.data()?.number;
            if number % SAMPLES_PER_PING == 0 {
                writer.write(&Reading { number, payload: Vec::new() })?;
            }
        }
    }
}

fn write(readers: usize, destination: &str) -> Result<(), Error> {
    let destination = match destination {
        "unicast" => Destination::Unicast,
        "multicast" => Destination::Multicast,
        _ => Destination::Auto,
    };
    let participant = participant()?;
    let answers = participant.create_reader(&participant.create_topic::<Reading>("answers"), reader_qos())?;
    let writer = participant.create_writer(&participant.create_topic::<Reading>("data"), writer_qos(destination))?;
    writer.wait_for_matched(readers, PATIENCE)?;
    answers.wait_for_matched(readers, PATIENCE)?;
    thread::sleep(Duration::from_secs(1));
    let (start, mut number, mut round_trips) = (Instant::now(), 0, Vec::new());
    while start.elapsed() < DURATION {
        let sent = Instant::now();
        writer.write(&Reading { number, payload: vec![7; PAYLOAD_BYTES] })?;
        let mut answered = 0;
        while number % SAMPLES_PER_PING == 0 && answered < readers && sent.elapsed() < PATIENCE {
            answers.wait(PATIENCE);
            answered += answers.take(1000).iter().filter(|sample| sample.is_valid()).count();
        }
        if number % SAMPLES_PER_PING == 0 {
            round_trips.push(sent.elapsed());
        }
        number += 1;
    }
    writer.wait_for_acknowledgments(PATIENCE)?;
    let seconds = start.elapsed().as_secs_f64();
    let explained = writer.explain();
    round_trips.sort();
    let percentile = |share: f64| round_trips[((round_trips.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{:>12.0}{:>14.0}{:>9.2} ms{:>9.2} ms  {}",
        number as f64 / seconds,
        (number * readers as u64) as f64 / seconds,
        percentile(0.5),
        percentile(0.99),
        if explained.route.groups.iter().any(|group| group.used) { "multicast" } else { "unicast" },
    );
    Ok(())
}
