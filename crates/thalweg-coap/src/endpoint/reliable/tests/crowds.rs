//! What many ends that take nothing cost one that reads its answers.

use super::*;

/// Requests for `/body`, one after the other.
pub fn requests(count: usize) -> Vec<u8> {
    let mut request = Vec::new();
    let get = RequestBuf::get("/body");
    let view = get.view();
    let message = ReliableMessage { code: Code::GET, token: Token::EMPTY, options: view.options, payload: &[] };
    FrameWriter::default().message(&mut request, Framing::Stream, &message);
    request.repeat(count)
}

/// A server with this many connections that have greeted it and said `bytes`.
fn server_with(connections: usize, limits: ReliableLimits, bytes: &[u8]) -> (ReliableEndpoint, Vec<ConnectionId>) {
    let mut server = ReliableEndpoint::new(limits, [3, 4]);
    let ends: Vec<ConnectionId> = (0..connections).map(|_| server.open(at(0), caller(), Framing::Stream)).collect();
    ends.iter().for_each(|end| server.handle_bytes(at(0), *end, &[&[0x00, 0xe1], bytes].concat()));
    (server, ends)
}

/// Answers what the server was asked, by so many bytes each; returns how much that was.
fn answer_all(server: &mut ReliableEndpoint, bytes: usize) -> usize {
    let mut count = 0;
    while let Some(event) = server.poll_event() {
        let EndpointEvent::Request { exchange, .. } = event else { continue };
        server.respond(at(0), exchange, Response::content(pattern(bytes), content_format::OCTET_STREAM)).unwrap();
        count += 1;
    }
    count
}

#[test]
fn a_connection_has_its_part_of_a_turn_however_much_others_ask() {
    let limits = ReliableLimits::default();
    let (mut server, ends) = server_with(100, limits, &requests(5000));
    answer_all(&mut server, 10);
    let good = server.open(at(0), caller(), Framing::Stream);
    for _ in 0..3 {
        server.begin_turn(at(0));
        server.handle_bytes(at(0), good, &[&[0x00, 0xe1], &requests(1)[..]].concat());
        let answered = answer_all(&mut server, 10);
        assert!((2..=100 * 32 + 1).contains(&answered), "{answered} are answered before others are heard");
        assert!(server.outgoing(good).len() > 10, "its answer is ready");
        for end in ends.iter().chain([&good]) {
            let count = server.outgoing(*end).len();
            server.handle_sent(at(0), *end, count);
        }
    }
    assert!(server.has_waiting());
}

#[test]
fn what_ends_leave_unread_has_a_bound_for_all_together_and_spares_those_that_read() {
    let limits = ReliableLimits { outbound_bytes_all_max: 4 << 20, ..ReliableLimits::default() };
    let (mut server, ends) = server_with(200, limits, &requests(5000));
    let good = server.open(at(0), caller(), Framing::Stream);
    server.handle_bytes(at(0), good, &[0x00, 0xe1]);
    for second in 1..20 {
        server.begin_turn(at(second));
        server.handle_bytes(at(second), good, &requests(1));
        answer_all(&mut server, 1000);
        assert!(server.counts().outbound_bytes <= (4 << 20) + (200 * (64 << 10)), "{:?}", server.counts());
        let taken = server.outgoing(good).len();
        assert!(taken > 1000);
        server.handle_sent(at(second), good, taken);
    }
    assert!(!server.is_over(good));
    for second in 20..60 {
        server.handle_timeout(at(second));
    }
    assert_eq!(ends.iter().filter(|end| !server.is_lost(**end)).count(), 0, "nothing is taken of what waits");
    ends.iter().for_each(|end| server.handle_end(*end));
    server.handle_end(good);
    assert_eq!(server.counts().outbound_bytes, 0);
}

#[test]
fn large_answers_and_notifications_are_made_one_by_one_for_an_end_that_takes_nothing() {
    for is_observer in [false, true] {
        let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
        pair.body = pattern(60_000);
        for _ in 0..200 {
            let get = RequestBuf::get("/body");
            let get = if is_observer { get.with_observe(Observe::Register) } else { get };
            pair.client.request(pair.ends.0, get).unwrap();
            pair.run();
        }
        for _ in 0..100 {
            pair.server.notify(at(0), "/body");
            if !is_observer {
                pair.client.request(pair.ends.0, RequestBuf::get("/body")).unwrap();
            }
        }
        pair.carry(true);
        while pair.answer() {
            pair.server.begin_turn(at(0));
        }
        let len = pair.server.outgoing(pair.ends.1).len();
        assert!((1..200_000).contains(&len), "{len} bytes wait");
        let answers = pair.run().len();
        assert!(answers >= 100, "all come once they are taken: {answers}");
    }
}

