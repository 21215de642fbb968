//! Protected requests through whole endpoints: what is seen on the wire, and what is believed.

mod restarts;

use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::message::{MessageWriter, Observe};
use crate::oscore::{Context, ContextParameters, Keyring, OneRun, Past};

const CHALLENGE: [u8; 8] = *b"as drawn";

fn context(sender: &[u8], recipient: &[u8], secret: u8, past: Past) -> Arc<Context> {
    let parameters = ContextParameters::new(&[secret; 16], sender, recipient).unwrap();
    Context::new(&parameters, 0, Box::new(OneRun), past)
}

fn context_of_server() -> Arc<Context> {
    context(b"s", b"c", 7, Past::Unused)
}

/// A client with its keys, and a server that knows them.
fn ends(past: Past) -> (Host, Host, Arc<Context>) {
    let (client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    let keyring = Keyring::new([context(b"s", b"c", 7, past)]).unwrap();
    server.endpoint.set_keyring(Arc::new(keyring));
    (client, server, context(b"c", b"s", 7, Past::Unused))
}

fn ask(client: &mut Host, context: &Arc<Context>, request: RequestBuf) -> RequestId {
    client.endpoint.request_protected(client.now, peer(SERVER), request, Confirmability::Confirmable, context).unwrap()
}

/// A datagram whose readable options somebody changed on the way.
fn changed<'a>(datagram: &'a [u8], change: impl FnOnce(&mut Vec<(OptionNumber, &'a [u8])>)) -> Vec<u8> {
    let message = CoapMessage::parse(datagram).unwrap();
    let mut options: Vec<_> = message.options.collect();
    change(&mut options);
    options.sort_by_key(|(number, _)| *number);
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, message.message_type, message.code, message.id, &message.token);
    for (number, value) in options {
        writer.option(number, value);
    }
    writer.payload(message.payload);
    bytes
}

#[track_caller]
fn error(client: &mut Host) -> RequestError {
    match client.events().as_slice() {
        [EndpointEvent::Failed { error, .. }] => error.clone(),
        other => panic!("expected one failure: {other:?}"),
    }
}

#[test]
fn a_protected_request_is_answered_protected() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let request = RequestBuf::put("/a?b", "x").with_content_format(0);
    ask(&mut client, &context, request.clone());
    let served = RefCell::new(Vec::new());
    let lines = exchange(&mut client, &mut server, |request| {
        served.borrow_mut().push(request.to_owned());
        Response::content("done", 0).with_max_age(7)
    });
    assert_eq!(lines, ["> CON 0.02 OSCORE=589923 [16]", "< ACK 2.04 OSCORE=0 [17]"]);
    assert_eq!(served.into_inner(), [request]);
    let response = response(&mut client);
    assert_eq!((&*response.payload, response.max_age, response.code), (&b"done"[..], Some(7), Code::CONTENT));
}

