//! What many others, at addresses of their own or forged ones, cannot take from a client.

use super::*;
use crate::message::{MessageId, MessageWriter, Token};

/// A host of a network, by its number.
fn stranger(number: u32) -> Peer {
    Peer::from((Ipv4Addr::from_bits(0x0a00_0000 | number), 5000))
}

/// A port of this host, whose address needs no proof.
fn neighbour(port: u16) -> Peer {
    Peer::from((Ipv4Addr::LOCALHOST, port))
}

fn request(message_type: MessageType, code: Code, id: u16, options: &[(OptionNumber, &[u8])], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let mut writer = MessageWriter::new(&mut out, message_type, code, MessageId(id), &token);
    for (number, value) in options {
        writer.option(*number, value);
    }
    writer.payload(body);
    out
}

const CON: MessageType = MessageType::Confirmable;
const NON: MessageType = MessageType::NonConfirmable;
const PATH: (OptionNumber, &[u8]) = (OptionNumber::URI_PATH, b"a");
const REGISTER: [(OptionNumber, &[u8]); 2] = [(OptionNumber::OBSERVE, &[]), PATH];

fn observable(_: &CoapRequest<'_>) -> Response {
    Response::content("x", 0).observable()
}

/// A server with places for so many peers.
fn server(peers_max: usize) -> Host {
    Host::new(Config { limits: EndpointLimits { peers_max, ..EndpointLimits::default() }, ..Config::default() })
}

impl Host {
    /// What the server sends to `peer` for a datagram of it.
    fn ask(&mut self, peer: Peer, bytes: &[u8]) -> Vec<String> {
        self.endpoint.handle_datagram(self.now, peer, bytes);
        self.serve(observable);
        self.lines()
    }

    /// Whether `peer` observes after its registration.
    fn is_registered(&mut self, peer: Peer, id: u16) -> bool {
        let lines = self.ask(peer, &request(NON, Code::GET, id, &REGISTER, &[]));
        assert!(lines.iter().any(|line| line.contains("2.05")), "everybody gets the state: {lines:?}");
        lines.iter().any(|line| line.contains("Observe="))
    }
}

#[test]
fn observers_leave_half_of_the_places_to_others() {
    let mut server = server(100);
    let registered = (0..200).filter(|number| server.is_registered(neighbour(*number), 1)).count();
    assert_eq!((registered, server.endpoint.counters().observers_refused), (50, 150));
    for number in 1000..2000 {
        assert_eq!(
            server.ask(stranger(number), &request(NON, Code::GET, 7, &[PATH], &[])),
            ["NON 2.05 Content-Format=0 [1]"]
        );
    }
    assert_eq!((server.endpoint.counters().peers_refused, server.endpoint.counters().observers), (0, 50));
    assert!(server.is_registered(neighbour(3), 2), "who has a place may have more than one registration");
}

#[test]
fn forged_registrations_take_a_small_part_and_none_from_who_has_proved_its_address() {
    let mut server = server(320);
    let honest: Vec<Peer> = (0..10).map(|number| neighbour(4000 + number)).collect();
    honest.iter().for_each(|peer| assert!(server.is_registered(*peer, 1)));
    for number in 0..5000 {
        server.endpoint.handle_datagram(server.now, stranger(number), &request(NON, Code::GET, 1, &REGISTER, &[]));
        server.serve(observable);
        server.sent();
    }
    let counters = server.endpoint.counters();
    assert_eq!((counters.observers, counters.observers_evicted, counters.peers_refused), (30, 4980, 0));
    server.endpoint.notify(server.now, "/a");
    server.serve(observable);
    server.endpoint.poll_transmit(&mut server.outbox);
    let told: Vec<Peer> = server.outbox.iter().map(|datagram| datagram.peer).collect();
    assert!(honest.iter().all(|peer| told.contains(peer)));
}

#[test]
fn clients_with_sessions_have_proved_their_addresses() {
    let mut server = server(320);
    for session in 1..=40 {
        assert!(server.is_registered(Peer { session, ..stranger(session) }, 1), "{session}");
    }
    let counters = server.endpoint.counters();
    assert_eq!((counters.observers, counters.observers_evicted), (40, 0));
}

