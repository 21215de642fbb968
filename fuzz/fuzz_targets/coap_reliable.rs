#![no_main]
//! Bytes and messages of a connection, in pieces, to a server that answers and to a client that asks.

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_coap::endpoint::EndpointEvent;
use thalweg_coap::endpoint::reliable::{Framing, ReliableEndpoint, ReliableLimits};
use thalweg_coap::identity::{Caller, Transport};
use thalweg_coap::message::{Observe, RequestBuf, Response, content_format};

fuzz_target!(|input: (bool, Vec<Vec<u8>>)| {
    let (is_stream, pieces) = input;
    let framing = if is_stream { Framing::Stream } else { Framing::Messages };
    let caller = Caller::anonymous(([127, 0, 0, 1], 40_000).into(), Transport::Tcp);
    let limits = ReliableLimits { inbound_bytes_max: 100_000, ..ReliableLimits::default() };
    let mut endpoint = ReliableEndpoint::new(limits, [1, 2]);
    let id = endpoint.open(Instant::ZERO, caller, framing);
    let _ = endpoint.request(id, RequestBuf::get("/a").with_observe(Observe::Register));
    let _ = endpoint.request(id, RequestBuf::put("/b", vec![7; 200_000]));
    let mut now = Instant::ZERO;
    for piece in &pieces {
        now = Instant::from_nanos(now.as_nanos() + 1_000_000_000);
        endpoint.begin_turn(now);
        endpoint.handle_bytes(now, id, piece);
        while let Some(event) = endpoint.poll_event() {
            let EndpointEvent::Request { exchange, request, .. } = event else { continue };
            let response = Response::content(vec![1; request.view().payload.len() + 2000], content_format::TEXT);
            let _ = endpoint.respond(now, exchange, response.observable());
            endpoint.recycle(request);
        }
        endpoint.notify(now, "/a");
        endpoint.handle_timeout(now);
        let count = endpoint.outgoing(id).len();
        endpoint.handle_sent(now, id, count / 2);
        assert!(endpoint.counts().inbound_bytes <= 100_000);
    }
    endpoint.handle_end(id);
    let counts = endpoint.counts();
    assert_eq!((counts.inbound_bytes, counts.outbound_bytes, counts.observers), (0, 0, 0));
});
