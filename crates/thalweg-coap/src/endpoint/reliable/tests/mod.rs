mod crowds;
mod ending;
mod latest_state;
mod others;
mod uploads;

use std::net::SocketAddr;

use proptest::prelude::*;
use thalweg_base::time::Instant;

use super::*;
use crate::endpoint::RequestError;
use crate::identity::Transport;
use crate::message::{ETag, Observe, Response, content_format};

fn caller() -> Caller {
    let address: SocketAddr = ([192, 0, 2, 1], 40_000).into();
    Caller::anonymous(address, Transport::Tcp)
}

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// Two ends of one connection, with bytes between them that are cut as one likes.
struct Pair {
    client: ReliableEndpoint,
    server: ReliableEndpoint,
    ends: (ConnectionId, ConnectionId),
    framing: Framing,
    now: Instant,
    /// Bytes that are moved at a time.
    piece: usize,
    /// What the resource at `/body` is.
    body: Vec<u8>,
    /// Requests that came: method, path, length of the body.
    asked: Vec<(Code, String, usize)>,
}

impl Pair {
    fn new(framing: Framing, limits: ReliableLimits) -> Pair {
        let (mut client, mut server) = (ReliableEndpoint::new(limits, [1, 2]), ReliableEndpoint::new(limits, [3, 4]));
        let ends = (client.open(at(0), caller(), framing), server.open(at(0), caller(), framing));
        Pair { client, server, ends, framing, now: at(0), piece: usize::MAX, body: Vec::new(), asked: Vec::new() }
    }

    /// Moves bytes and answers requests until nothing happens; returns the client's events.
    fn run(&mut self) -> Vec<EndpointEvent> {
        let mut events = Vec::new();
        loop {
            self.client.begin_turn(self.now);
            self.server.begin_turn(self.now);
            let is_moved = self.carry(true) | self.carry(false);
            events.extend(std::iter::from_fn(|| self.client.poll_event()));
            let is_answered = self.answer();
            if !is_moved && !is_answered {
                return events;
            }
        }
    }

    /// Moves what one end has ready to the other.
    fn carry(&mut self, is_from_client: bool) -> bool {
        let (from, to, one, other) = match is_from_client {
            true => (&mut self.client, &mut self.server, self.ends.0, self.ends.1),
            false => (&mut self.server, &mut self.client, self.ends.1, self.ends.0),
        };
        let ready = from.outgoing(one);
        let count = if self.framing == Framing::Stream { ready.len().min(self.piece) } else { ready.len() };
        let bytes = ready[..count].to_vec();
        from.handle_sent(self.now, one, count);
        if !bytes.is_empty() {
            to.handle_bytes(self.now, other, &bytes);
        }
        !bytes.is_empty()
    }

    fn answer(&mut self) -> bool {
        let mut is_answered = false;
        while let Some(event) = self.server.poll_event() {
            let EndpointEvent::Request { exchange, request, .. } = event else { continue };
            let view = request.view();
            self.asked.push((view.code, view.path(), view.payload.len()));
            if !view.code.is_safe() {
                self.body = view.payload.to_vec();
            }
            let response = match view.code.is_safe() {
                true => {
                    let tag = ETag::new(&self.body.len().to_be_bytes()).unwrap();
                    Response::content(self.body.clone(), content_format::OCTET_STREAM).with_etag(tag).observable()
                }
                false => Response::new(Code::CHANGED),
            };
            self.server.respond(self.now, exchange, response).unwrap();
            is_answered = true;
        }
        is_answered
    }

    #[track_caller]
    fn ask(&mut self, request: RequestBuf) -> Response {
        let id = self.client.request(self.ends.0, request).unwrap();
        match self.run().pop() {
            Some(EndpointEvent::Response { request, response, .. }) if request == id => response,
            other => panic!("an answer should come: {other:?}"),
        }
    }

