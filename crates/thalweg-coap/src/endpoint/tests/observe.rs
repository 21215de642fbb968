//! Observation, seen from both sides.

use super::*;
use thalweg_base::rng::Rng;

use crate::message::{Block, ETag, MessageId, MessageWriter, Observe, Token};

fn observe(client: &mut Host, target: &str) -> RequestId {
    let request = RequestBuf::get(target).with_observe(Observe::Register);
    client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap()
}

fn state(text: &'static str) -> impl Fn(&CoapRequest<'_>) -> Response {
    move |_| Response::content(text, 0).observable().with_max_age(100_000)
}

/// Client and server, the client observing `/a`.
fn observed() -> (Host, Host, RequestId) {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    let id = observe(&mut client, "/a");
    let lines = exchange(&mut client, &mut server, state("0"));
    assert_eq!(lines[0], "> CON 0.01 Observe=0 /a");
    assert!(lines[1].starts_with("< ACK 2.05 Observe="), "{}", lines[1]);
    client.events();
    assert_eq!(server.endpoint.observers("/a"), 1);
    (client, server, id)
}

fn notify(server: &mut Host, text: &'static str) {
    server.endpoint.notify(server.now, "/a");
    server.serve(state(text));
}

fn payloads(client: &mut Host) -> Vec<String> {
    let payload = |event| match event {
        EndpointEvent::Response { response, .. } => String::from_utf8(response.payload.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    };
    client.events().into_iter().map(payload).collect()
}

#[test]
fn changes_are_told_first_confirmable_then_not() {
    let (mut client, mut server, _) = observed();
    notify(&mut server, "1");
    let lines = exchange(&mut client, &mut server, nobody);
    assert!(lines[0].starts_with("< CON 2.05 Observe=") && lines[1] == "> ACK 0.00", "{lines:?}");
    notify(&mut server, "2");
    let lines = exchange(&mut client, &mut server, nobody);
    assert!(lines[0].starts_with("< NON 2.05 Observe=") && lines.len() == 1, "{lines:?}");
    assert_eq!(payloads(&mut client), ["1", "2"]);
}

#[test]
fn the_latest_state_is_confirmed_after_a_while_and_each_day() {
    let (mut client, mut server, _) = observed();
    notify(&mut server, "1");
    exchange(&mut client, &mut server, nobody);
    notify(&mut server, "2");
    server.sent(); // lost
    server.pass(Duration::from_secs(3));
    notify(&mut server, "3");
    server.sent(); // lost
    server.pass(Duration::from_secs(3));
    assert_eq!(server.serve(state("3")).len(), 1, "asked again five seconds after the first that was not confirmed");
    let lines = exchange(&mut client, &mut server, nobody);
    assert!(lines[0].starts_with("< CON 2.05"), "{lines:?}");
    assert_eq!(payloads(&mut client), ["1", "3"]);
    server.pass(Duration::from_secs(24 * 3600 - 1));
    assert_eq!(server.serve(nobody).len(), 0);
    server.pass(Duration::from_secs(2));
    assert_eq!(server.serve(state("3")).len(), 1);
}

#[test]
fn an_observer_that_does_not_answer_gets_only_the_latest_state_and_is_dropped_then() {
    let (_, mut server, _) = observed();
    notify(&mut server, "1");
    assert_eq!(server.sent().len(), 1);
    for text in ["2", "3", "4"] {
        server.endpoint.notify(server.now, "/a");
        assert_eq!(server.serve(state(text)).len(), 0, "one at a time");
    }
    server.pass(Duration::from_secs(4));
    assert_eq!(server.serve(state("4")).len(), 1, "the newer state takes the place of the old one");
    let mut copies = server.sent().len();
    for _ in 0..100 {
        server.pass(Duration::from_secs(1));
        copies += server.sent().len();
    }
    assert_eq!(copies, 4, "with the repetitions that were left");
    assert_eq!(server.endpoint.observers("/a"), 0);
    assert_eq!(server.events(), [EndpointEvent::Observers { path: "/a".to_owned(), count: 0 }]);
}

#[test]
fn a_reset_ends_a_registration() {
    let (mut client, mut server, id) = observed();
    notify(&mut server, "1");
    exchange(&mut client, &mut server, nobody);
    let mut forgetful = Host::new(Config::default());
    notify(&mut server, "2");
    assert_eq!(exchange(&mut forgetful, &mut server, nobody).last().unwrap(), "> RST 0.00", "to a NON as well");
    assert_eq!(server.endpoint.observers("/a"), 0);
    client.endpoint.cancel(client.now, id);
}

#[test]
fn a_cancelled_registration_ends_at_once() {
    let (mut client, mut server, id) = observed();
    client.endpoint.cancel(client.now, id);
    let lines = exchange(&mut client, &mut server, hello);
    assert_eq!(lines[0], "> NON 0.01 Observe=1 /a");
    assert_eq!(server.endpoint.observers("/a"), 0);
    assert!(client.events().is_empty());
}

#[test]
fn an_error_ends_a_registration_on_both_sides() {
    let (mut client, mut server, id) = observed();
    server.endpoint.notify(server.now, "/a");
    server.serve(|_| Response::new(Code::NOT_FOUND));
    assert_eq!(exchange(&mut client, &mut server, nobody), ["< CON 4.04", "> ACK 0.00"]);
    match client.events().as_slice() {
        [EndpointEvent::Response { request, response, .. }] => {
            assert_eq!((*request, response.code, response.observe), (id, Code::NOT_FOUND, None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((server.endpoint.counters().observers, client.endpoint.counters().requests), (0, 0));
}

#[test]
fn a_resource_that_does_not_accept_is_not_observed() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    observe(&mut client, "/a");
    exchange(&mut client, &mut server, hello);
    assert_eq!(response(&mut client).observe, None);
    assert_eq!((server.endpoint.counters().observers, client.endpoint.counters().requests), (0, 0));
}

#[test]
fn older_notifications_are_not_told() {
    let (mut client, mut server, _) = observed();
    notify(&mut server, "1");
    exchange(&mut client, &mut server, nobody);
    notify(&mut server, "2");
    let older = server.sent();
    notify(&mut server, "3");
    let newer = server.sent();
    client.receive(SERVER, &newer[0]);
    client.receive(SERVER, &older[0]);
    client.receive(SERVER, &newer[0]);
    assert_eq!(payloads(&mut client), ["1", "3"]);
}

#[test]
fn a_registration_that_is_not_fresh_any_more_is_renewed_under_its_token() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    observe(&mut client, "/a");
    exchange(&mut client, &mut server, |_| Response::content("0", 0).observable().with_max_age(10));
    client.pass(Duration::from_secs(14));
    assert!(client.sent().is_empty(), "some seconds are left to the server");
    client.pass(Duration::from_secs(12));
    let lines = exchange(&mut client, &mut server, state("1"));
    assert_eq!(lines[0], "> CON 0.01 Observe=0 /a");
    assert_eq!(payloads(&mut client), ["0", "1"]);
    assert_eq!(server.endpoint.observers("/a"), 1, "it is the same registration");
}

#[test]
fn a_renewed_registration_keeps_what_is_known_about_its_client() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    let short = |_: &CoapRequest<'_>| Response::content("0", 0).observable().with_max_age(10);
    observe(&mut client, "/a");
    exchange(&mut client, &mut server, short);
    server.endpoint.notify(server.now, "/a");
    server.serve(short);
    assert!(exchange(&mut client, &mut server, nobody)[0].starts_with("< CON"));
    client.pass(Duration::from_secs(26));
    assert_eq!(exchange(&mut client, &mut server, short)[0], "> CON 0.01 Observe=0 /a");
    server.endpoint.notify(server.now, "/a");
    server.serve(short);
    assert!(server.lines()[0].starts_with("NON"), "it answered before, so this needs no confirmation");
}

#[test]
fn a_newer_state_ends_the_fetching_of_an_older_one() {
    let (mut client, mut server, _) = observed();
    let large = |byte: u8| move |_: &CoapRequest<'_>| Response::content(vec![byte; 2000], 0).observable();
    server.endpoint.notify(server.now, "/a");
    server.serve(large(1));
    client.receive(SERVER, &server.sent()[0]);
    assert_eq!(client.lines(), ["ACK 0.00", "CON 0.01 /a Block2=1/0/1024"]);
    server.pass(Duration::from_secs(4)); // The acknowledgement is lost, so the server repeats.
    let repeated = server.sent();
    client.receive(SERVER, &repeated[0]);
    assert_eq!(client.lines(), ["ACK 0.00"], "a duplicate begins nothing");
    server.endpoint.notify(server.now, "/a");
    server.pass(Duration::from_secs(8));
    server.serve(large(2));
    client.receive(SERVER, &server.sent()[0]);
    let lines = client.lines();
    assert_eq!(lines, ["ACK 0.00", "CON 0.01 /a Block2=1/0/1024"], "the first block of the newer state is there");
    exchange(&mut client, &mut server, nobody);
}

/// A state of 3000 bytes with an entity tag of its own.
fn large(byte: u8) -> impl Fn(&CoapRequest<'_>) -> Response {
    move |_| Response::content(vec![byte; 3000], 0).with_etag(ETag::new(&[byte]).expect("a tag")).observable()
}

#[test]
fn a_state_that_changes_while_its_blocks_are_fetched_ends_no_observation() {
    for tells_at_once in [true, false] {
        let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
        let id = observe(&mut client, "/a");
        let carry = |from: &mut Host, to: &mut Host, port: u16| {
            from.sent().iter().for_each(|bytes| to.receive(port, bytes));
        };
        carry(&mut client, &mut server, CLIENT);
        server.serve(large(1));
        carry(&mut server, &mut client, SERVER);
        // The first block is here, and the second was asked for.
        server.endpoint.notify(server.now, "/a");
        if tells_at_once {
            server.serve(large(2));
        }
        exchange(&mut client, &mut server, large(2));
        server.serve(large(2));
        exchange(&mut client, &mut server, large(2));
        let responses: Vec<Response> = client
            .events()
            .into_iter()
            .map(|event| match event {
                EndpointEvent::Response { request, response, .. } if request == id => response,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(!responses.is_empty(), "{tells_at_once}");
        for response in responses {
            assert!(response.observe.is_some() && *response.payload == [2; 3000], "{tells_at_once}");
        }
        assert_eq!((client.endpoint.counters().requests, server.endpoint.observers("/a")), (1, 1), "{tells_at_once}");
        server.endpoint.notify(server.now, "/a");
        server.serve(large(3));
        exchange(&mut client, &mut server, large(3));
        assert_eq!(*response(&mut client).payload, [3; 3000], "{tells_at_once}");
    }
}

#[test]
fn a_registration_that_was_answered_with_what_the_client_knows_goes_on() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    observe(&mut client, "/a");
    let tag = ETag::new(b"t").expect("a tag");
    exchange(&mut client, &mut server, |_| Response::new(Code::VALID).with_etag(tag).observable());
    client.events();
    for text in ["1", "2"] {
        notify(&mut server, text);
        exchange(&mut client, &mut server, nobody);
        assert_eq!(payloads(&mut client), [text]);
    }
    assert_eq!(server.endpoint.observers("/a"), 1);
    server.endpoint.notify(server.now, "/a");
    server.serve(|_| Response::content("{}", 50).observable());
    assert_eq!(exchange(&mut client, &mut server, nobody)[0], "< CON 4.06 [38]", "the first content decides");
}

#[test]
fn a_notification_that_waited_for_its_turn_twice_is_asked_for_once() {
    let (mut client, mut server) = (Host::new(Config { nstart: 2, ..Config::default() }), Host::new(trusting()));
    observe(&mut client, "/a");
    exchange(&mut client, &mut server, state("0"));
    client.events();
    let other = |client: &mut Host| {
        let request = RequestBuf::get("/b");
        client.endpoint.request(client.now, peer(SERVER), request, Confirmability::Confirmable).unwrap();
    };
    (0..2).for_each(|_| other(&mut client));
    let under_way = client.sent();
    for byte in [1, 2] {
        server.endpoint.notify(server.now, "/a");
        server.serve(large(byte));
        server.sent().iter().for_each(|bytes| client.receive(SERVER, bytes));
        // Its acknowledgement comes, so that the next one may leave.
        client.sent().iter().for_each(|bytes| server.receive(CLIENT, bytes));
    }
    for bytes in under_way {
        server.receive(CLIENT, &bytes);
        server.serve(hello);
    }
    let lines = exchange(&mut client, &mut server, large(2));
    let asked = lines.iter().filter(|line| line.starts_with("> CON 0.01 /a Block2=1/0/1024")).count();
    assert_eq!(asked, 1, "{lines:?}");
    client.pass(Duration::from_secs(100));
    let failed = client.events().into_iter().filter(|event| matches!(event, EndpointEvent::Failed { .. })).count();
    assert_eq!(failed, 0);
    other(&mut client);
    assert!(client.lines().contains(&"CON 0.01 /b".to_owned()), "it need not wait");
}

#[test]
fn a_registration_at_an_unverified_address_draws_one_message_only() {
    let mut server = Host::new(trusting());
    server.receive(1, &bytes("51010001 07 60 5161"));
    server.serve(state("0"));
    assert_eq!(server.sent().len(), 1);
    for _ in 0..50 {
        notify(&mut server, "x");
    }
    assert_eq!(server.lines().iter().filter(|line| line.starts_with("CON")).count(), 1);
}

#[test]
fn acknowledgements_that_are_guessed_prove_no_address() {
    for (guesses, is_proved) in [(0, true), (8, true), (9, false), (300, false)] {
        let mut server = Host::new(trusting());
        server.receive(1, &bytes("51010001 07 60 5161"));
        server.serve(state("0"));
        server.sent();
        notify(&mut server, "x");
        let sent = server.sent();
        let asks = sent.iter().map(|bytes| CoapMessage::parse(bytes).expect("an endpoint sends CoAP"));
        let asks: Vec<_> = asks.filter(|message| message.message_type == MessageType::Confirmable).collect();
        let [MessageId(id)] = asks.iter().map(|message| message.id).collect::<Vec<_>>()[..] else { panic!("{asks:?}") };
        for guess in (0..=guesses).rev() {
            let [high, low] = id.wrapping_sub(guess).to_be_bytes();
            server.receive(1, &[0x60, 0, high, low]);
        }
        let place = server.endpoint.peers.hold(peer(1), &mut Rng::new(1)).expect("a place");
        assert_eq!(server.endpoint.peers.get(place).verified, is_proved, "{guesses}");
        assert_eq!(server.endpoint.observers("/a"), 1);
        server.endpoint.peers.release(place);
        // It is an acknowledgement all the same.
        server.pass(Duration::from_secs(10));
        assert_eq!(server.lines().iter().filter(|line| line.starts_with("CON")).count(), 0, "{guesses}");
    }
}

#[test]
fn registrations_beyond_the_limit_get_a_plain_answer() {
    let observe = ObserveConfig { observers_max: 2, ..ObserveConfig::default() };
    let mut server = Host::new(Config { observe, ..trusting() });
    for port in 1..=3 {
        let neighbour = Peer::from((Ipv4Addr::LOCALHOST, port));
        server.endpoint.handle_datagram(server.now, neighbour, &bytes("51010001 07 60 5161"));
        server.serve(state("0"));
    }
    let lines = server.lines();
    assert_eq!(lines.iter().map(|line| line.contains("Observe")).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(server.endpoint.observers("/a"), 2);
}

#[test]
fn a_notification_in_blocks_arrives_whole() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    let large = |_: &CoapRequest<'_>| Response::content(vec![b'y'; 3000], 0).observable();
    observe(&mut client, "/a");
    exchange(&mut client, &mut server, large);
    server.endpoint.notify(server.now, "/a");
    server.serve(large);
    let lines = exchange(&mut client, &mut server, nobody);
    assert!(lines.iter().any(|line| line == "> CON 0.01 /a Block2=2/0/1024"), "{lines:?}");
    let lens = client.events().into_iter().map(|event| match event {
        EndpointEvent::Response { response, .. } => (response.payload.len(), response.observe.is_some()),
        other => panic!("{other:?}"),
    });
    assert_eq!(lens.collect::<Vec<_>>(), [(3000, true), (3000, true)]);
}

#[test]
fn observers_that_come_and_go_open_no_more_notifications_than_there_may_be_observers() {
    let observe = ObserveConfig { observers_max: 2, ..ObserveConfig::default() };
    let mut server = Host::new(Config { observe, ..trusting() });
    let ask = |server: &mut Host, id: u8, observe: &str| {
        server.receive(1, &bytes(&format!("510100{id:02x} 07 {observe} 5161")));
        server.serve(state("0"));
    };
    let mut open = Vec::new();
    for round in 0..10 {
        ask(&mut server, 2 * round, "60");
        server.endpoint.notify(server.now, "/a");
        open.extend(server.exchanges());
        ask(&mut server, 2 * round + 1, "6101");
        assert_eq!(server.endpoint.observers("/a"), 0);
    }
    assert_eq!((open.len(), server.endpoint.counters().exchanges), (2, 2));
    for exchange in open {
        server.endpoint.respond(server.now, exchange, Response::new(Code::CONTENT)).unwrap();
    }
    ask(&mut server, 20, "60");
    assert_eq!(server.endpoint.observers("/a"), 1, "the places are free again");
}

#[test]
fn a_notification_in_another_format_ends_the_registration() {
    let (mut client, mut server, id) = observed();
    server.endpoint.notify(server.now, "/a");
    server.serve(|_| Response::content("{}", 50).observable());
    assert_eq!(exchange(&mut client, &mut server, nobody), ["< CON 4.06 [38]", "> ACK 0.00"]);
    match client.events().as_slice() {
        [EndpointEvent::Response { request, response, .. }] => {
            assert_eq!((*request, response.code, response.observe), (id, Code::NOT_ACCEPTABLE, None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.endpoint.observers("/a"), 0);
}

#[test]
fn notifications_have_the_format_of_the_renewed_registration() {
    let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
    observe(&mut client, "/a");
    exchange(&mut client, &mut server, |_| Response::content("0", 0).observable().with_max_age(10));
    client.pass(Duration::from_secs(26));
    exchange(&mut client, &mut server, |_| Response::content("1", 50).observable().with_max_age(100_000));
    server.endpoint.notify(server.now, "/a");
    server.serve(|_| Response::content("2", 50).observable());
    exchange(&mut client, &mut server, nobody);
    assert_eq!(payloads(&mut client), ["0", "1", "2"]);
    assert_eq!(server.endpoint.observers("/a"), 1);
}

#[test]
fn a_handler_says_whether_notifications_are_confirmed() {
    for is_confirmed in [true, false] {
        let (mut client, mut server) = (Host::new(Config::default()), Host::new(trusting()));
        let state = |_: &CoapRequest<'_>| Response::content("0", 0).with_max_age(100_000).observable_by(is_confirmed);
        observe(&mut client, "/a");
        exchange(&mut client, &mut server, state);
        client.events();
        // The first one to an address that may be forged asks for its proof in any case.
        server.endpoint.notify(server.now, "/a");
        server.serve(state);
        assert!(exchange(&mut client, &mut server, nobody)[0].starts_with("< CON"));
        for _ in 0..10 {
            server.pass(Duration::from_secs(10));
            server.endpoint.notify(server.now, "/a");
            server.serve(state);
            let line = exchange(&mut client, &mut server, nobody).remove(0);
            assert!(line.starts_with(if is_confirmed { "< CON 2.05" } else { "< NON 2.05" }), "{line}");
        }
        server.pass(Duration::from_secs(24 * 3600 + 1));
        server.serve(state);
        assert!(exchange(&mut client, &mut server, nobody)[0].starts_with("< CON"), "once a day");
    }
}

/// A notification in one message, or a block of a state.
fn told(
    kind: MessageType,
    id: u16,
    token: &Token,
    (number, block): (Option<u32>, Option<(u32, bool)>),
    text: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, kind, Code::CONTENT, MessageId(id), token);
    if let Some(number) = number {
        writer.uint(OptionNumber::OBSERVE, number);
    }
    if let Some((number, more)) = block {
        writer.uint(OptionNumber::BLOCK2, Block { number, more, exponent: 6 }.to_uint());
    }
    writer.payload(text);
    bytes
}

#[test]
fn a_late_block_of_an_older_state_does_not_end_the_observation() {
    let mut client = Host::new(Config::default());
    observe(&mut client, "/a");
    let request = client.sent().remove(0);
    let registration = CoapMessage::parse(&request).unwrap();
    let (first, id) = (registration.token, registration.id.0);
    client.receive(SERVER, &told(MessageType::Acknowledgement, id, &first, (Some(1), None), b"0"));
    client.receive(SERVER, &told(MessageType::NonConfirmable, 900, &first, (Some(2), Some((0, true))), &[b'x'; 1024]));
    let asked = client.sent();
    let block = CoapMessage::parse(&asked[0]).unwrap();
    client.receive(SERVER, &told(MessageType::NonConfirmable, 901, &first, (Some(3), None), b"small"));
    client.receive(SERVER, &told(MessageType::Confirmable, 902, &block.token, (None, Some((1, false))), b"late"));
    assert_eq!(payloads(&mut client), ["0", "small"]);
    client.receive(SERVER, &told(MessageType::NonConfirmable, 903, &first, (Some(4), None), b"next"));
    assert_eq!(payloads(&mut client), ["next"], "it goes on");
}

#[test]
fn the_numbers_of_one_observer_rise_no_faster_for_what_others_are_told() {
    let (mut client, mut server, _) = observed();
    let mut busy = Host::new(Config::default());
    let other = RequestBuf::get("/b").with_observe(Observe::Register);
    busy.endpoint.request(busy.now, peer(SERVER), other, Confirmability::Confirmable).unwrap();
    for bytes in busy.sent() {
        server.receive(CLIENT + 1, &bytes);
    }
    server.serve(state("b"));
    server.sent().iter().for_each(|told| busy.receive(SERVER, told));
    let number = |bytes: &[u8]| {
        let message = CoapMessage::parse(bytes).unwrap();
        crate::message::parse_uint(message.options.value(OptionNumber::OBSERVE).unwrap()).unwrap()
    };
    notify(&mut server, "1");
    let first = server.sent().remove(0);
    client.receive(SERVER, &first);
    client.sent().iter().for_each(|acknowledgement| server.receive(CLIENT, acknowledgement));
    let before = number(&first);
    for _ in 0..50_000 {
        server.endpoint.notify(server.now, "/b");
        server.serve(state("b"));
        server.sent().iter().for_each(|told| busy.receive(SERVER, told));
        busy.sent().iter().for_each(|acknowledgement| server.receive(CLIENT + 1, acknowledgement));
        busy.events();
    }
    server.pass(Duration::from_secs(1));
    client.now = server.now;
    server.sent();
    notify(&mut server, "2");
    let told = server.sent();
    let rise = number(told.last().unwrap()).wrapping_sub(before) & 0xff_ffff;
    assert!((1..=40_000).contains(&rise), "{rise} in a second");
    for bytes in told {
        client.receive(SERVER, &bytes);
    }
    assert_eq!(payloads(&mut client).last().map(String::as_str), Some("2"));
}