#[test]
fn the_endpoint_knows_what_was_protected() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/a"));
    client.endpoint.request(client.now, peer(SERVER), RequestBuf::get("/a"), Confirmability::NonConfirmable).unwrap();
    client.sent().iter().for_each(|bytes| server.receive(CLIENT, bytes));
    let exchanges = server.exchanges();
    assert_eq!(exchanges.len(), 2);
    assert_eq!(exchanges.iter().map(|one| server.endpoint.is_protected(*one)).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_request_that_names_another_server_stays_closed_whoever_wrote_the_name() {
    let (mut client, _, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::put("/door", "open"));
    let request = client.sent().remove(0);
    for (number, value) in
        [(OptionNumber::PROXY_SCHEME, &b"coap"[..]), (OptionNumber::PROXY_URI, &b"coap://evil.example"[..])]
    {
        let led_away = changed(&request, |options| options.push((number, value)));
        for proxying in [true, false] {
            let mut server = Host::new(Config { proxying, ..trusting() });
            server.endpoint.set_keyring(Arc::new(Keyring::new([context_of_server()]).unwrap()));
            server.receive(CLIENT, &led_away);
            if proxying {
                let served = server.serve(|_| Response::new(Code::CHANGED));
                let view = served[0].view();
                assert!(view.options.value(OptionNumber::OSCORE).is_some() && view.path() == "/", "{served:?}");
                assert_eq!(view.payload, CoapMessage::parse(&request).unwrap().payload);
                assert_eq!(server.lines(), ["ACK 2.04"], "nor is the answer protected here");
            } else {
                assert_eq!(server.serve(nobody).len(), 0);
                assert_eq!(server.lines(), ["ACK 5.05"]);
            }
            // Its number is not used up.
            server.receive(CLIENT + 1, &request);
            assert_eq!(server.serve(hello)[0].view().path(), "/door");
        }
    }
}

#[test]
fn a_readable_host_keeps_no_request_from_its_answer() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let request =
        RequestBuf::get("/a").with_option(OptionNumber::URI_HOST, b"house").with_uint(OptionNumber::URI_PORT, 9);
    ask(&mut client, &context, request.clone());
    let datagram = client.sent().remove(0);
    server.receive(CLIENT, &datagram);
    assert_eq!(server.serve(hello), [request]);
    server.sent().iter().for_each(|bytes| client.receive(SERVER, bytes));
    assert_eq!(&*response(&mut client).payload, b"hello world");
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_a_replayed_one_none() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/a"));
    let request = client.sent().remove(0);
    server.receive(CLIENT, &request);
    assert_eq!(server.serve(hello).len(), 1);
    let answer = server.sent();
    server.receive(CLIENT, &request);
    assert_eq!((server.serve(nobody).len(), server.sent()), (0, answer), "even for a GET the bytes are the same");
    // From another address it is the replay of an attacker, and so it is with another message ID.
    server.receive(CLIENT + 1, &request);
    let mut other_id = request.clone();
    other_id[3] ^= 1;
    server.receive(CLIENT, &other_id);
    assert_eq!(server.serve(nobody).len(), 0);
    assert_eq!(server.lines(), ["ACK 4.01 Max-Age=0 [15]", "ACK 4.01 Max-Age=0 [15]"]);
    assert_eq!(server.endpoint.counters().protected_refused, 2);
}

#[test]
fn protected_reading_takes_no_room_from_answers_that_must_stay() {
    let (mut client, _, context) = ends(Past::Unused);
    let limits = EndpointLimits { answer_bytes_max: 20_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..trusting() });
    server.endpoint.set_keyring(Arc::new(Keyring::new([context_of_server()]).unwrap()));
    let post = bytes("40020001 b161");
    server.receive(1, &post);
    assert_eq!(server.serve(hello).len(), 1);
    let answer = server.sent();
    for _ in 0..300 {
        ask(&mut client, &context, RequestBuf::get("/a"));
        exchange(&mut client, &mut server, hello);
        assert_eq!(response(&mut client).code, Code::CONTENT);
    }
    server.receive(1, &post);
    assert_eq!((server.serve(nobody).len(), server.sent()), (0, answer));
}

#[test]
fn large_bodies_go_both_ways_in_protected_blocks() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let body: Vec<u8> = (0..5000_u32).map(|number| number as u8).collect();
    ask(&mut client, &context, RequestBuf::post("/echo", body.clone()));
    let lines = exchange(&mut client, &mut server, |request| Response::content(request.payload.to_vec(), 42));
    assert_eq!(lines.len(), 18, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("OSCORE") && !line.contains("Block")), "{lines:?}");
    assert_eq!(response(&mut client).payload.to_vec(), body);
}

