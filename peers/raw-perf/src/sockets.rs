//! UDP sockets as the measurements use a middleware.

use std::net::{Ipv4Addr, SocketAddr};

use peer_protocol::{
    DATA, ECHOES, Fault, Interface, Middleware, OctetArrival, OctetSample, PING, PONG, PeerSetup, ProcessEnd, SAMPLES,
    SampleChannel, SampleSink, TO_READER, Work, to_writer,
};

use crate::reader::Reader;
use crate::writer::Writer;

pub struct Sockets {
    setup: PeerSetup,
    interface: Interface,
}

/// Where readers look for writers, one port for each topic.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 77, 77);

/// What the topics of scenarios are called, with the number of the publisher behind where each has its own.
const SCENARIO: &str = "thalweg_lab_scenario";

/// The topics of the other measurements but those of the readers' words, of which there are so many; their place decides on the port.
const TOPICS: [&str; 6] = [PING, PONG, DATA, SAMPLES, ECHOES, TO_READER];
const READERS_MAX: usize = 64;

impl Middleware for Sockets {
    const NAME: &'static str = "UDP sockets";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const JOINS_WRITERS: bool = false;

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn work(_setup: &PeerSetup) -> Work {
        Work::Raw
    }

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<Sockets, Fault> {
        Ok(Sockets { setup: setup.clone(), interface: Interface::with_address(setup.address)? })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.setup.octets()] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        let door = self.door(channel)?;
        // Nothing may wait for a sample that is due a period later.
        let is_hurried = channel.topic.starts_with(SCENARIO);
        let opened = Writer::open(door, GROUP, &self.interface, (self.setup.profile, is_hurried));
        opened.map_err(|error| Fault::Here(format!("writer at {door}: {error}")))
    }

    fn reader<S: SampleSink<Sockets>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
        let door = self.door(channel)?;
        let opened = Reader::open(door, (&self.setup, &self.interface), channel.best_effort, sink);
        opened.map_err(|error| Fault::Here(format!("reader of {door}: {error}")))
    }
}

impl Sockets {
    /// Below the ports that systems hand out and those of Zenoh; domains that differ by 45 share theirs.
    fn door(&self, channel: &SampleChannel) -> Result<SocketAddr, String> {
        const FIRST: usize = 15_000;
        /// Of the topics above and of the publishers that a scenario may have.
        const PLACES: usize = 192;
        const OTHERS: usize = TOPICS.len() + READERS_MAX;
        let words = || (0..READERS_MAX).position(|reader| to_writer(reader) == channel.topic);
        let place = match channel.topic.strip_prefix(SCENARIO) {
            Some("") => Some(OTHERS),
            Some(number) => {
                number.strip_prefix('_').and_then(|number| number.parse().ok()).map(|number: usize| OTHERS + 1 + number)
            }
            None => TOPICS
                .iter()
                .position(|topic| *topic == channel.topic)
                .or_else(|| words().map(|reader| TOPICS.len() + reader)),
        };
        let place = place.filter(|place| *place < PLACES);
        let place = place.ok_or_else(|| format!("no port belongs to the topic {}", channel.topic))?;
        let port = FIRST + self.setup.domain as usize % 45 * PLACES + place;
        u16::try_from(port).map(|port| (GROUP, port).into()).map_err(|error| error.to_string())
    }
}
