//! What a server does with requests.

use super::*;

/// `hex` arrives; the handler says hello.
#[track_caller]
fn check(hex: &str, expected: &[&str]) {
    let mut server = Host::new(trusting());
    server.receive(1, &bytes(hex));
    server.serve(hello);
    assert_eq!(server.lines(), expected, "input: {hex}");
}

const GET: &str = "40017d34 bb74656d7065726174757265";
const POST: &str = "40027d34 bb74656d7065726174757265";

#[test]
fn requests_are_answered_as_they_came() {
    check(GET, &["ACK 2.05 Content-Format=0 [11]"]);
    check(&GET.replace("4001", "5001"), &["NON 2.05 Content-Format=0 [11]"]);
}

#[test]
fn what_is_no_request_is_rejected_or_dropped() {
    check("40000001", &["RST 0.00"]); // a ping
    check("40010001 ff", &["RST 0.00"]); // a malformed CON
    check("50010001 ff", &[]);
    check("80010001", &[]);
    check("40600001", &["RST 0.00"]); // a reserved class
    check("50000001", &[]);
    check("60450001 ff31", &[]); // an acknowledgement for nothing
    check("40450001 ff31", &["RST 0.00"]); // a response nobody waits for
    check("50450001 ff31", &[]);
    check("51450001 07 6101 ff31", &["RST 0.00"]); // a notification nobody wants
    check("70000001", &[]);
}

#[test]
fn critical_options_have_to_be_understood() {
    check("40010001 d0fc", &["ACK 4.02 [28]"]); // 265, which nobody defined
    check("50010001 d0fc", &[]); // a NON is dropped
    check("40010001 d0fd", &["ACK 2.05 Content-Format=0 [11]"]); // 266 is elective
    check("40010001 9101", &["ACK 4.02 [24]"]); // OSCORE, which is not supported
    check("40010001 d10401 0101", &["ACK 4.02 [24]"]); // Accept twice
    check("40010001 d3040a0b0c", &["ACK 4.02 [24]"]); // Accept of three bytes
    check("40010001 b2e9e9", &["ACK 4.02 [26]"]); // a path that is no UTF-8
    check("40010001 b22e2e", &["ACK 4.02 [26]"]); // one that leaves its folder
    check("40010001 61 01 01 02 a161", &["ACK 2.05 Content-Format=0 [11]"]); // Observe twice is elective
}

#[test]
fn critical_options_that_are_safe_to_forward_reach_a_driver_that_forwards() {
    let mut server = Host::new(Config { forwarding: true, ..trusting() });
    let mut unread = |hex: &str| {
        server.receive(1, &bytes(hex));
        let asked = server.exchanges();
        (asked.iter().map(|one| server.endpoint.unread_option(*one)).collect::<Vec<_>>(), server.lines())
    };
    let refused = |len: usize| (Vec::new(), vec![format!("ACK 4.02 [{len}]")]);
    assert_eq!(unread("40010001 e006f4"), (vec![Some(OptionNumber(2049))], vec![]));
    assert_eq!(unread("40010002 e006f5"), (vec![None], vec![]), "2050 is elective");
    assert_eq!(unread("40010003 e006f6"), refused(29), "2051 is unsafe");
    assert_eq!(unread("40010004 e006f4 20"), refused(29), "2049, and 2051 behind it");
    assert_eq!(unread("40010005 d10401 0101"), (vec![Some(OptionNumber::ACCEPT)], vec![]), "too often");
}

#[test]
fn a_slow_handler_is_acknowledged_and_answers_by_itself() {
    let mut server = Host::new(trusting());
    server.receive(1, &bytes(GET));
    let exchange = server.exchanges()[0];
    server.pass(Duration::from_millis(999));
    assert!(server.lines().is_empty());
    server.pass(Duration::from_millis(2));
    assert_eq!(server.lines(), ["ACK 0.00"]);
    server.receive(1, &bytes(GET));
    assert_eq!(server.lines(), ["ACK 0.00"], "a duplicate is acknowledged, the handler not asked again");
    assert!(server.exchanges().is_empty());
    server.endpoint.respond(server.now, exchange, hello(&RequestBuf::get("").view())).unwrap();
    let response = server.sent();
    assert_eq!(describe(&response[0]), "CON 2.05 Content-Format=0 [11]");
    assert_eq!(server.endpoint.respond(server.now, exchange, Response::new(Code::CONTENT)), Err(ExchangeGone));
    server.pass(Duration::from_secs(3));
    assert_eq!(server.sent(), response, "repeated until it is acknowledged");
    server.receive(1, &[0x60, 0, response[0][2], response[0][3]]);
    server.pass(Duration::from_secs(100));
    assert!(server.sent().is_empty());
    server.receive(1, &bytes(GET));
    assert_eq!(server.lines(), ["ACK 0.00"], "the response was delivered");
}

