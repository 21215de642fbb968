//! `thalweg coap load`.

use std::time::Duration;

use clap::Args;
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::identity::Transport;
use thalweg_host::pin_to_cpu;
use thalweg_lab::coap_load::{
    self, ArrivalProcess, Flood, LoadPlan, LoadResult, Phase, RequestPlan, ResponseTimes, SessionLoadPlan,
};
use thalweg_report::figures::{grouped, rounded};

use super::observers::{self, ObserverOptions};
use super::security::CredentialOptions;
use super::target::TargetUri;
use crate::commands::laboratory::from_lab;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};

/// Options of `coap load`.
#[derive(Args, Debug)]
pub struct LoadOptions {
    /// The server, such as 127.0.0.1, coap://host:5683, coaps://host or coap+tcp://host; over the last two in a closed loop.
    #[arg(value_name = "ADDRESS", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Resource to ask for, with its query (default: the path of ADDRESS, else /request).
    #[arg(value_name = "PATH")]
    pub path: Option<String>,

    /// Ask as N clients, each from a source port of its own (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub clients: u32,

    /// Keep K requests of each client open: the next is sent when an answer comes (default: 1, without --rate and --phases).
    #[arg(long, value_name = "K", conflicts_with_all = ["rate", "phases"])]
    pub outstanding: Option<u32>,

    /// Send HZ requests a second for each client on a schedule that does not wait for answers; response times count from the
    /// scheduled time (default: --outstanding 1).
    #[arg(long, value_name = "HZ", conflicts_with = "phases")]
    pub rate: Option<f64>,

    /// Send at one total rate after the other on a schedule, such as 1000x7s,6000x9s,1000x6s; they also set the duration
    /// (default: --outstanding 1).
    #[arg(long, value_name = "RATExTIME,…", value_delimiter = ',', conflicts_with = "duration")]
    pub phases: Option<Vec<Phase>>,

    /// Count requests for SECONDS (default: 5).
    #[arg(long, value_name = "SECONDS", default_value = "5", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub duration: Duration,

    /// Make the load for SECONDS before requests count (default: 1).
    #[arg(long, value_name = "SECONDS", default_value = "1", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub warm_up: Duration,

    /// Count a request as lost after SECONDS without an answer (default: 5).
    #[arg(long, value_name = "SECONDS", default_value = "5", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub time_limit: Duration,

    /// Send confirmable requests and repeat them as RFC 7252 says (default: non-confirmable, sent once).
    #[arg(long)]
    pub con: bool,

    /// Lengthen each datagram to BYTES by arguments of the query (default: as short as PATH allows, 20 for /request).
    #[arg(long, value_name = "BYTES")]
    pub size: Option<usize>,

    /// Count only answers with this payload as served (default: "hello world").
    #[arg(long, value_name = "TEXT", default_value = "hello world", hide_default_value = true)]
    pub expect: String,

    /// Count answers with any payload as served (default: off).
    #[arg(long, conflicts_with = "expect")]
    pub no_expect: bool,

    #[command(flatten)]
    /// Observers in place of requests.
    pub observers: ObserverOptions,

    #[command(flatten)]
    /// Tasks beside the load.
    pub beside: BesideOptions,

    #[command(flatten)]
    /// The credentials of the clients, for coaps.
    pub credentials: CredentialOptions,
}

/// Tasks beside the load.
#[derive(Args, Debug)]
pub struct BesideOptions {
    /// Also send from N further source ports of the loopback network, in turn and without reading answers (default: none).
    #[arg(long, value_name = "N")]
    pub flood: Option<u32>,

    /// Send HZ requests a second from all ports of --flood together (default: one from each port).
    #[arg(long, value_name = "HZ", requires = "flood")]
    pub flood_rate: Option<f64>,

    /// Report figures for each TIME as well, such as 1s (default: for the whole run only).
    #[arg(long, value_name = "TIME", value_parser = crate::parse::duration)]
    pub windows: Option<Duration>,

    /// Report processor time and memory of the server's process PID on this host (default: not reported).
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,

    /// Run on logical CPU N (default: the system chooses).
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,

    /// First measure the load generator itself for SECONDS, against a responder without state on another CPU
    /// (default: not measured).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub self_check: Option<Duration>,

    /// Print the result as JSON with the schema thalweg.coap-load/1, of observers thalweg.coap-observer-load/1 (default: text).
    #[arg(long)]
    pub json: bool,
}

/// Makes the load and prints the result.
///
/// # Errors
/// The server does not answer as expected, the load cannot be made, or the user interrupted it.
pub fn run(options: &LoadOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(count) = options.observers.observe {
        return observers::run(options, count, interrupt);
    }
    if options.target.transport != Transport::Udp {
        return run_sessions(options, interrupt);
    }
    let plan = plan(options)?;
    let beside = &options.beside;
    if let Some(cpu) = beside.cpu {
        pin_to_cpu(cpu).map_err(|error| Failure::Usage(format!("CPU {cpu} cannot be used: {error}")))?;
    }
    coap_load::check_answer(&plan).map_err(from_lab)?;
    let stop = interrupt.flag();
    let check = |duration| coap_load::capacity(&plan, duration, responder_cpu(beside.cpu), &stop);
    let capacity = beside.self_check.map(check).transpose().map_err(from_lab)?;
    let mut result = coap_load::run(&plan, &stop).map_err(from_lab)?;
    result.generator_capacity = capacity;
    if beside.json {
        print_line(serde_json::to_string(&result).map_err(Failure::from_cause)?)
    } else {
        print_line(text(&result))
    }
}