    /// The signal that the server sent last, as far as the client has not read it.
    fn last_signal(&mut self) -> Option<(Code, String)> {
        let bytes = self.server.outgoing(self.ends.1).to_vec();
        let mut rest = &bytes[..];
        let mut last = None;
        while let Ok(Some(len)) = message_len(rest) {
            let message = ReliableMessage::parse(&rest[..len], Framing::Stream).unwrap();
            last = Some((message.code, String::from_utf8_lossy(message.payload).into_owned()));
            rest = &rest[len..];
        }
        last
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn bodies_of_every_size_go_both_ways_however_the_stream_is_cut() {
    for framing in [Framing::Stream, Framing::Messages] {
        for piece in [1, 7, 1000, usize::MAX] {
            for len in [0, 1, 12, 13, 268, 269, 1024, 65_804, 65_805, 66_432, 66_433, 300_000] {
                if piece == 1 && len > 70_000 {
                    continue;
                }
                let mut pair = Pair { piece, ..Pair::new(framing, ReliableLimits::default()) };
                let put = pair.ask(RequestBuf::put("/body", pattern(len)));
                assert_eq!((put.code, pair.body.len()), (Code::CHANGED, len), "{framing:?} {piece}");
                let got = pair.ask(RequestBuf::get("/body"));
                assert!(*got.payload == pattern(len)[..], "{framing:?} {piece} {len}: {}", got.payload.len());
                assert_eq!(pair.asked.last(), Some(&(Code::GET, "/body".to_owned(), 0)));
            }
        }
    }
}

#[test]
fn large_bodies_take_joined_blocks_and_small_ones_where_the_other_end_takes_no_others() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    pair.ask(RequestBuf::put("/body", pattern(640 << 10)));
    let sent = pair.client.counts().sent;
    assert!(sent < 16, "64 blocks go in one message: {sent}");
    let small = ReliableLimits { message_bytes_max: 1152, ..ReliableLimits::default() };
    let mut pair = Pair::new(Framing::Stream, small);
    pair.ask(RequestBuf::put("/body", pattern(64 << 10)));
    assert_eq!((pair.client.counts().sent, pair.body == pattern(64 << 10)), (65, true));
    assert!(*pair.ask(RequestBuf::get("/body")).payload == pattern(64 << 10)[..]);
}

#[test]
fn an_observer_gets_each_change_in_order_until_it_ends_the_observation() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    pair.body = b"zero".to_vec();
    let id = pair.client.request(pair.ends.0, RequestBuf::get("/body").with_observe(Observe::Register)).unwrap();
    assert_eq!(pair.run().len(), 1);
    assert_eq!(pair.server.counts().observers, 1);
    for text in ["one", "two", "three"] {
        pair.body = text.into();
        pair.server.notify(pair.now, "/body");
        let events = pair.run();
        let [EndpointEvent::Response { request, response, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!((*request, &*response.payload), (id, text.as_bytes()));
        assert!(response.observe.is_some());
    }
    pair.client.cancel(id);
    pair.run();
    pair.server.notify(pair.now, "/body");
    assert_eq!((pair.run(), pair.server.counts().observers), (vec![], 0));
}

#[test]
fn a_large_state_is_observed_block_by_block() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits { message_bytes_max: 1152, ..ReliableLimits::default() });
    pair.body = pattern(5000);
    pair.client.request(pair.ends.0, RequestBuf::get("/body").with_observe(Observe::Register)).unwrap();
    for len in [5000, 7000] {
        let events = pair.run();
        let Some(EndpointEvent::Response { response, .. }) = events.last() else { panic!("{events:?}") };
        assert!(*response.payload == pattern(len)[..], "{}", response.payload.len());
        pair.body = pattern(7000);
        pair.server.notify(pair.now, "/body");
    }
}

#[test]
fn a_large_state_that_changes_between_its_blocks_is_fetched_anew() {
    // The change is told before the next block is asked for, or after it was answered.
    for order in 0..2 {
        let limits = ReliableLimits { message_bytes_max: 1152, ..ReliableLimits::default() };
        let mut pair = Pair::new(Framing::Stream, limits);
        pair.body = pattern(5000);
        pair.client.request(pair.ends.0, RequestBuf::get("/body").with_observe(Observe::Register)).unwrap();
        while pair.asked.is_empty() {
            pair.carry(true);
            pair.carry(false);
            pair.answer();
        }
        pair.carry(false);
        pair.body = pattern(7000);
        if order == 1 {
            pair.carry(true);
            pair.answer();
        }
        pair.server.notify(pair.now, "/body");
        let events = pair.run();
        let responses = events.iter().map(|event| match event {
            EndpointEvent::Response { response, .. } => response,
            other => panic!("{order}: {other:?}"),
        });
        let bodies: Vec<_> = responses.map(|response| (response.payload.len(), response.observe.is_some())).collect();
        assert!(!bodies.is_empty() && bodies.iter().all(|body| *body == (7000, true)), "{order}: {bodies:?}");
        pair.body = pattern(3000);
        pair.server.notify(pair.now, "/body");
        let events = pair.run();
        let Some(EndpointEvent::Response { response, .. }) = events.last() else { panic!("{order}: {events:?}") };
        assert_eq!(response.payload.len(), 3000, "{order}");
    }
}