#[test]
fn a_long_registration_is_answered_and_not_kept() {
    for (len, observers) in [(900, 1), (1100, 0), (200_000, 0)] {
        let mut pair = Pair::new(Framing::Stream, ReliableLimits::default());
        pair.body = b"state".to_vec();
        let fetch = RequestBuf::new(Code::FETCH, "/body").with_payload(pattern(len)).with_observe(Observe::Register);
        let answer = pair.ask(fetch);
        assert_eq!((&*answer.payload, answer.observe.is_some()), (&b"state"[..], observers == 1), "{len}");
        assert_eq!(pair.server.counts().observers, observers, "{len}");
    }
}

#[test]
fn beginnings_of_messages_of_many_ends_do_not_end_one_that_has_little() {
    let limits = ReliableLimits { inbound_bytes_max: 100_000, ..ReliableLimits::default() };
    let mut bytes = vec![0xe0];
    bytes.extend_from_slice(&(60_000_u16 - 269).to_be_bytes());
    bytes.extend_from_slice(&[0; 30_000]);
    let (mut server, ends) = server_with(3, limits, &bytes);
    let good = server.open(at(0), caller(), Framing::Stream);
    server.handle_bytes(at(0), good, &[0x00, 0xe1]);
    requests(1).chunks(2).for_each(|part| {
        server.handle_bytes(at(0), ends[0], &[0; 10_000]);
        server.handle_bytes(at(0), good, part);
    });
    assert!(!server.is_over(good) && server.counts().inbound_bytes <= 100_000);
    assert_eq!(answer_all(&mut server, 1), 1);
}

#[test]
fn messages_of_a_layer_count_into_the_part_of_a_turn() {
    let (mut server, ends) = server_with(1, ReliableLimits::default(), &[]);
    server.begin_turn(at(0));
    for _ in 0..32 {
        assert!(server.wants_input(ends[0]));
        server.handle_control(ends[0]);
    }
    assert!(!server.wants_input(ends[0]) && server.has_waiting());
    server.begin_turn(at(0));
    assert!(server.wants_input(ends[0]));
}

/// A server with this many connections over a transport that keeps messages apart.
fn server_of_messages(connections: usize, limits: ReliableLimits) -> (ReliableEndpoint, Vec<ConnectionId>) {
    let mut server = ReliableEndpoint::new(limits, [3, 4]);
    let ends: Vec<ConnectionId> = (0..connections).map(|_| server.open(at(0), caller(), Framing::Messages)).collect();
    for end in &ends {
        server.handle_bytes(at(0), *end, &[0x00, 0xe1]);
        let sent = server.outgoing(*end).len();
        server.handle_sent(at(0), *end, sent);
    }
    (server, ends)
}

#[test]
fn what_a_transport_holds_of_messages_has_the_bound_of_those_in_a_stream() {
    let limits = ReliableLimits { inbound_bytes_max: 100_000, ..ReliableLimits::default() };
    let (mut server, ends) = server_of_messages(10, limits);
    for end in &ends {
        server.handle_partial(at(0), *end, 20_000);
        server.handle_partial(at(0), *end, 30_000);
        assert!(server.counts().inbound_bytes <= 100_000);
    }
    assert_eq!(ends.iter().filter(|end| server.is_over(**end)).count(), 7);
    ends.iter().for_each(|end| server.handle_partial(at(0), *end, 0));
    assert_eq!(server.counts().inbound_bytes, 0);
    ends.iter().for_each(|end| server.handle_partial(at(0), *end, 10));
    assert_eq!(server.counts().inbound_bytes, 30, "those that are over count no more");
    ends.iter().for_each(|end| server.handle_end(*end));
    assert_eq!(server.counts().inbound_bytes, 0);
}