#[test]
fn while_forged_registrations_come_an_answer_asks_for_the_proof_that_keeps_its_observer() {
    let mut server = server(320);
    let flood = |server: &mut Host, from: u32| {
        for number in from..from + 100 {
            server.endpoint.handle_datagram(server.now, stranger(number), &request(NON, Code::GET, 1, &REGISTER, &[]));
            server.serve(observable);
            server.sent();
        }
    };
    flood(&mut server, 0);
    let client = stranger(1 << 20);
    let registration = request(CON, Code::GET, 9, &REGISTER, &[]);
    server.endpoint.handle_datagram(server.now, client, &registration);
    server.serve(observable);
    let sent = server.sent();
    assert_eq!(describe(&sent[0]), "ACK 0.00");
    assert!(describe(&sent[1]).starts_with("CON 2.05 Observe="), "{}", describe(&sent[1]));
    server.endpoint.handle_datagram(server.now, client, &[0x60, 0, sent[1][2], sent[1][3]]);
    flood(&mut server, 5000);
    server.endpoint.notify(server.now, "/a");
    server.serve(observable);
    server.endpoint.poll_transmit(&mut server.outbox);
    assert!(server.outbox.iter().any(|datagram| datagram.peer == client), "it is told of the change");
}

#[test]
fn a_host_with_many_registrations_makes_room_for_one_with_none() {
    let mut server = server(100);
    (0..50).for_each(|port| assert!(server.is_registered(neighbour(port), 1)));
    assert!(!server.is_registered(neighbour(60), 1), "its own host has them all");
    let other = Peer::from((Ipv4Addr::new(127, 9, 9, 9), 1));
    assert!(server.is_registered(other, 1));
    let counters = server.endpoint.counters();
    assert_eq!((counters.observers, counters.observers_evicted, counters.observers_refused), (50, 1, 1));
    server.endpoint.notify(server.now, "/a");
    assert_eq!(server.serve(observable).len(), 50);
}

#[test]
fn observers_that_leave_give_their_places_back() {
    let mut server = server(100);
    for round in 0..3 {
        let ports = round * 100..round * 100 + 50;
        ports.clone().for_each(|port| assert!(server.is_registered(neighbour(port), 1), "{port}"));
        for port in ports {
            let farewell = [(OptionNumber::OBSERVE, &[1_u8][..]), PATH];
            let mut farewell = request(NON, Code::GET, 1, &farewell, &[]);
            farewell[3] = 2; // another message ID with the token of the registration
            server.ask(neighbour(port), &farewell);
        }
        assert_eq!(server.endpoint.counters().observers, 0);
    }
}

#[test]
fn requests_that_wait_leave_a_quarter_of_the_places_to_newcomers() {
    let mut server = server(100);
    let mut waiting = 0;
    for number in 0..500 {
        server.endpoint.handle_datagram(server.now, stranger(number), &request(NON, Code::GET, 1, &[PATH], &[]));
        for exchange in server.exchanges() {
            if server.endpoint.may_wait(exchange) {
                waiting += 1;
            } else {
                server.endpoint.abandon(server.now, exchange);
            }
        }
    }
    assert_eq!((waiting, server.endpoint.counters().peers_refused), (75, 0));
    server.endpoint.handle_datagram(server.now, neighbour(1), &request(NON, Code::GET, 1, &[PATH], &[]));
    let exchange = server.exchanges()[0];
    assert!(server.endpoint.may_wait(exchange), "some more for addresses that are proved");
}

#[test]
fn who_finds_no_place_at_all_is_told() {
    let mut server = server(1);
    server.endpoint.handle_datagram(server.now, stranger(1), &request(NON, Code::GET, 1, &[PATH], &[]));
    assert_eq!(server.exchanges().len(), 1);
    assert_eq!(server.ask(stranger(2), &request(CON, Code::GET, 2, &[PATH], &[])), ["ACK 5.03 Max-Age=1"]);
    assert_eq!(server.ask(stranger(2), &request(NON, Code::GET, 3, &[PATH], &[])), ["NON 5.03 Max-Age=1"]);
    assert!(server.ask(stranger(2), &[0x70, 0, 0, 1]).is_empty());
    assert_eq!(server.endpoint.counters().peers_refused, 3);
}