#[test]
fn an_observer_that_takes_nothing_is_not_notified_and_gets_the_latest_state_later() {
    let limits = ReliableLimits { outbound_bytes_max: 4096, ..ReliableLimits::default() };
    let mut pair = Pair::new(Framing::Stream, limits);
    pair.client.request(pair.ends.0, RequestBuf::get("/body").with_observe(Observe::Register)).unwrap();
    pair.run();
    for round in 0..1000_u32 {
        pair.body = vec![round as u8; 500];
        pair.server.notify(pair.now, "/body");
        pair.answer();
        assert!(pair.server.outgoing(pair.ends.1).len() < 4096 + 600, "bounded");
    }
    let events = pair.run();
    assert!(events.len() < 20, "{}", events.len());
    let Some(EndpointEvent::Response { response, .. }) = events.last() else { panic!("nothing came") };
    assert_eq!(&*response.payload, [231; 500], "999 as a byte");
}

#[test]
fn the_connections_end_tells_requests_and_forgets_observers() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    let id = pair.client.request(pair.ends.0, RequestBuf::get("/body").with_observe(Observe::Register)).unwrap();
    pair.run();
    pair.server.handle_end(pair.ends.1);
    pair.client.handle_end(pair.ends.0);
    let observers = std::iter::from_fn(|| pair.server.poll_event()).last();
    assert_eq!(observers, Some(EndpointEvent::Observers { path: "/body".to_owned(), count: 0 }));
    let failed = pair.client.poll_event();
    let is_told = matches!(&failed, Some(EndpointEvent::Failed { request, error: RequestError::Disconnected, .. }) if *request == id);
    assert!(is_told, "{failed:?}");
    assert_eq!(pair.client.request(pair.ends.0, RequestBuf::get("/x")), Err(RequestError::Disconnected));
    assert_eq!((pair.server.counts().connections, pair.server.counts().observers), (0, 0));
}

#[test]
fn a_ping_is_answered_and_a_release_lets_what_is_under_way_end() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    let ping = pair.client.ping(pair.ends.0).unwrap();
    let events = pair.run();
    assert!(matches!(&events[..], [EndpointEvent::Pong { request, .. }] if *request == ping), "{events:?}");
    pair.client.request(pair.ends.0, RequestBuf::get("/body")).unwrap();
    pair.client.release(pair.ends.0);
    assert!(!pair.client.is_over(pair.ends.0));
    assert_eq!(pair.run().len(), 1);
    assert!(pair.client.is_over(pair.ends.0) && pair.server.is_over(pair.ends.1));
}

/// What the server says to bytes that a client sends first.
#[track_caller]
fn check_first(bytes: &[u8], expect: Option<&str>) {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    pair.server.handle_bytes(pair.now, pair.ends.1, bytes);
    let aborted = pair.last_signal().filter(|(code, _)| *code == signal::ABORT).map(|(_, why)| why);
    match expect {
        None => assert_eq!(aborted, None, "{bytes:02x?}"),
        Some(expect) => {
            assert!(aborted.as_ref().is_some_and(|why| why.contains(expect)), "{bytes:02x?}: {aborted:?}");
            assert!(pair.server.is_over(pair.ends.1));
        }
    }
}

#[test]
fn what_is_no_coap_aborts_the_connection_and_says_why() {
    check_first(&[0x00, 0xe1], None);
    check_first(&[0x00, 0xe1, 0x00, 0x00, 0x00, 0x00], None);
    check_first(&[0x01, 0x01, 0x07], Some("CSM"));
    check_first(b"GET / HTTP/1.1\r\n", Some(""));
    check_first(&[0x00, 0xe1, 0x09], Some("token"));
    check_first(&[0x10, 0xe1, 0x10], Some("option of the CSM"));
    check_first(&[0x00, 0xe1, 0xf0, 0xff, 0xff, 0xff, 0xff], Some("Max-Message-Size"));
    check_first(&[0x00, 0xe1, 0x00, 0x20], Some("code class"));
    check_first(&[0x00, 0xe1, 0x10, 0x01, 0xff], Some("payload"));
    // An unknown signal, and a critical option of a request, end nothing.
    check_first(&[0x00, 0xe1, 0x00, 0xee, 0x10, 0x01, 0x90], None);
}

