//! Measures Eclipse Cyclone DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `cyclone-perf latency --role both --size 64 --wait listener --cpu 0,1 --json`

mod cyclone;
mod figures;
mod latency;
mod process;
mod throughput;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Command line of the program.
#[derive(Parser)]
#[command(about, version)]
struct Program {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// Round trip of a sample that the other process sends back.
    Latency(Options),
    /// Samples a second from one process to another, each sent by itself.
    Throughput(Options),
}

/// Which end this process is.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Pub,
    Sub,
    /// Publisher; starts the subscriber as a second process.
    Both,
}

/// How a process learns that data is there.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wait {
    /// In Cyclone's receive thread, in a data-available callback.
    Listener,
    /// In a thread of its own, blocked in a wait set.
    Block,
}

/// Options that both measurements share.
#[derive(Args, Clone)]
struct Options {
    #[arg(long, value_enum, default_value = "both")]
    role: Role,
    /// Bytes of payload a sample.
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Samples to measure; ends earlier when --seconds runs out.
    #[arg(long)]
    count: Option<u64>,
    /// Seconds to measure (default 5, unless --count is given).
    #[arg(long)]
    seconds: Option<f64>,
    /// Best-effort instead of reliable.
    #[arg(long)]
    best_effort: bool,
    #[arg(long, value_enum, default_value = "listener")]
    wait: Wait,
    /// Cores of the publisher and of the subscriber, for example 0,1.
    #[arg(long, value_delimiter = ',')]
    cpu: Vec<usize>,
    /// DDS domain; the two processes must agree.
    #[arg(long, default_value_t = 17)]
    domain: u32,
    /// Print one JSON object instead of a line to read.
    #[arg(long)]
    json: bool,
}

impl Options {
    fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.count.is_some() { 60.0 } else { 5.0 })
    }

    fn count(&self) -> u64 {
        self.count.unwrap_or(u64::MAX)
    }
}

fn main() {
    let outcome = match Program::parse().measurement {
        Measurement::Latency(options) => latency::run(&options),
        Measurement::Throughput(options) => throughput::run(&options),
    };
    if let Err(error) = outcome {
        eprintln!("cyclone-perf: {error}");
        std::process::exit(1);
    }
}
