//! An observer that nothing is told costs little: an allocator that counts watches what a server holds for it.

use std::net::Ipv4Addr;

use thalweg_base::time::Instant;
use thalweg_coap::endpoint::{CoapOutbox, Config, Endpoint, EndpointEvent, Peer};
use thalweg_coap::message::{
    CoapMessage, Code, MessageId, MessageType, MessageWriter, OptionNumber, Response, Token, content_format,
};
use thalweg_testing::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// They fill the tables, which double, to three quarters, as 100,000 do.
const OBSERVERS: u32 = 25_000;
/// With the peer, and with the room of the tables that is not used: 100,000 observers in 80 MB.
const BYTES_MAX: i64 = 800;

/// Registers a client at an address of its own.
fn register(endpoint: &mut Endpoint, outbox: &mut CoapOutbox, number: u32) {
    let mut datagram = Vec::new();
    let token = Token::from_u64(u64::from(number));
    let mut writer =
        MessageWriter::new(&mut datagram, MessageType::NonConfirmable, Code::GET, MessageId(number as u16), &token);
    writer.uint(OptionNumber::OBSERVE, 0);
    for segment in ["sensors", "simulated0", "mean"] {
        writer.option(OptionNumber::URI_PATH, segment.as_bytes());
    }
    let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + number);
    endpoint.handle_datagram(Instant::ZERO, Peer::from((address, 5683_u16)), &datagram);
    while let Some(event) = endpoint.poll_event() {
        if let EndpointEvent::Request { exchange, request, .. } = event {
            let response = Response::content("21.5", content_format::TEXT).observable();
            endpoint.respond(Instant::ZERO, exchange, response).expect("it is not answered yet");
            endpoint.recycle(request);
        }
    }
    assert!(endpoint.poll_transmit(outbox));
    let answer = outbox.iter().next().expect("an answer");
    let answer = CoapMessage::parse(answer.bytes).expect("a message");
    assert!(answer.options.value(OptionNumber::OBSERVE).is_some(), "{number} observes");
}

#[test]
fn an_idle_observer_costs_less_than_800_bytes() {
    let mut config = Config::default();
    config.limits.peers_max = 3 * OBSERVERS as usize;
    config.observe.observers_max = OBSERVERS as usize;
    let mut outbox = CoapOutbox::default();
    let before = allocations::bytes_held();
    let mut endpoint = Endpoint::new(config, [1, 2]);
    (0..OBSERVERS).for_each(|number| register(&mut endpoint, &mut outbox, number));
    let each = (allocations::bytes_held() - before) / i64::from(OBSERVERS);
    assert_eq!(endpoint.observers("/sensors/simulated0/mean"), OBSERVERS as usize);
    assert!((1..BYTES_MAX).contains(&each), "{each} bytes for each observer");
}
