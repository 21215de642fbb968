//! Endpoints against each other, message by message, and in simulated weather.

mod blocks;
mod bounds;
mod client;
mod latest_state;
mod observe;
mod protected;
mod server;
mod simulation;
mod strangers;

use std::net::Ipv4Addr;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::*;
use crate::message::{CoapMessage, CoapRequest, Code, MessageType, OptionNumber, RequestBuf, Response};

const CLIENT: u16 = 40_000;
const SERVER: u16 = 5683;

/// Not on this host: such a peer has to prove its address.
fn peer(port: u16) -> Peer {
    Peer::from((Ipv4Addr::new(192, 0, 2, 1), port))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| byte.is_ascii_hexdigit()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// One line about a datagram; message IDs and tokens are random, so they are left out.
fn describe(bytes: &[u8]) -> String {
    let message = CoapMessage::parse(bytes).expect("an endpoint sends CoAP");
    let kind = match message.message_type {
        MessageType::Confirmable => "CON",
        MessageType::NonConfirmable => "NON",
        MessageType::Acknowledgement => "ACK",
        MessageType::Reset => "RST",
    };
    let mut text = format!("{kind} {}", message.code);
    for (number, value) in message.options {
        text += &match number {
            OptionNumber::URI_PATH => format!(" /{}", value.escape_ascii()),
            OptionNumber::BLOCK1 | OptionNumber::BLOCK2 => {
                let block = crate::message::Block::parse(value).unwrap();
                let more = u8::from(block.more);
                format!(" {number}={}/{more}/{}", block.number, block.size())
            }
            OptionNumber::ETAG | OptionNumber::ECHO | OptionNumber::REQUEST_TAG => format!(" {number}"),
            _ => format!(" {number}={}", crate::message::parse_uint(value).unwrap_or(u32::MAX)),
        };
    }
    if !message.payload.is_empty() {
        text += &format!(" [{}]", message.payload.len());
    }
    text
}

/// An endpoint with a clock of its own.
struct Host {
    endpoint: Endpoint,
    now: Instant,
    outbox: CoapOutbox,
}

impl Host {
    fn new(config: Config) -> Host {
        Host {
            endpoint: Endpoint::new(config, [7, 11]),
            now: Instant::from_nanos(1 << 40),
            outbox: CoapOutbox::default(),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.endpoint.handle_timeout(self.now);
    }

    fn receive(&mut self, port: u16, bytes: &[u8]) {
        self.endpoint.handle_datagram(self.now, peer(port), bytes);
    }

    /// All datagrams that are ready.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        self.endpoint.poll_transmit(&mut self.outbox);
        self.outbox.iter().map(|datagram| datagram.bytes.to_vec()).collect()
    }

    fn lines(&mut self) -> Vec<String> {
        self.sent().iter().map(|bytes| describe(bytes)).collect()
    }

    fn events(&mut self) -> Vec<EndpointEvent> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// Answers each request that waits; gives what they were.
    fn serve(&mut self, handler: impl Fn(&CoapRequest<'_>) -> Response) -> Vec<RequestBuf> {
        let mut served = Vec::new();
        for event in self.events() {
            if let EndpointEvent::Request { exchange, request, .. } = event {
                self.endpoint.respond(self.now, exchange, handler(&request.view())).unwrap();
                served.push(request);
            }
        }
        served
    }

    /// The exchanges that wait.
    fn exchanges(&mut self) -> Vec<ExchangeId> {
        let exchange = |event| match event {
            EndpointEvent::Request { exchange, .. } => Some(exchange),
            _ => None,
        };
        self.events().into_iter().filter_map(exchange).collect()
    }
}

/// Carries all datagrams between client and server until there are no more; the handler answers at once. Gives one line
/// for each datagram, `>` for those to the server.
fn exchange(client: &mut Host, server: &mut Host, handler: impl Fn(&CoapRequest<'_>) -> Response) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let requests = client.sent();
        for bytes in &requests {
            lines.push(format!("> {}", describe(bytes)));
            server.receive(CLIENT, bytes);
            server.serve(&handler);
        }
        let responses = server.sent();
        for bytes in &responses {
            lines.push(format!("< {}", describe(bytes)));
            client.receive(SERVER, bytes);
        }
        if requests.is_empty() && responses.is_empty() {
            return lines;
        }
        assert!(lines.len() < 10_000, "they do not come to rest");
    }
}

/// The one response that the client got.
#[track_caller]
fn response(client: &mut Host) -> Response {
    match client.events().as_slice() {
        [EndpointEvent::Response { response, .. }] => response.clone(),
        other => panic!("expected one response: {other:?}"),
    }
}

fn hello(_: &CoapRequest<'_>) -> Response {
    Response::content("hello world", 0)
}

/// A handler that must not be asked.
fn nobody(request: &CoapRequest<'_>) -> Response {
    panic!("the handler was asked for {}", request.path())
}

/// A configuration that sends large responses to anybody.
fn trusting() -> Config {
    Config { amplification_max: 0, ..Config::default() }
}