#[test]
fn critical_options_that_are_safe_to_forward_reach_a_driver_that_forwards() {
    let ask = |forwarding: bool, number: u16| {
        let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
        pair.server.set_forwarding(forwarding);
        let request = RequestBuf::get("/body").with_option(OptionNumber(number), b"x");
        pair.client.request(pair.ends.0, request).expect("the connection is there");
        while pair.carry(true) | pair.carry(false) {}
        let Some(EndpointEvent::Request { exchange, .. }) = pair.server.poll_event() else { return None };
        Some(pair.server.unread_option(exchange))
    };
    assert_eq!((ask(false, 2049), ask(true, 2049)), (None, Some(Some(OptionNumber(2049)))));
    assert_eq!((ask(true, 2051), ask(true, OptionNumber::OSCORE.0)), (None, None));
    assert_eq!((ask(false, 2050), ask(true, 2050)), (Some(None), Some(None)));
}

#[test]
fn slow_and_silent_ends_are_given_up() {
    let limits = ReliableLimits::default();
    // Nothing at all; a drop now and then; nothing after the greeting.
    for (bytes, end) in [(&[][..], 10), (&[0x00, 0xe1, 0x40, 0x01][..], 30), (&[0x00, 0xe1][..], 600)] {
        let mut pair = Pair::new(Framing::Stream, limits);
        pair.server.handle_bytes(at(0), pair.ends.1, bytes);
        let sent = pair.server.outgoing(pair.ends.1).len();
        pair.server.handle_sent(at(0), pair.ends.1, sent);
        let mut ended = None;
        for second in 1..700 {
            pair.server.handle_timeout(at(second));
            if end == 30 && second < 20 {
                pair.server.handle_bytes(at(second), pair.ends.1, &[0x00][..usize::from(second % 10 == 0)]);
            }
            let ping = pair.server.outgoing(pair.ends.1).len();
            if pair.server.is_over(pair.ends.1) {
                ended = ended.or(Some(second));
            } else {
                pair.server.handle_sent(at(second), pair.ends.1, ping);
            }
        }
        let ended = ended.expect("it ends");
        assert!((end..=end + 2).contains(&ended), "{bytes:02x?}: {ended} instead of {end}");
    }
}

#[test]
fn an_end_that_takes_nothing_is_read_no_further_and_then_given_up() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    pair.body = pattern(1000);
    pair.server.handle_bytes(at(0), pair.ends.1, &[0x00, 0xe1]);
    let many = crowds::requests(10_000);
    pair.server.handle_bytes(at(0), pair.ends.1, &many);
    while pair.answer() || pair.server.has_waiting() {
        pair.server.begin_turn(at(0));
    }
    assert!(!pair.server.wants_input(pair.ends.1));
    assert!(
        pair.server.outgoing(pair.ends.1).len() < (64 << 10) + 256 * 1100,
        "{}",
        pair.server.outgoing(pair.ends.1).len()
    );
    (1..=31).for_each(|second| pair.server.handle_timeout(at(second)));
    assert!(pair.server.is_over(pair.ends.1));
    // One that takes what there is gets all answers.
    let mut pair = Pair { body: pattern(10), ..Pair::new(Framing::Stream, ReliableLimits::default()) };
    pair.server.handle_bytes(at(0), pair.ends.1, &[0x00, 0xe1]);
    pair.server.handle_bytes(at(0), pair.ends.1, &many);
    let mut taken = 0;
    loop {
        pair.server.begin_turn(at(0));
        let is_answered = pair.answer();
        let count = pair.server.outgoing(pair.ends.1).len();
        pair.server.handle_sent(at(0), pair.ends.1, count);
        taken += count;
        if !is_answered && count == 0 && !pair.server.has_waiting() {
            break;
        }
    }
    assert_eq!(pair.asked.len(), 10_000);
    assert!(taken > 10_000 * 12, "{taken}");
}

#[test]
fn unfinished_messages_of_all_connections_have_a_bound() {
    let limits = ReliableLimits { inbound_bytes_max: 100_000, ..ReliableLimits::default() };
    let mut server = ReliableEndpoint::new(limits, [3, 4]);
    // The beginning of a message of 60,000 bytes.
    let mut bytes = vec![0x00, 0xe1, 0xe0];
    bytes.extend_from_slice(&(60_000_u16 - 269).to_be_bytes());
    bytes.extend_from_slice(&[0; 30_000]);
    let ends: Vec<ConnectionId> = (0..10).map(|_| server.open(at(0), caller(), Framing::Stream)).collect();
    for end in &ends {
        server.handle_bytes(at(0), *end, &bytes);
        assert!(server.counts().inbound_bytes <= 100_000);
    }
    assert_eq!(ends.iter().filter(|end| server.is_over(**end)).count(), 7);
    ends.iter().for_each(|end| server.handle_end(*end));
    assert_eq!(server.counts().inbound_bytes, 0);
}

