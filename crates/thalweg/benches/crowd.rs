//! Processor time and memory of many endpoints and of many participants in one process. `cargo xtask count pairs` and
//! `cargo xtask count participants` build and run it.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DataReader, DataWriter, DomainParticipant, Error, Raw};
use thalweg_host::ProcessUsage;

const USAGE: &str = "usage: crowd pairs <N> | crowd participants <N>";
/// Longer than either takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// From the end of discovery until it counts as idle: repetitions of a start have ended.
const SETTLING: Duration = Duration::from_secs(15);
/// How long the idle process is watched: two leases.
const WATCHED: Duration = Duration::from_secs(40);

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let count = arguments.get(1).and_then(|count| count.parse().ok());
    match (arguments.first().map(String::as_str), count) {
        (Some("pairs"), Some(count)) => pairs(count),
        (Some("participants"), Some(count)) => participants(count),
        _ => {
            println!("{USAGE}");
            Ok(())
        }
    }
}

fn participant(domain: u32) -> Result<DomainParticipant, Error> {
    DomainParticipant::builder(domain).loopback_only().create()
}

/// A domain that no other run uses at the same time, most likely.
fn domain() -> u32 {
    1 + std::process::id() % 200
}

/// `count` writers in one participant and `count` readers in another, each pair on a topic of its own.
fn pairs(count: usize) -> Result<(), Error> {
    let (here, there) = (participant(domain())?, participant(domain())?);
    let reliability = Reliability::RELIABLE;
    let writer_qos = WriterQos { reliability, history: History::KeepLast(1), ..WriterQos::default() };
    let reader_qos = ReaderQos { reliability, history: History::KeepLast(1), ..ReaderQos::default() };
    let (start, before) = (Instant::now(), ProcessUsage::read());
    let mut ends: Vec<(DataWriter<Raw>, DataReader<Raw>)> = Vec::new();
    for number in 0..count {
        let (name, type_name) = (format!("factory/line/{number}/state"), "State");
        let topic = |participant: &DomainParticipant| participant.create_raw_topic(&name, type_name, Keyed::No, None);
        let writer = here.create_writer(&topic(&here), writer_qos.clone())?;
        ends.push((writer, there.create_reader(&topic(&there), reader_qos.clone())?));
    }
    let created = ProcessUsage::read();
    for (writer, reader) in &ends {
        writer.wait_for_matched(1, PATIENCE)?;
        reader.wait_for_matched(1, PATIENCE)?;
    }
    let (wall, met) = (start.elapsed(), ProcessUsage::read());
    println!(
        "{count} pairs: {:.2} s CPU ({:.2} s until all were created), {:.2} s, {:.1} MB resident",
        met.since(&before).cpu_seconds(),
        created.since(&before).cpu_seconds(),
        wall.as_secs_f64(),
        megabytes(&met)
    );
    let start = ProcessUsage::read();
    drop(ends);
    println!("{count} pairs deleted: {:.2} s CPU", ProcessUsage::read().since(&start).cpu_seconds());
    Ok(())
}

/// `count` participants without endpoints.
fn participants(count: usize) -> Result<(), Error> {
    let domain = domain();
    let (start, before) = (Instant::now(), ProcessUsage::read());
    let crowd = (0..count).map(|_| participant(domain)).collect::<Result<Vec<_>, Error>>()?;
    let created = start.elapsed();
    let knows_all = |participant: &DomainParticipant| participant.discovered_participants().len() + 1 == count;
    for participant in &crowd {
        while !knows_all(participant) {
            if start.elapsed() > PATIENCE {
                let known = crowd.iter().map(|participant| participant.discovered_participants().len());
                let (least, all) = known.fold((usize::MAX, 0), |(least, all), known| (least.min(known), all + known));
                println!("not all have met: {all} of {} meetings, one knows {least} others", count * (count - 1));
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let (wall, met) = (start.elapsed(), ProcessUsage::read());
    println!(
        "{count} participants: created after {:.2} s, all met after {:.2} s, {:.2} s CPU, {:.1} MB resident",
        created.as_secs_f64(),
        wall.as_secs_f64(),
        met.since(&before).cpu_seconds(),
        megabytes(&met)
    );
    std::thread::sleep(SETTLING);
    let (before, traffic_before) = (ProcessUsage::read(), traffic(&crowd));
    std::thread::sleep(WATCHED);
    let (after, traffic_after) = (ProcessUsage::read(), traffic(&crowd));
    let each = WATCHED.as_secs_f64() * count as f64;
    println!(
        "idle: {:.2} % of a core, {:.1} MB resident ({:.0} kB a participant), {:.2} wake-ups and {:.2} datagrams a second and participant",
        after.since(&before).cpu_seconds() / WATCHED.as_secs_f64() * 100.0,
        megabytes(&after),
        megabytes(&after) * 1e3 / count as f64,
        (after.sleeps() - before.sleeps()) as f64 / each,
        (traffic_after - traffic_before) as f64 / each,
    );
    println!("memory by kind in MB: {}", memory_by_kind());
    let ignorant = crowd.iter().filter(|participant| !knows_all(participant)).count();
    if ignorant > 0 {
        println!("{ignorant} participants have lost others");
    }
    Ok(())
}

/// Memory in RAM.
fn megabytes(usage: &ProcessUsage) -> f64 {
    usage.resident_kib as f64 * 1.024e-3
}

/// Datagrams that all have received.
fn traffic(crowd: &[DomainParticipant]) -> u64 {
    crowd.iter().map(|participant| participant.receive_counts().datagrams).sum()
}

/// Resident memory by what it is mapped for.
fn memory_by_kind() -> String {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut kind = String::new();
    for line in fs::read_to_string("/proc/self/smaps").unwrap_or_default().lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["Rss:", kilobytes, _] => *kinds.entry(kind.clone()).or_default() += kilobytes.parse().unwrap_or(0),
            [range, ..] if !range.ends_with(':') => {
                let name = words.get(5).copied().unwrap_or("anonymous");
                kind = if name.starts_with('/') { "files".to_owned() } else { name.to_owned() };
            }
            _ => {}
        }
    }
    kinds.retain(|_, kilobytes| *kilobytes > 100);
    kinds
        .iter()
        .map(|(kind, kilobytes)| format!("{kind} {:.1}", *kilobytes as f64 * 1.024e-3))
        .collect::<Vec<_>>()
        .join(", ")
}
