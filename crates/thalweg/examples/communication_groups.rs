//! What communication groups save: 50 participants that each write and read the topics of one of five parts of a system, with
//! and without telling each other by groups which part they belong to. Prints what the first ten seconds cost.
//!
//! `cargo run --release -p thalweg --example communication_groups [RUNS]`; in a network namespace of its own (`unshare -n`, then
//! `ip link set lo up`) nobody else's traffic is counted.

use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use thalweg::qos::{ReaderQos, WriterQos};
use thalweg::{DomainParticipant, Error, Topic};
use thalweg_host::{HostFiles, Layers, ProcessUsage};

const PARTICIPANTS: usize = 50;
const PARTS: usize = 5;
const TOPICS: usize = 4;
const DURATION: Duration = Duration::from_secs(10);
const DOMAIN: u32 = 211;

#[derive(Topic)]
struct Reading {
    value: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match env::args().nth(1).as_deref() {
        Some("--with") => Ok(measure(true)?),
        Some("--without") => Ok(measure(false)?),
        runs => {
            let runs = runs.map_or(Ok(3), str::parse)?;
            println!(
                "{PARTICIPANTS} participants, {TOPICS} writers and {TOPICS} readers each, {PARTS} parts, {DURATION:?}"
            );
            println!(
                "{:<16}{:>12}{:>12}{:>12}{:>10}{:>10}{:>14}",
                "", "sent", "sent MB", "received MB", "CPU s", "RSS MB", "endpoints"
            );
            // In turn, so that a busy machine disturbs both alike; a process each, so that memory starts from nothing.
            for _ in 0..runs {
                for which in ["--without", "--with"] {
                    Command::new(env::current_exe()?).arg(which).status()?;
                }
            }
            Ok(())
        }
    }
}

fn measure(grouped: bool) -> Result<(), Error> {
    let sent_before = loopback_bytes();
    let start = Instant::now();
    let mut participants = Vec::new();
    let mut endpoints = Vec::new();
    for index in 0..PARTICIPANTS {
        let part = format!("part{}", index % PARTS);
        let groups = if grouped { vec![part.clone()] } else { Vec::new() };
        let participant = DomainParticipant::builder(DOMAIN).loopback_only().groups(groups).create()?;
        for number in 0..TOPICS {
            let topic = participant.create_topic::<Reading>(&format!("{part}/{number}"));
            let writer = participant.create_writer(&topic, WriterQos::default())?;
            endpoints.push((writer, participant.create_reader(&topic, ReaderQos::default())?));
        }
        participants.push(participant);
    }
    thread::sleep(DURATION.saturating_sub(start.elapsed()));
    for (writer, _) in &endpoints {
        let matched = writer.matched_readers().len();
        assert_eq!(matched, PARTICIPANTS / PARTS, "everybody found those of his part");
    }
    let sent: u64 = participants.iter().map(|participant| participant.send_counts().datagrams).sum();
    let received: u64 = participants.iter().map(|participant| participant.receive_counts().bytes).sum();
    let known: usize = participants.iter().map(|participant| participant.publications().len()).sum();
    let usage = ProcessUsage::read();
    println!(
        "{:<16}{sent:>12}{:>12.1}{:>12.1}{:>10.2}{:>10.1}{:>14}",
        if grouped { "with groups" } else { "without groups" },
        (loopback_bytes() - sent_before) as f64 / 1e6,
        received as f64 / 1e6,
        usage.cpu_seconds(),
        usage.resident_kib as f64 / 1e3,
        known * 2,
    );
    Ok(())
}

/// Bytes that left by the loopback interface, headers included.
fn loopback_bytes() -> u64 {
    Layers::read(&HostFiles::here()).get("device.lo.tx_bytes")
}
