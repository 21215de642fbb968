//! What others can make an endpoint send and hold.

use super::*;
use crate::message::{Block, Token, write_option};

fn large(_: &CoapRequest<'_>) -> Response {
    Response::content(vec![b'x'; 500], 0)
}

/// A GET for `/large` with more options, from a client that knows nothing of Echo.
fn get(id: u16, options: &[(OptionNumber, &[u8])]) -> Vec<u8> {
    let mut out = vec![0x40, 1, (id >> 8) as u8, id as u8];
    let mut last = OptionNumber(0);
    for (number, value) in options {
        write_option(&mut out, last, *number, value);
        last = *number;
    }
    out
}

const PATH: (OptionNumber, &[u8]) = (OptionNumber::URI_PATH, b"large");

/// Whether a datagram is within three times another, with headers of IPv4 and UDP.
#[track_caller]
fn check_bound(request: &[u8], response: &[u8]) {
    assert!(response.len() + 28 <= 3 * (request.len() + 28), "{} for {}", response.len(), request.len());
}

#[test]
fn an_unproved_address_gets_a_small_block_and_a_client_with_echo_all_at_its_second_try() {
    let mut server = Host::new(Config::default());
    let mut client = Host::new(Config::default());
    client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/large"), Confirmability::Confirmable).unwrap();
    let lines = exchange(&mut client, &mut server, large);
    assert_eq!(
        lines,
        [
            "> CON 0.01 /large",
            "< ACK 2.05 ETag Content-Format=0 Block2=0/1/64 Echo [64]",
            "> CON 0.01 /large Echo",
            "< ACK 2.05 Content-Format=0 [500]",
        ]
    );
    assert_eq!(response(&mut client).payload.len(), 500);
    client
        .endpoint
        .request(client.now, peer(SERVER), RequestBuf::get("/large?2"), Confirmability::Confirmable)
        .unwrap();
    assert_eq!(exchange(&mut client, &mut server, large).len(), 2, "the proof lasts");
    // Another address with what would be a proof, were it not made up.
    server.receive(2, &get(1, &[PATH, (OptionNumber::ECHO, &[1; 8])]));
    server.serve(large);
    assert_eq!(server.lines(), ["ACK 2.05 ETag Content-Format=0 Block2=0/1/64 Echo [64]"]);
    assert_eq!(server.endpoint.counters().shrunk, 2);
}

#[test]
fn a_client_without_echo_gets_everything_in_blocks_that_stay_within_the_bound() {
    let mut server = Host::new(Config::default());
    let (mut got, mut wanted) = (Vec::new(), None);
    for id in 0.. {
        let value = wanted.map(|block: Block| block.to_uint().to_be_bytes()).unwrap_or_default();
        let asked = [PATH, (OptionNumber::BLOCK2, &value[1..])];
        let request = get(id, if wanted.is_some() { &asked } else { &asked[..1] });
        server.receive(1, &request);
        server.serve(|_| Response::content((0..2000).map(|at| at as u8).collect::<Vec<_>>(), 0));
        let answer = server.sent();
        check_bound(&request, &answer[0]);
        let message = CoapMessage::parse(&answer[0]).unwrap();
        got.extend_from_slice(message.payload);
        let block = message.options.value(OptionNumber::BLOCK2).and_then(Block::parse).unwrap();
        if !block.more {
            break;
        }
        wanted = Some(Block { number: block.number + 1, more: false, ..block });
    }
    assert_eq!(got, (0..2000).map(|at| at as u8).collect::<Vec<_>>());
}

#[test]
fn what_was_acknowledged_proves_an_address_and_a_rejection_does_not() {
    for (acknowledges, expected) in [(true, "ACK 2.05 Content-Format=0 [500]"), (false, "Echo [32]")] {
        let mut server = Host::new(Config::default());
        server.receive(1, &get(1, &[PATH]));
        server.pass(Duration::from_secs(2));
        server.serve(hello);
        let separate = &server.sent()[1];
        let first = if acknowledges { 0x60 } else { 0x70 };
        server.receive(1, &[first, 0, separate[2], separate[3]]);
        server.receive(1, &get(2, &[PATH]));
        server.serve(large);
        assert!(server.lines()[0].ends_with(expected), "{acknowledges}");
    }
}

#[test]
fn nothing_has_to_be_proved_on_loopback() {
    for address in ["127.0.0.1:9", "127.1.2.3:9", "[::1]:9", "[::ffff:127.0.0.1]:9"] {
        let mut server = Host::new(Config::default());
        let here = Peer::from(address.parse::<std::net::SocketAddr>().unwrap());
        server.endpoint.handle_datagram(server.now, here, &get(1, &[PATH]));
        server.serve(large);
        assert_eq!(server.lines(), ["ACK 2.05 Content-Format=0 [500]"], "{address}");
    }
}

#[test]
fn small_answers_are_left_alone_and_errors_keep_their_code() {
    let mut server = Host::new(Config::default());
    server.receive(1, &bytes("40010001"));
    server.serve(hello);
    assert_eq!(server.lines(), ["ACK 2.05 Content-Format=0 [11]"]);
    server.receive(1, &bytes("40010002"));
    server.serve(|_| Response::error(Code::NOT_FOUND, "a long story about what there is instead of this".repeat(3)));
    assert_eq!(server.lines(), ["ACK 4.04 Echo"]);
}