#[test]
fn blocks_of_others_do_not_mix_with_protected_ones() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::put("/a", vec![1; 2000]));
    // The first block arrives; then somebody with the client's address sends an unprotected last one.
    let first = client.sent().remove(0);
    server.receive(CLIENT, &first);
    assert_eq!(server.serve(nobody).len(), 0);
    // It even knows what is encrypted.
    let spy = Keyring::new([context_of_server()]).unwrap();
    let seen = spy.verify(&CoapMessage::parse(&first).unwrap()).unwrap();
    let is_of_block = |number: OptionNumber| number == OptionNumber::BLOCK1 || number == OptionNumber::SIZE1;
    let others = seen.request.view().options.filter(|(number, _)| !is_of_block(*number));
    let forged =
        others.fold(RequestBuf::new(Code::PUT, ""), |forged, (number, value)| forged.with_option(number, value));
    let forged = forged.with_uint(OptionNumber::BLOCK1, 1 << 4 | 6).with_payload(vec![2; 976]);
    let mut bytes = Vec::new();
    let (id, token) = (crate::message::MessageId(99), crate::message::Token::EMPTY);
    let mut writer = crate::message::MessageWriter::new(&mut bytes, MessageType::Confirmable, Code::PUT, id, &token);
    writer.options(forged.view().options);
    writer.payload(forged.view().payload);
    server.receive(CLIENT, &bytes);
    assert_eq!(server.serve(nobody).len(), 0);
    assert!(server.lines()[1].starts_with("ACK 4.08"));
}

#[test]
fn notifications_are_protected_and_end_when_the_client_says_so() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let id = ask(&mut client, &context, RequestBuf::get("/a").with_observe(Observe::Register));
    let state = |text: &'static str| move |_: &CoapRequest<'_>| Response::content(text, 0).observable();
    let lines = exchange(&mut client, &mut server, state("0"));
    assert!(lines[0].starts_with("> CON 0.05 Observe=0 OSCORE="), "{lines:?}");
    assert!(lines[1].starts_with("< ACK 2.05 Observe=") && lines[1].contains("OSCORE=0"), "{lines:?}");
    let mut lost = Vec::new();
    for text in ["1", "2", "3"] {
        server.endpoint.notify(server.now, "/a");
        server.serve(state(text));
        let sent = server.sent();
        assert_eq!(sent.len(), 1, "{text}");
        if text == "2" {
            lost = sent; // Overtaken by the next.
        } else {
            sent.iter().for_each(|bytes| client.receive(SERVER, bytes));
            client.sent().iter().for_each(|bytes| server.receive(CLIENT, bytes));
        }
    }
    client.receive(SERVER, &lost[0]);
    let states: Vec<Vec<u8>> = client
        .events()
        .into_iter()
        .map(|event| match event {
            EndpointEvent::Response { response, .. } if response.observe.is_some() => response.payload.to_vec(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(states, [b"0", b"1", b"3"], "the late one is older");
    // Who knows the token but not the keys ends nothing.
    let token = CoapMessage::parse(&lost[0]).unwrap().token;
    let mut farewell = vec![0x50 | token.len() as u8, 1, 0xaa, 0xaa];
    farewell.extend_from_slice(&token);
    farewell.extend_from_slice(&[0x61, 1, 0x51, b'a']);
    server.receive(CLIENT, &farewell);
    server.serve(hello);
    server.sent();
    assert_eq!(server.endpoint.observers("/a"), 1);
    client.endpoint.cancel(client.now, id);
    exchange(&mut client, &mut server, hello);
    assert_eq!(server.endpoint.observers("/a"), 0);
}

/// RFC 8613 §4.1.3.5.1, §8.2, Appendix D.5.2: the endpoints ignore the readable option.
#[test]
fn only_the_encrypted_observe_option_registers_whatever_becomes_of_the_readable_one() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let state = |_: &CoapRequest<'_>| Response::content("0", 0).observable();
    let without_observe =
        |datagram: &[u8]| changed(datagram, |options| options.retain(|(number, _)| *number != OptionNumber::OBSERVE));
    ask(&mut client, &context, RequestBuf::get("/a").with_observe(Observe::Register));
    server.receive(CLIENT, &without_observe(&client.sent().remove(0)));
    server.serve(state);
    assert_eq!(server.endpoint.observers("/a"), 1);
    client.receive(SERVER, &without_observe(&server.sent().remove(0)));
    assert!(response(&mut client).observe.is_some());
    ask(&mut client, &context, RequestBuf::get("/b"));
    let registered = changed(&client.sent().remove(0), |options| options.push((OptionNumber::OBSERVE, &[])));
    server.receive(CLIENT, &registered);
    server.serve(state);
    assert_eq!(server.endpoint.observers("/b"), 0);
    let answer = changed(&server.sent().remove(0), |options| options.push((OptionNumber::OBSERVE, &[9])));
    client.receive(SERVER, &answer);
    assert!(response(&mut client).observe.is_none());
}

#[test]
fn an_observer_registers_again_under_new_numbers() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/a").with_observe(Observe::Register));
    let state = |_: &CoapRequest<'_>| Response::content("x", 0).observable().with_max_age(1);
    exchange(&mut client, &mut server, state);
    client.pass(Duration::from_secs(30)); // The state is not fresh any more.
    assert_eq!(exchange(&mut client, &mut server, state).len(), 2);
    server.endpoint.notify(server.now, "/a");
    server.serve(state);
    exchange(&mut client, &mut server, nobody);
    assert_eq!(client.events().len(), 3);
    assert_eq!(server.endpoint.observers("/a"), 1);
}

