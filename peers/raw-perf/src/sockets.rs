//! UDP sockets as the measurements use a middleware.

use std::net::{Ipv4Addr, SocketAddr};

use peer_protocol::{Channel, Middleware, Setup, Sink, Wait};

use crate::reader::Reader;
use crate::writer::Writer;

pub struct Sockets(Setup);

/// Where readers look for writers, one port for each topic.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 77);

/// What the topics of scenarios are called, with the number of the publisher behind where each has its own.
const SCENARIO: &str = "thalweg_lab_scenario";

/// The topics of the other measurements; their place decides on the port.
const TOPICS: [&str; 5] = ["perf_ping", "perf_pong", "perf_throughput", "thalweg_burst", "thalweg_burst_echo"];

impl Middleware for Sockets {
    const PEER: &'static str = "UDP sockets";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const PROGRAM: &'static str = "raw-perf";
    const WAITS: &'static [Wait] = &[Wait::Block, Wait::Listener, Wait::Busy];
    const NO_BATCH: Option<&'static str> = None;

    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &Setup) -> Result<Sockets, String> {
        Ok(Sockets(setup.clone()))
    }

    fn writer(&self, channel: &Channel) -> Result<Writer, String> {
        let door = self.door(channel)?;
        let opened = Writer::open(door, GROUP, &self.0.interface, self.0.profile);
        opened.map_err(|error| format!("writer at {door}: {error}"))
    }

    fn reader(&self, channel: &Channel, sink: impl Sink) -> Result<Reader, String> {
        let door = self.door(channel)?;
        Reader::open(door, &self.0, channel.best_effort, sink).map_err(|error| format!("reader of {door}: {error}"))
    }
}

impl Sockets {
    /// Below the ports that systems hand out and those of Zenoh; domains that differ by 64 share theirs.
    fn door(&self, channel: &Channel) -> Result<SocketAddr, String> {
        const FIRST: usize = 15_000;
        /// Of the topics above and of the publishers that a scenario may have.
        const PLACES: usize = 128;
        let place = match channel.topic.strip_prefix(SCENARIO) {
            Some("") => Some(TOPICS.len()),
            Some(number) => number
                .strip_prefix('_')
                .and_then(|number| number.parse().ok())
                .map(|number: usize| TOPICS.len() + 1 + number),
            None => TOPICS.iter().position(|topic| *topic == channel.topic),
        };
        let place = place.filter(|place| *place < PLACES);
        let place = place.ok_or_else(|| format!("no port belongs to the topic {}", channel.topic))?;
        let port = FIRST + self.0.domain as usize % 64 * PLACES + place;
        u16::try_from(port).map(|port| (GROUP, port).into()).map_err(|error| error.to_string())
    }
}
