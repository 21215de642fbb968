//! `cargo xtask compare`: Thalweg, its peers and plain sockets measured alternately on one machine, so that what disturbs one run
//! disturbs its neighbours as well.

mod contestant;
mod rows;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thalweg_host::{Environment, HostFiles, Namespace};

use contestant::{Contestant, Testbed, Who};
use rows::{ComparisonRow, Place, RowGroup, What};
use table::{AimVerdict, Measured};

use crate::netns::Host;
use crate::workspace::target;
use crate::{Outcome, netns};

/// The request of the command line.
#[derive(Debug, PartialEq)]
struct Request {
    quick: bool,
    groups: Vec<RowGroup>,
    json: Option<PathBuf>,
}

impl Request {
    fn parse(arguments: &[String]) -> Outcome<Request> {
        let mut request = Request { quick: false, groups: Vec::new(), json: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--quick" => request.quick = true,
                "--json" => request.json = Some(rest.next().ok_or("--json needs a file")?.into()),
                name => request.groups.push(group(name)?),
            }
        }
        if request.groups.is_empty() {
            request.groups = RowGroup::ALL.to_vec();
        }
        Ok(request)
    }
}

fn group(name: &str) -> Outcome<RowGroup> {
    let found = RowGroup::ALL.into_iter().find(|group| group.name() == name);
    found.ok_or_else(|| {
        let known = RowGroup::ALL.map(RowGroup::name).join(", ");
        format!("compare does not know {name}; it knows --quick, --json FILE and the groups {known}")
    })
}