#[test]
fn a_message_of_a_transport_that_stays_unfinished_is_given_up_however_it_drips() {
    let (mut server, ends) = server_of_messages(2, ReliableLimits::default());
    for second in 1..=30 {
        server.begin_turn(at(second));
        server.handle_partial(at(second), ends[0], second as usize);
        // The other one begins a message with each that it ends.
        server.handle_bytes(at(second), ends[1], &[0x00, 0x00]);
        server.handle_partial(at(second), ends[1], 1);
        server.handle_timeout(at(second));
        assert!(!server.is_over(ends[0]), "{second}");
    }
    server.handle_timeout(at(32));
    assert!(server.is_over(ends[0]) && !server.is_over(ends[1]));
    assert_eq!((server.counts().timed_out, server.counts().inbound_bytes), (1, 1));
}

#[test]
fn what_waits_for_room_is_not_taken_for_a_message_that_drips() {
    let limits = ReliableLimits { exchanges_per_connection_max: 1, ..ReliableLimits::default() };
    let (mut server, ends) = server_of_messages(1, limits);
    let mut request = Vec::new();
    let get = RequestBuf::get("/body");
    let view = get.view();
    let message = ReliableMessage { code: Code::GET, token: Token::EMPTY, options: view.options, payload: &[] };
    FrameWriter::default().message(&mut request, Framing::Messages, &message);
    server.handle_bytes(at(0), ends[0], &request);
    assert!(!server.wants_input(ends[0]));
    for second in 0..60 {
        server.handle_partial(at(second), ends[0], 10);
        server.handle_timeout(at(second));
    }
    assert!(!server.is_over(ends[0]));
    answer_all(&mut server, 10);
    server.handle_partial(at(60), ends[0], 10);
    let sent = server.outgoing(ends[0]).len();
    server.handle_sent(at(60), ends[0], sent);
    server.handle_timeout(at(89));
    assert!(!server.is_over(ends[0]));
    server.handle_timeout(at(91));
    assert!(server.is_over(ends[0]), "now nothing but the rest is missing");
}

/// A ping, for which a pong waits then.
const PING: &[u8] = &[0x00, 0xe2];

#[test]
fn what_layers_hold_for_an_end_that_takes_nothing_counts_like_what_waits_here() {
    let (mut server, ends) = server_of_messages(2, ReliableLimits::default());
    for second in 1..=30 {
        server.begin_turn(at(second));
        for (end, waiting, taken) in [(ends[0], 10 * second as usize, 0), (ends[1], 10, 10)] {
            server.handle_bytes(at(second), end, PING);
            let count = server.outgoing(end).len();
            assert!(count > 0);
            server.handle_wrapped(end, count);
            server.handle_layered(at(second), end, waiting, taken);
        }
        server.handle_timeout(at(second));
        assert!(!server.is_over(ends[0]), "{second}");
    }
    assert_eq!(server.counts().outbound_bytes, 310);
    server.handle_timeout(at(33));
    assert!(server.is_lost(ends[0]) && !server.is_over(ends[1]));
    assert_eq!((server.counts().timed_out, server.counts().outbound_bytes), (1, 10));
    ends.iter().for_each(|end| server.handle_end(*end));
    assert_eq!(server.counts().outbound_bytes, 0);
}

#[test]
fn what_layers_hold_has_the_bounds_of_one_end_and_of_all() {
    let limits = ReliableLimits { outbound_bytes_all_max: 100_000, ..ReliableLimits::default() };
    let (mut server, ends) = server_of_messages(3, limits);
    server.handle_layered(at(1), ends[0], 64 << 10, 0);
    assert!(!server.wants_input(ends[0]));
    server.handle_layered(at(1), ends[0], 0, 64 << 10);
    assert!(server.wants_input(ends[0]));
    server.handle_layered(at(2), ends[0], 80_000, 0);
    server.handle_layered(at(1), ends[1], 30_000, 0);
    server.handle_bytes(at(3), ends[2], PING);
    assert_eq!([0, 1, 2].map(|end: usize| server.is_lost(ends[end])), [true, false, false]);
}

#[test]
fn an_end_that_is_over_and_takes_nothing_of_what_layers_hold_is_given_up() {
    let (mut server, ends) = server_of_messages(1, ReliableLimits::default());
    server.handle_layered(at(1), ends[0], 100, 0);
    let abort = [0x00, 0xe5];
    server.handle_bytes(at(1), ends[0], &abort);
    assert!(server.is_over(ends[0]) && !server.is_lost(ends[0]));
    server.handle_timeout(at(33));
    assert!(server.is_lost(ends[0]));
}

