//! The command line.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use thalweg_lab_station::{
    Limit, Measurement as What, Middleware, PeerProfile, PeerSetup, PerfOptions, ReliabilitySetting, Wait,
};

use crate::{Interface, Program};

/// Command line of a peer program; the program puts in its name and version.
#[derive(Parser)]
pub struct CommandLine {
    #[command(subcommand)]
    pub measurement: Measurement,
}

#[derive(Subcommand)]
pub enum Measurement {
    /// Round trip of a sample that the other process sends back.
    Latency(Options),
    /// Samples a second from one process to others.
    Throughput(Options),
    /// The endpoints of one run of a scenario; told on standard input what to do.
    Station,
    /// Time from the first of n writes to the echo of a reader that has all of them; asked for on standard input.
    Burst(BurstOptions),
    /// Readers of topics that are asked for on standard input; says what they get.
    Listen(ListenOptions),
}

/// Which end this process is.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    Pub,
    Sub,
    /// Publisher; starts the subscribers as processes of their own.
    Both,
}

/// Options that every measurement has.
#[derive(Args, Clone)]
pub struct Place {
    /// DDS domain; the processes must agree.
    #[arg(long, default_value_t = 17)]
    pub domain: u32,
    /// Network interface of the process; shared memory has none but the loopback interface.
    #[arg(long, default_value = "lo")]
    pub interface: String,
    #[arg(long, default_value = "default", value_parser = profiles())]
    pub profile: PeerProfile,
    /// How the process learns that data is there (default: what this middleware prefers).
    #[arg(long, value_parser = waits())]
    pub wait: Option<Wait>,
}

/// Options that both continuous measurements share.
#[derive(Args, Clone)]
pub struct Options {
    #[arg(long, value_enum, default_value = "both")]
    pub role: Role,
    /// Bytes of payload a sample.
    #[arg(long, default_value_t = 64)]
    pub size: u64,
    /// Samples to measure; ends earlier when --seconds runs out.
    #[arg(long, conflicts_with = "seconds")]
    pub count: Option<u64>,
    /// Seconds to measure (default 5, unless --count is given).
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Best-effort instead of reliable.
    #[arg(long)]
    pub best_effort: bool,
    /// Cores of the publisher and of the subscribers, for example 0,1.
    #[arg(long, value_delimiter = ',')]
    pub cpu: Vec<usize>,
    /// Subscriber processes of `throughput`; the publisher waits for so many and every process may prepare for them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub readers: u16,
    /// The number of this subscriber, from 0, where several of them must not share a topic.
    #[arg(long, default_value_t = 0)]
    pub reader: usize,
    /// Print one JSON object instead of lines to read.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: Place,
}

/// Options of `burst`.
#[derive(Args, Clone)]
pub struct BurstOptions {
    /// `pub` measures, `sub` echoes. Both end with their standard input.
    #[arg(long, value_enum)]
    pub role: Role,
    /// Core of this process.
    #[arg(long)]
    pub cpu: Option<usize>,
    /// The longest payload that will be asked for, in bytes.
    #[arg(long, default_value_t = 8 << 20)]
    pub max_size: u32,
    #[command(flatten)]
    pub place: Place,
}

/// Options of `listen`. The process ends with its standard input.
#[derive(Args, Clone)]
pub struct ListenOptions {
    #[command(flatten)]
    pub place: Place,
}

impl Options {
    /// The options as the measurements know them; an error if the middleware cannot do what was asked for.
    pub fn perf<M: Middleware>(&self, program: &Program, measurement: What) -> Result<PerfOptions<PeerSetup>, String> {
        // Room in a history for those who cannot do without.
        const SAMPLES_MAX: u32 = 2000;
        let (writer_cpu, reader_cpus) = match self.cpu.as_slice() {
            [] => (None, Vec::new()),
            [only] => (Some(*only), vec![*only]),
            [writer, readers @ ..] => (Some(*writer), readers.to_vec()),
        };
        let time = Duration::try_from_secs_f64(self.seconds).map_err(|error| format!("--seconds: {error}"))?;
        let reliable = if self.best_effort { ReliabilitySetting::BestEffort } else { ReliabilitySetting::Reliable };
        Ok(PerfOptions {
            measurement,
            size: self.size,
            limit: self.count.map_or(Limit::Time(time), Limit::Samples),
            reliability: reliable,
            history: (measurement == What::Throughput).then_some(SAMPLES_MAX),
            readers: usize::from(self.readers),
            reader: self.reader,
            writer_cpu,
            reader_cpus,
            setup: self.place.setup::<M>(program, self.size, u32::from(self.readers))?,
        })
    }

    pub fn print(&self, figures: &impl Serialize, text: &str) -> Result<(), String> {
        let json = || serde_json::to_string(figures).map_err(|error| error.to_string());
        println!("{}", if self.json { json()? } else { text.to_owned() });
        Ok(())
    }
}

impl BurstOptions {
    pub fn setup<M: Middleware>(&self, program: &Program) -> Result<PeerSetup, String> {
        self.place.setup::<M>(program, u64::from(self.max_size), 1)
    }
}

impl ListenOptions {
    pub fn setup<M: Middleware>(&self, program: &Program) -> Result<PeerSetup, String> {
        self.place.setup::<M>(program, 0, 1)
    }
}

impl Place {
    /// How to set the middleware up for samples of so many octets; an error if it cannot do what was asked for.
    fn setup<M: Middleware>(&self, program: &Program, octets: u64, readers: u32) -> Result<PeerSetup, String> {
        let address = Interface::named(&self.interface)?.address;
        let setup = PeerSetup {
            domain: self.domain,
            address,
            publishers: vec![address],
            profile: self.profile,
            wait: self.wait.unwrap_or(program.waits[0]),
            sample_bytes: octets + PeerSetup::FRAME_BYTES,
            topic_writers: 1,
            topic_readers: readers,
        };
        check::<M>(program, &setup).map(|()| setup)
    }
}

/// An error if the middleware cannot do what the setup asks for.
pub fn check<M: Middleware>(program: &Program, setup: &PeerSetup) -> Result<(), String> {
    if let (PeerProfile::Batch, Some(reason)) = (setup.profile, program.no_batch) {
        return Err(format!("{} has no profile `batch`: {reason}", M::NAME));
    }
    if !setup.address.is_loopback() && !program.leaves_host {
        return Err(format!("{} does not leave this host: it is not set up for {}", M::NAME, setup.address));
    }
    if !program.waits.contains(&setup.wait) {
        let offered: Vec<&str> = program.waits.iter().map(|wait| wait.name()).collect();
        return Err(format!("{} has no --wait {}; it offers {}", M::NAME, setup.wait.name(), offered.join(", ")));
    }
    if setup.address == Ipv4Addr::UNSPECIFIED {
        return Ok(());
    }
    Interface::with_address(setup.address).map(drop)
}

fn profiles() -> impl TypedValueParser<Value = PeerProfile> {
    one_of(PeerProfile::ALL, PeerProfile::name)
}

fn waits() -> impl TypedValueParser<Value = Wait> {
    one_of(Wait::ALL, Wait::name)
}

/// Reads one of these values by its name.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: [T; 3],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let known = PossibleValuesParser::new(all.map(name));
    known.map(move |text| all.into_iter().find(|one| name(*one) == text).unwrap_or(all[0]))
}
