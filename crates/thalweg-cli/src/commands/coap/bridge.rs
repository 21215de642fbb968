//! `thalweg coap bridge`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use thalweg_coap::data_space::{Bridge, Changes, Exporter, Types};
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::resource::LocalStore;

use super::protection::ServerProtection;
use super::sensors::Sensors;
use crate::interrupt::Interrupt;
use crate::network_options::MemberOptions;
use crate::outcome::{Failure, print_line, remark};

/// Options of `coap bridge`.
#[derive(Args, Debug)]
pub struct BridgeOptions {
    /// Listen for CoAP on this address (default: 127.0.0.1:5683); port 0 for a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5683", hide_default_value = true)]
    pub bind: SocketAddr,

    /// Read the types of topics from the IDL in FILE; may be repeated (default: string, bytes and ShapeType of `thalweg pub`).
    #[arg(long = "idl", value_name = "FILE")]
    pub idl: Vec<PathBuf>,

    /// Also make topics coap/sensors/… of this host's sensors, which are resources as well (default: topics to resources only).
    #[arg(long)]
    pub sensors: bool,

    #[command(flatten)]
    /// The clients whose protected requests are answered.
    pub protection: ServerProtection,

    #[command(flatten)]
    /// Membership in the data space.
    pub member: MemberOptions,
}

/// Bridges until the user has enough.
///
/// # Errors
/// An IDL file cannot be read, the address cannot be used, or the system refuses sockets or threads.
pub fn run(options: &BridgeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let types = types(&options.idl)?;
    let participant = Arc::new(options.member.participant()?);
    let store = LocalStore::new();
    let mut exporter =
        Exporter::start(Arc::clone(&participant), types.clone(), store.clone()).map_err(Failure::from_cause)?;
    let routes = options.protection.apply(Routes::new().with_catalog(Arc::new(store.clone())));
    let config = ServerConfig { keyring: options.protection.keyring()?, ..ServerConfig::new(options.bind) };
    let server = Server::start(&config, routes).map_err(Failure::from_cause)?;
    let sensors = if options.sensors { Some(Sensors::start(&store, &server)?) } else { None };
    if let Some(sensors) = &sensors {
        for path in sensors.paths() {
            exporter.add(path).map_err(Failure::from_cause)?;
        }
    }
    print_line(format_args!("bridging coap://{}", server.address()))?;
    let mut bridge = Bridge::new(participant, types, store);
    while !interrupt.came() {
        tell(&bridge.refresh());
        std::thread::sleep(LOOK_PERIOD);
        if let Some(failure) = server.failure() {
            return Err(Failure::Failed(format!("a receiver of the CoAP server ended: {failure}")));
        }
    }
    Ok(())
}

fn types(files: &[PathBuf]) -> Result<Types, Failure> {
    let mut types = Types::default();
    for path in files {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("the IDL file {} cannot be read: {error}", path.display())))?;
        types.add_idl(&text).map_err(|error| Failure::Usage(format!("{}, {error}", path.display())))?;
    }
    Ok(types)
}

fn tell(changes: &Changes) {
    for path in &changes.added {
        remark(format_args!("/{path} is there"));
    }
    for path in &changes.removed {
        remark(format_args!("/{path} is gone"));
    }
    for (topic, reason) in &changes.refused {
        remark(format_args!("the topic {topic:?} is no resource: {reason}"));
    }
}

/// Interval at which discovery is polled.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
