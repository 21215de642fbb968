//! `thalweg view`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use thalweg_view::{View, ViewOptions, Visitors};

use super::recording::type_source;
use super::topic::{SelectionOptions, TypeFiles};
use crate::interrupt::Interrupt;
use crate::network_options::MemberOptions;
use crate::outcome::{Failure, InLine, print_either, remark};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg view",
    "thalweg view /scan '/camera/*' --exclude '*raw' --listen 127.0.0.1:8765 --latched-depth 100"
))]
/// Shows topics of any type in Foxglove and Lichtblick while they are written: open the connection ws://127.0.0.1:8765 there. Samples
/// go as they are on the wire, and a topic is read only while somebody looks at it, or while its writers keep samples for late readers.
/// A client that reads slowly holds nobody back: samples that find no room in memory are dropped, counted and told.
pub struct ViewerOptions {
    #[command(flatten)]
    /// The topics.
    pub selection: SelectionOptions,

    /// Let clients connect at ADDRESS; port 0 lets the system choose (default: 127.0.0.1:8765).
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8765", hide_default_value = true)]
    pub listen: SocketAddr,

    /// Let everybody read the topics who reaches the address of --listen; the protocol has no passwords (default: only programs of
    /// this host can, at an address such as 127.0.0.1).
    #[arg(long)]
    pub expose: bool,

    /// Let pages connect that a browser has from ORIGIN, such as `https://lab.example` or `http://*.local:8080`, once for each (default:
    /// those of this host and of app.foxglove.dev).
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub origins: Vec<String>,

    /// Show the last N samples of each instance to clients that come later, of writers that keep so many for late readers; 0 shows
    /// them what comes from then on (default: 100).
    #[arg(long, value_name = "N", default_value = "100", hide_default_value = true)]
    pub latched_depth: usize,

    /// Let SIZE bytes of samples wait for each client; further ones are dropped and counted, the oldest of the topic that holds the
    /// most first (default: 64M).
    #[arg(long, value_name = "SIZE", default_value = "64M", hide_default_value = true, value_parser = crate::parse::size)]
    pub client_memory: u64,

    /// Call the connection NAME in clients (default: thalweg and the domain).
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Exit after SECONDS (default: go on until Ctrl-C).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub duration: Option<Duration>,

    /// Print the counts as one JSON object (default: one line of text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// Where types come from.
    pub files: TypeFiles,

    #[command(flatten)]
    /// Membership in the domain.
    pub member: MemberOptions,
}

/// Shows topics until it is told to end.
///
/// # Errors
/// An option cannot be used, the domain cannot be joined, or the address is taken.
pub fn run(options: &ViewerOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let listen = options.listen;
    if !options.expose && !listen.ip().is_loopback() {
        return Err(Failure::Usage(format!(
            "at {listen} everybody in the network could read the topics, as the protocol has no passwords: give --expose if that is \
             meant, or listen at 127.0.0.1:{} and connect through ssh -L",
            listen.port()
        )));
    }
    let participant = options.member.participant()?;
    let types = type_source(&options.files);
    let view_options = ViewOptions {
        listen,
        name: options.name.clone().unwrap_or_else(|| format!("thalweg, domain {}", options.member.network.domain)),
        visitors: Visitors::new(options.origins.clone()),
        topics: options.selection.selection(),
        latched_depth: options.latched_depth,
        client_bytes_max: usize::try_from(options.client_memory).unwrap_or(usize::MAX),
    };
    let mut view = View::start(&participant, view_options, &types)
        .map_err(|error| Failure::Failed(format!("no client can connect at {listen}: {error}; --listen chooses")))?;
    remark(format_args!("clients connect to ws://{}", view.address()));
    let until = options.duration.map(|duration| Instant::now() + duration);
    while !interrupt.came() && until.is_none_or(|until| Instant::now() < until) {
        view.look().iter().map(InLine).for_each(remark);
        std::thread::sleep(LOOK_PERIOD);
    }
    let summary = view.summary();
    drop(view);
    print_either(options.json, &summary, &summary)
}

/// Interval at which topics and wishes of clients are looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
