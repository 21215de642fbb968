//! `thalweg perf udp`, `tcp` and `serve`: plain UDP and TCP between two hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use clap::Args;
use thalweg_lab::perf::ProbeEnd;
use thalweg_lab::process::{Launcher, Stop};
use thalweg_probe::{
    ClientOptions, Fragments, Joining, ProbeError, ProbeFigures, ProbeOrder, ProbeProtocol, ProbeSecond, ProbeServer,
    ProbeServerOptions, Repeat, Shape, StreamDirection, VERSION, datagram_payload,
};

use super::laboratory::{WORKER, from_lab};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};
use crate::parse;

/// Options of both protocols.
#[derive(Args, Clone, Debug)]
pub struct ProbeOptions {
    /// Measure to `thalweg perf serve` at HOST or HOST:PORT, an IPv6 address in brackets where a port follows (default: a process
    /// that this command starts on this host; port 7399).
    #[arg(value_name = "HOST")]
    pub server: Option<String>,

    /// Send N streams at the same time, each with its own socket and thread at both ends; several numbers make one measurement each, up
    /// to 64 streams (default: 1).
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", hide_default_value = true)]
    pub streams: Vec<u32>,

    /// Send this many payload bits a second, all streams together, by a schedule that waits for nothing, such as 200M or 1.25G
    /// (default: as fast as possible).
    #[arg(long, value_name = "RATE", value_parser = parse::bit_rate, conflicts_with = "round_trips")]
    pub rate: Option<f64>,

    /// Measure round trips, with one request under way in each stream, as the UDP_RR and TCP_RR of Netperf (default: a stream).
    #[arg(long)]
    pub round_trips: bool,

    /// Let the server send, which is what a host behind a packet filter needs to measure its way in (default: this end sends).
    #[arg(long, conflicts_with = "round_trips")]
    pub reverse: bool,

    /// Send for SECONDS, at most an hour (default: 5).
    #[arg(long, value_name = "SECONDS", default_value = "5", hide_default_value = true, value_parser = parse::seconds)]
    pub seconds: Duration,

    /// Ask for a receive buffer of BYTES, such as 4M, for each socket; what was granted is told (default: 32M for UDP; the kernel adapts
    /// TCP's).
    #[arg(long, value_name = "BYTES", value_parser = parse::byte_count)]
    pub receive_buffer: Option<u32>,

    /// Run this end on logical CPU A and, where this command starts it, the other one on B (default: the system chooses).
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    pub cpu: Vec<usize>,

    /// Print one JSON object for each measurement instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// Options of UDP.
#[derive(Args, Clone, Debug)]
pub struct UdpProbeOptions {
    #[command(flatten)]
    /// Options of both protocols.
    pub probe: ProbeOptions,

    /// Send datagrams of BYTES of payload, 16 or more; several numbers make one measurement each (default: what a packet of 1500 B
    /// carries, 64 of round trips).
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = parse::byte_count, conflicts_with = "mtu_size")]
    pub size: Vec<u32>,

    /// Send datagrams whose packets are MTU bytes long, heads of IP and UDP included (default: --size decides).
    #[arg(long, value_name = "MTU,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub mtu_size: Vec<u32>,

    /// Hand the kernel each datagram as a message of its own (default: up to 64 as one, which it cuts, GSO).
    #[arg(long)]
    pub no_gso: bool,

    /// Let the kernel hand over each datagram as a message of its own (default: it joins them, GRO).
    #[arg(long)]
    pub no_gro: bool,

    /// Let IP cut datagrams that are larger than their path (default: they are refused).
    #[arg(long)]
    pub fragment: bool,
}

/// Options of TCP.
#[derive(Args, Clone, Debug)]
pub struct TcpProbeOptions {
    #[command(flatten)]
    /// Options of both protocols.
    pub probe: ProbeOptions,

    /// Write BYTES at a time, or make requests of so many, up to 16M; several numbers make one measurement each (default: 128K, 64 of
    /// round trips).
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = parse::byte_count)]
    pub size: Vec<u32>,

    /// Send segments whose packets are at most MTU bytes long, heads of IP and TCP included (default: what the path takes).
    #[arg(long, value_name = "MTU", value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub mtu_size: Option<u32>,
}

/// Options of the serving end.
#[derive(Args, Clone, Debug)]
pub struct ProbeServeOptions {
    /// Serve at this address and port; port 0 lets the system choose (default: port 7399 of every address).
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub bind: Option<SocketAddr>,

