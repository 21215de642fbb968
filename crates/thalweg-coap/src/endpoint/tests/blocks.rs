//! Bodies in blocks, both ways.

use super::*;
use crate::message::{Block, ETag};

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// The client sends `request`; gives the lines and the response.
fn run(config: Config, request: RequestBuf, handler: impl Fn(&CoapRequest<'_>) -> Response) -> (Vec<String>, Response) {
    let (mut client, mut server) = (Host::new(config), Host::new(trusting()));
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    let lines = exchange(&mut client, &mut server, handler);
    let counters = client.endpoint.counters();
    assert_eq!((counters.requests, counters.transfer_bytes), (0, 0), "nothing is left at the client");
    (lines, response(&mut client))
}

#[test]
fn a_response_in_blocks_asks_the_handler_once() {
    let asked = std::cell::Cell::new(0);
    let (lines, response) = run(Config::default(), RequestBuf::get("/a"), |_| {
        asked.set(asked.get() + 1);
        Response::content(body(2100), 42)
    });
    assert_eq!(
        lines,
        [
            "> CON 0.01 /a",
            "< ACK 2.05 ETag Content-Format=42 Block2=0/1/1024 Size2=2100 [1024]",
            "> CON 0.01 /a Block2=1/0/1024",
            "< ACK 2.05 ETag Content-Format=42 Block2=1/1/1024 [1024]",
            "> CON 0.01 /a Block2=2/0/1024",
            "< ACK 2.05 ETag Content-Format=42 Block2=2/0/1024 [52]",
        ]
    );
    assert_eq!((response.payload.to_vec(), response.content_format, asked.get()), (body(2100), Some(42), 1));
}

#[test]
fn a_request_in_blocks_arrives_whole_and_once() {
    let arrived = std::cell::RefCell::new(Vec::new());
    let (lines, response) = run(Config::default(), RequestBuf::put("/a", body(2100)), |request| {
        arrived.borrow_mut().push(request.payload.to_vec());
        Response::new(Code::CHANGED)
    });
    assert_eq!(
        lines,
        [
            "> CON 0.03 /a Block1=0/1/1024 Size1=2100 Request-Tag [1024]",
            "< ACK 2.31 Block1=0/1/1024",
            "> CON 0.03 /a Block1=1/1/1024 Request-Tag [1024]",
            "< ACK 2.31 Block1=1/1/1024",
            "> CON 0.03 /a Block1=2/0/1024 Request-Tag [52]",
            "< ACK 2.04 Block1=2/0/1024",
        ]
    );
    assert_eq!((response.code, arrived.into_inner()), (Code::CHANGED, vec![body(2100)]));
}

#[test]
fn a_mebibyte_goes_both_ways_in_one_request() {
    let (lines, response) = run(Config::default(), RequestBuf::post("/a", body(1 << 20)), |request| {
        let mut reply = request.payload.to_vec();
        reply.reverse();
        Response::content(reply, 42)
    });
    let mut expected = body(1 << 20);
    expected.reverse();
    assert_eq!(response.payload.to_vec(), expected);
    assert_eq!(lines.len(), 2 * (1024 + 1023));
}

#[test]
fn a_client_may_ask_for_any_block() {
    for number in [0, 1, 3, 65] {
        let block = Block { number, more: false, exponent: 1 };
        let request = RequestBuf::get("/a").with_uint(OptionNumber::BLOCK2, block.to_uint());
        let (lines, response) = run(Config::default(), request, |_| Response::content(body(2100), 42));
        assert_eq!(lines.len(), 2);
        let at = number as usize * 32;
        assert_eq!(response.payload.to_vec(), body(2100)[at..2100.min(at + 32)]);
        assert_eq!(response.block, Some(Block { more: number != 65, ..block }));
    }
    let request = RequestBuf::get("/a").with_uint(OptionNumber::BLOCK2, 66 << 4 | 1);
    let (_, response) = run(Config::default(), request, |_| Response::content(body(2100), 42));
    assert_eq!(response.code, Code::BAD_REQUEST);
}

#[test]
fn the_server_may_want_smaller_blocks() {
    let (mut client, mut server) =
        (Host::new(Config::default()), Host::new(Config { block_exponent: 2, ..trusting() }));
    let request = RequestBuf::put("/a", body(1100));
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    let arrived = std::cell::RefCell::new(Vec::new());
    let lines = exchange(&mut client, &mut server, |request| {
        arrived.borrow_mut().extend_from_slice(request.payload);
        Response::content(request.payload.to_vec(), 42)
    });
    assert_eq!(lines[1], "< ACK 2.31 Block1=0/1/64");
    assert_eq!(lines[2], "> CON 0.03 /a Block1=16/1/64 Request-Tag [64]");
    assert_eq!((arrived.into_inner(), response(&mut client).payload.to_vec()), (body(1100), body(1100)));
}

#[test]
fn bodies_have_a_limit_in_both_directions() {
    let small = EndpointLimits { body_bytes_max: 3000, ..EndpointLimits::default() };
    let (mut client, mut server) =
        (Host::new(Config::default()), Host::new(Config { limits: small.clone(), ..trusting() }));
    let request = RequestBuf::put("/a", body(3001));
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    let lines = exchange(&mut client, &mut server, nobody);
    assert_eq!(lines.len(), 2, "Size1 says it at once: {lines:?}");
    let refused = response(&mut client);
    assert_eq!((refused.code, refused.size), (Code::REQUEST_ENTITY_TOO_LARGE, Some(3000)));
    // The same without Size1: block after block.
    for number in 0..3 {
        let block = Block { number, more: true, exponent: 6 };
        let mut datagram = bytes(&format!("4003000{number} b161"));
        crate::message::write_option(
            &mut datagram,
            OptionNumber::URI_PATH,
            OptionNumber::BLOCK1,
            crate::message::encode_uint(block.to_uint(), &mut [0; 4]),
        );
        datagram.push(0xff);
        datagram.extend([1; 1024]);
        server.receive(2, &datagram);
    }
    assert!(server.lines()[2].starts_with("ACK 4.13"));
    assert_eq!(server.endpoint.counters().transfer_bytes, 0);
    let (mut client, mut server) = (Host::new(Config { limits: small, ..Config::default() }), Host::new(trusting()));
    client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/a"), Confirmability::Confirmable).unwrap();
    exchange(&mut client, &mut server, |_| Response::content(body(5000), 42));
    match client.events().as_slice() {
        [EndpointEvent::Failed { error: RequestError::BodyTooLarge, .. }] => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_that_changes_under_way_is_fetched_anew_and_never_mixed() {
    let (mut client, mut server) = (Host::new(trusting()), Host::new(trusting()));
    client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/a"), Confirmability::Confirmable).unwrap();
    let version = std::cell::Cell::new(1_u8);
    let handler = |_: &CoapRequest<'_>| {
        let tag = ETag::from_u64(u64::from(version.get()));
        Response::content(vec![version.get(); 2500], 42).with_etag(tag)
    };
    for step in 0..2 {
        let request = client.sent();
        server.receive(CLIENT, &request[0]);
        server.serve(handler);
        let answer = server.sent();
        client.receive(SERVER, &answer[0]);
        if step == 0 {
            // The server forgets the body it was serving; the next block comes from another one.
            server = Host::new(trusting());
            version.set(2);
        }
    }
    exchange(&mut client, &mut server, handler);
    assert_eq!(response(&mut client).payload.to_vec(), vec![2; 2500]);
}

#[test]
fn a_request_that_changes_something_is_not_run_again_when_its_response_changes_under_way() {
    let (mut client, mut server) = (Host::new(trusting()), Host::new(trusting()));
    let request = RequestBuf::post("/a", "x");
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    let runs = std::cell::Cell::new(0_u8);
    let handler = |_: &CoapRequest<'_>| {
        runs.set(runs.get() + 1);
        Response::content(vec![runs.get(); 2500], 42).with_etag(ETag::from_u64(u64::from(runs.get())))
    };
    server.receive(CLIENT, &client.sent()[0]);
    server.serve(handler);
    client.receive(SERVER, &server.sent()[0]);
    // Another POST of the same client: the server holds its response in the place of the first one's.
    server.receive(CLIENT, &bytes("41020001 07 b161 ff79"));
    server.serve(handler);
    server.sent();
    let lines = exchange(&mut client, &mut server, handler);
    assert_eq!((lines.len(), lines[0].as_str()), (2, "> CON 0.02 /a Block2=1/0/1024"), "{lines:?}");
    assert_eq!(runs.get(), 2);
    match client.events().as_slice() {
        [EndpointEvent::Failed { error: RequestError::BodyChanged, .. }] => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_block_is_noticed_and_the_body_sent_again() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    let request = RequestBuf::put("/a", body(2500));
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    let first = client.sent();
    server.receive(CLIENT, &first[0]);
    client.receive(SERVER, &server.sent()[0]);
    let mut restarted = Host::new(trusting());
    let arrived = std::cell::RefCell::new(Vec::new());
    let lines = exchange(&mut client, &mut restarted, |request| {
        arrived.borrow_mut().extend_from_slice(request.payload);
        Response::new(Code::CHANGED)
    });
    assert!(lines[1].starts_with("< ACK 4.08"), "{lines:?}");
    assert_eq!(arrived.into_inner(), body(2500));
}

/// A server that keeps nothing of a body uses each block by itself (RFC 7959 §3.2).
#[test]
fn a_body_whose_blocks_are_used_one_by_one_is_sent_to_its_end() {
    let mut client = Host::new(Config::default());
    let request = RequestBuf::put("/a", body(2100));
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    let mut lines = Vec::new();
    for number in 0..3 {
        let events = client.events();
        assert!(events.is_empty(), "after {number} of 3 blocks: {events:?}");
        let sent = client.sent().remove(0);
        lines.push(describe(&sent));
        let request = CoapMessage::parse(&sent).unwrap();
        let (mut answer, kind) = (Vec::new(), MessageType::Acknowledgement);
        let (code, id, token) = (Code::CHANGED, request.id, request.token);
        let mut writer = crate::message::MessageWriter::new(&mut answer, kind, code, id, &token);
        writer.uint(OptionNumber::BLOCK1, Block { number, more: false, exponent: 6 }.to_uint());
        client.receive(SERVER, &answer);
    }
    assert_eq!(
        lines,
        [
            "CON 0.03 /a Block1=0/1/1024 Size1=2100 Request-Tag [1024]",
            "CON 0.03 /a Block1=1/1/1024 Request-Tag [1024]",
            "CON 0.03 /a Block1=2/0/1024 Request-Tag [52]",
        ]
    );
    assert_eq!((response(&mut client).code, client.sent().len()), (Code::CHANGED, 0));
}

#[test]
fn unfinished_bodies_make_room_for_others_and_end() {
    let limits = EndpointLimits { transfer_bytes_max: 10_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..trusting() });
    for port in 1..=1000 {
        let mut datagram = bytes("40030001 b161 d1030eff");
        datagram.extend([1; 1024]);
        server.receive(port, &datagram);
        assert_eq!(server.lines(), ["ACK 2.31 Block1=0/1/1024"]);
        assert!(server.endpoint.counters().transfer_bytes <= 10_000);
    }
}

/// Block `number` of a body of many, with further options behind Block1.
fn block_of(code: Code, id: u16, number: u32, further: &[(OptionNumber, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    let token = crate::message::Token::EMPTY;
    let id = crate::message::MessageId(id);
    let mut writer = crate::message::MessageWriter::new(&mut out, MessageType::Confirmable, code, id, &token);
    writer.option(OptionNumber::URI_PATH, b"a");
    writer.uint(OptionNumber::BLOCK1, Block { number, more: true, exponent: 0 }.to_uint());
    further.iter().for_each(|(number, value)| {
        writer.uint(*number, *value);
    });
    writer.payload(&[1; 16]);
    out
}

#[test]
fn the_duplicate_of_a_block_is_answered_as_before_whatever_the_method() {
    for code in [Code::PUT, Code::FETCH] {
        let mut server = Host::new(trusting());
        server.receive(1, &block_of(code, 1, 0, &[]));
        server.receive(1, &block_of(code, 2, 1, &[]));
        server.receive(1, &block_of(code, 2, 1, &[]));
        server.receive(1, &block_of(code, 3, 2, &[]));
        let expected = ["0/1/16", "1/1/16", "1/1/16", "2/1/16"].map(|block| format!("ACK 2.31 Block1={block}"));
        assert_eq!(server.lines(), expected, "{code}");
    }
}

#[test]
fn a_client_that_wants_no_response_is_still_asked_to_go_on() {
    let mut server = Host::new(trusting());
    server.receive(1, &block_of(Code::PUT, 1, 0, &[(OptionNumber::NO_RESPONSE, 26)]));
    assert_eq!(server.lines(), ["ACK 2.31 Block1=0/1/16"]);
}

#[test]
fn fetch_repeats_its_payload_for_further_blocks() {
    let request = RequestBuf::new(Code::FETCH, "/a").with_payload("what");
    let (lines, response) = run(Config::default(), request, |request| {
        assert_eq!(request.payload, b"what");
        Response::content(body(1500), 42)
    });
    assert_eq!(lines[2], "> CON 0.05 /a Block2=1/0/1024 [4]");
    assert_eq!(response.payload.to_vec(), body(1500));
}

/// The payload of FETCH says what of the resource is wanted (RFC 8132 §2.1).
#[test]
fn blocks_of_two_fetches_are_those_of_the_one_that_was_asked() {
    let mut server = Host::new(trusting());
    let text = |request: &CoapRequest<'_>| {
        let letter = request.payload.first().copied().unwrap_or(b'?');
        // A tag of the resource, whatever of it is asked for.
        Response::content(vec![letter; 1500], 0).with_etag(crate::message::ETag::new(&[1]).unwrap())
    };
    let ask = |server: &mut Host, id: u16, block: u32, payload: &[u8]| {
        let mut bytes = Vec::new();
        let token = crate::message::Token::from_u64(7);
        let (kind, id) = (MessageType::Confirmable, crate::message::MessageId(id));
        let mut writer = crate::message::MessageWriter::new(&mut bytes, kind, Code::FETCH, id, &token);
        writer.option(OptionNumber::URI_PATH, b"a");
        writer.uint(OptionNumber::BLOCK2, crate::message::Block { number: block, more: false, exponent: 6 }.to_uint());
        writer.payload(payload);
        server.receive(CLIENT, &bytes);
        server.serve(text);
        let sent = server.sent().remove(0);
        CoapMessage::parse(&sent).unwrap().payload.first().copied()
    };
    assert_eq!(ask(&mut server, 1, 0, b"1"), Some(b'1'));
    assert_eq!(ask(&mut server, 2, 0, b"2"), Some(b'2'));
    assert_eq!(ask(&mut server, 3, 1, b"1"), Some(b'1'));
    assert_eq!(ask(&mut server, 4, 1, b"2"), Some(b'2'));
    assert_eq!(ask(&mut server, 5, 1, b""), Some(b'2'), "the last one, without its payload again");
}
