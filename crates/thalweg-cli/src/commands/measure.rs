//! `thalweg perf`: latency, throughput and bursts between processes, and probes of plain UDP and TCP.

use std::io::BufReader;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use thalweg_lab::ReliabilitySetting;
use thalweg_lab::perf::{self, BurstPublisher, Limit, PerfFigures, PerfOptions};
use thalweg_lab::process::{Launcher, Stop};
use thalweg_lab::station::{Setup, StationNetwork, Thalweg, Wait, Work};

use super::laboratory::{WORKER, from_lab};
use super::probe::{self, ProbeServeOptions, TcpProbeOptions, UdpProbeOptions};
use crate::interrupt::Interrupt;
use crate::network_options::NetworkOptions;
use crate::outcome::{Failure, print_line, remark};
use crate::sending_options::SendingOptions;

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg perf latency --role both --size 64 --seconds 5",
    "thalweg perf throughput --method batch --size 1024 --seconds 5 --json",
    "thalweg perf udp 192.168.1.20 --rate 200M"
))]
/// Measures the middleware between processes, and plain UDP and TCP below it.
pub struct MeasureOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub measurement: MeasureCommand,
}

/// Subcommands of `perf`.
#[derive(Debug, Subcommand)]
pub enum MeasureCommand {
    /// Measures the round trip of samples that the other process sends back at once.
    #[command(after_help = crate::after_help!("thalweg perf latency --role both --size 64 --wait block --cpu 0,1"))]
    Latency(EndOptions),
    /// Measures the samples a second that reach the other processes, the losses, and the costs at both ends. System calls are those
    /// of the sockets: sends, receives and waits for readiness.
    #[command(after_help = crate::after_help!(
        "thalweg perf throughput --role both --size 1024 --seconds 5 --json",
        "thalweg perf throughput --method batch --max-bytes 32000 --flush-delay 500us --size 256",
        "thalweg perf throughput --readers 4 --destination multicast"
    ))]
    Throughput(ThroughputOptions),
    /// Measures the time from the first of n writes to the echo of a reader that has all n, for each request on standard input. The
    /// writing end prints {"ready":true,…} once it is matched with the other, then answers each line such as {"n":3000,"size":256,"runs":5} with
    /// {"runs_ms":[…]} or {"error":"…"}. Each end ends with its standard input.
    #[command(after_help = crate::after_help!(
        "thalweg perf burst --role sub",
        "thalweg perf burst --role pub --method batch"
    ))]
    Burst(BurstEndOptions),
    /// Measures plain UDP to `thalweg perf serve` on another host, or to a process that it starts here: what arrives and what is lost at
    /// which layer, at a rate or as fast as possible, or round trips. Each datagram is counted by its number.
    #[command(after_help = crate::after_help!(
        "thalweg perf udp 192.168.1.20 --rate 1.25G --streams 2 --mtu-size 9000",
        "thalweg perf udp --round-trips --size 64,512,1400 --json",
        "thalweg perf udp 192.168.1.20 --no-gso --receive-buffer 4M"
    ))]
    Udp(UdpProbeOptions),
    /// Measures plain TCP in the same way as `thalweg perf udp`: streams, as fast as possible or at a rate, or round trips.
    #[command(after_help = crate::after_help!(
        "thalweg perf tcp 192.168.1.20 --streams 1,2,4 --seconds 10",
        "thalweg perf tcp --round-trips --size 1,1K,64K"
    ))]
    Tcp(TcpProbeOptions),
    /// Takes part in the measurements of `thalweg perf udp` and `thalweg perf tcp` from other hosts, one at a time, until Ctrl-C.
    /// Whoever reaches the port may make this host send to them and receive from them at full speed.
    #[command(after_help = crate::after_help!("thalweg perf serve", "thalweg perf serve --bind 192.168.1.20:7399 --data-port 7400"))]
    Serve(ProbeServeOptions),
}

/// Which end of a series of bursts this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BurstRoleName {
    /// The end that writes and measures.
    Pub,
    /// The end that checks what arrives and echoes the last sample of each run.
    Sub,
}

/// Options of a series of bursts.
#[derive(Args, Clone, Debug)]
pub struct BurstEndOptions {
    /// Be this end of the measurement; there is one of each (default: pub).
    #[arg(long, value_enum, default_value = "pub", hide_default_value = true)]
    pub role: BurstRoleName,

    /// Take the part of --profile that fits samples of up to BYTES (default: 1024).
    #[arg(long, value_name = "BYTES", default_value_t = 1024, hide_default_value = true)]
    pub max_size: u64,