#[test]
fn a_post_runs_once_whatever_strangers_send_before_its_repetition() {
    let mut server = Host::new(Config::default());
    let post = request(CON, Code::POST, 9, &[PATH], b"1");
    let client = stranger(1 << 20);
    assert_eq!(server.ask(client, &post), ["ACK 2.05 Content-Format=0 [1]"]);
    for number in 0..100_000_u32 {
        let code = if number % 2 == 0 { Code::GET } else { Code::POST };
        server.endpoint.handle_datagram(server.now, stranger(number), &request(NON, code, 1, &[PATH], b"1"));
        server.serve(observable);
        server.sent();
    }
    server.pass(Duration::from_secs(40));
    server.sent();
    server.endpoint.handle_datagram(server.now, client, &post);
    assert!(server.exchanges().is_empty(), "it does not run again");
    assert_eq!(server.lines(), ["ACK 2.05 Content-Format=0 [1]"]);
    assert!(server.endpoint.counters().answer_bytes <= 16 << 20);
}

#[test]
fn a_post_whose_answer_cannot_be_kept_does_not_run_unless_its_address_is_proved() {
    let limits = EndpointLimits { answer_bytes_max: 40_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..Config::default() });
    for number in 0..1000 {
        server.ask(stranger(number), &request(NON, Code::POST, 1, &[PATH], &[]));
    }
    server.endpoint.handle_datagram(server.now, stranger(5000), &request(CON, Code::POST, 2, &[PATH], &[]));
    assert!(server.exchanges().is_empty());
    let challenge = server.sent();
    assert_eq!(describe(&challenge[0]), "ACK 4.01 Max-Age=0 Echo");
    let echo = CoapMessage::parse(&challenge[0]).unwrap().options.value(OptionNumber::ECHO).unwrap().to_vec();
    let proof = request(CON, Code::POST, 3, &[PATH, (OptionNumber::ECHO, &echo)], &[]);
    assert_eq!(server.ask(stranger(5000), &proof), ["ACK 2.05 Content-Format=0 [1]"]);
    let ours: Vec<String> =
        (0..300).flat_map(|id| server.ask(neighbour(1), &request(CON, Code::POST, id, &[PATH], &[]))).collect();
    assert!(ours[0].starts_with("ACK 2.05") && ours[299] == "ACK 5.03 Max-Age=46", "{}", ours[299]);
    server.pass(Duration::from_secs(46));
    assert_eq!(
        server.ask(neighbour(1), &request(CON, Code::POST, 999, &[PATH], &[])),
        ["ACK 2.05 Content-Format=0 [1]"]
    );
}

#[test]
fn what_is_refused_before_it_runs_takes_no_room_from_answers_that_are_needed() {
    let limits = EndpointLimits { answer_bytes_max: 40_000, exchanges_per_peer_max: 1, ..EndpointLimits::default() };
    let undefined = (OptionNumber(265), &b"x"[..]);
    let proxied = (OptionNumber::PROXY_URI, &b"coap://h/"[..]);
    let reserved = (OptionNumber::BLOCK1, &b"\x07"[..]);
    // The last one has nothing wrong with it, but its peer has a request under way.
    for options in [&[PATH, undefined][..], &[PATH, proxied], &[PATH, reserved], &[PATH]] {
        let mut server = Host::new(Config { limits: limits.clone(), ..Config::default() });
        let post = request(CON, Code::POST, 9, &[PATH], b"1");
        let client = stranger(1 << 20);
        assert_eq!(server.ask(client, &post), ["ACK 2.05 Content-Format=0 [1]"]);
        for number in 0..1000 {
            for id in 1..3 {
                let refused = request(CON, Code::POST, id, options, &[]);
                server.endpoint.handle_datagram(server.now, stranger(number), &refused);
            }
            // Those that are let in wait for their handlers.
            server.exchanges();
            server.sent();
        }
        server.endpoint.handle_datagram(server.now, client, &post);
        assert!(server.exchanges().is_empty(), "{options:?}: it does not run again");
        assert_eq!(server.lines(), ["ACK 2.05 Content-Format=0 [1]"], "{options:?}");
    }
}

