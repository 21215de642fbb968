//! Protected messages: any option value, any datagram, and a genuine request with any bytes changed. Nothing panics, and
//! nothing is believed but what was protected.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use thalweg_coap::endpoint::{CoapOutbox, Config, Confirmability, Endpoint, EndpointEvent, Peer};
use thalweg_coap::message::{RequestBuf, Response};
use thalweg_coap::oscore::{Context, ContextParameters, Keyring, OneRun, OscoreHeader, Past};
use thalweg_rtps::time::Instant;

fn peer(port: u16) -> Peer {
    Peer::from(([127, 0, 0, 1], port))
}

fn context(sender: &[u8], recipient: &[u8]) -> Arc<Context> {
    let parameters = ContextParameters::new(&[7; 16], sender, recipient).expect("they are sound");
    Context::new(&parameters, 0, Box::new(OneRun), Past::Unused)
}

/// The requests that the server believes to be protected, which are answered.
fn believed(server: &mut Endpoint, now: Instant) -> Vec<RequestBuf> {
    let mut found = Vec::new();
    while let Some(event) = server.poll_event() {
        let EndpointEvent::Request { exchange, request, .. } = event else { continue };
        let is_protected = server.is_protected(exchange);
        server.respond(now, exchange, Response::content("state", 0)).expect("it is not answered yet");
        if is_protected {
            found.push(request);
        }
    }
    found
}

fuzz_target!(|input: &[u8]| {
    if let Some(header) = OscoreHeader::parse(input) {
        assert_eq!(header.encode(), input);
    }
    let now = Instant::from_nanos(1 << 40);
    let mut outbox = CoapOutbox::default();
    let (mut client, mut server) = (Endpoint::new(Config::default(), [1, 2]), Endpoint::new(Config::default(), [3, 4]));
    server.set_keyring(Arc::new(Keyring::new([context(b"s", b"c")]).expect("there is only one")));
    server.handle_datagram(now, peer(1), input);
    assert!(believed(&mut server, now).is_empty(), "nobody has the keys");

    let request = RequestBuf::put("/a?b", "body");
    client
        .request_protected(now, peer(2), request.clone(), Confirmability::Confirmable, &context(b"c", b"s"))
        .expect("sent");
    client.poll_transmit(&mut outbox);
    let datagram: Vec<u8> = outbox.iter().next().expect("a datagram").bytes.to_vec();
    let mut changed = datagram.clone();
    for change in input.chunks_exact(2) {
        let place = usize::from(change[0]) % changed.len();
        changed[place] ^= change[1];
    }
    server.handle_datagram(now, peer(1), &changed);
    assert!(
        believed(&mut server, now)
            .iter()
            .all(|found| found.view().payload == b"body" && found.code() == request.code())
    );

    server.poll_transmit(&mut outbox);
    server.handle_datagram(now, peer(3), &datagram);
    believed(&mut server, now);
    server.poll_transmit(&mut outbox);
    for answer in outbox.iter() {
        let mut changed = answer.bytes.to_vec();
        for change in input.chunks_exact(2) {
            let place = usize::from(change[0]) % changed.len();
            changed[place] ^= change[1];
        }
        client.handle_datagram(now, peer(2), &changed);
    }
    while let Some(event) = client.poll_event() {
        if let EndpointEvent::Response { response, .. } = event {
            assert_eq!(&*response.payload, b"state");
        }
    }
});