/// Measures the groups that are named, or all, and prints each row with its aims. A missed aim is no error.
pub fn run(arguments: &[String]) -> Outcome {
    let request = Request::parse(arguments)?;
    let (rounds, seconds) = if request.quick { (1, "0.5") } else { (3, "1") };
    Namespace::remove_abandoned();
    let (groups, stage) = stage(&request.groups, seconds);
    let rows = groups.iter().flat_map(|group| group.rows().into_iter().map(|row| (*group, row)));
    let rows: Vec<(RowGroup, ComparisonRow)> = rows.collect();
    let contestants = contestants(&rows)?;
    let (machine, before) = (machine(), load());
    println!("{machine}; load before {before}");
    for contestant in &contestants {
        println!("{}: {}", contestant.who.name(), contestant.version);
    }
    println!("medians of {} runs each, programs in turns; streams and round trips of {seconds} s", 2 * rounds);
    let mut measured = Vec::new();
    for (group, row) in rows {
        let row = measure(group, row, &contestants, &stage, rounds);
        print!("{}", row.to_text());
        measured.push(row);
    }
    let after = load();
    println!("\nload before {before}, after {after}");
    print_aims(&measured);
    if let Some(file) = &request.json {
        let programs = contestants.iter().map(|one| json!({"program": one.who.name(), "version": one.version}));
        let report = json!({
            "machine": machine,
            "load": {"before": before, "after": after},
            "rounds": rounds,
            "seconds": seconds,
            "programs": programs.collect::<Vec<Value>>(),
            "rows": measured.iter().map(Measured::to_json).collect::<Vec<Value>>(),
        });
        std::fs::write(file, format!("{report:#}\n")).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// One short run of each program and measurement: shows that they work, not how fast.
pub fn smoke(cyclone: &Path) -> Outcome {
    let (_, stage) = stage(&[], "0.5");
    let thalweg = Contestant::new(Who::Thalweg, target().join("debug/thalweg"))?;
    let cyclone = Contestant::new(Who::Cyclone, cyclone.to_path_buf())?;
    for (contestant, setting) in [(thalweg, "auto"), (cyclone, "default")] {
        let whats = [What::Latency { wait: "block" }, What::Throughput { readers: 1 }, What::Burst { count: 100 }];
        for what in whats {
            let (entries, aims) = (Vec::new(), Vec::new());
            let row = ComparisonRow { what, size: 256, place: Place::TwoCores, entries, aims };
            let value = row.figure().of(&contestant.measure(&row, setting, &stage)?)?;
            println!("{}, {}: {value:.1} {}", contestant.who.name(), row.label(), row.figure().key().1);
        }
    }
    Ok(())
}

/// The hosts that the groups need, and the groups that can be measured there.
fn stage(groups: &[RowGroup], seconds: &'static str) -> (Vec<RowGroup>, Testbed) {
    let mut groups = groups.to_vec();
    let told = |reason: String| println!("*** {reason} ***");
    let alone = netns::available().and_then(|()| Host::new("compare"));
    let alone = alone.map_err(|reason| told(format!("runs share this machine's interfaces: {reason}"))).ok();
    let mut link = None;
    if groups.contains(&RowGroup::Veth) {
        match netns::available().and_then(|()| Host::pair(1500)) {
            Ok(hosts) => link = Some(hosts),
            Err(reason) => {
                told(format!("{} is left out: {reason}", RowGroup::Veth.name()));
                groups.retain(|group| *group != RowGroup::Veth);
            }
        }
    }
    (groups, Testbed { alone, link, seconds })
}

/// Builds the programs that the rows need; without Thalweg there is nothing to compare, without another there is a column less.
fn contestants(rows: &[(RowGroup, ComparisonRow)]) -> Outcome<Vec<Contestant>> {
    let mut contestants = vec![Contestant::prepare(Who::Thalweg)?];
    for who in [Who::Cyclone, Who::FastDds, Who::Zenoh, Who::Raw] {
        if !rows.iter().any(|(_, row)| row.entries.iter().any(|entry| entry.who == who)) {
            continue;
        }
        match Contestant::prepare(who) {
            Ok(contestant) => contestants.push(contestant),
            Err(reason) => println!("*** {} is LEFT OUT, aims are judged without it: {reason} ***", who.name()),
        }
    }
    Ok(contestants)
}

/// All runs of a row: the entries in turn and then in turn backwards, so many times.
fn measure(
    group: RowGroup,
    row: ComparisonRow,
    contestants: &[Contestant],
    stage: &Testbed,
    rounds: usize,
) -> Measured {
    // One that fails twice will do so again, and its failures may take long.
    const FAILURES_MAX: usize = 2;
    let mut runs = vec![Vec::new(); row.entries.len()];
    let mut failures = vec![0; row.entries.len()];
    for index in (0..rounds).flat_map(|_| (0..row.entries.len()).chain((0..row.entries.len()).rev())) {
        let entry = row.entries[index];
        let Some(contestant) = contestants.iter().find(|contestant| contestant.who == entry.who) else { continue };
        if failures[index] == FAILURES_MAX {
            continue;
        }
        let measured = contestant.measure(&row, entry.setting, stage);
        match measured.and_then(|figures| row.figure().of(&figures).map(|_| figures)) {
            Ok(figures) => runs[index].push(figures),
            Err(reason) => {
                failures[index] += 1;
                println!("*** {}, {}: {reason} ***", entry.name(), row.label());
            }
        }
    }
    Measured { group, row, runs }
}

/// The missed aims, and the number of reached ones.
fn print_aims(measured: &[Measured]) {
    let aims = measured.iter().flat_map(|row| row.row.aims.iter().map(move |aim| (row, aim)));
    let aims: Vec<_> = aims.map(|(row, aim)| (row, aim, row.judge(aim).verdict)).collect();
    for (row, aim, _) in aims.iter().filter(|(_, _, verdict)| *verdict != AimVerdict::Reached) {
        println!("{}, {}: {}", row.group.name(), row.row.label(), row.aim_text(aim));
    }
    let count = |wanted| aims.iter().filter(|(_, _, verdict)| *verdict == wanted).count();
    let (reached, missed, open) = (count(AimVerdict::Reached), count(AimVerdict::Missed), count(AimVerdict::Open));
    println!("{} aims: {reached} reached, {missed} missed, {open} not measured", aims.len());
}

fn machine() -> String {
    let Environment { cores, cpu, kernel, .. } = Environment::read();
    let model = cpu.as_deref().unwrap_or("unknown processor");
    format!("{cores} cores, {model}, Linux {}", kernel.as_deref().unwrap_or("unknown"))
}

/// The mean number of programs that wanted a core in the last minute.
fn load() -> String {
    HostFiles::here().load_averages().map_or_else(|| "?".to_owned(), |[load, ..]| load.to_string())
}