#[test]
fn our_client_proves_its_address_when_a_post_is_challenged() {
    let limits = EndpointLimits { answer_bytes_max: 40_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..Config::default() });
    for number in 0..1000 {
        server.ask(stranger(number), &request(NON, Code::POST, 1, &[PATH], &[]));
    }
    let mut client = Host::new(Config::default());
    let post = RequestBuf::post("/a", "1");
    client.endpoint.request(client.now, peer(SERVER), post, Confirmability::Confirmable).unwrap();
    let lines = exchange(&mut client, &mut server, hello);
    assert_eq!(lines[1], "< ACK 4.01 Max-Age=0 Echo");
    assert_eq!(&*response(&mut client).payload, b"hello world");
}

#[test]
fn a_separate_answer_and_its_repetitions_stay_within_the_bound() {
    for len in [1, 16, 40, 500] {
        let mut server = Host::new(Config::default());
        let asked = request(CON, Code::GET, 1, &[PATH], &[]);
        server.endpoint.handle_datagram(server.now, stranger(1), &asked);
        let exchange = server.exchanges()[0];
        server.pass(Duration::from_secs(2));
        server.endpoint.respond(server.now, exchange, Response::content(vec![b'x'; len], 0)).unwrap();
        let mut bytes: usize = server.sent().iter().map(|sent| sent.len() + 28).sum();
        for _ in 0..100 {
            server.pass(Duration::from_secs(1));
            bytes += server.sent().iter().map(|sent| sent.len() + 28).sum::<usize>();
        }
        assert!(bytes <= 3 * (asked.len() + 28), "{len}: {bytes} for {}", asked.len() + 28);
        let counters = server.endpoint.counters();
        assert_eq!((counters.exchanges, server.endpoint.poll_timeout().is_none()), (0, true));
    }
}

#[test]
fn bodies_in_handlers_stay_within_their_budget_and_leave_room_for_small_requests() {
    let limits =
        EndpointLimits { handler_bytes_max: 100_000, exchanges_per_peer_max: 10_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..Config::default() });
    let mut waiting = Vec::new();
    let mut refused = 0;
    for upload in 0..20_u16 {
        for block in 0..10_u16 {
            let more = block < 9;
            let value = (u32::from(block) << 4 | u32::from(more) << 3 | 6).to_be_bytes();
            let options = [PATH, (OptionNumber::BLOCK1, &value[2..])];
            let bytes = request(CON, Code::PUT, upload * 100 + block, &options, &[7; 1024]);
            server.endpoint.handle_datagram(server.now, stranger(u32::from(upload)), &bytes);
        }
        waiting.extend(server.exchanges());
        refused += server.lines().iter().filter(|line| line.contains("5.03")).count();
    }
    let counters = server.endpoint.counters();
    assert_eq!((waiting.len() + refused, counters.bytes_refused), (20, refused as u64));
    assert!((4..=7).contains(&waiting.len()) && counters.request_bytes <= 75_000, "{counters:?}");
    assert_eq!(server.ask(stranger(99), &request(NON, Code::PUT, 1, &[PATH], &[7; 900])).len(), 1);
    for exchange in waiting {
        server.endpoint.respond(server.now, exchange, Response::new(Code::CHANGED)).unwrap();
    }
    assert_eq!(server.endpoint.counters().request_bytes, 0);
    assert!(server.sent().iter().all(|bytes| describe(bytes).contains("2.04") || describe(bytes).contains("2.05")));
}

#[test]
fn a_long_registration_is_answered_and_not_kept() {
    let mut server = Host::new(trusting());
    let fetch = request(NON, Code::FETCH, 1, &REGISTER, &[1; 1100]);
    assert_eq!(server.ask(stranger(1), &fetch), ["NON 2.05 Content-Format=0 [1]"]);
    assert_eq!(server.endpoint.counters().observers, 0);
}

#[test]
fn the_reserved_block_size_is_a_bad_request_of_any_kind() {
    let mut server = Host::new(trusting());
    for number in [OptionNumber::BLOCK1, OptionNumber::BLOCK2] {
        for (message_type, kind) in [(CON, "ACK"), (NON, "NON")] {
            let asked = request(
                message_type,
                Code::GET,
                number.0 * 2 + u16::from(kind == "NON"),
                &[PATH, (number, &[0x07])],
                &[],
            );
            assert_eq!(server.ask(stranger(1), &asked), [format!("{kind} 4.00 [31]")]);
        }
    }
}