/// Makes the load over DTLS or TCP.
fn run_sessions(options: &LoadOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let beside = &options.beside;
    let is_other = options.rate.is_some() || options.phases.is_some() || beside.flood.is_some() || options.con;
    if is_other || beside.windows.is_some() || beside.self_check.is_some() || beside.server_pid.is_some() {
        let said =
            "over coaps and coap+tcp the load is a closed loop; use --clients, --outstanding, --duration and --warm-up";
        return Err(Failure::Usage(said.to_owned()));
    }
    if let Some(cpu) = beside.cpu {
        pin_to_cpu(cpu).map_err(|error| Failure::Usage(format!("CPU {cpu} cannot be used: {error}")))?;
    }
    let LoadPlan { target, request, clients, duration, warm_up, .. } = plan(options)?;
    let plan = SessionLoadPlan {
        transport: options.target.transport,
        target,
        host: options.target.host().to_owned(),
        credentials: options.credentials.load()?,
        request,
        clients,
        outstanding: options.outstanding.unwrap_or(1),
        duration,
        warm_up,
    };
    let result = coap_load::run_sessions(&plan, &interrupt.flag()).map_err(from_lab)?;
    if beside.json {
        return print_line(serde_json::to_string(&result).map_err(Failure::from_cause)?);
    }
    print_line(format_args!(
        "served {}/s for {} s, half within {} µs, 99 % within {} µs; wrong {} lost {}",
        rounded(result.served_per_s),
        rounded(result.seconds),
        result.p50_us.map_or_else(|| "–".to_owned(), rounded),
        result.p99_us.map_or_else(|| "–".to_owned(), rounded),
        grouped(result.wrong),
        grouped(result.lost)
    ))
}

fn plan(options: &LoadOptions) -> Result<LoadPlan, Failure> {
    let beside = &options.beside;
    let path = match options.target.resource.as_str() {
        "/" => "/request",
        path => path,
    };
    let arrival = match (options.rate, &options.phases) {
        (Some(rate), _) => ArrivalProcess::Rate(rate),
        (None, Some(phases)) => ArrivalProcess::Phases(phases.clone()),
        (None, None) => ArrivalProcess::Closed(options.outstanding.unwrap_or(1)),
    };
    Ok(LoadPlan {
        target: options.target.address()?,
        request: RequestPlan {
            resource: options.path.clone().unwrap_or_else(|| path.to_owned()),
            delivery: if options.con { Confirmability::Confirmable } else { Confirmability::NonConfirmable },
            bytes: options.size,
            expected: (!options.no_expect).then(|| options.expect.clone()),
        },
        clients: options.clients,
        arrival,
        duration: options.duration,
        warm_up: options.warm_up,
        time_limit: options.time_limit,
        window: beside.windows,
        flood: beside.flood.map(|ports| Flood { ports, rate: beside.flood_rate.unwrap_or(f64::from(ports)) }),
        server_process: beside.server_pid,
    })
}

/// Another CPU than the generator's, where that one is known.
fn responder_cpu(generator_cpu: Option<usize>) -> Option<usize> {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    generator_cpu.map(|cpu| if cpu == 0 { count.saturating_sub(1).max(1) } else { cpu - 1 })
}

/// The result for people.
fn text(result: &LoadResult) -> String {
    let LoadResult { counts, generator, .. } = result;
    let codes: String = counts.codes.iter().map(|(code, count)| format!(" {code} {}", grouped(*count))).collect();
    let mut lines = vec![
        format!(
            "served {}/s of {}/s offered for {} s{}",
            rounded(result.served_per_s),
            rounded(result.offered_per_s),
            rounded(result.seconds),
            response_times(&result.latency)
        ),
        format!(
            "sent {} served {} rejected {} wrong {} lost {} (late {}) duplicates {} unexpected {};{codes}",
            grouped(counts.sent),
            grouped(counts.served),
            grouped(counts.rejected),
            grouped(counts.wrong),
            grouped(counts.lost),
            grouped(counts.late),
            grouped(counts.duplicates),
            grouped(counts.unexpected)
        ),
        format!(
            "generator busy {} % of its time{}{}",
            rounded(generator.busy * 100.0),
            generator.slip_p99_us.map_or(String::new(), |slip| format!(", 99 % sent within {} µs", rounded(slip))),
            if generator.generator_limited { "; it limits these figures, not the server" } else { "" }
        ),
    ];
    lines.extend(result.generator_capacity.as_ref().map(|capacity| {
        format!(
            "generator capacity {}/s, {} for each second that it is busy",
            rounded(capacity.served_per_s),
            rounded(capacity.served_per_busy_s)
        )
    }));
    lines.extend(result.server.as_ref().map(|server| {
        format!(
            "server {} CPU s, {} served for each, {} KiB of memory",
            rounded(server.cpu_s),
            server.served_per_cpu_s.map_or_else(|| "–".to_owned(), rounded),
            grouped(server.resident_kib)
        )
    }));
    lines.extend(result.windows.iter().map(|window| {
        format!(
            "from {} s: offered {} served {} rejected {} lost {} answered {}{}",
            rounded(window.start_s),
            window.offered,
            window.served,
            window.rejected,
            window.lost,
            window.answered,
            response_times(&window.latency)
        )
    }));
    lines.join("\n")
}

/// The quantiles that there are.
fn response_times(times: &ResponseTimes) -> String {
    let named = [
        ("p50", times.p50_us),
        ("p90", times.p90_us),
        ("p99", times.p99_us),
        ("p99.9", times.p999_us),
        ("max", times.max_us),
    ];
    let told = named.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", rounded(value?))));
    let told: String = told.collect();
    if told.is_empty() { told } else { format!("; response time in µs:{told}") }
}