#[test]
fn a_separate_response_that_nobody_acknowledges_is_given_up() {
    let mut server = Host::new(trusting());
    server.receive(1, &bytes(GET));
    server.pass(Duration::from_secs(2));
    server.serve(hello);
    let mut copies = 0;
    for _ in 0..200 {
        copies += server.lines().iter().filter(|line| line.starts_with("CON")).count();
        server.pass(Duration::from_secs(1));
    }
    assert_eq!(copies, 5, "once, and four repetitions");
    assert_eq!(server.endpoint.poll_timeout(), None);
}

#[test]
fn a_request_that_changes_something_runs_once() {
    for code in ["4002", "4003", "4004", "4006", "4007", "5002"] {
        let mut server = Host::new(trusting());
        let request = bytes(&POST.replace("4002", code));
        server.receive(1, &request);
        server.receive(1, &request);
        assert_eq!(server.serve(|_| Response::new(Code::CHANGED)).len(), 1, "{code}");
        let answer = server.sent();
        let is_confirmable = code != "5002";
        server.pass(Duration::from_secs(if is_confirmable { 246 } else { 144 }));
        server.receive(1, &request);
        assert_eq!(server.serve(nobody).len(), 0);
        let expected = if is_confirmable { answer } else { Vec::new() };
        assert_eq!(server.sent(), expected, "the same answer again, and none for a NON");
        assert_eq!(server.endpoint.counters().duplicates, 2);
        server.pass(Duration::from_secs(2));
        server.receive(1, &request);
        assert_eq!(server.serve(hello).len(), 1, "an ID may come back after EXCHANGE_LIFETIME or NON_LIFETIME");
        server.receive(2, &request);
        assert_eq!(server.serve(hello).len(), 1, "the same ID of another peer");
    }
}

/// A stranger who took the IDs of a client by requests in its name would have silenced it.
#[test]
fn a_request_under_the_id_of_another_one_is_answered_for_itself() {
    let mut server = Host::new(trusting());
    let forged = bytes(&POST.replace("4002", "5002"));
    server.receive(1, &forged);
    assert_eq!(server.serve(hello).len(), 1);
    server.sent();
    let own = bytes(&POST.replace("40027d34", "41027d34 77"));
    for _ in 0..2 {
        server.receive(1, &own);
        server.serve(hello);
        assert_eq!(server.lines().len(), 1, "its answer, and the same again");
    }
    assert_eq!(server.endpoint.counters().duplicates, 1);
}

#[test]
fn an_id_may_come_back_in_time_however_long_the_handler_took() {
    let mut server = Host::new(trusting());
    let request = bytes(&POST.replace("4002", "5002"));
    server.receive(1, &request);
    server.pass(Duration::from_secs(100));
    assert_eq!(server.serve(hello).len(), 1);
    server.receive(1, &request);
    assert_eq!(server.serve(nobody).len(), 0, "a copy that comes late");
    server.pass(Duration::from_secs(46));
    server.receive(1, &request);
    assert_eq!(server.serve(hello).len(), 1, "NON_LIFETIME after it came");
}

#[test]
fn a_duplicate_of_a_request_that_changes_nothing_is_answered_anew() {
    let mut server = Host::new(trusting());
    server.receive(1, &bytes(GET));
    server.receive(1, &bytes(GET));
    assert_eq!(server.serve(hello).len(), 1, "not while the handler works");
    server.receive(1, &bytes(GET));
    assert_eq!(server.serve(hello).len(), 1);
    let non = GET.replace("4001", "5001").replace("7d34", "7d35");
    server.receive(1, &bytes(&non));
    server.receive(1, &bytes(&non));
    assert_eq!(server.serve(hello).len(), 1, "a NON is not answered twice");
}

#[test]
fn responses_that_are_not_wanted_are_not_sent() {
    // No-Response=2: no 2.xx; 26: none at all.
    let get = |mask: u8| bytes(&format!("50010001 b161 d1ea{mask:02x}"));
    for (mask, code, is_sent) in [
        (2, Code::CONTENT, false),
        (2, Code::NOT_FOUND, true),
        (8, Code::NOT_FOUND, false),
        (16, Code::NOT_FOUND, true),
        (16, Code::INTERNAL_SERVER_ERROR, false),
        (26, Code::CONTENT, false),
        (0, Code::CONTENT, true),
    ] {
        let mut server = Host::new(trusting());
        server.receive(1, &get(mask));
        server.serve(|_| Response::new(code));
        assert_eq!(!server.sent().is_empty(), is_sent, "{mask} {code}");
    }
    check("40010001 b161 d1ea1a", &["ACK 0.00"]);
}

