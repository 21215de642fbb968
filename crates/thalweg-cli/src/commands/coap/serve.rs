//! `thalweg coap serve`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use thalweg_coap::dtls::SessionLimits;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::rate_limit::PeerRate;
use thalweg_coap::interaction::server::{ClassConfig, GroupRequests, KernelFilter, SecureConfig, Server, ServerConfig};
use thalweg_coap::interaction::streams::{StreamsConfig, parse_listener};
use thalweg_coap::resource::LocalStore;
use thalweg_coap::scheduler::SchedulerConfig;
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_coap::statistics::{FigureSource, add_resources, serve_metrics};

use super::demonstration::{self, TextNote};
use super::protection::ServerProtection;
use super::security::{AccessOptions, CredentialOptions};
use super::sensors::Sensors;
use super::statistics;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// Options of `coap serve`.
#[derive(Args, Debug)]
pub struct ServeOptions {
    /// Listen on this address (default: 127.0.0.1:5683); `0.0.0.0:5683` or `[::]:5683` for every one, port 0 for a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5683", hide_default_value = true)]
    pub bind: SocketAddr,

    /// Run N event loops, each with a socket of its own for the same address (default: 1; one for each processor at most).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub loops: u16,

    /// Let LAW decide the number of threads of a handler pool: vta, vta-printed, vta-authors, queue-delay, fixed:N, or inline for
    /// no pool; CLASS=LAW for one of the classes blocking and device, or resource for the threads of devices, only. May be repeated (default: vta).
    #[arg(long = "law", value_name = "[CLASS=]LAW", value_parser = class_law)]
    pub laws: Vec<(Option<String>, ControlLaw)>,

    /// Let the laws decide every PERIOD, such as 200ms (default: 200ms; the paper's is 1s).
    #[arg(long, value_name = "PERIOD", default_value = "200ms", hide_default_value = true, value_parser = crate::parse::duration)]
    pub period: Duration,

    /// Never have more than N threads (default: 512).
    #[arg(long, value_name = "N", default_value_t = 512, hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads_max: u16,

    /// Answer a host that asks more than N times a second with 4.29 (default: no limit).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub peer_rate: Option<u32>,

    /// Remember N peers, of which half may observe; the one that was silent longest makes room (default: 16384).
    #[arg(long, value_name = "N", default_value_t = 16_384, hide_default_value = true, value_parser = clap::value_parser!(u32).range(2..))]
    pub peers_max: u32,

    /// Accept N registrations for observation of all clients together (default: 16384).
    #[arg(long, value_name = "N", default_value_t = 16_384, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub observers_max: u32,

    /// Let the kernel drop requests that a pool has no room for, `on` or `off`; the statistics tell which (default: on).
    #[arg(long, value_name = "on|off", default_value = "on", hide_default_value = true, value_parser = kernel_filter)]
    pub kernel_filter: KernelFilter,

    /// Run receivers and handlers with this nice value, -20 to 19 (default: 0); below 0 it needs a privilege.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, allow_hyphen_values = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub nice: i32,

    /// Also answer requests to all CoAP nodes (224.0.1.187 and its IPv6 equivalents); needs --bind `0.0.0.0` or `[::]` (default: only those to itself).
    #[arg(long)]
    pub groups: bool,

    /// Print a line of statistics every SECONDS (default: none).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub statistics: Option<Duration>,

    /// Print the statistics as JSON, counted since the start (default: as text, counted since the last line).
    #[arg(long, requires = "statistics")]
    pub json: bool,

    /// Answer GET /metrics over HTTP at this address with the figures as OpenMetrics; port 0 for a free port (default: none).
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,

    /// End when standard input does, for programs that start a server.
    #[arg(long, hide = true)]
    pub end_with_input: bool,

    #[command(flatten)]
    /// The clients whose protected requests are answered.
    pub protection: ServerProtection,

    /// Also serve coaps, CoAP over DTLS, at this address; needs --psk or --certificate (default: no).
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub coaps: Option<SocketAddr>,

    /// Also serve a transport with connections (RFC 8323) at this address: coap+tcp://ADDRESS:PORT, coap+ws://, or coaps+tcp:// and coaps+ws://, which need --certificate. May be repeated (default: none).
    #[arg(long = "listen", value_name = "URI", value_parser = parse_listener)]
    pub listeners: Vec<(Transport, SocketAddr)>,

    #[command(flatten)]
    /// The credentials for coaps, coaps+tcp and coaps+ws.
    pub credentials: CredentialOptions,

    #[command(flatten)]
    /// Who may do what.
    pub access: AccessOptions,
}

