//! `cargo xtask compare`: Thalweg and Cyclone DDS measured alternately on one machine, so that what disturbs one run
//! disturbs its neighbour of the other vendor as well.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::netns::Host;
use crate::workspace::{cargo, output, run as run_command, target};
use crate::{Outcome, netns, peers};

/// One line of the table.
struct Row {
    measurement: &'static str,
    size: usize,
    wait: &'static str,
    /// The cores of the publisher and of the subscriber.
    cores: &'static str,
    /// How Thalweg's samples share datagrams, and Cyclone's settings.
    methods: (&'static str, &'static str),
    /// What the ratio Thalweg ÷ Cyclone has to reach.
    aim: Aim,
}

#[derive(Clone, Copy)]
enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

const ONE_CORE: &str = "0,0";
const TWO_CORES: &str = "0,1";
const AS_SHIPPED: (&str, &str) = ("auto", "default");

/// The figures that a release has to reach.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for size in [64, 1024] {
        for wait in ["listener", "block"] {
            for cores in [ONE_CORE, TWO_CORES] {
                let aim = Aim::AtMost(1.0);
                rows.push(Row { measurement: "latency", size, wait, cores, methods: AS_SHIPPED, aim });
            }
        }
    }
    for size in [65536, 1_048_576] {
        for cores in [ONE_CORE, TWO_CORES] {
            let aim = Aim::AtMost(0.7);
            rows.push(Row { measurement: "latency", size, wait: "listener", cores, methods: AS_SHIPPED, aim });
        }
    }
    for (methods, least) in [(("immediate", "default"), 1.0), (("auto", "batch"), 1.0), (("batch", "batch"), 1.8)] {
        for size in [256, 1024] {
            let aim = Aim::AtLeast(least);
            rows.push(Row { measurement: "throughput", size, wait: "listener", cores: TWO_CORES, methods, aim });
        }
    }
    rows
}

impl Row {
    /// The figure that is compared, by the name both programs print it under.
    fn figure(&self) -> (&'static str, &'static str) {
        if self.measurement == "latency" { ("p50_us", "µs") } else { ("received_per_s", "/s") }
    }
}

/// A program that measures its own middleware.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    /// What stands before the options that both understand.
    command: &'static [&'static str],
    /// The option that takes its part of [`Row::methods`].
    method: (&'static str, fn(&Row) -> &'static str),
}

impl Contestant {
    fn thalweg(program: PathBuf) -> Contestant {
        Contestant { name: "Thalweg", program, command: &["perf"], method: ("--method", |row| row.methods.0) }
    }

    fn cyclone(program: PathBuf) -> Contestant {
        Contestant { name: "Cyclone", program, command: &[], method: ("--profile", |row| row.methods.1) }
    }

    /// One run of both ends; returns the figure of the row.
    fn measure(&self, row: &Row, seconds: &str, host: Option<&Host>) -> Outcome<f64> {
        let mut command = Command::new(&self.program);
        command.args(self.command).args([row.measurement, "--role", "both", "--cpu", row.cores]);
        command.args(["--size", &row.size.to_string(), "--wait", row.wait, "--seconds", seconds, "--json"]);
        command.args([self.method.0, (self.method.1)(row)]);
        let text = output(&mut match host {
            Some(host) => host.command(&command),
            None => command,
        })?;
        let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
        let figures: Value =
            serde_json::from_str(line).map_err(|error| format!("{} printed {text:?}: {error}", self.name))?;
        if let Some(lost) = figures["lost"].as_u64().filter(|lost| *lost > 0) {
            println!("*** {} lost {lost} samples of {} B ***", self.name, row.size);
        }
        let name = row.figure().0;
        figures[name].as_f64().filter(|value| *value > 0.0).ok_or_else(|| format!("{}: no {name} in {line}", self.name))
    }
}

/// Measures every row and prints the table. `--quick` takes a minute less and is less certain.
pub fn run(arguments: &[String]) -> Outcome {
    let quick = arguments.iter().any(|argument| argument == "--quick");
    if let Some(unknown) = arguments.iter().find(|argument| *argument != "--quick") {
        return Err(format!("compare does not know {unknown}"));
    }
    let cyclone = Contestant::cyclone(peers::cyclone_perf()?);
    run_command(&mut cargo(&["build", "--release", "--package", "thalweg-cli"]))?;
    let thalweg = Contestant::thalweg(target().join("release/thalweg"));
    let host = lonely_host();
    let (rounds, seconds) = if quick { (1, "1") } else { (3, "2") };
    println!("{}", machine());
    println!("{:<34} {:>12} {:>12} {:>7}  aim", "medians, both ends pinned", "Thalweg", "Cyclone", "ratio");
    let mut missed = 0;
    for row in rows() {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(thalweg.measure(&row, seconds, host.as_ref())?);
            theirs.push(cyclone.measure(&row, seconds, host.as_ref())?);
            theirs.push(cyclone.measure(&row, seconds, host.as_ref())?);
            ours.push(thalweg.measure(&row, seconds, host.as_ref())?);
        }
        missed += usize::from(!print(&row, median(&mut ours), median(&mut theirs)));
    }
    println!("{missed} of {} aims missed", rows().len());
    Ok(())
}

/// One short run of each program and measurement: shows that they work, not how fast.
pub fn smoke(cyclone: &Path) -> Outcome {
    let host = lonely_host();
    for contestant in [Contestant::cyclone(cyclone.to_path_buf()), Contestant::thalweg(target().join("debug/thalweg"))]
    {
        for measurement in ["latency", "throughput"] {
            let (cores, methods, aim) = (TWO_CORES, AS_SHIPPED, Aim::AtMost(1.0));
            let row = Row { measurement, size: 256, wait: "block", cores, methods, aim };
            let value = contestant.measure(&row, "0.5", host.as_ref())?;
            println!("{} {measurement}: {value:.1} {}", contestant.name, row.figure().1);
        }
    }
    Ok(())
}

/// A host with a loopback interface only, or none where we may not make one.
fn lonely_host() -> Option<Host> {
    netns::available().and_then(|()| Host::new("compare")).map_err(|reason| println!("*** {reason} ***")).ok()
}

fn print(row: &Row, ours: f64, theirs: f64) -> bool {
    let (_, unit) = row.figure();
    let cores = if row.cores == ONE_CORE { "1 core" } else { "2 cores" };
    let ratio = ours / theirs;
    let (met, aim) = match row.aim {
        Aim::AtMost(limit) => (ratio <= limit, format!("≤ {limit}")),
        Aim::AtLeast(limit) => (ratio >= limit, format!("≥ {limit}")),
    };
    let how = if row.measurement == "latency" { row.wait } else { row.methods.0 };
    let label = format!("{} {} B, {how}, {cores}", row.measurement, row.size);
    let verdict = if met { "" } else { "  MISSED" };
    println!("{label:<34} {ours:>9.1} {unit:<2} {theirs:>9.1} {unit:<2} {ratio:>7.2}  {aim}{verdict}");
    met
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?");
    let kernel = output(Command::new("uname").arg("-sr")).unwrap_or_default();
    format!("{cores} cores, {}, load before the run {load}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&mut [9.0, 1.0, 3.0]), 3.0);
    }
}