#[test]
fn a_group_answers_in_its_leisure_and_only_with_success() {
    let mut server = Host::new(trusting());
    for (hex, code, expected) in [
        ("50010001 b161", Code::VALID, 1),
        ("50010002 b161", Code::NOT_FOUND, 0),
        ("50010003 b161 d1ea02", Code::NOT_FOUND, 1), // wants errors by No-Response
        ("40010004 b161", Code::CONTENT, 0),          // a CON is no request for a group
    ] {
        server.endpoint.handle_multicast(server.now, peer(1), &bytes(hex));
        server.serve(|_| Response::new(code));
        assert!(server.sent().is_empty(), "not at once: {hex}");
        server.pass(Duration::from_secs(5));
        assert_eq!(server.sent().len(), expected, "{hex}");
    }
}

#[test]
fn a_flood_of_requests_to_a_group_leaves_few_answers_waiting() {
    let limits = EndpointLimits { exchanges_max: 10, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..trusting() });
    for number in 1..=100 {
        server.endpoint.handle_multicast(server.now, peer(number), &bytes("50010001 b161"));
        server.serve(|_| Response::new(Code::VALID));
    }
    server.pass(Duration::from_secs(5));
    assert_eq!(server.sent().len(), 10);
    server.endpoint.handle_multicast(server.now, peer(1), &bytes("50010002 b161"));
    server.serve(|_| Response::new(Code::VALID));
    server.pass(Duration::from_secs(5));
    assert_eq!(server.sent().len(), 1, "there is room again");
}

#[test]
fn handlers_are_not_asked_more_than_they_can_hold() {
    let limits = EndpointLimits { exchanges_max: 3, exchanges_per_peer_max: 2, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..trusting() });
    for (port, id) in [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)] {
        server.receive(port, &bytes(&format!("4001000{id} b161")));
    }
    assert_eq!(server.lines(), ["ACK 4.29 Max-Age=1", "ACK 5.03 Max-Age=1"]);
    assert_eq!(server.serve(hello).len(), 3);
    server.receive(1, &bytes("40010009 b161"));
    assert_eq!(server.serve(hello).len(), 1);
}

#[test]
fn a_flood_of_addresses_costs_no_more_memory_than_was_allowed() {
    let limits = EndpointLimits { peers_max: 1000, answer_bytes_max: 100_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits: limits.clone(), ..trusting() });
    let mut answered = 0;
    for number in 0..100_000_u32 {
        let address = std::net::Ipv4Addr::from(0x0a00_0000 + number / 60_000);
        let flood = Peer::from((address, 1024 + (number % 60_000) as u16));
        let code = if number % 2 == 0 { "4002" } else { "5001" };
        server.endpoint.handle_datagram(server.now, flood, &bytes(&POST.replace("4002", code)));
        if number % 100 == 0 {
            server.receive(1, &bytes(&format!("4002{:04x} b161", number / 100)));
            answered += 1;
        }
        server.serve(|_| Response::new(Code::CHANGED));
        if number % 100 == 0 {
            // While strangers have half of the room for answers, nothing runs for an address that is not proved.
            assert!(server.lines().iter().any(|line| line == "ACK 2.04" || line == "ACK 4.01 Max-Age=0 Echo"));
            // A duplicate while the flood goes on.
            server.receive(1, &bytes(&format!("4002{:04x} b161", number / 100)));
            assert_eq!((server.serve(nobody).len(), server.lines().len()), (0, 1));
        }
        server.pass(Duration::from_micros(100));
    }
    let counters = server.endpoint.counters();
    assert_eq!(answered, 1000);
    assert_eq!((counters.peers, counters.exchanges), (1000, 0));
    assert!(counters.answer_bytes <= limits.answer_bytes_max);
}

#[test]
fn a_peer_in_the_place_of_another_is_not_taken_for_it() {
    let mut server =
        Host::new(Config { limits: EndpointLimits { peers_max: 1, ..EndpointLimits::default() }, ..trusting() });
    for port in 1..=3 {
        server.receive(port, &bytes("50010005 b161"));
        assert_eq!(server.serve(hello).len(), 1, "{port}");
    }
    assert_eq!(server.endpoint.counters().peers, 1);
}

#[test]
fn unknown_methods_and_proxying_are_refused() {
    check("40080001 b161", &["ACK 4.05"]);
    check("40010001 d41668747470", &["ACK 5.05"]);
}