/// Serves until Ctrl-C.
///
/// # Errors
/// The address cannot be used, or the system refuses the server something.
pub fn run(options: &ServeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let config = config(options)?;
    let note = Arc::new(TextNote::default());
    let store = LocalStore::new();
    let figures = FigureSource::new();
    let routes = demonstration::routes(&note).with_catalog(Arc::new(store.clone()));
    let routes = options.access.apply(options.protection.apply(add_resources(routes, &figures)));
    let server = Arc::new(Server::start(&config, routes).map_err(Failure::from_cause)?);
    let _sensors = Sensors::start(&store, &server)?;
    note.tell(server.notifier());
    figures.set(&server, &store, None, None);
    let metrics = options.metrics.map(|address| serve_metrics(address, figures, server.scheduler().manager()));
    let metrics = metrics.transpose().map_err(|error| Failure::Failed(format!("no metrics over HTTP: {error}")))?;
    print_line(format_args!("serving coap://{}", server.address()))?;
    if let Some(address) = server.secure_address() {
        print_line(format_args!("serving coaps://{address}"))?;
    }
    for (transport, address) in server.stream_addresses() {
        print_line(format_args!("serving {transport}://{address}"))?;
    }
    if let Some(metrics) = &metrics {
        print_line(format_args!("metrics http://{}/metrics", metrics.address()))?;
    }
    let mut refusals = 0;
    let mut before = server.snapshot();
    let mut told = Instant::now();
    let start = Instant::now();
    let is_over = Arc::new(AtomicBool::new(false));
    if options.end_with_input {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            // An input that cannot be read is one that ended.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            is_over.store(true, Ordering::Relaxed);
        });
    }
    while !interrupt.came() && !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK_PERIOD);
        if let Some(failure) = server.failure() {
            return Err(Failure::Failed(format!("a receiver of the CoAP server ended: {failure}")));
        }
        let now = server.snapshot();
        for refusal in &now.scheduler.refusals[refusals..] {
            remark(refusal);
        }
        refusals = now.scheduler.refusals.len();
        if options.statistics.is_some_and(|period| told.elapsed() >= period) {
            let passed = told.elapsed();
            told = Instant::now();
            match options.json {
                true => print_line(statistics::to_json(&now, start.elapsed())?)?,
                false => print_line(statistics::to_text(&before, &now, passed))?,
            }
            before = now;
        }
    }
    Ok(())
}

fn config(options: &ServeOptions) -> Result<ServerConfig, Failure> {
    if options.groups && !options.bind.ip().is_unspecified() {
        return Err(Failure::Usage("--groups needs --bind 0.0.0.0:PORT or [::]:PORT to hear the group".to_owned()));
    }
    let mut config = ServerConfig::new(options.bind);
    config.loops = usize::from(options.loops);
    for (class, law) in &options.laws {
        let mut is_known = false;
        // Devices are not a class of requests, and an inline law leaves them their threads.
        if class.as_deref().is_none_or(|name| name == "resource") && *law != ControlLaw::Inline {
            config.resource_law = *law;
            is_known = true;
        }
        for known in config.classes.iter_mut().filter(|known| class.as_ref().is_none_or(|name| *name == known.name)) {
            is_known = true;
            known.law = *law;
        }
        if !is_known {
            return Err(Failure::Usage(unknown_class(class.as_deref().unwrap_or_default(), &config.classes)));
        }
    }
    config.endpoint.limits.peers_max = options.peers_max as usize;
    config.endpoint.observe.observers_max = options.observers_max as usize;
    config.peer_rate = options.peer_rate.map(|rate| PeerRate { requests_per_second: rate, burst: rate });
    config.groups = if options.groups { GroupRequests::Heard } else { GroupRequests::Ignored };
    config.kernel_filter = options.kernel_filter;
    let mut scheduler = SchedulerConfig { period: options.period, ..SchedulerConfig::default() };
    scheduler.limits.threads_max = usize::from(options.threads_max);
    scheduler.priorities.interaction = options.nice;
    config.scheduler = scheduler;
    config.keyring = options.protection.keyring()?;
    let credentials = options.credentials.load()?;
    if !options.listeners.is_empty() {
        let streams = StreamsConfig::new(credentials.clone());
        config.streams = Some(StreamsConfig { listeners: options.listeners.clone(), ..streams });
    }
    if let Some(address) = options.coaps {
        config.secure = Some(SecureConfig { address, credentials, limits: SessionLimits::default() });
    }
    Ok(config)
}

fn kernel_filter(text: &str) -> Result<KernelFilter, &'static str> {
    match text {
        "on" => Ok(KernelFilter::On),
        "off" => Ok(KernelFilter::Off),
        _ => Err("on or off is needed"),
    }
}

/// `LAW` or `CLASS=LAW`.
fn class_law(text: &str) -> Result<(Option<String>, ControlLaw), String> {
    let (class, law) = match text.split_once('=') {
        Some((class, law)) => (Some(class.to_owned()), law),
        None => (None, text),
    };
    law.parse()
        .map(|law| (class, law))
        .map_err(|error: thalweg_coap::scheduler::controller::UnknownLaw| error.to_string())
}

fn unknown_class(name: &str, classes: &[ClassConfig]) -> String {
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    format!("there is no resource class \"{name}\"; the classes are {} and resource", names.join(", "))
}

const LOOK_PERIOD: Duration = Duration::from_millis(50);