    /// Receive streams at this port and the following ones, for packet filters that have to know them (default: the system chooses).
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..=65_535 - 64))]
    pub data_port: Option<u16>,

    /// End after one measurement (default: serve until Ctrl-C).
    #[arg(long)]
    pub once: bool,

    /// Run on logical CPU N (default: the system chooses).
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
}

/// Measures UDP and prints the figures.
///
/// # Errors
/// The other end does not answer, fails or refuses.
pub fn run_udp(options: &UdpProbeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let joining = match (options.no_gso, options.no_gro) {
        (false, false) => Joining::Both,
        (false, true) => Joining::Sent,
        (true, false) => Joining::Received,
        (true, true) => Joining::Neither,
    };
    let sizes = if options.mtu_size.is_empty() { &options.size } else { &options.mtu_size };
    run(&options.probe, sizes, interrupt, |server, size| {
        let size_bytes = match size {
            Some(mtu) if !options.mtu_size.is_empty() => payload(*mtu, server)?,
            Some(size) => *size,
            None if options.probe.round_trips => ROUND_TRIP_BYTES,
            None => payload(ETHERNET_MTU, server)?,
        };
        Ok(ProbeOrder {
            protocol: ProbeProtocol::Udp,
            size_bytes,
            joining,
            fragments: if options.fragment { Fragments::Allowed } else { Fragments::Refused },
            ..options.probe.order()
        })
    })
}

/// Measures TCP and prints the figures.
///
/// # Errors
/// As [`run_udp`].
pub fn run_tcp(options: &TcpProbeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    run(&options.probe, &options.size, interrupt, |_, size| {
        let default = if options.probe.round_trips { ROUND_TRIP_BYTES } else { TCP_WRITE_BYTES };
        Ok(ProbeOrder {
            size_bytes: size.copied().unwrap_or(default),
            segment_mtu_bytes: options.mtu_size,
            ..options.probe.order()
        })
    })
}

/// Takes part in the measurements of others.
///
/// # Errors
/// The port cannot be opened.
pub fn serve(options: &ProbeServeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    pin(options.cpu)?;
    let open = |bind| {
        let repeat = if options.once { Repeat::Once } else { Repeat::Always };
        ProbeServer::bind(ProbeServerOptions { bind, data_port: options.data_port.unwrap_or(0), repeat })
    };
    let all = |address: IpAddr| SocketAddr::new(address, PROBE_PORT);
    let server = match options.bind {
        Some(bind) => open(bind),
        // A host without IPv6 has only the other one.
        None => open(all(std::net::Ipv6Addr::UNSPECIFIED.into())).or_else(|_| open(all(Ipv4Addr::UNSPECIFIED.into()))),
    };
    let server = server.map_err(from_probe)?;
    let address = server.local_address().map_err(Failure::from_cause)?;
    print_line(format_args!("serving at {address}"))?;
    server.serve(&Stop::watching(interrupt.flag()), |note| remark(note)).map_err(from_probe)
}

fn run(
    options: &ProbeOptions,
    sizes: &[u32],
    interrupt: &Interrupt,
    order: impl Fn(&SocketAddr, Option<&u32>) -> Result<ProbeOrder, Failure>,
) -> Result<(), Failure> {
    let stop = Stop::watching(interrupt.flag());
    let (own_cpu, other_cpu) = match (options.cpu.as_slice(), &options.server) {
        ([], _) => (None, None),
        ([own], Some(_)) => (Some(*own), None),
        ([own, other], None) => (Some(*own), Some(*other)),
        (_, Some(_)) => {
            return Err(Failure::Usage(
                "--cpu needs one number, such as --cpu 0: the other end has its own".to_owned(),
            ));
        }
        (_, None) => {
            return Err(Failure::Usage(
                "--cpu needs two numbers, this end's and the other's, such as --cpu 0,1".to_owned(),
            ));
        }
    };
    let (end, servers) = match &options.server {
        Some(name) => (None, addresses(name)?),
        None => {
            let launcher = Launcher::this_program(WORKER).map_err(from_lab)?;
            let bind = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
            let end = ProbeEnd::start(&launcher, bind, other_cpu, &stop).map_err(from_lab)?;
            let address = end.address();
            (Some(end), vec![address])
        }
    };
    pin(own_cpu)?;
    let sizes: Vec<Option<&u32>> = if sizes.is_empty() { vec![None] } else { sizes.iter().map(Some).collect() };
    for streams in &options.streams {
        for size in &sizes {
            let figures = measure(&servers, &stop, options.json, |server| {
                Ok(ProbeOrder { streams: *streams, ..order(server, *size)? })
            })?;
            print_line(if options.json {
                serde_json::to_string(&figures).map_err(Failure::from_cause)?
            } else {
                figures.to_text()
            })?;
        }
    }
    end.map_or(Ok(()), |end| end.finish().map_err(from_lab))
}