#[test]
fn a_restarted_server_asks_for_a_proof_and_goes_on() {
    let (mut client, mut server, context) = ends(Past::Lost(CHALLENGE));
    for round in 0..2 {
        ask(&mut client, &context, RequestBuf::post("/a", "x"));
        let lines = exchange(&mut client, &mut server, hello);
        assert_eq!(lines.len(), if round == 0 { 4 } else { 2 }, "{lines:?}");
        assert_eq!(&*response(&mut client).payload, b"hello world");
    }
}

#[test]
fn challenges_after_a_restart_take_no_room_from_answers_that_are_needed() {
    let limits = EndpointLimits { answer_bytes_max: 40_000, ..EndpointLimits::default() };
    let mut server = Host::new(Config { limits, ..trusting() });
    let keyring = Keyring::new([context(b"s", b"c", 7, Past::Lost(CHALLENGE))]).unwrap();
    server.endpoint.set_keyring(Arc::new(keyring));
    let mut other = Host::new(Config::default());
    let post = RequestBuf::post("/a", "x");
    other.endpoint.request(other.now, peer(SERVER), post.clone(), Confirmability::Confirmable).unwrap();
    let needed = other.sent().remove(0);
    server.receive(CLIENT, &needed);
    server.serve(hello);
    let answer = server.sent();
    let mut client = Host::new(Config::default());
    ask(&mut client, &context(b"c", b"s", 7, Past::Unused), post);
    let captured = client.sent().remove(0);
    let mut challenges = Vec::new();
    for copy in 0..2000 {
        server.receive(CLIENT + 1 + copy / 2, &captured);
        assert!(server.serve(nobody).is_empty());
        challenges.extend(server.sent());
    }
    challenges.sort_unstable();
    challenges.dedup();
    assert_eq!(challenges.len(), 2000, "no nonce is used twice");
    assert_eq!(server.endpoint.counters().answers_evicted, 0);
    server.receive(CLIENT, &needed);
    assert!(server.serve(nobody).is_empty(), "it does not run again");
    assert_eq!(server.sent(), answer);
}

#[test]
fn a_proof_for_the_keys_is_one_for_the_address() {
    let (mut client, mut server, context) = ends(Past::Lost(CHALLENGE));
    server.endpoint.config.amplification_max = 1;
    ask(&mut client, &context, RequestBuf::get("/a"));
    let lines = exchange(&mut client, &mut server, |_| Response::content(vec![b'x'; 500], 0));
    assert_eq!(lines.len(), 4, "one challenge, not two: {lines:?}");
    assert_eq!(response(&mut client).payload.len(), 500);
}

