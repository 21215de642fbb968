//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{End, Interface, Middleware, Profile, Setup, Wait};

/// Command line of a peer program; the program puts in its name and version.
#[derive(Parser)]
pub struct Program {
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

impl Role {
    fn end(self) -> End {
        if self == Role::Sub { End::subscriber() } else { End::PUBLISHER }
    }
}

/// Options that both continuous measurements share.
#[derive(Args, Clone)]
pub struct Options {
    #[arg(long, value_enum, default_value = "both")]
    pub role: Role,
    /// Bytes of payload a sample.
    #[arg(long, default_value_t = 64)]
    pub size: usize,
    /// Samples to measure; ends earlier when --seconds runs out.
    #[arg(long)]
    pub count: Option<u64>,
    /// Seconds to measure (default 5, unless --count is given).
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Best-effort instead of reliable.
    #[arg(long)]
    pub best_effort: bool,
    /// How the processes learn that data is there (default: what this middleware prefers).
    #[arg(long, value_enum)]
    pub wait: Option<Wait>,
    /// Cores of the publisher and of the subscribers, for example 0,1.
    #[arg(long, value_delimiter = ',')]
    pub cpu: Vec<usize>,
    /// DDS domain; the processes must agree.
    #[arg(long, default_value_t = 17)]
    pub domain: u32,
    /// Network interface of the processes; shared memory has none but the loopback interface.
    #[arg(long, default_value = "lo")]
    pub interface: String,
    #[arg(long, value_enum, default_value = "default")]
    pub profile: Profile,
    /// Subscriber processes of `throughput`; the publisher waits for so many and every process may prepare for them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub readers: u16,
    /// Print one JSON object instead of a line to read.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(if self.count.is_some() { 60.0 } else { 5.0 })
    }

    pub fn count(&self) -> u64 {
        self.count.unwrap_or(u64::MAX)
    }

    /// How to set the middleware up; an error if it cannot do what was asked for.
    pub fn setup<M: Middleware>(&self) -> Result<Setup, String> {
        let setup = setup::<M>(self.domain, Interface::named(&self.interface)?, self.profile, self.wait, self.size)?;
        Ok(Setup { readers: usize::from(self.readers), end: self.role.end(), ..setup })
    }
}

/// Options of `burst`.
#[derive(Args, Clone)]
pub struct BurstOptions {
    /// `pub` measures, `sub` echoes. Both end with their standard input.
    #[arg(long, value_enum)]
    pub role: Role,
    #[arg(long, value_enum, default_value = "default")]
    pub profile: Profile,
    /// DDS domain; the two processes must agree.
    #[arg(long, default_value_t = 17)]
    pub domain: u32,
    /// Network interface of the processes; shared memory has none but the loopback interface.
    #[arg(long, default_value = "lo")]
    pub interface: String,
    /// Core of this process.
    #[arg(long)]
    pub cpu: Option<usize>,
    /// The longest payload that will be asked for, in bytes.
    #[arg(long, default_value_t = 8 << 20)]
    pub max_size: usize,
    /// How the process learns that data is there (default: what this middleware prefers).
    #[arg(long, value_enum)]
    pub wait: Option<Wait>,
}

impl BurstOptions {
    pub fn setup<M: Middleware>(&self) -> Result<Setup, String> {
        let setup =
            setup::<M>(self.domain, Interface::named(&self.interface)?, self.profile, self.wait, self.max_size)?;
        Ok(Setup { end: self.role.end(), ..setup })
    }
}

/// Options of `listen`. The process ends with its standard input.
#[derive(Args, Clone)]
pub struct ListenOptions {
    #[arg(long, value_enum, default_value = "default")]
    pub profile: Profile,
    /// DDS domain; the processes must agree.
    #[arg(long, default_value_t = 17)]
    pub domain: u32,
    /// Network interface of the process.
    #[arg(long, default_value = "lo")]
    pub interface: String,
}

impl ListenOptions {
    pub fn setup<M: Middleware>(&self) -> Result<Setup, String> {
        let setup = setup::<M>(self.domain, Interface::named(&self.interface)?, self.profile, None, 0)?;
        Ok(Setup { end: End::subscriber(), ..setup })
    }
}

/// How to set the middleware up for one writer and one reader; an error if it cannot do what was asked for.
pub fn setup<M: Middleware>(
    domain: u32,
    interface: Interface,
    profile: Profile,
    wait: Option<Wait>,
    bytes: usize,
) -> Result<Setup, String> {
    if let (Profile::Batch, Some(reason)) = (profile, M::NO_BATCH) {
        return Err(format!("{} has no profile `batch`: {reason}", M::PEER));
    }
    if !interface.is_loopback() && !M::ANY_INTERFACE {
        return Err(format!("{} does not leave this host: it is not set up for {}", M::PEER, interface.name));
    }
    let wait = wait.unwrap_or(M::WAITS[0]);
    if !M::WAITS.contains(&wait) {
        let offered: Vec<&str> = M::WAITS.iter().map(|wait| wait.name()).collect();
        return Err(format!("{} has no --wait {}; it offers {}", M::PEER, wait.name(), offered.join(", ")));
    }
    // The longest control sample of a measurement is shorter than this.
    const CONTROL_BYTES: usize = 256;
    let (publishers, bytes_max) = (vec![interface.address], bytes.max(CONTROL_BYTES));
    Ok(Setup { domain, interface, profile, wait, bytes_max, readers: 1, writers: 1, end: End::PUBLISHER, publishers })
}