#[test]
fn a_body_that_is_too_large_gets_an_answer_and_ends_nothing() {
    let limits = ReliableLimits { body_bytes_max: 100_000, ..ReliableLimits::default() };
    let mut pair = Pair::new(Framing::Stream, limits);
    assert_eq!(pair.ask(RequestBuf::put("/body", pattern(200_000))).code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(pair.ask(RequestBuf::put("/body", pattern(100_000))).code, Code::CHANGED);
    pair.body = pattern(200_000);
    pair.client.request(pair.ends.0, RequestBuf::get("/body")).unwrap();
    let events = pair.run();
    let is_refused = matches!(events[..], [EndpointEvent::Failed { error: RequestError::BodyTooLarge, .. }]);
    assert!(is_refused, "{events:?}");
}

#[test]
fn a_method_that_is_not_known_is_refused_by_a_proxy_as_well() {
    for proxying in [false, true] {
        let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
        pair.server.set_proxying(proxying);
        let request = RequestBuf::new(Code::from_byte(Code::IPATCH.byte() + 1), "");
        let answer = pair.ask(request.with_option(OptionNumber::PROXY_URI, b"coap://192.0.2.9/a"));
        let expect = if proxying { Code::METHOD_NOT_ALLOWED } else { Code::PROXYING_NOT_SUPPORTED };
        assert_eq!(answer.code, expect);
    }
}

#[test]
fn protected_requests_are_refused_clearly() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    let answer = pair.ask(RequestBuf::post("/", "sealed").with_option(OptionNumber::OSCORE, &[9, 1, 2]));
    assert_eq!(answer.code, Code::BAD_OPTION);
    assert!(String::from_utf8_lossy(&answer.payload).contains("OSCORE"), "{answer:?}");
}

proptest! {
    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400), greets: bool) {
        for framing in [Framing::Stream, Framing::Messages] {
            let mut pair = Pair::new(framing, ReliableLimits::default());
            if greets {
                pair.server.handle_bytes(at(0), pair.ends.1, &[0x00, 0xe1]);
            }
            pair.server.handle_bytes(at(0), pair.ends.1, &bytes);
            pair.answer();
            pair.client.handle_bytes(at(0), pair.ends.0, &bytes);
        }
    }
}

#[test]
fn an_observer_is_told_that_the_state_cannot_be_had() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    pair.ask(RequestBuf::get("/a").with_observe(Observe::Register));
    pair.server.notify(pair.now, "/a");
    let Some(EndpointEvent::Request { exchange, .. }) = pair.server.poll_event() else { panic!("it is asked again") };
    pair.server.respond(pair.now, exchange, Response::new(Code::SERVICE_UNAVAILABLE)).unwrap();
    let told = pair.run().pop();
    assert!(
        matches!(&told, Some(EndpointEvent::Response { response, .. }) if response.code == Code::SERVICE_UNAVAILABLE),
        "{told:?}"
    );
    assert_eq!(pair.server.counts().observers, 0, "it has to register again");
}

#[test]
fn plain_blocks_of_a_response_are_read_beside_joined_ones_of_its_request() {
    let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
    let request = RequestBuf::post("/body", pattern(70_000)).with_uint(OptionNumber::BLOCK2, 6);
    let id = pair.client.request(pair.ends.0, request).unwrap();
    let mut last = None;
    for _ in 0..100 {
        pair.client.begin_turn(pair.now);
        pair.server.begin_turn(pair.now);
        pair.carry(true);
        pair.carry(false);
        while let Some(EndpointEvent::Request { exchange, .. }) = pair.server.poll_event() {
            pair.server.respond(pair.now, exchange, Response::content(pattern(3000), 42)).unwrap();
        }
        last = pair.client.poll_event().or(last);
    }
    match last {
        Some(EndpointEvent::Response { request, response, .. }) if request == id => {
            assert!(
                *response.payload == *pattern(3000),
                "{} {}",
                response.code,
                String::from_utf8_lossy(&response.payload)
            );
        }
        other => panic!("an answer should come: {other:?}"),
    }
}