    /// Run on logical CPU N (default: the system chooses).
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,

    /// Do this work for each sample; both ends need the same (default: decoded).
    #[arg(long, value_enum, default_value = "decoded", hide_default_value = true)]
    pub work: WorkName,

    #[command(flatten)]
    /// The way of samples.
    pub sending: SendingOptions,

    #[command(flatten)]
    /// The domain and the ways into it.
    pub network: NetworkOptions,
}

/// Options of a stream.
#[derive(Args, Clone, Debug)]
pub struct ThroughputOptions {
    /// Stream to N reading processes: --role both starts them, --role pub waits for them (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..=120))]
    pub readers: u64,

    #[command(flatten)]
    /// Options that both measurements have.
    pub end: EndOptions,
}

/// Which end this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// The end that writes and measures.
    Pub,
    /// The end that receives; it serves until the other end is done.
    Sub,
    /// The end that writes; the other end is started as a second process.
    Both,
}

/// Ways to wait for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WaitName {
    /// A callback in the thread that receives: the shortest way.
    Listener,
    /// A thread of the application sleeps until data are there.
    Block,
    /// A thread of the application polls without pause: lowest latency at the price of a whole core.
    Busy,
}

/// Work for each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkName {
    /// Decode every sample that arrives into a value, and encode every one that is written, echoes included, as other middleware does.
    Decoded,
    /// Look at the received bytes in place, and send these back.
    Raw,
}

impl WorkName {
    fn to_lab(self) -> Work {
        match self {
            WorkName::Decoded => Work::Decoded,
            WorkName::Raw => Work::Raw,
        }
    }
}

/// Options of both measurements.
#[derive(Args, Clone, Debug)]
pub struct EndOptions {
    /// Be this end, or both; both ends of one measurement need the same --size, --wait and --best-effort (default: both).
    #[arg(long, value_enum, default_value = "both", hide_default_value = true)]
    pub role: RoleName,

    /// Payload of BYTES in each sample, up to 1 GiB (default: 64).
    #[arg(long, value_name = "BYTES", default_value_t = 64, hide_default_value = true, value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    pub size: u64,

    /// Stop after N samples, warm-up not counted (default: only --seconds ends the measurement).
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Stop after SECONDS, warm-up not counted (default: 5).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub seconds: Option<std::time::Duration>,

    /// Use best-effort reliability: lost samples stay lost (default: reliable, keep-all).
    #[arg(long)]
    pub best_effort: bool,

    /// Keep at most N samples that wait for acknowledgement, or that a reader has not taken yet (default: as many as 64 MiB hold,
    /// between 4 and 32768).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub history: Option<u32>,

    /// Wait for data in this way (default: listener).
    #[arg(long, value_enum, default_value = "listener", hide_default_value = true)]
    pub wait: WaitName,

    /// The same as --wait busy (default: --wait decides).
    #[arg(long, conflicts_with = "wait")]
    pub busy_poll: bool,

    /// Run the writer on logical CPU A and the readers on B and the following ones, in turn; a single number places this end (default: the
    /// system chooses).
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', num_args = 1)]
    pub cpu: Vec<usize>,

    /// Do this work for each sample; all ends need the same (default: decoded).
    #[arg(long, value_enum, default_value = "decoded", hide_default_value = true)]
    pub work: WorkName,

    /// Trace the layers of every N-th sample, to measure the cost of tracing; the traces are discarded (default: off).
    #[arg(long, value_name = "N")]
    pub trace: Option<std::num::NonZeroU32>,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// The way of samples.
    pub sending: SendingOptions,

    #[command(flatten)]
    /// The domain and the ways into it.
    pub network: NetworkOptions,
}