#[test]
fn a_large_protected_response_waits_for_a_proof_of_the_address() {
    let (mut client, mut server, context) = ends(Past::Unused);
    server.endpoint.config.amplification_max = 3;
    ask(&mut client, &context, RequestBuf::get("/a"));
    let lines = exchange(&mut client, &mut server, |_| Response::content(vec![b'x'; 500], 0));
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("OSCORE")), "{lines:?}");
    assert_eq!(response(&mut client).payload.len(), 500);
}

#[test]
fn separate_responses_are_protected_too() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/a"));
    client.sent().iter().for_each(|bytes| server.receive(CLIENT, bytes));
    let exchanges = server.exchanges();
    server.pass(Duration::from_secs(2));
    server.sent().iter().for_each(|bytes| client.receive(SERVER, bytes));
    server.endpoint.respond(server.now, exchanges[0], Response::content("late", 0)).unwrap();
    let lines = exchange(&mut client, &mut server, nobody);
    assert_eq!(lines, ["< CON 2.04 OSCORE=0 [15]", "> ACK 0.00"]);
    assert_eq!(&*response(&mut client).payload, b"late");
}

#[test]
fn what_is_changed_on_the_way_is_as_if_it_was_lost() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/a"));
    let request = client.sent().remove(0);
    server.receive(CLIENT, &request);
    server.serve(hello);
    let answer = server.sent().remove(0);
    let mut changed = answer.clone();
    *changed.last_mut().unwrap() ^= 1;
    client.receive(SERVER, &changed);
    assert_eq!((client.events(), client.endpoint.counters().protected_refused), (vec![], 1));
    client.pass(Duration::from_secs(4));
    assert_eq!(client.sent(), [request], "it asks again with the same bytes");
    client.receive(SERVER, &answer);
    assert_eq!(&*response(&mut client).payload, b"hello world");
}

#[test]
fn ends_with_different_keys_are_told_so() {
    let (mut client, mut server, _) = ends(Past::Unused);
    let check = |client: &mut Host, server: &mut Host, context: &Arc<Context>, expect: &str| {
        ask(client, context, RequestBuf::get("/a"));
        exchange(client, server, nobody);
        let error = error(client).to_string();
        assert!(error.contains(expect) && error.contains("same OSCORE keys"), "{error}");
    };
    check(&mut client, &mut server, &context(b"c", b"s", 8, Past::Unused), "Decryption failed");
    check(&mut client, &mut server, &context(b"x", b"s", 7, Past::Unused), "Security context not found");
    let mut ignorant = Host::new(trusting());
    check(&mut client, &mut ignorant, &context(b"c", b"s", 7, Past::Unused), "OSCORE is not understood");
    // A server whose answers are protected with other keys than the client's.
    ask(&mut client, &context(b"c", b"t", 7, Past::Unused), RequestBuf::get("/a"));
    exchange(&mut client, &mut server, hello);
    assert_eq!(client.events(), []);
    for _ in 0..8 {
        client.pass(Duration::from_secs(40));
    }
    assert_eq!(error(&mut client), RequestError::Unverifiable);
}

#[test]
fn an_unprotected_answer_is_never_taken_for_one() {
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &context, RequestBuf::get("/door"));
    let request = client.sent().remove(0);
    let outer = CoapMessage::parse(&request).unwrap();
    let mut forged = vec![0x60 | outer.token.len() as u8, 0x45, request[2], request[3]];
    forged.extend_from_slice(&outer.token);
    forged.extend_from_slice(b"\xffopen");
    client.receive(SERVER, &forged);
    let expect = RequestError::Unprotected { code: Code::CONTENT, diagnosis: "open".to_owned() };
    assert_eq!(error(&mut client), expect);
    // An observation goes on.
    let id = ask(&mut client, &context, RequestBuf::get("/a").with_observe(Observe::Register));
    exchange(&mut client, &mut server, |_| Response::content("0", 0).observable());
    client.events();
    server.endpoint.notify(server.now, "/a");
    server.serve(|_| Response::content("1", 0).observable());
    let notification = server.sent().remove(0);
    let token = CoapMessage::parse(&notification).unwrap().token;
    let mut forged = vec![0x50 | token.len() as u8, 0x84, 0xbb, 0xbb];
    forged.extend_from_slice(&token);
    client.receive(SERVER, &forged);
    assert_eq!(client.events(), []);
    client.receive(SERVER, &notification);
    assert!(matches!(client.events().as_slice(), [EndpointEvent::Response { request, .. }] if *request == id));
}

