//! Ends that send nothing more, and still read.

use super::crowds::requests;
use super::*;

/// A server with one connection that has greeted it and said `bytes`, of which one request at a time is under way.
fn server_of_one(bytes: &[u8]) -> (ReliableEndpoint, ConnectionId) {
    let limits = ReliableLimits { exchanges_per_connection_max: 1, ..ReliableLimits::default() };
    let mut server = ReliableEndpoint::new(limits, [3, 4]);
    let end = server.open(at(0), caller(), Framing::Stream);
    server.handle_bytes(at(0), end, &[&[0x00, 0xe1], bytes].concat());
    let sent = server.outgoing(end).len();
    server.handle_sent(at(0), end, sent);
    (server, end)
}

#[test]
fn what_has_arrived_whole_is_answered_before_a_connection_ends() {
    let mut bytes = requests(4);
    bytes.pop();
    let (mut server, end) = server_of_one(&bytes);
    server.handle_input_end(at(1), end);
    let mut answered = 0;
    while let Some(event) = server.poll_event() {
        let EndpointEvent::Request { exchange, .. } = event else { panic!("{event:?}") };
        assert!(!server.is_over(end), "{answered}");
        // Longer than an end may take for the rest of a message.
        server.handle_timeout(at(40 + answered));
        server.respond(at(40 + answered), exchange, Response::content("x", content_format::TEXT)).unwrap();
        answered += 1;
        let sent = server.outgoing(end).len();
        assert!(sent > 0);
        server.handle_sent(at(40 + answered), end, sent);
        server.handle_input_end(at(40 + answered), end);
    }
    assert_eq!(answered, 3, "the last one is not whole");
    assert!(server.is_over(end) && !server.is_lost(end));
    assert_eq!(server.counts().inbound_bytes, 0);
}

#[test]
fn a_connection_with_nothing_under_way_ends_with_what_the_other_end_sends() {
    let (mut server, end) = server_of_one(&[0x00]);
    assert!(!server.is_over(end));
    server.handle_input_end(at(1), end);
    assert!(server.is_over(end) && server.outgoing(end).is_empty());
    assert_eq!(server.poll_dirty(), Some(end), "its driver closes it");
}