/// Measures and prints the figures.
///
/// # Errors
/// The other end does not appear, fails or dies; or reliable samples got lost.
pub fn run(options: &MeasureOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let (measurement, end, readers) = match &options.measurement {
        MeasureCommand::Latency(end) => (perf::Measurement::Latency, end, 1),
        MeasureCommand::Throughput(options) => (perf::Measurement::Throughput, &options.end, options.readers),
        MeasureCommand::Burst(options) => return burst(options, interrupt),
        MeasureCommand::Udp(options) => return probe::run_udp(options, interrupt),
        MeasureCommand::Tcp(options) => return probe::run_tcp(options, interrupt),
        MeasureCommand::Serve(options) => return probe::serve(options, interrupt),
    };
    let perf_options = end.perf_options(measurement, readers)?;
    let stop = Stop::watching(interrupt.flag());
    let figures = match (end.role, measurement) {
        (RoleName::Both, _) => {
            let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
            perf::both(&perf_options, &launcher, &stop).map_err(from_lab)?
        }
        (RoleName::Pub, perf::Measurement::Latency) => {
            PerfFigures::Latency(perf::ping(&perf_options, &stop).map_err(from_lab)?)
        }
        (RoleName::Pub, perf::Measurement::Throughput) => {
            PerfFigures::Throughput(perf::write(&perf_options, &stop).map_err(from_lab)?)
        }
        (RoleName::Sub, perf::Measurement::Throughput) => {
            PerfFigures::Throughput(perf::read(&perf_options, &stop).map_err(from_lab)?)
        }
        (RoleName::Sub, perf::Measurement::Latency) => {
            remark("Sending back what arrives until the other end is done; the figures appear there.");
            return perf::pong(&perf_options, &stop).map_err(from_lab);
        }
    };
    match figures {
        PerfFigures::Latency(figures) => print(&figures, figures.to_text(), end.json),
        PerfFigures::Throughput(figures) => print(&figures, figures.to_text(), end.json),
    }
}

fn burst(options: &BurstEndOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let profile = options.sending.profile()?;
    let mut network = options.network.to_lab();
    network.receive_buffer_bytes = profile.participant.receive_buffer_bytes;
    let sending = options.sending.sending(&profile, options.max_size)?;
    let flow_controller = profile.flow_controller(&sending).cloned();
    let work = options.work.to_lab();
    let setup = Setup { sending, flow_controller, work, ..Setup::within(network) };
    let (input, stop) = (BufReader::new(std::io::stdin()), Stop::watching(interrupt.flag()));
    let made = match options.role {
        BurstRoleName::Pub => {
            BurstPublisher::<Thalweg>::open(&setup, options.cpu, u32::MAX, &stop).and_then(|publisher| {
                let ready = publisher.ready(&setup, "");
                perf::serve_bursts(publisher, &ready, input, std::io::stdout(), &stop)
            })
        }
        BurstRoleName::Sub => {
            let ended = perf::until_input_ends(input);
            perf::echo_bursts::<Thalweg>(&setup, options.cpu, || stop.is_requested() || ended())
        }
    };
    made.map_err(|fault| from_lab(fault.into()))
}

fn print(figures: &impl Serialize, text: String, json: bool) -> Result<(), Failure> {
    let line = if json { serde_json::to_string(figures).map_err(Failure::from_cause)? } else { text };
    print_line(line)
}

impl EndOptions {
    fn perf_options(&self, measurement: perf::Measurement, readers: u64) -> Result<PerfOptions<Setup>, Failure> {
        let profile = self.sending.profile()?;
        let sending = self.sending.sending(&profile, self.size)?;
        let flow_controller = profile.flow_controller(&sending).cloned();
        let (writer_cpu, reader_cpus) = match (self.role, self.cpu.as_slice()) {
            (_, []) => (None, Vec::new()),
            (RoleName::Sub, [own]) => (None, vec![*own]),
            (RoleName::Both, [_]) => {
                return Err(Failure::Usage(
                    "--cpu needs two numbers or more, the writer's and the readers', such as --cpu 0,1".to_owned(),
                ));
            }
            (_, [writer, readers @ ..]) => (Some(*writer), readers.to_vec()),
        };
        let limit = match (self.count, self.seconds) {
            (Some(count), _) => Limit::Samples(count),
            (None, seconds) => Limit::Time(seconds.unwrap_or(DEFAULT_TIME)),
        };
        let mut network = self.network.to_lab();
        if self.role == RoleName::Both && network.domain_tag.is_empty() {
            // Two measurements at a time on one host must not hear each other.
            network.domain_tag = StationNetwork::apart(network.domain).domain_tag;
        }
        network.receive_buffer_bytes = profile.participant.receive_buffer_bytes;
        let wait = match self.wait {
            _ if self.busy_poll => Wait::Busy,
            WaitName::Listener => Wait::Listener,
            WaitName::Block => Wait::Block,
            WaitName::Busy => Wait::Busy,
        };
        let work = self.work.to_lab();
        Ok(PerfOptions {
            measurement,
            size: self.size,
            limit,
            reliability: if self.best_effort { ReliabilitySetting::BestEffort } else { ReliabilitySetting::Reliable },
            history: self.history,
            readers: usize::try_from(readers).map_err(Failure::from_cause)?,
            reader: 0,
            writer_cpu,
            reader_cpus,
            setup: Setup { sending, flow_controller, wait, work, trace: self.trace, ..Setup::within(network) },
        })
    }
}

const DEFAULT_TIME: std::time::Duration = std::time::Duration::from_secs(5);
