//! `thalweg coap`: a CoAP server and clients for any CoAP server.

mod ask;
mod bridge;
mod demonstration;
mod discover;
mod load;
mod named_option;
mod observe;
mod observers;
mod protection;
mod run;
mod security;
mod sensors;
mod serve;
mod statistics;
mod target;
mod top;

use clap::{Args, Subcommand};
use thalweg_coap::message::Code;

use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Speaks CoAP (RFC 7252): serves resources, reads, writes, observes and finds them.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg coap serve --bind 127.0.0.1:5683 & thalweg coap get coap://127.0.0.1/request"
))]
pub struct CoapOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands of `coap`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Serves /request (a greeting, also for groups), /note (a text to write and observe), /slow?ms=N (waits N ms in the handler pool), /busy?us=N
    /// (computes for N µs there), the host's sensors and a simulated one below /sensors, and /.well-known/core until Ctrl-C. A law
    /// adapts the number of threads of the pool while it runs.
    #[command(after_help = crate::after_help!(
        "thalweg coap serve --bind 127.0.0.1:5683",
        "thalweg coap serve --bind 127.0.0.1:5683 --law fixed:4 --statistics 1",
        "thalweg coap serve --bind 127.0.0.1:5683 --oscore server.json --protected /note",
        "thalweg coap serve --coaps 127.0.0.1:5684 --psk keys.json --allow '/note any psk:device-1'"
    ))]
    Serve(serve::ServeOptions),
    /// Reads a resource and prints its representation.
    #[command(after_help = crate::after_help!("thalweg coap get coap://127.0.0.1/request"))]
    Get(ask::RequestOptions),
    /// Writes a resource.
    #[command(after_help = crate::after_help!(
        "thalweg coap put coap://127.0.0.1/note hello",
        "thalweg coap put coap://127.0.0.1/note --body note.txt --option if-none-match"
    ))]
    Put(ask::BodyOptions),
    /// Gives a body to a resource that says what becomes of it.
    #[command(after_help = crate::after_help!("thalweg coap post coap://127.0.0.1/note ' and more'"))]
    Post(ask::BodyOptions),
    /// Deletes a resource.
    #[command(after_help = crate::after_help!("thalweg coap delete coap://127.0.0.1/note"))]
    Delete(ask::RequestOptions),
    /// Reads what a body asks a resource for (RFC 8132) and prints it.
    #[command(after_help = crate::after_help!("thalweg coap fetch coap://127.0.0.1/settings color"))]
    Fetch(ask::BodyOptions),
    /// Changes a part of a resource (RFC 8132).
    #[command(after_help = crate::after_help!("thalweg coap patch coap://127.0.0.1/settings color=red"))]
    Patch(ask::BodyOptions),
    /// Changes a part of a resource, with the same effect when it is repeated (RFC 8132).
    #[command(after_help = crate::after_help!("thalweg coap ipatch coap://127.0.0.1/settings color=red"))]
    Ipatch(ask::BodyOptions),
    /// Asks whether a server is there, and prints how long its answer took (RFC 7252 §4.3).
    #[command(after_help = crate::after_help!("thalweg coap ping 127.0.0.1"))]
    Ping(ask::PingOptions),
    /// Prints a resource now and whenever it changes (RFC 7641), one line each.
    #[command(after_help = crate::after_help!("thalweg coap observe coap://127.0.0.1/note --count 3"))]
    Observe(observe::ObserveOptions),
    /// Lists the resources of a server, or of all servers in reach (RFC 6690).
    #[command(after_help = crate::after_help!(
        "thalweg coap discover 127.0.0.1",
        "thalweg coap discover --query rt=temperature"
    ))]
    Discover(discover::DiscoverOptions),
    /// Makes load for a server as many clients, verifies every answer and reports throughput, response times and losses. It needs
    /// a CPU for itself: it never sleeps.
    #[command(after_help = crate::after_help!(
        "thalweg coap load 127.0.0.1 --clients 64 --outstanding 4 --duration 5",
        "thalweg coap load 127.0.0.1 --clients 10000 --rate 10 --json",
        "thalweg coap load coaps://127.0.0.1 --psk key.json --clients 64 --outstanding 4",
        "thalweg coap load 127.0.0.1 /slow?ms=2 --no-expect --clients 100 --phases 1000x7s,6000x9s,1000x6s --windows 1s"
    ))]
    Load(load::LoadOptions),
    /// Offers the topics that others read or write as resources, /topics/NAME, and with --sensors this host's sensors as topics,
    /// coap/sensors/…, until Ctrl-C. GET gives the newest sample, observe subscribes, PUT writes; as JSON or CBOR.
    #[command(after_help = crate::after_help!(
        "thalweg coap bridge & thalweg pub Square --type ShapeType RED,1,2,3 --rate 1",
        "thalweg coap bridge --bind 0.0.0.0:5683 --idl types.idl --sensors"
    ))]
    Bridge(bridge::BridgeOptions),
    /// Runs a gateway by a file: devices, resources, services, resources of other things, topics, a directory, proxies and the laws of
    /// the pools, until Ctrl-C. SIGHUP reads the file again; what is the same in it goes on undisturbed.
    #[command(after_help = crate::after_help!("thalweg coap run gateway.toml", "thalweg coap run gateway.toml --check"))]
    Run(run::GatewayOptions),
    /// Shows what a gateway does: requests, peers, pools, threads by group with their priorities, adaptive sensing.
    #[command(after_help = crate::after_help!("thalweg coap top 127.0.0.1", "thalweg coap top 127.0.0.1 --once --json"))]
    Top(top::FigureOptions),
}

/// Carries out the action.
///
/// # Errors
/// As the action.
pub fn run(options: &CoapOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let asks_once = !matches!(
        options.action,
        Action::Serve(_) | Action::Observe(_) | Action::Load(_) | Action::Bridge(_) | Action::Run(_) | Action::Top(_)
    );
    if asks_once {
        interrupt.end_at_once();
    }
    match &options.action {
        Action::Serve(options) => serve::run(options, interrupt),
        Action::Get(options) => ask::without_body(Code::GET, options),
        Action::Put(options) => ask::with_body(Code::PUT, options),
        Action::Post(options) => ask::with_body(Code::POST, options),
        Action::Delete(options) => ask::without_body(Code::DELETE, options),
        Action::Fetch(options) => ask::with_body(Code::FETCH, options),
        Action::Patch(options) => ask::with_body(Code::PATCH, options),
        Action::Ipatch(options) => ask::with_body(Code::IPATCH, options),
        Action::Ping(options) => ask::ping(options),
        Action::Observe(options) => observe::run(options, interrupt),
        Action::Discover(options) => discover::run(options),
        Action::Load(options) => load::run(options, interrupt),
        Action::Bridge(options) => bridge::run(options, interrupt),
        Action::Run(options) => run::run(options, interrupt),
        Action::Top(options) => top::run(options, interrupt),
    }
}