/// Measures with the first of the addresses at which a server answers.
fn measure(
    servers: &[SocketAddr],
    stop: &Stop,
    json: bool,
    order: impl Fn(&SocketAddr) -> Result<ProbeOrder, Failure>,
) -> Result<ProbeFigures, Failure> {
    let mut on_second = |second: &ProbeSecond| {
        if !json {
            remark(told(second));
        }
    };
    let mut unreachable = None;
    for server in servers {
        match thalweg_probe::measure(&ClientOptions { server: *server }, order(server)?, stop, &mut on_second) {
            Err(error @ ProbeError::Unreachable(..)) => unreachable = unreachable.or(Some(error)),
            other => return other.map_err(from_probe),
        }
    }
    Err(unreachable.map_or_else(|| Failure::Failed("the name has no address".to_owned()), from_probe))
}

/// A second for people.
fn told(second: &ProbeSecond) -> String {
    let rate = if second.seconds > 0.0 { second.bytes as f64 * 8.0 / 1e6 / second.seconds } else { 0.0 };
    let missing = if second.missing > 0 { format!(", {} datagrams missing", second.missing) } else { String::new() };
    format!("{:>5.0} s: {rate:.1} Mbit/s{missing}", second.start_s + second.seconds)
}

impl ProbeOptions {
    /// What both protocols have in common; of UDP the rest is to be filled in.
    fn order(&self) -> ProbeOrder {
        let direction = if self.reverse { StreamDirection::ToClient } else { StreamDirection::ToServer };
        ProbeOrder {
            version: VERSION,
            protocol: ProbeProtocol::Tcp,
            shape: match self.round_trips {
                true => Shape::RoundTrips,
                false => Shape::Stream { direction, rate_bit_per_s: self.rate },
            },
            size_bytes: 0,
            streams: 1,
            duration_ms: u64::try_from(self.seconds.as_millis()).unwrap_or(u64::MAX),
            joining: Joining::Both,
            fragments: Fragments::Refused,
            receive_buffer_bytes: self.receive_buffer,
            segment_mtu_bytes: None,
        }
    }
}

/// The addresses of HOST, HOST:PORT, an IPv6 address, or such a one in brackets with a port.
fn addresses(name: &str) -> Result<Vec<SocketAddr>, Failure> {
    let unknown = |error: std::io::Error| Failure::Failed(format!("{name} has no address here: {error}"));
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, PROBE_PORT)]);
    }
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found = if has_port { name.to_socket_addrs() } else { (name, PROBE_PORT).to_socket_addrs() };
    found.map(Iterator::collect).map_err(unknown)
}

fn payload(mtu: u32, server: &SocketAddr) -> Result<u32, Failure> {
    u32::try_from(datagram_payload(mtu, server.ip())).map_err(Failure::from_cause)
}

fn pin(cpu: Option<usize>) -> Result<(), Failure> {
    cpu.map_or(Ok(()), |cpu| {
        thalweg_host::pin_to_cpu(cpu).map_err(|error| Failure::Failed(format!("CPU {cpu} cannot be used: {error}")))
    })
}

fn from_probe(error: ProbeError) -> Failure {
    match error {
        ProbeError::Interrupted => Failure::Interrupted,
        ProbeError::Order(error) => Failure::Usage(error.to_string()),
        other => Failure::from_cause(other),
    }
}

/// Where servers listen unless they are told otherwise: one below the ports of DDS discovery (RTPS 2.5 §9.6.1).
const PROBE_PORT: u16 = 7399;
const ETHERNET_MTU: u32 = 1_500;
/// The size that iperf3 writes by.
const TCP_WRITE_BYTES: u32 = 128 << 10;
const ROUND_TRIP_BYTES: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_with_and_without_a_port() {
        let check = |name: &str, expect: &str| {
            let found: Vec<String> = addresses(name).expect("an address").iter().map(SocketAddr::to_string).collect();
            assert_eq!(found, [expect], "{name}");
        };
        check("127.0.0.1", "127.0.0.1:7399");
        check("127.0.0.1:80", "127.0.0.1:80");
        check("::1", "[::1]:7399");
        check("[::1]:80", "[::1]:80");
        assert!(addresses("no such host.invalid").is_err());
    }
}