#[test]
fn a_datagram_that_was_cut_off_is_answered_by_its_beginning() {
    let mut server = Host::new(Config::default());
    let answer = |server: &mut Host, bytes: &[u8]| {
        server.endpoint.handle_oversized(stranger(1), bytes);
        server.lines()
    };
    let asked = request(CON, Code::PUT, 1, &[PATH], &[7; 2000]);
    assert_eq!(answer(&mut server, &asked[..1000]), ["ACK 4.13 Block1=0/0/1024"]);
    let asked = request(NON, Code::PUT, 1, &[PATH], &[7; 2000]);
    assert_eq!(answer(&mut server, &asked[..1000]), ["NON 4.13 Block1=0/0/1024"]);
    for other in [&[0x40][..], &[0x44, 3, 0, 1, 9], &[0x4f, 3, 0, 1, 9], &[0x60, 0x45, 0, 1], &[0x40, 0x45, 0, 1], &[]]
    {
        assert!(answer(&mut server, other).is_empty(), "{other:02x?}");
    }
    assert_eq!(server.endpoint.counters().oversized, 8);
}

#[test]
fn a_group_is_told_neither_errors_nor_lists_without_anything_in_them() {
    let mut server = Host::new(trusting());
    let asked = request(NON, Code::GET, 1, &[PATH], &[]);
    for (response, is_told) in [
        (Response::content("x", 40), true),
        (Response::content("", 40), false),
        (Response::new(Code::NOT_FOUND), false),
        (Response::new(Code::CHANGED), true),
    ] {
        server.endpoint.handle_multicast(server.now, stranger(1), &asked);
        let exchange = server.exchanges()[0];
        assert!(server.endpoint.is_for_group(exchange));
        server.endpoint.respond(server.now, exchange, response.clone()).unwrap();
        server.pass(Duration::from_secs(300));
        assert_eq!(server.sent().len(), usize::from(is_told), "{response:?}");
    }
}

#[test]
fn a_handler_lets_a_client_prove_its_address() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(Config::default()));
    let handler = |request: &CoapRequest<'_>| match request.options.value(OptionNumber::ECHO) {
        Some(_) => Response::new(Code::CREATED),
        None => Response::challenge("where are you?"),
    };
    let post = || RequestBuf::post("/rd?ep=a", "</x>");
    client.endpoint.request(client.now, peer(SERVER), post(), Confirmability::Confirmable).unwrap();
    let lines = exchange(&mut client, &mut server, handler);
    assert_eq!(lines[1], "< ACK 4.01 Max-Age=0 Echo [14]");
    assert_eq!(lines[3], "< ACK 2.01");
    assert_eq!(response(&mut client).code, Code::CREATED);
    // Who has proved it is told that it may not, and no more.
    client.endpoint.request(client.now, peer(SERVER), post(), Confirmability::Confirmable).unwrap();
    let lines = exchange(&mut client, &mut server, handler);
    assert_eq!(lines[1..], ["< ACK 4.01 Max-Age=0 [14]"]);
}

#[test]
fn a_challenge_is_repeated_and_leaves_nothing_behind() {
    let mut server = server(100);
    let post = request(CON, Code::POST, 7, &[PATH], &[]);
    for _ in 0..2 {
        server.endpoint.handle_datagram(server.now, stranger(1), &post);
        server.serve(|_| Response::challenge(""));
        assert_eq!(server.lines(), ["ACK 4.01 Max-Age=0 Echo"]);
    }
}

#[test]
fn messages_in_a_clients_name_use_up_none_of_its_ids() {
    let mut server = server(100);
    for kind in [NON, CON] {
        server.ask(stranger(1), &request(kind, Code::GET, 7, &[PATH], &[]));
    }
    let (mut own, token) = (Vec::new(), Token::new(b"own").unwrap());
    let mut writer = MessageWriter::new(&mut own, CON, Code::GET, MessageId(7), &token);
    writer.option(PATH.0, PATH.1);
    writer.payload(&[]);
    assert_eq!(server.ask(stranger(1), &own), ["ACK 2.05 Content-Format=0 [1]"]);
}