#[test]
fn groups_and_what_cannot_be_protected_are_refused() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let group = Peer::from((Ipv4Addr::new(224, 0, 1, 187), 5683));
    let mut refused = |peer: Peer, request: RequestBuf| {
        let delivery = Confirmability::NonConfirmable;
        client.endpoint.request_protected(client.now, peer, request, delivery, &context).unwrap_err().to_string()
    };
    assert!(refused(group, RequestBuf::get("/a")).contains("group"));
    let proxied = RequestBuf::get("/a").with_option(OptionNumber::PROXY_URI, b"coap://x/");
    assert!(refused(peer(SERVER), proxied).contains("Proxy-Uri"));
    ask(&mut client, &context, RequestBuf::get("/a"));
    let request = client.sent().remove(0);
    let mut to_group = request.clone();
    to_group[0] |= 0x10; // NON
    server.endpoint.handle_multicast(server.now, peer(CLIENT), &to_group);
    assert_eq!((server.serve(nobody).len(), server.lines().len()), (0, 0));
}

/// A store that fails when it is told to.
struct Fragile(Arc<std::sync::atomic::AtomicBool>);

impl crate::oscore::SequenceStore for Fragile {
    fn reserve(&mut self, _end: u64) -> std::io::Result<()> {
        let is_broken = self.0.load(std::sync::atomic::Ordering::Relaxed);
        if is_broken { Err(std::io::Error::other("disk full")) } else { Ok(()) }
    }
}

#[test]
fn without_a_sequence_number_nothing_leaves_readable() {
    let is_broken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let fragile = |sender: &[u8], recipient: &[u8], past| {
        let parameters = ContextParameters::new(&[7; 16], sender, recipient).unwrap();
        Context::new(&parameters, 0, Box::new(Fragile(Arc::clone(&is_broken))), past)
    };
    let (mut client, mut server, context) = ends(Past::Unused);
    ask(&mut client, &fragile(b"c", b"s", Past::Unused), RequestBuf::get("/secret"));
    assert!(error(&mut client).to_string().contains("disk full"));
    assert_eq!(client.lines(), [""; 0]);
    let keyring = Keyring::new([fragile(b"s", b"c", Past::Lost(CHALLENGE))]).unwrap();
    server.endpoint.set_keyring(Arc::new(keyring));
    ask(&mut client, &context, RequestBuf::get("/secret"));
    let lines = exchange(&mut client, &mut server, nobody);
    assert_eq!(lines[1], "< ACK 5.00 [32]");
}

#[test]
fn an_observation_ends_when_its_context_is_taken_away() {
    let (mut client, mut server, context) = ends(Past::Unused);
    let keyring = Arc::new(Keyring::new([context_of_server()]).unwrap());
    server.endpoint.set_keyring(Arc::clone(&keyring));
    ask(&mut client, &context, RequestBuf::get("/a").with_observe(Observe::Register));
    exchange(&mut client, &mut server, |_| Response::content("first", 0).observable());
    assert_eq!(server.endpoint.observers("/a"), 1);
    keyring.replace([]).unwrap();
    server.endpoint.notify(server.now, "/a");
    assert_eq!((server.endpoint.observers("/a"), server.sent().len()), (0, 0));
}