/// A registration for `/body` with this token.
fn registration(token: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let get = RequestBuf::get("/body").with_observe(Observe::Register);
    let view = get.view();
    let token = Token::new(&[token]).unwrap();
    let message = ReliableMessage { code: Code::GET, token, options: view.options, payload: &[] };
    FrameWriter::default().message(&mut bytes, Framing::Stream, &message);
    bytes
}

/// Answers what the server was asked by a state that may be observed; returns how much that was.
fn answer_observed(server: &mut ReliableEndpoint) -> usize {
    let mut count = 0;
    while let Some(event) = server.poll_event() {
        let EndpointEvent::Request { exchange, .. } = event else { continue };
        let response = Response::content(pattern(5), content_format::OCTET_STREAM).observable();
        server.respond(at(0), exchange, response).unwrap();
        count += 1;
    }
    count
}

/// Registers with each of these tokens; returns how many registrations the server keeps then.
fn register(server: &mut ReliableEndpoint, end: ConnectionId, tokens: std::ops::Range<u8>) -> usize {
    for token in tokens {
        server.begin_turn(at(0));
        server.handle_bytes(at(0), end, &registration(token));
        assert_eq!(answer_observed(server), 1, "who may not observe is answered as well");
        let sent = server.outgoing(end).len();
        assert!(sent > 5);
        server.handle_sent(at(0), end, sent);
    }
    server.counts().observers
}

#[test]
fn connections_of_one_host_leave_places_to_observers_of_others() {
    let limits = ReliableLimits { observers_max: 8, observers_per_connection_max: 5, ..ReliableLimits::default() };
    let (mut server, ends) = server_with(3, limits, &[]);
    let taken = [0, 1, 2].map(|end: usize| register(&mut server, ends[end], 0..5));
    assert_eq!(taken, [5, 8, 8]);
    let others = [2, 3].map(|host: u8| {
        let address: SocketAddr = ([192, 0, 2, host], 40_000).into();
        let id = server.open(at(0), Caller::anonymous(address, Transport::Tcp), Framing::Stream);
        server.handle_bytes(at(0), id, &[0x00, 0xe1]);
        let sent = server.outgoing(id).len();
        server.handle_sent(at(0), id, sent);
        id
    });
    let has = |server: &ReliableEndpoint| -> Vec<usize> {
        let of = |end: &ConnectionId| server.connections.get(end.0).map_or(0, |one| one.observations.len());
        ends.iter().chain(&others).map(of).collect()
    };
    assert_eq!(has(&server), [5, 3, 0, 0, 0]);
    assert_eq!(register(&mut server, others[0], 0..1), 8);
    assert_eq!(has(&server), [4, 3, 0, 1, 0], "the newest of the connection that has most");
    // Its client is told: 5.03 to the token of the registration that ended.
    let told = server.outgoing(ends[0]).to_vec();
    assert!(told.windows(2).any(|pair| pair == [0xa3, 4]), "{told:x?}");
    server.handle_sent(at(0), ends[0], told.len());
    register(&mut server, others[0], 1..5);
    assert_eq!(has(&server), [2, 2, 0, 4, 0], "no host takes from one that would have fewer then");
    register(&mut server, others[1], 0..5);
    let held = has(&server);
    assert_eq!((held[0] + held[1], held[3] + held[4]), (3, 5), "{held:?}");
    assert_eq!(server.counts().observers, 8);
    server.notify(at(0), "/body");
    assert_eq!(answer_observed(&mut server), 8);
    others.iter().chain(&ends).for_each(|end| server.handle_end(*end));
    assert_eq!(server.counts().observers, 0);
}

#[test]
fn observers_of_one_connection_and_of_all_have_bounds_and_places_come_back() {
    let limits = ReliableLimits { observers_max: 8, observers_per_connection_max: 5, ..ReliableLimits::default() };
    let (mut server, ends) = server_with(3, limits, &[]);
    assert_eq!(register(&mut server, ends[0], 0..10), 5, "one connection has its part");
    assert_eq!(register(&mut server, ends[0], 0..5), 5, "those that it has may be renewed");
    assert_eq!(register(&mut server, ends[1], 0..10), 8, "all together have theirs");
    assert_eq!(register(&mut server, ends[2], 0..2), 8);
    server.notify(at(0), "/body");
    assert_eq!(answer_observed(&mut server), 8, "those alone are told who were let in");
    server.handle_end(ends[0]);
    assert_eq!(server.counts().observers, 3);
    assert_eq!(register(&mut server, ends[2], 0..10), 8);
}