#[test]
fn a_change_runs_once_whatever_its_answer_is() {
    let mut server = Host::new(Config::default());
    let mut client = Host::new(Config::default());
    let post = RequestBuf::post("/large", vec![1; 10]);
    client.endpoint.request(client.now, peer(SERVER), post, Confirmability::Confirmable).unwrap();
    let runs = std::cell::Cell::new(0);
    let lines = exchange(&mut client, &mut server, |_| {
        runs.set(runs.get() + 1);
        Response::content(vec![b'x'; 500], 0)
    });
    assert_eq!(lines[1], "< ACK 2.05 ETag Content-Format=0 Block2=0/1/64 Echo [64]");
    assert_eq!((runs.get(), response(&mut client).payload.len()), (1, 500));
}

#[test]
fn the_first_notification_is_small_and_its_acknowledgement_proves_the_address() {
    let mut server = Host::new(Config::default());
    let observable = |request: &CoapRequest<'_>| large(request).observable();
    let registration = get(1, &[(OptionNumber::OBSERVE, &[]), PATH]);
    server.receive(1, &registration);
    server.serve(observable);
    assert!(server.lines()[0].contains("Observe="), "it is registered");
    let plain = |line: &str| {
        let (before, after) = line.split_once(" Observe=").expect("a notification");
        format!("{before}{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
    };
    server.endpoint.notify(server.now, "/large");
    server.serve(observable);
    let first = server.sent();
    assert_eq!(plain(&describe(&first[0])), "CON 2.05 ETag Content-Format=0 Block2=0/1/16 Echo [16]");
    check_bound(&registration, &first[0]);
    server.receive(1, &[0x60, 0, first[0][2], first[0][3]]);
    server.endpoint.notify(server.now, "/large");
    server.serve(observable);
    assert_eq!(plain(&server.lines()[0]), "NON 2.05 Content-Format=0 [500]");
}

#[test]
fn what_a_handler_never_answers_ends_and_its_client_is_told() {
    let mut server = Host::new(trusting());
    server.receive(1, &bytes("40010001 b161"));
    server.receive(2, &bytes("50020002 b161"));
    let exchanges = server.exchanges();
    server.pass(Duration::from_secs(2));
    assert_eq!(server.lines(), ["ACK 0.00"]);
    server.pass(Duration::from_secs(240));
    assert!(server.sent().is_empty() && server.endpoint.counters().exchanges == 2);
    server.pass(Duration::from_secs(70));
    assert_eq!(server.lines(), ["CON 5.04 [34]"], "and nothing to the NON");
    let counters = server.endpoint.counters();
    assert_eq!((counters.exchanges, counters.expired), (0, 2));
    for exchange in exchanges {
        assert_eq!(server.endpoint.respond(server.now, exchange, Response::new(Code::CONTENT)), Err(ExchangeGone));
    }
    (0..10).for_each(|_| server.pass(Duration::from_secs(100)));
    assert_eq!(server.endpoint.poll_timeout(), None, "nothing is left to look for");
    server.sent();
    server.receive(1, &bytes("40010003 b161"));
    assert_eq!(server.serve(hello).len(), 1, "and its places are free");
}

#[test]
fn a_silent_peer_gets_its_burst_and_then_a_byte_a_second() {
    let mut client = Host::new(Config::default());
    let ask = |client: &mut Host, delivery| {
        client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/a"), delivery).map(drop)
    };
    let mut sent = 0;
    let until = loop {
        match ask(&mut client, Confirmability::NonConfirmable) {
            Ok(()) => sent += client.sent().iter().map(Vec::len).sum::<usize>(),
            Err(RequestError::Silent { until }) => break until,
            Err(other) => panic!("{other}"),
        }
        assert!(sent < 5000, "no end");
    };
    assert!((4097..4200).contains(&sent), "{sent}");
    assert_eq!(until, client.now + Duration::from_secs(sent as u64 - 4096));
    assert_eq!(ask(&mut client, Confirmability::Confirmable), Ok(()), "a CON has brakes of its own");
    client.now = until;
    assert_eq!(ask(&mut client, Confirmability::NonConfirmable), Ok(()));
    assert!(ask(&mut client, Confirmability::NonConfirmable).is_err());
    // Any answer ends the silence.
    let request = client.sent().pop().unwrap();
    let token = CoapMessage::parse(&request).unwrap().token;
    let mut answer = vec![0x50 | token.len() as u8, 0x45, 0, 1];
    answer.extend_from_slice(&token);
    client.receive(SERVER, &answer);
    for _ in 0..100 {
        assert_eq!(ask(&mut client, Confirmability::NonConfirmable), Ok(()));
    }
}

#[test]
fn a_group_is_not_a_silent_peer() {
    let mut client = Host::new(Config::default());
    let group = Peer::from((Ipv4Addr::new(224, 0, 1, 187), SERVER));
    for _ in 0..500 {
        let asked = client.endpoint.request(client.now, group, RequestBuf::get("/a"), Confirmability::NonConfirmable);
        assert!(asked.is_ok());
    }
}

#[test]
fn a_registration_from_an_unproved_address_costs_one_small_notification_and_ends() {
    let mut server = Host::new(Config::default());
    let observable = |request: &CoapRequest<'_>| large(request).observable();
    let token = Token::from_u64(7);
    let mut request = vec![0x40 | token.len() as u8, 1, 0, 1];
    request.extend_from_slice(&token);
    write_option(&mut request, OptionNumber(0), OptionNumber::OBSERVE, &[]);
    write_option(&mut request, OptionNumber::OBSERVE, PATH.0, PATH.1);
    server.receive(1, &request);
    server.serve(observable);
    server.sent();
    for _ in 0..200 {
        server.endpoint.notify(server.now, "/large");
        server.serve(observable);
        server.pass(Duration::from_secs(1));
        server.sent().iter().for_each(|sent| check_bound(&request, sent));
    }
    assert_eq!(server.endpoint.counters().observers, 0);
}
